"""What a formula's value would become if the value at one of its places changed: derivatives by every subtree.

Reverse accumulation over the tree by NumPy, with the slopes of the operator table.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from symformer_jax.language import expression, operators
from symformer_jax.language.expression import Node


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
  arguments = [arg.values for arg in tree.args]
  for i, arg in enumerate(tree.args):
    slope = operators.BY_NAME[tree.node.token].numpy_slopes[i](tree.values, *arguments)
    # Where the value is undefined the slope may be a number, as that of a logarithm below 0.
    yield from _walk((*path, i), arg, np.where(np.isfinite(tree.values), adjoint * slope, np.nan))
