"""Fits to many rows: all starts see some of them, and what they come to is fitted to all; against SciPy."""

import numpy as np
import pytest
from scipy import optimize

from symformer_jax.refinement import solve
from symformer_jax.refinement.problem import Status
from symformer_jax.refinement.refine import refine

NUM_STARTS, NUM_ROWS = 8, 3000


def peak(x, b1, b2, b3):
  return b1 * np.exp(-((x - b2) ** 2) / b3)


def peak_data(rng, num_rows=NUM_ROWS):
  x = rng.uniform(0, 9, num_rows)
  return x, peak(x, 5.0, 4.0, 3.0) + 0.05 * rng.normal(size=num_rows)


FORMULA, START = "b1*exp(-(x - b2)**2/b3)", {"b1": 1.0, "b2": 3.0, "b3": 1.0}


def test_what_comes_of_some_rows_is_fitted_to_all(rng):
  sets = [peak_data(rng), peak_data(rng, 700)]
  fits = refine(FORMULA, [x for x, _ in sets], [y for _, y in sets], start=START, num_starts=NUM_STARTS)
  for (x, y), fit in zip(sets, fits, strict=True):
    expected, covariance = optimize.curve_fit(peak, x, y, p0=(5, 4, 3), xtol=1e-15, ftol=1e-15, gtol=1e-15)
    np.testing.assert_allclose(list(fit.constants.values()), expected, rtol=1e-9)
    np.testing.assert_allclose(list(fit.stderr.values()), np.sqrt(np.diag(covariance)), rtol=1e-5)
    assert fit.status == Status.CONVERGED and fit.dof == len(x) - 3


def test_bounds_bind_over_many_rows(rng):
  x, y = peak_data(rng)
  expected, _ = optimize.curve_fit(peak, x, y, p0=(4, 3, 3), bounds=((0, 0, 0.1), (9, 3.5, 20)), xtol=1e-15, ftol=1e-15)
  fit = refine(FORMULA, x, y, bounds={"b2": (0, 3.5), "b3": (0.1, 20)}, start=START, num_starts=NUM_STARTS)
  np.testing.assert_allclose(list(fit.constants.values()), expected, rtol=1e-6)
  assert fit.at_bound == ("b2",) and fit.status == Status.CONVERGED


def test_a_given_start_sees_all_rows(rng):
  x = rng.uniform(0, 1000, 5000)
  y = 50 * np.exp(-((x - 503.3) ** 2) / 2 / 0.5**2) + 2 + 0.1 * rng.normal(size=5000)  # seen by a dozen rows
  given = {"a": 45.0, "b": 503.0, "c": 0.6, "d": 2.1}
  formula = "a*exp(-(x - b)**2/(2*c**2)) + d"
  fit = refine(formula, x, y, start=given, num_starts=NUM_STARTS)
  assert fit.constants["b"] == pytest.approx(503.3, abs=0.05) and fit.residual_std == pytest.approx(0.1, rel=0.05)
  within = refine(formula, x, y, start=given, num_starts=NUM_STARTS, bounds={"a": (0, 49.0)})
  assert within.at_bound == ("a",) and within.constants["b"] == pytest.approx(503.3, abs=0.05)


def test_the_best_fit_is_found_beside_the_edge_of_what_is_defined(rng):
  second = 0.999 * rng.uniform(0.1, 1, 5000)
  first = 0.7 * second + rng.uniform(0, 1, 5000) ** 3
  y = 2 * np.log(first - 0.7 * second) + 0.05 * rng.normal(size=5000)
  fit = refine("a*log(x0 - b*x1)", np.column_stack([first, second]), y, num_starts=NUM_STARTS)
  assert fit.constants["a"] == pytest.approx(2, abs=0.01) and fit.residual_std == pytest.approx(0.05, rel=0.1)


def test_small_data_sets_are_fitted_once_beside_large_ones(rng):
  small, large = peak_data(rng, 100), peak_data(rng)
  alone = refine(FORMULA, *small, start=START, num_starts=NUM_STARTS)
  beside, _ = refine(FORMULA, [small[0], large[0]], [small[1], large[1]], start=START, num_starts=NUM_STARTS)
  np.testing.assert_allclose(list(beside.constants.values()), list(alone.constants.values()), rtol=1e-9)


def test_data_sets_of_one_call_share_what_is_compiled(rng, monkeypatch):
  shapes, fit_starts = [], solve.fit_starts
  monkeypatch.setattr(solve, "fit_starts", lambda program, starts, x, *given, **named: shapes.append(
    (starts.shape[:2], x.shape[:2], named["is_persistent"])) or fit_starts(program, starts, x, *given, **named))
  sets = [peak_data(rng, num) for num in (700, 1500, 900)]
  refine(FORMULA, [x for x, _ in sets], [y for _, y in sets], start=START, num_starts=NUM_STARTS)
  assert shapes[0] == ((3, NUM_STARTS), (3, 576), True)
  assert set(shapes[1:]) == {((1, 1), (1, 1536), False)} and len(shapes) >= 4
