"""Models of the base and the skeleton encoding go through the same search as the extended one."""

import jax
import numpy as np
import pytest
import scipy.stats

from symformer_jax import inference
from symformer_jax.decoding import sampling
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.model import symformer
from symformer_jax.model.config import DecoderConfig, EncoderConfig, ModelConfig
from symformer_jax.pretrained.registry import LoadedModel


@pytest.mark.parametrize("encoding", [pytest.param("base", marks=pytest.mark.slow), "skeleton"])
def test_candidates_can_be_fitted(encoding, rng):
  config = ModelConfig(
    vocabulary=Vocabulary(2, encoding),
    encoder=EncoderConfig(width=8, num_heads=2, head_dim=4, ff_dim=16, num_layers=1, num_inducing=3, num_seeds=4),
    decoder=DecoderConfig(width=12, num_heads=2, head_dim=6, ff_dim=16, num_layers=2, max_length=14), dropout=0.0)
  model = LoadedModel("ablation", config, lambda: symformer.init_params(config, jax.random.key(1)), {})
  points = rng.normal(size=(16, 3)).astype(np.float32)
  ids, values = sampling.sample_candidates(model, points, np.ones(16, bool), jax.random.key(0), num_samples=600)
  at_constants = values[np.asarray(config.vocabulary.is_constant)[ids]]
  assert len(at_constants) > 50 and at_constants.all()
  if encoding == "skeleton":  # drawn as the generator's leaves are, anew for every sample
    assert len(np.unique(at_constants)) == len(at_constants)
    assert scipy.stats.kstest(at_constants, scipy.stats.uniform(-5, 10).cdf).pvalue > 1e-3
  result, = inference.search(model, [points], n_samples=64, seed=0, recombine=False, effort="thorough")
  assert result.status == "ok" and result.counts.distinct > 0
