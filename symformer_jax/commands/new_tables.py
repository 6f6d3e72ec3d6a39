"""Columns of another table as a fitted formula reads them: found by name or by position, counted as at the fit."""

from collections.abc import Iterator, Sequence
import contextlib
import dataclasses
import pathlib
import re

import numpy as np

from symformer_jax.commands import bad_cells, cells, grids, table_files, tables, times
from symformer_jax.commands.saved_fits import SavedFit
from symformer_jax.errors import InputError, suggest

# What columns without names are called: by the reader of tables, and by the regressor.
_NUMBERED = re.compile("x(0|[1-9][0-9]{0,5})")
_TARGET = "y"
# Columns found by position, of which a note tells one by one.
MAX_LISTED = 6


@dataclasses.dataclass(frozen=True)
class Points:
  """What a formula is evaluated on.

  Attributes:
    x: [N, D] float64: 0 in a column that is not read, NaN where a cell holds no number.
    is_usable: rows [N] that have a number in each column that is read.
    read: the columns that are read, by their number in x.
    notes: what was decided on the way, one sentence each.
  """

  x: np.ndarray
  is_usable: np.ndarray
  read: dict[int, cells.Column]
  notes: tuple[str, ...]


class NewTable:
  """The columns of a file by the names of a fit.

  Attributes:
    grid: as they stand in the file; names: as the fit calls them, where that is told by position only.
    notes: what was decided on the way.
  """

  def __init__(self, path: str, grid: grids.Grid, columns: Sequence[cells.Column], fit: SavedFit, target: str | None):
    self.path, self.grid, self._columns, self._fit = path, grid, columns, fit
    self.names, note = _align(grid, fit, target)
    self.notes = (*grid.notes, note) if note else grid.notes

  @property
  def header(self) -> tuple[str, ...]:
    """Names to write: those of the file, where it has them."""
    return self.grid.names if self.grid.has_names else self.names

  def points(self, indices: Sequence[int]) -> Points:
    """The columns of these numbers in formulas.

    Raises:
      TableError: for a column that is missing, stands twice, or does not hold what it held at the fit.
    """
    with _naming(self.path):
      names = [grids.clean_name(name) for name in self._fit.names]
      x, notes, read = np.zeros((len(self.grid.places), len(names))), [], {}
      for i in indices:
        read[i], own = self._feature(names[i])
        x[:, i] = read[i].values
        notes += own
      is_usable = np.ones(len(x), bool)
      for column in read.values():
        is_usable &= np.isfinite(column.values)
      return Points(x, is_usable, read, tuple(dict.fromkeys(notes)))

  def target(self, name: str) -> cells.Column | None:
    """The column of measured values; None where there is none of that name.

    Raises:
      TableError: for one that stands twice, or does not hold what it held at the fit.
    """
    if name not in self.names:
      return None
    scale = self._fit.time_scales.get(self._fit.target or "")  # the name may be another one
    with _naming(self.path):
      return self._numbers(name, scale)[0]

  def _feature(self, name: str) -> tuple[cells.Column, list[str]]:
    of_class = _classes(self._fit)
    if name in of_class and (of_class[name][0] in self.names or name not in self.names):
      return self._of_class(*of_class[name])  # a column of that name beside its category is another one
    return self._numbers(name, self._fit.time_scales.get(name))

  def _find(self, name: str) -> cells.Column:
    found = [column for other, column in zip(self.names, self._columns, strict=True) if other == name]
    if len(found) > 1:
      raise InputError(f"two columns are called {name!r}")
    if not found:
      hint = suggest(name, self.names)
      known = f" The columns are {', '.join(map(repr, self.names))}" if hint.startswith("did you mean") else ""
      raise InputError(f"no column {name!r}, which the formula reads: {hint}{known}{self.grid.elsewhere}")
    return found[0]

  def _of_class(self, name: str, wanted: str) -> tuple[cells.Column, list[str]]:
    """1 where a category is of a class, 0 where it is of another that the fit knew; and a note of what it did not."""
    column = self._find(name)
    classes = cells.classes_of(column)
    strange = [each not in (None, *self._fit.categories[name]) for each in classes]
    values = np.where(strange, np.nan, cells.is_of_class(classes, wanted))
    notes = []
    if any(strange):
      row = strange.index(True)
      notes.append(f"column {name!r} has a value in {sum(strange)} of {len(classes)} rows that it did not have at the "
                   f"fit, such as {bad_cells.shown(column, row)}")
    return cells.Column(values, column.cells), notes

  def _numbers(self, name: str, scale: times.TimeScale | None) -> tuple[cells.Column, list[str]]:
    """A column as numbers, dates and times counted by the scale of the fit; and notes."""
    column = self._find(name)
    if column.fault:
      raise InputError(f"column {name!r} {column.fault}")
    if column.is_time:
      column = _count_alike(column, name, scale)
    elif not column.is_numeric and (row := column.first_bad()) is not None:
      raise InputError(f"column {name!r} holds no number: {self.grid.place_of(row)} has "
                       f"{bad_cells.shown(column, row)}")
    elif scale is not None and column.is_numeric:
      return column, [f"column {name!r} holds plain numbers, taken for {scale.describe()} as at the fit"]
    return column, [f"column {name!r} {column.note}"] if column.note else []


def read(path: str, request: tables.Request, fit: SavedFit, *, target: str | None) -> NewTable:
  """Reads a file.

  Args:
    request: how it is read; which columns, the formula says. target: name of the measured values, if they have one.
  Raises:
    TableError: says what is wrong in which file; InputError: for a request that suits no file.
  """
  how = tables.make_reading(request)
  with _naming(path):
    grid = table_files.read(pathlib.Path(path), how)
    if not len(grid.places):
      raise InputError(f"the table has no rows{grid.elsewhere}")
    columns = cells.read_columns(grid.columns, decimal=request.decimal, separator=grid.separator)
    return NewTable(path, grid, columns, fit, target)


@contextlib.contextmanager
def _naming(path: str) -> Iterator[None]:
  """Errors of what is done here name the file."""
  try:
    yield
  except tables.TableError:
    raise
  except InputError as error:
    raise tables.TableError(f"{path}: {error}") from None


def _count_alike(column: cells.Column, name: str, scale: times.TimeScale | None) -> cells.Column:
  """Dates or times, counted by the scale of the fit."""
  if scale is None:
    raise InputError(f"column {name!r} {column.note or 'holds dates or times'}; at the fit it held numbers")
  if column.scale is None:  # nothing is there
    return column
  if column.scale.is_of_dates != scale.is_of_dates:
    raise InputError(f"column {name!r} {column.note}; at the fit it was counted as {scale.describe()}")
  found = times.read(column.cells, scale.unit, start=scale.start)
  assert found is not None, "it was read before"
  return dataclasses.replace(column, values=found.values, note=found.note, scale=found.scale)


# --- categories --------------------------------------------------------------------------------------------------


def _classes(fit: SavedFit) -> dict[str, tuple[str, str]]:
  """Of each column of 0 and 1 the category and its class."""
  return {grids.name_of_class(origin, each): (origin, each)
          for origin, classes in fit.categories.items() for each in classes}


def _sources(fit: SavedFit) -> tuple[str, ...]:
  """The columns of a file that the columns of a fit were made of, in their order: of those of 0 and 1 the category."""
  origins = {name: origin for name, (origin, _) in _classes(fit).items()}
  names = [grids.clean_name(name) for name in fit.names]
  return tuple(dict.fromkeys(origins.get(name, name) for name in names))


# --- columns without names ---------------------------------------------------------------------------------------


def _align(grid: grids.Grid, fit: SavedFit, target: str | None) -> tuple[tuple[str, ...], str]:
  """Names of the columns of a file as a fit has them, and a note where they are told by position.

  By name, where all names are there or both sides have names of their own. Else the fit's columns stand in their
  order or, where they are numbered, x0, x1, ..., at these places. One column more than the fit's file had beside the
  target is the target.
  """
  sources = _sources(fit)
  numbers, num_columns = _numbers_of(sources), len(grid.names)
  is_numbered = len(numbers) == len(sources)
  if set(sources) <= set(grid.names) and (grid.has_names or not is_numbered):
    return grid.names, ""
  least = 1 + max(numbers, default=-1) if is_numbered else len(sources)
  # Columns without names that were not features, such as weights, had their places as well.
  width = 1 + max([least - 1, *_numbers_of(fit.other_columns)]) if is_numbered else least
  if grid.has_names and (not is_numbered or set(sources) & set(grid.names) or not least <= num_columns <= width + 1):
    return grid.names, ""
  if num_columns < least or num_columns > width + 1 and not is_numbered:
    raise InputError(f"has no names of columns: expected {least} columns ({', '.join(map(repr, sources[:MAX_LISTED]))}"
                     f"{', ...' if len(sources) > MAX_LISTED else ''}), or one more with the target, got {num_columns}")
  names = [f"x{i}" for i in range(num_columns)] if is_numbered else list(sources)
  has_target = num_columns == width + 1 and grid.names[-1] not in names[width:]
  if has_target:
    names[width:] = [_TARGET if target is None or target in names[:width] else target]
  return tuple(names), _note_of_places(grid.names, names, names[-1] if has_target and names[-1] == target else None)


def _numbers_of(names: Sequence[str]) -> list[int]:
  """Of x0, x1, ... the numbers; other names have none."""
  return [int(found[1]) for name in names if (found := _NUMBERED.fullmatch(name))]


def _note_of_places(own: Sequence[str], names: Sequence[str], target: str | None) -> str:
  """Which column of a file is which of a fit; the last one may be the target."""
  num = len(names) - (target is not None)
  told = [f"{one!r} is {other!r}" for one, other in zip(own[:num], names[:num], strict=True) if one != other]
  last = [] if target is None else [f"column {len(names)} is the target {target!r}"]
  places = [*told[:MAX_LISTED], *["..."] * (len(told) > MAX_LISTED), *last]
  return f"columns are taken by position: {', '.join(places)}" if places else ""
