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

  startup.prepare()

from collections.abc import Callable, Iterator, Sequence
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
from symformer_jax.commands import listing, result_lines, runner, tables
from symformer_jax.errors import InputError
from symformer_jax.presentation.numerals import format_r2
from symformer_jax.progress_line import ProgressLine
from symformer_jax.results import FAILED, OK, STOPPED, Equation, Progress, SearchResult, failed
from symformer_jax.selection import choice

_FLAGS = flags.FlagValues()
_DATA = flags.DEFINE_list(
  "data", None, "Files and globs, separated by commas: .csv, .tsv, .parquet or .npz. Required.", flag_values=_FLAGS)
_TARGET = flags.DEFINE_string(
  "target", None, "Column to explain; by default the last one with numbers.", flag_values=_FLAGS)
_FEATURES = flags.DEFINE_list(
  "features", None, "Columns to explain it by; by default all others with numbers.", flag_values=_FLAGS)
_WEIGHTS = flags.DEFINE_string(
  "weights", None, "Column of weights, at least 0: how much each row counts in fitting, choice, standard errors, R2 "
  "and RMSE; only ratios matter.", flag_values=_FLAGS)
_SIGMA = flags.DEFINE_string(
  "sigma", None, "Column of standard deviations of the target, above 0: rows count as 1/sigma**2.", flag_values=_FLAGS)
_LOSS = flags.DEFINE_string(
  "loss", "squared", "Which errors are to be small: squared; relative (rows count as 1/y**2); log (log|y| is fitted); "
  "huber (rows far from the formula count less); auto (as errors grow with |y|, found by a first look).",
  flag_values=_FLAGS)
_MODEL = flags.DEFINE_string(
  "model", "auto", "A shipped model's name, a model's folder, or auto: the shipped model for so many variables.",
  flag_values=_FLAGS)
_SAMPLES = flags.DEFINE_integer("samples", 1024, "Candidates drawn from the model for each file.", flag_values=_FLAGS)
_STRATEGY = flags.DEFINE_string(
  "strategy", "top_k", "How candidates are drawn: top_k, temperature, nucleus, greedy, beam, or distinct (sampling "
  "without replacement).", flag_values=_FLAGS)
_TEMPERATURE = flags.DEFINE_float(
  "temperature", 1.0, "Below 1 candidates are likelier, above 1 more varied.", flag_values=_FLAGS)
_TOP_K = flags.DEFINE_integer(
  "top_k", 20, "Tokens among which each step of sampling chooses.", flag_values=_FLAGS)
_REFINE = flags.DEFINE_string(
  "refine", "lm", "How constants are fitted: lm (damped least squares), bfgs, gd or none.", flag_values=_FLAGS)
_RECOMBINE = flags.DEFINE_bool(
  "recombine", True, "Let the sources that need no model compete with it: rational functions, sums of library columns "
  "(small functions with inner constants on a grid) and of parts of candidates, growth and evolution.",
  flag_values=_FLAGS)
_GUESS = flags.DEFINE_multi_string(
  "guess", [], "A formula in the column names that joins the search, its constants fitted; may be given several times.",
  flag_values=_FLAGS)
_SEARCH_CONFIG = flags.DEFINE_string(
  "search_config", None, "What steers the search: a Python file with get_config(), such as configs/search/default.py, "
  "and a name after a colon where it has several.", flag_values=_FLAGS)
_OPERATORS = flags.DEFINE_list(
  "operators", None, "Operators a formula may use, such as +,*,pow,exp; by default all.", flag_values=_FLAGS)
_FORBID = flags.DEFINE_list("forbid", [], "Operators that no formula may use.", flag_values=_FLAGS)
_REQUIRE = flags.DEFINE_list("require", [], "Columns that every formula must contain.", flag_values=_FLAGS)
_EXCLUDE = flags.DEFINE_list("exclude", [], "Columns that no formula may contain.", flag_values=_FLAGS)
_MAX_EXPONENT = flags.DEFINE_float(
  "max_exponent", None, "Largest exponent, at least 1; exponents are then numbers.", flag_values=_FLAGS)
_MAX_COMPLEXITY = flags.DEFINE_integer(
  "max_complexity", None, "Nodes that a formula may have: of 2*x + 1 five. Nothing longer is searched or listed.",
  flag_values=_FLAGS)
_MAX_DEPTH = flags.DEFINE_integer(
  "max_depth", None, "Levels of the expression tree; a bare variable has one, a sum of three terms three.",
  flag_values=_FLAGS)
_UNNESTED = flags.DEFINE_list(
  "unnested", [], "Operators none of which may stand inside another of them, such as sin,cos,exp.",
  flag_values=_FLAGS)
_SELECT = flags.DEFINE_string(
  "select", choice.RECOMMENDED, "Which line of the front to take, to print its constants and to draw it: recommended; "
  "accurate, the one of least error; simple, the shortest that looks as good in a plot; or its number in the list.",
  flag_values=_FLAGS)
_ACCURACY = flags.DEFINE_float(
  "accuracy", None, "R2 at which no further turn is begun, such as 0.999999.", flag_values=_FLAGS)
_MAX_TIME = flags.DEFINE_float(
  "max_time", None, "Seconds for which the search of a file goes on unless it has met the data; a turn, which is not "
  "cut short, takes about one. By default --effort decides.", flag_values=_FLAGS)
_EFFORT = flags.DEFINE_string(
  "effort", "normal", "How much is tried: quick (about half the work of a normal search), normal, or thorough (about "
  "ten times as much: what has been found is evolved); counted work, so that a seed fixes the answer. With --max_time "
  "formulas are evolved till then.", flag_values=_FLAGS)
_SEED = flags.DEFINE_integer("seed", 0, "The same seed gives the same answer on one platform.", flag_values=_FLAGS)
_OUT = flags.DEFINE_string(
  "out", None, "Where to write the results: FILE.json for one file, FILE.jsonl with a line for each of many.",
  flag_values=_FLAGS)
_RESUME = flags.DEFINE_bool(
  "resume", False, "Go on with the .jsonl of an interrupted batch: files that have a line are left out.",
  flag_values=_FLAGS)
_OVERWRITE = flags.DEFINE_bool("overwrite", False, "Replace the file of --out when it exists.", flag_values=_FLAGS)
_PLOT = flags.DEFINE_string(
  "plot", None, "Where to draw data, formula (the recommended one, or that of --select) and front, of several columns "
  "also the formula over each of them: FILE.png, .pdf or .svg; one data file only.",
  flag_values=_FLAGS)
_REPORT = flags.DEFINE_string(
  "report", None, "Where to write one page with data, fit, front, constants, what was left out, and the formula (the "
  "recommended one, or that of --select) as code: FILE.html, which needs no network; one data file only.",
  flag_values=_FLAGS)
_ANIMATE = flags.DEFINE_string(
  "animate", None, "Where to film the eight best candidates on their way through refinement to the data: FILE.gif, or "
  "FILE.mp4 where ffmpeg is installed; one data file only.", flag_values=_FLAGS)
_DROP_MISSING = flags.DEFINE_bool(
  "drop_missing", False, "Leave out rows with text, missing or infinite values in a used column.", flag_values=_FLAGS)
_QUIET = flags.DEFINE_bool("quiet", False, "Print nothing but errors.", flag_values=_FLAGS)

# What decides an answer: lines of another setting are no part of a batch that is resumed.
_DECISIVE = (
  _TARGET, _FEATURES, _WEIGHTS, _SIGMA, _LOSS, _DROP_MISSING, _MODEL, _SAMPLES, _STRATEGY, _TEMPERATURE, _TOP_K,
  _REFINE, _RECOMBINE, _GUESS, _SEARCH_CONFIG, _OPERATORS, _FORBID, _REQUIRE, _EXCLUDE, _MAX_EXPONENT, _MAX_DEPTH,
  _UNNESTED, _MAX_COMPLEXITY, _SELECT, _ACCURACY, _MAX_TIME, _EFFORT, _SEED)


@dataclasses.dataclass(frozen=True)
class _Answer:
  """One file's outcome: `selected` is the line that the user takes; without a table its result is `failed`."""

  path: str
  table: tables.Table | None
  result: SearchResult
  selected: Equation | None = None

  def to_json(self) -> str:
    """The record of the file; `selected` is the number in `pareto` of the line that --select takes."""
    target = self.table.target if self.table else (_TARGET.value or "")
    features = list(self.table.features) if self.table else list(_FEATURES.value or [])
    place = None if self.selected is None else self.result.pareto.index(self.selected)
    record = self.result.to_json(data=self.path, target=target, features=features)
    record |= {"selected": place, "options": _options()}
    return json.dumps(record, allow_nan=False)


def _options() -> dict[str, Any]:
  """By flag; JSON has no infinity, which some of them may be."""
  return {flag.name: str(flag.value) if flag.value == math.inf else flag.value for flag in _DECISIVE}


def main(argv: list[str]) -> int:
  """Returns the exit code."""
  del argv
  if not _DATA.value:
    raise InputError("--data: expected a file, such as --data=examples/kepler.csv; see --help")
  runner.refuse_empty(_TARGET, _FEATURES, _WEIGHTS, _SIGMA, _MODEL, _SEARCH_CONFIG, _OUT, _PLOT, _REPORT, _ANIMATE)
  paths = tables.find_files(_DATA.value)
  choice.read_selection(_SELECT.value, argument="--select")
  _check_outputs(len(paths))
  _check_movie(len(paths))
  _note_old_flags()
  _load_search_config(_SEARCH_CONFIG.value)
  _check_options(len(paths))
  stop = runner.StopRequest()
  return _run_one(paths[0], stop) if len(paths) == 1 and not _RESUME.value else _run_many(paths, stop)


@functools.cache  # the file is the user's program: run once, whatever becomes of it meanwhile
def _load_search_config(spec: str | None) -> Any:
  from symformer_jax.commands.search_config import load_search_config
  from symformer_jax.engine.config import DEFAULT

  return DEFAULT if spec is None else load_search_config(spec)


def _check_options(num_files: int) -> None:
  """Refuses what is wrong for any file before the results of a batch are begun: what is there is not to be lost."""
  if _WEIGHTS.value and _SIGMA.value:
    raise InputError("--weights, --sigma: expected one of them")
  if num_files > 1:  # of one file the search itself says it, before which nothing is written
    from symformer_jax.engine.options import SearchOptions

    SearchOptions(
      _SAMPLES.value, _STRATEGY.value, _TOP_K.value, _TEMPERATURE.value, _REFINE.value, _restrictions(),
      _MAX_TIME.value, _ACCURACY.value, _SEED.value, _RECOMBINE.value, tuple(_GUESS.value), _EFFORT.value,
      loss=_LOSS.value).check()


def _note_old_flags() -> None:
  """`--norecombine` is a choice of sources."""
  if not _RECOMBINE.value and not _QUIET.value:
    print("note: --norecombine leaves out the sources that need no model, such as library and growth", file=sys.stderr)


def _run_one(path: str, stop: runner.StopRequest) -> int:
  """Searches one file; whatever makes it fail is an error of the command."""
  table = _read(path)
  model = _resolve_model(table)
  if _ANIMATE.value and len(table.features) > model.vocab.num_variables:
    raise InputError(f"--animate: shows candidates of the model, {model.name!r} knows {model.vocab.num_variables} "
                     f"variables, the data have {len(table.features)}")
  with ProgressLine(is_quiet=_QUIET.value) as line:
    [answer] = _search([table], model, stop.is_set, on_round=line)
  if answer.result.status == FAILED:
    raise InputError(f"{path}: {answer.result.message}")
  lost = _write(_OUT, lambda: files.write_text(_OUT.value, answer.to_json() + "\n"))
  _print(answer, is_quiet=_QUIET.value and not lost)
  lost += _write(_PLOT, lambda: _draw(answer))
  lost += _write(_REPORT, lambda: _report(answer))
  lost += _write(_ANIMATE, lambda: _animate(table, model))
  if lost:
    print(*lost, sep="\n", file=sys.stderr)
    return runner.SOME_FAILED
  if answer.result.ended_by == STOPPED:
    print("stopped: this is the best so far", file=sys.stderr)
    return runner.STOPPED
  return runner.DONE


def _write(flag: flags.FlagHolder, write: Callable[[], object]) -> list[str]:
  """Writes what a flag asks for, if it does; what could not be written, one line: what was found is not to be lost."""
  try:
    if flag.value:
      write()
  except OSError as error:
    return [_describe_loss(flag, error)]
  return []


def _describe_loss(flag: flags.FlagHolder, error: OSError) -> str:
  return f"error: --{flag.name}: cannot write {files.shorten(flag.value)!r}: {error.strerror or error}"


def _run_many(paths: list[str], stop: runner.StopRequest) -> int:
  """Searches file after file; one that fails becomes a line that says why."""
  lines = result_lines.ResultLines(_OUT.value, options=_options(), is_new=not _RESUME.value)
  waiting = [path for path in paths if path not in lines.done]
  has_failed = lines.has_failed
  lost = ""
  # A bar for people; elsewhere the lines below say how far it is.
  with progress.Progress(console=console.Console(stderr=True), transient=True,
                         disable=_QUIET.value or not sys.stderr.isatty()) as bar:
    task = bar.add_task("files", total=len(paths), completed=len(paths) - len(waiting))
    for answer in _answer_many(waiting, stop):
      has_failed |= answer.result.status == FAILED
      try:
        lines.add(answer.path, answer.to_json())
      except OSError as error:
        lost = _describe_loss(_OUT, error)
      if lost:
        stop.set()  # what was found in the same turn is printed, nothing more is begun
        _print(answer, is_quiet=False)
      elif _OUT.value:
        _print_line(answer, len(lines.done), len(paths))
      else:
        _print(answer, is_quiet=_QUIET.value)
      bar.advance(task)
  if lost:
    print(f"{lost}; {len(lines.done)} of {len(paths)} files are done, --resume goes on", file=sys.stderr)
    return runner.SOME_FAILED
  if len(lines.done) < len(paths):
    hint = "; --resume goes on" if _OUT.value else ""
    print(f"stopped: {len(lines.done)} of {len(paths)} files are done{hint}", file=sys.stderr)
    return runner.STOPPED
  return runner.SOME_FAILED if has_failed else runner.DONE


def _check_outputs(num_files: int) -> None:
  """Refuses unusable output paths before any work is done."""
  if _RESUME.value and (not _OUT.value or not _OUT.value.endswith(".jsonl")):
    raise InputError("--resume: expected --out=FILE.jsonl, the results to go on with")
  if _OUT.value:
    path = files.check_writable(_OUT.value, flag="--out")
    if path.suffix not in (".json", ".jsonl"):
      raise InputError(f"--out: expected a name ending in .json or .jsonl, got {_OUT.value!r}")
    if num_files > 1 and path.suffix != ".jsonl":
      raise InputError(f"--out: results of {num_files} files need a .jsonl, got {_OUT.value!r}")
    if path.exists() and not (_RESUME.value or _OVERWRITE.value):
      raise InputError(f"--out: {_OUT.value!r} exists; --overwrite replaces it, --resume goes on with a .jsonl")
  if _PLOT.value:
    from symformer_jax.presentation import figures

    _check_single(_PLOT, figures.FORMATS, num_files, "draws")
  if _REPORT.value:
    from symformer_jax.presentation import page

    _check_single(_REPORT, page.FORMATS, num_files, "tells of")


def _check_single(flag: flags.FlagHolder, formats: Sequence[str], num_files: int, verb: str) -> None:
  """Refuses an unusable path of what is made of one data file."""
  path = files.check_writable(flag.value, flag=f"--{flag.name}")
  if path.suffix not in formats:
    raise InputError(f"--{flag.name}: expected a name ending in {', '.join(formats)}, got {flag.value!r}")
  if num_files > 1:
    raise InputError(f"--{flag.name}: {verb} one data file, got {num_files}")


def _check_movie(num_files: int) -> None:
  """Refuses an unusable film before any work is done."""
  if not _ANIMATE.value:
    return
  from symformer_jax.commands import movies

  path = files.check_writable(_ANIMATE.value, flag="--animate")
  if path.suffix not in movies.FORMATS:
    raise InputError(f"--animate: expected a name ending in {' or '.join(movies.FORMATS)}, got {str(path)!r}")
  if not movies.can_write(path.suffix):
    raise InputError(f"--animate: {path.suffix} takes the program ffmpeg, which is not installed; .gif needs nothing")
  if num_files > 1:
    raise InputError(f"--animate: films one data file, got {num_files}")
  if _REFINE.value == "none":
    raise InputError("--animate: with --refine=none nothing moves")


def _read(path: str) -> tables.Table:
  return tables.read_table(path, target=_TARGET.value, features=_FEATURES.value, drop_missing=_DROP_MISSING.value,
                           weights=_WEIGHTS.value, sigma=_SIGMA.value)


def _answer_many(paths: Sequence[str], stop: runner.StopRequest) -> Iterator[_Answer]:
  """Answers in the order of the files, each as soon as it is there; ends early when asked to stop."""
  from symformer_jax import compilation

  at_once = compilation.dataset_buckets()[-1]
  for begin in range(0, len(paths), at_once):
    answers: dict[str, _Answer] = {}
    batches: dict[int, tuple[Any, list[tables.Table]]] = {}
    for path in paths[begin : begin + at_once]:
      found = _prepare(path)
      if isinstance(found, _Answer):
        answers[path] = found
      else:
        table, model = found
        batches.setdefault(id(model), (model, []))[1].append(table)
    for model, batch in batches.values():
      answers |= {answer.path: answer for answer in _search(batch, model, stop.is_set)}
    is_stopped = stop.is_set()  # later, where an answer cannot be written, the others of this turn are still printed
    for path in paths[begin : begin + at_once]:
      if answers[path].result.ended_by == STOPPED or (is_stopped and not answers[path].result.ended_by):
        return  # cut short, or not begun: for the next run
      yield answers[path]
    if stop.is_set():
      return


def _prepare(path: str) -> tuple[tables.Table, Any] | _Answer:
  """A file's table and model, or the answer that says why there is none."""
  try:
    table = _read(path)
  except tables.TableError as error:
    return _Answer(path, None, failed(str(error), model=_MODEL.value, seed=_SEED.value))
  return table, _resolve_model(table)


def _resolve_model(table: tables.Table) -> Any:
  # Imported late: --help and most errors come without waiting for JAX.
  from symformer_jax import compilation, inference

  compilation.use_cache()
  return inference.resolve_model(_MODEL.value, num_variables=len(table.features))


def _search(
  batch: Sequence[tables.Table], model: Any, should_stop: Callable[[], bool],
  on_round: Callable[[int, Progress], None] = lambda index, found: None,
) -> list[_Answer]:
  from symformer_jax import inference

  found = inference.search(
    model, [table.points for table in batch], names=[table.features for table in batch],
    n_samples=_SAMPLES.value, strategy=_STRATEGY.value, top_k=_TOP_K.value, temperature=_TEMPERATURE.value,
    refine=_REFINE.value, recombine=_RECOMBINE.value, restrictions=_restrictions(),
    max_time=_MAX_TIME.value, effort=_EFFORT.value, accuracy=_ACCURACY.value, seed=_SEED.value,
    should_stop=should_stop, guesses=_GUESS.value, on_round=on_round, loss=_LOSS.value,
    config=_load_search_config(_SEARCH_CONFIG.value))
  return [_select(table, result) for table, result in zip(batch, found, strict=True)]


def _restrictions() -> Any:
  from symformer_jax.language.rules import Restrictions

  return Restrictions(
    None if _OPERATORS.value is None else tuple(_OPERATORS.value), tuple(_FORBID.value), tuple(_REQUIRE.value),
    tuple(_EXCLUDE.value), _MAX_EXPONENT.value, _MAX_DEPTH.value, tuple(_UNNESTED.value),
    _MAX_COMPLEXITY.value)


def _select(table: tables.Table, result: SearchResult) -> _Answer:
  """The answer of a file with the line that --select takes; the recommended one, and a message, where there is none:
  how many lines a front has is known only after the search, which is not to be lost.
  """
  if result.status == FAILED:
    return _Answer(table.path, table, result)
  try:
    selected = choice.pick(result.pareto, result.best, _SELECT.value, argument="--select")
    return _Answer(table.path, table, result, selected)
  except InputError as error:
    message = "; ".join(filter(None, [result.message, f"{error}: the recommended one is taken"]))
    return _Answer(table.path, table, dataclasses.replace(result, message=message), result.best)


def _draw(answer: _Answer) -> None:
  from symformer_jax.presentation import figures

  with files.replacing(_PLOT.value) as temporary:
    figures.draw_result(answer.result, answer.selected, answer.table, temporary)


def _report(answer: _Answer) -> None:
  from symformer_jax.presentation import page

  page.write_page(answer.result, answer.selected, answer.table, _REPORT.value,
                  name=pathlib.Path(answer.path).name, notes=answer.table.notes)


def _animate(table: tables.Table, model: Any) -> None:
  from symformer_jax.commands import movies, trajectories

  found = trajectories.record(
    model, table.x, table.y, weights=table.weights, n_samples=_SAMPLES.value, top_k=_TOP_K.value, method=_REFINE.value,
    seed=_SEED.value)
  if not found:
    print("note: --animate: no candidate is defined on all points, nothing is filmed", file=sys.stderr)
    return
  with files.replacing(_ANIMATE.value) as temporary:
    movies.draw(found, table, temporary)


# --- printing --------------------------------------------------------------------------------------------------


def _print(answer: _Answer, *, is_quiet: bool) -> None:
  if answer.result.status != OK:
    print(f"failed: {answer.result.message}", file=sys.stderr)
    return
  if is_quiet:
    return
  for note in answer.table.notes:
    print(f"note: {answer.path}: {note}", file=sys.stderr)
  listing.print_result(answer.result, answer.selected, name=pathlib.Path(answer.path).name, target=answer.table.target)


def _print_line(answer: _Answer, num_done: int, num_files: int) -> None:
  """One line of a batch whose results go to a file."""
  if answer.result.status != OK:
    print(f"failed: [{num_done}/{num_files}] {answer.result.message}", file=sys.stderr)
  elif not _QUIET.value:
    print(f"[{num_done}/{num_files}] {answer.path}: {answer.table.target} = {answer.selected.expression}  "
          f"R2 {format_r2(answer.selected.r2)}")


if __name__ == "__main__":
  runner.run(main, flag_values=_FLAGS)
