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

import numpy as np

from symformer_jax.engine import criteria
from symformer_jax.engine.config import DEFAULT, ChoiceConfig, SelectionConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression, identities, printing, programs, rewritings
from symformer_jax.language.expression import Node
from symformer_jax.language.tidy import tidy
from symformer_jax.results import Constant, Equation, Rejected, whole_constants
from symformer_jax.selection import choice, front, listed_guesses, rounding, scoring, soundness, straight
from symformer_jax.selection.idle_parts import without_idle_parts

# Other ways to write a formula, by name.
REWRITINGS: dict[str, Callable[[Node], Node]] = {
  "exponentials": rewritings.to_exponentials, "powers": rewritings.to_powers, "origins": rewritings.to_origins,
  "principal_phases": rewritings.to_principal_phases, "unit_slopes": rewritings.to_unit_slopes,
  "unit_constants": rewritings.to_unit_constants, "unit_factors": rewritings.to_unit_factors,
  "absolutes": rewritings.to_absolutes,
  "single_waves": rewritings.to_single_waves, "vertices": rewritings.to_vertices,
  "proper_fractions": rewritings.to_proper_fractions, "other_waves": identities.to_other_waves,
  "complements": identities.to_complements, "roots": identities.to_roots,
  "factors_of_exponentials": identities.to_factors_of_exponentials,
  "joined_logarithms": identities.to_joined_logarithms, "expanded": identities.to_expanded,
  "distributed": identities.to_distributed, "collected": identities.to_collected,
  "multiple_angles": identities.to_multiple_angles, "half_angles": identities.to_half_angles,
  "steps": identities.to_steps,
  "single_fractions": identities.to_single_fractions, "limits": rewritings.to_limits}


# The fault of a guess that with its fitted constants breaks the user's rules, as with an exponent beyond their limit.
FORBIDDEN = "forbidden"


@dataclasses.dataclass(frozen=True)
class _Finalist:
  node: Node
  scores: scoring.Scores

  @property
  def complexity(self) -> int:
    return expression.complexity(self.node)


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


class _Judge:
  """Scores trees on rows, each distinct formula once; `num_points` is how many points these are worth."""

  def __init__(self, rows: Rows, num_points: float, config: SelectionConfig, choice_config: ChoiceConfig):
    self.rows, self.num_points, self.config, self.choice = rows, num_points, config, choice_config
    self._scores: dict[Node, scoring.Scores] = {}
    self._oddities: dict[Node, int] = {}
    self.variance = scoring.weighted_variance(rows.y, rows.weights)
    self.floor = criteria.error_floor(self.variance)

  @functools.cached_property
  def segments(self) -> soundness.Segments:
    """Among the rows, made once: of a million rows that takes most of a second."""
    return soundness.make_segments(self.rows, config=self.choice)

  def finalists(self, nodes: Sequence[Node]) -> list[_Finalist]:
    finalists = (_Finalist(n, self.score(n)) for n in dict.fromkeys(nodes))
    return [f for f in finalists if np.isfinite(f.scores.mse)]

  def score(self, node: Node) -> scoring.Scores:
    if node not in self._scores:
      self._scores[node] = scoring.score(scoring.evaluate(node, self.rows.x), self.rows.y, self.rows.weights)
    return self._scores[node]

  def cost(self, finalist: _Finalist, *, is_rounded: bool) -> float:
    """Description length in nats."""
    node = finalist.node
    num_digits = rounding.count_digits(node) if is_rounded else None
    num_named = sum(part.token == expression.VARIABLE for part in expression.walk(node))
    fit = criteria.Fit(finalist.scores.mse, self._size(finalist), len(programs.fitted_values(node)), num_digits,
                       names=num_named * math.log(self.rows.num_columns))
    further = self._num_oddities(node) * self.choice.odd_nats + choice.function_nats(node, config=self.choice)
    return further + criteria.mdl(
      fit, num_points=self.num_points, variance=self.variance, nats_per_node=self.config.nats_per_node,
      num_rows=len(self.rows))

  def _num_oddities(self, node: Node) -> int:
    if node not in self._oddities:
      self._oddities[node] = choice.num_oddities(node, self.rows.x, config=self.choice)
    return self._oddities[node]

  def is_exact(self, finalist: _Finalist) -> bool:
    """Whether the data are met so well that description length alone decides."""
    return finalist.scores.mse <= self.choice.exact * self.variance

  def _size(self, finalist: _Finalist) -> int:
    """Complexity; an inverse square is a power, or x**(-2.02) would be the simpler."""
    parts = expression.walk(finalist.node)
    return finalist.complexity - sum(p.token == "inv" and p.args[0].token in ("pow2", "pow3") for p in parts)

  def count_effective(self, nodes: Sequence[Node]) -> float:
    """Points that the rows are worth: fewer where a few large errors decide, as when noise is a share of y.

    The variance of a variance goes with the kurtosis, which is 3 for normal errors; below `normal_kurtosis` it may be
    chance. Errors are those of the simplest formula that is nearly as accurate as any: longer ones fit large errors.
    """
    finalists = self.finalists(nodes)
    least = min((f.scores.mse for f in finalists), default=0.0)
    if least <= self.floor:
      return self.num_points
    simplest = min((f for f in finalists if f.scores.mse <= self.config.nearly * least), key=lambda f: f.complexity)
    squares = self.rows.weights * (scoring.evaluate(simplest.node, self.rows.x) - self.rows.y) ** 2
    kurtosis = float(np.mean(squares**2) / np.mean(squares) ** 2)
    return self.num_points * (3 / kurtosis if kurtosis > self.config.normal_kurtosis else 1)

  def refitted(self, finalist: _Finalist, rows: Rows, is_allowed: Callable[[Node], bool]) -> _Finalist:
    """With constants of these rows, and no more digits than they give; as it came where that is no gain, or no more
    within the rules, as an exponent that gives the formula another dimension.
    """
    data = (rows.x, rows.y, rows.weights)
    refitted = rounding.refit_constants(finalist.node, *data, config=self.config)
    node = rounding.round_constants(refitted, *data, config=self.config)
    scores = self.score(node)
    return _Finalist(node, scores) if scores.mse < finalist.scores.mse and is_allowed(node) else finalist

  def cost_of(self, node: Node) -> float:
    """That of a rounded tree."""
    return self.cost(_Finalist(node, self.score(node)), is_rounded=True)

  def _listable(
    self, finalists: Sequence[_Finalist], costs: Sequence[float]
  ) -> tuple[list[_Finalist], list[float]]:
    """Those that could be listed beside the cheapest even if their constants came to cost nothing."""
    cheapest = min(range(len(costs)), key=lambda i: costs[i], default=0)
    per_constant = 0.5 * math.log(self.num_points)
    kept = [(f, cost) for f, cost in zip(finalists, costs, strict=True)
            if f.complexity <= finalists[cheapest].complexity
            or cost - per_constant * len(programs.fitted_values(f.node)) <= costs[cheapest] + self.config.max_excess]
    return [f for f, _ in kept], [cost for _, cost in kept]

  def front(self, finalists: Sequence[_Finalist], costs: Sequence[float]) -> list[int]:
    return front.pareto_indices(
      [self._size(f) for f in finalists], [f.scores.mse for f in finalists], floor=self.floor, costs=costs,
      min_gain=self.config.min_gain)

  def on_front(self, nodes: Sequence[Node]) -> list[Node]:
    """Rounded trees that no simpler one beats."""
    finalists = self.finalists(nodes)
    return [finalists[i].node for i in self.front(finalists, [self.cost(f, is_rounded=True) for f in finalists])]

  def promising(self, nodes: Sequence[Node]) -> list[Node]:
    """Rounded trees that no simpler one beats, and the shortest descriptions; in a hurry the latter alone."""
    finalists = self.finalists(nodes)
    costs = [self.cost(f, is_rounded=True) for f in finalists]
    shortest = sorted(range(len(finalists)), key=lambda i: costs[i])
    on_front = self.front(finalists, costs) if self.config.rewrites_front else []
    return [finalists[i].node for i in {*on_front, *shortest[: self.config.num_rewritten]}]

  def chosen(self, nodes: Sequence[Node], *, is_rounded: bool) -> list[Node]:
    """The front, and the cheapest by description length."""
    finalists = self.finalists(nodes)
    costs = [self.cost(f, is_rounded=is_rounded) for f in finalists]
    finalists, costs = self._listable(finalists, costs)
    on_front = self.front(finalists, costs if is_rounded else [f.scores.mse for f in finalists])
    cheapest = sorted(range(len(finalists)), key=lambda i: costs[i])[: self.config.num_chosen]
    return [finalists[i].node for i in dict.fromkeys([*on_front, *cheapest])]


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
  read = set().union(*map(soundness.columns_of, nodes))
  others = itertools.islice((column for column in columns if column not in read), max(2 - len(read), 0))
  return sorted({*read, *others})


def _select(
  nodes: Sequence[Node], rows: Rows, names: Sequence[str], *, seed: int, yardsticks: Sequence[Node],
  is_allowed: Callable[[Node], bool], may_fit: bool, num_fit_rows: int, config: SelectionConfig,
  choice_config: ChoiceConfig, guesses: Sequence[Node],
) -> Selection:
  """`select` of a table of which every column is read."""
  some, most = rows.sample(config.max_rows, seed=seed), rows.sample(config.last_rows, seed=seed)
  judge = _Judge(some, len(some), config, choice_config)
  check = _SoundnessCheck(judge, may_fit=may_fit)
  data = (some.x, some.y, some.weights)
  if may_fit:
    nodes = [soundness.to_slow_waves(node, some.x, config=choice_config) for node in nodes]
  nodes = check.sound(nodes, lambda some: judge.chosen([*yardsticks, *some], is_rounded=False))
  if may_fit and len(some) > num_fit_rows:
    nodes = [rounding.refit_constants(node, *data, config=config) for node in nodes]
  judge = _Judge(some, judge.count_effective(nodes), config, choice_config)
  rounded = _rounded(nodes, judge, is_allowed) if may_fit else nodes
  if len(some) < len(rows):
    choose = functools.partial(judge.chosen, is_rounded=True)
    rounded = check.sound(rounded, choose) if may_fit else choose(rounded)
    judge = _Judge(rows, judge.num_points * len(rows) / len(some), config, choice_config)
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
  own: Sequence[int], shown: set[int], judged: Sequence[_Finalist], judge: _Judge, *, may_fit: bool
) -> tuple[set[int], dict[int, int]]:
  """See `listed_guesses.with_guesses`."""
  some = judge.rows.sample(judge.config.max_rows, seed=0)

  def is_same(i: int, j: int) -> bool:
    return listed_guesses.are_one(
      (judged[i].node, judged[j].node), some, mse=min(judged[i].scores.mse, judged[j].scores.mse),
      num_rows=len(judge.rows), floor=judge.floor, may_fit=may_fit, config=judge.config)

  return listed_guesses.with_guesses(own, shown, [each.complexity for each in judged], is_same)


def _in_few_digits(node: Node, judge: _Judge, rows: Rows, is_allowed: Callable[[Node], bool]) -> Node:
  """See `listed_guesses.in_few_digits`."""
  return listed_guesses.in_few_digits(
    node, rows, _plain, lambda form: is_allowed(form) and math.isfinite(judge.score(form).mse), config=judge.config)


def _tell_own(
  node: Node, fault: str, place: int | None, lines: Mapping[int, int], judged: Sequence[_Finalist]
) -> Own:
  """What became of a guess: `place` is that among those judged, `lines` the numbers of those that are listed."""
  if fault or place is None or place in lines:
    return Own(node, None if fault or place is None else lines[place], fault)
  better = [line for i, line in lines.items()
            if judged[i].complexity <= judged[place].complexity and judged[i].scores.mse <= judged[place].scores.mse]
  return Own(node, None, fault, better[-1] if better else None)


def _recommended(
  judged: Sequence[_Finalist], costs: Sequence[float], on_front: Sequence[int], yardsticks: Sequence[int],
  judge: _Judge, *, seed: int, may_fit: bool,
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

  def __init__(self, judge: _Judge, *, may_fit: bool):
    self._judge, self._may_fit = judge, may_fit
    self._segments = judge.segments
    self._faults: dict[Node, str] = {}

  def rejected(self, best: _Finalist, names: Sequence[str]) -> tuple[Rejected, ...]:
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
    if not fault or self._judge.is_exact(_Finalist(node, self._judge.score(node))):
      return True
    is_pole = fault in (soundness.POLE, soundness.LEAP)
    is_sound = is_pole and self._may_fit and soundness.is_supported(
      node, self._judge.rows, self._segments, config=self._judge.choice)
    if not is_sound:
      self._faults[node] = fault
    return is_sound


def _rounded(nodes: Sequence[Node], judge: _Judge, is_allowed: Callable[[Node], bool]) -> list[Node]:
  """The trees and their variants with fewer and simpler constants, all with the fewest digits."""
  config = judge.config
  data = (judge.rows.x, judge.rows.y, judge.rows.weights)

  def tidied(node: Node) -> Node:
    """Unless a rule forbids what tidying makes of it: exp(u)*exp(v) becomes a sum."""
    return form if is_allowed(form := _plain(node)) else node

  nodes = [tidied(lean if is_allowed(lean := without_idle_parts(node, judge.rows.x)) else node) for node in nodes]
  leaner = [tidied(rounding.refit_constants(lean, *data, config=config)) for lean in _leaner(nodes, judge)
            if is_allowed(lean)]
  leaner += [line for node in nodes for line in _straight(node, judge, is_allowed)]
  reduced = [tidied(rounding.remove_redundant(node, *data, config=config)) for node in [*nodes, *leaner]]
  snapped = [_snapped(node, num_errors, judge, tidied) for node in reduced for num_errors in config.snap_errors]
  # A bare number left of a formula is worse than the constant fit, which is there already.
  simpler = [node for node in dict.fromkeys([*reduced, *snapped]) if not node.is_number and is_allowed(node)]
  rounded: dict[Node, Node] = {}
  for node in dict.fromkeys([*nodes, *simpler]):
    form = tidied(rounding.round_constants(node, *data, config=config))
    rounded.setdefault(form if is_allowed(form) else node, node)
  # Other ways to write a formula take most of the time: they are for those that may be listed.
  promising = set(judge.promising(list(rounded)))
  return [_shortest(node, judge, is_allowed) if form in promising else form for form, node in rounded.items()]


@np.errstate(all="ignore")  # what is not finite is left out
def _leaner(nodes: Sequence[Node], judge: _Judge) -> list[Node]:
  """The trees without what is next to nothing, where their values hardly change."""
  config, x = judge.config, judge.rows.x
  found: dict[Node, None] = {}
  for share, node in itertools.product(config.idle, nodes):
    lean = without_idle_parts(node, x, share=share)
    if lean != node and not lean.is_number:
      values = expression.evaluate(node, x)
      change = expression.evaluate(lean, x) - values
      if np.mean(change**2) <= config.idle_change**2 * np.var(values):
        found[lean] = None
  return list(found)


def _snapped(node: Node, num_errors: float, judge: _Judge, tidied: Callable[[Node], Node]) -> Node:
  """A tree with simple values, tidied; where it was undefined before that, its constants fitted again: one that nothing
  depends on any more stood in their way, as the 8 in `0*log(8 - x)`.
  """
  data = (judge.rows.x, judge.rows.y, judge.rows.weights)
  found = rounding.snap_constants(node, *data, num_errors=num_errors, config=judge.config)
  if math.isfinite(judge.score(found).mse):
    return tidied(found)
  return rounding.refit_constants(tidied(found), *data, config=judge.config)


def _straight(node: Node, judge: _Judge, is_allowed: Callable[[Node], bool]) -> list[Node]:
  """The tree with a line in the place of a function, where that describes the rows as well."""
  whole = _Finalist(node, judge.score(node))
  if judge.is_exact(whole):
    return []
  data, lines = (judge.rows.x, judge.rows.y, judge.rows.weights), []
  for line in straight.straightened(node, judge.rows.x, judge.rows.weights, share=judge.config.straight):
    fitted = rounding.refit_constants(tidy(line), *data, config=judge.config)
    fitted = tidy(rounding.remove_redundant(fitted, *data, config=judge.config))
    if is_allowed(fitted):
      lines.append(_Finalist(fitted, judge.score(fitted)))
  most = judge.cost(whole, is_rounded=False)
  return [each.node for each in lines if judge.cost(each, is_rounded=False) < most]


def _plain(node: Node) -> Node:
  """Without forms in which nobody would leave a formula: `(0.9*exp(-0.4*x)*x)**3` is `0.729*exp(-1.2*x)*x**3`, `x*y*x`
  is `x**2*y`, `cos(-0.3*x)` is `cos(0.3*x)`, `log(exp(x)*y)` is `x + log(y)`.
  """
  for rewrite in (rewritings.to_powers_of_factors, rewritings.to_powers_of_equals, rewritings.to_positive_arguments,
                  rewritings.to_opened_logarithms):
    node = rewrite(tidy(node))
  return tidy(node)


def _shortest(node: Node, judge: _Judge, is_allowed: Callable[[Node], bool]) -> Node:
  """The tree with the fewest digits, or rewritten where that is the shorter description, at most `max_rewritten` ways
  one after the other.
  """
  written, least = node, math.inf
  for rewritten in range(judge.config.max_rewritten):
    forms = [(judge.cost_of(form), found, form) for found, form in _forms(node, judge, is_allowed)]
    cost, found, form = min(forms, key=lambda each: each[0], default=(math.inf, node, node))
    if rewritten and cost >= least:
      break
    node, is_done, written, least = found, found == node, form, cost
    if is_done:
      break
  return written


def _forms(node: Node, judge: _Judge, is_allowed: Callable[[Node], bool]) -> list[tuple[Node, Node]]:
  """Ways to write a tree, and each with the fewest digits.

  The rules are asked of what comes out: digits and simple values change operators, and may make a column vanish.
  """
  config = judge.config
  data = (judge.rows.x, judge.rows.y, judge.rows.weights)
  rounded = rounding.round_constants(node, *data, config=config)
  variants = [(node, rounded)]
  # Parts whose constants are the same once rounded can be joined only then.
  rewrites = [rewrite for name, rewrite in REWRITINGS.items() if name in config.rewritings]
  pairs = [(rewrite(base), base) for rewrite in rewrites for base in (node, tidy(rounded))]
  for rewritten in dict.fromkeys(tidy(rewritten) for rewritten, base in pairs if rewritten != base):
    refitted = rounding.refit_constants(rewritten, *data, config=config)
    snapped = rounding.snap_constants(refitted, *data, config=config)
    variants.append((snapped, rounding.round_constants(snapped, *data, config=config)))
  # A rule may forbid what tidying makes of a variant, and not the variant.
  forms = [(found, form if is_allowed(form := _plain(variant)) else variant) for found, variant in variants]
  return [(found, form) for found, form in forms if is_allowed(form) and (node.is_number or not form.is_number)]


def _equation(finalist: _Finalist, some: Rows, most: Rows, names: Sequence[str]) -> Equation:
  values = programs.fitted_values(finalist.node)
  errors = rounding.parameter_errors(finalist.node, most.x, most.y, most.weights)
  exact = rounding.exact_forms(finalist.node, some.x, some.y, some.weights)
  constants = tuple(Constant(*each) for each in zip(values, errors.fitted, exact, strict=True))
  scores = finalist.scores
  return Equation(finalist.node, tuple(names), scores.mse, scores.r2, scores.relative_error, constants,
                  whole=whole_constants(finalist.node, errors.whole))
