"""The command that generates a data set; the same command again continues an interrupted run.

python -m data_gen.generate --config=configs/data/univariate.py --out=DIR --equations=1000000 --workers=8 --seed=1
"""

import dataclasses
import importlib.util
import os
from pathlib import Path
import platform
import signal
import sys
import time

from absl import app, flags

from data_gen import config as config_lib, exclusion, writer as writer_lib
from data_gen.candidates import Generator
from data_gen.workers import Pool
from symformer_jax.data import records
from symformer_jax.errors import InputError, SymFormerError
from symformer_jax.language.vocabulary import Vocabulary

_DEFAULT_EXCLUDED = Path(__file__).parent.parent / "configs" / "data" / "excluded.csv"

_CONFIG = flags.DEFINE_string("config", None, "Python file with get_config(), such as configs/data/univariate.py.")
_OUT = flags.DEFINE_string("out", None, "Folder to write to; shards lie below it in symformer_equations/NAME/1.0.0.")
_EQUATIONS = flags.DEFINE_integer("equations", None, "Training equations to generate.")
_VALIDATION = flags.DEFINE_integer(
  "validation", 0, "Validation equations, none of which computes what a training equation does."
)
_WORKERS = flags.DEFINE_integer("workers", os.cpu_count(), "Processes. The output does not depend on it.")
_SEED = flags.DEFINE_integer("seed", 0, "Every seed gives another stream of equations.")
_SIMPLIFY = flags.DEFINE_enum("simplify", None, config_lib.SIMPLIFIERS, "Overrides the config's setting.")
_SHARD = flags.DEFINE_integer("shard_equations", None, "Equations per shard; overrides the config's.")
_EXCLUDE = flags.DEFINE_string(
  "exclude", str(_DEFAULT_EXCLUDED), "CSV of problems (family,name,n_vars,expression) to keep out; empty for none."
)
_QUIET = flags.DEFINE_bool("quiet", False, "Print errors only.")

DONE, UNUSABLE, STOPPED = 0, 2, 75


class _StoppedError(Exception):
  """SIGTERM or Ctrl-C: finished shards are on disk, the same command continues."""


def load_config(path: str, overrides: dict) -> config_lib.GeneratorConfig:
  """Runs a config file's get_config() and checks what it returns.

  Raises:
    InputError: no such file, no get_config, an unknown key or an unusable value.
  """
  if not Path(path).is_file():
    raise InputError(f"no such config file: {path}")
  # Config files import their siblings as configs.data.*: from anywhere, not only from the repository's root.
  sys.path.append(str(Path(__file__).parent.parent))
  spec = importlib.util.spec_from_file_location("data_config", path)
  if spec is None or spec.loader is None:
    raise InputError(f"config must be a Python file, got {path}")
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  if not hasattr(module, "get_config"):
    raise InputError(f"config {path} defines no get_config()")
  values = {**module.get_config().to_dict(), **{k: v for k, v in overrides.items() if v is not None}}
  return config_lib.from_dict(values)


def _check_flags() -> None:
  for flag in (_CONFIG, _OUT, _EQUATIONS):
    if flag.value is None:
      raise InputError(f"--{flag.name} is required")
  for flag, least in ((_EQUATIONS, 1), (_VALIDATION, 0), (_WORKERS, 1), (_SEED, 0)):
    if flag.value < least:
      raise InputError(f"--{flag.name} must be at least {least}, got {flag.value}")


def _make_writer(config: config_lib.GeneratorConfig, problems: exclusion.Exclusion) -> writer_lib.Writer:
  folder = records.split_folder(_OUT.value, config.name)
  plan = writer_lib.Plan(folder, _VALIDATION.value, _EQUATIONS.value, config.shard_equations)
  identity = {
    "config": dataclasses.asdict(config),
    "seed": _SEED.value,
    "equations": _EQUATIONS.value,
    "validation": _VALIDATION.value,
    "vocabulary": Vocabulary(config.num_variables).hash,
    "excluded_problems": sorted(set(problems.names)),
  }
  info = {"packages": {"python": platform.python_version(), **{name: _version(name) for name in ("sympy", "numpy")}}}
  writer = writer_lib.Writer(plan, identity, info=info, unique_by_skeleton=config.unique == "skeleton")
  writer.resume()
  return writer


def _version(package: str) -> str:
  return importlib.import_module(package).__version__


class _Progress:
  """A line on a terminal, one every minute elsewhere."""

  def __init__(self, writer: writer_lib.Writer, total: int):
    self._writer, self._total = writer, total
    self._start, self._start_count = time.monotonic(), writer.num_accepted
    self._last = 0.0
    self._is_terminal = sys.stderr.isatty()

  def show(self, *, force: bool = False) -> None:
    now = time.monotonic()
    if _QUIET.value or not force and now - self._last < (0.5 if self._is_terminal else 60):
      return
    self._last = now
    accepted = self._writer.num_accepted
    rate = (accepted - self._start_count) / max(now - self._start, 1e-9)
    left = (self._total - accepted) / rate if rate else float("inf")
    rejected = sum(n for rule, n in self._writer.counts.items() if rule != "accepted")
    text = f"{accepted}/{self._total} equations, {rate:.1f}/s, {rejected} rejected, {left / 60:.1f} min left"
    line = f"\r{text:<78}" if self._is_terminal else f"{text}\n"
    print(line, end="", file=sys.stderr, flush=True)


def generate() -> int:
  """Runs to the end; returns the exit code."""
  _check_flags()
  config = load_config(_CONFIG.value, {"simplify": _SIMPLIFY.value, "shard_equations": _SHARD.value})
  problems = exclusion.read_problems(_EXCLUDE.value or None, config)
  writer = _make_writer(config, problems)
  if writer.is_done:
    _say(f"{writer.plan.folder} is complete: {writer.num_written} equations")
    return DONE
  if writer.num_written:
    _say(f"continuing after {writer.num_written} equations")
  progress = _Progress(writer, _EQUATIONS.value + _VALIDATION.value)
  with Pool(Generator(config, _SEED.value, problems), _WORKERS.value, skip=writer.lost) as pool:
    for index, outcome in pool.outcomes(writer.next_candidate):
      writer.note_lost(pool.lost)
      writer.add(index, outcome)
      progress.show()
      if writer.is_done:
        break
  progress.show(force=True)
  _say(f"\nwrote {writer.num_written} equations to {writer.plan.folder}")
  return DONE


def _say(text: str) -> None:
  if not _QUIET.value:
    print(text, file=sys.stderr)


def _stop(signum, frame):
  raise _StoppedError


def main(argv: list[str]) -> int:
  """Exit codes: 0 done, 2 unusable arguments or folder (one line says why), 75 stopped and resumable."""
  for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, _stop)
  try:
    if len(argv) > 1:
      raise InputError(f"unexpected argument {argv[1]!r}: all arguments are flags, see --help")
    return generate()
  except _StoppedError:
    print("stopped; the same command continues", file=sys.stderr)
    return STOPPED
  except (SymFormerError, OSError) as error:
    print(f"error: {error}", file=sys.stderr)
    return UNUSABLE


if __name__ == "__main__":
  app.run(main)
