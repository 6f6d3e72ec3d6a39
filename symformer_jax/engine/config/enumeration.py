"""How all short formulas without inner constants are made, and how they meet y."""

import dataclasses

from symformer_jax.engine.config.names import LINKS, check_counts, check_names


@dataclasses.dataclass(frozen=True)
class EnumerationConfig:
  """Formulas of columns and whole numbers that are made, and how they meet y."""

  # Formulas that are fitted.
  turns: tuple[int, ...] = (8,)
  # How many are made, and of how many columns at most. Five times as many met no law more of 41 that the search
  # had missed, in .7 CPU seconds in the place of .13.
  num_formulas: int = 20_000
  max_columns: int = 6
  # Operators of one argument, and numbers that stand for themselves.
  functions: tuple[str, ...] = (
    "inv", "sqrt", "pow2", "pow3", "exp", "ln", "sin", "cos", "tan", "asin", "acos", "atan")
  # Further ones of tables of one column: of more they take the place of what is likelier.
  functions_of_one: tuple[str, ...] = ("pow4", "pow5")
  numbers: tuple[float, ...] = (1.0, 2.0, 3.0)
  # Rows on which they are made: one that says how large the function's share is, one for the constant beside it, and
  # the others for how sure it is.
  num_rows: int = 9
  # Those whose values are so many times the square of what columns and numbers are, or as much smaller, are of no use:
  # nothing is left of what is added to them.
  largest: float = 1e12
  # Functions of y, of `LINKS`, that may be a + b*F, and two of them one after the other; that may be that with the sum,
  # the difference, the product or the ratio with another formula, one of the first so many.
  links: tuple[str, ...] = LINKS
  links_of_two: tuple[str, ...] = ("y", "inv", "exp", "sqrt", "ln")
  num_others: int = 10_000
  # Rows of at least this share of the largest weight, and where y is no more times its usual size, or as much less.
  least_weight: float = 1e-3
  most_beyond: float = 100.0
  # Directions agree to this share, where they are no smaller differences than the other one of the values; so does, row
  # by row, what varies of y. Of formulas whose first direction agrees so many are compared, the nearest: in a narrow
  # range 1/x, sin(1/x) and arctan(1/x) are alike, and beside a row that is far out all are.
  tolerance: float = 1e-7
  least_share: float = 1e-5
  most_alike: int = 64
  # Of the first so many that agree on few rows so many are evaluated on all, the shortest. Of y's variance they may
  # miss this share, and so many roundings of its largest value: of 8e8 formulas some come to 1e-15 of whatever is
  # smooth, in a narrow range. Where polynomials of this degree leave more than such a share, it may be rounding of
  # constants: of seven digits, say.
  num_matches: int = 4096
  num_checked: int = 192
  missed: float = 1e-20
  roundings: float = 32.0
  degree: int = 5
  bent: float = 1e-8
  missed_if_bent: float = 1e-14

  def __post_init__(self) -> None:
    check_counts(self, "num_formulas", "max_columns", "num_rows", "num_others", "most_alike",
                 "num_matches", "num_checked", "degree")
    check_names("links", self.links, LINKS)
    check_names("links_of_two", self.links_of_two, LINKS)
