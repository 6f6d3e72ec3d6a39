"""Text of cells as numbers: decimal marks, thousands separators, percent and money signs; decided by whole columns and
files.

`1,234` is 1234 in one table and 1.234 in another. Which, the other cells of the column tell, then those of other
columns, then the separator; where nothing tells, it is asked for.
"""

from collections.abc import Sequence
import contextlib
import dataclasses
import datetime
import decimal as decimal_lib
import math
import numbers
import re
from typing import Any

import numpy as np
import pandas as pd

from symformer_jax import files
from symformer_jax.commands import times

POINT, COMMA = ".", ","
# What spreadsheets, R, pandas, databases and measuring devices write where there is no number.
MISSING = frozenset((
  "", "na", "n/a", "nan", "-nan", "null", "none", "nil", "nat", "<na>", "#n/a", "#n/a n/a", "#na", "-", "--", "\u2013",
  "\u2014", ".", "..", "?", "missing"))
# What spreadsheets write where a formula has no value.
ERRORS = frozenset(("#n/a", "#na", "#div/0!", "#ref!", "#value!", "#name?", "#num!", "#null!", "#spill!", "#calc!"))
# Laboratories' way to say that a value is beyond what could be measured.
_BEYOND = re.compile("\\s*([<>\u2264\u2265])=?(.*)")
_READ_SO = "is read so that"
# From it on, upwards and downwards, not every whole number is one in double precision.
LAST_WHOLE = 2.0**53
# Decimal digits that every number of double precision keeps.
_SURE_DIGITS = 15
# Begins a text in which a digit other than 0 stands before any letter, such as that of an exponent.
_NOT_ZERO = re.compile("[^1-9A-Za-z]*[1-9]")
_TRUTHS = {"true": 1.0, "false": 0.0}
_TRUTHS_NOTE = "is read as 1 for true and 0 for false"
# Spaces and signs that look alike.
_ALIKE = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2019": "'", "\u2212": "-"})
# Signs before or after a number that is money.
_CURRENCIES = "$\u20ac\u00a3\u00a5"
_MONEY = re.compile(rf"([+-]?)\s*([{_CURRENCIES}])\s*(.*)")
_SIGN, _EXPONENT = r"(?P<sign>[+-]?)", r"(?P<exponent>(?:[eEdD][+-]?[0-9]+)?)"


def _pattern(decimal: str, others: str) -> re.Pattern[str]:
  """Numbers with one decimal mark, perhaps with one of the other signs between groups of three digits."""
  mark, some = re.escape(decimal), "*" if decimal == POINT else "+"  # `5.` is a number; `5,` is one with a separator
  # Groups of three digits; in India of two, but for the last.
  groups = rf"[1-9][0-9]{{0,2}}(?P<group>[{others}])[0-9]{{3}}(?:(?P=group)[0-9]{{3}})*(?:{mark}[0-9]{some})?"
  if decimal == POINT:
    groups += r"|[1-9][0-9]?(?P<pairs>,)[0-9]{2}(?:,[0-9]{2})*,[0-9]{3}(?:\.[0-9]*)?"
  plain = rf"(?:[0-9]+(?:{mark}[0-9]{some})?|{mark}[0-9]+)"
  return re.compile(rf"{_SIGN}(?P<digits>{groups}|{plain}){_EXPONENT}|(?P<infinite>[+-]?inf(?:inity)?)", re.IGNORECASE)


_PATTERNS = {POINT: _pattern(POINT, ", '"), COMMA: _pattern(COMMA, ". '")}


class ErrorCell(float):
  """What a spreadsheet shows where a formula has no value: no number, as what is missing is none.

  Attributes:
    text: as shown, such as `#DIV/0!`.
  """

  text: str

  def __new__(cls, text: str) -> "ErrorCell":
    cell = super().__new__(cls, "nan")
    cell.text = text
    return cell


def is_missing(cell: Any) -> bool:
  """Whether a cell says that there is no value."""
  if isinstance(cell, str):
    return cell.strip().lower() in MISSING
  return cell is None or cell is pd.NA or cell != cell


def is_error(cell: Any) -> bool:
  """Whether a cell is an error of a spreadsheet."""
  return isinstance(cell, str) and cell.strip().lower() in ERRORS


def describe_limit(cell: Any) -> str:
  """What `<0.01` and `> 100` say of a value that was not measured; empty for any other cell."""
  found = _BEYOND.fullmatch(cell) if isinstance(cell, str) else None
  if found is None or all(read_number(found[2], mark) is None for mark in (POINT, COMMA)):
    return ""
  return "below a limit of detection" if found[1] in "<\u2264" else "above a limit of measurement"


def read_number(text: str, decimal: str) -> float | None:
  """The number that a text is with this decimal mark, `5 %` as 0.05, `-$5` as -5; None for no number."""
  text, currency = _without_currency(text)
  bare = text if currency else text.removesuffix("%").rstrip()
  found = _PATTERNS[decimal].fullmatch(bare)
  if found is None:
    return None
  if found["infinite"]:
    return float(found["infinite"])
  group = found["group"] or found.groupdict().get("pairs")
  digits = found["digits"].replace(group, "") if group else found["digits"]
  value = found["sign"] + digits.replace(decimal, ".")
  if found["exponent"] or bare == text:
    return float(value + found["exponent"].lower().replace("d", "e")) / (1 if bare == text else 100)
  return float(value + "e-2")  # not divided: 12.3 % is the nearest number to 0.123


def _without_currency(text: str) -> tuple[str, str]:
  """A text without the sign of a currency before or after it, and that sign; empty where there is none."""
  text = (text if text.isascii() else text.translate(_ALIKE)).strip()
  if text and text[-1] in _CURRENCIES:
    return text[:-1].rstrip(), text[-1]
  found = _MONEY.fullmatch(text)
  return (found[1] + found[3], found[2]) if found else (text, "")


def is_value(cell: Any) -> bool:
  """Whether a cell may be a number, a date or a time by some rule; what is missing is none."""
  if is_missing(cell):
    return False
  return not isinstance(cell, str) or any(read_number(cell, mark) is not None for mark in (POINT, COMMA)) \
    or times.is_time(cell)


@dataclasses.dataclass(frozen=True)
class Column:
  """The numbers of a column.

  Attributes:
    values: [N] float64, NaN where a cell holds none.
    cells: [N], as they stand in the file.
    note: how they were read where that needs saying, a predicate; fault: why they cannot be used, likewise.
    is_time: whether they were dates or times; is_usual: whether the note is of decimal marks, and no other reading
      was possible.
    scale: how dates or times are counted; None for others, and where none is there.
  """

  values: np.ndarray
  cells: np.ndarray
  note: str = ""
  fault: str = ""
  is_time: bool = False
  scale: times.TimeScale | None = None

  @property
  def is_usual(self) -> bool:
    return self.note.startswith(_READ_SO) and "--decimal" not in self.note

  @property
  def is_numeric(self) -> bool:
    return bool(self.fault) or not np.isnan(self.values).all()

  @property
  def is_mostly_text(self) -> bool:
    """Whether more cells hold text than numbers, such as a column of words with a `10%` among them."""
    if self.fault:
      return False
    is_bad = np.isnan(self.values)
    return sum(not is_missing(cell) for cell in self.cells[is_bad]) > np.sum(~is_bad)

  @property
  def is_empty(self) -> bool:
    """Whether no cell is there."""
    return self.cells.dtype == object and all(cell is None or isinstance(cell, str) and not cell for cell in self.cells)

  def first_bad(self) -> int | None:
    """The first row with a cell that is there, but no number."""
    bad = (int(i) for i in np.flatnonzero(np.isnan(self.values)) if not is_missing(self.cells[i]))
    return next(bad, None)


def read_columns(
  columns: Sequence[np.ndarray], *, decimal: str | None = None, separator: str = "", time_unit: str | None = None
) -> list[Column]:
  """The columns of one file as numbers.

  Args:
    columns: cells [N] of each: numbers or dates by NumPy, or objects: texts, numbers, dates, None.
    decimal: the decimal mark; None to decide by the cells.
    separator: what stands between columns: with ";" a comma is likelier a decimal one, between commas it cannot be.
    time_unit: of dates and times, one of `times.UNITS`; None to choose by their span.
  """
  readings = [_read_typed(cells, time_unit) if cells.dtype.kind != "O" else _Reading(cells, time_unit)
              for cells in columns]
  texts = [reading for reading in readings if isinstance(reading, _Reading)]
  known = {reading.decimal for reading in texts if reading.decimal}
  of_file = decimal or (known.pop() if len(known) == 1 else _by_separator(texts, separator) if not known else None)
  found = (reading.finish(decimal, of_file) if isinstance(reading, _Reading) else reading for reading in readings)
  return [_with_note_of_digits(_with_note_of_days(column)) for column in found]


def _with_note_of_days(column: Column) -> Column:
  """The column, with a note where its plain numbers may have been meant as days."""
  if column.note or column.fault or column.is_time or not times.are_days_without_signs(column.values):
    return column
  example = f"{column.values[~np.isnan(column.values)][0]:.0f}"
  days = f"{example[:4]}-{example[4:6]}-{example[6:]}"
  return dataclasses.replace(column, note=f"is read as plain numbers; for days write {example} as {days}")


def _with_note_of_digits(column: Column) -> Column:
  """The column, with a note where whole numbers, such as long identifiers, have more digits than double precision, or
  decimals so many that different ones become the same number or so small that they become 0.
  """
  if column.note or column.fault or column.is_time:
    return column
  for i in np.flatnonzero(np.abs(column.values) >= LAST_WHOLE):
    value, cell = column.values[i], column.cells[i]
    with contextlib.suppress(ValueError, TypeError, OverflowError):  # no whole number; infinite
      if int(cell) != int(value):
        shown = files.shorten(str(cell).strip(), 40)
        return dataclasses.replace(column, note=f"is rounded to double precision: {shown} is read as {value:.0f}")
  if (lost := _find_lost(column)) is not None:
    return dataclasses.replace(
      column, note=f"is rounded to double precision: {files.shorten(str(lost).strip(), 40)} is read as 0")
  merged = _find_merged(column)
  if not merged:
    return column
  first, second = (files.shorten(text, 40) for text in merged)
  return dataclasses.replace(
    column, note=f"is rounded to double precision: {first} and {second} are read as the same number")


def _find_lost(column: Column) -> Any:
  """The first cell that is read as 0 and is another number, such as `1e-400`; None where there is none."""
  if column.cells.dtype.kind != "O":
    return None
  zeros = dict.fromkeys(column.cells[column.values == 0])  # many, in few spellings
  return next((cell for cell in zeros if (_NOT_ZERO.match(cell) if isinstance(cell, str) else cell != 0)), None)


def _find_merged(column: Column) -> tuple[str, ...]:
  """Two texts of different numbers that have one value, the first such; empty where there are none.

  Few columns have long texts and values that recur, and of those few have a value in several spellings: only what is
  left is read digit by digit.
  """
  if column.cells.dtype.kind != "O" or not len(column.cells):
    return ()
  finite = np.flatnonzero(np.isfinite(column.values))
  codes, distinct = pd.factorize(column.values[finite])
  if len(distinct) == len(finite):
    return ()
  texts = np.array([str(cell).strip() for cell in column.cells[finite]], object)
  if max(map(len, texts)) <= _SURE_DIGITS:
    return ()
  spellings = pd.DataFrame({"value": codes, "text": texts}).drop_duplicates()
  recurring = spellings[spellings["value"].duplicated(keep=False)]
  firsts: dict[int, str] = {}
  for value, text in zip(recurring["value"], recurring["text"], strict=True):
    first = firsts.setdefault(value, text)
    if max(len(first), len(text)) > _SURE_DIGITS and _are_different(first, text):
      return first, text
  return ()


def _are_different(text: str, other: str) -> bool:
  """Whether two texts are different numbers; of what is no plain number, such as one with spaces in it, nothing is
  said.
  """
  with contextlib.suppress(decimal_lib.InvalidOperation):
    return decimal_lib.Decimal(text) != decimal_lib.Decimal(other)
  return False


def _read_typed(cells: np.ndarray, time_unit: str | None) -> Column:
  if cells.dtype.kind in "mM":
    found = times.read(cells, time_unit)
    assert found is not None, "of these types every column is times"
    return _of_times(cells, found)
  with np.errstate(over="ignore"):  # of numbers longer than double precision has them
    return Column(cells.astype(np.float64), cells, _TRUTHS_NOTE if cells.dtype.kind == "b" else "")


def _of_times(cells: np.ndarray, found: times.Times) -> Column:
  return Column(found.values, cells, found.note, found.fault, is_time=True, scale=found.scale)


def _by_separator(texts: Sequence["_Reading"], separator: str) -> str | None:
  """The decimal mark of a file all of whose marked numbers could be read both ways."""
  marks = {mark for reading in texts if reading.is_open for mark in reading.marks}
  if marks <= {POINT}:
    return POINT
  if marks != {COMMA}:
    return None
  if separator == COMMA:
    return POINT  # it stands in quotes: a comma within numbers that is not to separate
  # Numbers with three digits after every comma: thousands would leave small numbers without any.
  is_throughout = all(reading.is_marked_throughout for reading in texts if reading.is_open)
  return COMMA if separator == ";" and is_throughout else None


def _are_truths(values: np.ndarray) -> bool:
  """Whether all numbers [N] but NaN are 0 or 1."""
  return bool(np.isin(values[~np.isnan(values)], (0, 1)).all())


class _Reading:
  """A column of objects, read by either decimal mark.

  Attributes:
    values: [N] of the cells that are numbers already; texts: [T] the others that are there, at `is_text` [N].
    plain: what programs make of the texts [T], NaN for no number.
    decimal: the mark that its own cells tell; empty where they tell none.
    is_open: whether all can be read by either mark, with different values; marks: those that stand in such cells.
    is_plain: whether all are numbers as programs write them, with a decimal point or none.
  """

  def __init__(self, cells: np.ndarray, time_unit: str | None = None):
    self.cells, self._time_unit = cells, time_unit
    if set(map(type, cells)) <= {str}:
      self.values, read = np.full(len(cells), np.nan), _read_plain(cells)
      self.is_text = ~np.isnan(read)
      for i in np.flatnonzero(~self.is_text):
        self.is_text[i] = not is_missing(cells[i])
      self.plain = read[self.is_text]
    else:
      self.values = np.array([_number_of(cell) for cell in cells], np.float64)
      self.is_text = np.array([isinstance(cell, str) and not is_missing(cell) for cell in cells], bool)
      self.plain = _read_plain(cells[self.is_text])
    self.texts = cells[self.is_text]
    self.decimal, self.is_open, self.is_plain = "", False, False
    self.marks: frozenset[str] = frozenset()
    self._read: dict[str, np.ndarray] = {}
    self._decide()

  def _decide(self) -> None:
    if not np.isnan(self.plain).any():
      self._read[POINT], self.is_plain = self.plain, True
      # Dots tell of themselves unless each of them could stand before thousands.
      if all(POINT not in text or read_number(text, COMMA) is not None for text in self.texts):
        self.is_open = any(POINT in text for text in self.texts)
        self.marks = frozenset(POINT) if self.is_open else frozenset()
      else:
        self.decimal = POINT
      return
    point, comma = self.read(POINT), self.read(COMMA)
    by_point, by_comma = ~np.isnan(point), ~np.isnan(comma)
    is_number = by_point | by_comma
    if 2 * is_number.sum() < len(self.texts):
      return  # text with a number in it here and there tells nothing
    if (by_point == by_comma).all():
      differs = is_number & (point != comma)
      self.is_open = bool(differs.any())
      self.marks = frozenset(mark for text in self.texts[differs] for mark in (POINT, COMMA) if mark in text)
    elif (by_point >= by_comma).all() or (by_point <= by_comma).all():
      self.decimal = POINT if by_point.sum() > by_comma.sum() else COMMA

  def read(self, decimal: str) -> np.ndarray:
    """Values of the texts by a mark, NaN for those that are no number by it."""
    if decimal not in self._read:
      # None is NaN to NumPy.
      self._read[decimal] = np.array([read_number(text, decimal) for text in self.texts], np.float64)
    return self._read[decimal]

  @property
  def is_marked_throughout(self) -> bool:
    return all(COMMA in text for text in self.texts)

  def finish(self, asked: str | None, of_file: str | None) -> Column:
    """The column with the decimal mark asked for, its own, or that of the file, in this order."""
    decimal = asked or self.decimal or of_file
    if self.is_plain and len(self.texts) and (decimal == POINT or not (self.decimal or self.is_open)):
      return self._column(POINT)
    is_number = ~np.isnan(self.read(POINT)) | ~np.isnan(self.read(COMMA))
    if not is_number.any() and (other := self._of_other_kind()) is not None:
      return other
    if decimal is None and self.is_open:
      return self._faulty(f"may be read in two ways: {self._example()} is {self._values_of_example()}; "
                          "--decimal=. or --decimal=, says which mark is the decimal one")
    if not asked and not self.decimal and (mixture := self._describe_mixture()):
      return self._faulty(mixture)
    return self._check_signs(self._column(decimal or POINT, self._note(decimal or POINT, asked)))

  def _column(self, decimal: str, note: str = "") -> Column:
    values = self.values.copy()
    values[self.is_text] = self.read(decimal)
    truth = next((cell for cell in self.cells[~self.is_text] if isinstance(cell, bool | np.bool_)), None)
    has_truths = truth is not None
    if has_truths and not _are_truths(values):
      return self._faulty(f"mixes truth values, such as {str(truth).lower()!r}, and numbers")
    return Column(values, self.cells, note or (_TRUTHS_NOTE if has_truths else ""))

  def _faulty(self, fault: str) -> Column:
    return Column(np.full(len(self.cells), np.nan), self.cells, fault=fault)

  def _of_other_kind(self) -> Column | None:
    """Dates, times, or the words true and false, where there is nothing else."""
    lower = [text.strip().lower() for text in self.texts]
    if lower and all(text in _TRUTHS for text in lower):
      values = self.values.copy()
      values[self.is_text] = [_TRUTHS[text] for text in lower]
      return Column(values, self.cells, _TRUTHS_NOTE) if _are_truths(values) else None
    found = None if np.isfinite(self.values).any() else times.read(self.cells, self._time_unit)
    return None if found is None else _of_times(self.cells, found)

  def _describe_mixture(self) -> str:
    """Where some cells are numbers by one mark only, and others by the other."""
    point, comma = np.isnan(self.read(POINT)), np.isnan(self.read(COMMA))
    if not (point & ~comma).any() or not (comma & ~point).any():
      return ""
    return (f"mixes decimal points and decimal commas, such as {self.texts[~point & comma][0]!r} and "
            f"{self.texts[point & ~comma][0]!r}")

  def _differing(self) -> np.ndarray:
    return self.texts[self.read(POINT) != self.read(COMMA)]

  def _example(self) -> str:
    return repr(next(text for text in self._differing() if any(mark in text for mark in self.marks)))

  def _values_of_example(self) -> str:
    text = next(text for text in self._differing() if any(mark in text for mark in self.marks))
    return f"{read_number(text, COMMA):.15g} or {read_number(text, POINT):.15g}"

  def _note(self, decimal: str, asked: str | None) -> str:
    """How texts were read that no program reads without being told."""
    read = self.read(decimal)
    changed = np.flatnonzero(~np.isnan(read) & (self.plain != read))
    if not len(changed):
      return ""
    text, other = self.texts[changed[0]], POINT if decimal == COMMA else COMMA
    hint = f" (--decimal={other} reads it otherwise)" if self.is_open and not asked else ""
    return f"{_READ_SO} {files.shorten(text, 40)!r} is {read[changed[0]]:.15g}{hint}"

  def _check_signs(self, column: Column) -> Column:
    """Refuses a column where some numbers have a percent sign and others none, as 5 and 5 % differ by a hundred, and
    one of several currencies.
    """
    currencies = {currency: text for text in self.texts[~np.isnan(column.values[self.is_text])]
                  if (currency := _without_currency(text)[1])}
    if len(currencies) > 1:
      first, second = list(currencies.values())[:2]
      return self._faulty(f"mixes currencies, such as {first!r} and {second!r}")
    has_sign = np.array([text.rstrip().endswith("%") for text in self.texts], bool)
    is_number = ~np.isnan(column.values[self.is_text])
    if not (has_sign & is_number).any():
      return column
    without = self.texts[~has_sign & is_number & (column.values[self.is_text] != 0)]
    if not len(without) and not np.isfinite(self.values).any():
      return column
    example = without[0] if len(without) else f"{self.values[np.isfinite(self.values)][0]:g}"
    return self._faulty(f"mixes numbers with and without a percent sign, such as {example!r} and "
                        f"{self.texts[has_sign & is_number][0]!r}")


def _read_plain(texts: np.ndarray) -> np.ndarray:
  return pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce").to_numpy(np.float64)


def _number_of(cell: Any) -> float:
  """The value of a cell that is a number already, NaN for any other."""
  if not isinstance(cell, numbers.Real | decimal_lib.Decimal | np.bool_):
    return math.nan
  try:
    return float(cell)
  except OverflowError:  # a whole number beyond double precision
    return -math.inf if cell < 0 else math.inf


def as_category(cell: Any) -> str | None:
  """A cell as the name of a class, the same for 1 and 1.0; None where it is missing."""
  if is_missing(cell):
    return None
  if isinstance(cell, datetime.date):
    return cell.isoformat()
  if isinstance(cell, numbers.Real) and not isinstance(cell, bool | np.bool_):
    return f"{cell:.15g}"
  return " ".join(str(cell).split())


def classes_of(column: Column) -> list[str | None]:
  """The class of each cell [N] of a category; None where it is missing."""
  return [as_category(cell) for cell in column.cells]


def is_of_class(classes: Sequence[str | None], name: str) -> np.ndarray:
  """1 where a cell is of a class and 0 where it is of another [N]; NaN where it is missing."""
  return np.array([np.nan if each is None else float(each == name) for each in classes], np.float64)
