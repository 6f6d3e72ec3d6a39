"""Which columns formulas are made of: of a wide table those that explain most of y, one after the other; a single one
where y is a function of it alone.
"""

from collections.abc import Sequence
import warnings

import numpy as np
from scipy.interpolate import AAA

from symformer_jax.engine.config import DEFAULT, ScreeningConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language.rules import Rule

# A curve that goes through values more nearly than this follows their rounding.
_ROUNDING = 1e-13


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


def sole_column(
  rows: Rows, columns: Sequence[int], config: ScreeningConfig = DEFAULT.screening
) -> int | None:
  """The one of some columns that y is a function of, to near rounding; None where there is none, or several are.

  A rational function (the AAA algorithm, Nakatsukasa, Sete and Trefethen 2018) goes through two of three values of y
  over the column, and most of the others lie on it: so it is of every smooth function, whatever poles it has, and of no
  function of several columns. A column that is a function of the one that was found counts as well: x and x**2.
  """
  columns = rows.varying(columns)
  if len(columns) < 2 or len(np.unique(rows.y)) < config.min_values:
    return None
  found = [column for column in columns if _is_function(rows.x[:, column], rows.y, config)]
  if len(found) != 1:
    return None
  [sole] = found
  return None if any(_is_function(rows.x[:, sole], rows.x[:, column], config) for column in columns if column != sole) \
    else sole


def _is_function(x: np.ndarray, y: np.ndarray, config: ScreeningConfig) -> bool:
  """Whether y [N] is a function of x [N]: has one value at each of x where many are repeated, or is smooth."""
  values, first, places = np.unique(x, return_index=True, return_inverse=True)
  spread = np.median(np.abs(y - np.median(y)))
  far = np.maximum(np.abs(y - np.median(y)), spread)  # of a pole or an exponential each value counts by its own size
  if np.any(np.abs(y - y[first][places]) > config.error * far):
    return False
  if len(x) - len(values) >= config.min_values:
    return True
  if len(values) < config.min_values or _roughness(y[first]) > config.most_rough:
    return False
  is_left_out = np.zeros(len(values), bool)
  is_left_out[2:-2:3] = True
  with warnings.catch_warnings(), np.errstate(all="ignore"):
    warnings.simplefilter("ignore", RuntimeWarning)  # so many terms do not reach the tolerance
    known, others = first[~is_left_out], first[is_left_out]
    curve = AAA(x[known], y[known], rtol=_ROUNDING, max_terms=config.max_terms, clean_up=False)
    errors = np.abs(curve(x[others]) - y[others]) / far[others]
  return bool(np.quantile(np.nan_to_num(errors, nan=np.inf), config.share) <= config.error)


def _roughness(y: np.ndarray) -> float:
  """How much ranks of neighbours in y [N] differ: half the mean square, as a share of the variance; of noise 1."""
  ranks = _ranks(y)
  return 0.5 * float(np.mean(np.diff(ranks) ** 2) / np.var(ranks))


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
