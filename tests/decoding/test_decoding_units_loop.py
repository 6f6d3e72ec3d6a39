"""The decode loop with a made-up network, sample by sample; what is asked of it in which calls; the grammar by hand."""

import functools
import math
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symformer_jax import compilation
from symformer_jax.decoding import beam, grammar as grammar_lib, loop, sampling
from symformer_jax.decoding.strategies import Beam, Greedy, StochasticBeam, Temperature, TopK
from symformer_jax.language.rules import Rule
from symformer_jax.language.vocabulary import START_ID, Vocabulary

VOCAB = Vocabulary(2)
CONFIG = types.SimpleNamespace(vocabulary=VOCAB, decoder=types.SimpleNamespace(max_length=7))
LENGTH = 6


class Network:
  """Logits and mantissas of what is read, where, and of which data set; NaN behind the known positions."""

  known_positions = LENGTH

  def __init__(self):
    self.decoder = self

  def init_cache(self, latents, num, length):
    assert length == LENGTH
    return Cache(jnp.repeat(latents[:, 0, 0], num // len(latents)), (jnp.zeros((num, LENGTH), jnp.int32),))

  def step(self, ids, mantissas, positions, cache, *, slot=None):
    positions = jnp.broadcast_to(positions, ids.shape)
    tokens = jnp.arange(VOCAB.size)[None]
    # What has been written so far, as the cyclic cache has it.
    slot = positions[0] if slot is None else slot
    written = cache.self_kv[0].at[:, slot].set(ids)
    age = (slot - jnp.arange(LENGTH)) % LENGTH
    total = jnp.sum(jnp.where(age[None] <= positions[:, None], written, 0), axis=1)
    logits = jnp.sin(0.7 * tokens + 1.3 * total[:, None] + 0.3 * positions[:, None]
                     + cache.of_set[:, None] + mantissas[:, None])
    logits = jnp.where(positions[:, None] < self.known_positions, logits, jnp.nan)
    return logits.astype(jnp.float32), jnp.cos(total.astype(jnp.float32)), cache._replace(self_kv=(written,))


class Cache(tuple):
  """Of each lane its data set and the tokens read."""

  of_set = property(lambda self: self[0])
  self_kv = property(lambda self: self[1])

  def __new__(cls, of_set, self_kv):
    return super().__new__(cls, (of_set, self_kv))

  def _replace(self, self_kv):
    return Cache(self.of_set, self_kv)


jax.tree_util.register_pytree_node(Cache, lambda cache: (tuple(cache), None), lambda _, parts: Cache(*parts))


@pytest.fixture(autouse=True)
def network(monkeypatch):
  for module in (loop, beam):
    monkeypatch.setattr(module.symformer, "merge", lambda config, params: Network())


def one_by_one(key, number, rule, strategy, of_set):
  """A sample by itself: `(ids, mantissas, log-probability)`."""
  rules = grammar_lib.make_grammar(rule, VOCAB)
  state, ids, values, total = grammar_lib.start(LENGTH, VOCAB), [], [], 0.0
  mantissa = 0.0
  while int(state.num_open):
    t = len(ids)
    logits = np.sin(0.7 * np.arange(VOCAB.size) + 1.3 * (START_ID + sum(ids)) + 0.3 * t + of_set + mantissa)
    allowed = np.asarray(ALLOW(state, LENGTH - t, rules))
    logits = jnp.where(allowed, jnp.asarray(logits, jnp.float32), -jnp.inf)
    noise = jax.random.gumbel(jax.random.fold_in(jax.random.fold_in(key, number), t), (VOCAB.size,))
    token = int(strategy.choose(noise[None], logits[None])[0])
    total += float(jax.nn.log_softmax(logits)[token])
    mantissa = float(np.cos(START_ID + sum(ids))) if VOCAB.is_constant[token] else 0.0
    ids.append(token)
    values.append(mantissa)
    state = FOLLOW(state, token, rules)
  return ids, values, total


ALLOW = jax.jit(lambda state, left, rules: grammar_lib.allowed_tokens(state, left, rules, vocab=VOCAB))
FOLLOW = jax.jit(lambda state, token, rules: grammar_lib.advance(state, token, rules, vocab=VOCAB))
RULES = [Rule(2), Rule(1, frozenset({"+", "sin"}))]
LATENTS = np.array([[[0.2]], [[1.1]]], np.float32)


def test_the_loop_writes_each_sample_as_if_it_were_alone(monkeypatch):
  keys = jnp.stack([jax.random.key(3), jax.random.key(4)])
  rules = jax.tree.map(lambda *a: np.stack(a), *(grammar_lib.make_grammar(rule, VOCAB) for rule in RULES))
  asked, first = np.array([7, 4], np.int32), np.array([0, 9], np.int32)
  num_steps = 0

  def while_loop(is_running, step, state):
    nonlocal num_steps
    step = jax.jit(step)
    while is_running(state):
      state, num_steps = step(state), num_steps + 1
    return state

  monkeypatch.setattr(jax.lax, "while_loop", while_loop)
  found = loop.decode(None, LATENTS, keys, rules, asked, first, config=CONFIG, num_lanes=3, max_samples=8,
                      max_length=LENGTH, strategy=Temperature(0.5))
  assert found.ids.shape == found.mantissas.shape == (2, 8, LENGTH) and found.log_prob.shape == (2, 8)
  for i, rule in enumerate(RULES):
    for k in range(asked[i]):
      ids, values, total = one_by_one(keys[i], first[i] + k, rule, Temperature(0.5), float(LATENTS[i, 0, 0]))
      padding = [0] * (LENGTH - len(ids))
      assert found.ids[i, k].tolist() == ids + padding
      np.testing.assert_allclose(found.mantissas[i, k], values + padding, atol=1e-5)
      assert float(found.log_prob[i, k]) == pytest.approx(total, abs=1e-4)
    assert not np.asarray(found.ids[i, asked[i]:]).any() and not np.asarray(found.log_prob[i, asked[i]:]).any()
  assert len({tuple(row) for row in found.ids[0, :7].tolist()}) > 3
  # It ends with the last sample that is asked for: a lane begins the next when it has written one.
  written = np.zeros((2, 3), int)
  for i, own in enumerate(written):
    for k in range(asked[i]):
      own[np.argmin(own)] += np.count_nonzero(found.ids[i, k])
  assert num_steps == np.max(written)
  # A lane by itself writes each once, one after another.
  num_steps = 0
  alone = loop.decode(None, LATENTS, keys, rules, asked, first, config=CONFIG, num_lanes=1, max_samples=8,
                      max_length=LENGTH, strategy=Temperature(0.5))
  np.testing.assert_array_equal(alone.ids, found.ids)
  assert num_steps == np.max(np.count_nonzero(alone.ids, axis=(1, 2)))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 3e38])
def test_samples_are_whole_whatever_a_damaged_network_gives(value, monkeypatch):
  def broken(self, *given, **named):
    logits, mantissas, cache = Network.step(self, *given, **named)
    return jnp.full_like(logits, value), jnp.full_like(mantissas, value), cache

  def while_loop(is_running, step, state):
    step = jax.jit(step)
    for _ in range(12):
      state = step(state)
    assert not is_running(state)
    return state

  monkeypatch.setattr(jax.lax, "while_loop", while_loop)
  monkeypatch.setattr(loop.symformer, "merge", lambda config, params: type("Broken", (Network,), {"step": broken})())
  rules = grammar_lib.make_grammar(RULES[0], VOCAB)
  found = loop.decode(
    None, LATENTS[:1], jax.random.key(3)[None], jax.tree.map(lambda a: np.asarray(a)[None], rules),
    np.array([2], np.int32), np.array([0], np.int32), config=CONFIG, num_lanes=2, max_samples=2, max_length=LENGTH,
    strategy=Temperature(0.5))
  assert np.isfinite(found.mantissas).all() and np.isfinite(found.log_prob).all()
  for ids in np.asarray(found.ids[0]):
    state = grammar_lib.start(LENGTH, VOCAB)
    for t, token in enumerate(ids[ids != 0]):
      assert ALLOW(state, LENGTH - t, rules)[token]
      state = FOLLOW(state, token, rules)
    assert int(state.num_open) == 0


def test_programs_with_numbers_of_64_bits_are_decoded_as_well():
  """A user may have switched them on: what a loop carries keeps its type."""
  rules = [grammar_lib.make_grammar(rule, VOCAB) for rule in RULES]
  keys, counts = jnp.stack([jax.random.key(3), jax.random.key(4)]), np.array([2, 2], np.int32)
  with jax.enable_x64(True):
    found = jax.eval_shape(functools.partial(
      loop.decode, None, config=CONFIG, num_lanes=3, max_samples=8, max_length=LENGTH, strategy=Greedy()),
      LATENTS, keys, jax.tree.map(lambda *a: np.stack(a), *rules), counts, counts)
    best = jax.eval_shape(functools.partial(
      beam.search_beams, None, config=CONFIG, num_beams=4, max_length=LENGTH, strategy=StochasticBeam()),
      LATENTS[:1], keys[0], rules[0])
  assert found.ids.dtype == best.ids.dtype == jnp.int32 and found.mantissas.dtype == best.mantissas.dtype == jnp.float32


def log_probabilities(rule, temperature):
  """Of all whole expressions of at most two tokens, and of what is read first."""
  rules = grammar_lib.make_grammar(rule, VOCAB)

  def distribution(ids, state):
    logits = np.sin(0.7 * np.arange(VOCAB.size) + 1.3 * (START_ID + sum(ids)) + 0.3 * len(ids) + 0.2) / temperature
    allowed = np.asarray(ALLOW(state, LENGTH - len(ids), rules))
    return np.where(allowed, logits - np.logaddexp.reduce(logits[allowed]), -np.inf)

  start, sine = grammar_lib.start(LENGTH, VOCAB), VOCAB.ids["sin"]
  first = distribution((), start)
  second = first[sine] + distribution((sine,), FOLLOW(start, sine, rules))
  return {(i,): first[i] for i in np.flatnonzero(np.isfinite(first)) if i != sine} | {
    (sine, i): second[i] for i in np.flatnonzero(np.isfinite(second))}


@pytest.mark.parametrize(("strategy", "num_beams"), [
  (Beam(), 100), (StochasticBeam(0.5), 100), (Beam(), 1), (StochasticBeam(), 20)])
def test_beams_hold_whole_expressions_with_their_probabilities(strategy, num_beams, monkeypatch):
  # Two tokens are all that the rule allows: a third would be read for nothing.
  monkeypatch.setattr(Network, "known_positions", 2)
  rule = Rule(2, frozenset({"sin"}), max_depth=2)
  everything = log_probabilities(rule, getattr(strategy, "temperature", 1.0))
  rules = jax.tree.map(jnp.asarray, grammar_lib.make_grammar(rule, VOCAB))
  found = jax.jit(lambda latents, key: beam.search_beams(
    None, latents, key, rules, config=CONFIG, num_beams=num_beams, max_length=LENGTH, strategy=strategy))(
      LATENTS[:1], jax.random.key(2))
  is_there = np.isfinite(found.log_prob)
  rows = [tuple(int(i) for i in row if i) for row in np.asarray(found.ids)[is_there]]
  # Two columns, eleven integers and twenty-one constants, and the sine of each.
  assert len(everything) == 68 and len(set(rows)) == len(rows) == min(num_beams, 68)
  np.testing.assert_allclose(np.asarray(found.log_prob)[is_there], [everything[row] for row in rows], atol=1e-4)
  assert np.all(np.diff(np.asarray(found.rank)[is_there]) <= 0)
  if strategy == Beam():
    kept = sorted(everything.values())[::-1][: len(rows)]
    if num_beams == 100:
      np.testing.assert_allclose(np.asarray(found.log_prob)[is_there], kept, atol=1e-4)
  else:  # a sine's best continuation has its rank: the largest of all is that of the largest first token
    assert rows != sorted(rows, key=everything.get, reverse=True)
    assert np.asarray(found.rank)[0] == np.max(np.asarray(found.rank)[is_there])
  constants = np.asarray(VOCAB.is_constant)[np.asarray(found.ids)]
  assert not np.asarray(found.mantissas)[~constants].any()
  at = np.flatnonzero(constants[:, 0] & is_there)
  np.testing.assert_allclose(np.asarray(found.mantissas)[at, 0], np.cos(START_ID), atol=1e-5)


# --- calls -----------------------------------------------------------------------------------------------------------


def model(encoding="extended"):
  return types.SimpleNamespace(params="params", config=types.SimpleNamespace(
    vocabulary=Vocabulary(2, encoding), decoder=types.SimpleNamespace(max_length=7)))


@pytest.fixture
def calls(monkeypatch):
  """What the loop is asked for; each sample is its data set's latent and its number."""
  seen = []

  def decode(params, latents, keys, grammar, asked, first, **options):
    seen.append({"latents": np.asarray(latents)[:, 0, 0].tolist(), "asked": asked.tolist(), "first": first.tolist(),
                 "columns": grammar.is_permitted[:, -2:].sum(axis=1).tolist(), **options})
    number = first[:, None] + np.arange(options["max_samples"])
    ids = np.broadcast_to(np.asarray(latents)[:, 0], (*number.shape,))[..., None] * 10000 + number[..., None]
    return loop.Samples(ids.astype(np.int32), ids.astype(np.float32) / 2, number)

  monkeypatch.setattr(sampling, "_decode", decode)
  monkeypatch.setattr(compilation, "dataset_buckets", lambda: (1, 2))
  monkeypatch.setattr(sampling, "MAX_SAMPLES", 8)
  return seen


def test_data_sets_and_samples_are_split_padded_and_put_together(calls):
  latents, keys = jnp.arange(1.0, 4.0)[:, None, None], jnp.stack([jax.random.key(i) for i in range(3)])
  found = sampling.decode_candidates(
    model(), latents, keys, [Rule(2), Rule(1), Rule(2)], num_samples=19, first_sample=100, strategy=Greedy())
  for i, (ids, mantissas) in enumerate(found):
    assert ids[:, 0].tolist() == [(i + 1) * 10000 + 100 + k for k in range(19)]
    np.testing.assert_array_equal(mantissas, ids.astype(np.float32) / 2)
  # Two and one: three calls for nineteen samples each.
  assert [call["asked"] for call in calls] == [[8, 8], [8, 8], [3, 3], [8], [8], [3]]
  assert [call["first"][0] for call in calls] == [100, 108, 116] * 2
  assert [call["columns"] for call in calls] == [[2, 1]] * 3 + [[2]] * 3
  assert all(call["max_length"] == 6 and call["strategy"] == Greedy() and call["max_samples"] == 8
             and call["num_lanes"] == sampling.NUM_LANES["cpu"] for call in calls)
  calls.clear()
  sampling.decode_candidates(model(), latents[:1], keys[:1], [Rule(2)], num_samples=8)
  assert [call["asked"] for call in calls] == [[8]] and calls[0]["strategy"] == TopK(20) and calls[0]["first"] == [0]


def test_calls_are_as_large_as_was_measured(calls, monkeypatch):
  """docs/results/decoding.md: 64 lanes keep the cores of a CPU busy; an accelerator takes more."""
  monkeypatch.undo()
  assert sampling.MAX_SAMPLES == 1 << 10
  monkeypatch.setattr(sampling, "_decode", lambda *given, **options: calls.append(options) or loop.Samples(
    *np.zeros((2, 1, 8, 1), int), np.zeros((1, 8))))
  for backend in ("cpu", "gpu"):
    monkeypatch.setattr(jax, "default_backend", lambda backend=backend: backend)
    sampling.decode_candidates(model(), jnp.ones((1, 1, 1)), jax.random.key(0)[None], [Rule(2)], num_samples=1)
  assert [call["num_lanes"] for call in calls] == [64, 512]


def test_what_fills_a_bucket_draws_nothing(calls, monkeypatch):
  monkeypatch.setattr(compilation, "dataset_buckets", lambda: (4,))
  latents, keys = jnp.arange(1.0, 4.0)[:, None, None], jnp.stack([jax.random.key(i) for i in range(3)])
  found = sampling.decode_candidates(model(), latents, keys, [Rule(2)] * 3, num_samples=2)
  assert calls[0]["asked"] == [2, 2, 2, 0] and calls[0]["latents"] == [1, 2, 3, 3] and len(found) == 3


def test_skeletons_get_constants_by_the_key_and_the_round(calls, monkeypatch):
  given = []
  monkeypatch.setattr(sampling, "_draw_constants", lambda ids, key, vocab: given.append(key) or ids / 2)
  key = jax.random.key(5)
  [(ids, values)] = sampling.decode_candidates(
    model("skeleton"), jnp.ones((1, 1, 1)), key[None], [Rule(2)], num_samples=3, first_sample=7)
  np.testing.assert_array_equal(values, ids / 2)
  assert given == [jax.random.fold_in(key, 7)]
  sampling.decode_candidates(model("base"), jnp.ones((1, 1, 1)), key[None], [Rule(2)], num_samples=3)
  assert len(given) == 1


def test_beams_compete_within_each_data_set(monkeypatch):
  seen = []

  def search(params, latents, key, grammar, **options):
    seen.append((np.asarray(latents).ravel().tolist(), key, options))
    ids = np.arange(12).reshape(3, 4)
    return types.SimpleNamespace(ids=ids, mantissas=ids / 2, log_prob=np.array([-1.0, -np.inf, -2.0]))

  monkeypatch.setattr(sampling, "_search_beams", search)
  keys = jnp.stack([jax.random.key(1), jax.random.key(2)])
  found = sampling.decode_candidates(model(), jnp.array([[[3.0]], [[4.0]]]), keys, [Rule(2)] * 2, num_samples=5,
                                     first_sample=6, strategy=StochasticBeam())
  for ids, mantissas in found:
    assert ids.tolist() == [[0, 1, 2, 3], [8, 9, 10, 11]] and mantissas.tolist() == (ids / 2).tolist()
  assert [each[0] for each in seen] == [[3.0], [4.0]]
  assert [each[1] for each in seen] == [jax.random.fold_in(key, 6) for key in keys]
  assert {(o["num_beams"], o["max_length"], o["strategy"]) for *_, o in seen} == {(5, 6, StochasticBeam())}
  sampling.decode_candidates(model(), jnp.ones((1, 1, 1)), keys[:1], [Rule(2)], num_samples=2, strategy=Beam())
  assert len(seen) == 3


def test_points_are_padded_to_the_bucket_with_the_last_data_set(monkeypatch):
  seen = []
  monkeypatch.setattr(sampling, "_encode", lambda params, points, is_valid, config: (
    seen.append((points, is_valid)) or points[:, :1, :1]))
  monkeypatch.setattr(compilation, "dataset_buckets", lambda: (4, 8))
  points, is_valid = np.arange(18.0).reshape(3, 2, 3), np.array([[True, True], [True, False], [False, True]])
  assert np.asarray(sampling.encode(model(), points, is_valid)).ravel().tolist() == [0, 6, 12]
  [(padded, valid)] = seen
  assert padded.shape == (4, 2, 3) and padded.dtype == jnp.float32 and valid.tolist()[3] == [False, True]
  np.testing.assert_array_equal(padded[3], points[2])


def test_candidates_of_one_data_set_are_those_of_a_batch_of_one(monkeypatch):
  seen = {}
  monkeypatch.setattr(sampling, "encode", lambda model, points, is_valid: (points.shape, is_valid.shape))
  monkeypatch.setattr(sampling, "decode_candidates", lambda model, latents, keys, rules, **options: (
    seen.update(latents=latents, keys=keys, rules=rules, **options) or ["found"]))
  key = jax.random.key(1)
  assert sampling.sample_candidates(model(), np.ones((5, 3)), np.ones(5, bool), key, num_samples=9) == "found"
  assert seen["latents"] == ((1, 5, 3), (1, 5)) and seen["keys"].shape == (1,) and seen["rules"] == [Rule(2)]
  assert (seen["num_samples"], seen["strategy"], seen["first_sample"]) == (9, None, 0)
  sampling.sample_candidates(model(), np.ones((5, 3)), np.ones(5, bool), key, num_samples=9, strategy=Beam(),
                             rule=Rule(1), first_sample=4)
  assert (seen["strategy"], seen["first_sample"], seen["rules"]) == (Beam(), 4, [Rule(1)])


# --- the grammar -----------------------------------------------------------------------------------------------------


def tokens(mask):
  return {VOCAB.tokens[i] for i in np.flatnonzero(mask)}


def test_rules_are_masks_of_tokens():
  rule = Rule(2, frozenset({"+", "pow", "sin"}), frozenset({1}), frozenset({0}), 3.0, 4, frozenset({"sin"}))
  found = grammar_lib.make_grammar(rule, VOCAB)
  constants = {f"C{e}" for e in range(-10, 11)}
  integers = {str(i) for i in range(-5, 6)}
  assert tokens(found.is_permitted) == {"+", "pow", "sin", "x1"} | constants | integers
  assert tokens(found.is_exponent) == {str(i) for i in range(-3, 4)} | {f"C{e}" for e in range(-10, 1)}
  assert tokens(found.is_unnested) == {"sin"} and tokens(found.is_required) == {"x1"}
  assert found.has_numeric_exponents and found.max_depth == 4 and found.grows_free and found.grows_once
  unlimited = grammar_lib.make_grammar(Rule(1), VOCAB)
  assert unlimited.max_depth == grammar_lib.UNLIMITED > 100 and not unlimited.has_numeric_exponents
  assert "x1" not in tokens(unlimited.is_permitted) and tokens(unlimited.is_exponent) == constants | integers
  # The limit itself is an exponent.
  assert "2" in tokens(grammar_lib.make_grammar(Rule(1, max_exponent=2.0), VOCAB).is_exponent)
  only_power = grammar_lib.make_grammar(Rule(1, frozenset({"pow"}), max_exponent=2.0), VOCAB)
  assert not only_power.grows_free and not only_power.grows_once
  once = grammar_lib.make_grammar(Rule(1, frozenset({"+"}), unnested=frozenset({"+"})), VOCAB)
  assert once.grows_once and not once.grows_free


@pytest.mark.parametrize(("options", "depth", "is_inside", "growth"), [
  ({}, 1, False, 511), ({"max_depth": 3}, 1, False, 3), ({"max_depth": 3}, 2, True, 1), ({"max_depth": 3}, 3, False, 0),
  ({"max_depth": 9}, 1, False, 255), ({"max_depth": 10}, 1, False, 511), ({"max_depth": 11}, 1, False, 511),
  ({"unnested": frozenset({"+", "*", "pow"})}, 1, False, 1), ({"unnested": frozenset({"+", "*", "pow"})}, 1, True, 0),
  ({"unnested": frozenset({"+", "*", "pow"}), "max_depth": 2}, 1, False, 1),
  ({"unnested": frozenset({"+", "*", "pow"}), "max_depth": 2}, 2, False, 0),
  ({"tokens": frozenset({"sin"})}, 1, False, 0)])
def test_leaves_that_an_argument_can_hold_beyond_one(options, depth, is_inside, growth):
  """A whole tree of n levels below it has 2**n of them; nine levels are more than any length bears."""
  rules = grammar_lib.make_grammar(Rule(2, **options), VOCAB)
  assert int(grammar_lib._growth(jnp.int32(depth), jnp.bool_(is_inside), jax.tree.map(jnp.asarray, rules))) == growth


def test_what_is_open_is_a_stack():
  rules = jax.tree.map(jnp.asarray, grammar_lib.make_grammar(
    Rule(2, required=frozenset({0}), max_exponent=3.0, unnested=frozenset({"sin"})), VOCAB))
  state = grammar_lib.start(9, VOCAB)
  assert int(state.num_open) == 1 and state.depth.shape == (6,) and int(state.depth[0]) == 1

  def rows(state):
    num = int(state.num_open)
    return list(zip(state.depth[:num].tolist(), state.is_inside[:num].tolist(), state.is_exponent[:num].tolist(),
                    strict=True))

  for token, expected in (
      ("+", [(2, False, False)] * 2), ("pow", [(2, False, False), (3, False, True), (3, False, False)]),
      ("sin", [(2, False, False), (3, False, True), (4, True, False)]),
      ("x0", [(2, False, False), (3, False, True)]), ("2", [(2, False, False)]), ("x1", [])):
    assert bool(ALLOW(state, 9, rules)[VOCAB.ids[token]])
    state = FOLLOW(state, VOCAB.ids[token], rules)
    assert rows(state) == expected
  assert tokens(np.asarray(state.is_used)) == {"x0"}
  after = FOLLOW(state, VOCAB.ids["end"], rules)
  assert int(after.num_open) == 0 and rows(after) == []


def test_only_numbers_stand_in_an_exponent_and_nothing_unnested_inside_itself():
  rules = jax.tree.map(jnp.asarray, grammar_lib.make_grammar(
    Rule(2, max_exponent=2.0, unnested=frozenset({"sin", "cos"})), VOCAB))
  state = FOLLOW(FOLLOW(grammar_lib.start(9, VOCAB), VOCAB.ids["pow"], rules), VOCAB.ids["x0"], rules)
  assert tokens(np.asarray(ALLOW(state, 7, rules))) == {"-2", "-1", "0", "1", "2", *(f"C{e}" for e in range(-10, 1))}
  inside = tokens(np.asarray(ALLOW(FOLLOW(grammar_lib.start(9, VOCAB), VOCAB.ids["sin"], rules), 8, rules)))
  assert not {"sin", "cos"} & inside and {"exp", "+", "x1"} <= inside


@pytest.mark.parametrize(("left", "may_be_binary", "may_be_unary"), [
  (1, False, False), (2, False, True), (3, True, True)])
def test_a_token_needs_room_for_its_arguments(left, may_be_binary, may_be_unary):
  rules = jax.tree.map(jnp.asarray, grammar_lib.make_grammar(Rule(2), VOCAB))
  found = tokens(np.asarray(ALLOW(grammar_lib.start(9, VOCAB), left, rules)))
  assert ("+" in found, "sin" in found, "x0" in found) == (may_be_binary, may_be_unary, True)


@pytest.mark.parametrize(("max_depth", "may_be_unary"), [(1, False), (2, True)])
def test_the_last_level_has_leaves_alone(max_depth, may_be_unary):
  rules = jax.tree.map(jnp.asarray, grammar_lib.make_grammar(Rule(2, max_depth=max_depth), VOCAB))
  assert ("sin" in tokens(np.asarray(ALLOW(grammar_lib.start(9, VOCAB), 9, rules)))) == may_be_unary


@pytest.mark.parametrize(("rule", "length", "is_possible"), [
  (Rule(2, required=frozenset({0, 1})), 2, False), (Rule(2, required=frozenset({0, 1})), 3, True),
  (Rule(2, required=frozenset({0})), 1, True), (Rule(2, required=frozenset({0, 1}), max_depth=1), 9, False),
  (Rule(2, required=frozenset({0, 1}), max_depth=2), 9, True),
  (Rule(2, frozenset({"pow"}), required=frozenset({0, 1}), max_exponent=3.0), 9, False),
  (Rule(2, frozenset({"sin"}), required=frozenset({0, 1})), 9, False)])
def test_required_columns_need_room_and_an_operator(rule, length, is_possible):
  assert grammar_lib.is_satisfiable(grammar_lib.make_grammar(rule, VOCAB), length, vocab=VOCAB) == is_possible


@pytest.mark.parametrize(("unnested", "is_possible"), [((), True), (("+",), False)])
def test_a_third_leaf_needs_a_second_operator_inside_the_first(unnested, is_possible):
  rules = grammar_lib.make_grammar(Rule(2, frozenset({"+", "sin"}), unnested=frozenset(unnested)), VOCAB)
  is_required = np.isin(np.arange(VOCAB.size), [VOCAB.ids[token] for token in ("x0", "x1", "2")])
  assert grammar_lib.is_satisfiable(rules._replace(is_required=is_required), 9, vocab=VOCAB) == is_possible
