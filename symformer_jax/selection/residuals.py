"""What the residuals of a fit by plain squares tell of the loss: a few rows far from all others, errors that grow, or
small values over decades that had no say.

All three are looked at with ranks and medians, which the rows in question do not decide.
"""

from collections.abc import Sequence
import math
import statistics
from typing import NamedTuple

import numpy as np

from symformer_jax.engine import noise
from symformer_jax.engine.config import DEFAULT, HintsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import programs
from symformer_jax.language.expression import Node
from symformer_jax.selection import losses, scoring

# The median of |errors| times this is the standard deviation of normal errors.
NORMAL = 1.4826


class Residuals(NamedTuple):
  """What was seen of residuals: rows that were looked at, those of them that lie far off, whether errors grow, and the
  decades that y spans where small values had no say, else 0.
  """

  num_rows: int = 0
  num_far: int = 0
  is_growing: bool = False
  decades: float = 0.0

  @property
  def texts(self) -> list[str]:
    """What another loss would do, a sentence each."""
    if self.decades:
      return [f"y spans {self.decades:.1f} decades, and the formula misses the small values: --loss=log or --loss=auto "
              "(in Python loss='log' or 'auto') lets them count"]
    if self.is_growing:
      return ["errors grow with |y|: --loss=auto (in Python loss='auto') lets rows count by that"]
    if not self.num_far:
      return []
    lie, them = ("lies", "it") if self.num_far == 1 else ("lie", "these")
    return [f"{self.num_far} of {self.num_rows} rows {lie} far from all others: --loss=huber (in Python loss='huber') "
            f"gives {them} less weight"]


def look(nodes: Sequence[Node], rows: Rows, *, seed: int = 0, config: HintsConfig = DEFAULT.hints) -> Residuals:
  """What the residuals of formulas tell, the first of them that tells something; nothing where rows have weights.

  Args:
    nodes: fitted by plain squares. rows: of many a sample by the seed is looked at.
  """
  if np.ptp(rows.weights) > 0:
    return Residuals()
  some = rows.sample(config.max_rows, seed=seed)
  found = (_look(node, some, config) for node in nodes)
  return next((each for each in found if each.texts), Residuals(len(some)))


def _look(node: Node, rows: Rows, config: HintsConfig) -> Residuals:
  values = scoring.evaluate(node, rows.x)
  with np.errstate(all="ignore"):
    errors = rows.y - values
    is_exact = float(np.sqrt(np.mean(errors**2))) <= config.exact * float(np.std(rows.y))
  if len(rows) < config.min_rows or is_exact or not np.all(np.isfinite(errors)):
    return Residuals(len(rows))
  num_constants = len(programs.fitted_values(node))
  num_far = count_far(errors, values, rows.x, num_constants=num_constants, config=config)
  return Residuals(len(rows), num_far, are_growing(errors, values, rows.x, config=config) and _is_noise(node, rows),
                   missed_decades(errors, rows.y, rows.x, config=config))


def _is_noise(node: Node, rows: Rows) -> bool:
  """Whether what a formula leaves is noise once it is fitted by `auto`: else it grows where the formula is wrong."""
  settled, weights = losses.settle(losses.AUTO, node, rows)
  errors = np.sqrt(weights) * (rows.y - scoring.evaluate(settled, rows.x))
  columns = range(rows.x.shape[1])
  return noise.looks_like_noise(errors, rows.x, columns, num_constants=len(programs.fitted_values(settled)))


def missed_decades(
  errors: np.ndarray, y: np.ndarray, x: np.ndarray, *, config: HintsConfig = DEFAULT.hints
) -> float:
  """Decades that y [N] of one sign spans, where a formula misses its small values; else 0.

  Small are the values below the middle of the range on a logarithmic axis. They are missed where most errors [N] there
  are larger than the values themselves, and far larger than neighbouring ones of x [N, D] differ: an error that all
  rows have is noise there, of which other weights would make more, not less.
  """
  size = np.abs(y)
  if not (np.all(y > 0) or np.all(y < 0)) or np.max(size) <= config.wide * np.min(size):
    return 0.0
  is_small = np.log(size) < 0.5 * (np.log(np.min(size)) + np.log(np.max(size)))
  if np.sum(is_small) < config.min_small or float(np.median(np.abs(errors / y)[is_small])) <= config.missed:
    return 0.0
  own = errors[is_small]
  first, second = noise.neighbours(x[is_small])[-1]
  scatter = NORMAL * float(np.median(np.abs(own[first] - own[second]))) / math.sqrt(2)
  is_missed = float(np.median(np.abs(own))) > config.beyond_scatter * scatter
  return math.log10(float(np.max(size)) / float(np.min(size))) if is_missed else 0.0


def count_far(
  errors: np.ndarray, values: np.ndarray, x: np.ndarray, *, num_constants: int = 0, config: HintsConfig = DEFAULT.hints
) -> int:
  """Rows that lie far from a formula and from all other rows; 0 where these are too many, or look like a peak.

  A row is far where its error is more than `far` robust standard deviations, those of all rows and those of the rows
  with predictions of like size: where errors grow the largest are not far.
  Args:
    errors: y less predictions [N], units of y; values: the predictions [N]; all finite. x: columns [N, D].
    num_constants: fitted ones, which make errors smaller.
  """
  size, y = np.abs(errors), values + errors
  typical = NORMAL * float(np.median(np.abs(y - np.median(y))))
  if not typical:  # most y are equal: what is not is no outlier
    return 0
  spread = np.maximum(_local_spread(size, np.abs(values), config), config.exact * typical)
  freedom = math.sqrt(len(size) / max(len(size) - num_constants, 1))
  distances = errors / (freedom * np.maximum(spread, np.finfo(float).tiny))
  num_far = int(np.sum(np.abs(distances) > config.far))
  return 0 if num_far > config.few * len(size) or num_far and _are_together(distances, x, config) else num_far


def _local_spread(size: np.ndarray, level: np.ndarray, config: HintsConfig) -> np.ndarray:
  """Robust standard deviation [N] of errors of these sizes [N]: of all or of rows of like level [N], the larger."""
  spread = np.full(len(size), NORMAL * float(np.median(size)))
  if np.ptp(level) > 0:
    num_parts = max(min(len(size) // config.rows_per_part, config.max_parts), 1)
    for part in np.array_split(np.argsort(level, kind="stable"), num_parts):
      spread[part] = np.maximum(spread[part], NORMAL * float(np.median(size[part])))
  return spread


def _are_together(distances: np.ndarray, x: np.ndarray, config: HintsConfig) -> bool:
  """Whether most far rows have one beside them in x [N, D] that lies off on the same side, as those of a peak that a
  formula misses; distances [N] in robust standard deviations.
  """
  is_far, signs = np.abs(distances) > config.far, np.where(np.abs(distances) > config.off, np.sign(distances), 0.0)
  has_like = np.zeros(len(signs), bool)
  first, second = noise.neighbours(x)[-1]  # in the order of the only column, or the nearest in all
  is_like = signs[first] * signs[second] > 0
  has_like[first[is_like]] = has_like[second[is_like]] = True
  return float(np.mean(has_like[is_far])) > config.together


def are_growing(errors: np.ndarray, values: np.ndarray, x: np.ndarray, *, config: HintsConfig = DEFAULT.hints) -> bool:
  """Whether errors [N] grow with the size of the predictions [N]: a rank correlation, and another one of how much
  errors of neighbouring rows of x [N, D] differ, which what a formula misses hardly changes; each beyond
  `chance_beside`, and together as far as one beyond that and one beyond `chance`.

  Predictions have to go over a decade: else weights by their size would change little.
  """
  size, level = np.abs(errors), np.abs(values)
  low, high = np.quantile(level, (config.tail, 1 - config.tail))
  if high < config.ratio * low:
    return False
  first, second = noise.neighbours(x)[-1]
  differences = np.abs(errors[first] - errors[second])
  found = _correlation(size, level), _correlation(differences, level[first] + level[second])
  least = _deviations(config.chance_beside)
  return min(found) > least and sum(found) > least + _deviations(config.chance)


def _deviations(chance: float) -> float:
  """What a standard normal deviate exceeds with this chance."""
  return statistics.NormalDist().inv_cdf(1 - chance)


def _correlation(some: np.ndarray, others: np.ndarray) -> float:
  """Correlation of the ranks of two arrays [N] (Spearman 1904), in its standard deviations where they are unrelated."""
  first, second = _ranks(some), _ranks(others)
  scale = math.sqrt(float(first @ first) * float(second @ second))
  return float(first @ second) / scale * math.sqrt(len(first) - 1) if scale else 0.0


def _ranks(values: np.ndarray) -> np.ndarray:
  """Ranks [N] less their mean, those of equal values their mean."""
  from scipy import stats  # half a second, where nobody else needs it

  return stats.rankdata(values) - (len(values) + 1) / 2
