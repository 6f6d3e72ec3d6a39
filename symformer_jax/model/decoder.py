"""The autoregressive decoder: symbols and constants in, next symbol and its constant out.

SymFormer, sec. 3.1: symbol embedding and affine-projected constant are concatenated, half the width each,
and trainable positions are added. One code path serves training (all positions at once) and sampling (one
position with cached keys and values).
"""

from typing import NamedTuple

from flax import nnx
import jax
import jax.numpy as jnp

from symformer_jax.model.config import ModelConfig
from symformer_jax.model.layers import ACTIVATIONS, Attention, FeedForward, Linear, Residual, call

# Keys and values of one layer.
Pair = tuple[jax.Array, jax.Array]


class Cache(NamedTuple):
  """Keys and values of the tokens decoded so far, and of the latents; one entry per layer.

  Layers are kept apart so that a loop updates each array in place instead of copying a stack of them.

  Attributes:
    self_kv: (keys, values) [K, L, H, A] of each layer.
    cross_kv: (keys, values) [G, M, H, A] of each layer; K is a multiple of G, the number of data sets.
  """

  self_kv: tuple[Pair, ...]
  cross_kv: tuple[Pair, ...]


class DecoderLayer(nnx.Module):
  """Causal self-attention, attention to the latents, feed-forward."""

  def __init__(self, model: ModelConfig, *, rngs: nnx.Rngs):
    d = model.decoder
    self.self_attention = Attention(d.width, d.width, d.num_heads, d.head_dim, rngs=rngs)
    self.cross_attention = Attention(d.width, model.encoder.width, d.num_heads, d.head_dim, rngs=rngs)
    self.ff = FeedForward(d.width, d.ff_dim, model.activation, rngs=rngs)
    self.around_self, self.around_cross, self.around_ff = (
      Residual(d.width, model.norm, rngs=rngs) for _ in range(3))
    self.dropout = nnx.Dropout(model.dropout)

  def __call__(self, x: jax.Array, latents: jax.Array, mask: jax.Array, dropout_key: jax.Array | None) -> jax.Array:
    """x [B, L, E], latents [B, M, E'], causal mask [L, L] -> [B, L, E]."""
    keys = [None] * 3 if dropout_key is None else jax.random.split(dropout_key, 3)

    def drop(value: jax.Array, key: jax.Array | None) -> jax.Array:
      return self.dropout(value, deterministic=key is None, rngs=key)

    x = self.around_self(x, lambda h: drop(self.self_attention(h, h, mask), keys[0]))
    x = self.around_cross(x, lambda h: drop(self.cross_attention(h, latents), keys[1]))
    return self.around_ff(x, lambda h: drop(self.ff(h), keys[2]))

  def step(
    self, x: jax.Array, slot: jax.Array, is_visible: jax.Array, self_kv: Pair, cross_kv: Pair
  ) -> tuple[jax.Array, Pair]:
    """One position: x [K, 1, E] with this layer's caches -> (x [K, 1, E], updated self cache)."""
    updated = {}

    def self_attend(h: jax.Array) -> jax.Array:
      key, value = self.self_attention.project_source(h)  # [K, 1, H, A]
      keys = jax.lax.dynamic_update_slice_in_dim(self_kv[0], key, slot, axis=1)
      values = jax.lax.dynamic_update_slice_in_dim(self_kv[1], value, slot, axis=1)
      updated["kv"] = keys, values
      return self.self_attention.attend_one_to(h, keys, values, is_visible)

    x = self.around_self(x, self_attend)
    x = self.around_cross(x, lambda h: self._cross_attend(h, cross_kv))
    return self.around_ff(x, self.ff), updated["kv"]

  def _cross_attend(self, h: jax.Array, cross_kv: Pair) -> jax.Array:
    """Attention of K candidates to latents they share in groups: candidates ride on the query axis."""
    keys, values = cross_kv  # [G, M, H, A], K a multiple of G
    groups = keys.shape[0]
    grouped = h.reshape(groups, -1, h.shape[-1])  # [G, K / G, E]
    return self.cross_attention.attend_to(grouped, keys, values, None).reshape(h.shape)


class Decoder(nnx.Module):
  """Embedding, layers and the two heads."""

  def __init__(self, model: ModelConfig, *, rngs: nnx.Rngs):
    d = model.decoder
    vocab = model.vocabulary
    self.max_length, self.num_heads, self.head_dim = d.max_length, d.num_heads, d.head_dim
    self.has_constants = vocab.encoding != "skeleton"
    self.is_bounded = vocab.encoding == "extended"
    half = d.width // 2
    self.embed = nnx.Embed(vocab.size, half, rngs=rngs)
    self.project_constant = Linear(1, half, rngs=rngs)
    self.positions = nnx.Param(nnx.initializers.normal(0.02)(rngs.params(), (d.max_length, d.width)))
    self.layers = nnx.List([DecoderLayer(model, rngs=rngs) for _ in range(d.num_layers)])
    self.dropout = nnx.Dropout(model.dropout)
    self.final_norm = nnx.LayerNorm(d.width, rngs=rngs) if model.norm != "post" else None
    self.classify = Linear(d.width, vocab.size, rngs=rngs)
    hidden = (d.width, d.regression_hidden, d.regression_hidden)
    self.regress_hidden = nnx.List(
      [Linear(a, b, rngs=rngs) for a, b in zip(hidden[:-1], hidden[1:], strict=True)])
    self.regress_out = Linear(d.regression_hidden, 1, rngs=rngs)
    self.activation = ACTIVATIONS[model.activation]

  def _embed(self, ids: jax.Array, constants: jax.Array, positions: jax.Array) -> jax.Array:
    """ids, constants [B, L], positions [1 or B, L, E] -> [B, L, E]."""
    symbols = self.embed(ids)
    projected = self.project_constant(constants[..., None].astype(symbols.dtype))
    return jnp.concatenate([symbols, projected], axis=-1) + positions.astype(symbols.dtype)

  def _heads(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """x [..., E] -> logits [..., V] and constants [...], both float32."""
    if self.final_norm is not None:
      x = self.final_norm(x)
    h = x
    for layer in self.regress_hidden:
      h = self.activation(layer(h))
    constant = self.regress_out(h)[..., 0].astype(jnp.float32)
    # The skeleton encoding trains without values: the head, kept for equal sizes, must not feed any back.
    constant = jnp.tanh(constant) if self.is_bounded else constant * self.has_constants
    return self.classify(x).astype(jnp.float32), constant

  def __call__(
    self, ids: jax.Array, constants: jax.Array, latents: jax.Array, *, dropout_key: jax.Array | None = None,
    remat: bool = False,
  ) -> tuple[jax.Array, jax.Array]:
    """All positions at once, with teacher forcing.

    Args:
      ids: start token and the expression [B, L]; constants: mantissas at C tokens, 0 elsewhere [B, L].
      latents: [B, M, E'].
      dropout_key: consumed; None switches dropout off.
      remat: see Encoder.
    Returns:
      logits [B, L, V] of the token after each position and its mantissa [B, L].
    """
    length = ids.shape[1]
    x = self._embed(ids, constants, self.positions[:length][None])
    keys = [None] * (len(self.layers) + 1)
    if dropout_key is not None:
      keys = list(jax.random.split(dropout_key, len(keys)))
    x = self.dropout(x, deterministic=dropout_key is None, rngs=keys[0])
    mask = jnp.tril(jnp.ones((length, length), bool))[None, None]
    for layer, key in zip(self.layers, keys[1:], strict=True):
      x = call(layer, x, latents, mask, key, is_recomputed=remat)
    return self._heads(x)

  def init_cache(self, latents: jax.Array, num_candidates: int, length: int) -> Cache:
    """An empty cache for `num_candidates` sequences (a multiple of the number of latents' rows)."""
    cross = tuple(layer.cross_attention.project_source(latents) for layer in self.layers)
    empty = jnp.zeros((num_candidates, length, self.num_heads, self.head_dim), latents.dtype)
    return Cache(tuple((empty, empty) for _ in self.layers), cross)

  def step(
    self, ids: jax.Array, constants: jax.Array, position: jax.Array, cache: Cache, *, slot: jax.Array | None = None
  ) -> tuple[jax.Array, jax.Array, Cache]:
    """Decodes one position of K sequences.

    Args:
      ids, constants: the token at `position` [K]; position: from 0, scalar or of each sequence [K].
      cache: filled up to `position`.
      slot: where in the cache keys and values are put, scalar; `position` by default. Sequences of different
        positions take slots in turn, the last being followed by the first.
    Returns:
      logits [K, V] and mantissa [K] of the next token, and the cache with this position added.
    """
    slot = position if slot is None else slot
    positions = jnp.broadcast_to(position, ids.shape)
    keys, _ = cache.self_kv[0]
    length = keys.shape[1]
    age = (slot - jnp.arange(length)) % length
    is_visible = age[None] <= positions[:, None]
    x = self._embed(ids[:, None], constants[:, None], self.positions[...][positions][:, None])
    self_kv = []
    for layer, own, cross in zip(self.layers, cache.self_kv, cache.cross_kv, strict=True):
      x, updated = layer.step(x, slot, is_visible, own, cross)
      self_kv.append(updated)
    logits, constant = self._heads(x[:, 0])
    return logits, constant, cache._replace(self_kv=tuple(self_kv))
