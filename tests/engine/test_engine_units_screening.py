"""Which values a curve through the others has to meet, which columns are tried, and which fill the places left."""

import dataclasses

import numpy as np
import pytest

from symformer_jax.engine import screening
from symformer_jax.engine.config import DEFAULT, ScreeningConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language.rules import Rule

CONFIG = DEFAULT.screening


def test_each_value_but_two_at_each_end_is_left_out_once(monkeypatch):
  asked = []
  x = np.arange(20.0)

  def curve(some, values, **named):
    asked.append(some)
    return lambda at: 3 * at

  monkeypatch.setattr(screening, "AAA", curve)
  assert screening._is_function(x, 3 * x, CONFIG)
  left_out = [np.setdiff1d(x, some).tolist() for some in asked]
  assert left_out == [list(range(begin, 18, 3)) for begin in (2, 3, 4)]


def test_a_curve_with_a_pole_on_a_value_gives_no_warning():
  x = np.linspace(-1, 1, 41)
  assert screening._lie_on_curve(x, 1 / (x - 0.025), np.abs(x) + 1, 0, dataclasses.replace(CONFIG, error=1.0)) in (
    True, False)


@pytest.mark.parametrize(("change", "is_function"), [(2**-20, True), (2**-19, False)])
def test_equal_values_of_a_column_have_targets_that_differ_by_the_error_at_most(change, is_function, monkeypatch):
  monkeypatch.setattr(screening, "_lie_on_curve", lambda *given: True)
  x, y = np.append(np.arange(20.0), 19.0), np.append(np.resize([-1.0, 0.0, 1.0, 0.0], 20), 1.0)
  y[19], y[20] = 1.0, 1 + change  # the median of all is 0, and of what lies away from it 1 or less
  config = dataclasses.replace(CONFIG, error=2**-20)
  assert np.median(y) == 0 and screening._is_function(x, y, config) is is_function


def test_where_rows_are_too_few_to_tell_the_places_left_go_to_those_that_explain_most_by_their_own():
  """Copies of the first column that is chosen, of either sign, explain nothing beside it."""
  rng = np.random.default_rng(0)
  x = rng.normal(size=(12, 8))
  x[:, 6], x[:, 7] = x[:, 5], -x[:, 5]
  found = screening.choose_columns(Rows(x, x[:, 5], np.ones(12)), Rule(8), num_columns=5, degree=2)
  assert {5, 6, 7} <= set(found) and len(found) == 5


@pytest.mark.parametrize(("least", "is_sole"), [(0.0, True), (1e-3, False), (1.0, False)])
def test_no_other_column_varies_smoothly_along_the_only_one(least, is_sole, monkeypatch):
  rng = np.random.default_rng(0)
  x = np.column_stack([np.linspace(0, 3, 60), rng.normal(size=60)])
  roughness = screening._roughness
  monkeypatch.setattr(screening, "_roughness", lambda one, other: (
    1e-3 if other is not rows.y and other.tolist() == x[:, 1].tolist() else roughness(one, other)))
  rows = Rows(x, np.sin(x[:, 0]), np.ones(60))
  config = dataclasses.replace(CONFIG, least_rough=least)
  assert (screening.sole_column(rows, (0, 1), config) is not None) is is_sole


def test_of_columns_that_y_may_be_a_function_of_the_smoothest_is_tried_first():
  rng = np.random.default_rng(0)
  smooth = np.linspace(0, 3, 60)
  rough = smooth + 0.3 * rng.normal(size=60)
  rows = Rows(np.column_stack([rough, smooth]), np.sin(smooth), np.ones(60))
  config = dataclasses.replace(CONFIG, max_tried=1, least_rough=0.0)
  assert screening._roughness(rough, rows.y) <= CONFIG.most_rough
  assert screening.sole_column(rows, (0, 1), config) == 1


def lie_on_curve(monkeypatch, errors):
  """Of eleven values four of which are left out, which are so far from the curve."""
  config = dataclasses.replace(CONFIG, error=2**-20, largest_error=2**-10, share=0.75)

  def curve(*given, **named):
    if errors is None:
      raise ValueError("of many equal values")
    return lambda at: 3 * at + errors

  monkeypatch.setattr(screening, "AAA", curve)
  x = np.arange(14.0)
  return screening._lie_on_curve(x, 3 * x, np.ones(14), 0, config)


def test_three_of_four_values_are_met_to_the_error_and_the_other_to_the_largest(monkeypatch):
  small, large = 2**-20, 2**-10
  assert lie_on_curve(monkeypatch, np.array([small, -small, small, large]))
  assert not lie_on_curve(monkeypatch, np.array([small, -small, small, 1.001 * large]))
  assert not lie_on_curve(monkeypatch, np.array([1.001 * small, small, small, large]))
  assert not lie_on_curve(monkeypatch, None)


# --- what the default config says ------------------------------------------------------------------------------------


def test_the_part_of_the_default_is_that_of_no_arguments():
  assert ScreeningConfig() == CONFIG


@pytest.mark.parametrize(("most", "largest", "does_lie"), [
  (0.99e-6, 0.99e-6, True), (1.01e-6, 1.01e-6, False), (0.99e-6, 0.99e-4, True), (0.99e-6, 1.01e-4, False)])
def test_values_lie_within_a_millionth_of_a_curve_of_forty_terms_and_all_within_a_ten_thousandth(
    most, largest, does_lie, monkeypatch):
  asked = []
  x = np.arange(400.0)

  def curve(some, values, *, max_terms, **named):
    asked.append(max_terms)
    return lambda at: np.where(at == 200, largest, most)

  monkeypatch.setattr(screening, "AAA", curve)
  assert screening._lie_on_curve(x, np.zeros(400), np.ones(400), 0, CONFIG) is does_lie and asked == [40]


@pytest.mark.parametrize(("rough", "num_tried"), [(0.5, 6), (0.501, 0)])
def test_the_six_smoothest_columns_are_tried_whose_ranks_differ_by_half(rough, num_tried, monkeypatch):
  asked = []
  monkeypatch.setattr(screening, "_roughness", lambda x, y: rough)
  monkeypatch.setattr(screening, "_is_function", lambda x, y, config: bool(asked.append(x[0])))
  x = np.random.default_rng(0).normal(size=(40, 9))
  assert screening.sole_column(Rows(x, x[:, 0], np.ones(40)), range(9), CONFIG) is None
  assert asked == x[0, :num_tried].tolist()


@pytest.mark.parametrize(("rough", "is_sole"), [(0.601, True), (0.6, False)])
def test_another_column_goes_with_the_only_one_whose_ranks_differ_by_six_tenths(rough, is_sole, monkeypatch):
  x = np.random.default_rng(0).normal(size=(40, 2))
  rows = Rows(x, x[:, 0], np.ones(40))
  monkeypatch.setattr(screening, "_roughness", lambda x, y: 0.1 if y is rows.y else rough)
  monkeypatch.setattr(screening, "_is_function", lambda one, y, config: one[0] == x[0, 0])
  assert (screening.sole_column(rows, (0, 1), CONFIG) is not None) is is_sole


@pytest.mark.parametrize(("num_values", "is_asked"), [(14, True), (13, False)])
def test_of_fewer_than_fourteen_values_no_column_is_the_only_one(num_values, is_asked, monkeypatch):
  asked = []
  monkeypatch.setattr(screening, "_roughness", lambda x, y: asked.append(1) or 9.0)
  x = np.random.default_rng(0).normal(size=(40, 2))
  rows = Rows(x, np.resize(np.arange(float(num_values)), 40), np.ones(40))
  assert screening.sole_column(rows, (0, 1), CONFIG) is None and bool(asked) is is_asked
