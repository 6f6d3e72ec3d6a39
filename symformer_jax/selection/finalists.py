"""From promising formulas to the answer: float64 constants in the user's units, round numbers, front, best.

Finalists come from the search in scaled units with float32 constants. Here they are fitted again, offered in a
variant with simple constants, judged on all rows, and reduced to the front that the user sees.
"""

from collections.abc import Callable, Sequence
import dataclasses
import math

import numpy as np

from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, number, variable
from symformer_jax.refinement import solve
from symformer_jax.results import Constant, Equation
from symformer_jax.selection import atoms, choice, criteria, front, programs, rounding, scoring, soundness
from symformer_jax.selection.config import DEFAULT, SelectionConfig
from symformer_jax.selection.rows import Rows
from symformer_jax.selection.tidy import (
  tidy,
  to_exponentials,
  to_powers,
  to_principal_phases,
  to_single_waves,
  to_vertices,
)

# Rows on which candidates are fitted, and those on which finalists are compared; all rows score.
FIT_ROWS, MAX_ROWS = 256, 4096
# Rows that give what is listed its last digits and its standard errors: all of a million, about a second a formula.
LAST_ROWS = 1_000_000
# One compiled shape: finalists are few, and padding is cheap (a program `0` takes one step).
NUM_PROGRAMS = 128
MAX_TOKENS = 64
# A longer formula must fit better by this share: less is within what rounding constants costs.
MIN_GAIN = 0.01
# Nats by which a formula more complex than the recommended one may describe the data worse: at odds of three million to
# one it fits the noise.
MAX_EXCESS = 15.0
# Of the errors, above which they are not normal; mean squared errors that are nearly the least, as a multiple of it.
NORMAL_KURTOSIS, NEARLY = 5.0, 1.5
# Other ways to write a formula, each tried.
REWRITINGS = (to_exponentials, to_powers, to_principal_phases, to_single_waves, to_vertices)
# Formulas that get a variant with simple constants, and that are judged on all rows.
NUM_CHOSEN = 24
# More steps than in the search: few formulas, and now every digit counts.
POLISH_STEPS = 150
MAX_CONSTANTS = 16


def closed_form_fits(rows: Rows) -> list[Node]:
  """The weighted mean and the weighted linear fit, which a generator without linear functions would not propose."""
  mean = number(float(np.average(rows.y, weights=rows.weights)))
  design = np.column_stack([rows.x, np.ones(len(rows))])
  # Columns of unit length: the rank decision of lstsq must not depend on units.
  scale = np.linalg.norm(design, axis=0)
  scale[scale == 0] = 1
  root = np.sqrt(rows.weights)
  solution = np.linalg.lstsq(root[:, None] * design / scale, root * rows.y, rcond=None)[0] / scale
  terms = [Node("*", (variable(i), number(float(c)))) for i, c in enumerate(solution[:-1]) if c]
  return [mean, chain("+", [*terms, number(float(solution[-1]))])] if terms else [mean]


def polish(nodes: Sequence[Node], rows: Rows, *, num_rows: int, num_variables: int, method: str,
           max_steps: int = POLISH_STEPS) -> list[Node]:
  """Fits the constants of at most `NUM_PROGRAMS` trees in float64, in the user's units.

  Args:
    nodes: trees; rows: at most `num_rows` of them, padded to that many (one compiled shape for each).
    num_variables: columns are padded to so many.
    method, max_steps: as in `solve.fit_candidates`.
  Returns:
    The trees with fitted constants; one whose fit is worse or undefined is returned as it came.
  """
  vocab = programs.base_vocabulary(num_variables)
  ids, values = programs.encode_programs(nodes, vocab, num_programs=NUM_PROGRAMS, length=MAX_TOKENS)
  padded = rows.padded(num_rows)
  x = np.pad(padded.x, ((0, 0), (0, num_variables - padded.x.shape[1])))
  fitted, fit = solve.polish(
    ids, values, x, padded.y, padded.weights, vocab=vocab, method=method, max_steps=max_steps,
    max_constants=MAX_CONSTANTS)
  is_constant = np.asarray(vocab.is_constant)[ids]
  return [rounding.replace_values(node, fitted[k][is_constant[k]].tolist()) if np.isfinite(fit.loss[k]) else node
          for k, node in enumerate(nodes)]


@dataclasses.dataclass(frozen=True)
class _Finalist:
  node: Node
  scores: scoring.Scores

  @property
  def complexity(self) -> int:
    return expression.complexity(self.node)


class _Judge:
  """Scores trees on rows, each distinct formula once; `num_points` is how many points these are worth."""

  def __init__(self, rows: Rows, num_points: float, config: SelectionConfig):
    self.rows, self.num_points, self.config = rows, num_points, config
    self.variance = scoring.weighted_variance(rows.y, rows.weights)
    self.floor = criteria.error_floor(self.variance)

  def finalists(self, nodes: Sequence[Node]) -> list[_Finalist]:
    finalists = (_Finalist(n, self.score(n)) for n in dict.fromkeys(nodes))
    return [f for f in finalists if np.isfinite(f.scores.mse)]

  def score(self, node: Node) -> scoring.Scores:
    return scoring.score(scoring.evaluate(node, self.rows.x), self.rows.y, self.rows.weights)

  def cost(self, finalist: _Finalist, *, is_rounded: bool) -> float:
    """Description length in nats."""
    node = finalist.node
    num_digits = rounding.count_digits(node) if is_rounded else None
    num_named = sum(part.token == expression.VARIABLE for part in expression.walk(node))
    fit = criteria.Fit(finalist.scores.mse, self._size(finalist), len(rounding.fitted_values(node)), num_digits,
                       names=num_named * math.log(self.rows.x.shape[1]))
    return (criteria.mdl(fit, num_points=self.num_points, variance=self.variance)
            + self.config.odd_nats * choice.num_oddities(node))

  def is_exact(self, finalist: _Finalist) -> bool:
    return finalist.scores.mse <= self.config.exact * self.variance

  def _size(self, finalist: _Finalist) -> int:
    """Complexity; with many variables an inverse square is a power, or x**(-2.02) would be the simpler."""
    if self.rows.x.shape[1] < atoms.MANY_VARIABLES:
      return finalist.complexity
    parts = expression.walk(finalist.node)
    return finalist.complexity - sum(p.token == "inv" and p.args[0].token in ("pow2", "pow3") for p in parts)

  def count_effective(self, nodes: Sequence[Node]) -> float:
    """Points that the rows are worth: fewer where a few large errors decide, as when noise is a share of y.

    The variance of a variance goes with the kurtosis, which is 3 for normal errors; below `NORMAL_KURTOSIS` it may be
    chance. Errors are those of the simplest formula that is nearly as accurate as any: longer ones fit large errors.
    """
    finalists = self.finalists(nodes)
    least = min((f.scores.mse for f in finalists), default=0.0)
    if least <= self.floor:
      return self.num_points
    simplest = min((f for f in finalists if f.scores.mse <= NEARLY * least), key=lambda f: f.complexity)
    squares = self.rows.weights * (scoring.evaluate(simplest.node, self.rows.x) - self.rows.y) ** 2
    kurtosis = float(np.mean(squares**2) / np.mean(squares) ** 2)
    return self.num_points * (3 / kurtosis if kurtosis > NORMAL_KURTOSIS else 1)

  def refitted(self, finalist: _Finalist, rows: Rows) -> _Finalist:
    """With constants of these rows, and no more digits than they give; as it came where that is no gain."""
    data = (rows.x, rows.y, rows.weights)
    node = rounding.round_constants(rounding.refit_constants(finalist.node, *data), *data)
    scores = self.score(node)
    return _Finalist(node, scores) if scores.mse < finalist.scores.mse else finalist

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
            or cost - per_constant * len(rounding.fitted_values(f.node)) <= costs[cheapest] + MAX_EXCESS]
    return [f for f, _ in kept], [cost for _, cost in kept]

  def front(self, finalists: Sequence[_Finalist], costs: Sequence[float]) -> list[int]:
    return front.pareto_indices(
      [self._size(f) for f in finalists], [f.scores.mse for f in finalists], floor=self.floor, costs=costs,
      min_gain=MIN_GAIN)

  def chosen(self, nodes: Sequence[Node], *, is_rounded: bool) -> list[Node]:
    """The front, and the cheapest by description length."""
    finalists = self.finalists(nodes)
    costs = [self.cost(f, is_rounded=is_rounded) for f in finalists]
    finalists, costs = self._listable(finalists, costs)
    on_front = self.front(finalists, costs if is_rounded else [f.scores.mse for f in finalists])
    cheapest = sorted(range(len(finalists)), key=lambda i: costs[i])[:NUM_CHOSEN]
    return [finalists[i].node for i in dict.fromkeys([*on_front, *cheapest])]


def select(
  nodes: Sequence[Node], rows: Rows, names: Sequence[str], *, seed: int,
  yardsticks: Sequence[Node] = (), is_allowed: Callable[[Node], bool] = lambda node: True, may_fit: bool = True,
  config: SelectionConfig = DEFAULT,
) -> tuple[Equation, tuple[Equation, ...]]:
  """Chooses the front and the recommended formula.

  Args:
    nodes: fitted trees in the user's units; there is at least one, or a yardstick.
    rows: all rows: formulas are scored on them, compared on at most `MAX_ROWS` of them, and what is listed gets its
      last digits from at most `LAST_ROWS`.
    names: of the columns.
    seed: chooses those rows.
    yardsticks: trees that are listed with the front even where it beats them: what any formula is measured against.
    is_allowed: trees the user's rules admit, asked again because simpler constants change operators.
    may_fit: whether constants may be changed; otherwise the trees compete as they are.
  Returns:
    `(best, front)`, from simple to accurate, the best a member of the front proper.
  """
  some, most = rows.sample(MAX_ROWS, seed=seed), rows.sample(LAST_ROWS, seed=seed)
  judge = _Judge(some, len(some), config)
  check = _SoundnessCheck(judge, may_fit=may_fit)
  data = (some.x, some.y, some.weights)
  if may_fit:
    nodes = [soundness.to_slow_waves(node, some.x) for node in nodes]
  nodes = judge.chosen([*yardsticks, *check.keep(nodes)], is_rounded=False)
  if may_fit and len(some) > FIT_ROWS:
    nodes = [rounding.refit_constants(node, *data) for node in nodes]
  if rows.x.shape[1] >= atoms.MANY_VARIABLES:
    judge = _Judge(some, judge.count_effective(nodes), config)
  rounded = check.keep(_rounded(nodes, judge, is_allowed)) if may_fit else nodes
  if len(some) < len(rows):
    rounded = judge.chosen(rounded, is_rounded=True)
    judge = _Judge(rows, judge.num_points * len(rows) / len(some), config)
  all_data = (most.x, most.y, most.weights)
  listed = [rounding.round_constants(node, *all_data) for node in yardsticks] if may_fit else yardsticks
  judged = judge.finalists([*rounded, *listed])
  costs = [judge.cost(finalist, is_rounded=True) for finalist in judged]
  on_front = judge.front(judged, costs)
  yards = [i for i, finalist in enumerate(judged) if finalist.node in listed]
  best = _recommended(judged, costs, on_front, yards, judge, seed=seed, may_fit=may_fit)
  # Nobody needs a formula that describes the data worse than a yardstick does.
  listable = max(costs[best], min((costs[i] for i in yards), default=math.inf))
  least = min(costs[i] for i in on_front)
  on_front = [i for i in on_front if i == best or costs[i] <= listable and (
    judged[i].complexity <= judged[best].complexity or costs[i] <= least + MAX_EXCESS)]
  shown = {*on_front, *yards}
  if may_fit and len(some) < len(rows):
    judged = [judge.refitted(finalist, most) if i in shown else finalist for i, finalist in enumerate(judged)]
  in_order = sorted(shown, key=lambda i: (judged[i].complexity, -judged[i].scores.mse))
  equations = {i: _equation(judged[i], some, most, names) for i in in_order}
  return equations[best], tuple(equations.values())


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
  return among[choice.choose(lines, judge.rows, num_points=judge.num_points, seed=seed, config=judge.config)]


class _SoundnessCheck:
  """Which formulas may be listed, by what they do between the rows (`soundness`)."""

  def __init__(self, judge: _Judge, *, may_fit: bool):
    self._judge, self._may_fit = judge, may_fit
    self._segments = soundness.make_segments(judge.rows, config=judge.config)

  def keep(self, nodes: Sequence[Node]) -> list[Node]:
    return [node for node in nodes if self._is_sound(node)]

  def _is_sound(self, node: Node) -> bool:
    fault = soundness.find_fault(node, self._segments, config=self._judge.config)
    if not fault or self._judge.is_exact(_Finalist(node, self._judge.score(node))):
      return True
    is_pole = fault in (soundness.POLE, soundness.LEAP)
    return is_pole and self._may_fit and soundness.is_supported(node, self._judge.rows, self._segments)


def _rounded(nodes: Sequence[Node], judge: _Judge, is_allowed: Callable[[Node], bool]) -> list[Node]:
  """The trees and their variants with fewer and simpler constants, all with the fewest digits."""
  data = (judge.rows.x, judge.rows.y, judge.rows.weights)

  def tidied(node: Node) -> Node:
    """Unless a rule forbids what tidying makes of it: exp(u)*exp(v) becomes a sum."""
    return form if is_allowed(form := tidy(node)) else node

  nodes = [tidied(node) for node in nodes]
  reduced = [tidied(rounding.remove_redundant(node, *data)) for node in nodes]
  snapped = [tidied(rounding.snap_constants(node, *data, num_errors=num_errors))
             for node in reduced for num_errors in rounding.SNAP_ERRORS]
  # A bare number left of a formula is worse than the constant fit, which is there already.
  simpler = [node for node in dict.fromkeys([*reduced, *snapped]) if not node.is_number and is_allowed(node)]
  return [_shortest(node, judge, is_allowed) for node in dict.fromkeys([*nodes, *simpler])]


def _shortest(node: Node, judge: _Judge, is_allowed: Callable[[Node], bool]) -> Node:
  """The tree with the fewest digits, or rewritten where that is the shorter description.

  The rules are asked of what comes out: digits and simple values change operators, and may make a column vanish.
  """
  data = (judge.rows.x, judge.rows.y, judge.rows.weights)
  variants = [rounding.round_constants(node, *data)]
  # Parts whose constants are the same once rounded can be joined only then.
  pairs = [(rewrite(base), base) for rewrite in REWRITINGS for base in (node, tidy(variants[0]))]
  for rewritten in dict.fromkeys(tidy(rewritten) for rewritten, base in pairs if rewritten != base):
    variants.append(rounding.round_constants(rounding.snap_constants(rewritten, *data), *data))
  # A rule may forbid what tidying makes of a variant, and not the variant.
  forms = [form if is_allowed(form := tidy(variant)) else variant for variant in variants]
  allowed = [form for form in forms if is_allowed(form) and (node.is_number or not form.is_number)]
  return min(allowed, key=judge.cost_of, default=node)


def _equation(finalist: _Finalist, some: Rows, most: Rows, names: Sequence[str]) -> Equation:
  values = rounding.fitted_values(finalist.node)
  errors = rounding.standard_errors(finalist.node, most.x, most.y, most.weights)
  exact = rounding.exact_forms(finalist.node, some.x, some.y, some.weights)
  constants = tuple(Constant(*each) for each in zip(values, errors, exact, strict=True))
  scores = finalist.scores
  return Equation(finalist.node, tuple(names), scores.mse, scores.r2, scores.relative_error, constants)
