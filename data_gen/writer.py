"""Takes outcomes in order, drops duplicates, writes shards and the manifest; continues where a run was interrupted."""

from collections import Counter
import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from data_gen.candidates import Equation
from symformer_jax.data import records
from symformer_jax.errors import DataError, InputError

SCHEMA_VERSION = 1
MANIFEST = "manifest.json"


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
  Raises:
    InputError: when the folder holds another run.
    DataError: when it holds a manifest that cannot be read.
  """

  def __init__(self, plan: Plan, identity: dict[str, Any], *, info: dict[str, Any], unique_by_skeleton: bool):
    self.plan, self.identity, self._info = plan, identity, info
    self._unique_by_skeleton = unique_by_skeleton
    self._planned = plan.shards()
    self._finished: list[dict[str, Any]] = []
    self._buffer: list[Equation] = []
    self._seen: set[int] = set()
    self._validation_functions: set[int] = set()
    self.counts: Counter[str] = Counter()
    self.lost: dict[int, str] = {}
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
    for leftover in self.plan.folder.glob(".*.tmp"):
      leftover.unlink()  # of a run that was killed while it wrote
    if not self.manifest_path.exists():
      self.plan.folder.mkdir(parents=True, exist_ok=True)
      self._write_manifest()
      return
    manifest = read_manifest(self.plan.folder)
    held = manifest.get("identity")
    if held != self.identity:
      raise InputError(f"{self.plan.folder} holds another run: {_differences(held or {}, self.identity)}")
    self.lost = {int(index): rule for index, rule in manifest["lost"].items()}
    for shard in manifest["shards"]:
      if not shard["finished"] or not self._is_intact(shard):
        break
      self._finished.append(shard)
      self.counts = Counter(shard["counts"])
      self.next_candidate = shard["next_candidate"]
      self._remember(shard)

  def _is_intact(self, shard: dict[str, Any]) -> bool:
    path = self.plan.folder / shard["file"]
    return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == shard["sha256"]

  def _remember(self, shard: dict[str, Any]) -> None:
    """Keys of a finished shard's equations, read back from its bytes."""
    reader = records.ShardReader(self.plan.folder / shard["file"])
    for i in range(len(reader)):
      block = reader[i]
      for ids, constants, length in zip(block.ids, block.constants, block.lengths, strict=True):
        self._seen.add(self._key(ids[:length].tobytes(), constants[:length].tobytes()))
    self._validation_functions.update(shard.get("functions", ()))

  def _key(self, ids: bytes, constants: bytes) -> int:
    text = ids if self._unique_by_skeleton else ids + constants
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")

  def add(self, index: int, outcome: Equation | str) -> None:
    """Takes the outcome of candidate `index`; writes a shard when one is full."""
    self.next_candidate = index + 1
    rule = outcome if isinstance(outcome, str) else self._duplicate_rule(outcome)
    self.counts[rule or "accepted"] += 1
    if rule:
      return
    self._buffer.append(outcome)
    if len(self._buffer) == self._planned[len(self._finished)][1]:
      self._finish_shard()

  def _duplicate_rule(self, equation: Equation) -> str:
    key = self._key(equation.ids, equation.constants)
    if key in self._seen:
      return "duplicate"
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
    digest = hashlib.sha256(data).hexdigest()
    shard = {"file": name, "split": split, "equations": size, "sha256": digest, "finished": True,
             "next_candidate": self.next_candidate, "counts": dict(sorted(self.counts.items()))}
    if split == "validation":
      # What a resumed run must keep out of the training split.
      shard["functions"] = [e.function for e in self._buffer]
    self._finished.append(shard)
    self._buffer = []
    self._write_manifest()

  def note_lost(self, lost: dict[int, str]) -> None:
    """Writes down candidates that cost a worker, at once: a rerun must drop the same ones."""
    if lost != self.lost:
      self.lost = dict(lost)
      self._write_manifest()

  def _write_manifest(self) -> None:
    unfinished = [{"file": name, "split": split, "equations": size, "sha256": None, "finished": False}
                  for split, size, name in self._planned[len(self._finished):]]
    counts = self._finished[-1]["counts"] if self._finished else {}
    manifest = {
      "schema_version": SCHEMA_VERSION,
      "identity": self.identity,
      **self._info,
      "counts": counts,
      "lost": {str(index): rule for index, rule in sorted(self.lost.items())},
      "shards": self._finished + unfinished,
    }
    records.write_atomically(self.manifest_path, (json.dumps(manifest, indent=1) + "\n").encode())


def read_hashes(folder: Path) -> np.ndarray:
  """Hashes of all equations of finished shards [2, E], uint64: functions, skeletons.

  Exact as far as 64 bits go: a formula that was never generated is reported as seen with probability E / 2**64.
  """
  found = [np.zeros((2, 0), "<u8")]
  for shard in read_manifest(folder)["shards"]:
    path = folder / records.hashes_name(shard["file"])
    if shard["finished"] and path.exists():
      found.append(np.frombuffer(path.read_bytes(), "<u8").reshape(2, -1))
  return np.concatenate(found, axis=1)


def read_manifest(folder: Path) -> dict[str, Any]:
  """Raises DataError when it cannot be read or has another schema."""
  path = folder / MANIFEST
  try:
    manifest = json.loads(path.read_text(encoding="utf-8"))
    version = manifest["schema_version"]
  except (OSError, ValueError, KeyError, TypeError) as error:
    raise DataError(f"cannot read manifest {path}: {error}") from None
  if version != SCHEMA_VERSION:
    raise DataError(f"manifest {path} has schema version {version}, expected {SCHEMA_VERSION}")
  return manifest


def _differences(held: dict[str, Any], wanted: dict[str, Any], prefix: str = "") -> str:
  parts = []
  for key in sorted(held.keys() | wanted.keys()):
    old, new = held.get(key), wanted.get(key)
    if isinstance(old, dict) and isinstance(new, dict):
      if old != new:
        parts.append(_differences(old, new, f"{prefix}{key}."))
    elif old != new:
      parts.append(f"{prefix}{key} is {old!r} there, {new!r} was asked for")
  return "; ".join(parts)
