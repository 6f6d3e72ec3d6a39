"""From shards to batches: blocks shuffled anew every epoch, grouped, sorted by length and cut into batches.

Sorting a few blocks by length before cutting them lets short formulas train at short sequence lengths, which
saves about half of the decoder's work; batches come out in random order. The iterator is grain's: its state is
saved beside the model and resumes exactly.
"""

from collections.abc import Sequence
import dataclasses
from typing import NamedTuple

import grain.python as grain
import numpy as np

from symformer_jax.data import records
from symformer_jax.errors import DataError, InputError


@dataclasses.dataclass(frozen=True)
class DataConfig:
  """Where training data come from.

  Attributes:
    dirs: folders written by data_gen.generate.
    batch_size: B, a divisor of 256 * blocks_per_group.
    blocks_per_group: blocks sorted together by length; 1 switches sorting off when one bucket is given.
    length_buckets: sequence lengths L (with start token) that batches are padded to; the last bounds what is used.
    repeats: times each folder counts in an epoch (default once each).
  """

  dirs: tuple[str, ...] = ()
  batch_size: int = 256
  blocks_per_group: int = 4
  length_buckets: tuple[int, ...] = (51,)
  repeats: tuple[int, ...] = ()


class Batch(NamedTuple):
  """A batch as the train step takes it.

  Attributes:
    ids: prefix expressions without start and end, padded [B, L - 1].
    mantissas: c_m at C tokens [B, L - 1].
    domains: [B, D, 2].
  """

  ids: np.ndarray
  mantissas: np.ndarray
  domains: np.ndarray


class BlockSource:
  """Random access to the blocks of several folders, by block number."""

  def __init__(self, dirs: Sequence[str], split: str, repeats: Sequence[int] = ()):
    if not dirs:
      raise InputError("no training data: set config.data.dirs to folders written by data_gen.generate")
    self._readers = []
    for directory, count in zip(dirs, repeats or [1] * len(dirs), strict=True):
      readers = [records.ShardReader(path) for path in records.find_shards(directory, split)]
      self._readers += readers * count
    self._ends = np.cumsum([len(reader) for reader in self._readers])

  def __len__(self) -> int:
    return int(self._ends[-1])

  def __getitem__(self, index) -> records.Block:
    reader = int(np.searchsorted(self._ends, index, side="right"))
    start = self._ends[reader - 1] if reader else 0
    return self._readers[reader][int(index - start)]


def concatenate(blocks: Sequence[records.Block], max_length: int) -> records.Block:
  """Joins blocks, padding to a common length and leaving out expressions longer than `max_length` tokens."""
  width = max(max_length, *(block.ids.shape[1] for block in blocks))

  def pad(array):
    return np.pad(array, ((0, 0), (0, width - array.shape[1])))

  ids = np.concatenate([pad(block.ids) for block in blocks])
  constants = np.concatenate([pad(block.constants) for block in blocks])
  domains = np.concatenate([block.domains for block in blocks])
  keep = (ids != 0).sum(axis=1) <= max_length
  return records.Block(ids[keep, :max_length], constants[keep, :max_length], domains[keep])


def cut_into_batches(blocks: Sequence[records.Block], config: DataConfig, rng: np.random.Generator) -> list[Batch]:
  """Batches of one group: sorted by length, each padded to the smallest bucket that holds it, in random order.

  Equations left over when the group is no multiple of the batch size fill up from its own beginning.
  """
  group = concatenate(blocks, config.length_buckets[-1] - 1)
  lengths = (group.ids != 0).sum(axis=1)
  if not len(lengths):
    raise DataError(f"no expression fits the longest bucket, {config.length_buckets[-1] - 1} tokens")
  order = np.lexsort((rng.random(len(lengths)), lengths))
  num_batches = max(1, round(len(order) / config.batch_size))
  order = np.resize(order, num_batches * config.batch_size)
  order = order[np.argsort(lengths[order], kind="stable")]
  batches = []
  for rows in np.split(order, num_batches):
    width = next(bucket for bucket in config.length_buckets if bucket - 1 >= lengths[rows].max()) - 1
    batches.append(Batch(group.ids[rows, :width].astype(np.int32), group.constants[rows, :width], group.domains[rows]))
  return [batches[i] for i in rng.permutation(num_batches)]


class _CutGroups(grain.experimental.FlatMapTransform):
  """Group of blocks -> its batches."""

  def __init__(self, config: DataConfig, seed: int):
    self.max_fan_out = 256 * config.blocks_per_group // config.batch_size + 1
    self._config, self._seed = config, seed

  def flat_map(self, element):
    numbers, blocks = element
    # The order inside a group depends on which blocks it holds, not on when it is visited: resumable as it is.
    rng = np.random.default_rng([self._seed, *(int(n) for n in numbers)])
    return cut_into_batches(blocks, self._config, rng)


def make_iterator(config: DataConfig, seed: int, *, split: str = "train") -> grain.DatasetIterator:
  """An endless iterator over batches, reshuffled every epoch, with `get_state` and `set_state`."""
  source = BlockSource(config.dirs, split, config.repeats)
  if 256 * config.blocks_per_group % config.batch_size:
    raise InputError(
      f"batch_size must divide a group of {256 * config.blocks_per_group} equations, got {config.batch_size}")
  dataset = grain.MapDataset.range(len(source)).seed(seed).shuffle().repeat(None)
  dataset = dataset.batch(min(config.blocks_per_group, len(source)), drop_remainder=True)
  dataset = dataset.map(lambda numbers: (numbers, [source[n] for n in numbers]))
  options = grain.ReadOptions(num_threads=1, prefetch_buffer_size=2)
  stream = dataset.to_iter_dataset(options)
  return iter(grain.experimental.FlatMapIterDataset(stream, _CutGroups(config, seed)))
