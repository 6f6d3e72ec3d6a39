"""What formulas do between rows, value by value: gaps that close, and limits that belong to the range of the data."""

import dataclasses

from hand_made_rows import parse, rows_of
import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.selection import between_rows, soundness

CONFIG = DEFAULT.choice


def segments_of(x, y, *, leap=0.0):
  return between_rows.make_segments(rows_of(x, y), config=dataclasses.replace(CONFIG, leap=leap, points_between=1))


def test_sums_of_what_is_beyond_all_numbers_hug_no_row():
  node = parse("exp(900*x) - exp(901*x)")
  assert not soundness._cancels(node, np.array([[1.0], [2.0]]), CONFIG)
  assert soundness._cancels(parse("x - 1.0000000001"), np.array([[1.0], [2.0]]), CONFIG)


def test_the_ends_of_the_range_of_the_data_belong_to_it():
  segments = segments_of([1.0, 2.0], [1.0, 2.0])
  which, shares = np.array([0]), np.array([[0.0, 0.5, 1.0]])
  assert (segments.low, segments.high) == (1, 2)
  for text, is_out in (("x", False), ("x + 0.001", True), ("x - 0.001", True), ("log(x - 1)", True)):
    assert soundness._is_out(parse(text), segments, which, shares).tolist() == [is_out]
  assert soundness.find_fault(parse("x"), segments) == ""


@pytest.mark.parametrize(("text", "value"), [("(exp(x) - 1)/x", 1.0), ("sqrt(x**2)/x", np.nan)])
def test_where_a_formula_is_nothing_over_nothing_what_lies_beside_it_stands_for_it(text, value):
  """Of y between -2 and 2; a step from -1 to 1 does not close."""
  segments = segments_of([-1.0, 1.0], [-2.0, 2.0])
  values = between_rows.values_at(parse(text), segments.points)
  assert np.isnan(values).tolist() == [[False, True, False]]
  found = soundness._without_gaps(values, parse(text), segments, np.array([0]), segments.shares)
  np.testing.assert_allclose(found[0, 1], value, rtol=1e-4)
  np.testing.assert_array_equal(found[0, ::2], values[0, ::2])


@pytest.mark.parametrize(("share", "times", "is_supported"), [(0.5, 1.9, True), (0.49, 1.9, False), (0.5, 2.1, False)])
def test_just_the_share_of_rows_beside_poles_may_be_missed_by_twice_their_room(share, times, is_supported, monkeypatch):
  y = np.array([1.0, -1.0, 2.0, -2.0, 1.0, -1.0])
  rows = rows_of(np.arange(1.0, 7), y)
  segments = between_rows.make_segments(rows)
  monkeypatch.setattr(soundness, "has_needle", lambda *given: False)
  monkeypatch.setattr(soundness, "find_poles", lambda *given: np.array([2]))  # between the third row and the fourth
  monkeypatch.setattr(soundness, "values_at", lambda *given: np.zeros(segments.points.shape[:2]))
  monkeypatch.setattr(soundness, "_with_poles", lambda *given: [(parse("x"), parse("x"), np.array([2]))])
  monkeypatch.setattr(soundness, "_is_told", lambda *given: True)
  monkeypatch.setattr(soundness.rounding, "refit_constants", lambda node, *data: node)
  config = dataclasses.replace(CONFIG, pole_misses=share, pole_share=0.1)
  missed = times * 0.1 * np.abs(y[2] - np.median(y))
  monkeypatch.setattr(soundness.scoring, "evaluate", lambda node, x: y + np.array([0, 0, missed, 0, 0, 0]))
  assert bool(soundness.is_supported(parse("1/x"), rows, segments, config=config)) is is_supported


def test_beside_a_pole_between_rows_far_apart_are_the_rows_next_to_it_on_either_side():
  x = np.column_stack([[-2.5, -1.5, -0.5, 0.0, 0.5, 1.5, 2.5], np.ones(7)])
  segments = between_rows.make_segments(rows_of(x, x[:, 0]))
  segments = dataclasses.replace(segments, is_near=np.zeros(len(segments.begin), bool))
  config = dataclasses.replace(CONFIG, pole_rows=2)
  found = soundness._are_beside(rows_of(x, x[:, 0]), segments, np.array([0]), [parse("x")], config)
  assert x[found, 0].tolist() == [-1.5, -0.5, 0.5, 1.5]  # on a row there is no side


@pytest.mark.parametrize(("beside", "room", "is_told"), [
  ([1.0, -1.0], 0.1, True), ([4.0], 0.1, False), ([-4.0], 0.1, False), ([1.0, -1.0], 0.5, False),
  ([1.0, -1.0], 0.49, True)])
def test_rows_tell_of_a_pole_that_rise_beyond_what_half_of_them_do(beside, room, is_told):
  x = np.array([-4.0, -2, -1, 1, 2, 4])
  config = dataclasses.replace(CONFIG, pole_rows=2)
  node = parse("1/x")
  assert soundness._is_told(node, node, rows_of(x, 1 / x), np.isin(x, beside), np.full(6, room), config) is is_told


def test_waves_turn_as_far_between_rows_as_the_config_says(monkeypatch):
  monkeypatch.setattr(soundness.frequencies, "is_alias", lambda node, segments, *, config: config is CONFIG)
  assert soundness.find_fault(parse("sin(x)"), segments_of([1.0, 2.0], [1.0, 2.0]), config=CONFIG) == soundness.ALIAS


@pytest.mark.parametrize(("text", "leaps"), [
  ("x + z", False), ("x + z + 0.001", True), ("x + z - 2.5", False), ("x + z - 2.501", True)])
def test_in_corners_of_the_box_formulas_leave_the_range_of_y_beyond_some_times_that(text, leaps):
  x = np.array([[0.0, 0], [1, 1], [0, 1], [1, 0]])
  rows = rows_of(x, [-1.0, 0.0, 0.5, 0.25])  # with as much again -2.5 to 2
  assert soundness.leaps_in_box(parse(text), rows, num_points=9, leap=1.0) is leaps


@pytest.mark.parametrize(("num_rows", "pole", "is_supported"), [(4, 1, True), (3, 1, False), (4, None, False)])
def test_rows_beside_poles_are_predicted_from_two_others_at_least(num_rows, pole, is_supported, monkeypatch):
  y = np.resize([1.0, -1.0], num_rows)
  rows = rows_of(np.arange(1.0, 1 + num_rows), y)
  segments = between_rows.make_segments(rows)
  monkeypatch.setattr(soundness, "has_needle", lambda *given: False)
  monkeypatch.setattr(soundness, "find_poles", lambda *given: np.array([1]))
  monkeypatch.setattr(soundness, "values_at", lambda *given: np.zeros(segments.points.shape[:2]))
  monkeypatch.setattr(soundness, "_with_poles", lambda *given: [(parse("x"), parse("x"), np.array([1]))])
  monkeypatch.setattr(soundness, "_is_told", lambda *given: True)
  monkeypatch.setattr(soundness.rounding, "refit_constants", lambda node, *data: node)
  monkeypatch.setattr(soundness.scoring, "evaluate", lambda node, x: y)
  if pole is None:
    monkeypatch.setattr(soundness, "_are_beside", lambda *given: np.zeros(num_rows, bool))
  assert bool(soundness.is_supported(parse("1/x"), rows, segments)) is is_supported
