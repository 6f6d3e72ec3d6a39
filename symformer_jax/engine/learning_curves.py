"""Whether y has errors, told before any formula is known.

A smooth function of all rows predicts rows left out no better than one of half of them where errors are what it
misses; where it is the function, which is no smooth one or has many columns, twice as many rows tell far more of it.
"""

from collections.abc import Sequence

import numpy as np

from symformer_jax.engine import gaussian_process
from symformer_jax.engine.config import DEFAULT, LearningCurveConfig
from symformer_jax.engine.rows import Rows


def has_errors(
  rows: Rows, columns: Sequence[int], config: LearningCurveConfig = DEFAULT.noise.learning_curve
) -> bool:
  """Whether y seems to be a smooth function of several columns and errors; False where that is not known.

  Args:
    rows: what is fitted; columns: of x, those that formulas are made of.
  """
  varies = rows.varying(columns)
  some = rows.sample(config.num_rows, seed=0)
  if not 2 <= len(varies) <= config.max_columns or some.num_distinct < config.least_rows or np.ptp(some.y) == 0:
    return False
  x, y = some.x[:, varies], some.y
  size = float(np.std(y))
  typical, whole = _errors(x, y, config)
  if not (config.least_error <= typical / size <= config.most_error and whole / size <= config.most_missed):
    return False
  drawn = np.random.default_rng(0).permutation(len(some))
  halves = [_errors(x[half], y[half], config)[0] for half in (drawn[::2], drawn[1::2])]
  return config.least_gained <= sum(halves) / 2 / typical <= config.most_gained


def _errors(x: np.ndarray, y: np.ndarray, config: LearningCurveConfig) -> tuple[float, float]:
  """Of rows left out, the median and the root mean square; infinite where nothing is known."""
  if np.ptp(y) == 0 or not np.all(np.ptp(x, axis=0) > 0):
    return np.inf, np.inf
  try:
    with np.errstate(all="ignore"):  # of odd data: what is not finite is not known
      errors = gaussian_process.likeliest(x, y, config.surrogate, config.bend).errors()
  except np.linalg.LinAlgError:
    return np.inf, np.inf
  return (float(np.median(np.abs(errors))), float(np.sqrt(np.mean(errors**2)))) if np.all(
    np.isfinite(errors)) else (np.inf, np.inf)
