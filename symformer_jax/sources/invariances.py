"""Which changes of the columns leave a target alone, so that it is a function of fewer columns.

A target that is the same for all x, y of one difference has opposite slopes in them; one that grows in proportion when
some columns grow by powers of one number has slopes that obey Euler's theorem on homogeneous functions. So each such
change is a linear relation of the slopes at all rows, and slopes are known from a smooth function through the rows
(`gaussian_process`). It takes a column away; what is left may be searched as a table of its own. Differences, products
and quotients are what AI Feynman looks for with a neural network (Udrescu et al. 2020, sec. II.F); products of powers
with a factor are Buckingham's theorem without units.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
import itertools
import math
from typing import NamedTuple

import numpy as np

from symformer_jax.engine.config import ReductionsConfig
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, number, power, substitute, variable
from symformer_jax.language.tidy import tidy
from symformer_jax.sources import gaussian_process, polynomials
from symformer_jax.sources.gaussian_process import Surrogate
from symformer_jax.sources.links import LINKS
from symformer_jax.sources.monomials import Monomial, to_node
from symformer_jax.sources.rational_bases import all_up_to

# Errors of polynomials are told apart down to this share.
_EXACT = 1e-13


class Reduced(NamedTuple):
  """A table of fewer columns, or of others.

  Attributes:
    x: [N, D'], y: [N]; of the rows that the surrogate goes through.
    columns: each in the user's columns.
    steps: how y came from the user's, the first first: what it was divided by, in the user's columns, or the name of a
      link that it was a function by.
  """

  x: np.ndarray
  y: np.ndarray
  columns: tuple[Node, ...]
  steps: tuple[Node | str, ...] = ()

  @property
  def is_usable(self) -> bool:
    """Whether all values are finite, and none is the same in all rows."""
    return bool(np.all(np.isfinite(self.x)) and np.all(np.isfinite(self.y)) and np.ptp(self.y) > 0
                and np.all(np.ptp(self.x, axis=0) > 0))

  def of(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same table of the user's rows x [N, D], y [N]: its x [N, D'], its y [N], and what an error of that makes of
    the user's y [N]."""
    scale = np.ones(len(y))
    for step in self.steps:
      if isinstance(step, str):
        scale, y = scale / LINKS[step].derivative(y), LINKS[step].transform(y)
      else:
        by = expression.evaluate(step, x)
        scale, y = scale * by, y / by
    return np.column_stack([expression.evaluate(node, x) for node in self.columns]), y, scale

  def restore(self, form: Node) -> Node:
    """A formula of this table in the user's columns."""
    node = substitute(form, dict(enumerate(self.columns)))
    for step in reversed(self.steps):
      node = LINKS[step].undo(node) if isinstance(step, str) else chain("*", [node, step])
    return tidy(node)

  def with_places(self, place: Mapping[int, int]) -> "Reduced":
    """Of a user's table whose columns have other places."""
    return self._replace(
      columns=tuple(expression.with_columns(node, place) for node in self.columns),
      steps=tuple(step if isinstance(step, str) else expression.with_columns(step, place) for step in self.steps))

  def behind(self, name: str, slopes: np.ndarray) -> tuple["Reduced", np.ndarray]:
    """The function of y that a link is by, and its slopes."""
    link, y = LINKS[name], self.y
    shown = link.transform(y)
    sign = np.sign(shown[np.argmax(y)] - shown[np.argmin(y)])  # links are monotonic
    return self._replace(y=shown, steps=(*self.steps, name)), slopes * (sign * link.derivative(y))[:, None]

  def with_logarithms(self, some: Sequence[int]) -> "Reduced":
    """With the logarithms of some columns in their place."""
    x, columns = self.x.copy(), list(self.columns)
    for column in some:
      x[:, column], columns[column] = np.log(x[:, column]), tidy(Node("ln", (columns[column],)))
    return self._replace(x=x, columns=tuple(columns))


class Change(NamedTuple):
  """A relation of slopes, and the columns for which it is none any more.

  Attributes:
    error: median share of what it leaves at a row.
    dropped: the column that is needed no more.
    replaced: new columns in the place of others, and their derivatives by those [N].
    divisor: what y is divided by.
    is_simple: whether all its numbers are simple ones, which are known exactly.
  """

  error: float
  dropped: int
  replaced: Mapping[int, tuple[Node, np.ndarray]]
  divisor: Monomial = ()
  is_simple: bool = True

  @property
  def complexity(self) -> int:
    """Nodes of what takes the place of columns and stands before the function."""
    nodes = [node for node, _ in self.replaced.values()] + ([to_node(self.divisor)] if self.divisor else [])
    return sum(map(expression.complexity, nodes))

  @property
  def key(self) -> tuple:
    """The same for the same change."""
    return self.dropped, self.divisor, tuple((column, node) for column, (node, _) in self.replaced.items())

  def apply(self, table: Reduced, slopes: np.ndarray) -> tuple[Reduced, np.ndarray]:
    """The smaller table, and its slopes."""
    by = expression.evaluate(to_node(self.divisor), table.x)
    x, steepness, columns = table.x.copy(), np.ones_like(table.x), list(table.columns)
    inner = dict(enumerate(table.columns))
    for column, (node, derivative) in self.replaced.items():
      x[:, column] = expression.evaluate(node, table.x)
      steepness[:, column] = derivative
      columns[column] = tidy(substitute(node, inner))
    del columns[self.dropped]
    divided = (tidy(substitute(to_node(self.divisor), inner)),) if self.divisor else ()
    smaller = Reduced(np.delete(x, self.dropped, axis=1), table.y / by, tuple(columns), (*table.steps, *divided))
    return smaller, np.delete(slopes / steepness / by[:, None], self.dropped, axis=1)


@np.errstate(all="ignore")  # what is not finite is no change
def find_reductions(x: np.ndarray, y: np.ndarray, config: ReductionsConfig) -> list[Reduced]:
  """Tables of fewer columns that changes lead to, one after the other: by changes whose numbers are simple; then also by
  others, whose numbers are known to a few digits. The first, or the table itself, with logarithms of columns where these
  make it a polynomial. Empty where there are none.

  Args:
    x: [N, D], y [N]: finite, no column nor y the same in all rows.
  """
  way = _Way(x, y, config)
  found = []
  for only_simple in (True, False):
    if way.go_on(only_simple):
      found.append(way.table)
  first = found[0] if found else _whole(x, y)
  logarithms = find_logarithms(first, config)
  return [*found, *([first.with_logarithms(logarithms)] if logarithms else [])]


def _whole(x: np.ndarray, y: np.ndarray) -> Reduced:
  return Reduced(x, y, tuple(map(variable, range(x.shape[1]))))


class _Way:
  """From a table to smaller ones; each stands if its rows left out are predicted as well as before.

  Attributes:
    table: where it has come to.
  """

  def __init__(self, x: np.ndarray, y: np.ndarray, config: ReductionsConfig):
    self.table, self._config = _whole(x, y), config
    self._x, self._y = x, y
    self._surrogate = gaussian_process.fit(x, y, config.surrogate)
    self._errors = self._errors_of(self._surrogate, self.table)

  def _errors_of(self, surrogate: Surrogate, table: Reduced) -> np.ndarray:
    """Of the user's y, predicted from other rows: typical and large ones."""
    errors = surrogate.errors * table.of(self._x, self._y)[2]
    return np.array([gaussian_process.typical_error(errors, self._y), gaussian_process.large_error(errors, self._y)])

  @property
  def _is_known(self) -> bool:
    """Whether slopes say anything."""
    return bool(self._errors[0] <= self._config.most_error and self._surrogate.left <= self._config.most_left)

  def go_on(self, only_simple: bool) -> bool:
    """Whether there was a smaller table."""
    config, begin = self._config, len(self.table.columns)
    rejected: set[tuple] = set()
    is_careful, num_rejected = False, 0
    while len(self.table.columns) > 1 and num_rejected < config.max_rejected and self._is_known:
      most = 1 if is_careful else len(self.table.columns)
      smaller, changes = _follow(self.table, self._surrogate.slopes, rejected, most, only_simple, config)
      if not changes:
        smaller, changes = _behind_link(self.table, self._surrogate.slopes, rejected, config)
      if not changes:
        break
      if self._stands(smaller):
        rejected, is_careful = set(), False
      elif len(changes) > 1:
        is_careful = True  # one by one
      else:
        rejected.add(changes[0].key)
        num_rejected += 1
    return len(self.table.columns) < begin

  def _stands(self, smaller: Reduced) -> bool:
    """Whether the way goes there."""
    fitted = gaussian_process.fit(smaller.x, smaller.y, self._config.surrogate)
    errors = self._errors_of(fitted, smaller)
    if not np.all(errors <= np.array(self._config.most_worse) * self._errors):
      return False
    self.table, self._surrogate, self._errors = smaller, fitted, np.maximum(self._errors, errors)
    return True


def _behind_link(
  table: Reduced, slopes: np.ndarray, rejected: set[tuple], config: ReductionsConfig
) -> tuple[Reduced, list[Change]]:
  """The surest change of a function of y that is none of y: it has a power of a column as a factor."""
  ways = []
  for name in config.links:
    if LINKS[name].is_defined(table.y):
      shown, behind = table.behind(name, slopes)
      found = [change for change in find_changes(shown.x, shown.y, behind, config, rejected)
               if change.divisor and change.is_simple and change.error <= config.likely]
      ways += [(change, *change.apply(shown, behind)) for change in found]
  ways = [way for way in ways if way[1].is_usable]
  if not ways:
    return table, []
  change, smaller, _ = min(ways, key=lambda way: (way[0].error, way[0].complexity))
  return smaller, [change]


def find_logarithms(table: Reduced, config: ReductionsConfig) -> tuple[int, ...]:
  """The columns in whose logarithms y, or a function of it, is far nearer a polynomial of low degree than without."""
  x, num_rows = table.x, len(table.y)
  usable = [i for i in range(x.shape[1]) if gaussian_process.is_wide(x[:, i], config.least_ratio)]
  degree = max((d for d in config.degrees if math.comb(x.shape[1] + d, d) <= num_rows * config.rows_share), default=0)
  if not (usable and degree and x.shape[1] > 1 and len(usable) <= config.max_logarithms):
    return ()
  powers = all_up_to(x.shape[1], degree)
  logs = np.log(x, where=x > 0, out=np.zeros_like(x))
  found = []
  for name in config.shown_links:
    if LINKS[name].is_defined(table.y):
      y = LINKS[name].transform(table.y)
      errors = {}
      for chosen in itertools.chain.from_iterable(
          itertools.combinations(usable, size) for size in range(len(usable) + 1)):
        shown = np.where(np.isin(np.arange(x.shape[1]), chosen), logs, x)
        design = polynomials.table(powers, shown / np.max(np.abs(shown), axis=0))
        left = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
        errors[chosen] = max(float(np.sqrt(np.mean(left**2)) / np.std(y)), _EXACT)
      best = min(errors, key=lambda each: (errors[each], len(each)))
      found.append((errors[best] / errors[()], best))
  share, best = min(found, default=(1.0, ()))
  return best if share <= config.least_share else ()


def _follow(
  table: Reduced, slopes: np.ndarray, rejected: set[tuple], most: int, only_simple: bool, config: ReductionsConfig
) -> tuple[Reduced, list[Change]]:
  """So many changes at most, as long as slopes leave no doubt of them."""
  followed: list[Change] = []
  while len(followed) < most and len(table.columns) > 1:
    found = [change for change in find_changes(table.x, table.y, slopes, config, rejected)
             if change.is_simple or (not only_simple and change.error <= config.sure)]
    limit = max(config.times_least * min((change.error for change in found), default=0.0), config.fine)
    for change in sorted((c for c in found if c.error <= limit), key=lambda c: (c.complexity, c.error)):
      smaller, new_slopes = change.apply(table, slopes)
      if smaller.is_usable:
        break
    else:
      break
    table, slopes = smaller, new_slopes
    followed.append(change)
    if change.error > config.sure:
      break
  return table, followed


def find_changes(
  x: np.ndarray, y: np.ndarray, slopes: np.ndarray, config: ReductionsConfig, rejected: Set[tuple] = frozenset()
) -> list[Change]:
  """All that the slopes [N, D] of y [N] at x [N, D] allow within the tolerance, but for those that were rejected."""
  powers = _remaining(_powers(x, y, slopes, config), config, rejected)
  minimal = [frozenset((change.dropped, *([x.shape[1]] if change.divisor else []))) for change in powers]
  others = itertools.chain(_sums(x, slopes, config), _scalings(x, y, slopes, minimal, config))
  return [*powers, *_remaining(others, config, rejected)]


def _remaining(changes: Iterable[Change], config: ReductionsConfig, rejected: Set[tuple]) -> list[Change]:
  return [change for change in changes if change.error <= config.tolerance and change.key not in rejected]


def _powers(x: np.ndarray, y: np.ndarray, slopes: np.ndarray, config: ReductionsConfig) -> Iterator[Change]:
  """Powers of one column that are factors of y: x*dy/dx = c*y; columns that y does not depend on, c = 0."""
  for column in range(x.shape[1]):
    growth = x[:, column] * slopes[:, column]
    exponent = simplest(float(np.median(growth / y)), lambda c, of=growth: _share_of_two(of, c * y), config)
    if abs(exponent) < config.least_part:
      reach = np.std(x[:, column]) * slopes[:, column]
      yield Change(float(np.median(np.abs(reach)) / np.std(y)), column, {})
    elif _may_divide(x[:, column], exponent):
      yield Change(_share_of_two(growth, exponent * y), column, {}, ((column, exponent),),
                   is_simple(exponent, config))


def _sums(x: np.ndarray, slopes: np.ndarray, config: ReductionsConfig) -> Iterator[Change]:
  """Functions of k*f(a) + g(b), f and g powers or logarithms: da/f'(a) = k*db/g'(b); of each pair the nearest few."""
  scaled = {(column, p): slopes[:, column] / _derivative(x[:, column], p) for column in range(x.shape[1])
            for p in config.powers if _has_power(x[:, column], p)}
  for i, j in itertools.combinations(range(x.shape[1]), 2):
    found = []
    for p, q in itertools.product(config.powers, repeat=2):
      if (i, p) in scaled and (j, q) in scaled:
        first, second = scaled[i, p], scaled[j, q]
        ratio = float(np.median(first / second))
        error = _share_of_two(first, ratio * second)
        if math.isfinite(ratio) and ratio and error <= config.tolerance:
          found.append((error, p, q, ratio))
    least = min((error for error, *_ in found), default=0.0)
    for error, p, q, ratio in found:
      if error <= max(config.times_least * least, config.fine):
        yield from _joined(x, (i, j), (p, q), ratio, (scaled[i, p], scaled[j, q]), config)


def _joined(
  x: np.ndarray, columns: tuple[int, int], powers: tuple[float, float], ratio: float,
  slopes: tuple[np.ndarray, np.ndarray], config: ReductionsConfig,
) -> Iterator[Change]:
  """One column for two of which y knows ratio*f(a) + g(b) alone.

  Args:
    powers: which functions f and g are; slopes: of y by these.
  """
  (i, j), (p, q), (first, second) = columns, powers, slopes
  if (p == 0 and q != 0) or (p == q == 0 and abs(ratio) < 1):
    i, j, p, q, first, second, ratio = j, i, q, p, second, first, 1 / ratio
  ratio = simplest(ratio, lambda k: _share_of_two(first, k * second), config)
  error, is_known = _share_of_two(first, ratio * second), is_simple(ratio, config)
  if p == q == 0:
    if _may_divide(x[:, i], ratio):
      node = chain("*", [power(variable(i), number(ratio)), variable(j)])
      yield Change(error, i, {j: (node, _power(x[:, i], ratio))}, is_simple=is_known)
    return
  function = Node("*", (power(variable(i), number(p)), number(ratio)))
  if q == 0:
    node = Node("*", (Node("exp", (function,)), variable(j)))
    yield Change(error, i, {j: (tidy(node), np.exp(ratio * _power(x[:, i], p)))}, is_simple=is_known)
    return
  # Of a difference below 0 in all rows no function has a logarithm or a root.
  sign = -1.0 if np.all(ratio * _power(x[:, i], p) + _power(x[:, j], q) < 0) else 1.0
  terms = (Node("*", (function, number(sign))), Node("*", (power(variable(j), number(q)), number(sign))))
  yield Change(error, i, {j: (tidy(Node("+", terms)), sign * _derivative(x[:, j], q))}, is_simple=is_known)


def _scalings(
  x: np.ndarray, y: np.ndarray, slopes: np.ndarray, minimal: Sequence[frozenset[int]], config: ReductionsConfig
) -> Iterator[Change]:
  """Columns and y that grow together by powers of one number: sum of a_i*x_i*dy/dx_i = c*y (Euler).

  Args:
    minimal: columns (y as the one after the last) of relations that are known: none is looked for that has more.
  """
  num_columns, minimal = x.shape[1], list(minimal)
  growths = np.column_stack([x * slopes, -y])
  for size in range(2, config.max_scaled + 1):
    for chosen in itertools.combinations(range(num_columns + 1), size):
      if any(known <= set(chosen) for known in minimal) or (size == 2 and num_columns in chosen):
        continue
      weights = _relation(growths[:, chosen], config)
      if weights is None:
        continue
      minimal.append(frozenset(chosen))
      if size > 2:  # products of two are sums of logarithms
        yield from _scaled(x, growths, chosen, weights, config)


def _relation(growths: np.ndarray, config: ReductionsConfig) -> np.ndarray | None:
  """Weights [S] with which the growths [N, S] sum to next to nothing in all rows, each with a part in it."""
  unit = growths / np.linalg.norm(growths, axis=1, keepdims=True)
  if not np.all(np.isfinite(unit)):
    return None
  weights = np.linalg.svd(unit, full_matrices=False)[2][-1]
  parts = np.median(np.abs(growths * weights), axis=0)
  if np.min(parts) < config.least_part * np.max(parts):
    return None
  return weights if _share_left(growths, weights) <= config.tolerance else None


def _scaled(
  x: np.ndarray, growths: np.ndarray, chosen: Sequence[int], weights: np.ndarray, config: ReductionsConfig
) -> Iterator[Change]:
  """Every column over the power of one of them that grows as it does; of these ones the one of simplest powers."""
  num_columns, found = x.shape[1], []
  for place, pivot in enumerate(chosen):
    if pivot == num_columns:
      continue
    powers = _simplest_powers(growths[:, chosen], weights / weights[place], config)
    exponents = dict(zip(chosen, powers.tolist(), strict=True))
    error = _share_left(growths[:, chosen], powers)
    if error <= config.tolerance and all(_may_divide(x[:, pivot], exponent) for exponent in powers):
      replaced = {}
      for column, exponent in exponents.items():
        if column not in (pivot, num_columns):
          node = chain("*", [variable(column), power(variable(pivot), number(-exponent))])
          replaced[column] = (node, _power(x[:, pivot], -exponent))
      divisor = ((pivot, exponents[num_columns]),) if num_columns in exponents else ()
      found.append(Change(error, pivot, replaced, divisor, all(is_simple(each, config) for each in powers)))
  if found:
    yield min(found, key=lambda change: (not change.is_simple, change.complexity, change.error))


def _simplest_powers(growths: np.ndarray, powers: np.ndarray, config: ReductionsConfig) -> np.ndarray:
  """The simplest that leave about as little as powers [S] that are known to some digits."""
  left = max(config.snapped_worse * _share_left(growths, powers), config.fine)
  for denominator in config.power_denominators:
    simple = np.round(powers * denominator) / denominator
    if np.max(np.abs(simple - powers)) <= config.least_chance / denominator and _share_left(growths, simple) <= left:
      return simple
  return powers


def _share_left(growths: np.ndarray, weights: np.ndarray) -> float:
  parts = growths * weights
  return float(np.median(np.abs(parts.sum(axis=1)) / np.max(np.abs(parts), axis=1)))


def _share_of_two(first: np.ndarray, second: np.ndarray) -> float:
  """The median difference of two numbers, as a share of them; infinite where there are none."""
  share = float(np.median(np.abs(first - second) / np.hypot(first, second)))
  return share if math.isfinite(share) else math.inf


def simplest(value: float, left: Callable[[float], float], config: ReductionsConfig) -> float:
  """The simplest number near a value that leaves about as little, where that is no chance; the value if there is none.

  Args:
    left: what a number leaves, a share.
  """
  if not math.isfinite(value):
    return value
  most = max(config.snapped_worse * left(value), config.fine)
  for denominator in config.denominators:
    simple = round(value * denominator) / denominator
    if abs(simple - value) <= config.least_chance / denominator and left(simple) <= most:
      return simple
  return value


def is_simple(value: float, config: ReductionsConfig) -> bool:
  """Whether it is one of the numbers that `nearest_simple` gives."""
  some = (*config.denominators, *config.power_denominators)
  return any(round(value * denominator) / denominator == value for denominator in some)


def _has_power(values: np.ndarray, exponent: float) -> bool:
  """Whether a function of the column is smooth in all rows."""
  return bool(np.all(values > 0) or exponent == 1 or (exponent in (0.0, -1.0) and np.all(values != 0)))


def _may_divide(values: np.ndarray, exponent: float) -> bool:
  """Whether the power of the column is a number, and not 0, in all rows."""
  return exponent == 0 or bool(np.all(values > 0) or (exponent == round(exponent) and np.all(values != 0)))


def _power(values: np.ndarray, exponent: float) -> np.ndarray:
  return np.asarray(values**exponent)


def _derivative(values: np.ndarray, exponent: float) -> np.ndarray:
  """Of a power; of the logarithm for 0."""
  return 1 / values if exponent == 0 else exponent * _power(values, exponent - 1)
