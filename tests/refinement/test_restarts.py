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


def test_candidates_equal_up_to_constants_share_their_starts():
  ids, truth, x, y = problem()
  other_ids, other_mantissas = expression.encode(parser.parse("30.5*cos(2.4*x)"), VOCAB)
  other = (np.array(other_mantissas) * np.array(VOCAB.constant_scale)[other_ids]).astype(np.float32)[None]
  tenfold = ids.copy()  # the same formula with a constant token of another decade
  tenfold[ids == VOCAB.ids["C1"]] = VOCAB.ids["C2"]
  ids = np.concatenate([ids, tenfold, np.array(other_ids, np.int32)[None]])
  starts = np.concatenate([truth * np.float32(0.6), truth * np.float32(1.02), other])
  group = restarts.group_by_skeleton(ids, VOCAB)
  np.testing.assert_array_equal(group, [0, 0, 2])
  arguments = (ids, starts, x, y, np.ones_like(y))
  options = {"vocab": VOCAB, "max_constants": 4, "key": jax.random.key(0), "num_starts": 1}
  alone_values, alone = restarts.fit_with_restarts(*arguments, **options)
  values, shared = restarts.fit_with_restarts(*arguments, group=group, **options)
  # The first alone ends in a local minimum; with the second's start it does not, and the third is as it was.
  assert alone.loss[0] > 0.1 and alone.loss[1] < 1e-8 and max(shared.loss[:2]) < 1e-8
  np.testing.assert_allclose(values[0], truth[0], rtol=1e-3)
  np.testing.assert_array_equal(values[0], values[1])
  np.testing.assert_array_equal(values[2], alone_values[2])
  assert shared.loss[2] == alone.loss[2]


def test_the_first_start_is_the_prediction_and_skeletons_are_drawn():
  values, is_free = jnp.asarray([[0.0, 2.0, 3.0]]), jnp.asarray([[False, True, False]])
  options = {"num_starts": 200, "spread": 0.5}
  near = restarts.draw_starts(jax.random.key(1), values, is_free, is_skeleton=False, **options)
  np.testing.assert_array_equal(near[0, 0], values[0])
  np.testing.assert_array_equal(near[0, :, 2], np.full(200, 3.0))
  np.testing.assert_allclose(np.std(np.log(near[0, 1:, 1])), 0.5, rtol=0.2)
  drawn = restarts.draw_starts(jax.random.key(1), values, is_free, is_skeleton=True, **options)
  assert drawn[0, :, 1].min() < -4 and drawn[0, :, 1].max() > 4 and np.abs(drawn[0, :, 1]).max() <= 5
