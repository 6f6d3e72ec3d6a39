"""What `refine` is given, checked: data, and what is said of constants by name."""

from collections.abc import Mapping, Sequence
import difflib
import numbers
from typing import Any

import numpy as np

from symformer_jax import frames
from symformer_jax.errors import InputError, show, suggest
from symformer_jax.files import shorten

# `(x [N, D], y [N], weights [N], names)` of one data set.
Data = tuple[np.ndarray, np.ndarray, np.ndarray, tuple[str, ...]]

# Least and largest values by name, infinite where there is none; constants without bounds are not in it.
Box = dict[str, tuple[float, float]]


def is_one_set(X: Any) -> bool:
  """Whether points are those of one data set, not a list of several."""
  if not isinstance(X, list | tuple) or not len(X):
    return True
  try:
    return np.ndim(X[0]) == 0
  except ValueError:  # lists of unequal length
    return False


def pair_up(X: Any, y: Any, sigma: Any, is_single: bool) -> list[tuple[Any, Any, Any]]:
  """`(X, y, sigma)` of each data set."""
  if is_single:
    return [(X, y, sigma)]
  sigmas = sigma if isinstance(sigma, list | tuple) else [sigma] * len(X)
  for argument, parts in (("y", y), ("sigma", sigmas)):
    num = len(parts) if isinstance(parts, list | tuple) or np.ndim(parts) else "none"
    if num != len(X):
      raise InputError(f"{len(X)} data sets were given for X, but {num} for {argument}")
  return list(zip(X, y, sigmas, strict=True))


def read_sets(X: Any, y: Any, sigma: Any, is_single: bool) -> list[Data]:
  """The data sets, of the same columns in the same order."""
  sets = [read_data(*data) for data in pair_up(X, y, sigma, is_single)]
  names = sets[0][3]
  for i, data in enumerate(sets):
    if data[3] != names:
      raise InputError(f"X of data set {i}: expected the columns of the first, {_listed(names)}, in this order, got "
                       f"{_listed(data[3])}")
  return sets


def read_columns(X: Any) -> tuple[np.ndarray, tuple[str, ...]]:
  """Points [N, D] and the names of the columns."""
  frames.check_numeric(X, "X")
  names = tuple(str(c) for c in X.columns) if hasattr(X, "columns") else None
  try:
    x = np.asarray(X, np.float64)
  except (TypeError, ValueError):
    raise InputError("X must be numeric") from None
  x = x[:, None] if x.ndim == 1 else x
  if x.ndim != 2 or x.shape[1] == 0:
    raise InputError(f"X must be points [N] or [N, D], got shape {x.shape}")
  if names is None:
    names = ("x", "x0") if x.shape[1] == 1 else tuple(f"x{i}" for i in range(x.shape[1]))
  return x, names


def read_like(X: Any, names: tuple[str, ...], *, is_named: bool) -> np.ndarray:
  """Points [N, D] of the columns of a fit; an array's go by their places, a DataFrame's by their names.

  Args:
    names: of the columns of the fit; is_named: whether they are those of a DataFrame.
  Raises:
    InputError: for other columns, or another order of them.
  """
  x, given = read_columns(X)
  if is_named and hasattr(X, "columns") and given != names:
    raise InputError(f"X: expected the columns of the fit, {_listed(names)}, in this order, got {_listed(given)}")
  if x.shape[1] != len(names):
    raise InputError(f"X: expected points [N, {len(names)}] of the columns of the fit, {_listed(names)}, got shape "
                     f"{np.shape(X)}")
  return x


def _listed(names: Sequence[str]) -> str:
  return shorten(", ".join(map(repr, names)))


def read_data(X: Any, y: Any, sigma: Any) -> Data:
  """`(x [N, D], y [N], weights [N], names)` of one data set."""
  x, names = read_columns(X)
  if not len(x):
    raise InputError("X has no rows, expected at least one")
  frames.check_numeric(y, "y")
  frames.check_numeric(sigma, "sigma")
  y = _as_column(y, "y")
  if y.shape != (len(x),):
    raise InputError(f"X has {len(x)} rows, so y must have shape ({len(x)},), got {y.shape}")
  for what, array in (("X", x), ("y", y)):
    if not np.isfinite(array).all():
      row = int(np.argwhere(~np.isfinite(array))[0][0])
      raise InputError(f"{what} must be finite, got {array[row]} in row {row}")
  frames.check_sizes(x, y, names if hasattr(X, "columns") else None)
  weights = np.ones(len(y))
  if sigma is not None:
    sigma = _as_column(sigma, "sigma")
    if sigma.shape not in ((), (1,), y.shape):
      raise InputError(f"sigma: expected a number or shape {y.shape}, as y has, got {sigma.shape}")
    sigma = np.broadcast_to(sigma, y.shape)
    if not (np.isfinite(sigma) & (sigma > 0)).all():
      raise InputError("sigma must be positive and finite")
    if not ((sigma >= frames.SMALLEST) & (sigma <= frames.LARGEST)).all():
      raise InputError(f"sigma: expected numbers from {frames.SMALLEST:g} to {frames.LARGEST:g}, got {sigma.min():g} "
                       f"to {sigma.max():g}; take another unit of y")
    weights = 1 / sigma**2
  return x, y, weights, names


def _as_column(values: Any, argument: str) -> np.ndarray:
  """Numbers [N], of [N, 1] as well."""
  found = frames.as_numbers(values, argument)
  return found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found


def check_rows(names: Sequence[str], sets: Sequence[Data]) -> None:
  """Refuses more constants than rows could determine: a fit of them has no answer and may take minutes."""
  for i, (x, *_) in enumerate(sets):
    # A few rows tell of most data sets that there are enough.
    if any(len(np.unique(some, axis=0)) >= len(names) for some in (x[:4 * len(names)], x)):
      continue
    where = f"X of data set {i}" if len(sets) > 1 else "X"
    raise InputError(f"the formula has {len(names)} constants to fit, and {where} only {len(np.unique(x, axis=0))} "
                     "rows that differ: give more rows, or fewer constants")


def check_names(names: Sequence[str], start: Mapping[str, float], num_columns: int) -> None:
  """Refuses names that can only be mistakes."""
  for name, value in start.items():
    if name not in names:
      close = difflib.get_close_matches(name, names, n=1)
      hint = f"; did you mean {close[0]!r}?" if close else ""
      raise InputError(f"start names {name!r}, the formula's constants are {', '.join(names) or 'none'}{hint}")
    if not _is_finite(value):
      raise InputError(f"start of {name!r} must be finite, got {_shown(value)}")
  if num_columns > 1 and "x" in names and "x" not in start:
    raise InputError(f"'x' is no column: the {num_columns} columns of an array are x0 ... x{num_columns - 1}")


def check_held(names: Sequence[str], start: Mapping[str, float], hold: Mapping[str, float]) -> Mapping[str, float]:
  """Known constants, refused where they can only be mistakes."""
  for name, value in hold.items():
    if name not in names:
      raise InputError(f"hold: the formula has no constant {name!r}: {suggest(name, names)}")
    if name in start:
      raise InputError(f"hold: {name!r} has a start as well, expected one of them")
    if not _is_finite(value):
      raise InputError(f"hold: {name!r} must be finite, got {_shown(value)}")
  return hold


def check_bounds(names: Sequence[str], start: Mapping[str, float], hold: Mapping[str, float], bounds: Mapping) -> Box:
  box = {}
  for name, limits in bounds.items():
    if name not in names:
      raise InputError(f"bounds: the formula has no constant {name!r}: {suggest(name, names)}")
    if name in hold:
      raise InputError(f"bounds: {name!r} is held, expected one of them")
    is_pair = isinstance(limits, (Sequence, np.ndarray)) and not isinstance(limits, str) and len(limits) == 2
    if not is_pair or not all(limit is None or isinstance(limit, numbers.Real) for limit in limits):
      raise InputError(f"bounds: {name!r} takes (least, largest), got {show(limits)}")
    low, high = (sign * np.inf if limit is None else float(limit) for sign, limit in zip((-1, 1), limits, strict=True))
    if not low < high:
      raise InputError(f"bounds: the least value of {name!r} must be below the largest, got {low:g} and {high:g}")
    if name in start and not low <= start[name] <= high:
      raise InputError(f"bounds: the start of {name!r} must be from {low:g} to {high:g}, got {start[name]:g}")
    box[name] = low, high
  return box


def _shown(value: Any) -> str:
  """A value in a message: of text with its quotes, which tell it from a number."""
  return shorten(repr(value) if isinstance(value, str) else " ".join(str(value).split()))


def _is_finite(value: Any) -> bool:
  """Whether a value of the user's is a number, and finite."""
  try:
    return not isinstance(value, str) and bool(np.isfinite(float(value)))
  except (TypeError, ValueError, OverflowError):
    return False
