"""Draws the points of equations on the device, afresh at every visit (docs/design.md, decision 3).

A point whose value is not finite or passes the generator's bound is drawn again; what is still bad after
that is masked: it is counted and never enters the loss.
"""

from collections.abc import Callable
import dataclasses

import jax
import jax.numpy as jnp

from symformer_jax.language import interpreter
from symformer_jax.language.vocabulary import Vocabulary

# The generator's bound on values (SymFormer, sec. 3.3).
LARGEST_VALUE = 1e7
# The least standard deviation of noise on y, relative to the RMS of y.
LEAST_NOISE = 1e-4


@dataclasses.dataclass(frozen=True)
class PointsConfig:
  """How points are drawn; everything after `num_points` is off in the paper's configuration.

  Attributes:
    num_points: N, rows of the points array.
    draws: candidates drawn per row, so that bad ones can be replaced.
    min_points: when given, a random share of the data sets keeps only min_points ... num_points rows.
    subset_probability: that share.
    subbox_probability: share of data sets on a random part of their box, unevenly filled.
    noise_probability: share of data sets whose y carries noise.
    max_noise: largest standard deviation of that noise, relative to the RMS of y (log-uniform from 1e-4).
    resample_probability: share of equations that get new mantissas, kept only when all points stay finite.
    log_probability: share of columns on one side of 0 whose values are even in their logarithm.
    proportional_share: share of the noise that is relative to each value of y instead of to their RMS.
    distractor_probability, max_distractors, spread_probability: see `data.columns.place`, which runs when one of the
      probabilities is above 0.
  """

  num_points: int = 100
  draws: int = 2
  min_points: int | None = None
  subset_probability: float = 0.5
  subbox_probability: float = 0.0
  noise_probability: float = 0.0
  max_noise: float = 0.1
  resample_probability: float = 0.0
  log_probability: float = 0.0
  proportional_share: float = 0.0
  distractor_probability: float = 0.0
  max_distractors: int = 2
  spread_probability: float = 0.0

  @property
  def is_placed(self) -> bool:
    """Whether columns are given to variables anew."""
    return self.distractor_probability > 0 or self.spread_probability > 0


def draw_x(
  key: jax.Array, domains: jax.Array, num_draws: int, *, subbox_probability: float, log_probability: float = 0.0
) -> jax.Array:
  """Uniform points of each box, or of an unevenly filled part of it.

  Args:
    key: consumed.
    domains: [B, D, 2], lower and upper end.
    log_probability: see `PointsConfig`.
  Returns:
    x [B, num_draws, D].
  """
  batch, num_vars = domains.shape[:2]
  keys = jax.random.split(key, 4)
  unit = jax.random.uniform(keys[0], (batch, num_draws, num_vars))
  low, high = domains[:, None, :, 0], domains[:, None, :, 1]
  if subbox_probability > 0:
    is_part = jax.random.bernoulli(keys[1], subbox_probability, (batch, 1, 1))
    ends = jnp.sort(jax.random.uniform(keys[2], (2, batch, 1, num_vars)), axis=0)
    # At least a tenth of the box: on less, most functions are straight lines.
    start, width = ends[0] * 0.9, 0.1 + 0.9 * (ends[1] - ends[0])
    width = jnp.minimum(width, 1 - start)
    density = jnp.exp(0.7 * jax.random.normal(keys[3], (batch, 1, num_vars)))
    unit = jnp.where(is_part, start + width * unit**density, unit)
  x = low + (high - low) * unit
  if log_probability > 0:
    even_key = jax.random.fold_in(keys[3], 1)
    is_even = jax.random.bernoulli(even_key, log_probability, (batch, 1, num_vars))
    # A ratio of 1 where the interval touches or holds 0: these stay as they are.
    has_ratio = low * high > 0
    ratio = jnp.where(has_ratio, high / jnp.where(has_ratio, low, 1.0), 1.0)
    x = jnp.where(is_even & has_ratio, low * ratio**unit, x)
  return x


def select_valid(x: jax.Array, y: jax.Array, num_points: int) -> tuple[jax.Array, jax.Array]:
  """The first `num_points` good rows of each data set, bad ones last.

  Args:
    x: [B, M, D]; y: [B, M], M >= num_points.
  Returns:
    points [B, N, D+1], 0 where masked, and is_valid [B, N].
  """
  is_good = jnp.isfinite(y) & (jnp.abs(y) <= LARGEST_VALUE)
  order = jnp.argsort(~is_good, axis=1, stable=True)[:, :num_points]
  points = jnp.concatenate([x, y[..., None]], axis=-1)
  points = jnp.take_along_axis(points, order[..., None], axis=1)
  is_valid = jnp.take_along_axis(is_good, order, axis=1)
  return jnp.where(is_valid[..., None], points, 0.0), is_valid


def draw_points(
  key: jax.Array, ids: jax.Array, mantissas: jax.Array, domains: jax.Array, *, vocab: Vocabulary, config: PointsConfig
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
  """Points for a batch of equations.

  Args:
    key: consumed.
    ids: prefix expressions [B, L] in the extended encoding of `vocab`; mantissas: [B, L].
    domains: [B, D, 2].
  Returns:
    points [B, N, D+1], is_valid [B, N], the mantissas [B, L] (new ones where resampled) and the number of
    points masked because no good draw was left [B].
  """
  keys = jax.random.split(key, 5)
  x = draw_x(keys[0], domains, config.num_points * config.draws, subbox_probability=config.subbox_probability,
             log_probability=config.log_probability)

  def evaluate(some_mantissas: jax.Array) -> jax.Array:
    values = interpreter.constant_values(ids, some_mantissas, vocab)
    return interpreter.evaluate_many(ids, values, x, vocab=vocab)

  y = evaluate(mantissas)
  if config.resample_probability > 0:
    mantissas, y = _resample(keys[1], mantissas, y, evaluate, config.resample_probability)
  points, is_valid = select_valid(x, y, config.num_points)
  num_masked = jnp.sum(~is_valid, axis=1)
  if config.noise_probability > 0:
    points = _add_noise(keys[2], points, is_valid, config)
  if config.min_points is not None:
    is_valid = is_valid & _random_subset(keys[3], is_valid.shape, config)
  return jnp.where(is_valid[..., None], points, 0.0), is_valid, mantissas, num_masked


def _resample(
  key: jax.Array, mantissas: jax.Array, y: jax.Array, evaluate: Callable[[jax.Array], jax.Array], probability: float
) -> tuple[jax.Array, jax.Array]:
  """New mantissas of the same sign and exponent, kept where every point of the data set stays good."""
  keys = jax.random.split(key)
  is_chosen = jax.random.bernoulli(keys[0], probability, (mantissas.shape[0], 1))
  fresh = jnp.sign(mantissas) * jax.random.uniform(keys[1], mantissas.shape, minval=0.1, maxval=1.0)
  new_y = evaluate(jnp.where(is_chosen, fresh, mantissas))
  is_good = jnp.all(jnp.isfinite(new_y) & (jnp.abs(new_y) <= LARGEST_VALUE), axis=1, keepdims=True)
  is_new = is_chosen & is_good
  return jnp.where(is_new, fresh, mantissas), jnp.where(is_new, new_y, y)


def _add_noise(key: jax.Array, points: jax.Array, is_valid: jax.Array, config: PointsConfig) -> jax.Array:
  """Gaussian noise of a random level on y, even or in proportion to it, for a random share of the data sets."""
  level_key, choice_key, noise_key = jax.random.split(key, 3)
  batch, num_points = is_valid.shape
  y = points[..., -1]
  count = jnp.maximum(jnp.sum(is_valid, axis=1, keepdims=True), 1)
  rms = jnp.sqrt(jnp.sum(jnp.where(is_valid, y, 0.0) ** 2, axis=1, keepdims=True) / count)
  log_level = jax.random.uniform(level_key, (batch, 1), minval=jnp.log(LEAST_NOISE), maxval=jnp.log(config.max_noise))
  is_noisy = jax.random.bernoulli(choice_key, config.noise_probability, (batch, 1))
  scale = rms
  if config.proportional_share > 0:
    kind_key = jax.random.fold_in(choice_key, 1)
    is_proportional = jax.random.bernoulli(kind_key, config.proportional_share, (batch, 1))
    scale = jnp.where(is_proportional, jnp.abs(y), rms)
  noise = jnp.where(is_noisy, jnp.exp(log_level), 0.0) * scale * jax.random.normal(noise_key, (batch, num_points))
  return points.at[..., -1].set(y + noise)


def _random_subset(key: jax.Array, shape: tuple[int, ...], config: PointsConfig) -> jax.Array:
  """True for the first n rows, n random for a share of the data sets and N for the others."""
  keys = jax.random.split(key)
  batch, num_points = shape
  # Log-uniform: small tables are as interesting as large ones.
  low, high = jnp.log(config.min_points or num_points), jnp.log(num_points + 1)
  count = jnp.floor(jnp.exp(jax.random.uniform(keys[0], (batch, 1), minval=low, maxval=high)))
  is_part = jax.random.bernoulli(keys[1], config.subset_probability, (batch, 1))
  return jnp.arange(num_points)[None] < jnp.where(is_part, count, num_points)
