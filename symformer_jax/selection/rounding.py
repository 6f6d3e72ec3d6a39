"""Constants as a person would write them: simple values and few digits, as far as the residual allows.

Near its optimum the squared error is a quadratic form in the constants: moving constant i by d, and letting the
others follow, raises it by sigma^2 (d / stderr_i)^2. So one Jacobian tells which values are as good as the fitted
ones, and by how much the others must move: Babai's nearest-plane rounding, one constant after the other.
"""

from collections.abc import Collection
import copy
import math
from typing import NamedTuple

import numpy as np

from symformer_jax.engine import criteria
from symformer_jax.engine.config import DEFAULT, SelectionConfig
from symformer_jax.language import loosened, printing, programs
from symformer_jax.language.expression import Node
from symformer_jax.refinement import snapping
from symformer_jax.refinement.local import LocalModel
from symformer_jax.selection import freedom, scoring

# Beyond these powers of ten a number is written with its exponent, whose digits count too.
PLAIN_EXPONENT = 6
# Significant digits of float64 that survive arithmetic.
MAX_DIGITS = 15
# Singular values below this share of the largest are zero, with room for the rounding of derivatives near a pole.
SINGULAR = 1e-8


def _stands(node: Node, parent: str = "", place: int = 0) -> list[tuple[str, int]]:
  """Of each constant the token above it, and which of its arguments it is."""
  if programs.is_constant(node):
    return [(parent, place)]
  return [found for i, arg in enumerate(node.args) for found in _stands(arg, node.token, i)]


def _factor_flags(node: Node) -> list[bool]:
  """Whether each constant is a factor of a product: at 1 it goes, and the product with it."""
  return [parent == "*" for parent, _ in _stands(node)]


class _Local(LocalModel):
  """The local model of a finalist, and what the config says of its constants."""

  def __init__(
    self, node: Node, x: np.ndarray, y: np.ndarray, weights: np.ndarray, config: SelectionConfig = DEFAULT.selection
  ):
    self.config = config
    self._variance = scoring.weighted_variance(y, weights)
    super().__init__(node, x, y, weights, floor=criteria.error_floor(self._variance), num_refits=config.num_refits)

  def resolve_doubles(self) -> None:
    """Where the data are met to double precision, that is the resolution of the numbers: of `5*exp(3*x) + 6.38*x`
    single precision, a share of the largest values, would leave open whether 6.38 is 6.
    """
    met = self.config.met * self._variance
    if self.sum_of_squares / self._degrees <= met:
      self._floor = met


class ParameterErrors(NamedTuple):
  """Standard errors in the units of the numbers, None where the data give none.

  Attributes:
    fitted: of each constant of a tree [C].
    whole: of each of its `loosened.whole_numbers`; empty where none has an error, as for exact data.
  """

  fitted: list[float | None]
  whole: list[float | None]


def parameter_errors(
  node: Node, x: np.ndarray, y: np.ndarray, weights: np.ndarray, *, held: Collection[float] = (),
  has_phases: bool = True,
) -> ParameterErrors:
  """Standard errors of the constants of a fitted tree, and of its whole numbers.

  Where the data are not met exactly, whole numbers and phases that are not written are as free as the fitted constants,
  or these would seem to be known better than they are; those that the others make up for are left out.
  Args:
    node: a formula; x: [N, D]; y: [N]; weights: [N], at least 0, relative.
    held: absolute values of whole numbers that are given.
    has_phases: whether waves may have phases that are not written.
  """
  local = _Local(node, x, y, weights)
  if np.sum(local.weights > 0) <= len(local.theta):
    return ParameterErrors([None] * len(local.theta), [])
  loose = _loosened(node, local, held, has_phases)
  if loose is None:
    return ParameterErrors(_errors(local, local.covariance()), [])
  errors = _errors(loose.model, loose.covariance)

  def of(kind: int) -> list[float | None]:
    return [error for error, other in zip(errors, loose.kinds, strict=True) if other == kind]

  whole = of(loosened.WHOLE)
  return ParameterErrors(of(loosened.FITTED), whole if any(error is not None for error in whole) else [])


def standard_errors(
  node: Node, x: np.ndarray, y: np.ndarray, weights: np.ndarray, *, held: Collection[float] = (),
  has_phases: bool = True, holds_form: bool = False,
) -> list[float | None]:
  """Those of the constants alone, see `parameter_errors`; `holds_form`: with nothing free beside them."""
  if holds_form:
    local = _Local(node, x, y, weights)
    return _errors(local, local.covariance()) if local.is_free.any() else [None] * len(local.theta)
  return parameter_errors(node, x, y, weights, held=held, has_phases=has_phases).fitted


def _errors(local: LocalModel, covariance: np.ndarray) -> list[float | None]:
  """Of each constant [C], from the covariance of those that are free."""
  variances = np.full(len(local.theta), np.nan)
  variances[local.is_free] = np.diag(covariance)
  return [float(np.sqrt(v)) if np.isfinite(v) and v >= 0 else None for v in variances]


class _Loosened(NamedTuple):
  """A formula around all its parameters: what each constant is [C], and the covariance of the free ones."""

  model: LocalModel
  kinds: list[int]
  covariance: np.ndarray


def _loosened(
  node: Node, local: _Local, held: Collection[float] = (), has_phases: bool = True
) -> _Loosened | None:
  """None where the fitted constants are all, or the data met exactly; and where they tell too few of them apart."""
  tree, kinds = loosened.loosen(node)
  if all(kind == loosened.FITTED for kind in kinds) or local.is_exact or not math.isfinite(local.sum_of_squares):
    return None
  model, is_fitted = _Local(tree, local.x, local.y, local.weights), np.equal(kinds, loosened.FITTED)
  model.is_free[is_fitted] &= local.is_free
  model.is_free &= is_fitted | ~np.isin(np.abs(np.round(model.theta)), list(held))
  if not has_phases:
    model.is_free &= np.not_equal(kinds, loosened.PHASE)
  free = np.flatnonzero(model.is_free)
  columns = np.sqrt(model.weights)[:, None] * model.jacobian[:, free]
  is_kept = freedom.told_apart(columns, np.array(kinds)[free], int(np.sum(model.weights > 0)) - 1)
  model.is_free[free[~is_kept]] = False
  if not np.any(model.is_free & ~is_fitted):
    return None
  covariance = model.covariance()
  is_known = np.all(np.isfinite(covariance)) and np.all(np.diag(covariance) > 0)
  return _Loosened(model, kinds, covariance) if is_known else None


def curve_errors(
  node: Node, x: np.ndarray, y: np.ndarray, weights: np.ndarray, at: np.ndarray, *, holds_form: bool = False
) -> np.ndarray | None:
  """Standard error of a formula's value at points [M, D], from the covariance of its parameters: [M], units of y.

  Args:
    node: a fitted formula; x: [N, D]; y: [N]; weights: [N], at least 0, relative.
    holds_form: whether its whole numbers and phases are certain, and its constants alone have errors.
  Returns:
    NaN where the formula has no derivative; None where the data give its constants no errors.
  """
  local = _Local(node, x, y, weights)
  if np.sum(local.weights > 0) <= len(local.theta):
    return None
  loose = None if holds_form else _loosened(node, local)
  model, covariance = (loose.model, loose.covariance) if loose is not None else (local, local.covariance())
  if not model.is_free.any() or not np.all(np.isfinite(covariance)):
    return None
  tree = node if loose is None else loose.model.node
  slopes = LocalModel(tree, at, np.zeros(len(at)), np.ones(len(at)), floor=0.0).jacobian[:, model.is_free]
  with np.errstate(all="ignore"):
    return np.sqrt(np.einsum("mi,ij,mj->m", slopes, covariance, slopes))


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


def refit_constants(
  node: Node, x: np.ndarray, y: np.ndarray, weights: np.ndarray, *, config: SelectionConfig = DEFAULT.selection
) -> Node:
  """A few Gauss-Newton steps from constants that were fitted on fewer rows.

  Args:
    node: a formula with nearly fitted constants; x: [N, D]; y: [N]; weights: [N].
  """
  local = _Local(node, x, y, weights, config)
  local.refit()
  return programs.replace_values(node, local.theta.tolist())


def remove_redundant(
  node: Node, x: np.ndarray, y: np.ndarray, weights: np.ndarray, *, config: SelectionConfig = DEFAULT.selection
) -> Node:
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
  local = _Local(node, x, y, weights, config)
  local.resolve_doubles()
  while local.is_free.any() and math.isfinite(local.sum_of_squares) and _fix_redundant(local):
    # The fit may have stopped short in the valley that has now become a point.
    local.refit()
  return programs.replace_values(node, local.theta.tolist())


def _fix_redundant(local: _Local) -> bool:
  """Fixes one redundant constant of `local`.

  At 0 where it does nothing or others add up to it, at 1 or -1 where it rescales others.
  """
  return _fix_negligible(local) or _fix_factor(local) or _fix_summand(local)


def _fix_negligible(local: _Local) -> bool:
  """A constant that changes nothing when it is 0, as 3e-15 times a term that an exact fit has left over."""
  places = np.flatnonzero(local.is_free & (local.theta != 0))
  if not len(places):
    return False
  without = np.where(np.arange(len(local.theta)) == places[:, None], 0.0, local.theta)
  allowed = np.flatnonzero(local.losses(without) <= _most(local))
  return len(allowed) > 0 and _accept(local, int(places[allowed[0]]), without[allowed[0]])


@np.errstate(over="ignore")  # derivatives may be huge; norms that overflow are infinite, and say nothing
def _null_direction(columns: np.ndarray) -> np.ndarray | None:
  """Along which combination of the columns [N, F] nothing changes [F]; None where every one does."""
  norms = np.linalg.norm(columns, axis=0)
  if not len(norms) or not np.all(np.isfinite(norms)):
    return None
  norms = np.where(norms > 0, norms, 1.0)
  # Rows of zeros change nothing, and make a direction for every constant even with fewer points than those.
  padded = np.concatenate([columns / norms, np.zeros((len(norms), len(norms)))])
  _, singular, directions = np.linalg.svd(padded, full_matrices=False)
  return None if singular[-1] > SINGULAR * singular[0] else directions[-1] / norms


def _most(local: _Local) -> float:
  """The sum of squares at which the error stays."""
  return local.sum_of_squares + local.config.redundant_share * local.noise


def _accept(local: _Local, index: int, theta: np.ndarray) -> bool:
  """Holds constant `index` at its place in theta [C] from now on, where the error stays."""
  if not np.all(np.isfinite(theta)) or local.loss(theta) > _most(local):
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
  node: Node, x: np.ndarray, y: np.ndarray, weights: np.ndarray, *, num_errors: float | None = None,
  config: SelectionConfig = DEFAULT.selection,
) -> Node:
  """Replaces constants by 0, whole or half numbers within their standard errors, and refits the others.

  Args:
    node: a formula with fitted constants; x: [N, D]; y: [N]; weights: [N].
    num_errors: reach in standard errors, beyond the first of `config.snap_errors`, which is the default, for values
      alone that make the formula a simpler one.
  Returns:
    A tree of the same shape; `1*x` and `0*x` are left to the canonicalizer.
  """
  if node.is_number:  # a constant fit has no structure to simplify
    return node
  num_errors = config.snap_errors[0] if num_errors is None else num_errors
  local = _Local(node, x, y, weights, config)
  local.resolve_doubles()
  while local.is_free.any() and math.isfinite(local.sum_of_squares):
    covariance = local.covariance()
    choice = _nearest_simple(local, covariance, num_errors)
    if choice is None:
      break
    local.fix(*choice, covariance)
    local.refit()
  return programs.replace_values(node, local.theta.tolist())


def _nearest_simple(local: _Local, covariance: np.ndarray, num_errors: float) -> tuple[int, float] | None:
  """The free constant closest to a simple value in standard errors, and that value; None when none is near. With more
  than the first reach those first that make the formula a simpler one: the others are then seen beside it.
  """
  first = local.config.snap_errors[0]
  stands = _stands(local.node) if num_errors > first else []
  found: list[tuple[bool, float, int, float]] = []
  for row, index in enumerate(np.flatnonzero(local.is_free)):
    variance = covariance[row, row]
    if not np.isfinite(variance) or variance <= 0:
      continue
    stderr, value = math.sqrt(variance), local.theta[index]
    for target, spacing in ((0.0, math.inf), (float(round(value)), 1.0), (round(2 * value) / 2, 0.5)):
      is_shorter = bool(stands) and _shortens(target, *stands[index])
      reach, distance = num_errors if is_shorter else min(num_errors, first), abs(value - target) / stderr
      is_rare = reach * stderr <= local.config.snap_share * spacing
      if is_rare and distance < (reach if is_shorter else min(reach, _reach(spacing / stderr, local.config))):
        found.append((not is_shorter, distance, int(index), target))
  return min(found, key=lambda each: each[:2])[2:] if found else None


def _reach(spacing: float, config: SelectionConfig) -> float:
  """Standard errors within which a simple value is likelier than any other, where such values lie so many apart."""
  odds = config.snap_odds * spacing / math.sqrt(2 * math.pi)
  return math.sqrt(2 * math.log(odds)) if odds > 1 else 0.0


def _shortens(value: float, parent: str, place: int) -> bool:
  """Whether a formula is a simpler one, not only of rounder numbers, with a value where a constant stands."""
  return value == 0 or (parent == "*" and abs(value) == 1) or (parent == "pow" and place == 1)


def round_constants(
  node: Node, x: np.ndarray, y: np.ndarray, weights: np.ndarray, *, config: SelectionConfig = DEFAULT.selection
) -> Node:
  """Gives every constant the fewest digits that cost nothing within the residual.

  The best determined constants are rounded first, and the others follow each time; where they cannot, see
  `_round_in_turn`.
  """
  local = _Local(node, x, y, weights, config)
  if not math.isfinite(local.sum_of_squares):
    return node
  room = config.exact_digit_errors if local.is_exact else config.digit_errors
  if local.is_exact:
    _fix_decimals(local)
  fitted = copy.copy(local)
  fitted.theta, fitted.is_free = local.theta.copy(), local.is_free.copy()
  most = local.sum_of_squares + len(local.theta) * local.noise
  _round_together(local, room)
  # Far from quadratic, the prediction of what rounding costs may be wrong.
  if local.sum_of_squares > most and not fitted.is_exact:
    local = fitted
    _round_in_turn(local, room)
  return programs.replace_values(node, local.theta.tolist()) if local.sum_of_squares <= most else node


def _fix_decimals(local: _Local) -> None:
  """Holds the constants of an exact formula that are decimals of few digits to far more than the data are met to.

  Rounded with the others, which are none, they would follow them: -2.1999999 and 69.62689 for -2.2 and 69.6268948.
  """
  local.refit()
  for index in np.flatnonzero(local.is_free):
    decimal = _decimal(local.theta[index], local.config)
    if decimal is not None:
      local.theta[index], local.is_free[index] = decimal, False
  local.update()


def _decimal(value: float, config: SelectionConfig) -> float | None:
  """The decimal of few digits that a value agrees with to more than chance would have it; None where there is none."""
  for digits in range(1, config.decimal_digits + 1):
    rounded = _digits(value, digits)
    if abs(rounded - value) <= min(config.decimal_share, config.decimal_chance * 10.0**-digits) * abs(value):
      return rounded
  return None


def _round_together(local: _Local, room: float) -> None:
  """Rounds the constants within `room` standard errors; the others follow in a straight line."""
  before, noise = local.sum_of_squares, local.noise
  while local.is_free.any():
    covariance = local.covariance()
    free = np.flatnonzero(local.is_free)
    variances = np.diag(covariance)
    # Not finite, or nothing or less by rounding: undetermined together; what a digit costs is found by trying.
    if not np.all(np.isfinite(variances) & (variances > 0)):
      _round_one_by_one(local, before + room**2 * noise)
      break
    with np.errstate(all="ignore"):  # of a constant that is 0 the share is infinite
      row = int(np.argmin(np.sqrt(variances) / np.abs(local.theta[free])))
    # The noise stays that of the fit: fixing constants must not lend the next one more room.
    stderr = math.sqrt(variances[row] * (noise / local.noise))  # in the middle of the range of doubles
    local.fix(int(free[row]), _fewest_digits(local.theta[free[row]], room * stderr), covariance)
  local.update()


def _round_in_turn(local: _Local, room: float) -> None:
  """Rounds the constants, the least determined first, to as few digits as cost `room`**2 of a variance each; the others
  are fitted again each time: a factor and an exponent that are known together only move along a curve.
  """
  step, allowed = room**2 * local.noise, local.sum_of_squares
  while local.is_free.any():
    free = np.flatnonzero(local.is_free)
    with np.errstate(all="ignore"):
      errors = np.sqrt(np.diag(local.covariance())) / np.abs(local.theta[free])
    index = int(free[np.argmax(np.nan_to_num(errors, nan=np.inf))])
    before, allowed = local.theta.copy(), allowed + step
    local.is_free[index] = False
    for digits in range(1, MAX_DIGITS + 1):
      local.theta = before.copy()
      local.theta[index] = _digits(before[index], digits)
      local.refit()
      if local.sum_of_squares <= allowed:
        break
    else:
      local.theta = before
      local.update()


def _round_one_by_one(local: _Local, allowed: float) -> None:
  """Rounds each constant alone, as far as the squared error stays within `allowed`."""
  for i in np.flatnonzero(local.is_free):
    rounded = np.repeat(local.theta[None], MAX_DIGITS, axis=0)
    rounded[:, i] = [_digits(local.theta[i], digits) for digits in range(1, MAX_DIGITS + 1)]
    enough = np.flatnonzero(local.losses(rounded) <= allowed)
    if len(enough):
      local.theta = rounded[enough[0]]


def count_digits(node: Node) -> int:
  """Significant digits with which the constants of a tree are written, all together, and those of large exponents."""
  return sum(_num_digits(value) for value in programs.fitted_values(node))


def _num_digits(value: float) -> int:
  mantissa, _, exponent = f"{abs(value):.{MAX_DIGITS - 1}e}".partition("e")
  digits, places = mantissa.replace(".", "").rstrip("0"), str(abs(int(exponent)))
  # 8e-130 takes more to say than an 8.
  return max(len(digits), 1) + (len(places) if int(places) > PLAIN_EXPONENT else 0)


def _digits(value: float, digits: int) -> float:
  return float(f"{value:.{digits}g}")


def _fewest_digits(value: float, tolerance: float) -> float:
  """The decimal of fewest significant digits within `tolerance` of a value."""
  for digits in range(1, MAX_DIGITS + 1):
    rounded = _digits(value, digits)
    if abs(rounded - value) <= tolerance:
      return rounded
  return value
