"""Products of powers of the variables, for columns of which there are thousands."""

from collections.abc import Sequence
import itertools
import math

import numpy as np

from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, number, power, variable

# Pairs (column, exponent); empty for 1.
Monomial = tuple[tuple[int, float], ...]


def monomials(columns: Sequence[int], size: int, exponents: Sequence[float]) -> list[Monomial]:
  """All of so many variables with these exponents."""
  return [tuple(zip(chosen, powers, strict=True)) for chosen in itertools.combinations(columns, size)
          for powers in itertools.product(exponents, repeat=size)]


def up_to(
  columns: Sequence[int], max_size: int, *, at_most: int, exponents: Sequence[Sequence[float]]
) -> list[Monomial]:
  """All of one variable, of two, ..., with the first of the sets of exponents that makes at most so many of a size.

  A size of which there would be more is left out.
  """
  found = []
  for size in range(1, max_size + 1):
    for each in exponents:
      if math.comb(len(columns), size) * len(each) ** size <= at_most:
        found += monomials(columns, size, each)
        break
  return found


def to_node(monomial: Monomial) -> Node:
  return chain("*", [power(variable(column), number(exponent)) for column, exponent in monomial] or [number(1)])


class Values:
  """Values of monomials at points.

  Attributes:
    x: the points [N, D].
  """

  def __init__(self, x: np.ndarray):
    self.x = x
    self._powers: dict[tuple[int, float], np.ndarray] = {}

  def __call__(self, some: Sequence[Monomial]) -> np.ndarray:
    """[N, P]; NaN or infinite where undefined."""
    values = np.ones((len(self.x), len(some)))
    for index, monomial in enumerate(some):
      for factor in monomial:
        values[:, index] *= self._power(factor)
    return values

  def _power(self, factor: tuple[int, float]) -> np.ndarray:
    if factor not in self._powers:
      self._powers[factor] = expression.evaluate(to_node((factor,)), self.x)
    return self._powers[factor]
