"""Residuals that ask for another loss, limit by limit: rows that lie far off, errors that grow."""

import dataclasses
import warnings

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.selection import residuals
from symformer_jax.selection.residuals import NORMAL

CONFIG = dataclasses.replace(DEFAULT.hints, far=4.0, off=2.0)
# Errors of one size, of which this is the standard deviation by their median.
SCALE = NORMAL * 1.0


def line(num_rows):
  return np.arange(float(num_rows))[:, None]


def num_far_of(far, *, num_rows=60, values=0.0, config=CONFIG, size=1.0, **given):
  """Of rows with errors of one size that lie off by turns, one of which is off by so many standard deviations."""
  errors = size * np.resize([1.0, -1.0], num_rows)
  errors[8] = far * size * SCALE
  return residuals.count_far(errors, np.broadcast_to(values, num_rows), line(num_rows), config=config, **given)


def test_a_row_lies_far_off_beyond_a_number_of_standard_deviations():
  assert num_far_of(4.0) == 0 and num_far_of(4.001) == 1 and num_far_of(-4.001) == 1
  assert num_far_of(4.001, size=1e-9) == 1 == num_far_of(4.001, size=1e9)


def test_fitted_constants_make_errors_smaller():
  larger = 4 * np.sqrt(60 / 45)
  assert num_far_of(0.99 * larger, num_constants=15) == 0 and num_far_of(1.01 * larger, num_constants=15) == 1
  most = 4 * np.sqrt(20)  # of as many as there are rows, one is counted less
  assert num_far_of(0.99 * most, num_rows=20, num_constants=20) == 0
  assert num_far_of(1.01 * most, num_rows=20, num_constants=20) == 1


def test_a_standard_deviation_is_no_less_than_a_share_of_what_y_varies_by_from_its_median():
  config = dataclasses.replace(CONFIG, exact=0.1)
  assert num_far_of(4.5, values=100.0, config=config) == 1  # whatever is added to y
  values = np.resize([100.0, 100.0, -100.0, -100.0], 60)
  wide = NORMAL * 100.0 * 0.1 / SCALE  # standard deviations of the errors that a tenth of that is
  assert num_far_of(3.8 * wide, values=values, config=config) == 0
  assert num_far_of(4.2 * wide, values=values, config=config) == 1


def test_rows_of_like_predictions_are_compared_where_predictions_differ():
  size = np.arange(1.0, 41)
  for level, is_one in ((np.ones(40), True), (np.linspace(0, 0.5, 40), False), (np.linspace(0, 50, 40), False)):
    spread = residuals._local_spread(size, level, CONFIG)
    assert bool(np.ptp(spread) == 0) is is_one and spread[0] == NORMAL * 20.5
  few = residuals._local_spread(size[:15], size[:15], CONFIG)  # one part of ten rows and more
  np.testing.assert_array_equal(few, np.full(15, NORMAL * 8))
  parts = residuals._local_spread(size, size, CONFIG)
  np.testing.assert_allclose(parts, NORMAL * np.repeat([20.5, 20.5, 25.5, 35.5], 10))


@pytest.mark.parametrize(("far", "beside", "are_together"), [
  (4.001, 2.001, True), (4.0, 2.001, False), (4.001, 2.0, False), (4.001, -2.001, False)])
def test_rows_of_a_peak_lie_off_together(far, beside, are_together):
  distances = np.zeros(40)
  distances[[10, 11, 30, 31]] = far, beside, far, beside
  with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # where none is far there is no share of them
    assert residuals._are_together(distances, line(40), CONFIG) is are_together


def grows(monkeypatch, first, second, *, low=1.0, high=99.0):
  found, values = iter([first, second]), np.full(101, 5.0)
  values[:6], values[95:] = low, high
  monkeypatch.setattr(residuals, "_correlation", lambda *given: next(found))
  return residuals.are_growing(np.ones(101), values, line(101), config=CONFIG)


def test_errors_grow_beyond_both_chances_and_where_predictions_go_over_a_decade(monkeypatch):
  least, more = residuals._deviations(CONFIG.chance_beside), residuals._deviations(CONFIG.chance)
  assert not grows(monkeypatch, least, 99.0) and grows(monkeypatch, least + 1e-9, 99.0)
  assert not grows(monkeypatch, 0.49 * (least + more), 0.49 * (least + more))
  assert grows(monkeypatch, 0.51 * (least + more), 0.51 * (least + more))
  assert grows(monkeypatch, 9.0, 9.0, high=10.0) and not grows(monkeypatch, 9.0, 9.0, high=9.99)
