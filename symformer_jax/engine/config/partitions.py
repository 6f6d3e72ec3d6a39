"""Functions of y that are sums of functions of groups of columns."""

import dataclasses

from symformer_jax.engine.config.names import LINKS, SOURCES, check_counts, check_names
from symformer_jax.engine.config.reductions import SurrogateConfig
from symformer_jax.engine.config.unknown_functions import FormsConfig


@dataclasses.dataclass(frozen=True)
class PartitionsConfig:
  """Functions of y that are sums of functions of groups of columns, and what is asked of a group."""

  # Functions of y, of `LINKS`: the second ones where none of the first is a sum. Where log(y) is a sum, y is written as
  # a product.
  links: tuple[tuple[str, ...], ...] = (("y", "exp"), ("inv", "sqrt"))
  # Rows of the smooth functions that are compared, and steps of each: 1/80 s. Those of the one that is taken.
  num_rows: int = 96
  num_steps: int = 20
  num_last_rows: int = 224
  rows_per_column: int = 12
  max_columns: int = 9
  # A group of up to so many columns is parted in all ways; from a larger one so many at most are taken at a time.
  max_halved: int = 6
  max_apart: int = 1
  # A finer sum stands if its errors of rows left out, in spreads of y, are so many times those of the coarser one at
  # most, or below `fine`. (Of functions that are such sums they are .01 to 1.0 times as large.) Above the last nothing
  # is known.
  most_worse: float = 1.2
  fine: float = 1e-5
  most_error: float = 0.03
  # Errors of a larger share of y's spread are taken for noise, up to the second share (brief fits leave some rows far
  # off: `most_error` judges the rest), where what is exact has no groups. Of log(y) rows count that are so many times
  # those, if they are this share of all.
  least_noise: float = 3e-3
  most_noise: float = 0.5
  clear: float = 2.0
  most_clear: float = 0.5
  # Of noise: a function's squared errors as a share of those of rows left out, some ten constants of a hundred rows.
  known: float = 0.1
  # A factor of one column is a power of it where it is within so many median errors of rows left out: a table
  # without it is a matter of `reductions`. Under noise the function is known far better than any row is predicted.
  power_errors: float = 3.0
  power_errors_under_noise: float = 0.5
  # Where both functions of y are sums, one with errors so many times those of the other is left out.
  times_least: float = 3.0
  # Sources that are asked of a group of several columns, in the order of `registry.SOURCES`; formulas of it that come
  # back after each turn, and formulas of the whole.
  sources: tuple[str, ...] = (
    "closed_forms", "separable", "short_forms", "quadratics", "product_units", "reductions", "rationals",
    "single_index", "library", "varying", "pairs", "remainders", "replacements")
  num_kept: int = 16
  num_formulas: int = 96
  nats_per_node: float = 2.0
  # Formulas of groups of one column.
  forms: FormsConfig = FormsConfig()
  surrogate: SurrogateConfig = SurrogateConfig()

  def __post_init__(self) -> None:
    check_counts(self, "num_rows", "num_steps", "num_last_rows", "rows_per_column", "max_columns", "max_apart",
                 "max_halved", "num_kept", "num_formulas")
    check_names("sources", self.sources, tuple(
      name for name in SOURCES if name not in ("partitions", "guesses", "transformer")))
    for some in self.links:
      check_names("links", some, LINKS)
