"""Trains a model: python -m launch.train --config=configs/small.py --workdir=DIR. The same command resumes.

On several hosts the same command runs on each, with --distributed (Slurm, TPU pods, GKE and Open MPI are detected) or
with --coordinator, --num_processes and --process_id; job files are in launch/cluster.
"""

if __name__ == "__main__":
  from symformer_jax.commands import startup  # first: the other imports take seconds

  startup.prepare(__doc__, "launch.flags.train", extra="train")

import contextlib
import errno
import json
import logging as python_logging
import pathlib
import sys
import time

from absl import logging

from launch.flags import train as asked
from symformer_jax import compilation, configuration
from symformer_jax.commands import config_flag, runner
from symformer_jax.errors import InputError
from symformer_jax.files import check_writable, claimed, make_folder, no_empty_folders, write_text
from symformer_jax.model import symformer
from symformer_jax.pretrained import registry
from symformer_jax.training import config as config_lib, loop, processes, transfer

# What is in the way is of another kind, such as a folder or a pipe in the place of a file, or somebody else's.
_NOT_USABLE = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.EINVAL, errno.EACCES, errno.EPERM)


def _join_hosts() -> None:
  """Joins the hosts of the run, where there are several."""
  by_hand = (asked.COORDINATOR.value, asked.NUM_PROCESSES.value, asked.PROCESS_ID.value)
  if any(v is not None for v in by_hand) and None in by_hand:
    raise InputError("--coordinator, --num_processes and --process_id go together")
  if asked.DISTRIBUTED.value or asked.COORDINATOR.value is not None:
    processes.start(coordinator=by_hand[0], num_processes=by_hand[1], process_id=by_hand[2])
    if not processes.is_first():
      logging.set_verbosity(logging.WARNING)


def _initial_params(config: config_lib.TrainConfig) -> symformer.Params | None:
  """Parameters to start from, when config.init_from names a model of the same shape or a smaller one (`transfer`)."""
  if not config.init_from:
    return None
  model = registry.load_model(config.init_from)
  try:
    return transfer.grow(model.params, model.config, config.model, seed=config.seed)
  except InputError as error:
    raise InputError(f"config.init_from={config.init_from!r}: {error}") from None


def _is_ours(record: python_logging.LogRecord) -> bool:
  """Keeps the loop's own lines and everybody's warnings; Orbax reports each save in twenty lines, and the errors of its
  threads, which are raised again where they are waited for.
  """
  if record.exc_info and "orbax" in record.pathname:
    return False
  return record.levelno >= python_logging.WARNING or "symformer_jax" in record.pathname or "launch" in record.pathname


def main(argv: list[str]) -> int:
  del argv
  compilation.use_cache()
  runner.refuse_empty(asked.WORKDIR)
  if asked.MAX_MINUTES.value is not None and asked.MAX_MINUTES.value <= 0:
    raise InputError(f"--max_minutes: expected a positive number, got {asked.MAX_MINUTES.value:g}")
  runner.required(asked.CONFIG)
  place = runner.required(asked.WORKDIR)
  config = configuration.build(config_lib.TrainConfig, config_flag.read(asked.CONFIG))
  _join_hosts()
  with no_empty_folders(place):
    workdir = make_folder(place, flag="--workdir")
    note = check_writable(workdir / "config.json", flag="--workdir")
    # Of the hosts of a run one keeps strangers out.
    with claimed(workdir, flag="--workdir") if processes.is_first() else contextlib.nullcontext():
      return _train(config, workdir, note)


def _train(config: config_lib.TrainConfig, workdir: pathlib.Path, note: pathlib.Path) -> int:
  """The run in a folder, or what is left of it; `note`: where its config is kept."""
  stop = runner.StopRequest()
  deadline = float("inf") if asked.MAX_MINUTES.value is None else time.monotonic() + 60 * asked.MAX_MINUTES.value
  try:
    run = loop.set_up(config, workdir, _initial_params(config))
  except OSError as error:
    if error.errno not in _NOT_USABLE or error.filename is None:
      raise
    raise InputError(f"cannot use {error.filename}: {error.strerror}") from None
  if processes.is_first():
    write_text(note, json.dumps(configuration.to_dict(config), indent=1))
  try:
    is_complete = loop.train(run, should_stop=lambda: stop.is_set() or time.monotonic() > deadline)
    loop.close(run)
  except OSError:
    run.curves.abandon()
    raise
  logging.info("%s at step %d", "complete" if is_complete else "stopped", int(run.state.step))
  return runner.STOPPED if stop.is_set() and not is_complete else runner.DONE


if __name__ == "__main__":
  logging.use_absl_handler()
  logging.set_verbosity(logging.INFO)
  python_logging.getLogger("absl").addFilter(_is_ours)
  python_logging.getLogger("jax").setLevel(python_logging.WARNING)  # it tells of accelerators that are not there
  python_logging.getLogger("asyncio").setLevel(python_logging.CRITICAL)  # of Orbax's threads, as in `_is_ours`
  runner.run(main, argv=config_flag.locate(sys.argv))
