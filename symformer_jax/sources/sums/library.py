"""Small functions of the variables, their inner constants on a grid: parts that need no model.

Laws are often sums of few terms such as `x**2*exp(-0.3*x)` or `sin(3*x - 5*t)`. A model may miss one for an inner
constant unlike those it was trained on; a grid of them is exhausted in milliseconds, because a sum is linear in its
terms, and a constant near enough is fitted later. As the feature spaces of SISSO (Ouyang et al., 2018) and FFX
(McConaghy, 2011), with waves, peaks and steps beside powers and functions.
"""

from collections.abc import Callable, Sequence
import functools
import itertools

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import DEFAULT, LibraryConfig
from symformer_jax.language import expression
from symformer_jax.language.expression import Node
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.sums import families, requested_functions
from symformer_jax.sources.sums.blocks import in_blocks

# Beyond these a column is of no use in single precision.
SMALLEST, LARGEST = 1e-30, 1e30
# A column that varies by a smaller share of its largest value is constant, but for single precision's rounding.
MIN_VARIATION = 1e-5


class Atoms:
  """Values [N, P] of all atoms relative to the largest of each, float32 and finite, and their formulas.

  Args:
    x: points [N, D].
    columns: of x; these variables are used.
    allows: operators by name; None for all.
    config: which columns; requested: functions that no model knows and that are wanted.
  Attributes:
    columns: [N, P]; groups: [P], the family of each; tiers: [P].
  """

  def __init__(
    self, x: np.ndarray, columns: Sequence[int], allows: Callable[[str], bool] | None = None, *,
    config: LibraryConfig = DEFAULT.library, requested: Sequence[str] = (),
  ):
    self._made: list[tuple[Callable[[int], Node], np.ndarray, np.ndarray]] = []
    values, tiers, groups = [np.zeros((len(x), 0), np.float32)], [np.zeros(0, int)], [np.zeros(0, int)]
    num_groups = 0
    seen: set[bytes] = set()
    # Any function of a column of two values is a multiple of it and a constant: these come first, and stand for them.
    pairs = [column for column in columns if len(np.unique(x[:, column])) == 2]
    with np.errstate(all="ignore"):  # what is undefined is left out
      space = families.Space(x, columns, config, tuple(requested))
      every = itertools.chain(
        # What is asked for by name stands for columns of equal value, as abs(x) for sqrt(x**2).
        families.plain_columns(space, pairs), requested_functions.make_families(space), families.make_families(space))
      for some in in_blocks(every, lambda family: family.values.shape[1]):
        interruption.check()
        whole = np.concatenate([family.values for family in some], axis=1)
        ends = np.cumsum([family.values.shape[1] for family in some])
        largest = np.max(np.abs(whole), axis=0)
        usable = np.isfinite(largest) & (largest > SMALLEST) & (largest < LARGEST)
        relative = whole[:, usable] / largest[usable]
        is_kept = np.ptp(relative, axis=0) > MIN_VARIATION
        if allows is not None:
          parts = [np.flatnonzero(part) for part in np.split(usable, ends[:-1])]
          is_kept &= np.array([_is_allowed(family.build(int(g)), allows)
                               for family, part in zip(some, parts, strict=True) for g in part], bool)
        if pairs:
          is_kept[is_kept] = _is_new_pair(relative[:, is_kept], seen, config.equal_values)
        is_kept[is_kept] = _is_new(relative[:, is_kept], seen, config.equal_values)
        values.append(relative[:, is_kept].astype(np.float32))
        usable[usable] = is_kept
        for family, part, sizes in zip(some, np.split(usable, ends[:-1]), np.split(largest, ends[:-1]), strict=True):
          indices = np.flatnonzero(part)
          tiers.append(np.full(len(indices), family.tier))
          groups.append(num_groups + (np.arange(len(indices)) if family.is_mixed else np.zeros(len(indices), int)))
          num_groups += max(len(indices), 1)
          self._made.append((family.build, indices, sizes[indices]))
    self.columns, self.tiers, self.groups = (np.concatenate(parts, axis=-1) for parts in (values, tiers, groups))
    self._ends = np.cumsum([len(indices) for _, indices, _ in self._made])

  @functools.cached_property
  def complexities(self) -> np.ndarray:
    """Nodes of each formula [P], before it is tidied; of the plain tiers alone, others are as long as can be."""
    found = np.full(len(self.tiers), np.iinfo(int).max)
    for index in np.flatnonzero(self.tiers > families.ANY):
      build, indices, _, at = self._find(int(index))
      found[index] = expression.complexity(build(int(indices[at])))
    return found

  def node(self, index: int) -> Node:
    """The formula of a column."""
    build, indices, _, at = self._find(index)
    return tidy(build(int(indices[at])))

  def scale(self, index: int) -> float:
    """The largest value of that formula, by which its column is divided."""
    _, _, largest, at = self._find(index)
    return float(largest[at])

  def _find(self, index: int) -> tuple[Callable[[int], Node], np.ndarray, np.ndarray, int]:
    place = int(np.searchsorted(self._ends, index, side="right"))
    build, indices, largest = self._made[place]
    return build, indices, largest, index - (int(self._ends[place - 1]) if place else 0)


def _is_new(relative: np.ndarray, seen: set[bytes], equal: float = DEFAULT.library.equal_values) -> np.ndarray:
  """Which columns [N, P] are equal, up to a factor, to none before [P]; they are added to what has been seen."""
  signs = np.where(relative[np.argmax(np.abs(relative), axis=0), np.arange(relative.shape[1])] < 0, -1, 1)
  keys = [key.tobytes() for key in np.round((signs * relative).T / equal).astype(np.int64)]
  is_new = np.zeros(len(keys), bool)
  for index, key in enumerate(keys):
    is_new[index] = key not in seen
    seen.add(key)
  return is_new


def _is_new_pair(relative: np.ndarray, seen: set[bytes], equal: float = DEFAULT.library.equal_values) -> np.ndarray:
  """Which columns [N, P] do not part the rows into two values as one before does [P]."""
  is_first = np.abs(relative - relative[:1]) < equal
  others = np.where(is_first, np.nan, relative)
  is_new = np.ones(relative.shape[1], bool)
  for index in np.flatnonzero(np.nanmax(others, axis=0) - np.nanmin(others, axis=0) < equal):
    key = b"two values" + np.packbits(is_first[:, index]).tobytes()
    is_new[index] = key not in seen
    seen.add(key)
  return is_new


def _is_allowed(node: Node, allows: Callable[[str], bool]) -> bool:
  return all(allows(part.token) for part in expression.walk(tidy(node)) if part.args)
