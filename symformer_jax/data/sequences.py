"""From stored expressions to what the decoder reads and should answer; runs on the device."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from symformer_jax.language.vocabulary import END_ID, PAD_ID, START_ID, Vocabulary


class Sequences(NamedTuple):
  """Teacher forcing for one batch.

  Attributes:
    ids: start token and expression [B, L]; constants: their mantissas [B, L].
    targets: expression and end token [B, L]; target_constants: their mantissas [B, L].
    is_target: True up to and including the end token [B, L].
  """

  ids: jax.Array
  constants: jax.Array
  targets: jax.Array
  target_constants: jax.Array
  is_target: jax.Array


def teacher_forcing(ids: jax.Array, constants: jax.Array) -> Sequences:
  """ids, constants [B, L - 1], padded, without start and end -> decoder inputs and targets [B, L]."""
  padded_ids = jnp.pad(ids, ((0, 0), (0, 1)), constant_values=PAD_ID)
  padded_constants = jnp.pad(constants, ((0, 0), (0, 1)))
  lengths = jnp.sum(ids != PAD_ID, axis=1, keepdims=True)
  position = jnp.arange(padded_ids.shape[1])[None]
  return Sequences(
    ids=jnp.pad(ids, ((0, 0), (1, 0)), constant_values=START_ID),
    constants=jnp.pad(constants, ((0, 0), (1, 0))),
    targets=jnp.where(position == lengths, END_ID, padded_ids),
    target_constants=padded_constants,
    is_target=position <= lengths,
  )


def to_encoding(ids: jax.Array, mantissas: jax.Array, vocab: Vocabulary) -> tuple[jax.Array, jax.Array]:
  """Re-encodes extended ids and mantissas [B, L] for `vocab`: raw values in base, zeros in skeleton."""
  if vocab.encoding == "extended":
    return ids, mantissas
  extended = Vocabulary(vocab.num_variables)
  first, count = extended.first_constant_id, extended.num_constant_tokens
  is_constant = (ids >= first) & (ids < first + count)
  # Ids before the constants agree; the 21 C tokens become one, so later ids move down by 20.
  new_ids = jnp.where(ids >= first + count, ids - (count - 1), jnp.where(is_constant, first, ids))
  if vocab.encoding == "skeleton":
    return new_ids, jnp.zeros_like(mantissas)
  values = mantissas * jnp.asarray(extended.constant_scale, mantissas.dtype)[ids]
  return new_ids, jnp.where(is_constant, values, 0.0)
