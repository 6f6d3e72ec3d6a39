"""On an accelerator: interpreter, fits, decoding, a training step and a search say what they say on a CPU.

They need one: `JAX_PLATFORMS=cuda,cpu pytest -m gpu tests/accelerator` (launch/accelerator.sh runs them).
"""

from collections.abc import Callable
import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from configs import small
from symformer_jax import configuration, inference
from symformer_jax.data import pipeline
from symformer_jax.decoding import sampling
from symformer_jax.decoding.strategies import Greedy
from symformer_jax.evaluation import problems
from symformer_jax.language import expression, interpreter, parser
from symformer_jax.language.rules import Rule
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.pretrained import registry
from symformer_jax.refinement import solve
from symformer_jax.training import config as config_lib, step as step_lib
from symformer_jax.training.optimizer import make_optimizer
from symformer_jax.training.state import init_state

pytestmark = pytest.mark.gpu

VOCAB, LENGTH, NUM_POINTS = Vocabulary(1), 24, 40


class Law(NamedTuple):
  """A formula, itself as NumPy has it with its constants as arguments, those constants, and a range of x."""

  text: str
  function: Callable
  constants: tuple
  ends: tuple


LAWS = (
  Law("2.5*exp(-1.3*x)", lambda x, a, b: a * np.exp(-b * x), (2.5, 1.3), (0, 4)),
  Law("3.2*exp(-((x - 1.7)/0.8)**2)", lambda x, a, b, c: a * np.exp(-(((x - b) / c) ** 2)), (3.2, 1.7, 0.8), (-2, 5)),
  Law("2.2*x/(1.4 + x) + 0.31*x", lambda x, a, b, c: a * x / (b + x) + c * x, (2.2, 1.4, 0.31), (0, 6)),
  Law("1.5*sin(1.2*x) + 0.7*sin(2.9*x)", lambda x, a, b, c, d: a * np.sin(b * x) + c * np.sin(d * x),
      (1.5, 1.2, 0.7, 2.9), (-3, 3)),
  Law("0.37*x**2.6", lambda x, a, b: a * x**b, (0.37, 2.6), (0.1, 5)),
  Law("7.2/(1.1 + exp(2.6 - 1.1*x))", lambda x, a, b, c, d: a / (b + np.exp(c - d * x)), (7.2, 1.1, 2.6, 1.1), (-1, 6)),
)


@pytest.fixture(autouse=True)
def _an_accelerator_is_there():
  assert jax.default_backend() != "cpu", "start it with JAX_PLATFORMS=cuda,cpu"


def on_cpu(call):
  """What the same call says on the host's own processor."""
  with jax.default_device(jax.devices("cpu")[0]):
    return jax.tree.map(np.asarray, call())


def encoded(law):
  """`(ids [L], values [L])`."""
  ids, mantissas = expression.encode(parser.parse(law.text), VOCAB)
  values = np.array(mantissas) * np.array(VOCAB.constant_scale)[ids]
  padding = (0, LENGTH - len(ids))
  return np.pad(np.array(ids, np.int32), padding), np.pad(values, padding)


@pytest.fixture(scope="module")
def data():
  """`(ids [K, L], values [K, L], x [K, N, 1], y [K, N])`, double precision."""
  rng = np.random.default_rng(3)
  ids, values = (np.stack(column) for column in zip(*map(encoded, LAWS), strict=True))
  x = np.stack([np.sort(rng.uniform(*law.ends, NUM_POINTS)) for law in LAWS])
  y = np.stack([law.function(row, *law.constants) for law, row in zip(LAWS, x, strict=True)])
  return ids, values, x[..., None], y


# --- interpreter, fits -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 3e-5), (np.float64, 1e-12)])
def test_values_are_those_of_numpy(data, dtype, tolerance):
  ids, values, x, y = data
  with jax.enable_x64(dtype == np.float64):
    found = interpreter.evaluate_many(ids, jnp.asarray(values.astype(dtype)), jnp.asarray(x.astype(dtype)), vocab=VOCAB)
    assert found.dtype == dtype and "cpu" not in {device.platform for device in found.devices()}
    np.testing.assert_allclose(found, y, rtol=tolerance, atol=tolerance)


def fit(data, y, dtype, factor):
  """Mean squared errors [K] of the fits from constants `factor` times the true ones."""
  ids, values, x, _ = data
  with jax.enable_x64(dtype == np.float64):
    _, found = solve.fit_candidates(
      ids, (values * factor).astype(dtype), x.astype(dtype), y.astype(dtype), np.ones(y.shape, dtype), vocab=VOCAB,
      dataset=np.arange(len(ids), dtype=np.int32))
    assert found.loss.dtype == dtype
    return np.asarray(found.loss, np.float64)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-4), (np.float64, 1e-9)])
def test_fits_end_where_scipy_ends(data, dtype, tolerance):
  clean = data[3]
  y = clean + 0.02 * clean.std(axis=1, keepdims=True) * np.random.default_rng(0).normal(size=clean.shape)
  best = [np.mean(optimize.least_squares(
    lambda c, law=law, x=x, row=row: law.function(x, *c) - row, law.constants, xtol=1e-15, ftol=1e-15).fun ** 2)
    for law, x, row in zip(LAWS, data[2][..., 0], y, strict=True)]
  np.testing.assert_allclose(fit(data, y, dtype, 1.1), best, rtol=tolerance)


def test_single_precision_loses_no_digits_in_products_of_matrices(data):
  """Short mantissas, which accelerators give such products by default, would leave 1e-6 of the variance and more."""
  y = data[3]
  assert (fit(data, y, np.float32, 1.1) < 1e-11 * y.var(axis=1)).all()


# --- network ---------------------------------------------------------------------------------------------------------


def test_greedy_answers_are_those_of_a_cpu():
  model = registry.load_model("univariate")
  x = np.sort(np.random.default_rng(0).uniform(0.5, 4, (8, 100)), axis=1)
  y = np.stack([np.sin(x[0]), 2.1 * x[1], x[2] ** 2 + 1, np.exp(-x[3]), 3 / x[4], np.log(x[5]), x[6] ** 3 - x[6],
                np.sqrt(x[7])])
  points, is_valid = np.stack([x, y], axis=-1).astype(np.float32), np.ones(x.shape, bool)

  def answers():
    return sampling.decode_candidates(
      model, sampling.encode(model, points, is_valid), jax.random.split(jax.random.key(0), len(points)),
      [Rule(1)] * len(points), num_samples=1, strategy=Greedy())

  here, there = answers(), on_cpu(answers)
  are_same = [np.array_equal(mine[0], theirs[0]) for mine, theirs in zip(here, there, strict=True)]
  assert sum(are_same) >= len(are_same) - 1, are_same  # two tokens may be as likely
  for (_, mine), (_, theirs), is_same in zip(here, there, are_same, strict=True):
    if is_same:
      np.testing.assert_allclose(mine, theirs, atol=5e-3)


def test_samples_are_as_frequent_as_on_a_cpu():
  model = registry.load_model("univariate")
  x = np.linspace(0.5, 4, 100)
  points = np.stack([x, 2.1 * x**2 / (x + 1)], axis=-1).astype(np.float32)

  def first_tokens(key):
    ids, _ = sampling.sample_candidates(
      model, points, np.ones(len(x), bool), jax.random.key(key), num_samples=1024)
    return np.bincount(ids[:, 0], minlength=model.config.vocabulary.size) / len(ids)

  assert np.abs(first_tokens(1) - on_cpu(lambda: first_tokens(2))).sum() < 0.2


def test_a_training_step_is_that_of_a_cpu():
  config = configuration.build(config_lib.TrainConfig, small.get_config().to_dict())
  config = dataclasses.replace(config, data=dataclasses.replace(
    config.data, dirs=(str(problems.FRESH_EQUATIONS[1]),), batch_size=128))
  batch = next(pipeline.make_iterator(config.data, 0, split="validation", num_variables=1))
  optimizer = make_optimizer(config)

  def one():
    state = jax.jit(lambda: init_state(config, optimizer))()
    return jax.jit(step_lib.make_train_step(config, optimizer))(state, batch)

  (_, here), (_, there) = jax.tree.map(np.asarray, one()), on_cpu(one)
  assert here["cross_entropy"] == pytest.approx(there["cross_entropy"], rel=2e-3)
  assert here["constant_mse"] == pytest.approx(there["constant_mse"], rel=2e-2)


# --- the whole -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS[:3], ids=lambda law: law.text)
def test_a_search_finds_the_law(law):
  x = np.linspace(*law.ends, 60)
  [result] = inference.search(
    inference.resolve_model("univariate", num_variables=1), [(x, law.function(x, *law.constants))], n_samples=256)
  assert result.best.r2 > 1 - 1e-9, result.best
