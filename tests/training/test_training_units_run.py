"""Parts of a run, made by hand: what is due when, what a step counts, how arrays lie, what is saved; no training."""

import collections
import contextlib
import dataclasses
import errno
import json
import math
import types

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P
import numpy as np
import optax
import pytest

from configs import tiny
from symformer_jax import configuration
from symformer_jax.data import points as points_lib, sequences
from symformer_jax.data.pipeline import Batch
from symformer_jax.errors import InputError, ModelError
from symformer_jax.language import expression, parser
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.training import (
  checkpoint,
  evaluation,
  logs,
  loop,
  losses,
  processes,
  schedules,
  sharding,
  speed,
  step as step_lib,
)
from symformer_jax.training.config import DecodingConfig, LossConfig, MeshConfig, OptimizerConfig, TrainConfig
from symformer_jax.training.state import TrainState

TINY = configuration.build(TrainConfig, tiny.get_config().to_dict())


# --- configurations ----------------------------------------------------------------------------------------------


def test_the_defaults_of_a_run_are_the_papers():
  """SymFormer, sec. 4.1: Adam, warm-up of 4000, smoothing of 0.1, lambda from 97 700 = 100 * 977 steps on."""
  config = TrainConfig()
  assert (config.optimizer.schedule, config.optimizer.warmup_steps, config.optimizer.model_width) == ("rsqrt", 4000,
    384)
  assert (config.optimizer.weight_decay, config.optimizer.clip_norm, config.optimizer.b2) == (0.0, None, 0.999)
  assert config.optimizer.peak == 1e-3 and config.optimizer.decay_steps == 0
  loss = config.loss
  assert loss.label_smoothing == loss.noise_std == 0.1 and loss.lambda_delay == 100 * loss.update_every == 97_700
  assert (loss.lambda_start, loss.lambda_end, loss.huber_delta) == (0.0, 1.0, None)
  assert config.num_steps // loss.update_every == 389 and config.num_steps == 381_000
  assert (config.seed, config.accumulation, config.remat, config.keep_checkpoints) == (0, 1, False, 2)
  # What is looked at every so often: each a multiple of the one before.
  assert (config.log_every, config.checkpoint_every, config.eval_every, config.decoding.every) == (100, 1000, 2000,
    20_000)
  assert config.num_eval_batches == 8 and config.max_skips == 100
  assert (config.decoding.num_equations, config.decoding.num_samples) == (256, 64)
  assert config.mesh == MeshConfig(data=-1, fsdp=1, tensor=1)


@pytest.mark.parametrize(("changes", "message"), [
  ({"on_nonfinite": "go"}, "unknown on_nonfinite 'go'"),
  ({"max_gradient_norm": 0.0}, "max_gradient_norm must be above 0 .*, or None for no bound, got 0.0"),
  ({"compute_dtype": "float16"}, "unknown compute_dtype 'float16'"),
  ({"loss": LossConfig(huber_delta=0.0)}, "loss.huber_delta must be above 0"),
  ({"accumulation": 0}, "accumulation must lie between 1 and .*, got 0"),
  ({"accumulation": 3}, "accumulation must divide the batch of 64, got 3")])
def test_runs_that_cannot_be(changes, message):
  with pytest.raises(ValueError, match=message):
    dataclasses.replace(TINY, **changes)
  for good in ({"on_nonfinite": "skip", "compute_dtype": "bfloat16"}, {"accumulation": 64},
               {"loss": LossConfig(huber_delta=1e-9)}, {"accumulation": 1, "on_nonfinite": "stop"}):
    dataclasses.replace(TINY, **good)


# --- schedules and losses ----------------------------------------------------------------------------------------


def test_rates_and_weights_at_their_corners():
  rate = schedules.rsqrt_with_warmup(16, 4)
  assert [float(rate(s)) for s in (0, 3, 15)] == pytest.approx([1 * 4**-1.5 / 20, 0.5 / 20, 0.25 / 20])
  wsd = schedules.learning_rate(OptimizerConfig(schedule="wsd", peak=2.0, warmup_steps=4, decay_steps=5), 20, 7)
  assert [float(wsd(s)) for s in (0, 2, 4, 15, 16, 20, 25)] == pytest.approx([0, 1, 2, 2, 1.6, 0, 0])
  sharp = schedules.learning_rate(OptimizerConfig(schedule="wsd", peak=2.0, warmup_steps=0), 20, 1)
  assert float(sharp(19)) == 2 and float(sharp(21)) == 0
  with pytest.raises(InputError, match="unknown learning rate schedule 'x': expected 'rsqrt' or 'wsd'"):
    schedules.learning_rate(OptimizerConfig(schedule="x"), 20, 1)
  stairs = schedules.learning_rate(OptimizerConfig(model_width=16, warmup_steps=4), 20, 3)
  assert float(stairs(4)) == float(stairs(3)) == float(rate(3)) != float(stairs(6))
  weight = schedules.regression_weight(LossConfig(lambda_delay=10, lambda_start=1.0, lambda_end=3.0, update_every=1),
    30)
  assert [float(weight(s)) for s in (0, 10, 20, 30, 40)] == pytest.approx([1, 1, 2, 3, 3])
  late = schedules.regression_weight(LossConfig(lambda_delay=30, update_every=1), 30)
  assert float(late(30)) == 0 and float(late(31)) == 1
  noise = schedules.noise_std(LossConfig(noise_std=0.4, update_every=2), 8)
  assert [float(noise(s)) for s in (0, 1, 4, 5, 8)] == pytest.approx([0.4, 0.4, 0.2, 0.2, 0])
  assert schedules.in_stairs(noise, 1) is noise and schedules.in_stairs(float, 2)(3) == 2


def test_losses_are_means_over_what_counts():
  logits = jnp.log(jnp.array([[[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]]))
  targets, is_target = jnp.array([[0, 0]]), jnp.array([[True, False]])
  smoothed, plain = losses.classification_loss(logits, targets, is_target, jnp.int32(2), label_smoothing=0.3)
  uniform = -np.mean(np.log([0.7, 0.2, 0.1]))
  assert float(plain) == pytest.approx(-math.log(0.7) / 2)
  assert float(smoothed) == pytest.approx((0.7 * -math.log(0.7) + 0.3 * uniform) / 2)
  assert float(losses.masked_mean(jnp.ones(2), jnp.array([False, False]), jnp.int32(0))) == 0
  predicted, wanted, mask = jnp.array([[3.0, 9.0, 0.5]]), jnp.array([[0.0, 0.0, 0.0]]), jnp.array([[True, False, True]])
  assert float(losses.regression_loss(predicted, wanted, mask, jnp.int32(2))) == pytest.approx((9 + 0.25) / 2)
  huber = losses.regression_loss(predicted, wanted, mask, jnp.int32(2), huber_delta=1.0)
  assert float(huber) == pytest.approx((2 * 3 - 1 + 0.25) / 2)


# --- a step ------------------------------------------------------------------------------------------------------


def test_noise_is_on_constants_alone_and_bounded_where_they_are_mantissas():
  constants = jnp.array([[0.0, 0.9, -0.9] * 300])
  free = step_lib.add_constant_noise(jax.random.key(0), constants, jnp.float32(0.5), is_bounded=False)
  bounded = step_lib.add_constant_noise(jax.random.key(0), constants, jnp.float32(0.5), is_bounded=True)
  assert (free[constants == 0] == 0).all() and (bounded[constants == 0] == 0).all()
  assert free.max() > 1.5 and free.min() < -1.5 and bounded.max() == 1 and bounded.min() == -1
  changes = np.asarray((free - constants)[constants != 0])
  assert 0.45 < changes.std() < 0.55 and abs(changes.mean()) < 0.06


def examples_of(texts, num_points=4):
  vocab = Vocabulary(1)
  programs = [expression.encode(parser.parse(text, ["x"]), vocab) for text in texts]
  length = max(len(ids) for ids, _ in programs)
  ids = np.array([[*tokens, *[0] * (length - len(tokens))] for tokens, _ in programs], np.int32)
  constants = np.array([[*values, *[0] * (length - len(values))] for _, values in programs], np.float32)
  return Batch(ids, constants, np.tile(np.array([[[-5.0, 5.0]]], np.float32), (len(texts), 1, 1)))


def draw_stub(key, ids, mantissas, domains, *, vocab, config):
  """Points in the place of those that are drawn, which takes a compilation; the last of three is none."""
  points = jnp.ones((len(ids), 3, 2)) * jnp.arange(1.0, len(ids) + 1)[:, None, None]
  return points, jnp.array([[True, True, False]] * len(ids)), mantissas, jnp.array([1] * len(ids))


@pytest.fixture
def drawn(monkeypatch):
  monkeypatch.setattr(step_lib.points_lib, "draw_points", draw_stub)


def test_a_batch_is_prepared_with_its_points_and_sequences(drawn, monkeypatch):
  batch = examples_of(["2.5*x", "x**2 + 1"])
  clean = points_lib.PointsConfig(num_points=16)
  examples, num_masked = step_lib.prepare(jax.random.key(0), batch, TINY, clean)
  assert examples.points.shape == (2, 3, 2) and num_masked.tolist() == [1, 1]
  np.testing.assert_array_equal(examples.input_constants, examples.seqs.constants)
  counts = step_lib.count_targets(examples, TINY)
  assert int(counts.targets) == int(examples.seqs.is_target.sum())
  vocab = TINY.model.vocabulary
  expected = np.asarray(vocab.is_constant)[np.asarray(examples.seqs.targets)].sum()
  assert int(counts.constants) == expected >= 1
  asked = {}
  monkeypatch.setattr(step_lib.columns, "place", lambda key, ids, domains,
    **given: asked.update(given) or (ids, domains))
  step_lib.prepare(jax.random.key(0), batch, TINY, clean)
  assert not asked
  placed = dataclasses.replace(clean, spread_probability=0.5, distractor_probability=0.25, max_distractors=1)
  if placed.is_placed:
    step_lib.prepare(jax.random.key(0), batch, TINY, placed)
    assert asked.pop("vocab") == Vocabulary(1)
    assert asked == {"distractor_probability": 0.25, "max_distractors": 1, "spread_probability": 0.5}


class Network:
  """Says the right tokens of the first of its examples, and constants that are off by a half."""

  def __init__(self, params):
    self.params = params

  def __call__(self, points, is_valid, ids, constants, *, dropout_key, remat):
    Network.asked = {"dtype": constants.dtype, "dropout_key": dropout_key, "remat": remat, "params": self.params}
    seqs = Network.examples.seqs
    right = jax.nn.one_hot(seqs.targets, TINY.model.vocabulary.size) * 20.0
    right = right.at[1:].set(0.0).at[1:, :, 0].set(20.0)
    return right, seqs.target_constants + 0.5 * self.params["w"].astype(jnp.float32)


@pytest.fixture
def network(monkeypatch, drawn):
  Network.examples, _ = step_lib.prepare(
    jax.random.key(0), examples_of(["2.5*x + 1.5", "x**2 + 1.25"]), TINY, points_lib.PointsConfig(num_points=4))
  monkeypatch.setattr(step_lib.symformer, "merge", lambda config, params: Network(params))
  return Network


def loss_of(config, weight=2.0, **options):
  examples = Network.examples
  return step_lib.compute_loss(
    {"w": jnp.float32(1.0), "n": jnp.int32(3)}, examples, step_lib.count_targets(examples, config), config=config,
    weight=jnp.float32(weight), **{"dropout_key": None} | options)


def test_the_loss_is_cross_entropy_and_lambda_times_the_errors_of_constants(network):
  config = dataclasses.replace(TINY, loss=LossConfig(label_smoothing=0.0), remat=True)
  loss, metrics = loss_of(config)
  seqs = network.examples.seqs
  share = float(seqs.is_target[0].sum() / seqs.is_target.sum())
  assert float(metrics["token_accuracy"]) == pytest.approx(share)
  assert float(metrics["constant_mse"]) == pytest.approx(0.25)
  assert float(metrics["cross_entropy"]) == pytest.approx((1 - share) * 20.0, rel=1e-3)
  assert float(loss) == pytest.approx(float(metrics["cross_entropy"]) + 2 * 0.25) == float(metrics["loss"])
  assert network.asked["remat"] is True and network.asked["dropout_key"] is None
  assert network.asked["dtype"] == jnp.float32
  bounded = dataclasses.replace(config, loss=LossConfig(label_smoothing=0.0, huber_delta=0.1))
  loss, metrics = loss_of(bounded)
  assert float(metrics["constant_mse"]) == pytest.approx(0.25)  # what is told is squared all the same
  assert float(loss - metrics["cross_entropy"]) == pytest.approx(2 * (2 * 0.1 * 0.5 - 0.01), rel=1e-3)
  smoothed, metrics = loss_of(dataclasses.replace(config, loss=LossConfig(label_smoothing=0.5)), weight=0.0)
  assert float(smoothed) != pytest.approx(float(metrics["cross_entropy"]))


def test_skeletons_have_no_constants_to_lose(network, monkeypatch):
  model = dataclasses.replace(TINY.model, vocabulary=dataclasses.replace(TINY.model.vocabulary, encoding="skeleton"))
  config = dataclasses.replace(TINY, model=model, loss=LossConfig(label_smoothing=0.0))
  vocab = config.model.vocabulary
  ids, constants = sequences.to_encoding(*map(jnp.asarray, examples_of(["2.5*x + 1.5", "x**2 + 1.25"])[:2]), vocab)
  seqs = sequences.teacher_forcing(ids, constants)
  network.examples = network.examples._replace(seqs=seqs, input_constants=seqs.constants)
  monkeypatch.setattr(Network, "__call__", lambda self, *_, **__: (
    jax.nn.one_hot(seqs.targets, vocab.size) * 20.0, seqs.target_constants + 0.5))
  loss, metrics = loss_of(config)
  assert float(loss) == pytest.approx(float(metrics["cross_entropy"]), abs=1e-6)


def test_a_step_computes_in_the_precision_asked_for(network):
  loss_of(dataclasses.replace(TINY, compute_dtype="bfloat16"), dropout_key=jax.random.key(1))
  assert network.asked["dtype"] == jnp.bfloat16 == network.asked["params"]["w"].dtype
  assert network.asked["params"]["n"].dtype == jnp.int32 and network.asked["dropout_key"] is not None


def test_parts_of_a_batch_add_up_and_take_every_so_manieth_example():
  seen = []

  def grad(params, part, key):
    seen.append((part.shape, key))
    return {"g": params * part.sum()}, {"first": part[0]}
  whole = jnp.arange(6.0)
  assert float(step_lib.accumulate(grad, jnp.float32(2), whole, None, 1)[0]["g"]) == 30
  gradients, metrics = step_lib.accumulate(grad, jnp.float32(2), whole, None, 3)
  assert float(gradients["g"]) == 30 and seen[-1][0] == (2,) and seen[-1][1] is None
  assert float(metrics["first"]) == 0 + 1 + 2
  keyed = []

  def noisy(params, part, key):
    keyed.append(1)
    return jax.random.normal(key), ()
  total, _ = step_lib.accumulate(noisy, 0.0, whole, jax.random.key(0), 2)
  parts = [jax.random.normal(key) for key in jax.random.split(jax.random.key(0), 2)]
  assert float(total) == pytest.approx(float(sum(parts)))


def test_an_update_counts_its_step_and_tells_what_it_did(network, monkeypatch):
  calls = []

  def compute_loss(params, examples, counts, *, config, weight, dropout_key, layout):
    calls.append((dropout_key, layout, weight))
    loss = params["w"] ** 2
    return loss, {"loss": loss}
  monkeypatch.setattr(step_lib, "compute_loss", compute_loss)
  config = dataclasses.replace(TINY, num_steps=10, loss=LossConfig(lambda_delay=2, update_every=1, noise_std=0.25),
                               optimizer=OptimizerConfig(schedule="wsd", peak=0.5, warmup_steps=2))
  train = step_lib.make_train_step(config, optax.sgd(0.125), layout=None)
  state = TrainState(jnp.int32(6), {"w": jnp.float32(3.0)}, optax.sgd(0.125).init({"w": 0.0}),
                     jax.random.key_data(jax.random.key(0)))
  after, metrics = train(state, examples_of(["2.5*x + 1.5", "x**2 + 1.25"]))
  assert int(after.step) == 7 and float(after.params["w"]) == 3 - 0.125 * 6 and (after.key == state.key).all()
  assert float(metrics["grad_norm"]) == 6 and float(metrics["loss"]) == 9 and bool(metrics["is_finite"])
  assert float(metrics["learning_rate"]) == 0.5 and float(metrics["lambda"]) == pytest.approx(0.5)
  assert float(metrics["noise_std"]) == pytest.approx(0.25 * 0.5 * (1 + math.cos(math.pi * 0.6)))
  assert float(metrics["masked_points"]) == pytest.approx(1 / 3)
  assert (calls[0][0] is None) == (config.model.dropout == 0)
  other = dataclasses.replace(config, model=dataclasses.replace(
    config.model, dropout=0.0 if config.model.dropout else 0.1))
  step_lib.make_train_step(other, optax.sgd(0.1))(state, examples_of(["2.5*x + 1.5", "x**2 + 1.25"]))
  assert (calls[-1][0] is None) == (other.model.dropout == 0)
  for bad in (jnp.inf, jnp.nan):
    _, metrics = train(state._replace(params={"w": jnp.float32(bad)}), examples_of(["2.5*x + 1.5", "x**2 + 1.25"]))
    assert not metrics["is_finite"]
  evaluate = step_lib.make_eval_step(config)
  evaluate(state.params, examples_of(["2.5*x + 1.5", "x**2 + 1.25"]), jax.random.key(0))
  assert calls[-1][0] is None and float(calls[-1][2]) == config.loss.lambda_end


# --- validation --------------------------------------------------------------------------------------------------


def test_r2_of_candidates_is_that_of_their_valid_points():
  vocab = TINY.model.vocabulary
  batch = examples_of(["2*x", "x**2", "sqrt(x)"])
  ids, constants = sequences.to_encoding(jnp.asarray(batch.ids), jnp.asarray(batch.mantissas), vocab)
  x = np.array([-1.0, 0.5, 1.0, 2.0, 9.0])
  y = np.array([-2.0, 1.1, 2.0, 4.0, -50.0])
  points = jnp.asarray(np.stack([x, y], axis=1)[None], jnp.float32)
  is_valid = jnp.array([[True, True, True, True, False]])
  found = np.asarray(evaluation._r2(ids[None], constants[None], points, is_valid, vocab=vocab))[0]
  kept, target = x[:4], y[:4]
  for k, predicted in ((0, 2 * kept), (1, kept**2)):
    expected = 1 - np.sum((predicted - target) ** 2) / np.sum((target - target.mean()) ** 2)
    assert found[k] == pytest.approx(expected, rel=1e-5)
  assert found[2] == -np.inf  # undefined at a valid point
  flat = jnp.asarray(np.stack([x, np.full(5, 2.0)], axis=1)[None], jnp.float32)
  constant = np.asarray(evaluation._r2(ids[None], constants[None], flat, is_valid, vocab=vocab))[0]
  assert constant[0] < -1e30 or constant[0] == -np.inf


def test_answers_are_the_same_up_to_what_follows_their_end():
  vocab = Vocabulary(1)
  symbol = next(i for i, arity in enumerate(vocab.arity) if arity == 2)
  leaf = vocab.ids["x0"]
  end = next(i for i, arity in enumerate(vocab.arity) if arity < 0 and i)
  same = evaluation._same_tokens(np.array([[symbol, leaf, leaf], [symbol, leaf, leaf], [leaf, 0, 0]]),
                                 np.array([[symbol, leaf, leaf, end], [symbol, leaf, symbol, end],
                                 [leaf, end, 0, 0]]), vocab)
  assert same.tolist() == [True, False, True]


def test_answers_with_another_leaf_are_others():
  vocab = Vocabulary(2)
  plus, x0, x1 = (vocab.ids[name] for name in ("+", "x0", "x1"))
  same = evaluation._same_tokens(np.array([[x0, 0, 0], [plus, x0, x1], [plus, x0, x1]]),
                                 np.array([[x1, 0, 0], [plus, x0, x0], [plus, x0, x1]]), vocab)
  assert same.tolist() == [False, False, True]


def test_the_best_on_the_points_seen_is_judged_on_fresh_ones(monkeypatch):
  vocab, asked = TINY.model.vocabulary, {}
  batch = examples_of(["2*x", "x**2"])
  seqs = sequences.teacher_forcing(*sequences.to_encoding(jnp.asarray(batch.ids), jnp.asarray(batch.mantissas), vocab))
  ids, constants = (np.asarray(a) for a in sequences.to_encoding(batch.ids, batch.mantissas, vocab))

  def decode(model, latents, keys, rules, *, num_samples, strategy):
    asked.update(num=len(latents), keys=len(keys), rules=rules, num_samples=num_samples, strategy=strategy)
    return [(ids, constants)] * 2  # both formulas for both data sets
  monkeypatch.setattr(evaluation.sampling, "decode_candidates", decode)
  x = np.linspace(1, 2, 5)

  def examples(second):
    points = np.stack([np.stack([x, 2 * x], axis=1), np.stack([x, second], axis=1)])
    return types.SimpleNamespace(points=jnp.asarray(points, jnp.float32), is_valid=jnp.ones((2, 5), bool), seqs=seqs)
  r2, is_exact = evaluation._answer(types.SimpleNamespace(config=TINY.model), np.zeros((2, 3)), examples(x**2),
                                    examples(x**2 + 1), "strategy", 7)
  spread = np.sum((x**2 - np.mean(x**2)) ** 2)
  np.testing.assert_allclose(r2, [1, 1 - 5 / spread], rtol=1e-4)
  assert is_exact.tolist() == [True, True]
  assert (asked["num"], asked["keys"], len(asked["rules"]), asked["num_samples"]) == (2, 2, 2, 7)


def decoding_of(monkeypatch, answers, **changes):
  read = []
  batch = examples_of(["2*x"] * 6)
  monkeypatch.setattr(evaluation, "read_validation", lambda config, num: read.append(num) or [batch] * num)
  monkeypatch.setattr(evaluation.sampling, "encode", lambda model, points, is_valid: points)
  monkeypatch.setattr(evaluation.step_lib, "prepare", lambda key, batch, config, clean: (
    types.SimpleNamespace(points=batch.ids, is_valid=None), None))
  monkeypatch.setattr(evaluation.jax, "jit", lambda f: f)
  seen = []
  monkeypatch.setattr(evaluation, "_answer", lambda model, latents, one, other, strategy, num: seen.append(
    (type(strategy).__name__, num, len(latents))) or answers)
  config = dataclasses.replace(TINY, decoding=DecodingConfig(**{"every": 5, "num_equations": 8,
    "num_samples": 4} | changes),
                               data=dataclasses.replace(TINY.data, batch_size=6))
  return evaluation.make_decoding_evaluation(config), read, seen


def test_decoding_is_told_by_medians_and_shares(monkeypatch):
  answers = np.array([1.0, 0.99, 0.995, -1.0]), np.array([True, False, False, False])
  evaluate, read, seen = decoding_of(monkeypatch, answers)
  values = evaluate({})
  assert read == [2] and seen == [("Greedy", 1, 8), ("TopK", 4, 8)]
  for name in ("greedy", "sampled"):
    assert values[f"{name}_median_r2"] == pytest.approx(0.9925) and values[f"{name}_r2_above_.99"] == 0.5
    assert values[f"{name}_exact"] == 0.25
  assert len(values) == 6
  off, read, _ = decoding_of(monkeypatch, answers, every=0)
  assert off({}) == {} and read == []
  exact, read, _ = decoding_of(monkeypatch, answers, num_equations=6)
  assert read == [1]


def test_validation_is_of_the_same_batches_and_keys_every_time(monkeypatch):
  read, seen = [], []
  monkeypatch.setattr(evaluation, "read_validation", lambda config, num: read.append(num) or ["a", "b"])
  monkeypatch.setattr(evaluation.processes, "share_out", lambda batch, sharding: (batch, sharding))

  def eval_step(params, batch, key):
    seen.append((params, batch, int(jax.random.key_data(key)[-1])))
    return {"loss": 2.0 if batch[0] == "a" else 4.0}
  evaluate = evaluation.make_evaluation(dataclasses.replace(TINY, num_eval_batches=3), eval_step, "sharding")
  assert evaluate("params") == {"loss": 3.0} == evaluate("params") and read == [3]
  assert seen[:2] == seen[2:] == [("params", ("a", "sharding"), 0), ("params", ("b", "sharding"), 1)]


def test_validation_is_read_alike_whatever_the_training_reads(monkeypatch):
  asked = {}

  def make_iterator(config, *, seed, split, num_variables):
    asked.update(config=config, seed=seed, split=split, num_variables=num_variables)
    return iter(range(10))
  monkeypatch.setattr(evaluation.pipeline, "make_iterator", make_iterator)
  monkeypatch.setattr(evaluation.records, "has_shards", lambda folder, split: folder != "b")
  config = dataclasses.replace(TINY, data=dataclasses.replace(TINY.data, dirs=("a", "b", "c"), num_streams=2))
  assert evaluation.read_validation(config, 3) == [0, 1, 2]
  assert asked["config"].dirs == ("a", "c") and asked["config"].repeats == () and asked["config"].num_streams == 1
  assert (asked["seed"], asked["split"], asked["num_variables"]) == (0, "validation", 1)
  assert evaluation.read_validation(dataclasses.replace(config, data=dataclasses.replace(config.data, dirs=("b",))),
    3) == []


def test_a_run_reads_for_its_seed_its_variables_and_its_process(monkeypatch, tmp_path):
  class Enough(Exception):
    pass

  def make_iterator(config, seed, *, num_variables, process):
    assert (config, seed, num_variables, process) == (config_of.data, 7, 3, (1, 4))
    raise Enough

  config_of = dataclasses.replace(TINY, seed=7, model=dataclasses.replace(
    TINY.model, vocabulary=dataclasses.replace(TINY.model.vocabulary, num_variables=3)))
  monkeypatch.setattr(loop.pipeline, "make_iterator", make_iterator)
  monkeypatch.setattr(loop, "jit_steps", lambda *given: (None, None, None))
  monkeypatch.setattr(loop.jax, "process_index", lambda: 1)
  monkeypatch.setattr(loop.jax, "process_count", lambda: 4)
  with pytest.raises(Enough):
    loop.set_up(config_of, tmp_path)


# --- layouts -----------------------------------------------------------------------------------------------------


def test_a_mesh_takes_the_devices_that_are_left():
  assert jax.device_count() == 8
  for config, shape in ((MeshConfig(), (8, 1, 1)), (MeshConfig(fsdp=2, tensor=2), (2, 2, 2)),
    (MeshConfig(data=3), (3, 1, 1)),
                        (MeshConfig(data=1, fsdp=8), (1, 8, 1)), (MeshConfig(fsdp=3), (2, 3, 1))):
    assert sharding.make_mesh(config).devices.shape == shape
  for config in (MeshConfig(data=9), MeshConfig(fsdp=16), MeshConfig(data=3, tensor=4), MeshConfig(data=0)):
    with pytest.raises(InputError, match="needs more than the 8 devices there are"):
      sharding.make_mesh(config)


def test_a_batch_is_cut_evenly_along_data_and_fsdp():
  mesh = sharding.make_mesh(MeshConfig(data=3, fsdp=2))
  sharding.check_batch(mesh, 66)
  with pytest.raises(InputError, match="^data.batch_size must be a multiple of the 6 devices of the mesh's axes "
                                       "data and fsdp, got 64$"):
    sharding.check_batch(mesh, 64)


def test_matrices_are_cut_where_they_widen_or_narrow_and_divide():
  mesh = sharding.make_mesh(MeshConfig(data=1, fsdp=2, tensor=4))
  key = jax.tree_util.DictKey

  def spec(*names, shape=(8, 8)):
    return sharding.spec_of(tuple(map(key, names)), jax.ShapeDtypeStruct(shape, jnp.float32), mesh)
  assert spec("a", "query", "kernel") == spec("value", "kernel") == spec("inner", "kernel") == P("fsdp", "tensor")
  assert spec("attention", "out", "kernel") == spec("outer", "kernel") == P("tensor", "fsdp")
  assert spec("out", "kernel") == spec("query", "bias") == P()
  assert spec("inner", "kernel", shape=(7, 8)) == P(None, "tensor") and spec("inner", "kernel",
    shape=(8, 6)) == P("fsdp", None)
  assert spec("inner", "kernel", shape=(8,)) == P()
  params = {"inner": {"kernel": jax.ShapeDtypeStruct((8, 8), jnp.float32),
    "bias": jax.ShapeDtypeStruct((8,), jnp.float32)}}
  assert sharding.layout_in_use(params, mesh)["inner"]["kernel"].spec == P(None, "tensor")
  assert sharding.state_sharding(params, mesh)["inner"]["kernel"].spec == P("fsdp", "tensor")
  assert sharding.state_sharding(params, mesh)["inner"]["bias"].spec == P()
  assert sharding.batch_sharding(mesh).spec == P(("data", "fsdp"))
  named = sharding.spec_of((jax.tree_util.GetAttrKey("inner"), jax.tree_util.GetAttrKey("kernel")),
                           jax.ShapeDtypeStruct((8, 8), jnp.float32), mesh)
  assert named == P("fsdp", "tensor") and sharding.spec_of((jax.tree_util.SequenceKey(0),), 3, mesh) == P()


# --- several processes -------------------------------------------------------------------------------------------


def test_one_process_agrees_with_itself(monkeypatch):
  batch = examples_of(["2*x"])
  assert processes.agree(batch, True) == (batch, True) and processes.agree(batch, False)[1] is False
  whole = NamedSharding(sharding.make_mesh(MeshConfig(data=1)), P())
  for give in (processes.to_devices, processes.share_out):
    assert isinstance(give(batch, whole).ids, jax.Array)
  assert isinstance(processes.gather({"a": jnp.ones(2)})["a"], np.ndarray) and processes.is_first()
  monkeypatch.setattr(jax, "process_index", lambda: 1)
  assert not processes.is_first()


def test_processes_take_the_widest_batch_and_any_wish_to_stop(monkeypatch):
  monkeypatch.setattr(jax, "process_count", lambda: 2)
  batch = examples_of(["2*x"])
  width = batch.ids.shape[1]
  for other, wants, stop in (([width + 3, 0], True, True), ([width - 1, 1], False, True), ([width, 0], False, False)):
    monkeypatch.setattr(processes.multihost_utils, "process_allgather", lambda mine,
      other=other: np.stack([mine, other]))
    agreed, is_last = processes.agree(batch, wants)
    assert agreed.ids.shape[1] == max(width, other[0]) and is_last is stop
  gathered = []
  monkeypatch.setattr(processes.multihost_utils, "process_allgather", lambda tree,
    tiled: gathered.append(tiled) or tree)
  assert processes.gather(5) == 5 and gathered == [True]
  whole = NamedSharding(sharding.make_mesh(MeshConfig(data=1)), P())
  assert (np.asarray(processes.share_out(batch, whole).ids) == batch.ids).all()
  made = []
  monkeypatch.setattr(jax, "make_array_from_process_local_data", lambda sharding, rows: made.append(rows) or rows)
  processes.to_devices(batch, whole)
  assert len(made) == 3


def test_a_cluster_that_cannot_be_joined_is_one_line(monkeypatch):
  asked = {}

  def initialize(**options):
    asked.update(options)
    raise RuntimeError("no\nroute")
  monkeypatch.setattr(jax.distributed, "initialize", initialize)
  with pytest.raises(InputError, match=r"do not find each other \(no\); give --coordinator"):
    processes.start(coordinator="h:1", num_processes=2, process_id=1)
  assert asked == {"coordinator_address": "h:1", "num_processes": 2, "process_id": 1}


# --- the loop ----------------------------------------------------------------------------------------------------


class Recorder:
  """Writes down what it is asked."""

  def __init__(self):
    self.calls = []

  def __getattr__(self, name):
    return lambda *args, **options: self.calls.append((name, *args))


def run_of(tmp_path, step=0, **changes):
  config = dataclasses.replace(TINY, **{"num_steps": 20, "log_every": 4, "eval_every": 6, "checkpoint_every": 5,
                                        "decoding": DecodingConfig(every=10)} | changes)
  saved = []
  run = loop.Run(
    config=config, workdir=tmp_path, state=TrainState(np.int32(step), {}, {}, None), iterator=iter(range(1000)),
    train_step=None, evaluate=lambda params: {"cross_entropy": 1.5}, evaluate_decoding=lambda params: {"exact": 0.5},
    checkpoints=types.SimpleNamespace(save=lambda *args, **options: saved.append((args, options))), curves=Recorder(),
    window=logs.Window(), meter=types.SimpleNamespace(
      pop=lambda: {"examples_per_s": 1.0, "gflops_per_s": 2.0, "utilization": 0.5, "input_wait": 0.25},
      start=lambda: run.started.append(1), add=lambda *given: None), batch_sharding=None, saved_step=-1)
  run.started, run.saved = [], saved
  return run


def due(tmp_path, now, **changes):
  run = run_of(tmp_path, now, **changes)
  loop._look_around(run, now)
  return [call[2] for call in run.curves.calls], [options["validation"] for _, options in run.saved]


@pytest.mark.parametrize(("now", "written", "saved"), [
  (1, [], []), (4, ["train"], []), (5, [], [None]), (6, ["validation"], [{"cross_entropy": 1.5}]),
  (10, ["decoding"], [None]), (12, ["train", "validation"], [{"cross_entropy": 1.5}]),
  (20, ["train", "decoding", "validation"], [{"cross_entropy": 1.5}])])
def test_what_is_due_after_a_step(tmp_path, now, written, saved):
  assert due(tmp_path, now) == (written, saved)


def test_what_is_never_due_and_what_the_end_brings(tmp_path):
  assert due(tmp_path, 10, decoding=DecodingConfig(every=0), checkpoint_every=0) == ([], [])
  assert due(tmp_path, 7, num_steps=7) == (["decoding", "validation"], [{"cross_entropy": 1.5}])
  assert due(tmp_path, 7, num_steps=7, eval_every=0, decoding=DecodingConfig(every=0)) == ([], [None])


def pending(step, is_finite=True):
  return loop.Pending(step, examples_of(["2*x"]), {
    "is_finite": np.bool_(is_finite), "loss": np.float32(step), "grad_norm": np.float32(1.0)})


def test_metrics_are_read_but_for_the_last_steps(tmp_path):
  run = run_of(tmp_path)
  run.pending = collections.deque([pending(1), pending(3), pending(5)])
  loop._settle(run, 1)
  assert [left.step for left in run.pending] == [5] and run.window.sums == {"count": 2, "loss": 4.0, "grad_norm": 2.0}
  loop._settle(run, 0)
  assert not run.pending and run.window.sums["count"] == 3


def test_updates_that_are_not_finite_are_skipped_so_often(tmp_path):
  run = run_of(tmp_path, on_nonfinite="skip", max_skips=2)
  run.pending = collections.deque([pending(1, False), pending(2), pending(3, False)])
  loop._settle(run, 0)
  assert run.window.sums["skipped"] == 2 and run.window.sums["count"] == 1 and run.skips_in_a_row == 1
  run.pending = collections.deque([pending(4, False)])
  with pytest.raises(InputError, match="step 4: loss 4, gradient norm 1: not finite, .*; step and batch are in .*_0"):
    loop._settle(run, 0)
  with np.load(tmp_path / "nonfinite_0.npz") as data:
    assert set(data) == {"step", "metric_loss", "metric_grad_norm", "ids", "mantissas", "domains"} and data["step"] == 4
  stopping = run_of(tmp_path, on_nonfinite="stop", max_skips=9)
  stopping.pending = collections.deque([pending(1, False)])
  with pytest.raises(InputError, match="not finite"):
    loop._settle(stopping, 0)


def test_a_step_is_saved_once(tmp_path):
  run = run_of(tmp_path, 5)
  run.window.add({"loss": 2.0})
  loop.save(run)
  loop.save(run, {"loss": 1.0})
  [(args, options)] = run.saved
  assert args[0] is run.state and args[1] is run.iterator and args[2]["window"] == {"count": 1, "loss": 2.0}
  assert options == {"validation": None} and run.saved_step == 5


def test_a_run_goes_to_its_end_or_to_a_wish(tmp_path, monkeypatch):
  def started(stop_at=None, first=0):
    run = run_of(tmp_path, first, num_steps=6, log_every=100, eval_every=0, checkpoint_every=0,
                 decoding=DecodingConfig(every=0))
    done = []

    def step(run, now, wants_stop):
      done.append(now)
      run.state = run.state._replace(step=np.int32(now))
      return wants_stop
    monkeypatch.setattr(loop, "_step", step)
    is_complete = loop.train(run, should_stop=lambda: len(done) + 1 == stop_at)
    return done, is_complete, [int(args[0].step) for args, _ in run.saved]
  assert started() == ([1, 2, 3, 4, 5, 6], True, [6]) and started(first=4) == ([5, 6], True, [6])
  assert started(stop_at=3) == ([1, 2, 3], False, [3]) and started(first=6) == ([], True, [6])


def test_on_an_accelerator_one_step_runs_ahead(tmp_path, monkeypatch):
  left = []
  monkeypatch.setattr(loop, "_step", lambda run, now, wants_stop: setattr(
    run, "state", run.state._replace(step=np.int32(now))))
  monkeypatch.setattr(loop, "_settle", lambda run, num_left: left.append(num_left))
  for backend, expected in (("cpu", [0, 0]), ("gpu", [1, 0])):
    left.clear()
    monkeypatch.setattr(jax, "default_backend", lambda backend=backend: backend)
    loop.train(run_of(tmp_path, 0, num_steps=1, log_every=100, eval_every=0, checkpoint_every=0,
                      decoding=DecodingConfig(every=0)))
    assert left == expected


def test_a_step_counts_its_tokens_and_waits_to_be_read(tmp_path):
  run = run_of(tmp_path)
  batch, added = examples_of(["2*x"]), []
  run.iterator, run.meter.add = iter([batch]), lambda length, wait_s: added.append((length, wait_s))
  run.batch_sharding = NamedSharding(sharding.make_mesh(MeshConfig(data=1)), P())
  run.train_step = lambda state, on_devices: ("after", {"loss": 1})
  assert loop._step(run, 3, True) is True and run.state == "after"
  assert run.pending[0].step == 3 and run.pending[0].metrics == {"loss": 1}
  [(length, wait_s)] = added
  assert length == batch.ids.shape[1] + 1 and 0 <= wait_s < 60


def test_a_line_of_the_log_says_shares_in_percent(tmp_path, caplog):
  run = run_of(tmp_path)
  run.window.add({"cross_entropy": 1.5, "constant_mse": 0.25, "token_accuracy": 0.5})
  run.window.skip()
  with caplog.at_level("INFO", logger="absl"):
    loop._log(run, 4)
  assert ("step 4/20  cross entropy 1.5000  constants 0.2500  accuracy 0.500  1 examples/s  2.0 GFLOP/s (50 %)  "
          "input wait 25.0 %  skipped 1") in caplog.text
  [(name, now, kind, values)] = run.curves.calls
  assert (name, now, kind) == ("write", 4, "train") and values["skipped"] == 1 and values["utilization"] == 0.5
  quiet = run_of(tmp_path)
  quiet.evaluate = quiet.evaluate_decoding = lambda params: {}
  assert loop._evaluate(quiet, 4) == {} and loop._evaluate_decoding(quiet, 4) is None and not quiet.curves.calls
  closed = Recorder()
  loop.close(types.SimpleNamespace(curves=closed, checkpoints=closed))
  assert closed.calls == [("close",), ("close",)]


# --- checkpoints -------------------------------------------------------------------------------------------------


def test_a_checkpoint_is_of_the_run_whose_shape_it_has():
  meta = json.loads(json.dumps(checkpoint.make_meta(TINY, {"count": 3})))
  assert meta["window"] == {"count": 3} and meta["vocabulary"] == TINY.model.vocabulary.hash
  checkpoint.check_same_run(meta, TINY)
  wide = dataclasses.replace(TINY, model=dataclasses.replace(TINY.model, vocabulary=Vocabulary(2)))
  with pytest.raises(ModelError, match="the checkpoint has another vocabulary"):
    checkpoint.check_same_run(meta, wide)
  pre = dataclasses.replace(TINY, model=dataclasses.replace(
    TINY.model, norm="post" if TINY.model.norm == "pre" else "pre"))
  with pytest.raises(ModelError, match="the checkpoint has another model shape: norm is"):
    checkpoint.check_same_run(meta, pre)


def test_of_checkpoints_that_were_validated_the_least_loss_is_the_best(tmp_path, monkeypatch):
  metrics = {1: {"loss": 3.0}, 2: {"loss": 2.0}, 3: {"loss": math.inf}, 4: None, 5: {}, 6: {"loss": 2.5}}

  class Manager:
    def __init__(self, folder):
      assert folder == tmp_path / "checkpoints"

    def __enter__(self):
      return self

    def __exit__(self, *_):
      pass

    def all_steps(self):
      return list(metrics)

    def metrics(self, step):
      return metrics[step]
  monkeypatch.setattr(checkpoint.ocp, "CheckpointManager", Manager)
  assert checkpoint.best_step(tmp_path) == 2 and checkpoint._goodness({"loss": 2.0}) == -2
  for step in (1, 2, 6):
    del metrics[step]
  assert checkpoint.best_step(tmp_path) is None


def manager_of(restore, steps=(1, 2)):
  found = object.__new__(checkpoint.Checkpoints)
  found._manager = types.SimpleNamespace(all_steps=lambda: list(steps), restore=restore, directory="the folder")
  return found


def test_the_newest_checkpoint_that_can_be_read_is_taken(monkeypatch, caplog):
  state = TrainState(1, {}, {}, None)
  monkeypatch.setattr(checkpoint.ocp.args, "StandardRestore", lambda tree: "state")
  monkeypatch.setattr(checkpoint.grain, "PyGrainCheckpointRestore", lambda iterator: "data")
  asked = []

  def restore(step, args):
    asked.append(step)
    if step == 2:
      raise OSError("torn\nmore")
    return {"meta": {"window": step}, "state": state._replace(step=step)._asdict()}
  found, meta = manager_of(restore).restore_newest(state, None, lambda meta: None)
  assert found.step == 1 and meta == {"window": 1} and asked[0] == 2
  assert "checkpoint 2 is damaged and skipped: torn" in caplog.text and "more" not in caplog.text
  assert manager_of(restore, ()).restore_newest(state, None, lambda meta: None) is None
  with pytest.raises(ModelError, match="no checkpoint of the folder can be read"):
    manager_of(restore, (2,)).restore_newest(state, None, lambda meta: None)

  def foreign(meta):
    raise ModelError("another run")
  with pytest.raises(ModelError, match="another run"):
    manager_of(restore, (1,)).restore_newest(state, None, foreign)


@pytest.mark.parametrize("damaged", ["{", "[]", "{}", '{"loss": "x"}'])
def test_damaged_losses_are_left_out_before_the_manager_reads_them(tmp_path, caplog, damaged):
  for step, text in ((1, '{"loss": 1}'), (2, damaged)):
    folder = tmp_path / str(step) / "metrics"
    folder.mkdir(parents=True)
    (folder / "metrics").write_text(text)
  checkpoint._drop_damaged_metrics(tmp_path)
  assert (tmp_path / "1" / "metrics").exists() and not (tmp_path / "2" / "metrics").exists()
  assert (tmp_path / "2").exists()
  assert "the validation loss of checkpoint 2 is damaged" in caplog.text


def test_what_is_kept_and_saved(tmp_path, monkeypatch):
  made = {}
  monkeypatch.setattr(checkpoint.ocp, "CheckpointManager", lambda folder, options: made.update(
    folder=folder, options=options) or types.SimpleNamespace(
      directory=tmp_path, save=lambda step, metrics, args: made.update(step=step, metrics=metrics, args=args),
      wait_until_finished=lambda: made.update(is_finished=True)))
  monkeypatch.setattr(checkpoint.grain, "PyGrainCheckpointSave", lambda iterator: checkpoint.ocp.args.JsonSave({}))
  checkpoints = checkpoint.Checkpoints(tmp_path, keep=3)
  assert made["folder"] == tmp_path / "checkpoints" and made["options"].create
  assert made["options"].best_fn({"loss": 2.0}) == -2 and not made["options"].enable_async_checkpointing
  newest, best = made["options"].preservation_policy.policies
  assert newest.n == 3 and best.n == 1 and best.keep_checkpoints_without_metrics is False
  assert best.get_metric_fn({"loss": 2.0}) == -2
  state = TrainState(np.int32(7), {}, {}, np.zeros(2))
  checkpoints.save(state, None, {"a": 1})
  assert made["step"] == 7 and made["metrics"] == {"loss": math.inf} and made["is_finished"]
  checkpoints.save(state, None, {"a": 1}, validation={"loss": 2.0, "x": 1.0})
  assert made["metrics"] == {"loss": 2.0, "x": 1.0}
  made.clear()
  need = 4 + 16 + 2 * 2560  # bytes of the step and of the key, and what is stored of each beside them
  for free in (need - 1, need):
    monkeypatch.setattr(checkpoint.shutil, "disk_usage", {tmp_path: types.SimpleNamespace(free=free)}.__getitem__)
    with contextlib.nullcontext() if free == need else pytest.raises(OSError, match="No space left on device: '"):
      checkpoints.save(state, None, {"a": 1})
    assert bool(made) == (free == need)
    assert not tmp_path.exists()  # a folder without a checkpoint, where the first had no room


def test_a_disk_that_fills_while_a_checkpoint_is_written_is_a_fault_of_the_system(tmp_path, monkeypatch):
  said = {"text": "RESOURCE_EXHAUSTED: Failed to write 9 bytes: No space left on device [os_error_code='28']"}

  def save(step, metrics, args):
    raise ValueError(said["text"])
  monkeypatch.setattr(checkpoint.ocp, "CheckpointManager", lambda folder, options: types.SimpleNamespace(
    directory=tmp_path, save=save))
  monkeypatch.setattr(checkpoint.grain, "PyGrainCheckpointSave", lambda iterator: checkpoint.ocp.args.JsonSave({}))
  checkpoints, state = checkpoint.Checkpoints(tmp_path, keep=3), TrainState(np.int32(7), {}, {}, np.zeros(2))
  for text, number in (("No space left on device", errno.ENOSPC), ("Too many open files", errno.EMFILE)):
    said["text"] = f"RESOURCE_EXHAUSTED: Failed to open: {text} [os_error_code='{number}']"
    with pytest.raises(OSError, match=text) as caught:
      checkpoints.save(state, None, {"a": 1})
    assert (caught.value.errno, caught.value.filename) == (number, str(tmp_path))
  said["text"] = "no such argument"
  with pytest.raises(ValueError, match="^no such argument$"):
    checkpoints.save(state, None, {"a": 1})


def test_what_is_left_of_an_unfinished_checkpoint_is_removed(tmp_path):
  for name in ("10", "20.orbax-checkpoint-tmp"):
    (tmp_path / "checkpoints" / name / "state").mkdir(parents=True)
    (tmp_path / "checkpoints" / name / "state" / "d").write_bytes(b"0")
  checkpoint._drop_unfinished(tmp_path / "checkpoints")
  assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["10"]


def test_the_work_of_products_is_measured_on_the_platform(monkeypatch):
  assert speed.MATRIX_SIZES["cpu"] == 1024 and speed.LARGE_MATRIX == 8192
  monkeypatch.setattr(speed, "MATRIX_SIZES", {"cpu": 8})
  ticks = iter([0.0, 4.0, 10.0, 11.0, 20.0, 22.0, 30.0, 33.0, 40.0, 45.0])
  monkeypatch.setattr(speed, "time", types.SimpleNamespace(perf_counter=lambda: next(ticks)))
  assert speed.measure_matrix_rate("float32") == 2 * 8**3 / 1.0
  assert next(ticks, None) is None  # five tries
