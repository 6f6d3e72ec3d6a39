"""Starts a model of more variables from one of fewer.

Variables come last in the vocabulary and each has features of its own, so all that is new are a few rows. Where the
new variables are 0 the wider model says what the narrower one does (but for `bits`, which has no zeros).
"""

import dataclasses

import jax
import numpy as np

from symformer_jax.errors import InputError
from symformer_jax.model import encoder, symformer
from symformer_jax.model.config import ModelConfig

# The token of a new variable starts as that of the first one, apart by this share of a fresh draw.
_DIFFERENCE = 0.1


def widen(params: symformer.Params, old: ModelConfig, new: ModelConfig, *, seed: int) -> symformer.Params:
  """Parameters of `new` from those of `old`, which may have fewer variables and is else the same.

  Raises:
    InputError: where the two differ in anything else, or `new` has fewer variables.
  """
  before, after = old.vocabulary.num_variables, new.vocabulary.num_variables
  if dataclasses.replace(old, vocabulary=dataclasses.replace(old.vocabulary, num_variables=after)) != new:
    raise InputError("a model can only start from one of the same shape")
  if before > after:
    raise InputError(f"a model of {after} variables cannot start from one of {before}")
  if before == after:
    return params
  wide = jax.tree.map(np.array, params)
  fresh = jax.tree.map(np.array, symformer.init_params(new, jax.random.key(seed)))
  old_rows, old_rest = encoder.feature_rows(old.encoder.features, before)
  rows, rest = encoder.feature_rows(new.encoder.features, after)
  kernel = fresh["encoder"]["embed"]["kernel"]
  kernel[[*sum(rows[:before], []), *rest]] = wide["encoder"]["embed"]["kernel"][[*sum(old_rows, []), *old_rest]]
  wide["encoder"]["embed"]["kernel"] = kernel
  first = old.vocabulary.ids["x0"]
  for part, leaf, axis in (("embed", "embedding", 0), ("classify", "kernel", 1), ("classify", "bias", 0)):
    wide["decoder"][part][leaf] = _extend(wide["decoder"][part][leaf], fresh["decoder"][part][leaf], axis, first)
  return wide


def _extend(kept: np.ndarray, drawn: np.ndarray, axis: int, first: int) -> np.ndarray:
  """`kept` with as many rows along `axis` as `drawn`; each new one is row `first` and a share of what was drawn."""
  index = np.arange(kept.shape[axis], drawn.shape[axis])
  new = np.take(kept, [first] * len(index), axis) + _DIFFERENCE * np.take(drawn, index, axis)
  return np.concatenate([kept, new], axis)
