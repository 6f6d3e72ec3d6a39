"""Exact limits of the selection: the order of lines, figures that are equal, constants that are just good enough."""

import dataclasses
import math
from types import SimpleNamespace

from hand_made_rows import NAMES, parse, rows_of
import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import expression, printing, programs
from symformer_jax.results import Equation
from symformer_jax.selection import (
  between_rows,
  choice,
  cross_validation,
  frequencies,
  front,
  noise,
  rounding,
  scoring,
  select,
  soundness,
  writing,
)
from symformer_jax.selection.judge import Finalist, Judge

CONFIG = DEFAULT.choice


def chosen(monkeypatch, front, shares, *, lengths, beyond, config=CONFIG):
  """`choose` on shares of variance that rows not seen leave, and lengths and chances that are given."""
  rows = rows_of(np.arange(8.0).reshape(4, 2), [-1.0, 1.0, -1.0, 1.0])  # of variance 1
  found = iter(shares)
  monkeypatch.setattr(cross_validation, "squared_errors", lambda node, rows, folds: np.full(4, next(found)))
  lines = [choice.Line(parse(text), expression.complexity(parse(text)), 0.5) for text in front]
  monkeypatch.setattr(choice._Contest, "gain", lambda contest, i, base: lengths[base] - lengths[i])
  monkeypatch.setattr(choice, "is_beyond_chance", lambda line, base, *rest, **named: (
    front[lines.index(line)], front[lines.index(base)]) in beyond)
  return front[choice.choose(lines, rows, num_points=4, seed=0, config=config)]


def test_a_long_line_that_comes_first_is_measured_by_the_shorter_ones(monkeypatch):
  given = {"shares": (0.3, 1.0, 0.4), "lengths": (3.0, 5.0, 4.0)}
  front = ("x*z", "1.5", "x")
  assert chosen(monkeypatch, front, **given, beyond={("x", "1.5"), ("x*z", "1.5")}) == "x"
  assert chosen(monkeypatch, front, **given, beyond={("x", "1.5"), ("x*z", "x")}) == "x*z"


def test_an_r2_of_just_what_is_worthwhile_is_not_above_it(monkeypatch):
  monkeypatch.setattr(choice, "_nearer_to_most", lambda errors, among, best, config: best)
  given = {"front": ("1.5", "sin(x)"), "shares": (1.0, 0.5), "lengths": (5.0, 6.0), "beyond": {("sin(x)", "1.5")}}
  assert chosen(monkeypatch, **given, config=dataclasses.replace(CONFIG, worthwhile_r2=0.5)) == "1.5"
  assert chosen(monkeypatch, **given, config=dataclasses.replace(CONFIG, worthwhile_r2=0.49)) == "sin(x)"


def test_segments_are_made_as_the_config_says_where_none_are_given(monkeypatch):
  config, asked = dataclasses.replace(CONFIG, points_between=3), []
  real = between_rows.make_segments
  monkeypatch.setattr(between_rows, "make_segments", lambda rows, **named: asked.append(named) or real(rows, **named))
  assert chosen(monkeypatch, ("1.5",), (1.0,), lengths=(5.0,), beyond=set(), config=config) == "1.5"
  assert asked == [{"config": config}]


def test_what_two_lines_are_worth_goes_by_the_weights_of_rows():
  contest, rng = object.__new__(choice._Contest), np.random.default_rng(3)
  contest._rows, contest._num_points, contest._config, contest._variance = np.zeros(50), 0.0, CONFIG, 1.0
  contest.weights = rng.uniform(0.1, 9, 50)
  contest.errors = [rng.normal(size=50) ** 2, 0.6 * rng.normal(size=50) ** 2]
  first, second = (np.average(errors, weights=contest.weights) for errors in contest.errors)
  contest.shares = [first, second]
  terms = contest.weights * (contest.errors[0] / first - contest.errors[1] / second)
  spread = np.mean(terms**2) / np.mean(contest.weights) ** 2
  expected = 50 * 4 * math.log(first / second) / spread
  assert expected < 50
  assert contest.num_points(1, 0) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("shares", "expected"), [
  ((0.5, 0.75, 0.7), 1), ((0.5, 0.76, 0.75), 2), ((0.5, 0.76, 0.76), 0)])
def test_just_the_room_beside_a_straight_line_is_not_clearly_worse(shares, expected):
  lines = [choice.Line(parse(text), 3, 0.5) for text in ("2*x", "sin(x)", "sin(z)")]
  config = dataclasses.replace(CONFIG, line_room=0.25)
  assert choice._not_below_least_squares(lines, shares, [1.0, 8.0, 9.0], 1, config) == expected


def test_the_best_that_others_are_compared_with_is_the_one_of_least_error():
  errors = [np.array([8.9, 9.0, 9.1]), np.array([0.9, 1.0, 1.1]), np.array([2.9, 3.0, 3.1])]
  assert cross_validation.simplest_within_one_error(errors, [1, 5, 3], np.ones(3)) == 1


def test_an_error_that_no_double_holds_when_squared_is_infinite():
  rows = rows_of([1.0, 2.0, 3.0, 4.0, 5.0, 400.0], np.ones(6))  # exp(400) is 5e173
  found = cross_validation.squared_errors(parse("exp(x)"), rows, np.arange(6) // 2)
  np.testing.assert_allclose(found, [*(np.exp(np.arange(1.0, 6)) - 1) ** 2, np.inf])


@pytest.mark.parametrize(("num_refits", "slope"), [(0, 1.5), (1, 3.25)])
def test_constants_are_fitted_again_in_as_many_steps_as_the_config_says(num_refits, slope):
  config = dataclasses.replace(DEFAULT.selection, num_refits=num_refits)
  x = np.arange(1.0, 9)[:, None]
  found = rounding.refit_constants(parse("1.5*x"), x, 3.25 * x[:, 0], np.ones(8), config=config)
  assert programs.fitted_values(found) == pytest.approx([slope], rel=1e-12)


def test_small_columns_have_a_direction_of_their_own_and_columns_of_zeros_any():
  assert rounding._null_direction(np.array([[1e-10, 0.0], [0.0, 1.0], [0.0, 0.0]])) is None
  assert abs(rounding._null_direction(np.zeros((3, 1)))).tolist() == [1]
  assert abs(rounding._null_direction(np.array([[1.0, 0.0]]))).tolist() == [0, 1]  # fewer rows than columns


@pytest.mark.parametrize(("value", "expected"), [(2.1, (0, 2.0)), (2.25, None)])
def test_a_reach_of_just_its_share_is_allowed_and_what_lies_at_its_end_is_beyond(value, expected):
  local = SimpleNamespace(theta=np.array([value]), is_free=np.array([True]),
                          config=dataclasses.replace(DEFAULT.selection, snap_share=0.25))
  assert rounding._nearest_simple(local, np.array([[1 / 64]]), 2.0) == expected


def test_where_rounding_leaves_a_negative_variance_a_curve_has_no_error(monkeypatch):
  monkeypatch.setattr(rounding, "_Local", lambda *given: SimpleNamespace(
    theta=np.ones(2), is_free=np.ones(2, bool), weights=np.ones(4),
    covariance=lambda: np.array([[0.0, 1.0], [1.0, 0.0]])))
  monkeypatch.setattr(rounding, "LocalModel", lambda *given, **named: SimpleNamespace(
    jacobian=np.array([[1.0, -1.0], [1.0, 2.0]])))
  found = rounding.curve_errors(parse("2.5*x + 1.5"), np.ones((4, 1)), np.ones(4), np.ones(4), np.ones((2, 1)))
  assert np.isnan(found[0]) and found[1] == 2.0


def test_a_hundred_thousand_rows_are_evaluated_at_once(monkeypatch):
  sizes = []
  monkeypatch.setattr(scoring.expression, "evaluate", lambda node, x: sizes.append(len(x)) or np.zeros(len(x)))
  assert len(scoring.evaluate(parse("x"), np.zeros((200_001, 1)))) == 200_001 and sizes == [100_000, 100_000, 1]


def judge_of(**changes):
  rows = rows_of(np.arange(9.0), np.arange(9.0) ** 2)
  return Judge(rows, 9, dataclasses.replace(DEFAULT.selection, **changes), DEFAULT.choice)


def finalists_of(*texts):
  return [Finalist(parse(text), scoring.Scores(0.5, None, None, 0)) for text in texts]


def test_what_is_as_long_as_the_cheapest_may_be_listed_whatever_it_costs():
  finalists = finalists_of("x*z", "x + z", "sin(x) + z")
  assert judge_of()._listable(finalists, [0.0, 999.0, 999.0]) == (finalists[:2], [0.0, 999.0])


def test_a_front_is_drawn_by_size_error_cost_and_gain(monkeypatch):
  asked = []
  monkeypatch.setattr(front, "pareto_indices", lambda *given, **named: asked.append((given, named)) or [1])
  judge = judge_of(min_gain=0.25)
  assert judge.front(finalists_of("x", "1/x**2"), [3.0, 4.0]) == [1]
  size = expression.complexity(parse("1/x**2")) - 1  # a power
  assert asked == [(([1, size], [0.5, 0.5]), {"floor": judge.floor, "costs": [3.0, 4.0], "min_gain": 0.25})]


@pytest.mark.parametrize(("rewrites_front", "expected"), [(True, {"x", "z"}), (False, {"z"})])
def test_the_shortest_descriptions_are_promising_and_the_front_unless_there_is_no_time(rewrites_front, expected):
  judge, finalists = judge_of(rewrites_front=rewrites_front, num_rewritten=1), finalists_of("x", "x + 1", "z")
  costs = {"x": 3.0, "x + 1": 2.0, "z": 1.0}
  judge.finalists, judge.front = lambda nodes: finalists, lambda finalists, given: [0]
  judge.cost = lambda finalist, is_rounded: costs[printing.to_text(finalist.node, NAMES)]
  assert {printing.to_text(node, NAMES) for node in judge.promising([])} == expected


def test_chosen_are_the_front_and_the_cheapest():
  judge, finalists = judge_of(num_chosen=1), finalists_of("x", "x + 1", "z")
  judge.finalists, judge.front = lambda nodes: finalists, lambda finalists, given: [0]
  costs = {"x": 3.0, "x + 1": 2.0, "z": 1.0}
  judge.cost = lambda finalist, is_rounded: costs[printing.to_text(finalist.node, NAMES)]
  assert judge.chosen([], is_rounded=True) == [parse("x"), parse("z")]


def only_the_formula(finalist, some, most, names):
  return Equation(finalist.node, tuple(names), 0.0, None, None, ())


@pytest.mark.parametrize(("max_rows", "may_fit", "is_rounded", "num_sound", "num_fronts", "judges"), [
  (9, False, [False], 1, 0, [(9, 9), (9, 9)]), (9, True, [False], 2, 1, [(9, 9), (9, 9)]),
  (8, False, [False, True], 1, 0, [(8, 8), (8, 8), (9, 9)]), (8, True, [False, True], 2, 0, [(8, 8), (8, 8), (9, 9)])])
def test_on_more_rows_what_is_left_is_chosen_again_and_sound_where_it_was_fitted(
  max_rows, may_fit, is_rounded, num_sound, num_fronts, judges, monkeypatch):
  chosen, sound, made, fronts, costs = [], [], [], [], []

  def watched(owner, name, seen, what):
    real = getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *given, **named: seen.append(what(*given, **named)) or real(
      *given, **named))
  watched(Judge, "chosen", chosen, lambda judge, nodes, *, is_rounded: is_rounded)
  watched(Judge, "on_front", fronts, lambda *given: True)
  watched(Judge, "cost", costs, lambda judge, finalist, *, is_rounded: is_rounded)
  watched(select._SoundnessCheck, "sound", sound, lambda *given: True)
  watched(select, "Judge", made, lambda rows, num_points, *configs: (len(rows), num_points))
  monkeypatch.setattr(writing, "rounded", lambda nodes, judge, is_allowed: nodes)
  monkeypatch.setattr(select, "_equation", only_the_formula)
  rows = rows_of(np.arange(1.0, 10), np.arange(1.0, 10) ** 2)
  config = dataclasses.replace(DEFAULT.selection, max_rows=max_rows)
  assert select.select([parse("x**2")], rows, ("x",), seed=0, may_fit=may_fit, config=config).best.node == parse(
    "x**2")
  assert (chosen, len(sound), len(fronts), made) == (is_rounded, num_sound, num_fronts, judges)
  # By digits goes what is chosen after rounding, on a front then, and listed at last.
  assert sum(costs) == sum(is_rounded) + num_fronts + 1


@pytest.mark.parametrize(("excess", "is_listed"), [(0.0, True), (0.5, False)])
def test_longer_lines_than_the_best_may_cost_just_so_much_more(excess, is_listed, monkeypatch):
  texts = ("x + 1", "x**2", "x**2 + 0.25*x")  # the second is as long as the first
  most = DEFAULT.selection.max_excess
  costs = dict(zip(map(parse, texts), (0.0, 99.0, most + excess), strict=True))
  monkeypatch.setattr(Judge, "cost", lambda judge, finalist, *, is_rounded: costs[finalist.node])
  monkeypatch.setattr(Judge, "front", lambda judge, finalists, costs: list(range(len(finalists))))
  monkeypatch.setattr(select._SoundnessCheck, "sound", lambda check, nodes, choose: nodes)
  monkeypatch.setattr(select, "_recommended", lambda judged, *given, **named: 0)
  monkeypatch.setattr(select, "_equation", only_the_formula)
  x = np.arange(1.0, 10)
  found = select.select(list(costs), rows_of(x, x**2 + 0.25 * x), ("x",), seed=0, may_fit=False)
  assert [equation.node for equation in found.front] == list(costs)[: 3 if is_listed else 2]


@pytest.mark.parametrize(("cost", "num_told"), [(4.9, 1), (5.0, 0)])
def test_what_describes_the_rows_just_as_well_as_the_best_is_not_told(cost, num_told):
  best, faulty = finalists_of("x", "sin(x)")
  check = object.__new__(select._SoundnessCheck)
  check._faults = {faulty.node: soundness.POLE}
  check._judge = SimpleNamespace(
    finalists=lambda nodes: [faulty], cost=lambda finalist, is_rounded: 5.0 if finalist is best else cost)
  assert len(check.rejected(best, NAMES)) == num_told


def as_they_are(monkeypatch):
  for name in ("remove_redundant", "snap_constants", "round_constants"):
    monkeypatch.setattr(rounding, name, lambda node, *data, num_errors=None, config: node)


def test_parts_that_say_nothing_go_unless_a_rule_forbids_what_is_left(monkeypatch):
  as_they_are(monkeypatch)
  monkeypatch.setattr(Judge, "promising", lambda judge, nodes: [])
  monkeypatch.setattr(writing, "without_idle_parts", lambda node, x, share=0.0: parse("x"))
  assert writing.rounded([parse("sin(x)")], judge_of(), lambda node: True) == [parse("x")]
  assert writing.rounded([parse("sin(x)")], judge_of(), lambda node: node != parse("x")) == [parse("sin(x)")]


def test_what_is_next_to_nothing_is_tried_without_and_fitted_again(monkeypatch):
  as_they_are(monkeypatch)
  monkeypatch.setattr(Judge, "promising", lambda judge, nodes: [])
  near, other = writing.plain(parse("sin(x) - 0.000001")), writing.plain(parse("sin(1.0001*x)"))
  lean = {1e-6: near, 1e-3: other}
  monkeypatch.setattr(writing, "without_idle_parts", lambda node, x, share=0.0: lean.get(share, node))
  refitted = []
  monkeypatch.setattr(rounding, "refit_constants", lambda node, *data, config: refitted.append(node) or node)
  found = writing.rounded([parse("sin(x)")], judge_of(), lambda node: True)
  assert found == [parse("sin(x)"), near, other] and refitted == [near, other]
  refitted.clear()
  assert writing.rounded([parse("sin(x)")], judge_of(), lambda node: node != other) == [parse("sin(x)"), near]
  assert refitted == [near]
  lean[1e-3] = parse("1.1*sin(x)")  # of other values
  assert writing.rounded([parse("sin(x)")], judge_of(), lambda node: True) == [parse("sin(x)"), near]


def test_what_is_not_promising_is_taken_with_few_digits_where_these_are_allowed(monkeypatch):
  as_they_are(monkeypatch)
  monkeypatch.setattr(rounding, "round_constants", lambda node, *data, config: parse("2.5*x"))
  monkeypatch.setattr(Judge, "promising", lambda judge, nodes: [])
  node, short = writing.plain(parse("2.51*x")), writing.plain(parse("2.5*x"))
  assert writing.rounded([node], judge_of(), lambda node: True) == [short]
  assert writing.rounded([node], judge_of(), lambda node: node not in (short, parse("2.5*x"))) == [node]


def test_nobody_would_leave_an_exponential_in_a_logarithm():
  assert writing.plain(parse("log(exp(2*x)*z)")) == writing.plain(parse("2*x + log(z)"))


def test_of_forms_that_are_as_short_the_first_is_written(monkeypatch):
  x, z, wave = parse("x"), parse("z"), parse("sin(x)")
  judge = judge_of(max_rewritten=3)
  judge.cost_of = lambda form: 1.0
  forms = {x: [(z, z), (x, x)], z: [(wave, wave)]}
  monkeypatch.setattr(writing, "_forms", lambda node, judge, is_allowed: forms[node])
  assert writing._shortest(x, judge, lambda node: True) == z  # and no further way that is no shorter


def test_each_of_few_rows_is_joined_to_its_nearest():
  x = np.random.default_rng(2).uniform(0, 1, (30, 2))
  pairs = between_rows._near_and_far(x, dataclasses.replace(CONFIG, num_segments=30), np.random.default_rng(0))
  assert pairs[:30, 0].tolist() == list(range(30))
  # Of ten rows as many pairs are drawn as are asked for, up to all there are (some are of one row with itself).
  for num_segments, least, most in ((60, 45, 60), (1000, 80, 100)):
    config = dataclasses.replace(CONFIG, num_segments=num_segments)
    found = between_rows._near_and_far(x[:10], config, np.random.default_rng(0))
    assert least <= len(found) - 10 <= most
    assert set(found[10:].ravel().tolist()) == set(range(10))  # from the first row to the last


@pytest.mark.parametrize(("second", "expected"), [(-0.75, False), (-0.76, True)])
def test_a_sum_that_keeps_just_its_share_does_not_vanish(second, expected):
  config = dataclasses.replace(CONFIG, hugging=0.25)
  assert soundness._cancels(parse("x + z"), np.array([[1.0, second], [3.0, 1.0]]), config) is expected


@pytest.mark.parametrize(("third", "step"), [(2.25, 1.0), (2.2578125, None)])
def test_steps_that_differ_by_just_their_share_are_even(third, step):
  config = dataclasses.replace(CONFIG, even_steps=0.25)
  assert frequencies.even_step(np.array([[0.0], [1.0], [third]]), config=config) == step


def test_a_line_counts_all_rows_where_its_column_or_the_target_is_no_more_uneven_than_normal_ones():
  even, uneven = np.linspace(-1, 1, 40), np.linspace(-1, 1, 40) ** 9
  for x, y in ((even, uneven), (uneven, even)):
    assert noise.num_points_of_line(rows_of(x, y), [0], num_rows=40) == 40
  assert noise.num_points_of_line(rows_of(uneven, uneven), [], num_rows=40) == 40
  assert noise.num_points_of_line(rows_of(uneven, uneven), [0], num_rows=40) < 39


@pytest.mark.parametrize(("share", "is_arc"), [(1.0, False), (0.999, True)])
def test_of_a_wave_all_but_a_thousandth_of_a_period_is_no_arc(share, is_arc):
  whole = share * 2 * math.pi * (1 - 1e-3)  # of two rows, which are half of it apart
  assert frequencies.is_arc(parse("sin(0.5*x)"), np.array([[0.0], [whole]])) is is_arc


def test_the_kurtosis_is_that_of_values_of_any_size_and_nothing_of_equal_ones():
  values = np.linspace(-1, 1, 40) ** 9
  of_some = noise._excess_kurtosis(values, np.ones(40))
  assert of_some == pytest.approx(np.mean(values**4) / np.mean(values**2) ** 2 - 3)
  assert noise._excess_kurtosis(1e200 * values, np.ones(40)) == pytest.approx(of_some)
  assert noise._excess_kurtosis(np.full(40, 7.0), np.ones(40)) == 0


def test_a_zero_is_approached_within_its_segment():
  for end in (0.0, 1.0):
    found = soundness._with_approach(np.array([[0.0, 1.0]]), np.full((1, 2), end))
    assert found.min() == 0 and found.max() == 1


@pytest.mark.parametrize(("bend", "is_line"), [(2.5e-6, True), (7.5e-6, False)])
def test_a_phase_whose_steps_differ_by_a_millionth_is_a_line(bend, is_line):
  wave = parse(f"sin(10*x + {bend}*x**2)")  # by 2*bend of 10
  assert (frequencies._slowed(wave, 0.0, 1.0, 2 * math.pi) != wave) is is_line
