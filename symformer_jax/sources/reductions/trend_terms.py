"""Terms beside a smooth function of the other columns, which take a column with them: in `x + (y - x)*exp(-(z/w)**2) +
v*z` nothing else depends on v.

Universal kriging (Cressie, Statistics for Spatial Data, 1993, sec. 3.4) with one term of many: products of powers of
a column and up to two others. Without the column a smooth function leaves errors far beyond those of rows left out;
with the right term none that are larger. The covariances of a Gaussian process make all rows count alike, so that a
product of matrices tells of all terms at once. Slopes tell of terms of one column alone (`invariances`), and need more
rows.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import linalg

from symformer_jax.engine import interruption
from symformer_jax.engine.config import SurrogateConfig, TrendConfig
from symformer_jax.engine.gaussian_process import Others
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, number
from symformer_jax.language.tidy import tidy
from symformer_jax.sources import monomials
from symformer_jax.sources.monomials import Monomial
from symformer_jax.sources.reductions.reduced_tables import Change

# What varies by a smaller share of its size is a constant but for rounding.
_LEAST = 1e-9


@np.errstate(all="ignore")  # what is not finite is no term
def find_terms(x: np.ndarray, y: np.ndarray, surrogate: SurrogateConfig, config: TrendConfig) -> list[Change]:
  """For each column that one term may take with it the simplest term.

  Args:
    x: [N, D], y [N]: finite, and not the same in all rows.
  Returns:
    changes; the error of each is what it leaves, over errors of rows left out.
  """
  if x.shape[1] < config.least_columns:
    return []
  terms = _Terms.of(x, config)
  others = Others(x, y, surrogate)
  found = []
  for column in range(x.shape[1]):
    interruption.check()
    factor = others.factor(column, config.constant)
    if factor is not None and (term := _nearest(terms.having(column), others, factor, config)) is not None:
      found.append(_change(column, term, config))
  return found


class _Terms(NamedTuple):
  """Monomials and their values less their mean [N, T], of spread one; spreads [T]."""

  monomials: list[Monomial]
  values: np.ndarray
  spreads: np.ndarray

  @classmethod
  def of(cls, x: np.ndarray, config: TrendConfig) -> "_Terms":
    some = [each for size, exponents in enumerate(config.powers, 1)
            for each in monomials.monomials(range(x.shape[1]), size, exponents)]
    values = monomials.Values(x)(some)
    means, spreads = values.mean(axis=0), values.std(axis=0)
    kept = np.flatnonzero(np.isfinite(spreads) & (spreads > _LEAST * np.abs(means)))
    return cls([some[i] for i in kept], (values[:, kept] - means[kept]) / spreads[kept], spreads[kept])

  def having(self, column: int) -> "_Terms":
    """Those of the column."""
    kept = [i for i, each in enumerate(self.monomials) if any(place == column for place, _ in each)]
    return _Terms([self.monomials[i] for i in kept], self.values[:, kept], self.spreads[kept])


class _Term(NamedTuple):
  """A monomial, its factor and that one's standard error; left: see `find_terms`."""

  monomial: Monomial
  factor: float
  deviation: float
  left: float


def _nearest(terms: _Terms, others: Others, factor: np.ndarray, config: TrendConfig) -> _Term | None:
  """The simplest of the terms that leave least, if what it leaves is what rows left out do."""
  target = linalg.solve_triangular(factor, others.target, lower=True, check_finite=False)
  num_rows, before = len(target), float(target @ target)
  if not (terms.monomials and before >= config.least_before * num_rows):
    return None
  values = linalg.solve_triangular(factor, terms.values, lower=True, check_finite=False)
  sizes, along = np.einsum("ij,ij->j", values, values), target @ values
  left = (before - along**2 / sizes) / num_rows
  if not np.nanmin(left) * num_rows <= min(config.most_left * num_rows, (1 - config.least_share) * before):
    return None
  near = np.flatnonzero(left <= config.alike * np.nanmin(left))
  best = min(near, key=lambda i: (expression.complexity(monomials.to_node(terms.monomials[i])), left[i]))
  unit, size = others.size / terms.spreads[best], sizes[best]
  return _Term(terms.monomials[best], along[best] / size * unit, unit / math.sqrt(size), float(left[best]))


def _change(column: int, term: _Term, config: TrendConfig) -> Change:
  factor = _exact(term, config)
  node = Node("*", (monomials.to_node(term.monomial), number(term.factor if factor is None else factor)))
  return Change(term.left, column, {}, is_simple=factor is not None, summand=tidy(node))


def _exact(term: _Term, config: TrendConfig) -> float | None:
  """The number of fewest digits that the factor may be, if it can hardly be another."""
  place = math.floor(math.log10(abs(term.factor)))
  near = config.most_off * term.deviation
  for digits in range(1, config.most_digits + 1):
    short = float(f"{term.factor:.{digits}g}")
    if abs(short - term.factor) <= near and near <= 0.1 * 10.0 ** (place - digits + 1):
      return short
  return None
