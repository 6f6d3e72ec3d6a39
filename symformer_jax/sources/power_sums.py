"""Sums of three powers of one column beside a constant, exponents halves and thirds: `x**3 - 2*x**(7/3) + x**(5/3)`.

Of some thirty powers all triples are few thousand; how much each explains follows from the products of columns in twos
(as in orthogonal least squares: Chen, Billings and Luo 1989), and what comes nearest is solved. For exact data alone:
on a narrow range some triple comes to a millionth of whatever is smooth.
"""

from collections.abc import Iterator
import itertools

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import PowerSumsConfig

# Powers of a sum.
NUM_POWERS = 3
# A power of which two others leave no more than this share of its length is made of them but for rounding.
_LEAST_SHARE = 1e-7


def exponents_of(config: PowerSumsConfig) -> list[float]:
  """All that are tried, in order, but for 0, which the constant is."""
  some = {k / part for part in config.parts for k in range(-part * config.largest, part * config.largest + 1)} - {0.0}
  return sorted(some)


@np.errstate(all="ignore")  # what is not finite is left out
def nearest_powers(
  x: np.ndarray, y: np.ndarray, weights: np.ndarray, config: PowerSumsConfig
) -> list[tuple[float, ...]]:
  """The exponents of sums of three powers and a constant that leave next to nothing of y, the nearest first.

  Args:
    x: [N], above 0; y [N]; weights [N].
  """
  exponents = exponents_of(config)
  root = np.sqrt(weights / np.sum(weights))
  powers = root[:, None] * (x / np.exp(np.mean(np.log(x))))[:, None] ** np.array(exponents)
  target = root * (y / np.max(np.abs(y)))  # squares of less than 1e-154 are none
  first = _without(np.column_stack([powers, target]), root)
  if not np.all(np.isfinite(first)) or not np.any(first[:, -1]):
    return []
  size, left = float(first[:, -1] @ first[:, -1]), _Left(len(exponents))
  for i in range(len(exponents)):
    interruption.check()
    left.add(i, _without(first, first[:, i]))
  found = []
  for some in left.nearest(config.num_looked_at):
    design = np.column_stack([root, powers[:, some]])
    basis = np.linalg.qr(design)[0]
    rest = target - basis @ (basis.T @ target)
    rest -= basis @ (basis.T @ rest)  # the second time takes away what rounding left
    share = float(rest @ rest) / size
    if share <= config.exact:
      found.append((share, tuple(exponents[k] for k in some)))
  return [some for _, some in sorted(found)]


def _without(columns: np.ndarray, other: np.ndarray) -> np.ndarray:
  """Columns [N, P] without their part along another [N]."""
  unit = other / np.linalg.norm(other)
  return columns - unit[:, None] * (unit @ columns)


class _Left:
  """What sums of three of so many powers leave of a target."""

  def __init__(self, num: int):
    self._num, self._found = num, list[tuple[float, tuple[int, int, int]]]()

  def add(self, first: int, left: np.ndarray) -> None:
    """All triples of which this is the first; `left` [N, P + 1]: powers, and the target, without it."""
    later = np.arange(first + 1, self._num)
    sizes = np.linalg.norm(left[:, later], axis=0)
    units, target = left[:, later] / sizes, left[:, -1]
    products, along = units.T @ units, units.T @ target
    rest = np.maximum(1 - products**2, _LEAST_SHARE**2)
    explained = along[:, None] ** 2 + (along[None, :] - products * along[:, None]) ** 2 / rest
    rows, columns = np.triu_indices(len(later), 1)
    self._found += [(float(target @ target - explained[j, k]), (first, int(later[j]), int(later[k])))
                    for j, k in zip(rows, columns, strict=True)]

  def nearest(self, num: int) -> Iterator[list[int]]:
    """So many triples, those that leave least first."""
    for _, some in itertools.islice(sorted(self._found), num):
      yield list(some)
