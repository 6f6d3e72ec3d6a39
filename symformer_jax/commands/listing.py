"""A result as people read it: the front, the line that is taken, its constants, what was seen."""

from collections.abc import Mapping
import sys

from rich import console

from symformer_jax.language.names import written
from symformer_jax.language.printing import format_number
from symformer_jax.presentation.guess_lines import guess_line
from symformer_jax.presentation.numerals import r2_label, shown_r2
from symformer_jax.results import EXACT, NOISE, Constant, Equation, Filled, SearchResult
from symformer_jax.selection import choice

# Longer formulas are cut in plain tables, which cannot fold them; the JSON and the last line have them whole.
MAX_WIDTH = 72
# Columns whose ranges are printed; the JSON has all.
MAX_RANGES = 6


def print_result(result: SearchResult, selected: Equation, *, name: str, target: str) -> None:
  """Prints a result of status `ok` to standard output.

  Args:
    selected: the line of the front that is taken.
    name: of the data; target: of y.
  """
  title = f"{name}: {target}, {result.num_points} points, model {result.model}"
  title += "" if result.loss == "squared" else f", loss {result.loss}"
  figures = (r2_label(result.loss, is_weighted=result.is_weighted), "weighted RMSE" if result.is_weighted else "RMSE")
  target = written(target)
  header = ("", "", f"{target} =", "complexity", *figures, "")
  assert result.best is not None  # of every result that is ok
  simple = choice.simplest_good(result.pareto, result.best)
  is_terminal = sys.stdout is not None and sys.stdout.isatty()
  rows = []
  for number, line in enumerate(result.pareto):
    name = choice.SIMPLE if line is simple is not result.best else ""
    name = choice.RECOMMENDED if line is result.best is not selected else name
    r2 = shown_r2(line, result.loss)
    rows.append(_cells(line, number, name, r2, is_selected=line is selected, is_shortened=not is_terminal))
  (_print_rich if is_terminal else _print_plain)(title, header, rows)
  if result.message:
    print(result.message)
  for guess in result.guesses:
    print(guess_line(guess, loss=result.loss, is_weighted=result.is_weighted))
  print(f"recommended: {target} = {result.best.expression}")
  if simple is not result.best:
    print(f"simple: {target} = {simple.expression}")
  if selected is not result.best:
    print(f"selected: {target} = {selected.expression}")
  if selected.filled is not None:
    print("template: " + ", ".join(_filled_texts(selected.filled)))
  if selected.all_constants:
    print("constants: " + ", ".join(_constant_text(constant) for constant in selected.all_constants))
  if selected.whole_numbers:
    print("whole numbers: " + ", ".join(f"{value:g} {unit}" for value, unit in selected.whole_numbers))
  if result.seen is not None:
    noise = "" if result.seen.noise is None else f"; noise {format_number(100 * result.seen.noise, 2)} % of its spread"
    print(f"seen: {', '.join(_range_text(result.seen.ranges))}{noise}")
  counts, seconds = result.counts, result.seconds
  drawn = (f"{counts.sampled} samples, {counts.valid} valid, {counts.distinct} distinct" if counts.sampled
           else "no samples of the network")
  why = {EXACT: ", for the data are met exactly", NOISE: ", for the rest looks like noise"}.get(result.ended_by, "")
  print(f"{drawn}; ended after {len(result.rounds)} turns{why}; "
        f"{seconds.total:.1f} s, of which compiling {seconds.compile:.1f} s")


def _cells(
  equation: Equation, number: int, name: str, r2: str, *, is_selected: bool, is_shortened: bool
) -> tuple[str, ...]:
  text = equation.expression
  if is_shortened and len(text) > MAX_WIDTH:
    text = text[: MAX_WIDTH - 4] + " ..."
  return ("->" if is_selected else "", str(number), text, str(equation.complexity), r2,
          f"{equation.rmse:.4g}", name)


def _range_text(ranges: Mapping[str, tuple[float, float]]) -> list[str]:
  """Where each column lies; of many the first."""
  shown = [f"{name} {low:.4g} to {high:.4g}" for name, (low, high) in ranges.items()]
  return shown if len(shown) <= MAX_RANGES else [*shown[:MAX_RANGES], "..."]


def _constant_text(constant: Constant) -> str:
  error = "" if constant.stderr is None else f" +- {format_number(constant.stderr, 1)}"
  unit = "" if constant.unit in (None, "1") else f" {constant.unit}"
  return f"{constant.value:.15g}{error}{unit}" + (f" ({constant.exact})" if constant.exact else "")


def _filled_texts(filled: Filled) -> list[str]:
  """`f(x) = 2*x/(x + 1.5)`, `k = 0.7 +- 0.001`."""
  return [*(f"{call} = {text}" for call, text in filled.functions),
          *(f"{written(name)} = {_constant_text(constant)}" for name, constant in filled.parameters)]


def _is_left(column: int) -> bool:
  """Whether a column of the table is text."""
  return column in (0, 2, 6)


def _print_rich(title: str, header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
  from rich import table as rich_table, text

  # Text, not str: brackets in a name or a formula are no markup.
  table = rich_table.Table(title=text.Text(title), title_justify="left")
  for i, name in enumerate(header):
    table.add_column(text.Text(name), justify="left" if _is_left(i) else "right", overflow="fold")
  for row in rows:
    table.add_row(*(text.Text(cell) for cell in row), style="bold green" if row[0] else "")
  console.Console().print(table)


def _print_plain(title: str, header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
  widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
  print(title)
  for row in [header, *rows]:
    pairs = enumerate(zip(row, widths, strict=True))
    cells = [cell.ljust(width) if _is_left(i) else cell.rjust(width) for i, (cell, width) in pairs]
    print("  ".join(cells).rstrip())
