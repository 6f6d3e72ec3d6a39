"""Fractions of several columns and transcendental functions of them, exact data:
`(1 - exp(-(x + y)*z))/(1 + y/x*exp(-(x + y)*z))`, `x*y/(z - x)*(exp(-x*w) - exp(-z*w))`.

With E one of up to 2000 functions without constants of their own (`transcendents`), or two, and P and Q polynomials
of low degree in the columns and E, P - y*Q = 0 is linear in all coefficients: where E is right, the space of P and that
of y*Q meet, and the angle between them (Bjorck and Golub 1973) is rounding. So one decomposition of P for each E asks
for y and functions of y, among them y to the power of a column and a column to the power of y; which fraction it is
`exact_fractions` finds. In the place of columns that may be angles stand their sines and cosines.
"""

from collections.abc import Callable, Iterator, Sequence
import dataclasses
import functools
import itertools
from typing import ClassVar, NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import DEFAULT, SearchConfig, TranscendentalFractionsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import Task
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, power, variable
from symformer_jax.language.rules import Rule
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.fractions import exact_fractions, polynomials, transcendents, views
from symformer_jax.sources.fractions.rational_bases import all_up_to
from symformer_jax.sources.fractions.transcendents import Transcendent
from symformer_jax.sources.fractions.views import Part, View
from symformer_jax.sources.links import LARGEST_EXPONENT, LINKS
from symformer_jax.sources.stateless import Stateless
from symformer_jax.sources.sums import pair_sums

# What is looked for: none beside columns and angles, then one function beside the columns; two; one beside an angle.
SINGLE, PAIRS, BESIDE_AN_ANGLE = LOOKS = ("single", "pairs", "beside_an_angle")
# Of so many functions and more what they leave at the median is typical.
_MANY = 16


@dataclasses.dataclass(frozen=True)
class TranscendentalFractions(Stateless):
  """Fractions in the columns and one function of them, then two, that data meet exactly."""

  config: SearchConfig = DEFAULT
  name: str = "transcendental_fractions"

  needs: ClassVar[tuple[str, ...]] = ("+", "*", "inv")

  @property
  def turns(self) -> tuple[int, ...]:
    return self.config.transcendental_fractions.turns

  def supports(self, task: Task) -> bool:
    return super().supports(task) and 2 <= len(task.columns) <= self.config.transcendental_fractions.max_columns

  def _nodes(self, question: Question, turn: int, num: int) -> Sequence[Node]:
    task = question.task
    part, look = divmod(turn, len(LOOKS))
    found = fractions_of(task.fit_rows, task.columns, task.rule, self.config, look=LOOKS[look], part=part)
    return pair_sums.allowed(found, task, num, self.config.terms)


@np.errstate(all="ignore")  # what is not finite is left out
def fractions_of(
  rows: Rows, columns: Sequence[int], rule: Rule, config: SearchConfig = DEFAULT, *, look: str = SINGLE, part: int = 0
) -> list[Node]:
  """Forms of the first fraction that the rows meet; none where none is found.

  Args:
    rows: what is fitted; columns: of x, those that formulas are made of; rule: the formulas that count.
    look: of `LOOKS`; part: which of the functions, of as many as a turn has time for; of one function beside three
      columns and more the first part is of low degrees, the others of higher ones; of many columns one comes before
      it that is empty.
  """
  own = config.transcendental_fractions
  varies = rows.varying(columns)
  is_rounded = views.is_rounded(rows.y, config.exact_fractions.num_digits)
  if not 2 <= len(varies) <= own.max_columns or np.ptp(rows.y) == 0 or is_rounded:
    return []
  part -= len(varies) > own.max_columns_at_first
  if part < 0:
    return []
  some = rows.sample(own.max_rows, seed=0)
  begins_low = look != PAIRS and len(varies) > 2
  is_low = look == PAIRS or (begins_low and part == 0)
  work = (max(part - begins_low, 0) + 1) * own.max_work
  for base, functions, links in _asked(some, varies, rule, own, look):
    interruption.check()
    table = _Table(some, varies, base, len(functions[0].nodes), links, rule, own, is_low=is_low)
    if not table.is_usable:
      continue
    last, first = int(work / table.work), int(max(work - own.max_work, 0) / table.work)
    work -= len(functions[:last]) * table.work
    functions = functions[first:last]
    for way, each in table.near(functions) if functions else ():
      interruption.check()
      if found := _written(rows, (*base, *table.parts(each)), way, table.num_monomials, rule, config):
        return found
  return []


def _asked(
  rows: Rows, columns: Sequence[int], rule: Rule, config: TranscendentalFractionsConfig, look: str
) -> Iterator[tuple[View, list[Transcendent], tuple[str, ...]]]:
  """What stands in the place of the columns, functions beside it, and functions of y."""
  plain = [variable(column) for column in columns]
  are_angles = rule.allows_operator("sin") and rule.allows_operator("cos")
  angles = {column: made for column in columns if are_angles and (made := views.angle(rows.x[:, column], column))}

  def view(turned: Sequence[int]) -> View:
    kept = tuple(Part(variable(column)) for column in columns if column not in turned)
    is_many = len(kept) >= config.linear_from
    waves = (part for column in turned for part in angles[column])
    return (*(part._replace(is_linear=is_many) for part in kept), *waves)

  def beside(some: Sequence[Node], num: int) -> list[Transcendent]:
    candidates = transcendents.Candidates(rows.x, some, config.transcendents, rule.allows_operator)
    return candidates.single() if num == 1 else candidates.pairs()

  if look == SINGLE:
    for size in range(len(angles) + 1):
      for turned in itertools.combinations(angles, size):
        yield view(turned), [Transcendent((), np.zeros((len(rows), 0)))], config.links_of_angles
  if look in (SINGLE, PAIRS) and (functions := beside(plain, 1 + LOOKS.index(look))):
    yield view(()), functions, config.links
  for column in angles if look == BESIDE_AN_ANGLE else ():
    others = [node for node, other in zip(plain, columns, strict=True) if other != column]
    if functions := beside(others, 1):
      yield view([column]), functions, config.links


# Functions of y and a formula of the columns, by what undoes them.
_TARGETS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
  "pow": lambda y, by: y**by, "ln": lambda y, by: np.exp(by * y), "pow2": lambda y, by: np.sqrt(by * y)}


class Way(NamedTuple):
  """A function of y that may be a fraction.

  Attributes:
    values: of it [N], of median size 1; link: its name.
    token, by: or else y**by, exp(by*y) or sqrt(by*y), of a formula of the columns, by what undoes it.
  """

  values: np.ndarray
  link: str = "y"
  token: str = ""
  by: Node | None = None

  def of(self, rows: Rows) -> Rows:
    """With y**by, exp(by*y) or sqrt(by*y) as the target."""
    if self.by is None:
      return rows
    by = expression.evaluate(self.by, rows.x)
    return dataclasses.replace(rows, y=_TARGETS[self.token](rows.y, by))

  def undo(self, node: Node) -> Node:
    """y of the fraction that this target is."""
    if self.by is None:
      return node
    inverse = Node("inv", (self.by,))
    if self.token == "pow":
      return tidy(power(node, inverse))
    return tidy(Node("*", (Node(self.token, (node,)), inverse)))


def _written(rows: Rows, view: View, way: Way, num_monomials: int, rule: Rule, config: SearchConfig) -> list[Node]:
  """Which fraction the function of y is. Columns asked for and y's dimension are those of y, not of y**by."""
  inner = rule if way.by is None else dataclasses.replace(rule, required=frozenset(), dimensions=None)
  own = dataclasses.replace(config.exact_fractions, links=(way.link,))
  found = exact_fractions.fractions_in(
    view, way.of(rows.sample(own.max_rows, seed=0)), num_monomials=num_monomials, rule=inner,
    config=dataclasses.replace(config, exact_fractions=own))
  return [node for node in map(way.undo, found) if rule(node) and np.isfinite(expression.evaluate(node, rows.x)).all()]


class _Table:
  """Monomials of columns and functions, up to the highest degrees for which there are rows.

  Attributes:
    ways: the functions of y at the rows that are looked at; is_usable: whether there are rows enough, and ways.
    num_monomials: above and below the line.
  """

  def __init__(self, rows: Rows, columns: Sequence[int], base: View, num_functions: int, links: Sequence[str],
               rule: Rule, config: TranscendentalFractionsConfig, *, is_low: bool = False):
    """Args:
      base: what stands for the columns; num_functions: F, of each asked; links: names of functions of y.
      is_low: whether degrees are the low ones.
    """
    self._config, self._num_columns = config, len(base)
    # Two functions stand in no squares, one in no cube.
    self._most_of_function = 1 if num_functions > 1 else 2
    self._linear = (*(part.is_linear for part in base), *((num_functions > 1,) * num_functions))
    self._degree_of_links = config.degrees_of_links[min(len(columns), len(config.degrees_of_links) + 1) - 2]
    # Rows that differ in other columns alone are one to a formula.
    different = np.sort(np.unique(rows.x[:, columns], axis=0, return_index=True)[1])
    has_rows = self._choose_degrees(config.low_degrees if is_low else config.degrees, len(different))
    self._some = np.random.default_rng(0).permutation(different)[: self._num_rows]
    looked_at = Rows(rows.x[self._some], rows.y[self._some], rows.weights[self._some])
    values = views.values(base, looked_at.x)
    self._u = values / np.max(np.abs(values), axis=0)
    self._root = 1 / np.hypot(1, looked_at.y / (np.median(np.abs(looked_at.y)) or 1.0))
    self.ways = list(self._ways(looked_at, columns, links, rule))
    self.is_usable = bool(has_rows and self.ways and np.all(np.isfinite(self._u)))

  @property
  def work(self) -> float:
    """Rows times monomials squared, for one function."""
    squares = len(self._above) ** 2 + sum(len(self._below_of(way)) ** 2 for way in self.ways)
    return float(len(self._some) * squares)

  def parts(self, functions: Transcendent) -> View:
    return tuple(Part(node, is_linear=self._linear[-1]) for node in functions.nodes)

  def _choose_degrees(self, some: Sequence[tuple[int, int]], num_rows: int) -> bool:
    """Whether there are rows for any."""
    for degrees in some:
      self._above, self._below = (_powers(self._linear, self._num_columns, self._most_of_function, each)
                                  for each in degrees)
      self.num_monomials = len(self._above) + len(self._below)
      self._num_rows = int(self._config.rows_per_column * self.num_monomials) + self._config.more_rows
      if self._num_rows <= num_rows and self.num_monomials <= self._config.max_monomials:
        return True
    return False

  def _ways(self, rows: Rows, columns: Sequence[int], links: Sequence[str], rule: Rule) -> Iterator[Way]:
    """Of these rows; beside functions of columns fewer."""
    has_all = len(self._linear) == self._num_columns
    for name in links:
      if LINKS[name].is_defined(rows.y) and all(map(rule.allows_operator, LINKS[name].operators)):
        yield from _if_usable(Way(LINKS[name].transform(rows.y), name))
    for column, token in itertools.product(map(variable, columns), _TARGETS):
      inverse, logarithm = Node("inv", (column,)), Node("ln", (column,))
      every = {"pow": (column, inverse), "ln": (column, inverse, logarithm), "pow2": (column, inverse)}[token]
      some = every if has_all else every[: token == "pow"]
      for by in some if rule.allows_operator(token) else ():
        target = _TARGETS[token](rows.y, expression.evaluate(by, rows.x))
        sizes = np.log(np.abs(target))
        if token == "pow2" or (np.ptp(sizes) < self._config.most_growth and np.max(np.abs(sizes)) < LARGEST_EXPONENT):
          yield from _if_usable(Way(target, token=token, by=by))

  def near(self, some: Sequence[Transcendent]) -> list[tuple[Way, Transcendent]]:
    """Those that seem to be met, the nearest first."""
    sines = []
    for start in range(0, len(some), self._config.chunk):
      chunk = some[start : start + self._config.chunk]
      sines.append(self._sines(np.stack([each.values[self._some] for each in chunk])))
    found = np.concatenate(sines)
    typical = np.median(found, axis=0) if len(some) >= _MANY else 1.0
    is_met = (found < self._config.least_sine) & (found < self._config.leap * typical)
    # What meets whatever is asked is few rows that are all there is of a function.
    is_met &= (len(self.ways) == 1) | ~np.all(found < self._config.least_sine, axis=1, keepdims=True)
    places = sorted(np.argwhere(is_met).tolist(), key=lambda place: float(found[tuple(place)]))
    return [(self.ways[way], some[k]) for k, way in places[: self._config.num_looked_at]]

  def _sines(self, functions: np.ndarray) -> np.ndarray:
    """Between the space of P and that of each function of y times Q: [K, W], for functions [K, N, F]."""
    root = self._root * np.prod(np.hypot(1, functions), axis=-1) ** -float(self._most_of_function)
    above, below = (root[..., None] * self._monomials(powers, of_columns, functions)
                    for powers, of_columns in zip((self._above, self._below), self._of_columns, strict=True))
    explaining = np.linalg.qr(above)[0]
    sines = []
    for way in self.ways:
      interruption.check()
      left = np.linalg.qr(below[..., : len(self._below_of(way))] * way.values[:, None])[0]
      for _ in range(2):  # the second time takes away what rounding left
        left = left - explaining @ (np.swapaxes(explaining, -1, -2) @ left)
      sines.append(np.linalg.svd(np.where(np.isfinite(left), left, 1.0), compute_uv=False)[:, -1])
    return np.stack(sines, axis=-1)

  def _below_of(self, way: Way) -> np.ndarray:
    """Monomials below the line: beside functions fewer where it is not y itself."""
    is_itself = way.link == "y" and way.by is None
    has_all = is_itself or len(self._linear) == self._num_columns
    return self._below if has_all else self._below[np.sum(self._below, axis=1) <= self._degree_of_links]

  @functools.cached_property
  def _of_columns(self) -> tuple[np.ndarray, ...]:
    """What of the monomials above and below the line is of columns [N, M]."""
    return tuple(polynomials.table(tuple(map(tuple, powers[:, : self._num_columns].tolist())), self._u)
                 for powers in (self._above, self._below))

  def _monomials(self, powers: np.ndarray, of_columns: np.ndarray, functions: np.ndarray) -> np.ndarray:
    """[K, N, M] for functions [K, N, F]."""
    found = np.tile(of_columns, (len(functions), 1, 1))
    for place, exponents in enumerate(powers[:, self._num_columns :].T.astype(int)):
      found *= (functions[..., place, None] ** np.arange(np.max(exponents) + 1))[..., exponents]
    return found


def _if_usable(way: Way) -> Iterator[Way]:
  size = float(np.median(np.abs(way.values)))
  if np.all(np.isfinite(way.values)) and np.ptp(way.values) > 0 and size > 0:
    yield way._replace(values=way.values / size)


@functools.lru_cache(maxsize=256)  # of six angles there are 64 tables, of seven kinds
def _powers(linear: tuple[bool, ...], num_columns: int, most_of_function: int, degree: int) -> np.ndarray:
  """Exponents of the monomials up to a total degree [M, D + F]."""
  some = np.array(all_up_to(len(linear), degree))
  is_column = np.arange(len(linear)) < num_columns
  return some[np.all(some <= np.where(linear, 1, np.where(is_column, degree, most_of_function)), axis=1)]
