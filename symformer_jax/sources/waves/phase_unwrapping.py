"""Phases from values: a wave or a tangent tells its argument but for periods and, of a wave, the sign.

Along rows in the order of one column the argument is smooth, and so the periods follow: of all that may be next the one
near what those before lead to (phase unwrapping, here by a beam search, for one wrong choice early on spoils all that
come after).
"""

import itertools
from typing import NamedTuple

import numpy as np

from symformer_jax.engine import interruption

# What a radian of the first step costs, squared radians that are missed: it decides between equals alone.
SLOW = 1e-6
# Of settling each argument by its neighbours: none has been seen to need more than two.
NUM_ROUNDS = 4


class Unwrapped(NamedTuple):
  """A stretch of rows along which the argument is known.

  Attributes:
    begin: the first row; values: the argument there and in the rows that follow, [M].
    roughness: root mean square of what the cubic through two rows on each side misses an argument by, radians.
  """

  begin: int
  values: np.ndarray
  roughness: float

  @property
  def rows(self) -> slice:
    return slice(self.begin, self.begin + len(self.values))

  @property
  def range(self) -> float:
    return float(np.ptp(self.values))


class Choices(NamedTuple):
  """What the argument may be in each row: the principal value, or its opposite, and any number of periods.

  Attributes:
    principal: [N]; period; has_mirror: whether the opposite is possible too.
  """

  principal: np.ndarray
  period: float
  has_mirror: bool

  def near(self, row: int, expected: np.ndarray) -> np.ndarray:
    """Those nearest to what is expected [B], below and above: [B, 3 a sign]."""
    some = []
    for sign in (1.0, -1.0) if self.has_mirror else (1.0,):
      principal = sign * self.principal[row]
      periods = np.round((expected - principal) / self.period)
      some += [principal + self.period * (periods + more) for more in (-1, 0, 1)]
    return np.stack(some, axis=1)

  def of(self, rows: slice) -> "Choices":
    return self._replace(principal=self.principal[rows])


def unwrap(
  x: np.ndarray, choices: Choices, *, num_starts: int, num_beams: int, most_rough: float
) -> list[Unwrapped]:
  """Smooth stretches, those that differ: around each start once without a kink, once without a leap of curvature.

  Where an argument is at its least as a wave is at an end, its mirror image has no kink there either; where it is flat
  besides, as at the inflection of a cube, the right one may have the greater curvature.

  Args:
    x: [N], rising, N at least 3.
    num_starts: parts of the rows; the search begins where the rows of each are densest.
    num_beams: ways that are followed at once.
    most_rough: where three rows in a row miss what was expected by more than so many radians, in the mean, a stretch
      ends.
  """
  parts = [part for part in np.array_split(np.arange(len(x) - 2), num_starts) if len(part)]
  begun = [int(part[np.argmin(x[part + 2] - x[part])]) for part in parts]
  found: list[Unwrapped] = []
  for is_curved, begin in itertools.product((True, False), begun):
    argument = _around(x, choices, begin, is_curved, num_beams, most_rough)
    if not any(_is_same(argument, other) for other in found):
      found.append(argument)
  return found


def _is_same(first: Unwrapped, second: Unwrapped) -> bool:
  return len(first.values) == len(second.values) and abs(first.range - second.range) < 1e-6 * first.range


def _around(
  x: np.ndarray, choices: Choices, begin: int, is_curved: bool, num_beams: int, most_rough: float
) -> Unwrapped:
  """The stretch around a row and the next."""
  first = choices.principal[begin]
  begun = np.array([(first, second) for second in choices.near(begin + 1, np.array([first]))[0]])
  later = _follow(x[begin:], choices.of(slice(begin, None)), begun, is_curved, num_beams, most_rough)
  back = slice(begin + 1, None, -1)
  earlier = _follow(-x[back], choices.of(back), later[None, 1::-1], is_curved, num_beams, most_rough)
  rows = slice(begin + 2 - len(earlier), begin + len(later))
  values = _settled(x[rows], choices.of(rows), np.concatenate([earlier[:1:-1], later]))
  missed = values[2:-2] - _by_cubics(x[rows], values) if len(values) > 4 else np.array([np.inf])
  return Unwrapped(rows.start, values, float(np.sqrt(np.mean(missed**2))))


def _follow(
  x: np.ndarray, choices: Choices, ways: np.ndarray, is_curved: bool, num_beams: int, most_rough: float
) -> np.ndarray:
  """The smoothest way on from arguments of the first two rows [B, 2], as far as there is one: [M]."""
  interruption.check()
  # Of even rows the slowest is as smooth as its aliases.
  cost, missed = SLOW * np.diff(ways, axis=1)[:, 0] ** 2, np.zeros((len(ways), 0))
  for row in range(2, len(x)):
    slope = (ways[:, -1] - ways[:, -2]) / (x[row - 1] - x[row - 2])
    expected = ways[:, -1] + slope * (x[row] - x[row - 1])
    near = choices.near(row, expected)
    misses = near - expected[:, None]
    total = cost[:, None] + misses**2
    if is_curved and row > 2:
      before = (ways[:, -2] - ways[:, -3]) / (x[row - 2] - x[row - 3])
      bend = (slope - before) / (x[row - 1] - x[row - 3]) * (x[row] - x[row - 1]) * (x[row] - x[row - 2])
      total += (misses - bend[:, None]) ** 2
    way, which = np.unravel_index(np.argsort(total, axis=None, kind="stable")[:num_beams], total.shape)
    # What is alike in the last rows goes on alike.
    tails = np.round(np.column_stack([ways[way, -1:], near[way, which]]), 6)
    kept = np.sort(np.unique(tails, axis=0, return_index=True)[1])
    way, which = way[kept], which[kept]
    ways = np.column_stack([ways[way], near[way, which]])
    missed = np.column_stack([missed[way], misses[way, which]])
    cost = total[way, which]
    if missed.shape[1] >= 3 and np.mean(np.abs(missed[0, -3:])) > most_rough:
      return ways[0, :-3]
  return ways[0]


def _settled(x: np.ndarray, choices: Choices, values: np.ndarray) -> np.ndarray:
  """Each argument once more, by the cubic through two rows on each side: near the ends of a wave both signs are near
  what the rows before lead to.
  """
  for _ in range(NUM_ROUNDS if len(x) > 4 else 0):
    expected = _by_cubics(x, values)
    near = np.stack([choices.near(row, expected[[row - 2]])[0] for row in range(2, len(x) - 2)])
    inner = near[np.arange(len(near)), np.argmin(np.abs(near - expected[:, None]), axis=1)]
    before, values = values, np.concatenate([values[:2], inner, values[-2:]])
    if np.array_equal(before, values):
      break
  return values


def _by_cubics(x: np.ndarray, values: np.ndarray) -> np.ndarray:
  """Of rows [N] but two at each end, the cubic through those two on each side: [N - 4]."""
  around = (-2, -1, 1, 2)
  middle = x[2:-2]
  at = {shift: x[2 + shift : len(x) - 2 + shift] for shift in around}
  return sum(values[2 + i : len(x) - 2 + i] * np.prod(
    [(middle - at[j]) / (at[i] - at[j]) for j in around if j != i], axis=0) for i in around)
