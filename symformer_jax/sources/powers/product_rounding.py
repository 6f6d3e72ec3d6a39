"""Exponents of product units as plain numbers: one after the other, as long as nothing is lost by it."""

from collections.abc import Sequence

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import ProductUnitsConfig
from symformer_jax.sources.powers import product_fits
from symformer_jax.sources.powers.product_fits import Fits, Layout, Starts, Table

# A curvature that is singular by rounding is made regular by this share of its largest.
_RIDGE = 1e-9


class Rounding:
  """Fits on their way to plain exponents, all at once.

  Args:
    table, starts, layout: as they were fitted; fits: how these ended.
    deviations: of the columns' logarithms [M]; is_whole: whether a column has whole exponents alone [M].
    multiples: what exponents are multiples of, the first first.
  Attributes:
    fits: what they are now.
  """

  def __init__(
    self, table: Table, starts: Starts, fits: Fits, layout: Layout, deviations: np.ndarray, is_whole: np.ndarray,
    multiples: Sequence[float], config: ProductUnitsConfig
  ):
    self._table, self._starts, self._layout, self._config = table, starts, layout, config
    self._multiples = multiples
    self.fits = fits
    width = len(deviations)
    begins = [each.start for outer, inner in layout.places(width) for each in (outer, *inner)]
    self._places = (np.array(begins)[:, None] + np.arange(width)).ravel()
    self._deviations = np.tile(deviations, len(begins))
    self._parity = starts.parity.reshape(len(starts.parity), -1)
    self._is_whole = np.tile(is_whole, len(begins))
    # Others are undefined, or none that the rules allow.
    self._has_to_be_plain = self._is_whole | all(float(multiple).is_integer() for multiple in multiples)
    self._freedom = np.maximum(len(table.logs) - np.sum(starts.is_free, axis=1), 1)

  def run(self) -> Fits:
    """All exponents at once; where that costs too much, one after the other, the surest first."""
    for i, multiple in enumerate(self._multiples):
      waiting = self._starts.is_free[:, self._places]
      if i:
        waiting &= ~self._is_whole
      waiting &= ~self._fix(waiting, self._plain(multiple))[:, None]
      while True:
        interruption.check()
        goal = self._plain(multiple)
        fixed = self._surest(goal, waiting)
        if not fixed.any():
          break
        self._fix(fixed, goal)
        waiting &= ~fixed
    self._fix(self._starts.is_free[:, self._places] & self._has_to_be_plain, self._plain(self._multiples[0]), np.inf)
    return self.fits

  @property
  def is_plain(self) -> np.ndarray:
    """Whether all exponents of a fit are plain [C]."""
    return ~np.any(self._starts.is_free[:, self._places], axis=1)

  def _plain(self, multiple: float) -> np.ndarray:
    """The nearest plain exponents [C, E]: of columns of both signs whole ones, even or odd as the sign counts."""
    powers = self.fits.parameters[:, self._places] / self._deviations
    whole = 2 * np.round((powers - self._parity) / 2) + self._parity
    found = np.where(self._is_whole, whole, multiple * np.round(powers / multiple))
    return np.clip(found, -self._config.largest, self._config.largest)

  def _surest(self, goal: np.ndarray, waiting: np.ndarray) -> np.ndarray:
    """Of each fit the exponent that costs least [C, E]; none where none waits that may cost little enough."""
    costs = np.where(waiting, self._costs(goal), np.inf)
    allowed = np.maximum(self._config.most_growth * self.fits.left / self._freedom, self._config.exact)
    first = np.arange(len(self._places)) == np.argmin(costs, axis=1)[:, None]
    return first & (costs <= self._config.worth_trying * allowed[:, None])

  def _costs(self, goal: np.ndarray) -> np.ndarray:
    """What is left more where one exponent is set and the others are fitted again [C, E], by the curvature."""
    away = self.fits.parameters[:, self._places] - goal * self._deviations
    curvature, is_free = self.fits.curvature, self._starts.is_free
    largest = np.max(np.einsum("cii->ci", curvature), axis=1, keepdims=True)
    ridge = np.where(is_free, _RIDGE * largest + np.finfo(np.float32).tiny, 1.0)
    inverse = np.linalg.inv(curvature + ridge[:, :, None] * np.eye(curvature.shape[1]))
    return away**2 / np.maximum(np.einsum("cii->ci", inverse)[:, self._places], np.finfo(np.float32).tiny)

  def _fix(self, which: np.ndarray, goal: np.ndarray, most_left: float = 0.0) -> np.ndarray:
    """Sets exponents [C, E] and fits the rest; fits that lose too much, and leave more than so much, stay as they were.
    Which did not [C].
    """
    config, before, asked = self._config, self.fits, np.asarray(which.any(axis=1))
    if not asked.any():
      return asked
    parameters, is_free = before.parameters.copy(), self._starts.is_free.copy()
    parameters[:, self._places] = np.where(which, goal * self._deviations, parameters[:, self._places])
    is_free[:, self._places] &= ~which
    starts = Starts(*(each[asked] for each in self._starts._replace(parameters=parameters, is_free=is_free)))
    made = product_fits.fit(self._table, starts, self._layout, num_steps=config.num_rounding_steps)
    after = Fits(*(each.copy() for each in before))
    for each, new in zip(after, made, strict=True):
      each[asked] = new
    most = before.left * (1 + config.most_growth * np.sum(which, axis=1) / self._freedom)
    is_kept = asked & (after.left <= np.maximum(most, max(config.exact, most_left)))
    self.fits = Fits(*(np.where(is_kept.reshape(-1, *[1] * (new.ndim - 1)), new, old)
                       for new, old in zip(after, before, strict=True)))
    self._starts = self._starts._replace(is_free=np.where(is_kept[:, None], is_free, self._starts.is_free))
    return is_kept
