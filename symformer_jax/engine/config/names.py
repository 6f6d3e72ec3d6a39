"""What a config may name, and the checks that all parts share."""

from collections.abc import Sequence
from typing import Any

from symformer_jax.errors import InputError, suggest

# Lowest, highest, and how many between them, evenly spaced in the logarithm.
Grid = tuple[float, float, int]
# Exponents of a variable in a monomial: of several such sets the first that makes few enough monomials is taken.
Exponents = tuple[float, ...]

# Families of columns (`sources.sums.families.FAMILIES`) and of factors (`sources.sums.products.FAMILIES`), functions of
# y (`sources.links.LINKS`), ways to rewrite a formula (`selection.writing.REWRITINGS`): what a config may name.
LIBRARY_FAMILIES = (
  "monomials", "squared_differences", "long_monomials", "functions_times_monomials", "waves_of_monomials",
  "exponentials", "occupancies", "arctangents", "trigonometric", "logarithms", "roots", "poles", "bent_functions",
  "powers_of_sums", "arcsines", "waves", "decaying_waves", "peaks_and_steps",
  "stretched_exponentials", "powers_times_exponentials", "hyperbolics", "soft_corners", "powers_of_bounded", "products",
  "plane_waves")
INNER_FUNCTIONS = ("ln", "exp", "sin", "cos", "tan", "atan")
# Functions of the operator table that are no powers: those that a price may be put on.
FUNCTIONS = ("ln", "exp", "sin", "cos", "tan", "cot", "asin", "acos", "atan", "acot")
PRODUCTS_FAMILIES = ("sums", "sums_with_waves", "exponentials", "distances", "functions")
LINKS = ("y", "inv", "ln", "exp", "sqrt", "sqrt_inv", "pow2", "pow2_inv", "pow3", "asin", "acos", "logit",
         "atan", "complement_exp", "atan_inv")
# Those that every search asks of: the square of an inverse is one of functions of sums of products alone.
COMMON_LINKS = tuple(name for name in LINKS if name != "pow2_inv")
# Families of functions with one constant (`sources.fractions.function_fractions.FAMILIES`).
FUNCTION_FAMILIES = ("exponentials", "powers", "logarithms", "waves")
# Families of functions with one constant, and with two (`sources.curves.inner_functions.FAMILIES`, `SHAPES`).
INNER_FAMILIES = (
  "exponentials", "powers", "logarithms", "complements", "hyperbolas", "peaks", "powers_of_logarithms",
  "powers_of_negative_logarithms", "iterated_logarithms", "complementary_logarithms", "self_powers",
  "exponentials_of_inverse")
INNER_SHAPES = (
  "occupancies", "logistics", "bells", "resonances", "bells_of_logarithm", "stretched_exponentials", "gammas")
# Kinds of functions with one constant, and what they are functions of (`sources.curves.inner_functions.KINDS`,
# `ARGUMENTS`).
INNER_KINDS = ("exponentials", "logarithms", "complements", "hyperbolas", "shifted_roots", "arctangents", "steps",
               "logarithms_of_sinh", "logarithms_of_cosh")
# Functions without a constant that are shifted, or stand in an exponent (`sources.curves.curve_shapes`).
INNER_PLAIN = ("columns", "squares", "roots", "cube_roots", "inverses", "cubes", "fourth_powers", "logarithms",
               "squared_logarithms")
INNER_ARGUMENTS = ("columns", "squares", "roots", "cube_roots", "inverses", "legs")
# Families of functions of y with one constant (`sources.fractions.linked_fractions.FAMILIES`).
LINK_FAMILIES = ("powers", "exponentials", "cosines", "sines", "tangents")
VIEW_FUNCTIONS = (
  "cosines", "sines", "angles", "angles_beside", "degrees", "roots", "cube_roots", "complement_roots", "circles",
  "hyperbolas", "exponentials", "decays", "logarithms", "powers_of_logarithms", "roots_and_logarithms", "arctangents",
  "arccotangents", "mixing_logarithms", "complement_logarithms", "shifted_logarithms")
REWRITINGS = ("exponentials", "powers", "origins", "principal_phases", "unit_slopes", "unit_constants", "unit_factors",
              "single_waves", "vertices", "proper_fractions", "other_waves", "complements", "roots",
              "absolutes", "factors_of_exponentials", "joined_logarithms", "expanded", "distributed", "collected",
              "multiple_angles", "half_angles", "steps", "tangents", "single_fractions", "multiplied", "limits")
# How thoroughly sums of a column are searched: greedily; in all pairs; in longer sums, which of monomials are common.
TIERS = ("any", "basic", "monomial")
# Sources of candidates (`sources.registry.SOURCES`).
SOURCES = (
  "closed_forms", "guesses", "enumeration", "short_forms", "quadratics", "oscillations", "rationals", "curve_fits",
  "exact_fractions", "linked_fractions", "two_constants", "function_fractions", "curves", "inner_pairs",
  "wave_fractions", "phases", "single_index", "separable", "library", "fraction_pursuit", "product_units", "reductions",
  "exact_factors", "partitions", "subsets", "varying", "pairs", "pairs_inside", "triples", "ridges", "subsets_inside",
  "transformer", "parts", "growth", "remainders", "replacements", "transcendental_fractions", "compositions",
  "evolution")
# Functions and kinds of sums of product units (`sources.powers.product_fits.FUNCTIONS`,
# `sources.powers.product_units.SHAPES`).
PRODUCT_UNIT_FUNCTIONS = ("exp", "inv", "sqrt", "inv_sqrt", "ln", "pure_ln", "tanh", "atan", "bose", "cos",
                          "power")
PRODUCT_UNIT_SHAPES = ("two", "three", "both", "beside", "inside", "alone")
# How long a search goes on (`BudgetConfig`).
EFFORTS = ("quick", "normal", "thorough")
# Ways to vary a formula (`sources.evolution.variation.KINDS`).
EDITS = ("crossover", "insert", "function", "point", "hoist", "delete", "constants")

WIDE: Exponents = (-2, -1, 1, 2)
PLAIN: Exponents = (-1, 1)


def check_counts(config: Any, *names: str) -> None:
  """Refuses numbers of things below one."""
  for name in names:
    value = getattr(config, name)
    if not isinstance(value, int) or value < 1:
      raise InputError(f"{name}: expected a whole number of at least 1, got {value!r}")


def check_names(field: str, names: Sequence[str], known: tuple[str, ...]) -> None:
  for name in names:
    if name not in known:
      raise InputError(f"{field}: unknown name {name!r}: {suggest(str(name), known)}")
