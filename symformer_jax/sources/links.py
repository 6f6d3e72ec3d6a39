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
# Errors take y beyond where a function of it ends: by so much of its root mean square (errors of a twentieth of it go
# as far as three times that), in so many rows at most (errors of what is next to nothing have both signs).
FARTHEST_BEYOND = 0.2
MOST_BEYOND = 0.5
# What these rows tell of the function: their errors count as if they were so many times smaller. Where a
# decay has come down to a hundredth of errors' deviation and its values are put at 2.5 of them, its logarithm is wrong
# by log(250), 14 of them in y: half of one so counted.
FAINT = 30.0


@dataclasses.dataclass(frozen=True)
class Link:
  """A function of y that may be a sum.

  Where few values of y lie a little beyond its ends, as errors make of probabilities or of what decays, those are
  counted as errors: values nearer to an end than the farthest of them is to it are put there, and say next to nothing.

  Attributes:
    tokens: the operators that undo it, the last first: y = sqrt(1/sum) for ("sqrt", "inv"); none for y itself;
      `PLUS_ONE` adds 1.
    function: y [N] -> the function's values; slope: its size, for what an error of y becomes.
    ends: between which y lies, neither of them; `reaches`: whether both may be met.
    is_usable: what is asked of y besides.
  """

  tokens: tuple[str, ...]
  function: Callable[[np.ndarray], np.ndarray]
  slope: Callable[[np.ndarray], np.ndarray]
  ends: tuple[float, float] = (-np.inf, np.inf)
  reaches: bool = False
  is_usable: Callable[[np.ndarray], bool] = lambda y: True

  @property
  def operators(self) -> tuple[str, ...]:
    """What a formula needs that undoes it."""
    return tuple("+" if token == PLUS_ONE else token for token in self.tokens)

  def is_defined(self, y: np.ndarray) -> bool:
    """Whether it may be asked of y."""
    beyond, outside = self._beyond(y), (y < self.ends[0]) | (y > self.ends[1])
    is_near = max(beyond) <= FARTHEST_BEYOND * np.sqrt(np.mean(y**2)) and np.mean(outside) <= MOST_BEYOND
    inside = self._inside(y)
    is_within = self.reaches or bool(np.all((inside > self.ends[0]) & (inside < self.ends[1])))
    return bool(is_near) and is_within and self.is_usable(y)

  def transform(self, y: np.ndarray) -> np.ndarray:
    """The function's values [N]."""
    return self.function(self._inside(y))

  def derivative(self, y: np.ndarray) -> np.ndarray:
    """Its size, for what an error of y becomes [N]."""
    inside = self._inside(y)
    return self.slope(inside) * np.where(inside == y, 1.0, FAINT)

  def undo(self, node: Node) -> Node:
    """y as a function of the sum."""
    for token in reversed(self.tokens):
      node = Node("+", (node, number(1.0))) if token == PLUS_ONE else Node(token, (node,))
    return tidy(node)

  def _beyond(self, y: np.ndarray) -> tuple[float, float]:
    """How far y goes beyond both ends, at least 0."""
    low, high = self.ends
    return max(0.0, low - float(np.min(y))), max(0.0, float(np.max(y)) - high)

  def _inside(self, y: np.ndarray) -> np.ndarray:
    (low, high), (below, above) = self.ends, self._beyond(y)
    return np.clip(y, low + below if below else -np.inf, high - above if above else np.inf)


def _off_zero(y: np.ndarray) -> np.ndarray:
  """Sizes of y, none below a millionth of the largest: roots are steep at 0, but no row may count for nothing else."""
  size = np.abs(y)
  return np.maximum(size, 1e-6 * size.max())


def _has_no_zero(y: np.ndarray) -> bool:
  return bool(np.all(y != 0))


_ABOVE_ZERO, _BETWEEN_POLES = (0.0, np.inf), (-np.pi / 2, np.pi / 2)
LINKS = {
  "y": Link((), lambda y: y, np.ones_like),
  "inv": Link(("inv",), lambda y: 1 / y, lambda y: 1 / y**2, is_usable=_has_no_zero),
  "ln": Link(("ln",), np.exp, np.exp, is_usable=lambda y: float(np.max(np.abs(y))) < LARGEST_EXPONENT),
  "exp": Link(("exp",), np.log, lambda y: 1 / y, _ABOVE_ZERO),
  "sqrt": Link(("sqrt",), np.square, lambda y: 2 * y, _ABOVE_ZERO, reaches=True),
  "sqrt_inv": Link(("sqrt", "inv"), lambda y: y**-2, lambda y: 2 * y**-3, _ABOVE_ZERO),
  "pow2": Link(("pow2",), np.sqrt, lambda y: 0.5 / np.sqrt(_off_zero(y)), _ABOVE_ZERO, reaches=True),
  "pow2_inv": Link(("pow2", "inv"), lambda y: y**-0.5, lambda y: 0.5 * y**-1.5, _ABOVE_ZERO),
  "pow3": Link(("pow3",), np.cbrt, lambda y: 1 / (3 * np.cbrt(_off_zero(y)) ** 2)),
  "asin": Link(("asin",), np.sin, np.cos, _BETWEEN_POLES),
  "acos": Link(("acos",), np.cos, np.sin, (0.0, np.pi), reaches=True),
  "logit": Link(("inv", PLUS_ONE, "exp"), lambda y: np.log(1 / y - 1), lambda y: 1 / (y * (1 - y)), (0.0, 1.0)),
  "complement_exp": Link((PLUS_ONE, "neg", "exp"), lambda y: np.log(1 - y), lambda y: 1 / (1 - y), (-np.inf, 1.0),
                         is_usable=lambda y: float(np.min(y)) > -1),
  "atan": Link(("atan",), np.tan, lambda y: np.cos(y) ** -2, _BETWEEN_POLES),
  "atan_inv": Link(("atan", "inv"), lambda y: 1 / np.tan(y), lambda y: np.sin(y) ** -2, _BETWEEN_POLES,
                   is_usable=_has_no_zero),
}
