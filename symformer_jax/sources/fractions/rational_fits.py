"""Which few monomials above and below a line fit y: sparse null vectors of one matrix.

P(x) - y*Q(x) = 0 is linear in the coefficients of both. Its weighted errors are those of y times Q, so that rows are
divided by the last Q (Sanathanan and Koerner 1963). Terms are chosen by elimination from nested sets of them, and
small sets are tried all.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import DEFAULT, RationalsConfig
from symformer_jax.sources.fractions import polynomials
from symformer_jax.sources.fractions.polynomials import Polynomial
from symformer_jax.sources.fractions.rational_bases import Basis, Terms, small_sets

# Shares of the largest below which a coefficient of an exact null vector is rounding.
_ROUNDING = 1e-7
_SMALLEST = np.finfo(np.float64).tiny
_EPSILON = float(np.finfo(np.float64).eps)
# A fraction's multiples are the same: the direction of them is not for the steps of a fit.
_SINGULAR = 1e-12
_ALL = slice(None)


class Fraction(NamedTuple):
  """A fitted rational function.

  Attributes:
    numerator, denominator: polynomials without a common monomial; error: weighted mean squared, of y's variance.
    is_whole: whether the denominator keeps its sign on the rows and between them; is_exact: whether it is the law and
      no approximation.
  """

  numerator: Polynomial
  denominator: Polynomial
  error: float
  is_whole: bool
  is_exact: bool = False

  @property
  def num_terms(self) -> int:
    return len(self.numerator) + len(self.denominator)

  @property
  def form(self) -> tuple:
    """Equal for those that differ in coefficients alone."""
    return tuple(sorted(self.numerator)), tuple(sorted(self.denominator))


class Equation:
  """The equation of one basis on the rows of a data set whose sizes are about 1.

  Attributes:
    basis: its M + K columns; norms: what these are divided by [M + K].
  """

  def __init__(
    self, basis: Basis, x: np.ndarray, y: np.ndarray, weights: np.ndarray, between: np.ndarray, *,
    config: RationalsConfig = DEFAULT.rationals,
  ):
    """Args: x [N, D], y [N], weights [N]: what is fitted; between: points [N', D] among the rows, where a denominator
    must not change its sign either."""
    self.basis, self._y, self._weights = basis, y, weights / np.sum(weights)
    self._variance = float(np.sum(self._weights * (y - np.sum(self._weights * y)) ** 2))
    self._above, self._below = polynomials.table(basis.numerator, x), polynomials.table(basis.denominator, x)
    self._between = polynomials.table(basis.denominator, between)
    self._columns = np.concatenate([self._above, -y[:, None] * self._below], axis=1)
    self.norms = np.maximum(np.linalg.norm(self._columns, axis=0), _SMALLEST)
    self._powers = basis.numerator + basis.denominator
    self._triangle = self._reduced(np.sqrt(self._weights))
    # Rows that tell whether a set is worth a look.
    self._few = np.unique(np.linspace(0, len(y) - 1, config.num_rough_rows).astype(int))

  @property
  def num_rows(self) -> int:
    return len(self._y)

  def _reduced(self, root: np.ndarray) -> np.ndarray:
    """The triangle [R, M + K] that has the norms of all combinations of the weighted columns of unit length."""
    triangle: Any = np.linalg.qr(root[:, None] * self._columns / self.norms, mode="r")  # NumPy's types have no mode
    return triangle

  def follow(self, coefficients: np.ndarray, *, is_exact: bool) -> None:
    """Divides the rows by a fraction's denominator, so that the equation's errors become those of y; and, unless y is
    exact, puts the fraction's values for y into its columns: noise there would bias all coefficients."""
    below = self._below @ coefficients[len(self.basis.numerator):]
    if not np.all(below != 0):
      return
    if not is_exact:
      y = self._above @ coefficients[: len(self.basis.numerator)] / below
      self._columns = np.concatenate([self._above, -y[:, None] * self._below], axis=1)
      self.norms = np.maximum(np.linalg.norm(self._columns, axis=0), _SMALLEST)
    self._triangle = self._reduced(np.sqrt(self._weights) / np.abs(below))

  def solve(self, sets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`(coefficients [B, M + K], what each term's loss costs [B, k])` of sets of terms [B, k]."""
    matrices = np.swapaxes(self._triangle[:, sets], 0, 1)
    _, sizes, vectors = np.linalg.svd(matrices, full_matrices=False)
    others = np.maximum(sizes[:, :-1], _EPSILON * sizes[:, :1]) ** -2.0
    # The rise of the least singular value without a column, where that value is small beside the others.
    rise = vectors[:, -1] ** 2 / np.maximum(np.einsum("bj,bji->bi", others, vectors[:, :-1] ** 2), _SMALLEST)
    return self._spread(sets, vectors[:, -1]), rise

  def rough_errors(self, sets: np.ndarray) -> np.ndarray:
    """Errors [B] of sets of terms [B, k] in half the digits and on few rows."""
    gram = self._triangle.T @ self._triangle
    _, vectors = np.linalg.eigh(gram[sets[:, :, None], sets[:, None, :]])
    return self.errors(self._spread(sets, vectors[:, :, 0]), self._few)

  def _spread(self, sets: np.ndarray, values: np.ndarray) -> np.ndarray:
    coefficients = np.zeros((len(sets), len(self._powers)))
    np.put_along_axis(coefficients, sets, values / self.norms[sets], axis=1)
    return coefficients

  def reweighted(self, coefficients: np.ndarray, num_steps: int) -> np.ndarray:
    """Coefficients [M + K] after so many steps, each with rows divided by the denominator of the one before."""
    terms = np.flatnonzero(coefficients)
    for _ in range(num_steps):
      below = np.abs(self._below @ coefficients[len(self.basis.numerator):])
      if not np.all(below > 0):
        return coefficients
      rows = (np.sqrt(self._weights) / below)[:, None] * self._columns[:, terms]
      norms = np.maximum(np.linalg.norm(rows, axis=0), _SMALLEST)
      after = np.zeros_like(coefficients)
      after[terms] = np.linalg.svd(rows / norms, full_matrices=False)[2][-1] / norms
      if not self.are_fractions(after[None])[0]:
        return coefficients
      coefficients = after
    return coefficients

  def refined(self, coefficients: np.ndarray, num_steps: int) -> np.ndarray:
    """Coefficients [M + K] after at most so many Gauss-Newton steps, as long as they help and the sign stays."""
    num_above = len(self.basis.numerator)
    terms, error = np.flatnonzero(coefficients), self.errors(coefficients[None])[0]
    for _ in range(num_steps):
      below = self._below @ coefficients[num_above:]
      y = self._above @ coefficients[:num_above] / below
      slopes = np.concatenate([self._above, -y[:, None] * self._below], axis=1)[:, terms] / below[:, None]
      slopes = np.sqrt(self._weights)[:, None] * slopes
      norms = np.maximum(np.linalg.norm(slopes, axis=0), _SMALLEST)
      step = np.zeros_like(coefficients)
      step[terms] = np.linalg.lstsq(slopes / norms, np.sqrt(self._weights) * (self._y - y), rcond=_SINGULAR)[0] / norms
      after = self.errors((coefficients + step)[None])[0]
      if not (after < error and self.is_whole((coefficients + step)[None])[0]):
        break
      coefficients, error = coefficients + step, after
    return coefficients

  def errors(self, coefficients: np.ndarray, rows: np.ndarray | slice = _ALL) -> np.ndarray:
    """Of y, as shares of its variance [B]; infinite where undefined."""
    num_above = len(self.basis.numerator)
    below = self._below[rows] @ coefficients[:, num_above:].T
    misses = self._above[rows] @ coefficients[:, :num_above].T / below - self._y[rows, None]
    found = self._weights[rows] @ misses**2 / self._variance
    return np.where(np.isfinite(found), found, np.inf)

  def are_fractions(self, coefficients: np.ndarray) -> np.ndarray:
    """Whether something is left [B] above the line and below it."""
    num_above = len(self.basis.numerator)
    return np.any(coefficients[:, :num_above] != 0, axis=1) & np.any(coefficients[:, num_above:] != 0, axis=1)

  def is_whole(self, coefficients: np.ndarray) -> np.ndarray:
    """Whether each denominator [B] keeps its sign on the rows and between them."""
    below = coefficients[:, len(self.basis.numerator):].T
    on_rows, between = self._below @ below, self._between @ below
    lowest = np.minimum(on_rows.min(axis=0), between.min(axis=0, initial=np.inf))
    return (lowest > 0) | (np.maximum(on_rows.max(axis=0), between.max(axis=0, initial=-np.inf)) < 0)

  def fraction(self, coefficients: np.ndarray) -> Fraction:
    """What they stand for, with what is common to all terms cancelled."""
    terms, num_above = np.flatnonzero(coefficients), len(self.basis.numerator)
    common = np.min([self._powers[i] for i in terms], axis=0)
    above, below = ({tuple((np.array(self._powers[i]) - common).tolist()): float(coefficients[i]) for i in some}
                    for some in (terms[terms < num_above], terms[terms >= num_above]))
    return Fraction(above, below, float(self.errors(coefficients[None])[0]), bool(self.is_whole(coefficients[None])[0]))


class Fit(NamedTuple):
  """A fraction in a basis.

  Attributes:
    error: weighted mean squared, as a share of y's variance; equation: of the basis; coefficients: [M + K].
    is_exact: whether it is the law and no approximation.
  """

  error: float
  equation: Equation
  coefficients: np.ndarray
  is_exact: bool = False

  def fraction(self, num_steps: int) -> Fraction:
    """What it stands for, after so many steps that weigh by the denominator."""
    coefficients = self.equation.reweighted(self.coefficients, num_steps)
    return self.equation.fraction(coefficients)._replace(is_exact=self.is_exact)


def nats(error: float, num_terms: int, num_rows: int) -> float:
  """Roughly what it takes to describe y by so many terms with this share of its variance missed (Schwarz 1978)."""
  return num_rows / 2 * np.log(max(error, _SMALLEST)) + num_terms / 2 * np.log(num_rows)


def upto_exact(by_size: dict[int, list[Fit]], config: RationalsConfig) -> dict[int, list[Fit]]:
  """The fits of each number of terms, the best of them first, up to those that are exact.

  With every term more a fraction comes nearer to any smooth function, to rounding at last, by factors of a hundred to
  ten thousand (in squares). The right number of terms is one leap: without it none that comes too near stays.
  """
  found: dict[int, list[Fit]] = {}
  nearest = 1.0
  for size, fits in sorted(by_size.items()):
    has_leapt = fits[0].error < config.leap * nearest
    if fits[0].error < config.exact and has_leapt:
      return {**found, size: [fit._replace(is_exact=True) for fit in fits if fit.error < config.exact]}
    if fits[0].error < config.too_near:
      return found
    found[size], nearest = fits, min(nearest, fits[0].error)
  return found


@np.errstate(all="ignore")  # what is not finite has an infinite error
def find(equation: Equation, config: RationalsConfig, *, num_rows: int) -> dict[int, list[Fit]]:
  """The best few of every number of terms, the best first.

  Args:
    equation: of a basis; num_rows: rows that differ: they tell so many terms apart.
  """
  found = _Found(equation, config, 1 + num_rows // config.rows_per_constant)
  most = max(num_rows // 2, 2)  # nested sets that are larger have no errors left
  _follow_best(equation, config, most)
  for sets in small_sets(equation.basis, config.max_sets):
    interruption.check()
    if sets.shape[1] <= min(config.max_terms, most) and len(sets):
      chosen = sets[np.argsort(equation.rough_errors(sets), kind="stable")[: config.num_small]]
      found.take(equation.solve(chosen)[0])
  _eliminate(equation, found, config, most)
  return found.best()


def _follow_best(equation: Equation, config: RationalsConfig, most: int) -> None:
  """Prepares the equation by the nested set of at most so many terms that describes y best."""
  starts = [each for each in equation.basis.starts if len(each) <= most]
  solved = []
  for sets in _by_size(starts).values():
    coefficients = equation.solve(sets)[0]
    errors = equation.errors(coefficients)
    if np.min(errors) < config.exact:
      equation.follow(coefficients[np.argmin(errors)], is_exact=True)
      return
    solved += list(coefficients)
  best = _best_refined(equation, solved, config)
  if best is not None:
    equation.follow(best, is_exact=False)


def _best_refined(equation: Equation, solved: Sequence[np.ndarray], config: RationalsConfig) -> np.ndarray | None:
  """Of the solutions of nested sets, the small ones first, the one that describes y in the fewest nats once refined.

  Under noise large sets have poor solutions: each begins from that of the best set within it, where that is better.
  """
  refined: list[tuple[float, np.ndarray]] = []
  least, num_idle = np.inf, 0
  for own in solved:
    interruption.check()
    choices = [equation.reweighted(own, 1), *(
      _extended(each, own) for _, each in refined if not np.any(each[own == 0]))]
    in_order = (choices[i] for i in np.argsort(equation.errors(np.array(choices)), kind="stable"))
    start = next((each for each in in_order if equation.is_whole(each[None])[0]), None)
    if start is None:
      continue
    coefficients = equation.refined(start, config.num_steps)
    cost = nats(equation.errors(coefficients[None])[0], int(np.count_nonzero(own)), equation.num_rows)
    refined.append((cost, coefficients))
    num_idle = 0 if cost < least else num_idle + 1
    least = min(least, cost)
    if num_idle > config.max_idle:
      break
  return min(refined, key=lambda pair: pair[0])[1] if refined else None


def _extended(coefficients: np.ndarray, larger: np.ndarray) -> np.ndarray:
  """With the terms of a larger set, as good as 0."""
  return np.where((coefficients == 0) & (larger != 0), _SMALLEST, coefficients)


def _by_size(sets: Iterable[Terms]) -> dict[int, np.ndarray]:
  grouped: dict[int, list[Terms]] = {}
  for each in sets:
    grouped.setdefault(len(each), []).append(each)
  return {size: np.array(grouped[size]) for size in sorted(grouped)}


class _Found:
  """The coefficients of least error, by number of terms, of which there are not too many."""

  def __init__(self, equation: Equation, config: RationalsConfig, most: int):
    self._equation, self._config, self._most = equation, config, most
    self._by_size: dict[int, list[Fit]] = {}

  def take(self, coefficients: np.ndarray) -> np.ndarray:
    """Remembers those [B, M + K] that may be offered; returns their errors [B]."""
    errors = self._equation.errors(coefficients)
    may_be = (errors < self._config.exact) | self._equation.is_whole(coefficients)
    may_be &= np.isfinite(errors) & self._equation.are_fractions(coefficients)
    for each, error, is_meant in zip(coefficients, errors, may_be, strict=True):
      if is_meant and np.count_nonzero(each) <= self._most:
        fit = Fit(float(error), self._equation, each)
        self._by_size.setdefault(int(np.count_nonzero(each)), []).append(fit)
    return np.where(may_be, errors, np.inf)

  def best(self) -> dict[int, list[Fit]]:
    """The best few of each number of terms; see `upto_exact`."""
    return upto_exact({size: sorted(fits, key=lambda fit: fit.error)[: self._config.num_kept]
                       for size, fits in self._by_size.items()}, self._config)


def _eliminate(equation: Equation, found: _Found, config: RationalsConfig, most: int) -> None:
  """From nested sets of at most so many terms down: those are left out whose loss costs least, by a beam of sets."""
  waiting: dict[int, dict[Terms, None]] = {}
  for start in equation.basis.starts:
    if len(start) <= most:
      waiting.setdefault(len(start), {})[start] = None
  for size in range(max(waiting, default=0), 1, -1):
    interruption.check()
    sets = np.array(list(waiting.pop(size, {})))
    if not len(sets):
      continue
    coefficients, rises = equation.solve(sets)
    errors = found.take(coefficients)
    for i in np.argsort(errors, kind="stable")[: config.num_beams]:
      for child in _children(sets[i], coefficients[i] * equation.norms, rises[i], errors[i], config):
        if 2 <= len(child) < size and child[0] < len(equation.basis.numerator) <= child[-1]:
          waiting.setdefault(len(child), {})[child] = None


def _children(
  terms: np.ndarray, sizes: np.ndarray, rises: np.ndarray, error: float, config: RationalsConfig
) -> list[Terms]:
  """Sets without the terms that cost least, and without all that an exact fit does not need."""
  order = np.argsort(rises, kind="stable")
  num_left_out = 1 if len(terms) <= config.max_single else len(terms) // 4
  kept = [np.sort(terms[order[num_left_out:]])] if num_left_out > 1 else [
    np.delete(terms, i) for i in order[: config.num_drops]]
  if error < config.exact:
    share = np.abs(sizes[terms])
    kept.append(terms[share > _ROUNDING * share.max()])
  return [tuple(each.tolist()) for each in kept]
