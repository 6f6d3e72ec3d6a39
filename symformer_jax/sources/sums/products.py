"""Products of powers of the variables and of few other factors, such as `x*y/sqrt(1 - x**2/z**2)`.

The logarithm of such a product is a sum. Powers of all variables are fitted at once, whatever the exponents; what they
leave is selected forward among the logarithms of sums `1 + c*monomial` and of functions of monomials. For data of many
variables: laws of nature are mostly such products, a monomial of all variables with few exceptions.
"""

from collections.abc import Callable, Iterator, Sequence
import dataclasses
import itertools
import math

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import DEFAULT, ProductsConfig, PursuitConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, number, power, variable
from symformer_jax.language.tidy import tidy
from symformer_jax.selection import scoring
from symformer_jax.sources.monomials import Monomial, Values, to_node, up_to
from symformer_jax.sources.sums import pursuit
from symformer_jax.sources.sums.blocks import in_blocks

# Logarithms of larger size, and of a smaller spread, are of no use in single precision.
LARGEST_LOG, LEAST_SPREAD = 60.0, 1e-5
# Mean squared error of log|y| that is rounding of logarithms.
ROUNDING = 1e-12


@dataclasses.dataclass(frozen=True)
class _Family:
  """Logarithms of factors.

  Attributes:
    logs: [N, G]; NaN or infinite where a factor is 0 or undefined.
    build: index, exponent -> ways to write that power of the factor, as (exponents of variables, formula).
    groups: [G], one for what differs in an inner constant, but for sums.
    is_plain: [G], whether the inner constant is the usual one.
    is_exponential: whether the exponent of the factor is an inner constant.
    is_linear: [G], whether its logarithm is a variable; None for none.
    tokens: its operators, those of monomials apart.
  """

  logs: np.ndarray
  # Of a column's number and an exponent; in a loop a lambda has what it is of as defaults.
  build: Callable[..., list[tuple[Monomial, Node]]]
  groups: np.ndarray
  is_plain: np.ndarray
  is_exponential: bool = False
  is_linear: np.ndarray | None = None
  tokens: tuple[str, ...] = ("+",)


class Factors:
  """Logarithms of the sizes of all factors at points x [N, D], float32 and finite.

  Args:
    x: points; columns: of x, these variables are used; allows: operators by name, None for all.
    config: which factors.
  Attributes:
    columns: [N, P]; groups, is_plain, is_exponential, is_linear: [P].
  """

  def __init__(
    self, x: np.ndarray, columns: Sequence[int], allows: Callable[[str], bool] | None = None, *,
    config: ProductsConfig = DEFAULT.products,
  ):
    self._made: list[tuple[_Family, np.ndarray]] = []
    logs, groups = [np.zeros((len(x), 0), np.float32)], [np.zeros(0, int)]
    is_plain, is_exponential, is_linear = [np.zeros(0, bool)], [np.zeros(0, bool)], [np.zeros(0, bool)]
    num_groups = 0
    with np.errstate(all="ignore"):  # what is undefined is left out
      every = (family for family in _families(_Space(Values(x), columns, allows, config))
               if allows is None or all(allows(token) for token in family.tokens))
      for some in in_blocks(every, lambda family: family.logs.shape[1]):
        interruption.check()
        whole = np.concatenate([family.logs for family in some], axis=1)
        largest = np.max(np.abs(whole), axis=0)
        is_kept = largest < LARGEST_LOG  # NaN is not below
        is_kept[is_kept] = np.ptp(whole[:, is_kept], axis=0) > LEAST_SPREAD
        logs.append(whole[:, is_kept].astype(np.float32))
        ends = np.cumsum([family.logs.shape[1] for family in some])
        for family, part in zip(some, np.split(is_kept, ends[:-1]), strict=True):
          indices = np.flatnonzero(part)
          groups.append(num_groups + family.groups[indices])
          is_plain.append(family.is_plain[indices])
          is_exponential.append(np.full(len(indices), family.is_exponential))
          is_linear.append(np.zeros(len(indices), bool) if family.is_linear is None else family.is_linear[indices])
          num_groups += 1 + int(np.max(family.groups, initial=0))
          self._made.append((family, indices))
    self.columns, self.groups, self.is_plain, self.is_exponential, self.is_linear = (
      np.concatenate(parts, axis=-1) for parts in (logs, groups, is_plain, is_exponential, is_linear))
    self._ends = np.cumsum([len(indices) for _, indices in self._made])

  def forms(self, index: int, exponent: float) -> list[tuple[Monomial, Node]]:
    """Ways to write a power of a factor, as (exponents of variables that go with it, formula)."""
    place = int(np.searchsorted(self._ends, index, side="right"))
    family, indices = self._made[place]
    begin = int(self._ends[place - 1]) if place else 0
    return family.build(int(indices[index - begin]), exponent)


@np.errstate(all="ignore")  # what is not finite is left out
def find_products(
  rows: Rows, columns: Sequence[int], allows: Callable[[str], bool] | None = None, *,
  config: ProductsConfig = DEFAULT.products, pursuit_config: PursuitConfig = DEFAULT.pursuit,
) -> list[list[Node]]:
  """Products of powers of the variables and of few factors that fit best.

  Args:
    rows: what is fitted, where y is not 0; errors are weighted as those of y.
    columns: of x; these variables are used.
    allows: operators by name, for the factors; None for all.
    config: which factors, and how many; pursuit_config: how they are selected.
  Returns:
    For every number of factors those with the exponents that fit best, those with fewer variables where that is nearly
    as good, and those whose exponents are half numbers, for inner constants that are not fitted yet.
  """
  relative = rows.y / np.max(np.abs(rows.y))
  is_used = rows.weights * relative**2 > 0
  rows = Rows(rows.x[is_used], rows.y[is_used], rows.weights[is_used])
  if len(rows) <= len(columns) + config.max_factors + 1:
    return []
  target, factors = _Target(rows, columns, allows, config), Factors(rows.x, columns, allows, config=config)
  plain = np.flatnonzero(factors.is_plain)
  among_all, among_plain = (
    dataclasses.replace(pursuit_config, max_columns=max_columns, num_first=num_first, num_pairs=config.num_pairs,
                        num_kept_short=config.num_pairs)
    for max_columns, num_first in ((config.max_factors, config.num_first), (2, config.num_paired)))
  nothing, linear = np.zeros(0, int), np.flatnonzero(factors.is_linear)
  chosen = [nothing, *target.select(factors, np.arange(len(factors.groups)), among_all, beside=nothing),
            *target.select(factors, plain, among_plain, beside=nothing)]
  if len(linear):
    chosen += [linear, *target.select(factors, np.setdiff1d(plain, linear), among_plain, beside=linear)]
  by_size: dict[int, list[tuple[float, np.ndarray]]] = {}
  for each in chosen:
    interruption.check()
    by_size.setdefault(len(each), []).append((target.least_cost(factors, each), each))
  sets: dict[tuple[int, int], list[tuple[float, np.ndarray, np.ndarray]]] = {}
  for size, some in by_size.items():
    num_usable = 0
    for _, each in sorted(some, key=lambda entry: entry[0]):
      interruption.check()
      found = target.exponents(factors, each)
      for variant, exponents in enumerate(found):
        cost = target.cost(factors, each, exponents, config.nats_per_exponent)
        sets.setdefault((variant, size), []).append((cost, each, exponents))
      num_usable += bool(found)
      if num_usable == 2 * config.num_written:  # with fewer variables few come before those that do with all
        break
  # Trees are dear to write and to evaluate: those that promise most.
  seen: set[Node] = set()
  return [target.written(factors, sorted(some, key=lambda entry: entry[0])[: config.num_written], rows, seen)
          for some in sets.values()]


class _Target:
  """log|y| as a sum of multiples of the logarithms of variables, of factors, and of a constant."""

  def __init__(
    self, rows: Rows, columns: Sequence[int], allows: Callable[[str], bool] | None, config: ProductsConfig
  ):
    self._config = config
    self._x, self._sign, self._allows = rows.x, float(np.sign(rows.y[np.argmax(np.abs(rows.y))])), allows
    self._z, self._weights = np.log(np.abs(rows.y)), rows.weights * (rows.y / np.max(np.abs(rows.y))) ** 2
    self._root = np.sqrt(self._weights / np.max(self._weights))
    logs = np.log(np.abs(rows.x[:, columns]))
    is_power = np.isfinite(logs).all(axis=0) & (np.ptp(logs, axis=0) > LEAST_SPREAD)
    self._logs = logs[:, is_power]
    self._variables = [column for column, ok in zip(columns, is_power, strict=True) if ok]
    self._negative = {column for column in self._variables if np.all(rows.x[:, column] < 0)}

  def select(
    self, factors: Factors, some: np.ndarray, config: PursuitConfig, *, beside: np.ndarray
  ) -> list[np.ndarray]:
    """Sets of some factors, selected forward for what the powers of the variables and the factors beside them leave;
    the latter are of each set.
    """
    columns = factors.columns[:, some]
    root = np.sqrt(self._weights / self._weights.sum())[:, None]
    basis, _ = np.linalg.qr(
      root * np.column_stack([self._logs, factors.columns[:, beside], np.ones(len(self._z))]))
    target = root[:, 0] * self._z
    target = (target - basis @ (basis.T @ target)) / root[:, 0]
    left = root * columns
    lengths = np.linalg.norm(left, axis=0)
    single = basis.astype(np.float32)
    left = left - single @ (single.T @ left)
    is_own = np.flatnonzero(np.linalg.norm(left, axis=0) > self._config.independent * lengths)
    chosen = pursuit.select_columns(
      (left[:, is_own] / root).astype(np.float32), target, self._weights, groups=factors.groups[some[is_own]],
      config=config)
    return [np.concatenate([beside, some[is_own[list(each)]]]) for each in chosen]

  def written(
    self, factors: Factors, sets: Sequence[tuple[float, np.ndarray, np.ndarray]], rows: Rows, seen: set[Node]
  ) -> list[Node]:
    """The products of `(cost, factors, exponents)`, each with the multiple that fits best; none that was seen."""
    found = []
    for _, chosen, exponents in sets:
      interruption.check()
      node = self._product(factors, chosen, exponents)
      if node is not None and not node.is_number and node not in seen:
        seen.add(node)
        found.append(scoring.with_factor(node, rows.x, rows.y, rows.weights))
    return found

  def cost(self, factors: Factors, chosen: np.ndarray, exponents: np.ndarray, nats_per_exponent: float) -> float:
    """Nats, roughly, to describe log|y| by a product: one that is no half number is paid for twice."""
    left = self._z - np.column_stack([self._logs, factors.columns[:, chosen]]) @ exponents
    weights = self._weights / self._weights.sum()
    error = float(weights @ (left - weights @ left) ** 2)
    num_named = np.count_nonzero(exponents) + np.count_nonzero(exponents != _halves(exponents))
    return len(left) / 2 * math.log(error + ROUNDING) + nats_per_exponent * num_named

  def least_cost(self, factors: Factors, chosen: np.ndarray) -> float:
    """What is left by the exponents that fit best, whether or not they may be had."""
    design = self._root[:, None] * np.column_stack([self._logs, factors.columns[:, chosen], np.ones(len(self._z))])
    goal = self._root * self._z
    return float(np.sum((goal - design @ np.linalg.lstsq(design, goal, rcond=None)[0]) ** 2))

  def exponents(self, factors: Factors, chosen: np.ndarray) -> list[np.ndarray]:
    """Exponents of all variables and these factors: as they fit best, with fewer variables, with half numbers.

    Factors but exponentials have half numbers as exponents; none where these are 0 or large, for that is no law.
    """
    design = np.column_stack([self._logs, factors.columns[:, chosen]])
    is_free = np.concatenate([np.ones(len(self._variables), bool), factors.is_exponential[chosen]])
    exponents = self._fit(self._z, design, np.ones(len(is_free), bool))
    exponents[~is_free] = np.round(2 * exponents[~is_free]) / 2
    if np.any(exponents[~is_free] == 0) or np.any(np.abs(exponents[~is_free]) > self._config.largest_exponent):
      return []
    z = self._z - design[:, ~is_free] @ exponents[~is_free]
    is_power = np.arange(len(is_free)) < len(self._variables)
    all_fitted, few_fitted = (np.where(is_free, self._fit(z, design, is_used), exponents)
                              for is_used in (is_free, self._needed(z, design, is_free)))
    near_half = self._config.near_half
    rounded = [(all_fitted, near_half), (few_fitted, near_half), (few_fitted, np.inf)]
    return [np.where(is_power & (np.abs(fitted - _halves(fitted)) < width), _halves(fitted), fitted)
            for fitted, width in rounded]

  def _fit(self, z: np.ndarray, design: np.ndarray, is_used: np.ndarray) -> np.ndarray:
    """Factors [F] of the columns that fit best beside a constant, 0 for those not used."""
    used = np.column_stack([design[:, is_used], np.ones(len(z))])
    found = np.zeros(len(is_used))
    found[is_used] = np.linalg.lstsq(self._root[:, None] * used, self._root * z, rcond=None)[0][:-1]
    return found

  def _needed(self, z: np.ndarray, design: np.ndarray, is_used: np.ndarray) -> np.ndarray:
    """Columns [F] that remain of those used when one after the other is left out, while that costs little.

    To leave one out costs its factor squared over its place in the inverse of the normal matrix.
    """
    weights = self._weights / self._weights.sum()
    places = np.flatnonzero(is_used)
    columns = design[:, places] - weights @ design[:, places]
    z = z - weights @ z
    inverse = np.linalg.pinv(columns.T @ (weights[:, None] * columns), hermitian=True)
    factors = inverse @ (columns.T @ (weights * z))
    error = float(weights @ (z - columns @ factors) ** 2)
    allowed = error * self._config.max_loss + ROUNDING
    may_go = np.ones(len(places), bool)
    while may_go.any():
      costs = np.where(may_go, factors**2 / np.diag(inverse), np.inf)
      least = int(np.argmin(costs))  # NaN, where the data say nothing of a variable, comes first
      if error + costs[least] > allowed:
        break
      error += costs[least]
      factors = factors - inverse[:, least] * (factors[least] / inverse[least, least])
      inverse = inverse - np.outer(inverse[:, least], inverse[least]) / inverse[least, least]
      # What rounding leaves of its own row must not make it return.
      inverse[least, least], may_go[least], factors[least] = 1.0, False, 0.0
      is_used = is_used & (np.arange(len(is_used)) != places[least])
    return is_used

  def _product(self, factors: Factors, chosen: np.ndarray, exponents: np.ndarray) -> Node | None:
    """In the shortest form that is defined and allowed, of y's sign if that makes no difference."""
    split, least = len(self._variables), self._config.no_exponent
    powers = {c: e for c, e in zip(self._variables, exponents[:split].tolist(), strict=True) if abs(e) > least}
    forms = [factors.forms(int(index), e)
             for index, e in zip(chosen, exponents[split:].tolist(), strict=True) if abs(e) > least]
    written = [self._joined(powers, form) for form in itertools.product(*forms)]
    best, best_complexity = None, 0
    for node in sorted(written, key=expression.complexity):
      if best is not None and expression.complexity(node) > best_complexity:
        break
      values = expression.evaluate(node, self._x)
      is_better = best is None or np.ravel(values)[0] * self._sign > 0
      if np.isfinite(values).all() and is_better and self._is_allowed(node):
        best, best_complexity = node, expression.complexity(node)
    return best

  def _is_allowed(self, node: Node) -> bool:
    return self._allows is None or all(self._allows(part.token) for part in expression.walk(node) if part.args)

  def _joined(self, exponents: dict[int, float], factors: Sequence[tuple[Monomial, Node]]) -> Node:
    exponents = dict(exponents)
    for monomial, _ in factors:
      for column, exponent in monomial:
        exponents[column] = exponents.get(column, 0.0) + exponent
    powers = [power(self._base(column, exponent), number(exponent))
              for column, exponent in exponents.items() if exponent]
    return tidy(chain("*", [*(powers or [number(1)]), *(node for _, node in factors)]))

  def _base(self, column: int, exponent: float) -> Node:
    """The variable, or what is left of its sign where a root is taken."""
    is_turned = column in self._negative and exponent != int(exponent)
    return Node("neg", (variable(column),)) if is_turned else variable(column)


def _halves(numbers: np.ndarray) -> np.ndarray:
  return np.round(2 * numbers) / 2


# --- families ------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Space:
  """What families are made of: values of monomials at the points, the columns used, the rules, and how many of what."""

  values: Values
  columns: Sequence[int]
  allows: Callable[[str], bool] | None
  config: ProductsConfig

  def allowed(self, some: list[Monomial]) -> list[Monomial]:
    """Of monomials those whose powers the rules allow."""
    if self.allows is None:
      return some
    allowed_ones = {p for p in {p for m in some for _, p in m} if all(
      self.allows(part.token) for part in expression.walk(to_node(((0, p),))) if part.args)}
    return [m for m in some if all(p in allowed_ones for _, p in m)]


def _families(space: _Space) -> Iterator[_Family]:
  """Every factor of the families that the config names."""
  for name, make in FAMILIES.items():
    if name in space.config.families:
      yield from make(space)


def _exponentials(space: _Space) -> Iterator[_Family]:
  """exp(m)."""
  config = space.config
  exponents = space.allowed(up_to(space.columns, config.max_exponent_size, at_most=config.max_exponents,
                                  exponents=config.exponent_powers))
  family = _exponentials_of(space.values(exponents), lambda i: to_node(exponents[i]))
  is_linear = np.array([len(m) == 1 and m[0][1] == 1 for m in exponents], bool)
  yield dataclasses.replace(family, is_linear=is_linear)


def _exponentials_of(exponents: np.ndarray, build: Callable[[int], Node]) -> _Family:
  largest = np.max(np.abs(exponents), axis=0)
  return _Family(exponents / largest, lambda i, e: [((), Node("exp", (_times(build(i), e / largest[i]),)))],
                 np.arange(len(largest)), np.ones(len(largest), bool), is_exponential=True, tokens=("exp",))


def _exponentials_of_distances(space: _Space) -> Iterator[_Family]:
  distances = _distances(space.columns, space.config.max_distances)
  yield _exponentials_of(_evaluated(distances, space.values.x), lambda i: distances[i])


def _distances(columns: Sequence[int], at_most: int) -> list[Node]:
  """v - w, its square, and both over another variable, as in a normal density; none where these are too many."""
  differences = [_plus(variable(v), Node("neg", (variable(w),))) for v, w in itertools.combinations(columns, 2)]
  if len(differences) * len(columns) > at_most:
    return []
  scaled = [Node("*", (difference, Node("inv", (variable(u),)))) for difference in differences for u in columns]
  return [node for each in (*differences, *scaled) for node in (each, power(each, number(2)))]


def _evaluated(nodes: Sequence[Node], x: np.ndarray) -> np.ndarray:
  return np.stack([expression.evaluate(node, x) for node in nodes], axis=1) if nodes else np.zeros((len(x), 0))


def _sums(space: _Space) -> Iterator[_Family]:
  """1 + c*m."""
  config = space.config
  terms = [m for m in up_to(space.columns, config.max_term_size, at_most=config.max_terms, exponents=config.term_powers)
           if m[0][1] > 0]  # 1 + 1/m is (m + 1)/m
  values, groups = space.values(terms), np.arange(len(terms))
  num_multiples = int(np.clip(config.max_columns / 2 / max(len(terms), 1), 1, len(config.multiples)))
  for c in config.multiples[:num_multiples]:
    for signed in (c, -c):
      yield _Family(_log_size(1 + signed * values), lambda i, e, c=signed: _ways_to_write_sum(terms[i], c, e), groups,
                    np.full(len(terms), c == 1))


def _ways_to_write_sum(monomial: Monomial, factor: float, exponent: float) -> list[tuple[Monomial, Node]]:
  """(1 + c*n/d)**e, and as (d + c*n)**e/d**e; each also with all signs changed, for roots of what is positive."""
  above = tuple((column, p) for column, p in monomial if p > 0)
  below = tuple((column, -p) for column, p in monomial if p < 0)
  outside = tuple((column, -p * exponent) for column, p in below)
  forms = [((), number(1), monomial)] + ([(outside, to_node(below), above)] if below else [])
  return [(extra, power(_plus(_times(first, sign), _times(to_node(second), sign * factor)), number(exponent)))
          for extra, first, second in forms for sign in (1, -1)]


def _sums_with_waves(space: _Space) -> Iterator[_Family]:
  """1 + c*m*sin(v) and 1 + c*m*cos(v)."""
  config = space.config
  terms = [(), *up_to(
    space.columns, config.max_term_size, at_most=config.max_arguments, exponents=config.plain_powers)]
  powers = space.values(terms)
  for column in space.columns:
    angle = space.values([((column, 1),)])
    for token, wave in (("sin", np.sin(angle)), ("cos", np.cos(angle))):
      for c in (1.0, -1.0):
        yield _Family(
          _log_size(1 + c * powers * wave),
          lambda i, e, c=c, column=column, token=token: [((), power(_plus(number(1), _times(
            Node("*", (to_node(terms[i]), Node(token, (variable(column),)))), c)), number(e)))],
          np.arange(len(terms)), np.zeros(len(terms), bool), tokens=("+", token))


def _functions(space: _Space) -> Iterator[_Family]:
  """Those of every monomial, with inner constants on a grid where there are few."""
  config = space.config
  arguments, plain = (
    up_to(space.columns, config.max_argument_size, at_most=config.max_arguments, exponents=exponents)
    for exponents in (config.argument_powers, config.plain_powers))
  low, high, num_rates = config.rates
  num_rates = int(np.clip(config.max_columns / 7 / max(len(plain), 1), config.min_rates, num_rates))
  arguments, has_rates = space.allowed(arguments), frozenset(plain)
  for monomial, u in zip(arguments, space.values(arguments).T, strict=True):
    grid = np.geomspace(low, high, num_rates if monomial in has_rates else 0) / np.max(np.abs(u))
    yield from _functions_of(monomial, u, np.concatenate([config.usual_rates, grid]))


def _functions_of(monomial: Monomial, u: np.ndarray, rates: np.ndarray) -> Iterator[_Family]:
  """sin, cos, ln, arctan, arcsin, arccos, exp(u) - 1, exp(u) + 1, exp(u) - exp(-u), exp(u) + exp(-u), tanh."""
  inner = u[:, None] * rates

  def scaled(i: int, factor: float = 1.0) -> Node:
    return _times(to_node(monomial), factor * rates[i])

  def exponential(i: int, factor: float = 1.0) -> Node:
    return Node("exp", (scaled(i, factor),))

  kinds: list[tuple[tuple[str, ...], np.ndarray, Callable[[int], Node]]] = [
    (("sin",), np.sin(inner), lambda i: Node("sin", (scaled(i),))),
    (("cos",), np.cos(inner), lambda i: Node("cos", (scaled(i),))),
    (("+", "exp"), np.expm1(inner), lambda i: _plus(exponential(i), number(-1))),
    (("+", "exp"), np.exp(inner) + 1, lambda i: _plus(exponential(i), number(1))),
    (("+", "exp", "neg"), 2 * np.sinh(inner), lambda i: _plus(exponential(i), Node("neg", (exponential(i, -1),)))),
    (("+", "exp"), 2 * np.cosh(inner), lambda i: _plus(exponential(i), exponential(i, -1))),
    (("+", "exp", "inv"), np.tanh(inner), lambda i: _plus(number(1), _times(
      Node("inv", (_plus(exponential(i, 2), number(1)),)), -2))),  # defined where exp(2*u) overflows
    (("ln",), np.log(inner[:, :1]), lambda i: Node("ln", (to_node(monomial),))),
    (("atan",), np.arctan(inner), lambda i: Node("atan", (scaled(i),))),
    (("asin",), np.arcsin(inner), lambda i: Node("asin", (scaled(i),))),
    (("acos",), np.arccos(inner), lambda i: Node("acos", (scaled(i),))),
  ]
  for tokens, values, build in kinds:
    count = values.shape[1]
    yield _Family(_log_size(values), lambda i, e, build=build: [((), power(build(i), number(e)))],
                  np.zeros(count, int), np.arange(count) < 1, tokens=tokens)


FAMILIES: dict[str, Callable[[_Space], Iterator[_Family]]] = {
  "sums": _sums, "sums_with_waves": _sums_with_waves, "exponentials": _exponentials,
  "distances": _exponentials_of_distances, "functions": _functions}


def _log_size(values: np.ndarray) -> np.ndarray:
  return np.log(np.abs(values))


def _times(node: Node, factor: float) -> Node:
  return tidy(Node("*", (node, number(float(factor)))))


def _plus(first: Node, second: Node) -> Node:
  return chain("+", [first, second])
