"""Trees as padded programs of the base vocabulary, to be fitted in the user's units.

Unlike `expression.encode`, any finite constant is a C token with its raw value: user's units know no bounds.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from symformer_jax.language import constants as constants_lib
from symformer_jax.language.expression import VARIABLE, Node, number, walk
from symformer_jax.language.operators import REQUESTED
from symformer_jax.language.vocabulary import Vocabulary

# Tokens of a program: one compiled shape, and longer formulas are none that a person would read.
MAX_TOKENS = 64


def base_vocabulary(num_variables: int, *, has_requested: bool = False) -> Vocabulary:
  """The vocabulary of these programs: one constant token, its value beside it.

  With the operators that no model knows where a formula has one (`has_requested`): code is compiled for them alone.
  """
  return Vocabulary(num_variables, "base", has_requested)


def has_requested(nodes: Iterable[Node]) -> bool:
  """Whether a formula has an operator that no model knows."""
  return any(n.token in REQUESTED for node in nodes for n in walk(node))


def encode_programs(
  nodes: Sequence[Node], vocab: Vocabulary, *, num_programs: int, length: int
) -> tuple[np.ndarray, np.ndarray]:
  """Writes K trees as `(ids [num_programs, length] int32, values [num_programs, length] float64)`.

  Rows beyond the trees hold the program `0`, which costs next to nothing to fit.
  Args:
    nodes: at most `num_programs` trees of at most `length` nodes.
    vocab: see `base_vocabulary`.
  """
  ids, values = np.zeros((num_programs, length), np.int32), np.zeros((num_programs, length))
  for k in range(num_programs):
    for i, n in enumerate(walk(nodes[k] if k < len(nodes) else number(0))):
      if is_constant(n):
        ids[k, i], values[k, i] = vocab.first_constant_id, n.value
      elif n.is_number:
        ids[k, i] = vocab.zero_id + int(n.value)
      else:
        ids[k, i] = vocab.ids[f"x{n.value}" if n.token == VARIABLE else n.token]
  return ids, values


def size(node: Node) -> int:
  """Tokens of a tree's program."""
  return sum(1 for _ in walk(node))


def skeleton(node: Node) -> tuple:
  """The tree's tokens with its constants left out: equal for trees that differ in fitted values alone."""
  def key(n: Node) -> Any:
    if is_constant(n):
      return "C"
    return n.token, n.value
  return tuple(key(n) for n in walk(node))


def is_constant(node: Node) -> bool:
  """Whether a node is a number to be fitted: the integers that are tokens of their own are not."""
  return node.is_number and not constants_lib.is_small_integer(node.value)


def fitted_values(node: Node) -> list[float]:
  """The constants of a tree in prefix order: its numbers, save the integers that are tokens of their own."""
  return [n.value for n in walk(node) if is_constant(n)]


def replace_values(node: Node, values: Sequence[float]) -> Node:
  """The tree with its constants (see `fitted_values`) replaced."""
  return _replaced(node, iter(values))


def _replaced(node: Node, values: Iterator[float]) -> Node:
  if is_constant(node):
    return number(next(values))
  return node._replace(args=tuple(_replaced(arg, values) for arg in node.args)) if node.args else node
