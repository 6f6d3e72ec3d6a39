"""A model of more variables says what it said before where the new variables are 0."""

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


@pytest.mark.parametrize("features", ["scaled", "raw"])
def test_nothing_changes_where_the_new_variables_are_zero(features, rng):
  old, new = config_for(2, features), config_for(4, features)
  params = symformer.init_params(old, jax.random.key(1))
  points = rng.normal(size=(3, 8, 3)).astype(np.float32)
  ids, constants = rng.integers(1, old.vocabulary.size, (3, 5)), rng.normal(size=(3, 5)).astype(np.float32)
  wide_points = np.concatenate([points[..., :2], np.zeros((3, 8, 2), np.float32), points[..., 2:]], axis=-1)
  is_valid = np.ones((3, 8), bool)
  logits, mantissas = symformer.merge(old, params)(points, is_valid, ids, constants)
  wide = symformer.merge(new, transfer.widen(params, old, new, seed=0))
  wide_logits, wide_mantissas = wide(wide_points, is_valid, ids, constants)
  np.testing.assert_allclose(wide_logits[..., :old.vocabulary.size], logits, atol=1e-5)
  np.testing.assert_allclose(wide_mantissas, mantissas, atol=1e-5)
  # A new variable is nearly as likely as the first one, and is not read like it.
  first = old.vocabulary.ids["x0"]
  assert np.abs(wide_logits[..., -1] - wide_logits[..., first]).max() < 1.0
  moved = wide_points.copy()
  moved[..., 2] = points[..., 0]
  assert not np.allclose(wide(moved, is_valid, ids, constants)[0], wide_logits, atol=1e-3)


def test_other_shapes_are_refused():
  old = config_for(1)
  params = symformer.init_params(old, jax.random.key(1))
  with pytest.raises(InputError, match="of the same shape"):
    transfer.widen(params, old, dataclasses.replace(config_for(2), norm="post"), seed=0)
  with pytest.raises(InputError, match="a model of 1 variables cannot start from one of 2"):
    transfer.widen(params, config_for(2), old, seed=0)
