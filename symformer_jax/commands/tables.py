"""Reads tables of points from files and refuses what cannot be used, naming the place.

What stands between columns, which mark is the decimal one, and which cells are dates is decided by the whole file
(`text_tables`, `cells`), and said in a note where another reader might decide otherwise. Every cell of a used column
must then be a finite number; a row that is not is named by its line in the file.
"""

from collections.abc import Callable, Mapping, Sequence
import csv
import dataclasses
import glob
import os
import pathlib
import re
from typing import Any, NamedTuple

import numpy as np

from symformer_jax import files
from symformer_jax.commands import bad_cells, cells, grids, table_files, text_tables, times
from symformer_jax.engine.rows import LARGEST, SMALLEST
from symformer_jax.errors import InputError, suggest


class TableError(InputError):
  """A file that cannot be used, named, and why."""


MIN_POINTS = 5
# A small file may unpack to anything; this is 500 million numbers, far beyond what a search can use.
MAX_NPZ_BYTES = 4 << 30
# Columns whose decimal marks are told of one by one.
MAX_NOTED = 3
# Rows that are compared with one another at most, of a million that takes seconds; from this share on those that are
# the same as others are told of.
MAX_COMPARED, REPEATED = 65_536, 0.25
# What people call a column that counts the rows; a dot after it is left out.
COUNTERS = frozenset(("no", "nr", "run", "sample", "index", "id", "row", "#", "obs", "case"))
# A column of more classes is no category, but text or numbers; each of them is a column of the search.
MAX_CLASSES = 50


@dataclasses.dataclass(frozen=True)
class Table:
  """Points of one file, in the user's units.

  Attributes:
    path: the file.
    features: names of the columns of x, any text of one line (`language.names` says how formulas have them).
    target: name of y.
    x: [N, D] float64; y: [N] float64; all finite.
    weights: of the rows [N], above 0, relative; None for equal ones.
    notes: what was decided on the way, one sentence each: how cells were read, columns and rows left out.
    unused: names of the other columns of the file.
    time_scales: how dates and times are counted, by the name of the feature or target; categories: the classes of each
      column that became one of 0 and 1 for each, in the order of these. By them another file is read alike.
  """

  path: str
  features: tuple[str, ...]
  target: str
  x: np.ndarray
  y: np.ndarray
  notes: tuple[str, ...] = ()
  weights: np.ndarray | None = None
  unused: tuple[str, ...] = ()
  time_scales: Mapping[str, times.TimeScale] = dataclasses.field(default_factory=dict)
  categories: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)

  @property
  def points(self) -> tuple[np.ndarray, ...]:
    """`(x, y)` or `(x, y, weights)`, as `inference.search` takes them."""
    return (self.x, self.y) if self.weights is None else (self.x, self.y, self.weights)


def find_files(patterns: Sequence[str]) -> list[str]:
  """Files that names and globs stand for, each once by its first spelling, those of a glob in order of their names.

  Raises:
    InputError: for a name or glob without a file.
  """
  found: list[str] = []
  for pattern in patterns:
    if not pattern:  # which would be the folder that the command runs in
      raise InputError("--data: expected a file between two commas, got nothing")
    try:
      # A file whose name looks like a glob is meant literally.
      matches = [pattern] if pathlib.Path(pattern).exists() else sorted(glob.glob(pattern, recursive=True))
    except OSError as error:  # a name that is too long
      raise InputError(f"--data: cannot look for {files.shorten(pattern)!r}: {error.strerror}") from None
    if not matches:
      what = "no file matches" if any(c in pattern for c in "*?[") else "no such file:"
      raise InputError(f"--data: {what} {pattern!r}{_hint_of_commas(patterns)}")
    found += matches
  if not found:
    raise InputError("--data: expected a file, got none")
  kept: dict[str, str] = {}
  for path in found:
    kept.setdefault(_entry(path), path)
  return list(kept.values())


def _entry(path: str) -> str:
  """A name in its folder, however that is written: `./a.csv` is `a.csv`, but a link is a file of its own."""
  folder, name = os.path.split(path)
  try:
    return os.path.join(os.path.realpath(folder), name)
  except OSError:  # the folder that the command runs in has been deleted
    return os.path.normpath(path)


def _hint_of_commas(patterns: Sequence[str]) -> str:
  """Where the names that a flag was cut into are one file's."""
  for comma in (",", ", "):
    whole = comma.join(patterns)
    if len(patterns) > 1 and os.path.exists(whole):
      return f"; a name with a comma in it stands in double quotes, as in --data='\"{whole}\"'"
  return ""


@dataclasses.dataclass(frozen=True)
class Request:
  """Which columns of a file are wanted, and how they are to be read; names as in the header.

  Attributes:
    targets: what is to be explained, one table for each; by default the last column with numbers. A text is names
      between commas, or a single name that has commas in it.
    features: the columns of x, in the order wanted; default all others that have numbers.
    categories: columns that become a column of 0 and 1 for each of their classes.
    weights: name of the column of weights, at least 0; or sigma: of standard deviations of y, above 0, whose weights
      are 1/sigma**2. That column is then no feature unless it is named as one.
    drop_missing: leave out rows with an empty or unreadable cell in a used column, instead of refusing them.
    decimal: the decimal mark, a point or a comma; separator: a key of `text_tables.SEPARATORS`; sheet: of a workbook;
      time_unit: of dates and times, one of `times.UNITS`. None to decide by the file.
    excluded: columns that no formula may contain.
  """

  targets: str | Sequence[str] | None = None
  features: Sequence[str] | None = None
  categories: Sequence[str] = ()
  weights: str | None = None
  sigma: str | None = None
  drop_missing: bool = False
  decimal: str | None = None
  separator: str | None = None
  sheet: str | None = None
  time_unit: str | None = None
  excluded: Sequence[str] = ()


def read_table(path: str, *, target: str | None = None, **request: Any) -> Table:
  """Reads one file for one target; see `Request` for the other arguments, and `read_tables`."""
  [table] = read_tables(path, Request([target] if target else None, **request))
  return table


def read_tables(path: str, request: Request) -> list[Table]:
  """Reads one file: a table for each target.

  A file of text without a row of names gets columns x0, x1, ... and y.
  Args:
    path: of one of the kinds in `table_files.SUFFIXES`.
  Raises:
    TableError: says what is wrong in which file, and where.
    InputError: for a request that suits no file.
  """
  if request.weights and request.sigma:
    raise InputError("--weights and --sigma: expected one of them, a row has one weight")
  if request.time_unit is not None and request.time_unit not in times.UNITS:
    raise InputError(f"--time_unit: unknown unit {request.time_unit!r}: {suggest(request.time_unit, times.UNITS)}")
  how = make_reading(request)
  try:
    source = _Source(table_files.read(pathlib.Path(path), how), request)
    return [source.table(path, target) for target in source.targets]
  except InputError as error:
    raise TableError(f"{path}: {error}") from None


def make_reading(request: Request) -> table_files.Reading:
  """How files are read, by what is asked of them.

  Raises:
    InputError: for a decimal mark or a separator that is none.
  """
  if request.decimal not in (None, cells.POINT, cells.COMMA):
    raise InputError(f"--decimal: expected . or , got {request.decimal!r}")
  if request.separator not in (None, *text_tables.SEPARATORS):
    raise InputError(f"--separator: expected one of {' '.join(text_tables.SEPARATORS)}, got {request.separator!r}")
  separator = None if request.separator is None else text_tables.SEPARATORS[request.separator]
  return table_files.Reading(separator, request.sheet, MAX_NPZ_BYTES)


def split_names(text: str) -> list[str]:
  """Names between commas, in quotes where one has a comma in it.

  Raises:
    InputError: for a quote without its end.
  """
  try:
    line = re.sub("[\r\n]", " ", text)  # as names have it
    return [grids.clean_name(name) for name in next(csv.reader([line], skipinitialspace=True, strict=True), [])]
  except csv.Error as error:
    raise InputError(f"cannot read the names {files.shorten(repr(text))}: {error}") from None


# --- the columns of a file ---------------------------------------------------------------------------------------


class _Column(NamedTuple):
  """A column by its name; one of several of a category has that of the category as its `origin`."""

  name: str
  content: cells.Column
  origin: str = ""


class _Source:
  """The columns of a file as numbers, and which of them are asked for.

  Attributes:
    targets: names, one table for each.
  """

  def __init__(self, grid: grids.Grid, request: Request):
    self.grid, self.request = grid, request
    if not len(grid.places):
      raise InputError(f"the table has no rows{grid.elsewhere}")
    found = cells.read_columns(
      grid.columns, decimal=request.decimal, separator=grid.separator, time_unit=request.time_unit)
    self.columns = [_Column(*pair) for pair in zip(grid.names, found, strict=True)]
    self.classes: dict[str, tuple[str, ...]] = {}
    self.weigher = _Weigher(grids.clean_name(request.weights or request.sigma),
                            "--weights" if request.weights else "--sigma") if request.weights or request.sigma else None
    self._check_names()
    for name in map(grids.clean_name, request.categories):
      self._split_category(name)
    self.targets = self._choose_targets()

  def _names(self) -> list[str]:
    return [column.name for column in self.columns]

  def _check_names(self) -> None:
    """Refuses names that no column has, and those that several have."""
    request = self.request
    asked = [*[("--target", name) for name in self._asked_targets()],
             *[("--features", grids.clean_name(name)) for name in request.features or ()],
             *[("--categories", grids.clean_name(name)) for name in request.categories],
             *[(weigher.flag, weigher.name) for weigher in [self.weigher] if weigher]]
    names = self._names()
    for flag, name in asked:
      if name not in names:
        raise InputError(f"{flag}: no column {name!r}, expected one of {', '.join(map(repr, names))}"
                         f"{self.grid.elsewhere}")
      self._refuse_repeated([column for column in self.columns if column.name == name])
    for i, (flag, name) in enumerate(asked):
      if (flag, name) in asked[:i]:
        raise InputError(f"{flag}: a column is named twice, {name!r}")

  def _asked_targets(self) -> list[str]:
    targets = self.request.targets
    if isinstance(targets, str):
      whole = grids.clean_name(targets)
      return [whole] if whole in self._names() else split_names(targets)
    return [grids.clean_name(name) for name in targets or ()]

  @staticmethod
  def _refuse_repeated(columns: Sequence[_Column]) -> None:
    known: dict[str, _Column] = {}  # of a hundred thousand columns a list would take minutes
    for column in columns:
      if column.name in known:
        origin = column.origin or known[column.name].origin
        what = f": --categories makes one for each value of column {origin!r}" if origin else ""
        raise InputError(f"two columns are called {column.name!r}{what}")
      known[column.name] = column

  def _split_category(self, name: str) -> None:
    """A column of 0 and 1 for each class takes the place of a column."""
    place = self._names().index(name)
    column = self.columns[place].content
    classes = cells.classes_of(column)
    known = sorted({each for each in classes if each is not None})
    if not 2 <= len(known) <= MAX_CLASSES:
      raise InputError(
        f"--categories: expected 2 to {MAX_CLASSES} different values in column {name!r}, got {len(known)}")
    self.classes[name] = tuple(known)
    self.columns[place : place + 1] = [
      _Column(grids.name_of_class(name, each), cells.Column(cells.is_of_class(classes, each), column.cells),
              origin=name) for each in known]

  def _choose_targets(self) -> list[str]:
    numeric = [column for column in self._numeric() if not column.origin]
    if not numeric:
      text = self._first_text()
      raise InputError(f"no numeric column: none of {', '.join(map(repr, self.grid.names))} holds numbers"
                       f"{text and '; ' + text}{self.grid.elsewhere}")
    # Dates and times are rather what explains.
    of_numbers = [column for column in numeric if not column.content.is_time]
    targets = self._asked_targets() or [(of_numbers or numeric)[-1].name]
    for name in targets:
      if self.weigher and name == self.weigher.name:
        raise InputError(f"{name!r} is both the target and the column of {self.weigher.flag}")
      if name in map(grids.clean_name, self.request.features or ()):
        raise InputError(f"{name!r} is both the target and a feature")
      if name in {column.origin for column in self.columns if column.origin}:
        raise InputError(f"{name!r} is both the target and one of --categories")
      self._refuse_repeated([column for column in self.columns if column.name == name])
    return targets

  def _numeric(self) -> list[_Column]:
    weighing = self.weigher.name if self.weigher else None
    return [column for column in self.columns if column.name != weighing and self._is_of_numbers(column)]

  @staticmethod
  def _is_of_numbers(column: _Column) -> bool:
    return column.content.is_numeric and not column.content.is_mostly_text

  def _first_text(self) -> str:
    """Of the first column of text, its first cell that is there; where there is none, the first column without any."""
    for column in self.columns:
      row = None if self._is_of_numbers(column) else column.content.first_bad()
      if row is not None:
        return f"{self.grid.place_of(row)}, column {column.name!r}: {bad_cells.shown(column.content, row)} is no number"
    empty = [column for column in self.columns if column.content.is_empty]
    return f"column {empty[0].name!r} holds no number{self.grid.empty}" if empty else ""

  # --- one table ---

  def table(self, path: str, target: str) -> Table:
    """The points for one target."""
    [y_column] = [column for column in self.columns if column.name == target]
    features = self._features()
    if not features:
      text = self._first_text()
      left = f"no {'other ' if text else ''}column left to explain {target!r}: expected at least two numeric columns"
      raise InputError(f"{text and text + '; '}{left}{self.grid.elsewhere}")
    used = [*features, y_column]
    self._refuse_repeated(used)
    weigher = self.weigher
    weighing = [column for column in self.columns if weigher and column.name == weigher.name]
    read = [*used, *(column for column in weighing if column not in used)]
    notes = [*self.grid.notes, *self._unused(read), *self._describe(read), *self._counters(features)]
    is_kept = self._check_cells(read, notes, num_features=len(features))
    rows = np.flatnonzero(is_kept)
    weights = None
    if weigher and weighing and len(rows):
      weights = weigher.weigh(weighing[0].content.values[rows], lambda row: self.grid.place_of(int(rows[row])))
      if not weights.all():
        notes.append(f"{np.sum(weights == 0)} of {len(weights)} rows left out: their weight is 0")
      rows, weights = rows[weights > 0], weights[weights > 0]
    x = np.column_stack([column.content.values[rows] for column in features])
    y = y_column.content.values[rows]
    notes += _describe_repeated(np.column_stack([x, y]))
    _check_points(y, target)
    _check_sizes([(column.name, x[:, i]) for i, column in enumerate(features)], y, target)
    names = tuple(column.name for column in features)
    unused = tuple(name for name in dict.fromkeys(self.grid.names) if name not in (*names, target))
    time_scales = {column.name: column.content.scale for column in used if column.content.scale}
    categories = {column.origin: self.classes[column.origin] for column in features if column.origin}
    return Table(str(path), names, target, x, y, tuple(notes), weights, unused, time_scales, categories)

  def _features(self) -> list[_Column]:
    """The columns of x: those asked for, or all that have numbers and are no target."""
    asked = [grids.clean_name(name) for name in self.request.features or ()]
    unused = [name for name in dict.fromkeys(column.origin for column in self.columns if column.origin)
              if asked and name not in asked]
    if unused:
      raise InputError(f"--categories: {unused[0]!r} is none of --features")
    if asked:
      return [column for name in asked for column in self.columns if name in (column.origin or column.name,)]
    return [column for column in self._numeric() if column.name not in self.targets]

  def _unused(self, read: Sequence[_Column]) -> list[str]:
    """What was asked for that has no meaning for these columns: in a batch it may be meant for others."""
    notes = []
    if self.request.time_unit and not any(column.content.is_time for column in read):
      notes.append("--time_unit is not used: no column in use holds dates or times")
    objects = [column.content.cells for column in read if column.content.cells.dtype.kind == "O"]
    if self.request.decimal and not any(isinstance(cell, str) for column in objects for cell in column):
      notes.append("--decimal is not used: no column in use holds text")
    return notes

  def _describe(self, read: Sequence[_Column]) -> list[str]:
    """What was decided of the columns, and which are left aside."""
    noted = [column for column in read if column.content.note]
    usual = [column for column in noted if column.content.is_usual]
    left = set(map(id, usual[MAX_NOTED:]))  # what one says of the file, the others repeat
    noted = [column for column in noted if id(column) not in left]
    notes = [f"column {column.name!r} {column.content.note}" for column in noted]
    if left:
      notes.append(f"{len(usual) - MAX_NOTED} more columns are read likewise: "
                   f"{', '.join(repr(column.name) for column in usual[MAX_NOTED:])}")
    for name in dict.fromkeys(column.origin for column in read if column.origin):
      classes = [column.name for column in read if column.origin == name]
      notes.append(f"column {name!r} became {len(classes)} columns of 0 and 1: {', '.join(map(repr, classes))}")
    if self.request.features:
      return notes
    is_read = set(map(id, read))
    for column in self.columns:
      if id(column) not in is_read and not self._is_of_numbers(column):
        row = column.content.first_bad()
        example = "" if row is None else f" ({self.grid.place_of(row)}: {bad_cells.shown(column.content, row)})"
        what = "mostly text" if column.content.is_numeric else "no number"
        notes.append(f"column {column.name!r} left aside: it holds {what}{example or self._why_empty(column)}")
    return notes

  def _counters(self, features: Sequence[_Column]) -> list[str]:
    """What is said of features that nobody asked for and that count the rows, by their names and numbers."""
    excluded = set(map(grids.clean_name, self.request.excluded))
    if self.request.features or len(features) < 2:
      return []
    names = [column.name for column in features if column.name not in excluded and _is_counter(column)]
    return [f"column {name!r} counts the rows, and is one of the features; --exclude={name!r} leaves it out"
            for name in names]

  def _why_empty(self, column: _Column) -> str:
    return self.grid.empty if column.content.is_empty else ""

  def _check_cells(self, read: Sequence[_Column], notes: list[str], *, num_features: int) -> np.ndarray:
    """Which rows are kept [N]; refuses others, unless they are to be dropped.

    The features stand first among the columns that are read; they alone can be made columns of 0 and 1.
    """
    for place, column in enumerate(read):
      if column.content.fault:
        raise InputError(f"column {column.name!r} {column.content.fault}")
      if not column.content.is_numeric:
        row = column.content.first_bad()
        example = "" if row is None else f": {self.grid.place_of(row)} has {bad_cells.shown(column.content, row)}"
        hint = "" if row is None or place >= num_features else "; --categories makes columns of 0 and 1 of text"
        raise InputError(f"column {column.name!r} holds no number{example or self._why_empty(column)}{hint}")
    is_bad = ~np.isfinite(np.column_stack([column.content.values for column in read]))
    if is_bad.any():
      if not self.request.drop_missing:
        raise InputError(self._describe_bad_cell(read, is_bad, num_features))
      kinds = bad_cells.count([column.content for column in read], is_bad)
      notes.append(f"{sum(kinds.values())} of {len(is_bad)} rows left out: no finite number in a used column "
                   f"({bad_cells.tell_counts(kinds)})")
    return ~is_bad.any(axis=1)

  def _describe_bad_cell(self, read: Sequence[_Column], is_bad: np.ndarray, num_features: int) -> str:
    row, place = (int(i) for i in np.argwhere(is_bad)[0])
    column = read[place]
    kinds = bad_cells.count([column.content for column in read], is_bad)
    what, others = bad_cells.describe(column.content, row), sum(kinds.values()) - 1
    unlike = [kind for kind in kinds if kind != what]
    among = ", among them " + "; ".join([*unlike[:MAX_NOTED], *["..."] * (len(unlike) > MAX_NOTED)]) if unlike else ""
    more = f" (and {others} more such rows{among})" if others else ""
    is_class = place < num_features and column.content.is_mostly_text
    hint = ", --categories makes columns of 0 and 1 of text" if is_class else ""
    return f"{self.grid.place_of(row)}, column {column.origin or column.name!r}: expected a finite number, got " \
           f"{what}{more}; --drop_missing leaves such rows out{hint}"


def _is_counter(column: _Column) -> bool:
  """Whether a column is called like one that counts the rows, and does, from 0 or 1."""
  values = column.content.values
  return column.name.lower().rstrip(".") in COUNTERS and any(
    np.array_equal(values, np.arange(start, start + len(values))) for start in (0, 1))


def _describe_repeated(points: np.ndarray) -> list[str]:
  """A note where many rows [N, D + 1] are the same as others: a file put together twice, say."""
  num = len(points) - len(np.unique(points, axis=0)) if len(points) <= MAX_COMPARED else 0
  if num < max(REPEATED * len(points), 2):
    return []
  return [f"{num} of {len(points)} rows are the same as others in every column used: each counts as one more"]


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
    weights = (column.min() / column) ** 2 if is_sigma else column / column.max()
    if np.sum(weights > 0) < MIN_POINTS <= np.sum(column > 0):  # of so different size that weights become 0
      row, num_lost = int(np.argmax(weights)), np.sum((weights == 0) & (column > 0))
      raise InputError(f"{place(row)}, column {self.name!r}: {self.flag} expects numbers of less different size, got "
                       f"{column[row]:g}, beside which {num_lost} of {len(column)} rows have weight 0")
    return weights


def _check_points(y: np.ndarray, target: str) -> None:
  if len(y) < MIN_POINTS:
    raise InputError(f"too few points: expected at least {MIN_POINTS} rows, got {len(y)}")
  if y.min() == y.max():  # their difference may be beyond all numbers
    raise InputError(f"the target {target!r} is constant: every value is {y[0]:g}")


def _check_sizes(features: Sequence[tuple[str, np.ndarray]], y: np.ndarray, target: str) -> None:
  """Refuses numbers that are too large or too small for a search, as `check_dataset` does, by the file's names."""
  for name, column in [*features, (target, y)]:
    if (size := np.max(np.abs(column))) > LARGEST:
      raise InputError(f"column {name!r}: expected numbers up to {LARGEST:g} in size, got {size:g}; take a larger unit")
  for name, column in features:
    if 0 < (size := np.max(np.abs(column))) < SMALLEST:
      raise InputError(f"column {name!r}: expected numbers of at least {SMALLEST:g} in size, got at most {size:g}; "
                       "take a smaller unit")
  if np.ptp(y) < SMALLEST:
    raise InputError(
      f"column {target!r}: expected a spread of at least {SMALLEST:g}, got {np.ptp(y):g}; take a smaller unit")
