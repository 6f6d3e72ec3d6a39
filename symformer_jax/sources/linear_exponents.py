"""Products of powers whose exponents are straight lines of columns, with one inner sum, exact data:
`y*z*x**(y - 1)*(1 - x**y)**(z - 1)`, `z*(x/w)**(-y)*(1 + x/w)**(y - 3)`, `(1 + (y - 1)/2*x**2)**(-y/(y - 1))`.

The logarithm of such a product is linear in all but the inner sum. So what least squares leave tells of each sum by
itself: of those without a constant, 240 of three columns in some fifteen milliseconds, and of others on a grid of it.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import dataclasses
import functools
import itertools
import math
from typing import NamedTuple

import numpy as np
from scipy import optimize

from symformer_jax.engine import interruption
from symformer_jax.engine.config import LinearExponentsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, inverse, negate, number, plus, power, times, variable
from symformer_jax.language.rules import Rule
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.projections import directions, sparse, without

# What varies by less is a constant but for rounding.
_LEAST_RANGE = 1e-6
# What is left is told apart down to this, by constants that differ by this share, in so many steps.
_TINY, _CLOSE, _MAX_STEPS = 1e-300, 1e-13, 60
ONE = number(1.0)


class _Factor(NamedTuple):
  """A base, by its logarithm, to the power of a multiple of a formula; or the exponential of one, with no base.

  Attributes:
    values: of the logarithm times the formula [N].
  """

  base: Node | None
  exponent: Node
  values: np.ndarray


class _WithConstant(NamedTuple):
  """1 + c*m or 1 - c*m, by the sign.

  Attributes:
    places: of c, above 0, that are looked at first.
  """

  monomial: Node
  sign: float
  places: np.ndarray

  def at(self, c: float) -> Node:
    return plus(ONE, times(self.monomial, number(self.sign * c)))


@np.errstate(all="ignore")  # what is not finite is left out
def products_of(rows: Rows, columns: Sequence[int], rule: Rule, config: LinearExponentsConfig) -> list[Node]:
  """The shortest such product that the rows meet, of a y of both signs times an inner function or a wave that has them;
  none where none is met.
  """
  varies = rows.varying(columns)
  if 2 <= len(varies) <= config.max_columns_of_waves and np.all(rows.y):
    with contextlib.suppress(np.linalg.LinAlgError):  # odd data cost other closed forms nothing
      return _of_signs(rows, varies, rule, config)
  return []


def _of_signs(rows: Rows, varies: Sequence[int], rule: Rule, config: LinearExponentsConfig) -> list[Node]:
  some = rows.sample(config.max_rows, seed=0)
  if np.ptp(np.sign(rows.y)) == 0:
    return sorted(filter(rule, _products(some, varies, config)), key=expression.complexity)[:1]
  plain = dataclasses.replace(config, max_columns_fitted=1)
  for sign in _signs(rows, [variable(column) for column in varies]):
    of_one_sign = dataclasses.replace(some, y=some.y / expression.evaluate(sign, some.x))
    found = (tidy(times(node, sign)) for node in _products(of_one_sign, varies, plain))
    if allowed := sorted(filter(rule, found), key=expression.complexity):
      return allowed[:1]
  return []


def _signs(rows: Rows, plain: Sequence[Node]) -> Iterator[Node]:
  """Functions that change their sign where y does: columns, inner functions, and waves of products and quotients, of
  sums, and of a product beside a column.
  """
  products = [times(one, other) for one, other in itertools.combinations(plain, 2)]
  quotients = [times(one, inverse(other)) for one, other in itertools.permutations(plain, 2)]
  pairs = [*itertools.combinations(plain, 2), *((two, one) for two, one in itertools.product(products, plain)
                                                if not expression.columns_of(two) & expression.columns_of(one))]
  sums = [plus(one, each) for one, other in pairs for each in (other, negate(other))]
  waves = (Node(token, (each,)) for each in (*products, *quotients, *sums) for token in ("sin", "cos"))
  for each in (*plain, *_inner(plain), *waves):
    values = expression.evaluate(each, rows.x)
    if np.all(np.isfinite(values) & (values != 0)) and np.ptp(np.sign(values) * np.sign(rows.y)) == 0:
      yield each


def _products(rows: Rows, columns: Sequence[int], config: LinearExponentsConfig) -> list[Node]:
  """Of a y of one sign; of many columns without an inner function."""
  interruption.check()
  table = _Table(rows, columns, config)
  has_inner = len(columns) <= config.max_columns
  num_terms = table.num_terms if has_inner else table.num_outer
  if rows.num_distinct < config.rows_per_term * num_terms or np.ptp(table.target) == 0:
    return []
  if table.is_met:
    return [table.written(None, config.exact)]
  found = [table.written(base, config.exact) for base in table.nearest_plain()] if has_inner else []
  if found or not has_inner or len(columns) > config.max_columns_fitted:
    return found
  written = (table.written(base, config.near) for base in table.fitted())
  return [node for node in written if expression.complexity(node) <= config.most_nodes_fitted]


class _Table:
  """The logarithm of y, and what it is linear in.

  Attributes:
    target: the logarithm of the size of y [N]; num_outer, num_terms: without an inner function, and with one.
  """

  def __init__(self, rows: Rows, columns: Sequence[int], config: LinearExponentsConfig):
    self._rows, self._config = rows, config
    self._plain = [variable(column) for column in columns]
    self.target = np.log(np.abs(rows.y))
    self._sign = math.copysign(1.0, rows.y[0])
    products = [times(*two) for two in itertools.combinations(self._plain, 2)]
    self._factors = list(self._outer(products))
    less = [plus(each, number(-1.0)) for each in self._plain]
    self._multipliers = self._usable([ONE, *self._plain, *self._inverses([*self._plain, *less]), *products])
    self._basis = directions(np.stack([each.values for each in self._factors], axis=1))
    self._left = without(self.target, self._basis)
    self.num_outer, self.num_terms = len(self._factors), len(self._factors) + len(self._multipliers)
    self._size = float(self.target @ self.target)

  def _usable(self, nodes: Sequence[Node]) -> list[tuple[Node, np.ndarray]]:
    pairs = ((node, self._of(node)) for node in nodes)
    return [(node, values) for node, values in pairs if np.all(np.isfinite(values))]

  def _of(self, node: Node) -> np.ndarray:
    return expression.evaluate(node, self._rows.x)

  def _inverses(self, nodes: Sequence[Node]) -> list[Node]:
    """Of those that keep their sign."""
    return [inverse(each) for each in nodes if np.ptp(np.sign(self._of(each))) == 0]

  def _outer(self, products: Sequence[Node]) -> Iterator[_Factor]:
    """Columns, their inverses and squares, products and quotients of two in exponentials, powers of columns with a line
    of columns as their exponent, powers of a column and 1 more or less.
    """
    yield _Factor(None, ONE, np.ones(len(self._rows)))
    inverses = self._inverses(self._plain)
    quotients = [times(one, other) for one in self._plain for other in inverses if one != other.args[0]]
    for node, values in self._usable([*self._plain, *inverses, *products, *quotients, *map(_square, self._plain)]):
      yield _Factor(None, node, values)
    for base, values in self._usable(self._plain):
      logarithms = np.log(values)
      if np.all(np.isfinite(logarithms)):
        yield _Factor(base, ONE, logarithms)
        yield from (_Factor(base, node, logarithms * by) for node, by in self._usable(self._plain))
    for base, values in self._usable([plus(each, number(one)) for each in self._plain for one in (1.0, -1.0)]):
      if np.all(values > 0):
        yield _Factor(base, ONE, np.log(values))

  @property
  def is_met(self) -> bool:
    """Whether the rows need no inner function."""
    return float(self._left @ self._left) <= self._config.exact * self._size

  def nearest_plain(self) -> list[Node]:
    """Inner functions without a constant that the rows meet, the shortest first."""
    found = []
    for base in _inner(self._plain):
      values = np.log(self._of(base))
      is_usable = np.all(np.isfinite(values)) and np.ptp(values) > _LEAST_RANGE
      if is_usable and self._left_by(values) <= self._config.exact * self._size:
        found.append(base)
    return sorted(found, key=expression.complexity)[: self._config.num_written]

  def fitted(self) -> list[Node]:
    """Inner sums with a constant that the rows meet."""
    tries = []
    for each in self._with_constants():
      interruption.check()
      left = [self._left_of(each, c) for c in each.places]
      best = int(np.argmin(left))
      tries.append((left[best], each, each.places[max(best - 1, 0)], each.places[min(best + 1, len(left) - 1)]))
    found = []
    for _, each, low, high in sorted(tries, key=lambda one: one[0])[: self._config.num_tried]:
      c = _least(functools.partial(self._left_of, each), low, high)
      if self._left_of(each, c) <= self._config.near * self._size:
        found.append(each.at(c))
    return found

  def _with_constants(self) -> Iterator["_WithConstant"]:
    config = self._config
    spread = np.geomspace(1 / config.reach, config.reach, config.num_places)
    shares = 1 - np.geomspace(config.nearest_to_zero, config.farthest_from_zero, config.num_places)[::-1]
    for monomial in (*_some_monomials(self._plain), *_shifted_monomials(self._plain)):
      values = self._of(monomial)
      if np.all((values > 0) & np.isfinite(values)) and np.ptp(values) > _LEAST_RANGE * np.max(values):
        yield _WithConstant(monomial, 1.0, spread / np.median(values))
        yield _WithConstant(monomial, -1.0, shares / np.max(values))

  def _left_of(self, each: "_WithConstant", c: float) -> float:
    return self._left_by(np.log(self._of(each.at(c))))

  def _left_by(self, logarithms: np.ndarray) -> float:
    """Squared error with powers of a sum of these logarithms [N] besides."""
    block = without(np.stack([logarithms * by for _, by in self._multipliers], axis=1), self._basis)
    basis = directions(block)
    left = without(self._left, basis) if basis.shape[1] else self._left
    value = float(left @ left)
    return value if math.isfinite(value) else math.inf

  def written(self, base: Node | None, most: float) -> Node:
    """The product with powers of this function, if any, of the fewest factors that leave this share of the squares at
    most.
    """
    factors = self._factors
    if base is not None:
      logarithms = np.log(self._of(base))
      factors = [*factors, *(_Factor(base, node, logarithms * by) for node, by in self._multipliers)]
    design = np.stack([each.values for each in factors], axis=1)
    chosen, coefficients = sparse(design, self.target, most * self._size, times_left=self._config.times_left)
    by_base: dict[Node | None, list[Node]] = {}
    for place, coefficient in zip(chosen, coefficients, strict=True):
      exponent = tidy(times(factors[place].exponent, number(float(coefficient))))
      by_base.setdefault(factors[place].base, []).append(exponent)
    powers = [Node("exp", (chain("+", terms),)) if base is None else power(base, chain("+", terms))
              for base, terms in by_base.items()]
    return tidy(chain("*", [number(self._sign), *powers]))


def _least(function: Callable[[float], float], low: float, high: float) -> float:
  """The number above 0 between two where a function is least, which may be next to nothing there."""
  found = optimize.minimize_scalar(
    lambda log: math.log(max(function(math.exp(log)), _TINY)), bounds=(math.log(low), math.log(high)), method="bounded",
    options={"xatol": _CLOSE, "maxiter": _MAX_STEPS})
  return math.exp(float(found.x))


def _sums(plain: Sequence[Node]) -> Iterator[Node]:
  """1 + m, 1 - m, m - 1 of monomials and powers; sums and differences of two columns, and of their squares."""
  for one, other in itertools.combinations(plain, 2):
    for a, b in ((one, other), (_square(one), _square(other))):
      yield from (plus(a, b), plus(a, negate(b)), plus(b, negate(a)))
  for each in dict.fromkeys([*_some_monomials(plain), *_more_monomials(plain)]):
    yield from (plus(ONE, each), plus(ONE, negate(each)), plus(each, number(-1.0)))


def _inner(plain: Sequence[Node]) -> Iterator[Node]:
  """Sums (see `_sums`), logarithms, 1 plus or minus an exponential, waves: what is not above 0 in all rows is none."""
  yield from _sums(plain)
  inverses = list(map(inverse, plain))
  for each in (*plain, *(plus(ONE, some) for some in (*plain, *map(negate, (*plain, *inverses))))):
    yield from (Node("ln", (each,)), negate(Node("ln", (each,))))
  products = [times(one, other) for one, other in itertools.combinations(plain, 2)]
  quotients = [times(one, inverse(other)) for one, other in itertools.permutations(plain, 2)]
  for each in (*plain, *inverses, *products, *quotients):
    exponential = Node("exp", (negate(each),))
    yield from (plus(ONE, exponential), plus(ONE, negate(exponential)))
  yield from (Node(token, (each,)) for each in plain for token in ("sin", "cos"))


def _shifted_monomials(plain: Sequence[Node]) -> list[Node]:
  return [times(plus(one, number(-1.0)), _square(other)) for one, other in itertools.permutations(plain, 2)]


def _some_monomials(plain: Sequence[Node]) -> list[Node]:
  """Of one column, of the quotient of two; powers of a column to another."""
  quotients = [times(one, inverse(other)) for one, other in itertools.combinations(plain, 2)]
  raised = [power(one, other) for one, other in itertools.permutations(plain, 2)]
  return [*plain, *map(_square, plain), *quotients, *map(_square, quotients), *raised]


def _more_monomials(plain: Sequence[Node]) -> list[Node]:
  products = [times(one, other) for one, other in itertools.combinations(plain, 2)]
  quotients = [times(one, inverse(other)) for one, other in itertools.permutations(plain, 2)]
  raised = [power(base, exponent) for base in (*products, *quotients) for exponent in plain
            if not expression.columns_of(base) & expression.columns_of(exponent)]
  broken = [power(one, inverse(other)) for one, other in itertools.permutations(plain, 2)]
  roots = [Node("sqrt", (each,)) for each in plain]
  return [*products, *map(_square, products), *quotients, *map(_square, quotients), *map(inverse, plain),
          *(inverse(_square(each)) for each in plain), *raised, *broken, *roots]


def _square(node: Node) -> Node:
  return power(node, number(2.0))
