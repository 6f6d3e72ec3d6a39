"""Products of powers of any variables, one or two of them in a sum for a function of y: all of a grid of exponents.

`29.5*v**4*x*w/(y*z)**2` and `1/(0.5 - 0.2*y**2/(x*z) + 1/w)` are made of some hundred thousand products, too many for
a library that is searched in many ways; one product of matrices tells what each explains of every target.
"""

from collections.abc import Callable, Sequence
import dataclasses
import functools
import itertools
import math
from typing import NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import DEFAULT, PowerProductsConfig, SearchConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import Task
from symformer_jax.language import expression, programs
from symformer_jax.language.expression import Node, chain, number, variable
from symformer_jax.language.tidy import tidy
from symformer_jax.sources import pair_sums, terms
from symformer_jax.sources.in_turn import in_turn
from symformer_jax.sources.links import LINKS, Link
from symformer_jax.sources.monomials import Monomial, Values, to_node
from symformer_jax.sources.stateless import Stateless

# What is left of a product beside others, as a share of its square, in single precision; rows and products at once.
INDEPENDENT, CHUNK = 1e-5, 65536


@dataclasses.dataclass(frozen=True)
class PowerProducts(Stateless):
  """Sums of one or two products of powers."""

  config: SearchConfig = DEFAULT
  name: str = "power_products"

  @property
  def turns(self) -> tuple[int, ...]:
    return self.config.power_products.turns

  def supports(self, task: Task) -> bool:
    return pair_sums.can_add(task) and 1 < len(task.columns) <= self.config.power_products.max_columns

  @np.errstate(all="ignore")  # what is not finite is left out
  def _nodes(self, question: Question, turn: int, num: int) -> tuple[Node, ...]:
    task = question.task
    config, allows = self.config.power_products, terms.allowed_operators(task.rule)
    links = [LINKS[name] for name in config.links
             if LINKS[name].is_defined(task.fit_rows.y) and (allows is None or all(map(allows, LINKS[name].operators)))]
    found = Grid(task.fit_rows, task.columns, config, config.max_products).sums(links, [(), task.columns])
    if not any(some and some[0].left < config.exact for some in found):
      coarse = Grid(task.fit_rows, task.columns, config, config.max_paired_products)
      found += coarse.pairs([LINKS[name] for name in config.pair_links if LINKS[name] in links])
    short = ((each.node for each in some if programs.size(each.node) <= programs.MAX_TOKENS) for some in found)
    formulas = in_turn([list(itertools.islice(nodes, config.num_kept)) for nodes in short])
    return pair_sums.allowed(formulas, task, num, self.config.terms)


@dataclasses.dataclass(frozen=True)
class Sum:
  """The share of a function of y that a formula leaves, and the formula, which is only written if it is looked at."""

  left: float
  write: Callable[[], Node]

  @functools.cached_property
  def node(self) -> Node:
    return self.write()


class _Target(NamedTuple):
  """A function of y: at all rows and at those that are looked at first."""

  link: Link
  every: Rows
  some: Rows


class Grid:
  """Products of powers of the columns at some rows.

  Args:
    rows: what is fitted; columns: of x, those that vary are used; most: products.
  Attributes:
    exponents: for each of these columns.
  """

  def __init__(self, rows: Rows, columns: Sequence[int], config: PowerProductsConfig, most: int):
    self._rows, self._config, self._most = rows, config, most
    self._some = rows.sample(config.num_rows, seed=0)
    self._columns = rows.varying(columns)
    self._finest = self._usable(config.exponents[0])
    self.exponents = self._choose_exponents()
    self._products: np.ndarray | None = None
    self._known: dict[tuple[Node, bool], np.ndarray] = {}

  def sums(self, links: Sequence[Link], besides: Sequence[Sequence[int]]) -> list[list[Sum]]:
    """For each function of y, beside each of some sets of columns, formulas with one product and a constant; the
    nearest first.
    """
    asked = [(target, [variable(column) for column in beside])
             for target in self._targets(links) for beside in besides]
    return [self._fitted(target, [[node, *others] for node in self._climbed(target, others, found)])
            for (target, others), found in zip(asked, self._best(asked), strict=True)]

  def pairs(self, links: Sequence[Link]) -> list[list[Sum]]:
    """For each function of y formulas with two products and a constant, one of them among the best by itself or among
    the plainest.
    """
    targets, config = self._targets(links), self._config
    firsts, plain = self._best([(target, []) for target in targets]), self._plainest(config.num_plain)
    asked = [(target, [self.node(int(i))]) for target, some in zip(targets, firsts, strict=True)
             for i in dict.fromkeys([*some[: config.num_first].tolist(), *plain])]
    seconds = [some[: config.num_second].tolist() for some in self._best(asked)]
    node_of = {i: self.node(i) for i in {i for some in seconds for i in some}}
    sets: dict[int, list[list[Node]]] = {id(target): [] for target in targets}
    for (target, first), some in zip(asked, seconds, strict=True):
      sets[id(target)] += [[*first, node_of[i]] for i in some]
    return [self._fitted(target, sets[id(target)]) for target in targets]

  def _targets(self, links: Sequence[Link]) -> list[_Target]:
    found = []
    for link in links if self.exponents else ():
      every, some = (terms.whole(link, rows) for rows in (self._rows, self._some))
      if every is not None and some is not None:
        found.append(_Target(link, Rows(self._rows.x, *every), Rows(self._some.x, *some)))
    return found

  def _choose_exponents(self) -> list[list[float]]:
    """For each column the powers that are defined and differ from row to row, of the largest grid that is not too
    large.
    """
    for grid in self._config.exponents:
      usable = self._usable(grid)
      if math.prod(map(len, usable)) <= self._most:
        return usable
    return []

  def _usable(self, exponents: Sequence[float]) -> list[list[float]]:
    return [[0.0, *(e for e in exponents if self._is_usable(column, e))] for column in self._columns]

  def _is_usable(self, column: int, exponent: float) -> bool:
    values = Values(self._rows.x)([((column, exponent),)])[:, 0]
    return bool(np.all(np.isfinite(values)) and np.ptp(values) > 0)

  def products(self) -> np.ndarray:
    """All of them [P, N] at the rows that are looked at first, of largest size 1."""
    if self._products is None:
      found = np.ones((1, len(self._some)), np.float32)
      for column, exponents in zip(self._columns, self.exponents, strict=True):
        interruption.check()
        found = (found[:, None] * self._powers(column, exponents)).reshape(-1, found.shape[1])
      self._products = found / np.max(np.abs(found), axis=1, keepdims=True)
    return self._products

  def _powers(self, column: int, exponents: Sequence[float]) -> np.ndarray:
    """[E, N] at the rows that are looked at first, of mean square 1."""
    powers = Values(self._some.x)([((column, e),) for e in exponents])
    return (powers / np.sqrt(np.mean(powers**2, axis=0))).T.astype(np.float32)

  def _best(self, asked: Sequence[tuple[_Target, Sequence[Node]]]) -> list[np.ndarray]:
    """For each target, with some terms and a constant beside a product, the indices of those that leave least."""
    if not asked:
      return []
    weighed = [self._weigh(*each) for each in asked]
    squares, others = (np.column_stack(some) for some in zip(*weighed, strict=True))
    ends = np.cumsum([each.shape[1] for _, each in weighed])[:-1]
    gains: list[list[np.ndarray]] = [[] for _ in asked]
    every = self.products()
    for begin in range(0, len(every), CHUNK):
      interruption.check()
      products = every[begin : begin + CHUNK]
      wholes = (products**2) @ squares
      for i, along in enumerate(np.split(products @ others, ends, axis=1)):
        gains[i].append(_gains(wholes[:, i], along))
    return [self._largest(np.concatenate(each)) for each in gains]

  def _weigh(self, target: _Target, nodes: Sequence[Node]) -> tuple[np.ndarray, np.ndarray]:
    """What the squares of a product are weighed with [N], and the product itself: what some terms and a constant leave
    of the target, and a basis of these [N, 1 + K].
    """
    root = np.sqrt(target.some.weights / target.some.weights.sum())
    goal = root * target.some.y / np.max(np.abs(target.some.y))
    basis = np.linalg.qr(root[:, None] * np.column_stack([np.ones(len(root)), self._values(nodes, target.some)]))[0]
    goal = goal - basis @ (basis.T @ goal)
    weights = root[:, None] * np.column_stack([goal, basis])
    return (root**2).astype(np.float32), weights.astype(np.float32)

  def _climbed(self, target: _Target, nodes: Sequence[Node], chosen: np.ndarray) -> list[Node]:
    """Products of a grid; where there is a finer one, before them those that are found on it by changing one exponent
    after the other.
    """
    found, config = [self.node(int(index)) for index in chosen], self._config
    if self.exponents == self._finest:
      return found
    squares, others = self._weigh(target, nodes)
    tables = [self._powers(c, exponents) for c, exponents in zip(self._columns, self._finest, strict=True)]
    places = np.array([self._regression(target, 0.0), *map(self._places, chosen[: config.num_climbing])])
    most = 0.0
    for _ in range(config.num_climbs):
      interruption.check()
      moved = [_moved(places, i, len(table)) for i, table in enumerate(tables)]
      offset = self._regression(target, self._offset(target, places[0]))
      places = np.unique(np.concatenate([places, *moved, [offset]]), axis=0)
      products = np.prod([table[at] for table, at in zip(tables, places.T, strict=True)], axis=0)
      products /= np.max(np.abs(products), axis=1, keepdims=True)
      gains = _gains(products**2 @ squares, products @ others)
      places = places[np.argsort(-gains, kind="stable")[: config.num_climbing]]
      if not np.max(gains) > most * (1 + INDEPENDENT):
        break
      most = float(np.max(gains))
    climbed = [[exponents[at] for exponents, at in zip(self._finest, each, strict=True)] for each in places]
    return [*(self._product(powers) for powers in climbed), *found]

  def _places(self, index: int) -> list[int]:
    """Those of a product's exponents in the finest grid."""
    at = np.unravel_index(index, [len(each) for each in self.exponents])
    return [finest.index(coarse[i])
            for finest, coarse, i in zip(self._finest, self.exponents, at, strict=True)]

  def _offset(self, target: _Target, places: np.ndarray) -> float:
    """The constant that least squares puts beside a product."""
    node = self._product([exponents[at] for exponents, at in zip(self._finest, places, strict=True)])
    values = self._values([node], target.every)
    return float(terms.least_squares(values / np.max(np.abs(values)), target.every.y, target.every.weights)[-1])

  def _regression(self, target: _Target, offset: float) -> list[int]:
    """The places in the finest grid nearest to what least squares for the logarithm of the target's distance from an
    offset gives.
    """
    rows = dataclasses.replace(target.every, y=target.every.y - offset)
    weights = rows.weights * rows.y**2  # an error of the logarithm is that of y over y
    columns = [column for column in self._columns if np.all(rows.x[:, column] != 0)]
    is_used = weights > 0
    logs = np.log(np.abs(rows.x[is_used][:, columns]))
    fitted = dict(zip(columns, terms.least_squares(
      logs, np.log(np.abs(rows.y[is_used])), weights[is_used] / np.max(weights)), strict=False))
    return [int(np.argmin(np.abs(np.array(exponents) - fitted.get(column, 0.0))))
            for column, exponents in zip(self._columns, self._finest, strict=True)]

  def _largest(self, gains: np.ndarray) -> np.ndarray:
    most = min(self._config.num_looked_at, len(gains))
    chosen = np.argpartition(-gains, most - 1)[:most]
    chosen = chosen[np.argsort(-gains[chosen], kind="stable")]
    return chosen[gains[chosen] > 0]

  def _fitted(self, target: _Target, sets: Sequence[list[Node]]) -> list[Sum]:
    """Sums of terms with the factors that leave least at all rows, in double precision; the least first."""
    rows, found = target.every, []
    mean = np.average(rows.y, weights=rows.weights)
    square = rows.weights @ (rows.y - mean) ** 2
    for nodes in sets:
      interruption.check()
      values = self._values(nodes, rows)
      sizes = np.max(np.abs(values), axis=0)
      if np.all(np.isfinite(values)) and np.all(sizes > 0):  # of two categories the product is 0 in every row
        factors = terms.least_squares(values / sizes, rows.y, rows.weights)
        left = float(rows.weights @ (rows.y - values / sizes @ factors[:-1] - factors[-1]) ** 2 / square)
        found.append(Sum(left, functools.partial(_write, target.link, nodes, [*factors[:-1] / sizes, factors[-1]])))
    return sorted((each for each in found if math.isfinite(each.left)), key=lambda each: each.left)

  def _values(self, nodes: Sequence[Node], rows: Rows) -> np.ndarray:
    """[N, K]; the same products stand in many sums."""
    are_all = rows.x is self._rows.x
    for node in nodes:
      if (node, are_all) not in self._known:
        self._known[node, are_all] = np.broadcast_to(expression.evaluate(node, rows.x), len(rows))
    columns = [self._known[node, are_all] for node in nodes]
    return np.stack(columns, axis=1) if columns else np.zeros((len(rows), 0))

  def _plainest(self, most: int) -> list[int]:
    """Indices of products, but 1, with the least exponents."""
    sizes = np.zeros(1)
    for exponents in self.exponents:
      sizes = (sizes[:, None] + np.abs(exponents) + 0.5 * (np.array(exponents) < 0)).ravel()
    return np.argsort(sizes, kind="stable")[1 : most + 1].tolist()

  def node(self, index: int) -> Node:
    """The formula of a product."""
    places = np.unravel_index(index, [len(each) for each in self.exponents])
    return self._product([exponents[place] for exponents, place in zip(self.exponents, places, strict=True)])

  def _product(self, powers: Sequence[float]) -> Node:
    monomial: Monomial = tuple((c, e) for c, e in zip(self._columns, powers, strict=True) if e)
    return to_node(monomial)


def _write(link: Link, nodes: Sequence[Node], factors: Sequence[float]) -> Node:
  """y, a function of which is a sum of terms with factors, the constant last."""
  some = [Node("*", (node, number(float(f)))) for node, f in zip(nodes, factors[:-1], strict=True)]
  return link.undo(tidy(chain("+", [*some, number(float(factors[-1]))])))


def _gains(wholes: np.ndarray, along: np.ndarray) -> np.ndarray:
  """What products add to a fit [P], from their squares [P] and their products with what is left and a basis [P, 1 + K].
  """
  goal, *basis = along.T
  rest = wholes - sum(each * each for each in basis)
  gains = goal * goal
  return np.divide(gains, rest, out=np.zeros_like(gains), where=rest > INDEPENDENT * wholes)


def _moved(places: np.ndarray, column: int, num: int) -> np.ndarray:
  """Places [P, D] with every other place of one column [P * num, D]."""
  moved = np.repeat(places, num, axis=0)
  moved[:, column] = np.tile(np.arange(num), len(places))
  return moved
