"""Round constants: SciPy's covariance as oracle, and what rounding may cost."""

import numpy as np
import pytest
from scipy import optimize

from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import expression, parser, printing, programs
from symformer_jax.language.tidy import tidy
from symformer_jax.selection import rounding, scoring


def fitted(model, text, x, y, start):
  """Fits by SciPy: `(tree with the fitted constants in prefix order, standard errors)`."""
  values, covariance = optimize.curve_fit(model, x, y, start)
  return programs.replace_values(parser.parse(text), values.tolist()), np.sqrt(np.diag(covariance))


@pytest.fixture
def power_law(rng):
  x = rng.uniform(1, 10, 60)
  y = x**1.5 + rng.normal(0, 0.05, 60)
  # In `0.9*x**1.4` the factor comes first in prefix order.
  node, errors = fitted(lambda x, a, b: a * x**b, "0.9*x**1.4", x, y, (1, 1.5))
  return node, errors, x[:, None], y, np.ones(60)


def test_standard_errors_are_those_of_scipy(power_law):
  node, errors, *data = power_law
  np.testing.assert_allclose(rounding.standard_errors(node, *data), errors, rtol=1e-4)


def test_weights_count_as_repetitions(power_law):
  node, _, x, y, weights = power_law
  twice = rounding.standard_errors(node, np.tile(x, (2, 1)), np.tile(y, 2), np.ones(120))
  np.testing.assert_allclose(
    np.array(twice) * np.sqrt(118 / 58), rounding.standard_errors(node, x, y, 2 * weights), rtol=1e-6)


def test_a_true_law_comes_out_as_written(power_law):
  node, _, *data = power_law
  assert printing.to_text(tidy(rounding.snap_constants(node, *data)), ["x"]) == "x**1.5"


def test_a_constant_that_matters_is_not_snapped(power_law):
  _, _, x, _, weights = power_law
  node, *_ = fitted(lambda x, a, b: a * x**b, "0.9*x**1.4", x[:, 0], 1.07 * x[:, 0] ** 1.5, (1, 1.5))
  values = programs.fitted_values(rounding.snap_constants(node, x, 1.07 * x[:, 0] ** 1.5, weights))
  assert values == pytest.approx([1.07, 1.5], abs=1e-9)


def test_terms_within_their_error_go(rng):
  x = rng.uniform(0, 5, 40)
  y = 3.1 * x + rng.normal(0, 0.3, 40)
  node, _ = fitted(lambda x, a, b: a * x + b, "2.2*x + 0.3", x, y, (1, 1))
  snapped = tidy(rounding.snap_constants(node, x[:, None], y, np.ones(40)))
  assert expression.complexity(snapped) == 3


@pytest.mark.parametrize(("text", "expected"), [
  ("x**4 + x**5 + x + 1e-13", "x**4 + x**5 + x"), ("sin(x**2 - 9e-16)", "sin(x**2)"), ("x**(-7e-14) + x", "x + 1"),
  ("3.7*x + 2e-14*exp(x)", "3.7*x")])
def test_constants_that_only_carry_rounding_go(text, expected, rng):
  x = rng.uniform(0, 5, (60, 1))
  truth = parser.parse(expected)
  data = (x, scoring.evaluate(truth, x), np.ones(60))
  assert printing.to_text(tidy(rounding.snap_constants(parser.parse(text), *data)), ["x"]) == expected


def test_whole_exponents_do_not_stand_in_the_way_where_x_is_negative(rng):
  """(-2)**6.001 is undefined: the exponent stays, all else is judged as usual."""
  x = rng.uniform(-5, 5, (60, 1))
  truth = parser.parse("x**6 - 2*x**4 + 3.14159265358979*x")
  data = (x, scoring.evaluate(truth, x), np.ones(60))
  node = parser.parse("1.0000003*x**6 - 2.00001*x**4 - 2e-7*x**5 + 3.1416*x + 9e-5")
  snapped = tidy(rounding.snap_constants(node, *data))
  assert expression.complexity(snapped) == expression.complexity(truth)
  constants = programs.fitted_values(snapped)
  assert constants == pytest.approx([6, np.pi], rel=1e-9) or constants == pytest.approx([np.pi, 6], rel=1e-9)
  exponent = constants.index(6.0)
  errors, forms = rounding.standard_errors(snapped, *data), rounding.exact_forms(snapped, *data)
  assert errors[exponent] is None and errors[1 - exponent] < 1e-4
  assert forms[exponent] is None and forms[1 - exponent] == "pi"


@pytest.mark.parametrize("unit", [1e-11, 1e-6, 1.0, 1e6])
def test_small_constants_that_matter_have_their_standard_errors(unit, rng):
  """Constants are small because x is large: the errors are those of the same fit in other units, and finite."""
  z = rng.uniform(1, 5, 60)
  y = 2 * np.exp(-0.7 * z) + rng.normal(0, 0.01, 60)
  values, covariance = optimize.curve_fit(lambda z, a, b: a * np.exp(b * z), z, y, (1, -1))
  node = programs.replace_values(parser.parse("2.1*exp(-0.6*x)"), [values[0], values[1] * unit])
  errors = rounding.standard_errors(node, z[:, None] / unit, y, np.ones(60))
  np.testing.assert_allclose(errors, np.sqrt(np.diag(covariance)) * [1, unit], rtol=1e-4)


def test_digits_are_rounded_alike_at_the_ends_of_what_is_searched(rng):
  """A variance of a constant times one of y is beyond double precision there: no warning, and the same digits."""
  z = rng.uniform(1, 5, 60)
  y = 2 * z + 3 + rng.normal(0, 0.1, 60)
  slope, constant = np.polyfit(z, y, 1)
  usual, extreme = (programs.fitted_values(rounding.round_constants(
    programs.replace_values(parser.parse("2.1*x + 3.1"), [slope * size_y / size_x, constant * size_y]),
    z[:, None] * size_x, y * size_y, np.ones(60))) for size_x, size_y in ((1, 1), (1e-60, 1e59)))
  np.testing.assert_allclose(extreme, np.multiply(usual, [1e119, 1e59]), rtol=1e-12)


def test_rounding_costs_less_than_a_hundredth_of_sigma_squared_a_constant(power_law):
  node, errors, x, y, weights = power_law
  rounded = rounding.round_constants(node, x, y, weights)
  before, after = (np.sum((scoring.evaluate(n, x) - y) ** 2) for n in (node, rounded))
  assert after - before < 2 * 0.011 * before / 58
  assert rounding.count_digits(rounded) < 10
  assert np.all(np.abs(np.subtract(programs.fitted_values(rounded), programs.fitted_values(node))) < errors)


def test_constants_that_follow_along_a_curve_lose_their_idle_digits_too(rng):
  """The first row alone tells the high power from a constant: its exponent and its factor are known together."""
  x = np.array([2.0, 5, 6, 7, 9, 12, 15, 20, 30, 50, 80, 120])
  y = 9000 * x**-1.5 - 3e6 * x**-12.0 + rng.normal(0, 40, 12)
  node = parser.parse("9000.123456*x**(-1.50123456) - 3000000.123456*x**(-12.0123456) + 1.23456789")
  node = rounding.refit_constants(node, x[:, None], y, np.ones(12))
  rounded = rounding.round_constants(node, x[:, None], y, np.ones(12))
  before, after = (np.sum((scoring.evaluate(n, x[:, None]) - y) ** 2) for n in (node, rounded))
  assert rounding.count_digits(rounded) < 25 and after <= before * (1 + 5 / 7)


def test_exact_data_give_exact_constants():
  x = np.linspace(0.5, 4, 30)
  y = 1.7 * x**1.3
  node = programs.replace_values(parser.parse("0.9*x**1.4"), [1.7 + 3e-9, 1.3 - 1e-9])
  assert programs.fitted_values(rounding.round_constants(node, x[:, None], y, np.ones(30))) == [1.7, 1.3]


def test_decimals_of_an_exact_formula_stay_whatever_the_others_are(rng):
  x = rng.uniform(0.8, 5, (60, 1))
  y = 3.2 * (1 - np.exp(-1.1 * (x[:, 0] - 1.4))) ** 2
  node = parser.parse("69.627*exp(-2.2001*x) - 29.853*exp(-1.1001*x) + 3.2001")
  for _ in range(4):
    node = rounding.refit_constants(node, x, y, np.ones(60))
  values = programs.fitted_values(rounding.round_constants(node, x, y, np.ones(60)))
  assert {-2.2, -1.1, 3.2} <= set(values)
  np.testing.assert_allclose(sorted(map(abs, values))[-2:], 3.2 * np.exp(1.54) * np.array([2, np.exp(1.54)]), rtol=1e-6)


@pytest.mark.parametrize(("text", "num_redundant"), [
  ("147.1/(0.104*x + 0.7)", 1), ("2.2/(1.3*x**2 + 0.4)", 1), ("3.7*(0.25*x)**1.5", 1), ("3.7*x + 1.2", 0),
])
def test_redundant_constants_become_one(text, num_redundant, rng):
  x = rng.uniform(0.5, 4, (30, 1))
  node = parser.parse(text)
  y = scoring.evaluate(node, x) + rng.normal(0, 0.01, 30)
  reduced = tidy(rounding.remove_redundant(node, x, y, np.ones(30)))
  # With each goes the product it stood in.
  assert expression.complexity(reduced) == expression.complexity(tidy(node)) - 2 * num_redundant
  before, after = (np.sum((scoring.evaluate(n, x) - y) ** 2) for n in (node, reduced))
  assert after <= before * (1 + 1e-6)


def test_undetermined_constants_lose_their_idle_digits_too(rng):
  x = rng.uniform(0.5, 4, (30, 1))
  node = parser.parse("1.23456789*exp(0.7123456789*x + 0.4123456789)")
  y = scoring.evaluate(node, x) + rng.normal(0, 0.1, 30)
  rounded = rounding.round_constants(node, x, y, np.ones(30))
  before, after = (np.sum((scoring.evaluate(n, x) - y) ** 2) for n in (node, rounded))
  assert rounding.count_digits(rounded) < 20 and after <= before * (1 + 0.02 / 27)


def test_refit_reaches_the_least_squares_optimum(power_law):
  node, _, x, y, weights = power_law
  off = programs.replace_values(node, [v * 1.003 for v in programs.fitted_values(node)])
  refitted = rounding.refit_constants(off, x, y, weights)
  assert programs.fitted_values(refitted) == pytest.approx(programs.fitted_values(node), rel=1e-6)


def test_undefined_formulas_pass_through():
  node = parser.parse("1.5*ln(x - 3.2)")
  x, y, weights = np.linspace(0, 4, 9)[:, None], np.arange(9.0), np.ones(9)
  for function in (rounding.snap_constants, rounding.round_constants, rounding.remove_redundant):
    assert function(node, x, y, weights) == node
  assert rounding.standard_errors(node, x, y, weights) == [None, None]


def test_digits_are_counted_as_written():
  assert rounding.count_digits(parser.parse("120.5*x**0.025 + 1400*x")) == 4 + 2 + 2


@pytest.mark.parametrize(("text", "truth", "noise", "expected"), [
  ("6.28*sqrt(x) + 1.2345", lambda x: 2 * np.pi * np.sqrt(x) + 1.2345, 1e-3, {6.28: "2*pi", 1.2345: None}),
  ("0.333*x**3 + 0.5*x", lambda x: x**3 / 3 + x / 2, 0.0, {0.333: "1/3", 0.5: None}),  # 0.5 says it already
  ("1.41*sin(3.14*x)", lambda x: np.sqrt(2) * np.sin(np.pi * x), 1e-4, {1.41: "sqrt(2)", 3.14: "pi"}),
  ("6.28*sqrt(x) + 1.2345", lambda x: 2 * np.pi * np.sqrt(x) + 1.2345, 1.0, {6.28: None, 1.2345: None}),  # who knows
])
def test_exact_forms_are_named_where_the_data_leave_no_doubt(text, truth, noise, expected, rng):
  x = rng.uniform(0.1, 5, (100, 1))
  y = truth(x[:, 0]) + noise * rng.normal(size=100)
  node = parser.parse(text, ("x",))
  exact = rounding.exact_forms(node, x, y, np.ones(100))
  assert dict(zip(programs.fitted_values(node), exact, strict=True)) == expected


def test_constants_that_few_points_leave_open_are_not_redundant(rng):
  x = np.repeat(rng.normal(size=(6, 8)), 5, axis=0)
  node = parser.parse("+".join(f"1.{i}3*{n}" for i, n in enumerate("abcdefgh", 1)), tuple("abcdefgh"))
  data = (x, scoring.evaluate(node, x), np.ones(30))
  assert 0 not in programs.fitted_values(rounding.remove_redundant(node, *data))


@pytest.mark.parametrize(("text", "expected"), [
  ("5*exp(-0.5*x) + 3e-15*exp(-2*x)*log(x)", "5*exp(-0.5*x)"), ("2*x + 1/(1e-17*x + 1)", "2*x + 1"),
  ("x**2 + 0.00001*x", "1e-05*x + x**2")])
def test_terms_below_rounding_go(text, expected, rng):
  x = rng.uniform(0.5, 4, (30, 1))
  node = parser.parse(text, ("x",))
  data = (x, scoring.evaluate(node, x), np.ones(30))
  reduced = tidy(rounding.remove_redundant(node, *data))
  assert printing.to_text(tidy(rounding.round_constants(reduced, *data)), ("x",)) == expected


def test_rounding_that_harms_is_not_done(power_law, monkeypatch):
  node, _, *data = power_law
  assert rounding.round_constants(node, *data) != node
  monkeypatch.setattr(rounding, "_fewest_digits", lambda value, tolerance: 2 * value)
  before, after = (rounding._Local(n, *data).sum_of_squares for n in (node, rounding.round_constants(node, *data)))
  assert after <= before * (1 + 2 * 0.011 / 58)  # in turn, then
  monkeypatch.setattr(rounding, "_digits", lambda value, digits: 2 * value)
  assert rounding.round_constants(node, *data) == node


def test_errors_of_the_curve_are_those_of_linear_regression(rng):
  x, at = rng.uniform(1, 5, 40), np.linspace(0, 6, 7)
  weights = rng.uniform(0.1, 3, 40)
  y = 2.3 * x + 1.1 + rng.normal(size=40) / np.sqrt(weights)
  slope, constant = np.polyfit(x, y, 1, w=np.sqrt(weights))
  node = parser.parse(f"{slope:.17g}*x + {constant:.17g}", ["x"])
  _, covariance = np.polyfit(x, y, 1, w=np.sqrt(weights), cov=True)
  design = np.column_stack([at, np.ones(7)])
  expected = np.sqrt(np.einsum("mi,ij,mj->m", design, covariance, design))
  found = rounding.curve_errors(node, x[:, None], y, weights, at[:, None])
  np.testing.assert_allclose(found, expected, rtol=1e-6)
  assert rounding.curve_errors(node, x[:2, None], y[:2], weights[:2], at[:, None]) is None
  assert rounding.curve_errors(parser.parse("x", ["x"]), x[:, None], y, weights, at[:, None]) is None


class Stub:
  """A local model in which the loss is a given function of the constants."""

  def __init__(self, theta, loss):
    self.theta, self.loss, self.is_free = np.array(theta), loss, np.ones(len(theta), bool)
    self.sum_of_squares, self.noise, self.config = 1.0, 1.0, DEFAULT.selection

  def losses(self, thetas):
    return np.array([self.loss(theta) for theta in thetas])


def test_a_constant_alone_may_be_left_a_single_digit():
  local = Stub([2.345, 6.789], lambda theta: abs(theta[1] - 6.789))
  rounding._round_one_by_one(local, allowed=0.05)
  np.testing.assert_array_equal(local.theta, [2.0, 6.8])
  rounding._round_one_by_one(stays := Stub([2.345], lambda theta: 2.0), allowed=1.0)
  np.testing.assert_array_equal(stays.theta, [2.345])


def test_one_constant_that_changes_nothing_is_fixed_at_a_time():
  local = Stub([2.0, 3e-15, 0.0, 4e-15], lambda theta: 1.0 if theta[0] == 2 else 9.0)
  for free in ([True, False, True, True], [True, False, True, False]):
    assert rounding._fix_negligible(local)
    np.testing.assert_array_equal(local.is_free, free)
  assert not rounding._fix_negligible(local)
  np.testing.assert_array_equal(local.theta, [2.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize(("off", "stderr", "is_snapped"), [
  (0.8, 0.02, True), (1.9, 0.02, False), (1.9, 0.002, True), (2.6, 0.002, False), (-1.9, 0.02, False)])
def test_a_half_number_is_taken_where_it_is_likelier_than_any_other(off, stderr, is_snapped):
  """So many standard errors from 2.5: at odds of one to two, errors of .04 and .004 of what such numbers lie apart.

  The slope of a straight line through exact rows plus errors that are no part of it, so that both are known.
  """
  x = np.linspace(-1, 1, 60)
  shape = np.cos(np.pi * np.arange(60))  # nothing of a line but for its ends
  shape -= np.polyval(np.polyfit(x, shape, 1), x)
  size = stderr * np.sqrt(np.sum(x**2)) * np.sqrt(59 / np.sum(shape**2))
  slope = 2.5 + off * stderr
  node = parser.parse(f"{slope!r}*x")
  found = rounding.snap_constants(node, x[:, None], slope * x + size * shape, np.ones(60))
  assert programs.fitted_values(found) == [2.5 if is_snapped else pytest.approx(slope)]


def test_how_far_a_simple_value_reaches():
  """Where odds times its likelihood are as good as those of all values as far apart as simple ones."""
  for apart in (8.0, 50.0, 1000.0):
    reach = rounding._reach(apart, DEFAULT.selection)
    density = np.exp(-(reach**2) / 2) / np.sqrt(2 * np.pi)
    assert DEFAULT.selection.snap_odds * density * apart == pytest.approx(1)
  assert rounding._reach(1.0, DEFAULT.selection) == 0
