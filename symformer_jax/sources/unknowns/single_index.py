"""Functions of one product of powers, times a power of a column: which product, and then which function.

`2*cos(0.009*x*w*y**2)*z` is a function of one number, x*w*y**2, once it is divided by z. With the rows in the order of
the right product neighbours are alike whatever the function is, of the wrong ones hardly: so von Neumann's ratio of
successive differences (1941) tells a trend from noise. Products are those of a grid, and of many columns the one that
y rises or falls with (`monotone_products`). What is left is a table of one column.
"""

from collections.abc import Iterator, Sequence
import dataclasses
from typing import NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import DEFAULT, SearchConfig, SingleIndexConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import Task
from symformer_jax.language import expression, programs
from symformer_jax.language.expression import Node
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.in_turn import in_turn
from symformer_jax.sources.monomials import Monomial, Values, to_node
from symformer_jax.sources.stateless import Stateless
from symformer_jax.sources.sums import pair_sums
from symformer_jax.sources.unknowns import monotone_products, unknown_functions
from symformer_jax.sources.unknowns.product_grid import Grid


class Index(NamedTuple):
  """What y over a divisor may be a function of.

  Attributes:
    roughness: half the mean square of what neighbours differ by, as a share of the variance: 1 where there is no order.
    product: of powers; divisor: what y is divided by.
  """

  roughness: float
  product: Node
  divisor: Monomial


@dataclasses.dataclass(frozen=True)
class SingleIndex(Stateless):
  """Functions of one product of powers."""

  config: SearchConfig = DEFAULT
  name: str = "single_index"

  @property
  def turns(self) -> tuple[int, ...]:
    return self.config.single_index.turns

  def supports(self, task: Task) -> bool:
    return (pair_sums.can_add(task) and len(task.columns) > 1
            and len(task.fit_rows) >= self.config.single_index.min_rows)

  @np.errstate(all="ignore")  # what is not finite is left out
  def _nodes(self, question: Question, turn: int, num: int) -> tuple[Node, ...]:
    task = question.task
    found = find_indices(task.fit_rows, task.columns, self.config)
    formulas = [self._formulas(task, index) for index in found]
    return pair_sums.allowed(in_turn(formulas), task, num, self.config.terms)

  def _formulas(self, task: Task, index: Index) -> Iterator[Node]:
    """Formulas for the function, in the columns of the task."""
    rows, config = task.fit_rows, self.config.single_index
    divisor = Values(rows.x)([index.divisor])[:, 0]
    at = expression.evaluate(index.product, rows.x)
    weights = rows.weights * (divisor / np.max(np.abs(divisor))) ** 2
    table = Rows((at / np.max(np.abs(at)))[:, None], rows.y / divisor, weights)
    argument = tidy(Node("*", (index.product, expression.number(float(1 / np.max(np.abs(at)))))))
    for form in unknown_functions.forms_of(table, task.rule, self.config, config.forms):
      formula = expression.substitute(form, {0: argument})
      whole = tidy(Node("*", (formula, to_node(index.divisor))) if index.divisor else formula)
      if programs.size(whole) <= programs.MAX_TOKENS:
        yield whole


def find_indices(rows: Rows, columns: Sequence[int], config: SearchConfig) -> list[Index]:
  """Products of at least two columns in whose order y over a power of a column is smooth, the smoothest first."""
  own = config.single_index
  some = rows.sample(own.num_rows, seed=0)  # as the grid has its products at
  grid = Grid(rows, columns, own.exponents, num_rows=own.num_rows, most=own.max_products)
  chosen = _directions(grid)
  order = np.argsort(grid.products()[chosen], axis=1) if len(chosen) else np.zeros((0, len(some)), int)
  ranked: list[tuple[float, int, Monomial]] = []
  asked: list[tuple[Node, Monomial]] = []
  targets: dict[Monomial, np.ndarray] = {}
  for divisor in [(), *(((column, power),) for column in columns for power in own.divisor_powers)]:
    interruption.check()
    target, target_of_all = _divided(some, divisor), _divided(rows, divisor)
    if target is not None and target_of_all is not None:
      roughness = _roughness(target, order)
      ranked += [(float(roughness[i]), int(chosen[i]), divisor) for i in np.argsort(roughness)[: own.num_looked_at]]
      asked += [(product, divisor) for product in _rising(rows, columns, target_of_all, own)]
      targets[divisor] = target_of_all
  best = sorted(ranked, key=lambda each: each[0])[: own.num_looked_at]
  asked += [(grid.node(index), divisor) for _, index, divisor in best]
  found = []
  for product, divisor in dict.fromkeys(asked):
    at = expression.evaluate(product, rows.x)
    if np.all(np.isfinite(at)) and np.ptp(at) > 0:  # of two categories it is 0 in every row
      in_order = np.argsort(at)[None]
      found.append(Index(float(_roughness(targets[divisor], in_order)[0]), product, divisor))
  found = sorted((each for each in found if each.roughness < own.most_rough), key=lambda each: each.roughness)
  return found[: own.num_kept]


def _rising(rows: Rows, columns: Sequence[int], target: np.ndarray, config: SingleIndexConfig) -> Iterator[Node]:
  """Products of at least two columns that a target [N] rises or falls with."""
  usable = [column for column in rows.varying(columns) if np.all(rows.x[:, column] != 0)]
  if not 2 <= len(usable) <= config.monotone.max_columns:
    return
  for exponents in monotone_products.find_exponents(rows.x[:, usable], target, config.monotone):
    if np.count_nonzero(exponents) > 1:
      yield to_node(tuple((column, power) for column, power in zip(usable, exponents, strict=True) if power))


def _divided(rows: Rows, divisor: Monomial) -> np.ndarray | None:
  """Ranks of y over a monomial, of variance 1; None where it is undefined or one number.

  Of values a few large ones would decide, as where a function has a pole beside the data.
  """
  by = Values(rows.x)([divisor])[:, 0]
  values = rows.y / by
  if not np.all(np.isfinite(by) & np.isfinite(values)) or np.ptp(values) == 0:
    return None
  ranks = np.unique(values, return_inverse=True)[1].astype(np.float64)
  return (ranks - np.mean(ranks)) / np.std(ranks)


def _roughness(target: np.ndarray, order: np.ndarray) -> np.ndarray:
  """Of a target [N] of variance 1 in orders [P, N]: half the mean square of what neighbours differ by [P]."""
  return np.mean(np.diff(target[order], axis=1) ** 2, axis=1) / 2


def _directions(grid: Grid) -> np.ndarray:
  """Indices of products of at least two columns, of those that are powers of one another the first."""
  if not grid.exponents:
    return np.zeros(0, int)
  powers = np.stack([axis.ravel() for axis in np.meshgrid(*grid.exponents, indexing="ij")], axis=1)
  several = np.flatnonzero(np.count_nonzero(powers, axis=1) > 1)
  if not len(several):
    return several
  some = powers[several]
  first = some[np.arange(len(some)), np.argmax(some != 0, axis=1)]
  # Of one direction the one of the smallest whole exponents: x*y, not its square, root or inverse.
  sizes = np.abs(some).sum(axis=1) + 0.1 * (some < 0).sum(axis=1)
  order = np.argsort(np.where(np.all(some == np.round(some), axis=1), sizes, np.inf), kind="stable")
  _, place = np.unique(np.round(some[order] / first[order][:, None], 6), axis=0, return_index=True)
  return np.sort(several[order][place])
