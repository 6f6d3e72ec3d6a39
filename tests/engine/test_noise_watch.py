"""When a search ends because what a formula leaves looks like noise: the statistic, and the watch over a pool."""

import dataclasses

import numpy as np
import pytest

from symformer_jax.engine import noise
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Candidate, Pool
from symformer_jax.engine.task import make_task
from symformer_jax.language import parser


@pytest.mark.parametrize("num_columns", [1, 3])
@pytest.mark.parametrize("draw", ["standard_normal", "standard_cauchy", "standard_exponential"])
@pytest.mark.parametrize("is_even", [True, False])
def test_noise_seldom_looks_like_more(num_columns, draw, is_even):
  """It need not be normal, nor everywhere as large: only without order."""
  rng = np.random.default_rng(3)
  found = []
  for _ in range(400):
    x = rng.normal(size=(80, num_columns))
    errors = getattr(rng, draw)(80) * (1 if draw != "standard_exponential" else rng.choice([-1, 1], 80))
    errors *= 1 if is_even else np.exp(x[:, 0])
    found.append(noise.looks_like_noise(errors, x, range(num_columns), chance=0.1))
  assert 0.83 < np.mean(found) < 0.99


def test_what_a_formula_leaves_is_seen_and_its_constants_are_counted():
  rng = np.random.default_rng(0)
  x = rng.uniform(0, 6, (100, 1))
  rest = 0.8 * np.sin(x[:, 0]) + rng.normal(size=100)
  [alone], [beside] = noise.smoothness(rest, x), noise.smoothness(rest, x, num_constants=10)
  assert 2.5 < alone < beside - 0.5
  assert not noise.looks_like_noise(rest, x, [0])
  rest[7] = 1e6  # an outlier hides nothing
  assert not noise.looks_like_noise(rest, x, [0])


def test_constants_take_from_what_neighbours_share():
  """Of noise to which a line of eight harmonics was fitted the statistic, corrected, has mean 0."""
  rng, x = np.random.default_rng(5), np.linspace(0, 1, 100)[:, None]
  design = np.concatenate([np.cos(np.pi * np.arange(8) * x)], axis=1)
  found = [[], []]
  for _ in range(300):
    y = rng.normal(size=100)
    errors = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    for kept, count in zip(found, (0, 8), strict=True):
      kept += noise.smoothness(errors, x, num_constants=count)
  assert np.mean(found[0]) < -0.6 and abs(np.mean(found[1])) < 0.2


def test_what_depends_on_two_columns_together_is_seen_by_the_nearest_rows():
  rng = np.random.default_rng(0)
  x = rng.uniform(-1, 1, (300, 2))
  found = noise.smoothness(x[:, 0] * x[:, 1], x)
  assert max(found[:2]) < 3 < 9 < found[2]


def test_columns_that_do_not_count_and_equal_rows_are_no_neighbours_of_themselves():
  rng = np.random.default_rng(0)
  x = np.repeat(rng.normal(size=(20, 2)), 2, axis=0)  # each row twice
  errors = np.tile([1.0, -1.0], 20)
  assert max(noise.smoothness(errors, x)) < 0  # all pairs are of opposite signs
  assert noise.smoothness(np.zeros(40), x) == [0.0] * 3
  smooth = x[:, 0] + rng.normal(size=40)
  assert not noise.looks_like_noise(x[:, 0], x, [0]) and noise.looks_like_noise(smooth - x[:, 0], x, [1])
  assert not noise.looks_like_noise(np.where(np.arange(40) == 3, np.inf, errors), x, [0])


def test_where_no_column_counts_there_are_no_neighbours():
  assert noise.looks_like_noise(np.arange(40.0), np.zeros((40, 2)), [])


def watch_of(y, x, texts):
  """A watch, and a pool that holds a task's formulas."""
  task = make_task((x, y), None, SearchOptions())
  pool = Pool(task.variance, len(task.fit_rows))
  for text in texts:
    node = parser.parse(text, task.names)
    pool.insert([Candidate(node, float(np.mean((parser_values(node, x) - y) ** 2)))])
  return noise.NoiseWatch(task), pool


def is_met(watch, pool):
  return watch.has_stalled(pool) and watch.leaves_noise()


def parser_values(node, x):
  from symformer_jax.language import expression

  return expression.evaluate(node, x)


def test_the_watch_waits_for_a_turn_without_gain_and_for_noise():
  rng = np.random.default_rng(1)
  x = rng.uniform(0.5, 4, (120, 1))
  law = 2 * np.sin(3 * x[:, 0])
  y = law + 0.1 * rng.normal(size=120)
  watch, pool = watch_of(y, x, ["2*sin(3*x0)"])
  assert not is_met(watch, pool)  # the turn that found it
  assert is_met(watch, pool)
  pool.insert([Candidate(parser.parse("1.999*sin(3*x0)", ("x0",)), pool.best.mse * 0.999)])
  assert is_met(watch, pool)  # less than a nat
  watch, pool = watch_of(y, x, ["0.5*x0"])
  assert not is_met(watch, pool) and not is_met(watch, pool)  # a wave is left


def test_the_shortest_description_is_watched_not_the_least_error():
  rng = np.random.default_rng(1)
  x = rng.uniform(0.5, 4, (60, 1))
  y = 2 * x[:, 0] + 0.1 * rng.normal(size=60)
  watch, pool = watch_of(y, x, ["2*x0"])
  is_met(watch, pool)
  long = "2*x0 + 0.001*sin(3.1*x0) + 0.001*sin(4.7*x0) + 0.002*cos(7.7*x0)"
  pool.insert([Candidate(parser.parse(long, ("x0",)), pool.best.mse * 0.95)])
  assert is_met(watch, pool)


def test_who_asked_for_more_is_given_it():
  config = DEFAULT.noise
  assert "thorough" not in config.efforts
  with pytest.raises(ValueError, match="efforts"):
    dataclasses.replace(config, efforts=("slow",))
