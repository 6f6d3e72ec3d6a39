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
  x = some.x[:, varies]
  error = _error(x, some.y, config)
  if not config.least_error <= error <= config.most_error:
    return False
  drawn = np.random.default_rng(0).permutation(len(some))
  halves = [_error(x[half], some.y[half], config) for half in (drawn[::2], drawn[1::2])]
  return sum(halves) / 2 <= config.most_gained * error


def _error(x: np.ndarray, y: np.ndarray, config: LearningCurveConfig) -> float:
  """Of rows left out, the median, in spreads of y; infinite where nothing is known."""
  if np.ptp(y) == 0 or not np.all(np.ptp(x, axis=0) > 0):
    return np.inf
  try:
    with np.errstate(all="ignore"):  # of odd data: what is not finite is not known
      return gaussian_process.typical_error(gaussian_process.fit(x, y, config.surrogate).errors, y)
  except np.linalg.LinAlgError:
    return np.inf
