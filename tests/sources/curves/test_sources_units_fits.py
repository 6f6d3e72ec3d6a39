"""Fits of curves and of pairs of functions one by one: goals, steps, constants, and which curves go on."""

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT, CurveFitsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, number, variable
from symformer_jax.sources.curves import curve_shapes, inner_pairs, pair_fits
from symformer_jax.sources.curves.curve_fits import _Curves, _Fits, _Goal
from symformer_jax.sources.curves.curve_shapes import Shape
from symformer_jax.sources.curves.pair_fits import Goal, Slots
from symformer_jax.sources.links import LINKS

CONFIG = DEFAULT.curve_fits


def least_squares(design, target):
  scaled = design / np.linalg.norm(design, axis=0)
  return np.sum((target - scaled @ np.linalg.lstsq(scaled, target, rcond=None)[0]) ** 2)


# --- steps -----------------------------------------------------------------------------------------------------------


def test_a_damped_step_is_that_of_scaled_least_squares(rng):
  """Rows of the damping's root below the slopes of length 1, each by itself; what is not finite counts as 0."""
  slopes, errors, damping = rng.normal(size=(3, 2, 20)) * 9, rng.normal(size=(3, 20)), np.array([1e-3, 0.1, 2.0])
  slopes[2, 1, 4], errors[1, 7] = np.nan, np.inf
  found = pair_fits.damped_step(slopes, errors, damping)
  for k in range(3):
    jacobian, error = np.nan_to_num(slopes[k], posinf=0), np.nan_to_num(errors[k], posinf=0)
    sizes = np.linalg.norm(jacobian, axis=1)
    design = np.concatenate([(jacobian / sizes[:, None]).T, np.sqrt(damping[k]) * np.eye(2)])
    expected = np.linalg.lstsq(design, np.append(error, [0, 0]), rcond=None)[0] / sizes
    np.testing.assert_allclose(found[k], expected, rtol=1e-9)
  long = pair_fits.damped_step(1e-3 * slopes[:1], np.abs(errors[:1]) * 1e3, damping[:1])
  assert np.max(np.abs(long)) == pair_fits.LONGEST
  assert not pair_fits.damped_step(np.zeros((1, 2, 20)), errors[:1], damping[:1]).any()


# --- pairs of functions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "constant", "base", "sign"), [
  ("exponentials", 2.0, 0, 1), ("exponentials", -2.0, 0, -1), ("logarithms", -0.5, -1, 1), ("complements", 5.0, 4, 1),
  ("hyperbolas", 0.0, -1, 1), ("hyperbolas", -4.5, -4, -1), ("shifted_roots", 3.0, -1, 1)])
def test_constants_are_told_from_where_the_function_ends(name, constant, base, sign):
  """Of arguments from 1 to 4; a hyperbola of a smaller constant ends at the other side."""
  argument = np.linspace(1, 4, 9)
  slots, logarithms = pair_fits.slots_of([name], argument[None], np.array([constant]))
  assert (slots.bases[0], slots.signs[0]) == (base, sign)
  assert logarithms[0] == pytest.approx(np.log(abs(constant - base)))
  np.testing.assert_allclose(slots.constants(logarithms), [constant])
  values = pair_fits._values(slots, logarithms)
  np.testing.assert_allclose(values[0], inner_pairs.KINDS[name].values(argument, constant))


@pytest.fixture
def pairs(rng):
  """Three pairs of an exponential and a logarithm, or a hyperbola, of two columns each, and a goal beside a line."""
  x, weights = rng.uniform(0.5, 3, 40), rng.uniform(0.2, 2, 40)
  y = np.exp(-0.7 * x) + 0.3 * np.log(x**2 + 1.3) + 2 * x + 1 + 0.01 * rng.normal(size=40)
  goal = Goal(Rows(x[:, None], y, weights), np.column_stack([np.ones(40), x]))
  one, begin = pair_fits.slots_of(["exponentials"] * 3, np.stack([x] * 3), np.array([-0.5, -1.0, 0.4]))
  other, beside = pair_fits.slots_of(["logarithms", "hyperbolas", "logarithms"], np.stack([x**2] * 3),
                                     np.array([2.0, 1.0, 0.2]))
  return x, y, weights, goal, (one, other), np.stack([begin, beside], axis=1)


def left_of_pair(x, y, weights, columns):
  root = np.sqrt(weights)
  beside = root[:, None] * np.column_stack([np.ones(40), x])
  return least_squares(np.column_stack([beside, *(root * each for each in columns)]), root * y) / least_squares(
    beside, root * y)


def test_what_pairs_leave_is_that_of_least_squares_and_factors_are_its_factors(pairs):
  x, y, weights, goal, slots, logarithms = pairs
  state = goal.look(slots, logarithms)
  for k in range(3):
    values = [pair_fits._values(slot, logarithms[:, i])[k] for i, slot in enumerate(slots)]
    assert state.left[k] == pytest.approx(left_of_pair(x, y, weights, values), rel=1e-6)
    assert state.left[k] == pytest.approx(np.sum(state.errors[k] ** 2))
    root = np.sqrt(weights)
    design = root[:, None] * np.column_stack([*(each / np.max(np.abs(root * each)) for each in values), np.ones(40), x])
    rest = np.sqrt(least_squares(design[:, 2:], root * y))
    factors = np.linalg.lstsq(design, root * y, rcond=None)[0][:2] / rest
    np.testing.assert_allclose(state.factors[k], factors, rtol=1e-5)
  np.testing.assert_allclose(np.einsum("pkn,pln->pkl", state.directions, state.directions), [np.eye(2)] * 3, atol=1e-9)


def test_steps_go_down_to_where_slopes_vanish(pairs):
  x, y, weights, goal, slots, logarithms = pairs
  lefts = [pair_fits.fit(slots, logarithms, goal, num).left for num in (0, 1, 3, 40)]
  assert np.all(np.diff(lefts, axis=0) <= 0) and np.all(lefts[1] < lefts[0])
  ended = pair_fits.fit(slots, logarithms, goal, 400)
  for k in range(3):
    for i in range(2):
      for by in (1e-3, -1e-3):
        moved = ended.logarithms.copy()
        moved[k, i] += by
        assert goal.look(slots, moved).left[k] >= ended.left[k] * (1 - 1e-5)
  np.testing.assert_allclose(pair_fits.fit(slots, logarithms, goal, 0).logarithms, logarithms)


def test_a_function_that_is_made_of_what_is_beside_leaves_what_the_other_does(pairs):
  """A hyperbola twice, and a logarithm of a column that is nearly a constant."""
  x, y, weights, goal, *_ = pairs
  same, begin = pair_fits.slots_of(["hyperbolas"], x[None], np.array([1.0]))
  state = goal.look((same, same), np.stack([begin, begin], axis=1))
  assert state.left[0] == pytest.approx(left_of_pair(x, y, weights, [1 / (x + 1)]))
  np.testing.assert_array_equal(state.directions[0, 1], np.zeros(40))
  some = Slots(*(each[[0, 0]] for each in same)).of(np.array([1]))
  assert len(some.kinds) == 1


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_sums_of_functions_have_the_factors_of_weighted_least_squares(scale, rng):
  x, weights = rng.uniform(1, 3, (40, 1)), rng.uniform(0.2, 2, 40)
  nodes = [Node("*", (variable(0), number(scale))), Node("exp", (variable(0),))]
  y = rng.normal(size=40)
  found = inner_pairs.sum_of(nodes, Rows(x, y, weights))
  design, root = np.column_stack([x[:, 0], np.exp(x[:, 0]), np.ones(40)]), np.sqrt(weights)
  factors = np.linalg.lstsq(design * root[:, None], y * root, rcond=None)[0]
  np.testing.assert_allclose(expression.evaluate(found, x), design @ factors, rtol=1e-7)
  with np.errstate(all="ignore"):
    assert inner_pairs.sum_of([Node("*", (variable(0), number(0.0)))], Rows(x, y, weights)) is None
    assert inner_pairs.sum_of([Node("ln", (Node("neg", (variable(0),)),))], Rows(x, y, weights)) is None


# --- curves ----------------------------------------------------------------------------------------------------------


def shape_of(function, starts):
  """A shape of given values, of constants [P, 3] at x."""
  return Shape((), np.array(starts, float), function, lambda constants: variable(0))


X = np.linspace(0.2, 3, 40)
POWERS = shape_of(lambda c: (X + np.exp(c[:, :1])) ** c[:, 1:2], [[0, -1, 0], [0, 2, 0], [1, 0.5, 0], [0.5, -2, 0]])
RATES = shape_of(lambda c: np.exp(c[:, :1] * X), [[-1, 0, 0], [0.5, 0, 0]])


def goals_of(y, weights=None):
  rows = Rows(X[:, None], y, np.ones(40) if weights is None else weights)
  return [_Goal(LINKS["y"], rows, beside) for beside in ((), (variable(0),))]


def left_of_curve(goal, values):
  root = goal.root
  beside = root[:, None] * np.column_stack([np.ones(40), *(X for _ in goal.beside)])
  target = root * goal.rows.y
  return least_squares(np.column_stack([beside, root * values]), target) / least_squares(beside, target)


def test_a_goal_is_what_is_beside_leaves(rng):
  weights = rng.uniform(0.2, 2, 40)
  for goal in goals_of(np.sin(X) + X, weights):
    assert np.linalg.norm(goal.rest) == pytest.approx(1) and not goal.is_met
    columns = np.sqrt(weights)[:, None] * np.column_stack([np.ones(40), *(X for _ in goal.beside)])
    np.testing.assert_allclose(columns.T @ goal.rest, 0, atol=1e-12)
    np.testing.assert_allclose(goal.project(columns.T / np.sqrt(weights)), 0, atol=1e-12)
  assert [goal.is_met for goal in goals_of(2 * X + 1)] == [False, True]


@pytest.mark.parametrize(("size", "is_met"), [(2e-7, False), (0.5e-7, True)])
def test_what_a_line_leaves_of_the_target_is_more_than_rounding(size, is_met):
  off = np.resize([1.0, -1.0], 40)
  off -= np.polyval(np.polyfit(X, off, 1), X)
  y = np.sqrt(1 - size**2) * np.ones(40) + size * off / np.sqrt(np.mean(off**2))
  assert goals_of(y)[1].is_met is is_met


def test_so_many_starts_of_each_shape_begin_for_each_goal(rng):
  goals = goals_of((X + 1.7) ** -1.4 + 0.01 * rng.normal(size=40), rng.uniform(0.2, 2, 40))
  fits = _Fits([POWERS, RATES], goals, 40)
  curves = fits._begun(3)
  assert curves.goals.tolist() == [0] * 5 + [1] * 5 and curves.shapes.tolist() == [0, 0, 0, 1, 1] * 2
  for i, goal in enumerate(goals):
    for k, shape in enumerate((POWERS, RATES)):
      left = np.array([left_of_curve(goal, values) for values in shape.values(shape.starts)])
      chosen = curves.of((curves.goals == i) & (curves.shapes == k)).constants
      np.testing.assert_array_equal(chosen, shape.starts[np.argsort(left, kind="stable")[:3]])
  assert len(_Fits([POWERS], [], 40)._begun(3).goals) == 0


def test_curves_go_down_to_where_slopes_vanish(rng):
  goals = goals_of((X + 1.7) ** -1.4 + 0.003 * rng.normal(size=40), rng.uniform(0.2, 2, 40))
  fits = _Fits([POWERS, RATES], goals, 40)
  begun = fits._begun(3)
  lefts = [fits._fit(begun, num)[1] for num in (0, 1, 3, 30)]
  assert np.all(np.diff(lefts, axis=0) <= 0)
  curves, left = fits._fit(begun, 30)
  values = np.concatenate([(POWERS, RATES)[k].values(c[None]) for k, c in zip(curves.shapes, curves.constants,
                                                                              strict=True)])
  expected = [left_of_curve(goals[i], each) for i, each in zip(curves.goals, values, strict=True)]
  np.testing.assert_allclose(left, expected, rtol=1e-5)
  exact = _Fits([POWERS], goals_of((X + 1.7) ** -1.4), 40)
  assert exact._fit(exact._begun(4), 40)[1].min() < 1e-20
  assert fits._fit(_Curves(np.zeros(0, int), np.zeros(0, int), np.zeros((0, 3))), 3)[1].tolist() == []


def test_of_each_goal_and_shape_the_nearest_is_kept_in_their_order(monkeypatch):
  """Those that are not finite are left out; so many of each goal go on from round to round, few of a shape."""
  goals, shapes = np.array([0, 0, 0, 0, 1, 1, 1]), np.array([2, 2, 5, 7, 5, 5, 2])
  left = [0.3, 0.1, 0.2, np.inf, 0.5, 0.4, 0.6]
  asked = []

  def fit(self, curves, num_steps):
    asked.append((curves.constants[:, 0].astype(int).tolist(), num_steps))
    return curves, np.array([left[i] for i in asked[-1][0]])

  begun = _Curves(goals, shapes, np.arange(7.0)[:, None] * np.ones(3))
  monkeypatch.setattr(_Fits, "_begun", lambda self, num: begun)
  monkeypatch.setattr(_Fits, "_fit", fit)
  found = _Fits([None] * 9, [None, None], 9).nearest(CurveFitsConfig(rounds=((9, 4), (2, 6)), num_alike=2))
  assert asked == [([*range(7)], 4), ([1, 2, 0, 5, 4, 6], 6)]
  assert found.goals.tolist() == [0, 0, 1] and found.constants[:, 0].tolist() == [1, 2, 5]


def test_of_curves_that_leave_as_much_the_first_go_on(monkeypatch):
  begun = _Curves(np.zeros(90, int), np.arange(90), np.zeros((90, 3)))
  monkeypatch.setattr(_Fits, "_begun", lambda self, num: begun)
  monkeypatch.setattr(_Fits, "_fit", lambda self, curves, num: (curves, np.resize([0.3, 0.1, 0.2], 90)))
  found = _Fits([None] * 90, [None], 9).nearest(CurveFitsConfig(rounds=((70, 4),)))
  assert found.shapes.tolist() == [*range(1, 90, 3), *range(2, 90, 3), *range(0, 30, 3)]


def test_shapes_keep_to_the_values_of_a_column():
  """Of years exponentials are counted from the first; what is not above 0 has no powers or logarithms."""
  names = [len(curve_shapes.shapes_of(x, 0, CONFIG)) for x in (X, X - 1, np.ones(9) + 0 * X[:9])]
  assert names[0] > names[1] > 0
  for low, is_far in ((19.0, False), (21.0, True), (-21.0, True)):
    x = np.linspace(low, low + 1, 9)
    node = curve_shapes._exponential(variable(0), x, CONFIG).node(2.0)
    assert any(part.is_number and part.value == -low for part in expression.walk(node)) is is_far
