"""Batches: every equation of an epoch once, lengths in buckets, the same order after a resume."""

import dataclasses

import numpy as np
import pytest

from symformer_jax.data import pipeline, records
from symformer_jax.data.pipeline import DataConfig
from symformer_jax.errors import DataError, InputError


@pytest.fixture
def shards(tmp_path, rng):
  """Three blocks of 256 equations, told apart by their domains."""
  folder = tmp_path / "symformer_equations" / "univariate" / "1.0.0"
  folder.mkdir(parents=True)
  blocks = []
  for b in range(3):
    lengths = rng.integers(1, 20, 256)
    ids = np.where(np.arange(19) < lengths[:, None], 8, 0).astype(np.uint8)
    ids[np.arange(256), lengths - 1] = 53
    number = np.arange(256) + 256 * b
    domains = np.stack([number, number + 1.0], axis=-1)[:, None].astype(np.float32)
    blocks.append(records.Block(ids, np.zeros(ids.shape, np.float32), domains))
  records.write_shard(folder / "symformer_equations-train.tfrecord-00000-of-00002", blocks[:2])
  records.write_shard(folder / "symformer_equations-train.tfrecord-00001-of-00002", blocks[2:])
  return str(tmp_path)


def _config(shards, **changes):
  return dataclasses.replace(
    DataConfig(dirs=(shards,), batch_size=64, blocks_per_group=1, length_buckets=(8, 14, 20)), **changes)


def test_an_epoch_holds_every_equation_once(shards):
  iterator = pipeline.make_iterator(_config(shards), seed=0)
  seen = np.concatenate([next(iterator).domains[:, 0, 0] for _ in range(12)])
  np.testing.assert_array_equal(np.sort(seen), np.arange(768))
  again = np.concatenate([next(iterator).domains[:, 0, 0] for _ in range(12)])
  np.testing.assert_array_equal(np.sort(again), np.arange(768))
  assert not np.array_equal(seen, again)


def test_batches_are_padded_to_the_smallest_bucket(shards):
  iterator = pipeline.make_iterator(_config(shards, blocks_per_group=2), seed=0)
  widths = []
  for _ in range(8):
    batch = next(iterator)
    longest = (batch.ids != 0).sum(axis=1).max()
    assert batch.ids.shape[1] == min(w - 1 for w in (8, 14, 20) if w - 1 >= longest)
    widths.append(batch.ids.shape[1])
  assert set(widths) == {7, 13, 19}


def test_too_long_expressions_are_left_out(shards):
  iterator = pipeline.make_iterator(_config(shards, length_buckets=(11,)), seed=0)
  for _ in range(10):
    assert ((next(iterator).ids != 0).sum(axis=1) <= 10).all()


def test_resumed_equals_uninterrupted(shards):
  iterator = pipeline.make_iterator(_config(shards), seed=3)
  for _ in range(7):
    next(iterator)
  state = iterator.get_state()
  expected = [next(iterator) for _ in range(9)]
  resumed = pipeline.make_iterator(_config(shards), seed=3)
  resumed.set_state(state)
  for batch in expected:
    for a, b in zip(batch, next(resumed), strict=True):
      np.testing.assert_array_equal(a, b)


def test_repeats_count_a_folder_twice(shards):
  assert len(pipeline.BlockSource([shards], "train", [2])) == 6
  assert len(pipeline.BlockSource([shards, shards], "train")) == 6


def test_messages_for_unusable_data(shards, tmp_path):
  with pytest.raises(InputError, match="no training data: set config.data.dirs"):
    pipeline.make_iterator(DataConfig(), seed=0)
  with pytest.raises(DataError, match="no validation shards in"):
    pipeline.make_iterator(_config(shards), seed=0, split="validation")
  with pytest.raises(InputError, match="batch_size must divide a group of 256 equations, got 100"):
    pipeline.make_iterator(_config(shards, batch_size=100), seed=0)
