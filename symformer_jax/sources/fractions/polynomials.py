"""Polynomials of several variables as tables of coefficients: values, trees, factors of one variable."""

from collections.abc import Sequence
import functools

import numpy as np

from symformer_jax.engine.config import DEFAULT
from symformer_jax.language.expression import Node, chain, number
from symformer_jax.language.tidy import tidy
from symformer_jax.sources import monomials

# Exponents of all variables in a monomial, one for each.
Powers = tuple[float, ...]
# Coefficients by exponents.
Polynomial = dict[Powers, float]
# A root whose imaginary part is a smaller share of its size is real: a double one splits by the root of rounding.
_IMAGINARY = 1e-4
# Coefficients that are a smaller share of the largest are what a division has left.
_LEFT = 1e-9


def values(polynomial: Polynomial, x: np.ndarray) -> np.ndarray:
  """At points x [N, D]."""
  return table(list(polynomial), x) @ np.array(list(polynomial.values()))


def table(some: Sequence[Powers], x: np.ndarray) -> np.ndarray:
  """Values [N, M] of monomials at points [N, D]."""
  found = np.ones((len(x), len(some)))
  for column, exponents in zip(x.T, zip(*some, strict=True), strict=True):
    distinct, place = _distinct(exponents)  # powers cost far more than products
    found *= (column[:, None] ** distinct)[:, place]
  return found


# The same few hundred sets of monomials are asked for of all views of all tables.
@functools.lru_cache(maxsize=4096)
def _distinct(exponents: Powers) -> tuple[np.ndarray, np.ndarray]:
  distinct, place = np.unique(exponents, return_inverse=True)
  return distinct, place


def node_of(powers: Powers) -> Node:
  """A monomial as a tree."""
  return monomials.to_node(tuple((column, power) for column, power in enumerate(powers) if power))


def to_node(polynomial: Polynomial) -> Node:
  """As a tree, with what is common to all its terms as a factor."""
  common = np.min(list(polynomial), axis=0)
  terms = [Node("*", (node_of(tuple((np.array(powers) - common).tolist())), number(coefficient)))
           for powers, coefficient in polynomial.items()]
  return tidy(Node("*", (node_of(tuple(common.tolist())), chain("+", terms))))


def rescaled(polynomial: Polynomial, sizes: np.ndarray) -> Polynomial:
  """Over x of a polynomial over x divided by sizes [D]."""
  return {powers: float(coefficient / np.prod(sizes ** np.array(powers))) for powers, coefficient in polynomial.items()}


def factors(
  polynomial: Polynomial, x: np.ndarray, *, tolerance: float, num_rows: int = DEFAULT.rationals.num_root_rows
) -> tuple[list[Polynomial], Polynomial]:
  """Its factors of one variable, linear and quadratic, and what is left of it.

  Args:
    polynomial: with whole exponents and no common monomial.
    x: points [N, D], at `num_rows` of which it is looked at.
    tolerance: share by which roots may differ between rows and still be those of one factor.
  Returns:
    `(factors, rest)`: each factor has leading coefficient 1, and stands there as often as it divides.
  """
  found: list[Polynomial] = []
  some = x[np.unique(np.linspace(0, len(x) - 1, num_rows).astype(int))]
  for column in range(x.shape[1]):
    degree = int(max(powers[column] for powers in polynomial))
    if not degree:
      continue
    for factor in _factors_in(polynomial, column, some, tolerance):
      found.append({_single(column, power, x.shape[1]): c for power, c in enumerate(factor) if c})
      polynomial = _divided(polynomial, column, factor)
  return found, polynomial


def _single(column: int, power: int, num_variables: int) -> Powers:
  return tuple(float(power) if i == column else 0.0 for i in range(num_variables))


def _by_power(polynomial: Polynomial, column: int) -> dict[int, Polynomial]:
  """What stands beside each power of a variable."""
  found: dict[int, Polynomial] = {}
  for powers, coefficient in polynomial.items():
    rest = (*powers[:column], 0.0, *powers[column + 1:])
    found.setdefault(int(powers[column]), {})[rest] = coefficient
  return found


def _factors_in(polynomial: Polynomial, column: int, some: np.ndarray, tolerance: float) -> list[list[float]]:
  """Coefficients, the lowest first, of factors in one variable, whose roots are the same at all of some points."""
  beside = {power: values(part, some) for power, part in _by_power(polynomial, column).items()}
  rows = [np.roots([beside[p][n] if p in beside else 0.0 for p in range(max(beside), -1, -1)])
          for n in range(len(some))]
  found = []
  for root in rows[0]:
    nearest = np.array([row[np.argmin(np.abs(row - root))] if len(row) else np.inf for row in rows])
    middle = complex(np.median(nearest.real), np.median(np.abs(nearest.imag)))
    if not np.all(np.abs(nearest.real + 1j * np.abs(nearest.imag) - middle) <= tolerance * abs(middle)):
      continue
    if abs(middle.imag) <= _IMAGINARY * abs(middle):
      found.append([-middle.real, 1.0])
    elif root.imag > 0:
      linear = -2 * middle.real
      found.append([abs(middle) ** 2, linear if abs(linear) > tolerance * abs(middle) else 0.0, 1.0])
  return _joined(found)


def _joined(found: list[list[float]]) -> list[list[float]]:
  """Linear factors whose roots differ by rounding alone at their mean."""
  joined: list[list[float]] = []
  for factor in found:
    near = [other for other in joined
            if len(other) == len(factor) == 2 and abs(other[0] - factor[0]) <= 100 * _IMAGINARY * abs(factor[0])]
    mean = float(np.mean([other[0] for other in [*near, factor]]))
    for other in near:
      other[0] = mean
    joined.append([mean, 1.0] if near else factor)
  return joined


def _divided(polynomial: Polynomial, column: int, factor: list[float]) -> Polynomial:
  """The quotient by a factor with leading coefficient 1; the remainder, which is rounding or noise, is dropped."""
  beside, degree, quotient = _by_power(polynomial, column), len(factor) - 1, {}
  for power in range(max(beside), degree - 1, -1):
    for rest, coefficient in beside.get(power, {}).items():
      quotient[(*rest[:column], float(power - degree), *rest[column + 1:])] = coefficient
      for i, c in enumerate(factor[:-1]):
        below = beside.setdefault(power - degree + i, {})
        below[rest] = below.get(rest, 0.0) - c * coefficient
  largest = max((abs(c) for c in quotient.values()), default=0.0)
  return {powers: c for powers, c in quotient.items() if abs(c) > _LEFT * largest} or polynomial
