"""What a user's guesses are listed as: in few digits, and as a simpler line where that is the same formula."""

from collections.abc import Callable, Iterable, Sequence, Set

import numpy as np

from symformer_jax.engine.config import DEFAULT, SelectionConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.expression import Node
from symformer_jax.selection import rounding, scoring

# Two fits whose values differ by less than this share of what they leave are one formula in two forms: constants
# settle to about 1e-8, and different formulas do not agree so far unless both meet the data.
SAME = 1e-3


def in_few_digits(
  node: Node, rows: Rows, plain: Callable[[Node], Node], is_usable: Callable[[Node], bool], *,
  config: SelectionConfig = DEFAULT.selection,
) -> Node:
  """A fitted tree tidied, in the digits that rows give it; as it is where neither form is usable.

  Args:
    plain: tidies a tree. It multiplies constants, so it comes before the rounding, and after it only where that makes
      no long ones: `a*x + b*x` in few digits of a and b may have seventeen of their sum.
    is_usable: whether rules and rows admit a tree.
  """
  for form in (plain(node), node):
    if is_usable(form):
      rounded = rounding.round_constants(form, rows.x, rows.y, rows.weights, config=config)
      tidied = plain(rounded)
      if rounding.count_digits(tidied) <= rounding.count_digits(rounded) and is_usable(tidied):
        return tidied
      if is_usable(rounded):
        return rounded
  return node


def with_guesses(
  guesses: Iterable[int], shown: Set[int], complexities: Sequence[int], is_same: Callable[[int, int], bool]
) -> tuple[set[int], dict[int, int]]:
  """The formulas to list, guesses among them, and for each guess the one that it is: the simplest of those that are no
  longer and the same in other terms, or itself.
  """
  listed, found = set(shown), {}
  for i in guesses:
    simpler = sorted((j for j in listed if j != i and complexities[j] <= complexities[i]),
                     key=lambda j: complexities[j])
    found[i] = next((j for j in simpler if is_same(j, i)), i)
    if found[i] == i:
      listed.add(i)
    elif i not in shown:
      listed.discard(i)
  return listed, found


def are_one(
  nodes: tuple[Node, Node], rows: Rows, *, mse: float, num_rows: int, floor: float, may_fit: bool,
  config: SelectionConfig = DEFAULT.selection,
) -> bool:
  """Whether two trees are one formula: they have the same values, with their constants fitted where they may be; or are
  of one form with constants within the first of `snap_errors` of each other, as where some were snapped.

  Args:
    rows: those that values are compared on; num_rows: those that constants are of.
    mse: the smaller of their errors; floor: the error below which the data are met.
  """
  def apart(first: Node, second: Node) -> float:
    change = scoring.evaluate(first, rows.x) - scoring.evaluate(second, rows.x)
    return float(np.average(change**2, weights=rows.weights))

  equal = SAME**2 * mse + floor
  if not may_fit:
    return apart(*nodes) <= equal
  tokens = [[part.token for part in expression.walk(node)] for node in nodes]
  reach = config.snap_errors[0] ** 2 * tokens[0].count(expression.NUMBER) * mse / num_rows
  if tokens[0] == tokens[1] and apart(*nodes) <= reach:
    return True
  first, second = (rounding.refit_constants(node, rows.x, rows.y, rows.weights, config=config) for node in nodes)
  return apart(first, second) <= equal
