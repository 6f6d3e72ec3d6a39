"""Parts of the search for parameters by themselves: polynomials, sizes to try, what is linear, data of one function."""

import dataclasses
import itertools
import math
import types

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.errors import InputError
from symformer_jax.language import templates, units as units_lib
from symformer_jax.language.expression import Node, symbol, variable
from symformer_jax.language.rules import Restrictions
from symformer_jax.templates import profile
from symformer_jax.templates.profile import _Profile

NAMES, CONFIG = ("x", "t", "z"), DEFAULT.templates


def made(text, x, y=None, *, config=CONFIG, weights=None):
  y = np.arange(1.0, len(x) + 1) if y is None else y
  return _Profile(templates.read(text, NAMES), Rows(x, y, np.ones(len(x)) if weights is None else weights), config)


@pytest.fixture
def x(rng):
  return np.column_stack([rng.uniform(0.2, 5, 60), rng.uniform(0, 3, 60), rng.uniform(1, 4, 60)])


# --- polynomials -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num", "total"), [(1, 0), (1, 4), (2, 3), (3, 2), (3, 4)])
def test_exponents_are_all_of_at_most_a_sum(num, total):
  found = profile._compositions(num, total)
  assert sorted(found) == [each for each in itertools.product(range(total + 1), repeat=num) if sum(each) <= total]


@pytest.mark.parametrize(("column", "scaled"), [
  ([1, 2, 3], [-1, 0, 1]), ([-4, 0, 4], [-1, 0, 1]), ([1, 10, 100], [-1, 0, 1]), ([1, 5.5, 10], [-1, 0, 1]),
  ([0, 50, 100], [-1, 0, 1]), ([0.01, 0.1, 1], [-1, 0, 1]), ([7, 7, 7], [0, 0, 0]), ([1, 4, 16], [-1, 0, 1]),
  ([0.5, 2.0, 8.0], [-1, 0, 1])])
def test_columns_are_scaled_evenly_or_beyond_a_ratio_of_ten_by_their_logarithm(column, scaled):
  np.testing.assert_allclose(profile._scaled(np.array(column, float), 10.0), scaled, atol=1e-12)


@pytest.mark.parametrize(("num_rows", "num_columns", "num"), [
  (40, 1, 10), (39, 1, 9), (1000, 1, 15), (112, 2, 28), (111, 2, 21), (1000, 2, 28), (1000, 3, 20), (80, 3, 20),
  (79, 3, 10), (4, 3, 4), (4, 1, 2)])
def test_degrees_go_as_far_as_rows_and_config_bear(num_rows, num_columns, num):
  """One polynomial for every four rows, thirty, and a degree of fourteen at most; but linear ones always."""
  x = np.random.default_rng(0).uniform(1, 2, (num_rows, num_columns))
  assert profile.polynomials(x).shape == (num_rows, num)


def test_polynomials_are_products_of_those_of_chebyshev_by_rising_degree(rng):
  x = rng.uniform(-1, 1, (60, 2))
  x[0], x[1] = -1, 1
  found = profile.polynomials(x, config=dataclasses.replace(CONFIG, max_polynomials=10))
  expected = {}
  for i, j in itertools.product(range(4), repeat=2):
    if i + j <= 3:
      expected[i, j] = np.cos(i * np.arccos(x[:, 0])) * np.cos(j * np.arccos(x[:, 1]))
  degrees = [min(expected, key=lambda each: np.max(np.abs(expected[each] - column))) for column in found.T]
  assert sorted(degrees) == sorted(expected) and [sum(each) for each in degrees] == sorted(map(sum, expected))
  for each, column in zip(degrees, found.T, strict=True):
    np.testing.assert_allclose(column, expected[each], atol=1e-12)


# --- sizes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "name", "columns"), [
  ("f(x)*exp(-k*t)", "k", [1]), ("a*t + f(x, z)", "a", [1]), ("f(x)/(1 + k*t)**b", "k", [1]),
  ("f(x)/(1 + k*t)**b", "b", [1]), ("f(x)*(a + t*z)", "a", [1, 2]), ("f(x)*(a*z + t)", "a", [2]),
  ("c/(t + f(x))", "c", [1])])
def test_which_columns_stand_next_to_a_parameter(text, name, columns):
  assert profile._beside(templates.read(text, NAMES).node, name) == columns


def test_next_to_a_parameter_alone_there_is_no_column():
  assert profile._beside(Node("exp", (symbol("k"),)), "k") == []
  assert profile._beside(Node("+", (Node("sin", (symbol("k"),)), variable(2))), "k") == [2]


def test_sizes_beside_are_medians_other_than_0(x):
  x[:, 1] *= -1
  assert made("f(x)*exp(-k*t)", x)._sizes_beside("k") == [1.0, float(np.median(np.abs(x[:, 1])))]
  x[:31, 1] = 0
  assert made("f(x)*exp(-k*t)", x)._sizes_beside("k") == [1.0]


def test_sizes_are_spaced_over_the_decades_and_near_ones_come_once(x):
  x[:, 1] = 1.0
  np.testing.assert_allclose(
    made("f(x)*exp(-k*t)", x)._sizes("k", 25), [*-np.logspace(3, -3, 25), *np.logspace(-3, 3, 25)])
  x[:, 1] = 1e4  # on the same grid, sixteen steps further down
  np.testing.assert_allclose(
    made("f(x)*exp(-k*t)", x)._sizes("k", 25), [*-np.logspace(3, -7, 41), *np.logspace(-7, 3, 41)])


# --- parameters ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "linear"), [
  ("f(x)*exp(-k*t)", []), ("a*t + f(x, z)", ["a"]), ("sqrt(a*t + f(x))", ["a"]), ("c/(t + f(x))", []),
  ("a*f(x)**t + b*t", []), ("f(x)/(1 + k*t)**b", []), ("f(x)*exp(-k*t) + a*z", ["a"]), ("f(x)*(t + k)", []),
  ("(f(x) + t)/(1 + k*t)", []), ("1e-12*(f(x) + t)/(1 + k*t)", []), ("1e-12*(f(x) + a*t)", ["a"]),
  ("a*t + f(x) + g(z)", ["a"]), ("(f(x) + a*t)*g(z)", []), ("(f(x) + a*t)**2", ["a"]), ("log(f(x) - a*t)", ["a"])])
def test_which_parameters_are_found_without_a_grid(x, text, linear):
  """Those with which the template, solved for the function, goes up evenly and is as steep."""
  assert made(text, x)._linear == linear


def test_linear_parameters_come_with_the_polynomials_at_once(x):
  y = 2 * x[:, 1] + x[:, 0] ** 2 - 3 * x[:, 2]
  found = made("a*t + f(x) + b*z", x, y)
  residual, linear, estimates = found._solve({})
  assert linear == pytest.approx({"a": 2, "b": -3}) and np.max(np.abs(residual)) < 1e-7
  np.testing.assert_allclose(estimates["f"], x[:, 0] ** 2, atol=1e-6)
  assert list(found.fit()) == ["a", "b"]


def test_residuals_are_weighted_and_rows_without_a_value_count_by_their_distance_from_the_mean(x, rng):
  weights = rng.uniform(0.5, 2, 60)
  weights /= weights.mean()
  y = rng.uniform(1, 2, 60)
  y[:7] = -1.0  # no root is negative
  found = made("sqrt(f(x) + t)", x, y, weights=weights)
  residual = found._residual({})
  mean = np.average(y, weights=weights)
  np.testing.assert_allclose(residual[:7], np.sqrt(weights[:7]) * (-1.0 - mean))
  # The others by weighted least squares of y**2 - t, each error as it shows in y.
  scale = np.sqrt(weights[7:]) / (2 * y[7:])
  basis, target = found.bases["f"][7:], y[7:] ** 2 - x[7:, 1]
  solution = np.linalg.lstsq(scale[:, None] * basis, scale * target, rcond=None)[0]
  np.testing.assert_allclose(residual[7:], scale * (target - basis @ solution), rtol=1e-6, atol=1e-9)


def test_too_few_rows_with_a_value_say_nothing(x):
  y = -np.ones(60)
  found = made("sqrt(f(x) + t)", x, y)
  num = found.bases["f"].shape[1]
  y[:num] = 1.0  # as many rows as polynomials
  assert found._solve_one("f", {}, {}, found._start())[2].tolist() == [1.0] * 60
  y[num] = 1.0
  assert found._solve_one("f", {}, {}, found._start())[2].tolist() != [1.0] * 60


def test_targets_whose_squares_are_infinite_are_left_out(x):
  y = np.ones(60)
  found = made("exp(f(x)*t)", x, y)
  huge = types.SimpleNamespace(x=x, y=np.where(np.arange(60) < 3, 1e300, 1.0), weights=np.ones(60))
  found.rows = huge
  scaled = made("f(x)*t", x, huge.y)
  residual, _, values = scaled._solve_one("f", {}, {}, scaled._start())
  assert np.isfinite(values).all() and np.max(np.abs(residual[3:])) < 10


def test_the_best_points_of_the_grid_are_where_descents_begin(monkeypatch, x):
  y = x[:, 0] * np.exp(-0.7 * x[:, 1])
  found, starts = made("f(x)*exp(-k*t)", x, y), []
  monkeypatch.setattr(found, "_descend", lambda names, start: starts.append(start[0]) or (abs(start[0] - 0.9), start))
  assert found.fit()["k"] == pytest.approx(min(starts, key=lambda each: abs(each - 0.9)))
  grid = found._sizes("k", CONFIG.num_sizes)
  with np.errstate(all="ignore"):
    errors = [np.sum(found._residual({"k": each}) ** 2) for each in grid]
  assert starts == [grid[i] for i in np.argsort(errors)[:4]]


@pytest.mark.parametrize(("text", "num"), [
  ("f(x)*exp(-k*t)", CONFIG.num_sizes), ("f(x)*(1 + k*t)**b", CONFIG.num_coarse)])
def test_of_two_parameters_fewer_sizes_are_tried(monkeypatch, x, text, num):
  found, asked = made(text, x), []
  monkeypatch.setattr(found, "_sizes", lambda name, num: asked.append(num) or np.array([0.5]))
  monkeypatch.setattr(found, "_descend", lambda names, start: (0.0, start))
  found.fit()
  assert set(asked) == {num}


def test_a_descent_has_so_many_looks_and_the_digits_that_are_there(monkeypatch, x):
  y = x[:, 0] * np.exp(-0.7 * x[:, 1])
  found, given = made("f(x)*exp(-k*t)", x, y), {}
  descend = profile.optimize.least_squares
  monkeypatch.setattr(profile.optimize, "least_squares",
                      lambda function, start, **options: given.update(options) or descend(function, start, **options))
  cost, [k] = found._descend(["k"], np.array([0.9]))
  assert k == pytest.approx(0.7, rel=1e-9) and cost < 1e-15 and given["max_nfev"] == CONFIG.max_evaluations
  # SciPy would stop at 1e-8 by itself, and at a gradient that is small in the units of y.
  assert max(given["xtol"], given["ftol"]) < 1e-11 and given["gtol"] is None


def test_more_than_two_parameters_for_a_grid_are_too_many(x):
  with pytest.raises(InputError, match="expected at most 2 .*, got a, b, c"):
    made("f(x)*exp(-a*t) + t**b*exp(-c*z)", x).fit()
  two = made("f(x)*exp(-a*t)*z**b", x, config=dataclasses.replace(CONFIG, num_coarse=2, num_descents=1))
  assert set(two.fit()) == {"a", "b"}


@pytest.mark.parametrize(("text", "scale"), [("c/(t + f(x))", 1e-10), ("c/(t + f(x))", 1e10), ("a*t + f(x)", 1e-10)])
def test_what_is_linear_does_not_depend_on_the_unit_of_y(x, text, scale):
  assert made(text, x, scale * np.arange(1.0, 61))._linear == made(text, x)._linear


@pytest.mark.parametrize(("share", "is_even"), [(1e-9, True), (1e-7, False)])
def test_slopes_are_the_same_to_eight_digits(monkeypatch, x, share, is_even):
  found = made("a*t + f(x)", x)
  monkeypatch.setattr(profile, "solve_for", lambda template, x, y, values, start, unknown: (
    1 + values["a"] * np.ones(60), np.full(60, 1 + share * (values["a"] > 0))))
  assert found._is_even("a", "f", {}, 0.5) is is_even


def test_linear_parameters_may_have_any_size(x):
  x[:, 1] *= 1e-15
  [a] = made("a*t + f(x)", x, 2e15 * x[:, 1] + x[:, 0] ** 2).fit().values()
  assert a == pytest.approx(2e15, rel=1e-6)


def test_without_rows_that_say_something_linear_parameters_are_0(x):
  found = made("sqrt(f(x) + a*t)", x, np.where(np.arange(60) < 3, 1.0, -1.0))
  assert found._linear == ["a"] and found._solve({})[1] == {"a": 0.0}


def test_polynomials_of_the_functions_are_those_of_the_config(x):
  assert made("f(x)*t", x, config=dataclasses.replace(CONFIG, max_polynomials=5)).bases["f"].shape == (60, 5)


def test_of_descents_that_end_alike_the_first_counts(monkeypatch, x):
  found = made("f(x)*(1 + k*t)**b", x)
  monkeypatch.setattr(found, "_sizes", lambda name, num: np.array([0.5, 1.0]))
  monkeypatch.setattr(found, "_descend", lambda names, start: (0.0, start))
  assert set(found.fit().values()) <= {0.5, 1.0}


# --- several functions -----------------------------------------------------------------------------------------------


def test_functions_are_fitted_in_turn_and_then_together(x):
  f, g = 1 + x[:, 0] ** 2, np.cos(x[:, 1]) + 2
  found = made("f(x)*g(t)", x, f * g)
  estimates = found.estimates({})
  np.testing.assert_allclose(estimates["f"] * estimates["g"], f * g, rtol=1e-5)
  assert not any(found._is_linear.values())
  # Rounds end where nothing is gained, or at their number.
  few = made("f(x)*g(t)", x, f * g, config=dataclasses.replace(CONFIG, num_rounds=1))
  first = np.linalg.lstsq(found.bases["f"], f * g, rcond=None)[0]
  assert np.sum(few._solve({})[0] ** 2) > np.sum(found._solve({})[0] ** 2)
  assert np.all(few._start()["f"] == 1) and few._start()["f"].shape == (60,)
  np.testing.assert_allclose(few._solve_one("f", {}, {}, few._start())[2], found.bases["f"] @ first, rtol=1e-6)


def test_rounds_are_whole_and_end_where_nothing_is_gained(monkeypatch, x, rng):
  y, config = x[:, 0] + x[:, 1] + rng.normal(size=60), dataclasses.replace(CONFIG, max_polynomials=3)
  found, names = made("f(x) + g(t)", x, y, config=config), []
  solve = found._solve_one
  monkeypatch.setattr(found, "_solve_one", lambda name, *rest: names.append(name) or solve(name, *rest))
  found._solve({})
  assert names == ["f", "g"] * (len(names) // 2) and 4 <= len(names) < 2 * CONFIG.num_rounds


@pytest.mark.parametrize(("gain", "num_rounds"), [(1.5e-6, 3), (0.75e-6, 2), (0.0, 2)])
def test_a_round_gains_a_millionth_of_the_squares_or_is_the_last(monkeypatch, x, gain, num_rounds):
  found, names = made("f(x) + g(t)", x), []
  residuals = iter([1.0, 1.0, 1.0, 1.0 - gain / 2, 1.0, 1.0 - gain / 2])
  monkeypatch.setattr(found, "_solve_one", lambda name, *given: names.append(name) or (
    np.full(60, next(residuals)), {}, np.ones(60)))
  found._solve({})
  assert names == ["f", "g"] * num_rounds


def test_one_function_is_solved_for_once(monkeypatch, x):
  found, names = made("f(x) + t", x), []
  monkeypatch.setattr(found, "_solve_one", lambda name, *given: names.append(name) or (np.ones(60), {}, np.ones(60)))
  found._solve({})
  assert names == ["f"]


def test_the_slope_by_a_parameter_is_measured_where_it_moves_a_function_by_about_1(x):
  for size, step in ((1e-6, 1e6), (0.5, 2.0), (1e3, 1.0)):  # at most 1, where the column is large
    x[:, 1] = size
    assert made("a*t + f(x)", x)._steps == {"a": pytest.approx(step)}


def together(monkeypatch, x, residuals, text="f(x) + g(t)", y=None):
  """Estimates after as many steps as there are residuals, each step with slopes of 1."""
  found, given = made(text, x, y), iter(residuals)
  names = [unknown.name for unknown in found.template.unknowns]
  monkeypatch.setattr(found, "_linearized", lambda values, estimates: (
    next(given, np.full(60, 1e9)), {name: np.ones(60) for name in names}))
  start = {name: np.zeros(60) for name in names}
  return found._together({}, start), start


def test_steps_of_all_functions_end_where_nothing_is_gained(monkeypatch, x):
  some = np.arange(60.0)
  for residuals, num_steps in (([some], 0), ([some, some / 2], 1), ([some, some], 0), ([some, 2 * some], 0),
                               ([some, some / 2, some / 4], 2), ([some, (1 - 0.75e-6) * some], 1),
                               ([some, (1 - 0.25e-6) * some], 0)):
    found, start = together(monkeypatch, x, residuals)
    assert (found is start) == (num_steps == 0)
  # As few rows as polynomials, of which there are two sets of fifteen, tell nothing, however small their error.
  y = np.full(60, 1.0)
  y[:30] += 1e-3
  for num_used, is_taken in ((30, False), (31, True)):
    nearly = np.where(np.arange(60) < num_used, 0.0, np.nan)
    found, start = together(monkeypatch, x, [some, nearly, nearly / 2], y=y)
    assert (found is not start) == is_taken


def test_rows_without_a_value_count_by_their_distance_from_the_mean_in_a_step(monkeypatch, x):
  y = 10 + 0.1 * np.cos(np.arange(60))
  is_lost = np.arange(60) >= 50
  first, second = np.full(60, 0.5), np.where(is_lost, np.nan, 0.0)
  # What is lost is a tenth off the mean, and what the first step leaves is half.
  found, start = together(monkeypatch, x, [first, second], y=y)
  assert found is not start
  # A slope without a value loses its row alone.
  made_up, calls = made("f(x) + g(t)", x, y), []
  slopes = np.where(is_lost, np.nan, 1.0)
  monkeypatch.setattr(made_up, "_linearized", lambda values, estimates: (
    calls.append(1) or first / len(calls) ** 3, {"f": slopes, "g": np.ones(60)}))
  assert made_up._together({}, start) is not start


def test_steps_of_three_functions_are_shared_among_them(x):
  y = np.log(x[:, 0]) ** 2 + 3 * np.log(x[:, 1]) + x[:, 2] ** 2
  found = made("f(x) + g(t) + h(z)", x, y, config=dataclasses.replace(CONFIG, max_polynomials=5))
  estimates = found._together({}, {name: np.zeros(60) for name in "fgh"})
  np.testing.assert_allclose(sum(estimates.values()), y, rtol=1e-6)


def test_with_values_of_all_parameters_none_is_found_anew(x):
  found = made("f(x)*g(t) + a*z", x, (1 + x[:, 0]) * (1 + x[:, 1]) + 2.5 * x[:, 2])
  estimates = found.estimates({"a": 2.5})
  assert found._is_linear == {"a": False}
  np.testing.assert_allclose(estimates["f"] * estimates["g"], (1 + x[:, 0]) * (1 + x[:, 1]), rtol=1e-4)


def test_a_step_of_all_functions_solves_what_is_linear_in_both(x):
  y = x[:, 0] ** 2 + 3 * x[:, 1]
  found = made("f(x) + g(t)", x, y)
  zeros = {"f": np.zeros(60), "g": np.zeros(60)}
  residual, slopes = found._linearized({}, zeros)
  np.testing.assert_allclose(residual, y)
  assert all(np.all(slopes[name] == 1) for name in "fg")
  estimates = found._together({}, zeros)
  np.testing.assert_allclose(estimates["f"] + estimates["g"], y, atol=1e-6)


def test_linearized_residuals_and_slopes_are_weighted(x, rng):
  weights = rng.uniform(0.5, 2, 60)
  found = made("f(x)*g(t)*z", x, np.ones(60), weights=weights)
  residual, slopes = found._linearized({}, {"f": np.full(60, 2.0), "g": np.full(60, 3.0)})
  np.testing.assert_allclose(residual, np.sqrt(weights) * (1 - 6 * x[:, 2]))
  np.testing.assert_allclose(slopes["f"], np.sqrt(weights) * 3 * x[:, 2])
  np.testing.assert_allclose(slopes["g"], np.sqrt(weights) * 2 * x[:, 2])


# --- data of one function --------------------------------------------------------------------------------------------


def test_a_template_is_solved_for_a_function_row_by_row(x):
  y, k = np.linspace(1, 2, 60), 0.7
  read = templates.read("f(x)*g(t)*exp(-k*z) + z", NAMES)
  f, g = np.linspace(2, 3, 60), np.linspace(4, 5, 60)
  value, slope = profile.solve_for(read, x, y, {"k": k}, {"g": g}, "f")
  decay = np.exp(-k * x[:, 2])
  np.testing.assert_allclose(value, (y - x[:, 2]) / (g * decay))
  np.testing.assert_allclose(slope, g * decay)
  value, slope = profile.solve_for(read, x, y, {"k": k}, {"f": f}, "g")
  np.testing.assert_allclose(value, (y - x[:, 2]) / (f * decay))
  node, columns = profile.as_columns(read, 3)
  assert columns == {"f": 3, "g": 4} and list(node.args[0].args[0].args) == [variable(3), variable(4)]


def test_the_variance_is_that_of_y_over_the_mean_square_of_the_slope(rng):
  y, weights, slope = rng.normal(size=20), rng.uniform(0.5, 2, 20), rng.uniform(1, 2, 20)
  is_used = np.arange(20) > 4
  rows = Rows(np.ones((20, 1)), y, weights)
  mean = np.average(y[5:], weights=weights[5:])
  expected = np.average((y[5:] - mean) ** 2, weights=weights[5:]) / np.average(slope[5:] ** 2, weights=weights[5:])
  assert profile._variance(rows, slope, is_used) == pytest.approx(expected)
  assert profile._variance(rows, 0 * slope, is_used) is None
  assert profile._variance(rows, 1e200 * slope, is_used) is None  # 0 to the last digit
  assert profile._variance(Rows(rows.x, np.ones(20), weights), slope, is_used) is None


def test_five_rows_with_a_value_are_enough(x):
  read, y = templates.read("sqrt(f(x) + t)", NAMES), np.full(60, -1.0)
  y[:5] = np.arange(1.0, 6.0)
  [part] = profile.pose(read, Rows(x, y, np.ones(60)), seed=0).parts
  np.testing.assert_allclose(part.dataset[1], y[:5] ** 2 - x[:5, 1])
  y[4] = -1.0
  with pytest.raises(InputError, match=r"f\(x\) has a value in 4 of 60 rows, expected at least 5"):
    profile.pose(read, Rows(x, y, np.ones(60)), seed=0)


def test_rows_beyond_the_range_of_numbers_are_left_out(x):
  x[:, 1], x[0, 1], x[1, 1] = 2.0, 1e200, 1e-200  # squares of these are infinite, or nothing
  y = 3.0 * x[:, 1]
  read = templates.read("f(x)*t", NAMES)
  part = profile._part(read, Rows(x, y, np.linspace(0.5, 1.5, 60)), {}, {}, read.unknowns[0])
  np.testing.assert_array_equal(part.dataset[0][:, 0], x[2:, 0])
  np.testing.assert_allclose(part.dataset[1], 3.0)
  np.testing.assert_allclose(part.dataset[2], 4 * np.linspace(0.5, 1.5, 60)[2:])


def test_rules_and_units_of_a_function_are_its_own(x):
  units = units_lib.read_units({"x": "m", "t": "s", "z": "kg", "y": "N"}).for_columns(NAMES)
  read = templates.read("f(x, t)*z", NAMES)
  problem = profile.pose(read, Rows(x, x[:, 0] * x[:, 2], np.ones(60)), seed=0, units=units)
  rules = Restrictions(required=("x", "z"), excluded=("t",), max_depth=7)
  task = profile.make_part_task(problem, problem.parts[0], SearchOptions(restrictions=rules))
  assert task.rule.required == {0} and task.rule.excluded == {1} and task.rule.max_depth == 7
  alone = profile.pose(templates.read("f(x)*z", NAMES), Rows(x, x[:, 0] * x[:, 2], np.ones(60)), seed=0)
  rules = profile.make_part_task(alone, alone.parts[0], SearchOptions(restrictions=rules)).rule
  assert rules.required == {0} and rules.excluded == frozenset()
  assert [unit.text for unit in task.units.columns] == ["m", "s"] and task.units.target.text == "N/kg"


def test_rows_that_say_nothing_of_a_function_are_left_out(x):
  x[:9, 1] = 0
  [part] = profile.pose(templates.read("f(x)*t", NAMES), Rows(x, x[:, 0] * x[:, 1], np.ones(60)), seed=0).parts
  assert len(part.dataset[1]) == 51


def test_parameters_are_found_by_some_rows_and_several_functions_have_others(monkeypatch, x):
  seen, fit = [], _Profile.fit
  monkeypatch.setattr(_Profile, "fit", lambda self: seen.append(self.rows) or fit(self))
  config, rows = dataclasses.replace(CONFIG, max_rows=30, max_part_rows=40), Rows(x, x[:, 0] + x[:, 1], np.ones(60))
  [part] = profile.pose(templates.read("f(x) + t", NAMES), rows, seed=3, config=config).parts
  assert len(part.dataset[1]) == 60
  np.testing.assert_array_equal(seen[0].y, rows.sample(30, seed=3).y)
  first, second = profile.pose(templates.read("f(x) + g(t)", NAMES), rows, seed=3, config=config).parts
  np.testing.assert_array_equal(first.dataset[0][:, 0], rows.sample(40, seed=3).x[:, 0])
  np.testing.assert_array_equal(second.dataset[0][:, 0], rows.sample(40, seed=3).x[:, 1])
  assert len(profile.pose(templates.read("f(x) + g(t)", NAMES), rows, seed=3).parts[0].dataset[1]) == 60


def test_of_several_functions_none_is_guessed_and_the_variance_goes_along(x):
  problem = profile.pose(templates.read("f(x) + g(t)", NAMES), Rows(x, x[:, 0] + x[:, 1], np.ones(60)), seed=0)
  with pytest.raises(InputError, match="guesses: of several unknown functions none is guessed, got 'x'"):
    profile.make_part_task(problem, problem.parts[0], SearchOptions(guesses=("x",)))
  task = profile.make_part_task(problem, problem.parts[0], SearchOptions())
  assert task.whole_variance == problem.parts[0].variance == pytest.approx(np.var(x[:, 0] + x[:, 1]))
  alone = profile.pose(templates.read("f(x)*t + z", NAMES), Rows(x, x[:, 0] * x[:, 1] + x[:, 2], np.ones(60)), seed=0)
  assert profile.make_part_task(alone, alone.parts[0], SearchOptions(guesses=("x",))).names == ("x",)


def test_what_all_functions_may_leave_is_shared():
  def problem(num):
    return profile.Problem(None, None, {}, (None,) * num)
  assert problem(1).options_of_parts(SearchOptions(accuracy=0.9)).accuracy == pytest.approx(0.9)
  assert problem(3).options_of_parts(SearchOptions(accuracy=0.94)).accuracy == pytest.approx(0.98)


def test_units_of_a_function_are_those_of_its_columns_and_its_own(x):
  read = units_lib.read_units({"x": "m", "t": "s", "z": "kg", "y": "N"}, dimensionless_constants=True)
  units = read.for_columns(NAMES)
  read = templates.read("f(x, z)/t**2", NAMES)
  problem = profile.Problem(read, None, {}, (), units)
  found = problem.units_of(read.unknowns[0])
  assert [(name, unit.text) for name, unit in found.by_name] == [("x", "m"), ("z", "kg"), ("y", "N*s**2")]
  assert not found.are_constants_free
  assert profile.Problem(read, None, {}, ()).units_of(read.unknowns[0]) is None


def test_a_column_called_as_the_target_cannot_have_units():
  units = units_lib.read_units({"y": "m", "v": "m"}).for_columns(("y",), "v")
  with pytest.raises(InputError, match=r"with units no column of f\(y\) is called 'y'"):
    profile._check_units(templates.read("f(y)", ("y",)), units)


def test_a_residual_that_is_no_number_counts_as_the_distance_from_the_mean(x):
  found = made("f(x)*t", x, x[:, 0] * x[:, 1])
  x[0, 1] = 0.0
  residual = found._residual({})
  assert residual[0] == pytest.approx(found.rows.y[0] - found.rows.y.mean()) and np.isfinite(residual).all()
  assert math.isfinite(float(residual @ residual))


def test_what_cannot_be_fitted_counts_as_the_distance_from_the_mean(monkeypatch, x):
  found = made("f(x)*t", x, np.linspace(3, 5, 60))
  monkeypatch.setattr(profile.np.linalg, "lstsq", lambda rows, y, rcond: (np.full(rows.shape[1], np.nan),))
  np.testing.assert_allclose(found._residual({}), np.linspace(-1, 1, 60))


def test_what_columns_share_but_for_their_last_digits_is_no_parameter(x, rng):
  """Else noise is met by a difference of columns that is rounding, times a number without measure."""
  x[:, 1] = x[:, 0] * (1 + 3e-13 * rng.normal(size=60))
  assert abs(made("a*t + f(x)", x, rng.normal(size=60)).fit()["a"]) < 1e3


def test_what_two_functions_share_but_for_their_last_digits_is_shared_evenly(x, rng):
  x[:, 1] = x[:, 0] * (1 + 1e-11 * rng.normal(size=60))
  estimates = made("f(x) + g(t)", x, rng.normal(size=60)).estimates({})
  assert max(np.max(np.abs(values)) for values in estimates.values()) < 100


def is_even(monkeypatch, x, zero, far, steep=1.0):
  """Of a function that is `zero` for a parameter 0, one more for 1, and `far` for -2.5, each [60]."""
  found, steeps = made("a*t + f(x)", x), {0.0: steep * np.ones(60), 1.0: np.ones(60), -2.5: np.ones(60)}
  with monkeypatch.context() as patched:
    patched.setattr(profile, "solve_for", lambda template, x, y, values, start, unknown: (
      {0.0: zero, 1.0: zero + 1, -2.5: far}[values["a"]], steeps[values["a"]]))
    return found._is_even("a", "f", {}, 1.0)


@pytest.mark.parametrize(("size", "off", "expected"), [
  (1e6, 0.5e-8, True), (1e6, 3e-8, False), (1e6, 1e-6, False), (1.0, 0.5e-8, True), (1.0, 1e-7, False)])
def test_a_function_goes_up_evenly_to_eight_digits_of_its_largest_value(monkeypatch, x, size, off, expected):
  zero = np.where(np.arange(60) < 30, size, 2.5)
  for row in (0, 59):  # where it is largest, and where it is to be 0
    far = zero - 2.5 + off * size * (np.arange(60) == row)
    assert is_even(monkeypatch, x, zero, far) is expected


def test_a_function_is_looked_at_where_it_has_a_value_and_a_slope(monkeypatch, x):
  zero, steep = np.full(60, 7.0), np.ones(60)
  zero[0], steep[1] = np.nan, np.inf
  assert is_even(monkeypatch, x, zero, zero - 2.5, steep)
  assert not is_even(monkeypatch, x, np.full(60, np.nan), zero)
