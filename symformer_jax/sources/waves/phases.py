"""Waves and tangents of any function of one column as a source: `cos(x**2 + 5*x)`, `sin(4*y**1.5 + y**2)`, `tan(x**x)`.

No sum of library columns is near a wave whose length changes along the rows, and a fit of its constants ends in the
nearest of many optima. But a wave tells its argument, but for periods (`phase_unwrapping`); and an argument that is
known is a table of one column, for which formulas are looked for as for any other (`unknown_functions`).
"""

from collections.abc import Iterator, Sequence
import dataclasses
import itertools
import math
from typing import NamedTuple

import numpy as np

from symformer_jax.engine.config import PhasesConfig
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import Task
from symformer_jax.language.expression import Node, chain, number, variable
from symformer_jax.language.rules import Rule
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.in_turn import in_turn
from symformer_jax.sources.links import LINKS
from symformer_jax.sources.stateless import Stateless
from symformer_jax.sources.sums import pair_sums
from symformer_jax.sources.unknowns import unknown_functions
from symformer_jax.sources.unknowns.unknown_functions import Table, Tabulated
from symformer_jax.sources.waves.phase_unwrapping import Choices, Unwrapped, unwrap
from symformer_jax.sources.waves.wave_products import waves_of_products
from symformer_jax.sources.waves.wave_sums import waves_of_sums

# Ranges of an argument that differ by less, as a share, because other rows are at the ends.
SAME = 0.02


class Outer(NamedTuple):
  """What stands around an argument: a power of the column times link(size*token(argument) + away).

  Attributes:
    link: name of the function of y that is the wave.
    token: of the wave, `cos` or `tan`; size, away.
    power: of the column; 0 for none.
  """

  link: str
  token: str
  size: float = 1.0
  away: float = 0.0
  power: float = 0.0

  def choices(self, values: np.ndarray) -> Choices:
    """What the argument may be where the function of y has these values [N]."""
    wave = (values - self.away) / self.size
    if self.token == "tan":
      return Choices(np.arctan(wave), math.pi, has_mirror=False)
    return Choices(np.arccos(np.clip(wave, -1, 1)), 2 * math.pi, has_mirror=True)

  def around(self, argument: Node, column: int) -> Node:
    """The formula for y."""
    wave = chain("+", [Node("*", (number(self.size), Node(self.token, (argument,)))), number(self.away)])
    factor = Node("pow", (variable(column), number(self.power)))  # x**0 is tidied away
    return tidy(Node("*", (LINKS[self.link].undo(wave), factor)))


class Argument(NamedTuple):
  """A function of one column that stands inside a wave.

  Attributes:
    x: values of the column, rising, in the rows [N] where it is known; unwrapped: its own there.
  """

  outer: Outer
  column: int
  x: np.ndarray
  unwrapped: Unwrapped

  def is_like(self, other: "Argument") -> bool:
    """Whether it is the same but for some rows."""
    ranges = self.unwrapped.range, other.unwrapped.range
    return self[:2] == other[:2] and abs(ranges[0] - ranges[1]) < SAME * max(ranges)


@dataclasses.dataclass(frozen=True)
class Phases(Stateless):
  """Waves and tangents of functions of one column: first of such that go through more than half a turn, with those of
  products of powers of several columns.
  """

  options: SearchOptions
  name: str = "phases"

  @property
  def turns(self) -> tuple[int, ...]:
    return self.options.config.phases.turns

  def supports(self, task: Task) -> bool:
    config = self.options.config.phases
    return (super().supports(task) and any(map(task.rule.allows_operator, config.tokens))
            and len(task.fit_rows) >= config.min_rows)

  @np.errstate(all="ignore")  # what is not finite is left out
  def _nodes(self, question: Question, turn: int, num: int) -> Sequence[Node]:
    task, config = question.task, self.options.config
    columns = task.columns if len(task.columns) <= config.phases.max_columns else ()
    found = find_arguments(task.fit_rows, columns, task.rule, config.phases, is_short=turn > 0)
    formulas = unknown_functions.find_forms(
      [self._tabulated(task, argument) for argument in found], self.options, config.phases.forms)
    nodes = [[argument.outer.around(node, argument.column) for _, node in some]
             for argument, some in zip(found, formulas, strict=True)]
    if turn == 0:
      nodes.append(list(waves_of_products(task.fit_rows, task.columns, task.rule, config.phases.products)))
      nodes.append(list(waves_of_sums(task.fit_rows, task.columns, task.rule, config.phases.sums)))
    return pair_sums.allowed(in_turn(nodes), task, num, config.terms)

  def _tabulated(self, task: Task, argument: Argument) -> tuple[Table, Tabulated]:
    x = np.repeat(task.fit_rows.x[:1], len(argument.x), axis=0)
    x[:, argument.column] = argument.x
    known = dataclasses.replace(task, fit_rows=Rows(x, argument.unwrapped.values, np.ones(len(x))))
    table = Table(known, argument.column, self.options.config, self.options.config.phases.forms)
    return table, Tabulated(argument.unwrapped.values[np.searchsorted(argument.x, table.places)], 0.0)


def find_arguments(
  rows: Rows, columns: Sequence[int], rule: Rule, config: PhasesConfig, *, is_short: bool
) -> list[Argument]:
  """The smoothest arguments that y may be a wave of, for the rows in which each is known.

  Args:
    is_short: whether of those that go through no more than half a turn instead of the others: of these any smooth
      function of y is one.
  """
  found = []
  for column, gap in itertools.product(columns, config.least_gaps):
    x, place = _apart(rows.x[:, column], gap)
    if len(x) < config.min_rows:
      continue
    for outer, values in _outers(x, rows.y[place], rule, config, is_short):
      choices = outer.choices(values)
      if not _is_worth_it(choices.principal, config, is_short):
        continue
      for unwrapped in unwrap(x, choices, num_starts=config.num_starts, num_beams=config.num_beams,
                              most_rough=config.ends):
        if (len(unwrapped.values) >= config.min_rows and (unwrapped.range < math.pi) == is_short
            and unwrapped.roughness < config.most_rough * min(1, unwrapped.range / math.pi)):
          found.append(Argument(outer, column, x[unwrapped.rows], unwrapped))
  kept: list[Argument] = []
  for argument in sorted(found, key=lambda each: each.unwrapped.roughness / len(each.x)):
    if not any(map(argument.is_like, kept)):
      kept.append(argument)
  return kept[: config.num_kept]


def _is_worth_it(principal: np.ndarray, config: PhasesConfig, is_short: bool) -> bool:
  """Whether principal values [N] may be those of an argument: what goes through half a turn leaves few of them out;
  within it they are smooth, but where the argument changes its sign.
  """
  if not is_short:
    return bool(np.ptp(principal) > config.least_spread)
  return bool(np.mean(np.diff(principal) ** 2) < 2 * config.most_uneven * np.var(principal))


def _apart(column: np.ndarray, least_gap: float) -> tuple[np.ndarray, np.ndarray]:
  """Values of a column [N], rising, none as near to the one before as a share of the median gap, and their rows: of two
  that are next to each other small errors of y make any slope.
  """
  x, place = np.unique(column, return_index=True)
  least, kept = least_gap * float(np.median(np.diff(x))) if len(x) > 1 else 0.0, [0]
  for row in range(1, len(x)):
    if x[row] - x[kept[-1]] >= least:
      kept.append(row)
  return x[kept], place[kept]


def _outers(
  x: np.ndarray, y: np.ndarray, rule: Rule, config: PhasesConfig, is_short: bool
) -> Iterator[tuple[Outer, np.ndarray]]:
  """What may stand around an argument of y [N] in the order of a column x [N], with the values that are the wave."""
  tokens = [token for token in config.tokens if rule.allows_operator(token)]
  powers = config.powers if np.all(x != 0) and not is_short else ()
  for link, power in [*((link, 0.0) for link in config.links), *(("y", power) for power in powers)]:
    target = y / x**power
    if LINKS[link].is_defined(target) and all(map(rule.allows_operator, LINKS[link].operators)):
      values = LINKS[link].transform(target)
      if np.all(np.isfinite(values)) and np.ptp(values) > 0:
        yield from ((Outer(link, token, size, away, power), values)
                    for token in tokens for size, away in _sizes(values, token, config))


def _sizes(values: np.ndarray, token: str, config: PhasesConfig) -> Iterator[tuple[float, float]]:
  """Sizes of a wave with these values [N], and what is added to it."""
  least, largest = float(values.min()), float(values.max())
  is_plain = token == "tan" or max(-least, largest) <= 1
  if is_plain:
    yield 1.0, 0.0
  if token == "cos" and is_wave(values, config.most_apart):
    size, away = (largest - least) / 2, (largest + least) / 2
    if not (is_plain and size + abs(away) > config.full):
      yield size, away


def is_wave(values: np.ndarray, most_apart: float) -> bool:
  """Whether values [N], in the order of their rows, go to and fro between the same ends: half of the tops, and of the
  bottoms, by less than a share of the range from the highest, and the lowest.
  """
  inner, before, after = values[1:-1], values[:-2], values[2:]
  tops = inner[(inner > before) & (inner >= after)]
  bottoms = inner[(inner < before) & (inner <= after)]
  if min(len(tops), len(bottoms)) < 2:
    return False
  away = max(values.max() - np.median(tops), np.median(bottoms) - values.min())
  return bool(away < most_apart * np.ptp(values))
