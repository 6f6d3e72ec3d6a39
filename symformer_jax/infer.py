"""Finds formulas for tables of points: python -m symformer_jax.infer --data=points.csv

Prints formulas from simple to accurate and marks the recommended one. Many files or globs are one batch, whose
results are written line by line. Ctrl-C ends the search of one file with the best so far; a batch keeps the files
that are done, and goes on with --resume. --beam has it searched by a cluster, with the same results.
Exit codes: 0 done; 1 some files failed (each says why in its line of the JSONL), or results could not be written, and
are printed; 2 unusable arguments or input, one line on standard error says what is wrong; 75 stopped by Ctrl-C,
SIGTERM or a terminal that is closed.
"""

if __name__ == "__main__":
  from symformer_jax.commands import startup  # first: the other imports take seconds

  # What a search of a small table takes on two cores: 2.1 GB; with 1.9 GB LLVM ends the process.
  startup.prepare(__doc__, "symformer_jax.commands.infer_flags", address_space=2 << 30)

from collections.abc import Callable, Sequence
import contextlib
import logging
import math
import pathlib
import sys
from typing import Any

from absl import flags
from rich import console, progress

from symformer_jax import file_answers, files
from symformer_jax.commands import (
  column_units,
  extras,
  infer_flags as asked,
  listing,
  outputs,
  result_lines,
  runner,
  tables,
)
from symformer_jax.errors import InputError
from symformer_jax.file_answers import Answer
from symformer_jax.language.names import written
from symformer_jax.live_front import show_progress
from symformer_jax.presentation.numerals import r2_label, shown_r2
from symformer_jax.results import FAILED, OK, STOPPED
from symformer_jax.selection import choice


def main(argv: list[str]) -> int:
  """Returns the exit code."""
  try:
    return _main(argv)
  except InputError as error:
    raise InputError(asked.in_flags(str(error))) from None


def _main(argv: list[str]) -> int:
  if len(argv) > 1 and not asked.BEAM.value:
    raise InputError(f"unexpected argument {argv[1]!r}: expected flags only, see --help")
  if not asked.DATA.value:
    raise InputError("--data: expected a file, such as --data=examples/kepler.csv; see --help")
  runner.refuse_empty(
    asked.TARGET, asked.FEATURES, asked.CATEGORIES, asked.DECIMAL, asked.SEPARATOR, asked.SHEET, asked.TIME_UNIT,
    asked.WEIGHTS, asked.SIGMA, asked.MODEL, asked.TEMPLATE, asked.SEARCH_CONFIG, asked.OUT, asked.PLOT, asked.REPORT,
    asked.ANIMATE)
  choice.read_selection(asked.SELECT.value, argument="--select")
  file_answers.load_search_config(asked.SEARCH_CONFIG.value)
  if asked.BEAM.value:
    return _run_on_beam(argv[1:])
  paths = tables.find_files(asked.DATA.value)
  _check_outputs(len(paths))
  _check_movie(len(paths))
  _note_old_flags()
  _check_options(len(paths))
  if not asked.QUIET.value and not any(flag.value for flag in (asked.OUT, asked.PLOT, asked.REPORT, asked.ANIMATE)):
    runner.need_output()
  stop = runner.StopRequest()
  if len(paths) == 1 and not asked.RESUME.value:
    return _run_one(paths[0], stop)
  out = asked.OUT.value
  _refuse_inputs(paths, [])
  with contextlib.nullcontext() if out is None else files.claimed(out, flag="--out"):
    return _run_many(paths, stop)


def _run_on_beam(arguments: Sequence[str]) -> int:
  for flag in (asked.PLOT, asked.REPORT, asked.ANIMATE):
    if flag.value is not None:
      raise InputError(f"--{flag.name}: shows one data file, of which --beam searches many")
  if not asked.OUT.value or pathlib.Path(asked.OUT.value).suffix in (".json", ".jsonl"):
    raise InputError(f"--out: expected a folder for the results of --beam, got {asked.OUT.value!r}")
  extras.require("beam", who="--beam")
  logging.disable(logging.WARNING)  # what Beam says while it is imported is of parts that are not used
  from symformer_jax import infer_beam

  logging.disable(logging.NOTSET)
  _note_old_flags()
  _check_options(math.inf)
  return infer_beam.run(arguments)


def _check_options(num_files: float) -> None:
  """Refuses what is wrong for any file before the results of a batch are begun: what is there is not to be lost."""
  if asked.WEIGHTS.value and asked.SIGMA.value:
    raise InputError("--weights, --sigma: expected one of them")
  if asked.UNITS.value is not None:
    column_units.read_pairs(asked.UNITS.value)
  elif asked.DIMENSIONLESS_CONSTANTS.value:
    raise InputError("--dimensionless_constants: says nothing without --units")
  if asked.OVERWRITE.value and not asked.OUT.value:
    raise InputError("--overwrite: says nothing without --out")
  if asked.BUNDLE.present and not asked.BEAM.value:
    raise InputError("--bundle: says nothing without --beam")
  if num_files > 1:  # of one file the search itself says it, before which nothing is written
    from symformer_jax.engine.options import SearchOptions

    SearchOptions(
      asked.SAMPLES.value, asked.STRATEGY.value, asked.TOP_K.value, asked.TEMPERATURE.value, asked.REFINE.value,
      file_answers.restrictions(), asked.MAX_TIME.value, asked.ACCURACY.value, asked.SEED.value, asked.RECOMBINE.value,
      tuple(asked.GUESS.value), asked.EFFORT.value, loss=asked.LOSS.value,
      template=asked.TEMPLATE.value).check()


def _note_old_flags() -> None:
  """`--norecombine` is a choice of sources."""
  if not asked.RECOMBINE.value and not asked.QUIET.value:
    runner.say("note: --norecombine leaves out the sources that need no model, such as library and growth")


def _run_one(path: str, stop: runner.StopRequest) -> int:
  """Searches one file; whatever makes it fail is an error of the command."""
  batch = file_answers.read(path)
  file_answers.print_notes(batch)
  _refuse_inputs([path], [table.target for table in batch])
  if asked.OUT.value:
    outputs.check_new(asked.OUT.value, [table.target for table in batch], may_replace=asked.OVERWRITE.value)
  model = file_answers.resolve_model(batch[0])
  if asked.ANIMATE.value and len(batch[0].features) > model.vocab.num_variables:
    raise InputError(f"--animate: shows candidates of the model, {model.name!r} knows {model.vocab.num_variables} "
                     f"variables, the data have {len(batch[0].features)}")
  targets = [table.target for table in batch]
  with show_progress(is_quiet=asked.QUIET.value, max_time=asked.MAX_TIME.value, names=targets) as shown:
    answers = file_answers.search(batch, model, stop.is_set, is_single=True, callback=shown)
  if all(answer.result.status == FAILED for answer in answers):
    raise InputError(f"{path}: {answers[0].result.message}")
  lost = _write_answers(answers)
  for answer in answers:
    _print(answer, is_quiet=asked.QUIET.value and not lost)
  lost += _write(asked.PLOT, answers, _draw)
  lost += _write(asked.REPORT, answers, _report)
  lost += _write(asked.ANIMATE, answers, lambda answer, place: _animate(answer.taken[1], model, place))
  if lost:
    runner.say("\n".join(lost))
  if lost or any(answer.result.status == FAILED for answer in answers):
    return runner.SOME_FAILED
  if any(answer.result.ended_by == STOPPED for answer in answers):
    runner.say("stopped: this is the best so far")
    return runner.STOPPED
  return runner.DONE


def _write_answers(answers: Sequence[Answer]) -> list[str]:
  """Writes the results, each target's to a file of its own or all as lines of one; what could not be written."""
  if asked.OUT.value and pathlib.Path(asked.OUT.value).suffix == outputs.LINES:
    lines = "".join(answer.to_json() + "\n" for answer in answers)
    return _write(asked.OUT, answers[:1], lambda _, place: files.write_text(place, lines))
  return _write(asked.OUT, answers, lambda answer, place: files.write_text(place, answer.to_json() + "\n"))


def _write(flag: flags.FlagHolder, answers: Sequence[Answer], write: Callable[[Answer, str], object]) -> list[str]:
  """Writes what a flag asks for, if it does, for each answer; what could not be written, one line each: what was found
  is not to be lost.
  """
  lost = []
  places = outputs.paths_of(flag.value, [answer.target for answer in answers]) if flag.value else []
  for answer, place in zip(answers, places, strict=False):
    try:
      if answer.result.status != FAILED or flag is asked.OUT:  # of what failed there is nothing to draw
        write(answer, place)
    except OSError as error:
      lost.append(_describe_loss(flag, place, error))
    except (RuntimeError, ValueError) as error:  # a user's matplotlibrc may ask for what is not installed, such as TeX
      if flag is asked.OUT:
        raise
      lost.append(_describe_loss(flag, place, error))
  return lost


def _describe_loss(flag: flags.FlagHolder, place: str, error: Exception) -> str:
  why = files.shorten(" ".join(files.reason(error).split()))
  return f"error: --{flag.name}: cannot write {files.shorten(place)!r}: {why}"


def _run_many(paths: list[str], stop: runner.StopRequest) -> int:
  """Searches file after file; one that fails becomes a line that says why."""
  lines = result_lines.ResultLines(asked.OUT.value, options=file_answers.options(),
                                   defaults=file_answers.default_options(), is_new=not asked.RESUME.value)
  waiting = [path for path in paths if not _is_done(path, lines)]
  failed = lines.failed & set(paths)
  had_failed, lost = bool(failed), ""
  with _show_bar() as bar:
    task = bar.add_task("files", total=len(paths), completed=len(paths) - len(waiting))
    for answer in file_answers.answer_many(
        waiting, is_single=len(paths) == 1, should_stop=stop.is_set, targets_done=lines.targets):
      if answer.result.status == FAILED:
        failed.add(answer.path)
      try:
        lines.add(answer.path, answer.to_json(), target=answer.target)
      except OSError as error:
        lost = _describe_loss(asked.OUT, asked.OUT.value or "", error)
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
    runner.say(f"{lost}; {num_done} of {len(paths)} files are done, --resume goes on")
    return runner.SOME_FAILED
  if num_done < len(paths):
    hint = "; --resume goes on" if asked.OUT.value else ""
    runner.say(f"stopped: {num_done} of {len(paths)} files are done{hint}")
    return runner.STOPPED
  if had_failed:  # of which nothing was said in this run
    runner.say(f"{num_done} of {len(paths)} files have a line, {len(failed)} of them failed")
  return runner.SOME_FAILED if failed else runner.DONE


def _show_bar() -> progress.Progress:
  """How many files are done, for people: where standard error is no terminal, the lines of answers say it."""
  is_shown = not asked.QUIET.value and sys.stderr is not None and sys.stderr.isatty()
  # Above the bar goes what is printed on a terminal; what a file or another program gets stays its own.
  return progress.Progress(console=console.Console(stderr=True), transient=True, disable=not is_shown,
                           redirect_stdout=sys.stdout is not None and sys.stdout.isatty())


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


def _refuse_inputs(paths: Sequence[str], targets: Sequence[str]) -> None:
  """Refuses to write, through a link, into what is read."""
  config = [] if asked.SEARCH_CONFIG.value is None else [asked.SEARCH_CONFIG.value.partition(":")[0]]
  for flag in (asked.OUT, asked.PLOT, asked.REPORT, asked.ANIMATE):
    if flag.value:
      outputs.check_apart(outputs.paths_of(flag.value, targets or [""]), [*paths, *config], flag=f"--{flag.name}")


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


def _draw(answer: Answer, place: str) -> None:
  from symformer_jax.presentation import figures

  with files.replacing(place) as temporary:
    figures.draw_result(answer.result, *answer.taken, temporary)


def _report(answer: Answer, place: str) -> None:
  from symformer_jax.presentation import page

  selected, table = answer.taken
  page.write_page(answer.result, selected, table, place, name=pathlib.Path(answer.path).name, notes=table.notes)


def _animate(table: tables.Table, model: Any, place: str) -> None:
  from symformer_jax.commands import movies, trajectories

  found = trajectories.record(
    model, table.x, table.y, weights=table.weights, n_samples=asked.SAMPLES.value, top_k=asked.TOP_K.value,
    method=asked.REFINE.value, seed=asked.SEED.value)
  if not found:
    runner.say("note: --animate: no candidate is defined on all points, nothing is filmed")
    return
  with files.replacing(place) as temporary:
    movies.draw(found, table, temporary)


# --- printing --------------------------------------------------------------------------------------------------


def _print(answer: Answer, *, is_quiet: bool) -> None:
  if answer.result.status != OK:
    runner.say(f"failed: {runner.one_line(answer.result.message)}")
    return
  if is_quiet:
    _note_missed(answer)
    return
  name = runner.one_line(pathlib.Path(answer.path).name)
  listing.print_result(answer.result, answer.taken[0], name=name, target=answer.target)


def _note_missed(answer: Answer) -> None:
  """Where the message of the result is not printed: that another line is taken than the one asked for."""
  if answer.missed:
    runner.say(runner.one_line(f"note: {answer.path}: {written(answer.target)}: {answer.missed}"))


def _print_line(answer: Answer, num_done: int, num_files: int) -> None:
  """One line of a batch whose results go to a file."""
  if answer.result.status != OK:
    runner.say(f"failed: [{num_done}/{num_files}] {runner.one_line(answer.result.message)}")
    return
  _note_missed(answer)
  if not asked.QUIET.value:
    selected, _ = answer.taken
    path = runner.one_line(answer.path)
    runner.tell(f"[{num_done}/{num_files}] {path}: {written(answer.target)} = {selected.expression}  "
                f"{r2_label(answer.result.loss, is_weighted=False)} {shown_r2(selected, answer.result.loss)}")


if __name__ == "__main__":
  runner.run(main, flag_values=asked.FLAGS, takes_arguments=True)
