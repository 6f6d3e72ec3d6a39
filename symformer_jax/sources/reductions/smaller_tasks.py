"""Tables that are made of the user's, each a data set by itself, and what sources share that ask others of them."""

import abc
from collections.abc import Collection, Sequence
import dataclasses
import math
from typing import Protocol

import jax
import numpy as np

from symformer_jax.engine import faults, loop
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.loop import Search, Turn
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import LARGEST, SMALLEST, Rows
from symformer_jax.engine.source import Proposal, Question, Source
from symformer_jax.engine.task import Task, default_names
from symformer_jax.errors import SymFormerError
from symformer_jax.language.rules import Rule
from symformer_jax.sources.sums import pair_sums


@np.errstate(all="ignore")  # what is not finite is no table
def smaller_task(task: Task, x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Task | None:
  """A data set of other columns and another target; None where its values are none.

  Args:
    task: the user's, whose operators formulas may have.
    x: [N, D'], y [N]: the table; weights [N]: what an error of its y counts.
  """
  if not (np.all(np.isfinite(x)) and np.all(np.isfinite(y)) and np.ptp(y) > 0
          and np.all(np.isfinite(weights) & (weights > 0))):
    return None
  fit_rows = Rows(x, y, weights / np.mean(weights))
  num_columns = x.shape[1]
  rule = dataclasses.replace(Rule(num_columns), tokens=task.rule.tokens)
  variance = float(np.average((y - np.average(y, weights=weights)) ** 2, weights=weights))
  largest = max(np.max(np.abs(x)), np.max(np.abs(y)))
  if not SMALLEST < variance < LARGEST or largest > LARGEST:
    return None
  return Task(fit_rows, fit_rows, default_names(num_columns), rule, tuple(range(num_columns)), variance, task.num_rows)


class Limits(Protocol):
  """Columns at most of a table, and rows that there have to be for each."""

  @property
  def max_columns(self) -> int:
    """See the class."""

  @property
  def rows_per_column(self) -> int:
    """See the class."""


@dataclasses.dataclass(frozen=True)
class OfOtherTables(abc.ABC):
  """A source that makes tables of the user's in its first turn; each further one is another source's, asked of these.

  Attributes:
    sources: that are asked; options: of the search.
  """

  options: SearchOptions
  sources: tuple[Source, ...]
  name: str = ""

  @property
  @abc.abstractmethod
  def _limits(self) -> Limits:
    """Which tables it is asked of."""

  @abc.abstractmethod
  def _propose(self, question: Question, turn: int, clock: Clock) -> Proposal:
    """Formulas for one data set."""

  @property
  def turns(self) -> tuple[int, ...]:
    return (1,) * (1 + self._num_turns)

  @property
  def _num_turns(self) -> int:
    """Those of all sources that may be asked."""
    return sum(len(source.turns) for source in self.sources)

  def _turns_of(self, search: Search) -> list[Turn]:
    """Of all sources, in the order of a table."""
    return list(loop.first_turns(self.sources, self.options.config.budget, is_of_one=search.is_of_one))

  def supports(self, task: Task) -> bool:
    num_columns = len(task.fit_rows.varying(task.columns))
    return (pair_sums.can_add(task) and 1 < num_columns <= self._limits.max_columns
            and len(task.fit_rows) >= self._limits.rows_per_column * num_columns)

  def init(self, task: Task, key: jax.Array) -> None:
    return None

  def propose(self, questions: Sequence[Question], *, turn: int, num: int, clock: Clock) -> list[Proposal]:
    return [self._or_nothing(question, turn, clock) for question in questions]

  def _or_nothing(self, question: Question, turn: int, clock: Clock) -> Proposal:
    """What is kept from turn to turn is changed on the way, so that a data set is asked once: see `loop.take_turn`."""
    try:
      return self._propose(question, turn, clock)
    except SymFormerError:
      raise
    except faults.FAULTS as error:
      faults.tell(self.name, error)
      return Proposal(state=question.state)

  @property
  def _inner_options(self) -> SearchOptions:
    """Those of a search that ends where the data are met exactly: of anything less the outer one judges."""
    return dataclasses.replace(self.options, accuracy=None, max_time=math.inf)

  def _search_of(self, smaller: Task, names: Collection[str]) -> Search:
    """Of a table, by those of the sources that have these names."""
    supporting = [source for source in self.sources if source.name in names and source.supports(smaller)]
    return Search(smaller, supporting, self._inner_options, jax.random.key(self.options.seed))

  def _take_turn(self, search: Search, turn: Turn, clock: Clock) -> None:
    [(proposal, fitted)] = loop.take_turn(turn, [search], self._inner_options, clock)
    search.close_turn(turn.source, proposal, fitted, clock.elapsed())
