"""Fitted formulas as a command finds them in a file, whoever wrote it, and how what they read became numbers."""

import codecs
from collections.abc import Mapping, Sequence
import contextlib
import dataclasses
import json
import os
import pathlib
import re
from typing import Any

import numpy as np

from symformer_jax import files, saved
from symformer_jax.commands import grids, outputs, result_lines, times
from symformer_jax.errors import InputError, suggest
from symformer_jax.results import Equation, SearchResult
from symformer_jax.selection import choice

# Names of files or targets that a message lists.
MAX_LISTED = 6
# To the microsecond or nanosecond, as `times` has them.
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}(?:[0-9]{3})?")


@dataclasses.dataclass(frozen=True)
class SavedFit:
  """What a file knows of a fit.

  Attributes:
    lines: the front, from simple to accurate; best: the recommended one of them; taken: that which the fit was told to
      take.
    target: name of y; None where the file does not say.
    ranges: `(least, largest)` of columns at the fit, by name; none where the file does not keep them.
    loss: which errors were made small.
    time_scales: how dates and times were counted, by the name of the column or target; categories: the classes of each
      column that became columns of 0 and 1. None of either in what Python wrote, where all columns are numbers.
    other_columns: names of the columns of the file that were neither features nor the target, where that is known.
    is_one_of_several: whether the target was needed to choose it, as its data file had others.
  """

  lines: tuple[Equation, ...]
  best: Equation
  taken: Equation
  target: str | None = None
  ranges: Mapping[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
  loss: str = "squared"
  time_scales: Mapping[str, times.TimeScale] = dataclasses.field(default_factory=dict)
  categories: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
  other_columns: tuple[str, ...] = ()
  is_one_of_several: bool = False

  @property
  def names(self) -> tuple[str, ...]:
    """Of the columns, in the order of their numbers in formulas."""
    return self.best.names


def read(path: str, *, file: str | None = None, target: str | None = None) -> SavedFit:
  """Reads what `symformer --out`, `save_result` or `SymFormerRegressor.save` wrote.

  Args:
    path: JSON, or lines of JSON, one for each data file and target.
    file: which data file, by its path or name; None where there is one. target: likewise.
  Raises:
    InputError: one line that says what is wrong, or what there is to choose from.
  """
  with saved.naming_faults(path, what="saved formula"):
    records = _records(path)
    is_of_command = all(map(saved.is_of_command, records))
    fit = _of_batch(records, path, file, target) if is_of_command else _of_python(records, path, file)
    saved.refuse_repeated([grids.clean_name(name) for name in fit.names])  # as tables have them
    return fit


def _records(path: str) -> list[Mapping[str, Any]]:
  if pathlib.Path(path).suffix != outputs.LINES:
    return [saved.parse_record(saved.read_text(path))]
  files.check_regular(path)
  lines, rest = result_lines.split_lines(pathlib.Path(path).read_bytes().removeprefix(codecs.BOM_UTF8))
  records = {number: _record_of_line(line, number) for number, line in enumerate(lines, start=1) if line.strip()}
  with contextlib.suppress(ValueError):  # cut off by a kill, or by a person who has left out the end of the line alone
    records[len(lines) + 1] = saved.parse_record(rest.decode())
  if not records:
    raise ValueError("its only line is cut off" if rest.strip() else "it is empty")
  strange = [number for number, record in records.items() if not saved.is_of_command(record)]
  if strange and len(records) > 1:
    raise ValueError(f"expected results of symformer in all of its lines, not so in line {strange[0]}")
  return list(records.values())


def _record_of_line(line: bytes, number: int) -> Mapping[str, Any]:
  try:
    return saved.parse_record(line.decode())
  except json.JSONDecodeError as error:
    raise ValueError(f"line {number}, column {error.colno}: {error.msg}") from None
  except UnicodeError as error:
    raise ValueError(f"line {number} {saved.not_utf8(error)}") from None
  except ValueError as error:
    raise ValueError(f"line {number}: {error}") from None


# --- what Python wrote -------------------------------------------------------------------------------------------


def _of_python(records: Sequence[Mapping[str, Any]], path: str, file: str | None) -> SavedFit:
  [record] = records
  if file is not None:
    raise InputError(f"{path}: holds one fit that names no file, --file chooses among several")
  kind = str(record["format"]).rpartition("-")[0]
  if kind == saved.REGRESSOR:
    return _of_regressor(record, path)
  saved.check_version(record, path, kind=saved.RESULT, newest=saved.RESULT_FORMAT)
  result = saved.read_result(record)
  return _of_result(result, _best_of(result))


def _of_regressor(record: Mapping[str, Any], path: str) -> SavedFit:
  version = saved.check_version(record, path, kind=saved.REGRESSOR, newest=saved.REGRESSOR_FORMAT)
  if version > saved.SINGLE_REGRESSOR_FORMAT:
    num = len(saved.as_list(record["targets"], "targets"))
    raise InputError(f"{path}: holds formulas for {num} targets without their names; save one of the regressor's "
                     "estimators_, such as estimators_[0].save(path)")
  front = saved.read_front(record)
  selection = saved.as_object(record["params"], "params").get("model_selection", choice.RECOMMENDED)
  taken = choice.pick(front.lines, front.best, selection, argument="model_selection")
  return SavedFit(front.lines, front.best, taken) if front.result is None else _of_result(front.result, taken)


def _of_result(result: SearchResult, taken: Equation) -> SavedFit:
  ranges = result.seen.ranges if result.seen else {}
  return SavedFit(result.pareto, _best_of(result), taken, ranges=ranges, loss=result.loss)


def _best_of(result: SearchResult) -> Equation:
  assert result.best is not None, "of what is saved every result has one"
  return result.best


# --- what the command wrote --------------------------------------------------------------------------------------


def _of_batch(records: Sequence[Mapping[str, Any]], path: str, file: str | None, target: str | None) -> SavedFit:
  """The fit to a data file and a target; of two of the same the later one."""
  found = {(_text(record, "data"), _text(record, "target")): record for record in records}
  names = list(dict.fromkeys(name for name, _ in found))
  if file is not None:
    names = [name for name in names if name == file] or [name for name in names if os.path.basename(name) == file]
  if not names:
    raise InputError(f"{path}: --file: no formula for {files.shorten(str(file))!r}: "
                     f"{suggest(str(file), dict.fromkeys(name for name, _ in found))}")
  if len(names) > 1:
    raise InputError(f"{path}: holds formulas for {len(names)} files, --file takes one of them: {_list(names)}")
  targets = [name for data, name in found if data == names[0]]
  if len(targets) > 1 and target not in targets:
    raise InputError(f"{path}: holds formulas for {len(targets)} targets, --target takes one of them: {_list(targets)}")
  is_one_of_several = len(targets) > 1
  record = found[names[0], target if is_one_of_several and target is not None else targets[0]]
  return dataclasses.replace(_of_command(record), is_one_of_several=is_one_of_several)


def _list(names: Sequence[str]) -> str:
  return ", ".join([*map(repr, names[:MAX_LISTED]), *["..."] * (len(names) > MAX_LISTED)])


def _of_command(record: Mapping[str, Any]) -> SavedFit:
  result = saved.read_result(saved.as_result_record(record))
  selected, best = record.get("selected"), _best_of(result)
  if selected is not None and (type(selected) is not int or not 0 <= selected < len(result.pareto)):
    raise ValueError(f"selected: expected a line of pareto, got {selected!r}")
  target = _text(record, "target")
  if target in best.names:
    raise ValueError(f"target: {files.shorten(repr(target), 60)} is a feature as well")
  time_scales = saved.as_object(record.get("times", {}), "times")
  categories = saved.as_object(record.get("categories", {}), "categories")
  return dataclasses.replace(
    _of_result(result, best if selected is None else result.pareto[selected]), target=target,
    time_scales={name: _read_scale(saved.as_object(scale, "times")) for name, scale in time_scales.items()},
    categories={name: _read_names(classes, "categories") for name, classes in categories.items()},
    other_columns=_read_names(record.get("other_columns", []), "other_columns"))


def _text(record: Mapping[str, Any], name: str) -> str:
  if not isinstance(record[name], str):
    raise ValueError(f"{name}: expected text, got {files.shorten(repr(record[name]), 60)}")
  return record[name]


def _read_scale(record: Mapping[str, Any]) -> times.TimeScale:
  unit, start = record["unit"], record["start"]
  if unit not in times.UNITS:
    raise ValueError(f"times: unknown unit {files.shorten(repr(unit), 60)}")
  if start is None:
    return times.TimeScale(unit)
  # The second test is for moments that 64 bits do not hold.
  if isinstance(start, str) and _MOMENT.fullmatch(start) and str(moment := np.datetime64(start)) == start:
    return times.TimeScale(unit, moment)
  raise ValueError(f"times: expected a moment such as 2020-01-01T00:00:00.000000, got {files.shorten(repr(start), 60)}")


def _read_names(names: Any, what: str) -> tuple[str, ...]:
  if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
    raise ValueError(f"{what}: expected lists of names, got {files.shorten(repr(names), 60)}")
  return tuple(names)
