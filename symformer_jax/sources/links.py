"""THE table of links: functions of y that may be a sum of columns, and how y comes back from them."""

from collections.abc import Callable
import dataclasses

import numpy as np

from symformer_jax.language.expression import Node, number
from symformer_jax.language.tidy import tidy

# exp(y) may be a sum where y reaches no further than this: squares of more leave nothing of small ones.
LARGEST_EXPONENT = 30.0
# Among the operators of a link: the sum plus 1.
PLUS_ONE = "1 +"


@dataclasses.dataclass(frozen=True)
class Link:
  """A function of y that may be a sum.

  Attributes:
    tokens: the operators that undo it, the last first: y = sqrt(1/sum) for ("sqrt", "inv"); none for y itself;
      `PLUS_ONE` adds 1.
    transform: y [N] -> the function's values; derivative: its size, for what an error of y becomes.
    is_defined: whether it may be asked of y.
  """

  tokens: tuple[str, ...]
  transform: Callable[[np.ndarray], np.ndarray]
  derivative: Callable[[np.ndarray], np.ndarray]
  is_defined: Callable[[np.ndarray], bool]

  @property
  def operators(self) -> tuple[str, ...]:
    """What a formula needs that undoes it."""
    return tuple("+" if token == PLUS_ONE else token for token in self.tokens)

  def undo(self, node: Node) -> Node:
    """y as a function of the sum."""
    for token in reversed(self.tokens):
      node = Node("+", (node, number(1.0))) if token == PLUS_ONE else Node(token, (node,))
    return tidy(node)


def _off_zero(y: np.ndarray) -> np.ndarray:
  """Sizes of y, none below a millionth of the largest: roots are steep at 0, but no row may count for nothing else."""
  size = np.abs(y)
  return np.maximum(size, 1e-6 * size.max())


LINKS = {
  "y": Link((), lambda y: y, np.ones_like, lambda y: True),
  "inv": Link(("inv",), lambda y: 1 / y, lambda y: 1 / y**2, lambda y: bool(np.all(y != 0))),
  "ln": Link(("ln",), np.exp, np.exp, lambda y: float(np.max(np.abs(y))) < LARGEST_EXPONENT),
  "exp": Link(("exp",), np.log, lambda y: 1 / y, lambda y: bool(np.all(y > 0))),
  "sqrt": Link(("sqrt",), np.square, lambda y: 2 * y, lambda y: bool(np.all(y >= 0))),
  "sqrt_inv": Link(("sqrt", "inv"), lambda y: y**-2, lambda y: 2 * y**-3, lambda y: bool(np.all(y > 0))),
  "pow2": Link(("pow2",), np.sqrt, lambda y: 0.5 / np.sqrt(_off_zero(y)), lambda y: bool(np.all(y >= 0))),
  "pow2_inv": Link(("pow2", "inv"), lambda y: y**-0.5, lambda y: 0.5 * y**-1.5, lambda y: bool(np.all(y > 0))),
  "pow3": Link(("pow3",), np.cbrt, lambda y: 1 / (3 * np.cbrt(_off_zero(y)) ** 2), lambda y: True),
  "asin": Link(("asin",), np.sin, np.cos, lambda y: float(np.max(np.abs(y))) < np.pi / 2),
  "acos": Link(("acos",), np.cos, np.sin, lambda y: bool(np.all((y >= 0) & (y <= np.pi)))),
  "logit": Link(("inv", PLUS_ONE, "exp"), lambda y: np.log(1 / y - 1), lambda y: 1 / (y * (1 - y)),
                lambda y: bool(np.all((y > 0) & (y < 1)))),
  "complement_exp": Link((PLUS_ONE, "neg", "exp"), lambda y: np.log(1 - y), lambda y: 1 / (1 - y),
                         lambda y: float(np.max(np.abs(y))) < 1),
  "atan": Link(("atan",), np.tan, lambda y: np.cos(y) ** -2, lambda y: float(np.max(np.abs(y))) < np.pi / 2),
  "atan_inv": Link(("atan", "inv"), lambda y: 1 / np.tan(y), lambda y: np.sin(y) ** -2,
                   lambda y: float(np.max(np.abs(y))) < np.pi / 2 and bool(np.all(y != 0))),
}
