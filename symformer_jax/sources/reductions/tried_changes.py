"""Changes of the columns that leave a target alone, where errors of y hide how exactly: they are tried.

Slopes of a smooth function through noisy rows tell of a change to a tenth or a third, where `invariances` asks for a
hundredth. They tell which are worth a try. A table without the column is predicted better from other rows where the
change is right, for there is less to learn, and far worse where it is wrong.
"""

from collections.abc import Iterator, Sequence
import itertools
import math
from typing import NamedTuple

import numpy as np

from symformer_jax.engine import gaussian_process, interruption
from symformer_jax.engine.config import TriedChangesConfig
from symformer_jax.language.expression import Node, chain, number, power, variable
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.reductions import reduced_tables
from symformer_jax.sources.reductions.reduced_tables import Change, Reduced
from symformer_jax.sources.reductions.relations import may_divide

# Sizes are no smaller where they divide.
_TINY = float(np.finfo(np.float64).tiny)


class _Known(NamedTuple):
  """A table, and what a smooth function through it says.

  Attributes:
    slopes: of its y by its columns [N, D].
    scale: what an error of its y makes of the user's [N].
    error: mean square of rows left out, squared units of the user's y.
  """

  table: Reduced
  slopes: np.ndarray
  scale: np.ndarray
  error: float


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
  at = first = _known(reduced_tables.whole(x, y), x, y, config)
  if not first.error <= config.most_left * np.var(y):
    return []
  while len(at.table.columns) > 1:
    tries = [(change.complexity, _known(smaller, x, y, config)) for change, smaller in _likely(at, config)]
    least = min((known.error for _, known in tries), default=np.inf)
    most = min(config.alike * least, config.most_worse * at.error)
    standing = [(complexity, known) for complexity, known in tries if known.error <= most]
    if not standing:
      break
    at = min(standing, key=lambda pair: (pair[0], pair[1].error))[1]
  return [] if at is first else [at.table._replace(error=math.sqrt(at.error / np.var(y)))]


def _known(table: Reduced, x: np.ndarray, y: np.ndarray, config: TriedChangesConfig) -> _Known:
  interruption.check()
  scale = table.of(x, y)[2]
  fitted = gaussian_process.fit_divided(table.x, table.y, scale, config.surrogate)
  error = float(np.mean((fitted.errors * scale) ** 2))
  return _Known(table, fitted.slopes, scale, error if np.isfinite(error) else np.inf)


def _likely(known: _Known, config: TriedChangesConfig) -> list[tuple[Change, Reduced]]:
  """The changes that slopes contradict least, and the tables they lead to."""
  changes = [change for change in _changes(known, config) if np.isfinite(change.error)]
  tables = ((change, change.apply(known.table, known.slopes)[0])
            for change in sorted(changes, key=lambda change: change.error))
  return list(itertools.islice((pair for pair in tables if pair[1].is_usable), config.num_tried))


def _changes(known: _Known, config: TriedChangesConfig) -> Iterator[Change]:
  num_columns = len(known.table.columns)
  for column in range(num_columns):
    yield from _of_one(known, column, config)
  for pair in itertools.combinations(range(num_columns), 2):
    yield from _products(known, pair, config)
    yield from _sums(known, pair, config)
  for size in range(2, config.max_scaled + 1):
    for chosen in itertools.combinations(range(num_columns), size):
      yield from _scalings(known, chosen, config)


def _of_one(known: _Known, column: int, config: TriedChangesConfig) -> Iterator[Change]:
  """The column left out, taken away from y as a term, or as a power that is a factor."""
  x, y, slopes = known.table.x[:, column], known.table.y, known.slopes[:, column]
  reach = np.std(x) * slopes
  spread = np.sqrt(np.average((y - np.average(y, weights=known.scale**2)) ** 2, weights=known.scale**2))
  yield Change(_size(reach, known) / max(_size(np.full(len(y), spread), known), _TINY), column, {})
  slope = float(np.average(slopes, weights=known.scale**2))
  if abs(slope) * np.std(x) > config.least_term * spread:
    term = tidy(Node("*", (variable(column), number(slope))))
    yield Change(_contradicted(slopes, np.full(len(y), slope), known), column, {}, is_simple=False, summand=term)
  growth = x * slopes
  told = _ratio(growth, y, known)
  for p in config.divisors:
    if abs(p - told) <= config.reach and may_divide(x, p):
      yield Change(_contradicted(growth, p * y, known), column, {}, ((column, p),))


def _products(known: _Known, pair: Sequence[int], config: TriedChangesConfig) -> Iterator[Change]:
  """The product of two columns, one of them to a power, in their place."""
  (i, j), x = pair, known.table.x
  if not (np.all(x[:, i] != 0) and np.all(x[:, j] != 0)):
    return
  first, second = x[:, i] * known.slopes[:, i], x[:, j] * known.slopes[:, j]
  told = _symmetric_ratio(first, second, known)
  for p in config.factors:
    if abs(p - told) <= config.reach * abs(p) and may_divide(x[:, i], p):
      node = tidy(chain("*", [power(variable(i), number(p)), variable(j)]))
      yield Change(_contradicted(first, p * second, known), i, {j: (node, x[:, i] ** p)})


def _sums(known: _Known, pair: Sequence[int], config: TriedChangesConfig) -> Iterator[Change]:
  """The sum or the difference of two columns in their place."""
  i, j = pair
  first, second = known.slopes[:, i], known.slopes[:, j]
  told = _symmetric_ratio(first, second, known)
  for sign in (1.0, -1.0):
    if abs(sign - told) <= config.reach:
      node = tidy(Node("+", (variable(j), Node("*", (variable(i), number(sign))))))
      yield Change(_contradicted(first, sign * second, known), i, {j: (node, np.ones(len(first)))})


def _scalings(known: _Known, chosen: Sequence[int], config: TriedChangesConfig) -> Iterator[Change]:
  """Columns and y that grow together by powers of one of them (Euler's theorem on homogeneous functions)."""
  x, y, slopes = known.table.x, known.table.y, known.slopes
  if not np.all(x[:, chosen] > 0):
    return
  growths = np.column_stack([x[:, chosen] * slopes[:, chosen], -y]) * known.scale[:, None]
  sizes = np.linalg.norm(growths, axis=0)
  if not np.all(np.isfinite(sizes) & (sizes > 0)):
    return
  direction = np.linalg.svd(growths / sizes, full_matrices=False)[2][-1]
  pivot = int(np.argmax(np.abs(direction[:-1])))
  told = direction / sizes
  told = told / told[pivot]
  simple = np.array([min(config.divisors, key=lambda p: abs(p - each)) for each in told])
  if len(chosen) > 2 and abs(told[-1]) <= config.reach * np.min(np.abs(simple)):
    told[-1] = simple[-1] = 0.0  # y itself stays: of two columns that is a product
  if np.any(np.abs(simple - told) > config.reach * np.abs(simple)):
    return
  parts = growths * simple
  left = float(np.linalg.norm(parts.sum(axis=1)) / np.linalg.norm(parts))
  over, replaced = chosen[pivot], {}
  for column, p in zip(chosen, simple[:-1].tolist(), strict=True):
    if column != over:
      node = tidy(chain("*", [variable(column), power(variable(over), number(-p))]))
      replaced[column] = (node, x[:, over] ** -p)
  yield Change(left, over, replaced, ((over, float(simple[-1])),) if simple[-1] else ())


def _size(values: np.ndarray, known: _Known) -> float:
  """Of values [N] in units of the table's y, in the user's."""
  return float(np.linalg.norm(values * known.scale))


def _ratio(first: np.ndarray, second: np.ndarray, known: _Known) -> float:
  """Least squares of the first by the second; no number where that is 0."""
  squares = np.sum(known.scale**2 * second**2)
  return float(np.sum(known.scale**2 * first * second) / squares) if squares else np.nan


def _symmetric_ratio(first: np.ndarray, second: np.ndarray, known: _Known) -> float:
  """The geometric mean of both regressions, for both have errors; no number where one of them is 0."""
  sizes = _size(first, known), _size(second, known)
  return float(np.sign(_ratio(first, second, known)) * sizes[0] / sizes[1]) if all(sizes) else np.nan


def _contradicted(first: np.ndarray, second: np.ndarray, known: _Known) -> float:
  """How far two numbers are from equal: 0 where they are, 1 where they have nothing to do with each other."""
  whole = np.hypot(_size(first, known), _size(second, known))
  return float(_size(first - second, known) / whole) if whole else np.inf
