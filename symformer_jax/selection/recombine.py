"""New candidates from parts of others: sums and products of few parts, under one function or none.

A model often names every part of a formula, but not all of them in one sample. A sum is linear in its terms, so which
of them belong together needs no sampling: they are selected forward, as in orthogonal matching pursuit (Pati et al.,
1993), a few sums at a time. `1/y`, `exp(y)`, `log(y)` and `y**2` are tried as sums as well, and the logarithm of |y| as
one of logarithms, which makes products of powers.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
import dataclasses

import numpy as np

from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, complexity, flatten, number, power, variable
from symformer_jax.selection import scoring
from symformer_jax.selection.finalists import Rows
from symformer_jax.selection.tidy import tidy

# Parts taken from the best candidates: terms of their outermost sums, and all others.
MAX_OUTER, MAX_INNER = 512, 256
# Nodes of a part and of a formula: longer ones are nobody's law, and their many constants take seconds to round.
MAX_PART_NODES, MAX_NODES = 12, 40
# Parts of a formula, formulas carried from one number of parts to the next, and those that are kept of each number.
MAX_PARTS, NUM_BEAMS, NUM_KEPT = 6, 8, 3
# Parts that agree to so many digits of their largest value are one: fits of one formula that ended side by side.
VALUE_DIGITS = 5
# Different points for each part of a formula: fewer are fitted by anything.
POINTS_PER_PART = 5
# A column whose part orthogonal to those chosen is a smaller share of it than this adds nothing but rounding.
INDEPENDENT = 1e-6
# Squared error below this share of the target's spread, or within rounding of the target, is exact.
EXACT, ROUNDING = 1e-20, (4 * np.finfo(np.float64).eps) ** 2
# exp(y) is a target where y reaches no further than this.
LARGEST_EXPONENT = 30.0
# Exponents of a product so near to a half number are meant to be one.
NEAR_HALF = 0.02


@dataclasses.dataclass(frozen=True)
class _Target:
  """A function of y that may be a sum.

  Attributes:
    token: the operator that undoes it: y = operator(sum); empty for y itself.
    transform: y [N] -> the function's values; derivative: of the function, for what an error of y becomes.
    is_defined: whether it may be asked of y.
  """

  token: str
  transform: Callable[[np.ndarray], np.ndarray]
  derivative: Callable[[np.ndarray], np.ndarray]
  is_defined: Callable[[np.ndarray], bool]


TARGETS = (
  _Target("", lambda y: y, np.ones_like, lambda y: True),
  _Target("inv", lambda y: 1 / y, lambda y: 1 / y**2, lambda y: bool(np.all(y != 0))),
  _Target("ln", np.exp, np.exp, lambda y: float(np.max(np.abs(y))) < LARGEST_EXPONENT),
  _Target("exp", np.log, lambda y: 1 / y, lambda y: bool(np.all(y > 0))),
  _Target("sqrt", np.square, lambda y: 2 * y, lambda y: bool(np.all(y >= 0))),
)


@np.errstate(all="ignore")  # what is not finite is left out
def recombine(nodes: Sequence[Node], rows: Rows, *, columns: Iterable[int]) -> list[tuple[Node, float]]:
  """Formulas of few parts that fit best, for every target and number of parts.

  Args:
    nodes: candidates, the best first; inner constants of their parts are taken as they are.
    rows: what is fitted.
    columns: of x; these variables are parts as well.
  Returns:
    `(formula, weighted mean squared error)`, all finite.
  """
  parts = _Parts(nodes, rows.x, columns)
  at_most = min(MAX_PARTS, len(np.unique(rows.x, axis=0)) // POINTS_PER_PART)
  formulas = [_wrap(target.token, formula) for target in TARGETS if target.is_defined(rows.y)
              for formula in _sums(parts, target, rows, at_most)]
  formulas += _products(parts, rows, at_most)
  scored = ((node, scoring.score(scoring.evaluate(node, rows.x), rows.y, rows.weights).mse)
            for node in dict.fromkeys(formulas) if complexity(node) <= MAX_NODES)
  return [(node, mse) for node, mse in scored if np.isfinite(mse)]


# --- parts -------------------------------------------------------------------------------------------------------


class _Parts:
  """Distinct parts of candidates and their values [N, P], relative to the largest of each, all finite."""

  def __init__(self, nodes: Sequence[Node], x: np.ndarray, variables: Iterable[int]):
    self._x = x
    self._found: dict[bytes, tuple[Node, np.ndarray, float]] = {}
    self._seen: set[Node] = set()
    self._collect((variable(i) for i in variables), x.shape[1])
    self._collect((term for node in nodes for term in flatten(node, "+")), MAX_OUTER)
    self._collect((term for node in nodes for part in _subtrees(node) for term in flatten(part, "+")), MAX_INNER)
    found = self._found.values()
    self.nodes = [node for node, _, _ in found]
    self.columns = np.stack([column for _, column, _ in found], axis=1) if found else np.zeros((len(x), 0))
    self.scales = np.array([scale for _, _, scale in found])

  def _collect(self, terms: Iterable[Node], at_most: int) -> None:
    end = len(self._found) + at_most
    for term in terms:
      if len(self._found) == end:
        return
      bare = _without_factor(term)
      if bare is not None and bare not in self._seen:
        self._seen.add(bare)
        if complexity(bare) <= MAX_PART_NODES:
          self._add(bare)

  def _add(self, node: Node) -> None:
    values = scoring.evaluate(node, self._x)
    largest = values[np.argmax(np.abs(values))]  # NaN where there is one
    if not np.isfinite(largest) or np.ptp(values) <= INDEPENDENT * abs(largest):
      return
    # Up to a factor the same column: the simplest formula stands for it.
    key = np.round(values / largest, VALUE_DIGITS).tobytes()
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


# --- forward selection ---------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Choice:
  """Chosen columns, an orthonormal basis of them and of the constant, what they leave of the target, its square."""

  chosen: frozenset[int]
  basis: np.ndarray
  residual: np.ndarray
  error: float


def select_columns(
  columns: np.ndarray, target: np.ndarray, weights: np.ndarray, *, at_most: int = MAX_PARTS
) -> list[tuple[int, ...]]:
  """Sets of columns that, with a constant, fit a target with the least squared error: the best few of each size.

  Args:
    columns: [N, P]; target: [N]; weights: [N], above 0.
    at_most: columns of a set.
  """
  root = np.sqrt(weights / weights.sum())
  columns, target = root[:, None] * columns, root * target
  norms = np.linalg.norm(columns, axis=0)
  one = root[:, None] / np.linalg.norm(root)
  residual = target - one[:, 0] * (one[:, 0] @ target)
  beams = [_Choice(frozenset(), one, residual, float(residual @ residual))]
  exact = EXACT * beams[0].error + ROUNDING * float(target @ target)
  kept: list[_Choice] = []
  for _ in range(at_most):
    longer = {c.chosen: c for beam in beams for c in _extensions(beam, columns, norms)}
    beams = sorted(longer.values(), key=lambda c: c.error)[:NUM_BEAMS]
    kept += beams[:NUM_KEPT]
    if not beams or beams[0].error <= exact:
      break
  return [tuple(sorted(choice.chosen)) for choice in kept]


def _extensions(beam: _Choice, columns: np.ndarray, norms: np.ndarray) -> list[_Choice]:
  """The choice with one more column, for those columns that leave least."""
  across = columns - beam.basis @ (beam.basis.T @ columns)
  lengths = np.linalg.norm(across, axis=0)
  is_new = lengths > INDEPENDENT * norms
  gains = np.where(is_new, (across.T @ beam.residual) / np.where(is_new, lengths, 1.0), 0.0) ** 2
  longer = []
  for index in np.argsort(-gains)[:NUM_BEAMS]:
    if gains[index] > 0:
      unit = across[:, index] / lengths[index]
      residual = beam.residual - unit * (unit @ beam.residual)
      longer.append(_Choice(beam.chosen | {int(index)}, np.column_stack([beam.basis, unit]), residual,
                            float(residual @ residual)))
  return longer


# --- formulas ------------------------------------------------------------------------------------------------------


def _sums(parts: _Parts, target: _Target, rows: Rows, at_most: int) -> list[Node]:
  """Sums of parts that fit the target, errors weighted as those of y."""
  z, slope = target.transform(rows.y), target.derivative(rows.y)
  is_used = slope != 0  # where y says nothing of the target
  z, weights = z[is_used], rows.weights[is_used] / slope[is_used] ** 2
  weights = weights / np.max(weights, initial=0.0)
  if not (len(z) and np.all(np.isfinite(z)) and np.all(weights > 0)):  # NaN is not above 0
    return []
  columns, formulas = parts.columns[is_used], []
  for chosen in select_columns(columns, z, weights, at_most=at_most):
    *factors, constant = _least_squares(columns[:, chosen], z, weights)
    terms = [Node("*", (parts.nodes[i], number(factor / parts.scales[i])))
             for i, factor in zip(chosen, factors, strict=True)]
    formulas.append(tidy(chain("+", [*terms, number(constant)])))
  return formulas


def _products(parts: _Parts, rows: Rows, at_most: int) -> list[Node]:
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
  for chosen in select_columns(columns, z, weights, at_most=at_most):
    exponents = _least_squares(columns[:, chosen], z, weights)[:-1]
    halves = np.round(2 * exponents) / 2
    exponents = np.where(np.abs(exponents - halves) < NEAR_HALF, halves, exponents)
    powers = [power(parts.nodes[usable[i]], number(float(e))) for i, e in zip(chosen, exponents, strict=True) if e]
    if powers:
      formulas.append(_with_factor(chain("*", powers), rows))
  return formulas


def _with_factor(product: Node, rows: Rows) -> Node:
  """The product times the number that fits best."""
  values = scoring.evaluate(product, rows.x)
  largest = np.max(np.abs(values))
  values = values / largest
  factor = np.sum(rows.weights * values * rows.y) / np.sum(rows.weights * values**2) / largest
  return tidy(Node("*", (product, number(float(factor)))))


def _least_squares(columns: np.ndarray, target: np.ndarray, weights: np.ndarray) -> np.ndarray:
  """Factors of the columns [K] and the constant that fit best."""
  root = np.sqrt(weights / np.max(weights))
  design = np.column_stack([columns, np.ones(len(target))])
  return np.linalg.lstsq(root[:, None] * design, root * target, rcond=None)[0]


def _wrap(token: str, node: Node) -> Node:
  return tidy(Node(token, (node,))) if token else node
