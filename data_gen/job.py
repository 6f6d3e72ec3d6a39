"""One data set to be made: all that decides its bytes, where it goes, and the loop that makes it."""

from collections.abc import Callable, Iterable, Iterator
import contextlib
import dataclasses
import errno
import hashlib
import importlib
from pathlib import Path
import platform
from typing import Protocol

import numpy as np

from data_gen import bloom, exclusion, shapes, writer as writer_lib
from data_gen.candidates import Equation, Generator
from data_gen.config import GeneratorConfig, LawsConfig, as_dict
from data_gen.defaults import EXCLUDED_PROBLEMS
from symformer_jax import files
from symformer_jax.data import records
from symformer_jax.errors import DataError, InputError
from symformer_jax.language.vocabulary import Vocabulary

# Candidates in a row without an equation after which none is expected: a configuration has no more, or none at all.
MAX_FRUITLESS = 20_000


@dataclasses.dataclass(frozen=True)
class Job:
  """What to generate.

  Attributes:
    config: of the generator.
    out: folder; shards lie below it in symformer_equations/NAME/1.0.0.
    num_train, num_validation: equations per split, which share no function.
    seed: every seed gives another stream of equations.
    excluded: CSV of problems whose functions are kept out, or several with commas between; None excludes nothing.
    against: folders of other jobs whose functions are kept out.
    lost_in: manifest of another run of this job, which tells the candidates that its machine could not make.
  """

  config: GeneratorConfig
  out: str
  num_train: int
  num_validation: int = 0
  seed: int = 0
  excluded: str | None = str(EXCLUDED_PROBLEMS)
  against: tuple[str, ...] = ()
  lost_in: str | None = None

  def __post_init__(self) -> None:
    for name, least in (("num_train", 1), ("num_validation", 0), ("seed", 0)):
      if getattr(self, name) < least:
        raise InputError(f"{name} must be at least {least}, got {getattr(self, name)}")

  @property
  def folder(self) -> Path:
    return records.split_folder(self.out, self.config.name)

  @contextlib.contextmanager
  def claimed(self) -> Iterator[None]:
    """The folder to this process: a second one would remove what the first has not finished. Where nothing is written
    there, as a file given is unusable, no folder is left that was not there before.

    Raises:
      InputError: when another process has it, it cannot be opened, or there cannot be one.
    """
    with files.no_empty_folders(self.folder):
      with self._refused_as_place():
        self.folder.mkdir(parents=True, exist_ok=True)
      with files.claimed(self.folder, flag="--out"):
        yield

  @contextlib.contextmanager
  def _refused_as_place(self) -> Iterator[None]:
    """Before anything is made a folder that cannot be written is an unusable argument."""
    try:
      yield
    except OSError as error:
      if error.errno in (errno.EMFILE, errno.ENFILE):  # too many open files: wherever the folder is
        raise
      raise InputError(self.describe_fault(error)) from None

  def describe_fault(self, error: OSError) -> str:
    """What kept the job from being written, in one line."""
    return f"cannot write to {self.folder}: {files.reason(error)}; the same command continues once that is mended"

  def prepare(self) -> tuple[writer_lib.Writer, Generator]:
    """Reads the problems and other folders, makes the folder or reads what an interrupted run left in it.

    Raises:
      InputError: the folder holds another job or cannot be written, or a file given is unusable. DataError: a file
        there is damaged.
    """
    read = shapes.read_problems if isinstance(self.config, LawsConfig) else exclusion.read_problems
    problems = read(self.excluded, self.config)
    known, digests = _read_functions(self.against)
    identity = {
      "config": as_dict(self.config),
      "seed": self.seed,
      "equations": self.num_train,
      "validation": self.num_validation,
      "vocabulary": Vocabulary(self.config.num_variables).hash,
      "excluded_problems": sorted(set(problems.names)),
    }
    if digests:
      identity["against"] = digests
    plan = writer_lib.Plan(self.folder, self.num_validation, self.num_train, self.config.shard_equations)
    info = {"packages": {"python": platform.python_version(), **{name: _version(name) for name in ("sympy", "numpy")}}}
    writer = writer_lib.Writer(
      plan, identity, info=info, unique_by_skeleton=self.config.unique == "skeleton", known_functions=known,
      lost=_read_lost(self.lost_in, identity),
    )
    with self._refused_as_place():
      writer.resume()
    return writer, Generator(self.config, self.seed, problems)


class Outcomes(Protocol):
  """Where outcomes come from: a `workers.Pool`, or what stands for one."""

  def outcomes(self, start: int) -> Iterable[tuple[int, Equation | str]]:
    """`(index, outcome)` from candidate `start` on, in order."""


def fill(writer: writer_lib.Writer, pool: Outcomes, on_outcome: Callable[[], None] = lambda: None) -> None:
  """Gives the writer the outcomes of a pool (anything with its `outcomes`) until all shards are written.

  Raises:
    InputError: when `MAX_FRUITLESS` candidates in a row give no equation.
  """
  if writer.is_done:
    return
  num_fruitless, last = 0, writer.counts["accepted"]
  for index, outcome in pool.outcomes(writer.next_candidate):
    writer.add(index, outcome)
    on_outcome()
    if writer.is_done:
      return
    accepted = writer.counts["accepted"]
    num_fruitless, last = num_fruitless + 1 if accepted == last else 0, accepted
    if num_fruitless == MAX_FRUITLESS:
      why = ", ".join(f"{rule} {count}" for rule, count in writer.counts.most_common(4) if rule != "accepted")
      raise InputError(f"the last {MAX_FRUITLESS} candidates gave no equation, after {last} that did; dropped: {why}")


def _version(package: str) -> str:
  return importlib.import_module(package).__version__


def _read_functions(directories: tuple[str, ...]) -> tuple[bloom.BloomFilter | None, list[str]]:
  """The functions of other folders, and a digest of each folder: what they hold decides our bytes."""
  folders = [folder for directory in directories for folder in writer_lib.find_folders(directory)]
  if not folders:
    return None, []
  total = sum(hashes.shape[1] for folder in folders for hashes in writer_lib.iterate_hashes(folder))
  known, digests = bloom.BloomFilter(total, writer_lib.DUPLICATE_RATE), []
  for folder in folders:
    digest = hashlib.sha256()
    for functions, _ in writer_lib.iterate_hashes(folder):
      known.add(functions.astype(np.uint64))
      digest.update(functions.tobytes())
    digests.append(digest.hexdigest()[:16])
  return known, digests


def _read_lost(path: str | None, identity: dict) -> dict[int, str]:
  if path is None:
    return {}
  place = Path(path)
  manifest = writer_lib.read_manifest(place) if place.is_dir() else writer_lib.read_manifest(place.parent, place.name)
  try:
    held, lost = manifest["identity"], {int(index): rule for index, rule in manifest["lost"].items()}
    there, here = ({key: each[key] for key in ("config", "seed")} for each in (held, identity))
  except (LookupError, TypeError, AttributeError, ValueError) as error:
    raise DataError(f"manifest {path} is damaged: {type(error).__name__}: {error}") from None
  if there != here:
    raise InputError(f"{path} is of another run: {writer_lib.differences(there, here)}")
  return lost
