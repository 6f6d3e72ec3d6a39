"""Short formulas that come near, for data under noise: those of a bank, their products and sums, one pole at its place.

`cos(z)/(x*y)`, `1/tan(x) - 3` and `tan(y)/(x - 2)` under noise: enumeration knows them of exact data alone, and other
sources after seconds. `x - 1/(x + 2.29)` and `x/(y - 1.3)`: where a pole lies among the rows a few of them have nearly
all of the variance, whatever meets these comes near, and no fit from elsewhere reaches the pole.
"""

import collections
from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import functools
from typing import NamedTuple

import numpy as np

from symformer_jax.engine import criteria, interruption
from symformer_jax.engine.config import DEFAULT, SearchConfig, ShortFormsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import Task
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, number, power, variable
from symformer_jax.language.rules import Rule
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.enumeration import enumeration, formula_bank
from symformer_jax.sources.stateless import Stateless
from symformer_jax.sources.sums import pair_sums, terms

# Two formulas of which no more than such a share of the squares tells them apart are one.
_SAME = 1e-10
# Digits of what is left, of the largest of those that come near, by which two formulas leave the same.
_DIGITS = 10


@dataclasses.dataclass(frozen=True)
class ShortForms(Stateless):
  """Short formulas by what they leave of y and by their lengths."""

  config: SearchConfig = DEFAULT
  name: str = "short_forms"

  @property
  def turns(self) -> tuple[int, ...]:
    return self.config.short_forms.turns

  def supports(self, task: Task) -> bool:
    config, rows = self.config.short_forms, task.fit_rows
    return (super().supports(task) and rows.num_distinct >= config.min_rows
            and 0 < len(rows.varying(task.columns)) <= config.max_columns)

  @np.errstate(all="ignore")  # what is not finite is left out
  def _nodes(self, question: Question, turn: int, num: int) -> Sequence[Node]:
    task = question.task
    found = short_forms_of(task.fit_rows, task.columns, task.rule, self.config)
    return pair_sums.allowed(found, task, num, self.config.terms)


def short_forms_of(rows: Rows, columns: Sequence[int], rule: Rule, config: SearchConfig = DEFAULT) -> list[Node]:
  """Formulas that describe the rows in the fewest nats, the shortest descriptions first.

  Args:
    rows: what is fitted; columns: of x, those that formulas are made of; rule: operators it forbids are not used.
  """
  own, varies = config.short_forms, rows.varying(columns)
  variance = float(np.average((rows.y - np.average(rows.y, weights=rows.weights)) ** 2, weights=rows.weights))
  poles = _poles(rows, varies, own) if rule.allows_operator("inv") else iter(())
  found: dict[Node, float] = {}
  for node in (*_of_bank(rows, varies, rule, config), *poles):
    error = float(np.average((expression.evaluate(node, rows.x) - rows.y) ** 2, weights=rows.weights))
    if error <= own.most_left * variance:  # one that is not finite is not
      fit = criteria.Fit(error, expression.complexity(node), 0)
      found[node] = criteria.mdl(fit, num_points=len(rows), variance=variance)
  return sorted(found, key=found.__getitem__)


def _distances(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
  """How far values [N] are from their median, as far as they count."""
  return np.sqrt(weights / np.max(weights)) * np.abs(values - np.median(values))


def _telling(distances: np.ndarray, num_largest: int, num_others: int) -> np.ndarray:
  """Places of the largest distances, the largest first, and of others drawn at random."""
  order = np.argsort(-distances, kind="stable")
  others = np.random.default_rng(0).permutation(order[num_largest:])[:num_others]
  return np.concatenate([order[:num_largest], others])


# --- formulas of a bank, and two of them ----------------------------------------------------------------------------


def _of_bank(rows: Rows, columns: Sequence[int], rule: Rule, config: SearchConfig) -> Iterator[Node]:
  """What comes nearest to y: a formula F of a bank or the product of two with a factor, with a constant beside it or
  none, and the sum of two with a factor each and a constant.
  """
  own = config.short_forms
  places = _telling(_distances(rows.y, rows.weights), own.num_largest, own.num_others)
  bank = formula_bank.Bank(
    rows.x[places], formula_bank.leaves_of(rows.x, columns), numbers=own.numbers,
    operators=enumeration.operators_of(rule, own.functions), num_formulas=own.num_formulas, largest=own.largest)
  sums = Sums(bank.values, bank.values[: own.num_others_of_two], rows.y[places], rows.weights[places])
  for left, joined, has_constant in (
    (sums.of_one(has_constant=False), "+", False), (sums.of_one(has_constant=True), "+", True),
    (sums.of_product(has_constant=False), "*", False), (sums.of_product(has_constant=True), "*", True),
    (sums.of_two(), "+", True),
  ):
    interruption.check()
    for found in _nearest(left, own):
      parts = [bank.node(place) for place in found]
      parts = [chain("*", parts)] if joined == "*" else parts
      if (node := _sum(parts, rows, has_constant=has_constant)) is not None:
        yield node


def _nearest(left: np.ndarray, config: ShortFormsConfig) -> Iterator[tuple[int, ...]]:
  """The places where least is left, by size; of those where the same is, as by F, F + 1 and 2*F, the first."""
  sizes = np.where(np.isfinite(left), left, np.inf).ravel()
  some = np.sort(np.argpartition(sizes, min(config.num_looked_at, len(sizes) - 1))[: config.num_looked_at])
  some = some[np.isfinite(sizes[some])]
  _, first = np.unique(np.round(sizes[some] / np.max(sizes[some], initial=0.0), _DIGITS), return_index=True)
  for place in some[first][: config.num_near]:
    yield tuple(map(int, np.unravel_index(place, left.shape)))


class Sums:
  """What is left of the square of y [R] by least squares with formulas [M, R], and with others [K, R] besides.

  From sums over the rows, which for all pairs are products of matrices.
  """

  def __init__(self, values: np.ndarray, others: np.ndarray, y: np.ndarray, weights: np.ndarray):
    self._values, self._others, self._y, self._weights = values, others, y, weights / np.sum(weights)
    self._mean = float(self._weights @ y)

  def of_one(self, *, has_constant: bool) -> np.ndarray:
    """By a*F, with a constant or without [M]."""
    y = self._weights * (self._y - self._mean * has_constant)
    return self._left(
      self._values @ self._weights, self._values**2 @ self._weights, self._values @ y, has_constant=has_constant)

  def of_product(self, *, has_constant: bool) -> np.ndarray:
    """By a*F*G, with a constant or without [M, K]."""
    y = self._weights * (self._y - self._mean * has_constant)
    return self._left(*self._products, self._values @ (y[:, None] * self._others.T), has_constant=has_constant)

  @functools.cached_property
  def _products(self) -> tuple[np.ndarray, np.ndarray]:
    """Weighted means of F*G and of its square, each [M, K]."""
    others, weights = self._others.T, self._weights[:, None]
    return self._values @ (weights * others), self._values**2 @ (weights * others**2)

  def _left(self, mean: np.ndarray, square: np.ndarray, product: np.ndarray, *, has_constant: bool) -> np.ndarray:
    """From the weighted means of what is fitted, of its square and of its product with y, or with y less its mean."""
    total = float(self._weights @ self._y**2)
    if has_constant:
      spread, total = square - mean**2, float(self._weights @ (self._y - self._mean) ** 2)
      square = np.where(spread > _SAME * square, spread, np.nan)
    return total - product**2 / square

  def of_two(self) -> np.ndarray:
    """By a*F + b*G and a constant [M, K]."""
    values, others = (each - (each @ self._weights)[:, None] for each in (self._values, self._others))
    y = self._weights * (self._y - self._mean)
    with_y, other_with_y = values @ y, others @ y
    square, other_square = (np.einsum("mr,r->m", each**2, self._weights) for each in (values, others))
    both = values @ (self._weights[:, None] * others.T)
    room = square[:, None] * other_square
    determinant = room - both**2
    gained = (with_y[:, None] ** 2 * other_square - 2 * with_y[:, None] * other_with_y * both
              + other_with_y**2 * square[:, None]) / np.where(determinant > _SAME * room, determinant, np.nan)
    return float(y @ (self._y - self._mean)) - gained


def _sum(parts: Sequence[Node], rows: Rows, *, has_constant: bool) -> Node | None:
  """The formulas with the factors that fit the rows, and a constant; None without a value on one of them."""
  constant = [np.ones(len(rows))] if has_constant else []
  design = np.column_stack([*(expression.evaluate(part, rows.x) for part in parts), *constant])
  if not np.isfinite(design).all():
    return None
  root, sizes = np.sqrt(rows.weights), np.maximum(np.abs(design).max(axis=0), np.finfo(float).tiny)
  found = np.linalg.lstsq(design * root[:, None] / sizes, rows.y * root, rcond=None)[0] / sizes
  scaled = [Node("*", (part, number(float(factor)))) for part, factor in zip(parts, found, strict=False)]
  return tidy(chain("+", [*scaled, *map(number, found[len(parts) :].tolist())]))


# --- one pole -------------------------------------------------------------------------------------------------------


class Pole(NamedTuple):
  """What a pole may be: a numerator over a power of a column less a constant, beside other terms.

  Attributes:
    column: the column; power: of the denominator; above: the column in the numerator, or None for 1.
    beside: columns that are terms besides; has_constant: whether a constant is.
  """

  column: int
  power: int
  above: int | None
  beside: tuple[int, ...]
  has_constant: bool

  @property
  def term(self) -> tuple[int, int | None]:
    """The power and what is above it, of those of one column."""
    return self.power, self.above

  @property
  def others(self) -> tuple[tuple[int, ...], bool]:
    """What is beside it."""
    return self.beside, self.has_constant

  @property
  def num_terms(self) -> int:
    """Terms and columns above them."""
    return 1 + (self.above is not None) + len(self.beside) + self.has_constant

  def node(self, rows: Rows, place: float) -> Node | None:
    """With the place of the pole, its constants those that fit the rows; None without a value on one of them."""
    denominator = power(Node("+", (variable(self.column), number(-place))), number(self.power))
    term = Node("inv", (denominator,))
    if self.above is not None:
      term = Node("*", (variable(self.above), term))
    return _sum([term, *map(variable, self.beside)], rows, has_constant=self.has_constant)


def _poles(rows: Rows, columns: Sequence[int], config: ShortFormsConfig) -> Iterator[Node]:
  """Poles of one column where y is farthest from a straight line, if that is much farther than elsewhere."""
  *factors, _ = terms.least_squares(rows.x[:, list(columns)], rows.y, rows.weights)
  rest = rows.y - rows.x[:, list(columns)] @ factors  # distances know no constant
  distances = _distances(rest, rows.weights)
  if np.max(distances) <= config.tail * np.ptp(np.quantile(rest, [0.25, 0.75])):
    return
  telling = _telling(distances, config.num_largest, config.num_rows - config.num_largest)
  near = Rows(rows.x[telling], rows.y[telling], rows.weights[telling])
  tops = np.arange(min(config.num_tops, len(near)))
  places = {column: _places(near.x[:, column], tops, config) for column in columns}
  for pole in _likely(near, places, config):
    interruption.check()
    found = _best_place(pole, near, places[pole.column], config)
    if found is not None and (node := pole.node(rows, found)) is not None:
      yield node


def _likely(rows: Rows, places: Mapping[int, np.ndarray], config: ShortFormsConfig) -> list[Pole]:
  """Of all poles with as many terms those that leave least of y at the best of their column's places."""
  left: dict[Pole, float] = {}
  for column in places:
    interruption.check()
    kinds = list(_kinds(column, list(places), config))
    left |= dict(zip(kinds, _left_by_kind(kinds, rows, places[column]).tolist(), strict=True))
  by_size: dict[int, list[Pole]] = collections.defaultdict(list)
  for pole in sorted((pole for pole in left if left[pole] < np.inf), key=left.__getitem__):
    by_size[pole.num_terms].append(pole)
  return [pole for poles in by_size.values() for pole in poles[: config.num_kinds]]


def _left_by_kind(kinds: Sequence[Pole], rows: Rows, places: np.ndarray) -> np.ndarray:
  """What is left of the squares of y at the best of the places [G] of one column, by kind [K]; infinite where nothing
  is known.
  """
  goal = np.sqrt(rows.weights) * rows.y
  terms_of: dict[tuple[int, int | None], tuple[np.ndarray, np.ndarray]] = {}
  beside: dict[tuple[tuple[int, ...], bool], tuple[np.ndarray, np.ndarray]] = {}
  left = []
  for kind in kinds:
    if kind.term not in terms_of:
      columns = _pole_columns(kind, rows, places)
      terms_of[kind.term] = columns, np.einsum("gr,gr->g", columns, columns)
    if kind.others not in beside:
      basis = _basis(kind, rows)
      beside[kind.others] = basis, goal - basis @ (basis.T @ goal)
    (columns, squares), (basis, rest) = terms_of[kind.term], beside[kind.others]
    room = squares - np.sum((columns @ basis) ** 2, axis=1)
    gained = (columns @ rest) ** 2 / np.where(room > _SAME * squares, room, np.nan)
    left.append(rest @ rest - np.nanmax(np.append(gained, -np.inf)))
  return np.array(left)


def _pole_columns(pole: Pole, rows: Rows, places: np.ndarray) -> np.ndarray:
  """Values [G, R] of the term that has the pole, at each of its places, by the roots of the rows' weights."""
  root = np.sqrt(rows.weights)
  above = root if pole.above is None else root * rows.x[:, pole.above]
  return np.asarray(above / (rows.x[:, pole.column] - places[:, None]) ** pole.power)


def _basis(pole: Pole, rows: Rows) -> np.ndarray:
  """Orthonormal columns [R, B] of the terms beside the pole."""
  terms_beside = [rows.x[:, list(pole.beside)], np.ones((len(rows), int(pole.has_constant)))]
  return np.linalg.qr(np.column_stack(terms_beside) * np.sqrt(rows.weights)[:, None])[0]


def _kinds(column: int, columns: Sequence[int], config: ShortFormsConfig) -> Iterator[Pole]:
  others = [each for each in columns if each != column]
  for exponent in config.powers:
    for above in (None, *others):
      for beside in ((), *((each,) for each in columns)):
        for has_constant in (False, True):
          yield Pole(column, exponent, above, beside, has_constant)


def _places(column: np.ndarray, tops: np.ndarray, config: ShortFormsConfig) -> np.ndarray:
  """Where the pole may be: between the neighbours of some rows, and nearer and nearer to these [G], in rising order.

  The nearer it is to a row, the smaller is its factor: by tenths one sees as much of it as of any other place.
  """
  t, steps = np.unique(column), np.logspace(-config.decades, 0, config.num_steps)
  found = []
  for top, at in zip(column[tops], np.searchsorted(t, column[tops]), strict=True):
    low, high = t[max(at - config.reach, 0)], t[min(at + config.reach, len(t) - 1)]
    found += [np.linspace(low, high, config.num_places), top + (high - top) * steps, top + (low - top) * steps]
  return np.unique(np.concatenate(found))


def _best_place(pole: Pole, rows: Rows, places: np.ndarray, config: ShortFormsConfig) -> float | None:
  """Of the places [G], and of finer ones between those beside the best, the one by which least is left of y."""
  basis, y = _basis(pole, rows), rows.y * np.sqrt(rows.weights)
  y = y - basis @ (basis.T @ y)
  best: float | None = None
  for _ in range(config.num_refinements):
    columns = _pole_columns(pole, rows, places)
    columns -= (columns @ basis) @ basis.T
    left = y @ y - (columns @ y) ** 2 / np.einsum("gr,gr->g", columns, columns)
    if not np.isfinite(left).any():
      return best
    at = int(np.argmin(np.where(np.isfinite(left), left, np.inf)))
    best = float(places[at])
    places = np.linspace(places[max(at - 1, 0)], places[min(at + 1, len(places) - 1)], config.num_finer)
  return best
