"""Several starts per candidate: a few steps from each, many from the best (successive halving in two stages)."""

import jax
import jax.numpy as jnp

from symformer_jax.language import constants as constants_lib
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.refinement import solve

# From a good start eight steps of LM are mostly the whole way, from a bad one they tell.
SCREENING_STEPS = 8


def draw_starts(
  key: jax.Array, values: jax.Array, is_free: jax.Array, *, num_starts: int, spread: float, is_skeleton: bool
) -> jax.Array:
  """Starts around the predicted constants, or from the distribution that the training data have.

  Args:
    key: consumed.
    values: numbers at free tokens [K, L]; is_free: which these are [K, L].
    num_starts: R; the first is `values` itself.
    spread: standard deviation of log |c| around the prediction; the sign is believed.
    is_skeleton: whether `values` mean nothing: all starts are drawn.
  Returns:
    [K, R, L].
  """
  shape = (values.shape[0], num_starts, values.shape[1])
  if is_skeleton:
    return jnp.where(is_free[:, None], jax.random.uniform(
      key, shape, values.dtype, -constants_lib.MAX_LEAF, constants_lib.MAX_LEAF), values[:, None])
  factor = jnp.exp(spread * jax.random.normal(key, shape, values.dtype)).at[:, 0].set(1)
  return jnp.where(is_free[:, None], values[:, None] * factor, values[:, None])


def fit_with_restarts(
  ids: jax.Array, values: jax.Array, x: jax.Array, y: jax.Array, weights: jax.Array, *, vocab: Vocabulary,
  key: jax.Array, num_starts: int = 4, spread: float = 0.5, is_skeleton: bool = False,
  is_free: jax.Array | None = None, dataset: jax.Array | None = None, max_steps: int | None = None, **options,
) -> tuple[jax.Array, solve.Fit]:
  """`solve.fit_candidates` from R starts each; of every candidate the best start is fitted to its end.

  Args:
    ids, values, x, y, weights, vocab, is_free, dataset, max_steps, options: as for `solve.fit_candidates`.
    key: consumed.
    num_starts: R, static; spread, is_skeleton: see `draw_starts`.
  Returns:
    As `solve.fit_candidates`, one fit per candidate.
  """
  ids, values = jnp.asarray(ids), jnp.asarray(values)
  num = ids.shape[0]
  is_free = jnp.asarray(vocab.is_constant)[ids] if is_free is None else jnp.asarray(is_free)
  dataset = jnp.zeros(num, jnp.int32) if dataset is None else jnp.asarray(dataset)
  starts = draw_starts(key, values, is_free, num_starts=num_starts, spread=spread, is_skeleton=is_skeleton)
  each = lambda a: jnp.repeat(a, num_starts, axis=0)  # noqa: E731 - candidate k's starts lie side by side
  screened, fit = solve.fit_candidates(
    each(ids), starts.reshape(num * num_starts, -1), x, y, weights, vocab=vocab, is_free=each(is_free),
    dataset=each(dataset), max_steps=SCREENING_STEPS, **options)
  loss, undefined = (jnp.asarray(a).reshape(num, num_starts) for a in (fit.loss, fit.num_undefined))
  # A start that is defined at more points is nearer, when none is defined at all.
  worst = jnp.finfo(loss.dtype).max
  rank = jnp.where(jnp.isfinite(loss), loss, worst * (0.5 + 0.5 * undefined / (1 + x.shape[-2])))
  best = jnp.argmin(rank, axis=1)
  chosen = jnp.asarray(screened).reshape(num, num_starts, -1)[jnp.arange(num), best]
  return solve.fit_candidates(ids, chosen, x, y, weights, vocab=vocab, is_free=is_free, dataset=dataset,
                              max_steps=max_steps, **options)
