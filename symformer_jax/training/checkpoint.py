"""Checkpoints of a run: state, data position and meta in one Orbax composite, written whole or not at all."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from absl import logging
import grain.python as grain
import jax
import orbax.checkpoint as ocp

from symformer_jax import configuration
from symformer_jax.errors import ModelError
from symformer_jax.training.config import TrainConfig
from symformer_jax.training.state import TrainState


class Checkpoints:
  """The checkpoints below a work directory."""

  def __init__(self, workdir: str | Path, *, keep: int):
    options = ocp.CheckpointManagerOptions(max_to_keep=keep, create=True, enable_async_checkpointing=False)
    self._manager = ocp.CheckpointManager(Path(workdir).absolute() / "checkpoints", options=options)

  def save(self, state: TrainState, iterator: grain.DatasetIterator, meta: dict[str, Any]) -> None:
    """Saves under the state's step; returns when it is on disk."""
    self._manager.save(
      int(state.step),
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
      `(state, meta)`, or None when there is no usable checkpoint.
    """
    for step in sorted(self._manager.all_steps(), reverse=True):
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
    return None

  def close(self) -> None:
    self._manager.close()


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
  saved, wanted = meta["config"]["model"], configuration.to_dict(config.model)
  if meta["vocabulary"] != config.model.vocabulary.hash:
    raise ModelError(
      f"the checkpoint has another vocabulary: {saved['vocabulary']}, the configuration asks for "
      f"{wanted['vocabulary']}; use another --workdir")
  for key, value in wanted.items():
    if saved.get(key) != value:
      raise ModelError(
        f"the checkpoint has another model shape: {key} is {saved.get(key)}, the configuration asks for {value}; "
        "use another --workdir")


def abstract_like(state: TrainState, shardings: TrainState) -> TrainState:
  """Shapes and dtypes of a state with its shardings, for restoring."""
  return jax.tree.map(
    lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), state, shardings)
