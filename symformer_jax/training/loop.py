"""The training run: set up or resume, step, log, evaluate, save; each phase a function."""

from collections.abc import Callable, Iterator
import dataclasses
import itertools
import math
from pathlib import Path
import time
from typing import Any

from absl import logging
import jax
from jax.sharding import NamedSharding, PartitionSpec
import numpy as np

from symformer_jax.data import pipeline
from symformer_jax.errors import DataError, InputError
from symformer_jax.training import checkpoint, sharding, step as step_lib
from symformer_jax.training.config import TrainConfig
from symformer_jax.training.logs import Curves, Window
from symformer_jax.training.optimizer import make_optimizer
from symformer_jax.training.state import TrainState, init_state


@dataclasses.dataclass
class Run:
  """Everything a run in progress holds (mutable: it is the loop's only state)."""

  config: TrainConfig
  state: TrainState
  iterator: Any
  train_step: Callable
  evaluate: Callable[[TrainState], dict[str, float]]
  checkpoints: checkpoint.Checkpoints
  curves: Curves
  window: Window
  batch_sharding: NamedSharding
  saved_step: int


def _jit_steps(config: TrainConfig, optimizer, mesh, abstract: TrainState):
  """Jitted train and evaluation steps with explicit shardings."""
  shardings = sharding.state_sharding(abstract, mesh)
  batch = sharding.batch_sharding(mesh)
  everywhere = NamedSharding(mesh, PartitionSpec())
  train_step = jax.jit(
    step_lib.make_train_step(config, optimizer),
    in_shardings=(shardings, batch), out_shardings=(shardings, everywhere), donate_argnums=0)
  eval_step = jax.jit(
    step_lib.make_eval_step(config), in_shardings=(shardings.params, batch, everywhere), out_shardings=everywhere)
  return train_step, eval_step, shardings


def _make_evaluation(config: TrainConfig, eval_step, batch_sharding) -> Callable[[TrainState], dict[str, float]]:
  """Mean metrics over the same validation batches and points every time; nothing when there is no such split."""
  try:
    batches = list(itertools.islice(
      pipeline.make_iterator(config.data, seed=0, split="validation"), config.num_eval_batches))
  except DataError as error:
    logging.warning("no validation: %s", error)
    batches = []

  def evaluate(state: TrainState) -> dict[str, float]:
    window = Window()
    for i, batch in enumerate(batches):
      metrics = eval_step(state.params, jax.device_put(batch, batch_sharding), jax.random.key(i))
      window.add(jax.device_get(metrics))
    return window.pop()

  return evaluate


def set_up(config: TrainConfig, workdir: Path, initial_params: Any = None) -> Run:
  """A new run, or the continuation of the one in `workdir`.

  Args:
    initial_params: parameters to start a new run from, instead of random ones.
  Raises:
    ModelError: when the checkpoint there belongs to another model; InputError, DataError: unusable data.
  """
  workdir.mkdir(parents=True, exist_ok=True)
  mesh = sharding.make_mesh(config.mesh)
  optimizer = make_optimizer(config)
  abstract = jax.eval_shape(lambda: init_state(config, optimizer))
  train_step, eval_step, shardings = _jit_steps(config, optimizer, mesh, abstract)
  iterator = pipeline.make_iterator(config.data, config.seed)
  checkpoints = checkpoint.Checkpoints(workdir, keep=config.keep_checkpoints)
  restored = checkpoints.restore_newest(
    checkpoint.abstract_like(abstract, shardings), iterator, lambda meta: checkpoint.check_same_run(meta, config))
  if restored is None:
    state = jax.jit(lambda: init_state(config, optimizer), out_shardings=shardings)()
    if initial_params is not None:
      state = state._replace(params=jax.device_put(initial_params, shardings.params))
    window = Window()
  else:
    state, meta = restored
    window = Window(meta["window"])
    logging.info("resumed at step %d", int(state.step))
  batch_sharding = sharding.batch_sharding(mesh)
  return Run(
    config=config, state=state, iterator=iterator, train_step=train_step,
    evaluate=_make_evaluation(config, eval_step, batch_sharding), checkpoints=checkpoints,
    curves=Curves(workdir, first_step=int(state.step)), window=window, batch_sharding=batch_sharding,
    saved_step=int(state.step) if restored else -1)


def save(run: Run) -> None:
  """Saves the run where it stands, once per step."""
  now = int(run.state.step)
  if now != run.saved_step:
    run.checkpoints.save(run.state, run.iterator, checkpoint.make_meta(run.config, run.window.sums))
    run.saved_step = now


def _log(run: Run, now: int, seconds: float, examples: int) -> None:
  """One line of the curve; a loss that is not finite ends the run."""
  means = run.window.pop()
  run.curves.write(now, "train", means | {"examples_per_s": examples / seconds})
  logging.info(
    "step %d/%d  cross entropy %.4f  constants %.4f  accuracy %.3f  %.0f examples/s", now, run.config.num_steps,
    means["cross_entropy"], means["constant_mse"], means["token_accuracy"], examples / seconds)
  if not math.isfinite(means["loss"]):
    raise InputError(f"the loss is not finite at step {now}: lower the learning rate or clip gradients")


def _evaluate(run: Run, now: int) -> None:
  values = run.evaluate(run.state)
  if values:
    run.curves.write(now, "validation", values)
    logging.info("step %d  validation cross entropy %.4f", now, values["cross_entropy"])


def train(run: Run, *, should_stop: Callable[[], bool] = lambda: False) -> bool:
  """Steps until the end of the schedule or until `should_stop()`; saves either way.

  Returns:
    True when the run is complete.
  """
  config = run.config
  started, since = time.monotonic(), int(run.state.step)
  for now, batch in _numbered_batches(run):
    run.state, metrics = run.train_step(run.state, jax.device_put(batch, run.batch_sharding))
    run.window.add(jax.device_get(metrics))
    if now % config.log_every == 0:
      _log(run, now, time.monotonic() - started, (now - since) * config.data.batch_size)
      started, since = time.monotonic(), now
    if now % config.eval_every == 0 or now == config.num_steps:
      _evaluate(run, now)
    if now % config.checkpoint_every == 0:
      save(run)
    if should_stop():
      break
  save(run)
  return int(run.state.step) >= config.num_steps


def _numbered_batches(run: Run) -> Iterator[tuple[int, pipeline.Batch]]:
  """Batches with the number of the step they make; no batch is taken that is not trained on."""
  for now in range(int(run.state.step) + 1, run.config.num_steps + 1):
    yield now, jax.tree.map(np.asarray, next(run.iterator))


def close(run: Run) -> None:
  run.curves.close()
  run.checkpoints.close()
