"""What the default config makes of the choice among formulas and of losses: where one answer gives way to another."""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest
from small_data import parse

from symformer_jax.engine.config import DEFAULT, names, selection
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression, operators
from symformer_jax.selection import (
  between_rows,
  choice,
  cross_validation,
  frequencies,
  losses,
  noise,
  residuals,
  rounding,
  select,
  soundness,
  writing,
)
from symformer_jax.selection.judge import Finalist, Judge

CHOICE, LOSS = DEFAULT.choice, DEFAULT.loss


def rows_of(x, y):
  x = np.asarray(x, float)
  return Rows(x[:, None] if x.ndim == 1 else x, np.asarray(y, float), np.ones(len(x)))


# --- between rows ----------------------------------------------------------------------------------------------------


def test_formulas_are_looked_at_on_so_many_segments_and_points():
  assert selection.ChoiceConfig() == CHOICE and selection.LossConfig() == LOSS
  long, plane = np.arange(2000.0), np.random.default_rng(0).uniform(1, 3, (2000, 2))
  segments = between_rows.make_segments(rows_of(long, long))
  assert segments.points.shape == (1024, 10, 1)
  two = between_rows.make_segments(rows_of(plane, plane[:, 0]))
  assert two.is_near.sum() == 256 and 500 < len(two.begin) <= 512
  few = between_rows.make_segments(rows_of([1.0, 2, 3], [0.0, 4, 2]))
  assert (few.low, few.high) == (-4, 8)  # as far again as the range


def test_where_a_denominator_may_be_zero_and_a_sum_hugs_a_row():
  assert soundness._may_vanish(np.array([[1.0, 0.251], [1.0, 0.249]]), CHOICE).tolist() == [False, True]
  segments = between_rows.make_segments(rows_of([0.5, 1.0, 2.0], [0.0, 1, 2]))
  for text, is_needle in (("1/(2.0000019 - x)", True), ("1/(2.0000021 - x)", False), ("(2 - x)**0.24", True),
                          ("(2 - x)**0.26", False)):
    assert soundness.has_needle(parse(text), segments, CHOICE) is is_needle


@pytest.mark.parametrize(("error", "others", "is_supported"), [
  (0.0, 0.0, True), (0.199, 0.0, True), (0.203, 0.0, False), (0.29, 0.1, True), (0.31, 0.1, False)])
def test_rows_beside_poles_are_met_within_three_errors_or_a_tenth(error, others, is_supported, monkeypatch):
  y = np.array([1.0, -1.0, 2.01, -2.01, 1.0, -1.0])
  rows = rows_of(np.arange(1.0, 7), y)
  segments = between_rows.make_segments(rows)
  monkeypatch.setattr(soundness, "has_needle", lambda *given: False)
  monkeypatch.setattr(soundness, "find_poles", lambda *given: np.array([2]))
  monkeypatch.setattr(soundness, "values_at", lambda *given: np.zeros(segments.points.shape[:2]))
  monkeypatch.setattr(soundness, "_with_poles", lambda *given: [(parse("x"), parse("x"), np.array([2]))])
  monkeypatch.setattr(soundness, "_is_told", lambda *given: True)
  monkeypatch.setattr(rounding, "refit_constants", lambda node, *data: node)
  monkeypatch.setattr(soundness.scoring, "evaluate", lambda node, x: y + [others, others, error, 0, others, others])
  assert bool(soundness.is_supported(parse("1/x"), rows, segments)) is is_supported


@pytest.mark.parametrize(("num_missed", "is_supported"), [(0, True), (1, True), (2, False)])
def test_of_twenty_rows_beside_poles_one_may_be_missed(num_missed, is_supported, monkeypatch):
  x = np.arange(30.0)
  y = np.where(x % 2, 1.0, -1.0)
  rows = rows_of(x, y)
  segments = between_rows.make_segments(rows)
  monkeypatch.setattr(soundness, "has_needle", lambda *given: False)
  monkeypatch.setattr(soundness, "find_poles", lambda *given: np.arange(0, 20, 2))  # between rows 0 to 19
  monkeypatch.setattr(soundness, "values_at", lambda *given: np.zeros(segments.points.shape[:2]))
  monkeypatch.setattr(soundness, "_with_poles", lambda *given: [(parse("x"), parse("x"), np.array([2]))])
  monkeypatch.setattr(soundness, "_is_told", lambda *given: True)
  monkeypatch.setattr(rounding, "refit_constants", lambda node, *data: node)
  monkeypatch.setattr(soundness.scoring, "evaluate", lambda node, x: y + 0.15 * (np.arange(30) < num_missed))
  assert bool(soundness.is_supported(parse("1/x"), rows, segments)) is is_supported


def test_even_steps_and_waves_of_half_a_turn():
  for off, is_even in ((0.009, True), (0.011, False)):
    assert (frequencies.even_step(np.array([[0.0], [1.0], [2.0 + off]])) is not None) is is_even
  even = between_rows.make_segments(rows_of(np.arange(6.0), np.arange(6.0)))
  for speed, is_alias in ((3.14, False), (3.15, True)):
    assert frequencies.is_alias(parse(f"sin({speed}*x)"), even) is is_alias
  x = np.linspace(1, 3, 20)[:, None]
  counts = [choice.num_oddities(parse(f"x**{exponent}"), x) for exponent in (12, 12.5, 4.9, 5.1)]
  assert counts == [0, 1, 0, 1]


# --- the choice ------------------------------------------------------------------------------------------------------


def contest_of(texts, shares, monkeypatch, *, oddities=0):
  rows = rows_of(np.linspace(1, 3, 2000), np.arange(2000.0))
  asked = []
  monkeypatch.setattr(cross_validation, "draw_folds", lambda some, num, **given: asked.append((len(some), num)))
  left = iter(shares)
  monkeypatch.setattr(cross_validation, "squared_errors", lambda node, some, folds: np.full(
    len(some), next(left) * np.var(some.y)))
  monkeypatch.setattr(choice, "num_oddities", lambda node, x, *, config: oddities)
  monkeypatch.setattr(soundness, "find_fault", lambda *given, **named: "")
  monkeypatch.setattr(soundness, "leaves_domain", lambda node, rows, *, num_points: asked.append(num_points) or False)
  lines = [choice.Line(parse(text), expression.complexity(parse(text)), 1.0) for text in texts]
  return choice._Contest(lines, rows, 0.0, 0, CHOICE, between_rows.make_segments(rows)), asked


def test_lines_are_compared_on_a_thousand_rows_in_five_folds_and_priced(monkeypatch):
  contest, asked = contest_of(["x", "sin(x)"], [0.5, 0.1], monkeypatch, oddities=2)
  assert asked[0] == (1024, 5) and asked[1:] == [1000, 1000]
  np.testing.assert_allclose(contest._prices, [1 + 2 * 14, 2 + 2 * 14])
  contest._oddities, contest._prices = [0, 1], [0.0, 0.0]
  assert contest.gain(1, 0) == pytest.approx(1000 * (math.log(5) - math.log(2)), rel=1e-6)


def test_a_wave_costs_what_its_frequency_was_chosen_from(monkeypatch):
  slow, fast = (contest_of([f"sin({rate}*x)"], [0.5], monkeypatch)[0]._prices[0] for rate in (1.5, 31.4))
  assert fast - slow == pytest.approx(CHOICE.frequency_nats * math.log(2 * 31.4 / math.pi), abs=0.05)
  assert slow < fast


def test_when_a_formula_is_preferred_to_a_mean(monkeypatch):
  monkeypatch.setattr(choice._Contest, "gain", lambda contest, i, base: -1.0)
  monkeypatch.setattr(choice._Contest, "is_beyond_chance", lambda contest, i, base: i == 1)
  monkeypatch.setattr(choice, "_nearer_to_most", lambda errors, among, best, config: best)
  for r2, taken in ((0.11, 1), (0.09, 0)):
    contest_of([], [], monkeypatch)
    left = iter([1.0, 1 - r2])
    monkeypatch.setattr(cross_validation, "squared_errors", lambda node, some, folds, left=left: np.full(
      len(some), next(left) * np.var(some.y)))
    lines = [choice.Line(expression.number(1.5), 1, 1.0), choice.Line(parse("sin(x)"), 2, 0.5)]
    rows = rows_of(np.linspace(1, 3, 50), np.arange(50.0))
    assert choice.choose(lines, rows, num_points=50, seed=0) == taken


def test_limits_of_predictions_and_of_simple_lines():
  for num_better, taken in ((71, 1), (69, 0)):  # of a hundred rows four standard errors above a half
    errors = [np.ones(100), np.where(np.arange(100) < num_better, 0.5, 1.0)]
    assert choice._nearer_to_most(errors, [1], 0, CHOICE) == taken
  lines = [choice.Line(parse(text), 3, 1.0) for text in ("2*x + 1", "sin(x)")]
  for worse, taken in ((0.0024, 1), (0.0026, 0)):
    assert choice._not_below_least_squares(lines, (0.5, 0.5 + worse), (1.0, 2.0), 1, CHOICE) == taken
  front = [SimpleNamespace(complexity=c, r2=r2) for c, r2 in ((3, 0.0), (9, 0.0))]
  for simple, best, is_taken in ((0.991, 1.0, True), (0.989, 1.0, False), (0.61, 0.8, True), (0.59, 0.8, False)):
    front[0].r2, front[1].r2 = simple, best
    assert (choice.simplest_good(front, front[1]) is front[0]) is is_taken


@pytest.mark.parametrize(("given", "tries", "most"), [
  ({"line_columns": 1}, 0.0, 0.02), ({}, 4 * 0.75, 0.03), ({"is_base_constant": False}, 4 * 1.25, 0.03)])
def test_chances_of_noise(given, tries, most, monkeypatch):
  for more, expected in ((-1e-6, True), (1e-6, False)):
    monkeypatch.setattr(noise, "log_chance", lambda more=more, **named: math.log(most) - tries + more)
    assert noise.is_beyond_chance(
      share=0.3, num_points=20, num_constants=4, further_nodes=4, num_columns=1, **given) is expected


# --- constants -------------------------------------------------------------------------------------------------------


class Local:
  """A local model of given values."""

  def __init__(self, value):
    self.theta, self.is_free, self.config = np.array([value]), np.ones(1, bool), DEFAULT.selection
    self.node = parse("2.5*x")


def test_simple_values_are_tried_within_a_reach_and_a_quarter_of_the_way():
  asked = []
  for reach in DEFAULT.selection.snap_errors:
    found = [errors for errors in np.arange(0.1, 9, 0.1) if rounding._nearest_simple(
      Local(1e-4 * errors), np.array([[1e-8]]), reach)]
    asked.append(round(max(found), 1))
  assert asked == [2.4, 5.9]  # below 2.5 standard errors; 0, without which there is no term, below 6
  for stderr, is_near in ((0.0995, True), (0.101, False)):  # of 2.5 of these a quarter of the way to the next
    assert (rounding._nearest_simple(Local(2.9), np.array([[stderr**2]]), 2.5) is not None) is is_near


def test_what_rounding_and_redundancy_may_cost(monkeypatch):
  local = SimpleNamespace(sum_of_squares=1.0, noise=2.0, config=DEFAULT.selection)
  assert rounding._most(local) == pytest.approx(1.002)
  rooms, node = [], parse("2.5*x")
  monkeypatch.setattr(rounding, "_round_together", lambda local, room: rooms.append(room))
  monkeypatch.setattr(rounding, "_fix_decimals", lambda local: None)
  for is_exact in (True, False):
    monkeypatch.setattr(rounding, "_Local", lambda *given, is_exact=is_exact: SimpleNamespace(
      theta=np.array([2.5]), is_free=np.ones(1, bool), sum_of_squares=1.0, noise=1.0, is_exact=is_exact,
      config=DEFAULT.selection))
    rounding.round_constants(node, None, None, None)
  assert rooms == [1.0, 0.1]
  monkeypatch.undo()
  asked = []
  monkeypatch.setattr(
    rounding.LocalModel, "__init__", lambda self, *given, num_refits, **named: asked.append(num_refits))
  rounding._Local(node, np.ones((3, 1)), np.arange(3.0), np.ones(3))
  assert asked == [3]
  for value, off, is_decimal in (
    (2.2345, 0.9e-9, True), (2.2345, 1.1e-9, False), (2.234567, 0.9e-11, True), (2.234567, 1.1e-11, False),
    (2.2345678, 0.0, True), (2.23456789, 0.0, False)):
    some = Local(value * (1 + off))
    some.refit = some.update = lambda: None
    rounding._fix_decimals(some)
    assert some.is_free[0] == (not is_decimal)


def test_exact_formulas_leave_a_billionth_of_a_thousandth():
  x = np.arange(9.0)
  judge = Judge(rows_of(x, x), 9, DEFAULT.selection, CHOICE)
  for share, is_exact in ((0.9e-12, True), (1.1e-12, False)):
    finalist = SimpleNamespace(scores=SimpleNamespace(mse=share * np.var(x)))
    assert bool(judge.is_exact(finalist)) is is_exact
  node = [Finalist(parse(text), SimpleNamespace(mse=0.5)) for text in ("exp(x)", "exp(exp(x))")]
  assert np.diff([judge.cost(each, is_rounded=True) for each in node])[0] == pytest.approx(2 + 2.3)  # one is nested
  odd = judge.cost(Finalist(parse("sin(exp(x))"), SimpleNamespace(mse=0.5)), is_rounded=True)
  assert odd - judge.cost(node[1], is_rounded=True) == pytest.approx(14)  # a wave of what is not linear


# --- losses ----------------------------------------------------------------------------------------------------------


def test_weights_of_losses_at_their_limits():
  rows = rows_of(np.arange(4.0), np.ones(4))
  weights = losses._log_weights(np.array([29.0, 30.0, 31.0, 60.0]), rows, LOSS).weights
  assert weights[1] == weights[2] == weights[3] < weights[0]
  errors = np.array([1.0, 1.0, 1.0, 1.99, 2.0, 9.0])
  found = losses._huber_weights(np.zeros(6), rows_of(np.arange(6.0), errors), LOSS)
  far = 1.345 * 1.4826 * np.median(errors)
  assert found.num_light == int(np.sum(errors > far))
  assert found.weights[-1] == pytest.approx(far / 9 * 3 / 1.345 * far / 9)  # beyond three standard errors
  size = losses._sizes(np.arange(1.0, 101), LOSS)
  assert size[0] == pytest.approx(np.quantile(np.arange(1.0, 101), 0.05) / 100)


def test_looks_under_outliers_at_their_limits():
  assert (LOSS.max_looks, LOSS.huber_neighbours, LOSS.huber_freedom, LOSS.num_scale_turns) == (4, 6, 2.0, 30)
  for weight, expected in ((2.01, True), (1.99, False)):
    found = losses.Weighing(np.ones(3), squares=np.ones(3))
    assert losses.is_misled(np.full(3, weight), found) is expected


@pytest.mark.parametrize(("costs", "num_rows", "expected"), [
  ({0.0: 10.0, 1.35: 6.9}, 20, 1.35), ({0.0: 10.0, 1.35: 7.1}, 20, 0.0), ({0.0: 10.0, 1.35: 6.9}, 19, 0.0),
  ({0.0: 20.0, 1.35: 7.0, 1.0: 7.9}, 20, 1.0), ({0.0: 20.0, 1.35: 7.0, 1.0: 8.1}, 20, 1.35),
  ({0.0: 20.0, 2.0: 7.0}, 20, 2.0), ({0.0: 20.0, 2.05: 1.0, 1.5: 7.0}, 20, 1.5)])
def test_growth_of_errors_at_its_limits(costs, num_rows, expected, monkeypatch):
  monkeypatch.setattr(losses, "_laplace", lambda values, rows, exponent, config: costs.get(exponent, 99.0))
  y = np.arange(float(num_rows))
  assert losses.find_growth(y + 1, rows_of(y, y)) == expected


def test_eight_formulas_are_fitted_in_twelve_turns_at_two_nats_a_node(monkeypatch):
  asked = []
  monkeypatch.setattr(losses, "_fit", lambda node, rows, reweigh, num_turns: asked.append(num_turns) or node)
  rows = rows_of(np.linspace(1, 3, 30), np.linspace(1, 3, 30) ** 2)
  nodes = [parse(f"{k / 10 + 0.05}*x") for k in range(1, 20)]
  losses.weigh("huber", nodes, rows, text=str)
  assert asked == [12] * 8
  monkeypatch.setattr(losses, "_laplace", lambda *given: 0.0)
  weighing = losses.Weighing(rows.weights)
  assert losses._cost(parse("sin(x)"), rows=rows, reweigh=lambda *given: weighing, config=LOSS) == 4.0


def test_prices_are_those_of_functions_that_there_are():
  assert set(names.FUNCTIONS) <= set(operators.BY_NAME)
  with pytest.raises(ValueError, match="function_nats: unknown name 'arctan'"):
    dataclasses.replace(CHOICE, function_nats=(("arctan", 2.0),))


def test_a_phase_may_be_taken_between_all_rows_and_not_between_less_than_half_of_them():
  assert selection.ChoiceConfig(phase_edges=0).phase_edges == 0
  for share in (-0.01, 0.5):
    with pytest.raises(ValueError, match="phase_edges: expected a share of at least 0, below a half"):
      selection.ChoiceConfig(phase_edges=share)


@pytest.mark.parametrize(("distances", "is_peak"), [
  ([9, 9, 9, 0, 0, 9], True), ([9, 9, 0, 0, 9, 0, 0, 9], False), ([6.1, 2.1, 0, 0], True), ([6.1, 1.9, 0, 0], False),
  ([6.1, -9, 0, 0], False), ([5.9, 5.9, 0, 9], False)])
def test_far_rows_are_a_peak_where_most_have_one_beside_them_on_the_same_side(distances, is_peak):
  x = np.arange(float(len(distances)))[:, None]
  assert residuals._are_together(np.array(distances, float), x, DEFAULT.hints) is is_peak


# --- what the selection sees, and what it takes for simple -----------------------------------------------------------


@pytest.mark.parametrize(("num_columns", "num_seen"), [(64, 64), (65, 2)])
def test_of_a_table_of_more_than_sixty_four_columns_those_that_formulas_read_are_seen(num_columns, num_seen):
  rows = Rows(np.ones((9, num_columns)), np.ones(9), np.ones(9))
  assert len(select._columns([parse("x*z")], rows, DEFAULT.selection)) == num_seen


def test_a_simple_value_is_taken_where_it_is_half_as_likely_as_all_others():
  """At t standard errors, of which such values lie so many apart."""
  spacing = 2 * math.sqrt(2 * math.pi) * math.exp(2)
  assert rounding._reach(spacing, DEFAULT.selection) == pytest.approx(2)


@pytest.mark.parametrize(("share", "expected"), [(0.9e-9, 2.5), (1.1e-9, None)])
def test_a_constant_of_an_exact_formula_is_a_decimal_to_nine_digits(share, expected):
  assert rounding._decimal(2.5 * (1 + share), DEFAULT.selection) == expected


@pytest.mark.parametrize(("change", "is_lean"), [(0.0099, True), (0.0101, False)])
def test_parts_go_that_are_a_millionth_or_a_thousandth_where_values_change_by_a_hundredth(change, is_lean, monkeypatch):
  asked = []
  x = np.linspace(-1, 1, 40)
  lean = expression.Node("+", (parse("x"), expression.number(change * np.std(x))))
  monkeypatch.setattr(writing, "without_idle_parts", lambda node, x, *, share: asked.append(share) or lean)
  judge = SimpleNamespace(config=DEFAULT.selection, rows=rows_of(x, x))
  assert writing._leaner([parse("x")], judge) == [lean] * is_lean and asked == [1e-6, 1e-3]


def test_a_line_in_the_place_of_a_function_leaves_a_hundredth_of_its_variance(monkeypatch):
  asked = []
  monkeypatch.setattr(writing.straight, "straightened", lambda *given, share: asked.append(share) or [])
  x = np.linspace(1, 3, 40)
  judge = Judge(rows_of(x, x**2 + np.sin(9 * x)), 40, DEFAULT.selection, CHOICE)
  assert not writing._straight(parse("sin(x)"), judge, lambda node: True) and asked == [0.01]


# --- where formulas are looked at ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_rows", "num_drawn"), [(65_536, 256), (65_537, 65_536)])
def test_neighbours_are_looked_for_among_65536_rows(num_rows, num_drawn):
  class Enough(Exception):
    pass

  class Drawing:
    def choice(self, num, size, *, replace):
      asked.append((num, size))
      raise Enough

  asked = []
  with pytest.raises(Enough):
    between_rows._near_and_far(np.zeros((num_rows, 2)), CHOICE, Drawing())
  assert asked == [(num_rows, num_drawn)]


def test_in_corners_of_the_box_formulas_leave_the_range_of_y_by_ten_times_that(monkeypatch):
  monkeypatch.setattr(soundness, "leaps_in_box", lambda node, rows, *, num_points, leap: leap)
  assert choice._leaps(parse("x"), None, CHOICE) == 10


def test_beside_a_pole_between_rows_far_apart_are_two_rows_on_each_side():
  x = np.column_stack([np.arange(-5.0, 6) + 0.5, np.ones(11)])
  segments = SimpleNamespace(is_near=np.zeros(3, bool))
  found = soundness._are_beside(rows_of(x, np.ones(11)), segments, np.array([0]), [parse("x")], CHOICE)
  assert x[found, 0].tolist() == [-1.5, -0.5, 0.5, 1.5]
