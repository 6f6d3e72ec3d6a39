"""Edges of the selection's parts: just at a limit, one of several rows, and what is handed on."""

import dataclasses
import math

from hand_made_rows import NAMES, parse, rows_of
import numpy as np
import pytest

from symformer_jax.engine import criteria
from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import expression, parser
from symformer_jax.selection import (
  between_rows,
  choice,
  frequencies,
  front,
  idle_parts,
  losses,
  noise,
  rounding,
  select,
  soundness,
)
from symformer_jax.selection.judge import Finalist, Judge

CONFIG = DEFAULT.choice


def test_just_a_quarter_of_a_rounding_is_silent():
  quarter = float(np.finfo(float).eps) / 4
  x = np.array([[1.0, quarter], [2.0, 2 * quarter], [4.0, 4 * quarter]])
  assert idle_parts.without_idle_parts(parse("x + z"), x) == parse("x")
  x[2, 1] *= 1.01
  assert idle_parts.without_idle_parts(parse("x + z"), x) == parse("x + z")


@pytest.mark.parametrize(("texts", "read"), [
  (("z*2", "cos(w) + z"), [1, 3]), (("z", "z + 1"), [0, 1]), (("1.5",), [0, 1]), (("x",), [0, 1]), ((), [0, 1]),
  (("x + z", "u - w"), [0, 1, 2, 3])])
def test_of_a_wide_table_the_columns_that_formulas_read_are_kept_and_two_at_least(texts, read):
  rows, names = rows_of(np.ones((3, 5)), np.ones(3)), ("x", "z", "u", "w", "v")
  nodes = [parser.parse(text, names) for text in texts]
  config = dataclasses.replace(DEFAULT.selection, max_columns=4)
  assert select._columns(nodes, rows, config) == read
  assert select._columns(nodes, rows, dataclasses.replace(config, max_columns=5)) == [0, 1, 2, 3, 4]


def test_terms_are_silent_beside_the_whole_sum_and_columns_may_vary_by_little():
  x = np.column_stack([np.linspace(1, 1.5, 9), np.linspace(2, 2.5, 9)])
  # 1e-10*z is heard beside x, and not beside 1e10.
  assert idle_parts.without_idle_parts(parse("x + 1e-10*z + 1e10"), x) == parse("x + 1e10")
  level = expression.Node("cos", (expression.number(0.0),))
  assert idle_parts.without_idle_parts(parse("cos(0*x) + z"), x) == expression.Node("+", (level, parse("z")))


@pytest.mark.parametrize("given", [
  {"line_columns": 1, "num_columns": 1, "most": 0.02}, {"num_columns": 1, "most": 0.05 - 0.02}])
def test_a_chance_of_just_what_is_allowed_is_taken(given, monkeypatch):
  most = given.pop("most")
  monkeypatch.setattr(noise, "log_chance", lambda **named: math.log(most))
  assert noise.is_beyond_chance(share=0.3, num_points=20, num_constants=2, further_nodes=0, **given)


def test_as_many_constants_as_points_meet_anything_even_exactly():
  assert noise.log_chance(share=0.0, num_points=3, num_constants=3, base_constants=1) == 0


def test_a_simpler_formula_is_a_constant_unless_more_is_said(monkeypatch):
  asked = []
  monkeypatch.setattr(noise, "log_chance", lambda **named: asked.append(named["base_constants"]) or -99.0)
  assert noise.is_beyond_chance(share=0.3, num_points=20, num_constants=2, further_nodes=2, num_columns=2)
  assert asked == [1]


def test_lines_of_small_errors_fall_as_well():
  assert front.falling([1, 2, 3], [0.3, 0.2, 0.1]) == [0, 1, 2]
  assert front.pareto_indices([1, 2, 3], [0.3, 0.2, 0.1]) == [0, 1, 2]


def test_each_segment_is_judged_by_its_own_values():
  values = np.array([[1.0, 0.9], [1.0, np.nan], [1.0, np.inf], [-1.0, 1.0]])
  assert soundness._may_vanish(values, CONFIG).tolist() == [False, True, True, True]


def test_each_segment_approaches_its_own_zero():
  shares = np.array([[0.0, 1.0], [0.0, 1.0]])
  found = soundness._with_approach(shares, np.array([[0.1, 0.3], [0.7, 0.9]]))
  for row, zero in zip(found, (0.2, 0.8), strict=True):
    assert np.sum(np.abs(row - zero) < 1e-6) > 50


def test_neighbours_of_many_rows_are_looked_for_among_some_of_them():
  x = np.random.default_rng(1).uniform(0, 1, (300, 2))
  config = dataclasses.replace(CONFIG, num_segments=20, max_neighbours=100)
  pairs = between_rows._near_and_far(x, config, np.random.default_rng(0))
  asked = np.unique(pairs[:20])
  assert len(np.unique(pairs)) <= 100 and len(asked) > 20 and pairs.max() > 100  # of all rows, not the first
  scaled = x / x.std(axis=0)
  for first, second in pairs[:20]:
    among = scaled[np.setdiff1d(pairs, [first])]
    assert np.sum((scaled[second] - scaled[first]) ** 2) <= np.sum((among - scaled[first]) ** 2, axis=1).min() + 1e-12
  whole = between_rows._near_and_far(x[:100], config, np.random.default_rng(0))
  nearest = [np.argsort(np.sum((x[:100] / x[:100].std(axis=0) - x[i] / x[:100].std(axis=0)) ** 2, axis=1))[1]
             for i in whole[:20, 0]]
  assert whole[:20, 1].tolist() == nearest


def test_of_two_steps_the_smaller_says_how_far_a_wave_turns():
  segments = between_rows.make_segments(rows_of([0.0, 1.0, 11.0], np.arange(3.0)))
  assert frequencies.turn(parse("sin(3*x)"), segments) == pytest.approx(3)


@pytest.mark.parametrize(("column", "step"), [([0, 0.5, 1.5, 2], 0.5), ([5, 1, 3, 9], 2), ([0, 0.25, 0.8], None)])
def test_steps_are_counted_in_units_of_the_smallest(column, step):
  assert frequencies.even_step(np.array(column, float)[:, None]) == step


def test_corners_of_a_box_lie_in_it_whatever_rounding_says():
  """Where the least and the range add up to more than the largest."""
  rng = np.random.default_rng(0)
  ends = np.sort(rng.normal(size=(2, 200)) * 10.0 ** rng.integers(-3, 4, (2, 200)), axis=0)
  over = ends[:, ends[0] + (ends[1] - ends[0]) > ends[1]][:, :3]
  assert over.shape == (2, 3)
  x = np.column_stack([over, [0.0, 1e9]])
  points = soundness._box_points(x, 50, 0)
  assert np.all(points <= x.max(axis=0)) and np.all(points >= x.min(axis=0))
  assert all(np.any(points[:, i] == x[1, i]) for i in range(4))


def test_what_is_smallest_at_the_end_of_a_segment_is_enclosed_there():
  segments = between_rows.make_segments(rows_of([1.0, 4, 5], [1.0, 2, 3]))
  which, shares = np.array([0, 1]), np.broadcast_to(np.linspace(0, 1, 4), (2, 4))
  node = parse("x - 5.3")
  size = np.abs(between_rows.values_at(node, soundness._points_at(segments, which, shares)))
  found = soundness._smallest(node, segments, which, shares, size)
  np.testing.assert_allclose(found[:, 1], [1, 1], rtol=1e-12)
  assert np.all(found[:, 0] > 1 - 1e-9)


def contest(shares, errors, variance, *, num_points=2.0):
  made = choice._Contest.__new__(choice._Contest)
  made._config, made._variance, made._num_points = CONFIG, variance, num_points
  made._rows, made.weights = np.zeros(len(errors[0])), np.ones(len(errors[0]))
  made.shares, made.errors = shares, errors
  return made


def test_what_rows_are_worth_does_not_depend_on_the_unit_of_y():
  rng = np.random.default_rng(0)
  errors = [rng.exponential(size=400) ** 3, rng.exponential(size=400) ** 3 / 5]
  found = []
  for unit in (1.0, 100.0):
    scaled = [unit * each for each in errors]
    found.append(contest([np.mean(each) / (7 * unit) for each in scaled], scaled, 7 * unit).num_points(1, 0))
  assert found[0] == pytest.approx(found[1]) and 2 < found[0] < 400
  means = [np.mean(each) for each in errors]
  spread = np.mean((errors[0] / means[0] - errors[1] / means[1]) ** 2)
  shares = [mean / 7 + criteria.NOISE_FLOOR**2 for mean in means]
  assert found[0] == pytest.approx(400 * min(1, 4 * math.log(shares[0] / shares[1]) / spread))


def test_what_leaves_nothing_gains_down_to_the_resolution_of_either():
  floor = criteria.NOISE_FLOOR**2
  made = contest([floor, 0.0, 3 * floor], [np.ones(4)] * 3, 1.0)
  assert made._log_gain(1, 0) == pytest.approx(math.log(2)) and made._log_gain(0, 1) == pytest.approx(-math.log(2))
  assert made._log_gain(0, 2) == pytest.approx(math.log(4 / 2))


def test_a_part_of_just_a_thousandth_of_a_direction_is_a_part(monkeypatch):
  class Local:
    weights, jacobian, node = np.ones(6), np.ones((6, 2)), None
    x, is_free = np.arange(6.0)[:, None], np.ones(2, bool)

    def __init__(self):
      self.theta = np.array([3.0, 2.0])

  monkeypatch.setattr(rounding, "_factor_flags", lambda node: [False, False])
  monkeypatch.setattr(rounding, "_null_direction", lambda columns: np.array([1.0, 1e-3]))
  for fix in (rounding._fix_factor, rounding._fix_summand):
    tried = []
    monkeypatch.setattr(rounding, "_accept", lambda local, index, theta, tried=tried: tried.append(index) or False)
    assert fix(Local()) is False and tried == [0, 1]


def test_the_choice_config_that_is_given_reaches_every_step(monkeypatch):
  config = dataclasses.replace(DEFAULT.choice, odd_nats=13.0)
  asked = set()

  def watched(module, name):
    real = getattr(module, name)

    def call(*given, **named):
      asked.add((name, named.get("config", given[-1])))
      return real(*given, **named)
    monkeypatch.setattr(module, name, call)

  watched(frequencies, "to_slow_waves")
  watched(between_rows, "make_segments")
  for name in ("find_fault", "is_supported"):
    watched(soundness, name)
  for name in ("choose", "num_oddities"):
    watched(choice, name)
  rng = np.random.default_rng(0)
  x = np.sort(rng.uniform(-3, 3, 40))
  rows = rows_of(x, 2.5 * x + 0.3 * rng.normal(size=40))
  select.select([parse("2.5*x"), parse("2.5*x + 0.01/(x - 0.1)")], rows, NAMES, seed=0,
                yardsticks=[expression.number(0.5)], choice_config=config)
  assert {name for name, _ in asked} == {
    "to_slow_waves", "make_segments", "find_fault", "is_supported", "choose", "num_oddities"}
  assert all(given == config for _, given in asked)


def test_what_describes_the_data_just_as_well_as_a_yardstick_is_listed(monkeypatch):
  yardstick, best, longer = expression.number(5.0), parse("2*x"), parse("2*x + 0.5")
  costs = {yardstick: 2.0, best: 1.0, longer: 2.0}
  x = np.linspace(1, 3, 12)
  rows = rows_of(x, 2 * x + 0.5 + 0.01 * np.cos(40 * x))
  for cost, lines in ((2.0, 3), (2.1, 2)):
    costs[longer] = cost
    monkeypatch.setattr(Judge, "cost", lambda self, finalist, *, is_rounded: costs[finalist.node])
    found = select.select([best, longer], rows, NAMES, seed=0, yardsticks=[yardstick], may_fit=False)
    assert found.best.node == best and len(found.front) == lines


@pytest.mark.parametrize("name", ["promising", "on_front"])
def test_rounded_trees_are_compared_by_their_digits(name, monkeypatch):
  asked = []
  x = np.linspace(1, 3, 12)
  judge = Judge(rows_of(x, 2 * x + 0.5), 12, DEFAULT.selection, CONFIG)
  monkeypatch.setattr(Judge, "cost", lambda self, finalist, *, is_rounded: asked.append(is_rounded) or 1.0)
  getattr(judge, name)([parse("2*x"), parse("2.5*x")])
  assert asked == [True, True]


def test_a_zero_is_approached_to_a_hundred_trillionth_of_a_segment():
  found = soundness._with_approach(np.array([[0.0, 1.0]]), np.zeros((1, 2)))[0]
  assert np.min(found[found > 0]) == pytest.approx(1e-14, abs=0) and np.max(found[found < 1]) == pytest.approx(0.1)


def test_what_could_be_listed_goes_by_the_cheapest_wherever_it_stands():
  judge = Judge(rows_of(np.linspace(1, 3, 12), np.linspace(1, 3, 12)), 12, DEFAULT.selection, CONFIG)
  long, short = (Finalist(parse(text), None) for text in ("sin(x) + x", "x"))
  for finalists, costs in (([long, short], [99.0, 0.0]), ([short, long], [0.0, 99.0])):
    assert judge._listable(finalists, costs) == ([short], [0.0])


@pytest.mark.parametrize(("share", "is_null"), [(0.9e-8, True), (1.1e-8, False)])
def test_columns_that_half_of_the_digits_tell_apart_have_no_direction_in_common(share, is_null):
  """Of two columns at a small angle the singular values have the ratio of half of it."""
  columns = np.zeros((5, 2))
  columns[0], columns[1, 1] = 1.0, 2 * share
  assert (rounding._null_direction(columns) is not None) is is_null


def test_a_zero_within_a_segment_is_enclosed_by_twelve_divisions_into_sixteen():
  segments = between_rows.make_segments(rows_of([1.0, 4, 5], [1.0, 2, 3]))
  which, shares = np.array([0]), np.linspace(0, 1, 4)[None]
  node = parse("x - 3.2345678")
  size = np.abs(between_rows.values_at(node, soundness._points_at(segments, which, shares)))
  [[left, right]] = soundness._smallest(node, segments, which, shares, size)
  # Two thirds of the segment at first, then two parts of sixteen each time.
  assert right - left == pytest.approx(2 / 3 / 8**12, rel=1e-3)


def test_near_y_the_weight_of_a_logarithm_is_that_of_its_definition():
  y = np.ones(5)
  ratio = 1 + np.array([1.5e-4, -1.5e-4, 3e-4, 0.5, 1e-9])
  found = losses._log_weights(ratio, rows_of(np.arange(5.0), y), DEFAULT.loss).weights
  np.testing.assert_allclose(found, np.log1p(ratio - 1) / (ratio - 1) / ratio, rtol=2e-9)


def test_first_looks_are_weighed_on_four_thousand_rows_unless_others_are_named(monkeypatch):
  class Enough(Exception):
    pass

  class Many(type(rows_of([1.0], [1.0]))):
    def sample(self, num_rows, *, seed):
      asked.append((num_rows, seed))
      raise Enough

  asked = []
  rows = Many(np.ones((3, 1)), np.ones(3), np.ones(3))
  for named in ({}, {"num_rows": 7, "seed": 5}):
    with pytest.raises(Enough):
      losses.weigh("huber", [parse("x")], rows, text=str, **named)
  assert asked == [(4096, 0), (7, 5)]
