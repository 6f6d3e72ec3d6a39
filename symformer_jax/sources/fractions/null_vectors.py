"""Combinations of few columns that vanish in every row: of a linear equation between all of them, the terms it needs.

A matrix whose columns are dependent has a singular value of 0, and its vector is the equation. Where only some of the
columns take part the others have no share in it; terms are left out as long as the combination goes on vanishing.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import linalg

from symformer_jax.engine.config import EliminationConfig

# What rounding leaves of singular values, as a share of the largest.
ROUNDING = 10 * float(np.finfo(np.float64).eps)
# Estimates of the size of an inverse are too small by a factor of three at most, seldom of ten (Higham 1987).
_SURELY = 0.1


def find(columns: np.ndarray, config: EliminationConfig) -> np.ndarray | None:
  """The combination of few columns [N, M] that vanishes, or nearly so, in every row [M]; None where there is none.

  Terms are left out one after the other, of many a quarter at a time, as long as what is left hardly rises.
  """
  norms = np.linalg.norm(columns, axis=0)
  if not np.all(np.isfinite(norms)) or np.any(norms == 0):
    return None
  columns = columns / norms
  if _are_independent(columns, config.vanishing):
    return None
  triangle: Any = np.linalg.qr(columns, mode="r")  # NumPy's types have no mode
  sizes = np.linalg.svd(triangle, compute_uv=False)
  if sizes[-1] > config.vanishing * sizes[0]:
    return None
  terms = np.arange(len(norms))
  left, vector, rise = _least(triangle)
  num_dropped = len(terms) // 4
  while len(terms) > 2:
    num_dropped = max(num_dropped, 1)
    kept = np.sort(np.argsort(rise)[num_dropped:])
    fewer = _least(triangle[:, terms[kept]])
    if fewer[0] < config.kept_share * max(left, ROUNDING):
      terms, (left, vector, rise) = terms[kept], fewer
      num_dropped = len(terms) // 4 if len(terms) > config.max_terms else 1
    elif num_dropped == 1:
      break
    else:
      num_dropped //= 2
  if len(terms) > config.max_terms or np.sqrt(np.min(rise)) * config.leap(left) < max(left, ROUNDING):
    return None
  coefficients = np.zeros(len(norms))
  coefficients[terms] = vector / norms[terms]
  return coefficients


def _are_independent(columns: np.ndarray, vanishing: float) -> bool:
  """Whether no combination of unit columns [N, M] leaves so small a share of the largest singular value: in a fifth of
  the time in which singular values are known, and never where one does.
  """
  gram = columns.T @ columns
  factor, is_singular = linalg.lapack.dpotrf(gram)
  if is_singular:
    return False
  size = np.abs(gram).sum(axis=0).max()
  least = _SURELY * size * linalg.lapack.dpocon(factor, size)[0]  # eigenvalue; the largest is at most the trace, M
  return bool(least > len(gram) * max(vanishing**2, ROUNDING))


def nested(columns: np.ndarray) -> Iterator[np.ndarray]:
  """Combinations of columns [N, M] that vanish, or nearly so, in every row [M]: of all, then of one fewer each time."""
  norms = np.linalg.norm(columns, axis=0)
  if not np.all(np.isfinite(norms)) or np.any(norms == 0):
    return
  triangle: Any = np.linalg.qr(columns / norms, mode="r")
  terms = np.arange(len(norms))
  while len(terms) > 1:
    _, vector, rise = _least(triangle[:, terms])
    coefficients = np.zeros(len(norms))
    coefficients[terms] = vector / norms[terms]
    yield coefficients
    terms = np.delete(terms, np.argmin(rise))


def _least(matrix: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
  """The least singular value as a share of the largest, its vector [M], how much its square rises without each [M]."""
  _, sizes, vectors = np.linalg.svd(matrix, full_matrices=False)
  sizes = sizes / sizes[0]
  others = np.maximum(sizes[:-1], ROUNDING) ** -2.0
  rise = vectors[-1] ** 2 / (others @ vectors[:-1] ** 2 + ROUNDING)
  return float(sizes[-1]), vectors[-1], rise
