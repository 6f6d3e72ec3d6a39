"""The decode loop: lanes write one token a step, and a lane whose expression is whole begins the next sample.

Half of all expressions have ten tokens and one in a hundred thirty: lanes that waited for the longest would idle
four fifths of the time. All lanes put keys and values into the same slot of a cyclic cache, so nothing is moved; a
lane sees as many slots back as its own expression has tokens.

Each sample has a key of its own, made of the data set's key, its number and the position. What is drawn for a data
set therefore depends on nothing else in the call.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from symformer_jax.decoding import grammar as grammar_lib
from symformer_jax.decoding.grammar import Grammar, OpenArguments
from symformer_jax.decoding.strategies import Strategy
from symformer_jax.language.vocabulary import PAD_ID, START_ID, Vocabulary
from symformer_jax.model import symformer
from symformer_jax.model.config import ModelConfig
from symformer_jax.model.decoder import Cache

# Beyond any that a network means, below what noise and a softmax make infinite.
LARGEST = 1e30


class Samples(NamedTuple):
  """K expressions for each of G data sets.

  Attributes:
    ids: [G, K, L] without start and end, padded; mantissas: [G, K, L], 0 where no constant stands.
    log_prob: of the tokens, under the model and the grammar, before the strategy's cut [G, K].
  """

  ids: jax.Array
  mantissas: jax.Array
  log_prob: jax.Array


class Lanes(NamedTuple):
  """What each of G * W lanes is writing.

  Attributes:
    sample: number of the sample, at least the number asked for when the lane has nothing to do [G * W].
    position: tokens written, so the one that is read next [G * W].
    ids, mantissas: written so far [G * W, L]; log_prob: of them [G * W].
    last_id, last_mantissa: what the decoder reads next [G * W].
    open: arguments still missing.
  """

  sample: jax.Array
  position: jax.Array
  ids: jax.Array
  mantissas: jax.Array
  log_prob: jax.Array
  last_id: jax.Array
  last_mantissa: jax.Array
  open: OpenArguments


def _finite(values: jax.Array) -> jax.Array:
  """What a network gives, 0 for NaN: with logits that are none a lane would write what no rule allows, without end."""
  return jnp.clip(jnp.nan_to_num(values), -LARGEST, LARGEST)


class DecodeState(NamedTuple):
  """Attributes:
    slot: of the cache, in turn; scalar.
    next_sample: that no lane has begun yet [G].
    done: samples that are whole.
  """

  slot: jax.Array
  next_sample: jax.Array
  lanes: Lanes
  cache: Cache
  done: Samples


def decode(
  params: Any, latents: jax.Array, keys: jax.Array, grammar: Grammar, num_samples: jax.Array, first_sample: jax.Array,
  *, config: ModelConfig, num_lanes: int, max_samples: int, max_length: int, strategy: Strategy,
) -> Samples:
  """Samples expressions for G data sets; to be jitted by the caller.

  Args:
    params: the network's parameters; latents: [G, M, E].
    keys: of each data set [G], not consumed: other samples of the same keys are other numbers.
    grammar: the rules, with leading axis G.
    num_samples: asked for of each data set [G], at most K; first_sample: number of the first [G].
    config, num_lanes (W for each data set), max_samples (K), max_length (L tokens), strategy: static.
  Returns:
    The samples; rows from `num_samples` on are padding.
  """
  model, vocab = symformer.merge(config, params), config.vocabulary
  num_sets, num = latents.shape[0], latents.shape[0] * num_lanes
  of_lane = jnp.repeat(jnp.arange(num_sets), num_lanes)
  lane_grammar = jax.tree.map(lambda a: a[of_lane], grammar)
  lane_keys, lane_first, lane_num = keys[of_lane], first_sample[of_lane], num_samples[of_lane]
  is_constant = jnp.asarray(np.asarray(vocab.is_constant))
  allow = jax.vmap(functools.partial(grammar_lib.allowed_tokens, vocab=vocab))
  follow = jax.vmap(functools.partial(grammar_lib.advance, vocab=vocab))

  def write(lanes: Lanes, slot: jax.Array, cache: Cache) -> tuple[Lanes, Cache]:
    """One more token of each lane."""
    logits, mantissa, cache = model.decoder.step(
      lanes.last_id, lanes.last_mantissa, lanes.position, cache, slot=slot)
    logits = jnp.where(allow(lanes.open, max_length - lanes.position, lane_grammar), _finite(logits), -jnp.inf)
    noise = _noise(lane_keys, lanes.sample + lane_first, lanes.position, logits.shape[1])
    token = strategy.choose(noise, logits).astype(jnp.int32)
    mantissa = jnp.where(is_constant[token], _finite(mantissa), 0.0)
    log_prob = jnp.take_along_axis(jax.nn.log_softmax(logits), token[:, None], axis=1)[:, 0]
    is_here = jnp.arange(max_length)[None] == lanes.position[:, None]
    return Lanes(
      lanes.sample, lanes.position + 1, jnp.where(is_here, token[:, None], lanes.ids),
      jnp.where(is_here, mantissa[:, None], lanes.mantissas), lanes.log_prob + log_prob, token, mantissa,
      follow(lanes.open, token, lane_grammar)), cache

  def refill(lanes: Lanes, next_sample: jax.Array) -> tuple[Lanes, jax.Array]:
    """Lanes with a whole expression begin the next samples of their data set."""
    is_free = (lanes.open.num_open == 0).reshape(num_sets, num_lanes)
    rank = jnp.cumsum(is_free, axis=1, dtype=jnp.int32) - 1
    sample = jnp.where(is_free, next_sample[:, None] + rank, lanes.sample.reshape(is_free.shape)).reshape(num)
    fresh = _fresh(sample, max_length, vocab)
    mixed = jax.tree.map(
      lambda new, old: jnp.where(is_free.reshape(num, *(1,) * (new.ndim - 1)), new, old), fresh, lanes)
    return mixed, next_sample + jnp.sum(is_free, axis=1, dtype=jnp.int32)

  def is_running(state: DecodeState) -> jax.Array:
    return jnp.any(state.lanes.sample < lane_num)

  def step(state: DecodeState) -> DecodeState:
    lanes, cache = write(state.lanes, state.slot, state.cache)
    is_whole = (lanes.open.num_open == 0) & (lanes.sample < lane_num)
    row = jnp.where(is_whole, lanes.sample, max_samples)  # beyond the last: dropped
    done = Samples(*(all_rows.at[of_lane, row].set(new, mode="drop") for all_rows, new in zip(
      state.done, (lanes.ids, lanes.mantissas, lanes.log_prob), strict=True)))
    lanes, next_sample = refill(lanes, state.next_sample)
    return DecodeState((state.slot + 1) % max_length, next_sample, lanes, cache, done)

  first = jnp.tile(jnp.arange(num_lanes, dtype=jnp.int32), num_sets)
  state = DecodeState(
    jnp.int32(0), jnp.full(num_sets, num_lanes, jnp.int32), _fresh(first, max_length, vocab),
    model.decoder.init_cache(latents, num, max_length), _no_samples(num_sets, max_samples, max_length))
  return jax.lax.while_loop(is_running, step, state).done


def _noise(keys: jax.Array, samples: jax.Array, positions: jax.Array, size: int) -> jax.Array:
  """Gumbel noise [lanes, size]: of a lane's key, sample and position alone."""
  def one(key: jax.Array, sample: jax.Array, position: jax.Array) -> jax.Array:
    return jax.random.gumbel(jax.random.fold_in(jax.random.fold_in(key, sample), position), (size,))
  return jax.vmap(one)(keys, samples, positions)


def _fresh(sample: jax.Array, max_length: int, vocab: Vocabulary) -> Lanes:
  """Lanes before their first token."""
  num = sample.shape[0]
  zeros, numbers = jnp.zeros(num, jnp.int32), jnp.zeros(num, jnp.float32)
  return Lanes(
    sample, zeros, jnp.full((num, max_length), PAD_ID, jnp.int32), jnp.zeros((num, max_length), jnp.float32), numbers,
    jnp.full(num, START_ID, jnp.int32), numbers,
    jax.tree.map(lambda a: jnp.broadcast_to(a, (num, *a.shape)), grammar_lib.start(max_length, vocab)))


def _no_samples(num_sets: int, max_samples: int, max_length: int) -> Samples:
  shape = (num_sets, max_samples, max_length)
  return Samples(jnp.zeros(shape, jnp.int32), jnp.zeros(shape, jnp.float32), jnp.zeros(shape[:2], jnp.float32))
