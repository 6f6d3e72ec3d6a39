"""Curves: functions of a power of one column, times another power, are told from a grid; a fit finds their numbers."""

import itertools

import jax
import numpy as np
import pytest

from symformer_jax.engine import refine
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, CurvesConfig
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Pool
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser
from symformer_jax.language.expression import variable
from symformer_jax.language.rules import Restrictions, Rule
from symformer_jax.sources.curves import curves
from symformer_jax.sources.curves.curves import CURVES, Grid

CONFIG = DEFAULT.curves
OPTIONS = SearchOptions()
SMALL = CurvesConfig(exponents=(1.0, -1.0, 0.5), amplitudes=(1.0,), factors=(0.5, 4.0, 3), num_phases=4)


def task_of(text, x, options=OPTIONS, names=("x",)):
  return make_task((x, expression.evaluate(parser.parse(text, names), x)), names, options)


def ask(task, config=DEFAULT):
  source = curves.Curves(config)
  question = Question(task, Pool(task.variance, len(task.fit_rows), DEFAULT.pool), source.init(task, jax.random.key(0)))
  return source.propose([question], turn=0, num=source.turns[0], clock=Clock())[0].nodes


def least(task, nodes):
  return min(mse for _, mse in refine.fit_constants([(task, nodes)], method="lm", max_steps=40)[0]) / task.variance


@pytest.fixture
def x(rng):
  return rng.uniform(0.2, 4, (100, 1))


@pytest.mark.parametrize("text", [
  "sin(0.128/sqrt(x))", "2*x**3*log(1 + 2.7/x)", "2.3/(1 + 0.4*x**1.7) + 0.6", "4.1*exp(-0.7*x**2.2) + 1.3*x",
  "5/sqrt(1 + 0.3*x**2.5) - x", "1/(1.5 + cos(2*x**1.5))", "2*arccos(0.05*x**2) + 0.3*x",
  *(pytest.param(text, marks=pytest.mark.slow) for text in (  # the same functions of other powers
    "cos(0.9*x**1.5)", "x*sin(2.1/x) + 0.3", "x**3/(exp(0.83*x) - 1)", "1.3*arcsin(0.21*x) + 0.2",
    "x**2/(exp(0.7*x**1.5) + 1)"))])
def test_laws_are_found(text, x):
  task = task_of(text, x)
  assert least(task, ask(task)) < 1e-18


def test_a_column_that_passes_zero_has_whole_positive_powers(rng):
  task = task_of("cos(0.8*x**3) + x", rng.uniform(-2, 2, (100, 1)))
  nodes = ask(task)
  assert least(task, nodes) < 1e-18
  powers = [part.args[1].value for node in nodes for part in expression.walk(node) if part.token == "pow"]
  assert powers and all(power > 0 and power.is_integer() for power in powers if power != -1)


def test_units_do_not_matter(x):
  small = make_task((1e-6 * x, 1e6 * np.cos(0.9 * x[:, 0] ** 1.5)), ("x",), OPTIONS)
  assert least(small, ask(small)) < 1e-18


def test_it_is_asked_of_one_column_that_varies(x, rng):
  two = np.hstack([rng.uniform(1, 2, (100, 1)), x])
  constant = np.hstack([np.ones((100, 1)), x])
  source = curves.Curves(DEFAULT)
  assert not source.supports(task_of("a*x", two, names=("a", "x")))
  task = task_of("a*cos(0.9*x**1.5)", constant, names=("a", "x"))
  assert source.supports(task) and least(task, ask(task)) < 1e-18
  assert not source.supports(task_of("x", x, SearchOptions(restrictions=Restrictions(operators=("*", "exp", "sin")))))


def test_no_curve_has_an_operator_that_is_forbidden(x):
  options = SearchOptions(restrictions=Restrictions(operators=("+", "*", "pow", "/", "exp", "sin")))
  task = task_of("sin(2/x)*x", x, options)
  nodes = ask(task)
  assert least(task, nodes) < 1e-18
  used = {part.token for node in nodes for part in expression.walk(node)}
  assert used & {"exp", "ln", "atan", "tan", "sin", "cos"} == {"exp", "sin"}


@pytest.mark.parametrize("name", CURVES)
def test_a_curve_is_its_formula(name):
  z = np.linspace(0.1, 0.9 if name == "asin" else 1.4, 9)
  built = CURVES[name].build(variable(0))
  np.testing.assert_allclose(CURVES[name].of(z), expression.evaluate(built, z[:, None]), rtol=1e-12)
  assert set(CURVES[name].tokens) == {part.token for part in expression.walk(built) if part.args} - {"+"}


@pytest.mark.parametrize("beside", [False, True])
def test_what_is_left_is_that_of_least_squares(x, rng, beside):
  rows = Rows(x, np.exp(-x[:, 0]) + 0.1 * rng.normal(size=100), rng.uniform(0.5, 2, 100))
  grid = Grid(rows, 0, ("exp", "sin"), SMALL)
  root = np.sqrt(rows.weights / rows.weights.sum())
  found = grid._left(rows, root, (x[:, 0],) if beside else ())
  y = rows.y / np.max(np.abs(rows.y))

  def left(*columns):
    design = root[:, None] * np.column_stack([np.ones(100), *columns, *([x[:, 0]] if beside else [])])
    return np.sum((root * y - design @ np.linalg.lstsq(design, root * y, rcond=None)[0]) ** 2)

  assert len(found) == len(grid._columns) > 40
  for i in np.flatnonzero(np.isfinite(found))[::5]:
    assert found[i] == pytest.approx(left(grid._columns[i]), rel=1e-2)  # single precision


def test_plainer_curves_come_first_and_few_of_a_kind_differ_in_their_exponents(x):
  rows = Rows(x, np.cos(3 / x[:, 0]) + x[:, 0], np.ones(100))
  places = Grid(rows, 0, ("exp", "sin"), SMALL).nearest(rows)
  tiers = [place.has_line + bool(place.amplitude) for place in places]
  assert tiers == sorted(tiers) and set(tiers) == {0, 1, 2}
  kinds = [(place.name, place.amplitude, place.has_line, place.exponent) for place in places]
  assert len(set(kinds)) == len(kinds)
  for tier, most in enumerate(SMALL.num_alike):
    alike = [kind[:3] for kind, at in zip(kinds, tiers, strict=True) if at == tier]
    assert max(map(alike.count, alike)) == min(most, 2) + 1  # of two whole exponents and another one


def test_factors_outside_are_those_of_least_squares(x):
  y = 3 * np.sqrt(x[:, 0]) * np.cos(2 / x[:, 0]) - 0.7 * x[:, 0] + 5
  rows = Rows(x, y, np.ones(100))
  grid = Grid(rows, 0, ("cos",), CONFIG)
  node = grid.write(curves.Place("cos", -1.0, 2.0, 0.5, True), rows)
  np.testing.assert_allclose(expression.evaluate(node, x), y, rtol=1e-9)


@pytest.mark.parametrize(
  "column", [np.zeros(20), np.full(20, -3.0), np.linspace(-1e300, 1e300, 20), 1e-300 * np.arange(20)])
@np.errstate(all="ignore")
def test_odd_columns_have_few_curves_or_none(column):
  rows = Rows(column[:, None], np.arange(20.0), np.ones(20))
  for node in curves.curves_of(rows, 0, Rule(1), CONFIG):
    assert np.all(np.isfinite([part.value for part in expression.walk(node) if part.is_number]))


@pytest.mark.parametrize("has_line", [False, True])
def test_curves_are_looked_at_with_those_half_a_step_away(has_line):
  """Against least squares of the curve and of its next ones in factor and exponent, made here by their definition."""
  rng = np.random.default_rng(4)
  x = rng.uniform(0.2, 5, (60, 1))
  y = np.log(1 + 1.9 * x[:, 0] ** 0.6) / x[:, 0] ** 0.4 + 0.1 * x[:, 0]
  rows = Rows(x, y, rng.uniform(0.5, 2, 60))
  grid = curves.Grid(rows, 0, ("ln", "cos"), DEFAULT.curves)
  places = [curves.Place("ln", 0.5, 1.7, -0.5, has_line), curves.Place("cos", 1.0, 2.0, 0.0, has_line)]
  left, root = grid.around(places, rows), np.sqrt(rows.weights / rows.weights.sum())
  lowest, highest, num = DEFAULT.curves.factors
  for place, found in zip(places, left, strict=True):
    options = []
    for side, other in itertools.product((1, -1), repeat=2):
      moved = (place.factor * (highest / lowest) ** (side / 2 / (num - 1)) if place.name == "ln" else
               place.factor + side * np.pi / 8 / np.max(x))
      step = other * DEFAULT.curves.half_exponent
      same = np.median(x) ** -step
      arguments = (place.factor * x**place.exponent, moved * x**place.exponent,
                   same * place.factor * x ** (place.exponent + step))
      function = np.log1p if place.name == "ln" else np.cos
      design = np.column_stack([np.ones(60), *([x] if has_line else []), *(
        x**place.amplitude * function(argument) for argument in arguments)])
      solved = np.linalg.lstsq(root[:, None] * design, root * y, rcond=None)[0]
      options.append(np.sum((root * (y - design @ solved) / np.max(np.abs(y))) ** 2))
    assert found == pytest.approx(min(options), rel=1e-4, abs=1e-18)
  assert left[0] < 1e-3 * left[1]


@pytest.mark.parametrize("seed", range(3))
def test_under_noise_plain_curves_stay_among_those_that_are_fitted(seed):
  """What has most directions always leaves least: the right plain one was the 379th of 672."""
  rng = np.random.default_rng(seed)
  x = rng.uniform(0.1, 9, (100, 1))
  y = 2 * np.log(1 + 1.3 * x[:, 0])
  rows = Rows(x, y + 0.05 * np.std(y) * rng.normal(size=100), np.ones(100))
  found = list(itertools.islice(curves.curves_of(rows, 0, Rule(1), DEFAULT.curves), 60))
  plain = [node for node in found if node.token == "+" and {part.token for part in expression.walk(node)} == {
    "+", "*", "ln", "number", "variable"}]
  assert plain
