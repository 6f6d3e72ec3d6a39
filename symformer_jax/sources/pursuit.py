"""Forward selection: the few columns of many whose sum fits a target best.

As orthogonal matching pursuit (Pati et al., 1993) with a beam of sets in place of one.
"""

from collections.abc import Sequence
import dataclasses

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import DEFAULT, PursuitConfig

# A column whose part orthogonal to those chosen is a smaller share of it than this adds nothing but rounding.
INDEPENDENT = 1e-6
# Share of a target's square that its own rounding leaves.
ROUNDING = (4 * np.finfo(np.float64).eps) ** 2


@dataclasses.dataclass(frozen=True)
class _Choice:
  """Chosen columns, an orthonormal basis of them and of the constant, what they leave of the target, its square.

  `across` [P] is the squared length of every column's part orthogonal to the basis.
  """

  chosen: tuple[int, ...]
  basis: np.ndarray
  residual: np.ndarray
  error: float
  across: np.ndarray


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
  across = squares - _along(columns, [one])[0] ** 2
  beams = [_Choice((), one[:, None], residual, float(residual @ residual), across)]
  rounding = float(np.finfo(columns.dtype).eps)
  exact = max(config.exact, (10 * rounding) ** 2) * beams[0].error + ROUNDING * float(target @ target)
  least = max(INDEPENDENT**2, 100 * rounding) * squares
  kept: list[_Choice] = []
  for size in range(1, config.max_columns + 1):
    interruption.check()
    is_every_pair = size == 1 and config.num_first >= columns.shape[1]
    beams = _extend(
      beams, columns, np.arange(columns.shape[1]) if is_every_pair else of_group, least,
      {1: config.num_first, 2: config.num_pairs}.get(size, config.num_beams), config.num_looked_at)
    # The best of equal groups.
    distinct = {tuple(sorted(of_group[list(beam.chosen)])): beam for beam in reversed(beams)}
    kept += sorted(distinct.values(), key=lambda beam: beam.error)[
      : config.num_kept_short if size <= 2 else config.num_kept]
    # What is exact needs no more columns; several others may be exact as well, and simpler.
    beams = [beam for beam in beams if beam.error > exact]
  return [tuple(sorted(choice.chosen)) for choice in kept]


def _extend(
  beams: list[_Choice], columns: np.ndarray, groups: np.ndarray, least: np.ndarray, num_beams: int,
  num_looked_at: int,
) -> list[_Choice]:
  """The choices with one more column that leave least, the best first; two products with all columns in all."""
  if not beams:
    return []
  across = np.stack([beam.across for beam in beams])
  gains = np.where(across > least, _along(columns, [beam.residual for beam in beams]), 0) ** 2
  np.divide(gains, across, out=gains, where=gains > 0)
  errors = np.array([beam.error for beam in beams])[:, None] - gains
  errors[gains <= 0] = np.inf
  rows = _smallest(errors.min(axis=1, initial=np.inf), max(num_looked_at, num_beams))
  beams, errors = [beams[row] for row in rows], errors[rows]
  best: dict[tuple[int, ...], tuple[_Choice, int]] = {}
  for place in _smallest(errors.ravel(), num_beams * num_looked_at):
    beam, index = beams[place // columns.shape[1]], int(place % columns.shape[1])
    best.setdefault(tuple(sorted(groups[[*beam.chosen, index]])), (beam, index))
    if len(best) == num_beams:
      break
  longer = sorted((_with_column(beam, index, columns[:, index]) for beam, index in best.values()),
                  key=lambda choice: choice.error)
  along = _along(columns, [choice.basis[:, -1] for choice in longer])
  return [dataclasses.replace(c, across=c.across - a**2) for c, a in zip(longer, along, strict=True)]


def _smallest(values: np.ndarray, number: int) -> np.ndarray:
  """Indices of the smallest finite values, in their order."""
  if number < len(values):
    found = np.argpartition(values, number)[:number]
    found = found[np.argsort(values[found])]
  else:
    found = np.argsort(values)
  return found[np.isfinite(values[found])]


def _with_column(beam: _Choice, index: int, column: np.ndarray) -> _Choice:
  unit = column.astype(np.float64)
  for _ in range(2):  # the second time takes away what rounding left
    unit = unit - beam.basis @ (beam.basis.T @ unit)
  unit /= np.linalg.norm(unit)
  residual = beam.residual - unit * (unit @ beam.residual)
  return _Choice((*beam.chosen, index), np.column_stack([beam.basis, unit]), residual, float(residual @ residual),
                 beam.across)


def _along(columns: np.ndarray, vectors: list[np.ndarray]) -> np.ndarray:
  """Every vector's products with the columns [K, P]; one pass over the columns."""
  if not vectors:
    return np.zeros((0, columns.shape[1]), columns.dtype)
  return np.stack(vectors).astype(columns.dtype) @ columns
