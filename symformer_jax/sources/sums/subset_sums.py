"""Sums of several columns of the library as sources: best subsets by exchange, many of them fitted.

One for y itself; one for functions of y, and for y divided by a monomial, which then multiplies the sum.
"""

from collections.abc import Callable, Iterator
import dataclasses
import functools

import numpy as np

from symformer_jax.engine.config import DEFAULT, SearchConfig, SubsetsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import Task
from symformer_jax.language.expression import Node
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.in_turn import in_turn
from symformer_jax.sources.links import LINKS
from symformer_jax.sources.monomials import Values, to_node, up_to
from symformer_jax.sources.stateless import Stateless
from symformer_jax.sources.sums import exchange, pair_sums, terms
from symformer_jax.sources.sums.columns import Columns, Subset


@dataclasses.dataclass(frozen=True)
class _Target:
  """What is to be a sum of columns.

  Attributes:
    values: [N]; weights: [N], 0 for rows that say nothing of it; undo: what y is for a sum of it.
  """

  values: np.ndarray
  weights: np.ndarray
  undo: Callable[[Node], Node]


@dataclasses.dataclass(frozen=True)
class SubsetSums(Stateless):
  """Sums for y."""

  config: SearchConfig = DEFAULT
  name: str = "subsets"

  @property
  def turns(self) -> tuple[int, ...]:
    return self._own.turns

  @property
  def _own(self) -> SubsetsConfig:
    return self.config.subsets

  def supports(self, task: Task) -> bool:
    return super().supports(task) and pair_sums.most_constants(task, self.config.terms) >= pair_sums.MIN_CONSTANTS

  @np.errstate(all="ignore")  # what is not finite is left out
  def _nodes(self, question: Question, turn: int, num: int) -> tuple[Node, ...]:
    task = question.task
    library = terms.library_of(task, self.config)
    some: list[Columns] = [Subset(library, np.flatnonzero(library.complexities <= most)) for most in self._own.plain]
    some.append(pair_sums.subset(library, self.config.pairs.max_columns))
    rows = terms.some_of(task.fit_rows, self.config.terms)
    sums = [in_turn(self._sums(columns, target)) for target in self._targets(task, rows, turn) for columns in some]
    return pair_sums.allowed(in_turn(sums), task, num, self.config.terms)

  def _targets(self, task: Task, rows: Rows, turn: int) -> list[_Target]:
    return [_Target(rows.y, rows.weights, tidy)]

  def _sums(self, columns: Columns, target: _Target) -> list[Iterator[Node]]:
    """For each number of columns formulas for y, the nearest first."""
    used = target.weights > 0
    values, weights = target.values[used], target.weights[used]
    if not (len(values) and np.all(np.isfinite(values)) and np.all(np.isfinite(weights))):
      return []
    config = self._own
    some = columns.columns if used.all() else columns.columns[used]
    size = min(config.max_size, len(values) // self.config.terms.points_per_part)
    found = exchange.best_subsets(some, columns.groups, values, weights, max_size=size, config=config)
    kept = [exchange.of_different_groups(sets, columns.groups, config.fits_per_sum) for sets in found]
    return [map(target.undo, pair_sums.sums_of(columns, sets, values, weights, used)) for sets in kept]


@dataclasses.dataclass(frozen=True)
class SubsetSumsInside(SubsetSums):
  """Sums for functions of y and for y under monomials: few of them in each turn."""

  name: str = "subsets_inside"

  @property
  def _own(self) -> SubsetsConfig:
    return self.config.subsets_inside

  def _targets(self, task: Task, rows: Rows, turn: int) -> list[_Target]:
    config = self.config.subsets_inside
    links = [LINKS[name] for name in config.links if LINKS[name].is_defined(rows.y)]
    monomials = up_to(
      task.columns, 2, at_most=config.max_multipliers, exponents=config.multiplier_powers)[: config.max_multipliers]
    found = [_Target(*terms.weighted(link, rows), link.undo) for link in links]
    found += [_Target(rows.y / m, rows.weights * m**2, functools.partial(_times, to_node(monomial)))
              for monomial, m in zip(monomials, Values(rows.x)(monomials).T, strict=True)
              if np.all(np.isfinite(m) & (m != 0))]
    return found[turn :: len(self.turns)]


def _times(factor: Node, node: Node) -> Node:
  return tidy(Node("*", (factor, node)))
