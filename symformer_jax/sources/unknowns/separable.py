"""Additive models, products of them and both as a source: which functions of one column there are, then each of them.

Of `(cos(1.6/w) - 1.3*z)*(sqrt(1400 - 154*x) + y)` no column of a library is a term. Alternating least squares with
polynomials for all functions sees in milliseconds that a product of a sum over w and z and one over x and y leaves next
to nothing (`sources.unknowns.alternating`), whatever the functions are. Each is then a table of one column
(`unknown_functions`).
"""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import functools
import itertools
from typing import NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import SeparableConfig
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import Task
from symformer_jax.language import programs
from symformer_jax.language.expression import Node, chain, number
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.in_turn import in_turn
from symformer_jax.sources.links import LINKS, Link
from symformer_jax.sources.monomials import Monomial, Values, to_node
from symformer_jax.sources.stateless import Stateless
from symformer_jax.sources.sums import pair_sums, terms
from symformer_jax.sources.unknowns import alternating, unknown_functions
from symformer_jax.sources.unknowns.alternating import Factors
from symformer_jax.sources.unknowns.unknown_functions import Table, Tabulated

# 1/x, 1/x**2 and the logarithm of |x|.
_NUM_SINGULAR = 3


class Structure(NamedTuple):
  """A function of y over a monomial, as a product of sums of functions of one column each, and a sum beside it.

  Attributes:
    link: name of the function of y; divisor: what y is divided by before.
    factors: for each the columns of its functions.
    rest: those of what is added, which has a constant of its own; None for the product alone.
  """

  link: str
  divisor: Monomial
  factors: Factors
  rest: tuple[int, ...] | None = None

  @property
  def sums(self) -> Factors:
    """The factors, and what is added."""
    return self.factors if self.rest is None else (*self.factors, self.rest)

  def smaller(self) -> Iterator["Structure"]:
    """The same without one function, or without the constant that is left of what is added."""
    for i, columns in enumerate(self.factors):
      for column in columns:
        less = tuple(other for other in columns if other != column)
        yield from self._with((*self.factors[:i], *([less] if less else []), *self.factors[i + 1 :]), self.rest)
    for column in self.rest or ():
      yield from self._with(self.factors, tuple(other for other in self.rest or () if other != column))
    if self.rest == ():
      yield self._replace(rest=None)

  def _with(self, factors: Factors, rest: tuple[int, ...] | None) -> Iterator["Structure"]:
    if len(factors) == 1 and rest is not None:  # one sum
      factors, rest = (tuple(dict.fromkeys((*factors[0], *rest))),), None
    if factors:
      yield self._replace(factors=factors, rest=rest)


class Model(NamedTuple):
  """A structure with polynomials for its functions.

  Attributes:
    nats: description length, roughly: the least first.
    structure; bases: by column the polynomials.
    coefficients: of each sum, the constant first, then those of its columns.
    left: share of the target's weighted square that is left.
  """

  nats: float
  structure: Structure
  bases: dict[int, "Basis"]
  coefficients: tuple[np.ndarray, ...]
  left: float

  def functions(self) -> Iterator[tuple[int, int, np.ndarray]]:
    """`(place of the sum, column, coefficients)` of every function."""
    for i, (columns, coefficients) in enumerate(zip(self.structure.sums, self.coefficients, strict=True)):
      begin = 1
      for column in columns:
        end = begin + self.bases[column].size
        yield i, column, coefficients[begin:end]
        begin = end

  def values(self, x: np.ndarray) -> list[np.ndarray]:
    """Those of each sum at points x [N, D]."""
    return [_design(columns, self.bases, x) @ coefficients
            for columns, coefficients in zip(self.structure.sums, self.coefficients, strict=True)]


@dataclasses.dataclass(frozen=True)
class Basis:
  """Chebyshev polynomials of a column, or of its logarithm, without the constant; of one with values of both signs also
  its inverse, the square of that, and the logarithm of its size, as shares of their largest values.
  """

  least: float
  largest: float
  is_log: bool
  degree: int
  nearest: float = 0.0  # to 0; where it is 0 there are none of these

  @property
  def size(self) -> int:
    return self.degree + (_NUM_SINGULAR if self.nearest else 0)

  def __call__(self, x: np.ndarray) -> np.ndarray:
    """At values x [P]: [P, size]."""
    return _polynomials(self, np.asarray(x, float).tobytes())


# Hundreds of structures ask for the same dozen; each takes some tens of kilobytes.
@functools.lru_cache(maxsize=64)
def _polynomials(basis: Basis, x: bytes) -> np.ndarray:
  values, ends = np.frombuffer(x), np.array([basis.least, basis.largest])
  values, (least, largest) = (np.log(values), np.log(ends)) if basis.is_log else (values, ends)
  found = np.polynomial.chebyshev.chebvander(2 * (values - least) / (largest - least) - 1, basis.degree)[:, 1:]
  if not basis.nearest:
    return found
  inverse, farthest = basis.nearest / values, max(-basis.least, basis.largest)
  logarithms = np.log(np.abs(inverse)) / (np.log(farthest / basis.nearest) or 1.0)  # 0 of -1 and 1 alone
  return np.column_stack([found, inverse, inverse**2, logarithms])


@dataclasses.dataclass(frozen=True)
class Separable(Stateless):
  """Products of sums of functions of single columns."""

  options: SearchOptions
  name: str = "separable"

  @property
  def turns(self) -> tuple[int, ...]:
    return self._own.turns

  @property
  def _own(self) -> SeparableConfig:
    return self.options.config.separable

  def supports(self, task: Task) -> bool:
    columns = task.fit_rows.varying(task.columns)
    return pair_sums.can_add(task) and 1 <= len(columns) <= self._own.max_columns and bool(
      _degrees(len(task.fit_rows), len(columns), self._own))

  @np.errstate(all="ignore")  # what is not finite is left out
  def _nodes(self, question: Question, turn: int, num: int) -> tuple[Node, ...]:
    is_plain = turn + 1 < len(self.turns)
    task, config, best = question.task, (self._plain if is_plain else self._own), question.pool.best
    allows = terms.allowed_operators(task.rule)
    # A sum of logarithms is written as a product in the first turn.
    links = [name for name in config.links if allows is None or (is_plain and name == "exp")
             or all(map(allows, LINKS[name].operators))]
    columns = task.fit_rows.varying(task.columns)
    if is_plain and len(columns) == 1:  # a function of it is one, whatever it is divided by
      config = dataclasses.replace(config, divisor_powers=())
    models = find_models(task.fit_rows, columns, links, config=config)
    most = np.inf if best is None else config.times_pool * best.mse / task.variance
    near = [model for model in best_models(models, config) if model.left < most]
    formulas = self._formulas(task, near, is_plain=is_plain) if near else ()
    return pair_sums.allowed(formulas, task, num, self.options.config.terms)

  @property
  def _plain(self) -> SeparableConfig:
    """Sums of functions of all columns, and products of such, that leave next to nothing."""
    own = self._own
    return dataclasses.replace(
      own, links=own.plain_links, divisor_powers=own.plain_divisor_powers, divided_links=own.pair_links,
      product_links=own.plain_product_links, max_multiplied=own.max_plain_multiplied, added_links=(),
      overlapping_links=(), most_left=own.plain_left, screened_left=own.plain_screened_left,
      num_sweeps=own.num_plain_sweeps, least_gain=own.least_plain_gain, from_columns=True)

  def _formulas(self, task: Task, models: Sequence[Model], *, is_plain: bool = False) -> Iterator[Node]:
    """Of each model in turn the likeliest formula; products for sums of logarithms, if is_plain."""
    config = self._own
    columns = dict.fromkeys(column for model in models for _, column, _ in model.functions())
    tables = {column: Table(task, column, self.options.config, config.forms) for column in columns}
    of_models = [tabulated(model, task.fit_rows, {c: table.places for c, table in tables.items()}) for model in models]
    if is_plain:
      models, of_models = zip(*itertools.starmap(_of_logarithms, zip(models, of_models, strict=True)), strict=True)
    asked = [(tables[column], function) for functions in of_models for _, column, function in functions]
    forms = iter(unknown_functions.find_forms(asked, self.options, config.forms))
    return in_turn([
      _written(model, [(factor, next(forms)) for factor, _, _ in functions], config.num_per_model)
      for model, functions in zip(models, of_models, strict=True)])


# --- which structure -----------------------------------------------------------------------------------------------


def find_models(rows: Rows, columns: Sequence[int], links: Sequence[str], *, config: SeparableConfig) -> list[Model]:
  """Models that leave little, the shortest descriptions first.

  Args:
    rows: what is fitted; columns: of x, the functions are of those that vary; links: names of the functions of y.
  """
  columns = rows.varying(columns)
  every, targets = _all_bases(rows.x, columns, config), list(_targets(rows, columns, links, config))
  # With polynomials of the columns, of logarithms ...: of each kind all degrees.
  num_kinds = len(every) // max(len(_degrees(len(rows), len(columns), config)), 1)
  found: list[Model | None] = []
  for divisor, name, target in targets:
    structure = Structure(name, divisor, (tuple(columns),))
    for kind in (every[k::num_kinds] for k in range(num_kinds)):
      if not divisor or _is_near(target, structure, kind[min(1, len(kind) - 1)], config):
        found += [_fitted(target, structure, bases, config) for bases in kind]
    if not divisor and num_kinds > 1 and len(columns) > 1:
      by_degree = [every[i : i + num_kinds] for i in range(0, len(every), num_kinds)]
      own = _of_own_kinds(target, structure, by_degree, config)
      found += [_fitted(target, structure, bases, config) for bases in own]
  # Products take several sweeps each: with few polynomials and sweeps it is seen which are worth more.
  degrees = config.degrees[: 2 if len(columns) <= config.max_bent else 1]
  few = [bases for bases in every if next(iter(bases.values())).degree in degrees]
  brief = dataclasses.replace(config, num_sweeps=config.num_brief_sweeps, most_left=np.inf)
  products = [_fitted(target, structure, bases, brief)
              for bases in few for divisor, name, target in targets if not divisor
              for structure in _products(columns, name, config)]
  for model in _nearest(products, config.num_carried):
    target = _target(rows, model.structure)
    if _is_near(target, model.structure, model.bases, config):
      found += [_fitted(target, model.structure, bases, config) for bases in every]
  return sorted((_without_idle(model, rows, config) for model in _nearest(found, config.num_reduced)),
                key=lambda model: model.nats)


def _of_own_kinds(
  target: Rows, structure: Structure, degrees: Sequence[Sequence[dict[int, Basis]]], config: SeparableConfig
) -> list[dict[int, Basis]]:
  """For each degree bases of different kinds: one column after the other has that which leaves least beside the
  others', as long as far less is left; none where one kind will do for all.

  Args:
    degrees: of each the bases of every kind.
  """
  kinds, anything = degrees[min(1, len(degrees) - 1)], dataclasses.replace(config, most_left=np.inf)

  def left(chosen: Mapping[int, int]) -> float:
    model = _fitted(target, structure, {column: kinds[kind][column] for column, kind in chosen.items()}, anything)
    return np.inf if model is None else model.left

  of_one = [dict.fromkeys(kinds[0], kind) for kind in range(len(kinds))]
  least, best = min(((left(chosen), chosen) for chosen in of_one), key=lambda each: each[0])
  is_mixed = False
  while True:
    others = ({**best, column: kind} for column in best for kind in range(len(kinds))
              if kinds[kind][column] != kinds[best[column]][column])
    less, chosen = min(((left(each), each) for each in others), key=lambda each: each[0], default=(np.inf, best))
    if not less < config.of_own_kind * least:
      return [{column: some[kind][column] for column, kind in best.items()} for some in degrees] if is_mixed else []
    least, best, is_mixed = less, chosen, True


def _is_near(target: Rows, structure: Structure, bases: dict[int, Basis], config: SeparableConfig) -> bool:
  """Whether one of many structures leaves little with some polynomials."""
  if config.screened_left >= 1:
    return True
  return _fitted(target, structure, bases, dataclasses.replace(config, most_left=config.screened_left)) is not None


def _products(columns: Sequence[int], link: str, config: SeparableConfig) -> Iterator[Structure]:
  """Products of at least two sums; of y itself beside functions of all columns as well."""
  lone = tuple((column,) for column in columns)
  if link in config.lone_links and len(columns) > 1:
    yield Structure(link, (), lone, ())  # a constant that is none is left out later
  if len(columns) > config.max_multiplied:
    return
  for factors in alternating.partitions(columns, config=config):
    is_partition = sum(map(len, factors)) == len(columns)
    if link in (config.product_links if is_partition else config.overlapping_links):
      yield Structure(link, (), factors)
    if is_partition and link in config.added_links:
      yield Structure(link, (), factors, tuple(columns))


def _nearest(models: Sequence[Model | None], most: int) -> list[Model]:
  """Of so many structures the shortest description each, these first."""
  of_structure: dict[Structure, Model] = {}
  for model in sorted((model for model in models if model is not None), key=lambda model: model.nats):
    same = model.structure._replace(factors=tuple(sorted(model.structure.factors)))
    of_structure.setdefault(same, model)
  return list(of_structure.values())[:most]


def best_models(models: Sequence[Model], config: SeparableConfig) -> list[Model]:
  """The first that leave about as little as any, each structure once."""
  short = [model for model in models if sum(map(len, model.structure.sums)) <= config.max_functions]
  most = config.times_least * (min((model.left for model in short), default=0.0) + alternating.EXACT)
  return _nearest([model for model in short if model.left <= min(most, config.most_left)], config.num_models)


def _degrees(num_rows: int, num_columns: int, config: SeparableConfig) -> tuple[int, ...]:
  """Of the polynomials: those for which there are rows enough; none is too few to see a structure."""
  most = num_rows // (config.rows_per_constant * num_columns)
  return tuple(dict.fromkeys(min(degree, most) for degree in config.degrees if most >= config.degrees[0]))


def _all_bases(x: np.ndarray, columns: Sequence[int], config: SeparableConfig) -> list[dict[int, Basis]]:
  """By column, of few and of many polynomials; of the logarithm where a column has values of many sizes, with inverses
  and a logarithm where it has some of both signs.
  """
  ends = {column: (float(x[:, column].min()), float(x[:, column].max())) for column in columns}
  is_wide = {column: least > 0 and largest > config.wide * least for column, (least, largest) in ends.items()}
  nearest = {column: float(np.min(np.abs(x[:, column]))) if ends[column][0] < 0 < ends[column][1] else 0.0
             for column in columns}
  others = [(True, False)] * any(is_wide.values()) + [(False, True)] * any(nearest.values())
  return [{column: Basis(*ends[column], is_log and is_wide[column], degree, has_inverses * nearest[column])
           for column in columns}
          for degree in _degrees(len(x), len(columns), config) for is_log, has_inverses in ((False, False), *others)]


def _targets(
  rows: Rows, columns: Sequence[int], links: Sequence[str], config: SeparableConfig
) -> Iterator[tuple[Monomial, str, Rows]]:
  """`(divisor, link, rows of the function of y over the divisor)`."""
  divisors: list[Monomial] = [(), *(((column, power),) for column in columns for power in config.divisor_powers)]
  if config.divisor_powers and len(columns) <= config.max_paired:
    divisors += [tuple(zip(some, powers, strict=True)) for some in itertools.combinations(columns, 2)
                 for powers in itertools.product(config.pair_powers, repeat=2)]
  for divisor in divisors:
    divided = _divided(rows, divisor)
    is_usable = np.all(np.isfinite(divided.y) & (divided.weights > 0))
    own = (links, config.divided_links, config.pair_links)[len(divisor)]
    for name in (name for name in links if is_usable and name in own):
      if LINKS[name].is_defined(divided.y) and (target := terms.whole(LINKS[name], divided)) is not None:
        yield divisor, name, Rows(rows.x, *target)


def _divided(rows: Rows, divisor: Monomial) -> Rows:
  """y over the divisor, weighted by what an error of it makes of y."""
  values = Values(rows.x)([divisor])[:, 0]
  return Rows(rows.x, rows.y / values, rows.weights * (values / np.max(np.abs(values))) ** 2)


def _target(rows: Rows, structure: Structure) -> Rows:
  """A function of y over the divisor, of those that `_targets` has."""
  target = terms.whole(LINKS[structure.link], _divided(rows, structure.divisor))
  assert target is not None, "models are of targets that there are"
  return Rows(rows.x, *target)


def _design(columns: Sequence[int], bases: dict[int, Basis], x: np.ndarray) -> np.ndarray:
  """Ones and the polynomials of some columns [N, C] at points x [N, D]."""
  return np.column_stack([np.ones(len(x)), *(bases[column](x[:, column]) for column in columns)])


def _fitted(rows: Rows, structure: Structure, bases: dict[int, Basis], config: SeparableConfig) -> Model | None:
  """A model, unless it has too many constants or leaves too much."""
  interruption.check()
  size = sum(1 + sum(bases[column].size for column in some) for some in structure.sums)
  if size * config.rows_per_product > len(rows):
    return None
  designs = [_design(columns, bases, rows.x) for columns in structure.factors]
  beside = None if structure.rest is None else _design(structure.rest, bases, rows.x)
  fit = alternating.fit_product(designs, rows.y, rows.weights, beside=beside, config=config)
  if not fit.left < config.most_left:
    return None
  nats = len(rows) / 2 * np.log(fit.left + alternating.EXACT) + size / 2 * np.log(len(rows))
  return Model(float(nats), structure, bases, fit.coefficients, fit.left)


def _without_idle(model: Model, rows: Rows, config: SeparableConfig) -> Model:
  """The model without functions that hardly matter, one after the other."""
  target = _target(rows, model.structure)
  while True:
    smaller = [_fitted(target, structure, model.bases, config) for structure in model.structure.smaller()]
    best = min((each for each in smaller if each is not None), key=lambda each: each.nats, default=model)
    if best.nats >= model.nats:
      return model
    model = best


# --- which functions -----------------------------------------------------------------------------------------------


def tabulated(
  model: Model, rows: Rows, places: dict[int, np.ndarray]
) -> list[tuple[int, int, Tabulated]]:
  """`(place of the sum, column, function)` of every function of a model, at values [P] of its column; the constant of a
  sum goes to its first.
  """
  model = _settled(model, rows.x)
  values, num = model.values(rows.x), len(model.structure.factors)
  whole = np.prod(values[:num], axis=0) + sum(values[num:])
  error = model.left * float(np.var(whole))
  found, has_constant = [], set[int]()
  for place, column, coefficients in model.functions():
    others = np.prod([each for k, each in enumerate(values[:num]) if k != place], axis=0) if place < num else 1.0
    constant = 0.0 if place in has_constant else float(model.coefficients[place][0])
    has_constant.add(place)
    at = model.bases[column](places[column]) @ coefficients + constant
    found.append((place, column, Tabulated(at, error / float(np.mean(np.square(others))))))
  return found


def _of_logarithms(
  model: Model, functions: list[tuple[int, int, Tabulated]]
) -> tuple[Model, list[tuple[int, int, Tabulated]]]:
  """A sum that log(y) is as a product that y is; another model as it is."""
  if model.structure.link != "exp":
    return model, functions
  structure = Structure("y", (), tuple((column,) for _, column, _ in functions))
  factors = [(column, np.exp(of.values), of.error) for _, column, of in functions]
  return model._replace(structure=structure), [
    (place, column, Tabulated(values, error * float(np.mean(values**2)))) for place, (column, values, error) in
    enumerate(factors)]


def _settled(model: Model, x: np.ndarray) -> Model:
  """Of F(x)*G + h(x), which is F(x)*(G + c) + (h(x) - c*F(x)) for any c, that in which what is added comes nearest to a
  polynomial of the second degree.
  """
  factors, rest = model.structure.factors, model.structure.rest or ()
  coefficients = list(model.coefficients)
  for i, columns in enumerate(factors if len(factors) == 2 else ()):
    if len(columns) == 1 and columns[0] in rest:
      [column] = columns
      own = {place: some for place, each, some in model.functions() if each == column}
      at = model.bases[column](x[:, column])
      factor, added = at @ own[i], at @ own[len(factors)]
      shift = np.linalg.lstsq(np.column_stack([factor, np.vander(x[:, column], 3)]), added)[0][0]
      coefficients[1 - i] = coefficients[1 - i] + shift * np.eye(1, len(coefficients[1 - i]))[0]
      begin = 1 + sum(model.bases[other].size for other in rest[: rest.index(column)])
      changed = coefficients[-1].copy()
      changed[begin : begin + at.shape[1]] -= shift * own[i]
      changed[0] -= shift * coefficients[i][0]
      coefficients[-1] = changed
  return model._replace(coefficients=tuple(coefficients))


def _written(model: Model, functions: Sequence[tuple[int, list[tuple[float, Node]]]], most: int) -> list[Node]:
  """Formulas of a model, the likeliest forms of all functions first."""
  structure = model.structure
  link: Link = LINKS[structure.link]
  chosen: list[tuple[float, tuple[Node, ...]]] = [(0.0, ())]
  for _, forms in functions:
    longer = [(nats + more, (*some, form)) for (nats, some), (more, form) in itertools.product(chosen, forms)]
    short = [each for each in longer if sum(map(programs.size, each[1])) <= programs.MAX_TOKENS]
    chosen = sorted(short, key=lambda each: each[0])[:most]
  found = []
  for _, some in chosen:
    sums = [[form for (place, _), form in zip(functions, some, strict=True) if place == i]
            for i in range(len(structure.sums))]
    product = chain("*", [tidy(chain("+", each)) for each in sums[: len(structure.factors)]])
    rest = [] if structure.rest is None else sums[-1] or [number(float(model.coefficients[-1][0]))]
    node = link.undo(tidy(chain("+", [product, *rest])))
    found.append(tidy(Node("*", (node, to_node(structure.divisor)))) if structure.divisor else node)
  return [node for node in found if programs.size(node) <= programs.MAX_TOKENS]
