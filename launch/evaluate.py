"""Judges a model on a suite of problems: python -m launch.evaluate --suite=in_domain --data=DIR --out=DIR.

Writes results.csv (row by row), summary.json, report.md and its figures. The same command resumes; exit code 1
says that some rows have no answer, each with its reason.
"""

if __name__ == "__main__":
  from symformer_jax.commands import startup  # first: the other imports take seconds

  startup.prepare(__doc__, "launch.flags.evaluate", extra="plot")

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import datetime
import json
import os
import pathlib
import platform
import shlex
import subprocess
import sys
from typing import Any

from launch.flags import evaluate as asked
from symformer_jax import compilation
from symformer_jax.commands import runner
from symformer_jax.errors import InputError
from symformer_jax.evaluation import (
  answers,
  drawn_tables,
  models as models_lib,
  peers as peers_lib,
  plots,
  problems as problems_lib,
  real_data,
  real_runs,
  report,
  runs,
  second_opinion,
  suites,
)
from symformer_jax.files import check_regular, check_writable, claimed, make_folder, shorten, write_text

# Settings whose flags have other names.
_FLAG_OF = {"num_samples": "samples", "config": "search_config"}


def main(argv: list[str]) -> int:
  del argv
  compilation.use_cache()
  given = (asked.MODEL, asked.PROBLEMS, asked.DATA, asked.SEARCH_CONFIG, asked.BASELINE_PYTHON, asked.PREDICTIONS,
           asked.SEEN)
  runner.refuse_empty(*(flag for flag in given if flag.present))  # a model of no name would be any below this folder
  _refuse_idle()
  if asked.SUITE.value == suites.REAL:
    return _run_real()
  settings = suites.Settings(
    list=asked.LIST.value, problems=asked.PROBLEMS.value, data=asked.DATA.value, variables=asked.VARIABLES.value,
    num_equations=asked.NUM_EQUATIONS.value, skip=asked.SKIP.value, num_samples=asked.SAMPLES.value,
    top_k=asked.TOP_K.value, refine=asked.REFINE.value, max_time=asked.MAX_TIME.value, recombine=asked.RECOMBINE.value,
    search_config=asked.SEARCH_CONFIG.value, noise=asked.NOISE.value, seeds=asked.SEEDS.value,
    baseline=tuple(asked.BASELINE.value), predictions=asked.PREDICTIONS.value, max_abs_value=asked.MAX_ABS_VALUE.value)
  peers = peers_lib.open_peers(settings.baseline, python=asked.BASELINE_PYTHON.value, predictions=settings.predictions)
  settings = _with_peers(settings, peers)
  suite = suites.find_suite(asked.SUITE.value, settings)
  models = models_lib.open_models(asked.MODEL.value)
  tasks, missing = models.split(suites.make_tasks(suite, settings))
  _note_strangers(peers, tasks)
  was_seen = _was_seen(asked.SEEN.value, models.used_by(tasks))
  folder = _open_folder(asked.OUT.value, {"suite": asked.SUITE.value, "model": asked.MODEL.value, **vars(settings)})
  stop = runner.StopRequest()
  with claimed(folder, flag="--out"), second_opinion.SecondOpinion() as opinion:
    results = runs.ResultsFile(folder / "results.csv")
    is_complete = runs.run(
      tasks, runs.Sources(models, peers, opinion.ask, was_seen), results,
      on_row=_Progress(len(tasks), len(results.rows)), should_stop=stop.is_set)
    _write_report(folder, suite, settings, results.rows, tasks, {**missing, **peers.missing})
  if not is_complete:
    return runner.STOPPED
  is_short = peers.missing or any(row.predicted is None for row in results.rows)
  return runner.SOME_FAILED if is_short else runner.DONE


def _refuse_idle() -> None:
  """Refuses flags that were given and would not be read."""
  is_real, has_file = asked.SUITE.value == suites.REAL, asked.PROBLEMS.value is not None
  suite = suites.SUITES.get(asked.SUITE.value or "")
  has_list = asked.LIST.value is not None or suite is not None and suite.default_list is not None
  for is_idle, why, given in (
      (not is_real, f"without --suite={suites.REAL}", [asked.SETS]),
      (is_real, f"with --suite={suites.REAL}",
       [asked.VARIABLES, asked.SEEDS, asked.BASELINE, asked.BASELINE_PYTHON, asked.SEEN]),
      (has_file, "with --problems", [asked.LIST, asked.DATA, asked.VARIABLES]),
      (has_list, "with a list of functions, which the suite or --list names", [asked.DATA, asked.VARIABLES]),
      (asked.DATA.value is not None, "with --data", [asked.VARIABLES]),
      (not asked.BASELINE.value, "without --baseline", [asked.BASELINE_PYTHON])):
    for flag in given if is_idle else ():
      if flag.present:
        raise InputError(f"--{flag.name}: says nothing {why}")


def _run_real() -> int:
  """The suite of real data sets, which have no true formula and so no task."""
  for flag in (asked.PROBLEMS, asked.LIST, asked.DATA, asked.NOISE, asked.PREDICTIONS, asked.MAX_ABS_VALUE):
    if flag.value is not None:
      raise InputError(f"--{flag.name}: not with --suite={suites.REAL}, whose data sets are given")
  given = {"num_samples": asked.SAMPLES, "top_k": asked.TOP_K, "refine": asked.REFINE, "max_time": asked.MAX_TIME,
           "recombine": asked.RECOMBINE}
  searched: dict[str, Any] = {name: flag.value for name, flag in given.items() if flag.value is not None}
  method = answers.Method(**searched, config=suites.search_config(asked.SEARCH_CONFIG.value))
  asked_of_search = {**vars(method), "config": asked.SEARCH_CONFIG.value}  # a config by its name
  which = asked.SETS.value
  listed = drawn_tables.load_drawn() if which.startswith("drawn") else real_data.load_table()
  sets = [s for s in listed if which == "all" or s.is_set_aside == which.endswith("aside")]
  sets = sets[asked.SKIP.value :][: asked.NUM_EQUATIONS.value]
  folder = _open_folder(asked.OUT.value, {
    "suite": asked.SUITE.value, "model": asked.MODEL.value, "sets": which,
    "num_equations": asked.NUM_EQUATIONS.value, "skip": asked.SKIP.value, **asked_of_search})
  stop = runner.StopRequest()
  with claimed(folder, flag="--out"):
    rows, is_complete = real_runs.run(
      sets, folder / "results.csv", model=asked.MODEL.value, method=method, on_row=_print_real, should_stop=stop.is_set)
    provenance = _provenance(asked_of_search, ())
    figures = {name: real_runs.summarize([row for row in rows if row.set_aside == is_aside])
               for name, is_aside in (("open", False), ("aside", True))}
    summary = {**provenance, **figures}
    write_text(folder / "summary.json", json.dumps(summary, indent=1) + "\n")
    write_text(folder / "report.md", real_runs.make_report(rows, provenance))
  if not is_complete:
    return runner.STOPPED
  return runner.SOME_FAILED if any(row.message for row in rows) else runner.DONE


def _print_real(row: real_runs.RealRow) -> None:
  figure = row.message or f"R2 {report.format_figure(row.r2, '.4f') or 'none'}  {row.predicted}  {row.faults}"
  runner.say(f"{row.name}, {row.choice}: {figure}"[:160])


def _with_peers(settings: suites.Settings, peers: peers_lib.Peers) -> suites.Settings:
  """Settings with the peers that are here, and one time limit for everybody; says which are not here."""
  for name, why in peers.missing.items():
    runner.say(f"note: --baseline={name}: {why}")
  if not settings.baseline:
    return settings
  return dataclasses.replace(
    settings, baseline=tuple(peers.versions), max_time=settings.max_time or peers_lib.MAX_TIME_S)


def _note_strangers(peers: peers_lib.Peers, tasks: Sequence[suites.Task]) -> None:
  """Says which predictions are of no problem that is asked: a name may be misspelt."""
  if not peers.predictions:
    return
  known = {task.problem.name for task in tasks}
  strangers = [name for name in dict.fromkeys(name for name, _ in peers.predictions) if name not in known]
  if strangers:
    more = f" and {len(strangers) - 1} more" if len(strangers) > 1 else ""
    runner.say(runner.one_line(
      f"note: --predictions: {shorten(strangers[0], 60)!r}{more}: no problem of this run has that name"))


def _open_folder(out: str | None, settings: dict[str, Any]) -> pathlib.Path:
  """Makes the folder, or checks that what is in it comes from the same question."""
  if not out:
    raise InputError("expected --out, the folder of the results")
  folder = make_folder(out, flag="--out")
  note = folder / "settings.json"
  check_writable(note, flag="--out")
  if note.exists():
    try:
      check_regular(note)
      before = dict(json.loads(note.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
      raise InputError(f"--out: {str(note)!r} is no settings file of this command; give another folder") from None
    # As JSON has them: lists for tuples.
    settings = json.loads(json.dumps(settings))
    changed = [name for name in settings if before.get(name) != settings[name]]
    if changed:
      was, now = (values.get(changed[0]) for values in (before, settings))
      flag = _FLAG_OF.get(changed[0], changed[0])
      raise InputError(f"--out: {out!r} holds results of --{flag}={was}, not {now}; give another folder")
  elif (folder / "results.csv").exists():
    raise InputError(f"--out: {out!r} has a results.csv without the settings.json of this command; give another folder")
  else:
    write_text(note, json.dumps(settings, indent=1) + "\n")
  return folder


def _was_seen(
  directories: list[str], models: Sequence[Any]
) -> Callable[[problems_lib.Problem, Any], tuple[bool, bool] | None]:
  """Problem and model -> what of it was in the training data, from folders or from what the cards of the models name.

  Raises:
    DataError: for what is missing or damaged, before a problem is asked.
  """
  from data_gen import seen  # with SymPy behind it

  given = seen.collect(directories) if directories else None
  own = [] if given else [model for model in models if getattr(model, "folder", None)]  # a stand-in has none
  by_folder = {model.folder: seen.read(model.folder, model.card) for model in own}

  def was_seen(problem: problems_lib.Problem, model: Any) -> tuple[bool, bool] | None:
    asked = given or by_folder.get(getattr(model, "folder", None))
    return asked(problem.truth, problem.num_variables) if asked else None
  return was_seen


class _Progress:
  """One line per row on standard error."""

  def __init__(self, total: int, done: int):
    self.total, self.done = total, done

  def __call__(self, row: runs.Row) -> None:
    self.done += 1
    figure = f"R2 {report.format_figure(row.r2, '.6f') or 'none'}" if row.predicted else row.message
    label = " ".join(filter(None, (row.variant, row.name)))
    runner.say(f"[{self.done}/{self.total}] {label}: {figure}  {row.predicted or ''}"[:160])


def _write_report(
  folder: pathlib.Path, suite: suites.Suite, settings: suites.Settings, rows: Sequence[runs.Row],
  tasks: Sequence[suites.Task], missing: dict[str, str],
) -> None:
  summary = {**report.make_summary(rows, _provenance(vars(settings), rows)), "missing": missing}
  write_text(folder / "summary.json", json.dumps(summary, indent=1) + "\n")
  figures = plots.draw_all(folder, rows, {task.key: task.problem for task in tasks}, summary)
  write_text(folder / "report.md", report.make_report(suite.title, rows, summary, figures))


def _provenance(settings: Mapping[str, Any], rows: Sequence[runs.Row]) -> dict[str, Any]:
  import jax  # the flags' messages need no accelerator

  return {
    "command": shlex.join(["python", "-m", "launch.evaluate", *sys.argv[1:]]),
    "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
    "commit": _commit(),
    "hardware": f"{jax.default_backend()}, {jax.devices()[0].device_kind}, {len(os.sched_getaffinity(0))} CPU cores",
    "versions": f"Python {platform.python_version()}, jax {jax.__version__}",
    "models": ", ".join(sorted({row.model for row in rows if row.model})),
    "settings": dict(settings),
  }


def _commit() -> str:
  """The commit of the code that runs, `unknown` outside a checkout."""
  folder = pathlib.Path(__file__).parent
  asked = subprocess.run(["git", "-C", str(folder), "rev-parse", "--short", "HEAD"],
                         capture_output=True, text=True, check=False)
  return asked.stdout.strip() or "unknown"


if __name__ == "__main__":
  runner.run(main)
