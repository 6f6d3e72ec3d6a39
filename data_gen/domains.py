"""The box on which an equation is used: the largest of those made of {-edge, 0, edge} where it is finite."""

import functools
import itertools

import numpy as np

from data_gen import trees
from data_gen.config import GeneratorConfig
from symformer_jax.language.expression import Node


@functools.cache
def boxes(num_variables: int, edge: float) -> tuple[np.ndarray, ...]:
  """All boxes [D, 2], largest first; among equals those with positive variables first."""
  intervals = ((-edge, edge), (0.0, edge), (-edge, 0.0))
  found = [np.array(box) for box in itertools.product(intervals, repeat=num_variables)]
  return tuple(sorted(found, key=lambda box: -np.prod(box[:, 1] - box[:, 0])))


def draw_points(rng: np.random.Generator, box: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
  """Uniform points in a box, variable first [D, *shape]; 0 is no member of (0, edge] nor [-edge, 0)."""
  columns = rng.random((len(box), *shape))  # [0, 1)
  for i, (low, high) in enumerate(box):
    if low == 0:
      columns[i] = high * (1 - columns[i])
    else:
      columns[i] = low + (high - low) * columns[i]
  return columns


def find_box(
  node: Node, rng: np.random.Generator, config: GeneratorConfig
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
  """The largest box on which one of `num_tries` draws of `num_points` points is finite throughout.

  Returns:
    `(box [D, 2], columns [D, N], y [N])` of that draw, or None when there is no such box. `rng` is consumed.
  """
  candidates = boxes(config.num_variables, config.box_edge)
  largest = candidates[0]
  for box in candidates:
    columns = draw_points(rng, box, (config.num_tries, config.num_points))  # [D, T, N]
    y = trees.values(node, columns)  # [T, N]
    is_finite = np.isfinite(y)
    is_good = is_finite.all(axis=1)
    draw = int(is_good.argmax())
    if is_good[draw]:
      return box, columns[:, draw], y[draw]
    # Nowhere finite on the largest box: on no smaller one either.
    if box is largest and not is_finite.any():
      return None
  return None


def try_box(
  node: Node, box: np.ndarray, rng: np.random.Generator, config: GeneratorConfig
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
  """`find_box` where the box [D, 2] is given: None when no draw is finite throughout. `rng` is consumed."""
  unit = rng.random((len(box), config.num_tries, config.num_points))
  columns = box[:, :1, None] + (box[:, 1:, None] - box[:, :1, None]) * unit  # [D, T, N]
  y = trees.values(node, columns)  # [T, N]
  is_good = np.isfinite(y).all(axis=1)
  draw = int(is_good.argmax())
  return (box, columns[:, draw], y[draw]) if is_good[draw] else None
