"""Figures of a report as PNG: predictions beside the truth, shares by variant, error against time."""

from collections.abc import Mapping, Sequence
import pathlib
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d import Axes3D
import numpy as np

from symformer_jax.evaluation.problems import Problem, variable_names
from symformer_jax.evaluation.runs import OWN_LABEL, Row
from symformer_jax.files import replacing
from symformer_jax.language import parser
from symformer_jax.selection import scoring

# The paper's colours, distinct for colour-blind readers as well.
TRUTH_COLOUR, PREDICTED_COLOUR = "#1f77b4", "#d96e0f"
MAX_PANELS = 16
NUM_CURVE_POINTS, NUM_SURFACE_POINTS = 400, 50


def draw_all(
  folder: pathlib.Path, rows: Sequence[Row], problems: Mapping[tuple[str, str, str], Problem],
  summary: Mapping[str, Any],
) -> dict[str, str]:
  """Writes the figures that these rows allow.

  Args:
    folder: where they go.
    rows: judged rows.
    problems: the problem of each row, by `Row.key`.
    summary: see `report.make_summary`.
  Returns:
    Caption -> file name.
  """
  drawn = {}
  for caption, name, figure in (
    ("Prediction (orange) and truth (blue); the sampling range is shaded", "predictions.png",
     draw_predictions(rows, problems)),
    ("Shares of problems by variant", "variants.png", draw_variants(summary["variants"])),
    ("Median error against the distance from the sampled box", "distance.png", draw_distance(summary["variants"])),
    ("1 - R2 against seconds", "time.png", draw_time(rows)),
    ("Shares of problems against the seconds allowed", "anytime.png", draw_anytime(summary["variants"])),
  ):
    if figure is not None:
      save(figure, folder / name)
      drawn[caption] = name
  return drawn


def save(figure: Figure, path: pathlib.Path) -> None:
  """Writes a figure whole or not at all, without a display."""
  with replacing(path) as temporary:
    figure.savefig(temporary, format="png", dpi=110)


def draw_predictions(rows: Sequence[Row], problems: Mapping[tuple[str, str, str], Problem]) -> Figure | None:
  """Up to sixteen panels: curves for one variable, surfaces for two."""
  shown = [row for row in rows if row.predicted and row.key in problems and row.n_vars <= 2]
  if not shown:
    return None
  # Of several variants the last: refined, with the most samples, the most noise.
  shown = [row for row in shown if row.variant == shown[-1].variant][:MAX_PANELS]
  num_columns = min(4, len(shown))
  num_lines = -(-len(shown) // num_columns)
  figure = Figure(figsize=(4 * num_columns, 3 * num_lines), layout="constrained")
  for i, row in enumerate(shown):
    projection, panel = (None, _draw_curve) if row.n_vars == 1 else ("3d", _draw_surfaces)
    axes = figure.add_subplot(num_lines, num_columns, i + 1, projection=projection)
    panel(axes, problems[row.key], row)
    axes.set_title(f"{row.name}\n{_shorten(row.predicted or '')}", fontsize=8, parse_math=False)
    axes.tick_params(labelsize=7)
  return figure


def _shorten(text: str, length: int = 48) -> str:
  return text if len(text) <= length else text[: length - 3] + "..."


def _predict(row: Row, x: np.ndarray) -> np.ndarray:
  assert row.predicted is not None
  return scoring.evaluate(parser.parse(row.predicted, variable_names(row.n_vars)), x)


def _visible(y: np.ndarray) -> np.ndarray:
  return np.where(np.isfinite(y), y, np.nan)


def _draw_curve(axes: Axes, problem: Problem, row: Row) -> None:
  (low, high), = problem.box
  margin = (high - low) / 4  # how far the curves go beyond the data
  x = np.linspace(low - margin, high + margin, NUM_CURVE_POINTS)[:, None]
  truth, prediction = _visible(scoring.evaluate(problem.truth, x)), _visible(_predict(row, x))
  axes.axvspan(low, high, color="0.92")
  axes.plot(x, truth, color=TRUTH_COLOUR, linewidth=3, alpha=0.6)
  axes.plot(x, prediction, color=PREDICTED_COLOUR, linewidth=1.2)
  inside = truth[(x[:, 0] >= low) & (x[:, 0] <= high)]
  if np.isfinite(inside).any():
    bottom, top = np.nanmin(inside), np.nanmax(inside)
    room = 0.3 * (top - bottom) or 1.0
    axes.set_ylim(bottom - room, top + room)  # a pole of the prediction must not flatten the rest


def _draw_surfaces(axes: Axes3D, problem: Problem, row: Row) -> None:
  """The truth as a surface, the prediction as a wire frame upon it."""
  sides = [np.linspace(low, high, NUM_SURFACE_POINTS) for low, high in problem.box]
  grid = np.stack(np.meshgrid(*sides), axis=-1)  # [M, M, 2]
  flat = grid.reshape(-1, 2)
  truth, prediction = (_visible(y).reshape(grid.shape[:2])
                       for y in (scoring.evaluate(problem.truth, flat), _predict(row, flat)))
  if not np.isfinite(truth).any():
    return
  bottom, top = np.nanmin(truth), np.nanmax(truth)
  room = 0.1 * (top - bottom) or 1.0
  # A pole of the prediction must not flatten the rest.
  prediction = np.where(np.abs(prediction - (bottom + top) / 2) <= (top - bottom) / 2 + room, prediction, np.nan)
  axes.plot_surface(*np.moveaxis(grid, -1, 0), truth, color=TRUTH_COLOUR, alpha=0.5, linewidth=0)
  axes.plot_wireframe(*np.moveaxis(grid, -1, 0), prediction, color=PREDICTED_COLOUR, linewidth=0.6,
                      rcount=15, ccount=15)
  axes.set_zlim(bottom - room, top + room)


def draw_variants(variants: Mapping[str, Mapping[str, Any]]) -> Figure | None:
  """Shares above the thresholds, variant by variant; None for a single one."""
  if len(variants) < 2:
    return None
  figure = Figure(figsize=(7, 4), layout="constrained")
  axes = figure.add_subplot()
  for key, label in (("share_r2_above_0.99", "R2 > 0.99"), ("share_r2_above_0.999", "R2 > 0.999"),
                     ("share_r2_above_0.9999", "R2 > 0.9999"), ("share_recovered", "recovered")):
    axes.plot(list(variants), [figures[key] for figures in variants.values()], marker="o", label=label)
  axes.set_ylim(-0.02, 1.02)
  axes.set_ylabel("share of problems")
  axes.grid(alpha=0.3)
  axes.legend()
  return figure


def draw_distance(variants: Mapping[str, Mapping[str, Any]]) -> Figure | None:
  """Median relative error and 1 - R2 against the distance (the paper's figure 4); None for other suites."""
  by_distance = sorted((float(name.removeprefix("distance=")), figures) for name, figures in variants.items()
                       if name.startswith("distance="))
  if not by_distance:
    return None
  figure = Figure(figsize=(10, 4), layout="constrained")
  distances = [distance for distance, _ in by_distance]
  for axes, key, label in zip(figure.subplots(1, 2), ("median_relative_error", "median_r2"),
                              ("median relative error", "median R2"), strict=True):
    # A median that does not exist (half of the rows have no figure) is a gap in the line.
    axes.plot(distances, [np.nan if figures[key] is None else figures[key] for _, figures in by_distance], marker="o",
              color=PREDICTED_COLOUR)
    axes.set(xlabel="distance d: 5 < |x| < 5 + d", ylabel=label)
    axes.grid(alpha=0.3)
  return figure


def draw_anytime(variants: Mapping[str, Mapping[str, Any]]) -> Figure | None:
  """Shares of problems against `max_time`, a panel a share and a line for each who was asked; None for other suites."""
  lines: dict[str, list[tuple[float, Mapping[str, Any]]]] = {}
  for name, figures in variants.items():
    who, found, seconds = name.rpartition("max_time=")
    if found:
      lines.setdefault(who.strip() or OWN_LABEL, []).append((float(seconds), figures))
  if not lines:
    return None
  figure = Figure(figsize=(10, 4), layout="constrained")
  shares = {
    "share_r2_above_0.999": "R2 > 0.999", "share_r2_above_0.9999": "R2 > 0.9999", "share_recovered": "recovered"}
  for axes, (key, label) in zip(figure.subplots(1, len(shares), sharey=True), shares.items(), strict=True):
    for who, points in lines.items():
      points = sorted(points, key=lambda point: point[0])
      axes.plot([seconds for seconds, _ in points], [figures[key] for _, figures in points], marker="o", label=who)
    axes.set(xlabel="seconds allowed", xscale="log", title=label, ylim=(-0.02, 1.02))
    axes.grid(alpha=0.3)
    axes.legend()
  return figure


def draw_time(rows: Sequence[Row]) -> Figure | None:
  """1 - R2 against seconds, one dot per row, a colour for each variant."""
  dots: dict[str, list[tuple[float, float]]] = {}
  for row in rows:
    if row.fvu is not None and row.seconds:
      dots.setdefault(row.variant, []).append((row.seconds, max(row.fvu, 1e-16)))
  if not dots:
    return None
  figure = Figure(figsize=(6, 4), layout="constrained")
  axes = figure.add_subplot()
  colours = matplotlib.colormaps["viridis"](np.linspace(0, 0.9, len(dots))) if len(dots) > 1 else [PREDICTED_COLOUR]
  for (variant, some), colour in zip(dots.items(), colours, strict=True):
    seconds, errors = zip(*some, strict=True)
    axes.scatter(seconds, errors, s=14, alpha=0.6, color=colour, label=variant or OWN_LABEL)
  if len(dots) > 1:
    axes.legend(fontsize=8)
  axes.set_xscale("log")
  axes.set_yscale("log")
  axes.set_xlabel("seconds, without compilation")
  axes.set_ylabel("1 - R2 on fresh points (cut at 1e-16)")
  axes.grid(alpha=0.3)
  return figure
