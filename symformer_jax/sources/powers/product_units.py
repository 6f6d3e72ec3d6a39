"""Sums of products of powers with free exponents, and of such times a function of another one.

`2.3*v**4*x/(y*z)**2 - 0.4*u*sqrt(w) + 1`, `m*(1 - exp(-n))`, `m + 3*cos(n)` with products m and n of any columns: all
exponents are fitted at once from many random starts (`product_fits.py`), most of which end at the same place, and
become plain numbers one after the other, as long as nothing is lost by it.
"""

from collections.abc import Sequence
import dataclasses
import math
from typing import NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import DEFAULT, ProductUnitsConfig, SearchConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import Task
from symformer_jax.language import programs
from symformer_jax.language.expression import Node
from symformer_jax.language.rules import Rule
from symformer_jax.sources.in_turn import in_turn
from symformer_jax.sources.links import LINKS, Link
from symformer_jax.sources.powers import product_fits, product_forms
from symformer_jax.sources.powers.product_fits import Fits, Layout, Starts, Table
from symformer_jax.sources.powers.product_forms import Columns, fitted_sum
from symformer_jax.sources.powers.product_rounding import Rounding
from symformer_jax.sources.stateless import Stateless
from symformer_jax.sources.sums import pair_sums, terms

# A column whose logarithm varies less than this says nothing.
LEAST_DEVIATION = 1e-6


class _Shape(NamedTuple):
  """A kind of sum: its layout, the units that are part of it, whether functions have a product as a factor."""

  layout: Layout
  is_used: tuple[bool, ...]
  has_factor: bool = True


# THE shapes, by name: m + n, m + n + o; m + n*(a + b*g(o)); m + a + b*g(n); m*(a + b*g(n + o));
# a + b*g(n + o).
_SUMS, _FUNCTION, _SUM_INSIDE = Layout((0, 0, 0)), Layout((0, 1)), Layout((2,))
SHAPES = {
  "two": _Shape(_SUMS, (True, True, False)),
  "three": _Shape(_SUMS, (True, True, True)),
  "both": _Shape(_FUNCTION, (True, True)),
  "beside": _Shape(_FUNCTION, (True, True), has_factor=False),
  "inside": _Shape(_SUM_INSIDE, (True,)),
  "alone": _Shape(_SUM_INSIDE, (True,), has_factor=False),
}


@dataclasses.dataclass(frozen=True)
class ProductUnits(Stateless):
  """See the module."""

  config: SearchConfig = DEFAULT
  name: str = "product_units"

  @property
  def turns(self) -> tuple[int, ...]:
    return (self.config.product_units.num_formulas,) * len(self.config.product_units.plans)

  def supports(self, task: Task) -> bool:
    return pair_sums.can_add(task) and 1 < len(task.columns) <= self.config.product_units.max_columns

  @np.errstate(all="ignore")  # what is not finite is left out
  def _nodes(self, question: Question, turn: int, num: int) -> tuple[Node, ...]:
    task, config = question.task, self.config.product_units
    links, shapes, functions = config.plans[turn]
    allows = terms.allowed_operators(task.rule)
    targets = [LINKS[name] for name in links if LINKS[name].is_defined(task.fit_rows.y)
               and (allows is None or all(map(allows, LINKS[name].operators)))]
    units = _Units.of(task.fit_rows, task.columns, targets, config)
    if units is None:
      return ()
    if allows is not None:
      units = units.under(task.rule)
      functions = tuple(f for f in functions if all(map(task.rule.allows_operator, product_forms.operators(f))))
    formulas = in_turn([units.formulas([SHAPES[name] for name in shapes if SHAPES[name].layout == layout], functions)
                        for layout in dict.fromkeys(SHAPES[name].layout for name in shapes)])
    short = (node for node in formulas if programs.size(node) <= programs.MAX_TOKENS)
    return pair_sums.allowed(short, task, num, self.config.terms)


@dataclasses.dataclass(frozen=True)
class _Units:
  """Sums of units for functions of y at some rows.

  Attributes:
    rows: all that count; columns: those that are used [M].
    table: what is fitted: for each function of y one target whose errors count as those of y, then one whose errors
      count relative to its size.
    means, deviations: of the columns' logarithms [M]; is_whole: whether a column is below 0 somewhere [M], and has
      whole exponents; links: the functions of y.
  """

  rows: Rows
  columns: tuple[int, ...]
  table: Table
  means: np.ndarray
  deviations: np.ndarray
  is_whole: np.ndarray
  links: tuple[Link, ...]
  config: ProductUnitsConfig

  @classmethod
  def of(cls, rows: Rows, columns: Sequence[int], links: Sequence[Link], config: ProductUnitsConfig) -> "_Units | None":
    """None where no column or no function of y can be used."""
    used = tuple(c for c in rows.varying(columns) if np.mean(rows.x[:, c] == 0) <= config.most_zeros)
    rows = _without(rows, np.any(rows.x[:, used] == 0, axis=1))
    whole = [(link, found) for link in links if (found := terms.whole(link, rows)) is not None] if len(rows) else []
    if not whole:
      return None
    some = _chosen(rows.y, config)
    used = tuple(c for c in used if np.std(np.log(np.abs(rows.x[some, c]))) > LEAST_DEVIATION)
    if not used:
      return None
    logs = np.log(np.abs(rows.x[some][:, used]))
    means, deviations = np.mean(logs, axis=0), np.std(logs, axis=0)
    goals, roots = [], []
    for _, (z, weights) in whole:
      z, weights = z[some] - np.median(z[some]), weights[some]
      z = z / (np.max(np.abs(z)) or 1.0)
      away = np.abs(z)
      relative = weights / (away + max(np.quantile(away, config.quantile), 1e-9)) ** 2
      for each in (weights, relative):
        root = np.sqrt(each / np.sum(each))
        goals.append(root * z)
        roots.append(root)
    is_negative = (rows.x[some][:, used] < 0).astype(float)
    table = Table((logs - means) / deviations, is_negative, np.array(goals), np.array(roots))
    is_whole = np.any(rows.x[:, used] < 0, axis=0)
    return cls(rows, used, table, means, deviations, is_whole, tuple(link for link, _ in whole), config)

  def under(self, rule: Rule) -> "_Units":
    """With those exponents alone that a rule allows."""
    config = self.config
    has_roots = rule.allows_operator("pow") and rule.allows_operator("sqrt")
    largest = config.largest if rule.max_exponent is None else min(config.largest, rule.max_exponent)
    return dataclasses.replace(self, config=dataclasses.replace(
      config, multiples=config.multiples if has_roots else (1.0,), largest=largest))

  def formulas(self, shapes: Sequence[_Shape], functions: Sequence[str]) -> list[Node]:
    """Formulas of shapes of one layout, with some functions, the nearest first."""
    layout = shapes[0].layout
    config = self.config
    functions = functions if any(layout.num_inner) else tuple(product_fits.FUNCTIONS)[:1]
    asked = [(place, shape, function) for place in range(len(self.links)) for shape in shapes
             if self._has_rows(shape) for function in functions]
    if not asked:
      return []
    rng = np.random.default_rng(0)
    starts = _joined([self._starts(rng, *each) for each in asked])
    # Fewer and fewer of each kind go on, as many of both ways to weigh errors; the last of them with errors of y.
    for most, steps in ((config.num_survivors, config.num_first_steps), (1, config.num_steps)):
      fits = product_fits.fit(self.table, starts, layout, num_steps=steps)
      kept = _least(fits.left.reshape(len(asked), -1), most)
      starts = _taken(starts, kept)._replace(parameters=fits.parameters[kept])
    starts = starts._replace(target=starts.target // 2 * 2)
    fits = product_fits.fit(self.table, starts, layout, num_steps=config.num_further_steps)
    order = [i for i in np.argsort(fits.left, kind="stable") if fits.left[i] <= config.most_left]
    chosen = [i for place in range(len(self.links))
              for i in self._going_on([i for i in order if starts.target[i] == 2 * place], fits.left)]
    if not chosen:
      return []
    starts, fits = _taken(starts, chosen), Fits(*(each[chosen] for each in fits))
    rounding = Rounding(self.table, starts, fits, layout, self.deviations, self.is_whole, config.multiples, config)
    fits = rounding.run()
    columns = Columns(self.columns, self.rows.x, self.means, self.deviations, largest=config.largest)
    by_link = []
    for place, link in enumerate(self.links):
      target = terms.whole(link, self.rows)
      assert target is not None  # others are no links of these rows
      some = [int(i) for i in np.argsort(fits.left, kind="stable") if starts.target[i] == 2 * place]
      # Of exponents that are no plain numbers the nearest will do, where the data are not met.
      near = [i for rank, i in enumerate(some) if not rank or rounding.is_plain[i] or fits.left[i] <= config.exact]
      written = [self._written(columns.terms(starts, fits, i, layout), *target) for i in near]
      by_link.append([link.undo(node) for node in written if node is not None])
    return list(dict.fromkeys(in_turn(by_link)))

  def _going_on(self, in_order: Sequence[int], left: np.ndarray) -> list[int]:
    """The nearest, and under noise, where many leave about as much as the nearest, those as well."""
    config = self.config
    alike = [i for i in in_order if left[i] <= config.alike * left[in_order[0]]]
    return list(in_order[: min(max(config.num_kept, len(alike)), config.num_alike)])

  def _written(self, some: Sequence[Node], z: np.ndarray, weights: np.ndarray) -> Node | None:
    """The sum of terms that fits a target best; None where there are none, or one is undefined for a row."""
    interruption.check()
    config = self.config
    return fitted_sum(
      some, self.rows.x, z, weights, most_growth=config.most_growth, exact=config.exact) if some else None

  def _has_rows(self, shape: _Shape) -> bool:
    num = sum(shape.is_used) + sum(shape.layout.num_inner) - (not shape.has_factor)
    return self.rows.num_distinct >= self.config.rows_per_exponent * num * len(self.columns)

  def _starts(self, rng: np.random.Generator, place_of_goal: int, shape: _Shape, function: str) -> Starts:
    """Random ones of a function of y, every other one with relative errors."""
    config, width, num = self.config, len(self.columns), 2 * self.config.num_starts
    size = shape.layout.num_parameters(width)
    parameters = config.spread * rng.normal(size=(num, size)) * (rng.random((num, size)) < config.density)
    is_free = np.ones((num, size), bool)
    sign = np.ones((num, shape.layout.num_products))
    parity = self._parities(rng, num, place_of_goal, shape.layout)
    is_below = np.all(self.table.negative > 0, axis=0)
    # What a column that is below 0 everywhere makes of a product's sign, and which products have both.
    turned = 1 - 2 * (parity @ is_below % 2)
    has_both_signs = parity @ (self.is_whole & ~is_below) > 0
    at = 0
    for (outer, inner), is_used in zip(shape.layout.places(width), shape.is_used, strict=True):
      if not is_used or (inner and not shape.has_factor):
        parameters[:, outer], is_free[:, outer] = 0, False
      for place in inner:
        at += 1
        along = parameters[:, place.start : place.stop - 1] @ self.table.logs.T
        away = rng.normal(size=num)
        sign[:, at] = np.where(rng.random(num) < 0.5, 1, -1)
        # A sum that is below 0 is nowhere less than -1, where roots and logarithms end.
        least = np.max(along, axis=1) + math.log(len(inner)) + np.abs(away)
        is_above = (sign[:, at] > 0) & ~has_both_signs[:, at]
        parameters[:, place.stop - 1] = np.where(is_above, away, -least)
        sign[:, at] *= turned[:, at]
      if inner and function == product_fits.POWER:
        sign[:, at - len(inner) + 1] = turned[:, at - len(inner) + 1]
        parameters[:, inner[0].stop - 1] = rng.choice((-1, 1), num) * np.exp(config.spread / 2 * rng.normal(size=num))
      at += 1
    return Starts(parameters, is_free, 2 * place_of_goal + np.arange(num) % 2,
                  np.full(num, list(product_fits.FUNCTIONS).index(function)),
                  np.tile(np.array(shape.is_used, float), (num, 1)), sign, parity)

  def _parities(self, rng: np.random.Generator, num: int, place_of_goal: int, layout: Layout) -> np.ndarray:
    """Columns whose sign counts, for each product [S, V, M]: drawn as a function of y goes with the signs of products.

    A sum of products of columns that are as often below 0 as above has in its Walsh spectrum the sets of columns with
    odd exponents, and that of a product times a function of another one the first set, and where it differs from both.
    """
    negative, sets = self.table.negative, np.zeros((1, self.table.negative.shape[1]))
    for column in np.flatnonzero(self.is_whole):
      sets = np.concatenate([sets, sets + (np.arange(sets.shape[1]) == column)])
    away = self.table.goals[2 * place_of_goal] / self.table.roots[2 * place_of_goal]
    away = np.nan_to_num(away - np.median(away))  # a weight of next to nothing has no root
    along = (np.sign(away) * np.sqrt(np.abs(away))) @ (1 - 2 * (negative @ sets.T % 2))
    shares = along**2 + 1e-12 * np.max(along**2) + 1e-30
    drawn = sets[rng.choice(len(sets), size=(num, layout.num_products), p=shares / np.sum(shares))]
    at = 0
    for num_inner in layout.num_inner:
      inner = slice(at + 1, at + 1 + num_inner)
      drawn[:, inner] = (drawn[:, inner] + drawn[:, at : at + 1]) % 2
      at = inner.stop
    return drawn


def _without(rows: Rows, some: np.ndarray) -> Rows:
  """Without some rows."""
  if not some.any():
    return rows
  return dataclasses.replace(rows, x=rows.x[~some], y=rows.y[~some], weights=rows.weights[~some])


def _chosen(y: np.ndarray, config: ProductUnitsConfig) -> np.ndarray:
  """Rows that are fitted: those with y farthest from the median, and others drawn at random, in their order."""
  if len(y) <= config.num_largest + config.num_others:
    return np.arange(len(y))
  order = np.argsort(-np.abs(y - np.median(y)), kind="stable")
  others = np.random.default_rng(0).choice(order[config.num_largest :], config.num_others, replace=False)
  return np.sort(np.concatenate([order[: config.num_largest], others]))


def _least(left: np.ndarray, most: int) -> np.ndarray:
  """Places, row by row, of the least that is left [K, S]: so many at even places, and as many at odd ones."""
  begins = left.shape[1] * np.arange(len(left))[:, None]
  by_kind = [2 * np.argsort(left[:, kind::2], axis=1, kind="stable")[:, :most] + kind for kind in (0, 1)]
  return (begins + np.stack(by_kind, axis=2).reshape(len(left), -1)).ravel()


def _joined(some: Sequence[Starts]) -> Starts:
  return Starts(*(np.concatenate(each) for each in zip(*some, strict=True)))


def _taken(starts: Starts, places: Sequence[int] | np.ndarray) -> Starts:
  return Starts(*(each[np.asarray(places)] for each in starts))
