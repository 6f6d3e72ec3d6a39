"""How product units are fitted: sums of products of powers with free exponents."""

import dataclasses

from symformer_jax.engine.config.names import (
  LINKS,
  PRODUCT_UNIT_FUNCTIONS,
  PRODUCT_UNIT_SHAPES,
  check_counts,
  check_names,
)
from symformer_jax.errors import InputError

# Functions that one product may be in: a power of one is a product.
_OF_ONE = tuple(name for name in PRODUCT_UNIT_FUNCTIONS if name != "power")


@dataclasses.dataclass(frozen=True)
class ProductUnitsConfig:
  """Which sums, from how many starts, and how their exponents become plain numbers."""

  # Formulas that are fitted in a turn.
  num_formulas: int = 48
  # For each turn functions of y, of `LINKS`, what they may be, and with which functions of products.
  plans: tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...] = (
    (("y",), ("two", "three"), ()),
    (("inv", "exp", "sqrt", "pow2", "ln"), ("two", "three"), ()),
    (("y",), ("both", "beside"), _OF_ONE),
    (("y",), ("inside", "alone"), PRODUCT_UNIT_FUNCTIONS),
    (("inv", "sqrt", "pow2_inv"), ("alone",), ("exp", "pure_ln", "cos")),
    (("inv", "exp", "sqrt"), ("both",), ("exp", "ln", "tanh")),
  )
  # Of so many columns at most, and so many different rows or more for each exponent of a sum.
  max_columns: int = 12
  rows_per_exponent: float = 2.0
  # A column that is 0 in more than this share of the rows is left out; of all others these rows are. So is one whose
  # size is the same in all rows: of -1 and 1, say.
  most_zeros: float = 0.1
  # Rows that are fitted: so many of those whose y is farthest from the median, which have most of its variance, and
  # so many others.
  num_largest: int = 32
  num_others: int = 96
  # Starts of each sum and function, so many with errors of y and as many with errors relative to its distance from
  # the median beside this quantile of that. Of 40 made-up sums of four to seven columns each was met from .02 (waves)
  # to .9 (sums without a function) of the starts.
  num_starts: int = 48
  quantile: float = 0.3
  # Exponents at first, of logarithms of deviation 1: this share of them is not 0, and of this deviation.
  spread: float = 1.2
  density: float = 0.6
  # Steps of all starts, how many of each of these then go on, and for how many more; of a fit whose starts are
  # those of another, and of one in which one number more is fixed. As many made-up sums were met as with 40 steps of
  # all, in .36 CPU seconds in the place of .82; with 8 of 64 that go on after 8 steps 35 of 40 in the place of 38.
  num_first_steps: int = 10
  num_survivors: int = 12
  num_steps: int = 30
  num_further_steps: int = 20
  num_rounding_steps: int = 10
  # The nearest of each sum and function go on, so many of each shape; where more leave no more than so many times the
  # least, as under noise, so many at most: the law's function is anywhere among those. None that leaves more than the
  # last share.
  num_kept: int = 12
  alike: float = 2.0
  num_alike: int = 48
  most_left: float = 0.5
  # Exponents become multiples of the first of these, where not of the second, as long as what is left does not grow by
  # more than so many times its share of a degree of freedom, or is less than what single precision tells. What has a
  # larger one than `largest` is left out.
  multiples: tuple[float, ...] = (0.5, 1 / 3)
  most_growth: float = 6.0
  # What costs more than so many times that, by the curvature, is not tried.
  worth_trying: float = 4.0
  exact: float = 1e-11
  largest: float = 6.0

  def __post_init__(self) -> None:
    check_counts(self, "num_formulas", "max_columns", "num_largest", "num_others", "num_starts", "num_first_steps",
                 "num_survivors", "num_steps", "num_further_steps", "num_rounding_steps", "num_kept", "num_alike")
    if self.num_survivors > self.num_starts:
      raise InputError(f"num_survivors: expected at most num_starts, got {self.num_survivors}")
    for links, shapes, functions in self.plans:
      check_names("plans", links, LINKS)
      check_names("plans", shapes, PRODUCT_UNIT_SHAPES)
      is_of_one = not {"both", "beside"}.isdisjoint(shapes)
      check_names("plans", functions, _OF_ONE if is_of_one else PRODUCT_UNIT_FUNCTIONS)
