"""Test doubles that ship with the package: stand-ins for a trained model."""

from collections.abc import Sequence
import functools
from typing import Any

import jax
import numpy as np

from symformer_jax.language import expression, parser
from symformer_jax.language.vocabulary import Vocabulary


class FixedProposer:
  """Proposes the same formulas for any data, in turn, with constants disturbed: a model without a network.

  Anything with `name`, `vocab` and `propose` can stand in for a model in `inference.search`.
  """

  def __init__(self, formulas: Sequence[str], *, num_variables: int = 1, max_length: int = 32, noise: float = 0.05):
    """Args: formulas over x0, x1, ...; noise: standard deviation of the relative change of each constant."""
    self._recipe = functools.partial(
      FixedProposer, tuple(formulas), num_variables=num_variables, max_length=max_length, noise=noise)
    self.name = "fixed"
    self.vocab = Vocabulary(num_variables)
    self.max_length, self.noise = max_length, noise
    names = [f"x{i}" for i in range(num_variables)]
    self.programs = [expression.encode(parser.parse(text, names), self.vocab) for text in formulas]

  def __reduce__(self) -> tuple[Any, ...]:
    # A vocabulary keeps what it has once computed: copies must not differ by what was used before.
    return self._recipe, ()

  def __repr__(self) -> str:
    # Without the address, which would make test ids differ between processes.
    return f"FixedProposer({list(self._recipe.args[0])!r}, num_variables={self.vocab.num_variables})"

  def propose(
    self, points: np.ndarray, is_valid: np.ndarray, key: jax.Array, *, num_samples: int, top_k: int
  ) -> tuple[np.ndarray, np.ndarray]:
    """`(ids [K, L] int32, mantissas [K, L] float32)` without start token, padded with 0."""
    del points, is_valid, top_k
    ids = np.zeros((num_samples, self.max_length), np.int32)
    mantissas = np.zeros((num_samples, self.max_length), np.float32)
    for k in range(num_samples):
      tokens, constants = self.programs[k % len(self.programs)]
      ids[k, : len(tokens)], mantissas[k, : len(tokens)] = tokens, constants
    factors = 1 + self.noise * np.asarray(jax.random.normal(key, mantissas.shape))
    return ids, mantissas * factors.astype(np.float32)
