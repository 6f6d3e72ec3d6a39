"""The product of powers of many columns that y rises or falls with, whatever the function is.

Alternating conditional expectations (Breiman and Friedman, 1985): the function of y that is most like a sum of
logarithms of columns, and the sum that is most like it, in turn; the function rises with y, so that isotonic regression
has it. Rows that agree least, where the function turns back, are left out bit by bit.
"""

import numpy as np
from scipy import optimize

from symformer_jax.engine import interruption
from symformer_jax.engine.config import MonotoneConfig


def find_exponents(x: np.ndarray, y: np.ndarray, config: MonotoneConfig) -> list[tuple[float, ...]]:
  """Exponents [D], of one direction the simplest whole ones and halves; none where y rises with no product.

  Args:
    x: [N, D], without zeros; y: [N]. Of columns of both signs the rows with the commonest signs are looked at.
  """
  signs, place, counts = np.unique(np.sign(x), axis=0, return_inverse=True, return_counts=True)
  alike = place.ravel() == np.argmax(counts)
  has_both = np.any(signs != signs[0], axis=0)
  direction = _direction(np.log(np.abs(x[alike])), y[alike], config)
  return [] if direction is None else _simplest(direction, has_both, config)


def _direction(logs: np.ndarray, y: np.ndarray, config: MonotoneConfig) -> np.ndarray | None:
  """Factors [D] of the logarithms [N, D], the largest 1 in size."""
  target = np.argsort(np.argsort(y, kind="stable")) / len(y)
  for _ in range(config.num_trims + 1):
    if len(y) < config.rows_per_column * logs.shape[1] or np.ptp(target) == 0:
      return None
    factors, left = _alternated(logs, y, (target - np.mean(target)) / np.std(target), config)
    largest = np.max(np.abs(factors))
    if np.sqrt(np.mean(left**2)) < config.most_left and largest > 0:
      return factors / largest
    if not np.all(np.isfinite(left)):
      return None
    kept = np.abs(left) <= np.quantile(np.abs(left), config.kept_share)
    logs, y, target = logs[kept], y[kept], (logs @ factors)[kept]
  return None


def _alternated(
  logs: np.ndarray, y: np.ndarray, target: np.ndarray, config: MonotoneConfig
) -> tuple[np.ndarray, np.ndarray]:
  """Factors [D], and by how much the sum misses the function of y, of variance 1, in each row [N]."""
  interruption.check()
  order, design = np.argsort(y, kind="stable"), np.column_stack([np.ones(len(y)), logs])
  inverse = np.linalg.pinv(design)
  for _ in range(config.num_rounds):
    factors = inverse @ target
    sums, before = design @ factors, target
    target = np.empty(len(y))
    target[order] = optimize.isotonic_regression(sums[order]).x
    spread = float(np.std(target))
    if spread == 0:
      return factors[1:], np.full(len(y), np.inf)
    target = (target - np.mean(target)) / spread
    if np.max(np.abs(target - before)) < config.tolerance:
      break
  factors = inverse @ target
  return factors[1:], design @ factors - target


def _simplest(direction: np.ndarray, has_both: np.ndarray, config: MonotoneConfig) -> list[tuple[float, ...]]:
  """The smallest whole exponents that are near, and such halves, for a square has lost the sign; where there are none
  and all columns have one sign, exponents as they are. Most are positive: x*y, not its inverse.
  """
  signs = np.sign(np.round(direction, 2))
  if np.sum(signs) < 0 or (np.sum(signs) == 0 and signs[np.flatnonzero(signs)[0]] < 0):
    direction = -direction
  found = []
  for unit in (1.0, 0.5):
    for times in config.multiples:
      exponents = unit * np.round(times * direction / unit) + 0.0  # -0 is 0
      is_usable = np.all((exponents == np.round(exponents)) | ~has_both)
      if is_usable and np.all(np.abs(exponents - times * direction) < config.nearly * times):
        found.append(tuple(exponents.tolist()))
        break
  if not found and not np.any(has_both & (signs != 0)):
    found.append(tuple(np.round(direction, 4).tolist()))
  return list(dict.fromkeys(found))
