"""Formulas as trees, and their way to token ids and back (text: parser.py, printing.py; SymPy: sympy_trees.py).

A tree is made of `Node`s. Trees that go to a model are canonical: no minus and no division (`neg`, `inv`),
powers 2, 3, 1/2, -1 by their own tokens, sums and products nested to the right with numbers last, as in the
paper's example `0.017 x + 1781.5 -> [+, *, x, C-1, C4]`.
"""

from collections.abc import Iterator, Mapping, Sequence
import functools
from typing import Any, NamedTuple

import numpy as np

from symformer_jax.errors import ExpressionError, InputError
from symformer_jax.language import constants, operators
from symformer_jax.language.vocabulary import END, PAD, START, Vocabulary

NUMBER, VARIABLE, SYMBOL, UNKNOWN = "number", "variable", "symbol", "unknown"


class Node(NamedTuple):
  """A formula or a part of one.

  Attributes:
    token: an operator's name, or `number`, `variable`, `symbol`, `unknown` for leaves.
    args: one or two children; none for leaves.
    value: a number's value, a variable's column index, a symbol's name, an unknown function's name and columns; None
      for operators.
  """

  token: str
  args: tuple["Node", ...] = ()
  value: Any = None

  @property
  def is_number(self) -> bool:
    return self.token == NUMBER


def number(value: float) -> Node:
  return Node(NUMBER, (), float(value))


def variable(index: int) -> Node:
  return Node(VARIABLE, (), index)


def symbol(name: str) -> Node:
  """A named constant without a value, as in `refine("b1*x")`."""
  return Node(SYMBOL, (), name)


def unknown(name: str, columns: tuple[int, ...]) -> Node:
  """An unknown function of columns, as the `f(x)` of a template: a leaf."""
  return Node(UNKNOWN, (), (name, columns))


def chain(token: str, nodes: Sequence[Node]) -> Node:
  """Nests operands of `+`, `*`, `min` or `max` to the right: [a, b, c] -> + a + b c."""
  return functools.reduce(lambda rest, node: Node(token, (node, rest)), reversed(nodes[:-1]), nodes[-1])


def flatten(node: Node, token: str) -> list[Node]:
  """The operands of nested sums (`+`) or products (`*`), left to right."""
  if node.token != token:
    return [node]
  return [leaf for arg in node.args for leaf in flatten(arg, token)]


def negate(node: Node) -> Node:
  if node.is_number:
    return number(-node.value)
  return node.args[0] if node.token == "neg" else Node("neg", (node,))


def plus(one: Node, other: Node) -> Node:
  return Node("+", (one, other))


def times(one: Node, other: Node) -> Node:
  return Node("*", (one, other))


def inverse(node: Node) -> Node:
  return Node("inv", (node,))


_POWER_TOKENS = {2.0: ("pow2",), 3.0: ("pow3",), 0.5: ("sqrt",), -1.0: ("inv",),
                 -2.0: ("inv", "pow2"), -3.0: ("inv", "pow3"), -0.5: ("inv", "sqrt")}


def power(base: Node, exponent: Node) -> Node:
  """`base ** exponent` with the tokens made for common exponents."""
  if exponent.is_number and exponent.value == 1:
    return base
  tokens = _POWER_TOKENS.get(exponent.value) if exponent.is_number else None
  if tokens is None:
    return Node("pow", (base, exponent))
  return functools.reduce(lambda inner, token: Node(token, (inner,)), reversed(tokens), base)


def walk(node: Node) -> Iterator[Node]:
  """All nodes in prefix order."""
  stack = [node]
  while stack:
    node = stack.pop()
    yield node
    stack.extend(node.args[::-1])


def to_tokens(node: Node) -> list[str | float]:
  """Prefix form, as files have it: operators and columns (`x0`) as text, numbers as numbers."""
  return [n.token if n.args else f"x{n.value}" if n.token == VARIABLE else n.value for n in walk(node)]


def columns_of(node: Node) -> set[int]:
  """The columns that a tree reads."""
  return {n.value for n in walk(node) if n.token == VARIABLE}


def has_column(node: Node) -> bool:
  return any(n.token == VARIABLE for n in walk(node))


def replaced(node: Node, part: Node, by: Node) -> Node:
  """The tree with another one in every place of a part."""
  if node == part:
    return by
  return node._replace(args=tuple(replaced(arg, part, by) for arg in node.args))


def with_columns(node: Node, place: Mapping[int, int]) -> Node:
  """The tree over other columns: variable i becomes variable `place[i]`."""
  if node.token == VARIABLE:
    return variable(place[node.value])
  return node._replace(args=tuple(with_columns(arg, place) for arg in node.args)) if node.args else node


def substitute(node: Node, inner: Mapping[int, Node]) -> Node:
  """With trees in place of some columns."""
  if node.token == VARIABLE:
    return inner.get(node.value, node)
  return node._replace(args=tuple(substitute(arg, inner) for arg in node.args)) if node.args else node


@functools.lru_cache(maxsize=1 << 14)  # asked of the same trees wherever formulas are compared
def complexity(node: Node) -> int:
  """Nodes of the expression tree as written out, each constant and variable one."""
  return sum(operators.BY_NAME[n.token].complexity if n.args else 1 for n in walk(node))


@functools.lru_cache(maxsize=1 << 14)
def sort_key(node: Node) -> tuple:
  """Order of operands: numbers last, then by tokens, then by values: the same for equal skeletons."""
  tokens, values = [], []
  for token, _, value in walk(node):
    tokens.append((token, value if token == VARIABLE else 0))
    if token == NUMBER:
      values.append(value)
  return node.token == NUMBER, tuple(tokens), tuple(values)


def sort_operands(node: Node) -> Node:
  """Flattens and orders all sums and products: the canonical order of training data."""
  if not node.args:
    return node
  if node.token in ("+", "*"):
    operands = [sort_operands(n) for n in flatten(node, node.token)]
    return chain(node.token, sorted(operands, key=sort_key))
  return node._replace(args=tuple(sort_operands(arg) for arg in node.args))


def evaluate(node: Node, x: np.ndarray) -> np.ndarray:
  """The formula's values by NumPy, in the precision of `x`: the judge's and the exporters' evaluation.

  Args:
    node: a tree without symbols.
    x: points [N, D].
  Returns:
    y [N]; NaN or infinite where the formula is undefined.
  Raises:
    ExpressionError: for a symbol, or a variable beyond D columns.
  """
  def value(n: Node) -> np.ndarray:
    if n.args:
      return operators.BY_NAME[n.token].numpy_fn(*(value(arg) for arg in n.args))
    if n.is_number:
      return np.asarray(n.value, x.dtype)
    if n.token == SYMBOL:
      raise ExpressionError(f"constant {n.value!r} has no value")
    if n.value >= x.shape[1]:
      raise ExpressionError(f"the formula has variable {n.value + 1}, but there are {x.shape[1]} columns")
    return x[:, n.value]

  with np.errstate(all="ignore"):  # what is undefined shows in the result
    return np.broadcast_to(value(node), x.shape[:1])


# --- ids ----------------------------------------------------------------------------------------------------


def encode(node: Node, vocab: Vocabulary) -> tuple[list[int], list[float]]:
  """Writes a tree as ids and constants, without start and end.

  Returns:
    `(ids, constants)` of equal length L; constants hold c_m at C tokens (the raw value in the base encoding,
    0 in the skeleton encoding) and 0 elsewhere.
  Raises:
    InputError: for a number that cannot be encoded or a variable beyond the vocabulary.
  """
  ids, values = [], []
  for n in walk(node):
    token, value = _token_of(n, vocab)
    if token not in vocab.ids:
      raise InputError(f"{token!r} is not in the vocabulary of {vocab.num_variables} variables")
    ids.append(vocab.ids[token])
    values.append(value)
  return ids, values


def _token_of(node: Node, vocab: Vocabulary) -> tuple[str, float]:
  if node.token == VARIABLE:
    return f"x{node.value}", 0.0
  if node.token == SYMBOL:
    raise InputError(f"constant {node.value!r} has no value and cannot be encoded")
  if not node.is_number:
    return node.token, 0.0
  if constants.is_small_integer(node.value):
    return str(int(node.value)), 0.0
  try:
    exponent, mantissa = constants.split_constant(node.value)
  except ValueError as error:
    raise InputError(str(error)) from None
  if vocab.encoding == "extended":
    return f"C{exponent}", mantissa
  return "C", node.value if vocab.encoding == "base" else 0.0


def decode(ids: Sequence[int] | np.ndarray, values: Sequence[float] | np.ndarray, vocab: Vocabulary) -> Node:
  """Reads a tree from ids and the *numeric* values at constant tokens (see interpreter.constant_values).

  Raises:
    ExpressionError: when the ids are no complete prefix expression.
  """
  stop = {vocab.ids[PAD], vocab.ids[END]}
  position = 1 if len(ids) and ids[0] == vocab.ids[START] else 0

  def read() -> Node:
    nonlocal position
    if position >= len(ids) or int(ids[position]) in stop:
      raise ExpressionError(f"incomplete prefix expression: ends after {position} tokens")
    i, position = position, position + 1
    token = vocab.tokens[int(ids[i])]
    arity = vocab.arity[int(ids[i])]
    if arity > 0:
      return Node(token, tuple(read() for _ in range(arity)))
    if vocab.is_constant[int(ids[i])]:
      return number(float(values[i]))
    if int(ids[i]) >= vocab.first_variable_id:
      return variable(int(ids[i]) - vocab.first_variable_id)
    if token == START:
      raise ExpressionError(f"start token inside a prefix expression at {i}")
    return number(int(token))

  node = read()
  if position < len(ids) and int(ids[position]) not in stop:
    raise ExpressionError(f"prefix expression is complete after {position} tokens, but {len(ids)} were given")
  return node
