"""Least squares within a box, on the host in float64: for a formula whose free fit leaves it.

Projected Levenberg-Marquardt (Kanzow, Yamashita and Fukushima 2004): constants that stand at a bound and are pushed
against it are held for a step, the others take a damped step, which is cut at the bounds.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

# Factors of the damping after a step that helps and after one that does not.
EASE, STIFFEN = 0.1, 10.0
START_DAMPING, MAX_DAMPING = 1e-3, 1e12
# Share of the sum of squares below which a gain is rounding, and cosine between residual and derivatives below which
# nothing is left to gain.
MIN_GAIN, MIN_COSINE = 1e-15, 1e-12
# Steps after which a start is looked at: most have ended by then, and of one that crawls they tell the pace.
TURN_STEPS = 50
# Of those that have not ended by then, how many go on: the best ones.
NUM_PURSUED = 4


class Found(NamedTuple):
  """The end of a descent.

  Attributes:
    constants: [C], within the box.
    loss: weighted sum of squares; inf where the formula is not finite at all points.
    is_at_bound: which constants stand at a bound and are pushed against it [C].
    is_done: whether it ended before the step limit.
    damping: of its next step.
  """

  constants: np.ndarray
  loss: float
  is_at_bound: np.ndarray
  is_done: bool
  damping: float


def descend_from_all(
  evaluate: Callable[[np.ndarray], np.ndarray], starts: np.ndarray, y: np.ndarray, weights: np.ndarray,
  box: tuple[np.ndarray, np.ndarray], *, max_steps: int,
) -> Found:
  """The best of the ends that starts [R, C] lead to; the other arguments are those of `descend`.

  Where a bound keeps constants from their optimum, other starts crawl for as long as they may, such as towards a line
  as the limit of an exponential. A few go on after a first turn, each until the best would be out of its reach at the
  pace of its last turn.
  """
  def descended(start: np.ndarray, num_steps: int, damping: float) -> Found:
    return descend(evaluate, start, y, weights, box, max_steps=num_steps, damping=damping)

  first = [descended(start, min(TURN_STEPS, max_steps), START_DAMPING) for start in starts]
  best = min(first, key=lambda each: each.loss)
  for found in sorted((each for each in first if not each.is_done), key=lambda each: each.loss)[:NUM_PURSUED]:
    for num_left in range(max_steps - TURN_STEPS, 0, -TURN_STEPS):
      loss, found = found.loss, descended(found.constants, min(TURN_STEPS, num_left), found.damping)
      best = found if found.loss <= best.loss else best  # where it is no better, it may have ended
      if found.is_done or found.loss - (loss - found.loss) * num_left / TURN_STEPS > best.loss:
        break
  return best


def descend(
  evaluate: Callable[[np.ndarray], np.ndarray], start: np.ndarray, y: np.ndarray, weights: np.ndarray,
  box: tuple[np.ndarray, np.ndarray], *, max_steps: int, damping: float = START_DAMPING,
) -> Found:
  """Fits constants from one start.

  Args:
    evaluate: from constants [C] to values and derivatives [1 + C, N].
    start: [C], cut at the bounds; y: [N]; weights: [N], at least 0.
    box: least and largest values [C] each, infinite where there is none.
    max_steps: evaluations beside the first; damping: of the first step.
  """
  lower, upper = box
  root = np.sqrt(weights)

  def look(constants: np.ndarray) -> _Look:
    rows = evaluate(constants)
    with np.errstate(over="ignore", invalid="ignore"):  # a step that goes too far
      residual, jacobian = root * (rows[0] - y), (root * rows[1:]).T
      loss = float(residual @ residual)
    # A root at 0 has an infinite derivative there: that point says nothing of the slope.
    directions, norms = _directions(np.where(np.isfinite(jacobian), jacobian, 0))
    return _Look(residual, directions, norms, loss if np.isfinite(loss) else np.inf)

  def against(gradient: np.ndarray) -> np.ndarray:
    return ((constants <= lower) & (gradient > 0)) | ((constants >= upper) & (gradient < 0))

  constants, here = np.clip(start, lower, upper), look(np.clip(start, lower, upper))
  is_done = not np.isfinite(here.loss)
  for _ in range(0 if is_done else max_steps):
    gradient = here.gradient
    is_held = against(gradient)
    cosine = np.abs(gradient)[~is_held] / (np.sqrt(here.loss) or 1)
    is_done |= here.loss == 0 or not np.any(cosine > MIN_COSINE) or damping > MAX_DAMPING
    if is_done:
      break
    with np.errstate(over="ignore"):  # along a constant that hardly matters a step may be of any length
      trial = np.clip(constants + _step(here.directions, here.residual, ~is_held, damping) / here.norms, lower, upper)
    seen = look(trial)
    if seen.loss < here.loss:
      is_done = here.loss - seen.loss <= MIN_GAIN * here.loss
      constants, here, damping = trial, seen, damping * EASE
    else:
      damping *= STIFFEN
  return Found(constants, here.loss, against(here.gradient), is_done, damping)


class _Look(NamedTuple):
  """What is seen at constants.

  Attributes:
    residual: [N], weighted; loss: its sum of squares, inf where it is not finite.
    directions: derivatives of the residual [N, C], each of length 1 or 0; norms: their lengths before that [C].
  """

  residual: np.ndarray
  directions: np.ndarray
  norms: np.ndarray
  loss: float

  @property
  def gradient(self) -> np.ndarray:
    """Slopes [C] of half the loss along the directions."""
    with np.errstate(invalid="ignore", over="ignore"):  # where the formula is not finite
      return self.directions.T @ self.residual


def _directions(jacobian: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Columns [N, C] of length 1, and their lengths [C], 1 for a column of zeros.

  Divided by their largest numbers first: derivatives of 1e200, as far starts have, have no squares.
  """
  largest = np.max(np.abs(jacobian), axis=0, initial=0)
  jacobian = jacobian / np.where(largest > 0, largest, 1)
  lengths = np.where(largest > 0, np.linalg.norm(jacobian, axis=0), 1)
  with np.errstate(over="ignore"):  # a length beyond double precision: no step
    return jacobian / lengths, np.where(largest > 0, largest * lengths, 1)


def _step(directions: np.ndarray, residual: np.ndarray, is_free: np.ndarray, damping: float) -> np.ndarray:
  """The damped step of the free constants [C] along directions [N, C], by orthogonal factors; of the others 0."""
  num_free = int(is_free.sum())
  matrix = np.vstack([directions[:, is_free], np.sqrt(damping) * np.eye(num_free)])
  step = np.zeros(len(is_free))
  step[is_free] = -np.linalg.lstsq(matrix, np.concatenate([residual, np.zeros(num_free)]), rcond=None)[0]
  return step
