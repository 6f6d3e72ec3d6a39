"""Every pair of columns: which two of thousands, with a constant, fit a target best; on the device.

The error of a pair follows from three products (of its two columns, and of each with the target), so that all pairs are
one matrix product: a Gram matrix, made tile by tile and reduced at once. Columns of one group differ in an inner
constant that is fitted later; of the pairs of two blocks of such columns only the best is kept.
"""

from typing import Any

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from symformer_jax import compilation
from symformer_jax.engine import interruption

# Columns of a block, and blocks of a tile: a tile of 1024 x 1024 products stays in the cache of one core.
BLOCK, TILE_BLOCKS = 16, 64
TILE = BLOCK * TILE_BLOCKS
# Tiles that programs are compiled for; how many of them are looked at is no part of the program.
NUM_TILES = (4, 12, 32, 96, 288)
# A column whose part orthogonal to another is a smaller share of it (squared) is the same to single precision: products
# of 128 rounded numbers are good to 1e-6.
INDEPENDENT, INDEPENDENT_WIDE = 1e-3, 1e-9
# Share of a constant target that is left of it in double precision; measured: 5e-16.
ROUNDING = 1e-15
# Pairs of blocks looked at again in double precision, at a time.
CHUNK = 512


def best_pairs(
  columns: np.ndarray, groups: np.ndarray, target: np.ndarray, weights: np.ndarray, *, num: int
) -> tuple[np.ndarray, np.ndarray]:
  """Pairs of columns that, with a constant, leave the least squared error: the best of each pair of blocks.

  Args:
    columns: [N, P], finite; groups: [P], of columns that differ in a number; target: [N]; weights: [N], not negative.
    num: pairs of blocks of columns that are looked at in double precision, those that single precision finds best.
  Returns:
    `(pairs [K, 2], errors [K])`, the least error first; errors as shares of the target's weighted variance.
  """
  units, goal = orthogonal_units(columns, target, weights)
  if not len(goal) or columns.shape[1] < 2:
    return np.zeros((0, 2), int), np.zeros(0)
  blocks = layout(groups)
  # Within a tile the first members of its blocks come first, then the second members: the best of a block is then a
  # maximum of whole vectors.
  order = blocks.reshape(-1, TILE_BLOCKS, BLOCK).transpose(0, 2, 1).ravel()
  num_tiles = compilation.bucket(len(order) // TILE, NUM_TILES)
  laid = np.zeros((num_tiles * TILE, padded_rows(len(target))), np.float32)
  used = order >= 0
  laid[: len(order)][used, : len(target)] = units[order[used]]
  along = np.zeros(num_tiles * TILE, np.float32)
  along[: len(order)][used] = units[order[used]] @ goal
  gains = np.asarray(_block_gains(laid, along, len(order) // TILE))
  num_blocks = np.sum(blocks[:, 0] >= 0)  # with those behind, which are empty, there is no pair
  chosen = _largest(gains[:num_blocks, :num_blocks], num)
  if not len(chosen):
    return np.zeros((0, 2), int), np.zeros(0)
  return _sharpened(units, goal, blocks, chosen)


def padded_rows(num_rows: int) -> int:
  """What rows are padded to for programs of few shapes."""
  return 64 * -(-num_rows // 64)


def orthogonal_units(columns: np.ndarray, target: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Unit vectors [P, N] of what a constant leaves of the columns [N, P], and [N] of the target.

  0 for columns of which nothing is left; no target [0] where nothing is left of it.
  """
  root = np.sqrt(weights / weights.sum())
  one = root / np.linalg.norm(root)
  goal = root * (target / max(np.max(np.abs(target)), np.finfo(np.float64).tiny))
  size = np.linalg.norm(goal)
  goal = goal - one * (one @ goal)
  norm = np.linalg.norm(goal)
  return _orthogonal(columns, root, one), goal / norm if norm > ROUNDING * size else np.zeros(0)


def _orthogonal(columns: np.ndarray, root: np.ndarray, one: np.ndarray) -> np.ndarray:
  """Unit vectors [P, N] of the parts of the columns that a constant leaves; 0 where it leaves nothing."""
  weighted = columns.T.astype(np.float64) * root
  scale = np.linalg.norm(weighted, axis=1)
  weighted -= np.outer(weighted @ one, one)
  norms = np.linalg.norm(weighted, axis=1)
  is_constant = norms <= INDEPENDENT_WIDE**0.5 * scale
  return np.where(is_constant[:, None], 0, weighted / np.where(is_constant, 1, norms)[:, None])


def layout(groups: np.ndarray) -> np.ndarray:
  """Places of columns in blocks [R, BLOCK], -1 where there is none: members of one group, or of several small ones.

  R is a multiple of TILE_BLOCKS.
  """
  order = np.argsort(groups, kind="stable")
  _, starts, sizes = np.unique(groups[order], return_index=True, return_counts=True)
  padded = []
  for start, size in zip(starts[sizes > 1], sizes[sizes > 1], strict=True):
    padded += [order[start : start + size], np.full(-size % BLOCK, -1)]
  flat = np.concatenate([*padded, order[starts[sizes == 1]]])
  filled = np.concatenate([flat, np.full(-len(flat) % TILE, -1)])
  return filled.reshape(-1, BLOCK)


@jax.jit
@compilation.with_all_digits
def _block_gains(units: jax.Array, along: jax.Array, num_used: jax.Array) -> jax.Array:
  """Share of the target explained by the best pair of two blocks [R, R], 0 in tiles below the diagonal.

  Args:
    units: unit vectors [R * BLOCK, N], in each tile the first members of all its blocks, then the second, ...
    along: their products with the target [R * BLOCK].
    num_used: tiles that are in use.
  """
  num_tiles = units.shape[0] // TILE
  units, along = units.reshape(num_tiles, TILE, -1), along.reshape(num_tiles, TILE)

  def tile(place: tuple[Any, Any, jax.Array]) -> tuple[Any, Any, jax.Array]:  # the places begin as whole numbers
    i, j, found = place
    across = units[i] @ units[j].T
    left = 1 - across * across
    rest = along[i][:, None] - across * along[j][None]
    gain = along[j][None] ** 2 + rest * rest / jnp.maximum(left, INDEPENDENT)
    gain = jnp.where(left > INDEPENDENT, gain, 0)
    best = gain.reshape(BLOCK, TILE_BLOCKS, BLOCK, TILE_BLOCKS).max((0, 2))
    found = lax.dynamic_update_slice(found, best, (i * TILE_BLOCKS, j * TILE_BLOCKS))
    is_last = j + 1 == num_used
    return jnp.where(is_last, i + 1, i), jnp.where(is_last, i + 1, j + 1), found

  size = num_tiles * TILE_BLOCKS
  begin = 0, 0, jnp.zeros((size, size), units.dtype)
  return lax.while_loop(lambda place: place[0] < num_used, tile, begin)[2]


def _largest(gains: np.ndarray, num: int) -> np.ndarray:
  """Places [K, 2] of the largest entries above 0."""
  gains = np.triu(gains)  # tiles on the diagonal have both halves
  places = np.flatnonzero(gains > 0)  # a partition would take seconds for half a matrix of zeros
  if num < len(places):
    places = places[np.argpartition(gains.ravel()[places], -num)[-num:]]
  return np.stack(np.unravel_index(places, gains.shape), axis=1)


def _sharpened(
  units: np.ndarray, goal: np.ndarray, blocks: np.ndarray, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
  """The best pair of columns of each pair of blocks, in double precision; see `best_pairs`."""
  along = units @ goal
  pairs, errors = [], []
  for begin in range(0, len(chosen), CHUNK):
    interruption.check()
    first, second = (blocks[chosen[begin : begin + CHUNK, side]] for side in (0, 1))
    across = units[first] @ units[second].transpose(0, 2, 1)
    left = 1 - across**2
    is_pair = (left > INDEPENDENT_WIDE) & (first >= 0)[:, :, None] & (second >= 0)[:, None, :]
    rest = along[first][:, :, None] - across * along[second][:, None, :]
    gain = np.where(is_pair, along[second][:, None, :] ** 2 + rest**2 / np.where(is_pair, left, 1), 0)
    gain = gain.reshape(len(first), BLOCK * BLOCK)
    best, rows = gain.argmax(axis=1), np.arange(len(first))
    pairs.append(np.stack([first[rows, best // BLOCK], second[rows, best % BLOCK]], axis=1))
    errors.append(1 - gain[rows, best])
  all_errors = np.concatenate(errors)
  best_first = np.argsort(all_errors, kind="stable")
  best_first = best_first[all_errors[best_first] < 1]
  return np.concatenate(pairs)[best_first], all_errors[best_first]


def best_triples(
  columns: np.ndarray, groups: np.ndarray, target: np.ndarray, weights: np.ndarray, *, num: int
) -> np.ndarray:
  """Triples of columns that, with a constant, leave the least squared error: every one of a few hundred is looked at.

  Args:
    columns: [N, P], finite; groups: [P], of columns that differ in a number; target: [N]; weights: [N], not negative.
    num: triples kept of each first column.
  Returns:
    Triples [K, 3], the least error first, of each three groups the best.
  """
  units, goal = orthogonal_units(columns, target, weights)
  usable = np.flatnonzero(np.any(units != 0, axis=1))
  if not len(goal) or len(usable) < 3:
    return np.zeros((0, 3), int)
  gram, along = units[usable] @ units[usable].T, units[usable] @ goal
  found, gains = [], []
  for first in range(len(usable) - 2):
    interruption.check()
    seconds, thirds, gain = _beside(first, gram, along, num)
    found.append(np.stack([np.full(len(gain), first), seconds, thirds], axis=1))
    gains.append(gain)
  order = np.argsort(-np.concatenate(gains), kind="stable")
  triples = usable[np.concatenate(found)[order]]
  _, best = np.unique(np.sort(groups[triples], axis=1), axis=0, return_index=True)
  return triples[np.sort(best)]


def _beside(first: int, gram: np.ndarray, along: np.ndarray, num: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Pairs of later columns that, beside one, explain most: `(seconds [K], thirds [K], shares of the target [K])`."""
  across = gram[first, first + 1:]
  left = 1 - across**2
  is_other = left > INDEPENDENT_WIDE
  scale = np.where(is_other, left, np.inf) ** -0.5
  rest = (along[first + 1:] - across * along[first]) * scale
  between = (gram[first + 1:, first + 1:] - np.outer(across, across)) * np.outer(scale, scale)
  apart = 1 - between**2
  is_pair = np.triu((apart > INDEPENDENT_WIDE) & is_other & is_other[:, None], 1)
  gain = rest**2 + (rest[:, None] - between * rest) ** 2 / np.where(is_pair, apart, np.inf)
  flat = np.flatnonzero(is_pair)
  if num < len(flat):
    flat = flat[np.argpartition(gain.ravel()[flat], -num)[-num:]]
  seconds, thirds = np.unravel_index(flat, gain.shape)
  return first + 1 + seconds, first + 1 + thirds, along[first] ** 2 + gain[seconds, thirds]
