"""Products of powers that y rises or falls with: found whatever the function is, for many columns."""

import dataclasses

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression, parser
from symformer_jax.sources.unknowns import monotone_products, single_index
from symformer_jax.sources.unknowns.monotone_products import find_exponents

CONFIG = DEFAULT.single_index.monotone
FUNCTIONS = [
  lambda m: 4.2 - 4.2 * np.exp(-m / 3), lambda m: 3.1 * np.log(m + 4), np.arctan, lambda m: -(m**3) - m,
  lambda m: 1 / (2 + np.sqrt(m)), lambda m: m / (m + 1)]


def product_of(x, exponents):
  return np.prod(x ** np.array(exponents), axis=1)


def first(x, y, config=CONFIG):
  return next(iter(find_exponents(x, y, config)), None)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_product_is_found_whatever_the_function_is(function, rng):
  exponents = (1, -2, 0.5, 1, -1, 0.5, 1)
  x = rng.uniform(0.5, 3, (250, 7))
  assert first(x, function(product_of(x, exponents)), CONFIG) == (2, -4, 1, 2, -2, 1, 2)


@pytest.mark.parametrize(("given", "expected"), [
  ((2, -2, 4), (1, -1, 2)), ((3, 1, 1), (3, 1, 1)), ((1 / 3, -1 / 3, 1), (1, -1, 3)), ((-1, -1, 0.5), (2, 2, -1)),
  ((-1, 1, 0), (1, -1, 0)), ((0, 5, 2.5), (0, 2, 1)), ((4, 1.5, -4), (4, 1.5, -4))])
def test_of_one_direction_the_simplest_is_taken(given, expected, rng):
  x = rng.uniform(0.5, 3, (200, 3))
  assert first(x, np.log(product_of(x, given)), CONFIG) == expected


def test_exponents_that_are_not_simple_are_given_as_they_are(rng):
  x = rng.uniform(0.5, 3, (250, 3))
  found = first(x, np.exp(product_of(x, (1, 0.37, -0.81))), CONFIG)
  assert found == pytest.approx((1, 0.37, -0.81), abs=2e-3)


def test_columns_of_both_signs_get_whole_exponents(rng):
  x = rng.uniform(0.5, 3, (400, 4))
  x[:, 1] *= rng.choice([-1, 1], 400, p=[0.3, 0.7])
  y = np.arctan(x[:, 0] ** 0.5 * x[:, 1] * x[:, 2] ** -1.5 * x[:, 3])
  found = first(x, y, CONFIG)
  assert found == (1, 2, -3, 2)
  x[:, 0] *= rng.choice([-1, 1], 400)
  assert first(x, np.abs(x[:, 0]) ** 0.37 * x[:, 1], CONFIG) is None


def test_a_square_has_lost_the_sign(rng):
  """Of columns of both signs, (a**2*b*sqrt(c))**2 says nothing of the sign of b."""
  x = rng.uniform(0.5, 3, (400, 3))
  x[:, 1] *= rng.choice([-1, 1], 400, p=[0.3, 0.7])
  y = np.log(product_of(x[:, [0, 2]], (2, 0.5)) * x[:, 1] + 60)
  assert find_exponents(x, y, CONFIG) == [(4, 2, 1), (2, 1, 0.5)]
  best, *_ = single_index.find_indices(Rows(x, y, np.ones(400)), range(3), DEFAULT)
  assert np.any(expression.evaluate(best.product, x) < 0)


def test_rows_where_the_function_turns_back_are_left_out(rng):
  x = rng.uniform(0.5, 2, (300, 4))
  y = np.cos(0.35 * product_of(x, (1, -1, 1, 0.5)))
  y = np.where(rng.random(300) < 0.1, rng.uniform(-1, 1, 300), y)
  found = first(x, y, CONFIG)
  assert found is not None and np.array(found) / found[0] == pytest.approx([1, -1, 1, 0.5])
  assert first(x, y, dataclasses.replace(CONFIG, num_trims=0)) is None


def test_under_noise_it_is_near(rng):
  x = rng.uniform(0.5, 3, (256, 4))
  y = np.log(product_of(x, (1, -1, 2, 1)) + 1)
  assert first(x, y + 0.002 * rng.normal(size=256), CONFIG) == (1, -1, 2, 1)


def test_what_rises_with_no_product_has_none(rng):
  x = rng.uniform(0.5, 3, (200, 4))
  for y in (rng.normal(size=200), x[:, 0] + np.sin(5 * x[:, 1]), np.sin(9 * x[:, 2])):
    assert first(x, y, CONFIG) is None
  assert first(x[:15], product_of(x[:15], (1, 1, 1, 1)), CONFIG) is None  # fewer than four rows a column
  assert first(x, np.ones(200), CONFIG) is None


def test_logarithms_are_alternated_till_nothing_changes(rng, monkeypatch):
  x, exponents = rng.uniform(0.5, 3, (100, 5)), (1, 2, -1, 1, 0.5)
  rounds = []
  right = monotone_products.optimize.isotonic_regression
  monkeypatch.setattr(monotone_products.optimize, "isotonic_regression", lambda y: rounds.append(len(y)) or right(y))
  first(x, np.arctan(product_of(x, exponents)) ** 3, CONFIG)
  many = len(rounds)
  first(x, np.arctan(product_of(x, exponents)) ** 3, dataclasses.replace(CONFIG, tolerance=1e-2))
  assert 1 < len(rounds) - many < many <= CONFIG.num_rounds


def test_single_index_has_products_that_no_grid_has(rng):
  x = rng.uniform(0.5, 3, (256, 9))
  names = tuple("abcdefghi")
  y = expression.evaluate(parser.parse("4.2 - 4.2*exp(-0.3*a**2*b*d*g/(c*e*f))", names), x)
  best, *_ = single_index.find_indices(Rows(x, y, np.ones(256)), range(9), DEFAULT)
  ratio = np.log(expression.evaluate(best.product, x)) / np.log(product_of(x, (2, 1, -1, 1, -1, -1, 1, 0, 0)))
  assert np.ptp(ratio) < 1e-9 and best.divisor == () and best.roughness < 1e-3
  few = dataclasses.replace(DEFAULT.single_index, monotone=dataclasses.replace(CONFIG, max_columns=8))
  config = dataclasses.replace(DEFAULT, single_index=few)
  assert all(each.roughness > 1e-3 for each in single_index.find_indices(Rows(x, y, np.ones(256)), range(9), config))
  # times a column as well
  best, *_ = single_index.find_indices(Rows(x, y * x[:, 8], np.ones(256)), range(9), DEFAULT)
  assert best.divisor == ((8, 1.0),)


@pytest.mark.parametrize("changes", [{"rows_per_column": 0}, {"num_rounds": 0}, {"max_columns": 0}])
def test_values_that_steer_nothing_are_refused(changes):
  with pytest.raises(ValueError, match=next(iter(changes))):
    dataclasses.replace(CONFIG, **changes)
