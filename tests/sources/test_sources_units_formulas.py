"""Parts of the library and of rational functions by themselves: grids of functions, fits, how fractions are written."""

import dataclasses
import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import expression, parser
from symformer_jax.sources import families, polynomials, rational_fits as fits, rational_forms as forms, rationals

NAMES = ("x", "z", "w")


def parse(text):
  return parser.parse(text, NAMES)


def least_squares(columns, target, weights):
  root = np.sqrt(weights)
  return np.linalg.lstsq(root[:, None] * columns, root * target, rcond=None)[0]


# --- families --------------------------------------------------------------------------------------------------------

SPACE = families.Space(np.random.default_rng(0).uniform(0.5, 3, (25, 3)), (0, 1), DEFAULT.library)
MAKERS = {name: (subjects, make) for subjects, rows in families.FAMILIES for name, make in rows.items()}


@pytest.mark.parametrize("name", MAKERS)
def test_members_of_a_family_have_the_values_of_their_formulas(name):
  subjects, make = MAKERS[name]
  space = dataclasses.replace(SPACE, columns=(0, 1) if list(subjects(SPACE)) else (0, 1, 2))
  with np.errstate(all="ignore"):
    for subject in itertools.islice(subjects(space), 0, None, 7):
      for family in itertools.islice(make(space, subject), 0, None, 5):
        count = family.values.shape[1]
        for g in {0, count // 2, count - 1} if count else ():
          np.testing.assert_allclose(
            family.values[:, g], expression.evaluate(family.build(g), space.x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_asked_for_is_made_and_members_are_of_one_kind_but_where_they_differ(name):
  config = dataclasses.replace(DEFAULT.library, families=(name,))
  space = dataclasses.replace(SPACE, columns=(0, 1) if list(MAKERS[name][0](SPACE)) else (0, 1, 2), config=config)
  are_different = name in (
    "monomials", "squared_differences", "long_monomials", "functions_times_monomials", "products")
  with np.errstate(all="ignore"):
    made = list(itertools.islice(families.make_families(space), 40))
  assert made and all(family.is_mixed == are_different for family in made)
  assert not list(families.make_families(dataclasses.replace(space, config=dataclasses.replace(config, families=()))))
  plain = families.plain_columns(space, (2, 0))
  assert bool(plain) == (name == "monomials")
  for family in plain:
    assert family.is_mixed and family.tier == families.MONOMIAL and family.build(1) == parse("x")
    np.testing.assert_array_equal(family.values, space.x[:, [2, 0]])


def test_what_functions_are_taken_of_and_multiplied_by():
  config = DEFAULT.library
  for columns, few in (((0,), config.num_few_factors), ((0, 1), 0)):
    space = dataclasses.replace(SPACE, columns=columns)
    found = {argument.node: argument for argument in families._each_argument(space)}
    num_factors = len(columns) * len(config.outer_powers) + math.comb(len(columns), 2)
    for node, count in ((parse("x"), num_factors), (parse("x**2"), few), (parse("exp(x)"), 0)):
      assert len(found[node].factors) == count and found[node].is_variable == (node == parse("x"))
      np.testing.assert_allclose(found[node].u, expression.evaluate(node, space.x))
    assert found[parse("exp(x)")].is_inner and not found[parse("x**2")].is_inner
  level = dataclasses.replace(SPACE, x=np.ones((9, 3)))
  assert not list(families._each_argument(level))


def test_waves_are_so_many_multiples_of_a_quarter_wave_over_the_range():
  config, u = DEFAULT.library, SPACE.x[:, 0]
  quarter = np.pi / 2 / np.ptp(u)
  for is_variable, alone, times in ((True, config.num_waves, config.num_multiplied_waves),
                                    (False, config.num_other_waves, config.num_other_waves)):
    made = list(families._waves(SPACE, families._Argument(parse("x"), u, is_variable, [parse("z")])))
    assert [family.values.shape[1] for family in made] == [alone, alone, times, times]
    np.testing.assert_allclose(made[0].values[:, [0, -1]], np.sin(quarter * np.outer(u, [1, alone])), atol=1e-9)
  made = list(families._decaying_waves(SPACE, parse("x")))
  slowest, _, num = config.decays
  assert [family.values.shape[1] for family in made] == [config.num_decaying_waves] * 2 * num
  expected = np.exp(-slowest / np.ptp(u) * u)[:, None] * np.sin(quarter * np.outer(u, [1, config.num_decaying_waves]))
  np.testing.assert_allclose(made[0].values[:, [0, -1]], expected, atol=1e-9)


def test_peaks_stand_evenly_within_the_range():
  space = dataclasses.replace(SPACE, x=np.linspace(2, 5, 421)[:, None], columns=(0,))
  num = space.config.num_places
  places = 2 + 3 * np.arange(1, num + 1) / (num + 1)
  normal, cauchy, step = families._peaks_and_steps(space, parse("x"))
  for family in (normal, cauchy):  # the narrowest come first
    np.testing.assert_allclose(space.x[np.argmax(family.values[:, :num], axis=0), 0], places, atol=0.01)
  np.testing.assert_allclose(space.x[np.argmin(np.abs(step.values[:, :num] - 0.5), axis=0), 0], places, atol=0.01)


def test_grids_of_inner_constants_go_by_the_range_of_the_data():
  config, u = DEFAULT.library, np.array([2.0, 3.0, 7.0])
  argument = families._Argument(parse("x"), u, True, ())
  low, high, num = config.rates
  rates = families._rates(argument, config)
  assert rates[: len(config.usual_rates)].tolist() == list(config.usual_rates)
  rising, falling = np.split(rates[len(config.usual_rates):], 2)
  np.testing.assert_array_equal(rising, -falling)
  assert len(rising) == num and [rising[0], rising[-1]] == pytest.approx([low / 5, high / 5])
  shifts = families._shifts(argument, config)[len(config.usual_shifts):]
  below, above = np.split(shifts, 2)  # zeros of u + c: below the data by these distances, and above
  low, high, num = config.distances
  np.testing.assert_allclose(2.0 + below, 5 * np.geomspace(low, high, num))
  np.testing.assert_allclose(-(7.0 + above), 5 * np.geomspace(low, high, num))
  places = families._places(u, config)
  np.testing.assert_allclose(np.diff([0, *places, 5]), 5 / (config.num_places + 1))
  assert families._quarter_wave(u) == pytest.approx(math.pi / 10)


def test_functions_of_a_variable_itself_are_looked_for_more_thoroughly_than_those_times_a_factor():
  [alone, times] = families._with_factors(families._exponentials)(
    SPACE, families._Argument(parse("x"), SPACE.x[:, 0], True, [parse("z")]))
  assert (alone.tier, times.tier) == (families.BASIC, families.ANY)
  np.testing.assert_allclose(times.values, SPACE.x[:, [1]] * alone.values)
  for make, tier in ((families._trigonometric, families.BASIC), (families._exponentials, families.ANY)):
    inner = families._Argument(parse("log(x)"), np.log(SPACE.x[:, 0]), False, (), is_inner=True)
    assert {family.tier for family in families._with_factors(make)(SPACE, inner)} == {tier}


@pytest.mark.parametrize(("num_columns", "is_few", "is_many"), [(1, True, False), (3, True, True), (4, False, True)])
def test_what_few_and_many_variables_are(num_columns, is_few, is_many):
  space = dataclasses.replace(SPACE, columns=range(num_columns))
  assert (space.is_of_few, space.is_of_many) == (is_few, is_many)


def test_squared_differences_of_so_many_variables_that_there_are_not_too_many():
  x = np.random.default_rng(0).uniform(1, 2, (9, 4))
  for most, count in ((6, 6), (5, 0)):
    space = families.Space(x, range(4), dataclasses.replace(DEFAULT.library, max_pairs=most))
    found = list(families._squared_differences(space, None))
    assert sum(family.values.shape[1] for family in found) == count
  assert not list(families._squared_differences(dataclasses.replace(space, columns=(0,)), None))


# --- fractions -------------------------------------------------------------------------------------------------------

BASIS = SimpleNamespace(numerator=((0.0,), (1.0,), (2.0,)), denominator=((0.0,), (1.0,), (2.0,)))
X = np.linspace(0.5, 3, 30)[:, None]


def equation_of(y, *, weights=None, x=X, between=None):
  return fits.Equation(BASIS, x, y, np.ones(len(y)) if weights is None else weights, x if between is None else between)


def test_errors_are_shares_of_the_weighted_variance(rng):
  y, weights = rng.normal(size=30), rng.uniform(0.2, 2, 30)
  coefficients = np.array([[1.0, 2, 0, 3, 0, 1], [0, 1, 0, 0, 0, 0]])
  with np.errstate(all="ignore"):
    found = equation_of(y, weights=weights).errors(coefficients)
  values = (1 + 2 * X[:, 0]) / (3 + X[:, 0] ** 2)
  variance = np.average((y - np.average(y, weights=weights)) ** 2, weights=weights)
  assert found.tolist() == [pytest.approx(np.average((values - y) ** 2, weights=weights) / variance), math.inf]


def test_a_law_is_the_null_vector_of_its_terms_and_each_other_loss_is_dear():
  law = np.array([1.0, 2, 0, 3, 0, 1])
  y = (1 + 2 * X[:, 0]) / (3 + X[:, 0] ** 2)
  equation = equation_of(y)
  [found], [rise] = equation.solve(np.array([[0, 1, 3, 5]]))
  np.testing.assert_allclose(found * (law[5] / found[5]), law, atol=1e-8)
  assert equation.errors(found[None])[0] < 1e-20 and np.all(rise > 1e-12)
  assert equation.rough_errors(np.array([[0, 1, 3, 5]]))[0] < 1e-12
  fraction = equation.fraction(law)
  assert fraction.num_terms == 4 and fraction.form == (((0.0,), (1.0,)), ((0.0,), (2.0,)))


def test_what_a_term_is_worth_is_the_least_rise_of_the_error_where_its_coefficient_is_0(rng):
  y = (1 + 2 * X[:, 0]) / (3 + X[:, 0] ** 2) + 1e-4 * rng.normal(size=30)
  equation, terms = equation_of(y), [0, 1, 3, 5]
  columns = np.concatenate([X ** [0, 1, 2], -y[:, None] * X ** [0, 1, 2]], axis=1)[:, terms]
  columns = columns / np.linalg.norm(columns, axis=0) / np.sqrt(30)
  *others, best = np.linalg.svd(columns)[2]
  others = np.array(others).T
  # The least |columns @ others @ a|^2 with best + others @ a = 0 at the term.
  inverse = np.linalg.inv(others.T @ columns.T @ columns @ others)
  expected = [best[i] ** 2 / (others[i] @ inverse @ others[i]) for i in range(4)]
  np.testing.assert_allclose(equation.solve(np.array([terms]))[1][0], expected, rtol=1e-6)


@pytest.mark.parametrize("is_exact", [True, False])
def test_rows_are_divided_by_the_denominator_that_is_followed(is_exact, rng):
  y, weights = rng.uniform(1, 2, 30), rng.uniform(0.2, 2, 30)
  followed, terms = np.array([1.0, 2, 0, -3, 0, -1]), [0, 2, 3, 4]
  below = -3 - X[:, 0] ** 2
  equation = equation_of(y, weights=weights)
  equation.follow(followed, is_exact=is_exact)
  values = y if is_exact else (1 + 2 * X[:, 0]) / below
  columns = np.concatenate([X ** [0, 1, 2], -values[:, None] * X ** [0, 1, 2]], axis=1)[:, terms]
  norms = np.linalg.norm(columns, axis=0)
  expected = np.linalg.svd((np.sqrt(weights) / below)[:, None] * columns / norms)[2][-1] / norms
  found = equation.solve(np.array([terms]))[0][0, terms]
  np.testing.assert_allclose(found / found[0], expected / expected[0], rtol=1e-6)


def test_steps_come_nearer_to_the_best_fraction_of_noisy_rows(rng):
  y = (1 + 2 * X[:, 0]) / (3 + X[:, 0] ** 2) + 0.02 * rng.normal(size=30)
  weights = rng.uniform(0.2, 2, 30)
  equation, terms = equation_of(y, weights=weights), np.array([[0, 1, 3, 5]])
  begun = equation.solve(terms)[0][0]
  weighed = equation.reweighted(begun, 3)
  refined = equation.refined(weighed, 20)
  errors = equation.errors(np.array([begun, weighed, refined]))
  assert errors[2] <= errors[1] < errors[0]
  # At the optimum the errors are orthogonal to all derivatives of the fraction.
  below = refined[3] + refined[5] * X[:, 0] ** 2
  values = (refined[0] + refined[1] * X[:, 0]) / below
  slopes = np.stack([1 / below, X[:, 0] / below, -values / below, -values * X[:, 0] ** 2 / below])
  along = slopes @ (weights * (values - y))
  assert np.all(np.abs(along) < 1e-5 * np.linalg.norm(slopes, axis=1) * np.linalg.norm(weights * (values - y)))


@pytest.mark.parametrize(("denominator", "is_whole"), [
  ((1.0, 0, 1), True), ((-1.0, 0, -1), True), ((-2.0, 1, 0), False), ((-3.0, 1, 0), False), ((-0.4, 1, 0), True)])
def test_a_denominator_keeps_its_sign_on_the_rows_and_between_them(denominator, is_whole):
  coefficients = np.array([[1.0, 0, 0, *denominator]])
  assert equation_of(X[:, 0]).is_whole(coefficients)[0] == is_whole
  rows = np.array([[1.0], [3.0]])
  assert equation_of(rows[:, 0], x=rows).is_whole(np.array([[1.0, 0, 0, 3.75, -4, 1]]))[0]  # roots at 1.5 and 2.5
  assert not equation_of(rows[:, 0], x=rows, between=np.array([[2.0]])).is_whole(
    np.array([[1.0, 0, 0, 3.75, -4, 1]]))[0]


def test_a_fraction_has_terms_on_both_sides_of_its_line():
  found = equation_of(X[:, 0]).are_fractions(np.array([[0, 0, 1.0, 0, 1, 0], [1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 0, 1]]))
  assert found.tolist() == [True, False, False]


def fit_of(error):
  return fits.Fit(error, None, None)


def test_the_law_is_one_leap():
  config = DEFAULT.rationals
  by_size = {3: [fit_of(1e-3)], 2: [fit_of(0.5)], 4: [fit_of(0.5 * config.exact), fit_of(2 * config.exact)], 5: []}
  found = fits.upto_exact(by_size, config)
  assert {size: [(fit.error, fit.is_exact) for fit in some] for size, some in found.items()} == {
    2: [(0.5, False)], 3: [(1e-3, False)], 4: [(0.5 * config.exact, True)]}
  # By small steps to rounding: none that is nearer than what tells a law from an approximation.
  slow = {size: [fit_of(10.0 ** (-4 * size))] for size in range(1, 6)}
  assert list(fits.upto_exact(slow, config)) == [1, 2, 3, 4]
  assert list(fits.upto_exact({1: [fit_of(0.9 * config.too_near)]}, config)) == []


def test_nats_of_a_fraction():
  assert fits.nats(0.01, 5, 40) == pytest.approx(20 * math.log(0.01) + 2.5 * math.log(40))
  assert math.isfinite(fits.nats(0.0, 5, 40))


def test_terms_whose_loss_costs_least_are_left_out():
  config = dataclasses.replace(DEFAULT.rationals, num_drops=2, max_single=4)
  terms, rises = np.array([1, 3, 4, 8]), np.array([0.5, 0.1, 0.9, 0.2])
  sizes = np.array([0, 1.0, 0, 2.0, 1e-9, 0, 0, 0, 3.0])
  assert fits._children(terms, sizes, rises, 1.0, config) == [(1, 4, 8), (1, 3, 4)]
  assert fits._children(terms, sizes, rises, 0.0, config)[2:] == [(1, 3, 8)]  # 4 is rounding
  many = np.arange(8)
  assert fits._children(many, np.ones(8), many[::-1] * 1.0, 1.0, config) == [(0, 1, 2, 3, 4, 5)]


def test_points_between_the_rows():
  config = dataclasses.replace(DEFAULT.rationals, points_between=3)
  found = rationals._between(np.array([[4.0], [0], [8]]), config)
  assert sorted(found[:, 0].tolist()) == [1, 2, 3, 5, 6, 7]
  square = rationals._between(np.random.default_rng(0).uniform(1, 2, (9, 2)), config)
  assert square.shape == (3 * config.num_segments, 2) and square.min() >= 1 and square.max() <= 2


def fraction_of(error, denominator, *, is_exact=False):
  return fits.Fraction({(0.0,): 1.0}, {(power,): 1.0 for power in denominator}, error, True, is_exact)


def test_what_may_be_a_sum_of_fractions():
  config = dataclasses.replace(DEFAULT.rationals, num_taken_apart=2)
  good, better, poor = (fraction_of(error, (0.0, 1.0)) for error in (1e-4, 1e-6, 1e-1))
  some = [[good, poor], [better, fraction_of(1e-9, (0.0, 0.5)), fraction_of(1e-9, (2.0,))]]
  assert rationals._promising(some, 50, config) == [better, good]
  exact = [fraction_of(0.0, denominator, is_exact=True) for denominator in ((0.0, 1.0), (0.0, 1.0, 2.0))]
  assert rationals._promising([*some, exact], 50, config) == exact[:1]


# --- how fractions are written ---------------------------------------------------------------------------------------


def test_divisors_that_leave_simple_numbers():
  def simplest(coefficients, usual):
    return forms._simplest_divisors(coefficients, usual)
  assert simplest([2.0, 3.0], 2.0) == [2.0]
  assert simplest([0.7, 0.7 * 1.3, math.pi], math.pi) == [math.pi, pytest.approx(0.7)]
  assert simplest([0.7, 0.7 * 1.3, 0.7 * 2.21, math.pi], math.pi) == [pytest.approx(0.7)]
  assert simplest([1234.5, 2345.6, 3456.7], 3456.7) == [3456.7]  # none that has more than three digits
  assert simplest([0.217 * k for k in (3, 7, 11, 13)], 0.217 * 13) == [pytest.approx(0.217)]  # whole numbers


@pytest.mark.parametrize("is_exact", [True, False])
def test_a_fraction_is_written_in_the_units_of_the_user(is_exact, rng):
  fraction = fits.Fraction({(1.0, 0.0): 2.0, (0.0, 0.0): 1.0}, {(0.0, 2.0): 4.0, (1.0, 0.0): 3.0}, 0.0, True, is_exact)
  sizes, x = np.array([20.0, 0.1]), rng.uniform(0.2, 1, (9, 2))
  expected = 7 * (2 * x[:, 0] + 1) / (4 * x[:, 1] ** 2 + 3 * x[:, 0])
  for node in forms.written(fraction, sizes, 7.0):
    np.testing.assert_allclose(expression.evaluate(node, x * sizes), expected, rtol=1e-12)
  assert forms._leading({(2.0, 0.0): 5.0, (1.0, 1.0): 6.0, (0.0, 1.0): 7.0}) == 5.0


def test_a_denominator_of_one_term_needs_no_line():
  node = forms._quotient({(2.0,): 3.0, (0.0,): 4.0}, {(1.0,): 2.0})
  assert expression.complexity(node) == expression.complexity(parse("1.5*x + 2/x"))
  np.testing.assert_allclose(expression.evaluate(node, X), 1.5 * X[:, 0] + 2 / X[:, 0])


@pytest.mark.parametrize(("num_variables", "degree"), [(1, 3), (2, 2), (3, 2)])
def test_products_of_all_degrees(num_variables, degree):
  found = forms._products(num_variables, degree)
  expected = [powers for powers in itertools.product(range(degree + 1), repeat=num_variables) if sum(powers) <= degree]
  assert sorted(found) == sorted(tuple(map(float, powers)) for powers in expected)


def test_few_columns_are_those_of_least_squares(rng):
  columns, weights = rng.normal(size=(40, 7)) * 10.0 ** rng.integers(-3, 4, 7), rng.uniform(0.5, 2, 40)
  target = columns[:, [1, 4]] @ [2.0, -1.0] / np.abs(columns[:, [1, 4]]).max() + 0.1 * rng.normal(size=40)
  config = dataclasses.replace(DEFAULT.rationals, max_fractions=3, num_carried=99)
  found = list(forms._few_columns(columns, target, weights, config))
  assert [len(sets[0]) for sets, _ in found] == [1, 2, 3]
  for size, (sets, errors) in enumerate(found, start=1):
    of_all = {}
    for chosen in itertools.combinations(range(7), size):
      some = columns[:, chosen]
      of_all[chosen] = np.average((some @ least_squares(some, target, weights) - target) ** 2, weights=weights)
    assert tuple(sets[0]) == min(of_all, key=of_all.get)
    np.testing.assert_allclose(errors, [of_all[tuple(each)] for each in sets], rtol=1e-8)
    assert errors[0] == min(errors)
  np.testing.assert_allclose(forms._least_squares(columns, target, weights), least_squares(columns, target, weights))


def test_a_fraction_over_the_product_of_its_factors(rng):
  whole = {(3.0,): 2.0, (2.0,): 10.0, (1.0,): 16.0, (0.0,): 8.0}  # 2*(x + 2)**2*(x + 1)
  fraction = fits.Fraction({(1.0,): 3.0, (0.0,): 1.0}, whole, 0.0, True, True)
  y, weights = polynomials.values(fraction.numerator, X) / polynomials.values(whole, X), rng.uniform(0.5, 2, 30)
  node = forms.Fractions(fraction, X, tolerance=1e-4).product(np.array([2.0]), 3.0, weights, y)
  np.testing.assert_allclose(expression.evaluate(node, 2 * X), 3 * y, rtol=1e-6)
  assert expression.complexity(node) < expression.complexity(parse("(x + 1.5)/((x + 4.5)*(x + 4.5)*(x + 2.5))*1.5"))


def test_columns_over_each_power_of_each_factor():
  whole = {(3.0,): 1.0, (2.0,): 5.0, (1.0,): 8.0, (0.0,): 4.0}  # (x + 2)**2*(x + 1)
  parts = forms.Fractions(fits.Fraction({(0.0,): 1.0}, whole, 0.0, True, True), X, tolerance=1e-4)
  assert parts.is_product and sorted(parts.counts) == [1, 2]
  values, what = parts.columns([(0.0,), (1.0,)])
  assert len(what) == values.shape[1] == 2 * (1 + 2 + 1 + 1)
  lines = [*parts.factors, whole]
  for column, (powers, factor, exponent) in zip(values.T, what, strict=True):
    expected = X[:, 0] ** powers[0] / polynomials.values(lines[factor], X) ** exponent
    np.testing.assert_allclose(column, expected, rtol=1e-6)
  coefficients = np.arange(1.0, len(what) + 1)
  node = parts.node(what, coefficients, np.array([2.0]), 3.0)
  np.testing.assert_allclose(expression.evaluate(node, 2 * X), 3 * values @ coefficients, rtol=1e-6)
