"""Waves of one column beside another function, or times one, as a source: all frequencies of a grid, in few products.

`10*sin(0.0608*x)`, `cos(x)/3 + 0.466*(x - 1)**2`, `3*exp(-0.16*x)*cos(2.3*x + 0.4) + 1.2`, `sin(1.3*x) + sin(1.7*x)`:
at each frequency w the best a*cos(w*x) + b*sin(w*x), with a constant, is known for every function F of one inner
constant (`inner_functions`) as another term and as the waves' factor. A fit finds what lies between. Other waves below
the line and phases of several monomials are what `wave_fractions` find, phases that are other functions what `phases`
do; both take longer.
"""

from collections.abc import Iterator, Sequence
import dataclasses
from typing import ClassVar, NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import DEFAULT, OscillationsConfig, SearchConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import Task
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, number, power, variable
from symformer_jax.language.rules import Rule, is_writable
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.curves.inner_functions import FAMILIES, INDEPENDENT, Functions, nearest
from symformer_jax.sources.in_turn import in_turn
from symformer_jax.sources.links import LINKS, Link
from symformer_jax.sources.stateless import Stateless
from symformer_jax.sources.sums import pair_sums, terms

# Cosine, sine and the constant of one frequency.
_NUM_COLUMNS = 3


@dataclasses.dataclass(frozen=True)
class Oscillations(Stateless):
  """Of the only column that varies: waves beside a polynomial, a function or another wave, or times a function."""

  config: SearchConfig = DEFAULT
  name: str = "oscillations"

  needs: ClassVar[tuple[str, ...]] = ("+", "*", "cos")

  @property
  def turns(self) -> tuple[int, ...]:
    return self.config.oscillations.turns

  def supports(self, task: Task) -> bool:
    return super().supports(task) and len(task.fit_rows.varying(task.columns)) == 1

  @np.errstate(all="ignore")  # what is not finite is left out
  def _nodes(self, question: Question, turn: int, num: int) -> Sequence[Node]:
    task = question.task
    [column] = task.fit_rows.varying(task.columns)
    found = oscillations_of(task.fit_rows, column, task.rule, self.config)
    return pair_sums.allowed(found, task, num, self.config.terms)


class Grid(NamedTuple):
  """Waves at some rows.

  Attributes:
    argument: what frequencies are multiples of; frequencies [K]; cos, sin: of the phases at the rows [K, N].
  """

  argument: Node
  frequencies: np.ndarray
  cos: np.ndarray
  sin: np.ndarray

  def written(self, place: int, factors: np.ndarray) -> Node:
    """factors[0]*cos + factors[1]*sin of a frequency, as one cosine."""
    size, lag = float(np.hypot(*factors)), float(np.arctan2(factors[1], factors[0]))
    phase = Node("+", (Node("*", (self.argument, number(float(self.frequencies[place])))), number(-lag)))
    return Node("*", (Node("cos", (phase,)), number(size)))


def oscillations_of(rows: Rows, column: int, rule: Rule, config: SearchConfig = DEFAULT) -> Iterator[Node]:
  """Formulas that come near, for constants that are still to be fitted: every second one is y by waves of multiples of
  the column itself, the others are by those of its powers, and functions of y, in turn.

  Args:
    rows: what is fitted; column: of x, the one that formulas are made of; rule: the formulas that count.
  """
  own = config.oscillations
  families = {name: FAMILIES[name] for name in own.families}
  functions = Functions(rows.sample(own.num_rows, seed=0), column, rule, families, config.two_constants)
  found = (_grid(functions.rows, column, exponent, rule, own) for exponent in own.arguments)
  grids = [grid for grid in found if grid is not None]
  if not (grids and np.ptp(rows.y) > 0 and len(rows) > _NUM_COLUMNS + own.max_degree):
    return iter(())
  links = [link for link in map(LINKS.__getitem__, own.links)
           if link.is_defined(rows.y) and all(map(rule.allows_operator, link.operators))]
  first, *others = [(LINKS["y"], grid) for grid in grids] + [(link, grids[0]) for link in links]
  return in_turn([_for_link(*first, functions, column, own),
                  in_turn(_for_link(*other, functions, column, own) for other in others)])


def _grid(rows: Rows, column: int, exponent: float, rule: Rule, config: OscillationsConfig) -> Grid | None:
  """Of multiples of a power of the column."""
  argument = power(variable(column), number(float(exponent)))
  if not is_writable(argument, rule):
    return None
  values = expression.evaluate(argument, rows.x)
  if not (np.all(np.isfinite(values)) and np.ptp(values) > 0):
    return None
  frequencies = config.step / np.ptp(values) * np.arange(1, config.num_frequencies + 1)
  phases = np.outer(frequencies, values)
  return Grid(argument, frequencies, np.cos(phases), np.sin(phases)) if np.all(np.isfinite(phases)) else None


def _for_link(link: Link, grid: Grid, functions: Functions, column: int, config: OscillationsConfig) -> Iterator[Node]:
  """The nearest of each kind in turn: before they are fitted long formulas come nearer than the right one."""
  whole = terms.whole(link, functions.rows)
  if whole is None:
    return
  interruption.check()
  for node in in_turn(_Sums(grid, functions, *whole).of_each_kind(column, config)):
    yield link.undo(tidy(node))


class _Sums:
  """What waves, functions and a constant leave of a target, weighted; all by products of columns."""

  def __init__(self, grid: Grid, functions: Functions, target: np.ndarray, weights: np.ndarray):
    self._grid, self._functions, self._target, self._weights = grid, functions, target, weights
    self._root = np.sqrt(weights / np.max(weights))
    self._unit = self._root / np.linalg.norm(self._root)
    goal = self._root * target
    self._goal = goal - self._unit * (self._unit @ goal)
    # Of each frequency: orthonormal columns of its waves and a constant [K, N, 3]; what they leave of the goal [K, N].
    self._bases, self._rest = self._beside([])

  def of_each_kind(self, column: int, config: OscillationsConfig) -> Iterator[Iterator[Node]]:
    """Those that leave least, the nearest first; of a kind that nobody asks for nothing is computed."""
    for degree in range(min(config.max_degree, 1) + 1):
      yield self._with_polynomials(column, degree, config)
    yield self._with_products(config)
    yield self._with_functions(config)
    for degree in range(2, config.max_degree + 1):
      yield self._with_polynomials(column, degree, config)
    yield self._with_two(config)

  def _with_products(self, config: OscillationsConfig) -> Iterator[Node]:
    for i, k in self._of_families(self.left_of_products(), config):
      yield from self._written([k], outer=i)

  def _with_functions(self, config: OscillationsConfig) -> Iterator[Node]:
    for i, k in self._of_families(self.left_beside_functions(), config):
      yield from self._written([k], [self._functions.nodes[i]], [self._functions.values(i)])

  def _with_two(self, config: OscillationsConfig) -> Iterator[Node]:
    for k, j in nearest(self.left_of_two(), config.num_two):
      yield from self._written([k, j])

  def _with_polynomials(self, column: int, degree: int, config: OscillationsConfig) -> Iterator[Node]:
    exponents = range(1, degree + 1)
    powers = [self._functions.rows.x[:, column] ** i for i in exponents]
    nodes = [power(variable(column), number(float(i))) for i in exponents]
    for _, k in nearest(self.left_beside(powers)[None], config.num_polynomials):
      yield from self._written([k], nodes, powers)

  def _of_families(self, left: np.ndarray, config: OscillationsConfig) -> list[tuple[int, int]]:
    """Functions and frequencies that leave least [M, K], few of each family, the nearest first."""
    found = [(places[i], k) for places in self._functions.families.values()
             for i, k in nearest(left[places], config.num_alike)]
    return sorted(found, key=lambda place: left[place])

  def _written(
    self, waves: Sequence[int], nodes: Sequence[Node] = (), values: Sequence[np.ndarray] = (), outer: int | None = None
  ) -> Iterator[Node]:
    """The waves of some frequencies, times a function if there is one, other terms, and a constant; none where a column
    is 0 in every row.
    """
    size = 1.0 if outer is None else self._functions.values(outer)
    columns = [*values, *(size * wave[k] for k in waves for wave in (self._grid.cos, self._grid.sin))]
    scales = np.array([np.max(np.abs(column)) for column in columns])
    if not np.all(np.isfinite(scales) & (scales > 0)):
      return
    *factors, constant = terms.least_squares(np.stack(columns, axis=1) / scales, self._target, self._weights)
    factors = np.array(factors) / scales
    pairs = factors[len(nodes) :].reshape(-1, 2)
    oscillating = [self._grid.written(k, pair) for k, pair in zip(waves, pairs, strict=True)]
    if outer is not None:
      oscillating = [Node("*", (node, self._functions.nodes[outer])) for node in oscillating]
    others = [Node("*", (node, number(float(factor)))) for node, factor in zip(nodes, factors, strict=False)]
    yield chain("+", [*oscillating, *others, number(float(constant))])

  def left_beside(self, columns: Sequence[np.ndarray]) -> np.ndarray:
    """What the waves of each frequency, some columns [N] and a constant leave of the goal's square [K]."""
    return np.sum(self._beside(columns)[1] ** 2, axis=1)

  def _beside(self, columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    cos, sin = self._grid.cos, self._grid.sin
    shared = [np.broadcast_to(column, cos.shape) for column in (np.ones(len(self._root)), *columns)]
    bases = np.linalg.qr(self._root[:, None] * np.stack([*shared, cos, sin], axis=-1))[0]
    return bases, self._goal - (bases @ (np.swapaxes(bases, 1, 2) @ self._goal)[..., None])[..., 0]

  def left_of_two(self) -> np.ndarray:
    """What the waves of every two frequencies leave of the goal's square [K, K], above the diagonal; else infinite."""
    cos, sin = self._root * self._grid.cos, self._root * self._grid.sin
    along = np.swapaxes(self._bases, 1, 2)
    of_cos, of_sin = along @ cos.T, along @ sin.T  # [K, 3, K]
    own = np.sum(cos**2, axis=1), np.sum(cos * sin, axis=1), np.sum(sin**2, axis=1)
    gains = _gains(own[0] - np.sum(of_cos**2, axis=1), own[1] - np.sum(of_cos * of_sin, axis=1),
                   own[2] - np.sum(of_sin**2, axis=1), self._rest @ cos.T, self._rest @ sin.T, own[0] + own[2])
    left = np.sum(self._rest**2, axis=1)[:, None] - gains
    return np.where(np.triu(np.isfinite(left), 1), left, np.inf)

  def left_beside_functions(self) -> np.ndarray:
    """What the waves of each frequency and each function leave of the goal's square [M, K]."""
    columns = self._root * self._functions.all_values
    own = np.sum(columns**2, axis=1)[:, None]
    along = columns @ np.moveaxis(self._bases, 1, 0).reshape(columns.shape[1], -1)  # [M, K*3]
    rest = own - np.sum(along.reshape(len(columns), len(self._bases), _NUM_COLUMNS) ** 2, axis=-1)
    gains = (columns @ self._rest.T) ** 2 / np.where(rest > INDEPENDENT * own, rest, np.nan)
    return _usable(np.sum(self._rest**2, axis=1) - gains)

  def left_of_products(self) -> np.ndarray:
    """What the waves of each frequency times each function leave of the goal's square [M, K]."""
    cos, sin, columns = self._grid.cos, self._grid.sin, self._root * self._functions.all_values
    squares, goals, sums = columns**2, columns * self._goal, columns * self._unit
    a, b, c = squares @ (cos**2).T, squares @ (cos * sin).T, squares @ (sin**2).T
    d, e = sums @ cos.T, sums @ sin.T
    gains = _gains(a - d**2, b - d * e, c - e**2, goals @ cos.T, goals @ sin.T, a + c)
    return _usable(self._goal @ self._goal - gains)


def _gains(a: np.ndarray, b: np.ndarray, c: np.ndarray, p: np.ndarray, q: np.ndarray, size: np.ndarray) -> np.ndarray:
  """What two columns explain, by their Gram matrix ((a, b), (b, c)) and the target's products with them, p and q: not a
  number where they are not independent, measured by their size.
  """
  determinant = a * c - b**2
  return np.where(determinant > INDEPENDENT * size**2, c * p**2 - 2 * b * p * q + a * q**2, np.nan) / determinant


def _usable(left: np.ndarray) -> np.ndarray:
  return np.where(np.isfinite(left), left, np.inf)
