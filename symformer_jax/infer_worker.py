"""What a worker of `infer --beam` does in a process of its own, which has no Beam: searches, and tells of failures."""

from collections.abc import Mapping, Sequence
import os
from typing import Any

from symformer_jax import file_answers
from symformer_jax.commands import infer_flags as asked
from symformer_jax.results import failed


def begin(flags: Mapping[str, Any], here: str) -> None:
  """Takes over the flags of the command, by name, and its folder where this machine has it."""
  asked.FLAGS.mark_as_parsed()
  for name, value in flags.items():
    asked.FLAGS[name].value = value
  if os.path.isdir(here):
    os.chdir(here)


def answer_files(paths: Sequence[tuple[str, str]], is_single: bool) -> list[str]:
  """The lines of some files, each given as `(name, where it lies)`, in their order."""
  lines, names = [], {place: name for name, place in paths}
  for answer in file_answers.answer_many([place for _, place in paths], is_single=is_single):
    name = names[answer.path]
    lines.append(answer.renamed(name).to_json() if name != answer.path else answer.to_json())
  return lines


def refuse(path: str, message: str) -> str:
  """The line of a file that cannot be searched."""
  return file_answers.Answer(
    path, None, failed(message, model=asked.MODEL.value, seed=asked.SEED.value)).to_json()
