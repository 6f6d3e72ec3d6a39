"""The builder for TensorFlow Datasets with stand-ins for both libraries; flags of the generator's commands."""

import collections
import contextlib
import dataclasses
import json
import os
from pathlib import Path
import sys
import types

import numpy as np
import pytest

from data_gen import defaults, job as job_lib, writer as writer_lib
from data_gen.flags import beam, generate, inspect
from symformer_jax.data import records
from symformer_jax.errors import DataError
from symformer_jax.language import expression
from symformer_jax.language.parser import parse
from symformer_jax.language.vocabulary import Vocabulary

VOCAB = Vocabulary(2)


class Info:
  """Of `tfds.core.DatasetInfo` what is used."""

  def __init__(self, *, builder, description, citation, homepage, features, disable_shuffling=False):
    self.told = builder, description, citation, homepage, features, disable_shuffling
    self.splits, self.alternative_file_formats, self.written = {}, [], []

  def set_splits(self, splits):
    self.splits = splits

  def add_alternative_file_format(self, name):
    self.alternative_file_formats.append(types.SimpleNamespace(value=name))

  def write_to_directory(self, folder):
    self.written.append(str(folder))


class Builder:
  """Of `FileReaderBuilder` what is used."""

  def __init__(self, *, data_dir, config="univariate"):
    self.builder_config = next(own for own in self.BUILDER_CONFIGS if own.name == config)
    self.data_dir_root, self.data_dir, self.data_path = "root", str(data_dir), Path(data_dir)
    self.info = self._info()

  def _get_filename_template(self, split):
    return f"template of {split}"


class Pieces(list):
  """A data set of TensorFlow as a list."""

  def map(self, function):
    return Pieces(function(*each) if isinstance(each, tuple) else function(each) for each in self)

  def unbatch(self):
    return Pieces({name: block[name][i] for name in block} for block in self for i in range(len(block["tokens"])))

  def enumerate(self):
    return Pieces(enumerate(self))


class Ragged:
  def __init__(self, flat, lengths):
    self.rows = np.split(flat, np.cumsum(lengths)[:-1])

  def to_tensor(self, shape=(None, 0)):
    return np.stack([np.pad(row, (0, shape[1] - len(row))) for row in self.rows])


def scattered(at, values, shape):
  found = np.zeros(shape, values.dtype)
  found[at[:, 0]] = values
  return found


def reshaped(array, shape):
  assert min(shape) >= -1  # NumPy takes any negative length for the one that follows
  return array.reshape(shape)


def with_shape(array, shape):
  assert array.shape == shape
  return array


@dataclasses.dataclass(eq=False)
class BuilderConfig:
  name: str
  description: str | None = None


def stand_ins():
  tensorflow = types.SimpleNamespace(
    data=types.SimpleNamespace(Dataset=Pieces), Tensor=np.ndarray, string="string", int64=np.int64, uint8=np.uint8,
    int32=np.int32, float32=np.float32, constant=np.asarray, cast=np.asarray, gather=lambda table, ids: table[ids],
    io=types.SimpleNamespace(decode_raw=np.frombuffer), where=np.argwhere, scatter_nd=scattered,
    shape=lambda array, kind: array.shape, RaggedTensor=types.SimpleNamespace(from_row_lengths=Ragged),
    reshape=reshaped, numpy_function=lambda function, arguments, kind: function(*arguments), ensure_shape=with_shape)
  core = types.SimpleNamespace(
    BuilderConfig=BuilderConfig, Version=str, DatasetInfo=Info,
    SplitInfo=collections.namedtuple("SplitInfo", "name shard_lengths num_bytes filename_template"),
    splits=types.SimpleNamespace(SplitDict=lambda splits: {split.name: split for split in splits}),
    FileFormat=types.SimpleNamespace(from_value=lambda value: types.SimpleNamespace(value=value)))
  features = types.SimpleNamespace(Tensor=collections.namedtuple("Tensor", "shape dtype"), FeaturesDict=dict)
  return {
    "tensorflow": tensorflow, "tensorflow_datasets": types.SimpleNamespace(core=core, features=features),
    "tensorflow_datasets.core": core, "tensorflow_datasets.core.utils": types.SimpleNamespace(),
    "tensorflow_datasets.core.dataset_builder": types.SimpleNamespace(FileReaderBuilder=Builder),
    "tensorflow_datasets.core.utils.lazy_imports_utils": types.SimpleNamespace(array_record_module=None)}


@pytest.fixture
def load(monkeypatch):
  """The module, imported on a machine of so many cores."""
  for name, module in stand_ins().items():
    monkeypatch.setitem(sys.modules, name, module)

  def imported(num_cores=7):
    monkeypatch.delitem(sys.modules, "data_gen.tfds_builder", raising=False)
    with monkeypatch.context() as patch:
      patch.setattr(os, "cpu_count", lambda: num_cores)
      import data_gen.tfds_builder as module
      return module

  yield imported
  sys.modules.pop("data_gen.tfds_builder", None)
  vars(sys.modules["data_gen"]).pop("tfds_builder", None)


@pytest.fixture
def tfds_builder(load):
  return load()


def test_configurations_are_those_of_the_two_data_sets_of_the_paper(load, tfds_builder):
  own = tfds_builder.SymformerEquations.BUILDER_CONFIGS
  assert [(config.name, config.description, config.file) for config in own] == [
    ("univariate", "Formulas of x.", "univariate.py"), ("bivariate", "Formulas of x and y.", "bivariate.py")]
  assert (own[0].num_train, own[0].num_validation, own[0].seed, own[0].settings) == (10**6, 10**4, 1, {})
  assert own[0].num_workers == 7 and load(None).EquationsConfig(name="x").num_workers == 1


def test_tfds_is_told_what_a_block_holds(tfds_builder, tmp_path):
  builder = tfds_builder.SymformerEquations(data_dir=tmp_path)
  of, description, citation, homepage, features, is_in_order = builder.info.told
  assert of is builder and description == tfds_builder.DESCRIPTION and citation == tfds_builder.CITATION
  assert homepage.endswith("2205.15764") and is_in_order
  column = ((), "string")
  assert features == {"num_variables": np.int64, **dict.fromkeys(("lengths", "ids", "constants", "domains"), column)}
  assert not builder.info.splits


def write_manifest(folder, **changes):
  shards = []
  for split, num in (("validation", 256), ("train", 512), ("train", 257)):
    name = f"shard{len(shards)}"
    (folder / name).write_bytes(bytes(10 ** len(shards)))
    shards.append({"file": name, "split": split, "equations": num, "finished": True})
  shards[-1] |= changes
  (folder / writer_lib.MANIFEST).write_text(json.dumps({"schema_version": 1, "shards": shards}))


def test_splits_are_as_long_as_the_manifest_says(tfds_builder, tmp_path, monkeypatch):
  write_manifest(tmp_path)
  splits = tfds_builder.SymformerEquations(data_dir=tmp_path).info.splits
  assert splits == {"validation": ("validation", [1], 1, "template of validation"),
                    "train": ("train", [2, 2], 110, "template of train")}
  # What TFDS knows of a folder is not read again.
  monkeypatch.setattr(Info, "__init__", lambda self, **told: vars(self).update(splits={"train": None}))
  assert tfds_builder.SymformerEquations(data_dir=tmp_path).info.splits == {"train": None}
  monkeypatch.undo()
  write_manifest(tmp_path, finished=False)
  with pytest.raises(DataError, match="is unfinished: the command that began it continues it"):
    tfds_builder.SymformerEquations(data_dir=tmp_path)


@pytest.mark.parametrize(("wanted", "asked", "num_copies"), [
  (None, None, 0), ("array_record", None, 1), (None, "array_record", 1), ("array_record", "tfrecord", 0),
  ("tfrecord", "array_record", 1), ("tfrecord", None, 0)])
def test_what_is_missing_is_generated_once_and_copied_once(tfds_builder, tmp_path, monkeypatch, wanted, asked,
                                                            num_copies):
  made, copied = [], []
  monkeypatch.setattr(tfds_builder, "_generate", lambda *given: made.append(given) or write_manifest(tmp_path))
  monkeypatch.setattr(tfds_builder, "write_array_records", copied.append)
  builder = tfds_builder.SymformerEquations(data_dir=tmp_path, file_format=wanted)
  for _ in range(2):
    builder.download_and_prepare(file_format=asked)
  assert made == [(builder.builder_config, "root")] and set(builder.info.splits) == {"train", "validation"}
  assert copied == [tmp_path] * num_copies and builder.info.written == [str(tmp_path)] * (2 + num_copies)
  (tmp_path / "dataset_info.json").write_text("{}")
  builder.download_and_prepare(file_format=asked)
  assert len(builder.info.written) == 2 + num_copies


def test_a_configuration_is_a_file_beside_the_others_or_a_path(tfds_builder, tmp_path, monkeypatch):
  jobs, filled, own = [], [], []
  lost = {3: "died"}

  class Pool:
    def __init__(self, generator, num_workers, *, skip):
      self.given = generator, num_workers, skip

    def __enter__(self):
      return self

    def __exit__(self, *_):
      pass

  def job(*given):
    jobs.append(given)
    return types.SimpleNamespace(claimed=claimed, prepare=lambda: (types.SimpleNamespace(lost=lost), "generator"))

  @contextlib.contextmanager
  def claimed():
    own.append("claimed")
    yield
    own.clear()

  monkeypatch.setattr(job_lib, "Job", job)
  monkeypatch.setattr(job_lib, "fill", lambda writer, pool: filled.append((*own, writer.lost, pool.given)))
  monkeypatch.setattr(tfds_builder, "Pool", Pool)
  monkeypatch.chdir(tmp_path)
  Path("own.py").write_text("from configs.data import bivariate\ndef get_config():\n  return bivariate.get_config()\n")
  for file, num_variables in (("univariate.py", 1), ("own.py", 2)):
    tfds_builder._generate(tfds_builder.EquationsConfig(
      name="small", file=file, num_train=5, num_validation=4, seed=3, num_workers=2,
      settings={"simplify": "rules", "num_points": 17}), tmp_path)
    config, *rest = jobs.pop()
    assert (config.num_variables, config.name, config.num_points) == (num_variables, "small", 17)
    assert rest == [str(tmp_path), 5, 4, 3] and filled.pop() == ("claimed", lost, ("generator", 2, lost))


TEXTS = ("x*y + 1234.5678", "log(x) + 0.25")
DOMAINS = np.array([[[1, 3], [0, 4]], [[-2, 2], [0, 0]]], np.float32)


def block_of(*texts):
  rows = [expression.encode(parse(text, ("x", "y")), VOCAB) for text in texts]
  return records.pack_equations([(*row, domain) for row, domain in zip(rows, DOMAINS, strict=False)])


def test_blocks_are_copied_with_their_checksums(tfds_builder, tmp_path, monkeypatch):
  class Copy(list):
    def __init__(self, path, options):
      assert Path(path).name.startswith(".") and options == "group_size:1"
      self.path = Path(path)

    write = list.append

    def close(self):
      self.path.write_bytes(b"".join(self))

  monkeypatch.setattr(tfds_builder, "array_record_module", types.SimpleNamespace(ArrayRecordWriter=Copy))
  names = [records.shard_name(split, 0, 1) for split in records.SPLITS]
  for name in names:
    records.write_shard(tmp_path / name, [block_of(TEXTS[0]), block_of(*TEXTS)])
  tfds_builder.write_array_records(tmp_path)
  for name in names:
    reader = records.ShardReader(tmp_path / name)
    copied = (tmp_path / name.replace(".tfrecord-", ".array_record-")).read_bytes()
    assert copied == reader.payload(0) + reader.payload(1)
  assert len(list(tmp_path.iterdir())) == 2 * len(names)


def as_read(block):
  """A block as TensorFlow reads it: columns of bytes."""
  feature = records._example_class().FromString(records._encode(block)).features.feature
  return {name: feature[name].bytes_list.value[0] for name in ("lengths", "ids", "constants", "domains")}


def test_blocks_fall_apart_into_equations(tfds_builder):
  block = block_of(*TEXTS)
  found = tfds_builder.as_equations(Pieces([as_read(block)] * 2), num_variables=2)
  assert len(found) == 4 and set(found[0]) == {"tokens", "constants", "domain"}
  for i, equation in enumerate(found):
    padding = (0, 50 - block.ids.shape[1])
    np.testing.assert_array_equal(equation["tokens"], np.pad(block.ids[i % 2], padding))
    np.testing.assert_array_equal(equation["constants"], np.pad(block.constants[i % 2], padding))
    np.testing.assert_array_equal(equation["domain"], DOMAINS[i % 2])
  short = tfds_builder.as_equations(Pieces([as_read(block)]), num_variables=2, max_tokens=9)
  assert short[0]["tokens"].shape == (9,)


def test_points_of_an_equation_are_those_of_its_number(tfds_builder):
  blocks = Pieces([as_read(block_of(*TEXTS))] * 2)
  found, again, other = ([equation["points"] for equation in tfds_builder.as_equations(
    blocks, num_variables=2, num_points=6, **seed)] for seed in ({}, {"seed": 0}, {"seed": 1}))
  for points, same, different in zip(found, again, other, strict=True):
    np.testing.assert_array_equal(points, same)
    assert points.dtype == np.float32 and points.shape == (6, 3) and not np.array_equal(points, different)
  assert not np.array_equal(found[0], found[2])
  np.testing.assert_allclose(found[0][:, 2], found[0][:, 0] * found[0][:, 1] + 1234.568, rtol=1e-5)
  # Of four draws of each point half lie where the logarithm is defined.
  np.testing.assert_allclose(found[1][:, 2], np.log(found[1][:, 0]) + 0.25, rtol=1e-4)


@pytest.mark.parametrize("num_good", [0, 2, 3, 9])
def test_points_that_are_not_finite_are_drawn_up_to_four_times(tfds_builder, num_good):
  class Draws:
    def random(self, shape):
      assert shape == (2, 12)
      share = np.where(np.arange(12) < num_good, 0.75, 0.25)
      return np.stack([share, share])

  block = block_of(*TEXTS)
  found = tfds_builder._draw_points(Draws(), block.ids[1], block.constants[1], DOMAINS[1], 3, VOCAB)
  kept = min(num_good, 3)
  assert np.isnan(found[kept:]).all()
  np.testing.assert_allclose(found[:kept], np.tile([1.0, 0.0, 0.25], (kept, 1)), atol=1e-6)


# --- flags -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("asked", "expected"), [
  (beam, {"runner": "DirectRunner", "config": None, "out": None, "spans": None, "equations": None, "validation": 0,
          "seed": 0, "simplify": None, "shard_equations": None}),
  (generate, {"config": None, "out": None, "equations": None, "validation": 0, "workers": os.cpu_count(), "seed": 0,
              "simplify": None, "shard_equations": None, "against": [], "lost": None, "quiet": False}),
  (inspect, {"samples": 20, "seen": None, "plot": None})])
def test_what_is_not_asked_for(asked, expected):
  found = {name: asked.FLAGS[name].default for name in asked.FLAGS}
  excluded = found.pop("exclude", None)
  assert found == expected
  if asked is not inspect:
    assert excluded == str(defaults.EXCLUDED_PROBLEMS) and Path(excluded).read_text().startswith("family,name,n_vars")


@pytest.mark.parametrize(("asked", "name", "least"), [
  (beam, "equations", 1), (beam, "validation", 0), (beam, "seed", 0), (beam, "shard_equations", 1),
  (inspect, "samples", 0)])
def test_numbers_have_a_least_value(asked, name, least):
  assert asked.FLAGS[name].parser.lower_bound == least
