"""Columns and targets that are above 0 in no row are searched with the opposite sign; formulas come back as given."""

import dataclasses

import numpy as np
import pytest

from symformer_jax import conclusion, inference, testing
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.task import make_task, turn
from symformer_jax.language import expression, parser, programs
from symformer_jax.language.rules import Restrictions

NAMES = ("depth", "x", "warmth")


@pytest.fixture
def x(rng):
  return rng.uniform(1, 4, (60, 3)) * [-1, 1, -1]


def parse(text):
  return parser.parse(text, NAMES)


def test_columns_that_are_never_above_zero_are_turned_and_come_back(x):
  x[0, 0], x[0, 2] = 0.0, 1e-9
  given = make_task((x, x[:, 1]), NAMES, SearchOptions())
  turned = turn(given)
  assert turned.turned == (0,) and turned.as_given().turned == ()
  for some in (turned.rows, turned.fit_rows):
    np.testing.assert_array_equal(some.x, x * [-1, 1, 1])
  np.testing.assert_array_equal(turned.as_given().rows.x, x)
  np.testing.assert_array_equal(turned.as_given().fit_rows.x, x)
  x[:, 0] = 0.0
  assert turn(given := make_task((x, x[:, 1]), NAMES, SearchOptions())) is given and given.as_given() is given


@pytest.mark.parametrize("columns", [[1], [0, 1]])
def test_a_target_that_is_never_above_zero_is_turned_and_comes_back(columns, x):
  y = -x[:, 1]
  y[0] = 0.0
  names = [NAMES[column] for column in columns]
  given = make_task((x[:, columns], y), names, SearchOptions())
  turned, negative = turn(given), (0,) if 0 in columns else ()
  assert turned.is_opposite and turned.turned == negative and turned.variance == given.variance
  back = turned.as_given()
  assert not back.is_opposite and back.turned == ()
  for some, ours in ((turned.rows, back.rows), (turned.fit_rows, back.fit_rows)):
    np.testing.assert_array_equal(some.y, -y)
    np.testing.assert_array_equal(ours.y, y)
    np.testing.assert_array_equal(ours.x, x[:, columns])
  node = parser.parse("2.5*x - 1", names)
  assert turned.text(node) == "1 - 2.5*x"
  np.testing.assert_allclose(expression.evaluate(turned.restore(node), back.rows.x),
                             -expression.evaluate(node, turned.rows.x))
  y[1] = 1e-9
  assert not turn(make_task((x[:, columns], y), names, SearchOptions())).is_opposite


def test_excluded_columns_stay(x):
  options = SearchOptions(restrictions=Restrictions(excluded=("depth",)))
  assert turn(make_task((x, x[:, 1]), NAMES, options)).turned == (2,)


@pytest.mark.parametrize(("found", "text"), [
  ("3*depth**2 + x", "3*depth**2 + x"), ("2*depth**3", "-2*depth**3"), ("depth**1.37*x", "(-depth)**1.37*x"),
  ("exp(0.5*depth) - warmth", "exp(-0.5*depth) + warmth"), ("x/depth", "-x/depth"), ("log(depth)", "log(-depth)"),
  ("(depth + 1)**2", "(1 - depth)**2"), ("4*x", "4*x")])
def test_formulas_come_back_in_the_users_columns(found, text, x):
  task = turn(make_task((x, x[:, 1]), NAMES, SearchOptions()))
  back = task.restore(parse(found))
  np.testing.assert_allclose(expression.evaluate(back, x), expression.evaluate(parse(found), task.rows.x), rtol=1e-12)
  assert expression.complexity(back) <= expression.complexity(parse(text)) + 1
  np.testing.assert_allclose(expression.evaluate(parse(task.text(parse(found))), x), expression.evaluate(back, x))


def cheap(**options):
  config = dataclasses.replace(DEFAULT, sources=("closed_forms", "guesses", "curves", "product_units"))
  return {"config": config, **options}


@pytest.mark.parametrize(("law", "num_columns"), [
  pytest.param(lambda x: 3.1 * (-x[:, 0]) ** 1.37 + 2 * x[:, 0], 1, marks=pytest.mark.slow),
  (lambda x: 3 * np.sqrt(-x[:, 0]) * x[:, 1] ** 1.5 - 2, 2)])
def test_a_power_of_a_depth_is_found(law, num_columns, x):
  x, told = x[:, :num_columns], []
  [result] = inference.search(
    testing.FixedProposer(["x0"]), [(x, law(x))], names=[NAMES[:num_columns]], callback=told.append, **cheap())
  assert result.best.r2 > 1 - 1e-12 and "(-depth)" in result.best.expression.replace("sqrt(-depth)", "(-depth)")
  np.testing.assert_allclose(expression.evaluate(result.best.node, x), law(x), rtol=1e-4)
  assert result.seen.ranges["depth"] == (x[:, 0].min(), x[:, 0].max())
  # So does all that is told on the way.
  best = parser.parse(told[-1].best, NAMES)
  np.testing.assert_allclose(expression.evaluate(best, x), law(x), rtol=1e-3)
  for step in told[-1].front:
    assert np.all(np.isfinite(expression.evaluate(parser.parse(step.expression, NAMES), x)))


def test_functions_of_a_negative_target_are_found(x):
  x, told = x[:, 1:2], []
  y = -4 * 3 ** x[:, 0] * x[:, 0] ** -x[:, 0]
  config = dataclasses.replace(DEFAULT, sources=("closed_forms", "exact_fractions"))
  [result] = inference.search(
    testing.FixedProposer(["x0"]), [(x, y)], names=[("x",)], callback=told.append, config=config)
  np.testing.assert_allclose(expression.evaluate(result.best.node, x), y, rtol=1e-6)
  np.testing.assert_allclose(expression.evaluate(parser.parse(told[-1].best, ("x",)), x), y, rtol=1e-6)


@pytest.mark.parametrize(("options", "is_turned"), [
  ({}, True), ({"restrictions": Restrictions(excluded=("x",))}, True), ({"guesses": ("depth",)}, False),
  ({"restrictions": Restrictions(max_depth=9)}, False), ({"recombine": False}, False), ({"refine": "none"}, False)])
def test_rules_and_guesses_are_for_the_columns_as_they_are(options, is_turned, x):
  _, [task] = inference._pose((x, -x[:, 1]), NAMES, SearchOptions(**options), target="y")
  assert bool(task.turned) is task.is_opposite is is_turned


def test_a_formula_that_becomes_too_long_for_a_program_is_left_out(x):
  task = turn(make_task((x, x[:, 1]), NAMES, SearchOptions()))
  terms = [parse("exp(sin(depth + x))")] * 10
  long = expression.chain("+", terms)
  assert programs.size(long) <= programs.MAX_TOKENS < programs.size(task.restore(long))

  class Search:
    def __init__(self):
      self.task, self.pool = task, self

    def shortlist(self, most):
      assert most == 7
      return [type("Candidate", (), {"node": node}) for node in (long, parse("x"))]

  assert conclusion._shortlist(Search(), 7) == [parse("x")]
