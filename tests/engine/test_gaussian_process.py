"""The smooth function through the rows of a table: its slopes, its errors of rows left out, its likelihood."""

import dataclasses

import numpy as np
import pytest
from scipy import optimize
from sklearn import gaussian_process as oracle
from sklearn.gaussian_process import kernels

from symformer_jax.engine import gaussian_process, interruption
from symformer_jax.engine.config import SurrogateConfig

CONFIG = SurrogateConfig()


def test_slopes_are_those_of_the_function(rng):
  x = np.column_stack([rng.uniform(-1, 2, 200), rng.uniform(0.1, 20, 200)])
  y = np.sin(x[:, 0]) * np.log(x[:, 1]) + x[:, 0] ** 2
  found = gaussian_process.fit(x, y, CONFIG)
  slopes = np.column_stack([np.cos(x[:, 0]) * np.log(x[:, 1]) + 2 * x[:, 0], np.sin(x[:, 0]) / x[:, 1]])
  assert np.median(np.abs(found.slopes - slopes) / np.abs(slopes)) < 1e-4


def test_by_way_of_half_of_the_rows_the_function_is_as_likely(rng, monkeypatch):
  x = rng.uniform(-2, 2, (CONFIG.least_halved, 2))
  kernel = gaussian_process._Kernel(x, np.cos(2 * x[:, 0]) + x[:, 1] ** 2 + 0.1 * rng.normal(size=len(x)))
  asked, ascend = [], gaussian_process._ascend
  monkeypatch.setattr(gaussian_process, "_ascend", lambda some, *rest: asked.append(len(some.z)) or ascend(some, *rest))
  losses = [kernel.loss(gaussian_process._most_likely(kernel, dataclasses.replace(CONFIG, least_halved=least)))[0]
            for least in (len(x), len(x) + 1)]
  assert losses[0] < losses[1] + 0.05 and asked == [len(x) // 2, len(x), len(x)]


@pytest.mark.parametrize("sign", [1, -1])
def test_targets_over_decades_are_taken_in_their_logarithm(rng, sign):
  x = rng.uniform(0.5, 9, (150, 2))
  y = sign * np.exp(1.5 * x[:, 0]) / x[:, 1]
  found = gaussian_process.fit(x, y, CONFIG)
  np.testing.assert_allclose(found.slopes, np.column_stack([1.5 * y, -y / x[:, 1]]), rtol=1e-3)
  assert np.max(np.abs(found.errors / y)) < 1e-3


def test_errors_are_those_of_rows_left_out(rng):
  """Against scikit-learn with the same kernel, which fits all rows but one."""
  x = rng.uniform(-2, 2, (40, 2))
  y = np.cos(x[:, 0]) + 0.3 * x[:, 1] ** 2 + 0.05 * rng.normal(size=40)
  z, target = (x - x.mean(0)) / x.std(0), (y - y.mean()) / y.std()
  kernel = gaussian_process._Kernel(z, target)
  parameters = np.log([1.3, 2.1, 1.7, 0.4, 0.1])
  solved = kernel.solve(parameters)
  errors = -solved.weights / np.diag(solved.inverse)
  same = (kernels.ConstantKernel(1.7**2) * kernels.RBF([1.3, 2.1])
          + kernels.ConstantKernel(0.4**2) * kernels.DotProduct(sigma_0=1.0))
  for row in range(0, 40, 7):
    others = np.arange(40) != row
    fitted = oracle.GaussianProcessRegressor(same, alpha=0.1**2, optimizer=None).fit(z[others], target[others])
    assert fitted.predict(z[row : row + 1])[0] - target[row] == pytest.approx(errors[row], rel=1e-6)
  whole = oracle.GaussianProcessRegressor(same, alpha=0.1**2, optimizer=None).fit(z, target)
  constant = 20 * np.log(2 * np.pi)
  assert kernel.loss(parameters)[0] + constant == pytest.approx(-whole.log_marginal_likelihood_value_, rel=1e-9)


def test_the_gradient_is_that_of_the_likelihood(rng):
  z = rng.normal(size=(30, 3))
  kernel = gaussian_process._Kernel(z, np.sin(z[:, 0]) + z[:, 1] * z[:, 2])
  start = np.log([1.0, 0.7, 2.0, 1.5, 0.5, 0.2])
  numeric = optimize.approx_fprime(start, lambda p: kernel.loss(p)[0], 1e-6)
  np.testing.assert_allclose(kernel.loss(start)[1], numeric, rtol=1e-4, atol=1e-4)


def test_noise_is_no_function(rng):
  x, y = rng.normal(size=(120, 3)), rng.normal(size=120)
  found = gaussian_process.fit(x, y, CONFIG)
  assert gaussian_process.typical_error(found.errors, y) > 0.35 and found.left > 0.9


def test_errors_are_in_spreads_of_what_most_rows_have(rng):
  """As large as y in most rows, small beside its standard deviation."""
  y = np.r_[rng.normal(size=95), np.full(5, 1e4)]
  errors = 0.5 * np.ones(100)
  assert 0.3 < gaussian_process.typical_error(errors, y) == gaussian_process.large_error(errors, y) < 0.5
  assert gaussian_process.typical_error(1e-12 * errors, y) == 1e-6
  same = np.r_[np.zeros(80), np.full(20, 10.0)]
  assert gaussian_process.typical_error(0 * same, same) == np.inf


def test_rows_without_an_inverse_leave_nothing_known(rng, monkeypatch):
  monkeypatch.setattr(gaussian_process._Kernel, "solve", lambda self, parameters: None)
  found = gaussian_process.fit(rng.normal(size=(20, 2)), rng.normal(size=20), CONFIG)
  assert np.all(np.isnan(found.slopes)) and np.all(np.isinf(found.errors)) and found.left == np.inf


def test_a_fit_is_ended_with_its_turn(rng):
  with pytest.raises(interruption.Interrupted), interruption.ending_when(lambda: True):
    gaussian_process.fit(rng.normal(size=(20, 2)), rng.normal(size=20), CONFIG)


@pytest.mark.parametrize(("values", "expected"), [([1, 3], True), ([1, 2.9], False), ([-1, 5], False), ([0, 5], False)])
def test_wide(values, expected):
  assert gaussian_process.is_wide(np.array(values, float), 3.0) is expected


def test_the_gradient_of_a_sum_over_groups_is_that_of_its_likelihood(rng):
  z = rng.normal(size=(30, 3))
  kernel = gaussian_process._Kernel(z, np.sin(z[:, 0]) + z[:, 1] * z[:, 2], ((1,), (2, 0)))
  start = np.log([1.0, 0.7, 2.0, 1.5, 0.8, 0.5, 0.2])
  numeric = optimize.approx_fprime(start, lambda p: kernel.loss(p)[0], 1e-6)
  np.testing.assert_allclose(kernel.loss(start)[1], numeric, rtol=1e-4, atol=1e-4)


def test_errors_of_a_sum_over_groups_are_those_of_rows_left_out(rng):
  """Against fits of all rows but one, whose parameters differ a little."""
  x = np.column_stack([rng.uniform(-2, 2, 40), rng.uniform(1, 90, 40), rng.uniform(0, 1, 40)])
  target = np.cos(x[:, 0]) + x[:, 2] * np.log(x[:, 1]) + 0.05 * rng.normal(size=40)
  found = gaussian_process.fit_sum(x, target, ((0,), (1, 2)), CONFIG)
  errors = np.empty(40)
  for row in range(40):
    others = np.arange(40) != row
    again = gaussian_process.fit_sum(x[others], target[others], ((0,), (1, 2)), CONFIG)
    errors[row] = target[row] - sum(
      function(x[row : row + 1, list(group)])[0] for group, function in zip(again.groups, again.functions, strict=True))
  assert np.median(np.abs(found.errors)) == pytest.approx(np.median(np.abs(errors)), rel=0.3)
  assert np.corrcoef(found.errors, errors)[0, 1] > 0.95


def test_the_functions_of_a_sum_over_groups_are_its_terms(rng):
  x = np.column_stack([rng.uniform(-2, 2, 200), rng.uniform(1, 90, 200), rng.uniform(0, 1, 200)])
  target = 3 * np.cos(x[:, 0]) + x[:, 2] * np.log(x[:, 1]) + 100.0
  found = gaussian_process.fit_sum(x, target, ((0,), (1, 2)), CONFIG)
  first, second = (function(x[:, list(group)]) for group, function in zip(found.groups, found.functions, strict=True))
  np.testing.assert_allclose(first + second, target, atol=1e-3)
  assert abs(np.mean(second)) < 10 < 90 < np.mean(first)
  np.testing.assert_allclose(np.diff(first), np.diff(3 * np.cos(x[:, 0])), atol=1e-3)
  at = np.array([[0.3], [1.1]])
  np.testing.assert_allclose(np.diff(found.functions[0](at)), np.diff(3 * np.cos(at[:, 0])), atol=1e-3)


def test_rows_of_more_noise_count_less(rng):
  """Against scikit-learn, which takes a variance for each row."""
  x, weights = rng.uniform(-2, 2, (30, 2)), rng.uniform(0.2, 5, 30)
  y = np.cos(x[:, 0]) + 0.3 * x[:, 1] ** 2 + 0.1 * rng.normal(size=30) / np.sqrt(weights)
  units = gaussian_process._Units.of(x, y, weights)
  level = np.sum(weights * y) / np.sum(weights)
  size = np.sqrt(np.sum(weights * (y - level) ** 2) / np.sum(weights))
  assert units.level == pytest.approx(level) and units.size == pytest.approx(size)
  kernel = units.kernel(x, y, weights)
  variances = 0.1**2 * np.mean(weights) / weights
  solved = kernel.solve(np.log([1.3, 2.1, 1.7, 0.4, 0.1]))
  same = (kernels.ConstantKernel(1.7**2) * kernels.RBF([1.3, 2.1])
          + kernels.ConstantKernel(0.4**2) * kernels.DotProduct(sigma_0=1.0))
  z, target = (x - x.mean(0)) / x.std(0), (y - level) / size
  errors = -solved.weights / np.diag(solved.inverse)
  for row in range(0, 30, 7):
    others = np.arange(30) != row
    fitted = oracle.GaussianProcessRegressor(same, alpha=variances[others], optimizer=None)
    fitted.fit(z[others], target[others])
    assert fitted.predict(z[row : row + 1])[0] - target[row] == pytest.approx(errors[row], rel=1e-6)
  parameters = np.log([0.9, 1.4, 1.2, 0.7, 0.2])
  gradient = optimize.approx_fprime(parameters, lambda p: kernel.loss(p)[0], 1e-7)
  np.testing.assert_allclose(kernel.loss(parameters)[1], gradient, rtol=1e-4, atol=1e-5)


def test_of_what_was_divided_rows_count_by_what_they_were_divided_by(rng):
  """Noise that is the same in all rows of y is large where little was divided."""
  x = rng.uniform(-2, 2, (150, 1))
  by = np.where(rng.random(150) < 0.5, 0.02, 1.0)
  y = by * np.sin(2 * x[:, 0]) + 0.02 * rng.normal(size=150)
  found = gaussian_process.fit_divided(x, y / by, by, CONFIG)
  assert np.std((found.errors * by)[by == 1]) < 0.025
  alike = gaussian_process.fit_divided(x, y / by, np.ones(150), CONFIG)
  assert np.std(alike.errors[by == 1]) > 0.1


def test_a_sum_over_groups_counts_rows_by_their_noise(rng):
  x = rng.uniform(0.5, 3, (150, 2))
  weights = np.where(rng.random(150) < 0.5, 1e-4, 1.0)
  target = np.sin(2 * x[:, 0]) + np.log(x[:, 1]) + 0.01 * rng.normal(size=150) / np.sqrt(weights)
  found = gaussian_process.fit_sum(x, target, ((0,), (1,)), CONFIG, weights)
  clean = np.sin(2 * x[:, 0]) + np.log(x[:, 1])
  values = sum(function(x[:, [place]]) for place, function in enumerate(found.functions))
  assert np.std(values - clean) < 0.02
