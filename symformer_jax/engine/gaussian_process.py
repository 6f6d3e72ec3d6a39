"""A smooth function through the rows of a table, and its derivatives there: Gaussian process regression.

Rasmussen and Williams, Gaussian Processes for Machine Learning (2006): a squared exponential with a length for each
column beside a linear kernel (4.2), both and the noise by marginal likelihood (eq. 5.8, 5.9), errors of rows left out
in closed form (eq. 5.12). Of a sum of functions of some columns each, one squared exponential for every group of
columns (Duvenaud, Nickisch and Rasmussen 2011, Additive Gaussian processes).
"""

from collections.abc import Callable
import functools
import math
from typing import NamedTuple

import numpy as np
from scipy import linalg, optimize

from symformer_jax.engine import interruption
from symformer_jax.engine.config import SurrogateConfig

# Errors of rows left out are told apart down to this share of the target's spread.
_RESOLUTION = 1e-6
# Which share of errors is smaller than what counts as a large one: a few are rounding of a matrix near to singular.
_LARGE = 0.9


class Surrogate(NamedTuple):
  """What is known of a target by a smooth function of the columns.

  Attributes:
    slopes: its derivatives by every column at the rows [N, D], units of y over units of the column.
    errors: of each row [N], predicted by all others, units of y.
    left: the ninth tenth of their sizes, in spreads of what is fitted, y or its logarithm: about 1 where nothing is
      known.
  """

  slopes: np.ndarray
  errors: np.ndarray
  left: float


# Columns that a function has together: of y itself all are one group.
Groups = tuple[tuple[int, ...], ...]


class _Kernel:
  """Covariances of the rows of a table, for the parameters (log) lengths, signals by group, slope and noise.

  Attributes:
    variances: of the noise in each row [N], over that of a row of mean weight.
  """

  def __init__(self, z: np.ndarray, target: np.ndarray, groups: Groups | None = None,
               variances: np.ndarray | None = None):
    self.z, self.target = z, target
    self.variances = np.ones(len(z)) if variances is None else variances
    columns = z.T.copy()
    self.groups = groups or (tuple(range(len(columns))),)
    self.squares = ((columns[:, :, None] - columns[:, None, :]) ** 2).reshape(len(columns), -1)  # [D, N * N]
    self.products = z @ z.T + 1.0

  def split(self, parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Lengths [D]; squared signals [G], slope and noise."""
    lengths, sizes = np.exp(parameters[: self.z.shape[1]]), np.exp(2 * parameters[self.z.shape[1] :])
    return lengths, sizes[:-2], sizes[-2], sizes[-1]

  def parts(self, parameters: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """The squared exponential of each group alone, and all [N, N]."""
    lengths, signals, slope, noise = self.split(parameters)
    smooth = []
    whole = slope * self.products
    for group, signal in zip(map(list, self.groups), signals, strict=True):
      squares = self.squares if len(group) == len(lengths) else self.squares[group]
      part = np.exp(-0.5 * lengths[group] ** -2 @ squares).reshape(whole.shape)
      part *= signal
      whole += part
      smooth.append(part)
    _diagonal(whole)[:] += noise * self.variances
    return smooth, whole

  def solve(self, parameters: np.ndarray) -> "_Solved | None":
    """What follows from the target; None where the matrix has no inverse in double precision."""
    smooth, whole = self.parts(parameters)
    try:
      factor = linalg.cholesky(whole, lower=True, check_finite=False)
    except linalg.LinAlgError:
      return None
    weights = linalg.cho_solve((factor, True), self.target, check_finite=False)
    half = linalg.lapack.dpotri(factor, lower=1)[0]  # of a symmetric matrix; above the diagonal it has zeros
    inverse = half + half.T
    _diagonal(inverse)[:] *= 0.5
    return _Solved(smooth, weights, inverse, 2 * float(np.log(_diagonal(factor)).sum()))

  def likelihood(self, parameters: np.ndarray) -> float:
    """The logarithm of the marginal likelihood, without its constant; -inf where it is not known."""
    try:
      factor = linalg.cholesky(self.parts(parameters)[1], lower=True, check_finite=False)
    except linalg.LinAlgError:
      return -math.inf
    half = linalg.solve_triangular(factor, self.target, lower=True, check_finite=False)
    found = -0.5 * float(half @ half) - float(np.log(_diagonal(factor)).sum())
    return found if math.isfinite(found) else -math.inf

  def slopes(self, parameters: np.ndarray, solved: "_Solved") -> np.ndarray:
    """Of a function of one group, by z [N, D]."""
    lengths, _, slope, _ = self.split(parameters)
    differences = self.z[:, None, :] - self.z[None, :, :]
    smooth = -np.einsum("ijd,ij->id", differences, solved.smooth[0] * solved.weights) * lengths**-2
    return smooth + slope * (self.z.T @ solved.weights)

  def loss(self, parameters: np.ndarray) -> tuple[float, np.ndarray]:
    """The negative logarithm of the marginal likelihood, without its constant, and its gradient."""
    interruption.check()
    solved = self.solve(parameters)
    if solved is None:
      return 1e10, np.zeros_like(parameters)
    outer = np.outer(solved.weights, solved.weights)
    outer -= solved.inverse
    lengths, _, slope, noise = self.split(parameters)
    by_length, by_signal = np.empty_like(lengths), []
    for group, smooth in zip(map(list, self.groups), solved.smooth, strict=True):
      part = outer * smooth
      squares = self.squares if len(group) == len(lengths) else self.squares[group]
      by_length[group] = 0.5 * (squares @ part.ravel()) * lengths[group] ** -2
      by_signal.append(np.sum(part))
    of_slope, of_noise = slope * np.vdot(outer, self.products), noise * _diagonal(outer) @ self.variances
    gradient = np.concatenate([by_length, by_signal, [of_slope, of_noise]])
    return 0.5 * float(self.target @ solved.weights + solved.log_determinant), -gradient


def _diagonal(matrix: np.ndarray) -> np.ndarray:
  """That of a square matrix, to be read and written."""
  return np.einsum("ii->i", matrix)


class _Solved(NamedTuple):
  """Attributes: smooth of each group, inverse: matrices [N, N]; weights [N]: of the rows' kernels."""

  smooth: list[np.ndarray]
  weights: np.ndarray
  inverse: np.ndarray
  log_determinant: float


def fit(x: np.ndarray, y: np.ndarray, config: SurrogateConfig) -> Surrogate:
  """The function of most likely smoothness, in logarithms where columns or the target go over decades.

  Args:
    x: [N, D], y [N]: finite, and not the same in all rows.
  """
  is_log = np.array([is_wide(column, config.wide) for column in x.T])
  tries = [_fit(x, y, is_log, in_logarithms=False, config=config)]
  if is_wide(np.abs(y), config.wide) and (np.all(y > 0) or np.all(y < 0)):
    tries.append(_fit(x, y, is_log, in_logarithms=True, config=config))
  return min(tries, key=lambda each: typical_error(each.errors, y))


class Likely:
  """How likely y is by a smooth function of columns beside errors, and what that says. The errors are alike before y
  was divided. Beyond a size the logarithm of y may be what is smooth (Snelson et al. 2004, Warped Gaussian processes).

  Attributes:
    parameters: of the function, the logarithms of lengths by its columns first (see `_Kernel`).
    bend: see there.
  """

  def __init__(self, x: np.ndarray, y: np.ndarray, scale: np.ndarray, config: SurrogateConfig, *, bend: float = 0.0,
               parameters: np.ndarray | None = None):
    """Args: x: [N, D], y [N]: finite, not the same in all rows; scale [N]: what y was divided by; bend: size of y
    before, from which on the logarithm is smooth, 0 for y itself; parameters: known, or where to begin.
    """
    self._x, self._scale, self._config, self.bend = x, scale, config, bend
    self._is_log = np.array([is_wide(column, config.wide) for column in x.T])
    target, self._steepness = y, np.ones_like(y)
    if bend:
      size = bend * float(np.median(1 / np.abs(scale)))
      target, self._steepness = np.arcsinh(y / size), 1 / np.hypot(size, y)
    roots = scale / self._steepness
    weights = (roots / np.max(np.abs(roots))) ** 2  # as they are some squares are 0
    scaled = _in_logarithms(x, self._is_log)
    self._units = _Units.of(scaled, target, weights)
    self._kernel = self._units.kernel(scaled, target, weights)
    self.parameters = _start(self._kernel, config) if parameters is None else parameters

  def climbed(self, num_steps: int) -> "Likely":
    """After so many steps to likelier parameters."""
    self.parameters = _ascend(self._kernel, self.parameters, num_steps, self._config)
    return self

  def nats(self) -> float:
    """The logarithm of the marginal likelihood of y before it was divided, without its constant; -inf where that is not
    known.
    """
    if not self._units.size > 0:  # of one value nothing is learned
      return -math.inf
    found = self._kernel.likelihood(self.parameters) - len(self._x) * math.log(self._units.size)
    found += float(np.sum(np.log(np.abs(self._steepness / self._scale))))
    return found if math.isfinite(found) else -math.inf

  def noise(self) -> float:
    """Standard deviation of the errors of y, where that is neither divided nor bent."""
    return self._units.size * math.sqrt(self._kernel.split(self.parameters)[3])

  def slopes(self) -> np.ndarray:
    """Of y by the columns [N, D]."""
    solved = self._kernel.solve(self.parameters)
    if solved is None:
      return np.full(self._x.shape, np.nan)
    slopes = self._kernel.slopes(self.parameters, solved) * self._units.size / self._units.spread
    return slopes / np.where(self._is_log, self._x, 1.0) / self._steepness[:, None]

  def errors(self) -> np.ndarray:
    """Of y before it was divided [N], to first order, each row predicted from all others."""
    solved = self._kernel.solve(self.parameters)
    if solved is None:
      return np.full(len(self._x), np.inf)
    return self._units.size * solved.weights / np.diag(solved.inverse) / self._steepness * self._scale


def likeliest(x: np.ndarray, y: np.ndarray, config: SurrogateConfig, bend: float) -> Likely:
  """Of y itself or of its logarithm beyond so many standard deviations of its errors, whichever makes y likelier.

  Args:
    x: [N, D], y [N]: finite, and not the same in all rows.
  """
  one = np.ones_like(y)
  plain = Likely(x, y, one, config).climbed(config.num_steps)
  bent = Likely(x, y, one, config, bend=bend * plain.noise()).climbed(config.num_steps)
  return max(plain, bent, key=Likely.nats)


class Others:
  """Smooth functions of all columns but one, as smooth as the likeliest function of all.

  Attributes:
    target: y in its units [N].
    size: of these units, in those of y.
  """

  def __init__(self, x: np.ndarray, y: np.ndarray, config: SurrogateConfig):
    """Args: x: [N, D], y [N]: finite, and not the same in all rows."""
    is_log = np.array([is_wide(column, config.wide) for column in x.T])
    scaled = _in_logarithms(x, is_log)
    units = _Units.of(scaled, y, None)
    self._kernel, self.size = units.kernel(scaled, y, None), units.size
    self._parameters = _most_likely(self._kernel, config)
    self.target = self._kernel.target
    solved = self._kernel.solve(self._parameters)
    left_out = np.full(1, np.inf) if solved is None else solved.weights / np.diag(solved.inverse)
    self._noise = float(np.median(np.abs(left_out))) ** 2

  def factor(self, column: int, constant: float) -> np.ndarray | None:
    """The lower factor [N, N] of the covariances of rows, where errors are as large as those of rows left out, of a
    function without this column, beside a constant of this variance; None where there is none.
    """
    lengths, signals, slope, noise = self._kernel.split(self._parameters)
    others = np.delete(np.arange(len(lengths)), column)
    squares = (lengths[others] ** -2 @ self._kernel.squares[others]).reshape(2 * (len(self.target),))
    z = self._kernel.z[:, others]
    whole = signals[0] * np.exp(-0.5 * squares) + slope * (z @ z.T) + constant
    _diagonal(whole)[:] += max(noise, self._noise)
    try:
      return linalg.cholesky(whole, lower=True)
    except (linalg.LinAlgError, ValueError):  # not positive, or not finite
      return None


class Additive(NamedTuple):
  """A sum of smooth functions, each of a group of columns.

  Attributes:
    groups; functions: of each group, values [P, C] of its columns to those of the function [P], units of the target;
      the target's mean is added to the first.
    errors: of each row [N], predicted by all others, units of the target.
  """

  groups: Groups
  functions: tuple[Callable[[np.ndarray], np.ndarray], ...]
  errors: np.ndarray


def fit_sum(
  x: np.ndarray, target: np.ndarray, groups: Groups, config: SurrogateConfig, weights: np.ndarray | None = None
) -> Additive | None:
  """The likeliest sum of functions of groups of columns, in logarithms of columns that go over decades.

  Args:
    x: [N, D]: finite; target [N]: finite, and not the same in all rows; groups: all columns, each once; weights [N]:
      inversely as the noise's variance in each row, alike by default.

  Returns:
    None where nothing is known.
  """
  is_log = np.array([is_wide(column, config.wide) for column in x.T])
  units = _Units.of(_in_logarithms(x, is_log), target, weights)
  centre, spread, level, size = units
  kernel = units.kernel(_in_logarithms(x, is_log), target, weights, groups)
  parameters = _most_likely(kernel, config)
  solved = kernel.solve(parameters)
  if solved is None:
    return None
  lengths, signals, slope, _ = kernel.split(parameters)

  def function(place: int, values: np.ndarray) -> np.ndarray:
    group = list(groups[place])
    z = (_in_logarithms(values, is_log[group]) - centre[group]) / spread[group]
    own = kernel.z[:, group]
    squares = (((z[:, None, :] - own[None]) / lengths[group]) ** 2).sum(axis=2)
    covariances = signals[place] * np.exp(-0.5 * squares) + slope * (z @ own.T + (place == 0))
    return size * (covariances @ solved.weights) + level * (place == 0)

  functions = tuple(functools.partial(function, place) for place in range(len(groups)))
  return Additive(groups, functions, size * solved.weights / np.diag(solved.inverse))


class _Units(NamedTuple):
  """Of columns [D] and of a target: `centre` and `level` are subtracted, `spread` and `size` divided by."""

  centre: np.ndarray
  spread: np.ndarray
  level: float
  size: float

  @classmethod
  def of(cls, scaled: np.ndarray, target: np.ndarray, weights: np.ndarray | None) -> "_Units":
    """Of columns [N, D], and of a target [N] by the weights of its rows."""
    level = float(np.average(target, weights=weights))
    size = math.sqrt(np.average((target - level) ** 2, weights=weights))
    spread = scaled.std(axis=0)
    # Of a column that is the same in these rows nothing depends.
    return cls(scaled.mean(axis=0), np.where(spread > 0, spread, 1.0), level, size)

  def kernel(
    self, scaled: np.ndarray, target: np.ndarray, weights: np.ndarray | None, groups: Groups | None = None
  ) -> _Kernel:
    variances = None if weights is None else np.mean(weights) / weights
    return _Kernel((scaled - self.centre) / self.spread, (target - self.level) / self.size, groups, variances)


def _in_logarithms(x: np.ndarray, is_log: np.ndarray) -> np.ndarray:
  """Columns [N, D], some in their logarithm."""
  return np.where(is_log, np.log(np.where(is_log, x, 1.0)), x)


def is_wide(values: np.ndarray, ratio: float) -> bool:
  """Whether all are above 0 and the largest is so many times the least."""
  return bool(np.min(values) > 0 and np.max(values) >= ratio * np.min(values))


def typical_error(errors: np.ndarray, y: np.ndarray) -> float:
  """The median size of errors, in spreads of y, no finer than can be told."""
  return _in_spreads(float(np.median(np.abs(errors))), y)


def large_error(errors: np.ndarray, y: np.ndarray) -> float:
  """The ninth tenth of their sizes, likewise."""
  return _in_spreads(float(np.quantile(np.abs(errors), _LARGE)), y)


def _in_spreads(size: float, y: np.ndarray) -> float:
  """A size over what lies between the quartiles: where y is nearly the same in most rows, these tell what it depends
  on, not the few others; where it is the same, none does.
  """
  low, high = np.quantile(y, (0.25, 0.75))
  return max(size / float(high - low), _RESOLUTION) if high > low else math.inf


def _fit(
  x: np.ndarray, y: np.ndarray, is_log: np.ndarray, *, in_logarithms: bool, config: SurrogateConfig
) -> Surrogate:
  scaled = _in_logarithms(x, is_log)
  shown = np.log(np.abs(y)) if in_logarithms else y
  units = _Units.of(scaled, shown, None)
  spread, size = units.spread, units.size
  kernel = units.kernel(scaled, shown, None)
  parameters = _most_likely(kernel, config)
  solved = kernel.solve(parameters)
  if solved is None:  # where the likelihood has no slope: nothing is known
    return Surrogate(np.full(x.shape, np.nan), np.full(len(y), np.inf), np.inf)
  missed = size * solved.weights / np.diag(solved.inverse)
  predicted, left = shown - missed, large_error(missed, shown)
  slopes = kernel.slopes(parameters, solved) * size / spread / np.where(is_log, x, 1.0)
  if in_logarithms:
    return Surrogate(slopes * y[:, None], np.sign(y) * np.exp(predicted) - y, left)
  return Surrogate(slopes, predicted - y, left)


def _start(kernel: _Kernel, config: SurrogateConfig) -> np.ndarray:
  signal, *others = config.start_sizes
  return np.log([config.start_length] * kernel.z.shape[1] + [signal] * len(kernel.groups) + others)


def _most_likely(kernel: _Kernel, config: SurrogateConfig) -> np.ndarray:
  """The likeliest parameters; of many rows most of the way goes through half of them, drawn by chance."""
  start = _start(kernel, config)
  if len(kernel.z) >= config.least_halved:
    some = np.random.default_rng(0).permutation(len(kernel.z))[::2]
    halved = _Kernel(kernel.z[some], kernel.target[some], kernel.groups, kernel.variances[some])
    near = _ascend(halved, start, config.num_steps, config)
    if kernel.solve(near) is not None:  # twice as many rows may be more than double precision can tell apart
      return _ascend(kernel, near, config.num_last_steps, config)
  return _ascend(kernel, start, config.num_steps, config)


def _ascend(kernel: _Kernel, start: np.ndarray, num_steps: int, config: SurrogateConfig) -> np.ndarray:
  """Likelier parameters, so many steps from others."""
  num_lengths = kernel.z.shape[1]
  bounds = ([config.log_lengths] * num_lengths + [config.log_sizes] * (len(start) - num_lengths - 1)
            + [config.log_noise])
  return optimize.minimize(kernel.loss, np.clip(start, *np.transpose(bounds)), jac=True, method="L-BFGS-B",
                           bounds=bounds, options={"maxiter": num_steps, "maxfun": 2 * num_steps}).x
