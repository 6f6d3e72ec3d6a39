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
    self.names, note = _align(grid, _sources(fit), target)
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
    with _naming(self.path):
      return self._numbers(name)[0]

  def _feature(self, name: str) -> tuple[cells.Column, list[str]]:
    of_class = _classes(self._fit)
    if name not in self.names and name in of_class:
      return self._of_class(*of_class[name])
    return self._numbers(name)

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

  def _numbers(self, name: str) -> tuple[cells.Column, list[str]]:
    """A column as numbers, dates and times counted as at the fit; and notes."""
    column, scale = self._find(name), self._fit.time_scales.get(name)
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
  how = tables.reading(request)
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


def _align(grid: grids.Grid, sources: Sequence[str], target: str | None) -> tuple[tuple[str, ...], str]:
  """Names of the columns of a file as a fit has them, and a note where they are told by position.

  By name, where all names are there or both sides have names of their own. Else the fit's columns stand in their
  order or, where they are numbered, x0, x1, ..., at these places. A further column is the target.
  """
  if set(sources) <= set(grid.names):
    is_other = not grid.has_names and target is not None and target not in grid.names and _TARGET not in sources
    return (*grid.names[:-1], target) if is_other and target else grid.names, ""
  numbers = [int(found[1]) for name in sources if (found := _NUMBERED.fullmatch(name))]
  is_numbered = len(numbers) == len(sources)
  num_columns = len(grid.names)
  least = 1 + max(numbers) if is_numbered else len(sources)
  if grid.has_names and (not is_numbered or set(sources) & set(grid.names) or not 0 <= num_columns - least <= 1):
    return grid.names, ""
  if num_columns < least or num_columns > least + 1 and not is_numbered:
    raise InputError(f"has no names of columns: expected {least} columns ({', '.join(map(repr, sources[:MAX_LISTED]))}"
                     f"{', ...' if len(sources) > MAX_LISTED else ''}), or one more with the target, got {num_columns}")
  first = [f"x{i}" for i in range(num_columns)] if is_numbered else list(sources)
  names = tuple([*first[: num_columns - 1], target or _TARGET] if num_columns > least else first)
  told = [f"{own!r} is {name!r}" for own, name in zip(grid.names, names, strict=True) if own != name]
  if not told:
    return names, ""
  return names, f"columns are taken by position: {', '.join(told[:MAX_LISTED])}{', ...' if told[MAX_LISTED:] else ''}"
