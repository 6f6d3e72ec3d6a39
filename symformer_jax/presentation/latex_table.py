"""A front as a LaTeX table that needs no package."""

from collections.abc import Sequence

from symformer_jax.arguments import check_whole
from symformer_jax.language import printing
from symformer_jax.presentation.numerals import format_r2
from symformer_jax.results import Equation


def latex_table(lines: Sequence[Equation], best: Equation | None = None, *, digits: int | None = None) -> str:
  """A `tabular` of formula, complexity, R2 and root mean squared error, a row for each line.

  Args:
    lines: in the order wanted; best: marked with an arrow.
    digits: significant ones of the constants; None for all.
  Raises:
    InputError: for digits that are none.
  """
  if digits is not None:
    check_whole("digits", digits)
  rows = [r"\begin{tabular}{clrrr}", r"\hline", r" & Formula & Complexity & $R^2$ & RMSE \\", r"\hline"]
  for line in lines:
    mark = r"$\rightarrow$" if line is best else ""
    formula = printing.to_latex(line.node, line.names, digits=digits)
    rows.append(f"{mark} & ${formula}$ & {line.complexity} & {_r2(line.r2)} & ${_number(f'{line.rmse:.4g}')}$ \\\\")
  return "\n".join([*rows, r"\hline", r"\end{tabular}"]) + "\n"


def _r2(r2: float | None) -> str:
  text = format_r2(r2)
  return f"$1 - {_number(text.removeprefix('1 - '))}$" if text.startswith("1 - ") else f"${text}$" if text else "--"


def _number(text: str) -> str:
  """A number in mathematics: powers of ten are written out."""
  mantissa, _, exponent = text.partition("e")
  return f"{mantissa} \\cdot 10^{{{int(exponent)}}}" if exponent else mantissa.replace("inf", r"\infty")
