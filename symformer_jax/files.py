"""Writes files whole or not at all."""

from collections.abc import Iterator
import contextlib
import os
import pathlib
import tempfile

from symformer_jax.errors import InputError


def check_writable(path: str | os.PathLike, *, flag: str) -> pathlib.Path:
  """Refuses an output path before any work is done.

  Args:
    path: a file that is to be written.
    flag: the argument it came from, for the message.
  Raises:
    InputError: when its folder does not exist or cannot be written, or the path is a folder.
  """
  path = pathlib.Path(path)
  folder = path.parent
  if not folder.is_dir():
    raise InputError(f"{flag}: the folder {str(folder)!r} of {str(path)!r} does not exist")
  if path.is_dir():
    raise InputError(f"{flag}: {str(path)!r} is a folder, expected a file name")
  if not os.access(folder, os.W_OK):
    raise InputError(f"{flag}: no permission to write into the folder {str(folder)!r}")
  return path


@contextlib.contextmanager
def replacing(path: str | os.PathLike) -> Iterator[pathlib.Path]:
  """Gives a temporary path beside `path` and moves it there at the end; after an error nothing is left behind."""
  path = pathlib.Path(path)
  # The suffix is kept: libraries choose the format by it.
  handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
  os.close(handle)
  temporary = pathlib.Path(name)
  try:
    yield temporary
    # mkstemp makes private files; the result gets the permissions that a plain open() would give.
    mask = os.umask(0)
    os.umask(mask)
    temporary.chmod(0o666 & ~mask)
    temporary.replace(path)
  finally:
    temporary.unlink(missing_ok=True)


def remove_leftovers(folder: pathlib.Path) -> None:
  """Removes what `replacing` leaves in a folder when its process is killed; nobody may be writing there."""
  for path in folder.glob(".*-????????*"):  # the name's stem, eight random letters, the suffix
    path.unlink()


def write_text(path: str | os.PathLike, text: str) -> None:
  """Writes a UTF-8 text file atomically."""
  with replacing(path) as temporary:
    temporary.write_text(text, encoding="utf-8")
