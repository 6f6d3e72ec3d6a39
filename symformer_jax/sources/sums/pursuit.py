"""Forward selection: the few columns of many whose sum fits a target best.

As orthogonal matching pursuit (Pati et al., 1993) with a beam of sets in place of one.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import DEFAULT, PursuitConfig

# A column whose part orthogonal to those chosen is a smaller share of it than this adds nothing but rounding.
INDEPENDENT = 1e-6
# Share of a target's square that its own rounding leaves.
ROUNDING = (4 * np.finfo(np.float64).eps) ** 2


class _Sets(NamedTuple):
  """K sets of so many columns each.

  Attributes:
    chosen: [K, S]; basis: [K, N, 1 + S], orthonormal, of them and of the constant.
    residual: [K, N], what they leave of the target; errors: [K], its square.
    across: [K, P], the squared length of every column's part orthogonal to the basis.
  """

  chosen: np.ndarray
  basis: np.ndarray
  residual: np.ndarray
  errors: np.ndarray
  across: np.ndarray

  def some(self, index: np.ndarray) -> "_Sets":
    return _Sets(*(array[index] for array in self))


def select_columns(
  columns: np.ndarray, target: np.ndarray, weights: np.ndarray, *,
  groups: Sequence[int] | np.ndarray | None = None,
  config: PursuitConfig = DEFAULT.pursuit,
) -> list[tuple[int, ...]]:
  """Sets of columns that, with a constant, fit a target with the least squared error: the best few of each size.

  Args:
    columns: [N, P], float64 or, for many of them, float32; target: [N]; weights: [N], above 0.
    groups: [P], of columns that differ in a number; of sets from the same groups only the best is carried on. By
      default each column is one.
    config: columns of a set, and how many sets are carried on and kept; where all sets of one column are carried on,
      every pair is tried, whatever the groups.
  """
  root = np.sqrt(weights / weights.sum())
  columns = (root[:, None] * columns).astype(columns.dtype)
  # In units of its own: single precision squares it.
  target = root * (target / max(np.max(np.abs(target), initial=0.0), np.finfo(np.float64).tiny))
  of_group = np.arange(columns.shape[1]) if groups is None else np.asarray(groups)
  one = root / np.linalg.norm(root)
  residual = target - one * (one @ target)
  squares = np.einsum("np,np->p", columns, columns)
  across = squares - _along(columns, one[None])[0] ** 2
  sets = _Sets(np.zeros((1, 0), int), one[None, :, None], residual[None], np.array([residual @ residual]), across[None])
  rounding = float(np.finfo(columns.dtype).eps)
  exact = max(config.exact, (10 * rounding) ** 2) * sets.errors[0] + ROUNDING * float(target @ target)
  least = max(INDEPENDENT**2, 100 * rounding) * squares
  kept: list[tuple[int, ...]] = []
  for size in range(1, config.max_columns + 1):
    interruption.check()
    is_every_pair = size == 1 and config.num_first >= columns.shape[1]
    sets = _extend(
      sets, columns, np.arange(columns.shape[1]) if is_every_pair else of_group, least,
      {1: config.num_first, 2: config.num_pairs}.get(size, config.num_beams), config.num_looked_at)
    kept += _best_of_groups(sets, of_group, config.num_kept_short if size <= 2 else config.num_kept)
    # What is exact needs no more columns; several others may be exact as well, and simpler.
    sets = sets.some(sets.errors > exact)
  return kept


def _best_of_groups(sets: _Sets, groups: np.ndarray, most: int) -> list[tuple[int, ...]]:
  """Of sets from the same groups the best, the best of these first; columns in their order."""
  best: dict[tuple[int, ...], int] = {}
  for place, key in enumerate(np.sort(groups[sets.chosen], axis=1).tolist()):
    best.setdefault(tuple(key), place)  # sets are in the order of their errors
  return [tuple(sorted(sets.chosen[place].tolist())) for place in list(best.values())[:most]]


def _extend(
  sets: _Sets, columns: np.ndarray, groups: np.ndarray, least: np.ndarray, most: int, num_looked_at: int
) -> _Sets:
  """The sets with one more column that leave least, the best first; two products with all columns in all."""
  if not len(sets.errors):
    return sets
  gains = np.zeros_like(sets.across)
  np.divide(_along(columns, sets.residual) ** 2, sets.across, out=gains, where=sets.across > least)
  errors = sets.errors[:, None] - gains
  errors[gains <= 0] = np.inf
  rows = _smallest(errors.min(axis=1, initial=np.inf), max(num_looked_at, most))
  places = _smallest(errors[rows].ravel(), most * num_looked_at)
  of_set, index = rows[places // columns.shape[1]], places % columns.shape[1]
  best: dict[tuple[int, ...], int] = {}
  for place, key in enumerate(np.sort(groups[np.column_stack([sets.chosen[of_set], index])], axis=1).tolist()):
    best.setdefault(tuple(key), place)
    if len(best) == most:
      break
  chosen = np.array(list(best.values()), int)
  return _with_columns(sets.some(of_set[chosen]), index[chosen], columns)


def _with_columns(sets: _Sets, index: np.ndarray, columns: np.ndarray) -> _Sets:
  """Each set with one more column [K], in the order of what they leave."""
  unit = columns[:, index].T.astype(np.float64)[:, None]
  for _ in range(2):  # the second time takes away what rounding left
    unit = unit - unit @ sets.basis @ sets.basis.swapaxes(1, 2)
  unit /= np.linalg.norm(unit, axis=2, keepdims=True)
  residual = sets.residual - (unit @ sets.residual[:, :, None] * unit)[:, 0]
  longer = _Sets(np.column_stack([sets.chosen, index]), np.concatenate([sets.basis, unit.swapaxes(1, 2)], axis=2),
                 residual, np.einsum("kn,kn->k", residual, residual), sets.across)
  longer = longer.some(np.argsort(longer.errors, kind="stable"))
  return longer._replace(across=longer.across - _along(columns, longer.basis[:, :, -1]) ** 2)


def _smallest(values: np.ndarray, number: int) -> np.ndarray:
  """Indices of the smallest finite values, in their order."""
  if number < len(values):
    found = np.argpartition(values, number)[:number]
    found = found[np.argsort(values[found])]
  else:
    found = np.argsort(values)
  return found[np.isfinite(values[found])]


def _along(columns: np.ndarray, vectors: np.ndarray) -> np.ndarray:
  """Products of vectors [K, N] with the columns [K, P]; one pass over the columns."""
  return vectors.astype(columns.dtype) @ columns
