"""Sources that remember nothing between their turns."""

import abc
from collections.abc import Sequence
from typing import ClassVar

import jax

from symformer_jax.engine.clock import Clock
from symformer_jax.engine.source import Proposal, Question
from symformer_jax.engine.task import Task
from symformer_jax.language.expression import Node


class Stateless(abc.ABC):
  """A source whose formulas follow from the question, the number of the turn and how much is asked.

  Attributes:
    needs: operators without which none of its formulas can be written.
  """

  needs: ClassVar[tuple[str, ...]] = ("+", "*")

  def supports(self, task: Task) -> bool:
    return all(map(task.rule.allows_operator, self.needs))

  def init(self, task: Task, key: jax.Array) -> None:
    return None

  def propose(self, questions: Sequence[Question], *, turn: int, num: int, clock: Clock) -> list[Proposal]:
    with clock.measure("recombine"):
      return [Proposal(nodes=tuple(self._nodes(question, turn, num))) for question in questions]

  @abc.abstractmethod
  def _nodes(self, question: Question, turn: int, num: int) -> Sequence[Node]:
    """Formulas of one data set, the likeliest first."""
