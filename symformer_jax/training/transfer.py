"""Starts a model from a smaller one: fewer variables, layers, heads, inner units, point features.

What is new begins as nothing: what new layers, new heads and new inner units would add is multiplied by zero.
Variables come last in the vocabulary and each has features of its own, so that all that is new for them are a few
rows. The grown model therefore says what the smaller one says where new variables are 0 (but for `bits`, which has no
zeros), and learns on from there.
"""

from collections.abc import Sequence
import dataclasses
from typing import Any

import jax
import numpy as np

from symformer_jax.errors import InputError
from symformer_jax.model import encoder, symformer
from symformer_jax.model.config import ModelConfig

# The token of a new variable starts as that of the first one, apart by this share of a fresh draw.
_DIFFERENCE = 0.1
# What may differ, of the encoder and of the decoder.
_GROWING = ("num_layers", "num_heads", "ff_dim")
# The first of these point features are among the second.
_GROWING_FEATURES = ("scaled", "columns")
# The last matrix of each sublayer: its rows for new inner units are zero.
_ENDS = ("out", "outer")


def grow(params: symformer.Params, old: ModelConfig, new: ModelConfig, *, seed: int) -> symformer.Params:
  """Parameters of `new` from those of `old`, which may be smaller, as said above, and is else the same.

  Raises:
    InputError: where the two differ in anything else, `new` is smaller in something, or has more layers in post-norm,
      whose layers cannot be the identity.
  """
  _check(old, new)
  if old == new:
    return params
  fresh = jax.tree.map(np.array, symformer.init_params(new, jax.random.key(seed)))
  wide = _widen(jax.tree.map(np.array, params), fresh, old, new)
  kept = dict(jax.tree_util.tree_leaves_with_path(wide))
  return jax.tree_util.tree_map_with_path(lambda path, drawn: _grow_leaf(path, kept.get(path), drawn), fresh)


def _check(old: ModelConfig, new: ModelConfig) -> None:
  if (old.encoder.features, new.encoder.features) == _GROWING_FEATURES:
    old = dataclasses.replace(old, encoder=dataclasses.replace(old.encoder, features=new.encoder.features))
  parts = (("vocabulary", ("num_variables",)), ("encoder", _GROWING), ("decoder", _GROWING))
  grown = dataclasses.replace(old, **{part: _with_fields_of(getattr(old, part), getattr(new, part), names)
                                      for part, names in parts})
  if grown != new:
    raise InputError("a model can only start from one of the same shape, but for variables, layers, heads, ff_dim and "
                     "features scaled to columns")
  for part, names in parts:
    for name in names:
      before, after = getattr(getattr(old, part), name), getattr(getattr(new, part), name)
      if before > after:
        raise InputError(f"a model with {part}.{name}={after} cannot start from one with {before}")
      if before < after and name == "num_layers" and new.norm == "post":
        raise InputError(f"only pre-norm models can start from shallower ones, as with {part}.num_layers={after}")


def _with_fields_of(old: Any, new: Any, names: Sequence[str]) -> Any:
  return dataclasses.replace(old, **{name: getattr(new, name) for name in names})


def _grow_leaf(path: tuple, kept: np.ndarray | None, drawn: np.ndarray) -> np.ndarray:
  """`drawn`, with `kept` in its first corner; what ends a sublayer is zero elsewhere."""
  out = np.zeros_like(drawn) if path[-2].key in _ENDS else drawn
  if kept is not None:
    out[tuple(slice(n) for n in kept.shape)] = kept
  return out


def _widen(params: symformer.Params, fresh: symformer.Params, old: ModelConfig, new: ModelConfig) -> symformer.Params:
  """`params` with rows for the variables and point features that are new."""
  before, after = old.vocabulary.num_variables, new.vocabulary.num_variables
  if (before, old.encoder.features) == (after, new.encoder.features):
    return params
  old_names, names = (encoder.feature_names(m.encoder.features, m.vocabulary.num_variables) for m in (old, new))
  kernel = fresh["encoder"]["embed"]["kernel"]
  # What else is told of the old variables and of y begins as nothing; new variables have all their rows from the draw.
  kernel[[i for i, (_, variable) in enumerate(names) if variable < before]] = 0.0
  kernel[[names.index(name) for name in old_names]] = params["encoder"]["embed"]["kernel"]
  params["encoder"]["embed"]["kernel"] = kernel
  if before == after:
    return params
  first = old.vocabulary.ids["x0"]
  for part, leaf, axis in (("embed", "embedding", 0), ("classify", "kernel", 1), ("classify", "bias", 0)):
    params["decoder"][part][leaf] = _extend(params["decoder"][part][leaf], fresh["decoder"][part][leaf], axis, first)
  return params


def _extend(kept: np.ndarray, drawn: np.ndarray, axis: int, first: int) -> np.ndarray:
  """`kept` with as many rows along `axis` as `drawn`; each new one is row `first` and a share of what was drawn."""
  index = np.arange(kept.shape[axis], drawn.shape[axis])
  new = np.take(kept, [first] * len(index), axis) + _DIFFERENCE * np.take(drawn, index, axis)
  return np.concatenate([kept, new], axis)
