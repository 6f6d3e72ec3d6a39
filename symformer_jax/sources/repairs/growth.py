"""Growth as a source: formulas of the pool with one library column more, put where the data ask for it.

To first order, a column f that is added at a place of a formula, s -> s + c*f, or multiplied there, s -> s*(1 + c*f),
changes its values by c*w*f with w [N] the derivative by that place. Constants that are there already move at the same
time, which their derivatives J [N, C] describe. So what each column would gain at each place is linear algebra: the
residual is projected on the part of w*f that J leaves. It is matching pursuit (Mallat and Zhang, 1993) in the tangent
space of a formula, inside its functions too; what promises most is fitted to the end by the loop.
"""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from symformer_jax import compilation
from symformer_jax.engine import interruption
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, TIERS, GrowthConfig, SearchConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Proposal, Question
from symformer_jax.engine.task import Task
from symformer_jax.language import adjoints, programs
from symformer_jax.language.expression import Node, number
from symformer_jax.language.tidy import tidy
from symformer_jax.sources import tangents
from symformer_jax.sources.in_turn import in_turn
from symformer_jax.sources.repairs.fronts import first_fronts
from symformer_jax.sources.sums import pair_sums, pairs, terms
from symformer_jax.sources.sums.columns import Columns
from symformer_jax.sources.tangents import Graft

# Places of one compiled call.
NUM_PLACES = 64
# Share of a column, squared, that must be left by a formula's directions: what single precision can tell.
INDEPENDENT = 1e-4


class Tangent(NamedTuple):
  """What a formula's constants can do, to first order.

  Attributes:
    node: the formula; basis: of the directions its values can move in [C, N], orthonormal.
    residual: the direction of what they leave of y [N], of length 1; size: its length.
    grafts: where a column may go.
  """

  node: Node
  basis: np.ndarray
  residual: np.ndarray
  size: float
  grafts: list[Graft]


class State(NamedTuple):
  """Formulas that have been grown, and nats to describe the data by the pool's best before the last turn."""

  grown: frozenset[Node] = frozenset()
  nats: float = np.inf


@dataclasses.dataclass(frozen=True)
class Growth:
  """One column more, where the data may be free of noise; a turn that follows one without success makes nothing."""

  config: SearchConfig = DEFAULT
  name: str = "growth"

  @property
  def turns(self) -> tuple[int, ...]:
    return self.config.growth.turns

  def supports(self, task: Task) -> bool:
    return pair_sums.can_add(task)

  def init(self, task: Task, key: jax.Array) -> State:
    return State()

  def propose(self, questions: Sequence[Question], *, turn: int, num: int, clock: Clock) -> list[Proposal]:
    with clock.measure("recombine"):
      return [self._propose(question, num) for question in questions]

  def _propose(self, question: Question, num: int) -> Proposal:
    task, config = question.task, self.config.growth
    candidates = question.pool.in_order()
    nats = min((terms.nats(c.node, c.mse, num_rows=len(task.fit_rows), nats_per_node=config.nats_per_node)
                for c in candidates), default=np.inf)
    is_over = nats > question.state.nats - config.nats_per_node
    if is_over or not candidates or candidates[0].mse > config.most_left * task.variance:
      return Proposal(state=question.state)
    chosen = first_fronts(candidates, question.state.grown, config)
    columns = pair_sums.subset(terms.library_of(task, self.config), self.config.pairs.max_columns)
    rows = terms.some_of(task.fit_rows, self.config.terms)
    return Proposal(state=State(question.state.grown | set(chosen), nats),
                    nodes=pair_sums.allowed(_grown(chosen, columns, rows, config), task, num, self.config.terms))


@np.errstate(all="ignore")  # what is not finite is left out
def _grown(
  seeds: Mapping[Node, int], columns: Columns, rows: Rows, config: GrowthConfig
) -> Iterator[Node]:
  """Formulas with one column more: what promises most for the first seed, for the second, ..., the next for each."""
  order, norms = pairs.layout(columns.groups), np.linalg.norm(columns.columns, axis=0)
  laid = _laid(columns.columns, order)
  root = np.sqrt(rows.weights / rows.weights.sum())
  tangents = [tangent for seed, front in seeds.items()
              if (tangent := _tangent(seed, rows, root, front, config)) is not None]
  grafts = [(tangent, graft) for tangent in tangents for graft in tangent.grafts]
  promised: dict[Node, list[tuple[float, Graft, int, float]]] = {tangent.node: [] for tangent in tangents}
  for begin in range(0, len(grafts), NUM_PLACES):
    interruption.check()
    some = grafts[begin : begin + NUM_PLACES]
    padded = _padded(some, root, laid.shape[2], config.max_directions)
    gains, members, multiples = (np.asarray(a) for a in _gains(laid, *padded))
    for row, (tangent, graft) in enumerate(some):
      chosen = order[np.arange(len(order)), members[row, : len(order)]]
      factors = multiples[row, : len(order)] * (tangent.size / np.max(np.abs(graft.weight)) / norms[chosen])
      promised[tangent.node] += [
        (float(gains[row, block]), graft, int(chosen[block]), float(factors[block]))
        for block in _best(gains[row, : len(order)], columns.tiers[chosen], config)]
  ranked = [[(node, graft, column, multiple) for _, graft, column, multiple in sorted(found, key=lambda each: -each[0])]
            for node, found in promised.items()]
  for node, graft, column, multiple in in_turn(ranked):
    yield _grafted(node, graft, columns, column, multiple)


def _best(gains: np.ndarray, tiers: np.ndarray, config: GrowthConfig) -> list[int]:
  """Places in gains [R] of the best, and of the best of each tier [R]: where many columns do, a plain one is meant."""
  ranked = np.argsort(-gains, kind="stable")
  ranked = ranked[gains[ranked] > config.min_gain]
  of_tiers = (ranked[tiers[ranked] == tier][: config.num_per_tier] for tier in range(len(TIERS)))
  return list(dict.fromkeys(int(place) for some in (ranked[: config.num_per_place], *of_tiers) for place in some))


def _laid(columns: np.ndarray, order: np.ndarray) -> np.ndarray:
  """Columns [R, BLOCK, N] of unit length in blocks, padded with zeros."""
  num_blocks = pairs.TILE_BLOCKS * compilation.bucket(len(order) // pairs.TILE_BLOCKS, pairs.NUM_TILES)
  laid = np.zeros((num_blocks, pairs.BLOCK, pairs.padded_rows(len(columns))), np.float32)
  used = np.zeros(laid.shape[:2], bool)
  used[: len(order)] = order >= 0
  units = columns.T / np.linalg.norm(columns, axis=0)[:, None]
  laid[used, : len(columns)] = units[order[order >= 0]]
  return laid


def _tangent(node: Node, rows: Rows, root: np.ndarray, front: int, config: GrowthConfig) -> Tangent | None:
  """Of a formula of a front; None for a formula that is undefined or has too many constants."""
  found = adjoints.places(node, rows.x)
  values = found[0].values
  slopes = [place.adjoint for place in found if programs.is_constant(place.node)]
  if len(slopes) + 2 > config.max_directions or not np.isfinite(values).all():
    return None
  basis = tangents.orthonormal([root * slope for slope in (np.ones_like(values), values, *slopes)])
  residual = root * (rows.y - values)
  residual = tangents.beyond(basis, residual)
  size = float(np.linalg.norm(residual))
  num_places = max(1, config.num_places // front)
  return Tangent(node, basis, residual / size, size, tangents.grafts(found, root)[:num_places]) if size > 0 else None


def _padded(
  grafts: Sequence[tuple[Tangent, Graft]], root: np.ndarray, num_rows: int, num_directions: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Arguments of `_gains`; weights in units of their largest value."""
  weights = np.zeros((NUM_PLACES, num_rows), np.float32)
  targets, directions = np.zeros_like(weights), np.zeros((NUM_PLACES, num_directions, num_rows), np.float32)
  for k, (tangent, graft) in enumerate(grafts):
    weights[k, : len(root)] = root * graft.weight / np.max(np.abs(graft.weight))
    targets[k, : len(root)] = tangent.residual
    directions[k, : len(tangent.basis), : len(root)] = tangent.basis
  return weights, targets, directions


@jax.jit
@compilation.with_all_digits
def _gains(
  columns: jax.Array, weights: jax.Array, targets: jax.Array, directions: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
  """What the best column of each block explains at each place.

  Args:
    columns: [R, BLOCK, N]; weights: [I, N]; targets: unit vectors [I, N]; directions: orthonormal [I, C, N].
  Returns:
    `(share of the target's square [I, R], the column's place in its block [I, R], its multiple [I, R])`; the multiple
    of the weighted column for a target of length 1.
  """
  products = jnp.einsum("rbn,in->irb", columns, weights * targets)
  squares = jnp.einsum("rbn,in->irb", columns * columns, weights * weights)
  inside = jnp.einsum("rbn,icn->icrb", columns, weights[:, None] * directions)
  across = squares - jnp.sum(inside * inside, axis=1)
  is_new = across > INDEPENDENT * squares
  multiples = products / jnp.where(is_new, across, 1)
  gains = jnp.where(is_new, products * multiples, 0)
  best = jnp.argmax(gains, axis=2)
  chosen = best[..., None]
  return (jnp.take_along_axis(gains, chosen, 2)[..., 0], best, jnp.take_along_axis(multiples, chosen, 2)[..., 0])


def _grafted(seed: Node, graft: Graft, columns: Columns, column: int, multiple: float) -> Node:
  """The formula with the column; its multiple is what the first order asks for, before the other constants move."""
  place = seed
  for step in graft.path:
    place = place.args[step]
  term = Node("*", (columns.node(column), number(multiple / columns.scale(column))))
  new = Node("*", (place, Node("+", (number(1.0), term)))) if graft.is_product else Node("+", (place, term))
  return tidy(adjoints.replace(seed, graft.path, new))
