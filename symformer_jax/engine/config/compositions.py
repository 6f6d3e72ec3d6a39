"""Compositions: functions of functions."""

import dataclasses

from symformer_jax.engine.config.names import LINKS, Grid, check_counts, check_names
from symformer_jax.errors import InputError


@dataclasses.dataclass(frozen=True)
class CompositionsConfig:
  """Functions of functions of one column, and of products and sums of such: all of a grid, in blocks."""

  # Formulas that are proposed in each turn, before evolution begins; then as often as `BudgetConfig.cycle` asks.
  turns: tuple[int, ...] = (64, 64, 64, 64)
  # Columns that vary, at most: the number of compositions goes with the square. Rows that differ, at least.
  max_columns: int = 6
  min_rows: int = 20
  # Rows on which the grid is looked at; compositions times goals (and 20, for what it takes to compute one) that are
  # looked at in a turn: .2 to .5 s, and the fits of the nearest .3 to 1.2 s.
  num_rows: int = 128
  num_looked_at: int = 8_000_000
  # Goals: functions of y, of `LINKS`; y over powers of a column, and of two, of the latter so many functions.
  links: tuple[str, ...] = ("y", "inv", "exp", "sqrt", "sqrt_inv", "pow2", "ln", "asin", "atan")
  powers: tuple[float, ...] = (1.0, -1.0, 0.5, -0.5, 2.0, -2.0)
  pair_powers: tuple[float, ...] = (1.0, -1.0, 0.5, -0.5)
  pair_links: tuple[str, ...] = ("y", "inv", "exp")
  # ... of which a column may stand beside the composition; and how many goals there are at most.
  links_beside: tuple[str, ...] = ("y", "inv")
  max_goals: int = 120
  # A goal is left out where fewer than this share of the rows make all of its variance.
  least_rows: float = 0.1
  # Errors of a function of y count as those of y do, but for no less than this share of the rows: of exact data all
  # weights are right.
  least_weighted: float = 0.33
  # What stands inside: powers of a column, products of two; by which powers functions of them are multiplied, and with
  # which multiples of another one's range it is added.
  inner_powers: tuple[float, ...] = (1.0, 2.0, -1.0, 0.5, 3.0, -2.0, 1.5, -3.0)
  factor_powers: tuple[float, ...] = (1.0, -1.0, 0.5, 2.0, -0.5)
  multiples: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0, -0.25, -0.5, -1.0, -2.0, -4.0)
  # The grid, of arguments that go from 0 to 1: factors of exponentials, lowest, highest, how many; distances of zeros
  # from the range; vertices of powers; angles of waves, of those of a column and of a sum of two pi/4 times so many,
  # and phases; slopes and middles of arctangents; exponents.
  exponential_factors: Grid = (0.5, 16.0, 7)
  distances: Grid = (0.003, 3.0, 7)
  vertices: Grid = (-1.0, 2.0, 13)
  wave_angles: tuple[float, ...] = (0.8, 1.6, 2.4, 3.1, 4.7, 6.3, 7.9, 9.4, 11.0, 12.6, 15.7, 18.8)
  num_plain_waves: int = 600
  num_waves_of_sums: int = 64
  num_phases: int = 6
  slopes: Grid = (2.0, 60.0, 5)
  middles: Grid = (-0.25, 1.25, 7)
  exponents: tuple[float, ...] = (-3.0, -1.5, -0.7, -0.3, 0.15, 0.3, 0.7, 1.5)
  # Of the same functions so many, from different places of the inner grid: the nearest is not always the one that leads
  # to the right constants. `cos(cos(0.65*x))` was found from the second.
  num_alike: int = 4
  # What a composition may leave of a goal's variance on the grid. How many go on: for y, for functions of y, for these
  # of y over powers; with so many steps of their fit, and of these how many with so many more.
  most_left: float = 0.9
  num_of_y: int = 500
  num_of_link: int = 200
  num_of_quotient: int = 50
  screen_steps: int = 6
  num_near: int = 300
  fit_steps: int = 40

  def __post_init__(self) -> None:
    check_counts(self, "max_columns", "min_rows", "num_rows", "num_looked_at", "max_goals", "num_plain_waves",
                 "num_waves_of_sums", "num_phases", "num_alike", "num_of_y", "num_of_link", "num_of_quotient",
                 "screen_steps", "num_near", "fit_steps")
    for name in ("links", "pair_links", "links_beside"):
      check_names(name, getattr(self, name), LINKS)
    for name in ("least_rows", "least_weighted", "most_left"):
      if not getattr(self, name) > 0:
        raise InputError(f"{name}: expected a share above 0, got {getattr(self, name)!r}")
    for name in ("inner_powers", "multiples", "wave_angles", "exponents"):
      if not getattr(self, name):
        raise InputError(f"{name}: expected some numbers, got none")
