"""Limits of the selection's rules: cases that lie exactly on them, and figures that follow from definitions."""

import dataclasses
import math
from types import SimpleNamespace

from hand_made_rows import NAMES, parse, rows_of
import numpy as np
import pytest
from scipy import stats

from symformer_jax.engine.config import DEFAULT
from symformer_jax.errors import InputError
from symformer_jax.language import expression, programs
from symformer_jax.language.tidy import tidy
from symformer_jax.selection import (
  between_rows,
  choice,
  cross_validation,
  frequencies,
  front,
  idle_parts,
  noise,
  rounding,
  scoring,
  select,
  soundness,
  writing,
)
from symformer_jax.selection.judge import Finalist, Judge

CONFIG = DEFAULT.choice

# --- noise -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_points", "num_constants", "base", "share"), [
  (20, 3, 1, 0.4), (20, 5, 3, 0.4), (9.5, 4, 2, 0.7), (30, 1, 1, 0.6), (30, 2, 3, 0.6)])
def test_the_chance_is_that_of_a_share_of_squares(num_points, num_constants, base, share):
  constants = max(num_constants, base + 1)
  expected = stats.beta.logcdf(share, (num_points - constants) / 2, (constants - base) / 2)
  found = noise.log_chance(share=share, num_points=num_points, num_constants=num_constants, base_constants=base)
  assert found == pytest.approx(expected, rel=1e-9)


def test_chances_at_their_ends():
  given = {"num_constants": 3, "base_constants": 1}
  assert noise.log_chance(share=1e-9, num_points=3, **given) == 0 == noise.log_chance(share=1e-9, num_points=2, **given)
  assert noise.log_chance(share=1e-9, num_points=3.5, **given) < 0
  assert noise.log_chance(share=1.5, num_points=9, **given) == 0 == noise.log_chance(share=1.0, num_points=9, **given)
  # With two more constants the chance is the share to half of the rest, also where no double holds it.
  for share in (0.5, 1e-3):
    assert noise.log_chance(share=share, num_points=4003, **given) == pytest.approx(2000 * math.log(share), rel=1e-12)
  least = math.log(np.finfo(float).tiny)
  for share in (0.0, -0.5):
    assert noise.log_chance(share=share, num_points=4003, **given) == pytest.approx(2000 * least, rel=1e-12)
  assert noise.log_chance(share=0.4, num_points=20, num_constants=3) == noise.log_chance(
    share=0.4, num_points=20, **given)


@pytest.mark.parametrize(("given", "tries", "most"), [
  ({"line_columns": 2, "num_columns": 5}, math.log(10), 0.02), ({"line_columns": 1, "num_columns": 1}, 0.0, 0.02),
  ({"num_columns": 5}, 4 * 0.75 + math.log(5), 0.03),
  ({"num_columns": 5, "is_base_constant": False}, 4 * 1.25 + math.log(5), 0.03)])
def test_what_was_tried_uses_up_its_share_of_chance(given, tries, most, monkeypatch):
  for more, expected in ((-1e-9, True), (1e-9, False)):
    asked = []
    monkeypatch.setattr(noise, "log_chance", lambda more=more, asked=asked, **named: asked.append(named) or (
      math.log(most) - tries + more))
    assert noise.is_beyond_chance(
      share=0.3, num_points=20, num_constants=4, further_nodes=4, base_constants=2, **given) is expected
    assert asked == [{"share": 0.3, "num_points": 20, "num_constants": 4, "base_constants": 2}]


# --- folds -----------------------------------------------------------------------------------------------------------


def test_what_an_even_series_is_says_the_config():
  x = np.cumsum(np.where(np.arange(12) % 2, 1.0, 1.1))
  rows = rows_of(x, np.arange(12.0))
  by_chance = cross_validation.draw_folds(rows, 3, seed=0)
  in_blocks = cross_validation.draw_folds(rows, 3, seed=0, config=dataclasses.replace(CONFIG, even_steps=0.2))
  np.testing.assert_array_equal(in_blocks, np.tile([0, 1, 2], 4))
  assert by_chance.tolist() != in_blocks.tolist() and sorted(by_chance) == sorted(in_blocks)


def test_of_equally_simple_formulas_the_first_wins_where_errors_are_equal():
  errors = [np.array([1.0, 3.0]), np.array([1.0, 3.0])]
  assert cross_validation.simplest_within_one_error(errors, [5, 5], np.ones(2)) == 0
  assert cross_validation.is_within_one_error(np.array([2.0, 4.0]), np.array([2.0, 4.0]), np.ones(2))
  # A difference of its own standard error exactly: 1 of variance 1 among two rows, and a mean of 1.
  assert cross_validation.is_within_one_error(np.array([2.0, 0.0]), np.zeros(2), np.ones(2))
  assert not cross_validation.is_within_one_error(np.array([2.0, 0.1]), np.zeros(2), np.ones(2))


def test_predictions_without_a_value_are_infinitely_wrong():
  rows = rows_of(np.linspace(-1, 3, 6), np.linspace(1, 2, 6))
  with np.errstate(all="ignore"):
    found = cross_validation.squared_errors(parse("sqrt(x - 1)"), rows, np.arange(6) % 2)
  np.testing.assert_allclose(found[3:], (np.sqrt(rows.x[3:, 0] - 1) - rows.y[3:]) ** 2)
  assert np.all(found[:2] == np.inf)


# --- the front -------------------------------------------------------------------------------------------------------


def test_a_front_falls_by_its_share_at_each_step():
  assert front.pareto_indices([1, 2, 3], [4.0, 2.0, 1.0], min_gain=0.5) == [0, 2]
  assert front.pareto_indices([1, 2, 3], [4.0, 1.9, 1.0], min_gain=0.5) == [0, 1]
  assert front.pareto_indices([1, 2], [1.0, 1.0]) == [0] and front.pareto_indices([2, 1], [0.5, 1.0]) == [1, 0]
  assert front.pareto_indices([1, 2], [0.3, 0.1], floor=0.3) == [0]
  assert front.pareto_indices([1, 2], [0.31, 0.1], floor=0.3) == [0, 1]
  assert front.pareto_indices([1, 1], [0.2, 0.1], costs=[1.0, 2.0]) == [0]
  assert front.pareto_indices([1, 1, 2], [0.2, 0.1, 0.15], costs=[1.0, 2.0, 0.0]) == [0, 2]
  assert front.pareto_indices([1, 2, 3], [math.nan, math.inf, 1.0]) == [2] and front.pareto_indices([], []) == []


def test_of_lines_that_have_been_a_front_those_stay_that_are_kept():
  assert front.falling([1, 2, 3], [3.0, 2.0, 1.0]) == [0, 1, 2]
  assert front.falling([1, 2, 3], [3.0, 3.0, 1.0]) == [0, 2]
  assert front.falling([1, 2, 3], [1.0, 2.0, 3.0], kept={2}) == [0, 2]
  assert front.falling([2, 2], [2.0, 1.0]) == [1] and front.falling([2, 2], [2.0, 1.0], kept={0}) == [0, 1]
  assert front.falling([1, 2], [0.3, 0.1], floor=0.3) == [0]
  assert front.falling([3, 1], [1.0, 2.0]) == [1, 0]


# --- idle parts ------------------------------------------------------------------------------------------------------


def test_a_quarter_of_a_rounding_is_silent_and_more_is_not():
  eps, x = np.finfo(float).eps, np.linspace(1, 2, 9)[:, None]
  for share, is_idle in ((0.24, True), (0.26, False)):
    node = expression.Node("+", (parse("x"), expression.Node("*", (parse("x"), expression.number(share * eps)))))
    assert (idle_parts.without_idle_parts(node, x) == parse("x")) is is_idle
  # In one row it counts: it stays.
  node = expression.Node("+", (parse("x"), expression.Node("*", (parse("x**200"), expression.number(1e-50)))))
  assert idle_parts.without_idle_parts(node, x) == node


def test_what_is_the_same_in_every_row_is_a_number_unless_its_columns_do_not_vary():
  x = np.column_stack([np.linspace(1, 2, 9), np.full(9, 3.0)])
  assert tidy(idle_parts.without_idle_parts(parse("cos(0*x)*2"), x)) == expression.number(2.0)
  assert idle_parts.without_idle_parts(parse("sin(z) + 2"), x) == parse("sin(z) + 2")
  infinite = parse("1/(0*x)")
  assert idle_parts.without_idle_parts(infinite, x) != expression.number(math.inf)


# --- scoring ---------------------------------------------------------------------------------------------------------


def test_scores_are_those_of_their_definitions():
  y, weights = np.array([1.0, 2, 0, 5]), np.array([1.0, 2, 1, 0])
  found = scoring.score(np.array([2.0, 2, 1, np.nan]), y, weights)
  mse = (1 * 1 + 0 + 1) / 4
  assert found.mse == pytest.approx(mse) and found.rmse == pytest.approx(math.sqrt(mse)) and found.num_undefined == 0
  assert found.relative_error == pytest.approx((1 * 1 + 2 * 0) / 3)
  mean = 5 / 4
  variance = ((1 - mean) ** 2 + 2 * (2 - mean) ** 2 + mean**2) / 4
  assert found.r2 == pytest.approx(1 - mse / variance)
  assert scoring.weighted_variance(y, weights) == pytest.approx(variance)
  lost = scoring.score(np.array([np.nan, np.inf, 1, 1]), y, weights)
  assert (lost.mse, lost.r2, lost.relative_error, lost.num_undefined) == (math.inf, None, None, 2)
  level = scoring.score(np.ones(3), np.zeros(3))
  assert level.r2 is None and level.relative_error is None and level.mse == 1


def test_many_rows_are_evaluated_in_chunks(monkeypatch):
  sizes, evaluate = [], expression.evaluate
  monkeypatch.setattr(scoring.expression, "evaluate", lambda node, x: sizes.append(len(x)) or evaluate(node, x))
  monkeypatch.setattr(scoring, "CHUNK_ROWS", 4)
  x = np.arange(10.0)[:, None]
  np.testing.assert_array_equal(scoring.evaluate(parse("2*x"), x), 2 * x[:, 0])
  assert sizes == [4, 4, 2]


# --- between rows ----------------------------------------------------------------------------------------------------


def test_values_at_the_end_of_what_is_allowed_leap_not():
  segments = between_rows.make_segments(rows_of([0.0, 1, 2], [0.0, 1, 2]))  # from -2 to 4
  assert (segments.low, segments.high) == (-2, 4)
  for text, fault in (("3*x - 2", ""), ("3*x - 2.001", soundness.LEAP), ("3.01*x - 2", soundness.LEAP)):
    assert soundness.find_fault(parse(text), segments) == fault
  assert soundness.find_fault(expression.number(99.0), segments) == ""
  point = between_rows.make_segments(rows_of([1.0, 1], [1.0, 2]))
  assert soundness.find_fault(parse("log(x - 9)"), point) == ""


@pytest.mark.parametrize(("text", "is_needle"), [
  ("(2 - x)**0.25", False), ("(2 - x)**0.24", True), ("(2 - x)**(-3.5)", True), ("log(2 - x)", True),
  ("1/(2 - x)", True), ("log(2*x - x*2)", True), ("sin(2 - x)", False), ("log(x)", False), ("1/(2.000001 - x)", True),
  ("1/(2.000003 - x)", False), ("(2 - x)**z", False)])
def test_sums_that_vanish_on_a_row_are_needles_under_logarithms_inverses_and_low_powers(text, is_needle):
  """To a millionth of their largest term, which is 2."""
  plane = between_rows.make_segments(rows_of([[0.5, 1.0], [1.0, 2.0], [2.0, 3.0]], [0.0, 1, 2]))
  assert soundness.has_needle(parse(text), plane, CONFIG) is is_needle


def test_points_of_a_box_are_its_corners_and_others_drawn_by_the_seed():
  x = np.array([[1.0, 5.0], [2.0, 9.0], [1.5, 7.0]])
  for count, is_whole in ((4, True), (3, False)):  # two columns have four corners
    points = soundness._box_points(x, count, 0)
    corners, others = (points[:4], points[4:]) if is_whole else (points[:3], points[3:])
    assert len(others) == count and set(corners[:, 0]) <= {1, 2} and set(corners[:, 1]) <= {5, 9}
    assert len({tuple(each) for each in corners.tolist()}) == 4 or not is_whole
    assert np.all((others > [1, 5]) & (others < [2, 9]))
  np.testing.assert_array_equal(soundness._box_points(x, 9, 3), soundness._box_points(x, 9, 3))
  assert soundness._box_points(x, 9, 3).tolist() != soundness._box_points(x, 9, 4).tolist()
  many = soundness._box_points(np.tile([[0.0], [1.0]], (1, 12)), 500, 0)  # of 4096 corners 500
  assert many.shape == (1000, 12) and np.all((many[:500] == 0) | (many[:500] == 1))
  assert 0.4 < many[:500].mean() < 0.6


def test_a_denominator_that_is_zero_on_the_first_row_has_no_sign_to_lose():
  x = np.array([[1.0, 1.0], [2.0, 1.5], [3.0, 2.0], [4.0, 2.5]])
  rows = rows_of(x, np.arange(4.0))
  assert not soundness.leaves_domain(parse("1/(x - z)"), rows, num_points=100)
  assert soundness.leaves_domain(parse("1/(x - z + 0.1)"), rows, num_points=100)
  assert not soundness.leaves_domain(parse("1/(x - z + 1.6)"), rows, num_points=100)  # at least 0.1 in the box
  assert soundness.leaves_domain(parse("log(x - z + 0.1)"), rows, num_points=100)
  assert not soundness.leaves_domain(parse("log(x - 9)"), rows, num_points=100)


@pytest.mark.parametrize(("text", "count"), [
  ("exp(2.5*log(x))", 0), ("exp(z*log(x))", 1), ("exp(z*(2.5*log(x)))", 1),
  ("exp(z*log(2.5))", 0), ("exp(x*log(x))", 1),
  ("exp(sin(z)*log(x))*exp(x*log(z))", 2), ("x**z", 1), ("x**2.5", 0), ("2.5**x", 0), ("exp(z + log(x))", 0)])
def test_powers_of_columns_to_columns(text, count):
  assert soundness.num_column_exponents(parse(text)) == count


@pytest.mark.parametrize(("exponent", "is_extreme"), [
  (12.0, False), (12.5, True), (-12.5, True), (11.5, False), (5.25, False), (5.26, True), (-5.26, True), (4.87, False)])
def test_exponents_beyond_twelve_or_five_for_uneven_ones(exponent, is_extreme):
  node = expression.Node("pow", (parse("x"), expression.number(exponent)))
  assert soundness.num_extreme_exponents(node, largest=12.0, largest_uneven=5.25) == is_extreme
  constant = expression.Node("pow", (parse("2.5"), expression.number(exponent)))
  assert soundness.num_extreme_exponents(constant, largest=12.0, largest_uneven=5.25) == 0


@pytest.mark.parametrize(("text", "turns", "is_arc"), [
  ("sin(2.5*x)", 0.999, True), ("sin(2.5*x)", 1.0, False), ("cos(2.5*x)", 0.9985, True), ("cos(2.5*x)", 0.9995, False),
  ("tan(2.5*x)", 0.499, True), ("tan(2.5*x)", 0.5, False), ("cot(2.5*x)", 0.499, True), ("sin(2*x)", 0.5, False),
  ("sin(2.5*x + 2*z)", 0.9, True), ("sin(2*x + 2.5)", 0.9, False)])
def test_an_arc_is_less_than_a_period(text, turns, is_arc):
  """Of ten rows nine steps make nine tenths of a period."""
  wave, num = parse(text), 10
  rate = 2.5 if "2.5*x" in text else 2.0
  x = np.column_stack([np.arange(num) * 2 * np.pi * turns / rate / num, np.zeros(num)])
  assert frequencies.is_arc(wave, x) is is_arc
  assert not frequencies.is_arc(parse("sin(2.5*log(x - 9))"), x)
  one = np.zeros((3, 2))
  assert frequencies.is_arc(parse("sin(2.5*x)"), one)


@pytest.mark.parametrize(("text", "low", "high", "is_arc"), [
  ("sin(x)", 70.0, 75.0, True), ("sin(x)", 70.0, 77.0, False), ("cos(2*x + 1)", -8.0, -7.0, True),
  ("sin(x)", 0.0, 12.56, False), ("sin(x)", 10.0, 12.56, False), ("sin(x)", 10.0, 12.57, True),
  ("sin(-x)", 10.0, 12.57, True), ("tan(x)", 50.0, 52.0, True)])
def test_a_wave_of_no_fitted_frequency_is_an_arc_far_from_all_angles(text, low, high, is_arc):
  x = np.linspace(low, high, 50)[:, None]
  assert frequencies.is_arc(parse(text), x) is is_arc
  far = dataclasses.replace(DEFAULT.choice, angle_turns=100.0)
  assert not frequencies.is_arc(parse(text), x, config=far)
  assert (choice.num_oddities(parse(text), x) == 1) is is_arc and not choice.num_oddities(parse(text), x, config=far)


@pytest.mark.parametrize(("column", "is_scattered"), [
  (np.tile([1.0, 2, 3], 20), True), (np.tile([1.0, 2, 3, 4], 20), False), (np.linspace(0, 30, 50), False),
  (np.append(np.linspace(0, 8, 40), [43.0, 62]), True), (np.append(np.linspace(0, 8, 40), [43.0, 44, 45]), True),
  (np.append(np.linspace(0, 8, 40), [43.0, 44, 45, 46]), False), (np.append(np.linspace(0, 8, 40), -20.0), True),
  (np.append(np.linspace(0, 8, 40), 8 + np.pi * (1 - 1e-9)), False), (np.append(np.linspace(0, 8, 40), 11.2), True),
  (np.concatenate([np.linspace(0, 8, 20), [50.0], np.linspace(90, 99, 20)]), False)])
def test_a_wave_of_codes_and_one_that_meets_outliers_are_odd(column, is_scattered):
  x = np.column_stack([column, np.arange(len(column))])
  for text, sure in (("sin(x)", is_scattered), ("3*cos(x + 1) + z", is_scattered), ("exp(x)", False)):
    [*waves] = frequencies.waves(parse(text))
    assert [frequencies.is_scattered(wave, x) for wave in waves] == [sure] * len(waves)
    assert choice.num_oddities(parse(text), x) == sure
  assert not frequencies.is_scattered(parse("sin(x)"), x, config=dataclasses.replace(CONFIG, wave_rows=1))
  assert not frequencies.is_scattered(parse("sin(1/z)"), x)  # undefined for a row: no wave of the rows


@pytest.mark.parametrize(("text", "is_bent"), [
  ("sin(2.5*x + z)", False), ("sin(-x)", False), ("sin(x*z)", True), ("sin(2*x)", False), ("sin(x**2)", True),
  ("sin(exp(2))", False), ("sin(x*exp(2) + 1)", False), ("sin(3*(x + 1))", False)])
def test_what_is_linear_in_its_columns(text, is_bent):
  assert frequencies.is_nonlinear(parse(text)) is is_bent


def test_slow_waves_of_even_functions_may_be_half_as_fast():
  x = np.arange(9.0)[:, None]
  node = parse("sin(2*x)**2")  # within the square half of a whole turn is none
  found = frequencies.to_slow_waves(node, x)
  [wave] = frequencies.waves(found)
  slope = np.diff(scoring.evaluate(wave.args[0], x))
  np.testing.assert_allclose(slope, 2 - np.pi, rtol=1e-9)
  np.testing.assert_allclose(scoring.evaluate(found, x), np.sin(2 * x[:, 0]) ** 2, atol=1e-9)
  assert frequencies.to_slow_waves(node, x[:, [0, 0]]) is node
  [wave] = frequencies.waves(frequencies.to_slow_waves(parse("sin(4*x) + x"), x))  # of an odd one a whole turn
  np.testing.assert_allclose(np.diff(scoring.evaluate(wave.args[0], x)), 4 - 2 * np.pi, rtol=1e-9)


def test_how_even_the_steps_of_slow_waves_have_to_be_is_what_the_config_says():
  x, node = np.arange(9.0)[:, None], parse("sin(4*x)")
  x[4] += 1e-9
  assert frequencies.to_slow_waves(node, x) != node
  exact = dataclasses.replace(CONFIG, even_steps=0.0)
  assert frequencies.to_slow_waves(node, x, config=exact) is node


@pytest.mark.parametrize(("slope", "is_kept"), [
  (math.pi - 1e-9, True), (math.pi + 1e-6, False), (-math.pi + 1e-9, True), (2 * math.pi, True), (7.0, False)])
def test_waves_of_half_a_period_a_step_are_slow_enough(slope, is_kept):
  wave = expression.Node("sin", (expression.Node("*", (parse("x"), expression.number(slope))),))
  found = frequencies._slowed(wave, 3.0, 1.0, 2 * math.pi)
  assert (found == wave) is is_kept
  if not is_kept:
    x = np.arange(3.0, 9)[:, None]
    np.testing.assert_allclose(scoring.evaluate(found, x), np.sin(slope * x[:, 0]), atol=1e-9)


def test_a_phase_that_bends_by_more_than_a_millionth_is_no_line():
  for bend, is_line in ((1e-7, True), (1e-5, False)):
    wave = expression.Node("sin", (parse(f"7*x + {bend:.9f}*x**2"),))
    assert (frequencies._slowed(wave, 0.0, 1.0, 2 * math.pi) != wave) is is_line


def test_a_wave_between_two_rows_of_several_columns():
  two = between_rows.make_segments(rows_of([[0.0, 0.0], [1.0, 2.0]], [1.0, 2]))
  assert frequencies.turn(parse("cos(2*x + z)"), two) == pytest.approx(4)  # over one step
  assert frequencies.turn(parse("cos(2*x + z)"), dataclasses.replace(two, num_rows=1)) == pytest.approx(4)


def supported(monkeypatch, y, *, poles=(1,), errors=None, doubt=0.0, values=None, is_told=True):
  """`is_supported` of 1/(x - 3.5) on rows 1 to 6, the poles found being on these segments."""
  x = np.arange(1.0, 7)
  rows = rows_of(x, y)
  segments = between_rows.make_segments(rows)
  monkeypatch.setattr(soundness, "has_needle", lambda *given: False)
  monkeypatch.setattr(soundness, "find_poles", lambda *given: np.array(poles, int))
  inside = np.full(segments.points.shape[:2], 0.0)
  monkeypatch.setattr(soundness, "values_at", lambda *given: inside if values is None else values(inside, segments))
  monkeypatch.setattr(soundness, "_with_poles", lambda *given: [(None, None, np.array(poles))])
  monkeypatch.setattr(soundness, "_is_told", lambda *given: is_told)
  monkeypatch.setattr(rounding, "refit_constants", lambda node, *data: node)
  monkeypatch.setattr(rounding, "curve_errors", lambda node, *data, holds_form: (
    None if doubt is None or not holds_form else np.full(2, doubt)))
  off = np.zeros(6) if errors is None else np.asarray(errors, float)
  monkeypatch.setattr(scoring, "evaluate", lambda node, x: np.asarray(y, float) + off)
  return bool(soundness.is_supported(parse("1.5/(x - 3.5)"), rows, segments))


def test_what_supports_a_pole_at_its_limits(monkeypatch):
  # Distances from the median, 0: 1 usually, 2 beside the pole between rows 3 and 4.
  y = np.array([1.0, -1.0, 2.0, -2.0, 1.0, -1.0])
  median = np.median(np.abs(y - np.median(y)))
  assert median == 1 and np.median(y) == 0
  at = {"poles": (2,)}
  assert supported(monkeypatch, y, **at) and supported(monkeypatch, y + 5, **at)
  assert not supported(monkeypatch, y, is_told=False, **at)
  assert not supported(monkeypatch, y, poles=())
  # A tenth of their distance is room, or three times what the others miss.
  assert supported(monkeypatch, y, errors=[0, 0, 0.199, 0, 0, 0], **at)
  assert not supported(monkeypatch, y, errors=[0, 0, 0.201, 0, 0, 0], **at)
  assert not supported(monkeypatch, y, errors=[0, 0, np.nan, 0, 0, 0], **at)
  # A row beside the pole that has the median may be missed by nothing, and what is exact does not miss it.
  level = np.array([1.0, -1.0, 0.0, -2.0, 2.0, 0.0])
  assert supported(monkeypatch, level, **at)
  assert not supported(monkeypatch, level, errors=[0, 0, 1e-9, 0, 0, 0], **at)
  others = [0.1, 0.1, 0, 0, -0.1, 0.1]
  assert supported(monkeypatch, y, errors=np.add(others, [0, 0, 0.29, 0, 0, 0]), **at)
  assert not supported(monkeypatch, y, errors=np.add(others, [0, 0, 0.31, 0, 0, 0]), **at)
  assert supported(monkeypatch, y, doubt=0.2, **at) and not supported(monkeypatch, y, doubt=0.21, **at)
  assert not supported(monkeypatch, y, doubt=None, **at) and not supported(monkeypatch, y, doubt=np.nan, **at)

  def out(segment, value):
    def values(inside, segments):
      found = inside.copy()
      found[segment, 1] = getattr(segments, value) if isinstance(value, str) else value
      return found
    return values
  for value, is_in in (("low", True), ("high", True), (99.0, False), (-99.0, False), (np.nan, False)):
    assert supported(monkeypatch, y, values=out(4, value), **at) is is_in
    assert supported(monkeypatch, y, values=out(2, value), **at)


# --- the choice ------------------------------------------------------------------------------------------------------


def line_of(text, mse=0.5):
  return choice.Line(parse(text), expression.complexity(parse(text)), mse)


def test_a_contest_asks_for_rows_folds_and_errors_and_prices_what_is_named(monkeypatch):
  rows = rows_of(np.arange(16.0).reshape(8, 2), np.arange(8.0), np.arange(1.0, 9))
  config, asked = dataclasses.replace(CONFIG, max_rows=5, num_folds=3), []
  variance = np.average((rows.sample(5, seed=4).y - np.average(
    rows.sample(5, seed=4).y, weights=rows.sample(5, seed=4).weights)) ** 2, weights=rows.sample(5, seed=4).weights)
  monkeypatch.setattr(cross_validation, "draw_folds", lambda some, num, *, seed, config: asked.append(
    (len(some), num, seed, config)) or "folds")
  monkeypatch.setattr(cross_validation, "squared_errors", lambda node, some, folds: np.arange(5.0) * (
    folds == "folds"))
  monkeypatch.setattr(between_rows, "make_segments", lambda rows, *, config: asked.append(
    (len(rows), config)) or "segments")
  monkeypatch.setattr(choice, "num_oddities", lambda node, x, *, config: asked.append((x.shape, config)) or 1)
  monkeypatch.setattr(choice, "_has_pole", lambda node, rows, segments, config: asked.append(
    (len(rows), segments, config)) or True)
  monkeypatch.setattr(soundness, "leaps_in_box", lambda node, rows, *, num_points, leap: asked.append(
    (len(rows), num_points, leap)) or True)
  lines = [line_of("x + z*x"), line_of("2.5")]
  contest = choice._Contest(lines, rows, 7.0, 4, config, between_rows.make_segments(rows, config=config))
  of_line = [((5, 2), config), (8, "segments", config), (5, config.num_box_points, config.box_leap)]
  assert asked == [(8, config), (5, 3, 4, config), *of_line, *of_line]
  weights = rows.sample(5, seed=4).weights
  assert contest.shares == [pytest.approx(np.average(np.arange(5.0), weights=weights) / variance)] * 2
  assert contest._oddities == [3, 3]
  np.testing.assert_allclose(contest._prices, [5 * 1.0 + 3 * 14 + 3 * math.log(2), 1 + 3 * 14])


def contest_of(shares, *, errors=None, num_points=0.0, num=10):
  contest = object.__new__(choice._Contest)
  contest._rows, contest._num_points, contest._config = np.zeros(num), num_points, CONFIG
  contest._sample = "sample"
  contest.errors = errors or [np.full(num, share) for share in shares]
  contest.shares, contest.weights, contest._variance = list(shares), np.ones(num), 1.0
  contest._oddities, contest._prices = [0] * len(shares), [0.0] * len(shares)
  contest._lines = [line_of("x")] * len(shares)
  return contest


def test_a_formula_that_leaves_nothing_gains_down_to_the_resolution_of_the_numbers():
  contest = contest_of([1.0, 0.0])
  floor = float(np.finfo(np.float32).eps) ** 2
  assert contest._log_gain(1, 0) == pytest.approx(math.log(1 + floor) - math.log(floor), rel=1e-12)
  assert contest.num_points(1, 0) == 10 and contest.gain(1, 0) == pytest.approx(5 * contest._log_gain(1, 0))
  assert contest_of([math.inf, 0.5]).gain(1, 0) == math.inf and contest_of([math.inf, math.inf]).gain(1, 0) == 0.0
  assert contest_of([math.inf, 0.5]).num_points(1, 0) == 10


def test_oddities_ask_for_a_gain_by_those_that_a_formula_has_more():
  contest = contest_of([1.0, 0.25])
  for oddities, more in (([0, 0], 0), ([1, 1], 0), ([0, 2], 2), ([2, 1], -1)):
    contest._oddities = oddities
    expected = 5 * (contest._log_gain(1, 0) - more * math.log(2))
    assert contest.gain(1, 0) == pytest.approx(expected)


def test_each_segment_has_a_sign_of_its_own():
  values = np.array([[1.0, 0.5], [-1.0, -0.5], [-1.0, 0.5]])
  assert soundness._may_vanish(values, CONFIG).tolist() == [False, False, True]


def test_only_formulas_of_columns_with_figures_are_beyond_chance(monkeypatch):
  monkeypatch.setattr(choice, "is_beyond_chance", lambda line, base, rows, *, num_points, config: num_points == 10)
  contest = contest_of([0.9, 0.5, math.inf])
  contest._lines = [line_of("2.5"), line_of("x**2"), line_of("z**2")]
  contest.num_points = lambda i, base: 10
  assert contest.is_beyond_chance(1, 0) and not contest.is_beyond_chance(2, 0) and not contest.is_beyond_chance(0, 1)


def test_rows_of_a_straight_line_beside_a_constant_are_those_of_its_f_test(monkeypatch):
  asked = []
  monkeypatch.setattr(choice, "is_beyond_chance", lambda line, base, rows, *, num_points, config: num_points == 77)
  monkeypatch.setattr(noise, "num_points_of_line", lambda rows, columns, *, num_rows: asked.append(
    (rows, set(columns), num_rows)) or 77)
  contest = contest_of([0.9, 0.5, 0.4, 0.3])
  contest._lines = [line_of("2.5"), line_of("2*x + z"), line_of("x**2"), line_of("3*x")]
  contest.num_points = lambda i, base: 10
  assert [contest.is_beyond_chance(i, 0) for i in (1, 2, 3)] == [True, False, True]
  assert asked == [("sample", {0, 1}, 10), ("sample", {0}, 10)]
  assert not contest.is_beyond_chance(1, 2)  # nor of what is no mere mean


def test_a_cheaper_line_is_a_formula_that_costs_no_more_than_another():
  contest = contest_of([0.9, 0.5, 0.4, math.inf])
  contest._lines = [line_of("2.5"), line_of("x"), line_of("x**2"), line_of("z")]
  contest._costs, contest._prices = [1.0, 1.0, 1.0, 0.5], [1.0, 1.0, 15.0, 0.5]  # oddities do not count
  assert contest.is_cheaper(2, 1) and contest.is_cheaper(1, 2)
  assert not contest.is_cheaper(1, 0) and not contest.is_cheaper(0, 1)  # a mere constant is no formula
  assert not contest.is_cheaper(3, 1)  # without figures
  contest._costs = [1.0, 1.0, 1.01, 0.5]
  assert not contest.is_cheaper(2, 1) and contest.is_cheaper(1, 2)


def test_nothing_predicts_clearly_worse_than_a_straight_line():
  lines, gains = [line_of("2.5"), line_of("x + 2"), line_of("sin(x)"), line_of("sin(x)*x")], [0.0, 5.0, 9.0, 8.0]
  for shares, best, expected in (((1.0, 0.5, 0.5025, 0.4), 2, 2), ((1.0, 0.5, 0.503, 0.4), 2, 3),
                                 ((1.0, 0.5, 0.503, 0.6), 2, 1)):
    assert choice._not_below_least_squares(lines, shares, gains, best, CONFIG) == expected
  assert choice._not_below_least_squares(lines[2:], (0.9, 0.1), (9.0, 8.0), 0, CONFIG) == 0  # without a straight line


@pytest.mark.parametrize(("fault", "leaves", "expected"), [
  (soundness.POLE, False, True), (soundness.LEAP, False, True), (soundness.UNDEFINED, False, False),
  (soundness.ALIAS, False, False), ("", False, False), ("", True, True)])
def test_poles_between_rows_and_in_corners_are_oddities(fault, leaves, expected, monkeypatch):
  config, asked = dataclasses.replace(CONFIG, num_box_points=77), []
  monkeypatch.setattr(soundness, "find_fault", lambda node, segments, *, config: asked.append(config) or fault)
  monkeypatch.setattr(soundness, "leaves_domain", lambda node, rows, *, num_points: asked.append(num_points) or leaves)
  assert choice._has_pole("node", "rows", "segments", config) is expected
  assert asked[0] is config and (expected and not leaves or asked[1] == 77)


@pytest.mark.parametrize(("text", "count"), [
  ("sin(2.5*x)", 0), ("sin(x*z)", 1), ("sin(2.5*x) + sin(x + z)", 1), ("sin(exp(x))", 1), ("x**z", 1), ("x**12.5", 1),
  ("x**5.1", 1), ("x**5.5", 0), ("x**12", 0), ("sin(0.5*x) + x**z", 2)])
def test_what_is_odd(text, count):
  x = np.column_stack([np.linspace(0, 6, 30), np.linspace(1, 2, 30)])
  assert choice.num_oddities(parse(text), x) == count


def test_what_a_user_may_choose():
  front_ = [SimpleNamespace(complexity=c, r2=r2, mse=1 - r2) for c, r2 in ((1, 0.0), (3, 0.9), (9, 0.99))]
  for value, expected in (("2", 2), ("-1", None), ("accurate", "accurate"), (np.int64(1), 1), (-2, -2),
                          ("123456789", 123456789), ("recommended", "recommended"), ("simple", "simple")):
    if expected is None:
      with pytest.raises(InputError, match="s: unknown choice '-1', a number of the front or a word"):
        choice.read_selection(value, argument="s")
    else:
      assert choice.read_selection(value, argument="s") == expected
  for value in (True, 1.0, None, "best", ""):
    with pytest.raises(InputError, match="s: unknown choice"):
      choice.read_selection(value, argument="s")
  for number, place in ((0, 0), (2, 2), (-1, 2), (-3, 0)):
    assert choice.pick(front_, front_[1], number, argument="s") is front_[place]
  for number in (3, -4):
    with pytest.raises(InputError, match="s: expected a line of the front, 0 to 2, got"):
      choice.pick(front_, front_[1], number, argument="s")
  assert choice.pick(front_, front_[1], "recommended", argument="s") is front_[1]
  assert choice.pick(front_, front_[2], "simple", argument="s") is front_[2]


# --- the selection's steps -------------------------------------------------------------------------------------------


def judge_of(x, y, *, num_points=None, **changes):
  rows = rows_of(x, y)
  return Judge(rows, num_points or len(rows), dataclasses.replace(DEFAULT.selection, **changes), CONFIG)


def test_before_rounding_the_front_goes_by_errors_and_after_it_by_costs():
  x = np.linspace(1, 9, 30)
  judge = judge_of(x, x + 0.1 * np.sin(7 * x), num_chosen=0)
  one, other = parse("1.001*x + 0.123456"), parse("1*x + 0.1")
  mse = {one: 1.0, other: 1.01}
  judge.finalists = lambda nodes: [Finalist(node, scoring.Scores(mse[node], 0.9, None, 0)) for node in nodes]
  judge.cost = lambda finalist, *, is_rounded: {one: 5.0, other: 1.0}[finalist.node]
  judge._size = lambda finalist: 5
  judge._listable = lambda finalists, costs: (finalists, costs)
  assert judge.chosen([one, other], is_rounded=False) == [one]
  assert judge.chosen([one, other], is_rounded=True) == [other]


@pytest.mark.parametrize(("factor", "is_simplest"), [(1.5, True), (1.51, False)])
def test_what_leaves_half_as_much_again_is_as_accurate_as_any(factor, is_simplest, monkeypatch):
  judge, simple, long = judge_of(np.arange(9.0), np.arange(9.0)), parse("x"), parse("sin(x)*x + x")
  judge.finalists = lambda nodes: [
    Finalist(node, scoring.Scores(4 * factor if node == simple else 4.0, None, None, 0)) for node in nodes]
  seen = []
  monkeypatch.setattr(scoring, "evaluate", lambda node, x: seen.append(node) or x[:, 0] + 1)
  judge.count_effective([long, simple])
  assert (seen == [simple]) is is_simplest
  judge.floor = 4.0  # at the floor a fit is exact
  seen.clear()
  assert judge.count_effective([long]) == 9 and not seen


def selected(monkeypatch, num, *, may_fit, max_rows=20, last_rows=1_000_000, num_fit_rows=256):
  """What `select` asks of the rounding, by numbers of rows."""
  asked = []
  for name in ("refit_constants", "round_constants", "remove_redundant", "snap_constants"):
    monkeypatch.setattr(rounding, name, lambda node, x, y, weights, *, name=name, config=None, num_errors=None: (
      asked.append((name, len(x))) or node))
  monkeypatch.setattr(Judge, "refitted", lambda self, finalist, rows, is_allowed: asked.append(
    ("refitted", len(rows))) or finalist)
  monkeypatch.setattr(rounding, "parameter_errors", lambda node, x, y, weights: asked.append(
    ("errors", len(x))) or rounding.ParameterErrors([None] * len(programs.fitted_values(node)), []))
  monkeypatch.setattr(rounding, "exact_forms", lambda node, x, y, weights: asked.append(("exact", len(x))) or [
    None] * len(programs.fitted_values(node)))
  monkeypatch.setattr(choice, "choose", lambda lines, rows, **given: 0)
  x = np.linspace(1, 9, num)
  config = dataclasses.replace(DEFAULT.selection, max_rows=max_rows, last_rows=last_rows)
  found = select.select(
    [parse("2.5*x")], rows_of(x, 2.5 * x + 0.1 * np.sin(9 * x)), NAMES, seed=0, may_fit=may_fit, config=config,
    yardsticks=[expression.number(12.5)], num_fit_rows=num_fit_rows)
  assert found.best in found.front
  return set(asked)


def test_rows_that_each_step_of_the_selection_sees(monkeypatch):
  few = selected(monkeypatch, 12, may_fit=True)
  assert {rows for _, rows in few} == {12} and ("refitted", 12) not in few
  many = selected(monkeypatch, 40, may_fit=True, last_rows=30)
  assert ("refitted", 30) in many and ("errors", 30) in many and ("exact", 20) in many
  assert ("round_constants", 20) in many and ("round_constants", 30) in many  # formulas, and yardsticks
  assert ("remove_redundant", 20) in many and {rows for name, rows in many if name == "snap_constants"} == {20}
  hurried = selected(monkeypatch, 40, may_fit=True, last_rows=25)
  assert {rows for name, rows in hurried if name in ("refitted", "errors")} == {25}
  for may_fit_rows, is_refitted in ((19, True), (20, False)):
    monkeypatch.setattr(writing, "_shortest", lambda node, judge, is_allowed: node)
    found = selected(monkeypatch, 40, may_fit=True, num_fit_rows=may_fit_rows)
    assert (("refit_constants", 20) in found) is is_refitted
  left = selected(monkeypatch, 40, may_fit=False)
  assert {name for name, _ in left} == {"errors", "exact"}


def test_without_fits_description_length_recommends_also_where_nothing_is_exact(monkeypatch):
  judge = judge_of(np.arange(9.0), np.arange(9.0))
  finalists = [Finalist(parse(text), scoring.Scores(mse, 0.5, None, 0)) for text, mse in (
    ("x", 1.0), ("2*x", 0.5), ("x*x + 1", 0.1))]
  asked = []
  monkeypatch.setattr(choice, "choose", lambda lines, rows, *, num_points, seed, config, segments: asked.append(
    ([line.mse for line in lines], num_points, seed, config)) or 1)
  costs = [3.0, 1.0, 2.0]
  assert select._recommended(finalists, costs, [0, 1, 2], [], judge, seed=5, may_fit=False) == 1 and not asked
  assert select._recommended(finalists, costs, [0, 2], [1], judge, seed=5, may_fit=True) == 1
  assert asked == [([1.0, 0.5, 0.1], 9, 5, CONFIG)]
  exact = [Finalist(parse("x"), scoring.Scores(0.0, 1.0, None, 0)), finalists[1]]
  assert select._recommended(exact, [0.0, 1.0], [0, 1], [], judge, seed=5, may_fit=True) == 0


@pytest.mark.parametrize(("fault", "is_exact", "may_fit", "is_supported", "expected"), [
  ("", False, True, False, True), (soundness.POLE, True, True, False, True), (soundness.POLE, False, True, True, True),
  (soundness.LEAP, False, True, True, True), (soundness.POLE, False, False, True, False),
  (soundness.UNDEFINED, False, True, True, False), (soundness.ALIAS, False, True, True, False),
  (soundness.LEAP, False, True, False, False)])
def test_what_is_sound(fault, is_exact, may_fit, is_supported, expected, monkeypatch):
  judge = judge_of(np.arange(9.0), np.arange(9.0))
  monkeypatch.setattr(judge, "is_exact", lambda finalist: is_exact)
  check = select._SoundnessCheck(judge, may_fit=may_fit)
  monkeypatch.setattr(soundness, "find_fault", lambda node, segments, *, config: fault)
  monkeypatch.setattr(soundness, "is_supported", lambda node, rows, segments, *, config: is_supported)
  assert check._is_sound(parse("x")) is expected
  assert check._faults == ({} if expected else {parse("x"): fault})


def test_only_what_would_be_chosen_is_looked_at(monkeypatch):
  check = select._SoundnessCheck(judge_of(np.arange(9.0), np.arange(9.0)), may_fit=True)
  nodes, looked = [parse(text) for text in ("x", "2*x", "3*x", "4*x")], []
  bad = {nodes[0], nodes[2]}
  monkeypatch.setattr(check, "_is_sound", lambda node: looked.append(node) or node not in bad)
  yardstick = expression.number(1.0)
  assert check.sound(nodes, lambda some: [yardstick, *list(some)[:2]]) == [yardstick, nodes[1], nodes[3]]
  assert sorted(looked, key=nodes.index) == nodes  # each once, the yardstick never


def test_a_form_is_rewritten_as_long_as_that_shortens_it(monkeypatch):
  judge = judge_of(np.arange(9.0), np.arange(9.0), max_rewritten=3)
  chain = [parse(text) for text in ("x", "2*x", "3*x", "4*x", "5*x")]
  costs = dict(zip(chain, (9.0, 7.0, 5.0, 3.0, 1.0), strict=True))
  judge.cost_of = lambda form: costs[form]
  rounds = []

  def forms(node, judge, is_allowed):
    rounds.append(node)
    place = chain.index(node)
    return [(chain[min(place + 1, last)], chain[min(place + 1, last)]), (node, node)]

  monkeypatch.setattr(writing, "_forms", forms)
  last = 4
  assert writing._shortest(chain[0], judge, lambda node: True) == chain[3] and len(rounds) == 3
  rounds.clear()
  last = 1
  assert writing._shortest(chain[0], judge, lambda node: True) == chain[1] and len(rounds) == 2
  rounds.clear()
  costs[chain[1]] = 10.0
  assert writing._shortest(chain[0], judge, lambda node: True) == chain[0] and len(rounds) == 1


def test_forms_are_those_of_the_tree_and_of_its_rounded_self(monkeypatch):
  judge = judge_of(np.arange(9.0), np.arange(9.0), rewritings=("powers", "roots"))
  rounded = {parse("1.9*x"): parse("2*x")}
  monkeypatch.setattr(rounding, "round_constants", lambda node, *data, config: rounded.get(node, node))
  for name in ("refit_constants", "snap_constants"):
    monkeypatch.setattr(rounding, name, lambda node, *data, config: node)
  asked = []
  monkeypatch.setattr(writing, "REWRITINGS", {
    "powers": lambda node: asked.append(node) or (parse("x**2") if node == tidy(parse("2*x")) else node),
    "roots": lambda node: expression.number(3.0), "absolutes": lambda node: parse("z")})
  found = writing._forms(parse("1.9*x"), judge, lambda node: True)
  assert [form for _, form in found] == [tidy(parse("2*x")), tidy(parse("x**2"))]  # no bare number
  assert set(asked) == {parse("1.9*x"), tidy(parse("2*x"))}
  number = writing._forms(expression.number(2.5), judge, lambda node: True)
  assert expression.number(3.0) in [form for _, form in number]
