"""What is recommended: structure only when the data pay for it."""

import math

import pytest

from symformer_jax.engine.criteria import CRITERIA, Fit, error_floor, mdl


def cheapest(fits, **data):
  return min(range(len(fits)), key=lambda i: mdl(fits[i], **data))


def test_noise_alone_recommends_the_constant():
  fits = [Fit(1.0, 1, 1), Fit(0.97, 5, 2), Fit(0.9, 17, 4)]
  assert cheapest(fits, num_points=50, variance=1.0) == 0


def test_a_law_is_recommended_over_constant_and_overfit():
  fits = [Fit(1.0, 1, 1), Fit(1e-3, 5, 2), Fit(0.95e-3, 13, 5)]
  assert cheapest(fits, num_points=30, variance=1.0) == 1


def test_six_points_are_enough_for_a_clear_law():
  # One of the shipped examples: a constant against a power law with R2 = 0.9994.
  assert cheapest([Fit(1.27, 1, 0, 0), Fit(7.2e-4, 5, 2, 6)], num_points=6, variance=1.27) == 1


def test_below_float32_resolution_only_simplicity_counts():
  fits = [Fit(1e-16, 3, 1), Fit(0.0, 5, 1)]
  assert cheapest(fits, num_points=1000, variance=1.0) == 0


def test_fewer_digits_win_at_equal_error():
  fits = [Fit(0.1, 5, 2, 9), Fit(0.1, 5, 2, 3)]
  assert cheapest(fits, num_points=20, variance=1.0) == 1


def test_as_many_constants_as_points_explain_nothing():
  assert mdl(Fit(0.0, 9, 5), num_points=5, variance=1.0) == math.inf


def test_constants_are_compared_with_the_rows_they_were_fitted_to_whatever_these_are_worth():
  fit = Fit(0.1, 9, 5)
  assert math.isfinite(mdl(fit, num_points=4.5, variance=1.0, num_rows=12))
  assert mdl(fit, num_points=4.5, variance=1.0, num_rows=5) == math.inf
  assert mdl(fit, num_points=12, variance=1.0, num_rows=12) == mdl(fit, num_points=12, variance=1.0)


@pytest.mark.parametrize("name", CRITERIA)
def test_every_criterion_prefers_the_better_of_equals_and_refuses_undefined_fits(name):
  data = {"num_points": 20, "variance": 2.0}
  assert CRITERIA[name](Fit(0.1, 5, 1), **data) < CRITERIA[name](Fit(0.2, 5, 1), **data)
  assert CRITERIA[name](Fit(math.inf, 5, 1), **data) == math.inf


def test_error_floor_scales_with_the_variance():
  assert error_floor(4.0) == 4 * (2.0**-23) ** 2


def test_the_residual_variance_is_corrected_for_the_constants():
  # Constants of one digit cost nothing besides their nodes: what is left is N/2 log(N / (N - C)).
  without, with_five = (mdl(Fit(0.1, 9, count, count), num_points=20, variance=1.0) for count in (0, 5))
  assert with_five - without == pytest.approx(10 * math.log(20 / 15), rel=1e-9)


@pytest.mark.parametrize(("name", "size"), [("accuracy", 1), ("bic", 10), ("mdl", 10)])
def test_an_exact_fit_costs_what_the_resolution_of_float32_leaves(name, size):
  """Of numbers of 24 bits, whose spacing at 1 is 2**-23; 20 points, no constants."""
  found = CRITERIA[name](Fit(0.0, 0, 0), num_points=20, variance=3.0)
  mean = 0.5 * math.log(20) if name == "bic" else 0.0
  assert found - mean == pytest.approx(size * math.log(2.0**-46), rel=1e-12)
