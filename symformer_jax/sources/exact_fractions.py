"""Fractions of high degree that data without errors meet exactly: P(x) - y*Q(x) = 0 is linear in all coefficients.

`rationals` looks for few terms among low degrees and bears noise. Where a fraction is the law, a whole basis of
hundreds of monomials has one null vector, whatever the number of its terms, and what is not needed can be left out.
"""

from collections.abc import Callable, Iterator, Sequence
import dataclasses
import functools
import itertools
import math
from typing import Any

import jax
import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, ExactFractionsConfig, SearchConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Proposal, Question
from symformer_jax.engine.task import Task
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, number, substitute, variable
from symformer_jax.language.rules import Rule
from symformer_jax.language.tidy import tidy
from symformer_jax.sources import factoring, null_vectors, polynomials, views
from symformer_jax.sources.links import LINKS, Link
from symformer_jax.sources.polynomials import Polynomial, Powers
from symformer_jax.sources.rational_fits import Fraction
from symformer_jax.sources.rational_forms import sums_of_fractions, written
from symformer_jax.sources.views import View

# A cosine squared is 1 to rounding.
_NEAR = 1e-13


@dataclasses.dataclass(frozen=True)
class ExactFractions:
  """Fractions of columns, and of functions of columns, for y and functions of y."""

  config: SearchConfig = DEFAULT
  name: str = "exact_fractions"
  turns: tuple[int, ...] = (1,)

  def supports(self, task: Task) -> bool:
    return all(task.rule.allows_operator(token) for token in ("+", "*", "inv"))

  def init(self, task: Task, key: jax.Array) -> Any:
    return None

  def propose(self, questions: Sequence[Question], *, turn: int, num: int, clock: Clock) -> list[Proposal]:
    with clock.measure("recombine"):
      return [Proposal(nodes=tuple(fractions_of(
        question.task.rows.sample(self.config.exact_fractions.max_rows, seed=0), question.task.columns,
        rule=question.task.rule, config=self.config)))
        for question in questions]


@np.errstate(all="ignore")  # what is not finite is left out
def fractions_of(
  rows: Rows, columns: Sequence[int], *, rule: Rule, config: SearchConfig = DEFAULT
) -> list[Node]:
  """The fraction that y or a function of y is, in several forms; none where none is found.

  Args:
    rows: what is fitted; columns: of x, those that formulas are made of; rule: the formulas that count.
  """
  own = config.exact_fractions
  varies = [column for column in columns if np.ptp(rows.x[:, column]) > 0]
  counts = rows.weights > 0
  x, y = rows.x[counts][:, varies], rows.y[counts]
  if not (varies and np.all(np.isfinite(x)) and np.all(np.isfinite(y)) and np.ptp(y) > 0):
    return []
  links = [link for link in map(LINKS.__getitem__, own.links)
           if link.is_defined(y) and all(map(rule.allows_operator, link.operators))]
  inner = {i: variable(column) for i, column in enumerate(varies)}
  ways: list[Callable[[_Table, np.ndarray, SearchConfig, _Budget], list[Node]]] = [
    functools.partial(_of_link, link) for link in links]
  if np.min(y) < 0 < np.max(y) and rule.allows_operator("sqrt"):
    ways.append(_of_square)
  budget = _Budget(own.max_work, own.max_eliminations)
  for table in _tables(x, y, own, rule):
    if not budget.pays(table.work):  # its own part, done for all functions of y
      return []
    for way in ways if table.is_usable else ():
      interruption.check()
      if not budget.pays(table.work):
        return []
      found = [substitute(substitute(node, table.inner), inner) for node in way(table, y, config, budget)]
      nodes = [node for node in map(tidy, found) if np.isfinite(expression.evaluate(node, rows.x)).all()]
      if nodes := list(filter(rule, dict.fromkeys(nodes))):
        return nodes
  return []


@dataclasses.dataclass
class _Budget:
  """What may still be spent on one data set: rows times columns squared, and eliminations, which take far longer. Where
  columns hardly vary every function is nearly a fraction, and elimination is asked again and again."""

  work: float
  num_eliminations: int

  def pays(self, work: float) -> bool:
    self.work -= work
    return self.work > 0 and self.num_eliminations > 0


def _tables(x: np.ndarray, y: np.ndarray, config: ExactFractionsConfig, rule: Rule) -> "Iterator[_Table]":
  """The columns themselves first, then the views, those of few columns first."""
  num_rows = int(len(np.unique(x, axis=0)) / config.rows_per_column)
  place = min(x.shape[1], len(config.max_columns)) - 1
  yield _Table(views.plain(x.shape[1]), x, min(config.max_columns[place], num_rows), config)
  if not views.is_rounded(y, config.num_digits):
    for view in sorted(views.views(x, config.views, rule.allows_operator), key=len):
      yield _Table(view, x, min(config.max_view_columns[place], num_rows), config)


class _Table:
  """Monomials of a view on the rows; z is a fraction of them where a combination of some is z times one of others.

  Attributes:
    monomials: by total degree; values: [N, M]; sizes: what the view's columns are divided by [D'], u: these [N, D'].
  """

  def __init__(self, view: View, x: np.ndarray, most: int, config: ExactFractionsConfig):
    """Args: x: points [N, D]; most: monomials above and below the line."""
    self.view, self._config, self._most = view, config, most
    u = views.values(view, x)
    self.sizes = np.max(np.abs(u), axis=0)
    self.u = u / self.sizes
    degree = 0
    while (degree < config.max_degree and views.least_monomials(view, degree + 1) < most
           and len(views.monomials(view, degree + 1)) < most):
      degree += 1
    self.monomials = views.monomials(view, degree)
    self._counts = np.searchsorted(np.sum(self.monomials, axis=1), np.arange(degree + 1), side="right").tolist()
    self.values = polynomials.table(self.monomials, self.u)
    self.is_usable = bool(np.all(np.isfinite(self.values)) and degree > 0)
    self._some = np.random.default_rng(0).permutation(len(x))[: int(config.rows_per_column * most) + 1]
    self._above = np.linalg.qr(self.values[self._some])[0] if self.is_usable else self.values

  @property
  def work(self) -> float:
    """Rows times columns squared, of what is done for one function of y."""
    return float(len(self._some) * len(self.monomials) ** 2)

  @property
  def inner(self) -> dict[int, Node]:
    """What stands for the variables of formulas over the view."""
    return {i: part.node for i, part in enumerate(self.view)}

  def degrees(self, z: np.ndarray) -> Iterator[tuple[int, int]]:
    """How many monomials stand above the line and how many below it where z [N] may be a fraction; few first, so that a
    basis that contains another comes after it.

    The sine of the angle between the spaces falls a little with each degree where they come near, and to rounding in
    one leap where they meet.
    """
    under, _ = np.linalg.qr(z[self._some, None] * self.values[self._some])
    cosines = self._above.T @ under
    degrees = range(len(self._counts))
    sizes = {(above, below): self._counts[above] + self._counts[below]
             for above, below in itertools.product(degrees, repeat=2) if above}
    allowed = [each for each, size in sorted(sizes.items(), key=lambda pair: pair[1]) if size <= self._most]
    largest = [(above, below) for above, below in allowed
               if (above + 1, below) not in allowed and (above, below + 1) not in allowed]

    @functools.cache
    def sine(above: int, below: int) -> float:
      return self._sine(under, cosines, self._counts[above], self._counts[below])

    if all(sine(*each) >= self._config.least_sine for each in largest):
      return
    has_leapt = False
    for above, below in allowed:
      if (here := sine(above, below)) < self._config.least_sine:
        before = [sine(above - 1, below), *([sine(above, below - 1)] if below else [])]
        has_leapt = has_leapt or here < self._config.leap * min(before)
        if has_leapt:
          yield self._counts[above], self._counts[below]

  def _sine(self, under: np.ndarray, cosines: np.ndarray, num_above: int, num_below: int) -> float:
    """Of the angle between the spaces of the first monomials: the least singular value of what projection leaves of one
    on the other (Bjorck and Golub 1973), worked out where the cosine is 1 to rounding."""
    some = cosines[:num_above, :num_below]
    cosine = float(np.linalg.eigvalsh(some.T @ some)[-1])
    if cosine < 1 - _NEAR:
      return math.sqrt(1 - cosine)
    left = under[:, :num_below] - self._above[:, :num_above] @ some
    return float(np.linalg.svd(left, compute_uv=False)[-1])


def _of_link(link: Link, table: _Table, y: np.ndarray, config: SearchConfig, budget: _Budget) -> list[Node]:
  """Forms of the fraction that a function of y is, over the view's columns."""
  z = link.transform(y)
  fraction, size = _fraction_for(table, z, config.exact_fractions, budget)
  if fraction is None:
    return []
  made = [*sums_of_fractions(fraction, table.u, z / size, np.ones(len(z)), table.sizes, size, config.rationals),
          *written(fraction, table.sizes, size, config=config.rationals)]
  if not any(part.is_alone for part in table.view):  # sums of logarithms stay sums
    factored = factoring.quotient(*_in_units(fraction, table, size), config.exact_fractions.factoring)
    made = made if factored is None else [factored, *made]
  roots = _root(fraction, table, size, y, config.exact_fractions) if link is LINKS["sqrt"] else []
  return [*roots, *map(link.undo, made)]


def _of_square(table: _Table, y: np.ndarray, config: SearchConfig, budget: _Budget) -> list[Node]:
  """The root of the fraction that y**2 is, for a y of both signs: what divides it twice stands before the root."""
  fraction, size = _fraction_for(table, y**2, config.exact_fractions, budget)
  return [] if fraction is None else _root(fraction, table, size, y, config.exact_fractions)


def _root(
  fraction: Fraction, table: _Table, size: float, y: np.ndarray, config: ExactFractionsConfig
) -> list[Node]:
  """The root of a fraction, with the signs of y; none where its factors are not known or have other signs."""
  node = factoring.root(*_in_units(fraction, table, size), config.factoring)
  if node is None:
    return []
  signs = np.sign(expression.evaluate(node, table.u * table.sizes)) * np.sign(y)
  signs = signs[signs != 0]
  return [tidy(Node("*", (node, number(float(signs[0])))))] if len(signs) and np.all(signs == signs[0]) else []


def _in_units(fraction: Fraction, table: _Table, size: float) -> tuple[Polynomial, Polynomial]:
  """Numerator and denominator over the view's columns, of y."""
  above = {powers: c * size for powers, c in polynomials.rescaled(fraction.numerator, table.sizes).items()}
  return above, polynomials.rescaled(fraction.denominator, table.sizes)


def _fraction_for(
  table: _Table, z: np.ndarray, config: ExactFractionsConfig, budget: _Budget
) -> tuple[Fraction | None, float]:
  """`(fraction, size)`: of z divided by its size; None where no basis has a null vector that is one."""
  size = float(np.max(np.abs(z)))
  if not (np.isfinite(size) and np.ptp(z) > 0):
    return None, size
  z = z / size
  for above, below in itertools.islice(table.degrees(z), config.max_bases):
    interruption.check()
    budget.num_eliminations -= 1
    columns = np.concatenate([table.values[:, :above], -z[:, None] * table.values[:, :below]], axis=1)
    coefficients = null_vectors.find(columns, config.elimination)
    if coefficients is not None:
      fraction = _fraction(table.monomials[:above], table.monomials[:below], coefficients, table.u, z, config)
      if fraction is not None:
        return fraction, size
  return None, size


def _fraction(
  above: Sequence[Powers], below: Sequence[Powers], coefficients: np.ndarray, u: np.ndarray, z: np.ndarray,
  config: ExactFractionsConfig,
) -> Fraction | None:
  """What the coefficients stand for; None where that is no fraction, or not z."""
  top, bottom = ({powers: float(c) for powers, c in zip(some, part, strict=True) if c}
                 for some, part in zip((above, below), np.split(coefficients, [len(above)]), strict=True))
  if not (top and bottom):
    return None
  common = np.min([*top, *bottom], axis=0)
  top, bottom = ({tuple((np.array(powers) - common).tolist()): c for powers, c in each.items()}
                 for each in (top, bottom))
  error = float(np.mean((polynomials.values(top, u) / polynomials.values(bottom, u) - z) ** 2) / np.var(z))
  return Fraction(top, bottom, error, True, True) if error < config.most_missed else None
