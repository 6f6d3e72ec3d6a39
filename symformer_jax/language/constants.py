"""Scientific encoding of constants, and the distribution they have in the training data.

SymFormer, sec. 3.4: C ~ c_m * 10 ** c_e with c_e = ceil(log10 |C|), so that the mantissa lies in
[-1, -0.1) or (0.1, 1].
"""

import math

import numpy as np

MIN_EXPONENT, MAX_EXPONENT = -10, 10
MIN_INTEGER, MAX_INTEGER = -5, 5
# Float leaves of random trees lie within this of 0 (SymFormer, table of leaf values).
MAX_LEAF = 5.0


def power_of_ten(exponent: int) -> float:
  """The double nearest to 10**exponent; `10.0 ** exponent` may miss it by a unit in the last place."""
  return float(f"1e{exponent}")


def split_constant(value: float) -> tuple[int, float]:
  """Splits a constant into exponent and mantissa.

  Args:
    value: a finite number other than 0, dimensionless, |value| within (1e-11, 1e10].
  Returns:
    `(c_e, c_m)` with `c_m * 10**c_e == value` up to rounding and 0.1 < |c_m| <= 1.
  Raises:
    ValueError: when the value is 0, not finite or needs an exponent outside [-10, 10].
  """
  if value == 0 or not math.isfinite(value):
    raise ValueError(f"a constant must be finite and not 0 to be encoded, got {value!r}")
  exponent = math.ceil(math.log10(abs(value)))
  # log10 rounds: 1000.0000000000001 may come out as 3; the comparison decides.
  if abs(value) > power_of_ten(exponent):
    exponent += 1
  elif abs(value) <= power_of_ten(exponent - 1):
    exponent -= 1
  if not MIN_EXPONENT <= exponent <= MAX_EXPONENT:
    legal = f"[{MIN_EXPONENT}, {MAX_EXPONENT}]"
    raise ValueError(f"constant {value!r} needs exponent {exponent}, outside {legal}")
  return exponent, value / power_of_ten(exponent)


def join_constant(exponent: int, mantissa: float) -> float:
  """The inverse of `split_constant`."""
  return mantissa * power_of_ten(exponent)


def is_small_integer(value: float) -> bool:
  """Whether a number is one of the integers that are tokens of their own."""
  return value == int(value) and MIN_INTEGER <= value <= MAX_INTEGER if math.isfinite(value) else False


def sample_constants(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
  """Draws constants as the generator's float leaves are drawn: uniform in [-5, 5] (leaf values)."""
  return rng.uniform(-MAX_LEAF, MAX_LEAF, shape)
