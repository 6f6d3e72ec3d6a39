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
from symformer_jax.sources.fractions import (
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
  among = equation_of(rows[:, 0], x=rows, between=np.array([[2.0]]))
  several = np.array([[1.0, 0, 0, *below] for below in ((1, 0, 1), (-1, 0, -1), (3.75, -4, 1), (-2, 1, 0))])
  assert among.is_whole(several).tolist() == [True, True, False, False]
  nowhere = equation_of(rows[:, 0], x=rows, between=np.zeros((0, 1)))
  for sign in (1, -1):
    assert nowhere.is_whole(sign * np.array([[1.0, 0, 0, 3.75, -4, 1]]))[0]
    for at in (1, 3):  # just 0 on a row
      assert not nowhere.is_whole(sign * np.array([[1.0, 0, 0, -at, 1, 0]]))[0]


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
    assert np.all(np.diff(errors) > -1e-9)  # the nearest first, whatever the sign of their factors
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


# --- which bases there are -------------------------------------------------------------------------------------------


def test_bases_of_one_variable_of_few_and_of_many():
  config = dataclasses.replace(
    DEFAULT.rationals, root_degrees=(2, 3), max_linear=3, linear_powers=(1, 2), max_choices=4, one_degree=2,
    max_monomials=6, degrees=((2, 1), (2, 2), (1, 1)))
  total, roots = rational_bases.bases(1, config)
  assert (len(total.numerator), len(total.denominator)) == (3, 2) and not total.has_roots and roots.has_roots
  assert roots.numerator == ((0.0,), (0.5,), (1.0,)) and roots.denominator == ((0.0,), (0.5,), (1.0,), (1.5,))
  assert len(roots.starts) == 3 * 4 and len(rational_bases.bases(1, dataclasses.replace(config, root_degrees=()))) == 1
  _, *two = rational_bases.bases(2, config)
  linear, in_one = two[:4], two[4:]
  assert [basis.numerator[-1] for basis in linear] == [(1, 1), (1, 2), (2, 1), (2, 2)]
  assert [max(basis.numerator) for basis in in_one] == [(2.0, 1.0), (1.0, 2.0)]
  _, *three = rational_bases.bases(3, config)  # eight choices are too many, and 9 monomials of the others
  assert [basis.numerator[-1] for basis in three] == [(1, 1, 1), (2, 2, 2)]
  assert len(rational_bases.bases(3, dataclasses.replace(config, max_choices=8))) == 1 + 8
  assert len(rational_bases.bases(3, dataclasses.replace(config, max_choices=7))) == 1 + 2
  assert len(rational_bases.bases(3, dataclasses.replace(config, max_monomials=9))) == 1 + 2 + 3
  assert len(rational_bases.bases(3, dataclasses.replace(config, max_monomials=8))) == 1 + 2
  assert len(rational_bases.bases(4, config)) == 1


@pytest.mark.parametrize(("num_variables", "max_monomials", "degrees"), [
  (2, 10, (3, 3)), (2, 9, (2, 2)), (2, 6, (2, 2)), (2, 5, (1, 1)), (2, 1, (1, 1)), (3, 20, (3, 2)), (3, 19, (2, 2)),
  (7, 36, (2, 2)), (7, 35, (1, 1))])
def test_degrees_for_which_there_are_not_too_many_monomials(num_variables, max_monomials, degrees):
  config = dataclasses.replace(DEFAULT.rationals, max_monomials=max_monomials)
  basis = rational_bases._total_degree(num_variables, config)
  assert tuple(max(map(sum, each)) for each in (basis.numerator, basis.denominator)) == degrees


def test_powers_of_one_variable_alone_and_times_each_other():
  basis = rational_bases._linear_but_in_one(3, 1, 2)
  every = [(a, float(p), b) for p in range(3) for a, b in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0))]
  assert list(basis.numerator) == list(basis.denominator) == every
  assert basis.starts == tuple((*range(3 * i), *range(9, 9 + 3 * k)) for i in (1, 2, 3) for k in (1, 2, 3))


# --- which terms are kept --------------------------------------------------------------------------------------------


def test_few_rows_tell_which_small_sets_are_worth_a_look(rng):
  y, weights = (1 + X[:, 0]) / (2 + X[:, 0] ** 2) + 0.1 * rng.normal(size=30), rng.uniform(0.2, 2, 30)
  config = dataclasses.replace(DEFAULT.rationals, num_rough_rows=4)
  equation = fits.Equation(BASIS, X, y, weights, X, config=config)
  sets = np.array([[0, 1, 3], [0, 3, 5]])
  rows, coefficients = [0, 9, 19, 29], equation.solve(sets)[0]
  shares = weights / weights.sum()
  variance = np.sum(shares * (y - np.sum(shares * y)) ** 2)
  for found, some in zip(equation.rough_errors(sets), coefficients, strict=True):
    values = (X ** [0, 1, 2] @ some[:3]) / (X ** [0, 1, 2] @ some[3:])
    assert found == pytest.approx(np.sum((shares * (values - y) ** 2)[rows]) / variance, rel=1e-6)
  assert not fits.Fraction({}, {}, 0.0, True).is_exact


class Double:
  """In an equation's place: says which sets it was asked to solve."""

  basis = SimpleNamespace(numerator=(0,) * 3, denominator=(0,) * 3, starts=())
  norms, num_rows = np.ones(6), 30

  def __init__(self, errors=None):
    self.solved, self._errors, self.asked, self.refined_from = [], errors, [], []

  def solve(self, sets):
    self.solved.append(sets.tolist())
    coefficients = np.zeros((len(sets), 6))
    np.put_along_axis(coefficients, sets, 1.0, axis=1)
    return coefficients, np.tile(np.arange(sets.shape[1])[::-1] + 1.0, (len(sets), 1))

  def rough_errors(self, sets):
    return -sets[:, -1].astype(float)

  def errors(self, coefficients):
    self.asked.append(coefficients.copy())
    return np.full(len(coefficients), 0.5) if self._errors is None else self._errors(coefficients)

  def is_whole(self, coefficients):
    return np.ones(len(coefficients), bool)

  def are_fractions(self, coefficients):
    return np.ones(len(coefficients), bool)

  def reweighted(self, coefficients, num_steps):
    return coefficients

  def refined(self, coefficients, num_steps):
    self.refined_from.append(coefficients.copy())
    return coefficients


@pytest.mark.parametrize(("num_rows", "max_terms", "sizes", "most"), [
  (30, 9, [2, 3, 4], 8), (8, 9, [2, 3, 4], 3), (7, 9, [2, 3], 2), (30, 3, [2, 3], 8), (2, 9, [2], 1)])
def test_small_sets_are_tried_as_far_as_rows_tell_them_apart(num_rows, max_terms, sizes, most, monkeypatch):
  sets = tuple(np.array(list(itertools.combinations(range(6), size))) for size in (2, 3, 4))
  asked, config = [], dataclasses.replace(DEFAULT.rationals, max_terms=max_terms, num_small=3)
  monkeypatch.setattr(fits, "small_sets", lambda basis, most: (*sets, np.zeros((0, 2), int)))
  monkeypatch.setattr(fits, "_follow_best", lambda equation, config, most: asked.append(most))
  monkeypatch.setattr(fits, "_eliminate", lambda equation, found, config, most: asked.append((most, found._most)))
  equation = Double()
  fits.find(equation, config, num_rows=num_rows)
  assert [len(some[0]) for some in equation.solved] == sizes
  assert all(len(some) == 3 and {each[-1] for each in some} == {5} for some in equation.solved)  # by their rough errors
  assert asked == [max(num_rows // 2, 2), (max(num_rows // 2, 2), most)]


def test_what_is_found_has_not_too_many_terms_and_an_error():
  errors = {2: 0.3, 3: 1e-19, 4: 0.1, 1: np.inf}
  equation = Double(lambda some: np.array([errors[np.count_nonzero(each)] for each in some]))
  equation.is_whole = lambda some: np.array([np.count_nonzero(each) != 3 for each in some])
  found = fits._Found(equation, DEFAULT.rationals, 3)
  some = np.array([[1.0, 0, 0, 1, 0, 0], [1, 1, 0, 1, 0, 0], [1, 1, 0, 1, 1, 0], [1, 0, 0, 0, 0, 0]])
  # What is exact may have a pole between the rows.
  assert found.take(some).tolist() == [0.3, 1e-19, 0.1, np.inf]
  assert {size: len(kept) for size, kept in found._by_size.items()} == {2: 1, 3: 1}
  for _ in range(5):
    found.take(some[:1])
  assert len(found.best()[2]) == DEFAULT.rationals.num_kept
  equation.are_fractions = lambda some: np.zeros(len(some), bool)
  assert np.isinf(found.take(some)).all()


def test_fits_begin_from_those_of_the_sets_within():
  own = [np.array(each, float) for each in ([1, 0, 0, 1, 0, 0], [0, 1, 0, 0, 1, 0], [2, 2, 0, 2, 0, 0])]

  def errors(some):
    return np.array([0.1 if fits._SMALLEST in each else np.count_nonzero(each) / 10 for each in some])
  equation = Double(errors)
  fits._best_refined(equation, own, DEFAULT.rationals)
  assert [len(some) for some in equation.asked if len(some) > 1] == [2]
  # The third begins from the first, with its own further term as good as 0.
  assert equation.refined_from[2].tolist() == [1, fits._SMALLEST, 0, 1, 0, 0]
  # As soon as too many in a row are no better the larger ones are left out.
  for max_idle, num in ((1, 3), (0, 2), (5, 6)):
    equation = Double(lambda some: np.full(len(some), 0.5))
    sets = [np.eye(6)[i] for i in range(6)]
    fits._best_refined(equation, sets, dataclasses.replace(DEFAULT.rationals, max_idle=max_idle))
    assert len(equation.refined_from) == num
    # Of infinite errors the first is no better than none either.
    equation = Double(lambda some: np.full(len(some), np.inf))
    fits._best_refined(equation, sets, dataclasses.replace(DEFAULT.rationals, max_idle=max_idle))
    assert len(equation.refined_from) == min(max_idle + 1, 6)
  broken = Double()
  broken.is_whole = lambda some: np.zeros(len(some), bool)
  assert fits._best_refined(broken, own, DEFAULT.rationals) is None


def test_elimination_goes_on_with_fractions_of_fewer_terms(monkeypatch):
  children = {(0, 1, 3, 4): [(0, 3), (0, 1, 3), (0, 1, 3, 4), (0, 1), (3, 4), (3,)], (0, 1, 3): [(1, 3), (0, 3)]}
  monkeypatch.setattr(fits, "_children", lambda terms, sizes, rises, error, config: children.get(
    tuple(terms.tolist()), []))
  equation, taken = Double(), []
  equation.basis = SimpleNamespace(numerator=(0,) * 3, denominator=(0,) * 3, starts=(
    (0, 1, 3, 4), (0, 1, 2, 3, 4), (0, 2, 3, 4)))
  found = SimpleNamespace(take=lambda coefficients: taken.append(len(coefficients)) or np.arange(len(coefficients)))
  fits._eliminate(equation, found, DEFAULT.rationals, 4)
  assert equation.solved == [[[0, 1, 3, 4], [0, 2, 3, 4]], [[0, 1, 3]], [[0, 3], [1, 3]]] and taken == [2, 1, 2]
  equation.solved.clear()
  children[0, 2, 3, 4] = [(2, 3)]
  fits._eliminate(equation, found, dataclasses.replace(DEFAULT.rationals, num_beams=1), 4)
  assert equation.solved[-1] == [[0, 3], [1, 3]]  # of each size the best alone has children
  fits._eliminate(equation, found, DEFAULT.rationals, 3)  # nothing to begin with


def test_of_more_terms_than_a_few_a_quarter_goes_at_once():
  config = dataclasses.replace(DEFAULT.rationals, num_drops=2, max_single=8)
  terms, rises = np.arange(8), np.arange(8.0)
  assert fits._children(terms, np.ones(8), rises, 1.0, config) == [tuple(range(1, 8)), (0, *range(2, 8))]
  assert fits._children(np.arange(9), np.ones(9), np.arange(9.0), 1.0, config) == [tuple(range(2, 9))]
  for error, num in ((config.exact, 2), (0.9 * config.exact, 3)):
    assert len(fits._children(terms, np.ones(8), rises, error, config)) == num


# --- how sums of fractions are offered -------------------------------------------------------------------------------


def test_of_one_factor_there_are_its_powers_alone():
  parts = forms.Fractions(LAW_FRACTION, X, tolerance=1e-5)
  values, what = parts.columns([(0.0,), (1.0,)])
  assert values.shape[1] == 4 and [exponent for _, _, exponent in what] == [0, 0, 1, 1] and not parts.is_product


def test_what_an_exact_sum_leaves_is_a_share_of_the_weighted_variance(rng):
  parts, weights = forms.Fractions(LAW_FRACTION, X, tolerance=1e-5), rng.uniform(0.2, 2, 30)
  y = 5 + LAW + 0.1 * rng.normal(size=30)
  columns = parts.columns([(0.0,)])[0]
  variance = np.average((y - np.average(y, weights=weights)) ** 2, weights=weights)
  left = min(np.average((column[:, None] @ least_squares(column[:, None], y, weights) - y) ** 2, weights=weights)
             for column in columns.T) / variance
  for factor in (0.9, 1.1):
    config = dataclasses.replace(DEFAULT.rationals, max_fractions=1, exact=factor * left)
    made, is_exact = forms._sums(parts, [(0.0,)], LAW_FRACTION, y, weights, np.ones(1), 1.0, config)
    assert is_exact == bool(made) == (factor > 1)


def test_of_sums_that_are_not_exact_those_of_fewest_nats_are_offered(monkeypatch):
  parts = forms.Fractions(LAW_FRACTION, X, tolerance=1e-5)
  variance = float(np.var(LAW))
  sets = [([[0], [1]], np.array([0.2, 0.2]) * variance), ([[0, 2]], np.array([1e-4 * variance])),
          ([[0, 1]], np.array([0.5 * DEFAULT.rationals.too_near * variance]))]
  monkeypatch.setattr(forms, "_few_columns", lambda *_: iter(sets))
  inexact = LAW_FRACTION._replace(is_exact=False)
  for most, num in ((9, 3), (1, 1)):
    made, is_exact = forms._sums(parts, [(0.0,), (1.0,)], inexact, LAW, np.ones(30), np.ones(1), 1.0,
                                 dataclasses.replace(DEFAULT.rationals, num_sums=most))
    assert not is_exact and len(made) == num  # what comes too near is an approximation
    assert any(part.token == "inv" for part in expression.walk(made[0]))


def recorded(monkeypatch, x, y, link="y", weights=None):
  """What equations were made of for a function of y."""
  found = []
  monkeypatch.setattr(rationals, "Equation", lambda basis, x, y, weights, between, *, config: found.append(
    (basis, x, y, weights)))
  monkeypatch.setattr(fits, "find", lambda equation, config, num_rows: {})
  rationals._of_link(Rows(x, y, np.ones(len(y)) if weights is None else weights), LINKS[link], DEFAULT.rationals)
  return found


def test_equations_are_of_columns_of_size_one_weighted_as_y(monkeypatch, rng):
  x, y, weights = rng.uniform(1, 2, (20, 2)) * [7.0, -0.1], rng.uniform(1, 2, 20), rng.uniform(0.5, 2, 20)
  _, scaled, z, own = recorded(monkeypatch, x, y, "sqrt", weights)[0]
  np.testing.assert_allclose(scaled, x / np.abs(x).max(axis=0))
  np.testing.assert_allclose(z, y**2 / (y**2).max())
  expected = weights / (2 * y) ** 2
  np.testing.assert_allclose(own, expected / expected.max())
  # Rows where y says nothing of its function are left out.
  assert len(recorded(monkeypatch, x, np.r_[0.0, y[1:]], "sqrt")[0][1]) == 19


@pytest.mark.parametrize(("size", "is_asked"), [
  (1.0, True), (0.99e45, True), (1e45, False), (1.5e45, False), (1.01e-45, True), (1e-45, False)])
def test_columns_of_units_that_nobody_uses_are_left_out(size, is_asked, monkeypatch):
  x = np.linspace(0.5, 1, 20)[:, None] * size
  assert rationals.LARGEST == 1e45 and bool(recorded(monkeypatch, x, np.linspace(1, 2, 20) ** 2)) == is_asked


def test_roots_are_of_columns_without_negative_values(monkeypatch):
  y = np.linspace(1, 2, 20) ** 2
  for low, roots in ((0.0, [False, True]), (-0.1, [False])):
    found = recorded(monkeypatch, np.linspace(low, 1, 20)[:, None], y)
    assert [basis.has_roots for basis, *_ in found] == roots


def test_fractions_are_in_the_columns_that_vary_and_count(rng):
  x = np.column_stack([np.full(40, 2.0), rng.uniform(1, 2, (40, 2))])
  rows = Rows(x, (1 + x[:, 2]) / (x[:, 1] + 3), np.ones(40))
  every = rationals.rationals_of(rows, (0, 1, 2), rule=Rule(3))
  assert len(every) > 1 and len(set(every)) == len(every)
  np.testing.assert_allclose(expression.evaluate(every[0], x), rows.y, rtol=1e-9)
  assert {part.value for node in every for part in expression.walk(node) if part.token == "variable"} == {1, 2}
  few = dataclasses.replace(DEFAULT.rationals, num_fitted=1)
  assert rationals.rationals_of(rows, (0, 1, 2), rule=Rule(3), config=few) == every[:1]
  assert rationals.rationals_of(rows, (0,), rule=Rule(3)) == []


def test_functions_of_y_are_asked_as_the_rules_allow_until_one_is_exact(monkeypatch):
  x = np.linspace(1, 2, 20)[:, None]
  rows, asked = Rows(x, np.linspace(1, 2, 20) ** 3, np.ones(20)), []

  def of_link(rows, link, config):
    asked.append(link)
    return [[parse("x"), parse("log(x - 1.5)")]], link is LINKS["exp"]
  monkeypatch.setattr(rationals, "_of_link", of_link)
  config = dataclasses.replace(DEFAULT.rationals, links=("y", "sqrt", "exp", "ln"))
  rule = SimpleNamespace(allows_operator=lambda token: token != "sqrt")

  class Allowed(SimpleNamespace):
    def __call__(self, node):
      return True
  with np.errstate(all="ignore"):
    found = rationals.rationals_of(rows, (0,), rule=Allowed(allows_operator=rule.allows_operator), config=config)
  assert asked == [LINKS["y"], LINKS["exp"]]
  assert found == [parse("x"), parse("log(x - 1.5)")]  # y itself is defined by its rows
  asked.clear()
  with np.errstate(all="ignore"):
    found = rationals.rationals_of(rows, (0,), rule=Allowed(allows_operator=rule.allows_operator),
                                   config=dataclasses.replace(config, links=("exp",)))
  assert found == [parse("x")]  # under a root or a logarithm nothing may be negative on some rows


@pytest.mark.parametrize(("link", "is_exact", "num_bases", "num_sums"), [
  ("y", True, None, 1), ("y", False, None, 1), ("sqrt", True, 1, 1), ("sqrt", False, 1, 0)])
def test_sums_of_fractions_are_of_y_or_of_what_is_exact(link, is_exact, num_bases, num_sums, monkeypatch):
  fraction = fits.Fraction({(1.0,): 1.0}, {(1.0,): 1.0, (0.0,): 2.0}, 0.1, True, is_exact)
  long = fits.Fraction({(float(k),): 1.0 for k in range(9)}, {(0.0,): 1.0}, 0.1, True, False)
  asked = []
  monkeypatch.setattr(rationals, "_fractions", lambda rows, config, num_bases=None: asked.append(num_bases) or [
    [fraction], [long]])
  monkeypatch.setattr(rationals, "sums_of_fractions", lambda *_: [parse("x + 1/(x + 1)")])
  rows = Rows(X, (X[:, 0] + 1) ** 2, np.ones(30))
  found, exact = rationals._of_link(rows, LINKS[link], DEFAULT.rationals)
  assert exact == is_exact and asked == [num_bases]
  # First the sums, then fractions by number of terms, none longer than is allowed.
  assert [len(each) for each in found] == [1] * (num_sums + 1)


def test_forms_of_a_fraction_are_written_as_the_config_says(monkeypatch):
  config, asked = dataclasses.replace(DEFAULT.rationals, num_fitted=7), []
  fraction = fits.Fraction({(1.0,): 1.0}, {(1.0,): 1.0, (0.0,): 2.0}, 0.1, True, True)
  monkeypatch.setattr(rationals, "_fractions", lambda rows, config, num_bases=None: [[fraction]])
  monkeypatch.setattr(rationals, "sums_of_fractions", lambda *given: asked.append(given[-1]) or [])
  monkeypatch.setattr(rationals, "written", lambda *_, config: asked.append(config) or [])
  rationals._of_link(Rows(X, (X[:, 0] + 1) ** 2, np.ones(30)), LINKS["y"], config)
  assert len(asked) == 2 and all(each is config for each in asked)


def test_of_bases_after_one_that_is_exact_there_are_no_fractions(monkeypatch, rng):
  x, asked = rng.uniform(1, 2, (30, 2)), []

  def find(equation, config, *, num_rows):
    asked.append(equation.basis)
    is_exact = len(asked) == 2
    coefficients = np.zeros(len(equation._powers))
    coefficients[[0, 1, len(equation.basis.numerator)]] = 1.0, len(asked), 1.0
    return {3: [fits.Fit(1e-20 if is_exact else 0.1 / len(asked), equation, coefficients, is_exact)]}
  monkeypatch.setattr(fits, "find", find)
  monkeypatch.setattr(fits, "upto_exact", lambda by_size, config: by_size)
  found = rationals._fractions(Rows(x, rng.normal(size=30), np.ones(30)), DEFAULT.rationals)
  assert len(asked) == 2
  assert found and all(isinstance(each, fits.Fraction) for some in found for each in some)
  asked.clear()
  assert len(rationals._fractions(Rows(x, rng.normal(size=30), np.ones(30)), DEFAULT.rationals, 1)) <= 1 == len(asked)


def test_the_best_fractions_of_each_form_that_keep_their_sign():
  def fit(error, form, is_whole=True, is_exact=False):
    return SimpleNamespace(error=error, fraction=lambda num_steps: fits.Fraction(
      {(form,): 1.0}, {(0.0,): 1.0}, error, is_whole, is_exact))
  some = [fit(0.1, 1.0), fit(0.2, 1.0), fit(0.3, 2.0, False), fit(0.4, 3.0, False, True), fit(0.5, 4.0), fit(0.6, 5.0)]
  config = dataclasses.replace(DEFAULT.rationals, num_kept=3)
  assert [each.error for each in rationals._best(some, config)] == [0.1, 0.4, 0.5]


@pytest.mark.parametrize(("forbidden", "is_asked"), [((), True), (("inv",), False), (("+",), False), (("*",), False)])
def test_who_is_asked_for_fractions(forbidden, is_asked):
  task = SimpleNamespace(rule=SimpleNamespace(allows_operator=lambda token: token not in forbidden))
  assert rationals.Rationals().supports(task) == is_asked and rationals.Rationals().turns == (1,)


@pytest.mark.parametrize(("num_rows", "num_sizes"), [(16, 2), (15, 1), (8, 1), (7, 0), (400, 6)])
def test_sums_of_fractions_have_rows_for_what_stands_above_and_below(num_rows, num_sizes, rng):
  columns, target = rng.normal(size=(num_rows, 9)), rng.normal(size=num_rows)
  config = dataclasses.replace(DEFAULT.rationals, max_fractions=6, rows_per_constant=4)
  assert len(list(forms._few_columns(columns, target, np.ones(num_rows), config))) == num_sizes


def test_of_exact_sums_the_shortest_come_first(monkeypatch):
  parts = forms.Fractions(LAW_FRACTION, X, tolerance=1e-5)
  monkeypatch.setattr(forms, "_few_columns", lambda *_: iter([([[1, 2], [0], [1]], np.zeros(3))]))
  made, is_exact = forms._sums(parts, [(0.0,), (1.0,)], LAW_FRACTION, LAW, np.ones(30), np.ones(1), 1.0,
                               DEFAULT.rationals)
  lengths = [expression.complexity(node) for node in made]
  assert is_exact and lengths == sorted(lengths) and lengths[0] < lengths[2]


def test_what_is_exact_is_followed_as_it_is():
  for error, expected in ((1e-20, True), (0.5, False)):
    equation, followed = Double(lambda some, error=error: np.full(len(some), error)), []
    equation.basis = SimpleNamespace(**{**vars(BASIS), "starts": ((0, 3), (0, 1, 3), (0, 1, 2, 3))})
    equation.follow = lambda coefficients, *, is_exact, followed=followed: followed.append(
      (np.flatnonzero(coefficients).tolist(), is_exact))
    fits._follow_best(equation, DEFAULT.rationals, 3)
    assert followed == [([0, 3], expected)] and len(equation.solved) == (1 if expected else 2)


def test_a_leap_is_more_than_just_a_leap():
  config = dataclasses.replace(DEFAULT.rationals, exact=0.5, leap=0.25, too_near=0.0)
  for error, is_exact in ((0.25, False), (0.2, True)):
    [[fit]] = fits.upto_exact({2: [fit_of(error)]}, config).values()
    assert fit.is_exact == is_exact


@pytest.mark.parametrize(("num_variables", "degrees"), [(1, [3]), (2, [2, 3]), (3, [2]), (5, [2])])
def test_numerators_of_sums_are_of_higher_degree_where_no_sum_is_exact(num_variables, degrees, monkeypatch):
  asked = []
  monkeypatch.setattr(forms, "Fractions", lambda fraction, x, *, tolerance, config: asked.append(tolerance) or (
    SimpleNamespace(factors=[1], is_product=True, product=lambda *_: parse("x/z"))))
  monkeypatch.setattr(forms, "_products", lambda num, degree: (num, degree))
  config = DEFAULT.rationals

  def sums(is_exact, *ends):
    ends = iter(ends)
    monkeypatch.setattr(forms, "_sums", lambda parts, monomials, *_: asked.append(monomials) or (
      [parse("x")], next(ends)))
    fraction = LAW_FRACTION._replace(is_exact=is_exact)
    asked.clear()
    return forms.sums_of_fractions(fraction, np.ones((4, num_variables)), None, None, None, 1.0, config)
  every = [(num_variables, degree) for degree in degrees]
  assert sums(True, *[False] * 2) == [parse("x/z")] + [parse("x")] * len(degrees)
  assert asked == [config.equal_roots, *every]
  assert sums(True, True, True) == [parse("x/z"), parse("x")] and asked[1:] == every[:1]
  assert sums(False, False, False) == [parse("x/z"), parse("x")] and asked == [config.near_roots, *every[:1]]


def test_without_factors_and_products_there_are_sums_alone(monkeypatch):
  monkeypatch.setattr(forms, "_sums", lambda *_: ([parse("x")], True))
  z = parse("z")
  for factors, is_product, product, expected in (
    ([], False, None, []), ([1], False, z, ["x"]), ([1], True, None, ["x"]), ([1], True, z, ["z", "x"])):
    parts = SimpleNamespace(factors=factors, is_product=is_product, product=lambda *_, product=product: product)
    monkeypatch.setattr(forms, "Fractions", lambda *_, parts=parts, **__: parts)
    found = forms.sums_of_fractions(LAW_FRACTION, X, None, None, None, 1.0, DEFAULT.rationals)
    assert found == [parse(text) for text in expected]


def test_steps_end_where_a_denominator_vanishes_or_nothing_is_won(rng):
  y = (1 + 2 * X[:, 0]) / (3 + X[:, 0] ** 2) + 0.02 * rng.normal(size=30)
  equation = equation_of(y)
  pole = np.array([1.0, 2, 0, -X[4, 0], 1, 0])
  with np.errstate(all="ignore"):
    assert equation.reweighted(pole, 3) is pole
    before = equation.solve(np.array([[0, 1, 3, 5]]))[0]
    equation.follow(pole, is_exact=False)
    np.testing.assert_array_equal(equation.solve(np.array([[0, 1, 3, 5]]))[0], before)
  begun = before[0]
  equation.is_whole = lambda coefficients: np.zeros(len(coefficients), bool)
  assert equation.refined(begun, 3) is begun
  equation.are_fractions = lambda coefficients: np.zeros(len(coefficients), bool)
  assert equation.reweighted(begun, 3) is begun


def test_what_is_common_to_all_terms_of_a_fraction_cancels():
  fraction = equation_of(X[:, 0]).fraction(np.array([0.0, 2, 3, 0, 0, 4]))
  assert (fraction.numerator, fraction.denominator) == ({(0.0,): 2.0, (1.0,): 3.0}, {(1.0,): 4.0})
  assert fraction.is_whole and not fraction.is_exact and fraction.num_terms == 3


def test_what_is_left_of_a_denominator_is_a_factor_unless_it_is_a_number(rng):
  x = rng.uniform(1, 2, (20, 2))
  for denominator, num in (({(1.0, 0.0): 1.0, (0.0, 1.0): 2.0}, 1), ({(1.0, 1.0): 3.0}, 2)):
    fraction = fits.Fraction({(0.0, 0.0): 1.0}, denominator, 0.0, True, True)
    assert len(forms.Fractions(fraction, x, tolerance=1e-5).factors) == num


def test_a_basis_begins_with_every_pair_of_degrees():
  nested = rational_bases._nested([(0,), (1,), (2,)], [(0,), (1,)], (2, 1))
  assert nested.starts == ((0, 3), (0, 3, 4), (0, 1, 3), (0, 1, 3, 4), (0, 1, 2, 3), (0, 1, 2, 3, 4))
  steps = rational_bases._nested([(0,), (0.5,), (1,)], [(0,)], (2, 0), 0.5)
  assert steps.starts == ((0, 3), (0, 1, 3), (0, 1, 2, 3))


def test_a_fraction_is_factored_where_coefficients_tell():
  """(x + 1)*(x + 2)/((x + 3)*(x + 4)) of columns and a target of other units."""
  top, bottom = {(2.0,): 1.0, (1.0,): 3.0, (0.0,): 2.0}, {(2.0,): 1.0, (1.0,): 7.0, (0.0,): 12.0}
  config = dataclasses.replace(DEFAULT.rationals, least_factored=6)
  [node] = rationals._factored(fits.Fraction(top, bottom, 0.0, True, True), np.array([2.0]), 5.0, config)
  at = np.linspace(1, 3, 9)
  expected = 5 * (at / 2 + 1) * (at / 2 + 2) / ((at / 2 + 3) * (at / 2 + 4))
  np.testing.assert_allclose(expression.evaluate(node, at[:, None]), expected)
  odd = fits.Fraction({**top, (1.0,): np.pi}, {**bottom, (1.0,): np.e}, 0.0, True, True)
  for some, own in ((odd, config), (fits.Fraction(top, bottom, 0.0, True, True), dataclasses.replace(
      config, least_factored=7))):
    assert rationals._factored(some, np.ones(1), 1.0, own) == []
