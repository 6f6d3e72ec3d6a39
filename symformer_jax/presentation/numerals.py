"""Numbers as people read them."""

from symformer_jax.results import Constant

# Standard errors of an interval that holds 95 % of normal errors.
NUM_ERRORS = 1.96


def format_r2(r2: float | None) -> str:
  """Six decimals, or as many as show that a fit is not perfect; empty for none."""
  if r2 is None:
    return ""
  return f"{r2:.6f}" if r2 < 0.999999 or r2 == 1 else f"1 - {1 - r2:.1e}"


def format_error(value: float | None) -> str:
  """Four digits; empty for none."""
  return "" if value is None else f"{value:.4g}"


def interval(constant: Constant) -> tuple[float, float] | None:
  """Where a constant lies with 95 %; None without a standard error."""
  if constant.stderr is None:
    return None
  return constant.value - NUM_ERRORS * constant.stderr, constant.value + NUM_ERRORS * constant.stderr
