"""Fractions of high degree that data meet exactly, or but for small errors: P(x) - y*Q(x) = 0 is linear.

`rationals` looks for few terms among low degrees and bears noise. Where a fraction is the law, a whole basis of
hundreds of monomials has one null vector, whatever the number of its terms, and what is not needed can be left out.
Where y is rounded the degrees of the law show as well, and `rational_fits` finds its terms among theirs.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses
import functools
import itertools
import math
from typing import ClassVar

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import DEFAULT, ExactFractionsConfig, SearchConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.language import expression, programs
from symformer_jax.language.expression import VARIABLE, Node, number, substitute, variable
from symformer_jax.language.rules import Rule
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.fractions import factoring, null_vectors, polynomials, rational_fits, rationals, views
from symformer_jax.sources.fractions.polynomials import Polynomial, Powers
from symformer_jax.sources.fractions.rational_bases import Basis
from symformer_jax.sources.fractions.rational_fits import Fraction
from symformer_jax.sources.fractions.rational_forms import sums_of_fractions, written
from symformer_jax.sources.fractions.views import View
from symformer_jax.sources.links import LINKS, Link
from symformer_jax.sources.stateless import Stateless

# What is looked for: fractions of the columns; of functions of them, and of columns where y has errors.
COLUMNS, VIEWS = LOOKS = ("columns", "views")
# Of one column views of so many functions and no more meet most smooth ones, in bases that are large enough.
_FEW_PARTS = 2
# Functions of y that are angles, which may be in degrees.
ARCS = ("asin", "acos", "atan")
# A cosine squared is 1 to rounding.
_NEAR = 1e-13
_SMALLEST = float(np.finfo(np.float64).tiny)


@dataclasses.dataclass(frozen=True)
class ExactFractions(Stateless):
  """Fractions of columns, and of functions of columns, for y and functions of y."""

  config: SearchConfig = DEFAULT
  name: str = "exact_fractions"
  # The columns alone, which take a hundredth of a second, then functions of them.
  turns: tuple[int, ...] = (1, 1)

  needs: ClassVar[tuple[str, ...]] = ("+", "*", "inv")

  def _nodes(self, question: Question, turn: int, num: int) -> list[Node]:
    task = question.task
    rows = task.rows.sample(self.config.exact_fractions.max_rows, seed=0)
    return fractions_of(rows, task.columns, rule=task.rule, config=self.config, looks=LOOKS[turn : turn + 1])


@np.errstate(all="ignore")  # what is not finite is left out
def fractions_of(
  rows: Rows, columns: Sequence[int], *, rule: Rule, config: SearchConfig = DEFAULT, looks: Sequence[str] = LOOKS
) -> list[Node]:
  """The fraction that y or a function of y is, in several forms; none where none is found.

  Args:
    rows: what is fitted; columns: of x, those that formulas are made of; rule: the formulas that count; looks: what is
    looked for, of `LOOKS`.
  """
  varies = rows.varying(columns)
  counts = rows.weights > 0
  x, y = rows.x[counts][:, varies], rows.y[counts]
  if not (varies and _is_usable(x, y)):
    return []
  inner = {i: variable(column) for i, column in enumerate(varies)}
  return _first(rows, y, _tables(x, y, config.exact_fractions, rule), inner, rule=rule, config=config, looks=looks)


@np.errstate(all="ignore")
def fractions_in(
  view: View, rows: Rows, *, num_monomials: int, rule: Rule, config: SearchConfig = DEFAULT
) -> list[Node]:
  """The same over one view of the rows, of so many monomials above and below the line at most."""
  counts = rows.weights > 0
  x, y = rows.x[counts], rows.y[counts]
  if not _is_usable(x, y):
    return []
  own = config.exact_fractions
  # Columns that are not in the view tell no rows apart.
  table = _Table(view, x, min(num_monomials, _most_by_rows(views.values(view, x), own)), own)
  look = COLUMNS if _is_plain(view) else VIEWS
  return _first(rows, y, [table], {}, rule=rule, config=config, looks=(look,))


def _most_by_rows(u: np.ndarray, config: ExactFractionsConfig) -> int:
  """Monomials of what has such values [N, D] for which there are rows enough."""
  return int(len(np.unique(u, axis=0)) / config.rows_per_column)


def _is_plain(view: View) -> bool:
  return all(part.node.token == VARIABLE for part in view)


def _is_usable(x: np.ndarray, y: np.ndarray) -> bool:
  return bool(np.all(np.isfinite(x)) and np.all(np.isfinite(y)) and np.ptp(y) > 0)


def _first(
  rows: Rows, y: np.ndarray, tables: "Iterable[_Table]", inner: Mapping[int, Node], *, rule: Rule, config: SearchConfig,
  looks: Sequence[str],
) -> list[Node]:
  """Of the first table of which y or a function of y is a fraction; or else what comes near.

  Args:
    y: of the rows that count [N]; inner: what stands for the tables' variables.
  """
  own = config.exact_fractions
  links = [link for link in map(LINKS.__getitem__, own.links)
           if link.is_defined(y) and all(map(rule.allows_operator, link.operators))]
  ways: list[Callable[[_Table, np.ndarray, SearchConfig, _Budget], list[Node]]] = [
    functools.partial(_of_link, link) for link in links]
  if np.min(y) < 0 < np.max(y) and rule.allows_operator("sqrt"):
    ways.append(_of_square)
  arcs = [functools.partial(_of_degrees, link) for link in (LINKS[name] for name in own.links if name in ARCS)
          if not link.is_defined(y) and link.is_defined(y * views.RADIANS)
          and all(map(rule.allows_operator, link.operators))]

  def usable(found: list[Node], table: _Table) -> list[Node]:
    nodes = (tidy(substitute(substitute(node, table.inner), inner)) for node in found)
    short = (node for node in dict.fromkeys(nodes) if programs.size(node) <= programs.MAX_TOKENS)
    return [node for node in short if np.isfinite(expression.evaluate(node, rows.x)).all() and rule(node)]

  budget = _Budget(own.max_work, own.max_eliminations)
  few = dataclasses.replace(config, exact_fractions=dataclasses.replace(own, max_bases=own.max_bases_of_one))
  near: list[Node] = []
  for table in tables:
    is_plain = _is_plain(table.view)
    if (not is_plain and VIEWS not in looks) or not budget.pays(table.work):  # its own part, for all functions of y
      break
    asked = (*ways, *(arcs if views.is_of_degrees(table.view) else ()))
    is_of_one = len(inner) == 1 and len(table.view) <= _FEW_PARTS
    for way in asked if table.is_usable and (not is_plain or COLUMNS in looks) else ():
      interruption.check()
      if not budget.pays(table.work):
        break
      if nodes := usable(way(table, y, few if is_of_one else config, budget), table):
        return nodes
    if is_plain and table.is_usable and VIEWS in looks:
      near = usable([node for link in links for node in _near(table, link, y, own)], table)
  return near


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
  """The columns themselves first, then the views, those of few columns first, whatever logarithms stand beside."""
  num_rows = _most_by_rows(x, config)
  place = min(x.shape[1], len(config.max_columns)) - 1
  yield _Table(views.plain(x.shape[1]), x, min(config.max_columns[place], num_rows), config)
  if not views.is_rounded(y, config.num_digits):
    some = views.views(x, config.views, rule.allows_operator)
    for view in sorted(some, key=lambda view: sum(not part.is_alone for part in view)):
      yield _Table(view, x, min(config.max_view_columns[place], num_rows), config)


class _Table:
  """Monomials of a view on the rows; z is a fraction of them where a combination of some is z times one of others.

  Attributes:
    monomials: by total degree; counts: of those up to each degree; values: [N, M]; sizes: what the view's columns are
      divided by [D'], u: these [N, D']; most: monomials above and below the line.
    some: rows on which angles are measured; above: an orthonormal basis of the monomials there.
  """

  def __init__(self, view: View, x: np.ndarray, most: int, config: ExactFractionsConfig):
    """Args: x: points [N, D]; most: monomials above and below the line."""
    self.view, self._config, self.most = view, config, most
    u = views.values(view, x)
    self.sizes = np.max(np.abs(u), axis=0)
    self.u = u / self.sizes
    degree = 0
    while (degree < config.max_degree and views.least_monomials(view, degree + 1) < most
           and len(views.monomials(view, degree + 1)) < most):
      degree += 1
    self.monomials = views.monomials(view, degree)
    totals = np.sum(self.monomials, axis=1)
    self.counts: list[int] = np.searchsorted(totals, np.arange(degree + 1), side="right").tolist()
    self.values = polynomials.table(self.monomials, self.u)
    self.is_usable = bool(np.all(np.isfinite(self.values)) and degree > 0)
    self.some = np.random.default_rng(0).permutation(len(x))[: int(config.rows_per_column * most) + 1]

  @functools.cached_property
  def above(self) -> np.ndarray:
    """Of a usable table; others are asked for none."""
    return np.linalg.qr(self.values[self.some])[0]

  @property
  def work(self) -> float:
    """Rows times columns squared, of what is done for one function of y."""
    return float(len(self.some) * len(self.monomials) ** 2)

  @property
  def inner(self) -> dict[int, Node]:
    """What stands for the variables of formulas over the view."""
    return {i: part.node for i, part in enumerate(self.view)}

  def exact_sizes(self, z: np.ndarray, root: np.ndarray | None = None) -> Iterator[tuple[int, int]]:
    """How many monomials stand above the line and how many below it where z [N] may be a fraction; few first, so that a
    basis that contains another comes after it. Root [N] of what each row counts, None where all count alike.

    The sine of the angle between the spaces falls a little with each degree where they come near, and to rounding in
    one leap where they meet.
    """
    angles = _Angles(self, z, root)
    if all(angles.sine(*each) >= self._config.least_sine for each in angles.largest()):
      return
    has_leapt = False
    for each in angles.degrees:
      if angles.sine(*each) < self._config.least_sine:
        has_leapt = has_leapt or angles.share(*each) < self._config.leap
        if has_leapt:
          yield angles.sizes(*each)

  def near_sizes(self, z: np.ndarray) -> list[tuple[int, int]]:
    """The same where z has errors: there the sine falls to their size in a smaller leap; the largest leaps."""
    angles = _Angles(self, z)
    shares = {each: angles.share(*each) for each in angles.degrees if sum(each) > 1}
    chosen = [each for each in sorted(shares, key=shares.__getitem__) if shares[each] < self._config.near_leap]
    return [angles.sizes(*each) for each in chosen[: self._config.num_near]]


class _Angles:
  """Between the space of the monomials up to a degree and that of z times those up to a degree.

  Attributes:
    degrees: above and below the line, few monomials first.
  """

  def __init__(self, table: _Table, z: np.ndarray, root: np.ndarray | None = None):
    """Args: z: [N]; root: of what each row counts [N], None where all count alike."""
    self._counts = table.counts
    own = np.ones(len(table.some)) if root is None else root[table.some]
    self._above = table.above if root is None else np.linalg.qr(own[:, None] * table.values[table.some])[0]
    self._below, _ = np.linalg.qr((own * z[table.some])[:, None] * table.values[table.some])
    self._cosines = self._above.T @ self._below
    pairs = [each for each in itertools.product(range(len(self._counts)), repeat=2) if any(each)]
    self.degrees = [each for each in sorted(pairs, key=lambda pair: sum(self.sizes(*pair)))
                    if sum(self.sizes(*each)) <= table.most]
    self.sine = functools.cache(self._sine)

  def sizes(self, above: int, below: int) -> tuple[int, int]:
    return self._counts[above], self._counts[below]

  def largest(self) -> list[tuple[int, int]]:
    """Degrees that no others contain."""
    some = set(self.degrees)
    return [(above, below) for above, below in self.degrees
            if (above + 1, below) not in some and (above, below + 1) not in some]

  def share(self, above: int, below: int) -> float:
    """What is left of the sine with one degree less."""
    before = [*([self.sine(above - 1, below)] if above else []), *([self.sine(above, below - 1)] if below else [])]
    return self.sine(above, below) / max(min(before), _SMALLEST)

  def _sine(self, above: int, below: int) -> float:
    """The least singular value of what projection leaves of one space on the other (Bjorck and Golub 1973), worked out
    where the cosine is 1 to rounding."""
    num_above, num_below = self.sizes(above, below)
    some = self._cosines[:num_above, :num_below]
    cosine = float(np.linalg.eigvalsh(some.T @ some)[-1])
    if cosine < 1 - _NEAR:
      return math.sqrt(1 - cosine)
    left = self._below[:, :num_below] - self._above[:, :num_above] @ some
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


def _of_degrees(link: Link, table: _Table, y: np.ndarray, config: SearchConfig, budget: _Budget) -> list[Node]:
  """The arc that y is in degrees, where columns are in degrees as well."""
  found = _of_link(link, table, y * views.RADIANS, config, budget)
  return [Node("*", (number(1 / views.RADIANS), node)) for node in found]


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


def _near(table: _Table, link: Link, y: np.ndarray, config: ExactFractionsConfig) -> list[Node]:
  """Fractions of the degrees at which the angle leaps, those that describe the function of y in the fewest nats."""
  z, slope = link.transform(y), link.derivative(y)
  size = float(np.max(np.abs(z)))
  weights = np.where(slope != 0, 1 / slope**2, 0.0)  # where y says nothing of its function
  weights = weights / np.max(weights)
  if not (np.isfinite(size) and np.ptp(z) > 0 and np.all(np.isfinite(weights))):
    return []
  num_rows, found = len(np.unique(table.u, axis=0)), []
  for num_above, num_below in table.near_sizes(z / size):
    interruption.check()
    basis = Basis(tuple(table.monomials[:num_above]), tuple(table.monomials[:num_below]),
                  (tuple(range(num_above + num_below)),))
    equation = rational_fits.Equation(
      basis, table.u, z / size, weights, rationals.points_between(table.u, config.near), config=config.near)
    for num_terms, fits in rational_fits.find(equation, config.near, num_rows=num_rows).items():
      fraction = fits[0].fraction(config.near.num_reweightings)
      if fraction.is_whole and num_terms <= config.near.max_terms:
        found.append((rational_fits.nats(fraction.error, num_terms, num_rows), fraction))
  found = sorted(found, key=lambda pair: pair[0])[: config.num_near]
  return [link.undo(node) for _, fraction in found for node in written(fraction, table.sizes, size, config=config.near)]


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
  root = _root_of_weights(z, config)
  for above, below in itertools.islice(table.exact_sizes(z, root), config.max_bases):
    interruption.check()
    budget.num_eliminations -= 1
    columns = np.concatenate([table.values[:, :above], -z[:, None] * table.values[:, :below]], axis=1)
    coefficients = null_vectors.find(columns if root is None else root[:, None] * columns, config.elimination)
    if coefficients is not None:
      coefficients = _reweighted(coefficients, columns, table.values[:, :below], root, config.num_reweightings)
      fraction = _fraction(table.monomials[:above], table.monomials[:below], coefficients, table.u, z, config, root)
      if fraction is not None:
        return fraction, size
  return None, size


def _reweighted(
  coefficients: np.ndarray, columns: np.ndarray, below: np.ndarray, root: np.ndarray | None, num_times: int
) -> np.ndarray:
  """Those of P - z*Q [M] for which P/Q is near z rather than P near z*Q: beside a pole that is another thing.

  Args:
    columns: of P, and of Q times -z [N, M]; below: those of Q [N, M']; root: of what each row counts [N].
  """
  terms = np.flatnonzero(coefficients)
  for _ in range(num_times):
    bottom = np.abs(below @ coefficients[-below.shape[1] :])
    if not np.all(bottom > 0):
      break
    some = columns[:, terms] * ((1.0 if root is None else root) / bottom)[:, None]
    sizes = np.linalg.norm(some, axis=0)
    if not np.all(np.isfinite(some / sizes)):
      break
    coefficients = np.zeros(len(coefficients))
    coefficients[terms] = np.linalg.svd(some / sizes, full_matrices=False)[2][-1] / sizes
  return coefficients


def _root_of_weights(z: np.ndarray, config: ExactFractionsConfig) -> np.ndarray | None:
  """Of rows of z [N], less the farther out they are; None where none is far: beside a pole it is a million times the
  others, which rounding would then be all of.
  """
  size = float(np.median(np.abs(z)))
  return 1 / np.hypot(1, z / size) if 0 < size * config.far < np.max(np.abs(z)) else None


def _fraction(
  above: Sequence[Powers], below: Sequence[Powers], coefficients: np.ndarray, u: np.ndarray, z: np.ndarray,
  config: ExactFractionsConfig, root: np.ndarray | None = None,
) -> Fraction | None:
  """What the coefficients stand for; None where that is no fraction, or not z."""
  top, bottom = ({powers: float(c) for powers, c in zip(some, part, strict=True) if c}
                 for some, part in zip((above, below), np.split(coefficients, [len(above)]), strict=True))
  if not (top and bottom):
    return None
  common = np.min([*top, *bottom], axis=0)
  top, bottom = ({tuple((np.array(powers) - common).tolist()): c for powers, c in each.items()}
                 for each in (top, bottom))
  weights = np.ones(len(z)) if root is None else root**2
  spread = np.average((z - np.average(z, weights=weights)) ** 2, weights=weights)
  errors = polynomials.values(top, u) / polynomials.values(bottom, u) - z
  error = float(np.average(errors**2, weights=weights) / spread)
  most = config.most_missed if root is None else config.most_missed_far
  return Fraction(top, bottom, error, True, True) if error < most else None
