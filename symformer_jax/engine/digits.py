"""The digits that numbers are written with: what is left of a formula that meets them to the last."""

import math

import numpy as np


@np.errstate(over="ignore")
def rounding_variance(values: np.ndarray) -> float:
  """Mean square error of numbers [N] for having been written with so many decimals or digits, in their units
  squared.

  Both are the most that any of them has: a column of a file has a number of decimals, or of digits. An error of any
  size up to half of the last one is as likely as any other.
  """
  finite = values[np.isfinite(values)]
  written = [(abs(value), *_digits(value)) for value in finite.tolist() if value]
  if not written:
    return 0.0
  last = min(decimal for _, decimal, _ in written)
  most = max(digits for *_, digits in written)
  units = [10.0 ** max(last, math.floor(math.log10(size)) + 1 - most) for size, *_ in written]
  return float(np.mean(np.square(units)) / 12)


def _digits(value: float) -> tuple[int, int]:
  """The exponent of the last digit of the shortest number that reads as a value, and how many digits it has."""
  digits, exponent = f"{value!r}".lower().partition("e")[::2]
  whole, _, decimals = digits.lstrip("-").partition(".")
  all_digits = (whole + decimals).lstrip("0")
  kept = all_digits.rstrip("0")
  last = int(exponent or 0) - len(decimals) + len(all_digits) - len(kept)
  return last, len(kept)
