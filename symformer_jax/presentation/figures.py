"""The picture of a search: data, the formula that is taken, what each column does in it, and the front."""

from collections.abc import Sequence
import os
from typing import TYPE_CHECKING, Any, Protocol
import warnings

import numpy as np

from symformer_jax.language import expression
from symformer_jax.language.expression import VARIABLE
from symformer_jax.presentation.numerals import degrees_of_freedom, num_errors
from symformer_jax.results import Equation, SearchResult
from symformer_jax.selection import choice, rounding, scoring

if TYPE_CHECKING:  # for which a look at the formats should not wait
  from matplotlib.axes import Axes
  from matplotlib.figure import Figure

# Points along a curve: smooth at print size.
NUM_CURVE_POINTS = 400
# More dots than this hide each other; a regular sub-sample is drawn.
MAX_DOTS = 5000
# Columns that get a panel of their own; more would be too narrow to read.
MAX_PARTIAL = 4
FORMATS = (".png", ".pdf", ".svg")


class Data(Protocol):
  """The points that were searched: a table of a file, or what an estimator was fitted to.

  Attributes:
    features: names of the columns of x; target: name of y, any text.
    x: [N, D] float64; y: [N] float64; all finite.
  """

  @property
  def features(self) -> Sequence[str]: ...

  @property
  def target(self) -> str: ...

  @property
  def x(self) -> np.ndarray: ...

  @property
  def y(self) -> np.ndarray: ...


def draw_result(result: SearchResult, selected: Equation, data: Data, path: str | os.PathLike) -> None:
  """Draws `make_figure` into a file whose suffix, one of `FORMATS`, chooses the format."""
  with warnings.catch_warnings(action="ignore"):  # letters that the font has not: names may have any
    make_figure(result, selected, data).savefig(path, dpi=150)


def make_figure(result: SearchResult, selected: Equation, data: Data) -> "Figure":
  """The fit, its residuals under it, the front beside both; of several columns a panel for each under these.

  Args:
    result: of status `ok`; selected: the line of its front that is drawn.
    data: what was searched; with one feature the left panels show curves over it and a band from the covariance of
      the constants, with more observations against predictions, and partial plots of the columns that the formula has
      (see `_draw_partial`). Weighted data over decades get logarithmic axes, and residuals are then shares.
  """
  from matplotlib.backends.backend_agg import FigureCanvasAgg
  from matplotlib.figure import Figure

  partial = _choose_columns(selected, data.x) if len(data.features) > 1 else []
  # No pyplot: no global state, no display.
  figure = Figure(figsize=(11, 8.5 if partial else 5.5), layout="constrained")
  FigureCanvasAgg(figure)
  upper, lower = figure.subfigures(2, 1, squeeze=False, height_ratios=(5.5, 3))[:, 0] if partial else (figure, None)
  panels = upper.subplot_mosaic(
    [["fit", "front"], ["residuals", "front"]], width_ratios=(3, 2), height_ratios=(3, 1))
  panels["residuals"].sharex(panels["fit"])
  panels["fit"].tick_params(labelbottom=False)
  is_log = result.is_weighted and _spans_decades(data.y)
  if is_log:
    panels["fit"].set_yscale("log")
  draw = _draw_curves if len(data.features) == 1 else _draw_predictions
  horizontal = draw(panels["fit"], result, selected, data)
  _draw_residuals(panels["residuals"], selected, data, horizontal, is_share=is_log)
  _draw_front(panels["front"], result, selected)
  if lower is not None:
    for axes, column in zip(lower.subplots(1, len(partial), squeeze=False)[0], partial, strict=True):
      _draw_partial(axes, selected, data, column, is_log=is_log)
  return figure


def _dots(data: Data) -> tuple[np.ndarray, np.ndarray]:
  step = -(-len(data.y) // MAX_DOTS)
  return data.x[::step], data.y[::step]


def _spans_decades(values: np.ndarray) -> bool:
  """Whether numbers are best shown on a logarithmic axis."""
  return bool(np.all(values > 0) and np.max(values) > 100 * np.min(values))


def _draw_curves(axes: "Axes", result: SearchResult, selected: Equation, data: Data) -> np.ndarray:
  """Data, the formula with its band, the rest of the front in grey; returns where the dots are [M]."""
  x, y = _dots(data)
  is_log = axes.get_yscale() == "log"
  if is_log and _spans_decades(data.x):
    axes.set_xscale("log")
  spread = np.geomspace if axes.get_xscale() == "log" else np.linspace
  grid = spread(data.x.min(), data.x.max(), NUM_CURVE_POINTS)
  for equation in result.pareto:
    if equation is not selected:
      axes.plot(grid, _values(equation, grid[:, None]), color="0.75", linewidth=1, zorder=1)
  values = _values(selected, grid[:, None])
  axes.plot(grid, values, color="C0", linewidth=2, zorder=3,
            label=as_label(f"{data.target} = {selected.expression}"))
  weights = np.ones(len(data.y)) if result.weights is None else result.weights
  is_used = weights > 0
  errors = rounding.curve_errors(
    selected.node, data.x[is_used], data.y[is_used], weights[is_used], grid[:, None])
  if errors is not None:
    half = num_errors(degrees_of_freedom(result, selected)) * errors
    axes.fill_between(grid, values - half, values + half, color="C0", alpha=0.25, linewidth=0, zorder=2,
                      label="95 % band of the curve")
  axes.plot(x[:, 0], y, "o", color="black", markersize=4, zorder=4, label="data")
  # Curves of the front may leave for infinity.
  low, high, margin = data.y.min(), data.y.max(), 0.05 * np.ptp(data.y)
  axes.set(ylabel=as_label(data.target), ylim=(low / 1.5, high * 1.5) if is_log else (low - margin, high + margin))
  axes.legend(loc="best", fontsize="small")
  return x[:, 0]


def _draw_predictions(axes: "Axes", result: SearchResult, selected: Equation, data: Data) -> np.ndarray:
  """Observations over predictions; returns where the dots are [M]."""
  del result
  x, y = _dots(data)
  values = _values(selected, x)
  if axes.get_yscale() == "log" and np.all(values > 0):
    axes.set_xscale("log")
  ends = [y.min(), y.max()]
  axes.plot(ends, ends, color="0.75", linewidth=1)
  axes.plot(values, y, "o", color="C0", markersize=4)
  axes.set(ylabel=as_label(f"{data.target}, observed"), title=as_label(f"{data.target} = {selected.expression}"))
  return values


def _draw_residuals(axes: "Axes", selected: Equation, data: Data, horizontal: np.ndarray, *, is_share: bool) -> None:
  """What the formula leaves, as y less its value or as a share of that, over the horizontal axis of the fit."""
  x, y = _dots(data)
  values = _values(selected, x)
  with np.errstate(all="ignore"):
    left = (y - values) / values if is_share else y - values
  axes.axhline(0, color="0.75", linewidth=1)
  axes.plot(horizontal, left, "o", color="C0" if len(data.features) > 1 else "black", markersize=3)
  label = data.features[0] if len(data.features) == 1 else f"{data.target}, fitted"
  axes.set(xlabel=as_label(label), ylabel="residual / fit" if is_share else "residual")


def _choose_columns(selected: Equation, x: np.ndarray) -> list[int]:
  """Of the columns that a formula has those that change it most, alone, in their order."""
  used = {n.value for n in expression.walk(selected.node) if n.token == VARIABLE}
  effects = {}
  for column in used:
    values = _values(selected, _along(x, column, x[:, column]))
    effects[column] = np.ptp(values[np.isfinite(values)]) if np.isfinite(values).any() else 0.0
  return sorted(sorted(used, key=lambda column: -effects[column])[:MAX_PARTIAL])


def _along(x: np.ndarray, column: int, values: np.ndarray) -> np.ndarray:
  """Points [M, D] whose one column has the values [M] and whose others are at their medians."""
  points = np.repeat(np.median(x, axis=0)[None], len(values), axis=0)
  points[:, column] = values
  return points


def _draw_partial(axes: "Axes", selected: Equation, data: Data, column: int, *, is_log: bool) -> None:
  """The formula over one column, the others at their medians, and the data as far as they differ from it.

  A dot is the curve at its row's value of the column plus the row's residual (times the row's share of the fit on a
  logarithmic axis): what the data would look like, were the other columns held.
  """
  x, y = _dots(data)
  grid = np.linspace(data.x[:, column].min(), data.x[:, column].max(), NUM_CURVE_POINTS)
  curve = _values(selected, _along(data.x, column, grid))
  at_rows, values = _values(selected, _along(data.x, column, x[:, column])), _values(selected, x)
  with np.errstate(all="ignore"):
    dots = at_rows * (y / values) if is_log else at_rows + (y - values)
  axes.set_label("partial")
  if is_log and np.all(dots > 0):
    axes.set_yscale("log")
  axes.plot(x[:, column], dots, "o", color="0.6", markersize=3)
  axes.plot(grid, curve, color="C0", linewidth=2)
  seen = dots[np.isfinite(dots)]
  if len(seen) and axes.get_yscale() == "linear":
    # The curve may leave for infinity between the rows.
    margin = 0.05 * np.ptp(seen) or 1.0
    axes.set_ylim(seen.min() - margin, seen.max() + margin)
  title = "others at their medians" if np.isfinite(curve).any() else "undefined at the medians of the others"
  axes.set(xlabel=as_label(data.features[column]), ylabel=as_label(data.target))
  axes.set_title(title, fontsize="small")


def _draw_front(axes: "Axes", result: SearchResult, selected: Equation) -> None:
  complexity = [equation.complexity for equation in result.pareto]
  # A perfect fit has no place on a logarithmic axis: it is drawn at the resolution of float64, in units of the worst.
  floor = 1e-16 * max((equation.rmse for equation in result.pareto), default=0.0) or np.finfo(np.float64).tiny
  error = [max(equation.rmse, floor) for equation in result.pareto]
  # The mean and the straight line are listed also where a shorter formula beats them: no step goes up.
  axes.step(complexity, np.minimum.accumulate(error), where="post", color="0.75")
  axes.plot(complexity, error, "o", color="0.4")
  simple = choice.simplest_good(result.pareto, result.best)
  marked = {choice.RECOMMENDED: result.best} | ({choice.SIMPLE: simple} if simple is not result.best else {})
  if selected not in marked.values():
    marked["selected"] = selected
  for i, (name, line) in enumerate(marked.items()):
    axes.plot(line.complexity, max(line.rmse, floor), "os^"[i], color=f"C{i}", markersize=9, label=name)
  axes.set(xlabel="complexity", ylabel="weighted RMSE" if result.is_weighted else "RMSE", yscale="log")
  locator: Any = axes.xaxis.get_major_locator()  # the one of linear axes, which has whole numbers as an option
  locator.set_params(integer=True)
  axes.legend(loc="best", fontsize="small")


def _values(equation: Equation, x: np.ndarray) -> np.ndarray:
  values = scoring.evaluate(equation.node, x)
  return np.where(np.isfinite(values), values, np.nan)


def as_label(text: str, length: int = 60) -> str:
  """Text for a figure, cut where it is long; dollar signs would start mathematics in it, halves of letters fail."""
  shortened = text if len(text) <= length else text[: length - 3] + "..."
  return shortened.replace("$", "\\$").encode("utf-8", "backslashreplace").decode()
