"""Small simplifications that keep a formula's shape.

`language.canonical` multiplies products of sums out, which is right for training data; an answer should stay as
compact as it was found: `a*(1 - exp(-b*x))` is no better as `a - a*exp(-b*x)`, with one more constant to fit.
"""

import functools
import math

import numpy as np

from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, flatten, negate, number, power, sort_key

_NO_POINT = np.zeros((1, 1))


# Trees share most of their parts, and many are tidied again and again: 16 thousand of them take some ten megabytes.
@functools.lru_cache(maxsize=1 << 14)
def tidy(node: Node) -> Node:
  """Folds numbers, drops neutral operands, joins numeric factors and sums, and orders operands.

  Args:
    node: a tree without named constants.
  Returns:
    A tree of the same value wherever the given one is defined; a part that is not finite is kept as it is.
  """
  if not node.args:
    return node
  node = node._replace(args=tuple(tidy(arg) for arg in node.args))
  if all(arg.is_number for arg in node.args):
    value = float(expression.evaluate(node, _NO_POINT)[0])
    return number(value) if math.isfinite(value) else node
  if node.token == "+":
    return tidy_sum(flatten(node, "+"))
  if node.token == "*":
    return tidy_product(flatten(node, "*"))
  if node.token == "neg":
    return _negated(node.args[0])
  if node.token == "inv":
    return _tidy_inverse(node)
  if node.token == "sqrt":
    return _tidy_root(node)
  if node.token in ("pow2", "pow3") and node.args[0].token == "sqrt":
    return power(node.args[0].args[0], number(0.5 * int(node.token[-1])))
  if node.token == "pow" and node.args[1].is_number:
    return _tidy_power(node.args[0], node.args[1].value)
  return node


def _negated(node: Node) -> Node:
  """-(2*a + 3) -> -2*a - 3; a sum of several terms without a number in them keeps its sign in front."""
  terms = flatten(node, "+")
  num_bare = sum(not term.is_number and split_factor(term) == (tuple(flatten(term, "*")), 1.0) for term in terms)
  if len(terms) == 1 or num_bare > 1:
    return negate(node)
  return tidy_sum([negate(term) if term.is_number else tidy_product([*flatten(term, "*"), number(-1)])
                   for term in terms])


def _tidy_power(base: Node, exponent: float) -> Node:
  """(1/a)**p -> a**(-p), sqrt(a)**p -> a**(p/2), exp(a)**p -> exp(p*a)"""
  if exponent == 0:
    return number(1)
  if base.token == "exp":
    return power_of_exponential(base, exponent)
  if base.token == "inv":
    return _tidy_power(base.args[0], -exponent)
  if base.token == "sqrt":
    return _tidy_power(base.args[0], 0.5 * exponent)
  return power(base, number(exponent))


def power_of_exponential(node: Node, exponent: float) -> Node:
  """exp(a)**p as exp(p*a), of a sum and -1 term by term."""
  [inner] = node.args
  if inner.token == "+" and exponent == -1:
    return Node("exp", (tidy_sum([tidy_product([*flatten(term, "*"), number(-1)]) for term in flatten(inner, "+")]),))
  return Node("exp", (tidy_product([*flatten(inner, "*"), number(exponent)]),))


def _tidy_inverse(node: Node) -> Node:
  """1/(1/a) -> a, 1/exp(a) -> exp(-a), and 1/(c*a) -> (1/c)/a: the constant of a law is read above the line."""
  inner = node.args[0]
  if inner.token == "exp":
    return power_of_exponential(inner, -1.0)
  if inner.token == "inv":
    return inner.args[0]
  factors = flatten(inner, "*")
  if factors[-1].is_number and math.isfinite(1 / factors[-1].value):
    return tidy_product([Node("inv", (chain("*", factors[:-1]),)), number(1 / factors[-1].value)])
  return node


def _tidy_root(node: Node) -> Node:
  """sqrt(9*a**4) -> 3*a**2: of fourth powers, which have no sign to lose; sqrt(exp(a)) -> exp(0.5*a)."""
  if node.args[0].token == "exp":
    return power_of_exponential(node.args[0], 0.5)
  parts, factor = split_factor(node.args[0])
  is_fourth = all(part.token == "pow" and part.args[1].is_number and part.args[1].value % 4 == 0 for part in parts)
  if not (is_fourth and parts and factor >= 0 and math.isfinite(factor)):
    return node
  return tidy_product([*(power(part.args[0], number(part.args[1].value / 2)) for part in parts),
                       number(math.sqrt(factor))])


def tidy_sum(terms: list[Node]) -> Node:
  """The sum of tidy terms, those that are alike joined, its number last."""
  constant = sum(t.value for t in terms if t.is_number)
  rest = sorted(_join_like_terms([t for t in terms if not t.is_number]), key=sort_key)
  return chain("+", [*rest, number(constant)] if constant or not rest else rest)


def split_factor(term: Node) -> tuple[tuple[Node, ...], float]:
  """The factors of a term that are no numbers, and the product of those that are."""
  bare, factor = (term.args[0], -1.0) if term.token == "neg" else (term, 1.0)
  parts = flatten(bare, "*")
  return tuple(part for part in parts if not part.is_number), factor * math.prod(
    part.value for part in parts if part.is_number)


def _join_like_terms(terms: list[Node]) -> list[Node]:
  """a*t + b*t -> (a + b)*t; terms that occur once, or whose factors do not add up to a number, stay as they are."""
  alike: dict[tuple[Node, ...], list[tuple[Node, float]]] = {}
  for term in terms:
    parts, factor = split_factor(term)
    alike.setdefault(parts, []).append((term, factor))
  joined = []
  for parts, each in alike.items():
    total = sum(factor for _, factor in each)
    if len(each) == 1 or not parts or not math.isfinite(total):
      joined += [term for term, _ in each]
    elif total:
      joined.append(tidy_product([*parts, number(total)]))
  return joined


def tidy_product(factors: list[Node]) -> Node:
  """The product of tidy factors, exponentials joined, its number last."""
  constant, rest = 1.0, []
  for factor in factors:
    while factor.token == "neg":
      constant, factor = -constant, factor.args[0]
    if factor.is_number:
      constant *= factor.value
    else:
      rest.append(factor)
  if constant == 0 or not rest:
    return number(constant)
  exponents = [factor.args[0] for factor in rest if factor.token == "exp"]
  if len(exponents) > 1:
    joined = tidy_sum([term for exponent in exponents for term in flatten(exponent, "+")])
    return tidy_product([*(f for f in rest if f.token != "exp"), tidy(Node("exp", (joined,))), number(constant)])
  rest.sort(key=sort_key)
  if constant == -1:
    return _negated(chain("*", rest))
  return chain("*", rest if constant == 1 else [*rest, number(constant)])
