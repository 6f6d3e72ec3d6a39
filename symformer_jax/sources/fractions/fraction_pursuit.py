"""Fractions of a few columns of a library, for y with errors and functions of it: `x*y/(1 + x*y*z + w*v)`,
`1 - exp(-x*y**z)`, `x*y**z*exp(-w*y)`.

Exact data tell a fraction by a null vector of hundreds of monomials; where y has errors the few terms that it has must
be found among these. They are products of powers of up to three columns, then also functions of columns without
constants of their own (`transcendents`), alone, times and over a column; `term_pursuit` chooses among them.
"""

from collections.abc import Iterator, Sequence
import dataclasses
import itertools
import math
from typing import ClassVar, NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import DEFAULT, FractionPursuitConfig, SearchConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import Task
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, inverse, number, plus, power, times, variable
from symformer_jax.language.rules import Rule
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.fractions import transcendents
from symformer_jax.sources.fractions.term_pursuit import Pursuit, Terms
from symformer_jax.sources.links import LINKS, Link
from symformer_jax.sources.stateless import Stateless
from symformer_jax.sources.sums import pair_sums

# Columns that agree in so many digits on so many rows are one.
_DIGITS, _NUM_COMPARED = 9, 8
_SMALLEST = float(np.finfo(np.float64).tiny)


@dataclasses.dataclass(frozen=True)
class FractionPursuit(Stateless):
  """Fractions of products of powers, then of these and functions of columns."""

  config: SearchConfig = DEFAULT
  name: str = "fraction_pursuit"

  needs: ClassVar[tuple[str, ...]] = ("+", "*", "inv")

  @property
  def turns(self) -> tuple[int, ...]:
    return self.config.fraction_pursuit.turns

  def supports(self, task: Task) -> bool:
    return super().supports(task) and 2 <= len(task.columns) <= self.config.fraction_pursuit.max_columns

  def _nodes(self, question: Question, turn: int, num: int) -> Sequence[Node]:
    task, config = question.task, self.config.fraction_pursuit
    found = fractions_of(task.fit_rows, task.columns, task.rule, config, has_functions=turn > 0)
    return pair_sums.allowed(found, task, num, self.config.terms)


@np.errstate(all="ignore")  # what is not finite is left out
def fractions_of(
  rows: Rows, columns: Sequence[int], rule: Rule, config: FractionPursuitConfig = DEFAULT.fraction_pursuit, *,
  has_functions: bool = False,
) -> list[Node]:
  """Formulas of few terms that come near, those of the shortest description first.

  Args:
    rows: what is fitted; columns: of x, those that formulas are made of; rule: the formulas that count.
    has_functions: whether functions of columns are among the terms.
  """
  varies = rows.varying(columns)
  counts = rows.weights > 0
  counted = Rows(rows.x[counts], rows.y[counts], rows.weights[counts])
  if not 2 <= len(varies) <= config.max_columns or np.ptp(counted.y) == 0:
    return []
  some = counted.sample(config.num_rows, seed=0)
  library = _library(some.x, varies, rule, config, has_functions=has_functions)
  ranked: list[tuple[float, Node]] = []
  for link in map(LINKS.__getitem__, config.links):
    if all(map(rule.allows_operator, link.operators)):
      interruption.check()
      ranked += _of_link(link, some, library, config)
  return [node for _, node in sorted(ranked, key=lambda each: each[0])]


class _Library(NamedTuple):
  """Columns: formulas, and their values [N, K]; sets of those that are plain."""

  nodes: list[Node]
  values: np.ndarray
  plain: list[list[int]]


def _of_link(link: Link, rows: Rows, library: _Library, config: FractionPursuitConfig) -> Iterator[tuple[float, Node]]:
  """Formulas whose function of y is a fraction, and the lengths of their descriptions in nats."""
  target, slope = link.function(rows.y), link.slope(rows.y)  # rows beyond its ends are left out
  weights = rows.weights / slope**2
  is_defined = np.isfinite(target) & np.isfinite(weights)
  if np.mean(is_defined) < config.least_defined or np.ptp(target[is_defined]) == 0:
    return
  # Of few rows that count for all others nothing is told but their own errors.
  most = config.most_weight * float(np.quantile(weights[is_defined], 0.9))
  pursuit = Pursuit(library.values[is_defined], target[is_defined], np.minimum(weights, most)[is_defined], config,
                    plain=library.plain)
  for terms in itertools.chain.from_iterable(some[: config.num_offered] for some in pursuit.by_size()):
    for node in map(link.undo, _written(terms, library.nodes, config.most_times_one)):
      error = float(np.average((rows.y - expression.evaluate(node, rows.x)) ** 2, weights=rows.weights))
      if np.isfinite(error):
        nats = 0.5 * (len(rows) * math.log(error + _SMALLEST) + math.log(len(rows)) * len(terms.coefficients))
        yield nats + config.nats_per_node * expression.complexity(node), node


def _library(
  x: np.ndarray, columns: Sequence[int], rule: Rule, config: FractionPursuitConfig, *, has_functions: bool
) -> _Library:
  """1 and what terms may be, each once by its values at the first rows, without what is not finite in all rows."""
  plain = _plain(columns, rule)
  others = [*_monomials(columns, rule, config), *(_functions(x, columns, rule, config) if has_functions else ())]
  nodes, values, places = list[Node](), list[np.ndarray](), dict[Node, int]()
  seen: dict[bytes, int] = {}
  for node in dict.fromkeys((number(1.0), *itertools.chain.from_iterable(plain), *others)):
    found = expression.evaluate(node, x)
    if np.all(np.isfinite(found)) and np.any(found != 0):
      key = np.round(found[:_NUM_COMPARED] / np.max(np.abs(found)), _DIGITS).tobytes()
      places[node] = seen.setdefault(key, len(nodes))
      if places[node] == len(nodes):
        nodes.append(node)
        values.append(found)
  return _Library(nodes, np.stack(values, axis=1), [
    list(dict.fromkeys(places[node] for node in (number(1.0), *some) if node in places)) for some in plain])


def _plain(columns: Sequence[int], rule: Rule) -> tuple[list[Node], list[Node]]:
  """Columns and their logarithms, with products of two columns and of a column and a logarithm; with products and
  quotients of two columns and of three.
  """
  some = list(map(variable, columns))
  logarithms = [Node("ln", (each,)) for each in some] if rule.allows_operator("ln") else []
  own, both = [*some, *logarithms], [*some, *map(inverse, some)]
  products = list(itertools.starmap(times, itertools.combinations(some, 2)))
  with_logarithms = [times(each, logarithm) for each, logarithm in itertools.product(some, logarithms)]
  quotients = [tidy(chain("*", chosen)) for size in (1, 2, 3) for chosen in itertools.combinations(both, size)
               if len(expression.columns_of(chain("*", chosen))) == size]
  return [*own, *products, *with_logarithms], [*own, *quotients]


def _monomials(columns: Sequence[int], rule: Rule, config: FractionPursuitConfig) -> Iterator[Node]:
  """Products of powers of one column, of two and of three."""
  of_two = config.exponents[min(len(columns), len(config.exponents) + 1) - 2]
  of_three = config.exponents_of_three[min(max(len(columns), 3), len(config.exponents_of_three) + 2) - 3]
  for size, exponents in enumerate((of_two, of_two, of_three), start=1):
    usable = [e for e in exponents if rule.allows_operator("pow") or e in (1.0, -1.0)]
    for chosen in itertools.combinations(map(variable, columns), size):
      for powers in itertools.product(usable, repeat=size):
        yield tidy(chain("*", [each if e == 1 else power(each, number(e))
                               for each, e in zip(chosen, powers, strict=True)]))


def _functions(x: np.ndarray, columns: Sequence[int], rule: Rule, config: FractionPursuitConfig) -> Iterator[Node]:
  """Functions of columns and, but of logarithms, what is over them, each alone, times and over a column."""
  plain = list(map(variable, columns))
  candidates = transcendents.Candidates(x, plain, config.transcendents, rule.allows_operator)
  for function in candidates.single()[: config.num_functions]:
    [node] = function.nodes
    for made in (node, *(() if node.token == "ln" else (tidy(inverse(node)),))):
      yield made
      for column in plain:
        yield times(column, made)
        yield times(inverse(column), made)


def _written(terms: Terms, nodes: Sequence[Node], most_times_one: float) -> Iterator[Node]:
  """The fraction; also without the 1 below the line where the rest is far more in all rows."""
  num_above = len(terms.above)
  above = _sum(terms.coefficients[:num_above], [nodes[column] for column in terms.above])
  if not terms.below:
    yield tidy(above)
    return
  below = _sum(terms.coefficients[num_above:], [nodes[column] for column in terms.below])
  yield tidy(times(above, inverse(plus(number(1.0), below))))
  if np.min(np.abs(terms.divisor)) > most_times_one:
    yield tidy(times(above, inverse(below)))


def _sum(coefficients: np.ndarray, nodes: Sequence[Node]) -> Node:
  return chain("+", [times(number(float(each)), node) for each, node in zip(coefficients, nodes, strict=True)])
