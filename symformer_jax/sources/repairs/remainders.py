"""What near formulas leave, as sums of plain columns at one of their places, told in double precision.

`y**x*sin(y) - 3` is `y**x*sin(y)` to 1e-8 of the variance, `-3.8*cos(y) - 3.8*x**9 - 3.8*x` is `x**9` to 1e-10: where
few rows are most of the variance, what is dominated is seen in what is left alone. The residual is projected on what
the formula's constants cannot do (its tangent space, as in `growth`); of some hundred plain columns, without constants
of their own, all pairs and many triples are then tried at the formula's outer places, in milliseconds each.
"""

from collections.abc import Iterator, Sequence
import dataclasses
import itertools
from typing import NamedTuple

import jax
import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, RemaindersConfig, SearchConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Proposal, Question
from symformer_jax.engine.task import Task
from symformer_jax.language import adjoints, expression, programs
from symformer_jax.language.expression import Node, chain, number
from symformer_jax.language.tidy import tidy
from symformer_jax.sources import tangents
from symformer_jax.sources.repairs.fronts import first_fronts
from symformer_jax.sources.sums import library, pair_sums, terms
from symformer_jax.sources.tangents import Graft

# A constant that is added has a value other than 0 before the fit, or it would be left out as nothing.
_SOMETHING = 1e-3
# A term is its column, a factor, a product and a sum.
_NODES_OF_FACTOR = 3
# Shares that are told apart: the rest is rounding.
_RESOLUTION = 1e-16


class Plain(NamedTuple):
  """Plain columns: their formulas [P], and lengths [P] and values of length 1 [N, P], both with the rows' weights."""

  nodes: tuple[Node, ...]
  lengths: np.ndarray
  units: np.ndarray


# Columns with their factors.
Terms = tuple[tuple[Node, float], ...]


class Found(NamedTuple):
  """A sum of columns at a place of a formula.

  Attributes:
    nats: to describe the data by it, up to a number that is the data's.
    terms: each column with its factor there.
  """

  nats: float
  seed: Node
  graft: Graft
  terms: Terms

  def node(self) -> Node:
    """The formula with the sum and a constant there."""
    place = self.seed
    for step in self.graft.path:
      place = place.args[step]
    parts = [Node("*", (column, number(factor))) for column, factor in self.terms]
    if self.graft.is_product:
      new = Node("*", (place, chain("+", [*parts, number(1.0)])))
    else:
      new = chain("+", [place, *parts, number(_SOMETHING)])
    return tidy(adjoints.replace(self.seed, self.graft.path, new))


class State(NamedTuple):
  """Formulas that have been looked at, and the columns of the data set, which are made once."""

  asked: frozenset[Node] = frozenset()
  plain: Plain | None = None


@dataclasses.dataclass(frozen=True)
class Remainders:
  """A constant and up to three plain columns more, for formulas of the pool that have not been looked at."""

  config: SearchConfig = DEFAULT
  name: str = "remainders"

  @property
  def turns(self) -> tuple[int, ...]:
    return self.config.remainders.turns

  def supports(self, task: Task) -> bool:
    return pair_sums.can_add(task)

  def init(self, task: Task, key: jax.Array) -> State:
    return State()

  def propose(self, questions: Sequence[Question], *, turn: int, num: int, clock: Clock) -> list[Proposal]:
    with clock.measure("recombine"):
      return [self._propose(question, num) for question in questions]

  @np.errstate(all="ignore")  # what is not finite is left out
  def _propose(self, question: Question, num: int) -> Proposal:
    task, config, state = question.task, self.config.remainders, question.state
    near = [candidate for candidate in question.pool.in_order() if candidate.mse <= config.near * task.variance]
    seeds = first_fronts(near, state.asked, config)
    if not seeds or question.pool.exact() is not None:
      return Proposal(state=state)
    rows = terms.some_of(task.fit_rows, self.config.terms)
    root = np.sqrt(rows.weights / rows.weights.sum())
    plain = state.plain or _plain(task, rows, root, self.config)
    every = (_completed(seed, front, plain, rows, root, config) for seed, front in seeds.items())
    found = sorted(itertools.chain.from_iterable(every), key=lambda each: each.nats)
    nodes = pair_sums.allowed((each.node() for each in found), task, num, self.config.terms)
    return Proposal(state=State(state.asked | seeds.keys(), plain), nodes=nodes)


def _plain(task: Task, rows: Rows, root: np.ndarray, config: SearchConfig) -> Plain:
  """The shortest columns of whole and half numbers, no more than `max_columns`."""
  own = config.remainders
  columns = library.Atoms(rows.x, task.columns, terms.allowed_operators(task.rule),
                          config=dataclasses.replace(config.library, families=own.families))
  short = np.flatnonzero(columns.complexities <= own.column_nodes)
  ranked = short[np.argsort(columns.complexities[short], kind="stable")]
  nodes = [node for node in (columns.node(int(i)) for i in ranked) if _is_plain(node)][: own.max_columns]
  values = np.array([root * expression.evaluate(node, rows.x) for node in nodes]).reshape(len(nodes), len(root)).T
  lengths = np.linalg.norm(values, axis=0)
  return Plain(tuple(nodes), lengths, values / lengths)


def _is_plain(node: Node) -> bool:
  """Whether all its numbers are whole or half ones."""
  return all(float(2 * part.value).is_integer() for part in expression.walk(node) if part.is_number)


def _completed(
  seed: Node, front: int, plain: Plain, rows: Rows, root: np.ndarray, config: RemaindersConfig
) -> Iterator[Found]:
  """Sums at places of a formula of a front; none for one that is undefined, exact or has too many constants."""
  interruption.check()
  places = adjoints.places(seed, rows.x)
  values = places[0].values
  slopes = [root * place.adjoint for place in places if programs.is_constant(place.node)]
  if len(slopes) > config.max_directions or not np.isfinite(values).all():
    return
  movable = tangents.orthonormal(slopes)
  residual = tangents.beyond(movable, root * (rows.y - values))
  size = float(np.linalg.norm(residual))
  if not size > 0:
    return
  for graft in tangents.grafts(places, root, kinds_apart=True)[: max(1, config.num_places // front)]:
    for left, found in _at(graft, movable, residual / size, plain, root, config):
      length = expression.complexity(seed) + sum(expression.complexity(node) + _NODES_OF_FACTOR for node, _ in found)
      nats = len(rows) * np.log(np.sqrt(left) * size) + config.nats_per_node * length
      yield Found(float(nats), seed, graft, tuple((node, factor * size) for node, factor in found))


def _at(
  graft: Graft, movable: np.ndarray, target: np.ndarray, plain: Plain, root: np.ndarray,
  config: RemaindersConfig,
) -> Iterator[tuple[float, Terms]]:
  """Sums at one place of a formula for what it leaves, a target [N] of length 1 beyond its constants' reach: the share
  of its square that they leave, and their terms.
  """
  constant = tangents.beyond(movable, root * graft.weight)
  basis = tangents.orthonormal([*movable, constant])
  rest = tangents.beyond(basis, target)
  columns = graft.weight[:, None] * plain.units
  before = np.linalg.norm(columns, axis=0)
  columns = tangents.beyond(basis, columns)
  after = np.linalg.norm(columns, axis=0)
  usable = np.flatnonzero(np.isfinite(after) & (after**2 > config.independent * before**2))
  units = columns[:, usable] / after[usable]
  for some, left in _sets(units, rest, config):
    if left > config.most_left:
      continue
    factors = np.linalg.lstsq(units[:, some], rest, rcond=None)[0]
    chosen = usable[list(some)]
    factors = factors / after[chosen] / plain.lengths[chosen]
    yield left, tuple((plain.nodes[i], float(factor)) for i, factor in zip(chosen, factors, strict=True))


def _sets(units: np.ndarray, target: np.ndarray, config: RemaindersConfig) -> list[tuple[tuple[int, ...], float]]:
  """The best sets of none to three columns of length 1 [N, P], and which share of 1 they leave of a target [N].

  The length of the target is at most 1: what is beyond it is explained by none.
  """
  whole = float(target @ target)
  along, cosines = target @ units, units.T @ units
  singles = np.argsort(-(along**2), kind="stable")[: config.num_kept]
  found = [((), whole), *(((int(i),), whole - along[i] ** 2) for i in singles)]
  if len(along) >= 2:
    pairs = _best_pairs(along, cosines, config)
    found += [(pair, whole - gain) for pair, gain in pairs[: config.num_kept]]
    triples = dict(_third(pair, along, cosines, whole - gain, config) for pair, gain in pairs)
    found += sorted(triples.items(), key=lambda each: each[1])[: config.num_kept]
  return [(some, max(float(left), _RESOLUTION)) for some, left in found]


def _best_pairs(
  along: np.ndarray, cosines: np.ndarray, config: RemaindersConfig
) -> list[tuple[tuple[int, int], float]]:
  """Pairs of columns that are no multiples of each other, and what they explain, the most first."""
  across = 1 - cosines**2
  is_new = across > config.independent
  gains = along[:, None] ** 2 + along**2 - 2 * along[:, None] * along * cosines
  gains = np.triu(np.where(is_new, gains / np.where(is_new, across, 1), 0), 1)
  best = np.argpartition(gains, max(gains.size - config.num_pairs, 0), axis=None)[-config.num_pairs :]
  ranked = best[np.argsort(-gains.flat[best])]
  pairs = ((int(i), int(j)) for i, j in zip(*np.unravel_index(ranked, gains.shape), strict=True))
  return [(pair, float(gains[pair])) for pair in pairs if gains[pair] > 0]


def _third(
  pair: tuple[int, int], along: np.ndarray, cosines: np.ndarray, left: float, config: RemaindersConfig
) -> tuple[tuple[int, ...], float]:
  """The column that explains most beside two, and what the three leave."""
  i, j = pair
  sine = np.sqrt(1 - cosines[i, j] ** 2)
  second = (cosines[j] - cosines[i, j] * cosines[i]) / sine
  across = 1 - cosines[i] ** 2 - second**2
  rest = along - along[i] * cosines[i] - (along[j] - cosines[i, j] * along[i]) / sine * second
  is_new = across > config.independent
  more = np.where(is_new, rest**2 / np.where(is_new, across, 1), 0)
  best = int(np.argmax(more))
  return tuple(sorted({i, j, best})), left - float(more[best])
