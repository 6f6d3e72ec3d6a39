"""What a DataFrame holds that is no number, said before NumPy fails at it."""

from typing import Any

from symformer_jax.errors import InputError


def check_numeric(data: Any, argument: str) -> None:
  """Refuses columns of dates, times, complex numbers and text, and two columns of one name.

  Anything but pandas' data is left alone; text that is a number, such as "1.5" or "inf", or "nan", is none of these.
  Args:
    data: a DataFrame or a Series; argument: its name, for the message.
  Raises:
    InputError: names the column, and the first cell that is no number with its row.
  """
  frame = data.to_frame() if hasattr(data, "to_frame") and hasattr(data, "dtype") else data
  if not hasattr(frame, "columns") or not hasattr(frame, "iloc"):
    return
  repeated = frame.columns[frame.columns.duplicated()]
  if len(repeated):
    raise InputError(f"{argument}: two columns are called {repeated[0]!r}")
  for place, name in enumerate(frame.columns):
    _check_column(frame.iloc[:, place], argument if frame is not data else f"{argument}: column {name!r}")


def _check_column(column: Any, what: str) -> None:
  import pandas as pd

  if column.dtype.kind in "mM" or isinstance(column.dtype, pd.PeriodDtype):
    raise InputError(f"{what} holds dates or times ({column.dtype}); give numbers, such as days or years, "
                     "from (t - t.min()).dt.total_seconds()")
  if column.dtype.kind == "c":
    raise InputError(f"{what} holds complex numbers; give real and imaginary parts as columns of their own")
  if column.dtype.kind in "iufb":
    return
  present = column[column.notna()].astype(object)
  is_number = pd.to_numeric(present.map(lambda cell: cell if isinstance(cell, str | int | float) else _as_float(cell)),
                            errors="coerce").notna() | present.map(_is_nan)
  if is_number.all():
    return
  row = present.index[~is_number.to_numpy()][0]
  cell = present[~is_number.to_numpy()].iloc[0]
  hint = "give numbers, such as pandas.get_dummies makes of categories" if isinstance(cell, str) else "give numbers"
  raise InputError(f"{what} holds {' '.join(repr(cell).split())[:60]} in row {row}, which is no number; {hint}")


def _is_nan(cell: Any) -> bool:
  """Whether a text is what NumPy reads as a missing number."""
  return isinstance(cell, str) and cell.strip().lower().lstrip("+-") == "nan"


def _as_float(cell: Any) -> float:
  try:
    return float(cell)
  except (TypeError, ValueError):
    return float("nan")
