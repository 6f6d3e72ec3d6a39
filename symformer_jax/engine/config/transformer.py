"""How the pre-trained network is asked."""

import dataclasses

from symformer_jax.engine.config.names import check_counts
from symformer_jax.errors import InputError


@dataclasses.dataclass(frozen=True)
class TransformerConfig:
  """Candidates that a model draws."""

  # Samples of the first round: soon done, and enough for easy data. The second round fills up to the second number, of
  # which each further round is one. Smaller rounds stop earlier and pay the overhead of a round more often.
  round_samples: int = 256
  later_samples: int = 1024
  # Different starting constants kept of one token string: the fit is local, and each is one more fit.
  starts_per_string: int = 3
  # Candidates are equal in value when they agree at so many points to so many digits of their largest value. More of
  # either fits formulas that differ in rounding twice; fewer lose formulas that differ in a narrow range.
  value_points: int = 16
  value_digits: int = 5
  # Candidates of a view that go on to the pool: the best, and the best few of every length, for short laws have larger
  # errors than long ones until their constants are fitted in the user's units.
  num_best: int = 64
  num_per_length: int = 3

  def __post_init__(self) -> None:
    check_counts(self, "round_samples", "later_samples", "starts_per_string", "value_points", "num_best")
    if self.later_samples < self.round_samples:
      raise InputError(f"later_samples: expected at least round_samples, got {self.later_samples}")
