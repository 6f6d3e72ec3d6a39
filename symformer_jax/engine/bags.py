"""Which rows of a large table the model is shown: several bags, for a network that takes a few hundred points."""

import numpy as np

from symformer_jax.engine.config import DEFAULT, ScalingConfig
from symformer_jax.engine.rows import Rows


def draw_bags(
  rows: Rows, fit_rows: Rows, *, seed: int, config: ScalingConfig = DEFAULT.scaling
) -> list[Rows]:
  """Bags of rows to be encoded, each of the size of `fit_rows`.

  Random rows show what is frequent; rows at the quantiles of a column show its whole range evenly in rank.
  Args:
    rows: all rows; fit_rows: those that constants are fitted to, the first bag; all of them where they are few.
    seed: of the further random bags.
    config: from how many rows on more bags are drawn.
  Returns:
    One bag when all rows fit into it; two, the second spread over the quantiles of y; from `many_rows` rows on four,
    with one spread over the quantiles of the first column and another random one.
  """
  num = len(fit_rows)
  if len(rows) <= num:
    return [fit_rows]
  drawn = [fit_rows, _spread(rows, rows.y, num)]
  if len(rows) >= config.many_rows:
    drawn += [_spread(rows, rows.x[:, 0], num), rows.sample(num, seed=seed + 1)]
  return drawn


def _spread(rows: Rows, column: np.ndarray, num: int) -> Rows:
  """So many rows at evenly spaced ranks of a column [N], the smallest and the largest among them."""
  order = np.argsort(column, kind="stable")
  index = np.sort(order[np.linspace(0, len(order) - 1, num).astype(int)])
  return Rows(rows.x[index], rows.y[index], rows.weights[index])
