"""Which formulas of a pool are built on: those that no shorter one beats, those that only these beat, and so on."""

from collections.abc import Sequence
import itertools

import numpy as np

from symformer_jax.engine.config import GrowthConfig, RemaindersConfig, ReplacementsConfig
from symformer_jax.engine.pool import Candidate
from symformer_jax.language import expression, programs
from symformer_jax.language.expression import Node


def first_fronts(
  candidates: Sequence[Candidate], grown: frozenset[Node], config: GrowthConfig | RemaindersConfig | ReplacementsConfig
) -> dict[Node, int]:
  """Formulas that are grown next, with the number of their front: those that no shorter one beats are the first, those
  that only these beat the second, ... (Deb et al., 2002).
  """
  waiting, forms = [], set()
  for candidate in candidates:
    form = programs.skeleton(candidate.node)
    if expression.complexity(candidate.node) <= config.max_nodes and form not in forms:
      forms.add(form)
      waiting.append(candidate)
  waiting.sort(key=lambda c: (expression.complexity(c.node), c.mse))
  seeds: dict[Node, int] = {}
  for front in range(1, config.num_fronts + 1):
    least, later = np.inf, []
    for candidate in waiting:
      if candidate.mse >= least:
        later.append(candidate)
        continue
      least = candidate.mse
      if candidate.node not in grown:
        seeds[candidate.node] = front
    waiting = later
  return dict(itertools.islice(seeds.items(), config.num_seeds))
