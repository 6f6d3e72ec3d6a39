"""A data set as rows: checked, without those of weight 0."""

from collections.abc import Iterable, Sequence
import dataclasses
import functools
from typing import Any

import numpy as np

from symformer_jax import frames
from symformer_jax.errors import InputError
from symformer_jax.frames import LARGEST as LARGEST, SMALLEST as SMALLEST

MIN_POINTS = 5
# Of the target under its weights, as a share of its range in squares: single precision holds little less.
LEAST_VARIANCE = 1e-30


@dataclasses.dataclass(frozen=True)
class Rows:
  """Rows of a data set in the user's units.

  Attributes:
    x: [N, D], y: [N], weights: [N] > 0; all float64.
    num_offered: of how many columns those of x are the ones that formulas read; None: these are all.
  """

  x: np.ndarray
  y: np.ndarray
  weights: np.ndarray
  num_offered: int | None = None

  def __len__(self) -> int:
    return len(self.y)

  @property
  def num_columns(self) -> int:
    """How many columns there are to choose among, be they in x or not."""
    return self.x.shape[1] if self.num_offered is None else self.num_offered

  def of_columns(self, columns: Sequence[int]) -> "Rows":
    """The same rows with some of their columns."""
    if list(columns) == list(range(self.x.shape[1])):
      return self
    return dataclasses.replace(self, x=self.x[:, columns], num_offered=self.num_columns)

  @functools.cached_property
  def num_distinct(self) -> int:
    """Rows that differ in some column: for so many constants at most there are points."""
    return len(np.unique(self.x, axis=0))

  def varying(self, columns: Iterable[int]) -> list[int]:
    """Those of some columns that are not the same in all rows."""
    return [column for column in columns if np.ptp(self.x[:, column]) > 0]

  def sample(self, num_rows: int, *, seed: int) -> "Rows":
    """At most so many rows, drawn by the seed, in their order."""
    if len(self) <= num_rows:
      return self
    index = np.sort(np.random.default_rng(seed).choice(len(self), num_rows, replace=False))
    return dataclasses.replace(self, x=self.x[index], y=self.y[index], weights=self.weights[index])

  def padded(self, num_rows: int) -> "Rows":
    """With the last row repeated at weight 0: no formula is undefined for the sake of padding."""
    extra = num_rows - len(self)
    return dataclasses.replace(
      self, x=np.pad(self.x, ((0, extra), (0, 0)), mode="edge"), y=np.pad(self.y, (0, extra), mode="edge"),
      weights=np.pad(self.weights, (0, extra)))


def check_dataset(dataset: Any, model: Any = None, *, names: Sequence[str] | None = None) -> Rows:
  """Reads one data set (see `search`) as float64 rows, those of weight 0 left out.

  Args:
    model: where its number of variables is a limit; names: of the columns, for messages, else those of a DataFrame.
  Raises:
    InputError: says what makes the data unusable, here or for the model.
  """
  x, y, weights = _split_dataset(dataset)
  if names is None and isinstance(dataset, tuple):
    names = getattr(dataset[0], "columns", None)
  if len(y) != len(x) or len(weights) != len(x):
    raise InputError(f"rows differ: X has {len(x)}, y has {len(y)}, weights have {len(weights)}")
  if not (np.all(np.isfinite(x)) and np.all(np.isfinite(y)) and np.all(np.isfinite(weights))):
    raise InputError("the data hold NaN or infinity; expected finite numbers")
  if np.any(weights < 0):
    raise InputError(f"weights: expected at least 0, got {weights.min():g}")
  is_used = weights > 0
  x, y, weights = x[is_used], y[is_used], weights[is_used]
  if len(y) < MIN_POINTS:
    raise InputError(f"too few points: expected at least {MIN_POINTS}, got {len(y)}")
  frames.check_sizes(x, y, names)
  if np.ptp(y) == 0:
    raise InputError(f"the target is constant: every value is {y[0]:g}")
  if model is not None and x.shape[1] > model.vocab.num_variables:
    refuse_variables(x.shape[1], model)
  # By a power of two, which changes no digit: of the largest numbers the sum would be infinite, of the smallest digits
  # would be lost. A row that counts next to nothing still counts.
  weights = np.maximum(np.ldexp(weights, -np.frexp(weights.max())[1]), np.finfo(np.float64).tiny)
  height = (y - y.min()) / np.ptp(y)
  if not np.average((height - np.average(height, weights=weights)) ** 2, weights=weights) > LEAST_VARIANCE:
    raise InputError("weights: the rows that have nearly all the weight have one value of the target; expected "
                     "weights of less different size")
  return Rows(x, y, weights / weights.mean())


def check_weights(rows: Rows) -> None:
  """Refuses weights of a user's under which fewer rows count than a fit takes: those whose weight is more than rounding
  beside the largest, in squares; under weights 1/y**2 all of 15 decades of y.

  Raises:
    InputError: says how many count.
  """
  num = int(np.sum(rows.weights > LEAST_VARIANCE * rows.weights.max()))
  if num < MIN_POINTS:
    raise InputError(f"weights: beside {num} of the {len(rows)} rows the others count nothing; expected at least "
                     f"{MIN_POINTS} rows that count, weights of less different size")


def with_weights(dataset: Any, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """A data set with other weights for those rows that `check_dataset` leaves: `(X [N, D], y [N], weights [N])`."""
  x, y, before = _split_dataset(dataset)
  after = np.zeros(len(y))
  after[before > 0] = weights
  return x, y, after


def refuse_variables(num_columns: int, model: Any) -> None:
  """Raises the InputError of data with more variables than a model knows."""
  raise InputError(f"more variables than the model knows: {model.name!r} knows {model.vocab.num_variables}, "
                   f"the data have {num_columns}")


def _split_dataset(dataset: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  if isinstance(dataset, tuple) and len(dataset) in (2, 3):
    dataset = dataset[:2] if dataset[-1] is None else dataset  # no weights are equal ones
    for part, what in zip(dataset, ("X", "y", "weights"), strict=False):
      frames.check_numeric(part, what)
    x, y, *rest = (frames.as_numbers(part, what) for part, what in zip(dataset, ("X", "y", "weights"), strict=False))
    x = x[:, None] if x.ndim == 1 else x
  else:
    frames.check_numeric(dataset, "the array")
    points = frames.as_numbers(dataset, "the array")
    if points.ndim != 2 or points.shape[1] < 2:
      raise InputError(f"expected points [N, D+1] with y in the last column, got an array of shape {points.shape}")
    x, y, rest = points[:, :-1], points[:, -1], []
  if x.ndim != 2 or y.ndim != 1 or x.shape[1] < 1:
    raise InputError(f"expected X [N, D] and y [N], got shapes {x.shape} and {y.shape}")
  weights = rest[0] if rest else np.ones(len(y))
  if weights.ndim != 1:
    raise InputError(f"weights: expected [N], got shape {weights.shape}")
  return x, y, weights
