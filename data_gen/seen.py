"""Which functions and skeletons a model met in training: two Bloom filters that go with it, and who asks them.

The filters are made from the train splits alone (validation equations were never trained on), when a model is
exported; they cost 3.6 bytes an equation together and take one stranger in a thousand for seen. Besides, a function
that was seen is missed in about one of 200 cases (see `exclusion.fingerprint`), and a skeleton is found only when
one of three forms of the formula is the one in which it was stored. A model that started from another one's weights
has met what that one met: it carries the other's filters as further parts.
"""

from collections.abc import Iterable, Sequence
import dataclasses
from fractions import Fraction
import hashlib
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np

from data_gen import bloom, exclusion, simplify, writer as writer_lib
from data_gen.config import GeneratorConfig
from data_gen.stored import hash_skeleton, read_tree
from symformer_jax.data import records
from symformer_jax.errors import DataError, ExpressionError, InputError
from symformer_jax.files import shorten
from symformer_jax.language import expression
from symformer_jax.language.canonical import canonicalize
from symformer_jax.language.expression import Node
from symformer_jax.language.vocabulary import Vocabulary

RATE = 1e-3
# Beyond this the files no longer go with a model (14 million equations); they are given by a flag then.
MAX_SHIPPED_BYTES = 50_000_000
# Numerator and denominator of an exponent that SymPy is asked about.
LARGEST_EXPONENT = 1000
KINDS = writer_lib.SEEN


@dataclasses.dataclass(frozen=True)
class ProbeSpace:
  """All that a fingerprint depends on of a generator's configuration, under the same names."""

  num_variables: int
  box_edge: float


@dataclasses.dataclass(frozen=True)
class Part:
  """What one run was trained on.

  Attributes:
    filters: of functions and of skeletons.
    space: of the generator that made the data.
    num_equations: in the data.
  """

  filters: tuple[bloom.BloomFilter, bloom.BloomFilter]
  space: ProbeSpace
  num_equations: int

  def has_met(self, tree: Node, num_columns: int) -> tuple[bool, bool]:
    """`(function, skeleton)` of a formula over so many columns, whatever variables of the data they are."""
    vocab = Vocabulary(self.space.num_variables)
    functions, skeletons = set(), set()
    for columns in itertools.permutations(range(self.space.num_variables), num_columns):
      for form in _forms(exclusion.rename(tree, columns)):
        try:
          ids, mantissas = expression.encode(form, vocab)
        except InputError:
          continue  # a constant beyond the vocabulary: never stored
        stored = read_tree(ids, np.asarray(mantissas, np.float32), vocab)
        functions.add(exclusion.fingerprint(exclusion.probe(stored, self.space)))
        skeletons.add(hash_skeleton(ids, vocab))
    found, met = (f.contains(np.array(sorted(hashes), np.uint64))
                  for f, hashes in zip(self.filters, (functions, skeletons), strict=True))
    return bool(found.any()), bool(met.any())


@dataclasses.dataclass(frozen=True)
class Seen:
  """Tells of a formula whether its function and its skeleton were seen, in any of the parts."""

  parts: tuple[Part, ...]

  def __call__(self, tree: Node, num_columns: int) -> tuple[bool, bool] | None:
    """`(function, skeleton)` of a formula over so many columns; None when all data have too few variables."""
    verdicts = [part.has_met(tree, num_columns) for part in self.parts if num_columns <= part.space.num_variables]
    if not verdicts:
      return None
    functions, skeletons = zip(*verdicts, strict=True)
    return any(functions), any(skeletons)


def _forms(tree: Node) -> Iterable[Node]:
  """The ways in which the generator may have stored a formula: as it is, by the rules, by SymPy's cheap passes."""
  yield tree
  yield canonicalize(tree)
  if _has_long_exponent(tree):
    return
  try:
    yield simplify.simplify(tree, "fast", digits=GeneratorConfig.simplify_digits)
  except (ExpressionError, RecursionError):
    return


def _has_long_exponent(tree: Node) -> bool:
  """Whether an exponent is a fraction of many digits: SymPy raises numbers to its numerator exactly, which may take
  hours for `2.9**0.6181234`. The generator gives such a candidate up.
  """
  exponents = (Fraction(repr(node.args[1].value)) for node in expression.walk(tree)
               if node.token == "pow" and node.args[1].is_number)
  return any(max(abs(exponent.numerator), exponent.denominator) > LARGEST_EXPONENT for exponent in exponents)


def collect(directories: Sequence[str | Path]) -> Seen:
  """Filters over the train splits of generated folders; a part for each number of variables and box.

  Hashes come from the files beside the shards, or, where these are missing, from the equations themselves.
  Raises:
    DataError: no folder with a manifest, or a damaged shard.
  """
  by_space: dict[ProbeSpace, list[Path]] = {}
  for folder in (folder for directory in directories for folder in writer_lib.find_folders(directory)):
    _, config = writer_lib.read_checked(folder)
    by_space.setdefault(ProbeSpace(config.num_variables, config.box_edge), []).append(folder)
  return Seen(tuple(_collect_part(space, folders) for space, folders in by_space.items()))


def _collect_part(space: ProbeSpace, folders: Sequence[Path]) -> Part:
  hashes = [rows for folder in folders for rows in _train_hashes(folder)]
  if not hashes:
    raise DataError(f"no finished train shard in {', '.join(map(str, folders))}")
  filters = []
  for row in (np.unique(np.concatenate(rows)) for rows in zip(*hashes, strict=True)):
    filters.append(bloom.BloomFilter(len(row), RATE))
    filters[-1].add(row)
  functions, skeletons = filters
  return Part((functions, skeletons), space, sum(rows.shape[1] for rows in hashes))


def _train_hashes(folder: Path) -> Iterable[np.ndarray]:
  manifest = writer_lib.read_manifest(folder)
  for shard in manifest["shards"]:
    if not shard["finished"] or shard["split"] != "train":
      continue
    if (folder / records.hashes_name(shard["file"])).exists():
      yield writer_lib.read_hash_file(folder, shard["file"])
    else:  # older data
      yield writer_lib.hash_rows(list(writer_lib.read_rows(folder / shard["file"])), manifest["identity"]["config"])


# --- files that go with a model --------------------------------------------------------------------------------


def write(folder: Path, seen: Seen) -> list[dict[str, Any]] | None:
  """Writes the filters beside a model's card; returns what the card says of them, None when they are too large."""
  contents = [{f"seen-{kind}{f'-{i}' if i else ''}.bloom": one.to_bytes()
               for kind, one in zip(KINDS, part.filters, strict=True)} for i, part in enumerate(seen.parts)]
  if sum(len(data) for files in contents for data in files.values()) > MAX_SHIPPED_BYTES:
    return None
  for stale in stored_below(folder):
    stale.unlink()
  for files in contents:
    for name, data in files.items():
      records.write_atomically(folder / name, data)
  return [{
    "equations": part.num_equations, **dataclasses.asdict(part.space),
    "false_positive_rate": RATE,
    "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}}
    for part, files in zip(seen.parts, contents, strict=True)]


def stored_below(folder: Path) -> list[Path]:
  """Filters that stand beside a model's card, whether it names them or not."""
  return list(folder.glob("seen-*.bloom"))


def read(folder: Path, card: dict[str, Any]) -> Seen | None:
  """The filters that a model's card names, None where it names none.

  Raises:
    DataError: a file is missing or damaged.
  """
  if not card.get("seen"):
    return None
  parts = card["seen"] if isinstance(card["seen"], list) else [card["seen"]]  # one part, as cards once had it
  try:
    return Seen(tuple(_read_part(folder, described) for described in parts))
  except (LookupError, TypeError, AttributeError, ValueError):
    raise DataError(
      f"the card in {folder} does not describe its hash files as expected: seen: expected objects with sha256 (of two "
      f"files by their names), num_variables, box_edge and equations, got {shorten(json.dumps(card['seen']))}"
    ) from None


def _read_part(folder: Path, described: dict[str, Any]) -> Part:
  filters = []
  for name, sha256 in described["sha256"].items():
    if not writer_lib.is_intact(folder / name, sha256):
      raise DataError(f"{folder / name} is missing or damaged: its sha256 is not the one in the card")
    filters.append(bloom.from_bytes((folder / name).read_bytes(), name=name))
  space = ProbeSpace(described["num_variables"], described["box_edge"])
  functions, skeletons = filters
  return Part((functions, skeletons), space, described["equations"])
