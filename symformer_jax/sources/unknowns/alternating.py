"""Additive models, and products of them beside another, by alternating least squares.

An additive model is a sum of unknown functions of one variable each (Hastie and Tibshirani, Generalized additive
models, 1986). With polynomials in their place one is a question of least squares, and a product of several is one for
each factor while the others are held (Beylkin and Mohlenkamp, Algorithms for numerical analysis in high dimensions,
2005).
"""

from collections.abc import Iterator, Sequence
import itertools
import math
from typing import NamedTuple

import numpy as np
from scipy import linalg

from symformer_jax.engine.config import SeparableConfig

# What is left that rounding explains, as a share of the target's square; what keeps a normal matrix regular, as a share
# of its mean diagonal.
EXACT, _REGULAR = 1e-13, 1e-13


class Fit(NamedTuple):
  """A product of sums of columns, and a sum beside it.

  Attributes:
    coefficients: of each factor [C], then those of what stands beside them, if anything does.
    left: share of the target's weighted square about its mean that is left.
  """

  coefficients: tuple[np.ndarray, ...]
  left: float


def fit_product(
  designs: Sequence[np.ndarray], target: np.ndarray, weights: np.ndarray, *, beside: np.ndarray | None = None,
  config: SeparableConfig
) -> Fit:
  """The product of one sum of columns each that leaves least, from the best of a few starts.

  Args:
    designs: for each factor columns [N, C], ones the first; target: [N], not constant; weights: [N], above 0.
    beside: columns [N, B] of a sum that is added to the product; None for the product alone.
    config: how many sweeps over the factors, and starts.
  """
  root, size = np.sqrt(weights / weights.sum()), np.max(np.abs(target))
  goal = root * (target / size)
  square = float(np.sum((goal - root * (root @ goal)) ** 2))
  rest = root[:, None] * (np.zeros((len(goal), 0)) if beside is None else beside)
  rng = np.random.default_rng(0)
  best: tuple[float, list[np.ndarray]] | None = None
  ones = [np.eye(1, design.shape[1])[0] for design in designs]
  starts = [ones]
  if len(designs) > 1:  # else any leads to least squares
    starts += [[each + config.spread * rng.normal(size=len(each)) * (np.arange(len(each)) > 0) for each in ones]
               for _ in range(config.num_starts - 1)]
    chosen = _product_of_columns(designs, root, goal) if config.from_columns else ()
    if any(chosen):
      starts.append([np.eye(1, design.shape[1], i)[0] for design, i in zip(designs, chosen, strict=True)])
  for begun in starts:
    found = _swept(designs, rest, root, goal, begun, config)
    if best is None or found[0] < best[0]:
      best = found
  assert best is not None, "there is a start"
  error, (*first, last, added) = best
  return Fit((*first, last * size, *(() if beside is None else (added * size,))), error / square)


def _product_of_columns(designs: Sequence[np.ndarray], root: np.ndarray, goal: np.ndarray) -> tuple[int, ...]:
  """Of each factor the first or the second column: the product that the goal [N] goes along with most.

  Of `x*y*z` on both sides of 0 each factor is nothing to y while the others are constants.
  """
  best, chosen = -1.0, tuple(0 for _ in designs)
  choices = [range(min(2, design.shape[1])) for design in designs]
  for some in itertools.product(*choices):  # `SeparableConfig.max_columns` bounds them
    product = math.prod((design[:, i] for design, i in zip(designs, some, strict=True)), start=root)
    along = abs(float(product @ goal)) / math.sqrt(float(product @ product) or 1.0)
    if along > best * (1 + 1e-9):  # the first of those that are alike
      best, chosen = along, some
  return chosen


def _swept(
  designs: Sequence[np.ndarray], rest: np.ndarray, root: np.ndarray, goal: np.ndarray, coefficients: list[np.ndarray],
  config: SeparableConfig
) -> tuple[float, list[np.ndarray]]:
  """Sweeps over the factors until one gains little; the factors but the last are of mean square 1."""
  values = [design @ some for design, some in zip(designs, coefficients, strict=True)]
  error, added = np.inf, np.zeros(rest.shape[1])
  for _ in range(config.num_sweeps if len(designs) > 1 else 1):
    residual = goal
    for i, design in enumerate(designs):
      others = math.prod((each for k, each in enumerate(values) if k != i), start=root)
      whole = others[:, None] * design
      found, residual = _least_squares(np.hstack([whole, rest]) if rest.shape[1] else whole, goal)
      found, added = found[: design.shape[1]], found[design.shape[1] :]
      product = design @ found
      size = math.sqrt(product @ product / len(product)) if i < len(designs) - 1 else 1.0
      coefficients[i], values[i] = found / (size or 1.0), product / (size or 1.0)
    before, error = error, float(residual @ residual)
    if not error < (1 - config.least_gain) * before:  # NaN is not
      break
  return error if np.isfinite(error) else np.inf, [*coefficients, added]


def _least_squares(design: np.ndarray, goal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Factors of the columns, and what is left of the goal."""
  # LAPACK itself: what NumPy does around a call takes as long as twenty unknowns do.
  gram = design.T @ design
  diagonal = gram.ravel()[:: len(gram) + 1]
  diagonal += _REGULAR * diagonal.mean() + np.finfo(np.float64).tiny
  lower, found, failed = linalg.lapack.dposv(gram, design.T @ goal, lower=1)
  if not failed:  # what the normal matrix has rounded is mended by a second look
    found = found + linalg.lapack.dpotrs(lower, design.T @ (goal - design @ found), lower=1)[0]
  elif np.isfinite(gram).all():  # rounding has made it indefinite
    found = np.linalg.lstsq(design, goal, rcond=None)[0]
  else:
    found = np.full(len(gram), np.nan)
  return found, goal - design @ found


Factors = tuple[tuple[int, ...], ...]


def partitions(columns: Sequence[int], *, config: SeparableConfig) -> list[Factors]:
  """Products of at least two sums: for each the columns of its functions.

  Of few columns every partition, and each of those with a function more, of a column that stands in a sum; of many one
  for each column, the same with one sum of two columns, and two sums, of which one has one or two columns.
  """
  if len(columns) > config.max_partitioned:
    pairs = [(a, b) for i, a in enumerate(columns) for b in columns[i + 1 :]]
    single = tuple((c,) for c in columns)
    return [*((some, tuple(c for c in columns if c not in some)) for some in (*single, *pairs)), single,
            *((pair, *((c,) for c in columns if c not in pair)) for pair in pairs)]
  whole = [tuple(tuple(some) for some in each) for each in _set_partitions(list(columns))]
  more = [(*factors, (column,)) for factors in whole for some in factors if len(some) > 1 for column in some]
  return sorted((each for each in (*whole, *more) if len(each) > 1), key=lambda each: (len(each), sum(map(len, each))))


def _set_partitions(columns: list[int]) -> Iterator[list[list[int]]]:
  if not columns:
    yield []
    return
  for rest in _set_partitions(columns[1:]):
    for i in range(len(rest)):
      yield [*rest[:i], [columns[0], *rest[i]], *rest[i + 1 :]]
    yield [[columns[0]], *rest]
