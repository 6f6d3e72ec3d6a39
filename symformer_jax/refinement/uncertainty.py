"""Standard errors of fitted constants, in float64 on the host.

With the Jacobian J at the optimum and weights W the covariance is s^2 (J^T W J)^-1 (Seber and Wild 2003, ch. 5):
s^2 is the residual variance, or 1 where the standard deviations sigma of y were given and W = 1 / sigma^2.
"""

from typing import NamedTuple

import numpy as np

# Columns of unit length whose smallest singular value is below this cannot be told apart in float64: half of its
# digits are lost in the fit, the other half in the inverse.
MIN_SINGULAR_VALUE = 1e-10


class Uncertainty(NamedTuple):
  """What the data say about the constants.

  Attributes:
    covariance: [C, C], in the units of the constants; inf in the rows of constants that are not identifiable.
    stderr: square roots of its diagonal [C]; inf likewise; NaN without degrees of freedom.
    dof: number of used points minus number of constants.
    residual_std: standard deviation of the residual, in units of y (in sigmas, where sigma was given); NaN when
      dof is not positive.
    is_identifiable: whether the data determine each constant [C].
  """

  covariance: np.ndarray
  stderr: np.ndarray
  dof: int
  residual_std: float
  is_identifiable: np.ndarray

  @property
  def correlation(self) -> np.ndarray:
    """[C, C]; NaN where a constant is not identifiable."""
    with np.errstate(invalid="ignore"):
      return self.covariance / np.outer(self.stderr, self.stderr)


def estimate(
  jacobian: np.ndarray, residual: np.ndarray, weights: np.ndarray, *, has_sigma: bool = False
) -> Uncertainty:
  """Covariance and standard errors at an optimum.

  Args:
    jacobian: derivatives of the formula by the constants [N, C]; residual: f - y [N], in units of y.
    weights: [N], 0 for a point that does not count; 1 / sigma^2 where sigma is given.
    has_sigma: whether the weights are 1 / sigma^2 of known sigma, so that nothing is scaled by the residual.
  """
  with np.errstate(over="ignore", invalid="ignore"):  # what overflows says nothing
    scaled = jacobian * np.sqrt(weights)[:, None]
  is_used = (weights > 0) & np.isfinite(residual) & np.isfinite(scaled).all(axis=1)
  root, scaled = np.sqrt(weights[is_used]), scaled[is_used]
  num_constants = jacobian.shape[1]
  dof = int(is_used.sum()) - num_constants
  variance = float(np.sum((residual[is_used] * root) ** 2) / dof) if dof > 0 else np.nan
  norms = np.linalg.norm(scaled, axis=0)
  unit = scaled / np.where(norms > 0, norms, 1)
  # All right vectors are needed, of the left ones none: with them all, N by N, 30 000 points would fill 7 GB.
  _, singular, right = np.linalg.svd(unit, full_matrices=len(unit) < num_constants)
  singular = np.pad(singular, (0, num_constants - len(singular)))
  is_null = singular <= MIN_SINGULAR_VALUE
  # A constant with a share in an undetermined direction can move along it at no cost.
  is_identifiable = (norms > 0) & ~(np.abs(right[is_null]) > 1e-6).any(axis=0)
  inverse = right.T @ np.diag(np.where(is_null, 0, 1 / np.where(is_null, 1, singular) ** 2)) @ right
  scale = 1.0 if has_sigma else variance
  covariance = scale * inverse / np.outer(np.where(norms > 0, norms, 1), np.where(norms > 0, norms, 1))
  covariance[~is_identifiable, :] = covariance[:, ~is_identifiable] = np.inf
  return Uncertainty(covariance, np.sqrt(np.diag(covariance)), dof, float(np.sqrt(variance)), is_identifiable)
