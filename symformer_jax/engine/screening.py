"""Which columns of a wide table formulas are made of: those that explain most of y, one after the other."""

import numpy as np

from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.rows import Rows
from symformer_jax.language.rules import Rule


def choose_columns(
  rows: Rows, rule: Rule, *, num_columns: int, degree: int = DEFAULT.library.screening_degree
) -> tuple[int, ...]:
  """At most so many columns that a rule allows, in their order; those that it requires always.

  Forward selection: the column whose smooth function explains most of what those before it leave of y, and of the ranks
  of y, which no outlier and no monotone function of y moves. What counts in products of others alone is missed.
  A smooth function is a polynomial of `degree` in the column's ranks.
  """
  allowed = [column for column in range(rows.x.shape[1]) if column not in rule.excluded]
  if len(allowed) <= num_columns:
    return tuple(allowed)
  root = np.sqrt(rows.weights)
  bases = np.stack([_basis(rows.x[:, column], root, degree) for column in allowed])  # [P, N, degree]
  left = np.stack([_standardized(rows.y, root), _standardized(_ranks(rows.y), root)], axis=1)  # [N, 2]
  chosen = [allowed.index(column) for column in sorted(rule.required)]
  design = root[:, None]
  while True:
    design = np.column_stack([design[:, :1], *(bases[i] for i in chosen)])
    residual = left - design @ np.linalg.lstsq(design, left)[0]
    if len(chosen) >= num_columns or design.shape[1] >= len(rows) // 2:
      break
    gains = np.sum(np.einsum("pnk,nt->ptk", bases, residual) ** 2, axis=2)
    total = np.sum(gains / np.maximum(np.sum(residual**2, axis=0), np.finfo(float).tiny), axis=1)
    total[chosen] = -np.inf
    chosen.append(int(np.argmax(total)))
  # Where rows are too few to tell, the first by their own.
  rest = [i for i in np.argsort(-np.sum(np.einsum("pnk,nt->ptk", bases, left) ** 2, axis=(1, 2)), kind="stable")
          if i not in chosen]
  return tuple(sorted(allowed[i] for i in [*chosen, *rest][: max(num_columns, len(rule.required))]))


def _ranks(values: np.ndarray) -> np.ndarray:
  """Ranks [N] between -1 and 1; equal values have equal ranks."""
  _, places = np.unique(values, return_inverse=True)
  return 2 * places / max(places.max(), 1) - 1.0


def _standardized(values: np.ndarray, root: np.ndarray) -> np.ndarray:
  """Centred, of unit length, times the root of the weights [N]."""
  largest = np.max(np.abs(values)) or 1.0  # first: squares of huge values overflow
  centred = root * (values / largest - np.average(values / largest, weights=root**2))
  return centred / (np.linalg.norm(centred) or 1.0)


def _basis(column: np.ndarray, root: np.ndarray, degree: int) -> np.ndarray:
  """Orthonormal polynomials [N, degree] of a column's ranks times the root of the weights, orthogonal to that alone.

  Zeros for a constant column.
  """
  q, r = np.linalg.qr(root[:, None] * _ranks(column)[:, None] ** np.arange(degree + 1))
  is_new = np.abs(np.diag(r)) > 1e-9 * np.sqrt(len(column))
  return (q * is_new)[:, 1:]
