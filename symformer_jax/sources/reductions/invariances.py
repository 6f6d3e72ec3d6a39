"""Which changes of the columns leave a target alone, so that it is a function of fewer columns.

A target that is the same for all x, y of one difference has opposite slopes in them; one that grows in proportion when
some columns grow by powers of one number has slopes that obey Euler's theorem on homogeneous functions. So each such
change is a linear relation of the slopes at all rows, and slopes are known from a smooth function through the rows
(`gaussian_process`). It takes a column away; what is left may be searched as a table of its own. Differences, products
and quotients are what AI Feynman looks for with a neural network (Udrescu et al. 2020, sec. II.F); products of powers
with a factor are Buckingham's theorem without units.
"""

from collections.abc import Iterable, Iterator, Sequence, Set
import functools
import itertools
import math

import numpy as np

from symformer_jax.engine import gaussian_process, interruption
from symformer_jax.engine.config import ReductionsConfig
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, number, power, variable
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.reductions import shifted_changes
from symformer_jax.sources.reductions.reduced_tables import Change
from symformer_jax.sources.reductions.relations import (
  is_simple,
  may_divide,
  ratio_of,
  relation,
  robust_null_vector,
  share_left,
  share_of_two,
  simplest,
)


def find_changes(
  x: np.ndarray, y: np.ndarray, slopes: np.ndarray, config: ReductionsConfig, rejected: Set[tuple] = frozenset()
) -> list[Change]:
  """All that the slopes [N, D] of y [N] at x [N, D] allow within the tolerance, but for those that were rejected.

  With an offset more functions come near: a logistic less a half is in proportion to a small argument. So such changes
  (`shifted_changes`) are looked for where none without is likely.
  """
  powers = _remaining(_powers(x, y, slopes, config), config, rejected)
  minimal = [frozenset((change.dropped, *([x.shape[1]] if change.divisor else []))) for change in powers
             if change.error <= config.likely]
  others = itertools.chain(
    _summands(x, y, slopes, config), _sums(x, slopes, config), _products_with_logarithms(x, slopes, config),
    _scalings(x, y, slopes, minimal, config), _shifts(x, y, slopes, minimal, config))
  found = [*powers, *_remaining(others, config, rejected)]
  if any(change.error <= config.likely for change in found):
    return found
  shifted = shifted_changes.find_shifted_changes(x, y, slopes, minimal, config)
  return [*found, *_remaining(shifted, config, rejected)]


def _remaining(changes: Iterable[Change], config: ReductionsConfig, rejected: Set[tuple]) -> list[Change]:
  return [change for change in changes if change.error <= config.tolerance and change.key not in rejected]


def _powers(x: np.ndarray, y: np.ndarray, slopes: np.ndarray, config: ReductionsConfig) -> Iterator[Change]:
  """Powers of one column that are factors of y: x*dy/dx = c*y; columns that y does not depend on, c = 0."""
  for column in range(x.shape[1]):
    growth = x[:, column] * slopes[:, column]
    counts = y != 0
    if not np.any(counts):
      continue
    exponent = float(np.median(growth[counts] / y[counts]))
    if not math.isfinite(exponent):
      continue
    exponent = simplest(exponent, functools.partial(_share_of_power, growth, y), config)
    if abs(exponent) < config.least_part:
      reach = np.std(x[:, column]) * slopes[:, column]
      yield Change(float(np.median(np.abs(reach)) / np.std(y)), column, {})
    elif may_divide(x[:, column], exponent):
      yield Change(_share_of_power(growth, y, exponent), column, {}, ((column, exponent),),
                   is_simple(exponent, config))


def _summands(x: np.ndarray, y: np.ndarray, slopes: np.ndarray, config: ReductionsConfig) -> Iterator[Change]:
  """Multiples of a power or the logarithm of one column that are terms of y: dy/f'(a) is the same in all rows."""
  for column, p in itertools.product(range(x.shape[1]), config.powers):
    if _has_power(x[:, column], p):
      slope = slopes[:, column] / _derivative(x[:, column], p)
      factor = simplest(float(np.median(slope)), functools.partial(share_of_two, slope), config)
      function = Node("ln", (variable(column),)) if p == 0 else power(variable(column), number(p))
      term = tidy(Node("*", (function, number(factor))))
      error, reach = share_of_two(slope, factor), np.std(expression.evaluate(term, x))
      # What comes near to such a term is nothing rare; the logarithm of what is below 0 has no reach.
      if error <= config.sure and reach > config.least_part * np.std(y):
        yield Change(error, column, {}, is_simple=is_simple(factor, config), summand=term)


def _share_of_power(growth: np.ndarray, y: np.ndarray, exponent: float) -> float:
  return share_of_two(growth, exponent * y)


def _sums(x: np.ndarray, slopes: np.ndarray, config: ReductionsConfig) -> Iterator[Change]:
  """Functions of k*f(a) + g(b), f and g powers or logarithms: da/f'(a) = k*db/g'(b); of each pair the nearest few."""
  scaled = {(column, p): slopes[:, column] / _derivative(x[:, column], p) for column in range(x.shape[1])
            for p in config.powers if _has_power(x[:, column], p)}
  for i, j in itertools.combinations(range(x.shape[1]), 2):
    interruption.check()
    found = []
    for p, q in itertools.product(config.powers, repeat=2):
      if (i, p) in scaled and (j, q) in scaled:
        first, second = scaled[i, p], scaled[j, q]
        ratio = ratio_of(first, second)
        error = share_of_two(first, ratio * second)
        if math.isfinite(ratio) and ratio and error <= config.tolerance:
          found.append((error, p, q, ratio))
    if min((error for error, *_ in found), default=1.0) > config.sure:
      found += _sums_of_any_powers(x[:, i], x[:, j], slopes[:, i], slopes[:, j], config)
      scaled |= {(column, p): slopes[:, column] / _derivative(x[:, column], p)
                 for _, *both, _ in found[-1:] for column, p in zip((i, j), both, strict=True)}
    least = min((error for error, *_ in found), default=0.0)
    for error, p, q, ratio in found:
      if error <= max(config.times_least * least, config.fine):
        yield from _joined(x, (i, j), (p, q), ratio, (scaled[i, p], scaled[j, q]), config)


def _sums_of_any_powers(
  a: np.ndarray, b: np.ndarray, of_a: np.ndarray, of_b: np.ndarray, config: ReductionsConfig
) -> list[tuple[float, float, float, float]]:
  """Of wide columns [N] above 0 and slopes by them [N] the sum k*a**p + b**q that is all y knows of them, as
  (error, p, q, k): the logarithm of the slopes' ratio is linear in those of a and b, whatever p and q are.
  """
  ratio = of_a / of_b
  # Where both are all but 0 their signs are anything.
  counts = np.isfinite(ratio) & (np.sign(ratio) == np.sign(np.median(ratio))) & (ratio != 0)
  is_wide = all(gaussian_process.is_wide(each, config.least_ratio) for each in (a, b))
  if not (is_wide and np.mean(counts) >= config.of_one_sign):
    return []
  rows = np.column_stack([np.log(a), np.log(b), np.ones(len(a)), np.log(np.abs(ratio))])[counts]
  direction = robust_null_vector(rows / np.linalg.norm(rows, axis=1, keepdims=True), config.num_reweightings)
  if not direction[3]:
    return []
  of_logs = -direction[:2] / direction[3]

  def left(p: float, q: float) -> float:
    first, second = of_a / _derivative(a, p), of_b / _derivative(b, q)
    return share_of_two(first, ratio_of(first, second) * second)
  p = simplest(float(of_logs[0]) + 1, functools.partial(left, q=1 - float(of_logs[1])), config)
  q = simplest(1 - float(of_logs[1]), functools.partial(left, p), config)
  p, q = (0.0 if abs(each) < config.least_exponent else each for each in (p, q))
  error = left(p, q)
  factor = ratio_of(of_a / _derivative(a, p), of_b / _derivative(b, q))
  # Of any exponents some come near to most functions.
  return [(error, p, q, factor)] if error <= config.sure and math.isfinite(factor) and factor else []


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
  ratio = simplest(ratio, lambda k: share_of_two(first, k * second), config)
  error, is_known = share_of_two(first, ratio * second), is_simple(ratio, config)
  if p == q == 0:
    if may_divide(x[:, i], ratio):
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


def _products_with_logarithms(x: np.ndarray, slopes: np.ndarray, config: ReductionsConfig) -> Iterator[Change]:
  """Functions of a**k*log(b): a*dy/da = k*b*log(b)*dy/db."""
  def share(first: np.ndarray, second: np.ndarray, factor: float) -> float:
    return share_of_two(first, factor * second)

  for i, j in itertools.permutations(range(x.shape[1]), 2):
    logarithm = np.log(x[:, j])
    if not (np.all(x[:, i] > 0) and (np.all(logarithm > 0) or np.all(logarithm < 0))):
      continue
    first, second = x[:, i] * slopes[:, i], x[:, j] * logarithm * slopes[:, j]
    left = functools.partial(share, first, second)
    exponent = simplest(ratio_of(first, second), left, config)
    if exponent and left(exponent) <= config.tolerance:
      node = chain("*", [power(variable(i), number(exponent)), Node("ln", (variable(j),))])
      slope = _power(x[:, i], exponent) / x[:, j]
      yield Change(left(exponent), i, {j: (node, slope)}, is_simple=is_simple(exponent, config))


def _shifts(
  x: np.ndarray, y: np.ndarray, slopes: np.ndarray, minimal: Sequence[frozenset[int]], config: ReductionsConfig
) -> Iterator[Change]:
  """a**c times a function of b - k*log(a): where a grows, b is shifted and y grows, a*dy/da + k*dy/db = c*y.

  Args:
    minimal: see `_scalings`; a column that is a factor of y by itself has any number of such relations.
  """
  num_columns = x.shape[1]
  for i, j in itertools.permutations(range(num_columns), 2):
    size = float(np.std(x[:, j]))
    growths = np.column_stack([x[:, i] * slopes[:, i], size * slopes[:, j], -y])
    is_new = not any(known <= {i, j, num_columns} for known in minimal)
    weights = relation(growths, config) if is_new and np.all(x[:, i] > 0) else None
    if weights is None:
      continue
    def left(shift: float, exponent: float, growths: np.ndarray = growths, size: float = size) -> float:
      return share_left(growths, np.array([1.0, shift / size, exponent]))

    shift, exponent = float(weights[1] / weights[0]) * size, float(weights[2] / weights[0])
    shift = simplest(shift, functools.partial(left, exponent=exponent), config)
    exponent = simplest(exponent, functools.partial(left, shift), config)
    if left(shift, exponent) <= config.tolerance:
      node = tidy(Node("+", (variable(j), Node("*", (Node("ln", (variable(i),)), number(-shift))))))
      yield Change(left(shift, exponent), i, {j: (node, np.ones(len(y)))}, ((i, exponent),),
                   is_simple(shift, config) and is_simple(exponent, config))


def _scalings(
  x: np.ndarray, y: np.ndarray, slopes: np.ndarray, minimal: Sequence[frozenset[int]], config: ReductionsConfig
) -> Iterator[Change]:
  """Columns and y that grow together by powers of one number: sum of a_i*x_i*dy/dx_i = c*y (Euler).

  Args:
    minimal: columns (y as the one after the last) of relations that are known: none is looked for that has more. Of
      those that are found only sure ones are such: that of two may be all but one of three.
  """
  num_columns, minimal = x.shape[1], list(minimal)
  growths = np.column_stack([x * slopes, -y])
  for size in range(2, config.max_scaled + 1):
    for chosen in itertools.combinations(range(num_columns + 1), size):
      if any(known <= set(chosen) for known in minimal) or (size == 2 and num_columns in chosen):
        continue
      weights = relation(growths[:, chosen], config)
      if weights is None:
        continue
      if share_left(growths[:, chosen], weights) <= config.sure:
        minimal.append(frozenset(chosen))
      if size > 2:  # products of two are sums of logarithms
        yield from _scaled(x, growths, chosen, weights, config)


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
    error = share_left(growths[:, chosen], powers)
    if error <= config.tolerance and all(may_divide(x[:, pivot], exponent) for exponent in powers):
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
  left = max(config.snapped_worse * share_left(growths, powers), config.fine)
  for denominator in config.power_denominators:
    simple = np.round(powers * denominator) / denominator
    if np.max(np.abs(simple - powers)) <= config.least_chance / denominator and share_left(growths, simple) <= left:
      return simple
  return powers


def _has_power(values: np.ndarray, exponent: float) -> bool:
  """Whether a function of the column is smooth in all rows."""
  return bool(np.all(values > 0) or exponent == 1 or (exponent in (0.0, -1.0) and np.all(values != 0)))


def _power(values: np.ndarray, exponent: float) -> np.ndarray:
  return np.asarray(values**exponent)


def _derivative(values: np.ndarray, exponent: float) -> np.ndarray:
  """Of a power; of the logarithm for 0."""
  return 1 / values if exponent == 0 else exponent * _power(values, exponent - 1)
