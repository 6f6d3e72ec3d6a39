"""The equation that a fraction of waves is, and how nearly some rows meet it.

With t a phase and m few factors, 1 the first of them,

  y*(d0 + d1*cos(t) + d2*sin(t)) = sum of m*(n0 + n1*cos(t) + n2*sin(t))

is linear in all coefficients and has no poles. A row counts less the farther out its y is, as 1/sqrt(1 + y**2): then
both sides are as good as bounded.
"""

from collections.abc import Sequence

import numpy as np
from scipy import linalg

from symformer_jax.engine.rows import Rows

# What is added to the diagonal of a Gram matrix, as a share of its trace, for those without full rank.
_RIDGE = 1e-12


class Equation:
  """The equation at some rows; y is centred, which changes the right side alone.

  Attributes:
    rows: these; y: relative to its typical distance from its median [N]; centre, size: that median and distance.
  """

  def __init__(self, rows: Rows):
    self.rows = rows
    self.centre = float(np.median(rows.y))
    away = rows.y - self.centre
    self.size = float(np.median(np.abs(away))) or float(np.max(np.abs(away)))
    self.y = away / self.size
    self._root = np.sqrt(rows.weights / rows.weights.sum()) / np.hypot(1, self.y)

  def left(self, phase: np.ndarray, factors: Sequence[np.ndarray]) -> np.ndarray:
    """The least share (squared) of the left side that the right side leaves, and those of two other combinations of the
    left side's columns [3], at phases [N] with factors [N] beside 1.
    """
    return _left(*self._sides(phase, factors))[0]

  def solve(self, phase: np.ndarray, factors: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The coefficients that leave least: of 1, cos and sin below [3], and above for 1 and each factor [1 + M, 3]."""
    left, right = self._sides(phase, factors)
    _, below = _left(left, right)
    above = self.size * linalg.lstsq(right, left @ below)[0].reshape(-1, 3)
    above[0] += self.centre * below
    return below, above

  def shares(self, phases: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """The least shares for phases [K, N], without a factor and with each of some [M, N]: [K, 1 + M].

    By products of the columns, of which two of 1, cos(t), sin(t) are sums of these, cos(2*t) and sin(2*t).
    """
    right, left = self._root, self._root * self.y
    others = right * factors
    weights = np.concatenate([[left**2, left * right, right**2], left * others, right * others, others**2])
    cos, sin = np.cos(phases), np.sin(phases)
    waves = [np.ones_like(phases), cos, sin, 2 * cos**2 - 1, 2 * sin * cos]
    grams = _grams(np.stack([wave @ weights.T for wave in waves], axis=-1))
    left, cross, plain = grams[:, 0], grams[:, 1], _regular(grams[:, 2])
    of_left, of_plain, own = np.split(grams[:, 3:], 3, axis=1)
    unit = np.linalg.inv(np.linalg.cholesky(_regular(left)))
    explained = cross @ np.linalg.solve(plain, cross)
    # What the plain columns leave of a factor's, and what that explains of what they leave of the left side.
    solved = np.linalg.solve(plain[:, None], of_plain)
    rest = of_left - cross[:, None] @ solved
    own = _regular(_regular(own) - of_plain @ solved)
    further = rest @ np.linalg.solve(own, np.swapaxes(rest, 2, 3))
    wholes = explained[:, None] + np.concatenate([np.zeros((len(phases), 1, 3, 3)), further], axis=1)
    most = np.linalg.eigvalsh(unit[:, None] @ wholes @ np.swapaxes(unit, 1, 2)[:, None])[..., -1]
    return np.maximum(1 - most, 0)

  def _sides(self, phase: np.ndarray, factors: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Columns of the left side [N, 3] and of the right side [N, 3*(1 + M)]."""
    waves = np.stack([np.ones(len(phase)), np.cos(phase), np.sin(phase)], axis=1) * self._root[:, None]
    return waves * self.y[:, None], np.concatenate([waves, *(waves * factor[:, None] for factor in factors)], axis=1)


def _grams(moments: np.ndarray) -> np.ndarray:
  """Gram matrices [..., 3, 3] of 1, cos(t), sin(t) by the moments of these, cos(2*t) and sin(2*t) [..., 5]."""
  one, cos, sin, cos2, sin2 = np.moveaxis(moments, -1, 0)
  entries = [[one, cos, sin], [cos, (one + cos2) / 2, sin2 / 2], [sin, sin2 / 2, (one - cos2) / 2]]
  return np.stack([np.stack(row, axis=-1) for row in entries], axis=-2)


def _regular(grams: np.ndarray) -> np.ndarray:
  """Gram matrices [..., 3, 3] of full rank."""
  return grams + _RIDGE * np.trace(grams, axis1=-2, axis2=-1)[..., None, None] * np.eye(3)


def _left(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Shares (squared) of combinations of the left side's columns that the right side leaves [3], the least first, and
  the coefficients of that one [3].
  """
  basis, triangle = np.linalg.qr(left)
  if not np.all(np.abs(np.diag(triangle)) > 0):
    return np.full(3, np.inf), np.zeros(3)
  explaining = np.linalg.qr(right)[0]
  rest = basis - explaining @ (explaining.T @ basis)
  _, sizes, vectors = np.linalg.svd(rest, full_matrices=False)
  return sizes[::-1] ** 2, linalg.solve_triangular(triangle, vectors[-1])
