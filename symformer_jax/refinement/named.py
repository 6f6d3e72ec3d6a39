"""A formula whose constants have names, as a program: several tokens may be one constant."""

from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from symformer_jax.language import expression, interpreter, programs
from symformer_jax.language.expression import SYMBOL, VARIABLE, Node, number
from symformer_jax.language.vocabulary import Vocabulary

# Formulas are padded to multiples of these, so that most share one compiled fit.
TOKEN_MULTIPLE, SLOT_MULTIPLE = 32, 4


class NamedFormula:
  """A tree with named constants as a program whose slots are the names, each perhaps at several tokens."""

  def __init__(self, node: Node, names: Sequence[str]):
    self.node, self.names = node, tuple(names)
    num_variables = 1 + max((n.value for n in expression.walk(node) if n.token == VARIABLE), default=0)
    self.vocab = Vocabulary(num_variables, has_requested=programs.has_requested([node]))
    tokens = list(expression.walk(node))
    length = -(-len(tokens) // TOKEN_MULTIPLE) * TOKEN_MULTIPLE
    self.ids, self.values = np.zeros(length, np.int32), np.zeros(length)
    self.slots = np.full(length, -1, np.int32)
    for i, n in enumerate(tokens):
      self.ids[i] = self._token_id(n)
      if n.is_number:
        self.values[i] = n.value
      elif n.token == SYMBOL:
        self.slots[i] = self.names.index(n.value)

  def _token_id(self, n: Node) -> int:
    if n.args:
      return self.vocab.ids[n.token]
    # Any constant token holds any number here: nothing is split into mantissa and exponent.
    return self.vocab.ids[f"x{n.value}"] if n.token == VARIABLE else self.vocab.first_constant_id

  @property
  def num_slots(self) -> int:
    return max(1, -(-len(self.names) // SLOT_MULTIPLE)) * SLOT_MULTIPLE

  def program(self) -> interpreter.Program:
    """In the precision that is set where this is called."""
    program = _translate(self.ids, self.values, vocab=self.vocab)
    return program._replace(slots=jnp.asarray(self.slots))

  def evaluator(self, x: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """A function from constants [C] to values and derivatives [1 + C, N] at points [N, D], in float64."""
    columns, count = np.ascontiguousarray(x.T), len(self.names)
    with jax.enable_x64(True):
      program = self.program()  # once: it takes as long as a step

    def evaluate(constants: np.ndarray) -> np.ndarray:
      with jax.enable_x64(True):
        return np.asarray(_run(program, np.pad(constants, (0, self.num_slots - count)), columns))[:1 + count]
    return evaluate

  def with_values(self, constants: Mapping[str, float], exact: Mapping[str, Node] | None = None) -> Node:
    """The tree with exact values or numbers for names."""
    nodes = {**{name: number(value) for name, value in constants.items()}, **(exact or {})}

    def fill(n: Node) -> Node:
      if n.token == SYMBOL:
        return nodes[n.value]
      return n._replace(args=tuple(fill(arg) for arg in n.args)) if n.args else n
    return fill(self.node)


_run = jax.jit(interpreter.run)
_translate = jax.jit(interpreter.translate, static_argnames=("vocab", "num_slots"))


def symbols(node: Node) -> list[str]:
  """Names of constants in the order of their first occurrence."""
  return list(dict.fromkeys(n.value for n in expression.walk(node) if n.token == SYMBOL))


def merge_names(node: Node, num_columns: int) -> Node:
  """Variables beyond the columns are second names of them (`x0` of `x`)."""
  if node.token == VARIABLE:
    return node._replace(value=node.value % num_columns)
  return node._replace(args=tuple(merge_names(arg, num_columns) for arg in node.args)) if node.args else node


def hold(formula: NamedFormula, values: Mapping[str, float]) -> NamedFormula:
  """The formula with numbers for some of its constants."""
  nodes = {name: number(value) for name, value in values.items()}

  def fill(node: Node) -> Node:
    if node.token == SYMBOL:
      return nodes.get(node.value, node)
    return node._replace(args=tuple(map(fill, node.args))) if node.args else node
  return NamedFormula(fill(formula.node), [name for name in formula.names if name not in values]) if values else formula
