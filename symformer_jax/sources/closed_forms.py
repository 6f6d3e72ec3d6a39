"""The mean and the straight line as a source: what any formula is measured against."""

from collections.abc import Sequence
import dataclasses
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


@dataclasses.dataclass(frozen=True)
class ClosedForms:
  """Both, by least squares; they need no model and no fit."""

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
  """The weighted mean and the weighted linear fit over some columns, which most generators would not propose."""
  mean = number(float(np.average(rows.y, weights=rows.weights)))
  design = np.column_stack([rows.x[:, list(columns)], np.ones(len(rows))])
  # Columns of unit length: the rank decision of lstsq must not depend on units.
  scale = np.linalg.norm(design, axis=0)
  scale[scale == 0] = 1
  root = np.sqrt(rows.weights)
  solution = np.linalg.lstsq(root[:, None] * design / scale, root * rows.y, rcond=None)[0] / scale
  terms = [Node("*", (variable(i), number(float(c)))) for i, c in zip(columns, solution[:-1], strict=True) if c]
  return [mean, chain("+", [*terms, number(float(solution[-1]))])] if terms else [mean]
