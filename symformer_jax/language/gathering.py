"""Powers gathered into one product: `y**2.5*sqrt((w/y - 1)*(z/y - 1)**2)` is `sqrt(w - y)*(y - z)*y`.

Formulas in quotients of columns, put together from a smaller table, have the same column in many places.
"""

from collections.abc import Callable, Iterable
import math

import numpy as np

from symformer_jax.language.expression import Node, chain, flatten, number, power, sort_key
from symformer_jax.language.tidy import tidy

# Exponents are told apart down to this.
_EQUAL = 1e-9
_EXPONENTS = {"inv": -1.0, "sqrt": 0.5, "pow2": 2.0, "pow3": 3.0}

# A product: exponents by base, and its number.
Powers = tuple[dict[Node, float], float]


def gather(node: Node, sign_of: Callable[[Node], int]) -> Node:
  """The same value where signs are known, each column taken out of sums whose terms have powers of it below the line.

  Args:
    sign_of: 1 or -1 where a tree has one sign in all rows, else 0: only such come out from under a root.
  """
  return _written(*_gathered(node, sign_of))


def _gathered(node: Node, sign_of: Callable[[Node], int]) -> Powers:
  """A tree as a product of powers."""
  if node.is_number:
    return {}, node.value
  if node.token == "*":
    return _product(_gathered(factor, sign_of) for factor in flatten(node, "*"))
  if node.token == "neg":
    bases, factor = _gathered(node.args[0], sign_of)
    return bases, -factor
  exponent = node.args[1].value if node.token == "pow" and node.args[1].is_number else _EXPONENTS.get(node.token)
  if exponent is not None:
    return _raised(_gathered(node.args[0], sign_of), exponent, sign_of)
  if node.token == "+":
    return _sum([_gathered(term, sign_of) for term in flatten(node, "+")])
  return {node._replace(args=tuple(gather(arg, sign_of) for arg in node.args)): 1.0}, 1.0


def _product(factors: Iterable[Powers]) -> Powers:
  bases: dict[Node, float] = {}
  number_ = 1.0
  for some, factor in factors:
    number_ *= factor
    for base, exponent in some.items():
      bases[base] = bases.get(base, 0.0) + exponent
  return {base: exponent for base, exponent in bases.items() if abs(exponent) > _EQUAL}, number_


def _raised(powers: Powers, exponent: float, sign_of: Callable[[Node], int]) -> Powers:
  """A product raised to a power; what may change its sign stays under the root together."""
  bases, factor = powers
  raised = _number_raised(abs(factor), exponent)
  if raised is None or not all(math.isfinite(own * exponent) for own in bases.values()):
    return {_power(_written(bases, factor), exponent): 1.0}, 1.0
  if exponent == round(exponent):
    return {base: own * exponent for base, own in bases.items()}, -raised if factor < 0 and exponent % 2 else raised
  outside: dict[Node, float] = {}
  inside: dict[Node, float] = {}
  for base, own in bases.items():
    sign = sign_of(base)
    if sign < 0 and base.token == "+":  # (z - y)**2 under a root is (y - z)**2
      flipped = tidy(chain("+", [Node("*", (term, number(-1))) for term in flatten(base, "+")]))
      if own == round(own):
        factor *= -1 if own % 2 else 1
        outside[flipped] = outside.get(flipped, 0.0) + own * exponent
        continue
    if sign > 0:
      outside[base] = outside.get(base, 0.0) + own * exponent
    else:
      inside[base] = own
  if not inside and factor > 0:
    return outside, raised
  rest = _power(_written(inside, factor), exponent)
  return _product([(outside, 1.0), ({rest: 1.0}, 1.0)])


def _number_raised(size: float, exponent: float) -> float | None:
  """A power of a number that is not negative; None where double precision has none, or has lost it."""
  with np.errstate(all="ignore"):
    raised = float(np.float64(size) ** exponent)
  return raised if math.isfinite(raised) and (raised > 0 or (size == 0 and exponent > 0)) else None


def _sum(terms: list[Powers]) -> Powers:
  """A sum with the least power of each base, where it is below 0 or all terms have it, before it."""
  common: dict[Node, float] = {}
  for base in dict.fromkeys(base for bases, _ in terms for base in bases):
    exponents = [bases.get(base, 0.0) for bases, _ in terms]
    least = min(exponents)
    if least:
      common[base] = least
  rest = [({base: exponent - common.get(base, 0.0)
            for base, exponent in (dict.fromkeys(common, 0.0) | bases).items()}, factor)
          for bases, factor in terms]
  inner = tidy(chain("+", [_written(bases, factor) for bases, factor in rest]))
  if inner.is_number:
    return common, inner.value
  return {**common, inner: common.get(inner, 0.0) + 1.0}, 1.0


def _power(base: Node, exponent: float) -> Node:
  return power(base, number(exponent))


def _written(bases: dict[Node, float], factor: float) -> Node:
  """A product as a tree; of a root of several factors one root."""
  parts = [_power(base, exponent) for base, exponent in sorted(bases.items(), key=lambda pair: sort_key(pair[0]))
           if abs(exponent) > _EQUAL]
  return tidy(chain("*", [*parts, number(factor)]))
