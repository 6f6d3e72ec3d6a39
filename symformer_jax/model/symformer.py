"""The network as a whole, and its functional form: the graph once, parameters as a pytree."""

import functools
from typing import Any, cast

from flax import nnx
import jax

from symformer_jax.model.config import ModelConfig
from symformer_jax.model.decoder import Decoder
from symformer_jax.model.encoder import Encoder


class SymFormer(nnx.Module):
  """Encoder and decoder (SymFormer, sec. 3.1)."""

  def __init__(self, config: ModelConfig, *, rngs: nnx.Rngs):
    self.encoder = Encoder(config, rngs=rngs)
    self.decoder = Decoder(config, rngs=rngs)

  def __call__(
    self, points: jax.Array, is_valid: jax.Array, ids: jax.Array, constants: jax.Array,
    *, dropout_key: jax.Array | None = None, remat: bool = False,
  ) -> tuple[jax.Array, jax.Array]:
    """points [B, N, D+1], is_valid [B, N], ids and constants [B, L] -> logits [B, L, V], mantissas [B, L]."""
    keys = (None, None) if dropout_key is None else jax.random.split(dropout_key)
    latents = self.encoder(points, is_valid, dropout_key=keys[0], remat=remat)
    return self.decoder(ids, constants, latents, dropout_key=keys[1], remat=remat)


# Parameters travel as nested dicts with text keys: what Orbax, sharding rules and exports all understand.
Params = dict[str, Any]


class _OneKey:
  """In place of `nnx.Rngs` where no number is drawn: its counters, traced, took two thirds of the time."""

  def __init__(self) -> None:
    self._key = jax.random.key(0)

  def params(self) -> jax.Array:
    return self._key


@functools.cache
def _abstract(config: ModelConfig) -> tuple[nnx.GraphDef, nnx.State]:
  return nnx.split(nnx.eval_shape(lambda: SymFormer(config, rngs=cast(nnx.Rngs, _OneKey()))))


def _text_keys(tree: Any) -> Any:
  return {str(k): _text_keys(v) for k, v in tree.items()} if isinstance(tree, dict) else tree


def init_params(config: ModelConfig, key: jax.Array) -> Params:
  """Fresh parameters in float32; `key` is consumed."""
  return _text_keys(nnx.to_pure_dict(nnx.split(SymFormer(config, rngs=nnx.Rngs(key)))[1]))


def abstract_params(config: ModelConfig) -> Params:
  """Shapes and dtypes of the parameters, without allocating them."""
  return _text_keys(nnx.to_pure_dict(_abstract(config)[1]))


def merge(config: ModelConfig, params: Params) -> SymFormer:
  """The module holding these parameters; cheap, for use inside jit."""
  graph, abstract = _abstract(config)
  state = jax.tree.map(lambda leaf: leaf, abstract)  # a copy: the next line writes into it
  nnx.replace_by_pure_dict(state, nnx.restore_int_paths(params))
  return nnx.merge(graph, state)


def count_parameters(config: ModelConfig) -> dict[str, int]:
  """Number of parameters of the encoder, the decoder and in all."""
  params = abstract_params(config)
  counts = {part: sum(leaf.size for leaf in jax.tree.leaves(params[part])) for part in ("encoder", "decoder")}
  return counts | {"total": sum(counts.values())}
