"""Unknown functions: of a sum of monomials (ridges), as factors of terms (varying), of one column each (separable)."""

import dataclasses
from typing import NamedTuple

from symformer_jax.engine.config.columns import COARSE_LIBRARY, LibraryConfig
from symformer_jax.engine.config.names import (
  FUNCTIONS,
  INNER_FUNCTIONS,
  LIBRARY_FAMILIES,
  LINKS,
  SOURCES,
  Exponents,
  Grid,
  check_counts,
  check_names,
)
from symformer_jax.engine.config.rationals import RationalsConfig
from symformer_jax.engine.config.sums import Search
from symformer_jax.errors import InputError


class SumSizes(NamedTuple):
  """Sums of so many arguments: how many, quarter waves over the range of each, directions."""

  num_sums: int
  num_phases: int
  num_directions: int


@dataclasses.dataclass(frozen=True)
class RidgeGrids:
  """Inner constants p and q of f(p*sum + q), the sum from 0 to 1 over the rows: near enough for a fit to find the rest.
  """

  # Ways that a sum goes on beyond the data before it is 0, in ranges: of logarithms, roots and poles.
  away: tuple[float, ...] = (0.01, 0.07, 0.3, 1.5)
  # Centres and widths of steps and peaks, in ranges.
  centres: tuple[float, ...] = (0.0, 0.33, 0.67, 1.0)
  widths: tuple[float, ...] = (0.07, 0.2, 0.6)
  # Rates of exponentials a range.
  rates: tuple[float, ...] = (0.7, 2.0, 5.0, 12.0)
  # p, and q, of inverse logarithms, whose pole is at 1, and of occupancies, whose pole is at 0.
  logarithm_factors: tuple[float, ...] = (0.5, 2.0, 8.0)
  logarithm_offsets: tuple[float, ...] = (1.1, 2.0)
  occupancy_factors: tuple[float, ...] = (1.0, 3.0, 8.0)
  occupancy_offsets: tuple[float, ...] = (0.05, 0.5)
  # Largest arguments of arcsines and of tangents, the smallest their opposites.
  arcsine_ends: tuple[float, ...] = (0.5, 0.9, 0.999)
  tangent_ends: tuple[float, ...] = (0.6, 1.0, 1.4)


@dataclasses.dataclass(frozen=True)
class RidgesConfig:
  """Functions of sums of monomials."""

  # Formulas that are fitted in each turn: for y; for functions of y.
  turns: tuple[int, ...] = (128, 128)
  # Functions of y, of `LINKS`.
  links: tuple[str, ...] = ("y", "inv", "exp", "sqrt")
  # Rows on which they are chosen: time goes with them.
  num_rows: int = 128
  # Exponents of the monomials that are summed, and of those that multiply, in the order they are tried; of two
  # variables each way round.
  argument_exponents: tuple[tuple[float, ...], ...] = ((1,), (1, 1), (2,), (1, -1), (-1,), (3,), (0.5,))
  amplitude_exponents: tuple[tuple[float, ...], ...] = ((1,), (-1,), (1, 1), (2,), (1, -1))
  max_amplitudes: int = 16
  # A monomial of negative exponents whose values differ by more in size has a pole as good as between the rows.
  largest_ratio: float = 1e4
  # Constants of the shortest formulas, such as a*log(x + b*y): with points for fewer none is worth its search.
  min_constants: int = 2
  # Columns, or terms of a formula of the pool, that may all stand beside a ridge. Such formulas: those that describe
  # the data best at so many nats a node, none of more nodes.
  max_beside: int = 5
  num_seeds: int = 1
  nats_per_node: float = 2.0
  max_seed_nodes: int = 24
  # Sums of one (whose directions are always two), of two, of three arguments: three are variables. A quarter of a wave
  # over the range of an argument is near enough for a fit to find the rest.
  sums: tuple[SumSizes, ...] = (SumSizes(32, 32, 2), SumSizes(128, 20, 16), SumSizes(16, 7, 64))
  grids: RidgeGrids = RidgeGrids()
  # Of each function those whose inner constants are fitted, in so many steps: on the grid the right sum ranks up to
  # hundredth. Of one sum, with different amplitudes, so many go on.
  num_fitted: int = 256
  num_steps: int = 16
  num_per_sum: int = 2
  # Starts of a fit for each sum and amplitude: a steep step and a gentle one are different optima.
  starts_per_sum: int = 2

  def __post_init__(self) -> None:
    check_counts(self, "num_rows", "max_amplitudes", "num_fitted", "num_steps", "num_per_sum", "starts_per_sum",
                 "max_beside")
    check_names("links", self.links, LINKS)
    if len(self.sums) > 3 or any(each[1] < 2 or each[2] < 2 or each[2] % 2 for each in self.sums):
      raise InputError("sums: expected at most three sizes, each of at least 2 quarter waves and an even number of "
                       f"directions, got {self.sums!r}")


@dataclasses.dataclass(frozen=True)
class CurvesConfig:
  """Of one column, a power times a function of a multiple of another power."""

  # Formulas that are fitted.
  turns: tuple[int, ...] = (360,)
  # Functions of y, of `LINKS`.
  links: tuple[str, ...] = ("y", "inv", "exp", "sqrt")
  # Rows on which they are chosen.
  num_rows: int = 64
  # Of the argument's power: a fit finds what lies between. Of the factor's beside 0.
  exponents: tuple[float, ...] = (
    1, -1, 2, -2, 0.5, -0.5, 3, -3, 1.5, -1.5, 0.25, -0.25, 0.75, -0.75, 1.25, -1.25, 2.5, -2.5, 4, -4, 5, 6,
    1 / 3, -1 / 3, 2 / 3, -2 / 3)
  amplitudes: tuple[float, ...] = (1, -1, 2, -2, 0.5, -0.5, 3, -3, 1 / 3, -1 / 3, 2 / 3, -2 / 3)
  # A power whose largest size is so many times the typical one has a pole as good as among the rows.
  largest_ratio: float = 1e6
  # Factors of an argument whose largest size is 1: lowest, highest, how many, and their opposites; of waves so many
  # eighths of a turn; of arcsines, which are odd, these.
  factors: Grid = (0.1, 400.0, 28)
  num_phases: int = 48
  bounded: tuple[float, ...] = (0.25, 0.5, 0.7, 0.85, 0.95, 0.99)
  # What exponents are moved by where curves with constants between those of the grid are looked at (`curves.spans`): a
  # quarter of the usual step.
  half_exponent: float = 0.06
  # Of each curve alone; with a factor or a line beside it; with both: so many with a whole exponent, as many with
  # another one. Formulas for y, and for each function of y.
  num_alike: tuple[int, int, int] = (3, 1, 1)
  num_plain: int = 240
  num_inside: int = 40

  def __post_init__(self) -> None:
    check_counts(self, "num_rows", "num_phases", "num_plain", "num_inside")
    check_names("links", self.links, LINKS)


@dataclasses.dataclass(frozen=True)
class WaveFractionsConfig:
  """Fractions of a wave and a constant by a wave and a constant."""

  # Formulas that are fitted in each turn: with phases that are multiples of one monomial; sums of two.
  turns: tuple[int, ...] = (24, 24)
  # Rows on which they are chosen, and for each constant of an equation at least.
  num_rows: int = 128
  rows_per_constant: int = 4
  # Of one column, of two, of more: exponents of the monomials of one column, of two, ... that phases are multiples of,
  # the first so many, with which time goes; of those that are summed, the first so many pairs; of the factors beside 1,
  # for phases of one or two columns.
  arguments: tuple[tuple[Exponents, ...], ...] = (
    ((1, 2, -1, 0.5, -2, 3, -0.5, 1.5, -3, 4),), ((1, 2, -1, 0.5, 3, -2), (1, -1)),
    ((1, 2, -1), (1, -1), (1, -1), (1, -1)))
  max_arguments: int = 96
  summed: tuple[tuple[Exponents, ...], ...] = (((1, 2, -1, 0.5, 3),), ((1, 2), (1,)), ((1,), (1,)))
  num_pairs: int = 15
  factors: tuple[tuple[Exponents, ...], ...] = (
    ((1, -1, 2, 0.5, -2, -0.5, 3, -3),), ((1, -1, 2), (1, -1)), ((1, -1),))
  # Of a single column: functions that are arguments and factors; waves that are both, as factors times these powers.
  functions: tuple[str, ...] = ("ln", "exp")
  waves: tuple[str, ...] = ("cos", "sin")
  beside_waves: tuple[float, ...] = (0, 1, -1)
  # Frequencies: radians from one to the next over the range of so many rows, and how many of a column and of another
  # monomial; the same of each of two. A phase that turns less than the least over half of the rows makes a power, not a
  # wave. Rows at random know a wave of which they see less than one in a period.
  step: float = 0.8
  num_phases: tuple[int, int] = (768, 128)
  step_of_sums: float = 1.0
  num_phases_of_sums: int = 32
  most_rows: float = 0.9
  least_phase: float = 2.2
  # What a minimum may leave of what is typical of so many frequencies on each side, on the grid and once it is fitted:
  # the right ones of 15 laws left at most .2 and 1e-18, slow waves through smooth functions 4e-6 and more.
  num_around: int = 4
  dip: float = 0.5
  leap: float = 0.02
  # Minima whose frequencies are fitted, of one and of two, to so small a share of a step; of two in so many looks.
  num_fitted: tuple[int, int] = (32, 8)
  tolerance: float = 1e-12
  max_looks: int = 200
  # Shares of each other at which two sizes may be the same, or one of them 0: both forms are fitted.
  nearly: float = 0.05

  def __post_init__(self) -> None:
    check_counts(self, "num_rows", "rows_per_constant", "max_arguments", "num_pairs", "num_phases_of_sums",
                 "num_around", "max_looks")
    check_names("functions", self.functions, INNER_FUNCTIONS)
    check_names("waves", self.waves, INNER_FUNCTIONS)


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
class WaveProductsConfig:
  """Waves and tangents of products of powers of several columns."""

  # Draws of as many rows as there are unknowns: where six rows in ten are right, six of a thousand draws of ten are. Of
  # more columns than this none would be.
  num_draws: int = 1024
  max_columns: int = 12
  # What agrees, of the logarithm of an argument: exactly; under noise, which is large where the argument is small. Rows
  # that have to, for each unknown, and as a share of all.
  tolerances: tuple[float, ...] = (0.01, 0.1)
  least_shares: tuple[float, ...] = (0.25, 0.5)
  rows_per_unknown: int = 4
  # Exponents that are as near to a fraction of one of these denominators are that fraction.
  nearly: tuple[float, ...] = (0.01, 0.06)
  denominators: tuple[int, ...] = (1, 2, 3)

  def __post_init__(self) -> None:
    check_counts(self, "num_draws", "max_columns", "rows_per_unknown")


@dataclasses.dataclass(frozen=True)
class WaveSumsConfig:
  """Waves of sums of two functions of the columns."""

  # Rows that are looked at; with fewer than the second number some of so many waves come near by chance. Of more
  # columns than the third the pairs that are tried would be of columns and products alone.
  num_rows: int = 256
  min_rows: int = 40
  max_columns: int = 6
  # Functions that are summed, in this order, the columns first: powers of one, products of two by their exponents,
  # further powers, functions of one by their operators, the outer one last, and further products.
  plain_powers: tuple[float, ...] = (2.0, -1.0)
  products: tuple[tuple[float, float], ...] = ((1.0, 1.0), (1.0, -1.0))
  powers: tuple[float, ...] = (0.5, 3.0, -2.0, -0.5)
  functions: tuple[tuple[str, ...], ...] = (("ln",), ("exp",), ("ln", "inv"), ("exp", "inv"))
  further_products: tuple[tuple[float, float], ...] = ((2.0, 1.0), (2.0, -1.0))
  # What may multiply a wave besides 1, as waves of laws mostly are: powers of a column.
  amplitudes: tuple[float, ...] = (1.0, -1.0)
  # Pairs that are tried, the plainest first.
  max_pairs: int = 700
  # From one frequency to the next a wave turns by so many radians over all rows but the lowest and the highest, this
  # share of them each: halfway between two frequencies a row is out of phase by .75 at most for either function, and
  # most of what a wave explains is seen.
  radians: float = 1.5
  edges: float = 0.1
  # Frequencies of each function, as many below 0 of the second: the first number with which rows times amplitudes times
  # pairs of functions and of frequencies are at most so many, .1 to .4 s on one core.
  num_frequencies: tuple[int, ...] = (40, 24, 12)
  max_work: float = 8e8
  # Also these frequencies, of laws without units, with which a cube may turn faster.
  simple: tuple[float, ...] = (1.0, 2.0, 3.0)
  # Waves that are followed: of `cos(y - x/y)` the right one was the third on the grid. Steps of half a frequency, which
  # shrink by the last number where none leads upwards: to 1e-5 of one after so many.
  num_followed: int = 48
  num_steps: int = 16
  narrowing: float = 2.5

  def __post_init__(self) -> None:
    check_counts(self, "num_rows", "min_rows", "max_columns", "num_followed", "num_steps")
    check_names("functions", [token for tokens in self.functions for token in tokens], ("inv", *FUNCTIONS))
    if not self.num_frequencies:
      raise InputError("num_frequencies: expected at least one number")
    if not 0 <= self.edges < 0.5:
      raise InputError(f"edges: expected a share of at least 0, below a half, got {self.edges}")


@dataclasses.dataclass(frozen=True)
class PhasesConfig:
  """Waves and tangents of any function of one column, of products of powers of several, of sums of two functions."""

  # Formulas that are fitted in each turn: of arguments that go through more than half a turn; of the others.
  turns: tuple[int, ...] = (24, 24)
  # Functions of y, of `LINKS`, that may be a wave, and powers of the column that may multiply one; waves.
  links: tuple[str, ...] = ("y", "pow3")
  powers: tuple[float, ...] = (1.0, -1.0)
  tokens: tuple[str, ...] = ("cos", "tan")
  # Rows that a stretch has at least, of all and without those that are nearer to the one before than half the median
  # gap: of 80 arguments of eight kinds 71 come back with all rows and 72 without, under noise of .002 29 and 60; fast
  # ones need all. Columns that are tried.
  min_rows: int = 16
  least_gaps: tuple[float, ...] = (0.0, 0.5)
  max_columns: int = 6
  # A wave is as large as its values where half of its turns come as near to the ends, a share of the range; nearer to 1
  # than this it is 1.
  most_apart: float = 0.1
  full: float = 0.98
  # Places where a stretch begins, and ways that are followed at once. It ends where what leads to the next row is
  # missed by so many radians, in the mean of three.
  num_starts: int = 4
  num_beams: int = 8
  ends: float = 0.5
  # Spread of the principal values, radians, of an argument that goes through half a turn; of one within it, what its
  # neighbours may differ by as a share of its variance (von Neumann's ratio, 1 where there is no order).
  least_spread: float = 2.3
  most_uneven: float = 0.3
  # What cubics through neighbours may miss an argument of half a turn and more by, radians, of less in proportion: the
  # right ones of 12 formulas at most .005 (one .028), wrong ones .0005 (a mirror image) and more, most above .01.
  most_rough: float = 0.03
  # Arguments for which formulas are looked for.
  num_kept: int = 3
  forms: FormsConfig = FormsConfig()
  products: WaveProductsConfig = WaveProductsConfig()
  sums: WaveSumsConfig = WaveSumsConfig()

  def __post_init__(self) -> None:
    check_counts(self, "min_rows", "max_columns", "num_starts", "num_beams", "num_kept")
    check_names("links", self.links, LINKS)
    check_names("tokens", self.tokens, ("cos", "tan"))


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
  # those that may be a product of a function of each column and a constant beside it, in both turns; and share of the
  # variance that it leaves at most. Where y has poles no smooth function tells what divides it.
  plain_links: tuple[str, ...] = ("y", "exp", "inv", "sqrt")
  plain_divisor_powers: tuple[float, ...] = (1.0, -1.0, 2.0, -2.0)
  lone_links: tuple[str, ...] = ("y",)
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
    for name in ("links", "plain_links", "lone_links", "divided_links", "pair_links", "product_links", "added_links",
                 "overlapping_links"):
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
