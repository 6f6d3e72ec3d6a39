"""The equations as a TensorFlow Datasets builder (extra [tfds]); nothing else here imports TensorFlow.

tfds build --imports=data_gen.tfds_builder --data_dir=DIR symformer_equations/univariate
tfds.load("symformer_equations/univariate", data_dir=DIR, split="train")    # after `import data_gen.tfds_builder`

A folder written by `data_gen.generate --out=DIR` is read in the same way. An example is a block of equations;
`as_equations` makes single equations of them. `write_array_records` adds the copy that `tfds.data_source` needs.
"""

from collections.abc import Mapping
import dataclasses
import os
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds
from tensorflow_datasets.core.dataset_builder import FileReaderBuilder
from tensorflow_datasets.core.utils.lazy_imports_utils import array_record_module

from data_gen import config as config_lib, domains, job as job_lib, trees, writer as writer_lib
from data_gen.stored import read_tree
from data_gen.workers import Pool
from symformer_jax.data import records
from symformer_jax.errors import DataError
from symformer_jax.language.vocabulary import Vocabulary

DESCRIPTION = """\
Random formulas of one or several variables, simplified, as token strings with constants and the box on which each is
finite: training data for symbolic regression, after SymFormer (Vastl et al., 2022). Trees are drawn uniformly among
unary-binary trees of at most ten operators, leaves and operators with the paper's probabilities. Constant and linear
functions, formulas of more than 50 tokens and those with values beyond 1e7 are left out, as are duplicates and the
paper's benchmark functions of more than two operators; the splits train and validation share no function.

An example is a block of up to 256 equations as packed columns, little endian: lengths (uint8), ids (uint8, prefix
order, one after the other), constants (float32, mantissas of the C tokens alone, in reading order), domains (float32
[equations, variables, 2]). data_gen.tfds_builder.as_equations turns blocks into equations. Points are not stored: they
are drawn from the domain whenever an equation is seen.
"""
CITATION = """\
@article{vastl2022symformer,
  title={SymFormer: End-to-end symbolic regression using transformer-based architecture},
  author={Vastl, Martin and Kulh{\\'a}nek, Jon{\\'a}{\\v{s}} and Kubal{\\'i}k, Ji{\\v{r}}{\\'i} and Derner, Erik and
          Babu{\\v{s}}ka, Robert},
  journal={arXiv preprint arXiv:2205.15764},
  year={2022}
}
"""
_CONFIGS = Path(__file__).parent.parent / "configs" / "data"
ARRAY_RECORD = "array_record"


@dataclasses.dataclass(eq=False)
class EquationsConfig(tfds.core.BuilderConfig):
  """What `tfds build` generates; other sizes are had by another name: `--config='{"name": "small", ...}'`.

  Attributes:
    file: of configs/data/, or a path.
    num_train, num_validation, seed: of the job.
    num_workers: processes; no influence on the bytes.
    settings: overrides of the config file's values.
  """

  file: str = "univariate.py"
  num_train: int = 1_000_000
  num_validation: int = 10_000
  seed: int = 1
  num_workers: int = os.cpu_count() or 1
  settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)


class SymformerEquations(FileReaderBuilder):
  """Builder `symformer_equations`."""

  VERSION = tfds.core.Version(records.VERSION)
  RELEASE_NOTES = {records.VERSION: "Blocks of 256 equations."}
  BUILDER_CONFIGS = [
    EquationsConfig(name="univariate", description="Formulas of x."),
    EquationsConfig(name="bivariate", description="Formulas of x and y.", file="bivariate.py"),
  ]

  def __init__(self, *, file_format: str | None = None, **kwargs: Any):
    """As TFDS's own; `file_format="array_record"` asks for that copy beside the shards when they are prepared."""
    super().__init__(**kwargs)
    self._wanted_format = file_format
    if not self.info.splits and (self.data_path / writer_lib.MANIFEST).exists():
      self._read_splits()  # of a folder that data_gen.generate has written

  def _info(self) -> tfds.core.DatasetInfo:
    column = tfds.features.Tensor(shape=(), dtype=tf.string)
    features = {"num_variables": tf.int64, "lengths": column, "ids": column, "constants": column, "domains": column}
    return tfds.core.DatasetInfo(
      builder=self, description=DESCRIPTION, citation=CITATION, homepage="https://arxiv.org/abs/2205.15764",
      features=tfds.features.FeaturesDict(features), disable_shuffling=True,
    )

  def _read_splits(self) -> None:
    """Sizes of the splits in blocks, from the manifest. Raises DataError when a shard is yet to come."""
    folder = Path(self.data_dir)
    shards = writer_lib.read_manifest(folder)["shards"]
    if not all(shard["finished"] for shard in shards):
      raise DataError(f"{folder} is unfinished: the command that began it continues it")
    splits = []
    for split in dict.fromkeys(shard["split"] for shard in shards):
      own = [shard for shard in shards if shard["split"] == split]
      splits.append(tfds.core.SplitInfo(
        name=split, shard_lengths=[-(-shard["equations"] // records.BLOCK_EQUATIONS) for shard in own],
        num_bytes=sum((folder / shard["file"]).stat().st_size for shard in own),
        filename_template=self._get_filename_template(split),
      ))
    self.info.set_splits(tfds.core.splits.SplitDict(splits))

  def download_and_prepare(self, *, file_format: str | None = None, **unused: Any) -> None:
    """Generates what is missing, straight into the folder: an interrupted build continues where it was.

    Args:
      file_format: as the constructor's.
    """
    if not (self.data_path / "dataset_info.json").exists():
      self._download_and_prepare(dl_manager=None)
      self.info.write_to_directory(self.data_dir)
    has_copy = ARRAY_RECORD in (known.value for known in self.info.alternative_file_formats)
    wanted = file_format or self._wanted_format
    if wanted and tfds.core.FileFormat.from_value(wanted).value == ARRAY_RECORD and not has_copy:
      write_array_records(Path(self.data_dir))
      self.info.add_alternative_file_format(ARRAY_RECORD)
      self.info.write_to_directory(self.data_dir)

  def _download_and_prepare(self, dl_manager: Any, download_config: Any = None) -> None:
    del dl_manager, download_config  # nothing is downloaded
    if not self.info.splits:
      _generate(self.builder_config, self.data_dir_root)
      self._read_splits()


def _generate(settings: EquationsConfig, data_dir: str | os.PathLike) -> None:
  path = settings.file if os.path.exists(settings.file) else str(_CONFIGS / settings.file)
  config = config_lib.load_config(path, {**settings.settings, "name": settings.name})
  job = job_lib.Job(config, os.fspath(data_dir), settings.num_train, settings.num_validation, settings.seed)
  with job.claimed():
    writer, generator = job.prepare()
    with Pool(generator, settings.num_workers, skip=writer.lost) as pool:
      job_lib.fill(writer, pool)


def write_array_records(folder: Path) -> None:
  """Copies every TFRecord shard of a folder to an ArrayRecord file beside it, block by block, checksums checked."""
  for split in records.SPLITS:
    for path in folder.glob(f"{records.DATASET}-{split}.tfrecord-*"):
      target = path.with_name(path.name.replace(".tfrecord-", f".{ARRAY_RECORD}-"))
      temporary = target.with_name(f".{target.name}.tmp")
      reader = records.ShardReader(path)
      copy = array_record_module.ArrayRecordWriter(str(temporary), "group_size:1")
      for i in range(len(reader)):
        copy.write(reader.payload(i))
      copy.close()
      os.replace(temporary, target)


def as_equations(
  blocks: tf.data.Dataset, *, num_variables: int, max_tokens: int = 50, num_points: int = 0, seed: int = 0
) -> tf.data.Dataset:
  """Single equations from blocks.

  Args:
    blocks: what `tfds.load` returns.
    num_variables: D; max_tokens: L.
    num_points: N; points to draw from the domain of each equation.
    seed: of the points; the n-th equation of a pass has the same ones in every pass.
  Returns:
    A data set of `tokens` [L], uint8, padded with 0; `constants` [L], float32: mantissas at C tokens, 0 elsewhere;
    `domain` [D, 2], float32; and `points` [N, D + 1], float32, columns x then y, if N > 0: rows that are not finite
    are drawn again, and NaN where that fails.
  """
  vocab = Vocabulary(num_variables)
  is_constant = tf.constant(vocab.is_constant)

  def unpack(block: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    lengths = tf.cast(tf.io.decode_raw(block["lengths"], tf.uint8), tf.int64)  # [E]
    ids = tf.io.decode_raw(block["ids"], tf.uint8)  # of all equations
    at = tf.where(tf.gather(is_constant, tf.cast(ids, tf.int32)))
    constants = tf.scatter_nd(at, tf.io.decode_raw(block["constants"], tf.float32), tf.shape(ids, tf.int64))
    def pad(flat: tf.Tensor) -> tf.Tensor:
      return tf.RaggedTensor.from_row_lengths(flat, lengths).to_tensor(shape=(None, max_tokens))
    domains_ = tf.reshape(tf.io.decode_raw(block["domains"], tf.float32), (-1, num_variables, 2))
    return {"tokens": pad(ids), "constants": pad(constants), "domain": domains_}

  def draw(index: tf.Tensor, equation: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    def draw_points(i: np.ndarray, tokens: np.ndarray, constants: np.ndarray, domain: np.ndarray) -> np.ndarray:
      return _draw_points(np.random.default_rng((seed, int(i))), tokens, constants, domain, num_points, vocab)
    arguments = (index, equation["tokens"], equation["constants"], equation["domain"])
    points = tf.numpy_function(draw_points, arguments, tf.float32)
    return {**equation, "points": tf.ensure_shape(points, (num_points, num_variables + 1))}

  equations = blocks.map(unpack).unbatch()
  return equations.enumerate().map(draw) if num_points else equations


def _draw_points(
  rng: np.random.Generator, tokens: np.ndarray, constants: np.ndarray, domain: np.ndarray, num_points: int,
  vocab: Vocabulary,
) -> np.ndarray:
  """Points and values [N, D + 1], float32; four draws of every point are tried, as the generator does."""
  length = np.count_nonzero(tokens)
  tree = read_tree(tokens[:length].tolist(), constants[:length], vocab)
  columns = domains.draw_points(rng, domain.astype(float), (4 * num_points,))  # [D, 4N]
  with np.errstate(all="ignore"):
    y = trees.values(tree, columns)
  found = np.concatenate([columns, y[None]])[:, np.isfinite(y)][:, :num_points]
  points = np.full((num_points, len(found)), np.nan, np.float32)
  points[: found.shape[1]] = found.T
  return points
