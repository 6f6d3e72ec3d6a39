"""Functions of one product of powers: the order of the rows tells the product, and then the function is found."""

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
from symformer_jax.sources.unknowns import single_index
from symformer_jax.sources.unknowns.product_grid import Grid

OPTIONS = SearchOptions()
NAMES = "xyzw"


def task_of(text, num_columns, *, low=0.5, high=3.0, num_rows=300, noise=0.0):
  rng = np.random.default_rng(3)
  x = rng.uniform(low, high, (num_rows, num_columns))
  y = expression.evaluate(parser.parse(text, NAMES[:num_columns]), x)
  return make_task((x, y + noise * np.std(y) * rng.normal(size=num_rows)), list(NAMES[:num_columns]), OPTIONS)


def indices(task):
  with np.errstate(all="ignore"):
    return single_index.find_indices(task.fit_rows, task.columns, DEFAULT)


def powers(node, x):
  """Exponents of a product, by its logarithm at points."""
  logs = np.log(expression.evaluate(node, x))
  return np.linalg.lstsq(np.column_stack([np.log(x), np.ones(len(x))]), logs)[0][:-1]


@pytest.mark.parametrize(("text", "num_columns", "product", "divisor"), [
  ("2*cos(0.9*x*w*y**2/5)*z", 4, (1, 2, 0, 1), ((2, 1.0),)),
  ("100*exp(-0.3*x*z**2/(y*w)) - 10", 4, (1, -1, 2, -1), ()),
  ("arctan(x*y - 2) + 1/(x*y)", 3, (1, 1, 0), ()),
  ("log(x/y + 3)*sin(x/y)/z", 3, (1, -1, 0), ((2, -1.0),))])
def test_the_product_is_told_before_the_function_is_known(text, num_columns, product, divisor):
  task = task_of(text, num_columns)
  best = indices(task)[0]
  assert best.divisor == divisor and best.roughness < 0.01
  np.testing.assert_allclose(powers(best.product, task.rows.x), product, atol=1e-9)


def test_roughness_is_small_in_the_right_order_and_one_in_none(rng):
  target = np.sin(np.linspace(0, 6, 400))
  target = (target - target.mean()) / target.std()
  right, none = np.arange(400), rng.permutation(400)
  found = single_index._roughness(target, np.stack([right, right[::-1], none]))
  assert found[0] == pytest.approx(found[1]) and found[0] < 1e-3
  assert found[2] == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize(("text", "num_columns"), [
  ("2*cos(0.9*x*w*y**2/5)*z", 4), ("2*y/(exp(0.3*x**2*z) - 1)", 3),
  pytest.param("log(x/y + 3)*z - 4*z", 3, marks=pytest.mark.slow)])
def test_laws_are_found(text, num_columns):
  task = task_of(text, num_columns)
  source = single_index.SingleIndex()
  assert source.supports(task)
  question = Question(task, Pool(task.variance, 256, DEFAULT.pool), source.init(task, jax.random.key(0)))
  nodes = source.propose([question], turn=0, num=source.turns[0], clock=Clock())[0].nodes
  fitted = refine.fit_constants([(task, nodes)], method="lm", max_steps=60)[0]
  assert min(mse for _, mse in fitted) < 1e-18 * task.variance


def test_noise_and_what_is_no_function_of_one_product_give_nothing(rng):
  assert not indices(task_of("sin(3*x) + cos(4*y) + z**2", 3))
  x = rng.uniform(0.5, 3, (300, 3))
  assert not indices(make_task((x, rng.normal(size=300)), None, OPTIONS))


def test_a_product_is_told_under_noise():
  task = task_of("2*cos(0.9*x*w*y**2/5)*z", 4, noise=0.03)
  np.testing.assert_allclose(powers(indices(task)[0].product, task.rows.x), (1, 2, 0, 1), atol=1e-9)


def test_of_powers_of_one_another_the_plainest_stands_for_all():
  x = np.random.default_rng(0).uniform(0.5, 3, (80, 2))
  grid = Grid(Rows(x, x[:, 0], np.ones(80)), (0, 1), DEFAULT.single_index.exponents, num_rows=64, most=1000)
  found = [powers(grid.node(int(i)), x) for i in single_index._directions(grid)]
  assert all(np.count_nonzero(np.round(each, 9)) == 2 for each in found)
  ratios = [round(each[1] / each[0], 6) for each in found]
  assert len(set(ratios)) == len(ratios)
  assert any(np.allclose(each, (1, 1)) for each in found) and any(np.allclose(np.abs(each), (1, 2)) for each in found)


@pytest.mark.parametrize("x", [np.full((60, 2), 2.0), np.zeros((60, 3)), np.ones((60, 1))])
def test_columns_that_do_not_vary_raise_nothing(x):
  task = make_task((x, np.arange(60.0)), None, OPTIONS)
  assert indices(task) == []
