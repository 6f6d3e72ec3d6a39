"""The Pareto front: formulas that no simpler formula fits as well."""

from collections.abc import Sequence, Set
import math


def pareto_indices(
  complexities: Sequence[int], errors: Sequence[float], *, floor: float = 0.0, costs: Sequence[float] | None = None,
  min_gain: float = 0.0,
) -> list[int]:
  """Indices of the front, from simple to accurate.

  Args:
    complexities: nodes of each formula.
    errors: mean squared errors, any common unit; NaN and infinities never enter.
    floor: errors below it are the noise of the numbers themselves and count as equal, so that of several exact
      fits one stays alone: the simplest, or with costs that of the lowest.
    costs: what decides among those of one complexity that are better than all simpler ones, the lowest wins;
      default: the error.
    min_gain: share by which the error must fall at each step of the front.
  Returns:
    Indices with strictly rising complexity and strictly falling max(error, floor).
  """
  # Of exact ones a simpler one may need so many digits that it is none: `9637310*cos(0.00054*x)` for a square.
  exact = [] if costs is None else sorted(
    (costs[i], complexities[i], i) for i, error in enumerate(errors) if error <= floor)
  left_out = {i for *_, i in exact[1:]}
  costs = errors if costs is None else costs
  by_complexity: dict[int, list[int]] = {}
  for i, complexity in enumerate(complexities):
    if i in left_out:
      continue
    by_complexity.setdefault(complexity, []).append(i)
  front: list[int] = []
  best = math.inf
  for _, indices in sorted(by_complexity.items()):
    better = [i for i in indices if max(errors[i], floor) < best * (1 - min_gain)]  # never NaN
    if better:
      front.append(min(better, key=lambda i: costs[i]))
      best = max(errors[front[-1]], floor)
  return front


def falling(
  complexities: Sequence[int], errors: Sequence[float], *, kept: Set[int] = frozenset(), floor: float = 0.0
) -> list[int]:
  """Indices of those that are more accurate than all simpler ones, and of those that are kept: of formulas that have
  been a front, and whose last fit may have changed the order.

  Args:
    complexities, errors, floor: see `pareto_indices`.
    kept: indices that stay, whatever is simpler and better.
  """
  shown: list[int] = []
  for i in sorted(range(len(errors)), key=lambda i: (complexities[i], -max(errors[i], floor))):
    if i in kept or all(max(errors[i], floor) < max(errors[j], floor) for j in shown):
      shown = [j for j in shown if j in kept or complexities[j] < complexities[i]]
      shown.append(i)
  return shown
