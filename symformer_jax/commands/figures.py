"""The picture of a search: data, recommended formula, and the front it was chosen from; and its moving picture."""

from collections.abc import Sequence
import os
from typing import TYPE_CHECKING

import numpy as np

from symformer_jax.commands.tables import Table
from symformer_jax.results import Equation, SearchResult
from symformer_jax.selection import choice, rounding, scoring

if TYPE_CHECKING:  # behind these lie matplotlib and all of inference, for which a look at the formats should not wait
  from matplotlib.figure import Figure

  from symformer_jax.commands.trajectories import Trajectory

# Points along a curve: smooth at print size.
NUM_CURVE_POINTS = 400
# More dots than this hide each other; a regular sub-sample is drawn.
MAX_DOTS = 5000
# Standard errors of a band that holds 95 % of normal errors.
NUM_ERRORS = 1.96
FORMATS = (".png", ".pdf", ".svg")
MOVING_FORMATS = (".gif", ".mp4")
FRAMES_PER_S = 8
# Frames of the first and the last step, so that the eye can rest there.
NUM_STILL_FRAMES = 8


def draw_result(result: SearchResult, selected: Equation, table: Table, path: str | os.PathLike) -> None:
  """Draws `make_figure` into a file whose suffix, one of `FORMATS`, chooses the format."""
  make_figure(result, selected, table).savefig(path, dpi=150)


def make_figure(result: SearchResult, selected: Equation, table: Table) -> "Figure":
  """The fit, its residuals under it, and the front beside both.

  Args:
    result: of status `ok`; selected: the line of its front that is drawn.
    table: the data searched; with one feature the left panels show curves over it and a band from the covariance of
      the constants, with more observations against predictions. Weighted data over decades get logarithmic axes, and
      residuals are then shares.
  """
  from matplotlib.backends.backend_agg import FigureCanvasAgg
  from matplotlib.figure import Figure

  # No pyplot: no global state, no display.
  figure = Figure(figsize=(11, 5.5), layout="constrained")
  FigureCanvasAgg(figure)
  panels = figure.subplot_mosaic(
    [["fit", "front"], ["residuals", "front"]], width_ratios=(3, 2), height_ratios=(3, 1))
  panels["residuals"].sharex(panels["fit"])
  panels["fit"].tick_params(labelbottom=False)
  if result.is_weighted and _spans_decades(table.y):
    panels["fit"].set_yscale("log")
  draw = _draw_curves if len(table.features) == 1 else _draw_predictions
  horizontal = draw(panels["fit"], result, selected, table)
  _draw_residuals(panels["residuals"], selected, table, horizontal, is_share=panels["fit"].get_yscale() == "log")
  _draw_front(panels["front"], result, selected)
  return figure


def can_write_movie(suffix: str) -> bool:
  """Whether films of a suffix can be written here: .mp4 takes the program ffmpeg, .gif nothing."""
  from matplotlib import animation

  return suffix == ".gif" or animation.FFMpegWriter.isAvailable()


def draw_movie(trajectories: "Sequence[Trajectory]", table: Table, path: str | os.PathLike) -> int:
  """Films candidates on their way through refinement to the data; returns the number of frames.

  Args:
    trajectories: at least one, the best first.
    table: the data; with one feature curves over it are shown, with more predictions against observations.
    path: the suffix chooses the format, one of `MOVING_FORMATS`.
  """
  from matplotlib import animation
  from matplotlib.backends.backend_agg import FigureCanvasAgg
  from matplotlib.figure import Figure

  figure = Figure(figsize=(7, 4.5), layout="constrained")
  FigureCanvasAgg(figure)
  axes = figure.subplots()
  grid, horizontal, style = _set_stage(axes, table)
  # The best on top.
  lines = [axes.plot([], [], style, color=f"C{i}", markersize=3, zorder=2 - i / 10, alpha=0.8)[0]
           for i in range(len(trajectories))]

  def show(step: int) -> None:
    for line, trajectory in zip(lines, trajectories, strict=True):
      values = scoring.evaluate(trajectory.nodes[step], grid)
      line.set_data(horizontal, np.where(np.isfinite(values), values, np.nan))
    axes.set_title(f"step {step} of refinement, RMSE of the best {trajectories[0].rmse[step]:.3g}")

  num_steps = _last_change(trajectories) + 1
  steps = [0] * NUM_STILL_FRAMES + list(range(num_steps)) + [num_steps - 1] * NUM_STILL_FRAMES
  film = animation.FuncAnimation(figure, show, frames=steps, init_func=lambda: None)
  writer = animation.PillowWriter if str(path).endswith(".gif") else animation.FFMpegWriter
  film.save(path, writer=writer(fps=FRAMES_PER_S), dpi=80)
  return len(steps)


def _set_stage(axes, table: Table) -> tuple[np.ndarray, np.ndarray, str]:
  """Draws what stands still: `(points [M, D] at which candidates are drawn, their places [M], style)`."""
  x, y = _dots(table)
  margin = 0.1 * np.ptp(table.y)
  axes.set_ylim(table.y.min() - margin, table.y.max() + margin)
  if len(table.features) == 1:
    axes.plot(x[:, 0], y, "o", color="black", markersize=3, zorder=3)
    axes.set(xlabel=table.features[0], ylabel=table.target)
    grid = np.linspace(table.x.min(), table.x.max(), NUM_CURVE_POINTS)
    return grid[:, None], grid, "-"
  axes.axline((y.min(), y.min()), slope=1, color="0.75", linewidth=1)
  axes.set(xlabel=f"{table.target}, observed", ylabel=f"{table.target}, predicted")
  return x, y, "o"


def _last_change(trajectories: "Sequence[Trajectory]") -> int:
  """The last step at which any of them still moved."""
  return max((step for t in trajectories for step in range(1, len(t.nodes)) if t.nodes[step] != t.nodes[step - 1]),
             default=0)


def _dots(table: Table) -> tuple[np.ndarray, np.ndarray]:
  step = -(-len(table.y) // MAX_DOTS)
  return table.x[::step], table.y[::step]


def _spans_decades(values: np.ndarray) -> bool:
  """Whether numbers are best shown on a logarithmic axis."""
  return bool(np.all(values > 0) and np.max(values) > 100 * np.min(values))


def _draw_curves(axes, result: SearchResult, selected: Equation, table: Table) -> np.ndarray:
  """Data, the formula with its band, the rest of the front in grey; returns where the dots are [M]."""
  x, y = _dots(table)
  is_log = axes.get_yscale() == "log"
  if is_log and _spans_decades(table.x):
    axes.set_xscale("log")
  spread = np.geomspace if axes.get_xscale() == "log" else np.linspace
  grid = spread(table.x.min(), table.x.max(), NUM_CURVE_POINTS)
  for equation in result.pareto:
    if equation is not selected:
      axes.plot(grid, _values(equation, grid[:, None]), color="0.75", linewidth=1, zorder=1)
  values = _values(selected, grid[:, None])
  axes.plot(grid, values, color="C0", linewidth=2, zorder=3,
            label=_shortened(f"{table.target} = {_short_text(selected)}"))
  weights = np.ones(len(table.y)) if result.weights is None else result.weights
  is_used = weights > 0
  errors = rounding.curve_errors(
    selected.node, table.x[is_used], table.y[is_used], weights[is_used], grid[:, None])
  if errors is not None:
    axes.fill_between(grid, values - NUM_ERRORS * errors, values + NUM_ERRORS * errors, color="C0", alpha=0.25,
                      linewidth=0, zorder=2, label="95 % band of the curve")
  axes.plot(x[:, 0], y, "o", color="black", markersize=4, zorder=4, label="data")
  # Curves of the front may leave for infinity.
  low, high, margin = table.y.min(), table.y.max(), 0.05 * np.ptp(table.y)
  axes.set(ylabel=table.target, ylim=(low / 1.5, high * 1.5) if is_log else (low - margin, high + margin))
  axes.legend(loc="best", fontsize="small")
  return x[:, 0]


def _draw_predictions(axes, result: SearchResult, selected: Equation, table: Table) -> np.ndarray:
  """Observations over predictions; returns where the dots are [M]."""
  del result
  x, y = _dots(table)
  values = _values(selected, x)
  if axes.get_yscale() == "log" and np.all(values > 0):
    axes.set_xscale("log")
  ends = [y.min(), y.max()]
  axes.plot(ends, ends, color="0.75", linewidth=1)
  axes.plot(values, y, "o", color="C0", markersize=4)
  axes.set(ylabel=f"{table.target}, observed", title=_shortened(f"{table.target} = {_short_text(selected)}"))
  return values


def _draw_residuals(axes, selected: Equation, table: Table, horizontal: np.ndarray, *, is_share: bool) -> None:
  """What the formula leaves, as y less its value or as a share of that, over the horizontal axis of the fit."""
  x, y = _dots(table)
  values = _values(selected, x)
  with np.errstate(all="ignore"):
    left = (y - values) / values if is_share else y - values
  axes.axhline(0, color="0.75", linewidth=1)
  axes.plot(horizontal, left, "o", color="C0" if len(table.features) > 1 else "black", markersize=3)
  label = table.features[0] if len(table.features) == 1 else f"{table.target}, fitted"
  axes.set(xlabel=label, ylabel="residual / fit" if is_share else "residual")


def _draw_front(axes, result: SearchResult, selected: Equation) -> None:
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
