"""Tables that nobody chose: every table of numbers in the package pydataset, in an order drawn by its name.

What a person picks is what comes to mind. Here a rule picks the tables, the target and the columns, so that a figure
says how the search does on tables as they lie about: most are noisy, many have no formula. Those that the list of real
data sets has are left out. Half of the names are set aside: nobody may look at results on them while choosing anything.
"""

import hashlib
import pathlib

import numpy as np

from symformer_jax.evaluation import real_data
from symformer_jax.evaluation.real_data import RealSet

# Rows of a table; fewer say nothing, more take longer and say the same.
MIN_ROWS, MAX_ROWS = 15, 3000
# Columns of a table beside its target: the first ones.
MAX_FEATURES = 8
# A column is one of numbers where so large a share of its cells are; a target has so many different values.
NUMERIC_SHARE, MIN_VALUES = 0.8, 6


def load_drawn() -> list[RealSet]:
  """All such tables; reading them takes a few seconds.

  Raises:
    InputError: where the package is missing.
  """
  chosen = {s.source for s in real_data.load_table()}
  found = [_as_set(name, columns) for name, columns in real_data.pydataset_tables()
           if f"pydataset:{name}" not in chosen]
  return sorted((each for each in found if each is not None), key=lambda each: (_draw(each.name), each.name))


def _draw(name: str) -> tuple[int, bool]:
  """A place in the order, and whether the table is set aside: two bytes of the SHA-256 of its name in its package."""
  drawn = hashlib.sha256(f"wild{pathlib.PurePosixPath(name).name}".encode()).digest()
  return drawn[0], drawn[1] % 2 == 1


def _as_set(name: str, columns: dict[str, list]) -> RealSet | None:
  """The table with the last column of enough values as its target; None where it is of no use."""
  if not MIN_ROWS <= max(map(len, columns.values()), default=0) <= MAX_ROWS:
    return None
  numbers = {column: np.array([real_data.to_number(cell) for cell in cells])
             for column, cells in columns.items() if column}  # the first, without a name, counts the rows
  numbers = {column: values for column, values in numbers.items() if np.mean(np.isfinite(values)) >= NUMERIC_SHARE}
  if not numbers:
    return None
  is_whole = np.all([np.isfinite(values) for values in numbers.values()], axis=0)
  numbers = {column: values[is_whole] for column, values in numbers.items() if _varies(values[is_whole])}
  targets = [column for column, values in numbers.items() if len(np.unique(values)) >= MIN_VALUES]
  if np.sum(is_whole) < MIN_ROWS or len(numbers) < 2 or not targets:
    return None
  features = tuple(column for column in numbers if column != targets[-1])[:MAX_FEATURES]
  return RealSet(name, "table", f"pydataset:{name}", targets[-1], features, "", is_set_aside=_draw(name)[1])


def _varies(values: np.ndarray) -> bool:
  """Whether a column has two values at least and is no count of its rows."""
  return len(np.unique(values)) > 1 and not np.all(np.diff(values) == 1)
