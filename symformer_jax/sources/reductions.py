"""Searches of a smaller table, where changes of the columns leave the target alone.

`x*(1 - exp(-y*w/x))*exp(-z*w/x)` has four columns, and is x times a function of y*w/x and z*w/x. Where the slopes of a
smooth function through the rows say so (`smaller_tables`), the other sources are asked of the table of these two; what
they find comes back in the user's columns, and its constants are fitted once more.
"""

from collections.abc import Sequence
import dataclasses
import math

import jax
import numpy as np

from symformer_jax.engine import loop
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import ReductionsConfig
from symformer_jax.engine.loop import Search, Turn
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Proposal, Question, Source
from symformer_jax.engine.task import Task
from symformer_jax.language import expression, programs
from symformer_jax.language.expression import Node
from symformer_jax.language.gathering import gather
from symformer_jax.results import EXACT
from symformer_jax.sources import pair_sums
from symformer_jax.sources.reduced_tables import Reduced
from symformer_jax.sources.smaller_tables import find_reductions
from symformer_jax.sources.smaller_tasks import smaller_task


class Smaller:
  """The state: the smaller table on its way, and what has come back from it.

  Attributes:
    search: of the smaller table.
    returned: its formulas that have been proposed.
  """

  def __init__(self, reduced: Reduced, search: Search, rows: Rows):
    self.search = search
    self._reduced, self._rows = reduced, rows
    self.returned: set[Node] = set()
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
    whole = map(self._restore, found)
    return tuple(node for node in whole if programs.size(node) <= programs.MAX_TOKENS)

  def _restore(self, form: Node) -> Node:
    """In the user's columns, as it is put together or with its powers gathered: the shorter."""
    whole = self._reduced.restore(form)
    gathered = gather(whole, self._sign)
    values, others = (expression.evaluate(node, self._rows.x) for node in (whole, gathered))
    is_same = np.allclose(values, others, rtol=1e-6, atol=0, equal_nan=True)
    return min(gathered, whole, key=expression.complexity) if is_same else whole

  def _sign(self, node: Node) -> int:
    """1 or -1 where the tree has this sign in all rows, else 0."""
    values = expression.evaluate(node, self._rows.x)
    return int(np.all(values > 0)) - int(np.all(values < 0))


@dataclasses.dataclass(frozen=True)
class Reductions:
  """Other sources, asked of a table of fewer columns: the first turn looks for it, each further one is one of theirs.

  Attributes:
    sources: that are asked; options: of the search.
  """

  options: SearchOptions
  sources: tuple[Source, ...]
  name: str = "reductions"

  @property
  def turns(self) -> tuple[int, ...]:
    return (1,) * (1 + len(self._schedule))

  @property
  def _own(self) -> ReductionsConfig:
    return self.options.config.reductions

  @property
  def _schedule(self) -> list[Turn]:
    return list(loop.first_turns(self.sources, self.options.config.budget))

  def supports(self, task: Task) -> bool:
    num_columns = len(task.fit_rows.varying(task.columns))
    return (pair_sums.can_add(task) and 1 < num_columns <= self._own.max_columns
            and len(task.fit_rows) >= self._own.rows_per_column * num_columns)

  def init(self, task: Task, key: jax.Array) -> None:
    return None

  def propose(self, questions: Sequence[Question], *, turn: int, num: int, clock: Clock) -> list[Proposal]:
    return [self._propose(question, turn, clock) for question in questions]

  def _propose(self, question: Question, turn: int, clock: Clock) -> Proposal:
    if turn == 0:
      with clock.measure("recombine"):
        tables = self._smaller(question.task)
      return Proposal(state=tables, is_last=not tables)
    tables, asked = question.state or (), self._schedule[turn - 1]
    nodes = tuple(node for smaller in tables for node in self._ask(smaller, asked, clock))
    return Proposal(state=tables, nodes=nodes, is_last=all(smaller.is_done for smaller in tables))

  def _smaller(self, task: Task) -> tuple[Smaller, ...]:
    rows = task.fit_rows.sample(self._own.num_rows, seed=0)
    columns = rows.varying(task.columns)
    if len(columns) < 2 or np.ptp(rows.y) == 0:
      return ()
    places, found = dict(enumerate(columns)), []
    try:
      tables = find_reductions(rows.x[:, columns], rows.y, self._own)
    except np.linalg.LinAlgError:  # odd data: what they cost is theirs alone
      return ()
    for table in tables:
      reduced = table.with_places(places)
      smaller = _task_of(task, reduced)
      if smaller is not None:
        supporting = [source for source in self.sources if source.supports(smaller)]
        search = Search(smaller, supporting, self._inner_options, jax.random.key(self.options.seed))
        found.append(Smaller(reduced, search, task.fit_rows))
    return tuple(found)

  @property
  def _inner_options(self) -> SearchOptions:
    """Those of a search that ends where the data are met exactly: of anything less the outer one judges."""
    return dataclasses.replace(self.options, accuracy=None, max_time=math.inf)

  def _ask(self, smaller: Smaller, turn: Turn, clock: Clock) -> tuple[Node, ...]:
    if smaller.is_done or not smaller.search.takes_part(turn.source):
      # What the smaller table's search has ended with is shown once more: a further turn that found nothing simpler.
      return smaller.last()
    [(proposal, fitted)] = loop.take_turn(turn, [smaller.search], self._inner_options, clock)
    smaller.search.close_turn(turn.source, proposal, fitted, clock.elapsed())
    return smaller.new(self._own.num_kept)


@np.errstate(all="ignore")  # what is not finite is no table
def _task_of(task: Task, reduced: Reduced) -> Task | None:
  """The smaller table of all rows that are fitted; rows count as they do where constants are fitted to y."""
  rows = task.fit_rows
  x, y, scale = reduced.of(rows.x, rows.y)
  return smaller_task(task, x, y, rows.weights * scale**2)
