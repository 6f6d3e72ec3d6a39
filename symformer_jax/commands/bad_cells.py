"""What is said of cells that hold no finite number."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from symformer_jax import files
from symformer_jax.commands import cells

# Kinds of such cells that are told of one by one.
MAX_KINDS = 3


def shown(column: cells.Column, row: int) -> str:
  """A cell for a message of one line."""
  return files.shorten(repr(str(column.cells[row])), 60)


def describe(column: cells.Column, row: int) -> str:
  """What a cell is that holds no finite number, with its text where it has one."""
  cell = column.cells[row]
  if isinstance(cell, cells.ErrorCell):
    return f"{cell.text!r}, an error of the spreadsheet"
  what = "a missing value" if cells.is_missing(cell) else cells.describe_limit(cell)
  is_shown = not what or isinstance(cell, str) and cell.strip()
  return ", ".join(filter(None, [shown(column, row) if is_shown else "", what]))


def count(columns: Sequence[cells.Column], is_bad: np.ndarray) -> Counter[str]:
  """What the first such cells of rows with one are, `is_bad` [N, D], and in how many rows."""
  rows = np.flatnonzero(is_bad.any(axis=1))
  return Counter(describe(columns[place], row)
                 for row, place in zip(rows.tolist(), is_bad[rows].argmax(axis=1).tolist(), strict=True))


def tell_counts(kinds: Counter[str]) -> str:
  """`2 with a missing value; 1 with 'x'`, of many kinds the first."""
  told = [f"{num} with {kind}" for kind, num in list(kinds.items())[:MAX_KINDS]]
  return "; ".join([*told, "..."] if len(kinds) > MAX_KINDS else told)
