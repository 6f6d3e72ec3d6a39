"""A grown model says what the smaller one said, where new variables are 0; then it learns with what is new."""

import dataclasses

import jax
import numpy as np
import pytest

from configs import tiny
from symformer_jax import configuration
from symformer_jax.errors import InputError
from symformer_jax.model import symformer
from symformer_jax.model.config import ModelConfig
from symformer_jax.training import transfer


def config_for(num_variables, features="scaled"):
  config = configuration.build(ModelConfig, tiny.get_config().model.to_dict())
  return dataclasses.replace(
    config, vocabulary=dataclasses.replace(config.vocabulary, num_variables=num_variables),
    encoder=dataclasses.replace(config.encoder, features=features))


@pytest.mark.parametrize("features", [
  "scaled", pytest.param("raw", marks=pytest.mark.slow), pytest.param("columns", marks=pytest.mark.slow)])
def test_nothing_changes_where_the_new_variables_are_zero(features, rng):
  check_growth(config_for(2, features), config_for(4, features), rng)


def test_scaled_features_may_become_columns(rng):
  check_growth(config_for(2, "scaled"), config_for(4, "columns"), rng)
  old, new = config_for(2, "scaled"), config_for(2, "columns")
  params = symformer.init_params(old, jax.random.key(1))
  points, is_valid = rng.normal(size=(3, 8, 3)).astype(np.float32), np.ones((3, 8), bool)
  first, second = (jax.jit(symformer.merge(config, p).encoder)(points, is_valid) for config, p in (
    (old, params), (new, transfer.grow(params, old, new, seed=0))))
  np.testing.assert_allclose(first, second, atol=1e-6)
  with pytest.raises(InputError, match="scaled to columns"):
    transfer.grow(params, config_for(2, "columns"), old, seed=0)


def check_growth(old, new, rng):
  """A wider model says what the old one did where its new columns are zero, and reads them where they are not."""
  params = symformer.init_params(old, jax.random.key(1))
  points = rng.normal(size=(3, 8, 3)).astype(np.float32)
  ids, constants = rng.integers(1, old.vocabulary.size, (3, 5)), rng.normal(size=(3, 5)).astype(np.float32)
  wide_points = np.concatenate([points[..., :2], np.zeros((3, 8, 2), np.float32), points[..., 2:]], axis=-1)
  is_valid = np.ones((3, 8), bool)
  logits, mantissas = jax.jit(symformer.merge(old, params))(points, is_valid, ids, constants)
  wide = jax.jit(symformer.merge(new, transfer.grow(params, old, new, seed=0)))
  wide_logits, wide_mantissas = wide(wide_points, is_valid, ids, constants)
  np.testing.assert_allclose(wide_logits[..., :old.vocabulary.size], logits, atol=1e-5)
  np.testing.assert_allclose(wide_mantissas, mantissas, atol=1e-5)
  # A new variable is nearly as likely as the first one, and is not read like it.
  first = old.vocabulary.ids["x0"]
  assert np.abs(wide_logits[..., -1] - wide_logits[..., first]).max() < 1.0
  moved = wide_points.copy()
  moved[..., 2] = points[..., 0]
  assert not np.allclose(wide(moved, is_valid, ids, constants)[0], wide_logits, atol=1e-3)


def _grown(config, **sizes):
  """`config` with its encoder and decoder grown by (encoder, decoder) pairs of each setting."""
  parts = {part: dataclasses.replace(getattr(config, part), **{name: pair[i] for name, pair in sizes.items()})
           for i, part in enumerate(("encoder", "decoder"))}
  return dataclasses.replace(config, **parts)


@pytest.mark.parametrize("sizes", [
  {"num_layers": (2, 3)}, {"num_heads": (3, 4), "ff_dim": (64, 96)}], ids=lambda sizes: "+".join(sizes))
def test_growth_changes_nothing_at_first_and_all_that_is_new_can_learn(sizes, rng):
  old = dataclasses.replace(config_for(1), norm="pre")
  new = _grown(old, **sizes)
  params = symformer.init_params(old, jax.random.key(1))
  grown = transfer.grow(params, old, new, seed=3)
  assert jax.tree.map(np.shape, grown) == jax.tree.map(np.shape, symformer.init_params(new, jax.random.key(0)))
  points = rng.normal(size=(3, 8, 2)).astype(np.float32)
  ids, constants = rng.integers(1, old.vocabulary.size, (3, 5)), rng.normal(size=(3, 5)).astype(np.float32)
  inputs = points, np.ones((3, 8), bool), ids, constants
  before = jax.jit(symformer.merge(old, params))(*inputs)
  for was, now in zip(before, jax.jit(symformer.merge(new, grown))(*inputs), strict=True):
    np.testing.assert_allclose(now, was, atol=1e-5)

  @jax.jit
  @jax.grad
  def slope(some):
    logits, mantissas = symformer.merge(new, some)(*inputs)
    return jax.numpy.sum(logits**2) + jax.numpy.sum(mantissas**2)

  # Each step wakes what feeds ends that are not zero any more: a new block's scatter, its gather, all of it.
  stepped = grown
  for _ in range(2):
    stepped = jax.tree.map(lambda p, g: p - 1e-2 * g, stepped, slope(stepped))
  for path, gradient in jax.tree_util.tree_leaves_with_path(slope(stepped)):
    is_shifting_scores = path[-2].key == "key" and path[-1].key == "bias"  # softmax does not see it
    assert is_shifting_scores or np.any(np.asarray(gradient) != 0), path


def test_other_shapes_are_refused():
  old = config_for(1)
  params = symformer.init_params(old, jax.random.key(1))
  pre = dataclasses.replace(old, norm="pre")
  for new, message in (
      (dataclasses.replace(config_for(2), norm="post"), "of the same shape"),
      (_grown(pre, num_heads=(1, 2)), "encoder.num_heads=1 cannot start from one with 2"),
      (dataclasses.replace(pre, decoder=dataclasses.replace(pre.decoder, width=2 * pre.decoder.width)), "same shape")):
    with pytest.raises(InputError, match=message):
      transfer.grow(params, pre, new, seed=0)
  with pytest.raises(InputError, match="num_variables=1 cannot start from one with 2"):
    transfer.grow(params, config_for(2), old, seed=0)
  post = dataclasses.replace(old, norm="post")
  with pytest.raises(InputError, match="only pre-norm models"):
    transfer.grow(params, post, _grown(post, num_layers=(3, 4)), seed=0)


def test_post_norm_models_may_grow_in_all_but_their_layers():
  post = dataclasses.replace(config_for(1), norm="post")
  transfer._check(post, dataclasses.replace(_grown(post, ff_dim=(64, 96)), vocabulary=config_for(2).vocabulary))
