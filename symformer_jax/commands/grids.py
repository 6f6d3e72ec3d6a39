"""Rows of cells, as a file has them, as named columns: where the names are, and what among the rows is no data."""

from collections import Counter
from collections.abc import Sequence
import contextlib
import dataclasses
import datetime
import re
from typing import Any
import unicodedata

import numpy as np

from symformer_jax import files
from symformer_jax.commands import cells, times
from symformer_jax.errors import InputError

# Rows that are looked at to tell what a first row is.
NUM_LOOKED_AT = 20
# Beyond any table; each takes a third of a millisecond before rows are counted. Names count as well.
MAX_COLUMNS = 100_000
# Units such as kg, m/s^2, kWh, degC, °C, %, W/(m*K), and with spaces where signs or digits are among them: m s-1.
_UNIT_LETTERS = "A-Za-z\u00b0\u00b5\u03bc\u03a9\u2126\u00c5%\u2030$\u20ac\u00a3"
_UNIT = re.compile(rf"(?=.{{1,16}}\Z)[{_UNIT_LETTERS}][{_UNIT_LETTERS}0-9/^*.()\u00b7\u00b2\u00b3\u207b\u00b9\u2212-]*")
_SIGN = re.compile("[0-9/^*\u00b0\u00b7\u00b2\u00b3\u207b]")
_BRACKETED = re.compile(r"\[([^\[\]<>]{0,24})\]|\(([^()<>]{0,24})\)")
_LETTER = re.compile(f"[{_UNIT_LETTERS}]")
# Words that stand where a measurement failed.
_NO_UNITS = frozenset((
  "bad", "err", "error", "fail", "failed", "fault", "inf", "invalid", "low", "high", "no", "none", "off", "on", "ok",
  "over", "overflow", "tbd", "true", "false", "unknown", "void", "x", "xx", "xxx", "yes"))


@dataclasses.dataclass(frozen=True)
class Grid:
  """The columns of a file before they are numbers.

  Attributes:
    names: of the columns, D of them, as one line of printable signs each; not always distinct.
    columns: [N] each: numbers or dates by NumPy, or objects.
    places: where the rows stand in the file [N], from 1; `word` is what is counted, line or row.
    separator: what stood between columns; empty for files that are no text.
    notes: what was decided on the way, one sentence each.
    elsewhere: where else in the file the table may be, the end of a message; empty where there is no other place.
    empty: why a column may be without a cell, the end of a message.
    has_names: whether the file has the names; else columns are called x0, x1, ... and y, which stands last, or in an
      archive by the arrays of several columns that they are in, and their numbers there.
  """

  names: tuple[str, ...]
  columns: tuple[np.ndarray, ...]
  places: np.ndarray
  word: str = "row"
  separator: str = ""
  notes: tuple[str, ...] = ()
  elsewhere: str = ""
  empty: str = ""
  has_names: bool = True

  def place_of(self, row: int) -> str:
    """Where a row stands: its line in a text file, else its number."""
    return f"{self.word} {self.places[row]}"


def clean_name(name: Any) -> str:
  """A column's name in one line of signs that can be printed: marks, breaks and runs of spaces become a space, a letter
  and its accent one sign.
  """
  text = str(name)
  with contextlib.suppress(UnicodeError):  # an argument, where the locale knows no UTF-8
    text = text.encode("utf-8", "surrogateescape").decode("utf-8")
  return composed(" ".join("".join(sign if sign.isprintable() else " " for sign in text).split()))


def composed(text: str) -> str:
  """Text with each letter and its accent as one sign, where there is one: files of a Mac often have two."""
  return unicodedata.normalize("NFC", text)


def name_of_class(column: str, name: str) -> str:
  """What the column of 0 and 1 for a class of a category is called."""
  return clean_name(f"{column}_{name}")


def from_rows(
  rows: Sequence[list[Any]], places: Sequence[int], *, word: str, separator: str = "", comment: Sequence[str] = (),
  notes: Sequence[str] = (),
) -> Grid:
  """Columns of rows of cells: texts, and in spreadsheets numbers, dates and None as well.

  The first row holds names when it has text in it; else columns are x0, x1, ... and y. A title above the names and a
  row of units under them are left out, and so are columns without name and cells, such as a separator at the ends of
  lines makes, and a column without a name that counts the rows. Notes say so.
  Args:
    places: where the rows stand.
    comment: cells of the comment above the rows: names, where the rows have none and it has one for each column.
  Raises:
    InputError: where rows do not have as many cells as there are columns, or there are none.
  """
  kept = [(place, row) for place, row in zip(places, rows, strict=True) if any(map(_is_there, row))]
  if not kept:
    raise InputError("the file is empty")
  notes = list(notes)
  begin = min(next(i for i, cell in enumerate(row) if _is_there(cell)) for _, row in kept)
  kept = [(place, row[begin:]) for place, row in kept] if begin else kept  # a table may begin anywhere on a sheet
  widest = max((_width(row) for _, row in kept if len(row) > MAX_COLUMNS), default=0)
  if widest > MAX_COLUMNS:
    raise InputError(f"cannot be read as a table: a {word} has {widest} cells, more than {MAX_COLUMNS}")
  kept = _without_titles(kept, word, notes)
  found_names, kept = _take_names(kept, word, comment, notes)
  width = max((_width(row) for _, row in kept), default=0)
  names = _check_widths(found_names, kept, width, word, separator, notes)
  kept = _without_units(kept, word, notes)
  columns = _columns(kept, len(names))
  found = [i for i, column in enumerate(columns) if names[i] or any(map(_is_there, column))]
  counting = {i for i in found if not names[i] and len(found) > 2 and _counts_rows(columns[i])}
  notes += [f"column {i + 1} left aside: it has no name and counts the rows" for i in counting]
  found = [i for i in found if i not in counting]
  return Grid(tuple(names[i] or f"column {i + 1}" for i in found), tuple(columns[i] for i in found),
              np.array([place for place, _ in kept], np.int64), word, separator, tuple(notes),
              has_names=found_names is not None)


def _is_there(cell: Any) -> bool:
  return cell is not None and cell == cell and cell != ""


def _width(row: Sequence[Any]) -> int:
  """Cells up to the last that is not empty, of which there is one."""
  if row and _is_there(row[-1]):
    return len(row)
  return max(i + 1 for i, cell in enumerate(row) if _is_there(cell))


def _is_text(cell: Any) -> bool:
  return _is_there(cell) and not cells.is_missing(cell) and not cells.is_error(cell) and not cells.is_value(cell)


def _without_titles(kept: list[tuple[int, list]], word: str, notes: list[str]) -> list[tuple[int, list]]:
  """Leaves out single texts above a row of names; above numbers they might be a name, and are left to be refused."""
  [(width, _)] = Counter(_width(row) for _, row in kept[: NUM_LOOKED_AT + 5]).most_common(1)
  begin = next(i for i, (_, row) in enumerate(kept) if _width(row) >= width)
  titles = kept[:begin]
  is_title = all(sum(map(_is_there, row)) == 1 for _, row in titles)
  is_above_names = any(map(_is_text, kept[begin][1])) and not any(
    _is_there(cell) and cells.is_value(cell) for cell in kept[begin][1])
  if not titles or not is_title or not is_above_names:
    return kept
  notes += [f"{word} {place} left out: {files.shorten(clean_name(next(filter(_is_there, row))), 40)!r} is taken for a "
            "title" for place, row in titles]
  return kept[begin:]


def _is_header(row: Sequence[Any]) -> bool:
  """Whether a row holds names: text that is no number, no date and no word for a missing value."""
  return any(map(_is_text, row))


def _take_names(
  kept: list[tuple[int, list]], word: str, comment: Sequence[str], notes: list[str]
) -> tuple[list[str] | None, list[tuple[int, list]]]:
  """Names, None where there are none, and the rows under them."""
  place, first = kept[0]
  if _is_header(first):
    number = next((cell for cell in first if _is_there(cell) and cells.is_value(cell)), None)
    if number is not None:
      notes.append(f"{word} {place} is taken for the names of the columns, though {clean_name(number)!r} is in it")
    names = [clean_name(cell) if _is_there(cell) else "" for cell in first]
    return [_named(name) for name in names], kept[1:]
  width = max(_width(row) for _, row in kept)
  names = [clean_name(name) for name in comment]
  if len(names) == width and all(names) and any(map(_is_text, names)):
    notes.append(f"names of the columns are taken from the comment above: {', '.join(map(repr, names))}")
    return names, kept
  return None, kept


def _named(name: str) -> str:
  """Pandas' word for a column without a name is none."""
  return "" if name.startswith("Unnamed: ") and name.removeprefix("Unnamed: ").isdigit() else name


def _check_widths(
  names: list[str] | None, kept: list[tuple[int, list]], width: int, word: str, separator: str, notes: list[str]
) -> list[str]:
  """The names of all columns, where every row has its cells under them."""
  if names is None:
    [(usual, _)] = Counter(_width(row) for _, row in kept).most_common(1)
    if width > usual:
      place, row = next((place, row) for place, row in kept if _width(row) > usual)
      raise _ragged(usual, place, row, word, separator)
    found = [*(f"x{i}" for i in range(width - 1)), "y"]
    shown = ", ".join(found) if width < 4 else "x0, ..., y"
    notes.append(f"{word} {kept[0][0]} is taken for data, columns are called {shown}")
    return found
  num_names = max((i + 1 for i, name in enumerate(names) if name), default=0)
  # Rows of a sheet end with their last cell that is not empty; a line has its separators also where nothing follows.
  longest = max((len(row) for _, row in kept), default=num_names) if separator else num_names
  if longest < num_names:
    raise InputError(
      f"cannot be read as a table: the names are {num_names}, but no {word} has more than {longest} cells")
  if kept and width == num_names + 1 == len(names) + 1 and all(_width(row) == width for _, row in kept) \
      and _are_row_names([row[0] for _, row in kept], separator):
    notes.append("column 1 left aside: it has no name, as the names of rows have none in R")
    for _, row in kept:
      del row[0]
    return names
  if width > max(num_names, len(names)):
    place, row = next((place, row) for place, row in kept if _width(row) > len(names))
    raise _ragged(num_names, place, row, word, separator)
  return names


def _ragged(expected: int, place: int, row: Sequence[Any], word: str, separator: str) -> InputError:
  hint = "; where numbers have decimal commas, columns need another separator or quotes" if separator == "," else ""
  return InputError(
    f"cannot be read as a table: Expected {expected} fields in {word} {place}, saw {_width(row)}{hint}")


def _are_row_names(column: Sequence[Any], separator: str) -> bool:
  """Texts, or numbers that count; these not between commas, where one name too few is rather a decimal comma."""
  return all(map(_is_text, column)) or separator in (" ", "\t") and _counts_rows(np.array(column, object))


def _without_units(kept: list[tuple[int, list]], word: str, notes: list[str]) -> list[tuple[int, list]]:
  """Leaves out a row of units: one above every column of numbers; a row that may be data is kept, and refused later."""
  if len(kept) < 2:
    return kept
  (place, first), below = kept[0], kept[1 : NUM_LOOKED_AT + 1]
  units = []
  for i, cell in enumerate(first):
    under = [row[i] for _, row in below if i < len(row) and _is_there(row[i]) and not cells.is_missing(row[i])]
    is_of_values = bool(under) and all(map(cells.is_value, under))
    if is_of_values and _is_unit(cell):
      units.append(clean_name(cell))
    elif _is_text(cell) or cells.is_value(cell) or is_of_values and not all(map(_is_of_times, under)):  # of days: none
      return kept
  if not units or len(units) > 1 and len(set(units)) == 1 and units[0].isalpha():
    return kept
  notes.append(f"{word} {place} left out: {', '.join(map(repr, units))} above the numbers is taken for units")
  return kept[1:]


def _is_unit(cell: Any) -> bool:
  """Whether a text looks like a unit, and like nothing that stands in place of a number."""
  if not isinstance(cell, str) or not _is_text(cell) or cell.lower() in _NO_UNITS:
    return False
  bracketed = _BRACKETED.fullmatch(cell)
  if bracketed is None:
    parts = cell.split(" ")
    return all(map(_UNIT.fullmatch, parts)) and (len(parts) == 1 or len(parts) < 6 and _SIGN.search(cell) is not None)
  inner = (bracketed[1] or bracketed[2] or "").strip()
  is_word = _LETTER.search(inner) is not None and inner.isprintable() and not cells.is_value(inner)
  return inner in ("", "-", "1") or is_word and not cells.is_missing(inner) and inner.lower() not in _NO_UNITS


def _is_of_times(cell: Any) -> bool:
  return times.is_time(cell) if isinstance(cell, str) else isinstance(cell, datetime.date | datetime.time)


def _columns(kept: Sequence[tuple[int, list]], width: int) -> list[np.ndarray]:
  """Objects [N] of each column; short rows end in cells that are not there."""
  rows = [row if len(row) == width else (row + [""] * (width - len(row)))[:width] for _, row in kept]
  columns = zip(*rows, strict=True) if rows else ((),) * width
  return [_objects(column) for column in columns]


def _objects(column: Sequence[Any]) -> np.ndarray:
  found = np.empty(len(column), object)
  found[:] = column
  return found


def _counts_rows(column: np.ndarray) -> bool:
  """Whether a column is 0, 1, 2, ... or 1, 2, 3, ..."""
  return any(all(str(cell) == str(i) for i, cell in enumerate(column, start)) for start in (0, 1))
