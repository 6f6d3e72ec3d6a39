"""Fitted formulas as JSON files: written whole or not at all, versioned, read without trust in what they hold.

A file says `"format": "KIND-NUMBER"`. Older numbers are read, newer ones refused. Trees are stored token by token, so
that names of columns may be any text and values come out the same to the last bit.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import json
import math
import os
from typing import Any, NamedTuple, TypeVar

import numpy as np

from symformer_jax import configuration, files, results
from symformer_jax.errors import InputError, show
from symformer_jax.language import expression, loosened, operators, parser
from symformer_jax.language.expression import Node, number, variable
from symformer_jax.results import (
  Constant,
  Counts,
  Equation,
  Filled,
  Guess,
  Progress,
  Rejected,
  SearchResult,
  Seconds,
  Seen,
)

T = TypeVar("T")

# A tree of more is none of ours: a search keeps formulas of at most 64 tokens. It also bounds every recursion.
MAX_TOKENS = 128
# Letters of a whole number; of more it is beyond double precision, and Python reads none of more than 4300.
MAX_DIGITS = 400
RESULT, RESULT_FORMAT = "symformer-result", 1
# 1: the front's text, no trees, nothing of the search. 2: both. 3: several targets; a single one's file says 2 as
# before, which earlier versions read.
REGRESSOR, REGRESSOR_FORMAT, SINGLE_REGRESSOR_FORMAT = "symformer-regressor", 3, 2


class Front(NamedTuple):
  """What is known of fitted formulas: the lines of a front, which of them is recommended, and how they were found."""

  lines: tuple[Equation, ...]
  best: Equation
  result: SearchResult | None


def save_result(result: SearchResult, path: str | os.PathLike) -> None:
  """Writes a search's answer as JSON.

  Raises:
    InputError: for a failed search, which has no formulas, and for what is no answer of a search.
  """
  if not isinstance(result, SearchResult):
    raise InputError(f"result: expected what search returns for a data set, got {type(result).__name__}")
  if result.best is None:
    raise InputError(f"a failed search has nothing to save: {result.message}")
  record = front_record(Front(result.pareto, result.best, result))
  write(path, {"format": f"{RESULT}-{RESULT_FORMAT}"} | record)


def load_result(path: str | os.PathLike) -> SearchResult:
  """Reads what `save_result` wrote, or `symformer --out=FILE.json`, which does not tell how much rows count.

  Raises:
    InputError: when the file is missing, no saved result, or of a newer format.
  """
  return read(path, RESULT, RESULT_FORMAT, lambda record, version: read_result(record), what="saved result",
              adapt=as_result_record)


def read_result(record: Mapping[str, Any]) -> SearchResult:
  """A search's answer from its record; a `LookupError`, `TypeError` or `ValueError` where it is damaged."""
  found = read_front(record).result
  if found is None:
    raise ValueError("it does not say how the formulas were found")
  return found


def as_result_record(record: Any) -> Any:
  """The record of one data file that the command writes, as `save_result` would have it; any other as it is."""
  if not is_of_command(record):
    return record
  if record["status"] == results.FAILED:
    raise ValueError(f"a failed search: {record['message']}")
  told = ("status", "message", "seconds", "seed", "model", "rounds", "ended_by", "seen")
  units, lines = record.get("units"), as_list(record["pareto"], "pareto")
  search = {name: record[name] for name in told} | {
    "counts": record["candidates"], "num_points": record["n_points"], "weights": None,
    "units": None if units is None else list(as_object(units, "units").values()),
    "guesses": record.get("guesses", [])}
  if record["best"] not in lines:
    raise ValueError("best: expected one of pareto")
  return {"format": f"{RESULT}-{RESULT_FORMAT}", "names": record["features"], "front": lines,
          "best": lines.index(record["best"]), "search": search}


def is_of_command(record: Any) -> bool:
  """Whether the command wrote a record, for one data file; of a damaged one a field may be missing."""
  return isinstance(record, Mapping) and "format" not in record and not {"pareto", "features"}.isdisjoint(record)


def write(path: str | os.PathLike, record: Mapping[str, Any]) -> None:
  """Writes JSON that every reader takes: numbers that are not finite are `{"float": "inf"}`.

  Raises:
    InputError: where no file can be written.
  """
  if not isinstance(path, str | os.PathLike):
    raise InputError(f"path: expected a file name, got {show(path)}")
  text = json.dumps(_plain(record), indent=1, allow_nan=False) + "\n"
  if os.path.isdir(path or "."):
    raise InputError(f"cannot write {files.shorten(path)!r}: it is a folder, expected a file name")
  try:
    files.write_text(path, text)
  except (OSError, ValueError) as error:
    raise InputError(f"cannot write {files.shorten(path)!r}: {files.reason(error)}") from None


def read(
  path: str | os.PathLike, kind: str, newest: int, build: Callable[[Mapping[str, Any], int], T], *, what: str,
  adapt: Callable[[Any], Any] = lambda record: record,
) -> T:
  """Reads a file of a kind.

  Args:
    newest: the largest format number that is understood.
    build: makes the answer of the record and its format number; what it raises means a damaged file.
    what: a file of this kind should hold, for messages.
    adapt: makes a record of this kind of one of another; what it raises likewise.
  Raises:
    InputError: one line that says what is wrong.
  """
  with naming_faults(path, what=what):
    record = adapt(parse_record(read_text(path)))
    return build(record, check_version(record, path, kind=kind, newest=newest))


def read_text(path: str | os.PathLike) -> str:
  """What stands in a file, which is no pipe or device; raises what `naming_faults` puts into words."""
  files.check_regular(path)
  with open(path, encoding="utf-8-sig") as file:  # editors put a byte order mark first
    return file.read()


def parse_record(text: str) -> Mapping[str, Any]:
  """The names and values of a JSON text, with the numbers that are not finite; likewise."""
  return as_object(json.loads(text, object_hook=_unplain, parse_int=_whole), "the file")


def _whole(text: str) -> int:
  if len(text) > MAX_DIGITS:
    raise ValueError(f"a number has {len(text)} digits, which is beyond double precision")
  return int(text)


@contextlib.contextmanager
def naming_faults(path: str | os.PathLike, *, what: str) -> Iterator[None]:
  """Says in one line, an `InputError`, what goes wrong while a file is read that should hold `what`."""
  try:
    yield
  except OSError as error:
    raise InputError(f"{files.shorten(path)}: cannot be read: {error.strerror}") from None
  except MemoryError:
    raise InputError(f"{files.shorten(path)}: does not fit into memory") from None
  except UnicodeError as error:
    raise InputError(f"{path}: {not_utf8(error)}") from None
  except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
    if isinstance(error, InputError) and str(error).startswith(str(path)):
      raise
    is_missing = isinstance(error, KeyError) and error.args
    reason = f"the field {error.args[0]!r} is missing" if is_missing else " ".join(str(error).split())
    raise InputError(f"{path}: is no {what}: {reason if len(reason) < 300 else reason[:300] + '...'}") from None


def not_utf8(error: UnicodeError) -> str:
  """What is said of bytes that are no text, as of those of a table."""
  place = f" (byte {error.start})" if isinstance(error, UnicodeDecodeError) else ""
  return f"is no UTF-8 text{place}; save it as UTF-8"


def check_version(record: Any, path: str | os.PathLike, *, kind: str, newest: int) -> int:
  """The number of a record's format, which is of a kind and at most the newest: an InputError else, or what
  `naming_faults` puts into words.
  """
  version = _read_version(record, kind)
  if version > newest:
    raise InputError(f"{path}: of format {version}, written by a newer version; this one reads up to {newest}")
  return version


def _read_version(record: Any, kind: str) -> int:
  if is_of_command(record):
    raise ValueError("it was written by the command line: load_result reads it")
  name, _, version = str(record["format"])[:100].rpartition("-")
  if name != kind or not (version.isascii() and version.isdigit()):
    raise InputError(f"expected format '{kind}-NUMBER', got {str(record['format'])[:100]!r}")
  return int(version)


def as_object(value: Any, what: str) -> Mapping[str, Any]:
  """What a record has under a name, if it has names itself; a `ValueError` else."""
  if not isinstance(value, Mapping):
    raise ValueError(f"{what}: expected names and values, got {files.shorten(repr(value), 60)}")
  return value


def as_list(value: Any, what: str) -> list[Any]:
  """What a record has under a name, if it is a list; a `ValueError` else."""
  if not isinstance(value, list):
    raise ValueError(f"{what}: expected a list, got {files.shorten(repr(value), 60)}")
  return value


def _plain(value: Any) -> Any:
  """A value as JSON has it: tuples as lists, NumPy's numbers as Python's."""
  if isinstance(value, np.generic):
    value = value.item()
  if isinstance(value, Mapping):
    return {str(key): _plain(item) for key, item in value.items()}
  if isinstance(value, list | tuple | np.ndarray):
    return [_plain(item) for item in value]
  return {"float": repr(value)} if isinstance(value, float) and not math.isfinite(value) else value


def _unplain(value: dict[str, Any]) -> Any:
  return float(value["float"]) if value.keys() == {"float"} and value["float"] in ("inf", "-inf", "nan") else value


# --- formulas --------------------------------------------------------------------------------------------------


def front_record(front: Front) -> dict[str, Any]:
  """The JSON form of formulas; `read_front` reads it."""
  search = None
  if front.result is not None:
    told = ("status", "message", "counts", "seconds", "seed", "num_points", "model", "rounds", "ended_by", "seen",
            "guesses")
    found = dataclasses.asdict(dataclasses.replace(front.result, best=None, pareto=(), weights=None))
    search = {name: found[name] for name in told}
    search["units"] = None if front.result.units is None else list(front.result.units)
    weights = front.result.weights
    search["weights"] = list(weights) if weights is not None and front.result.is_weighted else None
  return {
    "names": list(front.best.names), "best": front.lines.index(front.best), "search": search,
    "front": [equation.to_json() | {"tree": expression.to_tokens(equation.node)} for equation in front.lines],
  }


def read_front(record: Mapping[str, Any]) -> Front:
  """The formulas of a record; a `LookupError`, `TypeError` or `ValueError` where it is damaged."""
  names = record["names"]
  if not (isinstance(names, list) and names and all(isinstance(name, str) for name in names)):
    raise ValueError("names: expected those of the columns")
  refuse_repeated(names)
  lines = tuple(_read_equation(as_object(line, "front"), tuple(names)) for line in as_list(record["front"], "front"))
  index, search = record["best"], record.get("search")
  if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(lines):
    raise ValueError(f"best: expected a line of the front, got {index!r}")
  best = lines[index]
  return Front(lines, best, None if search is None else _read_search(as_object(search, "search"), lines, best))


def refuse_repeated(names: Sequence[str]) -> None:
  """A `ValueError` where two columns have one name: a formula would read one of them twice."""
  repeated = next((name for name, count in Counter(names).items() if count > 1), None)
  if repeated is not None:
    raise ValueError(f"two columns are called {files.shorten(repr(repeated), 60)}")


def _read_tree(tokens: Any, num_columns: int) -> Node:
  if not isinstance(tokens, list) or len(tokens) > MAX_TOKENS:
    raise ValueError(f"tree: expected at most {MAX_TOKENS} tokens")
  columns = {f"x{i}": variable(i) for i in range(num_columns)}
  rest = iter(tokens)

  def take() -> Node:
    token = next(rest, None)
    if isinstance(token, str) and token in columns:
      return columns[token]
    if isinstance(token, str) and token in operators.BY_NAME:
      return Node(token, tuple(take() for _ in range(operators.BY_NAME[token].arity)))
    if token is None:
      raise ValueError("tree: it ends too early")
    return number(_finite(token, "tree"))

  node = take()
  if next(rest, None) is not None:
    raise ValueError("tree: it goes on after its end")
  return node


def _read_equation(record: Mapping[str, Any], names: tuple[str, ...]) -> Equation:
  # Format 1 had the text alone.
  node = _read_tree(record["tree"], len(names)) if "tree" in record else parser.parse(record["expression"], names)
  constants = tuple(_read_constant(each, "constants") for each in as_list(record["constants"], "constants"))
  whole = tuple(_read_constant(each, "whole") for each in as_list(record.get("whole", []), "whole"))
  num_numbers, mse = sum(n.is_number for n in expression.walk(node)), _number(record["mse"], "mse")
  if whole and [constant.value for constant in whole] != loosened.whole_numbers(node):
    raise ValueError("whole: expected the whole numbers of the formula")
  if mse < 0:
    raise ValueError(f"mse: expected a number of at least 0, got {mse:g}")
  return Equation(node, names, mse, _optional(record["r2"], "r2"),
                  _optional(record["relative_error"], "relative_error"), constants, _read_filled(record.get("filled")),
                  _read_texts(record.get("number_units"), "number_units", num_numbers), whole,
                  _optional(record.get("log_r2"), "log_r2"))


def _read_constant(record: Any, what: str) -> Constant:
  record = as_object(record, what)
  error = _optional(record["stderr"], "stderr")
  if error is not None and error < 0:
    raise ValueError(f"stderr: expected a number of at least 0, got {error:g}")
  return Constant(_finite(record["value"], "value"), error,
                  _text(record.get("exact"), "exact"), _text(record.get("unit"), "unit"))


def _read_filled(record: Any) -> Filled | None:
  """What stands in a template; a formula without one has none."""
  if record is None:
    return None
  functions, parameters = (
    as_object(as_object(record, "filled")[name], name).items() for name in ("functions", "parameters"))
  return Filled(tuple((name, str(_text(text, "functions"))) for name, text in functions),
                tuple((name, _read_constant(each, "parameters")) for name, each in parameters))


def _read_texts(values: Any, what: str, num: int) -> tuple[str | None, ...] | None:
  """So many texts or nulls; None for none at all, as files without units have it."""
  if values is None:
    return None
  if not isinstance(values, list) or len(values) != num:
    raise ValueError(f"{what}: expected {num} of them, got {values!r}")
  return tuple(_text(value, what) for value in values)


def _number(value: Any, what: str) -> float:
  if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
    raise ValueError(f"{what}: expected a number, got {value!r}")
  try:
    return float(value)
  except OverflowError:
    raise ValueError(f"{what}: expected a number in double precision, got {files.shorten(str(value), 60)}") from None


def _finite(value: Any, what: str) -> float:
  found = _number(value, what)
  if math.isinf(found):
    raise ValueError(f"{what}: expected a finite number, got {found}")
  return found


def _optional(value: Any, what: str) -> float | None:
  return None if value is None else _number(value, what)


def _text(value: Any, what: str) -> str | None:
  if value is not None and not isinstance(value, str):
    raise ValueError(f"{what}: expected text, got {value!r}")
  return value


def _read_search(record: Mapping[str, Any], lines: tuple[Equation, ...], best: Equation) -> SearchResult:
  weights = record["weights"]
  if weights is not None:
    weights = np.array([_number(weight, "weights") for weight in as_list(weights, "weights")])
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
      raise ValueError("weights: expected numbers of at least 0, and one above")
  plain = {name: record[name] for name in ("status", "message", "seed", "num_points", "model", "ended_by")}
  for name, value in plain.items():
    kind = int if name in ("seed", "num_points") else str
    if not isinstance(value, kind) or isinstance(value, bool):
      raise ValueError(f"{name}: expected {'a whole number' if kind is int else 'text'}, got {value!r}")
  if plain["num_points"] < 1:
    raise ValueError(f"num_points: expected a number of rows, got {plain['num_points']}")
  return SearchResult(
    **plain, best=best, pareto=lines, counts=configuration.build(Counts, record["counts"], path="counts"),
    seconds=configuration.build(Seconds, record["seconds"], path="seconds"),
    rounds=tuple(configuration.build(Progress, turn, path="rounds")
                 for turn in as_list(record["rounds"], "rounds")),
    seen=None if record["seen"] is None else _read_seen(as_object(record["seen"], "seen")), weights=weights,
    units=_read_units(record.get("units"), len(best.names) + 1),
    guesses=tuple(_read_guess(as_object(each, "guesses"), len(lines))
                  for each in as_list(record.get("guesses", []), "guesses")))


def _read_guess(record: Mapping[str, Any], num_lines: int) -> Guess:
  line, texts = record["line"], {name: str(_text(record[name], name)) for name in ("text", "expression", "reason")}
  if line is not None and (not isinstance(line, int) or isinstance(line, bool) or not 0 <= line < num_lines):
    raise ValueError(f"guesses: expected a line of the front, got {line!r}")
  constants = {name: _number(value, name) for name, value in as_object(record["constants"], "constants").items()}
  errors = {name: _optional(value, name) for name, value in as_object(record["errors"], "errors").items()}
  if constants.keys() != errors.keys():
    raise ValueError("guesses: expected an error for each constant")
  return Guess(**texts, constants=constants, errors=errors, r2=_optional(record["r2"], "r2"),
               rmse=_optional(record["rmse"], "rmse"), line=line, log_r2=_optional(record.get("log_r2"), "log_r2"))


def _read_units(values: Any, num: int) -> tuple[str, ...] | None:
  units = _read_texts(values, "units", num)
  known = None if units is None else tuple(unit for unit in units if unit is not None)
  if units != known:
    raise ValueError(f"units: expected text, got {values!r}")
  return known


def _read_range(ends: Any) -> tuple[float, float]:
  if not isinstance(ends, list) or len(ends) != 2:
    raise ValueError(f"ranges: expected the least and the largest value, got {files.shorten(repr(ends), 60)}")
  least, largest = (_finite(end, "ranges") for end in ends)
  if least > largest:
    raise ValueError(f"ranges: expected the least value first, got {least:g} and {largest:g}")
  return least, largest


def _read_seen(record: Mapping[str, Any]) -> Seen:
  ranges = {name: _read_range(ends) for name, ends in as_object(record["ranges"], "ranges").items()}
  unused = record.get("unused", [])
  if not isinstance(unused, list) or not all(isinstance(name, str) for name in unused):
    raise ValueError(f"unused: expected names of columns, got {unused!r}")
  rejected = tuple(configuration.build(Rejected, line, path="rejected")
                   for line in as_list(record["rejected"], "rejected"))
  return dataclasses.replace(
    configuration.build(Seen, {**record, "ranges": ranges, "rejected": ()}, path="seen"), rejected=rejected)
