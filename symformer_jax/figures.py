"""The picture of a search: data, recommended formula, and the front it was chosen from."""

import os

import numpy as np

from symformer_jax.results import Equation, SearchResult
from symformer_jax.selection import scoring
from symformer_jax.tables import Table

# Points along a curve: smooth at print size.
NUM_CURVE_POINTS = 400
# More dots than this hide each other; a regular sub-sample is drawn.
MAX_DOTS = 5000
FORMATS = (".png", ".pdf", ".svg")


def draw_result(result: SearchResult, table: Table, path: str | os.PathLike) -> None:
  """Draws the fit and the front side by side into a file.

  Args:
    result: of status `ok`.
    table: the data searched; with one feature the left panel shows curves over it, with more predictions
      against observations.
    path: the suffix chooses the format, one of `FORMATS`.
  """
  from matplotlib.backends.backend_agg import FigureCanvasAgg
  from matplotlib.figure import Figure

  # No pyplot: no global state, no display.
  figure = Figure(figsize=(11, 4.5), layout="constrained")
  FigureCanvasAgg(figure)
  fit_axes, front_axes = figure.subplots(1, 2, width_ratios=(3, 2))
  draw = _draw_curves if len(table.features) == 1 else _draw_predictions
  draw(fit_axes, result, table)
  _draw_front(front_axes, result)
  figure.savefig(path, dpi=150)


def _dots(table: Table) -> tuple[np.ndarray, np.ndarray]:
  step = -(-len(table.y) // MAX_DOTS)
  return table.x[::step], table.y[::step]


def _draw_curves(axes, result: SearchResult, table: Table) -> None:
  x, y = _dots(table)
  grid = np.linspace(table.x.min(), table.x.max(), NUM_CURVE_POINTS)
  for equation in result.pareto:
    if equation is not result.best:
      axes.plot(grid, _values(equation, grid[:, None]), color="0.75", linewidth=1, zorder=1)
  axes.plot(grid, _values(result.best, grid[:, None]), color="C0", linewidth=2, zorder=2,
            label=_shortened(f"{table.target} = {_short_text(result.best)}"))
  axes.plot(x[:, 0], y, "o", color="black", markersize=4, zorder=3, label="data")
  margin = 0.05 * np.ptp(table.y)  # curves of the front may leave for infinity
  axes.set(xlabel=table.features[0], ylabel=table.target, ylim=(table.y.min() - margin, table.y.max() + margin))
  axes.legend(loc="best", fontsize="small")


def _draw_predictions(axes, result: SearchResult, table: Table) -> None:
  x, y = _dots(table)
  axes.axline((y.min(), y.min()), slope=1, color="0.75", linewidth=1)
  axes.plot(y, _values(result.best, x), "o", color="C0", markersize=4)
  axes.set(xlabel=f"{table.target}, observed", ylabel=f"{table.target}, predicted",
           title=_shortened(f"{table.target} = {_short_text(result.best)}"))


def _draw_front(axes, result: SearchResult) -> None:
  complexity = [equation.complexity for equation in result.pareto]
  # A perfect fit has no place on a logarithmic axis: it is drawn at the resolution of float64.
  error = [max(equation.rmse, 1e-16) for equation in result.pareto]
  axes.step(complexity, error, where="post", color="0.75")
  axes.plot(complexity, error, "o", color="0.4")
  axes.plot(result.best.complexity, max(result.best.rmse, 1e-16), "o", color="C0", markersize=9, label="recommended")
  axes.set(xlabel="complexity", ylabel="RMSE", yscale="log")
  axes.xaxis.get_major_locator().set_params(integer=True)
  axes.legend(loc="best", fontsize="small")


def _values(equation: Equation, x: np.ndarray) -> np.ndarray:
  values = scoring.evaluate(equation.node, x)
  return np.where(np.isfinite(values), values, np.nan)


def _short_text(equation: Equation) -> str:
  # Dollar signs would start mathematical text in a label.
  return equation.expression.replace("$", "\\$")


def _shortened(text: str, length: int = 60) -> str:
  return text if len(text) <= length else text[: length - 3] + "..."
