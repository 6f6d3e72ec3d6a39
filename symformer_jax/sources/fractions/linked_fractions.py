"""Fractions inside a function with a constant of its own: `7.6*arccos(z/w)`, `-0.5*log((1 - 2*x - y)**2*(1 - 2*y))`,
`(3.1 + 0.2*x*y)**0.37`.

With f such a function of y, y**k, exp(k*y) or a cosine, sine or tangent of k*y, and polynomials P and Q in the columns
P - f(y)*Q = 0 is linear in all but k: the angle between the space of P and that of f(y)*Q falls to rounding where k is
right, as in `function_fractions`, whose functions are of columns. What fraction f(y) is there `exact_fractions` finds.
"""

from collections.abc import Callable, Iterator, Sequence
import dataclasses
from typing import ClassVar, NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import DEFAULT, LinkedFractionsConfig, SearchConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.language.expression import Node, number, power, variable
from symformer_jax.language.rules import Rule
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.fractions import exact_fractions, function_fractions, polynomials, views
from symformer_jax.sources.fractions.views import View
from symformer_jax.sources.stateless import Stateless
from symformer_jax.sources.sums import pair_sums


class Family(NamedTuple):
  """Functions of y that differ in a constant.

  Attributes:
    operators: what undoes them.
    constants: which are tried for y [N], in order; None where it has none.
    of: for constants [K] and y [N] the values [K, N], of size 1 at most.
    undo: y as a formula of the function's, by the constant and the largest y.
  """

  operators: tuple[str, ...]
  constants: Callable[[np.ndarray, LinkedFractionsConfig], np.ndarray | None]
  of: Callable[[np.ndarray, np.ndarray], np.ndarray]
  undo: Callable[[Node, float, float], Node]


def _exponents(y: np.ndarray, config: LinkedFractionsConfig) -> np.ndarray | None:
  is_wide = 0 < np.min(y) * config.least_ratio < np.max(y)
  return np.geomspace(*config.exponents, config.num_constants) if is_wide else None


def _rates(y: np.ndarray, config: LinkedFractionsConfig) -> np.ndarray | None:
  return np.geomspace(*config.turns_of_exponential, config.num_constants) / np.ptp(y)


def _up_to(angle: float) -> Callable[[np.ndarray, LinkedFractionsConfig], np.ndarray]:
  """Of angles that turn by so much at most."""
  return lambda y, config: angle / np.max(np.abs(y)) * np.linspace(config.least_angle, 1, config.num_constants)


def _up_to_half_a_turn(y: np.ndarray, config: LinkedFractionsConfig) -> np.ndarray | None:
  return _up_to(np.pi)(y, config) if np.min(y) >= 0 else None


def _over(node: Node, constant: float) -> Node:
  return Node("*", (node, number(1 / constant)))


FAMILIES: dict[str, Family] = {
  "powers": Family(("pow",), _exponents, lambda k, y: (y / np.max(y)) ** k[:, None],
                   lambda node, k, largest: Node("*", (power(node, number(1 / k)), number(largest)))),
  "exponentials": Family(("ln",), _rates, lambda k, y: np.exp(k[:, None] * (y - np.max(y))),
                         lambda node, k, largest: Node("+", (_over(Node("ln", (node,)), k), number(largest)))),
  "cosines": Family(("acos",), _up_to_half_a_turn, lambda k, y: np.cos(k[:, None] * y),
                    lambda node, k, largest: _over(Node("acos", (node,)), k)),
  "sines": Family(("asin",), _up_to(np.pi / 2), lambda k, y: np.sin(k[:, None] * y),
                  lambda node, k, largest: _over(Node("asin", (node,)), k)),
  "tangents": Family(("atan",), _up_to(np.pi / 2), lambda k, y: np.tan(k[:, None] * y),
                     lambda node, k, largest: _over(Node("atan", (node,)), k))}


class Place(NamedTuple):
  """A minimum between two constants: what is left of the equation there, as a share of what is around it."""

  leap: float
  family: Family
  low: float
  high: float


@dataclasses.dataclass(frozen=True)
class LinkedFractions(Stateless):
  """Functions with a constant of their own of a fraction, that data meet exactly."""

  config: SearchConfig = DEFAULT
  name: str = "linked_fractions"

  needs: ClassVar[tuple[str, ...]] = ("+", "*", "inv")

  @property
  def turns(self) -> tuple[int, ...]:
    return self.config.linked_fractions.turns

  def _nodes(self, question: Question, turn: int, num: int) -> Sequence[Node]:
    task = question.task
    return pair_sums.allowed(fractions_of(task.fit_rows, task.columns, task.rule, self.config), task, num,
                             self.config.terms)


@np.errstate(all="ignore")  # what is not finite is left out
def fractions_of(rows: Rows, columns: Sequence[int], rule: Rule, config: SearchConfig = DEFAULT) -> list[Node]:
  """Forms of the first fraction that some function of y is, for constants that are still to be fitted.

  Args:
    rows: what is fitted; columns: of x, those that formulas are made of; rule: the formulas that count.
  """
  own = config.linked_fractions
  looked_at = rows.sample(own.num_rows, seed=0)
  varies = looked_at.varying(columns)
  is_rounded = views.is_rounded(looked_at.y, config.exact_fractions.num_digits)
  if not varies or np.ptp(looked_at.y) == 0 or is_rounded:
    return []
  families = [family for family in map(FAMILIES.__getitem__, own.families)
              if all(map(rule.allows_operator, family.operators))]
  for view, equation in _equations(looked_at, varies, rule, own):
    places = [place for family in families for place in equation.places(family)]
    for place in sorted(places, key=lambda place: place.leap)[: own.num_fitted]:
      constant = equation.best(place)
      if constant is not None and (found := _written(rows, view, rule, place.family, constant, config)):
        return found
  return []


def _written(rows: Rows, view: View, rule: Rule, family: Family, constant: float, config: SearchConfig) -> list[Node]:
  function = dataclasses.replace(rows, y=family.of(np.array([constant]), rows.y)[0])
  of_itself = dataclasses.replace(config, exact_fractions=dataclasses.replace(config.exact_fractions, links=("y",)))
  most = config.exact_fractions.max_columns
  found = exact_fractions.fractions_in(
    view, function, num_monomials=most[min(len(view), len(most)) - 1], rule=rule, config=of_itself)
  return [tidy(family.undo(node, constant, float(np.max(rows.y)))) for node in found]


def _equations(rows: Rows, columns: Sequence[int], rule: Rule, config: LinkedFractionsConfig
               ) -> "Iterator[tuple[View, _Equation]]":
  """The smallest first, of those for which there are rows enough: of the columns, then of waves of angles."""
  root = np.sqrt(rows.weights / rows.weights.sum())[:, None]
  num_rows = len(np.unique(rows.x[:, columns], axis=0))  # other columns tell no rows apart
  for view, degrees in _views(rows, columns, rule, config):
    u = views.values(view, rows.x)
    for each in degrees:
      above, below = (root * polynomials.table(views.monomials(view, degree), u / np.max(np.abs(u), axis=0))
                      for degree in each)
      if (above.shape[1] + below.shape[1]) * config.rows_per_term <= num_rows:
        yield view, _Equation(rows.y, above, below, config)


def _views(rows: Rows, columns: Sequence[int], rule: Rule, config: LinkedFractionsConfig
           ) -> Iterator[tuple[View, tuple[tuple[int, int], ...]]]:
  """The columns; sines and cosines of all that may be angles in their place; and the degrees of each."""
  yield tuple(views.Part(variable(column)) for column in columns), config.degrees
  waves = [views.angle(rows.x[:, column], column) or (views.Part(variable(column)),) for column in columns]
  if any(len(each) > 1 for each in waves) and rule.allows_operator("sin") and rule.allows_operator("cos"):
    yield tuple(part._replace(is_linear=True) for each in waves for part in each), config.degrees_of_waves


class _Equation:
  """P - f(y)*Q = 0 at some rows, each term of length 1.

  Attributes:
    y: of these [N]; above, below: terms of P [N, P] and of Q [N, Q].
  """

  def __init__(self, y: np.ndarray, above: np.ndarray, below: np.ndarray, config: LinkedFractionsConfig):
    self._config = config
    self.y, self.above, self.below = y, above / np.linalg.norm(above, axis=0), below / np.linalg.norm(below, axis=0)
    self._explaining = np.linalg.qr(above)[0]

  def places(self, family: Family) -> Iterator[Place]:
    """Minima over the constants of a family."""
    config = self._config
    constants = family.constants(self.y, config)
    if constants is None:
      return
    interruption.check()
    shares = self.shares(family, constants)
    for k, around in function_fractions.minima(shares, config.num_around, config.rounding):
      yield Place(float(shares[k] / around), family, float(constants[k - 1]), float(constants[k + 1]))

  def best(self, place: Place) -> float | None:
    """The constant at which the spaces meet; None where they do not.

    Terms that are not needed make up for a wrong constant: without them it is known to more digits.
    """
    constant = self._nearest(place)
    few = None if constant is None else self._needed(place.family, constant)
    return constant if few is None else few._nearest(place) or constant

  def _nearest(self, place: Place) -> float | None:
    interruption.check()
    config, low, high = self._config, place.low, place.high
    for division in range(config.num_divisions):
      finer = np.linspace(low, high, config.num_parts + 1)
      shares = self.shares(place.family, finer)
      k = int(np.argmin(shares))
      low, high = finer[max(k - 1, 0)], finer[min(k + 1, config.num_parts)]
      if division + 1 == config.num_first and shares[k] > config.first_share:
        return None
    return float(finer[k]) if shares[k] < config.rounding else None

  def _needed(self, family: Family, constant: float) -> "_Equation | None":
    """The equation of the terms that take part in it; None where one side has none."""
    columns = np.concatenate([self.above, -family.of(np.array([constant]), self.y)[0][:, None] * self.below], axis=1)
    vector = np.abs(np.linalg.svd(columns, full_matrices=False)[2][-1])
    over, under = np.split(vector > self._config.least_part * np.max(vector), [self.above.shape[1]])
    if not (np.any(over) and np.any(under)):
      return None
    return _Equation(self.y, self.above[:, over], self.below[:, under], self._config)

  def shares(self, family: Family, constants: np.ndarray) -> np.ndarray:
    """The least share (squared) of f(y)*Q that P leaves, for constants [K]: [K]."""
    left, _ = np.linalg.qr(family.of(constants, self.y)[:, :, None] * self.below)
    for _ in range(2):  # the second time takes away what rounding left
      left = left - self._explaining @ (self._explaining.T @ left)
    sizes = np.linalg.svd(np.where(np.isfinite(left), left, 1.0), compute_uv=False)[:, -1]
    return np.maximum(sizes**2, np.finfo(float).tiny)
