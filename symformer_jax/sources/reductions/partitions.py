"""Sums and products of functions of groups of columns: each group searched by itself.

`(x + 510*y**0.26)*(1 + 0.014*log(z))*(1 - ((w - 293)/1500)**1.03)` has four columns, and its logarithm is a sum of
functions of x and y, of z and of w. Where a smooth function says so (`additive_groups`), its parts are tables of their
own, known to some digits: of one column (`unknown_functions`), or such as other sources are asked of. What they find is
put together, and its constants are fitted once more.
"""

from collections.abc import Sequence
import contextlib
import dataclasses
import itertools

import numpy as np

from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import PartitionsConfig
from symformer_jax.engine.loop import Search, Turn
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Proposal, Question
from symformer_jax.engine.task import Task
from symformer_jax.language import programs
from symformer_jax.language.expression import Node, chain, number, with_columns
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.in_turn import in_turn
from symformer_jax.sources.links import LINKS
from symformer_jax.sources.reductions import additive_groups
from symformer_jax.sources.reductions.additive_groups import LOGARITHM, Partition
from symformer_jax.sources.reductions.smaller_tasks import OfOtherTables, smaller_task
from symformer_jax.sources.sums import pair_sums, terms
from symformer_jax.sources.unknowns import unknown_functions
from symformer_jax.sources.unknowns.unknown_functions import Table, Tabulated

# A formula of a group in the user's columns, and what it costs in nats.
Form = tuple[float, Node]


class Part:
  """The state of one group: what it may be, and for several columns the search that goes on.

  Attributes:
    forms: the likeliest first; new: those that have come with the last turn.
  """

  def __init__(self, columns: Sequence[int], forms: Sequence[Form] = (), search: Search | None = None,
               error: float = 0.0):
    self.search, self.forms, self.new = search, list(forms), list(forms)
    self._columns, self._error = dict(enumerate(columns)), error

  def look(self, config: PartitionsConfig) -> None:
    """Takes what the search has found: none is better than what is known of the function."""
    assert self.search is not None, "a group of one column has no search"
    rows, known = self.search.task.fit_rows, {node for _, node in self.forms}
    costs = [(float(terms.nats(c.node, c.mse + self._error, num_rows=len(rows), nats_per_node=config.nats_per_node)),
              with_columns(c.node, self._columns)) for c in self.search.pool.shortlist()]
    self.forms = sorted(costs, key=lambda each: each[0])[: config.num_kept]
    self.new = [each for each in self.forms if each[1] not in known]


class Split:
  """The state: a function of y as a sum, or y as a product, of parts.

  Attributes:
    parts: by group; constant: that is added to their sum, or a factor of their product.
  """

  def __init__(self, link: str, parts: Sequence[Part], constant: float):
    self.link, self.parts, self.constant = link, list(parts), constant

  def new(self, most: int) -> list[Node]:
    """Formulas of y with something new in them, the shortest descriptions of all parts together first."""
    sets: dict[tuple[Node, ...], float] = {}
    for place, part in enumerate(self.parts):
      sets |= {nodes: nats for nats, nodes in self._with(place, part.new, most)}
    whole = map(self._whole, sorted(sets, key=lambda nodes: sets[nodes])[:most])
    return [node for node in whole if programs.size(node) <= programs.MAX_TOKENS]

  def _with(self, place: int, some: Sequence[Form], most: int) -> list[tuple[float, tuple[Node, ...]]]:
    """Forms of all parts, of one part some."""
    sets: list[tuple[float, tuple[Node, ...]]] = [(0.0, ())]
    for i, part in enumerate(self.parts):
      longer = [(nats + more, (*nodes, node)) for (nats, nodes), (more, node) in
                itertools.product(sets, some if i == place else part.forms)]
      sets = sorted(longer, key=lambda chosen: chosen[0])[:most]
    return sets

  def _whole(self, nodes: Sequence[Node]) -> Node:
    """In the user's columns and units."""
    token = "*" if self.link == LOGARITHM else "+"
    whole = tidy(chain(token, [*nodes, number(self.constant)]))
    return whole if self.link == LOGARITHM else LINKS[self.link].undo(whole)


@dataclasses.dataclass(frozen=True)
class Partitions(OfOtherTables):
  """Groups of columns: the first turn looks for them, each further one is one of other sources' for each."""

  name: str = "partitions"

  @property
  def _limits(self) -> PartitionsConfig:
    return self.options.config.partitions

  def _propose(self, question: Question, turn: int, clock: Clock) -> Proposal:
    splits: list[Split] = []  # of odd data as well: what they cost is theirs alone
    if turn == 0:
      with clock.measure("recombine"), contextlib.suppress(np.linalg.LinAlgError):
        splits = self._splits(question.task)
    else:
      splits = question.state or []  # where the first turn was left out there are none
      for part in (part for split in splits for part in split.parts):
        if part.search is not None:
          self._ask(part, self._turns_of(part.search)[turn - 1], clock)
    new = in_turn([split.new(self._limits.num_formulas) for split in splits])
    nodes = pair_sums.allowed(new, question.task, self._limits.num_formulas, self.options.config.terms)
    parts = [part for split in splits for part in split.parts]
    for part in parts:
      part.new = []
    return Proposal(state=splits, nodes=nodes, is_last=all(part.search is None for part in parts))

  @np.errstate(all="ignore")  # what is not finite is left out
  def _splits(self, task: Task) -> list[Split]:
    rows = task.fit_rows.sample(self._limits.num_last_rows, seed=0)
    columns = rows.varying(task.columns)
    found: list[Partition] = []
    noise = additive_groups.find_noise(rows.x[:, columns], rows.y, self._limits)
    for links in self._limits.links:
      found = [partition for name in links
               if (partition := self._partition(task, rows, columns, name, noise)) is not None]
      if found:
        break
    most = self._limits.times_least * min((partition.error for partition in found), default=0.0)
    near = sorted((each for each in found if each.error <= most), key=lambda each: each.error)
    share = self._limits.known if noise else 1.0
    return [split for each in near if (split := self._split(task, columns, each, share)) is not None]

  def _partition(
    self, task: Task, rows: Rows, columns: Sequence[int], link: str, noise: float
  ) -> Partition | None:
    allows = terms.allowed_operators(task.rule)
    if link != LOGARITHM and allows is not None and not all(map(allows, LINKS[link].operators)):
      return None
    data = rows.x[:, columns], rows.y, link, self._limits
    found = additive_groups.find_partition(*data)
    return additive_groups.find_partition(*data, noise) if found is None and noise else found

  def _split(self, task: Task, columns: Sequence[int], partition: Partition, share: float) -> Split | None:
    """The parts of a sum as tables, and formulas of those of one column; None where one has no values.

    Args:
      share: of the squared errors of rows left out, that of the functions.
    """
    is_product, rows, found = partition.link == LOGARITHM, task.fit_rows, partition.sum
    groups = [tuple(columns[column] for column in group) for group in found.groups]
    tables = {group: Table(task, group[0], self.options.config, self._limits.forms)
              for group in groups if len(group) == 1}
    error = share * float(np.median(np.abs(found.errors))) ** 2
    level, known = 0.0, dict[tuple[int, ...], Tabulated]()
    for group, function in zip(groups, found.functions, strict=True):
      centre = float(np.mean(function(rows.x[:, list(group)])))
      level += centre
      values = function(tables[group].places[:, None] if group in tables else rows.x[:, list(group)]) - centre
      values = np.exp(values) if is_product else values
      known[group] = Tabulated(values, error * float(np.mean(values**2)) if is_product else error)
    if not all(np.all(np.isfinite(each.values)) for each in known.values()):
      return None
    asked = [(table, known[group]) for group, table in tables.items()]
    forms = dict(zip(tables, unknown_functions.find_forms(asked, self.options, self._limits.forms), strict=True))
    parts = [part for group in groups if (
      part := Part(group, forms=forms[group]) if group in forms else self._part(task, group, known[group]))]
    constant = float(np.exp(level)) if is_product else level
    return Split(partition.link, parts, constant) if len(parts) == len(groups) else None

  def _part(self, task: Task, group: Sequence[int], function: Tabulated) -> Part | None:
    """A group of several columns, to be searched; None where its values are no data set.

    Rows count as the user's do, whatever the other parts make of an error in y: that is for the fit of the whole.
    """
    rows = task.fit_rows
    smaller = smaller_task(task, rows.x[:, list(group)], function.values, rows.weights)
    if smaller is None:
      return None
    return Part(group, search=self._search_of(smaller, self._limits.sources), error=function.error)

  def _ask(self, part: Part, turn: Turn, clock: Clock) -> None:
    assert part.search is not None, "groups of one column are not asked"
    if part.search.takes_part(turn.source):
      self._take_turn(part.search, turn, clock)
      part.look(self._limits)
