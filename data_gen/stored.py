"""Equations as they are stored: tokens and mantissas of constants, as a tree and as what tells skeletons apart."""

from collections.abc import Sequence
import hashlib

import numpy as np

from symformer_jax.language import expression
from symformer_jax.language.expression import Node
from symformer_jax.language.vocabulary import Vocabulary


def hash_skeleton(ids: Sequence[int] | np.ndarray, vocab: Vocabulary) -> int:
  """64 bits of the tokens with all constants written alike."""
  alike = bytes(vocab.first_constant_id if vocab.is_constant[i] else i for i in ids)
  return int.from_bytes(hashlib.blake2b(alike, digest_size=8).digest(), "little")


def read_tree(ids: Sequence[int] | np.ndarray, mantissas: np.ndarray, vocab: Vocabulary) -> Node:
  """The tree of a stored equation: ids [L], mantissas [L], float32, 0 where there is none.

  Constants are read to the 7 digits that float32 holds: x**6 must not become x**6.0000002.
  """
  scale = vocab.constant_scale
  pairs = zip(ids, mantissas.tolist(), strict=True)
  numbers = [float(f"{mantissa * scale[i]:.7g}") if mantissa else 0.0 for i, mantissa in pairs]
  return expression.decode(ids, numbers, vocab)
