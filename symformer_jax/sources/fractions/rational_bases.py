"""Bases of rational functions: which monomials may stand above and below the line, for so many variables."""

from collections.abc import Iterable, Sequence
import functools
import itertools
import math
from typing import NamedTuple

import numpy as np

from symformer_jax.engine.config import RationalsConfig
from symformer_jax.sources.fractions.polynomials import Powers

# Numbers of columns, in order: those of the numerator's monomials, then those of the denominator's.
Terms = tuple[int, ...]


class Basis(NamedTuple):
  """Monomials of rational functions.

  Attributes:
    numerator: [M], denominator: [K], both with the constant 1 first; exponents are not negative.
    starts: sets of columns from which elimination begins: nested, so that data which a large one describes in many
      ways have a small one that does in one.
  """

  numerator: tuple[Powers, ...]
  denominator: tuple[Powers, ...]
  starts: tuple[Terms, ...]

  @property
  def has_roots(self) -> bool:
    """Whether an exponent is no whole number."""
    return any(power != int(power) for powers in self.numerator for power in powers)


@functools.lru_cache(maxsize=32)
def bases(num_variables: int, config: RationalsConfig) -> tuple[Basis, ...]:
  """Those for so many variables: up to a total degree; in the root of a single one; linear in a power of each; linear
  in all but one.
  """
  found = [_total_degree(num_variables, config)]
  if num_variables == 1:
    root_degrees = config.root_degrees
    if root_degrees:
      above, below = ([(0.5 * i,) for i in range(degree + 1)] for degree in root_degrees)
      found.append(_nested(above, below, root_degrees, 0.5))
  elif num_variables <= config.max_linear:
    choices: Iterable[Powers] = itertools.product(config.linear_powers, repeat=num_variables)
    if len(config.linear_powers) ** num_variables > config.max_choices:
      choices = [(power,) * num_variables for power in config.linear_powers]
    found += [_linear_in_each(powers) for powers in choices]
    found += [_linear_but_in_one(num_variables, one, config.one_degree) for one in range(num_variables)
              if num_variables * (config.one_degree + 1) <= config.max_monomials]
  return tuple(found)


def all_up_to(num_variables: int, degree: int) -> list[Powers]:
  """All monomials up to a total degree, the constant first."""
  made = (tuple(map(float, np.bincount(chosen, minlength=num_variables))) for size in range(1, degree + 1)
          for chosen in itertools.combinations_with_replacement(range(num_variables), size))
  return [(0.0,) * num_variables, *made]


def _total_degree(num_variables: int, config: RationalsConfig) -> Basis:
  place = min(num_variables, len(config.degrees)) - 1
  degrees = [max(1, next((d for d in range(most, 0, -1) if math.comb(num_variables + d, d) <= config.max_monomials), 1))
             for most in config.degrees[place]]
  above, below = (all_up_to(num_variables, degree) for degree in degrees)
  return _nested(above, below, tuple(degrees))


def _nested(
  above: Sequence[Powers], below: Sequence[Powers], degrees: Sequence[int], step: float = 1.0
) -> Basis:
  """A basis that begins with every pair of degrees up to those given, counted in steps, above and below the line."""
  def up_to(monomials: Sequence[Powers], degree: int, first: int) -> Terms:
    return tuple(first + i for i, powers in enumerate(monomials) if sum(powers) <= step * degree)

  starts = tuple(up_to(above, i, 0) + up_to(below, k, len(above))
                 for i in range(degrees[0] + 1) for k in range(degrees[1] + 1))
  return Basis(tuple(above), tuple(below), starts)


def _linear_in_each(powers: Powers) -> Basis:
  """Products of the variables' powers, each at most once: what sums of fractions of one variable each come to.

  It begins with all of them above the line, and below it with those of some variables.
  """
  size = len(powers)
  subsets = [chosen for count in range(size + 1) for chosen in itertools.combinations(range(size), count)]
  monomials = tuple(tuple(float(power) if i in chosen else 0.0 for i, power in enumerate(powers))
                    for chosen in subsets)
  starts = tuple(
    tuple(range(len(subsets))) + tuple(len(subsets) + j for j, each in enumerate(subsets) if set(each) <= set(below))
    for below in subsets[1:])
  return Basis(monomials, monomials, starts)


def _linear_but_in_one(num_variables: int, one: int, degree: int) -> Basis:
  """Powers of one variable, alone and times each other: `x**4/(y - 2) + 3`, `x/(x**3 + 1) + y`.

  It begins with every pair of degrees in that variable above and below the line.
  """
  others = [None, *(other for other in range(num_variables) if other != one)]
  monomials = tuple(tuple(float(power) if i == one else float(i == other) for i in range(num_variables))
                    for power in range(degree + 1) for other in others)

  def up_to(power: int, first: int) -> Terms:
    return tuple(range(first, first + len(others) * (power + 1)))

  starts = tuple(up_to(i, 0) + up_to(k, len(monomials)) for i in range(degree + 1) for k in range(degree + 1))
  return Basis(monomials, monomials, starts)


@functools.lru_cache(maxsize=128)
def small_sets(basis: Basis, most: int) -> tuple[np.ndarray, ...]:
  """All sets of two terms, of three, ... [B, k], as long as there are at most so many of a size.

  Each has a term above and one below the line, and no factor common to all its terms, which would cancel.
  """
  powers = np.array(basis.numerator + basis.denominator)
  num_above, found = len(basis.numerator), []
  for size in range(2, len(powers) + 1):
    if math.comb(len(powers), size) > most:
      break
    sets = np.array(list(itertools.combinations(range(len(powers)), size)))
    is_fraction = (sets[:, 0] < num_above) & (sets[:, -1] >= num_above)
    is_reduced = np.all(np.min(powers[sets], axis=1) == 0, axis=1)
    found.append(sets[is_fraction & is_reduced])
  return tuple(found)
