"""Two inner constants: sums of two functions, and powers of sums, are told from grids; a fit finds their numbers."""

import dataclasses

import jax
import numpy as np
import pytest

from symformer_jax.engine import refine
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, TwoConstantsConfig
from symformer_jax.engine.config.names import INNER_FAMILIES, INNER_SHAPES
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Pool
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser
from symformer_jax.language.expression import variable
from symformer_jax.language.rules import Restrictions, Rule
from symformer_jax.sources.curves import inner_functions, two_constants
from symformer_jax.sources.curves.inner_functions import FAMILIES, SHAPES, Functions
from symformer_jax.sources.curves.two_constants import (
  powers_beside_constants,
  powers_of_sums,
  sums_of_two,
  sums_with_shapes,
)

CONFIG = DEFAULT.two_constants
OPTIONS = SearchOptions()
RULE = Rule(1)


def table(text, low, high, *, noise=0.0):
  rng = np.random.default_rng(1)
  x = rng.uniform(low, high, (100, 1))
  y = expression.evaluate(parser.parse(text, ("x",)), x)
  return x, y + noise * np.std(y) * rng.normal(size=100)


def task_of(x, y, options=OPTIONS):
  return make_task((x, y), ["x", "y"][: x.shape[1]], options)


def ask(task, turn, config=DEFAULT):
  source = two_constants.TwoConstants(config)
  question = Question(task, Pool(task.variance, len(task.fit_rows), DEFAULT.pool), source.init(task, jax.random.key(0)))
  return source.propose([question], turn=turn, num=source.turns[turn], clock=Clock())[0].nodes


def least(task, nodes):
  return min(mse for _, mse in refine.fit_constants([(task, nodes)], method="lm", max_steps=150)[0]) / task.variance


def rows_of(x, y):
  return Rows(x, y, np.ones(len(y)))


@pytest.mark.parametrize(("text", "low", "high", "turn"), [
  ("34.6*(1 - exp(-0.0385*x))**1.42", 5, 100, 0), ("(1 + (x/3)**2.5)**(-0.4)", 0.1, 30, 0),
  ("7e4*(0.3 + 2*exp(-0.8*x))**0.63", 0, 6, 0), ("1e-3*(log(x + 0.02) + 4.4)**2.7", 0, 9, 0),
  ("(1.3 + 2.1*exp(-0.3*x**2))**(-2.2)", -2, 3, 0),
  ("18.4*(exp(-0.28*x) - exp(-1.93*x))", 0, 12, 1), ("0.124*exp(-1.13*x) + 0.0078 + 0.00024*exp(0.0934*x)", 0, 80, 1),
  ("3*x**1.7 - 2.1*x**0.4", 0.2, 9, 1), ("1.84/(log(x)**1.25 + 3*exp(-0.2*x) + 1.84)", 1.1, 90, 1),
  ("5*log(x + 0.7) - 2/(x + 1.9) + 3", 0, 9, 1), ("3.3*x**(-x) + x - 10", 0, 5, 1),
  ("exp(2.1*exp(-4*x) - 0.3*x**1.6)", 0.1, 5, 1),
  ("2.2*(-log(x))**(-0.55)", 0.05, 0.95, 0), ("13.5*(-log(1 - x))**0.59", 0.05, 0.95, 0),
  ("exp(-(-log(x))**0.65)", 0.02, 0.98, 1), ("1/(0.24*exp(11/x) + 8.8*exp(-18/x))", 2, 40, 1),
  ("5.2*x**0.4*log(x)**(-1.3)", 1.5, 80, 1), ("91*x**0.12*(-log(x))**(-0.55)", 0.005, 0.8, 1),
  ("143.6 - 31.7*log(-log(1 - 1/x))", 1.3, 200, 1), ("2.1 + 0.7*log(-log(1 - x)) + 3*x", 0.02, 0.97, 1),
  ("6.7e-5*(647.1 - x)**1.256*(x + 388.3)", 275, 640, 1),  # the last row is a fiftieth of the range from the end
  ("0.067 + 0.383*(1 + (0.2*x)**1.41)**(-0.291)", 0.1, 150, 2), ("1.3 + 31*(1 - exp(-0.041*x))**1.6", 1, 120, 2),
  ("12 - 3.1*(x + 1.9)**0.37", 0, 30, 2), ("4.7*(1 - exp(-1.9*x + 1.4))**2 - 4.7", 0.8, 4, 2),
  ("1.4e9*exp(-5417.8/(x + 273.15)) - 5.6", 5, 45, 2), ("12 - 9.5*exp(-0.31*x**1.7)", 0.1, 4, 2),
  ("40 - 35*exp(-3*exp(-0.6*x))", 0, 9, 2),
  ("3.3/(1 + exp((4 - x)/0.8)) - 2.1/(1 + exp((11 - x)/1.4))", 0, 18, 3),
  ("1.1 + 0.23*x + 4.1*exp(-(x - 5.2)**2/2.9)", 0, 12, 3), ("0.6*x**0.5 + 3.3/(1 + ((x - 6.1)/1.3)**2)", 0, 14, 3),
  ("0.8 + 5.3*exp(-log(x/4.2)**2/0.9) + 0.3*log(x)", 0.3, 30, 3), ("0.5 + 3.7*x**1.6*exp(-0.42*x)", 0.1, 20, 3),
  ("6.4/(1 + (x/3.1)**2.3) + 0.2*x", 0.1, 20, 3), ("2.6*exp(-(x/12)**0.63) + exp(-x/40)", 0.1, 90, 3)])
def test_laws_are_found(text, low, high, turn):
  task = task_of(*table(text, low, high))
  assert least(task, ask(task, turn)) < 1e-18


def test_errors_of_the_target_do_no_harm():
  task = task_of(*table("34.6*(1 - exp(-0.0385*x))**1.42", 5, 100, noise=0.01))
  assert least(task, ask(task, 0)) < 1.1e-4
  task = task_of(*table("18.4*(exp(-0.28*x) - exp(-1.93*x))", 0, 12, noise=0.01))
  assert least(task, ask(task, 1)) < 1.1e-4
  task = task_of(*table("0.067 + 0.383*(1 + (0.2*x)**1.41)**(-0.291)", 0.1, 150, noise=0.01))
  assert least(task, ask(task, 2)) < 1.1e-4
  task = task_of(*table("3.3/(1 + exp((4 - x)/0.8)) - 2.1/(1 + exp((11 - x)/1.4))", 0, 18, noise=0.01))
  assert least(task, ask(task, 3)) < 1.1e-4


@pytest.mark.parametrize(("families", "name"), [*((FAMILIES, name) for name in INNER_FAMILIES),
                                                *((SHAPES, name) for name in INNER_SHAPES)])
def test_functions_of_a_family_differ_and_are_finite(families, name, rng):
  x = rng.uniform(1.1, 4, 60) / (5 if name in ("complements", "powers_of_negative_logarithms") else 1)
  constants = families[name].constants(x, CONFIG)
  values = [expression.evaluate(families[name].node(variable(0), *np.atleast_1d(c)), x[:, None]) for c in constants]
  is_single = name in ("iterated_logarithms", "complementary_logarithms")
  num_tried = 1 if is_single else min(CONFIG.offsets[2], CONFIG.exponents[2])
  assert len(constants) >= num_tried and np.all(np.isfinite(values))
  assert len({tuple(each) for each in np.round(values, 9).tolist()}) > 0.9 * len(constants)


@pytest.mark.parametrize(("families", "name", "low"), [
  (FAMILIES, "powers", 0.0), (FAMILIES, "self_powers", 0.0), (FAMILIES, "powers_of_logarithms", 1.0),
  (FAMILIES, "exponentials_of_inverse", 0.0), (SHAPES, "occupancies", 0.0), (SHAPES, "bells_of_logarithm", 0.0),
  (SHAPES, "stretched_exponentials", 0.0), (SHAPES, "gammas", 0.0)])
def test_powers_are_of_what_is_above_zero(families, name, low):
  constants = families[name].constants
  assert not len(constants(np.array([low, 2, 3]), CONFIG)) and not len(constants(np.array([low - 1, 2, 3]), CONFIG))
  assert len(constants(np.array([low + 1e-6, 2, 3]), CONFIG))


def test_where_a_column_may_end_its_own_end_is_tried():
  """x above 0 and x below 1 are looked at as they are: `log(x)`, `log(1 - x)`, `1/x`, `1/(x - 1)`."""
  for x, at_zero, at_one in (([0.2, 0.9], True, True), ([0.2, 1.0], True, False), ([0.0, 0.9], False, True)):
    x = np.array(x)
    assert (0.0 in FAMILIES["logarithms"].constants(x, CONFIG)) is at_zero
    assert (1.0 in FAMILIES["complements"].constants(x, CONFIG)) is at_one
    both = FAMILIES["hyperbolas"].constants(x, CONFIG)
    assert ((0.0 in both), (-1.0 in both)) == (at_zero, at_one)


@pytest.mark.parametrize(("x", "signs"), [
  ([1.01, 9], [1]), ([1.0, 9], []), ([0.1, 0.99], [-1]), ([0.1, 1.0], []), ([0.0, 0.5], []), ([-1.0, 3], []),
  ([0.5, 2], [])])
def test_the_logarithm_of_a_logarithm_is_that_of_one_sign(x, signs):
  assert FAMILIES["iterated_logarithms"].constants(np.array(x), CONFIG).tolist() == signs


@pytest.mark.parametrize(("x", "signs"), [
  ([1.01, 9], [-1]), ([1.0, 9], []), ([0.1, 0.99], [1]), ([0.1, 1.0], []), ([0.0, 0.5], []), ([0.5, 2], [])])
def test_what_may_be_a_probability_has_complementary_logarithms(x, signs):
  family = FAMILIES["complementary_logarithms"]
  assert family.constants(np.array(x), CONFIG).tolist() == signs
  for sign in signs:
    values = expression.evaluate(family.node(variable(0), sign), np.array(x)[:, None])
    np.testing.assert_allclose(values, np.log(-np.log1p(-(np.array(x) ** sign))), rtol=1e-12)


def test_what_is_left_is_that_of_least_squares(rng):
  x, y = rng.uniform(0.3, 4, (40, 1)), rng.normal(size=40)
  weights = rng.uniform(0.1, 1, 40)
  library = Functions(rows_of(x, y), 0, RULE, {name: FAMILIES[name] for name in (
    "exponentials", "powers", "logarithms", "hyperbolas", "peaks", "self_powers")}, dataclasses.replace(
      CONFIG, rates=(0.5, 5, 2), exponents=(0.5, 2, 2), offsets=(0.1, 1, 2)))
  values = [expression.evaluate(node, x) for node in library.nodes]
  def left(*some):
    design = np.sqrt(weights)[:, None] * np.column_stack([np.ones(40), *some])
    return np.sum((design @ np.linalg.lstsq(design, np.sqrt(weights) * y)[0] - np.sqrt(weights) * y) ** 2)
  each, pairs = library.left_of_each(y, weights), library.left_of_pairs(y, weights)
  assert len(values) == 4 + 4 + 3 + 5 + 4 + 4 and not np.isfinite(np.diag(pairs)).any()
  for i, one in enumerate(values):
    assert each[i] == pytest.approx(left(one), rel=1e-6)
    for j, other in enumerate(values[:i]):
      assert [pairs[i, j], pairs[j, i]] == pytest.approx(2 * [left(one, other)], rel=1e-3)


def test_the_least_places_are_apart():
  left = np.array([[9.0, 1, 2, 3, 4, 5, 6, 0.5], [8, 8, 8, 8, 8, 8, 8, 8], [7, 8, 8, 8, 8, 8, 8, 8]])
  assert inner_functions.nearest(left, 3) == [(0, 7), (0, 1), (0, 4)]
  assert inner_functions.nearest(np.full((2, 2), np.inf), 3) == [] == inner_functions.nearest(np.zeros((0, 3)), 1)


@pytest.mark.parametrize("make", [powers_of_sums, sums_of_two, powers_beside_constants, sums_with_shapes])
def test_odd_tables_make_none_or_finite_ones(make, rng):
  """No powers of a target of both signs; of a column of both signs what is defined; of huge values what is finite."""
  x = rng.uniform(-3, 3, (50, 1))
  assert (list(make(rows_of(x, x[:, 0]), 0, RULE, CONFIG)) == []) is (make is powers_of_sums)
  for scale, size in ((1.0, 1.0), (1e30, 1e-30), (1e-30, 1e30), (1e8, 1e50)):
    y = size * np.exp(np.sin(x[:, 0]))
    nodes = list(make(rows_of(scale * x, y), 0, RULE, CONFIG))
    assert nodes and all(np.isfinite(number.value) for node in nodes for number in expression.walk(node)
                         if number.token == "number")
  assert list(make(rows_of(x, np.ones(50)), 0, RULE, CONFIG)) is not None


def test_no_formula_has_an_operator_that_is_forbidden(rng):
  x, y = table("18.4*(exp(-0.28*x) - exp(-1.93*x)) + 3", 0.1, 12)
  for operators in (("+", "*", "/", "exp"), ("+", "*", "/", "pow"), ("+", "*", "ln")):
    task = task_of(x, y, SearchOptions(restrictions=Restrictions(operators=operators)))
    nodes = [node for turn in range(4) for node in ask(task, turn)]
    assert nodes and all(map(task.rule, nodes))


def test_it_is_asked_of_one_column_that_varies(rng):
  source = two_constants.TwoConstants()
  x, y = table("exp(-x)", 0, 3)
  assert source.supports(task_of(x, y)) and source.supports(task_of(np.column_stack([x, np.full(100, 2.0)]), y))
  assert not source.supports(task_of(np.column_stack([x, rng.uniform(size=100)]), y))
  assert source.turns == CONFIG.turns


@pytest.mark.parametrize("wrong", [
  {"families": ("cubes",)}, {"shapes": ("steps",)}, {"links": ("cube",)}, {"num_scales": 0}, {"num_rows": 0},
  {"num_alike": -1}])
def test_a_config_that_cannot_be_is_refused(wrong):
  with pytest.raises(ValueError, match=next(iter(wrong))):
    TwoConstantsConfig(**wrong)


def test_powers_out_of_range_are_not_written():
  for unit, exponent in ((1e-300, -5.0), (1e200, 3.0)):
    assert two_constants._written(variable(0), unit, unit, unit, exponent=exponent, size=2.0) is None
  assert two_constants._written(variable(0), 1e-3, 2e-3, 1e-3, exponent=2.0, size=2.0) is not None


@pytest.mark.parametrize(("least", "largest", "sign"), [
  (1.5, 3.0, 1), (3.0, 9.0, 1), (0.2, 0.9, -1), (0.2, 1.5, 0), (1.0, 2.0, 0), (0.5, 1.0, 0), (-0.5, 0.9, 0)])
def test_the_sign_of_a_logarithm_is_that_of_all_rows(least, largest, sign):
  x = np.linspace(least, largest, 9)
  found = inner_functions._sign_of_logarithm(x, CONFIG)
  assert found.tolist() == [sign] * abs(sign)
  assert inner_functions._signs_of_probabilities(x, CONFIG).tolist() == [-sign] * abs(sign)
