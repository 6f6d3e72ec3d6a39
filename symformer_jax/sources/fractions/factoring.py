"""Polynomials written in few nodes: factored over the rational numbers by SymPy, and what does not factor collected.

Coefficients are known to some ten digits; those of a law are mostly ratios of short numbers.
"""

from collections.abc import Iterable
import fractions
import functools
import math

from symformer_jax.engine.config import DEFAULT, FactoringConfig
from symformer_jax.language import sympy_trees
from symformer_jax.language.expression import Node, chain, complexity, number, power
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.fractions import polynomials
from symformer_jax.sources.fractions.polynomials import Polynomial

# Exact coefficients by whole exponents.
Rational = dict[tuple[int, ...], fractions.Fraction]
Terms = sympy_trees.Terms
# A factor and how often it divides.
Factors = list[tuple[Rational, int]]


def factors(polynomial: Polynomial, config: FactoringConfig) -> tuple[float, Factors] | None:
  """`(number, factors)` whose product the polynomial is; None where its coefficients are no ratios of short numbers."""
  for divisor in polynomial.values():
    shares = [_short(value / divisor, config) for value in polynomial.values()]
    if all(share is not None for share in shares):
      exact = {tuple(map(int, powers)): share for powers, share in zip(polynomial, shares, strict=True)
               if share is not None}
      lead, found = _factored(tuple(sorted(exact.items())))
      return divisor * float(lead), found
  return None


def _short(value: float, config: FactoringConfig) -> fractions.Fraction | None:
  """The ratio of small whole numbers, or the number of few digits, that a value is to its last digits."""
  for share in (fractions.Fraction(value).limit_denominator(config.max_denominator),
                fractions.Fraction(f"{value:.{config.num_digits}g}")):
    if abs(float(share) - value) <= config.missed * abs(value):
      return share
  return None


@functools.lru_cache(maxsize=256)
def _factored(terms: Terms) -> tuple[fractions.Fraction, Factors]:
  lead, found = sympy_trees.factor(terms)
  return lead, [(dict(each), count) for each, count in found]


def product(found: Iterable[tuple[Rational, int]]) -> Node:
  """Of powers of factors, each in few nodes."""
  return tidy(chain("*", [number(1.0), *(
    power(collected(each), number(float(count))) for each, count in found if count)]))


def collected(polynomial: Rational, *, depth: int = 2) -> Node:
  """By powers of the variable that leaves the fewest nodes, with the coefficients factored, or as it is."""
  plain = polynomials.to_node({powers: float(share) for powers, share in polynomial.items()})
  if depth == 0 or len(polynomial) < 4:
    return plain
  places = [place for place, column in enumerate(zip(*polynomial, strict=True)) if len(set(column)) > 1]
  return min([plain, *(_by_powers(polynomial, place, depth) for place in places)], key=complexity)


def _by_powers(polynomial: Rational, place: int, depth: int) -> Node:
  by_power: dict[int, Rational] = {}
  for powers, share in polynomial.items():
    others = (*powers[:place], 0, *powers[place + 1:])
    by_power.setdefault(powers[place], {})[others] = share
  terms: list[Node] = []
  for exponent, rest in by_power.items():
    lead, found = _factored(tuple(sorted(rest.items())))
    own = tuple(float(exponent) if i == place else 0.0 for i in range(len(next(iter(rest)))))
    terms.append(chain("*", [
      polynomials.node_of(own), number(float(lead)),
      *(power(collected(each, depth=depth - 1), number(float(count))) for each, count in found)]))
  return tidy(chain("+", terms))


def to_node(some: Polynomial, config: FactoringConfig = DEFAULT.rationals.factoring) -> Node:
  """In few nodes: factored where that is shorter."""
  plain = polynomials.to_node(some)
  found = factors(some, config) if len(some) > 2 else None
  if found is None:
    return plain
  return min(plain, tidy(Node("*", (product(found[1]), number(found[0])))), key=complexity)


def quotient(above: Polynomial, below: Polynomial, config: FactoringConfig) -> Node | None:
  """above/below, both factored; None where a coefficient is no ratio of short numbers."""
  parts = [factors(each, config) for each in (above, below)]
  if parts[0] is None or parts[1] is None:
    return None
  (top, over), (bottom, under) = parts[0], parts[1]
  return tidy(chain("*", [product(over), Node("inv", (product(under),)), number(top / bottom)]))


def root(above: Polynomial, below: Polynomial, config: FactoringConfig) -> Node | None:
  """sqrt(above/below) but for signs, with what divides them twice before the root; None as in `quotient`."""
  parts = [factors(each, config) for each in (above, below)]
  if parts[0] is None or parts[1] is None:
    return None
  (top, over), (bottom, under) = parts[0], parts[1]
  counts = [*over, *((each, -count) for each, count in under)]
  odd = [(each, count) for each, count in counts if count % 2]
  size = top / bottom
  if size < 0 and odd:
    odd[0] = {powers: -share for powers, share in odd[0][0].items()}, odd[0][1]
  if len(odd) == 1 and abs(odd[0][1]) > 1:  # a**1.5, not a*sqrt(a)
    roots = [power(collected(odd[0][0]), number(0.5 * odd[0][1]))]
  else:
    counts = [(each, count - count % 2 * (1 if count > 0 else -1)) for each, count in counts]
    roots = [Node("sqrt", (product((each, 1 if count > 0 else -1) for each, count in odd),))]
  outside = product((each, count // 2) for each, count in counts if count % 2 == 0)
  return tidy(chain("*", [number(math.sqrt(abs(size))), outside, *roots]))
