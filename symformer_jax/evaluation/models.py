"""Which model answers which task."""

from collections.abc import Sequence
import contextlib
import functools
import os
import pathlib
from typing import Any

from symformer_jax.errors import InputError
from symformer_jax.evaluation.suites import Task
from symformer_jax.pretrained import registry


class Models:
  """Task -> loaded model, each loaded once.

  Args:
    by_encoding: models, one for each encoding of constants; None for the shipped ones, by the number of variables.
  """

  def __init__(self, by_encoding: dict[str, Any] | None):
    self._by_encoding = by_encoding
    self._shipped = functools.cache(lambda num_variables: registry.load_model("auto", num_variables=num_variables))

  def __call__(self, task: Task) -> Any:
    """The model of a task.

    Raises:
      InputError: says why there is none.
    """
    num_variables = task.problem.num_variables
    if self._by_encoding is None:
      return self._shipped(num_variables)
    if task.encoding is None and len(self._by_encoding) > 1:
      names = ", ".join(model.name for model in self._by_encoding.values())
      raise InputError(f"--model: expected one model for this suite, got {names}")
    return self._by_encoding[task.encoding or next(iter(self._by_encoding))]

  def used_by(self, tasks: Sequence[Task]) -> list[Any]:
    """The models that are asked for these tasks, each once; rows of tasks that have none say why."""
    used: dict[int, Any] = {}
    for task in {(task.problem.num_variables, task.encoding): task for task in tasks if not task.method.peer}.values():
      with contextlib.suppress(InputError):
        model = self(task)
        used[id(model)] = model
    return list(used.values())

  def split(self, tasks: Sequence[Task]) -> tuple[list[Task], dict[str, str]]:
    """Tasks that can be asked; and variants that cannot, with the reason: no model of their encoding is here."""
    missing = {task.variant: f"no model with the encoding {task.encoding!r}" for task in tasks
               if task.encoding is not None and task.encoding not in self._encodings(task)}
    return [task for task in tasks if task.variant not in missing], missing

  def _encodings(self, task: Task) -> set[str]:
    if self._by_encoding is not None:
      return set(self._by_encoding)
    return {self._shipped(task.problem.num_variables).vocab.encoding}


def open_models(name: str) -> Models:
  """Models by what a user names: `auto`, a shipped one, an exported one's folder, or a folder of such folders.

  The last is how encodings are compared: the folder may hold one model of each, at any depth.
  Raises:
    InputError: when it holds two of one encoding; ModelError for an unknown or damaged model.
  """
  if name == "auto":
    return Models(None)
  folder = pathlib.Path(name)
  is_single = name in registry.model_names() or not os.path.isdir(folder) or (folder / registry.CARD).exists()
  below = [] if is_single else sorted(str(path.parent) for path in folder.rglob(registry.CARD))
  by_encoding: dict[str, Any] = {}
  for path in below or [name]:
    model = registry.load_model(path)
    encoding = model.vocab.encoding
    if encoding in by_encoding:
      raise InputError(f"--model: {name!r} holds two models with the encoding {encoding!r}: "
                       f"{by_encoding[encoding].name} and {model.name}")
    by_encoding[encoding] = model
  return Models(by_encoding)
