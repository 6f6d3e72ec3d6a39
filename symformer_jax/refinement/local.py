"""The local model of one fitted formula: its squared error around its constants, from values and exact derivatives.

Near its optimum the squared error is a quadratic form in the constants. How well a constant is known, what it costs to
hold it at a rounder value, which of them are redundant: one Jacobian answers. It and the values are NumPy's, in
float64: dozens of formulas, each looked at some times, want no compiler (`language.tape`).
"""

import math

import numpy as np

from symformer_jax.language import expression, programs, tape
from symformer_jax.language.expression import Node

# Values of one operation that are computed at once, those of many rows or lists of constants in parts: they stay in the
# processor's cache.
CHUNK_ROWS, CHUNK_VALUES = 1 << 14, 1 << 16
# A constant whose neighbours at this relative distance leave the formula undefined has no derivative.
PROBE = float(np.cbrt(np.finfo(np.float64).eps))


class LocalModel:
  """The squared error of one formula around its constants theta [C], some of them held fixed.

  Attributes:
    node: the tree; x: [N, D]; y: [N]; weights: [N], mean 1.
    theta: the constants, in prefix order (`programs.fitted_values`); is_free: which of them may move [C].
    sum_of_squares: weighted, in squared units of y; inf where the formula is undefined.
    jacobian: [N, C], at theta as it was when `update` was called last.
  """

  def __init__(
    self, node: Node, x: np.ndarray, y: np.ndarray, weights: np.ndarray, *, floor: float, num_refits: int = 3
  ):
    """Args: floor: the mean squared error that counts as exact, squared units of y; num_refits: steps of `refit`."""
    self.node, self.x, self.y, self._floor, self._num_refits = node, x, y, floor, num_refits
    self.weights = weights / np.mean(weights)
    self.theta = np.array(programs.fitted_values(node), np.float64)
    self._tapes = [tape.Tape(node, x[i : i + CHUNK_ROWS]) for i in range(0, max(len(x), 1), CHUNK_ROWS)]
    self.sum_of_squares, self.jacobian = math.inf, np.zeros((len(y), len(self.theta)))
    self.update()
    # A constant whose neighbours leave the formula undefined, as the 6 of `x**6` where x < 0, stays as it is.
    self.is_free = np.all(np.isfinite(self.jacobian), axis=0) & self._has_neighbours()

  def _has_neighbours(self) -> np.ndarray:
    """Whether the formula is defined on both sides of each constant [C]; only powers can be undefined there."""
    if not len(self.theta) or all(part.token != "pow" for part in expression.walk(self.node)):
      return np.ones(len(self.theta), bool)
    steps = np.diag(PROBE * np.where(self.theta != 0, np.abs(self.theta), 1.0))
    is_finite = np.isfinite(self.predict_many(np.concatenate([self.theta + steps, self.theta - steps]))).all(axis=1)
    return is_finite[: len(self.theta)] & is_finite[len(self.theta) :]

  def predict(self, theta: np.ndarray) -> np.ndarray:
    """Values [N] with constants theta [C]; those of the fitted tree, whatever small integers they pass through."""
    return np.concatenate([each.values(theta) for each in self._tapes])

  def predict_many(self, thetas: np.ndarray) -> np.ndarray:
    """Values [K, N] with each of several lists of constants thetas [K, C]."""
    at_once = CHUNK_VALUES // min(CHUNK_ROWS, max(len(self.y), 1))
    some = [thetas[i : i + at_once] for i in range(0, len(thetas), at_once)]
    return np.concatenate([np.concatenate([each.values(part) for each in self._tapes], axis=1) for part in some])

  def _predict_with_jacobian(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, slopes = zip(*(each.values_and_slopes(theta) for each in self._tapes), strict=True)
    return np.concatenate(values), np.concatenate(slopes)

  def _squares(self, values: np.ndarray) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
      loss = float(np.sum(self.weights * (values - self.y) ** 2))
    return loss if math.isfinite(loss) else math.inf

  def loss(self, theta: np.ndarray) -> float:
    """The weighted sum of squares at constants theta [C]; inf where the formula is undefined."""
    return self._squares(self.predict(theta))

  def losses(self, thetas: np.ndarray) -> np.ndarray:
    """`loss` of each of several lists of constants [K, C]."""
    return np.array([self._squares(values) for values in self.predict_many(thetas)])

  def update(self) -> None:
    """Computes loss and Jacobian [N, C] at theta."""
    values, self.jacobian = self._predict_with_jacobian(self.theta)
    self.sum_of_squares = self._squares(values)

  def look(self, free: np.ndarray) -> np.ndarray:
    """Values and derivatives [1 + F, N] at free constants [F], the others held."""
    theta = self.theta.copy()
    theta[self.is_free] = free
    values, jacobian = self._predict_with_jacobian(theta)
    return np.vstack([values, jacobian[:, self.is_free].T])

  @property
  def _degrees(self) -> int:
    return max(int(np.sum(self.weights > 0)) - int(np.sum(self.is_free)), 1)

  @property
  def is_exact(self) -> bool:
    """Whether the residual is no more than the resolution of the numbers."""
    return self.sum_of_squares / self._degrees <= self._floor

  @property
  def noise(self) -> float:
    """sigma^2, squared units of y: never below the resolution of the numbers."""
    return max(self.sum_of_squares / self._degrees, self._floor)

  @np.errstate(over="ignore")  # what overflows is infinite, as it should be
  def covariance(self) -> np.ndarray:
    """Covariance of the free constants [F, F], scaled by sigma^2; infinite where the data say nothing."""
    jacobian = self.jacobian[:, self.is_free]
    scale = np.sqrt(np.sum(self.weights[:, None] * jacobian**2, axis=0))
    if not len(scale) or not np.all(np.isfinite(scale)) or np.any(scale == 0):
      return np.full((len(scale), len(scale)), np.inf)
    scaled = jacobian / scale
    gram = scaled.T @ (self.weights[:, None] * scaled)
    unknown = np.full(gram.shape, np.inf)
    if np.linalg.cond(gram) > 1 / np.finfo(np.float64).eps:
      return unknown
    try:
      return np.linalg.inv(gram) / np.outer(scale, scale) * self.noise
    except np.linalg.LinAlgError:  # singular to the last bit, its condition number just below that of rounding
      return unknown

  def fix(self, index: int, value: float, covariance: np.ndarray) -> None:
    """Holds constant `index` at `value` from now on; the free ones move to where they fit best beside it."""
    free = np.flatnonzero(self.is_free)
    row = int(np.flatnonzero(free == index)[0])
    self.theta[free] += covariance[:, row] / covariance[row, row] * (value - self.theta[index])
    self.theta[index] = value
    self.is_free[index] = False

  def refit(self) -> None:
    """A few Gauss-Newton steps of the free constants; steps that do not help are not taken."""
    root = np.sqrt(self.weights)
    for _ in range(self._num_refits):
      values, self.jacobian = self._predict_with_jacobian(self.theta)
      self.sum_of_squares = self._squares(values)
      jacobian = root[:, None] * self.jacobian[:, self.is_free]
      if not self.is_free.any() or not math.isfinite(self.sum_of_squares) or not np.all(np.isfinite(jacobian)):
        return
      step = np.zeros(len(self.theta))
      step[self.is_free] = np.linalg.lstsq(jacobian, root * (self.y - values), rcond=None)[0]
      if self.loss(self.theta + step) >= self.sum_of_squares:
        return
      self.theta = self.theta + step
    self.update()
