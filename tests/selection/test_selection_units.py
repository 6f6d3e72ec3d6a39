"""Parts of the selection by themselves: what each computes, by hand or NumPy, and where its limits lie."""

import dataclasses
import math
from types import SimpleNamespace

from hand_made_rows import parse, rows_of
import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.errors import InputError
from symformer_jax.language import expression, programs
from symformer_jax.language.tidy import tidy
from symformer_jax.selection import choice, cross_validation, noise, rounding, scoring

# --- scoring ---------------------------------------------------------------------------------------------------------


def test_the_factor_is_that_of_weighted_least_squares_whatever_the_unit(rng):
  x, weights = rng.uniform(1, 4, (30, 1)), rng.uniform(0.1, 2, 30)
  values = x[:, 0] ** 2
  y = 3 * values + rng.normal(size=30)
  expected = np.sum(weights * values * y) / np.sum(weights * values**2)
  for unit in (1.0, 1e120):
    node = scoring.with_factor(parse("x**2" if unit == 1 else "1e120*x**2"), x, y, weights)
    np.testing.assert_allclose(scoring.evaluate(node, x), expected * values, rtol=1e-12)


def test_errors_too_large_to_square_have_no_r2():
  scores = scoring.score(np.array([1e200, 1.0, 2.0]), np.array([7.0, 1.0, 3.0]))
  assert scores.mse == math.inf and scores.r2 is None and scores.num_undefined == 0
  assert scoring.evaluate(parse("x"), np.zeros((0, 1))).shape == (0,)
  assert scoring.score(np.zeros(2), np.array([0.0, 1.0]), np.array([0.0, 2.0])).relative_error == 1.0


# --- rounding --------------------------------------------------------------------------------------------------------


class Local:
  """A local model of given values and derivatives: f(theta) [N]."""

  def __init__(self, f, jacobian, theta, **fields):
    self.f, self.jacobian, self.theta = f, np.asarray(jacobian, float), np.array(theta, float)
    self.is_free, self.weights = np.ones(len(theta), bool), np.ones(len(self.jacobian))
    self.x = np.arange(len(self.jacobian), dtype=float)[:, None]
    self.sum_of_squares, self.noise, self.config, self.node, self.before = 0.0, 1e-9, DEFAULT.selection, None, f(theta)
    vars(self).update(fields)

  def loss(self, theta):
    return self.sum_of_squares + float(np.sum((self.f(theta) - self.before) ** 2))


def test_which_constants_are_factors():
  node = parse("2.5*x + 3.5*sin(4.5*z + 5.5) + 6.5 + 2*z")
  found = dict(zip(programs.fitted_values(node), rounding._factor_flags(node), strict=True))
  assert found == {2.5: True, 3.5: True, 4.5: True, 5.5: False, 6.5: False}


def test_standard_errors_need_a_row_more_than_constants_and_constants_that_differ(rng):
  node, x = parse("2.1*x + 1.3"), rng.uniform(1, 4, (4, 1))
  y = 2 * x[:, 0] + 1 + 0.1 * rng.normal(size=4)
  for weights, is_known in (([1, 1, 1, 1], True), ([1, 1, 1, 0], True), ([1, 1, 0, 0], False)):
    found = rounding.standard_errors(node, x, y, np.array(weights, float))
    curve = rounding.curve_errors(node, x, y, np.array(weights, float), x)
    assert (found != [None, None]) is is_known and (curve is not None) is is_known
    assert not is_known or all(error > 0 for error in found)
  x = rng.uniform(0.5, 4, (20, 1))
  redundant, data = parse("1.2*exp(0.7*x + 0.4)"), (x, np.exp(x[:, 0]) + rng.normal(size=20), np.ones(20))
  assert rounding.standard_errors(redundant, *data) == [None] * 3
  assert rounding.curve_errors(redundant, *data, x) is None


def test_where_a_formula_has_no_derivative_its_curve_has_no_error(rng):
  x = rng.uniform(0.5, 4, (20, 1))
  found = rounding.curve_errors(parse("1.2*log(x) + 0.3"), x, np.log(x[:, 0]) + 0.1 * rng.normal(size=20), np.ones(20),
                                np.array([[2.0], [-1.0]]))
  assert found[0] > 0 and np.isnan(found[1])


def test_an_undefined_formula_has_no_exact_forms():
  x = np.linspace(0, 4, 9)[:, None]
  assert rounding.exact_forms(parse("1.5*log(x - 3.2)"), x, np.arange(9.0), np.ones(9)) == [None, None]


def test_a_direction_along_which_nothing_changes(rng):
  a, b = np.linalg.qr(rng.normal(size=(12, 2)))[0].T
  for columns, expected in (
    ([a, 2 * a], [2, -1]), ([1e9 * a, 1e6 * a], [1, -1e3]), ([a, 0 * a], [0, 1]), ([a, b, a + b], [1, 1, -1])):
    found = rounding._null_direction(np.stack(columns, axis=1))
    np.testing.assert_allclose(found / found[-1], np.array(expected) / expected[-1], atol=1e-6)
  # The smallest singular value of a and a + e*b is half of e.
  for share in (1e-8, 1.5e-8):
    assert rounding._null_direction(np.stack([a, a + share * b], axis=1)) is not None
  for columns in ([a, b], [a, a + 3e-8 * b], [a, a * np.inf]):
    with np.errstate(invalid="ignore"):
      assert rounding._null_direction(np.stack(columns, axis=1)) is None
  assert rounding._null_direction(np.zeros((5, 0))) is None
  few = rng.normal(size=(1, 3))  # fewer rows than constants
  np.testing.assert_allclose(few @ rounding._null_direction(few), 0, atol=1e-12)


def test_a_constant_is_held_where_the_error_stays():
  local = Local(lambda theta: theta, np.eye(2), [2.0, 3.0], noise=4.0, sum_of_squares=1.0)
  most = 1.0 + DEFAULT.selection.redundant_share * 4.0
  for loss, theta, is_taken in ((most, [2.0, 5.0], True), (np.nextafter(most, 2), [2.0, 6.0], False),
                                (0.0, [2.0, math.inf], False), (0.0, [math.nan, 1.0], False)):
    local.is_free[:] = True
    local.loss = lambda theta, loss=loss: loss
    assert rounding._accept(local, 1, np.array(theta)) is is_taken
    assert list(local.is_free) == [True, not is_taken] and local.theta[1] == 5.0


@pytest.mark.parametrize(("flags", "expected"), [
  ([True, True], [-1.0, math.sqrt(3) * 2]), ([False, True], [-3 * 4.0, 1.0]),
  ([False, False], [-1.0, math.sqrt(3) * 2])])
@pytest.mark.parametrize("unit", [1.0, 1e6])
def test_a_factor_that_only_rescales_becomes_one_the_largest_share_first(flags, expected, unit, monkeypatch):
  """a*b**2*g(x): with log a as much and log b twice as much, a takes the larger part."""
  monkeypatch.setattr(rounding, "_factor_flags", lambda node: flags)
  values = unit * np.linspace(1, 2, 7)
  local = Local(lambda t: t[0] * t[1] ** 2 * values, np.stack([4 * values, -3 * 4 * values], axis=1), [-3.0, 2.0],
                noise=unit**2 * 1e-9)
  assert rounding._fix_factor(local)
  np.testing.assert_allclose(local.theta, expected, rtol=1e-9)
  assert list(local.is_free) == [expected[0] != -1, expected[1] != 1]


def test_what_does_not_rescale_is_no_factor(monkeypatch):
  monkeypatch.setattr(rounding, "_factor_flags", lambda node: [True, True])
  x = np.linspace(1, 2, 7)
  local = Local(lambda t: t[0] * x + t[1], np.stack([x, np.ones(7)], axis=1), [3.0, 2.0])
  assert not rounding._fix_factor(local) and not rounding._fix_summand(local) and local.is_free.all()


def test_what_looks_redundant_and_is_not_stays(monkeypatch):
  monkeypatch.setattr(rounding, "_factor_flags", lambda node: [True, True])
  ones = np.ones((7, 2))
  local = Local(lambda t: np.full(7, t[0] ** 3 - t[1] ** 2), ones, [3.0, 3.0])
  assert rounding._fix_factor(local) is False and rounding._fix_summand(local) is False and local.is_free.all()


def test_a_summand_that_others_make_up_for_becomes_zero_the_largest_share_first():
  """a*g + b*3*g: of equal effects a takes three times as much."""
  x = np.linspace(1, 2, 7)
  for unit in (1.0, 1e-6):
    local = Local(lambda t, unit=unit: unit * (t[0] + 3 * t[1]) * x, unit * np.stack([x, 3 * x], axis=1), [3.0, 2.0],
                  noise=unit**2 * 1e-9)
    assert rounding._fix_summand(local)
    np.testing.assert_allclose(local.theta, [0.0, 3.0], atol=1e-12)
    assert list(local.is_free) == [False, True]


@pytest.mark.parametrize(("x", "weights", "is_fixed"), [
  ([[1, 2], [1, 2], [3, 4]], [1, 1, 1], False), ([[1, 2], [5, 6], [3, 4]], [1, 1, 1], True),
  ([[1, 2], [5, 6], [3, 4]], [1, 1, 0], False)])
def test_as_many_points_as_constants_make_no_summand_redundant(x, weights, is_fixed):
  local = Local(lambda t: np.full(3, t[0] + t[1]), np.ones((3, 2)), [3.0, 2.0], x=np.array(x, float),
                weights=np.array(weights, float))
  assert rounding._fix_summand(local) is is_fixed


@pytest.mark.parametrize(("value", "stderr", "expected"), [
  (2.03, 0.02, 2.0), (2.06, 0.02, None), (2.49, 0.01, 2.5), (2.49, 0.06, None), (2.05, 0.09, 2.0), (2.05, 0.11, None),
  (0.3, 0.2, 0.0), (0.6, 0.2, None), (-1.52, 0.01, -1.5), (1.01, math.inf, None), (1.01, 0.0, None)])
def test_simple_values_within_reach(value, stderr, expected):
  """Two and a half standard errors, which must be less than a quarter of the way to the next simple value."""
  local = Local(lambda t: t, np.eye(1), [value])
  found = rounding._nearest_simple(local, np.array([[stderr**2]]), 2.5)
  assert found == (None if expected is None else (0, expected))


def test_of_several_the_nearest_in_standard_errors_is_the_first():
  local = Local(lambda t: t, np.eye(4), [7.01, 1 + 2**-6, 2 + 2**-5, 3 + 2**-6], is_free=np.array([0, 1, 1, 1], bool))
  assert rounding._nearest_simple(local, np.diag([1e-4, 1e-3, 1e-4]), 2.5) == (2, 2.0)
  assert rounding._nearest_simple(local, np.diag([1e-3, 1e-4, 1e-4]), 2.5) == (1, 1.0)
  assert rounding._nearest_simple(local, np.diag([1e-4, 1e-4, 1e-4]), 2.5) == (1, 1.0)  # of equals the first


@pytest.mark.parametrize(("law", "found", "wide"), [
  (lambda x: 2.04 * x, "2.04*x", "2.04*x"), (lambda x: 1.04 * x, "1.04*x", "x"),
  (lambda x: x**2.02, "x**2.02", "x**2"), (lambda x: 3.27 * x**1.5 + 0.2, "3.27*x**1.5 + 0.2", "3.3*x**1.5")])
def test_beyond_the_first_reach_are_values_that_make_a_formula_simpler(law, found, wide):
  x = np.linspace(1, 3, 40)[:, None]
  y = law(x[:, 0]) + 0.1 * np.tile([1.0, -1.0], 20)
  node = rounding.refit_constants(parse(found), x, y, np.ones(40))
  for reach, expected in ((None, found), (2.5, found), (6.0, wide)):
    snapped = tidy(rounding.snap_constants(node, x, y, np.ones(40), num_errors=reach))
    assert [part.token for part in expression.walk(snapped)] == [
      part.token for part in expression.walk(tidy(parse(expected)))]


def test_undetermined_constants_may_cost_a_hundredth_of_the_noise_each(monkeypatch, rng):
  x = rng.uniform(0.5, 4, (20, 1))
  node, y = parse("1.2*exp(0.7*x + 0.4)"), np.exp(x[:, 0]) + rng.normal(size=20)
  asked = []
  monkeypatch.setattr(rounding, "_round_one_by_one", lambda local, allowed: asked.append(allowed))
  rounding.round_constants(node, x, y, np.ones(20))
  squares = np.sum((scoring.evaluate(node, x) - y) ** 2)
  assert asked == [pytest.approx(squares * (1 + DEFAULT.selection.digit_errors**2 / 17), rel=1e-12)]


def test_digits():
  for value, count in ((0.0, 1), (1.23456789012345, 15), (1 / 3, 15), (0.1 + 0.2, 1), (-1200.0, 2)):
    assert rounding._num_digits(value) == count
  assert rounding._fewest_digits(2.345, 0.5) == 2.0 and rounding._fewest_digits(2.5, 0.5) == 2.0
  assert rounding._fewest_digits(1 / 3, 1e-15) == 0.333333333333333 and rounding._fewest_digits(1 / 3, 1e-16) == 1 / 3
  assert rounding._fewest_digits(-2.347, 0.01) == -2.35


# --- choice ----------------------------------------------------------------------------------------------------------


def line_of(text, mse=0.5, complexity=None):
  node = parse(text)
  return choice.Line(node, complexity or expression.complexity(node), mse)


def contest_of(lines, errors, *, num_points=0.0, oddities=None, config=DEFAULT.choice):
  """A contest of lines whose squared errors on rows not seen are given, as shares of the variance."""
  contest = object.__new__(choice._Contest)
  errors = [np.asarray(e, float) for e in errors]
  contest._lines, contest._rows = lines, np.zeros(len(errors[0]))
  contest._num_points, contest._config = num_points, config
  contest.errors, contest.weights, contest._variance = errors, np.ones(len(errors[0])), 1.0
  contest.shares = [float(np.mean(e)) for e in errors]
  contest._oddities = oddities or [0] * len(lines)
  contest._prices = [config.nats_per_node * line.complexity + odd * config.odd_nats
                     for line, odd in zip(lines, contest._oddities, strict=True)]
  return contest


def test_the_gain_is_that_of_its_definition(rng):
  """Normal errors, the second line a little better: every row counts; N/2*log of the ratio, less prices."""
  config, residual = DEFAULT.choice, rng.normal(size=4000)
  more = residual + 0.3 * rng.normal(size=4000)
  lines = [line_of("x", complexity=3), line_of("x*z", complexity=7)]
  contest = contest_of(lines, [more**2, residual**2])
  said = 2000 * math.log(np.mean(more**2) / np.mean(residual**2))
  assert contest.num_points(1, 0) == 4000
  assert contest.gain(1, 0) == pytest.approx(said - 4 * config.nats_per_node, rel=1e-9) == -contest.gain(0, 1)
  odd = contest_of(lines, [more**2, residual**2], oddities=[0, 2])
  asked = 2 * config.odd_nats + 4000 * math.log(config.odd_gain)
  assert odd.gain(1, 0) == pytest.approx(contest.gain(1, 0) - asked, rel=1e-9)


def test_a_gain_on_one_row_of_many_is_worth_few():
  errors = np.ones(100)
  needle = np.concatenate([[1000.0], errors[1:]])
  contest = contest_of([line_of("x"), line_of("x*z")], [needle, errors])
  # L = log(10.99), V about (1000/10.99)**2/100.
  worth = 100 * 4 * math.log(10.99) / np.mean((needle / 10.99 - errors) ** 2)
  assert contest.num_points(1, 0) == pytest.approx(worth, rel=1e-9) and worth < 13
  assert contest_of([line_of("x"), line_of("x*z")], [needle, errors], num_points=40).num_points(1, 0) == 40
  assert contest_of([line_of("x"), line_of("x")], [errors, errors]).num_points(1, 0) == 100


def test_what_is_undefined_on_a_fold_gains_nothing():
  contest = contest_of([line_of("x"), line_of("x*z")], [[1.0, 1.0], [0.1, math.inf]])
  assert contest.gain(1, 0) == -math.inf and contest.gain(0, 1) == math.inf and contest.gain(1, 1) == 0


def test_what_chance_is_asked_of(monkeypatch):
  asked = []
  monkeypatch.setattr(noise, "is_beyond_chance", lambda **given: asked.append(given) or True)
  rows, config = rows_of([[1, 2], [2, 5], [4, 3]], [1.0, 2, 6], [1, 1, 2]), DEFAULT.choice
  curve, straight, constant = line_of("2.5*sin(x) + 1", 0.1), line_of("2*x - 3*z + 1", 0.2), line_of("4.2", 9.9)
  for line, base in ((curve, straight), (straight, constant), (curve, line_of("x", 0.3)), (line_of("x"), constant)):
    assert choice.is_beyond_chance(line, base, rows, num_points=17, config=config)
  assert not choice.is_beyond_chance(curve, line_of("x", 0.0), rows, num_points=17)
  frequencies = [given.pop("log_frequencies") for given in asked]
  assert frequencies == [0, 0, 0, 0]  # 4 - 1 = 3 radians are less than half a turn
  variance = np.average((rows.y - np.average(rows.y, weights=rows.weights)) ** 2, weights=rows.weights)
  common = {"num_points": 17, "num_columns": 2, "config": config}
  assert asked == [
    {"share": 0.1 / 0.2, "num_constants": 2, "base_constants": 3, "line_columns": 0, "is_base_constant": False,
     "further_nodes": curve.complexity - straight.complexity, **common},
    {"share": 0.2 / variance, "num_constants": 3, "base_constants": 1, "line_columns": 2, "is_base_constant": True,
     "further_nodes": straight.complexity - 1, **common},
    {"share": 0.1 / 0.3, "num_constants": 2, "base_constants": 1, "line_columns": 0, "is_base_constant": False,
     "further_nodes": curve.complexity - 1, **common},
    {"share": 0.5 / variance, "num_constants": 0, "base_constants": 1, "line_columns": 1, "is_base_constant": True,
     "further_nodes": 0, **common}]


def test_a_sign_and_a_number_leave_a_line_straight():
  assert all(choice.is_linear(parse(text)) for text in ("-2*x + 3", "-(2*z)", "-3", "x - z"))
  assert not any(choice.is_linear(parse(text)) for text in ("-(x*z)", "2*x*z", "-sin(x)", "3*x + x*x*x"))


def lines_of(*figures):
  return [SimpleNamespace(complexity=c, r2=r2, mse=1 if r2 is None else 1 - r2) for c, r2 in figures]


def test_the_simple_line_may_leave_just_so_much_and_must_have_a_figure():
  front = lines_of((1, None), (3, 0.5), (3, 0.6), (9, 0.75))  # twice what the last leaves is a half
  assert choice.simplest_good(front, front[3]) is front[2]
  assert choice.simplest_good(front[:2] + front[3:], front[3]) is front[1]
  assert choice.simplest_good(front, front[0]) is front[0]
  near = lines_of((3, 0.49), (9, 0.75))
  assert choice.simplest_good(near, near[1]) is near[1]


def test_numbers_of_lines():
  front = lines_of((1, 0.0), (3, 0.9), (9, 0.99))
  assert choice.pick(front, front[0], "accurate", argument="s") is front[2]
  assert choice.pick(front, front[0], -3, argument="s") is front[0]
  with pytest.raises(InputError, match="s: expected a line of the front, 0 to 2, got 123456789"):
    choice.pick(front, front[0], "123456789", argument="s")
  with pytest.raises(InputError, match="s: unknown choice '1234567890'"):
    choice.pick(front, front[0], "1234567890", argument="s")


@pytest.mark.parametrize(("num_better", "is_taken"), [(70, False), (71, True)])
def test_more_than_a_half_beyond_doubt(num_better, is_taken):
  """Of a hundred rows four standard errors are seventy; what predicts as well predicts no better."""
  constant = np.ones(100)
  errors = [constant, np.where(np.arange(100) < num_better, 0.5, 1.0)]
  assert choice._nearer_to_most(errors, [1], 0, DEFAULT.choice) == int(is_taken)


def choice_stubbed(monkeypatch, shares, *, lengths, beyond, front=("1.5", "x", "x*z"), one_error=None):
  """`choose` on shares of variance that rows not seen leave, and lengths and chances that are given."""
  rows = rows_of([[1, 2], [2, 5], [4, 3], [6, 1]], [1.0, 2, 6, 3])
  variance = scoring.weighted_variance(rows.y, rows.weights)
  found = iter(shares)
  monkeypatch.setattr(cross_validation, "squared_errors", lambda node, rows, folds: np.full(4, next(found) * variance))
  lines = [line_of(text) for text in front]
  monkeypatch.setattr(choice._Contest, "gain", lambda contest, i, base: lengths[base] - lengths[i])
  monkeypatch.setattr(choice, "is_beyond_chance", lambda line, base, *rest, **named: (
    front[lines.index(line)], front[lines.index(base)]) in beyond)
  return front[choice.choose(lines, rows, num_points=4, seed=0)]


# Squared errors of a hundred rows, each 1 more or less than 1: a standard error of their mean is 0.1.
ERRORS = np.array([0.0, 2.0] * 50)


@pytest.mark.parametrize(("texts", "shifts", "expected"), [
  (("0.7*sin(1.3*x) + 2", "2*x + 1"), (-0.11, 0.0), 0), (("0.7*sin(1.3*x) + 2", "2*x + 1"), (-0.09, 0.0), 1),
  (("0.7*sin(1.3*x) + 2", "2*x + 1"), (0.1, 0.0), 1),
  # Better at all is enough for what is no longer, but not for what leaves a column out.
  (("2*sqrt(x)", "2*x + 1"), (-0.01, 0.0), 0), (("2*sqrt(x)", "2*x + 1"), (0.01, 0.0), 1),
  (("sin(x)/x", "2*x + 1"), (-0.01, 0.0), 0), (("2*sin(x) + 1", "2*x + 1"), (-0.01, 0.0), 1),  # five nodes, and six
  (("2*sqrt(x)", "2*x + 3*z + 1"), (-0.01, 0.0), 1), (("2*sqrt(x)*z", "2*x + 3*z + 1"), (-0.01, 0.0), 0),
  # The straight line that predicts best is what is compared with; a bare mean is none.
  (("0.7*sin(1.3*x) + 2", "2*x + 1", "3*z + 1"), (-0.09, 0.02, 0.0), 2),
  (("0.7*sin(1.3*x) + 2", "1.5"), (-0.01, 0.0), 0), (("2*x + 1", "2*x + 3*z + 1"), (0.2, 0.0), 0),
  (("0.7*sin(1.3*x) + 2", "2*x + 1"), (0.1, np.inf), 0),
  # Of three coefficients thirty rows are asked for.
  (("0.7*sin(1.3*x) + 2", "2*x + 3*z + 1"), (0.1, 0.0), 1)])
def test_a_formula_stands_where_it_is_clearly_better_than_a_straight_line(texts, shifts, expected):
  lines = [line_of(text) for text in texts]
  contest = contest_of(lines, [(ERRORS if i == 0 else np.ones(100)) + shift for i, shift in enumerate(shifts)])
  taken = {num_rows: choice._or_straight_line(contest, lines, 0, num_rows=num_rows, config=DEFAULT.choice)
           for num_rows in (100, 30, 29, 19)}
  assert taken[100] == taken[30] == expected and taken[19] == 0
  assert taken[29] == (0 if "2*x + 3*z + 1" in texts else expected)


@pytest.mark.parametrize(("shares", "lengths", "beyond", "expected"), [
  ((1.0, 0.4, 0.3), (5.0, 4.0, 3.0), {("x", "1.5"), ("x*z", "x")}, "x*z"),
  ((1.0, 0.4, 0.3), (5.0, 4.0, 3.0), {("x", "1.5"), ("x*z", "1.5")}, "x"),
  ((1.0, 0.4, 0.3), (5.0, 4.0, 4.0), {("x", "1.5"), ("x*z", "x")}, "x"),  # no shorter
  # The constant is the shorter description: an R2 above a tenth, beyond chance, is worth a formula all the same.
  ((1.0, 0.85, 0.88), (5.0, 6.0, 7.0), {("x", "1.5"), ("x*z", "1.5")}, "x"),
  ((1.0, 0.95, 0.85), (5.0, 6.0, 7.0), {("x", "1.5"), ("x*z", "1.5")}, "x*z"),
  # A straight line beyond chance is worth it at any R2, other formulas are not.
  ((1.0, 0.85, 0.85), (5.0, 6.0, 7.0), {("x*z", "1.5")}, "x*z"),
  ((1.0, 0.95, 0.95), (5.0, 6.0, 7.0), {("x", "1.5"), ("x*z", "1.5")}, "x"),
  ((1.0, 0.95, 0.95), (5.0, 6.0, 7.0), {("x*z", "1.5")}, "1.5"),
  ((1.0, 1.05, 0.95), (5.0, 6.0, 7.0), {("x", "1.5"), ("x*z", "1.5")}, "1.5"),
  ((1.0, math.inf, 0.85), (5.0, 6.0, 7.0), {("x", "1.5")}, "1.5")])
def test_which_line_is_chosen(shares, lengths, beyond, expected, monkeypatch):
  monkeypatch.setattr(choice, "_nearer_to_most", lambda errors, among, best, config: best)
  assert choice_stubbed(monkeypatch, shares, lengths=lengths, beyond=beyond) == expected


def test_lines_come_from_the_constant_on_in_whatever_order_they_are_given(monkeypatch):
  found = choice_stubbed(monkeypatch, (0.3, 1.0, 0.4), lengths=(3.0, 5.0, 4.0), front=("x*z", "1.5", "x"),
                         beyond={("x", "1.5"), ("x*z", "x")})
  assert found == "x*z"


# --- cross-validation ------------------------------------------------------------------------------------------------


def test_folds_are_drawn_by_the_seed():
  rows = rows_of(np.random.default_rng(0).normal(size=40), np.arange(40.0))
  first, again, other = (cross_validation.draw_folds(rows, 5, seed=seed) for seed in (3, 3, 4))
  assert np.array_equal(first, again) and not np.array_equal(first, other)
  series = rows_of(np.arange(12.0)[::-1], np.arange(12.0))
  for num_blocks, expected in ((1, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]), (2, [0, 0, 1, 1, 2, 2] * 2)):
    config = dataclasses.replace(DEFAULT.choice, blocks_per_fold=num_blocks)
    found = cross_validation.draw_folds(series, 3, seed=0, config=config)
    np.testing.assert_array_equal(found[::-1], expected)


def test_one_standard_error_of_the_difference():
  weights = np.array([1.0, 2, 3, 1])
  difference = np.array([1.0, -1, 0.5, 2])
  mean = np.average(difference, weights=weights)
  error = math.sqrt(np.mean((weights / np.mean(weights) * (difference - mean)) ** 2) / 3)
  for shift, is_within in ((error - mean - 1e-9, True), (error - mean + 1e-9, False)):
    assert bool(cross_validation.is_within_one_error(difference + shift + 5, np.full(4, 5.0), weights)) is is_within
  assert not cross_validation.is_within_one_error(np.array([np.inf, 0]), np.zeros(2), np.ones(2))
  assert cross_validation.is_within_one_error(np.zeros(1), np.zeros(1), np.ones(1))


def test_of_equally_simple_formulas_the_better_and_of_none_that_predict_the_first():
  errors = [np.array([1.0, 3.0]), np.array([3.0, 0.9]), np.array([9.0, 9.0])]
  assert cross_validation.simplest_within_one_error(errors, [5, 5, 1], np.ones(2)) == 1
  # Weights decide which is best.
  assert cross_validation.simplest_within_one_error(errors, [5, 5, 1], np.array([9.0, 0.1])) == 0
  assert cross_validation.simplest_within_one_error([np.full(2, np.inf)] * 2, [5, 1], np.ones(2)) == 0
