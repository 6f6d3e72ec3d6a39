"""Judges a model on a suite of problems: python -m launch.evaluate --suite=in_domain --data=DIR --out=DIR.

Writes results.csv (row by row), summary.json, report.md and its figures. The same command resumes; exit code 1
says that some rows have no answer, each with its reason.
"""

from collections.abc import Callable
import datetime
import functools
import json
import os
import pathlib
import platform
import shlex
import subprocess
import sys
from typing import Any

from absl import flags

from symformer_jax import compilation, runner
from symformer_jax.errors import InputError
from symformer_jax.evaluation import plots, problems as problems_lib, report, runs, suites
from symformer_jax.files import write_text
from symformer_jax.pretrained import registry

_SUITE = flags.DEFINE_string("suite", None, f"What is asked: {', '.join(suites.SUITES)}.")
_PROBLEMS = flags.DEFINE_string(
  "problems", None, f"A CSV of your own problems instead, with columns {','.join(problems_lib.COLUMNS)}; "
  "variables x, y, z...; ranges lo:hi;lo:hi.")
_LIST = flags.DEFINE_enum("list", None, problems_lib.LISTS, "The list of benchmark functions of a suite.")
_MODEL = flags.DEFINE_string("model", "auto", "auto (by the number of variables), a shipped model's name or a folder.")
_OUT = flags.DEFINE_string("out", None, "Folder of the results; made when it does not exist.")
_DATA = flags.DEFINE_string("data", None, "A generated data set, whose validation split gives fresh equations.")
_NUM_EQUATIONS = flags.DEFINE_integer("num_equations", None, "Problems asked; the suite's number by default.", 1)
_SAMPLES = flags.DEFINE_integer("samples", None, "Candidates drawn per problem; the suite's number by default.", 1)
_TOP_K = flags.DEFINE_integer("top_k", None, "Tokens among which each step of sampling chooses.", 1)
_REFINE = flags.DEFINE_enum("refine", None, ["lm", "bfgs", "gd", "none"], "How constants are fitted.")
_SEEDS = flags.DEFINE_integer("seeds", 1, "How often each problem is asked, with other points and samples.", 1)
_NOISE = flags.DEFINE_float("noise", None, "Standard deviation of noise on y, relative to its RMS.", 0.0)
_MAX_TIME = flags.DEFINE_float("max_time", None, "Seconds per problem after which no more samples are drawn.", 0.0)


def main(argv: list[str]) -> int:
  del argv
  compilation.use_cache()
  settings = suites.Settings(
    list=_LIST.value, problems=_PROBLEMS.value, data=_DATA.value, num_equations=_NUM_EQUATIONS.value,
    num_samples=_SAMPLES.value, top_k=_TOP_K.value, refine=_REFINE.value, max_time=_MAX_TIME.value,
    noise=_NOISE.value, seeds=_SEEDS.value)
  suite = suites.find_suite(_SUITE.value, settings)
  tasks = suites.make_tasks(suite, settings)
  model_for = _model_for(_MODEL.value)
  folder = _open_folder(_OUT.value, {"suite": _SUITE.value, "model": _MODEL.value, **vars(settings)})
  results = runs.ResultsFile(folder / "results.csv")
  stop = runner.StopRequest()
  progress = _Progress(len(tasks), len(results.rows))
  is_complete = runs.run(tasks, model_for, results, on_row=progress, should_stop=stop.is_set)
  _write_report(folder, suite, settings, results.rows, tasks)
  if not is_complete:
    return runner.STOPPED
  return runner.SOME_FAILED if any(row.predicted is None for row in results.rows) else runner.DONE


def _open_folder(out: str | None, settings: dict[str, Any]) -> pathlib.Path:
  """Makes the folder, or checks that what is in it comes from the same question."""
  if out is None:
    raise InputError("expected --out, the folder of the results")
  folder = pathlib.Path(out)
  try:
    folder.mkdir(parents=True, exist_ok=True)
  except OSError as error:
    raise InputError(f"--out: cannot make the folder {out!r}: {error.strerror}") from None
  note = folder / "settings.json"
  if note.exists():
    before = json.loads(note.read_text(encoding="utf-8"))
    changed = [name for name in settings if before.get(name) != settings[name]]
    if changed:
      was, now = (values.get(changed[0]) for values in (before, settings))
      raise InputError(f"--out: {out!r} holds results of --{changed[0]}={was}, not {now}; give another folder")
  else:
    write_text(note, json.dumps(settings, indent=1) + "\n")
  return folder


def _model_for(name: str) -> Callable[[int], Any]:
  """Number of variables -> model, each loaded once; a named one at once, so that a wrong name stops the command."""
  if name == "auto":
    return functools.cache(lambda num_variables: registry.load_model("auto", num_variables=num_variables))
  model = registry.load_model(name)
  known = model.vocab.num_variables

  def model_for(num_variables: int) -> Any:
    if known < num_variables:
      raise InputError(f"the model {model.name!r} knows {known} variables, the problem has {num_variables}")
    return model
  return model_for


class _Progress:
  """One line per row on standard error."""

  def __init__(self, total: int, done: int):
    self.total, self.done = total, done

  def __call__(self, row: runs.Row) -> None:
    self.done += 1
    figure = f"R2 {report.format_figure(row.r2, '.6f') or 'none'}" if row.predicted else row.message
    label = " ".join(filter(None, (row.variant, row.name)))
    print(f"[{self.done}/{self.total}] {label}: {figure}  {row.predicted or ''}"[:160], file=sys.stderr)


def _write_report(folder: pathlib.Path, suite, settings, rows, tasks) -> None:
  summary = report.make_summary(rows, _provenance(settings, rows))
  write_text(folder / "summary.json", json.dumps(summary, indent=1) + "\n")
  figures = plots.draw_all(folder, rows, {task.key: task.problem for task in tasks}, summary)
  write_text(folder / "report.md", report.make_report(suite.title, rows, summary, figures))


def _provenance(settings: suites.Settings, rows) -> dict[str, Any]:
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
