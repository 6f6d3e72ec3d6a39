"""Changes of the columns that have an offset, a base or a point in them: what units of measurement leave in a law.

`f(t*(T + 273.15))` knows t and T by their product alone, once T is counted from another zero; `1/(1 + (x/9.2)**n)`
has a column as its exponent; `b + (a - b)*f(t)` grows by as much as a and b do; `5 + x*f(t)` is in proportion to x
beside a constant, and `20 + (T - 20)*f(t)` to what T is above another. Slopes tell of each by a linear relation, as of
those without a number (`invariances`).
"""

from collections.abc import Iterator, Sequence
import functools
import itertools
import math
from typing import NamedTuple

import numpy as np

from symformer_jax.engine.config import ReductionsConfig
from symformer_jax.language.expression import Node, chain, number, power, variable
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.reductions.reduced_tables import Change
from symformer_jax.sources.reductions.relations import (
  is_of_size,
  is_simple,
  may_divide,
  ratio_of,
  relation,
  share_left,
  shortest,
  simplest,
)


def find_shifted_changes(
  x: np.ndarray, y: np.ndarray, slopes: np.ndarray, minimal: Sequence[frozenset[int]], config: ReductionsConfig
) -> Iterator[Change]:
  """All that the slopes [N, D] of y [N] at x [N, D] allow.

  Args:
    minimal: columns (y as the one after the last) that need no such change: powers that are factors of y, and columns
      that y does not depend on.
  """
  for column in range(x.shape[1]):
    if not any(known <= {column, x.shape[1]} for known in minimal):
      yield from _powers_beside_constant(x, y, slopes, column, config)
      yield from _lines_through_a_point(x, y, slopes, column, config)
  for i, j in itertools.permutations(range(x.shape[1]), 2):
    if not any(known <= {i, j, x.shape[1]} for known in minimal):
      yield from _products(x, slopes, i, j, config)
      yield from _exponents(x, slopes, i, j, config)
      yield from _moved_together(x, y, slopes, i, j, config)


def _powers_beside_constant(
  x: np.ndarray, y: np.ndarray, slopes: np.ndarray, column: int, config: ReductionsConfig
) -> Iterator[Change]:
  """Powers of a column that are factors of y less a constant: a*dy/da = p*(y - c)."""
  size = float(np.std(y))
  told = _power_and_offset(x[:, column] * slopes[:, column], y, np.full(len(y), size), size, config)
  if told is not None and may_divide(x[:, column], told.power):
    yield Change(told.error, column, {}, ((column, told.power),), told.is_simple, constant=told.offset)


def _lines_through_a_point(
  x: np.ndarray, y: np.ndarray, slopes: np.ndarray, column: int, config: ReductionsConfig
) -> Iterator[Change]:
  """Columns less a constant that are factors of y less another: (a - b)*dy/da = y - c, b beyond all rows.

  Without c it is a product of functions of groups of columns, which `partitions` finds.
  """
  a, sizes = x[:, column], (float(np.std(x[:, column])), float(np.std(y)))
  growths = np.column_stack([a * slopes[:, column] - y, -sizes[0] * slopes[:, column], np.full(len(y), sizes[1])])
  weights = relation(growths, config)
  if weights is None or not weights[0]:
    return

  def left(shift: float, constant: float) -> float:
    return share_left(growths, np.array([1.0, shift / sizes[0], constant / sizes[1]]))

  shift, constant = float(weights[1] / weights[0]) * sizes[0], float(weights[2] / weights[0]) * sizes[1]
  shift, has_short_shift = shortest(shift, functools.partial(left, constant=constant), config)
  constant, is_short = shortest(constant, functools.partial(left, shift), config)
  error = left(shift, constant)
  if error <= config.most_shifted and shift and constant and not np.min(a) <= shift <= np.max(a):
    yield Change(error, column, {}, ((column, 1.0),), has_short_shift and is_short, constant=constant, shift=shift)


def _products(x: np.ndarray, slopes: np.ndarray, i: int, j: int, config: ReductionsConfig) -> Iterator[Change]:
  """Functions of a**p*(b - c): a*dy/da = p*(b - c)*dy/db."""
  size = float(np.std(x[:, j]))
  told = _power_and_offset(x[:, i] * slopes[:, i], x[:, j] * slopes[:, j], size * slopes[:, j], size, config)
  if told is not None and may_divide(x[:, i], told.power):
    factor = Node("+", (variable(j), number(-told.offset)))
    node = tidy(chain("*", [power(variable(i), number(told.power)), factor]))
    yield Change(told.error, i, {j: (node, x[:, i] ** told.power)}, is_simple=told.is_simple)


class _Told(NamedTuple):
  """Numbers of a relation, the share it leaves, and whether both are simple."""

  power: float
  offset: float
  error: float
  is_simple: bool


def _power_and_offset(
  growth: np.ndarray, whole: np.ndarray, part: np.ndarray, size: float, config: ReductionsConfig
) -> _Told | None:
  """p and c of growth = p*(whole - c*part/size), each [N]; None where there are none, or one is 0."""
  growths = np.column_stack([growth, -whole, part])
  weights = relation(growths, config)
  if weights is None or not (weights[0] and weights[1]):
    return None

  def left(p: float, offset: float) -> float:
    return share_left(growths, np.array([1.0, p, p * offset / size]))

  def offset_of(p: float) -> float:
    return size * ratio_of(whole - growth / p, part) if p else math.nan

  # With another exponent another offset leaves least.
  p = simplest(float(weights[1] / weights[0]), lambda p: left(p, offset_of(p)), config)
  offset, is_short = shortest(offset_of(p), functools.partial(left, p), config)
  error = left(p, offset)
  if not (error <= config.most_shifted and p and offset):
    return None
  return _Told(p, offset, error, is_simple(p, config) and is_short)


def _exponents(x: np.ndarray, slopes: np.ndarray, i: int, j: int, config: ReductionsConfig) -> Iterator[Change]:
  """Functions of (a/c)**(b**p): b*dy/db = p*(log(a) - log(c))*a*dy/da."""
  a, b = x[:, i], x[:, j]
  if not np.all(a > 0):
    return
  of_a = a * slopes[:, i]
  growths = np.column_stack([b * slopes[:, j], -np.log(a) * of_a, of_a])
  weights = relation(growths, config)
  if weights is None:  # the one without a base, whatever the sign of the logarithm
    plain = relation(growths[:, :2], config)
    weights = None if plain is None else np.append(plain, 0.0)
  if weights is None or not (weights[0] and weights[1]):
    return

  def left(p: float, base: float) -> float:
    return share_left(growths, np.array([1.0, p, p * math.log(base)])) if base > 0 else math.inf

  p, base = float(weights[1] / weights[0]), math.exp(min(max(float(weights[2] / weights[1]), -300.0), 300.0))
  p = simplest(p, functools.partial(left, base=base), config)
  base, is_short = shortest(base, functools.partial(left, p), config)
  error = left(p, base)
  if error <= config.most_shifted and p and may_divide(b, p) and is_of_size(a / base, b**p, config.largest_exponent):
    inner = tidy(Node("*", (variable(i), number(1 / base)))) if base != 1 else variable(i)
    values = (a / base) ** (b**p)
    node = tidy(Node("pow", (inner, power(variable(j), number(p)))))
    yield Change(error, j, {i: (node, values * b**p / a)}, is_simple=is_simple(p, config) and is_short)


def _moved_together(
  x: np.ndarray, y: np.ndarray, slopes: np.ndarray, i: int, j: int, config: ReductionsConfig
) -> Iterator[Change]:
  """c*a beside a function of b - k*a: dy/da + k*dy/db = c."""
  sizes, size = np.std(x[:, [i, j]], axis=0), float(np.std(y))
  growths = np.column_stack([sizes[0] * slopes[:, i], sizes[1] * slopes[:, j], np.full(len(x), -size)])
  weights = relation(growths, config)
  if weights is None or not weights[0]:
    return
  ratio, unit = float(sizes[0] / sizes[1]), size / float(sizes[0])

  def left(shift: float, term: float) -> float:
    return share_left(growths, np.array([1.0, shift * ratio, term / unit]))

  shift, term = float(weights[1] / weights[0]) / ratio, float(weights[2] / weights[0]) * unit
  shift, has_short_shift = shortest(shift, functools.partial(left, term=term), config)
  term, is_short = shortest(term, functools.partial(left, shift), config)
  error = left(shift, term)
  if error <= config.most_shifted and shift and term:
    node = tidy(Node("+", (variable(j), Node("*", (variable(i), number(-shift))))))
    yield Change(error, i, {j: (node, np.ones(len(x)))}, is_simple=has_short_shift and is_short,
                 summand=tidy(Node("*", (variable(i), number(term)))))
