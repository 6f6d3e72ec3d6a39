"""Products of powers: the right ones of a grid are told, alone, beside columns, two of them, under a function."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest

from symformer_jax.engine import refine
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Pool
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser
from symformer_jax.sources import power_products
from symformer_jax.sources.links import LINKS

CONFIG = DEFAULT.power_products
OPTIONS = SearchOptions()
NAMES = "xyzwv"


def points(num_columns, *, num_rows=200, low=0.5, high=3.0):
  return np.random.default_rng(3).uniform(low, high, (num_rows, num_columns))


def task_of(text, x, options=OPTIONS):
  names = list(NAMES[: x.shape[1]])
  return make_task((x, expression.evaluate(parser.parse(text, names), x)), names, options)


def ask(task, config=DEFAULT):
  source = power_products.PowerProducts(config)
  question = Question(task, Pool(task.variance, len(task.fit_rows), DEFAULT.pool), source.init(task, jax.random.key(0)))
  return source.propose([question], turn=0, num=source.turns[0], clock=Clock())[0].nodes


def least(task, nodes):
  return min(mse for _, mse in refine.fit_constants([(task, nodes)], method="lm", max_steps=20)[0]) / task.variance


@pytest.mark.parametrize(("text", "num_columns"), [
  ("29.5*v**4*x*w/(y**2*z**2)", 5), ("19.3*y*z/sqrt(x) - 30", 3), ("exp(-0.01*y**4*z**2/x**2)", 3),
  ("1/(0.5 + 0.2*y**2/(x*z) + 1/w)", 4), ("sqrt(2*x**3/y + 7*z)", 3), ("0.3*x*y/z + 2*x - y + 0.4*z + 5", 3),
  ("4e15*x**1.5/(y*z**3)", 3), ("log(3*x*y**2 + 0.1)", 3), ("arctan(0.02*x**3*y*z)", 3)])
def test_laws_are_found(text, num_columns):
  task = task_of(text, points(num_columns))
  assert least(task, ask(task)) < 1e-20


def test_columns_that_pass_zero_have_whole_positive_powers():
  task = task_of("2*x**3*y**2*z - 4", points(3, low=-2))
  assert least(task, ask(task)) < 1e-20
  grid = power_products.Grid(task.fit_rows, (0, 1, 2), CONFIG, CONFIG.max_products)
  assert all(float(e).is_integer() for exponents in grid.exponents for e in exponents)
  zero = power_products.Grid(Rows(np.array([[0.0], [1], [2]]), np.arange(3.0), np.ones(3)), (0,), CONFIG, 100)
  assert zero.exponents == [[0, 1, 2, 0.5, 3, 4, 1.5]]


def test_the_grid_is_coarser_where_there_are_more_columns():
  sizes = []
  for num in (2, 4, 6, 11):
    x = points(num)
    exponents = power_products.Grid(Rows(x, x[:, 0], np.ones(len(x))), tuple(range(num)), CONFIG,
                                       CONFIG.max_products).exponents
    assert len(exponents) == num and np.prod([len(each) for each in exponents]) <= CONFIG.max_products
    sizes.append(len(exponents[0]))
  assert sizes == sorted(sizes, reverse=True) and sizes[0] == 13


def test_what_one_product_leaves_is_that_of_least_squares(rng):
  """All products of a small grid, each fitted by NumPy."""
  x = points(2, num_rows=60)
  rows = Rows(x, rng.normal(size=60), rng.uniform(0.5, 2, 60))
  config = dataclasses.replace(CONFIG, exponents=((1, 2, -1),), num_looked_at=16)
  found = power_products.Grid(rows, (0, 1), config, 16).sums([LINKS["y"]], [()])[0]
  root = np.sqrt(rows.weights)
  mean = np.average(rows.y, weights=rows.weights)
  expected = []
  for p, q in itertools.product((0, 1, 2, -1), repeat=2):
    design = np.column_stack([x[:, 0] ** p * x[:, 1] ** q, np.ones(60)])
    factors = np.linalg.lstsq(root[:, None] * design, root * rows.y)[0]
    expected.append(rows.weights @ (rows.y - design @ factors) ** 2 / (rows.weights @ (rows.y - mean) ** 2))
  np.testing.assert_allclose([each.left for each in found], sorted(expected)[:-1], rtol=1e-9)


def test_two_products_are_looked_for_where_one_is_not_exact(monkeypatch):
  asked = []
  real = power_products.Grid.pairs
  monkeypatch.setattr(power_products.Grid, "pairs", lambda self, links: asked.append(1) or real(self, links))
  ask(task_of("2*x*y", points(2)))
  assert not asked
  task = task_of("2*x**3/y + 0.7*y**2/x", points(2))
  assert least(task, ask(task)) < 1e-20 and asked


def test_rules_are_kept():
  options = dataclasses.replace(OPTIONS, restrictions=dataclasses.replace(OPTIONS.restrictions, max_exponent=2))
  task = task_of("2*x**3/y + 0.7*y**2/x", points(2), options)
  assert all(task.rule(node) for node in ask(task))
  logistic = dataclasses.replace(
    OPTIONS, restrictions=dataclasses.replace(OPTIONS.restrictions, operators=("+", "*", "/", "exp")))
  task = task_of("1/(exp(0.4*x*y - 2) + 1)", points(2), logistic)
  assert least(task, ask(task)) < 1e-20
  few = dataclasses.replace(OPTIONS, restrictions=dataclasses.replace(OPTIONS.restrictions, operators=("+", "*")))
  nodes = ask(task_of("2*x*y + 3", points(2), few))
  assert nodes and {part.token for node in nodes for part in expression.walk(node) if part.args} <= {"+", "*"}


def test_one_column_is_not_its_business_and_columns_that_do_not_vary_are_left_out():
  x = points(3)
  source = power_products.PowerProducts()
  assert not source.supports(task_of("2*x**2", x[:, :1]))
  for num, is_supported in ((11, True), (12, False)):
    assert source.supports(make_task((points(num), np.arange(200.0)), None, OPTIONS)) == is_supported
  x[:, 1] = 2.0
  task = task_of("2*x*z + 1", x)
  assert least(task, ask(task)[:1]) < 1e-20


@pytest.mark.parametrize("x", [np.zeros((50, 2)), np.full((50, 2), 1e-59), np.full((50, 3), 3.0)])
def test_no_column_that_varies_raises_nothing(x):
  x = x.copy()
  x[0, 0] *= 1.0
  task = make_task((x, np.arange(50.0)), None, OPTIONS)
  assert ask(task) == ()


@pytest.mark.parametrize("text", [
  "0.08*a**2*b**2*x*w*u/(y**3*z*v)", "1.6e-3*x**2*z*w*v*u/(y**3*a) - 5.2", "arctan(0.3*x**1.5*y*z*w/(v*u*a*b))"])
def test_exponents_between_those_of_a_coarse_grid_are_climbed_to(text):
  names = ["x", "y", "z", "w", "v", "u", "a", "b"]
  x = np.random.default_rng(5).uniform(1, 3, (400, 8))
  task = make_task((x, expression.evaluate(parser.parse(text, names), x)), names, OPTIONS)
  config = dataclasses.replace(DEFAULT, power_products=dataclasses.replace(CONFIG, max_products=20_000))
  assert least(task, ask(task, config)) < 1e-20


def test_columns_of_any_size_raise_nothing():
  x = points(4) * np.array([1e-50, 1e50, 1.0, 1e30])
  task = task_of("x*y*z", x)
  assert least(task, ask(task)) < 1e-15
