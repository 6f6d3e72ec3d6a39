"""Sums of two functions of one column with an inner constant each, of many kinds of many arguments, fitted.

`13*arctan(0.00076*x) + 3.5*arctan((x/7500)**2)`, `0.45*exp(-1.04*x)*sinh(sqrt(2.3*x))`,
`2.45*arctan(sqrt((x**2 - 1)/6)) - arctan(sqrt(x**2 - 1))`: functions of squares, roots and inverses make some thousand
pairs of kinds, for y, its inverse and its logarithm, beside a multiple of x or of its logarithm. Of each pair the best
place of a coarse grid is found by products of matrices, and fitted in a few steps (`pair_fits`): the right one is
seldom the nearest on the grid.
"""

from collections.abc import Iterator, Sequence
import dataclasses
import itertools

import numpy as np

from symformer_jax.engine.config import DEFAULT, InnerPairsConfig, SearchConfig, TwoConstantsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import Task
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, number, variable
from symformer_jax.language.rules import Rule
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.curves import pair_fits
from symformer_jax.sources.curves.inner_functions import ARGUMENTS, KINDS, Functions, nearest, of_arguments
from symformer_jax.sources.in_turn import in_turn
from symformer_jax.sources.links import LINKS, Link
from symformer_jax.sources.stateless import Stateless
from symformer_jax.sources.sums import pair_sums, terms


@dataclasses.dataclass(frozen=True)
class InnerPairs(Stateless):
  """Of the only column that varies."""

  config: SearchConfig = DEFAULT
  name: str = "inner_pairs"

  @property
  def turns(self) -> tuple[int, ...]:
    return self.config.inner_pairs.turns

  def supports(self, task: Task) -> bool:
    return pair_sums.can_add(task) and len(task.fit_rows.varying(task.columns)) == 1

  def _nodes(self, question: Question, turn: int, num: int) -> Sequence[Node]:
    task = question.task
    [column] = task.fit_rows.varying(task.columns)
    found = fitted_sums(task.fit_rows, column, task.rule, self.config.inner_pairs, self.config.two_constants)
    return pair_sums.allowed(found, task, num, self.config.terms)


def fitted_sums(
  rows: Rows, column: int, rule: Rule, config: InnerPairsConfig, grids: TwoConstantsConfig
) -> Iterator[Node]:
  """`a + b*F + c*G`, also beside a multiple of x or of its logarithm: of all functions of y in turn the nearest first.

  Args:
    grids: of the constants, but for how many there are.
  """
  families = of_arguments(config.kinds, config.arguments)
  few = dataclasses.replace(grids, rates=config.rates, offsets=config.offsets)
  functions = Functions(rows.sample(config.num_rows, seed=0), column, rule, families, few)
  besides = [(), *((node,) for name in config.besides if rule.allows_operator(name)
                   if np.all(np.isfinite(expression.evaluate(node := _beside(name, column), functions.rows.x))))]
  links = [link for link in map(LINKS.__getitem__, config.links)
           if link.is_defined(rows.y) and all(map(rule.allows_operator, link.operators))]
  return in_turn(_fitted_sums(link, functions, column, config, beside) for link in links for beside in besides)


def _beside(name: str, column: int) -> Node:
  return variable(column) if name == "*" else Node(name, (variable(column),))


def _fitted_sums(
  link: Link, functions: Functions, column: int, config: InnerPairsConfig, beside: Sequence[Node]
) -> Iterator[Node]:
  """The nearest sums of two functions with fitted constants, and another one beside, each two kinds once."""
  target = terms.whole(link, functions.rows)
  if target is None:
    return
  rows = Rows(functions.rows.x, *target)
  known: set[frozenset] = set()
  for kinds, constants in _fits(functions, rows, column, config, beside):
    if frozenset(kinds) not in known:
      known.add(frozenset(kinds))
      nodes = [KINDS[kind].family.node(ARGUMENTS[argument].node(variable(column)), float(constant))
               for (kind, argument), constant in zip(kinds, constants, strict=True)]
      inner = sum_of([*nodes, *beside], rows)
      if inner is not None:
        yield link.undo(inner)


@np.errstate(all="ignore")  # what is not finite is left out
def _fits(
  functions: Functions, rows: Rows, column: int, config: InnerPairsConfig, beside: Sequence[Node]
) -> list[tuple[list[tuple[str, str]], np.ndarray]]:
  """Pairs of kinds, each with its argument, and their fitted constants [2], the nearest first."""
  others = [expression.evaluate(node, rows.x) for node in beside]
  left = functions.left_of_pairs(rows.y, rows.weights, *others)
  places = [(one[i], other[j]) for one, other in itertools.combinations_with_replacement(
    functions.families.values(), 2) for i, j in nearest(left[np.ix_(one, other)], config.num_begun)]
  if not places:
    return []
  pairs = np.array(places)
  keys = {place: key for key, family in functions.families.items() for place in family}
  goal = pair_fits.Goal(rows, np.column_stack([np.ones(len(rows)), *others]))
  slots, logarithms = zip(*(_slots([keys[i] for i in each], [functions.constants[i][0] for i in each], column, rows)
                            for each in pairs.T.tolist()), strict=True)
  fits = pair_fits.Fits(np.stack(logarithms, axis=1), functions.left_around(pairs, rows.y, rows.weights, *others))
  for num, num_steps in config.rounds:
    order = np.argsort(fits.left, kind="stable")[:num]
    slots, pairs = [slot.of(order) for slot in slots], pairs[order]
    fits = pair_fits.fit(slots, fits.logarithms[order], goal, num_steps)
  constants = np.stack([slot.constants(fits.logarithms[:, i]) for i, slot in enumerate(slots)], axis=1)
  return [([keys[i] for i in pairs[k].tolist()], constants[k]) for k in np.argsort(fits.left, kind="stable").tolist()
          if np.isfinite(fits.left[k])]


def _slots(
  keys: Sequence[tuple[str, str]], constants: Sequence[float], column: int, rows: Rows
) -> tuple[pair_fits.Slots, np.ndarray]:
  values = {argument: expression.evaluate(ARGUMENTS[argument].node(variable(column)), rows.x)
            for argument in {argument for _, argument in keys}}
  return pair_fits.slots_of([kind for kind, _ in keys], np.stack([values[argument] for _, argument in keys]),
                            np.array(constants))


def sum_of(nodes: Sequence[Node], rows: Rows) -> Node | None:
  """The sum with a constant that fits rows best; None where it, or a factor in it, is not finite."""
  columns = np.stack([expression.evaluate(node, rows.x) for node in nodes], axis=1)
  sizes = np.max(np.abs(columns), axis=0)
  if not np.all(np.isfinite(sizes) & (sizes > 0)):
    return None
  *factors, constant = terms.least_squares(columns / sizes, rows.y, rows.weights)
  with np.errstate(over="ignore"):  # of a column of tiny values
    factors = np.array(factors) / sizes
  if not np.all(np.isfinite(factors)):
    return None
  some = [Node("*", (node, number(float(factor)))) for node, factor in zip(nodes, factors, strict=True)]
  return tidy(chain("+", [*some, number(float(constant))]))
