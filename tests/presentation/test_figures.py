"""The picture: what is drawn where."""

import numpy as np
import pytest

from symformer_jax.commands.tables import Table
from symformer_jax.language import parser
from symformer_jax.presentation import figures
from symformer_jax.results import Counts, Equation, SearchResult, Seconds
from symformer_jax.selection import scoring


def draw(texts, x, y, *, selected, weights=None):
  """`(axes by name, equations)` of a front whose last formula is recommended."""
  names = tuple("xz"[: x.shape[1]])
  equations = []
  for text in texts:
    node = parser.parse(text, names)
    scores = scoring.score(scoring.evaluate(node, x), y, weights)
    equations.append(Equation(node, names, scores.mse, scores.r2, scores.relative_error, ()))
  weights = np.ones(len(y)) if weights is None else weights
  result = SearchResult("ok", "", equations[-1], tuple(equations), Counts(), Seconds(), 0, len(y), "fixed",
                        weights=weights)
  figure = figures.make_figure(result, equations[selected], Table("t.csv", names, "y", x, y))
  axes = {axes.get_label(): axes for axes in figure.axes if axes.get_label() != "partial"}
  return axes | {"partial": [axes for axes in figure.axes if axes.get_label() == "partial"]}, equations


def dots(axes):
  [line] = [line for line in axes.lines if line.get_linestyle() == "None" and len(line.get_xdata()) > 5]
  return np.array(line.get_xdata()), np.array(line.get_ydata())


@pytest.mark.parametrize("selected", [1, 2])
def test_of_one_column_the_band_and_the_residuals_are_those_of_the_line_taken(selected, rng):
  x = np.sort(rng.uniform(1, 5, 50))[:, None]
  y = 2.31 * x[:, 0] + 1.12 + rng.normal(size=50)
  axes, equations = draw(["8.2", "2.31*x + 1.12", "2.3*x + 1.1 + 0.012*x**2"], x, y, selected=selected)
  values = scoring.evaluate(equations[selected].node, x)
  where, residuals = dots(axes["residuals"])
  np.testing.assert_allclose(where, x[:, 0])
  np.testing.assert_allclose(residuals, y - values)
  [band] = axes["fit"].collections
  corners = band.get_paths()[0].vertices
  middle = scoring.evaluate(equations[selected].node, np.array([[3.0]]))[0]
  near = corners[np.abs(corners[:, 0] - 3) < 0.02, 1]
  assert near.min() < middle < near.max() and 0.1 < np.ptp(near) < 2  # 4 standard errors of the mean are .57
  assert axes["fit"].get_xlim() == axes["residuals"].get_xlim()


def test_of_more_columns_observations_stand_over_predictions(rng):
  x = rng.uniform(1, 5, (40, 2))
  y = 2.31 * x[:, 0] * x[:, 1] + rng.normal(size=40)
  axes, equations = draw(["8.2", "2.3*x*z"], x, y, selected=1)
  values = scoring.evaluate(equations[1].node, x)
  for name, expected in (("fit", y), ("residuals", y - values)):
    where, what = dots(axes[name])
    np.testing.assert_allclose(where, values)
    np.testing.assert_allclose(what, expected)


def test_weighted_data_over_decades_have_logarithmic_axes_and_shares(rng):
  x = np.exp(rng.uniform(-3, 3, 60))[:, None]
  y = 4.4 * x[:, 0] ** 1.1 * np.exp(0.1 * rng.normal(size=60))
  axes, equations = draw(["0.4", "4.4*x**1.1"], x, y, selected=1, weights=y**-2)
  assert axes["fit"].get_yscale() == axes["fit"].get_xscale() == "log"
  values = scoring.evaluate(equations[1].node, x)
  np.testing.assert_allclose(dots(axes["residuals"])[1], y / values - 1)
  plain, _ = draw(["0.4", "4.4*x**1.1"], x, y, selected=1)
  assert plain["fit"].get_yscale() == "linear" and axes["front"].get_ylabel() == "weighted RMSE"


def test_the_staircase_of_the_front_never_rises(rng):
  x = rng.uniform(1, 5, 30)[:, None]
  y = 1407 / x[:, 0]
  axes, _ = draw(["500", "1407/x", "950 - 150*x"], x, y, selected=1)
  [stairs] = [line for line in axes["front"].lines if line.get_drawstyle() == "steps-post"]
  assert np.all(np.diff(stairs.get_ydata()) <= 0)
  assert {text.get_text() for text in axes["front"].get_legend().get_texts()} == {"recommended", "simple"}


def test_partial_plots_hold_the_other_columns_at_their_medians(rng):
  x = rng.uniform(1, 5, (40, 2))
  y = 2.31 * x[:, 0] * x[:, 1] ** 2 + rng.normal(size=40)
  axes, equations = draw(["8.2", "2.3*x*z**2", "2.3*z"], x, y, selected=1)
  assert [panel.get_xlabel() for panel in axes["partial"]] == ["x", "z"]
  residuals = y - scoring.evaluate(equations[1].node, x)
  medians = np.median(x, axis=0)
  for column, panel in enumerate(axes["partial"]):
    curve = (lambda t: 2.3 * t * medians[1] ** 2, lambda t: 2.3 * medians[0] * t**2)[column]
    where, what = dots(panel)
    np.testing.assert_allclose(where, x[:, column])
    np.testing.assert_allclose(what, curve(where) + residuals)
    [line] = [line for line in panel.lines if line.get_linestyle() == "-"]
    np.testing.assert_allclose(line.get_ydata(), curve(line.get_xdata()))
  assert [panel.get_xlabel() for panel in draw(["8.2", "2.3*z"], x, y, selected=1)[0]["partial"]] == ["z"]
  assert not draw(["8.2", "2.3*z"], x, y, selected=0)[0]["partial"]
  assert not draw(["8.2", "2.3*x"], x[:, :1], y, selected=1)[0]["partial"]


def test_partial_plots_on_logarithmic_axes_keep_shares_and_at_a_pole_say_so(rng):
  x = np.exp(rng.uniform(-2, 2, (41, 2)))
  y = 4.4 * x[:, 0] ** 2 * x[:, 1] * np.exp(0.1 * rng.normal(size=41))
  axes, equations = draw(["0.4", "4.4*x**2*z"], x, y, selected=1, weights=y**-2)
  where, what = dots(axes["partial"][0])
  share = y / scoring.evaluate(equations[1].node, x)
  np.testing.assert_allclose(what, 4.4 * where**2 * np.median(x[:, 1]) * share)
  assert axes["partial"][0].get_yscale() == "log"
  pole = float(np.median(x[:, 1]))
  axes, _ = draw(["0.4", f"x + log(z - {pole!r})"], x, y, selected=1)
  assert axes["partial"][0].get_title() == "undefined at the medians of the others"


def test_of_many_columns_those_that_matter_most_have_panels(rng):
  x = rng.uniform(1, 2, (30, 6))
  names = tuple("abcdef")
  node = parser.parse("a + 9*b + 8*c + 7*d + 6*e + 0.1*f", names)
  y = scoring.evaluate(node, x) + rng.normal(size=30)
  line = Equation(node, names, 1.0, 0.9, None, ())
  result = SearchResult("ok", "", line, (line,), Counts(), Seconds(), 0, 30, "fixed")
  figure = figures.make_figure(result, line, Table("t.csv", names, "y", x, y))
  assert [axes.get_xlabel() for axes in figure.axes if axes.get_label() == "partial"] == ["b", "c", "d", "e"]


def test_any_text_may_be_a_name(tmp_path, rng):
  x, names = rng.uniform(1, 5, (20, 2)), ("a$x_{$", "\u6f22\n$\\frac$" + "n" * 500)
  node = parser.parse("2*a*b", ["a", "b"])
  line = Equation(node, names, 1.0, 0.9, None, ())
  result = SearchResult("ok", "", line, (line,), Counts(), Seconds(), 0, 20, "fixed")
  figures.draw_result(result, line, Table("t.csv", names, "$\\bad$", x, scoring.evaluate(node, x)), tmp_path / "f.svg")
  assert (tmp_path / "f.svg").read_text().rstrip().endswith("</svg>")


def test_labels_are_letters_that_can_be_drawn():
  assert figures.as_label("a\ud800 $b$") == "a\\ud800 \\$b\\$"
  assert figures.as_label("a" * 99) == "a" * 57 + "..."
