"""What the user gives: formulas with names for constants; forms, their parameters and their unknown functions."""

import dataclasses

from symformer_jax.engine.config.names import check_counts


@dataclasses.dataclass(frozen=True)
class GuessesConfig:
  """Constants of the user's own formulas that have names."""

  # How many starts get so many steps, the nearest going on: two blocks of a compiled fit, 1.5 s for seven names and 80
  # rows. Of `a*sin(b*x*t) + c*sin(d*x)/(t + e)` 128 found the right waves from one or two, 32 with a hundred times the
  # steps from none.
  stages: tuple[tuple[int, int], ...] = ((256, 20), (8, 300))


@dataclasses.dataclass(frozen=True)
class TemplatesConfig:
  """Where parameters of a template are looked for, and how formulas of its unknown functions are put together."""

  # Parameters for which a grid is needed: of three it would have a hundred thousand points.
  max_nonlinear: int = 2
  # Rows that parameters are found by, and polynomials: more describe sharper functions, and take longer at each point
  # of the grid; one for every four rows leaves the noise in the residual. The last is their largest degree, which
  # only a single column reaches.
  max_rows: int = 300
  max_polynomials: int = 30
  rows_per_polynomial: int = 4
  max_degree: int = 14
  # From this ratio of the largest to the least value on the logarithm of a column is what polynomials are of.
  wide: float = 10.0
  # Powers of ten between which sizes are tried of a parameter, of either sign, as it is and over the size of the column
  # beside it; how many sizes, and of each of two parameters.
  decades: tuple[float, float] = (-3.0, 3.0)
  num_sizes: int = 25
  num_coarse: int = 10
  # Points of the grid, the best, from which a descent begins; looks of each.
  num_descents: int = 4
  max_evaluations: int = 60
  # Rounds of the unknown functions in turn, where there are several, and steps of all of them at once.
  num_rounds: int = 30
  # Rows of the data of several unknown functions, whose polynomials are fitted to all of these.
  max_part_rows: int = 10_000
  # Formulas of each unknown function that are put together with those of others, by how many functions there are: all
  # of one, 144 pairs, 125 triples; and the simplest of each.
  num_combined: tuple[int, ...] = (1000, 12, 5)
  # Rows that constants of the answer are settled on; its errors are those of all rows.
  answer_rows: int = 20_000

  def __post_init__(self) -> None:
    check_counts(self, "max_rows", "max_polynomials", "rows_per_polynomial", "max_degree", "num_sizes", "num_coarse",
                 "num_descents", "max_evaluations", "num_rounds", "max_part_rows", "answer_rows")
