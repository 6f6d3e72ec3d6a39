"""What steers the search: what is tried, how many of it, and where one choice gives way to another.

One frozen part for each room, all in `SearchConfig`. Functions take the part they need; the defaults are those of a
search. What guards the arithmetic alone (rounding, overflow, shapes to compile) stands where it is used. Variants are
files in configs/search, read by `commands.search_config`.
"""

from collections.abc import Sequence
import dataclasses
import math
from typing import Any, NamedTuple

from symformer_jax.errors import suggest

# Lowest, highest, and how many between them, evenly spaced in the logarithm.
Grid = tuple[float, float, int]
# Exponents of a variable in a monomial: of several such sets the first that makes few enough monomials is taken.
Exponents = tuple[float, ...]

# Families of columns (`sources.library.FAMILIES`) and of factors (`sources.products.FAMILIES`), functions of y
# (`sources.terms.LINKS`), ways to rewrite a formula (`selection.select.REWRITINGS`): what a config may name.
LIBRARY_FAMILIES = (
  "monomials", "squared_differences", "long_monomials", "functions_times_monomials", "waves_of_monomials",
  "exponentials", "occupancies", "arctangents", "trigonometric", "logarithms", "roots", "poles", "bent_functions",
  "waves", "decaying_waves", "peaks_and_steps", "products", "plane_waves")
PRODUCTS_FAMILIES = ("sums", "sums_with_waves", "exponentials", "distances", "functions")
LINKS = ("y", "inv", "ln", "exp", "sqrt", "sqrt_inv", "pow2", "pow3", "asin", "acos", "logit", "atan")
REWRITINGS = ("exponentials", "powers", "origins", "principal_phases", "unit_slopes", "unit_constants", "unit_factors",
              "single_waves", "vertices", "proper_fractions", "other_waves", "complements", "roots",
              "factors_of_exponentials", "joined_logarithms", "expanded", "distributed", "collected")
# How thoroughly sums of a column are searched: greedily; in all pairs; in longer sums, which of monomials are common.
TIERS = ("any", "basic", "monomial")
# Sources of candidates (`sources.registry.SOURCES`).
SOURCES = (
  "closed_forms", "guesses", "rationals", "library", "subsets", "varying", "pairs", "ridges", "subsets_inside",
  "transformer", "parts", "growth", "evolution")
# How long a search goes on (`BudgetConfig`).
EFFORTS = ("quick", "normal", "thorough")
# Ways to vary a formula (`sources.variation.KINDS`).
EDITS = ("crossover", "insert", "function", "point", "hoist", "delete", "constants")

_WIDE: Exponents = (-2, -1, 1, 2)
_PLAIN: Exponents = (-1, 1)


def _check_counts(config: Any, *names: str) -> None:
  """Refuses numbers of things below one."""
  for name in names:
    value = getattr(config, name)
    if not isinstance(value, int) or value < 1:
      raise ValueError(f"{name}: expected a whole number of at least 1, got {value!r}")


def _check_names(field: str, names: Sequence[str], known: tuple[str, ...]) -> None:
  for name in names:
    if name not in known:
      raise ValueError(f"{field}: unknown name {name!r}: {suggest(name, known)}")


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
    _check_counts(self, "round_samples", "later_samples", "starts_per_string", "value_points", "num_best")
    if self.later_samples < self.round_samples:
      raise ValueError(f"later_samples: expected at least round_samples, got {self.later_samples}")


@dataclasses.dataclass(frozen=True)
class ScalingConfig:
  """Which rows a model is shown, and in which units."""

  # From so many rows on, two more bags are worth their share of the samples.
  many_rows: int = 4096
  # Training points are drawn from boxes made of {-5, 0, 5} (SymFormer, sec. 3.3).
  box: float = 5.0
  # Below this the points fill less than a fifth of the box, and look to the model like a constant input.
  small_x: float = 1.0
  # RMS of y seen in training, roughly; outside it the model has met few formulas, and y is brought to the third.
  smallest_y: float = 0.05
  largest_y: float = 1000.0
  comfortable_y: float = 5.0
  # A column whose values span less than this share of the largest lies off to one side: years, for instance. It is
  # shown centred and begun at 0 as well, which divides the samples among two views more.
  far_x: float = 0.7
  # A target that varies by less than this share of its largest value: temperatures in kelvin, for instance.
  far_y: float = 0.2


@dataclasses.dataclass(frozen=True)
class LibraryConfig:
  """Columns: small functions of the variables, their inner constants on a grid.

  Grids are as fine as the fit that follows needs: a neighbour must lie in the basin of the right constant. Each column
  costs its place in every product of the pursuit; with one or two variables there are some 20 000.
  """

  # Columns of a data set that formulas are made of: of more the best are chosen (`engine.screening`). Monomials of 12
  # columns fill the library already.
  max_columns: int = 12
  # Which families there are, see `library.FAMILIES`.
  families: tuple[str, ...] = LIBRARY_FAMILIES
  # From so many variables on monomials of several, and functions times such, are columns as well: laws are mostly
  # products of powers there.
  min_many: int = 3
  # With more than this, functions of one or two alone and only the usual inner constants: grids for every variable
  # would not fit into memory.
  max_variables: int = 3
  # Exponents of one variable, and of each of two in a product.
  powers: Exponents = (-6, -5, -4, -3, -2.5, -2, -1.5, -1, -0.5, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8)
  paired_powers: Exponents = (-3, -2, -1.5, -1, -0.5, 0.5, 1, 1.5, 2, 3)
  # Arguments of functions, as powers of one variable; the first has the finest grid.
  argument_powers: Exponents = (1, 2, -1, 0.5, 3)
  # What a term may be multiplied by, as powers of a variable; of these the first few for functions of a power.
  outer_powers: Exponents = (1, -1, 2, -2, 0.5, 3)
  num_few_factors: int = 2
  # Quarter waves over the data, at most: of a variable, of one times a power, of other arguments, of each of two
  # variables, under a decay. 100 rows resolve some 100 half waves; more of the first serve data of many rows.
  num_waves: int = 400
  num_multiplied_waves: int = 40
  num_other_waves: int = 100
  num_plane_waves: int = 20
  num_decaying_waves: int = 100
  # Integer factors are what most formulas have, and poles are met by no grid but that of the right number.
  integers: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 5.0)
  # The usual rates of exponentials, and the usual summands in logarithms, roots and poles, beside the grids.
  usual_rates: tuple[float, ...] = (1.0, -1.0)
  usual_shifts: tuple[float, ...] = (0.0, 1.0, -1.0)
  # Exponents of exponentials over the data's range, and decays that go with waves.
  rates: Grid = (0.1, 50.0, 24)
  decays: Grid = (0.3, 20.0, 7)
  # Distances of poles and zeros from the data, in ranges; places of poles, peaks and steps within, evenly spaced; the
  # widths of the latter two.
  distances: Grid = (0.003, 5.0, 16)
  num_places: int = 20
  widths: Grid = (0.02, 1.0, 8)
  # Arguments of products of two functions: powers of a variable and multiples of it. Sums and products of two variables
  # are taken as they are.
  product_powers: Exponents = (1, 2, 3)
  product_factors: tuple[float, ...] = (2.0,)
  # Monomials of two of many variables: at most so many; their exponents, the first set that is small enough.
  max_pairs: int = 2000
  pair_powers: tuple[Exponents, ...] = ((-3, -2, -1, -0.5, 0.5, 1, 2, 3), _WIDE, _PLAIN, (1,))
  # Those of more variables: of how many at most, and at most so many of each size.
  max_monomial_size: int = 6
  max_long_monomials: int = 4000
  long_powers: tuple[Exponents, ...] = (_WIDE, _PLAIN)
  # Those that functions of many variables are multiplied by, likewise.
  max_multiplier_size: int = 3
  max_multipliers: int = 100
  multiplier_powers: tuple[Exponents, ...] = ((-1, -0.5, 0.5, 1, 2), (-1, 0.5, 1), _PLAIN, (1,))
  # These functions, with their inner factors: of one variable and, with at most so many variables, of products,
  # quotients and differences of two.
  many_functions: tuple[tuple[str, tuple[float, ...]], ...] = (
    ("sin", (1, 2, 0.5)), ("cos", (1, 2, 0.5)), ("exp", (1, -1)), ("ln", (1,)))
  max_paired_arguments: int = 5
  # Monomials that waves of all lengths are taken of: of how many variables, how many, and how many waves in all.
  max_angle_size: int = 3
  max_angles: int = 40
  angle_powers: tuple[Exponents, ...] = (_PLAIN,)
  num_many_waves: int = 2500

  def __post_init__(self) -> None:
    _check_counts(self, "max_columns")
    _check_names("families", self.families, LIBRARY_FAMILIES)


@dataclasses.dataclass(frozen=True)
class ProductsConfig:
  """Products of powers of many variables and of few other factors."""

  # Which families of factors there are, see `products.FAMILIES`; without any there are powers alone.
  families: tuple[str, ...] = PRODUCTS_FAMILIES
  # Factors beside the powers of the variables: laws with more are rare, and three of 50 000 fit much by chance.
  max_factors: int = 3
  # Columns of each kind, roughly: with more monomials fewer inner constants are tried.
  max_columns: int = 15_000
  # Monomials m of sums 1 + c*m: of how many variables, and how many of each size; their exponents, the first set that
  # is small enough; c, the likelier first.
  max_term_size: int = 4
  max_terms: int = 4000
  term_powers: tuple[Exponents, ...] = (_WIDE, _PLAIN)
  multiples: tuple[float, ...] = (1.0, 0.5, 2.0, 1 / 3, 3.0, 0.25, 4.0, 0.1, 10.0, 0.03, 30.0)
  # Monomials under an exponential, likewise.
  max_exponent_size: int = 6
  max_exponents: int = 4000
  exponent_powers: tuple[Exponents, ...] = (_WIDE, _PLAIN)
  # Differences of two variables over a third, at most; with more none is tried.
  max_distances: int = 400
  # Monomials that functions are taken of, likewise; those of the second exponents have inner constants on a grid as
  # well, and stand before waves in sums.
  max_argument_size: int = 4
  max_arguments: int = 700
  argument_powers: tuple[Exponents, ...] = ((-1, -0.5, 0.5, 1), _PLAIN)
  plain_powers: tuple[Exponents, ...] = (_PLAIN,)
  # Inner constants of functions: the usual ones, and some over the data's range, at most so many and at least the
  # second number.
  usual_rates: tuple[float, ...] = (1.0, 0.5, 2.0, 2 * math.pi)
  rates: Grid = (0.2, 20.0, 16)
  min_rates: int = 2
  # Firsts of three factors that are carried on, and of pairs of plain ones: of at most so many every pair is tried.
  num_first: int = 64
  num_paired: int = 3000
  # Pairs that are kept, and carried on: in single precision many are as good as the right one.
  num_pairs: int = 256
  # Of each number of factors and way to round exponents so many products are written out, those that describe log|y| in
  # the fewest nats, so many of them for each exponent.
  num_written: int = 48
  nats_per_exponent: float = 4.0
  # A column of which the powers of the variables leave a smaller share is one of them.
  independent: float = 1e-3
  # Exponents so near to a half number are meant to be one, and smaller ones none. Only what is written changes: the
  # form with the exponents as they fit competes too.
  near_half: float = 0.03
  no_exponent: float = 1e-3
  # Exponents of factors, exponentials apart: larger ones are no law.
  largest_exponent: float = 3.0
  # A variable is left out where the mean squared error of log|y| grows by less than this factor.
  max_loss: float = 1.3

  def __post_init__(self) -> None:
    _check_names("families", self.families, PRODUCTS_FAMILIES)


@dataclasses.dataclass(frozen=True)
class PursuitConfig:
  """The few columns of many whose sum fits a target best: how many sets of columns are carried along."""

  # Columns of a set.
  max_columns: int = 6
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
    _check_counts(self, "max_columns", "num_looked_at", "starts_per_pair")


@dataclasses.dataclass(frozen=True)
class SubsetsConfig:
  """Sums of few library columns, chosen by exchange."""

  # Formulas that are fitted in each turn.
  turns: tuple[int, ...] = (256,)
  # Terms of a sum.
  max_size: int = 5
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
    _check_counts(self, "max_size", "num_looked_at", "num_begun", "starts_per_sum", "num_exchanged", "fits_per_sum")


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
    _check_names("links", self.links, LINKS)


class SumSizes(NamedTuple):
  """Sums of so many arguments: how many, quarter waves over the range of each, directions."""

  num_sums: int
  num_phases: int
  num_directions: int


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
  argument_exponents: tuple[tuple[float, ...], ...] = ((1,), (1, 1), (2,), (1, -1), (-1,))
  amplitude_exponents: tuple[tuple[float, ...], ...] = ((1,), (-1,), (1, 1), (2,), (1, -1))
  max_amplitudes: int = 16
  # Columns, or terms of a formula of the pool, that may all stand beside a ridge. Such formulas: those that describe
  # the data best at so many nats a node, none of more nodes.
  max_beside: int = 5
  num_seeds: int = 1
  nats_per_node: float = 2.0
  max_seed_nodes: int = 24
  # Sums of one (whose directions are always two), of two, of three arguments: three are variables. A quarter of a wave
  # over the range of an argument is near enough for a fit to find the rest.
  sums: tuple[SumSizes, ...] = (SumSizes(32, 32, 2), SumSizes(128, 20, 16), SumSizes(16, 7, 64))
  # Of each function those whose inner constants are fitted, in so many steps: on the grid the right sum ranks up to
  # hundredth. Of one sum, with different amplitudes, so many go on.
  num_fitted: int = 256
  num_steps: int = 16
  num_per_sum: int = 2

  def __post_init__(self) -> None:
    _check_counts(self, "num_rows", "max_amplitudes", "num_fitted", "num_steps", "num_per_sum", "max_beside")
    _check_names("links", self.links, LINKS)
    if len(self.sums) > 3 or any(each[1] < 2 or each[2] < 2 or each[2] % 2 for each in self.sums):
      raise ValueError("sums: expected at most three sizes, each of at least 2 quarter waves and an even number of "
                       f"directions, got {self.sums!r}")


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
    _check_counts(self, "num_seeds", "num_fronts", "num_places", "num_per_place", "num_per_tier")


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
  links: tuple[str, ...] = LINKS
  # Whether products of powers of parts are tried: the logarithm of |y| as a sum of logarithms.
  use_products: bool = True
  # Longer sums of all columns are chosen by exchange (`SubsetsConfig`).
  searches: tuple[Search, ...] = (
    Search("any", 2, 64), Search("basic", 3, 128, 64), Search("monomial", 6, 4096, 256))
  # A formula whose error is a smaller share of y's variance is the law, and only the last search is made beside it.
  exact: float = 1e-22
  # Rows on which columns are selected: the products of the pursuit go with them.
  num_rows: int = 128
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
    _check_counts(self, "num_rows", "num_fitted", "points_per_part")
    _check_names("links", self.links, LINKS)
    searches = tuple(Search(*search) for search in self.searches)
    _check_names("searches", tuple(search.tier for search in searches), TIERS)
    object.__setattr__(self, "searches", searches)


@dataclasses.dataclass(frozen=True)
class RationalsConfig:
  """Rational functions of few terms."""

  # Functions of y that may be one, see `links.LINKS`; 1/y is one where y is.
  links: tuple[str, ...] = ("y", "sqrt")
  # Total degrees above and below the line, for one variable, two, three and more, as far as there are no more
  # monomials than so many; and the degrees in the root of a single variable, none to leave it out.
  degrees: tuple[tuple[int, int], ...] = ((6, 6), (3, 3), (3, 2), (2, 2))
  max_monomials: int = 21
  root_degrees: tuple[int, ...] = (4, 4)
  # Of at most so many variables also what is linear in a power of each, of these powers; with more choices than that
  # the same power of all.
  max_linear: int = 4
  linear_powers: tuple[int, ...] = (1, 2)
  max_choices: int = 8
  # Terms above and below the line together: longer fractions come near any smooth data. Rows for each constant.
  max_terms: int = 9
  rows_per_constant: int = 4
  # Every set of terms of a size is tried if there are at most so many, the best of them in full precision.
  max_sets: int = 1100
  num_small: int = 32
  # Sets of a size from which terms are left out, and how many are tried of each; sets of more terms than the third
  # number lose a quarter of them at once.
  num_beams: int = 16
  num_drops: int = 2
  max_single: int = 14
  # Fractions kept of each number of terms; steps that weigh rows by the denominator.
  num_kept: int = 3
  num_reweightings: int = 3
  # The best nested set stands for y where y has noise: steps of its fit, and sets in a row that are no better before
  # the larger ones are left out.
  num_steps: int = 4
  max_idle: int = 8
  # Share of y's variance below which a fraction may be exact; it is where it has less than this share of the error of
  # all with fewer terms. Without such a leap none is offered below the third share: approximations of other functions
  # would end the search. Of 30 laws the exact fraction had 1e-20 of the error before it, of 15 other functions none had
  # less than 1e-5.
  exact: float = 1e-18
  leap: float = 1e-10
  too_near: float = 1e-16
  # Lines between pairs of rows and points on each, where a denominator must not change its sign.
  num_segments: int = 256
  points_between: int = 4
  # Fractions that are written as sums. Of what degree numerators are for one variable, two and more, the later ones
  # where no sum with the earlier is exact; how many columns are summed; sums carried on of each size, and kept; what
  # must be left of a column that is no sum of others.
  num_taken_apart: int = 3
  sum_degrees: tuple[tuple[int, ...], ...] = ((3,), (2, 3), (2,))
  max_fractions: int = 6
  num_carried: int = 32
  num_sums: int = 4
  independent: float = 1e-6
  # Shares by which the roots in one variable may differ between rows and be one: of exact fractions, of others.
  equal_roots: float = 1e-5
  near_roots: float = 0.3
  # Formulas of a turn that are fitted.
  num_fitted: int = 48

  def __post_init__(self) -> None:
    _check_counts(self, "max_terms", "rows_per_constant", "num_small", "num_beams", "num_drops", "num_kept",
                  "num_fitted")
    _check_names("links", self.links, LINKS)


@dataclasses.dataclass(frozen=True)
class PoolConfig:
  """What is kept of all candidates on the way to the finalists."""

  # Rows on which candidates are fitted: more tell formulas apart that noise makes alike, and cost in proportion.
  fit_rows: int = 256
  # Candidates that are remembered: beyond so many half of them, the best, and the best of every complexity.
  capacity: int = 4096
  # Candidates whose parts are put together anew with columns of the library: the best of all other sources.
  num_donors: int = 512
  # Steps of the fit that a formula gets when it is made: first a few for all, then, for those that came nearest and the
  # nearest few of every complexity, enough for a right one. Sums that are wrong take all steps they are given.
  screen_steps: int = 8
  num_screened: int = 48
  num_screened_per_complexity: int = 4
  fit_steps: int = 40
  # A candidate whose error is a smaller share of y's variance meets the data to double precision, if there are so many
  # points for each of its constants; a search ends when a further turn finds no simpler one. Below the third share
  # single precision may have left the error: so many of the simplest are fitted in double precision at once.
  met: float = 1e-22
  points_per_constant: int = 4
  near: float = 1e-9
  num_sharpened: int = 8
  # Fits of one skeleton that go on: from poor starts they end in different places, or have not ended yet.
  fits_per_skeleton: int = 4
  # Candidates that go on to the last fit in the user's units: the best, and the best few of every complexity, at most
  # so many in all; and its steps. More steps than in the search: few formulas, and now every digit counts.
  num_best: int = 64
  num_per_complexity: int = 3
  num_finalists: int = 128
  polish_steps: int = 150
  # Candidates whose error is a smaller share of y's variance differ in what single precision left of their constants.
  exact: float = 1e-11
  # Finalists whose values agree to this share of y's spread are one formula, the simplest stands for it.
  equal_values: float = 1e-9

  def __post_init__(self) -> None:
    _check_counts(self, "fit_rows", "capacity", "num_donors", "screen_steps", "fit_steps", "polish_steps", "num_best",
                  "num_finalists", "points_per_constant")


# Without grids: functions are the factors' business.
_COARSE = LibraryConfig(
  families=("monomials", "exponentials", "logarithms"), max_variables=12, min_many=13, argument_powers=(1,),
  powers=(-2, -1, -0.5, 0.5, 1, 2, 3), paired_powers=(-2, -1, 1, 2), outer_powers=(), usual_shifts=(0.0,),
  rates=(1.0, 2.0, 0), distances=(1.0, 2.0, 0))


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
  library: LibraryConfig = _COARSE
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
  # Sums of library columns and fractions that are fitted to a factor, in so many steps; how thoroughly the former are
  # looked for; those that go on, at so many nats a node; and formulas of all factors together.
  searches: tuple[Search, ...] = (Search("any", 2, 32), Search("basic", 2, 64, 32), Search("monomial", 3, 64, 64))
  num_sums: int = 48
  rationals: RationalsConfig = RationalsConfig(
    links=("y",), degrees=((3, 3),) * 4, root_degrees=(), num_taken_apart=0, num_fitted=12)
  screen_steps: int = 16
  num_near: int = 16
  fit_steps: int = 48
  num_forms: int = 6
  fits_per_form: int = 2
  nats_per_node: float = 2.0
  # Mean square errors of the polynomials within which formulas agree with a factor: at the ends they err more.
  errors_of_polynomials: float = 10.0
  num_per_model: int = 24
  # Waves that a factor may be: eighths of a turn over the places at most, and how many are fitted.
  num_waves: int = 24
  num_fitted_waves: int = 4

  def __post_init__(self) -> None:
    _check_counts(self, "min_rows", "max_columns", "num_functions", "max_terms", "max_size", "num_models", "num_forms")
    _check_names("links", self.links, LINKS)


@dataclasses.dataclass(frozen=True)
class EvolutionConfig:
  """Formulas that are bred from those found (`sources.evolution`)."""

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
  # Tokens of a genome. With factors and constant it has 50 at most, fewer than programs hold.
  max_tokens: int = 24
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
    _check_counts(self, "generations", "num_children", "num_screened", "num_near", "screen_steps", "fit_steps",
                  "num_refitted", "refit_steps", "num_per_niche", "num_places", "layer_generations", "num_edits",
                  "num_pool", "num_terms", "num_library", "num_random", "random_nodes", "max_tries",
                  "max_remembered", "num_answers")
    if not 2 <= self.max_tokens <= 30:  # 30 have 15 terms: 62 tokens with what is added
      raise ValueError(f"max_tokens: expected 2 to 30, got {self.max_tokens!r}")
    _check_names("kinds", tuple(name for name, _ in self.kinds), EDITS)


@dataclasses.dataclass(frozen=True)
class BudgetConfig:
  """How a search goes on once every source has had its turns."""

  # Who is asked then, round and round; nobody without the first. What evolution has found is grown, and its parts are
  # put together, after every fourth turn: that takes as long as one.
  cycle: tuple[str, ...] = ("evolution",) * 4 + ("growth", "parts")
  # Sources that `quick` leaves out: what they find beside the others takes some seconds.
  quick_without: tuple[str, ...] = ("subsets", "varying", "pairs", "ridges", "subsets_inside", "growth")
  # Places of the cycle that are taken, by effort. Two take 2.2 to 2.7 CPU seconds, and in a process from nothing nine
  # more to compile; of nine formulas that were left to them they found one. Forty make a search about ten
  # times as long.
  quick: int = 0
  normal: int = 0
  thorough: int = 40

  def __post_init__(self) -> None:
    _check_names("cycle", self.cycle, SOURCES)
    _check_names("quick_without", self.quick_without, SOURCES)
    for effort in EFFORTS:
      if not isinstance(self.turns(effort), int) or self.turns(effort) < 0:
        raise ValueError(f"{effort}: expected a whole number of at least 0, got {self.turns(effort)!r}")

  def turns(self, effort: str) -> int:
    """Places of the cycle that are taken."""
    return {"quick": self.quick, "normal": self.normal, "thorough": self.thorough}[effort]


@dataclasses.dataclass(frozen=True)
class NoiseConfig:
  """When a search ends because the data are met to their noise; with `max_time` it never does."""

  # Who asked for more than these is given it.
  efforts: tuple[str, ...] = ("quick", "normal")
  # Turns that are taken before it may, by source; and those before it may with a formula of at most `short` nodes, of
  # which little can be spared: the library's other turns take three times as long as its first.
  asked: tuple[tuple[str, int], ...] = (("closed_forms", 1), ("guesses", 1), ("rationals", 1), ("library", 3))
  asked_if_short: tuple[tuple[str, int], ...] = (("closed_forms", 1), ("guesses", 1), ("rationals", 1), ("library", 1))
  short: int = 15
  # ... and with one of more than `long` nodes: it may meet the noise because the law has not been found. `exp(-y/x)*x`
  # with 2 % noise was a cube of 23 nodes before the ridges had their turns, which take as long as all before them.
  asked_if_long: tuple[tuple[str, int], ...] = (
    ("closed_forms", 1), ("guesses", 1), ("rationals", 1), ("library", 3), ("ridges", 2))
  long: int = 20
  # Nats of one node: two to name it, as in the selection, and two for having been found among many (`further_nats`).
  # At the first two alone it is three data sets in four of noise in proportion to a monomial whose shortest description
  # has a wave besides.
  nats_per_node: float = 4.0
  # Nats: a turn that shortens the shortest description by less has found nothing.
  gained: float = 1.0
  # The chance with which errors that are noise look like more (`engine.noise`), and the search goes on for nothing.
  chance: float = 0.02
  # Rows whose errors are looked at: more see a smaller rest.
  num_rows: int = 1024

  def __post_init__(self) -> None:
    _check_names("efforts", self.efforts, EFFORTS)
    for field in ("asked", "asked_if_short", "asked_if_long"):
      _check_names(field, [name for name, _ in getattr(self, field)], SOURCES)
    _check_counts(self, "num_rows")


@dataclasses.dataclass(frozen=True)
class SelectionConfig:
  """From finalists to the front: how long a formula may be for what it explains, and how round its constants."""

  # Rows on which finalists are compared; all rows score.
  max_rows: int = 4096
  # Rows that give what is listed its last digits and its standard errors: all of a million, some seconds a formula.
  last_rows: int = 1_000_000
  # Ways to rewrite a formula that are taken one after the other: `0.3*sqrt(x**2) + sin(x + 1.97)` needs two.
  max_rewritten: int = 3
  # Formulas that no simpler one beats, and so many of the shortest descriptions, are written in other ways.
  num_rewritten: int = 6
  # Nats to name one node. A uniform choice among the about 25 kinds would cost log 25 = 3.2; formulas are more regular:
  # a trained model needs 1.3 given the points (docs/design.md, decision 12). Higher prefers shorter formulas.
  nats_per_node: float = 2.0
  # Kurtosis of the errors above which they are not normal; mean squared errors that are nearly the least, as a multiple
  # of it.
  normal_kurtosis: float = 5.0
  nearly: float = 1.5
  # A longer formula must fit better by this share: less is within what rounding constants costs.
  min_gain: float = 0.01
  # Nats by which a formula more complex than the recommended one may describe the data worse: at odds of three million
  # to one it fits the noise.
  max_excess: float = 15.0
  # Formulas that get a variant with simple constants, and that are judged on all rows: each costs some milliseconds.
  num_chosen: int = 24
  # Other ways to write a formula, each tried, see `select.REWRITINGS`.
  rewritings: tuple[str, ...] = REWRITINGS
  # A whole or half number is offered in place of a constant within so many standard errors. Under a true simple value
  # 1 fit in 80 is further away than the first; real data are seldom as well-behaved as a standard error supposes,
  # so a wider reach is offered too, and description length decides.
  snap_errors: tuple[float, ...] = (2.5, 6.0)
  # The reach must stay below this share of the distance between simple values: near one by chance is no finding.
  snap_share: float = 0.25
  # Digits are dropped within this share of a standard error: the squared error then rises by at most
  # 0.01 sigma^2 a constant, a hundredth of what one data point contributes.
  digit_errors: float = 0.1
  # A fit below the resolution of float32 has no residual to speak of: the whole standard error, which then stands for
  # that resolution, is room.
  exact_digit_errors: float = 1.0
  # A constant is redundant where the squared error rises by less than this share of sigma^2 without it.
  redundant_share: float = 1e-3
  # Gauss-Newton steps of the constants left free when another is held: the start is nearly the optimum.
  num_refits: int = 3

  def __post_init__(self) -> None:
    _check_names("rewritings", self.rewritings, REWRITINGS)


@dataclasses.dataclass(frozen=True)
class ChoiceConfig:
  """Which formulas may be listed, and which is recommended where none meets the data exactly.

  Attributes:
    exact: share of y's variance left unexplained below which a formula meets the data exactly: then nothing is vetoed
      and description length alone decides. Data of six digits are met so well by their law, and by nothing else.
    points_between: looked at between neighbouring rows. A pole or a needle is found by a change of sign as well, so
      that few suffice.
    num_segments: pairs of rows between which formulas of several columns are looked at: neighbours, and as many
      pairs drawn at random. Thousands would find rarer faults and cost more than the fit.
    num_box_points: drawn in the box of several columns, besides its corners, to see whether a formula has a pole or no
      value where no row is. What a thousand points miss fills less than half a hundredth of the box.
    leap: how far beyond the range of y a formula may go between rows, as a multiple of that range. A peak between two
      rows may well be as high again as what was seen; what is more was seen by nobody.
    half_turn: radians that a wave may turn between neighbouring rows. Beyond it a slower wave has the same values on
      evenly spaced rows (Nyquist). Quarterly data of an honest year turn by pi/2.
    odd_nats: further price of a column in an exponent, as in `x**(0.03*z)`, of a wave of several columns, and of a
      pole between rows that the rows tell of, or in a corner of their box: odds of a million to one. One textbook law
      of 36 has such a wave and none such an exponent; exact data repay the price with a digit, a hundred rows with a
      quarter of the error.
    odd_gain: factor by which each of these must lessen the squared error of rows not seen besides, or three thousand
      rows have `cos(4200*x/(y*z))` for three thousandths of the variance.
    nats_per_node: price of a node where the error is that of rows not seen, which pays for constants itself. A trained
      model needs 1.3 for a node given the points (docs/design.md, decision 12); from 0.9 to 1.1 the sets of
      docs/results/real.md that may be looked at get the same figures, at 0.5 and 1.5 worse ones.
    num_folds: of cross-validation; five, as Breiman and Spector (1992) recommend.
    max_rows: of cross-validation. Its standard error is then below 5 %, and it takes no longer than the rounding.
    worthwhile_r2: cross-validated R2 from which a formula is preferred to a bare mean: what a trial with 91 data
      sets found to lose nothing.
    sign_errors: standard errors by which the share of unseen rows that a formula predicts better than the mean must be
      above a half, where mean squares prefer the mean: four leave one chance in thirty thousand (the sign test).
    line_room: share of the variance by which a formula may predict rows not seen worse than a straight line of all
      columns or of some: half of what `evaluation/real_faults.py` counts as a fault.
    noise_share: of data sets of pure noise that may get anything but a constant.
    chance_nats: logarithm of how many formulas are looked at for each node that they are longer. Of noise, pools of 370
      functions and their pairs need 0.5; from 0.5 to 1 the sets that may be looked at lose nothing in R2, and answers
      get shorter (12, 10 and 9 nodes).
    further_nats: the same where the simpler formula is one already: a term is added to it out of ten thousand columns
      with inner constants of their own, under eight functions of y. At 0.75 one law in five under 3 % noise got a wave
      besides; at 2 a second column that matters was left out of one real table in eight (docs/results/real.md).
    line_share: part of `noise_share` granted to the straight line, the formula that needs no search.
    simple_share, simple_factor: the `simple` line may leave so much of the variance unexplained, or so many times what
      the recommended one leaves: what the eye does not see in a plot.
  """

  exact: float = 1e-12
  points_between: int = 8
  num_segments: int = 256
  num_box_points: int = 1000
  leap: float = 1.0
  half_turn: float = math.pi
  odd_nats: float = 14.0
  odd_gain: float = 1.5
  nats_per_node: float = 1.0
  num_folds: int = 5
  max_rows: int = 1024
  worthwhile_r2: float = 0.1
  sign_errors: float = 4.0
  line_room: float = 0.01
  noise_share: float = 0.05
  chance_nats: float = 0.75
  further_nats: float = 1.25
  line_share: float = 0.02
  simple_share: float = 0.01
  simple_factor: float = 2.0


@dataclasses.dataclass(frozen=True)
class LossConfig:
  """How losses other than squares become weights of rows (`selection.losses`).

  Attributes:
    sources: of the first look that log, huber and auto take: those that need no model and take a second or two.
    num_fitted: formulas of a first look, the shortest descriptions, that are fitted under the weights they give.
    num_turns: fits of a formula, each under the weights of the one before; a dozen leave constants to four digits.
    nats_per_node: price of a node of the formula that weights are found around, as `SelectionConfig.nats_per_node`.
    log_reach: factor between formula and y beyond which the logarithm is cut: what is as far from y says nothing of
      small errors, and a row of the wrong sign must not weigh without bound.
    huber_errors: robust standard errors from which on errors count less: 95 % of the efficiency of least squares where
      errors are normal (Huber 1964); huber_gross: from which on an error adds no more, whatever its size.
    min_rows: fewer do not tell how errors grow; max_growth: largest exponent of |y| that is looked at.
    growth_nats: evidence that errors grow at all: odds of twenty to one; simple_nats: what an exponent of 1 or 1/2 may
      be less likely than the best one and be taken for it.
    smallest_share: share of the rows whose |y| counts as larger than it is: where y passes 0, errors do not vanish.
  """

  sources: tuple[str, ...] = ("closed_forms", "guesses", "library")
  num_fitted: int = 8
  num_turns: int = 12
  nats_per_node: float = 2.0
  log_reach: float = 30.0
  huber_errors: float = 1.345
  huber_gross: float = 3.0
  min_rows: int = 20
  max_growth: float = 2.0
  growth_nats: float = 3.0
  simple_nats: float = 1.0
  smallest_share: float = 0.05

  def __post_init__(self) -> None:
    _check_counts(self, "num_fitted", "num_turns", "min_rows")
    _check_names("sources", self.sources, SOURCES)


@dataclasses.dataclass(frozen=True)
class SearchConfig:
  """All that steers a search. Hashable: a search is a function of data, model, options and this."""

  # Which sources there are, see `sources.registry.SOURCES`; they are asked in that table's order.
  sources: tuple[str, ...] = SOURCES
  transformer: TransformerConfig = TransformerConfig()
  scaling: ScalingConfig = ScalingConfig()
  library: LibraryConfig = LibraryConfig()
  products: ProductsConfig = ProductsConfig()
  pursuit: PursuitConfig = PursuitConfig()
  pairs: PairsConfig = PairsConfig()
  subsets: SubsetsConfig = SubsetsConfig()
  subsets_inside: SubsetsInsideConfig = SubsetsInsideConfig()
  varying: VaryingConfig = VaryingConfig()
  ridges: RidgesConfig = RidgesConfig()
  growth: GrowthConfig = GrowthConfig()
  terms: TermsConfig = TermsConfig()
  rationals: RationalsConfig = RationalsConfig()
  evolution: EvolutionConfig = EvolutionConfig()
  budget: BudgetConfig = BudgetConfig()
  noise: NoiseConfig = NoiseConfig()
  pool: PoolConfig = PoolConfig()
  selection: SelectionConfig = SelectionConfig()
  choice: ChoiceConfig = ChoiceConfig()
  loss: LossConfig = LossConfig()

  def __post_init__(self) -> None:
    _check_names("sources", self.sources, SOURCES)


# Functions take their parts of this where none are given.
DEFAULT = SearchConfig()
