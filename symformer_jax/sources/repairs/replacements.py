"""Other functions of one column for near formulas, where the data ask for them.

A search that has the structure of a law often has one of its functions only nearly: `arcsin(0.1*z)/sqrt(x)` came as a
sum of three fractions of z over `sqrt(x)`. What the data ask for in that place is a table of one column
(`coefficient_functions`), of which the cheap sources are asked as of any other; what they find takes the place, and
all constants are fitted once more.
"""

from collections.abc import Iterator, Sequence
import contextlib
import dataclasses
from typing import NamedTuple

import jax
import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import ReplacementsConfig
from symformer_jax.engine.loop import Search
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Pool
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Proposal, Question, Source
from symformer_jax.engine.task import Task
from symformer_jax.language import expression, programs
from symformer_jax.language.expression import Node, with_columns
from symformer_jax.sources import asked_tables
from symformer_jax.sources.repairs import coefficient_functions
from symformer_jax.sources.repairs.coefficient_functions import Known, coefficients
from symformer_jax.sources.repairs.fronts import first_fronts
from symformer_jax.sources.sums import pair_sums


class Asked(NamedTuple):
  """A table that has been asked: its column, the direction of its values, and what the formula left whose it was."""

  column: int
  direction: np.ndarray
  size: float


class State(NamedTuple):
  """Formulas that need not be looked at again, in early turns and in later ones, and tables that have been asked."""

  early: frozenset[Node] = frozenset()
  late: frozenset[Node] = frozenset()
  tables: tuple[Asked, ...] = ()

  def formulas(self, is_early: bool) -> frozenset[Node]:
    return self.early if is_early else self.late

  def after(self, formulas: Sequence[Node], is_early: bool, tables: Sequence[Asked]) -> "State":
    """With these as well."""
    early, late = (formulas, ()) if is_early else ((), formulas)
    return State(self.early.union(early), self.late.union(late), (*self.tables, *tables))


@dataclasses.dataclass(frozen=True)
class Replacements:
  """Functions of one column in the place of others, for formulas of the pool that have not been looked at.

  Attributes:
    options: of the search; sources: that are asked of the tables.
  """

  options: SearchOptions
  sources: tuple[Source, ...]
  name: str = "replacements"

  @property
  def turns(self) -> tuple[int, ...]:
    return self._own.turns

  @property
  def _own(self) -> ReplacementsConfig:
    return self.options.config.replacements

  def supports(self, task: Task) -> bool:
    return pair_sums.can_add(task) and len(task.fit_rows.varying(task.columns)) > 1

  def init(self, task: Task, key: jax.Array) -> State:
    return State()

  def propose(self, questions: Sequence[Question], *, turn: int, num: int, clock: Clock) -> list[Proposal]:
    is_early = turn < self._own.num_early
    return [self._propose(question, num, is_early, clock) for question in questions]

  def _propose(self, question: Question, num: int, is_early: bool, clock: Clock) -> Proposal:
    task, state = question.task, question.state
    with clock.measure("recombine"):
      seeds = self._seeds(question.pool, state.formulas(is_early), task.variance)
      tables = self._tables(seeds, task.fit_rows, 0.0 if is_early else self._own.imitated * task.variance)
      new = [(seed, known) for seed, known in tables if not self._has_been_asked(known, state)]
    nodes = [node for _, known in new[:num] for node in self._replaced(known, task, clock)]
    waiting = {seed for seed, _ in new[num:]}
    asked = [Asked(known.coefficient.column, known.direction, known.size) for _, known in new[:num]]
    return Proposal(state=state.after([seed for seed in seeds if seed not in waiting], is_early, asked),
                    nodes=pair_sums.allowed(nodes, task, len(nodes), self.options.config.terms))

  def _has_been_asked(self, known: Known, state: State) -> bool:
    """Whether the same table has been, for a formula that was about as near: of one that is much nearer another
    function has been mended since.
    """
    return any(known.has_values_of(table.column, table.direction) and known.size > self._own.nearer * table.size
               for table in state.tables)

  def _seeds(self, pool: Pool, known: frozenset[Node], variance: float) -> list[Node]:
    """What meets the data, else formulas that come near, the nearest first."""
    exact = pool.exact()
    if exact is not None:
      return [] if exact.node in known else [exact.node]
    near = [candidate for candidate in pool.in_order() if candidate.mse <= self._own.near * variance]
    error = {candidate.node: candidate.mse for candidate in near}
    return sorted(first_fronts(near, known, self._own), key=error.__getitem__)[: self._own.num_nearest]

  def _tables(self, seeds: Sequence[Node], rows: Rows, imitated: float) -> list[tuple[Node, Known]]:
    """Functions that data ask for in place of long ones, each with its formula: first those that are all that a formula
    needs, then, of formulas with no more than an error, those that are not known better than they are, the longest
    first.
    """
    found: list[tuple[Node, Known]] = []
    for seed in seeds:
      interruption.check()
      long = [each for each in coefficients(seed) if expression.complexity(each.function) >= self._own.least_nodes]
      with contextlib.suppress(np.linalg.LinAlgError):  # odd data cost this formula alone
        asked = coefficient_functions.asked_of(long[: self._own.num_places], rows, self._own)
        found += [(seed, known) for known in asked if self._is_worthwhile(known, imitated)]
    found.sort(key=lambda each: (each[1].left, -expression.complexity(each[1].coefficient.function)))
    return coefficient_functions.distinct(found)

  def _is_worthwhile(self, known: Known, imitated: float) -> bool:
    """Whether a function is known better than it is, or long and near enough to what it imitates."""
    return known.left <= self._own.most_left or (
      known.size**2 <= imitated and expression.complexity(known.coefficient.function) >= self._own.long_nodes)

  def _replaced(self, known: Known, task: Task, clock: Clock) -> Iterator[Node]:
    """The formula with what is found for the table."""
    table = _task_of(known, task, self._own)
    if table is None:
      return
    search = asked_tables.ask(table, self.sources, self.options, clock, num=self._own.num_asked,
                              is_met=self._is_met, num_turns=1)
    for candidate in search.pool.shortlist(self._own.num_kept):
      whole = known.coefficient.replaced(with_columns(candidate.node, {0: known.coefficient.column}))
      if programs.size(whole) <= programs.MAX_TOKENS:
        yield whole

  def _is_met(self, search: Search) -> bool:
    """Whether something short has been found that is hardly chance."""
    return any(candidate.mse <= self._own.met * search.task.variance
               and expression.complexity(candidate.node) <= self._own.short for candidate in search.pool.in_order())


@np.errstate(all="ignore")  # what is not finite is no table
def _task_of(known: Known, task: Task, config: ReplacementsConfig) -> Task | None:
  """The table of a function: one row for each value of its column, of weights as an error there counts in y."""
  column = task.fit_rows.x[:, known.coefficient.column]
  places, first, which = np.unique(column, return_index=True, return_inverse=True)
  values, counts = known.values[first], np.bincount(which, task.fit_rows.weights * known.slope**2)
  weights = np.maximum(counts / counts.mean(), config.least_weight)
  return asked_tables.table_of(places, values, weights, task)
