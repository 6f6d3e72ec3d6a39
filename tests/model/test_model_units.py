"""Parts of the network by themselves: sizes, features of points by NumPy, attention of one, keys, recomputation."""

import dataclasses

from flax import nnx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.model import config as config_lib, encoder, layers, symformer
from symformer_jax.model.config import DecoderConfig, EncoderConfig, ModelConfig

TINY = ModelConfig(
  vocabulary=Vocabulary(2),
  encoder=EncoderConfig(width=8, num_heads=2, head_dim=6, ff_dim=16, num_layers=2, num_inducing=3, num_seeds=4),
  decoder=DecoderConfig(width=12, num_heads=2, head_dim=5, ff_dim=16, num_layers=2, max_length=10), dropout=0.5)


# --- sizes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("part", "field", "largest"), [
  (EncoderConfig, "num_layers", 256), (DecoderConfig, "num_layers", 256), (EncoderConfig, "width", 65536),
  (DecoderConfig, "width", 65536), (EncoderConfig, "num_seeds", 65536), (DecoderConfig, "max_length", 65536)])
def test_sizes_lie_between_one_and_what_nobody_trains(part, field, largest):
  name = "encoder" if part is EncoderConfig else "decoder"
  for value in (2, largest):
    assert getattr(getattr(ModelConfig(**{name: part(**{field: value})}), name), field) == value
  for value in (0, largest + 2):
    with pytest.raises(ValueError, match=f"{name}.{field} must lie between 1 and {largest}, got {value}"):
      ModelConfig(**{name: part(**{field: value})})
  with pytest.raises(ValueError, match=f"must lie between 1 and {largest}, got {largest + 1}"):
    ModelConfig(**{name: part(**{field: largest + 1})})
  assert ModelConfig(**{name: part(num_heads=1)})


@pytest.mark.parametrize(("changes", "message"), [
  ({"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0"), ({"dropout": -0.1}, "at least 0 and below 1"),
  ({"vocabulary": Vocabulary(has_requested=True)}, "vocabulary.has_requested must be False"),
  ({"vocabulary": Vocabulary(65537)}, "a network knows at most 65536 variables, got 65537"),
  ({"norm": "mid"}, "unknown norm 'mid'"), ({"activation": "elu"}, "unknown activation 'elu'"),
  ({"decoder": DecoderConfig(width=577)}, "decoder width must be even, got 577"),
  ({"encoder": EncoderConfig(features="all")}, "unknown point features 'all': expected one of raw, bits, scaled, col")])
def test_what_is_no_network_is_refused(changes, message):
  with pytest.raises(ValueError, match=message):
    ModelConfig(**changes)


def test_the_limits_themselves_are_networks():
  assert ModelConfig(dropout=0.0).dropout == 0 and ModelConfig(dropout=0.99).dropout == 0.99
  assert ModelConfig(vocabulary=Vocabulary(65536)).vocabulary.num_variables == config_lib.MAX_SIZE
  assert ModelConfig().dropout == 0.1  # SymFormer, table of hyperparameters


@pytest.mark.parametrize(("change", "by"), [
  ({"width": 10}, 2 * 8), ({"num_inducing": 4}, 2 * 8), ({"num_seeds": 5}, 8)])
def test_sizes_of_the_encoder_show_in_its_parameters(change, by):
  before, after = (symformer.count_parameters(dataclasses.replace(TINY, encoder=e))["encoder"] for e in (
    TINY.encoder, dataclasses.replace(TINY.encoder, **change)))
  assert after > before if "width" in change else after - before == by


def test_pre_norm_networks_normalise_what_they_leave():
  for norm in config_lib.NORMS:
    params = symformer.abstract_params(dataclasses.replace(TINY, norm=norm))
    assert [("final_norm" in params[part]) for part in ("encoder", "decoder")] == [norm != "post"] * 2
    assert ("row_norm" in params["encoder"]) == (norm == "full")


@pytest.mark.parametrize("norm", config_lib.NORMS)
def test_only_full_norms_keep_the_size_of_what_is_attended_to_out(norm, rng):
  block = encoder.MultiheadBlock(TINY.encoder, dataclasses.replace(TINY, norm=norm), rngs=nnx.Rngs(0))
  x, y = (jnp.asarray(rng.normal(size=(1, n, 8)), jnp.float32) for n in (5, 7))
  assert bool(jnp.allclose(block(x, y), block(x, 1000 * y), atol=1e-4)) == (norm == "full")


def test_positions_begin_small():
  config = dataclasses.replace(TINY, decoder=dataclasses.replace(TINY.decoder, width=100, max_length=200))
  positions = jax.jit(lambda key: symformer.init_params(config, key)["decoder"]["positions"])(jax.random.key(0))
  assert float(np.std(positions)) == pytest.approx(0.02, rel=0.05)
  shapes = symformer.abstract_params(config)["decoder"]
  assert shapes["embed"]["embedding"].shape[1] == shapes["project_constant"]["kernel"].shape[1] == 50


# --- features --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("features", ["raw", "scaled", "columns"])
def test_features_of_points_by_numpy(features, rng):
  points = rng.normal(size=(2, 6, 3)).astype(np.float32) * 3
  points[1, :, 1] = 0.0
  is_valid = np.ones((2, 6), bool)
  is_valid[0, 4:] = False
  got = np.asarray(encoder.point_features(points, is_valid, features))
  for each, valid, found in zip(points, is_valid, got, strict=True):
    kept = np.where(valid[:, None], each, 0).astype(np.float64)
    x, y = kept[:, :2], kept[:, 2]
    largest = np.abs(y).max()
    small = lambda values: np.arcsinh(1000 * values) / 8  # noqa: E731 - as short as it is said
    expected = {
      "raw": [kept], "scaled": [x / 5, np.sign(x) * np.log(1 + np.abs(x)), np.arcsinh(y) / 3, y / largest]}
    expected["columns"] = [
      *expected["scaled"][:2], small(x), np.tile(np.any(x != 0, axis=0), (6, 1)), *expected["scaled"][2:],
      small(y / largest)]
    if features != "raw":
      expected[features] += [np.full(6, np.log(largest) / 10), np.full(6, valid.mean())]
    table = np.column_stack(expected[features])
    np.testing.assert_allclose(found, np.where(valid[:, None], table, 0), rtol=1e-4, atol=1e-5)
    assert table.shape[1] == encoder.num_features(features, 3) == len(encoder.feature_names(features, 2))
    # A data set without the axis of a batch has the same.
    np.testing.assert_allclose(encoder.point_features(each, valid, features), found, rtol=1e-6)


def test_a_target_that_is_0_everywhere_has_a_level():
  got = np.asarray(encoder.point_features(np.zeros((1, 4, 2), np.float32), np.ones((1, 4), bool), "scaled"))[0]
  np.testing.assert_allclose(got, np.tile([0, 0, 0, 0, np.log(1e-30) / 10, 1], (4, 1)), rtol=1e-5)


def test_features_have_names_and_owners():
  assert encoder.num_features("bits", 3) == 96 and encoder.num_features("raw", 3) == 3
  assert encoder.feature_names("raw", 2) == [("0", 0), ("0", 1), ("0", -1)]
  bits = encoder.feature_names("bits", 1)
  assert bits[0] == ("0", 0) and bits[31] == ("31", 0) and bits[32] == ("0", -1) and len(bits) == 64
  assert encoder.feature_names("scaled", 2) == [
    ("linear", 0), ("linear", 1), ("log", 0), ("log", 1), ("asinh", -1), ("share", -1), ("level", -1), ("count", -1)]


# --- layers ----------------------------------------------------------------------------------------------------------


def test_attention_of_one_is_that_of_many(rng):
  query, key, value = (rng.normal(size=s).astype(np.float32) for s in ((3, 1, 2, 4), (3, 7, 2, 4), (3, 7, 2, 4)))
  is_visible = rng.random((3, 7)) < 0.6
  is_visible[:, 0], is_visible[2] = True, False  # nothing visible: the mean of all
  many = layers.attend(query, key, value, is_visible[:, None, None, :])
  one = layers.attend_one(query, key, value, is_visible)
  np.testing.assert_allclose(one, many, rtol=1e-5, atol=1e-6)
  np.testing.assert_allclose(one[2, 0], value[2].mean(axis=0), rtol=1e-5, atol=1e-6)
  hidden = value.copy()
  hidden[:2][~is_visible[:2]] = 1e6
  np.testing.assert_array_equal(layers.attend_one(query, key, hidden, is_visible)[:2], one[:2])


def test_large_scores_keep_their_digits_in_bfloat16(rng):
  """In bfloat16 scores of 80 are off by a quarter, and weights by as much."""
  query, key, value = (jnp.asarray(rng.normal(size=(4, 24, 2, 16)), jnp.bfloat16) for _ in range(3))
  query = query * 20
  found = layers.attend(query, key, value, None)
  exact = layers.attend(*(a.astype(jnp.float32) for a in (query, key, value)), None)
  assert found.dtype == jnp.bfloat16
  assert float(jnp.sqrt(jnp.mean((found.astype(jnp.float32) - exact) ** 2))) < 0.01


def test_rows_are_multiplied_as_matrices(rng):
  linear = layers.Linear(3, 5, rngs=nnx.Rngs(0))
  x = rng.normal(size=(2, 4, 3)).astype(np.float32)
  np.testing.assert_allclose(linear(x), x @ np.asarray(linear.kernel[...]) + np.asarray(linear.bias[...]), rtol=1e-5)
  # docs/results/training_speed.md: with more axes the gradient copies a transpose.
  [product] = [e for e in jax.make_jaxpr(linear)(x).jaxpr.eqns if e.primitive.name == "dot_general"]
  assert product.outvars[0].aval.shape == (8, 5)
  attention = layers.Attention(4, 6, 2, 3, rngs=nnx.Rngs(0))
  assert attention.split(jnp.arange(12.0).reshape(2, 6)).tolist() == np.arange(12.0).reshape(2, 2, 3).tolist()
  assert attention.query.kernel.shape == (4, 6) and attention.key.kernel.shape == (6, 6)
  assert attention.out.kernel.shape == (6, 4)


# --- the whole -------------------------------------------------------------------------------------------------------


@pytest.fixture
def batch(rng):
  points = rng.normal(size=(2, 5, 3)).astype(np.float32)
  return points, np.ones((2, 5), bool), rng.integers(3, 20, (2, 4)), np.zeros((2, 4), np.float32)


def test_no_key_is_used_twice(batch, monkeypatch):
  seen, params = [], jax.tree.map(lambda leaf: jnp.zeros(leaf.shape), symformer.abstract_params(TINY))
  split = jax.random.split

  def dropped(self, x, *, deterministic, rngs):
    assert deterministic == (rngs is None)
    seen.extend([] if deterministic else [jax.random.key_data(rngs)])
    return x

  def parted(key, *numbers):
    seen.append(jax.random.key_data(key))
    return split(key, *numbers)

  def keys(*key):
    seen.clear()
    symformer.merge(TINY, params)(*batch, dropout_key=key[0] if key else None)
    return list(seen)

  monkeypatch.setattr(nnx.Dropout, "__call__", dropped)
  monkeypatch.setattr(jax.random, "split", parted)
  found = [tuple(np.asarray(key).tolist()) for key in jax.jit(keys)(jax.random.key(1))]
  # Dropped after each block of the encoder, the embedding, and each of three sublayers of the decoder; split are that
  # of the whole, those of both parts, and those of the decoder's layers.
  assert len(found) == len(set(found)) == 2 + 1 + 2 * 3 + 1 + 2 + 2
  assert jax.eval_shape(keys) == []


def test_a_decoder_may_have_a_single_layer():
  config = dataclasses.replace(TINY, dropout=0.0, decoder=dataclasses.replace(TINY.decoder, num_layers=1))

  def shapes(params, latents, ids, constants):
    decoder = symformer.merge(config, params).decoder
    return decoder.step(ids, constants, jnp.int32(3), decoder.init_cache(latents, 4, 7))

  logits, constant, cache = jax.eval_shape(
    shapes, symformer.abstract_params(config), jnp.zeros((2, 4, 8)), jnp.zeros(4, int), jnp.zeros(4))
  assert logits.shape == (4, config.vocabulary.size) and constant.shape == (4,)
  assert [key.shape for key, _ in cache.self_kv] == [(4, 7, 2, 5)]


def test_blocks_are_recomputed_where_that_is_asked_for(batch):
  config = dataclasses.replace(TINY, dropout=0.0)
  model = symformer.merge(config, jax.tree.map(lambda leaf: jnp.zeros(leaf.shape), symformer.abstract_params(config)))

  def count(part, *given, **options):
    jaxpr = jax.make_jaxpr(lambda *given: part(*given, **options))(*given)
    return sum(equation.primitive.name in ("checkpoint", "remat", "remat2") for equation in jaxpr.jaxpr.eqns)

  assert count(model, *batch, remat=True) == 2 + 2 and count(model, *batch, remat=False) == count(model, *batch) == 0
  assert count(model.encoder, *batch[:2]) == count(model.decoder, *batch[2:], jnp.zeros((2, 4, 8))) == 0


def test_keys_of_parameters_are_text_and_their_order_that_of_the_network():
  params = symformer.abstract_params(TINY)
  assert set(params) == {"encoder", "decoder"} and set(params["decoder"]["layers"]) == {"0", "1"}
  counts = symformer.count_parameters(TINY)
  assert counts["total"] == counts["encoder"] + counts["decoder"]
  real = jax.eval_shape(lambda key: symformer.init_params(TINY, key), jax.random.key(0))
  assert jax.tree.structure(real) == jax.tree.structure(params)
  assert counts["total"] == sum(leaf.size for leaf in jax.tree.leaves(real))
