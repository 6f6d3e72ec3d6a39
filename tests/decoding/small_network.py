"""A network of a few hundred parameters over two variables, untrained: what decoding needs and no more."""

import jax
import numpy as np

from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.model import symformer
from symformer_jax.model.config import DecoderConfig, EncoderConfig, ModelConfig

CONFIG = ModelConfig(
  vocabulary=Vocabulary(2),
  encoder=EncoderConfig(width=8, num_heads=2, head_dim=4, ff_dim=16, num_layers=1, num_inducing=3, num_seeds=4),
  decoder=DecoderConfig(width=12, num_heads=2, head_dim=6, ff_dim=16, num_layers=2, max_length=14), dropout=0.0)


class Model:
  name, config, vocab = "small", CONFIG, CONFIG.vocabulary
  params = symformer.init_params(CONFIG, jax.random.key(1))


def points(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
  """Points [16, 3] and their validity."""
  return np.random.default_rng(seed).normal(size=(16, 3)).astype(np.float32), np.ones(16, bool)
