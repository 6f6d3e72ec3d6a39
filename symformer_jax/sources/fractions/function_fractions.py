"""Fractions in one function with one inner constant, wherever that stands: `(1 - exp(-x/1.8))/x - 0.7*exp(-x/1.8)`,
`a + (b - a)/(1 + (z/w)**1.43)`.

With F such a function, exp(c*m), m**c or log(m + c) of a product or sum m of columns, and P and Q polynomials of low
degree in the columns, or their roots, and F, or in the columns times waves of c*m, 2*c*m, ..., P - y*Q = 0 is linear in
all coefficients but c.
So the angle between the space of P and that of y*Q is a function of c alone, and falls to rounding where c is right
(variable projection, Golub and Pereyra 1973); which of the terms are needed the null vector tells there
(`null_vectors`). Of one column y is multiplied by powers of it as well: `7.1*x**(-5)/(exp(7.99/x) - 1)`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
import dataclasses
import functools
import itertools
import math
from typing import ClassVar, NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import DEFAULT, FunctionFractionsConfig, SearchConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.language import expression, programs
from symformer_jax.language.expression import VARIABLE, Node, chain, number, power, variable
from symformer_jax.language.rules import Rule, is_writable
from symformer_jax.language.tidy import tidy
from symformer_jax.sources import monomials, tangents
from symformer_jax.sources.fractions import null_vectors
from symformer_jax.sources.links import LINKS
from symformer_jax.sources.monomials import Monomial
from symformer_jax.sources.stateless import Stateless
from symformer_jax.sources.sums import pair_sums

# What rounding leaves of a coefficient that should vanish, as a share of the largest; of a monomial that is a sum of
# others, as a share of its size.
_NOTHING, _DEPENDENT = 1e-6, 1e-9
# Exponents up to which exponentials are written without an origin.
_MOST_GROWTH = 50.0


class Family(NamedTuple):
  """Functions that differ in one constant.

  Attributes:
    operators: without which they cannot be written.
    constants: which are tried for values of an argument [N], in order; None where it has none.
    table: for constants [K], an argument [N] and a degree [K, N, T]: 1, the function and its powers; of waves 1,
      cos(c*m), sin(c*m), cos(2*c*m), ...
    node: the formula of one of these but 1, by argument, constant, place and origin.
    origin: what is subtracted from an argument [N] when it is written: exponentials of years are beyond all numbers.
    has_powers: whether these are powers, by one of which a fraction may be divided.
  """

  operators: tuple[str, ...]
  constants: Callable[[np.ndarray, FunctionFractionsConfig], np.ndarray | None]
  table: Callable[[np.ndarray, np.ndarray, int], np.ndarray]
  node: Callable[[Node, float, int, float], Node]
  origin: Callable[[float, np.ndarray], float] = lambda constant, argument: 0.0
  has_powers: bool = True

  def num(self, degree: int) -> int:
    return degree + 1 if self.has_powers else 2 * degree + 1


def _rates(argument: np.ndarray, config: FunctionFractionsConfig) -> np.ndarray | None:
  """Of the sign that makes exponentials vary in the denser half of the rows: of quotients of columns the other half is
  far out.
  """
  low, middle, high = np.quantile(argument, (config.most_rows[0], 0.5, config.most_rows[1]))
  if not high > low:
    return None
  sign = 1.0 if high - middle <= middle - low else -1.0
  least, most = config.turns_of_exponential
  # No denser than would double the number of rates; half of the rows may have one value.
  dense = max(2 * min(middle - low, high - middle), least / most * (high - low))
  num = round(config.num_constants * (1 + math.log((high - low) / dense) / math.log(most / least)))
  return sign * np.geomspace(least / (high - low), most / dense, num)


def _exponents(argument: np.ndarray, config: FunctionFractionsConfig) -> np.ndarray | None:
  if np.min(argument) <= 0 or np.max(argument) < config.least_ratio * np.min(argument):
    return None
  return np.geomspace(*config.exponents, config.num_constants)


def _offsets(argument: np.ndarray, config: FunctionFractionsConfig) -> np.ndarray | None:
  return np.geomspace(*config.offsets, config.num_constants) * np.ptp(argument) - np.min(argument)


def _frequencies(argument: np.ndarray, config: FunctionFractionsConfig) -> np.ndarray | None:
  low, high = np.quantile(argument, config.most_rows)
  return config.step * np.arange(1, config.num_frequencies + 1) / (high - low) if high > low else None


def _powers_of(function: np.ndarray, degree: int) -> np.ndarray:
  return function[:, :, None] ** np.arange(degree + 1)


def _exponentials(rates: np.ndarray, argument: np.ndarray, degree: int) -> np.ndarray:
  """The largest of each is 1."""
  rises = rates[:, None] * argument
  return _powers_of(np.exp(rises - np.max(rises, axis=1, keepdims=True)), degree)


def _end(rate: float, argument: np.ndarray) -> float:
  """Where an exponential is largest."""
  return float(np.max(argument) if rate > 0 else np.min(argument))


def _harmonics(frequencies: np.ndarray, argument: np.ndarray, degree: int) -> np.ndarray:
  phase = frequencies[:, None] * argument
  waves = [wave(h * phase) for h in range(1, degree + 1) for wave in (np.cos, np.sin)]
  return np.stack([np.ones_like(phase), *waves], axis=-1)


def _harmonic(argument: Node, frequency: float, place: int, origin: float) -> Node:
  phase = Node("*", (argument, number((place + 1) // 2 * frequency)))
  return Node("cos" if place % 2 else "sin", (phase,))


FAMILIES: dict[str, Family] = {
  "exponentials": Family(
    ("exp",), _rates, _exponentials,
    lambda m, c, k, origin: Node("exp", (Node("*", (Node("+", (m, number(-origin))), number(k * c))),)),
    lambda c, m: _end(c, m) if np.max(np.abs(c * m)) > _MOST_GROWTH else 0.0),
  "powers": Family(
    ("pow",), _exponents, lambda c, m, degree: _powers_of((m / np.max(m)) ** c[:, None], degree),
    lambda m, c, k, origin: power(m, number(k * c))),
  "logarithms": Family(
    ("ln",), _offsets, lambda c, m, degree: _powers_of(np.log(m + c[:, None]), degree),
    lambda m, c, k, origin: power(Node("ln", (Node("+", (m, number(c))),)), number(k))),
  "waves": Family(("cos", "sin"), _frequencies, _harmonics, _harmonic, has_powers=False)}


class Basis(NamedTuple):
  """Monomials above and below the line, each times the functions of a family up to a degree.

  Attributes:
    has_roots: whether there are roots of columns; then those above the line are of other columns than the functions.
  """

  above: tuple[Monomial, ...]
  below: tuple[Monomial, ...]
  degree: int
  has_roots: bool = False

  def of(self, argument: Node) -> "Basis":
    """What there is for functions of an argument."""
    if not self.has_roots:
      return self
    taken = {node.value for node in expression.walk(argument) if node.token == VARIABLE}
    return self._replace(above=tuple(each for each in self.above if not taken & {column for column, _ in each}))

  def terms(self, family: Family) -> tuple[list[tuple[Monomial, int]], list[tuple[Monomial, int]]]:
    """Monomials and places of functions, above and below the line."""
    num = family.num(self.degree)
    above = [(monomial, k) for monomial in self.above for k in range(num)]
    return above, [(monomial, k) for monomial in self.below for k in range(num)]


class Place(NamedTuple):
  """A minimum of what is left of the equation.

  Attributes:
    share: what is left; around: what is typical of the constants around.
    basis: of the equation; family, argument, constant: the function.
  """

  share: float
  around: float
  basis: Basis
  family: Family
  argument: Node
  constant: float

  @property
  def leap(self) -> float:
    return self.share / self.around


@dataclasses.dataclass(frozen=True)
class FunctionFractions(Stateless):
  """Fractions in one function of an unknown constant, that data meet exactly."""

  config: SearchConfig = DEFAULT
  name: str = "function_fractions"

  needs: ClassVar[tuple[str, ...]] = ("+", "*", "inv")

  @property
  def turns(self) -> tuple[int, ...]:
    return self.config.function_fractions.turns

  def _nodes(self, question: Question, turn: int, num: int) -> Sequence[Node]:
    task = question.task
    found = fractions_of(task.fit_rows, task.columns, task.rule, self.config)
    return pair_sums.allowed(found, task, num, self.config.terms)


@np.errstate(all="ignore")  # what is not finite is left out
def fractions_of(
  rows: Rows, columns: Sequence[int], rule: Rule, config: SearchConfig = DEFAULT
) -> list[Node]:
  """Forms of the first fraction that the rows meet, those of few terms first and of these those of few constants, which
  are still to be fitted.

  Args:
    rows: what is fitted; columns: of x, those that formulas are made of; rule: the formulas that count.
  """
  own = config.function_fractions
  looked_at = rows.sample(own.num_rows, seed=0)
  varies = looked_at.varying(columns)
  if not varies or np.ptp(looked_at.y) == 0:
    return []
  arguments = list(itertools.islice(_arguments(varies, own), own.max_arguments))
  near: list[Node] = []
  for basis, equation, undo in _equations(looked_at, varies, rule, own):
    nearest = sorted(equation.places(basis, arguments, rule, own), key=lambda place: place.leap)
    for place in nearest[: own.num_fitted]:
      fitted = equation.with_best_constant(place, own)
      forms = [undo(form) for form in equation.written(fitted, own)] if fitted.leap < own.leap else []
      if forms and fitted.share < own.rounding:
        return forms
      near = near or forms
  return near


def _equations(rows: Rows, columns: Sequence[int], rule: Rule, config: FunctionFractionsConfig
               ) -> "Iterator[tuple[Basis, _Equation, Callable[[Node], Node]]]":
  """What there is to ask, the smallest first, and how y comes back from a fraction: y and functions of it, and of one
  column its products with powers.
  """
  links = [(link.undo, _Equation(rows, link.transform(rows.y))) for link in map(LINKS.__getitem__, config.links)
           if link.is_defined(rows.y) and all(map(rule.allows_operator, link.operators))]
  bases = list(_bases(columns, rows.x, config.degrees[min(len(columns), len(config.degrees)) - 1]))
  first, others = bases[: config.num_bases_of_links], bases[config.num_bases_of_links :]
  yield from ((basis, equation, undo) for basis in first for undo, equation in links)
  if len(columns) == 1:
    of_multiples = list(_bases(columns, rows.x, config.degrees_of_multiples))
    yield from ((basis, equation, undo) for undo, equation in _multiples(rows, columns[0], rule, config)
                for basis in of_multiples)
  yield from ((basis, equation, undo) for basis in others for undo, equation in links[:1])


def _multiples(rows: Rows, column: int, rule: Rule, config: FunctionFractionsConfig
               ) -> "Iterator[tuple[Callable[[Node], Node], _Equation]]":
  for exponent in config.multipliers:
    by, factor = rows.x[:, column] ** exponent, power(variable(column), number(-float(exponent)))
    if is_writable(factor, rule) and np.all(np.isfinite(by)) and np.all(by != 0):
      def undo(node: Node, factor: Node = factor) -> Node:
        return tidy(Node("*", (node, factor)))
      yield undo, _Equation(rows, rows.y * by)


def _bases(columns: Sequence[int], x: np.ndarray, degrees: Sequence[tuple[int, int, int, float]]) -> Iterator[Basis]:
  """The smallest first, of monomials that are independent at points x [N, D]; roots where no column is negative."""
  for above, below, degree, step in degrees:
    if step == 1 or np.all(x[:, columns] >= 0):
      yield Basis(_independent(_up_to(columns, above, step), x), _independent(_up_to(columns, below, step), x), degree,
                  has_roots=step < 1)


def _independent(some: Sequence[Monomial], x: np.ndarray) -> tuple[Monomial, ...]:
  """Those that are no sums of others before them: a column may be there twice, a product of two dummies is 0."""
  values, kept = monomials.Values(x)(some), []
  basis = np.zeros((0, len(x)))
  for monomial, column in zip(some, values.T, strict=True):
    rest = tangents.beyond(basis, column)
    if np.linalg.norm(rest) > _DEPENDENT * np.linalg.norm(column):
      kept.append(monomial)
      basis = np.concatenate([basis, rest[None] / np.linalg.norm(rest)])
  return tuple(kept)


def _up_to(columns: Sequence[int], degree: float, step: float) -> tuple[Monomial, ...]:
  """Monomials up to a total degree, exponents being multiples of a step."""
  found: list[Monomial] = []
  for powers in itertools.product(np.arange(0, degree + step / 2, step).tolist(), repeat=len(columns)):
    if sum(powers) <= degree:
      found.append(tuple((column, p) for column, p in zip(columns, powers, strict=True) if p))
  return tuple(sorted(found, key=lambda monomial: sum(p for _, p in monomial)))


def minima(shares: np.ndarray, num_around: int, rounding: float) -> Iterator[tuple[int, float]]:
  """Where shares [K] are least beside their neighbours, and the median around there, where that is above rounding."""
  around = np.median(np.lib.stride_tricks.sliding_window_view(
    np.pad(shares, num_around, mode="reflect"), 2 * num_around + 1), axis=1)
  for k in range(1, len(shares) - 1):
    if shares[k] <= min(shares[k - 1], shares[k + 1]) and around[k] > rounding:
      yield k, float(around[k])


class _Equation:
  """P - y*Q = 0 at some rows; a row counts less the farther out its y is, as 1/sqrt(1 + y**2).

  Attributes:
    rows: these; y: of them, or a function of it [N].
  """

  def __init__(self, rows: Rows, y: np.ndarray):
    self.rows, self.y = rows, y
    self._size = float(np.median(np.abs(y))) or float(np.max(np.abs(y)))
    self._root = np.sqrt(rows.weights / rows.weights.sum()) / np.hypot(1, y / self._size)
    self._variance = np.sum(self._root**2 * (y - np.average(y, weights=self._root**2)) ** 2)

  def places(
    self, basis: Basis, arguments: Sequence[tuple[str, Node]], rule: Rule, config: FunctionFractionsConfig
  ) -> Iterator[Place]:
    """Minima over the constant of each family and argument."""
    for name, argument in arguments:
      family, values, own = FAMILIES[name], expression.evaluate(argument, self.rows.x), basis.of(argument)
      is_allowed = all(map(rule.allows_operator, family.operators))
      has_rows = sum(map(len, own.terms(family))) * config.rows_per_term <= self.rows.num_distinct
      if not (is_allowed and has_rows and np.all(np.isfinite(values)) and np.ptp(values) > 0):
        continue
      constants = family.constants(values, config)
      if constants is not None:
        interruption.check()
        shares = self.shares(family, constants, values, own)
        for k, around in minima(shares, config.num_around, config.rounding):
          yield Place(float(shares[k]), around, own, family, argument, float(constants[k]))

  def with_best_constant(self, place: Place, config: FunctionFractionsConfig) -> Place:
    """At the least share between the constants on each side of it; where that is no leap, not to the last digit."""
    interruption.check()
    values = expression.evaluate(place.argument, self.rows.x)
    constants = place.family.constants(values, config)
    assert constants is not None
    k = int(np.argmin(np.abs(constants - place.constant)))
    low, high = constants[k - 1], constants[k + 1]
    for division in range(config.num_divisions):
      finer = np.linspace(low, high, config.num_parts + 1)
      shares = self.shares(place.family, finer, values, place.basis)
      k = int(np.argmin(shares))
      low, high = finer[max(k - 1, 0)], finer[min(k + 1, config.num_parts)]
      is_none = shares[k] > config.first_leap * place.share and place.leap > config.first_leap
      if division + 1 == config.num_first and is_none:
        break
    return place._replace(share=float(shares[k]), constant=float(finer[k]))

  def shares(self, family: Family, constants: np.ndarray, argument: np.ndarray, basis: Basis) -> np.ndarray:
    """The least share (squared) of y*Q that P leaves, for constants [K] of functions of an argument [N]: [K]."""
    functions = family.table(constants, argument, basis.degree)
    explaining, left = (np.linalg.qr(self._side(functions, *side))[0] for side in zip(
      basis.terms(family), (self._root, self._root * self.y / self._size), strict=True))
    for _ in range(2):  # the second time takes away what rounding left
      left = left - explaining @ (np.swapaxes(explaining, 1, 2) @ left)
    sizes = np.linalg.svd(np.where(np.isfinite(left), left, 1.0), compute_uv=False)[:, -1]
    return np.maximum(sizes**2, np.finfo(float).tiny)

  def _side(self, functions: np.ndarray, terms: Sequence[tuple[Monomial, int]], factor: np.ndarray) -> np.ndarray:
    """Columns of P or of y*Q [K, N, T], of length 1."""
    some, places = zip(*terms, strict=True)
    columns = (factor[:, None] * monomials.Values(self.rows.x)(some)) * functions[:, :, places]
    return columns / np.linalg.norm(columns, axis=1, keepdims=True)

  def written(self, place: Place, config: FunctionFractionsConfig) -> Iterator[Node]:
    """The fraction of fewest terms that meets y, and those of one term more and more, each in its forms."""
    above, below = place.basis.terms(place.family)
    origin = place.family.origin(place.constant, expression.evaluate(place.argument, self.rows.x))
    write = functools.partial(_term, place, origin)
    over, under = (np.stack([expression.evaluate(write(*term), self.rows.x) for term in side], axis=1)
                   for side in (above, below))
    met = []
    for coefficients in null_vectors.nested(self._root[:, None] * np.column_stack([over, -self.y[:, None] * under])):
      of_top, of_bottom = coefficients[: len(above)], coefficients[len(above) :]
      top, bottom = ([(float(c), *term) for c, term in zip(each, terms, strict=True) if c]
                     for each, terms in ((of_top, above), (of_bottom, below)))
      if not (top and bottom):
        break
      errors = self._root * (over @ of_top / (under @ of_bottom) - self.y)
      if errors @ errors < config.most_missed * self._variance:
        met.append((top, bottom))
    for top, bottom in itertools.islice(reversed(met), config.num_sizes):
      yield from _forms(write, top, bottom, has_powers=place.family.has_powers)


def _arguments(columns: Sequence[int], config: FunctionFractionsConfig) -> Iterator[tuple[str, Node]]:
  """Names of families, and what their functions are of: powers of one column first, then products and sums of two."""
  for size in (1, 2):
    for name, exponents in config.arguments:
      for argument in monomials.monomials(columns, size, exponents[size - 1]) if len(exponents) >= size else ():
        yield name, monomials.to_node(argument)
  for name, pair in itertools.product(config.of_sums, itertools.combinations(map(variable, columns), 2)):
    for sign in (1.0, -1.0):
      yield name, tidy(Node("+", (pair[0], Node("*", (pair[1], number(sign))))))
      for one, other in itertools.permutations(pair):
        yield name, tidy(Node("*", (one, Node("+", (number(1.0), Node("*", (other, number(sign))))))))


# A coefficient, the monomial and the place of the function that it multiplies; and what makes a formula of the latter.
_Term = tuple[float, Monomial, int]
_Write = Callable[[Monomial, int], Node]


def _term(place: Place, origin: float, monomial: Monomial, k: int) -> Node:
  parts = ([monomials.to_node(monomial)] if monomial else []) + (
    [place.family.node(place.argument, place.constant, k, origin)] if k else [])
  return tidy(chain("*", parts)) if parts else number(1)


def _forms(write: _Write, top: Sequence[_Term], bottom: Sequence[_Term], *, has_powers: bool) -> list[Node]:
  """The fraction in as few nodes as may be, and sums of what the line goes into and a rest: of few constants first."""
  if len(bottom) == 1:
    [(size, by, k)] = bottom
    if has_powers or not k:
      return [_sum(write, [(c / size, _over(monomial, by), power_ - k) for c, monomial, power_ in top])]
    multiple = [(c / size, _over(monomial, by), 0) for c, monomial, place in top if place == k]
    rest = [term for term in top if term[2] != k]
    parts = [_sum(write, multiple)] if multiple else []
    return [tidy(chain("+", [*parts, _fraction(write, rest, bottom, has_powers)] if rest else parts))]
  sums = [tidy(chain("+", [_sum(write, multiple), _fraction(write, rest, bottom, has_powers)]))
          for multiple, rest in _divided(top, bottom) if rest]
  forms = dict.fromkeys([*sums, _fraction(write, top, bottom, has_powers)])
  return sorted(forms, key=lambda form: (len(programs.fitted_values(form)), expression.complexity(form)))


def _fraction(write: _Write, top: Sequence[_Term], bottom: Sequence[_Term], has_powers: bool) -> Node:
  """Both may be divided by a power of the function."""
  size = bottom[0][0]
  shifts = range(max(k for _, _, k in (*top, *bottom)) + 1) if has_powers else (0,)
  sides = [[_sum(write, [(c / size, monomial, k - shift) for c, monomial, k in side]) for side in (top, bottom)]
           for shift in shifts]
  return min((tidy(Node("*", (above, Node("inv", (below,))))) for above, below in sides), key=expression.complexity)


def _divided(top: Sequence[_Term], bottom: Sequence[_Term]) -> Iterator[tuple[list[_Term], list[_Term]]]:
  """Of P/Q ways to write P as a multiple of Q and a rest: by a number where both have a term in common, if the rest has
  fewer terms; by all that stands beside F, (p + q*F)/(r + s*F) = q/s + (p - q*r/s)/(r + s*F), where F then stands once.
  """
  above, below = ({(monomial, k): c for c, monomial, k in side} for side in (top, bottom))
  for term in (term for term in above if term in below):
    factor = above[term] / below[term]
    rest = {each: above.get(each, 0.0) - factor * below.get(each, 0.0) for each in {**above, **below} if each != term}
    if len(kept := _kept(rest)) < len(top):
      yield [(factor, (), 0)], kept
  if set(below) == {((), 0), ((), 1)} and all(k <= 1 for _, k in above):
    r, s = below[(), 0], below[(), 1]
    beside = {monomial: c for (monomial, k), c in above.items() if k}
    if beside:
      rest = {(each, 0): above.get((each, 0), 0.0) - beside.get(each, 0.0) * r / s for each, _ in above}
      yield [(c / s, monomial, 0) for monomial, c in beside.items()], _kept(rest)


def _kept(terms: Mapping[tuple[Monomial, int], float]) -> list[_Term]:
  """Those whose coefficient is more than rounding."""
  least = _NOTHING * max(map(abs, terms.values()), default=0.0)
  return [(c, monomial, k) for (monomial, k), c in terms.items() if abs(c) > least]


def _over(monomial: Monomial, by: Monomial) -> Monomial:
  exponents = dict(monomial)
  for column, exponent in by:
    exponents[column] = exponents.get(column, 0.0) - exponent
  return tuple((column, exponent) for column, exponent in sorted(exponents.items()) if exponent)


def _sum(write: _Write, terms: Sequence[_Term]) -> Node:
  return tidy(chain("+", [Node("*", (write(monomial, k), number(c))) for c, monomial, k in terms]))
