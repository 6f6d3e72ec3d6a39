"""Errors of constants beside whole numbers and phases that are as free as they: SciPy's covariance as oracle."""

import numpy as np
import pytest
from scipy import optimize

from symformer_jax.language import parser, programs
from symformer_jax.selection import rounding, scoring


def oracle(function, x, y, start, sigma=None):
  """Standard errors of all parameters by SciPy."""
  return np.sqrt(np.diag(optimize.curve_fit(function, x, y, start, sigma=sigma)[1]))


def found(text, x, y, weights=None, **given):
  """By value as written: of the constants, fitted to the data, and of the whole numbers."""
  node, data = parser.parse(text, ["x"]), (x[:, None], y, np.ones(len(x)) if weights is None else weights)
  errors = rounding.parameter_errors(rounding.refit_constants(node, *data), *data, **given)
  return dict(zip(programs.fitted_values(node), errors.fitted, strict=True)), errors.whole


def decay(x, a, b, c):
  return a * np.exp(-b * x) + c


def test_a_rate_beside_whole_numbers_is_known_as_well_as_least_squares_say():
  x = np.linspace(0.1, 5, 30)
  y = decay(x, 4, 0.6, 1) + 0.02 * np.random.default_rng(1).normal(size=30)
  errors = oracle(decay, x, y, (4, 0.6, 1))
  fitted, whole = found("4*exp(-0.6005*x) + 1", x, y)
  assert fitted[-0.6005] == pytest.approx(errors[1], rel=0.05)
  assert sorted(whole) == pytest.approx(sorted([errors[0], errors[2]]), rel=0.05)
  curve = rounding.curve_errors(parser.parse("4*exp(-0.6005*x) + 1", ["x"]), x[:, None], y, np.ones(30), x[:, None])
  full = rounding.curve_errors(parser.parse("4.0001*exp(-0.6005*x) + 1.0001", ["x"]), x[:, None], y, np.ones(30),
                               x[:, None])
  np.testing.assert_allclose(curve, full, rtol=0.01)
  held = rounding.curve_errors(parser.parse("4*exp(-0.6005*x) + 1", ["x"]), x[:, None], y, np.ones(30), x[:, None],
                               holds_form=True)
  assert np.mean(held) < 0.6 * np.mean(curve)


def test_weights_count(rng):
  x = np.linspace(0.1, 5, 60)
  sigma = 0.01 + 0.03 * x
  y = decay(x, 4, 0.6, 1) + sigma * rng.normal(size=60)
  errors = oracle(decay, x, y, (4, 0.6, 1), sigma)
  fitted, whole = found("4*exp(-0.6005*x) + 1", x, y, sigma**-2)
  assert list(fitted.values()) == pytest.approx([errors[1]], rel=0.1)
  assert sorted(whole) == pytest.approx(sorted([errors[0], errors[2]]), rel=0.1)
  counted = found("4*exp(-0.6005*x) + 1", x, y, np.where(x < 2.5, 1.0, 0.0))[0]
  alone = found("4*exp(-0.6005*x) + 1", x[x < 2.5], y[x < 2.5])[0]
  assert list(counted.values()) == pytest.approx(list(alone.values()), rel=1e-9)


def test_a_formula_of_whole_numbers_alone_has_errors(rng):
  x = rng.uniform(0.2, 2, 25)
  y = 2 * np.sqrt(x) + 0.01 * rng.normal(size=25)
  fitted, [error] = found("2*sqrt(x)", x, y)
  assert not fitted and error == pytest.approx(oracle(lambda x, a: a * np.sqrt(x), x, y, (2,))[0], rel=0.1)


def test_a_dropped_phase_is_free():
  t = np.arange(60) / 12
  x, y = 2019 + t, 10 + 3 * np.sin(2 * np.pi * t + 1.2) + 0.3 * np.random.default_rng(0).normal(size=60)

  def wave(x, a, w, p, c):
    return a * np.sin(w * x + p) + c

  start = (3.01, 6.290001, 0.0, 10.01)
  errors = oracle(wave, x, y, start)
  fitted, [of_three] = found("3*sin(6.290001*x) + 10", x, y)
  assert fitted[6.290001] == pytest.approx(errors[1], rel=0.1) and errors[1] > 0.005
  assert (of_three, fitted[10]) == pytest.approx((errors[0], errors[3]), rel=0.1)
  assert found("3*sin(6.290001*x) + 10", x, y, has_phases=False)[0][6.290001] < 1e-4


def test_numbers_that_others_make_up_for_are_left_out(rng):
  x = np.linspace(0.1, 8, 50)
  y = 2.5 * x / (1 + 0.4 * x) + 0.03 * rng.normal(size=50)
  (a, b), covariance = optimize.curve_fit(lambda x, a, b: a * x / (1 + b * x), x, y, (2.5, 0.4))
  fitted, whole = found(f"{a:.12g}*x/(1 + {b:.12g}*x)", x, y)
  assert sorted(fitted.values()) == pytest.approx(sorted(np.sqrt(np.diag(covariance))), rel=1e-3) and not whole
  fitted, whole = found(f"2*exp({b:.3g}*x + 1)", x, 2 * np.exp(0.4 * x + 1) + rng.normal(size=50))
  assert [error is None for error in whole].count(True) == 1 and None not in fitted.values()


def test_given_numbers_have_no_error(rng):
  x = np.linspace(0.1, 5, 30)
  y = decay(x, 4, 0.6, 1) + 0.02 * rng.normal(size=30)
  errors = oracle(lambda x, b, c: decay(x, 4, b, c), x, y, (0.6, 1))
  fitted, whole = found("4*exp(-0.6005*x) + 1", x, y, held={4.0})
  assert fitted[-0.6005] == pytest.approx(errors[0], rel=0.05)
  assert [error for error in whole if error is not None] == pytest.approx([errors[1]], rel=0.05) and None in whole
  assert found("4*exp(-0.6005*x) + 1", x, y, held={4.0, 1.0})[1] == []


def test_exact_data_say_nothing_of_whole_numbers():
  x = np.linspace(0.1, 5, 30)
  node = parser.parse("4*exp(-0.6*x) + 1", ["x"])
  fitted, whole = found("4*exp(-0.6*x) + 1", x, scoring.evaluate(node, x[:, None]))
  assert whole == [] and 0 <= fitted[-0.6] < 1e-6


@pytest.mark.parametrize(("text", "num"), [("4*exp(-0.6*x) + 1", 2), ("2*x**1.5", 2), ("3*sin(1.3*x)", 2)])
def test_few_rows_leave_no_more_free_than_they_tell(text, num, rng):
  x = rng.uniform(1, 4, num + 1)
  y = scoring.evaluate(parser.parse(text, ["x"]), x[:, None]) + 0.1 * rng.normal(size=num + 1)
  fitted, whole = found(text, x, y)
  assert None not in fitted.values() and sum(error is not None for error in whole) == 1
  fitted, whole = found(text, x[:1], y[:1])
  assert list(fitted.values()) == [None] and whole == []


@pytest.mark.parametrize("text", ["2*log(x - 2) + 1.5", "1/(x - 2)", "2*sqrt(x - 3)*1.5", "1.5*(x - 2)**2.5"])
def test_formulas_without_values_or_derivatives_are_no_errors_in_the_code(text):
  x = np.linspace(0, 4, 9)
  y = np.arange(9.0)
  fitted, whole = found(text, x, y)
  assert set(fitted.values()) <= {None} and whole == []
  assert rounding.curve_errors(parser.parse(text, ["x"]), x[:, None], y, np.ones(9), x[:, None]) is None


def test_true_rates_lie_within_two_errors():
  hits = []
  for seed in range(40):
    rng = np.random.default_rng(seed)
    a, b, c = 4 + rng.normal(0, 0.01), rng.uniform(0.4, 0.9), 2 + rng.normal(0, 0.01)
    x = np.linspace(0, 5, 40)
    y = decay(x, a, b, c) + 0.03 * rng.normal(size=40)
    node = rounding.refit_constants(parser.parse(f"4*exp(-{b:.17g}*x) + 2", ["x"]), x[:, None], y, np.ones(40))
    [rate], [error] = programs.fitted_values(node), rounding.standard_errors(node, x[:, None], y, np.ones(40))
    hits.append(abs(-rate - b) <= 2 * error)
  assert np.mean(hits) >= 0.85
