"""A formula's operations in the order in which they are computed: values and derivatives by its constants, by NumPy.

A few formulas, evaluated hundreds of times with other constants, want no compiler: what reads no constant is computed
once, and a pass back over the rest gives the derivative by every constant, each of which stands at one place.
"""

from typing import Any, NamedTuple

import numpy as np

from symformer_jax.language import operators, programs
from symformer_jax.language.expression import Node
from symformer_jax.language.operators import Operator


class _Step(NamedTuple):
  """An operation that a constant changes: where its arguments lie, and of these the ones that change."""

  operator: Operator
  args: tuple[int, ...]
  moving: tuple[int, ...]


class Tape:
  """The operations of one formula on given rows."""

  def __init__(self, node: Node, x: np.ndarray):
    """Args: node: a tree without symbols; x: points [N, D]."""
    self._x = x
    # Values by place, None where they depend on a constant; of those either the constant or the step that makes them.
    self._values: list[Any] = []
    self._constants: list[int] = []
    self._steps: dict[int, _Step] = {}
    with np.errstate(all="ignore"):
      self._result = self._add(node)

  def _add(self, node: Node) -> int:
    """The place of a subtree's values; arguments come before what is made of them."""
    if programs.is_constant(node):
      self._constants.append(len(self._values))
      return self._put(None)
    if node.is_number:
      return self._put(np.float64(node.value))
    if not node.args:
      return self._put(np.ascontiguousarray(self._x[:, node.value], float))
    operator, args = operators.BY_NAME[node.token], tuple(self._add(arg) for arg in node.args)
    moving = tuple(i for i, arg in enumerate(args) if self._values[arg] is None)
    if not moving:
      return self._put(operator.numpy_fn(*(self._values[arg] for arg in args)))
    self._steps[len(self._values)] = _Step(operator, args, moving)
    return self._put(None)

  def _put(self, value: Any) -> int:
    self._values.append(value)
    return len(self._values) - 1

  def values(self, theta: np.ndarray) -> np.ndarray:
    """Values [N] with constants theta [C], see `programs.fitted_values`; of K lists of them [K, C] values [K, N]."""
    with np.errstate(all="ignore"):  # what is undefined shows in the result
      return np.broadcast_to(self._run(theta)[self._result], (*theta.shape[:-1], len(self._x)))

  def values_and_slopes(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`(values [N], derivatives by the constants [N, C])` at theta [C].

    By an exponent the derivative is 0 where its base is not above 0, and so is what is multiplied by 0, whatever by.
    """
    with np.errstate(all="ignore"):
      values = self._run(theta)
      adjoints: dict[int, Any] = {self._result: 1.0}
      for place, step in reversed(self._steps.items()):
        adjoint, args = adjoints.pop(place), [values[arg] for arg in step.args]
        for i in step.moving:
          adjoints[step.args[i]] = _times(adjoint, step.operator.numpy_slopes[i](values[place], *args))
    slopes = np.empty((len(self._x), len(self._constants)))
    for i, place in enumerate(self._constants):
      slopes[:, i] = adjoints[place]
    return np.broadcast_to(values[self._result], len(self._x)), slopes

  def _run(self, theta: np.ndarray) -> list[Any]:
    """The values at every place."""
    values = list(self._values)
    for i, place in enumerate(self._constants):
      values[place] = theta[..., i, None]
    for place, step in self._steps.items():
      values[place] = step.operator.numpy_fn(*(values[arg] for arg in step.args))
    return values


def _times(adjoint: Any, slope: Any) -> np.ndarray:
  """The chain rule's product; of 0 and infinity 0: what does not depend on a constant stays so."""
  product = np.multiply(adjoint, slope)
  is_doubtful = np.isnan(product)
  if not is_doubtful.any():
    return product
  return np.where(is_doubtful & (np.equal(adjoint, 0) | np.equal(slope, 0)), 0.0, product)
