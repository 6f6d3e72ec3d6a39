"""The decode loop: all candidates advance together, one token a step, until every expression is whole."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from symformer_jax.decoding import grammar
from symformer_jax.decoding.strategies import Strategy
from symformer_jax.language.vocabulary import PAD_ID, START_ID
from symformer_jax.model import symformer
from symformer_jax.model.config import ModelConfig
from symformer_jax.model.decoder import Cache


class DecodeState(NamedTuple):
  """Attributes:
    position: tokens read so far, the start token included; scalar.
    ids, mantissas: written so far [K, L].
    last_id, last_mantissa: what the decoder reads next [K].
    num_open: arguments still missing [K].
    log_prob: of the tokens written, under the model and the grammar, before the strategy's cut [K].
    cache: keys and values.
    key: for the next step.
  """

  position: jax.Array
  ids: jax.Array
  mantissas: jax.Array
  last_id: jax.Array
  last_mantissa: jax.Array
  num_open: jax.Array
  log_prob: jax.Array
  cache: Cache
  key: jax.Array


def decode(
  params: Any, latents: jax.Array, key: jax.Array, is_permitted: jax.Array, *, config: ModelConfig,
  num_candidates: int, max_length: int, strategy: Strategy,
) -> tuple[jax.Array, jax.Array, jax.Array]:
  """Samples K expressions for each of G data sets; to be jitted by the caller.

  Args:
    params: the network's parameters; latents: [G, M, E].
    key: consumed.
    is_permitted: tokens the user allows [V].
    config, num_candidates (K per data set), max_length (L tokens), strategy: static.
  Returns:
    ids [G * K, L] without start and end, padded; mantissas [G * K, L], 0 where no constant stands; log_prob [G * K].
  """
  model, vocab = symformer.merge(config, params), config.vocabulary
  arity = jnp.asarray(np.asarray(vocab.arity, np.int32))
  is_constant = jnp.asarray(np.asarray(vocab.is_constant))
  lanes = latents.shape[0] * num_candidates

  def is_running(state: DecodeState) -> jax.Array:
    return (state.position < max_length) & jnp.any(state.num_open > 0)

  def step(state: DecodeState) -> DecodeState:
    logits, mantissa, cache = model.decoder.step(state.last_id, state.last_mantissa, state.position, state.cache)
    is_allowed = grammar.allowed_tokens(state.num_open, max_length - state.position, is_permitted, vocab=vocab)
    logits = jnp.where(is_allowed, logits, -jnp.inf)
    key, choice_key = jax.random.split(state.key)
    chosen = strategy.choose(choice_key, logits).astype(jnp.int32)
    is_live = state.num_open > 0
    token = jnp.where(is_live, chosen, PAD_ID)
    mantissa = jnp.where(is_constant[token], mantissa, 0.0)
    log_prob = jnp.take_along_axis(jax.nn.log_softmax(logits), chosen[:, None], axis=1)[:, 0]
    return DecodeState(
      position=state.position + 1,
      ids=jax.lax.dynamic_update_index_in_dim(state.ids, token, state.position, 1),
      mantissas=jax.lax.dynamic_update_index_in_dim(state.mantissas, mantissa, state.position, 1),
      last_id=token, last_mantissa=mantissa,
      num_open=state.num_open + jnp.where(is_live, arity[token] - 1, 0),
      log_prob=state.log_prob + jnp.where(is_live, log_prob, 0.0),
      cache=cache, key=key)

  start = DecodeState(
    position=jnp.int32(0), ids=jnp.zeros((lanes, max_length), jnp.int32),
    mantissas=jnp.zeros((lanes, max_length), jnp.float32),
    last_id=jnp.full((lanes,), START_ID, jnp.int32), last_mantissa=jnp.zeros((lanes,), jnp.float32),
    num_open=jnp.ones((lanes,), jnp.int32), log_prob=jnp.zeros((lanes,), jnp.float32),
    cache=model.decoder.init_cache(latents, lanes, max_length), key=key)
  final = jax.lax.while_loop(is_running, step, start)
  return final.ids, final.mantissas, final.log_prob
