"""Losses against NumPy transcriptions, and the places where they apply."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symformer_jax.training import losses, step


def test_cross_entropy_equals_its_definition(rng):
  logits = rng.normal(size=(2, 3, 7)).astype(np.float32)
  targets = rng.integers(0, 7, (2, 3))
  is_target = np.array([[True, True, False], [True, False, False]])
  log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
  smooth = np.full((2, 3, 7), 0.1 / 7)
  for index in np.ndindex(2, 3):
    smooth[(*index, targets[index])] += 0.9
  expected = -(smooth * log_p).sum(-1)[is_target].mean()
  plain = -np.take_along_axis(log_p, targets[..., None], -1)[..., 0][is_target].mean()
  got = losses.classification_loss(logits, targets, is_target, is_target.sum(), label_smoothing=0.1)
  assert float(got[0]) == pytest.approx(expected, rel=1e-5)
  assert float(got[1]) == pytest.approx(plain, rel=1e-5)


def test_regression_counts_only_where_a_constant_stands():
  predicted, target = jnp.array([[0.5, 9.0, -1.0]]), jnp.array([[0.0, 0.0, 1.0]])
  is_constant = jnp.array([[True, False, True]])
  assert float(losses.regression_loss(predicted, target, is_constant, 2)) == pytest.approx((0.25 + 4) / 2)
  gradient = jax.grad(lambda p: losses.regression_loss(p, target, is_constant, 2))(predicted)
  assert gradient[0, 1] == 0 and gradient[0, 0] != 0


def test_a_constant_far_off_pulls_no_harder_than_one_at_delta():
  predicted, target = jnp.array([[0.5, 1e8, 3.0]]), jnp.array([[0.0, 0.0, 1.0]])
  value, gradient = jax.value_and_grad(
    lambda p: losses.regression_loss(p, target, jnp.ones((1, 3), bool), 3, huber_delta=1.0))(predicted)
  assert float(value) == pytest.approx((0.25 + 2 * (1e8 - 0.5) + 2 * (2 - 0.5)) / 3)
  np.testing.assert_allclose(gradient, [[1 / 3, 2 / 3, 2 / 3]], rtol=1e-6)


def test_no_constants_at_all_is_zero_not_nan():
  zeros = jnp.zeros((1, 3))
  value, gradient = jax.value_and_grad(lambda p: losses.regression_loss(p, zeros, zeros > 1, 0))(zeros + 2)
  assert value == 0 and not np.any(gradient)


def test_constant_noise_touches_constants_alone_and_stays_in_range():
  constants = jnp.tile(jnp.array([[0.0, 0.95, -0.3]]), (5000, 1))
  noisy = np.asarray(step.add_constant_noise(jax.random.key(0), constants, jnp.float32(0.1), is_bounded=True))
  assert not noisy[:, 0].any() and noisy.max() == 1.0
  assert noisy[:, 2].std() == pytest.approx(0.1, rel=0.05)
  free = np.asarray(step.add_constant_noise(jax.random.key(0), 100 * constants, jnp.float32(0.1), is_bounded=False))
  assert free.max() > 90
