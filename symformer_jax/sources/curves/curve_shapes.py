"""Functions of one column with two or three inner constants: powers of shifted functions, exponentials of two terms.

Constants are told in units in which a start of size 1 is a sensible one: distances from where a power ends in ranges of
what it is a power of, as logarithms; factors in an exponent by the size of what they multiply.
"""

from collections.abc import Callable, Iterable, Sequence
import itertools
import math
from typing import NamedTuple

import numpy as np

from symformer_jax.engine.config import CurveFitsConfig
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, number, power, variable
from symformer_jax.language.tidy import tidy

# The most constants of a shape; a shape without the last has 0 in its place.
NUM_CONSTANTS = 3
# A column whose least value is so many ranges from 0 is counted from there in exponentials.
FAR = 20.0
# ... and so is one whose exponential would be out of range there.
LARGEST_EXPONENT = 300.0


class Shape(NamedTuple):
  """Functions that differ in their constants.

  Attributes:
    operators: without which they cannot be written.
    starts: constants that are tried [S, 3].
    values: of constants [P, 3] at the rows [P, N], up to a factor.
    node: the formula of constants [3].
  """

  operators: tuple[str, ...]
  starts: np.ndarray
  values: Callable[[np.ndarray], np.ndarray]
  node: Callable[[np.ndarray], Node]


@np.errstate(all="ignore")  # what is not finite at the rows is left out
def shapes_of(x: np.ndarray, column: int, config: CurveFitsConfig) -> list[Shape]:
  """Those of a column with values [N]."""
  place, plain = variable(column), {}
  for name, (node, operators) in _plain(place).items():
    values = expression.evaluate(node, np.repeat(x[:, None], column + 1, axis=1))
    if np.all(np.isfinite(values)) and np.ptp(values) > 0:
      plain[name] = _Plain(node, operators, values)
  inner = [_power(place, x, config)] if np.min(x) > 0 else []
  inner.append(_exponential(place, x, config))
  both_signs = (1.0, -1.0)
  found = [_power_of_shifted(plain[name], sign, config) for name in config.arguments if name in plain
           for sign in both_signs]
  found += [_power_of_shifted_function(each, sign, config) for each in inner for sign in both_signs]
  found += [_logarithm_of_shifted_function(each, sign, config) for each in inner for sign in both_signs]
  found += [_exponential_of_function(each, config) for each in inner]
  found += [_exponential_of_two(plain[one], plain[other], config) for one, other in config.exponents
            if one in plain and other in plain]
  found += [_exponential_of_power(plain[name], config) for name in config.bases if name in plain]
  found += [_power_of_square(place, x, config)]
  if "logarithms" in plain:
    found += [_product_of_powers(plain[name], plain["logarithms"], config) for name in config.bases if name in plain]
    found += [_power_over_exponential(plain[name], plain["logarithms"], sign, config)
              for name in config.rates if name in plain for sign in both_signs]
  found += [_exponential_times_power(plain[name], plain["columns"], config) for name in config.rates if name in plain]
  return found


class _Plain(NamedTuple):
  """A function without constants: its formula, without which operators it cannot be written, values [N]."""

  node: Node
  operators: tuple[str, ...]
  values: np.ndarray


def _plain(x: Node) -> dict[str, tuple[Node, tuple[str, ...]]]:
  return {
    "columns": (x, ()), "squares": (power(x, number(2)), ("pow2",)), "cubes": (power(x, number(3)), ("pow3",)),
    "fourth_powers": (power(x, number(4)), ("pow",)), "roots": (Node("sqrt", (x,)), ("sqrt",)),
    "cube_roots": (power(x, number(1 / 3)), ("pow",)), "inverses": (Node("inv", (x,)), ("inv",)),
    "logarithms": (Node("ln", (x,)), ("ln",)),
    "squared_logarithms": (power(Node("ln", (x,)), number(2)), ("ln", "pow2"))}


class _Inner(NamedTuple):
  """A function of one constant, such as x**c.

  Attributes:
    values: of constants [P, 1] at the rows [P, N]; node: the formula of one.
    unit: of one: what the formula is to be multiplied by to have the values.
  """

  operators: tuple[str, ...]
  starts: Sequence[float]
  values: Callable[[np.ndarray], np.ndarray]
  node: Callable[[float], Node]
  unit: Callable[[float], float] = lambda c: 1.0


def _power(place: Node, x: np.ndarray, config: CurveFitsConfig) -> _Inner:
  return _Inner(("pow",), config.inner_exponents, lambda c: x**c, lambda c: power(place, number(c)))


def _exponential(place: Node, x: np.ndarray, config: CurveFitsConfig) -> _Inner:
  """exp(c*x), or of x less its least value where that is far from 0: of years the exponential has no digits left."""
  low, size = float(np.min(x)), float(np.ptp(x))

  def is_far(c: float) -> bool:
    return abs(low) > FAR * size or abs(c * low) > LARGEST_EXPONENT * size

  def node(c: float) -> Node:
    argument = Node("+", (place, number(-low))) if is_far(c) else place
    return Node("exp", (Node("*", (argument, number(c / size))),))

  return _Inner(("exp",), config.inner_rates, lambda c: np.exp(c * ((x - low) / size)), node,
                lambda c: 1.0 if is_far(c) else math.exp(-c * low / size))


def _grid(*axes: Iterable[float]) -> np.ndarray:
  found = np.array(list(itertools.product(*axes)))
  return np.pad(found, ((0, 0), (0, NUM_CONSTANTS - found.shape[1])))


def _shift(values: np.ndarray, sign: float, logarithm: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """What makes sign*values + shift, of values [..., N], a distance of exp(logarithm) ranges from 0 at its least; and
  the ranges. Both are [..., 1], as the logarithms are.
  """
  low, high = (np.min(values, axis=-1, keepdims=True), np.max(values, axis=-1, keepdims=True))
  return (-low if sign > 0 else high) + (high - low) * np.exp(logarithm), high - low


def _power_of_shifted(plain: _Plain, sign: float, config: CurveFitsConfig) -> Shape:
  """(v + a)**b, or (a - v)**b."""

  def values(constants: np.ndarray) -> np.ndarray:
    shift, size = _shift(plain.values, sign, constants[:, :1])
    return ((sign * plain.values + shift) / size) ** constants[:, 1:2]

  def node(constants: np.ndarray) -> Node:
    shift, _ = _shift(plain.values, sign, constants[:1])
    return _shifted_power(plain.node, sign, float(shift[0]), float(constants[1]))

  return Shape(("pow", *plain.operators), _grid(np.log(config.distances), config.powers), values, node)


def _power_of_shifted_function(inner: _Inner, sign: float, config: CurveFitsConfig) -> Shape:
  """(F(c) + a)**b, or (a - F(c))**b."""

  def values(constants: np.ndarray) -> np.ndarray:
    found = inner.values(constants[:, 2:3])
    shift, size = _shift(found, sign, constants[:, :1])
    return ((sign * found + shift) / size) ** constants[:, 1:2]

  def node(constants: np.ndarray) -> Node:
    shift, _ = _shift(inner.values(constants[2:3]), sign, constants[:1])
    c = float(constants[2])
    return _shifted_power(inner.node(c), sign, float(shift[0]) / inner.unit(c), float(constants[1]))

  return Shape(("pow", *inner.operators), _grid(np.log(config.distances), config.powers, inner.starts), values, node)


def _shifted(node: Node, sign: float, shift: float) -> Node:
  signed = Node("*", (node, number(sign))) if sign < 0 else node
  return Node("+", (signed, number(shift)))


def _shifted_power(node: Node, sign: float, shift: float, exponent: float) -> Node:
  return tidy(power(_shifted(node, sign, shift), number(exponent)))


def _logarithm_of_shifted_function(inner: _Inner, sign: float, config: CurveFitsConfig) -> Shape:
  """log(F(c) + a), or log(a - F(c))."""

  def values(constants: np.ndarray) -> np.ndarray:
    found = inner.values(constants[:, 1:2])
    shift, size = _shift(found, sign, constants[:, :1])
    return np.log((sign * found + shift) / size)

  def node(constants: np.ndarray) -> Node:
    shift, _ = _shift(inner.values(constants[1:2]), sign, constants[:1])
    c = float(constants[1])
    return tidy(Node("ln", (_shifted(inner.node(c), sign, float(shift[0]) / inner.unit(c)),)))

  return Shape(("ln", *inner.operators), _grid(np.log(config.distances), inner.starts), values, node)


def _exponential_of_function(inner: _Inner, config: CurveFitsConfig) -> Shape:
  """exp(a*F(c))."""

  def scaled(constants: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    found = inner.values(constants[..., 1:2])
    return found, constants[..., :1] / np.ptp(found, axis=-1, keepdims=True)

  def values(constants: np.ndarray) -> np.ndarray:
    found, factors = scaled(constants)
    return _exponentials(factors * found)

  def node(constants: np.ndarray) -> Node:
    _, (factor,) = scaled(constants)
    c = float(constants[1])
    return tidy(Node("exp", (Node("*", (inner.node(c), number(float(factor) * inner.unit(c)))),)))

  return Shape(("exp", *inner.operators), _grid(config.factors, inner.starts), values, node)


def _exponential_of_two(one: _Plain, other: _Plain, config: CurveFitsConfig) -> Shape:
  """exp(a*v + b*w)."""
  terms, sizes = np.stack([one.values, other.values]), np.array([np.ptp(one.values), np.ptp(other.values)])

  def values(constants: np.ndarray) -> np.ndarray:
    return _exponentials(constants[:, :2] @ (terms / sizes[:, None]))

  def node(constants: np.ndarray) -> Node:
    parts = [Node("*", (each.node, number(float(c / size))))
             for each, c, size in zip((one, other), constants, sizes, strict=False)]
    return tidy(Node("exp", (Node("+", tuple(parts)),)))

  return Shape(("exp", *one.operators, *other.operators), _grid(config.factors, config.factors), values, node)


def _exponential_of_power(plain: _Plain, config: CurveFitsConfig) -> Shape:
  """exp(c*(v + a)**b)."""

  def base(constants: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    shift, size = _shift(plain.values, 1.0, constants[..., :1])
    return shift, np.max(plain.values) + shift

  def values(constants: np.ndarray) -> np.ndarray:
    shift, largest = base(constants)
    return _exponentials(constants[:, 2:3] * ((plain.values + shift) / largest) ** constants[:, 1:2])

  def node(constants: np.ndarray) -> Node:
    (shift,), (largest,) = base(constants)
    factor = float(constants[2] / largest ** constants[1])
    return tidy(Node("exp", (Node("*", (
      _shifted_power(plain.node, 1.0, float(shift), float(constants[1])), number(factor))),)))

  starts = _grid(np.log(config.distances), config.powers, config.factors)
  return Shape(("exp", "pow", *plain.operators), starts, values, node)


def _power_of_square(place: Node, x: np.ndarray, config: CurveFitsConfig) -> Shape:
  """((x - a)**2 + c**2)**b: a peak or a valley with long tails."""
  low, size = float(np.min(x)), float(np.ptp(x))

  def values(constants: np.ndarray) -> np.ndarray:
    apart = (x - low) / size - constants[:, :1]
    return (apart**2 + np.exp(2 * constants[:, 2:3])) ** constants[:, 1:2]

  def node(constants: np.ndarray) -> Node:
    middle, exponent, width = constants.tolist()
    square = power(Node("+", (place, number(-(low + size * middle)))), number(2))
    return _shifted_power(square, 1.0, float((size * np.exp(width)) ** 2), exponent)

  starts = _grid(config.middles, config.powers, np.log(config.widths))
  return Shape(("pow", "pow2"), starts, values, node)


def _product_of_powers(plain: _Plain, logarithm: _Plain, config: CurveFitsConfig) -> Shape:
  """x**c*(v + a)**b."""

  def values(constants: np.ndarray) -> np.ndarray:
    shift, size = _shift(plain.values, 1.0, constants[:, :1])
    return _exponentials(constants[:, 1:2] * np.log((plain.values + shift) / size)
                         + constants[:, 2:3] * logarithm.values)

  def node(constants: np.ndarray) -> Node:
    shift, _ = _shift(plain.values, 1.0, constants[:1])
    [x] = logarithm.node.args
    return tidy(Node("*", (power(x, number(float(constants[2]))),
                           _shifted_power(plain.node, 1.0, float(shift[0]), float(constants[1])))))

  starts = _grid(np.log(config.distances), config.powers, config.outer_exponents)
  return Shape(("pow", *plain.operators), starts, values, node)


def _exponential_times_power(plain: _Plain, column: _Plain, config: CurveFitsConfig) -> Shape:
  """exp(c*v)*(x + a)**b."""
  size = np.ptp(plain.values)

  def values(constants: np.ndarray) -> np.ndarray:
    shift, span = _shift(column.values, 1.0, constants[:, :1])
    return _exponentials(constants[:, 1:2] * np.log((column.values + shift) / span)
                         + constants[:, 2:3] * plain.values / size)

  def node(constants: np.ndarray) -> Node:
    shift, _ = _shift(column.values, 1.0, constants[:1])
    rate = Node("exp", (Node("*", (plain.node, number(float(constants[2] / size)))),))
    return tidy(Node("*", (_shifted_power(column.node, 1.0, float(shift[0]), float(constants[1])), rate)))

  starts = _grid(np.log(config.distances), config.powers, config.factors)
  return Shape(("exp", "pow", *plain.operators), starts, values, node)


def _power_over_exponential(plain: _Plain, logarithm: _Plain, sign: float, config: CurveFitsConfig) -> Shape:
  """x**b/(exp(c*v) + 1), or - 1."""
  size = np.max(np.abs(plain.values))

  def values(constants: np.ndarray) -> np.ndarray:
    rates = np.exp(constants[:, 1:2])
    return np.exp(constants[:, :1] * (logarithm.values - np.mean(logarithm.values))) / (
      np.exp(rates * plain.values / size) + sign)

  def node(constants: np.ndarray) -> Node:
    [x] = logarithm.node.args
    rate = Node("exp", (Node("*", (plain.node, number(float(np.exp(constants[1]) / size)))),))
    return tidy(Node("*", (power(x, number(float(constants[0]))), Node("inv", (Node("+", (rate, number(sign))),)))))

  return Shape(("exp", "inv", "pow", *plain.operators), _grid(config.powers, np.log(config.decays)), values, node)


def _exponentials(exponents: np.ndarray) -> np.ndarray:
  """The largest of each row is 1."""
  return np.exp(exponents - np.max(exponents, axis=-1, keepdims=True))
