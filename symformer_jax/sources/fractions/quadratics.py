"""Roots of quadratic equations: `(x + y)/2 + sqrt((x - y)**2/4 + z**2)`, of which no function of y is a sum.

With polynomials A, B and C of the columns A*y**2 + B*y + C = 0 is linear in all their coefficients. Data that such an
equation meets exactly have one null vector of its columns, as soon as the degrees are just high enough for it.
"""

from collections.abc import Iterator, Sequence
import dataclasses
import itertools
from typing import ClassVar

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import DEFAULT, QuadraticsConfig, SearchConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, number, power, substitute, variable
from symformer_jax.language.rules import Rule
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.fractions import factoring, null_vectors, polynomials, views
from symformer_jax.sources.fractions.polynomials import Polynomial, Powers
from symformer_jax.sources.fractions.views import View, is_rounded
from symformer_jax.sources.links import LINKS
from symformer_jax.sources.stateless import Stateless

# The three polynomials of an equation.
Quadratic = tuple[Polynomial, Polynomial, Polynomial]
# What rounding leaves of two coefficients that cancel, as a share of them.
_CANCELLED = 1e-9


@dataclasses.dataclass(frozen=True)
class Quadratics(Stateless):
  """Roots of quadratic equations whose coefficients are polynomials of the columns."""

  config: SearchConfig = DEFAULT
  name: str = "quadratics"
  turns: tuple[int, ...] = (1,)

  needs: ClassVar[tuple[str, ...]] = ("+", "*", "sqrt")

  def _nodes(self, question: Question, turn: int, num: int) -> list[Node]:
    task = question.task
    return roots_of(task.fit_rows, task.columns, rule=task.rule, config=self.config.quadratics)


@np.errstate(all="ignore")  # what is not finite is left out
def roots_of(
  rows: Rows, columns: Sequence[int], *, rule: Rule, config: QuadraticsConfig = DEFAULT.quadratics
) -> list[Node]:
  """The root that y, or a function of it, is, if it is one: at most one formula.

  Args:
    rows: what is fitted; columns: of x, those that formulas are made of; rule: the formulas that count.
  """
  varies = rows.varying(columns)
  x, y = rows.x[:, varies], rows.y
  if not (varies and np.all(np.isfinite(x)) and np.all(np.isfinite(y)) and np.ptp(y) > 0):
    return []
  inner = {i: variable(column) for i, column in enumerate(varies)}
  has_digits = not is_rounded(y, config.num_digits)
  # Of one column the root of any smooth y is nearly such a root.
  for link in (LINKS[name] for name in (config.links if has_digits and len(varies) > 1 else config.links[:1])):
    if link.is_defined(y) and all(map(rule.allows_operator, link.operators)):
      for node in _roots_over_views(x, link.transform(y), rule, config, has_views=has_digits):
        whole = tidy(substitute(link.undo(node), inner))
        if rule(whole):
          return [whole]
  return []


def _roots_over_views(
  x: np.ndarray, y: np.ndarray, rule: Rule, config: QuadraticsConfig, *, has_views: bool
) -> Iterator[Node]:
  """Over columns x [N, D], and over functions of them."""
  others = views.views(x, config.views, rule.allows_operator) if has_views else ()
  looks = itertools.chain([(views.plain(x.shape[1]), config.degrees, config.elimination)], (
    (view, config.view_degrees, config.view_elimination) for view in others))
  for view, degrees, elimination in looks:
    own = dataclasses.replace(config, degrees=degrees, elimination=elimination)
    for node in _roots(view, views.values(view, x), y, own):
      yield substitute(node, {i: part.node for i, part in enumerate(view)})


def _roots(view: View, u: np.ndarray, y: np.ndarray, config: QuadraticsConfig) -> Iterator[Node]:
  """Over the view's columns u [N, D']."""
  sizes, y_size = np.max(np.abs(u), axis=0), float(np.max(np.abs(y)))
  for quadratic in _exact_equations(view, u / sizes, y / y_size, config):
    above, linear, rest = (polynomials.rescaled(each, sizes) for each in quadratic)
    # In the user's units; the largest coefficient of A is 1: where A is a number, it is that.
    leading = max(above.values(), key=abs) / y_size**2
    own = [{powers: value / (y_size**power * leading) for powers, value in each.items()}
           for each, power in ((above, 2), (linear, 1), (rest, 0))]
    node = _root((own[0], own[1], own[2]), u, y, config)
    if node is not None:
      yield node


def _exact_equations(
  view: View, x: np.ndarray, y: np.ndarray, config: QuadraticsConfig
) -> Iterator[Quadratic]:
  """Equations of few terms that hold in every row, those of low degree first."""
  tables: dict[int, np.ndarray] = {}
  for degrees in config.degrees:
    interruption.check()
    if views.least_monomials(view, max(degrees)) > config.max_columns:
      continue
    bases = [views.monomials(view, degree) if degree >= 0 else [] for degree in degrees]
    num_columns = sum(map(len, bases))
    if num_columns > min(config.max_columns, len(y) / config.rows_per_term):
      continue
    tables |= {degree: polynomials.table(basis, x)
               for degree, basis in zip(degrees, bases, strict=True) if basis and degree not in tables}
    columns = np.concatenate([tables[degree] * y[:, None] ** power
                              for degree, power in zip(degrees, (2, 1, 0), strict=True) if degree >= 0], axis=1)
    coefficients = null_vectors.find(columns, config.elimination)
    if coefficients is None:
      continue
    parts = np.split(coefficients, np.cumsum([len(basis) for basis in bases])[:2])
    above, linear, rest = ({powers: float(c) for powers, c in zip(basis, part, strict=True) if c}
                           for basis, part in zip(bases, parts, strict=True))
    if above and rest:  # else it is a fraction
      yield above, linear, rest


def _root(quadratic: Quadratic, x: np.ndarray, y: np.ndarray, config: QuadraticsConfig) -> Node | None:
  """The formula; None where it does not meet y, or y is one root in some rows and the other in others."""
  a, b, c = (polynomials.values(each, x) if each else np.zeros(len(x)) for each in quadratic)
  side, middle = 2 * a * y + b, -0.5 * b / a
  signs = [float(np.sign(each[np.argmax(np.abs(each))])) for each in (side, y - middle)]
  inside = signs[0] * np.sqrt(np.maximum(b**2 - 4 * a * c, 0.0))
  beside = signs[1] * np.sqrt(np.maximum(middle**2 - c / a, 0.0))
  # The second is for an A that vanishes between the rows, the third for one whose sign changes there.
  by_form = [((inside - b) / (2 * a), _written, signs[0]), (-2 * c / (b + inside), _written_below, signs[0]),
             (middle + beside, _written_beside, signs[1])]
  for values, write, sign in by_form:
    error = np.mean((values - y) ** 2)
    # Under noise what cancels in the discriminant does so to the noise.
    for tolerance in (config.nearly_cancelled, _CANCELLED) if error < config.most_missed * np.var(y) else ():
      node = write(quadratic, sign, x, tolerance)
      if node is None:
        continue
      if np.mean((expression.evaluate(node, x) - y) ** 2) <= config.error_share * error + _floor(y):
        return node
  return None


def _root_of_fraction(below: Polynomial, rest: Polynomial, sign: float, x: np.ndarray) -> Node:
  """sign*sqrt(-4*A*C)/(2*A), as a root over a root."""
  turn = 1.0 if polynomials.values(below, x)[0] > 0 else -1.0
  top = _square_root({powers: -turn * value for powers, value in rest.items()}, x)
  bottom = _square_root({powers: turn * value for powers, value in below.items()}, x)
  return tidy(chain("*", [top, Node("inv", (bottom,)), number(sign * turn)]))


def _floor(y: np.ndarray) -> float:
  """What rounding leaves of errors."""
  return float(null_vectors.ROUNDING**2 * np.var(y) * 1e4)


def _written(quadratic: Quadratic, sign: float, x: np.ndarray, tolerance: float) -> Node | None:
  """-B/(2*A) + sign*sqrt(B**2 - 4*A*C)/(2*A); without what is less than a share of what it comes from."""
  above, linear, rest = quadratic
  if not linear:
    return _root_of_fraction(above, rest, sign, x)
  discriminant = _discriminant(quadratic, tolerance)
  if not discriminant:
    return None
  if len(above) == 1 and not any(next(iter(above))):
    root = _square_root({powers: 0.25 * value for powers, value in discriminant.items()}, x)
    half = _multiple(linear, -0.5)
    root = _shorter(root, half, _product(above, rest), 1.0)
    return tidy(Node("+", (half, _signed(root, sign))))
  negative = _multiple(linear, -1.0)
  root = _shorter(_square_root(discriminant, x), negative, _product(above, rest), 4.0)
  top = Node("+", (negative, _signed(root, sign)))
  bottom = factoring.to_node({powers: 2 * value for powers, value in above.items()})
  return tidy(Node("*", (top, Node("inv", (bottom,)))))


def _shorter(root: Node, half: Node, product: Polynomial, factor: float) -> Node:
  """The root of a discriminant, or that of a square less a product: where many terms are put together none is short."""
  apart = Node("sqrt", (Node("+", (power(half, number(2.0)), _multiple(product, -factor))),))
  return min(tidy(root), tidy(apart), key=expression.complexity)


def _written_below(quadratic: Quadratic, sign: float, x: np.ndarray, tolerance: float) -> Node | None:
  """-2*C/(B + sign*sqrt(B**2 - 4*A*C))"""
  _, linear, rest = quadratic
  discriminant = _discriminant(quadratic, tolerance)
  if not (linear and discriminant):
    return None
  bottom = Node("+", (factoring.to_node(linear), _signed(_square_root(discriminant, x), sign)))
  return tidy(Node("*", (_multiple(rest, -2.0), Node("inv", (bottom,)))))


def _written_beside(quadratic: Quadratic, sign: float, x: np.ndarray, tolerance: float) -> Node | None:
  """b + sign*sqrt(b**2 - C/A), where -B/(2*A) is a number b."""
  above, linear, rest = quadratic
  powers = max(above, key=lambda powers: abs(above[powers]))
  b = -0.5 * linear.get(powers, 0.0) / above[powers]
  top = _sum({powers: -value for powers, value in rest.items()}, above, b**2, tolerance)
  if _sum(linear, above, 2 * b, tolerance) or not top:
    return None
  inside = factoring.quotient(top, above, DEFAULT.rationals.factoring) or Node("*", (
    factoring.to_node(top), Node("inv", (factoring.to_node(above),))))
  return tidy(Node("+", (number(b), _signed(Node("sqrt", (inside,)), sign))))


def _discriminant(quadratic: Quadratic, tolerance: float) -> Polynomial:
  above, linear, rest = quadratic
  return _sum(_product(linear, linear), _product(above, rest), -4.0, tolerance)


def _multiple(polynomial: Polynomial, factor: float) -> Node:
  return factoring.to_node({powers: factor * value for powers, value in polynomial.items()})


def _signed(node: Node, sign: float) -> Node:
  return Node("*", (node, number(float(sign))))


def _square_root(polynomial: Polynomial, x: np.ndarray) -> Node:
  """sqrt(x**2*y - x**2) -> x*sqrt(y - 1), of columns that keep their sign."""
  common = np.min(list(polynomial), axis=0)
  keeps_sign = np.all(x > 0, axis=0) | np.all(x < 0, axis=0)
  outside = np.where(keeps_sign, common // 2, 0.0)
  sign = float(np.prod(np.sign(x[0]) ** outside))
  within = {tuple((np.array(powers) - 2 * outside).tolist()): value for powers, value in polynomial.items()}
  root = Node("sqrt", (factoring.to_node(within),))
  return Node("*", (Node("*", (root, polynomials.node_of(tuple(outside.tolist())))), number(sign)))


def _product(one: Polynomial, other: Polynomial) -> Polynomial:
  found: Polynomial = {}
  for p, a in one.items():
    for q, b in other.items():
      powers: Powers = tuple((np.array(p) + np.array(q)).tolist())
      found[powers] = found.get(powers, 0.0) + a * b
  return found


def _sum(one: Polynomial, other: Polynomial, factor: float, tolerance: float) -> Polynomial:
  """one + factor*other, without terms of which less than a share is left."""
  sizes = {powers: abs(value) for powers, value in one.items()}
  found = dict(one)
  for powers, value in other.items():
    found[powers] = found.get(powers, 0.0) + factor * value
    sizes[powers] = max(sizes.get(powers, 0.0), abs(factor * value))
  return {powers: value for powers, value in found.items() if abs(value) > tolerance * sizes[powers]}
