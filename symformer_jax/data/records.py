"""Equations on disk: the only file that knows bytes.

A shard is a TFRecord file; each record is one `tf.train.Example` holding a block of up to 256 equations as packed
columns, little endian:

  num_variables  int64   D
  lengths        bytes   uint8 [E], tokens of each equation
  ids            bytes   uint8, all token ids one after the other (extended encoding, without start and end)
  constants      bytes   float32, the mantissas of the C tokens alone, in reading order
  domains        bytes   float32 [E, D, 2], lower and upper end of the box of each equation

Shards lie as TensorFlow Datasets has them: `DIR/symformer_equations/univariate/1.0.0/`, so that it can read them.
A run writes the validation split first, then training shards in order, each whole or not at all (temporary name,
fsync, rename): an unfinished run is read by opening the shards that exist, which `find_shards` lists.
"""

from collections.abc import Iterable, Sequence, Set
import dataclasses
import functools
import json
import mmap
import os
from pathlib import Path
import re
import struct
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
import google_crc32c
import numpy as np

from symformer_jax import files
from symformer_jax.errors import DataError
from symformer_jax.language.vocabulary import PAD_ID, Vocabulary

DATASET, VERSION = "symformer_equations", "1.0.0"
MANIFEST = "manifest.json"
SPLITS = ("train", "validation")
BLOCK_EQUATIONS = 256  # measured: large enough that parsing a record costs microseconds per equation

_SHARD_NAME = re.compile(rf"{DATASET}-(?P<split>\w+)\.tfrecord-(?P<index>\d{{5}})-of-(?P<count>\d{{5}})")


@dataclasses.dataclass(frozen=True)
class Block:
  """Some equations as padded arrays.

  Attributes:
    ids: tokens [E, L], uint8, prefix order, extended encoding, without start and end, padded with 0.
    constants: c_m at C tokens, 0 elsewhere [E, L], float32.
    domains: lower and upper end per variable [E, D, 2], float32, in the formula's units.
  """

  ids: np.ndarray
  constants: np.ndarray
  domains: np.ndarray

  def __len__(self) -> int:
    return len(self.ids)

  @property
  def lengths(self) -> np.ndarray:
    """Tokens of each equation [E]."""
    return (self.ids != PAD_ID).sum(axis=1)


def pack_equations(
  equations: Sequence[tuple[Sequence[int] | np.ndarray, Sequence[float] | np.ndarray, np.ndarray]]
) -> Block:
  """Pads `(ids [l], constants [l], domain [D, 2])` of several equations to one block."""
  longest = max(len(ids) for ids, _, _ in equations)
  ids = np.zeros((len(equations), longest), np.uint8)
  constants = np.zeros((len(equations), longest), np.float32)
  for row, (tokens, values, _) in enumerate(equations):
    ids[row, : len(tokens)] = tokens
    constants[row, : len(tokens)] = values
  return Block(ids, constants, np.asarray([domain for _, _, domain in equations], np.float32))


# --- one block <-> one tf.train.Example ----------------------------------------------------------------------------


@functools.cache
def _example_class() -> Any:
  """tf.train.Example, built at run time in a private pool: it must not clash with TensorFlow's own in one process."""
  file = descriptor_pb2.FileDescriptorProto(name="symformer_example.proto", package="tensorflow", syntax="proto3")
  scalar = descriptor_pb2.FieldDescriptorProto
  lists = (("BytesList", scalar.TYPE_BYTES), ("FloatList", scalar.TYPE_FLOAT), ("Int64List", scalar.TYPE_INT64))
  for name, kind in lists:
    file.message_type.add(name=name).field.add(name="value", number=1, type=kind, label=scalar.LABEL_REPEATED)
  feature = file.message_type.add(name="Feature")
  feature.oneof_decl.add(name="kind")
  for number, (name, kind) in enumerate(zip(("bytes_list", "float_list", "int64_list"), lists, strict=True), start=1):
    feature.field.add(name=name, number=number, type=scalar.TYPE_MESSAGE, type_name=f".tensorflow.{kind[0]}",
                      label=scalar.LABEL_OPTIONAL, oneof_index=0)
  features = file.message_type.add(name="Features")
  entry = features.nested_type.add(name="FeatureEntry")
  entry.options.map_entry = True
  entry.field.add(name="key", number=1, type=scalar.TYPE_STRING, label=scalar.LABEL_OPTIONAL)
  entry.field.add(name="value", number=2, type=scalar.TYPE_MESSAGE, type_name=".tensorflow.Feature",
                  label=scalar.LABEL_OPTIONAL)
  features.field.add(name="feature", number=1, type=scalar.TYPE_MESSAGE, label=scalar.LABEL_REPEATED,
                     type_name=".tensorflow.Features.FeatureEntry")
  file.message_type.add(name="Example").field.add(
    name="features", number=1, type=scalar.TYPE_MESSAGE, type_name=".tensorflow.Features", label=scalar.LABEL_OPTIONAL
  )
  pool = descriptor_pool.DescriptorPool()
  pool.Add(file)
  return message_factory.GetMessageClass(pool.FindMessageTypeByName("tensorflow.Example"))


@functools.cache
def _constant_ids() -> np.ndarray:
  """Which ids carry a mantissa [256]: the same for any number of variables, which come last in the vocabulary."""
  vocab = Vocabulary()
  is_constant = np.zeros(256, bool)
  is_constant[: vocab.size] = vocab.is_constant
  return is_constant


def _encode(block: Block) -> bytes:
  is_token = block.ids != PAD_ID  # [E, L]
  example = _example_class()()
  feature = example.features.feature
  feature["num_variables"].int64_list.value.append(block.domains.shape[1])
  columns = {
    "lengths": block.lengths.astype("u1"),
    "ids": block.ids[is_token].astype("u1"),
    "constants": block.constants[is_token & _constant_ids()[block.ids]].astype("<f4"),
    "domains": block.domains.astype("<f4"),
  }
  for name, values in columns.items():
    feature[name].bytes_list.value.append(values.tobytes())
  return example.SerializeToString(deterministic=True)


def _decode(data: bytes) -> Block:
  feature = _example_class().FromString(data).features.feature
  num_variables = feature["num_variables"].int64_list.value[0]
  def column(name: str, dtype: str) -> np.ndarray:
    return np.frombuffer(feature[name].bytes_list.value[0], dtype)
  lengths = column("lengths", "u1")
  is_token = np.arange(lengths.max(initial=0)) < lengths[:, None]  # [E, L]
  ids = np.zeros(is_token.shape, np.uint8)
  ids[is_token] = column("ids", "u1")
  constants = np.zeros(is_token.shape, np.float32)
  constants[_constant_ids()[ids]] = column("constants", "<f4")
  domains = column("domains", "<f4").astype(np.float32).reshape(len(lengths), num_variables, 2)
  return Block(ids, constants, domains)


# --- TFRecord framing ----------------------------------------------------------------------------------------------

_HEADER = struct.Struct("<QI")  # length of the payload, its masked crc
_FOOTER = struct.Struct("<I")


def _masked_crc(data: bytes) -> int:
  """TFRecord's checksum: crc32c rotated by 15 bits plus a constant (tensorflow/core/lib/hash/crc32c.h)."""
  crc = google_crc32c.value(data)
  return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _frame(data: bytes) -> bytes:
  length = struct.pack("<Q", len(data))
  return length + _FOOTER.pack(_masked_crc(length)) + data + _FOOTER.pack(_masked_crc(data))


def write_atomically(path: os.PathLike | str, data: bytes) -> None:
  """Writes a file whole or not at all: temporary name, fsync, rename, fsync of the folder.

  Raises:
    OSError: full disk, unwritable folder; nothing half-written stays behind.
  """
  path = Path(path)
  with files.replacing(path) as temporary, open(temporary, "wb") as file:
    file.write(data)
    file.flush()
    os.fsync(file.fileno())
  folder = os.open(path.parent, os.O_RDONLY)
  try:
    os.fsync(folder)
  finally:
    os.close(folder)


def write_shard(path: os.PathLike | str, blocks: Iterable[Block]) -> bytes:
  """Writes blocks as one TFRecord file, atomically; returns the bytes written (for their sha256).

  Raises:
    OSError: see `write_atomically`.
  """
  data = b"".join(_frame(_encode(block)) for block in blocks)
  write_atomically(path, data)
  return data


class ShardReader:
  """Random access to the blocks of one shard: `len(reader)`, `reader[i]`.

  The file is mapped, not read; lengths are checked when it is opened, a block's checksum whenever it is read.
  Readers can be pickled (grain's workers do): the copy opens the file again.
  """

  def __init__(self, path: os.PathLike | str):
    self.path = Path(path)
    try:
      files.check_regular(self.path)
      with open(self.path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        # An empty file cannot be mapped.
        self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    except OSError as error:
      raise DataError(f"cannot read shard {self.path}: {error.strerror}") from None
    self._spans = self._index()

  def _index(self) -> list[tuple[int, int]]:
    """Start and end of every payload, from the checked lengths."""
    spans: list[tuple[int, int]] = []
    position, size = 0, len(self._data)
    while position < size:
      if position + _HEADER.size > size:
        raise self._damaged(len(spans), "the file ends inside a record")
      length, crc = _HEADER.unpack_from(self._data, position)
      if _masked_crc(self._data[position : position + 8]) != crc:
        raise self._damaged(len(spans), "checksum of its length is wrong")
      start = position + _HEADER.size
      if start + length + _FOOTER.size > size:
        raise self._damaged(len(spans), "the file ends inside a record")
      spans.append((start, start + length))
      position = start + length + _FOOTER.size
    return spans

  def _damaged(self, index: int, reason: str) -> DataError:
    return DataError(f"shard {self.path} is damaged at block {index}: {reason}")

  def __len__(self) -> int:
    return len(self._spans)

  def payload(self, index: int) -> bytes:
    """The serialized `tf.train.Example` of block `index`. Raises DataError when its checksum is wrong."""
    start, end = self._spans[index]
    data = self._data[start:end]
    if _masked_crc(data) != _FOOTER.unpack_from(self._data, end)[0]:
      raise self._damaged(index, "checksum of its content is wrong")
    return data

  def __getitem__(self, index: int) -> Block:
    """Block `index`. Raises DataError when its checksum is wrong or it is no block of equations."""
    data = self.payload(index)
    try:
      return _decode(data)
    except Exception as error:  # any other TFRecord file parses as some Example or none: foreign, not a bug
      raise self._damaged(index, f"it holds no block of equations ({type(error).__name__})") from None

  def __reduce__(self) -> tuple[Any, ...]:
    return ShardReader, (self.path,)


# --- where shards lie ----------------------------------------------------------------------------------------------


def split_folder(directory: os.PathLike | str, name: str) -> Path:
  """Folder of the shards of the configuration `name` (univariate, bivariate, ...)."""
  return Path(directory) / DATASET / name / VERSION


def shard_name(split: str, index: int, count: int) -> str:
  return f"{DATASET}-{split}.tfrecord-{index:05d}-of-{count:05d}"


def hashes_name(shard: str) -> str:
  """The file beside a shard that tells which functions and skeletons it holds (see data_gen.writer)."""
  return shard.replace(".tfrecord-", ".hashes-")


def find_shards(directory: os.PathLike | str, split: str = "train") -> list[Path]:
  """The finished shards of a split, in order, of every configuration below `directory`.

  A shard appears under its name only when it is whole, so an unfinished run is read by what is there already:
  the count in the names is then larger than the number of files found. Shards are written in order: one that is not
  there while a later one is, or that the manifest calls finished, has been lost.
  Args:
    directory: what `generate --out` was given, or a folder further down.
    split: `train` or `validation`.
  Raises:
    DataError: when there is none, or some have been lost.
  """
  found = list_shards(directory, split)
  if not found:
    raise DataError(f"no {split} shards in {directory}: expected files like {shard_name(split, 0, 16)}")
  for folder in sorted({path.parent for path in found}):
    _refuse_lost(folder, split, {path.name for path in found if path.parent == folder})
  return found


def has_shards(directory: os.PathLike | str, split: str) -> bool:
  """Whether there is a finished shard of a split."""
  return bool(list_shards(directory, split))


def list_shards(directory: os.PathLike | str, split: str) -> list[Path]:
  """The shards of a split that are there, in order, of every configuration below `directory`."""
  paths = Path(directory).rglob(f"{DATASET}-{split}.tfrecord-*")
  return sorted(path for path in paths if _SHARD_NAME.fullmatch(path.name))


def _refuse_lost(folder: Path, split: str, found: Set[str]) -> None:
  """Refuses a folder of which shards were finished that are not there."""
  last: dict[int, int] = {}  # the count in the names -> the last index; a folder may hold shards of several runs
  for name in found:
    if parts := _SHARD_NAME.fullmatch(name):
      last[int(parts["count"])] = max(int(parts["index"]), last.get(int(parts["count"]), 0))
  written = {shard_name(split, index, count) for count, end in last.items() for index in range(end)}
  # A generator may have finished some since the folder was listed.
  lost = sorted(name for name in (written | _finished(folder, split)) - found if not (folder / name).exists())
  if lost:
    names = lost[0] if len(lost) == 1 else f"{lost[0]} and {len(lost) - 1} more"
    raise DataError(f"{folder}: {names} {'is' if len(lost) == 1 else 'are'} missing; "
                    "the command that made the folder makes it again")


def _finished(folder: Path, split: str) -> set[str]:
  """Shards of a split that the manifest calls finished; of one that cannot be read `data_gen.inspect` says why."""
  try:
    files.check_regular(folder / MANIFEST)
    shards = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["shards"]
    return {shard["file"] for shard in shards if shard["finished"] and shard["split"] == split}
  except (OSError, ValueError, LookupError, TypeError, RecursionError):
    return set()
