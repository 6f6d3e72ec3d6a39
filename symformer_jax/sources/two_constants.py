"""Sums of two functions of one column with an inner constant each, and powers of such sums: both constants on grids.

`18.4*(exp(-0.28*x) - exp(-1.93*x))`, `0.12*exp(-1.1*x) + 0.0078 + 2.4e-4*exp(0.09*x)`,
`34.6*(1 - exp(-0.04*x))**1.42`, `(1 + (x/3)**2.5)**(-0.4)`: of some two hundred functions every pair is tried, and
every one beside every power of y; a fit finds what lies between. `curves` have two inner constants in one function.
"""

from collections.abc import Callable, Iterator, Sequence
import dataclasses
import itertools
from typing import NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import DEFAULT, SearchConfig, TwoConstantsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import Task
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, number, power, variable
from symformer_jax.language.rules import Rule
from symformer_jax.language.tidy import tidy
from symformer_jax.sources import pair_sums, terms
from symformer_jax.sources.in_turn import in_turn
from symformer_jax.sources.links import LINKS, Link
from symformer_jax.sources.stateless import Stateless

# Functions of which others and a constant leave a smaller share (squared) are made of these.
INDEPENDENT = 1e-9


class Family(NamedTuple):
  """Functions of one column that differ in a constant.

  Attributes:
    operators: without which they cannot be written.
    constants: which are tried, for a column [N].
    node: the formula, by the column's and the constant.
  """

  operators: tuple[str, ...]
  constants: Callable[[np.ndarray, TwoConstantsConfig], np.ndarray]
  node: Callable[[Node, float], Node]


def _rates(x: np.ndarray, config: TwoConstantsConfig) -> np.ndarray:
  return _of_both_signs(np.geomspace(*config.rates) / np.ptp(x))


def _rates_of_square(x: np.ndarray, config: TwoConstantsConfig) -> np.ndarray:
  return _of_both_signs(np.geomspace(*config.rates) / np.max(x**2))


def _exponents(x: np.ndarray, config: TwoConstantsConfig) -> np.ndarray:
  return _of_both_signs(np.geomspace(*config.exponents)) if np.min(x) > 0 else np.zeros(0)


def _exponents_of_logarithm(x: np.ndarray, config: TwoConstantsConfig) -> np.ndarray:
  return _of_both_signs(np.geomspace(*config.exponents)) if np.min(x) > 1 else np.zeros(0)


def _rates_of_self_powers(x: np.ndarray, config: TwoConstantsConfig) -> np.ndarray:
  return _of_both_signs(np.geomspace(*config.rates) / np.ptp(x * np.log(x))) if np.min(x) > 0 else np.zeros(0)


def _offsets(x: np.ndarray, config: TwoConstantsConfig) -> np.ndarray:
  return np.geomspace(*config.offsets) * np.ptp(x) - np.min(x)


def _offsets_of_both_sides(x: np.ndarray, config: TwoConstantsConfig) -> np.ndarray:
  return np.concatenate([_offsets(x, config), -np.max(x) - np.geomspace(*config.offsets) * np.ptp(x)])


def _of_both_signs(values: np.ndarray) -> np.ndarray:
  return np.concatenate([values, -values])


def _plus(x: Node, constant: float) -> Node:
  return Node("+", (x, number(constant)))


FAMILIES: dict[str, Family] = {
  "exponentials": Family(("exp",), _rates, lambda x, c: Node("exp", (Node("*", (x, number(c))),))),
  "powers": Family(("pow",), _exponents, lambda x, c: power(x, number(c))),
  "logarithms": Family(("ln",), _offsets, lambda x, c: Node("ln", (_plus(x, c),))),
  "hyperbolas": Family(("inv",), _offsets_of_both_sides, lambda x, c: Node("inv", (_plus(x, c),))),
  "peaks": Family(("exp",), _rates_of_square, lambda x, c: Node("exp", (Node("*", (power(x, number(2)), number(c))),))),
  "powers_of_logarithms": Family(
    ("ln", "pow"), _exponents_of_logarithm, lambda x, c: power(Node("ln", (x,)), number(c))),
  "self_powers": Family(
    ("pow",), _rates_of_self_powers, lambda x, c: Node("pow", (x, Node("*", (x, number(c))))))}


@dataclasses.dataclass(frozen=True)
class TwoConstants(Stateless):
  """Formulas of two inner constants, of the only column that varies: powers of sums, then sums of two functions."""

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
    make = (powers_of_sums, sums_of_two)[turn]
    return pair_sums.allowed(make(task.fit_rows, column, task.rule, self.config.two_constants), task, num,
                             self.config.terms)


def powers_of_sums(rows: Rows, column: int, rule: Rule, config: TwoConstantsConfig) -> Iterator[Node]:
  """`(a + b*F)**p`, the nearest of each family in turn."""
  if not (rule.allows_operator("pow") and np.min(rows.y) > 0):
    return
  library = _Library(rows.sample(config.num_rows, seed=0), column, rule, config)
  powers = _of_both_signs(np.geomspace(*config.powers))
  # A power of y counts in each row as far as an error of y shows in it: what is left is then one of y.
  left = np.stack([library.left_of_each(*_raised(library.rows, s)) for s in powers])  # [S, M]
  found = {name: _nearest(left[:, places], config.num_alike) for name, places in library.families.items()}
  for name, (s, i) in in_turn([(name, place) for place in places] for name, places in found.items()):
    function = library.functions[library.families[name][i]]
    factors = library.factors([function], *_raised(library.rows, powers[s]))
    node = None if factors is None else _power_of_sum(
      function, *factors, exponent=1 / powers[s], size=float(np.median(library.rows.y)))
    if node is not None:
      yield node


def sums_of_two(rows: Rows, column: int, rule: Rule, config: TwoConstantsConfig) -> Iterator[Node]:
  """`a + b*F + c*G` for y and functions of y in turn, of each the nearest first, few of each two families."""
  library = _Library(rows.sample(config.num_rows, seed=0), column, rule, config)
  links = [link for link in map(LINKS.__getitem__, config.links)
           if link.is_defined(rows.y) and all(map(rule.allows_operator, link.operators))]
  return in_turn(_sums_for(link, library, config) for link in links)


def _sums_for(link: Link, library: "_Library", config: TwoConstantsConfig) -> Iterator[Node]:
  whole = terms.whole(link, library.rows)
  if whole is None:
    return
  interruption.check()
  left = library.left_of_pairs(*whole)
  families = itertools.combinations_with_replacement(library.families.values(), 2)
  nearest = [(left[one[i], other[j]], one[i], other[j]) for one, other in families
             for i, j in _nearest(left[np.ix_(one, other)], config.num_alike_pairs)]
  for _, i, j in sorted(nearest):
    inner = library.write([library.functions[i], library.functions[j]], *whole)
    if inner is not None:
      yield link.undo(inner)


@np.errstate(all="ignore")
def _power_of_sum(function: Node, factor: float, constant: float, *, exponent: float, size: float) -> Node | None:
  """size*(factor*F + constant)**exponent, its constant 1 or -1; None where a number is not finite."""
  inner, outer = factor / abs(constant), size * abs(constant) ** exponent
  if not np.isfinite([inner, outer]).all():
    return None
  some = Node("+", (Node("*", (function, number(float(inner)))), number(float(np.sign(constant)))))
  return tidy(Node("*", (power(some, number(float(exponent))), number(float(outer)))))


@np.errstate(all="ignore")  # what is not finite is left out
def _raised(rows: Rows, exponent: float) -> tuple[np.ndarray, np.ndarray]:
  """A power of y of size 1 in the middle, and weights by which its errors are those of y [N]."""
  size = np.median(rows.y)
  scaled = rows.y / size
  return scaled**exponent, rows.weights / (exponent * scaled ** (exponent - 1) / size) ** 2


def _nearest(left: np.ndarray, num: int) -> list[tuple[int, int]]:
  """Places of so many least entries [A, B], none beside another one."""
  left = left.copy()
  found: list[tuple[int, int]] = []
  while len(found) < num and left.size and np.isfinite(least := np.min(left)):
    i, j = np.argwhere(left == least)[0].tolist()
    found.append((i, j))
    left[max(i - 2, 0) : i + 3, max(j - 2, 0) : j + 3] = np.inf
  return found


class _Library:
  """Functions of a column at some rows.

  Attributes:
    rows: these; functions: formulas [M]; families: places of each one's functions.
  """

  @np.errstate(all="ignore")  # what is not finite is left out
  def __init__(self, rows: Rows, column: int, rule: Rule, config: TwoConstantsConfig):
    self.rows, self.functions, self.families = rows, [], {}
    values: list[np.ndarray] = []
    x = rows.x[:, column]
    for name in config.families:
      interruption.check()
      family, places = FAMILIES[name], []
      for constant in family.constants(x, config) if all(map(rule.allows_operator, family.operators)) else ():
        node = family.node(variable(column), float(constant))
        at = expression.evaluate(node, rows.x)
        if np.all(np.isfinite(at)) and np.ptp(at) > 0:
          places.append(len(values))
          values.append(at / np.max(np.abs(at)))
          self.functions.append(node)
      if places:
        self.families[name] = places
    self._values = np.array(values).reshape(-1, len(x))

  @np.errstate(all="ignore")
  def left_of_each(self, target: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """What a constant and each function leave of a target's weighted square [M]."""
    goal, columns = self._beside_constant(target, weights)
    return self._usable(goal @ goal - (columns @ goal) ** 2)

  @np.errstate(all="ignore")
  def left_of_pairs(self, target: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """What a constant and every two functions leave [M, M]; infinite for two that are one."""
    goal, columns = self._beside_constant(target, weights)
    along, cosines = columns @ goal, columns @ columns.T
    rest = 1 - cosines**2
    gains = (along[:, None] ** 2 + along**2 - 2 * cosines * along[:, None] * along) / rest
    return self._usable(np.where(rest > INDEPENDENT, goal @ goal - gains, np.inf))

  def _beside_constant(self, target: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The target [N] and the functions [M, N], of length 1, times the weights' root, without the mean."""
    root = np.sqrt(weights)
    unit = root / np.linalg.norm(root)
    goal, columns = root * target, root * self._values
    goal, columns = goal - unit * (unit @ goal), columns - (columns @ unit)[:, None] * unit
    sizes = np.linalg.norm(columns, axis=1, keepdims=True)
    is_own = sizes[:, 0] ** 2 > INDEPENDENT * np.sum((root * self._values) ** 2, axis=1)
    return goal, np.where(is_own[:, None], columns / sizes, np.nan)

  @staticmethod
  def _usable(left: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(left), left, np.inf)

  @np.errstate(all="ignore")
  def factors(self, functions: Sequence[Node], target: np.ndarray, weights: np.ndarray) -> np.ndarray | None:
    """Of them and of a constant, those that fit a target best [K + 1]; None where these are not finite."""
    values = np.stack([expression.evaluate(each, self.rows.x) for each in functions], axis=1)
    sizes = np.max(np.abs(values), axis=0)
    if not (np.all(np.isfinite(target)) and np.all(np.isfinite(weights)) and np.max(weights) > 0):
      return None
    factors = terms.least_squares(values / sizes, target, weights) / np.append(sizes, 1.0)
    return factors if np.all(np.isfinite(factors)) else None

  def write(self, functions: Sequence[Node], target: np.ndarray, weights: np.ndarray) -> Node | None:
    """Their sum and a constant, with these factors."""
    factors = self.factors(functions, target, weights)
    if factors is None:
      return None
    some = [Node("*", (each, number(float(f)))) for each, f in zip(functions, factors[:-1], strict=True)]
    return tidy(chain("+", [*some, number(float(factors[-1]))]))
