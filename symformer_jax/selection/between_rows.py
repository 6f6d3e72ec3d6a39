"""Where formulas are looked at between the rows: along segments from row to row.

Between neighbours where there is one column; between near rows and between rows drawn at random where there are
several. All these points lie among the data, none in a corner of their box that no row comes near.
"""

import dataclasses

import numpy as np

from symformer_jax.engine.config import DEFAULT, ChoiceConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language.expression import Node
from symformer_jax.selection import scoring


@dataclasses.dataclass(frozen=True)
class Segments:
  """Where formulas are looked at.

  Attributes:
    begin, end: ends of S segments [S, D], rows all of them; with one column in rising order, so that they join.
    points: on the segments, the ends included [S, P, D].
    low, high: between which values stay [2]: the range of y, widened.
    num_rows: distinct rows.
    is_near: whether the ends are neighbours [S]; of several columns others join rows far apart.
  """

  begin: np.ndarray
  end: np.ndarray
  points: np.ndarray
  low: float
  high: float
  num_rows: int
  is_near: np.ndarray

  @property
  def shares(self) -> np.ndarray:
    """Shares of its length at which the points of each segment are [S, P]."""
    return np.broadcast_to(np.linspace(0, 1, self.points.shape[1]), self.points.shape[:2])


def make_segments(rows: Rows, *, config: ChoiceConfig = DEFAULT.choice, seed: int = 0) -> Segments:
  """Segments among the rows; none where all rows are one point."""
  x = _distinct(rows.x)
  rng = np.random.default_rng(seed)
  if x.shape[1] == 1:
    pairs = np.column_stack([np.arange(len(x) - 1), np.arange(1, len(x))])
    if len(pairs) > 4 * config.num_segments:
      pairs = pairs[np.sort(rng.choice(len(pairs), 4 * config.num_segments, replace=False))]
  else:
    pairs = _near_and_far(x, config, rng)
  is_near = np.arange(len(pairs)) < (len(pairs) if x.shape[1] == 1 else min(config.num_segments, len(x)))
  begin, end = x[pairs[:, 0]], x[pairs[:, 1]]
  share = np.linspace(0, 1, config.points_between + 2)[None, :, None]
  points = begin[:, None] + share * (end - begin)[:, None]
  spread = np.ptp(rows.y)
  return Segments(begin, end, points, float(rows.y.min() - config.leap * spread),
                  float(rows.y.max() + config.leap * spread), len(x), is_near)


def values_at(node: Node, points: np.ndarray) -> np.ndarray:
  """Values [S, P] at points [S, P, D]."""
  return scoring.evaluate(node, points.reshape(-1, points.shape[-1])).reshape(points.shape[:-1])


def _distinct(x: np.ndarray) -> np.ndarray:
  """Rows [M, D] that are not equal, in the order of the first column, then the next: `np.unique(x, axis=0)`, sooner."""
  x = x[np.lexsort(x.T[::-1])]
  is_new = np.ones(len(x), bool)
  is_new[1:] = (x[1:] != x[:-1]).any(axis=1)
  return x[is_new]


def _near_and_far(x: np.ndarray, config: ChoiceConfig, rng: np.random.Generator) -> np.ndarray:
  """Pairs of rows [S, 2]: each of some rows with its nearest, and pairs drawn at random."""
  count = config.num_segments
  if len(x) > config.max_neighbours:
    some = np.sort(rng.choice(len(x), config.max_neighbours, replace=False))
    return some[_near_and_far(x[some], config, rng)]
  if len(x) < 2:
    return np.zeros((0, 2), int)
  scale = np.std(x, axis=0)
  scaled = x / np.where(scale > 0, scale, 1.0)
  some = np.sort(rng.choice(len(x), min(count, len(x)), replace=False))
  near = []
  for i in some:
    distance = np.sum((scaled - scaled[i]) ** 2, axis=1)
    distance[i] = np.inf
    near.append((i, int(np.argmin(distance))))
  far = rng.integers(0, len(x), (min(count, len(x) ** 2), 2))
  return np.array([*near, *(pair for pair in far if pair[0] != pair[1])])
