"""The user's own formulas as a source: their constants are fitted, and they compete with the rest."""

from collections.abc import Sequence
import dataclasses
from typing import Any

import jax

from symformer_jax.engine.clock import Clock
from symformer_jax.engine.source import Proposal, Question
from symformer_jax.engine.task import Task
from symformer_jax.errors import ExpressionError, InputError
from symformer_jax.language import parser, programs


@dataclasses.dataclass(frozen=True)
class Guesses:
  """Attributes:
    texts: formulas in the column names.
  """

  texts: tuple[str, ...]
  name: str = "guesses"
  turns: tuple[int, ...] = (1,)

  def supports(self, task: Task) -> bool:
    return bool(self.texts)

  def init(self, task: Task, key: jax.Array) -> Any:
    """The formulas as trees.

    Raises:
      InputError: for one that is no formula over the columns, or breaks the rules.
    """
    nodes = []
    for text in self.texts:
      try:
        node = parser.parse(text, task.names, expands=False)
        # Where the rules have no tanh they may have exponentials.
        nodes.append(node if task.rule(node) else parser.parse(text, task.names))
      except ExpressionError as error:
        raise InputError(f"guesses: {text!r}: {error}") from None
      if not task.rule(nodes[-1]):
        raise InputError(f"guesses: {text!r} breaks the rules for formulas")
      if programs.size(nodes[-1]) > programs.MAX_TOKENS:
        raise InputError(f"guesses: {text!r} has more than {programs.MAX_TOKENS} tokens")
    return tuple(nodes)

  def propose(self, questions: Sequence[Question], *, turn: int, num: int, clock: Clock) -> list[Proposal]:
    return [Proposal(question.state, nodes=question.state) for question in questions]
