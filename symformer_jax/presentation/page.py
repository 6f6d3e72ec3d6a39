"""A search's answer as one HTML page that needs nothing else: no network, no script; and its front for a notebook.

All text comes from the user's data, names of columns above all: the templates escape whatever they are given, and a
policy in the page forbids scripts and requests besides.
"""

import base64
from collections.abc import Callable, Iterator, Sequence
import functools
import io
import os
from typing import Any
import warnings

from symformer_jax import files
from symformer_jax.language.printing import format_number
from symformer_jax.presentation import figures
from symformer_jax.presentation.guess_lines import guess_line
from symformer_jax.presentation.latex_table import latex_table
from symformer_jax.presentation.numerals import (
  degrees_of_freedom,
  format_error,
  format_r2,
  interval,
  num_errors,
  r2_label,
  shown_r2,
)
from symformer_jax.results import Constant, Equation, SearchResult
from symformer_jax.selection import choice

FORMATS = (".html", ".htm")
# Drawn as lines, more dots than this make a large page; above it figures are pixels.
MAX_VECTOR_DOTS = 1000
DPI = 110
# Points: somewhat larger than the text around it, whose exponents can be read.
FORMULA_SIZE = 16
# Letters of LaTeX that are set, which takes long: names may have any length, and nobody reads a picture of more.
MAX_SET = 4000
_LANGUAGES = {"numpy": "Python, NumPy", "jax": "Python, JAX", "torch": "Python, torch", "c": "C", "julia": "Julia",
              "excel": "Excel"}


def write_page(
  result: SearchResult, selected: Equation, data: figures.Data, path: str | os.PathLike, *, name: str,
  notes: Sequence[str] = (),
) -> None:
  """Writes `make_page` to a file, whole or not at all."""
  files.write_text(path, make_page(result, selected, data, name=name, notes=notes))


def make_page(
  result: SearchResult, selected: Equation, data: figures.Data, *, name: str, notes: Sequence[str] = ()
) -> str:
  """The page as text.

  Args:
    result: of status `ok`; selected: the line of its front that is shown.
    data: what was searched.
    name: of the data; notes: what was changed in them, one sentence each.
  """
  assert result.best is not None
  degrees = degrees_of_freedom(result, selected)
  return _environment().get_template("page.html.jinja").render(
    **_front(result.pareto, result.best, selected, target=data.target, loss=result.loss,
             is_weighted=result.is_weighted),
    selected=selected, formula_image=_draw_formula(selected), figure=_draw(result, selected, data),
    facts=[*_facts(result, data, name), *_filled(selected)],
    ranges=_ranges(result), constants=[_constant(constant, degrees) for constant in selected.all_constants],
    num_errors=f"{num_errors(degrees):.3g}", degrees=max(degrees, 0),
    has_units=selected.number_units is not None,
    whole_numbers=[f"{value:g} {unit}" for value, unit in selected.whole_numbers],
    rejected=[{"expression": line.expression, "complexity": line.complexity, "r2": format_r2(line.r2),
               "reason": line.reason} for line in (result.seen.rejected if result.seen else ())],
    messages=[text for text in (*notes, *result.message.split("; ")) if text],
    guesses=[guess_line(guess, loss=result.loss, is_weighted=result.is_weighted) for guess in result.guesses],
    sources=_sources(result, selected))


def front_html(
  lines: Sequence[Equation], best: Equation, selected: Equation, *, is_weighted: bool, loss: str = "squared"
) -> str:
  """The front as an HTML table, for a notebook."""
  return _environment().get_template("front.html.jinja").render(
    **_front(lines, best, selected, target="y", loss=loss, is_weighted=is_weighted))


@functools.cache
def _environment() -> Any:
  import jinja2

  return jinja2.Environment(loader=jinja2.PackageLoader("symformer_jax.presentation", ""), autoescape=True,
                            undefined=jinja2.StrictUndefined)


def _front(
  lines: Sequence[Equation], best: Equation, selected: Equation, *, target: str, loss: str, is_weighted: bool
) -> dict[str, Any]:
  """What the table of the front shows."""
  simple = choice.simplest_good(lines, best)

  def marks(line: Equation) -> str:
    return ", ".join(name for name, other in ((choice.RECOMMENDED, best), (choice.SIMPLE, simple)) if line is other)

  label = r2_label(loss, is_weighted=is_weighted)
  return {"target": target, "r2_label": label, "weighted": "weighted " if is_weighted else "", "lines": [
    {"expression": line.expression, "complexity": line.complexity, "r2": shown_r2(line, loss),
     "rmse": format_error(line.rmse), "relative_error": format_error(line.relative_error), "marks": marks(line),
     "is_taken": line is selected} for line in lines]}


def _facts(result: SearchResult, data: figures.Data, name: str) -> Iterator[tuple[str, str]]:
  yield "data", name
  yield "target", data.target
  yield "columns", ", ".join(data.features)
  if result.units:
    pairs = zip([*data.features, data.target], result.units, strict=True)
    yield "units", ", ".join(f"{name} in {unit}" for name, unit in pairs)
  yield "points", str(len(data.y))
  yield "errors made small", result.loss + (", rows weighted" if result.is_weighted else "")
  if result.seen is not None and result.seen.noise is not None:
    share = format_number(100 * result.seen.noise, 2)
    yield "left unexplained by the recommended formula", f"{share} % of the target's spread"
  yield "model", result.model
  yield "candidates", f"{result.counts.sampled} drawn from the model, {result.counts.distinct} different"
  if result.ended_by:
    turns = f"{len(result.rounds)} turn{'' if len(result.rounds) == 1 else 's'}"
    yield "search", (f"{turns}, {result.seconds.total:.1f} s, ended by {result.ended_by}, "
                     f"seed {result.seed}")


def _filled(selected: Equation) -> Iterator[tuple[str, str]]:
  """What stands in a template."""
  if selected.filled is not None:
    yield from selected.filled.functions
    for name, constant in selected.filled.parameters:
      error = "" if constant.stderr is None else f" ± {format_number(constant.stderr, 2)}"
      unit = "" if constant.unit in (None, "1") else f" {constant.unit}"
      yield name, f"{constant.value:.15g}{error}{unit}"


def _ranges(result: SearchResult) -> list[tuple[str, str, str, str]]:
  if result.seen is None:
    return []
  return [(name, f"{low:.6g}", f"{high:.6g}", "not in the recommended formula" if name in result.seen.unused else "")
          for name, (low, high) in result.seen.ranges.items()]


def _constant(constant: Constant, degrees: int) -> dict[str, str]:
  ends = interval(constant, degrees)
  error = "" if constant.stderr is None else format_number(constant.stderr, 2)
  return {"value": f"{constant.value:.15g}", "stderr": error,
          "interval": "" if ends is None else f"{ends[0]:.6g} to {ends[1]:.6g}", "exact": constant.exact or "",
          "unit": constant.unit or ""}


def _sources(result: SearchResult, selected: Equation) -> list[tuple[str, str]]:
  texts = [(title, selected.source(language)) for language, title in _LANGUAGES.items()]
  return [*texts, ("LaTeX", selected.latex), ("LaTeX, table of the formulas", latex_table(result.pareto, selected))]


def _draw(result: SearchResult, selected: Equation, data: figures.Data) -> str:
  form = "svg" if min(len(data.y), figures.MAX_DOTS) <= MAX_VECTOR_DOTS else "png"
  figure = figures.make_figure(result, selected, data)
  return _image(lambda file: figure.savefig(file, format=form, dpi=DPI), form)


def _draw_formula(selected: Equation) -> str | None:
  """The formula as it is set in print; None where that is too long, nested too deep, or has letters that cannot be set.
  """
  from matplotlib import font_manager, mathtext

  if len(selected.latex) > MAX_SET:
    return None
  font = font_manager.FontProperties(size=FORMULA_SIZE)
  try:
    return _image(lambda file: mathtext.math_to_image(f"${selected.latex}$", file, font, format="svg"), "svg")
  except (ValueError, RecursionError):
    return None


def _image(draw: Callable[[io.BytesIO], Any], form: str) -> str:
  """A picture as the address of an <img>, in which not even an SVG can run scripts."""
  file = io.BytesIO()
  with warnings.catch_warnings(action="ignore"):  # letters that the font has not: names may have any
    draw(file)
  kind = {"svg": "image/svg+xml", "png": "image/png"}[form]
  return f"data:{kind};base64,{base64.b64encode(file.getvalue()).decode()}"


