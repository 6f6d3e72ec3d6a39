"""One training step and one evaluation step, as pure functions of state and batch."""

from collections.abc import Callable
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from symformer_jax.data import points as points_lib, sequences
from symformer_jax.data.pipeline import Batch
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.model import symformer
from symformer_jax.training import losses, schedules
from symformer_jax.training.config import TrainConfig
from symformer_jax.training.state import TrainState

Metrics = dict[str, jax.Array]


def _cast(tree: Any, dtype: str) -> Any:
  return jax.tree.map(lambda leaf: leaf.astype(dtype) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf, tree)


def add_constant_noise(key: jax.Array, constants: jax.Array, std: jax.Array, *, is_bounded: bool) -> jax.Array:
  """Noise on the non-zero input constants [B, L], clipped to [-1, 1] where they are mantissas (SymFormer, 3.2)."""
  noisy = constants + std * jax.random.normal(key, constants.shape)
  noisy = jnp.clip(noisy, -1.0, 1.0) if is_bounded else noisy
  return jnp.where(constants != 0, noisy, 0.0)


def prepare(key: jax.Array, batch: Batch, config: TrainConfig, points_config: points_lib.PointsConfig):
  """Draws the points of a batch and writes its sequences in the model's encoding.

  Returns:
    points [B, N, D+1], is_valid [B, N], Sequences, masked points per data set [B].
  """
  vocab = config.model.vocabulary
  points, is_valid, mantissas, num_masked = points_lib.draw_points(
    key, batch.ids, batch.mantissas, batch.domains, vocab=Vocabulary(vocab.num_variables), config=points_config)
  ids, constants = sequences.to_encoding(batch.ids, mantissas, vocab)
  return points, is_valid, sequences.teacher_forcing(ids, constants), num_masked


def compute_loss(
  params: Any, points: jax.Array, is_valid: jax.Array, seqs: sequences.Sequences, *,
  config: TrainConfig, weight: jax.Array, input_constants: jax.Array, dropout_key: jax.Array | None,
) -> tuple[jax.Array, Metrics]:
  """Cross entropy plus lambda times squared error (SymFormer, eq. 1), and the parts of it."""
  model = symformer.merge(config.model, _cast(params, config.compute_dtype))
  logits, predicted = model(
    points, is_valid, seqs.ids, input_constants.astype(config.compute_dtype), dropout_key=dropout_key)
  smoothed, plain = losses.classification_loss(
    logits, seqs.targets, seqs.is_target, label_smoothing=config.loss.label_smoothing)
  is_constant = jnp.asarray(np.asarray(config.model.vocabulary.is_constant))[seqs.targets]
  squared = losses.regression_loss(predicted, seqs.target_constants, is_constant)
  has_values = config.model.vocabulary.encoding != "skeleton"
  loss = smoothed + (weight * squared if has_values else 0.0)
  is_right = jnp.argmax(logits, axis=-1) == seqs.targets
  return loss, {
    "loss": loss, "cross_entropy": plain, "constant_mse": squared,
    "token_accuracy": losses.masked_mean(is_right, seqs.is_target),
  }


def make_train_step(
  config: TrainConfig, optimizer: optax.GradientTransformation
) -> Callable[[TrainState, Batch], tuple[TrainState, Metrics]]:
  """The update `(state, batch) -> (state, metrics)`, to be jitted by the caller with its shardings."""
  weight_schedule = schedules.regression_weight(config.loss, config.num_steps)
  noise_schedule = schedules.noise_std(config.loss, config.num_steps)
  rate_schedule = schedules.learning_rate(config.optimizer, config.num_steps, config.loss.update_every)

  def train_step(state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
    keys = jax.random.split(jax.random.fold_in(jax.random.wrap_key_data(state.key), state.step), 3)
    points, is_valid, seqs, num_masked = prepare(keys[0], batch, config, config.points)
    weight, std = weight_schedule(state.step), noise_schedule(state.step)
    noisy = add_constant_noise(
      keys[1], seqs.constants, std, is_bounded=config.model.vocabulary.encoding == "extended")
    loss_fn = functools.partial(
      compute_loss, points=points, is_valid=is_valid, seqs=seqs, config=config, weight=weight,
      input_constants=noisy, dropout_key=keys[2] if config.model.dropout > 0 else None)
    grads, metrics = jax.grad(lambda p: loss_fn(p), has_aux=True)(state.params)
    updates, opt_state = optimizer.update(grads, state.opt_state, state.params)
    params = optax.apply_updates(state.params, updates)
    metrics |= {
      "grad_norm": optax.global_norm(grads), "learning_rate": rate_schedule(state.step), "lambda": weight,
      "noise_std": std, "masked_points": jnp.mean(num_masked / points.shape[1]),
    }
    return TrainState(state.step + 1, params, opt_state, state.key), metrics

  return train_step


def make_eval_step(config: TrainConfig) -> Callable[[Any, Batch, jax.Array], Metrics]:
  """`(params, batch, key) -> metrics` on clean full sets of points: no noise, no subsets, no dropout."""
  clean = points_lib.PointsConfig(num_points=config.points.num_points, draws=config.points.draws)

  def eval_step(params: Any, batch: Batch, key: jax.Array) -> Metrics:
    points, is_valid, seqs, _ = prepare(key, batch, config, clean)
    _, metrics = compute_loss(
      params, points, is_valid, seqs, config=config, weight=jnp.float32(config.loss.lambda_end),
      input_constants=seqs.constants, dropout_key=None)
    return metrics

  return eval_step
