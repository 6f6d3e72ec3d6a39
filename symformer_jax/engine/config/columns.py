"""The library of columns and the factors of products: which functions are tried, on which grids."""

import dataclasses
import math

from symformer_jax.engine.config.names import (
  INNER_FUNCTIONS,
  LIBRARY_FAMILIES,
  PLAIN,
  PRODUCTS_FAMILIES,
  WIDE,
  Exponents,
  Grid,
  check_counts,
  check_names,
)
from symformer_jax.errors import InputError

# Families of columns of every library.
USUAL_FAMILIES = tuple(name for name in LIBRARY_FAMILIES if name not in ("powers_of_sums", "arcsines"))


@dataclasses.dataclass(frozen=True)
class ScreeningConfig:
  """When y seems to be a function of a single column, which is searched first then."""

  # Whether that is asked.
  has_sole_column: bool = True
  # Of `tan(2*y - 3)` on a range of ten 15 terms of a rational function leave 1e-9, of `cos(tan(x - 1))**2` 40 leave
  # 7e-7; of the nearest among 193 functions of several columns 40 leave 4e-3. A curve takes 20 ms of 256 rows.
  max_terms: int = 40
  # This share of the values left out lie on the curve so nearly, each by its own distance from the median: where a
  # function ends, and between values far apart, fewer digits are known. None lies further from it than the last: where
  # a code of a twentieth of the rows matters as well, some do. Of 138 functions of one column among several 120 are
  # told so, with 1e-2 or 1e-4 as the last; most others have a step.
  share: float = 0.8
  error: float = 1e-6
  largest_error: float = 1e-4
  # Of so many values three are left out at a time: fewer may lie on a curve by chance.
  min_values: int = 14
  # Where ranks of neighbours differ by more (1 is noise) nothing is tried, and of the smoothest so many columns:
  # `tan(2*y**2)` has 0.3.
  most_rough: float = 0.5
  max_tried: int = 6
  # ... and where they differ by less, another column goes with this one.
  least_rough: float = 0.6

  def __post_init__(self) -> None:
    check_counts(self, "max_terms", "max_tried")
    if not isinstance(self.min_values, int) or self.min_values < 8:
      raise InputError(f"min_values: expected a whole number of at least 8, got {self.min_values!r}")
    for name in ("share", "error", "largest_error"):
      value = getattr(self, name)
      if not isinstance(value, int | float) or not 0 < value <= 1:
        raise InputError(f"{name}: expected a number above 0 and at most 1, got {value!r}")


@dataclasses.dataclass(frozen=True)
class LibraryConfig:
  """Columns: small functions of the variables, their inner constants on a grid.

  Grids are as fine as the fit that follows needs: a neighbour must lie in the basin of the right constant. Each column
  costs its place in every product of the pursuit; with one or two variables there are 15 000 to 35 000.
  """

  # Columns of a data set that formulas are made of: of more the best are chosen (`engine.screening`). Monomials of 12
  # columns fill the library already.
  max_columns: int = 12
  # There a smooth function of a column is taken as a polynomial of this degree in its ranks.
  screening_degree: int = 3
  # Columns that agree within this share of their largest value are one: `x*x` and `sqrt(x**4)`; `x` and `sin(0.001*x)`
  # are two. The simplest families come first, and stand for the others.
  equal_values: float = 1e-9
  # Which families there are, see `library.FAMILIES`: all but two, of which smooth tables are met by forms that nobody
  # would sign, as Boyle's by `(43/sqrt(log(volume)) - 16.5)**2`.
  families: tuple[str, ...] = USUAL_FAMILIES
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
  # Of at most so many variables functions are arguments as well, as in `cos(2*log(x))`; with the logarithm also
  # x*log(x), of which x**x is the exponential. Some 2400 columns a variable, a sixth of the library: more variables
  # have too many columns already.
  inner_functions: tuple[str, ...] = ("ln", "exp", "sin", "cos", "atan")
  max_inner: int = 2
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
  # Largest values of c*u in arcsines of it, which bend near 1 alone.
  arcsine_shares: tuple[float, ...] = (0.5, 0.8, 0.95, 1.0)
  # The usual rates of exponentials, and the usual summands in logarithms, roots and poles, beside the grids.
  usual_rates: tuple[float, ...] = (1.0, -1.0)
  usual_shifts: tuple[float, ...] = (0.0, 1.0, -1.0)
  # Exponents of exponentials over the data's range, and decays that go with waves.
  rates: Grid = (0.1, 50.0, 24)
  decays: Grid = (0.3, 20.0, 7)
  # Exponents that stretched exponentials and powers times exponentials are fitted from; c*v of hyperbolic cosines at
  # the end of the data, from where they are no parabolas to where they are one exponential.
  stretched_powers: Exponents = (0.4, 0.7, 1.5, 2.5)
  gamma_powers: Exponents = (-1.5, -0.7, 0.4, 0.7, 1.5, 2.5)
  hyperbolic_rates: Grid = (0.5, 20.0, 16)
  # Exponents that powers of 1 + exp(...), 1 - exp(...) and 1 + c*v**p are fitted from.
  bounded_powers: Exponents = (-2.5, -0.7, 0.7, 2.5)
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
  pair_powers: tuple[Exponents, ...] = ((-3, -2, -1, -0.5, 0.5, 1, 2, 3), WIDE, PLAIN, (1,))
  # Those of more variables: of how many at most, and at most so many of each size.
  max_monomial_size: int = 6
  max_long_monomials: int = 4000
  long_powers: tuple[Exponents, ...] = (WIDE, PLAIN)
  # Those that functions of many variables are multiplied by, likewise.
  max_multiplier_size: int = 3
  max_multipliers: int = 100
  multiplier_powers: tuple[Exponents, ...] = ((-1, -0.5, 0.5, 1, 2), (-1, 0.5, 1), PLAIN, (1,))
  # These functions, with their inner factors: of one variable and, with at most so many variables, of products,
  # quotients and differences of two.
  many_functions: tuple[tuple[str, tuple[float, ...]], ...] = (
    ("sin", (1, 2, 0.5)), ("cos", (1, 2, 0.5)), ("exp", (1, -1)), ("ln", (1,)))
  max_paired_arguments: int = 5
  # Monomials that waves of all lengths are taken of: of how many variables, how many, and how many waves in all.
  max_angle_size: int = 3
  max_angles: int = 40
  angle_powers: tuple[Exponents, ...] = (PLAIN,)
  num_many_waves: int = 2500

  def __post_init__(self) -> None:
    check_counts(self, "max_columns", "screening_degree")
    check_names("families", self.families, LIBRARY_FAMILIES)
    check_names("inner_functions", self.inner_functions, INNER_FUNCTIONS)


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
  term_powers: tuple[Exponents, ...] = (WIDE, PLAIN)
  multiples: tuple[float, ...] = (1.0, 0.5, 2.0, 1 / 3, 3.0, 0.25, 4.0, 0.1, 10.0, 0.03, 30.0)
  # Monomials under an exponential, likewise.
  max_exponent_size: int = 6
  max_exponents: int = 4000
  exponent_powers: tuple[Exponents, ...] = (WIDE, PLAIN)
  # Differences of two variables over a third, at most; with more none is tried.
  max_distances: int = 400
  # Monomials that functions are taken of, likewise; those of the second exponents have inner constants on a grid as
  # well, and stand before waves in sums.
  max_argument_size: int = 4
  max_arguments: int = 700
  argument_powers: tuple[Exponents, ...] = ((-1, -0.5, 0.5, 1), PLAIN)
  plain_powers: tuple[Exponents, ...] = (PLAIN,)
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
    check_names("families", self.families, PRODUCTS_FAMILIES)


# Without grids: functions are the factors' business.
COARSE_LIBRARY = LibraryConfig(
  families=("monomials", "exponentials", "logarithms"), max_variables=12, min_many=13, argument_powers=(1,),
  inner_functions=(),
  powers=(-2, -1, -0.5, 0.5, 1, 2, 3), paired_powers=(-2, -1, 1, 2), outer_powers=(), usual_shifts=(0.0,),
  rates=(1.0, 2.0, 0), distances=(1.0, 2.0, 0))
