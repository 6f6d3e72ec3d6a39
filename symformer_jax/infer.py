"""Finds formulas for tables of points: python -m symformer_jax.infer --data=points.csv

Prints formulas from simple to accurate and marks the recommended one. Many files or globs are one batch, whose
results are written line by line. Ctrl-C ends the search of one file with the best so far; a batch keeps the files
that are done, and goes on with --resume.
Exit codes: 0 done; 1 some files failed (each says why in its line of the JSONL), or results could not be written, and
are printed; 2 unusable arguments or input, one line on standard error says what is wrong; 75 stopped by SIGTERM or
Ctrl-C.
"""

if __name__ == "__main__":
  from symformer_jax.commands import startup  # first: the other imports take seconds

  startup.prepare(__doc__, "symformer_jax.commands.infer_flags")

from collections.abc import Callable, Iterator, Sequence
import contextlib
import dataclasses
import functools
import json
import math
import pathlib
import sys
from typing import Any

from absl import flags
from rich import console, progress

from symformer_jax import files
from symformer_jax.commands import (
  column_units,
  extras,
  grids,
  infer_flags as asked,
  listing,
  outputs,
  result_lines,
  runner,
  tables,
)
from symformer_jax.errors import InputError
from symformer_jax.language.names import written
from symformer_jax.live_front import show_progress
from symformer_jax.presentation.numerals import format_r2
from symformer_jax.results import FAILED, OK, STOPPED, Callback, Equation, SearchResult, failed
from symformer_jax.selection import choice


@dataclasses.dataclass(frozen=True)
class _Answer:
  """One file's outcome: `selected` is the line that the user takes; without a table its result is `failed`."""

  path: str
  table: tables.Table | None
  result: SearchResult
  selected: Equation | None = None

  @property
  def target(self) -> str:
    """The name of y; of a file that could not be read, what was asked for."""
    return self.table.target if self.table else (asked.TARGET.value or "")

  def to_json(self) -> str:
    """The record of the file; `selected` is the number in `pareto` of the line that --select takes."""
    features = list(self.table.features) if self.table else list(asked.FEATURES.value or [])
    place = None if self.selected is None else self.result.pareto.index(self.selected)
    record = self.result.to_json(data=self.path, target=self.target, features=features)
    record |= {"selected": place, "notes": list(self.table.notes) if self.table else [], "options": _options()}
    return json.dumps(record, allow_nan=False)


def _options() -> dict[str, Any]:
  """By flag; JSON has no infinity, which some of them may be."""
  return {flag.name: str(flag.value) if flag.value == math.inf else flag.value for flag in asked.DECISIVE}


def main(argv: list[str]) -> int:
  """Returns the exit code."""
  del argv
  if not asked.DATA.value:
    raise InputError("--data: expected a file, such as --data=examples/kepler.csv; see --help")
  runner.refuse_empty(
    asked.TARGET, asked.FEATURES, asked.CATEGORIES, asked.DECIMAL, asked.SEPARATOR, asked.SHEET, asked.WEIGHTS,
    asked.SIGMA, asked.MODEL, asked.TEMPLATE, asked.SEARCH_CONFIG, asked.OUT, asked.PLOT, asked.REPORT,
    asked.ANIMATE)
  paths = tables.find_files(asked.DATA.value)
  choice.read_selection(asked.SELECT.value, argument="--select")
  _check_outputs(len(paths))
  _check_movie(len(paths))
  _note_old_flags()
  _load_search_config(asked.SEARCH_CONFIG.value)
  _check_options(len(paths))
  stop = runner.StopRequest()
  return _run_one(paths[0], stop) if len(paths) == 1 and not asked.RESUME.value else _run_many(paths, stop)


@functools.cache  # the file is the user's program: run once, whatever becomes of it meanwhile
def _load_search_config(spec: str | None) -> Any:
  from symformer_jax.commands.search_config import load_search_config
  from symformer_jax.engine.config import DEFAULT

  return DEFAULT if spec is None else load_search_config(spec)


def _check_options(num_files: int) -> None:
  """Refuses what is wrong for any file before the results of a batch are begun: what is there is not to be lost."""
  if asked.WEIGHTS.value and asked.SIGMA.value:
    raise InputError("--weights, --sigma: expected one of them")
  if asked.UNITS.value is not None:
    column_units.read_pairs(asked.UNITS.value)
  elif asked.DIMENSIONLESS_CONSTANTS.value:
    raise InputError("--dimensionless_constants: says nothing without --units")
  if num_files > 1:  # of one file the search itself says it, before which nothing is written
    from symformer_jax.engine.options import SearchOptions

    SearchOptions(
      asked.SAMPLES.value, asked.STRATEGY.value, asked.TOP_K.value, asked.TEMPERATURE.value, asked.REFINE.value,
      _restrictions(), asked.MAX_TIME.value, asked.ACCURACY.value, asked.SEED.value, asked.RECOMBINE.value,
      tuple(asked.GUESS.value), asked.EFFORT.value, loss=asked.LOSS.value,
      template=asked.TEMPLATE.value).check()


def _note_old_flags() -> None:
  """`--norecombine` is a choice of sources."""
  if not asked.RECOMBINE.value and not asked.QUIET.value:
    print("note: --norecombine leaves out the sources that need no model, such as library and growth", file=sys.stderr)


def _run_one(path: str, stop: runner.StopRequest) -> int:
  """Searches one file; whatever makes it fail is an error of the command."""
  batch = _read(path)
  _print_notes(batch)
  if asked.OUT.value:
    outputs.check_new(asked.OUT.value, [table.target for table in batch], may_replace=asked.OVERWRITE.value)
  model = _resolve_model(batch[0])
  if asked.ANIMATE.value and len(batch[0].features) > model.vocab.num_variables:
    raise InputError(f"--animate: shows candidates of the model, {model.name!r} knows {model.vocab.num_variables} "
                     f"variables, the data have {len(batch[0].features)}")
  targets = [table.target for table in batch]
  with show_progress(is_quiet=asked.QUIET.value, max_time=asked.MAX_TIME.value, names=targets) as shown:
    answers = _search(batch, model, stop.is_set, callback=shown)
  if all(answer.result.status == FAILED for answer in answers):
    raise InputError(f"{path}: {answers[0].result.message}")
  lost = _write_answers(answers)
  for answer in answers:
    _print(answer, is_quiet=asked.QUIET.value and not lost)
  lost += _write(asked.PLOT, answers, _draw)
  lost += _write(asked.REPORT, answers, _report)
  lost += _write(asked.ANIMATE, answers, lambda answer, place: _animate(answer.table, model, place))
  if lost:
    print(*lost, sep="\n", file=sys.stderr)
  if lost or any(answer.result.status == FAILED for answer in answers):
    return runner.SOME_FAILED
  if any(answer.result.ended_by == STOPPED for answer in answers):
    print("stopped: this is the best so far", file=sys.stderr)
    return runner.STOPPED
  return runner.DONE


def _write_answers(answers: Sequence[_Answer]) -> list[str]:
  """Writes the results, each target's to a file of its own or all as lines of one; what could not be written."""
  if asked.OUT.value and pathlib.Path(asked.OUT.value).suffix == outputs.LINES:
    lines = "".join(answer.to_json() + "\n" for answer in answers)
    return _write(asked.OUT, answers[:1], lambda _, place: files.write_text(place, lines))
  return _write(asked.OUT, answers, lambda answer, place: files.write_text(place, answer.to_json() + "\n"))


def _write(flag: flags.FlagHolder, answers: Sequence[_Answer], write: Callable[[_Answer, str], object]) -> list[str]:
  """Writes what a flag asks for, if it does, for each answer; what could not be written, one line each: what was found
  is not to be lost.
  """
  lost = []
  places = outputs.paths_of(flag.value, [answer.table.target for answer in answers]) if flag.value else []
  for answer, place in zip(answers, places, strict=False):
    try:
      if answer.result.status != FAILED or flag is asked.OUT:  # of what failed there is nothing to draw
        write(answer, place)
    except OSError as error:
      lost.append(_describe_loss(flag, place, error))
  return lost


def _describe_loss(flag: flags.FlagHolder, place: str, error: OSError) -> str:
  return f"error: --{flag.name}: cannot write {files.shorten(place)!r}: {error.strerror or error}"


def _run_many(paths: list[str], stop: runner.StopRequest) -> int:
  """Searches file after file; one that fails becomes a line that says why."""
  lines = result_lines.ResultLines(asked.OUT.value, options=_options(), is_new=not asked.RESUME.value)
  waiting = [path for path in paths if not _is_done(path, lines)]
  has_failed = lines.has_failed
  lost = ""
  # A bar for people; elsewhere the lines below say how far it is.
  with progress.Progress(console=console.Console(stderr=True), transient=True,
                         disable=asked.QUIET.value or not sys.stderr.isatty()) as bar:
    task = bar.add_task("files", total=len(paths), completed=len(paths) - len(waiting))
    for answer in _answer_many(waiting, stop, lines):
      has_failed |= answer.result.status == FAILED
      try:
        lines.add(answer.path, answer.to_json(), target=answer.target)
      except OSError as error:
        lost = _describe_loss(asked.OUT, asked.OUT.value, error)
      num_done = sum(_is_done(path, lines) for path in paths)
      if lost:
        stop.set()  # what was found in the same turn is printed, nothing more is begun
        _print(answer, is_quiet=False)
      elif asked.OUT.value:
        _print_line(answer, num_done, len(paths))
      else:
        _print(answer, is_quiet=asked.QUIET.value)
      bar.update(task, completed=num_done)
  num_done = sum(_is_done(path, lines) for path in paths)
  if lost:
    print(f"{lost}; {num_done} of {len(paths)} files are done, --resume goes on", file=sys.stderr)
    return runner.SOME_FAILED
  if num_done < len(paths):
    hint = "; --resume goes on" if asked.OUT.value else ""
    print(f"stopped: {num_done} of {len(paths)} files are done{hint}", file=sys.stderr)
    return runner.STOPPED
  return runner.SOME_FAILED if has_failed else runner.DONE


def _is_done(path: str, lines: result_lines.ResultLines) -> bool:
  """Whether each target of a file has its line; one that could not be read has a single line."""
  if asked.TARGET.value is None:
    return path in lines.done
  return (path, asked.TARGET.value) in lines.targets or all(
    (path, name) in lines.targets for name in tables.split_names(asked.TARGET.value))


def _check_outputs(num_files: int) -> None:
  """Refuses unusable output paths before any work is done."""
  if asked.RESUME.value and (not asked.OUT.value or not asked.OUT.value.endswith(".jsonl")):
    raise InputError("--resume: expected --out=FILE.jsonl, the results to go on with")
  if asked.OUT.value:
    path = files.check_writable(asked.OUT.value, flag="--out")
    if path.suffix not in (".json", ".jsonl"):
      raise InputError(f"--out: expected a name ending in .json or .jsonl, got {asked.OUT.value!r}")
    if num_files > 1 and path.suffix != ".jsonl":
      raise InputError(f"--out: results of {num_files} files need a .jsonl, got {asked.OUT.value!r}")
    if path.exists() and not (asked.RESUME.value or asked.OVERWRITE.value):
      raise InputError(f"--out: {asked.OUT.value!r} exists; --overwrite replaces it, --resume goes on with a .jsonl")
  if asked.PLOT.value:
    extras.require("plot", who="--plot")
    from symformer_jax.presentation import figures

    _check_single(asked.PLOT, figures.FORMATS, num_files, "draws")
  if asked.REPORT.value:
    extras.require("plot", who="--report")
    from symformer_jax.presentation import page

    _check_single(asked.REPORT, page.FORMATS, num_files, "tells of")


def _check_single(flag: flags.FlagHolder, formats: Sequence[str], num_files: int, verb: str) -> None:
  """Refuses an unusable path of what is made of one data file."""
  path = files.check_writable(flag.value, flag=f"--{flag.name}")
  if path.suffix not in formats:
    raise InputError(f"--{flag.name}: expected a name ending in {', '.join(formats)}, got {flag.value!r}")
  if num_files > 1:
    raise InputError(f"--{flag.name}: {verb} one data file, got {num_files}")


def _check_movie(num_files: int) -> None:
  """Refuses an unusable film before any work is done."""
  if not asked.ANIMATE.value:
    return
  extras.require("plot", who="--animate")
  from symformer_jax.commands import movies

  path = files.check_writable(asked.ANIMATE.value, flag="--animate")
  if path.suffix not in movies.FORMATS:
    raise InputError(f"--animate: expected a name ending in {' or '.join(movies.FORMATS)}, got {str(path)!r}")
  if not movies.can_write(path.suffix):
    raise InputError(f"--animate: {path.suffix} takes the program ffmpeg, which is not installed; .gif needs nothing")
  if num_files > 1:
    raise InputError(f"--animate: films one data file, got {num_files}")
  if asked.TEMPLATE.value is not None:
    raise InputError("--animate: films candidates for the target itself, which --template has not")
  if asked.REFINE.value == "none":
    raise InputError("--animate: with --refine=none nothing moves")


def _read(path: str) -> list[tables.Table]:
  return tables.read_tables(path, tables.Request(
    asked.TARGET.value, asked.FEATURES.value, asked.CATEGORIES.value or (), asked.WEIGHTS.value, asked.SIGMA.value,
    asked.DROP_MISSING.value, asked.DECIMAL.value, asked.SEPARATOR.value, asked.SHEET.value))


def _answer_many(
  paths: Sequence[str], stop: runner.StopRequest, lines: result_lines.ResultLines
) -> Iterator[_Answer]:
  """Answers in the order of the files, each as soon as it is there; ends early when asked to stop."""
  from symformer_jax import compilation

  at_once = compilation.dataset_buckets()[-1]
  for begin in range(0, len(paths), at_once):
    answers: dict[str, list[_Answer]] = {path: [] for path in paths[begin : begin + at_once]}
    batches: dict[int, tuple[Any, list[tables.Table]]] = {}
    for path in paths[begin : begin + at_once]:
      found = _prepare(path)
      if isinstance(found, _Answer):
        answers[path].append(found)
      else:
        found, model = found
        waiting = [table for table in found if (path, table.target) not in lines.targets]
        batches.setdefault(id(model), (model, []))[1].extend(waiting)
    for model, batch in batches.values():
      for answer in _search(batch, model, stop.is_set):
        answers[answer.path].append(answer)
    is_stopped = stop.is_set()  # later, where an answer cannot be written, the others of this turn are still printed
    for answer in (answer for path in paths[begin : begin + at_once] for answer in answers[path]):
      if answer.result.ended_by == STOPPED or (is_stopped and not answer.result.ended_by):
        return  # cut short, or not begun: for the next run
      yield answer
    if stop.is_set():
      return


def _prepare(path: str) -> tuple[list[tables.Table], Any] | _Answer:
  """A file's tables, one for each target, and their model, or the answer that says why there is none."""
  try:
    batch = _read(path)
    _units(batch)  # the names of its columns may hold none that can be read
  except InputError as error:
    return _Answer(path, None, failed(str(error), model=asked.MODEL.value, seed=asked.SEED.value))
  _print_notes(batch)
  return batch, _resolve_model(batch[0])


def _resolve_model(table: tables.Table) -> Any:
  # Imported late: --help and most errors come without waiting for JAX.
  from symformer_jax import compilation, inference

  compilation.use_cache()
  return inference.resolve_model(asked.MODEL.value, num_variables=_num_variables(table))


def _num_variables(table: tables.Table) -> int:
  """Variables of what is searched: of a template those of its unknown functions."""
  from symformer_jax.language import templates

  if asked.TEMPLATE.value is not None:
    with contextlib.suppress(InputError):  # the search says it of the file
      return templates.num_columns(asked.TEMPLATE.value, table.features)
  return len(table.features)


def _search(
  batch: Sequence[tables.Table], model: Any, should_stop: Callable[[], bool],
  callback: Callback | None = None,
) -> list[_Answer]:
  from symformer_jax import inference

  found = inference.search(
    model, [table.points for table in batch], names=[table.features for table in batch],
    n_samples=asked.SAMPLES.value, strategy=asked.STRATEGY.value, top_k=asked.TOP_K.value,
    temperature=asked.TEMPERATURE.value, refine=asked.REFINE.value, recombine=asked.RECOMBINE.value,
    restrictions=_restrictions(),
    max_time=asked.MAX_TIME.value, effort=asked.EFFORT.value, accuracy=asked.ACCURACY.value, seed=asked.SEED.value,
    should_stop=should_stop, guesses=asked.GUESS.value, callback=callback, loss=asked.LOSS.value,
    template=asked.TEMPLATE.value, config=_load_search_config(asked.SEARCH_CONFIG.value),
    targets=[table.target for table in batch], units=_units(batch),
    dimensionless_constants=asked.DIMENSIONLESS_CONSTANTS.value)
  return [_select(table, result) for table, result in zip(batch, found, strict=True)]


def _units(batch: Sequence[tables.Table]) -> dict[str, str] | None:
  if asked.UNITS.value is None:
    return None
  is_single = len(tables.find_files(asked.DATA.value)) == 1
  return column_units.units_of(asked.UNITS.value, batch, is_single=is_single)


def _restrictions() -> Any:
  from symformer_jax.language.rules import Restrictions

  return Restrictions(
    None if asked.OPERATORS.value is None else tuple(asked.OPERATORS.value), tuple(asked.FORBID.value),
    tuple(map(grids.clean_name, asked.REQUIRE.value)), tuple(map(grids.clean_name, asked.EXCLUDE.value)),
    asked.MAX_EXPONENT.value, asked.MAX_DEPTH.value, tuple(asked.UNNESTED.value),
    asked.MAX_COMPLEXITY.value, tuple(asked.ADD_OPERATORS.value))


def _select(table: tables.Table, result: SearchResult) -> _Answer:
  """The answer of a file with the line that --select takes; the recommended one, and a message, where there is none:
  how many lines a front has is known only after the search, which is not to be lost.
  """
  if result.status == FAILED:
    return _Answer(table.path, table, result)
  try:
    selected = choice.pick(result.pareto, result.best, asked.SELECT.value, argument="--select")
    return _Answer(table.path, table, result, selected)
  except InputError as error:
    message = "; ".join(filter(None, [result.message, f"{error}: the recommended one is taken"]))
    return _Answer(table.path, table, dataclasses.replace(result, message=message), result.best)


def _draw(answer: _Answer, place: str) -> None:
  from symformer_jax.presentation import figures

  with files.replacing(place) as temporary:
    figures.draw_result(answer.result, answer.selected, answer.table, temporary)


def _report(answer: _Answer, place: str) -> None:
  from symformer_jax.presentation import page

  page.write_page(answer.result, answer.selected, answer.table, place, name=pathlib.Path(answer.path).name,
                  notes=answer.table.notes)


def _animate(table: tables.Table, model: Any, place: str) -> None:
  from symformer_jax.commands import movies, trajectories

  found = trajectories.record(
    model, table.x, table.y, weights=table.weights, n_samples=asked.SAMPLES.value, top_k=asked.TOP_K.value,
    method=asked.REFINE.value, seed=asked.SEED.value)
  if not found:
    print("note: --animate: no candidate is defined on all points, nothing is filmed", file=sys.stderr)
    return
  with files.replacing(place) as temporary:
    movies.draw(found, table, temporary)


# --- printing --------------------------------------------------------------------------------------------------


def _print(answer: _Answer, *, is_quiet: bool) -> None:
  if answer.result.status != OK:
    print(f"failed: {answer.result.message}", file=sys.stderr)
    return
  if is_quiet:
    return
  listing.print_result(answer.result, answer.selected, name=pathlib.Path(answer.path).name, target=answer.table.target)


def _print_notes(batch: Sequence[tables.Table]) -> None:
  """Says what was decided in reading a file, before a search that may be long."""
  if not asked.QUIET.value:
    for note in dict.fromkeys(note for table in batch for note in table.notes):
      print(f"note: {batch[0].path}: {note}", file=sys.stderr)


def _print_line(answer: _Answer, num_done: int, num_files: int) -> None:
  """One line of a batch whose results go to a file."""
  if answer.result.status != OK:
    print(f"failed: [{num_done}/{num_files}] {answer.result.message}", file=sys.stderr)
  elif not asked.QUIET.value:
    print(f"[{num_done}/{num_files}] {answer.path}: {written(answer.target)} = {answer.selected.expression}  "
          f"R2 {format_r2(answer.selected.r2)}")


if __name__ == "__main__":
  runner.run(main, flag_values=asked.FLAGS)
