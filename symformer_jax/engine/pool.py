"""The pool: all that a search remembers of the formulas its sources have made for one data set."""

from collections.abc import Iterable, Sequence
import dataclasses
import functools
import itertools
import math

import numpy as np

from symformer_jax.engine.config import DEFAULT, PoolConfig
from symformer_jax.language import expression, programs
from symformer_jax.language.expression import Node


@dataclasses.dataclass(frozen=True)
class Candidate:
  """A fitted formula.

  Attributes:
    node: in the user's units; mse: weighted mean squared error on the rows that are fitted, squared units of y.
    source: who made it.
  """

  node: Node
  mse: float
  source: str = ""


class Pool:
  """Candidates of one data set: the best, and the best few of every complexity.

  Attributes:
    variance: of y, which errors are measured by, squared units of y.
  """

  def __init__(self, variance: float, num_points: int, config: PoolConfig = DEFAULT.pool):
    self.variance, self._num_points, self._config = variance, num_points, config
    self._found: dict[Node, Candidate] = {}

  def __len__(self) -> int:
    return len(self._found)

  def insert(self, candidates: Iterable[Candidate]) -> bool:
    """Takes what is better than what is there; whether the best has become better."""
    before = math.inf if self.best is None else self.best.mse
    for candidate in candidates:
      known = self._found.get(candidate.node)
      if math.isfinite(candidate.mse) and (known is None or candidate.mse < known.mse):
        self._found[candidate.node] = candidate
    if len(self._found) > self._config.capacity:
      kept = dict.fromkeys([*self.shortlist(), *self.in_order()[: self._config.capacity // 2]])
      self._found = {candidate.node: candidate for candidate in kept}
    return self.best is not None and self.best.mse < before

  def in_order(self) -> list[Candidate]:
    """All of them, the best first; of equals the earlier one."""
    return sorted(self._found.values(), key=lambda c: c.mse)

  def sources(self) -> set[str]:
    """Who has made them."""
    return {candidate.source for candidate in self._found.values()}

  @property
  def best(self) -> Candidate | None:
    """The one of least error."""
    return min(self._found.values(), key=lambda c: c.mse, default=None)

  def exact(self) -> Candidate | None:
    """The simplest that meets the data to double precision, with constants enough to spare; None without such.

    A sum of many smooth functions comes near any smooth data, but hardly to this.
    """
    config = self._config
    met = [c for c in self._found.values() if c.mse <= config.met * self.variance
           and len(programs.fitted_values(c.node)) * config.points_per_constant <= self._num_points]
    return min(met, key=lambda c: (expression.complexity(c.node), c.mse), default=None)

  def nearly_exact(self) -> list[Node]:
    """The simplest of those whose error precision or the number of steps may have left: for a fit to the end."""
    config = self._config
    near = [c for c in self._found.values() if config.met * self.variance < c.mse < config.near * self.variance]
    return [c.node for c in sorted(near, key=lambda c: expression.complexity(c.node))[: config.num_sharpened]]

  def shortlist(self, most: int | None = None) -> list[Candidate]:
    """Those that go on to the last fit: few of each skeleton, the best and the best per complexity.

    Below the error `PoolConfig.exact` the simpler one is the better.
    Args:
      most: of them; None for `PoolConfig.num_finalists`.
    """
    config, floor = self._config, self._config.exact * self.variance
    per_skeleton: dict[tuple, int] = {}
    unique = []
    for candidate in self.in_order():
      form = programs.skeleton(candidate.node)
      per_skeleton[form] = per_skeleton.get(form, 0) + 1
      if per_skeleton[form] <= config.fits_per_skeleton and programs.size(candidate.node) <= programs.MAX_TOKENS:
        unique.append(candidate)
    unique.sort(key=lambda c: (max(c.mse, floor), expression.complexity(c.node)))
    keep = functools.partial(
      survivors, np.maximum([c.mse for c in unique], floor), [expression.complexity(c.node) for c in unique])
    # The best of every complexity first: where there are too many, a short law has no place among the most accurate.
    chosen = dict.fromkeys([*keep(num_best=0, num_per_length=1),
                            *keep(num_best=config.num_best, num_per_length=config.num_per_complexity)])
    return [unique[i] for i in sorted(itertools.islice(chosen, most or config.num_finalists))]


def survivors(loss: np.ndarray, lengths: Sequence[int], *, num_best: int, num_per_length: int) -> list[int]:
  """The best by loss [K], then the best few of every length; none without a finite loss."""
  order = [int(i) for i in np.argsort(loss, kind="stable") if math.isfinite(loss[i])]
  kept = dict.fromkeys(order[:num_best])
  by_length: dict[int, int] = {}
  for index in order:
    by_length[lengths[index]] = by_length.get(lengths[index], 0) + 1
    if by_length[lengths[index]] <= num_per_length:
      kept[index] = None
  return list(kept)
