"""Sums of fractions over one or two sums of columns and of their logarithms, exact data:
`(1 - x)*(y/(x + y*(1 - x)) - z/(z*x + 1 - x)) - log(x + y*(1 - x))`, `log(1 + x/y) - x/(x + y)`.

With the sums known y is linear in the rest. A basis of what each of up to forty gives beside the columns and their
logarithms, 200 rows of some ten, tells by products of small matrices what every two leave.
"""

from collections.abc import Iterator, Sequence
import contextlib
import itertools
from typing import NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import LogarithmsOfSumsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, inverse, negate, number, plus, times, variable
from symformer_jax.language.rules import Rule
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.links import LINKS
from symformer_jax.sources.projections import directions, sparse, without

ONE = number(1.0)
# What a factor differs by from a whole number that it is.
_WHOLE = 1e-9


class _Terms(NamedTuple):
  """Products of a monomial and a logarithm, an inverse or 1, and their values [N, K]."""

  products: tuple[tuple[Node, Node], ...]
  values: np.ndarray

  @classmethod
  def of(cls, products: Sequence[tuple[Node, Node]], rows: Rows) -> "_Terms":
    """Those that are finite in all rows."""
    values = [expression.evaluate(times(*both), rows.x) * np.ones(len(rows)) for both in products]
    kept = [i for i, each in enumerate(values) if np.all(np.isfinite(each))]
    return cls(tuple(products[i] for i in kept), np.stack([values[i] for i in kept], axis=1))


class _Block(NamedTuple):
  """What a sum gives, and an orthonormal basis of what other terms leave of it [N, K]."""

  terms: _Terms
  basis: np.ndarray


@np.errstate(all="ignore")  # what is not finite is left out
def sums_of(rows: Rows, columns: Sequence[int], rule: Rule, config: LogarithmsOfSumsConfig) -> list[Node]:
  """The shortest such sum that y, or a function of y, is; none where none is met."""
  varies = rows.varying(columns)
  if 2 <= len(varies) <= config.max_columns:
    with contextlib.suppress(np.linalg.LinAlgError):  # odd data cost other closed forms nothing
      return _first(rows, varies, rule, config)
  return []


def _first(rows: Rows, varies: Sequence[int], rule: Rule, config: LogarithmsOfSumsConfig) -> list[Node]:
  some = rows.sample(config.max_rows, seed=0)
  plain = [variable(column) for column in varies]
  outer = _Terms.of(_outer(plain), some)
  basis = directions(outer.values)
  blocks = list(_blocks(plain, some, basis))
  num_terms = len(outer.products) + 2 * max((len(block.terms.products) for block in blocks), default=0)
  if not blocks or some.num_distinct < config.rows_per_term * num_terms:
    return []
  for link in (LINKS[name] for name in config.links):
    if link.is_defined(some.y) and all(map(rule.allows_operator, link.operators)):
      target = link.transform(some.y)
      found = (_written([outer, *(blocks[i].terms for i in chosen)], target, config)
               for chosen in _nearest(blocks, without(target, basis), config.exact * float(target @ target), config))
      allowed = [node for node in (tidy(link.undo(node)) for node in found if node is not None) if rule(node)]
      if allowed:
        return sorted(allowed, key=expression.complexity)[:1]
  return []


def _nearest(
  blocks: Sequence[_Block], left: np.ndarray, most: float, config: LogarithmsOfSumsConfig
) -> list[tuple[int, ...]]:
  """The first single ones, or else pairs, beside which next to nothing is left."""
  interruption.check()
  explained = [block.basis.T @ left for block in blocks]
  whole = float(left @ left)
  single = [i for i, block in enumerate(blocks) if _left_by([block.basis], left) <= most]
  if single:
    return [(i,) for i in single[: config.num_written]]
  pairs: list[tuple[float, tuple[int, ...]]] = []
  for i, j in itertools.combinations(range(len(blocks)), 2):
    shared = blocks[i].basis.T @ blocks[j].basis
    gram = np.eye(shared.shape[1]) - shared.T @ shared
    further = explained[j] - shared.T @ explained[i]
    values, vectors = np.linalg.eigh(gram)
    along = vectors.T @ further
    own = np.sum(np.where(values > config.least_own, along**2 / np.maximum(values, config.least_own), 0.0))
    pairs.append((whole - float(explained[i] @ explained[i]) - float(own), (i, j)))
  near = [pair for _, pair in sorted(pairs)[: config.num_tried]
          if _left_by([blocks[k].basis for k in pair], left) <= most]
  return near[: config.num_written]


def _left_by(bases: Sequence[np.ndarray], left: np.ndarray) -> float:
  rest = without(left, directions(np.concatenate(bases, axis=1)))
  return float(rest @ rest)


def _written(some: Sequence[_Terms], target: np.ndarray, config: LogarithmsOfSumsConfig) -> Node | None:
  """The sum of the fewest terms; None where none is a logarithm of a sum: fractions are looked for elsewhere."""
  products = [both for terms in some for both in terms.products]
  design = np.concatenate([terms.values for terms in some], axis=1)
  chosen, factors = sparse(design, target, config.exact * float(target @ target), times_left=config.times_left)
  by_base: dict[Node, list[Node]] = {}
  for i, factor in zip(chosen, factors, strict=True):
    monomial, base = products[i]
    by_base.setdefault(base, []).append(Node("*", (monomial, number(_simple(float(factor))))))
  if not any(base.token == "ln" and base.args[0].token != expression.VARIABLE for base in by_base):
    return None
  return chain("+", [times(chain("+", terms), base) for base, terms in by_base.items()])


def _simple(factor: float) -> float:
  """A whole number where it is one but for rounding."""
  return float(round(factor)) if abs(factor - round(factor)) <= _WHOLE else factor


def _blocks(plain: Sequence[Node], rows: Rows, basis: np.ndarray) -> Iterator[_Block]:
  monomials = [ONE, *plain, *(times(*two) for two in itertools.combinations(plain, 2))]
  for each in _sums(plain):
    values = expression.evaluate(each, rows.x)
    if np.all(values > 0) and np.all(np.isfinite(values)) and np.ptp(values) > 0:
      over, logarithm = inverse(tidy(each)), Node("ln", (tidy(each),))
      terms = _Terms.of([*((above, over) for above in monomials), *((by, logarithm) for by in (ONE, *plain))], rows)
      yield _Block(terms, directions(without(terms.values / np.linalg.norm(terms.values, axis=0), basis)))


def _outer(plain: Sequence[Node]) -> list[tuple[Node, Node]]:
  """1, columns, products of two, and logarithms of columns times 1 and columns."""
  squares = (times(*two) for two in itertools.combinations_with_replacement(plain, 2))
  return [*((each, ONE) for each in (ONE, *plain, *squares)),
          *((by, Node("ln", (each,))) for each in plain for by in (ONE, *plain))]


def _sums(plain: Sequence[Node]) -> Iterator[Node]:
  """Of two columns and products of two, of 1 and such; means of 1 and a column, by the share that another is."""
  pairs = list(itertools.combinations(plain, 2))
  for one, other in pairs:
    yield from (plus(one, other), plus(one, negate(other)), plus(other, negate(one)))
  for each in (*plain, *(times(*two) for two in pairs)):
    yield from (plus(ONE, each), plus(ONE, negate(each)), plus(each, number(-1.0)))
  for share, other in itertools.permutations(plain, 2):
    yield plus(share, times(other, plus(ONE, negate(share))))
    yield plus(ONE, times(share, plus(other, number(-1.0))))
  for one, (a, b) in itertools.product(plain, pairs):
    if one not in (a, b):
      yield plus(one, times(a, b))
