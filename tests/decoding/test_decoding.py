"""The decode loop: every sample valid, greedy equals top-1, frequencies as the model says, each sample for itself."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from small_network import CONFIG, Model, points

from symformer_jax import compilation
from symformer_jax.decoding import grammar, sampling
from symformer_jax.decoding.strategies import Greedy, Nucleus, Temperature, TopK
from symformer_jax.language import expression, interpreter
from symformer_jax.language.rules import Rule
from symformer_jax.language.vocabulary import START_ID
from symformer_jax.model import symformer

LENGTH = CONFIG.decoder.max_length - 1


def sample(num, *, key=0, **options):
  return sampling.sample_candidates(Model, *points(), jax.random.key(key), num_samples=num, **options)


def test_twenty_thousand_samples_are_valid_and_keep_the_rules():
  rule = Rule(2, frozenset({"+", "*", "pow", "sin", "exp", "inv"}), frozenset({1}), frozenset(), 3.0, 4,
              frozenset({"sin", "exp"}))
  ids, mantissas = sample(20_000, rule=rule)
  assert ids.shape == (20_000, LENGTH) and (np.abs(mantissas) <= 1).all()
  is_constant = np.asarray(CONFIG.vocabulary.is_constant)[ids]
  assert not mantissas[~is_constant].any()
  values = np.asarray(interpreter.constant_values(ids, mantissas, CONFIG.vocabulary))
  _, first = np.unique(ids, axis=0, return_index=True)
  assert len(first) > 2_000
  for k in first:  # a whole expression, or decode raises
    assert rule(expression.decode(ids[k], values[k], CONFIG.vocabulary))


def test_samples_have_any_length_up_to_the_limit():
  ids, _ = sample(3000)
  lengths = (ids != 0).sum(axis=1)
  assert set(range(1, LENGTH + 1)) == set(lengths.tolist())


def test_top_1_equals_greedy():
  ids, mantissas = sample(4, strategy=Greedy())
  other = sample(4, key=5, strategy=TopK(1))
  np.testing.assert_array_equal(ids, other[0])
  np.testing.assert_array_equal(mantissas, other[1])
  assert (ids == ids[0]).all()


def decode(num_lanes, num_samples=200, *, seeds=(0,), counts=None):
  """Samples of data sets drawn with the seeds, decoded in one call."""
  shown = [points(seed) for seed in seeds]
  encode = jax.jit(symformer.merge(CONFIG, Model.params).encoder)
  latents = encode(*(jnp.stack(a) for a in zip(*shown, strict=True)))
  rules = jax.tree.map(lambda a: np.stack([a] * len(seeds)), grammar.make_grammar(Rule(2), CONFIG.vocabulary))
  counts = np.array(counts or [num_samples] * len(seeds), np.int32)
  return latents, sampling._decode(
    Model.params, latents, jnp.stack([jax.random.key(3)] * len(seeds)), rules, counts, np.zeros(len(seeds), np.int32),
    config=CONFIG, num_lanes=num_lanes, max_samples=1024, max_length=LENGTH, strategy=TopK())


def test_log_probability_and_constants_are_the_teacher_forced_ones():
  """The cache, with lanes that begin anew at any slot, against the whole sequence at once."""
  latents, found = decode(num_lanes=8)
  ids, mantissas = found.ids[0, :200], found.mantissas[0, :200]
  inputs = jnp.pad(ids[:, :-1], ((0, 0), (1, 0)), constant_values=START_ID)
  constants = jnp.pad(mantissas[:, :-1], ((0, 0), (1, 0)))
  forced = jax.jit(symformer.merge(CONFIG, Model.params).decoder)
  logits, predicted = forced(inputs, constants, jnp.repeat(latents, 200, axis=0))
  rules = jax.tree.map(jnp.asarray, grammar.make_grammar(Rule(2), CONFIG.vocabulary))
  allow = jax.jit(lambda s, n: grammar.allowed_tokens(s, n, rules, vocab=CONFIG.vocabulary))
  follow = jax.jit(lambda s, t: grammar.advance(s, t, rules, vocab=CONFIG.vocabulary))
  is_constant = np.asarray(CONFIG.vocabulary.is_constant)[ids]
  np.testing.assert_allclose(mantissas[is_constant], predicted[is_constant], atol=1e-5)
  for k in range(40, 60):
    total, state = 0.0, grammar.start(LENGTH, CONFIG.vocabulary)
    for t in range(int((ids[k] != 0).sum())):
      allowed = np.asarray(allow(state, jnp.int32(LENGTH - t)))
      masked = np.where(allowed, logits[k, t], -np.inf)
      total += masked[ids[k, t]] - np.logaddexp.reduce(masked)
      state = follow(state, ids[k, t])
    assert found.log_prob[0, k] == pytest.approx(total, abs=1e-4)


def test_a_sample_depends_on_its_number_alone():
  """Not on lanes, nor on how many are asked for, nor on rounds."""
  ids, mantissas = sample(200)
  np.testing.assert_array_equal(decode(8)[1].ids[0], decode(64)[1].ids[0])
  few, rest = sample(50), sample(150, first_sample=50)
  np.testing.assert_array_equal(ids, np.concatenate([few[0], rest[0]]))
  np.testing.assert_allclose(mantissas, np.concatenate([few[1], rest[1]]), atol=1e-5)


def test_data_sets_of_a_call_know_nothing_of_each_other():
  """Bit for bit in one bucket: other data, other numbers of samples and another order beside them."""
  first = decode(8, seeds=(0, 1, 2))[1]
  other = decode(8, seeds=(5, 1, 0), counts=[37, 200, 200])[1]
  for a, b in ((0, 2), (1, 1)):
    for mine, theirs in zip(first, other, strict=True):
      np.testing.assert_array_equal(mine[a], theirs[b])
  assert not (first.ids[0] == first.ids[1]).all()
  # Across buckets sums are rounded otherwise: nearly all samples are the same.
  alone = decode(8)[1]
  is_same = np.all(np.asarray(alone.ids[0]) == np.asarray(first.ids[0]), axis=1)[:200]
  assert is_same.mean() > 0.98
  np.testing.assert_allclose(alone.log_prob[0, :200][is_same], first.log_prob[0, :200][is_same], atol=1e-4)


def test_batches_are_decoded_as_their_data_sets_are(monkeypatch):
  """`decode_candidates` splits, pads and puts together by the buckets of the platform."""
  monkeypatch.setitem(compilation.DATASET_BUCKETS, "cpu", (1, 2))
  shown = [points(seed) for seed in range(3)]
  latents = sampling.encode(Model, *(np.stack(a) for a in zip(*shown, strict=True)))
  assert latents.shape[0] == 3
  keys, rules = jnp.stack([jax.random.key(0)] * 3), [Rule(2), Rule(1), Rule(2)]
  together = sampling.decode_candidates(Model, latents, keys, rules, num_samples=64)
  for i in range(3):
    [alone] = sampling.decode_candidates(Model, latents[i : i + 1], keys[:1], rules[i : i + 1], num_samples=64)
    assert np.mean(np.all(alone[0] == together[i][0], axis=1)) > 0.95
  assert CONFIG.vocabulary.ids["x1"] not in together[1][0]


def test_one_program_serves_all_numbers_of_samples_and_all_rules():
  sample(3)
  before = sampling._decode._cache_size()
  sample(700)
  sample(64, rule=Rule(2, max_depth=3, unnested=frozenset({"sin"})))
  assert sampling._decode._cache_size() == before


@pytest.mark.parametrize(("strategy", "kept"), [
  (TopK(3), 3), (TopK(50), 5), (Nucleus(0.75), 3), (Nucleus(1e-6), 1), (Temperature(), 5)])
def test_frequencies_are_the_renormalized_probabilities(strategy, kept):
  probability = np.array([0.05, 0.4, 0.1, 0.25, 0.2])
  logits = jnp.log(jnp.broadcast_to(jnp.asarray(probability, jnp.float32), (20_000, 5)))
  noise = jax.random.gumbel(jax.random.key(0), logits.shape)
  counts = np.bincount(np.asarray(strategy.choose(noise, logits)), minlength=5)
  order = np.argsort(-probability)[:kept]
  assert counts[np.setdiff1d(range(5), order)].sum() == 0
  if kept > 1:
    expected = probability[order] / probability[order].sum() * 20_000
    assert scipy.stats.chisquare(counts[order], expected).pvalue > 1e-3


def test_sampled_expressions_have_the_probabilities_of_the_model():
  """Whole expressions, by chi-square, under the grammar of short formulas."""
  config = dataclasses.replace(CONFIG, decoder=dataclasses.replace(CONFIG.decoder, max_length=14))
  rule = Rule(2, frozenset({"sin"}), max_depth=2)

  class Short(Model):
    pass

  Short.config = config
  ids, _ = sampling.sample_candidates(
    Short, *points(), jax.random.key(2), num_samples=20_000, strategy=Temperature(), rule=rule)
  found = decode_all(rule)
  counts = dict.fromkeys(found, 0)
  for row in ids:
    counts[tuple(row[row != 0].tolist())] += 1
  likely = [row for row in found if found[row] * 20_000 > 5]
  observed = [counts[row] for row in likely] + [20_000 - sum(counts[row] for row in likely)]
  expected = [found[row] * 20_000 for row in likely]
  assert len(likely) > 30
  assert scipy.stats.chisquare(observed, [*expected, 20_000 - sum(expected)]).pvalue > 1e-3


def decode_all(rule) -> dict[tuple, float]:
  """Probabilities of all formulas of at most two tokens by the network, position by position."""
  model, vocab = symformer.merge(CONFIG, Model.params), CONFIG.vocabulary
  latents = model.encoder(*(a[None] for a in points()))
  rules = grammar.make_grammar(rule, vocab)
  state = grammar.start(LENGTH, vocab)

  def distribution(ids, mantissas, state):
    read = jnp.array([[START_ID, *ids]])
    logits, constants = model.decoder(read, jnp.array([[0.0, *mantissas]]), latents)
    allowed = grammar.allowed_tokens(state, jnp.int32(LENGTH - len(ids)), rules, vocab=vocab)
    return np.asarray(jax.nn.softmax(jnp.where(allowed, logits[0, -1], -jnp.inf)), np.float64)

  found = {}
  first = distribution((), (), state)
  sine = vocab.ids["sin"]
  second = distribution((sine,), (0.0,), grammar.advance(state, jnp.int32(sine), rules, vocab=vocab))
  for token in np.flatnonzero(first):
    if token != sine:
      found[int(token),] = first[token]
  for token in np.flatnonzero(second):
    found[sine, int(token)] = first[sine] * second[token]
  return found
