"""Parts of the input pipeline by hand: blocks of folders, groups cut into batches, parts of a batch joined."""

import numpy as np
import pytest

from symformer_jax.data import pipeline, records
from symformer_jax.data.pipeline import Batch, DataConfig
from symformer_jax.errors import DataError, InputError


def block(lengths, num_variables=1, width=None, first=0):
  """Equations of these lengths, told apart by their domains."""
  lengths = np.asarray(lengths)
  ids = np.where(np.arange(width or max(lengths)) < lengths[:, None], 8, 0).astype(np.uint8)
  domains = np.zeros((len(lengths), num_variables, 2), np.float32)
  domains[:, 0, 0] = first + np.arange(len(lengths))
  return records.Block(ids, ids / np.float32(2), domains)


def numbers(batch):
  return batch.domains[:, 0, 0].astype(int).tolist()


def test_a_batch_is_widened_on_the_right():
  batch = Batch(np.ones((2, 3), np.int32), np.ones((2, 3), np.float32), np.zeros((2, 1, 2)))
  wide = batch.widened(5)
  assert wide.ids.tolist() == wide.mantissas.tolist() == [[1, 1, 1, 0, 0]] * 2 and wide.domains is batch.domains
  np.testing.assert_array_equal(batch.widened(3).ids, batch.ids)


def test_blocks_are_numbered_through_shards_and_folders(monkeypatch):
  monkeypatch.setattr(records, "find_shards", lambda directory, split: [f"{directory}{split}{i}" for i in (0, 1)])
  monkeypatch.setattr(records, "ShardReader", lambda path: [f"{path}-{i}" for i in range(2 if "0" in path else 3)])
  source = pipeline.BlockSource(["a", "b"], "T", [1, 2])
  of_a, of_b = (["%sT0-0", "%sT0-1", "%sT1-0", "%sT1-1", "%sT1-2"] for _ in "ab")
  assert [source[i] for i in range(len(source))] == [t % "a" for t in of_a] + [t % "b" for t in of_b] * 2
  assert len(pipeline.BlockSource(["a", "b"], "T")) == 10


def test_joined_blocks_are_padded_and_long_equations_left_out():
  first, second = block([2, 5, 4]), block([3, 1], num_variables=2, first=10)
  joined = pipeline.concatenate([first, second], 4, 3)
  assert joined.ids.shape == joined.constants.shape == (4, 4) and joined.domains.shape == (4, 3, 2)
  assert joined.domains[:, 0, 0].tolist() == [0, 2, 10, 11] and joined.lengths.tolist() == [2, 4, 3, 1]
  np.testing.assert_array_equal(joined.constants, joined.ids / 2)
  assert pipeline.concatenate([block([2])], 7, 1).ids.shape == (1, 7)
  assert pipeline.concatenate([second], 4, 2).domains.shape == (2, 2, 2)
  with pytest.raises(DataError, match="the data have 2 variables, the model 1"):
    pipeline.concatenate([first, second], 4, 1)


CONFIG = DataConfig(length_buckets=(4, 6, 9))


def cut(lengths, batch_size, rows=(0,), batches=(0,)):
  return pipeline.cut_into_batches(
    block(lengths, width=8), CONFIG, batch_size, pipeline._Seeds(rows=list(rows), batches=list(batches)))


def test_batches_are_of_equations_of_like_lengths_in_the_smallest_bucket():
  lengths = [8, 1, 5, 3, 4, 2, 7, 6, 3, 1, 5, 5]
  found = cut(lengths, 4)
  assert sorted(n for batch in found for n in numbers(batch)) == list(range(12))
  by_length = sorted(found, key=lambda batch: batch.ids.shape[1])
  assert [batch.ids.shape for batch in by_length] == [(4, 3), (4, 5), (4, 8)]
  assert [sorted(lengths[n] for n in numbers(batch)) for batch in by_length] == [
    [1, 1, 2, 3], [3, 4, 5, 5], [5, 6, 7, 8]]
  for batch in found:
    assert batch.ids.dtype == np.int32 and batch.mantissas.shape == batch.ids.shape
    assert (batch.ids != 0).sum(axis=1).tolist() == [lengths[n] for n in numbers(batch)]


@pytest.mark.parametrize(("num", "num_batches"), [(1, 1), (4, 1), (5, 1), (7, 2), (8, 2), (11, 3), (13, 3)])
def test_batches_are_filled_from_the_beginning_of_their_group(num, num_batches):
  found = cut([1 + i % 3 for i in range(num)], 4)
  assert len(found) == num_batches and all(len(batch.ids) == 4 for batch in found)
  seen = {n for batch in found for n in numbers(batch)}
  assert len(seen) == min(num, 4 * num_batches)


def test_the_order_of_rows_and_batches_has_seeds_of_their_own():
  lengths = [3] * 16 + [5] * 16
  first = cut(lengths, 4)
  assert [numbers(b) for b in first] == [numbers(b) for b in cut(lengths, 4)]
  rows, batches = cut(lengths, 4, rows=(1,)), cut(lengths, 4, batches=(1,))
  assert sorted(map(numbers, batches)) == sorted(map(numbers, first)) != sorted(map(numbers, rows))
  assert [b.ids.shape for b in rows] == [b.ids.shape for b in first] != [b.ids.shape for b in batches]


def test_without_an_equation_that_fits_there_is_no_batch():
  with pytest.raises(DataError, match="no expression fits the longest bucket, 8 tokens"):
    pipeline.cut_into_batches(pipeline.concatenate([block([9])], 8, 1), CONFIG, 4, pipeline._Seeds([0], [0]))


def test_a_group_is_seeded_by_its_blocks_and_its_number(monkeypatch):
  seen = []
  monkeypatch.setattr(pipeline, "cut_into_batches", lambda *args: seen.append(args) or ["batch"])
  config = DataConfig(length_buckets=(4, 6, 9), blocks_per_group=3)
  cutter = pipeline._CutGroups(config, 7, 64, 2)
  assert cutter.max_fan_out == 3 * 256 // 64 + 1
  assert cutter.flat_map((5, [9, 4], [block([2, 9]), block([8])])) == ["batch"]
  [(group, given, batch_size, seeds)] = seen
  assert seeds == ([7, 9, 4], [7, 5]) and (given, batch_size) == (config, 64)
  assert group.ids.shape == (2, 8) and group.domains.shape == (2, 2, 2)


def test_parts_of_a_batch_are_joined_at_the_width_of_the_longest():
  short, long = (Batch(np.full((2, n), n), np.full((2, n), n / 2), np.full((2, 1, 2), n)) for n in (2, 3))
  joined = pipeline._join([short, long])
  assert joined.ids.tolist() == [[2, 2, 0]] * 2 + [[3, 3, 3]] * 2 and joined.mantissas.shape == (4, 3)
  assert joined.domains[:, 0, 0].tolist() == [2, 2, 3, 3]


def test_by_default_a_batch_is_a_block_sorted_with_three_others():
  config = DataConfig()
  assert config.batch_size == records.BLOCK_EQUATIONS and config.blocks_per_group == 4
  assert config.length_buckets == (51,)  # of SymFormer, sec. 3.3: fifty tokens at most, and the start
  assert (config.dirs, config.repeats, config.num_streams) == ((), (), 0)


class Source:
  def __init__(self, *args):
    Source.given = args

  def __len__(self):
    return 3


@pytest.mark.parametrize(("changes", "process", "message"), [
  ({"batch_size": 96}, (0, 1), "must divide a group of 512 equations, got 96$"),
  ({"batch_size": 96, "num_streams": 2}, (0, 2), "must divide a group of 512 equations, got 96 in 2 streams"),
  ({"batch_size": 63, "num_streams": 2}, (0, 1), "must divide a group of 512 equations, got 63 in 2 streams"),
  ({"num_streams": 4}, (0, 2), "4 streams need as many blocks of equations, the data have 3"),
  ({"num_streams": 3}, (0, 2), "must be a multiple of the 2 hosts, got 3"), ({}, (0, 4), "4 streams need as many")])
def test_sizes_that_do_not_divide_each_other_are_refused(monkeypatch, changes, process, message):
  monkeypatch.setattr(pipeline, "BlockSource", Source)
  with pytest.raises(InputError, match=message):
    pipeline.make_iterator(DataConfig(**{"blocks_per_group": 2, "batch_size": 64, **changes}), 0, process=process)


@pytest.mark.parametrize(("num_streams", "process", "own"), [
  (0, (0, 1), [0]), (0, (1, 3), [1]), (2, (0, 1), [0, 1]), (2, (1, 2), [1]), (3, (0, 1), [0, 1, 2]), (3, (2, 3), [2])])
def test_each_host_has_its_own_streams(monkeypatch, num_streams, process, own):
  made = []
  monkeypatch.setattr(pipeline, "BlockSource", Source)
  monkeypatch.setattr(pipeline, "_stream", lambda *args: made.append(args) or args[3])

  class Joined(list):
    def map(self, function):
      return [function, *self]

  monkeypatch.setattr(pipeline.grain.experimental, "ZipIterDataset", Joined)
  monkeypatch.setattr(pipeline.grain.experimental, "ThreadPrefetchIterDataset", lambda parts, **options: parts)
  config = DataConfig(dirs=("a",), batch_size=192, num_streams=num_streams, blocks_per_group=3, repeats=(2,))
  found = list(pipeline.make_iterator(config, 5, num_variables=2, process=process))
  assert found == [pipeline._join, *own] and Source.given == (("a",), "train", (2,))
  total = num_streams or process[1]
  assert [args[1:] for args in made] == [(config, 5, i, total, 2) for i in own]
  made.clear()
  alone = DataConfig(dirs=("a",))
  assert list(pipeline.make_iterator(alone, 6)) == [pipeline._join, 0] and made[0][1:] == (alone, 6, 0, 1, 1)
