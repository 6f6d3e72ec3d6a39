"""Functions of one column with one or two inner constants, on grids, and what sums of few of them leave of a target."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import itertools
from typing import Any, NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import TwoConstantsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, number, power, variable
from symformer_jax.language.rules import Rule
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.curves import spans
from symformer_jax.sources.sums import terms

# Functions of which others and a constant leave a smaller share (squared) are made of these.
INDEPENDENT = 1e-9
# What keeps products of directions regular.
REGULAR = 1e-11


class Family(NamedTuple):
  """Functions of one column that differ in a constant, or in two.

  Attributes:
    operators: without which they cannot be written.
    constants: which are tried, for a column [N]: [M], or [M, 2].
    node: the formula, by the column's and the constants.
  """

  operators: tuple[str, ...]
  constants: Callable[[np.ndarray, TwoConstantsConfig], np.ndarray]
  node: Callable[..., Node]


def _rates(x: np.ndarray, config: TwoConstantsConfig) -> np.ndarray:
  return of_both_signs(np.geomspace(*config.rates) / np.ptp(x))


def _rates_of_square(x: np.ndarray, config: TwoConstantsConfig) -> np.ndarray:
  return of_both_signs(np.geomspace(*config.rates) / np.max(x**2))


def _exponents(x: np.ndarray, config: TwoConstantsConfig) -> np.ndarray:
  return of_both_signs(np.geomspace(*config.exponents)) if np.min(x) > 0 else np.zeros(0)


def _exponents_of_logarithm(x: np.ndarray, config: TwoConstantsConfig) -> np.ndarray:
  return _exponents(np.log(x), config) if np.min(x) > 0 else np.zeros(0)


def _exponents_of_negative_logarithm(x: np.ndarray, config: TwoConstantsConfig) -> np.ndarray:
  return _exponents(-np.log(x), config) if np.min(x) > 0 else np.zeros(0)


def _sign_of_logarithm(x: np.ndarray, config: TwoConstantsConfig) -> np.ndarray:
  """1 where the logarithm is above 0 in all rows, -1 where it is below, neither else."""
  return np.array([1.0 if np.min(x) > 1 else -1.0] if np.min(x) > 1 or 0 < np.min(x) <= np.max(x) < 1 else [])


def _signs_of_probabilities(x: np.ndarray, config: TwoConstantsConfig) -> np.ndarray:
  """1 where all rows may be probabilities, -1 where their inverses may, return periods say, neither else."""
  return -_sign_of_logarithm(x, config)


def _rates_of_inverse(x: np.ndarray, config: TwoConstantsConfig) -> np.ndarray:
  return _rates(1 / x, config) if np.min(x) > 0 else np.zeros(0)


def _rates_of_self_powers(x: np.ndarray, config: TwoConstantsConfig) -> np.ndarray:
  return of_both_signs(np.geomspace(*config.rates) / np.ptp(x * np.log(x))) if np.min(x) > 0 else np.zeros(0)


def _offsets(x: np.ndarray, config: TwoConstantsConfig) -> np.ndarray:
  """Of x + c, 0 among them where x is above 0."""
  natural = [0.0] if np.min(x) > 0 else []
  return np.append(np.geomspace(*config.offsets) * np.ptp(x) - np.min(x), natural)


def _ends(x: np.ndarray, config: TwoConstantsConfig) -> np.ndarray:
  """Of c - x, 1 among them where x is below 1."""
  natural = [1.0] if np.max(x) < 1 else []
  return np.append(np.geomspace(*config.offsets) * np.ptp(x) + np.max(x), natural)


def _offsets_of_both_sides(x: np.ndarray, config: TwoConstantsConfig) -> np.ndarray:
  return np.concatenate([_offsets(x, config), -_ends(x, config)])


def _places_and_widths(x: np.ndarray, config: TwoConstantsConfig) -> np.ndarray:
  size = np.ptp(x)
  return _grid(np.min(x) + size * np.linspace(*config.places), size * np.geomspace(*config.widths))


def _scales_and_exponents(x: np.ndarray, config: TwoConstantsConfig) -> np.ndarray:
  return _grid(_scales(x, config), np.geomspace(*config.steepness)) if np.min(x) > 0 else np.zeros((0, 2))


def _scales_and_widths(x: np.ndarray, config: TwoConstantsConfig) -> np.ndarray:
  """Of log(x/c)/s."""
  return _grid(_scales(x, config), np.geomspace(*config.log_widths)) if np.min(x) > 0 else np.zeros((0, 2))


def _scales(x: np.ndarray, config: TwoConstantsConfig) -> np.ndarray:
  """Between the rows' ends by ratios, and beyond; the least of many rows may be next to 0."""
  low, high = np.quantile(x, config.least_scale), np.max(x)
  return np.geomspace(low / config.beyond, high * config.beyond, config.num_scales)


def _grid(first: np.ndarray, second: np.ndarray) -> np.ndarray:
  return np.stack(np.meshgrid(first, second, indexing="ij"), axis=-1).reshape(-1, 2)


def of_both_signs(values: np.ndarray) -> np.ndarray:
  return np.concatenate([values, -values])


def _plus(x: Node, constant: float) -> Node:
  return Node("+", (x, number(constant)))


def _times(x: Node, factor: float) -> Node:
  return Node("*", (x, number(factor)))


def _inverse_of_sum(node: Node) -> Node:
  return Node("inv", (_plus(node, 1.0),))


def _apart(x: Node, place: float, width: float) -> Node:
  """(x - place)/width."""
  return _times(_plus(x, -place), 1 / width)


def _apart_in_ratios(x: Node, place: float, width: float) -> Node:
  """log(x/place)/width."""
  return _times(Node("ln", (_times(x, 1 / place),)), 1 / width)


def _bell(node: Node) -> Node:
  """exp(-node**2)."""
  return Node("exp", (_times(power(node, number(2)), -1.0),))


FAMILIES: dict[str, Family] = {
  "exponentials": Family(("exp",), _rates, lambda x, c: Node("exp", (Node("*", (x, number(c))),))),
  "powers": Family(("pow",), _exponents, lambda x, c: power(x, number(c))),
  "logarithms": Family(("ln",), _offsets, lambda x, c: Node("ln", (_plus(x, c),))),
  "hyperbolas": Family(("inv",), _offsets_of_both_sides, lambda x, c: Node("inv", (_plus(x, c),))),
  "peaks": Family(("exp",), _rates_of_square, lambda x, c: Node("exp", (Node("*", (power(x, number(2)), number(c))),))),
  "powers_of_logarithms": Family(
    ("ln", "pow"), _exponents_of_logarithm, lambda x, c: power(Node("ln", (x,)), number(c))),
  "powers_of_negative_logarithms": Family(("ln", "pow"), _exponents_of_negative_logarithm, lambda x, c: power(
    _times(Node("ln", (x,)), -1.0), number(c))),
  "iterated_logarithms": Family(("ln",), _sign_of_logarithm, lambda x, c: Node("ln", (_times(Node("ln", (x,)), c),))),
  "complementary_logarithms": Family(("ln", "inv"), _signs_of_probabilities, lambda x, c: Node("ln", (_times(
    Node("ln", (_plus(_times(power(x, number(c)), -1.0), 1.0),)), -1.0),))),
  "self_powers": Family(
    ("pow",), _rates_of_self_powers, lambda x, c: Node("pow", (x, Node("*", (x, number(c)))))),
  "exponentials_of_inverse": Family(
    ("exp", "inv"), _rates_of_inverse, lambda x, c: Node("exp", (_times(Node("inv", (x,)), c),))),
  "complements": Family(("ln",), _ends, lambda x, c: Node("ln", (_plus(_times(x, -1.0), c),)))}

# Of two inner constants: a step, a peak or a decay each.
SHAPES: dict[str, Family] = {
  "occupancies": Family(("inv", "pow"), _scales_and_exponents, lambda x, c, n: _inverse_of_sum(
    power(_times(x, 1 / c), number(n)))),
  "logistics": Family(("inv", "exp"), _places_and_widths, lambda x, c, s: _inverse_of_sum(
    Node("exp", (_apart(x, c, s),)))),
  "bells": Family(("exp",), _places_and_widths, lambda x, c, s: _bell(_apart(x, c, s))),
  "resonances": Family(("inv",), _places_and_widths, lambda x, c, s: _inverse_of_sum(
    power(_apart(x, c, s), number(2)))),
  "bells_of_logarithm": Family(("exp", "ln"), _scales_and_widths, lambda x, c, s: _bell(_apart_in_ratios(x, c, s))),
  "stretched_exponentials": Family(("exp", "pow"), _scales_and_exponents, lambda x, c, n: Node("exp", (_times(
    power(_times(x, 1 / c), number(n)), -1.0),))),
  "gammas": Family(("exp", "pow"), _scales_and_exponents, lambda x, c, n: Node("*", (
    power(x, number(n)), Node("exp", (_times(x, -1 / c),)))))}


class Argument(NamedTuple):
  """What a function with an inner constant may be one of, in the place of a column.

  Attributes:
    operators: without which it cannot be written; node: of the column's.
    is_defined: of the least and the largest value of the column.
  """

  operators: tuple[str, ...]
  node: Callable[[Node], Node]
  is_defined: Callable[[float, float], bool]


def _rates_of_size(x: np.ndarray, config: TwoConstantsConfig) -> np.ndarray:
  return np.geomspace(*config.rates) / np.max(np.abs(x))


def _with_opposite_exponential(node: Node, sign: float) -> Node:
  """exp(node) + sign*exp(-node): twice a hyperbolic cosine or sine."""
  return Node("+", (Node("exp", (node,)), _times(Node("exp", (_times(node, -1.0),)), sign)))


ARGUMENTS: dict[str, Argument] = {
  "columns": Argument((), lambda x: x, lambda least, largest: True),
  "squares": Argument(("pow2",), lambda x: power(x, number(2)), lambda least, largest: True),
  "roots": Argument(("sqrt",), lambda x: Node("sqrt", (x,)), lambda least, largest: least >= 0),
  "cube_roots": Argument(("pow",), lambda x: power(x, number(1 / 3)), lambda least, largest: least >= 0),
  "inverses": Argument(("inv",), lambda x: Node("inv", (x,)), lambda least, largest: least > 0 or largest < 0),
  "legs": Argument(("sqrt", "pow2"), lambda x: Node("sqrt", (_plus(power(x, number(2)), -1.0),)),
                   lambda least, largest: least >= 1)}


@dataclasses.dataclass(frozen=True)
class Kind:
  """Functions of an argument with one constant each.

  Attributes:
    family: their grid; values: of an argument [..., N] and constants [..., 1].
    end: what bounds the constant: 0 ("none"), the opposite of the least value ("low"), the largest ("high").
  """

  family: Family
  values: Callable[[np.ndarray, np.ndarray], np.ndarray]
  end: str = "none"


KINDS: dict[str, Kind] = {
  "exponentials": Kind(FAMILIES["exponentials"], lambda v, c: np.exp(c * v)),
  "logarithms": Kind(FAMILIES["logarithms"], lambda v, c: np.log(v + c), "low"),
  "complements": Kind(FAMILIES["complements"], lambda v, c: np.log(c - v), "high"),
  "hyperbolas": Kind(FAMILIES["hyperbolas"], lambda v, c: 1 / (v + c), "low"),
  "shifted_roots": Kind(Family(("sqrt",), _offsets, lambda x, c: Node("sqrt", (_plus(x, c),))),
                        lambda v, c: np.sqrt(v + c), "low"),
  "arctangents": Kind(Family(("atan",), _rates_of_size, lambda x, c: Node("atan", (_times(x, c),))),
                      lambda v, c: np.arctan(c * v)),
  "steps": Kind(Family(("inv", "exp"), _rates, lambda x, c: _inverse_of_sum(Node("exp", (_times(x, c),)))),
                lambda v, c: 1 / (1 + np.exp(c * v))),
  "logarithms_of_sinh": Kind(Family(("ln", "exp"), _rates_of_size, lambda x, c: Node("ln", (
    _with_opposite_exponential(_times(x, c), -1.0),))), lambda v, c: np.log(np.exp(c * v) - np.exp(-c * v))),
  "logarithms_of_cosh": Kind(Family(("ln", "exp"), _rates_of_size, lambda x, c: Node("ln", (
    _with_opposite_exponential(_times(x, c), 1.0),))), lambda v, c: np.log(np.exp(c * v) + np.exp(-c * v)))}


def of_arguments(kinds: Sequence[str], arguments: Sequence[str]) -> dict[tuple[str, str], Family]:
  """Functions of each kind of each argument, by the names of both."""
  return {(kind, argument): _of_argument(KINDS[kind].family, ARGUMENTS[argument])
          for argument in arguments for kind in kinds}


def _of_argument(family: Family, argument: Argument) -> Family:
  def constants(x: np.ndarray, config: TwoConstantsConfig) -> np.ndarray:
    if not argument.is_defined(float(np.min(x)), float(np.max(x))):
      return np.zeros(0)
    return family.constants(expression.evaluate(argument.node(variable(0)), x[:, None]), config)

  def node(x: Node, c: float) -> Node:
    return family.node(argument.node(x), c)

  return Family((*family.operators, *argument.operators), constants, node)


# Places of functions of which one constant is the next larger one, or the one before where there is none; and those the
# other way.
_Neighbours = tuple[tuple[int, ...], tuple[int, ...]]


def _neighbours(constants: np.ndarray, first: int) -> list[_Neighbours]:
  """Of functions that differ in constants [M, K], the first of which has the place `first`."""
  nexts: list[list[int]] = [[] for _ in constants]
  befores: list[list[int]] = [[] for _ in constants]
  for k in range(constants.shape[1]):
    others = np.delete(constants, k, axis=1)
    order = np.lexsort((constants[:, k], *others.T)).tolist()
    for before, after in itertools.pairwise(order):
      if np.array_equal(others[before], others[after]):
        nexts[before].append(first + after)
        befores[after].append(first + before)
  return [(tuple(after or before), tuple(before or after)) for after, before in zip(nexts, befores, strict=True)]


class Functions:
  """Functions of a column at some rows, of families that the rule allows.

  Attributes:
    rows: these; nodes: formulas [M]; constants: of each; sizes: the largest of each [M]; families: places
      of each one's functions; neighbours: by function those whose constants are next to its own.
  """

  @np.errstate(all="ignore")  # what is not finite is left out
  def __init__(self, rows: Rows, column: int, rule: Rule, families: Mapping[Any, Family], config: TwoConstantsConfig):
    self.rows, self.nodes, self.families, self.neighbours = rows, [], {}, list[_Neighbours]()
    self.constants: list[np.ndarray] = []
    values: list[np.ndarray] = []
    x = rows.x[:, column]
    for name, family in families.items():
      interruption.check()
      places, kept = [], []
      for constants in family.constants(x, config) if all(map(rule.allows_operator, family.operators)) else ():
        node = family.node(variable(column), *np.atleast_1d(constants).tolist())
        at = expression.evaluate(node, rows.x)
        if np.all(np.isfinite(at)) and np.ptp(at) > 0:
          places.append(len(values))
          kept.append(np.atleast_1d(constants))
          values.append(at)
          self.nodes.append(node)
      if places:
        self.families[name] = places
        self.neighbours += _neighbours(np.array(kept), places[0])
        self.constants += kept
    every = np.array(values).reshape(-1, len(x))
    self.sizes = np.max(np.abs(every), axis=1, initial=0.0)
    self._values = every / self.sizes[:, None]

  @property
  def all_values(self) -> np.ndarray:
    """Of each function at the rows, the largest of them 1 [M, N]."""
    return self._values

  def values(self, place: int) -> np.ndarray:
    """Of one function at the rows [N]."""
    return self._values[place] * self.sizes[place]

  @np.errstate(all="ignore")
  def left_of_each(self, target: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """What a constant and each function leave of a target's weighted square [M]."""
    goal, columns = self._beside_constant(target, weights)
    return self._usable(goal @ goal - (columns @ goal) ** 2)

  @np.errstate(all="ignore")
  def left_of_pairs(
    self, target: np.ndarray, weights: np.ndarray, beside: np.ndarray | None = None
  ) -> np.ndarray:
    """What a constant, a further function `beside` [N] and every two functions leave [M, M]; infinite for two that are
    one.
    """
    goal, columns = self._beside_constant(target, weights)
    if beside is not None:
      goal, columns = self._beside(goal, columns, beside, weights)
    along, cosines = columns @ goal, columns @ columns.T
    rest = 1 - cosines**2
    gains = (along[:, None] ** 2 + along**2 - 2 * cosines * along[:, None] * along) / rest
    return self._usable(np.where(rest > INDEPENDENT, goal @ goal - gains, np.inf))

  @np.errstate(all="ignore")
  def left_around(
    self, pairs: np.ndarray, target: np.ndarray, weights: np.ndarray, beside: np.ndarray | None = None
  ) -> np.ndarray:
    """What is left [P] of pairs of functions [P, 2] with constants between theirs and the next ones, to first order:
    functions and the ones next to them together.
    """
    goal, columns = self._beside_constant(target, weights)
    if beside is not None:
      goal, columns = self._beside(goal, columns, beside, weights)
    bases = self._with_neighbours(columns)  # [2, M, K, N]
    first, second = pairs.T
    num, along = bases.shape[2], bases @ goal
    left = np.full(len(pairs), np.inf)
    within = np.eye(2 * num) * (1 + REGULAR)
    for one, other in itertools.product((0, 1), repeat=2):
      across = np.einsum("pkn,pln->pkl", bases[one, first], bases[other, second])
      products = np.tile(within, (len(pairs), 1, 1))
      products[:, :num, num:], products[:, num:, :num] = across, across.transpose(0, 2, 1)
      with_goal = np.concatenate([along[one, first], along[other, second]], axis=1)
      gains = np.einsum("pk,pk->p", with_goal, np.linalg.solve(products, with_goal[:, :, None])[:, :, 0])
      left = np.minimum(left, goal @ goal - gains)
    return left

  def _with_neighbours(self, columns: np.ndarray) -> np.ndarray:
    """Of each function, on either side, orthonormal directions [2, M, K, N]: its own, and those to its neighbours;
    zeros where there are fewer.
    """
    num = 1 + max((len(some) for sides in self.neighbours for some in sides), default=0)
    bases = np.zeros((2, len(columns), num, columns.shape[1]))
    bases[:, :, 0] = columns
    for i, sides in enumerate(self.neighbours):
      for side, places in enumerate(sides):
        bases[side, i, 1 : 1 + len(places)] = columns[list(places)]
    return np.stack([spans.orthonormal(some) for some in bases])

  def _beside(
    self, goal: np.ndarray, columns: np.ndarray, beside: np.ndarray, weights: np.ndarray
  ) -> tuple[np.ndarray, np.ndarray]:
    """The same without what is along a further function [N]."""
    root = np.sqrt(weights)
    unit = root * (beside - np.average(beside, weights=weights))
    unit = unit / np.linalg.norm(unit)
    goal, columns = goal - unit * (unit @ goal), columns - (columns @ unit)[:, None] * unit
    sizes = np.linalg.norm(columns, axis=1, keepdims=True)
    return goal, np.where(sizes**2 > INDEPENDENT, columns / sizes, np.nan)

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
  def factors(self, places: Sequence[int], target: np.ndarray, weights: np.ndarray) -> np.ndarray | None:
    """Of these functions and of a constant, those that fit a target best [K + 1]; None where they are not finite."""
    if not (np.all(np.isfinite(target)) and np.all(np.isfinite(weights)) and np.max(weights) > 0):
      return None
    factors = terms.least_squares(self._values[places].T, target, weights) / np.append(self.sizes[places], 1.0)
    return factors if np.all(np.isfinite(factors)) else None

  def write(self, places: Sequence[int], target: np.ndarray, weights: np.ndarray) -> Node | None:
    """The sum of these functions and a constant, with their factors."""
    factors = self.factors(places, target, weights)
    if factors is None:
      return None
    some = [Node("*", (self.nodes[i], number(float(f)))) for i, f in zip(places, factors[:-1], strict=True)]
    return tidy(chain("+", [*some, number(float(factors[-1]))]))


def nearest(left: np.ndarray, num: int) -> list[tuple[int, int]]:
  """Places of so many least entries [A, B], none beside another one."""
  left = left.copy()
  found: list[tuple[int, int]] = []
  while len(found) < num and left.size and np.isfinite(np.min(left)):
    i, j = divmod(int(np.argmin(left)), left.shape[1])
    found.append((i, j))
    left[max(i - 2, 0) : i + 3, max(j - 2, 0) : j + 3] = np.inf
  return found
