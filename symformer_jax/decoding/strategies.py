"""How the next token is chosen from its logits: one frozen dataclass a strategy, one method each."""

import dataclasses
from typing import Protocol

import jax
import jax.numpy as jnp


class Strategy(Protocol):
  """Chooses tokens; hashable, so that it is static under jit."""

  def choose(self, key: jax.Array, logits: jax.Array) -> jax.Array:
    """logits [K, V], -inf where a token is not allowed -> ids [K]; `key` is consumed."""
    ...


@dataclasses.dataclass(frozen=True)
class Greedy:
  """Always the likeliest token."""

  def choose(self, key: jax.Array, logits: jax.Array) -> jax.Array:
    del key
    return jnp.argmax(logits, axis=-1)


@dataclasses.dataclass(frozen=True)
class TopK:
  """Samples among the k likeliest tokens (Fan et al. 2018; SymFormer, sec. 4: k = 20).

  Attributes:
    k: 1 is greedy.
    temperature: divides the logits; 1 in the paper.
  """

  k: int = 20
  temperature: float = 1.0

  def choose(self, key: jax.Array, logits: jax.Array) -> jax.Array:
    values, ids = jax.lax.top_k(logits / self.temperature, min(self.k, logits.shape[-1]))
    picked = jax.random.categorical(key, values)
    return jnp.take_along_axis(ids, picked[:, None], axis=1)[:, 0]


@dataclasses.dataclass(frozen=True)
class Nucleus:
  """Samples from the smallest set of tokens whose probabilities reach p (Holtzman et al. 2020)."""

  p: float = 0.95
  temperature: float = 1.0

  def choose(self, key: jax.Array, logits: jax.Array) -> jax.Array:
    values, ids = jax.lax.top_k(logits / self.temperature, logits.shape[-1])
    probability = jax.nn.softmax(values, axis=-1)
    # The token that crosses p still belongs to the set, so the likeliest is always in it.
    is_inside = jnp.cumsum(probability, axis=-1) - probability < self.p
    picked = jax.random.categorical(key, jnp.where(is_inside, values, -jnp.inf))
    return jnp.take_along_axis(ids, picked[:, None], axis=1)[:, 0]
