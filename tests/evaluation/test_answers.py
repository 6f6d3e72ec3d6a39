"""The bare protocol's last step: the best few get the constants that float64 gives them."""

import numpy as np
import pytest

from symformer_jax.engine.rows import Rows
from symformer_jax.evaluation import answers
from symformer_jax.language import expression, parser
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.sources.network.samples import Samples


def test_the_best_few_are_fitted_to_their_end(rng):
  vocab = Vocabulary(1)
  ids, values = np.zeros((40, 12), np.int32), np.zeros((40, 12))
  for k in range(40):  # all of one shape, the worst last
    tokens, mantissas = expression.encode(parser.parse(f"{2.5 + 0.01 * k}/(x + {1.3 + 0.001 * k})"), vocab)
    ids[k, :len(tokens)] = tokens
    values[k, :len(tokens)] = np.array(mantissas) * np.array(vocab.constant_scale)[tokens]
  x = rng.uniform(-1, 3, (60, 1))
  y = 2.4871234567 / (x[:, 0] + 1.2987654321)
  loss = np.arange(40.0)
  loss[3] = np.inf
  polished = answers._polish_best(Samples(ids, values, loss, vocab), Rows(x, y, np.ones(60)), "lm")
  assert len(polished.ids) == answers.NUM_POLISHED
  best = int(np.argmin(polished.loss))
  assert polished.loss[best] < 1e-25
  assert sorted(polished.values[best][polished.values[best] != 0]) == pytest.approx([1.2987654321, 2.4871234567], 1e-12)


def test_fewer_samples_than_are_polished_stay_themselves(rng):
  vocab = Vocabulary(1)
  tokens, mantissas = expression.encode(parser.parse("2.6*x"), vocab)
  values = np.array(mantissas) * np.array(vocab.constant_scale)[tokens]
  x = rng.uniform(-1, 3, (20, 1))
  samples = Samples(np.array([tokens], np.int32), values[None], np.array([1.0]), vocab)
  polished = answers._polish_best(samples, Rows(x, 2.7 * x[:, 0], np.ones(20)), "lm")
  assert np.all(polished.loss < 1e-25) and len({tuple(row) for row in polished.ids.tolist()}) == 1
