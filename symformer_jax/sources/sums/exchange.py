"""Best subsets by exchange: few columns of thousands whose sum, with a constant, fits a target best; on the device.

Sets grow by the column that leaves least. Of three right columns two are seldom one of the best pairs, but mostly part
of one of the best triples: in these each column in turn is exchanged for the best beside the others, as long as that
finds new sets (Miller, Subset Selection in Regression, 2002, sec. 3.4).
"""

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from symformer_jax import compilation
from symformer_jax.engine import interruption
from symformer_jax.engine.config import SubsetsConfig
from symformer_jax.sources.sums import pairs

# Sets that get a column at a time, and how many times programs are compiled for; how many are needed is no part of
# them.
SETS_AT_ONCE, NUM_CALLS = 64, (16, 64)


def best_subsets(
  columns: np.ndarray, groups: np.ndarray, target: np.ndarray, weights: np.ndarray, *, max_size: int,
  config: SubsetsConfig,
) -> list[np.ndarray]:
  """Sets of two columns, of three, ... that leave little error.

  Args:
    columns: [N, P], finite; groups: [P], of columns that differ in a number; target: [N]; weights: [N], not negative.
    max_size: columns of a set at most.
    config: how many sets are carried on and exchanged.
  Returns:
    For each size sets [K, size], each once, the least error first; no larger ones where the target is met.
  """
  units, goal = pairs.orthogonal_units(columns, target, weights)
  if not len(goal):
    return []
  on_device, single = _padded(units, goal)
  order = np.argsort(-((units @ goal) ** 2), kind="stable")
  sets, found = order[:, None], []
  for _ in range(2, min(max_size, columns.shape[1]) + 1):
    begun = of_different_groups(sets[: config.num_looked_at], groups, config.starts_per_sum)[: config.num_begun]
    sets, errors = _grown(units, goal, on_device, single, begun, config)
    found.append(sets)
    if not len(sets) or errors[0] < config.exact:
      break
  return found


def of_different_groups(found: np.ndarray, groups: np.ndarray, most: int) -> np.ndarray:
  """Of sets of columns [K, S] so many from each set of groups, the first ones."""
  counts: dict[tuple[int, ...], int] = {}
  kept = []
  for place, chosen in enumerate(np.sort(groups[found], axis=1).tolist()):
    counts[tuple(chosen)] = counts.get(tuple(chosen), 0) + 1
    if counts[tuple(chosen)] <= most:
      kept.append(place)
  return found[kept]


def _grown(
  units: np.ndarray, goal: np.ndarray, on_device: jax.Array, single: jax.Array, begun: np.ndarray,
  config: SubsetsConfig,
) -> tuple[np.ndarray, np.ndarray]:
  """Sets of one column more than those begun with [K, S - 1], and what they leave of the target, in rising order."""
  size = begun.shape[1] + 1
  sets, errors, asked = np.zeros((0, size), int), np.zeros(0), set[tuple[int, ...]]()
  for _ in range(1 + config.num_rounds):
    interruption.check()
    begun = _without(begun, asked)
    if not len(begun):
      break
    asked |= set(map(tuple, begun.tolist()))
    made = _distinct(np.column_stack([begun, _completed(on_device, single, begun)]))
    made = _without(made, set(map(tuple, sets.tolist())))
    sets, errors = np.concatenate([sets, made]), np.concatenate([errors, _errors(units, goal, made)])
    best_first = np.argsort(errors, kind="stable")
    sets, errors = sets[best_first], errors[best_first]
    begun = _distinct(np.concatenate([np.delete(sets[: config.num_exchanged], i, axis=1) for i in range(size)]))
  return sets, errors


def _distinct(sets: np.ndarray) -> np.ndarray:
  """Sets of columns [K, S], each once; none that has a column twice."""
  sets = np.unique(np.sort(sets, axis=1), axis=0)
  return sets[(np.diff(sets, axis=1) > 0).all(axis=1)]


def _without(sets: np.ndarray, known: set[tuple[int, ...]]) -> np.ndarray:
  """Those of some sets [K, S] that are not known."""
  return sets[[tuple(each) not in known for each in sets.tolist()]]


def _errors(units: np.ndarray, goal: np.ndarray, sets: np.ndarray) -> np.ndarray:
  """Share of the target that sets of columns [K, S] leave [K], in double precision."""
  some = units[sets]
  gram = some @ some.transpose(0, 2, 1)
  # Sets that are nearly dependent are of no use: what keeps the matrix regular costs others nothing.
  factors = np.linalg.solve(gram + pairs.INDEPENDENT_WIDE * np.eye(sets.shape[1]), (some @ goal)[..., None])[..., 0]
  return np.sum((goal - np.einsum("ks,ksn->kn", factors, some)) ** 2, axis=1)


def _padded(units: np.ndarray, goal: np.ndarray) -> tuple[jax.Array, jax.Array]:
  """Unit vectors [P, N] and target [N] in single precision, of one of few shapes: 0 where there is nothing."""
  num_columns = pairs.TILE * compilation.bucket(-(-len(units) // pairs.TILE), pairs.NUM_TILES)
  num_rows = pairs.padded_rows(len(goal))
  padded, single = np.zeros((num_columns, num_rows), np.float32), np.zeros(num_rows, np.float32)
  padded[: len(units), : len(goal)], single[: len(goal)] = units, goal
  return jnp.asarray(padded), jnp.asarray(single)


def _completed(units: jax.Array, goal: jax.Array, sets: np.ndarray) -> np.ndarray:
  """For each set of columns [K, S] the column that leaves least beside it [K]."""
  num_used = -(-len(sets) // SETS_AT_ONCE)
  padded = np.zeros((SETS_AT_ONCE * compilation.bucket(num_used, NUM_CALLS), sets.shape[1]), np.int32)
  padded[: len(sets)] = sets
  return np.asarray(_complete(units, goal, padded, num_used))[: len(sets)]


@jax.jit
@compilation.with_all_digits
def _complete(units: jax.Array, goal: jax.Array, sets: jax.Array, num_used: jax.Array) -> jax.Array:
  """For each set [K, S] of unit vectors [P, N] the one that explains most of what the set leaves of the target [K].

  `num_used`: of the `SETS_AT_ONCE` sets that are looked at together, those that are in use.
  """
  along = units @ goal

  def step(place: jax.Array, found: jax.Array) -> jax.Array:
    chosen = lax.dynamic_slice_in_dim(sets, place * SETS_AT_ONCE, SETS_AT_ONCE)
    basis: list[jax.Array] = []
    rest, left = along[None], jnp.ones(())
    for i in range(sets.shape[1]):
      vector = units[chosen[:, i]]
      for other in basis:
        vector = vector - jnp.sum(vector * other, axis=1, keepdims=True) * other
      vector = vector / jnp.maximum(jnp.linalg.norm(vector, axis=1, keepdims=True), pairs.INDEPENDENT)
      basis.append(vector)
      across = vector @ units.T
      rest, left = rest - (vector @ goal)[:, None] * across, left - across**2
    gain = jnp.where(left > pairs.INDEPENDENT, rest * rest / jnp.maximum(left, pairs.INDEPENDENT), 0)
    return lax.dynamic_update_slice_in_dim(found, gain.argmax(axis=1).astype(found.dtype), place * SETS_AT_ONCE, 0)

  return lax.fori_loop(0, num_used, step, jnp.zeros(len(sets), jnp.int32))

