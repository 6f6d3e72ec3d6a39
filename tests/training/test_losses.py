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


@pytest.mark.parametrize("delta", [1.0, 0.25])
def test_a_constant_far_off_pulls_no_harder_than_one_at_delta(delta):
  errors = np.array([0.5, 1e8, 2.0])
  value, gradient = jax.value_and_grad(lambda p: losses.regression_loss(
    p, jnp.zeros((1, 3)), jnp.ones((1, 3), bool), 3, huber_delta=delta))(jnp.asarray(errors[None], jnp.float32))
  expected = np.where(errors <= delta, errors**2, 2 * delta * (errors - delta / 2))
  assert float(value) == pytest.approx(expected.mean())
  np.testing.assert_allclose(gradient[0], 2 * np.minimum(errors, delta) / 3, rtol=1e-6)


def test_one_constant_alone_has_its_whole_error():
  is_constant = jnp.array([[True, False]])
  assert float(losses.regression_loss(jnp.full((1, 2), 3.0), jnp.zeros((1, 2)), is_constant, 1)) == 9.0


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
