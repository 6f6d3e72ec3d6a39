"""Building blocks shared by encoder and decoder: attention with a validity mask, feed-forward, residual blocks."""

from collections.abc import Callable
from typing import Any

from flax import nnx
import jax
import jax.numpy as jnp

# Added to the scores of masked keys: large enough to vanish in softmax, finite so that a row whose keys are all
# masked gives a uniform average instead of NaN.
MASKED_SCORE = -1e9

ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {"relu": jax.nn.relu, "gelu": jax.nn.gelu}


def _multiply_rows(lhs: jax.Array, rhs: jax.Array, dimension_numbers: object, **options: Any) -> jax.Array:
  """`lhs` [..., A] times `rhs` [A, B], as the product of two matrices.

  With more axes XLA's CPU compiler copies a transpose of each activation for the gradient of `rhs`
  (docs/results/training_speed.md).
  """
  del dimension_numbers  # nnx.Linear contracts the last axis of lhs with the first of rhs
  rows = lhs.reshape(-1, lhs.shape[-1])
  product = jax.lax.dot_general(rows, rhs, (((1,), (0,)), ((), ())), **options)
  return product.reshape(*lhs.shape[:-1], rhs.shape[-1])


class Linear(nnx.Linear):
  """x W + b over the last axis."""

  def __init__(self, in_features: int, out_features: int, *, rngs: nnx.Rngs):
    super().__init__(in_features, out_features, dot_general=_multiply_rows, rngs=rngs)


def call(block: Callable[..., jax.Array], x: jax.Array, *args: Any, is_recomputed: bool) -> jax.Array:
  """`block(x, *args)`; where asked for, its inside is computed again for the gradient instead of being stored."""
  return (jax.checkpoint(block) if is_recomputed else block)(x, *args)


def attend(query: jax.Array, key: jax.Array, value: jax.Array, mask: jax.Array | None) -> jax.Array:
  """Scaled dot-product attention (Vaswani et al. 2017, eq. 1).

  Args:
    query: [..., Q, H, A]; key, value: [..., S, H, A], A the head size.
    mask: True where a query may look, broadcastable to [..., H, Q, S], or None.
  Returns:
    [..., Q, H, A].
  """
  # Scores and softmax in float32: bfloat16 has three digits, of scores of 80 and of a sum of small weights alike.
  scores = jnp.einsum(
    "...qha,...sha->...hqs", query * query.shape[-1] ** -0.5, key, preferred_element_type=jnp.float32)
  if mask is not None:
    scores = jnp.where(mask, scores, MASKED_SCORE)
  weights = jax.nn.softmax(scores).astype(value.dtype)
  return jnp.einsum("...hqs,...sha->...qha", weights, value)


def attend_one(query: jax.Array, key: jax.Array, value: jax.Array, is_visible: jax.Array) -> jax.Array:
  """`attend` for a single query each, by sums instead of matrix products: one pass over the keys and values.

  With one query a product has nothing to reuse, and on CPU its
  rearranging costs more than all the rest (docs/results/decoding.md).
  Args:
    query: [K, 1, H, A]; key, value: [K, S, H, A]; is_visible: [K, S].
  Returns:
    [K, 1, H, A].
  """
  scores = jnp.sum(query * query.shape[-1] ** -0.5 * key, axis=-1)  # [K, S, H]
  scores = jnp.where(is_visible[..., None], scores, jnp.asarray(MASKED_SCORE, scores.dtype))
  weights = jax.nn.softmax(scores.astype(jnp.float32), axis=-2).astype(value.dtype)
  return jnp.sum(weights[..., None] * value, axis=-3, keepdims=True)


class Attention(nnx.Module):
  """Multi-head attention with a head size of its own (num_heads * head_dim may differ from the width)."""

  def __init__(self, query_dim: int, source_dim: int, num_heads: int, head_dim: int, *, rngs: nnx.Rngs):
    inner = num_heads * head_dim
    self.num_heads, self.head_dim = num_heads, head_dim
    self.query = Linear(query_dim, inner, rngs=rngs)
    self.key = Linear(source_dim, inner, rngs=rngs)
    self.value = Linear(source_dim, inner, rngs=rngs)
    self.out = Linear(inner, query_dim, rngs=rngs)

  def split(self, x: jax.Array) -> jax.Array:
    """[..., H * A] -> [..., H, A]."""
    return x.reshape(*x.shape[:-1], self.num_heads, self.head_dim)

  def project_source(self, source: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Keys and values [..., S, H, A] of a source [..., S, E]."""
    return self.split(self.key(source)), self.split(self.value(source))

  def __call__(self, x: jax.Array, source: jax.Array, mask: jax.Array | None = None) -> jax.Array:
    """x [..., Q, E], source [..., S, E'] -> [..., Q, E]."""
    key, value = self.project_source(source)
    return self.attend_to(x, key, value, mask)

  def attend_to(self, x: jax.Array, key: jax.Array, value: jax.Array, mask: jax.Array | None) -> jax.Array:
    """Attention to keys and values [..., S, H, A] projected before."""
    context = attend(self.split(self.query(x)), key, value, mask)
    return self.out(context.reshape(*context.shape[:-2], -1))

  def attend_one_to(self, x: jax.Array, key: jax.Array, value: jax.Array, is_visible: jax.Array) -> jax.Array:
    """The same for one position each: x [K, 1, E], is_visible [K, S]."""
    context = attend_one(self.split(self.query(x)), key, value, is_visible)
    return self.out(context.reshape(*context.shape[:-2], -1))


class FeedForward(nnx.Module):
  """Linear, activation, linear."""

  def __init__(self, width: int, ff_dim: int, activation: str, *, rngs: nnx.Rngs):
    self.inner = Linear(width, ff_dim, rngs=rngs)
    self.outer = Linear(ff_dim, width, rngs=rngs)
    self.activation = ACTIVATIONS[activation]

  def __call__(self, x: jax.Array) -> jax.Array:
    return self.outer(self.activation(self.inner(x)))


class Residual(nnx.Module):
  """Norm and residual around a sublayer: LN(x + f(x)) for `post`, x + f(LN(x)) for `pre`."""

  def __init__(self, width: int, norm: str, *, rngs: nnx.Rngs):
    self.norm = nnx.LayerNorm(width, rngs=rngs)
    self.is_pre = norm != "post"

  def __call__(self, x: jax.Array, sublayer: Callable[[jax.Array], jax.Array]) -> jax.Array:
    if self.is_pre:
      return x + sublayer(self.norm(x))
    return self.norm(x + sublayer(x))
