"""Formulas without constants but small whole ones, the short ones first, each function of the rows once.

Bottom-up enumeration under observational equivalence, as program synthesis has it: what has the values of a shorter
formula on some rows is left out, and so is all that would be made of it.
"""

from collections.abc import Callable, Sequence
import itertools
from typing import NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, negate, number, power, variable

# Digits by which values are the same: of millions of formulas none agree in so many by chance. (Beside a row that is
# 1e11 times the others they do: there the longer one is lost.)
_DIGITS = 11
# What varies by a smaller share of its size is a constant but for rounding.
_LEAST = 1e-9
# Pairs that are looked at for each formula that there is room for: most have values that are there already, or none.
_PAIRS_FOR_EACH = 4


class Operator(NamedTuple):
  """What makes one formula of one or two.

  Attributes:
    tokens: operators that it is written by.
    of: values [..., R] -> values.
    node: formulas -> formula.
    arity: of how many; commutes: whether the order of two does not matter.
  """

  tokens: tuple[str, ...]
  of: Callable[..., np.ndarray]
  node: Callable[..., Node]
  arity: int = 1
  commutes: bool = False


def _raised(base: np.ndarray, exponent: np.ndarray) -> np.ndarray:
  return np.where(base > 0, base, np.nan) ** exponent


def _of_token(token: str, of: Callable[[np.ndarray], np.ndarray]) -> Operator:
  return Operator((token,), of, lambda node: Node(token, (node,)))


FUNCTIONS: dict[str, Operator] = {
  "inv": _of_token("inv", np.reciprocal),
  "sqrt": _of_token("sqrt", np.sqrt),
  "pow2": Operator(("pow2",), np.square, lambda node: power(node, number(2))),
  "pow3": Operator(("pow3",), lambda v: v**3, lambda node: power(node, number(3))),
  "pow4": Operator(("pow",), lambda v: np.square(np.square(v)), lambda node: power(node, number(4))),
  "pow5": Operator(("pow",), lambda v: np.square(np.square(v)) * v, lambda node: power(node, number(5))),
  "exp": _of_token("exp", np.exp),
  "ln": _of_token("ln", np.log),
  "sin": _of_token("sin", np.sin),
  "cos": _of_token("cos", np.cos),
  "tan": _of_token("tan", np.tan),
  "asin": _of_token("asin", np.arcsin),
  "acos": _of_token("acos", np.arccos),
  "atan": _of_token("atan", np.arctan),
}
OF_TWO: tuple[Operator, ...] = (
  Operator(("+",), np.add, lambda a, b: Node("+", (a, b)), 2, commutes=True),
  Operator(("*",), np.multiply, lambda a, b: Node("*", (a, b)), 2, commutes=True),
  Operator(("+", "*"), np.subtract, lambda a, b: Node("+", (a, Node("*", (b, number(-1))))), 2),
  Operator(("*", "inv"), np.divide, lambda a, b: Node("*", (a, Node("inv", (b,)))), 2),
  Operator(("pow",), _raised, power, 2),
)


def leaves_of(x: np.ndarray, columns: Sequence[int]) -> list[Node]:
  """Columns of x [N, D], those that are negative throughout with the other sign: they have no logarithms or powers."""
  return [negate(variable(column)) if np.all(x[:, column] < 0) else variable(column) for column in columns]


def drawn(rows: Rows, num: int, *, least_weight: float, most_beyond: float) -> np.ndarray:
  """Places of rows on which formulas are made: all different, none of next to no weight.

  Args:
    num: how many at most; least_weight: a share of the largest.
    most_beyond: so many times the median of |y|, or as much less, is left out, if enough others are left: beside
      exp(tan(x)) of a row near a pole no other counts.
  """
  counts = np.flatnonzero(rows.weights >= least_weight * np.max(rows.weights))
  different = np.sort(counts[np.unique(rows.x[counts], axis=0, return_index=True)[1]])
  sizes = np.abs(rows.y[different])
  middle = np.median(sizes)
  usual = different[(sizes <= most_beyond * middle) & (sizes >= middle / most_beyond)]
  return np.random.default_rng(0).permutation(usual if len(usual) >= num and middle else different)[:num]


class Bank:
  """Formulas and their values, by number of nodes.

  Attributes:
    values: [M, R].
  """

  @np.errstate(all="ignore")  # what is not finite is left out
  def __init__(
    self, x: np.ndarray, leaves: Sequence[Node], *, numbers: Sequence[float], operators: Sequence[Operator],
    num_formulas: int, largest: float,
  ):
    """Args:
      x: points [R, D]; leaves: that formulas are made of, see `leaves_of`.
      numbers: leaves beside them; operators: of one argument and of two.
      num_formulas: M at most; largest: of what is so many times as large as the largest leaf's square, or as much
        smaller than the smallest's, nothing is kept.
    """
    self._leaves = [*leaves, *map(number, numbers)]
    self._operators, self._num = tuple(operators), num_formulas
    self.values = np.stack([np.broadcast_to(expression.evaluate(leaf, x), len(x)) for leaf in self._leaves])
    sizes = np.append(np.max(np.abs(self.values), axis=1), 1.0)
    self._least, self._most = np.min(sizes[sizes > 0]) ** 2 / largest, np.max(sizes) ** 2 * largest
    # Of each formula its operator's place and its arguments', or of leaves nothing.
    self._made = np.full((len(self._leaves), 3), -1)
    self._keys = keys_of(self.values)
    ends = [0, len(self._leaves)]  # of nothing, of leaves, of formulas of two nodes, ..., a difference as one node
    # Of operators of two arguments alone there is nothing of an even number of nodes.
    while len(self.values) < num_formulas and (len(ends) < 3 or ends[-1] > ends[-3]):
      self._add(*self._longer(ends))
      ends.append(len(self.values))

  def node(self, place: int) -> Node:
    operator, *arguments = self._made[place].tolist()
    if operator < 0:
      return self._leaves[place]
    return self._operators[operator].node(*map(self.node, arguments[: self._operators[operator].arity]))

  def _longer(self, ends: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """`(made [M', 3], values [M', R])`: all formulas of one node more, but those of pairs that are far too many."""
    room = _PAIRS_FOR_EACH * (self._num - len(self.values))
    sizes = list(itertools.starmap(np.arange, itertools.pairwise(ends)))
    pairs = [np.column_stack([np.repeat(one, len(other)), np.tile(other, len(one))])
             for one, other in zip(sizes[:-1], sizes[-2::-1], strict=True) if len(one) * len(other) <= room]
    of_two = np.concatenate([np.zeros((0, 2), dtype=int), *pairs])
    of_one = np.column_stack([sizes[-1], sizes[-1]])  # the second is not asked for
    made, values = [], []
    for place, operator in enumerate(self._operators):
      arguments = of_one if operator.arity == 1 else of_two
      if operator.commutes:
        arguments = arguments[arguments[:, 0] <= arguments[:, 1]]
      interruption.check()
      made.append(np.insert(arguments, 0, place, axis=1))
      values.append(operator.of(*(self.values[each] for each in arguments.T[: operator.arity])))
    return np.concatenate(made), np.concatenate(values)

  def _add(self, made: np.ndarray, values: np.ndarray) -> None:
    """Those whose values are new, and of use, as far as there is room."""
    sizes = np.max(np.abs(values), axis=1)
    is_usable = (sizes < self._most) & (sizes > self._least) & (np.ptp(values, axis=1) > _LEAST * sizes)
    made, values = made[is_usable], values[is_usable]  # comparisons with what is not finite are false
    keys = np.concatenate([self._keys, keys_of(values)])
    new = np.sort(np.unique(keys, return_index=True)[1])[: self._num]
    new = new[new >= len(self._keys)] - len(self._keys)
    self._keys = np.concatenate([self._keys, keys[len(self._keys) + new]])
    self._made = np.concatenate([self._made, made[new]])
    self.values = np.concatenate([self.values, values[new]])


def keys_of(values: np.ndarray) -> np.ndarray:
  """One number for each row of values [M, R], the same for the same values but for rounding: [M]."""
  weights = np.random.default_rng(0).normal(size=values.shape[1])
  mantissa, exponent = np.frexp(values @ weights)
  return np.ldexp(np.round(mantissa, _DIGITS), exponent)
