"""Tables with fewer columns: invariances of the target, by derivatives of a smooth function through the rows."""

import dataclasses

from symformer_jax.engine.config.names import LINKS, SOURCES, Exponents, check_counts, check_names

# Sources that may be asked of a table made of the user's.
OF_OTHER_TABLES = tuple(name for name in SOURCES if name not in ("reductions", "guesses", "transformer"))


@dataclasses.dataclass(frozen=True)
class SurrogateConfig:
  """Gaussian processes. Columns are in spreads, lengths and sizes in natural logarithms where they are bounded."""

  # Columns and targets above 0 whose largest value is so many times the least are taken in their logarithm.
  wide: float = 3.0
  # Steps of the marginal likelihood's ascent. From so many rows on they are taken with half of the rows, which takes a
  # seventh of the time, and a few more with all: of 97 formulas with 200 to 500 rows the same smaller tables but for
  # one, in two thirds of the time of the whole search for them.
  num_steps: int = 40
  least_halved: int = 160
  num_last_steps: int = 10
  # Where it begins: lengths; signal, slope and noise.
  start_length: float = 2.0
  start_sizes: tuple[float, float, float] = (3.0, 1.0, 1e-3)
  # Noise of less than 1e-5 of the spread leaves a matrix that double precision cannot invert.
  log_lengths: tuple[float, float] = (-2.3, 6.9)
  log_sizes: tuple[float, float] = (-6.9, 6.9)
  log_noise: tuple[float, float] = (-11.5, 0.0)

  def with_steps(self, num_steps: int) -> "SurrogateConfig":
    """The same in so many steps."""
    return dataclasses.replace(self, num_steps=num_steps)


@dataclasses.dataclass(frozen=True)
class NeighboursConfig:
  """Smaller tables that nearest neighbours tell of, where slopes tell of none, or not of all."""

  # Error of rows left out, the median, in spreads of y, above which slopes may have missed a change: of four columns
  # and more they often have where 224 rows tell a smooth function to no more than this.
  blurred: float = 1e-4
  # Numbers that a way may begin at or lead to, beside columns: a whole, also in percent.
  ends: tuple[float, ...] = (1.0, 100.0)
  # What y may be divided by: exponents of the columns of products of one, of two, of three, broken ones where all
  # values are above 0. Of nine columns these are 30 000 products, which take a third of a second.
  powers: tuple[Exponents, ...] = (
    (-4.0, -3.0, -2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0), (-3.0, -2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 3.0),
    (-2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 3.0))
  # Exponents of the columns that are joined with one, of two (besides their sum and difference) and of three; there are
  # three among so many columns at most.
  joined: tuple[Exponents, Exponents] = ((1.0, -1.0, 2.0, -2.0, 0.5, -0.5), (1.0, -1.0))
  max_columns_of_three: int = 6
  # What nearest rows may differ by, as a share of the variance of ranks, and as a share of that in all columns.
  most_rough: float = 0.2
  most_of_whole: float = 0.6
  # Tables that a smooth function is laid through at each step, and steps; what share of the typical error of rows left
  # out is left in the end.
  num_kept: int = 4
  num_steps: int = 3
  far_better: float = 0.5

  def __post_init__(self) -> None:
    check_counts(self, "num_kept", "num_steps", "max_columns_of_three")


@dataclasses.dataclass(frozen=True)
class CoordinatesConfig:
  """Two columns of which one makes way for a function of both."""

  # Sources that are asked of the table then, where it is one of fewer columns than the user's, and after how many turns
  # of the others: up to their exact fractions, or further. From the first on 1.5 s went into it, and of 58 published
  # formulas as many came too late as were gained.
  sources: tuple[str, ...] = ("closed_forms", "separable")
  num_turns_before: int = 20
  # Functions of y that may be sums of functions of one column each then.
  links: tuple[str, ...] = ("y", "exp")
  # Rows of the smooth functions that are compared, and steps of each: 1/200 s.
  num_rows: int = 72
  num_steps: int = 20
  # Errors of rows left out, in spreads of y: above the first of a function of both columns nothing is known; those of
  # a sum are so many times as large at most, or below the last, of one in the columns as they are up to the second:
  # of eight in other columns one is the nearest by chance.
  most_error: float = 0.03
  most_worse: float = 1.2
  far_better: float = 0.5
  fine: float = 1e-5
  # The largest logarithm of a power of one column whose exponent is the other.
  largest_exponent: float = 40.0

  def __post_init__(self) -> None:
    check_counts(self, "num_rows", "num_steps", "num_turns_before")
    check_names("links", self.links, LINKS)
    check_names("sources", self.sources, OF_OTHER_TABLES)


@dataclasses.dataclass(frozen=True)
class TriedChangesConfig:
  """Which changes of the columns are tried where slopes are known roughly, and what is asked of the table left."""

  # Sources that are asked of the smaller table, in the order of `registry.SOURCES`: those of exact data are of no use.
  sources: tuple[str, ...] = (
    "closed_forms", "short_forms", "oscillations", "rationals", "curve_fits", "two_constants", "curves",
    "single_index", "separable", "library", "fraction_pursuit", "product_units", "varying", "pairs", "pairs_inside",
    "triples", "ridges", "parts", "remainders", "replacements")
  # ... and in which, where y has errors, turns of some come first of a table of several columns, by source.
  first: tuple[tuple[str, int], ...] = (
    ("closed_forms", 1), ("product_units", 1), ("short_forms", 1), ("fraction_pursuit", 2), ("rationals", 1),
    ("library", 1), ("separable", 1))
  # Rows that smooth functions go through. Of 100 tables with errors of 1 % 48 came down rightly with 160, 51 with 224,
  # 52 with 256, in .37, .46 and .67 s, before half of the rows were weighed first.
  num_rows: int = 224
  # Exponents of a column that y is divided by, and of one that joins another as a factor.
  divisors: Exponents = (-3.0, -2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0, 3.0)
  factors: Exponents = (-3.0, -2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 3.0)
  # Numbers that a way may begin at or lead to, beside columns, y being a share of it.
  ends: tuple[float, ...] = (1.0, 100.0)
  # Columns at most that grow together, and with y. Changes, of those that slopes contradict least, whose tables are
  # weighed by half of the rows; of these the likeliest, which get so many steps of the marginal likelihood's ascent.
  # With six tables and eight steps as many came down rightly, in a third more time.
  max_scaled: int = 3
  num_weighed: int = 40
  num_tried: int = 4
  num_steps: int = 6
  # Errors of y, in standard deviations, from which on its logarithm is what is smooth, where that is the likelier.
  bend: float = 3.0
  # Nats that a node of what takes the place of columns, or is taken from y, costs: a table is likelier by more.
  # With 1 two of 190 tables less came down rightly.
  nats_per_node: float = 0.5
  # Above this share of the variance of y nothing is known. A term of a smaller share of y's spread is none.
  most_left: float = 0.5
  least_term: float = 0.03
  # Root mean square errors of rows left out, in spreads of y, below which the table that is left is asked of the
  # sources of exact ones: of errors of a hundredth of y's spread none has less, of 48 exact tables half have.
  least_noise: float = 5e-3
  surrogate: SurrogateConfig = SurrogateConfig(num_steps=25, start_sizes=(3.0, 1.0, 0.03))

  def __post_init__(self) -> None:
    check_counts(self, "num_rows", "num_weighed", "num_tried", "num_steps", "max_scaled")
    check_names("sources", self.sources, OF_OTHER_TABLES)
    check_names("first", [name for name, _ in self.first], OF_OTHER_TABLES)


@dataclasses.dataclass(frozen=True)
class TrendConfig:
  """Products of powers of columns that are terms beside a smooth function of the others."""

  # Exponents of one column, of two, of three.
  powers: tuple[Exponents, ...] = (
    (-4.0, -3.0, -2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0),
    (-4.0, -3.0, -2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0), (-2.0, -1.0, -0.5, 0.5, 1.0, 2.0))
  # Columns below which slopes, and exact sources, tell of such terms.
  least_columns: int = 3
  # Squared errors, over those of rows left out, of a function of the other columns with the term at most and without
  # it at least; the share of these that it takes away. In 22 tables of formulas that were looked at some term did:
  # about fifteen stood in the formula, and took .88 and more, the others came near it, and took .85 and more. Of those
  # that leave so many times the least the simplest.
  most_left: float = 1.2
  least_before: float = 5.0
  least_share: float = 0.85
  alike: float = 1.2
  # Variance of a constant beside the function, in variances of y.
  constant: float = 100.0
  # Digits of a factor that is taken for exact, and standard errors that it may be off.
  most_digits: int = 3
  most_off: float = 2.0

  def __post_init__(self) -> None:
    check_counts(self, "least_columns", "most_digits")


@dataclasses.dataclass(frozen=True)
class ReductionsConfig:
  """Changes of the columns that leave the target alone, and what is asked of the table that is left.

  Of changes that slopes tell of each error is a share: the median over rows of what a change leaves of the sizes that
  should cancel.
  """

  # Sources that are asked of the smaller table, in the order of `registry.SOURCES`.
  sources: tuple[str, ...] = (
    "closed_forms", "enumeration", "quadratics", "oscillations", "rationals", "curve_fits", "exact_fractions",
    "linked_fractions", "two_constants", "function_fractions", "curves", "inner_pairs", "wave_fractions",
    "single_index", "separable", "library", "exact_factors", "varying", "triples", "ridges", "parts", "remainders",
    "replacements", "transcendental_fractions")
  # ... and besides where slopes know it no better than this: of exact data most know it to some millionths, of y in
  # four digits to a hundred-thousandth at best. Then no formula is exact, and short ones are found by how near they
  # come.
  sources_if_rounded: tuple[str, ...] = ("short_forms",)
  rounded: float = 1e-5
  # Of a table of several columns the first turn of the one waits for all of the other: what `separable` knows to some
  # digits, in .3 to .5 s a table, `exact_factors`, which comes between, mostly knows to ten. Without it at all two of
  # 182 formulas were lost (docs/results/early_turns.md).
  waiting: tuple[str, str] = ("separable", "exact_fractions")
  # Formulas of the smaller table that come back after each of its turns, the best first.
  num_kept: int = 24
  # Rows that the smooth function goes through (time goes with the cube), and those there have to be for a column.
  num_rows: int = 224
  rows_per_column: int = 12
  max_columns: int = 9
  # Errors of rows left out, the median and the ninth tenth, in spreads of y, above which slopes say nothing: the latter
  # of its logarithm where that is the smoother. Where y is the same in most rows the median alone is small.
  most_error: float = 0.03
  most_left: float = 0.25
  # ... and below which a smaller table that slopes tell of is taken for right: of exact data all but few are, of y with
  # errors of a hundredth of its spread none. Above, errors of y may have led there, and changes are tried (`tried`).
  surely_known: float = 4e-3
  # Functions of a column that may be summed: powers, 0 for the logarithm. The plainer ones first.
  powers: tuple[float, ...] = (1.0, 0.0, 2.0, -1.0, 0.5, 3.0, -2.0, 1 / 3)
  # Where the sum of no two of these is sure, powers of any exponents are, if the signs of the slopes by two columns
  # agree, or differ, in this share of the rows.
  of_one_sign: float = 0.9
  # ... and exponents below this are of a logarithm: of 3 % noise came `exp(-127.5*x**(-0.008))`, which is x.
  least_exponent: float = 0.1
  # Columns and y at most in one change of scale; how often its rows are counted anew by what they leave.
  max_scaled: int = 4
  num_reweightings: int = 8
  # Shares: above the first a change is not looked at, of functions of y above the second; below the third the next is
  # looked for without a new fit. The second is no more than so many times the error of rows left out, in spreads of y,
  # and no less than the third: where that is 3e-6, x/z for `1.3 + y*(x/(1 + x))**z`, 9e-3, kept offsets from being
  # asked.
  tolerance: float = 0.03
  likely: float = 0.01
  sure: float = 1e-3
  times_error: float = 1000.0
  # Of several changes the simplest is taken whose error is at most so many times the least, or below `fine`; above
  # `sure` the second: where slopes are known to a thousandth, 20 times the error of a right change has wrong ones.
  times_least: float = 20.0
  times_rough: float = 2.0
  fine: float = 1e-5
  # Parts of a change smaller than this share of its largest do not count, but for one with which this share is left of
  # what is left without it: in most rows `1 - exp(-y*w/x)` is 1.
  least_part: float = 0.05
  needed_share: float = 0.1
  # A change stands where typical and large errors of rows left out are so many times as large at most. Tries of others.
  most_worse: tuple[float, float] = (2.0, 10.0)
  # ... or, after a change whose number is not simple, no larger than these: what slopes tell to some digits leaves so
  # much, and is fitted once more in the formulas that come back.
  fine_errors: tuple[float, float] = (2e-5, 1e-4)
  max_rejected: int = 3
  # Factors and exponents, and those of a change of scale, are whole numbers of these shares, the first that leaves
  # about as little as what the slopes say: so many times as much at most. It is no nearer by chance than this part of
  # a share: some thousandth is always near.
  denominators: tuple[int, ...] = (1, 2, 3, 4, 10, 100, 1000)
  power_denominators: tuple[int, ...] = (1, 2, 3, 4, 6)
  snapped_worse: float = 3.0
  least_chance: float = 0.1
  # Digits at most of a number with a unit that is taken for exact: 273.15 has five, and chance is near with more.
  most_digits: int = 5
  # Share above which a change with an offset, a base or a constant in it is none: with such a number more functions
  # come near. The largest logarithm of a power whose exponent is a column: what is larger is no column to search.
  most_shifted: float = 1e-3
  largest_exponent: float = 40.0
  # Functions of y of which a power of a column may be a factor, where it is none of y: y = exp(...), 1 - exp(...), ...
  links: tuple[str, ...] = ("exp", "complement_exp", "ln", "logit", "atan", "asin")
  # Logarithms stand for columns where polynomials, of the highest degree with so many rows, leave at most this share of
  # what they leave otherwise, of y or a function of it. Columns are above 0, by this ratio; so many at most.
  degrees: tuple[int, ...] = (2, 3)
  rows_share: float = 0.25
  shown_links: tuple[str, ...] = ("y", "exp", "inv")
  least_share: float = 0.01
  least_ratio: float = 1.3
  max_logarithms: int = 5
  surrogate: SurrogateConfig = SurrogateConfig()
  neighbours: NeighboursConfig = NeighboursConfig()
  trend: TrendConfig = TrendConfig()
  coordinates: CoordinatesConfig = CoordinatesConfig()
  tried: TriedChangesConfig = TriedChangesConfig()

  def __post_init__(self) -> None:
    check_counts(self, "num_kept", "num_rows", "rows_per_column", "max_columns", "max_scaled", "num_reweightings",
                 "max_rejected")
    for name in ("sources", "sources_if_rounded", "waiting"):
      check_names(name, getattr(self, name), OF_OTHER_TABLES)
    for name in ("links", "shown_links"):
      check_names(name, getattr(self, name), LINKS)
