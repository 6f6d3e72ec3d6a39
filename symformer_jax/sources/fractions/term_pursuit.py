"""Which few columns above and below a line fit a target with errors: matching pursuit, linearised at what there is.

Of a fraction f = P/Q a column g above the line changes f by g/Q, below it by -f*g/Q, to first order. The columns that
explain most of what f leaves beside those it has (a score test, Rao 1948) are added, and all coefficients fitted by
damped Gauss-Newton steps, so that errors of the target count as they are, whatever Q is; terms that have lost their
worth give way to others. Fractions of each number of terms are carried along. Where terms of a sum tell of each other
none of them may be what comes nearest by itself: of few plain columns all are taken, and away again one by one.
"""

from collections.abc import Sequence
import math
from typing import Any, NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import FractionPursuitConfig

# The damping of the first step, how it grows where a step does not help, to what at least, how it falls where one does,
# and its least.
_DAMPING, _MORE, _LEAST_MORE, _LESS, _LEAST = 1e-6, 30.0, 1e-4, 10.0, 1e-9
_MOST_TRIES = 4
_SMALLEST = float(np.finfo(np.float64).tiny)
# Share of each column of unit length that keeps columns that depend on each other apart.
_RIDGE = 1e-7
# A fit ends where a step takes away a smaller share of the error.
_GAINED = 1e-4


class Terms(NamedTuple):
  """A fraction of columns; below the line stands 1 as well.

  Attributes:
    above, below: columns; coefficients: of both, in this order.
    values: of the fraction at the rows [N]; divisor: what is below the line [N].
    error: weighted mean square.
  """

  above: tuple[int, ...]
  below: tuple[int, ...]
  coefficients: np.ndarray
  values: np.ndarray
  divisor: np.ndarray
  error: float

  @property
  def key(self) -> tuple[frozenset[int], frozenset[int]]:
    return frozenset(self.above), frozenset(self.below)


class Pursuit:
  """Fractions of columns for one target."""

  def __init__(self, columns: np.ndarray, target: np.ndarray, weights: np.ndarray, config: FractionPursuitConfig, *,
               plain: Sequence[Sequence[int]] = ()):
    """Args:
      columns: [N, K], the first of them 1; target, weights: [N]; all finite.
      plain: sets of columns of which sums are made by taking all, and away again one by one.
    """
    self._plain = [some[: int(config.plain_share * len(target))] for some in plain]
    self._columns, self._squares, self._target, self._config = columns, columns**2, target, config
    self._weights = weights / np.sum(weights)
    self._root = np.sqrt(self._weights)
    self._seen: set[tuple[frozenset[int], frozenset[int]]] = set()

  def by_size(self) -> list[list[Terms]]:
    """The best of one term, of two, ..., the best first, as long as a further term pays for itself."""
    config, plain = self._config, [self._eliminated(some) for some in self._plain]
    found = [_best([*self._single(), *(each for some in plain for each in some[:1])])]
    while found[-1] and len(found) < config.max_terms and self._pays(found):
      interruption.check()
      longer = _best([*self._extended(found[-1][: config.num_carried], 3 * config.num_carried),
                      *(each for some in plain for each in some[len(found) : len(found) + 1])])
      shorter = [each for one in longer[: config.num_exchanged] for each in self._reduced(one)]
      found[-1] = _best([*found[-1], *shorter])
      new = [each for each in found[-1][: config.num_carried] if any(each is one for one in shorter)]
      longer = _best([*longer, *self._extended(new, 2 * config.num_carried)])[: 2 * config.num_carried]
      found.append(longer)
    return [some for some in found if some]

  def _pays(self, found: Sequence[Sequence[Terms]]) -> bool:
    """Whether the last term was worth its nats."""
    if len(found) < 2:
      return True
    before, after = (max(some[0].error, _SMALLEST) for some in found[-2:])
    return 0.5 * len(self._target) * math.log(before / after) > self._config.least_gained

  def _eliminated(self, plain: Sequence[int]) -> list[Terms]:
    """Sums of one of the columns, of two, ...: each what is left of the next when its least term is taken away."""
    chosen = np.array(plain, int)
    sizes = np.linalg.norm(self._root[:, None] * self._columns[:, chosen], axis=0)
    chosen, sizes = chosen[sizes > 0], sizes[sizes > 0]
    # With a little of each column besides: of columns that depend on each other one is as good as the other.
    rows = np.concatenate([self._root[:, None] * self._columns[:, chosen] / sizes, _RIDGE * np.eye(len(chosen))])
    target = np.concatenate([self._root * self._target, np.zeros(len(chosen))])
    triangle: Any = np.linalg.qr(np.column_stack([rows, target]), mode="r")  # NumPy's types have no mode
    found: list[Terms] = []
    places = np.arange(len(chosen))
    while len(places):
      basis, root = np.linalg.qr(triangle[:, places])
      inverse = np.linalg.inv(root)
      factors = inverse @ (basis.T @ triangle[:, -1])
      if len(places) <= self._config.max_terms:
        found.append(self._at(tuple(chosen[places].tolist()), (), factors / sizes[places]))
      # What the error rises by without a column.
      places = np.delete(places, np.argmin(factors**2 / np.sum(inverse**2, axis=1)))
    self._seen.update(each.key for each in found)
    return found[::-1]

  def _single(self) -> list[Terms]:
    """The nearest multiples of single columns."""
    sizes = self._weights @ self._squares
    products = (self._weights * self._target) @ self._columns
    gains = np.where(sizes > 0, products**2 / np.where(sizes > 0, sizes, 1.0), 0.0)
    found = []
    for column in np.argsort(-gains, kind="stable")[: 2 * self._config.num_carried].tolist():
      if not gains[column] > 0:
        break
      factor = np.array([products[column] / sizes[column]])
      values = factor[0] * self._columns[:, column]
      error = float(self._weights @ (self._target - values) ** 2)
      found.append(Terms((column,), (), factor, values, np.ones_like(values), error))
    self._seen.update(each.key for each in found)
    return _best(found)

  def _extended(self, some: Sequence[Terms], most: int) -> list[Terms]:
    """Those that promise most with one term more, each once, fitted."""
    tries = []
    for terms in some:
      for is_below, gains in enumerate(self._gains(terms)):
        for column in np.argsort(-gains, kind="stable")[: self._config.num_tried].tolist():
          if gains[column] > 0:
            above = terms.above if is_below else (*terms.above, column)
            below = (*terms.below, column) if is_below else terms.below
            tries.append((terms.error - float(gains[column]), terms, above, below))
    found: list[Terms] = []
    for _, terms, above, below in sorted(tries, key=lambda each: each[0]):
      key = frozenset(above), frozenset(below)
      if key not in self._seen and len(found) < most:
        self._seen.add(key)
        num_above = len(terms.above)
        start = np.concatenate([terms.coefficients[:num_above], np.zeros(len(above) - num_above),
                                terms.coefficients[num_above:], np.zeros(len(below) - len(terms.below))])
        found.append(self._fitted(above, below, start))
    return [each for each in found if np.isfinite(each.error)]

  def _reduced(self, terms: Terms) -> list[Terms]:
    """Without each of its terms, those not yet seen, fitted."""
    found: list[Terms] = []
    num_above = len(terms.above)
    for place in range(len(terms.coefficients)):
      above = terms.above[:place] + terms.above[place + 1 :]
      below = tuple(column for i, column in enumerate(terms.below, num_above) if i != place)
      key = frozenset(above), frozenset(below)
      if above and key not in self._seen:
        self._seen.add(key)
        found.append(self._fitted(above, below, np.delete(terms.coefficients, place)))
    return [each for each in found if np.isfinite(each.error)]

  def _gains(self, terms: Terms) -> tuple[np.ndarray, np.ndarray]:
    """By how much each column would lower the error, to first order, above and below the line [K]; 0 for one that the
    fraction has, or nearly.
    """
    basis = np.linalg.qr(self._root[:, None] * self._slopes(terms))[0]
    left = self._root * (self._target - terms.values)
    left = left - basis @ (basis.T @ left)
    scales = np.stack([self._root / terms.divisor, -self._root * terms.values / terms.divisor])  # [2, N]
    shown = np.concatenate([scales[:, :, None] * left[:, None], scales[:, :, None] * basis], axis=2)
    products = np.einsum("snt,nk->stk", shown, self._columns, optimize=True)  # [2, 1 + T, K]
    sizes = scales**2 @ self._squares
    new = sizes - np.sum(products[:, 1:] ** 2, axis=1)
    is_new = new > self._config.least_new * sizes
    gains = np.where(is_new, products[:, 0] ** 2 / np.where(is_new, new, 1.0), 0.0)
    gains[1, 0] = 0.0  # 1 is below the line
    gains[0, list(terms.above)], gains[1, list(terms.below)] = 0.0, 0.0
    return gains[0], gains[1]

  def _slopes(self, terms: Terms) -> np.ndarray:
    """Of the fraction, by its coefficients [N, T]."""
    above, below = self._columns[:, terms.above], self._columns[:, terms.below]
    return np.concatenate([above, -terms.values[:, None] * below], axis=1) / terms.divisor[:, None]

  def _at(self, above: tuple[int, ...], below: tuple[int, ...], coefficients: np.ndarray) -> Terms:
    """With these coefficients; its error is infinite where what is below the line changes its sign."""
    divisor = 1 + self._columns[:, below] @ coefficients[len(above) :]
    values = self._columns[:, above] @ coefficients[: len(above)] / divisor
    is_whole = np.all(divisor > 0) or np.all(divisor < 0)
    error = float(self._weights @ (self._target - values) ** 2)
    return Terms(above, below, coefficients, values, divisor, error if is_whole and np.isfinite(error) else np.inf)

  def _fitted(self, above: tuple[int, ...], below: tuple[int, ...], start: np.ndarray) -> Terms:
    terms, damping = self._at(above, below, start), _DAMPING
    for _ in range(self._config.num_steps):
      slopes = self._root[:, None] * self._slopes(terms)
      sizes = np.linalg.norm(slopes, axis=0)
      slopes = slopes / np.where(sizes > 0, sizes, 1.0)
      normal, right = slopes.T @ slopes, slopes.T @ (self._root * (self._target - terms.values))
      after = terms
      for _ in range(_MOST_TRIES):
        step = np.linalg.solve(normal + damping * np.eye(len(normal)), right) / np.where(sizes > 0, sizes, 1.0)
        after = self._at(above, below, terms.coefficients + step)
        if after.error <= terms.error:
          break
        damping = max(damping * _MORE, _LEAST_MORE)
      if not after.error <= (1 - _GAINED) * terms.error:
        return after if after.error <= terms.error else terms
      terms, damping = after, max(damping / _LESS, _LEAST)
    return terms


def _best(some: Sequence[Terms]) -> list[Terms]:
  return sorted(some, key=lambda each: each.error)
