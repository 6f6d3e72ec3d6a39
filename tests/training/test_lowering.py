"""Train step, encoder, decoding loop and all fits of a search lower for CPU, CUDA and TPU without these being here."""

import dataclasses
import functools

import jax
from jax import export
import jax.numpy as jnp
import numpy as np
import pytest

from symformer_jax.data.pipeline import Batch
from symformer_jax.decoding import grammar, loop
from symformer_jax.decoding.strategies import TopK
from symformer_jax.language import programs
from symformer_jax.language.rules import Rule
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.model import symformer
from symformer_jax.refinement import solve
from symformer_jax.sources.repairs import growth
from symformer_jax.sources.ridges import ridge_functions, ridge_gains
from symformer_jax.sources.sums import exchange, pairs
from symformer_jax.training import step as step_lib
from symformer_jax.training.optimizer import make_optimizer
from symformer_jax.training.state import init_state

# Each with the name that JAX's own backends have. Batches differ in size, so that no platform gets the trace that was
# cached for another one's plan.
PLATFORMS = {"cpu": ("cpu", 4), "cuda": ("gpu", 8), "tpu": ("tpu", 12)}


@pytest.fixture(params=PLATFORMS)
def platform(request, monkeypatch):
  """A platform and a batch size; code that asks where it runs is told so."""
  backend, size = PLATFORMS[request.param]
  monkeypatch.setattr(jax, "default_backend", lambda: backend)
  return request.param, size


def _lower(function, platform, *arguments):
  # Anything without a rule for the platform raises here.
  exported = export.export(jax.jit(function), platforms=[platform])(*arguments)
  assert exported.platforms == (platform,)
  return exported.mlir_module()


def _assert_all_digits(text):
  """Every product of matrices, of which there are some, keeps the digits of its operands."""
  products = [line for line in text.splitlines() if "stablehlo.dot_general" in line]
  assert products and all("precision = [HIGHEST, HIGHEST]" in line for line in products)


def test_train_step_lowers(config, platform):
  name, size = platform
  config = dataclasses.replace(config, accumulation=2, remat=True, compute_dtype="bfloat16")
  optimizer = make_optimizer(config)
  state = jax.eval_shape(lambda: init_state(config, optimizer))
  batch = Batch(*(jax.ShapeDtypeStruct(s, t) for s, t in (
    ((size, 14), jnp.int32), ((size, 14), jnp.float32), ((size, 1, 2), jnp.float32))))
  text = _lower(step_lib.make_train_step(config, optimizer), name, state, batch)
  # A branch per token of the interpreter is the plan for CPU alone.
  assert ("stablehlo.case" in text) == (name == "cpu")


def test_decoding_loop_lowers(config, platform):
  name, size = platform
  model = config.model
  params = jax.eval_shape(lambda: symformer.init_params(model, jax.random.key(0)))
  latents = jax.ShapeDtypeStruct((1, model.encoder.num_seeds, model.encoder.width), jnp.float32)
  rules = jax.tree.map(lambda a: np.asarray(a)[None], grammar.make_grammar(Rule(1), model.vocabulary))
  decode = functools.partial(
    loop.decode, config=model, num_lanes=size, max_samples=size, max_length=14, strategy=TopK())
  zero = np.zeros(1, np.int32)
  assert "stablehlo.while" in _lower(
    decode, name, params, latents, jax.random.split(jax.random.key(0), 1), rules, zero + size, zero)


@pytest.mark.parametrize("method", ["lm", "bfgs", "gd"])
def test_refinement_lowers(method, platform):
  name, size = platform
  fit = functools.partial(
    solve.fit_candidates, vocab=Vocabulary(1), method=method, max_constants=2,
    plan="loop" if name == "cpu" else "vmap")
  row = jax.ShapeDtypeStruct((16,), jnp.float32)
  text = _lower(fit, name, jax.ShapeDtypeStruct((size, 6), jnp.int32), jax.ShapeDtypeStruct((size, 6), jnp.float32),
                jax.ShapeDtypeStruct((16, 1), jnp.float32), row, row)
  _assert_all_digits(text)


def test_encoder_lowers(config, platform):
  name, size = platform
  model = config.model
  params = jax.eval_shape(lambda: symformer.init_params(model, jax.random.key(0)))
  points = jax.ShapeDtypeStruct((size, 16, model.vocabulary.num_variables + 1), jnp.float32)
  _lower(lambda p, x, ok: symformer.merge(model, p).encoder(x, ok), name, params, points,
         jax.ShapeDtypeStruct((size, 16), jnp.bool_))


def test_fits_of_several_data_sets_in_double_precision_lower(platform):
  """What the loop of a search asks in every turn."""
  name, size = platform
  fit = functools.partial(solve.fit_candidates, vocab=programs.base_vocabulary(2), max_constants=2,
                          plan="loop" if name == "cpu" else "vmap")
  with jax.enable_x64(True):
    ids, dataset = jax.ShapeDtypeStruct((size, 6), jnp.int32), jax.ShapeDtypeStruct((size,), jnp.int32)
    values, x = jax.ShapeDtypeStruct((size, 6), jnp.float64), jax.ShapeDtypeStruct((3, 16, 2), jnp.float64)
    rows = jax.ShapeDtypeStruct((3, 16), jnp.float64)
    text = _lower(lambda *a: fit(*a[:-1], dataset=a[-1]), name, ids, values, x, rows, rows, dataset)
  assert "f64" in text


def test_grids_and_fits_of_ridges_lower(platform):
  name, size = platform
  num_rows, num_amplitudes = 16 * size, 2

  def arrays(*shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)

  setting = ridge_gains.Settings(
    arrays(num_amplitudes, num_rows), arrays(num_amplitudes, 3, num_rows), arrays(num_amplitudes, num_rows))
  best = functools.partial(ridge_gains.best_ridges, num_phases=8, num_directions=4)
  _assert_all_digits(_lower(best, name, arrays(ridge_gains.CHUNK, 2, num_rows), setting))
  of_each = len(ridge_functions.OUTER), 4
  starts = ridge_gains.Starts(
    arrays(*of_each, 3, num_rows), arrays(*of_each, dtype=jnp.int32), arrays(*of_each, 3), arrays(*of_each))
  _assert_all_digits(_lower(functools.partial(ridge_gains.fit_ridges, num_steps=2), name, starts, (setting, setting)))


def test_searches_for_columns_keep_all_digits(platform):
  name, size = platform

  def floats(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)

  count = jax.ShapeDtypeStruct((), jnp.int32)
  for function, arguments in (
      (pairs._block_gains, (floats(pairs.TILE, size), floats(pairs.TILE), count)),
      (exchange._complete, (floats(9, size), floats(size), jax.ShapeDtypeStruct((exchange.SETS_AT_ONCE, 2), jnp.int32),
                            count)),
      (growth._gains, (floats(3, 5, size), floats(2, size), floats(2, size), floats(2, 4, size)))):
    _assert_all_digits(_lower(function, name, *arguments))
