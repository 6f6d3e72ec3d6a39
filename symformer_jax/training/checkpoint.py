"""Checkpoints of a run: state, data position and meta in one Orbax composite, written whole or not at all."""

from collections.abc import Callable, Iterator
import contextlib
import errno
import json
import math
import os
from pathlib import Path
import shutil
from typing import Any

from absl import logging
import grain.python as grain
import jax
import orbax.checkpoint as ocp
from orbax.checkpoint.checkpoint_managers import preservation_policy

from symformer_jax import configuration
from symformer_jax.errors import InputError, ModelError
from symformer_jax.model.config import ModelConfig
from symformer_jax.training.config import TrainConfig
from symformer_jax.training.optimizer import make_optimizer
from symformer_jax.training.state import TrainState, init_state

# What a checkpoint has beside the bytes of an array: its entries in three files of metadata and in the indices of the
# store. Measured 1900 to 2300 per array on disk, with 298 arrays of 0.37 MB (configs/tiny.py) 0.93 to 1.05 MB; of large
# arrays compression saves more than that. Too much refuses a last checkpoint that would have fitted.
_ARRAY_OVERHEAD_BYTES = 2560
# What a write may meet: no room, a limit, a broken device, too many open files, too little memory.
_REFUSALS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def _drop_damaged_metrics(folder: Path) -> None:
  """Removes metrics that are no JSON, or have no loss: Orbax reads all of them and would stop there."""
  for path in folder.glob("*/metrics/metrics"):
    try:
      _goodness(json.loads(path.read_text()))
    except (ValueError, LookupError, TypeError):
      logging.warning("the validation loss of checkpoint %s is damaged and left out", path.parents[1].name)
      shutil.rmtree(path.parent, ignore_errors=True)  # another host may be at it


def _drop_unfinished(folder: Path) -> None:
  """Removes what a run that was killed, or met a full disk, has left of a checkpoint: it takes the room of one."""
  for path in folder.glob("*.orbax-checkpoint-tmp"):
    shutil.rmtree(path, ignore_errors=True)  # another host may be at it


@contextlib.contextmanager
def _faults_of_the_system(folder: Path) -> Iterator[None]:
  """Raises as OSError what the system refuses where the layers below Orbax have it as text: "RESOURCE_EXHAUSTED: ...
  No space left on device", an error of values.
  """
  try:
    yield
  except ValueError as error:
    for number in _REFUSALS:
      if os.strerror(number) in str(error):
        raise OSError(number, os.strerror(number), str(folder)) from None
    raise


def _goodness(metrics: dict[str, float]) -> float:
  return -metrics["loss"]


def folder_of(workdir: str | Path) -> Path:
  """Where the checkpoints of a work directory lie.

  Raises:
    InputError: for a name with bytes that are no UTF-8, of which Orbax would fail once there is something to save.
  """
  folder = Path(workdir).absolute() / "checkpoints"
  try:
    str(folder).encode()
  except UnicodeEncodeError:
    raise InputError(f"{str(folder)!r}: expected a name in UTF-8 for a folder of checkpoints") from None
  return folder


class Checkpoints:
  """The checkpoints below a work directory: the newest few, and the one of the lowest validation loss."""

  def __init__(self, workdir: str | Path, *, keep: int):
    """Raises NotADirectoryError where a file has the name of their folder: Orbax would say so at the first save."""
    folder = folder_of(workdir)
    if folder.exists() and not folder.is_dir():
      raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    _drop_damaged_metrics(folder)
    _drop_unfinished(folder)
    kept = [preservation_policy.LatestN(n=keep), preservation_policy.BestN(
      get_metric_fn=_goodness, n=1, keep_checkpoints_without_metrics=False)]
    options = ocp.CheckpointManagerOptions(
      preservation_policy=preservation_policy.AnyPreservationPolicy(kept), best_fn=_goodness,
      enable_async_checkpointing=False)
    self._manager = ocp.CheckpointManager(folder, options=options)

  def check_room(self, state: Any) -> None:
    """Raises OSError where the disk has no room for a state's checkpoint: Orbax says so in hundreds of lines."""
    size = sum(math.prod(leaf.shape) * leaf.dtype.itemsize + _ARRAY_OVERHEAD_BYTES for leaf in jax.tree.leaves(state))
    if shutil.disk_usage(self._manager.directory).free < size:
      with contextlib.suppress(OSError):  # not empty; of a run that cannot begin nothing is left
        os.rmdir(self._manager.directory)
      raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._manager.directory))

  def save(
    self, state: TrainState, iterator: grain.DatasetIterator, meta: dict[str, Any], *,
    validation: dict[str, float] | None = None,
  ) -> None:
    """Saves under the state's step; returns when it is on disk. Only checkpoints with `validation` can be the best.

    Raises:
      OSError: where the disk has no room for it, or the system refuses something else, such as more open files.
    """
    self.check_room(state)
    with _faults_of_the_system(self._manager.directory):
      self._manager.save(
        int(state.step),
        metrics={"loss": math.inf, **(validation or {})},
        args=ocp.args.Composite(
          state=ocp.args.StandardSave(state._asdict()),
          data=grain.PyGrainCheckpointSave(iterator),
          meta=ocp.args.JsonSave(meta)))
      self._manager.wait_until_finished()

  def restore_newest(
    self, abstract_state: TrainState, iterator: grain.DatasetIterator, check_meta: Callable[[dict[str, Any]], None]
  ) -> tuple[TrainState, dict[str, Any]] | None:
    """The newest checkpoint that can be read; damaged ones are skipped with a warning.

    Args:
      abstract_state: shapes, dtypes and shardings to restore to.
      iterator: set to the saved position.
      check_meta: raises ModelError when the checkpoint belongs to another run: that is never skipped.
    Returns:
      `(state, meta)`, or None when there is no checkpoint.
    Raises:
      ModelError: when there are checkpoints and none can be used: a run must not start anew over them.
    """
    steps = sorted(self._manager.all_steps(), reverse=True)
    for step in steps:
      try:
        meta = self._manager.restore(step, args=ocp.args.Composite(meta=ocp.args.JsonRestore()))["meta"]
        check_meta(meta)
        restored = self._manager.restore(
          step,
          args=ocp.args.Composite(
            state=ocp.args.StandardRestore(abstract_state._asdict()),
            data=grain.PyGrainCheckpointRestore(iterator)))
      except ModelError:
        raise
      # Damage shows as whatever the layer that met it raises: JSON, file system, tensorstore or tree errors.
      except Exception as error:
        logging.warning("checkpoint %d is damaged and skipped: %s", step, str(error).split("\n")[0][:200])
        continue
      return TrainState(**restored["state"]), meta
    if steps:
      raise ModelError(f"no checkpoint of {self._manager.directory} can be read: move the folder away to start anew")
    return None

  def close(self) -> None:
    self._manager.close()


def best_step(workdir: str | Path) -> int | None:
  """Step of the checkpoint with the lowest validation loss; None where none was validated."""
  with ocp.CheckpointManager(folder_of(workdir)) as manager:
    losses = {step: (manager.metrics(step) or {}).get("loss") for step in manager.all_steps()}
  known = {step: loss for step, loss in losses.items() if loss is not None and math.isfinite(loss)}
  return min(known, key=lambda step: known[step]) if known else None


def read(workdir: str | Path, step: int) -> tuple[TrainState, dict[str, Any]]:
  """State and meta of a checkpoint, on one device, whatever mesh wrote it.

  Raises:
    ModelError: when it cannot be read.
  """
  with ocp.CheckpointManager(folder_of(workdir)) as manager:
    try:
      meta = manager.restore(step, args=ocp.args.Composite(meta=ocp.args.JsonRestore()))["meta"]
      config = configuration.build(TrainConfig, meta["config"])
      abstract = jax.eval_shape(lambda: init_state(config, make_optimizer(config)))
      device = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
      target = abstract_like(abstract, jax.tree.map(lambda leaf: device, abstract))
      restored = manager.restore(
        step, args=ocp.args.Composite(state=ocp.args.StandardRestore(target._asdict())))["state"]
    except Exception as error:  # as in `restore_newest`
      raise ModelError(f"checkpoint {step} of {workdir} cannot be read: {str(error).splitlines()[0][:200]}") from None
  return TrainState(**restored), meta


def make_meta(config: TrainConfig, window: dict[str, float]) -> dict[str, Any]:
  """What a checkpoint says of itself: the run's configuration and the unfinished logging window."""
  return {
    "config": configuration.to_dict(config),
    "vocabulary": config.model.vocabulary.hash,
    "window": window,
  }


def check_same_run(meta: dict[str, Any], config: TrainConfig) -> None:
  """Refuses a checkpoint with another vocabulary or model shape, in one line.

  Raises:
    ModelError: naming the first difference.
  """
  # Built anew: a run begun before a field existed has its default.
  model = configuration.build(ModelConfig, meta["config"]["model"], path="the checkpoint's model")
  saved, wanted = configuration.to_dict(model), configuration.to_dict(config.model)
  if meta["vocabulary"] != config.model.vocabulary.hash:
    raise ModelError(
      f"the checkpoint has another vocabulary: {saved['vocabulary']}, the configuration asks for "
      f"{wanted['vocabulary']}; use another --workdir")
  for key, value in wanted.items():
    if saved[key] != value:
      raise ModelError(
        f"the checkpoint has another model shape: {key} is {saved[key]}, the configuration asks for {value}; "
        "use another --workdir")


def abstract_like(state: TrainState, shardings: TrainState) -> TrainState:
  """Shapes and dtypes of a state with its shardings, for restoring."""
  return jax.tree.map(
    lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), state, shardings)
