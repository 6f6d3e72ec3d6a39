"""The mean, straight lines and those of logarithms, against least squares and an exhaustive search over columns."""

import dataclasses
import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser
from symformer_jax.language.rules import Restrictions
from symformer_jax.sources import closed_forms

CONFIG = DEFAULT.closed_forms


def squares(node, rows):
  return np.sum(rows.weights * (expression.evaluate(node, rows.x) - rows.y) ** 2)


def columns_in(node):
  return {part.value for part in expression.walk(node) if part.token == expression.VARIABLE}


def by_hand(rows, columns):
  design = np.column_stack([rows.x[:, list(columns)], np.ones(len(rows.y))])
  root = np.sqrt(rows.weights)
  solution = np.linalg.lstsq(root[:, None] * design, root * rows.y, rcond=None)[0]
  return np.sum(rows.weights * (design @ solution - rows.y) ** 2)


@pytest.fixture
def rows(rng):
  x = rng.normal(size=(80, 5)) * [1, 1e6, 1e-6, 3, 1]
  y = 2 * x[:, 0] - 4e-6 * x[:, 1] + 0.5 * rng.normal(size=80)
  return Rows(x, y, rng.uniform(0.5, 2, 80))


def test_lines_are_those_of_least_squares_and_of_the_least_criterion(rows):
  mean, line, sparse = closed_forms.fit(rows, range(5))
  assert mean.value == pytest.approx(np.average(rows.y, weights=rows.weights))
  assert squares(line, rows) == pytest.approx(by_hand(rows, range(5)), rel=1e-9)
  assert squares(sparse, rows) == pytest.approx(by_hand(rows, columns_in(sparse)), rel=1e-9)
  subsets = [some for size in range(6) for some in itertools.combinations(range(5), size)]
  least = min(subsets, key=lambda some: 80 * np.log(by_hand(rows, some)) + len(some) * np.log(80))
  assert columns_in(sparse) == set(least) >= {0, 1}


def test_only_the_columns_asked_for(rows):
  assert [columns_in(node) for node in closed_forms.fit(rows, (0, 3))] == [set(), {0, 3}, {0}]


@pytest.mark.parametrize("y, expected", [
  (lambda x: 3 * x[:, 0] + 1, [set(), {0}]),  # exact: what is left is rounding
  (lambda x: 3 * x[:, 0] - x[:, 1], [set(), {0, 1}])])
def test_an_exact_line_needs_its_columns_alone(y, expected, rng):
  x = rng.uniform(1, 2, (30, 2))
  assert [columns_in(node) for node in closed_forms.fit(Rows(x, y(x), np.ones(30)), (0, 1))] == expected


def test_terms_that_are_rounding_are_left_out(rng):
  x = rng.normal(size=(20, 2))
  lines = closed_forms.fit(Rows(x, x[:, 0], np.ones(20)), (0, 1))[1:]
  assert lines == [expression.variable(0)]
  even = np.linspace(-8, 8, 33)[:, None]
  assert len(closed_forms.fit(Rows(even, np.abs(even[:, 0]) ** 1.5, np.ones(33)), (0,))) == 1  # of no slope: the mean


def test_small_terms_that_are_no_rounding_stay(rng):
  x = rng.uniform(1, 2, (40, 2))
  line = closed_forms.fit(Rows(x, 1e5 * x[:, 0] + 1e-5 * x[:, 1] + 1e-4, np.ones(40)), (0, 1))[1]
  assert columns_in(line) == {0, 1} and line.args[1].token == "+"


def test_fewer_rows_than_columns_equal_columns_and_empty_ones(rng):
  x = rng.normal(size=(4, 6))
  x[:, 2], x[:, 5] = 2 * x[:, 1], 0
  rows = Rows(x, x[:, 1] + rng.normal(size=4), np.ones(4))
  nodes = closed_forms.fit(rows, range(6))
  assert all(np.isfinite(expression.evaluate(node, x)).all() for node in nodes)
  assert all(5 not in columns_in(node) for node in nodes) and squares(nodes[1], rows) < 1e-20
  nothing = Rows(np.zeros((4, 1)), rows.y, rows.weights)
  assert len(closed_forms.fit(nothing, (0,))) == 1


def test_columns_that_never_change_stand_in_a_line_only_where_they_are_required(rng):
  x = np.column_stack([rng.normal(size=20), np.full(20, 7.0)])
  rows = Rows(x, 13 * x[:, 0] + rng.normal(size=20), np.ones(20))
  assert [columns_in(node) for node in closed_forms.fit(rows, (0, 1))] == [set(), {0}]
  assert len(closed_forms.fit(rows, (1,))) == 1
  assert columns_in(closed_forms.fit(rows, (0, 1), required={1})[1]) == {0, 1}


# --- straight lines of logarithms ------------------------------------------------------------------------------------


def logs_of(text, x, noise=0.0, columns=None):
  y = expression.evaluate(parser.parse(text, ("x", "y", "z")[: x.shape[1]]), x)
  y = y + noise * np.std(y) * np.random.default_rng(3).normal(size=len(y))
  return closed_forms.log_linear(Rows(x, y, np.ones(len(y))), columns or range(x.shape[1]), CONFIG), y


def nearest(nodes, x, y):
  return min(float(np.mean((expression.evaluate(node, x) - y) ** 2) / np.var(y)) for node in nodes)


@pytest.mark.parametrize("text", [
  "0.007*x**0.425*y**0.725", "-3*x**2/y", "2*exp(0.3*x - y)", "5*x**1.5*exp(-2*y)", "7*sqrt(y)", "exp(x)",
  "4*y**2*exp(-3/x)"])
def test_products_of_powers_and_exponentials_are_met_exactly(text, rng):
  x = rng.uniform(0.5, 4, (60, 2))
  nodes, y = logs_of(text, x)
  assert nearest(nodes, x, y) < 1e-20


def test_under_noise_the_exponents_are_near(rng):
  x = rng.uniform(0.5, 4, (200, 2))
  law = "0.007*x**0.425*y**0.725"
  nodes, _ = logs_of(law, x, noise=0.01)
  assert nearest(nodes, x, expression.evaluate(parser.parse(law, ("x", "y")), x)) < 1e-4


def test_columns_that_say_nothing_are_left_out(rng):
  x = rng.uniform(0.5, 4, (200, 3))
  nodes, _ = logs_of("3*x**1.5", x, noise=0.05)
  used = [expression.columns_of(node) for node in nodes]
  assert {0} in used and {0, 1, 2} in used  # and the product of all is offered as well


def test_there_are_rows_enough_for_each_term(rng):
  x = rng.uniform(0.5, 4, (18, 2))
  text = "5*x**1.5*exp(-2*y)"  # six terms
  few, y = logs_of(text, x[:17])
  assert nearest(few, x[:17], y) > 1e-6
  nodes, y = logs_of(text, x)
  assert nearest(nodes, x, y) < 1e-20
  assert logs_of("3*x/y", x[:5])[0] == [] and logs_of("3*x/y", x[:6])[0]


def test_large_values_count_for_what_they_are(rng):
  """Errors are of y: beside one of a hundred, those of a hundredth say nothing of an exponent."""
  x = np.linspace(0.01, 10, 200)[:, None]
  y = 2 * x[:, 0] ** 1.5 + 0.02 * rng.normal(size=200) ** 2
  node, *_ = closed_forms.log_linear(Rows(x, y, np.ones(200)), [0], CONFIG)
  assert nearest([node], x, 2 * x[:, 0] ** 1.5) < 1e-5


def test_columns_not_above_0_have_no_powers(rng):
  x = np.column_stack([rng.uniform(-1, 1, 60), rng.uniform(1, 2, 60)])
  nodes, y = logs_of("4*exp(0.5*x)*y**3", x)
  assert nearest(nodes, x, y) < 1e-20
  powers = [part for node in nodes for part in expression.walk(node) if part.token.startswith("pow")]
  assert powers and all(part.args[0].value == 1 for part in powers)


def test_a_target_of_two_signs_or_none_has_no_logarithm(rng):
  x = rng.uniform(1, 2, (30, 2))
  for y in (x[:, 0] - 1.5, np.where(np.arange(30) == 4, 0.0, x[:, 0]), np.full(30, 2.0)):
    assert closed_forms.log_linear(Rows(x, y, np.ones(30)), (0, 1), CONFIG) == []
  assert closed_forms.log_linear(Rows(np.ones((30, 1)), x[:, 0], np.ones(30)), (0,), CONFIG) == []


@pytest.mark.parametrize("sign", [1, -1])
def test_errors_of_the_other_sign_take_no_logarithm_away(sign, rng):
  """Of a first row as well; the rows that are nearest to 0 say next to nothing of an exponent."""
  x = np.column_stack([rng.uniform(0.1, 3, 150), rng.uniform(0.5, 2, 150)])
  law = sign * 2 * x[:, 0] ** 3 / x[:, 1]
  y = law + 0.01 * np.sqrt(np.mean(law**2)) * rng.normal(size=150)
  first = np.argmin(sign * y)
  x, law, y = (np.roll(each, -first, axis=0) for each in (x, law, y))
  assert sign * y[0] < 0
  nodes = closed_forms.log_linear(Rows(x, y, np.ones(150)), (0, 1), CONFIG)
  assert nearest(nodes[:1], x, law) < 1e-4


@pytest.mark.parametrize("rate", [0.5, -0.5, 0.03])
def test_exponentials_of_years_are_in_range(rate):
  x = np.linspace(2000, 2020, 40)[:, None]
  y = np.exp(rate * (x[:, 0] - 2010))
  nodes = closed_forms.log_linear(Rows(x, y, np.ones(40)), (0,), CONFIG)
  assert nearest(nodes, x, y) < 1e-15
  with np.errstate(all="ignore"):
    assert all(np.isfinite(expression.evaluate(node, x)).all() for node in nodes)


def test_columns_of_all_sizes_cost_no_line():
  x = np.array([1e-310, *range(1, 30)])[:, None]
  for least in (1e-310, 1e-200):
    x[0] = least
    y = 2 * x[:, 0] + 1
    question = SimpleNamespace(task=make_task((x, y), None, SearchOptions()))
    proposal, = closed_forms.ClosedForms().propose([question], turn=0, num=1, clock=Clock())
    assert min(candidate.mse for candidate in proposal.candidates) < 1e-20


def test_they_can_be_left_out(rng):
  x = rng.uniform(1, 2, (40, 2))
  options = SearchOptions()
  question = SimpleNamespace(task=make_task((x, x[:, 0] ** 1.5 / x[:, 1]), None, options))
  for has_logarithms, has_waves in ((True, False), (False, True), (True, True), (False, False)):
    config = dataclasses.replace(DEFAULT, closed_forms=dataclasses.replace(
      CONFIG, has_logarithms=has_logarithms, has_exponentials=False, has_sigmoids=False, has_waves=has_waves))
    proposal, = closed_forms.ClosedForms(config).propose([question], turn=0, num=1, clock=Clock())
    are_waves = [any(part.token == "cos" for part in expression.walk(node)) for node in proposal.nodes]
    assert (False in are_waves) is has_logarithms and (True in are_waves) is has_waves
    assert len(proposal.candidates) >= 2
    exponentials = dataclasses.replace(config, closed_forms=dataclasses.replace(
      config.closed_forms, has_exponentials=True))
    more, = closed_forms.ClosedForms(exponentials).propose([question], turn=0, num=1, clock=Clock())
    assert len(more.nodes) > len(proposal.nodes)
    curves = dataclasses.replace(config, closed_forms=dataclasses.replace(config.closed_forms, has_sigmoids=True))
    more, = closed_forms.ClosedForms(curves).propose([question], turn=0, num=1, clock=Clock())
    assert len(more.nodes) > len(proposal.nodes)


def test_no_waves_where_none_may_be_written(rng):
  x = rng.uniform(1, 2, (40, 1))
  options = SearchOptions(restrictions=Restrictions(forbidden=("cos", "sin")))
  question = SimpleNamespace(task=make_task((x, np.cos(20 * x[:, 0])), None, options))
  assert not closed_forms.ClosedForms().propose([question], turn=0, num=1, clock=Clock())[0].nodes
