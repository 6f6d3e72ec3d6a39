"""Runs the suite `real`: a search for each data set, three lines of its front judged, beside what anybody would try."""

from collections.abc import Callable, Sequence
import csv
import dataclasses
import io
import os
import pathlib
import statistics
from typing import Any

import numpy as np

from symformer_jax import inference
from symformer_jax.errors import InputError
from symformer_jax.evaluation import real_data, real_faults
from symformer_jax.evaluation.answers import Method
from symformer_jax.evaluation.real_data import RealSet, Split
from symformer_jax.evaluation.real_faults import Yardsticks
from symformer_jax.files import check_regular
from symformer_jax.results import SearchResult
from symformer_jax.selection import choice

TITLE = "Real data sets, scored on rows that were not fitted"
RECOMMENDED, MOST_ACCURATE, SIMPLE = "recommended", "most accurate", "simple"


@dataclasses.dataclass(frozen=True)
class RealRow:
  """One line of results.csv: a data set and a line of its front; None is an empty cell.

  Attributes:
    r2: on the scored rows (`real_faults.score`); None where the formula is undefined on one of them.
    faults: names of rules broken, separated by `; `.
    least_squares, boosting: R2 of those on the same rows.
    rows: that were fitted.
    message: why there is no answer.
  """

  name: str
  family: str
  set_aside: bool
  choice: str
  n_vars: int | None = None
  rows: int | None = None
  predicted: str = ""
  complexity: int | None = None
  r2: float | None = None
  faults: str = ""
  least_squares: float | None = None
  boosting: float | None = None
  seconds: float | None = None
  message: str = ""

  @property
  def key(self) -> tuple[str, str]:
    return self.name, self.choice


COLUMNS = tuple(field.name for field in dataclasses.fields(RealRow))


def run(
  sets: Sequence[RealSet], path: pathlib.Path, *, model: str, method: Method,
  on_row: Callable[[RealRow], None] = lambda row: None, should_stop: Callable[[], bool] = lambda: False,
) -> tuple[list[RealRow], bool]:
  """Answers every set that has no rows in the file yet, and adds them.

  Args:
    sets: see `real_data.load_table`.
    path: a CSV; made when it does not exist. A set whose rows were cut off is asked again.
    model: as in `inference.resolve_model`; method: how much is searched.
    on_row: called with each new row; should_stop: asked before each set.
  Returns:
    All rows, and whether every set has them.
  """
  rows = _read(path) if path.exists() else []
  done = {row.name for row in rows if row.choice == SIMPLE or row.message}
  rows = [row for row in rows if row.name in done]
  _write(path, rows)
  for real_set in sets:
    if real_set.name in done:
      continue
    if should_stop():
      return rows, False
    new = answer(real_set, model=model, method=method)
    rows += new
    _write(path, new, is_new=False)
    for row in new:
      on_row(row)
  return rows, True


def answer(real_set: RealSet, *, model: str, method: Method) -> list[RealRow]:
  """The rows of one set; a single one with a message where it cannot be read or searched."""
  blank = RealRow(real_set.name, real_set.family, real_set.is_set_aside, RECOMMENDED)
  try:
    split = real_data.load_split(real_set)
  except InputError as error:
    return [dataclasses.replace(blank, message=str(error))]
  result = search(split, model=model, method=method)
  if result.best is None:
    return [dataclasses.replace(blank, message=result.message)]
  return judge(blank, split, result, yardsticks(split))


def search(split: Split, *, model: str, method: Method) -> SearchResult:
  """The search as a user has it, on the fitted rows."""
  loaded = inference.resolve_model(model, num_variables=split.x.shape[1])
  return inference.search(
    loaded, [(split.x, split.y)], names=[split.names], n_samples=method.num_samples, top_k=method.top_k,
    refine=method.refine, max_time=method.max_time, recombine=method.recombine, config=method.config)[0]


def judge(blank: RealRow, split: Split, result: SearchResult, beside: Yardsticks) -> list[RealRow]:
  """A row for each of the three lines of a front."""
  lines = {RECOMMENDED: result.best, MOST_ACCURATE: min(result.pareto, key=lambda e: e.mse),
           SIMPLE: choice.simplest_good(result.pareto, result.best)}
  return [dataclasses.replace(
    blank, choice=name, n_vars=split.x.shape[1], rows=len(split.y), predicted=line.expression,
    complexity=line.complexity, r2=real_faults.score(line.node, split),
    faults="; ".join(real_faults.find_faults(line.node, split, beside)), least_squares=beside.least_squares,
    boosting=beside.boosting, seconds=round(result.seconds.search, 2)) for name, line in lines.items()]


def yardsticks(split: Split) -> Yardsticks:
  """Least squares on all columns, and gradient boosting as scikit-learn ships it, both fitted to the same rows."""
  # Imported late, and here alone: the search needs no scikit-learn.
  from sklearn.ensemble import GradientBoostingRegressor
  from sklearn.linear_model import LinearRegression
  from sklearn.pipeline import make_pipeline
  from sklearn.preprocessing import StandardScaler

  models = make_pipeline(StandardScaler(), LinearRegression()), GradientBoostingRegressor(random_state=0)
  return Yardsticks(*(
    real_faults.score_values(m.fit(split.x, split.y).predict(split.scored_x), split) for m in models))


# --- the file --------------------------------------------------------------------------------------------------


def _write(path: pathlib.Path, rows: Sequence[RealRow], *, is_new: bool = True) -> None:
  text = io.StringIO()
  lines = csv.writer(text, lineterminator="\n")
  if is_new:
    lines.writerow(COLUMNS)
  lines.writerows(map(dataclasses.astuple, rows))
  with open(path, "w" if is_new else "a", encoding="utf-8", newline="") as file:
    file.write(text.getvalue())
    file.flush()
    os.fsync(file.fileno())


def _read(path: pathlib.Path) -> list[RealRow]:
  try:
    check_regular(path)
    with open(path, newline="", encoding="utf-8") as file:
      lines = csv.reader(file)
      header = next(lines, None)
      if header is None or tuple(header) != COLUMNS:
        raise InputError(f"{str(path)!r} is no results file of this suite: expected columns {','.join(COLUMNS)}")
      return [_parse(cells) for cells in lines if len(cells) == len(COLUMNS)]
  except InputError:
    raise
  except (OSError, csv.Error, ValueError) as error:  # no UTF-8 among them
    raise InputError(f"{str(path)!r} is damaged: {error}; give another folder") from None


def _parse(cells: Sequence[str]) -> RealRow:
  values: dict[str, Any] = dict(zip(COLUMNS, cells, strict=True))
  for name in ("n_vars", "rows", "complexity"):
    values[name] = int(values[name]) if values[name] else None
  for name in ("r2", "least_squares", "boosting", "seconds"):
    values[name] = float(values[name]) if values[name] else None
  values["set_aside"] = values["set_aside"] == "True"
  return RealRow(**values)


# --- figures ---------------------------------------------------------------------------------------------------


def summarize(rows: Sequence[RealRow]) -> dict[str, dict[str, Any]]:
  """Figures of each choice, and of what stands beside them; rows without an answer are left out, and counted.

  In means an R2 below 0, or none, is 0: one wild row would otherwise be the mean.
  """
  answered = [row for row in rows if not row.message]
  by_choice = {name: [row for row in answered if row.choice == name] for name in (RECOMMENDED, MOST_ACCURATE, SIMPLE)}
  figures = {name: {**_figures([row.r2 for row in group]), "with_a_fault": sum(bool(row.faults) for row in group),
                    "median_complexity": statistics.median(
                      row.complexity for row in group if row.complexity is not None),
                    "not_below_least_squares": _share_at_least(group),
                    "faults": _count_faults(group)} for name, group in by_choice.items() if group}
  for name in ("least_squares", "boosting"):
    if by_choice[RECOMMENDED]:
      figures[name.replace("_", " ")] = _figures([getattr(row, name) for row in by_choice[RECOMMENDED]])
  return figures


def _figures(r2: Sequence[float | None]) -> dict[str, Any]:
  known = [-np.inf if value is None else value for value in r2]
  return {"sets": len(known), "mean_r2": statistics.fmean(min(max(value, 0.0), 1.0) for value in known),
          "median_r2": statistics.median(known)}


def _share_at_least(rows: Sequence[RealRow]) -> float | None:
  """Tables (not laws or series) whose R2 is at least that of least squares less the room allowed."""
  tables = [row for row in rows if row.family == "table"]
  good = [row for row in tables if real_faults.BELOW_LINE not in row.faults]
  return len(good) / len(tables) if tables else None


def _count_faults(rows: Sequence[RealRow]) -> dict[str, int]:
  names = [name for row in rows for name in row.faults.split("; ") if name]
  return {name: names.count(name) for name in dict.fromkeys(names)}


def make_report(rows: Sequence[RealRow], provenance: dict[str, Any]) -> str:
  """report.md: figures of the sets looked at while developing and of those set aside, then every answer."""
  parts = [f"# {TITLE}", "\n".join(f"- {name}: {value}" for name, value in provenance.items())]
  for is_aside, title in ((False, "Sets looked at while developing"), (True, "Sets set aside")):
    group = [row for row in rows if row.set_aside == is_aside]
    if any(not row.message for row in group):
      parts += [f"## {title}", _figure_table(summarize(group)), _answer_table(group)]
  missing = [row for row in rows if row.message]
  if missing:
    parts += ["## Without an answer", "\n".join(f"- {row.name}: {row.message}" for row in missing)]
  return "\n\n".join(parts) + "\n"


def _figure_table(figures: dict[str, dict[str, Any]]) -> str:
  header = "| line | sets | with a fault | mean R2 | median R2 | nodes | tables not below least squares | faults |"
  lines = [header, "|---" * 8 + "|"]
  for name, f in figures.items():
    share, faults = f.get("not_below_least_squares"), f.get("faults", {})
    lines.append(
      f"| {name} | {f['sets']} | {f.get('with_a_fault', '')} | {f['mean_r2']:.3f} | {f['median_r2']:.3f} "
      f"| {f.get('median_complexity', '')} | {'' if share is None else f'{share:.2f}'} "
      f"| {', '.join(f'{count} {fault}' for fault, count in faults.items())} |")
  return "\n".join(lines)


def _answer_table(rows: Sequence[RealRow]) -> str:
  lines = ["| data | rows, columns | recommended | R2 | least squares | boosting | faults |", "|---" * 7 + "|"]
  for row in rows:
    if row.choice == RECOMMENDED and not row.message:
      cells = (f"`{row.predicted}`", *(("none" if r is None else f"{r:.3f}") for r in (
        row.r2, row.least_squares, row.boosting)), row.faults)
      lines.append(f"| {row.name} | {row.rows}, {row.n_vars} | {' | '.join(cells)} |")
  return "\n".join(lines)
