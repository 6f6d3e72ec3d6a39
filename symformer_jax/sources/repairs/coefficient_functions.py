"""Functions of one column that stand as coefficients in a formula, and what the data ask of them.

In `0.07*w**3*z*sqrt(x) + 3368*sin(sin(x))*exp(-x) - 6.2` all that is added and reads x alone is one such function, in
`x/(z + 2) + 0.1*sqrt(z)*x` what x is multiplied by: whatever a formula has there, another function of the column may
be meant. To first order a polynomial beside it shows which: if with one the formula meets the data, the function is
known, at every row, better than any imitation of it.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from symformer_jax.engine.config import ReplacementsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import adjoints, expression, programs
from symformer_jax.language.expression import Node, chain, columns_of, flatten
from symformer_jax.language.tidy import tidy
from symformer_jax.sources import tangents

# Cosine of two directions that are one: imitations of one function, each known better by a polynomial, differ by less
# than the angle of 4.5e-6.
SAME = 1 - 1e-11


class Coefficient(NamedTuple):
  """A coefficient function of a formula.

  Attributes:
    formula: the same one, written so that the function is one subtree; path: of that.
    column: that it reads.
  """

  formula: Node
  path: tuple[int, ...]
  column: int

  @property
  def function(self) -> Node:
    node = self.formula
    for step in self.path:
      node = node.args[step]
    return node

  def replaced(self, function: Node) -> Node:
    """The formula with another function there."""
    return tidy(adjoints.replace(self.formula, self.path, function))


class Known(NamedTuple):
  """A coefficient function as the data ask for it.

  Attributes:
    values: at each row [N]; slope: derivative of the formula by them [N].
    size: root mean square of what the formula leaves; left: share of it that is left with them.
  """

  coefficient: Coefficient
  values: np.ndarray
  slope: np.ndarray
  size: float
  left: float

  @property
  def direction(self) -> np.ndarray:
    """The values without their mean, of length 1; 0 where they are all the same."""
    centred = self.values - self.values.mean()
    length = np.linalg.norm(centred)
    return centred / length if length > 0 else centred

  def has_values_of(self, column: int, direction: np.ndarray) -> bool:
    """Whether they are another function's of the same column, up to a factor and a constant."""
    return column == self.coefficient.column and bool(abs(self.direction @ direction) > SAME)


def coefficients(formula: Node) -> Iterator[Coefficient]:
  """Every coefficient function of a formula of several columns that is in no other one, the outer ones first."""
  waiting: list[tuple[tuple[int, ...], Node, str]] = [((), formula, "")]
  while waiting:
    path, node, above = waiting.pop(0)
    if len(columns_of(node)) < 2:
      continue  # all of it is part of one that has been made
    if above != "+" and not above == node.token == "*":
      yield from _of_sum(formula, path, node)
    waiting += [((*path, i), arg, str(node.token)) for i, arg in enumerate(node.args)]


def _of_sum(formula: Node, path: tuple[int, ...], node: Node) -> Iterator[Coefficient]:
  """Those of a sum, or of a single term, at a path."""
  for column in sorted(columns_of(node)):
    alike: dict[tuple[Node, ...], list[Node]] = {}
    terms = [_split(term, column) for term in flatten(node, "+")]
    for own, beside in terms:
      alike.setdefault(beside, []).append(own)
    for beside, functions in alike.items():
      if not any(column in columns_of(each) for each in functions):
        continue
      function = chain("+", functions)
      term = chain("*", [function, *beside])
      others = [chain("*", [each, *by]) for each, by in terms if by != beside]
      at = (*path, *((0,) if others else ()), *((0,) if beside else ()))
      yield Coefficient(adjoints.replace(formula, path, chain("+", [term, *others])), at, column)


def _split(term: Node, column: int) -> tuple[Node, tuple[Node, ...]]:
  """The factors of a term that read a column alone or none, as one, and the others in order."""
  factors = flatten(term, "*")
  own = [factor for factor in factors if columns_of(factor) <= {column}]
  beside = sorted((factor for factor in factors if not columns_of(factor) <= {column}), key=expression.sort_key)
  return chain("*", own) if own else expression.number(1.0), tuple(beside)


@np.errstate(all="ignore")  # what is not finite is left out
def asked_of(some: Sequence[Coefficient], rows: Rows, config: ReplacementsConfig) -> list[Known]:
  """The functions that the data ask for at coefficients of one formula: where one is all that it needs, else all of
  them together, and as they are where neither is enough.
  """
  views = [view for view in (_view(each, rows, config) for each in some) if view is not None]
  found = [_corrected(view, (), config) for view in views]
  if len(views) > 1 and all(known.left > config.most_left for known in found):
    found = [_corrected(view, [other for other in views if other is not view], config) for view in views]
  return [known if known.left <= config.most_left else known._replace(values=view.values, left=np.inf)
          for known, view in zip(found, views, strict=True)]


class _View(NamedTuple):
  """What is computed once for a coefficient: its values and slope [N], what its formula leaves [N], polynomials of its
  column [N, K], and these times the slope, and the constants elsewhere, as directions [N, ...]. The residual and the
  directions have the rows' weights.
  """

  coefficient: Coefficient
  values: np.ndarray
  slope: np.ndarray
  residual: np.ndarray
  polynomials: np.ndarray
  directions: np.ndarray
  elsewhere: np.ndarray


def _view(coefficient: Coefficient, rows: Rows, config: ReplacementsConfig) -> _View | None:
  root = np.sqrt(rows.weights / rows.weights.sum())
  places = adjoints.places(coefficient.formula, rows.x)
  own = next(place for place in places if place.path == coefficient.path)
  residual = root * (rows.y - places[0].values)
  constants = [root * place.adjoint for place in places if programs.is_constant(place.node)
               and place.path[: len(own.path)] != own.path]
  column = rows.x[:, coefficient.column]
  num_distinct = len(np.unique(column))
  degree = min(config.degree, num_distinct // config.places_per_term)
  if degree < 1 or not (np.isfinite(residual).all() and np.isfinite(own.adjoint).all()):
    return None
  polynomials = chebyshev.chebvander(_between(column, config), degree)
  elsewhere = np.array([each for each in constants if np.isfinite(each).all()]).reshape(-1, len(root)).T
  return _View(coefficient, own.values, own.adjoint, residual, polynomials,
               (root * own.adjoint)[:, None] * polynomials, elsewhere)


def _between(column: np.ndarray, config: ReplacementsConfig) -> np.ndarray:
  """A column, or its logarithm where it is wide, from -1 to 1."""
  low, high = column.min(), column.max()
  if low > 0 and high / low > config.wide:
    column, low, high = np.log(column), np.log(low), np.log(high)
  return np.clip(2 * (column - low) / (high - low) - 1, -1, 1)


def _corrected(view: _View, others: Sequence[_View], config: ReplacementsConfig) -> Known:
  """The function with the polynomial that brings the formula nearest to the data, beside constants, and functions at
  other coefficients."""
  room = len(view.residual) // config.rows_per_direction - view.elsewhere.shape[1]
  num_terms = max(room // (1 + len(others)), 0)
  design = np.hstack([*(each.directions[:, :num_terms] for each in (view, *others)), view.elsewhere])
  lengths = np.linalg.norm(design, axis=0)
  usable = lengths > 0
  size = np.linalg.norm(view.residual)
  if num_terms < 2 or not usable.any() or not size > 0:
    return Known(view.coefficient, view.values, view.slope, float(size), np.inf)
  design = design[:, usable] / lengths[usable]
  weights, *_ = np.linalg.lstsq(design, view.residual / size, rcond=tangents.LEAST)
  left = float(np.linalg.norm(view.residual / size - design @ weights))
  factors = np.zeros(len(lengths))
  factors[usable] = weights * size / lengths[usable]
  polynomials = view.polynomials[:, :num_terms]
  values = view.values + polynomials @ factors[: polynomials.shape[1]]
  return Known(view.coefficient, values, view.slope, float(size), left if np.isfinite(values).all() else np.inf)


def distinct(tables: Sequence[tuple[Node, Known]]) -> list[tuple[Node, Known]]:
  """Tables with their formulas, without those that have the values of one before."""
  kept: list[tuple[Node, Known]] = []
  for seed, known in tables:
    if not any(known.has_values_of(other.coefficient.column, other.direction) for _, other in kept):
      kept.append((seed, known))
  return kept
