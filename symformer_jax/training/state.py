"""What training carries from step to step."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from symformer_jax.model import symformer
from symformer_jax.training.config import TrainConfig


class TrainState(NamedTuple):
  """Attributes:
    step: number of updates done, int32.
    params: the network's parameters, float32.
    opt_state: optax state.
    key: root of all randomness; step s uses fold_in(key, s), so nothing else needs saving.
  """

  step: jax.Array
  params: Any
  opt_state: Any
  key: jax.Array


def init_state(config: TrainConfig, optimizer: optax.GradientTransformation) -> TrainState:
  """A fresh state; a function of config.seed alone."""
  keys = jax.random.split(jax.random.key(config.seed))
  params = symformer.init_params(config.model, keys[0])
  return TrainState(jnp.int32(0), params, optimizer.init(params), jax.random.key_data(keys[1]))
