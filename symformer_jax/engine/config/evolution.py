"""Formulas that are bred: how many, by which edits, and which survive."""

import dataclasses

from symformer_jax.engine.config.names import EDITS, check_counts, check_names
from symformer_jax.errors import InputError


@dataclasses.dataclass(frozen=True)
class EvolutionConfig:
  """Formulas that are bred from those found (`sources.evolution.evolution`)."""

  # A turn is so many generations of so many children: about a second of one core, as other sources' turns. A look at
  # a child costs a twentieth of its fit. Fewer children with three looks each, at other constants, found four laws of
  # four in 5, 4, more than 8 and 1 turns, this in 2, 2, 2 and 1.
  generations: int = 5
  num_children: int = 2048
  # Children of a generation that are fitted: a block that the search's fit has compiled on a CPU. First by few steps,
  # the first of which solves for factors alone; then the nearest by as many as a right one needs. So half of a turn's
  # time goes into looks, a quarter into each fit.
  num_screened: int = 128
  screen_steps: int = 4
  num_near: int = 48
  fit_steps: int = 16
  # At the end of a turn those nearest the front get further steps: sums of terms that are nearly alike need them.
  num_refitted: int = 64
  refit_steps: int = 40
  # Tokens of a genome. With factors and constant it has 50 at most, fewer than programs hold. Terms of one that are
  # looked at: a sum of more is no formula to begin with.
  max_tokens: int = 24
  max_terms: int = 8
  # A column whose typical size lies between these keeps its unit: constants of a formula are then the user's own.
  plain_sizes: tuple[float, float] = (0.05, 20.0)
  # Losses that agree to this share are those of one function: what is equal in value is equal in its loss.
  equal_loss: float = 1e-6
  # Formulas of a niche that survive, and of all that breed: the rest of a large population is far from its front.
  num_per_niche: int = 4
  num_places: int = 1024
  # Generations in which newcomers compete among themselves alone: every fourth turn they join the others.
  layer_generations: int = 20
  # Excess of the logarithm of the error over the front at which a formula breeds 1/e times as often.
  temperature: float = 2.0
  # Share of donors that are terms of the pool, columns of the library and random trees, not of the population.
  foreign: float = 0.5
  # How often each edit is made, and a further one after it, up to so many: two steps at once cross a valley.
  kinds: tuple[tuple[str, float], ...] = (
    ("crossover", 0.3), ("insert", 0.25), ("function", 0.1), ("point", 0.12), ("hoist", 0.05), ("delete", 0.13),
    ("constants", 0.05))
  more_edits: float = 0.35
  num_edits: int = 2
  # Share of the terms joined to an inner sum that get a factor; those of the outermost have one anyway.
  scaled: float = 0.5
  # Share of the constants that are drawn anew where constants change; spread of the logarithm of one that moves, which
  # a fit mostly undoes, and of one that is drawn: 0.1 to 10 are within two of them, as in the generator's formulas.
  redrawn: float = 0.25
  near: float = 0.4
  far: float = 1.0
  # How often an operator is written, relative to a sum: roughly as in the generator's formulas, trigonometric functions
  # less often, since sums of them come near anything. Constants among leaves: relative to all variables together.
  operators: tuple[tuple[str, float], ...] = (
    ("+", 1.0), ("*", 1.0), ("inv", 0.5), ("pow2", 0.3), ("pow3", 0.1), ("sqrt", 0.2), ("exp", 0.3), ("ln", 0.2),
    ("sin", 0.15), ("cos", 0.15), ("pow", 0.05), ("atan", 0.05), ("tan", 0.02), ("neg", 0.01))
  constant_weight: float = 0.6
  # Each operator that no model knows and that was asked for: as often as an exponential.
  requested_weight: float = 0.3
  # What every turn begins with: formulas of the pool's shortlist, their terms, columns of the library drawn by chance,
  # random trees of so many nodes at most. All of them are donors too.
  num_pool: int = 64
  num_terms: int = 64
  num_library: int = 64
  num_random: int = 192
  random_nodes: int = 7
  # Fits of one formula but for its constants: from a poor start a fit ends in a poor place.
  max_tries: int = 4
  # Forms whose tries are counted: some hours of turns; then the count begins anew.
  max_remembered: int = 65_536
  # Formulas that a turn hands to the loop, which fits them to the end: 16 are an eighth of what it fits at once.
  num_answers: int = 16

  def __post_init__(self) -> None:
    check_counts(self, "generations", "num_children", "num_screened", "num_near", "screen_steps", "fit_steps",
                  "num_refitted", "refit_steps", "max_terms", "num_per_niche", "num_places", "layer_generations",
                  "num_edits", "num_pool", "num_terms", "num_library", "num_random", "random_nodes", "max_tries",
                  "max_remembered", "num_answers")
    if not 2 <= self.max_tokens <= 30:  # 30 have 15 terms: 62 tokens with what is added
      raise InputError(f"max_tokens: expected 2 to 30, got {self.max_tokens!r}")
    check_names("kinds", tuple(name for name, _ in self.kinds), EDITS)
