"""Ridges as a source: functions of sums of monomials, times an amplitude, beside few plain terms.

Laws have waves, roots, logarithms and steps of sums, such as `x*sin(y*z - 0.4*w)` or `w + 3*y*sqrt(z - x**2)`. A
library of columns with several inner constants each would be too large; but one function of one sum, its constants on
a grid, is a matrix product (ridge_gains.py), so that all functions of hundreds of sums are tried, and the best fitted.
Ridge functions as in projection pursuit (Friedman and Stuetzle, 1981), but of monomials, and of known form.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
import dataclasses
import heapq
import itertools
from typing import NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import DEFAULT, RidgesConfig, SearchConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import Task
from symformer_jax.language import expression, programs
from symformer_jax.language.expression import Node, chain, number, variable
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.in_turn import in_turn
from symformer_jax.sources.links import LINKS, Link
from symformer_jax.sources.monomials import Monomial, Values, to_node
from symformer_jax.sources.ridges import ridge_functions, ridge_gains
from symformer_jax.sources.ridges.ridge_functions import OUTER
from symformer_jax.sources.ridges.ridge_gains import Settings
from symformer_jax.sources.stateless import Stateless
from symformer_jax.sources.sums import pair_sums, terms

# Share of the target's variance that is rounding of single precision.
EXACT = 1e-6
# A monomial that varies by a smaller share of its size is constant, but for single precision's rounding.
MIN_VARIATION = 1e-5


class Ridge(NamedTuple):
  """A ridge that promises much.

  Attributes:
    left: share of the target's weighted square that it leaves.
    name: of the function; arguments: places of the monomials that are summed, of `_Space.arguments`.
    factors, offset: of the arguments, each counted from 0 to 1 over the rows.
    amplitude, beside: places of what multiplies it, and of what stands beside it.
  """

  left: float
  name: str
  arguments: tuple[int, ...]
  factors: np.ndarray
  offset: float
  amplitude: int
  beside: int


@dataclasses.dataclass(frozen=True)
class Ridges(Stateless):
  """A function of a sum of monomials. Its turns: for y; for functions of y."""

  config: SearchConfig = DEFAULT
  name: str = "ridges"

  @property
  def turns(self) -> tuple[int, ...]:
    return self.config.ridges.turns

  def supports(self, task: Task) -> bool:
    num_constants = pair_sums.most_constants(task, self.config.terms)
    return pair_sums.can_add(task) and num_constants >= self.config.ridges.min_constants and any(
      all(task.rule.allows_operator(token) for token in outer.tokens) for outer in OUTER.values())

  @np.errstate(all="ignore")  # what is not finite is left out
  def _nodes(self, question: Question, turn: int, num: int) -> tuple[Node, ...]:
    task, config = question.task, self.config.ridges
    names = ("y",) if turn == 0 else tuple(name for name in config.links if name != "y")
    links = [LINKS[name] for name in names if LINKS[name].is_defined(task.fit_rows.y)]
    seeds = _seeds(question, config) if turn == 0 else []
    found = [_written(link, task.fit_rows, task.columns, seeds, config) for link in links]
    return pair_sums.allowed(in_turn(found), task, num, self.config.terms)


def _seeds(question: Question, config: RidgesConfig) -> list[list[Node]]:
  """The terms of the pool's formulas that describe the data best: what a ridge may be added to."""
  num_rows, num_nats = len(question.task.fit_rows), config.nats_per_node
  candidates = sorted(question.pool.in_order(), key=lambda c: terms.nats(
    c.node, c.mse, num_rows=num_rows, nats_per_node=num_nats))
  found: dict[tuple, list[Node]] = {}
  for candidate in candidates:
    parts = [part for part in expression.flatten(candidate.node, "+") if not part.is_number]
    if len(parts) <= config.max_beside and expression.complexity(candidate.node) <= config.max_seed_nodes:
      found.setdefault(programs.skeleton(candidate.node), parts)
  return list(itertools.islice(found.values(), config.num_seeds))


def _written(
  link: Link, rows: Rows, columns: Sequence[int], seeds: Sequence[Sequence[Node]], config: RidgesConfig
) -> Iterator[Node]:
  """Formulas for a function of y."""
  target = terms.whole(link, rows)
  if target is not None:
    yield from map(link.undo, ridge_sums(Rows(rows.x, *target), columns, seeds, config=config))


def ridge_sums(
  rows: Rows, columns: Sequence[int], seeds: Sequence[Sequence[Node]] = (), *, config: RidgesConfig
) -> Iterator[Node]:
  """Formulas with a ridge that come near, for constants that are still to be fitted: the best of each function, then
  the second best, ...

  Args:
    rows: what is fitted, y any function of the target.
    columns: of x; these variables are used.
    seeds: lists of terms that may stand beside a ridge, at most `RidgesConfig.num_seeds` lists.
  """
  space = _Space(rows.sample(config.num_rows, seed=0), columns, seeds, config)
  if not space.can_gain:
    return iter(())
  by_name = [_varied(ridges, config) for ridges in space.fitted(space.found())]
  return (node for ridge in in_turn(by_name) for node in space.written(ridge))


def _varied(ridges: Sequence[Ridge], config: RidgesConfig) -> Iterator[Ridge]:
  """Few of each sum of arguments, the best first; of those that single precision cannot tell apart the plainer."""
  alike: Counter[tuple[int, ...]] = Counter()
  for ridge in sorted(ridges, key=lambda r: (max(r.left, EXACT), sum(r.arguments) + r.amplitude)):
    alike[ridge.arguments] += 1
    if alike[ridge.arguments] <= config.num_per_sum:
      yield ridge


class _Space:
  """What ridges are made of at some rows."""

  def __init__(self, rows: Rows, columns: Sequence[int], seeds: Sequence[Sequence[Node]], config: RidgesConfig):
    self._rows, self._columns, self._config = rows, columns, config
    self._root = np.sqrt(rows.weights / rows.weights.sum())
    plain = [variable(column) for column in columns]
    self._beside = [plain if len(plain) <= config.max_beside else [], *seeds]
    self._of = Values(rows.x)
    self._amplitudes = [(), *self._usable(config.amplitude_exponents)][: config.max_amplitudes]
    self.arguments = self._usable(config.argument_exponents)
    values = self._of(self.arguments).T
    self._least, self._spread = values.min(1, initial=np.inf), np.ptp(values, axis=1)
    units = (values - self._least[:, None]) / self._spread[:, None]
    # Rows that are added repeat the last.
    self._units = np.pad(units, ((0, 0), (0, config.num_rows - len(rows))), mode="edge").astype(np.float32)
    self._settings = self._make_settings()

  def _usable(self, exponents: Sequence[tuple[float, ...]]) -> list[Monomial]:
    """Monomials of one and two variables that have no pole, the plainer first."""
    some = [tuple(zip(chosen, each, strict=True)) for each in exponents
            for chosen in itertools.permutations(self._columns, len(each)) if len(set(each)) > 1 or _is_sorted(chosen)]
    with np.errstate(all="ignore"):  # what is undefined is left out
      values = self._of(some)
      largest, least = np.max(np.abs(values), axis=0), np.min(np.abs(values), axis=0)
      spread = np.ptp(values, axis=0)
      varies = np.isfinite(largest) & np.isfinite(spread) & (spread > MIN_VARIATION * largest)
    is_far = least * self._config.largest_ratio > largest
    return [m for i, m in enumerate(some) if varies[i] and (is_far[i] or min(e for _, e in m) > 0)]

  @property
  def can_gain(self) -> bool:
    """Whether there are arguments, and anything is left of y."""
    return bool(self.arguments) and any(np.any(each.residuals) for each in self._settings)

  def found(self) -> dict[str, list[Ridge]]:
    """By function those of all sums and amplitudes that leave least, with their best inner constants of the grid."""
    found: dict[str, list[tuple[float, tuple[int, ...], int, int, int]]] = {name: [] for name in OUTER}
    for size, (most, num_phases, num_directions) in enumerate(self._config.sums, start=1):
      # The first are the plainest; three arguments are variables.
      num = len(self.arguments) if size < 3 else sum(len(m) == 1 and m[0][1] == 1 for m in self.arguments)
      sums = sorted(itertools.combinations(range(num), size), key=sum)[:most]
      if sums:
        gains, places = ridge_gains.best_of_all(
          self._units[np.array(sums)], self._settings, num_phases=num_phases, num_directions=num_directions,
          grids=self._config.grids, num_starts=self._config.starts_per_sum)
        for name in OUTER:
          found[name] += self._least_left(gains[name], places[name], sums)
    return {name: [self._ridge(name, *entry) for entry in heapq.nsmallest(self._config.num_fitted, entries)]
            for name, entries in found.items()}

  def _least_left(self, gain: np.ndarray, place: np.ndarray, sums: Sequence[tuple[int, ...]]) -> Iterator[
    tuple[float, tuple[int, ...], int, int, int]]:
    """Of gains and places [T, S, A, R] those that leave least: what they leave, the sum, setting, amplitude, place."""
    explained = np.stack([1 - np.sum(each.residuals**2, axis=1) for each in self._settings])
    left = np.where(gain > 0, 1 - explained[..., None] - gain, np.inf)
    left = left[:, : len(self._beside), : len(self._amplitudes)]
    num = min(self._config.num_fitted, left.size)
    for at in zip(*np.unravel_index(np.argpartition(left, num - 1, axis=None)[:num], left.shape), strict=True):
      if np.isfinite(left[at]):
        yield float(left[at]), sums[at[0]], int(at[1]), int(at[2]), int(place[at])

  def _ridge(
    self, name: str, left: float, arguments: tuple[int, ...], setting: int, amplitude: int, place: int
  ) -> Ridge:
    _, num_phases, num_directions = self._config.sums[len(arguments) - 1]
    inner = ridge_gains.grid(
      name, place, self._units[list(arguments)], num_phases=num_phases, num_directions=num_directions,
      grids=self._config.grids)
    return Ridge(left, name, arguments, *inner, amplitude, setting)

  def fitted(self, found: dict[str, list[Ridge]]) -> list[list[Ridge]]:
    """The same with their inner constants fitted."""
    shape = len(OUTER), self._config.num_fitted
    starts = ridge_gains.Starts(
      np.zeros((*shape, 3, self._config.num_rows), np.float32), np.zeros(shape, np.int32),
      np.zeros((*shape, 3), np.float32), np.zeros(shape, np.float32))
    for f, ridges in enumerate(found.values()):
      for k, ridge in enumerate(ridges):
        size = len(ridge.arguments)
        starts.arguments[f, k, :size] = self._units[list(ridge.arguments)]
        starts.setting[f, k] = ridge.beside * self._config.max_amplitudes + ridge.amplitude
        starts.factors[f, k, :size], starts.offset[f, k] = ridge.factors, ridge.offset
    factors, offsets, left = (np.asarray(array, np.float64) for array in ridge_gains.fit_ridges(
      starts, self._padded_settings(), num_steps=self._config.num_steps))
    return [[ridge._replace(left=left[f, k], factors=factors[f, k, : len(ridge.arguments)], offset=offsets[f, k])
             for k, ridge in enumerate(ridges) if np.isfinite(left[f, k])] for f, ridges in enumerate(found.values())]

  def _make_settings(self) -> tuple[Settings, ...]:
    """Beside the ridge a constant, its amplitude, and all columns; or the terms of a seed."""
    ones = self._root
    y = self._rows.y / np.max(np.abs(self._rows.y))
    y = _orthonormal([ones, self._root * (y - self._root**2 @ y)], 2)[1]
    amplitudes = self._of(self._amplitudes).T
    amplitudes = amplitudes / np.max(np.abs(amplitudes), axis=1, keepdims=True)
    lists = [[self._root * expression.evaluate(node, self._rows.x) for node in nodes] for nodes in self._beside]
    return tuple(self._setting(y, amplitudes, columns) for columns in lists)

  def _padded_settings(self) -> tuple[Settings, ...]:
    """One program for any number of seeds."""
    return self._settings + self._settings[:1] * (1 + self._config.num_seeds - len(self._settings))

  def _setting(self, y: np.ndarray, amplitudes: np.ndarray, beside: Sequence[np.ndarray]) -> Settings:
    num_columns = 2 + self._config.max_beside
    basis = np.stack([_orthonormal([self._root, self._root * a, *beside], num_columns) for a in amplitudes])
    residuals = y - np.einsum("aqn,aq->an", basis, np.einsum("aqn,n->aq", basis, y))
    missing = self._config.max_amplitudes - len(amplitudes), self._config.num_rows - len(self._rows)
    return Settings(*(
      np.pad(array, ((0, missing[0]), *[(0, 0)] * (array.ndim - 2), (0, missing[1]))).astype(np.float32)
      for array in (self._root * amplitudes, basis, residuals)))

  def written(self, ridge: Ridge) -> Iterator[Node]:
    """The ridge as formulas; what stands beside it by least squares: its amplitude or nothing, and all."""
    factors = ridge.factors / self._spread[list(ridge.arguments)]
    offset = ridge.offset - factors @ self._least[list(ridge.arguments)]
    node = ridge_functions.ridge_of(
      OUTER[ridge.name], [to_node(self.arguments[i]) for i in ridge.arguments], factors, float(offset))
    monomial = self._amplitudes[ridge.amplitude]
    amplitude = [to_node(monomial)] if monomial else []
    more = [other for other in self._beside[ridge.beside] if other not in amplitude]
    if not np.all(np.isfinite(factors)) or not np.any(factors):
      return
    interruption.check()
    for beside in dict.fromkeys((tuple(amplitude if ridge.beside == 0 else more), (*amplitude, *more))):
      formula = self._sum(chain("*", [*amplitude, node]), beside)
      if formula is not None:
        yield formula

  def _sum(self, ridge: Node, beside: Sequence[Node]) -> Node | None:
    rows, nodes = self._rows, [ridge, *beside]
    design = np.stack([expression.evaluate(node, rows.x) for node in nodes], axis=1)
    if not np.all(np.isfinite(design)):
      return None
    factors = terms.least_squares(design, rows.y, rows.weights)
    multiples = [Node("*", (node, number(float(factor)))) for node, factor in zip(nodes, factors[:-1], strict=True)]
    return tidy(chain("+", [*multiples, number(float(factors[-1]))]))


def _is_sorted(chosen: Sequence[int]) -> bool:
  return list(chosen) == sorted(chosen)


def _orthonormal(rows: Sequence[np.ndarray], num: int) -> np.ndarray:
  """An orthonormal basis [num, N] of some vectors, rows of zeros where there are fewer."""
  basis = np.zeros((num, len(rows[0])))
  for place, row in enumerate(rows):
    left = row / (np.max(np.abs(row)) or 1)  # squares neither overflow nor vanish
    left = left / (np.linalg.norm(left) or 1)
    for _ in range(2):  # twice: once leaves rounding
      left = left - basis.T @ (basis @ left)
    if np.linalg.norm(left) > 1e-6:
      basis[place] = left / np.linalg.norm(left)
  return basis
