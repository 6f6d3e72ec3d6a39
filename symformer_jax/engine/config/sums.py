"""Searches for sums of library columns, and formulas of the pool that grow by one."""

import dataclasses
from typing import NamedTuple

from symformer_jax.engine.config.names import (
  COMMON_LINKS,
  LIBRARY_FAMILIES,
  LINKS,
  PLAIN,
  TIERS,
  WIDE,
  Exponents,
  check_counts,
  check_names,
)
from symformer_jax.errors import InputError


@dataclasses.dataclass(frozen=True)
class PlainWavesConfig:
  """Waves of one column beside a straight line."""

  # Different rows for each constant, and as many different values of the column: of fewer a wave of some frequency is
  # always near.
  rows_per_constant: int = 4
  # Frequencies: so many steps from one period more within the data to the next, at which a wave between two of them
  # keeps nine tenths of what it explains; up to half a period for each different value, the most that evenly spaced
  # ones tell.
  steps_per_period: int = 4
  periods_per_row: float = 0.5

  def __post_init__(self) -> None:
    check_counts(self, "rows_per_constant", "steps_per_period")
    if not self.periods_per_row > 0:
      raise InputError(f"periods_per_row: expected a number above 0, got {self.periods_per_row!r}")


@dataclasses.dataclass(frozen=True)
class ExponentialProductsConfig:
  """Products of powers times the exponential of one or two monomials."""

  # Columns at most; different rows for each term of the logarithm.
  max_columns: int = 9
  rows_per_term: int = 4
  # Monomials in the exponent: of how many columns, at most so many of a size, with the first set of exponents that
  # makes few enough. A thousand take a hundredth of a second.
  max_size: int = 3
  max_monomials: int = 1500
  exponents: tuple[Exponents, ...] = (
    (-3, -2, -1.5, -1, -0.5, 0.5, 1, 1.5, 2, 3), (-2, -1, -0.5, 0.5, 1, 2), WIDE, PLAIN)
  # Of the best so many a second one is looked for; formulas of one, and of two, that are fitted.
  num_beams: int = 8
  num_kept: int = 2
  # Share of y's variance that is left at most.
  most_left: float = 1e-12

  def __post_init__(self) -> None:
    check_counts(self, "max_columns", "rows_per_term", "max_size", "max_monomials", "num_beams", "num_kept")


@dataclasses.dataclass(frozen=True)
class SigmoidsConfig:
  """Logistic, Gompertz and Weibull curves of straight lines."""

  # Terms of a line at most, and rows for each.
  max_terms: int = 12
  rows_per_term: int = 3
  # Share of the rows that noise may have brought below 0, where no curve is.
  below: float = 0.1
  # Exponentials of which y tells: where they are smaller the curve has come to one end, and where they are larger to
  # the other.
  exponentials: tuple[float, float] = (1e-6, 1e9)
  # How far beyond the largest y the end of the curve is looked for, as shares of it; at so many places; and the steps
  # by which the best of each curve is followed, where the line leaves no more than such a share of the variance of the
  # logarithm.
  beyond: tuple[float, float] = (1e-4, 10.0)
  num_tops: int = 20
  num_steps: int = 60
  followed: float = 0.1
  # What leaves more than this share is no curve; of columns with their logarithms, or their products, more than the
  # second: with so many constants a curve follows whatever bends under noise.
  most_left: float = 0.3
  exact: float = 1e-9
  # Exponents so near to whole numbers are tried as these as well.
  nearly_whole: float = 0.05

  def __post_init__(self) -> None:
    check_counts(self, "max_terms", "rows_per_term", "num_tops", "num_steps")


@dataclasses.dataclass(frozen=True)
class PowerSumsConfig:
  """Sums of three powers of one column beside a constant."""

  # Functions of y that may be such; exponents are whole numbers over these, as far as the largest.
  links: tuple[str, ...] = ("y", "inv", "sqrt", "pow2", "exp", "ln")
  parts: tuple[int, ...] = (2, 3)
  largest: int = 4
  # Triples that are solved, those that come nearest by sums of squares, which know no less than a hundred-millionth;
  # and the share of the variance that is rounding.
  num_looked_at: int = 24
  exact: float = 1e-20
  rows_per_term: int = 3

  def __post_init__(self) -> None:
    check_counts(self, "largest", "num_looked_at", "rows_per_term")
    check_names("links", self.links, LINKS)


@dataclasses.dataclass(frozen=True)
class LinearExponentsConfig:
  """Products of powers whose exponents are straight lines of columns, with one inner sum."""

  # Columns at most of products with an inner function, where its constant is fitted, and of those without one, as waves
  # with their amplitudes are; rows at most, and those there have to be for each term.
  max_columns: int = 4
  max_columns_fitted: int = 3
  max_columns_of_waves: int = 6
  max_rows: int = 256
  rows_per_term: int = 2
  # Share of the squares of the logarithm of y that is rounding; with a constant that is fitted. Of 29 products right
  # inner functions left 1e-28 of its variance and less, the nearest others 8e-8 and more; with a constant 1e-18.
  exact: float = 1e-24
  near: float = 1e-16
  # Places of a constant: of 1 + c*m from a share of the inverse of m's median to as many times it; of 1 - c*m where the
  # least of the sum is from the first share to the second.
  num_places: int = 10
  reach: float = 30.0
  nearest_to_zero: float = 0.01
  farthest_from_zero: float = 0.95
  # Sums whose constant is fitted, sums without one that are written; what leaving out a factor may add to what is left.
  num_tried: int = 8
  num_written: int = 3
  times_left: float = 100.0
  # Of more nodes one with a constant that is fitted follows any smooth function.
  most_nodes_fitted: int = 40

  def __post_init__(self) -> None:
    check_counts(self, "max_columns", "max_columns_fitted", "max_columns_of_waves", "max_rows", "rows_per_term",
                 "num_places", "num_tried", "num_written")


@dataclasses.dataclass(frozen=True)
class LogarithmsOfSumsConfig:
  """Sums of fractions over one or two sums of columns and of their logarithms."""

  # Functions of y; columns at most; rows at most, and those there have to be for each term.
  links: tuple[str, ...] = ("y", "exp", "sqrt")
  max_columns: int = 3
  max_rows: int = 200
  rows_per_term: int = 2
  # Share of the squares of y that is rounding; what leaving out a term may add to what is left.
  exact: float = 1e-24
  times_left: float = 100.0
  # Share of a direction that is told by other terms; pairs that are looked at closely, and sums that are written.
  least_own: float = 1e-9
  num_tried: int = 4
  num_written: int = 2

  def __post_init__(self) -> None:
    check_names("links", self.links, LINKS)
    check_counts(self, "max_columns", "max_rows", "rows_per_term", "num_tried", "num_written")


@dataclasses.dataclass(frozen=True)
class ClosedFormsConfig:
  """The mean, straight lines, straight lines of logarithms, also beside an exponential or inside a sigmoid, and waves
  beside straight lines.
  """

  # Whether lines of logarithms are tried; rows for each of their terms.
  has_logarithms: bool = True
  rows_per_term: int = 3
  # Whether products with exponentials are tried, and which.
  has_exponentials: bool = True
  exponentials: ExponentialProductsConfig = ExponentialProductsConfig()
  # Whether sigmoids are tried, and which.
  has_sigmoids: bool = True
  sigmoids: SigmoidsConfig = SigmoidsConfig()
  # Whether sums of powers of a single column are tried, and which.
  has_powers: bool = True
  powers: PowerSumsConfig = PowerSumsConfig()
  # Whether waves are tried, and which.
  has_waves: bool = True
  waves: PlainWavesConfig = PlainWavesConfig()
  # Whether products of powers with columns in exponents are tried, and which.
  has_linear_exponents: bool = True
  linear_exponents: LinearExponentsConfig = LinearExponentsConfig()
  # Whether logarithms of sums beside fractions over them are tried, and which.
  has_logarithms_of_sums: bool = True
  logarithms_of_sums: LogarithmsOfSumsConfig = LogarithmsOfSumsConfig()

  def __post_init__(self) -> None:
    check_counts(self, "rows_per_term")


@dataclasses.dataclass(frozen=True)
class PursuitConfig:
  """The few columns of many whose sum fits a target best: how many sets of columns are carried along."""

  # Columns of a set.
  max_columns: int = 6
  # Squared error below this share of the target's spread, or within rounding of the target, is exact: no further column
  # is looked for.
  exact: float = 1e-20
  # Sets carried from one size to the next: of one column (where these are all columns, every pair is tried), of two,
  # and of more. Time goes with them.
  num_first: int = 8
  num_pairs: int = 16
  num_beams: int = 8
  # Sets that are kept of one and of two columns, and of each larger size: short sums are the likelier laws.
  num_kept_short: int = 16
  num_kept: int = 3
  # The sets whose extensions are looked at, and extensions for each that is carried on: most of the best differ in a
  # neighbour of the same group.
  num_looked_at: int = 64


class Search(NamedTuple):
  """A search among columns.

  Attributes:
    tier: the least, one of `TIERS`.
    max_columns: of a sum (of 100 points and 10 000 columns any four fit).
    num_first, num_pairs: sums of one column that are carried on, and of two; from 4096 all pairs are tried.
  """

  tier: str
  max_columns: int
  num_first: int
  num_pairs: int = 16


@dataclasses.dataclass(frozen=True)
class TermsConfig:
  """Sums and products of columns and of parts of candidates, as a function of y."""

  # The functions of y that may be a sum, see `terms.LINKS`: each is one more pursuit of every search.
  links: tuple[str, ...] = COMMON_LINKS
  # Whether products of powers of parts are tried: the logarithm of |y| as a sum of logarithms.
  use_products: bool = True
  # Longer sums of all columns are chosen by exchange (`SubsetsConfig`). Beside a formula that meets the data
  # (`PoolConfig.met`) only the last search is made.
  searches: tuple[Search, ...] = (
    Search("any", 2, 64), Search("basic", 3, 128, 64), Search("monomial", 6, 4096, 256))
  # Rows on which columns are selected: the products of the pursuit go with them.
  num_rows: int = 128
  # Formulas looked at for each that counts, where a user's rules leave out many: each takes a tenth of a millisecond to
  # write out.
  looks_per_formula: int = 8
  # Sums of a turn that are fitted.
  num_fitted: int = 192
  # Nats for a node of a formula, where products of many variables take turns (as `SelectionConfig.nats_per_node`).
  nats_per_node: float = 2.0
  # Parts taken from the best candidates: terms of their outermost sums, and all others.
  max_outer: int = 512
  max_inner: int = 256
  # Nodes of a part and of a formula: longer ones are rarely a law, and their many constants take seconds to round.
  max_part_nodes: int = 12
  max_nodes: int = 40
  # Parts of a formula, and different points for each (for each constant of a pair of columns or a grown formula): fewer
  # points are fitted by anything.
  max_parts: int = 6
  points_per_part: int = 5
  # Parts that agree to so many digits of their largest value are one: fits of one formula that ended side by side.
  value_digits: int = 5
  # Exponents of a product so near to a half number are meant to be one.
  near_half: float = 0.02

  def __post_init__(self) -> None:
    check_counts(self, "num_rows", "looks_per_formula", "num_fitted", "points_per_part")
    check_names("links", self.links, LINKS)
    searches = tuple(Search(*search) for search in self.searches)
    check_names("searches", tuple(search.tier for search in searches), TIERS)
    object.__setattr__(self, "searches", searches)


@dataclasses.dataclass(frozen=True)
class PairsConfig:
  """Sums of two library columns."""

  # Pairs whose constants are fitted in each turn.
  turns: tuple[int, ...] = (512,)
  # Library columns of which every pair is tried: time goes with their square, 32 thousand take 2 seconds of one core.
  max_columns: int = 32_768
  # Pairs of blocks of columns looked at in double precision.
  num_looked_at: int = 16_384
  # Starts of the fit for a pair of families: waves have many optima.
  starts_per_pair: int = 2

  def __post_init__(self) -> None:
    check_counts(self, "max_columns", "num_looked_at", "starts_per_pair")


@dataclasses.dataclass(frozen=True)
class PairsInsideConfig:
  """Sums of two plain library columns for functions of y."""

  # Formulas that are fitted: of each function some 130. Where a Weibull density is the exponential of `a*log(x) -
  # b*x**1.7` the right pair is the thirteenth, for the grid has x**1.5 and x**2 alone; of six others made up for this
  # it was in the first place to the hundredth.
  turns: tuple[int, ...] = (1024,)
  # Columns with formulas of at most so many nodes: some three hundred of one variable.
  max_nodes: int = 5
  max_columns: int = 4096
  # The functions, of `LINKS`; pairs of blocks of columns looked at in double precision; starts for a pair of families.
  links: tuple[str, ...] = ("exp", "inv", "sqrt", "ln", "pow2", "sqrt_inv", "logit", "atan")
  num_looked_at: int = 2048
  starts_per_pair: int = 2

  def __post_init__(self) -> None:
    check_counts(self, "max_nodes", "max_columns", "num_looked_at", "starts_per_pair")
    check_names("links", self.links, LINKS)


@dataclasses.dataclass(frozen=True)
class TriplesConfig:
  """Sums of three plain library columns."""

  # Formulas that are fitted in each turn: the functions of y are shared out among the turns, y itself has the first.
  # `1.02 - 0.06*log(x) - 0.25*x - 3e-5*exp(6.5*x)` is the 41st of different families before constants are fitted, and
  # was met neither by exchange nor forward.
  turns: tuple[int, ...] = (256, 256, 256, 256)
  links: tuple[str, ...] = ("y", "exp", "inv", "sqrt")
  # Columns with formulas of at most so many nodes, the shortest: time goes with the cube, 400 take half a second.
  max_nodes: int = 5
  max_columns: int = 400
  # Triples kept of each first column, before the best of each three families are taken.
  num_kept: int = 400

  def __post_init__(self) -> None:
    check_counts(self, "max_nodes", "max_columns", "num_kept")
    check_names("links", self.links, LINKS)


@dataclasses.dataclass(frozen=True)
class SubsetsConfig:
  """Sums of few library columns, chosen by exchange."""

  # Formulas that are fitted in each turn.
  turns: tuple[int, ...] = (256,)
  # Terms of a sum; none are looked for where the error is a smaller share of the target's variance than this.
  max_size: int = 5
  exact: float = 1e-13
  # Beside all columns those with formulas of at most so many nodes: among thousands of columns that are nearly a sum of
  # a few others, exchange ends at a sum that is not the right one. `log(y) - z**2 + y/z` was found among 955 of five
  # nodes, not among the 13 768 of the plain tiers.
  plain: tuple[int, ...] = (3, 5)
  # Sets that get a further column, and how many of each set of families; sets in which columns are exchanged, and how
  # often: a thousand sets take half a second of one core for 32 thousand columns.
  num_looked_at: int = 8192
  num_begun: int = 512
  starts_per_sum: int = 4
  num_exchanged: int = 96
  num_rounds: int = 3
  # Starts of the fit for a set of families.
  fits_per_sum: int = 2

  def __post_init__(self) -> None:
    check_counts(self, "max_size", "num_looked_at", "num_begun", "starts_per_sum", "num_exchanged", "fits_per_sum")


@dataclasses.dataclass(frozen=True)
class SubsetsInsideConfig(SubsetsConfig):
  """The same for functions of y and for y under monomials: shorter sums, shared out among turns of some two seconds."""

  turns: tuple[int, ...] = (128,) * 6
  max_size: int = 4
  plain: tuple[int, ...] = (5,)
  # The functions, of `LINKS`; the monomials: of two variables at most, the first set of exponents that makes no more of
  # one or of two, so many in all.
  links: tuple[str, ...] = ("inv", "sqrt", "exp", "ln", "pow2")
  max_multipliers: int = 12
  multiplier_powers: tuple[Exponents, ...] = ((1, -1), (1,))

  def __post_init__(self) -> None:
    super().__post_init__()
    check_names("links", self.links, LINKS)


@dataclasses.dataclass(frozen=True)
class GrowthConfig:
  """Formulas of the pool with one library column more."""

  # Formulas that are fitted in each turn.
  turns: tuple[int, ...] = (512, 512)
  # Share of y's variance that the best formula may leave: beyond, it may be noise, into which anything grows.
  most_left: float = 1e-4
  # Formulas that are grown in a turn: those that no shorter one beats, those that only these beat, ...; so many such
  # fronts, formulas of at most so many nodes. Twice as many, or fronts of each source apart, leave too few children for
  # each: two of the eight laws of one and two variables that growth alone finds were lost.
  num_seeds: int = 64
  num_fronts: int = 8
  max_nodes: int = 28
  # Directions in which a formula's constants and a factor and a summand outside of it move it: one with more is not
  # grown.
  max_directions: int = 12
  # Places of a formula that are looked at, the outer ones first; of the second front half of them, of the third a
  # third. Each takes as many products as the formula has constants.
  num_places: int = 12
  # Columns tried at each place: the best, and the best of each tier; and the least share of the squared residual that
  # one must promise to explain.
  num_per_place: int = 6
  num_per_tier: int = 2
  min_gain: float = 0.02
  # Nats for a node (as `SelectionConfig.nats_per_node`): a turn after one that did not shorten the description of the
  # data by so much makes nothing.
  nats_per_node: float = 2.0

  def __post_init__(self) -> None:
    check_counts(self, "num_seeds", "num_fronts", "max_directions", "num_places", "num_per_place", "num_per_tier")


@dataclasses.dataclass(frozen=True)
class RemaindersConfig:
  """What near formulas leave, as sums of plain columns."""

  # Formulas that are fitted in each turn: a leap of the error is among the first few. Turns are spread over the search
  # (`BudgetConfig.early`): each looks at what has been found since.
  turns: tuple[int, ...] = (32,) * 5
  # Formulas that are looked at in a turn, see `GrowthConfig`; of at most so many nodes, constants and places, the outer
  # ones first: of the second front half of them, of the third a third. A turn takes a tenth of a CPU second.
  num_seeds: int = 8
  num_fronts: int = 3
  max_nodes: int = 24
  # Share of y's variance that they may leave: what is farther off is no formula with a term left out.
  near: float = 0.01
  max_directions: int = 12
  num_places: int = 4
  # Columns: of these families of the library, of at most so many nodes and of whole and half numbers, the shortest.
  families: tuple[str, ...] = (
    "monomials", "functions_times_monomials", "exponentials", "trigonometric", "logarithms", "roots")
  column_nodes: int = 5
  max_columns: int = 256
  # The nearest pairs that a third column is looked for beside; the best of each size that are offered.
  num_pairs: int = 48
  num_kept: int = 3
  # Share of a column, squared, that others must leave of it.
  independent: float = 1e-6
  # Share of what a formula leaves, squared, that columns may leave: of noise three of 256 leave some nine tenths.
  most_left: float = 0.2
  # Nats for a node (as `SelectionConfig.nats_per_node`): what is fitted first.
  nats_per_node: float = 2.0

  def __post_init__(self) -> None:
    check_counts(self, "num_seeds", "num_fronts", "max_nodes", "max_directions", "num_places", "column_nodes",
                 "max_columns", "num_pairs", "num_kept")
    check_names("families", self.families, LIBRARY_FAMILIES)
