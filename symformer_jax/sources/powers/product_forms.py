"""Product units as formulas."""

from collections.abc import Callable, Sequence
import functools
import math

import numpy as np

from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, inverse, number
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.monomials import to_node
from symformer_jax.sources.powers import product_fits
from symformer_jax.sources.powers.product_fits import Fits, Layout, Starts

# Exponents that differ from a number of four digits by no more than single precision are that; logarithms of factors
# are no larger.
_ROUNDING, _LARGEST_LOG = 1e-6, 600.0


def _plus(value: float, node: Node) -> Node:
  return Node("+", (node, number(value)))


# How the functions of `product_fits.FUNCTIONS` are written, but for a factor and a constant.
WRITTEN: dict[str, Callable[[Node], Node]] = {
  "exp": lambda n: Node("exp", (n,)),
  "inv": lambda n: inverse(_plus(1, n)),
  "sqrt": lambda n: Node("sqrt", (_plus(1, n),)),
  "inv_sqrt": lambda n: inverse(Node("sqrt", (_plus(1, n),))),
  "ln": lambda n: Node("ln", (_plus(1, n),)),
  "pure_ln": lambda n: Node("ln", (n,)),
  "tanh": lambda n: inverse(_plus(1, Node("exp", (Node("*", (n, number(2))),)))),
  "atan": lambda n: Node("atan", (n,)),
  "bose": lambda n: inverse(_plus(-1, Node("exp", (n,)))),
  "cos": lambda n: Node("cos", (n,)),
  product_fits.POWER: lambda n: Node("pow", (n, number(0.7))),  # for any exponent
}


def _digits(exponent: float) -> float:
  rounded = round(exponent, 4)
  return rounded if abs(exponent - rounded) < _ROUNDING else float(exponent)


def operators(name: str) -> frozenset[str]:
  """What a function of `product_fits.FUNCTIONS` is written with, a wave with its sine."""
  found = {node.token for node in expression.walk(WRITTEN[name](expression.variable(0))) if node.args}
  return frozenset(found | ({"sin"} if name == "cos" else set()))


class Columns:
  """Columns whose powers products are made of.

  Args:
    columns: their numbers [M]; x: all rows that count [N, D], in these not 0.
    means, deviations: of their logarithms where they were fitted [M].
    largest: exponents that are larger are none that a formula has.
  """

  def __init__(
    self, columns: Sequence[int], x: np.ndarray, means: np.ndarray, deviations: np.ndarray, *, largest: float
  ):
    self._columns, self._means, self._deviations, self._largest = columns, means, deviations, largest
    self._is_negative = np.any(x[:, columns] < 0, axis=0)

  def terms(self, starts: Starts, fits: Fits, i: int, layout: Layout) -> list[Node]:
    """The linear terms of a fit, but for the constant; none where a product is not defined."""
    found: list[Node] = []
    width, at = len(self._columns), 0
    for k, (outer, inner) in enumerate(layout.places(width)):
      products = [self._product(fits.parameters[i, each.start : each.start + width]) for each in (outer, *inner)]
      signs, at = starts.sign[i, at : at + len(products)], at + len(products)
      if not starts.is_used[i, k]:
        continue
      defined = [each for each in products if each is not None]
      if len(defined) < len(products):
        return []
      (factor, _), *others = defined
      if not inner:
        found.append(factor)
        continue
      name = list(product_fits.FUNCTIONS)[int(starts.function[i])]
      logs, write = fits.parameters[i, [each.stop - 1 for each in inner]], WRITTEN[name]
      if name == product_fits.POWER:
        if abs(logs[0]) > self._largest:
          return []
        write, logs[0] = functools.partial(expression.power, exponent=number(_digits(float(logs[0])))), 0.0
      logs -= [size for _, size in others]
      if name == product_fits.POWER:
        logs -= logs[0]
      argument = chain("+", [Node("*", (node, number(float(sign * math.exp(min(log, _LARGEST_LOG))))))
                             for (node, _), sign, log in zip(others, signs[1:], logs, strict=True)])
      found += [Node("*", (factor, Node("sin", (argument,)))) if name == "cos" else factor,
                Node("*", (factor, write(argument)))]
    return [node for node in found if not tidy(node).is_number]

  def _product(self, parameters: np.ndarray) -> tuple[Node, float] | None:
    """A product of powers, and the logarithm of its size where all logarithms are at their means; None where it is
    undefined for a row, or an exponent is too large.
    """
    powers = parameters / self._deviations
    powers = np.array([_digits(each) for each in powers])
    whole = np.round(powers)
    if np.any(self._is_negative & (np.abs(powers - whole) > _ROUNDING)) or np.max(np.abs(powers)) > self._largest:
      return None
    monomial = tuple((c, float(p)) for c, p in zip(self._columns, powers, strict=True) if p)
    return to_node(monomial), float(powers @ self._means)


def fitted_sum(
  terms: Sequence[Node], x: np.ndarray, z: np.ndarray, weights: np.ndarray, *, most_growth: float, exact: float
) -> Node | None:
  """The sum of those of some terms, and of a constant, that count, with the factors that fit a target best; None where
  a term is undefined.

  Args:
    x: [N, D], z: the target [N], weights: [N].
    most_growth: what one term less may leave more, in shares of a degree of freedom; exact: shares of the target's
      variance that are none.
  """
  columns = [np.broadcast_to(expression.evaluate(node, x), len(z)) for node in terms]
  values = np.stack([*columns, np.ones(len(z))], axis=1)
  sizes = np.max(np.abs(values), axis=0)
  if not (np.all(np.isfinite(values)) and np.all(sizes > 0)):
    return None
  root = np.sqrt(weights / np.sum(weights))
  design, goal = root[:, None] * values / sizes, root * z
  spread = float(np.sum((goal - root * (root @ goal)) ** 2))

  def fitted(some: list[int]) -> tuple[np.ndarray, float]:
    factors = np.linalg.lstsq(design[:, some], goal, rcond=None)[0]
    return factors / sizes[some], float(np.sum((goal - design[:, some] @ factors) ** 2)) / spread

  some = list(range(len(sizes)))
  factors, left = fitted(some)
  while len(some) > 1:
    tried = [[j for j in some if j != out] for out in some]
    fits = [fitted(each) for each in tried]
    best = min(range(len(fits)), key=lambda j: fits[j][1])
    if fits[best][1] > max(left * (1 + most_growth / max(len(z) - len(some), 1)), exact):
      break
    some, (factors, left) = tried[best], fits[best]
  return _sum(terms, some, factors)


def _sum(terms: Sequence[Node], places: Sequence[int], factors: np.ndarray) -> Node:
  """Terms at some places times their factors, the constant after the last; sine and cosine of an argument as one."""
  parts, of = [], dict(zip(places, map(float, factors), strict=True))
  for j in places:
    if j == len(terms):
      parts.append(number(of[j]))
      continue
    factor, function = terms[j].args if terms[j].token == "*" else (number(1), terms[j])
    if function.token == "sin" and j + 1 in of and j + 1 < len(terms):
      wave = Node("cos", (_plus(-math.atan2(of[j], of[j + 1]), function.args[0]),))
      parts.append(chain("*", [factor, wave, number(math.hypot(of[j], of[j + 1]))]))
    elif not (function.token == "cos" and j - 1 in of):  # else with its sine
      parts.append(Node("*", (terms[j], number(of[j]))))
  return tidy(chain("+", parts))
