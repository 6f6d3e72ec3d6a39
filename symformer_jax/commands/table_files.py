"""Files of tables by their kind: text, Excel workbooks, parquet, archives of arrays."""

from collections.abc import Callable, Mapping
import contextlib
import dataclasses
import pathlib
import re
from typing import Any
import warnings
import zipfile

import numpy as np
import pandas as pd

from symformer_jax import files, npz
from symformer_jax.commands import cells, grids, text_tables
from symformer_jax.errors import InputError

_NO_WORKBOOK = "is no workbook (.xlsx): damaged, locked by a password, or another kind of file under that name"
MAX_SHEET_ROWS = 1 << 20  # of every spreadsheet
# Parts of a workbook from this size on unpack to at most so many times their size: the XML of a sheet full of
# zeros is fifteen times as large as packed, nothing but blanks a thousand times.
LARGE_PART, MAX_RATIO = 100 << 20, 200
# Rows in the XML of a sheet.
_ROW, _NUMBER = re.compile(rb"<(?:\w+:)?row\b([^<>]*)>"), re.compile(rb"""\sr=["'](-?[0-9]+)["']""")
_HIDDEN = re.compile(rb"""\shidden=["'](?:1|true)["']""")


@dataclasses.dataclass(frozen=True)
class Reading:
  """How a file is read.

  Attributes:
    separator: between the columns of text, None to find it; sheet: of a workbook, None for the first.
    max_bytes: what an archive may unpack to.
  """

  separator: str | None = None
  sheet: str | None = None
  max_bytes: int = 4 << 30


def read(path: pathlib.Path, how: Reading) -> grids.Grid:
  """The columns of a file.

  Raises:
    InputError: says what is wrong with the file, without its name.
  """
  try:
    if path.is_dir():
      raise InputError("is a folder, expected a file; a glob such as 'folder/*.csv' takes all files in it")
    if files.is_circle(path):
      raise InputError("is a link that leads back to itself")
    if not path.exists():
      raise InputError("no such file")
    if not path.is_file():  # a pipe that nobody writes to would be waited for
      raise InputError("is no regular file, expected one on a disk")
    if path.suffix.lower() not in _READERS:
      raise InputError(f"unknown kind of file {path.suffix!r}, expected one of {', '.join(SUFFIXES)}")
    grid = _READERS[path.suffix.lower()](path, how)
    return dataclasses.replace(grid, notes=(*_unused(path, how), *grid.notes))
  except PermissionError:
    raise InputError("no permission to read it") from None
  except OSError as error:
    raise InputError(f"cannot be read: {files.reason(error)}") from None
  except MemoryError:
    raise InputError(f"does not fit into memory: {path.stat().st_size / 1e9:.1f} GB; give a part of its rows") from None


def _unused(path: pathlib.Path, how: Reading) -> tuple[str, ...]:
  """What was asked for that has no meaning for a file of this kind: in a batch it may be meant for the others."""
  reader, notes = _READERS[path.suffix.lower()], []
  if how.sheet is not None and reader != _read_excel:
    notes.append("--sheet is not used: this is no workbook")
  if how.separator is not None and reader != _read_text:
    notes.append("--separator is not used: this is no text")
  return tuple(notes)


def _read_text(path: pathlib.Path, how: Reading) -> grids.Grid:
  return text_tables.read(path, separator=how.separator)


def _read_excel(path: pathlib.Path, how: Reading) -> grids.Grid:
  """One sheet of a workbook; values that formulas had when it was saved."""
  try:
    import openpyxl  # noqa: F401  (of the extra)
  except ImportError:
    raise InputError("reading .xlsx needs openpyxl: pip install '.[xlsx]'") from None
  _check_unpacked(path, how.max_bytes)
  try:
    with warnings.catch_warnings(action="ignore"), contextlib.closing(_open_workbook(path)) as book:
      names = [each.title for each in book.worksheets]
      if not names:
        raise InputError("the workbook has no sheet with cells")
      if how.sheet is not None and how.sheet not in names:
        raise InputError(f"--sheet: no sheet {how.sheet!r}, expected one of {', '.join(map(repr, names))}")
      sheet = names[0] if how.sheet is None else how.sheet
      rows = _rows_of(book[sheet])
      hidden = [row for row in _hidden_rows(book[sheet]) if row <= len(rows) and rows[row - 1]]
  except (InputError, MemoryError):
    raise
  except Exception as error:  # damaged and foreign workbooks make openpyxl raise whatever its parts raise
    raise InputError(f"cannot be read as xlsx: {' '.join(str(error).split()) or type(error).__name__}") from None
  others = [name for name in names if name != sheet]
  notes = [f"sheet {sheet!r} is read, not {', '.join(map(repr, others))}; --sheet chooses"] \
    if others and how.sheet is None else []
  elsewhere = f"; sheet {sheet!r} was read, --sheet takes another one: {', '.join(map(repr, others))}" if notes else ""
  if hidden:
    which = f"{len(hidden)} rows that are hidden are" if len(hidden) > 1 else "a row that is hidden is"
    notes.append(f"{which} read as the others are, first row {hidden[0]}")
  try:
    grid = grids.from_rows(rows, range(1, len(rows) + 1), word="row", notes=notes)
  except InputError as error:
    raise InputError(f"{error}{elsewhere}") from None
  # Programs that write workbooks leave it to others to compute them.
  empty = "; what formulas give is in a workbook once a spreadsheet has opened and saved it"
  return dataclasses.replace(grid, elsewhere=elsewhere, empty=empty)


def _open_workbook(path: pathlib.Path) -> Any:
  """As `openpyxl.load_workbook`, which fails of a sheet that is to hold a chart and holds none."""
  from openpyxl.reader import excel

  class Reader(excel.ExcelReader):
    def read_chartsheet(self, sheet: Any, rel: Any) -> None:
      with contextlib.suppress(AttributeError):  # the sheet is there by then
        super().read_chartsheet(sheet, rel)

  reader = Reader(path, read_only=True, keep_vba=False, data_only=True, keep_links=False, rich_text=False)
  reader.read()
  return reader.wb


def _rows_of(sheet: Any) -> list[list[Any]]:
  """Cells of a sheet of openpyxl, each row up to its last one that is not empty: a stray cell in the last corner of a
  sheet would make a table of 10**10 cells.

  Raises:
    InputError: for a row beyond the last one that a sheet has; before it all rows that are not there are made.
  """
  sheet.reset_dimensions()  # what a sheet says of its size may be wrong
  rows: list[list[Any]] = []
  for row in sheet.rows:
    if len(rows) == MAX_SHEET_ROWS:
      raise InputError(f"cannot be read as xlsx: a row beyond row {MAX_SHEET_ROWS}, the last one of a sheet")
    found = [_value_of(cell) for cell in row]
    while found and found[-1] == "":
      found.pop()
    rows.append(found)
  return rows


def _hidden_rows(sheet: Any) -> list[int]:
  """Numbers of the rows that a sheet of openpyxl hides, as a filter does; in a sheet that is read as a stream
  they are told in its XML alone.

  Raises:
    InputError: for rows whose numbers do not ascend, some of which openpyxl leaves out.
  """
  hidden, last, rest = [], 0, b""
  with sheet._get_source() as source:
    while chunk := source.read(1 << 20):
      text, end = rest + chunk, 0
      for found in _ROW.finditer(text):
        end, number = found.end(), _NUMBER.search(found[1])
        row = int(number[1]) if number else last + 1
        if row <= last:
          raise InputError(f"cannot be read as xlsx: row {row} stands after row {last}")
        last = row
        if _HIDDEN.search(found[1]):
          hidden.append(row)
      rest = text[max(text.rfind(b"<"), end) :]
  return hidden


def _value_of(cell: Any) -> Any:
  """A cell as text, number, date or truth; whole numbers without a point, errors as no number, like what is missing."""
  value = "" if cell.value is None else cell.value
  if isinstance(value, str):
    return cells.ErrorCell(value.strip()) if cell.data_type == "e" else value.strip()
  return int(value) if isinstance(value, float) and value.is_integer() else value


def _check_unpacked(path: pathlib.Path, max_bytes: int) -> None:
  """Refuses what is no workbook, and one that unpacks to more than a table needs, before it is unpacked."""
  try:
    with zipfile.ZipFile(path) as archive:
      members = archive.infolist()
  except zipfile.BadZipFile:
    raise InputError(_NO_WORKBOOK) from None
  except (OSError, ValueError, NotImplementedError) as error:
    raise InputError(f"cannot be read as xlsx: {' '.join(str(error).split())}") from None
  if not any(member.filename == "[Content_Types].xml" for member in members):  # of every workbook
    raise InputError(_NO_WORKBOOK)
  num_bytes = sum(member.file_size for member in members)
  if num_bytes > max_bytes:
    raise InputError(f"unpacks to more than {max_bytes >> 30} GB; give a part of its rows")
  for member in members:
    if member.file_size > max(LARGE_PART, MAX_RATIO * member.compress_size):
      raise InputError(f"cannot be read as xlsx: {grids.clean_name(member.filename)!r} unpacks to more than "
                       f"{MAX_RATIO} times its size, as the XML of no sheet does")


def _read_parquet(path: pathlib.Path, how: Reading) -> grids.Grid:
  del how
  try:
    frame = pd.read_parquet(path)
  except ImportError:
    raise InputError("reading .parquet needs pyarrow: pip install pyarrow") from None
  except MemoryError:
    raise
  except Exception as error:  # what pandas notes of columns in the file is anybody's: KeyError, TypeError, ...
    if (name := _find_repeated(path)) is not None:
      raise InputError(f"two columns are called {grids.clean_name(name)!r}") from None
    kind = "" if isinstance(error, ValueError | OSError) else f"{type(error).__name__}: "
    raise InputError(f"cannot be read as parquet: {kind}{' '.join(str(error).split())}") from None
  found = [*_columns_of_index(frame), *((name, frame.iloc[:, i]) for i, name in enumerate(frame.columns))]
  names = tuple(grids.clean_name(name) or f"column {i + 1}" for i, (name, _) in enumerate(found))
  return grids.Grid(names, tuple(_plain(series) for _, series in found), np.arange(1, len(frame) + 1))


def _find_repeated(path: pathlib.Path) -> str | None:
  """The name that two columns of a parquet have, which then cannot be read; None where there is none."""
  with contextlib.suppress(ImportError, ValueError, OSError):  # the reader says what is wrong
    from pyarrow import parquet

    names = parquet.read_schema(path).names
    return next((name for i, name in enumerate(names) if name in names[:i]), None)
  return None


def _columns_of_index(frame: pd.DataFrame) -> list[tuple[Any, pd.Series]]:
  """Levels of an index in which one has a name, for that is a column of the user's; but for those that stand among the
  columns again.
  """
  if all(name is None for name in frame.index.names):
    return []
  levels = [(f"level_{i}" if name is None else name, frame.index.get_level_values(i))
            for i, name in enumerate(frame.index.names)]
  return [(name, level.to_series()) for name, level in levels
          if not any(name == other and level.equals(pd.Index(frame.iloc[:, i]))
                     for i, other in enumerate(frame.columns))]


def _plain(series: pd.Series) -> np.ndarray:
  """Numbers and moments by NumPy; anything else as objects."""
  if isinstance(series.dtype, pd.DatetimeTZDtype):
    series = series.dt.tz_convert("UTC").dt.tz_localize(None)
  if series.dtype.kind in "mM":
    return series.to_numpy()
  is_bool = pd.api.types.is_bool_dtype(series.dtype)  # what they are read as is said, as of texts
  if pd.api.types.is_numeric_dtype(series.dtype) and not is_bool and not pd.api.types.is_complex_dtype(series.dtype):
    values = series.to_numpy(np.float64, na_value=np.nan)
    if series.dtype.kind not in "iu" or not (np.abs(values) >= cells.LAST_WHOLE).any():
      return values
    # What may be rounded is kept: it is told of.
    return series.to_numpy(series.dtype.kind + "8") if not series.hasnans else _objects(series)
  return _objects(series)


def _objects(series: pd.Series) -> np.ndarray:
  return np.frompyfunc(_plain_cell, 1, 1)(np.asarray(series.astype(object), object))


def _plain_cell(cell: Any) -> Any:
  """A cell that equals itself or not, in one word: an array says it of each part, pandas' missing value of nothing."""
  return None if cell is pd.NA else cell.tolist() if isinstance(cell, np.ndarray) else cell


def _read_npz(path: pathlib.Path, how: Reading) -> grids.Grid:
  parts = npz.read(path, lambda headers: _check_arrays(headers, how.max_bytes))
  columns: list[tuple[str, np.ndarray]] = []  # two of one name are refused where they are used, as those of text are
  for name, array in parts.items():
    columns += [(name, array)] if array.ndim == 1 else [(f"{name}{i}", part) for i, part in enumerate(array.T)]
  if len({len(column) for _, column in columns}) > 1:
    sizes = ", ".join(f"{name} {len(column)}" for name, column in columns)
    raise InputError(f"arrays differ in length: {sizes}")
  # A target called y stands last wherever it is stored.
  order = sorted(columns, key=lambda column: column[0] in ("y", "Y", "target"))
  found = [array if array.dtype.kind in "iufb" else _texts(array) for _, array in order]
  num_rows = len(found[0]) if found else 0
  names = tuple(grids.clean_name(name) or f"column {i + 1}" for i, (name, _) in enumerate(order))
  # Of an array in two dimensions the numbers of the columns are all that tells them apart.
  return grids.Grid(names, tuple(found), np.arange(1, num_rows + 1),
                    has_names=any(array.ndim == 1 for array in parts.values()))


def _texts(array: np.ndarray) -> np.ndarray:
  """Texts as objects; bytes as Latin letters, which any are."""
  return np.char.decode(array, "latin-1").astype(object) if array.dtype.kind == "S" else array.astype(object)


# Why arrays of other kinds than numbers and text are no columns.
_UNUSABLE = {
  "c": "is complex; give real and imaginary parts as arrays of their own",
  "M": "holds dates; give numbers, such as years",
  "m": "holds times; give numbers, such as seconds", "V": "is no array of numbers", "O": "is no array of numbers"}


def _check_arrays(headers: Mapping[str, npz.Header], max_bytes: int) -> None:
  for name, header in headers.items():
    if len(header.shape) not in (1, 2):
      raise InputError(f"array {name!r} has {len(header.shape)} dimensions, expected 1 (a column) or 2 (columns)")
    if header.dtype.kind in _UNUSABLE:
      raise InputError(f"array {name!r} {_UNUSABLE[header.dtype.kind]}")
  if sum(header.num_bytes for header in headers.values()) > max_bytes:
    raise InputError(f"holds more than {max_bytes >> 30} GB of numbers; give a part of its rows")


_READERS: dict[str, Callable[[pathlib.Path, Reading], grids.Grid]] = {
  ".csv": _read_text, ".tsv": _read_text, ".txt": _read_text, ".dat": _read_text, ".xlsx": _read_excel,
  ".xlsm": _read_excel, ".parquet": _read_parquet, ".npz": _read_npz}
SUFFIXES = tuple(_READERS)
