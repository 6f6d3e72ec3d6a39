"""Numbers a person would write exactly, each with its complexity in bits: what `snapping` tries for a constant.

A special value is a rational multiple p/q of a unit (1, pi, e, a square root). Its prior probability is
  w_unit * w_q * w_p / 2,   w_q = 1 / (q (q + 1)),   w_p = (1/q) / ((1 + p/q) (1 + (p + 1)/q)),
where the last two are telescoping series with sum 1, so that all special values together have a probability of at
most 1. An ordinary constant has the density 1 / (2 (1 + |c|)^2): |c| / (1 + |c|) is uniform, and large integers are
as rare among special values as large constants among ordinary ones (cf. Rissanen 1983, Ann. Statist. 11, 416).
"""

import math
from typing import NamedTuple

import numpy as np

from symformer_jax.language.expression import Node, number, power, symbol

MAX_DENOMINATOR = 12
# Of units other than 1: thirteen times a root of seven is nobody's constant.
MAX_NUMERATOR = 12


class Unit(NamedTuple):
  """A row of the table: name, value, tree (None for 1), and the share of special values that are multiples of it."""

  name: str
  value: float
  node: Node | None
  weight: float


def _root(value: float) -> Unit:
  return Unit(f"sqrt({value})", math.sqrt(value), Node("sqrt", (number(value),)), 0.1 / value**1.5)


_PI, _E = symbol("pi"), Node("exp", (number(1),))
_ROOT_OF_TWO_PI = Node("sqrt", (Node("*", (number(2), _PI)),))
# The weights are judgement: what formulas of textbooks hold, most of it whole numbers and halves.
UNITS = (
  Unit("1", 1.0, None, 0.75),
  Unit("pi", math.pi, _PI, 0.08),
  Unit("1/pi", 1 / math.pi, power(_PI, number(-1)), 0.02),
  Unit("e", math.e, _E, 0.02),
  Unit("sqrt(2*pi)", math.sqrt(2 * math.pi), _ROOT_OF_TWO_PI, 0.01),
  Unit("1/sqrt(2*pi)", 1 / math.sqrt(2 * math.pi), power(_ROOT_OF_TWO_PI, number(-1)), 0.01),
  *(_root(value) for value in (2, 3, 5, 6, 7, 10)),
)


class SpecialValue(NamedTuple):
  """A candidate for a constant.

  Attributes:
    value: the number; node: its exact form, as a tree; bits: -log2 of its prior probability.
  """

  value: float
  node: Node
  bits: float


def ordinary_cdf(value: np.ndarray) -> np.ndarray:
  """Probability that an ordinary constant is below a value."""
  tail = 0.5 / (1 + np.abs(value))
  return np.where(value < 0, tail, 1 - tail)


def nearest(value: float) -> list[SpecialValue]:
  """0 and, of every unit and denominator, the multiple nearest to a finite value; simplest first."""
  found = [_special(UNITS[0], 0, 1, 1)]
  for unit in UNITS:
    for denominator in range(1, MAX_DENOMINATOR + 1):
      numerator = round(abs(value) / unit.value * denominator)
      is_small = unit.node is None or numerator <= MAX_NUMERATOR
      if numerator and is_small and math.gcd(numerator, denominator) == 1:
        found.append(_special(unit, numerator, denominator, -1 if value < 0 else 1))
  return sorted(found, key=lambda special: special.bits)


def _special(unit: Unit, numerator: int, denominator: int, sign: int) -> SpecialValue:
  ratio = numerator / denominator
  # The step from one numerator to the next, written so that it does not vanish in a large ratio.
  mass = 1 / (denominator * (1 + ratio) * (1 + (numerator + 1) / denominator))
  prior = unit.weight * mass / (denominator * (denominator + 1)) / (2 if numerator else 1)
  if unit.node is None:
    node = number(sign * numerator)
  elif numerator == 1:
    node = unit.node if sign > 0 else Node("neg", (unit.node,))
  else:
    node = Node("*", (number(sign * numerator), unit.node))
  if denominator > 1:
    node = Node("*", (node, power(number(denominator), number(-1))))
  return SpecialValue(sign * numerator * unit.value / denominator, node, -math.log2(prior))
