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


class Found(NamedTuple):
  """The end of a descent.

  Attributes:
    constants: [C], within the box.
    loss: weighted sum of squares; inf where the formula is not finite at all points.
    is_at_bound: which constants stand at a bound and are pushed against it [C].
    is_done: whether it ended before the step limit.
  """

  constants: np.ndarray
  loss: float
  is_at_bound: np.ndarray
  is_done: bool


def descend(
  evaluate: Callable[[np.ndarray], np.ndarray], start: np.ndarray, y: np.ndarray, weights: np.ndarray,
  box: tuple[np.ndarray, np.ndarray], *, max_steps: int,
) -> Found:
  """Fits constants from one start.

  Args:
    evaluate: from constants [C] to values and derivatives [1 + C, N].
    start: [C], cut at the bounds; y: [N]; weights: [N], at least 0.
    box: least and largest values [C] each, infinite where there is none.
    max_steps: evaluations.
  """
  lower, upper = box
  root = np.sqrt(weights)

  def look(constants: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    rows = evaluate(constants)
    with np.errstate(over="ignore", invalid="ignore"):  # a step that goes too far
      residual, jacobian = root * (rows[0] - y), (root * rows[1:]).T
      loss = float(residual @ residual)
    # A root at 0 has an infinite derivative there: that point says nothing of the slope.
    return residual, np.where(np.isfinite(jacobian), jacobian, 0), loss if np.isfinite(loss) else np.inf

  def against(gradient: np.ndarray) -> np.ndarray:
    return ((constants <= lower) & (gradient > 0)) | ((constants >= upper) & (gradient < 0))

  constants, damping = np.clip(start, lower, upper), START_DAMPING
  residual, jacobian, loss = look(constants)
  is_done = not np.isfinite(loss)
  for _ in range(max_steps):
    gradient = jacobian.T @ residual
    is_held = against(gradient)
    norms = np.where((norms := np.linalg.norm(jacobian, axis=0)) > 0, norms, 1)
    cosine = np.abs(gradient / norms)[~is_held] / (np.sqrt(loss) or 1)
    is_done |= loss == 0 or not np.any(cosine > MIN_COSINE) or damping > MAX_DAMPING
    if is_done:
      break
    trial = np.clip(constants + _step(jacobian / norms, residual, ~is_held, damping) / norms, lower, upper)
    seen = look(trial)
    if seen[2] < loss:
      is_done = loss - seen[2] <= MIN_GAIN * loss
      constants, (residual, jacobian, loss), damping = trial, seen, damping * EASE
    else:
      damping *= STIFFEN
  return Found(constants, loss, against(jacobian.T @ residual), is_done)


def _step(jacobian: np.ndarray, residual: np.ndarray, is_free: np.ndarray, damping: float) -> np.ndarray:
  """The damped step of the free constants [C], by orthogonal factors; of the others 0."""
  num_free = int(is_free.sum())
  matrix = np.vstack([jacobian[:, is_free], np.sqrt(damping) * np.eye(num_free)])
  step = np.zeros(len(is_free))
  step[is_free] = -np.linalg.lstsq(matrix, np.concatenate([residual, np.zeros(num_free)]), rcond=None)[0]
  return step
