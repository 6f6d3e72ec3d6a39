"""Tables of one column that other sources are asked of, one after the other, within a turn of the source that asks."""

from collections.abc import Callable, Sequence
import dataclasses
import math

import jax
import numpy as np

from symformer_jax import compilation
from symformer_jax.engine import loop
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.loop import Search
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import LARGEST, SMALLEST, Rows
from symformer_jax.engine.source import Source
from symformer_jax.engine.task import ROW_BUCKETS, Task
from symformer_jax.language.rules import Rule


@np.errstate(all="ignore")  # what is not finite is no table
def table_of(places: np.ndarray, values: np.ndarray, weights: np.ndarray, task: Task) -> Task | None:
  """A function as a data set by itself; None where its values are none.

  Args:
    places: [P], values: [P]; weights: [P], not negative, what an error at each place counts.
    task: the user's, whose operators formulas may have.
  """
  if not (0 < weights.mean() < np.inf and np.max(np.abs(values)) < LARGEST):
    return None
  variance = float(np.average((values - np.average(values, weights=weights)) ** 2, weights=weights))
  if not SMALLEST < variance < LARGEST:
    return None
  rows = Rows(places[:, None], values, weights / weights.mean())
  rule = dataclasses.replace(Rule(1), tokens=task.rule.tokens)
  num_rows = compilation.bucket(len(rows), (*ROW_BUCKETS, task.num_rows))
  return Task(rows, rows, ("x0",), rule, (0,), variance, num_rows)


def ask(
  table: Task, sources: Sequence[Source], options: SearchOptions, clock: Clock, *, num: int,
  is_met: Callable[[Search], bool], num_turns: float = math.inf,
) -> Search:
  """The search of a table after the first turns of each source, up to the one with which it is met.

  Args:
    num: formulas at most that are asked for in a turn; num_turns: that each source has at most.
    is_met: whether no further source is to be asked.
  """
  inner = dataclasses.replace(options, accuracy=None, max_time=math.inf)
  supporting = [source for source in sources if source.supports(table)]
  search = Search(table, supporting, inner, jax.random.key(options.seed))
  for turn in loop.first_turns(supporting, options.config.budget, is_of_one=True):
    if turn.number < num_turns and search.takes_part(turn.source) and not is_met(search):
      few = turn._replace(num=min(turn.num, num))
      [(proposal, fitted)] = loop.take_turn(few, [search], inner, clock)
      search.close_turn(turn.source, proposal, fitted, clock.elapsed())
  return search
