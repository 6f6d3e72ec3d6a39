"""Waves of sums of two functions of the columns, against the formulas that made the data."""

import dataclasses

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression, parser
from symformer_jax.language.rules import Restrictions, Rule
from symformer_jax.sources.waves import wave_sums

CONFIG = DEFAULT.phases.sums
NAMES = "xyzwv"


def sums_of(text, x, noise=0.0, rule=None, weights=None, **changes):
  y = expression.evaluate(parser.parse(text, tuple(NAMES[: x.shape[1]])), x)
  y = y + noise * np.std(y) * np.random.default_rng(5).normal(size=len(y))
  rows = Rows(x, y, np.ones(len(y)) if weights is None else weights)
  config = dataclasses.replace(CONFIG, **changes)
  return list(wave_sums.waves_of_sums(rows, range(x.shape[1]), rule or Rule(x.shape[1]), config)), y


def left(node, x, y):
  return float(np.mean((expression.evaluate(node, x) - y) ** 2) / np.var(y))


@pytest.mark.parametrize("text", [
  "cos(y - x/y)", "3*sin(4*y + 1/x**2)", "x*cos(x**3 - 1/y + 0.5)", "2 - cos(1.3*x*y + 0.7*exp(y))/y",
  "sin(x**2 - 5*x)"])
def test_the_nearest_is_the_law_though_it_has_a_pole(text, rng):
  x = rng.uniform(-4, 4, (250, 2))
  nodes, y = sums_of(text, x)
  assert left(nodes[0], x, y) < 1e-3
  assert [left(node, x, y) for node in nodes] == sorted(left(node, x, y) for node in nodes)


def test_columns_above_0_have_logarithms_and_roots(rng):
  x = rng.uniform(0.2, 4, (250, 3))
  for text in ("sin(4*y + 1/log(x))", "z*cos(5*sqrt(x) + 2*log(y))"):
    nodes, y = sums_of(text, x)
    assert left(nodes[0], x, y) < 1e-3


def test_it_is_found_under_noise(rng):
  x = rng.uniform(-4, 4, (250, 2))
  nodes, y = sums_of("x*cos(x**3 - 1/y + 0.5)", x, noise=0.2)
  law = expression.evaluate(parser.parse("x*cos(x**3 - 1/y + 0.5)", ("x", "y")), x)
  assert left(nodes[0], x, law) < 0.01


def test_noise_and_plain_sums_give_nothing(rng):
  x = rng.uniform(-4, 4, (250, 2))
  rows = Rows(x, rng.normal(size=250), np.ones(250))
  assert list(wave_sums.waves_of_sums(rows, range(2), Rule(2), CONFIG)) == []
  assert list(wave_sums.waves_of_sums(Rows(x, np.ones(250), np.ones(250)), range(2), Rule(2), CONFIG)) == []
  few = sums_of("cos(y - x/y)", x[:39])[0]
  assert few == [] and sums_of("cos(y - x/y)", x[:39], min_rows=39)[0]


def test_waves_that_are_not_allowed_are_not_looked_for(rng):
  x = rng.uniform(-4, 4, (250, 2))
  rule = Restrictions(forbidden=("cos",)).for_columns(("x", "y"))
  assert sums_of("cos(y - x/y)", x, rule=rule)[0] == []


def test_simple_frequencies_are_tried_beside_those_of_the_grid(rng):
  x = rng.uniform(-5, 5, (250, 2))
  text = "cos(x**3 - 1/y)"  # the cube goes through 80 radians on eight tenths of the rows, the grid through 60
  nodes, y = sums_of(text, x)
  assert left(nodes[0], x, y) < 1e-3
  nodes, y = sums_of(text, x, simple=(40.0,))
  assert all(left(node, x, y) > 0.1 for node in nodes)


def test_rows_count_by_their_weights(rng):
  x = rng.uniform(-4, 4, (250, 2))
  text = "1 + cos(y - 2*x)"
  y = expression.evaluate(parser.parse(text, ("x", "y")), x)
  wrong = np.arange(250) < 60
  rows = Rows(x, np.where(wrong, 50 * rng.normal(size=250), y), np.where(wrong, 1e-9, 1.0))
  best = next(wave_sums.waves_of_sums(rows, range(2), Rule(2), CONFIG))
  assert left(best, x[~wrong], y[~wrong]) < 1e-3


def test_frequencies_are_fewer_where_there_are_more_pairs():
  assert wave_sums._num_frequencies(1, CONFIG) == CONFIG.num_frequencies[0]
  assert wave_sums._num_frequencies(10**9, CONFIG) == CONFIG.num_frequencies[-1]
  work = int(CONFIG.max_work / (2 * CONFIG.num_frequencies[1] ** 2))
  assert wave_sums._num_frequencies(work, CONFIG) == CONFIG.num_frequencies[1]


def test_functions_are_what_is_finite_and_varies():
  x = np.column_stack([np.linspace(-1, 1, 41), np.linspace(1, 2, 41), np.full(41, 3.0)])
  found = {str(each.node) for each in wave_sums._inner(x, (0, 1, 2), CONFIG)}
  there, missing = ({str(parser.parse(text, ("x", "y", "z"))) for text in texts}
                    for texts in (("x", "log(y)", "x*y"), ("log(x)", "1/x", "z", "sqrt(x)")))
  assert there <= found and not missing & found


def test_what_waves_explain_is_what_least_squares_explain(rng):
  x = rng.normal(size=(2, 50))
  root, amplitude = np.sqrt(rng.uniform(0.5, 2, 50)), rng.normal(size=50)
  target = root * rng.normal(size=50)
  target -= root * (root @ target) / (root @ root)
  target /= np.linalg.norm(target)
  frequencies = np.array([[[0.7, -1.1], [0.0, 0.0]]])
  found = wave_sums._explained(frequencies, x[:, None], (root * amplitude)[None], target, root)
  phase = 0.7 * x[0] - 1.1 * x[1]
  design = root[:, None] * np.stack([amplitude * np.cos(phase), amplitude * np.sin(phase), np.ones(50)], axis=1)
  rest = target - design @ np.linalg.lstsq(design, target)[0]
  assert found[0, 0] == pytest.approx(1 - rest @ rest)
  alone = root[:, None] * np.stack([amplitude, np.ones(50)], axis=1)  # without a phase there is no sine
  rest = target - alone @ np.linalg.lstsq(alone, target)[0]
  assert found[0, 1] == pytest.approx(1 - rest @ rest)
