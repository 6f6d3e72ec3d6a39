"""A population between generations: who survives, who breeds, on the host.

Niches are complexities: the best few of each survive, so that short formulas are not crowded out by long ones. Layers
are ages (Hornby, 2006, ALPS): newcomers compete among themselves, and with the elders only once they have had time.
"""

import dataclasses

import numpy as np

from symformer_jax.engine.config import DEFAULT
from symformer_jax.sources.evolution.variation import FAMILIES

# Rounding alone: of losses below it none is the better.
SMALLEST_LOSS = 1e-30
NUM_FAMILIES = 1 << len(FAMILIES)


@dataclasses.dataclass(frozen=True)
class Population:
  """Fitted genomes.

  Attributes:
    ids, values: genomes [P, L]; loss: mean squared error as a share of y's variance [P]; complexity: of the formula
      [P]; signature, family: see `variation.Traits` [P]; layer: 0 for newcomers [P].
    programs, constants, origin: the fitted formulas, and which token of the genome stands at theirs [P, M].
  """

  ids: np.ndarray
  values: np.ndarray
  loss: np.ndarray
  complexity: np.ndarray
  signature: np.ndarray
  family: np.ndarray
  layer: np.ndarray
  programs: np.ndarray
  constants: np.ndarray
  origin: np.ndarray

  @property
  def group(self) -> np.ndarray:
    """Those of one layer and one family compete [P]."""
    return group_of(self.layer, self.family)

  def __len__(self) -> int:
    return len(self.loss)

  def take(self, index: np.ndarray) -> "Population":
    return Population(*(getattr(self, field.name)[index] for field in dataclasses.fields(self)))

  def join(self, other: "Population") -> "Population":
    return Population(*(np.concatenate([getattr(self, field.name), getattr(other, field.name)])
                        for field in dataclasses.fields(self)))

  def in_layer(self, layer: int) -> "Population":
    return dataclasses.replace(self, layer=np.full(len(self), layer, np.int32))


def group_of(layer: np.ndarray, family: np.ndarray) -> np.ndarray:
  """See `Population.group`."""
  return layer * NUM_FAMILIES + family


def empty(size: int, program_size: int) -> Population:
  """One of nobody, of genomes of so many tokens."""
  none, whole = np.zeros(0), np.zeros(0, np.int32)
  return Population(np.zeros((0, size), np.int32), np.zeros((0, size)), none, whole, whole.astype(np.uint32), whole,
                    whole, np.zeros((0, program_size), np.int32), np.zeros((0, program_size)),
                    np.zeros((0, program_size), np.int32))


def survivors(
  population: Population, *, num_per_niche: int, equal_loss: float = DEFAULT.evolution.equal_loss
) -> Population:
  """In every group the best few of every complexity, different in value; in the order of group, complexity and loss.

  Of equal functions, whose losses agree to `equal_loss`, the simplest survives; of those that differ in constants alone
  the best.
  """
  found = population.take(np.flatnonzero(np.isfinite(population.loss)))
  order = np.lexsort((found.loss, found.complexity, found.group))
  # Losses by cells on a logarithmic scale; cells have borders, so that one is looked for in the next as well.
  cells = np.floor(np.log(np.maximum(found.loss, SMALLEST_LOSS)) / equal_loss).astype(np.int64)
  kept: list[int] = []
  in_niche: dict[tuple[int, int], int] = {}
  losses: set[tuple[int, int]] = set()
  forms: set[tuple[int, int]] = set()
  for i in order:
    group, cell = int(found.group[i]), int(cells[i])
    niche, form = (group, int(found.complexity[i])), (group, int(found.signature[i]))
    same = {(group, cell - 1), (group, cell), (group, cell + 1)}
    if in_niche.get(niche, 0) < num_per_niche and form not in forms and losses.isdisjoint(same):
      in_niche[niche] = in_niche.get(niche, 0) + 1
      losses.add((group, cell))
      forms.add(form)
      kept.append(i)
  return found.take(np.array(kept, int))


def excess_of(loss: np.ndarray, complexity: np.ndarray, group: np.ndarray) -> np.ndarray:
  """How much worse each is than the best of its group that is no more complex [P], in logarithms; 0 on the front."""
  log_loss = np.log(np.clip(loss, SMALLEST_LOSS, 1 / SMALLEST_LOSS))
  best = np.empty(len(loss))
  for one in np.unique(group):
    index = np.flatnonzero(group == one)
    index = index[np.lexsort((log_loss[index], complexity[index]))]
    best[index] = np.minimum.accumulate(log_loss[index])
  return log_loss - best


def front(population: Population) -> np.ndarray:
  """Indices of those that no simpler one is as good as, from simple to accurate, whatever their layer."""
  order = np.lexsort((population.loss, population.complexity))
  kept, least = [], np.inf
  for i in order:
    if population.loss[i] < least:
      kept.append(i)
      least = population.loss[i]
  return np.array(kept, int)
