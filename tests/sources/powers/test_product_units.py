"""Sums of products of powers with free exponents: what is met, under noise, with signs and zeros; what is written."""

import dataclasses

import jax
import numpy as np
import pytest

from symformer_jax.engine import interruption, refine
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, ProductUnitsConfig
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Pool
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser
from symformer_jax.language.rules import Restrictions
from symformer_jax.sources.powers import product_forms, product_units
from symformer_jax.sources.powers.product_fits import FUNCTIONS, Fits, Layout, Starts, Table
from symformer_jax.sources.powers.product_rounding import Rounding
from symformer_jax.sources.powers.product_units import ProductUnits

OPTIONS, CONFIG = SearchOptions(), DEFAULT.product_units
NAMES = "xyzwvut"
SUMS, OF_FUNCTIONS_OF_Y, FUNCTION, INSIDE, ALONE_IN_FUNCTIONS, FUNCTION_IN_FUNCTIONS = range(6)


def points(num_columns, *, num_rows=200, low=0.5, high=3.0, seed=3):
  return np.random.default_rng(seed).uniform(low, high, (num_rows, num_columns))


def task_of(text, x, *, noise=0.0, options=OPTIONS):
  names = list(NAMES[: x.shape[1]])
  y = expression.evaluate(parser.parse(text, names), x)
  y = y + noise * np.sqrt(np.mean(y**2)) * np.random.default_rng(0).normal(size=len(y))
  return make_task((x, y), names, options)


def ask(task, turn, **changes):
  source = ProductUnits(dataclasses.replace(DEFAULT, product_units=dataclasses.replace(CONFIG, **changes)))
  question = Question(task, Pool(task.variance, len(task.fit_rows), DEFAULT.pool), source.init(task, jax.random.key(0)))
  return source.propose([question], turn=turn, num=source.turns[turn], clock=Clock())[0].nodes


def least(task, nodes):
  """What the best of some formulas leaves of y's variance once its constants are fitted."""
  return min(mse for _, mse in refine.fit_constants([(task, nodes)], method="lm", max_steps=20)[0]) / task.variance


@pytest.mark.parametrize(("text", "num_columns"), [
  pytest.param("0.58*y*z/sqrt(u*w) - 1.1*u**2*z**2*x**2/(v*y) - 1.85", 6, marks=pytest.mark.slow),
  ("0.32*w**1.5 - 0.008*v**2*y**3*x**1.5*sqrt(w)/z - 0.12*y*v**2*x/z", 5),
  ("2*x*y + 3*z**2/w - 0.7*u/v + 0.3", 6)])
def test_sums_of_products(text, num_columns):
  task = task_of(text, points(num_columns))
  assert least(task, ask(task, SUMS)) < 1e-25


@pytest.mark.parametrize("text", [
  "1/(0.2*y*x**1.5/z + 0.4*y*z**1.5/sqrt(x) + 1)", "exp(0.6*x/z**2*sqrt(y) - 0.2*z*y**1.5)", "sqrt(2*x**3/y + 7*z*y)",
  "(0.3*x*y/z + 2*z**1.5)**2", "log(0.5*x/y + 0.07*z**2*y**1.5)"])
def test_sums_for_functions_of_y(text):
  task = task_of(text, points(3))
  assert least(task, ask(task, OF_FUNCTIONS_OF_Y)) < 1e-20


@pytest.mark.parametrize(("text", "turn"), [
  ("2.9*x/z*(1 - exp(-0.8*y*w/x)) + 3.5", FUNCTION), ("7.8*z**1.5*w/y**2*cos(0.7*y*w*x)", FUNCTION),
  ("0.3*w*y/x*log(1 + 0.3*x*z)", FUNCTION), ("0.07*z*w*y**2/(1 + 2.4/(y*x))", FUNCTION),
  ("1.4*z**2*x - 6.6*exp(-0.37*z**1.5*w*y)", FUNCTION), ("0.7*x*z + 2*y/sqrt(1 + 0.3*w**2/x)", FUNCTION),
  ("0.4*x*w*y*arctan(0.5*x*w/z**2)", FUNCTION), ("5.6*x/(y**2*z*w) + 0.34*sqrt(1 + 0.12*y*z**3/x)", FUNCTION),
  ("3*x*w**2/(exp(0.4*x*y/z) - 1)", FUNCTION), ("2*x*(exp(y*z/w) - 1)/(exp(y*z/w) + 1)", FUNCTION),
  ("1.3*x/(z**2*(1 + 2.5/y + 0.4*z*w))", INSIDE), ("3.4/y*sqrt(1 + y*w/(z*x) + y*z/x**2)", INSIDE),
  ("0.35*y**2/((1 + 8/y**2 + 0.5*x*y**1.5/sqrt(z))*sqrt(x))", INSIDE), ("2 + 0.9*log(1.2*y*sqrt(w) + 3*x/z)", INSIDE),
  ("2.1*x/(1 + 0.7*y*z)**1.37 + 0.6", INSIDE), ("3.4*y/z*(0.5*x + w**1.5)**2.3", INSIDE),
  ("(x**2/w - 0.03*y*z)**0.77", INSIDE), ("(1/log(9*y*sqrt(w) + 30*x/z))**2", ALONE_IN_FUNCTIONS),
  ("1/(3 + exp(0.6*x*y - 0.4*z/w))", ALONE_IN_FUNCTIONS), ("sqrt(3 + 2*cos(0.4*x*y + 0.7*z))", ALONE_IN_FUNCTIONS),
  ("sqrt(2*x*w*(exp(0.7*y/z) - 1)/(exp(0.7*y/z) + 1))", FUNCTION_IN_FUNCTIONS)])
def test_products_with_functions(text, turn):
  task = task_of(text, points(4))
  assert least(task, ask(task, turn)) < 1e-20


def test_an_inverse_of_a_sum_with_an_exponential():
  """Half of the tables have starts that end at the law; which do depends on the processor's sums."""
  tasks = (task_of("1/(x*w + y*exp(-z/x))", points(4, seed=seed)) for seed in range(3, 13))
  assert any(nodes and least(task, nodes) < 1e-20 for task in tasks for nodes in [ask(task, FUNCTION_IN_FUNCTIONS)])


def test_an_exponential_in_an_exponential():
  """Whether the fit comes to its end depends on the processor's sums; near it comes on all."""
  task = task_of("exp(x*z*(exp(-0.5*y*w) - 1))", points(4))
  assert least(task, ask(task, FUNCTION_IN_FUNCTIONS)) < 1e-9


def test_as_many_columns_as_a_search_has():
  x = points(12, num_rows=300)
  y = 1.7 * x[:, 1] ** 1.5 * x[:, 4] / (x[:, 7] * x[:, 10] ** 2) - 0.4 * x[:, 0] * x[:, 11] - 3
  task = make_task((x, y), [f"x{i}" for i in range(12)], OPTIONS)
  assert ProductUnits().supports(task)
  assert least(task, ask(task, SUMS)) < 1e-25


def test_under_noise_exponents_are_plain():
  truth = "0.5*x**2*y/z - 1.3*z*w**1.5"
  task = task_of(truth, points(4, num_rows=300), noise=0.01)
  first, *_ = ask(task, SUMS)
  powers = {n.value for n in expression.walk(first) if n.is_number}
  clean = expression.evaluate(parser.parse(truth, list("xyzw")), task.fit_rows.x)
  assert np.mean((expression.evaluate(first, task.fit_rows.x) - clean) ** 2) < 1e-4 * clean.var()
  assert sum(n.token == "pow" for n in expression.walk(first)) == 1 and 1.5 in powers


def test_columns_of_both_signs_have_whole_exponents():
  task = task_of("1.5*x**2*y - 0.7*z**3*x*w + 2", points(4, low=-2.0, high=2.5, num_rows=300))
  nodes = ask(task, SUMS)
  assert least(task, nodes) < 1e-25
  assert all(np.isfinite(expression.evaluate(node, task.fit_rows.x)).all() for node in nodes)


def test_of_tables_with_zeros_the_rows_or_the_column_are_left_out():
  x = points(3)
  x[:5, 0] = 0
  assert least(task_of("2*x**2*y + 3*z/y", x), ask(task_of("2*x**2*y + 3*z/y", x), SUMS)) < 1e-25
  x[:, 0] = np.arange(200) % 2  # of a column of ones and zeros products say nothing
  task = task_of("2*y**1.5 + 3*z/y", x)
  nodes = ask(task, SUMS)
  assert least(task, nodes) < 1e-25
  assert all(expression.columns_of(node) <= {1, 2} for node in nodes)


def test_nothing_is_made_of_what_says_nothing():
  rows = Rows(np.tile(np.arange(20.0) % 2, (2, 1)).T, np.arange(20.0), np.ones(20))
  assert product_units._Units.of(rows, (0, 1), [product_units.LINKS["y"]], CONFIG) is None
  few = task_of("x*y + z", points(3, num_rows=11))  # two rows for each of six exponents are not there
  assert not ask(few, SUMS)
  assert ask(few, SUMS, rows_per_exponent=1.0)


def test_rules_and_columns_decide_whether_it_takes_part():
  source = ProductUnits()
  assert source.supports(task_of("x*y", points(2)))
  assert not source.supports(make_task((points(1), points(1)[:, 0]), ["x"], OPTIONS))
  of_many = dataclasses.replace(DEFAULT, product_units=dataclasses.replace(CONFIG, max_columns=3))
  assert not ProductUnits(of_many).supports(task_of("x*y + w", points(4)))
  no_sums = SearchOptions(restrictions=Restrictions(operators=("*", "inv", "sqrt")))
  assert not source.supports(task_of("x*y", points(2), options=no_sums))
  allowed = ("+", "*", "inv", "pow2")
  plain = SearchOptions(restrictions=Restrictions(operators=allowed))
  task = task_of("0.5*x**2/(1 + 0.3*y*z) + 1", points(3), options=plain, noise=0.01)
  nodes = ask(task, FUNCTION)  # though others come as near
  assert {n.token for node in nodes for n in expression.walk(node)} <= {*allowed, "number", "variable"}
  clean = expression.evaluate(parser.parse("0.5*x**2/(1 + 0.3*y*z) + 1", list("xyz")), task.fit_rows.x)
  assert min(np.mean((expression.evaluate(node, task.fit_rows.x) - clean) ** 2) for node in nodes) < 1e-3 * clean.var()
  low = SearchOptions(restrictions=Restrictions(max_exponent=2.0))
  task = task_of("2*x**2*y + 3*z/y", points(3), options=low)
  assert least(task, ask(task, SUMS)) < 1e-25


def test_starts_are_defined_and_their_signs_go_with_y():
  x = points(3, low=-2.0, high=2.5, num_rows=400)
  rows = Rows(x, x[:, 0] * x[:, 2] ** 2 + 0.2 * x[:, 1] ** 3 * x[:, 2], np.ones(400))
  units = product_units._Units.of(rows, range(3), [product_units.LINKS["y"]], CONFIG)
  shape = product_units.SHAPES["inside"]
  starts = units._starts(np.random.default_rng(0), 0, shape, "sqrt")
  assert starts.is_used.all() and starts.is_free.all()  # the only unit, outside and inside
  [(_, inner)] = shape.layout.places(3)
  below = sum(
    np.exp(starts.parameters[:, place][:, :3] @ units.table.logs.T + starts.parameters[:, [place.stop - 1]])
    * (starts.sign[:, [i + 1]] < 0) for i, place in enumerate(inner))
  assert below.max() <= 1 + 1e-9 and below.max() > 0.1
  outer = starts.parity[:, 0]
  shares = {tuple(map(int, each)): np.mean((outer == each).all(axis=1)) for each in np.unique(outer, axis=0)}
  assert shares[1, 0, 0] > 0.4 and shares[1, 0, 0] + shares.get((0, 1, 1), 0) > 0.75


def test_the_nearest_of_each_kind_go_on():
  left = np.array([[5.0, 1, 4, 0, 3, 9], [1.0, 2, 3, 4, 5, 6]])
  assert sorted(product_units._least(left, 2)) == [1, 2, 3, 4, 6, 7, 8, 9]
  assert list(product_units._least(left, 1)) == [4, 3, 6, 7]


def test_rows_with_most_of_the_variance_are_chosen():
  y = np.zeros(1000)
  y[[3, 77]] = (9.0, -8.0)
  chosen = product_units._chosen(y, CONFIG)
  assert {3, 77} <= set(chosen) and len(chosen) == len(set(chosen)) == CONFIG.num_largest + CONFIG.num_others
  assert list(product_units._chosen(y[:50], CONFIG)) == list(range(50))


def rounding_of(power, *, noise=0.0, parity=0.0, low=0.5):
  x = points(1, low=low)
  y = np.sign(x[:, 0]) ** parity * np.abs(x[:, 0]) ** power + noise * np.random.default_rng(1).normal(size=200)
  logs = np.log(np.abs(x))
  deviation = logs.std(axis=0)
  root = np.full(200, 200**-0.5)
  table = Table((logs - logs.mean(axis=0)) / deviation, (x < 0).astype(float), (root * y)[None], root[None])
  layout, one = Layout((0,)), np.ones((1, 1))
  starts = Starts(power * deviation[None], np.ones((1, 1), bool), np.zeros(1, int), np.zeros(1, int), one, one,
                  np.full((1, 1, 1), parity))
  fits = product_units.product_fits.fit(table, starts, layout, num_steps=20)
  is_whole = np.array([low < 0])
  rounding = Rounding(table, starts, fits, layout, deviation, is_whole, CONFIG.multiples, CONFIG)
  return float(rounding.run().parameters[0, 0] / deviation[0])


@pytest.mark.parametrize("power", [1.5, -2.0, 1 / 3, 1.37, -4 / 3])
def test_exponents_become_plain_where_that_costs_nothing(power):
  assert rounding_of(power) == pytest.approx(power, abs=1e-4)


def test_exponents_become_plain_under_noise_and_by_the_sign():
  assert rounding_of(1.49, noise=0.1) == pytest.approx(1.5, abs=1e-6)
  assert rounding_of(1.4, noise=0.001) == pytest.approx(1.4, abs=0.01)
  assert rounding_of(3.0, parity=1.0, low=-2.0) == pytest.approx(3.0, abs=1e-6)


def test_sums_leave_out_terms_that_do_not_count():
  x = points(2)
  terms = [parser.parse(text, ["x", "y"]) for text in ("x", "y", "x*y")]
  z = 2 * x[:, 0] + 3
  short = product_forms.fitted_sum(terms, x, z, np.ones(200), most_growth=6.0, exact=1e-11)
  assert expression.complexity(short) == 5 and expression.columns_of(short) == {0}
  np.testing.assert_allclose(expression.evaluate(short, x), z)
  all_count = product_forms.fitted_sum(
    terms, x, z + 1e-3 * x[:, 1] - 1e-3 * x[:, 0] * x[:, 1], np.ones(200), most_growth=6.0, exact=1e-11)
  assert expression.columns_of(all_count) == {0, 1}
  undefined = parser.parse("sqrt(-x)", ["x"])
  with np.errstate(all="ignore"):
    assert product_forms.fitted_sum([undefined], x, z, np.ones(200), most_growth=6.0, exact=0.0) is None


def test_a_sine_and_a_cosine_are_one_wave():
  x = points(1)
  terms = [parser.parse(text, ["x"]) for text in ("x*sin(2*x)", "x*cos(2*x)")]
  z = x[:, 0] * (3 * np.sin(2 * x[:, 0]) + 4 * np.cos(2 * x[:, 0]))
  first = product_forms.fitted_sum(terms, x, z, np.ones(200), most_growth=6.0, exact=1e-11)
  np.testing.assert_allclose(expression.evaluate(first, x), z, atol=1e-12)
  assert [n.token for n in expression.walk(first)].count("cos") == 1
  assert "sin" not in [n.token for n in expression.walk(first)]


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_functions_are_written_as_they_are_fitted(name):
  """But for a factor and a constant, which the columns have besides."""
  n = np.linspace(0.1, 0.9, 30)
  values = expression.evaluate(product_forms.WRITTEN[name](expression.variable(0)), n[:, None])
  exponent = np.full(30, 0.7)
  design = np.column_stack([values, np.ones(30)])
  fitted = np.asarray(FUNCTIONS[name](n, exponent), float)
  rest = fitted - design @ np.linalg.lstsq(design, fitted, rcond=None)[0]
  assert np.abs(rest).max() < 1e-5


def test_products_are_in_the_units_of_the_columns():
  x = points(2)
  logs = np.log(x)
  columns = product_forms.Columns((0, 1), x, logs.mean(axis=0), logs.std(axis=0), largest=6.0)
  layout = Layout((1,))
  parameters = np.array([[2 * logs.std(axis=0)[0], 0, 0, -logs.std(axis=0)[1], np.log(0.3) - logs.mean(axis=0)[1]]])
  fits = Fits(parameters, np.zeros(1), np.zeros((1, 5, 5)))
  starts = Starts(parameters, np.ones((1, 5), bool), np.zeros(1, int), np.array([list(FUNCTIONS).index("exp")]),
                  np.ones((1, 1)), np.array([[1.0, -1.0]]), np.zeros((1, 2, 2)))
  product, function = columns.terms(starts, fits, 0, layout)
  np.testing.assert_allclose(expression.evaluate(product, x), x[:, 0] ** 2)
  np.testing.assert_allclose(expression.evaluate(function, x), x[:, 0] ** 2 * np.exp(-0.3 / x[:, 1]), rtol=1e-6)
  negative = product_forms.Columns((0, 1), x - 1, logs.mean(axis=0), logs.std(axis=0), largest=6.0)
  parameters[0, 0] = 1.5 * logs.std(axis=0)[0]
  assert not negative.terms(starts, fits, 0, layout)
  assert columns.terms(starts, fits, 0, layout)
  parameters[0, 0] = 6.5 * logs.std(axis=0)[0]  # too large
  assert not columns.terms(starts, fits, 0, layout)


def test_an_offset_of_y_does_not_count():
  task = task_of("1e6 + 2*x*exp(-0.7*y*z)", points(3))
  assert least(task, ask(task, FUNCTION)) < 1e-16


def test_columns_below_zero_stand_inside_functions():
  """Four tables in ten have starts that end at the law; which do depends on the processor's sums."""
  def left(seed):
    x = points(2, seed=seed) * [1, -1]
    y = 3 / (1 - 0.7 * x[:, 0] * x[:, 1]) + 2
    units = product_units._Units.of(Rows(x, y, np.ones(200)), range(2), [product_units.LINKS["y"]], CONFIG)
    return min((np.mean((expression.evaluate(node, x) - y) ** 2) / y.var()
                for node in units.formulas([product_units.SHAPES["both"]], ("inv",))), default=1.0)
  assert any(left(seed) < 1e-10 for seed in range(4, 20))


@pytest.mark.parametrize("signs", [(1, 1), (1, -1), (-1, -1), (1, 0), (-1, 0), (0, 0)])
def test_products_in_functions_start_where_these_are_defined(signs):
  """Of columns above 0, below it (-1) and of both signs (0): no sum of products begins at -1 or below it."""
  draw = np.random.default_rng(1)
  x = points(2) * np.column_stack([np.full(200, sign) if sign else draw.choice([-1, 1], 200) for sign in signs])
  units = product_units._Units.of(Rows(x, x[:, 0] * x[:, 1] + x[:, 0], np.ones(200)), range(2),
                                  [product_units.LINKS["y"]], CONFIG)
  shape = product_units.SHAPES["both"]
  starts = units._starts(np.random.default_rng(0), 0, shape, "inv")
  at = 0
  for (_, inner), num_inner in zip(shape.layout.places(2), shape.layout.num_inner, strict=True):
    total = np.zeros((len(starts.sign), len(units.table.logs)))
    for k, place in enumerate(inner, at + 1):
      size = np.exp(starts.parameters[:, place] @ np.column_stack([units.table.logs, np.ones(len(total.T))]).T)
      total += starts.sign[:, [k]] * (1 - 2 * (starts.parity[:, k] @ units.table.negative.T % 2)) * size
    assert np.all(total > -1) and (not inner or (np.any(total > 0) and np.any(total < 0)))
    at += 1 + num_inner


def test_a_column_that_says_nothing_in_the_chosen_rows_is_left_out():
  x = points(3, num_rows=400)
  y = 2 * x[:, 0] ** 2 * x[:, 1] + 3 / x[:, 1]
  x[:, 2] = 1.7
  unchosen = np.setdiff1d(np.arange(400), product_units._chosen(y, CONFIG))[:3]
  x[unchosen, 2] = 2.0
  units = product_units._Units.of(Rows(x, y, np.ones(400)), range(3), [product_units.LINKS["y"]], CONFIG)
  assert units.columns == (0, 1)


def test_searches_in_double_precision_find_the_same():
  task = task_of("2*x**2*y + 3*z/y", points(3))
  expected = ask(task, SUMS)
  with jax.enable_x64(True):
    assert ask(task, SUMS) == expected


def test_it_ends_when_the_search_does():
  task = task_of("2*x**2*y + 3*z/y", points(3))
  with pytest.raises(interruption.Interrupted), interruption.ending_when(lambda: True):
    ask(task, SUMS)


@pytest.mark.parametrize("changes", [
  {"num_formulas": 0}, {"num_survivors": 98}, {"num_starts": 0}, {"plans": ((("y",), ("both",), ("sinh",)),)},
  {"plans": ((("y",), ("beside",), ("power",)),)},
  {"plans": ((("y",), ("four",), ()),)}, {"plans": ((("log",), ("two",), ()),)}])
def test_unusable_configs_are_refused(changes):
  with pytest.raises(ValueError, match="|".join(changes)):
    ProductUnitsConfig(**changes)


def test_more_go_on_where_many_leave_as_much():
  """Under noise the law's function is anywhere among those that are alike."""
  config = dataclasses.replace(DEFAULT.product_units, num_kept=2, num_alike=4, alike=2.0)
  units = product_units._Units(*[None] * 7, config)
  assert units._going_on([3, 1, 0, 2], np.array([8.0, 3.0, 9.0, 1.0])) == [3, 1]
  assert units._going_on([3, 1, 0, 2], np.array([1.9, 1.5, 2.1, 1.0])) == [3, 1, 0]
  assert units._going_on([4, 3, 2, 1, 0], np.array([1.4, 1.3, 1.2, 1.1, 1.0])) == [4, 3, 2, 1]
