"""Judges a model on a suite of problems: python -m launch.evaluate --suite=in_domain --data=DIR --out=DIR.

Writes results.csv (row by row), summary.json, report.md and its figures. The same command resumes; exit code 1
says that some rows have no answer, each with its reason.
"""

if __name__ == "__main__":
  from symformer_jax.commands import startup  # first: the other imports take seconds

  startup.prepare()

from collections.abc import Callable
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

from absl import flags

from symformer_jax import compilation
from symformer_jax.commands import runner
from symformer_jax.errors import InputError
from symformer_jax.evaluation import (
  answers,
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
from symformer_jax.files import check_writable, write_text

_SUITE = flags.DEFINE_string("suite", None, f"What is asked: {', '.join(suites.NAMES)}.")
_PROBLEMS = flags.DEFINE_string(
  "problems", None, f"A CSV of your own problems instead, with columns {','.join(problems_lib.COLUMNS)}; "
  "variables x, y, z...; ranges lo:hi;lo:hi.")
_LIST = flags.DEFINE_enum("list", None, problems_lib.LISTS, "The list of benchmark functions of a suite.")
_MODEL = flags.DEFINE_string(
  "model", "auto", "auto (by the number of variables), a shipped model's name, a folder, or for the suite ablation "
  "a folder that holds one model of each encoding.")
_OUT = flags.DEFINE_string("out", None, "Folder of the results; made when it does not exist.")
_DATA = flags.DEFINE_string("data", None, "A generated data set, whose validation split gives fresh equations.")
_VARIABLES = flags.DEFINE_integer("variables", 1, "Variables of the fresh equations that ship.", 1, 2)
_NUM_EQUATIONS = flags.DEFINE_integer("num_equations", None, "Problems asked; the suite's number by default.", 1)
_SKIP = flags.DEFINE_integer("skip", 0, "Problems left out before the first that is asked.", 0)
_SAMPLES = flags.DEFINE_integer("samples", None, "Candidates drawn per problem; the suite's number by default.", 1)
_TOP_K = flags.DEFINE_integer("top_k", None, "Tokens among which each step of sampling chooses.", 1)
_REFINE = flags.DEFINE_enum("refine", None, ["lm", "bfgs", "gd", "none"], "How constants are fitted.")
_RECOMBINE = flags.DEFINE_bool(
  "recombine", None, "Whether the sources that need no model (sums of library columns and of parts) compete with it; "
  "answers that are bare samples (in suites such as in_domain and ablation) know none.")
_SEARCH_CONFIG = flags.DEFINE_string(
  "search_config", None, "What steers the search: a Python file with get_config(), such as configs/search/default.py, "
  "and a name after a colon where it has several.")
_SEEDS = flags.DEFINE_integer("seeds", 1, "How often each problem is asked, with other points and samples.", 1)
_NOISE = flags.DEFINE_float("noise", None, "Standard deviation of noise on y, relative to its RMS.", 0.0)
_BASELINE = flags.DEFINE_list(
  "baseline", [], "Other systems asked the same, with equal points, seeds, cores and time: "
  f"{', '.join(peers_lib.PEERS)}.")
_BASELINE_PYTHON = flags.DEFINE_string(
  "baseline_python", None, "The Python in whose environment those systems are; by default this one.")
_PREDICTIONS = flags.DEFINE_string(
  "predictions", None, f"For --baseline=file: a CSV of formulas found elsewhere, with columns "
  f"{','.join(peers_lib.COLUMNS)}, and seed and seconds if wanted.")
_SEEN = flags.DEFINE_list(
  "seen", [], "Generated folders that the model was trained on, to tell which problems it has met; by default from the "
  "hash files that its card names.")
_SETS = flags.DEFINE_enum(
  "sets", "all", ["all", "open", "aside"], "Of the suite real: all data sets, those that may be looked at while "
  "developing, or those set aside.")
_MAX_ABS_VALUE = flags.DEFINE_float(
  "max_abs_value", None, f"Points at which the truth is larger in size are left out; by default "
  f"{problems_lib.LARGEST_VALUE:g}, as in training. Laws in SI units may want more.", 0.0)
_MAX_TIME = flags.DEFINE_float("max_time", None, "Seconds per problem after which no further turn is begun.", 0.0)


def main(argv: list[str]) -> int:
  del argv
  compilation.use_cache()
  if _SUITE.value == suites.REAL:
    return _run_real()
  settings = suites.Settings(
    list=_LIST.value, problems=_PROBLEMS.value, data=_DATA.value, variables=_VARIABLES.value,
    num_equations=_NUM_EQUATIONS.value, skip=_SKIP.value, num_samples=_SAMPLES.value, top_k=_TOP_K.value,
    refine=_REFINE.value, max_time=_MAX_TIME.value, recombine=_RECOMBINE.value,
    search_config=_SEARCH_CONFIG.value, noise=_NOISE.value, seeds=_SEEDS.value,
    baseline=tuple(_BASELINE.value), predictions=_PREDICTIONS.value, max_abs_value=_MAX_ABS_VALUE.value)
  peers = peers_lib.open_peers(settings.baseline, python=_BASELINE_PYTHON.value, predictions=settings.predictions)
  settings = _with_peers(settings, peers)
  suite = suites.find_suite(_SUITE.value, settings)
  models = models_lib.open_models(_MODEL.value)
  tasks, missing = models.split(suites.make_tasks(suite, settings))
  folder = _open_folder(_OUT.value, {"suite": _SUITE.value, "model": _MODEL.value, **vars(settings)})
  results = runs.ResultsFile(folder / "results.csv")
  stop = runner.StopRequest()
  progress = _Progress(len(tasks), len(results.rows))
  with second_opinion.SecondOpinion() as opinion:
    is_complete = runs.run(
      tasks, runs.Sources(models, peers, opinion.ask, _was_seen(_SEEN.value)), results, on_row=progress,
      should_stop=stop.is_set)
  _write_report(folder, suite, settings, results.rows, tasks, {**missing, **peers.missing})
  if not is_complete:
    return runner.STOPPED
  is_short = peers.missing or any(row.predicted is None for row in results.rows)
  return runner.SOME_FAILED if is_short else runner.DONE


def _run_real() -> int:
  """The suite of real data sets, which have no true formula and so no task."""
  for flag in (_PROBLEMS, _LIST, _DATA, _NOISE, _PREDICTIONS, _MAX_ABS_VALUE):
    if flag.value is not None:
      raise InputError(f"--{flag.name}: not with --suite={suites.REAL}, whose data sets are given")
  asked = {"num_samples": _SAMPLES.value, "top_k": _TOP_K.value, "refine": _REFINE.value, "max_time": _MAX_TIME.value,
           "recombine": _RECOMBINE.value}
  method = answers.Method(**{name: value for name, value in asked.items() if value is not None})
  sets = [s for s in real_data.load_table() if _SETS.value == "all" or s.is_set_aside == (_SETS.value == "aside")]
  sets = sets[_SKIP.value :][: _NUM_EQUATIONS.value]
  folder = _open_folder(_OUT.value, {"suite": _SUITE.value, "model": _MODEL.value, "sets": _SETS.value,
                                     "num_equations": _NUM_EQUATIONS.value, "skip": _SKIP.value, **vars(method)})
  stop = runner.StopRequest()
  rows, is_complete = real_runs.run(
    sets, folder / "results.csv", model=_MODEL.value, method=method, on_row=_print_real, should_stop=stop.is_set)
  provenance = _provenance(method, ())
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
  print(f"{row.name}, {row.choice}: {figure}"[:160], file=sys.stderr)


def _with_peers(settings: suites.Settings, peers: peers_lib.Peers) -> suites.Settings:
  """Settings with the peers that are here, and one time limit for everybody; says which are not here."""
  for name, why in peers.missing.items():
    print(f"note: --baseline={name}: {why}", file=sys.stderr)
  if not settings.baseline:
    return settings
  return dataclasses.replace(
    settings, baseline=tuple(peers.versions), max_time=settings.max_time or peers_lib.MAX_TIME_S)


def _open_folder(out: str | None, settings: dict[str, Any]) -> pathlib.Path:
  """Makes the folder, or checks that what is in it comes from the same question."""
  if not out:
    raise InputError("expected --out, the folder of the results")
  folder = pathlib.Path(out)
  try:
    folder.mkdir(parents=True, exist_ok=True)
  except OSError as error:
    raise InputError(f"--out: cannot make the folder {out!r}: {error.strerror}") from None
  note = folder / "settings.json"
  check_writable(note, flag="--out")
  if note.exists():
    try:
      before = dict(json.loads(note.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
      raise InputError(f"--out: {str(note)!r} is no settings file of this command; give another folder") from None
    # As JSON has them: lists for tuples.
    settings = json.loads(json.dumps(settings))
    changed = [name for name in settings if before.get(name) != settings[name]]
    if changed:
      was, now = (values.get(changed[0]) for values in (before, settings))
      raise InputError(f"--out: {out!r} holds results of --{changed[0]}={was}, not {now}; give another folder")
  else:
    write_text(note, json.dumps(settings, indent=1) + "\n")
  return folder


def _was_seen(directories: list[str]) -> Callable[[problems_lib.Problem, Any], tuple[bool, bool] | None]:
  """Problem and model -> what of it was in the training data, from folders or from what the model's card names."""
  from data_gen import seen  # with SymPy behind it

  given = seen.collect(directories) if directories else None
  by_folder: dict[pathlib.Path, Any] = {}

  def was_seen(problem: problems_lib.Problem, model: Any) -> tuple[bool, bool] | None:
    asked = given
    if asked is None and getattr(model, "folder", None):  # a stand-in for a model has none
      if model.folder not in by_folder:
        by_folder[model.folder] = seen.read(model.folder, model.card)
      asked = by_folder[model.folder]
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
    print(f"[{self.done}/{self.total}] {label}: {figure}  {row.predicted or ''}"[:160], file=sys.stderr)


def _write_report(folder: pathlib.Path, suite, settings, rows, tasks, missing: dict[str, str]) -> None:
  summary = {**report.make_summary(rows, _provenance(settings, rows)), "missing": missing}
  write_text(folder / "summary.json", json.dumps(summary, indent=1) + "\n")
  figures = plots.draw_all(folder, rows, {task.key: task.problem for task in tasks}, summary)
  write_text(folder / "report.md", report.make_report(suite.title, rows, summary, figures))


def _provenance(settings: suites.Settings | answers.Method, rows) -> dict[str, Any]:
  import jax  # the flags' messages need no accelerator

  return {
    "command": shlex.join(["python", "-m", "launch.evaluate", *sys.argv[1:]]),
    "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
    "commit": _commit(),
    "hardware": f"{jax.default_backend()}, {jax.devices()[0].device_kind}, {len(os.sched_getaffinity(0))} CPU cores",
    "versions": f"Python {platform.python_version()}, jax {jax.__version__}",
    "models": ", ".join(sorted({row.model for row in rows if row.model})),
    "settings": vars(settings),
  }


def _commit() -> str:
  """The commit of the code that runs, `unknown` outside a checkout."""
  folder = pathlib.Path(__file__).parent
  asked = subprocess.run(["git", "-C", str(folder), "rev-parse", "--short", "HEAD"],
                         capture_output=True, text=True, check=False)
  return asked.stdout.strip() or "unknown"


if __name__ == "__main__":
  runner.run(main)
