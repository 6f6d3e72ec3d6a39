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


@dataclasses.dataclass(frozen=True)
class OneConstantConfig:
  """Formulas with one inner constant, and how they are compared with y."""

  # How many families are looked at in each turn, of which so many formulas are fitted; of how many columns at most.
  num_families: tuple[int, ...] = (6_000, 60_000)
  num_asked: int = 8
  max_columns: int = 4
  # Formulas without constants that they are made of and that go together with them, see `EnumerationConfig`.
  num_formulas: int = 600
  # Constants c that are tried of each family: of c + G zeros beyond G's values, by so many spreads, and the others
  # among them; factors of either sign, and those of waves, over the median of G's size; exponents of either sign; none
  # whole, for at 1 many families are the same. In between the first order has to do. (Of fewer factors or exponents
  # than half as many some are there twice.)
  num_constants: int = 16
  beyond: tuple[float, ...] = (0.05, 0.2, 0.6, 1.8, 6.0)
  factors: tuple[float, ...] = (0.12, 0.31, 0.62, 1.07, 1.63, 2.4, 3.6, 5.5)
  fast_factors: tuple[float, float] = (0.8, 24.0)
  exponents: tuple[float, ...] = (0.27, 0.53, 0.83, 1.27, 1.8, 2.7, 3.7, 5.3)
  # Rows on which they are compared: six for constants and the others for how sure it is.
  num_rows: int = 20
  # Functions of y, of `LINKS`.
  links: tuple[str, ...] = (
    "y", "inv", "exp", "ln", "sqrt", "sqrt_inv", "pow2", "pow3", "asin", "acos", "atan", "logit", "complement_exp")
  # Families go together with this share of the power of 3/2 of how many times as many there are as up to them: of 6000
  # the first few hundred with some twenty others, four fifths with none but 1; formulas without constants with so many.
  share_of_others: float = 0.2
  most_others: int = 40
  # Of the first order of the constant the law leaves a few ten thousandths where the constant is between those that are
  # tried. Of each few hundred families that leave less than this share so many are kept by each link, and of each
  # length and link so many are fitted, the nearest.
  most_left: float = 0.05
  num_nearest: int = 20
  num_of_each: int = 48
  # Constants that leave so many times as much are as near.
  as_near: float = 2.0
  # Steps of Gauss and Newton by the constant, after how many the error has to be this share, and what is met by rows.
  num_steps: int = 12
  num_trial_steps: int = 4
  most_after_trial: float = 1e-5
  met: float = 1e-18
  # So many that meet all rows are enough, of so many that are tried at most; they may miss this share of y's variance,
  # beside roundings.
  num_met: int = 6
  num_tried: int = 64
  missed: float = 1e-20
  # Polynomials of a constant more than a formula has, of so many at most, have to leave so many times as much.
  most_constants: int = 7
  beyond_polynomials: float = 1e4
  # Terms that are a smaller share of what is summed are none, if no row's error then is a larger share; an inner
  # constant is a whole number where that changes the family by no larger share.
  idle: float = 1e-7
  idle_error: float = 1e-12
  whole: float = 1e-12

  def __post_init__(self) -> None:
    check_counts(self, "num_constants", "num_asked", "max_columns", "num_formulas", "num_rows", "num_nearest",
                 "num_of_each", "num_steps", "num_trial_steps", "num_met", "num_tried", "most_constants", "most_others")
    check_names("links", self.links, LINKS)
    if not all(isinstance(num, int) and num > 0 for num in self.num_families):
      raise ValueError(f"num_families: expected whole numbers of at least 1, got {self.num_families}")
