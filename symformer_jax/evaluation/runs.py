"""Runs tasks, judges the answers, and keeps results.csv: flushed row by row, so that an interrupted run resumes."""

from collections.abc import Callable, Iterable, Sequence
import csv
import dataclasses
import io
import os
import pathlib
import typing
from typing import Any
import zlib

import numpy as np

from symformer_jax.errors import InputError
from symformer_jax.evaluation import answers, metrics, problems as problems_lib
from symformer_jax.evaluation.problems import Problem
from symformer_jax.evaluation.suites import Task
from symformer_jax.language import printing
from symformer_jax.language.expression import Node
from symformer_jax.results import Counts


@dataclasses.dataclass(frozen=True)
class Row:
  """One line of results.csv; the first columns are the contract's. None is an empty cell.

  Attributes:
    sympy: SymPy's second opinion on equality, `equal`, `different` or `undecided`; empty where it was not asked.
    seen_function, seen_skeleton: whether they were in the model's training data; None where nobody knows.
    recovered: equal as a function where every variable keeps the sign that it has in its whole range.
    needs_signs: recovered, and another function where a variable has the other sign.
  """

  family: str
  name: str
  n_vars: int
  seed: int
  truth: str
  predicted: str | None = None
  complexity: int | None = None
  r2: float | None = None
  relative_error: float | None = None
  recovered: bool | None = None
  seconds: float | None = None
  compile_seconds: float | None = None
  sampled: int | None = None
  valid: int | None = None
  distinct: int | None = None
  variant: str = ""
  same_skeleton: bool | None = None
  fvu: float | None = None
  model: str = ""
  message: str = ""
  sympy: str = ""
  seen_function: bool | None = None
  seen_skeleton: bool | None = None
  needs_signs: bool | None = None

  @property
  def key(self) -> tuple[str, str, str]:
    return self.variant, self.name, str(self.seed)


# SymPy is asked about formulas that agree at least so well: for the others there is nothing to decide.
NEARLY_EQUAL_FVU = 1e-6
# In tables and figures, rows of no variant beside those of a peer.
OWN_LABEL = "the model"


@dataclasses.dataclass(frozen=True)
class Sources:
  """Where answers and opinions come from.

  Attributes:
    model_for: task -> loaded model, or an InputError that says why there is none.
    ask_peer: task and points [N, D+1] -> a peer's answer; needed where `Method.peer` is set.
    second_opinion: truth and prediction -> `Row.sympy`.
    was_seen: problem and model -> (function, skeleton) were in its training data; None where nobody knows.
  """

  model_for: Callable[[Task], Any]
  ask_peer: Callable[[Task, np.ndarray], answers.Answer] | None = None
  second_opinion: Callable[[Node, Node], str] = lambda truth, predicted: ""
  was_seen: Callable[[Problem, Any], tuple[bool, bool] | None] = lambda problem, model: None


COLUMNS = tuple(field.name for field in dataclasses.fields(Row))


class ResultsFile:
  """results.csv: rows that are there already are kept, new ones are appended and flushed at once."""

  def __init__(self, path: str | os.PathLike):
    """Opens or begins the file; a last line cut off by a kill is dropped.

    Raises:
      InputError: when a file of other columns is there.
    """
    self.path = pathlib.Path(path)
    if self.path.exists():
      self._drop_partial_line()
    self.rows = self._read() if self.path.exists() and self.path.stat().st_size else []
    if not (self.path.exists() and self.path.stat().st_size):
      self._append(COLUMNS)

  def _drop_partial_line(self) -> None:
    if not self.path.is_file():
      raise InputError(f"{str(self.path)!r} is no regular file; give another folder")
    data, header = self.path.read_bytes(), ",".join(COLUMNS).encode()
    if not data.startswith(header[: len(data)]):  # what is not ours stays as it is
      raise InputError(f"{str(self.path)!r} is no results file of this version: expected columns {','.join(COLUMNS)}")
    if not data.endswith(b"\n"):
      self.path.write_bytes(data[: data.rfind(b"\n") + 1])

  def _read(self) -> list[Row]:
    try:
      with open(self.path, newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        header = next(reader)
        if tuple(header) != COLUMNS:
          raise InputError(
            f"{str(self.path)!r} is no results file of this version: expected columns {','.join(COLUMNS)}")
        return [_parse_row(cells) for cells in reader if len(cells) == len(COLUMNS)]
    except (csv.Error, UnicodeDecodeError, ValueError) as error:
      if isinstance(error, InputError):
        raise
      raise InputError(f"{str(self.path)!r} is damaged: {error}; give another folder") from None

  def _append(self, cells: Iterable[Any]) -> None:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    with open(self.path, "a", encoding="utf-8") as file:
      file.write(line.getvalue())
      file.flush()
      os.fsync(file.fileno())

  def add(self, row: Row) -> None:
    self._append(dataclasses.astuple(row))
    self.rows.append(row)


def _parse_row(cells: Sequence[str]) -> Row:
  readers: dict[Any, Callable[[str], Any]] = {int: int, float: float, bool: lambda text: text == "True", str: str}
  values: dict[str, Any] = {}
  for field, cell in zip(dataclasses.fields(Row), cells, strict=True):
    kind, *optional = typing.get_args(field.type) or (field.type,)
    values[field.name] = None if optional and cell == "" else readers[kind](cell)
  return Row(**values)


def run(
  tasks: Sequence[Task], sources: Sources, results: ResultsFile, *,
  on_row: Callable[[Row], None] = lambda row: None, should_stop: Callable[[], bool] = lambda: False,
) -> bool:
  """Answers and judges every task that has no row yet.

  Args:
    tasks: see `suites.make_tasks`.
    results: where rows go.
    on_row: called with each new row; should_stop: asked before each task.
  Returns:
    Whether all tasks have a row.
  """
  done = {row.key for row in results.rows}
  # Variants that differ in scoring alone share an answer.
  answered: dict[Task, answers.Answer] = {}
  for task in tasks:
    if task.key in done:
      continue
    if should_stop():
      return False
    row = run_task(task, sources, answered)
    results.add(row)
    on_row(row)
  return True


def run_task(task: Task, sources: Sources, answered: dict[Task, answers.Answer] | None = None) -> Row:
  """One row; a problem that cannot be asked or answered says why in its message.

  Args:
    answered: answers by `Task.question`, read and added to.
  """
  problem = task.problem
  blank = Row(problem.family, problem.name, problem.num_variables, task.seed, problem.text, variant=task.variant)
  try:
    model = None if task.method.peer else sources.model_for(task)
    points, scoring_points = make_points(task)
  except InputError as error:
    return dataclasses.replace(blank, message=str(error))
  answered = {} if answered is None else answered
  if task.question not in answered:
    if task.method.peer:
      assert sources.ask_peer is not None
      answered[task.question] = sources.ask_peer(task, points)
    else:
      answered[task.question] = answers.answer(model, points, task.method, seed=task.seed)
  found = answered[task.question]
  seen = None if task.method.peer else sources.was_seen(problem, model)
  row = dataclasses.replace(
    blank, seconds=round(found.seconds, 4), compile_seconds=round(found.compile_seconds, 4), model=found.model,
    message=found.message, **_counts(found.counts), seen_function=None if seen is None else seen[0],
    seen_skeleton=None if seen is None else seen[1])
  return row if found.node is None else _judge(row, task, found.node, scoring_points, sources.second_opinion)


def _counts(counts: Counts) -> dict[str, Any]:
  return {"sampled": counts.sampled, "valid": counts.valid, "distinct": counts.distinct}


def _judge(
  row: Row, task: Task, node: Node, scoring_points: np.ndarray, second_opinion: Callable[[Node, Node], str]
) -> Row:
  scores = metrics.score_formula(node, scoring_points)
  truth, box = task.problem.truth, task.problem.box
  # The thousand points of the wider box may miss what the scored ones see, such as a root at the end of the box.
  is_equal_here = scores.fvu is None or scores.fvu < metrics.RECOVERED_FVU
  is_recovered, is_everywhere = (
    is_equal_here and metrics.is_recovered(truth, node, box, rng=_rng(task, "recovery"), has_signs=has_signs)
    for has_signs in (True, False))
  is_near = is_recovered or (scores.fvu is not None and scores.fvu < NEARLY_EQUAL_FVU)
  return dataclasses.replace(
    row, predicted=printing.to_text(node, task.problem.names), complexity=metrics.complexity(node), r2=scores.r2,
    relative_error=scores.relative_error, fvu=scores.fvu,
    recovered=is_recovered, needs_signs=is_recovered and not is_everywhere,
    same_skeleton=metrics.has_same_skeleton(truth, node),
    sympy=second_opinion(truth, node) if is_near else "")


def make_points(task: Task) -> tuple[np.ndarray, np.ndarray]:
  """Training points (noisy when asked) and clean scoring points of a task, both [N, D+1].

  Raises:
    InputError: when the ranges hold no finite point.
  """
  points = problems_lib.draw_points(task.problem, task.num_points, rng=_rng(task, "points"))
  if task.noise:
    with np.errstate(over="ignore"):  # said of the row, whose data are then not finite
      rms = np.sqrt(np.mean(points[:, -1] ** 2))
      points[:, -1] += task.noise * rms * _rng(task, "noise").standard_normal(len(points))
  count, rng = problems_lib.NUM_SCORING_POINTS, _rng(task, "scoring")
  if task.distance is not None:
    return points, problems_lib.draw_points_outside(task.problem, count, distance=task.distance, rng=rng)
  return points, problems_lib.draw_points(task.problem, count, rng=rng, spacing=problems_lib.UNIFORM)


def _rng(task: Task, purpose: str) -> np.random.Generator:
  """The same numbers for a problem and seed in every run and variant, different ones for each purpose."""
  return np.random.default_rng([task.seed, zlib.crc32(f"{task.problem.name}/{purpose}".encode())])
