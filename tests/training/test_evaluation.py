"""Which equations a run is validated on."""

import dataclasses

import numpy as np

from symformer_jax.data import records
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
