"""A smooth function through the rows of a table, and its derivatives there: Gaussian process regression.

Rasmussen and Williams, Gaussian Processes for Machine Learning (2006): a squared exponential with a length for each
column beside a linear kernel (4.2), both and the noise by marginal likelihood (eq. 5.8, 5.9), errors of rows left out
in closed form (eq. 5.12).
"""

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


class _Kernel:
  """Covariances of the rows of a table, for the parameters (log) lengths, signal, slope and noise."""

  def __init__(self, z: np.ndarray, target: np.ndarray):
    self.z, self.target = z, target
    columns = z.T.copy()
    self.squares = ((columns[:, :, None] - columns[:, None, :]) ** 2).reshape(len(columns), -1)  # [D, N * N]
    self.products = z @ z.T + 1.0

  def parts(self, parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The squared exponential alone, and all [N, N]."""
    lengths, (signal, slope, noise) = np.exp(parameters[:-3]), np.exp(2 * parameters[-3:])
    smooth = np.exp(-0.5 * lengths**-2 @ self.squares).reshape(self.products.shape)
    smooth *= signal
    whole = slope * self.products
    whole += smooth
    _diagonal(whole)[:] += noise
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

  def loss(self, parameters: np.ndarray) -> tuple[float, np.ndarray]:
    """The negative logarithm of the marginal likelihood, without its constant, and its gradient."""
    interruption.check()
    solved = self.solve(parameters)
    if solved is None:
      return 1e10, np.zeros_like(parameters)
    outer = np.outer(solved.weights, solved.weights)
    outer -= solved.inverse
    _, slope, noise = np.exp(2 * parameters[-3:])
    of_slope, of_noise = slope * np.vdot(outer, self.products), noise * _diagonal(outer).sum()
    outer *= solved.smooth
    by_length = 0.5 * (self.squares @ outer.ravel()) * np.exp(-2 * parameters[:-3])
    gradient = np.concatenate([by_length, [np.sum(outer), of_slope, of_noise]])
    return 0.5 * float(self.target @ solved.weights + solved.log_determinant), -gradient


def _diagonal(matrix: np.ndarray) -> np.ndarray:
  """That of a square matrix, to be read and written."""
  return np.einsum("ii->i", matrix)


class _Solved(NamedTuple):
  """Attributes: smooth, inverse: matrices [N, N]; weights [N]: of the rows' kernels."""

  smooth: np.ndarray
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
  scaled = np.where(is_log, np.log(np.where(is_log, x, 1.0)), x)
  spread = scaled.std(axis=0)
  shown = np.log(np.abs(y)) if in_logarithms else y
  level, size = shown.mean(), shown.std()
  z, target = (scaled - scaled.mean(axis=0)) / spread, (shown - level) / size
  kernel = _Kernel(z, target)
  parameters = _most_likely(kernel, config)
  solved = kernel.solve(parameters)
  if solved is None:  # where the likelihood has no slope: nothing is known
    return Surrogate(np.full(x.shape, np.nan), np.full(len(y), np.inf), np.inf)
  missed = size * solved.weights / np.diag(solved.inverse)
  predicted, left = shown - missed, large_error(missed, shown)
  slope = np.exp(2 * parameters[-2])
  differences = kernel.z[:, None, :] - kernel.z[None, :, :]
  slopes = -np.einsum("ijd,ij->id", differences, solved.smooth * solved.weights) * np.exp(-2 * parameters[:-3])
  slopes = (slopes + slope * (kernel.z.T @ solved.weights)) * size / spread
  slopes = slopes / np.where(is_log, x, 1.0)
  if in_logarithms:
    return Surrogate(slopes * y[:, None], np.sign(y) * np.exp(predicted) - y, left)
  return Surrogate(slopes, predicted - y, left)


def _most_likely(kernel: _Kernel, config: SurrogateConfig) -> np.ndarray:
  """The likeliest parameters; of many rows most of the way goes through half of them, drawn by chance."""
  start = np.log([config.start_length] * kernel.z.shape[1] + list(config.start_sizes))
  if len(kernel.z) >= config.least_halved:
    some = np.random.default_rng(0).permutation(len(kernel.z))[::2]
    near = _ascend(_Kernel(kernel.z[some], kernel.target[some]), start, config.num_steps, config)
    if kernel.solve(near) is not None:  # twice as many rows may be more than double precision can tell apart
      return _ascend(kernel, near, config.num_last_steps, config)
  return _ascend(kernel, start, config.num_steps, config)


def _ascend(kernel: _Kernel, start: np.ndarray, num_steps: int, config: SurrogateConfig) -> np.ndarray:
  """Likelier parameters, so many steps from others."""
  bounds = [config.log_lengths] * (len(start) - 3) + [config.log_sizes] * 2 + [config.log_noise]
  return optimize.minimize(kernel.loss, np.clip(start, *np.transpose(bounds)), jac=True, method="L-BFGS-B",
                           bounds=bounds, options={"maxiter": num_steps, "maxfun": 2 * num_steps}).x
