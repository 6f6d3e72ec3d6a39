"""Finds formulas for tables of points: python -m symformer_jax.infer --data=points.csv

Prints formulas from simple to accurate and marks the recommended one. Many files or globs are one batch.
Exit codes: 0 done; 1 some files failed (each says why in its line of the JSONL); 2 unusable arguments or input,
one line on standard error says what is wrong; 75 stopped by SIGTERM or Ctrl-C.
"""

import dataclasses
import json
import pathlib
import sys
from typing import Any

from absl import flags

from symformer_jax import files, runner, tables
from symformer_jax.errors import InputError
from symformer_jax.results import FAILED, OK, Equation, SearchResult, failed

_FLAGS = flags.FlagValues()
_DATA = flags.DEFINE_list(
  "data", None, "Files and globs, separated by commas: .csv, .tsv, .parquet or .npz. Required.", flag_values=_FLAGS)
_TARGET = flags.DEFINE_string(
  "target", None, "Column to explain; by default the last one with numbers.", flag_values=_FLAGS)
_FEATURES = flags.DEFINE_list(
  "features", None, "Columns to explain it by; by default all others with numbers.", flag_values=_FLAGS)
_MODEL = flags.DEFINE_string(
  "model", "auto", "A shipped model's name, a model's folder, or auto: the shipped model for so many variables.",
  flag_values=_FLAGS)
_SAMPLES = flags.DEFINE_integer("samples", 1024, "Candidates drawn from the model for each file.", flag_values=_FLAGS)
_TOP_K = flags.DEFINE_integer(
  "top_k", 20, "Tokens among which each step of sampling chooses.", flag_values=_FLAGS)
_REFINE = flags.DEFINE_string(
  "refine", "lm", "How constants are fitted: lm (damped least squares), bfgs, gd or none.", flag_values=_FLAGS)
_OPERATORS = flags.DEFINE_list(
  "operators", None, "Operators a formula may use, such as +,*,pow,exp; by default all.", flag_values=_FLAGS)
_MAX_TIME = flags.DEFINE_float(
  "max_time", None, "Seconds after which no further samples are drawn for a file.", flag_values=_FLAGS)
_SEED = flags.DEFINE_integer("seed", 0, "The same seed gives the same answer on one platform.", flag_values=_FLAGS)
_OUT = flags.DEFINE_string(
  "out", None, "Where to write the results: FILE.json for one file, FILE.jsonl with a line for each of many.",
  flag_values=_FLAGS)
_PLOT = flags.DEFINE_string(
  "plot", None, "Where to draw data, recommended formula and front: FILE.png, .pdf or .svg; one data file only.",
  flag_values=_FLAGS)
_DROP_MISSING = flags.DEFINE_bool(
  "drop_missing", False, "Leave out rows with text, missing or infinite values in a used column.", flag_values=_FLAGS)
_QUIET = flags.DEFINE_bool("quiet", False, "Print nothing but errors.", flag_values=_FLAGS)


@dataclasses.dataclass(frozen=True)
class _Answer:
  """One file's outcome; without a table its result is `failed`."""

  path: str
  table: tables.Table | None
  result: SearchResult

  def to_json(self) -> str:
    target = self.table.target if self.table else (_TARGET.value or "")
    features = list(self.table.features) if self.table else list(_FEATURES.value or [])
    return json.dumps(self.result.to_json(data=self.path, target=target, features=features), allow_nan=False)


def main(argv: list[str]) -> int:
  """Returns the exit code."""
  del argv
  if not _DATA.value:
    raise InputError("--data: expected a file, such as --data=examples/kepler.csv; see --help")
  paths = tables.find_files(_DATA.value)
  _check_outputs(len(paths))
  answers = [_answer_one(paths[0])] if len(paths) == 1 else _answer_many(paths)
  if _OUT.value:
    files.write_text(_OUT.value, "".join(answer.to_json() + "\n" for answer in answers))
  if _PLOT.value:
    _draw(answers[0])
  if len(answers) == 1:  # many are printed as they come
    _print(answers[0])
  return runner.SOME_FAILED if any(a.result.status == FAILED for a in answers) else runner.DONE


def _check_outputs(num_files: int) -> None:
  """Refuses unusable output paths before any work is done."""
  if _OUT.value:
    path = files.check_writable(_OUT.value, flag="--out")
    if path.suffix not in (".json", ".jsonl"):
      raise InputError(f"--out: expected a name ending in .json or .jsonl, got {_OUT.value!r}")
    if num_files > 1 and path.suffix != ".jsonl":
      raise InputError(f"--out: results of {num_files} files need a .jsonl, got {_OUT.value!r}")
  if _PLOT.value:
    from symformer_jax import figures

    path = files.check_writable(_PLOT.value, flag="--plot")
    if path.suffix not in figures.FORMATS:
      raise InputError(f"--plot: expected a name ending in {', '.join(figures.FORMATS)}, got {_PLOT.value!r}")
    if num_files > 1:
      raise InputError(f"--plot: draws one data file, got {num_files}")


def _read(path: str) -> tables.Table:
  return tables.read_table(path, target=_TARGET.value, features=_FEATURES.value, drop_missing=_DROP_MISSING.value)


def _answer_one(path: str) -> _Answer:
  """Searches one file; whatever makes it fail is an error of the command."""
  table = _read(path)
  answer = _search(table, _resolve_model(table))
  if answer.result.status == FAILED:
    raise InputError(f"{path}: {answer.result.message}")
  return answer


def _answer_many(paths: list[str]) -> list[_Answer]:
  """Searches file by file; one that fails becomes a line that says why."""
  answers = []
  for path in paths:
    answers.append(_answer_of_many(path))
    _print(answers[-1])
  return answers


def _answer_of_many(path: str) -> _Answer:
  table = None
  try:
    table = _read(path)
    model = _resolve_model(table)
  except tables.TableError as error:
    message = str(error)
  except InputError as error:
    if _MODEL.value != "auto":  # wrong for every file
      raise
    message = f"{path}: {error}"
  else:
    return _search(table, model)
  return _Answer(path, table, failed(message, model=_MODEL.value, seed=_SEED.value))


def _resolve_model(table: tables.Table) -> Any:
  # Imported late: --help and most errors come without waiting for JAX.
  from symformer_jax import compilation, inference

  compilation.use_cache()
  return inference.resolve_model(_MODEL.value, num_variables=len(table.features))


def _search(table: tables.Table, model: Any) -> _Answer:
  from symformer_jax import inference

  [result] = inference.search(
    model, [(table.x, table.y)], names=[table.features], n_samples=_SAMPLES.value, top_k=_TOP_K.value,
    refine=_REFINE.value, operators=_OPERATORS.value, max_time=_MAX_TIME.value, seed=_SEED.value)
  return _Answer(table.path, table, result)


def _draw(answer: _Answer) -> None:
  from symformer_jax import figures

  with files.replacing(_PLOT.value) as temporary:
    figures.draw_result(answer.result, answer.table, temporary)


# --- printing --------------------------------------------------------------------------------------------------


def _print(answer: _Answer) -> None:
  if answer.result.status != OK:
    print(f"failed: {answer.result.message}", file=sys.stderr)
    return
  if _QUIET.value:
    return
  for note in answer.table.notes:
    print(f"note: {answer.path}: {note}", file=sys.stderr)
  result = answer.result
  title = f"{pathlib.Path(answer.path).name}: {answer.table.target}, {result.num_points} points, model {result.model}"
  is_terminal = sys.stdout.isatty()
  rows = [_cells(e, is_best=e is result.best, is_shortened=not is_terminal) for e in result.pareto]
  header = ("", answer.table.target + " =", "complexity", "R2", "RMSE")
  if is_terminal:
    _print_rich(title, header, rows)
  else:
    _print_plain(title, header, rows)
  if result.message:
    print(result.message)
  counts, seconds = result.counts, result.seconds
  print(f"recommended: {answer.table.target} = {result.best.expression}\n"
        f"{counts.sampled} samples, {counts.valid} valid, {counts.distinct} distinct; "
        f"{seconds.total:.1f} s, of which compiling {seconds.compile:.1f} s")


# Longer formulas are cut in plain tables, which cannot fold them; the JSON and the last line have them whole.
_MAX_WIDTH = 72


def _cells(equation: Equation, *, is_best: bool, is_shortened: bool) -> tuple[str, ...]:
  text, r2 = equation.expression, "" if equation.r2 is None else _format_r2(equation.r2)
  if is_shortened and len(text) > _MAX_WIDTH:
    text = text[: _MAX_WIDTH - 4] + " ..."
  return "->" if is_best else "", text, str(equation.complexity), r2, f"{equation.rmse:.4g}"


def _format_r2(r2: float) -> str:
  """Six decimals, or as many as show that a fit is not perfect."""
  return f"{r2:.6f}" if r2 < 0.999999 or r2 == 1 else f"1 - {1 - r2:.1e}"


def _print_rich(title: str, header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
  from rich import console, table as rich_table, text

  table = rich_table.Table(title=title, title_justify="left")
  for i, name in enumerate(header):
    table.add_column(name, justify="left" if i < 2 else "right", overflow="fold")
  for row in rows:
    # Text, not str: brackets in a formula are no markup.
    table.add_row(*(text.Text(cell) for cell in row), style="bold green" if row[0] else "")
  console.Console().print(table)


def _print_plain(title: str, header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
  widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
  print(title)
  for row in [header, *rows]:
    cells = [cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))]
    print("  ".join(cells).rstrip())


if __name__ == "__main__":
  runner.run(main, flag_values=_FLAGS)
