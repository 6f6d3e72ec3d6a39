"""Figures of a suite: what is drawn of which rows, and how; every figure keeps its labels apart."""

import types

import matplotlib
import numpy as np
from PIL import Image
import pytest

from symformer_jax.evaluation import plots, problems
from symformer_jax.evaluation.runs import Row
from symformer_jax.language import parser

FIGURES = {"share_r2_above_0.99": 0.9, "share_r2_above_0.999": 0.8, "share_r2_above_0.9999": 0.7,
           "share_recovered": 0.6, "median_relative_error": 0.1, "median_r2": 0.5}


def row(name, **changed):
  values = {"n_vars": 1, "seed": 0, "truth": "x", "predicted": "x", "fvu": 0.5, "seconds": 1.0}
  return Row("f", name, **values | changed)


def problem(text, box):
  names = ("x", "y")[:len(box)]
  return problems.Problem("f", "n", parser.parse(text, names), text, box, 20)


def curve_of(truth="x", predicted="x", **changed):
  one = row("n", predicted=predicted, **changed)
  with np.errstate(all="ignore"):
    return plots.draw_predictions([one], {one.key: problem(truth, ((0.0, 2.0),))})


def test_every_figure_keeps_its_labels_apart():
  timed = {"max_time=3": FIGURES}
  figures = [curve_of(), plots.draw_variants({"a": FIGURES, "b": FIGURES}),
             plots.draw_distance({"distance=1": FIGURES}), plots.draw_anytime(timed), plots.draw_time([row("a")])]
  assert [type(figure.get_layout_engine()).__name__ for figure in figures] == ["ConstrainedLayoutEngine"] * 5
  sizes = [figure.get_size_inches().tolist() for figure in figures]
  assert sizes == [[4, 3], [7, 4], [10, 4], [10, 4], [6, 4]]
  for figure in figures[1:]:
    for axes in figure.axes:
      assert axes.get_xgridlines()[0].get_visible() and axes.get_xgridlines()[0].get_alpha() == 0.3


def test_pictures_are_written_sharp_and_whole(tmp_path):
  plots.save(curve_of(), tmp_path / "figure.svg")
  with Image.open(tmp_path / "figure.svg") as image:
    assert image.format == "PNG" and image.size == (440, 330)
  assert [path.name for path in tmp_path.iterdir()] == ["figure.svg"]


def test_figures_that_there_are_are_named_by_their_captions(tmp_path, monkeypatch):
  saved = []
  monkeypatch.setattr(plots, "save", lambda figure, path: saved.append(path.name))
  rows = [row("n")]
  drawn = plots.draw_all(tmp_path, rows, {}, {"variants": {"distance=1": FIGURES, "distance=2": FIGURES}})
  assert saved == list(drawn.values()) == ["variants.png", "distance.png", "time.png"]
  drawn = plots.draw_all(tmp_path, rows, {rows[0].key: problem("x", ((0.0, 1.0),))}, {
    "variants": {"max_time=1": FIGURES}})
  assert list(drawn.values()) == ["predictions.png", "time.png", "anytime.png"]


def test_panels_are_of_the_last_variant_and_have_small_letters():
  rows = [row("a", variant="one"), row("b", variant="two"), row("$c$", variant="two"),
          row("d", variant="two", predicted=None), row("unknown", variant="two")]
  shown = {each.key: problem("x", ((0.0, 2.0),)) for each in rows[:4]}
  figure = plots.draw_predictions(rows, shown)
  assert [axes.get_title() for axes in figure.axes] == ["b\nx", "$c$\nx"]
  for axes in figure.axes:
    assert not axes.title.get_parse_math() and axes.title.get_size() == 8
    assert {label.get_size() for label in axes.get_xticklabels()} == {7}
    [places] = {axes.get_subplotspec().get_gridspec().get_geometry()}
    assert places == (1, 2)


def test_curves_go_a_quarter_of_the_box_beyond_it():
  one = row("n")
  x = plots.draw_predictions([one], {one.key: problem("x", ((10.0, 12.0),))}).axes[0].lines[0].get_xdata()
  assert (x[0], x[-1], len(x)) == (9.5, 12.5, 400)


def test_what_is_undefined_is_a_gap():
  axes = curve_of("log(x - 1)", "log(x)").axes[0]
  truth, prediction = (line.get_ydata() for line in axes.lines)
  x = axes.lines[0].get_xdata()
  assert np.isnan(truth[x < 1]).all() and np.isfinite(truth[x > 1.01]).all() and np.isnan(prediction[x < 0]).all()
  nowhere = curve_of("log(-1 - x**2)", "x").axes[0]
  assert nowhere.get_ylim()[1] <= 2.7  # as the prediction has it


def surface_of(truth, predicted):
  """What is asked of the axes of a surface."""
  asked = {}
  axes = types.SimpleNamespace(
    plot_surface=lambda *args, **options: asked.update(surface=(args, options)),
    plot_wireframe=lambda *args, **options: asked.update(wire=(args, options)),
    set_zlim=lambda *ends: asked.update(ends=ends))
  with np.errstate(all="ignore"):
    plots._draw_surfaces(axes, problem(truth, ((0.0, 1.0), (0.0, 2.0))), row("n", n_vars=2, predicted=predicted))
  return asked


def test_surfaces_are_drawn_without_poles():
  asked = surface_of("x*y + 1", "1 + x*y + 10*x*y*(x*y - 1)*(x*y - 2)")
  (x, y, truth), options = asked["surface"]
  assert x.shape == y.shape == truth.shape == (50, 50)
  np.testing.assert_allclose(truth, x * y + 1)
  assert (x.min(), x.max(), y.min(), y.max()) == (0, 1, 0, 2) and asked["ends"] == pytest.approx((0.8, 3.2))
  assert options == {"color": plots.TRUTH_COLOUR, "alpha": 0.5, "linewidth": 0}
  (_, _, prediction), options = asked["wire"]
  assert options == {"color": plots.PREDICTED_COLOUR, "linewidth": 0.6, "rcount": 15, "ccount": 15}
  expected = truth + 10 * (truth - 1) * (truth - 2) * (truth - 3)
  is_near = (expected >= 0.8) & (expected <= 3.2)
  np.testing.assert_allclose(prediction[is_near], expected[is_near])
  assert np.isnan(prediction[~is_near]).all() and 0 < is_near.mean() < 1
  assert surface_of("log(-1 - x*y)", "x") == {}
  flat = surface_of("3 + 0*x", "4 + 0*x")
  assert flat["ends"] == (2.0, 4.0) and (flat["wire"][0][2] == 4).all()


def test_lines_of_time_are_sorted_and_shared():
  variants = {f"{who}max_time={seconds}": FIGURES for who in ("", "operon ") for seconds in (10, 3)}
  figure = plots.draw_anytime(variants | {"noise=1": FIGURES})
  assert [axes.get_title() for axes in figure.axes] == ["R2 > 0.999", "R2 > 0.9999", "recovered"]
  first = figure.axes[0]
  for axes in figure.axes:
    assert first.get_shared_y_axes().joined(first, axes) and axes.get_xscale() == "log"
    assert [list(line.get_xdata()) for line in axes.lines] == [[3, 10]] * 2
    assert {line.get_marker() for line in axes.lines} == {"o"} and axes.get_legend() is not None
    assert axes.get_xlabel() == "seconds allowed" and axes.get_ylim() == (-0.02, 1.02)
  assert [axes.lines[0].get_ydata()[0] for axes in figure.axes] == [0.8, 0.7, 0.6]
  again = plots.draw_anytime({"max_time=3": FIGURES, "max_time=3.0": FIGURES})  # one time, twice
  assert [list(axes.lines[0].get_xdata()) for axes in again.axes] == [[3, 3]] * 3


def test_errors_over_the_distance_have_gaps():
  figure = plots.draw_distance({"distance=2": FIGURES, "distance=1": FIGURES | {"median_r2": None}, "other": FIGURES})
  error, r2 = figure.axes
  assert list(error.lines[0].get_ydata()) == [0.1, 0.1] and r2.lines[0].get_ydata()[1] == 0.5
  assert np.isnan(r2.lines[0].get_ydata()[0]) and {axes.lines[0].get_marker() for axes in figure.axes} == {"o"}
  assert {axes.get_xlabel() for axes in figure.axes} == {"distance d: 5 < |x| < 5 + d"}
  assert [axes.get_ylabel() for axes in figure.axes] == ["median relative error", "median R2"]
  assert {axes.lines[0].get_color() for axes in figure.axes} == {plots.PREDICTED_COLOUR}


def test_dots_of_time_have_a_colour_for_each_variant():
  rows = [row("a", fvu=0.0), row("b", variant="v", seconds=2.0), row("c", variant="w"), row("d", fvu=None)]
  axes = plots.draw_time(rows).axes[0]
  assert [each.get_offsets().tolist() for each in axes.collections] == [[[1, 1e-16]], [[2, 0.5]], [[1, 0.5]]]
  colours = [tuple(each.get_facecolor()[0][:3]) for each in axes.collections]
  expected = [tuple(matplotlib.colormaps["viridis"](at)[:3]) for at in (0, 0.45, 0.9)]
  np.testing.assert_allclose(colours, expected, atol=0.01)
  assert {text.get_size() for text in axes.get_legend().get_texts()} == {8}
  assert axes.get_xlabel() == "seconds, without compilation" and axes.get_ylabel().startswith("1 - R2 on fresh points")
