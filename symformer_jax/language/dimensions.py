"""Dimensional analysis of formulas: which dimension a tree has, and what units its numbers must have.

A number that multiplies or is added may have any dimension, as in PySR, unless constants are dimensionless. Every
number stands once in a tree, so a part of it has one dimension or can have any: going up the tree once is exact.

Rules: operands of a sum (of `min`, `max`) have one dimension; products multiply dimensions; a power with a number as
its exponent raises them, and any other takes a base and an exponent without dimension, as functions take arguments.
"""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
from fractions import Fraction
import functools
import math

import numpy as np

from symformer_jax.language import expression
from symformer_jax.language.expression import UNKNOWN, VARIABLE, Node

# A fitted exponent so near to a fraction of so small a denominator is that fraction: 1/3 is no float.
NEAR_EXPONENT, MAX_DENOMINATOR = 1e-9, 12

_ALIKE = frozenset(("+", "-", "min", "max"))
_KEPT = frozenset(("neg", "abs"))
_POWERS = {"pow2": Fraction(2), "pow3": Fraction(3), "pow4": Fraction(4), "pow5": Fraction(5), "pow6": Fraction(6),
           "inv": Fraction(-1), "sqrt": Fraction(1, 2)}


class MismatchError(ValueError):
  """A formula without a dimension: it adds lengths to times, or takes the sine of a length."""


@dataclasses.dataclass(frozen=True)
class Powers:
  """A product of powers, of dimensions or of units, such as length/time**2; the empty one is 1.

  Attributes:
    exponents: by name, sorted, none of them 0.
  """

  exponents: tuple[tuple[str, Fraction], ...] = ()

  @classmethod
  def of(cls, exponents: Mapping[str, Fraction]) -> "Powers":
    return cls(tuple(sorted((name, exponent) for name, exponent in exponents.items() if exponent)))

  def __mul__(self, other: "Powers") -> "Powers":
    if not (self.exponents and other.exponents):
      return self if self.exponents else other
    total = dict(self.exponents)
    for name, exponent in other.exponents:
      total[name] = total.get(name, Fraction(0)) + exponent
    return Powers.of(total)

  def __pow__(self, exponent: Fraction) -> "Powers":
    return Powers(tuple((name, e * exponent) for name, e in self.exponents)) if exponent else Powers()

  def __truediv__(self, other: "Powers") -> "Powers":
    return self * other ** Fraction(-1)

  def __str__(self) -> str:
    """As `m/s**2`, which pint reads; 1 where nothing is left."""
    above = "*".join(_power_text(name, e) for name, e in self.exponents if e > 0)
    return (above or "1") + "".join(f"/{_power_text(name, -e)}" for name, e in self.exponents if e < 0)


def _power_text(name: str, exponent: Fraction) -> str:
  if exponent == 1:
    return name
  return f"{name}**{exponent}" if exponent.denominator == 1 else f"{name}**({exponent})"


# Where a dimension is None below, it is that of a free number: any that is asked for.
PURE = Powers()


@dataclasses.dataclass(frozen=True)
class Dimensions:
  """The dimensions of a data set; hashable, and a test of trees.

  Attributes:
    columns: of each column; target: of y.
    are_constants_free: whether numbers may have any dimension, but as exponents; else none of them has one.
  """

  columns: tuple[Powers, ...]
  target: Powers
  are_constants_free: bool = True

  def allows(self, node: Node) -> bool:
    """Whether a formula can have the dimension of y."""
    try:
      found = self.of(node)
    except MismatchError:
      return False
    return found is None or found == self.target

  def of(self, node: Node) -> Powers | None:
    """The dimension of a tree; None where a free number leaves it open: any.

    Raises:
      MismatchError: where it has none.
    """
    if node.token == VARIABLE:
      return self.columns[node.value]
    if not node.args:
      return None if self.are_constants_free or node.token == UNKNOWN else PURE
    if node.token == "pow":
      return self._power(*node.args)
    return combine(node.token, [self.of(arg) for arg in node.args])

  def is_possible(self, columns: Sequence[int]) -> bool:
    """Whether any formula of these columns has the dimension of y."""
    if self.are_constants_free:
      return True
    each = [dict(self.columns[column].exponents) for column in columns]
    target = dict(self.target.exponents)
    names = sorted({name for one in [target, *each] for name in one})
    matrix = np.array([[float(one.get(name, 0)) for one in [*each, target]] for name in names])
    return not names or bool(np.linalg.matrix_rank(matrix[:, :-1]) == np.linalg.matrix_rank(matrix))

  def _power(self, base: Node, exponent: Node) -> Powers | None:
    value = exponent_of(exponent)
    if value is None:  # it varies, so that no dimension but 1 stays one
      _require_pure(self.of(base))
      _require_pure(self.of(exponent))
      return PURE
    found = self.of(base)
    return found if found is None and value else (found or PURE) ** value


def combine(token: str, args: Sequence[Powers | None]) -> Powers | None:
  """The dimension of an operator's result, of any but `pow`, from those of its arguments.

  Raises:
    MismatchError: where they do not go together.
  """
  first = args[0]
  if token in _ALIKE:
    known = {arg for arg in args if arg is not None}
    if len(known) > 1:
      raise MismatchError(f"{token} of different dimensions")
    return known.pop() if known else None
  if token in ("*", "/"):
    second = args[1]
    if first is None or second is None:
      return None
    return first * second if token == "*" else first / second
  if token in _KEPT:
    return first
  if token in _POWERS:
    return None if first is None else first ** _POWERS[token]
  if token != "sign":
    for arg in args:
      _require_pure(arg)
  return PURE


def _require_pure(found: Powers | None) -> None:
  if found is not None and found.exponents:
    raise MismatchError(f"expected no dimension, got {found}")


def exponent_of(node: Node) -> Fraction | None:
  """The value of an exponent without variables; None for any other.

  Raises:
    MismatchError: for one that is not finite.
  """
  if any(not n.args and not n.is_number for n in expression.walk(node)):
    return None
  value = node.value if node.is_number else float(expression.evaluate(node, np.zeros((1, 1)))[0])
  if not math.isfinite(value):
    raise MismatchError("an exponent that is not finite")
  return _near_fraction(value)


@functools.lru_cache(maxsize=1 << 12)
def _near_fraction(value: float) -> Fraction:
  near = Fraction(value).limit_denominator(MAX_DENOMINATOR)
  return near if abs(float(near) - value) <= NEAR_EXPONENT else Fraction(value)


# --- what units the numbers of a formula have --------------------------------------------------------------------


def of_part(node: Node, path: Sequence[int], wanted: Powers, columns: Sequence[Powers]) -> Powers | None:
  """The dimension, or the unit, that the part at the end of a path has where the whole has `wanted`.

  Args:
    node: a tree that can have it; its unknown functions and parameters may have any.
    path: numbers of arguments from the root; columns: dimension, or unit, of each.
  Returns:
    None where the rest of the formula leaves it open.
  """
  found: Powers | None = wanted
  for i in path:
    found = _wanted_of_arguments(node, found, columns)[i]
    node = node.args[i]
  return found


def units_of_numbers(node: Node, columns: Sequence[Powers], target: Powers) -> list[Powers | None]:
  """The unit of each number of an allowed formula in prefix order; None where the formula leaves it open.

  Columns of one dimension in different units, as m and cm, are not converted: a factor then has the unit m/cm.
  Args:
    node: a tree without symbols; columns: the unit of each column, as powers of names; target: that of y.
  """
  return list(_assigned(node, target, columns))


def _assigned(node: Node, wanted: Powers | None, columns: Sequence[Powers]) -> Iterator[Powers | None]:
  """Units of numbers where the tree is to have the unit `wanted`, None where that is open."""
  if not node.args:
    if node.is_number:
      yield wanted
    return
  for arg, own in zip(node.args, _wanted_of_arguments(node, wanted, columns), strict=True):
    yield from _assigned(arg, own, columns)


def _wanted_of_arguments(node: Node, wanted: Powers | None, columns: Sequence[Powers]) -> list[Powers | None]:
  """The unit of each argument: the one it has, or what its operator leaves to it."""
  own = [_unit(arg, columns) for arg in node.args]
  if node.token in _ALIKE or node.token in _KEPT:
    common = next((unit for unit in own if unit is not None), wanted)
    return [common if unit is None else unit for unit in own]
  if node.token in ("*", "/"):
    return _wanted_of_factors(own, wanted, is_division=node.token == "/")
  exponent = exponent_of(node.args[1]) if node.token == "pow" else _POWERS.get(node.token)
  if exponent is None:
    return own if node.token == "sign" else [PURE if unit is None else unit for unit in own]
  base = own[0] if own[0] is not None or wanted is None or not exponent else wanted ** (1 / exponent)
  return [base, PURE][: len(own)]


def _wanted_of_factors(own: list[Powers | None], wanted: Powers | None, *, is_division: bool) -> list[Powers | None]:
  first, second = own
  if wanted is None:
    return own
  if first is None and second is not None:
    return [wanted * second if is_division else wanted / second, second]
  if first is not None and second is None:
    return [first, first / wanted if is_division else wanted / first]
  return own


def _unit(node: Node, columns: Sequence[Powers]) -> Powers | None:
  """The unit of a part by its columns; of a sum that of the first operand which has one."""
  if node.token == VARIABLE:
    return columns[node.value]
  if not node.args:
    return None
  if node.token in _ALIKE:
    return next((unit for arg in node.args if (unit := _unit(arg, columns)) is not None), None)
  if node.token == "pow":
    exponent, base = exponent_of(node.args[1]), _unit(node.args[0], columns)
    return PURE if not exponent else None if base is None else base**exponent
  if node.token in ("*", "/") or node.token in _KEPT or node.token in _POWERS:
    return combine(node.token, [_unit(arg, columns) for arg in node.args])
  return PURE


