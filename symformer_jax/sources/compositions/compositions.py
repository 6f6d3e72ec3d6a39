"""Compositions as a source: functions of functions of a column, of products and of sums of such, all of a grid.

`cos(cos(0.65*x))`, `0.1/sin(1/x + 4)` or `1/(sin(0.2*x**2 + x) + x)` have few constants, but these stand inside one
another. A block of compositions, thousands that differ in constants alone, is looked at by one product of matrices, for
y and up to 120 functions of y and of its quotients at once; the nearest have their constants fitted.
There is no end to them: first functions of functions of powers, then of such times powers, of sums of two, of products
of two. A turn takes the next blocks; the turns of an ordinary search of one column end among the second, and what
follows is for those who give it time.
"""

from collections.abc import Iterator, Sequence
import dataclasses
import itertools

import jax
import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import CompositionsConfig
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Proposal, Question
from symformer_jax.engine.task import Task
from symformer_jax.language.expression import Node, evaluate, variable
from symformer_jax.language.rules import Rule, is_writable
from symformer_jax.selection import scoring
from symformer_jax.sources.compositions import composition_fits, composition_stages as stages
from symformer_jax.sources.compositions.composition_fits import Found, Inside, Leaf, Scan
from symformer_jax.sources.compositions.composition_goals import Goal, find_goals
from symformer_jax.sources.in_turn import in_turn
from symformer_jax.sources.monomials import Values, monomials, to_node
from symformer_jax.sources.sums import pair_sums

# To compute a composition takes about as long as to look at it for so many goals.
EVALUATED = 20


@dataclasses.dataclass(frozen=True)
class Compositions:
  """Functions of functions; its state: how many of all insides have had their turn."""

  options: SearchOptions
  name: str = "compositions"

  @property
  def turns(self) -> tuple[int, ...]:
    return self.options.config.compositions.turns

  def supports(self, task: Task) -> bool:
    config = self.options.config.compositions
    return (pair_sums.can_add(task) and 1 <= len(task.fit_rows.varying(task.columns)) <= config.max_columns
            and task.fit_rows.num_distinct >= config.min_rows)

  def init(self, task: Task, key: jax.Array) -> int:
    return 0

  def propose(self, questions: Sequence[Question], *, turn: int, num: int, clock: Clock) -> list[Proposal]:
    with clock.measure("recombine"):
      return [self._propose(question, num) for question in questions]

  def _propose(self, question: Question, num: int) -> Proposal:
    task, config = question.task, self.options.config.compositions
    rows = task.fit_rows.sample(config.num_rows, seed=0)
    columns = rows.varying(task.columns)
    goals = find_goals(rows, columns, task.rule, config)
    if not goals:
      return Proposal(is_last=True)
    found, end = look_at_blocks(rows, columns, goals, task.rule, config, begin=question.state)
    nodes = _nodes_of(nearest_fitted(found, goals, config), goals, task)
    return Proposal(
      state=question.state if end is None else end, is_last=end is None,
      nodes=pair_sums.allowed(nodes, task, num, self.options.config.terms))


def look_at_blocks(
  rows: Rows, columns: Sequence[int], goals: Sequence[Goal], rule: Rule, config: CompositionsConfig, *, begin: int
) -> tuple[list[Found], int | None]:
  """What comes near of the next blocks, and the number of the first that is left; None where none is."""
  names = _stages_of(rule)
  scan, num = Scan(goals, names, config), 0
  found: list[Found] = []
  insides = enumerate(insides_of(rows, columns, rule, config))
  for index, inside in itertools.islice(insides, begin, None):
    interruption.check()
    if num >= config.num_looked_at:
      return found, index
    block = composition_fits.block_of(inside, config)
    if len(block.values):
      found += scan.nearest(block)
      num += (len(goals) + EVALUATED) * num_compositions(len(block.values), inside, names, config)
  return found, None


def num_compositions(num_insides: int, inside: Inside, names: Sequence[str], config: CompositionsConfig) -> int:
  """Places of the grid for so many places inside."""
  outer, num_waves = composition_fits.outer_functions(inside, names), inside.num_waves(config)
  return num_insides * sum(len(stages.STAGES[name].places(config, num_waves)) for name in outer)


def _stages_of(rule: Rule) -> list[str]:
  return [name for name, stage in stages.STAGES.items() if all(map(rule.allows_operator, stage.tokens))]


def insides_of(
  rows: Rows, columns: Sequence[int], rule: Rule, config: CompositionsConfig
) -> Iterator[Inside]:
  """All that may stand inside: powers, functions of them, such times powers, beside powers, times one another; of these
  what a rule has the operators for.
  """
  leaves = [leaf for leaf in _leaves(rows, columns, config) if is_writable(leaf.node, rule)]
  inner = [name for name in _stages_of(rule) if name != stages.NOTHING]
  for leaf in leaves:
    yield Inside(stages.NOTHING, leaf)
  for leaf, name in itertools.product(leaves, inner):
    yield Inside(name, leaf)
  factors = [leaf for leaf in _monomials(rows, monomials(columns, 1, config.factor_powers))
             if is_writable(leaf.node, rule)]
  for leaf, name, factor in itertools.product(leaves, inner, factors):
    yield Inside(name, leaf, factor_leaf=factor)
  for leaf, beside in itertools.combinations(leaves, 2):
    yield Inside(stages.NOTHING, leaf, beside=beside)
  for leaf, name, beside in itertools.product(leaves, inner, leaves):
    yield Inside(name, leaf, beside=beside)
  for (leaf, name), (other, factor) in itertools.combinations(itertools.product(leaves, inner), 2):
    yield Inside(name, leaf, factor, other)


@np.errstate(all="ignore")  # what is not finite is left out
def _leaves(rows: Rows, columns: Sequence[int], config: CompositionsConfig) -> list[Leaf]:
  """Logarithms and powers of columns, those of each exponent together, products and quotients of two columns, as far as
  they are defined.
  """
  logarithms = []
  for column in columns:
    inside = variable(column) if np.all(rows.x[:, column] > 0) else Node("pow2", (variable(column),))
    logarithms.append(Leaf(Node("ln", (inside,)), np.log(evaluate(inside, rows.x))))
  powers = [((column, power),) for power in config.inner_powers for column in columns]
  found = [*logarithms, *_monomials(rows, [*powers, *monomials(columns, 2, (1.0, -1.0))])]
  return [leaf for leaf in found if np.all(np.isfinite(leaf.values)) and np.ptp(leaf.values) > 0]


@np.errstate(all="ignore")
def _monomials(rows: Rows, some: Sequence) -> list[Leaf]:
  values = Values(rows.x)(some).T if some else ()
  return [Leaf(to_node(monomial), column) for monomial, column in zip(some, values, strict=True)
          if np.all(np.isfinite(column)) and np.ptp(column) > 0]


def nearest_fitted(found: Sequence[Found], goals: Sequence[Goal], config: CompositionsConfig) -> list[Found]:
  """Of what comes near on the grid the most promising, fitted, the nearest first."""
  chosen = [each for alike in _by_goal(found) for each in alike[: _num_fitted(goals[alike[0].goal], config)]]
  screened = composition_fits.fit(chosen, goals, config.screen_steps)
  # Smooth functions of y are met by many: each goal has its turn.
  in_order = dict.fromkeys(in_turn([sorted(screened, key=_left), in_turn(_by_goal(screened))]))
  return sorted(composition_fits.fit(list(in_order)[: config.num_near], goals, config.fit_steps), key=_left)


def _by_goal(found: Sequence[Found]) -> list[list[Found]]:
  """What comes near each goal that something does, the nearest first."""
  of_goals: dict[int, list[Found]] = {}
  for each in sorted(found, key=_left):
    of_goals.setdefault(each.goal, []).append(each)
  return list(of_goals.values())


def _left(found: Found) -> float:
  return found.left


def _num_fitted(goal: Goal, config: CompositionsConfig) -> int:
  if goal.kind.divisor:
    return config.num_of_quotient
  return config.num_of_y if goal.kind.link == "y" else config.num_of_link


@np.errstate(all="ignore")  # rows that were not looked at
def _nodes_of(found: Sequence[Found], goals: Sequence[Goal], task: Task) -> list[Node]:
  """Formulas for y, the nearest to it first."""
  made = (goals[each.goal].kind.write(each.build(), task.fit_rows) for each in found)
  rows = task.fit_rows
  errors = {node: scoring.score(evaluate(node, rows.x), rows.y, rows.weights).mse for node in made if node is not None}
  return sorted((node for node, error in errors.items() if np.isfinite(error)), key=lambda node: errors[node])
