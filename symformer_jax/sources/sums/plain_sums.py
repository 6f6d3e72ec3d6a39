"""Sums of two and of three plain columns as sources: every pair and every triple is tried, and many are fitted.

On a grid of inner constants the right sum is seldom the nearest, and where columns are chosen one after the other, or
exchanged, it is often not met at all. Of a few hundred columns with short formulas all triples take half a second.
"""

from collections.abc import Iterator
import dataclasses
from typing import ClassVar

import numpy as np

from symformer_jax.engine.config import DEFAULT, PairsInsideConfig, SearchConfig, TriplesConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import Task
from symformer_jax.language.expression import Node
from symformer_jax.sources.in_turn import in_turn
from symformer_jax.sources.links import LINKS, Link
from symformer_jax.sources.stateless import Stateless
from symformer_jax.sources.sums import exchange, pair_sums, pairs, terms
from symformer_jax.sources.sums.columns import Columns, Subset


@dataclasses.dataclass(frozen=True)
class PairSumsInside(Stateless):
  """Two plain columns and a constant for functions of y."""

  min_constants: ClassVar[int] = pair_sums.MIN_CONSTANTS
  config: SearchConfig = DEFAULT
  name: str = "pairs_inside"

  @property
  def _own(self) -> PairsInsideConfig | TriplesConfig:
    return self.config.pairs_inside

  @property
  def turns(self) -> tuple[int, ...]:
    return self._own.turns

  def supports(self, task: Task) -> bool:
    return super().supports(task) and pair_sums.most_constants(task, self.config.terms) >= self.min_constants

  @np.errstate(all="ignore")  # what is not finite is left out
  def _nodes(self, question: Question, turn: int, num: int) -> tuple[Node, ...]:
    task = question.task
    library, rows = terms.library_of(task, self.config), terms.some_of(task.fit_rows, self.config.terms)
    plain = np.flatnonzero(library.complexities <= self._own.max_nodes)
    shortest = plain[np.argsort(library.complexities[plain], kind="stable")[: self._own.max_columns]]
    columns = Subset(library, np.sort(shortest))
    links = [LINKS[name] for name in self._own.links if LINKS[name].is_defined(rows.y)]
    sums = [self._sums(columns, link, rows) for link in links[turn :: len(self.turns)]
            if all(map(task.rule.allows_operator, link.operators))]
    return pair_sums.allowed(in_turn(sums), task, num, self.config.terms)

  def _sums(self, columns: Columns, link: Link, rows: Rows) -> Iterator[Node]:
    """Formulas for y, the nearest first."""
    target, weights = terms.weighted(link, rows)
    used = weights > 0
    target, weights = target[used], weights[used]
    if not (len(target) and np.all(np.isfinite(target)) and np.all(np.isfinite(weights))):
      return iter(())
    chosen = self._best(columns.columns[used], columns.groups, target, weights)
    return map(link.undo, pair_sums.sums_of(columns, chosen, target, weights, used))

  def _best(
    self, columns: np.ndarray, groups: np.ndarray, target: np.ndarray, weights: np.ndarray
  ) -> np.ndarray:
    """Sets of columns [K, 2], the nearest first."""
    config = self.config.pairs_inside
    found, _ = pairs.best_pairs(columns, groups, target, weights, num=config.num_looked_at)
    return exchange.of_different_groups(found, groups, config.starts_per_pair)


@dataclasses.dataclass(frozen=True)
class TripleSums(PairSumsInside):
  """Three plain columns and a constant, for y and, in later turns, for functions of y."""

  min_constants: ClassVar[int] = pair_sums.MIN_CONSTANTS + 1
  name: str = "triples"

  @property
  def _own(self) -> TriplesConfig:
    return self.config.triples

  def _best(
    self, columns: np.ndarray, groups: np.ndarray, target: np.ndarray, weights: np.ndarray
  ) -> np.ndarray:
    return pairs.best_triples(columns, groups, target, weights, num=self._own.num_kept)
