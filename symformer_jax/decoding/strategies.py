"""How the next token is chosen from its logits: one frozen dataclass a strategy, one method each.

Randomness comes in as Gumbel noise: the largest of logit plus noise is a sample of softmax (Gumbel 1954).
"""

from collections.abc import Callable
import dataclasses
from typing import Protocol

import jax
import jax.numpy as jnp


class Strategy(Protocol):
  """Chooses tokens; hashable, so that it is static under jit."""

  def choose(self, noise: jax.Array, logits: jax.Array) -> jax.Array:
    """Gumbel noise [K, V] and logits [K, V], -inf where a token is not allowed -> ids [K]."""
    ...


@dataclasses.dataclass(frozen=True)
class Greedy:
  """Always the likeliest token."""

  def choose(self, noise: jax.Array, logits: jax.Array) -> jax.Array:
    del noise
    return jnp.argmax(logits, axis=-1)


@dataclasses.dataclass(frozen=True)
class Temperature:
  """Samples among all allowed tokens; below 1 the likely ones become likelier."""

  temperature: float = 1.0

  def choose(self, noise: jax.Array, logits: jax.Array) -> jax.Array:
    return jnp.argmax(logits / self.temperature + noise, axis=-1)


@dataclasses.dataclass(frozen=True)
class TopK:
  """Samples among the k likeliest tokens (Fan et al. 2018; SymFormer, sec. 4: k = 20).

  Attributes:
    k: 1 is greedy.
    temperature: divides the logits; 1 in the paper.
  """

  k: int = 20
  temperature: float = 1.0

  def choose(self, noise: jax.Array, logits: jax.Array) -> jax.Array:
    if self.k == 1:
      return jnp.argmax(logits, axis=-1)
    lowest = jax.lax.top_k(logits, min(self.k, logits.shape[1]))[0][:, -1:]
    return jnp.argmax(jnp.where(logits >= lowest, logits / self.temperature + noise, -jnp.inf), axis=-1)


@dataclasses.dataclass(frozen=True)
class Nucleus:
  """Samples from the smallest set of tokens whose probabilities reach p (Holtzman et al. 2020)."""

  p: float = 0.95
  temperature: float = 1.0

  def choose(self, noise: jax.Array, logits: jax.Array) -> jax.Array:
    values = jax.lax.top_k(logits / self.temperature, logits.shape[1])[0]
    probability = jax.nn.softmax(values)
    # The token that crosses p still belongs to the set, so the likeliest is always in it.
    is_inside = jnp.cumsum(probability, axis=-1) - probability < self.p
    lowest = jnp.min(jnp.where(is_inside, values, jnp.inf), axis=-1, keepdims=True)
    scaled = logits / self.temperature
    return jnp.argmax(jnp.where(scaled >= lowest, scaled + noise, -jnp.inf), axis=-1)


@dataclasses.dataclass(frozen=True)
class Beam:
  """Keeps the likeliest unfinished expressions of each length, as many as candidates are asked for; see `beam`.

  Not a choice of single tokens: candidates compete, none comes twice, and nothing is random.
  """


@dataclasses.dataclass(frozen=True)
class StochasticBeam:
  """Samples whole expressions without replacement (Kool et al. 2019, Gumbel top-k): none comes twice; see `beam`.

  Attributes:
    temperature: divides the logits.
  """

  temperature: float = 1.0


def make_strategy(name: str, *, top_k: int = 20, temperature: float = 1.0) -> Strategy | Beam | StochasticBeam:
  """A strategy by the name that users give it, a key of `STRATEGIES`."""
  return STRATEGIES[name](top_k, temperature)


# The names users give them, each a function of `top_k` and `temperature`.
STRATEGIES: dict[str, Callable[[int, float], Strategy | Beam | StochasticBeam]] = {
  "top_k": lambda top_k, temperature: TopK(top_k, temperature),
  "temperature": lambda top_k, temperature: Temperature(temperature),
  "nucleus": lambda top_k, temperature: Nucleus(temperature=temperature),
  "greedy": lambda top_k, temperature: Greedy(),
  "beam": lambda top_k, temperature: Beam(),
  "distinct": lambda top_k, temperature: StochasticBeam(temperature),
}
# Those whose candidates compete, so that more of them are not drawn later.
COMPETING = ("beam", "distinct")
