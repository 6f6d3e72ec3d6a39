"""Products of powers and few factors: columns are logarithms of their formulas; laws come out as they are written."""

import itertools
import re

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression, parser, printing
from symformer_jax.selection import scoring
from symformer_jax.sources.sums.products import Factors, find_products

NAMES = tuple("xyzuvw")


def rows_of(truth, rng, *, low=1.0, high=5.0, num_variables=4, num_rows=120):
  x = rng.uniform(low, high, (num_rows, num_variables))
  return Rows(x, scoring.evaluate(parser.parse(truth, NAMES), x), np.ones(num_rows))


def best_of(nodes, rows):
  """The simplest of those that are exact, or the nearest: (text, share of the variance missed)."""
  variance = np.var(rows.y)
  found = [(scoring.score(scoring.evaluate(node, rows.x), rows.y).mse / variance, node) for node in nodes]
  error, node = min(((max(e, 1e-20), n) for e, n in found if np.isfinite(e)),
                    key=lambda pair: (pair[0], expression.complexity(pair[1])))
  return printing.to_text(node, NAMES), error


@pytest.mark.parametrize("num_variables", [3, 5])
@pytest.mark.parametrize(("low", "high"), [(0.1, 5.0), (-5.0, 5.0), (-3.0, -0.5), (280.0, 400.0)])
def test_every_way_to_write_a_factor_is_its_power(low, high, num_variables, rng):
  x = rng.uniform(low, high, (60, num_variables))
  some = Factors(x, range(num_variables))
  assert some.columns.dtype == np.float32 and np.isfinite(some.columns).all()
  assert some.columns.shape == (60, len(some.groups)) and np.ptp(some.columns, axis=0).min() > 0
  for index, exponent in itertools.product(rng.integers(0, len(some.groups), 150).tolist(), (1.0, -2.0, 0.5)):
    is_defined = False
    for monomial, node in some.forms(index, exponent):
      values = scoring.evaluate(node, x) * np.prod([np.abs(x[:, c]) ** p for c, p in monomial], axis=0)
      is_there = np.isfinite(values)  # a root of what is negative is not
      is_defined |= is_there.all()
      np.testing.assert_allclose(np.log(np.abs(values[is_there])), exponent * some.columns[is_there, index], rtol=1e-4,
                                 atol=1e-4, err_msg=printing.to_text(node, NAMES))
    # Roots of negative factors have no real form; `test_laws_of_a_negative_variable_are_found` has those that do.
    assert is_defined or exponent == 0.5, printing.to_text(node, NAMES)


@pytest.mark.parametrize("law", [
  "z/(exp(x*y/u) - 1)", "x*z/(y + u)/(x + y)", "x*(1 + y*cos(u))",
  *(pytest.param(law, marks=pytest.mark.slow) for law in (
    "u*sqrt(x)/y**1.5",
    "x*sin(u)*y/z", "x*log(y/z)", "x*exp(-((y - z)/u)**2/2)/u", "x*(exp(2*y/z) - 1)/(exp(2*y/z) + 1)", "-x*y/z**3"))])
def test_laws_are_found(law, rng):
  rows = rows_of(law, rng)
  fitted = sum(find_products(rows, range(4)), [])
  assert best_of(fitted, rows)[1] < 1e-18


@pytest.mark.parametrize(("law", "num_variables"), [
  ("(x + y)*exp(-0.5*z)/(z + u)", 4), ("arcsin(x*y)*z", 3), ("x**3/(exp(2*x/y) - 1)", 2),
  ("x**1.3*exp(-0.4*x)*sqrt(x + 1)", 1)])
def test_laws_of_any_number_of_variables_beside_exponentials_of_each(law, num_variables, rng):
  rows = rows_of(law, rng, low=0.1, high=1.0, num_variables=num_variables)
  found = find_products(rows, range(num_variables))
  _, error = best_of([node for some in found for node in some], rows)
  assert error < 1e-12, law


def test_exponentials_that_are_not_needed_are_left_out(rng):
  rows = rows_of("x*y/(z + u)*exp(-0.5*z)", rng)
  text, error = best_of([node for some in find_products(rows, range(4)) for node in some], rows)
  assert error < 1e-12 and text.count("exp") == 1 and "*z)" in text


@pytest.mark.parametrize("law", [
  "x*y/sqrt(y - z)", "x*(-z)**1.5/y", "x*z/(z - y)", "x*exp(z/y)"])
def test_laws_of_a_negative_variable_are_found(law, rng):
  x = rng.uniform(1, 4, (120, 3)) * [1, 1, -1] - [0, 0, 2]
  rows = Rows(x, scoring.evaluate(parser.parse(law, NAMES), x), np.ones(120))
  assert best_of(sum(find_products(rows, range(3)), []), rows)[1] < 1e-16


@pytest.mark.parametrize(("law", "text"), [
  ("1/(1/x + 1/y)", "x*y/(x + y)"), ("x/(1 + y/z)", "x*z/(y + z)"),
  ("y*sqrt(1 + x**2/y**2)", "sqrt(x**2 + y**2)")])
def test_denominators_are_cleared(law, text, rng):
  rows = rows_of(law, rng, num_variables=3)
  fitted = sum(find_products(rows, range(3)), [])
  exact = [printing.to_text(node, NAMES) for node in fitted
           if scoring.score(scoring.evaluate(node, rows.x), rows.y).mse < 1e-20]
  assert any(found.endswith(text) and len(found) < len(text) + 20 for found in exact)  # beside a factor like 0.9999


def test_the_sign_goes_into_the_sum(rng):
  x = rng.uniform(1, 2, (80, 3)) + [0, 0, 2]
  rows = Rows(x, x[:, 0] / (x[:, 1] - x[:, 2]), np.ones(80))
  text, error = best_of(sum(find_products(rows, range(3)), []), rows)
  assert error < 1e-18 and "-1" not in text and text.count("-") == 1


def test_a_root_of_a_difference_is_real(rng):
  x = rng.uniform(1, 2, (80, 3)) * [1, 1, 3]
  x[:, 2] += 2
  for law in ("x/sqrt(z**2 - y**2)", "x/sqrt(1 - y**2/z**2)", "sqrt((z + y)/(z - y))*x"):
    rows = Rows(x, scoring.evaluate(parser.parse(law, NAMES), x), np.ones(80))
    assert best_of(sum(find_products(rows, range(3)), []), rows)[1] < 1e-18


def test_with_an_unusual_inner_constant_the_right_form_waits_for_its_fit(rng):
  rows = rows_of("x/(exp(0.1591*y/z) - 1)", rng, num_variables=3)
  halves = sum(find_products(rows, range(3)), [])
  texts = [printing.to_text(node, NAMES) for node in halves]
  assert any(re.fullmatch(r"[0-9.e-]+\*x/\(exp\([0-9.]+\*y/z\) - 1\)", text) for text in texts)


@pytest.mark.parametrize(("forbidden", "law"), [
  ({"exp", "sin", "+"}, "x*cos(y)"), ({"inv"}, "z*(x + y)"), ({"exp"}, "x*y/(x + z)"), ({"pow2"}, "x/(y + z)")])
def test_forbidden_operators_stay_out(forbidden, law, rng):
  rows = rows_of(law, rng, num_variables=3)
  found = sum(find_products(rows, range(3), lambda token: token not in forbidden), [])
  assert not {part.token for node in found for part in expression.walk(node)} & forbidden
  assert best_of(found, rows)[1] < 1e-18


@pytest.mark.parametrize("x", [
  np.full((30, 3), 2.0), np.zeros((20, 3)), np.tile([[1.0, 2.0, 3.0]], (20, 1)), np.eye(3), np.full((19, 3), 1e60),
  np.column_stack([np.linspace(1, 2, 25), np.linspace(1, 2, 25), np.zeros(25)])])
@pytest.mark.parametrize("unit", [1e-60, 1e60])
def test_odd_points_are_no_reason_to_fail(x, unit):
  """Constant, equal and empty columns: what is found is finite, and its constants as well."""
  rows = Rows(x, unit * np.arange(len(x)) ** 2, np.ones(len(x)))
  for node in itertools.chain(*find_products(rows, range(3))):
    assert np.isfinite(scoring.evaluate(node, x[1:])).all()


def test_the_number_of_fits_does_not_grow_with_the_square_of_the_columns(rng, monkeypatch):
  calls = []
  real = np.linalg.lstsq
  monkeypatch.setattr(np.linalg, "lstsq", lambda *args, **options: calls.append(1) or real(*args, **options))
  counts = []
  for num_variables in (4, 12):
    calls.clear()
    find_products(rows_of("x*y/(x + z)", rng, num_variables=num_variables), range(num_variables))
    counts.append(len(calls))
  assert 0 < counts[1] < 2 * counts[0]


def test_rows_where_y_is_0_say_nothing_of_its_logarithm(rng):
  rows = rows_of("x*y/(x + z)", rng, num_variables=3)
  y = np.where(np.arange(120) < 20, 0.0, rows.y)
  fitted = sum(find_products(Rows(rows.x, y, rows.weights), range(3)), [])
  assert best_of(fitted, rows)[1] < 1e-18


@pytest.mark.parametrize("num_variables", [9, 40])
def test_many_variables_do_not_make_millions_of_columns(num_variables, rng):
  some = Factors(rng.uniform(1, 5, (40, num_variables)), range(num_variables))
  roughly = DEFAULT.products.max_columns
  assert roughly / 10 < len(some.groups) < 12 * roughly
