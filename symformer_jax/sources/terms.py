"""New candidates from parts of others and from atoms: sums and products of few, under a function or none.

A model often names every part of a formula, but not all of them in one sample. A sum is linear in its terms, so which
of them belong together needs no sampling: they are selected forward (pursuit.py). Functions of y are tried as sums as
well (`LINKS`), and the logarithm of |y| as one of logarithms, which makes products of powers.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
import dataclasses
import functools
import itertools
from typing import Protocol

import numpy as np

from symformer_jax.engine.config import DEFAULT, TIERS, PursuitConfig, SearchConfig, TermsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, complexity, flatten, number, power, variable
from symformer_jax.language.tidy import tidy
from symformer_jax.selection import scoring
from symformer_jax.sources import families, library, products, pursuit

# exp(y) may be a sum where y reaches no further than this: squares of more leave nothing of small ones.
LARGEST_EXPONENT = 30.0


@dataclasses.dataclass(frozen=True)
class Link:
  """A function of y that may be a sum.

  Attributes:
    tokens: the operators that undo it, the last first: y = sqrt(1/sum) for ("sqrt", "inv"); none for y itself.
    transform: y [N] -> the function's values; derivative: its size, for what an error of y becomes.
    is_defined: whether it may be asked of y.
  """

  tokens: tuple[str, ...]
  transform: Callable[[np.ndarray], np.ndarray]
  derivative: Callable[[np.ndarray], np.ndarray]
  is_defined: Callable[[np.ndarray], bool]

  def undo(self, node: Node) -> Node:
    """y as a function of the sum."""
    for token in reversed(self.tokens):
      node = Node(token, (node,))
    return tidy(node)


LINKS = {
  "y": Link((), lambda y: y, np.ones_like, lambda y: True),
  "inv": Link(("inv",), lambda y: 1 / y, lambda y: 1 / y**2, lambda y: bool(np.all(y != 0))),
  "ln": Link(("ln",), np.exp, np.exp, lambda y: float(np.max(np.abs(y))) < LARGEST_EXPONENT),
  "exp": Link(("exp",), np.log, lambda y: 1 / y, lambda y: bool(np.all(y > 0))),
  "sqrt": Link(("sqrt",), np.square, lambda y: 2 * y, lambda y: bool(np.all(y >= 0))),
  "sqrt_inv": Link(("sqrt", "inv"), lambda y: y**-2, lambda y: 2 * y**-3, lambda y: bool(np.all(y > 0))),
  "asin": Link(("asin",), np.sin, np.cos, lambda y: float(np.max(np.abs(y))) < np.pi / 2),
  "atan": Link(("atan",), np.tan, lambda y: np.cos(y) ** -2, lambda y: float(np.max(np.abs(y))) < np.pi / 2),
}


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
  parts = _Parts(nodes, rows.x, columns, terms)
  pursuit_config = dataclasses.replace(config.pursuit, max_columns=_max_parts(rows, terms.max_parts, terms))
  sums = [formula for _, formula in _all_sums(parts, rows, terms.links, pursuit_config)]
  products_ = _products(parts, rows, pursuit_config, terms.near_half) if terms.use_products else []
  return scored([*sums, *products_], rows, max_nodes=terms.max_nodes)


@np.errstate(all="ignore")
def combine_with_atoms(
  nodes: Sequence[Node], rows: Rows, *, columns: Sequence[int], allows: Callable[[str], bool] | None,
  config: SearchConfig = DEFAULT,
) -> list[tuple[Node, float]]:
  """Sums of few atoms and parts that come near, for every function of y: their inner constants are still to be fitted.

  Args:
    nodes, rows, columns: as in `recombine`.
    allows: operators by name, no atom has another; None for all.
    config: its `terms`, `library`, `products` and `pursuit` are used.
  Returns:
    `(formula, weighted mean squared error)`, all finite: the best of one part, of two, of more; the second best...
  """
  terms = config.terms
  score_all = functools.partial(scored, rows=rows, max_nodes=terms.max_nodes)
  some = rows.sample(terms.num_rows, seed=0)
  both = _Union([_Parts(nodes, some.x, columns, terms), library.Atoms(some.x, columns, allows, config=config.library)])
  by_size: dict[int, list[Node]] = {}
  searches, made = terms.searches, []
  if len(columns) >= terms.min_many:
    made = [score_all(formulas) for formulas in products.find_products(
      some, columns, allows, config=config.products, pursuit_config=config.pursuit)]
    least = min((mse for pairs in made for _, mse in pairs), default=np.inf)
    searches = terms.many_searches if least > terms.exact * np.var(rows.y) else terms.many_searches[-1:]
  for tier, max_columns, num_first, num_pairs in searches:
    subset = _Subset(both, np.flatnonzero(both.tiers >= TIERS.index(tier)))
    pursuit_config = dataclasses.replace(
      config.pursuit, max_columns=_max_parts(some, max_columns, terms), num_first=num_first, num_pairs=num_pairs)
    for size, formula in _all_sums(subset, some, terms.links, pursuit_config):
      by_size.setdefault(size, []).append(formula)
  # On a grid a short sum that is right has a larger error than long ones that are not: every size has its turn.
  in_order = [sorted(score_all(formulas), key=lambda pair: pair[1]) for _, formulas in sorted(by_size.items())]
  cost = functools.partial(_cost, num_rows=len(rows), nats_per_node=terms.nats_per_node)
  in_order += [sorted(pairs, key=cost) for pairs in made]
  return [pair for turn in itertools.zip_longest(*in_order) for pair in turn if pair is not None]


def _cost(pair: tuple[Node, float], *, num_rows: int, nats_per_node: float) -> float:
  """Nats, roughly, to describe the data by a formula: products of many variables differ in more than their errors."""
  node, mse = pair
  return num_rows / 2 * np.log(max(mse, np.finfo(np.float64).tiny)) + nats_per_node * complexity(node)


def _max_parts(rows: Rows, most: int, config: TermsConfig) -> int:
  return min(most, len(np.unique(rows.x, axis=0)) // config.points_per_part)


def scored(
  formulas: Iterable[Node], rows: Rows, *, max_nodes: int = DEFAULT.terms.max_nodes
) -> list[tuple[Node, float]]:
  """Distinct formulas that are not too long, with their weighted mean squared errors where these are finite."""
  found = ((node, scoring.score(scoring.evaluate(node, rows.x), rows.y, rows.weights).mse)
            for node in dict.fromkeys(formulas) if complexity(node) <= max_nodes)
  return [(node, mse) for node, mse in found if np.isfinite(mse)]


# --- parts -------------------------------------------------------------------------------------------------------


class _Columns(Protocol):
  """Functions of the variables: values [N, P] relative to the largest of each, all finite; the group and
  the tier of each [P].
  """

  columns: np.ndarray
  groups: np.ndarray
  tiers: np.ndarray

  def node(self, index: int) -> Node:
    """The formula of a column."""

  def scale(self, index: int) -> float:
    """The largest value of that formula, by which its column is divided."""


class _Union:
  """Several such, side by side, in single precision."""

  def __init__(self, groups: Sequence[_Columns]):
    self._groups = groups
    self.columns = np.concatenate([group.columns.astype(np.float32) for group in groups], axis=1)
    self.tiers = np.concatenate([group.tiers for group in groups])
    ends = np.cumsum([0, *(np.max(group.groups, initial=-1) + 1 for group in groups)])
    self.groups = np.concatenate([group.groups + end for group, end in zip(groups, ends, strict=False)])

  def node(self, index: int) -> Node:
    group, index = self._find(index)
    return group.node(index)

  def scale(self, index: int) -> float:
    group, index = self._find(index)
    return group.scale(index)

  def _find(self, index: int) -> tuple[_Columns, int]:
    for group in self._groups:
      if index < group.columns.shape[1]:
        return group, index
      index -= group.columns.shape[1]
    raise IndexError(index)


class _Subset:
  """Some columns of a union."""

  def __init__(self, union: _Union, indices: np.ndarray):
    self._union, self._indices = union, indices
    self.columns, self.groups = union.columns[:, indices], union.groups[indices]

  def node(self, index: int) -> Node:
    return self._union.node(int(self._indices[index]))

  def scale(self, index: int) -> float:
    return self._union.scale(int(self._indices[index]))


class _Parts:
  """Distinct parts of candidates."""

  def __init__(self, nodes: Sequence[Node], x: np.ndarray, variables: Iterable[int], config: TermsConfig):
    self._x, self._config = x, config
    self._found: dict[bytes, tuple[Node, np.ndarray, float]] = {}
    self._seen: set[Node] = set()
    self._collect((variable(i) for i in variables), x.shape[1])
    self._collect((term for node in nodes for term in flatten(node, "+")), config.max_outer)
    self._collect((term for node in nodes for part in _subtrees(node) for term in flatten(part, "+")),
                  config.max_inner)
    found = self._found.values()
    self._nodes = [node for node, _, _ in found]
    self.columns = np.stack([column for _, column, _ in found], axis=1) if found else np.zeros((len(x), 0))
    self.groups, self.tiers = np.arange(len(found)), np.full(len(found), families.ANY)
    self._scales = [scale for _, _, scale in found]

  def node(self, index: int) -> Node:
    return self._nodes[index]

  def scale(self, index: int) -> float:
    return self._scales[index]

  def _collect(self, terms: Iterable[Node], at_most: int) -> None:
    end = len(self._found) + at_most
    for term in terms:
      if len(self._found) == end:
        return
      bare = _without_factor(term)
      if bare is not None and bare not in self._seen:
        self._seen.add(bare)
        if complexity(bare) <= self._config.max_part_nodes:
          self._add(bare)

  def _add(self, node: Node) -> None:
    values = scoring.evaluate(node, self._x)
    largest = values[np.argmax(np.abs(values))]  # NaN where there is one
    if not np.isfinite(largest) or np.ptp(values) <= pursuit.INDEPENDENT * abs(largest):
      return
    # Up to a factor the same column: the simplest formula stands for it.
    key = np.round(values / largest, self._config.value_digits).tobytes()
    if key not in self._found or complexity(node) < complexity(self._found[key][0]):
      self._found[key] = node, values / largest, float(largest)


def _subtrees(node: Node) -> Iterator[Node]:
  return (part for part in expression.walk(node) if part.args)


def _without_factor(term: Node) -> Node | None:
  """The term without signs and numbers; None for a number."""
  while term.token == "neg":
    term = term.args[0]
  factors = [factor for factor in flatten(term, "*") if not factor.is_number]
  return chain("*", factors) if factors else None


# --- formulas ------------------------------------------------------------------------------------------------------


def _all_sums(
  parts: _Columns, rows: Rows, names: Sequence[str], config: PursuitConfig
) -> list[tuple[int, Node]]:
  """`(number of parts, formula)` for every function of y that is named."""
  links = [link for name, link in LINKS.items() if name in names and link.is_defined(rows.y)]
  return [(size, link.undo(formula)) for link in links for size, formula in _sums(parts, link, rows, config)]


def _sums(parts: _Columns, link: Link, rows: Rows, config: PursuitConfig) -> list[tuple[int, Node]]:
  """Sums of parts that fit the function of y, errors weighted as those of y."""
  z, slope = link.transform(rows.y), link.derivative(rows.y)
  is_used = slope != 0  # where y says nothing of its function
  z, weights = z[is_used], rows.weights[is_used] / slope[is_used] ** 2
  weights = weights / np.max(weights, initial=0.0)
  if not (len(z) and np.all(np.isfinite(z)) and np.all(weights > 0)):  # NaN is not above 0
    return []
  columns = parts.columns if is_used.all() else parts.columns[is_used]
  formulas = []
  for chosen in pursuit.select_columns(columns, z, weights, groups=parts.groups, config=config):
    *multiples, constant = _least_squares(columns[:, chosen], z, weights)
    terms = [Node("*", (parts.node(i), number(factor / parts.scale(i))))
             for i, factor in zip(chosen, multiples, strict=True)]
    formulas.append((len(chosen), tidy(chain("+", [*terms, number(constant)]))))
  return formulas


def _products(parts: _Parts, rows: Rows, config: PursuitConfig, near_half: float) -> list[Node]:
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
    exponents = _least_squares(columns[:, chosen], z, weights)[:-1]
    halves = np.round(2 * exponents) / 2
    exponents = np.where(np.abs(exponents - halves) < near_half, halves, exponents)
    powers = [power(parts.node(usable[i]), number(float(e))) for i, e in zip(chosen, exponents, strict=True) if e]
    if powers:
      formulas.append(scoring.with_factor(chain("*", powers), rows.x, rows.y, rows.weights))
  return formulas


def _least_squares(columns: np.ndarray, target: np.ndarray, weights: np.ndarray) -> np.ndarray:
  """Factors of the columns [K] and the constant that fit best."""
  root = np.sqrt(weights / np.max(weights))
  design = np.column_stack([columns, np.ones(len(target))])
  return np.linalg.lstsq(root[:, None] * design, root * target, rcond=None)[0]
