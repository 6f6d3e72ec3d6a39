"""From a table to smaller ones, by changes of the columns that leave the target alone.

Each change that slopes tell of (`invariances`) takes a column away. It stands if rows left out are predicted from the
smaller table as well as before.
"""

from collections.abc import Callable, Hashable, Sequence, Set
import contextlib
import dataclasses
import functools
import itertools
import math
from typing import Any, TypeVar

import numpy as np

from symformer_jax.engine import gaussian_process, interruption
from symformer_jax.engine.config import ReductionsConfig
from symformer_jax.engine.gaussian_process import Surrogate
from symformer_jax.sources.fractions import polynomials
from symformer_jax.sources.fractions.rational_bases import all_up_to
from symformer_jax.sources.links import LINKS
from symformer_jax.sources.reductions import invariances, neighbours, reduced_tables, trend_terms
from symformer_jax.sources.reductions.coordinates import find_coordinates
from symformer_jax.sources.reductions.reduced_tables import Change, Reduced

# Errors of polynomials are told apart down to this share.
_EXACT = 1e-13
# What changes are of that take a term away, where others have the name of a link.
_BESIDE = "+"
T = TypeVar("T")


@np.errstate(all="ignore")  # what is not finite is no change
def find_reductions(x: np.ndarray, y: np.ndarray, config: ReductionsConfig) -> list[Reduced]:
  """Tables of fewer columns that changes lead to, one after the other: by changes whose numbers are simple; then also
  by others, whose numbers are known to a few digits; where slopes may have missed one, by turns with what neighbours
  tell. The first, or the table itself, with logarithms of columns where
  these make it a polynomial; of two columns of which no change makes one also the table with a function of both for one
  of them where that makes it a sum or a product of functions of one column each (`coordinates`). Empty where there are
  none.

  Args:
    x: [N, D], y [N]: finite, no column nor y the same in all rows.
  """
  way = _Way(x, y, config)
  found = way.tables()
  while (not found or way.is_blurred) and way.follow_neighbours():
    found = way.tables()
  if way.has_terms and way.go_on(only_simple=False, has_any_terms=True):
    found = [*found, way.known_table]
  first = found[0] if found else reduced_tables.whole(x, y)
  logarithms = find_logarithms(first, config)
  others = [first.with_logarithms(logarithms)] if logarithms else []
  joined = in_other_columns(first, config) if not found else None
  return [*found, *others, *([joined] if joined else [])]


def in_other_columns(table: Reduced, config: ReductionsConfig) -> Reduced | None:
  """A table of two columns, a function of both in the place of one (`coordinates`); None where there is none."""
  if len(table.columns) != 2:
    return None
  joined = None
  with contextlib.suppress(np.linalg.LinAlgError):  # odd data cost what else has been found nothing
    joined = find_coordinates(table.x, table.y, config.coordinates, config.surrogate)
  return table.with_column(*joined) if joined else None


class _Found:
  """Results of what has been looked for in a table, by what that was."""

  def __init__(self, table: Reduced):
    self.table = table
    self.results: dict[Hashable, Any] = {}


class _Way:
  """From a table to smaller ones; each stands if its rows left out are predicted as well as before.

  Attributes:
    table: where it has come to.
  """

  def __init__(self, x: np.ndarray, y: np.ndarray, config: ReductionsConfig):
    self.table, self._config = reduced_tables.whole(x, y), config
    self._x, self._y = x, y
    self._num_shown = x.shape[1]
    self._found = _Found(self.table)
    self._surrogate = gaussian_process.fit(x, y, config.surrogate)
    self._errors = self._errors_of(self._surrogate, self.table)

  def tables(self) -> list[Reduced]:
    """Those that it comes to: by changes whose numbers are simple, then by others as well."""
    return [self.known_table for only_simple in (True, False) if self.go_on(only_simple)]

  @property
  def known_table(self) -> Reduced:
    """With the error of rows left out."""
    return self.table._replace(error=float(self._errors[0]))

  @property
  def has_terms(self) -> bool:
    """Whether terms beside a smooth function, of any factor, may be what is left to take away."""
    return self.is_blurred and bool(self._without_term(frozenset(), only_simple=False)[1])

  @property
  def is_blurred(self) -> bool:
    """Whether slopes may have missed a change: rows left out are not predicted well from the others."""
    return bool(self._errors[0] > self._config.neighbours.blurred)

  def follow_neighbours(self) -> bool:
    """Whether there is a way to a table whose rows are predicted far better than those of this one; it is gone then."""
    at = self.table, self._surrogate, self._errors
    for _ in range(self._config.neighbours.num_steps):
      ways = [(table, gaussian_process.fit(table.x, table.y, self._config.surrogate))
              for table in neighbours.find_smaller(at[0], self._config.neighbours)]
      tries = [(table, surrogate, self._errors_of(surrogate, table)) for table, surrogate in ways]
      nearest = min(tries, key=lambda each: float(each[2][0]), default=None)
      if nearest is None or not nearest[2][0] < at[2][0]:
        return False
      at = table, surrogate, errors = nearest
      if self._is_small(errors, surrogate) and errors[0] <= self._config.neighbours.far_better * self._errors[0]:
        self.table, self._surrogate, self._errors = table, surrogate, errors
        return True
    return False

  def _errors_of(self, surrogate: Surrogate, table: Reduced) -> np.ndarray:
    """Of the user's y, predicted from other rows: typical and large ones."""
    errors = surrogate.errors * table.of(self._x, self._y)[2]
    return np.array([gaussian_process.typical_error(errors, self._y), gaussian_process.large_error(errors, self._y)])

  @property
  def _is_known(self) -> bool:
    """Whether slopes say anything."""
    return self._is_small(self._errors, self._surrogate)

  @property
  def _limits(self) -> ReductionsConfig:
    """Where the smooth function errs little, a change that leaves far more is none."""
    likely = max(self._config.times_error * float(self._errors[0]), self._config.sure)
    return dataclasses.replace(self._config, likely=min(likely, self._config.likely))

  def _is_small(self, errors: np.ndarray, surrogate: Surrogate) -> bool:
    return bool(errors[0] <= self._config.most_error and surrogate.left <= self._config.most_left)

  def go_on(self, only_simple: bool, *, has_any_terms: bool = False) -> bool:
    """Whether there is a smaller table than before; `has_any_terms`: also by terms whose factor is not simple."""
    config = self._limits
    rejected: set[tuple[str, tuple]] = set()
    is_careful, num_rejected = False, 0
    while len(self.table.columns) > 1 and num_rejected < config.max_rejected and self._is_known:
      most = 1 if is_careful else len(self.table.columns)
      link, changes = _BESIDE, list[Change]()
      if self.is_blurred:
        smaller, changes = self._without_term(_of(link, rejected), only_simple=not has_any_terms)
      if not changes:
        link = ""
        of_y = self._remembered(frozenset(_of(link, rejected)), functools.partial(
          invariances.find_changes, self.table.x, self.table.y, self._surrogate.slopes, config, _of(link, rejected)))
        smaller, changes = _follow(self.table, self._surrogate.slopes, of_y, most, only_simple, config)
      if not changes:
        smaller, changes, link = self._remembered(("behind", frozenset(rejected)), functools.partial(
          _behind_link, self.table, self._surrogate.slopes, rejected, config))
      if not changes:
        break
      if self._stands(smaller, is_inexact=all(change.has_number for change in changes)):
        rejected, is_careful = set(), False
      elif len(changes) > 1:
        is_careful = True  # one by one
      else:
        rejected.add((link, changes[0].key))
        num_rejected += 1
    self._num_shown, before = len(self.table.columns), self._num_shown
    return self._num_shown < before

  def _without_term(self, rejected: Set[tuple], only_simple: bool) -> tuple[Reduced, list[Change]]:
    """The table without the surest term that takes a column with it; and the change."""
    terms = self._remembered("terms", functools.partial(
      trend_terms.find_terms, self.table.x, self.table.y, self._config.surrogate, self._config.trend))
    some = [change for change in terms if change.key not in rejected and (change.is_simple or not only_simple)]
    if not some:
      return self.table, []
    change = min(some, key=lambda change: change.error)
    return change.apply(self.table, self._surrogate.slopes)[0], [change]

  def _remembered(self, key: Hashable, find: Callable[[], T]) -> T:
    """What was found of this table before, by a key: it is looked at again for changes whose numbers are not simple."""
    if self._found.table is not self.table:
      self._found = _Found(self.table)
    if key not in self._found.results:
      self._found.results[key] = find()
    return self._found.results[key]

  def _stands(self, smaller: Reduced, *, is_inexact: bool = False) -> bool:
    """Whether the way goes there; `is_inexact`: its number is known to some digits."""
    fitted = gaussian_process.fit(smaller.x, smaller.y, self._config.surrogate)
    errors = self._errors_of(fitted, smaller)
    most = np.array(self._config.most_worse) * self._errors
    most = np.maximum(most, self._config.fine_errors) if is_inexact else most
    if not np.all(errors <= most):
      return False
    self.table, self._surrogate, self._errors = smaller, fitted, np.maximum(self._errors, errors)
    return True


def _of(link: str, rejected: Set[tuple[str, tuple]]) -> Set[tuple]:
  """Changes that were rejected of a function of y; of y itself for none."""
  return {key for name, key in rejected if name == link}


def _behind_link(
  table: Reduced, slopes: np.ndarray, rejected: Set[tuple[str, tuple]], config: ReductionsConfig
) -> tuple[Reduced, list[Change], str]:
  """The surest change of a function of y that is none of y: it has a power of a column as a factor; and its name."""
  ways = []
  for name in config.links:
    if LINKS[name].is_defined(table.y):
      shown, behind = table.behind(name, slopes)
      found = [change for change in invariances.find_changes(shown.x, shown.y, behind, config, _of(name, rejected))
               if change.divisor and change.is_simple and change.error <= config.likely]
      ways += [(change, change.apply(shown, behind)[0], name) for change in found]
  ways = [way for way in ways if way[1].is_usable]
  if not ways:
    return table, [], ""
  change, smaller, name = min(ways, key=lambda way: (way[0].error, way[0].complexity))
  return smaller, [change], name


def find_logarithms(table: Reduced, config: ReductionsConfig) -> tuple[int, ...]:
  """The columns in whose logarithms y, or a function of it, is far nearer a polynomial of low degree than without."""
  x, num_rows = table.x, len(table.y)
  usable = [i for i in range(x.shape[1]) if gaussian_process.is_wide(x[:, i], config.least_ratio)]
  degree = max((d for d in config.degrees if math.comb(x.shape[1] + d, d) <= num_rows * config.rows_share), default=0)
  if not (usable and degree and x.shape[1] > 1 and len(usable) <= config.max_logarithms):
    return ()
  powers = all_up_to(x.shape[1], degree)
  logs = x.copy()
  logs[:, usable] = np.log(x[:, usable])
  found = []
  for name in config.shown_links:
    if LINKS[name].is_defined(table.y):
      y = LINKS[name].transform(table.y)
      errors = {}
      for chosen in itertools.chain.from_iterable(
          itertools.combinations(usable, size) for size in range(len(usable) + 1)):
        interruption.check()
        shown = np.where(np.isin(np.arange(x.shape[1]), chosen), logs, x)
        design = polynomials.table(powers, shown / np.max(np.abs(shown), axis=0))
        left = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
        errors[chosen] = max(float(np.sqrt(np.mean(left**2)) / np.std(y)), _EXACT)
      # Equal but for rounding where a further logarithm is of no use: then the fewest.
      best = min(errors, key=lambda each: (float(f"{errors[each]:.6g}"), len(each)))
      found.append((errors[best] / errors[()], best))
  share, best = min(found, default=(1.0, ()))
  return best if share <= config.least_share else ()


def _follow(
  table: Reduced, slopes: np.ndarray, first: Sequence[Change], most: int, only_simple: bool, config: ReductionsConfig
) -> tuple[Reduced, list[Change]]:
  """So many changes at most, as long as slopes leave no doubt of them; `first`: what they allow of the table itself."""
  followed: list[Change] = []
  while len(followed) < most and len(table.columns) > 1:
    allowed = invariances.find_changes(table.x, table.y, slopes, config) if followed else first
    found = [change for change in allowed
             if change.is_simple or (not only_simple and change.error <= config.sure)]
    least = min((change.error for change in found), default=0.0)
    limit = max(min(config.times_least * least, max(config.times_rough * least, config.sure)), config.fine)
    for change in sorted((c for c in found if c.error <= limit), key=lambda c: (c.complexity, c.error)):
      smaller, new_slopes = change.apply(table, slopes)
      if smaller.is_usable:
        break
    else:
      break
    table, slopes = smaller, new_slopes
    followed.append(change)
    if change.error > config.sure:
      break
  return table, followed
