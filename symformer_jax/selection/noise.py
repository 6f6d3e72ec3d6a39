"""Whether a longer formula is more than the best of many that would meet noise as well."""

from collections.abc import Iterable
import math

import numpy as np

from symformer_jax.engine.config import DEFAULT, ChoiceConfig
from symformer_jax.engine.rows import Rows


def log_chance(*, share: float, num_points: float, num_constants: int, base_constants: int = 1) -> float:
  """Natural logarithm of the chance that a formula leaves so small a share of the squares that a simpler one leaves.

  Where what the simpler one leaves is noise, the share left by a linear formula of p constants that extends one of p0
  follows Beta((N - p)/2, (p - p0)/2): the F test. Formulas that are not linear, or extend nothing, are taken as if
  they were; one without further constants, as `y = x` beside the mean, is counted with one more: who chose the units
  gave it.
  """
  constants = max(num_constants, base_constants + 1)
  if num_points <= constants:
    return 0.0
  from scipy import special  # with JAX; imported late, for commands that only print

  share = min(max(share, 0.0), 1.0)
  a, b = (num_points - constants) / 2, (constants - base_constants) / 2
  chance = float(special.betainc(a, b, share))
  if chance > 0:
    return math.log(chance)
  # Beyond what a double holds: the leading term, share**a / (a B(a, b)).
  return a * math.log(max(share, np.finfo(float).tiny)) - math.log(a) - float(special.betaln(a, b))


def num_points_of_line(rows: Rows, columns: Iterable[int], *, num_rows: int) -> float:
  """How many of `num_rows` rows the F test of a straight line is to count where nothing but a mean is left without it.

  Errors that are not normal hardly change the test, unless the columns are as uneven: then it is as with this share
  of the rows. The correction by the product of both excess kurtoses is Box and Watson's (1962), here with the largest
  of the columns'; what would count more rows is left out.
  Args:
    rows: all, or a sample of them.
    columns: those of the line.
  """
  uneven = max((_excess_kurtosis(rows.x[:, column], rows.weights) for column in columns), default=0.0)
  product = max(uneven, 0.0) * max(_excess_kurtosis(rows.y, rows.weights), 0.0)
  return num_rows / (1 + product / (2 * num_rows))


def _excess_kurtosis(values: np.ndarray, weights: np.ndarray) -> float:
  """Of values [N]: 0 of normal ones, and of equal ones."""
  scale = float(np.ptp(values)) or 1.0
  squares = ((values - np.average(values, weights=weights)) / scale) ** 2
  variance = float(np.average(squares, weights=weights))
  return float(np.average(squares**2, weights=weights)) / variance**2 - 3 if variance else 0.0


def is_beyond_chance(
  *, share: float, num_points: float, num_constants: int, further_nodes: int, num_columns: int,
  base_constants: int = 1, line_columns: int = 0, is_base_constant: bool = True, log_frequencies: float = 0.0,
  config: ChoiceConfig = DEFAULT.choice,
) -> bool:
  """Whether what a simpler formula leaves, were it noise, would be met so well in at most `noise_share` of data sets.

  The chance of one formula, times how many were looked at: the straight lines of `line_columns` of the columns, where
  it is one; of others e**`chance_nats` for each further node, times the frequencies that its waves were chosen from,
  e**`log_frequencies`; or e**`further_nats` where the simpler one is no mere constant, which were found with waves
  among what is added. Both together use up the share (Bonferroni).
  """
  chance = log_chance(share=share, num_points=num_points, num_constants=num_constants, base_constants=base_constants)
  if line_columns:
    return chance + math.log(math.comb(num_columns, line_columns)) <= math.log(config.line_share)
  tries = config.further_nats * further_nodes
  if is_base_constant:
    tries = config.chance_nats * further_nodes + log_frequencies
  return chance + tries + math.log(num_columns) <= math.log(config.noise_share - config.line_share)
