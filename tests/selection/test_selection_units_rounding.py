"""Rounding of the constants of linear formulas, for which all that a local model says is known by NumPy."""

import dataclasses
import math

from hand_made_rows import parse
import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import expression, parser, programs
from symformer_jax.refinement import snapping, special_values
from symformer_jax.selection import rounding


class Linear:
  """The local model of J*theta, with everything that rounding asks of one."""

  def __init__(self, jacobian, theta, y, *, floor=0.0, **config):
    self.jacobian, self.theta, self.y = np.asarray(jacobian, float), np.array(theta, float), np.asarray(y, float)
    self.weights, self.is_free = np.ones(len(self.y)), np.ones(len(self.theta), bool)
    self.x = np.arange(len(self.y), dtype=float)[:, None]
    self.floor, self.config, self.node = floor, dataclasses.replace(DEFAULT.selection, **config), None
    self.fixed, self.num_refits = [], 0
    self.update()

  def resolve_doubles(self):
    self.is_of_doubles = True

  def loss(self, theta):
    return float(np.sum((self.jacobian @ theta - self.y) ** 2))

  def losses(self, thetas):
    return np.array([self.loss(theta) for theta in thetas])

  def update(self):
    self.sum_of_squares = self.loss(self.theta)

  @property
  def degrees(self):
    return max(len(self.y) - int(self.is_free.sum()), 1)

  @property
  def is_exact(self):
    return self.sum_of_squares / self.degrees <= self.floor

  @property
  def noise(self):
    return max(self.sum_of_squares / self.degrees, self.floor)

  def covariance(self):
    free = self.jacobian[:, self.is_free]
    return np.linalg.inv(free.T @ free) * self.noise

  def fix(self, index, value, covariance):
    self.fixed.append((index, value))
    free = np.flatnonzero(self.is_free)
    row = list(free).index(index)
    self.theta[free] += covariance[:, row] / covariance[row, row] * (value - self.theta[index])
    self.theta[index], self.is_free[index] = value, False

  def refit(self):
    self.num_refits += 1
    if self.is_free.any():
      free = self.jacobian[:, self.is_free]
      rest = self.y - self.jacobian[:, ~self.is_free] @ self.theta[~self.is_free]
      self.theta[self.is_free] = np.linalg.lstsq(free, rest, rcond=None)[0]
    self.update()


def orthogonal(num_rows, lengths, *, noise, theta, seed=0):
  """A fit of orthogonal columns of these lengths that leaves `noise` as the root mean square of its degrees."""
  basis = np.linalg.qr(np.random.default_rng(seed).normal(size=(num_rows, len(lengths) + 1)))[0]
  jacobian = basis[:, : len(lengths)] * lengths
  left = basis[:, -1] * noise * math.sqrt(num_rows - len(lengths))
  return jacobian, np.array(theta, float), jacobian @ np.array(theta, float) + left


# --- digits ----------------------------------------------------------------------------------------------------------


def test_exponents_beyond_six_are_digits_too():
  for value, count in ((3e6, 1), (3e7, 2), (3e-6, 1), (3e-7, 2), (3e12, 3), (3e-130, 4), (1.5e7, 3), (-2e7, 2)):
    assert rounding._num_digits(value) == count
  assert rounding.count_digits(parse("2.5*x + 0.125*sin(3.5*x) + 2*z")) == 2 + 3 + 2


def test_the_fewest_digits_within_a_tolerance_and_at_it():
  assert rounding._fewest_digits(2.25, 0.25) == 2.0 and rounding._fewest_digits(2.25, 0.2) == 2.2
  assert rounding._fewest_digits(0.0, 0.0) == 0.0
  value = 0.12345678901234567
  assert rounding._fewest_digits(value, 0.0) == value  # of more than fifteen digits
  assert rounding._fewest_digits(0.123456789012345, 0.0) == 0.123456789012345


# --- one after the other ---------------------------------------------------------------------------------------------


def test_the_best_determined_is_rounded_first_within_its_room_and_the_others_follow():
  jacobian, theta, y = orthogonal(12, [100.0, 1.0, 10.0], noise=1.0, theta=[2.34567, 7.6543, 1.23456])
  local = Linear(jacobian, theta, y)
  rounding._round_together(local, 0.1)
  # Standard errors of 0.01, 1 and 0.1, a tenth of which is room; 2.3457, 1.2346 and 7.7 are known best in this order.
  assert local.fixed == [(0, 2.346), (2, 1.23), (1, 7.7)] and not local.is_free.any()
  assert local.sum_of_squares == pytest.approx(local.loss([2.346, 7.7, 1.23]))


def test_room_stays_that_of_the_fit_whatever_rounding_costs():
  """Each constant that is held takes a degree of freedom back: the noise is smaller then, the errors are not."""
  jacobian, theta, y = orthogonal(4, [1.0, 1.0], noise=1.0, theta=[7.0, 3.26])
  local = Linear(jacobian, theta, y)
  rounding._round_together(local, 0.26)
  assert local.fixed == [(0, 7.0), (1, 3.0)]  # a standard error of 1, not of the root of two thirds


def test_what_correlates_moves_along():
  jacobian = np.column_stack([np.ones(6), np.ones(6) + 1e-3 * np.arange(6)])
  y = jacobian @ [1.23456, 2.34567] + 0.1 * np.array([1, -2, 1, 1, -2, 1])
  local = Linear(jacobian, np.linalg.lstsq(jacobian, y, rcond=None)[0], y)
  before, noise = local.sum_of_squares, local.noise
  rounding._round_together(local, 0.1)
  assert local.sum_of_squares <= before + 2 * 0.1**2 * noise * (1 + 1e-9)


def test_undetermined_together_they_are_rounded_one_by_one(monkeypatch):
  jacobian, theta, y = orthogonal(8, [1.0, 1.0], noise=2.0, theta=[7.3, 3.2])
  for bad in (np.nan, np.inf, -1e-9):
    asked, local = [], Linear(jacobian, theta, y)
    local.covariance = lambda bad=bad: np.diag([1.0, bad])
    monkeypatch.setattr(rounding, "_round_one_by_one", lambda local, allowed, asked=asked: asked.append(allowed))
    rounding._round_together(local, 0.5)
    assert asked == [pytest.approx(24.0 + 0.25 * 4)] and not local.fixed  # what it leaves, and a quarter of a variance


def test_what_has_no_variance_left_is_rounded_one_by_one(monkeypatch):
  local = Linear(np.eye(3)[:, :2], [2.3456, 7.654], [2.3456, 7.654, 1.0])
  local.covariance = lambda: np.diag([1e-4, 0.0])  # as where the square of a derivative overflows
  asked = []
  monkeypatch.setattr(rounding, "_round_one_by_one", lambda local, allowed: asked.append(allowed))
  rounding._round_together(local, 0.5)
  assert asked == [1.25] and not local.fixed


def test_constants_of_zero_are_the_last_to_be_rounded():
  local = Linear(np.eye(3)[:, :2], [0.0, 7.654], [0.0, 7.654, 1.0])
  rounding._round_together(local, 0.5)
  assert [index for index, _ in local.fixed] == [1, 0]


def test_each_alone_gets_as_few_digits_as_all_may_cost():
  local = Linear(np.eye(2), [2.34, 5.678], [2.34, 5.678])
  rounding._round_one_by_one(local, 0.041**2)
  np.testing.assert_allclose(local.theta, [2.3, 5.68])  # what the first takes is not the second's
  free = Linear(np.eye(2), [2.34, 5.678], [2.34, 5.678])
  free.is_free[0] = False
  rounding._round_one_by_one(free, 0.5**2)
  np.testing.assert_allclose(free.theta, [2.34, 6])
  at_limit = Linear(np.eye(1), [2.25], [2.25])
  rounding._round_one_by_one(at_limit, 0.0625)
  assert at_limit.theta.tolist() == [2.0]
  none = Linear(np.eye(1), [2.25], [9.0])
  rounding._round_one_by_one(none, 1.0)
  assert none.theta.tolist() == [2.25]


def test_in_turn_the_least_determined_is_first_and_gets_the_fewest_digits_that_cost_little():
  jacobian, theta, y = orthogonal(12, [100.0, 1.0], noise=1.0, theta=[2.3456, 7.654])
  local = Linear(jacobian, theta, y)
  seen, refit = [], local.refit

  def refitted():
    seen.append(local.theta.copy())
    refit()
  local.refit = refitted
  before = local.sum_of_squares
  rounding._round_in_turn(local, 0.5)
  # A quarter of a variance each: 7.654 by 0.35, then 2.3456 by what is left of a half, of errors of a hundredth.
  assert seen[0].tolist() == [2.3456, 8.0] and local.theta.tolist() == [2.35, 8.0] and not local.is_free.any()
  assert before < local.sum_of_squares <= before + 2 * 0.25 * 1.0


def test_in_turn_a_constant_that_no_digits_suffice_stays_as_it_is():
  local = Linear(np.eye(2)[:1] * 1e20, [0.12345678901234567, 3.0], [0.12345678901234567e20])
  local.is_free[1] = False
  updates, update = [], local.update
  local.covariance = lambda: np.ones((1, 1))
  local.sum_of_squares = -1.0  # below what any digits leave
  local.update = lambda: updates.append(local.theta.copy()) or update()
  rounding._round_in_turn(local, 0.0)
  assert local.theta[0] == 0.12345678901234567 and not local.is_free.any()
  assert updates[-1].tolist() == local.theta.tolist()


@pytest.mark.parametrize(("value", "rounded"), [
  (1 / 3, 0.333333333333333), (1.2345678901234567, 1.2345678901234567)])
def test_digits_end_at_fifteen(value, rounded):
  # Errors of 3e-16 and, of sixteen digits, 2e-16 are allowed; that of 1.23456789012346 is not.
  local = Linear([[1.0], [0.0]], [value], [value, 0.0], floor=1e-30)
  rounding._round_in_turn(local, 1.0)
  assert local.theta[0] == rounded == rounding._fewest_digits(value, 1e-15)


def test_in_turn_what_costs_just_what_is_allowed_is_taken():
  local = Linear([[1.0], [0.0]], [2.25], [2.25, 0.5])
  assert local.noise == 0.25
  rounding._round_in_turn(local, 0.5)  # a quarter of 1/4: 2.25 -> 2 costs just that
  assert local.theta.tolist() == [2.0]


def test_in_turn_what_has_no_error_is_the_least_determined():
  for theta, first in (([0.0, 2.34], [False, True]), ([2.34, 0.0], [True, False])):
    local = Linear(np.eye(3)[:, :2], theta, [*theta, 1.0])
    order = []
    local.covariance = lambda local=local: np.zeros((int(local.is_free.sum()),) * 2)
    refit = local.refit
    local.refit = lambda local=local, order=order, refit=refit: order.append(local.is_free.tolist()) or refit()
    rounding._round_in_turn(local, 0.5)
    assert order[0] == first  # 0/0 before 0/2.34


# --- what is redundant -----------------------------------------------------------------------------------------------


def test_a_constant_that_changes_nothing_is_none():
  local = Linear(np.eye(3), [2.0, 1e-9, 0.0], [2.0, 1.0, 0.0])
  assert rounding._fix_negligible(local) and local.theta.tolist() == [2, 0, 0]
  assert local.is_free.tolist() == [True, False, True]
  assert not rounding._fix_negligible(local)  # zeros are none already, held ones stay
  assert rounding._fix_negligible(Linear(np.eye(2), [0.0, 0.0], [1.0, 2.0])) is False
  exact = Linear(np.eye(3)[:, :2] * [1, 0], [2.0, 5.0], [2.0, 0.0, 0.0])
  assert rounding._fix_negligible(exact) and exact.theta.tolist() == [2, 0]  # at no cost, where none is allowed
  held = Linear(np.eye(3), [2.0, 1e-9, 0.0], [2.0, 1.0, 0.0])
  held.is_free[1] = False
  assert not rounding._fix_negligible(held)


def test_what_is_negligible_costs_a_thousandth_of_the_noise():
  for cost, is_gone in ((0.9e-3, True), (1.1e-3, False)):
    local = Linear(np.eye(4)[:, :2], [3.0, math.sqrt(cost)], [3.0, math.sqrt(cost), 1.0, 1.0])
    assert local.noise == pytest.approx(1.0) and rounding._fix_negligible(local) is is_gone


@pytest.mark.parametrize("length", [0.01, 1.0, 100.0])
@pytest.mark.parametrize(("share", "is_part"), [(0.9e-3, False), (1.1e-3, True)])
def test_what_has_less_than_a_thousandth_of_a_direction_is_no_part_of_it(share, is_part, length, monkeypatch):
  monkeypatch.setattr(rounding, "_factor_flags", lambda node: [False, False])
  monkeypatch.setattr(rounding, "_null_direction", lambda columns: length * np.array([1.0, share]))
  for fix in (rounding._fix_factor, rounding._fix_summand):
    tried = []
    monkeypatch.setattr(rounding, "_accept", lambda local, index, theta, tried=tried: tried.append(index) or False)
    local = Linear(np.random.default_rng(0).normal(size=(6, 2)), [3.0, 2.0], np.zeros(6))
    assert fix(local) is False and tried == ([0, 1] if is_part else [0])


def test_factors_of_zero_and_shifts_beyond_doubles_make_no_noise(monkeypatch):
  monkeypatch.setattr(rounding, "_factor_flags", lambda node: [True, True])
  for direction, theta in (([1.0, -1.0], [0.0, 2.0]), ([1e-3, 1.0], [1e300, 2.0]), ([1e-3, -1.0], [1e300, 2.0])):
    monkeypatch.setattr(rounding, "_null_direction", lambda columns, direction=direction: np.array(direction))
    local = Linear(np.zeros((6, 2)), theta, np.zeros(6))
    with np.errstate(all="raise"):
      tried = []
      monkeypatch.setattr(rounding, "_accept", lambda local, index, theta, tried=tried: tried.append(theta) or False)
      rounding._fix_factor(local)
    assert tried[-1] is not None and (theta[0] or tried[0][1] in (1.0, 2.0))


# --- whole formulas --------------------------------------------------------------------------------------------------


@pytest.fixture
def made(monkeypatch):
  """Local models that are made up, in place of those of formulas."""
  waiting = []
  monkeypatch.setattr(rounding, "_Local", lambda node, *data: waiting.pop(0))
  return waiting


NODE = parse("2.5*x + 1.5")
DATA = np.ones((4, 1)), np.ones(4), np.ones(4)


def test_simple_values_are_taken_until_none_is_near(made, monkeypatch):
  local = Linear(np.eye(4)[:, :2] * 100, [2.51, 1.49], [251.0, 149.0, 1.0, 1.0])
  made.append(local)
  found = rounding.snap_constants(NODE, *DATA)
  assert programs.fitted_values(found) == [2.5, 1.5] and local.num_refits == 2 and local.is_of_doubles
  assert rounding.snap_constants(expression.number(2.49), *DATA) == expression.number(2.49)
  undefined = Linear(np.eye(2), [2.51, 1.49], [25.1, 14.9])
  undefined.sum_of_squares = math.inf
  made.append(undefined)
  assert programs.fitted_values(rounding.snap_constants(NODE, *DATA)) == [2.51, 1.49]


def test_constants_of_an_exact_formula_that_are_decimals_are_held_first(made):
  jacobian = np.eye(3)[:, :2]
  local = Linear(jacobian, [2.2000000001, 69.62689481], [2.2000000001, 69.62689481, 0.0], floor=1.0)
  rounding._fix_decimals(local)
  assert local.theta.tolist() == [2.2, 69.62689481] and local.is_free.tolist() == [False, True]
  assert local.num_refits == 1
  for off, is_held in ((0.9e-9, True), (1.1e-9, False)):
    some = Linear([[1.0], [0.0]], [2.2345 * (1 + off)], [2.2345 * (1 + off), 0.0], floor=1.0)
    rounding._fix_decimals(some)
    assert some.is_free[0] is np.bool_(not is_held)
  for off, is_held in ((0.9e-11, True), (1.1e-11, False)):  # of seven digits, a hundredth of that
    some = Linear([[1.0], [0.0]], [2.234567 * (1 + off)], [2.234567 * (1 + off), 0.0], floor=1.0)
    rounding._fix_decimals(some)
    assert some.is_free[0] is np.bool_(not is_held)
  for value, is_held in ((2.2345678, True), (2.23456789, False)):  # eight digits
    some = Linear([[1.0], [0.0]], [value], [value, 0.0], floor=1.0)
    rounding._fix_decimals(some)
    assert some.is_free[0] is np.bool_(not is_held)


@pytest.mark.parametrize(("error", "is_met"), [(0.9e-11, True), (1.1e-11, False)])
def test_where_doubles_are_met_single_precision_hides_no_digit(error, is_met):
  x = np.linspace(-3, 3, 401)[:, None]
  y = 2.5 * x[:, 0] + 1.5
  y += error * np.std(y) * np.where(np.arange(401) % 2, 1, -1)
  local = rounding._Local(parse("2.5*x + 1.5"), x, y, np.ones(401))
  before = local.noise
  local.resolve_doubles()
  assert local.is_exact
  expected = before * (1e-22 / np.finfo(np.float32).eps ** 2 if is_met else 1)
  assert local.noise == pytest.approx(expected, rel=1e-6, abs=0)


@pytest.mark.parametrize(("truth", "start"), [
  ("5.23*exp(3*x) + 6.38*x + 4.96",) * 2, ("y**x*sin(y) - 0.4403153",) * 2,
  ("2.5*x**6 - 18749*x + 15625",) * 2])
def test_terms_of_exact_formulas_keep_their_digits_beside_far_larger_ones(truth, start, rng):
  names = ("x", "y")
  x = rng.uniform(0.1, 5, (200, 2))
  y = expression.evaluate(parser.parse(truth, names), x)
  weights = np.ones(200)
  for change in (rounding.snap_constants, rounding.remove_redundant, rounding.round_constants):
    found = programs.fitted_values(change(parser.parse(start, names), x, y, weights))
    np.testing.assert_allclose(found, programs.fitted_values(parser.parse(truth, names)), rtol=1e-7)


def test_an_exact_fit_has_a_whole_standard_error_of_room_and_another_a_tenth(made, monkeypatch):
  rooms = []
  monkeypatch.setattr(rounding, "_round_together", lambda local, room: rooms.append(room))
  decimals = []
  monkeypatch.setattr(rounding, "_fix_decimals", decimals.append)
  exact = Linear(np.eye(3)[:, :2], [2.5, 1.5], [2.5, 1.5, 0.0], floor=1e-9)
  noisy = Linear(np.eye(3)[:, :2], [2.5, 1.5], [2.5, 1.5, 1.0])
  made.extend([exact, noisy])
  for _ in range(2):
    rounding.round_constants(NODE, *DATA)
  assert rooms == [1.0, 0.1] and decimals == [exact]
  lost = Linear(np.eye(2), [2.5, 1.5], [2.5, 1.5])
  lost.sum_of_squares = math.inf
  made.append(lost)
  assert rounding.round_constants(NODE, *DATA) is NODE


@pytest.mark.parametrize(("cost", "is_exact", "in_turn", "value"), [
  (1.9, False, False, 3.25), (2.0, False, False, 3.25), (2.1, False, True, 4.25), (2.1, True, False, 2.5)])
def test_where_together_costs_a_variance_a_constant_they_are_rounded_in_turn(
  cost, is_exact, in_turn, value, made, monkeypatch):
  local = Linear(np.eye(3)[:, :2], [2.5, 1.5], [2.5, 1.5, 0.0 if is_exact else 2.0], floor=4.0 if is_exact else 0.0)
  assert local.noise == 4.0
  turns = []

  def together(local, room):
    local.theta, local.is_free = np.array([3.25, 1.5]), np.zeros(2, bool)
    local.sum_of_squares += cost * 4

  def each(local, room):
    turns.append((local.theta.tolist(), local.is_free.tolist()))
    local.theta = np.array([4.25, 1.5])

  monkeypatch.setattr(rounding, "_round_together", together)
  monkeypatch.setattr(rounding, "_round_in_turn", each)
  made.append(local)
  found = rounding.round_constants(NODE, *DATA)
  assert programs.fitted_values(found)[0] == value and turns == ([([2.5, 1.5], [True, True])] if in_turn else [])


def test_redundant_constants_go_one_after_the_other_and_the_rest_is_fitted_again(made, monkeypatch):
  local = Linear(np.eye(3), [2.5, 1.5, 3.5], [2.5, 1.5, 3.5])
  left = [True, True, False]
  monkeypatch.setattr(rounding, "_fix_redundant", lambda local: left.pop(0))
  made.append(local)
  rounding.remove_redundant(parse("2.5*x + 1.5*sin(3.5*x)"), *DATA)
  assert local.num_refits == 2 and not left and local.is_of_doubles
  order = []
  monkeypatch.undo()
  for name in ("_fix_negligible", "_fix_factor", "_fix_summand"):
    monkeypatch.setattr(rounding, name, lambda local, name=name: order.append(name) or False)
  assert not rounding._fix_redundant(local) and order == ["_fix_negligible", "_fix_factor", "_fix_summand"]


def test_exact_forms_are_those_that_decimals_are_not(made, monkeypatch):
  local = Linear(np.eye(4)[:, :3], [6.283185, 0.5, 2.5], np.zeros(4))
  local.is_free[1] = False
  local.look = "look"
  specials = [s for s in special_values.nearest(2 * math.pi) if s.value == 2 * math.pi][:1] + [
    s for s in special_values.nearest(2.5) if s.value == 2.5][:1]
  asked = []

  def snap(look, free, y, weights):
    asked.append((look, free.tolist()))
    return snapping.Snapped(free, tuple(specials), free, 0.0, 1.0)

  monkeypatch.setattr(snapping, "snap", snap)
  made.append(local)
  assert rounding.exact_forms(NODE, *DATA) == ["2*pi", None, None] and asked == [("look", [6.283185, 2.5])]
  none = Linear(np.eye(2), [1.5, 2.5], np.zeros(2))
  none.is_free[:] = False
  made.append(none)
  assert rounding.exact_forms(NODE, *DATA) == [None, None]


def test_errors_of_constants_are_those_of_the_covariance(made):
  local = Linear(np.eye(4)[:, :3] * [10, 1, 2], [1.5, 2.5, 3.5], [15, 2.5, 7, 3.0])
  local.is_free[1] = False
  made.append(local)
  noise = 9 / 2
  found = rounding.standard_errors(NODE, *DATA)
  assert found[1] is None and found[::2] == [pytest.approx(math.sqrt(noise) / 10), pytest.approx(math.sqrt(noise) / 2)]
  for bad in (np.nan, np.inf, -1e-9):
    local = Linear(np.eye(4)[:, :2], [1.5, 2.5], np.ones(4))
    local.covariance = lambda bad=bad: np.diag([bad, 0.0])
    made.append(local)
    assert rounding.standard_errors(NODE, *DATA) == [None, 0.0]
