"""Columns of functions that no model knows, for those who ask for them: steps, kinks, hyperbolic functions."""

from collections.abc import Iterator
import itertools

import numpy as np

from symformer_jax.language import expression, operators
from symformer_jax.language.expression import Node, number
from symformer_jax.sources.sums.families import BASIC, Family, Space

_HYPERBOLIC, _OF_TWO = ("tanh", "sinh", "cosh"), ("min", "max")


def make_families(space: Space) -> Iterator[Family]:
  """The functions that are asked for, of each variable, and times and over each other one; of few variables also of
  products of two; of two arguments the pairs of variables, and of few also of their squares, inverses and sines.
  """
  wanted = [token for token in (*_HYPERBOLIC, "abs", "sign", *_OF_TWO) if token in space.requested]
  for variable in space.variables if wanted else ():
    others = [other for other in space.variables if other != variable] if space.is_of_few else []
    factors = [*others, *(Node("inv", (other,)) for other in others)]
    for token in wanted:
      nodes = list(_of_variable(token, variable, expression.evaluate(variable, space.x), space))
      values = np.stack([expression.evaluate(node, space.x) for node in nodes], axis=1)
      family = Family(values, nodes.__getitem__, BASIC)
      yield family
      for factor in factors:
        yield Family(values * expression.evaluate(factor, space.x)[:, None],
                     lambda g, factor=factor, nodes=nodes: Node("*", (factor, nodes[g])))
  for token, product in itertools.product(wanted, _products(space) if wanted else ()):
    nodes = list(_of_variable(token, product, expression.evaluate(product, space.x), space))
    yield Family(np.stack([expression.evaluate(node, space.x) for node in nodes], axis=1), nodes.__getitem__)
  yield from _of_pairs(wanted, space)


def _products(space: Space) -> list[Node]:
  """Products and quotients of two of few variables."""
  pairs = list(itertools.combinations(space.variables, 2)) if space.is_of_few else []
  return [Node("*", (v, other)) for v, w in pairs for other in (w, Node("inv", (w,)))]


def _bent(variable: Node) -> list[Node]:
  """What a variable may be compared with beside others."""
  return [Node("pow2", (variable,)), Node("inv", (variable,)), Node("sin", (variable,)), Node("cos", (variable,))]


def _of_variable(token: str, variable: Node, u: np.ndarray, space: Space) -> Iterator[Node]:
  """token(c*v) and tanh((v - m)/s); of kinks and steps token(v - m), min(v, m), at places within the data."""
  config, spread = space.config, np.ptp(u)
  places = u.min() + spread * np.linspace(0.0, 1.0, config.num_places + 2)[1:-1]
  if token in _HYPERBOLIC:
    for rate in (*config.integers, *np.geomspace(*config.rates) / np.max(np.abs(u))):
      yield Node(token, (Node("*", (variable, number(rate))),))
  if token == "tanh":
    for place, width in itertools.product(places, spread * np.geomspace(*config.widths)):
      moved = Node("+", (variable, number(-place)))
      yield Node(token, (Node("*", (moved, number(1 / width))),))
  elif token in _OF_TWO:
    yield from (Node(token, (variable, number(place))) for place in places)
  elif token not in _HYPERBOLIC:
    yield from (Node(token, (Node("+", (variable, number(-place))),)) for place in (0.0, *places))


def _multiples(v: Node, w: Node, space: Space) -> list[Node]:
  """w, and of few variables c*w, c such that some rows lie on either side of v = c*w."""
  if not space.is_of_few:
    return [w]
  with np.errstate(all="ignore"):
    ratios = expression.evaluate(v, space.x) / expression.evaluate(w, space.x)
  ratios = ratios[np.isfinite(ratios)]
  shares = np.linspace(0.0, 1.0, space.config.num_places + 2)[1:-1]
  factors = np.unique(np.quantile(ratios, shares)) if len(ratios) else ()
  return [w, *(Node("*", (w, number(float(factor)))) for factor in factors if factor)]


def _of_pairs(wanted: list[str], space: Space) -> Iterator[Family]:
  """min(v, c*w), |v - c*w|, tanh(v*w) and the like of all pairs, where these are not too many."""
  pairs = list(itertools.combinations(space.variables, 2))
  if not wanted or len(pairs) > space.config.max_pairs:
    return
  nodes = []
  for token, (v, w) in itertools.product(wanted, pairs):
    if token in _HYPERBOLIC:
      ratios = (Node("*", (v, w)), Node("*", (v, Node("inv", (w,)))), Node("*", (w, Node("inv", (v,)))))
      nodes += [Node(token, (ratio,)) for ratio in ratios]
    else:
      nodes += [_of_two(token, v, other) for other in _multiples(v, w, space)]
  if space.is_of_few:
    kinked = [token for token in wanted if token not in _HYPERBOLIC]
    nodes += [_of_two(token, bent, other) for token in kinked for w in space.variables for v in space.variables
              for bent in _bent(v) for other in _multiples(bent, w, space)]
  if nodes:
    values = np.stack([expression.evaluate(node, space.x) for node in nodes], axis=1)
    yield Family(values, nodes.__getitem__, BASIC, is_mixed=True)


def _of_two(token: str, v: Node, w: Node) -> Node:
  is_of_two = operators.BY_NAME[token].arity == 2
  return Node(token, (v, w) if is_of_two else (Node("+", (v, Node("neg", (w,)))),))
