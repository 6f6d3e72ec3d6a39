"""The benchmark of training: what is computed around what is measured, on stand-ins."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs import tiny
from launch.benchmarks import train
from symformer_jax import configuration
from symformer_jax.data.pipeline import Batch
from symformer_jax.training.config import TrainConfig


@pytest.fixture(scope="module")
def config():
  return configuration.build(TrainConfig, tiny.get_config().to_dict())


def batch(length, size=4):
  return Batch(ids=np.ones((size, length), np.int32), mantissas=np.ones((size, length), np.float32),
               domains=np.ones((size, 1, 2), np.float32))


def test_a_batch_of_shapes_is_the_longest(config):
  found = train._empty_batch(config)
  size, length = config.data.batch_size, config.data.length_buckets[-1] - 1
  num = config.model.vocabulary.num_variables
  assert found.ids.shape == found.mantissas.shape == (size, length) and found.domains.shape == (size, num, 2)
  assert (found.ids.dtype, found.mantissas.dtype, found.domains.dtype) == (jnp.int32, jnp.float32, jnp.float32)


def test_training_is_compared_with_a_matrix_product(config, monkeypatch):
  asked = []
  seconds = {"step": train._Seconds(2.0, 4.0), "gradient": train._Seconds(1.5, 1.0),
             "points": train._Seconds(0.5, 1.0), "update": train._Seconds(0.25, 1.0)}

  def make_iterator(data, seed, *, split, num_variables):
    asked.append((data.dirs, seed, split, num_variables))
    return iter([batch(5), batch(9), *[batch(7)] * 9])
  monkeypatch.setattr(train.pipeline, "make_iterator", make_iterator)
  monkeypatch.setattr(train.speed, "measure_matrix_rate", lambda kind: asked.append(kind) or 8e9)
  monkeypatch.setattr(train.speed, "flops_per_example", lambda config, length: asked.append(length) or 3e9)
  monkeypatch.setattr(train, "_time_parts", lambda config, batches: asked.append(
    [b.ids.shape[1] for b in batches]) or seconds)
  monkeypatch.setattr(train, "_time_input", lambda iterator: (0.5, 0.25))
  monkeypatch.setattr(train, "_time", lambda call, arguments: asked.append(
    (len(arguments), arguments[0][0].shape, arguments[0][0].dtype)) or train._Seconds(1.0, 0.5))
  monkeypatch.setattr(train, "peak_mib", lambda: 7.0)
  size = config.data.batch_size
  found = train._measure(config)
  assert asked[0] == ((str(train.problems.FRESH_EQUATIONS[1]),), 0, "validation", 1)
  assert asked[1:] == [config.compute_dtype, [9] * 5, 10, (5, (1024, 1024), jnp.dtype(config.compute_dtype))]
  assert found == {
    "batch": size, "length": 10, "gflop_per_example": 3.0, "examples_per_s": size / 2, "examples_per_cpu_s": size / 4,
    "gflops_per_s": size * 1.5, "matrix_gflops_per_s": 8.0, "utilization": size * 1.5 / 8,
    "gflops_per_cpu_s": size * 0.75, "matrix_gflops_per_cpu_s": pytest.approx(2 * 1024**3 / 1e9 / 0.5),
    "input_examples_per_s": size * 2, "input_examples_per_cpu_s": size * 4, "peak_mib": 7.0,
    "ms": {"step": 2000, "gradient": 1500, "points": 500, "update": 250}, "largest_part_beside_the_model": "points"}
  own = configuration.build(TrainConfig, {**tiny.get_config().to_dict()})
  own = type(own)(**{**vars(own), "data": type(own.data)(**{**vars(own.data), "dirs": ("d",)})})
  train._measure(own)
  assert asked[5][0] == ("d",) and asked[5][2] == "train"


def test_what_is_printed_is_what_was_asked(config, monkeypatch, capsys):
  flags = {"config": types.SimpleNamespace(value=None)}

  class Flags(dict):
    devices = None
  given = Flags(flags)
  monkeypatch.setattr(train, "flags", types.SimpleNamespace(FLAGS=given))
  monkeypatch.setattr(train.config_flag, "read", lambda chosen: tiny.get_config().to_dict())
  monkeypatch.setattr(train, "_measure", lambda config: {"size": config.data.batch_size, "rate": 1.23456})
  monkeypatch.setattr(train, "_compile_only", lambda config: {"compiled": config.data.batch_size})
  small = configuration.build(TrainConfig, train.small.get_config().to_dict()).data.batch_size
  assert train.run() == {"size": small, "rate": 1.23456} and small != config.data.batch_size
  assert capsys.readouterr().out == f"size: {small}\nrate: 1.235\n"
  given["config"].value, given.devices = "c", 8
  assert train.run() == {"compiled": config.data.batch_size}


def test_a_step_that_is_compiled_alone_tells_its_memory(config, monkeypatch):
  memory_ = types.SimpleNamespace(argument_size_in_bytes=3 * 2**20, temp_size_in_bytes=2**19)
  compiled = types.SimpleNamespace(memory_analysis=lambda: memory_, as_text=lambda: "%a = f32[262144] all-reduce(%x)")
  lowered = types.SimpleNamespace(compile=lambda: compiled)
  monkeypatch.setattr(train.loop, "jit_steps", lambda config, optimizer, mesh, state: (
    types.SimpleNamespace(lower=lambda state, batch: lowered), None, None))
  monkeypatch.setattr(train.sharding, "make_mesh", lambda mesh: types.SimpleNamespace(shape={"data": 8}))
  monkeypatch.setattr(train.jax, "eval_shape", lambda call: None)
  seconds = iter([1.0, 3.5])
  monkeypatch.setattr(train, "time", types.SimpleNamespace(process_time=lambda: next(seconds)))
  assert train._compile_only(config) == {
    "mesh": {"data": 8}, "batch": config.data.batch_size, "compile_cpu_s": 2.5, "state_mib_per_device": 3.0,
    "temporary_mib_per_device": 0.5, "exchanges": {"all-reduce": {"count": 1, "mib": 1.0}}}


def test_each_part_of_a_step_is_timed_on_its_own(config, monkeypatch):
  asked = {}
  monkeypatch.setattr(train.jax, "jit", lambda call: call)
  monkeypatch.setattr(train.jax, "grad", lambda loss: lambda params, examples: loss(params, examples))
  monkeypatch.setattr(train, "init_state", lambda config, optimizer: types.SimpleNamespace(params="p", opt_state="o"))
  monkeypatch.setattr(train, "make_optimizer", lambda config: types.SimpleNamespace(update="update"))
  monkeypatch.setattr(train.step_lib, "make_train_step", lambda config, optimizer: "step")
  monkeypatch.setattr(train.step_lib, "prepare", lambda key, batch, config, points: (f"examples of {batch}", None))
  monkeypatch.setattr(train.step_lib, "count_targets", lambda examples, config: f"counts of {examples}")
  monkeypatch.setattr(train.step_lib, "compute_loss", lambda params, examples, counts, *, config, weight, dropout_key: (
    (params, examples, counts, float(weight), int(jax.random.key_data(dropout_key)[-1])), None))
  monkeypatch.setattr(train, "_time", lambda call, arguments: len(asked.setdefault(str(call), arguments)))
  assert train._time_parts(config, ["a", "b"]) == {"step": 2, "gradient": 5, "points": 2, "update": 5, "transfer": 2}
  assert [state.params for state, _ in asked["step"]] == ["p", "p"] and [b for _, b in asked["step"]] == ["a", "b"]
  assert asked["update"][0] == (("p", "examples of a", "counts of examples of a", 1.0, 0), "o", "p")
