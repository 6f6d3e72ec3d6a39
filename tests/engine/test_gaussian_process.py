"""The smooth function through the rows of a table: its slopes, its errors of rows left out, its likelihood."""

import dataclasses

import numpy as np
import pytest
from scipy import optimize, stats
from sklearn import gaussian_process as oracle
from sklearn.gaussian_process import kernels

from symformer_jax.engine import gaussian_process, interruption
from symformer_jax.engine.config import SurrogateConfig
from symformer_jax.engine.gaussian_process import Likely

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
  """Noise that is the same in all rows of y is large where little was divided. Errors are those of y."""
  x = rng.uniform(-2, 2, (150, 1))
  by = np.where(rng.random(150) < 0.5, 0.02, 1.0)
  y = by * np.sin(2 * x[:, 0]) + 0.02 * rng.normal(size=150)
  found = Likely(x, y / by, by, CONFIG).climbed(40)
  assert np.std(found.errors()[by == 1]) < 0.025
  alike = Likely(x, y / by, np.ones(150), CONFIG).climbed(40)
  assert np.std(alike.errors()[by == 1]) > 0.1 and found.nats() > alike.nats()


LAW = (lambda x: x[:, 0] * np.exp(x[:, 1]),  # and its slopes
       lambda x: np.exp(x[:, [1]]) * np.column_stack([np.ones(len(x)), x[:, 0]]))


@pytest.fixture
def likely(rng):
  """Of a function of two columns over decades; of its logarithm beyond a size where that is given."""
  x = np.column_stack([rng.uniform(1, 2, 60), rng.uniform(-1, 5, 60)])

  def made(by=None, **changes):
    by = np.ones(60) if by is None else by
    return Likely(x, LAW[0](x) / by, by, CONFIG, **changes), x
  return made


@pytest.mark.parametrize("bend", [0.0, 0.5])
def test_how_likely_y_is_stays_where_it_is_divided_by_a_number(likely, bend):
  """... and its errors, but for rounding: parameters are in the units of what is fitted."""
  plain, _ = likely(bend=bend)
  divided, _ = likely(np.full(60, -40.0), bend=bend)
  assert divided.nats() == pytest.approx(plain.nats(), rel=1e-9)
  np.testing.assert_allclose(divided.errors(), plain.errors(), rtol=1e-6)
  np.testing.assert_allclose(-40 * divided.slopes(), plain.slopes(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("bend", [0.0, 0.5])
@pytest.mark.parametrize("is_divided", [False, True])
def test_how_likely_y_is_is_its_density(likely, bend, is_divided):
  """SciPy's of what is fitted, by the derivative of that by y, which is taken by small steps."""
  by = np.linspace(0.3, 4, 60) if is_divided else np.ones(60)
  found, x = likely(by, bend=bend, parameters=np.log([1.3, 2.1, 1.7, 0.4, 0.1]))
  size = bend * np.median(1 / by)

  def target(y):
    return np.arcsinh(y / by / size) if bend else y / by
  y, step = LAW[0](x), 1e-6
  steepness = (target(y * (1 + step)) - target(y * (1 - step))) / (2 * step * y)
  variances = steepness**2  # of errors that are alike in y
  level = np.average(target(y), weights=1 / variances)
  spread = np.sqrt(np.average((target(y) - level) ** 2, weights=1 / variances))
  # Both columns: the first goes over less than a factor of three, the second has both signs.
  z = (x - x.mean(0)) / x.std(0)
  distances = (((z[:, None] - z[None]) / [1.3, 2.1]) ** 2).sum(axis=2)
  whole = 1.7**2 * np.exp(-distances / 2) + 0.4**2 * (z @ z.T + 1)
  whole += 0.1**2 * np.diag(variances * np.mean(1 / variances))
  density = stats.multivariate_normal(np.full(60, level), spread**2 * whole).logpdf(target(y))
  expected = density + np.log(np.abs(steepness)).sum() + 30 * np.log(2 * np.pi)
  assert found.nats() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("bend", [0.0, 0.5])
@pytest.mark.parametrize("is_divided", [False, True])
def test_slopes_are_those_of_what_was_divided_and_errors_those_of_y(likely, bend, is_divided):
  """Of y by its first column, which leaves a function of the second."""
  whole, x = likely(bend=bend)
  found = (likely(x[:, 0], bend=bend)[0] if is_divided else whole).climbed(40)
  slopes = np.column_stack([np.zeros(60), np.exp(x[:, 1])]) if is_divided else LAW[1](x)
  np.testing.assert_allclose(found.slopes(), slopes, rtol=0.02, atol=0.005 * np.max(slopes))
  assert np.median(np.abs(found.errors())) < 0.005 * np.std(LAW[0](x))


def test_errors_of_what_is_bent_are_in_the_user_s_unit(rng):
  """Rows left out are missed by the errors, whatever y is divided by; below the bend and beyond."""
  x = rng.uniform(0, 1, (200, 1))
  y = np.exp(6 * x[:, 0]) + rng.normal(size=200)
  for by in (1.0, 1e-6, -1e6):
    found = Likely(x, y / by, np.full(200, by), CONFIG, bend=3.0).climbed(40)
    assert np.std(found.errors()) == pytest.approx(1.0, rel=0.2)
    some = found.errors()[y > 50]
    assert np.std(some) == pytest.approx(1.0, rel=0.4)


def test_the_likelier_of_y_and_of_its_logarithm_beyond_errors_is_taken(rng):
  x = np.column_stack([rng.uniform(0, 1, 150), rng.uniform(1, 2, 150)])
  wide, plain = np.exp(9 * x[:, 0]) * x[:, 1], np.sin(3 * x[:, 0]) + x[:, 1]
  config = CONFIG.with_steps(25)
  for y, is_bent in ((wide + 5 * rng.normal(size=150), True), (plain + 0.05 * rng.normal(size=150), False)):
    found = gaussian_process.likeliest(x, y, config, 3.0)
    assert bool(found.bend) is is_bent
    alone = Likely(x, y, np.ones(150), config).climbed(25)
    bent = Likely(x, y, np.ones(150), config, bend=3 * alone.noise()).climbed(25)
    assert found.nats() == pytest.approx(max(alone.nats(), bent.nats())) and found.bend in (0.0, bent.bend)
    assert (bent.nats() > alone.nats()) is is_bent


def test_noise_is_told_in_the_unit_of_y(rng):
  x = rng.uniform(0, 1, (200, 1))
  for size in (1e-8, 1.0, 1e8):
    y = size * (np.sin(4 * x[:, 0]) + 0.1 * rng.normal(size=200))
    assert Likely(x, y, np.ones(200), CONFIG).climbed(40).noise() == pytest.approx(0.1 * size, rel=0.15)


def test_each_step_of_the_ascent_makes_y_likelier(likely):
  found, _ = likely()
  nats = [found.nats()]
  for _ in range(4):
    nats.append(found.climbed(2).nats())
  assert nats == sorted(nats) and nats[-1] > nats[0] + 1


def test_parameters_that_are_given_are_those_that_it_begins_with(likely):
  start = np.log([1.3, 2.1, 1.7, 0.4, 0.1])
  assert np.array_equal(likely(parameters=start)[0].parameters, start)
  plain = likely()[0]
  np.testing.assert_allclose(np.exp(plain.parameters), [CONFIG.start_length] * 2 + list(CONFIG.start_sizes))


def test_what_has_no_inverse_is_not_likely_and_not_known(likely, monkeypatch):
  found, _ = likely()

  def fail(*args, **kwargs):
    raise np.linalg.LinAlgError
  monkeypatch.setattr(gaussian_process.linalg, "cholesky", fail)
  assert found.nats() == -np.inf and np.all(np.isnan(found.slopes())) and np.all(np.isinf(found.errors()))


def test_a_sum_over_groups_counts_rows_by_their_noise(rng):
  x = rng.uniform(0.5, 3, (150, 2))
  weights = np.where(rng.random(150) < 0.5, 1e-4, 1.0)
  target = np.sin(2 * x[:, 0]) + np.log(x[:, 1]) + 0.01 * rng.normal(size=150) / np.sqrt(weights)
  found = gaussian_process.fit_sum(x, target, ((0,), (1,)), CONFIG, weights)
  clean = np.sin(2 * x[:, 0]) + np.log(x[:, 1])
  values = sum(function(x[:, [place]]) for place, function in enumerate(found.functions))
  assert np.std(values - clean) < 0.02
