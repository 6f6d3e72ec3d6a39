"""Whether y has errors is told by what half of the rows know."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine import learning_curves
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.rows import Rows

CONFIG = DEFAULT.noise.learning_curve


def rows_of(function, *, noise=0.0, num_rows=224, num_columns=3, seed=0):
  rng = np.random.default_rng(seed)
  x = rng.uniform(0.5, 3.0, (num_rows, num_columns))
  y = function(*x.T)
  return Rows(x, y + noise * np.std(y) * rng.normal(size=num_rows), np.ones(num_rows))


FUNCTIONS = {
  "fraction": lambda x, y, z: x * y / (1 + z * x),
  "exponential": lambda x, y, z: 1 - np.exp(-x * y**z / 5),
  "root": lambda x, y, z: np.sqrt(x**2 + y * z),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("noise", (0.01, 0.05))
def test_errors_are_seen(name, noise):
  assert learning_curves.has_errors(rows_of(FUNCTIONS[name], noise=noise), range(3))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_exact_values_have_none(name):
  assert not learning_curves.has_errors(rows_of(FUNCTIONS[name]), range(3))


def test_of_many_columns_a_function_that_few_rows_tell_little_of_has_none():
  """A smooth function of 224 rows misses it by more than the least error, one of half of them by far more."""
  rng = np.random.default_rng(2)
  x = rng.uniform(0.2, 3.0, (224, 5))
  y = x[:, 0] * x[:, 1] / (0.05 + x[:, 0] * x[:, 2] * x[:, 1] + x[:, 3] * x[:, 4])
  error, half = (learning_curves._errors(x[:num], y[:num], CONFIG)[0] for num in (224, 112))
  assert error > CONFIG.least_error * np.std(y) and half > CONFIG.most_gained * error
  assert not learning_curves.has_errors(Rows(x, y, np.ones(224)), range(5))


def over_decades(x, y, z):
  return x * (np.exp(3 * y / z) - 1)


@pytest.mark.parametrize("seed", range(2))
def test_errors_of_a_law_over_decades_are_seen_and_without_them_none(seed):
  """Where the quartiles of y are within the errors."""
  exact, noisy = (rows_of(over_decades, noise=noise, seed=seed) for noise in (0.0, 0.01))
  assert np.std(exact.y) > 10 * np.ptp(np.quantile(exact.y, [0.25, 0.5])) and np.max(exact.y) > 1e4 * np.min(exact.y)
  assert learning_curves.has_errors(noisy, range(3)) and not learning_curves.has_errors(exact, range(3))


def test_what_is_nothing_but_errors_or_a_function_that_turns_too_fast_is_not_known():
  assert not learning_curves.has_errors(rows_of(lambda x, y, z: np.sin(40 * x * y)), range(3))
  rng = np.random.default_rng(1)
  rows = Rows(rng.normal(size=(100, 2)), rng.normal(size=100), np.ones(100))
  assert not learning_curves.has_errors(rows, range(2))


@pytest.mark.parametrize("changed, is_seen", (
  ({}, True), ({"least_error": 0.1}, False), ({"most_error": 1e-3}, False), ({"most_gained": 0.5}, False),
  ({"least_gained": 1.5}, False), ({"most_missed": 1e-3}, False),
  ({"least_rows": 225}, False), ({"least_rows": 224}, True), ({"max_columns": 2}, False), ({"max_columns": 3}, True),
  ({"num_rows": 59}, False), ({"num_rows": 60}, True)))
def test_the_numbers_of_the_config(changed, is_seen):
  rows = rows_of(FUNCTIONS["root"], noise=0.02)
  assert learning_curves.has_errors(rows, range(3), dataclasses.replace(CONFIG, **changed)) is is_seen


def test_the_surrogate_is_that_of_the_config(monkeypatch):
  seen = []
  monkeypatch.setattr(learning_curves.gaussian_process, "likeliest", lambda x, y, config, bend: (
    seen.append((config, bend)) or 1 / 0))
  config = dataclasses.replace(CONFIG, surrogate=CONFIG.surrogate.with_steps(3), bend=7.0)
  with pytest.raises(ZeroDivisionError):
    learning_curves.has_errors(rows_of(FUNCTIONS["root"]), range(3), config)
  assert seen == [(config.surrogate, 7.0)]


def test_columns_that_do_not_count_and_rows_that_are_equal():
  rows = rows_of(FUNCTIONS["root"], noise=0.02)
  assert not learning_curves.has_errors(rows, [0])
  constant = Rows(np.column_stack([rows.x[:, 0], np.ones((len(rows), 2))]), rows.y, rows.weights)
  assert not learning_curves.has_errors(constant, range(3))
  few = Rows(np.tile(rows.x[:20], (11, 1)), np.tile(rows.y[:20], 11), np.ones(220))
  assert not learning_curves.has_errors(few, range(3))
  same = Rows(rows.x, np.ones(len(rows)), rows.weights)
  assert not learning_curves.has_errors(same, range(3))
  wide = Rows(np.column_stack([np.full(len(rows), 7.0), rows.x]), rows.y, rows.weights)
  assert learning_curves.has_errors(wide, range(4))


def test_what_has_no_surrogate_is_not_known(monkeypatch):
  def fail(x, y, config, bend):
    raise np.linalg.LinAlgError
  monkeypatch.setattr(learning_curves.gaussian_process, "likeliest", fail)
  assert not learning_curves.has_errors(rows_of(FUNCTIONS["root"], noise=0.02), range(3))


def test_a_half_in_which_y_or_a_column_is_the_same_tells_nothing():
  """As of a code that is 1 in few rows."""
  unknown = np.inf, np.inf
  assert learning_curves._errors(np.ones((4, 2)), np.arange(4.0), CONFIG) == unknown
  assert learning_curves._errors(np.arange(8.0).reshape(4, 2), np.ones(4), CONFIG) == unknown
  constant = np.column_stack([np.ones(4), np.arange(4.0)])
  assert learning_curves._errors(constant, np.arange(4.0), CONFIG) == unknown


@pytest.mark.parametrize(("errors", "expected"), [
  ([3.0, -4.0, 0.0, 1.0, 2.0], (2.0, np.sqrt(6))), ([3.0, np.nan, 0.0, 1.0, 2.0], (np.inf, np.inf)),
  ([3.0, np.inf, 0.0, 1.0, 2.0], (np.inf, np.inf))])
def test_errors_are_told_by_their_median_and_their_mean_square(errors, expected, monkeypatch):
  monkeypatch.setattr(learning_curves.gaussian_process, "likeliest", lambda *given: SimpleNamespace(
    errors=lambda: np.array(errors)))
  found = learning_curves._errors(np.arange(10.0).reshape(5, 2), np.arange(5.0), CONFIG)
  assert found == pytest.approx(expected)


@pytest.mark.parametrize("unit", [1e-20, 1e20])
def test_errors_are_seen_in_any_unit(unit):
  """Where the sizes of a smooth function's are in that of y."""
  for noise in (0.0, 0.02):
    rows = rows_of(FUNCTIONS["root"], noise=noise)
    assert learning_curves.has_errors(Rows(rows.x, unit * rows.y, rows.weights), range(3)) is bool(noise)
