"""One training step and one evaluation step, as pure functions of state and batch."""

from collections.abc import Callable
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from symformer_jax.data import columns, points as points_lib, sequences
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


class Examples(NamedTuple):
  """A batch as the network takes it; all with leading axis B.

  Attributes:
    points: [B, N, D+1]; is_valid: [B, N].
    seqs: inputs and targets of the decoder.
    input_constants: what the decoder reads in place of `seqs.constants`, noise included [B, L].
  """

  points: jax.Array
  is_valid: jax.Array
  seqs: sequences.Sequences
  input_constants: jax.Array


def prepare(
  key: jax.Array, batch: Batch, config: TrainConfig, points_config: points_lib.PointsConfig
) -> tuple[Examples, jax.Array]:
  """Gives variables their columns, draws the points of a batch and writes its sequences in the model's encoding.

  Returns:
    The examples, still without noise on their constants, and the number of masked points per data set [B].
  """
  vocab = config.model.vocabulary
  extended = Vocabulary(vocab.num_variables)
  ids, mantissas, domains = (jnp.asarray(a) for a in batch)
  if points_config.is_placed:
    ids, domains = columns.place(
      jax.random.fold_in(key, 1), ids, domains, vocab=extended,
      distractor_probability=points_config.distractor_probability, max_distractors=points_config.max_distractors,
      spread_probability=points_config.spread_probability)
  points, is_valid, mantissas, num_masked = points_lib.draw_points(
    key, ids, mantissas, domains, vocab=extended, config=points_config)
  ids, constants = sequences.to_encoding(ids, mantissas, vocab)
  seqs = sequences.teacher_forcing(ids, constants)
  return Examples(points, is_valid, seqs, seqs.constants), num_masked


def _is_constant(ids: jax.Array, config: TrainConfig) -> jax.Array:
  return jnp.asarray(np.asarray(config.model.vocabulary.is_constant))[ids]


def count_targets(examples: Examples, config: TrainConfig) -> losses.Counts:
  """What the losses of these examples are means over."""
  seqs = examples.seqs
  return losses.Counts(jnp.sum(seqs.is_target), jnp.sum(_is_constant(seqs.targets, config)))


def compute_loss(
  params: Any, examples: Examples, counts: losses.Counts, *, config: TrainConfig, weight: jax.Array,
  dropout_key: jax.Array | None, layout: Any = None,
) -> tuple[jax.Array, Metrics]:
  """Cross entropy plus lambda times squared error (SymFormer, eq. 1; or Huber's loss), and the parts of it.

  Args:
    counts: of the whole batch, of which the examples may be a part: the parts' losses then add up to its loss.
    weight: lambda.
    dropout_key: consumed; None switches dropout off.
    layout: shardings of the parameters while they are in use; None leaves them as they are.
  """
  seqs = examples.seqs
  params = _cast(params, config.compute_dtype)
  if layout is not None:
    params = jax.lax.with_sharding_constraint(params, layout)
  model = symformer.merge(config.model, params)
  logits, predicted = model(
    examples.points, examples.is_valid, seqs.ids, examples.input_constants.astype(config.compute_dtype),
    dropout_key=dropout_key, remat=config.remat)
  smoothed, plain = losses.classification_loss(
    logits, seqs.targets, seqs.is_target, counts.targets, label_smoothing=config.loss.label_smoothing)
  regress = functools.partial(
    losses.regression_loss, predicted, seqs.target_constants, _is_constant(seqs.targets, config), counts.constants)
  squared = regress()
  has_values = config.model.vocabulary.encoding != "skeleton"
  loss = smoothed + (weight * regress(huber_delta=config.loss.huber_delta) if has_values else 0.0)
  is_right = jnp.argmax(logits, axis=-1) == seqs.targets
  return loss, {
    "loss": loss, "cross_entropy": plain, "constant_mse": squared,
    "token_accuracy": losses.masked_mean(is_right, seqs.is_target, counts.targets),
  }


def accumulate(grad: Callable, params: Any, examples: Examples, dropout_key: jax.Array | None, num_parts: int) -> Any:
  """Gradients and metrics of a batch as sums over its parts, one part's activations in memory at a time.

  Args:
    grad: `(params, examples, dropout_key) -> (gradients, metrics)`, shares of the whole batch's means.
    num_parts: a divisor of B. Part i takes every num_parts-th example, so that each device works on all parts.
  """
  if num_parts == 1:
    return grad(params, examples, dropout_key)
  parts = jax.tree.map(
    lambda a: jnp.swapaxes(a.reshape(a.shape[0] // num_parts, num_parts, *a.shape[1:]), 0, 1), examples)
  keys = None if dropout_key is None else jax.random.split(dropout_key, num_parts)

  def add(total: Any, part: tuple[Examples, jax.Array | None]) -> tuple[Any, None]:
    return jax.tree.map(jnp.add, total, grad(params, *part)), None

  zeros = jax.tree.map(
    lambda a: jnp.zeros(a.shape, a.dtype),
    jax.eval_shape(grad, params, *jax.tree.map(lambda a: a[0], (parts, keys))))
  return jax.lax.scan(add, zeros, (parts, keys))[0]


def make_train_step(
  config: TrainConfig, optimizer: optax.GradientTransformation, *, layout: Any = None
) -> Callable[[TrainState, Batch], tuple[TrainState, Metrics]]:
  """The update `(state, batch) -> (state, metrics)`, to be jitted by the caller with its shardings.

  Args:
    layout: see `compute_loss`.
  """
  weight_schedule = schedules.regression_weight(config.loss, config.num_steps)
  noise_schedule = schedules.noise_std(config.loss, config.num_steps)
  rate_schedule = schedules.learning_rate(config.optimizer, config.num_steps, config.loss.update_every)

  def train_step(state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
    keys = jax.random.split(jax.random.fold_in(jax.random.wrap_key_data(state.key), state.step), 3)
    examples, num_masked = prepare(keys[0], batch, config, config.points)
    weight, std = weight_schedule(state.step), noise_schedule(state.step)
    examples = examples._replace(input_constants=add_constant_noise(
      keys[1], examples.input_constants, std, is_bounded=config.model.vocabulary.encoding == "extended"))
    loss_fn = functools.partial(
      compute_loss, counts=count_targets(examples, config), config=config, weight=weight, layout=layout)
    grad = jax.grad(lambda params, part, key: loss_fn(params, part, dropout_key=key), has_aux=True)
    grads, metrics = accumulate(
      grad, state.params, examples, keys[2] if config.model.dropout > 0 else None, config.accumulation)
    norm = optax.global_norm(grads)
    is_finite = jnp.isfinite(norm) & jnp.isfinite(metrics["loss"])
    if config.max_gradient_norm is not None:
      is_finite &= norm <= config.max_gradient_norm
      grads = jax.tree.map(lambda leaf: jnp.where(is_finite, leaf, jnp.nan), grads)  # for the optimizer, which skips it
    updates, opt_state = optimizer.update(grads, state.opt_state, state.params)
    params = optax.apply_updates(state.params, updates)
    metrics |= {
      "grad_norm": norm, "learning_rate": rate_schedule(state.step), "lambda": weight, "noise_std": std,
      "masked_points": jnp.mean(num_masked / examples.points.shape[1]),
      "is_finite": is_finite,
    }
    return TrainState(state.step + 1, params, opt_state, state.key), metrics

  return train_step


def make_eval_step(config: TrainConfig, *, layout: Any = None) -> Callable[[Any, Batch, jax.Array], Metrics]:
  """`(params, batch, key) -> metrics` on clean full sets of points: no noise, no subsets, no dropout."""
  clean = points_lib.PointsConfig(num_points=config.points.num_points, draws=config.points.draws)

  def eval_step(params: Any, batch: Batch, key: jax.Array) -> Metrics:
    examples, _ = prepare(key, batch, config, clean)
    _, metrics = compute_loss(
      params, examples, count_targets(examples, config), config=config, weight=jnp.float32(config.loss.lambda_end),
      dropout_key=None, layout=layout)
    return metrics

  return eval_step
