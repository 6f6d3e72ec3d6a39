"""Curves as a source: of one column a power times a function of another power, `x**q*f(c*x**p)`, on a grid.

`sin(0.128/sqrt(x))`, `exp(-1.3*x**(-1.5))` or `x**3*log(1 + 2.7/x)` have two inner constants, p and c. For one column
both are on a grid, finer than a library's; one product of matrices tells what each explains of y.
"""

from collections.abc import Callable, Iterator, Sequence
import dataclasses
import itertools
from typing import NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import DEFAULT, CurvesConfig, SearchConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import Task
from symformer_jax.language.expression import Node, chain, number, power, variable
from symformer_jax.language.rules import Rule
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.curves import spans
from symformer_jax.sources.in_turn import in_turn
from symformer_jax.sources.links import LINKS, Link
from symformer_jax.sources.stateless import Stateless
from symformer_jax.sources.sums import pair_sums, terms

# A curve of which a constant and a line leave a smaller share (squared) is theirs: what single precision can tell.
INDEPENDENT = 1e-5


class Curve(NamedTuple):
  """A function of one argument: of values, the formula of it, its operators beside sums and products."""

  of: Callable[[np.ndarray], np.ndarray]
  build: Callable[[Node], Node]
  tokens: tuple[str, ...]


def _plus_one(node: Node, *tokens: str) -> Node:
  node = Node("+", (node, number(1.0)))
  for token in tokens:
    node = Node(token, (node,))
  return node


CURVES: dict[str, Curve] = {
  "exp": Curve(np.exp, lambda node: Node("exp", (node,)), ("exp",)),
  "ln": Curve(np.log1p, lambda node: _plus_one(node, "ln"), ("ln",)),
  "inv": Curve(lambda z: 1 / (1 + z), lambda node: _plus_one(node, "inv"), ("inv",)),
  "sqrt": Curve(lambda z: np.sqrt(1 + z), lambda node: _plus_one(node, "sqrt"), ("sqrt",)),
  "inv_sqrt": Curve(lambda z: 1 / np.sqrt(1 + z), lambda node: _plus_one(node, "sqrt", "inv"), ("sqrt", "inv")),
  "atan": Curve(np.arctan, lambda node: Node("atan", (node,)), ("atan",)),
  "tan": Curve(np.tan, lambda node: Node("tan", (node,)), ("tan",)),
  "occupancy": Curve(lambda z: 1 / np.expm1(z), lambda node: Node("inv", (
    Node("+", (Node("exp", (node,)), number(-1.0))),)), ("exp", "inv")),
  "logistic": Curve(lambda z: 1 / (np.exp(z) + 1), lambda node: _plus_one(Node("exp", (node,)), "inv"), ("exp", "inv")),
  "asin": Curve(np.arcsin, lambda node: Node("asin", (node,)), ("asin",)),
  "sin": Curve(np.sin, lambda node: Node("sin", (node,)), ("sin",)),
  "cos": Curve(np.cos, lambda node: Node("cos", (node,)), ("cos",)),
}
WAVES = ("sin", "cos")


@dataclasses.dataclass(frozen=True)
class Curves(Stateless):
  """Functions of one power of the only column that varies."""

  config: SearchConfig = DEFAULT
  name: str = "curves"

  @property
  def turns(self) -> tuple[int, ...]:
    return self.config.curves.turns

  def supports(self, task: Task) -> bool:
    return pair_sums.can_add(task) and len(task.fit_rows.varying(task.columns)) == 1

  def _nodes(self, question: Question, turn: int, num: int) -> Sequence[Node]:
    task = question.task
    [column] = task.fit_rows.varying(task.columns)
    found = curves_of(task.fit_rows, column, task.rule, self.config.curves)
    return pair_sums.allowed(found, task, num, self.config.terms)


def curves_of(rows: Rows, column: int, rule: Rule, config: CurvesConfig) -> Iterator[Node]:
  """Curves of a column that come near, for y and then for functions of y, for constants that are still to be fitted."""
  allows = terms.allowed_operators(rule)
  names = [name for name, curve in CURVES.items() if allows is None or all(map(allows, curve.tokens))]
  grid = Grid(rows.sample(config.num_rows, seed=0), column, names, config)
  for name in config.links:
    if LINKS[name].is_defined(rows.y):
      yield from _formulas(grid, LINKS[name], rows, config.num_plain if name == "y" else config.num_inside)


def _formulas(grid: "Grid", link: Link, rows: Rows, num: int) -> Iterator[Node]:
  """For a function of y, so many of the grid: those that come nearest with constants around theirs, and with theirs, in
  turn.
  """
  target, some = terms.whole(link, rows), terms.whole(link, grid.rows)
  if target is not None and some is not None:
    whole = Rows(rows.x, *target)
    sampled = Rows(grid.rows.x, *some)
    places = grid.nearest(sampled)
    # Under noise what has most directions always leaves least.
    around = [places[i] for i in np.argsort(grid.around(places, sampled), kind="stable")]
    for place in itertools.islice(dict.fromkeys(in_turn([around, places])), num):
      interruption.check()
      node = grid.write(place, whole)
      if node is not None:
        yield link.undo(node)


class Place(NamedTuple):
  """A curve of the grid: its name, the exponents of its argument and of its factor, the argument's own factor, whether
  a line stands beside it.
  """

  name: str
  exponent: float
  factor: float
  amplitude: float
  has_line: bool


class Block(NamedTuple):
  """Curves of one function and one exponent of what multiplies it: exponents and factors [K] of their arguments, values
  [K, N].
  """

  name: str
  amplitude: float
  exponents: np.ndarray
  factors: np.ndarray
  columns: np.ndarray


class Grid:
  """All curves of a column, at few rows.

  Attributes:
    rows: these rows.
  """

  @np.errstate(all="ignore")  # what is not finite is left out
  def __init__(self, rows: Rows, column: int, names: Sequence[str], config: CurvesConfig):
    self.rows, self._column, self._config = rows, column, config
    self._powers = {e: values for e in {*config.exponents, *config.amplitudes, 1.0} if e
                    and _is_usable(values := np.power(rows.x[:, column], float(e)), config.largest_ratio)}
    blocks = [block for name in names for block in self._blocks(name)]
    # Of each function and exponent of what multiplies it the curves, as places of all.
    ends = np.cumsum([0, *(len(block.factors) for block in blocks)])
    self._kinds: dict[tuple[str, float], np.ndarray] = {
      (block.name, block.amplitude): np.arange(*ends[i : i + 2]) for i, block in enumerate(blocks)}
    # The exponent and the factor of each one's argument [K]; values [K, N], of largest size 1, and their squares.
    self._exponents = np.concatenate([np.zeros(0), *(block.exponents for block in blocks)])
    self._factors = np.concatenate([np.zeros(0), *(block.factors for block in blocks)])
    self._columns = np.concatenate([
      np.zeros((0, len(rows)), np.float32), *(block.columns for block in blocks)])
    self._squares = self._columns**2

  def _blocks(self, name: str) -> Iterator[Block]:
    """All curves of a function, those of each factor beside it together."""
    exponents = [e for e in self._config.exponents if e in self._powers]
    if not exponents:
      return
    largest = [np.max(np.abs(self._powers[e])) for e in exponents]
    sizes = self._sizes(name)
    interruption.check()
    arguments = np.stack([self._powers[e] / size for e, size in zip(exponents, largest, strict=True)])
    values = CURVES[name].of(sizes[:, None] * arguments[:, None]).reshape(-1, len(self.rows))
    whole = np.repeat(exponents, len(sizes))
    factors = (sizes / np.array(largest)[:, None]).ravel()
    for amplitude in (0.0, *(a for a in self._config.amplitudes if a in self._powers)):
      columns = values * self._powers[amplitude] if amplitude else values
      size = np.max(np.abs(columns), axis=1)
      is_finite = np.isfinite(size) & (size > 0)
      yield Block(name, amplitude, whole[is_finite], factors[is_finite],
                  (columns[is_finite] / size[is_finite, None]).astype(np.float32))

  def _sizes(self, name: str) -> np.ndarray:
    """Factors of an argument whose largest size is 1."""
    config = self._config
    if name in WAVES:
      return np.pi / 4 * np.arange(1, config.num_phases)
    if name == "asin":
      return np.array(config.bounded)
    sizes = np.geomspace(*config.factors)
    return np.concatenate([sizes, -sizes])

  @np.errstate(all="ignore")
  def nearest(self, target: Rows) -> list[Place]:
    """Of each curve, factor beside it, and with a line and without, few that leave least of a target; the plainer kinds
    first, of those as plain the nearest, then the second of each, ...
    """
    root = np.sqrt(target.weights / target.weights.sum())
    line = self.rows.x[:, self._column] / np.max(np.abs(self.rows.x[:, self._column]))
    tiers: list[list[tuple[float, list[Place]]]] = [[] for _ in self._config.num_alike]
    for beside in ((), (line,)):
      left = self._left(target, root, beside)
      for (name, amplitude), kind in self._kinds.items():
        tier = bool(beside) + bool(amplitude)
        chosen = self._different(left, kind, self._config.num_alike[tier])
        if chosen:
          places = [Place(name, float(self._exponents[i]), float(self._factors[i]), amplitude, bool(beside))
                    for i in chosen]
          tiers[tier].append((left[chosen[0]], places))
    ordered = [sorted(tier, key=lambda kind: kind[0]) for tier in tiers]
    return [place for tier in ordered for place in in_turn(places for _, places in tier)]

  @np.errstate(all="ignore")  # what is not finite is no direction
  def around(self, places: Sequence[Place], target: Rows) -> np.ndarray:
    """What curves with constants between theirs and the next ones leave of a target [P], to first order (`spans`)."""
    root = np.sqrt(target.weights / target.weights.sum())
    line = root * self.rows.x[:, self._column]
    left = np.full(len(places), np.inf)
    for has_line in (False, True):
      some = [i for i, place in enumerate(places) if place.has_line == has_line]
      if some:
        basis = np.linalg.qr(np.column_stack([root, *([line] if has_line else [])]))[0]
        goal = root * target.y / np.max(np.abs(target.y))
        goal = goal - basis @ (basis.T @ goal)
        for sides in itertools.product((1, -1), repeat=2):
          columns = root * self._with_next([places[i] for i in some], *sides)
          columns = columns - columns @ basis @ basis.T
          left[some] = np.minimum(left[some], spans.left_of(goal, spans.orthonormal(columns)))
    return left

  def _with_next(self, places: Sequence[Place], side: int, other: int) -> np.ndarray:
    """Values [P, 3, N] of curves, and of those whose factor and exponent are half a step of the grid away."""
    x, found = self.rows.x[:, self._column], np.zeros((len(places), 3, len(self.rows)))
    shift = other * self._config.half_exponent
    for name in {place.name for place in places}:
      own = [i for i, place in enumerate(places) if place.name == name]
      exponents = np.array([[places[i].exponent] for i in own])
      factors = np.array([[places[i].factor] for i in own])
      amplitudes = np.power(x, np.array([[places[i].amplitude] for i in own]))
      powers, shifted = np.power(x, exponents), np.power(x, exponents + shift)
      # About as large in the middle, whatever the exponent.
      same = np.median(np.abs(x)) ** -shift
      values = (factors * powers, self._moved(name, factors, powers, side) * powers, same * factors * shifted)
      found[own] = np.stack([amplitudes * CURVES[name].of(each) for each in values], axis=1)
    return found

  def _moved(self, name: str, factors: np.ndarray, powers: np.ndarray, side: int) -> np.ndarray:
    """Factors [P, 1] half a step of the grid to one side, where arguments are multiples of these powers [P, N]."""
    if name in WAVES:
      return factors + side * np.pi / 8 / np.max(np.abs(powers), axis=1, keepdims=True)
    lowest, highest, num = self._config.factors
    return factors * (highest / lowest) ** (side / (2 * (num - 1)))

  def _left(self, target: Rows, root: np.ndarray, beside: Sequence[np.ndarray]) -> np.ndarray:
    """What each curve, a constant and some columns leave of the target's weighted square [K]; infinite for a curve that
    is made of the others.
    """
    basis = np.linalg.qr(np.column_stack([root, *(root * each for each in beside)]))[0]
    goal = root * target.y / np.max(np.abs(target.y))
    goal = goal - basis @ (basis.T @ goal)
    along = self._columns @ (root[:, None] * np.column_stack([goal, basis])).astype(np.float32)
    wholes = self._squares @ (root**2).astype(np.float32)
    rest = wholes - np.sum(along[:, 1:] ** 2, axis=1)
    is_own = rest > INDEPENDENT * wholes
    return np.where(is_own, goal @ goal - along[:, 0] ** 2 / np.where(is_own, rest, 1), np.inf)

  def _different(self, left: np.ndarray, kind: np.ndarray, most: int) -> list[int]:
    """The best of a kind whose exponents are whole numbers, which stay as they are, and the best of the others, whose
    exponents are fitted; none of the same exponent, since nearby factors lead to one optimum.
    """
    kind = kind[np.isfinite(left[kind])]
    kind = kind[np.argsort(left[kind], kind="stable")]
    _, first = np.unique(self._exponents[kind], return_index=True)
    best = kind[np.sort(first)]
    is_whole = self._exponents[best] % 1 == 0
    return sorted([*best[is_whole][:most].tolist(), *best[~is_whole][:most].tolist()], key=lambda i: left[i])

  @np.errstate(all="ignore")  # rows that were not looked at
  def write(self, place: Place, rows: Rows) -> Node | None:
    """The formula, with the factors outside that fit some rows best; None where it is not defined at all of them."""
    x = variable(self._column)
    argument = Node("*", (power(x, number(place.exponent)), number(place.factor)))
    curve = CURVES[place.name].build(argument)
    nodes = [Node("*", (power(x, number(place.amplitude)), curve))]  # times x**0 it is tidied to the curve alone
    column = rows.x[:, self._column]
    values = [np.power(column, place.amplitude)
              * CURVES[place.name].of(place.factor * np.power(column, place.exponent))]
    if place.has_line:
      nodes, values = [*nodes, x], [*values, column]
    sizes = np.max(np.abs(values), axis=1)
    if not np.all(np.isfinite(sizes) & (sizes > 0)):
      return None
    factors = terms.least_squares(np.stack(values, axis=1) / sizes, rows.y, rows.weights)
    multiples = [Node("*", (node, number(float(f)))) for node, f in zip(nodes, factors[:-1] / sizes, strict=True)]
    return tidy(chain("+", [*multiples, number(float(factors[-1]))]))


def _is_usable(values: np.ndarray, largest_ratio: float) -> bool:
  sizes = np.abs(values)
  return bool(np.all(np.isfinite(values)) and np.ptp(values) > 0 and np.max(sizes) < largest_ratio * np.median(sizes))
