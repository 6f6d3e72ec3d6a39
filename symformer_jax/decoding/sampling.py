"""Candidates for data sets: encode once, decode many; compiled once per bucket of shapes."""

from collections.abc import Sequence
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from symformer_jax import compilation
from symformer_jax.decoding import beam, grammar as grammar_lib, loop
from symformer_jax.decoding.strategies import Beam, StochasticBeam, Strategy, TopK
from symformer_jax.language import constants as constants_lib
from symformer_jax.language.rules import Rule
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.model import symformer
from symformer_jax.model.config import ModelConfig

# Most samples of one data set in one call: the room for results, not the work, so fewer share the program.
MAX_SAMPLES = 1024
# Lanes of a data set. A CPU's cores are busy with 64, and few of those idle while the last samples end
# (docs/results/decoding.md); for accelerators an assumption.
NUM_LANES = {"cpu": 64}
ACCELERATOR_LANES = 512


@functools.partial(jax.jit, static_argnames=("config",))
def _encode(params: Any, points: jax.Array, is_valid: jax.Array, *, config: ModelConfig) -> jax.Array:
  return symformer.merge(config, params).encoder(points, is_valid)


_decode = jax.jit(loop.decode, static_argnames=("config", "num_lanes", "max_samples", "max_length", "strategy"))

_search_beams = jax.jit(beam.search_beams, static_argnames=("config", "num_beams", "max_length", "strategy"))


def encode(model: Any, points: np.ndarray, is_valid: np.ndarray) -> jax.Array:
  """Latents [G, M, E] of data sets [G, N, D+1], y last, in the range the model was trained on; is_valid: [G, N]."""
  extra = compilation.bucket(len(points), compilation.dataset_buckets()) - len(points)
  points, is_valid = (np.pad(a, ((0, extra), *((0, 0),) * (a.ndim - 1)), mode="edge") for a in (points, is_valid))
  latents = _encode(model.params, jnp.asarray(points, jnp.float32), jnp.asarray(is_valid), config=model.config)
  return latents[: len(latents) - extra]


def decode_candidates(
  model: Any, latents: jax.Array, keys: jax.Array, rules: Sequence[Rule], *, num_samples: int,
  first_sample: int = 0, strategy: Strategy | Beam | StochasticBeam | None = None,
) -> list[tuple[np.ndarray, np.ndarray]]:
  """Draws candidates for encoded data sets, all in as few calls as the buckets allow.

  Args:
    model: a LoadedModel, or anything with `config` (ModelConfig) and `params`.
    latents: [G, M, E]; keys: [G]; rules: G of them.
    num_samples: K of each data set; first_sample: number of the first, so that rounds draw different ones.
    strategy: TopK(20) by default.
  Returns:
    For each data set `(ids [K, L] int32, mantissas [K, L] float32)`, prefix order without start and end, padded
    with 0. Every row is a valid expression within the rules. A model of the skeleton encoding predicts no constants:
    they are drawn as in its data. Beams give fewer than K where the rules allow fewer.
  """
  strategy, vocab = strategy or TopK(), model.config.vocabulary
  grammars = [grammar_lib.make_grammar(rule, vocab) for rule in rules]
  if isinstance(strategy, Beam | StochasticBeam):
    found = [_compete(model, latents[i : i + 1], jax.random.fold_in(keys[i], first_sample), grammar, num_samples,
                      strategy) for i, grammar in enumerate(grammars)]
  else:
    found = _sample(model, latents, keys, grammars, num_samples, first_sample, strategy)
  if vocab.encoding != "skeleton":
    return found
  return [(ids, _draw_constants(ids, jax.random.fold_in(key, first_sample), vocab))
          for (ids, _), key in zip(found, keys, strict=True)]


def _sample(
  model: Any, latents: jax.Array, keys: jax.Array, grammars: Sequence[grammar_lib.Grammar], num_samples: int,
  first_sample: int, strategy: Strategy,
) -> list[tuple[np.ndarray, np.ndarray]]:
  """Independent samples of each data set, in as few calls as the buckets allow."""
  config, max_length = model.config, model.config.decoder.max_length - 1
  found: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in grammars]
  buckets = compilation.dataset_buckets()
  num_lanes = NUM_LANES.get(jax.default_backend(), ACCELERATOR_LANES)
  for begin in range(0, len(grammars), buckets[-1]):
    some = list(range(begin, min(begin + buckets[-1], len(grammars))))
    # The last data set stands for those that fill the bucket, without samples to draw.
    padded = some + [some[-1]] * (compilation.bucket(len(some), buckets) - len(some))
    grammar = jax.tree.map(lambda *a: np.stack(a), *(grammars[i] for i in padded))
    for start in range(0, num_samples, MAX_SAMPLES):
      wanted = min(MAX_SAMPLES, num_samples - start)
      asked = np.where(np.arange(len(padded)) < len(some), wanted, 0).astype(np.int32)
      samples = _decode(
        model.params, latents[np.array(padded)], keys[np.array(padded)], grammar, asked,
        np.full(len(padded), first_sample + start, np.int32), config=config, num_lanes=num_lanes,
        max_samples=MAX_SAMPLES, max_length=max_length, strategy=strategy)
      ids, mantissas = np.asarray(samples.ids), np.asarray(samples.mantissas)
      for row, i in enumerate(some):
        found[i].append((ids[row, :wanted], mantissas[row, :wanted]))
  return [(np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])) for parts in found]


def _draw_constants(ids: np.ndarray, key: jax.Array, vocab: Vocabulary) -> np.ndarray:
  """Values at the constant tokens of ids [K, L], distributed as the leaves of the generator's trees."""
  rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
  is_constant = np.asarray(vocab.is_constant)[ids]
  return np.where(is_constant, constants_lib.sample_constants(rng, ids.shape), 0.0).astype(np.float32)


def _compete(
  model: Any, latents: jax.Array, key: jax.Array, grammar: grammar_lib.Grammar, num_samples: int,
  strategy: Beam | StochasticBeam,
) -> tuple[np.ndarray, np.ndarray]:
  """The candidates of a beam for one data set; all of a call compete, so a width of their number is compiled for."""
  found = _search_beams(
    model.params, latents, key, grammar, config=model.config, num_beams=num_samples,
    max_length=model.config.decoder.max_length - 1, strategy=strategy)
  is_there = np.isfinite(np.asarray(found.log_prob))
  return np.asarray(found.ids)[is_there], np.asarray(found.mantissas)[is_there]


def sample_candidates(
  model: Any, points: np.ndarray, is_valid: np.ndarray, key: jax.Array, *, num_samples: int,
  strategy: Strategy | Beam | StochasticBeam | None = None, rule: Rule | None = None, first_sample: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
  """Draws candidates for one data set; see `encode` and `decode_candidates`.

  Args:
    points: [N, D+1]; is_valid: rows that count [N]; key: the data set's.
    rule: all expressions over the model's variables by default.
  """
  rule = rule or Rule(model.config.vocabulary.num_variables)
  latents = encode(model, points[None], is_valid[None])
  [found] = decode_candidates(
    model, latents, jnp.stack([key]), [rule], num_samples=num_samples, strategy=strategy, first_sample=first_sample)
  return found
