"""Sums of terms times functions of one column each that exact data tell to many digits."""

import dataclasses

from symformer_jax.engine.config.names import LINKS, check_counts, check_names
from symformer_jax.engine.config.reductions import OF_OTHER_TABLES
from symformer_jax.engine.config.unknown_functions import VaryingConfig
from symformer_jax.errors import InputError


@dataclasses.dataclass(frozen=True)
class ExactFactorsConfig:
  """Sums of terms times functions of one column each, known to many digits, each searched as a table."""

  # Formulas of each turn: of the first model, by cheap sources; of the first by all, of the second by all.
  turns: tuple[int, ...] = (32, 32, 32)
  # Functions of y, of `LINKS`, that may be such a sum.
  links: tuple[str, ...] = ("y", "exp", "inv", "sqrt", "ln", "pow2")
  # Rows that it needs, and columns at most: time goes with the square of them.
  min_rows: int = 64
  max_columns: int = 5
  # How sums of terms times functions of one column are looked for (of `VaryingConfig` what says which terms, views and
  # sets there are; links and the choice of models are those here): a fifth of a second for two to five columns, where
  # five terms of 64 take three to six times as long and found no other model of 50 published laws. Share of the
  # variance that few polynomials leave at most of what is looked at further, and how many sums are.
  sums: VaryingConfig = VaryingConfig(max_size=3, max_terms=32)
  near: float = 1e-4
  num_sharpened: int = 6
  # Polynomials: of these degrees, with so many rows for each constant; of the logarithm as well where the largest value
  # of a column is so many times the least. One row of so many is left out. What the right sum leaves of these at most,
  # as a share of the variance, and of what the fewest of them leave: of other sums more polynomials leave more of rows
  # left out. How many such sums are kept.
  degrees: tuple[int, ...] = (8, 12, 16, 20, 24)
  rows_per_constant: int = 3
  wide: float = 3.0
  left_out_of: int = 4
  exact: float = 1e-9
  falling: float = 1e-2
  # Of fewer polynomials those are as good that leave so many times the least, or nothing but rounding.
  as_good: float = 10.0
  rounding: float = 1e-24
  num_models: int = 2
  # Places where a function is looked at, of which those are kept where errors of its values have so many times the
  # median variance at most.
  num_places: int = 64
  times_median: float = 30.0
  # Share of squares that is rounding; functions that differ by so many times their error are multiples.
  nothing: float = 1e-18
  alike: float = 100.0
  # Sources that are asked of a function, the first ones in the first turn, each for so many formulas at most in a turn,
  # till a short one meets it to so many times its error. At least this share of its squares is its error. Forms of each
  # function, at so many nats a node. (A function that none finds takes .7 s, in later turns 2.5.)
  early_sources: tuple[str, ...] = (
    "closed_forms", "enumeration", "oscillations", "rationals", "curve_fits", "exact_fractions", "two_constants")
  sources: tuple[str, ...] = (
    "closed_forms", "enumeration", "quadratics", "oscillations", "rationals", "curve_fits", "exact_fractions",
    "linked_fractions", "two_constants", "function_fractions", "curves", "inner_pairs")
  num_asked: int = 160
  short: int = 12
  times_error: float = 30.0
  least_error: float = 1e-24
  num_forms: int = 6
  nats_per_node: float = 2.0
  num_per_model: int = 24

  def __post_init__(self) -> None:
    check_counts(self, "min_rows", "max_columns", "num_sharpened", "rows_per_constant", "left_out_of",
                 "num_models", "num_places", "num_asked", "short", "num_forms", "num_per_model")
    check_names("links", self.links, LINKS)
    if not self.degrees:
      raise InputError("degrees: expected at least one")
    check_names("sources", self.sources, OF_OTHER_TABLES)
    check_names("early_sources", self.early_sources, self.sources)
