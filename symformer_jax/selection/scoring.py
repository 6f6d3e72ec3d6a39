"""Evaluates trees on all rows in float64 and measures how well they fit, with NumPy alone.

The compiled interpreter serves thousands of candidates on a few hundred points; here a few dozen finalists meet
any number of rows, so that no compilation and no padding is wanted. Weights are relative: only their ratios count.
"""

import dataclasses

import numpy as np

from symformer_jax.language import expression
from symformer_jax.language.expression import Node, number
from symformer_jax.language.tidy import tidy

# Rows evaluated at once: the intermediate columns of a deep tree stay within some tens of megabytes.
CHUNK_ROWS = 100_000


def evaluate(node: Node, x: np.ndarray) -> np.ndarray:
  """Values of a formula [N] on points [N, D], float64, in bounded memory (see `expression.evaluate`)."""
  parts = [expression.evaluate(node, x[i : i + CHUNK_ROWS]) for i in range(0, max(len(x), 1), CHUNK_ROWS)]
  return np.concatenate(parts)


def with_factor(node: Node, x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Node:
  """The formula times the number that fits best; where that is not finite, neither is the number."""
  values = evaluate(node, x)
  largest = np.max(np.abs(values))
  values = values / largest
  factor = np.sum(weights * values * y) / np.sum(weights * values**2) / largest
  return tidy(Node("*", (node, number(float(factor)))))


@dataclasses.dataclass(frozen=True)
class Scores:
  """How well a formula fits.

  Attributes:
    mse: weighted mean squared error, squared units of y; infinite when undefined on any weighted row.
    r2: 1 - mse / variance; None when it does not exist.
    relative_error: mean of |y - prediction| / |y| over rows with y != 0 (SymFormer, sec. 4.1); None without any.
    num_undefined: weighted rows on which the formula has no finite value.
  """

  mse: float
  r2: float | None
  relative_error: float | None
  num_undefined: int

  @property
  def rmse(self) -> float:
    """Root of the mean squared error, units of y."""
    return float(np.sqrt(self.mse))


def score(prediction: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> Scores:
  """Compares predictions [N] with observations y [N] under weights [N] >= 0 (default: all 1)."""
  weights = np.ones(len(y)) if weights is None else weights
  is_used = weights > 0
  num_undefined = int(np.sum(is_used & ~np.isfinite(prediction)))
  if num_undefined:
    return Scores(np.inf, None, None, num_undefined)
  prediction, y, weights = prediction[is_used], y[is_used], weights[is_used]
  with np.errstate(over="ignore"):
    mse = float(np.average((prediction - y) ** 2, weights=weights))
  variance = weighted_variance(y, weights)
  is_nonzero = y != 0
  relative_error = None
  if is_nonzero.any():
    error = np.abs((prediction - y)[is_nonzero] / y[is_nonzero])
    relative_error = float(np.average(error, weights=weights[is_nonzero]))
  r2 = 1 - mse / variance if variance > 0 and np.isfinite(mse) else None
  return Scores(mse, r2, relative_error, 0)


def log_r2(prediction: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float | None:
  """R2 of log|y| [N] by log|prediction| [N] under weights [N] >= 0; None where a prediction is 0 or of another sign."""
  is_used = weights > 0
  with np.errstate(all="ignore"):
    ratio = prediction[is_used] / y[is_used]
  if not np.all(np.isfinite(ratio) & (ratio > 0)):
    return None
  variance = weighted_variance(np.log(np.abs(y[is_used])), weights[is_used])
  return 1 - float(np.average(np.log(ratio) ** 2, weights=weights[is_used])) / variance if variance > 0 else None


def weighted_variance(y: np.ndarray, weights: np.ndarray | None = None) -> float:
  """Mean squared distance of y [N] from its weighted mean, squared units of y."""
  mean = np.average(y, weights=weights)
  return float(np.average((y - mean) ** 2, weights=weights))
