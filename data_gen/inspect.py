"""The command that shows what a folder of shards holds, and checks every byte of it.

python -m data_gen.inspect DIR [--samples=20] [--plot=FILE.png]
"""

from collections import Counter
import hashlib
from pathlib import Path
import sys
from typing import Any

from absl import app, flags
import numpy as np

from data_gen import exclusion, trees, writer as writer_lib
from data_gen.candidates import hash_skeleton
from data_gen.config import GeneratorConfig, from_dict
from data_gen.exclusion import VARIABLE_NAMES
from symformer_jax.data import records
from symformer_jax.errors import DataError, InputError, SymFormerError
from symformer_jax.language import expression
from symformer_jax.language.canonical import canonicalize
from symformer_jax.language.parser import parse
from symformer_jax.language.vocabulary import Vocabulary

_SAMPLES = flags.DEFINE_integer("samples", 20, "Equations to print.")
_SEEN = flags.DEFINE_string("seen", None, "A formula of x, y, ...: tells how often its function and skeleton occur.")
_PLOT = flags.DEFINE_string("plot", None, "PNG file for the distributions and a page of sample curves.")

Row = tuple[np.ndarray, np.ndarray, np.ndarray]  # ids [L], constants [L], domain [D, 2]


def verify(folder: Path) -> dict[str, Any]:
  """Reads the manifest and compares every finished shard with its sha256.

  Raises:
    DataError: names the manifest, or the first shard, that is missing or damaged.
  """
  manifest = writer_lib.read_manifest(folder)
  for shard in manifest["shards"]:
    if not shard["finished"]:
      continue
    path = folder / shard["file"]
    if not path.exists():
      raise DataError(f"shard {path} is missing; the command that made the folder makes it again")
    if hashlib.sha256(path.read_bytes()).hexdigest() != shard["sha256"]:
      raise DataError(f"shard {path} is damaged (sha256 differs); the command that made the folder makes it again")
  return manifest


def read_rows(folder: Path, split: str) -> list[Row]:
  """All equations of the finished shards of a split; every block's checksum is checked."""
  rows = []
  for path in records.find_shards(folder, split):
    reader = records.ShardReader(path)
    for i in range(len(reader)):
      block = reader[i]
      for ids, constants, domain in zip(block.ids, block.constants, block.domains, strict=True):
        length = int((ids != 0).sum())
        rows.append((ids[:length], constants[:length], domain))
  return rows


def to_tree(row: Row, vocab: Vocabulary) -> expression.Node:
  ids, constants, _ = row
  return expression.decode(ids, constants.astype(float) * np.asarray(vocab.constant_scale)[ids], vocab)


def summarize(rows: list[Row], vocab: Vocabulary) -> dict[str, Counter]:
  """Counts by operator, length, number of constants, exponent of constants and box."""
  tokens, boxes = Counter(), Counter()
  lengths, constants = Counter(), Counter()
  is_constant = np.asarray(vocab.is_constant)
  for ids, _, domain in rows:
    tokens.update(ids.tolist())
    lengths[len(ids)] += 1
    constants[int(is_constant[ids].sum())] += 1
    boxes[" x ".join(f"[{low:g}, {high:g}]" for low, high in domain)] += 1
  named = {vocab.tokens[i]: count for i, count in tokens.items()}
  return {
    "operator": Counter({t: n for t, n in named.items() if vocab.arity[vocab.ids[t]] > 0}),
    "length": lengths,
    "constants": constants,
    "constant exponent": Counter({t: n for t, n in named.items() if is_constant[vocab.ids[t]]}),
    "domain": boxes,
  }


def count_seen(text: str, folder: Path, config: GeneratorConfig) -> tuple[int, int]:
  """How many equations of a folder compute what a formula does, and how many have its skeleton.

  Raises:
    InputError: for text that is no formula of the configuration's variables.
  """
  tree = canonicalize(parse(text, VARIABLE_NAMES[: config.num_variables]))
  vocab = Vocabulary(config.num_variables)
  ids, _ = expression.encode(tree, vocab)
  functions, skeletons = writer_lib.read_hashes(folder)
  function = exclusion.fingerprint(exclusion.probe(tree, config))
  return int((functions == np.uint64(function)).sum()), int((skeletons == np.uint64(hash_skeleton(ids, vocab))).sum())


def _print_counts(title: str, counts: Counter, *, by_key: bool) -> None:
  total = sum(counts.values()) or 1
  items = sorted(counts.items()) if by_key else counts.most_common()
  print(f"{title}:\n  " + "  ".join(f"{key} {count} ({100 * count / total:.1f}%)" for key, count in items))


def _plot(path: str, rows: list[Row], counts: dict[str, Counter], vocab: Vocabulary) -> None:
  """Bars of every distribution and 20 sample curves (over the first variable, others in the middle of their box)."""
  from matplotlib.figure import Figure  # only for this: the generator does without it

  figure = Figure(figsize=(16, 18), layout="constrained")
  axes = figure.subplots(5, 5).ravel()
  for axis, (title, counter) in zip(axes, counts.items(), strict=False):
    keys = sorted(counter) if title == "length" else [key for key, _ in counter.most_common(15)]
    axis.bar(range(len(keys)), [counter[key] for key in keys])
    axis.set_xticks(range(len(keys)), [str(key) for key in keys], rotation=90, fontsize=6)
    axis.set_title(title, fontsize=9)
  for axis, row in zip(axes[5:], rows, strict=False):
    domain = row[2].astype(float)
    columns = np.repeat(domain.mean(axis=1)[:, None], 400, axis=1)  # [D, 400]
    columns[0] = np.linspace(*domain[0], 402)[1:-1]
    with np.errstate(all="ignore"):
      axis.plot(columns[0], trees.values(to_tree(row, vocab), columns))
    axis.set_title(expression.to_text(to_tree(row, vocab), digits=3)[:45], fontsize=7)
  figure.savefig(path, dpi=110)


def inspect(directory: str) -> None:
  """Checks and describes every configuration below a folder.

  Raises:
    DataError: nothing there, or something damaged.
  """
  manifests = sorted(Path(directory).rglob(writer_lib.MANIFEST))
  if not manifests:
    raise DataError(f"no {writer_lib.MANIFEST} in {directory}: expected a folder written by data_gen.generate")
  for path in manifests:
    manifest = verify(path.parent)
    vocab = Vocabulary(manifest["identity"]["config"]["num_variables"])
    finished = [shard for shard in manifest["shards"] if shard["finished"]]
    print(f"{path.parent}: {len(finished)} of {len(manifest['shards'])} shards finished, all intact")
    _print_counts("candidates", Counter(manifest["counts"]), by_key=False)
    if _SEEN.value:
      functions, skeletons = count_seen(_SEEN.value, path.parent, from_dict(manifest["identity"]["config"]))
      print(f"{_SEEN.value}: {functions} equations compute it, {skeletons} have its skeleton")
    if manifest["lost"]:
      print(f"candidates that cost a worker: {manifest['lost']}")
    for split in dict.fromkeys(shard["split"] for shard in finished):
      rows = read_rows(path.parent, split)
      counts = summarize(rows, vocab)
      print(f"\n{split}: {len(rows)} equations")
      for title, counter in counts.items():
        _print_counts(title, counter, by_key=title in ("length", "constants"))
      for row in rows[: _SAMPLES.value]:
        print("  ", expression.to_text(to_tree(row, vocab), digits=5), row[2].tolist())
      if _PLOT.value and split == "train":
        _plot(_PLOT.value, rows, counts, vocab)


def main(argv: list[str]) -> int:
  try:
    if len(argv) != 2:
      raise InputError(f"expected one folder, got {len(argv) - 1} arguments")
    inspect(argv[1])
    return 0
  except (SymFormerError, OSError) as error:
    print(f"error: {error}", file=sys.stderr)
    return 2


if __name__ == "__main__":
  app.run(main)
