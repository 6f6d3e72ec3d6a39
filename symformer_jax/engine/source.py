"""The protocol of a source of candidates: what the loop asks, and what it is given."""

from collections.abc import Sequence
import dataclasses
from typing import Any, Protocol

import jax

from symformer_jax.engine.clock import Clock
from symformer_jax.engine.pool import Candidate, Pool
from symformer_jax.engine.task import Task
from symformer_jax.language.expression import Node
from symformer_jax.results import Counts


@dataclasses.dataclass(frozen=True)
class Question:
  """What a source is asked for one data set.

  Attributes:
    task: the data set; pool: what has been found, not to be changed; state: the source's own, as it left it.
    has_errors: whether y is known to have errors (`engine.learning_curves`); the loop looks where they would change the
      order of turns.
  """

  task: Task
  pool: Pool
  state: Any
  has_errors: bool = False


@dataclasses.dataclass(frozen=True)
class Proposal:
  """What a source has made for one data set in a turn.

  Attributes:
    state: for its next turn.
    nodes: formulas in the user's units whose constants the loop is to fit, the likeliest first.
    candidates: formulas that the source has fitted itself, in units of its own, and brought back.
    counts: what was drawn, where it draws.
    is_last: whether it has no more to say of this data set: its further turns are left out.
  """

  state: Any = None
  nodes: tuple[Node, ...] = ()
  candidates: tuple[Candidate, ...] = ()
  counts: Counts = Counts()
  is_last: bool = False


class Source(Protocol):
  """Makes candidates for data sets; frozen. What changes between its turns is its state, one for each data set.

  Attributes:
    name: in progress, results and configs.
    turns: how much is asked of it in each of its turns: samples, or 1 where nothing is drawn. The turns of a search
      follow from this alone, never from the clock, so that a seed fixes the answer. None for one that is only asked
      once the others have had theirs, see `loop.schedule`.
  """

  @property
  def name(self) -> str:
    """See the class."""

  @property
  def turns(self) -> tuple[int, ...]:
    """See the class."""

  def supports(self, task: Task) -> bool:
    """Whether it can make candidates for the data set at all: columns, rules."""

  def init(self, task: Task, key: jax.Array) -> Any:
    """The state before the first turn; the key is all sources', who fold in numbers of their own: not consumed."""

  def propose(self, questions: Sequence[Question], *, turn: int, num: int, clock: Clock) -> list[Proposal]:
    """Candidates for each data set; what comes out for one depends on no other.

    Args:
      questions: one for each data set; turn: number of this turn of the source; num: how much is asked, of `turns`.
      clock: gets the time by part.
    """
