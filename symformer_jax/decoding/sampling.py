"""Candidates for a data set: encode once, decode many; compiled once per bucket of shapes."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from symformer_jax.decoding import grammar, loop
from symformer_jax.decoding.strategies import Strategy, TopK
from symformer_jax.model import symformer
from symformer_jax.model.config import ModelConfig

# Numbers of candidates that are compiled for; larger requests run in several calls of the largest.
CANDIDATE_BUCKETS = (64, 256, 1024)


@functools.partial(jax.jit, static_argnames=("config", "num_candidates", "strategy"))
def _sample(
  params, points, is_valid, key, is_permitted, *, config: ModelConfig, num_candidates: int, strategy: Strategy
):
  latents = symformer.merge(config, params).encoder(points, is_valid)
  return loop.decode(
    params, latents, key, is_permitted, config=config, num_candidates=num_candidates,
    max_length=config.decoder.max_length - 1, strategy=strategy)


def sample_candidates(
  model: Any, points: np.ndarray, is_valid: np.ndarray, key: jax.Array, *, num_samples: int,
  strategy: Strategy | None = None, is_permitted: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
  """Draws candidates for one data set.

  Args:
    model: a LoadedModel, or anything with `config` (ModelConfig) and `params`.
    points: [N, D+1], y last, in the range the model was trained on; is_valid: rows that count [N].
    key: consumed.
    num_samples: K.
    strategy: TopK(20) by default.
    is_permitted: tokens allowed [V]; all by default (see grammar.permitted_tokens).
  Returns:
    `(ids [K, L] int32, mantissas [K, L] float32)`, prefix order without start and end, padded with 0. Every row is
    a valid expression.
  """
  vocab = model.config.vocabulary
  is_permitted = grammar.permitted_tokens(vocab) if is_permitted is None else is_permitted
  largest = CANDIDATE_BUCKETS[-1]
  parts = []
  for i, start in enumerate(range(0, num_samples, largest)):
    wanted = min(largest, num_samples - start)
    bucket = next(b for b in CANDIDATE_BUCKETS if b >= wanted)
    ids, mantissas, _ = _sample(
      model.params, jnp.asarray(points, jnp.float32)[None], jnp.asarray(is_valid)[None], jax.random.fold_in(key, i),
      jnp.asarray(is_permitted), config=model.config, num_candidates=bucket, strategy=strategy or TopK())
    parts.append((np.asarray(ids)[:wanted], np.asarray(mantissas)[:wanted]))
  return np.concatenate([ids for ids, _ in parts]), np.concatenate([m for _, m in parts])
