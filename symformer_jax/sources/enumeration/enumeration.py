"""All short formulas without inner constants, and what two of them make with the outer ones: met in the middle.

`x**x + x - 1.9`, `13.2*x**3*sin(1/x**2)`, `sin(exp(x))/(x - 2.2)`, `cos(0.04*arctan(1/x)**2)`: a function of y is
a + b*F, with another formula G added to it, taken from it, or as its factor or divisor. Of F and G there are thousands;
of the values of each on few rows the direction is known once the constants are taken out, so that for every G the F is
found by looking it up, which tries some hundred million formulas in a fraction of a second. For exact data alone. A
second turn makes longer ones of sums, products, powers, exponentials and logarithms: `(1 + x**y)**(1/y - 1)`.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
import dataclasses
import itertools
from typing import ClassVar, NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import DEFAULT, EnumerationConfig, SearchConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.language import expression, identities, programs
from symformer_jax.language.expression import Node, number
from symformer_jax.language.rules import Rule
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.enumeration import formula_bank
from symformer_jax.sources.enumeration.formula_bank import Bank
from symformer_jax.sources.fractions import views
from symformer_jax.sources.links import LINKS, Link
from symformer_jax.sources.stateless import Stateless
from symformer_jax.sources.sums import terms


class Way(NamedTuple):
  """How a function z of y goes with another formula G: one that is a + b*F.

  Attributes:
    of: z and values of G -> what is a + b*F; slope: values of G -> what an error of that is in z.
    undo: a + b*F and G -> z.
    operators: what it takes; is_sum: whether G is a term, beside which y must be more than rounding.
  """

  of: Callable[[np.ndarray, np.ndarray], np.ndarray]
  slope: Callable[[np.ndarray], np.ndarray]
  undo: Callable[[Node, Node], Node]
  operators: tuple[str, ...] = ()
  is_sum: bool = False


WAYS: tuple[Way, ...] = (
  Way(np.multiply, np.reciprocal, lambda sum_, other: Node("*", (sum_, Node("inv", (other,)))), ("inv",)),
  Way(np.divide, np.positive, lambda sum_, other: Node("*", (sum_, other))),
  Way(np.subtract, np.ones_like, lambda sum_, other: Node("+", (sum_, other)), is_sum=True),
  Way(np.add, np.ones_like, lambda sum_, other: Node("+", (sum_, Node("*", (other, number(-1))))), is_sum=True),
)


class Match(NamedTuple):
  """A formula F of the bank that a function of y may be a + b*F of, or that with another one.

  Attributes:
    links: whose transforms come one after the other; place: of F.
    way, other: with which other formula, its place in the bank; None without.
  """

  links: tuple[Link, ...]
  place: int
  way: Way | None = None
  other: int = -1

  def length(self) -> tuple[int, int]:
    """By which they are sorted: the short formulas of a bank stand first."""
    return len(self.links), self.place + max(self.other, 0)


@dataclasses.dataclass(frozen=True)
class Enumeration(Stateless):
  """Formulas that data meet exactly, of all short ones without inner constants."""

  config: SearchConfig = DEFAULT
  name: str = "enumeration"

  needs: ClassVar[tuple[str, ...]] = ("+", "*")

  @property
  def turns(self) -> tuple[int, ...]:
    return self.config.enumeration.turns

  def _nodes(self, question: Question, turn: int, num: int) -> Sequence[Node]:
    task = question.task
    return formulas_of(task.fit_rows, task.columns, task.rule, self.config, has_few=turn > 0)[:num]


@np.errstate(all="ignore")  # what is not finite is left out
def formulas_of(
  rows: Rows, columns: Sequence[int], rule: Rule, config: SearchConfig = DEFAULT, *, has_few: bool = False
) -> list[Node]:
  """Formulas that the rows meet exactly, the short ones first.

  Args:
    rows: what is fitted; columns: of x, those that formulas are made of; rule: the formulas that count.
    has_few: whether they are made of few operators, and longer for that.
  """
  own = config.enumeration
  varies = rows.varying(columns)
  is_rounded = views.is_rounded(rows.y, config.exact_fractions.num_digits)
  places = formula_bank.drawn(rows, own.num_rows, least_weight=own.least_weight, most_beyond=own.most_beyond)
  if not 0 < len(varies) <= own.max_columns or len(places) < own.num_rows or is_rounded:
    return []
  if has_few:
    functions, numbers = own.few_functions, own.few_numbers
  else:
    functions, numbers = (*own.functions, *(own.functions_of_one if len(varies) == 1 else ())), own.numbers
  bank = Bank(rows.x[places], formula_bank.leaves_of(rows.x, varies),
              numbers=numbers, operators=operators_of(rule, functions), num_formulas=own.num_formulas,
              largest=own.largest)
  matches = itertools.islice(_Directions(bank, own).matches(rows.y[places], rule), own.num_matches)
  # The same formula comes with other last digits for each other one that it goes together with.
  found: dict[Hashable, tuple[float, Node]] = {}
  most = _most_missed(rows, varies, own)
  for match in sorted(matches, key=Match.length)[: own.num_checked]:
    interruption.check()
    for node in _fitted(match, bank, rows, own):
      if programs.size(node) <= programs.MAX_TOKENS and (error := _left(node, rows)) < most and rule(node):
        key = programs.skeleton(node)
        if key not in found or error < found[key][0]:
          found[key] = error, node
        break
  return sorted((node for _, node in found.values()), key=expression.complexity)


def _most_missed(rows: Rows, columns: Sequence[int], config: EnumerationConfig) -> float:
  """Share of y's variance that is rounding, of y or, where it bends so much that no other formula comes near, of the
  constants by which it was made.
  """
  scaled = [(rows.x[:, column] - np.mean(rows.x[:, column])) / np.ptp(rows.x[:, column]) for column in columns]
  powers = np.column_stack([each**power for each in scaled for power in range(1, config.degree + 1)])
  *factors, constant = terms.least_squares(powers, rows.y, rows.weights)
  beyond = np.average((powers @ factors + constant - rows.y) ** 2, weights=rows.weights)
  variance = _variance(rows)
  share = config.missed_if_bent if beyond > config.bent * variance else config.missed
  return float(share + (config.roundings * np.finfo(float).eps * np.max(np.abs(rows.y))) ** 2 / variance)


def _left(node: Node, rows: Rows) -> float:
  """Share of y's variance that a formula leaves."""
  errors = np.average((expression.evaluate(node, rows.x) - rows.y) ** 2, weights=rows.weights)
  return float(errors / _variance(rows))


def _variance(rows: Rows) -> float:
  return float(np.average((rows.y - np.average(rows.y, weights=rows.weights)) ** 2, weights=rows.weights))


def operators_of(rule: Rule, functions: Sequence[str]) -> list[formula_bank.Operator]:
  """What formulas of the rule may be made by."""
  some = [*formula_bank.OF_TWO, *map(formula_bank.FUNCTIONS.__getitem__, functions)]
  return [operator for operator in some if all(map(rule.allows_operator, operator.tokens))]


@np.errstate(all="ignore")
def _fitted(match: Match, bank: Bank, rows: Rows, config: EnumerationConfig) -> Iterator[Node]:
  """With the constants that fit all rows, first those that are 0 or 1 but for rounding as such.

  Rows count by what their error is in y: of 1/y one that is nearly 0 would decide all.
  """
  z, slopes = rows.y, np.ones_like(rows.y)
  for link in match.links:
    slopes = slopes / link.derivative(z)
    z = link.transform(z)
  inner = bank.node(match.place)
  values = expression.evaluate(inner, rows.x)
  if match.way is not None:
    other = expression.evaluate(bank.node(match.other), rows.x)
    z, slopes = match.way.of(z, other), slopes * match.way.slope(other)
  usable = np.isfinite(values) & np.isfinite(z) & np.isfinite(slopes)
  if np.sum(usable) < config.num_rows or not (largest := np.max(np.abs(slopes[usable]))):
    return
  z, values, weights = z[usable], values[usable], (rows.weights * (slopes / largest) ** 2)[usable]
  middle, level = (np.average(each, weights=weights) for each in (values, z))
  left = values - middle
  factor = float(np.average(left * (z - level), weights=weights) / np.average(left**2, weights=weights))
  constant = float(level - factor * middle)
  near = config.tolerance * np.max(np.abs(factor * values))
  plain = (1.0 if abs(factor - 1) < config.tolerance else factor, 0.0 if abs(constant) < near else constant)
  for some in dict.fromkeys([plain, (factor, constant)]):
    node = Node("+", (Node("*", (inner, number(some[0]))), number(some[1])))
    if match.way is not None:
      node = match.way.undo(node, bank.node(match.other))
    for link in reversed(match.links):
      node = link.undo(node)
    yield tidy(identities.to_single_fractions(tidy(node)))  # `x/(0.5*x + 0.25)` rather than `1/(0.25/x + 0.5)`


class _Directions:
  """Of all formulas of a bank what is left of their values once a constant and a factor are taken out."""

  def __init__(self, bank: Bank, config: EnumerationConfig):
    self._bank, self._config = bank, config
    num_rows = bank.values.shape[1]
    some = np.random.default_rng(1).normal(size=(num_rows, num_rows))
    some[:, 0] = 1
    self._basis = np.linalg.qr(some)[0][:, 1:]  # mixed, so that no single row decides the first of them
    directions, places = self._of(bank.values)
    _, first = np.unique(formula_bank.keys_of(directions), return_index=True)  # of x, x + 1 and 2*x the shortest
    first = first[np.argsort(directions[first, 0])]
    self._directions, self._places = directions[first], places[first]

  def matches(self, y: np.ndarray, rule: Rule) -> Iterator[Match]:
    """Those of y [R]."""
    config, bank = self._config, self._bank
    allowed = {name: LINKS[name] for name in {*config.links, *config.links_of_two}
               if all(map(rule.allows_operator, LINKS[name].operators))}

    def transformed(z: np.ndarray, names: Sequence[str]) -> Iterator[tuple[Link, np.ndarray]]:
      for link in (allowed[name] for name in names if name in allowed):
        if link.is_defined(z) and np.all(np.isfinite(made := link.transform(z))):
          yield link, made

    for first, z in transformed(y, config.links):
      chains = [((first,), z), *(((first, second), twice) for second, twice in transformed(z, config.links)
                                 if first is not LINKS["y"] and second not in (LINKS["y"], first)
                                 and not np.allclose(twice, y))]
      some = np.stack([z for _, z in chains])
      for which, place in self._found(some, np.ones_like(some), np.ptp(some, axis=1)):
        yield Match(chains[which][0], place)
    others = bank.values[: config.num_others]
    sizes = np.where(np.ptp(others, axis=1) > 0, np.max(np.abs(others), axis=1), np.nan)
    for link, z in transformed(y, config.links_of_two):
      for way in (way for way in WAYS if all(map(rule.allows_operator, way.operators))):
        interruption.check()
        most = np.ptp(z) / config.least_share if way.is_sum else np.inf
        usable = np.flatnonzero(sizes <= most)
        some = others[usable]
        for other, place in self._found(way.of(z, some), way.slope(some), np.full(len(some), np.ptp(z))):
          yield Match((link,), place, way, int(usable[other]))

  def _found(self, values: np.ndarray, slopes: np.ndarray, sizes: np.ndarray) -> Iterator[tuple[int, int]]:
    """`(place in values, place in the bank)` where one is a + b times the other.

    Args:
      values: [M', R]; slopes: what an error there is of z [M', R], sizes: of z [M'].
    """
    config = self._config
    directions, places = self._of(values)
    target, known = directions[:, 0], self._directions[:, 0]
    width, nearest = config.tolerance * (1 + np.abs(target)), np.searchsorted(known, target)
    low = np.maximum(np.searchsorted(known, target - width), nearest - config.most_alike // 2)
    num = np.minimum(np.searchsorted(known, target + width), nearest + config.most_alike // 2) - low
    mine = np.repeat(np.arange(len(places)), num)
    theirs = np.arange(len(mine)) - np.repeat(np.cumsum(num) - num, num) + low[mine]
    errors = _errors(values[places[mine]], self._bank.values[self._places[theirs]], slopes[places[mine]])
    is_same = errors < config.tolerance * sizes[places[mine]]
    yield from zip(places[mine[is_same]].tolist(), self._places[theirs[is_same]].tolist(), strict=True)

  def _of(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`(directions [M', R - 2], places [M'])` of values [M, R]; not of those whose constant is nearly all."""
    left = values @ self._basis
    directions = left[:, 1:] / left[:, :1]
    least = self._config.least_share * np.max(np.abs(values), axis=1)
    is_known = (np.abs(left[:, 0]) > least) & np.all(np.isfinite(directions), axis=1)
    return directions[is_known], np.flatnonzero(is_known)


def _errors(values: np.ndarray, others: np.ndarray, slopes: np.ndarray) -> np.ndarray:
  """The largest error of a + b*other [K], slopes being what rows of values [K, R] count."""
  total = np.sum(slopes**2, axis=1, keepdims=True)
  some, other = (each - np.sum(slopes**2 * each, axis=1, keepdims=True) / total for each in (values, others))
  products = np.sum(slopes**2 * some * other, axis=1, keepdims=True)
  factors = products / np.sum((slopes * other) ** 2, axis=1, keepdims=True)
  return np.max(np.abs(slopes * (some - factors * other)), axis=1)
