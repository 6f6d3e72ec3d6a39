"""The result file of a batch: a line of JSON for each data file, written as it is done, so that a batch resumes."""

import json
import os
import pathlib

from symformer_jax.errors import InputError
from symformer_jax.results import FAILED


class ResultLines:
  """Lines that are there already, and the place for new ones.

  Attributes:
    done: data files that have a line; has_failed: whether one of them failed.
  """

  def __init__(self, path: str | os.PathLike | None, *, seed: int, is_new: bool):
    """Opens or begins the file; None keeps no lines, only count.

    Args:
      seed: of this run; lines of another one are refused.
      is_new: whether what is there is replaced.
    Raises:
      InputError: when the lines are no results, or come from another seed.
    """
    self.path = None if path is None else pathlib.Path(path)
    self.done: set[str] = set()
    self.has_failed = False
    if self.path is None:
      return
    if is_new or not self.path.exists():
      self.path.write_bytes(b"")
      return
    data = self.path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]  # a last line cut off by a kill is dropped
    for number, line in enumerate(whole.splitlines(), start=1):
      self._note(line, number, seed)
    if whole != data:
      self.path.write_bytes(whole)

  def _note(self, line: bytes, number: int, seed: int) -> None:
    try:
      record = json.loads(line)
      name, status, before = record["data"], record["status"], record["seed"]
    except (ValueError, KeyError, TypeError):
      raise InputError(f"--resume: line {number} of {str(self.path)!r} is no result of this command") from None
    if before != seed:
      raise InputError(f"--resume: {str(self.path)!r} holds results of --seed={before}, not {seed}; give another file")
    self.done.add(name)
    self.has_failed |= status == FAILED

  def add(self, name: str, line: str) -> None:
    """Writes the line of a data file, to the disk before it returns."""
    if self.path is not None:
      with open(self.path, "a", encoding="utf-8") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())
    self.done.add(name)
