"""Reads .npz files of strangers: names, types and sizes of the arrays first, their values only where these will do."""

from collections.abc import Callable, Mapping
import dataclasses
import math
import os
import tokenize
from typing import BinaryIO
import zipfile
import zlib

import numpy as np

from symformer_jax.errors import InputError

SUFFIX = ".npy"
# What a damaged or foreign archive makes zipfile and NumPy raise: text that is no header among it (SyntaxError), an
# unknown compression, an encrypted member, a number of a header that no integer holds.
_UNREADABLE = (ValueError, OSError, EOFError, SyntaxError, TypeError, KeyError, IndexError, OverflowError,
               NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error)
# What Python's own parser, which NumPy reads headers with, makes of other text.
_NO_HEADER = (ValueError, SyntaxError, TypeError, LookupError, OverflowError, RecursionError, tokenize.TokenError)


@dataclasses.dataclass(frozen=True)
class Header:
  """What an array says of itself; of `num_bytes` without its header."""

  shape: tuple[int, ...]
  dtype: np.dtype

  @property
  def num_bytes(self) -> int:
    return math.prod(self.shape) * self.dtype.itemsize


def read(
  file: str | os.PathLike | BinaryIO, check: Callable[[Mapping[str, Header]], None]
) -> dict[str, np.ndarray]:
  """The arrays of a file by name.

  Nothing is unpickled, and nothing unpacked beyond the size that a header tells: a small file may claim to hold much.
  Args:
    file: its path, or the file opened for reading.
    check: asked before any values are read; raises what the caller makes of names, shapes and types that will not do.
  Raises:
    InputError: when it is no archive of plain arrays.
  """
  try:
    with zipfile.ZipFile(file) as archive:
      members = archive.infolist()
      headers = {_array_name(member): _read_header(archive, member) for member in members}
      if len(headers) < len(members):  # of members of one name only the last is found by it
        raise ValueError("two arrays have one name")
  except _UNREADABLE as error:
    raise _not_readable(error) from None
  check(headers)
  try:
    with zipfile.ZipFile(file) as archive:
      return {name: _read_values(archive, name) for name in headers}
  except _UNREADABLE as error:
    raise _not_readable(error) from None


def _not_readable(error: Exception) -> InputError:
  if isinstance(error, InputError):
    return error
  return InputError(f"cannot be read as npz of plain arrays: {' '.join(str(error).split())}")


def _array_name(member: zipfile.ZipInfo) -> str:
  if not member.filename.endswith(SUFFIX):
    raise InputError(f"cannot be read as npz of plain arrays: {member.filename!r} in it is no array")
  return member.filename.removesuffix(SUFFIX)


def _read_header(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Header:
  with archive.open(member) as file:
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
      raise ValueError(f"{member.filename!r} is of format {version}, expected (1, 0) or (2, 0)")
    try:
      shape, _, dtype = readers[version](file)
    except _NO_HEADER:
      raise ValueError(f"{member.filename!r} has no header of an array") from None
    header = Header(shape, dtype)
    if dtype.hasobject:
      raise ValueError(f"{member.filename!r} holds Python objects, which are not read")
    if header.num_bytes != member.file_size - file.tell():
      raise ValueError(f"{member.filename!r} does not hold what its header says")
  return header


def _read_values(archive: zipfile.ZipFile, name: str) -> np.ndarray:
  with archive.open(name + SUFFIX) as file:
    return np.lib.format.read_array(file, allow_pickle=False)
