"""Parts of the refinement by themselves, on the host: bounds, starts, special values, errors, limits of each rule."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from symformer_jax.errors import InputError
from symformer_jax.language import expression, parser, printing
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.refinement import (
  bfgs,
  bounded,
  inputs,
  levenberg_marquardt as lm,
  named,
  problem as problem_lib,
  refine,
  restarts,
  results,
  snapping,
  solve,
  special_values,
  uncertainty,
)
from symformer_jax.refinement.problem import Evaluation, Status

# --- within bounds ---------------------------------------------------------------------------------------------------


def line_at(x):
  return lambda c: np.stack([c[0] * x + c[1], x, np.ones_like(x)])


@pytest.mark.parametrize(("box", "expected", "at_bound"), [
  (((-9, 9), (-9, 9)), (2.0, 1.0), [False, False]), (((-9, 1.5), (-9, 9)), (1.5, 2.0), [True, False]),
  (((2.5, 9), (-9, 9)), (2.5, 0.0), [True, False]), (((3, 9), (5, 9)), (3.0, 5.0), [True, True]),
  (((-9, 2.0), (-9, 9)), (2.0, 1.0), None)])
def test_a_line_within_bounds(box, expected, at_bound):
  x = np.array([0.0, 1, 2, 3, 4])
  y, weights = 2 * x + 1, np.array([1.0, 1, 2, 1, 1])
  found = bounded.descend(line_at(x), np.array([0.0, 30.0]), y, weights, tuple(np.array(box, float).T), max_steps=200)
  np.testing.assert_allclose(found.constants, expected, atol=1e-6)
  assert found.is_done and (at_bound is None or found.is_at_bound.tolist() == at_bound)
  residual = found.constants[0] * x + found.constants[1] - y
  assert found.loss == pytest.approx(np.sum(weights * residual**2), abs=1e-12)


def test_a_descent_that_is_cut_short_or_undefined_says_so():
  x = np.array([0.0, 1, 2, 3, 4])
  free = (np.full(2, -np.inf), np.full(2, np.inf))
  found = bounded.descend(line_at(x), np.zeros(2), 2 * x + 1, np.ones(5), free, max_steps=1)
  assert not found.is_done and found.loss < np.sum((2 * x + 1) ** 2)
  lost = bounded.descend(lambda c: np.full((3, 5), np.nan), np.zeros(2), x, np.ones(5), free, max_steps=9)
  # Infinite times 0, of a row without weight.
  beyond = bounded.descend(lambda c: np.full((3, 5), np.inf), np.zeros(2), x, np.zeros(5), free, max_steps=9)
  assert beyond.is_done and beyond.loss == math.inf
  assert lost.is_done and lost.loss == math.inf
  exact = bounded.descend(line_at(x), np.array([2.0, 1.0]), 2 * x + 1, np.ones(5), free, max_steps=9)
  assert exact.is_done and exact.loss == 0 and exact.constants.tolist() == [2, 1]


def test_a_point_without_a_slope_counts_and_leads_nowhere():
  """A root at 0 has an infinite derivative there."""
  x, y = np.arange(4.0), np.array([0.5, 2, 4, 6])
  free = (np.full(1, -np.inf), np.full(1, np.inf))
  found = bounded.descend(lambda c: np.stack([c[0] * x, np.where(x > 0, x, np.inf)]), np.zeros(1), y, np.ones(4), free,
                          max_steps=99)
  np.testing.assert_allclose(found.constants, [2.0], atol=1e-6)
  assert found.loss == pytest.approx(0.25)


def test_the_damped_step_is_that_of_the_normal_equations(rng):
  jacobian, residual, is_free = rng.normal(size=(9, 3)), rng.normal(size=9), np.array([True, False, True])
  step = bounded._step(jacobian, residual, is_free, 0.3)
  j = jacobian[:, is_free]
  np.testing.assert_allclose(step[is_free], -np.linalg.solve(j.T @ j + 0.3 * np.eye(2), j.T @ residual), rtol=1e-9)
  assert step[1] == 0


# --- starts ----------------------------------------------------------------------------------------------------------


def test_starts_spread_by_a_factor_around_what_is_free():
  values, is_free = jnp.asarray([[0.0, -2.0, 3.0]]), jnp.asarray([[False, True, False]])
  found = np.asarray(restarts.draw_starts(
    jax.random.key(1), values, is_free, num_starts=400, spread=0.5, is_skeleton=False))
  assert found.shape == (1, 400, 3) and np.all(found[..., [0, 2]] == [0, 3]) and np.all(found[..., 1] < 0)
  logs = np.log(found[0, 1:, 1] / -2)
  assert logs.std() == pytest.approx(0.5, rel=0.15) and abs(logs.mean()) < 0.1 and found[0, 0, 1] == -2
  drawn = np.asarray(restarts.draw_starts(
    jax.random.key(1), values, is_free, num_starts=400, spread=0.5, is_skeleton=True))[0]
  assert np.all(drawn[:, [0, 2]] == [0, 3]) and drawn[:, 1].min() < -4 and drawn[:, 1].max() > 4
  assert np.abs(drawn[:, 1]).max() <= 5


def test_starts_of_named_constants():
  found = refine._draw_starts(("a", "b"), {"b": -2.0}, 40, np.random.default_rng(0))
  assert found.shape == (40, 2) and found[0, 1] == -2 and np.all(found[:, 1] < 0) and not np.all(found[:, 0] > 0)
  near, far = np.abs(np.log(found[1:20, 1] / -2)), np.abs(np.log(found[20:, 1] / -2))
  assert 0 < np.median(near) < np.median(far)
  sizes = np.abs(found[1::2, 0])  # every second over six decades
  assert sizes.min() < 1e-2 and sizes.max() > 10 and np.all((sizes >= 1e-4) & (sizes <= 1e3))
  assert refine._draw_starts(("a",), {}, 1, np.random.default_rng(0)).shape == (1, 1)


def test_starts_outside_bounds_are_drawn_anew_or_cut():
  starts = np.array([[0.5, 9.0, -9.0]] * 30)
  lower, upper = np.array([0.0, 0.0, 1.0]), np.array([1.0, 2.0, np.inf])
  found = refine._draw_within(starts, lower, upper, np.random.default_rng(0))
  assert np.all(found[:, 0] == 0.5) and np.all(found[:, 2] == 1.0)
  assert len(set(found[:, 1])) == 30 and found[:, 1].min() < 0.3 and 1.7 < found[:, 1].max() <= 2
  wide = refine._draw_within(np.zeros((2, 1)), np.array([-1e308]), np.array([1e308]), np.random.default_rng(0))
  assert wide.tolist() == [[0], [0]]
  assert refine._is_within({"a": 1.0, "b": 2.0}, {"a": (1.0, 2.0), "b": (1.0, 2.0)})
  assert not refine._is_within({"a": 0.99}, {"a": (1.0, 2.0)}) and not refine._is_within({"a": 2.01}, {"a": (1.0, 2.0)})


def test_the_best_start_is_the_first_of_equals_or_the_least_undefined():
  def fit(loss, num_undefined=None):
    return solve.Fit(None, np.array(loss), None, None, np.array(num_undefined or [0] * len(loss)))
  assert refine._best(fit([3.0, 1.0 + 5e-10, 1.0])) == 1 and refine._best(fit([3.0, 1.0 + 2e-9, 1.0])) == 2
  assert refine._best(fit([math.inf, math.inf], [3, 1])) == 1 and refine._best(fit([math.inf, 2.0])) == 1


# --- what a person gives ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("call", "message"), [
  (lambda: inputs.check_bounds(["a"], {}, {}, {"b": (0, 1)}), "bounds: the formula has no constant 'b'"),
  (lambda: inputs.check_bounds(["a"], {}, {"a": 1}, {"a": (0, 1)}), "bounds: 'a' is held"),
  (lambda: inputs.check_bounds(["a"], {}, {}, {"a": (0, 1, 2)}), r"bounds: 'a' takes \(least, largest\)"),
  (lambda: inputs.check_bounds(["a"], {}, {}, {"a": "01"}), r"bounds: 'a' takes \(least, largest\)"),
  (lambda: inputs.check_bounds(["a"], {}, {}, {"a": (0, "b")}), r"bounds: 'a' takes \(least, largest\)"),
  (lambda: inputs.check_bounds(["a"], {}, {}, {"a": (1, 1)}), "bounds: the least value of 'a' must be below"),
  (lambda: inputs.check_bounds(["a"], {"a": 2}, {}, {"a": (0, 1)}), "the start of 'a' must be from 0 to 1, got 2"),
  (lambda: inputs.check_held(["a"], {}, {"b": 1.0}), "hold: the formula has no constant 'b'"),
  (lambda: inputs.check_held(["a"], {"a": 1.0}, {"a": 1.0}), "hold: 'a' has a start as well"),
  (lambda: inputs.check_held(["a"], {}, {"a": math.nan}), "hold: 'a' must be finite"),
  (lambda: inputs.check_held(["a"], {}, {"a": None}), "hold: 'a' must be finite, got None"),
  (lambda: inputs.check_held(["a"], {}, {"a": "1"}), "hold: 'a' must be finite, got '1'"),
  (lambda: inputs.check_names(["a"], {"a": 10**400}, 1), "start of 'a' must be finite, got 10000"),
  (lambda: inputs.read_data([[1.0], [np.inf]], [1.0, 2], None), r"X must be finite, got \[inf\] in row 1"),
  (lambda: inputs.read_data([1.0, 2], [1.0, np.nan], None), "y must be finite, got nan in row 1"),
  (lambda: inputs.read_data([1.0, 2], [1.0, 2], [1.0, 0.0]), "sigma must be positive and finite"),
  (lambda: inputs.read_data([1.0, 2], [[1.0, 2], [1, 2]], None), r"y must have shape \(2,\), got \(2, 2\)"),
  (lambda: inputs.read_columns(np.ones((2, 0))), r"X must be points \[N\] or \[N, D\], got shape \(2, 0\)"),
  (lambda: inputs.pair_up([1, 2], [1], None, False), "2 data sets were given for X, but 1 for y")])
def test_mistakes_are_named(call, message):
  with pytest.raises(InputError, match=message):
    call()


def test_what_is_no_mistake():
  box = inputs.check_bounds(["a", "b"], {"a": 0, "b": 5.0}, {}, {"a": (0, None), "b": (None, 5.0)})
  assert box == {"a": (0, math.inf), "b": (-math.inf, 5.0)}
  x, y, weights, names = inputs.read_data([1.0, 2], [[3.0], [4]], 0.5)
  assert x.shape == (2, 1) and y.tolist() == [3, 4] and weights.tolist() == [4, 4] and names == ("x", "x0")
  assert inputs.read_columns(np.ones((2, 3)))[1] == ("x0", "x1", "x2")
  x, names = inputs.read_columns(pd.DataFrame({"t": [1, 2], 7: [3, 4]}))
  assert names == ("t", "7") and x.tolist() == [[1, 3], [2, 4]] and x.dtype == np.float64
  assert inputs.pair_up([1, 2], [3, 4], [5, 6], False) == [(1, 3, 5), (2, 4, 6)]
  assert inputs.pair_up([1, 2], [3, 4], 5, False) == [(1, 3, 5), (2, 4, 5)]


def test_a_formula_of_names_as_a_program():
  node = parser.parse("b*x1 + a*sin(b) + 2", ("x0", "x1"), allow_symbols=True)
  formula = named.NamedFormula(node, ("a", "b"))
  assert len(formula.ids) == named.TOKEN_MULTIPLE and formula.num_slots == named.SLOT_MULTIPLE
  assert [s for s in formula.slots if s >= 0].count(1) == 2 and sorted(s for s in formula.slots if s >= 0) == [0, 1, 1]
  filled = formula.with_values({"a": 3.0, "b": 0.5})
  at = np.array([[9.0, 4.0]])
  assert expression.evaluate(filled, at)[0] == pytest.approx(0.5 * 4 + 3 * math.sin(0.5) + 2)
  assert named.NamedFormula(node, [f"c{i}" for i in range(4)] + ["a", "b"]).num_slots == 8
  assert named.hold(formula, {}) is formula and named.hold(formula, {"a": 1.5}).names == ("b",)
  merged = named.merge_names(expression.Node("+", (expression.variable(1), expression.variable(2))), 2)
  assert merged.args == (expression.variable(1), expression.variable(0))


def test_held_constants_stand_among_the_others_in_their_order():
  node = parser.parse("a*x + b + c", ("x",), allow_symbols=True)
  snapped = results.SnappedResult({"b": 2.0}, {"b": "2"}, {"b": 0.0}, 1.0, 0.5, node, ("x",))
  result = results.RefineResult(
    {"b": 2.1}, {"b": 0.1}, 1.0, Status.CONVERGED, "", 8, 0.3, np.array([[0.01]]), {"b": False}, 0, node, ("x",),
    snapped)
  assert results.with_held(("b",), result, {}) is result
  for error in (0.0, math.nan):
    found = results.with_held(("a", "b", "c"), result, {"c": 4.0, "a": 3.0}, error=error)
    assert list(found.constants.items()) == [("a", 3.0), ("b", 2.1), ("c", 4.0)]
    np.testing.assert_array_equal(list(found.stderr.values()), [error, 0.1, error])
    np.testing.assert_array_equal(found.covariance, [[error] * 3, [error, 0.01, error], [error] * 3])
    assert found.is_identifiable == {"a": True, "b": False, "c": True}
    assert list(found.snapped.constants.items()) == [("a", 3.0), ("b", 2.0), ("c", 4.0)]
    np.testing.assert_array_equal(list(found.snapped.stderr.values()), [error, 0.0, error])


# --- special values --------------------------------------------------------------------------------------------------


def test_half_of_the_ordinary_constants_are_positive_and_half_of_those_below_one():
  found = special_values.ordinary_cdf(np.array([-1e9, -1.0, -0.0, 1.0, 3.0]))
  assert found.tolist() == pytest.approx([0, 0.25, 0.5, 0.75, 0.875], abs=1e-8)


@pytest.mark.parametrize(("unit", "numerator", "denominator", "prior"), [
  (0, 1, 1, 0.75 * (1 / 2) * (1 / 6) / 2), (0, 0, 1, 0.75 * (1 / 2) * (1 / 2)),
  (0, 1, 2, 0.75 * (1 / 6) * (1 / 2) / (1.5 * 2) / 2), (1, 3, 4, 0.08 * (1 / 20) * (1 / 4) / (1.75 * 2) / 2)])
def test_the_prior_of_a_special_value_is_that_of_the_definition(unit, numerator, denominator, prior):
  for sign in (1, -1):
    special = special_values._special(special_values.UNITS[unit], numerator, denominator, sign)
    assert 2.0**-special.bits == pytest.approx(prior, rel=1e-12)
    assert special.value == sign * numerator / denominator * special_values.UNITS[unit].value


@pytest.mark.parametrize(("unit", "value", "weight"), [
  (0, 1.0, 0.75), (1, math.pi, 0.08), (2, 1 / math.pi, 0.02), (3, math.e, 0.02), (4, math.sqrt(2 * math.pi), 0.01),
  (5, 1 / math.sqrt(2 * math.pi), 0.01), (6, math.sqrt(2), 0.1 / 2**1.5), (11, math.sqrt(10), 0.1 / 10**1.5)])
def test_the_share_of_multiples_of_a_unit(unit, value, weight):
  """A unit itself has one twelfth of it, and as much its opposite."""
  special = special_values._special(special_values.UNITS[unit], 1, 1, 1)
  assert special.value == pytest.approx(value, rel=1e-15)
  assert 2.0**-special.bits == pytest.approx(weight / 24, rel=1e-12)
  assert sum(each.weight for each in special_values.UNITS) < 1 and len(special_values.UNITS) == 12


def test_special_values_are_written_as_what_they_are():
  known = {"pi": math.pi, "exp": math.exp, "sqrt": math.sqrt}
  for unit in special_values.UNITS:
    for numerator, denominator, sign in itertools.product((1, 3), (1, 4), (1, -1)):
      special = special_values._special(unit, numerator, denominator, sign)
      text = printing.to_text(special.node, ())
      assert eval(text, {"__builtins__": {}}, known) == pytest.approx(special.value, rel=1e-12), text
      assert special.value == pytest.approx(sign * numerator / denominator * unit.value, rel=1e-12)
  one, pi = special_values.UNITS[:2]
  assert special_values._special(one, 3, 1, -1).node == expression.number(-3)
  assert special_values._special(pi, 1, 1, -1).node == expression.Node("neg", (pi.node,))
  assert special_values._special(pi, 3, 1, 1).node == expression.Node("*", (expression.number(3), pi.node))


def test_fractions_are_in_lowest_terms_and_small_but_for_whole_numbers():
  found = [s.value for s in special_values.nearest(0.5)]
  assert found.count(0.5) == 1 and 7 / 12 not in found and 7 / 12 in [s.value for s in special_values.nearest(0.58)]
  assert [s.bits for s in special_values.nearest(2.2)] == sorted(s.bits for s in special_values.nearest(2.2))
  assert 12 * math.pi in [s.value for s in special_values.nearest(12 * math.pi)]
  assert 13 * math.pi not in [s.value for s in special_values.nearest(13 * math.pi)]
  assert -500.0 in [s.value for s in special_values.nearest(-499.9)]
  for value in (0.0, 0.3, -7.2):  # 0 is always among them
    [zero] = [s for s in special_values.nearest(value) if s.value == 0]
    assert 2.0**-zero.bits == pytest.approx(0.75 / 4)
  for square in (2, 3, 5, 6, 7, 10):
    assert math.sqrt(square) in [s.value for s in special_values.nearest(math.sqrt(square))]
  for denominator, is_tried in ((11, True), (12, True), (13, False)):
    assert (1 / denominator in [s.value for s in special_values.nearest(1 / denominator)]) is is_tried


# --- what the data say -----------------------------------------------------------------------------------------------


def test_the_covariance_is_that_of_its_definition(rng):
  jacobian, residual, weights = rng.normal(size=(12, 2)) * [1, 1e6], rng.normal(size=12), rng.uniform(0.5, 2, 12)
  jacobian[3], weights[5] = np.nan, 0.0
  used = np.array([i not in (3, 5) for i in range(12)])
  j, w = jacobian[used], weights[used]
  inverse = np.linalg.inv(j.T @ (w[:, None] * j))
  variance = np.sum(w * residual[used] ** 2) / 8
  found = uncertainty.estimate(jacobian, residual, weights)
  np.testing.assert_allclose(found.covariance, variance * inverse, rtol=1e-8)
  np.testing.assert_allclose(found.stderr, np.sqrt(variance * np.diag(inverse)), rtol=1e-8)
  assert found.dof == 8 and found.residual_std == pytest.approx(math.sqrt(variance)) and found.is_identifiable.all()
  np.testing.assert_allclose(uncertainty.estimate(jacobian, residual, weights, has_sigma=True).covariance, inverse)
  expected = inverse[0, 1] / math.sqrt(inverse[0, 0] * inverse[1, 1])
  assert found.correlation[0, 1] == pytest.approx(expected, rel=1e-8)


def test_what_cannot_be_told_apart_is_not_identifiable(rng):
  a, b = rng.normal(size=(2, 9))
  found = uncertainty.estimate(np.stack([a, 2 * a, b, 0 * a], axis=1), rng.normal(size=9), np.ones(9))
  assert found.is_identifiable.tolist() == [False, False, True, False]
  assert np.isinf(found.stderr[[0, 1, 3]]).all() and np.isfinite(found.stderr[2]) and np.isnan(found.correlation[0, 1])
  few = uncertainty.estimate(np.ones((2, 2)) + np.eye(2), np.zeros(2), np.ones(2))
  assert few.dof == 0 and np.isnan(few.residual_std) and np.isnan(few.stderr).all()
  fewer = uncertainty.estimate(np.ones((1, 2)), np.zeros(1), np.ones(1))
  assert fewer.dof == -1 and not fewer.is_identifiable.any()


@pytest.mark.parametrize("dof", [1, 4, 60])
def test_the_likelihood_is_students_and_of_an_ordinary_constant_its_mean(dof):
  z = np.array([-2.0, 0.0, 1.5])
  np.testing.assert_allclose(snapping._log_t(z, dof), stats.t.logpdf(z, dof), rtol=1e-9)
  edges = np.linspace(2 - 0.1 * 12, 2 + 0.1 * 12, 24001)
  density = 0.5 / (1 + np.abs(edges)) ** 2
  expected = np.log(np.trapezoid(stats.t.pdf((edges - 2) / 0.1, dof) * density, edges))
  assert snapping._log_ordinary(2.0, 0.1, dof) == pytest.approx(expected, abs=2e-3)


def test_what_is_tried_for_a_constant():
  def values(value, stderr, min_odds=10.0):
    return [s.value for s in snapping._Prospect(0, value, stderr, 50, min_odds).candidates]
  assert values(3.0001, 1e-4) == [3.0] and values(3.0011, 1e-4) == [] and 3.0 in values(3.0009, 1e-4)
  assert 4.0 in values(4.25, 0.025, 1e-9) and 4.0 not in values(4.25, 0.0249, 1e-9)  # ten standard errors
  assert values(3.0, 0.0) == values(3.0, math.inf) == values(math.nan, 0.1) == [] and values(3.3, 2.0) == []
  assert len(values(0.5, 1e-5, 1.0)) >= len(values(0.5, 1e-5, 1e9))
  prospect = snapping._Prospect(4, 3.0001, 1e-4, 50, 10.0)
  [special] = prospect.candidates
  expected = -special.bits * math.log(2) + stats.t.logpdf(1.0, 50) - snapping._log_ordinary(3.0001, 1e-4, 50)
  assert prospect.index == 4 and prospect.best_log_odds == pytest.approx(expected)
  odds = math.exp(prospect.log_odds(special, 2.0))
  assert snapping._Prospect(0, 3.0001, 1e-4, 50, odds * 0.999).is_probable(special, 2.0)
  assert not snapping._Prospect(0, 3.0001, 1e-4, 50, odds * 1.001).is_probable(special, 2.0)


# --- one fit ---------------------------------------------------------------------------------------------------------


def problem_of(y, weights, *, columns=None):
  num = len(y)
  return problem_lib.Problem(None, columns, jnp.asarray(y), jnp.asarray(weights), jnp.asarray(1.0), jnp.ones(1, bool),
                             jnp.zeros(1, bool), jnp.int32(num), jnp.asarray(jnp.inf))


@pytest.mark.parametrize(("y", "weights", "scale"), [
  ([1.0, 3, 1, 3], [1.0, 1, 1, 1], 1.0), ([1.0, 3, 99, 3], [2.0, 2, 0, 0], 1.0), ([-4.0] * 4, [1.0] * 4, 4.0),
  ([0.25] * 4, [1.0] * 4, 0.25), ([0.0] * 4, [1.0] * 4, 1.0)])
def test_targets_are_measured_by_their_spread_or_else_their_size(y, weights, scale):
  program = type("Program", (), {"slots": jnp.array([-1, 0, 2]), "is_exponent": jnp.array([True, False, True])})
  found = problem_lib.make_problem(program, jnp.ones((4, 2)), jnp.array(y), jnp.array(weights), num_slots=3)
  assert float(found.scale) == pytest.approx(scale) and found.columns.shape == (2, 4)
  np.testing.assert_allclose(found.y, np.where(np.array(weights) > 0, y, 0) / scale)
  np.testing.assert_allclose(found.weights, np.array(weights) / np.sum(weights))
  assert found.is_used.tolist() == [True, False, True] and found.is_exponent.tolist() == [False, False, True]


def test_the_knee_is_the_geometric_mean_of_what_does_not_vanish():
  found = problem_lib.chordal(problem_of([2.0, -8.0, 0.0, 5.0], [0.25, 0.25, 0.5, 0.0]))
  assert float(found.knee) == pytest.approx(4.0)
  tails = problem_lib.chordal(problem_of([1e-20, 1.0], [0.999, 0.001]))
  assert float(tails.knee) == pytest.approx(1e-6, rel=1e-3)


def test_exact_is_ten_roundings_of_y():
  eps = np.finfo(np.float32).eps
  problem = problem_of(np.array([3.0, 4.0], np.float32), np.array([0.5, 0.5], np.float32))
  for factor, expected in ((0.99, True), (1.01, False)):
    assert bool(problem_lib.is_exact(problem, jnp.float32(factor * 100 * eps**2 * 12.5))) is expected


def evaluation(gram, gradient, *, loss=1.0, mask=(True,)):
  return Evaluation(jnp.asarray(loss), jnp.asarray(loss), jnp.asarray(gradient), jnp.asarray(gram), jnp.asarray(mask))


def test_the_step_of_levenberg_and_marquardt_solves_its_equations(rng):
  jacobian = rng.normal(size=(9, 3)).astype(np.float32)
  gram, gradient = jacobian.T @ jacobian, rng.normal(size=3).astype(np.float32)
  step, predicted, solve = lm._solve(evaluation(gram, gradient), jnp.diagonal(jnp.asarray(gram)), jnp.float32(0.2),
                                     jnp.array([False, True, False]))
  np.testing.assert_array_equal(step, solve(jnp.asarray(gradient)))
  moving = [0, 2]
  part = gram[np.ix_(moving, moving)]
  expected = -np.linalg.solve(part + 0.2 * np.diag(np.diag(part)), gradient[moving])
  np.testing.assert_allclose(step[np.array(moving)], expected, rtol=1e-4)
  # What the linear model promises: -2 g.h - h.G.h.
  promised = -2 * gradient[moving] @ expected - expected @ part @ expected
  assert step[1] == 0 and float(predicted) == pytest.approx(promised, rel=1e-3)


@pytest.mark.parametrize(("gain", "is_taken", "damping", "growth"), [
  (1.0, True, 0.1 / 3, 2), (0.5, True, 0.1, 2), (0.6, True, 0.1 * (1 - 0.2**3), 2), (-1.0, False, 0.4, 8)])
def test_damping_follows_nielsens_rule(gain, is_taken, damping, growth):
  state = lm.LevenbergMarquardt().init(problem_of([1.0], [1.0]), jnp.zeros(1))._replace(
    damping=jnp.asarray(0.1), growth=jnp.asarray(4.0), predicted=jnp.asarray(2.0))
  found = lm._update_damping(state, jnp.asarray(2.0 * gain), jnp.asarray(is_taken), 1 / 3)
  assert [float(each) for each in found] == pytest.approx([damping, growth], rel=1e-5)


def test_the_inverse_is_updated_by_the_formula_of_bfgs_or_not_at_all(rng):
  root = rng.normal(size=(3, 3))
  inverse, step = (root @ root.T).astype(np.float32), rng.normal(size=3).astype(np.float32)
  change = (np.diag([1.0, 2, 3]) @ step).astype(np.float32)
  found = np.asarray(bfgs._update(jnp.asarray(inverse), jnp.asarray(step), jnp.asarray(change)))
  np.testing.assert_allclose(found @ change, step, rtol=1e-3, atol=1e-4)  # the secant equation
  np.testing.assert_allclose(found, found.T, rtol=1e-3, atol=1e-4)
  np.testing.assert_array_equal(bfgs._update(jnp.asarray(inverse), jnp.asarray(step), jnp.asarray(-change)), inverse)


@pytest.mark.parametrize(("loss", "gradient", "reduction", "step", "is_done", "status"), [
  (1.0, 0.5, math.inf, 1.0, False, Status.STEP_LIMIT), (0.0, 0.5, math.inf, 1.0, True, Status.CONVERGED),
  (math.inf, 0.5, math.inf, 1.0, True, Status.DIVERGED), (1.0, 0.5, math.inf, 0.0, True, Status.DIVERGED),
  (1.0, 1e-3, math.inf, 0.0, True, Status.CONVERGED), (1.0, 1e-3, 1e-9, 1.0, True, Status.CONVERGED),
  (1.0, 0.5, 1e-9, 1.0, False, Status.STEP_LIMIT), (1.0, 1e-5, math.inf, 1.0, True, Status.CONVERGED)])
def test_how_a_method_of_slopes_ends(loss, gradient, reduction, step, is_done, status):
  problem = problem_of(np.array([1.0], np.float32), np.array([1.0], np.float32))
  found = bfgs.descent_status(problem, evaluation(jnp.eye(1), jnp.array([gradient]), loss=jnp.float32(loss)),
                              jnp.float32(reduction), jnp.array([step]), jnp.ones(1))
  assert (bool(found[0]), int(found[1])) == (is_done, status)


def test_more_points_win_then_the_lower_loss():
  def seen(loss, *mask):
    return evaluation(jnp.eye(1), jnp.zeros(1), loss=loss, mask=mask)
  assert solve._is_better(seen(9.0, True, True), seen(1.0, True, False))
  assert not solve._is_better(seen(1.0, True, False), seen(9.0, True, True))
  assert solve._is_better(seen(1.0, True), seen(2.0, True)) and not solve._is_better(seen(2.0, True), seen(2.0, True))


def test_the_other_parity_is_beside_the_nearest_integer():
  problem = problem_of([1.0], [1.0])._replace(is_exponent=jnp.array([True, True, True, False]))
  found = solve._other_parity(problem, jnp.array([2.1, 1.9, 2.0, 2.1]))
  np.testing.assert_allclose(found, [2.75, 1.25, 2.75, 2.1])


def test_of_equal_skeletons_the_first_leads():
  vocab = Vocabulary(2)
  ids = [expression.encode(parser.parse(text, ("x", "y")), vocab)[0] for text in (
    "1.5*x", "30.5*x", "1.5*y", "0.02*y", "x*y")]
  length = max(map(len, ids))
  padded = np.array([each + [0] * (length - len(each)) for each in ids])
  found = restarts.group_by_skeleton(padded, vocab)
  assert found.tolist() == [0, 0, 2, 2, 4] and found.dtype == np.int32
