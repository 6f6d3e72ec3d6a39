"""Varying-coefficient models as a source: sums of plain terms whose factors are unknown functions of one variable.

`100*cos(0.624*x + 0.24)*y + 4.2*z` is linear in y and z, with factors that only x decides. Such factors are first
fitted as polynomials of x (Hastie and Tibshirani, Varying-coefficient models, 1993): which terms there are is then seen
without knowing any function. Each factor is a table of one column by itself, and formulas for it are looked for as for
any such table: a hard question of three variables becomes easy ones of one.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
import dataclasses
import itertools
from typing import NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import SearchConfig, VaryingConfig
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Pool
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import Task
from symformer_jax.language import expression, programs
from symformer_jax.language.expression import Node, chain, flatten, number, variable
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.evolution import stock
from symformer_jax.sources.in_turn import in_turn
from symformer_jax.sources.links import LINKS
from symformer_jax.sources.stateless import Stateless
from symformer_jax.sources.sums import library, pair_sums, terms
from symformer_jax.sources.unknowns import block_exchange, unknown_functions
from symformer_jax.sources.unknowns.block_exchange import Blocks
from symformer_jax.sources.unknowns.unknown_functions import Table, Tabulated


class Model(NamedTuple):
  """A sum of terms with factors that vary.

  Attributes:
    nats: description length, roughly: the least first.
    link: name of the function of y that is the sum; column: what the factors vary with; view: name of the
      scale of it on which they are polynomials.
    terms: what is multiplied.
    left: share of the target's weighted square that is left.
  """

  nats: float
  link: str
  column: int
  view: str
  terms: tuple[Node, ...]
  left: float


# Terms that a factor stands before, each with a number that it is multiplied by there.
Multiples = tuple[tuple[Node, float], ...]


class Factor(NamedTuple):
  """An unknown function of one variable.

  Attributes:
    values: at the places [P]; multiples: of it that stand before each term (pairs of a term and a number).
    error: what its mean square error may be.
  """

  values: np.ndarray
  multiples: Multiples
  error: float


@dataclasses.dataclass(frozen=True)
class VaryingCoefficients(Stateless):
  """Sums of plain terms with factors of one variable.

  Its turns: for y; for y with terms of the pool's formulas beside the plain ones; for functions of y. So where terms
  are no plain ones either, as in `sin(2*x)*exp(-0.3*y) + 0.2*x*y`, what one turn finds of x is a term of the next.
  """

  options: SearchOptions
  name: str = "varying"

  @property
  def turns(self) -> tuple[int, ...]:
    return self._own.turns

  @property
  def config(self) -> SearchConfig:
    return self.options.config

  @property
  def _own(self) -> VaryingConfig:
    return self.options.config.varying

  def supports(self, task: Task) -> bool:
    own = self._own
    return (pair_sums.can_add(task) and 1 < len(task.columns) <= own.max_columns
            and len(task.fit_rows) >= own.min_rows)

  @np.errstate(all="ignore")  # what is not finite is left out
  def _nodes(self, question: Question, turn: int, num: int) -> tuple[Node, ...]:
    task, config = question.task, self._own
    allows = terms.allowed_operators(task.rule)
    links = [name for name in config.links if (name == "y") == (turn < 2)
             and (allows is None or all(map(allows, LINKS[name].tokens)))]
    more = seen_terms(question.pool, task.columns, config) if turn == 1 else {}
    if turn == 1 and not more:
      return ()
    models = find_models(task.fit_rows, task.columns, links, more=more, allows=allows, config=config)
    formulas = self._formulas(task, best_models(models, config))
    return pair_sums.allowed(formulas, task, num, self.config.terms)

  def _formulas(self, task: Task, models: Sequence[Model]) -> Iterator[Node]:
    """Of each model in turn the likeliest formula."""
    forms_config = self._own.forms
    tables = {column: Table(task, column, self.config, forms_config)
              for column in dict.fromkeys(m.column for m in models)}
    of_models: list[tuple[Model, list[Factor]]] = []
    num = 0
    for model in models:
      interruption.check()
      factors = factors_of(model, task.fit_rows, tables[model.column].places, config=self._own)
      num += len(factors)
      if of_models and num > self._own.num_factors:
        break
      of_models.append((model, factors))
    asked = [(tables[model.column], Tabulated(factor.values, factor.error))
             for model, factors in of_models for factor in factors]
    forms = iter(unknown_functions.find_forms(asked, self.options, forms_config))
    formulas = []
    for model, factors in of_models:
      of_factors = list(zip(factors, itertools.islice(forms, len(factors)), strict=True))
      formulas += [
        written(model.link, [(factor.multiples, some) for factor, some in each], self._own.num_per_model)
        for each in _joined(of_factors, self._own.alike)]
    return in_turn(formulas)


# --- which terms ---------------------------------------------------------------------------------------------------


def find_models(
  rows: Rows, columns: Sequence[int], links: Sequence[str], *, more: Mapping[int, Sequence[Node]],
  allows: Callable[[str], bool] | None, config: VaryingConfig
) -> list[Model]:
  """Sums that leave little, the shortest descriptions first.

  Args:
    rows: what is fitted; columns: of x, which terms are made of.
    links: names of the functions of y that may be such sums.
    more: by column terms without it, beside the plain ones; only columns that have such are asked for, or all.
    allows: operators by name; None for all.
  """
  found: dict[tuple, Model] = {}
  for column in more or columns:
    others = [other for other in columns if other != column]
    views = _views(rows.x[:, column], config)
    known = _known_terms(rows, others, more.get(column, ()), allows, config) if views else None
    for view, name in itertools.product(views, links):
      interruption.check()
      if known is not None and LINKS[name].is_defined(rows.y):
        for model in _models(rows, known, name, column, view, config):
          key = model.link, model.column, frozenset(model.terms)
          if key not in found or model.nats < found[key].nats:
            found[key] = model
  return sorted(found.values(), key=lambda model: model.nats)


def best_models(models: Sequence[Model], config: VaryingConfig) -> list[Model]:
  """The first that leave about as little as any; none that has all terms of one before it, and others."""
  least = min((model.left for model in models), default=0.0) + config.exact
  chosen: list[Model] = []
  for model in models:
    of = model.link, model.column
    has_more = any(of == (other.link, other.column) and set(model.terms) > set(other.terms) for other in chosen)
    if model.nats < 0 and model.left <= min(config.times_least * least, config.most_left) and not has_more:
      chosen.append(model)
  return chosen[: config.num_models]


class _Terms(NamedTuple):
  """Functions of some variables, 1 the first: their formulas, and values at the rows [N, M]."""

  nodes: tuple[Node, ...]
  values: np.ndarray


def _known_terms(
  rows: Rows, columns: Sequence[int], more: Sequence[Node], allows: Callable[[str], bool] | None, config: VaryingConfig
) -> _Terms:
  """1, further terms that are finite and vary, and plain ones of the columns that none of these is."""
  atoms = library.Atoms(rows.x, columns, allows, config=config.library)
  plain = np.flatnonzero(atoms.complexities <= config.max_term_nodes)
  plain = plain[np.argsort(atoms.complexities[plain], kind="stable")]
  values: dict[Node, np.ndarray] = {}
  for node in more:
    at_rows = expression.evaluate(node, rows.x)
    largest = np.max(np.abs(at_rows))
    if library.SMALLEST < largest < library.LARGEST and np.ptp(at_rows) > 0:  # NaN is not below
      values[node] = at_rows / largest
  for index in plain[: config.max_terms]:
    values.setdefault(atoms.node(int(index)), atoms.columns[:, index].astype(np.float64))
  nodes = list(values)[: config.max_terms - 1]
  return _Terms((number(1.0), *nodes), np.stack([np.ones(len(rows)), *(values[node] for node in nodes)], axis=1))


def seen_terms(pool: Pool, columns: Sequence[int], config: VaryingConfig) -> dict[int, list[Node]]:
  """By column terms without it that the pool's best formulas have: of each form few, the best formulas' first."""
  found: dict[int, list[Node]] = {}
  for column in columns:
    alike: Counter[tuple] = Counter()
    of_column: dict[Node, None] = {}
    for candidate in pool.shortlist()[: config.num_donors]:
      for node in _parts_without(candidate.node, column):
        skeleton = programs.skeleton(node)
        if node not in of_column and alike[skeleton] < config.terms_per_form:
          alike[skeleton] += 1
          of_column[node] = None
    if of_column:
      seen = list(of_column)[: config.max_seen_terms]
      more = _multiplied(seen[: config.num_multiplied], columns, column)
      found[column] = list(dict.fromkeys([*seen, *more]))[: config.max_terms // 2]
  return found


def _multiplied(some: Sequence[Node], columns: Sequence[int], column: int) -> Iterator[Node]:
  """Terms times and over each column that they have not: of `x*y**2*(w - exp(-v))` the pool may have `x*y**2` alone."""
  for node, other in itertools.product(some, columns):
    if other != column and other not in expression.columns_of(node):
      yield tidy(Node("*", (node, variable(other))))
      yield tidy(Node("*", (node, Node("inv", (variable(other),)))))


def _parts_without(node: Node, column: int) -> Iterator[Node]:
  """Of each term the factors without a column, and the terms of those that are sums."""
  for term in stock.bare_terms(node):
    kept = [factor for factor in flatten(term, "*") if column not in expression.columns_of(factor)]
    sums = [inner for factor in kept if factor.token == "+" for inner in stock.bare_terms(factor)]
    for part in (*([chain("*", kept)] if kept else []), *sums):
      if expression.has_column(part):
        yield part


def _views(x: np.ndarray, config: VaryingConfig) -> tuple[str, ...]:
  """Scales of a variable on which factors may be polynomials; none where it has too few values."""
  if len(np.unique(x)) < 2 * config.num_functions:
    return ()
  return ("plain", "log") if np.min(x) > 0 and np.max(x) > config.wide * np.min(x) else ("plain",)


def _basis(x: np.ndarray, view: str, of: np.ndarray, num: int) -> np.ndarray:
  """So many Chebyshev polynomials [P, K] at values x [P] of a variable that has the values `of`."""
  if view == "log":
    x, of = np.log(x), np.log(of)
  scaled = 2 * (x - of.min()) / np.ptp(of) - 1
  return np.polynomial.chebyshev.chebvander(scaled, num - 1)


def _models(
  rows: Rows, known: _Terms, name: str, column: int, view: str, config: VaryingConfig
) -> Iterator[Model]:
  """Of each number of terms the best sums, and what is left of them without terms that hardly matter."""
  target = terms.whole(LINKS[name], rows)
  if target is None:
    return
  z, weights = target
  x = rows.x[:, column]
  products = block_exchange.products_of(known.values, _basis(x, view, x, config.num_functions), z, weights)
  most = max(1, min(config.max_size, len(rows) // (config.rows_per_function * config.num_functions)))
  found = block_exchange.best_sets(products, max_size=most, config=config)
  for sets in found:
    for blocks, left in sets[: config.num_per_size]:
      for some, rest in _reduced(products, blocks, left, config):
        cost = len(rows) / 2 * (np.log(rest + config.exact) + len(some) * np.log(config.worth))
        yield Model(float(cost), name, column, view, tuple(known.nodes[i] for i in some), rest)


def _reduced(
  products: block_exchange.Products, blocks: Blocks, left: float, config: VaryingConfig
) -> Iterator[tuple[Blocks, float]]:
  """A set, and that set without one block after the other as long as what is left does not grow much."""
  yield blocks, left
  while len(blocks) > 1:
    smaller = [blocks[:i] + blocks[i + 1 :] for i in range(len(blocks))]
    rest = [block_exchange.left_by(products, some) for some in smaller]
    best = int(np.argmin(rest))
    if rest[best] > config.negligible * left:
      return
    blocks = smaller[best]
    yield blocks, rest[best]


# --- which functions -----------------------------------------------------------------------------------------------


def factors_of(model: Model, rows: Rows, places: np.ndarray, *, config: VaryingConfig) -> list[Factor]:
  """The factors of a model at values [P] of its column, and a constant where it needs one."""
  target = terms.whole(LINKS[model.link], rows)
  assert target is not None, "models are of targets that there are"
  z, weights = target
  x, root = rows.x[:, model.column], np.sqrt(weights)
  values = np.stack([np.broadcast_to(expression.evaluate(node, rows.x), len(rows)) for node in model.terms], axis=1)
  largest = np.max(np.abs(values), axis=0)  # squares of small numbers are none
  sizes = largest * np.sqrt(np.average((values / largest) ** 2, axis=0, weights=weights))
  basis, at_places = (_basis(at, model.view, x, config.num_functions) for at in (x, places))
  design = root[:, None] * ((values / sizes)[:, :, None] * basis[:, None]).reshape(len(rows), -1)
  variance = np.average((z - np.average(z, weights=weights)) ** 2, weights=weights)
  coefficients, constant = _solved(design, root, z), 0.0
  error = np.mean((root * z - design @ coefficients) ** 2) / np.mean(weights)
  if not any(node.is_number for node in model.terms):
    *most, offset = _solved(np.column_stack([design, root]), root, z)
    smaller = np.mean((root * (z - offset) - design @ most) ** 2) / np.mean(weights)
    if error > config.negligible * (smaller + config.exact * variance):
      coefficients, constant, error = np.array(most), offset, smaller
  profiles = at_places @ coefficients.reshape(len(model.terms), -1).T / sizes  # [P, s]
  factors = [Factor(profile, ((node, 1.0),), float(error / size**2))
             for profile, node, size in zip(profiles.T, model.terms, sizes, strict=True)]
  return factors + ([Factor(np.full(len(places), constant), ((number(1.0), 1.0),), 0.0)] if constant else [])


def _solved(design: np.ndarray, root: np.ndarray, z: np.ndarray) -> np.ndarray:
  return np.linalg.lstsq(design, root * z, rcond=1e-12)[0]


# A form that a factor may have, with what it costs in nats; a factor with its forms.
Form = tuple[float, Node]
_Formed = tuple[Factor, list[Form]]


def _joined(factors: Sequence[_Formed], alike: float) -> list[list[_Formed]]:
  """The factors, after, where some are multiples of one another, those that are different."""
  groups: list[list[_Formed]] = []
  for formed in sorted(factors, key=lambda each: each[0].error / (each[0].values @ each[0].values)):
    group = next((group for group in groups if _is_multiple(formed[0].values, group[0][0].values, alike)), None)
    if group is None:
      groups.append([formed])
    else:
      group.append(formed)
  apart = [list(factors)]
  return apart if len(groups) == len(factors) else [[_as_one(group) for group in groups], *apart]


def _is_multiple(first: np.ndarray, other: np.ndarray, alike: float) -> bool:
  return bool(1 - (first @ other) ** 2 / ((first @ first) * (other @ other)) < alike)


def _as_one(group: Sequence[_Formed]) -> _Formed:
  (best, forms), values = group[0], group[0][0].values
  multiples = tuple((node, float(values @ factor.values / (values @ values)))
                    for factor, _ in group for node, _ in factor.multiples)
  return best._replace(multiples=multiples), forms


def written(link: str, parts: Sequence[tuple[Multiples, list[Form]]], most: int) -> list[Node]:
  """So many formulas at most of a model, the likeliest forms of all factors first.

  Args:
    link: name of the function of y that is the sum; parts: of each factor what it multiplies, and its forms.
  """
  chosen = sorted(itertools.product(*(forms for _, forms in parts)), key=lambda some: sum(nats for nats, _ in some))
  undo: Callable[[Node], Node] = LINKS[link].undo
  found = []
  for some in chosen[:most]:
    products = []
    for (multiples, _), (_, form) in zip(parts, some, strict=True):
      sums = [node if multiple == 1 else Node("*", (node, number(multiple))) for node, multiple in multiples]
      products.append(Node("*", (form, chain("+", sums))))
    found.append(undo(tidy(chain("+", products))))
  return [node for node in found if programs.size(node) <= programs.MAX_TOKENS]
