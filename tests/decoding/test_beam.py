"""Beam search and Gumbel top-k against the listing of all expressions of a small language."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats
from small_network import CONFIG, Model, points

from symformer_jax.decoding import beam, grammar, sampling
from symformer_jax.decoding.strategies import Beam, StochasticBeam
from symformer_jax.language.rules import Rule
from symformer_jax.language.vocabulary import START_ID, Vocabulary
from symformer_jax.model import symformer

VOCAB: Vocabulary = CONFIG.vocabulary
SIX = tuple(VOCAB.ids[token] for token in ("+", "sin", "x0", "x1", "2", "C1"))
LENGTH = 5


def small_language():
  rules = grammar.make_grammar(Rule(2, frozenset({"+", "sin"})), VOCAB)
  rules = rules._replace(is_permitted=rules.is_permitted & np.isin(np.arange(VOCAB.size), SIX))
  return jax.tree.map(jnp.asarray, rules)


def latents():
  return symformer.merge(CONFIG, Model.params).encoder(*(a[None] for a in points()))


def list_all() -> dict[tuple[int, ...], float]:
  """Log-probabilities of all expressions, by the network read from the left without a cache."""
  whole = [ids for n in range(1, LENGTH + 1) for ids in itertools.product(SIX, repeat=n)
           if (m := 1 + np.cumsum([VOCAB.arity[i] - 1 for i in ids]))[-1] == 0 and (m[:-1] > 0).all()]
  prefixes = sorted({ids[:i] for ids in whole for i in range(len(ids))})
  model = symformer.merge(CONFIG, Model.params)
  read = np.zeros((len(prefixes), LENGTH), np.int32)
  read[:, 0] = START_ID
  for row, prefix in zip(read, prefixes, strict=True):
    row[1 : len(prefix) + 1] = prefix
  # A constant that is read has the mantissa predicted one position before: position by position, from the left.
  mantissas = np.zeros(read.shape, np.float32)
  run = jax.jit(lambda ids, values: model.decoder(ids, values, jnp.repeat(latents(), len(prefixes), axis=0)))
  for t in range(1, LENGTH):
    _, predicted = run(read, mantissas)
    mantissas[:, t] = np.where(read[:, t] == VOCAB.ids["C1"], predicted[:, t - 1], 0)
  logits = np.asarray(run(read, mantissas)[0], np.float64)
  log_prob = {}
  for prefix, row in zip(prefixes, logits, strict=True):
    following = sorted({ids[len(prefix)] for ids in whole if ids[: len(prefix)] == prefix and len(ids) > len(prefix)})
    values = row[len(prefix), following]
    for token, value in zip(following, values - np.logaddexp.reduce(values), strict=True):
      log_prob[*prefix, token] = value
  return {ids: sum(log_prob[ids[:i]] for i in range(1, len(ids) + 1)) for ids in whole}


ALL = list_all()


def search(num_beams, strategy, key):
  return beam.search_beams(Model.params, latents(), key, small_language(), config=CONFIG, num_beams=num_beams,
                           max_length=LENGTH, strategy=strategy)


def rows(ids):
  return [tuple(int(i) for i in row if i) for row in np.asarray(ids)]


def test_a_beam_wide_enough_is_exhaustive_search():
  found = search(400, Beam(), jax.random.key(0))
  is_there = np.isfinite(found.log_prob)
  assert is_there.sum() == len(ALL) == 308 and np.exp(list(ALL.values())).sum() > 1 - 1e-9
  got = np.asarray(found.log_prob)[is_there]
  assert (np.diff(got) <= 0).all() and set(rows(found.ids[is_there])) == set(ALL)
  np.testing.assert_allclose(got, [ALL[ids] for ids in rows(found.ids[is_there])], atol=1e-5)


def test_samples_without_replacement_have_their_probabilities():
  """The first of two by p, and the pair by p / (1 - p of the first): Plackett and Luce."""
  number = 4000
  found = jax.jit(jax.vmap(lambda key: search(2, StochasticBeam(), key)))(jax.random.split(jax.random.key(1), number))
  pairs = [tuple(rows(ids)) for ids in np.asarray(found.ids)]
  assert all(a != b for a, b in pairs)
  probability = {ids: np.exp(value) for ids, value in ALL.items()}
  expected = {(a, b): probability[a] * probability[b] / (1 - probability[a])
              for a, b in itertools.permutations(probability, 2)}
  likely = [pair for pair in expected if expected[pair] * number > 5]
  counts = [sum(pair == p for p in pairs) for pair in likely]
  rest = number - sum(counts)
  weights = [expected[pair] * number for pair in likely]
  assert len(likely) > 20
  assert scipy.stats.chisquare([*counts, rest], [*weights, number - sum(weights)]).pvalue > 1e-3


def test_candidates_of_the_strategies_are_distinct_and_valid():
  for strategy in (Beam(), StochasticBeam()):
    ids, mantissas = sampling.sample_candidates(
      Model, *points(), jax.random.key(0), num_samples=100, strategy=strategy, rule=Rule(2, max_depth=3))
    assert ids.shape == (100, CONFIG.decoder.max_length - 1) and len(np.unique(ids, axis=0)) == 100
    for row in ids:
      missing = 1 + np.cumsum([VOCAB.arity[i] - 1 for i in row if i])
      assert missing[-1] == 0 and (missing[:-1] > 0).all()
    assert not mantissas[~np.asarray(VOCAB.is_constant)[ids]].any()
  few, _ = sampling.sample_candidates(Model, *points(), jax.random.key(0), num_samples=100, strategy=Beam(),
                                      rule=Rule(2, max_depth=1))
  assert len(few) == 34  # 2 variables, 11 integers and 21 constants: no more than there are
