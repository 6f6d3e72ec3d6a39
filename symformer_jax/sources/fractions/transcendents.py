"""Exponentials, powers, roots and logarithms of columns, without constants of their own: what a fraction may be made of
beside the columns. Of two columns a hundred, of six two thousand, the short ones first.
"""

from collections.abc import Callable, Iterator, Sequence
import itertools
from typing import NamedTuple

import numpy as np

from symformer_jax.engine.config import TranscendentsConfig
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, inverse, negate, number, plus, power, times
from symformer_jax.language.tidy import tidy

# Digits by which two are the same on some rows.
_DIGITS = 9
# What varies by a smaller share of its size is a constant but for rounding.
_LEAST = 1e-6


class Transcendent(NamedTuple):
  """A function of columns, or two.

  Attributes:
    nodes: the formulas.
    values: on the rows, of median size 1 each, but where that is 0, as of logarithms of 1: of largest size 1
      [N, len(nodes)].
  """

  nodes: tuple[Node, ...]
  values: np.ndarray


class Candidates:
  """What may stand beside the columns of some rows.

  Attributes:
    columns: formulas of the columns.
  """

  def __init__(self, x: np.ndarray, columns: Sequence[Node], config: TranscendentsConfig,
               allows: Callable[[str], bool]):
    """Args: x: points [N, D] of which columns are formulas; allows: whether an operator may stand in a formula."""
    self.columns, self._x, self._config, self._allows = tuple(columns), x, config, allows

  @np.errstate(all="ignore")  # what is not finite is left out
  def single(self) -> list[Transcendent]:
    """One function each: exp(m), exp((a + b)*c), (1 + a)**b, log(1 - a), ..."""
    made = [*self._exponentials([*self._arguments(), *self._arguments_with_powers()]),
            *self._powers(self._bases(), self._exponents()), *self._powers_to_quotients(), *self._roots(),
            *(norm for norm, _ in self._norms()), *self._logarithms()]
    return self._distinct(sorted(made, key=_size))[: self._config.max_single]

  @np.errstate(all="ignore")
  def pairs(self) -> list[Transcendent]:
    """Two of a kind: exponentials of monomials, powers of one base, powers to one exponent, roots; a norm and one of
    the powers that it is a sum of; a power, and one of 1 plus or minus it."""
    exponentials = self._distinct(self._exponentials(self._short_monomials()))
    powers: list[Transcendent] = []
    for base in (*self.columns, *self._shifted(self.columns), *self._quotients(), *self._odds()):
      powers += _pairs(self._distinct(self._powers((base,), self.columns)))
    has_few = len(self.columns) <= self._config.max_columns_of_products
    bases = (*self.columns, *self._products(), *(self._sums() if has_few else ()))
    for exponent in self.columns:
      powers += _pairs(self._distinct(self._powers(bases, (exponent,))))
    norms = [_pair(norm, term) for norm, terms in self._norms() for term in terms]
    roots = list(filter(_are_alike, _pairs(self._distinct(self._roots()))))
    alike = [two for two in _pairs(exponentials) if has_few or _are_alike(two)]
    others = sorted([*powers, *norms, *roots, *self._nested_powers()], key=_size)
    return [*sorted(alike, key=_size), *others][: self._config.max_pairs]

  def _distinct(self, some: Iterator[Transcendent] | Sequence[Transcendent]) -> list[Transcendent]:
    """Those of which no other before has the values, or the inverse ones."""
    found: dict[tuple[str, ...], Transcendent] = {}
    for each in some:
      sizes = np.log(np.abs(each.values[:: max(len(each.values) // 8, 1), 0]))
      key = tuple(f"{size:.{_DIGITS}g}" for size in sizes * np.sign(sizes[np.argmax(np.abs(sizes))]))
      found.setdefault(key, each)
    return list(found.values())

  def _exponentials(self, arguments: Sequence[Node]) -> Iterator[Transcendent]:
    """Of the sign that most rows have less of."""
    if not self._allows("exp"):
      return
    for argument in arguments:
      at = expression.evaluate(argument, self._x)
      if np.all(np.isfinite(at)):
        is_growth = np.median(at) > 0
        inner = tidy(negate(argument)) if is_growth else argument
        yield from self._of_logarithm(Node("exp", (inner,)), -at if is_growth else at)

  def _powers(self, bases: Sequence[Node], exponents: Sequence[Node]) -> Iterator[Transcendent]:
    if not self._allows("pow"):
      return
    logarithms = [np.log(expression.evaluate(base, self._x)) for base in bases]
    values = [expression.evaluate(exponent, self._x) for exponent in exponents]
    for (base, logarithm), (exponent, value) in itertools.product(
      zip(bases, logarithms, strict=True), zip(exponents, values, strict=True)):
      at = logarithm * value
      if np.all(np.isfinite(at)):
        yield from self._of_logarithm(power(base, exponent), at)

  def _of_logarithm(self, node: Node, at: np.ndarray) -> Iterator[Transcendent]:
    """What has such logarithms [N], unless it is a constant, or but a few rows have all of it."""
    inner = np.sort(at)
    middle = (inner[(len(at) - 1) // 2] + inner[len(at) // 2]) / 2
    usual = inner[int(self._config.most_rows * (len(at) - 1))]
    if (inner[-1] - inner[0] > _LEAST and usual - middle < self._config.most_usual
        and inner[-1] - middle < self._config.most_growth):
      yield Transcendent((node,), np.exp(np.maximum(at - middle, -self._config.most_growth))[:, None])

  def _logarithms(self) -> Iterator[Transcendent]:
    if not self._allows("ln"):
      return
    for argument in (*self.columns, *self._shifted(self.columns), *self._shifted(self._quotients()), *self._sums()):
      at = np.log(expression.evaluate(argument, self._x))
      if np.all(np.isfinite(at)) and np.ptp(at) > _LEAST:
        size = np.median(np.abs(at)) or np.max(np.abs(at))
        yield Transcendent((Node("ln", (argument,)),), (at / size)[:, None])

  def _norms(self) -> Iterator[tuple[Transcendent, list[Transcendent]]]:
    """(a**c + b**c)**(1/c) of columns, also of 1, products and quotients, and the powers that it is a sum of."""
    one = number(1.0)
    pairs = [*((one, each) for each in (*self.columns, *self._products(), *self._quotients())),
             *itertools.combinations(self.columns, 2), *itertools.product(self.columns, self._products()),
             *((column, plus(one, negate(column))) for column in self.columns)]
    for exponent, two in itertools.product(self.columns if self._allows("pow") else (), pairs):
      if expression.columns_of(exponent) & (expression.columns_of(two[0]) | expression.columns_of(two[1])):
        continue
      by = expression.evaluate(exponent, self._x)
      logarithms = [by * np.log(expression.evaluate(each, self._x)) * np.ones(len(by)) for each in two]
      of_norm = np.logaddexp(*logarithms) / by
      if np.all(np.isfinite(of_norm)):
        terms = [number(1.0) if each == one else power(each, exponent) for each in two]
        for norm in self._of_logarithm(power(plus(*terms), inverse(exponent)), of_norm):
          yield norm, [each for at, term in zip(logarithms, terms, strict=True)
                       for each in self._of_logarithm(term, at)]

  def _nested_powers(self) -> Iterator[Transcendent]:
    """a**b and (1 + a**b)**c, (1 - a**b)**c."""
    for base, exponent, outer in itertools.permutations(self.columns, 3):
      for inner in self._powers((base,), (exponent,)):
        for whole in self._powers(self._shifted(inner.nodes), (outer,)):
          yield _pair(inner, whole)

  def _powers_to_quotients(self) -> Iterator[Transcendent]:
    """a**(b/(a + c)), (a/b)**(b/(c - b)), ... of few columns."""
    if len(self.columns) <= self._config.max_columns_of_products:
      exponents = [times(column, inverse(each)) for column in (number(1.0), *self.columns) for each in self._sums()]
      yield from self._powers([*self.columns, *self._quotients()], exponents)

  def _roots(self) -> Iterator[Transcendent]:
    """Square roots of sums of two columns or squares, and of 1 and one."""
    squares = self._squares(self.columns)
    sums = [made for some in (self.columns, squares) for made in (*self._sums(some), *self._shifted(some))]
    for each in (*self.columns, *sums) if self._allows("sqrt") else ():
      at = np.log(expression.evaluate(each, self._x)) / 2
      if np.all(np.isfinite(at)):
        yield from self._of_logarithm(Node("sqrt", (each,)), at)

  def _arguments_with_powers(self) -> list[Node]:
    """a**b, (a*b)**c, (a/b)**c, a*b**c."""
    if not self._allows("pow"):
      return []
    raised = [power(base, exponent) for base in (*self.columns, *self._products(), *self._quotients())
              for exponent in self.columns if not expression.columns_of(base) & expression.columns_of(exponent)]
    return [*raised, *(times(column, power(base, exponent))
                       for column, base, exponent in itertools.permutations(self.columns, 3))]

  def _arguments(self) -> list[Node]:
    """Of exponentials: monomials, sums of two columns, and 1 plus or minus one, alone and times or over a column."""
    sums = self._sums()
    return [*self._monomials(), *sums, *(node for each in (*sums, *self._shifted(self.columns))
                                         for node in self._times_a_column(each))]

  def _bases(self) -> list[Node]:
    quotients = self._quotients()
    return [*self.columns, *self._shifted(self.columns), *self._sums(), *quotients, *self._shifted(quotients),
            *self._odds(), *self._products(), *self._positive_logarithms()]

  def _exponents(self) -> list[Node]:
    own = [*self.columns, *map(inverse, self.columns)]
    return own if len(self.columns) > self._config.max_columns_of_products else [
      *own, *self._products(), *self._quotients()]

  def _short_monomials(self) -> list[Node]:
    return [*self.columns, *map(inverse, self.columns), *self._products(), *self._quotients()]

  def _monomials(self) -> list[Node]:
    """Of one column, two and three."""
    found = [*self._short_monomials(), *self._squares((*self.columns, *self._products(), *self._quotients()))]
    for square, other in itertools.product(self._squares(self.columns), self.columns):
      if square.args[0] != other:
        found += [times(square, other), times(square, inverse(other)), times(other, inverse(square))]
    for three in itertools.combinations(self.columns, 3):
      found.append(times(times(*three[:2]), three[2]))
      for i, one in enumerate(three):
        others = times(*three[:i], *three[i + 1 :])
        found += [times(others, inverse(one)), times(one, inverse(others))]
    return found

  def _times_a_column(self, node: Node) -> list[Node]:
    return [made for column in self.columns for made in (
      times(node, column), times(node, inverse(column)), times(column, inverse(node)))]

  def _products(self) -> list[Node]:
    return [times(*two) for two in itertools.combinations(self.columns, 2)]

  def _quotients(self) -> list[Node]:
    return [times(one, inverse(other)) for one, other in itertools.permutations(self.columns, 2)]

  def _sums(self, some: Sequence[Node] | None = None) -> list[Node]:
    """Sums and differences of two, of the columns by default."""
    return [made for one, other in itertools.combinations(self.columns if some is None else some, 2)
            for made in (plus(one, other), plus(one, negate(other)), plus(other, negate(one)))]

  def _squares(self, some: Sequence[Node]) -> list[Node]:
    return [power(each, number(2.0)) for each in some] if self._allows("pow2") else []

  def _positive_logarithms(self) -> list[Node]:
    """-log(a), -log(1 - a), log(1 + a), -log(1 - 1/a) of few columns: quantiles of extremes are powers of these."""
    if len(self.columns) > self._config.max_columns_of_products or not self._allows("ln"):
      return []
    below = [plus(number(1.0), negate(each)) for each in (*self.columns, *map(inverse, self.columns))]
    return [*(negate(Node("ln", (each,))) for each in (*self.columns, *below)),
            *(Node("ln", (plus(number(1.0), each),)) for each in self.columns)]

  def _odds(self) -> list[Node]:
    """(1 - a)/a of a probability a."""
    return [plus(inverse(column), number(-1.0)) for column in self.columns]

  def _shifted(self, some: Sequence[Node]) -> list[Node]:
    return [made for each in some for made in (plus(number(1.0), each), plus(number(1.0), negate(each)))]


def _pair(one: Transcendent, other: Transcendent) -> Transcendent:
  return Transcendent((*one.nodes, *other.nodes), np.concatenate([one.values, other.values], axis=1))


def _pairs(some: Sequence[Transcendent]) -> list[Transcendent]:
  return list(itertools.starmap(_pair, itertools.combinations(some, 2)))


def _size(functions: Transcendent) -> int:
  return sum(map(expression.complexity, functions.nodes))


def _are_alike(two: Transcendent) -> bool:
  """Whether two functions have a column in common, or are each of one."""
  one, other = map(expression.columns_of, two.nodes)
  return bool(one & other) or len(one) == len(other) == 1
