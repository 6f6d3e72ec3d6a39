"""From shards to batches: blocks shuffled anew every epoch, grouped, sorted by length and cut into batches.

Sorting a few blocks by length before cutting them lets short formulas train at short sequence lengths, which
saves about half of the decoder's work; batches come out in random order. Several hosts read disjoint streams of
blocks, cut alike, so that their batches of a step are about equally long. The iterator is grain's: its state is
saved beside the model and resumes exactly.
"""

from collections.abc import Sequence
import dataclasses
from typing import Any, NamedTuple

import grain.python as grain
import numpy as np

from symformer_jax.data import records
from symformer_jax.errors import DataError, InputError
from symformer_jax.types import Array


@dataclasses.dataclass(frozen=True)
class DataConfig:
  """Where training data come from.

  Attributes:
    dirs: folders written by data_gen.generate.
    batch_size: B, a divisor of 256 * blocks_per_group.
    blocks_per_group: blocks sorted together by length; 1 switches sorting off when one bucket is given.
    length_buckets: sequence lengths L (with start token) that batches are padded to; the last bounds what is used.
    repeats: times each folder counts in an epoch (default once each).
    num_streams: disjoint streams of blocks that a batch is put together from, a multiple of the number of hosts; the
      batches depend on it and not on the hosts. 0: as many as hosts.
  """

  dirs: tuple[str, ...] = ()
  batch_size: int = 256
  blocks_per_group: int = 4
  length_buckets: tuple[int, ...] = (51,)
  repeats: tuple[int, ...] = ()
  num_streams: int = 0


class Batch(NamedTuple):
  """A batch as the train step takes it.

  Attributes:
    ids: prefix expressions without start and end, padded [B, L - 1].
    mantissas: c_m at C tokens [B, L - 1].
    domains: [B, D, 2]; variables that an equation does not have lie in [0, 0].
  """

  ids: Array
  mantissas: Array
  domains: Array

  def widened(self, width: int) -> "Batch":
    """The same equations, padded to `width` tokens."""
    extra = ((0, 0), (0, width - self.ids.shape[1]))
    return self._replace(ids=np.pad(self.ids, extra), mantissas=np.pad(self.mantissas, extra))


class BlockSource:
  """Random access to the blocks of several folders, by block number."""

  def __init__(self, dirs: Sequence[str], split: str, repeats: Sequence[int] = ()):
    if not dirs:
      raise InputError("no training data: set config.data.dirs to folders written by data_gen.generate")
    if repeats and (len(repeats) != len(dirs) or min(repeats) < 1):
      raise InputError(f"data.repeats: expected {len(dirs)} numbers above 0, one for each folder, got {repeats!r}")
    self._readers = []
    for directory, count in zip(dirs, repeats or [1] * len(dirs), strict=True):
      readers = [records.ShardReader(path) for path in records.find_shards(directory, split)]
      self._readers += readers * count
    self._ends = np.cumsum([len(reader) for reader in self._readers])

  def __len__(self) -> int:
    return int(self._ends[-1])

  def __getitem__(self, index: Any) -> records.Block:
    reader = int(np.searchsorted(self._ends, index, side="right"))
    start = self._ends[reader - 1] if reader else 0
    return self._readers[reader][int(index - start)]


def concatenate(blocks: Sequence[records.Block], max_length: int, num_variables: int) -> records.Block:
  """Joins blocks, padding to common lengths and variables; expressions of more than `max_length` tokens are left out.

  Raises:
    DataError: when there are equations of more than `num_variables` variables.
  """
  width = max(max_length, *(block.ids.shape[1] for block in blocks))
  most = max(block.domains.shape[1] for block in blocks)
  if most > num_variables:
    raise DataError(f"the data have {most} variables, the model {num_variables}: raise "
                    "config.model.vocabulary.num_variables or leave those folders out")

  def pad(array: np.ndarray, size: int) -> np.ndarray:
    return np.pad(array, ((0, 0), (0, size - array.shape[1]), *[(0, 0)] * (array.ndim - 2)))

  ids = np.concatenate([pad(block.ids, width) for block in blocks])
  constants = np.concatenate([pad(block.constants, width) for block in blocks])
  domains = np.concatenate([pad(block.domains, num_variables) for block in blocks])
  keep = (ids != 0).sum(axis=1) <= max_length
  return records.Block(ids[keep, :max_length], constants[keep, :max_length], domains[keep])


def cut_into_batches(group: records.Block, config: DataConfig, batch_size: int, seeds: "_Seeds") -> list[Batch]:
  """Batches of one group: sorted by length, each padded to the smallest bucket that holds it, in random order.

  Equations left over when the group is no multiple of the batch size fill up from its own beginning.
  """
  lengths = (group.ids != 0).sum(axis=1)
  if not len(lengths):
    raise DataError(f"no expression fits the longest bucket, {config.length_buckets[-1] - 1} tokens")
  order = np.lexsort((np.random.default_rng(seeds.rows).random(len(lengths)), lengths))
  num_batches = max(1, round(len(order) / batch_size))
  order = np.resize(order, num_batches * batch_size)
  order = order[np.argsort(lengths[order], kind="stable")]
  batches = []
  for rows in np.split(order, num_batches):
    width = next(bucket for bucket in config.length_buckets if bucket - 1 >= lengths[rows].max()) - 1
    batches.append(Batch(group.ids[rows, :width].astype(np.int32), group.constants[rows, :width], group.domains[rows]))
  return [batches[i] for i in np.random.default_rng(seeds.batches).permutation(num_batches)]


class _Seeds(NamedTuple):
  """Randomness of a group, from which blocks it holds and not from when it is visited: resumable as it is.

  Attributes:
    rows: of the order among equally long equations.
    batches: of the order of its batches; the same in all streams, whose batches then go together by length.
  """

  rows: list[int]
  batches: list[int]


class _CutGroups(grain.experimental.FlatMapTransform):
  """(number of the group, numbers of its blocks, the blocks) -> its batches."""

  def __init__(self, config: DataConfig, seed: int, batch_size: int, num_variables: int):
    self.max_fan_out = records.BLOCK_EQUATIONS * config.blocks_per_group // batch_size + 1
    self._config, self._seed, self._batch_size, self._num_variables = config, seed, batch_size, num_variables

  def flat_map(self, element: Any) -> list[Batch]:
    index, numbers, blocks = element
    group = concatenate(blocks, self._config.length_buckets[-1] - 1, self._num_variables)
    seeds = _Seeds(rows=[self._seed, *(int(n) for n in numbers)], batches=[self._seed, int(index)])
    return cut_into_batches(group, self._config, self._batch_size, seeds)


def _join(batches: Sequence[Batch]) -> Batch:
  """The parts of a batch, one of each stream, as one."""
  width = max(batch.ids.shape[1] for batch in batches)
  return Batch(*(np.concatenate(parts) for parts in zip(*(b.widened(width) for b in batches), strict=True)))


def _stream(
  source: BlockSource, config: DataConfig, seed: int, index: int, num_streams: int, num_variables: int
) -> Any:
  """Stream `index`: every `num_streams`-th block of each epoch's order, in batches."""
  batch_size = config.batch_size // num_streams
  numbers = grain.MapDataset.range(len(source)).seed(seed).shuffle()[index::num_streams].repeat(None)
  groups = numbers.batch(min(config.blocks_per_group, len(source) // num_streams), drop_remainder=True)
  groups = groups.map_with_index(lambda i, chosen: (i, chosen, [source[n] for n in chosen]))
  stream = groups.to_iter_dataset(grain.ReadOptions(num_threads=1, prefetch_buffer_size=2))
  return grain.experimental.FlatMapIterDataset(stream, _CutGroups(config, seed, batch_size, num_variables))


def make_iterator(
  config: DataConfig, seed: int, *, num_variables: int = 1, split: str = "train", process: tuple[int, int] = (0, 1)
) -> grain.DatasetIterator:
  """An endless iterator over batches, reshuffled every epoch, with `get_state` and `set_state`.

  Args:
    num_variables: D of the model; equations of fewer variables are padded.
    process: which of how many hosts this is; it gets its rows of each batch, from its own streams.
  Raises:
    InputError: for sizes that do not divide each other; DataError: for missing or unusable shards.
  """
  source = BlockSource(config.dirs, split, config.repeats)
  index, count = process
  num_streams = config.num_streams or count
  if num_streams % count:
    raise InputError(f"data.num_streams must be a multiple of the {count} hosts, got {num_streams}")
  if len(source) < num_streams:
    raise InputError(f"{num_streams} streams need as many blocks of equations, the data have {len(source)}")
  group = records.BLOCK_EQUATIONS * config.blocks_per_group
  if config.batch_size % num_streams or group % (config.batch_size // num_streams):
    raise InputError(
      f"batch_size must divide a group of {group} equations, got {config.batch_size}"
      + (f" in {num_streams} streams" if num_streams > 1 else ""))
  own = range(index * num_streams // count, (index + 1) * num_streams // count)
  streams = [_stream(source, config, seed, i, num_streams, num_variables) for i in own]
  joined = grain.experimental.ZipIterDataset(streams).map(_join)
  return iter(grain.experimental.ThreadPrefetchIterDataset(joined, prefetch_buffer_size=2))
