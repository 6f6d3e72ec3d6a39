"""Measures one part of the system: python -m launch.benchmark --what=refine --out=refine.json.

A part is a module of launch/benchmarks with a function `run() -> dict`, which prints its rows. The figures are
written with the command's circumstances; they are kept, commented, in docs/results/.
"""

if __name__ == "__main__":
  from symformer_jax.commands import startup  # first: the other imports take seconds

  startup.prepare(__doc__, "launch.flags.benchmark")

import datetime
import importlib.util
import json
import os
import platform
import subprocess
import sys
from typing import Any

import jax

from launch.flags import benchmark as asked
from symformer_jax.commands import config_flag, runner
from symformer_jax.errors import InputError
from symformer_jax.files import check_writable, write_text


def main(argv: list[str]) -> int:
  """Runs one benchmark and writes its figures."""
  del argv
  if asked.WHAT.value is None:
    raise InputError(f"--what is missing: expected one of {', '.join(asked.PARTS)}")
  name = f"launch.benchmarks.{asked.WHAT.value}"
  if importlib.util.find_spec(name) is None:
    raise InputError(f"there is no benchmark of {asked.WHAT.value!r} yet")
  for flag, part in asked.PARTS_OF.items():
    if asked.FLAGS[flag].present and part != asked.WHAT.value:
      raise InputError(f"--{flag}: says nothing without --what={part}")
  runner.refuse_empty(asked.OUT)
  if asked.OUT.value:
    check_writable(asked.OUT.value, flag="--out")
  if asked.DEVICES.value:
    # Has to be said before any device is looked at.
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", asked.DEVICES.value)
  results = {**_circumstances(), "results": importlib.import_module(name).run()}
  if asked.OUT.value:
    write_text(asked.OUT.value, json.dumps(results, indent=2) + "\n")
  return 0


def _circumstances() -> dict[str, Any]:
  """What a figure depends on beside the code."""
  revision = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
  return {
    "what": asked.WHAT.value, "date": datetime.date.today().isoformat(), "commit": revision.stdout.strip() or None,
    "python": platform.python_version(), "jax": jax.__version__, "device": jax.devices()[0].device_kind,
    "num_cores": os.cpu_count(), "load": os.getloadavg()[0],
  }


if __name__ == "__main__":
  runner.run(main, argv=config_flag.locate(sys.argv))
