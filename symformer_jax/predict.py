"""Applies a saved formula to another table: python -m symformer_jax.predict fit.json new.csv

fit.json is what `symformer --out=fit.json`, `save_result` or `SymFormerRegressor.save` wrote; new.csv any table that
`symformer` reads. Its columns are found by name, in any order, and a column of predictions is added to them: CSV on
standard output, or --out=FILE.csv. Where a cell that the formula reads is missing, or the formula is undefined, that of
the prediction is empty. Standard error says how many such there are, which rows lie outside of the range of the fit,
and, where the table has the target, how well it is met.
Exit codes: 0 done; 1 the table could not be written; 2 unusable arguments or input, one line on standard error says
what is wrong; 75 stopped by Ctrl-C, SIGTERM or a terminal that is closed.
"""

if __name__ == "__main__":
  from symformer_jax.commands import startup  # first: the other imports take seconds

  startup.prepare(__doc__, "symformer_jax.commands.predict_flags")

from collections.abc import Iterator

import numpy as np

from symformer_jax import files
from symformer_jax.commands import (
  bad_cells,
  grids,
  new_tables,
  outputs,
  predict_flags as asked,
  runner,
  saved_fits,
  table_output,
  tables,
)
from symformer_jax.commands.new_tables import NewTable, Points
from symformer_jax.commands.saved_fits import SavedFit
from symformer_jax.errors import InputError, suggest
from symformer_jax.language import expression
from symformer_jax.language.names import written
from symformer_jax.presentation.numerals import format_error, format_r2
from symformer_jax.results import Equation
from symformer_jax.selection import choice, scoring


def main(argv: list[str]) -> int:
  """Returns the exit code."""
  if len(argv) != 3:
    raise InputError(f"expected a file of formulas and a table, such as fit.json new.csv, got {len(argv) - 1} "
                     "arguments; see --help")
  runner.refuse_empty(asked.SELECT, asked.FILE, asked.TARGET, asked.NAME, asked.OUT, asked.DECIMAL, asked.SEPARATOR,
                      asked.SHEET)
  if asked.SELECT.value is not None:
    choice.read_selection(asked.SELECT.value, argument="--select")
  path, table_path = argv[1:]
  _check_output([path, table_path])
  wanted = None if asked.TARGET.value is None else grids.clean_name(asked.TARGET.value)
  fit = saved_fits.read(path, file=asked.FILE.value, target=wanted)
  line = fit.taken if asked.SELECT.value is None else choice.pick(
    fit.lines, fit.best, asked.SELECT.value, argument="--select")
  target = wanted if fit.target is None or wanted is not None else grids.clean_name(fit.target)
  request = tables.Request(
    decimal=asked.DECIMAL.value, separator=asked.SEPARATOR.value, sheet=asked.SHEET.value)
  table = new_tables.read(table_path, request, fit, target=target)
  name = _name_of_predictions(table)
  points = table.points(sorted(expression.columns_of(line.node)))
  # Of several targets the flag takes a formula, and the new table need not have the column.
  measured = _measured(table, target, is_asked=wanted is not None and not fit.is_one_of_several)
  values = predict(line, points)
  for text in () if asked.QUIET.value else _describe(fit, line, table, points, values):
    runner.say(runner.one_line(text))
  if measured is not None and not asked.QUIET.value:
    runner.say(runner.one_line(_compare(values, measured, fit, str(target))))
  return _write(table_output.to_csv((*table.header, name), table.grid.columns, values))


def predict(line: Equation, points: Points) -> np.ndarray:
  """Values of a formula [N], as the regressor's `predict` has them; NaN where there is none."""
  values = scoring.evaluate(line.node, points.x)
  return np.where(points.is_usable & np.isfinite(values), values, np.nan)


# --- what is given -----------------------------------------------------------------------------------------------


def _check_output(inputs: list[str]) -> None:
  """Refuses an unusable place for the table before any work is done."""
  if asked.OUT.value is None:
    if asked.OVERWRITE.value:
      raise InputError("--overwrite: says nothing without --out")
    runner.need_output()
    return
  path = files.check_writable(asked.OUT.value, flag="--out")
  if path.suffix != table_output.SUFFIX:
    raise InputError(f"--out: expected a name ending in {table_output.SUFFIX}, got {asked.OUT.value!r}")
  outputs.check_apart([asked.OUT.value], inputs, flag="--out")
  if path.exists() and not asked.OVERWRITE.value:
    raise InputError(f"--out: {asked.OUT.value!r} exists; --overwrite replaces it")


def _name_of_predictions(table: NewTable) -> str:
  name = grids.clean_name(asked.NAME.value)
  if not name:
    raise InputError(f"--name: expected letters that can be printed, got {asked.NAME.value!r}")
  if name in table.header:
    raise InputError(f"--name: {table.path} has a column {name!r}; give the predictions another name")
  return name


def _measured(table: NewTable, target: str | None, *, is_asked: bool) -> np.ndarray | None:
  """Values [N] of the target, NaN where there is none; None where the table has no such column, or nothing in it and
  nobody asked for it.
  """
  if target is None:
    return None
  try:
    column = table.target(target)
  except InputError as error:
    if is_asked:
      raise
    if not asked.QUIET.value:
      runner.say(runner.one_line(f"note: predictions are not compared with {target!r}: {error}"))
    return None
  if column is None and is_asked:
    raise InputError(f"{table.path}: --target: no column {target!r}: {suggest(target, table.names)}")
  if column is None or not is_asked and not np.isfinite(column.values).any():
    return None  # in a table to be filled in the column is often there
  return column.values


# --- what is said ------------------------------------------------------------------------------------------------


def _describe(
  fit: SavedFit, line: Equation, table: NewTable, points: Points, values: np.ndarray
) -> Iterator[str]:
  """What people should know of predictions, one line each."""
  yield from (f"note: {table.path}: {note}" for note in (*table.notes, *points.notes))
  yield f"formula: {written(fit.target) if fit.target else asked.NAME.value} = {line.expression}"
  if fit.target and (scale := fit.time_scales.get(fit.target)):
    yield f"note: predictions are {scale.describe()}"
  for i, column in points.read.items():
    if (ends := fit.ranges.get(line.names[i])) is not None:
      is_outside = (column.values < ends[0]) | (column.values > ends[1])
      if is_outside.any():
        yield (f"note: column {grids.clean_name(line.names[i])!r}: {np.sum(is_outside)} of {len(values)} rows lie "
               f"outside of {ends[0]:.6g} to {ends[1]:.6g}, the range of the fit")
  if not points.is_usable.all():
    read = list(points.read.values())
    kinds = bad_cells.count(read, ~np.isfinite(np.column_stack([column.values for column in read])))
    yield (f"note: {np.sum(~points.is_usable)} of {len(values)} rows have no prediction: no finite number in a column "
           f"that the formula reads ({bad_cells.tell_counts(kinds)})")
  if num_undefined := int(np.sum(points.is_usable & np.isnan(values))):
    yield (f"note: {num_undefined} of {len(values)} rows have no prediction: the formula is undefined there, as at a "
           "pole or for the logarithm of a negative number, or too large for double precision")


def _compare(values: np.ndarray, measured: np.ndarray, fit: SavedFit, target: str) -> str:
  """How well predictions [N] meet measured values [N], each row counting alike."""
  is_used = np.isfinite(values) & np.isfinite(measured)
  if not is_used.any():
    return f"{written(target)}: no row has both a prediction and a measured value"
  values, measured = values[is_used], measured[is_used]
  scores = scoring.score(values, measured)
  figures = {"R2": format_r2(scores.r2), "RMSE": format_error(scores.rmse)}
  if fit.loss == "log":
    figures["R2 of log(y)"] = format_r2(scoring.log_r2(values, measured, np.ones(len(values))))
  told = ", ".join(f"{label} {figure}" for label, figure in figures.items() if figure)
  return f"{written(target)}: {len(values)} {'row' if len(values) == 1 else 'rows'}, {told}"


def _write(parts: Iterator[str]) -> int:
  if asked.OUT.value is None:
    for part in parts:
      print(part, end="")
    return runner.DONE
  try:
    files.write_text(asked.OUT.value, "".join(parts))
  except OSError as error:
    runner.say(runner.one_line(f"error: --out: cannot write {files.shorten(asked.OUT.value)!r}: {files.reason(error)}"))
    return runner.SOME_FAILED
  return runner.DONE


if __name__ == "__main__":
  runner.run(main, flag_values=asked.FLAGS, takes_arguments=True)
