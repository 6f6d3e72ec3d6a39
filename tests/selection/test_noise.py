"""The chance of a fit to noise, against the F test and against noise itself."""

import math

import numpy as np
import pytest
from scipy import stats

from symformer_jax.engine.rows import Rows
from symformer_jax.language import parser
from symformer_jax.selection import choice, noise


@pytest.mark.parametrize("num_points, num_constants, r2", [(8, 2, 0.6), (20, 3, 0.4), (40, 5, 0.2), (400, 2, 0.05)])
def test_the_chance_is_that_of_the_f_test(num_points, num_constants, r2):
  f = r2 / (num_constants - 1) / ((1 - r2) / (num_points - num_constants))
  expected = math.log(stats.f.sf(f, num_constants - 1, num_points - num_constants))
  found = noise.log_chance(share=1 - r2, num_points=num_points, num_constants=num_constants)
  assert found == pytest.approx(expected, rel=1e-9)


def test_the_chance_beyond_what_a_double_holds_goes_on_as_before():
  # log of t**a / (a B(a, b)) (1 + O(t)): each decade of the share counts a log 10.
  shares = (1e-2, 1e-3, 1e-4)
  chances = [noise.log_chance(share=share, num_points=2000, num_constants=3) for share in shares]
  assert np.diff(chances) == pytest.approx([-(2000 - 3) / 2 * math.log(10)] * 2, rel=1e-3)


def test_as_many_constants_as_rows_are_no_evidence():
  assert noise.log_chance(share=1e-9, num_points=5, num_constants=5) == 0


def candidates(x):
  """Many functions [M, N] of a column, with the nodes and constants they would have beside a factor and a constant."""
  made = [(x, 5, 2), (x**2, 6, 2), (np.log(x), 6, 2), (np.sqrt(x), 6, 2), (1 / x, 6, 2)]
  made += [(x**p, 7, 3) for p in np.linspace(-3, 5, 33)]
  made += [(np.exp(k * (x - 10)), 8, 3) for k in np.linspace(-3, 3, 41)]
  fastest = np.pi / np.median(np.diff(np.sort(x)))
  made += [(np.sin(w * x + p), 10, 4) for w in np.linspace(0.2, fastest, 40) for p in np.linspace(0, 3, 6)]
  made += [(np.exp(-((x - c) ** 2) / s), 11, 4) for c in np.linspace(1, 10, 19) for s in (0.3, 1, 3)]
  return made


@pytest.mark.parametrize("num_points", [6, 8, 10, 15, 20, 40])
def test_noise_seldom_gets_anything_but_a_constant(num_points):
  """The whole rule on 200 sets, each looked at with 370 functions and a straight line."""
  rng = np.random.default_rng(num_points)
  hits = 0
  for i in range(200):
    x = np.linspace(1, 10, num_points) if i % 2 else np.sort(rng.uniform(0.5, 10, num_points))
    y = rng.normal(size=num_points)
    y -= y.mean()
    for values, complexity, constants in candidates(x):
      centred = values - values.mean()
      r2 = (centred @ y) ** 2 / max(centred @ centred, 1e-300) / (y @ y)
      if noise.is_beyond_chance(
        share=1 - r2, num_points=num_points, num_constants=constants, further_nodes=complexity - 1, num_columns=1,
        line_columns=int(complexity == 5)):
        hits += 1
        break
  # 5 % of 200 are 10; 16 would be two standard deviations more.
  assert hits <= 16


def test_a_clear_line_through_twenty_points_is_no_chance():
  line = {"share": 0.6, "num_constants": 2, "further_nodes": 4, "num_columns": 1, "line_columns": 1}
  assert noise.is_beyond_chance(num_points=22, **line) and not noise.is_beyond_chance(num_points=8, **line)


def test_a_wave_of_many_turns_is_the_best_of_as_many():
  # Ten points of noise: `10.1 - cos(4.415*x)` leaves a sixth of the variance, after fourteen half turns.
  wave = {"share": 1 / 6, "num_points": 10, "num_constants": 2, "further_nodes": 6, "num_columns": 1}
  assert noise.is_beyond_chance(**wave) and not noise.is_beyond_chance(**wave, log_frequencies=np.log(14))
  further = {**wave, "share": 1 / 16, "is_base_constant": False}
  assert noise.is_beyond_chance(**further) and noise.is_beyond_chance(**further, log_frequencies=99.0)


def test_a_wave_is_asked_for_its_turns_on_the_rows(monkeypatch):
  asked = []
  monkeypatch.setattr(noise, "is_beyond_chance", lambda **given: asked.append(given["log_frequencies"]) or True)
  x = np.linspace(0, 10, 11)[:, None]
  wave, constant = (choice.Line(parser.parse(text, ("x",)), 5, 0.5) for text in ("sin(2*x) + x", "3.2"))
  assert choice.is_beyond_chance(wave, constant, Rows(x, x[:, 0], np.ones(11)), num_points=11)
  assert asked == pytest.approx([np.log(20 / np.pi)])


def test_a_fit_of_many_constants_to_what_eight_points_leave_is_chance():
  # Kepler's eight planets: period = axis**1.5 leaves 43 times as much as a formula of fifteen nodes, by rounding.
  assert not noise.is_beyond_chance(
    share=0.023, num_points=8, num_constants=5, base_constants=1, further_nodes=12, num_columns=1)


@pytest.mark.parametrize("weights", [np.ones(30), np.linspace(1, 3, 30)])
def test_rows_of_a_line_are_fewer_by_both_kurtoses(weights):
  rng = np.random.default_rng(3)
  rows = Rows(np.column_stack([np.linspace(0, 1, 30), rng.lognormal(size=(30, 2))]), rng.lognormal(size=30), weights)

  def excess(values):
    whole = np.repeat(values, np.round(weights * 29).astype(int))  # np.linspace(1, 3, 30) in whole 29ths
    return stats.kurtosis(whole)

  largest = max(excess(rows.x[:, 1]), excess(rows.x[:, 2]))
  expected = 30 / (1 + largest * excess(rows.y) / 60)
  assert noise.num_points_of_line(rows, {0, 1, 2}, num_rows=30) == pytest.approx(expected, rel=1e-9)
  more = 3000 / (1 + largest * excess(rows.y) / 6000)
  assert noise.num_points_of_line(rows, [1, 2], num_rows=3000) == pytest.approx(more, rel=1e-9)  # these are a sample
  assert noise.num_points_of_line(rows, [0], num_rows=30) == 30  # even steps: a negative excess
  assert noise.num_points_of_line(Rows(rows.x, np.linspace(1e-50, 3e-50, 30), weights), [1], num_rows=30) == 30
  assert noise.num_points_of_line(Rows(rows.x, np.ones(30), weights), [1], num_rows=30) == 30


@pytest.mark.parametrize("num_points, num_columns", [(20, 1), (30, 4), (60, 8)])
def test_uneven_noise_on_uneven_columns_seldom_gets_a_line(num_points, num_columns):
  """Logarithmic normal both, 200 sets: the F test of all rows would let one in ten through."""
  rng = np.random.default_rng(num_points)
  hits = 0
  for _ in range(200):
    rows = Rows(rng.lognormal(size=(num_points, num_columns)), rng.lognormal(size=num_points), np.ones(num_points))
    centred, y = rows.x - rows.x.mean(axis=0), rows.y - rows.y.mean()
    order = np.argsort(-np.abs(centred.T @ y) / np.linalg.norm(centred, axis=0))  # each line has the nearest columns
    for count in range(1, num_columns + 1):
      columns = order[:count]
      left = y - centred[:, columns] @ np.linalg.lstsq(centred[:, columns], y, rcond=None)[0]
      counted = noise.num_points_of_line(rows, columns, num_rows=num_points)
      if noise.is_beyond_chance(
        share=left @ left / (y @ y), num_points=counted, num_constants=count + 1,
        further_nodes=4 * count, num_columns=num_columns, line_columns=count):
        hits += 1
        break
  # `line_share` of 200 are 4, granted for each number of columns; 10 would be three standard deviations more.
  assert hits <= 10
