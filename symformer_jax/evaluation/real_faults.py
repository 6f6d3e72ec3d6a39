"""What is wrong with an answer for real data: rules that anybody can check, no matter how the answer was chosen."""

import dataclasses

import numpy as np

from symformer_jax.engine.rows import Rows
from symformer_jax.evaluation.real_data import Split
from symformer_jax.language.expression import Node, columns_of, has_column
from symformer_jax.selection import between_rows, frequencies, scoring, soundness

UNDEFINED, POLE, ALIAS = "undefined", "pole", "alias"
EXPONENT, MANY_COLUMN_WAVE = "column in an exponent", "wave of several columns"
EXTREME, ARC = "extreme exponent", "wave without a period"
TIMID, BELOW_LINE = "bare mean", "below least squares"
# A mean is too timid where least squares or boosting explain so much of the rows not seen.
WORTHWHILE_R2 = 0.2
# Of R2, below least squares: less is within what a split of few rows decides.
ROOM = 0.02
# Laws have none beyond: repulsion in Lennard-Jones' potential, losses in pipes (4.87). As `ChoiceConfig` has them, and
# not read there: a judge stays where it is when what it judges moves.
LARGEST_EXPONENT, LARGEST_UNEVEN = 12, 5
# An answer that explains all but this share is a law, whatever it is made of.
EXACT_FVU = 1e-9


@dataclasses.dataclass(frozen=True)
class Yardsticks:
  """R2 on the scored rows of what anybody would try; None where it could not be fitted."""

  least_squares: float | None
  boosting: float | None


def score(node: Node, split: Split) -> float | None:
  """R2 on the scored rows, relative to the variance of all rows: few scored rows have a chance variance of their own.

  None where the formula is undefined on one of them.
  """
  return score_values(scoring.evaluate(node, split.scored_x), split)


def score_values(values: np.ndarray, split: Split) -> float | None:
  """As `score`, of predictions [M] for the scored rows."""
  variance = np.var(np.concatenate([split.y, split.scored_y]))
  with np.errstate(all="ignore"):
    error = np.mean((values - split.scored_y) ** 2)
  return float(1 - error / variance) if np.isfinite(error) else None


def find_faults(node: Node, split: Split, yardsticks: Yardsticks) -> tuple[str, ...]:
  """All faults of an answer, by rule.

  - undefined: on a scored row or between fitted rows (see `between_rows.Segments`).
  - pole: between fitted rows it leaves the range of the data by more than that range.
  - alias: a wave turns by more than half a turn between neighbouring rows.
  - column in an exponent; exponent beyond 12, or beyond 5 where it is no whole or half number; wave of several columns,
    or of which the fitted rows see less than a period, of fitted frequency or far from all angles: unless all but a
    billionth of the variance is explained.
  - bare mean: though least squares or boosting has R2 above .2.
  - below least squares: by more than .02.
  """
  rows = Rows(split.x, split.y, np.ones(len(split.y)))
  segments = between_rows.make_segments(rows)
  r2 = score(node, split)
  fault = soundness.find_fault(node, segments)
  found = []
  if r2 is None or fault == soundness.UNDEFINED:
    found.append(UNDEFINED)
  if fault in (soundness.POLE, soundness.LEAP):
    found.append(POLE)
  if fault == soundness.ALIAS:
    found.append(ALIAS)
  if r2 is None or 1 - r2 > EXACT_FVU:
    if soundness.num_column_exponents(node):
      found.append(EXPONENT)
    if any(len(columns_of(wave)) > 1 for wave in frequencies.waves(node)):
      found.append(MANY_COLUMN_WAVE)
    if soundness.num_extreme_exponents(node, largest=LARGEST_EXPONENT, largest_uneven=LARGEST_UNEVEN):
      found.append(EXTREME)
    if any(frequencies.is_arc(wave, split.x) for wave in frequencies.waves(node)):
      found.append(ARC)
  best = max((y for y in (yardsticks.least_squares, yardsticks.boosting) if y is not None), default=-np.inf)
  if not has_column(node) and best > WORTHWHILE_R2:
    found.append(TIMID)
  if yardsticks.least_squares is not None and (r2 is None or r2 < yardsticks.least_squares - ROOM):
    found.append(BELOW_LINE)
  return tuple(found)
