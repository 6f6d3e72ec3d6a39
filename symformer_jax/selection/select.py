"""From promising formulas to the answer: float64 constants in the user's units, round numbers, front, best.

Finalists come from the search in scaled units with float32 constants. Here they are fitted again, offered in a
variant with simple constants, judged on all rows, and reduced to the front that the user sees.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import functools
import itertools
import math
from typing import NamedTuple

from symformer_jax.engine.config import DEFAULT, ChoiceConfig, SelectionConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression, printing, programs
from symformer_jax.language.expression import Node
from symformer_jax.results import Constant, Equation, Rejected, whole_constants
from symformer_jax.selection import choice, frequencies, front, listed_guesses, rounding, soundness, writing
from symformer_jax.selection.judge import Finalist, Judge

# The fault of a guess that with its fitted constants breaks the user's rules, as with an exponent beyond their limit.
FORBIDDEN = "forbidden"


class Own(NamedTuple):
  """A guess as it was judged.

  Attributes:
    node: in few digits.
    line: its place in the front; None where it is not listed.
    fault: one of `soundness.REASONS` or `FORBIDDEN`, for which it is not; or nothing.
    better: the line that is no longer and no less accurate, for which a guess without a fault is not listed; None where
      that is no line.
  """

  node: Node
  line: int | None
  fault: str
  better: int | None = None


class Selection(NamedTuple):
  """The answer: the recommended formula, a member of the front; the front; what was left out for a fault; guesses."""

  best: Equation
  front: tuple[Equation, ...]
  rejected: tuple[Rejected, ...]
  own: tuple[Own, ...] = ()


def select(
  nodes: Sequence[Node], rows: Rows, names: Sequence[str], *, seed: int,
  yardsticks: Sequence[Node] = (), is_allowed: Callable[[Node], bool] = lambda node: True, may_fit: bool = True,
  num_fit_rows: int = DEFAULT.pool.fit_rows, config: SelectionConfig = DEFAULT.selection,
  choice_config: ChoiceConfig = DEFAULT.choice, guesses: Sequence[Node] = (),
) -> Selection:
  """Chooses the front and the recommended formula.

  Args:
    nodes: fitted trees in the user's units; there is at least one, or a yardstick.
    rows: all rows: formulas are scored on them, compared on at most `max_rows` of them, and what is listed gets its
      last digits from at most `last_rows`.
    names: of the columns.
    seed: chooses those rows.
    yardsticks: trees that are listed with the front even where it beats them: what any formula is measured against.
    is_allowed: trees the user's rules admit, asked again because simpler constants change operators.
    may_fit: whether constants may be changed; otherwise the trees compete as they are.
    num_fit_rows: rows they were fitted to; with more than these, constants are fitted again.
    config: what a formula may cost, and how round its constants are to be; choice_config: which may be listed, and
      which is recommended where none is exact.
    guesses: trees that a user asks about, fitted where constants may be: those without a fault are listed,
      whatever they cost, where no listed line is simpler and more accurate.
  Returns:
    The front from simple to accurate, on which errors fall from line to line but for yardsticks; the best is of it, or
    a yardstick.
  """
  read = _columns([*nodes, *yardsticks, *guesses], rows, config)
  narrow, wide = {column: i for i, column in enumerate(read)}, dict(enumerate(read))

  def narrowed(some: Sequence[Node]) -> list[Node]:
    return [expression.with_columns(node, narrow) for node in some]

  def widened(equation: Equation) -> Equation:
    return dataclasses.replace(equation, node=expression.with_columns(equation.node, wide), names=tuple(names))
  chosen = _select(
    narrowed(nodes), rows.of_columns(read), [names[i] for i in read], seed=seed, yardsticks=narrowed(yardsticks),
    is_allowed=lambda node: is_allowed(expression.with_columns(node, wide)), may_fit=may_fit,
    num_fit_rows=num_fit_rows, config=config, choice_config=choice_config, guesses=narrowed(guesses))
  front_of_all = tuple(map(widened, chosen.front))
  own = tuple(each._replace(node=expression.with_columns(each.node, wide)) for each in chosen.own)
  return Selection(front_of_all[chosen.front.index(chosen.best)], front_of_all, chosen.rejected, own)


def _columns(nodes: Sequence[Node], rows: Rows, config: SelectionConfig) -> list[int]:
  """Those that formulas are chosen by: all, or of a wide table those that formulas read, and two at the least."""
  columns = range(rows.x.shape[1])
  if len(columns) <= config.max_columns:
    return list(columns)
  read = set().union(*map(expression.columns_of, nodes))
  others = itertools.islice((column for column in columns if column not in read), max(2 - len(read), 0))
  return sorted({*read, *others})


def _select(
  nodes: Sequence[Node], rows: Rows, names: Sequence[str], *, seed: int, yardsticks: Sequence[Node],
  is_allowed: Callable[[Node], bool], may_fit: bool, num_fit_rows: int, config: SelectionConfig,
  choice_config: ChoiceConfig, guesses: Sequence[Node],
) -> Selection:
  """`select` of a table of which every column is read."""
  some, most = rows.sample(config.max_rows, seed=seed), rows.sample(config.last_rows, seed=seed)
  judge = Judge(some, len(some), config, choice_config)
  check = _SoundnessCheck(judge, may_fit=may_fit)
  data = (some.x, some.y, some.weights)
  if may_fit:
    nodes = [frequencies.to_slow_waves(node, some.x, config=choice_config) for node in nodes]
  nodes = check.sound(nodes, lambda some: judge.chosen([*yardsticks, *some], is_rounded=False))
  if may_fit and len(some) > num_fit_rows:
    nodes = [rounding.refit_constants(node, *data, config=config) for node in nodes]
  judge = Judge(some, judge.count_effective(nodes), config, choice_config)
  rounded = writing.rounded(nodes, judge, is_allowed) if may_fit else nodes
  if len(some) < len(rows):
    choose = functools.partial(judge.chosen, is_rounded=True)
    rounded = check.sound(rounded, choose) if may_fit else choose(rounded)
    judge = Judge(rows, judge.num_points * len(rows) / len(some), config, choice_config)
  all_data = (most.x, most.y, most.weights)
  listed = [rounding.round_constants(node, *all_data, config=config) for node in yardsticks] if may_fit else yardsticks
  if may_fit and len(some) == len(rows):
    # Beside the yardsticks: what they beat is on no front, and may hide what they do not.
    rounded = check.sound(rounded, lambda some: judge.on_front([*some, *listed]))
  own = [_in_few_digits(node, judge, most, is_allowed) if may_fit else node for node in guesses]
  faults = [check.fault_of(node) if is_allowed(node) else FORBIDDEN for node in own]
  asked = [node for node, fault in zip(own, faults, strict=True) if not fault]
  judged = judge.finalists([*rounded, *listed, *asked])
  costs = [judge.cost(finalist, is_rounded=True) for finalist in judged]
  on_front = judge.front(judged, costs)
  yards = [i for i, finalist in enumerate(judged) if finalist.node in listed]
  best = _recommended(judged, costs, on_front, yards, judge, seed=seed, may_fit=may_fit)
  # Nobody needs a formula that describes the data worse than a yardstick does.
  listable = max(costs[best], min((costs[i] for i in yards), default=math.inf))
  least = min(costs[i] for i in on_front)
  on_front = [i for i in on_front if i == best or costs[i] <= listable and (
    judged[i].complexity <= judged[best].complexity or costs[i] <= least + config.max_excess)]
  places = {finalist.node: i for i, finalist in enumerate(judged)}
  shown, found = _with_own([places[node] for node in asked if node in places], {*on_front, *yards}, judged, judge,
                           may_fit=may_fit)
  if may_fit and len(some) < len(rows):
    judged = [judge.refitted(finalist, most, is_allowed) if i in shown else finalist
              for i, finalist in enumerate(judged)]
  among = sorted(shown)
  falling = front.falling([judged[i].complexity for i in among], [judged[i].scores.mse for i in among],
                          kept={among.index(i) for i in (best, *yards)})
  in_order = [among[i] for i in falling]
  equations = {i: _equation(judged[i], some, most, names) for i in in_order}
  lines = {i: line for line, i in enumerate(in_order)}
  told = tuple(_tell_own(node, fault, found.get(places.get(node, -1)), lines, judged)
               for node, fault in zip(own, faults, strict=True))
  return Selection(equations[best], tuple(equations.values()), check.rejected(judged[best], names), told)


def _with_own(
  own: Sequence[int], shown: set[int], judged: Sequence[Finalist], judge: Judge, *, may_fit: bool
) -> tuple[set[int], dict[int, int]]:
  """See `listed_guesses.with_guesses`."""
  some = judge.rows.sample(judge.config.max_rows, seed=0)

  def is_same(i: int, j: int) -> bool:
    return listed_guesses.are_one(
      (judged[i].node, judged[j].node), some, mse=min(judged[i].scores.mse, judged[j].scores.mse),
      num_rows=len(judge.rows), floor=judge.floor, may_fit=may_fit, config=judge.config)

  return listed_guesses.with_guesses(own, shown, [each.complexity for each in judged], is_same)


def _in_few_digits(node: Node, judge: Judge, rows: Rows, is_allowed: Callable[[Node], bool]) -> Node:
  """See `listed_guesses.in_few_digits`."""
  return listed_guesses.in_few_digits(
    node, rows, writing.plain, lambda form: is_allowed(form) and math.isfinite(judge.score(form).mse),
    config=judge.config)


def _tell_own(
  node: Node, fault: str, place: int | None, lines: Mapping[int, int], judged: Sequence[Finalist]
) -> Own:
  """What became of a guess: `place` is that among those judged, `lines` the numbers of those that are listed."""
  if fault or place is None or place in lines:
    return Own(node, None if fault or place is None else lines[place], fault)
  better = [line for i, line in lines.items()
            if judged[i].complexity <= judged[place].complexity and judged[i].scores.mse <= judged[place].scores.mse]
  return Own(node, None, fault, better[-1] if better else None)


def _recommended(
  judged: Sequence[Finalist], costs: Sequence[float], on_front: Sequence[int], yardsticks: Sequence[int],
  judge: Judge, *, seed: int, may_fit: bool,
) -> int:
  """The finalist to recommend: by description length where one is exact or nothing may be fitted, else see `choice`."""
  among = sorted({*on_front, *yardsticks})
  cheapest = min(on_front, key=lambda i: costs[i])
  if not may_fit or judge.is_exact(judged[cheapest]):
    return cheapest
  lines = [choice.Line(judged[i].node, judged[i].complexity, judged[i].scores.mse) for i in among]
  return among[choice.choose(lines, judge.rows, num_points=judge.num_points, seed=seed, config=judge.choice,
                             segments=judge.segments)]


class _SoundnessCheck:
  """Which formulas may be listed, by what they do between the rows (`soundness`)."""

  def __init__(self, judge: Judge, *, may_fit: bool):
    self._judge, self._may_fit = judge, may_fit
    self._segments = judge.segments
    self._faults: dict[Node, str] = {}

  def rejected(self, best: Finalist, names: Sequence[str]) -> tuple[Rejected, ...]:
    """Of what was looked at, for each fault the simplest formula that describes the rows better than the best does."""
    found: dict[str, Rejected] = {}
    most = self._judge.cost(best, is_rounded=False)
    for each in sorted(self._judge.finalists(list(self._faults)), key=lambda f: (f.complexity, f.scores.mse)):
      reason = soundness.REASONS[self._faults[each.node]]
      if self._judge.cost(each, is_rounded=False) < most:
        found.setdefault(reason, Rejected(printing.to_text(each.node, names), each.complexity, each.scores.r2, reason))
    return tuple(found.values())

  def sound(self, nodes: Sequence[Node], choose: Callable[[Sequence[Node]], list[Node]]) -> list[Node]:
    """What is chosen of the sound ones; only what would be chosen is looked at, for looking takes long."""
    known: set[Node] = set()
    while True:
      chosen = choose(nodes)
      faulty = {node for node in chosen if node not in known and node in nodes and not self._is_sound(node)}
      if not faulty:
        return chosen
      known.update(chosen)
      nodes = [node for node in nodes if node not in faulty]

  def fault_of(self, node: Node) -> str:
    """Why a tree may not be listed, one of `soundness.REASONS`; empty where it may, or is undefined on a row."""
    if not math.isfinite(self._judge.score(node).mse) or self._is_sound(node):
      return ""
    return self._faults[node]

  def _is_sound(self, node: Node) -> bool:
    fault = soundness.find_fault(node, self._segments, config=self._judge.choice)
    if not fault or self._judge.is_exact(Finalist(node, self._judge.score(node))):
      return True
    is_pole = fault in (soundness.POLE, soundness.LEAP)
    is_sound = is_pole and self._may_fit and soundness.is_supported(
      node, self._judge.rows, self._segments, config=self._judge.choice)
    if not is_sound:
      self._faults[node] = fault
    return is_sound


def _equation(finalist: Finalist, some: Rows, most: Rows, names: Sequence[str]) -> Equation:
  values = programs.fitted_values(finalist.node)
  errors = rounding.parameter_errors(finalist.node, most.x, most.y, most.weights)
  exact = rounding.exact_forms(finalist.node, some.x, some.y, some.weights)
  constants = tuple(Constant(*each) for each in zip(values, errors.fitted, exact, strict=True))
  scores = finalist.scores
  return Equation(finalist.node, tuple(names), scores.mse, scores.r2, scores.relative_error, constants,
                  whole=whole_constants(finalist.node, errors.whole))
