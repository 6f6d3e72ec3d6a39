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


@pytest.mark.parametrize(("blocks_per_group", "num_streams"), [(1, 0), (4, 0), (4, 3)])  # of the three that there are
def test_an_epoch_holds_every_equation_once(shards, blocks_per_group, num_streams):
  config = _config(shards, blocks_per_group=blocks_per_group, num_streams=num_streams, batch_size=48 + 16 * (
    num_streams == 0))
  iterator, num = pipeline.make_iterator(config, seed=0), 768 // config.batch_size
  seen = np.concatenate([next(iterator).domains[:, 0, 0] for _ in range(num)])
  np.testing.assert_array_equal(np.sort(seen), np.arange(768))
  again = np.concatenate([next(iterator).domains[:, 0, 0] for _ in range(num)])
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
  source = pipeline.BlockSource([shards], "train")
  is_short = np.concatenate([(source[b].ids != 0).sum(axis=1) <= 10 for b in range(3)])
  numbers = np.concatenate([source[b].domains[:, 0, 0] for b in range(3)])
  iterator = pipeline.make_iterator(_config(shards, length_buckets=(11,)), seed=0)
  seen = {int(n) for _ in range(12) for n in next(iterator).domains[:, 0, 0]}
  assert len(seen) > 200 and seen <= set(numbers[is_short].astype(int).tolist())  # none of the others, cut short


def test_the_seed_orders_the_blocks(shards):
  def order(seed):
    iterator = pipeline.make_iterator(_config(shards), seed=seed)
    return tuple(int(next(iterator).domains[0, 0, 0]) // 256 for _ in range(12))[::4]
  orders = [order(seed) for seed in range(6)]
  assert all(set(blocks) == {0, 1, 2} for blocks in orders) and len(set(orders)) > 1
  assert order(3) == orders[3]


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


def _domains(shards, steps, process, **changes):
  iterator = pipeline.make_iterator(_config(shards, **changes), seed=0, process=process)
  return [next(iterator).domains[:, 0, 0] for _ in range(steps)]


def test_hosts_read_disjoint_parts_that_together_are_an_epoch(shards):
  hosts = [_domains(shards, 16, (h, 3), batch_size=48) for h in range(3)]
  seen = np.concatenate([np.concatenate(host) for host in hosts])
  np.testing.assert_array_equal(np.sort(seen), np.arange(768))
  assert all(len(batch) == 16 for host in hosts for batch in host)


def test_batches_depend_on_the_streams_and_not_on_the_hosts(shards):
  one = _domains(shards, 20, (0, 1), num_streams=2, batch_size=32)
  two = [_domains(shards, 20, (h, 2), num_streams=2, batch_size=32) for h in range(2)]
  for whole, *parts in zip(one, *two, strict=True):
    np.testing.assert_array_equal(whole, np.concatenate(parts))


def test_streams_resume_exactly(shards):
  config = _config(shards, num_streams=3, batch_size=48)
  iterator = pipeline.make_iterator(config, seed=1)
  for _ in range(5):
    next(iterator)
  state, expected = iterator.get_state(), next(iterator)
  resumed = pipeline.make_iterator(config, seed=1)
  resumed.set_state(state)
  np.testing.assert_array_equal(next(resumed).domains, expected.domains)


def test_equations_of_fewer_variables_are_padded_and_of_more_refused(shards):
  batch = next(pipeline.make_iterator(_config(shards), seed=0, num_variables=3))
  assert batch.domains.shape == (64, 3, 2) and not batch.domains[:, 1:].any() and batch.domains[:, 0].any()
  block = records.Block(np.full((1, 2), 8, np.uint8), np.zeros((1, 2), np.float32), np.zeros((1, 2, 2), np.float32))
  with pytest.raises(DataError, match="the data have 2 variables, the model 1"):
    pipeline.concatenate([block], 10, 1)


def test_repeats_count_a_folder_twice(shards):
  assert len(pipeline.BlockSource([shards], "train", [2])) == 6
  assert len(pipeline.BlockSource([shards, shards], "train")) == 6


def test_messages_for_unusable_data(shards, tmp_path):
  with pytest.raises(InputError, match="no training data: set config.data.dirs"):
    pipeline.make_iterator(DataConfig(), seed=0)
  with pytest.raises(DataError, match="no validation shards in"):
    pipeline.make_iterator(_config(shards), seed=0, split="validation")
  for repeats in ((1, 2), (-1,)):
    with pytest.raises(InputError, match="data.repeats: expected 1 numbers above 0, one for each folder, got "):
      pipeline.make_iterator(_config(shards, repeats=repeats), seed=0)
  with pytest.raises(InputError, match="batch_size must divide a group of 256 equations, got 100"):
    pipeline.make_iterator(_config(shards, batch_size=100), seed=0)
  with pytest.raises(InputError, match="num_streams must be a multiple of the 2 hosts, got 3"):
    pipeline.make_iterator(_config(shards, num_streams=3), seed=0, process=(0, 2))
  with pytest.raises(InputError, match="4 streams need as many blocks of equations, the data have 3"):
    pipeline.make_iterator(_config(shards, num_streams=4), seed=0)
