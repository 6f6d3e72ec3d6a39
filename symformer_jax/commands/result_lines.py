"""The result file of a batch: a line of JSON for each data file, written as it is done, so that a batch resumes."""

from collections.abc import Mapping
import contextlib
import json
import os
import pathlib
from typing import IO, Any, NamedTuple

from symformer_jax.errors import InputError
from symformer_jax.results import FAILED


class Line(NamedTuple):
  """What a line tells: the data file, the target, `ok` or `failed`, and why."""

  name: str
  target: str
  status: str
  message: str


def check_line(
  line: bytes | str, *, path: str, number: int, options: Mapping[str, Any], defaults: Mapping[str, Any]
) -> Line:
  """Reads a line.

  Args:
    path: of the file, number: of the line, for messages.
    options: what decides the answers of this run, by flag; defaults: of flags that the line does not know, as there
      were none when it was made.
  Raises:
    InputError: when the line is no result, or was made with other options.
  """
  try:
    record = json.loads(line)
    name, status, before = record["data"], record["status"], dict(record["options"])
    if not isinstance(name, str) or not isinstance(status, str):
      raise ValueError("no names")
    found = Line(name, str(record.get("target") or ""), status, str(record.get("message") or ""))
  except (ValueError, KeyError, TypeError, RecursionError, AttributeError):  # of before options were kept in lines
    raise InputError(f"--resume: line {number} of {path!r} is no result of this command") from None
  before = dict(defaults) | before
  for flag, value in options.items():
    if before.get(flag) != value:
      raise InputError(f"--resume: {path!r} holds results of {_flag(flag, before.get(flag))}, not "
                       f"{_flag(flag, value)}; give another file")
  return found


def split_lines(data: bytes) -> tuple[list[bytes], bytes]:
  """The lines of a result file that have their end, and what stands behind them: a line that a kill has cut off."""
  *lines, rest = data.split(b"\n")
  return lines, rest


class ResultLines:
  """Lines that are there already, and the place for new ones.

  Attributes:
    done: data files that have a line; targets: these with the target of each line; failed: data files of which
      one failed.
  """

  def __init__(
    self, path: str | os.PathLike | None, *, options: Mapping[str, Any], defaults: Mapping[str, Any], is_new: bool
  ):
    """Opens the file; None keeps no lines, only count.

    Args:
      options: what decides the answers of this run, by flag; lines made with others are refused.
      defaults: of flags that are newer than the lines.
      is_new: whether what is there is replaced.
    Raises:
      InputError: when the lines are no results, or were made with other options.
    """
    self.path = None if path is None else pathlib.Path(path)
    self.done: set[str] = set()
    self.targets: set[tuple[str, str]] = set()
    self.failed: set[str] = set()
    self._is_begun = not is_new
    if self.path is None or is_new or not self.path.exists():
      return
    if not self.path.is_file():  # what has no end, or a writer to be waited for
      raise InputError(f"--resume: {str(path)!r} is no regular file")
    data = self.path.read_bytes()
    lines, rest = split_lines(data)
    for number, line in enumerate(lines, start=1):
      found = check_line(line, path=str(self.path), number=number, options=options, defaults=defaults)
      self.done.add(found.name)
      self.targets.add((found.name, found.target))
      if found.status == FAILED:
        self.failed.add(found.name)
    if rest:
      self.path.write_bytes(data.removesuffix(rest))

  def add(self, name: str, line: str, *, target: str = "") -> None:
    """Writes the line of a data file and a target to the disk before it returns; whole, or with an OSError nothing."""
    if self.path is not None:
      # What is replaced stays until there is something in its place.
      mode, self._is_begun = "ab" if self._is_begun else "wb", True
      with open(self.path, mode, buffering=0) as file:
        end = file.tell()
        try:
          _write_all(file, (line + "\n").encode())
        except OSError:
          with contextlib.suppress(OSError):  # what is not even a file of its own, such as a device
            file.truncate(end)
          raise
    self.done.add(name)
    self.targets.add((name, target))


def _write_all(file: IO[bytes], data: bytes) -> None:
  while data:
    data = data[file.write(data) :]
  os.fsync(file.fileno())


def _flag(name: str, value: Any) -> str:
  """A flag as it is given on the command line."""
  if value is None:
    return f"no --{name}"
  if isinstance(value, bool):
    return f"--{name}" if value else f"--no{name}"
  return f"--{name}={','.join(value) if isinstance(value, list) else value}"
