"""Changes of the columns that leave a target alone, where errors of y hide how exactly: they are tried.

Slopes of a smooth function through noisy rows tell of a change to a tenth or a third, where `invariances` asks for a
hundredth. They tell which are worth a try. A change that is right leaves less to learn, and the same y is likelier by a
smooth function of what is left: by its marginal likelihood tables of other columns and of another y are compared
(Rasmussen and Williams 2006, 5.4.1), the latter by the derivative of y.
"""

from collections.abc import Iterator, Sequence
import itertools
import math
from typing import NamedTuple

import numpy as np

from symformer_jax.engine import gaussian_process, interruption
from symformer_jax.engine.config import TriedChangesConfig
from symformer_jax.engine.gaussian_process import Likely
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, number, power, variable
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.reductions import reduced_tables
from symformer_jax.sources.reductions.neighbours import ways
from symformer_jax.sources.reductions.reduced_tables import Change, Reduced
from symformer_jax.sources.reductions.relations import may_divide

# Sizes are no smaller where they divide.
_TINY = float(np.finfo(np.float64).tiny)


class _Known(NamedTuple):
  """A table, and a smooth function of its columns.

  Attributes:
    scale: what an error of its y makes of the user's [N].
    nats: how likely the user's y is by the function, up to a constant of the rows.
  """

  table: Reduced
  scale: np.ndarray
  smooth: Likely
  nats: float = -math.inf

  def error(self) -> float:
    """Mean square of what the user's y is missed by, each row predicted from all others."""
    error = float(np.mean(self.smooth.errors() ** 2))
    return error if np.isfinite(error) else np.inf


class _Told(NamedTuple):
  """What slopes tell of a table: slopes [N, D] of its y by its columns; scale [N]: see `_Known`."""

  table: Reduced
  slopes: np.ndarray
  scale: np.ndarray


class _Step(NamedTuple):
  """A smaller table, which columns have left for it, and which have taken others in.

  Attributes:
    complexity: nodes of what takes the place of columns, and of what y is changed by.
  """

  table: Reduced
  complexity: int
  dropped: tuple[int, ...]
  joined: tuple[int, ...] = ()


@np.errstate(all="ignore")  # what is not finite is no table
def find_smaller(x: np.ndarray, y: np.ndarray, config: TriedChangesConfig) -> list[Reduced]:
  """The table of fewest columns that changes lead to, one after the other; empty where none stands. Its `error` is the
  root mean square of rows left out.

  Args:
    x: [N, D], y [N]: finite.
  """
  drawn = np.random.default_rng(0).permutation(len(y))[: config.num_rows]
  x, y = x[drawn], y[drawn]
  if np.ptp(y) == 0 or np.any(np.ptp(x, axis=0) == 0):
    return []
  way = _Way(x, y, config)
  at = first = way.begin()
  if not first.error() <= config.most_left * np.var(y):
    return []
  while len(at.table.columns) > 1:
    tries = [(known.nats - config.nats_per_node * step.complexity, known) for step, known in way.likely(at)]
    nats, likeliest = max(tries, key=lambda pair: pair[0], default=(-np.inf, at))
    if likeliest is at or not nats >= at.nats:
      break
    at = likeliest
  return [] if at is first else [at.table._replace(error=math.sqrt(at.error() / np.var(y)))]


class _Way:
  """From the user's rows to smaller tables of them."""

  def __init__(self, x: np.ndarray, y: np.ndarray, config: TriedChangesConfig):
    self._rows, self._config, self._bend = (x, y), config, 0.0

  def begin(self) -> _Known:
    """The user's table, and whether y itself or its logarithm is smooth, of this and of all others."""
    x, y = self._rows
    smooth = gaussian_process.likeliest(x, y, self._config.surrogate, self._config.bend)
    self._bend = smooth.bend
    return _Known(reduced_tables.whole(x, y), np.ones(len(y)), smooth, smooth.nats())

  def likely(self, known: _Known) -> list[tuple[_Step, _Known]]:
    """The likeliest, by half of the rows, of the tables that steps lead to."""
    told = _Told(known.table, known.smooth.slopes(), known.scale)
    steps = [step for step in _steps(told, self._config) if step.table.is_usable]
    half = max(len(self._rows[1]) // 2, 1)
    nats = [self._after(known, step, half).smooth.nats() for step in steps]
    best = np.argsort(-np.array(nats), kind="stable")[: self._config.num_tried]
    return [(steps[i], self._climbed(self._after(known, steps[i]))) for i in best.tolist()]

  def _after(self, known: _Known, step: _Step, num_rows: int | None = None) -> _Known:
    """The table that a step leads to, as smooth as the one before; of the first rows, all by default."""
    num_columns = len(known.table.columns)
    lengths, others = known.smooth.parameters[:num_columns].copy(), known.smooth.parameters[num_columns:]
    for column in step.joined:
      lengths[column] = min(lengths[column], *lengths[list(step.dropped)])
    x, y, scale = step.table.of(*(each[:num_rows] for each in self._rows))
    parameters = np.concatenate([np.delete(lengths, step.dropped), others])
    smooth = Likely(x, y, scale, self._config.surrogate, bend=self._bend, parameters=parameters)
    return _Known(step.table, scale, smooth)

  def _climbed(self, known: _Known) -> _Known:
    interruption.check()
    return known._replace(nats=known.smooth.climbed(self._config.num_steps).nats())


def _steps(told: _Told, config: TriedChangesConfig) -> Iterator[_Step]:
  """By the changes that slopes contradict least; of the user's table also to shares of ways."""
  changes = [change for change in _changes(told, config) if np.isfinite(change.error)]
  for change in sorted(changes, key=lambda change: change.error)[: config.num_weighed]:
    table = change.apply(told.table, told.slopes)[0]
    yield _Step(table, change.complexity, (change.dropped,), tuple(change.replaced))
  for way in ways(range(len(told.table.columns)), config.ends) if not told.table.steps else ():
    if len(way.columns) < len(told.table.columns):
      complexity = expression.complexity(way.begin) + expression.complexity(way.length)
      yield _Step(way.share_of(told.table), complexity, tuple(sorted(way.columns)))


def _changes(told: _Told, config: TriedChangesConfig) -> Iterator[Change]:
  num_columns = len(told.table.columns)
  for column in range(num_columns):
    yield from _of_one(told, column, config)
  for pair in itertools.combinations(range(num_columns), 2):
    yield from _products(told, pair, config)
    yield from _sums(told, pair)
  for size in range(2, config.max_scaled + 1):
    for chosen in itertools.combinations(range(num_columns), size):
      yield from _scalings(told, chosen, config)


def _of_one(told: _Told, column: int, config: TriedChangesConfig) -> Iterator[Change]:
  """The column left out, taken away from y as a term, or as a power that is a factor."""
  x, y, weights = told.table.x[:, column], told.table.y, told.scale**2
  steepness = told.slopes[:, column]
  spread = np.sqrt(np.average((y - np.average(y, weights=weights)) ** 2, weights=weights))
  size = max(_size(np.full(len(y), spread), told), _TINY)
  yield Change(_size(np.std(x) * steepness, told) / size, column, {})
  slope = float(np.average(steepness, weights=weights))
  if abs(slope) * np.std(x) > config.least_term * spread:
    for factor in dict.fromkeys((slope, float(f"{slope:.1g}"))):
      term = tidy(Node("*", (variable(column), number(factor))))
      error = _contradicted(steepness, np.full(len(y), factor), told)
      yield Change(error, column, {}, is_simple=False, summand=term)
  for p in config.divisors:
    if may_divide(x, p):
      yield Change(_contradicted(x * steepness, p * y, told), column, {}, ((column, p),))


def _products(told: _Told, pair: Sequence[int], config: TriedChangesConfig) -> Iterator[Change]:
  """The product of two columns, one of them to a power, in their place."""
  (i, j), x = pair, told.table.x
  if not (np.all(x[:, i] != 0) and np.all(x[:, j] != 0)):
    return
  first, second = x[:, i] * told.slopes[:, i], x[:, j] * told.slopes[:, j]
  for p in config.factors:
    if may_divide(x[:, i], p):
      node = tidy(chain("*", [power(variable(i), number(p)), variable(j)]))
      yield Change(_contradicted(first, p * second, told), i, {j: (node, x[:, i] ** p)})


def _sums(told: _Told, pair: Sequence[int]) -> Iterator[Change]:
  """The sum or the difference of two columns in their place."""
  (i, j), slopes = pair, told.slopes
  for sign in (1.0, -1.0):
    node = tidy(Node("+", (variable(j), Node("*", (variable(i), number(sign))))))
    yield Change(_contradicted(slopes[:, i], sign * slopes[:, j], told), i, {j: (node, np.ones(len(slopes)))})


def _scalings(told: _Told, chosen: Sequence[int], config: TriedChangesConfig) -> Iterator[Change]:
  """Columns and y that grow together by powers of one of them (Euler's theorem on homogeneous functions); of three
  columns also with y as it is: of two that is a product.
  """
  x, y = told.table.x, told.table.y
  if not np.all(x[:, chosen] > 0):
    return
  growths = np.column_stack([x[:, chosen] * told.slopes[:, chosen], -y]) * told.scale[:, None]
  sizes = np.linalg.norm(growths, axis=0)
  if not np.all(np.isfinite(sizes) & (sizes > 0)):
    return
  direction = np.linalg.svd(growths / sizes, full_matrices=False)[2][-1]
  pivot = int(np.argmax(np.abs(direction[:-1])))
  powers = direction / sizes
  simple = np.array([min(config.divisors, key=lambda p: abs(p - each)) for each in powers / powers[pivot]])
  over, replaced = chosen[pivot], {}
  for column, p in zip(chosen, simple[:-1].tolist(), strict=True):
    if column != over:
      node = tidy(chain("*", [variable(column), power(variable(over), number(-p))]))
      replaced[column] = (node, x[:, over] ** -p)
  for of_y in (float(simple[-1]), 0.0) if len(chosen) > 2 else (float(simple[-1]),):
    parts = growths * [*simple[:-1], of_y]
    left = float(np.linalg.norm(parts.sum(axis=1)) / np.linalg.norm(parts))
    yield Change(left, over, replaced, ((over, of_y),) if of_y else ())


def _size(values: np.ndarray, told: _Told) -> float:
  """Of values [N] in units of the table's y, in the user's."""
  return float(np.linalg.norm(values * told.scale))


def _contradicted(first: np.ndarray, second: np.ndarray, told: _Told) -> float:
  """How far two numbers are from equal: 0 where they are, 1 where they have nothing to do with each other."""
  whole = np.hypot(_size(first, told), _size(second, told))
  return float(_size(first - second, told) / whole) if whole else np.inf
