"""What functions with constants between those of a grid leave of a target, to first order.

A function whose constant lies between two of a grid is nearly a sum of the two functions there (its tangent, or rather
its secant, in that constant). So the right functions leave little of a target together with the ones next to them,
however coarse the grid is, and wrong ones do not: of 2970 pairs of functions the right one of Prandtl's and Meyer's law
was the 275th by what it left itself, and the first by this.
"""

import numpy as np

# Length of what is new of a unit vector below which it is rounding.
DEPENDENT = 1e-7


def orthonormal(columns: np.ndarray) -> np.ndarray:
  """Orthonormal directions of each set of vectors [P, K, N], the first's first; zeros for those that depend on others
  or are not finite.
  """
  found = np.zeros_like(columns)
  for k in range(columns.shape[1]):
    new = np.where(np.all(np.isfinite(columns[:, k]), axis=1, keepdims=True), columns[:, k], 0.0)
    new = _of_length_one(new, 0.0)
    new = new - np.einsum("pkn,pk->pn", found[:, :k], np.einsum("pkn,pn->pk", found[:, :k], new))
    found[:, k] = _of_length_one(new, DEPENDENT)
  return found


def _of_length_one(vectors: np.ndarray, least: float) -> np.ndarray:
  sizes = np.linalg.norm(vectors, axis=1, keepdims=True)
  return np.where(sizes > least, vectors / np.where(sizes > least, sizes, 1.0), 0.0)


def left_of(goal: np.ndarray, directions: np.ndarray) -> np.ndarray:
  """Of a vector [N] the square of what each set of orthonormal directions [P, K, N] leaves [P]."""
  return goal @ goal - np.sum((directions @ goal) ** 2, axis=1)
