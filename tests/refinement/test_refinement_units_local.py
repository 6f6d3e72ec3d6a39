"""The local model's arithmetic, of linear formulas by NumPy, without a compiled program; its shapes, one by one."""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

from symformer_jax.language import expression, parser
from symformer_jax.refinement import local as local_lib
from symformer_jax.refinement.local import LocalModel

NAMES = ("x", "y", "z")


class Linear(LocalModel):
  """The model of J*theta; `calls` counts what is computed."""

  def __init__(self, jacobian, theta, y, *, weights=None, floor=0.0, num_refits=3):
    self.slopes, self.calls = np.asarray(jacobian, float), []
    self.theta, self.y = np.array(theta, float), np.asarray(y, float)
    weights = np.ones(len(self.y)) if weights is None else np.asarray(weights, float)
    self.weights, self._floor, self._num_refits = weights / weights.mean(), floor, num_refits
    self.is_free, self._chunks = np.ones(len(self.theta), bool), [None]
    self.update()

  def predict(self, theta):
    self.calls.append("values")
    return self.slopes @ theta

  def predict_many(self, thetas):
    self.calls.append(f"values of {len(thetas)}")
    return thetas @ self.slopes.T

  def _predict_with_jacobian(self, theta):
    self.calls.append("slopes")
    return self.slopes @ theta, self.slopes.copy()


RNG = np.random.default_rng(0)
J, Y, W = RNG.normal(size=(12, 3)), RNG.normal(size=12), RNG.uniform(0.5, 2, 12)


def test_squares_are_weighted_and_infinite_where_a_formula_is_undefined():
  model = Linear(J, [1.0, 2, 3], Y, weights=5 * W)
  weights = W / W.mean()
  expected = np.sum(weights * (J @ [1, 2, 3] - Y) ** 2)
  assert model.sum_of_squares == pytest.approx(expected) == model.loss(np.array([1.0, 2, 3]))
  np.testing.assert_array_equal(model.jacobian, J)
  assert model._squares(np.full(12, np.nan)) == math.inf == model._squares(np.full(12, 1e200))
  several = model.losses(np.array([[1.0, 2, 3], [0, 0, 0]]))
  np.testing.assert_allclose(several, [expected, np.sum(weights * Y**2)])
  assert model.calls[-1] == "values of 2"
  model._chunks = [None, None]
  np.testing.assert_allclose(model.losses(np.array([[1.0, 2, 3], [0, 0, 0]])), several)
  assert model.calls[-2:] == ["values"] * 2


def test_the_noise_is_that_of_the_degrees_that_are_left():
  weights = W.copy()
  weights[:2] = 0
  model = Linear(J, [1.0, 2, 3], Y, weights=weights)
  assert model.noise == pytest.approx(model.sum_of_squares / (10 - 3)) and not model.is_exact
  model.is_free[0] = False
  assert model.noise == pytest.approx(model.sum_of_squares / (10 - 2))
  few = Linear(J[:3], [1.0, 2, 3], Y[:3])
  assert few.noise == pytest.approx(few.sum_of_squares)  # one degree at least
  for floor, is_exact in ((model.sum_of_squares / 8, True), (model.sum_of_squares / 8 * (1 - 1e-9), False)):
    model._floor = floor
    assert model.is_exact is is_exact
  model._floor = 1e9
  assert model.noise == 1e9


def test_the_covariance_is_that_of_weighted_least_squares():
  model = Linear(J * [1e-6, 1, 1e6], [1e6, 2, 3e-6], Y, weights=W)
  weights = W / W.mean()
  slopes = model.jacobian
  for free in ([True] * 3, [True, False, True]):
    model.is_free = np.array(free)
    some = slopes[:, model.is_free]
    inverse = np.linalg.inv(some.T @ (weights[:, None] * some)) * model.noise
    np.testing.assert_allclose(model.covariance(), inverse, rtol=1e-9)
  for bad in (0.0, np.inf, 1e200):
    model.is_free = np.ones(3, bool)
    model.jacobian = np.column_stack([J[:, 0], np.full(12, bad), J[:, 2]])
    assert model.covariance().shape == (3, 3) and np.isinf(model.covariance()).all()
  model.jacobian = np.column_stack([J[:, 0], J[:, 0] * (1 + 1e-12), J[:, 2]])
  assert np.isinf(model.covariance()).all()
  model.jacobian = np.column_stack([J[:, 0], J[:, 0] + 1e-5 * J[:, 1], J[:, 2]])
  assert np.isfinite(model.covariance()).all()
  model.is_free[:] = False
  assert model.covariance().shape == (0, 0)


def test_what_is_held_moves_the_others_to_where_they_fit_best_beside_it():
  model = Linear(J, np.linalg.lstsq(J, Y, rcond=None)[0], Y)
  model.is_free[0] = False
  first = model.theta[0]
  value = model.theta[2] + 0.5
  model.fix(2, value, model.covariance())
  rest = Y - J[:, 0] * first - J[:, 2] * value
  assert model.theta[[0, 2]].tolist() == [first, value] and model.is_free.tolist() == [False, True, False]
  # From the optimum of both the second follows to its own beside the third.
  assert model.theta[1] != pytest.approx(np.linalg.lstsq(J, Y, rcond=None)[0][1])
  both = Linear(J[:, :2], np.linalg.lstsq(J[:, :2], Y, rcond=None)[0], Y)
  both.fix(1, 0.7, both.covariance())
  assert both.theta[0] == pytest.approx(J[:, 0] @ (Y - 0.7 * J[:, 1]) / (J[:, 0] @ J[:, 0])) and len(rest) == 12


def test_a_refit_takes_gauss_newton_steps_as_long_as_they_help():
  root = np.sqrt(W / W.mean())
  model = Linear(J, [9.0, 9, 9], Y, weights=W)
  model.is_free[1] = False
  model.refit()
  free = J[:, [0, 2]]
  expected = np.linalg.lstsq(root[:, None] * free, root * (Y - 9 * J[:, 1]), rcond=None)[0]
  np.testing.assert_allclose(model.theta, [expected[0], 9, expected[1]], rtol=1e-9)
  assert model.sum_of_squares == pytest.approx(model.loss(model.theta))
  # Steps of half the length: three of them and no more.
  slow = Linear(np.ones((2, 1)), [8.0], [0.0, 0.0], num_refits=3)
  slow._predict_with_jacobian = lambda theta: (np.full(2, theta[0]), np.full((2, 1), 2.0))
  slow.refit()
  assert slow.theta[0] == pytest.approx(1.0) and slow.sum_of_squares == pytest.approx(2.0)
  wrong = Linear(np.ones((2, 1)), [8.0], [0.0, 0.0])
  wrong._predict_with_jacobian = lambda theta: (np.full(2, theta[0]), np.full((2, 1), -1.0))
  wrong.refit()
  assert wrong.theta.tolist() == [8.0]
  even = Linear(np.ones((2, 1)), [8.0], [0.0, 0.0])
  even.loss = lambda theta: even.sum_of_squares  # as good is no gain
  even.refit()
  assert even.theta.tolist() == [8.0]
  for slopes in (np.full((2, 1), np.nan), np.full((2, 1), np.inf)):
    lost = Linear(np.ones((2, 1)), [8.0], [0.0, 0.0])
    lost._predict_with_jacobian = lambda theta, slopes=slopes: (np.full(2, theta[0]), slopes)
    lost.refit()
    assert lost.theta.tolist() == [8.0]
  held = Linear(np.ones((2, 1)), [8.0], [0.0, 0.0])
  held.is_free[0] = False
  held.refit()
  assert held.theta.tolist() == [8.0]


def test_a_look_is_at_what_is_free():
  model = Linear(J, [1.0, 2, 3], Y)
  model.is_free[1] = False
  found = model.look(np.array([5.0, 7.0]))
  np.testing.assert_allclose(found[0], J @ [5, 2, 7])
  np.testing.assert_array_equal(found[1:], J[:, [0, 2]].T)
  assert model.theta.tolist() == [1, 2, 3]


@pytest.mark.parametrize(("num", "calls"), [(4, ["values"] * 4), (5, ["many"]), (16, ["many"]), (17, ["many"] * 2)])
def test_many_lists_of_constants_go_in_calls_of_sixteen(num, calls, monkeypatch):
  asked = []
  monkeypatch.setattr(local_lib, "_values_of_many", lambda program, thetas, chunk: asked.append("many") or (
    thetas[:, :1] * np.arange(9.0)[None]))
  model = object.__new__(LocalModel)
  model._chunks, model._program, model._num_slots, model.y = ["chunk"], "program", 8, np.zeros(7)
  model.predict = lambda theta: asked.append("values") or theta[0] * np.arange(7.0)
  thetas = np.arange(2.0 * num).reshape(num, 2)
  np.testing.assert_array_equal(model.predict_many(thetas), thetas[:, :1] * np.arange(7.0))
  assert asked == calls
  padded = model._padded(thetas)
  assert padded.shape == (num, 8) and not padded[:, 2:].any() and np.array_equal(padded[:, :2], thetas)


def shape_of(text, num_rows, monkeypatch):
  """Shapes of what is compiled for a formula."""
  asked = []
  monkeypatch.setattr(local_lib, "_translate", lambda ids, values, *, vocab, num_slots: asked.append(
    (len(ids), vocab.num_variables, num_slots)))
  model = object.__new__(LocalModel)
  model.node = parser.parse(text, tuple(f"x{i}" for i in range(40)))
  model.x, model.y = np.arange(40.0 * num_rows).reshape(num_rows, 40), np.zeros(num_rows)
  model.theta = np.array([part.value for part in expression.walk(model.node) if part.is_number])
  model._translate()
  return asked[0], [np.asarray(chunk) for chunk in model._chunks], model


def test_formulas_of_few_shapes_are_compiled(monkeypatch):
  for num_rows, shapes in ((5, [64]), (64, [64]), (65, [128]), (257, [1024]), (4096, [4096]), (4097, [4096] * 2)):
    (length, num_columns, num_slots), chunks, _ = shape_of("2.5*x7 + x3", num_rows, monkeypatch)
    assert [chunk.shape for chunk in chunks] == [(2, rows) for rows in shapes]
    assert (length, num_columns, num_slots) == (64, 2, 8)
  whole = np.concatenate(chunks, axis=1)
  rows = np.arange(40.0 * 4097).reshape(4097, 40)
  np.testing.assert_array_equal(whole[:, :4097], rows[:, [3, 7]].T)
  assert np.all(whole[:, 4097:] == rows[-1, [3, 7]][:, None])  # the last row again
  (_, num_columns, _), chunks, _ = shape_of("x1 + x2 + x30", 9, monkeypatch)
  assert num_columns == 9 and chunks[0].shape == (9, 64) and np.all(chunks[0][3:] == chunks[0][2])
  (_, num_columns, _), chunks, _ = shape_of("2.5", 9, monkeypatch)
  assert num_columns == 2 and chunks[0].shape == (2, 64)
  many = " + ".join(f"{k}.5*x1" for k in range(9))
  assert shape_of(many, 9, monkeypatch)[0][2] == 24


@pytest.mark.parametrize(("text", "theta", "expected"), [
  ("2.5*x + 1.5", [2.5, 1.5], [True, True]), ("x**2.5", [2.5], [True]), ("x", [], [])])
def test_only_powers_are_asked_for_their_neighbours(text, theta, expected):
  model = object.__new__(LocalModel)
  model.node, model.theta = parser.parse(text, NAMES), np.array(theta)
  asked = []
  model.predict_many = lambda thetas: asked.append(thetas) or np.ones((len(thetas), 3))
  assert model._has_neighbours().tolist() == expected and bool(asked) is ("**" in text)


def test_a_constant_needs_neighbours_on_both_sides():
  model = object.__new__(LocalModel)
  model.node, model.theta = parser.parse("1.5*x**2.5 + z", NAMES), np.array([0.0, 2.5, -4.0])
  step = float(np.cbrt(np.finfo(float).eps))
  expected = np.array([0.0, 2.5, -4.0]) + np.concatenate([np.diag([step, 2.5 * step, 4 * step])] * 2) * np.repeat(
    [1, -1], 3)[:, None]

  def predict_many(thetas):
    np.testing.assert_allclose(thetas, expected, rtol=1e-15)
    found = np.ones((6, 4))
    found[1, 2] = np.nan  # above the second
    found[5, 0] = np.inf  # below the third
    return found
  model.predict_many = predict_many
  assert model._has_neighbours().tolist() == [True, False, False]


class Slots(NamedTuple):
  """A program as far as its constants go."""

  slots: Any
  numbers: Any
  length: Any


def test_constants_are_read_as_numbers_where_no_derivative_is_asked_for(monkeypatch):
  asked = []
  monkeypatch.setattr(local_lib.interpreter, "run", lambda program, constants, columns, *, num_tokens: asked.append(
    (program, constants, num_tokens)) or columns)
  program = Slots(jnp.array([1, -1, 0, 2]), jnp.array([9.0, 8.0, 7.0, 6.0]), 4)
  columns = jnp.array([[1.0, 2.0], [3.0, 4.0]])
  found = local_lib._values.__wrapped__(program, jnp.array([10.0, 20.0, 30.0, 0.0]), columns)
  [(plain, constants, num_tokens)] = asked
  assert plain.numbers.tolist() == [20, 8, 10, 30] and plain.slots.tolist() == [-1] * 4 and num_tokens == 4
  assert constants.shape == (0,) and found.tolist() == [1, 2]
  found = local_lib._values_and_jacobian.__wrapped__(program, jnp.zeros(3), columns)
  assert asked[-1][0] is program and asked[-1][2] == 4 and asked[-1][1].shape == (3,) and found.shape == (2, 2)
