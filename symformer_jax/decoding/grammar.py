"""Which tokens can still lead to a whole prefix expression within the length limit."""

import jax
import jax.numpy as jnp
import numpy as np

from symformer_jax.language.vocabulary import END_ID, Vocabulary


def allowed_tokens(
  num_open: jax.Array, num_left: jax.Array, is_permitted: jax.Array, *, vocab: Vocabulary
) -> jax.Array:
  """Mask of the next token: every sequence drawn under it is a valid expression.

  Args:
    num_open: arguments still missing [K]; 1 before the first token, 0 when the expression is whole.
    num_left: tokens that may still be written, this one included; scalar.
    is_permitted: tokens the user allows [V]; at least one operand among them.
    vocab: static.
  Returns:
    [K, V]; a whole expression allows the end token alone.
  """
  arity = jnp.asarray(np.asarray(vocab.arity, np.int32))[None]
  open_after = num_open[:, None] - 1 + arity
  fits = (arity >= 0) & is_permitted[None] & (open_after <= num_left - 1) & (num_open[:, None] > 0)
  is_end = jnp.arange(vocab.size)[None] == END_ID
  return fits | (is_end & (num_open[:, None] == 0))


def permitted_tokens(
  vocab: Vocabulary, *, num_columns: int | None = None, tokens: frozenset[str] | None = None
) -> np.ndarray:
  """Tokens [V] a user allows: all operands on existing columns, and the operators named in `tokens` (None: all)."""
  is_permitted = np.ones(vocab.size, bool)
  for i, token in enumerate(vocab.tokens):
    if vocab.arity[i] > 0 and tokens is not None:
      is_permitted[i] = token in tokens
    elif i >= vocab.first_variable_id and num_columns is not None:
      is_permitted[i] = i - vocab.first_variable_id < num_columns
  return is_permitted
