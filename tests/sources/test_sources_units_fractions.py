"""Parts of rational functions by themselves: fits of fractions, what is offered, how it is written."""

import dataclasses
import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression, parser
from symformer_jax.language.rules import Rule
from symformer_jax.sources import (
  polynomials,
  rational_bases,
  rational_fits as fits,
  rational_forms as forms,
  rationals,
)
from symformer_jax.sources.links import LINKS

NAMES = ("x", "z", "w")


def parse(text):
  return parser.parse(text, NAMES)


def least_squares(columns, target, weights):
  root = np.sqrt(weights)
  return np.linalg.lstsq(root[:, None] * columns, root * target, rcond=None)[0]


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


def test_under_noise_the_values_of_the_best_fraction_are_followed(rng):
  y = (1 + 2 * X[:, 0]) / (3 + X[:, 0] ** 2) + 0.02 * rng.normal(size=30)
  equation, terms = equation_of(y), (0, 1, 3, 5)
  equation.basis = SimpleNamespace(**vars(BASIS), starts=(terms,))
  best = fits._best_refined(equation, list(equation.solve(np.array([terms]))[0]), DEFAULT.rationals)
  fits._follow_best(equation, DEFAULT.rationals, 9)
  [found] = equation.solve(np.array([terms]))[0]
  np.testing.assert_allclose(found / found[0], best / best[0], rtol=1e-6)


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
  found = rationals.points_between(np.array([[4.0], [0], [8]]), config)
  assert sorted(found[:, 0].tolist()) == [1, 2, 3, 5, 6, 7]
  square = rationals.points_between(np.random.default_rng(0).uniform(1, 2, (9, 2)), config)
  assert square.shape == (3 * config.num_segments, 2) and square.min() >= 1 and square.max() <= 2


def fraction_of(error, denominator, *, is_exact=False):
  return fits.Fraction({(0.0,): 1.0 + error}, {(power,): 1.0 for power in denominator}, error, True, is_exact)


def test_what_may_be_a_sum_of_fractions():
  config = dataclasses.replace(DEFAULT.rationals, num_taken_apart=2)
  good, better, poor = (fraction_of(error, (0.0, 1.0)) for error in (1e-4, 1e-6, 1e-1))
  some = [[good, poor], [better, fraction_of(1e-9, (0.0, 0.5)), fraction_of(1e-9, (2.0,))]]
  assert rationals._promising(some, 50, config) == [better, good]
  exact = [fraction_of(0.0, denominator, is_exact=True) for denominator in ((0.0, 1.0), (0.0, 1.0, 2.0))]
  assert rationals._promising([*some, exact], 50, config) == exact[:1]


def asked(monkeypatch, x, y, link):
  """The basis and the number of rows of each search for fractions that a function of y is asked for."""
  found = []
  monkeypatch.setattr(fits, "find", lambda equation, config, num_rows: found.append(
    (equation.basis, num_rows)) or {})
  assert rationals._of_link(Rows(x, y, np.ones(len(y))), LINKS[link], DEFAULT.rationals) == ([], False)
  return found


def test_of_functions_of_y_one_basis_is_tried_and_rows_that_differ_count(monkeypatch, rng):
  x = np.repeat(rng.uniform(1, 2, (20, 2)), 2, axis=0)
  y = np.prod(x, axis=1)
  of_y, of_root = (asked(monkeypatch, x, y, link) for link in ("y", "sqrt"))
  assert [basis for basis, _ in of_y] == list(rational_bases.bases(2, DEFAULT.rationals)) and of_root == of_y[:1]
  assert {num_rows for _, num_rows in of_y} == {20}
  assert asked(monkeypatch, x, 0 * y + 3, "y") == asked(monkeypatch, x, 0 * y, "sqrt") == []  # y does not vary


# --- how fractions are written ---------------------------------------------------------------------------------------


def test_divisors_that_leave_simple_numbers():
  def simplest(coefficients, usual):
    return forms._simplest_divisors(coefficients, usual, DEFAULT.rationals)
  assert simplest([2.0, 3.0], 2.0) == [2.0]
  assert simplest([0.7, 0.7 * 1.3, math.pi], math.pi) == [math.pi, pytest.approx(0.7)]
  assert simplest([0.7, 0.7 * 1.3, 0.7 * 2.21, math.pi], math.pi) == [pytest.approx(0.7)]
  assert simplest([0.7 * c for c in (1, 0.357, 0.0125, 0.219)] + [math.pi], math.pi) == [pytest.approx(0.7)]
  assert simplest([0.217 * k for k in (3, 7, 11, 13)], 0.217 * 13) == [pytest.approx(0.217)]  # whole numbers


@pytest.mark.parametrize("is_exact", [True, False])
def test_a_fraction_is_written_in_the_units_of_the_user(is_exact, rng):
  fraction = fits.Fraction({(1.0, 0.0): 2.0, (0.0, 0.0): 1.0}, {(0.0, 2.0): 4.0, (1.0, 0.0): 3.0}, 0.0, True, is_exact)
  sizes, x = np.array([20.0, 0.1]), rng.uniform(0.2, 1, (9, 2))
  expected = 7 * (2 * x[:, 0] + 1) / (4 * x[:, 1] ** 2 + 3 * x[:, 0])
  for node in forms.written(fraction, sizes, 7.0):
    np.testing.assert_allclose(expression.evaluate(node, x * sizes), expected, rtol=1e-12)
  assert forms._leading({(2.0, 0.0): 5.0, (1.0, 1.0): 6.0, (0.0, 1.0): 7.0}) == 5.0
  assert forms._leading({(1.0, 0.0): 5.0, (0.0, 2.0): 6.0}) == 6.0


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


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_a_factor_that_vanishes_on_a_row_makes_no_product(rng):
  """As where the roots of several rows, which differ, are taken for one."""
  x = np.array([[0.5], [1.0], [1.5], [2.0]])
  vanishing = fits.Fraction({(0.0,): 1.0}, {(2.0,): 1.0, (1.0,): -3.0, (0.0,): 2.0}, 0.0, True, True)  # at 1 and at 2
  parts = forms.Fractions(vanishing, x, tolerance=1e-5)
  assert parts.is_product and parts.product(np.ones(1), 1.0, np.ones(4), np.arange(4.0)) is None


def test_a_fraction_over_the_product_of_its_factors(rng):
  whole = {(3.0,): 2.0, (2.0,): 10.0, (1.0,): 16.0, (0.0,): 8.0}  # 2*(x + 2)**2*(x + 1)
  fraction = fits.Fraction({(1.0,): 3.0, (0.0,): 1.0}, whole, 0.0, True, True)
  y, weights = polynomials.values(fraction.numerator, X) / polynomials.values(whole, X), rng.uniform(0.5, 2, 30)
  node = forms.Fractions(fraction, X, tolerance=1e-4).product(np.array([2.0]), 3.0, weights, y)
  np.testing.assert_allclose(expression.evaluate(node, 2 * X), 3 * y, rtol=1e-6)
  assert expression.complexity(node) < expression.complexity(parse("(x + 1.5)/((x + 4.5)*(x + 4.5)*(x + 2.5))*1.5"))


LAW = X[:, 0] ** 3 + 1 / (X[:, 0] + 1)
LAW_FRACTION = fits.Fraction(
  {(4.0,): 1.0, (3.0,): 1.0, (0.0,): 1.0}, {(1.0,): 1.0, (0.0,): 1.0}, 0.0, True, True)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_exact_sum_of_fractions_needs_its_monomials(sign):
  parts = forms.Fractions(LAW_FRACTION, X, tolerance=1e-5)
  for powers, is_enough in (((0, 1, 2), False), ((0, 1, 2, 3), True)):
    made, is_exact = forms._sums(parts, [(float(power),) for power in powers], LAW_FRACTION, sign * LAW, np.ones(30),
                                 np.ones(1), 1.0, DEFAULT.rationals)
    assert is_exact == bool(made) == is_enough
  # A row of next to no weight is no reason to call everything near.
  far, weights = np.append(sign * LAW[:-1], 1e12), np.append(np.ones(29), 1e-32)
  assert forms._sums(parts, [(0.0,)], LAW_FRACTION, far, weights, np.ones(1), 1.0, DEFAULT.rationals) == ([], False)


def test_a_fraction_of_a_sum_has_simple_numbers_where_it_is_exact():
  whole = {(1.0,): 0.3, (0.0,): 1.0}
  parts = forms.Fractions(fits.Fraction({(0.0,): 1.0}, whole, 0.0, True, True), X, tolerance=1e-5)
  node = parts.node([((0.0,), 0, 1)], np.array([1 / 0.3]), np.ones(1), 1.0)
  np.testing.assert_allclose(expression.evaluate(node, X), 1 / (1 + 0.3 * X[:, 0]))
  assert {round(part.value, 9) for part in expression.walk(node) if part.is_number} <= {0.3, 1.0}


def test_the_sum_of_fractions_that_a_person_writes_is_among_those_of_a_law():
  shortest = expression.complexity(parse("x**3 + 1/(x + 1)"))
  config = dataclasses.replace(DEFAULT.rationals, links=("y",))
  sums = forms.sums_of_fractions(LAW_FRACTION, X, LAW, np.ones(30), np.ones(1), 1.0, config)
  for found in (sums[:1], rationals.rationals_of(Rows(X, LAW, np.ones(30)), (0,), rule=Rule(1), config=config)):
    exact = [node for node in found if np.allclose(expression.evaluate(node, X), LAW, rtol=1e-9)]
    assert min(map(expression.complexity, exact)) <= shortest + 4  # factors of 1 that rounding leaves


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
