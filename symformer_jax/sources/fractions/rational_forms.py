"""How a person would write a rational function: reduced, factored, or as a sum of fractions."""

from collections.abc import Iterator, Sequence
import itertools
from typing import Any

import numpy as np

from symformer_jax.engine.config import DEFAULT, RationalsConfig
from symformer_jax.language.expression import Node, chain, complexity, flatten, number, power
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.fractions import polynomials
from symformer_jax.sources.fractions.polynomials import Polynomial, Powers
from symformer_jax.sources.fractions.rational_fits import Fraction, nats


def written(
  fraction: Fraction, sizes: np.ndarray, y_size: float, *, config: RationalsConfig = DEFAULT.rationals
) -> list[Node]:
  """P/Q over x and y in the user's units: with 1 before the highest power below the line, or with simple numbers.

  Args:
    fraction: over x divided by sizes [D], of y divided by its size.
  """
  above = {powers: c * y_size for powers, c in polynomials.rescaled(fraction.numerator, sizes).items()}
  below = polynomials.rescaled(fraction.denominator, sizes)
  divisors = [_leading(below)]
  if fraction.is_exact:  # else coefficients have too few digits to tell
    divisors = _simplest_divisors([*below.values(), *above.values()], divisors[0], config)
  return [_quotient(*({powers: c / divisor for powers, c in each.items()} for each in (above, below)))
          for divisor in divisors]


def _simplest_divisors(coefficients: list[float], usual: float, config: RationalsConfig) -> list[float]:
  """What leaves most of the coefficients simple: 1, which is not written, or a number of three digits; and the usual
  one, unless it leaves two fewer."""
  def worth(divisor: float) -> int:
    rest = np.abs(np.array(coefficients) / divisor)
    digits = 10 ** (2 - np.floor(np.log10(rest)))
    is_short = np.abs(rest - np.round(rest * digits) / digits) <= config.missed * rest
    return int(np.sum(is_short) + np.sum(np.abs(rest - 1) <= config.missed))
  divisors = [usual, *(c / multiple for multiple in range(1, config.max_multiple + 1) for c in coefficients)]
  best = max(divisors, key=worth)  # of equals the first
  return [best] if best == usual or worth(best) > worth(usual) + 1 else [usual, best]


def _quotient(above: Polynomial, below: Polynomial) -> Node:
  if len(below) == 1:  # a sum of powers needs no line
    (divisor, lead), = below.items()
    return tidy(chain("+", [
      Node("*", (polynomials.node_of(tuple(p - q for p, q in zip(powers, divisor, strict=True))), number(c / lead)))
      for powers, c in above.items()]))
  return tidy(chain("*", [polynomials.to_node(above), Node("inv", (polynomials.to_node(below),))]))


class Fractions:
  """Sums of fractions whose denominators are factors of one.

  Attributes:
    factors: of the denominator, different ones; counts: how often each divides it.
  """

  def __init__(
    self, fraction: Fraction, x: np.ndarray, *, tolerance: float, config: RationalsConfig = DEFAULT.rationals
  ):
    """Args: x: points [N, D] that the fraction is over; tolerance: see `polynomials.factors`."""
    found, rest = polynomials.factors(fraction.denominator, x, tolerance=tolerance, num_rows=config.num_root_rows)
    if len(rest) > 1:
      found.append(rest)
    self._x, self._fraction, self._config = x, fraction, config
    whole = fraction.denominator
    keys = [tuple(sorted(factor.items())) for factor in found]
    self.factors = [dict(key) for key in dict.fromkeys(keys)]
    self.counts = [keys.count(key) for key in dict.fromkeys(keys)]
    self._lines = [*self.factors, whole] if len(self.factors) > 1 else self.factors

  @property
  def is_product(self) -> bool:
    return sum(self.counts) > 1

  def product(self, sizes: np.ndarray, y_size: float, weights: np.ndarray, y: np.ndarray) -> Node | None:
    """The numerator over the product of the factors; a multiple brings it near y. None where a factor, whose root is
    that of several rows at once, vanishes on a row."""
    below = [polynomials.rescaled(factor, sizes) for factor in self.factors]
    values = np.prod([polynomials.values(factor, self._x) ** count
                      for factor, count in zip(self.factors, self.counts, strict=True)], axis=0)
    above = polynomials.table(list(self._fraction.numerator), self._x) / values[:, None]
    if not np.all(np.isfinite(above)):
      return None
    coefficients = _least_squares(above, y, weights)
    leading = [_leading(factor) for factor in below]
    scale = float(y_size / np.prod([lead**count for lead, count in zip(leading, self.counts, strict=True)]))
    numerator = polynomials.rescaled(dict(zip(self._fraction.numerator, coefficients, strict=True)), sizes)
    parts = [power(polynomials.to_node({p: c / lead for p, c in factor.items()}), number(count))
             for factor, lead, count in zip(below, leading, self.counts, strict=True)]
    above_node = polynomials.to_node({p: c * scale for p, c in numerator.items()})
    return tidy(Node("*", (above_node, Node("inv", (chain("*", parts),)))))

  def columns(self, monomials: Sequence[Powers]) -> tuple[np.ndarray, list[tuple[Powers, int, int]]]:
    """Values [N, P] of monomials, alone, over each power of each factor and over the denominator as it is; what
    each is: (monomial, factor, exponent), where an exponent of 0 stands for none."""
    above = polynomials.table(monomials, self._x)
    parts, what = [above], [(powers, 0, 0) for powers in monomials]
    for i, (line, count) in enumerate(zip(self._lines, [*self.counts, 1], strict=False)):
      below = polynomials.values(line, self._x)
      for exponent in range(1, count + 1):
        parts.append(above / below[:, None] ** exponent)
        what += [(powers, i, exponent) for powers in monomials]
    return np.concatenate(parts, axis=1), what

  def node(
    self, what: Sequence[tuple[Powers, int, int]], coefficients: np.ndarray, sizes: np.ndarray, y_size: float
  ) -> Node:
    """The sum of some of the columns: those over one denominator above one line."""
    terms: list[Node] = []
    by_factor: dict[tuple[int, int], dict[Powers, float]] = {}
    for (powers, factor, exponent), coefficient in zip(what, coefficients, strict=True):
      by_factor.setdefault((factor, exponent), {})[powers] = float(coefficient)
    for (factor, exponent), polynomial in by_factor.items():
      above = polynomials.rescaled({p: c * y_size for p, c in polynomial.items()}, sizes)
      if not exponent:
        terms += [Node("*", (polynomials.node_of(p), number(c))) for p, c in above.items()]
        continue
      below = polynomials.rescaled(self._lines[factor], sizes)
      lead = _leading(below)
      if self._fraction.is_exact and exponent == 1:
        lead = _simplest_divisors([*below.values(), *above.values()], lead, self._config)[-1]
      line = power(polynomials.to_node({p: c / lead for p, c in below.items()}), number(exponent))
      terms.append(Node("*", (polynomials.to_node({p: c / lead**exponent for p, c in above.items()}),
                              Node("inv", (line,)))))
    return tidy(chain("+", [term for each in terms for term in flatten(tidy(each), "+")]))


def _leading(polynomial: Polynomial) -> float:
  """The coefficient of its highest power."""
  return polynomial[max(polynomial, key=lambda powers: (sum(powers), powers))]


def sums_of_fractions(
  fraction: Fraction, x: np.ndarray, y: np.ndarray, weights: np.ndarray, sizes: np.ndarray, y_size: float,
  config: RationalsConfig,
) -> list[Node]:
  """The fraction with factors below the line, and as sums of few fractions of these, the shortest first.

  Args:
    x [N, D], y [N]: of sizes about 1; weights [N]; sizes [D], y_size: what they were divided by.
  """
  tolerance = config.equal_roots if fraction.is_exact else config.near_roots
  parts = Fractions(fraction, x, tolerance=tolerance, config=config)
  if not parts.factors:
    return []
  product = parts.product(sizes, y_size, weights, y) if parts.is_product else None
  nodes = [product] if product is not None else []
  for degree in config.sum_degrees[min(x.shape[1], len(config.sum_degrees)) - 1]:
    made, is_exact = _sums(parts, _products(x.shape[1], degree), fraction, y, weights, sizes, y_size, config)
    nodes += made
    if is_exact or not fraction.is_exact:
      break
  return nodes


def _sums(
  parts: Fractions, monomials: Sequence[Powers], fraction: Fraction, y: np.ndarray, weights: np.ndarray,
  sizes: np.ndarray, y_size: float, config: RationalsConfig,
) -> tuple[list[Node], bool]:
  """Sums of few of the parts with these monomials above the line, and whether some are exact: then these alone."""
  values, what = parts.columns(monomials)
  usable = np.flatnonzero(np.all(np.isfinite(values), axis=0))
  variance = float(np.average((y - np.average(y, weights=weights)) ** 2, weights=weights))

  def node_of(chosen: np.ndarray) -> Node:
    coefficients = _least_squares(values[:, chosen], y, weights)
    return parts.node([what[i] for i in chosen], coefficients, sizes, y_size)

  ranked: list[tuple[float, np.ndarray]] = []
  for sets, errors in _few_columns(values[:, usable], y, weights, config):
    shares, chosen = errors / variance, [usable[each] for each in sets]
    if fraction.is_exact and np.min(shares) < config.exact:
      made = (node_of(each) for each, share in zip(chosen, shares, strict=True) if share < config.exact)
      return sorted(made, key=complexity)[: config.num_sums], True
    ranked += [(nats(share, len(each), len(y)), each)
               for each, share in zip(chosen, shares, strict=True) if share > config.too_near]
  if fraction.is_exact:
    return [], False
  return [node_of(each) for _, each in sorted(ranked, key=lambda pair: pair[0])[: config.num_sums]], False


def _products(num_variables: int, degree: int) -> list[Powers]:
  """All monomials up to a total degree."""
  return [tuple(map(float, np.bincount(chosen, minlength=num_variables)) if chosen else (0.0,) * num_variables)
          for size in range(degree + 1)
          for chosen in itertools.combinations_with_replacement(range(num_variables), size)]


def _least_squares(columns: np.ndarray, target: np.ndarray, weights: np.ndarray) -> np.ndarray:
  root = np.sqrt(weights)
  norms = np.linalg.norm(columns, axis=0)
  norms[norms == 0] = 1
  return np.linalg.lstsq(root[:, None] * columns / norms, root * target, rcond=None)[0] / norms


def _few_columns(
  columns: np.ndarray, target: np.ndarray, weights: np.ndarray, config: RationalsConfig
) -> Iterator[tuple[list[list[int]], np.ndarray]]:
  """Sets of one column, of two, ..., whose sums come nearest: selected forward, many carried along.

  Each set keeps what its columns leave of the target and of all columns, so that a step is one product.
  Yields:
    `(sets, weighted mean squared errors)` of each size, the nearest first.
  """
  root = np.sqrt(weights / np.sum(weights))
  matrix = root[:, None] * columns
  norms = np.linalg.norm(matrix, axis=0)
  triangle: Any = np.linalg.qr(np.column_stack([matrix / np.where(norms > 0, norms, 1), root * target]), mode="r")
  left = triangle[None]
  sets: list[tuple[int, ...]] = [()]
  for _ in range(min(config.max_fractions, len(target) // (2 * config.rows_per_constant))):  # with one below the line
    lengths = np.linalg.norm(left[:, :, :-1], axis=1)
    is_new = lengths > config.independent
    directions = left[:, :, :-1] / np.where(is_new, lengths, np.inf)[:, None]
    gains = np.einsum("brp,br->bp", directions, left[:, :, -1]) ** 2
    losses = np.where(is_new, np.sum(left[:, :, -1] ** 2, axis=1)[:, None] - gains, np.inf)
    chosen: dict[tuple[int, ...], tuple[int, int]] = {}
    for flat in np.argsort(losses, axis=None, kind="stable")[: config.looks_per_set * config.num_carried]:
      place, column = divmod(int(flat), is_new.shape[1])
      if is_new[place, column]:  # a set comes as often as it has columns
        chosen.setdefault(tuple(sorted((*sets[place], column))), (place, column))
    if not chosen:
      return
    sets = list(chosen)[: config.num_carried]
    places, added = np.array([chosen[each] for each in sets]).T
    direction = directions[places, :, added]
    left = left[places] - direction[:, :, None] * np.einsum("br,brp->bp", direction, left[places])[:, None]
    yield [list(each) for each in sets], np.sum(left[:, :, -1] ** 2, axis=1)
