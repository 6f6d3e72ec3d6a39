"""The Pareto front: formulas that no simpler formula fits as well."""

from collections.abc import Sequence
import math


def pareto_indices(
  complexities: Sequence[int], errors: Sequence[float], *, floor: float = 0.0, costs: Sequence[float] | None = None
) -> list[int]:
  """Indices of the front, from simple to accurate.

  Args:
    complexities: nodes of each formula.
    errors: mean squared errors, any common unit; NaN and infinities never enter.
    floor: errors below it are the noise of the numbers themselves and count as equal, so that of several exact
      fits the simplest stays alone.
    costs: what decides among formulas of one complexity, the lowest wins; default: the error.
  Returns:
    Indices with strictly rising complexity and strictly falling max(error, floor).
  """
  costs = errors if costs is None else costs
  champions: dict[int, int] = {}
  for i, complexity in enumerate(complexities):
    if math.isfinite(errors[i]) and (complexity not in champions or costs[i] < costs[champions[complexity]]):
      champions[complexity] = i
  front: list[int] = []
  best = math.inf
  for _, i in sorted(champions.items()):
    error = max(errors[i], floor)
    if error < best:
      front.append(i)
      best = error
  return front
