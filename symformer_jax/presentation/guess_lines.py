"""What became of a user's own formula, as a line of text."""

import math

from symformer_jax.language.names import written
from symformer_jax.language.printing import format_number
from symformer_jax.presentation.numerals import r2_label, shown_r2
from symformer_jax.results import Guess

# Digits that a float64 surely has.
MAX_DIGITS = 15
# Beside pi, which is a number, one may be meant that is not fitted.
_NO_EULER = "; e is a constant to be fitted, Euler's number is exp(1)"


def guess_line(guess: Guess, *, loss: str = "squared", is_weighted: bool) -> str:
  """What became of a guess, in a line: its constants or fitted form, how it fits, and why it is not recommended."""
  asked = _in_one_line(guess.text)
  if guess.r2 is None and guess.rmse is None:
    return f"guess {asked}: {guess.reason}"
  form = ", ".join(_named_text(name, value, guess.errors[name]) for name, value in guess.constants.items())
  weighted = "weighted " if is_weighted else ""
  shown = shown_r2(guess, loss)
  r2 = f"{r2_label(loss, is_weighted=is_weighted)} {shown}, " if shown else ""
  place = [] if guess.line is None else [f"line {guess.line}"]
  verdict = ", ".join([*place, f"not recommended: {guess.reason}" if guess.reason else "recommended"])
  hint = _NO_EULER if "e" in guess.constants else ""
  return f"guess {asked}: {form or guess.expression} ({r2}{weighted}RMSE {guess.rmse:.4g}); {verdict}{hint}"


def _in_one_line(text: str) -> str:
  """Text of the user's, which may have breaks, and in the name of a constant signs that move a terminal's cursor."""
  signs = " ".join(text.split())
  return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in signs)


def _named_text(name: str, value: float, error: float | None) -> str:
  """`k = 0.0812 +- 0.003`: one digit more than the error has."""
  name = _in_one_line(name)
  if not error:
    return f"{written(name)} = {value:.6g}" + ("" if error == 0 else " (not determined by the rows)")
  num_digits = max(math.floor(math.log10(abs(value))) - math.floor(math.log10(error)) + 2, 1) if value else 1
  return f"{written(name)} = {format_number(value, min(num_digits, MAX_DIGITS))} +- {format_number(error, 1)}"
