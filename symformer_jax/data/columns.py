"""Where the variables of an equation stand among the columns of a table; runs on the device.

A model of nine variables is trained on equations of one to nine. Stored, an equation's variables are the first ones;
here they are dropped in among other columns, which do not matter, and now and then spread over all that the model
knows. Their order is kept: generated laws name their variables at random, and operands stay in canonical order.
A column that a table does not have is 0 in all rows, which is how the encoder knows it (`model.encoder`).
"""

import jax
import jax.numpy as jnp

from symformer_jax.language.vocabulary import Vocabulary

# Kinds of ranges of a column that does not matter: symmetric, from 0, or off centre.
_KINDS = 3


def place(
  key: jax.Array, ids: jax.Array, domains: jax.Array, *, vocab: Vocabulary, distractor_probability: float,
  max_distractors: int, spread_probability: float,
) -> tuple[jax.Array, jax.Array]:
  """Gives the variables of a batch their columns.

  Args:
    key: consumed.
    ids: prefix expressions [B, L] in the extended encoding, whose k variables are the first.
    domains: [B, D, 2], [0, 0] for the variables that an equation does not have.
    distractor_probability: share of the data sets with columns that do not matter, 1 to `max_distractors` of them
      where there is room.
    spread_probability: share whose columns are a random choice of all D; in the others they are the first.
  Returns:
    ids [B, L] and domains [B, D, 2] with the variables in their new columns.
  """
  batch, num_columns = domains.shape[:2]
  keys = jax.random.split(key, 6)
  count = jnp.sum(domains[..., 0] != domains[..., 1], axis=1)  # [B]
  extra = jax.random.randint(keys[0], (batch,), 1, max_distractors + 1)
  extra = jnp.where(jax.random.bernoulli(keys[1], distractor_probability, (batch,)), extra, 0)
  present = jnp.minimum(count + extra, num_columns)
  # Ranks of random numbers choose columns: the first `present` of the order are in the table.
  is_spread = jax.random.bernoulli(keys[2], spread_probability, (batch, 1))
  order = jnp.where(is_spread, jax.random.uniform(keys[3], (batch, num_columns)), jnp.arange(num_columns) / num_columns)
  is_present = _ranks(order) < present[:, None]  # [B, D]
  # Of them `count` are the equation's: absent columns come last in the draw.
  lot = jax.random.uniform(keys[4], (batch, num_columns)) + jnp.where(is_present, 0.0, 2.0)
  is_used = _ranks(lot) < count[:, None]
  number = jnp.cumsum(is_used, axis=1) - 1  # which variable of the equation stands in a used column
  own = jnp.take_along_axis(domains, jnp.maximum(number, 0)[..., None], axis=1)
  others = jnp.where(is_present[..., None], _draw_domains(keys[5], batch, num_columns), 0.0)
  columns = jnp.argsort(~is_used, axis=1, stable=True)  # column of the i-th variable [B, D]
  first = vocab.first_variable_id
  index = jnp.clip(ids - first, 0, num_columns - 1)
  moved = first + jnp.take_along_axis(columns, index, axis=1)
  return jnp.where(ids >= first, moved.astype(ids.dtype), ids), jnp.where(is_used[..., None], own, others)


def _ranks(values: jax.Array) -> jax.Array:
  """Rank of each value within its row [B, D], 0 for the smallest."""
  return jnp.argsort(jnp.argsort(values))


def _draw_domains(key: jax.Array, batch: int, num_columns: int) -> jax.Array:
  """Ranges of columns that do not matter [B, D, 2], within the trained box."""
  keys = jax.random.split(key, 3)
  shape = (batch, num_columns)
  high = jax.random.uniform(keys[0], shape, minval=1.0, maxval=5.0)
  share = jax.random.uniform(keys[1], shape, minval=0.01, maxval=0.7)
  kind = jax.random.randint(keys[2], shape, 0, _KINDS)
  low = high * jnp.select([kind == 0, kind == 1], [-jnp.ones(shape), jnp.zeros(shape)], share)
  return jnp.stack([low, high], axis=-1)
