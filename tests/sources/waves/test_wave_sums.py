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


def sums_of(text, x, noise=0.0, rule=None, **changes):
  y = expression.evaluate(parser.parse(text, tuple(NAMES[: x.shape[1]])), x)
  y = y + noise * np.std(y) * np.random.default_rng(5).normal(size=len(y))
  rows = Rows(x, y, np.ones(len(y)))
  config = dataclasses.replace(CONFIG, **changes)
  return wave_sums.waves_of_sums(rows, range(x.shape[1]), rule or Rule(x.shape[1]), config), y


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


def test_noise_gives_nothing_nor_do_few_rows(rng):
  x = rng.uniform(-4, 4, (250, 2))
  for y in (rng.normal(size=250), np.ones(250)):
    assert wave_sums.waves_of_sums(Rows(x, y, np.ones(250)), range(2), Rule(2), CONFIG) == []
  assert sums_of("cos(y - x/y)", x[:39])[0] == [] and sums_of("cos(y - x/y)", x[:39], min_rows=39)[0]
  assert sums_of("cos(y - x/y)", x, max_columns=1)[0] == []


def test_where_there_is_no_pair_there_is_no_wave(rng):
  assert sums_of("cos(y - x/y)", rng.uniform(-4, 4, (250, 2)), max_pairs=0)[0] == []
  mostly_one = np.where(np.arange(250) < 10, rng.uniform(1, 2, 250), 0.0)[:, None]
  assert sums_of("cos(3*x) + x", mostly_one)[0] == []
  level = Rows(np.ones((250, 1)), rng.normal(size=250), np.ones(250))
  assert wave_sums.waves_of_sums(level, [0], Rule(1), CONFIG) == []


def test_of_some_columns_none_else_is_used(rng):
  x = rng.uniform(-4, 4, (250, 3))
  y = np.cos(x[:, 1] - x[:, 2] / x[:, 1])
  for columns, is_met in (([1, 2], True), ([0, 1], False)):
    nodes = wave_sums.waves_of_sums(Rows(x, y, np.ones(250)), columns, Rule(3), CONFIG)
    assert all(expression.columns_of(node) <= set(columns) for node in nodes)
    assert any(left(node, x, y) < 1e-3 for node in nodes) is is_met


@pytest.mark.parametrize("unit", [1e-21, 1e19, 1e100])
def test_units_of_columns_and_of_y_do_not_matter(unit, rng):
  x = rng.uniform(1, 4, (250, 3)) * [1, 1, unit]
  y = 5 + x[:, 2] / unit * np.cos(1.3 * x[:, 0] ** 2 + 0.7 * x[:, 1])
  for size in (1.0, unit):
    nodes = wave_sums.waves_of_sums(Rows(x, size * y, np.ones(250)), range(3), Rule(3), CONFIG)
    assert left(nodes[0], x, size * y) < 1e-3


def test_formulas_have_the_operators_that_are_allowed(rng):
  x = rng.uniform(0.5, 4, (250, 2))
  rule = Restrictions(forbidden=("cos", "exp", "log")).for_columns(("x", "y"))
  nodes, y = sums_of("sin(3*y + x**2)", x, rule=rule)
  assert left(nodes[0], x, y) < 1e-3 and all(map(rule, nodes))
  neither = Restrictions(forbidden=("cos", "sin")).for_columns(("x", "y"))
  assert sums_of("sin(3*y + x**2)", x, rule=neither)[0] == []


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
  best, *_ = wave_sums.waves_of_sums(rows, range(2), Rule(2), CONFIG)
  assert left(best, x[~wrong], y[~wrong]) < 1e-3


def test_frequencies_are_fewer_where_there_are_more_pairs():
  assert wave_sums._num_frequencies(1, CONFIG) == CONFIG.num_frequencies[0]
  assert wave_sums._num_frequencies(10**9, CONFIG) == CONFIG.num_frequencies[-1]
  work = int(CONFIG.max_work / (2 * (CONFIG.num_frequencies[1] + len(CONFIG.simple)) ** 2))
  assert wave_sums._num_frequencies(work, CONFIG) == CONFIG.num_frequencies[1]


def test_all_frequencies_of_all_pairs_are_counted(rng):
  x = rng.uniform(1, 4, (60, 2))
  inner = wave_sums._inner(x, (0, 1), Rule(2), CONFIG)
  amplitudes = wave_sums._amplitudes(x, (0, 1), np.ones(60), Rule(2), CONFIG)
  target = rng.normal(size=60)
  waves, num_tried = wave_sums._on_grid(target / np.linalg.norm(target), inner, amplitudes, [(0, 1), (0, 2)], CONFIG)
  assert len(amplitudes) == 5 and len(waves) == 10
  assert num_tried == 2 * 5 * 2 * (CONFIG.num_frequencies[0] + len(CONFIG.simple)) ** 2  # of both signs of the second


def test_functions_are_what_is_finite_and_varies():
  x = np.column_stack([np.linspace(-1, 1, 41), np.linspace(1, 2, 41), np.full(41, 3.0)])
  found = {str(each.node) for each in wave_sums._inner(x, (0, 1, 2), Rule(3), CONFIG)}
  there, missing = ({str(parser.parse(text, ("x", "y", "z"))) for text in texts}
                    for texts in (("x", "log(y)", "x*y"), ("log(x)", "1/x", "z", "sqrt(x)")))
  assert there <= found and not missing & found


def test_what_waves_explain_is_what_least_squares_explain(rng):
  x = rng.normal(size=(2, 50))
  root, amplitude = np.sqrt(rng.uniform(0.5, 2, 50)), rng.normal(size=50)
  target = root * rng.normal(size=50)
  target -= root * (root @ target) / (root @ root)
  target /= np.linalg.norm(target)
  weighted = root * amplitude / np.linalg.norm(root * amplitude)
  found = wave_sums._explained(np.array([[[0.7, -1.1], [0.0, 0.0]]]), x[:, None], weighted[None], target, root)
  phase = 0.7 * x[0] - 1.1 * x[1]
  design = np.stack([weighted * np.cos(phase), weighted * np.sin(phase), root], axis=1)
  rest = target - design @ np.linalg.lstsq(design, target)[0]
  assert found[0, 0] == pytest.approx(1 - rest @ rest)
  alone = np.stack([weighted, root], axis=1)  # without a phase there is no sine
  rest = target - alone @ np.linalg.lstsq(alone, target)[0]
  assert found[0, 1] == pytest.approx(1 - rest @ rest)


def test_where_the_cosine_is_level_the_sine_explains():
  signs = np.where(np.arange(50) % 2, 1.0, -1.0)
  ones = np.ones(50) / np.sqrt(50)
  found = wave_sums._explained(np.array([[[0.3, 0.4]]]), np.stack([signs, signs])[:, None], ones[None],
                               signs / np.sqrt(50), np.ones(50))
  assert found[0, 0] == pytest.approx(1)
