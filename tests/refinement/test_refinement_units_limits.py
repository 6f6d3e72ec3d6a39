"""Fits just at their limits, and numbers that must stand where they stand: by definitions and made up parts."""

import math
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from symformer_jax.errors import InputError
from symformer_jax.language import parser
from symformer_jax.language.expression import number
from symformer_jax.refinement import (
  bfgs,
  bounded,
  inputs,
  levenberg_marquardt,
  local as local_lib,
  named,
  problem as problem_lib,
  refine as refine_lib,
  restarts,
  snapping,
  solve,
  special_values,
  uncertainty,
)
from symformer_jax.refinement.named import NamedFormula
from symformer_jax.refinement.problem import Status

# --- starts ----------------------------------------------------------------------------------------------------------


def test_each_start_around_a_given_one_is_drawn_by_itself():
  starts = refine_lib._draw_starts(("a",), {"a": -3.0}, 2000, np.random.default_rng(0))[:, 0]
  drawn = np.log(starts / -3)[1:] / np.linspace(0.3, 2.0, 2000)[1:]
  assert abs(drawn.mean()) < 0.1 and drawn.std() == pytest.approx(1, rel=0.1)


def test_starts_around_predicted_constants_are_theirs_times_a_drawn_factor():
  key, values = jax.random.key(3), jnp.array([[2.0, -5.0]])
  found = restarts.draw_starts(key, values, jnp.ones((1, 2), bool), num_starts=4, spread=0.5, is_skeleton=False)
  expected = np.asarray(values)[:, None] * np.exp(0.5 * np.asarray(jax.random.normal(key, (1, 4, 2))))
  np.testing.assert_allclose(found[:, 1:], expected[:, 1:], rtol=1e-5)


def test_as_many_rows_as_are_screened_are_not_screened_within_bounds(monkeypatch):
  asked = []

  def from_all(evaluate, starts, y, weights, box, *, max_steps):
    asked.append(len(y))
    return bounded.Found(np.zeros(1), 1.0, np.zeros(1, bool), True, 1.0)
  monkeypatch.setattr(bounded, "descend_from_all", from_all)
  formula = SimpleNamespace(evaluator=lambda x: None)
  x = np.ones((refine_lib.SCREENING_ROWS, 1))
  refine_lib._descend_within(formula, (x, x[:, 0], x[:, 0], ("x",)), np.zeros((2, 1)), None, 9, has_start=False)
  assert asked == [refine_lib.SCREENING_ROWS]


def test_of_many_rows_the_same_are_seen_each_time():
  """Those of one seed: what is fitted is the same in every process."""
  x = np.arange(2000.0)[:, None]
  seen = refine_lib._some_rows((x, x[:, 0], x[:, 0], ()))[1]
  drawn = np.random.default_rng(0).choice(2000, refine_lib.SCREENING_ROWS, replace=False)
  assert seen.tolist() == sorted({*drawn.tolist(), 0, 1999})


def fit_of(*loss):
  return solve.Fit(None, np.array(loss), None, None, np.zeros(len(loss), int))


def test_ends_that_a_millionth_tells_apart_are_two():
  for apart, leaders in ((1.5e-6, [1, 0]), (0.5e-6, [1])):
    assert refine_lib._leaders(fit_of(1 + apart, 1.0)).tolist() == leaders
  assert refine_lib._leaders(fit_of(1.0 * (1 + 1e-6), 1.0)).tolist() == [1]


def test_the_best_start_may_be_exact():
  assert refine_lib._best(fit_of(3.0, 0.0, 0.0)) == 1


def test_constants_are_filled_in_from_starts_of_seed_zero_unless_another_is_named(monkeypatch):
  asked = []
  monkeypatch.setattr(refine_lib, "_fit_sets", lambda formula, sets, starts, *given, **named: (
    asked.append(starts) or [SimpleNamespace(node=None)]))
  node = parser.parse("a*x", ("x",), allow_symbols=True)
  refine_lib.fill_in(node, np.ones((3, 1)), np.ones(3), np.ones(3))
  refine_lib.fill_in(node, np.ones((3, 1)), np.ones(3), np.ones(3), seed=0)
  np.testing.assert_array_equal(asked[0], asked[1])


def test_of_one_column_by_another_name_x_may_be_a_constant():
  inputs.check_names(["x"], {}, 1)
  with pytest.raises(InputError, match="'x' is no column: the 2 columns of an array are x0 ... x1"):
    inputs.check_names(["x"], {}, 2)


# --- programs --------------------------------------------------------------------------------------------------------


def test_a_formula_with_an_operator_on_request_has_a_token_for_it():
  node = parser.parse("a*x", ("x",), allow_symbols=True)
  assert not NamedFormula(node, ("a",)).vocab.has_requested
  requested = node._replace(token="max")
  assert NamedFormula(requested, ("a",)).vocab.has_requested


def test_numbers_of_a_formula_of_names_stand_where_they_are_written():
  formula = NamedFormula(parser.parse("2.5*x**a + 7", ("x",), allow_symbols=True), ("a",))
  program = jax.tree.map(np.asarray, formula.program())
  assert sorted(program.numbers[program.numbers != 0].tolist()) == [2.5, 7.0]
  assert program.slots.tolist() == formula.slots.tolist() and program.slots.max() == 0


def test_no_more_of_a_program_is_read_than_its_tokens(monkeypatch):
  asked = []

  def run(program, constants, columns, *, num_tokens=None):
    asked.append(num_tokens)
    return jnp.ones((2, 3))
  monkeypatch.setattr(problem_lib.interpreter, "run", run)
  made = problem_lib.Problem(None, None, jnp.ones(3), jnp.ones(3) / 3, jnp.float32(1), None, None, jnp.int32(5),
                             jnp.float32(jnp.inf))
  problem_lib.evaluate(made, jnp.zeros(1), jnp.ones(3, bool))
  assert [int(each) for each in asked] == [5]


# --- ends ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "is_exact"), [(0.999, True), (1.001, False)])
def test_ten_roundings_of_each_target_are_exact(share, is_exact):
  made = problem_lib.Problem(None, None, jnp.full(4, 3.0), jnp.full(4, 0.25), None, None, None, None, None)
  loss = share * (10 * float(np.finfo(np.float32).eps) * 3) ** 2
  assert bool(problem_lib.is_exact(made, jnp.float32(loss))) is is_exact


def test_nothing_left_of_a_target_of_zeros_is_exact():
  made = problem_lib.Problem(None, None, jnp.zeros(3), jnp.ones(3) / 3, None, None, None, None, None)
  assert bool(problem_lib.is_exact(made, jnp.float32(0)))


@pytest.mark.parametrize(("share", "is_used"), [(0.9, False), (1.2, True)])
def test_curvature_is_measured_by_the_lengths_of_the_step_and_of_the_change(share, is_used):
  eps = float(np.finfo(np.float32).eps)
  step, change = np.array([8.0, 0.0], np.float32), np.array([share * eps * 4.0, 4.0], np.float32)
  found = bfgs._update(jnp.eye(2), jnp.asarray(step), jnp.asarray(change))
  assert bool(np.any(np.asarray(found) != np.eye(2))) is is_used


EPS = np.finfo(np.float32).eps


def with_slope(cosine):
  return problem_lib.Evaluation(jnp.float32(1), jnp.float32(1), jnp.array([cosine], jnp.float32), jnp.eye(1),
                                jnp.ones(1, bool))


# The square of a slope of 1 by that of its derivative is just a hundredth of a rounding.
FLAT = problem_lib.Evaluation(jnp.float32(1), jnp.float32(1), jnp.ones(1), jnp.array([[1 / (np.float32(0.01) * EPS)]]),
                              jnp.ones(1, bool))


@pytest.mark.parametrize(("changes", "expected"), [
  ({"evaluation": FLAT}, (True, Status.CONVERGED)),
  ({"reduction": 4 * EPS, "predicted": 4 * EPS}, (True, Status.CONVERGED)),  # both just four roundings of what is left
  ({"trial": jnp.array([1 + EPS])}, (True, Status.DIVERGED)),  # a step of just one rounding
  ({"trial": jnp.array([-1 - 2 * EPS]), "constants": -jnp.ones(1)}, (False, Status.STEP_LIMIT))])
def test_levenberg_and_marquardt_end_just_at_their_limits(changes, expected):
  made = problem_lib.Problem(None, None, jnp.ones(1), jnp.ones(1), jnp.float32(1), jnp.ones(1, bool),
                             jnp.zeros(1, bool), None, jnp.float32(jnp.inf))
  method = levenberg_marquardt.LevenbergMarquardt()
  state = method.init(made, jnp.ones(1))._replace(
    evaluation=with_slope(0.5), trial=jnp.array([2.0]), num_steps=jnp.int32(5), scale=jnp.ones(1))
  found = method.terminate(made, state._replace(**changes))
  assert (bool(found[0]), int(found[1])) == expected


@pytest.mark.parametrize("gain", [0.25, 0.5, 0.7, 0.8])
def test_damping_falls_with_the_share_of_what_was_promised(gain):
  """Nielsen (1999): by 1 - (2*gain - 1)**3, where that is above a third."""
  state = SimpleNamespace(damping=jnp.float32(0.5), predicted=jnp.float32(2.0), growth=jnp.float32(8))
  damping, growth = levenberg_marquardt._update_damping(state, jnp.float32(2 * gain), jnp.asarray(True), 1 / 3)
  assert float(damping) == pytest.approx(0.5 * (1 - (2 * gain - 1) ** 3), rel=1e-5) and float(growth) == 2


def test_derivatives_where_nothing_is_defined_have_no_scale(monkeypatch):
  lost = problem_lib.Evaluation(jnp.float32(jnp.inf), jnp.float32(jnp.inf), jnp.zeros(1), 7 * jnp.eye(1),
                                jnp.zeros(1, bool))
  monkeypatch.setattr(problem_lib, "look", lambda problem, constants, mask: (lost, jnp.zeros((2, 1))))
  made = problem_lib.Problem(None, None, jnp.ones(1), jnp.ones(1), jnp.float32(1), jnp.ones(1, bool),
                             jnp.zeros(1, bool), None, jnp.float32(jnp.inf))
  method = levenberg_marquardt.LevenbergMarquardt(most_bent=0.0)
  assert method.step(made, method.init(made, jnp.ones(1))).scale.tolist() == [0]


@pytest.mark.parametrize(("reduction", "step", "cosine", "expected"), [
  (1.0, 1.0, None, (True, Status.CONVERGED)),
  (EPS, 1.0, 9e-3, (True, Status.CONVERGED)), (2 * EPS, 1.0, 9e-3, (False, Status.STEP_LIMIT)),
  (EPS, 1.0, 2e-2, (False, Status.STEP_LIMIT)), (1.0, EPS, 2e-2, (True, Status.DIVERGED)),
  (1.0, EPS, 9e-3, (True, Status.CONVERGED)), (1.0, 2 * EPS, 9e-3, (False, Status.STEP_LIMIT))])
def test_methods_of_slopes_end_just_at_their_limits(reduction, step, cosine, expected):
  """A gain of a rounding of what is left where it is all but flat, or a step of a rounding of the constants."""
  made = SimpleNamespace(y=jnp.ones(1), weights=jnp.ones(1))
  seen = with_slope(cosine) if cosine else FLAT
  found = bfgs.descent_status(made, seen, jnp.float32(reduction), jnp.array([step], jnp.float32), jnp.ones(1))
  assert (bool(found[0]), int(found[1])) == expected


# --- what the data say -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1e-6, 1e-3, 1.0, 1e3])
def test_standard_errors_have_the_unit_of_their_constant(unit):
  rng = np.random.default_rng(0)
  jacobian, residual = rng.normal(size=(12, 2)), rng.normal(size=12)
  plain, other = (uncertainty.estimate(jacobian * [size, 1.0], residual, np.ones(12)) for size in (1.0, unit))
  assert other.is_identifiable.all()
  np.testing.assert_allclose(other.stderr, plain.stderr / [unit, 1.0], rtol=1e-9)


@pytest.mark.parametrize(("condition", "is_known"), [(2.0**52, True), (2.0**52 * 1.1, False)])
def test_a_condition_of_one_over_a_rounding_is_the_worst(condition, is_known, monkeypatch):
  monkeypatch.setattr(np.linalg, "cond", lambda gram: condition)
  model = SimpleNamespace(jacobian=np.eye(3)[:, :2], is_free=np.ones(2, bool), weights=np.ones(3), noise=1.0)
  assert np.isfinite(local_lib.LocalModel.covariance(model)).all() is np.bool_(is_known)


# --- exact values ----------------------------------------------------------------------------------------------------


def test_likelihoods_are_added_up_within_twelve_standard_errors_either_way():
  """Of one degree of freedom a twentieth lies beyond."""
  stderr = 1e-9
  found = snapping._log_ordinary(0.3, stderr, 1)
  expected = 2 * math.atan(12) / math.pi * stderr * 0.5 / 1.3**2
  assert found == pytest.approx(math.log(expected), abs=2e-4)


def test_a_third_of_the_ordinary_constants_is_above_a_half_and_as_many_below_its_opposite():
  assert special_values.ordinary_cdf(np.array([-0.5, 0.5])).tolist() == pytest.approx([1 / 3, 2 / 3])


def test_the_likelihood_of_an_ordinary_constant_is_added_up_in_tenths_of_its_error():
  middles = np.arange(-119.5, 120) / 10
  value, stderr, dof = 0.3, 0.2, 9
  ends = np.stack([value + stderr * (middles - 0.05), value + stderr * (middles + 0.05)])
  masses = np.diff(special_values.ordinary_cdf(ends), axis=0)[0]
  expected = math.log(float(stats.t.pdf(middles, dof) @ masses))
  assert snapping._log_ordinary(value, stderr, dof) == pytest.approx(expected, abs=1e-9)


def test_special_values_have_odds_of_ten_to_one_unless_others_are_asked_for(monkeypatch):
  asked = []

  class Prospect(snapping._Prospect):
    def __init__(self, index, value, stderr, dof, min_odds):
      asked.append(min_odds)
      super().__init__(index, value, stderr, dof, min_odds)
  monkeypatch.setattr(snapping, "_Prospect", Prospect)
  x = np.arange(1.0, 9)
  for options in ({}, {"min_odds": 3.0}):
    snapping.snap(lambda c: np.stack([c[0] * x, x]), np.array([2.3]), 2.3 * x + np.sin(9 * x), np.ones(8), **options)
  assert set(asked) == {10.0, 3.0}


def test_odds_that_are_just_enough_are_enough():
  prospect = object.__new__(snapping._Prospect)
  prospect._min_log_odds, prospect.log_odds = math.log(10), lambda special, z: math.log(10)
  assert prospect.is_probable(None, 0.0)


def test_a_refit_ends_with_a_step_that_gains_nothing():
  looks = []

  def evaluate(constants):
    looks.append(constants)
    return np.stack([np.full(3, constants[0]), np.ones(3)])
  found = snapping._Problem(evaluate, np.ones(3), np.ones(3), 0.0).refit(np.ones(1), np.ones(1, bool))
  assert found.rss == 0 and len(looks) == 2


def test_a_step_to_where_it_is_as_good_is_not_taken():
  """Of a slope that is half of the right one, to the other side of the optimum."""
  made = snapping._Problem(lambda c: np.array([[c[0]], [0.5]]), np.zeros(1), np.ones(1), 0.0)
  assert made.refit(np.ones(1), np.ones(1, bool)).values.tolist() == [1]


def test_without_exact_values_their_test_says_one():
  x = np.arange(1.0, 9)
  found = snapping.snap(lambda c: np.stack([c[0] * x, x]), np.array([2.34567]), 2.34567 * x + np.sin(9 * x), np.ones(8))
  assert found.exact == (None,) and found.p_value == 1.0


def test_a_tree_is_filled_with_numbers_and_with_exact_values():
  formula = NamedFormula(parser.parse("a*x + b", ("x",), allow_symbols=True), ("a", "b"))
  filled = formula.with_values({"a": 2.0, "b": 3.0}, {"b": number(5)})
  assert filled == parser.parse("2.0*x + 5", ("x",))
  assert named.symbols(formula.node) == ["a", "b"]
