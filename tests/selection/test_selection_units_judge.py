"""What formulas do between rows, and the judge of the selection, part by part: limits, and figures by hand or NumPy."""

import dataclasses
import math
from types import SimpleNamespace

from hand_made_rows import NAMES, parse, rows_of
import numpy as np
import pytest

from symformer_jax.engine import criteria
from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import expression
from symformer_jax.language.tidy import tidy
from symformer_jax.selection import between_rows, frequencies, rounding, scoring, select, soundness, writing
from symformer_jax.selection.judge import Finalist, Judge

# --- soundness -------------------------------------------------------------------------------------------------------

CONFIG = dataclasses.replace(DEFAULT.choice, num_segments=5, points_between=2)


def test_segments_of_one_column_join_its_distinct_rows():
  found = between_rows.make_segments(rows_of([4.0, 1, 2, 2], [10.0, 20, 12, 14]), config=CONFIG)
  np.testing.assert_array_equal(found.begin[:, 0], [1, 2])
  np.testing.assert_array_equal(found.end[:, 0], [2, 4])
  np.testing.assert_allclose(found.points[..., 0], [[1, 4 / 3, 5 / 3, 2], [2, 8 / 3, 10 / 3, 4]])
  assert (found.low, found.high, found.num_rows, found.is_near.tolist()) == (0.0, 30.0, 3, [True, True])


@pytest.mark.parametrize("num_columns", [1, 2, 3])
def test_distinct_rows_are_those_of_numpy(num_columns):
  x = np.random.default_rng(num_columns).integers(-2, 3, (60, num_columns)).astype(float)
  np.testing.assert_array_equal(between_rows._distinct(x), np.unique(x, axis=0))
  assert between_rows._distinct(x[:0]).shape == (0, num_columns)


def test_of_very_many_rows_some_segments_are_looked_at():
  x = np.arange(22.0)
  found = between_rows.make_segments(rows_of(x, x), config=CONFIG)
  assert len(found.begin) == 4 * 5 and np.all(np.diff(found.begin[:, 0]) > 0) and found.is_near.all()
  np.testing.assert_array_equal(found.end - found.begin, np.ones((20, 1)))
  assert len(between_rows.make_segments(rows_of(x[:21], x[:21]), config=CONFIG).begin) == 20
  other = between_rows.make_segments(rows_of(np.arange(99.0), np.arange(99.0)), config=CONFIG, seed=1)
  assert other.begin.tolist() != between_rows.make_segments(rows_of(np.arange(99.0), np.arange(99.0)), config=CONFIG
                                                         ).begin.tolist()


def test_segments_of_two_columns_join_neighbours_in_units_of_their_spread_and_any_rows():
  rng = np.random.default_rng(0)
  x = rng.uniform(0, 1, (30, 2)) * [1, 1e6]
  found = between_rows.make_segments(rows_of(x, x[:, 0]), config=CONFIG)
  scaled = x / x.std(axis=0)
  assert found.is_near.sum() == 5 and not found.is_near[5:].any() and 5 < len(found.begin) <= 10
  for begin, end in zip(found.begin[:5], found.end[:5], strict=True):
    distance = np.linalg.norm(scaled - begin / x.std(axis=0), axis=1)
    np.testing.assert_array_equal(x[np.argsort(distance)[1]], end)
  assert not np.any(np.all(found.begin == found.end, axis=1))
  assert len(between_rows.make_segments(rows_of([[1, 2], [1, 2]], [1, 2])).begin) == 0
  constant = np.column_stack([x[:, 0], np.ones(30)])
  assert between_rows.make_segments(rows_of(constant, x[:, 0]), config=CONFIG).is_near.sum() == 5


def test_of_very_many_rows_of_two_columns_some_are_drawn_each_once():
  x = np.random.default_rng(0).uniform(0, 1, (25, 2))
  found = between_rows.make_segments(rows_of(x, x[:, 0]), config=dataclasses.replace(
    CONFIG, max_neighbours=20, num_segments=20))
  assert found.is_near.sum() == 20 == len(np.unique(found.begin[:20], axis=0))
  assert not np.any(np.all(found.begin == found.end, axis=1))


@pytest.mark.parametrize(("values", "expected"), [
  ([1.0, 0.3], False), ([1.0, 0.25], True), ([1.0, 0.2], True), ([-1.0, -0.3], False), ([0.3, -1.0], True),
  ([1.0, np.nan], True), ([1.0, np.inf], True), ([0.0, 0.0], True)])
def test_where_a_zero_may_be(values, expected):
  assert soundness._may_vanish(np.array([values]), DEFAULT.choice)[0] == expected


@pytest.mark.parametrize(("text", "expected"), [
  ("1/(x - 3)", ["x - 3"]), ("1/(x - 3)**2 + x**(-1.5)", ["x - 3", "x"]), ("1/sqrt((x - 3)**3)", ["x - 3"]),
  ("tan(x)", ["cos(x)"]), ("cot(x)", ["sin(x)"]), ("x**1.5 + x**2", []), ("x**0.25", []), ("x**z", [])])
def test_denominators(text, expected):
  assert set(soundness._denominators(parse(text))) == {parse(each) for each in expected}


def test_the_smallest_is_enclosed_to_ten_digits():
  segments = between_rows.make_segments(rows_of([1.0, 4, 5], [1.0, 2, 3]), config=CONFIG)
  which, shares = np.array([0, 1]), np.broadcast_to(np.linspace(0, 1, 4), (2, 4))
  node = parse("x - 3.2")
  size = np.abs(between_rows.values_at(node, soundness._points_at(segments, which, shares)))
  found = soundness._smallest(node, segments, which, shares, size)
  np.testing.assert_allclose(found.mean(axis=1), [2.2 / 3, 0], atol=1e-10)
  assert np.all(np.diff(found, axis=1) < 1e-9) and np.all(found[:, 0] <= [2.2 / 3, 0])
  with_nan = np.where(size == size.min(axis=1, keepdims=True), np.nan, size)
  assert np.isfinite(soundness._smallest(node, segments, which, shares, with_nan)).all()


def test_a_zero_is_approached_from_both_sides():
  found = soundness._with_approach(np.array([[0.0, 0.5, 1.0]]), np.array([[0.4, 0.6]]))
  assert found.shape == (1, 3 + 2 * 66) and np.all(np.diff(found) >= 0) and np.all((found >= 0) & (found <= 1))
  for distance in (1e-1, 1e-14):
    assert all(np.any(np.isclose(found - 0.5, sign * distance, rtol=0.01)) for sign in (1, -1))


def test_how_far_a_wave_turns():
  uneven = between_rows.make_segments(rows_of([0.0, 1, 2, 4, 14], np.arange(5.0)))
  assert frequencies.turn(parse("sin(3*x)"), uneven) == pytest.approx(3 * (1 + 1 + 2) / 3)  # without the gap of ten
  two = between_rows.make_segments(rows_of([0.0, 2], [1.0, 2]))
  assert frequencies.turn(parse("sin(3*x)"), two) == pytest.approx(6)
  plane = between_rows.make_segments(rows_of([[0, 0], [1, 2], [3, 1]], [1.0, 2, 3]))
  whole = dataclasses.replace(CONFIG, phase_edges=0.0)
  assert frequencies.turn(parse("cos(2*x + z)"), plane, config=whole) == pytest.approx(7 / 2)
  assert frequencies.turn(parse("sin(log(x - 1))"), uneven) == math.inf


def test_a_wave_turns_any_number_of_times_beside_a_pole_of_its_phase(rng):
  x = rng.uniform(-5, 5, (200, 2))
  segments = between_rows.make_segments(rows_of(np.vstack([x, [1.0, 1e-9]]), np.arange(201.0)))
  assert frequencies.turn(parse("cos(x - 1/z)"), segments) < 0.2
  assert frequencies.is_alias(parse("cos(x - 1/z)"), segments, config=dataclasses.replace(CONFIG, phase_edges=0.0))
  assert frequencies.is_alias(parse("cos(500*x - 1/z)"), segments)


def test_half_a_turn_is_no_alias():
  even = between_rows.make_segments(rows_of(np.arange(6.0), np.arange(6.0)))
  for speed, is_alias in ((math.pi, False), (math.pi * (1 + 5e-7), False), (math.pi * (1 + 1.5e-6), True)):
    assert frequencies.is_alias(parse(f"x + sin({speed!r}*x)"), even) is is_alias
  assert frequencies.is_alias(parse("sin(2*x)"), even, config=dataclasses.replace(CONFIG, half_turn=1.9))


@pytest.mark.parametrize(("column", "expected"), [
  ([0, 1, 2, 3], 1.0), ([3, 0, 1, 2], 1.0), ([0, 1, 3, 4], 1.0), ([0, 1, 2.009], 1.0), ([0, 1, 2.011], None),
  ([0, 1, 1, 2], None), ([0, 1], None), ([0, 1, 2.5], None), ([0, 2, 4.5, 6], None)])
def test_even_steps(column, expected):
  found = frequencies.even_step(np.array(column, float)[:, None])
  assert found == (None if expected is None else pytest.approx(expected, rel=0.02))


def test_two_columns_have_no_step():
  assert frequencies.even_step(np.arange(8.0).reshape(4, 2)) is None


def test_values_that_are_equal():
  x = np.linspace(1, 3, 9)[:, None]  # of a range of 2
  assert frequencies.has_equal_values(parse("x + 0.0000019"), parse("x"), x)
  assert not frequencies.has_equal_values(parse("x + 0.0000021"), parse("x"), x)
  assert not frequencies.has_equal_values(parse("log(x - 2)"), parse("log(x - 2)"), x)
  assert frequencies.has_equal_values(parse("2"), parse("2"), x) and not frequencies.has_equal_values(
    parse("2"), parse("3"), x)


@pytest.mark.parametrize(("text", "slow"), [
  ("sin(1*x)", None), ("sin(5*x)", 5 - 2 * math.pi), ("sin(7*x)", 7 - 2 * math.pi), ("sin(x**2)", None),
  ("sin(-3*x)", None), ("sin(-4*x)", 2 * math.pi - 4)])
def test_fast_waves_are_brought_within_half_a_period(text, slow):
  wave = parse(text)
  found = frequencies._slowed(wave, 0.0, 1.0, 2 * math.pi)
  if slow is None:
    assert found == wave
  else:
    at = np.array([[0.0], [0.5]])
    phases = scoring.evaluate(found.args[0], at)
    assert (phases[1] - phases[0]) * 2 == pytest.approx(slow, abs=1e-9)


@pytest.mark.parametrize("level", [0, 100])  # what lies beside a pole is as far out whatever is added to y
def test_a_pole_is_not_where_the_rows_beside_it_are_missed_by_a_tenth_of_their_distance(level):
  x = np.linspace(-2, 2, 24)
  beside = np.abs(x) < 0.1
  for off, expected in ((0.0, True), (0.5, True), (5.0, False)):
    rows = rows_of(x, 1 / x + level + off * beside)
    assert soundness.is_supported(parse(f"1/x + {level}"), rows, between_rows.make_segments(rows)) is expected


def test_supported_poles_ask_for_rows_on_both_sides_that_rise_and_are_predicted():
  x = np.linspace(-2, 2, 24)
  node = parse("1/x")
  for y, expected in ((1 / x, True), (np.where(x > 0, 1 / x, -0.4), False),
                      (1 / x + np.where(np.abs(x) < 0.1, 5, 0), False)):
    rows = rows_of(x, y)
    assert soundness.is_supported(node, rows, between_rows.make_segments(rows)) is expected
  # What leaves the range of the data away from the pole is not told of by it.
  rows = rows_of(x, 1 / x)
  assert not soundness.is_supported(parse("1/x + 500*exp(-900*(x - 1)**2)"), rows, between_rows.make_segments(rows))
  assert not soundness.is_supported(parse("x"), rows, between_rows.make_segments(rows))


# --- the judge -------------------------------------------------------------------------------------------------------


def judge_of(x, y, *, num_points=None, weights=None, **changes):
  rows = rows_of(x, y, weights)
  return Judge(rows, num_points or len(rows), dataclasses.replace(DEFAULT.selection, **changes), DEFAULT.choice)


def test_the_cost_is_the_description_length_and_the_price_of_oddities(rng):
  x = rng.uniform(1, 3, (30, 2))
  judge = judge_of(x, x[:, 0] * x[:, 1] + 0.1 * rng.normal(size=30), num_points=25.0, nats_per_node=1.7)
  for text, names, constants, oddities in (("1.5*x*z + 0.25", 2, 2, 0), ("x + sin(x*z)", 3, 0, 1)):
    finalist = Finalist(parse(text), judge.score(parse(text)))
    for is_rounded, digits in ((False, None), (True, 2 * constants)):
      fit = criteria.Fit(finalist.scores.mse, finalist.complexity, constants, digits, names * math.log(2))
      expected = criteria.mdl(
        fit, num_points=25.0, variance=np.var(judge.rows.y), nats_per_node=1.7, num_rows=30)
      assert judge.cost(finalist, is_rounded=is_rounded) == pytest.approx(expected + oddities * DEFAULT.choice.odd_nats)
  assert judge.cost_of(parse("1.5*x*z + 0.25")) == judge.cost(
    judge.finalists([parse("1.5*x*z + 0.25")])[0], is_rounded=True)


def test_an_inverse_square_is_a_power(rng):
  judge = judge_of(rng.uniform(1, 3, (9, 3)), np.arange(9.0))
  node = parse("1/x**2 + 1/z**3 + 1/x")
  assert judge._size(Finalist(node, None)) == expression.complexity(node) - 2


def test_points_count_less_where_a_few_large_errors_decide():
  errors = np.zeros(40)
  errors[:20] = np.tile([1.0, -1.0], 10)
  x = np.arange(40.0)
  judge = judge_of(x, errors)
  zero = parse("0*x")
  kurtosis = np.mean(errors**4) / np.mean(errors**2) ** 2
  assert kurtosis == 2.0 and judge.count_effective([expression.number(0.0)]) == 40
  for normal, expected in ((2.0, 40), (1.9, 60)):
    assert judge_of(x, errors, normal_kurtosis=normal).count_effective([expression.number(0.0)]) == expected
  errors[:] = 0
  errors[7], errors[3] = 5.0, 1.0
  judge = judge_of(x, errors, num_points=30)
  kurtosis = np.mean(errors**4) / np.mean(errors**2) ** 2
  assert judge.count_effective([expression.number(0.0)]) == pytest.approx(30 * 3 / kurtosis)
  assert judge_of(x, 2 * x).count_effective([parse("2*x"), zero]) == 40  # met exactly
  assert judge.count_effective([]) == 30


def test_errors_are_those_of_the_simplest_formula_that_is_nearly_as_accurate():
  x = np.arange(1.0, 41.0)
  y = x + np.where(x == 7, 4.0, np.where(x % 2, 0.1, -0.1))
  judge = judge_of(x, y, weights=np.where(x == 7, 1.0, 1.0))
  plain, longer = parse("x"), parse("x + 0.0001*sin(x) + 0.001")
  alone = judge.count_effective([plain])
  assert alone < 10 and judge.count_effective([longer, plain]) == alone


def test_what_could_be_listed_at_no_cost_for_constants():
  judge = judge_of(np.arange(9.0), np.arange(9.0) ** 2, num_points=math.e**2)
  nodes = [parse(text) for text in ("x", "2.5*x + 1.5", "2.5*x + sin(1.5*x)")]
  finalists = [Finalist(node, None) for node in nodes]
  most = judge.config.max_excess
  # One nat for each constant: the second may cost two more than the third, which has two as well.
  for costs, kept in (((0.0, most + 2, most + 2.1), [0, 1]), ((9.0, 5.0, most + 7.0), [0, 1, 2]),
                      ((9.0, 5.0, 99.0), [0, 1])):
    found, their = judge._listable(finalists, costs)
    assert [finalists.index(f) for f in found] == kept and their == [costs[i] for i in kept]
  assert judge._listable([], []) == ([], [])


def test_exact_is_a_share_of_the_variance():
  judge = judge_of(np.arange(9.0), 10 * np.arange(9.0))
  variance = np.var(10 * np.arange(9.0))
  for share, is_exact in ((1e-12, True), (1.1e-12, False)):
    finalist = SimpleNamespace(scores=SimpleNamespace(mse=share * variance))
    assert bool(judge.is_exact(finalist)) is is_exact


def test_undefined_formulas_are_no_finalists_and_equal_ones_are_one():
  judge = judge_of(np.arange(-4.0, 5), np.arange(9.0))
  assert [f.node for f in judge.finalists([parse("x"), parse("log(x)"), parse("x")])] == [parse("x")]


def test_a_list_runs_from_simple_to_accurate_with_the_yardsticks_in_their_places():
  x = np.linspace(1, 9, 30)
  rows = rows_of(x, x**1.5 + 2 + 0.3 * np.cos(40 * x))
  yardsticks = [expression.number(float(rows.y.mean())), parse("3.5*x - 2.5")]
  nodes = [parse("x**1.5 + 2"), parse("x**1.5 + 2*x"), parse("x**1.4 + 2 + 0.001*sin(x)")]
  best, listed, rejected, _ = select.select(nodes, rows, NAMES, seed=0, yardsticks=yardsticks, may_fit=False)
  assert best.node == nodes[0] and best in listed and not rejected
  figures = [(line.complexity, -line.mse) for line in listed]
  assert [line.node for line in listed] == [*yardsticks, nodes[0]] and figures == sorted(figures)
  assert best.mse == pytest.approx(np.mean((x**1.5 + 2 - rows.y) ** 2)) and best.names == NAMES
  [exponent] = best.constants
  assert exponent.value == 1.5 and 0 < exponent.stderr < 0.05


@pytest.mark.parametrize(("x", "expected"), [([-0.2, 0.2, 2, 3, 4], True), ([-0.2, 0.2, 2], False)])
def test_what_supports_a_pole_is_predicted_from_two_other_rows(x, expected):
  rows = rows_of(x, 1 / np.array(x))
  assert soundness.is_supported(parse("1/x"), rows, between_rows.make_segments(rows)) is expected


def test_of_each_fault_the_simplest_that_describes_the_rows_better_before_rounding_is_told():
  rows = rows_of(np.arange(1.0, 9), np.arange(8.0))
  costs = {"1/(x - 1.5)": 3.0, "2/(x - 1.5) + 1": 1.0, "sin(9*x)": 9.0, "sin(8*x)": 2.0, "x": 5.0}
  asked = []

  def cost(finalist, *, is_rounded):
    asked.append(is_rounded)
    return costs[next(text for text in costs if parse(text) == finalist.node)]

  def finalists(nodes):
    return [Finalist(node, scoring.Scores(1.0, 0.5, None, 0)) for node in nodes]
  check = select._SoundnessCheck(
    SimpleNamespace(rows=rows, segments=None, choice=DEFAULT.choice, cost=cost, finalists=finalists), may_fit=True)
  check._faults = {parse("2/(x - 1.5) + 1"): soundness.POLE, parse("1/(x - 1.5)"): soundness.POLE,
                   parse("sin(9*x)"): soundness.ALIAS, parse("sin(8*x)"): soundness.ALIAS}
  found = check.rejected(finalists([parse("x")])[0], NAMES)
  assert [(each.expression, each.reason) for each in found] == [
    ("1/(x - 1.5)", soundness.REASONS[soundness.POLE]), ("sin(8*x)", soundness.REASONS[soundness.ALIAS])]
  assert found[1].r2 == 0.5 and found[1].complexity == 4 and set(asked) == {False}


def test_every_reach_of_simple_values_is_tried(monkeypatch):
  asked = []
  for name in ("remove_redundant", "round_constants"):
    monkeypatch.setattr(rounding, name, lambda node, *data, config: node)
  monkeypatch.setattr(rounding, "snap_constants", lambda node, *data, num_errors=None, config: asked.append(
    num_errors) or (parse("3*x") if num_errors == DEFAULT.selection.snap_errors[-1] else expression.number(3.0)))
  monkeypatch.setattr(writing, "_shortest", lambda node, judge, is_allowed: node)
  found = writing.rounded([parse("2.9*x")], judge_of(np.arange(9.0), np.arange(9.0)), lambda node: True)
  assert asked == list(DEFAULT.selection.snap_errors) and found == [tidy(parse("2.9*x")), tidy(parse("3*x"))]
  for text in ("3*x", "2.9*x"):
    ruled = writing.rounded([parse("2.9*x")], judge_of(np.arange(9.0), np.arange(9.0)),
                            lambda node, text=text: node != tidy(parse(text)))
    # What tidying makes of it may be forbidden, and not what it is made of.
    assert (tidy(parse("3*x")) in ruled) is (text != "3*x") and (parse("2.9*x") in ruled) is (text == "2.9*x")


def test_what_will_not_be_listed_is_not_rewritten(monkeypatch):
  """Of what a simpler one beats only the shortest descriptions are."""
  for name in ("remove_redundant", "round_constants"):
    monkeypatch.setattr(rounding, name, lambda node, *data, config: node)
  monkeypatch.setattr(rounding, "snap_constants", lambda node, *data, num_errors=None, config: node)
  asked = []
  monkeypatch.setattr(writing, "_shortest", lambda node, judge, is_allowed: asked.append(node) or node)
  nodes = [tidy(parse(text)) for text in ("2*x", "2.1*x", "2.2*x", "2*x + 0.1*x**2", "5.0")]
  x = np.arange(9.0)
  for num, expected in ((1, {0, 4}), (2, {0, 1, 4})):
    asked.clear()
    found = writing.rounded(nodes, judge_of(x, 2 * x + 0.3 * np.sin(9 * x), num_rewritten=num), lambda node: True)
    assert found == nodes and asked == [nodes[i] for i in sorted(expected)]


def test_what_digits_make_of_a_formula_must_be_allowed(monkeypatch):
  for name in ("remove_redundant", "snap_constants"):
    monkeypatch.setattr(rounding, name, lambda node, *data, num_errors=None, config: node)
  monkeypatch.setattr(rounding, "round_constants", lambda node, *data, config: parse("2*x**2"))
  node = parse("2.1*x**1.9")
  found = writing.rounded([node], judge_of(np.arange(9.0), np.arange(9.0)), lambda node: "pow2" not in [
    part.token for part in expression.walk(node)])
  assert found == [tidy(node)]


def test_the_shortest_of_what_is_allowed_is_taken(monkeypatch):
  judge = judge_of(np.arange(9.0), np.arange(9.0), rewritings=("powers",))
  rewritten = {"powers": parse("x**3"), "exponentials": parse("2*z")}
  monkeypatch.setattr(writing, "REWRITINGS", {name: lambda node, to=to: to for name, to in rewritten.items()})
  for name in ("round_constants", "refit_constants", "snap_constants"):
    monkeypatch.setattr(rounding, name, lambda node, *data, config: node)
  for costs, refused, expected in (
    ({"x*z": 3.0, "x**3": 2.0}, None, "x**3"), ({"x*z": 1.0, "x**3": 2.0}, None, "x*z"),
    ({"x*z": 3.0, "x**3": 2.0}, "x**3", "x*z"), ({"x*z": 3.0, "x**3": 2.0}, "x*z", "x**3")):
    judge.cost_of = {parse(text): cost for text, cost in costs.items()}.__getitem__
    found = writing._shortest(parse("x*z"), judge, lambda node, refused=refused: not refused or node != parse(refused))
    assert found == parse(expected)
  assert writing._shortest(parse("x*z"), judge, lambda node: False) == parse("x*z")


@pytest.mark.parametrize(("mse", "is_allowed", "is_taken"), [
  (0.5, True, True), (1.0, True, False), (0.5, False, False)])
def test_the_last_fit_is_taken_where_it_is_a_gain_within_the_rules(mse, is_allowed, is_taken, monkeypatch):
  judge = judge_of(np.arange(9.0), np.arange(9.0))
  monkeypatch.setattr(rounding, "refit_constants", lambda node, *data, config: parse("2.5*x"))
  monkeypatch.setattr(rounding, "round_constants", lambda node, *data, config: node)
  judge.score = lambda node: scoring.Scores(mse, None, None, 0)
  given = Finalist(parse("2*x"), scoring.Scores(1.0, None, None, 0))
  found = judge.refitted(given, judge.rows, lambda node: is_allowed)
  assert (found.node == parse("2.5*x")) is is_taken and (found is given) is not is_taken


def test_of_large_tables_what_is_chosen_last_is_chosen_by_its_digits(monkeypatch):
  asked, chosen = [], Judge.chosen
  monkeypatch.setattr(Judge, "chosen", lambda self, nodes, *, is_rounded: asked.append(
    (len(self.rows), is_rounded)) or chosen(self, nodes, is_rounded=is_rounded))
  x = np.linspace(1, 9, 40)
  config = dataclasses.replace(DEFAULT.selection, max_rows=20)
  best, *_ = select.select([parse("2.5*x"), parse("2.5*x + sin(x)")], rows_of(x, 2.5 * x), NAMES, seed=0,
                             may_fit=False, config=config)
  assert asked == [(20, False), (20, True)] and best.node == parse("2.5*x") and best.mse == 0


def test_the_config_that_is_given_reaches_every_step(monkeypatch):
  asked, names = set(), ("remove_redundant", "snap_constants", "refit_constants", "round_constants")
  for name in names:
    monkeypatch.setattr(rounding, name, lambda node, *data, name=name, config=None, num_errors=None: asked.add(
      (name, config)) or node)
  x, config = np.linspace(1, 9, 12), dataclasses.replace(DEFAULT.selection, digit_errors=0.2)
  yardsticks = [expression.number(5.5)]
  select.select([parse("2.5*x")], rows_of(x, 2.5 * x), NAMES, seed=0, yardsticks=yardsticks, config=config,
                num_fit_rows=5)
  assert asked == {(name, config) for name in names}
  asked.clear()
  select.select([parse("2.5*x")], rows_of(x, 2.5 * x), NAMES, seed=0, yardsticks=yardsticks, config=config,
                num_fit_rows=12)
  # Rows that all were fitted to need no other fit, but for the other forms that are tried.
  assert ("round_constants", config) in asked and {each for _, each in asked} == {config}
