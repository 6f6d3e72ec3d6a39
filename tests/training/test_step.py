"""One step: parts of a batch add up to the batch, rematerialisation and bfloat16 change memory and not the model."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symformer_jax.data import sequences
from symformer_jax.model import symformer
from symformer_jax.training import speed, step as step_lib


@pytest.fixture(scope="module")
def examples(config):
  """Eight examples of different lengths and numbers of constants: a mean of parts' means is not the batch's."""
  vocab, (batch, length), rng = config.model.vocabulary, (8, 9), np.random.default_rng(0)
  ids = rng.integers(3, vocab.size, (batch, length)) * (np.arange(length) < rng.integers(1, length, (batch, 1)))
  constants = np.where(np.asarray(vocab.is_constant)[ids], rng.uniform(-1, 1, ids.shape), 0).astype(np.float32)
  seqs = jax.tree.map(np.asarray, sequences.teacher_forcing(ids, constants))
  points = rng.normal(size=(batch, config.points.num_points, 2)).astype(np.float32)
  return step_lib.Examples(points, np.ones(points.shape[:2], bool), seqs, seqs.constants)


def _gradient(config, examples):
  """The gradient of the loss of a batch and its metrics, as the train step takes them; not jitted yet."""
  def grad(params):
    counts = step_lib.count_targets(examples, config)
    loss = functools.partial(step_lib.compute_loss, counts=counts, config=config, weight=jnp.float32(0.5))
    one = jax.grad(lambda p, part, key: loss(p, part, dropout_key=key), has_aux=True)
    return step_lib.accumulate(one, params, examples, None, config.accumulation)
  return grad


@pytest.fixture(scope="module")
def params():
  return functools.cache(lambda config: jax.jit(lambda: symformer.init_params(config, jax.random.key(0)))())


@pytest.fixture(scope="module")
def whole(config, examples, params):
  """The gradient of the batch at once, and its metrics."""
  return jax.jit(_gradient(config, examples))(params(config.model))


@pytest.mark.parametrize("change", [{"accumulation": 4}, {"remat": True}], ids=str)
def test_the_gradient_is_the_same(config, examples, params, whole, change):
  other = jax.jit(_gradient(dataclasses.replace(config, **change), examples))(params(config.model))
  jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-4, atol=2e-6), whole, other)


def test_rematerialisation_computes_blocks_again(config, examples):
  def count(some):
    abstract = symformer.abstract_params(some.model)
    return str(jax.make_jaxpr(_gradient(some, examples))(abstract)).count("remat")
  assert count(config) == 0 and count(dataclasses.replace(config, remat=True)) > 0


def test_bfloat16_computes_in_bfloat16_and_keeps_float32_gradients(config, examples, params, whole):
  half = dataclasses.replace(config, compute_dtype="bfloat16")
  exact, rounded = whole, jax.jit(_gradient(half, examples))(params(config.model))
  assert {leaf.dtype for leaf in jax.tree.leaves(rounded[0])} == {np.dtype("float32")}
  assert float(rounded[1]["loss"]) == pytest.approx(float(exact[1]["loss"]), rel=0.02)
  assert rounded[1]["loss"] != exact[1]["loss"]
  products = str(jax.make_jaxpr(_gradient(half, examples))(params(config.model)))
  assert "bf16" in products and "bf16" not in str(jax.make_jaxpr(_gradient(config, examples))(params(config.model)))


def test_dropout_differs_between_the_parts_of_a_batch(config):
  seen = []
  def grad(params, examples, key):
    seen.append(key)
    return {"g": params["g"] * jax.random.uniform(key)}, {}
  examples = jnp.zeros((4, 1))
  grads, _ = step_lib.accumulate(grad, {"g": jnp.ones(())}, examples, jax.random.key(0), 4)
  expected = sum(jax.random.uniform(key) for key in jax.random.split(jax.random.key(0), 4))
  assert float(grads["g"]) == pytest.approx(float(expected), rel=1e-5)


def test_flops_are_those_of_the_matrix_products(config):
  """Against a sum by hand over the tiny network: one ISAB, PMA, one decoder layer."""
  e, d, n, length = config.model.encoder, config.model.decoder, config.points.num_points, 9
  def attention(queries, source, width, source_width, heads, size):
    inner = heads * size
    return queries * (2 * width * inner) + source * (2 * source_width * inner) + 2 * queries * source * inner
  def ff(rows, width, inner):
    return 2 * rows * width * inner
  shape = (e.width, e.width, e.num_heads, e.head_dim)
  encoder = n * 6 * e.width + sum(
    attention(q, s, *shape) + ff(q, e.width, e.ff_dim)
    for q, s in ((e.num_inducing, n), (n, e.num_inducing), (e.num_seeds, n))) + ff(n, e.width, e.ff_dim)
  r = d.regression_hidden
  heads = d.width * config.model.vocabulary.size + d.width * r + r * r + r
  decoder = length * (d.width // 2 + heads) + ff(length, d.width, d.ff_dim) + attention(
    length, length, d.width, d.width, d.num_heads, d.head_dim) + attention(
      length, e.num_seeds, d.width, e.width, d.num_heads, d.head_dim)
  assert speed.flops_per_example(config, length) == 6 * (encoder + decoder)
