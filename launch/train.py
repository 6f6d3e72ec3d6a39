"""Trains a model: python -m launch.train --config=configs/small.py --workdir=DIR. The same command resumes."""

import json
from pathlib import Path
import time

from absl import app, flags, logging
from ml_collections import config_flags

from launch import runner
from symformer_jax import configuration
from symformer_jax.training import config as config_lib, loop

_CONFIG = config_flags.DEFINE_config_file(
  "config", None, "Config file with get_config(); override its values by --config.a.b=v.")
_WORKDIR = flags.DEFINE_string("workdir", None, "Folder of checkpoints and curves; again = resume.")
_MAX_MINUTES = flags.DEFINE_float("max_minutes", None, "Save and stop after so many minutes.")


def main(argv):
  del argv
  config = configuration.build(config_lib.TrainConfig, _CONFIG.value.to_dict())
  workdir = Path(_WORKDIR.value)
  stop = runner.StopRequest()
  deadline = float("inf") if _MAX_MINUTES.value is None else time.monotonic() + 60 * _MAX_MINUTES.value
  run = loop.set_up(config, workdir, runner.load_initial_params(config))
  (workdir / "config.json").write_text(json.dumps(configuration.to_dict(config), indent=1))
  is_complete = loop.train(run, should_stop=lambda: stop.is_set() or time.monotonic() > deadline)
  loop.close(run)
  logging.info("%s at step %d", "complete" if is_complete else "stopped", int(run.state.step))
  return runner.STOPPED if stop.is_set() and not is_complete else runner.DONE


if __name__ == "__main__":
  flags.mark_flags_as_required(["config", "workdir"])
  runner.run(main)
