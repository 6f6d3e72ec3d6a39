"""Rational functions."""

import dataclasses

from symformer_jax.engine.config.names import (
  FUNCTION_FAMILIES,
  LINK_FAMILIES,
  LINKS,
  VIEW_FUNCTIONS,
  check_counts,
  check_names,
)
from symformer_jax.errors import InputError


@dataclasses.dataclass(frozen=True)
class FactoringConfig:
  """Which coefficients are ratios of short numbers."""

  # The largest denominator of a ratio; digits of a decimal; the share that a coefficient may miss: of a null vector's
  # coefficients of 1e-8 of the largest nine digits were right.
  max_denominator: int = 1000
  num_digits: int = 7
  missed: float = 2e-9

  def __post_init__(self) -> None:
    check_counts(self, "max_denominator", "num_digits")


@dataclasses.dataclass(frozen=True)
class RationalsConfig:
  """Rational functions of few terms."""

  # Functions of y that may be one, see `links.LINKS`; 1/y is one where y is.
  links: tuple[str, ...] = ("y", "sqrt", "exp", "ln", "atan")
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
  # The degree in one variable of what is linear in the others: x**4/(y - 2) + 3 is such a law. Each of two such bases
  # takes 20 milliseconds; of more than four variables there are too many monomials.
  one_degree: int = 4
  # Terms above and below the line together: longer fractions come near any smooth data. Rows for each constant.
  max_terms: int = 9
  rows_per_constant: int = 4
  # Every set of terms of a size is tried if there are at most so many, the best of them in full precision.
  max_sets: int = 1100
  num_small: int = 32
  # Rows on which all small sets are compared.
  num_rough_rows: int = 48
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
  # Ways to come by one set of columns that are looked at, on average.
  looks_per_set: int = 4
  # Shares by which the roots in one variable may differ between rows and be one: of exact fractions, of others.
  equal_roots: float = 1e-5
  near_roots: float = 0.3
  # Rows at which roots in one variable are looked for: those of a factor are the same at all of them.
  num_root_rows: int = 5
  # Small multiples, up to this one, that make a fraction's coefficients whole, and the share by which a number may miss
  # a simple one.
  max_multiple: int = 10
  missed: float = 1e-9
  # Formulas of a turn that are fitted; terms from which on an exact fraction is factored by SymPy, whose import takes a
  # third of a second.
  num_fitted: int = 48
  least_factored: int = 4
  factoring: FactoringConfig = FactoringConfig()

  def __post_init__(self) -> None:
    check_counts(self, "one_degree", "max_terms", "rows_per_constant", "num_small", "num_rough_rows", "num_beams",
                 "num_drops", "num_kept", "looks_per_set", "num_root_rows", "max_multiple", "num_fitted")
    check_names("links", self.links, LINKS)


@dataclasses.dataclass(frozen=True)
class EliminationConfig:
  """Which terms of a linear equation between columns are needed (`sources.fractions.null_vectors`)."""

  # What a combination of unit columns may leave, as a share of the largest singular value: of exact data rounding, of
  # tables with six digits a millionth. By what factor it may rise with each term that is left out; how many are left.
  vanishing: float = 1e-4
  kept_share: float = 3.0
  max_terms: int = 12
  # What is left is a smaller share than this of what is left without any one term: the terms of an approximation each
  # lessen it a little. The first where nothing but rounding is left, which would end the search.
  leaps: tuple[float, float] = (1e-5, 1e-2)
  exact: float = 1e-11

  def leap(self, left: float) -> float:
    return self.leaps[0] if left < self.exact else self.leaps[1]


@dataclasses.dataclass(frozen=True)
class ViewsConfig:
  """Functions of columns (`sources.fractions.views.FUNCTIONS`) of which a fraction may be: of columns, and of products
  of two.
  """

  functions: tuple[str, ...] = VIEW_FUNCTIONS
  product_functions: tuple[str, ...] = ("exponentials", "cosines", "sines", "roots", "logarithms")
  # Whether there are powers of one column, and of 1 + and 1 - it, to another.
  has_powers: bool = True
  # Whether there are logarithms of all columns and of what they leave of 1, where they may be shares of a whole.
  has_shares: bool = False

  def __post_init__(self) -> None:
    check_names("functions", self.functions, VIEW_FUNCTIONS)
    check_names("product_functions", self.product_functions, VIEW_FUNCTIONS)


@dataclasses.dataclass(frozen=True)
class FunctionFractionsConfig:
  """Fractions in one function with one inner constant (`sources.fractions.function_fractions`)."""

  # Formulas that are fitted in each turn.
  turns: tuple[int, ...] = (8,)
  # Functions of y that may be such a fraction. The first is tried with every basis, others with the first so many.
  links: tuple[str, ...] = ("y", "sqrt")
  num_bases_of_links: int = 4
  # Rows on which the constant is looked for, and those there have to be for each term.
  num_rows: int = 112
  rows_per_term: int = 4
  # Of one column, of two, of more: total degrees in the columns above and below the line, degree in the function, and
  # steps of the exponents. Roots of columns stand beside functions of others. Small ones first: in a basis that the law
  # fills hardly all constants leave little.
  degrees: tuple[tuple[tuple[int, int, int, float], ...], ...] = (
    ((1, 0, 1, 1), (0, 0, 2, 1), (2, 0, 1, 1), (1, 1, 1, 1), (0, 0, 3, 1), (3, 0, 1, 1), (2, 1, 1, 1), (3, 1, 1, 1),
     (1, 0, 2, 1), (1, 1, 2, 1), (2, 1, 2, 1), (0, 3, 1, 1), (3, 2, 1, 1), (4, 0, 1, 1)),
    ((1, 0, 1, 1), (2, 0, 1, 1), (1, 1, 1, 1), (3, 0, 1, 1), (2, 1, 1, 1), (1, 0, 2, 1), (2, 0, 1, 0.5)),
    ((1, 0, 1, 1), (1, 1, 1, 1), (2, 0, 1, 1), (1, 0, 1, 0.5), (2, 1, 1, 1)))
  # Of one column: powers that multiply y, and the degrees of such fractions: laws go to the fifth (Planck's, of
  # wavelengths). With powers up to the fifth among the terms the right constant does not stand out. Each takes .03 s.
  multipliers: tuple[float, ...] = (2, 3, 5, 0.5)
  degrees_of_multiples: tuple[tuple[int, int, int, float], ...] = ((0, 0, 2, 1), (1, 0, 1, 1))
  # Arguments of each family: exponents of monomials of one column, of two. Of all these the first so many: a
  # turn without success takes .6 to .9 seconds of one column, .7 and more of three or four.
  max_arguments: int = 90
  arguments: tuple[tuple[str, tuple[tuple[float, ...], ...]], ...] = (
    ("exponentials", ((1, 2, -1, 0.5, -0.5), (1, -1))), ("powers", ((1,),)), ("logarithms", ((1, 2),)),
    ("waves", ((1, 2, 3), (1, -1))))
  # Families of which functions of x + y, x - y, x*(1 + y) and x*(1 - y) are looked at for every two columns.
  of_sums: tuple[str, ...] = ("exponentials",)
  # Constants of each argument: what an exponent runs over in these rows, powers of columns whose largest value is so
  # many times the least, what a logarithm's argument is at the least, in ranges of the argument.
  num_constants: int = 48
  most_rows: tuple[float, float] = (0.05, 0.95)
  turns_of_exponential: tuple[float, float] = (0.2, 60.0)
  exponents: tuple[float, float] = (0.15, 8.0)
  least_ratio: float = 1.5
  offsets: tuple[float, float] = (1e-3, 10.0)
  # Frequencies: radians from one to the next over these rows, and how many.
  step: float = 0.8
  num_frequencies: int = 96
  # What a minimum may leave of what is typical of so many constants on each side, where that is more than rounding:
  # of ten laws the right ones left 1e-13 and less, approximations 5e-9 and more. What leaves more than rounding is kept
  # till all bases have been tried.
  num_around: int = 4
  leap: float = 1e-9
  rounding: float = 1e-26
  # Share of y's variance that a fraction may leave before its constants are fitted, which are known to some digits; how
  # many of those with the fewest terms are.
  most_missed: float = 1e-6
  num_sizes: int = 3
  # Minima whose constant is fitted, those that leave least (of some seventy published laws four have the right one
  # beyond the first five, and one beyond the first eight): its surroundings are divided into so many parts, again and
  # again, as long as the first so many times leave at most this share, or the minimum was no deeper than those around.
  num_fitted: int = 8
  num_parts: int = 16
  num_divisions: int = 14
  num_first: int = 2
  first_leap: float = 0.01

  def __post_init__(self) -> None:
    check_counts(self, "max_arguments", "num_bases_of_links", "num_rows", "rows_per_term", "num_constants",
                 "num_frequencies", "num_around", "num_fitted", "num_parts", "num_divisions", "num_first", "num_sizes")
    check_names("links", self.links, LINKS)
    check_names("arguments", (*(name for name, _ in self.arguments), *self.of_sums), FUNCTION_FAMILIES)


@dataclasses.dataclass(frozen=True)
class LinkedFractionsConfig:
  """Functions with a constant of their own of a fraction (`sources.fractions.linked_fractions`)."""

  # Formulas that are fitted in each turn.
  turns: tuple[int, ...] = (8,)
  families: tuple[str, ...] = LINK_FAMILIES
  # Rows on which the constant is looked for, and those there have to be for each term.
  num_rows: int = 160
  rows_per_term: int = 3
  # Total degrees of P and Q, few terms first.
  degrees: tuple[tuple[int, int], ...] = (
    (1, 0), (0, 1), (1, 1), (2, 0), (0, 2), (2, 1), (1, 2), (2, 2), (3, 0), (0, 3), (3, 1), (3, 2), (3, 3), (4, 0),
    (0, 4))
  # ... of sines and cosines of columns that may be angles.
  degrees_of_waves: tuple[tuple[int, int], ...] = ((2, 0), (2, 1), (2, 2), (3, 0))
  # Constants of each family: exponents, of a y whose largest value is so many times the least; what an exponential's
  # argument runs over; the least angle, as a share of the largest.
  num_constants: int = 40
  exponents: tuple[float, float] = (0.08, 12.0)
  least_ratio: float = 1.1
  turns_of_exponential: tuple[float, float] = (0.2, 60.0)
  least_angle: float = 0.1
  # As in `FunctionFractionsConfig`: constants on each side that say what is typical, what rounding leaves, minima that
  # are looked at, parts into which the surroundings of one are divided, again and again.
  num_around: int = 4
  rounding: float = 1e-26
  num_fitted: int = 12
  num_parts: int = 16
  num_divisions: int = 14
  # After so many divisions what is left of a right one has fallen below this; what part of the largest coefficient is
  # one, of terms each of length 1.
  num_first: int = 4
  first_share: float = 1e-8
  least_part: float = 1e-5

  def __post_init__(self) -> None:
    check_counts(self, "num_rows", "rows_per_term", "num_constants", "num_around", "num_fitted", "num_parts",
                 "num_divisions", "num_first")
    check_names("families", self.families, LINK_FAMILIES)


@dataclasses.dataclass(frozen=True)
class TranscendentsConfig:
  """Functions of columns that may stand beside them in a fraction (`sources.fractions.transcendents`)."""

  # How many are made, of one function and of two, the short ones first.
  max_single: int = 2000
  max_pairs: int = 2000
  # Up to so many columns exponents may be products and quotients of two, and any two exponentials are asked.
  max_columns_of_products: int = 3
  # How much larger the logarithm of a function may be than its median, in this share of the rows and in all: where a
  # few rows have all of it they tell nothing of the others. (What is nothing in many rows does no harm.)
  most_rows: float = 0.95
  most_usual: float = 20.0
  most_growth: float = 50.0

  def __post_init__(self) -> None:
    check_counts(self, "max_single", "max_pairs", "max_columns_of_products")


@dataclasses.dataclass(frozen=True)
class TranscendentalFractionsConfig:
  """Fractions of columns and functions of them (`sources.fractions.transcendental_fractions`)."""

  # Formulas that are fitted in each turn: of angles alone and of one function, of two, of one beside an angle; and
  # twice again, of higher degree and as many functions as there is time for, then of those that there was none for.
  turns: tuple[int, ...] = (8,) * 9
  # Of so many columns at most; in the first turns of no more than so many: of 240 published formulas by two authors
  # nine of two to four columns were gained with them and none was lost, of five and six two and five, in 5 CPU s.
  max_columns: int = 6
  max_columns_at_first: int = 4
  # Rows of those at hand that functions are made on.
  max_rows: int = 200
  # Functions of y that may be such a fraction, and of angles alone.
  links: tuple[str, ...] = ("y", "pow2", "exp", "ln")
  links_of_angles: tuple[str, ...] = ("y", "pow2", "exp", "ln", "sqrt", "acos", "asin", "atan")
  # Total degrees of P and Q: the first for which there are rows enough, so many for each monomial and so many more, and
  # no more monomials than so many. Of so many columns and more there are no squares of a column, of two functions none
  # of these, of one no cubes. Beside two functions degrees are lower, and of three columns and more in the first turns:
  # of 40 laws that the others meet three are lost by it, at half to a quarter of the time. Of functions of y Q is of
  # another degree, of two columns, three and more.
  degrees: tuple[tuple[int, int], ...] = ((4, 3), (4, 2), (3, 2), (3, 1), (2, 1), (1, 1))
  low_degrees: tuple[tuple[int, int], ...] = ((3, 2), (3, 1), (2, 1), (1, 1))
  degrees_of_links: tuple[int, ...] = (2, 2, 1)
  rows_per_column: float = 1.2
  more_rows: int = 8
  max_monomials: int = 130
  linear_from: int = 4
  # Rows times monomials squared, over all functions that are looked at: .2 to .4 s on one core.
  max_work: float = 2.5e8
  # What the logarithm of y to the power of a column may run over.
  most_growth: float = 40.0
  # How many are looked at together.
  chunk: int = 32
  # Sine of the angle between spaces that meet, and as a share of what is typical; how many are looked at closely.
  least_sine: float = 1e-13
  leap: float = 1e-6
  num_looked_at: int = 6
  transcendents: TranscendentsConfig = TranscendentsConfig()

  def __post_init__(self) -> None:
    check_counts(self, "max_columns", "max_columns_at_first", "max_rows", "more_rows", "max_monomials", "linear_from",
                 "chunk", "num_looked_at")
    check_names("links", self.links, LINKS)
    check_names("links_of_angles", self.links_of_angles, LINKS)


@dataclasses.dataclass(frozen=True)
class QuadraticsConfig:
  """Roots of quadratic equations A*y**2 + B*y + C = 0."""

  # Functions of y that may be such a root; all but the first for two columns and more without errors. Of 100 published
  # formulas two were met as squares of roots, none whose square is a root; each takes as long as y, .01 to .2 s.
  links: tuple[str, ...] = ("y", "pow2")
  # Total degrees of A, B and C, in the order in which they are tried, as far as there are no more columns than so many
  # and so many rows for each: the first that has a null vector has one alone, multiples of it being of higher degree.
  # -1 leaves B out: `rationals` has roots of fractions of lower degree.
  degrees: tuple[tuple[int, int, int], ...] = (
    (0, 1, 2), (1, 1, 1), (0, 2, 2), (1, 1, 2), (0, 1, 3), (1, 2, 2), (0, 2, 3), (0, -1, 4), (4, -1, 2), (0, 1, 4),
    (0, 2, 4), (2, 1, 2), (1, 2, 3), (2, 2, 2), (3, 1, 2), (2, -1, 4), (4, -1, 4),
    (3, 2, 2), (2, 4, 2), (0, 3, 6))
  max_columns: int = 150
  rows_per_term: float = 1.5
  elimination: EliminationConfig = EliminationConfig()
  # The same of functions of columns, for data without errors; what has no more digits is rounded.
  views: ViewsConfig = ViewsConfig(
    functions=("cosines", "sines", "angles", "degrees", "roots", "circles", "exponentials", "logarithms"),
    product_functions=(), has_powers=False)
  view_degrees: tuple[tuple[int, int, int], ...] = (
    (0, 2, 2), (0, 2, 4), (1, 2, 3), (2, 2, 2), (0, 4, 5), (4, 3, 2), (2, 4, 2))
  view_elimination: EliminationConfig = EliminationConfig(vanishing=1e-12, kept_share=10.0, max_terms=16)
  num_digits: int = 8
  # Share of y's variance that a root may miss.
  most_missed: float = 1e-6
  # Under noise: what is left of a coefficient of the discriminant that should cancel, as a share of what it comes from,
  # and by what factor the error may rise where such are left out, before constants are fitted.
  nearly_cancelled: float = 1e-3
  error_share: float = 4.0

  def __post_init__(self) -> None:
    check_names("links", self.links, LINKS)


@dataclasses.dataclass(frozen=True)
class ExactFractionsConfig:
  """Fractions of high degree that data meet exactly."""

  # Functions of y that may be one; rows of the data that are looked at, of those at hand.
  links: tuple[str, ...] = ("y", "sqrt", "exp", "ln", "atan", "asin", "acos", "pow2")
  max_rows: int = 1024
  # The highest total degree above and below the line; columns of the equation, of plain columns and of others, for
  # one variable, two, ...: all smooth functions of one variable are fractions of many terms. Rows for each.
  max_degree: int = 8
  max_columns: tuple[int, ...] = (24, 90, 200, 300)
  max_view_columns: tuple[int, ...] = (40, 60, 145, 120)
  rows_per_column: float = 1.25
  # What has no more digits is rounded: functions of columns are not looked at.
  num_digits: int = 8
  # Sine of the angle between two spaces that meet, and what share it is of that of a degree less: of 9 laws sines were
  # below 1e-12 and shares below 1e-3, of 32 approximations of other functions few were.
  least_sine: float = 1e-12
  leap: float = 3e-3
  # Rows count as 1/(1 + y**2), y in medians, where the largest is farther out than so many of these.
  far: float = 30.0
  # Rows times columns squared, over all views and functions of y that are tried: half a second on one core.
  max_work: float = 1.5e9
  # Bases of a view that are looked at closely where spaces meet, for one function of y, also of one or two functions of
  # a single column, and all such looks. These meet nearly all smooth functions in bases that are large enough: with
  # eight two views took all looks, and that of `sqrt((log(1 + x) - x/(1 + x))/x)` was not come to.
  max_bases: int = 8
  max_bases_of_one: int = 2
  max_eliminations: int = 96
  elimination: EliminationConfig = EliminationConfig(vanishing=1e-12, kept_share=10.0, max_terms=24)
  # Where y has errors: what share a leap leaves, how many leaps are followed and fractions offered, and how these are
  # fitted. Of eight laws with six digits all, with errors of a thousandth three are found so.
  near_leap: float = 0.15
  num_near: int = 3
  near: RationalsConfig = RationalsConfig(max_sets=0, rows_per_constant=2, max_terms=16)
  # Share of y's variance that an exact fraction may miss, its coefficients being those of least errors of y; and where
  # rows are far out: beside a pole of third order a law has lost ten digits itself.
  num_reweightings: int = 2
  most_missed: float = 1e-22
  most_missed_far: float = 1e-16
  views: ViewsConfig = ViewsConfig(has_shares=True)
  factoring: FactoringConfig = FactoringConfig()

  def __post_init__(self) -> None:
    check_counts(self, "max_degree", "max_rows", "num_digits", "max_bases", "max_bases_of_one", "max_eliminations",
                 "num_near")
    check_names("links", self.links, LINKS)


@dataclasses.dataclass(frozen=True)
class FractionPursuitConfig:
  """Fractions of few columns of a library, chosen one by one (`sources.fractions.fraction_pursuit`): for y with errors.
  """

  # Formulas that are fitted in each turn: of products of powers alone; of these and functions of columns.
  turns: tuple[int, ...] = (48, 48)
  max_columns: int = 9
  # Rows that terms are chosen by.
  num_rows: int = 256
  # Exponents in products of powers of one column and of two, by the number of columns of the table from two on, the
  # last for more; and of three, of three columns and of more. Of two columns these are 60 products, of five 190.
  exponents: tuple[tuple[float, ...], ...] = (
    (-2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 3.0), (-2.0, -1.0, 1.0, 2.0), (-2.0, -1.0, 1.0, 2.0), (-1.0, 1.0, 2.0))
  exponents_of_three: tuple[tuple[float, ...], ...] = ((-2.0, -1.0, 1.0, 2.0), (-1.0, 1.0))
  # Of plain columns no more are taken at once than this share of the rows.
  plain_share: float = 0.25
  # Functions of columns without constants (`transcendents`), the short ones first, each and its inverse alone, times
  # and over a column.
  num_functions: int = 75
  transcendents: TranscendentsConfig = TranscendentsConfig()
  # Functions of y that may be such a fraction, where so large a share of the rows has one; and how many times the
  # weight that nine tenths of the rows have less of counts at most.
  links: tuple[str, ...] = ("y", "inv", "exp", "sqrt", "complement_exp", "logit")
  least_defined: float = 0.6
  most_weight: float = 10.0
  # Terms above and below the line; fractions that are carried along of each number of terms; terms that are tried in
  # addition to each; fractions whose terms are taken away one at a time; steps of a fit.
  max_terms: int = 6
  num_carried: int = 8
  num_tried: int = 5
  num_exchanged: int = 4
  num_steps: int = 6
  # Nats by which a further term has to make the description shorter, or there is no further one.
  least_gained: float = 3.0
  # Share of a column beyond those of a fraction below which it is no other.
  least_new: float = 1e-6
  # How many times what is below the line is the 1 there where it may be left out.
  most_times_one: float = 100.0
  # Fractions of each number of terms that are offered; nats of a node when they are ranked.
  num_offered: int = 3
  nats_per_node: float = 2.0

  def __post_init__(self) -> None:
    check_counts(self, "max_columns", "num_rows", "max_terms", "num_carried", "num_tried", "num_exchanged", "num_steps",
                 "num_offered")
    check_names("links", self.links, LINKS)
    for name in ("exponents", "exponents_of_three"):
      if not getattr(self, name):
        raise InputError(f"{name}: expected at least one tuple of exponents, got {getattr(self, name)!r}")
