"""Dates and times of a column as numbers: decimal years where they span years, else time since the first one; or in the
unit that is asked for.
"""

from collections.abc import Sequence
import dataclasses
import datetime
import re
from typing import Any
import warnings

import numpy as np
import pandas as pd

# How people write days; where two read the same column differently, it is refused.
_DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%d %b %Y",
         "%d-%b-%Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%Y-%m", "%Y/%m", "%m/%Y", "%b %Y", "%B %Y")
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
# Cheap: most columns of text are no dates, and every format costs a pass.
_LIKE_A_DAY = re.compile(
  rf"(?:\d{{4}}[-/.]\d{{1,2}}|\d{{1,2}}[-/.]\d{{1,2}}[-/.]\d{{4}}|\d{{1,2}}/\d{{4}}|\d{{1,2}}[- ]{_MONTH}[- ]\d{{4}}"
  rf"|{_MONTH} (?:\d{{1,2}}, )?\d{{4}})(?:[-/.]\d{{1,2}})?(?:[ T]\d?\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?[AP]M)?"
  r"(?: ?(?:Z|UTC|[-+]\d\d:?\d\d))?)?", re.IGNORECASE | re.ASCII)
_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?\s?(?:Z|[+-]\d\d:?\d\d)?)?", re.ASCII)
_DURATION = re.compile(
  r"(?P<sign>-?)(?:(?P<days>\d+) days?,? )?(?P<hours>\d+):(?P<minutes>[0-5]\d)(?::(?P<seconds>[0-5]\d(?:[.,]\d*)?))?",
  re.ASCII)
_DECIMAL_COMMA = re.compile(r"(?<=:\d\d),(?=\d)")
# By the least span that each is for, in seconds: few digits before the point, and no fraction of a unit.
_UNITS = (("days", 2 * 86400.0, 86400.0), ("hours", 2 * 3600.0, 3600.0), ("minutes", 120.0, 60.0),
          ("seconds", 0.0, 1.0))
YEARS = "years"
UNITS = (YEARS, *(name for name, _, _ in _UNITS))
_YEARS_SPAN_S = 2 * 365.25 * 86400
# Rows by which formats are tried before all are read.
_NUM_TRIED = 50


@dataclasses.dataclass(frozen=True)
class TimeScale:
  """What dates or times are counted in, so that those of another file can be counted alike.

  Attributes:
    unit: one of `UNITS`; start: the moment from which dates are counted, None for decimal years and for times of day
      and durations, which have no years.
  """

  unit: str
  start: np.datetime64 | None = None

  @property
  def is_of_dates(self) -> bool:
    """Whether dates are counted, rather than times of day or durations."""
    return self.unit == YEARS or self.start is not None

  def describe(self) -> str:
    """As notes say it: `days since 2020-01-01`."""
    if self.start is None:
      return "decimal years" if self.unit == YEARS else self.unit
    micro = self.start.astype("datetime64[us]")
    start = str(micro if micro == self.start else self.start).replace("T", " ")
    return f"{self.unit} since {start.removesuffix('.000000').removesuffix(' 00:00:00')}"

  def to_json(self) -> dict[str, str | None]:
    """As files of formulas keep it."""
    return {"unit": self.unit, "start": None if self.start is None else str(self.start)}


@dataclasses.dataclass(frozen=True)
class Times:
  """Attributes:
    values: [N] float64 in the unit that `note` says, NaN for what is no time.
    fault: why they cannot be used; empty where they can.
    scale: how they are counted; None where there is nothing to count.
  """

  values: np.ndarray
  note: str = ""
  fault: str = ""
  scale: TimeScale | None = None


def is_time(text: str) -> bool:
  """Whether a text looks like a date or a time."""
  return _LIKE_A_DAY.fullmatch(text.strip()) is not None or _DURATION.fullmatch(text.strip()) is not None


def are_days_without_signs(values: np.ndarray) -> bool:
  """Whether all numbers [N] but NaN are such as 20201231: days of the calendar, which are taken for plain numbers."""
  present = values[~np.isnan(values)]
  if not len(present) or not ((present >= 18000101) & (present <= 21991231)).all() or (present % 1).any():
    return False
  days = pd.to_datetime(pd.Series(present.astype(np.int64).astype(str)), format="%Y%m%d", errors="coerce")
  return bool(days.notna().all())


def read(cells: np.ndarray, unit: str | None = None, *, start: np.datetime64 | None = None) -> Times | None:
  """Dates or times [N] of a column that is mostly made of them, as numbers; None for any other column.

  Args:
    cells: datetime64 or timedelta64, or objects: texts, dates, times, None.
    unit: one of `UNITS`, of which times of day and durations have no years; None to choose by their span.
    start: of dates, from which they are counted; None for the first one.
  """
  if cells.dtype.kind == "M":
    return _of_moments(_resolved(cells), [], unit, start)
  if cells.dtype.kind == "m":
    return _of_durations(_seconds(cells), unit)
  texts = [cell.strip() if isinstance(cell, str) else cell for cell in cells]
  present = [text for text in texts if isinstance(text, datetime.date | datetime.time | datetime.timedelta)
             or isinstance(text, str) and is_time(text)]
  num_cells = sum(cell is not None and cell == cell and cell != "" for cell in texts)
  if not present or 2 * len(present) < num_cells:
    return None
  if all(isinstance(text, datetime.time | datetime.timedelta) or _is_duration(text) for text in present):
    return _of_durations(np.array([_duration(text) for text in texts]), unit)
  return _read_days(texts, present, unit, start)


def _resolved(moments: np.ndarray) -> np.ndarray:
  """Moments as nanoseconds where they are that, else as microseconds, which hold any year."""
  return moments if moments.dtype == "datetime64[ns]" else moments.astype("datetime64[us]")


def _seconds(cells: np.ndarray) -> np.ndarray:
  return np.where(np.isnat(cells), np.nan, cells / np.timedelta64(1, "s"))


def _is_duration(text: Any) -> bool:
  return isinstance(text, str) and _DURATION.fullmatch(text) is not None


def _duration(cell: Any) -> float:
  """Seconds; NaN for no duration."""
  if isinstance(cell, datetime.timedelta):
    return cell.total_seconds()
  if isinstance(cell, datetime.time):
    return cell.hour * 3600 + cell.minute * 60 + cell.second + cell.microsecond / 1e6
  found = _DURATION.fullmatch(cell) if isinstance(cell, str) else None
  if found is None:
    return np.nan
  size = sum(float((found[part] or "0").replace(",", ".")) * seconds for part, seconds in (
    ("days", 86400), ("hours", 3600), ("minutes", 60), ("seconds", 1)))
  return -size if found["sign"] else size


def _read_days(
  texts: Sequence[Any], present: Sequence[Any], unit: str | None, start: np.datetime64 | None
) -> Times | None:
  strings = [text for text in present if isinstance(text, str)]
  if not strings:
    return _of_moments(_parse(texts, None), texts, unit, start)
  if all(_ISO.fullmatch(text) for text in strings):
    return _of_moments(_with_dates(_parse(texts, "ISO8601"), texts), texts, unit, start)
  sample = strings[:_NUM_TRIED]
  formats = [day + clock for day in _DAYS for clock in _CLOCKS]
  tried = {each: int(np.sum(~np.isnat(_parse(sample, each)))) for each in formats}
  usable = [each for each in formats if tried[each] == max(tried.values()) > 0]
  # What the first rows leave open, later ones may tell.
  found = {each: _parse(texts, each) for each in usable}
  counts = {each: int(np.sum(~np.isnat(moments))) for each, moments in found.items()}
  found = {each: moments for each, moments in found.items() if counts[each] == max(counts.values())}
  if not found:
    return None
  first, *others = found.values()
  if fault := next(filter(None, (_describe_conflict(texts, first, other) for other in others)), ""):
    return Times(np.full(len(texts), np.nan), fault=f"{fault}; write them as 2020-12-31")
  return _of_moments(_with_dates(first, texts), texts, unit, start)


def _describe_conflict(texts: Sequence[Any], moments: np.ndarray, others: np.ndarray) -> str:
  """In what two readings [N] of as many cells differ; empty where they do not."""
  is_read, is_read_otherwise = ~np.isnat(moments), ~np.isnat(others)
  is_open = is_read & is_read_otherwise & (moments != others)
  if is_open.any():
    return f"holds dates that may be day and month or month and day, such as {texts[int(np.argmax(is_open))]!r}"
  if np.array_equal(is_read, is_read_otherwise):
    return ""
  one, other = int(np.argmax(is_read & ~is_read_otherwise)), int(np.argmax(is_read_otherwise & ~is_read))
  return f"mixes dates of two forms, such as {texts[one]!r} and {texts[other]!r}"


def _with_dates(moments: np.ndarray, texts: Sequence[Any]) -> np.ndarray:
  """Moments of texts [N], and of those cells among them that are dates already, as workbooks have both."""
  others = _parse(texts, None)
  return moments if np.isnat(others).all() else np.where(np.isnat(moments), others, moments.astype(others.dtype))


def _parse(texts: Sequence[Any], form: str | None) -> np.ndarray:
  """Moments [N] of texts of one form, or of dates, as `_resolved` has them, in UTC; NaT for any other."""
  is_wanted = [isinstance(text, str) == (form is not None) and isinstance(text, str | datetime.date) for text in texts]
  if form is not None:
    # No format has a T between day and clock but that of ISO, which may have a space as well.
    texts = [re.sub(r"(?<=\d)T(?=\d)", " ", _DECIMAL_COMMA.sub(".", text)) if isinstance(text, str) else text
             for text in texts]
  series = pd.Series([text if ok else None for text, ok in zip(texts, is_wanted, strict=True)], dtype=object)
  with warnings.catch_warnings(action="ignore"):
    moments = pd.to_datetime(series, format=form, errors="coerce", utc=True)
  return _resolved(moments.dt.tz_localize(None).to_numpy())


def _of_moments(
  moments: np.ndarray, texts: Sequence[Any], asked: str | None, start: np.datetime64 | None = None
) -> Times:
  present = ~np.isnat(moments)
  if not present.any():
    return Times(np.full(len(moments), np.nan))
  if start is not None and start.dtype != moments.dtype:  # microseconds hold any year
    moments, start = moments.astype("datetime64[us]"), start.astype("datetime64[us]")
  first = moments[present].min() if start is None else start
  span_s = (moments[present].max() - first) / np.timedelta64(1, "s")
  if asked == YEARS or asked is None and span_s >= _YEARS_SPAN_S:
    return _of_years(moments, texts, hint="" if asked == YEARS else " (--time_unit=days counts days)")
  unit, size_s = _unit(span_s, asked)
  values = np.where(present, (moments - first) / np.timedelta64(1, "s") / size_s, np.nan)
  scale = TimeScale(unit, first)
  return Times(values, f"holds dates, read as {scale.describe()}", scale=scale)


def _of_years(moments: np.ndarray, texts: Sequence[Any], *, hint: str) -> Times:
  """Decimal years, of which not all have the same number of days."""
  present = ~np.isnat(moments)
  years = moments.astype("datetime64[Y]")
  begin, end = years.astype("datetime64[us]"), (years + 1).astype("datetime64[us]")
  share = np.where(present, (moments - begin) / np.where(present, end - begin, np.timedelta64(1, "us")), np.nan)
  values = np.where(present, years.astype(np.int64) + 1970, 0) + share
  row = int(np.argmax(present))
  example = texts[row] if len(texts) else str(moments[row].astype("datetime64[s]"))
  scale = TimeScale(YEARS)
  note = f"holds dates, read as {scale.describe()}: {str(example)!r} is {values[row]:.8g}{hint}"
  return Times(values, note, scale=scale)


def _unit(span_s: float, asked: str | None) -> tuple[str, float]:
  """The name of a unit, that asked for or one that suits a span, and its seconds."""
  return next((name, size_s) for name, least, size_s in _UNITS
              if (span_s >= least if asked is None or asked == YEARS else name == asked))


def _of_durations(seconds: np.ndarray, asked: str | None) -> Times:
  present = np.isfinite(seconds)
  if not present.any():
    return Times(seconds)
  largest = np.abs(seconds[present]).max()
  unit, size_s = _unit(largest, asked)
  hint = "; years are for dates alone" if asked == YEARS else ""
  return Times(seconds / size_s, f"holds times, read as {unit}{hint}", scale=TimeScale(unit))
