"""The local model of one fitted formula: its squared error around its constants, from values and exact derivatives.

Near its optimum the squared error is a quadratic form in the constants. How well a constant is known, what it costs to
hold it at a rounder value, which of them are redundant: one Jacobian answers. It and the values come from the compiled
interpreter, in float64, in few shapes.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from symformer_jax import compilation
from symformer_jax.language import expression, interpreter, programs
from symformer_jax.language.expression import Node

# Shapes that are compiled: rows, columns a formula reads, constants that get a derivative, tokens. One formula runs at
# a time, so padding costs little beside a compilation of a second and a half.
ROW_BUCKETS, COLUMN_BUCKETS = (64, 128, 256, 1024, 4096), (2, 9, 32)
CONSTANT_BUCKETS, TOKEN_BUCKETS = (8, 24), (64, 128)
# Lists of constants that one call evaluates: all digits of a constant, or the neighbours of eight.
THETAS_AT_ONCE, FEW_THETAS = 16, 4
# A constant whose neighbours at this relative distance leave the formula undefined has no derivative.
PROBE = float(np.cbrt(np.finfo(np.float64).eps))


_translate = jax.jit(interpreter.translate, static_argnames=("vocab", "num_slots"))


@jax.jit
def _values(program: interpreter.Program, theta: jax.Array, columns: jax.Array) -> jax.Array:
  """Values [N] with constants theta [C] in the program's slots."""
  is_slot = program.slots >= 0
  numbers = jnp.where(is_slot, theta[jnp.maximum(program.slots, 0)], program.numbers)
  plain = program._replace(numbers=numbers, slots=jnp.full_like(program.slots, -1))
  return interpreter.run(plain, jnp.zeros((0,), columns.dtype), columns, num_tokens=program.length)[0]


@jax.jit
def _values_of_many(program: interpreter.Program, thetas: jax.Array, columns: jax.Array) -> jax.Array:
  """`_values` [K, N] of several lists of constants thetas [K, C], one after the other in one call."""
  return jax.lax.map(lambda theta: _values(program, theta, columns), thetas)


@jax.jit
def _values_and_jacobian(program: interpreter.Program, theta: jax.Array, columns: jax.Array) -> jax.Array:
  """[1 + C, N]: values, then derivatives by each slot."""
  return interpreter.run(program, theta, columns, num_tokens=program.length)


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
    self._translate()
    self.sum_of_squares, self.jacobian = math.inf, np.zeros((len(y), len(self.theta)))
    self.update()
    # A constant whose neighbours leave the formula undefined, as the 6 of `x**6` where x < 0, stays as it is.
    self.is_free = np.all(np.isfinite(self.jacobian), axis=0) & self._has_neighbours()

  def _translate(self) -> None:
    """The formula over the columns that it reads, padded to the buckets."""
    # Of a bare number the first column's rows, which it does not read.
    used = sorted({part.value for part in expression.walk(self.node) if part.token == expression.VARIABLE}) or [0]
    num_columns = compilation.bucket(len(used), COLUMN_BUCKETS)
    # More rows than the largest bucket go in chunks of it. The last row again: a padded zero could lie outside the
    # domain for nothing.
    num_rows = compilation.bucket(len(self.y), ROW_BUCKETS)
    columns = np.pad(self.x[:, used].T, ((0, num_columns - len(used)), (0, num_rows - len(self.y))), mode="edge")
    num_chunks = -(-num_rows // ROW_BUCKETS[-1])
    self._num_slots = compilation.bucket(len(self.theta), CONSTANT_BUCKETS)
    length = compilation.bucket(programs.size(self.node), TOKEN_BUCKETS)
    place = {column: i for i, column in enumerate(used)}
    vocab = programs.base_vocabulary(num_columns, has_requested=programs.has_requested([self.node]))
    ids, values = programs.encode_programs(
      [expression.with_columns(self.node, place)], vocab, num_programs=1, length=length)
    with jax.enable_x64(True):
      self._chunks = [jnp.asarray(chunk) for chunk in np.split(columns, num_chunks, axis=1)]
      self._program = _translate(ids[0], values[0], vocab=vocab, num_slots=self._num_slots)

  def _has_neighbours(self) -> np.ndarray:
    """Whether the formula is defined on both sides of each constant [C]; only powers can be undefined there."""
    if not len(self.theta) or all(part.token != "pow" for part in expression.walk(self.node)):
      return np.ones(len(self.theta), bool)
    steps = np.diag(PROBE * np.where(self.theta != 0, np.abs(self.theta), 1.0))
    is_finite = np.isfinite(self.predict_many(np.concatenate([self.theta + steps, self.theta - steps]))).all(axis=1)
    return is_finite[: len(self.theta)] & is_finite[len(self.theta) :]

  def _padded(self, theta: np.ndarray) -> np.ndarray:
    padded = np.zeros((*theta.shape[:-1], self._num_slots))
    padded[..., : theta.shape[-1]] = theta
    return padded

  def predict(self, theta: np.ndarray) -> np.ndarray:
    """Values [N] with constants theta [C]; those of the fitted tree, whatever small integers they pass through."""
    with jax.enable_x64(True):
      parts = [np.asarray(_values(self._program, self._padded(theta), chunk)) for chunk in self._chunks]
    return np.concatenate(parts)[: len(self.y)]

  def predict_many(self, thetas: np.ndarray) -> np.ndarray:
    """Values [K, N] with each of several lists of constants thetas [K, C]."""
    if len(self._chunks) > 1 or len(thetas) <= FEW_THETAS:  # calls cost less than what they compute
      return np.stack([self.predict(theta) for theta in thetas])
    found = []
    for begin in range(0, len(thetas), THETAS_AT_ONCE):
      some = thetas[begin : begin + THETAS_AT_ONCE]
      padded = self._padded(np.concatenate([some, np.repeat(some[-1:], THETAS_AT_ONCE - len(some), axis=0)]))
      with jax.enable_x64(True):
        values = np.asarray(_values_of_many(self._program, padded, self._chunks[0]))
      found.append(values[: len(some), : len(self.y)])
    return np.concatenate(found)

  def _predict_with_jacobian(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    with jax.enable_x64(True):
      parts = [np.asarray(_values_and_jacobian(self._program, self._padded(theta), chunk)) for chunk in self._chunks]
    rows = np.concatenate(parts, axis=1)
    return rows[0, : len(self.y)], rows[1 : 1 + len(self.theta), : len(self.y)].T

  def _squares(self, values: np.ndarray) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
      loss = float(np.sum(self.weights * (values - self.y) ** 2))
    return loss if math.isfinite(loss) else math.inf

  def loss(self, theta: np.ndarray) -> float:
    """The weighted sum of squares at constants theta [C]; inf where the formula is undefined."""
    return self._squares(self.predict(theta))

  def losses(self, thetas: np.ndarray) -> np.ndarray:
    """`loss` of each of several lists of constants [K, C]."""
    if len(self._chunks) > 1:
      return np.array([self.loss(theta) for theta in thetas])
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
    if np.linalg.cond(gram) > 1 / np.finfo(np.float64).eps:
      return np.full(gram.shape, np.inf)
    return np.linalg.inv(gram) / np.outer(scale, scale) * self.noise

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
