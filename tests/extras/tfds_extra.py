"""TensorFlow reads the shards, TFDS builds and loads them, blocks fall apart into the equations that were written."""

import subprocess
import sys

import numpy as np
import pytest
from small_runs import ROOT, contents, make, small_job
import tensorflow as tf
import tensorflow_datasets as tfds

from data_gen import tfds_builder, trees, writer as writer_lib
from data_gen.stored import read_tree
from symformer_jax.data import records
from symformer_jax.errors import DataError
from symformer_jax.language.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def out(tmp_path_factory):
  out = tmp_path_factory.mktemp("made")
  make(small_job(out))
  return out


def written(folder, split="train") -> list[writer_lib.Row]:
  return [row for path in records.find_shards(folder, split) for row in writer_lib.read_rows(path)]


def test_tensorflow_reads_a_shard_and_its_checksums(out, tmp_path):
  path = records.find_shards(out, "train")[0]
  reader = records.ShardReader(path)
  got = list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())
  assert got == [reader.payload(i) for i in range(len(reader))]
  example = tf.train.Example.FromString(got[0])
  assert sorted(example.features.feature) == ["constants", "domains", "ids", "lengths", "num_variables"]
  data = bytearray(path.read_bytes())
  data[50] ^= 1
  (tmp_path / "damaged").write_bytes(data)
  with pytest.raises(tf.errors.DataLossError):
    list(tf.data.TFRecordDataset(str(tmp_path / "damaged")))


def test_load_reads_blocks_and_equations(out):
  blocks, info = tfds.load("symformer_equations/univariate", data_dir=str(out), split="train", with_info=True)
  assert "vastl2022symformer" in info.citation and "symbolic regression" in info.description
  assert {name: split.num_shards for name, split in info.splits.items()} == {"validation": 1, "train": 3}
  assert info.splits["train"].num_examples == len(blocks) == 3
  assert next(iter(blocks))["num_variables"] == 1
  equations = list(tfds_builder.as_equations(blocks, num_variables=1).as_numpy_iterator())
  rows = written(out)
  assert len(equations) == len(rows) == 300
  for equation, (ids, constants, domain) in zip(equations, rows, strict=True):
    length = len(ids)
    np.testing.assert_array_equal(equation["tokens"], np.pad(ids, (0, 50 - length)), strict=True)
    np.testing.assert_array_equal(equation["constants"], np.pad(constants, (0, 50 - length)), strict=True)
    np.testing.assert_array_equal(equation["domain"], domain, strict=True)


def test_points_are_drawn_from_the_domain_and_lie_on_the_curve(out):
  blocks = tfds.load("symformer_equations/univariate", data_dir=str(out), split="validation")
  drawn = [list(tfds_builder.as_equations(blocks, num_variables=1, num_points=20, seed=s).take(20).as_numpy_iterator())
           for s in (0, 0, 1)]
  np.testing.assert_array_equal(*[[e["points"] for e in equations] for equations in drawn[:2]])
  assert not np.array_equal(drawn[0][0]["points"], drawn[2][0]["points"])
  for equation in drawn[0]:
    points, (low, high) = equation["points"], equation["domain"][0]
    assert points.shape == (20, 2) and np.isfinite(points).all()
    assert ((low <= points[:, 0]) & (points[:, 0] <= high)).all()
    length = np.count_nonzero(equation["tokens"])
    tree = read_tree(equation["tokens"][:length].tolist(), equation["constants"][:length], Vocabulary(1))
    with np.errstate(all="ignore"):
      y = trees.values(tree, points[:, :1].T.astype(float))
    assert np.mean(np.isclose(y, points[:, 1], rtol=1e-3, atol=1e-4)) > 0.8  # x was rounded to float32


def test_build_runs_the_generator_and_writes_an_array_record_copy(tmp_path, out):
  config = ('{"name": "small", "num_train": 300, "num_validation": 60, "seed": 3, "num_workers": 1, '
            '"settings": {"simplify": "rules", "shard_equations": 100}}')
  command = [sys.executable, "-m", "tensorflow_datasets.scripts.cli.main", "build", "--imports=data_gen.tfds_builder",
             f"--data_dir={tmp_path}", f"--config={config}", "--file_format=array_record", "symformer_equations"]
  done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
  assert done.returncode == 0, done.stderr[-3000:]
  folder = tmp_path / "symformer_equations" / "small" / "1.0.0"
  made = {name: data for name, data in contents(out).items() if "tfrecord" in name}
  assert {name: data for name, data in contents(folder).items() if "tfrecord" in name} == made
  source = tfds.builder_from_directory(str(folder)).as_data_source(split="train")
  blocks = list(tfds.builder_from_directory(str(folder)).as_dataset(split="train"))
  assert len(source) == len(blocks) == 3
  assert [block["ids"] for block in source] == [block["ids"].numpy() for block in blocks]


def test_an_unfinished_folder_is_refused(tmp_path):
  job = small_job(tmp_path)
  job.prepare()
  with pytest.raises(DataError, match="is unfinished: the command that began it continues it"):
    tfds.load("symformer_equations/univariate", data_dir=str(tmp_path))
