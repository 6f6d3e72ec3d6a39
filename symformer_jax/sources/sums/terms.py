"""Sums of few columns as sources: of the library alone, and of parts of what the pool holds.

A sum is linear in its terms, so which of thousands of columns belong together needs no sampling: they are selected
forward (pursuit.py). Functions of y are tried as sums as well (links.py), and the logarithm of |y| as one of
logarithms, which makes products of powers. Inner constants lie on a grid until the loop fits them.
"""

from collections.abc import Callable, Iterable, Sequence
import dataclasses
import functools
import itertools
from typing import Any, ClassVar
import weakref

import jax
import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, TIERS, PursuitConfig, Search, SearchConfig, TermsConfig
from symformer_jax.engine.pool import Candidate
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Proposal, Question
from symformer_jax.engine.task import Task
from symformer_jax.language.expression import Node, chain, complexity, number, power
from symformer_jax.language.rules import Rule
from symformer_jax.language.tidy import tidy
from symformer_jax.selection import scoring
from symformer_jax.sources.closed_forms import ClosedForms
from symformer_jax.sources.in_turn import in_turn
from symformer_jax.sources.links import LINKS, Link
from symformer_jax.sources.stateless import Stateless
from symformer_jax.sources.sums import library, products, pursuit
from symformer_jax.sources.sums.columns import Columns, Subset, Union
from symformer_jax.sources.sums.parts import Parts

# Sources whose formulas are not taken apart: their parts are columns that the library has, or waves beside lines.
_OF_COLUMNS = (ClosedForms.name, "library", "pairs", "subsets")

# Library columns of the data sets that are being searched: the same for every turn that asks.
_libraries: weakref.WeakKeyDictionary[Task, dict[SearchConfig, library.Atoms]] = weakref.WeakKeyDictionary()


@dataclasses.dataclass(frozen=True)
class LibrarySums(Stateless):
  """Sums of columns of the library, and products of powers of the variables and of few other factors.

  Its turns: y as a sum; products, which take longer; functions of y as sums.
  """

  config: SearchConfig = DEFAULT
  name: str = "library"
  turns: tuple[int, ...] = (1, 1, 1)

  needs: ClassVar[tuple[str, ...]] = ()

  def _nodes(self, question: Question, turn: int, num: int) -> list[Node]:
    terms, task = self.config.terms, question.task
    if turn == 1:
      return products_of(task.fit_rows, task.columns, rule=task.rule, config=self.config)
    links = [name for name in terms.links if (name == "y") == (turn == 0)]
    searches = terms.searches if question.pool.exact() is None else terms.searches[-1:]
    return sums_of(library_of(task, self.config), task.fit_rows, links=links, searches=searches, rule=task.rule,
                   config=self.config)


@dataclasses.dataclass(frozen=True)
class PartSums:
  """What the pool's formulas are made of, put together anew.

  Its turns: sums of parts and of columns of the library; sums and products of parts alone, those of the first turn
  among them.
  """

  config: SearchConfig = DEFAULT
  name: str = "parts"
  turns: tuple[int, ...] = (1, 1)

  def supports(self, task: Task) -> bool:
    return True

  def init(self, task: Task, key: jax.Array) -> Any:
    return None

  def propose(self, questions: Sequence[Question], *, turn: int, num: int, clock: Clock) -> list[Proposal]:
    with clock.measure("recombine"):
      return [self._propose(question, turn) for question in questions]

  def _propose(self, question: Question, turn: int) -> Proposal:
    task, config = question.task, self.config
    candidates = question.pool.in_order()
    if turn == 1:
      found = recombine([c.node for c in candidates], task.fit_rows, columns=task.columns, config=config)
      return Proposal(candidates=tuple(Candidate(node, mse, self.name) for node, mse in found))
    # Sums of the library's columns are made of what is there already, and fit better than most samples do.
    donors = [c.node for c in candidates if c.source not in _OF_COLUMNS]
    donors = donors[: config.pool.num_donors]
    if not donors:
      return Proposal()
    parts = Parts(donors, some_of(task.fit_rows, config.terms).x, task.columns, config.terms)
    both = Union([parts, library_of(task, config)])
    return Proposal(nodes=tuple(sums_of(
      both, task.fit_rows, links=config.terms.links, searches=config.terms.searches[:1], rule=task.rule,
      config=config)))


def allowed_operators(rule: Rule) -> Callable[[str], bool] | None:
  """Which operators columns may have, by name; None for all."""
  return None if rule.tokens is None and rule.max_exponent is None else rule.allows_operator


def some_of(rows: Rows, config: TermsConfig) -> Rows:
  """Those on which columns are selected."""
  return rows.sample(config.num_rows, seed=0)


def library_of(task: Task, config: SearchConfig) -> library.Atoms:
  """The library's columns for a data set, made once."""
  made = _libraries.setdefault(task, {})
  if config not in made:
    made[config] = library.Atoms(
      some_of(task.fit_rows, config.terms).x, task.columns, allowed_operators(task.rule), config=config.library,
      requested=sorted(task.rule.requested))
  return made[config]


@np.errstate(all="ignore")  # what is not finite is left out
def recombine(
  nodes: Sequence[Node], rows: Rows, *, columns: Iterable[int], config: SearchConfig = DEFAULT
) -> list[tuple[Node, float]]:
  """Formulas of few parts that fit best, for every function of y and number of parts.

  Args:
    nodes: candidates, the best first; inner constants of their parts are taken as they are.
    rows: what is fitted.
    columns: of x; these variables are parts as well.
    config: its `terms` and `pursuit` are used.
  Returns:
    `(formula, weighted mean squared error)`, all finite.
  """
  terms = config.terms
  parts = Parts(nodes, rows.x, columns, terms)
  pursuit_config = dataclasses.replace(config.pursuit, max_columns=_max_parts(rows, terms.max_parts, terms))
  sums = [formula for _, _, formula in _all_sums(parts, rows, terms.links, pursuit_config)]
  products_ = _products(parts, rows, pursuit_config, terms.near_half) if terms.use_products else []
  return scored([*sums, *products_], rows, max_nodes=terms.max_nodes)


@np.errstate(all="ignore")
def sums_of(
  columns: Columns, rows: Rows, *, links: Sequence[str], searches: Sequence[Search], rule: Rule,
  config: SearchConfig = DEFAULT,
) -> list[Node]:
  """Sums of few columns that come near, for functions of y: their inner constants are still to be fitted.

  Args:
    columns: at the rows that `TermsConfig.num_rows` leaves; rows: what is fitted.
    links: names of the functions of y; searches: how thoroughly sums of which columns are tried.
    rule: the formulas that count.
    config: its `terms` and `pursuit` are used.
  Returns:
    At most `TermsConfig.num_fitted`: the best of one part, of two, of more; the second best...
  """
  terms = config.terms
  some = some_of(rows, terms)
  by_size: dict[int, dict[str, list[Node]]] = {}
  for tier, max_columns, num_first, num_pairs in searches:
    interruption.check()
    subset = Subset(columns, np.flatnonzero(columns.tiers >= TIERS.index(tier)))
    pursuit_config = dataclasses.replace(
      config.pursuit, max_columns=_max_parts(some, max_columns, terms), num_first=num_first, num_pairs=num_pairs)
    for link, size, formula in _all_sums(subset, some, links, pursuit_config):
      if rule(formula):
        by_size.setdefault(size, {}).setdefault(link, []).append(formula)
  # On a grid a short sum that is right has a larger error than long ones that are not: every size has its turn.
  in_order = [_by_error_and_by_link([scored(formulas, rows, max_nodes=terms.max_nodes) for formulas in of.values()])
              for _, of in sorted(by_size.items())]
  return _nodes_in_turn(in_order, terms.num_fitted)


def _by_error_and_by_link(of_links: Sequence[list[tuple[Node, float]]]) -> list[tuple[Node, float]]:
  """Formulas with their errors in rising order, every other one the best left of a function of y, of each in turn: the
  grid is nearer to the right inner constants in some functions than in others.
  """
  in_order = [sorted(pairs, key=lambda pair: pair[1]) for pairs in of_links]
  by_error = sorted(itertools.chain.from_iterable(in_order), key=lambda pair: pair[1])
  return list(dict.fromkeys(in_turn([by_error, list(in_turn(in_order))])))


@np.errstate(all="ignore")
def products_of(
  rows: Rows, columns: Sequence[int], *, rule: Rule, config: SearchConfig = DEFAULT
) -> list[Node]:
  """Products of powers of many variables and of few factors that come near; see `products.find_products`.

  Returns:
    At most `TermsConfig.num_fitted`.
  """
  terms = config.terms
  made = [scored(filter(rule, formulas), rows, max_nodes=terms.max_nodes) for formulas in products.find_products(
    some_of(rows, terms), columns, allowed_operators(rule), config=config.products, pursuit_config=config.pursuit)]
  cost = functools.partial(nats, num_rows=len(rows), nats_per_node=terms.nats_per_node)
  return _nodes_in_turn([sorted(pairs, key=lambda pair: cost(*pair)) for pairs in made], terms.num_fitted)


def _nodes_in_turn(in_order: Sequence[Sequence[tuple[Node, float]]], num: int) -> list[Node]:
  """The first of each list, then the second of each, ..., at most so many in all."""
  return [node for node, _ in itertools.islice(in_turn(in_order), num)]


def nats(node: Node, mse: float, *, num_rows: int, nats_per_node: float) -> float:
  """Nats, roughly, to describe the data by a formula with this mean squared error, up to a constant of the data."""
  return num_rows / 2 * np.log(max(mse, np.finfo(np.float64).tiny)) + nats_per_node * complexity(node)


def _max_parts(rows: Rows, most: int, config: TermsConfig) -> int:
  return min(most, rows.num_distinct // config.points_per_part)


def scored(
  formulas: Iterable[Node], rows: Rows, *, max_nodes: int = DEFAULT.terms.max_nodes
) -> list[tuple[Node, float]]:
  """Distinct formulas that are not too long, with their weighted mean squared errors where these are finite."""
  found = ((node, scoring.score(scoring.evaluate(node, rows.x), rows.y, rows.weights).mse)
            for node in dict.fromkeys(formulas) if complexity(node) <= max_nodes)
  return [(node, mse) for node, mse in found if np.isfinite(mse)]


def _all_sums(
  parts: Columns, rows: Rows, names: Sequence[str], config: PursuitConfig
) -> list[tuple[str, int, Node]]:
  """`(link, number of parts, formula)` for every function of y that is named."""
  links = {name: link for name, link in LINKS.items() if name in names and link.is_defined(rows.y)}
  return [(name, size, link.undo(formula))
          for name, link in links.items() for size, formula in _sums(parts, link, rows, config)]


def weighted(link: Link, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
  """A function of y [N], and weights [N] with which its errors count as those of y do; 0 where y says nothing of it."""
  z, slope = link.transform(rows.y), link.derivative(rows.y)
  weights = np.where(slope != 0, rows.weights / np.where(slope != 0, slope, 1) ** 2, 0)
  return z, weights / (np.max(weights, initial=0.0) or 1.0)


def whole(link: Link, rows: Rows) -> tuple[np.ndarray, np.ndarray] | None:
  """`weighted` where every row says something of a function that varies; else None."""
  z, weights = weighted(link, rows)
  is_whole = np.all(np.isfinite(z)) and np.all(np.isfinite(weights)) and np.all(weights > 0) and np.ptp(z) > 0
  return (z, weights) if is_whole else None


def _sums(parts: Columns, link: Link, rows: Rows, config: PursuitConfig) -> list[tuple[int, Node]]:
  """Sums of parts that fit the function of y, errors weighted as those of y."""
  z, weights = weighted(link, rows)
  is_used = weights > 0  # NaN is not above 0
  z, weights = z[is_used], weights[is_used]
  if not (len(z) and np.all(np.isfinite(z))):
    return []
  columns = parts.columns if is_used.all() else parts.columns[is_used]
  formulas = []
  for chosen in pursuit.select_columns(columns, z, weights, groups=parts.groups, config=config):
    *multiples, constant = least_squares(columns[:, chosen], z, weights)
    terms = [Node("*", (parts.node(i), number(factor / parts.scale(i))))
             for i, factor in zip(chosen, multiples, strict=True)]
    formulas.append((len(chosen), tidy(chain("+", [*terms, number(constant)]))))
  return formulas


def _products(parts: Parts, rows: Rows, config: PursuitConfig, near_half: float) -> list[Node]:
  """Products of powers of parts: the logarithm of |y| as a sum of logarithms, where y is not 0."""
  relative = rows.y / np.max(np.abs(rows.y))
  weights = rows.weights * relative**2
  is_used = weights > 0
  usable = np.flatnonzero(np.all(parts.columns[is_used] != 0, axis=0))
  if not is_used.any():
    return []
  columns = np.log(np.abs(parts.columns[is_used][:, usable]))
  z, weights = np.log(np.abs(relative[is_used])), weights[is_used]
  formulas = []
  for chosen in pursuit.select_columns(columns, z, weights, config=config):
    exponents = least_squares(columns[:, chosen], z, weights)[:-1]
    halves = np.round(2 * exponents) / 2
    exponents = np.where(np.abs(exponents - halves) < near_half, halves, exponents)
    powers = [power(parts.node(usable[i]), number(float(e))) for i, e in zip(chosen, exponents, strict=True) if e]
    if powers:
      formulas.append(scoring.with_factor(chain("*", powers), rows.x, rows.y, rows.weights))
  return formulas


def least_squares(columns: np.ndarray, target: np.ndarray, weights: np.ndarray) -> np.ndarray:
  """Factors of the columns [K] and the constant that fit best."""
  root = np.sqrt(weights / np.max(weights))
  design = np.column_stack([columns, np.ones(len(target))])
  return np.linalg.lstsq(root[:, None] * design, root * target, rcond=None)[0]
