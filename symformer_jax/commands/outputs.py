"""Where the answers of several targets go: a file for each, or lines of one."""

from collections.abc import Sequence
import os
import pathlib
import re

from symformer_jax import files
from symformer_jax.errors import InputError

LINES = ".jsonl"
# With what a user chose before it and the suffix after it, still a file's name on any system.
_MAX_NAME = 60


def paths_of(path: str, targets: Sequence[str]) -> list[str]:
  """A path for each target: `fit.json` itself for a single one, else `fit-height.json`, `fit-weight.json`, ...

  Names are made of letters, digits, dots, dashes and underscores, and are distinct. Lines of JSON share their file.
  """
  whole = pathlib.Path(path)
  if len(targets) == 1 or whole.suffix == LINES:
    return [path] * len(targets)
  found: list[str] = []
  for target in targets:
    name = re.sub(r"[^\w.-]+", "_", target)[:_MAX_NAME].strip("._-") or "target"
    while (place := str(whole.with_name(f"{whole.stem}-{name}{whole.suffix}"))) in found:
      name += "_"
    found.append(place)
  return found


def check_new(path: str, targets: Sequence[str], *, may_replace: bool) -> None:
  """Refuses result files that cannot be written, or are there already, before any work is done."""
  if len(targets) == 1:
    return  # that path was looked at as it was given
  for place in dict.fromkeys(paths_of(path, targets)):
    if files.check_writable(place, flag="--out").exists() and not may_replace:
      raise InputError(f"--out: {place!r} exists; --overwrite replaces it")


def check_apart(places: Sequence[str], inputs: Sequence[str], *, flag: str) -> None:
  """Refuses results that would be written into a file that is read, which a link may make of another name.

  Args:
    places: files to be written; inputs: files that are read.
    flag: the argument that names the places, for the message.
  Raises:
    InputError: naming both.
  """
  read = {(found.st_dev, found.st_ino): path for path in inputs if (found := _stat(path))}
  for place in places:
    found = _stat(place)
    if found and (path := read.get((found.st_dev, found.st_ino))):
      which = "is" if place == path else f"is a link to {files.shorten(path)!r}, which is"
      raise InputError(f"{flag}: {files.shorten(place)!r} {which} read")


def _stat(path: str) -> os.stat_result | None:
  """What a path leads to; None where there is nothing."""
  try:
    return os.stat(path)
  except (OSError, ValueError):  # of a name with a NUL in it
    return None
