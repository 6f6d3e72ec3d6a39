"""The network against NumPy, against its own relations, and against the paper's size."""

import dataclasses
import json

from flax import nnx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symformer_jax import configuration
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.model import encoder, layers, symformer
from symformer_jax.model.config import DecoderConfig, EncoderConfig, ModelConfig

TINY = ModelConfig(
  vocabulary=Vocabulary(2),
  encoder=EncoderConfig(width=8, num_heads=2, head_dim=6, ff_dim=16, num_layers=2, num_inducing=3, num_seeds=4),
  decoder=DecoderConfig(width=12, num_heads=2, head_dim=5, ff_dim=16, num_layers=2, max_length=10),
  dropout=0.0)
CONFIGS = {
  "post": TINY,
  "pre": dataclasses.replace(TINY, norm="pre", activation="gelu"),
  "full": dataclasses.replace(TINY, norm="full", activation="gelu"),
  "bits": dataclasses.replace(TINY, encoder=dataclasses.replace(TINY.encoder, features="bits")),
  "scaled": dataclasses.replace(TINY, encoder=dataclasses.replace(TINY.encoder, features="scaled")),
  "columns": dataclasses.replace(TINY, encoder=dataclasses.replace(TINY.encoder, features="columns")),
}


class Compiled:
  """A model of `config` as a few programs, which take a tenth of the time of as many operations one by one."""

  def __init__(self, config):
    model = symformer.merge(config, symformer.init_params(config, jax.random.key(0)))
    self.whole, self.encoder, self.step = jax.jit(model), jax.jit(model.encoder), jax.jit(model.decoder.step)
    self.init_cache = model.decoder.init_cache

  def __call__(self, *batch, **options):
    return self.whole(*batch, **options)


@pytest.fixture(scope="module", params=CONFIGS)
def network(request):
  return CONFIGS[request.param], Compiled(CONFIGS[request.param])


def _batch(config, rng, *, num_points=12, length=9):
  points = rng.normal(size=(3, num_points, config.vocabulary.num_variables + 1)).astype(np.float32)
  is_valid = np.ones((3, num_points), bool)
  is_valid[1, 7:] = False
  ids = rng.integers(3, config.vocabulary.size, (3, length))
  constants = rng.uniform(-1, 1, (3, length)).astype(np.float32)
  return points, is_valid, ids, constants


def test_paper_model_has_its_published_size():
  counts = symformer.count_parameters(ModelConfig())
  # Published: 75.8 M + 19.2 M, 95 M in all. Ours has 0.1 M more in the decoder: 52 trained positions of width 576
  # and the two hidden layers of the regression head.
  assert counts["encoder"] == pytest.approx(75.8e6, rel=1e-3)
  assert counts["decoder"] == pytest.approx(19.2e6, rel=1e-2)
  assert counts["total"] == 95_100_535


def test_attention_equals_a_numpy_transcription(rng):
  query, key, value = (rng.normal(size=s).astype(np.float32) for s in ((5, 2, 4), (7, 2, 4), (7, 2, 4)))
  mask = rng.random((1, 5, 7)) < 0.7
  mask[:, :, 0] = True
  expected = np.zeros((5, 2, 4))
  for head in range(2):
    for q in range(5):
      scores = key[:, head] @ query[q, head] / 2.0
      scores[~mask[0, q]] = -np.inf
      weights = np.exp(scores - scores.max())
      expected[q, head] = weights / weights.sum() @ value[:, head]
  np.testing.assert_allclose(layers.attend(query, key, value, jnp.asarray(mask)), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("norm", ["post", "pre", "full"])
def test_a_block_equals_a_numpy_transcription(norm, rng):
  """MAB of the encoder, with masked rows in its source, from the parameters in float64."""
  config = dataclasses.replace(TINY, norm=norm, activation="relu")
  block = encoder.MultiheadBlock(config.encoder, config, rngs=nnx.Rngs(0))
  x, y = rng.normal(size=(5, 8)), rng.normal(size=(7, 8))
  is_valid = np.array([True, False, True, True, False, True, True])
  got = block(x[None].astype(np.float32), y[None].astype(np.float32), jnp.asarray(is_valid[None, None, None]))

  def linear(layer, a):
    return a @ np.asarray(layer.kernel[...], np.float64) + np.asarray(layer.bias[...])

  def normalize(a):
    return (a - a.mean(-1, keepdims=True)) / np.sqrt(a.var(-1, keepdims=True) + 1e-6)

  source = normalize(y) if norm == "full" else y

  def attention(q):
    a, parts = block.attention, []
    for h in range(config.encoder.num_heads):
      own = slice(h * a.head_dim, (h + 1) * a.head_dim)
      query = linear(a.query, q)[:, own]
      key, value = (linear(layer, source)[:, own] for layer in (a.key, a.value))
      scores = np.where(is_valid, query @ key.T / np.sqrt(a.head_dim), -np.inf)
      weights = np.exp(scores - scores.max(-1, keepdims=True))
      parts.append(weights / weights.sum(-1, keepdims=True) @ value)
    return linear(a.out, np.concatenate(parts, axis=-1))

  def feed_forward(a):
    return linear(block.ff.outer, np.maximum(linear(block.ff.inner, a), 0))

  h = x
  for sublayer in (attention, feed_forward):
    h = normalize(h + sublayer(h)) if norm == "post" else h + sublayer(normalize(h))
  np.testing.assert_allclose(got[0], h, rtol=1e-4, atol=1e-5)


def test_residual_norms_in_the_place_of_the_configuration(rng):
  x = rng.normal(size=(2, 3, 4)).astype(np.float32)
  def normalize(a):
    return (a - a.mean(-1, keepdims=True)) / np.sqrt(a.var(-1, keepdims=True) + 1e-6)
  from flax import nnx
  post, pre = (layers.Residual(4, norm, rngs=nnx.Rngs(0)) for norm in ("post", "pre"))
  np.testing.assert_allclose(post(x, lambda h: 2 * h), normalize(3 * x), atol=1e-5)
  np.testing.assert_allclose(pre(x, lambda h: 2 * h), x + 2 * normalize(x), atol=1e-5)


def test_order_of_points_changes_nothing(network, rng):
  config, model = network
  points, is_valid, _, _ = _batch(config, rng)
  order = rng.permutation(points.shape[1])
  np.testing.assert_allclose(
    model.encoder(points, is_valid), model.encoder(points[:, order], is_valid[:, order]), atol=2e-5)


def test_latents_have_unit_scale(network, rng):
  config, model = network
  latents = np.asarray(model.encoder(*_batch(config, rng)[:2]))
  np.testing.assert_allclose(latents.mean(axis=-1), 0, atol=1e-5)
  np.testing.assert_allclose(latents.var(axis=-1), 1, rtol=1e-2)


def test_masked_points_change_nothing(network, rng):
  config, model = network
  points, is_valid, _, _ = _batch(config, rng)
  before = model.encoder(points, is_valid)
  points[1, 7:] = [np.nan, np.inf, 1e30]
  np.testing.assert_array_equal(before, model.encoder(points, is_valid))
  if config.encoder.features not in ("scaled", "columns"):  # there the share of valid rows is itself a feature
    np.testing.assert_allclose(before[1], model.encoder(points[1:2, :7], is_valid[1:2, :7])[0], atol=2e-5)
  points[1, 3] += 1
  assert not np.allclose(before[1], model.encoder(points, is_valid)[1], atol=1e-4)


def test_a_data_set_without_valid_points_is_finite(network):
  config, model = network
  points = np.full((1, 5, 3), np.nan, np.float32)
  assert np.all(np.isfinite(model.encoder(points, np.zeros((1, 5), bool))))


def test_bits_are_those_of_ieee_754():
  points = np.array([[[1.0, -0.15625]]], np.float32)
  got = np.asarray(encoder.point_features(points, np.ones((1, 1), bool), "bits"))[0, 0]
  words = [int.from_bytes(np.float32(v).tobytes(), "little") for v in points[0, 0]]
  expected = [2.0 * (word >> i & 1) - 1 for word in words for i in range(32)]
  np.testing.assert_array_equal(got, expected)


def test_the_encoder_is_told_which_columns_the_table_has(rng):
  points = rng.uniform(1, 2, (2, 6, 4)).astype(np.float32)
  points[0, :, 1] = 0.0
  points[1, 3:, 2] = 0.0
  is_valid = np.ones((2, 6), bool)
  is_valid[1, :3] = False  # the rows in which column 2 is not 0
  got = np.asarray(encoder.point_features(points, is_valid, "columns"))
  names = encoder.feature_names("columns", 3)
  assert got.shape[-1] == encoder.num_features("columns", 4) == len(set(names)) == 17
  rows = [[names.index((name, i)) for name in ("linear", "log", "small", "present")] for i in range(3)]
  bits = got[..., [row[-1] for row in rows]]
  np.testing.assert_array_equal(bits[0], np.tile([1, 0, 1], (6, 1)))
  np.testing.assert_array_equal(bits[1, 3:], np.tile([1, 1, 0], (3, 1)))
  assert not got[0][:, rows[1]].any()  # nothing of a column that is not there
  for i in (0, 2):
    x = points[0, :, i]
    np.testing.assert_allclose(
      got[0][:, rows[i]], np.stack([x / 5, np.log1p(x), np.arcsinh(1000 * x) / 8, np.ones(6)], -1), rtol=1e-5)


def test_later_tokens_do_not_reach_earlier_positions(network, rng):
  config, model = network
  points, is_valid, ids, constants = _batch(config, rng)
  logits, mantissas = model(points, is_valid, ids, constants)
  ids, constants = ids.copy(), constants.copy()  # the old ones may still be read
  ids[:, 5:], constants[:, 5:] = 4, 0.5
  new_logits, new_mantissas = model(points, is_valid, ids, constants)
  np.testing.assert_array_equal(logits[:, :5], new_logits[:, :5])
  np.testing.assert_array_equal(mantissas[:, :5], new_mantissas[:, :5])
  assert not np.allclose(logits[:, 5], new_logits[:, 5])


def test_input_constants_reach_the_next_token(network, rng):
  config, model = network
  points, is_valid, ids, constants = _batch(config, rng)
  before = model(points, is_valid, ids, constants)[0]
  constants = constants.copy()  # the old one may still be read
  constants[:, 4] += 0.5
  after = model(points, is_valid, ids, constants)[0]
  np.testing.assert_array_equal(before[:, :4], after[:, :4])
  assert np.all(np.abs(before[:, 4] - after[:, 4]).max(-1) > 1e-5)


def test_cached_steps_equal_the_whole_sequence(network, rng):
  config, model = network
  points, is_valid, ids, constants = _batch(config, rng)
  length, rows = ids.shape[1], np.arange(6)
  # Two candidates share each data set's latents.
  ids, constants, logits, mantissas = (
    np.repeat(a, 2, axis=0) for a in (ids, constants, *model(points, is_valid, ids, constants)))
  cache = model.init_cache(model.encoder(points, is_valid), 6, length)
  # Where slots are taken in turn, any of them may be the first, and each candidate begins anew at another one.
  is_in_turn = config.norm == "post"
  late = rows * is_in_turn
  for t in range(length + late[-1]):
    at, begun = (t - late) % length, t >= late
    position, slot = (jnp.asarray(at), jnp.int32((t + 4) % length)) if is_in_turn else (jnp.int32(t), None)
    got, mantissa, cache = model.step(
      jnp.asarray(ids[rows, at]), jnp.asarray(constants[rows, at]), position, cache, slot=slot)
    np.testing.assert_allclose(got[begun], logits[rows, at][begun], atol=1e-5)
    np.testing.assert_allclose(mantissa[begun], mantissas[rows, at][begun], atol=1e-5)


def test_only_bounded_mantissas_end_in_tanh(rng):
  config = dataclasses.replace(TINY, vocabulary=Vocabulary(2, "base"))
  for c, is_bounded in ((TINY, True), (config, False)):
    model = symformer.merge(c, symformer.init_params(c, jax.random.key(0)))
    model.decoder.regress_out.bias[...] = jnp.full((1,), 50.0)
    points, is_valid, ids, constants = _batch(c, rng, length=4)
    mantissas = jax.jit(model)(points, is_valid, np.minimum(ids, c.vocabulary.size - 1), constants)[1]
    assert bool(np.all(mantissas <= 1)) == is_bounded


def test_the_skeleton_encoding_predicts_no_values(rng):
  config = dataclasses.replace(TINY, vocabulary=Vocabulary(2, "skeleton"))
  model = Compiled(config)
  points, is_valid, ids, constants = _batch(config, rng)
  assert not np.any(model(points, is_valid, ids, 0 * constants)[1])


def test_dropout_is_random_by_key_and_off_without(network, rng):
  config = dataclasses.replace(network[0], dropout=0.5)
  model = Compiled(config)
  batch = _batch(config, rng)
  off, first, second = (model(*batch, dropout_key=k)[0] for k in (None, jax.random.key(1), jax.random.key(2)))
  np.testing.assert_array_equal(off, model(*batch)[0])
  np.testing.assert_array_equal(first, model(*batch, dropout_key=jax.random.key(1))[0])
  assert not np.allclose(first, second) and not np.allclose(first, off)


def test_configuration_survives_json():
  text = json.dumps(configuration.to_dict(CONFIGS["bits"]))
  assert configuration.build(ModelConfig, json.loads(text)) == CONFIGS["bits"]
