"""Cross entropy over symbols and squared error over constants (SymFormer, eq. 1), or Huber's."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax


class Counts(NamedTuple):
  """What the means of a batch divide by; a part of the batch then gives its share of the mean.

  Attributes:
    targets: tokens to be predicted, the end tokens included; constants: those among them that are constants.
  """

  targets: jax.Array
  constants: jax.Array


def masked_mean(values: jax.Array, mask: jax.Array, count: jax.Array) -> jax.Array:
  """Sum over True entries divided by `count`, by 1 where that is 0."""
  return jnp.sum(jnp.where(mask, values, 0.0)) / jnp.maximum(count, 1)


def classification_loss(
  logits: jax.Array, targets: jax.Array, is_target: jax.Array, count: jax.Array, *, label_smoothing: float
) -> tuple[jax.Array, jax.Array]:
  """Mean cross entropy in nats per token.

  Args:
    logits: [B, L, V]; targets: ids [B, L]; is_target: [B, L].
    count: targets of the whole batch.
  Returns:
    The smoothed loss to train on, and the plain cross entropy to report.
  """
  plain = optax.softmax_cross_entropy_with_integer_labels(logits, targets)
  uniform = -jnp.mean(jax.nn.log_softmax(logits), axis=-1)
  smoothed = (1.0 - label_smoothing) * plain + label_smoothing * uniform
  return masked_mean(smoothed, is_target, count), masked_mean(plain, is_target, count)


def regression_loss(
  predicted: jax.Array, target_constants: jax.Array, is_constant: jax.Array, count: jax.Array,
  *, huber_delta: float | None = None,
) -> jax.Array:
  """Mean squared error of constants [B, L] at the positions where one stands, and only there.

  Args:
    predicted, target_constants, is_constant: [B, L]; count: constants of the whole batch.
    huber_delta: beyond this error the loss grows linearly, with the slope it has there (Huber 1964); None: nowhere.
  """
  if huber_delta is None:
    losses = jnp.square(predicted - target_constants)
  else:
    losses = 2 * optax.huber_loss(predicted, target_constants, delta=huber_delta)
  return masked_mean(losses, is_constant, count)
