"""Curves with two and three inner constants: shapes against formulas written by hand, and laws told exactly."""

import dataclasses

import jax
import numpy as np
import pytest
from scipy import optimize

from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Pool
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser
from symformer_jax.language.expression import variable
from symformer_jax.language.rules import Restrictions, Rule
from symformer_jax.sources.curves import curve_fits, curve_shapes

CONFIG = DEFAULT.curve_fits


def table(text, low, high, num_rows=100):
  x = np.random.default_rng(1).uniform(low, high, (num_rows, 1))
  return x, expression.evaluate(parser.parse(text, ("x",)), x)


def rows_of(text, low, high, num_rows=100):
  x, y = table(text, low, high, num_rows)
  return Rows(x, y, np.ones(len(y)))


def left(node, rows):
  with np.errstate(all="ignore"):
    errors = expression.evaluate(node, rows.x) - rows.y
  return np.average(errors**2, weights=rows.weights) / np.var(rows.y)


def least(rows, rule=None, config=CONFIG):
  return min(left(node, rows) for node in curve_fits.fitted_curves(rows, 0, rule or Rule(1), config))


@pytest.mark.parametrize(("text", "low", "high"), [
  ("21 + 64*(1 + 1.7*(x/900)**2)**0.61", 100, 2600), ("90 - 71*exp(-0.041*x**4 - 0.19*x**2)", 0.01, 2.4),
  ("0.09 + 5.2*(1 + 3.1*x**2)**(-0.33)", 0.05, 18), ("1.2 + 6*(1 + 2.1*exp(-0.7*x))**(-1.4)", 0, 8),
  ("2.1*x**0.7*exp(-0.35*x) + 0.4", 0.1, 9), ("0.3*x + 2.2*(x**2 + 1.9)**(-1.3)", 0, 6),
  ("1/(0.3 + 2.4*(x + 0.7)**(-2.1))", 0, 6), ("exp(1.1 - 0.6*(x**2 + 2.2)**0.45) + 0.3", 0, 8),
  ("0.2 + 1.4*log(1 + (x/2.2)**2.7)", 0.1, 20), ("3.1*exp(-2.2*exp(-0.6*x)) + 0.7", 0, 8),
  ("2.6/(x*(1 + x/3.1)**2) + 0.2", 0.2, 10), ("4*exp(-0.25*x)*(x + 1.7)**1.6 - 3", 0, 12),
  ("1.9*x**3/(exp(0.77*x) - 1) + 0.2", 0.1, 10), ("6*((x - 2.9)**2 + 0.7)**(-1.2) + 0.3*x + 1", 0, 8),
  ("1.1 + 2*exp(-0.6*(log(x/1.7)/0.7)**2)", 0.2, 15), ("7 - 0.8*(3.4 - sqrt(x))**1.7", 0.1, 9)])
def test_laws_are_met_before_the_loop_fits_anything(text, low, high):
  assert least(rows_of(text, low, high)) < 1e-18


def test_the_first_one_is_the_law_and_each_shape_comes_once():
  rows = rows_of("90 - 71*exp(-0.041*x**4 - 0.19*x**2)", 0.01, 2.4)
  found = list(curve_fits.fitted_curves(rows, 0, Rule(1), dataclasses.replace(CONFIG, links=("y",))))
  assert left(found[0], rows) < 1e-18 or left(found[1], rows) < 1e-18  # without and with a line, in turn
  num_shapes = len(curve_shapes.shapes_of(rows.x[:, 0], 0, CONFIG))
  assert 8 <= len(found) <= 2 * min(num_shapes, CONFIG.rounds[-1][0])


def test_of_many_starts_few_of_each_shape_go_on():
  places = curve_fits._few_of_each(np.array([9, 4, 7, 1, 0]), np.array([2, 2, 5, 2, 5]), 2)
  assert places.tolist() == [9, 4, 7, 0]
  assert curve_fits._few_of_each(places, np.array([2, 2, 5, 5]), 1).tolist() == [9, 7]


def test_a_fit_is_that_of_another_solver(rng):
  """Of noisy rows, with weights, all constants at once by SciPy from the same place."""
  x = np.sort(rng.uniform(0.2, 9, 90))
  y = 0.4 + 3 * (1 + 1.5 * x**2) ** -0.6 + 0.02 * rng.normal(size=90)
  weights = rng.uniform(0.3, 2, 90)
  rows, config = Rows(x[:, None], y, weights), dataclasses.replace(CONFIG, links=("y",))
  found = min(np.average((expression.evaluate(node, rows.x) - y) ** 2, weights=weights)
              for node in curve_fits.fitted_curves(rows, 0, Rule(1), config))

  def errors(c):
    return np.sqrt(weights) * (c[0] + c[1] * (x**2 + np.exp(c[2])) ** c[3] - y)

  other = optimize.least_squares(errors, [0.4, 3, np.log(1 / 1.5), -0.6]).fun
  assert found <= np.sum(other**2) / np.sum(weights) * (1 + 1e-6)


@pytest.mark.parametrize("low", [0.3, -2.0])
def test_formulas_of_shapes_have_their_values(low, rng):
  """At all starts, but for a factor: what is fitted is what is written."""
  x = rng.uniform(low, low + 3, 40)
  shapes = curve_shapes.shapes_of(x, 1, CONFIG)
  wide = np.stack([np.full(40, np.nan), x], axis=1)
  assert len(shapes) > (30 if low > 0 else 12)
  for shape in shapes:
    with np.errstate(all="ignore"):
      values = shape.values(shape.starts)
    num_compared = 0
    for k in range(0, len(shape.starts), 3):
      with np.errstate(all="ignore"):
        written = expression.evaluate(shape.node(shape.starts[k]), wide)
      if np.all(np.isfinite(values[k])) and np.ptp(values[k]) > 0 and np.all(np.isfinite(written)):
        pair = [(each - each.mean()) / np.linalg.norm(each - each.mean()) for each in (values[k], written)]
        np.testing.assert_allclose(pair[0], pair[1], atol=1e-6)
        num_compared += 1
    assert num_compared >= 3


@pytest.mark.parametrize("rate", [40.0, -40.0, 900.0])
def test_an_exponential_that_is_out_of_range_at_the_rows_is_counted_from_the_least(rate):
  x = np.linspace(15.0, 16.0, 30)
  inner = curve_shapes._exponential(variable(0), x, CONFIG)
  with np.errstate(over="ignore"):
    values = inner.values(np.array([[rate]]))[0]
    written = expression.evaluate(inner.node(rate), x[:, None]) * inner.unit(rate)
  np.testing.assert_allclose(written, values, rtol=1e-9)


def test_rules_hold():
  rows = rows_of("21 + 64*(1 + 1.7*x**2)**0.61", 0.1, 3)
  assert least(rows) < 1e-18
  options = SearchOptions(restrictions=Restrictions(forbidden=("pow", "exp", "ln")))
  assert not list(curve_fits.fitted_curves(rows, 0, make_task((rows.x, rows.y), ["x"], options).rule, CONFIG))


@pytest.mark.parametrize("y", [np.full(40, 2.5), np.linspace(0, 1, 40), 3 - 1e6 * np.linspace(0, 1, 40)])
def test_nothing_is_found_for_what_a_line_meets(y):
  rows = Rows(np.linspace(0, 1, 40)[:, None], y, np.ones(40))
  config = dataclasses.replace(CONFIG, links=("y",))
  beside = [curve_fits._Goal(curve_fits.LINKS["y"], rows, others) for others in ((), (variable(0),))]
  assert beside[1].is_met and beside[0].is_met is bool(np.ptp(y) == 0)
  assert len(list(curve_fits.fitted_curves(rows, 0, Rule(1), config))) <= CONFIG.rounds[-1][0]


@pytest.mark.parametrize(("text", "low", "high"), [
  ("1.2 + 6*(1 + 2.1*exp(-0.7*(x - 2000)))**(-1.4)", 2000, 2009), ("2*x**1.4/(exp(0.6*x) + 1) + 0.4", 0.1, 9),
  ("3*log(1 + 0.2*exp(0.9*(x - 1900))) + 2", 1900, 1908), ("5*exp(-3*exp(-0.8*(x - 1950))) - 1", 1950, 1958)])
def test_years_and_both_signs_of_a_step(text, low, high):
  assert least(rows_of(text, low, high)) < 1e-15


def test_wide_and_tiny_columns_warn_of_nothing(rng):
  """Warnings are errors here; zeros leave shapes of plain functions."""
  y = rng.normal(size=40)
  for x in (10.0 ** rng.uniform(-30, 30, 40), np.arange(40) % 3 * 1.0, np.append(0.0, rng.uniform(0, 3, 39)),
            rng.lognormal(0, 20, 40)):
    rows = Rows(x[:, None], y, np.ones(40))
    for node in curve_fits.fitted_curves(rows, 0, Rule(1), CONFIG):
      assert node is not None


def test_as_a_source_it_is_asked_of_one_column(rng):
  x, y = table("2.1*x**0.7*exp(-0.35*x) + 0.4", 0.1, 9)
  source = curve_fits.CurveFits()
  task = make_task((x, y), ["x"], SearchOptions())
  question = Question(task, Pool(task.variance, len(x), DEFAULT.pool), source.init(task, jax.random.key(0)))
  [proposal] = source.propose([question], turn=0, num=source.turns[0], clock=Clock())
  assert 0 < len(proposal.nodes) <= 48 and min(left(node, task.fit_rows) for node in proposal.nodes) < 1e-18
  two = make_task((np.column_stack([x, rng.normal(size=100)]), y), ["x", "z"], SearchOptions())
  assert source.supports(task) and not source.supports(two)
