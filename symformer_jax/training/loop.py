"""The training run: set up or resume, step, log, evaluate, save; each phase a function."""

import collections
from collections.abc import Callable
import dataclasses
import math
from pathlib import Path
import time
from typing import Any, NamedTuple

from absl import logging
import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
import numpy as np
import optax

from symformer_jax.data import pipeline
from symformer_jax.errors import InputError
from symformer_jax.files import replacing
from symformer_jax.training import checkpoint, evaluation, processes, sharding, speed, step as step_lib
from symformer_jax.training.config import TrainConfig
from symformer_jax.training.logs import Curves, Window
from symformer_jax.training.optimizer import make_optimizer
from symformer_jax.training.state import TrainState, init_state


class Pending(NamedTuple):
  """A step whose metrics nobody has read yet: its number, this host's rows of its batch, its metrics."""

  step: int
  batch: pipeline.Batch
  metrics: dict[str, jax.Array]


@dataclasses.dataclass
class Run:
  """Everything a run in progress holds (mutable: it is the loop's only state)."""

  config: TrainConfig
  workdir: Path
  state: TrainState
  iterator: Any
  train_step: Callable
  evaluate: Callable[[Any], dict[str, float]]
  evaluate_decoding: Callable[[Any], dict[str, float]]
  checkpoints: checkpoint.Checkpoints
  curves: Curves
  window: Window
  meter: speed.Meter
  batch_sharding: NamedSharding
  saved_step: int
  pending: collections.deque[Pending] = dataclasses.field(default_factory=collections.deque)
  skips_in_a_row: int = 0


def jit_steps(
  config: TrainConfig, optimizer: optax.GradientTransformation, mesh: Mesh, abstract: TrainState
) -> tuple[jax.stages.Wrapped, jax.stages.Wrapped, Any]:
  """Jitted train and evaluation steps with explicit shardings."""
  shardings = sharding.state_sharding(abstract, mesh)
  batch = sharding.batch_sharding(mesh)
  everywhere = NamedSharding(mesh, PartitionSpec())
  layout = sharding.layout_in_use(abstract.params, mesh)
  train_step = jax.jit(
    step_lib.make_train_step(config, optimizer, layout=layout),
    in_shardings=(shardings, batch), out_shardings=(shardings, everywhere), donate_argnums=0)
  eval_step = jax.jit(
    step_lib.make_eval_step(config, layout=layout), in_shardings=(shardings.params, batch, everywhere),
    out_shardings=everywhere)
  return train_step, eval_step, shardings


def set_up(config: TrainConfig, workdir: Path, initial_params: Any = None) -> Run:
  """A new run, or the continuation of the one in `workdir`.

  Args:
    initial_params: parameters to start a new run from, instead of random ones.
  Raises:
    ModelError: when the checkpoint there belongs to another model; InputError, DataError: unusable data.
    OSError: where the disk has no room for a checkpoint of a new run.
  """
  workdir.mkdir(parents=True, exist_ok=True)
  mesh = sharding.make_mesh(config.mesh)
  sharding.check_batch(mesh, config.data.batch_size)
  optimizer = make_optimizer(config)
  abstract = jax.eval_shape(lambda: init_state(config, optimizer))
  train_step, eval_step, shardings = jit_steps(config, optimizer, mesh, abstract)
  iterator = pipeline.make_iterator(
    config.data, config.seed, num_variables=config.model.vocabulary.num_variables,
    process=(jax.process_index(), jax.process_count()))
  checkpoints = checkpoint.Checkpoints(workdir, keep=config.keep_checkpoints)
  restored = checkpoints.restore_newest(
    checkpoint.abstract_like(abstract, shardings), iterator, lambda meta: checkpoint.check_same_run(meta, config))
  if restored is None:
    checkpoints.check_room(abstract)
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
    config=config, workdir=workdir, state=state, iterator=iterator, train_step=train_step,
    evaluate=evaluation.make_evaluation(config, eval_step, batch_sharding),
    evaluate_decoding=evaluation.make_decoding_evaluation(config), checkpoints=checkpoints,
    curves=Curves(workdir, first_step=int(state.step), is_writer=processes.is_first()), window=window,
    meter=speed.Meter(config, speed.measure_matrix_rate(config.compute_dtype)), batch_sharding=batch_sharding,
    saved_step=int(state.step) if restored else -1)


def save(run: Run, validation: dict[str, float] | None = None) -> None:
  """Saves the run where it stands, once per step.

  Args:
    validation: metrics of this state, when it was just evaluated.
  """
  now = int(run.state.step)
  if now != run.saved_step:
    run.checkpoints.save(
      run.state, run.iterator, checkpoint.make_meta(run.config, run.window.sums), validation=validation)
    run.saved_step = now


# --- the phases of a step ------------------------------------------------------------------------------------------


def _step(run: Run, now: int, wants_stop: bool) -> bool:
  """One update; returns whether it is the last for now."""
  begin = time.perf_counter()
  batch, is_last = processes.agree(jax.tree.map(np.asarray, next(run.iterator)), wants_stop)
  on_devices = processes.to_devices(batch, run.batch_sharding)
  run.meter.add(batch.ids.shape[1] + 1, time.perf_counter() - begin)
  run.state, metrics = run.train_step(run.state, on_devices)
  run.pending.append(Pending(now, batch, metrics))
  return is_last


def _settle(run: Run, num_left: int) -> None:
  """Reads the metrics of all but the last `num_left` steps, which waits for those steps."""
  while len(run.pending) > num_left:
    step, batch, metrics = run.pending.popleft()
    values = jax.device_get(metrics)
    if values.pop("is_finite"):
      run.window.add(values)
      run.skips_in_a_row = 0
    else:
      _on_nonfinite(run, step, batch, values)


def _on_nonfinite(run: Run, step: int, batch: pipeline.Batch, values: dict[str, Any]) -> None:
  """Stops the run at a loss or gradient that is not finite, its batch saved; or counts an update left out."""
  what = f"step {step}: loss {values['loss']:g}, gradient norm {values['grad_norm']:g}"
  run.skips_in_a_row += 1
  if run.config.on_nonfinite == "skip" and run.skips_in_a_row < run.config.max_skips:
    run.window.skip()
    logging.warning("%s: skipped", what)
    return
  path = run.workdir / f"nonfinite_{jax.process_index()}.npz"
  with replacing(path) as temporary:
    np.savez(temporary, step=step, **{f"metric_{k}": v for k, v in values.items()}, **batch._asdict())
  raise InputError(
    f"{what}: not finite, or above config.max_gradient_norm; step and batch are in {path}, checkpoints are from "
    "before. Lower the learning rate, clip gradients (config.optimizer.clip_norm) or leave such updates out "
    "(config.on_nonfinite=skip)")


def _log(run: Run, now: int) -> None:
  """One line of the curve."""
  means = run.window.pop() | run.meter.pop()
  run.curves.write(now, "train", means)
  logging.info(
    "step %d/%d  cross entropy %.4f  constants %.4f  accuracy %.3f  %.0f examples/s  %.1f GFLOP/s (%.0f %%)  "
    "input wait %.1f %%%s", now, run.config.num_steps, *(means.get(k, math.nan) for k in (
      "cross_entropy", "constant_mse", "token_accuracy")), means["examples_per_s"], means["gflops_per_s"],
    100 * means["utilization"], 100 * means["input_wait"],
    f"  skipped {means['skipped']}" if "skipped" in means else "")


def _evaluate(run: Run, now: int) -> dict[str, float]:
  values = run.evaluate(run.state.params)
  if values:
    run.curves.write(now, "validation", values)
    logging.info("step %d  validation cross entropy %.4f", now, values["cross_entropy"])
  return values


def _evaluate_decoding(run: Run, now: int) -> None:
  values = run.evaluate_decoding(run.state.params)
  if values:
    run.curves.write(now, "decoding", values)
    logging.info("step %d  decoded: %s", now, "  ".join(f"{k} {v:.4f}" for k, v in values.items()))


def _look_around(run: Run, now: int) -> None:
  """Whatever is due after step `now`: a line, evaluations, a checkpoint."""
  config = run.config

  def is_due(every: int) -> bool:
    return every > 0 and (now % every == 0 or now == config.num_steps)

  is_log = now % config.log_every == 0
  if not (is_log or any(map(is_due, (config.eval_every, config.decoding.every, config.checkpoint_every)))):
    return
  _settle(run, 0)
  if is_log:
    _log(run, now)
  if is_due(config.decoding.every):
    _evaluate_decoding(run, now)
  validation = _evaluate(run, now) if is_due(config.eval_every) else {}
  if validation or is_due(config.checkpoint_every):
    save(run, validation or None)
  if is_log:
    run.meter.start()


def train(run: Run, *, should_stop: Callable[[], bool] = lambda: False) -> bool:
  """Steps until the end of the schedule or until `should_stop()` on any host; saves either way.

  Returns:
    True when the run is complete.
  Raises:
    InputError: at a loss or gradient that is not finite, unless those are skipped.
  """
  # On an accelerator a step runs while the next batch is made; on CPU steps that wait for each other can hang.
  num_ahead = 0 if jax.default_backend() == "cpu" else 1
  run.meter.start()
  for now in range(int(run.state.step) + 1, run.config.num_steps + 1):
    is_last = _step(run, now, should_stop())
    _settle(run, num_ahead)
    _look_around(run, now)
    if is_last:
      break
  _settle(run, 0)
  save(run)
  return int(run.state.step) >= run.config.num_steps


def close(run: Run) -> None:
  run.curves.close()
  run.checkpoints.close()
