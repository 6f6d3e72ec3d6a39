"""The decode loop: every sample valid, greedy equals top-1, frequencies as the model says."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from symformer_jax.decoding import grammar, loop, sampling
from symformer_jax.decoding.strategies import Greedy, Nucleus, TopK
from symformer_jax.language import expression
from symformer_jax.language.vocabulary import START_ID, Vocabulary
from symformer_jax.model import symformer
from symformer_jax.model.config import DecoderConfig, EncoderConfig, ModelConfig

CONFIG = ModelConfig(
  vocabulary=Vocabulary(2),
  encoder=EncoderConfig(width=8, num_heads=2, head_dim=4, ff_dim=16, num_layers=1, num_inducing=3, num_seeds=4),
  decoder=DecoderConfig(width=12, num_heads=2, head_dim=6, ff_dim=16, num_layers=2, max_length=14), dropout=0.0)


class Model:
  config = CONFIG
  params = symformer.init_params(CONFIG, jax.random.key(1))


@pytest.fixture
def points(rng):
  return rng.normal(size=(16, 3)).astype(np.float32), np.ones(16, bool)


def _arity_sum(ids, vocab):
  """Arguments missing after each token, by the definition of prefix order."""
  return 1 + np.cumsum([vocab.arity[i] - 1 for i in ids])


def test_every_sample_is_valid_and_within_the_limit(points):
  ids, mantissas = sampling.sample_candidates(Model, *points, jax.random.key(0), num_samples=2500)
  assert ids.shape == (2500, 13)
  for row, constants in zip(ids, mantissas, strict=True):
    tokens = row[row != 0]
    missing = _arity_sum(tokens, CONFIG.vocabulary)
    assert missing[-1] == 0 and (missing[:-1] > 0).all()
    is_constant = np.asarray(CONFIG.vocabulary.is_constant)[row]
    assert not constants[~is_constant].any() and (np.abs(constants) <= 1).all()
    expression.decode(row, constants, CONFIG.vocabulary)


def test_top_1_equals_greedy(points):
  ids, mantissas = sampling.sample_candidates(Model, *points, jax.random.key(0), num_samples=4, strategy=Greedy())
  other = sampling.sample_candidates(Model, *points, jax.random.key(5), num_samples=4, strategy=TopK(1))
  np.testing.assert_array_equal(ids, other[0])
  np.testing.assert_array_equal(mantissas, other[1])
  assert (ids == ids[0]).all()


def test_log_probability_is_the_teacher_forced_one(points):
  latents = symformer.merge(CONFIG, Model.params).encoder(points[0][None], points[1][None])
  permitted = grammar.permitted_tokens(CONFIG.vocabulary)
  ids, mantissas, log_prob = loop.decode(
    Model.params, latents, jax.random.key(0), jnp.asarray(permitted), config=CONFIG, num_candidates=20, max_length=13,
    strategy=TopK(20))
  inputs = jnp.concatenate([jnp.full((20, 1), START_ID), ids[:, :-1]], axis=1)
  constants = jnp.concatenate([jnp.zeros((20, 1)), mantissas[:, :-1]], axis=1)
  logits, predicted = symformer.merge(CONFIG, Model.params).decoder(inputs, constants, jnp.repeat(latents, 20, axis=0))
  for k in range(20):
    total, num_open = 0.0, 1
    for t in range(13):
      if num_open == 0:
        break
      allowed = grammar.allowed_tokens(jnp.array([num_open]), 13 - t, permitted, vocab=CONFIG.vocabulary)[0]
      total += jax.nn.log_softmax(jnp.where(allowed, logits[k, t], -jnp.inf))[ids[k, t]]
      if CONFIG.vocabulary.is_constant[int(ids[k, t])]:
        assert mantissas[k, t] == pytest.approx(float(predicted[k, t]), abs=1e-5)
      num_open += CONFIG.vocabulary.arity[int(ids[k, t])] - 1
    assert log_prob[k] == pytest.approx(float(total), abs=1e-3)


def test_user_rules_are_kept(points):
  vocab = CONFIG.vocabulary
  permitted = grammar.permitted_tokens(vocab, num_columns=1, tokens=frozenset({"+", "*", "sin"}))
  ids, _ = sampling.sample_candidates(Model, *points, jax.random.key(0), num_samples=500, is_permitted=permitted)
  used = {vocab.tokens[i] for i in np.unique(ids) if i}
  assert not used & {"x1", "pow", "exp", "neg", "inv"}
  assert {"x0", "+"} <= used


def test_grammar_allows_exactly_what_can_be_completed():
  """Against enumeration: all sequences of up to five tokens over a vocabulary of three arities."""
  vocab = Vocabulary(1)
  plus, sine, x = vocab.ids["+"], vocab.ids["sin"], vocab.ids["x0"]
  permitted = np.zeros(vocab.size, bool)
  permitted[[plus, sine, x]] = True
  limit = 5
  whole = {seq for n in range(1, limit + 1) for seq in itertools.product((plus, sine, x), repeat=n)
           if (m := _arity_sum(seq, vocab))[-1] == 0 and (m[:-1] > 0).all()}
  prefixes = {seq[:i] for seq in whole for i in range(len(seq))}
  for prefix in prefixes:
    num_open = 1 if not prefix else int(_arity_sum(prefix, vocab)[-1])
    mask = np.asarray(grammar.allowed_tokens(
      jnp.array([num_open]), jnp.int32(limit - len(prefix)), jnp.asarray(permitted), vocab=vocab))[0]
    for token in (plus, sine, x):
      is_possible = prefix + (token,) in whole or prefix + (token,) in prefixes
      assert mask[token] == is_possible, (prefix, token)
    assert not mask[[0, 1, 2]].any()


def test_a_whole_expression_allows_the_end_alone():
  vocab = Vocabulary(1)
  mask = np.asarray(grammar.allowed_tokens(jnp.array([0]), jnp.int32(5), jnp.ones(vocab.size, bool), vocab=vocab))[0]
  assert np.flatnonzero(mask).tolist() == [vocab.ids["end"]]


@pytest.mark.parametrize(("strategy", "kept"), [(TopK(3), 3), (TopK(50), 5), (Nucleus(0.75), 3), (Nucleus(1e-6), 1)])
def test_frequencies_are_the_renormalized_probabilities(strategy, kept):
  probability = np.array([0.05, 0.4, 0.1, 0.25, 0.2])
  logits = jnp.log(jnp.broadcast_to(jnp.asarray(probability, jnp.float32), (20_000, 5)))
  counts = np.bincount(np.asarray(strategy.choose(jax.random.key(0), logits)), minlength=5)
  order = np.argsort(-probability)[:kept]
  assert counts[np.setdiff1d(range(5), order)].sum() == 0
  if kept > 1:
    expected = probability[order] / probability[order].sum() * 20_000
    assert scipy.stats.chisquare(counts[order], expected).pvalue > 1e-3
