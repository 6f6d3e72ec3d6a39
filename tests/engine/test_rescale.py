"""Scaling into the trained box and back: values must not change, and constants must merge."""

import dataclasses
import warnings

import numpy as np
import pytest

from symformer_jax.engine import rescale
from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import expression, parser, programs
from symformer_jax.language.tidy import tidy

FORMULAS = [
  "14.7*x**1.5", "2*x + 3", "sin(2*x)/y", "ln(x) + 1", "(-x)**3", "sqrt(x)*y**2", "exp(-x)*(1 + x*y)", "1/(x + 2)",
  "x**y", "x**(-0.5)", "(2*x)**1.5*4", "arctan(-x)", "5", "-(x*y)", "(x - y)**2", "sqrt(-x)", "2**x",
]


@pytest.mark.parametrize("text", FORMULAS)
def test_restored_formula_has_the_values_of_the_scaled_one(text, rng):
  node = parser.parse(text, ["x", "y"])
  scaling = rescale.Scaling((6.0, 0.03), 250.0)
  x = rng.uniform(0.1, 3, (50, 2))
  restored = scaling.restore(node)
  scaled_x, _ = scaling.apply(x, np.zeros(50))
  expected = 250.0 * expression.evaluate(node, scaled_x)
  for form in (restored, tidy(restored)):
    np.testing.assert_allclose(expression.evaluate(form, x), expected, rtol=1e-12)


@pytest.mark.parametrize("text", FORMULAS)
def test_offsets_come_back_as_constants(text, rng):
  node = parser.parse(text, ["x", "y"])
  scaling = rescale.Scaling((6.0, 0.03), 250.0, (-7.0, 40.0), 1000.0)
  x = rng.uniform(0.1, 3, (50, 2)) + [-7.0, 40.0]
  scaled_x, scaled_y = scaling.apply(x, np.full(50, 1250.0))
  np.testing.assert_allclose(scaled_y, 1.0)
  restored = scaling.restore(node)
  expected = 250.0 * expression.evaluate(node, scaled_x) + 1000.0
  for form in (restored, tidy(restored)):
    np.testing.assert_allclose(expression.evaluate(form, x), expected, rtol=1e-10)


def test_factors_beyond_all_numbers_warn_nobody():
  with warnings.catch_warnings():
    warnings.simplefilter("error")
    restored = rescale.Scaling((1e-150,), 1.0).restore(parser.parse("x*exp(x)*x*x", ["x"]))
  assert not np.isfinite(expression.evaluate(restored, np.ones((1, 1)))).any()


def test_columns_off_to_one_side_are_centred_and_begun_at_zero(rng):
  x = np.column_stack([rng.uniform(1990, 2020, 60), rng.uniform(-3, 3, 60)])
  centred, begun, plain = rescale.propose_scalings(x, rng.normal(size=60))
  for scaling, low in ((centred, -5.0), (begun, 0.0)):
    moved, _ = scaling.apply(x, np.zeros(60))
    assert (moved[:, 0].min(), moved[:, 0].max()) == pytest.approx((low, 5.0))
    assert np.array_equal(moved[:, 1], x[:, 1])
  assert not plain.x_offsets and plain.x_factors[0] > 300


@pytest.mark.parametrize("x", [(2.0, 5.0), (1.0, 30.0), (-5.0, 5.0), (0.0, 1e5)])
def test_columns_that_lie_well_or_reach_far_are_not_moved(x):
  scalings = rescale.propose_scalings(np.linspace(*x, 30)[:, None], np.linspace(-1, 1, 30))
  assert not any(any(scaling.x_offsets) for scaling in scalings)


def test_a_target_that_hardly_varies_is_tried_without_its_mean(rng):
  y = 293.15 + rng.normal(size=40)
  moved, plain = rescale.propose_scalings(rng.uniform(-4, 4, (40, 1)), y)
  assert moved.apply(np.zeros((40, 1)), y)[1].mean() == pytest.approx(0, abs=1e-9)
  assert moved.y_factor == 1 and plain.is_identity


def test_a_target_without_variation_or_beyond_squares_keeps_its_place():
  x = np.linspace(1, 4, 9)[:, None]
  for y in (np.full(9, 0.3), np.linspace(0.9, 1, 9) * 1e307):
    for scaling in rescale.propose_scalings(x, y):
      assert np.isfinite([scaling.y_factor, scaling.y_offset]).all()
  assert not any(s.is_moved for s in rescale.propose_scalings(x, np.full(9, 0.3)))


@pytest.mark.parametrize(("text", "skeleton"), [
  ("14.7*x**1.5", "3.1*x**1.5"), ("2*sqrt(x)", "3.1*sqrt(x)"), ("3/x**2", "3.1/x**2"), ("7.5*(2*x)**3", "3.1*x**3"),
])
def test_factors_merge_into_one_constant(text, skeleton):
  restored = tidy(rescale.Scaling((6.1,), 3.7).restore(parser.parse(text)))
  assert programs.skeleton(restored) == programs.skeleton(tidy(parser.parse(skeleton)))


def test_data_in_the_box_are_left_alone(rng):
  assert rescale.propose_scalings(rng.uniform(-4, 4, (30, 1)), rng.normal(size=30))[0].is_identity


def test_large_columns_come_into_the_box(rng):
  x, y = rng.uniform(0, 3e7, (40, 2)) * [1, 1e-7], rng.normal(size=40) * 1e-9
  [scaling] = rescale.propose_scalings(x, y)
  scaled_x, scaled_y = scaling.apply(x, y)
  assert np.abs(scaled_x).max(axis=0) == pytest.approx([5.0, np.abs(x[:, 1]).max()])
  assert np.sqrt(np.mean(scaled_y**2)) == pytest.approx(DEFAULT.scaling.comfortable_y)


def test_small_data_that_fit_are_tried_both_ways(rng):
  scalings = rescale.propose_scalings(rng.uniform(0, 0.1, (40, 1)), rng.normal(size=40))
  assert [s.is_identity for s in scalings] == [False, True]


def test_a_column_of_zeros_keeps_its_factor():
  [scaling] = rescale.propose_scalings(np.column_stack([np.zeros(9), np.linspace(1, 4, 9)]), np.linspace(1, 2, 9))
  assert scaling.x_factors == (1.0, 1.0)


def test_huge_targets_do_not_overflow():
  [scaling] = rescale.propose_scalings(np.linspace(1, 4, 9)[:, None], np.linspace(1, 2, 9) * 1e200)
  assert np.isfinite(scaling.y_factor)


@pytest.mark.parametrize(("small", "is_far"), [(2.0, False), (2.25, True)])
def test_a_column_of_just_the_least_span_is_in_no_small_part_of_the_box(small, is_far):
  config = dataclasses.replace(DEFAULT.scaling, small_x=small, far_x=0.9, box=5.0)
  assert rescale._is_far(np.array([[3.0], [5.0]]), config).tolist() == [is_far]
