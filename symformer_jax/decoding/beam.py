"""Candidates that compete: beam search, and sampling without replacement as a beam search over perturbed scores.

Gumbel top-k (Vieira 2014): the K largest of log-probability plus Gumbel noise are a sample without replacement.
Kool et al. (2019), Stochastic Beams and Where to Find Them, algorithm 1, find them without listing all expressions:
an expression's perturbed score is the largest among its continuations', so these are drawn under that condition.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from symformer_jax.decoding import grammar as grammar_lib
from symformer_jax.decoding.grammar import Grammar, OpenArguments
from symformer_jax.decoding.strategies import Beam, StochasticBeam
from symformer_jax.language.vocabulary import END_ID, PAD_ID, START_ID
from symformer_jax.model import symformer
from symformer_jax.model.config import ModelConfig
from symformer_jax.model.decoder import Cache


class Beams(NamedTuple):
  """K expressions, whole or begun.

  Attributes:
    ids, mantissas: written so far [K, L]; log_prob: of them, under the grammar [K]; -inf for an empty place.
    rank: what they compete by [K]: the log-probability, or for samples the perturbed one.
    last_id, last_mantissa: what the decoder reads next [K].
    open: arguments still missing.
  """

  ids: jax.Array
  mantissas: jax.Array
  log_prob: jax.Array
  rank: jax.Array
  last_id: jax.Array
  last_mantissa: jax.Array
  open: OpenArguments


class _State(NamedTuple):
  position: jax.Array
  beams: Beams
  cache: Cache


def search_beams(
  params: Any, latents: jax.Array, key: jax.Array, grammar: Grammar, *, config: ModelConfig, num_beams: int,
  max_length: int, strategy: Beam | StochasticBeam,
) -> Beams:
  """The K best expressions for one data set, by `rank`, the best first; to be jitted by the caller.

  Args:
    params: the network's parameters; latents: [1, M, E]; key: consumed; grammar: the rules.
    config, num_beams (K), max_length (L tokens), strategy: static.
  Returns:
    Whole expressions; places without one, when the rules allow fewer, have a `log_prob` of -inf.
  """
  model, vocab = symformer.merge(config, params), config.vocabulary
  is_constant = jnp.asarray(np.asarray(vocab.is_constant))
  allow = jax.vmap(lambda state, left: grammar_lib.allowed_tokens(state, left, grammar, vocab=vocab), (0, None))
  follow = jax.vmap(lambda state, token: grammar_lib.advance(state, token, grammar, vocab=vocab))
  temperature = getattr(strategy, "temperature", 1.0)

  def extend(
    beams: Beams, parent: jax.Array, token: jax.Array, mantissa: jax.Array, log_prob: jax.Array, best: jax.Array,
    position: jax.Array,
  ) -> Beams:
    old = jax.tree.map(lambda a: a[parent], beams)
    is_written = token != END_ID  # of a whole expression, which stays as it is
    mantissa = jnp.where(is_constant[token], mantissa[parent], 0.0)
    is_here = (jnp.arange(max_length)[None] == position) & is_written[:, None]
    return Beams(
      jnp.where(is_here, token[:, None], old.ids), jnp.where(is_here, mantissa[:, None], old.mantissas),
      log_prob[parent, token], best, jnp.where(is_written, token, PAD_ID).astype(jnp.int32), mantissa,
      follow(old.open, token))

  def step(state: _State) -> _State:
    beams, position = state.beams, state.position
    logits, mantissa, cache = model.decoder.step(beams.last_id, beams.last_mantissa, position, state.cache)
    allowed = allow(beams.open, max_length - position)
    log_prob = jax.nn.log_softmax(jnp.where(allowed, logits / temperature, -jnp.inf))
    log_prob = jnp.where(allowed, beams.log_prob[:, None] + log_prob, -jnp.inf)
    rank = log_prob
    if isinstance(strategy, StochasticBeam):
      noise = jax.random.gumbel(jax.random.fold_in(key, position), log_prob.shape)
      rank = jnp.where(jnp.isfinite(log_prob), _condition(log_prob + noise, beams.rank), -jnp.inf)
    best, index = jax.lax.top_k(rank.reshape(-1), num_beams)
    parent, token = index // vocab.size, index % vocab.size
    return _State(position + 1, extend(beams, parent, token, mantissa, log_prob, best, position),
                  cache._replace(self_kv=jax.tree.map(lambda a: a[parent], cache.self_kv)))

  def is_running(state: _State) -> jax.Array:
    return (state.position < max_length) & jnp.any((state.beams.open.num_open > 0) & jnp.isfinite(state.beams.log_prob))

  first = jnp.where(jnp.arange(num_beams) == 0, 0.0, -jnp.inf)  # one expression without tokens; the rest is empty
  zeros = jnp.zeros((num_beams, max_length), jnp.float32)
  start = Beams(
    zeros.astype(jnp.int32), zeros, first, first, jnp.full(num_beams, START_ID, jnp.int32), zeros[:, 0],
    jax.tree.map(lambda a: jnp.broadcast_to(a, (num_beams, *a.shape)), grammar_lib.start(max_length, vocab)))
  cache = model.decoder.init_cache(latents, num_beams, max_length)
  return jax.lax.while_loop(is_running, step, _State(jnp.int32(0), start, cache)).beams


def _condition(perturbed: jax.Array, largest: jax.Array) -> jax.Array:
  """Gumbel variables [K, V] given that the largest of each row is `largest` [K] (Kool et al. 2019, appendix B.3).

  Written so that no difference of large numbers is taken. A row of -inf, an empty place, has no number: whoever asks
  leaves it out.
  """
  gap = perturbed - jnp.max(perturbed, axis=1, keepdims=True)
  # At the largest itself log(1 - 1) = -inf is meant: it gets exactly `largest`.
  v = largest[:, None] - perturbed + jnp.log1p(-jnp.exp(gap))
  return largest[:, None] - jnp.maximum(v, 0.0) - jnp.log1p(jnp.exp(-jnp.abs(v)))
