"""Sums of two columns of the library as a source: every pair is tried, and many are fitted.

On a grid of inner constants the right pair is seldom the best: hundreds of smooth functions come as near until their
constants are fitted. So the pairs take turns, the nearest first, each pair of families few times.
"""

from collections.abc import Iterable, Iterator, Sequence
import dataclasses
import itertools

import jax
import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, SearchConfig, TermsConfig
from symformer_jax.engine.source import Proposal, Question
from symformer_jax.engine.task import Task
from symformer_jax.language import programs
from symformer_jax.language.expression import Node, chain, number
from symformer_jax.sources.sums import exchange, pairs, terms
from symformer_jax.sources.sums.columns import Columns, Subset

# Constants of a sum of two columns at the least: two factors and a number, of which one may be a small whole number
# and then counts for none.
MIN_CONSTANTS = 2


@dataclasses.dataclass(frozen=True)
class PairSums:
  """Two columns and a constant; its state: pairs of columns [K, 2] that have not had their turn, the nearest first."""

  config: SearchConfig = DEFAULT
  name: str = "pairs"

  @property
  def turns(self) -> tuple[int, ...]:
    return self.config.pairs.turns

  def supports(self, task: Task) -> bool:
    return can_add(task) and most_constants(task, self.config.terms) >= MIN_CONSTANTS

  def init(self, task: Task, key: jax.Array) -> np.ndarray | None:
    return None

  def propose(self, questions: Sequence[Question], *, turn: int, num: int, clock: Clock) -> list[Proposal]:
    with clock.measure("recombine"):
      return [self._propose(question, num) for question in questions]

  def _propose(self, question: Question, num: int) -> Proposal:
    task, config = question.task, self.config
    columns = subset(terms.library_of(task, config), config.pairs.max_columns)
    rows = terms.some_of(task.fit_rows, config.terms)
    waiting = question.state
    if waiting is None:
      found, _ = pairs.best_pairs(
        columns.columns, columns.groups, rows.y, rows.weights, num=config.pairs.num_looked_at)
      waiting = exchange.of_different_groups(found, columns.groups, config.pairs.starts_per_pair)
    nodes = allowed(sums_of(columns, waiting, rows.y, rows.weights), task, num, config.terms)
    return Proposal(state=waiting[num:], nodes=nodes)


def can_add(task: Task) -> bool:
  """Whether the user's rules let formulas be sums of multiples."""
  return all(task.rule.allows_operator(token) for token in ("+", "*"))


def most_constants(task: Task, config: TermsConfig) -> int:
  """Constants for which there are points enough, of rows that differ in some column."""
  return task.fit_rows.num_distinct // config.points_per_part


def allowed(nodes: Iterable[Node], task: Task, num: int, config: TermsConfig) -> tuple[Node, ...]:
  """The first formulas that count, at most so many: those the user allows, with points enough for their constants.

  Of strict rules a few times as many are looked at.
  """
  most = most_constants(task, config)
  counted = (node for node in itertools.islice(nodes, config.looks_per_formula * num)
             if task.rule(node) and len(programs.fitted_values(node)) <= most)
  found: dict[Node, None] = {}
  while len(found) < num and (node := next(counted, None)) is not None:
    found[node] = None
  return tuple(found)


def subset(columns: Columns, most: int) -> Columns:
  """So many of them at most: the plainer tiers first."""
  if columns.columns.shape[1] <= most:
    return columns
  return Subset(columns, np.sort(np.argsort(-columns.tiers, kind="stable")[:most]))


def sums_of(
  columns: Columns, sets: np.ndarray, target: np.ndarray, weights: np.ndarray, used: np.ndarray | None = None
) -> Iterator[Node]:
  """Sums of sets of columns [K, S], and a constant, with the factors that fit a target [M] best.

  `used`: rows of the columns that are those of the target [N]; None for all.
  """
  nodes: dict[int, Node] = {}
  for some in sets.tolist():
    interruption.check()
    chosen = columns.columns[:, some] if used is None else columns.columns[np.ix_(used, some)]
    factors = terms.least_squares(chosen.astype(np.float64), target, weights)
    for index in some:
      if index not in nodes:
        nodes[index] = columns.node(index)
    yield chain("+", [
      *(Node("*", (nodes[i], number(factor / columns.scale(i)))) for i, factor in zip(some, factors, strict=False)),
      number(factors[-1])])
