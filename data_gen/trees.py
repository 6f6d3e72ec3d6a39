"""Random unary-binary trees after Lample and Charton (2020), appendix C.2, and their values on points."""

import bisect
from collections.abc import Mapping, Sequence
import functools

import numpy as np

from data_gen.config import GeneratorConfig
from symformer_jax.language import operators
from symformer_jax.language.expression import VARIABLE, Node, number, variable


@functools.cache
def count_subtrees(empty: int, num_operators: int) -> int:
  """Unary-binary forests with `empty` open nodes and `num_operators` inner nodes to be placed in them.

  Lample and Charton's D(e, n) with one kind of leaf, unary and binary node each: the paper has unary and
  binary operators equally likely. D(e, n) = D(e-1, n) + D(e, n-1) + D(e+1, n-1).
  """
  if num_operators == 0:
    return 1
  if empty == 0:
    return 0
  return (count_subtrees(empty - 1, num_operators) + count_subtrees(empty, num_operators - 1)
          + count_subtrees(empty + 1, num_operators - 1))


@functools.cache
def _placements(empty: int, num_operators: int) -> tuple[list[float], tuple[tuple[int, int], ...]]:
  """Where the next inner node may go: cumulative probabilities and `(leaves before it, arity)`."""
  places = [(k, arity) for k in range(empty) for arity in (1, 2)]
  counts = [count_subtrees(empty - k + arity - 1, num_operators - 1) for k, arity in places]
  return (np.cumsum(counts) / count_subtrees(empty, num_operators)).tolist(), tuple(places)


def sample_shape(rng: np.random.Generator, num_operators: int) -> list[int]:
  """Arities in prefix order of a tree drawn uniformly among all with `num_operators` inner nodes."""
  arities: list[int] = []
  empty = 1
  for remaining in range(num_operators, 0, -1):
    cumulative, places = _placements(empty, remaining)
    skipped, arity = places[min(bisect.bisect_right(cumulative, rng.random()), len(places) - 1)]
    # Lample and Charton place nodes breadth first: what is skipped becomes leaves for good.
    arities += [0] * skipped + [arity]
    empty += arity - 1 - skipped
  return _to_prefix(arities + [0] * empty)


def _to_prefix(arities: Sequence[int]) -> list[int]:
  """Arities from breadth-first to prefix order."""
  children: list[list[int]] = []
  following = 1
  for arity in arities:
    children.append(list(range(following, following + arity)))
    following += arity
  order, stack = [], [0]
  while stack:
    node = stack.pop()
    order.append(arities[node])
    stack += reversed(children[node])
  return order


class TreeSampler:
  """Draws random formulas of one configuration."""

  def __init__(self, config: GeneratorConfig):
    self.config = config
    self._unary = Choice(config.unary)
    self._binary = Choice(config.binary)
    self._leaves = Choice(config.leaves)

  def sample(self, rng: np.random.Generator) -> Node:
    """A tree with 1 ... max_operators operators, all numbers of them equally likely; `rng` is consumed."""
    arities = iter(sample_shape(rng, int(rng.integers(1, self.config.max_operators + 1))))

    def build() -> Node:
      arity = next(arities)
      if arity == 0:
        return self._leaf(rng)
      token = (self._unary if arity == 1 else self._binary).draw(rng)
      return Node(token, tuple(build() for _ in range(arity)))

    return build()

  def _leaf(self, rng: np.random.Generator) -> Node:
    kind = self._leaves.draw(rng)
    if kind == "variable":
      return variable(int(rng.integers(self.config.num_variables)))
    if kind == "integer":
      magnitude = int(rng.integers(1, self.config.max_integer + 1))
      return number(magnitude if rng.random() < 0.5 else -magnitude)
    if kind == "float":
      bound = self.config.max_float
      return number(round(float(rng.uniform(-bound, bound)), self.config.float_decimals))
    return number(0)


class Choice:
  """A weighted choice among names."""

  def __init__(self, weights: Mapping[str, float]):
    # Sorted, so that the order of keys in a config file does not change the draws.
    self.names = sorted(name for name, weight in weights.items() if weight > 0)
    self.cumulative = np.cumsum([weights[name] for name in self.names]).tolist()

  def draw(self, rng: np.random.Generator) -> str:
    return self.names[bisect.bisect_right(self.cumulative, rng.random() * self.cumulative[-1])]


def values(node: Node, columns: np.ndarray) -> np.ndarray:
  """`evaluate`, in the full shape of the points also for a constant."""
  y = evaluate(node, columns)
  return y if isinstance(y, np.ndarray) and y.shape else np.full(columns.shape[1:], y)


_NUMPY_FUNCTIONS = {op.name: op.numpy_fn for op in operators.OPERATORS}


def evaluate(node: Node, columns: np.ndarray) -> np.ndarray | np.float64:
  """Values of a tree in float64; call it under `np.errstate(all="ignore")`.

  Args:
    node: a tree without symbols.
    columns: points, variable first [D, ...].
  Returns:
    y [...]: NaN or infinite where the tree is undefined. A scalar for a tree without variables.
  """
  token, args, value = node
  if len(args) == 1:
    return _NUMPY_FUNCTIONS[token](evaluate(args[0], columns))
  if args:
    return _NUMPY_FUNCTIONS[token](evaluate(args[0], columns), evaluate(args[1], columns))
  return columns[value] if token == VARIABLE else np.float64(value)


def count_operators(node: Node) -> int:
  return (1 if node.args else 0) + sum(count_operators(arg) for arg in node.args)
