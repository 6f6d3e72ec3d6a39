"""What a formula is worth on the rows: its scores, its description length, its place on a front."""

from collections.abc import Callable, Sequence
import dataclasses
import functools
import math

import numpy as np

from symformer_jax.engine import criteria
from symformer_jax.engine.config import ChoiceConfig, SelectionConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression, programs
from symformer_jax.language.expression import Node
from symformer_jax.selection import between_rows, choice, front, rounding, scoring


@dataclasses.dataclass(frozen=True)
class Finalist:
  """A formula with its scores on the rows."""

  node: Node
  scores: scoring.Scores

  @property
  def complexity(self) -> int:
    return expression.complexity(self.node)


class Judge:
  """Scores trees on rows, each distinct formula once; `num_points` is how many points these are worth."""

  def __init__(self, rows: Rows, num_points: float, config: SelectionConfig, choice_config: ChoiceConfig):
    self.rows, self.num_points, self.config, self.choice = rows, num_points, config, choice_config
    self._scores: dict[Node, scoring.Scores] = {}
    self._oddities: dict[Node, int] = {}
    self.variance = scoring.weighted_variance(rows.y, rows.weights)
    self.floor = criteria.error_floor(self.variance)

  @functools.cached_property
  def segments(self) -> between_rows.Segments:
    """Among the rows, made once: of a million rows that takes most of a second."""
    return between_rows.make_segments(self.rows, config=self.choice)

  def finalists(self, nodes: Sequence[Node]) -> list[Finalist]:
    """Those of the formulas that are defined on all rows, each once."""
    finalists = (Finalist(n, self.score(n)) for n in dict.fromkeys(nodes))
    return [f for f in finalists if np.isfinite(f.scores.mse)]

  def score(self, node: Node) -> scoring.Scores:
    """Worked out once."""
    if node not in self._scores:
      self._scores[node] = scoring.score(scoring.evaluate(node, self.rows.x), self.rows.y, self.rows.weights)
    return self._scores[node]

  def cost(self, finalist: Finalist, *, is_rounded: bool) -> float:
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

  def is_exact(self, finalist: Finalist) -> bool:
    """Whether the data are met so well that description length alone decides."""
    return finalist.scores.mse <= self.choice.exact * self.variance

  def _size(self, finalist: Finalist) -> int:
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

  def refitted(self, finalist: Finalist, rows: Rows, is_allowed: Callable[[Node], bool]) -> Finalist:
    """With constants of these rows, and no more digits than they give; as it came where that is no gain, or no more
    within the rules, as an exponent that gives the formula another dimension.
    """
    data = (rows.x, rows.y, rows.weights)
    refitted = rounding.refit_constants(finalist.node, *data, config=self.config)
    node = rounding.round_constants(refitted, *data, config=self.config)
    scores = self.score(node)
    return Finalist(node, scores) if scores.mse < finalist.scores.mse and is_allowed(node) else finalist

  def cost_of(self, node: Node) -> float:
    """That of a rounded tree."""
    return self.cost(Finalist(node, self.score(node)), is_rounded=True)

  def _listable(
    self, finalists: Sequence[Finalist], costs: Sequence[float]
  ) -> tuple[list[Finalist], list[float]]:
    """Those that could be listed beside the cheapest even if their constants came to cost nothing."""
    cheapest = min(range(len(costs)), key=lambda i: costs[i], default=0)
    per_constant = 0.5 * math.log(self.num_points)
    kept = [(f, cost) for f, cost in zip(finalists, costs, strict=True)
            if f.complexity <= finalists[cheapest].complexity
            or cost - per_constant * len(programs.fitted_values(f.node)) <= costs[cheapest] + self.config.max_excess]
    return [f for f, _ in kept], [cost for _, cost in kept]

  def front(self, finalists: Sequence[Finalist], costs: Sequence[float] | None) -> list[int]:
    """Places of those that no simpler one beats, see `front.pareto_indices`."""
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
    on_front = self.front(finalists, costs if is_rounded else None)
    cheapest = sorted(range(len(finalists)), key=lambda i: costs[i])[: self.config.num_chosen]
    return [finalists[i].node for i in dict.fromkeys([*on_front, *cheapest])]
