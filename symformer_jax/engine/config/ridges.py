"""Functions of sums of monomials (ridges), and of one column (curves)."""

import dataclasses
from typing import NamedTuple

from symformer_jax.engine.config.names import LINKS, Grid, check_counts, check_names
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
