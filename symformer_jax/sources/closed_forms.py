"""The mean and straight lines as a source: what any formula is measured against."""

from collections.abc import Sequence
import dataclasses
import math
from typing import Any

import jax
import numpy as np

from symformer_jax.engine.clock import Clock
from symformer_jax.engine.pool import Candidate
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Proposal, Question
from symformer_jax.engine.task import Task
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, number, variable

# A line that leaves no more than this share of the size of y is exact: less is rounding.
EXACT = 1e-12


@dataclasses.dataclass(frozen=True)
class ClosedForms:
  """All of them by least squares; they need no model and no fit."""

  name: str = "closed_forms"
  turns: tuple[int, ...] = (1,)

  def supports(self, task: Task) -> bool:
    return True

  def init(self, task: Task, key: jax.Array) -> Any:
    return None

  def propose(self, questions: Sequence[Question], *, turn: int, num: int, clock: Clock) -> list[Proposal]:
    return [Proposal(candidates=tuple(Candidate(node, _mse(node, question.task.fit_rows), self.name)
                                      for node in fit(question.task.fit_rows, question.task.columns)))
            for question in questions]


def _mse(node: Node, rows: Rows) -> float:
  return float(np.average((expression.evaluate(node, rows.x) - rows.y) ** 2, weights=rows.weights))


def fit(rows: Rows, columns: Sequence[int]) -> list[Node]:
  """What most generators would not propose, by weighted least squares: the mean, the straight line of some columns,
  and, where fewer of them describe the data in less (see `_sparse`), the straight line of those.

  Terms that are rounding, in no row more than `EXACT` of the largest value of their line, are left out.
  """
  mean = number(float(np.average(rows.y, weights=rows.weights)))
  columns = [i for i in columns if rows.x[:, i].any()]
  design = np.column_stack([rows.x[:, columns], np.ones(len(rows))])
  # Columns of unit length: the rank decision of lstsq must not depend on units.
  scale = np.linalg.norm(design, axis=0)
  root = np.sqrt(rows.weights)
  weighted = root[:, None] * design / scale
  # Every subset of the columns has the sums of squares of the rows of this triangle.
  triangle: Any = np.linalg.qr(np.column_stack([weighted, root * rows.y]), mode="r")
  everything = list(range(len(columns)))
  lines = []
  for some in (everything, _sparse(triangle, everything, int(np.sum(rows.weights > 0)))):
    some = [i for i, is_there in zip(some, _are_there(weighted, triangle, some), strict=False) if is_there]
    solution = _solve(triangle, some)[0] / scale[[*some, -1]]
    terms = [_term(columns[i], float(c)) for i, c in zip(some, solution[:-1], strict=True) if c]
    constant = [number(float(solution[-1]))] if _are_there(weighted, triangle, some)[-1] else []
    lines += [chain("+", [*terms, *constant])] if terms else []
  return [mean, *dict.fromkeys(lines)]


def _term(column: int, factor: float) -> Node:
  """A multiple of a column, or that itself where the rest is rounding."""
  return variable(column) if abs(factor - 1) <= EXACT else Node("*", (variable(column), number(factor)))


def _are_there(weighted: np.ndarray, triangle: np.ndarray, some: Sequence[int]) -> np.ndarray:
  """Which terms of a line of some columns, the constant the last, are more than rounding [len(some) + 1]; `weighted`:
  the columns that `triangle` is made of [N, D + 1].
  """
  terms = weighted[:, [*some, -1]] * _solve(triangle, some)[0]
  return np.max(np.abs(terms), axis=0) > EXACT * np.max(np.abs(np.sum(terms, axis=1)))


def _solve(triangle: np.ndarray, some: Sequence[int]) -> tuple[np.ndarray, float]:
  """Coefficients of some columns and of the constant, the last, and the sum of squares that they leave."""
  design, y = triangle[:, [*some, -2]], triangle[:, -1]
  solution = np.linalg.lstsq(design, y, rcond=None)[0]
  return solution, float(np.sum((y - design @ solution) ** 2))


def _sparse(triangle: np.ndarray, columns: Sequence[int], num_rows: int) -> list[int]:
  """The columns that are left where the least needed ones are left out one after the other, as many as give the least
  Bayesian information criterion (Schwarz 1978).
  """
  floor = EXACT**2 * float(np.sum(triangle[:, -1] ** 2))

  def criterion(some: Sequence[int]) -> float:
    left = max(_solve(triangle, some)[1], floor, np.finfo(float).tiny)
    return num_rows * math.log(left) + len(some) * math.log(num_rows)

  path = [list(columns)]
  while path[-1]:
    shorter = ([i for i in path[-1] if i != out] for out in path[-1])
    path.append(min(shorter, key=lambda some: _solve(triangle, some)[1]))
  return min(reversed(path), key=criterion)
