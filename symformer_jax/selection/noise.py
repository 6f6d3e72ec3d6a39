"""Whether a formula is more than the best of many that noise would be met by."""

import math

import numpy as np

from symformer_jax.selection.config import DEFAULT, SelectionConfig


def log_chance(*, mse: float, variance: float, num_points: float, num_constants: int) -> float:
  """Natural logarithm of the chance that one formula explains so much of pure noise.

  Of noise, a linear formula of p constants leaves a share 1 - R2 that follows Beta((N - p)/2, (p - 1)/2): the F test.
  Formulas that are not linear in their constants are taken as if they were. One without a constant, as `y = x`, is
  counted with two: its scale and its place were given by who chose the units.
  """
  constants = max(num_constants, 2)
  if num_points <= constants or variance <= 0:
    return 0.0
  from scipy import special  # with JAX; imported late, for commands that only print

  share = min(max(mse / variance, 0.0), 1.0)
  a, b = (num_points - constants) / 2, (constants - 1) / 2
  chance = float(special.betainc(a, b, share))
  if chance > 0:
    return math.log(chance)
  # Beyond what a double holds: the leading term, share**a / (a B(a, b)).
  return a * math.log(max(share, np.finfo(float).tiny)) - math.log(a) - float(special.betaln(a, b))


def is_beyond_chance(
  *, mse: float, variance: float, num_points: float, num_constants: int, complexity: int, num_columns: int,
  line_columns: int = 0, config: SelectionConfig = DEFAULT,
) -> bool:
  """Whether noise would be met so well by any formula looked at in fewer than `noise_share` of data sets.

  The chance of one formula, times how many were looked at: the straight lines of `line_columns` of the columns, where
  it is one; of others e**`nats_per_node` for each node. Both together use up the share (Bonferroni).
  """
  chance = log_chance(mse=mse, variance=variance, num_points=num_points, num_constants=num_constants)
  if line_columns:
    return chance + math.log(math.comb(num_columns, line_columns)) <= math.log(config.line_share)
  tries = config.nats_per_node * (complexity - 1) + math.log(num_columns)
  return chance + tries <= math.log(config.noise_share - config.line_share)
