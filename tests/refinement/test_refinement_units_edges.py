"""Edges of fits: just at a limit, constants of any size and sign, derivatives of any length."""

import math
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

from symformer_jax.language import expression, parser
from symformer_jax.refinement import (
  bfgs,
  bounded,
  local as local_lib,
  problem,
  refine as refine_lib,
  snapping,
  special_values,
  uncertainty,
)
from symformer_jax.refinement.problem import Evaluation, Status


@pytest.mark.parametrize("value", [0.3, 7.0, 12345.678, 1e9])
def test_ordinary_constants_of_either_sign_are_as_likely(value):
  """Of large ones as well, whose share of all is far below a rounding of 1."""
  stderr = 1e-9 * value
  found = snapping._log_ordinary(value, stderr, 50)
  assert found == snapping._log_ordinary(-value, stderr, 50)
  assert found == pytest.approx(math.log(0.5 / (1 + value) ** 2 * stderr), abs=0.01)


@pytest.mark.parametrize(("share", "num_looks"), [(0.9, 2), (1.1, 51)])
@pytest.mark.parametrize(("rss", "variance", "floor", "limit"), [
  (1.0, 10.0, 0.0, 1e-3), (1.0, 0.0, 0.1, 1e-3), (1e6, 0.0, 0.0, 1e-3)])
def test_a_refit_ends_where_a_step_gains_just_so_little(rss, variance, floor, limit, share, num_looks):
  made = snapping._Problem(None, np.ones(3), np.ones(3), floor)
  made.variance = variance
  looks = []

  def look(values):
    looks.append(values)
    return rss - share * limit * (len(looks) - 1), np.ones(3), np.ones((3, 1))

  made._look = look
  made.refit(np.zeros(1), np.ones(1, bool))
  assert len(looks) == num_looks


def evaluation(loss, gradient, gram):
  return Evaluation(jnp.float32(loss), jnp.float32(loss), jnp.asarray(gradient, jnp.float32),
                    jnp.diag(jnp.asarray(gram, jnp.float32)), jnp.ones(1, bool))


@pytest.mark.parametrize(("gradient", "gram", "loss", "is_done"), [
  ([3e-4], [100.0], 1.0, True), ([4e-4], [100.0], 1.0, False), ([3e-4], [100.0], 0.5, False),
  ([3e-4, 3e-5], [100.0, 0.01], 1.0, False), ([3e-4, 1.0], [100.0, 0.0], 1.0, True)])
def test_slopes_are_measured_by_the_length_of_their_derivative_and_by_what_is_left(gradient, gram, loss, is_done):
  """Flat is where the squared cosine of any constant that has a derivative is below a hundredth of a rounding."""
  data = SimpleNamespace(y=jnp.ones(1, jnp.float32), weights=jnp.ones(1, jnp.float32))
  constants = jnp.ones(len(gradient))
  found = bfgs.descent_status(data, evaluation(loss, gradient, gram), jnp.float32(jnp.inf), constants, constants)
  assert (bool(found[0]), int(found[1])) == (is_done, Status.CONVERGED if is_done else Status.STEP_LIMIT)


@pytest.mark.parametrize(("roundings", "is_spread"), [(7.9, False), (8.1, True)])
def test_a_spread_of_eight_roundings_is_one(roundings, is_spread):
  """Of 0 and, with next to no weight, 1: the spread is the root of that weight."""
  spread = roundings * 2.0**-23
  program = SimpleNamespace(slots=jnp.zeros(1, jnp.int32), is_exponent=jnp.zeros(1, bool))
  y, weights = jnp.array([1.0, 0.0]), jnp.array([spread**2, 1.0])
  made = problem.make_problem(program, jnp.ones((2, 1)), y, weights, num_slots=1)
  assert float(made.scale) == pytest.approx(spread if is_spread else 1.0, rel=1e-5)


@pytest.mark.parametrize(("small", "knee"), [(1e-2, 0.1), (1e-12, 5e-4)])
def test_the_knee_is_no_less_than_a_thousandth_of_the_mean_size(small, knee):
  made = problem.Problem(None, None, jnp.array([1.0, -small]), jnp.array([0.5, 0.5]), 1.0, None, None, None, jnp.inf)
  assert float(problem.chordal(made).knee) == pytest.approx(knee, rel=1e-4)


def test_directions_of_zero_length_stay_zero_and_others_have_length_one():
  jacobian = np.array([[3.0, 0.0, 1e-200, 3e200], [4.0, 0.0, 0.0, 4e200]])
  directions, norms = bounded._directions(jacobian)
  np.testing.assert_allclose(norms, [5, 1, 1e-200, 5e200])
  np.testing.assert_allclose(directions, [[0.6, 0, 1, 0.6], [0.8, 0, 0, 0.8]])


def test_a_damped_step_moves_what_is_free_alone():
  directions = np.eye(3)[:, :2]
  step = bounded._step(directions, np.array([2.0, 5.0, 1.0]), np.array([True, False]), 1.0)
  np.testing.assert_allclose(step, [-1.0, 0.0])  # half of the way
  np.testing.assert_allclose(bounded._step(directions, np.array([2.0, 5, 1]), np.ones(2, bool), 0.25), [-1.6, -4])


def test_a_constant_at_its_bound_is_pushed_against_it_or_not():
  """Of (c - 3)**2 within [0, 2] and [4, 5], and [3, 5]: at a bound, but not pushed."""
  def evaluate(constants):
    return np.stack([constants[0] * np.ones(4), np.ones(4)])

  for box, constant, is_held in (((0.0, 2.0), 2, True), ((4.0, 5.0), 4, True), ((3.0, 5.0), 3, False)):
    low, high = (np.array([end]) for end in box)
    found = bounded.descend(evaluate, np.array([9.0]), np.full(4, 3.0), np.ones(4), (low, high), max_steps=30)
    assert found.constants[0] == pytest.approx(constant, abs=1e-6) and found.is_at_bound.tolist() == [is_held]
    assert found.is_done


def test_standard_errors_of_many_points_need_memory_for_their_derivatives_alone():
  # All left singular vectors of so many points would fill 320 GB.
  x = np.arange(200_000) / 1e5 - 1
  found = uncertainty.estimate(np.stack([np.ones_like(x), x], axis=1), np.where(np.arange(len(x)) % 2, 0.5, -0.5),
                               np.ones(len(x)))
  spread = np.sqrt(np.sum((x - x.mean()) ** 2))
  assert found.dof == len(x) - 2 and found.is_identifiable.all()
  np.testing.assert_allclose(found.stderr[1], found.residual_std / spread, rtol=1e-9)
  np.testing.assert_allclose(found.correlation[0, 1], -x.mean() / np.sqrt(np.mean(x**2)), atol=1e-9)


def test_the_covariance_of_constants_that_are_told_apart_beside_those_that_are_not():
  rng = np.random.default_rng(0)
  basis = np.linalg.qr(rng.normal(size=(9, 3)))[0]
  jacobian = np.column_stack([2 * basis[:, 0], basis[:, 1], 3 * basis[:, 1], 0 * basis[:, 2]])
  found = uncertainty.estimate(jacobian, basis[:, 2], np.full(9, 4.0), has_sigma=False)
  assert found.is_identifiable.tolist() == [True, False, False, False] and found.dof == 5
  # A sum of squares of 4 on five degrees, over 4 times the square of a length of 2.
  assert found.covariance[0, 0] == pytest.approx(4 / 5 / 16) and np.isinf(found.covariance[1:]).all()
  assert found.residual_std == pytest.approx(math.sqrt(4 / 5))
  known = uncertainty.estimate(jacobian[:, :1], basis[:, 2], np.full(9, 4.0), has_sigma=True)
  assert known.stderr[0] == pytest.approx(1 / 4) and known.correlation[0, 0] == pytest.approx(1)


@pytest.mark.parametrize(("share", "is_identifiable"), [(0.9e-6, True), (1.1e-6, False)])
def test_a_constant_with_a_millionth_of_an_undetermined_direction_is_undetermined(share, is_identifiable):
  """Of e1, e1 + s*e2 and e2 the sum with 1, -1 and s vanishes."""
  size = share * math.sqrt(2)
  jacobian = np.zeros((6, 3))
  jacobian[0] = 1, 1, 0
  jacobian[1] = 0, size, 1
  found = uncertainty.estimate(jacobian, np.arange(6.0), np.ones(6))
  assert found.is_identifiable.tolist() == [False, False, is_identifiable]


def test_zero_and_each_sign_have_their_nearest_values():
  for value in (0.5, -0.5):
    found = special_values.nearest(value)
    assert found[0].bits <= found[1].bits and {0.0, value} <= {special.value for special in found}
    assert all(special.value == 0 or special.value * value > 0 for special in found)
  values = [special.value for special in special_values.nearest(12.01 * math.sqrt(3))]
  assert any(math.isclose(value, 12 * math.sqrt(3)) for value in values)
  values = [special.value for special in special_values.nearest(13.01 * math.sqrt(3))]
  assert not any(math.isclose(value, 13 * math.sqrt(3)) for value in values)


def test_neighbours_are_looked_at_on_both_sides_by_their_own_size(monkeypatch):
  asked = []

  class Local(local_lib.LocalModel):
    def __init__(self, theta):
      from symformer_jax.language import parser

      self.theta, self.node = np.array(theta), parser.parse("(1.5*x)**2.5", ("x",))

    def predict_many(self, thetas):
      asked.append(thetas)
      return np.where(thetas[:, :1] > 4, np.nan, 1.0) * np.ones((len(thetas), 3))

  assert Local([4.0, 0.0])._has_neighbours().tolist() == [False, True]
  steps = asked[0] - [4.0, 0.0]
  probe = local_lib.PROBE
  np.testing.assert_allclose(steps, [[4 * probe, 0], [0, probe], [-4 * probe, 0], [0, -probe]], atol=1e-12)


def test_slopes_beyond_double_precision_are_infinite_in_silence():
  seen = bounded._Look(np.full(2, 1.5e308), np.ones((2, 1)), np.ones(1), math.inf)
  assert seen.gradient.tolist() == [math.inf]
  assert np.isnan(seen._replace(residual=np.full(2, math.inf), directions=np.array([[0.0], [1]])).gradient).all()


def test_residuals_beyond_double_precision_end_a_descent_in_silence():
  free = np.full(1, -np.inf), np.full(1, np.inf)
  found = bounded.descend(lambda c: np.array([[1.5e308], [1.0]]), np.zeros(1), np.array([-1.5e308]), np.ones(1), free,
                          max_steps=9)
  assert found.loss == math.inf and found.is_done


@pytest.mark.parametrize("box", [((0.0,), (1.0,)), ((1.0,), (2.0,))])
def test_a_bound_holds_nothing_where_there_is_no_slope(box):
  found = bounded.descend(lambda c: np.stack([np.full(4, 3.0), np.zeros(4)]), np.ones(1), np.zeros(4), np.ones(4),
                          tuple(np.array(box)), max_steps=9)
  assert found.constants.tolist() == [1] and found.is_at_bound.tolist() == [False]


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_a_descent_ends_in_the_same_place_whatever_the_unit_of_y(unit):
  x = np.linspace(0, 2, 9)
  found = bounded.descend(
    lambda c: unit * np.stack([np.exp(c[0] * x), x * np.exp(c[0] * x)]), np.zeros(1), unit * np.exp(0.7 * x),
    np.ones(9), (np.full(1, -np.inf), np.full(1, np.inf)), max_steps=50)
  assert found.constants == pytest.approx([0.7], rel=1e-9)


class SeenError(Exception):
  """Ends what is asked as soon as it has been seen."""


@pytest.mark.parametrize(("start", "has_start"), [({"a": 2.0}, True), (None, False)])
def test_a_start_of_the_user_is_told_to_the_fit_of_all_sets(start, has_start, monkeypatch):
  def fit_sets(*given, **named):
    raise SeenError(named.get("has_start"))
  monkeypatch.setattr(refine_lib, "_fit_sets", fit_sets)
  x = np.linspace(1, 2, 9)
  with pytest.raises(SeenError, match=f"^{has_start}$"):
    refine_lib.refine("a*x0", x[:, None], 3 * x, start=start)


def test_fillings_are_drawn_by_seed_zero_unless_another_is_named():
  node = parser.parse("a*x + b", ("x",), allow_symbols=True)
  assert refine_lib.draw_fillings(node, num=3) == refine_lib.draw_fillings(node, num=3, seed=0)


def test_functions_of_a_formula_stay_as_they_are_written(monkeypatch):
  seen = set()

  def fit_sets(formula, *given, **named):
    seen.update(part.token for part in expression.walk(formula.node))
    raise SeenError
  monkeypatch.setattr(refine_lib, "_fit_sets", fit_sets)
  with pytest.raises(SeenError):
    refine_lib.refine("a*tanh(x0) + abs(x0 - b)", np.arange(9.0)[:, None], np.ones(9))
  assert {"tanh", "abs"} <= seen


def test_every_way_to_end_has_its_number_and_its_words():
  """Numbers stand in saved results."""
  assert {status.name: int(status) for status in problem.Status} == {
    "CONVERGED": 0, "STEP_LIMIT": 1, "DIVERGED": 2, "NO_CONSTANTS": 3, "UNDEFINED": 4}
  assert list(problem.STATUS_TEXT) == list(problem.Status) and len(set(problem.STATUS_TEXT.values())) == 5
