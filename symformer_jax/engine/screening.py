"""Which columns formulas are made of: of a wide table those that explain most of y, one after the other; and the single
one that y seems to be a function of.
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
  """The one of some columns that y seems to be a function of; None where there is none, or where another column varies
  smoothly along it, as the state of a pendulum along the time.

  A rational function (the AAA algorithm, Nakatsukasa, Sete and Trefethen 2018) goes through two of three values of y
  over the column, and the others lie on it: so it is of a smooth function, whatever poles it has. Only the columns over
  which y is smoothest are tried. It is no proof: two values at each end are never left out, and what is a millionth of
  y's spread, or in few rows a hundred times that, is not seen.
  """
  columns = rows.varying(columns)
  if not config.has_sole_column or len(columns) < 2 or len(np.unique(rows.y)) < config.min_values:
    return None
  rough = {column: _roughness(rows.x[:, column], rows.y) for column in columns}
  smoothest = sorted((c for c in columns if rough[c] <= config.most_rough), key=lambda column: rough[column])
  found = [column for column in smoothest[: config.max_tried] if _is_function(rows.x[:, column], rows.y, config)]
  if len(found) != 1:
    return None
  [sole] = found
  along = (_roughness(rows.x[:, sole], rows.x[:, column]) for column in columns if column != sole)
  return None if min(along) <= config.least_rough else sole


def _is_function(x: np.ndarray, y: np.ndarray, config: ScreeningConfig) -> bool:
  """Whether y [N] is a smooth function of x [N]: values left out, each once, lie on a curve through the others."""
  values, first, places = np.unique(x, return_index=True, return_inverse=True)
  far = np.abs(y - np.median(y))
  far = np.maximum(far, np.median(far))  # of a pole or an exponential each value counts by its own size
  if len(values) < config.min_values or np.any(np.abs(y - y[first][places]) > config.error * far):
    return False
  return all(_lie_on_curve(values, y[first], far[first], begin, config) for begin in range(3))


def _lie_on_curve(x: np.ndarray, y: np.ndarray, far: np.ndarray, begin: int, config: ScreeningConfig) -> bool:
  """Of values y [N] over x [N], in their order, every third from one on, but for those at the ends."""
  is_left_out = np.zeros(len(x), bool)
  is_left_out[2 + begin : -2 : 3] = True
  with warnings.catch_warnings(), np.errstate(all="ignore"):
    warnings.simplefilter("ignore", RuntimeWarning)  # so many terms do not reach the tolerance
    try:
      curve = AAA(x[~is_left_out], y[~is_left_out], rtol=_ROUNDING, max_terms=config.max_terms, clean_up=False)
      errors = np.abs(curve(x[is_left_out]) - y[is_left_out]) / far[is_left_out]
    except (ValueError, np.linalg.LinAlgError):  # as of many equal values
      return False
    return bool(np.mean(errors <= config.error) >= config.share and np.all(errors <= config.largest_error))


def _roughness(x: np.ndarray, y: np.ndarray) -> float:
  """How much ranks of y [N] differ between neighbours in x [N]: half the mean square, as a share of the variance; of
  noise about 1.
  """
  ranks = _ranks(y[np.argsort(x, kind="stable")])
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
