"""Searches of a smaller table, where changes of the columns leave the target alone.

`x*(1 - exp(-y*w/x))*exp(-z*w/x)` has four columns, and is x times a function of y*w/x and z*w/x. Where the slopes of a
smooth function through the rows say so (`smaller_tables`), the other sources are asked of the table of these two; what
they find comes back in the user's columns, and its constants are fitted once more.
"""

from collections.abc import Sequence
import contextlib
import dataclasses

import numpy as np

from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import ReductionsConfig
from symformer_jax.engine.loop import Search, Turn
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Proposal, Question
from symformer_jax.engine.task import Task
from symformer_jax.language import expression, programs, rewritings
from symformer_jax.language.expression import Node, variable
from symformer_jax.language.gathering import gather
from symformer_jax.results import EXACT
from symformer_jax.sources.reductions import tried_changes
from symformer_jax.sources.reductions.reduced_tables import Reduced
from symformer_jax.sources.reductions.smaller_tables import find_reductions, in_other_columns
from symformer_jax.sources.reductions.smaller_tasks import OfOtherTables, smaller_task


class Smaller:
  """The state: the smaller table on its way, and what has come back from it.

  Attributes:
    search: of the smaller table; turns: of its sources, one after the other.
    returned: its formulas that have been proposed.
    proposed: formulas in the user's columns, of this table and of others.
    reduced: the table.
  """

  def __init__(self, reduced: Reduced, search: Search, turns: Sequence[Turn], rows: Rows,
               proposed: set[Node] | None = None):
    self.search, self.turns = search, turns
    self.reduced, self._rows = reduced, rows
    self.returned: set[Node] = set()
    self.proposed = set() if proposed is None else proposed
    self.is_done = False

  def last(self) -> tuple[Node, ...]:
    """What meets the data exactly, once: there is nothing simpler, a turn in the smaller table has looked for it."""
    exact = self.search.pool.exact()
    if self.is_done or self.search.ended_by != EXACT or exact is None:
      return ()
    self.is_done = True
    return (self._restore(exact.node),)

  def new(self, most: int) -> tuple[Node, ...]:
    """The best formulas that have not been returned, in the user's columns."""
    found = [c.node for c in self.search.pool.shortlist(most) if c.node not in self.returned]
    self.returned.update(found)
    whole = dict.fromkeys(map(self._restore, found))
    new = [node for node in whole if node not in self.proposed and programs.size(node) <= programs.MAX_TOKENS]
    self.proposed.update(new)
    return tuple(new)

  def _restore(self, form: Node) -> Node:
    """In the user's columns, as it is put together or with its powers gathered: the shorter; as it is where the table's
    columns are the user's.
    """
    whole = rewritings.to_opened_powers(self.reduced.restore(form))  # a column that is an exponent has a base above 0
    if not self.reduced.steps and all(node.token == expression.VARIABLE for node in self.reduced.columns):
      return whole
    gathered = gather(whole, self._sign)
    values, others = (expression.evaluate(node, self._rows.x) for node in (whole, gathered))
    is_same = np.allclose(values, others, rtol=1e-6, atol=0, equal_nan=True)
    return min(gathered, whole, key=expression.complexity) if is_same else whole

  def _sign(self, node: Node) -> int:
    """1 or -1 where the tree has this sign in all rows, else 0."""
    values = expression.evaluate(node, self._rows.x)
    return int(np.all(values > 0)) - int(np.all(values < 0))


@dataclasses.dataclass(frozen=True)
class Reductions(OfOtherTables):
  """Other sources, asked of tables of fewer columns: the first turn looks for them, each further one is one of theirs.
  """

  name: str = "reductions"

  @property
  def _limits(self) -> ReductionsConfig:
    return self.options.config.reductions

  def _turns_of(self, search: Search) -> list[Turn]:
    """In the order of a table, but the one that waits (`ReductionsConfig.waiting`)."""
    turns = super()._turns_of(search)
    waiting, awaited = self._limits.waiting
    first = next((turn for turn in turns if turn.source.name == waiting), None)
    places = [i for i, turn in enumerate(turns) if turn.source.name == awaited]
    if search.is_of_one or first is None or not places or turns.index(first) > places[-1]:
      return turns
    before, after = turns[: places[-1] + 1], turns[places[-1] + 1 :]
    before.remove(first)
    return [*before, first, *after]

  def _propose(self, question: Question, turn: int, clock: Clock) -> Proposal:
    if turn == 0:
      with clock.measure("recombine"):
        tables = self._smaller(question.task, has_errors=question.has_errors)
      return Proposal(state=tables, is_last=not tables)
    tables = question.state or ()
    nodes = [node for smaller in tables for asked in smaller.turns[turn - 1 : turn]
             for node in self._ask(smaller, asked, clock)]
    if turn == min(self._limits.coordinates.num_turns_before, self._num_turns):
      with clock.measure("recombine"):
        others = self._in_other_columns(question.task, tables)
      nodes += [node for smaller in others for asked in smaller.turns[:turn]
                for node in self._ask(smaller, asked, clock)]
      tables = (*tables, *others) if others else tables
    return Proposal(state=tables, nodes=tuple(nodes), is_last=all(
      smaller.is_done or len(smaller.turns) <= turn for smaller in tables))

  def _smaller(self, task: Task, *, has_errors: bool) -> tuple[Smaller, ...]:
    rows = task.fit_rows.sample(self._limits.num_rows, seed=0)
    columns = rows.varying(task.columns)
    if len(columns) < 2 or np.ptp(rows.y) == 0:
      return ()
    found: list[Smaller] = []
    proposed: set[Node] = set()
    for table, names in self._tables_of(task, rows, columns, has_errors=has_errors):
      reduced = table.with_places(dict(enumerate(columns)))
      smaller = _task_of(task, reduced)
      if smaller is not None:
        search = self._search_of(smaller, names)
        turns = self._turns_under_errors(search) if has_errors else self._turns_of(search)
        found.append(Smaller(reduced, search, turns, task.fit_rows, proposed))
    return tuple(found)

  def _turns_under_errors(self, search: Search) -> list[Turn]:
    """Of the sources that take part alone, in the order of `TriedChangesConfig`, and then in that of a table."""
    turns = [turn for turn in self._turns_of(search) if turn.source.name in search.states]
    if search.is_of_one:
      return turns
    first = [turn for name, most in self._limits.tried.first for turn in turns
             if turn.source.name == name and turn.number < most]
    return list({(turn.source.name, turn.number): turn for turn in (*first, *turns)}.values())

  def _tables_of(
    self, task: Task, rows: Rows, columns: Sequence[int], *, has_errors: bool
  ) -> list[tuple[Reduced, tuple[str, ...]]]:
    """As `_tables`, of some columns; that of a single one where y seems to be a function of it."""
    if task.sole_column is None or task.sole_column not in columns:
      return self._tables(rows.x[:, columns], rows.y, has_errors=has_errors)
    sole = Reduced(rows.x[:, [task.sole_column]], rows.y, (variable(columns.index(task.sole_column)),), error=0.0)
    return [(sole, self._limits.sources)]

  def _tables(
    self, x: np.ndarray, y: np.ndarray, *, has_errors: bool = False
  ) -> list[tuple[Reduced, tuple[str, ...]]]:
    """Smaller tables, and which sources to ask of each: others where errors of y hide how exactly changes leave it."""
    config, known = self._limits, list[Reduced]()
    if not has_errors:
      with contextlib.suppress(np.linalg.LinAlgError):  # odd data: what they cost is theirs alone
        known = find_reductions(x, y, config)
    if any(table.error <= config.surely_known for table in known):
      return [(table, _asked_of(table, config)) for table in known]
    found = {(frozenset(table.columns), table.steps): (table, _asked_of(table, config)) for table in known}
    with contextlib.suppress(np.linalg.LinAlgError):
      for table in tried_changes.find_smaller(x, y, config.tried):
        same = frozenset(table.columns), table.steps
        first, names = found.get(same, (table, ()))
        found[same] = first, (*names, *(config.sources if table.error < config.tried.least_noise else
                                        config.tried.sources))
    return list(found.values())

  def _in_other_columns(self, task: Task, tables: Sequence[Smaller]) -> tuple[Smaller, ...]:
    """Of the first smaller table, if it is known and the user's has more columns: where that has not the first turn has
    looked.
    """
    config, reduced = self._limits, None
    num_columns = len(task.fit_rows.varying(task.columns))
    if tables and len(tables[0].reduced.columns) < num_columns and tables[0].reduced.error <= config.surely_known:
      reduced = in_other_columns(tables[0].reduced, config)
    smaller = None if reduced is None else _task_of(task, reduced)
    if reduced is None or smaller is None:
      return ()
    search = self._search_of(smaller, config.coordinates.sources)
    return (Smaller(reduced, search, self._turns_of(search), task.fit_rows, tables[0].proposed),)

  def _ask(self, smaller: Smaller, turn: Turn, clock: Clock) -> tuple[Node, ...]:
    if smaller.is_done or not smaller.search.takes_part(turn.source):
      # What the smaller table's search has ended with is shown once more: a further turn that found nothing simpler.
      return smaller.last()
    self._take_turn(smaller.search, turn, clock)
    return smaller.new(self._limits.num_kept)


def _asked_of(table: Reduced, config: ReductionsConfig) -> tuple[str, ...]:
  """The sources that are asked of a table that slopes tell of: further ones where y is rounded, as in print."""
  return (*config.sources, *config.sources_if_rounded) if table.error > config.rounded else config.sources


@np.errstate(all="ignore")  # what is not finite is no table
def _task_of(task: Task, reduced: Reduced) -> Task | None:
  """The smaller table of all rows that are fitted; rows count as they do where constants are fitted to y."""
  rows = task.fit_rows
  x, y, scale = reduced.of(rows.x, rows.y)
  return smaller_task(task, x, y, rows.weights * scale**2)
