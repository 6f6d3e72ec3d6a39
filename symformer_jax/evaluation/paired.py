"""Variants of a suite beside its first, problem by problem: what differs, and whether that may be chance."""

from collections.abc import Callable, Sequence
import dataclasses

import numpy as np

from symformer_jax.evaluation.runs import Row

# What is counted of a row: a solved problem by four measures.
MEASURES: dict[str, Callable[[Row], bool]] = {
  "R2 > .999": lambda row: row.r2 is not None and row.r2 > 0.999,
  "R2 > .9999": lambda row: row.r2 is not None and row.r2 > 0.9999,
  "1 - R2 < 1e-9": lambda row: row.fvu is not None and row.fvu < 1e-9,
  "recovered": lambda row: row.recovered is True,
}
# Resamplings of the problems; the interval's ends are then known to about a fiftieth of its width.
NUM_RESAMPLINGS = 2000


@dataclasses.dataclass(frozen=True)
class Difference:
  """A share less that of the first variant, over the problems that both have.

  Attributes:
    lost, gained: problems that only the first solves, and that only this one does.
    share: the difference of the shares; interval: 95 % of it, by resampling problems.
  """

  lost: int
  gained: int
  num_problems: int
  share: float
  interval: tuple[float, float]


def compare(rows: Sequence[Row], others: Sequence[Row], is_solved: Callable[[Row], bool]) -> Difference:
  """Compares the rows of one variant with `others`, those of another with the same problems and seeds."""
  first = {(row.name, row.seed): is_solved(row) for row in rows}
  second = {(row.name, row.seed): is_solved(row) for row in others}
  names = sorted({name for name, _ in first.keys() & second.keys()})
  # Problems are drawn, not rows: seeds of one problem are alike.
  change = np.array([np.mean([second[key] - first[key] for key in first.keys() & second.keys() if key[0] == name])
                     for name in names])
  if not len(change):
    return Difference(0, 0, 0, 0.0, (0.0, 0.0))
  drawn = np.random.default_rng(0).integers(len(change), size=(NUM_RESAMPLINGS, len(change)))
  low, high = np.quantile(change[drawn].mean(axis=1), [0.025, 0.975])
  return Difference(
    int(np.sum(change < 0)), int(np.sum(change > 0)), len(change), float(change.mean()), (float(low), float(high)))


def table_lines(by_variant: dict[str, list[Row]]) -> list[list[str]]:
  """A line for each variant but the first: its differences, `-.031 (-.055 to -.008; 5 lost, 1 gained)`."""
  first, *rest = by_variant
  return [[name, *(_cell(compare(by_variant[first], by_variant[name], is_solved)) for is_solved in MEASURES.values())]
          for name in rest]


def _cell(difference: Difference) -> str:
  low, high = difference.interval
  return (f"{difference.share:+.3f} ({low:+.3f} to {high:+.3f}; {difference.lost} lost, {difference.gained} gained)")
