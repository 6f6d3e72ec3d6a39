"""Which equations a run is validated on."""

import dataclasses
import types

import jax
import numpy as np
import pytest

from configs import tiny
from symformer_jax import configuration
from symformer_jax.data import records
from symformer_jax.language import expression
from symformer_jax.language.parser import parse
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.model import symformer
from symformer_jax.training import evaluation
from symformer_jax.training.config import TrainConfig


def test_folders_without_a_validation_split_are_left_out(data_dir, tmp_path, caplog):
  shard = next(data_dir.rglob("*-train.tfrecord-*"))
  (tmp_path / shard.name).write_bytes(shard.read_bytes())
  config = TrainConfig()
  alone = dataclasses.replace(config, data=dataclasses.replace(config.data, dirs=(str(data_dir),), batch_size=64))
  both = dataclasses.replace(alone, data=dataclasses.replace(
    alone.data, dirs=(str(tmp_path), str(data_dir)), repeats=(3, 1)))
  batches = evaluation.read_validation(both, 4)
  assert len(batches) == 4
  for got, expected in zip(batches, evaluation.read_validation(alone, 4), strict=True):
    assert all(np.array_equal(a, b) for a, b in zip(got, expected, strict=True))
  [block] = records.ShardReader(next(data_dir.rglob("*-validation.tfrecord-*")))
  assert sum((batch.ids[:, 0] != 0).sum() for batch in batches) == len(block.ids)
  none = dataclasses.replace(alone, data=dataclasses.replace(alone.data, dirs=(str(tmp_path),)))
  assert evaluation.read_validation(none, 4) == [] and "has a validation split" in caplog.text


def test_the_loss_by_number_of_variables_is_that_of_each_group_alone(tmp_path):
  config = configuration.build(TrainConfig, tiny.get_config().to_dict())
  model_config = dataclasses.replace(config.model, vocabulary=Vocabulary(3))
  model = types.SimpleNamespace(config=model_config, params=symformer.init_params(model_config, jax.random.key(0)))
  groups = {1: ["sin(x)", "2.5*x", "x**2 + 1.5"], 3: ["x*y*z", "x + 0.5*y/z"]}
  folder = records.split_folder(tmp_path, "laws")
  folder.mkdir(parents=True)

  def write(rows):
    block = records.pack_equations(rows)
    records.write_shard(folder / records.shard_name("validation", 0, 1), [block])

  rows = {count: [encode(text, count) for text in texts] for count, texts in groups.items()}
  write([row for pair in zip(rows[1], rows[3], strict=False) for row in pair] + rows[1][2:])
  found = evaluation.measure_by_variables(model, [str(tmp_path)], num_equations=2, batch_size=2, num_points=8)
  assert {count: metrics["equations"] for count, metrics in found.items()} == {1: 2, 3: 2}
  for count in groups:
    write(rows[count][:2])
    alone = evaluation.measure_by_variables(model, [str(tmp_path)], num_equations=9, batch_size=2, num_points=8)
    assert list(alone) == [count]
    assert alone[count]["cross_entropy"] == pytest.approx(found[count]["cross_entropy"], rel=1e-5)
  assert found[1]["cross_entropy"] != found[3]["cross_entropy"]


def encode(text, num_variables):
  """A stored equation of the first of three variables, on [1, 2]."""
  ids, mantissas = expression.encode(parse(text, ("x", "y", "z")), Vocabulary(3))
  domain = np.zeros((3, 2), np.float32)
  domain[:num_variables] = [1, 2]
  return ids, mantissas, domain
