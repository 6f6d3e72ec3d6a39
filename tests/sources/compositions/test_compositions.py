"""Compositions: functions of functions on a grid, for y and functions of y, with their constants fitted."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest
from scipy import optimize

from symformer_jax.engine import interruption
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Pool
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser
from symformer_jax.language.expression import Node, number, variable, walk
from symformer_jax.language.rules import Restrictions, Rule
from symformer_jax.sources.compositions import (
  composition_fits,
  composition_goals,
  composition_stages as stages,
  compositions,
)
from symformer_jax.sources.compositions.composition_fits import Found, Inside, Leaf, Scan
from symformer_jax.sources.compositions.composition_goals import Kind
from symformer_jax.sources.compositions.compositions import Compositions

CONFIG = DEFAULT.compositions
SOURCE = Compositions(SearchOptions())


def rows_of(text, x, weights=None):
  y = expression.evaluate(parser.parse(text, tuple("xyzw"[: x.shape[1]])), x)
  assert np.all(np.isfinite(y))
  return Rows(x, y, np.ones(len(x)) if weights is None else weights)


def uniform(rng, *ranges, num=120):
  return np.stack([rng.uniform(*each, num) for each in ranges], axis=1)


def leaf_of(rows, column=0):
  return Leaf(variable(column), rows.x[:, column])


# --- stages ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", stages.STAGES)
def test_a_stage_is_the_same_on_the_grid_by_itself_and_as_a_formula(name, rng):
  z = rng.uniform(1, 4, (3, 50))
  constants = stages.constants(name, z, CONFIG)
  on_grid = stages.on_grid(name, z, constants)
  assert on_grid.dtype == np.float32 and on_grid.shape == (*constants.shape[:2], 50)
  for v, c in itertools.product(range(3), range(0, constants.shape[1], 5)):
    a, b = constants[v, c]
    alone = stages.values(name, z[v : v + 1], np.array([a]), np.array([b]))[0]
    written = expression.evaluate(stages.build(name, variable(0), float(a), float(b), z[v]), z[v][:, None])
    np.testing.assert_allclose(written, alone, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(on_grid[v, c], alone, rtol=2e-3, atol=2e-3 * np.max(np.abs(alone)))


def test_zeros_of_what_is_singular_stand_beside_the_data_whatever_their_units(rng):
  for scale, shift in ((1.0, 0.0), (1e-6, 5.0), (1e9, -3e9)):
    z = (shift + scale * rng.uniform(0, 1, 200))[None]
    for name in ("ln", "inv", "sqrt", "inv_sqrt"):
      constants = stages.constants(name, z, CONFIG)[0]
      zeros = -constants[:-1, 1] / constants[:-1, 0]  # the last is z itself
      assert np.all((zeros < z.min()) | (zeros > z.max()))
      away = np.minimum(np.abs(zeros - z.min()), np.abs(zeros - z.max())) / np.ptp(z)
      np.testing.assert_allclose(np.sort(away)[::2], np.geomspace(*CONFIG.distances), rtol=1e-5)
      np.testing.assert_array_equal(constants[-1], (1, 0))


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_a_shift_is_written_whatever_the_units(scale):
  z = scale * np.linspace(1, 4, 30)
  written = stages.build("sin", variable(0), 1.3 / scale, 0.7, z)
  np.testing.assert_allclose(expression.evaluate(written, z[:, None]), np.sin(1.3 * z / scale + 0.7), rtol=1e-12)


def test_waves_of_a_column_itself_are_dense_and_of_functions_few(rng):
  z = rng.uniform(-2, 3, (1, 100))
  leaf, other = Leaf(variable(0), z[0]), Leaf(variable(1), z[0] ** 2)
  insides = Inside(stages.NOTHING, leaf), Inside(stages.NOTHING, leaf, beside=other), Inside("exp", leaf)
  dense, less, few = (stages.constants("sin", z, CONFIG, num_waves=inside.num_waves(CONFIG))[0] for inside in insides)
  assert len(less) == CONFIG.num_waves_of_sums * CONFIG.num_phases
  assert len(dense) == CONFIG.num_plain_waves * CONFIG.num_phases
  assert len(few) == len(CONFIG.wave_angles) * CONFIG.num_phases
  np.testing.assert_allclose(np.unique(np.round(dense[:, 0] * np.ptp(z), 9)),
                             np.pi / 4 * np.arange(1, CONFIG.num_plain_waves + 1), rtol=1e-8)
  np.testing.assert_allclose(np.unique(np.round(few[:, 0] * np.ptp(z), 9)), CONFIG.wave_angles)


# --- goals -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "kind", "composition"), [
  ("x/(2 + 3*sin(x))", Kind("inv", ((0, 1.0),), False, ()), "sin(x)"),
  ("2*exp(-3*sqrt(x))", Kind("exp", (), False, ()), "sqrt(x)"),
  ("-2*exp(-3*sqrt(x))/x", Kind("exp", ((0, -1.0),), True, ()), "sqrt(x)"),
  ("0.5 - 1.5*x + 4*arctan(x**2)", Kind("y", (), False, ((0, 1.0),)), "arctan(x**2)"),
  ("sqrt(7 + 2*log(x))", Kind("sqrt", (), False, ()), "log(x)"),
])
def test_a_kind_writes_y_by_the_composition(text, kind, composition, rng):
  rows = rows_of(text, uniform(rng, (0.6, 4)))
  written = kind.write(parser.parse(composition, ("x",)), rows)
  np.testing.assert_allclose(expression.evaluate(written, rows.x), rows.y, rtol=1e-9)
  goal = composition_goals.make_goal(kind, rows, CONFIG)
  column = goal.root * expression.evaluate(parser.parse(composition, ("x",)), rows.x)
  column = column - goal.basis.T @ (goal.basis @ column)
  assert 1 - (column @ goal.rest) ** 2 / (column @ column) < 1e-12


def test_errors_of_a_function_of_y_count_as_those_of_y_do(rng):
  """The error of y = exp(z)*d that an error of z makes, by a difference quotient."""
  rows = rows_of("x*exp(0.3*x)", uniform(rng, (1, 3)), rng.uniform(0.5, 2, 120))
  z, weights = Kind("exp", ((0, 1.0),), False, ()).target(rows)
  np.testing.assert_allclose(z, 0.3 * rows.x[:, 0])
  slope = rows.x[:, 0] * (np.exp(z + 1e-6) - np.exp(z - 1e-6)) / 2e-6
  expected = rows.weights * slope**2
  np.testing.assert_allclose(weights / weights.max(), expected / expected.max(), rtol=1e-6)


def test_opposites_are_asked_where_y_is_below_zero(rng):
  rows = rows_of("-exp(x)/x", uniform(rng, (1, 3)))
  goals = composition_goals.find_goals(rows, (0,), Rule(1), CONFIG)
  assert {goal.kind.is_opposite for goal in goals} == {True}
  assert "exp" in {goal.kind.link for goal in goals}


def test_goals_of_few_rows_are_left_out_and_all_are_defined(rng):
  x = uniform(rng, (-3, 3))
  rows = rows_of("exp(9*x)", x)
  goals = composition_goals.find_goals(rows, (0,), Rule(1), CONFIG)
  kinds = [goal.kind for goal in goals]
  assert all(kind.link != "y" or kind.divisor for kind in kinds)  # nine tenths of its variance are a row or two
  assert Kind("exp", (), False, ()) in kinds
  for goal in goals:
    assert composition_goals.num_rows(goal.rest**2) >= CONFIG.least_rows * len(x)
    np.testing.assert_allclose(np.sum(goal.root**2), 1)
    np.testing.assert_allclose(goal.basis @ goal.rest, 0, atol=1e-9)


@pytest.mark.parametrize(("shares", "num"), [
  ([1, 1, 1, 1], 4), ([1, 0, 0, 0], 1), ([2, 2, 0, 0], 2), ([3, 1, 0, 0], 1.6)])
def test_rows_that_make_a_sum_are_counted(shares, num):
  assert composition_goals.num_rows(np.array(shares, float)) == pytest.approx(num)


def test_what_is_undefined_at_some_rows_is_not_written(rng):
  x = rng.uniform(0.5, 2, (30, 1))
  rows = Rows(x, np.append(np.exp(-x[:-1, 0]), 0.0), np.ones(30))
  plain, square = (parser.parse(text, ("x",)) for text in ("1.5*x", "x - 9"))
  assert Kind("y", (), False, ()).write(plain, rows) is not None
  assert Kind("exp", (), False, ()).write(plain, rows) is None  # there is no logarithm of 0
  for composition in (Node("ln", (square,)), Node("*", (plain, number(0.0)))):
    assert Kind("y", (), False, ()).write(composition, rows) is None


def test_goals_keep_to_the_rule(rng):
  rows = rows_of("exp(x) + y", uniform(rng, (1, 3), (1, 2)))
  allowed = frozenset({"+", "*", "exp", "sin"})
  found = composition_goals.find_goals(rows, (0, 1), Rule(2, tokens=allowed), CONFIG)
  assert {goal.kind.link for goal in found} == {"y", "exp"}
  assert {goal.kind.divisor for goal in found} == {(), ((0, 1.0),), ((1, 1.0),), ((0, 1.0), (1, 1.0))}
  assert len(composition_goals.find_goals(rows, (0, 1), Rule(2), CONFIG)) == CONFIG.max_goals


def test_columns_that_change_places_have_the_same_goals(rng):
  x = uniform(rng, (1, 3), (1, 2), (2, 4))
  rows = rows_of("exp(x) + y*z", x)
  turned = Rows(x[:, ::-1], rows.y, rows.weights)

  def kinds(some):
    return {goal.kind for goal in composition_goals.find_goals(
      some, (0, 1, 2), Rule(3), dataclasses.replace(CONFIG, max_goals=10_000))}

  def back(monomial):
    return tuple(sorted((2 - column, power) for column, power in monomial))

  assert {kind._replace(divisor=back(kind.divisor), beside=back(kind.beside)) for kind in kinds(turned)} == kinds(rows)
  divisors = [goal.kind.divisor for goal in composition_goals.find_goals(rows, (0, 1, 2), Rule(3), CONFIG)]
  assert {((column, power),) for column in range(3) for power in (1.0, -1.0)} <= set(divisors)
  assert any(len(divisor) == 2 for divisor in divisors)


def test_rows_count_by_their_weights_where_enough_do(rng):
  weights = rng.uniform(0.5, 2, 120)
  rows = rows_of("x + sin(x)", uniform(rng, (1, 3)), weights)
  goal = composition_goals.make_goal(Kind("y", (), False, ()), rows, CONFIG)
  np.testing.assert_allclose(goal.root**2, weights / weights.sum())
  few = np.where(np.arange(120) < 6, 1.0, 1e-8)
  tempered = composition_goals.make_goal(Kind("y", (), False, ()), Rows(rows.x, rows.y, few), CONFIG).root ** 2
  assert composition_goals.num_rows(tempered) >= CONFIG.least_weighted * 120
  assert composition_goals.num_rows(few) < 7


# --- the grid, and fits ----------------------------------------------------------------------------------------------


def left_by_least_squares(goal, column):
  """What a column leaves of a goal beside a constant and the goal's own column, by another way."""
  design = np.column_stack([column * goal.root, *goal.basis])
  return np.sum((goal.rest - design @ np.linalg.lstsq(design, goal.rest, rcond=None)[0]) ** 2)


def test_what_the_grid_leaves_is_what_least_squares_leave(rng):
  rows = rows_of("1/(1.3 + sin(2*x)) + 0.1*x", uniform(rng, (0.5, 4)), rng.uniform(0.5, 2, 120))
  goals = composition_goals.find_goals(rows, (0,), Rule(1), CONFIG)
  block = composition_fits.block_of(Inside("sin", leaf_of(rows)), CONFIG)
  assert any(goal.kind.beside for goal in goals)
  for found in itertools.islice(Scan(goals, ["inv", "sqrt", stages.NOTHING], CONFIG).nearest(block), 0, None, 40):
    column = expression.evaluate(found.build(), rows.x)
    assert found.left == pytest.approx(left_by_least_squares(goals[found.goal], column), rel=0.05, abs=1e-4)


def test_of_each_goal_and_function_the_nearest_places_inside_are_found(rng):
  rows = rows_of("exp(sin(3*x))", uniform(rng, (0, 4)))
  goals = composition_goals.find_goals(rows, (0,), Rule(1), CONFIG)[:1]
  block = composition_fits.block_of(Inside("sin", leaf_of(rows)), CONFIG)
  found = list(Scan(goals, ["exp"], CONFIG).nearest(block))
  assert len(found) == CONFIG.num_alike and [each.left for each in found] == sorted(each.left for each in found)
  of_all = []
  for inside, values in zip(block.constants, block.values, strict=True):
    for a, b in stages.constants("exp", values[None], CONFIG)[0]:
      of_all.append((left_by_least_squares(goals[0], np.exp(a * values + b)), *inside[:2]))
  nearest = list(dict.fromkeys(place for _, *place in sorted(of_all) for place in [tuple(place)]))
  assert [tuple(each.constants[:2]) for each in found] == nearest[: CONFIG.num_alike]


@pytest.mark.parametrize(("inside", "outer", "begin", "truth"), [
  (("exp", "inv"), "", [0.48, 0, 1.2, 1.12, 0, 1, 0], lambda x: np.exp(0.5 * x) / (x + 0.9)),
  (("sin", None, "beside"), "exp", [1.3, 0.4, 1, 0, 0.4, 0.8, 0],
   lambda x: np.exp(0.9 * np.sin(1.2 * x + 0.5) + 0.3 * x)),
  (("sin",), "exp", [1.3, 0.4, 1, 0, 0, 0.8, 0], lambda x: np.exp(0.9 * np.sin(1.2 * x + 0.5))),
  (("inv",), "sin", [1.2, 1.0, 1, 0, 0, 5.2, 0.3], lambda x: np.sin(5 / (1.1 * x + 1) + 0.2)),
  (("pow2",), "atan", [1, -1, 1, 0, 0, 1, -1], lambda x: np.arctan(0.8 * (x - 1.2) ** 2 - 0.7)),
])
def test_a_fit_meets_exact_data_and_agrees_with_that_of_scipy(inside, outer, begin, truth, rng):
  x = uniform(rng, (0.1, 4))
  inner, factor, beside = (*inside, None, None)[:3]
  free = ([0, 3] if factor else [0, 1, 4, 5] if beside else [0, 1, 5] if outer == "exp" else [0, 1, 5, 6])
  for noise in (0.0, 0.05):
    rows = Rows(x, 2 - 3 * truth(x[:, 0]) + noise * rng.normal(size=len(x)), rng.uniform(0.5, 2, len(x)))
    goal = composition_goals.make_goal(Kind("y", (), False, ()), rows, CONFIG)
    leaf = leaf_of(rows)
    made = Inside(inner, leaf, factor or "", leaf if factor else None, leaf if beside else None)
    found = Found(made, outer, 0, np.array(begin, float), 1.0)
    [fitted] = composition_fits.fit([found], [goal], 60)
    assert fitted.left == pytest.approx(fit_of_scipy(found, goal, x, free), rel=1e-6, abs=1e-22)
    column = expression.evaluate(fitted.build(), x)
    assert fitted.left == pytest.approx(left_by_least_squares(goal, column), rel=1e-6, abs=1e-22)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_fits_know_no_units(scale, rng):
  x = uniform(rng, (0.2, 4)) * scale
  rows = Rows(x, np.exp(np.sin(2 * x[:, 0] / scale + 0.3)), np.ones(len(x)))
  goal = composition_goals.make_goal(Kind("y", (), False, ()), rows, CONFIG)
  begin = np.array([1.8 / scale, 0.2, 1, 0, 0, 1.1, 0])
  [fitted] = composition_fits.fit([Found(Inside("sin", leaf_of(rows)), "exp", 0, begin, 1.0)], [goal], 40)
  assert fitted.left < 1e-24
  blocks = [composition_fits.block_of(inside, CONFIG) for inside in (
    Inside("", leaf_of(rows)), Inside("exp", leaf_of(rows), factor_leaf=leaf_of(rows)),
    Inside("", leaf_of(rows), beside=Leaf(variable(0), rows.x[:, 0] ** 2)))]
  assert [len(block.values) for block in blocks] == [1, 2 * CONFIG.exponential_factors[2], len(CONFIG.multiples)]


def fit_of_scipy(found, goal, x, free):
  def errors(values):
    constants = found.constants.copy()
    constants[free] = values
    column = goal.root * expression.evaluate(dataclasses.replace(found, constants=constants).build(), x)
    design = np.column_stack([column, *goal.basis[:1]])
    return goal.rest - design @ np.linalg.lstsq(design, goal.rest, rcond=None)[0]

  return 2 * optimize.least_squares(errors, found.constants[free], xtol=1e-14, ftol=1e-14, gtol=1e-14, method="lm").cost


def test_fits_keep_their_order_and_never_harm(rng):
  rows = rows_of("cos(cos(0.65*x))", uniform(rng, (-4, 4)))
  goals = composition_goals.find_goals(rows, (0,), Rule(1), CONFIG)
  scan = Scan(goals, list(stages.STAGES), CONFIG)
  found = [each for name in ("sin", "exp", "atan")
           for each in scan.nearest(composition_fits.block_of(Inside(name, leaf_of(rows)), CONFIG))]
  rng.shuffle(found)
  found = composition_fits.fit(found, goals, 0)  # the grid is looked at in single precision
  fitted = composition_fits.fit(found, goals, 3)
  for before, after in zip(found, fitted, strict=True):
    assert (before.outer, before.inside, before.goal) == (after.outer, after.inside, after.goal)
    assert after.left <= before.left
  assert np.median([after.left / before.left for before, after in zip(found, fitted, strict=True)]) < 0.95


def test_a_product_of_two_functions_has_nothing_around_it(rng):
  rows = rows_of("x + 1", uniform(rng, (0.5, 3)))
  inside = Inside("exp", leaf_of(rows), "inv", leaf_of(rows))
  assert composition_fits.outer_functions(inside, ["exp", "sin"]) == [stages.NOTHING]
  block = composition_fits.block_of(inside, CONFIG)
  k = len(block.values) // 3
  written = expression.evaluate(inside.build(block.constants[k].tolist()), rows.x)
  np.testing.assert_allclose(written, block.values[k], rtol=1e-9)


def test_what_stands_beside_is_a_share_of_the_function_s_range(rng):
  rows = rows_of("x + y", uniform(rng, (0.5, 3), (100, 300)))
  inside = Inside("sin", leaf_of(rows), beside=leaf_of(rows, 1))
  block = composition_fits.block_of(inside, CONFIG)
  alone = np.sin(block.constants[:, :1] * rows.x[:, 0] + block.constants[:, 1:2])
  shares = block.constants[:, 4] * np.ptp(rows.x[:, 1]) / np.ptp(alone, axis=1)
  np.testing.assert_allclose(np.unique(np.round(shares, 6)), np.sort(CONFIG.multiples))
  written = expression.evaluate(inside.build(block.constants[7].tolist()), rows.x)
  np.testing.assert_allclose(written, block.values[7], rtol=1e-9)


def test_leaves_functions_of_them_powers_times_these_and_beside_them_stand_inside(rng):
  small = dataclasses.replace(CONFIG, inner_powers=(1.0,), factor_powers=(2.0,))
  rule = Rule(2, tokens=frozenset({"+", "*", "sin", "exp", "pow2"}))
  rows = rows_of("x + y", uniform(rng, (1, 3), (2, 5)))
  insides = compositions.insides_of(rows, (0, 1), rule, small)
  leaves, squares = ({expression.evaluate(parser.parse(text, ("x", "y")), rows.x).tobytes() for text in some}
                     for some in (("x", "y", "x*y"), ("x**2", "y**2")))
  functions = {"sin", "exp", "pow2", "pow4"}
  of_factors, beside = set(), []
  for inside in insides:
    if inside.factor == stages.NOTHING and inside.factor_leaf is not None:
      of_factors.add((inside.inner, inside.leaf.values.tobytes(), inside.factor_leaf.values.tobytes()))
    if inside.beside is not None and inside.inner != stages.NOTHING:
      beside.append((inside.inner, inside.leaf.values.tobytes(), inside.beside.values.tobytes()))
  assert of_factors == set(itertools.product(functions, leaves, squares))
  assert sorted(beside) == sorted(itertools.product(functions, leaves, leaves))


# --- the source ------------------------------------------------------------------------------------------------------


def asked(text, x, num_turns, options=None):
  """Formulas of the first turns, and the task."""
  options = options or SearchOptions()
  rows = rows_of(text, x)
  task = make_task((rows.x, rows.y), list("xyzw"[: x.shape[1]]), options)
  source, found = Compositions(options), []
  assert source.supports(task)
  state = source.init(task, jax.random.key(0))
  for turn in range(num_turns):
    question = Question(task, Pool(task.variance, len(task.fit_rows), DEFAULT.pool), state)
    [proposal] = source.propose([question], turn=turn, num=64, clock=Clock())
    found, state = [*found, *proposal.nodes], proposal.state
    if proposal.is_last:
      break
  return found, task


def least_share(found, task):
  rows = task.fit_rows
  return min(float(np.mean((expression.evaluate(node, rows.x) - rows.y) ** 2)) / task.variance for node in found)


@pytest.mark.parametrize(("text", "ranges", "num_turns"), [
  pytest.param("cos(cos(0.65*x))", [(-5, 5)], 2, marks=pytest.mark.slow),
  ("0.094/sin(1/x + 4.03)", [(0.05, 5)], 1),
  ("sin(0.5*log(y)) + y + 3", [(0, 3), (0.1, 5)], 1),
  pytest.param("exp(1.7*arctan(3*x - 1))*x", [(0.2, 4)], 3, marks=pytest.mark.slow),
  ("cos(1.3*x*y + 0.4)/y", [(0.2, 4), (0.5, 2)], 2),
  pytest.param("y**(-0.5)*log(3 + sin(3*x))", [(0.2, 4), (0.5, 2)], 4, marks=pytest.mark.slow),
])
def test_functions_of_functions_are_met(text, ranges, num_turns, rng):
  found, task = asked(text, uniform(rng, *ranges), num_turns)
  assert least_share(found, task) < 1e-20


def test_turns_take_one_block_after_another_and_end(rng):
  small = dataclasses.replace(
    CONFIG, inner_powers=(1.0,), factor_powers=(), num_looked_at=60_000, multiples=(1.0,), max_goals=3)
  options = SearchOptions(config=dataclasses.replace(DEFAULT, compositions=small))
  rows = rows_of("sqrt(x) + 1", uniform(rng, (1, 5)))
  goals = composition_goals.find_goals(rows, (0,), Rule(1), small)

  def look(config, begin):
    found, end = compositions.look_at_blocks(rows, (0,), goals, Rule(1), config, begin=begin)
    return [(each.outer, each.goal, *each.constants) for each in found], end

  ends, seen, end = [0], [], 0
  while end is not None:
    found, end = look(small, ends[-1])
    seen += found
    ends += [] if end is None else [end]
  assert len(ends) > 2 and ends == sorted(set(ends))
  whole, end = look(dataclasses.replace(small, num_looked_at=10**12), 0)
  assert end is None and seen == whole
  task = make_task((rows.x, rows.y), ["x"], options)
  question = Question(task, Pool(task.variance, len(task.fit_rows), DEFAULT.pool), ends[-1])
  assert Compositions(options).propose([question], turn=9, num=4, clock=Clock())[0].is_last


def test_where_nothing_can_be_asked_for_there_are_no_further_turns(rng):
  x = uniform(rng, (1, 5))
  y = np.where(np.arange(len(x)) == 7, 1.0, 0.0)  # one row makes all of the variance
  task = make_task((x, y), ["x"], SearchOptions())
  assert not composition_goals.find_goals(task.fit_rows, (0,), Rule(1), CONFIG)
  question = Question(task, Pool(task.variance, len(task.fit_rows), DEFAULT.pool), 0)
  [proposal] = SOURCE.propose([question], turn=0, num=8, clock=Clock())
  assert proposal.is_last and not proposal.nodes


def test_a_turn_ends_where_time_is_over(rng):
  rows = rows_of("sin(x) + 1", uniform(rng, (1, 5)))
  task = make_task((rows.x, rows.y), ["x"], SearchOptions())
  question = Question(task, Pool(task.variance, len(task.fit_rows), DEFAULT.pool), 0)
  with interruption.ending_when(lambda: True), pytest.raises(interruption.Interrupted):
    SOURCE.propose([question], turn=0, num=8, clock=Clock())
  goals = composition_goals.find_goals(rows, (0,), Rule(1), CONFIG)
  block = composition_fits.block_of(Inside("sin", leaf_of(rows)), CONFIG)
  found = list(Scan(goals[:1], ["exp"], CONFIG).nearest(block))
  with interruption.ending_when(lambda: True), pytest.raises(interruption.Interrupted):
    composition_fits.fit(found, goals, 1)


def test_what_is_fitted_is_the_nearest_of_every_goal(rng):
  rows = rows_of("exp(sin(3*x)) + 0.5", uniform(rng, (0.5, 4)))
  goals = composition_goals.find_goals(rows, (0,), Rule(1), CONFIG)
  inside = Inside("sin", leaf_of(rows))
  few = dataclasses.replace(
    CONFIG, num_of_y=3, num_of_link=2, num_of_quotient=1, screen_steps=1, fit_steps=1, num_near=8)
  found = list(Scan(goals, ["exp", "sin", "atan"], CONFIG).nearest(composition_fits.block_of(inside, CONFIG)))
  assert {goals[each.goal].kind.divisor for each in found} >= {(), ((0, 1.0),)}
  every = compositions.nearest_fitted(found, goals, dataclasses.replace(few, num_near=1000))
  counts = {goal: sum(each.goal == goal for each in every) for goal in {each.goal for each in found}}
  expected = {goal: 1 if goals[goal].kind.divisor else 3 if goals[goal].kind.link == "y" else 2 for goal in counts}
  assert counts == {goal: min(expected[goal], sum(each.goal == goal for each in found)) for goal in counts}
  some = compositions.nearest_fitted(found, goals, few)
  assert len(some) == 8 and len({each.goal for each in some}) >= 4
  assert [each.left for each in some] == sorted(each.left for each in some)


def test_what_a_rule_forbids_is_not_made(rng):
  rows = rows_of("exp(sin(2*x))*y", uniform(rng, (0.5, 4), (1, 2)))
  rule = Rule(2, tokens=frozenset({"+", "*", "sin", "exp"}))
  found, _ = compositions.look_at_blocks(
    rows, (0, 1), composition_goals.find_goals(rows, (0, 1), rule, CONFIG), rule, CONFIG, begin=0)
  tokens = {part.token for each in found for part in walk(each.build()) if part.args}
  assert found and tokens <= {"+", "*", "sin", "exp", "neg"}
  insides = itertools.islice(compositions.insides_of(rows, (0, 1), rule, CONFIG), 20)
  assert {inside.leaf.node.token for inside in insides} == {"variable", "*"}


def test_formulas_keep_to_the_rule(rng):
  restrictions = Restrictions(operators=("+", "*", "sin", "exp"))
  found, task = asked("exp(sin(2*x))", uniform(rng, (0.5, 4)), 1, SearchOptions(restrictions=restrictions))
  assert found and all(task.rule(node) for node in found)
  assert {part.token for node in found for part in walk(node) if part.args} <= {"+", "*", "sin", "exp", "neg"}
  assert least_share(found, task) < 1e-20


@pytest.mark.parametrize("x", [
  np.linspace(-3, 3, 41)[:, None], np.repeat(np.linspace(0, 2, 25), 4)[:, None],
  pytest.param(2000.0 + np.arange(60)[:, None] * 1e-3, marks=pytest.mark.slow),
  np.geomspace(1e-20, 1e20, 50)[:, None]])
def test_odd_columns_are_no_error(x, rng):
  y = 1 + rng.normal(size=len(x))
  task = make_task((x, y), ["x"], SearchOptions())
  question = Question(task, Pool(task.variance, len(task.fit_rows), DEFAULT.pool), 0)
  with np.errstate(divide="raise", over="raise", invalid="raise"):
    [proposal] = SOURCE.propose([question], turn=0, num=8, clock=Clock())
  assert len(proposal.nodes) or np.max(x) > 1e15
  for node in proposal.nodes:
    assert np.all(np.isfinite(expression.evaluate(node, task.fit_rows.x)))


def test_who_is_asked(rng):
  def supports(x, **options):
    return Compositions(SearchOptions()).supports(make_task((x, x.sum(axis=1) + 1), None, SearchOptions(**options)))
  assert supports(uniform(rng, (0, 1))) and supports(uniform(rng, *[(0, 1)] * CONFIG.max_columns))
  assert not supports(uniform(rng, *[(0, 1)] * (CONFIG.max_columns + 1)))
  assert not supports(uniform(rng, (0, 1), num=CONFIG.min_rows - 1))
  assert not supports(uniform(rng, (0, 1)), restrictions=Restrictions(operators=("*", "sin")))


def test_the_same_question_has_the_same_answer(rng):
  x = uniform(rng, (0.5, 4), (1, 2))
  (first, _), (second, _) = (asked("sin(x)/(y + exp(x))", x, 1) for _ in range(2))
  assert first == second and first


@pytest.mark.parametrize(("changes", "said"), [
  ({"links": ("yy",)}, "links: unknown name 'yy'"), ({"least_rows": 0.0}, "least_rows: expected a share above 0"),
  ({"multiples": ()}, "multiples: expected some numbers"), ({"num_near": 0}, "num_near: expected a whole number"),
  ({"num_waves_of_sums": 0}, "num_waves_of_sums: expected a whole number"),
  ({"most_left": float("nan")}, "most_left: expected a share above 0")])
def test_a_config_that_could_ask_nothing_is_refused(changes, said):
  with pytest.raises(ValueError, match=said):
    dataclasses.replace(CONFIG, **changes)
