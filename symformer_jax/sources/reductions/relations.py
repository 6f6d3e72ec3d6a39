"""Relations of slopes: what they leave, the weights that leave least, and the simplest numbers that do."""

from collections.abc import Callable
import math

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import ReductionsConfig

# Rows that leave less than this share of the median count alike, and those that leave no more than rounding.
_LEAST_LEFT, _ROUNDING = 0.1, 1e-12
# Share of the ninth tenth of sizes below which one is next to nothing. Of 333 tables of three columns and more, twice
# each, three come down to fewer columns by it, two of them rightly, whose slopes have died away in two rows of three;
# at a tenth ten do, four of them wrongly.
_LEAST_SIZE = 0.03


def relation(growths: np.ndarray, config: ReductionsConfig) -> np.ndarray | None:
  """Weights [S] with which the growths [N, S] sum to next to nothing in all rows, each with a part in it."""
  interruption.check()
  size = np.linalg.norm(growths, axis=1, keepdims=True)
  if not (np.mean(size > 0) > 0.5 and np.all(np.isfinite(growths))):
    return None
  rows = telling(size[:, 0])  # a row where all are 0 obeys any relation
  growths = growths[rows]
  unit = growths / size[rows]
  weights = robust_null_vector(unit, config.num_reweightings)
  left, parts = share_left(growths, weights), np.median(np.abs(growths * weights), axis=0)
  if left > config.tolerance:
    return None
  if np.min(parts) < config.least_part * np.max(parts):
    others = np.delete(np.arange(len(parts)), np.argmin(parts))
    without = share_left(growths[:, others], robust_null_vector(unit[:, others], config.num_reweightings))
    if len(others) < 2 or without < max(left / config.needed_share, config.fine):
      return None
  return weights


def robust_null_vector(rows: np.ndarray, num_reweightings: int) -> np.ndarray:
  """The direction [S] that rows [N, S] have least of, by the sum of sizes: slopes are far off where there are few rows
  around, and squares would follow these (iteratively reweighted least squares).
  """
  counts = np.ones(len(rows))
  for _ in range(num_reweightings):
    direction = np.linalg.eigh((rows.T * counts) @ rows)[1][:, 0]
    left = np.abs(rows @ direction)
    counts = 1 / np.maximum(left, max(_LEAST_LEFT * _median(left), _ROUNDING))
  return direction


def share_left(growths: np.ndarray, weights: np.ndarray) -> float:
  """The median of what the growths [N, S] with these weights [S] sum to, as a share of the largest of a row."""
  parts = growths * weights
  return _median_share(parts.sum(axis=1), np.max(np.abs(parts), axis=1))


def share_of_two(first: np.ndarray, second: np.ndarray | float) -> float:
  """The median difference of two numbers, as a share of them; infinite where there are none."""
  return _median_share(first - second, np.hypot(first, second))


def telling(sizes: np.ndarray) -> np.ndarray:
  """Which rows [N] tell of a relation, by the sizes that should cancel: none where these are next to nothing beside
  those of most. Where `exp(-w*x)` has died away slopes are errors of the smooth function alone.
  """
  ninth_tenth = len(sizes) * 9 // 10
  return sizes > _LEAST_SIZE * np.partition(sizes, ninth_tenth)[ninth_tenth]


def ratio_of(first: np.ndarray, second: np.ndarray) -> float:
  """How many times the second numbers the first are: the median of rows that tell; not a number where none does."""
  rows = telling(np.hypot(first, second))
  return _median(first[rows] / second[rows]) if np.any(rows) else math.nan


def _median_share(left: np.ndarray, sizes: np.ndarray) -> float:
  """The median of what is left as a share of sizes, of rows that tell; infinite where there are none."""
  rows = telling(sizes)
  shares = np.abs(left[rows]) / sizes[rows]
  share = _median(shares) if len(shares) else math.inf
  return share if math.isfinite(share) else math.inf


def _median(values: np.ndarray) -> float:
  """As `np.median` of values [N], in a fifth of the time for hundreds of them: a change is looked for by thousands."""
  middle = len(values) // 2
  ordered = np.partition(values, (middle - 1, middle, -1))  # what is not a number comes last
  if math.isnan(ordered[-1]):
    return math.nan
  return float(ordered[middle] if len(values) % 2 else 0.5 * (ordered[middle - 1] + ordered[middle]))


def simplest(value: float, left: Callable[[float], float], config: ReductionsConfig) -> float:
  """The simplest number near a value that leaves about as little, where that is no chance; the value if there is none.

  Args:
    left: what a number leaves, a share.
  """
  if not math.isfinite(value):
    return value
  most = max(config.snapped_worse * left(value), config.fine)
  for denominator in config.denominators:
    simple = round(value * denominator) / denominator
    if abs(simple - value) <= config.least_chance / denominator and left(simple) <= most:
      return simple
  return value


def shortest(value: float, left: Callable[[float], float], config: ReductionsConfig) -> tuple[float, bool]:
  """As `simplest`, of a number with a unit: one of few digits that leaves hardly more; and whether there is one."""
  if not (math.isfinite(value) and value):
    return value, False
  most, place = config.snapped_worse * left(value), math.floor(math.log10(abs(value)))
  for digits in range(1, config.most_digits + 1):
    short = float(f"{value:.{digits}g}")
    if abs(short - value) <= config.least_chance * 10.0 ** (place - digits + 1) and left(short) <= most:
      return short, True
  return value, False


def is_of_size(base: np.ndarray, exponent: np.ndarray, most: float) -> bool:
  """Whether powers [N] have logarithms, and these are no larger."""
  return bool(np.all(base > 0)) and bool(np.max(np.abs(np.log(base) * exponent)) <= most)


def is_simple(value: float, config: ReductionsConfig) -> bool:
  """Whether it is one of the numbers that `simplest` gives."""
  some = (*config.denominators, *config.power_denominators)
  return math.isfinite(value) and any(round(value * denominator) / denominator == value for denominator in some)


def may_divide(values: np.ndarray, exponent: float) -> bool:
  """Whether the power of the column is a number, and not 0, in all rows."""
  if not math.isfinite(exponent):
    return False
  return exponent == 0 or bool(np.all(values > 0) or (exponent == round(exponent) and np.all(values != 0)))
