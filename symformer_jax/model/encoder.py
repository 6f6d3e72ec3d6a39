"""Point features and the set encoder: induced set attention blocks, then pooling onto seed vectors.

After Lee et al. (2019), Set Transformer: MAB(X, Y) = LN(H + FF(H)), H = LN(X + Att(X, Y, Y)); ISAB(X) =
MAB(X, MAB(I, X)); PMA(Z) = MAB(S, FF(Z)). SymFormer, sec. 3.1 and its table of hyperparameters.
"""

from flax import nnx
import jax
import jax.numpy as jnp

from symformer_jax.model.config import EncoderConfig, ModelConfig
from symformer_jax.model.layers import Attention, FeedForward, Linear, Residual, call

# Features of each column of x, and of y and the table; a name of each. The paper's floats and their bits treat y as
# one more column.
_OF_X = {"scaled": ("linear", "log"), "columns": ("linear", "log", "small", "present")}
_OF_Y = {"scaled": ("asinh", "share", "level", "count"), "columns": ("asinh", "share", "small", "level", "count")}
_BITS = {"raw": 1, "bits": 32}


def num_features(features: str, num_columns: int) -> int:
  """Width of a point's feature vector; `num_columns` is D + 1."""
  if features in _BITS:
    return _BITS[features] * num_columns
  return len(_OF_X[features]) * (num_columns - 1) + len(_OF_Y[features])


def feature_names(features: str, num_variables: int) -> list[tuple[str, int]]:
  """What each of a point's features is, in order: its name, and the variable it tells of, or -1."""
  if features in _BITS:
    owners = [*range(num_variables), -1]
    return [(str(bit), owner) for owner in owners for bit in range(_BITS[features])]
  of_x = [(name, i) for name in _OF_X[features] for i in range(num_variables)]
  return of_x + [(name, -1) for name in _OF_Y[features]]


def point_features(points: jax.Array, is_valid: jax.Array, features: str) -> jax.Array:
  """Features of points (docs/design.md, decision 7).

  Args:
    points: [..., N, D+1], y last; masked rows may hold anything.
    is_valid: [..., N], True for rows that count.
    features: `raw`, `bits` (each float32 as 32 signs), `scaled` (x/5, log1p|x| signed; asinh y, y/max|y|,
      log max|y|, share of valid rows) or `columns` (these, for small values asinh 1000 x and the same of y/max|y|, and
      whether a column is in the table: one that is 0 in all rows is not).
  Returns:
    [..., N, F], masked rows 0.
  """
  points = jnp.where(is_valid[..., None], points.astype(jnp.float32), 0.0)
  if features == "raw":
    out = points
  elif features == "bits":
    words = jax.lax.bitcast_convert_type(points, jnp.uint32)
    shifts = jnp.arange(32, dtype=jnp.uint32)
    bits = jnp.right_shift(words[..., None], jax.lax.expand_dims(shifts, range(words.ndim))) & 1
    out = (2.0 * bits.astype(jnp.float32) - 1.0).reshape(*points.shape[:-1], -1)
  else:
    x, y = points[..., :-1], points[..., -1:]
    # max |y| of an all-masked or all-zero set is 0; the guard keeps the quotient finite.
    largest = jnp.maximum(jnp.max(jnp.abs(y), axis=-2, keepdims=True), 1e-30)
    level = jnp.broadcast_to(jnp.log(largest) / 10.0, y.shape)
    count = jnp.broadcast_to(jnp.mean(is_valid.astype(jnp.float32), axis=-1)[..., None, None], y.shape)
    of_x = [x / 5.0, jnp.sign(x) * jnp.log1p(jnp.abs(x))]
    of_y = [jnp.arcsinh(y) / 3.0, y / largest]
    if features == "columns":
      is_present = jnp.any(x != 0, axis=-2, keepdims=True)
      of_x += [_stretch(x), jnp.broadcast_to(is_present, x.shape).astype(x.dtype)]
      of_y.append(_stretch(y / largest))
    out = jnp.concatenate([*of_x, *of_y, level, count], axis=-1)
  return jnp.where(is_valid[..., None], out, 0.0)


def _stretch(values: jax.Array) -> jax.Array:
  """Tells 0.001 from 0.01 as well as 1 from 10; about 1 at the edge of the box."""
  return jnp.arcsinh(1000.0 * values) / 8.0


class MultiheadBlock(nnx.Module):
  """MAB(X, Y): attention from X to Y and a feed-forward, each with norm and residual."""

  def __init__(self, config: EncoderConfig, model: ModelConfig, *, rngs: nnx.Rngs):
    e = config
    self.attention = Attention(e.width, e.width, e.num_heads, e.head_dim, rngs=rngs)
    self.ff = FeedForward(e.width, e.ff_dim, model.activation, rngs=rngs)
    self.around_attention = Residual(e.width, model.norm, rngs=rngs)
    self.around_ff = Residual(e.width, model.norm, rngs=rngs)
    self.source_norm = nnx.LayerNorm(e.width, rngs=rngs) if model.norm == "full" else None

  def __call__(self, x: jax.Array, y: jax.Array, mask: jax.Array | None = None) -> jax.Array:
    """x [..., Q, E], y [..., S, E], mask of the source [..., 1, 1, S] -> [..., Q, E]."""
    y = y if self.source_norm is None else self.source_norm(y)
    h = self.around_attention(x, lambda q: self.attention(q, y, mask))
    return self.around_ff(h, self.ff)


class InducedSetBlock(nnx.Module):
  """ISAB: the set talks to itself through a few inducing points."""

  def __init__(self, config: EncoderConfig, model: ModelConfig, *, rngs: nnx.Rngs):
    init = nnx.initializers.xavier_uniform()
    self.inducing = nnx.Param(init(rngs.params(), (config.num_inducing, config.width)))
    self.gather = MultiheadBlock(config, model, rngs=rngs)
    self.scatter = MultiheadBlock(config, model, rngs=rngs)

  def __call__(self, x: jax.Array, mask: jax.Array) -> jax.Array:
    """x [B, N, E], mask [B, 1, 1, N] -> [B, N, E]."""
    inducing = jnp.broadcast_to(self.inducing[...], (x.shape[0], *self.inducing.shape)).astype(x.dtype)
    return self.scatter(x, self.gather(inducing, x, mask))


class Encoder(nnx.Module):
  """Points to latents: permuting the points or changing masked ones changes nothing."""

  def __init__(self, model: ModelConfig, *, rngs: nnx.Rngs):
    e = model.encoder
    self.features = e.features
    self.embed = Linear(num_features(e.features, model.vocabulary.num_variables + 1), e.width, rngs=rngs)
    self.blocks = nnx.List([InducedSetBlock(e, model, rngs=rngs) for _ in range(e.num_layers)])
    self.dropout = nnx.Dropout(model.dropout)
    self.row_ff = FeedForward(e.width, e.ff_dim, model.activation, rngs=rngs)
    self.row_norm = nnx.LayerNorm(e.width, rngs=rngs) if model.norm == "full" else None
    self.seeds = nnx.Param(nnx.initializers.xavier_uniform()(rngs.params(), (e.num_seeds, e.width)))
    self.pool = MultiheadBlock(e, model, rngs=rngs)
    # Pre-norm blocks leave their sum unnormalised; the decoder should see unit scale either way.
    self.final_norm = nnx.LayerNorm(e.width, rngs=rngs) if model.norm != "post" else None

  def __call__(
    self, points: jax.Array, is_valid: jax.Array, *, dropout_key: jax.Array | None = None, remat: bool = False
  ) -> jax.Array:
    """Encodes data sets.

    Args:
      points: [B, N, D+1]; is_valid: [B, N], True for rows that count.
      dropout_key: consumed; None switches dropout off.
      remat: whether the gradient computes each block again instead of storing what is inside.
    Returns:
      latents [B, M, E].
    """
    mask = is_valid[:, None, None, :]
    x = self.embed(point_features(points, is_valid, self.features).astype(self.embed.kernel.dtype))
    keys = [None] * len(self.blocks) if dropout_key is None else jax.random.split(dropout_key, len(self.blocks))
    for block, key in zip(self.blocks, keys, strict=True):
      x = self.dropout(call(block, x, mask, is_recomputed=remat), deterministic=key is None, rngs=key)
    x = x if self.row_norm is None else self.row_norm(x)
    seeds = jnp.broadcast_to(self.seeds[...], (x.shape[0], *self.seeds.shape)).astype(x.dtype)
    latents = self.pool(seeds, self.row_ff(x), mask)
    return latents if self.final_norm is None else self.final_norm(latents)
