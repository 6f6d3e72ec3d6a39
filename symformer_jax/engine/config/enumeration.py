"""How all short formulas without inner constants are made, and how they meet y."""

import dataclasses

from symformer_jax.engine.config.names import COMMON_LINKS, LINKS, check_counts, check_names
from symformer_jax.errors import InputError


@dataclasses.dataclass(frozen=True)
class EnumerationConfig:
  """Formulas of columns and whole numbers that are made, and how they meet y."""

  # Formulas that are fitted in each turn: of all operators; of few.
  turns: tuple[int, ...] = (8, 8)
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
  # Those of the second turn: of so few as many formulas are longer, `log(x**y + 1)` among them. Of 93 formulas that the
  # search had missed, or the tables they come down to, the first turn meets four, the second three of these and three
  # more, such as `(1 + x**y)**(1/y - 1)`.
  few_functions: tuple[str, ...] = ("inv", "exp", "ln")
  few_numbers: tuple[float, ...] = (1.0, 2.0)
  # Rows on which they are made: one that says how large the function's share is, one for the constant beside it, and
  # the others for how sure it is.
  num_rows: int = 9
  # Those whose values are so many times the square of what columns and numbers are, or as much smaller, are of no use:
  # nothing is left of what is added to them.
  largest: float = 1e12
  # Functions of y, of `LINKS`, that may be a + b*F, and two of them one after the other; that may be that with the sum,
  # the difference, the product or the ratio with another formula, one of the first so many.
  links: tuple[str, ...] = COMMON_LINKS
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
class ShortFormsConfig:
  """Short formulas that come near: how many of a bank, and where a pole may lie."""

  # Formulas that are fitted.
  turns: tuple[int, ...] = (16,)
  # So many formulas of columns and numbers are made, by these operators of one argument: fewer than enumeration has,
  # for of two formulas each has a factor, and longer ones for that.
  num_formulas: int = 7000
  functions: tuple[str, ...] = ("inv", "sqrt", "pow2", "exp", "ln", "sin", "cos", "tan")
  numbers: tuple[float, ...] = (1.0, 2.0)
  largest: float = 1e12
  # Of so many columns at most, and so many different rows or more: of fewer some formula always comes near.
  max_columns: int = 6
  min_rows: int = 20
  # Rows on which they are made: those whose y is farthest from the median, which have most of its variance, and others.
  num_largest: int = 24
  num_others: int = 72
  # Of two formulas the second is one of the first so many.
  num_others_of_two: int = 160
  # Of those that come nearest, with and without a constant, so many are told apart, and of so many all rows are asked.
  num_looked_at: int = 256
  num_near: int = 24
  # What leaves more than this share of y's variance is none that the noise alone keeps from being exact.
  most_left: float = 0.1
  # A pole is looked for where what a straight line leaves of some y is farther from the median than so many times the
  # distance of the quartiles: of a normal distribution of a thousand rows it is 2.4 times, of 1/x hundreds.
  tail: float = 3.0
  # ... in so many rows, the farthest among them, beside so many of these, as far as so many neighbours on either side,
  # at so many places for each, and on both sides of each row at so many at distances that fall by so many decades; and
  # so many times in all, each time at so many finer ones beside the best.
  num_rows: int = 256
  num_tops: int = 2
  reach: int = 2
  num_places: int = 21
  decades: float = 5.0
  num_steps: int = 31
  num_refinements: int = 4
  num_finer: int = 15
  # Powers of what is below; of poles with as many terms so many, by what they leave at the first places: of five
  # columns there are 600, and the places of all took half of the time.
  powers: tuple[int, ...] = (1, 2)
  num_kinds: int = 8

  def __post_init__(self) -> None:
    check_counts(self, "num_formulas", "max_columns", "min_rows", "num_largest", "num_others", "num_others_of_two",
                 "num_looked_at", "num_near", "num_rows", "num_tops", "reach", "num_places", "num_steps",
                 "num_refinements", "num_finer", "num_kinds")
    if self.num_rows < self.num_largest:
      raise InputError(f"num_rows: expected at least num_largest, got {self.num_rows}")
