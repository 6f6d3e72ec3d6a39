"""What the default config makes of the residuals of a fit: from where on they ask for another loss."""

import numpy as np
import pytest
from small_data import parse

from symformer_jax.engine.config import DEFAULT, HintsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.selection import residuals
from symformer_jax.selection.residuals import NORMAL, Residuals

CONFIG = DEFAULT.hints


def test_the_part_of_the_default_is_that_of_no_arguments():
  assert HintsConfig() == CONFIG


def line(num_rows):
  return np.arange(float(num_rows))[:, None]


def looked_at(monkeypatch, num_rows, error):
  """What is seen of a line with errors that are so large a share of its spread."""
  monkeypatch.setattr(residuals, "count_far", lambda *given, **named: 7)
  monkeypatch.setattr(residuals, "are_growing", lambda *given, **named: False)
  monkeypatch.setattr(residuals, "missed_decades", lambda *given, **named: 0.0)
  x = line(num_rows)
  y = x[:, 0] + error * np.std(x) * np.resize([1.0, -1.0], num_rows)
  return residuals._look(parse("x"), Rows(x, y, np.ones(num_rows)), CONFIG)


@pytest.mark.parametrize(("num_rows", "error", "num_far"), [
  (20, 0.1, 7), (19, 0.1, 0), (20, 3.1e-4, 7), (20, 2.9e-4, 0)])
def test_twenty_rows_with_errors_of_more_than_a_table_of_four_digits_are_looked_at(
    num_rows, error, num_far, monkeypatch):
  assert looked_at(monkeypatch, num_rows, error) == Residuals(num_rows, num_far)


def test_of_many_rows_4096_are_looked_at(monkeypatch):
  monkeypatch.setattr(residuals, "_look", lambda node, rows, config: Residuals(len(rows), 1))
  x = line(5000)
  assert residuals.look([parse("x")], Rows(x, x[:, 0], np.ones(5000))).num_rows == 4096


def errors_with(*far, num_rows=60):
  """Errors of a standard deviation of 1, by their median, every third of which, from the second on, is another."""
  errors = np.resize([1.0, -1.0], num_rows) / NORMAL
  errors[1 : 1 + 3 * len(far) : 3] = far
  return errors


@pytest.mark.parametrize(("far", "num_far"), [
  ([6.1], 1), ([5.9], 0), ([-6.1, 6.1], 2), ([9.0, -9.0] * 6, 12), ([9.0, -9.0] * 6 + [9.0], 0)])
def test_a_fifth_of_the_rows_may_lie_more_than_six_standard_deviations_off(far, num_far):
  errors = errors_with(*far)
  assert residuals.count_far(errors, np.ones(60), line(60)) == num_far


@pytest.mark.parametrize(("num_rows", "size"), [(90, 10), (150, 15)])
def test_errors_are_compared_among_ten_rows_of_like_predictions_and_in_ten_parts(num_rows, size):
  level = np.arange(1.0, num_rows + 1)
  spread = residuals._local_spread(level, level, CONFIG)
  assert np.sum(spread == spread.max()) == size


@pytest.mark.parametrize(("beside", "are_together"), [((2.1, 2.1), True), ((2.1, 1.9), False), ((1.9, 1.9), False),
                                                      ((-2.1, -2.1), False)])
def test_rows_of_a_peak_have_one_beside_them_that_lies_two_standard_deviations_off(beside, are_together):
  distances = np.zeros(40)
  distances[[10, 11]], distances[[30, 31]] = (9.0, beside[0]), (9.0, beside[1])
  assert residuals._are_together(distances, line(40), CONFIG) is are_together


@pytest.mark.parametrize(("first", "second", "are_growing"), [
  (2.34, 3.72, True), (2.31, 9.0, False), (9.0, 2.31, False), (3.0, 3.03, False), (3.0, 3.06, True)])
def test_errors_grow_where_that_is_chance_in_one_of_a_hundred_cases_and_of_ten_thousand(
    first, second, are_growing, monkeypatch):
  found = iter([first, second])
  monkeypatch.setattr(residuals, "_correlation", lambda *given: next(found))
  assert residuals.are_growing(np.ones(60), np.geomspace(1, 99, 60), line(60)) is are_growing


@pytest.mark.parametrize(("high", "are_growing"), [(10.1, True), (9.9, False)])
def test_predictions_grow_tenfold_without_a_twentieth_of_them_at_each_end(high, are_growing, monkeypatch):
  monkeypatch.setattr(residuals, "_correlation", lambda *given: 9.0)
  values = np.full(101, 5.0)
  values[:6], values[95:], values[[0, 100]] = 1.0, high, (1e-3, 1e3)
  assert residuals.are_growing(np.ones(101), values, line(101)) is are_growing


def decades_of(errors, small, *, wide=2000.0, num_small=30):
  """Those that y spans of which so many values are small, and missed by such errors; else 0."""
  y = np.append(np.full(num_small, small), np.full(30, small * wide))
  every = np.append(np.resize(errors, num_small), np.zeros(30))
  return residuals.missed_decades(every, y, line(len(y)))


def test_small_values_are_missed_where_a_formula_says_no_more_of_them_than_nothing():
  assert decades_of(1.01, 1.0) == pytest.approx(np.log10(2000)) and decades_of(0.99, 1.0) == 0
  assert decades_of(9.0, 1.0, wide=1001) > 0 and decades_of(9.0, 1.0, wide=999) == 0
  assert decades_of(9.0, 1.0, num_small=10) > 0 and decades_of(9.0, 1.0, num_small=9) == 0


@pytest.mark.parametrize(("times", "are_missed"), [(3.05, True), (2.95, False)])
def test_small_values_are_missed_by_three_times_what_neighbouring_ones_differ_by(times, are_missed):
  off = np.sqrt(2) / (2 * NORMAL * times)  # neighbours differ by twice that
  assert bool(decades_of([1 + off, 1 - off], 0.1)) is are_missed
