"""Sums of two functions of squares, roots and the like: told among thousands of pairs of kinds, exactly."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest

from symformer_jax.engine import refine
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.config.names import INNER_ARGUMENTS, INNER_KINDS
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Pool
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser
from symformer_jax.language.expression import variable
from symformer_jax.language.rules import Restrictions, Rule
from symformer_jax.sources.curves import inner_pairs, pair_fits, spans
from symformer_jax.sources.curves.inner_functions import ARGUMENTS, FAMILIES, KINDS, Functions, of_arguments

OPTIONS = SearchOptions()
GRIDS = dataclasses.replace(DEFAULT.two_constants, rates=DEFAULT.inner_pairs.rates, offsets=DEFAULT.inner_pairs.offsets)


def table(text, low, high, num_rows=100):
  x = np.random.default_rng(1).uniform(low, high, (num_rows, 1))
  return x, expression.evaluate(parser.parse(text, ("x",)), x)


def task_of(text, low, high, options=OPTIONS):
  return make_task(table(text, low, high), ["x", "y"][:1], options)


def ask(task, config=DEFAULT):
  source = inner_pairs.InnerPairs(config)
  assert source.supports(task)
  question = Question(task, Pool(task.variance, len(task.fit_rows), DEFAULT.pool), source.init(task, jax.random.key(0)))
  return source.propose([question], turn=0, num=source.turns[0], clock=Clock())[0].nodes


def least(task, nodes):
  return min(mse for _, mse in refine.fit_constants([(task, nodes)], method="lm", max_steps=150)[0]) / task.variance


def rows_of(x, y):
  return Rows(x, y, np.ones(len(y)))


@pytest.mark.parametrize(("text", "low", "high"), [
  ("12*arctan(0.0009*x) + 4.1*arctan((x/6200)**2)", 30, 14000),
  ("0.61*exp(-0.83*x)*(exp(sqrt(1.9*x)) - exp(-sqrt(1.9*x)))", 0.02, 11),
  ("2.2*arctan(sqrt((x**2 - 1)/5)) - arctan(sqrt(x**2 - 1))", 1.02, 7),
  ("(5*x**2/(x**2 + 4))**3*(5/(6*x**2 - 1))**2", 1.1, 5),
  ("7.1*exp(-0.19*x)/(1 + (x/2.9)**2)", 0.1, 20), ("3*sqrt(x + 2.2) - 1.4*log(x**2 + 0.6) + 0.3*x", 0.1, 9),
  ("1/(0.4 + 0.2*sqrt(x**2 + 3) + 1.7/(1 + exp(1.2*x)))", -2, 4), ("2*log(8 - x) + 0.7*exp(2.6/x)", 1.5, 7.5),
  ("exp(0.8*log(exp(0.9*x) + exp(-0.9*x)) - 0.1*exp(0.4*x))", -2, 4)])
def test_laws_are_found(text, low, high):
  task = task_of(text, low, high)
  assert least(task, ask(task)) < 1e-20


def test_what_is_far_down_the_list_is_found_by_fits_in_rounds():
  """Around its best place on the grid the right pair leaves more than some hundred others."""
  task = task_of("(6*x**2/(x**2 + 5))**3.5*(6/(7*x**2 - 1))**2.5", 1.1, 4)
  assert least(task, ask(task)) < 1e-20
  few = dataclasses.replace(DEFAULT, inner_pairs=dataclasses.replace(DEFAULT.inner_pairs, rounds=((96, 15),)))
  assert least(task, ask(task, few)) > 1e-14  # what else comes near


def test_only_what_the_rule_allows_is_made():
  restricted = dataclasses.replace(OPTIONS, restrictions=Restrictions(operators=("+", "-", "*", "/", "log", "exp")))
  nodes = ask(task_of("7.1*exp(-0.19*x)/(1 + (x/2.9)**2)", 0.1, 20, restricted))
  tokens = {part.token for node in nodes for part in expression.walk(node)}
  assert nodes and not tokens & {"sqrt", "atan"}


def test_tables_of_several_columns_are_not_for_it():
  x = np.random.default_rng(0).uniform(1, 2, (60, 2))
  assert not inner_pairs.InnerPairs().supports(make_task((x, x[:, 0] * x[:, 1]), None, OPTIONS))
  assert inner_pairs.InnerPairs().supports(make_task((x * [1, 0], x[:, 0] ** 2), None, OPTIONS))


@pytest.mark.parametrize("beside", [None, "x", "log(x)"])
def test_right_constants_between_those_of_a_grid_leave_least_around_theirs(beside):
  """The pair itself leaves more than others do; with its neighbours, by a second oracle of least squares, least."""
  x, y = table("13*arctan(0.00077*x) + 3.5*arctan((x/7300)**2)", 20, 15500)
  functions = Functions(rows_of(x, y), 0, Rule(1), of_arguments(INNER_KINDS, INNER_ARGUMENTS), GRIDS)
  arcs, squares = (functions.families["arctangents", name] for name in ("columns", "squares"))
  pairs = np.array(list(itertools.product(arcs, squares)))
  others = () if beside is None else (expression.evaluate(parser.parse(beside, ("x",)), x),)
  left = functions.left_around(pairs, y, np.ones(100), *others)
  at = int(np.argmin(left))
  found = [functions.constants[i][0] for i in pairs[at]]
  assert abs(np.log(found[0] / 0.00077)) < 0.5 and abs(np.log(found[1] * 7300**2)) < 0.6
  for k in (at, 0, 5):
    options = []
    for sides in itertools.product((0, 1), repeat=2):
      places = [p for i, side in zip(pairs[k].tolist(), sides, strict=True)
                for p in (i, *functions.neighbours[i][side])]
      design = np.column_stack([np.ones(100), *others, *(functions.values(p) for p in places)])
      design = design / np.linalg.norm(design, axis=0)
      options.append(np.sum((y - design @ np.linalg.lstsq(design, y, rcond=None)[0]) ** 2))
    assert left[k] == pytest.approx(min(options), rel=0.02, abs=1e-9 * np.sum((y - y.mean()) ** 2))


def test_neighbours_differ_in_one_constant():
  x, y = table("x", 1, 9)
  names = {"exponentials": FAMILIES["exponentials"]}
  functions = Functions(rows_of(x, y), 0, Rule(1), names, GRIDS)
  order = np.argsort([c[0] for c in functions.constants])
  for before, at, after in zip(order, order[1:], order[2:], strict=False):
    assert functions.neighbours[at] == ((after,), (before,))
  assert functions.neighbours[order[0]] == ((order[1],), (order[1],))


def test_directions_are_orthonormal_and_none_for_what_depends():
  rng = np.random.default_rng(0)
  columns = rng.normal(size=(5, 3, 20))
  columns[1, 2] = 2 * columns[1, 0] - columns[1, 1]
  columns[2, 1] = np.nan
  found = spans.orthonormal(columns)
  for k, sizes in enumerate(([1, 1, 1], [1, 1, 0], [1, 0, 1], [1, 1, 1], [1, 1, 1])):
    assert found[k] @ found[k].T == pytest.approx(np.diag(sizes), abs=1e-12)
  goal = rng.normal(size=20)
  expected = np.linalg.lstsq(columns[0].T, goal, rcond=None)[1][0]
  assert spans.left_of(goal, found)[0] == pytest.approx(expected)


@pytest.mark.parametrize("kind", INNER_KINDS)
def test_values_of_a_kind_are_those_of_its_formula(kind):
  x = np.random.default_rng(2).uniform(1.2, 3, 40)
  constants = KINDS[kind].family.constants(x, GRIDS)
  assert len(constants) >= 12
  for c in constants[:: max(1, len(constants) // 5)].tolist():
    expected = expression.evaluate(KINDS[kind].family.node(variable(0), c), x[:, None])
    assert KINDS[kind].values(x[None], np.array([[c]]))[0] == pytest.approx(expected, rel=1e-12)


def test_constants_come_back_from_where_they_end():
  x = np.random.default_rng(2).uniform(1.2, 3, 40)
  for kind in INNER_KINDS:
    constants = KINDS[kind].family.constants(x, GRIDS)
    slots, logarithms = pair_fits.slots_of([kind] * len(constants), np.tile(x, (len(constants), 1)), constants)
    assert slots.constants(logarithms) == pytest.approx(constants, rel=1e-12)
    nearer = slots.constants(logarithms - 20)  # as near to its end as that may be, but never beyond
    assert np.all(np.isfinite(KINDS[kind].values(x, nearer[:, None])))


@pytest.mark.parametrize(("name", "low", "high"), [
  ("legs", 0.9, 3), ("roots", -0.1, 3), ("cube_roots", -0.1, 3), ("inverses", -0.1, 3)])
def test_arguments_that_are_undefined_have_no_functions(name, low, high):
  x = np.linspace(low, high, 30)
  family = of_arguments(["exponentials"], [name])["exponentials", name]
  assert not len(family.constants(x, GRIDS)) and len(family.constants(x + 0.2, GRIDS))
  assert ARGUMENTS["inverses"].is_defined(-3, -1)


def test_a_fit_ends_at_the_right_constants():
  x = np.linspace(0.1, 5, 60)
  y = 2 * np.exp(-0.7 * x) + 3 * np.log(x + 1.3) - 0.2 * x + 1
  slots = [pair_fits.slots_of([kind], x[None], np.array([c]))
           for kind, c in (("exponentials", -1.5), ("logarithms", 0.4))]
  goal = pair_fits.Goal(rows_of(x[:, None], y), np.column_stack([np.ones(60), x]))
  fits = pair_fits.fit([slot for slot, _ in slots], np.stack([c for _, c in slots], axis=1), goal, 30)
  found = [slot.constants(fits.logarithms[:, i])[0] for i, (slot, _) in enumerate(slots)]
  assert found == pytest.approx([-0.7, 1.3], rel=1e-7) and fits.left[0] < 1e-20


@pytest.mark.parametrize("operators", [("+", "*"), ("+", "*", "sin")])
def test_where_no_function_may_be_written_nothing_is_made(operators):
  assert ask(task_of("2*x**3 - x", 0.1, 3, SearchOptions(restrictions=Restrictions(operators=operators)))) == ()


@pytest.mark.parametrize("x", [
  np.repeat([1.0, 2.0], 50), np.repeat([1.0, 2.0, 3.0], 40), np.append(np.ones(999), 2.0),
  1e13 + np.linspace(0, 1, 100)])
def test_columns_of_few_values_and_far_from_zero_do_no_harm(x):
  y = np.sin(x) + 0.1 * np.random.default_rng(0).normal(size=len(x))
  nodes = inner_pairs.fitted_sums(rows_of(x[:, None], y), 0, Rule(1), DEFAULT.inner_pairs, DEFAULT.two_constants)
  for node in itertools.islice(nodes, 20):
    assert isinstance(node, expression.Node)


def test_a_factor_beyond_the_range_of_floats_makes_no_sum(rng):
  x = rng.uniform(1, 2, 30)
  rows = Rows(1e-305 * x[:, None], 1e12 * x + 1, np.ones(30))
  assert inner_pairs.sum_of([expression.variable(0)], rows) is None
  rows = Rows(1e-290 * x[:, None], 1e12 * x + 1, np.ones(30))
  np.testing.assert_allclose(expression.evaluate(inner_pairs.sum_of([expression.variable(0)], rows), rows.x), rows.y)
