"""Constants as a person would write them: simple values and few digits, as far as the residual allows.

Near its optimum the squared error is a quadratic form in the constants: moving constant i by d, and letting the
others follow, raises it by sigma^2 (d / stderr_i)^2. So one Jacobian tells which values are as good as the fitted
ones, and by how much the others must move: Babai's nearest-plane rounding, one constant after the other.
"""

from collections.abc import Iterator, Sequence
import math

import numpy as np

from symformer_jax.language import constants as constants_lib, printing
from symformer_jax.language.expression import Node, number, walk
from symformer_jax.refinement import snapping
from symformer_jax.selection import criteria, scoring

# A whole or half number is offered in place of a constant within so many standard errors. Under a true simple value
# 1 fit in 80 is further away than the first; real data are seldom as well-behaved as a standard error supposes,
# so a wider reach is offered too, and description length decides.
SNAP_ERRORS = (2.5, 6.0)
# The reach must stay below this share of the distance between simple values: near one by chance is no finding.
SNAP_SHARE = 0.25
# Digits are dropped within this share of a standard error: the squared error then rises by at most
# 0.01 sigma^2 a constant, a hundredth of what one data point contributes.
DIGIT_ERRORS = 0.1
# A fit below the resolution of float32 has no residual to speak of: the whole standard error, which then stands for
# that resolution, is room.
EXACT_DIGIT_ERRORS = 1.0
MAX_DIGITS = 15
NUM_REFITS = 3
# Of a central difference, relative to the constant: the cube root balances truncation and rounding.
STEP = float(np.cbrt(np.finfo(np.float64).eps))
# A difference below this share of the predictions is their rounding; the step is then larger by this factor.
VISIBLE, SCALE_GROWTH = 1e-10, 1e3
# Singular values below this share of the largest are zero, by the accuracy of a central difference (about 1e-10).
SINGULAR = 1e-8


def fitted_values(node: Node) -> list[float]:
  """The constants of a tree in prefix order: its numbers, save the integers that are tokens of their own."""
  return [n.value for n in walk(node) if _is_constant(n)]


def replace_values(node: Node, values: Sequence[float]) -> Node:
  """The tree with its constants (see `fitted_values`) replaced."""
  return _replaced(node, iter(values))


def _replaced(node: Node, values: Iterator[float]) -> Node:
  if _is_constant(node):
    return number(next(values))
  return node._replace(args=tuple(_replaced(arg, values) for arg in node.args)) if node.args else node


def _is_constant(node: Node) -> bool:
  return node.is_number and not constants_lib.is_small_integer(node.value)


def _factor_flags(node: Node, parent: str = "") -> list[bool]:
  """Whether each constant is a factor of a product: at 1 it goes, and the product with it."""
  if _is_constant(node):
    return [parent == "*"]
  return [flag for arg in node.args for flag in _factor_flags(arg, node.token)]


class _Local:
  """The squared error of one formula around its constants theta [C], some of them held fixed."""

  def __init__(
    self, node: Node, x: np.ndarray, y: np.ndarray, weights: np.ndarray, theta: np.ndarray | None = None
  ):
    self.node, self.x, self.y = node, x, y
    self.weights = weights / np.mean(weights)
    self.theta = np.array(fitted_values(node), np.float64) if theta is None else theta
    self._floor = criteria.error_floor(scoring.weighted_variance(self.y, self.weights))
    self.sum_of_squares, self.jacobian = np.inf, np.zeros((0, len(self.theta)))
    self.update()
    # A constant whose neighbours leave the formula undefined, as the 6 of `x**6` where x < 0, stays as it is.
    self.is_free = np.all(np.isfinite(self.jacobian), axis=0)

  def _predict(self, theta: np.ndarray) -> np.ndarray:
    # Positions are those of the fitted tree, whatever small integers the values pass through.
    return scoring.evaluate(_replaced(self.node, iter(theta.tolist())), self.x)

  def loss(self, theta: np.ndarray) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
      loss = float(np.sum(self.weights * (self._predict(theta) - self.y) ** 2))
    return loss if math.isfinite(loss) else math.inf

  def update(self) -> None:
    """Computes loss and Jacobian [N, C] at theta, the latter by central differences."""
    self.sum_of_squares, self.jacobian = self.loss(self.theta), self._differences(self.theta)

  def look(self, free: np.ndarray) -> np.ndarray:
    """Values and derivatives [1 + F, N] at free constants [F], the others held."""
    theta = self.theta.copy()
    theta[self.is_free] = free
    return np.vstack([self._predict(theta), self._differences(theta)[:, self.is_free].T])

  def _differences(self, theta: np.ndarray) -> np.ndarray:
    """Jacobian [N, C] at constants [C]."""
    jacobian = np.zeros((len(self.y), len(theta)))
    for i, value in enumerate(theta):
      scale = abs(value) or 1.0
      jacobian[:, i], is_visible = self._difference(theta, i, STEP * scale)
      # Beside what it is added to, a constant like the 1e-13 of `x + 1e-13` moves nothing by a share of itself.
      while not is_visible and scale < 1.0:
        scale = min(scale * SCALE_GROWTH, 1.0)
        jacobian[:, i], is_visible = self._difference(theta, i, STEP * scale)
    return jacobian

  def _difference(self, theta: np.ndarray, index: int, size: float) -> tuple[np.ndarray, bool]:
    """Central difference [N] by one constant, and whether it stands out of the rounding of the predictions."""
    step = np.zeros(len(theta))
    step[index] = size
    with np.errstate(all="ignore"):
      above, below = self._predict(theta + step), self._predict(theta - step)
      # As the squared error sees it: rows of small weight are not what a constant is known by.
      change, level = (np.sum(self.weights * values**2) for values in (above - below, above))
      is_visible = not change <= VISIBLE**2 * level  # NaN: no larger step mends it
      return (above - below) / (2 * size), is_visible

  @property
  def _degrees(self) -> int:
    return max(int(np.sum(self.weights > 0)) - int(np.sum(self.is_free)), 1)

  @property
  def is_exact(self) -> bool:
    """Whether the residual is no more than the resolution of float32 numbers."""
    return self.sum_of_squares / self._degrees <= self._floor

  @property
  def noise(self) -> float:
    """sigma^2, squared units of y: never below the resolution of float32 numbers."""
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
    for _ in range(NUM_REFITS):
      self.update()
      if not self.is_free.any() or not math.isfinite(self.sum_of_squares):
        return
      jacobian, residual = self._equations()
      if not np.all(np.isfinite(jacobian)):
        return
      step = np.zeros(len(self.theta))
      step[self.is_free] = np.linalg.lstsq(jacobian, residual, rcond=None)[0]
      if self.loss(self.theta + step) >= self.sum_of_squares:
        return
      self.theta = self.theta + step
    self.update()

  def _equations(self) -> tuple[np.ndarray, np.ndarray]:
    """Weighted Jacobian [N, F] of the free constants and residuals [N], whose least squares are the next step."""
    root = np.sqrt(self.weights)
    return root[:, None] * self.jacobian[:, self.is_free], root * (self.y - self._predict(self.theta))


class _LargeLocal(_Local):
  """The same for many rows: weighted Jacobian and residuals are kept as their triangular factor [C + 1, C + 1].

  Rows are taken `scoring.CHUNK_ROWS` at a time, and each chunk is joined to the factor by a QR decomposition: least
  squares and covariance are those of all rows, to rounding, in the memory of one chunk.
  """

  def update(self) -> None:
    count = len(self.theta)
    factor = np.zeros((0, count + 1))
    is_finite = np.ones(count, bool)
    total = 0.0
    for begin in range(0, len(self.y), scoring.CHUNK_ROWS):
      rows = slice(begin, begin + scoring.CHUNK_ROWS)
      weights = self.weights[rows]
      part = _Local(self.node, self.x[rows], self.y[rows], weights, self.theta)
      total += part.sum_of_squares * np.mean(weights)  # the part's own weights have a mean of 1
      is_finite &= part.is_free
      root = np.sqrt(weights)
      with np.errstate(all="ignore"):
        residual = root * (part.y - part._predict(self.theta))
      block = np.column_stack([root[:, None] * np.where(part.is_free, part.jacobian, 0.0), residual])
      if np.isfinite(total):
        factor = np.linalg.qr(np.vstack([factor, block]), mode="r")
    self.sum_of_squares = float(total) if math.isfinite(total) else math.inf
    self._residual = factor[:, count]
    self.jacobian = np.where(is_finite, factor[:, :count], np.nan)

  def _equations(self) -> tuple[np.ndarray, np.ndarray]:
    return self.jacobian[:, self.is_free], self._residual

  def covariance(self) -> np.ndarray:
    weights, self.weights = self.weights, np.ones(len(self.jacobian))
    try:
      return super().covariance()
    finally:
      self.weights = weights

  @property
  def _degrees(self) -> int:
    return max(len(self.y) - int(np.sum(self.is_free)), 1)


def _around(node: Node, x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> _Local:
  """The squared error of a formula, in a form that suits the number of rows."""
  return (_LargeLocal if len(y) > scoring.CHUNK_ROWS else _Local)(node, x, y, weights)


def standard_errors(node: Node, x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> list[float | None]:
  """Standard error of each constant of a fitted tree, in the constant's units; None where the data give none.

  Args:
    node: a formula; x: [N, D]; y: [N]; weights: [N], at least 0, relative.
  """
  local = _around(node, x, y, weights)
  if not len(local.theta) or np.sum(local.weights > 0) <= len(local.theta):
    return [None] * len(local.theta)
  variances = np.full(len(local.theta), np.nan)
  variances[local.is_free] = np.diag(local.covariance())
  return [float(np.sqrt(v)) if np.isfinite(v) and v >= 0 else None for v in variances]


def exact_forms(node: Node, x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> list[str | None]:
  """What each constant of a fitted tree is exactly, as `2*pi` or `1/3`, where the data leave no doubt.

  See `refinement.snapping`. None stands where a constant is ordinary, and where its decimals are exact already.
  Args:
    node: a formula with fitted constants; x: [N, D]; y: [N]; weights: [N], at least 0, relative.
  """
  local = _Local(node, x, y, weights)
  forms: list[str | None] = [None] * len(local.theta)
  if not local.is_free.any() or not math.isfinite(local.sum_of_squares):
    return forms
  free = local.theta[local.is_free]
  snapped = snapping.snap(local.look, free, local.y, local.weights)
  for i, special, value in zip(np.flatnonzero(local.is_free), snapped.exact, free, strict=True):
    if special is not None and special.value != value:
      forms[i] = printing.to_text(special.node)
  return forms


def refit_constants(node: Node, x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Node:
  """A few Gauss-Newton steps from constants that were fitted on fewer rows.

  Args:
    node: a formula with nearly fitted constants; x: [N, D]; y: [N]; weights: [N].
  """
  local = _around(node, x, y, weights)
  local.refit()
  return replace_values(node, local.theta.tolist())


def remove_redundant(node: Node, x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Node:
  """Sets constants to 1 or 0 that others can make up for: a/(b x + c) -> (a/b)/(x + c/b), a*x**0 + b -> (a + b)*x**0.

  A constant that only rescales others shows as a direction in the logarithms of the constants along which no
  prediction changes, one that only adds to others as a direction in the constants themselves. Moving along it until
  one of them is 1, or 0, is exact for such formulas; whatever else looks alike is tried and kept only when the error
  stays.
  Args:
    node: a formula with fitted constants; x: [N, D]; y: [N]; weights: [N].
  Returns:
    A tree of the same shape; `1*x` is left to the canonicalizer.
  """
  local = _Local(node, x, y, weights)
  while local.is_free.any() and math.isfinite(local.sum_of_squares) and _fix_redundant(local):
    # The fit may have stopped short in the valley that has now become a point.
    local.refit()
  return replace_values(node, local.theta.tolist())


def _fix_redundant(local: _Local) -> bool:
  """Fixes one redundant constant of `local`.

  At 0 where it does nothing or others add up to it, at 1 or -1 where it rescales others.
  """
  return _fix_negligible(local) or _fix_factor(local) or _fix_summand(local)


def _fix_negligible(local: _Local) -> bool:
  """A constant that changes nothing when it is 0, as 3e-15 times a term that an exact fit has left over."""
  for index in np.flatnonzero(local.is_free & (local.theta != 0)):
    if _accept(local, index, np.where(np.arange(len(local.theta)) == index, 0.0, local.theta)):
      return True
  return False


def _null_direction(columns: np.ndarray) -> np.ndarray | None:
  """Along which combination of the columns [N, F] nothing changes [F]; None where every one does."""
  norms = np.linalg.norm(columns, axis=0)
  if not len(norms) or not np.all(np.isfinite(norms)):
    return None
  norms = np.where(norms > 0, norms, 1.0)
  # Rows of zeros change nothing, and make a direction for every constant even with fewer points than those.
  padded = np.pad(columns / norms, ((0, max(len(norms) - len(columns), 0)), (0, 0)))
  _, singular, directions = np.linalg.svd(padded, full_matrices=False)
  return None if singular[-1] > SINGULAR * singular[0] else directions[-1] / norms


def _accept(local: _Local, index: int, theta: np.ndarray) -> bool:
  """Holds constant `index` at its place in theta [C] from now on, where the error stays."""
  if not np.all(np.isfinite(theta)) or local.loss(theta) > local.sum_of_squares + 1e-3 * local.noise:
    return False
  local.theta = theta
  local.is_free[index] = False
  return True


def _fix_factor(local: _Local) -> bool:
  free = np.flatnonzero(local.is_free)
  direction = _null_direction(np.sqrt(local.weights)[:, None] * local.jacobian[:, free] * local.theta[free])
  if direction is None:
    return False
  is_factor = np.array(_factor_flags(local.node))[free]
  for row in np.lexsort((-np.abs(direction), ~is_factor)):
    if abs(direction[row]) < 1e-3 * np.max(np.abs(direction)):  # no part of the redundancy
      continue
    theta = local.theta.copy()
    shift = -math.log(abs(theta[free[row]])) / direction[row] if theta[free[row]] else 0.0
    with np.errstate(over="ignore", under="ignore"):
      theta[free] *= np.exp(shift * direction)
    theta[free[row]] = math.copysign(1.0, local.theta[free[row]])
    if _accept(local, free[row], theta):
      return True
  return False


def _fix_summand(local: _Local) -> bool:
  free = np.flatnonzero(local.is_free)
  if len(np.unique(local.x[local.weights > 0], axis=0)) <= len(free):
    return False  # what so few points leave open is not redundant
  direction = _null_direction(np.sqrt(local.weights)[:, None] * local.jacobian[:, free])
  if direction is None:
    return False
  for row in np.argsort(-np.abs(direction)):
    if abs(direction[row]) < 1e-3 * np.max(np.abs(direction)):
      continue
    theta = local.theta.copy()
    theta[free] -= direction * theta[free[row]] / direction[row]
    theta[free[row]] = 0.0
    if _accept(local, free[row], theta):
      return True
  return False


def snap_constants(
  node: Node, x: np.ndarray, y: np.ndarray, weights: np.ndarray, *, num_errors: float = SNAP_ERRORS[0]
) -> Node:
  """Replaces constants by 0, whole or half numbers within their standard errors, and refits the others.

  Args:
    node: a formula with fitted constants; x: [N, D]; y: [N]; weights: [N].
    num_errors: reach in standard errors.
  Returns:
    A tree of the same shape; `1*x` and `0*x` are left to the canonicalizer.
  """
  if node.is_number:  # a constant fit has no structure to simplify
    return node
  local = _Local(node, x, y, weights)
  while local.is_free.any() and math.isfinite(local.sum_of_squares):
    covariance = local.covariance()
    choice = _nearest_simple(local, covariance, num_errors)
    if choice is None:
      break
    local.fix(*choice, covariance)
    local.refit()
  return replace_values(node, local.theta.tolist())


def _nearest_simple(local: _Local, covariance: np.ndarray, num_errors: float) -> tuple[int, float] | None:
  """The free constant closest to a simple value in standard errors, and that value; None when none is near."""
  best, choice = num_errors, None
  for row, index in enumerate(np.flatnonzero(local.is_free)):
    variance = covariance[row, row]
    if not np.isfinite(variance) or variance <= 0:
      continue
    stderr, value = math.sqrt(variance), local.theta[index]
    for target, spacing in ((0.0, math.inf), (float(round(value)), 1.0), (round(2 * value) / 2, 0.5)):
      if num_errors * stderr > SNAP_SHARE * spacing:
        continue
      distance = abs(value - target) / stderr
      if distance < best:
        best, choice = distance, (int(index), target)
  return choice


def round_constants(node: Node, x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Node:
  """Gives every constant the fewest digits that cost nothing within the residual.

  The best determined constants are rounded first, and the others follow each time.
  """
  local = _around(node, x, y, weights)
  if not math.isfinite(local.sum_of_squares):
    return node
  before, noise = local.sum_of_squares, local.noise
  room = EXACT_DIGIT_ERRORS if local.is_exact else DIGIT_ERRORS
  while local.is_free.any():
    covariance = local.covariance()
    free = np.flatnonzero(local.is_free)
    variances = np.diag(covariance)
    # Not finite, or negative by rounding: undetermined together; what a digit costs is found by trying.
    if not np.all(np.isfinite(variances) & (variances >= 0)):
      _round_one_by_one(local, before + room**2 * noise)
      break
    row = int(np.argmin(np.sqrt(variances) / np.maximum(np.abs(local.theta[free]), 1e-300)))
    # The noise stays that of the fit: fixing constants must not lend the next one more room.
    stderr = math.sqrt(max(variances[row], 0.0) * noise / local.noise)
    local.fix(int(free[row]), _fewest_digits(local.theta[free[row]], room * stderr), covariance)
  local.update()
  # Far from quadratic, the prediction of what rounding costs may be wrong: then keep all digits.
  is_harmless = local.sum_of_squares <= before + len(local.theta) * noise
  return replace_values(node, local.theta.tolist()) if is_harmless else node


def _round_one_by_one(local: _Local, allowed: float) -> None:
  """Rounds each constant alone, as far as the squared error stays within `allowed`."""
  for i in np.flatnonzero(local.is_free):
    for digits in range(1, MAX_DIGITS + 1):
      theta = local.theta.copy()
      theta[i] = _digits(theta[i], digits)
      if local.loss(theta) <= allowed:
        local.theta = theta
        break


def count_digits(node: Node) -> int:
  """Significant digits with which the constants of a tree are written, all together."""
  return sum(_num_digits(value) for value in fitted_values(node))


def _num_digits(value: float) -> int:
  digits = f"{abs(value):.{MAX_DIGITS - 1}e}".partition("e")[0].replace(".", "").rstrip("0")
  return max(len(digits), 1)


def _digits(value: float, digits: int) -> float:
  return float(f"{value:.{digits}g}")


def _fewest_digits(value: float, tolerance: float) -> float:
  """The decimal of fewest significant digits within `tolerance` of a value."""
  for digits in range(1, MAX_DIGITS + 1):
    rounded = _digits(value, digits)
    if abs(rounded - value) <= tolerance:
      return rounded
  return value
