"""The user's own formulas as a source: their constants are fitted, and they compete with the rest."""

from collections.abc import Sequence
import dataclasses
import difflib
import math
from typing import Any

import jax

from symformer_jax.engine import interruption, refine as engine_refine
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, GuessesConfig
from symformer_jax.engine.options import Recalled
from symformer_jax.engine.source import Proposal, Question
from symformer_jax.engine.task import Task
from symformer_jax.errors import ExpressionError, InputError
from symformer_jax.files import shorten
from symformer_jax.language import parser, programs, strangers
from symformer_jax.language.expression import SYMBOL, Node, walk
from symformer_jax.refinement import refine

# Names of constants that are so near to a column's are slips.
NEARLY = 0.8


@dataclasses.dataclass(frozen=True)
class Guesses:
  """Attributes:
    texts: formulas in the column names; other names are constants, which are fitted from drawn starts.
    config: how these are fitted.
  """

  texts: tuple[str, ...]
  config: GuessesConfig = DEFAULT.guesses
  name: str = "guesses"
  turns: tuple[int, ...] = (1,)

  def supports(self, task: Task) -> bool:
    return bool(self.texts)

  def init(self, task: Task, key: jax.Array) -> Any:
    """The formulas as trees; None for one whose constants the search had no time to look for.

    Raises:
      InputError: for one that is no formula over the columns, or breaks the rules.
    """
    return tuple(self._node(text, task) for text in self.texts)

  def _node(self, text: str, task: Task) -> Node | None:
    shown = shorten(repr(text))
    for expands in (False, True):  # where the rules have no tanh they may have exponentials
      read = _read(text, shown, task, expands=expands)
      try:
        node = _fill_in(read, task, self.config)
      except interruption.Interrupted:
        return None
      if task.rule(node):
        return node
    raise InputError(f"guesses: {shown} breaks the rules for formulas")

  def propose(self, questions: Sequence[Question], *, turn: int, num: int, clock: Clock) -> list[Proposal]:
    return [Proposal(question.state, nodes=tuple(node for node in question.state if node is not None))
            for question in questions]


def free_constants(text: str, names: Sequence[str]) -> list[str]:
  """Names of the constants of a guess over columns of these names, in their order; of one that can be read."""
  node = parser.parse(text, names, allow_symbols=True)
  return list(dict.fromkeys(part.value for part in walk(node) if part.token == SYMBOL))


def _read(text: str, shown: str, task: Task, *, expands: bool) -> Node:
  """The formula, with names for its constants; `expands`: see `parser.parse`."""
  try:
    node = parser.parse(text, task.names, allow_symbols=True, expands=expands)
  except ExpressionError as error:
    raise InputError(f"guesses: {shown}: {error}") from None
  for name in sorted({part.value for part in walk(node) if part.token == SYMBOL}):
    if close := difflib.get_close_matches(name, task.names, n=1, cutoff=NEARLY):
      raise InputError(f"guesses: {shown}: {name!r} is no column; did you mean {close[0]!r}?")
  # Among the lines of an earlier fit is the mean.
  strangers.refuse_columnless("guesses", text, node, task.names, may_be_number=isinstance(text, Recalled))
  if programs.size(node) > programs.MAX_TOKENS:
    raise InputError(f"guesses: {shown} has more than {programs.MAX_TOKENS} tokens")
  return node


def _fill_in(node: Node, task: Task, config: GuessesConfig) -> Node:
  """The formula with the best numbers for its names, of many starts: few steps for all, more for the nearest.

  By what the search compiles anyway, which knows numbers alone: a name that stands twice would become two of them, and
  takes a fit of its own.
  Raises:
    interruption.Interrupted: where the search ends before there is a fit.
  """
  names, rows = [part.value for part in walk(node) if part.token == SYMBOL], task.fit_rows
  if not names:
    return node
  interruption.check()
  if len(names) > len(set(names)):
    return refine.fill_in(node, rows.x, rows.y, rows.weights)
  found = [(start, math.inf) for start in refine.draw_fillings(node, num=config.stages[0][0])]
  for num, max_steps in config.stages:
    nearest = sorted(found, key=lambda each: each[1])[:num]
    try:
      [found] = engine_refine.fit_constants([(task, [start for start, _ in nearest])], method="lm", max_steps=max_steps)
    except interruption.Interrupted:
      if nearest[0][1] == math.inf:  # no stage has been
        raise
      break
  return min(found, key=lambda each: each[1])[0]
