"""Which equations are kept. Each filter is a function of numbers or of a tree; the names are those of the manifest."""

import math

import numpy as np

from data_gen.config import GeneratorConfig
from symformer_jax.language.constants import is_small_integer
from symformer_jax.language.expression import VARIABLE, Node, walk

# Variation below float32's resolution (6e-8 of the value, a decade for rounding in the formula itself) cannot be
# seen in the training points: such a function is a constant to the model.
CONSTANT_TOLERANCE = 1e-6
# A straight line computed in float64 through up to ten operators misses its chord by 1e-13 or so; anything that
# bends visibly in float32 bends by more than 1e-7.
LINEAR_TOLERANCE = 1e-8
# Simplification rounds constants to 8 digits; a steep function magnifies that. Wrong branches differ by more.
EQUAL_TOLERANCE = 1e-3


_LINKS = ("+", "-", "*", "neg")
_SUMS = ("+", "-")
_WHOLE_POWERS = ("pow2", "pow3", "pow4", "pow5", "pow6", "inv")


def count_nesting(node: Node) -> int:
  """Most functions of variables that stand one inside the other: 2 of `tan(cos(x)) + x` and of `1/(1 + sqrt(x))`.

  Whole powers, inverses and quotients count where they are of a sum: `x**3` is a factor, `(x + 1)**3` a function.
  """
  if not any(part.token == VARIABLE for part in walk(node)):
    return 0
  depths = [count_nesting(arg) for arg in node.args]
  if node.token == "/":
    return max(depths[0], depths[1] + (node.args[1].token in _SUMS))
  is_function = node.args and node.token not in _LINKS and (not _is_whole_power(node) or node.args[0].token in _SUMS)
  return max(depths, default=0) + bool(is_function)


def _is_whole_power(node: Node) -> bool:
  if node.token == "pow":
    return node.args[1].is_number and float(node.args[1].value).is_integer()
  return node.token in _WHOLE_POWERS


def is_too_large(y: np.ndarray, config: GeneratorConfig) -> bool:
  return bool(np.max(np.abs(y)) > config.max_abs_value)


def is_near_constant(y: np.ndarray) -> bool:
  """Whether y [N] varies less than float32 can show."""
  return bool(np.ptp(y) <= CONSTANT_TOLERANCE * np.max(np.abs(y)))


def is_near_linear(columns: np.ndarray, y: np.ndarray) -> bool:
  """Whether y [N] is an affine function of columns [D, N] up to rounding."""
  scale = np.max(np.abs(y))
  centred_x = columns - columns.mean(axis=1, keepdims=True)
  centred_y = y - y.mean()
  slopes = np.linalg.solve(centred_x @ centred_x.T, centred_x @ centred_y)
  return bool(np.max(np.abs(centred_y - slopes @ centred_x)) <= LINEAR_TOLERANCE * scale)


def is_constant_out_of_range(node: Node, config: GeneratorConfig) -> bool:
  """Whether a number that is no integer token lies outside [min_constant, max_constant] in absolute value."""
  values = [n.value for n in walk(node) if n.is_number and not is_small_integer(n.value)]
  return not all(math.isfinite(v) and config.min_constant <= abs(v) <= config.max_constant for v in values)


def is_equal(first: np.ndarray, second: np.ndarray) -> bool:
  """Whether two evaluations of what should be one function agree where both are finite.

  At least half of the points must be finite in both. The tolerance is relative to the larger of the value and the
  mean absolute value: constants were rounded, and near a zero that is all one can ask.
  """
  both = np.isfinite(first) & np.isfinite(second)
  if 2 * both.sum() < both.size:
    return False
  a, b = first[both], second[both]
  scale = np.maximum(np.abs(a), np.mean(np.abs(a)))
  # A steep function may magnify the rounding at single points.
  return bool(np.mean(np.abs(a - b) <= EQUAL_TOLERANCE * scale + 1e-12) >= 0.95)
