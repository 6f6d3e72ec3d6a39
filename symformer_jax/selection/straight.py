"""Functions of which the rows see a straight piece: `100*sin(0.03*x)` for `3*x`."""

from collections.abc import Iterator

import numpy as np

from symformer_jax.engine.config import FUNCTIONS
from symformer_jax.language import adjoints, expression
from symformer_jax.language.expression import Node, chain, number


def straightened(node: Node, x: np.ndarray, weights: np.ndarray, *, share: float) -> Iterator[Node]:
  """The tree with one function after the other replaced by the line that is nearest to it on the rows.

  Args:
    node: a fitted tree; x: rows [N, D]; weights: of them [N].
    share: of the variance of the function on the rows, each counting as its weight and as the formula's value depends
      on it, that the line may leave; what leaves more is not looked at.
  """
  for place in adjoints.places(node, x):
    if place.node.token not in FUNCTIONS or not expression.has_column(place.node):
      continue
    [inner] = place.node.args
    root = np.sqrt(weights) * np.abs(place.adjoint)
    line = _nearest_line(np.broadcast_to(expression.evaluate(inner, x), len(x)), place.values, root, share)
    if line is not None:
      slope, offset = line
      yield adjoints.replace(node, place.path, chain("+", [Node("*", (inner, number(slope))), number(offset)]))


@np.errstate(all="ignore")  # what is not finite is no line
def _nearest_line(
  inner: np.ndarray, values: np.ndarray, root: np.ndarray, share: float
) -> tuple[float, float] | None:
  """Slope and offset by least squares for a function's values [N] at inner values [N], `root`: of weights [N]; None
  where it bends.
  """
  design = root[:, None] * np.column_stack([inner, np.ones(len(inner))])
  goal = root * values
  if not (np.all(np.isfinite(design)) and np.all(np.isfinite(goal)) and np.ptp(inner) > 0):
    return None
  (slope, offset), *_ = np.linalg.lstsq(design, goal, rcond=None)
  left = np.sum((goal - design @ (slope, offset)) ** 2)
  mean = root @ goal / (root @ root)
  return (float(slope), float(offset)) if left < share * np.sum((goal - root * mean) ** 2) else None
