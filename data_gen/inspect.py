"""The command that shows what folders of shards hold, and checks every byte of them.

python -m data_gen.inspect DIR [DIR2 ...] [--samples=20] [--seen=FORMULA] [--plot=FILE.png]
"""

if __name__ == "__main__":
  from symformer_jax.commands import startup  # first: the other imports take seconds

  startup.prepare(__doc__, "data_gen.flags.inspect")

from collections import Counter
import itertools
from pathlib import Path
import sys
from typing import Any

import numpy as np

from data_gen import bloom, exclusion, trees, writer as writer_lib
from data_gen.candidates import EXCLUDED
from data_gen.config import GeneratorConfig
from data_gen.exclusion import VARIABLE_NAMES
from data_gen.flags import inspect as asked
from data_gen.stored import hash_skeleton, read_tree
from data_gen.writer import Row
from symformer_jax import files
from symformer_jax.commands import extras, runner
from symformer_jax.data import records
from symformer_jax.errors import DataError, InputError
from symformer_jax.language import expression, printing
from symformer_jax.language.canonical import canonicalize
from symformer_jax.language.parser import parse
from symformer_jax.language.vocabulary import Vocabulary


def verify(folder: Path) -> dict[str, Any]:
  """Reads the manifest and compares every finished shard, and the hashes beside it, with their sha256.

  Raises:
    DataError: names the manifest, or all files that are missing or damaged, or that it does not know.
  """
  manifest = writer_lib.read_manifest(folder)
  finished = [shard for shard in manifest["shards"] if shard["finished"]]
  damaged = []
  for i, shard in enumerate(finished):
    _show_progress(f"checking shard {i + 1} of {len(finished)}")
    expected = {shard["file"]: shard["sha256"]}
    if "hashes_sha256" in shard:
      expected[records.hashes_name(shard["file"])] = shard["hashes_sha256"]
    damaged += [name for name, sha256 in expected.items() if not writer_lib.is_intact(folder / name, sha256)]
  _show_progress("")
  if damaged:
    missing = [name for name in damaged if not (folder / name).exists()]
    state = "missing" if missing == damaged else "damaged (sha256 differs)" if not missing else "missing or damaged"
    raise DataError(f"{folder}: {', '.join(damaged)} {'is' if len(damaged) == 1 else 'are'} {state}; "
                    "the command that made the folder makes it again")
  known = {shard["file"] for shard in manifest["shards"]}
  strange = [path.name for split in records.SPLITS for path in records.list_shards(folder, split)
             if path.parent == folder and path.name not in known]
  if strange:
    raise DataError(f"{folder}: {', '.join(strange)} {'is' if len(strange) == 1 else 'are'} there, and "
                    f"{writer_lib.MANIFEST} does not name {'it' if len(strange) == 1 else 'them'}")
  _check_filters(folder, manifest)
  return manifest


def _check_filters(folder: Path, manifest: dict[str, Any]) -> None:
  """Compares the Bloom filters with those of the hashes that lie beside the shards, where they do for all.

  Raises:
    DataError: names one that is damaged.
  """
  paths = {kind: folder / writer_lib.seen_name(kind) for kind in writer_lib.SEEN}
  found = {kind: bloom.from_bytes(path.read_bytes(), name=str(path)) for kind, path in paths.items() if path.exists()}
  if not found or not all(shard["finished"] and "hashes_sha256" in shard for shard in manifest["shards"]):
    return
  expected = {kind: bloom.BloomFilter(each.capacity, each.false_positive_rate) for kind, each in found.items()}
  for i, shard in enumerate(manifest["shards"]):
    _show_progress(f"checking filters, shard {i + 1} of {len(manifest['shards'])}")
    for kind, hashes in zip(writer_lib.SEEN, writer_lib.read_hash_file(folder, shard["file"]), strict=True):
      if kind in expected:
        expected[kind].add(hashes)
  _show_progress("")
  for kind, each in expected.items():
    if not np.array_equal(each.bits, found[kind].bits):
      raise DataError(f"{paths[kind]} is damaged (the hashes of the shards make another one); once it is removed, the "
                      "command that made the folder makes it again")


def _show_progress(text: str) -> None:
  if sys.stderr is not None and sys.stderr.isatty():
    print(f"\r{text:<60}", end="" if text else "\r", file=sys.stderr, flush=True)


class Summary:
  """Counts by operator, length, number of constants, exponent of constants and box, block by block.

  Attributes:
    rows: the first `num_samples` equations.
    num_equations: counted.
  """

  def __init__(self, vocab: Vocabulary, num_samples: int):
    self.vocab, self._num_samples = vocab, num_samples
    self.rows: list[Row] = []
    self.num_equations = 0
    self._tokens = np.zeros(vocab.size, np.int64)
    self._lengths: Counter[int] = Counter()
    self._constants: Counter[int] = Counter()
    self._boxes: Counter[bytes] = Counter()
    self._is_constant = np.asarray(vocab.is_constant)

  def add(self, block: records.Block) -> None:
    self.num_equations += len(block)
    self._tokens += np.bincount(block.ids.ravel(), minlength=len(self._tokens))
    self._lengths.update(block.lengths.tolist())
    self._constants.update(self._is_constant[block.ids].sum(axis=1).tolist())
    self._boxes.update(map(np.ndarray.tobytes, block.domains))
    for ids, mantissas, domain in zip(block.ids, block.constants, block.domains, strict=True):
      if len(self.rows) == self._num_samples:
        break
      length = np.count_nonzero(ids)
      self.rows.append((ids[:length], mantissas[:length], domain))

  @property
  def counts(self) -> dict[str, Counter]:
    named = [(i, token, int(self._tokens[i])) for i, token in enumerate(self.vocab.tokens) if self._tokens[i]]
    return {
      "operator": Counter({token: n for i, token, n in named if self.vocab.arity[i] > 0}),
      "length": self._lengths,
      "constants": self._constants,
      "constant exponent": Counter({token: n for i, token, n in named if self._is_constant[i]}),
      "domain": Counter({_describe_box(data): n for data, n in self._boxes.items()}),
    }


def _describe_box(data: bytes) -> str:
  return " x ".join(f"[{low:g}, {high:g}]" for low, high in np.frombuffer(data, np.float32).reshape(-1, 2))


def summarize(folder: Path, split: str, vocab: Vocabulary, num_samples: int) -> Summary:
  """Reads all finished shards of a split; every block's checksum is checked."""
  summary = Summary(vocab, num_samples)
  paths = records.find_shards(folder, split)
  for i, path in enumerate(paths):
    _show_progress(f"reading {split} shard {i + 1} of {len(paths)}")
    reader = records.ShardReader(path)
    for block in map(reader.__getitem__, range(len(reader))):
      summary.add(block)
  _show_progress("")
  return summary


def to_tree(row: Row, vocab: Vocabulary) -> expression.Node:
  return read_tree(row[0].tolist(), row[1], vocab)


def _read_formula(text: str, config: GeneratorConfig) -> expression.Node:
  """Raises InputError for text that is no formula of the configuration's variables."""
  return canonicalize(parse(text, VARIABLE_NAMES[: config.num_variables]))


def count_seen(text: str, folder: Path, config: GeneratorConfig) -> tuple[int, int]:
  """How many equations of a folder compute what a formula does, and how many have its skeleton.

  From the hash files; where they were taken away, from the Bloom filters, which know only none (0) and some (1).
  Raises:
    InputError: for text that is no formula of the configuration's variables.
    DataError: when the folder has neither.
  """
  tree = _read_formula(text, config)
  vocab = Vocabulary(config.num_variables)
  ids, _ = expression.encode(tree, vocab)
  wanted = np.array([exclusion.fingerprint(exclusion.probe(tree, config)), hash_skeleton(ids, vocab)], np.uint64)
  paths = [folder / writer_lib.seen_name(kind) for kind in writer_lib.SEEN]
  if not list(folder.glob(records.hashes_name(f"{records.DATASET}-*.tfrecord-*"))) and all(p.exists() for p in paths):
    filters = [bloom.from_bytes(path.read_bytes(), name=str(path)) for path in paths]
    found = [int(seen.contains(wanted[i : i + 1])[0]) for i, seen in enumerate(filters)]
  else:
    found = sum(((hashes == wanted[:, None]).sum(axis=1) for hashes in writer_lib.iterate_hashes(folder)),
                start=np.zeros(2, int)).tolist()
  return found[0], found[1]


def count_common(first: Path, second: Path) -> tuple[int, int]:
  """How many equations of `second` compute what one of `first` does, and how many have a skeleton of `first`."""
  held = [np.unique(np.concatenate(rows)) for rows in zip(*writer_lib.iterate_hashes(first), strict=True)]
  counts = np.zeros(2, int)
  for hashes in writer_lib.iterate_hashes(second):
    counts += [int(np.isin(row, known).sum()) for row, known in zip(hashes, held, strict=True)]
  return int(counts[0]), int(counts[1])


def _print_counts(title: str, counts: Counter, *, by_key: bool) -> None:
  total = sum(counts.values()) or 1
  items = sorted(counts.items()) if by_key else counts.most_common()
  print(f"{title}:\n  " + "  ".join(f"{key} {count} ({100 * count / total:.1f}%)" for key, count in items))


def _plot(path: str, summary: Summary) -> None:
  """Bars of every distribution and 20 sample curves (over the first variable, others in the middle of their box)."""
  from matplotlib.figure import Figure  # only for this: the generator does without it

  figure = Figure(figsize=(16, 18), layout="constrained")
  axes = figure.subplots(5, 5).ravel()
  for axis, (title, counter) in zip(axes, summary.counts.items(), strict=False):
    keys = sorted(counter) if title == "length" else [key for key, _ in counter.most_common(15)]
    axis.bar(range(len(keys)), [counter[key] for key in keys])
    axis.set_xticks(range(len(keys)), [str(key) for key in keys], rotation=90, fontsize=6)
    axis.set_title(title, fontsize=9)
  for axis, row in zip(axes[5:], summary.rows, strict=False):
    tree, domain = to_tree(row, summary.vocab), row[2].astype(float)
    columns = np.repeat(domain.mean(axis=1)[:, None], 400, axis=1)  # [D, 400]
    low, high = domain[0]
    columns[0] = np.linspace(low, high, 402)[1:-1]
    with np.errstate(all="ignore"):
      axis.plot(columns[0], trees.values(tree, columns))
    axis.set_title(printing.to_text(tree, digits=3)[:45], fontsize=7)
  figure.savefig(path, dpi=110)


def inspect(folder: Path) -> None:
  """Checks and describes one folder with a manifest.

  Raises:
    DataError: something is damaged.
  """
  manifest = verify(folder)
  config = writer_lib.check_manifest(manifest, folder)
  vocab = Vocabulary(config.num_variables)
  finished = [shard for shard in manifest["shards"] if shard["finished"]]
  print(f"{folder}: {len(finished)} of {len(manifest['shards'])} shards finished, all intact")
  rules = Counter(manifest["counts"])
  met = Counter({rule.removeprefix(EXCLUDED): rules.pop(rule) for rule in list(rules) if rule.startswith(EXCLUDED)})
  _print_counts("candidates", rules + Counter({"excluded": met.total()}), by_key=False)
  _print_counts(f"of {len(manifest['identity']['excluded_problems'])} test problems met and dropped", met, by_key=False)
  if asked.SEEN.value:
    functions, skeletons = count_seen(asked.SEEN.value, folder, config)
    print(f"{asked.SEEN.value}: {functions} equations compute it, {skeletons} have its skeleton")
  if manifest["lost"]:
    print(f"candidates lost to time and memory limits: {manifest['lost']}")
  for split in dict.fromkeys(shard["split"] for shard in finished):
    summary = summarize(folder, split, vocab, max(asked.SAMPLES.value, 20))
    print(f"\n{split}: {summary.num_equations} equations")
    for title, counter in summary.counts.items():
      _print_counts(title, counter, by_key=title in ("length", "constants"))
    for row in summary.rows[: asked.SAMPLES.value]:
      print("  ", printing.to_text(to_tree(row, vocab), digits=5), row[2].tolist())
    if asked.PLOT.value and split == "train":
      _plot(asked.PLOT.value, summary)


def main(argv: list[str]) -> int:
  runner.refuse_empty(asked.PLOT, asked.SEEN)
  if "" in argv[1:]:  # which would be the folder that the command runs in
    raise InputError("expected folders written by data_gen.generate, got one without a name")
  if asked.PLOT.value:
    extras.require("plot", who="--plot")
    if files.check_writable(asked.PLOT.value, flag="--plot").suffix != ".png":
      raise InputError(f"--plot: expected a name ending in .png, got {asked.PLOT.value!r}")
  if len(argv) < 2:
    raise InputError("expected one or more folders written by data_gen.generate, got none")
  try:
    folders = [folder for directory in argv[1:] for folder in writer_lib.find_folders(directory)]
    for folder in folders:  # before a report that may take minutes
      _, config = writer_lib.read_checked(folder)
      if asked.SEEN.value:
        _read_formula(asked.SEEN.value, config)
    for folder in folders:
      inspect(folder)
    for first, second in itertools.combinations(folders, 2):
      functions, skeletons = count_common(first, second)
      print(f"\nof the equations of {second}, {functions} compute what one of {first} does, "
            f"{skeletons} have the skeleton of one")
  except BrokenPipeError:  # the reader of our output has left
    raise
  except OSError as error:
    if not error.filename:  # of standard output
      raise
    raise InputError(f"{error.filename}: {error.strerror}") from None
  return runner.DONE


if __name__ == "__main__":
  runner.run(main, flag_values=asked.FLAGS, takes_arguments=True)
