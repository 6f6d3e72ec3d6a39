"""Unknown functions: as factors of terms (varying), of one column each (separable), of one monomial (single index), and
the formulas that they and functions in near formulas may be.
"""

import dataclasses

from symformer_jax.engine.config.columns import COARSE_LIBRARY, LibraryConfig
from symformer_jax.engine.config.names import (
  FUNCTIONS,
  LIBRARY_FAMILIES,
  LINKS,
  SOURCES,
  Exponents,
  check_counts,
  check_names,
)
from symformer_jax.engine.config.rationals import RationalsConfig
from symformer_jax.engine.config.sums import Search
from symformer_jax.errors import InputError


@dataclasses.dataclass(frozen=True)
class FormsConfig:
  """Formulas for unknown functions of one column, of which values are known."""

  # Rows of the table that a function is: what formulas of one variable are fitted to, one of `task.ROW_BUCKETS`.
  num_places: int = 64
  # Multiples of these powers and functions, with a constant, and of any power or exponential without, are all that is
  # looked at where a single one agrees with a function, and no more than this share of its variance may be wrong of it:
  # with less known several agree. The first turn of `separable` so takes .5 to .8 s in place of 3 of laws of five
  # columns, such as `x*sin(y)*z**(-2/3)*w**(-1/3)/sqrt(1 - v**2)`.
  plain_powers: Exponents = (
    1, 2, 3, 4, 0.5, 1.5, 2.5, 1 / 3, 2 / 3, 4 / 3, -1, -2, -3, -4, -0.5, -1.5, -2.5, -1 / 3, -2 / 3)
  plain_functions: tuple[str, ...] = ("ln", "exp", "sin", "cos", "tan", "asin", "atan")  # acos is pi/2 - asin
  plain_left: float = 1e-7
  # Columns, of more powers and families than where there are several variables: a function of one column is known well.
  library: LibraryConfig = LibraryConfig(families=LIBRARY_FAMILIES, argument_powers=(1, 2, -1, 0.5, 3, -2, 4))
  # Sums of library columns and fractions that are fitted, in so many steps; how thoroughly the former are looked for;
  # those that go on, at so many nats a node.
  searches: tuple[Search, ...] = (Search("any", 2, 32), Search("basic", 2, 64, 32), Search("monomial", 3, 64, 64))
  num_sums: int = 48
  # Powers of sums and sums of two with inner constants (`two_constants`), where there are so many places: three for
  # each of four constants.
  least_places: int = 12
  num_powers: int = 24
  num_pairs: int = 24
  rationals: RationalsConfig = RationalsConfig(
    links=("y",), degrees=((3, 3),) * 4, root_degrees=(), num_taken_apart=0, num_fitted=12)
  screen_steps: int = 16
  num_near: int = 16
  fit_steps: int = 48
  num_forms: int = 6
  fits_per_form: int = 2
  # Share of a sum that is nothing: such a form is fitted without it as well.
  idle: float = 1e-6
  nats_per_node: float = 2.0
  # Mean square errors of the polynomials within which formulas agree with a function: at the ends they err more.
  errors_of_polynomials: float = 10.0
  # Waves that it may be: eighths of a turn over the places at most, and how many are fitted.
  num_waves: int = 24
  num_fitted_waves: int = 4

  def __post_init__(self) -> None:
    check_counts(self, "num_places", "num_sums", "num_powers", "num_pairs", "num_near", "num_forms", "fits_per_form")
    check_names("plain_functions", self.plain_functions, FUNCTIONS)


@dataclasses.dataclass(frozen=True)
class ReplacementsConfig:
  """Other functions of one column where near formulas have one."""

  # Tables that are asked in each turn: about a CPU second each. Turns are spread over the search
  # (`BudgetConfig.early`): each looks at what has been found since.
  turns: tuple[int, ...] = (1,) * 6
  # In the first of them nothing is asked where no polynomial shows what the data ask for: a few hundredths of a second.
  # Later functions of so many nodes are asked as they are where a formula leaves at most such a share of the variance.
  num_early: int = 4
  imitated: float = 1e-5
  long_nodes: int = 10
  # Sources whose first turns are asked of them, in the order of `registry.SOURCES`, for so many formulas at most; none
  # any more once a formula of at most so many nodes leaves no more than such a share of the variance.
  sources: tuple[str, ...] = ("closed_forms", "rationals", "curves", "library")
  num_asked: int = 128
  short: int = 12
  met: float = 1e-18
  # Formulas that are looked at: of these fronts (`GrowthConfig`), of at most so many nodes, and of these the nearest.
  num_seeds: int = 64
  num_fronts: int = 3
  max_nodes: int = 64
  num_nearest: int = 6
  # Share of y's variance that they may leave: what is farther off lacks more than one function.
  near: float = 0.01
  # Functions of a formula that are looked at, the outer ones first, of at least so many nodes: for `2*x` there is no
  # other.
  num_places: int = 6
  least_nodes: int = 4
  # The polynomial that shows what a function should be: of this degree, with so many different values of the column for
  # each term, in its logarithm where its largest value is so many times the least; and so many rows for all that is
  # fitted beside.
  degree: int = 32
  places_per_term: int = 4
  wide: float = 30.0
  rows_per_direction: int = 2
  # Share of what a formula leaves, as a length, that may be left with it: of noise, of whose 256 rows it has 33
  # directions, .93 is.
  most_left: float = 0.02
  # A table is asked again of a formula that leaves less than this share of what the one left whose it was.
  nearer: float = 0.1
  # Weights of rows of the table are at least this share of their mean. Where its errors do not show in y it is not
  # known: at 1e-3 what a polynomial does there was half of the table's variance.
  least_weight: float = 1e-9
  # Formulas of each table that come back.
  num_kept: int = 16

  def __post_init__(self) -> None:
    check_counts(self, "num_asked", "short", "long_nodes", "least_nodes", "num_seeds", "num_fronts", "max_nodes",
                 "num_nearest", "num_places", "degree", "places_per_term", "rows_per_direction", "num_kept")
    check_names("sources", self.sources, SOURCES)


@dataclasses.dataclass(frozen=True)
class VaryingConfig:
  """Sums of plain terms whose factors are functions of one variable."""

  # Formulas that are fitted in each turn: for y; for y with terms that the pool has; for functions of y.
  turns: tuple[int, ...] = (128, 128, 128)
  # Functions of y, of `LINKS`.
  links: tuple[str, ...] = ("y", "inv", "sqrt", "exp", "ln", "pow2")
  # Rows that it needs, and how many columns it takes: time goes with the square of them.
  min_rows: int = 64
  max_columns: int = 6
  # Polynomials of a factor: to the seventh degree, which bends as often as most functions of laws do within data; of
  # the logarithm as well where the largest value of a variable is so many times the least.
  num_functions: int = 8
  wide: float = 3.0
  # Terms: columns of this library of at most so many nodes, and how many.
  library: LibraryConfig = COARSE_LIBRARY
  max_term_nodes: int = 5
  max_terms: int = 64
  # Of the pool's best formulas, so many, terms beside the plain ones: so many, so many of each form.
  num_donors: int = 48
  max_seen_terms: int = 32
  num_multiplied: int = 4
  terms_per_form: int = 2
  # Terms of a sum, and rows for each polynomial of a factor.
  max_size: int = 5
  rows_per_function: int = 4
  # Share of the target that is rounding: nothing is left for a further term.
  exact: float = 1e-11
  # Sets that get a further term, and by how many each is completed: the best is not always the one that the next agrees
  # with; those whose terms are exchanged, and how often.
  num_kept: int = 24
  num_completed: int = 3
  num_exchanged: int = 12
  num_rounds: int = 2
  # Of each number of terms so many sums; a term without which what is left grows by no more than this may be none.
  num_per_size: int = 2
  negligible: float = 30.0
  # Factors that agree to this share of their squares are multiples of one another.
  alike: float = 1e-3
  # A further term must lessen what is left by this factor: less is what makes up for polynomials that are no law.
  worth: float = 6.0
  # Sums whose factors are looked at: none that leaves so many times what the best leaves, or such a share of the
  # target's variance.
  num_models: int = 4
  num_factors: int = 8
  times_least: float = 1000.0
  most_left: float = 1e-3
  # Formulas for the factors; of a model so many with all of them.
  forms: FormsConfig = FormsConfig()
  num_per_model: int = 24

  def __post_init__(self) -> None:
    check_counts(self, "min_rows", "max_columns", "num_functions", "max_terms", "max_size", "num_models")
    check_names("links", self.links, LINKS)


@dataclasses.dataclass(frozen=True)
class SeparableConfig:
  """Products of sums of functions of one column each, and such a sum beside them."""

  # Formulas that are fitted in each turn: of sums of functions of all columns that leave next to nothing; of all that
  # follows, which a single turn is.
  turns: tuple[int, ...] = (48, 128)
  # Functions of y, of `LINKS`, that may be such a sum, those of `divided_links` of y over a power of a column as well;
  # those that may be a product of a function of each column and a constant beside it, in both turns, and of so few
  # columns, in the first turn, a product of sums (.01 to .16 s); and share of the variance that it leaves at most.
  # Where y has poles no smooth function tells what divides it.
  plain_links: tuple[str, ...] = ("y", "exp", "inv", "sqrt")
  plain_divisor_powers: tuple[float, ...] = (1.0, -1.0, 2.0, -2.0)
  lone_links: tuple[str, ...] = ("y",)
  plain_product_links: tuple[str, ...] = ("y", "inv", "sqrt")
  max_plain_multiplied: int = 4
  plain_left: float = 1e-8
  # Functions of y, of `LINKS`; those that are asked of y over a power of a column as well; those that may be a product
  # of several sums, that beside a further sum, and with two functions of a column. The logarithm of a product is a sum
  # already, if all is positive.
  links: tuple[str, ...] = ("y", "inv", "exp", "sqrt", "sqrt_inv", "ln", "pow2")
  divided_links: tuple[str, ...] = ("y", "inv", "sqrt", "sqrt_inv")
  product_links: tuple[str, ...] = ("y", "inv", "sqrt", "sqrt_inv")
  added_links: tuple[str, ...] = ("y", "exp")
  overlapping_links: tuple[str, ...] = ("y", "inv")
  divisor_powers: tuple[float, ...] = (1.0, -1.0)
  # Of so few columns y is divided by such powers of two of them as well, in both turns; functions of y then.
  pair_powers: tuple[float, ...] = (1.0, -1.0)
  pair_links: tuple[str, ...] = ("y", "inv")
  max_paired: int = 3
  # What a sum that y over a power is leaves at most with polynomials of the second degree below, and a product with
  # those that it was nearest with in few sweeps, else it is not fitted with others, in both turns (1: whatever it
  # leaves): in the first half of the time.
  screened_left: float = 1.0
  plain_screened_left: float = 0.01
  # Columns; of more than the second number sums alone, of more than the third not all partitions into factors are
  # looked at: there are 52 of five.
  max_columns: int = 9
  max_multiplied: int = 6
  max_partitioned: int = 4
  # Degrees of the polynomials, few and many: a wave of several periods needs many. Rows for each of a column, and for
  # each constant of a model; of the logarithm as well where the largest value of a column is so many times the least.
  degrees: tuple[int, ...] = (7, 14, 23)
  rows_per_constant: int = 3
  rows_per_product: int = 2
  wide: float = 3.0
  # Of a sum of functions of all columns one column after the other has polynomials of its logarithm, or none of it, as
  # long as that leaves such a share of what was left: `cos(w**2) + 1/sqrt(y)`, y from next to 0.
  # (No other share was tried.)
  of_own_kind: float = 0.3
  # Sweeps of alternating least squares, ended by one that gains less than a share; starts, the first with all factors
  # 1, the others this far from it: of 299 random products one start left 47 unfound, two 17, three 12. In the first
  # turn what is wrong stands still soon, and `(x**2 + 3)*exp(-0.3*y) - 4` comes 7 % nearer in each of 70 sweeps;
  # there one start more is a product of columns, for beside constants each factor of `x*y*z` on both sides of 0 is
  # nothing to y.
  num_sweeps: int = 30
  least_gain: float = 1e-3
  num_plain_sweeps: int = 100
  least_plain_gain: float = 0.03
  num_starts: int = 2
  spread: float = 0.5
  from_columns: bool = False
  # Products are first fitted with the fewest polynomials, of so many columns at most with the next degree as well, in
  # so few sweeps; so many go on. Models that lose functions that do not matter; those whose functions are looked at,
  # with how many in all: none that leaves so many times what the best leaves, so many times what the pool's best does,
  # or such a share of the variance.
  max_bent: int = 3
  num_brief_sweeps: int = 4
  num_carried: int = 8
  num_reduced: int = 6
  num_models: int = 3
  max_functions: int = 8
  times_least: float = 1000.0
  times_pool: float = 3.0
  most_left: float = 1e-3
  # Formulas for the functions; of a model so many with all of them.
  forms: FormsConfig = FormsConfig()
  num_per_model: int = 24

  def __post_init__(self) -> None:
    check_counts(self, "max_columns", "rows_per_constant", "rows_per_product", "num_sweeps",
                 "num_plain_sweeps", "num_starts", "num_models")
    for name in ("links", "plain_links", "lone_links", "plain_product_links", "divided_links", "pair_links",
                 "product_links", "added_links", "overlapping_links"):
      check_names(name, getattr(self, name), LINKS)
    if not self.degrees or any(degree < 1 for degree in self.degrees):
      raise InputError(f"degrees: expected some numbers of at least 1, got {self.degrees!r}")


@dataclasses.dataclass(frozen=True)
class MonotoneConfig:
  """Products of powers that y rises or falls with."""

  # Columns at most: time goes with them, and with the powers of each that y is divided by.
  max_columns: int = 12
  # Rows for each column; alternations of the function of y and the sum of logarithms, till none changes by more.
  rows_per_column: int = 4
  num_rounds: int = 100
  tolerance: float = 1e-8
  # What the sum may miss the function by, root mean square, where the variance is 1. Until it does, so often those rows
  # go on alone that agree best: such a share.
  most_left: float = 0.02
  num_trims: int = 3
  kept_share: float = 0.8
  # Multiples of a direction whose largest factor is 1, the first of which is near to whole numbers, or to halves: as
  # near, for a multiple of 1.
  multiples: tuple[float, ...] = (1, 1.5, 2, 3, 4)
  nearly: float = 0.01

  def __post_init__(self) -> None:
    check_counts(self, "max_columns", "rows_per_column", "num_rounds")


@dataclasses.dataclass(frozen=True)
class SingleIndexConfig:
  """Functions of one product of powers, times a power of a column."""

  # Formulas that are fitted.
  turns: tuple[int, ...] = (128,)
  # Exponents beside 0, the first of these that make at most so many products of all columns; rows that these are
  # computed at. 28 561 products of four columns take 7 MB.
  exponents: tuple[Exponents, ...] = (
    (1, 2, -1, -2, 0.5, -0.5, 3, -3, 4, -4, 1.5, -1.5), (1, 2, -1, -2, 0.5, -0.5, 3, -3, 4),
    (1, 2, -1, -2, 0.5, -0.5, 3), (1, 2, -1, -2), (1, 2, -1), (1, -1))
  max_products: int = 40_000
  num_rows: int = 64
  # Powers of a column that y is divided by.
  divisor_powers: tuple[float, ...] = (1.0, -1.0)
  # Rows that there have to be; products that are compared on all of them.
  min_rows: int = 40
  num_looked_at: int = 64
  # Products whose functions are looked for: none in whose order neighbours differ by more than this, as a share of the
  # variance.
  num_kept: int = 3
  most_rough: float = 0.03
  # Products of any number of columns, that the grid has no place for.
  monotone: MonotoneConfig = MonotoneConfig()
  forms: FormsConfig = FormsConfig(num_sums=64)

  def __post_init__(self) -> None:
    check_counts(self, "max_products", "num_rows", "min_rows", "num_looked_at", "num_kept")
