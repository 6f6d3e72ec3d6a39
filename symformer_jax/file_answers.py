"""The answers for data files that the flags of symformer_jax.infer ask for, in this process: nothing is written.

Flags are read here from `infer_flags`, whoever parsed them: the command, or a worker to which they were sent.
"""

from collections.abc import Callable, Iterator, Sequence, Set
import contextlib
import dataclasses
import functools
import json
import math
from typing import Any

from symformer_jax.commands import column_units, grids, infer_flags as asked, operator_sizes, runner, tables
from symformer_jax.errors import InputError
from symformer_jax.results import FAILED, STOPPED, Callback, Equation, SearchResult, failed
from symformer_jax.selection import choice


@dataclasses.dataclass(frozen=True)
class Answer:
  """One file's outcome: `selected` is the line that the user takes; without a table its result is `failed`.

  `missed` says that the front has not the line that --select names, as the message of the result does.
  """

  path: str
  table: tables.Table | None
  result: SearchResult
  selected: Equation | None = None
  missed: str = ""

  @property
  def target(self) -> str:
    """The name of y; of a file that could not be read, what was asked for."""
    return self.table.target if self.table else (asked.TARGET.value or "")

  @property
  def taken(self) -> tuple[Equation, tables.Table]:
    """The line that the user takes, and its table; of an answer that has not failed."""
    assert self.selected is not None and self.table is not None
    return self.selected, self.table

  def renamed(self, path: str) -> "Answer":
    """The answer of a copy as that of the file, also in what it says."""
    message = self.result.message.replace(self.path, path)
    return dataclasses.replace(self, path=path, result=dataclasses.replace(self.result, message=message))

  def to_json(self) -> str:
    """The record of the file; `selected` is the number in `pareto` of the line that --select takes."""
    features = list(self.table.features) if self.table else list(asked.FEATURES.value or [])
    place = None if self.selected is None else self.result.pareto.index(self.selected)
    record = self.result.to_json(data=self.path, target=self.target, features=features)
    record |= {"selected": place, "notes": list(self.table.notes) if self.table else [], "options": options()}
    return json.dumps(record | self._conversions(), allow_nan=False)

  def _conversions(self) -> dict[str, Any]:
    """How dates, times and categories became numbers, and which columns of the file were neither features nor the
    target: by them `symformer_jax.predict` reads another table alike.
    """
    table = self.table
    return {"times": {name: scale.to_json() for name, scale in table.time_scales.items()} if table else {},
            "categories": {name: list(classes) for name, classes in table.categories.items()} if table else {},
            "other_columns": list(table.unused) if table else []}


def options() -> dict[str, Any]:
  """What decides an answer, by flag; JSON has no infinity, which some of them may be."""
  return {flag.name: str(flag.value) if flag.value == math.inf else flag.value for flag in asked.DECISIVE}


def default_options() -> dict[str, Any]:
  """The same where no flag is given: what an answer was made with before there was a flag."""
  return {flag.name: flag.default for flag in asked.DECISIVE}


@functools.cache  # the file is the user's program: run once, whatever becomes of it meanwhile
def load_search_config(spec: str | None) -> Any:
  """What steers the search; None for what does by default."""
  from symformer_jax.commands import search_config
  from symformer_jax.engine.config import DEFAULT

  return DEFAULT if spec is None else search_config.load_search_config(spec)


def read(path: str) -> list[tables.Table]:
  """A file's tables, one for each target.

  Raises:
    InputError: for a file that cannot be used, or of whose columns a guess or template has one that is not in use.
  """
  batch = tables.read_tables(path, tables.Request(
    asked.TARGET.value, asked.FEATURES.value, asked.CATEGORIES.value or (), asked.WEIGHTS.value, asked.SIGMA.value,
    asked.DROP_MISSING.value, asked.DECIMAL.value, asked.SEPARATOR.value, asked.SHEET.value,
    asked.TIME_UNIT.value, tuple(asked.EXCLUDE.value)))
  for table in batch:
    _refuse_strangers(table)
  return batch


def _refuse_strangers(table: tables.Table) -> None:
  from symformer_jax.language import strangers

  others = dict.fromkeys(table.unused, "a column that is none of the features") | {table.target: "the target"}
  template = [("--template", text) for text in [_template()] if text is not None]
  for flag, text in [*(("--guess", guess) for guess in _guesses()), *template]:
    strangers.refuse(f"{table.path}: {flag}", text, table.features, others)


def _guesses() -> list[str]:
  """Those of --guess, with names as tables have them."""
  return [grids.composed(guess) for guess in asked.GUESS.value]


def _template() -> str | None:
  """That of --template, likewise."""
  return None if asked.TEMPLATE.value is None else grids.composed(asked.TEMPLATE.value)


def answer_many(
  paths: Sequence[str], *, is_single: bool, should_stop: Callable[[], bool] = lambda: False,
  targets_done: Set[tuple[str, str]] = frozenset(),
) -> Iterator[Answer]:
  """Answers in the order of the files, each as soon as it is there; ends early when asked to stop.

  Args:
    is_single: whether there is no other file, in this process or elsewhere.
    targets_done: files and targets that have their answers.
  """
  from symformer_jax import compilation

  at_once = compilation.dataset_buckets()[-1]
  for begin in range(0, len(paths), at_once):
    answers: dict[str, list[Answer]] = {path: [] for path in paths[begin : begin + at_once]}
    batches: dict[int, tuple[Any, list[tables.Table]]] = {}
    for path in paths[begin : begin + at_once]:
      found = _prepare(path, is_single=is_single)
      if isinstance(found, Answer):
        answers[path].append(found)
      else:
        batch, model = found
        waiting = [table for table in batch if (path, table.target) not in targets_done]
        batches.setdefault(id(model), (model, []))[1].extend(waiting)
    for model, waiting in batches.values():
      for answer in search(waiting, model, should_stop, is_single=is_single):
        answers[answer.path].append(answer)
    is_stopped = should_stop()  # later, where an answer cannot be written, the others of this turn are still printed
    for answer in (answer for path in paths[begin : begin + at_once] for answer in answers[path]):
      if answer.result.ended_by == STOPPED or (is_stopped and not answer.result.ended_by):
        return  # cut short, or not begun: for the next run
      yield answer
    if should_stop():
      return


def _prepare(path: str, *, is_single: bool) -> tuple[list[tables.Table], Any] | Answer:
  """A file's tables, one for each target, and their model, or the answer that says why there is none."""
  try:
    batch = read(path)
    _units(batch, is_single=is_single)  # the names of its columns may hold none that can be read
  except InputError as error:
    return Answer(path, None, failed(str(error), model=asked.MODEL.value, seed=asked.SEED.value))
  print_notes(batch)
  return batch, resolve_model(batch[0])


def resolve_model(table: tables.Table) -> Any:
  """The model that --model names for a table."""
  # Imported late: --help and most errors come without waiting for JAX.
  from symformer_jax import compilation, inference

  compilation.use_cache()
  return inference.resolve_model(asked.MODEL.value, num_variables=_num_variables(table))


def _num_variables(table: tables.Table) -> int:
  """Variables of what is searched: of a template those of its unknown functions."""
  from symformer_jax.language import templates

  if (template := _template()) is not None:
    with contextlib.suppress(InputError):  # the search says it of the file
      return templates.num_columns(template, table.features)
  return len(table.features)


def search(
  batch: Sequence[tables.Table], model: Any, should_stop: Callable[[], bool], *, is_single: bool,
  callback: Callback | None = None,
) -> list[Answer]:
  """Searches tables in one call."""
  from symformer_jax import inference

  found = inference.search(
    model, [table.points for table in batch], names=[table.features for table in batch],
    n_samples=asked.SAMPLES.value, strategy=asked.STRATEGY.value, top_k=asked.TOP_K.value,
    temperature=asked.TEMPERATURE.value, refine=asked.REFINE.value, recombine=asked.RECOMBINE.value,
    restrictions=restrictions(),
    max_time=asked.MAX_TIME.value, effort=asked.EFFORT.value, accuracy=asked.ACCURACY.value, seed=asked.SEED.value,
    should_stop=should_stop, guesses=_guesses(), callback=callback, loss=asked.LOSS.value,
    template=_template(), config=load_search_config(asked.SEARCH_CONFIG.value),
    targets=[table.target for table in batch], units=_units(batch, is_single=is_single),
    dimensionless_constants=asked.DIMENSIONLESS_CONSTANTS.value)
  return [_select(table, result) for table, result in zip(batch, found, strict=True)]


def _units(batch: Sequence[tables.Table], *, is_single: bool) -> dict[str, str] | None:
  if asked.UNITS.value is None:
    return None
  return column_units.units_of(asked.UNITS.value, batch, is_single=is_single)


def restrictions() -> Any:
  """The rules that the flags give."""
  from symformer_jax.language.rules import Restrictions

  return Restrictions(
    None if asked.OPERATORS.value is None else tuple(asked.OPERATORS.value), tuple(asked.FORBID.value),
    tuple(map(grids.clean_name, asked.REQUIRE.value)), tuple(map(grids.clean_name, asked.EXCLUDE.value)),
    asked.MAX_EXPONENT.value, asked.MAX_DEPTH.value, tuple(asked.UNNESTED.value),
    asked.MAX_COMPLEXITY.value, tuple(asked.ADD_OPERATORS.value),
    operator_sizes.read_sizes(asked.MAX_SIZES.value))


def _select(table: tables.Table, result: SearchResult) -> Answer:
  """The answer of a file with the line that --select takes; the recommended one, and a message, where there is none:
  how many lines a front has is known only after the search, which is not to be lost.
  """
  if result.status == FAILED:
    return Answer(table.path, table, dataclasses.replace(result, message=asked.in_flags(result.message)))
  try:
    selected = choice.pick(result.pareto, result.best, asked.SELECT.value, argument="--select")
    return Answer(table.path, table, result, selected)
  except InputError as error:
    missed = f"{error}: the recommended one is taken"
    message = "; ".join(filter(None, [result.message, missed]))
    return Answer(table.path, table, dataclasses.replace(result, message=message), result.best, missed)


def print_notes(batch: Sequence[tables.Table]) -> None:
  """Says what was decided in reading a file, before a search that may be long."""
  if not asked.QUIET.value:
    for note in dict.fromkeys(note for table in batch for note in table.notes):
      runner.say(f"note: {batch[0].path}: {note}")
