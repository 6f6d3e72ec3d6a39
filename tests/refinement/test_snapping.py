"""Snapping: exact values are found, clean and noisy; ordinary constants stay; tests and priors against sources."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from symformer_jax.language import expression, parser, printing
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.refinement import snapping, special_values
from symformer_jax.refinement.refine import refine

X = np.linspace(-2, 2, 64)


def wave(constants):
  """a sin(w x) + b with its derivatives, by hand."""
  a, w, b = constants
  return np.stack([a * np.sin(w * X) + b, np.sin(w * X), a * X * np.cos(w * X), np.ones_like(X)])


def snap_wave(truth, noise=0.0, start=1.0001, **options):
  y = wave(truth)[0] + noise * np.random.default_rng(0).normal(size=len(X))
  snapped = snapping.snap(wave, np.array(truth) * start + 1e-5, y, np.ones(len(X)), **options)
  return snapped, [special and printing.to_text(special.node) for special in snapped.exact]


@pytest.mark.parametrize("noise", [0.0, 1e-5, 1e-4])
@pytest.mark.parametrize("truth, texts", [
  ((1 / 3, 2 * math.pi, math.sqrt(2)), ["1/3", "2*pi", "sqrt(2)"]),
  ((-2.5, math.pi / 2, 0.0), ["-5/2", "pi/2", "0"]),
  ((1 / math.sqrt(2 * math.pi), 4.0, -math.e), ["1/sqrt(2*pi)", "4", "-exp(1)"]),
])
def test_exact_values_are_found(truth, texts, noise):
  snapped, found = snap_wave(truth, noise)
  assert found == texts
  # Exact values are those of NumPy to the last bit, whatever the data say.
  np.testing.assert_allclose(snapped.values, truth, rtol=4e-16)
  assert (snapped.stderr == 0).all() and snapped.p_value > snapping.SIGNIFICANCE


@pytest.mark.parametrize("noise", [0.0, 1e-4, 1e-2, 0.3])
def test_ordinary_constants_stay_and_are_refitted(noise):
  truth = (1.37214, 2.71413, 0.61877)
  snapped, found = snap_wave(truth, noise)
  assert found == [None, None, None] and snapped.p_value == 1
  assert (abs(snapped.values - truth) <= 4 * snapped.stderr + 1e-13).all()


def test_others_are_refitted_and_better_known():
  truth = (1.37214, 2.71413, 0.0)
  snapped, found = snap_wave(truth, 1e-3)
  assert found == [None, None, "0"]
  y = wave(truth)[0] + 1e-3 * np.random.default_rng(0).normal(size=len(X))
  rows = wave(snapped.values)
  residual = rows[0] - y
  # At the optimum of the two that are left the residual is orthogonal to their slopes.
  assert abs(rows[1:3] @ residual).max() < 1e-3 * np.linalg.norm(residual)
  np.testing.assert_allclose(snapped.rss, residual @ residual, rtol=1e-12)
  variance = np.linalg.lstsq(rows[1:].T, -residual)[1][0] / (len(X) - 3)
  expected = np.sqrt(variance * np.diag(np.linalg.inv(rows[1:3] @ rows[1:3].T)))
  np.testing.assert_allclose(snapped.stderr[:2], expected, rtol=1e-4)


def test_a_constant_may_be_off_by_its_own_rounding():
  def growth(c):  # a unit in the last place of c is 300 of them in y
    return np.stack([np.exp(c[0] * 300 * X), 300 * X * np.exp(c[0] * 300 * X)])
  fitted = np.nextafter(1 / 3, 0)
  snapped = snapping.snap(growth, np.array([fitted]), growth(np.array([fitted]))[0], np.ones(len(X)))
  assert snapped.values[0] == 1 / 3


def test_a_constant_the_data_hardly_know_is_not_snapped():
  # One is within a standard error, as is everything else.
  assert snap_wave((1.0, 2.0, 1.0), noise=2.0)[1] == [None, None, None]


def test_a_known_sigma_decides_what_noise_is():
  truth, y = (1.0, 2.0, 1.0), wave((1.003, 2.0, 1.0))[0]
  apart = snapping.snap(wave, np.array(truth), y, np.full(len(X), 1e6), has_sigma=True)  # sigma 0.001: z = 16
  alike = snapping.snap(wave, np.array(truth), y, np.full(len(X), 1e4), has_sigma=True)  # sigma 0.01: z = 1.6
  assert apart.exact[0] is None and apart.exact[1].value == 2
  assert alike.exact[0].value == 1


def test_masked_points_do_not_count():
  y = wave((1.0, 2.0, 1.0))[0]
  y[::4] = np.nan
  weights = np.where(np.arange(len(X)) % 4 == 0, 0.0, 1.0)
  snapped = snapping.snap(wave, np.array([1.0001, 2.0, 1.0]), y, weights)
  np.testing.assert_array_equal(snapped.values, [1, 2, 1])


def test_steps_that_go_too_far_are_taken_back():
  def power(c):
    with np.errstate(over="ignore", invalid="ignore"):
      grown = np.exp(c[0] * X**2 * 1000)
      return np.stack([grown + c[1], 1000 * X**2 * grown, np.ones_like(X)])
  y = power(np.array([-1.0, 0.37123]))[0]
  snapped = snapping.snap(power, np.array([-0.02, 0.4]), y, np.ones(len(X)))
  assert np.isfinite(snapped.rss) and snapped.rss < 1


def test_constants_that_are_not_identifiable_stay():
  def product(c):
    return np.stack([c[0] * c[1] * X, c[1] * X, c[0] * X])
  snapped = snapping.snap(product, np.array([1.0, 2.0]), 2 * X, np.ones(len(X)))
  assert snapped.exact == (None, None)


def test_too_few_points_snap_nothing():
  x = np.array([1.0, 2.0])
  snapped = snapping.snap(lambda c: np.stack([c[0] * x + c[1], x, np.ones(2)]), np.ones(2), x + 1, np.ones(2))
  assert snapped.exact == (None, None) and np.isnan(snapped.stderr).all()


def test_random_constants_are_rarely_snapped():
  """A mean of 32 draws around a random constant, with any noise: the bound is one in ten."""
  rng = np.random.default_rng(5)
  num, found = 400, 0
  for _ in range(num):
    truth, sigma = rng.uniform(-5, 5), 10 ** rng.uniform(-5, 0)
    y = truth + sigma * rng.normal(size=32)
    snapped = snapping.snap(lambda c: np.stack([np.full(32, c[0]), np.ones(32)]), np.array([y.mean()]), y, np.ones(32))
    found += snapped.exact[0] is not None
  assert 0 < found / num <= 0.04


@pytest.mark.parametrize("num_held, dof, rise", [(1, 5, 3.0), (2, 40, 9.0), (1, 10**6, 3.841)])
def test_f_test_is_that_of_scipy(num_held, dof, rise):
  assert snapping.f_test(rise, num_held, dof) == pytest.approx(stats.f.sf(rise / num_held, num_held, dof), rel=1e-9)


def test_special_values_have_a_prior_and_no_value_is_there_twice():
  values = np.linspace(0, 14, 700)
  specials = {s.value: s for value in values for s in special_values.nearest(value)}
  total = sum(2.0 ** -s.bits * (2 if s.value else 1) for s in specials.values())
  assert 0.5 < total <= 1
  distinct = np.sort(list(specials))
  assert np.diff(distinct).min() > 1e-9
  for special in list(specials.values())[::50]:
    again = float(expression.evaluate(parser.parse(printing.to_text(special.node)), np.zeros((1, 1)))[0])
    assert again == pytest.approx(special.value, rel=1e-14)


def test_special_values_of_either_sign_and_any_size():
  assert [s.value for s in special_values.nearest(-0.5)][:2] == [0, -0.5]
  assert 299792458.0 in [s.value for s in special_values.nearest(299792458.3)]
  assert special_values.nearest(1e-12)[0].value == 0
  bits = [s.bits for s in special_values.nearest(3.14159)]
  assert bits == sorted(bits)


def test_refine_offers_exact_values_beside_the_plain_fit():
  rng = np.random.default_rng(1)
  x = np.linspace(0, 3, 64)
  y = np.sqrt(2) * np.sin(2 * np.pi * x) + 0.4321 + 1e-5 * rng.normal(size=64)
  fit = refine("a*sin(w*x) + b", x, y, start={"a": 1.3, "w": 6.2, "b": 0.3}, num_starts=2, snap=True)
  assert fit.snapped.exact == {"a": "sqrt(2)", "w": "2*pi"}
  assert fit.constants["a"] != math.sqrt(2) and fit.snapped.constants["a"] == math.sqrt(2)
  assert fit.snapped.expression.startswith("sqrt(2)*sin(2*pi*x) + 0.432")
  assert fit.rss <= fit.snapped.rss < fit.rss * 1.5 and 0 == fit.snapped.stderr["w"] < fit.snapped.stderr["b"]
  node = parser.parse(fit.snapped.expression)
  np.testing.assert_allclose(expression.evaluate(node, x[:, None]), fit.predict(x), atol=2e-5)
  assert refine("a*sin(w*x) + b", x, y, start={"a": 1.3, "w": 6.2, "b": 0.3}, num_starts=2).snapped is None


def test_beside_a_column_named_pi_the_number_is_written_out():
  columns = pd.DataFrame({"pi": np.linspace(1, 2, 40), "t": np.sin(np.arange(40.0))})
  fit = refine("a*pi + b*t", columns, 2 * math.pi * columns["pi"] + columns["t"] / 3, snap=True)
  assert fit.snapped.exact == {"b": "1/3"} and fit.snapped.constants["a"] == 2 * math.pi
  node = parser.parse(fit.snapped.expression, ("pi", "t"))
  assert expression.evaluate(node, np.array([[2.0, 0.0]]))[0] == pytest.approx(4 * math.pi)


def test_a_fitted_program_is_snapped_in_place():
  vocab = Vocabulary(1)
  ids, mantissas = expression.encode(parser.parse("1.3*exp(-0.4*x) + 0.7132"), vocab)
  values = np.array(mantissas) * np.array(vocab.constant_scale)[ids]
  ids, values = (np.pad(np.array(a), (0, 24 - len(ids))) for a in (ids, values))
  y = 1.5 * np.exp(-X / 3) + 0.71321
  snapped, found = snapping.snap_program(ids, values, X[:, None], y, np.ones(len(X)), vocab=vocab, max_constants=4)
  texts = [s and printing.to_text(s.node) for s in found.exact]
  assert texts == ["3/2", "-1/3", None]
  np.testing.assert_allclose(snapped[snapped != 0], [1.5, -1 / 3, 0.71321], rtol=1e-12)


@pytest.mark.parametrize(("num_points", "threshold"), [(64, 2.6561), (6, 4.0321)])
def test_the_f_test_decides_where_the_odds_do_not(num_points, threshold):
  """A mean so many standard errors from 1: Student's 1 % point of N - 1 degrees, from a printed table."""
  assert stats.t.isf(0.005, num_points - 1) == pytest.approx(threshold, abs=1e-4)
  noise = 1e-7 * np.resize([1.0, -1.0], num_points)  # so small that 1 is far more probable than a number beside it
  stderr = np.std(noise, ddof=1) / math.sqrt(num_points)

  def constant(values):
    return np.stack([np.full(num_points, values[0]), np.ones(num_points)])
  for distance, is_snapped in ((0.97 * threshold, True), (1.03 * threshold, False)):
    y = 1 + distance * stderr + noise
    [exact] = snapping.snap(constant, np.array([y.mean()]), y, np.ones(num_points)).exact
    assert (exact is not None and exact.value == 1) == is_snapped
