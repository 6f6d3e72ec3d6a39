"""Waves beside straight lines, against SciPy's periodogram with a floating mean, and waves that are known."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import signal

from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.rows import Rows
from symformer_jax.errors import InputError
from symformer_jax.language import expression
from symformer_jax.sources.plain_waves import waves_beside_lines

CONFIG = DEFAULT.closed_forms.waves


def frequency_of(node):
  """The factor of the column inside the only wave."""
  [wave] = [part for part in expression.walk(node) if part.token in ("cos", "sin")]
  line = expression.evaluate(wave.args[0], np.array([[0.0] * 8, [1.0] * 8]))
  return abs(line[1] - line[0])


def left(node, rows):
  return np.average((expression.evaluate(node, rows.x) - rows.y) ** 2, weights=rows.weights)


def test_beside_a_constant_it_is_the_highest_place_of_a_periodogram_with_a_floating_mean(rng):
  x = np.sort(rng.uniform(3, 9, 80))
  y, weights = 5 + np.cos(7.3 * x) + rng.normal(size=80), rng.uniform(0.2, 2, 80)
  node = next(waves_beside_lines(Rows(x[:, None], y, weights), (0,), CONFIG))
  grid = 2 * math.pi / (CONFIG.steps_per_period * np.ptp(x)) * np.arange(1, 161)
  power = signal.lombscargle(x, y, grid, weights=weights, floating_mean=True)
  assert frequency_of(node) == pytest.approx(grid[np.argmax(power)])
  design = np.column_stack([np.ones(80), np.cos(frequency_of(node) * x), np.sin(frequency_of(node) * x)])
  solution = np.linalg.lstsq(np.sqrt(weights)[:, None] * design, np.sqrt(weights) * y, rcond=None)[0]
  assert left(node, Rows(x[:, None], y, weights)) == pytest.approx(
    np.average((design @ solution - y) ** 2, weights=weights))


def test_a_line_of_all_columns_hides_no_wave(rng):
  x = rng.uniform(-5, 5, (200, 3))
  y = 0.3 * np.sin(11 * x[:, 1] + 0.4) + 20 * x[:, 0] - 7 * x[:, 2] + 1000
  rows = Rows(x, y, np.ones(200))
  found = list(waves_beside_lines(rows, range(3), CONFIG))
  assert len(found) == 6  # a wave of each column, beside a constant and beside the line
  best = min(found, key=lambda node: left(node, rows))
  assert best == found[4] and frequency_of(best) == pytest.approx(11, abs=0.1)
  assert left(best, rows) < 0.1 * 0.3**2 / 2 and min(left(node, rows) for node in found[:3]) > 100


def test_the_fastest_wave_of_evenly_spaced_rows_turns_half_between_them():
  x = np.arange(60.0)
  y = np.cos(math.pi * 0.93 * x)
  node = next(waves_beside_lines(Rows(x[:, None], y, np.ones(60)), (0,), CONFIG))
  assert frequency_of(node) == pytest.approx(math.pi * 0.93, abs=0.03)


def test_few_rows_and_columns_that_are_the_same_in_all_have_none(rng):
  x = rng.uniform(0, 1, (15, 1))
  assert not list(waves_beside_lines(Rows(x, np.cos(9 * x[:, 0]), np.ones(15)), (0,), CONFIG))
  many = np.column_stack([rng.uniform(0, 1, 40), np.full(40, 3.0)])
  found = list(waves_beside_lines(Rows(many, np.cos(9 * many[:, 0]), np.ones(40)), (0, 1), CONFIG))
  assert len(found) == 2 and all(frequency_of(node) == pytest.approx(9, abs=1) for node in found)
  fewer = dataclasses.replace(CONFIG, rows_per_constant=9)
  assert len(list(waves_beside_lines(Rows(many, many[:, 0] ** 2, np.ones(40)), (0, 1), fewer))) == 1


@pytest.mark.parametrize("y", [np.zeros(40), np.full(40, 2.5)])
def test_what_is_the_same_in_all_rows_has_none(y):
  rows = Rows(np.linspace(0, 1, 40)[:, None], y, np.ones(40))
  assert all(left(node, rows) < 1e-20 for node in waves_beside_lines(rows, (0,), CONFIG))


def test_huge_and_tiny_units(rng):
  x = rng.uniform(0, 1, 60)
  y = np.sin(40 * x)
  for unit in (1e-9, 1e9):
    node = next(waves_beside_lines(Rows(x[:, None] * unit + 5 * unit, y * 1e8, np.ones(60)), (0,), CONFIG))
    assert frequency_of(node) * unit == pytest.approx(40, abs=1)


def test_columns_of_few_levels_have_none_and_nothing_is_warned_of(rng):
  """Of a dose in three or four steps a wave of some frequency passes through all means."""
  levels = np.arange(40) % 3 - 1.0
  for x in (levels, levels + 1.5, np.arange(40) % 15 * 1.0):
    assert not list(waves_beside_lines(Rows(x[:, None], rng.normal(size=40), np.ones(40)), (0,), CONFIG))
  both = np.column_stack([levels, rng.uniform(0, 1, 40)])
  found = list(waves_beside_lines(Rows(both, rng.normal(size=40), np.ones(40)), (0, 1), CONFIG))
  assert len(found) == 2  # those of the other column


def test_a_sine_where_no_cosine_may_be_written(rng):
  x = rng.uniform(0, 5, (60, 1))
  rows = Rows(x, 2 * np.sin(7 * x[:, 0] + 0.3) + 1, np.ones(60))
  [cosine, _], [sine, _] = (list(waves_beside_lines(rows, (0,), CONFIG, token=token)) for token in ("cos", "sin"))
  np.testing.assert_allclose(expression.evaluate(sine, x), expression.evaluate(cosine, x), atol=1e-9)
  assert {part.token for part in expression.walk(sine)} & {"cos", "sin"} == {"sin"}


def test_no_share_of_a_period_is_refused():
  with pytest.raises(InputError, match="periods_per_row: expected a number above 0, got 0"):
    dataclasses.replace(CONFIG, periods_per_row=0)
