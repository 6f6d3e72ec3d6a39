"""Waves: fractions of one, and waves whose argument is unknown (phases), of products and of sums."""

import dataclasses

from symformer_jax.engine.config.names import FUNCTIONS, INNER_FUNCTIONS, LINKS, Exponents, check_counts, check_names
from symformer_jax.engine.config.unknown_functions import FormsConfig
from symformer_jax.errors import InputError


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
