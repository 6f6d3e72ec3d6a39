"""What is left of columns beside others, and which of them are needed."""

from collections.abc import Sequence
import math

import numpy as np

# A direction of which other columns leave no more than this share is none of its own.
_LEAST_SHARE = 1e-10


def without(values: np.ndarray, basis: np.ndarray) -> np.ndarray:
  """Columns [N] or [N, M] less what an orthonormal basis [N, K] explains; twice, for what rounding leaves."""
  for _ in range(2):
    values = values - basis @ (basis.T @ values)
  return values


def directions(columns: np.ndarray) -> np.ndarray:
  """An orthonormal basis of columns [N, K], without what others leave next to nothing of: [N, K'], K' <= K."""
  lengths = np.linalg.norm(columns, axis=0)
  usable = np.isfinite(lengths) & (lengths > _LEAST_SHARE)
  if not usable.any():
    return np.zeros((len(columns), 0))
  left, sizes, _ = np.linalg.svd(columns[:, usable] / lengths[usable], full_matrices=False)
  return left[:, sizes > _LEAST_SHARE * sizes[0]]


def sparse(
  columns: np.ndarray, target: np.ndarray, most: float, *, times_left: float
) -> tuple[list[int], np.ndarray]:
  """Places of columns [N, K] of which none can be left out, and their factors: backward elimination, smallest first.

  Args:
    most: squares of the target [N] that may be left; or so many times what all columns leave.
  """
  lengths = np.linalg.norm(columns, axis=0)
  kept = [i for i in range(columns.shape[1]) if lengths[i] > 0]
  unit = columns / np.where(lengths > 0, lengths, 1.0)

  def solve(places: Sequence[int]) -> tuple[np.ndarray, float]:
    solution = np.linalg.lstsq(unit[:, places], target, rcond=None)[0]
    left = target - unit[:, places] @ solution
    return solution, float(left @ left)

  solution, left = solve(kept)
  most = max(most, times_left * left)
  needed: set[int] = set()
  while len(needed) < len(kept):
    open_places = [k for k, place in enumerate(kept) if place not in needed]
    least = min(open_places, key=lambda k: abs(solution[k]))
    fewer = [place for k, place in enumerate(kept) if k != least]
    tried, left = solve(fewer) if fewer else (np.zeros(0), math.inf)
    if left <= most:
      kept, solution = fewer, tried
    else:
      needed.add(kept[least])
  return kept, solution / lengths[kept]
