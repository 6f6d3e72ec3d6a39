"""What DataFrames and arrays hold that is no number, or one too large or small, said before NumPy fails at it, or makes
numbers of dates.
"""

from collections.abc import Sequence
import datetime
from typing import Any

import numpy as np

from symformer_jax.errors import InputError, show

_TIMES = (np.datetime64, np.timedelta64, datetime.date, datetime.time, datetime.timedelta)
_ADVICE = "give numbers, such as days or years, from"
# Sizes whose fourth powers double precision holds: covariances of constants have those.
SMALLEST, LARGEST = 1e-60, 1e60


def check_numeric(data: Any, argument: str) -> None:
  """Refuses dates, times, text and complex numbers; in pandas' data other objects and two columns of one name as well.

  Text that is a number, such as "1.5" or "inf", or "nan", is none of these.
  Args:
    data: a DataFrame, a Series, an array, or lists of lists; argument: its name, for the message.
  Raises:
    InputError: names the column, and the first cell that is no number with its row.
  """
  if data is None:  # nothing is given for weights; without y scikit-learn says what is missing
    if argument == "X":
      raise InputError("X: expected an array [N, D], got None")
    return
  frame = data.to_frame() if hasattr(data, "to_frame") and hasattr(data, "dtype") else data
  if not hasattr(frame, "columns") or not hasattr(frame, "iloc"):
    _check_array(data, argument)
    return
  repeated = frame.columns[frame.columns.duplicated()]
  if len(repeated):
    raise InputError(f"{argument}: two columns are called {repeated[0]!r}")
  for place, name in enumerate(frame.columns):
    _check_column(frame.iloc[:, place], argument if frame is not data else f"{argument}: column {name!r}")


def as_numbers(data: Any, argument: str) -> np.ndarray:
  """An array, or lists, as float64.

  Raises:
    InputError: for what is no array of numbers.
  """
  try:
    return np.asarray(data, np.float64)
  except (TypeError, ValueError, OverflowError) as error:  # lists of unequal length among them
    raise InputError(f"{argument}: expected an array of numbers: {error}") from None


def check_sizes(x: np.ndarray, y: np.ndarray, names: Sequence[str] | None = None) -> None:
  """Refuses numbers that no formula can be fitted to in double precision.

  Args:
    x: points [N, D], N at least 1, and y: [N], both finite; names: of the columns, which are numbered without.
  Raises:
    InputError: names the column, and which way its unit is to be changed.
  """
  def called(column: int) -> str:
    return f"column {column if names is None or len(names) != x.shape[1] else names[column]!r}"

  sizes = np.max(np.abs(x), axis=0)
  largest, height = int(np.argmax(sizes)), np.max(np.abs(y))
  if sizes[largest] > LARGEST:
    raise InputError(f"X: expected numbers up to {LARGEST:g} in size, got {sizes[largest]:g} in {called(largest)}; "
                     "take a larger unit")
  if height > LARGEST:
    raise InputError(f"y: expected numbers up to {LARGEST:g} in size, got {height:g}; take a larger unit")
  for column, size in enumerate(sizes):
    if 0 < size < SMALLEST:
      raise InputError(f"X: expected numbers of at least {SMALLEST:g} in size in each column, got at most {size:g} in "
                       f"{called(column)}; take a smaller unit")
  if 0 < np.ptp(y) < SMALLEST:
    raise InputError(f"y: expected a spread of at least {SMALLEST:g}, got {np.ptp(y):g}; take a smaller unit")
  if 0 < height < SMALLEST:
    raise InputError(f"y: expected numbers of at least {SMALLEST:g} in size, got at most {height:g}; take a smaller "
                     "unit")


def _check_column(column: Any, what: str) -> None:
  import pandas as pd

  if column.dtype.kind in "mM" or isinstance(column.dtype, pd.PeriodDtype):
    raise InputError(f"{what} holds dates or times ({column.dtype}); {_ADVICE} (t - t.min()).dt.total_seconds()")
  if column.dtype.kind == "c":
    raise _complex_in(what)
  if isinstance(column.dtype, pd.SparseDtype):
    raise InputError(f"{what} is sparse ({column.dtype}); give dense numbers, as sparse.to_dense() makes them")
  if column.dtype.kind in "iufb":
    _check_range(column, what)
    return
  present = column[column.notna()].astype(object)
  is_number = pd.to_numeric(present.map(lambda cell: cell if isinstance(cell, str | int | float) else _as_float(cell)),
                            errors="coerce").notna() | present.map(_is_nan)
  if not is_number.all():
    row = present.index[~is_number.to_numpy()][0]
    raise _no_number(what, present[~is_number.to_numpy()].iloc[0], row)


def _no_number(what: str, cell: Any, row: Any) -> InputError:
  hint = "give numbers, such as pandas.get_dummies makes of categories" if isinstance(cell, str) else "give numbers"
  return InputError(f"{what} holds {' '.join(repr(cell).split())[:60]} in row {row}, which is no number; {hint}")


def _check_array(data: Any, argument: str) -> None:
  """Refuses dates, times, text and complex numbers in an array or in lists; what else is no number, scikit-learn and
  NumPy refuse.
  """
  if np.ma.is_masked(data):  # of which everything behind sees the values that are hidden
    raise InputError(f"{argument} has masked cells; leave their rows out")
  try:
    array = np.asarray(data)
  except (TypeError, ValueError, RuntimeError) as error:  # lists of unequal length among them
    raise InputError(f"{argument}: expected an array of numbers: {' '.join(str(error).split())}") from None
  if array.dtype.kind == "V":
    raise InputError(f"{argument} holds records ({show(array.dtype)}); give columns of numbers")
  if array.ndim == 0 and array.dtype.kind in "OUS" and not hasattr(data, "toarray"):  # sparse: scikit-learn says it
    raise InputError(f"{argument}: expected an array of numbers, got {show(data)}")
  if array.dtype.kind in "mM":
    raise _times_in(argument, array.dtype)
  if array.dtype.kind == "c":
    raise _complex_in(argument)
  if array.ndim not in (1, 2):
    return
  _check_range(array, argument)
  if array.dtype.kind not in "OUST":
    return
  for index, cell in np.ndenumerate(array):
    what = argument if array.ndim == 1 else f"{argument}: column {index[1]}"
    if isinstance(cell, _TIMES):
      raise _times_in(what, type(cell).__name__)
    if isinstance(cell, int) and not np.isfinite(_as_float(cell)):
      raise _beyond(what, index[0])
    if isinstance(cell, str | bytes) and not _is_nan(cell) and np.isnan(_as_float(cell)):
      raise _no_number(what, str(cell) if isinstance(cell, str) else cell.decode("latin-1"), index[0])


def _check_range(data: Any, what: str) -> None:
  """Refuses long doubles that a double would have as infinity, in a Series or an array [N] or [N, D]."""
  if data.dtype != np.longdouble:
    return
  numbers = np.asarray(data)
  with np.errstate(over="ignore"):
    is_beyond = np.isfinite(numbers) & np.isinf(numbers.astype(np.float64))
  if is_beyond.any():
    row, *column = np.argwhere(is_beyond)[0]
    raise _beyond(f"{what}: column {column[0]}" if column else what, row)


def _beyond(what: str, row: Any) -> InputError:
  return InputError(f"{what} holds a number in row {row} that is beyond double precision")


def _times_in(what: str, kind: Any) -> InputError:
  return InputError(f"{what} holds dates or times ({kind}); {_ADVICE} (t - t.min()) / np.timedelta64(1, 'D')")


def _complex_in(what: str) -> InputError:
  # The words in brackets are those that scikit-learn's checks look for.
  return InputError(f"{what} holds complex numbers (Complex data not supported); give real and imaginary parts as "
                    "columns of their own")


def _is_nan(cell: Any) -> bool:
  """Whether a text is what NumPy reads as a missing number."""
  if isinstance(cell, bytes):
    cell = cell.decode("latin-1")
  return isinstance(cell, str) and cell.strip().lower().lstrip("+-") == "nan"


def _as_float(cell: Any) -> float:
  try:
    return float(cell)
  except (TypeError, ValueError, OverflowError):
    return float("nan")
