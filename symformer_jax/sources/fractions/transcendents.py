"""Exponentials, powers and logarithms of columns, without constants of their own: what a fraction may be made of
beside the columns. Some hundreds to two thousand, the short ones first.
"""

from collections.abc import Callable, Iterator, Sequence
import itertools
from typing import NamedTuple

import numpy as np

from symformer_jax.engine.config import TranscendentsConfig
from symformer_jax.language import expression
from symformer_jax.language.expression import VARIABLE, Node, negate, number, power
from symformer_jax.language.tidy import tidy

# Digits by which two are the same on some rows.
_DIGITS = 9
# What varies by a smaller share of its size is a constant but for rounding.
_LEAST = 1e-6


class Transcendent(NamedTuple):
  """A function of columns, or two.

  Attributes:
    nodes: the formulas.
    values: on the rows, of median size 1 each [N, len(nodes)].
    is_linear: whether no squares of it are looked at: those of logarithms seldom stand beside them.
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
    made = [*self._exponentials(self._arguments()), *self._powers(self._bases(), self._exponents()),
            *self._exponentials(self._powers_of_arguments()), *self._norms(self._bases_of_norms()), *self._logarithms()]
    return self._distinct(sorted(made, key=_size))[: self._config.max_single]

  @np.errstate(all="ignore")
  def pairs(self) -> list[Transcendent]:
    """Two of a kind: exponentials of monomials, powers of one base, powers to one exponent."""
    exponentials = self._distinct(self._exponentials(self._short_monomials()))
    powers: list[Transcendent] = []
    for base in (*self.columns, *self._shifted(self.columns), *self._quotients(), *self._odds()):
      powers += _pairs(self._distinct(self._powers((base,), self.columns)))
    for exponent in self.columns:
      to_one = self._distinct(self._powers((*self.columns, *self._products()), (exponent,)))
      powers += _pairs(to_one)
      norms = self._distinct(self._norms([two for two in self._bases_of_norms()], (exponent,)))
      powers += [_pair(one, other) for one in to_one for other in norms if _are_alike((one, other))]
    alike = [two for two in _pairs(exponentials) if _are_alike(two)]
    return [*sorted(alike, key=_size), *sorted(powers, key=_size)][: self._config.max_pairs]

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
    """What has such logarithms [N], unless it is a constant, or but a few rows have any of it."""
    low, high = np.quantile(at, self._config.most_rows)
    if _LEAST < high - low < self._config.most_growth and np.ptp(at) < self._config.largest:
      yield Transcendent((node,), np.exp(at - np.median(at))[:, None])

  def _logarithms(self) -> Iterator[Transcendent]:
    if not self._allows("ln"):
      return
    for argument in (*self.columns, *self._shifted(self.columns), *self._shifted(self._quotients()), *self._sums()):
      at = np.log(expression.evaluate(argument, self._x))
      if np.all(np.isfinite(at)) and np.ptp(at) > _LEAST:
        yield Transcendent((Node("ln", (argument,)),), (at / np.median(np.abs(at)))[:, None])

  def _arguments(self) -> list[Node]:
    """Of exponentials: monomials, sums of two columns, and 1 plus or minus one, alone and times or over a column."""
    sums = self._sums()
    return [*self._monomials(), *sums, *(node for each in (*sums, *self._shifted(self.columns))
                                         for node in self._times_a_column(each))]

  def _bases(self) -> list[Node]:
    quotients = self._quotients()
    return [*self.columns, *self._shifted(self.columns), *self._sums(), *quotients, *self._shifted(quotients),
            *self._odds(), *self._products()]

  def _exponents(self) -> list[Node]:
    own = [*self.columns, *map(_inverse, self.columns)]
    return own if len(self.columns) > self._config.max_columns_of_products else [
      *own, *self._products(), *self._quotients()]

  def _short_monomials(self) -> list[Node]:
    return [*self.columns, *map(_inverse, self.columns), *self._products(), *self._quotients()]

  def _monomials(self) -> list[Node]:
    """Of one column, two and three."""
    found = [*self._short_monomials(), *(power(column, number(2.0)) for column in self.columns)]
    for one, other in itertools.permutations(self.columns, 2):
      square = power(one, number(2.0))
      found += [_product(square, other), _product(square, _inverse(other)), _product(other, _inverse(square))]
    for three in itertools.combinations(self.columns, 3):
      found.append(_product(_product(*three[:2]), three[2]))
      for i, one in enumerate(three):
        others = _product(*three[:i], *three[i + 1 :])
        found += [_product(others, _inverse(one)), _product(one, _inverse(others))]
    return found

  def _times_a_column(self, node: Node) -> list[Node]:
    return [made for column in self.columns for made in (
      _product(node, column), _product(node, _inverse(column)), _product(column, _inverse(node)))]

  def _products(self) -> list[Node]:
    return [_product(*two) for two in itertools.combinations(self.columns, 2)]

  def _quotients(self) -> list[Node]:
    return [_product(one, _inverse(other)) for one, other in itertools.permutations(self.columns, 2)]

  def _sums(self) -> list[Node]:
    return [made for one, other in itertools.combinations(self.columns, 2)
            for made in (_sum(one, other), _sum(one, negate(other)), _sum(other, negate(one)))]

  def _odds(self) -> list[Node]:
    """(1 - a)/a of a probability a."""
    return [_sum(_inverse(column), number(-1.0)) for column in self.columns]

  def _shifted(self, some: Sequence[Node]) -> list[Node]:
    return [made for each in some for made in (_sum(number(1.0), each), _sum(number(1.0), negate(each)))]


def _pairs(some: Sequence[Transcendent]) -> list[Transcendent]:
  return [Transcendent((*one.nodes, *other.nodes), np.concatenate([one.values, other.values], axis=1))
          for one, other in itertools.combinations(some, 2)]


def _size(functions: Transcendent) -> int:
  return sum(map(expression.complexity, functions.nodes))


def _are_alike(two: Transcendent) -> bool:
  """Whether two functions have a column in common, or are each of one."""
  one, other = ({node.value for node in expression.walk(each) if node.token == VARIABLE} for each in two.nodes)
  return bool(one & other) or len(one) == len(other) == 1


def _product(one: Node, other: Node) -> Node:
  return Node("*", (one, other))


def _sum(one: Node, other: Node) -> Node:
  return Node("+", (one, other))


def _inverse(node: Node) -> Node:
  return Node("inv", (node,))
