"""Which groups of columns a target is a sum of functions of: each group a question of its own.

A smooth function through the rows (`gaussian_process`) that is a sum over groups predicts rows left out far better than
one of all columns, or as well, if the target is such a sum: there is less to learn. AI Feynman tests the same with a
neural network (Udrescu et al. 2020, sec. II.E).
"""

from collections.abc import Iterator
import itertools
import math
from typing import NamedTuple

import numpy as np

from symformer_jax.engine import gaussian_process, interruption
from symformer_jax.engine.config import PartitionsConfig, SurrogateConfig
from symformer_jax.engine.gaussian_process import Additive, Groups
from symformer_jax.sources.links import LINKS

# The function of y of which a sum is a product.
LOGARITHM = "exp"


class Partition(NamedTuple):
  """A function of y as a sum of functions of groups of columns.

  Attributes:
    link: the name of the function of y; sum: its parts.
    error: of rows left out, the median, in spreads of y.
  """

  link: str
  sum: Additive
  error: float


@np.errstate(all="ignore")  # what is not finite tells nothing
def find_noise(x: np.ndarray, y: np.ndarray, config: PartitionsConfig) -> float:
  """The root mean square of errors of y, as far as a smooth function of all columns tells; 0 of exact data, and of such
  of which it tells next to nothing.
  """
  some = np.random.default_rng(0).permutation(len(y))[: config.num_rows]
  whole = (tuple(range(x.shape[1])),)
  found = gaussian_process.fit_sum(x[some], y[some], whole, config.surrogate.with_steps(config.num_steps))
  error = math.inf if found is None else float(np.sqrt(np.mean(found.errors**2)))
  return error if config.least_noise * np.std(y) <= error <= config.most_noise * np.std(y) else 0.0


@np.errstate(all="ignore")  # what is not finite is no sum
def find_partition(
  x: np.ndarray, y: np.ndarray, link: str, config: PartitionsConfig, noise: float = 0.0
) -> Partition | None:
  """The finest that predicts rows left out as well as a coarser one does; None where there is none, and where all but
  one group are powers of columns, factors of y: those `reductions` takes away.

  Args:
    x: [N, D], y [N]: finite, not the same in all rows; link: a name in `LINKS`; noise: errors of y: rows of which a
      logarithm tells nothing under such are left out, and the others count by what an error makes of it.
  """
  if link == LOGARITHM and noise:
    is_clear = y > config.clear * noise
    if np.mean(is_clear) < config.most_clear:
      return None
    x, y = x[is_clear], y[is_clear]
  if x.shape[1] < 2 or not LINKS[link].is_defined(y):
    return None
  some = np.random.default_rng(0).permutation(len(y))[: config.num_rows]
  brief = config.surrogate.with_steps(config.num_steps)
  best = fit_partition(x[some], y[some], link, (tuple(range(x.shape[1])),), brief, noise=noise)
  while best is not None:
    tries = [fit_partition(x[some], y[some], link, groups, brief, noise=noise)
             for groups in _finer(best.sum.groups, config)]
    finer = min((each for each in tries if each is not None), key=lambda each: each.error, default=None)
    if finer is None or finer.error > min(max(config.most_worse * best.error, config.fine), config.most_error):
      break
    best = finer
  if best is None or len(best.sum.groups) == 1:
    return None
  found = fit_partition(x, y, link, best.sum.groups, config.surrogate, noise=noise)
  if found is None or found.error > config.most_error:
    return None
  errors = config.power_errors_under_noise if noise else config.power_errors
  most = errors * float(np.median(np.abs(found.sum.errors)))
  plain = [_is_power(x[:, group[0]], function(x[:, list(group)]), most) for group, function in
           zip(found.sum.groups, found.sum.functions, strict=True) if len(group) == 1 and link == LOGARITHM]
  return found if len(found.sum.groups) - sum(plain) > 1 else None


def _is_power(x: np.ndarray, logarithm: np.ndarray, most: float) -> bool:
  """Whether a function, of which the logarithm [N] is known, is within such a median error a multiple of a power of
  x [N].
  """
  if np.any(x <= 0):
    return False
  line = np.polyval(np.polyfit(np.log(x), logarithm, 1), np.log(x))
  return bool(np.median(np.abs(line - logarithm)) <= most)


def fit_partition(
  x: np.ndarray, y: np.ndarray, link: str, groups: Groups, config: SurrogateConfig, *, noise: float = 0.0
) -> Partition | None:
  """A function of y as a sum over these groups; None where nothing is known.

  Args:
    noise: errors of y: rows count by what such make of the function of y, taken where y is as large at the least.
  """
  interruption.check()
  target, steepness = LINKS[link].transform(y), LINKS[link].derivative(y)
  if not (np.all(np.isfinite(target)) and np.ptp(target) > 0):
    return None
  weights = None
  if noise:
    away = np.where(y < 0, -1, 1) * np.maximum(np.abs(y), noise)
    weights = LINKS[link].derivative(away) ** -2.0
  found = gaussian_process.fit_sum(x, target, groups, config, weights=weights)
  error = math.inf if found is None else gaussian_process.typical_error(found.errors / steepness, y)
  return Partition(link, found, error) if found is not None and math.isfinite(error) else None


def _finer(groups: Groups, config: PartitionsConfig) -> Iterator[Groups]:
  """The same with one group in two, of many columns one of them small."""
  for place, group in enumerate(groups):
    size = len(group)
    largest = size // 2 if size <= config.max_halved else config.max_apart
    for chosen in itertools.chain.from_iterable(itertools.combinations(group, few) for few in range(1, largest + 1)):
      if 2 * len(chosen) < size or group[0] in chosen:  # of two halves one
        others = tuple(column for column in group if column not in chosen)
        yield (*groups[:place], chosen, others, *groups[place + 1 :])
