"""The digits that numbers are written with, and where a search of such numbers is at its end."""

import dataclasses

import numpy as np
import pytest

from symformer_jax.engine import loop
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.digits import rounding_variance
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.task import make_task


@pytest.mark.parametrize("form", ["%.10g", "%.4f", "%.3g", "%.2e", "%.0f"])
def test_the_error_is_that_of_rounding(rng, form):
  values = rng.normal(0, 100, 400) * 10.0 ** rng.integers(-1, 3, 400)
  written = np.array([float(form % value) for value in values])
  assert rounding_variance(written) == pytest.approx(np.mean((written - values) ** 2), rel=0.25)


def test_the_error_is_spread_evenly_over_the_last_unit():
  assert rounding_variance(np.array([0.1, 0.2, 3.5])) == pytest.approx(0.1**2 / 12, rel=1e-12)


def test_of_all_digits_next_to_nothing_is_left(rng):
  assert rounding_variance(rng.normal(size=100)) < 1e-30


@pytest.mark.parametrize("values", [[], [0.0, 0.0], [np.nan], [np.inf, 0.0]])
def test_of_no_numbers_there_is_no_error(values):
  assert rounding_variance(np.array(values, float)) == 0


def test_numbers_of_any_size_give_no_warning():
  assert rounding_variance(np.array([1e300, 1e-300, 0.0])) == np.inf
  assert rounding_variance(np.array([1e16, 1e22])) >= 0


@pytest.mark.parametrize(("form", "least", "most"), [
  ("%.10g", 1e-20, 1e-18), ("%.17g", DEFAULT.pool.met, DEFAULT.pool.met), ("%.6g", DEFAULT.pool.met, DEFAULT.pool.met)])
def test_data_of_ten_digits_are_met_to_the_last_one(rng, form, least, most):
  x = rng.uniform(1, 9, (80, 1))
  y = np.array([float(form % value) for value in 3.0 / x[:, 0]])
  task = make_task((x, y), ["x"], SearchOptions())
  config = loop._as_written(task, DEFAULT.pool)
  assert least <= config.met <= most
  assert dataclasses.replace(config, met=DEFAULT.pool.met) == DEFAULT.pool
