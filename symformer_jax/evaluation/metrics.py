"""The judge: how close a formula comes to the truth, in float64 with NumPy alone.

A figure that does not exist (a prediction undefined on a scoring point, a truth that is 0 everywhere) is None:
it is an empty cell in tables, a miss in every share, and the worst value in a median.
"""

from collections.abc import Iterable, Sequence
import dataclasses
import itertools
import statistics

import numpy as np

from symformer_jax.language import expression, programs
from symformer_jax.language.canonical import canonicalize
from symformer_jax.language.expression import Node
from symformer_jax.selection import scoring

Box = tuple[tuple[float, float], ...]

# Numeric equality: what a double's rounding leaves after a few hundred operations, not a bit more.
RECOVERED_FVU = 1e-9
# Where a formula is undefined at random points, the same must hold for its equal; so many must be defined.
MIN_FINITE_SHARE = 0.9
# R2 is blind to all but the largest values where they span many orders (`x**y + 0.01` for `x**y`), so nine points
# in ten must agree one by one as well: three standard deviations of an error at the limit of R2.
AGREEMENT, MIN_AGREEING_SHARE = 1e-4, 0.9
NUM_RECOVERY_POINTS = 1000
THRESHOLDS = (0.99, 0.999, 0.9999)
# A fraction of variance unexplained below this is all that numbers of 24 bits can show (SRBench's "exact").
FLOAT32_FVU = float(np.finfo(np.float32).eps)


@dataclasses.dataclass(frozen=True)
class Scores:
  """Agreement with the truth on fresh points.

  Attributes:
    r2: 1 - sum (y - p)^2 / sum (y - mean y)^2.
    relative_error: mean |y - p| / |y| over points with y != 0 (SymFormer, sec. 4.1).
    fvu: 1 - r2, computed without the subtraction, so that values below 1e-16 are seen.
  """

  r2: float | None
  relative_error: float | None
  fvu: float | None


def score(truth: np.ndarray, prediction: np.ndarray) -> Scores:
  """Compares predictions [N] with true values [N], finite, in the same units."""
  with np.errstate(all="ignore"):  # values of any size are judged: what overflows has no figure, and that is said
    scores = scoring.score(np.asarray(prediction, np.float64), np.asarray(truth, np.float64))
    variance = scoring.weighted_variance(truth)
  fvu = scores.mse / variance if variance > 0 and np.isfinite(scores.mse) else None
  return Scores(scores.r2, scores.relative_error, fvu)


def score_formula(node: Node, points: np.ndarray) -> Scores:
  """Scores a formula on points [N, D+1] whose last column is the truth."""
  return score(points[:, -1], scoring.evaluate(node, points[:, :-1]))


def is_recovered(
  truth: Node, predicted: Node, box: Box, *, rng: np.random.Generator, has_signs: bool = False
) -> bool:
  """Whether two formulas are equal as functions, judged by numbers on a box twice as wide.

  1 - R2 < 1e-9 on random points, of which 90 % agree within 1e-4 of their size; at least 90 % of them are finite,
  and the same ones in both: of two ways to write a function one may overflow on its way to a small value, as
  `exp(x)/(exp(x) - 1)**2` does and `1/(exp(x) - 2 + exp(-x))` does not, so that such points are evaluated with more
  exponents, where the platform has them.
  A truth that ends at the border of its box (`log(x)` on 0:5) is judged on the box widened to the other side.
  Args:
    truth, predicted: trees over the columns of the box.
    box: where the data came from, `(low, high)` per column.
    rng: draws the points.
    has_signs: a column that has one sign in its range has it in the wider box too: a mass above 0 has no values below,
      and `sqrt(y**2/m)` is `y/sqrt(m)` for a distance y.
  """
  x, y = _wide_points(truth, box, rng, has_signs)
  prediction = scoring.evaluate(predicted, x)
  is_odd = np.isfinite(y) != np.isfinite(prediction)
  if np.any(is_odd):
    wide = x[is_odd].astype(np.longdouble)
    with np.errstate(over="ignore"):  # values that are too large as well
      y[is_odd], prediction[is_odd] = scoring.evaluate(truth, wide), scoring.evaluate(predicted, wide)
  is_finite = np.isfinite(y)
  if is_finite.mean() < MIN_FINITE_SHARE or not np.array_equal(is_finite, np.isfinite(prediction)):
    return False
  y, prediction = y[is_finite], prediction[is_finite]
  fvu = score(y, prediction).fvu
  if fvu is None:  # a constant truth
    return bool(np.allclose(prediction, y, rtol=1e-9, atol=0.0))
  is_near = np.abs(prediction - y) <= AGREEMENT * (np.abs(y) + np.median(np.abs(y)))
  return fvu < RECOVERED_FVU and bool(is_near.mean() >= MIN_AGREEING_SHARE)


def _wide_points(
  truth: Node, box: Box, rng: np.random.Generator, has_signs: bool
) -> tuple[np.ndarray, np.ndarray]:
  """Points and true values on the first of the wider boxes where the truth mostly exists, else on the box."""
  # Both sides by half the width, or one side by the whole.
  widenings = itertools.product(((0.5, 0.5), (0.0, 1.0), (1.0, 0.0), (0.0, 0.0)), repeat=len(box))
  for widening in sorted(widenings, key=lambda w: sum(side == (0.0, 0.0) for side in w)):
    low = np.array([lo - (hi - lo) * below for (lo, hi), (below, _) in zip(box, widening, strict=True)])
    high = np.array([hi + (hi - lo) * above for (lo, hi), (_, above) in zip(box, widening, strict=True)])
    if has_signs:
      low = np.array([max(wide, 0.0) if lo >= 0 else wide for (lo, _), wide in zip(box, low, strict=True)])
      high = np.array([min(wide, 0.0) if hi <= 0 else wide for (_, hi), wide in zip(box, high, strict=True)])
    x = rng.uniform(low, high, (NUM_RECOVERY_POINTS, len(box)))
    y = scoring.evaluate(truth, x)
    if np.isfinite(y).mean() >= MIN_FINITE_SHARE:
      break
  return x, y


def has_same_skeleton(truth: Node, predicted: Node) -> bool:
  """Whether two formulas are written the same but for their fitted constants, both in canonical form."""
  return programs.skeleton(canonicalize(truth)) == programs.skeleton(canonicalize(predicted))


def complexity(node: Node) -> int:
  """Nodes of the expression tree, each constant one (docs/design.md, contracts)."""
  return expression.complexity(node)


def median(values: Iterable[float | None], *, worst: float) -> float | None:
  """Median with missing values as the worst ones; None of nothing, or where half are missing."""
  known = [worst if value is None else value for value in values]
  middle = statistics.median(known) if known else None
  return middle if middle is not None and np.isfinite(middle) else None


def share_above(values: Sequence[float | None], threshold: float) -> float | None:
  """Share of values above a threshold; missing ones are not."""
  return sum(value is not None and value > threshold for value in values) / len(values) if values else None


def wilson_interval(share: float, count: int) -> tuple[float, float]:
  """95 % confidence interval of a share of `count` trials (Wilson, 1927)."""
  z = 1.959964
  centre = (share + z**2 / (2 * count)) / (1 + z**2 / count)
  half = z / (1 + z**2 / count) * np.sqrt(share * (1 - share) / count + z**2 / (4 * count**2))
  return float(max(centre - half, 0)), float(min(centre + half, 1))


def bootstrap_interval(groups: Sequence[float], *, num_draws: int = 2000) -> tuple[float, float] | None:
  """95 % interval of the mean of one figure per seed, by resampling; None for fewer than two seeds."""
  if len(groups) < 2:
    return None
  draws = np.random.default_rng(0).choice(groups, (num_draws, len(groups))).mean(axis=1)
  low, high = np.quantile(draws, [0.025, 0.975])
  return float(low), float(high)
