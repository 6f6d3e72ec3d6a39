"""Sums of terms times unknown functions of one column, of exact data: each function is searched as a table by itself.

What `varying` and `separable` know to some digits and compare with sums, fractions and waves of a library is here known
to ten and more (`exact_models`), so that the sources that need exact data can be asked of it.
"""

from collections.abc import Sequence
import dataclasses

import jax
import numpy as np

from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import ExactFactorsConfig
from symformer_jax.engine.loop import Search
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.source import Proposal, Question, Source
from symformer_jax.engine.task import Task
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, number, with_columns
from symformer_jax.sources import asked_tables
from symformer_jax.sources.links import LINKS
from symformer_jax.sources.sums import pair_sums, terms
from symformer_jax.sources.unknowns import exact_models, varying
from symformer_jax.sources.unknowns.exact_models import Fitted, Function
from symformer_jax.sources.unknowns.varying import Form, Multiples


@dataclasses.dataclass(frozen=True)
class ExactFactors:
  """The first turn looks for models, and asks cheap sources of the functions of the first; each further one asks all of
  those of one.

  Attributes:
    options: of the search; sources: that are asked of the functions.
  """

  options: SearchOptions
  sources: tuple[Source, ...]
  name: str = "exact_factors"

  @property
  def turns(self) -> tuple[int, ...]:
    return self._own.turns

  @property
  def _own(self) -> ExactFactorsConfig:
    return self.options.config.exact_factors

  def supports(self, task: Task) -> bool:
    num_columns = len(task.fit_rows.varying(task.columns))
    return (pair_sums.can_add(task) and 1 < num_columns <= self._own.max_columns
            and len(task.fit_rows) >= self._own.min_rows)

  def init(self, task: Task, key: jax.Array) -> None:
    return None

  def propose(self, questions: Sequence[Question], *, turn: int, num: int, clock: Clock) -> list[Proposal]:
    return [self._propose(question, turn, num, clock) for question in questions]

  def _propose(self, question: Question, turn: int, num: int, clock: Clock) -> Proposal:
    task, is_first = question.task, turn == 0
    with clock.measure("recombine"):
      models = self._models(task) if is_first else question.state or []
    sources = [source for source in self.sources if not is_first or source.name in self._own.early_sources]
    place = max(turn - 1, 0)
    nodes = self._formulas(task, models[place], sources, clock) if place < len(models) else []
    return Proposal(state=models, nodes=pair_sums.allowed(nodes, task, num, self.options.config.terms),
                    is_last=turn >= len(models))

  def _models(self, task: Task) -> list[Fitted]:
    allows = terms.allowed_operators(task.rule)
    links = [name for name in self._own.links if allows is None or all(map(allows, LINKS[name].operators))]
    return exact_models.find_models(
      task.fit_rows, task.fit_rows.varying(task.columns), links, allows=allows, config=self._own)

  def _formulas(self, task: Task, model: Fitted, sources: Sequence[Source], clock: Clock) -> list[Node]:
    functions, constant = exact_models.functions_of(task.fit_rows, model, self._own)
    formed: list[tuple[Multiples, list[Form]]] = []
    for function in functions:
      forms = self._forms(function, task, sources, clock)
      if not forms:
        return []
      formed.append((function.multiples, forms))
    if constant:
      formed.append((((exact_models.ONE, 1.0),), [(0.0, number(constant))]))
    return varying.written(model.structure.link, formed, self._own.num_per_model)

  def _forms(self, function: Function, task: Task, sources: Sequence[Source], clock: Clock) -> list[Form]:
    """What a function may be, in its column, with what each costs in nats; none where nothing has met it."""
    own = self._own
    error = max(function.error, own.least_error * float(np.mean(function.values**2)))
    if np.var(function.values) <= own.times_error * error:
      return [(0.0, number(float(np.mean(function.values))))]
    table = asked_tables.table_of(function.places, function.values, np.ones(len(function.values)), task)
    if table is None:
      return []

    def is_met(search: Search) -> bool:
      return any(found.mse <= own.times_error * error and expression.complexity(found.node) <= own.short
                 for found in search.pool.in_order())

    search = asked_tables.ask(table, sources, self.options, clock, num=own.num_asked, is_met=is_met)
    costs = [(float(terms.nats(c.node, c.mse + own.times_error * error, num_rows=len(function.values),
                               nats_per_node=own.nats_per_node)), with_columns(c.node, {0: function.column}))
             for c in search.pool.shortlist() if c.mse <= own.times_error * error]
    return sorted(costs, key=lambda each: each[0])[: own.num_forms]
