"""Numbers as people read them."""

import re

import numpy as np

from symformer_jax.results import Constant, Equation, Guess, SearchResult

# Chance with which an interval holds the true value.
CONFIDENCE = 0.95
# Standard errors of such an interval where the degrees of freedom are not known: those of normal errors.
NUM_NORMAL_ERRORS = 1.96
# Names in backticks may hold numbers, and stay as they are.
_NUMBER = re.compile(r"(?P<name>`(?:[^`]|``)*`)|\b\d+(?:\.\d+)?(?:e[+-]?\d+)?\b")


def format_r2(r2: float | None) -> str:
  """Six decimals, or as many as show that a fit is not perfect; empty for none."""
  if r2 is None:
    return ""
  return f"{r2:.6f}" if r2 < 0.999999 or r2 == 1 else f"1 - {1 - r2:.1e}"


def r2_label(loss: str, *, is_weighted: bool) -> str:
  """What `shown_r2` is called."""
  return "R2 of log(y)" if loss == "log" else "weighted R2" if is_weighted else "R2"


def shown_r2(line: Equation | Guess, loss: str) -> str:
  """R2 of a line in the terms in which its errors were made small: of log(y) where that was fitted."""
  return format_r2(line.log_r2 if loss == "log" else line.r2)


def format_error(value: float | None) -> str:
  """Four digits; empty for none."""
  return "" if value is None else f"{value:.4g}"


def degrees_of_freedom(result: SearchResult, line: Equation) -> int:
  """Of the standard errors of a line: rows that count less fitted constants and whole numbers with an error."""
  num_rows = result.num_points if result.weights is None else int(np.sum(result.weights > 0))
  return num_rows - len(line.all_constants)


def num_errors(degrees: int) -> float:
  """Standard errors to either side that hold the true value with `CONFIDENCE`: Student's t, whose errors are those of
  a standard deviation that so many degrees of freedom tell; of none the normal distribution's.
  """
  if degrees < 1:
    return NUM_NORMAL_ERRORS
  from scipy import stats  # half a second, where nobody else needs it

  return float(stats.t.ppf(0.5 + CONFIDENCE / 2, degrees))


def interval(constant: Constant, degrees: int) -> tuple[float, float] | None:
  """Where a constant lies with 95 %, its error being of so many degrees of freedom; None without a standard error."""
  if constant.stderr is None:
    return None
  half = num_errors(degrees) * constant.stderr
  return constant.value - half, constant.value + half


def shorten(formula: str, num_digits: int) -> str:
  """A formula with constants of few digits, to be looked at."""
  return _NUMBER.sub(lambda found: found["name"] or f"{float(found[0]):.{num_digits}g}", formula)
