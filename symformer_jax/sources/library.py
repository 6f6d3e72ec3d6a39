"""Small functions of the variables, their inner constants on a grid: parts that need no model.

Laws are often sums of few terms such as `x**2*exp(-0.3*x)` or `sin(3*x - 5*t)`. A model may miss one for an inner
constant unlike those it was trained on; a grid of them is exhausted in milliseconds, because a sum is linear in its
terms, and a constant near enough is fitted later. As the feature spaces of SISSO (Ouyang et al., 2018) and FFX
(McConaghy, 2011), with waves, peaks and steps beside powers and functions.
"""

from collections.abc import Callable, Iterator, Sequence
import dataclasses
import itertools
import math

import numpy as np

from symformer_jax.engine.rows import MANY_VARIABLES
from symformer_jax.language import expression, operators
from symformer_jax.language.expression import Node, chain, number, power, variable
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.monomials import PLAIN, WIDE, Monomial, Values, monomials, to_node, up_to

# Exponents of one variable, and of each of two in a product.
POWERS = (-6, -5, -4, -3, -2.5, -2, -1.5, -1, -0.5, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8)
PAIRED_POWERS = (-3, -2, -1.5, -1, -0.5, 0.5, 1, 1.5, 2, 3)
# Arguments of functions, as powers of one variable; the first has the finest grid.
ARGUMENT_POWERS = (1, 2, -1, 0.5, 3)
# Quarter waves over the data, at most: of a variable, of one times a power, of other arguments, of each of two
# variables, under a decay.
NUM_WAVES, NUM_MULTIPLIED_WAVES, NUM_OTHER_WAVES, NUM_PLANE_WAVES, NUM_DECAYING_WAVES = 400, 40, 100, 20, 100
# Integer factors are what most formulas have, and poles are met by no grid but that of the right number.
INTEGERS = (1.0, 2.0, 3.0, 4.0, 5.0)
# Exponents of exponentials over the data's range, and decays that go with waves.
RATES = np.geomspace(0.1, 50, 24)
DECAYS = np.geomspace(0.3, 20, 7)
# Distances of poles and zeros from the data, in ranges; places of peaks and steps within; their widths.
DISTANCES = np.geomspace(0.003, 5, 16)
PLACES = np.linspace(0.0, 1.0, 22)[1:-1]
WIDTHS = np.geomspace(0.02, 1.0, 8)
# What a term may be multiplied by, as powers of a variable.
OUTER_POWERS = (1, -1, 2, -2, 0.5, 3)
# Of these, what functions of a power are multiplied by.
NUM_FEW_FACTORS = 2
# With more variables than these, functions of one or two alone and only the usual inner constants.
MAX_VARIABLES = 3
# Monomials of two variables, of each larger size, and those that functions are multiplied by, at most of a size; their
# exponents, the first set that is small enough.
MAX_PAIRS, MAX_MONOMIALS, MAX_MULTIPLIERS = 2000, 4000, 100
MANY_POWERS = ((-3, -2, -1, -0.5, 0.5, 1, 2, 3), WIDE, PLAIN, (1,))
MULTIPLIER_POWERS = ((-1, -0.5, 0.5, 1, 2), (-1, 0.5, 1), PLAIN, (1,))
MAX_MONOMIAL_SIZE = 6
# Monomials that waves of all lengths are taken of, and how many in all.
MAX_ANGLES, MAX_MANY_WAVES = 40, 2500
# Functions of one variable and, with at most so many, of products, quotients and differences of two; inner factors.
MAX_PAIRED_ARGUMENTS = 5
MANY_FUNCTIONS = (("sin", (1, 2, 0.5)), ("cos", (1, 2, 0.5)), ("exp", (1, -1)), ("ln", (1,)))
# Beyond these a column is of no use in single precision.
SMALLEST, LARGEST = 1e-30, 1e30
# A column that varies by a smaller share of its largest value is constant.
MIN_VARIATION = 1e-5
# Tiers: searched greedily; few enough that all pairs are tried; of which longer sums are common.
ANY, BASIC, MONOMIAL = range(3)


@dataclasses.dataclass(frozen=True)
class Family:
  """Functions that differ in their inner constants.

  Attributes:
    values: [N, G]; NaN or infinite where undefined.
    build: index of a column -> its formula.
    tier: how thoroughly sums of such atoms are searched.
    is_mixed: whether the members are different functions after all.
  """

  values: np.ndarray
  build: Callable[[int], Node]
  tier: int = ANY
  is_mixed: bool = False


class Atoms:
  """Values [N, P] of all atoms relative to the largest of each, float32 and finite, and their formulas.

  Args:
    x: points [N, D].
    columns: of x; these variables are used.
    allows: operators by name; None for all.
  Attributes:
    columns: [N, P]; groups: [P], the family of each; tiers: [P].
  """

  def __init__(self, x: np.ndarray, columns: Sequence[int], allows: Callable[[str], bool] | None = None):
    self._made: list[tuple[Callable[[int], Node], np.ndarray, np.ndarray]] = []
    values, tiers, groups = [np.zeros((len(x), 0), np.float32)], [np.zeros(0, int)], [np.zeros(0, int)]
    num_groups = 0
    with np.errstate(all="ignore"):  # what is undefined is left out
      for family in _families(x, [variable(i) for i in columns]):
        largest = np.max(np.abs(family.values), axis=0)
        usable = np.isfinite(largest) & (largest > SMALLEST) & (largest < LARGEST)
        relative = family.values[:, usable] / largest[usable]
        is_kept = np.ptp(relative, axis=0) > MIN_VARIATION
        indices = np.flatnonzero(usable)
        if allows is not None:
          is_kept &= np.array([_is_allowed(family.build(g), allows) for g in indices], bool)
        indices = indices[is_kept]
        values.append(relative[:, is_kept].astype(np.float32))
        tiers.append(np.full(len(indices), family.tier))
        groups.append(num_groups + (np.arange(len(indices)) if family.is_mixed else np.zeros(len(indices), int)))
        num_groups += max(len(indices), 1)
        self._made.append((family.build, indices, largest[indices]))
    self.columns, self.tiers, self.groups = (np.concatenate(parts, axis=-1) for parts in (values, tiers, groups))
    self._ends = np.cumsum([len(indices) for _, indices, _ in self._made])

  def node(self, index: int) -> Node:
    """The formula of a column."""
    build, indices, _, at = self._find(index)
    return tidy(build(int(indices[at])))

  def scale(self, index: int) -> float:
    """The largest value of that formula, by which its column is divided."""
    _, _, largest, at = self._find(index)
    return float(largest[at])

  def _find(self, index: int) -> tuple[Callable[[int], Node], np.ndarray, np.ndarray, int]:
    place = int(np.searchsorted(self._ends, index, side="right"))
    build, indices, largest = self._made[place]
    return build, indices, largest, index - (int(self._ends[place - 1]) if place else 0)


def _is_allowed(node: Node, allows: Callable[[str], bool]) -> bool:
  return all(allows(part.token) for part in expression.walk(tidy(node)) if part.args)


# --- families ------------------------------------------------------------------------------------------------------


def _families(x: np.ndarray, variables: Sequence[Node]) -> Iterator[Family]:
  """Every atom: monomials, and functions of arguments times monomials."""
  columns = [v.value for v in variables]
  yield _monomials(x, monomials(columns, 1, POWERS), MONOMIAL)
  if len(variables) <= MAX_VARIABLES:
    yield _monomials(x, monomials(columns, 2, PAIRED_POWERS), MONOMIAL)
  if len(variables) >= MANY_VARIABLES:
    yield from _of_many(x, columns)
  if len(variables) > MAX_VARIABLES:
    return
  factors = [power(v, number(p)) for v in variables for p in OUTER_POWERS]
  for argument in _arguments(variables):
    is_variable = argument in variables
    some = factors if is_variable else factors[:NUM_FEW_FACTORS] if len(variables) == 1 else []
    for family in _functions(x, argument):
      yield dataclasses.replace(family, tier=BASIC if is_variable else ANY)
      for factor in some:
        yield _times(factor, family, x)
    yield from _waves(x, argument, NUM_WAVES if is_variable else NUM_OTHER_WAVES)
    for factor in some:
      for family in _waves(x, argument, NUM_MULTIPLIED_WAVES if is_variable else NUM_OTHER_WAVES):
        yield _times(factor, family, x)
  for v in variables:
    yield from _decaying_waves(x, v)
    yield from _peaks_and_steps(x, v)
  yield from _products(x, variables)
  for v, w in itertools.combinations(variables, 2):
    yield from _plane_waves(x, v, w)


def _arguments(variables: Sequence[Node]) -> list[Node]:
  """What functions are taken of: powers of a variable, sums, products and quotients of two."""
  arguments = [power(v, number(p)) for v in variables for p in ARGUMENT_POWERS]
  for v, w in itertools.combinations(variables, 2):
    squares = power(v, number(2)), power(w, number(2))
    inverses = Node("inv", (v,)), Node("inv", (w,))
    arguments += [
      Node("+", (v, w)), Node("+", (v, Node("neg", (w,)))), Node("*", (v, w)), Node("*", (v, inverses[1])),
      Node("*", (w, inverses[0])), Node("*", (squares[0], inverses[1])), Node("*", (squares[1], inverses[0])),
      Node("+", squares)]
  return arguments


def _functions(x: np.ndarray, argument: Node) -> Iterator[Family]:
  u = expression.evaluate(argument, x)
  if np.isfinite(u).all() and np.ptp(u) > 0:
    yield from _functions_of(argument, u)


def _functions_of(argument: Node, u: np.ndarray) -> Iterator[Family]:
  """Exponentials, logarithms, poles, roots, arctangents and tangents of an argument."""
  low, high, spread = u.min(), u.max(), np.ptp(u)
  rates = np.concatenate([[1.0, -1.0], RATES / spread, -RATES / spread])
  yield _grid("exp", _scaled(argument), rates, u)
  for sign in (1.0, -1.0):  # 1/(exp(c*u) + 1), 1/(exp(c*u) - 1)
    yield _bent("inv", lambda c, sign=sign: Node("+", (Node("exp", (_scaled(argument)(c),)), number(sign))), rates,
                1 / (np.exp(rates * u[:, None]) + sign))
  yield _grid("atan", _scaled(argument), np.concatenate([INTEGERS, RATES / np.max(np.abs(u))]), u)
  for token in ("sin", "cos", "tan"):
    yield _grid(token, _scaled(argument), np.array(INTEGERS), u)
  around = np.concatenate([[0.0, 1.0, -1.0], spread * DISTANCES - low, -spread * DISTANCES - high])
  yield _grid("ln", _shifted(argument), around, u, is_sum=True)
  yield _grid("sqrt", _shifted(argument), around, u, is_sum=True)
  yield _grid("inv", _shifted(argument), np.concatenate([around, -(low + spread * PLACES)]), u, is_sum=True)
  one = np.ones(1)
  for token in ("ln", "sin", "cos", "tan"):
    inner = operators.BY_NAME[token].numpy_fn(u)[:, None]
    for outer in ("inv", "pow2"):
      values = operators.BY_NAME[outer].numpy_fn(inner)
      yield _bent(outer, lambda c, token=token: Node(token, (argument,)), one, values)


def _waves(x: np.ndarray, argument: Node, num_waves: int) -> Iterator[Family]:
  u = expression.evaluate(argument, x)
  if np.isfinite(u).all() and np.ptp(u) > 0:
    rates = np.arange(1, num_waves + 1) * _quarter_wave(u)
    for token in ("sin", "cos"):
      yield _grid(token, _scaled(argument), rates, u)


def _decaying_waves(x: np.ndarray, v: Node) -> Iterator[Family]:
  u = expression.evaluate(v, x)
  rates = np.arange(1, NUM_DECAYING_WAVES + 1) * _quarter_wave(u)
  for decay in DECAYS / np.ptp(u):
    envelope = Node("exp", (_scaled(v)(-decay),))
    for token in ("sin", "cos"):
      wave = _grid(token, _scaled(v), rates, u)
      yield Family(wave.values * np.exp(-decay * u)[:, None],
                   lambda g, wave=wave, envelope=envelope: Node("*", (envelope, wave.build(g))))


def _products(x: np.ndarray, variables: Sequence[Node]) -> Iterator[Family]:
  """Products of two functions without inner constants, such as sin(v**2)*cos(w)."""
  powers = [power(v, number(p)) for v in variables for p in (1, 2, 3)]
  twice = [Node("*", (v, number(2))) for v in variables]
  sums = [node for pair in itertools.combinations(variables, 2) for node in (Node("+", pair), Node("*", pair))]
  arguments = [*powers, *twice, *sums]
  nodes = [Node(token, (argument,)) for argument in arguments for token in ("sin", "cos", "exp", "ln", "atan", "tan")]
  nodes += [Node("exp", (Node("neg", (argument,)),)) for argument in arguments]
  values = np.stack([expression.evaluate(node, x) for node in nodes], axis=1)
  for i, node in enumerate(nodes[:-1]):
    # Two exponentials are one.
    others = [j for j in range(i + 1, len(nodes)) if not node.token == nodes[j].token == "exp"]
    yield Family(values[:, [i]] * values[:, others],
                 lambda g, node=node, others=others: Node("*", (node, nodes[others[g]])), is_mixed=True)


def _plane_waves(x: np.ndarray, v: Node, w: Node) -> Iterator[Family]:
  """sin and cos of a*v + b*w."""
  u = [expression.evaluate(each, x) for each in (v, w)]
  steps = [_quarter_wave(each) for each in u]
  counts = np.arange(1, NUM_PLANE_WAVES + 1)
  a, b = (grid.ravel() for grid in np.meshgrid(counts * steps[0], np.concatenate([counts, -counts]) * steps[1]))
  phases = a * u[0][:, None] + b * u[1][:, None]
  for token in ("sin", "cos"):
    yield _bent(token, lambda i: Node("+", (_scaled(v)(a[i]), _scaled(w)(b[i]))), np.arange(len(a)),
                operators.BY_NAME[token].numpy_fn(phases))


def _peaks_and_steps(x: np.ndarray, v: Node) -> Iterator[Family]:
  """exp(-((v - m)/s)**2), 1/((v - m)**2 + s**2), 1/(1 + exp((v - m)/s))."""
  u = expression.evaluate(v, x)
  places, widths = (grid.ravel() for grid in np.meshgrid(u.min() + np.ptp(u) * PLACES, np.ptp(u) * WIDTHS))
  away = (u[:, None] - places) / widths

  def square(g: int) -> Node:
    return power(Node("+", (v, number(-places[g]))), number(2))

  def over_width(node: Node, g: int, exponent: int) -> Node:
    return Node("*", (node, number(widths[g] ** exponent)))

  yield Family(np.exp(-(away**2)), lambda g: Node("exp", (over_width(Node("neg", (square(g),)), g, -2),)))
  yield Family(1 / (widths**2 * (away**2 + 1)),
               lambda g: Node("inv", (Node("+", (square(g), number(widths[g] ** 2))),)))
  yield Family(1 / (1 + np.exp(away)), lambda g: Node("inv", (Node("+", (
    Node("exp", (over_width(Node("+", (v, number(-places[g]))), g, -1),)), number(1))),)))


def _of_many(x: np.ndarray, columns: Sequence[int]) -> Iterator[Family]:
  """Monomials of several variables, and functions of one or two times such."""
  if len(columns) > MAX_VARIABLES:  # with fewer they are there already
    yield _monomials(
      x, [m for m in up_to(columns, 2, at_most=MAX_PAIRS, exponents=MANY_POWERS) if len(m) == 2], MONOMIAL)
  if math.comb(len(columns), 2) <= MAX_PAIRS:
    yield _squares_of_differences(x, columns)
  longer = up_to(columns, MAX_MONOMIAL_SIZE, at_most=MAX_MONOMIALS)
  yield _monomials(x, [m for m in longer if len(m) > 2], BASIC)
  few = [(), *up_to(columns, 3, at_most=MAX_MULTIPLIERS, exponents=MULTIPLIER_POWERS)]
  multipliers = Values(x)(few)
  pairs = monomials(columns, 2, (-1, 1)) if len(columns) <= MAX_PAIRED_ARGUMENTS else []
  arguments = [variable(c) for c in columns] + [to_node(m) for m in pairs if m[0][1] > 0]
  arguments += [Node("+", (variable(v), Node("neg", (variable(w),)))) for (v, _), (w, _) in pairs]
  for argument in dict.fromkeys(arguments):
    u = expression.evaluate(argument, x)
    for token, factors in MANY_FUNCTIONS:
      for factor in factors:
        values = operators.BY_NAME[token].numpy_fn(factor * u)
        node = tidy(Node(token, (_scaled(argument)(factor),)))
        yield Family(multipliers * values[:, None],
                     lambda g, node=node: chain("*", [to_node(few[g]), node]) if few[g] else node, BASIC, is_mixed=True)
  angles = up_to(columns, 3, at_most=MAX_ANGLES, exponents=(PLAIN,))
  for angle in angles:
    yield from _waves(x, to_node(angle), MAX_MANY_WAVES // len(angles))


def _squares_of_differences(x: np.ndarray, columns: Sequence[int]) -> Family:
  nodes = [power(Node("+", (variable(v), Node("neg", (variable(w),)))), number(2))
           for v, w in itertools.combinations(columns, 2)]
  return Family(np.stack([expression.evaluate(node, x) for node in nodes], axis=1), lambda g: nodes[g], MONOMIAL,
                is_mixed=True)


def _monomials(x: np.ndarray, some: Sequence[Monomial], tier: int) -> Family:
  return Family(Values(x)(some), lambda g: to_node(some[g]), tier, is_mixed=True)


def _times(factor: Node, family: Family, x: np.ndarray) -> Family:
  return Family(family.values * expression.evaluate(factor, x)[:, None],
                lambda g: Node("*", (factor, family.build(g))))


def _grid(
  token: str, inner: Callable[[float], Node], numbers: np.ndarray, u: np.ndarray, *, is_sum: bool = False
) -> Family:
  """token(c*u), or token(u + c), for each number c."""
  at = u[:, None] + numbers if is_sum else u[:, None] * numbers
  return _bent(token, inner, numbers, operators.BY_NAME[token].numpy_fn(at))


def _bent(token: str, inner: Callable[[float], Node], numbers: np.ndarray, values: np.ndarray) -> Family:
  return Family(values, lambda g: Node(token, (inner(numbers[g]),)))


def _scaled(argument: Node) -> Callable[[float], Node]:
  return lambda c: Node("*", (argument, number(c)))


def _shifted(argument: Node) -> Callable[[float], Node]:
  return lambda c: Node("+", (argument, number(c)))


def _quarter_wave(u: np.ndarray) -> float:
  """Radians per unit of u that make a quarter of a wave over its range."""
  return np.pi / 2 / np.ptp(u)
