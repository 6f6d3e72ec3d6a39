"""Restarts find what one start misses, and keep the predicted start among them."""

import jax
import jax.numpy as jnp
import numpy as np

from symformer_jax.language import expression, parser
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.refinement import restarts, solve

VOCAB = Vocabulary(1)


def problem():
  """A frequency that is off by half: one start ends in a local minimum."""
  ids, mantissas = expression.encode(parser.parse("1.5*sin(2.4*x)"), VOCAB)
  truth = np.array(mantissas) * np.array(VOCAB.constant_scale)[ids]
  x = np.linspace(-5, 5, 48)
  return np.array(ids, np.int32)[None], truth[None].astype(np.float32), x[:, None].astype(np.float32), (
    1.5 * np.sin(2.4 * x)).astype(np.float32)


def test_restarts_find_the_frequency_that_one_start_misses():
  ids, truth, x, y = problem()
  start, weights = truth * np.float32(0.6), np.ones_like(y)
  options = {"vocab": VOCAB, "max_constants": 4}
  _, single = solve.fit_candidates(ids, start, x, y, weights, **options)
  values, several = restarts.fit_with_restarts(
    ids, start, x, y, weights, key=jax.random.key(0), num_starts=16, **options)
  assert single.loss[0] > 0.1 and several.loss[0] < 1e-8
  np.testing.assert_allclose(np.abs(np.asarray(values)), np.abs(truth), rtol=1e-3)


def test_the_first_start_is_the_prediction_and_skeletons_are_drawn():
  values, is_free = jnp.asarray([[0.0, 2.0, 3.0]]), jnp.asarray([[False, True, False]])
  options = {"num_starts": 200, "spread": 0.5}
  near = restarts.draw_starts(jax.random.key(1), values, is_free, is_skeleton=False, **options)
  np.testing.assert_array_equal(near[0, 0], values[0])
  np.testing.assert_array_equal(near[0, :, 2], np.full(200, 3.0))
  np.testing.assert_allclose(np.std(np.log(near[0, 1:, 1])), 0.5, rtol=0.2)
  drawn = restarts.draw_starts(jax.random.key(1), values, is_free, is_skeleton=True, **options)
  assert drawn[0, :, 1].min() < -4 and drawn[0, :, 1].max() > 4 and np.abs(drawn[0, :, 1]).max() <= 5
