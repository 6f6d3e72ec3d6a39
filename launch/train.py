"""Trains a model: python -m launch.train --config=configs/small.py --workdir=DIR. The same command resumes."""

import json
import logging as python_logging
from pathlib import Path
import time

from absl import flags, logging
from ml_collections import config_flags

from symformer_jax import compilation, configuration, runner
from symformer_jax.errors import InputError
from symformer_jax.pretrained import registry
from symformer_jax.training import config as config_lib, loop

_CONFIG = config_flags.DEFINE_config_file(
  "config", None, "Config file with get_config(); override its values by --config.a.b=v.")
_WORKDIR = flags.DEFINE_string("workdir", None, "Folder of checkpoints and curves; again = resume.")
_MAX_MINUTES = flags.DEFINE_float("max_minutes", None, "Save and stop after so many minutes.")


def _initial_params(config: config_lib.TrainConfig):
  """Parameters to start from, when config.init_from names a model of the same shape."""
  if not config.init_from:
    return None
  model = registry.load_model(config.init_from)
  if model.config != config.model:
    raise InputError(f"config.init_from: {config.init_from!r} has another shape than config.model")
  return model.params


def _is_ours(record: python_logging.LogRecord) -> bool:
  """Keeps the loop's own lines and everybody's warnings; Orbax reports each save in twenty lines."""
  return record.levelno >= python_logging.WARNING or "symformer_jax" in record.pathname or "launch" in record.pathname


def main(argv):
  del argv
  compilation.use_cache()
  config = configuration.build(config_lib.TrainConfig, _CONFIG.value.to_dict())
  workdir = Path(_WORKDIR.value)
  stop = runner.StopRequest()
  deadline = float("inf") if _MAX_MINUTES.value is None else time.monotonic() + 60 * _MAX_MINUTES.value
  run = loop.set_up(config, workdir, _initial_params(config))
  (workdir / "config.json").write_text(json.dumps(configuration.to_dict(config), indent=1))
  is_complete = loop.train(run, should_stop=lambda: stop.is_set() or time.monotonic() > deadline)
  loop.close(run)
  logging.info("%s at step %d", "complete" if is_complete else "stopped", int(run.state.step))
  return runner.STOPPED if stop.is_set() and not is_complete else runner.DONE


if __name__ == "__main__":
  logging.use_absl_handler()
  logging.set_verbosity(logging.INFO)
  python_logging.getLogger("absl").addFilter(_is_ours)
  flags.mark_flags_as_required(["config", "workdir"])
  runner.run(main)
