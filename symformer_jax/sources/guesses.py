"""The user's own formulas as a source: their constants are fitted, and they compete with the rest."""

from collections.abc import Sequence
import dataclasses
import difflib
from typing import Any

import jax

from symformer_jax.engine.clock import Clock
from symformer_jax.engine.source import Proposal, Question
from symformer_jax.engine.task import Task
from symformer_jax.errors import ExpressionError, InputError
from symformer_jax.files import shorten
from symformer_jax.language import parser, programs
from symformer_jax.language.expression import SYMBOL, Node, walk
from symformer_jax.refinement import refine

# Names of constants that are so near to a column's are slips.
NEARLY = 0.8


@dataclasses.dataclass(frozen=True)
class Guesses:
  """Attributes:
    texts: formulas in the column names; other names are constants, which are fitted from drawn starts.
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
    return tuple(self._node(text, task) for text in self.texts)

  def _node(self, text: str, task: Task) -> Node:
    shown = shorten(repr(text))
    for expands in (False, True):  # where the rules have no tanh they may have exponentials
      node = _read(text, shown, task, expands=expands)
      if task.rule(node):
        return node
    raise InputError(f"guesses: {shown} breaks the rules for formulas")

  def propose(self, questions: Sequence[Question], *, turn: int, num: int, clock: Clock) -> list[Proposal]:
    return [Proposal(question.state, nodes=question.state) for question in questions]


def _read(text: str, shown: str, task: Task, *, expands: bool) -> Node:
  """The formula with numbers for its constants; `expands`: see `parser.parse`."""
  try:
    node = parser.parse(text, task.names, allow_symbols=True, expands=expands)
  except ExpressionError as error:
    raise InputError(f"guesses: {shown}: {error}") from None
  for name in sorted({part.value for part in walk(node) if part.token == SYMBOL}):
    if close := difflib.get_close_matches(name, task.names, n=1, cutoff=NEARLY):
      raise InputError(f"guesses: {shown}: {name!r} is no column; did you mean {close[0]!r}?")
  if programs.size(node) > programs.MAX_TOKENS:
    raise InputError(f"guesses: {shown} has more than {programs.MAX_TOKENS} tokens")
  rows = task.fit_rows
  return refine.fill_in(node, rows.x, rows.y, rows.weights)
