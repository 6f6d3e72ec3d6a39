"""Descents in turns, snapping by hand and restarts, each with made up fits: who goes on, and what is taken."""

import math
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from symformer_jax.language.expression import number
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.refinement import bounded, local as local_lib, restarts, snapping, solve, uncertainty
from symformer_jax.refinement.special_values import SpecialValue

# --- within bounds ---------------------------------------------------------------------------------------------------


def descended(monkeypatch, paths, *, max_steps):
  """The best of starts whose losses after each turn are given; `None` at the end of one that has ended."""
  asked = []

  def descend(evaluate, start, y, weights, box, *, max_steps, damping):
    place, turn = int(start[0]), int(start[1])
    asked.append((place, turn, max_steps, damping))
    losses = paths[place]
    is_done = turn + 1 < len(losses) and losses[turn + 1] is None
    return bounded.Found(np.array([place, turn + 1.0]), float(losses[turn]), np.zeros(2, bool), is_done, 7.0 + turn)

  monkeypatch.setattr(bounded, "descend", descend)
  starts = np.array([[place, 0.0] for place in range(len(paths))])
  found = bounded.descend_from_all(None, starts, None, None, None, max_steps=max_steps)
  return found, asked


def test_a_few_of_those_that_have_not_ended_go_on_from_where_they_were(monkeypatch):
  paths = [[9.0, None], *([[5.0 + place, 4.9 + place, 4.8 + place, None] for place in range(5)])]
  found, asked = descended(monkeypatch, paths, max_steps=120)
  # All take fifty steps; the four best two turns more, of fifty and of what is left.
  first, more = asked[:6], asked[6:]
  assert [(place, steps, damping) for place, _, steps, damping in first] == [(i, 50, 1e-3) for i in range(6)]
  assert more[:2] == [(1, 1, 50, 7.0), (1, 2, 20, 8.0)] and found.loss == 4.8 and found.is_done
  # The others would not come to 4.8 at their pace of a tenth a turn.
  assert [each[:3] for each in more[2:]] == [(2, 1, 50), (3, 1, 50), (4, 1, 50)]
  for max_steps, turns in ((30, [30]), (50, [50]), (51, [50, 1]), (100, [50, 50]), (101, [50, 50, 1])):
    _, asked = descended(monkeypatch, [[5.0, 4.9, 4.8, 4.7]], max_steps=max_steps)
    assert [steps for *_, steps, _ in asked] == turns
  _, asked = descended(monkeypatch, paths, max_steps=30)
  assert [steps for *_, steps, _ in asked] == [30] * 6


@pytest.mark.parametrize(("second", "num_turns"), [(4.0, 3), (3.9, 4), (4.1, 2)])
def test_a_start_goes_on_while_the_best_is_within_its_reach(second, num_turns, monkeypatch):
  # The best is 1; after its first turn this one is at 5.
  paths = [[1.0, None], [5.0, second, 2.5 if second < 4 else 3.5, 2.0, None]]
  _, asked = descended(monkeypatch, paths, max_steps=200)
  # A pace of 1 a turn and three turns left, counted before the turn: just 1 is within reach.
  assert sum(place == 1 for place, *_ in asked) == num_turns


def test_of_equal_ends_the_one_that_went_on_is_taken_for_it_may_have_ended(monkeypatch):
  found, _ = descended(monkeypatch, [[5.0, 5.0, None]], max_steps=100)
  assert found.is_done and found.constants.tolist() == [0, 2]
  found, _ = descended(monkeypatch, [[5.0, 5.5, 5.6, 5.7]], max_steps=150)
  assert found.loss == 5.0


def line_at(x):
  return lambda c: np.stack([c[0] * x + c[1], x, np.ones_like(x)])


FREE = np.full(2, -np.inf), np.full(2, np.inf)


def test_damping_eases_after_steps_that_help_and_stiffens_after_others():
  x = np.arange(5.0)
  found = bounded.descend(line_at(x), np.zeros(2), 2 * x + 1, np.ones(5), FREE, max_steps=1)
  assert found.damping == pytest.approx(1e-4)
  found = bounded.descend(line_at(x), np.zeros(2), 2 * x + 1, np.ones(5), FREE, max_steps=1, damping=5.0)
  assert found.damping == pytest.approx(0.5)
  # Of a wrong slope no step helps: it stiffens to the end.
  wrong = bounded.descend(lambda c: np.stack([c[0] * x, -x]), np.ones(1), 5 * x, np.ones(5),
                          (FREE[0][:1], FREE[1][:1]), max_steps=3)
  assert wrong.damping == pytest.approx(1.0) and not wrong.is_done and wrong.constants.tolist() == [1]
  stuck = bounded.descend(lambda c: np.stack([c[0] * x, -x]), np.ones(1), 5 * x, np.ones(5),
                          (FREE[0][:1], FREE[1][:1]), max_steps=99)
  assert stuck.is_done and stuck.damping == pytest.approx(1e13)


def test_a_descent_that_is_damped_beyond_all_steps_has_ended():
  x = np.arange(5.0)
  for damping, is_done in ((1e12, False), (1.1e12, True)):
    found = bounded.descend(line_at(x), np.zeros(2), 2 * x + 1, np.ones(5), FREE, max_steps=1, damping=damping)
    assert found.is_done is is_done


@pytest.mark.parametrize(("gain", "is_done"), [(0.7e-15, True), (1.5e-15, False)])
def test_a_gain_of_a_few_roundings_is_none(gain, is_done):
  looks = [1.0, 1 - gain / 2]  # a sum of squares of 1, and of less
  found = bounded.descend(lambda c: np.array([[looks.pop(0)], [1.0]]), np.zeros(1), np.zeros(1), np.ones(1),
                          (FREE[0][:1], FREE[1][:1]), max_steps=1)
  assert 1 - found.loss == pytest.approx(gain, rel=0.2, abs=0) and found.is_done is is_done and not looks


def test_a_gain_that_is_just_a_rounding_is_none():
  before = np.array([31622776.0, 6168, 97, 13, 4, 2, 1, 1])  # a sum of squares of 1e15, and of one less
  looks = [before, before * [1, 1, 1, 1, 1, 1, 1, 0]]
  found = bounded.descend(lambda c: np.stack([looks.pop(0), np.ones(8)]), np.zeros(1), np.zeros(8), np.ones(8),
                          (FREE[0][:1], FREE[1][:1]), max_steps=1)
  assert found.loss == 1e15 - 1 and found.is_done


def test_along_a_constant_that_hardly_matters_a_step_goes_to_the_bound_in_silence():
  asked = []
  bounded.descend(lambda c: asked.append(c.tolist()) or np.array([[1e10], [1e-300]]), np.array([3.0]), np.zeros(1),
                  np.ones(1), (np.zeros(1), np.full(1, 5.0)), max_steps=1)
  assert asked == [[3], [0]]


@pytest.mark.parametrize(("cosine", "is_done"), [(0.9e-12, True), (1e-12, True), (1.1e-12, False)])
def test_a_residual_across_all_derivatives_leaves_nothing_to_gain(cosine, is_done):
  found = bounded.descend(lambda c: np.array([[1.0, cosine], [0, 3]]), np.zeros(1), np.zeros(2), np.ones(2),
                          (FREE[0][:1], FREE[1][:1]), max_steps=1)
  assert found.is_done is is_done


def test_directions_have_length_one_whatever_their_size():
  jacobian = np.array([[3e200, 0.0, 1e-200], [4e200, 0.0, 0.0]])
  directions, norms = bounded._directions(jacobian)
  np.testing.assert_allclose(directions, [[0.6, 0, 1], [0.8, 0, 0]])
  np.testing.assert_allclose(norms, [5e200, 1, 1e-200])
  assert bounded._directions(np.zeros((0, 2)))[1].tolist() == [1, 1]
  directions, norms = bounded._directions(np.column_stack([[0.3, 0, 0, 0.4], [1.5e308] * 4]))  # in silence
  np.testing.assert_allclose(directions, [[0.6, 0.5], [0, 0.5], [0, 0.5], [0.8, 0.5]])
  np.testing.assert_allclose(norms, [0.5, np.inf])


def test_what_has_no_slope_left_or_gains_nothing_has_ended():
  x = np.array([-1.0, 1.0, -1.0, 1.0])
  level = bounded.descend(lambda c: np.stack([c[0] * np.ones(4), np.ones(4)]), np.array([0.0]), x, np.ones(4),
                          (FREE[0][:1], FREE[1][:1]), max_steps=9)
  assert level.is_done and level.loss == 4 and level.damping == pytest.approx(1e-3)
  held = bounded.descend(line_at(np.arange(4.0)), np.array([9.0, 9.0]), np.zeros(4), np.ones(4),
                         (np.array([3.0, 2.0]), np.array([9.0, 9.0])), max_steps=50)
  assert held.constants.tolist() == [3, 2] and held.is_at_bound.all() and held.is_done


# --- snapping --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rise", "num_held", "dof"), [
  (0.0, 1, 5), (3.0, 1, 5), (3.0, 2, 20), (-1.0, 1, 5), (9.0, 3, 8)])
def test_the_f_test_is_that_of_fisher(rise, num_held, dof):
  expected = stats.f.sf(max(rise, 0.0) / num_held, num_held, dof)
  assert snapping.f_test(rise, num_held, dof) == pytest.approx(expected, rel=1e-9)


def problem_of(jacobian, y, *, floor=0.0, weights=None):
  jacobian, y = np.asarray(jacobian, float), np.asarray(y, float)
  evaluate = lambda c: np.vstack([jacobian @ c, jacobian.T])  # noqa: E731  (a formula that is linear)
  return snapping._Problem(evaluate, y, np.ones(len(y)) if weights is None else np.asarray(weights, float), floor)


def test_points_without_weight_are_left_out_of_a_look():
  problem = problem_of([[1.0], [2.0], [3.0]], [1.0, 1.0, 5.0], weights=[4.0, 0.0, 1.0])
  rss, residual, jacobian = problem._look(np.array([1.0]))
  assert rss == 4.0 and residual.tolist() == [0, -2] and jacobian.tolist() == [[2], [3]]


def test_free_constants_are_fitted_again_and_others_stay():
  rng = np.random.default_rng(0)
  jacobian, y = rng.normal(size=(9, 2)), rng.normal(size=9)
  problem = problem_of(jacobian, y)
  both = problem.refit(np.zeros(2), np.ones(2, bool))
  expected, rss, *_ = np.linalg.lstsq(jacobian, y, rcond=None)
  np.testing.assert_allclose(both.values, expected, rtol=1e-9)
  assert both.rss == pytest.approx(rss[0])
  one = problem.refit(np.array([0.0, 0.7]), np.array([True, False]))
  assert one.values[1] == 0.7 and one.values[0] == pytest.approx(
    jacobian[:, 0] @ (y - 0.7 * jacobian[:, 1]) / (jacobian[:, 0] @ jacobian[:, 0]))
  none = problem.refit(np.array([0.1, 0.7]), np.zeros(2, bool))
  assert none.values.tolist() == [0.1, 0.7] and none.rss == pytest.approx(np.sum((jacobian @ [0.1, 0.7] - y) ** 2))
  lost = snapping._Problem(lambda c: np.full((3, 9), np.nan), y, np.ones(9), 0.0)
  assert lost.refit(np.zeros(2), np.ones(2, bool)).rss == math.inf


def counted(function, slope, y, *, floor=0.0, variance=0.0):
  asked = []

  def evaluate(c):
    asked.append(float(c[0]))
    return np.stack([np.full(len(y), function(c[0])), np.full(len(y), slope(c[0]))])
  problem = snapping._Problem(evaluate, np.asarray(y, float), np.ones(len(y)), floor)
  problem.variance = variance
  return problem, asked


def test_a_refit_ends_where_a_step_no_longer_matters_beside_the_noise():
  # Each step takes half of what is left of a square: the rss falls by fifteen sixteenths.
  for variance, floor, least in ((0.0, 0.0, 0.0), (1e4, 0.0, 1.0), (0.0, 1e2, 1.0)):
    problem, asked = counted(lambda c: c**2, lambda c: 2 * c, [0.0], floor=floor, variance=variance)
    found = problem.refit(np.array([4.0]), np.ones(1, bool))
    gains = [a**4 - b**4 for a, b in zip(asked, asked[1:], strict=False)]
    if least:  # a ten-thousandth of the variance, a hundredth of the floor
      assert gains[-1] <= least < gains[-2] and found.rss == pytest.approx(asked[-1] ** 4)
    else:
      assert len(asked) == 51  # so many steps at most
  # A billionth of what is left is nothing.
  problem, asked = counted(lambda c: c, lambda c: 1.0, [1.0, -1.0])
  problem.refit(np.array([1e-5]), np.ones(1, bool))
  assert len(asked) == 2


def test_a_refit_is_damped_where_a_step_goes_too_far():
  # A slope that is a tenth of the right one: the first step goes ten times too far.
  problem, asked = counted(lambda c: c, lambda c: 0.1, [1.0])
  found = problem.refit(np.array([0.0]), np.ones(1, bool))
  steps = [1.0 / 0.1 / (1 + damping) for damping in (0, 1e-3, 1e-2, 0.1, 1.0, 10.0)]
  assert asked[1:7] == pytest.approx(steps[:6], rel=1e-6)  # each from 0, ten times as much damped
  assert found.rss < 1e-9
  # Of the other sign nothing helps: it ends where the damping is above one.
  problem, asked = counted(lambda c: c, lambda c: -1.0, [1.0])
  assert problem.refit(np.array([0.0]), np.ones(1, bool)).values[0] == 0.0 and len(asked) == 1 + 6


def test_rounding_leaves_that_of_y_and_of_each_constant():
  eps = np.finfo(float).eps
  problem = problem_of([[2.0, 0.0], [0.0, 3.0]], [1.0, 1.0], floor=40 * eps**2)
  fit = snapping._Fit(np.array([5.0, 7.0]), np.ones(2, bool), 0.0)
  assert problem.rounding_variance(fit) == pytest.approx(eps**2 * (40 + 10**2 + 21**2), rel=1e-9, abs=0)


def test_standard_errors_are_those_of_what_is_free():
  rng = np.random.default_rng(0)
  jacobian = rng.normal(size=(9, 2))
  problem = problem_of(jacobian, rng.normal(size=9))
  problem.variance = 4.0
  found = problem.standard_errors(snapping._Fit(np.zeros(2), np.array([False, True]), 1.0))
  assert found[0] == 0 and found[1] == pytest.approx(2 / np.linalg.norm(jacobian[:, 1]))


def special(value):
  return SpecialValue(value, number(value), 3.0)


@pytest.mark.parametrize(("rise", "p_values", "is_probable", "is_taken"), [
  (2.0, (0.011, 0.011), True, True), (2.0, (0.009, 0.5), True, False), (2.0, (0.5, 0.009), True, False),
  (2.0, (0.5, 0.5), False, False), (-2.0, (0.5, 0.5), True, True)])
def test_a_value_is_accepted_that_no_test_rejects_and_that_is_probable(
  rise, p_values, is_probable, is_taken, monkeypatch):
  problem, asked = problem_of(np.eye(3)[:, :2], np.ones(3)), []
  problem.variance, problem.dof = 4.0, 7
  monkeypatch.setattr(problem, "refit", lambda values, is_free: asked.append((values.tolist(), is_free.tolist())) or (
    snapping._Fit(values, is_free, 10.0 + rise)))
  monkeypatch.setattr(snapping, "f_test", lambda rise, num_held, dof: asked.append((rise, num_held, dof)) or (
    p_values[0] if num_held == 1 else p_values[1]))
  prospect = SimpleNamespace(index=1, candidates=[special(3.0)], is_probable=lambda value, z: asked.append(z) or (
    is_probable))
  full = snapping._Fit(np.array([2.5, 3.1]), np.ones(2, bool), 8.0)
  fit = snapping._Fit(np.array([2.0, 3.1]), np.array([False, True]), 10.0)
  found = problem.accept(full, fit, prospect)
  above = max(rise, 0.0) / 4
  assert asked[0] == ([2.0, 3.0], [False, False]) and asked[1] == ((2.0 + rise) / 4, 2, 7) and asked[2] == (above, 1, 7)
  assert (found is not None) is is_taken
  if found:
    assert found[0].value == 3.0 and found[1].rss == 10.0 + rise and found[2] == p_values[1]
    assert asked[3] == pytest.approx(math.sqrt(above))


def test_the_simplest_value_that_passes_is_taken_and_one_without_a_fit_passed_by(monkeypatch):
  problem = problem_of(np.eye(2), np.ones(2))
  problem.variance, problem.dof = 1.0, 7
  losses = {3.0: math.inf, 3.5: 1.0, 4.0: 1.0}
  monkeypatch.setattr(problem, "refit", lambda values, is_free: snapping._Fit(values, is_free, losses[values[0]]))
  prospect = SimpleNamespace(index=0, candidates=[special(v) for v in losses], is_probable=lambda value, z: True)
  fit = snapping._Fit(np.array([3.1, 1.0]), np.ones(2, bool), 1.0)
  assert problem.accept(fit, fit, prospect)[0].value == 3.5
  prospect.candidates = prospect.candidates[:1]
  assert problem.accept(fit, fit, prospect) is None


def test_as_many_constants_as_points_are_not_snapped():
  jacobian, y = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([3.0, 2.0, 5.0])
  evaluate = lambda c: np.vstack([jacobian @ c, jacobian.T])  # noqa: E731  (a formula that is linear)
  for weights, is_snapped in (([1.0, 1, 1], True), ([1.0, 1, 0], False)):
    found = snapping.snap(evaluate, np.array([3.0, 2.0]), y, np.array(weights))
    assert (found.exact != (None, None)) is is_snapped and np.isnan(found.stderr).all() is np.bool_(not is_snapped)
  assert found.p_value == 1.0 and found.values.tolist() == pytest.approx([3, 2])
  lost = snapping.snap(lambda c: np.full((3, 3), np.nan), np.array([3.0, 2.0]), y, np.ones(3))
  assert lost.rss == math.inf and lost.exact == (None, None)


def test_the_noise_is_that_of_the_full_fit_or_one_where_it_is_known(monkeypatch):
  x = np.arange(1.0, 13)
  y = 2.0 * x + 0.5 * np.tile([1.0, -1.0], 6)
  seen = []
  standard_errors = snapping._Problem.standard_errors
  monkeypatch.setattr(snapping._Problem, "standard_errors", lambda self, fit: seen.append(
    (self.variance, self.dof, self.noise_floor)) or standard_errors(self, fit))
  evaluate = lambda c: np.stack([c[0] * x, x])  # noqa: E731  (a formula that is linear)
  for has_sigma in (False, True):
    seen.clear()
    snapping.snap(evaluate, np.array([2.0]), y, np.ones(12), has_sigma=has_sigma)
    best = x @ y / (x @ x)
    expected = 1.0 if has_sigma else np.sum((best * x - y) ** 2) / 11
    assert seen[0][:2] == (pytest.approx(expected), 10**6 if has_sigma else 11)
    assert seen[0][2] == pytest.approx((10 * np.finfo(float).eps) ** 2 * np.mean(y**2), rel=1e-9, abs=0)
  seen.clear()
  snapping.snap(evaluate, np.array([2.0]), 2.0 * x, np.ones(12))
  rounding = seen[0][2] + (np.finfo(float).eps * 2.0) ** 2 * (x @ x)
  assert seen[0][0] == pytest.approx(rounding, rel=1e-9, abs=0)


# --- errors of constants ---------------------------------------------------------------------------------------------


def test_columns_that_half_of_the_digits_tell_apart_are_identifiable():
  a, b = np.linalg.qr(np.random.default_rng(0).normal(size=(9, 2)))[0].T
  for apart, is_known in ((1.6e-10, True), (1.2e-10, False)):  # the smallest singular value is half of it, times root 2
    found = uncertainty.estimate(np.stack([a, a + apart * b], axis=1), np.ones(9), np.ones(9))
    assert found.is_identifiable.all() is np.bool_(is_known)
  third = uncertainty.estimate(np.stack([a, a, b], axis=1), np.ones(9), np.ones(9))
  assert third.is_identifiable.tolist() == [False, False, True]
  no_residual = np.ones(9)
  no_residual[2] = np.nan
  assert uncertainty.estimate(np.stack([a], axis=1), no_residual, np.ones(9)).dof == 7


# --- restarts --------------------------------------------------------------------------------------------------------


VOCAB = Vocabulary(1)


def restarted(monkeypatch, losses, *, undefined=None, group=None, **options):
  """What is fitted from starts whose first fits leave so much [K, R]."""
  losses = np.asarray(losses, np.float32)
  num, num_starts = losses.shape
  asked = []

  def fit_candidates(ids, values, x, y, weights, *, vocab, is_free, dataset, max_steps, **rest):
    asked.append(SimpleNamespace(ids=np.asarray(ids), values=np.asarray(values), is_free=np.asarray(is_free),
                                 dataset=np.asarray(dataset), max_steps=max_steps, rest=rest))
    if len(asked) == 1:
      found = jnp.arange(num * num_starts, dtype=jnp.float32)[:, None] * jnp.ones((1, 2))
      nums = np.zeros(losses.size, int) if undefined is None else np.ravel(undefined)
      return found, solve.Fit(found, jnp.asarray(losses.ravel()), jnp.zeros(losses.size), jnp.zeros(losses.size),
                              jnp.asarray(nums))
    return values, solve.Fit(*[jnp.asarray(values)[:, 0]] * 5)

  monkeypatch.setattr(solve, "fit_candidates", fit_candidates)
  monkeypatch.setattr(restarts, "draw_starts", lambda key, values, is_free, *, num_starts, spread, is_skeleton: (
    np.asarray(values)[:, None] + np.arange(num_starts)[None, :, None]))
  ids = np.full((num, 2), VOCAB.first_constant_id, np.int32)
  ids[:, 1] = 0
  found = restarts.fit_with_restarts(
    ids, np.ones((num, 2), np.float32), np.ones((9, 1)), np.ones(9), np.ones(9), vocab=VOCAB, key=None,
    num_starts=num_starts, group=group, **options)
  return found, asked


def test_the_best_start_of_each_candidate_is_fitted_to_its_end(monkeypatch):
  (values, fit), (first, last) = restarted(
    monkeypatch, [[3.0, 1.0, 2.0], [1.0, 1.0, 9.0]], max_steps=77, dataset=np.array([4, 5]), plan="loop")
  assert first.max_steps == 8 and last.max_steps == 77 and first.rest == last.rest == {"plan": "loop"}
  assert first.ids.shape == (6, 2) and first.dataset.tolist() == [4, 4, 4, 5, 5, 5] and last.dataset.tolist() == [4, 5]
  assert first.is_free.tolist() == [[True, False]] * 6 and last.values[:, 0].tolist() == [1, 3]
  assert np.asarray(values)[:, 0].tolist() == [1, 3] == np.asarray(fit.loss).tolist()
  assert first.values[:, 0].tolist() == [1, 2, 3, 1, 2, 3]  # those of one candidate side by side
  _, (first, last) = restarted(monkeypatch, [[1.0, 2.0, 3.0, 4.0]])
  assert first.dataset.tolist() == [0] * 4 and last.max_steps is None
  _, (first, _) = restarted(monkeypatch, [[1.0, 2.0]], is_free=np.array([[False, False]]))
  assert not first.is_free.any()


def test_of_starts_without_a_value_that_is_taken_which_is_defined_at_more_points(monkeypatch):
  inf = math.inf
  _, (_, last) = restarted(monkeypatch, [[inf, inf, inf], [inf, 1e30, inf]], undefined=[[5, 2, 9], [1, 0, 1]])
  assert last.values[:, 0].tolist() == [1, 4]
  _, (_, last) = restarted(monkeypatch, [[inf, inf]], undefined=[[9, 8]])  # of nine points
  assert last.values[:, 0].tolist() == [1]


def test_a_group_shares_the_best_start_of_all(monkeypatch):
  (values, _), (_, last) = restarted(
    monkeypatch, [[3.0, 2.0], [1.0, 9.0], [5.0, 4.0]], group=np.array([0, 0, 2], np.int32))
  assert last.values[:, 0].tolist()[0] == 2 and last.values[:, 0].tolist()[2] == 5
  assert last.is_free.tolist() == [[True, False], [False, False], [True, False]]
  assert np.asarray(values)[:, 0].tolist() == [2, 2, 5]


def test_every_candidate_has_starts_of_its_own_tokens():
  values, is_free = jnp.arange(1.0, 7).reshape(2, 3), jnp.array([[True, False, True], [False, True, False]])
  for is_skeleton in (True, False):
    found = np.asarray(restarts.draw_starts(
      jax.random.key(0), values, is_free, num_starts=4, spread=0.5, is_skeleton=is_skeleton))
    assert found.shape == (2, 4, 3)
    held = np.broadcast_to(~np.asarray(is_free)[:, None], found.shape)
    np.testing.assert_array_equal(found[held], np.broadcast_to(np.asarray(values)[:, None], found.shape)[held])
    assert len(set(found[~held].tolist())) == 4 * 3 and (found[:, 0] == np.asarray(values)).all() != is_skeleton
    assert np.abs(found[~held]).max() <= 5 if is_skeleton else (found > 0).all()


def test_four_starts_spread_by_a_half_by_default(monkeypatch):
  class Enough(Exception):
    pass

  asked = []

  def draw_starts(key, values, is_free, **given):
    asked.append(given)
    raise Enough

  monkeypatch.setattr(restarts, "draw_starts", draw_starts)
  with pytest.raises(Enough):
    restarts.fit_with_restarts(np.ones((1, 2), np.int32), np.ones((1, 2)), None, None, None, vocab=VOCAB, key=None)
  assert asked == [{"num_starts": 4, "spread": 0.5, "is_skeleton": False}]


def test_constants_have_neighbours_at_a_cube_root_of_a_rounding():
  assert pytest.approx(np.finfo(float).eps, rel=1e-9, abs=0) == local_lib.PROBE**3
