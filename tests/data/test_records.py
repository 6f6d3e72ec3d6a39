"""Shards: round trip, framing, damage. The oracle of the framing is the format's description, written out here."""

import json
import os
import pickle
import struct

import google_crc32c
import numpy as np
import pytest

from symformer_jax.data import records
from symformer_jax.errors import DataError
from symformer_jax.language.vocabulary import Vocabulary


def make_block(rng: np.random.Generator, num_equations: int, num_variables: int = 2) -> records.Block:
  vocab = Vocabulary(num_variables)
  equations = []
  for _ in range(num_equations):
    ids = rng.integers(3, vocab.size, rng.integers(1, 30))
    constants = np.where(np.asarray(vocab.is_constant)[ids], rng.uniform(-1, 1, len(ids)), 0)
    equations.append((ids, constants, np.sort(rng.uniform(-5, 5, (num_variables, 2)))))
  return records.pack_equations(equations)


def assert_equal(first: records.Block, second: records.Block) -> None:
  for name in ("ids", "constants", "domains"):
    np.testing.assert_array_equal(getattr(first, name), getattr(second, name), strict=True)


@pytest.mark.parametrize("num_variables", [1, 2, 5])
def test_blocks_come_back_as_they_were_written(tmp_path, rng, num_variables):
  blocks = [make_block(rng, size, num_variables) for size in (256, 256, 3)]
  path = tmp_path / "shard"
  records.write_shard(path, blocks)
  reader = records.ShardReader(path)
  assert len(reader) == 3
  for i in (2, 0, 1):
    assert_equal(reader[i], blocks[i])
  assert_equal(pickle.loads(pickle.dumps(reader))[1], blocks[1])
  assert list(tmp_path.iterdir()) == [path]


def test_the_framing_is_that_of_tfrecord(tmp_path, rng):
  path = tmp_path / "shard"
  data = records.write_shard(path, [make_block(rng, 4), make_block(rng, 5)])
  assert path.read_bytes() == data

  def mask(crc: int) -> int:
    return (((crc >> 15) | (crc << 17 & 0xFFFFFFFF)) + 0xA282EAD8) % 2**32

  position = 0
  for _ in range(2):
    length, crc = struct.unpack_from("<QI", data, position)
    assert crc == mask(google_crc32c.value(data[position : position + 8]))
    payload = data[position + 12 : position + 12 + length]
    assert struct.unpack_from("<I", data, position + 12 + length)[0] == mask(google_crc32c.value(payload))
    position += length + 16
  assert position == len(data)


def field(number: int, data: bytes) -> bytes:
  """A field of bytes as protocol buffers have it: number and kind, length, bytes."""
  size, text = len(data), b""
  while size > 127:
    text, size = text + bytes([size & 127 | 128]), size >> 7
  return bytes([number << 3 | 2]) + text + bytes([size]) + data


def test_a_block_is_a_message_of_tensorflow_with_its_columns_in_order():
  """By the numbers of tensorflow/core/example/feature.proto: lists of bytes 1, of integers 3; keys 1, values 2."""
  vocab = Vocabulary(2)
  ids = [[vocab.ids[t] for t in ("+", "C1", "x1")], [vocab.ids["x0"]]]
  domains = np.arange(8, dtype="<f4").reshape(2, 2, 2)
  block = records.pack_equations([(ids[0], [0, 0.25, 0], domains[0]), (ids[1], [0], domains[1])])
  columns = {"constants": np.array([0.25], "<f4").tobytes(), "domains": domains.tobytes(), "ids": bytes(sum(ids, [])),
             "lengths": bytes([3, 1])}
  values = {name: field(1, field(1, data)) for name, data in columns.items()} | {
    "num_variables": field(3, field(1, bytes([2])))}
  entries = [field(1, field(1, name.encode()) + field(2, value)) for name, value in sorted(values.items())]
  assert records._encode(block) == field(1, b"".join(entries))


def test_a_block_may_be_empty_and_so_may_a_shard(tmp_path):
  empty = records._decode(records._encode(records.Block(
    np.zeros((0, 4), np.uint8), np.zeros((0, 4), np.float32), np.zeros((0, 2, 2), np.float32))))
  assert empty.ids.shape == empty.constants.shape == (0, 0) and empty.domains.shape == (0, 2, 2) and len(empty) == 0
  (tmp_path / "shard").write_bytes(b"")
  assert len(records.ShardReader(tmp_path / "shard")) == 0


def test_a_known_checksum():
  # "123456789" has crc32c 0xE3069283 (RFC 3720, B.4's generator polynomial): rotated by 15 bits, plus the constant.
  assert records._masked_crc(b"123456789") == ((0xE3069283 >> 15 | 0xE3069283 << 17 & 0xFFFFFFFF) + 0xA282EAD8) % 2**32


@pytest.mark.parametrize(
  ("damage", "reason"),
  [
    (lambda data: data[:-3], "block 1: the file ends inside a record"),
    (lambda data: data[: len(data) // 2 + 40], "the file ends inside a record"),
    (lambda data: data + data[:5], "block 2: the file ends inside a record"),
    (lambda data: data + data[:12], "block 2: the file ends inside a record"),
    (lambda data: data + data[:11] + bytes([data[11] ^ 1]), "block 2: checksum of its length is wrong"),
    (lambda data: data[:30] + bytes([data[30] ^ 1]) + data[31:], "block 0: checksum of its content is wrong"),
    (lambda data: bytes([data[0] ^ 1]) + data[1:], "block 0: checksum of its length is wrong"),
  ],
)
def test_a_damaged_shard_is_named(tmp_path, rng, damage, reason):
  path = tmp_path / "some-shard"
  data = records.write_shard(path, [make_block(rng, 8), make_block(rng, 8)])
  path.write_bytes(damage(data))
  with pytest.raises(DataError, match="some-shard is damaged at .*" + reason.split(":")[-1].strip()):
    reader = records.ShardReader(path)
    [reader[i] for i in range(len(reader))]


def test_a_foreign_record_and_a_missing_file_are_named(tmp_path):
  path = tmp_path / "foreign"
  path.write_bytes(records._frame(b"\xff\xff no example"))
  with pytest.raises(DataError, match="foreign is damaged at block 0: it holds no block of equations"):
    records.ShardReader(path)[0]
  with pytest.raises(DataError, match="cannot read shard .*missing: No such file"):
    records.ShardReader(tmp_path / "missing")


def test_a_pipe_is_no_shard(tmp_path):
  os.mkfifo(tmp_path / "pipe")
  with pytest.raises(DataError, match="cannot read shard .*pipe: is no regular file"):
    records.ShardReader(tmp_path / "pipe")


def test_nothing_half_written_stays_behind(tmp_path):
  class Full(Exception):
    pass

  def blocks():
    raise Full
    yield

  with pytest.raises(Full):
    records.write_shard(tmp_path / "shard", blocks())
  with pytest.raises(OSError):
    records.write_atomically(tmp_path / "no_folder" / "shard", b"")
  assert not list(tmp_path.iterdir())


def test_shards_are_found_in_order_and_temporary_files_are_not(tmp_path, rng):
  folder = records.split_folder(tmp_path, "univariate")
  folder.mkdir(parents=True)
  for i in (1, 0):
    records.write_shard(folder / records.shard_name("train", i, 3), [make_block(rng, 2)])
  (folder / f".{records.shard_name('train', 2, 3)}".replace(".tfrecord", "-x1y2.tfrecord")).write_bytes(b"half")
  (folder / "manifest.json").write_text("{}")
  names = [path.name for path in records.find_shards(tmp_path)]
  assert names == [f"symformer_equations-train.tfrecord-0000{i}-of-00003" for i in (0, 1)]
  with pytest.raises(DataError, match="no validation shards in .*expected files like symformer_equations-validation"):
    records.find_shards(tmp_path, "validation")


@pytest.mark.parametrize("manifest", [None, "no JSON", '{"shards": 1}'])
@pytest.mark.parametrize(("present", "message"), [
  ([0, 1, 3], "train.tfrecord-00002-of-00005 is missing"),
  ([3], "train.tfrecord-00000-of-00005 and 2 more are missing"), ([0, 1], "")])
def test_a_shard_before_others_has_been_lost(tmp_path, present, message, manifest):
  for i in present:
    (tmp_path / records.shard_name("train", i, 5)).write_bytes(b"")
  if manifest is not None:
    (tmp_path / records.MANIFEST).write_text(manifest)
  if message:
    with pytest.raises(DataError, match=f"{message}; the command that made the folder makes it again"):
      records.find_shards(tmp_path)
  else:
    assert len(records.find_shards(tmp_path)) == len(present)


def test_the_manifest_tells_of_last_shards_that_have_been_lost(tmp_path):
  names = [records.shard_name("train", i, 3) for i in range(3)]
  manifest = {"shards": [{"file": name, "split": "train", "finished": i < 2} for i, name in enumerate(names)]}
  (tmp_path / records.MANIFEST).write_text(json.dumps(manifest))
  for name in names[:2]:
    (tmp_path / name).write_bytes(b"")
  (tmp_path / records.shard_name("validation", 0, 1)).write_bytes(b"")
  assert [path.name for path in records.find_shards(tmp_path)] == names[:2]
  assert len(records.find_shards(tmp_path, "validation")) == 1
  (tmp_path / names[1]).unlink()
  with pytest.raises(DataError, match="train.tfrecord-00001-of-00003 is missing"):
    records.find_shards(tmp_path)
