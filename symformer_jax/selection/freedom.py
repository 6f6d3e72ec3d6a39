"""Which parameters data tell apart: of columns of derivatives those that no others make up."""

import numpy as np

from symformer_jax.refinement.local import CHUNK_ROWS

# A column of which the others leave less than this share is made up by them, with room for the rounding of derivatives.
# What is kept has a scaled Gram matrix that can be inverted in double precision.
LEAST_SHARE = 1e-7


@np.errstate(all="ignore")  # columns that are not finite are left out
def told_apart(columns: np.ndarray, ranks: np.ndarray, most: int) -> np.ndarray:
  """The columns to keep, as a mask [P]: all of rank 0, and one by one the others that these and the kept leave most of.

  Args:
    columns: derivatives [N, P], times the roots of the weights; ranks: of each column [P], lower ones come first.
    most: columns that may be kept.
  """
  largest = np.max(np.abs(columns), axis=0, initial=0.0)
  is_open = np.isfinite(largest) & (largest > 0)
  scaled = np.where(is_open, columns / largest, 0.0)  # norms may neither overflow nor vanish
  # Of a million rows a triangle: its columns have the same lengths and angles.
  rest = _triangle(scaled / np.where(is_open, np.linalg.norm(scaled, axis=0), 1.0))
  is_kept = ranks == 0
  for rank in np.unique(ranks):
    is_among = is_open & (ranks == rank)
    while is_among.any() and (rank == 0 or np.sum(is_kept) < most):
      shares = np.where(is_among, np.linalg.norm(rest, axis=0), -1.0)
      best = int(np.argmax(shares))
      if shares[best] < LEAST_SHARE:
        break
      is_kept[best], is_among[best] = True, False
      rest = _without(rest, rest[:, best] / shares[best])
  return is_kept


def _triangle(columns: np.ndarray) -> np.ndarray:
  """R of the columns' QR [at most P, P], from parts of the rows, for which the processor's cache has room."""
  triangle = columns[:0]
  for i in range(0, len(columns), CHUNK_ROWS):
    part = np.concatenate([triangle, columns[i : i + CHUNK_ROWS]])
    triangle = np.asarray(np.linalg.qr(part, mode="r"))
  return triangle


def _without(columns: np.ndarray, direction: np.ndarray) -> np.ndarray:
  """Columns [N, P] less their part along a direction [N] of length 1; twice, for rounding leaves some."""
  for _ in range(2):
    columns = columns - np.outer(direction, direction @ columns)
  return columns
