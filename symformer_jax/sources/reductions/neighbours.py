"""Smaller tables that nearest neighbours tell of, where slopes tell of none, or not of all.

Slopes tell more (`invariances`), but of `z**3*sin(8*w/sqrt(x))/y` nobody knows them from some hundred rows. Once y is
divided by z**3/y, rows that are near in w and x are alike, whatever the function is; divided by any other product they
differ in the other columns still. So are rows of `z + (w - z)/(1 + (x/y)**v)` that are near in x, y and v once y is the
share of the way from z to w. Likewise two columns of which y knows a difference or a product alone: rows are alike that
are near in this and in the other columns. Neighbours in fewer columns are nearer. So what they differ by tells, as it
tells noise without a model (the gamma test, Stefansson, Koncar and Jones 1997).
"""

import collections
from collections.abc import Iterator, Sequence
import itertools
from typing import NamedTuple

import numpy as np
from scipy import stats

from symformer_jax.engine import interruption
from symformer_jax.engine.config import NeighboursConfig
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, negate, number, power, substitute, variable
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.monomials import Monomial, Values, to_node
from symformer_jax.sources.reductions.reduced_tables import Added, Reduced


@np.errstate(all="ignore")  # what is not finite is no table
def find_smaller(table: Reduced, config: NeighboursConfig) -> list[Reduced]:
  """Tables of fewer columns, the smoothest first; empty where none is far smoother than the table is."""
  most = min(config.most_rough, config.most_of_whole * roughness(table.x, table.y[:, None])[0])
  ways = itertools.chain(_divided(table, config), _between(table, config), _joined(table, config))
  found = [each for each in ways if each[0] <= most]
  tables = [smaller for _, smaller in sorted(found, key=lambda each: each[0])]
  return [smaller for smaller in tables if smaller.is_usable][: config.num_kept]


def roughness(x: np.ndarray, targets: np.ndarray) -> np.ndarray:
  """How much the ranks of each target [N, P] differ between rows that are nearest in x [N, D]: half the mean square,
  as a share of the variance [P]; about 1 where x tells nothing. Infinite where a target is not finite or
  is one number.
  """
  some = (x - np.mean(x, axis=0)) / np.std(x, axis=0)
  squares = np.sum(some**2, axis=1)
  distances = squares[:, None] + squares - 2 * (some @ some.T)
  np.fill_diagonal(distances, np.inf)
  is_finite = np.all(np.isfinite(targets), axis=0)
  ranks = stats.rankdata(np.where(is_finite, targets, 0.0), axis=0)  # equal values have equal ranks
  differences = ranks - ranks[np.argmin(distances, axis=1)]
  variance = np.where(is_finite, np.var(ranks, axis=0), 0.0)
  return np.where(variance > 0, 0.5 * np.mean(differences**2, axis=0) / np.where(variance > 0, variance, 1.0), np.inf)


def _divided(table: Reduced, config: NeighboursConfig) -> Iterator[tuple[float, Reduced]]:
  """Of y over the product of powers of some columns for which it is smoothest in the others."""
  x, y, values = table.x, table.y, Values(table.x)
  for size, powers in enumerate(config.powers[: x.shape[1] - 1], 1):
    for chosen in itertools.combinations(range(x.shape[1]), size):
      interruption.check()
      kept = [column for column in range(x.shape[1]) if column not in chosen]
      monomials = list(_monomials(x, chosen, powers))
      if monomials:
        rough = roughness(x[:, kept], y[:, None] / values(monomials))
        best = int(np.argmin(rough))
        step = tidy(substitute(to_node(monomials[best]), dict(enumerate(table.columns))))
        yield float(rough[best]), Reduced(x[:, kept], y / values([monomials[best]])[:, 0],
                                          tuple(table.columns[i] for i in kept), (*table.steps, step))


class Way(NamedTuple):
  """From one end to another, of which y is a share.

  Attributes:
    columns: that it is made of; begin, length: in the table's columns.
  """

  columns: frozenset[int]
  begin: Node
  length: Node

  @np.errstate(all="ignore")  # what is not finite is no table
  def share_of(self, table: Reduced) -> Reduced:
    """The table of the other columns and the share that its y is."""
    kept = [column for column in range(table.x.shape[1]) if column not in self.columns]
    y = (table.y - expression.evaluate(self.begin, table.x)) / expression.evaluate(self.length, table.x)
    begin, length = (tidy(substitute(node, dict(enumerate(table.columns)))) for node in (self.begin, self.length))
    return Reduced(table.x[:, kept], y, tuple(table.columns[i] for i in kept),
                   (*table.steps, Added(begin), length))


def _between(table: Reduced, config: NeighboursConfig) -> Iterator[tuple[float, Reduced]]:
  """Of the shares of the way that y is from one end to another (`ways`), the smoothest of those that leave the same
  columns.
  """
  x, y, columns = table.x, table.y, range(table.x.shape[1])
  by_columns = collections.defaultdict[frozenset[int], list[Way]](list)
  for way in ways(columns, config.ends):
    by_columns[way.columns].append(way)
  for dropped, some in by_columns.items():
    kept = [column for column in columns if column not in dropped]
    if not kept:
      continue
    interruption.check()
    begins = np.column_stack([expression.evaluate(way.begin, x) for way in some])
    lengths = np.column_stack([expression.evaluate(way.length, x) for way in some])
    rough = roughness(x[:, kept], (y[:, None] - begins) / lengths)
    best = int(np.argmin(rough))
    yield float(rough[best]), some[best].share_of(table)


def ways(columns: Sequence[int], numbers: Sequence[float]) -> Iterator[Way]:
  """From a column or a number to another column or what is left of the number beside it, or so many times another
  column.
  """
  def less(whole: Node, *parts: Node) -> Node:
    return chain("+", [whole, *map(negate, parts)])

  for b in columns:
    to = variable(b)
    yield Way(frozenset((b,)), to, number(1.0))
    for value in numbers:
      yield from (Way(frozenset((b,)), number(value), length) for length in (to, less(to, number(value))))
  for a, b in itertools.permutations(columns, 2):
    begin, to, both = variable(a), variable(b), frozenset((a, b))
    yield Way(both, begin, to)
    yield from (Way(both, begin, less(number(value), to, begin)) for value in numbers)
    if a < b:
      yield Way(both, begin, less(to, begin))


def _monomials(x: np.ndarray, columns: Sequence[int], powers: Sequence[float]) -> Iterator[Monomial]:
  """Products of powers of all of some columns that have a value, and are not 0, in every row."""
  exponents = [[p for p in powers if np.all(x[:, column] > 0) or (p == round(p) and np.all(x[:, column] != 0))]
               for column in columns]
  for chosen in itertools.product(*exponents):
    yield tuple(zip(columns, chosen, strict=True))


def _joined(table: Reduced, config: NeighboursConfig) -> Iterator[tuple[float, Reduced]]:
  """With one column in the place of two or three for which y is smoothest: a sum, a difference or a product."""
  x, y = table.x, table.y
  for size in (2, 3) if x.shape[1] <= config.max_columns_of_three else (2,):
    for some in itertools.combinations(range(x.shape[1]), size):
      interruption.check()
      kept = [column for column in range(x.shape[1]) if column not in some]
      tries = []
      for node in _joins(some, config):
        column = expression.evaluate(node, x)
        if np.all(np.isfinite(column)) and np.ptp(column) > 0:
          shown = np.column_stack([x[:, kept], column])
          tries.append((float(roughness(shown, y[:, None])[0]), shown, node))
      if tries:
        rough, shown, node = min(tries, key=lambda each: each[0])
        columns = (*(table.columns[i] for i in kept), tidy(substitute(node, dict(enumerate(table.columns)))))
        yield rough, Reduced(shown, y, columns, table.steps)


def _joins(columns: Sequence[int], config: NeighboursConfig) -> Iterator[Node]:
  """What may stand for two columns, and products for three."""
  first, *others = map(variable, columns)
  for sign in (1.0, -1.0) if len(others) == 1 else ():
    yield Node("+", (first, tidy(Node("*", (others[0], number(sign))))))
  for exponents in itertools.product(config.joined[len(others) - 1], repeat=len(others)):
    yield chain("*", [first, *(power(other, number(p)) for other, p in zip(others, exponents, strict=True))])
