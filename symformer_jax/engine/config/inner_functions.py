"""Functions of one column with inner constants: sums and powers of them, and waves beside them, all on grids."""

import dataclasses

from symformer_jax.engine.config.names import (
  FUNCTIONS,
  INNER_ARGUMENTS,
  INNER_FAMILIES,
  INNER_KINDS,
  INNER_PLAIN,
  INNER_SHAPES,
  LINKS,
  Exponents,
  Grid,
  check_counts,
  check_names,
)
from symformer_jax.errors import InputError


@dataclasses.dataclass(frozen=True)
class TwoConstantsConfig:
  """Of one column, powers of a constant and a function, and sums of two functions, with inner constants."""

  # Formulas that are fitted in each turn: powers of sums; sums of two; powers of sums, and as many exponentials, beside
  # a constant (with 72 of both a retention curve was lost); sums of two of which one or both have two inner constants.
  turns: tuple[int, ...] = (24, 72, 96, 96)
  # Functions of y that may be a sum of two, of `LINKS`.
  links: tuple[str, ...] = ("y", "inv", "exp")
  # Rows on which they are chosen.
  num_rows: int = 96
  families: tuple[str, ...] = INNER_FAMILIES
  shapes: tuple[str, ...] = INNER_SHAPES
  # Grids, lowest, highest and how many, of powers of y, of exponents of the column and of its logarithm, of rates in
  # ranges of the column, of offsets beyond its ends in ranges; opposites too. A fit finds what lies between, but for
  # a logarithm's end that is near to the last row: at twelve of them one was missed.
  powers: Grid = (0.12, 8.0, 20)
  exponents: Grid = (0.15, 6.0, 18)
  rates: Grid = (0.2, 60.0, 24)
  offsets: Grid = (1e-3, 10.0, 24)
  # Of shapes: places from the first row on and widths, in ranges; exponents; widths in logarithms; scales from this
  # quantile of the rows to the last one, and beyond by this ratio, so many.
  places: Grid = (-0.1, 1.1, 25)
  widths: Grid = (0.03, 0.5, 5)
  steepness: Grid = (0.4, 6.0, 7)
  log_widths: Grid = (0.2, 2.0, 5)
  least_scale: float = 0.02
  beyond: float = 4.0
  num_scales: int = 14
  # Constants beside a power: as far below and above all of y, in its ranges.
  away: Grid = (1e-3, 3.0, 8)
  # Powers of sums of each family, one after the other; sums of each two.
  num_alike: int = 4
  num_alike_pairs: int = 2

  def __post_init__(self) -> None:
    check_counts(self, "num_rows", "num_scales", "num_alike", "num_alike_pairs")
    check_names("links", self.links, LINKS)
    check_names("families", self.families, INNER_FAMILIES)
    check_names("shapes", self.shapes, INNER_SHAPES)


@dataclasses.dataclass(frozen=True)
class InnerPairsConfig:
  """Of one column, sums of two functions of squares, roots and the like, with an inner constant each."""

  # Formulas that are fitted.
  turns: tuple[int, ...] = (96,)
  # Functions of y that may be such a sum, of `LINKS`; functions, and of what; what may stand beside two of them: the
  # column ("*"), or a function of it.
  links: tuple[str, ...] = ("y", "inv", "exp")
  kinds: tuple[str, ...] = INNER_KINDS
  arguments: tuple[str, ...] = INNER_ARGUMENTS
  besides: tuple[str, ...] = ("*", "ln")
  # Rows on which they are chosen.
  num_rows: int = 96
  # Grids as in `two_constants`, coarser: so many of the best places of each two kinds are looked at around; of these so
  # many get so many steps of a fit, of these so many more, and so on. (Of 60 sums drawn at random 53 were met so, in
  # .94 s each; with half as many steps more as many, in 1.27 s; with grids of sixteen 52, of twelve one in eight less.)
  rates: Grid = (0.2, 60.0, 20)
  offsets: Grid = (1e-3, 10.0, 20)
  num_begun: int = 2
  rounds: tuple[tuple[int, int], ...] = ((1024, 3), (384, 4), (96, 8))

  def __post_init__(self) -> None:
    check_counts(self, "num_rows", "num_begun")
    if not self.rounds or not all(isinstance(n, int) and n > 0 for some in self.rounds for n in some):
      raise InputError(f"rounds: expected pairs of whole numbers of at least 1, got {self.rounds}")
    check_names("links", self.links, LINKS)
    check_names("kinds", self.kinds, INNER_KINDS)
    check_names("arguments", self.arguments, INNER_ARGUMENTS)
    check_names("besides", self.besides, ("*", *FUNCTIONS, "pow2", "sqrt", "inv"))


@dataclasses.dataclass(frozen=True)
class CurveFitsConfig:
  """Of one column, powers of shifted functions and exponentials of two terms, beside a constant and a line."""

  # Formulas that are fitted.
  turns: tuple[int, ...] = (48,)
  # Functions of y that may be such a curve beside a constant, of `LINKS`.
  links: tuple[str, ...] = ("y", "inv", "exp")
  # What is shifted and raised to a power; also in an exponent, and times a power of the column; what stands in an
  # exponential beside a power; what an exponent may be a sum of.
  arguments: tuple[str, ...] = ("columns", "squares", "roots", "cube_roots", "inverses")
  bases: tuple[str, ...] = ("columns", "squares")
  rates: tuple[str, ...] = ("columns", "inverses")
  exponents: tuple[tuple[str, str], ...] = (
    ("columns", "squares"), ("columns", "inverses"), ("columns", "logarithms"), ("columns", "roots"),
    ("columns", "cubes"), ("squares", "inverses"), ("squares", "logarithms"), ("squares", "fourth_powers"),
    ("inverses", "logarithms"), ("roots", "logarithms"), ("logarithms", "squared_logarithms"))
  # Rows on which they are chosen.
  num_rows: int = 96
  # Starts: distances of the base of a power from 0, in ranges of what it is a power of; exponents; what terms of an
  # exponent go through; exponents of the column and what an exponential of it goes through, inside a power, a logarithm
  # or an exponential; exponents of the column times such a power; places of a peak and its widths, in ranges of the
  # column; what a decay goes through.
  distances: tuple[float, ...] = (0.01, 0.1, 0.6, 4.0)
  powers: tuple[float, ...] = (-3.0, -1.5, -0.5, 0.35, 0.7, 1.6, 3.0)
  factors: tuple[float, ...] = (0.7, 3.0, 12.0, -0.7, -3.0, -12.0)
  inner_exponents: tuple[float, ...] = (0.5, 1.4, 2.6)
  inner_rates: tuple[float, ...] = (1.0, 4.0, -1.0, -4.0)
  outer_exponents: tuple[float, ...] = (-1.0, 0.5, 1.5)
  middles: tuple[float, ...] = (0.1, 0.35, 0.65, 0.9)
  widths: tuple[float, ...] = (0.05, 0.25, 1.0)
  decays: tuple[float, ...] = (0.3, 1.5, 6.0, 20.0)
  # The best so many starts of each shape are fitted, so many steps; of these so many go on, at most so many of a shape
  # (starts of one often end in the same place), and so on.
  # (Of 60 curves drawn at random 49 were met with these numbers, 45 with half of them in three quarters of the time.)
  num_begun: int = 6
  num_alike: int = 2
  rounds: tuple[tuple[int, int], ...] = ((96, 5), (32, 8), (12, 12))

  def __post_init__(self) -> None:
    check_counts(self, "num_rows", "num_begun", "num_alike")
    if not self.rounds or not all(isinstance(n, int) and n > 0 for some in self.rounds for n in some):
      raise InputError(f"rounds: expected pairs of whole numbers of at least 1, got {self.rounds}")
    check_names("links", self.links, LINKS)
    for field in ("arguments", "bases", "rates"):
      check_names(field, getattr(self, field), INNER_PLAIN)
    check_names("exponents", [name for pair in self.exponents for name in pair], INNER_PLAIN)


@dataclasses.dataclass(frozen=True)
class OscillationsConfig:
  """Waves of one column beside one other function, or times one."""

  # Formulas that are fitted: every second one is y by multiples of the column itself, with something of each kind; of
  # each other argument and function of y there are waves alone, beside a line, and times a function.
  turns: tuple[int, ...] = (48,)
  # Rows on which they are chosen.
  num_rows: int = 128
  # Functions beside waves and times them, on the grids of `two_constants`.
  families: tuple[str, ...] = INNER_FAMILIES
  # Powers of the column that phases are multiples of, all for y; functions of y, of `LINKS`, for multiples of the
  # first.
  arguments: Exponents = (1, 2, 0.5, -1, 3)
  links: tuple[str, ...] = ("inv", "exp", "sqrt", "pow2")
  # Radians over the range of the argument from one frequency to the next, from which a fit finds the right one, and how
  # many: up to twenty periods, beyond which a hundred rows tell little.
  step: float = 0.8
  num_frequencies: int = 160
  # Polynomials beside waves up to this degree, so many of each; two waves; functions of each family, beside and times.
  max_degree: int = 3
  num_polynomials: int = 2
  num_two: int = 2
  num_alike: int = 1

  def __post_init__(self) -> None:
    check_counts(self, "num_rows", "num_frequencies", "num_polynomials", "num_two", "num_alike")
    check_names("families", self.families, INNER_FAMILIES)
    check_names("links", self.links, LINKS)
    if not self.arguments:
      raise InputError("arguments: expected at least one power of the column")
