"""Monomials, polynomials and functions of y by themselves, beside trying everything by NumPy."""

import dataclasses

import numpy as np
import pytest

from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression, parser
from symformer_jax.sources.fractions import polynomials
from symformer_jax.sources.links import LINKS
from symformer_jax.sources.sums import terms

NAMES = ("x", "z", "w")


def parse(text):
  return parser.parse(text, NAMES)


@pytest.fixture
def rows(rng):
  return Rows(rng.uniform(0.5, 2.5, (40, 3)), rng.uniform(0.5, 2, 40), rng.uniform(0.5, 2, 40))


# --- polynomials -----------------------------------------------------------------------------------------------------


def test_monomials_of_a_polynomial_as_trees_and_tables():
  assert polynomials.node_of((0.0, 2.0, 1.0)) == parse("z**2*w") and polynomials.node_of((0.0,)).value == 1
  x = np.array([[2.0, 3], [4, 5]])
  assert polynomials.table([(1.0, 0.0), (2.0, 1.0)], x).tolist() == [[2, 12], [4, 80]]
  assert polynomials._single(1, 3, 3) == (0, 3, 0)


def test_what_stands_beside_each_power():
  found = polynomials._by_power({(2.0, 1.0): 3.0, (2.0, 0.0): 4.0, (0.0, 1.0): 5.0}, 0)
  assert found == {2: {(0, 1): 3, (0, 0): 4}, 0: {(0, 1): 5}}
  assert polynomials._by_power({(2.0, 1.0): 3.0}, 1) == {1: {(2, 0): 3}}


def roots_in(polynomial, column, some, tolerance=1e-6):
  return polynomials._factors_in(polynomial, column, some, tolerance)


def expanded(*roots):
  """Coefficients by the power of one variable of a polynomial with these roots."""
  return {(float(len(roots) - i),): float(c) for i, c in enumerate(np.real(np.poly(roots))) if c}


def test_linear_and_quadratic_factors_of_one_variable():
  some = np.ones((1, 1))
  found = roots_in(expanded(2.0, -3.0, 1 + 2j, 1 - 2j), 0, some)
  assert sorted(map(tuple, found)) == [(pytest.approx(-2), 1), (pytest.approx(3), 1),
                                       (pytest.approx(5), pytest.approx(-2), 1)]
  [wave] = roots_in(expanded(3j, -3j), 0, some)
  assert wave == [pytest.approx(9), 0.0, 1.0]  # rounding is no linear term


@pytest.mark.parametrize(("share", "is_linear"), [(0.8e-4, True), (1.6e-4, False)])
def test_roots_are_real_but_for_what_rounding_splits(share, is_linear):
  found = roots_in(expanded(2 + 2j * share, 2 - 2j * share), 0, np.ones((1, 1)))
  assert {len(each) for each in found} == ({2} if is_linear else {3}) and len(found) == 1 + is_linear


@pytest.mark.parametrize(("change", "is_factor"), [(0.8e-3, True), (2.5e-3, False)])
def test_roots_that_are_the_same_in_all_rows_are_factors(change, is_factor):
  """x - 2 - c*z, z from 0 to 1: roots lie within a tolerance of their median, a share of it."""
  some = np.column_stack([np.ones(5), np.linspace(0, 1, 5)])
  found = roots_in({(1.0, 0.0): 1.0, (0.0, 0.0): -2.0, (0.0, 1.0): -2 * change}, 0, some, tolerance=1e-3)
  assert found == ([[pytest.approx(-2 - change), 1.0]] if is_factor else [])


def test_roots_that_differ_by_just_the_tolerance_are_those_of_a_factor():
  some = np.array([[1.0, 0], [1, 0], [1, 1]])  # x - 2 - z
  for tolerance, expected in ((0.5, [[-2.0, 1.0]]), (0.49, [])):
    assert roots_in({(1.0, 0.0): 1.0, (0.0, 0.0): -2.0, (0.0, 1.0): -1.0}, 0, some, tolerance) == expected


@pytest.mark.parametrize("size", [1.0, 5.0])
def test_a_linear_term_below_the_tolerance_is_none(size):
  """A share of the root's size."""
  for share, expected in ((0.8e-3, 0.0), (1.6e-3, -1.6e-3 * size)):
    [found] = roots_in({(2.0,): 1.0, (1.0,): -share * size, (0.0,): size**2}, 0, np.ones((1, 1)), tolerance=1e-3)
    assert found == [pytest.approx(size**2), pytest.approx(expected), 1.0]


def test_a_row_without_a_root_has_no_factor():
  """Where z is 0 nothing depends on x."""
  some = np.array([[1.0, 1.0], [1.0, 0.0]])
  with np.errstate(invalid="ignore"):
    assert roots_in({(1.0, 1.0): 1.0, (0.0, 1.0): 2.0, (0.0, 0.0): 0.0}, 0, some) == []


def test_factors_whose_roots_are_a_hundredth_apart_are_joined_at_their_mean():
  joined = polynomials._joined
  assert joined([[2.0, 1.0], [2.019, 1.0]]) == [[pytest.approx(2.0095), 1.0]] * 2
  assert joined([[2.0, 1.0], [2.03, 1.0]]) == [[2.0, 1.0], [2.03, 1.0]]
  assert joined([[4.0, 0.0, 1.0], [4.0, 0.0, 1.0]]) == [[4.0, 0.0, 1.0]] * 2
  assert joined([[4.0, 0.0, 1.0], [4.0, 1.0], [4.01, 1.0]]) == [
    [4.0, 0.0, 1.0], [pytest.approx(4.005), 1.0], [pytest.approx(4.005), 1.0]]
  assert joined([[198.0, 1.0], [200.0, 1.0]]) == [[199.0, 1.0]] * 2  # by just a hundredth of the second as well
  assert joined([[100.0, 1.0], [101.015, 1.0]]) == [[100.0, 1.0], [101.015, 1.0]]


def test_coefficients_that_a_division_has_left_are_dropped():
  for share, is_kept in ((1e-9, False), (1.6e-9, True)):
    # (x + 1)*(x**2 + share): the quotient keeps what is no rounding.
    found = polynomials._divided({(3.0,): 1.0, (2.0,): 1.0, (1.0,): share, (0.0,): share}, 0, [1.0, 1.0])
    assert set(found) == ({(2.0,), (0.0,)} if is_kept else {(2.0,)})
  some = {(2.0, 1.0): 1.0, (0.0, 1.0): -4.0}
  assert polynomials._divided(some, 0, [-2.0, 1.0]) == {(1.0, 1.0): 1.0, (0.0, 1.0): 2.0}
  assert polynomials._divided({(4.0,): 1.0, (0.0,): -16.0}, 0, [4.0, 0.0, 1.0]) == {(2.0,): 1.0, (0.0,): -4.0}


def test_polynomials_are_looked_at_in_few_rows_from_the_first_to_the_last():
  """x - 2 is a factor where z is below 1, which the last row is not."""
  x = np.column_stack([np.linspace(3, 4, 50), np.r_[np.zeros(49), 1.0]])
  polynomial = {(1.0, 0.0): 1.0, (0.0, 0.0): -2.0, (0.0, 1.0): -1.0}
  for some in (x, x[::-1]):
    assert polynomials.factors(polynomial, some, tolerance=1e-6, num_rows=3) == ([], polynomial)
  middle = np.column_stack([np.linspace(3, 4, 50), np.r_[np.zeros(10), 1.0, np.zeros(39)]])
  found, rest = polynomials.factors(polynomial, middle, tolerance=1e-6, num_rows=3)
  assert found == [{(0.0, 0.0): pytest.approx(-2), (1.0, 0.0): 1.0}] and (1.0, 0.0) not in rest


def test_polynomials_have_what_is_common_to_their_terms_as_a_factor():
  node = polynomials.to_node({(2.0, -1.0): 2.5, (1.0, 0.0): 1.5})
  x = np.random.default_rng(0).uniform(1, 2, (9, 2))
  np.testing.assert_allclose(expression.evaluate(node, x), 2.5 * x[:, 0] ** 2 / x[:, 1] + 1.5 * x[:, 0])
  factors = {part for part in expression.flatten(node, "*") if not part.is_number}
  assert parse("x") in factors and parse("1/z") in factors


# --- links -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "yes", "no"), [
  ("y", [-1.0, 0], None), ("inv", [-1.0, 1], [0.0, 2]), ("pow2", [0.0, 1], [-0.3, 1]), ("pow3", [-1.0, 0], None),
  ("exp", [1e-9, 1], [0.0, -1]), ("acos", [0.0, np.pi], [-0.3, 1]), ("acos", [0.0, np.pi], [0.0, 4.1]),
  ("asin", [-1.57, 0], [np.pi / 2, 0]), ("ln", [29.9, 0], [30.0, 0]), ("atan", [-1.57, 0], [np.pi / 2, 0]),
  ("complement_exp", [-0.9, 0.99], [0.2, 1.0]), ("complement_exp", [0.1, 0.2], [-1.5, 0.2]),
  ("atan_inv", [-1.57, 1.57], [np.pi / 2, 1]), ("atan_inv", [-1.57, 1e-9], [0, 1])])
def test_where_functions_of_y_may_be_asked(name, yes, no):
  assert LINKS[name].is_defined(np.array(yes)) is True
  assert no is None or LINKS[name].is_defined(np.array(no)) is False


@pytest.mark.parametrize("name", LINKS)
def test_a_formula_needs_the_operators_that_undo_the_function(name):
  node = LINKS[name].undo(expression.variable(0))
  assert {part.token for part in expression.walk(node) if part.args} == set(LINKS[name].operators)
  x = np.array([[0.3], [0.8]])
  by_hand = {"y": x, "inv": 1 / x, "ln": np.log(x), "exp": np.exp(x), "sqrt": np.sqrt(x), "sqrt_inv": x**-0.5,
             "pow2": x**2, "pow2_inv": x**-2, "pow3": x**3, "asin": np.arcsin(x), "acos": np.arccos(x),
             "logit": 1 / (1 + np.exp(x)), "atan": np.arctan(x), "atan_inv": np.arctan(1 / x),
             "complement_exp": 1 - np.exp(x)}
  np.testing.assert_allclose(expression.evaluate(node, x), by_hand[name][:, 0])


def test_roots_are_no_steeper_than_at_a_millionth_of_the_largest():
  y = np.array([0.0, 1e-7, 3e-6, 4.0])
  np.testing.assert_allclose(LINKS["pow2"].derivative(y), 0.5 / np.sqrt([4e-6, 4e-6, 4e-6, 4]))
  np.testing.assert_allclose(LINKS["pow3"].derivative(-y), 1 / (3 * np.array([4e-6, 4e-6, 4e-6, 4]) ** (2 / 3)))


def test_a_target_that_no_row_says_anything_of_is_none(rows):
  assert terms.whole(LINKS["y"], rows) is not None and terms.whole(LINKS["inv"], rows) is not None
  assert terms.whole(LINKS["y"], dataclasses.replace(rows, y=np.ones(40))) is None
