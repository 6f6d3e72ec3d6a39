"""What is left of columns beside others."""

import numpy as np


def without(values: np.ndarray, basis: np.ndarray) -> np.ndarray:
  """Columns [N] or [N, M] less what an orthonormal basis [N, K] explains; twice, for what rounding leaves."""
  for _ in range(2):
    values = values - basis @ (basis.T @ values)
  return values
