"""A table with a further column as CSV: cells as they were read, numbers in all their digits."""

from collections.abc import Iterable, Iterator, Sequence
import datetime
import re
from typing import Any

import numpy as np
import pandas as pd

from symformer_jax.commands import cells

SUFFIX = ".csv"
# Rows that become text at once.
CHUNK_ROWS = 10_000
# What the reader of tables takes for more than a part of a text: separators, comments, and signs that quote or begin
# a comment where a line begins.
_UNLIKE_TEXT = re.compile(r"""[",;|\t\r\n#]|\A\s*['%]""")
# Within a cell the reader leaves out lines that are empty or comments: these go on where the one before ends.
_BREAK = re.compile(r"[\r\n]\s*(?=#|\Z)|(?:\r\n?+|\n)\s*[\r\n]\s*")


def to_csv(names: Sequence[str], columns: Sequence[np.ndarray], values: np.ndarray) -> Iterator[str]:
  """The text of a table in parts.

  Args:
    names: of the columns and of the values; columns: cells [N] as a file has them; values: [N], NaN for an empty cell.
  """
  yield _lines([names])
  for begin in range(0, len(values), CHUNK_ROWS):
    part = slice(begin, begin + CHUNK_ROWS)
    texts = [*(_texts(column[part]) for column in columns),
             ["" if np.isnan(value) else repr(value) for value in values[part].tolist()]]
    yield _lines(zip(*texts, strict=True))


def _lines(rows: Iterable[Iterable[str]]) -> str:
  return "".join(",".join(map(_quoted, row)) + "\n" for row in rows)


def _quoted(text: str) -> str:
  if not _UNLIKE_TEXT.search(text):
    return text
  text = _BREAK.sub(" ", text).replace('"', '""')
  return f'"{text}"'


def _texts(column: np.ndarray) -> list[str]:
  if column.dtype.kind == "M":
    is_whole = bool((column[~np.isnat(column)] == column[~np.isnat(column)].astype("datetime64[s]")).all())
    texts = np.datetime_as_string(column.astype("datetime64[s]") if is_whole else column).tolist()
    return ["" if text == "NaT" else text for text in texts]
  return [_text(cell) for cell in column]


def _text(cell: Any) -> str:
  """A cell such that the reader of tables takes it for what it was."""
  if isinstance(cell, str):
    return cell
  if isinstance(cell, cells.ErrorCell):
    return cell.text
  if cell is None or cell is pd.NA or cell is pd.NaT or cell != cell:
    return ""
  if isinstance(cell, np.timedelta64 | datetime.timedelta):
    length = pd.Timedelta(cell)
    return str(length) if length >= pd.Timedelta(0) else f"-{-length}"  # not -1 days +23:59:55
  if isinstance(cell, datetime.datetime):
    return cell.isoformat(sep=" ")
  return str(cell)  # of NumPy's numbers and Python's all digits
