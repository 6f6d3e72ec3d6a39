"""The local model's arithmetic, of linear formulas by NumPy, without a compiled program; its shapes, one by one."""

import math
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from symformer_jax.language import parser
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
    self.is_free = np.ones(len(self.theta), bool)
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


@pytest.mark.parametrize(("num_rows", "chunks"), [(4, [4]), (5, [5]), (13, [5, 5, 3])])
def test_rows_go_in_parts(num_rows, chunks, monkeypatch):
  monkeypatch.setattr(local_lib, "CHUNK_ROWS", 5)
  x = np.linspace(1, 2, num_rows)[:, None]
  model = LocalModel(parser.parse("2.5*x + 1.5", ("x",)), x, x[:, 0], np.ones(num_rows), floor=0.0)
  assert [len(each.values(model.theta)) for each in model._tapes] == chunks
  np.testing.assert_allclose(model.predict(model.theta), 2.5 * x[:, 0] + 1.5)
  np.testing.assert_allclose(model.jacobian, np.column_stack([x[:, 0], np.ones(num_rows)]))


@pytest.mark.parametrize(("num", "calls"), [(1, [1]), (4, [4]), (5, [4, 1]), (9, [4, 4, 1])])
def test_many_lists_of_constants_go_in_parts(num, calls, monkeypatch):
  monkeypatch.setattr(local_lib, "CHUNK_VALUES", 30)
  x = np.linspace(1, 2, 7)[:, None]
  model = LocalModel(parser.parse("2.5*x + 1.5", ("x",)), x, x[:, 0], np.ones(7), floor=0.0)
  [tape], asked = model._tapes, []
  model._tapes = [SimpleNamespace(values=lambda thetas: asked.append(len(thetas)) or tape.values(thetas))]
  thetas = np.arange(2.0 * num).reshape(num, 2)
  np.testing.assert_allclose(model.predict_many(thetas), thetas[:, :1] * x[:, 0] + thetas[:, 1:])
  assert asked == calls


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
