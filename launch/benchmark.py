"""Measures one part of the system: python -m launch.benchmark --what=refine --out=refine.json.

A part is a module of launch/benchmarks with a function `run() -> dict`, which prints its rows. The figures are
written with the command's circumstances; they are kept, commented, in docs/results/.
"""

if __name__ == "__main__":
  from symformer_jax.commands import startup  # first: the other imports take seconds

  startup.prepare()

import datetime
import importlib.util
import json
import os
import platform
import subprocess
import sys
from typing import Any

from absl import flags
import jax
from ml_collections import config_flags

from symformer_jax.commands import config_flag, runner
from symformer_jax.errors import InputError
from symformer_jax.files import check_writable, write_text

PARTS = ("generate", "interpret", "refine", "memory", "snap", "decode", "train", "infer")

_WHAT = flags.DEFINE_enum("what", None, PARTS, "The part to measure.")
_OUT = flags.DEFINE_string("out", None, "JSON file of the figures; they are printed in any case.")
_TREES = flags.DEFINE_integer("trees", 1000, "Fresh trees on which `generate` compares its settings.", 1)
_CONFIG = config_flags.DEFINE_config_file(
  "config", None, "Config file that `train` measures, with overrides as in launch.train; default: configs/small.py.")
_DEVICES = flags.DEFINE_integer(
  "devices", None, "Compile the step of `train` for so many forced CPU devices, run nothing, report on it.", 1)


def main(argv: list[str]) -> int:
  """Runs one benchmark and writes its figures."""
  del argv
  if _WHAT.value is None:
    raise InputError(f"--what is missing: expected one of {', '.join(PARTS)}")
  name = f"launch.benchmarks.{_WHAT.value}"
  if importlib.util.find_spec(name) is None:
    raise InputError(f"there is no benchmark of {_WHAT.value!r} yet")
  runner.refuse_empty(_OUT)
  if _OUT.value:
    check_writable(_OUT.value, flag="--out")
  if _DEVICES.value:
    # Has to be said before any device is looked at.
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", _DEVICES.value)
  results = {**_circumstances(), "results": importlib.import_module(name).run()}
  if _OUT.value:
    write_text(_OUT.value, json.dumps(results, indent=2) + "\n")
  return 0


def _circumstances() -> dict[str, Any]:
  """What a figure depends on beside the code."""
  revision = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
  return {
    "what": _WHAT.value, "date": datetime.date.today().isoformat(), "commit": revision.stdout.strip() or None,
    "python": platform.python_version(), "jax": jax.__version__, "device": jax.devices()[0].device_kind,
    "num_cores": os.cpu_count(), "load": os.getloadavg()[0],
  }


if __name__ == "__main__":
  runner.run(main, argv=config_flag.locate(sys.argv))
