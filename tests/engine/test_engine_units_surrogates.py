"""Gaussian processes with given parameters, against their definition: slopes, rows left out, what is maximized."""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import linalg, optimize, stats

from symformer_jax.engine import gaussian_process
from symformer_jax.engine.config import SurrogateConfig
from symformer_jax.engine.gaussian_process import Surrogate

CONFIG = SurrogateConfig()
# Logarithms of two lengths, signal, slope and noise.
PARAMETERS = np.log([1.3, 2.1, 1.7, 0.4, 0.1])


@pytest.fixture
def x(rng):
  return np.column_stack([rng.uniform(-1, 1, 25), 10 ** rng.uniform(0, 2, 25)])


def fitted(monkeypatch, x, y, *, is_log, in_logarithms, config=CONFIG):
  """With parameters that no search has chosen, and what it was asked."""
  asked = {}
  monkeypatch.setattr(gaussian_process.optimize, "minimize", lambda loss, start, **options: (
    asked.update(options, start=start) or SimpleNamespace(x=PARAMETERS)))
  return gaussian_process._fit(x, y, np.array(is_log), in_logarithms=in_logarithms, config=config), asked


def covariance(z, other):
  (first, second), (signal, slope, _) = np.exp(PARAMETERS[:2]), np.exp(2 * PARAMETERS[2:])
  distance = ((z[:, None, :] - other[None]) / np.array([first, second])) ** 2
  return signal * np.exp(-0.5 * distance.sum(axis=2)) + slope * (z @ other.T + 1)


def shown_columns(x, is_log):
  return np.column_stack([np.log(column) if each else column for column, each in zip(x.T, is_log, strict=True)])


@pytest.mark.parametrize("is_log", [(False, False), (False, True)])
@pytest.mark.parametrize("in_logarithms", [False, True])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_slopes_and_errors_are_those_of_the_definition(monkeypatch, x, is_log, in_logarithms, sign):
  y = sign * (2 + np.sin(3 * x[:, 0]) + np.log(x[:, 1]))
  found, _ = fitted(monkeypatch, x, y, is_log=is_log, in_logarithms=in_logarithms)
  shown = np.log(np.abs(y)) if in_logarithms else y
  columns = shown_columns(x, is_log)
  def scaled(at):
    return (shown_columns(at, is_log) - columns.mean(0)) / columns.std(0)
  z, target = scaled(x), (shown - shown.mean()) / shown.std()
  whole = covariance(z, z) + np.exp(2 * PARAMETERS[-1]) * np.eye(25)
  weights = np.linalg.solve(whole, target)
  def mean(at):
    return shown.mean() + shown.std() * covariance(scaled(at), z) @ weights
  numeric = np.column_stack([(mean(x + 1e-5 * unit) - mean(x - 1e-5 * unit)) / 2e-5 for unit in np.eye(2)])
  np.testing.assert_allclose(found.slopes, numeric * (y[:, None] if in_logarithms else 1), rtol=1e-5, atol=1e-7)
  left_out = np.array([shown.mean() + shown.std() * whole[i, np.arange(25) != i] @ np.linalg.solve(
    np.delete(np.delete(whole, i, 0), i, 1), np.delete(target, i)) for i in range(25)])
  predicted = sign * np.exp(left_out) if in_logarithms else left_out
  np.testing.assert_allclose(found.errors, predicted - y, rtol=1e-6, atol=1e-9)
  low, high = np.quantile(shown, (0.25, 0.75))
  assert found.left == pytest.approx(np.quantile(np.abs(left_out - shown), 0.9) / (high - low))


def test_the_ascent_begins_within_its_bounds_and_has_so_many_steps(monkeypatch, x):
  config = dataclasses.replace(CONFIG, start_length=1e6, start_sizes=(2.0, 1e-9, 0.5), num_steps=7)
  _, asked = fitted(monkeypatch, x, x[:, 0], is_log=(False, False), in_logarithms=False, config=config)
  highest, lowest = config.log_lengths[1], config.log_sizes[0]
  np.testing.assert_allclose(asked["start"], [highest, highest, math.log(2), lowest, math.log(0.5)])
  assert asked["bounds"] == [config.log_lengths] * 2 + [config.log_sizes] * 2 + [config.log_noise]
  assert asked["jac"] is True and asked["method"] == "L-BFGS-B"
  assert asked["options"] == {"maxiter": 7, "maxfun": 14}


def test_a_matrix_without_inverse_is_no_solution_and_a_wall_to_the_ascent(monkeypatch, x):
  kernel = gaussian_process._Kernel(x, x[:, 0])
  def fail(*args, **kwargs):
    raise linalg.LinAlgError("not positive definite")
  monkeypatch.setattr(gaussian_process.linalg, "cholesky", fail)
  assert kernel.solve(PARAMETERS) is None
  loss, gradient = kernel.loss(PARAMETERS)
  assert loss == 1e10 and gradient.tolist() == [0.0] * 5


def test_what_is_not_finite_is_no_error(x):
  x[3, 0] = np.nan
  found = gaussian_process._Kernel(x, x[:, 1]).solve(PARAMETERS)
  assert found is None or np.isnan(found.weights).all()
  x[3, 0] = 0.0
  assert np.isnan(gaussian_process._Kernel(x, np.full(25, np.nan)).solve(PARAMETERS).weights).all()


def test_what_follows_from_the_target_is_that_of_the_matrix(rng):
  z, target = rng.normal(size=(12, 2)), rng.normal(size=12)
  kernel = gaussian_process._Kernel(z, target)
  solved, (smooth, whole) = kernel.solve(PARAMETERS), kernel.parts(PARAMETERS)
  np.testing.assert_allclose(whole, covariance(z, z) + np.exp(2 * PARAMETERS[-1]) * np.eye(12))
  np.testing.assert_allclose(solved.inverse, np.linalg.inv(whole), rtol=1e-7, atol=1e-9)
  np.testing.assert_allclose(solved.weights, np.linalg.solve(whole, target))
  assert solved.log_determinant == pytest.approx(np.linalg.slogdet(whole)[1])
  np.testing.assert_array_equal(solved.smooth, smooth)


def test_the_loss_is_the_likelihood_of_the_target_and_has_its_gradient(rng):
  z, target = rng.normal(size=(12, 2)), rng.normal(size=12)
  kernel = gaussian_process._Kernel(z, target)
  whole = covariance(z, z) + np.exp(2 * PARAMETERS[-1]) * np.eye(12)
  loss, gradient = kernel.loss(PARAMETERS)
  density = stats.multivariate_normal(np.zeros(12), whole).logpdf(target)
  assert loss == pytest.approx(-density - 6 * np.log(2 * np.pi))
  numeric = optimize.approx_fprime(PARAMETERS, lambda each: kernel.loss(each)[0], 1e-6)
  np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-4)


def tried(monkeypatch, x, y, errors=(2.0, 1.0), **changes):
  """In which ways a function is fitted, and which of these is taken."""
  asked = []
  def fit(x, y, is_log, *, in_logarithms, config):
    asked.append((is_log.tolist(), in_logarithms))
    return Surrogate(np.zeros_like(x), np.full(len(y), errors[len(asked) - 1]), float(in_logarithms))
  monkeypatch.setattr(gaussian_process, "_fit", fit)
  found = gaussian_process.fit(x, y, dataclasses.replace(CONFIG, **changes))
  return asked, bool(found.left)


def test_targets_over_decades_of_one_sign_are_taken_in_both_ways(monkeypatch, x):
  y = np.linspace(1, 3, 25)
  ways = [([False, True], False), ([False, True], True)]
  assert tried(monkeypatch, x, y) == (ways, True)
  assert tried(monkeypatch, x, -y) == (ways, True)
  assert tried(monkeypatch, x, y, errors=(1.0, 2.0)) == (ways, False)
  assert tried(monkeypatch, x, y, wide=3.1) == (ways[:1], False)
  mixed = np.where(np.arange(25) % 2, y, -y)
  for size in (1.0, 0.2):
    assert tried(monkeypatch, x, size * mixed) == (ways[:1], False)
    assert tried(monkeypatch, x, size * y) == tried(monkeypatch, x, -size * y) == (ways, True)


def test_errors_are_shares_of_what_lies_between_the_quartiles():
  y = np.arange(9.0)  # quartiles at 2 and 6
  errors = np.array([-8.0, 1, 2, -2, 2, 2, 2, 3, 40])
  assert gaussian_process.typical_error(errors, y) == 0.5
  assert gaussian_process.large_error(errors, y) == pytest.approx(np.quantile(np.abs(errors), 0.9) / 4)
  assert gaussian_process.typical_error(np.zeros(9), y) == 1e-6
  assert gaussian_process.typical_error(errors, np.ones(9)) == math.inf


@pytest.mark.parametrize(("values", "expected"), [([1, 3], True), ([1, 2.9], False), ([-1, 5], False), ([0, 5], False)])
def test_columns_are_wide_above_0_by_a_ratio(values, expected):
  assert gaussian_process.is_wide(np.array(values, float), 3.0) is expected
