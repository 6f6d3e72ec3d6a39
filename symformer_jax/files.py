"""Writes files whole or not at all, and by one process at a time."""

from collections.abc import Iterator
import contextlib
import errno
import fcntl
import os
import pathlib
import tempfile
from typing import BinaryIO

from symformer_jax.errors import InputError

# Written and removed to see whether a place takes files: a page, what a disk with any room left has.
PROBE_BYTES = 4096


def check_writable(path: str | os.PathLike, *, flag: str) -> pathlib.Path:
  """Refuses an output path before any work is done.

  Args:
    path: a file that is to be written.
    flag: the argument it came from, for the message.
  Raises:
    InputError: when its folder does not exist, the path is a folder, a pipe or a device, or writing there fails.
  """
  path = pathlib.Path(path)
  folder = path.parent
  try:
    if not folder.is_dir():
      raise InputError(f"{flag}: the folder {shorten(folder)!r} of {shorten(path)!r} does not exist")
    if path.is_dir():
      raise InputError(f"{flag}: {shorten(path)!r} is a folder, expected a file name")
    if path.is_fifo() or not _may_replace(path):  # a pipe's reader would be waited for, behind a link as well
      raise InputError(f"{flag}: {shorten(path)!r} is no regular file, expected a file name")
    if path.exists() and not os.access(path, os.W_OK):
      raise InputError(f"{flag}: no permission to write {shorten(path)!r}")
    # Permissions do not tell all: of `/proc`, of a file system that is read-only, of a full disk, of a long name.
    with open_beside(path) as file:
      file.write(bytes(PROBE_BYTES))
      file.flush()
      os.fsync(file.fileno())
  except InputError:
    raise
  except (OSError, ValueError) as error:  # of a name with a NUL in it
    raise InputError(f"{flag}: cannot write {shorten(path)!r}: {reason(error)}") from None
  return path


def make_folder(path: str | os.PathLike, *, flag: str) -> pathlib.Path:
  """Makes a folder where there is none.

  Raises:
    InputError: where there cannot be one.
  """
  path = pathlib.Path(path)
  try:
    path.mkdir(parents=True, exist_ok=True)
  except (OSError, ValueError) as error:
    raise InputError(f"{flag}: cannot make the folder {shorten(path)!r}: {reason(error)}") from None
  return path


@contextlib.contextmanager
def no_empty_folders(path: str | os.PathLike) -> Iterator[None]:
  """Removes at the end what of a folder and those above it is empty and was not there before: where an argument is
  refused nothing is left.
  """
  path = pathlib.Path(path)
  absent = [folder for folder in (path, *path.parents) if not os.path.exists(folder)]  # no error for a name too long
  try:
    yield
  finally:
    for folder in absent:
      with contextlib.suppress(OSError):  # it is not empty
        folder.rmdir()


def check_regular(path: str | os.PathLike) -> None:
  """Before a file is read: a pipe that nobody writes to would be waited for, and a device may have no end.

  Raises:
    OSError: for what is there, but neither a file nor a folder; of these and of what is missing reading says more.
  """
  path = pathlib.Path(path)
  if path.exists() and not path.is_file() and not path.is_dir():
    raise _not_regular(path)


def _not_regular(path: pathlib.Path) -> OSError:
  return OSError(errno.EINVAL, "is no regular file", str(path))


def _may_replace(path: pathlib.Path) -> bool:
  """Whether a file may take the place of what is there: not of a pipe or a device, of a link to one it may."""
  return path.is_symlink() or not path.exists() or path.is_file() or path.is_dir()


def reason(error: Exception) -> str:
  """What went wrong, without the number and the path that the system's errors carry: messages name files themselves."""
  return str(getattr(error, "strerror", None) or error)


def shorten(path: str | os.PathLike, length: int = 200) -> str:
  """A path for a message of one line: the middle of a very long one is left out."""
  text = str(path)
  return text if len(text) <= length else f"{text[: length // 2]}...{text[-length // 2 :]}"


def _place_of(path: pathlib.Path) -> pathlib.Path:
  """Where a file is written: what a link to a file leads to, be it there or not, and the link stays one."""
  if not path.is_symlink() or (path.exists() and not path.is_file()):
    return path
  if is_circle(path):
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
  return path.resolve()


def is_circle(path: str | os.PathLike) -> bool:
  """Whether a path is a link that leads back to itself: there is no file, and yet something is there."""
  try:
    os.stat(path)
  except OSError as error:
    return error.errno == errno.ELOOP
  except ValueError:  # of a name with a NUL in it
    return False
  return False


@contextlib.contextmanager
def open_beside(path: pathlib.Path) -> Iterator[BinaryIO]:
  """A file in the folder of `path`, under a name such as `replacing` takes; removed at the end."""
  path = _place_of(path)
  handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
  try:
    with os.fdopen(handle, "wb") as file:
      yield file
  finally:
    pathlib.Path(name).unlink(missing_ok=True)


@contextlib.contextmanager
def claimed(path: str | os.PathLike, *, flag: str) -> Iterator[None]:
  """Keeps a place to this process while it writes there: a second one would do the same work, or remove what the first
  has not finished.

  By a lock of the system, which ends with the process, however that ends: on a folder itself, of a file on an empty one
  beside it, `.NAME.lock`. Where a file system knows no locks nobody is kept out.
  Args:
    path: a folder that is there, or a file that may not be there yet.
    flag: the argument it came from, for the message.
  Raises:
    InputError: when another process has it, or the place cannot be opened.
  """
  path = pathlib.Path(path)
  place = path if path.is_dir() else path.with_name(f".{path.name}.lock")
  handle = _lock(place, flag=flag, path=path)
  try:
    yield
  finally:
    if place != path:
      place.unlink(missing_ok=True)  # while it is still ours
    os.close(handle)


def _lock(place: pathlib.Path, *, flag: str, path: pathlib.Path) -> int:
  """A handle of `place` that holds its lock; `path` is what the message names."""
  while True:
    try:
      handle = os.open(place, os.O_RDONLY if place == path else os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:  # such as what a killed process of somebody else has left
      raise InputError(f"{flag}: cannot open {shorten(place)!r}: {reason(error)}") from None
    try:
      fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
      os.close(handle)
      raise InputError(f"{flag}: another process is writing to {shorten(path)!r}; wait for it, or give another place"
                       ) from None
    except OSError:  # no locks on this file system
      return handle
    if place == path or (place.exists() and os.path.samestat(os.fstat(handle), os.stat(place))):
      return handle
    os.close(handle)  # removed by the one that had it before: whoever comes next makes another


@contextlib.contextmanager
def replacing(path: str | os.PathLike) -> Iterator[pathlib.Path]:
  """Gives a temporary path beside `path` and moves it there at the end; after an error nothing is left behind.

  Raises:
    OSError: where the path is a pipe or a device, which stays what it is, or nothing can be written there.
  """
  suffix, path = pathlib.Path(path).suffix, _place_of(pathlib.Path(path))
  if not _may_replace(path):
    raise _not_regular(path)
  # The suffix is kept: libraries choose the format by it.
  handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=suffix, dir=path.parent)
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
  """Writes a UTF-8 text file atomically; what is no letter, such as a byte of a file's name, stands escaped in it."""
  with replacing(path) as temporary:
    temporary.write_text(text, encoding="utf-8", errors="backslashreplace")
