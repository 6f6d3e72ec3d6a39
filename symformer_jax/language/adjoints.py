"""What a formula's value would become if the value at one of its places changed: derivatives by every subtree.

Reverse accumulation over the tree. Functions of one argument are differentiated by a complex step (Squire and Trapp,
1998): exact to the last digit, and nothing to write down for an operator.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from symformer_jax.language import expression, operators
from symformer_jax.language.expression import Node

# Its square is 0 beside 1, so the step changes no value.
STEP = 1e-30


class Place(NamedTuple):
  """A subtree of a formula.

  Attributes:
    path: the argument taken at each node, from the root.
    node: the subtree; values: of it [N]; adjoint: derivative of the formula by them [N].
  """

  path: tuple[int, ...]
  node: Node
  values: np.ndarray
  adjoint: np.ndarray


def places(node: Node, x: np.ndarray) -> list[Place]:
  """Every subtree in prefix order, its values and derivatives at points x [N, D]; not finite where undefined."""
  with np.errstate(all="ignore"):
    return list(_walk((), _valued(node, x), np.ones(len(x))))


def replace(node: Node, path: Sequence[int], new: Node) -> Node:
  """The formula with another subtree at a path."""
  if not path:
    return new
  args = list(node.args)
  args[path[0]] = replace(args[path[0]], path[1:], new)
  return node._replace(args=tuple(args))


class _Valued(NamedTuple):
  """A subtree with its values [N]."""

  node: Node
  values: np.ndarray
  args: tuple["_Valued", ...]


def _valued(node: Node, x: np.ndarray) -> _Valued:
  args = tuple(_valued(arg, x) for arg in node.args)
  if args:
    values = operators.BY_NAME[node.token].numpy_fn(*(arg.values for arg in args))
  else:
    values = expression.evaluate(node, x)
  return _Valued(node, values, args)


def _walk(path: tuple[int, ...], tree: _Valued, adjoint: np.ndarray) -> Iterator[Place]:
  yield Place(path, tree.node, tree.values, adjoint)
  for i, (arg, slope) in enumerate(zip(tree.args, _slopes(tree), strict=True)):
    yield from _walk((*path, i), arg, adjoint * slope)


def _slopes(tree: _Valued) -> list[np.ndarray]:
  """Derivatives by the arguments [N]."""
  arguments = [arg.values for arg in tree.args]
  match tree.node.token:
    case "+":
      return [np.ones_like(tree.values)] * 2
    case "-":
      return [np.ones_like(tree.values), -np.ones_like(tree.values)]
    case "*":
      return arguments[::-1]
    case "/":
      return [1 / arguments[1], -tree.values / arguments[1]]
    case "pow":
      base, exponent = arguments
      # As the interpreter has it: the exponent of a negative base stays where it is.
      by_exponent = np.where(base > 0, tree.values * np.log(np.where(base > 0, base, 1)), 0)
      return [exponent * base ** (exponent - 1), by_exponent]
    case "min" | "max":
      first, second = arguments
      is_first = np.sign(second - first if tree.node.token == "min" else first - second)
      return [(1 + is_first) / 2, (1 - is_first) / 2]  # of equal ones half each, as JAX has it
    case "abs":
      return [np.sign(arguments[0])]
    case "sign":
      return [0 * arguments[0]]
  if not arguments:
    return []
  slope = operators.BY_NAME[tree.node.token].numpy_fn(arguments[0] + 1j * STEP).imag / STEP
  return [np.where(np.isfinite(tree.values), slope, np.nan)]  # complex numbers have no domain
