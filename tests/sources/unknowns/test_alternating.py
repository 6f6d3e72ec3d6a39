"""Products of sums by alternating least squares, beside NumPy's least squares and a definition."""

import dataclasses
import itertools

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.sources.unknowns import alternating

CONFIG = DEFAULT.separable


def powers(x, most=3):
  return np.stack([x**k for k in range(most + 1)], axis=1)


def test_one_factor_is_least_squares(rng):
  design, target, weights = powers(rng.uniform(-1, 1, 50)), rng.normal(size=50), rng.uniform(0.5, 2, 50)
  fit = alternating.fit_product([design], target, weights, config=CONFIG)
  root = np.sqrt(weights)
  expected, (error,), *_ = np.linalg.lstsq(root[:, None] * design, root * target)
  np.testing.assert_allclose(fit.coefficients[0], expected, rtol=1e-9)
  mean = np.average(target, weights=weights)
  assert fit.left == pytest.approx(error / np.sum(weights * (target - mean) ** 2), rel=1e-9)


@pytest.mark.parametrize("size", [1.0, 1e-150, 1e150])
def test_a_product_is_found_again_in_any_units(rng, size):
  x = rng.uniform(-1, 1, (3, 120))
  designs = [powers(x[0]), np.column_stack([powers(x[1]), powers(x[2])[:, 1:]])]
  target = size * (0.3 + x[0] - 2 * x[0] ** 3) * (x[1] ** 2 - 0.4 * x[2])
  fit = alternating.fit_product(designs, target, np.ones(120), config=dataclasses.replace(CONFIG, num_sweeps=200))
  assert fit.left < 1e-10
  values = [design @ some for design, some in zip(designs, fit.coefficients, strict=True)]
  np.testing.assert_allclose(np.prod(values, axis=0), target, atol=1e-4 * np.ptp(target))
  assert np.mean(values[0] ** 2) == pytest.approx(1)


def test_more_starts_find_more(rng):
  found = {1: 0, 4: 0}
  for _ in range(30):
    designs = [np.polynomial.chebyshev.chebvander(x, 7) for x in rng.uniform(-1, 1, (3, 250))]
    factors = [design @ (rng.normal(size=8) * (np.arange(8) > 0)) for design in designs]
    for num in found:
      fit = alternating.fit_product(
        designs, np.prod(factors, axis=0), np.ones(250), config=dataclasses.replace(CONFIG, num_starts=num))
      found[num] += fit.left < 1e-3
  assert found[4] > found[1] and found[4] > 20


def test_columns_beside_a_product_count_as_the_rows_do(rng):
  x, weights = rng.uniform(-1, 1, (3, 200)), rng.uniform(0.1, 2, 200)
  designs, beside = [powers(x[0], 1), powers(x[1], 1)], powers(x[2], 2)
  target = (1 + 2 * x[0]) * (0.5 - x[1]) + beside @ np.array([3.0, -1.5, 0.7])
  config = dataclasses.replace(CONFIG, num_sweeps=200)
  fit = alternating.fit_product(designs, target, weights, beside=beside, config=config)
  assert fit.left < 1e-10 and len(fit.coefficients) == 3
  np.testing.assert_allclose(fit.coefficients[2][1:], [-1.5, 0.7], atol=1e-4)


@pytest.mark.parametrize("num_factors", [2, 4])
def test_a_product_of_columns_of_both_signs_is_found_from_one(rng, num_factors):
  """Beside constants each of its factors is nothing to the target."""
  x = rng.uniform(-1, 1, (num_factors, 300))
  designs = [np.polynomial.chebyshev.chebvander(each, 7) for each in x]
  target = 0.3 * np.prod(x, axis=0) * np.cos(1.4 * x[-1])
  config = dataclasses.replace(CONFIG, num_starts=1, from_columns=True)
  fit = alternating.fit_product(designs, target, np.ones(300), config=config)
  assert fit.left < 1e-6


def test_that_start_is_the_product_that_goes_along_with_the_target(rng):
  designs, root = [powers(each) for each in rng.uniform(-1, 1, (3, 200))], np.full(200, 200**-0.5)
  for chosen in itertools.product((0, 1), repeat=3):
    goal = root * -2.5 * np.prod([design[:, i] for design, i in zip(designs, chosen, strict=True)], axis=0)
    assert alternating._product_of_columns(designs, root, goal) == chosen
  assert alternating._product_of_columns([powers(np.ones(200))] * 2, root, root) == (0, 0)  # of equal ones the first
  lone = np.ones((200, 1))
  goal = root * designs[0][:, 1]
  assert alternating._product_of_columns([lone, designs[0]], root, goal) == (0, 1)
  assert alternating._product_of_columns([designs[0], *[lone] * 8], root, goal) == (1,) + (0,) * 8


def test_partitions_of_few_columns_are_all_there_and_some_with_a_column_twice():
  found = alternating.partitions((0, 1, 2), config=CONFIG)
  as_sets = {frozenset(map(frozenset, each)) for each in found}
  whole = {frozenset({frozenset({0}), frozenset({1, 2})}), frozenset({frozenset({1}), frozenset({0, 2})}),
           frozenset({frozenset({2}), frozenset({0, 1})}), frozenset(map(frozenset, ({0}, {1}, {2})))}
  assert whole <= as_sets
  for each in as_sets - whole:
    counts = [sum(column in some for some in each) for column in (0, 1, 2)]
    assert sorted(counts) == [1, 1, 2] and frozenset({counts.index(2)}) in each
  assert all(len(each) > 1 for each in found) and len(as_sets) == len(set(found)) == 4 + 3 + 3 * 2


def test_of_many_columns_one_or_two_stand_apart():
  columns = tuple(range(6))
  every = alternating.partitions(columns, config=CONFIG)
  found = [each for each in every if len(each) == 2]
  assert len(found) == 6 + 15 and [each for each in every if len(each) == 6] == [tuple((c,) for c in columns)]
  with_pair = [each for each in every if len(each) == 5]
  assert len(with_pair) == 15 and all(sorted(c for some in each for c in some) == list(columns) for each in with_pair)
  assert {few for few, _ in found} == {*((c,) for c in columns), *itertools.combinations(columns, 2)}
  assert all(sorted((*few, *rest)) == list(columns) for few, rest in found)


def test_least_squares_are_those_of_a_decomposition_whatever_the_rounding(rng):
  goal = rng.normal(size=40)
  for columns in (rng.normal(size=(40, 6)), np.vander(rng.uniform(1, 3, 40), 6)):
    found, residual = alternating._least_squares(columns, goal)
    expected = np.linalg.lstsq(columns, goal, rcond=None)[0]
    assert residual @ residual == pytest.approx(np.sum((goal - columns @ expected) ** 2), rel=1e-6)
    np.testing.assert_allclose(residual, goal - columns @ found, atol=1e-13)
  same = np.repeat(rng.normal(size=(40, 1)), 3, axis=1) * 1e150
  found, residual = alternating._least_squares(same, goal)
  assert np.isfinite(found).all() and residual @ residual <= goal @ goal * (1 + 1e-12)
  assert np.isnan(alternating._least_squares(np.full((40, 2), np.nan), goal)[0]).all()
