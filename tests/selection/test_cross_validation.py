"""Cross-validation against its closed form for linear formulas, and its rule of one standard error."""

import numpy as np
import pytest

from symformer_jax.engine.rows import Rows
from symformer_jax.language import parser
from symformer_jax.selection import cross_validation, rounding


def linear_rows(num=40, *, seed=0):
  rng = np.random.default_rng(seed)
  x = rng.uniform(0, 4, (num, 1))
  return Rows(x, 2 * x[:, 0] + 1.3 + 0.5 * rng.normal(size=num), rng.uniform(0.5, 2, num))


def test_errors_are_those_of_least_squares_fitted_without_the_fold():
  rows = linear_rows()
  folds = cross_validation.draw_folds(rows, 5, seed=0)
  node = rounding.refit_constants(parser.parse("2.1*x + 1.2", ("x",)), rows.x, rows.y, rows.weights)
  found = cross_validation.squared_errors(node, rows, folds)
  expected = np.empty(len(rows))
  for fold in range(5):
    out = folds == fold
    root = np.sqrt(rows.weights[~out])[:, None]
    design = np.column_stack([rows.x[:, 0], np.ones(len(rows))])
    solution = np.linalg.lstsq(root * design[~out], root[:, 0] * rows.y[~out], rcond=None)[0]
    expected[out] = (design[out] @ solution - rows.y[out]) ** 2
  np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_folds_are_even_and_cover_every_row():
  folds = cross_validation.draw_folds(linear_rows(43), 5, seed=0)
  assert sorted(np.bincount(folds)) == [8, 8, 9, 9, 9]


@pytest.mark.parametrize(("num", "blocks"), [
  (60, [3] * 20), (45, [3, 2, 2, 2] * 5), (20, [1] * 20), (7, [1] * 7)])
def test_a_series_is_left_out_in_four_blocks_a_fold(num, blocks):
  rows = Rows(np.arange(float(num))[::-1, None], np.arange(float(num)), np.ones(num))
  folds = cross_validation.draw_folds(rows, 5, seed=0)
  np.testing.assert_array_equal(folds[::-1], np.repeat(np.arange(len(blocks)) % 5, blocks))


def test_few_rows_have_a_fold_each():
  assert sorted(cross_validation.draw_folds(linear_rows(4), 5, seed=0)) == [0, 1, 2, 3]


def test_what_is_undefined_on_a_row_is_infinitely_wrong():
  rows = Rows(np.linspace(-1, 3, 10)[:, None], np.linspace(1, 2, 10), np.ones(10))
  errors = cross_validation.squared_errors(parser.parse("1.5*log(x)", ("x",)), rows, np.arange(10) % 5)
  assert np.isinf(errors[0]) and not np.isnan(errors).any()


@pytest.mark.parametrize("gap, chosen", [(0.01, 1), (1.0, 0)])
def test_the_simplest_within_one_standard_error(gap, chosen):
  noise = np.abs(np.random.default_rng(0).normal(size=100))
  worse = 1 + gap + np.random.default_rng(1).normal(size=100) * 0.3
  errors = [np.ones(100), worse, 5 + noise]
  assert cross_validation.simplest_within_one_error(errors, [9, 5, 1], np.ones(100)) == chosen


@pytest.mark.parametrize("seed", range(4))
def test_the_error_of_a_weighted_difference_is_that_of_its_bootstrap(seed):
  """Errors in proportion to y, weights 1/y**2: squared errors of the largest rows are a hundred times those of others,
  and count as much.
  """
  rng = np.random.default_rng(seed)
  y = np.logspace(0, 1, 60)
  weights = 1 / y**2
  best, other = ((share * y * rng.normal(size=60)) ** 2 for share in (0.03, 0.5))
  assert not cross_validation.is_within_one_error(other, best, weights)
  gap = np.average(other - best, weights=weights)
  drawn = [np.average((other - best)[some], weights=weights[some]) for some in rng.integers(60, size=(4000, 60))]
  # A constant taken from a difference moves its mean alone.
  for errors, is_within in ((0.6, True), (1.5, False)):
    assert cross_validation.is_within_one_error(other - gap + errors * np.std(drawn), best, weights) is is_within
