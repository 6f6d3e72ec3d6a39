"""One data set as a search sees it: its rows, the formulas that count, the shapes that are compiled for it."""

from collections.abc import Sequence
import dataclasses
from typing import Any

import numpy as np

from symformer_jax import compilation
from symformer_jax.engine import screening
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rescale import Scaling
from symformer_jax.engine.rows import Rows, check_dataset
from symformer_jax.errors import InputError
from symformer_jax.language import printing
from symformer_jax.language.expression import Node, negate
from symformer_jax.language.rules import Rule
from symformer_jax.language.tidy import tidy
from symformer_jax.language.units import TARGET, DataUnits

# Rows that are fitted are padded to one of these numbers, or to `PoolConfig.fit_rows`.
ROW_BUCKETS = (64, 128)


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
  """A data set to be searched.

  Attributes:
    rows: all of them, in the user's units; fit_rows: those that constants are fitted to.
    names: of the columns, D of them.
    rule: the formulas that count.
    units: of columns and y; None where they are not known.
    columns: of x, those that formulas are made of: all that the rule allows, or the best of many.
    variance: of y in `fit_rows`, squared units of y.
    num_rows: what `fit_rows` are padded to for compiled programs.
    whole_variance: of what R2 is told of where that is not y but a whole that has y as a part, in squared units of y:
      an unknown function may hardly vary in a template that does.
    turned: columns that are searched with the opposite sign, see `turn`; is_opposite: whether y is.
    sole_column: the one that y seems to be a function of, see `screening.sole_column`; None where it is none.
  """

  rows: Rows
  fit_rows: Rows
  names: tuple[str, ...]
  rule: Rule
  columns: tuple[int, ...]
  variance: float
  num_rows: int
  units: DataUnits | None = None
  whole_variance: float | None = None
  turned: tuple[int, ...] = ()
  is_opposite: bool = False
  sole_column: int | None = None

  @property
  def is_chosen(self) -> bool:
    """Whether columns were left out for being too many."""
    return len(self.columns) < len(self.names) - len(self.rule.excluded)

  def padded_points(
    self, columns: Sequence[int], num_columns: int
  ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`(x [num_rows, num_columns], y, weights)` of some columns of `fit_rows`; rows added have weight 0."""
    padded = self.fit_rows.padded(self.num_rows)
    x = np.pad(padded.x[:, list(columns)], ((0, 0), (0, num_columns - len(columns))))
    return x, padded.y, padded.weights

  def r2(self, mse: float) -> float:
    """R2 of a formula with this error on `fit_rows`."""
    return 1 - mse / (self.variance if self.whole_variance is None else self.whole_variance)

  def text(self, node: Node) -> str:
    """A formula in the column names."""
    return printing.to_text(self.restore(node), self.names)

  def restore(self, node: Node) -> Node:
    """A formula of these rows as one of the user's."""
    if self.turned:
      node = Scaling(tuple(-1.0 if column in self.turned else 1.0 for column in range(len(self.names)))).restore(node)
    return tidy(negate(node)) if self.is_opposite else node

  def as_given(self) -> "Task":
    """With the user's rows."""
    return _turned(self, self.turned, self.is_opposite, back=True)


def turn(task: Task) -> Task:
  """With the opposites of columns, and of y, that are above 0 in no row and below it in some: a power of such a column
  that is no whole number is defined, as that of a depth is, and the logarithm and the roots of such a y may be sums;
  most sources look for these in what is not negative alone.
  """
  least, largest = task.rows.x.min(axis=0), task.rows.x.max(axis=0)
  negative = tuple(column for column in task.columns if least[column] < 0 and largest[column] <= 0)
  return _turned(task, negative, bool(np.max(task.rows.y) <= 0), back=False)


def _turned(task: Task, columns: tuple[int, ...], is_opposite: bool, *, back: bool) -> Task:
  """With the opposites of some columns and of y, or back from them."""
  if not columns and not is_opposite:
    return task
  signs, sign = np.where(np.isin(np.arange(len(task.names)), columns), -1.0, 1.0), -1.0 if is_opposite else 1.0
  rows, fit_rows = (Rows(some.x * signs, some.y * sign, some.weights) for some in (task.rows, task.fit_rows))
  return dataclasses.replace(
    task, rows=rows, fit_rows=fit_rows, turned=() if back else columns, is_opposite=is_opposite and not back)


def _sample_that_varies(rows: Rows, num_rows: int, *, seed: int) -> Rows:
  """Rows drawn by the seed; where y happens to be the same in all, the rows of least and largest y among them."""
  drawn = rows.sample(num_rows, seed=seed)
  if np.ptp(drawn.y) > 0:
    return drawn
  extremes = np.array([np.argmin(rows.y), np.argmax(rows.y)])
  x, y, weights = (np.concatenate([of_all[extremes], of_some[2:]]) for of_all, of_some in (
    (rows.x, drawn.x), (rows.y, drawn.y), (rows.weights, drawn.weights)))
  return Rows(x, y, weights)


def default_names(num_columns: int) -> tuple[str, ...]:
  """Names of columns that have none: x0, x1, ..."""
  return tuple(f"x{d}" for d in range(num_columns))


def names_of_columns(names: Sequence[str] | None, num_columns: int) -> tuple[str, ...]:
  """Names as users give them, by default x0, x1, ...

  Raises:
    InputError: for too many or too few, and for what are no texts that differ.
  """
  if names is None:
    return default_names(num_columns)
  names = tuple(names)
  if len(names) != num_columns:
    raise InputError(f"names: expected {num_columns} of them, one for each column, got {len(names)}")
  if not all(isinstance(name, str) for name in names) or len(set(names)) < num_columns:
    raise InputError(f"names: expected texts that differ, got {names!r}")
  return names


def make_task(
  dataset: Any, names: Sequence[str] | None, options: SearchOptions, *, target: str = TARGET
) -> Task:
  """Checks one data set (see `search`) and says what is to be searched; `target` is what y is called.

  Raises:
    InputError: says what makes the data, or the rules for their columns, unusable.
  """
  rows, pool = check_dataset(dataset, names=names), options.config.pool
  names = names_of_columns(names, rows.x.shape[1])
  rule, units = options.restrictions.for_columns(names), None
  rule.check_sizes()
  if options.units is not None:
    units = options.units.for_columns(names, target, excluded=rule.excluded)
    rule = dataclasses.replace(rule, dimensions=units.dimensions)
  fit_rows = _sample_that_varies(rows, pool.fit_rows, seed=options.seed)
  mean = np.average(fit_rows.y, weights=fit_rows.weights)
  variance = float(np.average((fit_rows.y - mean) ** 2, weights=fit_rows.weights))
  library = options.config.library
  columns = screening.choose_columns(
    fit_rows, rule, num_columns=library.max_columns, degree=library.screening_degree)
  num_rows = compilation.bucket(len(fit_rows), (*ROW_BUCKETS, pool.fit_rows))
  allowed = [column for column in range(len(names)) if column not in rule.excluded]
  sole = screening.sole_column(fit_rows, allowed, options.config.screening)
  if sole is None or rule.required - {sole}:
    return Task(rows, fit_rows, names, rule, columns, variance, num_rows, units)
  columns = tuple(sorted({*columns, sole}))
  return Task(rows, fit_rows, names, rule, columns, variance, num_rows, units, sole_column=sole)
