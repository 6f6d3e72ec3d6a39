"""The loop and its pool: the units of the data, what is kept, how long a search goes on, when data are met."""

import dataclasses

from symformer_jax.engine.config.names import EFFORTS, SOURCES, check_counts, check_names
from symformer_jax.engine.config.reductions import SurrogateConfig
from symformer_jax.errors import InputError


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
class PoolConfig:
  """What is kept of all candidates on the way to the finalists."""

  # Rows on which candidates are fitted: more tell formulas apart that noise makes alike, and cost in proportion.
  fit_rows: int = 256
  # Candidates that are remembered: beyond so many half of them, the best, and the best of every complexity.
  capacity: int = 4096
  # Candidates whose parts are put together anew with columns of the library: the best of all other sources.
  num_donors: int = 512
  # Constants of a formula that are fitted, others stay as they are: one of more is none that a person would read.
  max_constants: int = 16
  # Steps of the fit that a formula gets when it is made: first a few for all, then, for those that came nearest and the
  # nearest few of every complexity, enough for a right one. Sums that are wrong take all steps they are given. The
  # right pair of columns under an exponential was up to the fiftieth after the first steps.
  screen_steps: int = 8
  num_screened: int = 96
  num_screened_per_complexity: int = 4
  fit_steps: int = 40
  # A candidate whose error is a smaller share of y's variance meets the data to double precision, if there are so many
  # points for each of its constants; a search ends when a further turn finds no simpler one. Below the third share
  # single precision, or the end of the steps, may have left the error: so many of the simplest are fitted to their end
  # at once. `exp(21 - 5418/(x + 273)) - 5.6` on a range of 23 has come to 1e-8 by then.
  met: float = 1e-22
  # Of numbers that were written with few digits the error is so many times theirs at most: columns were rounded too.
  # (10 digits of the spread of y leave 2e-19.) Of so few that more than the second share is left a wrong formula may
  # meet them as well.
  roundings: float = 16.0
  most_met: float = 1e-18
  points_per_constant: int = 4
  near: float = 1e-7
  num_sharpened: int = 8
  # Fits of one skeleton that go on: from poor starts they end in different places, or have not ended yet.
  fits_per_skeleton: int = 4
  # Candidates that go on to the last fit in the user's units: the best, and the best few of every complexity, at most
  # so many in all; and its steps. More steps than in the search: few formulas, and now every digit counts.
  num_best: int = 64
  num_per_complexity: int = 3
  num_finalists: int = 128
  polish_steps: int = 150
  # Where the time that was given is over, and where the data are met exactly: then what is longer is of no use.
  num_finalists_few: int = 40
  # One of more than so many nodes that meets the data may be another one that does: `a/x + b*y**2 + c*z` was met by a
  # square root of 38 nodes instead of 16. Turns, by source, that are taken before a search ends with it.
  long: int = 20
  asked_if_long: tuple[tuple[str, int], ...] = (
    ("product_units", 3), ("exact_fractions", 2), ("rationals", 1), ("library", 1), ("replacements", 6))
  # Candidates whose error is a smaller share of y's variance differ in what single precision left of their constants.
  exact: float = 1e-11
  # Finalists whose values agree to this share of y's spread are one formula, the simplest stands for it.
  equal_values: float = 1e-9

  def __post_init__(self) -> None:
    check_names("asked_if_long", [name for name, _ in self.asked_if_long], SOURCES)
    check_counts(self, "fit_rows", "capacity", "num_donors", "max_constants", "screen_steps", "fit_steps",
                  "polish_steps", "num_best", "num_finalists", "num_finalists_few", "points_per_constant")


@dataclasses.dataclass(frozen=True)
class BudgetConfig:
  """When a source is asked, and how a search goes on once every source has had its turns."""

  # Sources whose next so many turns come before their place in the registry, when another has had its own; where that
  # one takes no part they are not early. Remainders are looked for wherever something near may have been found, in a
  # tenth of a second a turn. The network's first samples take half a second to a second; the noise may end a search of
  # few rows after them (`NoiseConfig.asked_if_in_doubt`). Of 73 formulas of one variable that took more than 1.7 of 5
  # seconds as many were recovered, 50, with it early as without. (Three early turns of compositions: of 151 unseen
  # equations in 5 s one was gained, two were lost.) Exact fractions of columns alone, and sums of functions of single
  # columns where y is none, take some hundredths of a second. A smaller table is asked up to its `inner_pairs`, of one
  # column up to its `two_constants`: of 39 formulas of several columns the turns up to `curves` met 19, in 5.2 CPU
  # seconds at most, the others, which take four times as long, none. Under noise eleven of twelve gains came up to what
  # its fractions leave. Functions that exact data tell to many digits are looked for in .1 to .3 s, in smaller tables
  # before their fractions. Product units take .05 to 1.5 s a turn, the first ones least; after the first come smaller
  # tables: of 265 formulas of two to five columns eleven were gained, two lost (docs/results/turns.md). Groups of
  # columns are looked for in .05 to .5 s, after smaller tables, which are exact: of 75 formulas six were lost and one
  # was gained with groups first, and without those that are powers of columns one and one. Waves that turn fast are
  # nothing to smooth functions, nor to products, and take .1 to .4 s where there are none: of 72 laws of three to five
  # columns one was gained with phases after smaller tables, of 96 equations of two and 64 of one none was gained or
  # lost. Fractions of columns and one function of them take .02 to .5 s, of two columns least; those of two functions
  # come after smaller tables, and so do arcs and powers of fractions, .02 to .2 s. Of 240 published formulas nine were
  # gained and one was lost, of 200 random ones one and one (docs/results/transcendental.md). Short forms and quadratics
  # take .1 to .4 s each of three columns and more: of 65 published formulas that came to them two were met, of 34
  # random ones none, and smaller tables come first. Fractions of functions of columns come before groups, .05 to .6 s
  # of two columns (of 25 such formulas three were met), .6 to 1.4 s of more (of nine none); products of free exponents,
  # up to half a second, after these (docs/results/early_turns.md).
  early: tuple[tuple[str, int, str], ...] = (
    ("exact_fractions", 1, "closed_forms"), ("product_units", 1, "enumeration"), ("separable", 1, "enumeration"),
    ("transcendental_fractions", 1, "enumeration"), ("reductions", 20, "enumeration"),
    ("exact_factors", 1, "quadratics"), ("transcendental_fractions", 1, "quadratics"),
    ("linked_fractions", 1, "quadratics"), ("exact_fractions", 1, "quadratics"), ("partitions", 12, "quadratics"),
    ("product_units", 2, "quadratics"), ("reductions", 12, "quadratics"),
    ("phases", 1, "quadratics"), ("product_units", 1, "quadratics"), ("remainders", 1, "rationals"),
    ("remainders", 1, "phases"), ("transformer", 1, "library"), ("remainders", 1, "library"),
    ("remainders", 1, "pairs"), ("product_units", 2, "exact_fractions"),
    ("transcendental_fractions", 1, "exact_fractions"), ("replacements", 1, "exact_fractions"),
    ("replacements", 1, "phases"), ("replacements", 1, "separable"), ("replacements", 1, "library"),
    ("replacements", 1, "varying"))

  # Of a table of one column, the user's or one within another search, these turns come first, by source, after the
  # closed forms: fractions in functions, and a library with arcsines, before views and `curves`, which meet less; after
  # those that the end at the noise waits for. With the two first of all five of 100 published formulas were gained and
  # one was lost, but of 72 random ones four were lost and none was gained. With the second turn of fractions without
  # inner constants before these, of 131 formulas three were gained and two were lost. Linked fractions (.02 s where
  # they meet), fractions and what these leave come before waves of any phase (.8 s): of 90 published formulas as many
  # were met, 73, in 55 CPU seconds for 70; of 96 random ones 78, in 35 for 39.
  first_of_one: tuple[tuple[str, int], ...] = (
    ("exact_fractions", 1), ("enumeration", 1), ("short_forms", 1), ("quadratics", 1), ("linked_fractions", 1),
    ("rationals", 1), ("remainders", 1), ("oscillations", 1), ("phases", 1), ("curve_fits", 1),
    ("function_fractions", 1), ("separable", 1), ("exact_fractions", 1))

  # Who is asked then, round and round, for all turns that it has, evolution for one. What has been found is grown, and
  # its parts are put together, after every fourth turn of evolution: that takes as long as one. Nobody is asked where
  # those take no part whose formulas `recombining` needs.
  cycle: tuple[str, ...] = ("evolution",) * 4 + ("compositions", "growth", "remainders", "replacements", "parts")
  recombining: tuple[str, ...] = ("growth", "remainders", "replacements", "parts")
  # Sources that `quick` leaves out: what they find beside the others takes some seconds.
  quick_without: tuple[str, ...] = (
    "subsets", "varying", "pairs", "pairs_inside", "triples", "ridges", "subsets_inside", "growth", "compositions")
  # Sources that `normal` leaves out, but of smaller tables within a search: of 22 published formulas that were not met
  # in five seconds they took 351 of 1743 CPU seconds, of 19 real tables 62 of 514, and no turn of theirs came nearer.
  # `subsets_inside` takes a tenth and gained nothing of these either, but without all that comes before the five met
  # three of 26 further equations, each in a turn of it; one of them nothing else has met.
  normal_without: tuple[str, ...] = ("pairs", "pairs_inside", "triples", "compositions")
  # Places of the cycle that are taken, by effort. Two take 2.2 to 2.7 CPU seconds, and in a process from nothing nine
  # more to compile; of nine formulas that were left to them they found one. Forty places without
  # compositions made a search about ten times as long.
  quick: int = 0
  normal: int = 0
  thorough: int = 63

  # Turns, by source, till which compiling takes none of the time that a user gives: what those before them find may be
  # what the choice rejects, and a process from nothing would answer with the mean.
  awaited: tuple[tuple[str, int], ...] = (("library", 1),)
  # Of the time that a user gives this share, at most so many seconds, is left for the choice: with few formulas looked
  # at, half a second to a second; with all, one to five.
  choice_share: float = 0.15
  choice_seconds: float = 3.0

  def __post_init__(self) -> None:
    check_names("early", [name for source, _, after in self.early for name in (source, after)], SOURCES)
    if not all(isinstance(turns, int) and turns > 0 for _, turns, _ in self.early):
      raise InputError(f"early: expected whole numbers of turns of at least 1, got {self.early}")
    check_names("first_of_one", [name for name, _ in self.first_of_one], SOURCES)
    if not all(isinstance(turns, int) and turns > 0 for _, turns in self.first_of_one):
      raise InputError(f"first_of_one: expected whole numbers of turns of at least 1, got {self.first_of_one}")
    check_names("awaited", [name for name, _ in self.awaited], SOURCES)
    check_names("cycle", self.cycle, SOURCES)
    check_names("recombining", self.recombining, SOURCES)
    check_names("quick_without", self.quick_without, SOURCES)
    check_names("normal_without", self.normal_without, SOURCES)
    for effort in EFFORTS:
      if not isinstance(self.turns(effort), int) or self.turns(effort) < 0:
        raise InputError(f"{effort}: expected a whole number of at least 0, got {self.turns(effort)!r}")

  @property
  def finders(self) -> tuple[str, ...]:
    """Sources of the cycle whose formulas need no other source's."""
    return tuple(name for name in dict.fromkeys(self.cycle) if name not in self.recombining)

  def turns(self, effort: str) -> int:
    """Places of the cycle that are taken."""
    return {"quick": self.quick, "normal": self.normal, "thorough": self.thorough}[effort]


@dataclasses.dataclass(frozen=True)
class LearningCurveConfig:
  """When y seems to have errors (`engine.learning_curves`): told in a tenth of a second."""

  # Rows that are looked at, and the least that tell; columns at most.
  num_rows: int = 224
  least_rows: int = 60
  max_columns: int = 9
  # Median errors of rows left out, in standard deviations of y; root mean squares of these; how many times as large the
  # former are with half of the rows. Of 108 published formulas of two columns and more 102 are within all of these with
  # errors of 1 %, one without. Beside poles, which the second is for, and the least of the last, medians are small
  # though nothing is known: of 128 random formulas of two columns without errors 23 are within the others. Where errors
  # are more than a tenth, as in tables of people and cars, the order is as ever: answers fell with it.
  least_error: float = 1e-3
  most_error: float = 0.1
  most_missed: float = 0.75
  least_gained: float = 0.75
  most_gained: float = 1.6
  # Standard deviations of y's errors from which on its logarithm may be what is smooth.
  bend: float = 3.0
  surrogate: SurrogateConfig = SurrogateConfig(num_steps=25, start_sizes=(3.0, 1.0, 0.03))

  def __post_init__(self) -> None:
    check_counts(self, "num_rows", "least_rows", "max_columns")


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
  # ... and with one that is clear: so few nodes, of so many different rows or more, no more than such a share of y's
  # variance left, and its own errors noise. Of fewer rows or more noise they look like noise too soon: with 30 and a
  # twentieth `x + 0.25*sin(4*x)` ended as `x`, of 40 rows with a tenth of y's spread as noise.
  asked_if_clear: tuple[tuple[str, int], ...] = (
    ("closed_forms", 1), ("guesses", 1), ("enumeration", 1), ("short_forms", 1), ("quadratics", 1))
  clear: int = 10
  clear_rows: int = 60
  clear_left: float = 1e-3
  # ... and those before a search hurries to the turns that its end waits for, where what has been found leaves noise.
  # Without those of products the law `3*exp(-0.004*z**4*y**2)/x` with 2 % noise came as a cube of a sum.
  asked_before_hurry: tuple[tuple[str, int], ...] = (
    ("closed_forms", 1), ("guesses", 1), ("enumeration", 1), ("short_forms", 1), ("quadratics", 1),
    ("oscillations", 1), ("curve_fits", 1), ("product_units", 3))
  # Turns that come first where y has errors, once others have been taken: they bear errors, and behind those that come
  # first in other tables, most of which know exact data alone, they had no time in five seconds.
  asked_before_errors: tuple[tuple[str, int], ...] = (("closed_forms", 1), ("guesses", 1))
  asked_under_errors: tuple[tuple[str, int], ...] = (
    ("product_units", 1), ("reductions", 8), ("short_forms", 1), ("fraction_pursuit", 2),
    ("product_units", 3), ("rationals", 1), ("library", 1))
  learning_curve: LearningCurveConfig = LearningCurveConfig()
  # ... and with one of more than `long` nodes: it may meet the noise because the law has not been found. `exp(-y/x)*x`
  # with 2 % noise was a cube of 23 nodes before the ridges had their turns, which take as long as all before them.
  # After these the nearest formula of any length may leave the noise, where the shortest descriptions leave more: what
  # is left of a table with large errors, more than this share of the variance, pays for no node. Of less it does, and a
  # long formula may leave rounding alone before the law is found.
  asked_if_long: tuple[tuple[str, int], ...] = (
    ("closed_forms", 1), ("guesses", 1), ("rationals", 1), ("library", 3), ("ridges", 2))
  long: int = 20
  large: float = 0.01
  # ... and besides, where fewer different rows than the first number are met with more than such a share of y's
  # variance left: of so few the library makes few formulas with two constants, and eight rows of Puromycin came as
  # `195*conc**(-0.7)*sin(conc)`. Where little is left the further formulas do harm: six planets of Kepler's came as
  # `exp(6.98e-05*axis)*axis**1.4994`.
  few: int = 15
  unexplained: float = 0.1
  asked_if_in_doubt: tuple[tuple[str, int], ...] = (("library", 3), ("transformer", 1))
  # Nats of one node: two to name it, as in the selection, and two for having been found among many (`further_nats`).
  # At the first two alone it is three data sets in four of noise in proportion to a monomial whose shortest description
  # has a wave besides.
  nats_per_node: float = 4.0
  # Nats: a turn that shortens the shortest description by less has found nothing.
  gained: float = 1.0
  # Short formulas whose descriptions are longer by less, and how many of them are looked at: the selection asks two
  # nats for a node less, and takes a straight line where the shortest description is the mean (46 rows, R2 .46).
  near: float = 10.0
  num_others: int = 8
  # The chance with which errors that are noise look like more (`engine.noise`), and the search goes on for nothing.
  chance: float = 0.02
  # Rows whose errors are looked at: more see a smaller rest.
  num_rows: int = 1024

  def __post_init__(self) -> None:
    check_names("efforts", self.efforts, EFFORTS)
    for field in ("asked", "asked_if_short", "asked_if_clear", "asked_before_hurry", "asked_if_long",
                  "asked_if_in_doubt", "asked_before_errors", "asked_under_errors"):
      check_names(field, [name for name, _ in getattr(self, field)], SOURCES)
    check_counts(self, "num_rows", "num_others")
