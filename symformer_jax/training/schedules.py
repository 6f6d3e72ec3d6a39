"""Learning rate, lambda and noise as functions of the step (optax schedules)."""

import jax
import jax.numpy as jnp
import optax

from symformer_jax.errors import InputError
from symformer_jax.training.config import LossConfig, OptimizerConfig


def in_stairs(schedule: optax.Schedule, every: int) -> optax.Schedule:
  """Holds a schedule for `every` steps at a time, as the paper updates once per "epoch" of 977 steps."""
  if every <= 1:
    return schedule
  return lambda step: schedule(step // every * every)


def rsqrt_with_warmup(width: int, warmup_steps: int) -> optax.Schedule:
  """width^-0.5 min(s^-0.5, s warmup^-1.5) / 5 (Vaswani et al. 2017, eq. 3; SymFormer, sec. 4.1), s = step + 1."""
  def schedule(step: jax.typing.ArrayLike) -> jax.Array:
    s = jnp.asarray(step, jnp.float32) + 1.0
    return width**-0.5 * jnp.minimum(s**-0.5, s * warmup_steps**-1.5) / 5.0
  return schedule


def learning_rate(config: OptimizerConfig, num_steps: int, update_every: int) -> optax.Schedule:
  """The schedule named by the configuration.

  The stairs never apply to the warm-up of `wsd`, which may be shorter than one stair.
  """
  if config.schedule == "rsqrt":
    return in_stairs(rsqrt_with_warmup(config.model_width, config.warmup_steps), update_every)
  if config.schedule == "wsd":
    decay_start = num_steps - config.decay_steps
    return optax.join_schedules(
      [optax.linear_schedule(0.0, config.peak, config.warmup_steps),
       optax.constant_schedule(config.peak),
       optax.linear_schedule(config.peak, 0.0, max(config.decay_steps, 1))],
      [config.warmup_steps, decay_start])
  raise InputError(f"unknown learning rate schedule {config.schedule!r}: expected 'rsqrt' or 'wsd'")


def regression_weight(config: LossConfig, num_steps: int) -> optax.Schedule:
  """lambda: `lambda_start` for `lambda_delay` steps, then (1 - cos) / 2 of the way up to `lambda_end` at the end.

  SymFormer, sec. 3.2, from 0.
  """
  def schedule(step: jax.typing.ArrayLike) -> jax.Array:
    span = max(num_steps - config.lambda_delay, 1)
    part = jnp.clip((step - config.lambda_delay) / span, 0.0, 1.0)
    rise = config.lambda_end - config.lambda_start
    return config.lambda_start + rise * 0.5 * (1.0 - jnp.cos(jnp.pi * part))
  return in_stairs(schedule, config.update_every)


def noise_std(config: LossConfig, num_steps: int) -> optax.Schedule:
  """Standard deviation of the noise on input constants: cosine from `noise_std` to 0."""
  return in_stairs(optax.cosine_decay_schedule(config.noise_std, num_steps), config.update_every)
