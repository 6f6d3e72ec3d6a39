"""The picture of a search: data, recommended formula, and the front it was chosen from; and its moving picture."""

from collections.abc import Sequence
import os
from typing import TYPE_CHECKING

import numpy as np

from symformer_jax.commands.tables import Table
from symformer_jax.results import Equation, SearchResult
from symformer_jax.selection import scoring

if TYPE_CHECKING:  # behind it lies all of inference, which a look at the formats should not wait for
  from symformer_jax.commands.trajectories import Trajectory

# Points along a curve: smooth at print size.
NUM_CURVE_POINTS = 400
# More dots than this hide each other; a regular sub-sample is drawn.
MAX_DOTS = 5000
FORMATS = (".png", ".pdf", ".svg")
MOVING_FORMATS = (".gif", ".mp4")
FRAMES_PER_S = 8
# Frames of the first and the last step, so that the eye can rest there.
NUM_STILL_FRAMES = 8


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
