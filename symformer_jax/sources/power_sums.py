"""Sums of three powers of one column beside a constant, exponents halves and thirds: `x**3 - 2*x**(7/3) + x**(5/3)`.

Of some thirty powers all triples are few thousand; how much each explains follows from the products of columns in twos
(as in orthogonal least squares: Chen, Billings and Luo 1989), and what comes nearest is solved. For exact data alone:
on a narrow range some triple comes to a millionth of whatever is smooth.
"""

from collections.abc import Iterator
import heapq
import itertools

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import PowerSumsConfig
from symformer_jax.sources.projections import without

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
) -> tuple[float, ...]:
  """The exponents of the sum of three powers and a constant that leaves least of y; none where that is not next to
  nothing.

  Args:
    x: [N], above 0; y [N]; weights [N].
  """
  exponents = exponents_of(config)
  root = np.sqrt(weights / np.sum(weights))
  powers = root[:, None] * (x / np.exp(np.mean(np.log(x))))[:, None] ** np.array(exponents)
  target = root * (y / np.max(np.abs(y)))  # squares of less than 1e-154 are none
  left = without(np.column_stack([powers, target]), root[:, None])
  if not np.all(np.isfinite(left)) or not np.any(left[:, -1]):
    return ()
  shares = []
  for _, triple in heapq.nsmallest(config.num_looked_at, _triples(left)):
    rest = without(target, np.linalg.qr(np.column_stack([root, powers[:, triple]]))[0])
    shares.append((float(rest @ rest), triple))
  least, best = min(shares)
  return tuple(exponents[k] for k in best) if least <= config.exact * float(left[:, -1] @ left[:, -1]) else ()


def _triples(columns: np.ndarray) -> Iterator[tuple[float, list[int]]]:
  """What is left of the last column [N, P + 1] beside each three of the others, and their places."""
  num = columns.shape[1] - 1
  for first in range(num - NUM_POWERS + 1):
    interruption.check()
    left = without(columns[:, first + 1 :], columns[:, [first]] / np.linalg.norm(columns[:, first]))
    units, target = left[:, :-1] / np.linalg.norm(left[:, :-1], axis=0), left[:, -1]
    products, along = units.T @ units, units.T @ target
    further = (along - products * along[:, None]) ** 2 / np.maximum(1 - products**2, _LEAST_SHARE**2)
    rest = target @ target - along[:, None] ** 2 - further
    for second, third in itertools.combinations(range(units.shape[1]), 2):
      yield float(rest[second, third]), [first, first + 1 + second, first + 1 + third]
