"""The moving picture: candidates of the model on their way through refinement to the data."""

from collections.abc import Sequence
import os
from typing import TYPE_CHECKING
import warnings

import numpy as np

from symformer_jax.commands.tables import Table
from symformer_jax.presentation.figures import MAX_DOTS, NUM_CURVE_POINTS, as_label
from symformer_jax.selection import scoring

if TYPE_CHECKING:  # an extra, and behind the other lies all of inference: a look at the formats should not wait for it
  from matplotlib.axes import Axes

  from symformer_jax.commands.trajectories import Trajectory

FORMATS = (".gif", ".mp4")
FRAMES_PER_S = 8
# Frames of the first and the last step, so that the eye can rest there.
NUM_STILL_FRAMES = 8


def can_write(suffix: str) -> bool:
  """Whether films of a suffix can be written here: .mp4 takes the program ffmpeg, .gif nothing."""
  from matplotlib import animation

  return suffix == ".gif" or animation.FFMpegWriter.isAvailable()


def draw(trajectories: "Sequence[Trajectory]", table: Table, path: str | os.PathLike) -> int:
  """Films candidates on their way through refinement to the data; returns the number of frames.

  Args:
    trajectories: at least one, the best first.
    table: the data; with one feature curves over it are shown, with more predictions against observations.
    path: the suffix chooses the format, one of `FORMATS`.
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
  with warnings.catch_warnings(action="ignore"):  # letters that the font has not: names may have any
    film.save(os.fspath(path), writer=writer(fps=FRAMES_PER_S), dpi=80)
  return len(steps)


def _set_stage(axes: "Axes", table: Table) -> tuple[np.ndarray, np.ndarray, str]:
  """Draws what stands still: `(points [M, D] at which candidates are drawn, their places [M], style)`."""
  step = -(-len(table.y) // MAX_DOTS)
  x, y = table.x[::step], table.y[::step]
  margin = 0.1 * np.ptp(table.y)
  axes.set_ylim(table.y.min() - margin, table.y.max() + margin)
  if len(table.features) == 1:
    axes.plot(x[:, 0], y, "o", color="black", markersize=3, zorder=3)
    axes.set(xlabel=as_label(table.features[0]), ylabel=as_label(table.target))
    grid = np.linspace(table.x.min(), table.x.max(), NUM_CURVE_POINTS)
    return grid[:, None], grid, "-"
  axes.axline((y.min(), y.min()), slope=1, color="0.75", linewidth=1)
  axes.set(xlabel=as_label(f"{table.target}, observed"), ylabel=as_label(f"{table.target}, predicted"))
  return x, y, "o"


def _last_change(trajectories: "Sequence[Trajectory]") -> int:
  """The last step at which any of them still moved."""
  return max((step for t in trajectories for step in range(1, len(t.nodes)) if t.nodes[step] != t.nodes[step - 1]),
             default=0)
