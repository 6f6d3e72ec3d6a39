"""Sums of two functions of one column with inner constants, and powers of a constant and a function: all on grids.

`18.4*(exp(-0.28*x) - exp(-1.93*x))`, `0.12*exp(-1.1*x) + 0.0078 + 2.4e-4*exp(0.09*x)`,
`34.6*(1 - exp(-0.04*x))**1.42`, `0.07 + 0.38*(1 + (x/49)**1.4)**(-0.3)`, `1.4e9*exp(-5400/(x + 273)) - 5.6`: of some
three hundred functions every pair is tried, and every one beside every power of y, of y less a constant, and its
logarithm; then pairs with steps and peaks, of two inner constants each. A fit finds what lies between. `curves` have
two inner constants in one function.
"""

from collections.abc import Iterable, Iterator, Sequence
import dataclasses
import itertools
import math
from typing import NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import DEFAULT, SearchConfig, TwoConstantsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import Task
from symformer_jax.language.expression import Node, number, power
from symformer_jax.language.rules import Rule
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.curves.inner_functions import FAMILIES, SHAPES, Functions, nearest, of_both_signs
from symformer_jax.sources.in_turn import in_turn
from symformer_jax.sources.links import LINKS, Link
from symformer_jax.sources.stateless import Stateless
from symformer_jax.sources.sums import pair_sums, terms

# The power of y that its logarithm is the limit of.
LOGARITHM = 0.0


class Lift(NamedTuple):
  """What is left of y once a constant is taken, turned to be above 0: sign*(y - constant)."""

  constant: float
  sign: float

  def of(self, rows: Rows) -> Rows:
    return dataclasses.replace(rows, y=self.sign * (rows.y - self.constant))

  def undo(self, node: Node) -> Node:
    if self.sign < 0:
      node = Node("*", (node, number(-1.0)))
    return tidy(Node("+", (node, number(self.constant)))) if self.constant else node


@dataclasses.dataclass(frozen=True)
class TwoConstants(Stateless):
  """Of the only column that varies: powers of sums, sums of two; powers beside a constant, sums of two with shapes."""

  config: SearchConfig = DEFAULT
  name: str = "two_constants"

  @property
  def turns(self) -> tuple[int, ...]:
    return self.config.two_constants.turns

  def supports(self, task: Task) -> bool:
    return pair_sums.can_add(task) and len(task.fit_rows.varying(task.columns)) == 1

  def _nodes(self, question: Question, turn: int, num: int) -> Sequence[Node]:
    task = question.task
    [column] = task.fit_rows.varying(task.columns)
    make = (powers_of_sums, sums_of_two, powers_beside_constants, sums_with_shapes)[turn]
    return pair_sums.allowed(make(task.fit_rows, column, task.rule, self.config.two_constants), task, num,
                             self.config.terms)


def powers_of_sums(rows: Rows, column: int, rule: Rule, config: TwoConstantsConfig) -> Iterator[Node]:
  """`(a + b*F)**p`, the nearest of each family in turn."""
  if not np.min(rows.y) > 0:
    return iter(())
  functions = _functions(rows, column, rule, config)
  return _powers(functions, [Lift(0.0, 1.0)], _exponents(rule, config), config.num_alike)


def powers_beside_constants(rows: Rows, column: int, rule: Rule, config: TwoConstantsConfig) -> Iterator[Node]:
  """`d + (a + b*F)**p`, `d - (a + b*F)**p`, `d + exp(a + b*F)` and `d - exp(a + b*F)`, the nearest of each family in
  turn, one of each d.
  """
  if not np.ptp(rows.y) > 0:
    return iter(())
  away = np.geomspace(*config.away) * np.ptp(rows.y)
  lifts = [Lift(low, 1.0) for low in (np.min(rows.y) - away).tolist()]
  lifts += [Lift(high, -1.0) for high in (np.max(rows.y) + away).tolist()]
  functions = _functions(rows, column, rule, config)
  logarithm = [LOGARITHM] if rule.allows_operator("exp") else []
  return in_turn(_powers(functions, lifts, powers, 1) for powers in (_exponents(rule, config), logarithm))


def _exponents(rule: Rule, config: TwoConstantsConfig) -> list[float]:
  """Of y, where the rule allows powers."""
  return of_both_signs(np.geomspace(*config.powers)).tolist() if rule.allows_operator("pow") else []


def _powers(functions: Functions, lifts: Sequence[Lift], powers: Sequence[float], num: int) -> Iterator[Node]:
  """Of each family the nearest, so many of each lift; of y to these powers."""
  if not powers:
    return
  found: dict[str, list[tuple[float, Lift, float, int]]] = {name: [] for name in functions.families}
  for lift in lifts:
    interruption.check()
    some = lift.of(functions.rows)
    # A power of y counts in each row as far as an error of y shows in it: what is left is then one of y.
    left = np.stack([functions.left_of_each(*_raised(some, s)) for s in powers])  # [S, M]
    for name, places in functions.families.items():
      of_family = left[:, places]
      found[name] += [(of_family[s, i], lift, powers[s], places[i]) for s, i in nearest(of_family, num)]
  for _, lift, s, i in in_turn(map(sorted, found.values())):
    node = _power_of_sum(functions, i, lift.of(functions.rows), s)
    if node is not None:
      yield lift.undo(node)


def _power_of_sum(functions: Functions, place: int, rows: Rows, exponent: float) -> Node | None:
  factors = functions.factors([place], *_raised(rows, exponent))
  if factors is None:
    return None
  if exponent == LOGARITHM:
    inner, offset = factors.tolist()
    size = math.log(np.median(rows.y))
    some = Node("+", (Node("*", (functions.nodes[place], number(inner))), number(offset + size)))
    return tidy(Node("exp", (some,)))
  largest = factors * [functions.sizes[place], 1.0]
  unit = float(np.abs(factors)[np.argmax(np.abs(largest))])
  factor, constant = factors.tolist()
  return _written(functions.nodes[place], factor, constant, unit, exponent=1 / exponent, size=float(np.median(rows.y)))


def sums_of_two(rows: Rows, column: int, rule: Rule, config: TwoConstantsConfig) -> Iterator[Node]:
  """`a + b*F + c*G` for y and functions of y in turn, of each the nearest first, few of each two families."""
  functions = _functions(rows, column, rule, config)
  pairs = list(itertools.combinations_with_replacement(functions.families.values(), 2))
  links = [link for link in map(LINKS.__getitem__, config.links)
           if link.is_defined(rows.y) and all(map(rule.allows_operator, link.operators))]
  return in_turn(_sums_for(link, functions, pairs, config) for link in links)


def sums_with_shapes(rows: Rows, column: int, rule: Rule, config: TwoConstantsConfig) -> Iterator[Node]:
  """`a + b*F + c*G`, F or both a step, a peak or a decay of two inner constants."""
  functions = _functions(rows, column, rule, config, config.shapes)
  shapes = [functions.families[name] for name in config.shapes if name in functions.families]
  others = [functions.families[name] for name in config.families if name in functions.families]
  pairs = [*itertools.combinations_with_replacement(shapes, 2), *itertools.product(shapes, others)]
  return _sums_for(LINKS["y"], functions, pairs, config)


def _functions(rows: Rows, column: int, rule: Rule, config: TwoConstantsConfig, shapes: Sequence[str] = ()
               ) -> Functions:
  families = {name: FAMILIES[name] for name in config.families} | {name: SHAPES[name] for name in shapes}
  return Functions(rows.sample(config.num_rows, seed=0), column, rule, families, config)


def _sums_for(link: Link, functions: Functions, pairs: Iterable[tuple[Sequence[int], Sequence[int]]],
              config: TwoConstantsConfig) -> Iterator[Node]:
  """The nearest sums of two functions, few of each pair of families."""
  whole = terms.whole(link, functions.rows)
  if whole is None:
    return
  interruption.check()
  left = functions.left_of_pairs(*whole)
  places = [(one[i], other[j]) for one, other in pairs
            for i, j in nearest(left[np.ix_(one, other)], config.num_alike_pairs)]
  around = functions.left_around(np.array(places, int).reshape(-1, 2), *whole)
  orders = [[place for _, place in sorted(zip(costs, places, strict=True))]
            for costs in (around.tolist(), [left[place] for place in places])]
  for i, j in dict.fromkeys(in_turn(orders)):
    inner = functions.write([i, j], *whole)
    if inner is not None:
      yield link.undo(inner)


@np.errstate(all="ignore")
def _written(function: Node, factor: float, constant: float, unit: float, *, exponent: float, size: float
             ) -> Node | None:
  """size*(factor*F + constant)**exponent, the larger of both terms in its natural size; None if not finite."""
  numbers = np.array([factor / unit, constant / unit, size * np.float64(unit) ** exponent])
  if not np.isfinite(numbers).all():
    return None
  inner, offset, outer = numbers.tolist()
  some = Node("+", (Node("*", (function, number(inner))), number(offset)))
  return tidy(Node("*", (power(some, number(float(exponent))), number(outer))))


@np.errstate(all="ignore")  # what is not finite is left out
def _raised(rows: Rows, exponent: float) -> tuple[np.ndarray, np.ndarray]:
  """A power of y of size 1 in the middle, or its logarithm, and weights by which its errors are those of y [N]."""
  size = np.median(rows.y)
  scaled = rows.y / size
  if exponent == LOGARITHM:
    return np.log(scaled), rows.weights * rows.y**2
  return scaled**exponent, rows.weights / (exponent * scaled ** (exponent - 1) / size) ** 2
