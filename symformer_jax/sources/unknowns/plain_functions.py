"""Multiples of single known functions, for a function of one column of which values are known.

`3*x**(-2/3)`, `log(y) + 2`, `0.4*exp(-1.7*z)`: most functions that a law of many columns is made of are of this kind.
Least squares tells them in a thousandth of a second, where a library of the column takes a fifth of one to be made.
"""

from collections.abc import Iterable, Iterator
import math

import numpy as np

from symformer_jax.engine.config import FormsConfig
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, number, power, variable
from symformer_jax.sources.unknowns.alternating import EXACT

_X = variable(0)


def multiples(places: np.ndarray, values: np.ndarray, error: float, config: FormsConfig) -> list[Node]:
  """Formulas of two constants that agree with a function to all that is known of it; none where that is too little to
  tell one from the others.

  Args:
    places, values: of the variable and of the function [P].
    error: what the mean square error of the values may be.
  """
  variance = float(np.var(values))
  most = max(config.errors_of_polynomials * error, EXACT * variance)
  if not most <= config.plain_left * variance:
    return []

  def agreeing(some: Iterable[Node]) -> list[Node]:
    return [node for node in some if np.mean((expression.evaluate(node, places[:, None]) - values) ** 2) <= most]

  with np.errstate(all="ignore"):  # what is undefined agrees with nothing
    known = agreeing(_known(places, values, most, config))
    alone = agreeing(_powers_and_exponentials(places, values))
  return known + alone if max(len(known), len(alone)) == 1 else []


def _known(places: np.ndarray, values: np.ndarray, most: float, config: FormsConfig) -> Iterator[Node]:
  """Multiples of powers and functions, with a constant where there is one."""
  some = [*(power(_X, number(exponent)) for exponent in config.plain_powers),
          *(Node(token, (_X,)) for token in config.plain_functions)]
  for node in some:
    factor, constant = _line(expression.evaluate(node, places[:, None]), values)
    if math.isfinite(constant) and factor:
      term = Node("*", (node, number(factor)))
      yield term if constant**2 <= most else chain("+", [term, number(constant)])


def _powers_and_exponentials(places: np.ndarray, values: np.ndarray) -> Iterator[Node]:
  """Of a function of one sign the power and the exponential whose logarithms come nearest."""
  if not (np.all(values > 0) or np.all(values < 0)):
    return
  logs, sign = np.log(np.abs(values)), math.copysign(1.0, values[0])
  if np.all(places > 0):
    exponent, factor = _line(np.log(places), logs)
    yield Node("*", (power(_X, number(exponent)), number(sign * float(np.exp(factor)))))
  rate, factor = _line(places, logs)  # of years the factor may be beyond all numbers, and such a formula undefined
  yield Node("*", (Node("exp", (Node("*", (_X, number(rate))),)), number(sign * float(np.exp(factor)))))


def _line(column: np.ndarray, values: np.ndarray) -> tuple[float, float]:
  """Slope and constant of the line through values [P] over a column [P]."""
  deviation = column - np.mean(column)
  slope = float(deviation @ values / (deviation @ deviation))
  return slope, float(np.mean(values) - slope * np.mean(column))
