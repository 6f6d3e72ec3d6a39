"""Waves of one column beside other functions and times them are told from a grid; a fit finds their numbers."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest

from symformer_jax.engine import refine
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, OscillationsConfig
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Pool
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser
from symformer_jax.language.rules import Restrictions, Rule
from symformer_jax.sources.curves import oscillations
from symformer_jax.sources.curves.inner_functions import FAMILIES, Functions
from symformer_jax.sources.curves.oscillations import Oscillations, oscillations_of
from symformer_jax.sources.links import LINKS

CONFIG = DEFAULT.oscillations
OPTIONS = SearchOptions()
RULE = Rule(1)


def table(text, low, high, num_rows=100):
  rng = np.random.default_rng(3)
  x = rng.uniform(low, high, (num_rows, 1))
  return x, expression.evaluate(parser.parse(text, ("x",)), x)


def task_of(x, y, options=OPTIONS):
  return make_task((x, y), ["x", "z"][: x.shape[1]], options)


def ask(task, config=DEFAULT):
  source = Oscillations(config)
  question = Question(task, Pool(task.variance, len(task.fit_rows), DEFAULT.pool), source.init(task, jax.random.key(0)))
  return source.propose([question], turn=0, num=source.turns[0], clock=Clock())[0].nodes


def least(task, nodes):
  return min(mse for _, mse in refine.fit_constants([(task, nodes)], method="lm", max_steps=150)[0]) / task.variance


@pytest.mark.parametrize(("text", "low", "high"), [
  # A third of a period; a polynomial, a function or another wave beside; a factor.
  ("10*sin(0.0608*x)", 0.05, 35), ("cos(x)/3 + 0.466*(x - 1)**2", -4, 5), ("0.2*x**3 - x + 2*sin(3.1*x)", -3, 3),
  ("2*exp(-0.7*x) + sin(2.1*x)", 0, 8), ("3.1*log(x + 1.4) - cos(5*x)", 0, 9), ("sin(1.3*x) + 0.4*sin(1.7*x)", 0, 20),
  ("3*exp(-0.16*x)*cos(2.3*x + 0.4) + 1.2", 0, 12), ("sin(3*x)/x", 0.3, 9), ("sqrt(x)*cos(12*x)", 0.3, 9),
  # Of a power of the column; functions of y.
  ("2*cos(0.9*x**2) - 1", 0, 6), ("sin(14/x)*x", 0.5, 5), ("sin(9*sqrt(x)) + 0.3*x", 0, 9),
  ("-6.1*sin(x**3/9 + 0.4)", -3, 3), ("1/(2.2 + sin(3*x))", -3, 3), ("exp(sin(2*x) - x)", 0, 4),
  ("sqrt(3.1 + 2*cos(1.9*x))", -5, 5), ("(cos(1.7*x) + 1.1*x)**2", 1, 6)])
def test_waves_are_found(text, low, high):
  task = task_of(*table(text, low, high))
  nodes = ask(task)
  assert len(nodes) <= CONFIG.turns[0]
  assert least(task, nodes) < 1e-24


def sums_of(rows, config=CONFIG, exponent=1):
  functions = Functions(rows, 0, RULE, {name: FAMILIES[name] for name in config.families}, DEFAULT.two_constants)
  grid = oscillations._grid(rows, 0, exponent, RULE, config)
  return functions, grid, oscillations._Sums(grid, functions, rows.y, rows.weights)


def left(columns, rows):
  """Of the weighted square about the mean, by least squares."""
  root = np.sqrt(rows.weights / np.max(rows.weights))
  design = root[:, None] * np.column_stack([np.ones(len(rows.y)), *columns])
  scaled = design / np.linalg.norm(design, axis=0)
  return np.sum((root * rows.y - scaled @ np.linalg.lstsq(scaled, root * rows.y, rcond=None)[0]) ** 2)


@pytest.mark.parametrize("exponent", [1, 2, -1])
def test_what_is_left_is_that_of_least_squares(exponent, rng):
  x = rng.uniform(0.5, 4, (60, 1))
  rows = Rows(x, rng.normal(size=60), rng.uniform(0.2, 3, 60))
  small = dataclasses.replace(CONFIG, num_frequencies=12, families=("exponentials", "logarithms", "powers"))
  functions, grid, sums = sums_of(rows, small, exponent)
  assert grid.frequencies[0] * np.ptp(x**exponent) == pytest.approx(small.step)
  assert np.allclose(grid.cos[3], np.cos(grid.frequencies[3] * x[:, 0] ** exponent))
  waves = [(cos, sin) for cos, sin in zip(grid.cos, grid.sin, strict=True)]
  for columns in ([], [x[:, 0], x[:, 0] ** 2]):
    found = sums.left_beside(columns)
    assert found == pytest.approx([left([*columns, *pair], rows) for pair in waves], rel=1e-9)
  places = list(itertools.product(range(0, len(functions.nodes), 7), (0, 4, 11)))
  beside, products = sums.left_beside_functions(), sums.left_of_products()
  assert beside.shape == products.shape == (len(functions.nodes), 12)
  own = [functions.values(i) for i, _ in places]
  assert [beside[place] for place in places] == pytest.approx(
    [left([value, *waves[k]], rows) for value, (_, k) in zip(own, places, strict=True)], rel=1e-6)
  assert [products[place] for place in places if np.isfinite(products[place])] == pytest.approx(
    [left([value * wave for wave in waves[k]], rows) for value, (i, k) in zip(own, places, strict=True)
     if np.isfinite(products[i, k])], rel=1e-5)
  assert np.isfinite(products).mean() > 0.9 < np.isfinite(beside).mean()
  two = sums.left_of_two()
  assert np.isinf(two[np.tril_indices(12)]).all()
  assert [two[k, j] for k, j in ((0, 5), (3, 4), (2, 11))] == pytest.approx(
    [left([*waves[k], *waves[j]], rows) for k, j in ((0, 5), (3, 4), (2, 11))], rel=1e-6)


def test_cosine_and_sine_that_are_one_at_the_rows_are_no_two_waves(rng):
  x = np.pi * (np.arange(12) + 0.25)[:, None]
  rows = Rows(x, rng.normal(size=12), rng.uniform(0.5, 2, 12))
  once = dataclasses.replace(CONFIG, step=np.ptp(x), num_frequencies=1, families=("exponentials", "powers"))
  _, grid, sums = sums_of(rows, once)
  np.testing.assert_allclose(grid.cos, grid.sin)
  assert np.isinf(sums.left_of_products()).all()


def test_a_wave_is_written_with_its_lag(rng):
  rows = Rows(rng.uniform(0, 3, (40, 1)), rng.normal(size=40), np.ones(40))
  _, grid, _ = sums_of(rows)
  for factors in ((2.0, 1.0), (-0.3, 0.7), (0.0, -1.0), (-1.5, 0.0)):
    written = expression.evaluate(grid.written(5, np.array(factors)), rows.x)
    assert written == pytest.approx(factors[0] * grid.cos[5] + factors[1] * grid.sin[5], abs=1e-12)


def test_every_kind_has_its_turn_and_the_first_is_a_wave_alone():
  """What is written leaves what was said of it, in the order of the kinds."""
  x, y = table("2*sin(3*x) + 0.4*x", 0, 5, num_rows=80)
  rows = Rows(x, y, np.ones(80))
  functions, grid, sums = sums_of(rows)
  firsts = [next(iter(kind)) for kind in sums.of_each_kind(0, CONFIG)]
  powers = [sums.left_beside([x[:, 0] ** i for i in range(1, degree + 1)]) for degree in range(4)]
  wholes = [*powers[:2], sums.left_of_products(), sums.left_beside_functions(), *powers[2:], sums.left_of_two()]
  assert len(firsts) == 3 + CONFIG.max_degree + 1
  for node, whole in zip(firsts, wholes, strict=True):
    assert np.sum((expression.evaluate(node, x) - y) ** 2) == pytest.approx(np.min(whole), rel=1e-6)
  found = list(oscillations_of(rows, 0, RULE))
  assert expression.complexity(found[0]) == min(map(expression.complexity, firsts))
  assert found[0] == oscillations.tidy(firsts[0])


def test_every_second_formula_is_of_multiples_of_the_column():
  rows = Rows(*table("2 + sin(3*x)", 1, 5), np.ones(100))
  found = list(itertools.islice(oscillations_of(rows, 0, RULE), 16))
  phases = [part.args[0] for node in found for part in expression.walk(node) if part.token == "cos"]
  is_plain = ["pow" not in {p.token for p in expression.walk(phase)} and not {"inv", "pow2", "pow3", "sqrt"} & {
    p.token for p in expression.walk(phase)} for phase in phases]
  assert sum(is_plain) > len(phases) / 2 and not all(is_plain)
  assert {node.token for node in found} & {"inv", "exp", "sqrt"}  # functions of y


def test_odd_tables_make_none_or_finite_ones(rng):
  x = rng.uniform(-3, 3, (50, 1))
  assert list(oscillations_of(Rows(x, np.ones(50), np.ones(50)), 0, RULE)) == []
  with np.errstate(all="ignore"):
    for scale, size in ((1.0, 1.0), (1e30, 1e-30), (1e-30, 1e30), (1e8, 1e50), (1e300, 1.0), (1e-120, 1.0)):
      rows = Rows(scale * x, size * np.exp(np.sin(x[:, 0])), np.ones(50))
      nodes = list(oscillations_of(rows, 0, RULE))
      assert nodes and all(np.isfinite(number.value) for node in nodes for number in expression.walk(node)
                           if number.token == "number")
  for num_rows, is_asked in ((2, False), (6, False), (7, True)):
    few = Rows(x[:num_rows], np.sin(9 * x[:num_rows, 0]), np.ones(num_rows))
    assert bool(list(oscillations_of(few, 0, RULE))) is is_asked


def test_no_formula_has_an_operator_that_is_forbidden():
  x, y = table("3*exp(-0.16*x)*cos(2.3*x + 0.4) + 1.2", 0, 12)
  for operators, forbidden in (
    (("+", "*", "cos"), {"exp", "ln", "inv", "sqrt", "pow"}), (("+", "*", "/", "cos", "exp"), {"ln", "sqrt", "pow"}),
    (("+", "*", "cos", "pow", "sqrt"), {"exp", "ln", "inv"})):
    task = task_of(x, y, SearchOptions(restrictions=Restrictions(operators=operators)))
    assert ask(task)
    made = list(oscillations_of(task.fit_rows, 0, task.rule))
    assert made and not forbidden & {part.token for node in made for part in expression.walk(node)}


def test_it_is_asked_of_one_column_that_varies_and_of_rules_with_waves(rng):
  x, y = table("sin(x)", 0, 3)
  source = Oscillations()
  assert source.supports(task_of(x, y)) and source.supports(task_of(np.column_stack([x, np.full(100, 2.0)]), y))
  assert not source.supports(task_of(np.column_stack([x, rng.uniform(size=100)]), y))
  assert not source.supports(task_of(x, y, SearchOptions(restrictions=Restrictions(operators=("+", "*", "exp")))))
  assert source.turns == CONFIG.turns


def test_functions_of_y_are_those_of_the_config():
  rows = Rows(*table("exp(sin(2*x) - x)", 0, 4), np.ones(100))
  none = dataclasses.replace(DEFAULT, oscillations=dataclasses.replace(CONFIG, links=(), arguments=(1,)))
  assert {node.token for node in oscillations_of(rows, 0, RULE, none)} == {"+"}
  assert set(CONFIG.links) <= set(LINKS)


@pytest.mark.parametrize("wrong", [
  {"families": ("cubes",)}, {"links": ("cube",)}, {"arguments": ()}, {"num_rows": 0}, {"num_frequencies": 0},
  {"num_polynomials": 0}, {"num_two": 0}, {"num_alike": -1}])
def test_a_config_that_cannot_be_is_refused(wrong):
  with pytest.raises(ValueError, match=next(iter(wrong))):
    OscillationsConfig(**wrong)
