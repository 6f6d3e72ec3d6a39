"""Reads tables of points from files and refuses what cannot be used, naming the place.

Text is parsed as numbers by our own rules, not guessed by the reader: every cell of a used column must be a finite
number, and a row that is not is named by its line in the file.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import glob
import io
import keyword
import pathlib
import re
import warnings

import numpy as np
import pandas as pd

from symformer_jax import files, npz
from symformer_jax.errors import InputError
from symformer_jax.language import parser


class TableError(InputError):
  """A file that cannot be used, named, and why."""


MIN_POINTS = 5
# A small file may unpack to anything; this is 500 million numbers, far beyond what a search can use.
MAX_NPZ_BYTES = 4 << 30
SUFFIXES = (".csv", ".tsv", ".parquet", ".npz")


@dataclasses.dataclass(frozen=True)
class Table:
  """Points of one file, in the user's units.

  Attributes:
    path: the file.
    features: names of the columns of x, Python identifiers.
    target: name of y.
    x: [N, D] float64; y: [N] float64; all finite.
    weights: of the rows [N], above 0, relative; None for equal ones.
    notes: what was changed on the way, one sentence each: renamed columns, columns and rows left out.
  """

  path: str
  features: tuple[str, ...]
  target: str
  x: np.ndarray
  y: np.ndarray
  notes: tuple[str, ...] = ()
  weights: np.ndarray | None = None

  @property
  def points(self) -> tuple[np.ndarray, ...]:
    """`(x, y)` or `(x, y, weights)`, as `inference.search` takes them."""
    return (self.x, self.y) if self.weights is None else (self.x, self.y, self.weights)


def find_files(patterns: Sequence[str]) -> list[str]:
  """Files that names and globs stand for, each once, those of a glob in order of their names.

  Raises:
    InputError: for a name or glob without a file.
  """
  found: list[str] = []
  for pattern in patterns:
    try:
      # A file whose name looks like a glob is meant literally.
      matches = [pattern] if pathlib.Path(pattern).exists() else sorted(glob.glob(pattern, recursive=True))
    except OSError as error:  # a name that is too long
      raise InputError(f"--data: cannot look for {files.shorten(pattern)!r}: {error.strerror}") from None
    if not matches:
      what = "no file matches" if any(c in pattern for c in "*?[") else "no such file:"
      raise InputError(f"--data: {what} {pattern!r}")
    found += matches
  if not found:
    raise InputError("--data: expected a file, got none")
  return list(dict.fromkeys(found))


def read_table(
  path: str, *, target: str | None = None, features: Sequence[str] | None = None, drop_missing: bool = False,
  weights: str | None = None, sigma: str | None = None,
) -> Table:
  """Reads one file.

  Args:
    path: .csv, .tsv, .parquet or .npz. A text file without a header row gets columns x0, x1, ... and y.
    target: name of y; default the last column that has numbers.
    features: names of the columns of x, in the order wanted; default all others that have numbers.
    drop_missing: leave out rows with an empty or unreadable cell in a used column, instead of refusing them.
    weights: name of the column of weights, at least 0; or sigma: of standard deviations of y, above 0, whose weights
      are 1/sigma**2. That column is then no feature unless it is named as one.
  Raises:
    TableError: says what is wrong in which file, and where.
  """
  if weights and sigma:
    raise InputError("--weights and --sigma: expected one of them, a row has one weight")
  weigher = _Weigher(weights, "--weights") if weights else _Weigher(sigma, "--sigma") if sigma else None
  try:
    frame, first_line = _read(pathlib.Path(path))
    return _table(path, frame, first_line, target, features, drop_missing, weigher)
  except InputError as error:
    raise TableError(f"{path}: {error}") from None


# --- reading ---------------------------------------------------------------------------------------------------


def _read(path: pathlib.Path) -> tuple[pd.DataFrame, int]:
  """All columns, and the line in the file of the first row (0: rows are counted, not lines)."""
  if path.is_dir():
    raise InputError("is a folder, expected a file; a glob such as 'folder/*.csv' takes all files in it")
  if not path.exists():
    raise InputError("no such file")
  readers = {".csv": _read_text, ".tsv": _read_text, ".parquet": _read_parquet, ".npz": _read_npz}
  if path.suffix.lower() not in readers:
    raise InputError(f"unknown kind of file {path.suffix!r}, expected one of {', '.join(SUFFIXES)}")
  try:
    return readers[path.suffix.lower()](path)
  except PermissionError:
    raise InputError("no permission to read it") from None
  except MemoryError:
    raise InputError(f"does not fit into memory: {path.stat().st_size / 1e9:.1f} GB; give a part of its rows") from None


def _read_text(path: pathlib.Path) -> tuple[pd.DataFrame, int]:
  try:
    text = path.read_text(encoding="utf-8-sig")  # spreadsheets put a byte order mark first
  except UnicodeDecodeError as error:
    raise InputError(f"is no UTF-8 text (byte {error.start}); save it as UTF-8") from None
  first = next((line for line in text.splitlines() if line.strip()), "")
  if not first:
    raise InputError("the file is empty")
  separator = _separator(first, path.suffix.lower())
  try:
    with warnings.catch_warnings(action="ignore"):  # what it has to say that matters is said by the checks below
      frame = pd.read_csv(io.StringIO(text), sep=separator, dtype=str, keep_default_na=False, skipinitialspace=True,
                          header=None, skip_blank_lines=False)
  except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
    raise InputError(f"cannot be read as a table: {' '.join(str(error).split())}") from None
  frame = _strip_blank_lines(frame.fillna(""))
  names = frame.iloc[0].tolist()
  if all(_is_number(name) for name in names):
    frame.columns = [*(f"x{i}" for i in range(frame.shape[1] - 1)), "y"]
    return frame, 1
  frame.columns = names
  return frame.iloc[1:], 1


def _separator(first_line: str, suffix: str) -> str:
  if suffix == ".tsv" or ("\t" in first_line and "," not in first_line):
    return "\t"
  return ";" if ";" in first_line and "," not in first_line else ","


def _strip_blank_lines(frame: pd.DataFrame) -> pd.DataFrame:
  """Leaves out lines without any cell; the index keeps counting lines."""
  return frame[~(frame == "").all(axis=1)]


def _is_number(cell: str) -> bool:
  try:
    float(cell.strip().strip('"'))
  except ValueError:
    return False
  return True


def _read_parquet(path: pathlib.Path) -> tuple[pd.DataFrame, int]:
  try:
    return pd.read_parquet(path), 0
  except ImportError:
    raise InputError("reading .parquet needs pyarrow: pip install pyarrow") from None
  except (ValueError, OSError) as error:
    raise InputError(f"cannot be read as parquet: {' '.join(str(error).split())}") from None


def _read_npz(path: pathlib.Path) -> tuple[pd.DataFrame, int]:
  parts = npz.read(path, _check_arrays)
  columns: dict[str, np.ndarray] = {}
  for name, array in parts.items():
    if array.ndim == 1:
      columns[name] = array
    else:
      columns |= {f"{name}{i}": array[:, i] for i in range(array.shape[1])}
  if len({len(column) for column in columns.values()}) > 1:
    sizes = ", ".join(f"{name} {len(column)}" for name, column in columns.items())
    raise InputError(f"arrays differ in length: {sizes}")
  # A target called y stands last wherever it is stored.
  order = sorted(columns, key=lambda name: name in ("y", "Y", "target"))
  return pd.DataFrame({name: columns[name] for name in order}), 0


def _check_arrays(headers: Mapping[str, npz.Header]) -> None:
  for name, header in headers.items():
    if len(header.shape) not in (1, 2):
      raise InputError(f"array {name!r} has {len(header.shape)} dimensions, expected 1 (a column) or 2 (columns)")
  if sum(header.num_bytes for header in headers.values()) > MAX_NPZ_BYTES:
    raise InputError(f"holds more than {MAX_NPZ_BYTES >> 30} GB of numbers; give a part of its rows")


# --- checking --------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Weigher:
  """The column that says how much rows count, and the flag that names it."""

  name: str
  flag: str

  def weigh(self, column: np.ndarray, place: Callable[[int], str]) -> np.ndarray:
    """Weights [N], at least 0, of a column [N] of finite numbers; `place` says where a row stands."""
    is_sigma = self.flag == "--sigma"
    is_wrong = column <= 0 if is_sigma else column < 0
    if is_wrong.any():
      row, least = int(np.argmax(is_wrong)), "above 0" if is_sigma else "of at least 0"
      raise InputError(f"{place(row)}, column {self.name!r}: {self.flag} expects numbers {least}, got {column[row]:g}")
    if not column.any():
      raise InputError(f"{self.flag}: every number of column {self.name!r} is 0")
    # Relative to the largest: no square leaves the range of double precision upwards.
    return (column.min() / column) ** 2 if is_sigma else column / column.max()


def _table(path, frame, first_line, target, features, drop_missing, weigher: _Weigher | None) -> Table:
  frame.columns = [str(name).strip() for name in frame.columns]
  repeated = frame.columns[frame.columns.duplicated()]
  if len(repeated):
    raise InputError(f"two columns are called {repeated[0]!r}")
  numbers = frame.apply(_to_numbers)
  target, features, notes = _choose_columns(frame, numbers, target, features, weigher)
  used = [*features, target]
  read = used if weigher is None or weigher.name in used else [*used, weigher.name]
  is_bad = ~np.isfinite(numbers[read].to_numpy(np.float64))
  if is_bad.any():
    if not drop_missing:
      raise InputError(_describe_bad_cell(frame, read, is_bad, first_line))
    is_kept = ~is_bad.any(axis=1)
    notes.append(f"{np.sum(~is_kept)} of {len(frame)} rows left out: no finite number in a used column")
    numbers = numbers[is_kept]
  numbers, weights = _weigh(numbers, weigher, first_line, notes)
  x, y = numbers[features].to_numpy(np.float64), numbers[target].to_numpy(np.float64)
  _check_points(y, target)
  safe = _safe_names(used)
  notes += [f"column {old!r} is called {new} in formulas" for old, new in zip(used, safe, strict=True) if old != new]
  return Table(str(path), tuple(safe[:-1]), safe[-1], x, y, tuple(notes), weights)


def _weigh(
  numbers: pd.DataFrame, weigher: _Weigher | None, first_line: int, notes: list[str]
) -> tuple[pd.DataFrame, np.ndarray | None]:
  """The rows that count, and their weights; a note tells of others."""
  if weigher is None or not len(numbers):
    return numbers, None
  weights = weigher.weigh(
    numbers[weigher.name].to_numpy(np.float64), lambda row: _place(numbers.index[row], row, first_line))
  is_used = weights > 0
  if not is_used.all():
    notes.append(f"{np.sum(~is_used)} of {len(weights)} rows left out: their weight is 0")
  return numbers[is_used], weights[is_used]


def _check_points(y: np.ndarray, target: str) -> None:
  if len(y) < MIN_POINTS:
    raise InputError(f"too few points: expected at least {MIN_POINTS} rows, got {len(y)}")
  if np.ptp(y) == 0:
    raise InputError(f"the target {target!r} is constant: every value is {y[0]:g}")


def _place(label: int, row: int, first_line: int) -> str:
  """Where a row stands: its line in a text file, else its number from 1; `label` is that of the frame."""
  return f"line {label + first_line}" if first_line else f"row {row + 1}"


def _to_numbers(column: pd.Series) -> pd.Series:
  """float64, NaN where a cell is no number."""
  if column.dtype.kind in "iufb":
    return column.astype(np.float64)
  return pd.to_numeric(column, errors="coerce").astype(np.float64)


def _choose_columns(
  frame, numbers, target, features, weigher: _Weigher | None
) -> tuple[str, list[str], list[str]]:
  """Target, features and notes; columns without any number are left aside unless asked for, and so are weights."""
  weighing = [weigher] if weigher else []
  asked = [("--target", name) for name in [target] if target] + [("--features", name) for name in features or []]
  for flag, name in [*asked, *((w.flag, w.name) for w in weighing)]:
    if name not in frame.columns:
      raise InputError(f"{flag}: no column {name!r}, expected one of {', '.join(map(repr, frame.columns))}")
  numeric = [name for name in frame.columns
             if numbers[name].notna().any() and name not in [w.name for w in weighing]]
  if not len(frame):
    raise InputError("the table has no rows")
  if not numeric:
    raise InputError(f"no numeric column: none of {', '.join(map(repr, frame.columns))} holds a number")
  target = target or numeric[-1]
  if target in [w.name for w in weighing]:
    raise InputError(f"{target!r} is both the target and the column of {weigher.flag}")
  if features and target in features:
    raise InputError(f"{target!r} is both the target and a feature")
  if features and len(set(features)) < len(features):
    raise InputError("--features: a column is named twice")
  chosen = list(features) if features else [name for name in numeric if name != target]
  if not chosen:
    raise InputError(f"no column left to explain {target!r}: expected at least two numeric columns")
  notes = []
  if not features:
    aside = [name for name in frame.columns if name not in [*chosen, target, *(w.name for w in weighing)]]
    notes = [f"column {name!r} left aside: it holds no number" for name in aside]
  return target, chosen, notes


def _describe_bad_cell(frame: pd.DataFrame, used: list[str], is_bad: np.ndarray, first_line: int) -> str:
  row, column = (int(i) for i in np.argwhere(is_bad)[0])
  cell = frame[used[column]].iloc[row]
  where = _place(frame.index[row], row, first_line)
  is_missing = cell is None or cell != cell or str(cell).strip().lower() in ("", "na", "n/a", "nan", "null", "none")
  what = "a missing value" if is_missing else f"{str(cell)!r}"
  others = int(is_bad.any(axis=1).sum()) - 1
  more = f" (and {others} more such rows)" if others else ""
  return f"{where}, column {used[column]!r}: expected a finite number, got {what}{more}; " \
         f"--drop_missing leaves such rows out"


def _safe_names(names: Sequence[str]) -> list[str]:
  """Python identifiers for column names, distinct, none of them a keyword or a function of formulas."""
  taken = {*parser.FUNCTIONS, *parser.CONSTANTS, *keyword.kwlist}
  safe: list[str] = []
  for name in names:
    new = name
    if not name.isidentifier():
      new = re.sub(r"\W+", "_", name).strip("_") or "column"
      new = f"x{new}" if new[0].isdigit() else new
    while new in taken:
      new += "_"
    taken.add(new)
    safe.append(new)
  return safe
