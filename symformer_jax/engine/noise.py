"""Whether what a formula leaves of y looks like noise: then neighbouring rows tell nothing of each other.

What is smooth and left over has like values in neighbouring rows. Of errors without any order, r their ranks less the
mean rank, the sum of r_i r_j over pairs of rows has mean 0: the statistic of Moran (1950), in ranks (Bartels 1982) so
that no outlier hides the rest. Its variance is taken as the sum of (r_i r_j)^2, for noise may be larger in some places
than in others. It sees no wave that turns between neighbouring rows.
"""

from collections.abc import Sequence
import itertools
import math
import statistics

import numpy as np

from symformer_jax.engine import criteria
from symformer_jax.engine.config import DEFAULT, NoiseConfig
from symformer_jax.engine.pool import Candidate, Pool
from symformer_jax.engine.task import Task
from symformer_jax.language import expression, programs


class NoiseWatch:
  """Tells whether a search has come down to the noise: it has stalled, and what it has leaves noise.

  Attributes:
    best: the formula that describes the data in the fewest nats; None before the first turn.
    others: short ones that describe them in a few nats more: what the selection, which prices nodes less, may take.
    nearest: the formula that comes nearest to the data, of any length.
  """

  def __init__(self, task: Task, config: NoiseConfig = DEFAULT.noise):
    self._task, self._config = task, config
    self._rows = task.rows.sample(config.num_rows, seed=0)
    self._least = math.inf
    num_distinct = task.fit_rows.num_distinct
    self._has_few_rows, self._has_many_rows = num_distinct < config.few, num_distinct >= config.clear_rows
    self.best: Candidate | None = None
    self.others: tuple[Candidate, ...] = ()
    self.nearest: Candidate | None = None
    # Of what the pool had at the last look, by identity: a pool of thousands is looked at after every turn.
    self._lengths: dict[int, tuple[Candidate, float]] = {}

  def has_stalled(self, pool: Pool) -> bool:
    """Whether the last turn found no description that is shorter; to be asked after each."""
    gained = self.look(pool)
    return self.best is not None and gained < self._config.gained

  def look(self, pool: Pool) -> float:
    """Finds the shortest descriptions; returns by how many nats the best is shorter than that of the look before."""
    config = self._config
    self.nearest = pool.best
    known = self._lengths
    self._lengths = {id(c): known.get(id(c)) or (c, self._length(c)) for c in pool.in_order()}
    lengths = sorted(((length, c) for c, length in self._lengths.values()), key=lambda pair: pair[0])
    least, self.best = lengths[0] if lengths else (math.inf, None)
    self.others = tuple(itertools.islice((
      candidate for length, candidate in lengths[1:]
      if length < least + config.near and expression.complexity(candidate.node) <= config.short), config.num_others))
    gained, self._least = self._least - least, min(least, self._least)
    return gained

  def _length(self, candidate: Candidate) -> float:
    """Description length in nats, constants not yet rounded."""
    node = candidate.node
    named = sum(part.token == expression.VARIABLE for part in expression.walk(node))
    fit = criteria.Fit(candidate.mse, expression.complexity(node), len(programs.fitted_values(node)),
                       names=named * math.log(self._rows.x.shape[1]))
    return criteria.mdl(fit, num_points=len(self._task.fit_rows), variance=self._task.variance,
                        nats_per_node=self._config.nats_per_node)

  @property
  def is_in_doubt(self) -> bool:
    """Whether few rows differ, and the best explains them poorly."""
    return self._has_few_rows and (
      self.best is None or self.best.mse > self._config.unexplained * self._task.variance)

  @property
  def may_be_clear(self) -> bool:
    """Whether a formula of few nodes explains nearly all of many rows."""
    return (self._has_many_rows and self.best is not None
            and expression.complexity(self.best.node) <= self._config.clear
            and self.best.mse <= self._config.clear_left * self._task.variance)

  def best_leaves_noise(self) -> bool:
    """Whether the errors of the best look like noise."""
    return self.best is not None and self._leaves_noise(self.best)

  def leaves_noise(self) -> bool:
    """Whether the errors of the best, or of one of the others, look like noise."""
    return self.best is not None and any(map(self._leaves_noise, (self.best, *self.others)))

  def nearest_leaves_noise(self) -> bool:
    """Whether the errors of the nearest formula, of any length, are large and look like noise."""
    return (self.nearest is not None and self.nearest.mse > self._config.large * self._task.variance
            and self._leaves_noise(self.nearest))

  def _leaves_noise(self, candidate: Candidate) -> bool:
    rows, node = self._rows, candidate.node
    with np.errstate(all="ignore"):
      errors = np.sqrt(rows.weights) * (expression.evaluate(node, rows.x) - rows.y)
    num_constants = len(programs.fitted_values(node))
    return looks_like_noise(
      errors, rows.x, self._task.columns, num_constants=num_constants, chance=self._config.chance)


def looks_like_noise(
  errors: np.ndarray, x: np.ndarray, columns: Sequence[int], *, num_constants: int = 0,
  chance: float = DEFAULT.noise.chance,
) -> bool:
  """Whether errors of neighbouring rows are no more alike than those of noise, but for so small a chance.

  Neighbours are the next rows in the order of each column, and with several columns the nearest in the ranks of all.
  Args:
    errors: [N], times the roots of the weights; x: [N, D]; columns: of x, those that count.
    num_constants: fitted ones: each takes from what neighbours share about as much as one row has.
  """
  if not np.all(np.isfinite(errors)):
    return False
  found = smoothness(errors, x[:, list(columns)], num_constants=num_constants)
  return not found or max(found) < statistics.NormalDist().inv_cdf(1 - chance / len(found))


def smoothness(errors: np.ndarray, x: np.ndarray, *, num_constants: int = 0) -> list[float]:
  """By how many standard deviations finite errors [N] of neighbouring rows of x [N, D] are more alike than noise, for
  each order; 0 where all are equal.
  """
  ranks = np.unique(errors, return_inverse=True)[1].astype(np.float64)
  ranks -= np.mean(ranks)
  found = []
  for first, second in neighbours(x):
    products = ranks[first] * ranks[second]
    taken = num_constants * len(first) / len(errors) * np.mean(ranks**2)
    found.append(float(np.sum(products) + taken) / (math.sqrt(np.sum(products**2)) or 1.0))
  return found


def neighbours(x: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
  """Pairs of rows of x [N, D], for each order: indices [M] and [M].

  Rows that are equal in a column stand in a random order: that of a table may be the order of y.
  """
  drawn = np.random.default_rng(0).permutation(len(x))
  orders = [drawn[np.argsort(column[drawn], kind="stable")] for column in x.T]
  pairs = [(order[:-1], order[1:]) for order in orders]
  if x.shape[1] > 1:
    from scipy import spatial  # half a second, and no need of it with one column

    ranks = np.stack([np.unique(column, return_inverse=True)[1] for column in x.T], axis=1)
    scaled = ranks / np.maximum(ranks.max(axis=0), 1)
    nearest = spatial.cKDTree(scaled).query(scaled, k=2)[1]
    both = np.sort(np.stack([np.arange(len(x)), _others(nearest)], axis=1))
    first, second = np.unique(both, axis=0).T
    pairs.append((first, second))
  return pairs


def _others(nearest: np.ndarray) -> np.ndarray:
  """Of the two nearest rows to each row [N, 2] one that is not itself [N]; where rows are equal it may stand second."""
  return np.where(nearest[:, 0] == np.arange(len(nearest)), nearest[:, 1], nearest[:, 0])
