"""Takes outcomes in order, drops duplicates, writes shards and the manifest; continues where a run was interrupted.

Memory is fixed by the plan: a Bloom filter of 3.6 bytes per planned equation finds the duplicates, and takes one new
equation in a million for one. Beside each shard lie the 64-bit hashes of its functions and skeletons (16 bytes an
equation: they find duplicates across folders), and at the end one Bloom filter each of all functions and all
skeletons (2.4 bytes an equation, one stranger in ten thousand taken for seen), small enough to go with a model.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from data_gen import bloom, exclusion
from data_gen.candidates import Equation
from data_gen.config import GeneratorConfig, from_dict
from data_gen.stored import hash_skeleton, read_tree
from data_gen.workers import LOSSES
from symformer_jax import files
from symformer_jax.data import records
from symformer_jax.errors import DataError, InputError
from symformer_jax.language.vocabulary import Vocabulary

SCHEMA_VERSION = 1
MANIFEST = records.MANIFEST
DUPLICATE_RATE, SEEN_RATE = 1e-6, 1e-4
SEEN = ("functions", "skeletons")  # rows of a hash file, and Bloom filters beside the shards


@dataclasses.dataclass(frozen=True)
class Plan:
  """What a run writes: `num_equations` per split, in shards of at most `shard_equations`; validation comes first."""

  folder: Path
  num_validation: int
  num_train: int
  shard_equations: int

  def shards(self) -> list[tuple[str, int, str]]:
    """`(split, equations, file name)` in the order of writing."""
    planned = []
    for split, total in (("validation", self.num_validation), ("train", self.num_train)):
      count = -(-total // self.shard_equations)
      for i in range(count):
        size = min(self.shard_equations, total - i * self.shard_equations)
        planned.append((split, size, records.shard_name(split, i, count)))
    return planned


class Writer:
  """Accepts outcomes one by one; what is on disk is always whole shards and a manifest that describes them.

  Args:
    plan: what to write.
    identity: all that decides the bytes (config, seed, sizes, vocabulary, excluded problems): a folder that holds
      another identity is refused.
    info: what the manifest tells besides (package versions).
    unique_by_skeleton: whether tokens alone, or tokens and constants, may not come twice.
    known_functions: fingerprints in other folders: equations that have one are dropped.
    lost: candidates that cost another run of this identity its time or memory, with their rules: dropped here too.
  Raises:
    InputError: when the folder holds another run, or shards of which nothing tells what they are of.
    DataError: when it holds a manifest that cannot be read.
  """

  def __init__(self, plan: Plan, identity: dict[str, Any], *, info: dict[str, Any], unique_by_skeleton: bool = False,
               known_functions: bloom.BloomFilter | None = None, lost: dict[int, str] | None = None):
    self.plan, self.identity, self._info = plan, identity, info
    self._unique_by_skeleton = unique_by_skeleton
    self._known_functions = known_functions
    self._planned = plan.shards()
    self._finished: list[dict[str, Any]] = []
    self._buffer: list[Equation] = []
    self._seen = bloom.BloomFilter(plan.num_validation + plan.num_train, DUPLICATE_RATE)
    self._validation_functions: set[int] = set()
    self.counts: Counter[str] = Counter()
    self.lost = dict(lost or {})
    self.next_candidate = 0

  @property
  def manifest_path(self) -> Path:
    return self.plan.folder / MANIFEST

  @property
  def is_done(self) -> bool:
    return len(self._finished) == len(self._planned)

  @property
  def num_written(self) -> int:
    return sum(shard["equations"] for shard in self._finished)

  @property
  def num_accepted(self) -> int:
    return self.num_written + len(self._buffer)

  def resume(self) -> None:
    """Reads what an interrupted run has finished; from the first damaged or missing shard on, all are made again."""
    if not self.manifest_path.exists():
      self._refuse_strangers()
    files.remove_leftovers(self.plan.folder)
    if not self.manifest_path.exists():
      self.plan.folder.mkdir(parents=True, exist_ok=True)
      self._write_manifest()
      return
    manifest = read_manifest(self.plan.folder)
    held = manifest.get("identity")
    if held != self.identity:
      raise InputError(f"{self.plan.folder} holds another run: {differences(held or {}, self.identity)}")
    try:
      self._take_finished(manifest)
    except (LookupError, TypeError, AttributeError, ValueError) as error:  # written by somebody else's hand
      raise DataError(f"manifest {self.manifest_path} is damaged: {type(error).__name__}: {error}") from None
    if self.is_done:
      self._write_seen()

  def _refuse_strangers(self) -> None:
    """A run writes its manifest before any shard: shards without one are of another run, or theirs has been lost."""
    if any(records.has_shards(self.plan.folder, split) for split in records.SPLITS):
      raise InputError(f"{self.plan.folder} holds shards without their {MANIFEST}, which tells what they are of: give "
                       "another folder, or put it back")

  def _take_finished(self, manifest: dict[str, Any]) -> None:
    self.lost.update({int(index): rule for index, rule in manifest["lost"].items()})
    for shard in manifest["shards"]:
      if not _is_of_shard(shard):
        raise ValueError(f"shards: expected {_SHARD}, got {files.shorten(json.dumps(shard), 60)}")
      if not shard["finished"] or not is_intact(self.plan.folder / shard["file"], shard["sha256"]):
        break
      self._finished.append(shard)
      self.counts = Counter(shard["counts"])
      self.next_candidate = shard["next_candidate"]
      self._remember(shard)

  def _remember(self, shard: dict[str, Any]) -> None:
    """Keys of a finished shard's equations, read back from its bytes; its hash file is made again if need be."""
    rows = list(read_rows(self.plan.folder / shard["file"]))
    self._seen.add(np.array([self._key(ids.tobytes(), mantissas.tobytes()) for ids, mantissas, _ in rows], np.uint64))
    path = self.plan.folder / records.hashes_name(shard["file"])
    if not is_intact(path, shard.get("hashes_sha256")):
      records.write_atomically(path, hash_rows(rows, self.identity["config"]).tobytes())
    self._validation_functions.update(shard.get("functions", ()))

  def _key(self, ids: bytes, constants: bytes) -> int:
    text = ids if self._unique_by_skeleton else ids + constants
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")

  def add(self, index: int, outcome: Equation | str) -> None:
    """Takes the outcome of candidate `index`; writes a shard when one is full.

    Raises:
      OSError: full disk or the like; what was finished before is whole.
    """
    self.next_candidate = index + 1
    rule = outcome if isinstance(outcome, str) else self._duplicate_rule(outcome)
    self.counts[rule or "accepted"] += 1
    if rule in LOSSES and self.lost.get(index) != rule:
      # At once: whoever continues must drop it too, however fast their machine is.
      self.lost[index] = rule
      self._write_manifest()
    if rule:
      return
    assert not isinstance(outcome, str)
    self._buffer.append(outcome)
    if len(self._buffer) == self._planned[len(self._finished)][1]:
      self._finish_shard()

  def _duplicate_rule(self, equation: Equation) -> str:
    key = np.array([self._key(equation.ids, equation.constants)], np.uint64)
    if self._seen.contains(key)[0]:
      return "duplicate"
    function = np.array([equation.function], np.uint64)
    if self._known_functions is not None and self._known_functions.contains(function)[0]:
      return "in_other_folder"
    if self._planned[len(self._finished)][0] == "train":
      if equation.function in self._validation_functions:
        return "in_validation"
    else:
      self._validation_functions.add(equation.function)
    self._seen.add(key)
    return ""

  def _finish_shard(self) -> None:
    split, size, name = self._planned[len(self._finished)]
    rows = [(np.frombuffer(e.ids, np.uint8), np.frombuffer(e.constants, np.float32), e.domain) for e in self._buffer]
    step = records.BLOCK_EQUATIONS
    blocks = [records.pack_equations(rows[i : i + step]) for i in range(0, size, step)]
    hashes = np.array([[e.function for e in self._buffer], [e.skeleton for e in self._buffer]], "<u8")  # [2, E]
    records.write_atomically(self.plan.folder / records.hashes_name(name), hashes.tobytes())
    data = records.write_shard(self.plan.folder / name, blocks)
    shard = {"file": name, "split": split, "equations": size, "sha256": hashlib.sha256(data).hexdigest(),
             "hashes_sha256": hashlib.sha256(hashes.tobytes()).hexdigest(), "finished": True,
             "next_candidate": self.next_candidate, "counts": dict(sorted(self.counts.items()))}
    if split == "validation":
      # What a resumed run must keep out of the training split.
      shard["functions"] = [e.function for e in self._buffer]
    self._finished.append(shard)
    self._buffer = []
    if self.is_done:
      self._write_seen()
    self._write_manifest()

  def _write_seen(self) -> None:
    """One Bloom filter of all functions, one of all skeletons, unless they are there."""
    paths = [self.plan.folder / seen_name(kind) for kind in SEEN]
    if all(path.exists() for path in paths):
      return
    filters = [bloom.BloomFilter(self.num_written, SEEN_RATE) for _ in SEEN]
    for shard in self._finished:
      for row, seen in zip(read_hash_file(self.plan.folder, shard["file"]), filters, strict=True):
        seen.add(row)
    for path, seen in zip(paths, filters, strict=True):
      records.write_atomically(path, seen.to_bytes())

  def _write_manifest(self) -> None:
    unfinished = [{"file": name, "split": split, "equations": size, "sha256": None, "finished": False}
                  for split, size, name in self._planned[len(self._finished):]]
    counts = self._finished[-1]["counts"] if self._finished else {}
    manifest = {
      "schema_version": SCHEMA_VERSION,
      "identity": self.identity,
      **self._info,
      "false_positive_rates": {"duplicate": DUPLICATE_RATE, "seen": SEEN_RATE},
      "counts": counts,
      "lost": {str(index): rule for index, rule in sorted(self.lost.items())},
      "shards": self._finished + unfinished,
    }
    records.write_atomically(self.manifest_path, (json.dumps(manifest, indent=1) + "\n").encode())


# --- reading what was written ---------------------------------------------------------------------------------------

Row = tuple[np.ndarray, np.ndarray, np.ndarray]  # ids [L], mantissas [L], domain [D, 2]


def is_intact(path: Path, sha256: str | None) -> bool:
  # A pipe in its place would be waited for.
  return sha256 is not None and path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256


def read_rows(path: Path) -> Iterator[Row]:
  """The equations of a shard; every block's checksum is checked. Raises DataError for a damaged one."""
  reader = records.ShardReader(path)
  for i in range(len(reader)):
    block = reader[i]
    for ids, mantissas, domain, length in zip(block.ids, block.constants, block.domains, block.lengths, strict=True):
      yield ids[:length], mantissas[:length], domain


def hash_rows(rows: Sequence[Row], config: dict[str, Any]) -> np.ndarray:
  """Hashes of equations [2, E], uint64: functions, skeletons; those that were given to them when they were made."""
  checked = from_dict(config)
  vocab = Vocabulary(checked.num_variables)
  trees = [read_tree(ids, mantissas, vocab) for ids, mantissas, _ in rows]
  functions = [exclusion.fingerprint(exclusion.probe(tree, checked)) for tree in trees]
  return np.array([functions, [hash_skeleton(ids, vocab) for ids, _, _ in rows]], "<u8")


def seen_name(kind: str) -> str:
  """Name of the Bloom filter of all `functions` or `skeletons` of a folder."""
  return f"{records.DATASET}-{kind}.bloom"


def read_hash_file(folder: Path, shard: str) -> np.ndarray:
  """Hashes of a finished shard's equations [2, E], uint64: functions, skeletons.

  Exact as far as 64 bits go: of E equations a stranger is taken for one with probability E / 2**64.
  Raises:
    DataError: when the file is missing.
  """
  path = folder / records.hashes_name(shard)
  try:
    return np.frombuffer(path.read_bytes(), "<u8").reshape(2, -1)
  except (OSError, ValueError) as error:
    raise DataError(f"cannot read hash file {path}: {error}; "
                    "the command that made the folder makes it again") from None


def iterate_hashes(folder: Path) -> Iterator[np.ndarray]:
  """`read_hash_file` of every finished shard."""
  for shard in read_checked(folder)[0]["shards"]:
    if shard["finished"]:
      yield read_hash_file(folder, shard["file"])


def find_folders(directory: str | Path) -> list[Path]:
  """Folders with a manifest at or below `directory`. Raises DataError when there is none."""
  found = sorted(path.parent for path in Path(directory).rglob(MANIFEST))
  if not found:
    raise DataError(f"no {MANIFEST} in {directory}: expected a folder written by data_gen.generate")
  return found


def read_manifest(folder: Path, name: str = MANIFEST) -> dict[str, Any]:
  """Raises DataError when it cannot be read or has another schema."""
  path = folder / name
  try:
    files.check_regular(path)
    manifest = json.loads(path.read_text(encoding="utf-8"))
  except (OSError, ValueError, RecursionError) as error:
    raise DataError(f"cannot read manifest {path}: {error}") from None
  if not isinstance(manifest, dict) or "schema_version" not in manifest:
    raise DataError(f"cannot read manifest {path}: expected a JSON object with the key 'schema_version'")
  version = manifest["schema_version"]
  if version != SCHEMA_VERSION:
    raise DataError(f"manifest {path} has schema version {version}, expected {SCHEMA_VERSION}")
  return manifest


def read_checked(folder: Path) -> tuple[dict[str, Any], GeneratorConfig]:
  """A folder's manifest, of which every field may be used, and its configuration. Raises as the two do."""
  manifest = read_manifest(folder)
  return manifest, check_manifest(manifest, folder)


def check_manifest(manifest: dict[str, Any], folder: Path) -> GeneratorConfig:
  """The configuration of a folder whose manifest is as `Writer` writes it.

  Raises:
    DataError: names the field that is something else.
  """
  def expect(is_right: bool, field: str, expected: str, got: Any) -> None:
    if not is_right:
      shown = files.shorten(json.dumps(got), 60)
      raise DataError(f"manifest {folder / MANIFEST} is damaged: {field}: expected {expected}, got {shown}")

  for field, kind, expected in (("identity", dict, "an object"), ("counts", dict, "numbers by rule"),
                                ("lost", dict, "rules by candidate"), ("shards", list, "a list")):
    expect(isinstance(manifest.get(field), kind), field, expected, manifest.get(field))
  identity = manifest["identity"]
  for field, kind, expected in (("config", dict, "an object"), ("excluded_problems", list, "a list")):
    expect(isinstance(identity.get(field), kind), f"identity.{field}", expected, identity.get(field))
  for rule, count in manifest["counts"].items():
    expect(type(count) is int, f"counts.{rule}", "a whole number", count)
  for i, shard in enumerate(manifest["shards"]):
    expect(_is_of_shard(shard), f"shards[{i}]", _SHARD, shard)
  try:
    return from_dict(identity["config"])
  except (InputError, TypeError, AttributeError, ValueError) as error:
    raise DataError(f"manifest {folder / MANIFEST} is damaged: identity.config: {error}") from None


# What `_is_of_shard` asks of an entry.
_SHARD = "file, split, equations, finished and sha256 of a shard"


def _is_of_shard(shard: Any) -> bool:
  if not isinstance(shard, dict) or not isinstance(shard.get("finished"), bool):
    return False
  if type(shard.get("equations")) is not int or shard["equations"] < 1:
    return False
  hashes = [shard.get("sha256"), shard.get("hashes_sha256", "")] if shard["finished"] else []
  return shard.get("split") in records.SPLITS and all(isinstance(each, str) for each in (shard.get("file"), *hashes))


def differences(held: dict[str, Any], wanted: dict[str, Any], prefix: str = "") -> str:
  """The keys in which two runs differ, with what each has, for a message; keys of inner dictionaries after a point."""
  parts = []
  for key in sorted(held.keys() | wanted.keys()):
    old, new = held.get(key), wanted.get(key)
    if isinstance(old, dict) and isinstance(new, dict):
      if old != new:
        parts.append(differences(old, new, f"{prefix}{key}."))
    elif old != new:
      parts.append(f"{prefix}{key} is {old!r} there, {new!r} was asked for")
  return "; ".join(parts)
