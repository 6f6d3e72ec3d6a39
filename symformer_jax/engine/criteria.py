"""Which formula of a front to recommend: table `CRITERIA`, each a cost in nats, the lowest wins.

All follow the description length of data and formula (Rissanen 1978; Schwarz 1978): half N times the logarithm
of the residual variance, plus the price of what was chosen to get it.
"""

from collections.abc import Callable
import dataclasses
import math

import numpy as np

from symformer_jax.engine.config import DEFAULT

# Residuals below float32's resolution of y's spread are noise of the numbers, whatever the formula.
NOISE_FLOOR = float(np.finfo(np.float32).eps)


@dataclasses.dataclass(frozen=True)
class Fit:
  """What a criterion looks at.

  Attributes:
    mse: mean squared error, squared units of y.
    complexity: nodes of the formula.
    num_constants: fitted constants C.
    num_digits: significant digits that the constants are written with, all together; None before rounding.
    names: nats to say which columns are meant: log D for each time one of D is named. The best of many columns fits
      something by chance.
  """

  mse: float
  complexity: int
  num_constants: int
  num_digits: int | None = None
  names: float = 0.0


def error_floor(variance: float) -> float:
  """The mean squared error that counts as an exact fit, for y of this variance (same squared units)."""
  return variance * NOISE_FLOOR**2


def mdl(
  fit: Fit, *, num_points: float, variance: float, nats_per_node: float = DEFAULT.selection.nats_per_node,
  num_rows: int | None = None,
) -> float:
  """Description length in nats: N/2 log(residual variance) + some for each node + log 10 for each further digit
  + names.

  A constant's node pays for its first digit. Constants not yet rounded cost C/2 log N, which is what their digits
  come to on average. The residual variance is corrected for the C constants: a formula with as many of them as
  there are rows has explained nothing.
  Args:
    num_points: N, what the rows are worth: fewer than there are where a few large errors decide.
    num_rows: how many there are; N by default.
  """
  rows = num_points if num_rows is None else num_rows
  degrees = rows - fit.num_constants
  if degrees < 1 or not math.isfinite(fit.mse):
    return math.inf
  residual = fit.mse * rows / degrees / variance + NOISE_FLOOR**2
  if fit.num_digits is None:
    constants = 0.5 * fit.num_constants * math.log(num_points)
  else:
    constants = (fit.num_digits - fit.num_constants) * math.log(10)
  return 0.5 * num_points * math.log(residual) + nats_per_node * fit.complexity + fit.names + constants


def bic(fit: Fit, *, num_points: float, variance: float) -> float:
  """Half of Schwarz's criterion: N/2 log(mse) + C/2 log N; blind to structure, so it prefers longer formulas."""
  if not math.isfinite(fit.mse):
    return math.inf
  residual = fit.mse / variance + NOISE_FLOOR**2
  return 0.5 * num_points * math.log(residual) + 0.5 * (fit.num_constants + 1) * math.log(num_points)


def accuracy(fit: Fit, *, num_points: float, variance: float) -> float:
  """The error alone: what the paper reports."""
  del num_points
  return math.inf if not math.isfinite(fit.mse) else math.log(fit.mse / variance + NOISE_FLOOR**2)


CRITERIA: dict[str, Callable[..., float]] = {"mdl": mdl, "bic": bic, "accuracy": accuracy}
