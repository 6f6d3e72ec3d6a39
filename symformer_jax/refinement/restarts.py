"""Several starts per candidate: a few steps from each, many from the best (successive halving in two stages).

Candidates equal up to constants are one formula with several predicted starts: they can share them.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from symformer_jax.language import constants as constants_lib
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.refinement import solve
from symformer_jax.types import Array

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


def group_by_skeleton(ids: np.ndarray, vocab: Vocabulary) -> np.ndarray:
  """Of each candidate the first that is equal up to constants [K], int32, on the host; ids: [K, L]."""
  is_constant = np.asarray(vocab.is_constant)[ids]
  skeletons = np.where(is_constant, vocab.first_constant_id, ids)
  _, first, inverse = np.unique(skeletons, axis=0, return_index=True, return_inverse=True)
  return first[inverse.ravel()].astype(np.int32)


def fit_with_restarts(
  ids: Array, values: Array, x: Array, y: Array, weights: Array, *, vocab: Vocabulary,
  key: jax.Array, num_starts: int = 4, spread: float = 0.5, is_skeleton: bool = False,
  is_free: Array | None = None, dataset: Array | None = None, max_steps: int | None = None,
  group: Array | None = None, **options: Any,
) -> tuple[Array, solve.Fit]:
  """`solve.fit_candidates` from R starts each; of every candidate the best start is fitted to its end.

  Args:
    ids, values, x, y, weights, vocab, is_free, dataset, max_steps, options: as for `solve.fit_candidates`.
    key: consumed.
    num_starts: R, static; spread, is_skeleton: see `draw_starts`.
    group: the first candidate with the same formula up to constants, of each candidate [K] (`group_by_skeleton`);
      only the best start of a group is then fitted to its end, and all of the group get that fit. Candidates of a
      group belong to one data set and have the same free tokens.
  Returns:
    As `solve.fit_candidates`, one fit per candidate.
  """
  ids, values = jnp.asarray(ids), jnp.asarray(values)
  num = ids.shape[0]
  is_free = jnp.asarray(vocab.is_constant)[ids] if is_free is None else jnp.asarray(is_free)
  dataset = jnp.zeros(num, jnp.int32) if dataset is None else jnp.asarray(dataset)
  starts = draw_starts(key, values, is_free, num_starts=num_starts, spread=spread, is_skeleton=is_skeleton)
  each = functools.partial(jnp.repeat, repeats=num_starts, axis=0)  # candidate k's starts lie side by side
  screened, fit = solve.fit_candidates(
    each(ids), starts.reshape(num * num_starts, -1), x, y, weights, vocab=vocab, is_free=each(is_free),
    dataset=each(dataset), max_steps=SCREENING_STEPS, **options)
  loss, undefined = (jnp.asarray(a).reshape(num, num_starts) for a in (fit.loss, fit.num_undefined))
  # A start that is defined at more points is nearer, when none is defined at all.
  worst = jnp.finfo(loss.dtype).max
  rank = jnp.where(jnp.isfinite(loss), loss, worst * (0.5 + 0.5 * undefined / (1 + x.shape[-2])))
  best = jnp.argmin(rank, axis=1)
  chosen = jnp.asarray(screened).reshape(num, num_starts, -1)[jnp.arange(num), best]
  options = {"vocab": vocab, "dataset": dataset, "max_steps": max_steps, **options}
  if group is None:
    return solve.fit_candidates(ids, chosen, x, y, weights, is_free=is_free, **options)
  lowest = jnp.min(rank, axis=1)
  in_group = jnp.asarray(group)[None] == jnp.arange(num)[:, None]  # [group, candidate]
  winner = jnp.argmin(jnp.where(in_group, lowest[None], jnp.inf), axis=1)
  # Shapes stay as they are: whoever does not lead a group has nothing free, and takes one step.
  is_leader = jnp.asarray(group) == jnp.arange(num)
  fitted = solve.fit_candidates(ids, chosen[winner], x, y, weights, is_free=is_free & is_leader[:, None], **options)
  return jax.tree.map(lambda a: jnp.asarray(a)[group], fitted)
