"""Parts of figures and pages: what is drawn, how large, how it is set off; numbers as people read them."""

import base64
import dataclasses
import re
import types

import numpy as np
import pytest
from scipy import stats

from symformer_jax.commands.tables import Table
from symformer_jax.errors import InputError
from symformer_jax.language import parser
from symformer_jax.presentation import figures, latex_table, numerals, page
from symformer_jax.results import (
  Constant,
  Counts,
  Equation,
  Filled,
  Progress,
  Rejected,
  SearchResult,
  Seconds,
  Seen,
)
from symformer_jax.selection import rounding, scoring

X = np.linspace(1, 5, 40)[:, None]
Y = 2.31 * X[:, 0] + 1.12 + np.tile([0.3, -0.2, 0.1, -0.2], 10)
TEXTS = ("8.2", "2.31*x + 1.12", "2.3*x + 1.1 + 0.012*x**2")


def equation(text, x=X, y=Y, names=None, constants=(), **more):
  names = names or tuple("xzuvw"[: x.shape[1]])
  node = parser.parse(text, names)
  with np.errstate(all="ignore"):
    scores = scoring.score(scoring.evaluate(node, x), y)
  return Equation(node, names, scores.mse, scores.r2, scores.relative_error, tuple(constants), **more)


def result_of(lines, best=1, num=40, **changed):
  values = {"status": "ok", "message": "", "best": lines[best], "pareto": tuple(lines), "counts": Counts(),
    "seconds": Seconds(),
            "seed": 0, "num_points": num, "model": "m", "weights": np.ones(num)}
  return SearchResult(**values | changed)


def figure_of(texts=TEXTS, x=X, y=Y, best=1, selected=1, target="y", **changed):
  lines = [equation(text, x, y) for text in texts]
  with np.errstate(all="ignore"):
    figure = figures.make_figure(result_of(lines, best, len(y), **changed), lines[selected],
                                 Table("t.csv", lines[0].names, target, x, y))
  axes = {axes.get_label(): axes for axes in figure.axes if axes.get_label() != "partial"}
  return figure, axes | {"partial": [axes for axes in figure.axes if axes.get_label() == "partial"]}, lines


# --- numbers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("r2", "text"), [
  (None, ""), (0.5, "0.500000"), (1.0, "1.000000"), (0.999999, "1 - 1.0e-06"), (0.9999989, "0.999999"),
  (1 - 2.5e-9, "1 - 2.5e-09"), (-3.0, "-3.000000")])
def test_r2_shows_that_a_fit_is_not_perfect(r2, text):
  assert numerals.format_r2(r2) == text


def test_intervals_hold_ninety_five_of_a_hundred():
  for degrees in (1, 5, 100):
    low, high = numerals.interval(Constant(3.0, 0.5), degrees)
    assert stats.t.cdf(high, degrees, 3, 0.5) - stats.t.cdf(low, degrees, 3, 0.5) == pytest.approx(0.95)
  assert numerals.interval(Constant(3.0, 0.5), 0) == pytest.approx((3 - 0.98, 3 + 0.98))
  assert numerals.interval(Constant(3.0, None), 5) is None
  assert numerals.format_error(None) == "" and numerals.format_error(1.23456e-7) == "1.235e-07"
  assert numerals.shorten("1.23456*x2 + `a 1.23456` + 2.5e-10", 3) == "1.23*x2 + `a 1.23456` + 2.5e-10"


def test_degrees_of_freedom_are_rows_that_count_less_constants():
  line = equation("2.31*x + 1.12", constants=(Constant(2.31, 0.1), Constant(1.12, None)))
  weights = np.ones(40)
  weights[:10] = 0
  assert numerals.degrees_of_freedom(result_of([line], 0, weights=weights), line) == 28
  assert numerals.degrees_of_freedom(result_of([line], 0, num=8, weights=None), line) == 6


def test_the_page_gives_the_interval_of_few_rows():
  line = equation("2.31*x + 1.12", constants=(Constant(2.31, 0.1), Constant(1.12, 0.2)))
  text = page.make_page(result_of([line], 0, num=8, weights=np.ones(8)), line,
                        Table("t.csv", ("x",), "y", X[:8], Y[:8]), name="t")
  half = stats.t.ppf(0.975, 6) * 0.1
  assert f"{2.31 - half:.6g} to {2.31 + half:.6g}" in text
  assert "an interval is 2.45 standard errors to either side (Student's t of 6 degrees of freedom" in text


def test_the_table_of_the_front_in_latex():
  lines = [equation("3.14159*x"), dataclasses.replace(equation("x"), r2=1 - 2.5e-9, mse=1e-20),
           dataclasses.replace(equation("x"), r2=None, mse=np.inf)]
  text = latex_table.latex_table(lines, lines[1], digits=3)
  rows = text.splitlines()
  assert rows[0] == r"\begin{tabular}{clrrr}" and rows[-1] == r"\end{tabular}" and text.endswith("\n")
  assert rows[2] == r" & Formula & Complexity & $R^2$ & RMSE \\" and "3.14" in rows[4] and "3.1416" not in rows[4]
  assert rows[5].startswith(r"$\rightarrow$ & $x$ & 1 & $1 - 2.5 \cdot 10^{-9}$ & $1 \cdot 10^{-10}$")
  assert rows[4].split(" & ")[3] == f"${lines[0].r2:.6f}$" and rows[6].startswith(r" & $x$ & 1 & -- & $\infty$")
  assert rows[1] == rows[3] == rows[-2] == r"\hline"
  assert "3.14159" in latex_table.latex_table(lines, lines[1])
  assert "$3 x$" in latex_table.latex_table(lines, digits=1).replace(r" \cdot x", " x").replace(r" \, x", " x")
  for digits in (0, -1, 1.5):
    with pytest.raises(InputError, match="digits: expected a whole number of at least 1, got"):
      latex_table.latex_table(lines, digits=digits)


# --- the figure --------------------------------------------------------------------------------------------------


def test_of_one_column_the_formula_stands_out_before_the_rest_of_the_front():
  figure, axes, _ = figure_of()
  assert figure.get_size_inches().tolist() == [11, 5.5] and axes["partial"] == []
  first, third, taken, data = axes["fit"].lines
  assert {line.get_color() for line in (first, third)} == {"0.75"} and taken.get_color() == "C0"
  assert [line.get_linewidth() for line in (first, taken)] == [1, 2] and data.get_color() == "black"
  [band] = axes["fit"].collections
  assert first.get_zorder() < band.get_zorder() < taken.get_zorder() < data.get_zorder()
  assert [line.get_zorder() for line in (first, taken, data)] == [1, 3, 4]
  assert band.get_alpha() == 0.25 and band.get_linewidth()[0] == 0 and data.get_markersize() == 4
  assert data.get_linestyle() == "None" and data.get_marker() == "o" and len(taken.get_xdata()) == 400
  assert (taken.get_xdata()[0], taken.get_xdata()[-1]) == (1, 5)
  labels = [text.get_text() for text in axes["fit"].get_legend().get_texts()]
  assert labels == ["y = 2.31*x + 1.12", "95 % band of the curve", "data"]
  small = axes["residuals"].xaxis.label.get_size() * 0.833
  assert axes["fit"].get_legend().get_texts()[0].get_size() == pytest.approx(small, abs=0.05)
  low, high, margin = Y.min(), Y.max(), 0.05 * np.ptp(Y)
  assert axes["fit"].get_ylim() == pytest.approx((low - margin, high + margin))
  assert axes["fit"].get_ylabel() == "y" and axes["fit"].get_yscale() == "linear"
  assert not any(label.get_visible() for label in axes["fit"].get_xticklabels()) or axes["fit"].xaxis.get_tick_params()[
    "labelbottom"] is False


def test_the_band_is_of_two_standard_errors_of_rows_that_count():
  weights = np.ones(40)
  weights[:10] = 0
  _, axes, lines = figure_of(weights=weights)
  [band] = axes["fit"].collections
  corners = band.get_paths()[0].vertices
  at = corners[corners[:, 0] == 1]
  used = weights > 0
  errors = rounding.curve_errors(lines[1].node, X[used], Y[used], weights[used], np.array([[1.0]]))
  assert np.ptp(at[:, 1]) == pytest.approx(2 * stats.t.ppf(0.975, 30) * errors[0], rel=1e-6)
  _, plain, _ = figure_of(weights=None)
  assert len(plain["fit"].collections) == 1


def test_residuals_lie_about_a_thin_line():
  _, axes, lines = figure_of()
  zero, dots = axes["residuals"].lines
  assert list(zero.get_ydata()) == [0, 0] and zero.get_color() == "0.75" and zero.get_linewidth() == 1
  np.testing.assert_allclose(dots.get_ydata(), Y - scoring.evaluate(lines[1].node, X))
  assert dots.get_color() == "black" and dots.get_markersize() == 3 and dots.get_linestyle() == "None"
  assert axes["residuals"].get_xlabel() == "x" and axes["residuals"].get_ylabel() == "residual"
  assert axes["residuals"].get_shared_x_axes().joined(axes["residuals"], axes["fit"])


def test_a_result_without_a_front_is_drawn():
  line = equation(TEXTS[1])
  figure = figures.make_figure(result_of([line], 0, pareto=()), line, Table("t.csv", line.names, "y", X, Y))
  [front] = [axes for axes in figure.axes if axes.get_label() == "front"]
  assert not any(len(drawn.get_xdata()) > 1 for drawn in front.lines)


def test_panels_share_the_page():
  figure, axes, _ = figure_of()
  assert type(figure.get_layout_engine()).__name__ == "ConstrainedLayoutEngine"
  figure.canvas.draw()
  fit, rest, front = (axes[name].get_position() for name in ("fit", "residuals", "front"))
  assert 2.5 < fit.height / rest.height < 3.5 and 1.2 < fit.width / front.width < 1.8
  wide, parts, _ = figure_of(("8.2", "x*z"), np.repeat(X, 2, axis=1), Y)
  assert wide.get_size_inches().tolist() == [11, 8.5] and len(parts["partial"]) == 2
  assert len(wide.axes) == 5
  wide.canvas.draw()
  assert parts["fit"].get_window_extent().y0 > parts["partial"][0].get_window_extent().y1
  upper, lower = wide.subfigs
  assert upper.bbox.height / lower.bbox.height == pytest.approx(5.5 / 3)


def test_the_front_falls_by_steps_and_marks_its_lines():
  _, axes, lines = figure_of(("8.2", "2.31*x + 1.12", "2.3*x + 1.1 + 0.012*x**2", "1.0 + x + x**3 + x"), selected=2)
  steps, dots, *marks = axes["front"].lines
  sizes = [line.complexity for line in lines]
  assert list(steps.get_xdata()) == sizes and steps.get_drawstyle() == "steps-post" and steps.get_color() == "0.75"
  np.testing.assert_allclose(steps.get_ydata(), np.minimum.accumulate([line.rmse for line in lines]))
  np.testing.assert_allclose(dots.get_ydata(), [line.rmse for line in lines])
  assert dots.get_color() == "0.4" and dots.get_linestyle() == "None"
  by_label = {mark.get_label(): mark for mark in marks}
  assert list(by_label) in (["recommended", "selected"], ["recommended", "simple", "selected"])
  assert by_label["recommended"].get_xdata()[0] == lines[1].complexity
  assert by_label["selected"].get_xdata()[0] == lines[2].complexity
  assert [mark.get_marker() for mark in marks] == list("os^")[: len(marks)]
  assert {mark.get_markersize() for mark in marks} == {9}
  assert [mark.get_color() for mark in marks] == [f"C{i}" for i in range(len(marks))]
  assert axes["front"].get_yscale() == "log" and axes["front"].get_ylabel() == "RMSE"
  assert axes["front"].get_xlabel() == "complexity" and axes["front"].get_legend() is not None
  assert all(float(tick).is_integer() for tick in axes["front"].get_xticks())
  _, weighted, _ = figure_of(weights=np.linspace(1, 2, 40))
  assert weighted["front"].get_ylabel() == "weighted RMSE"


def test_a_perfect_fit_is_drawn_at_the_resolution_of_numbers():
  _, axes, lines = figure_of(("8.2", "2*x"), y=2 * X[:, 0])
  assert axes["front"].lines[1].get_ydata()[1] == pytest.approx(1e-16 * lines[0].rmse, abs=0)


def test_predictions_below_one_have_a_logarithmic_axis_too():
  x = np.column_stack([np.geomspace(0.01, 9, 40), np.linspace(1, 2, 40)])
  _, axes, _ = figure_of(
    ("8.2", "0.001*x**3*z"), x, 0.001 * x[:, 0] ** 3 * x[:, 1], weights=np.linspace(1, 2, 40))
  assert axes["fit"].get_yscale() == axes["fit"].get_xscale() == "log"


def test_the_band_is_of_the_rows_that_count():
  x, weights = X.copy(), np.ones(len(X))
  x[0], weights[0] = -1, 0  # the formula is not defined there
  y = np.log(np.abs(x[:, 0])) + 0.1 * np.sin(9 * X[:, 0])
  _, axes, _ = figure_of(("8.2", "2.3*log(x) + 1"), x, y, weights=weights)
  [band] = axes["fit"].collections
  assert np.isfinite(band.get_paths()[0].vertices).all()


def test_of_more_columns_each_has_a_panel():
  x = np.random.default_rng(0).uniform(1, 5, (40, 2))
  y = 2.31 * x[:, 0] * x[:, 1] + 1
  _, axes, lines = figure_of(("8.2", "2.3*x*z + 1"), x, y)
  diagonal, dots = axes["fit"].lines
  assert axes["fit"].get_xscale() == "linear" == axes["partial"][0].get_yscale()
  assert list(diagonal.get_xdata()) == [y.min(), y.max()] == list(diagonal.get_ydata())
  assert diagonal.get_color() == "0.75" and diagonal.get_linewidth() == 1
  assert (dots.get_color(), dots.get_markersize(), dots.get_linestyle()) == ("C0", 4, "None")
  assert axes["fit"].get_ylabel() == "y, observed" and axes["fit"].get_title() == "y = 2.3*x*z + 1"
  assert axes["residuals"].get_xlabel() == "y, fitted" and axes["residuals"].lines[1].get_color() == "C0"
  first, second = axes["partial"]
  assert (first.get_xlabel(), second.get_xlabel(), first.get_ylabel()) == ("x", "z", "y")
  dots, curve = first.lines
  assert (dots.get_color(), dots.get_markersize()) == ("0.6", 3) and (curve.get_color(),
    curve.get_linewidth()) == ("C0", 2)
  assert dots.get_linestyle() == "None" and len(curve.get_xdata()) == 400
  middle = np.median(x[:, 1])
  np.testing.assert_allclose(curve.get_ydata(), 2.3 * curve.get_xdata() * middle + 1)
  values = scoring.evaluate(lines[1].node, x)
  expected = 2.3 * x[:, 0] * middle + 1 + (y - values)
  np.testing.assert_allclose(dots.get_ydata(), expected)
  margin = 0.05 * np.ptp(expected)
  assert first.get_ylim() == pytest.approx((expected.min() - margin, expected.max() + margin))
  assert first.get_title() == "others at their medians" and first.title.get_size() < axes["fit"].title.get_size()


def test_the_columns_that_change_a_formula_most_have_panels():
  x = np.random.default_rng(0).uniform(1, 2, (40, 5))
  line = equation("x + 0.1*z + 3*u + 2*v + 4*w", x, x[:, 0])
  assert figures._choose_columns(line, x) == [0, 2, 3, 4]
  assert figures._choose_columns(equation("u", x, x[:, 0]), x) == [2]
  points = figures._along(x, 1, np.array([7.0, 8.0]))
  assert points[:, 1].tolist() == [7, 8] and (points[:, [0, 2]] == np.median(x, axis=0)[[0, 2]]).all()


def test_weighted_data_over_decades_are_drawn_on_logarithmic_axes():
  x = np.geomspace(1, 1000, 40)[:, None]
  y = 2 * x[:, 0] * np.tile([1.1, 0.9], 20)
  _, axes, lines = figure_of(("8.2", "2*x"), x, y, weights=1 / y**2)
  assert axes["fit"].get_yscale() == axes["fit"].get_xscale() == "log"
  assert axes["fit"].get_ylim() == pytest.approx((y.min() / 1.5, y.max() * 1.5))
  curve = axes["fit"].lines[1]
  assert np.ptp(np.diff(np.log(curve.get_xdata()))) < 1e-6
  np.testing.assert_allclose(axes["residuals"].lines[1].get_ydata(), np.tile([0.1, -0.1], 20), atol=1e-9)
  assert axes["residuals"].get_ylabel() == "residual / fit"
  _, plain, _ = figure_of(("8.2", "2*x"), x, y)
  assert plain["fit"].get_yscale() == plain["fit"].get_xscale() == "linear"
  assert plain["residuals"].get_ylabel() == "residual"
  two = np.column_stack([x[:, 0], np.linspace(1, 2, 40)])
  _, parts, lines = figure_of(("8.2", "2*x*z"), two, 2 * two[:, 0] * two[:, 1] * np.tile([1.1, 0.9], 20),
                              weights=1 / y**2)
  assert parts["fit"].get_xscale() == "log" and [each.get_yscale() for each in parts["partial"]] == ["log", "log"]
  dots = parts["partial"][0].lines[0].get_ydata()
  np.testing.assert_allclose(dots, 2 * two[:, 0] * np.median(two[:, 1]) * np.tile([1.1, 0.9], 20))


@pytest.mark.parametrize("shift", [0, 3])  # the second time the column has both signs
def test_on_plain_axes_curves_are_drawn_at_equal_steps(shift):
  _, axes, _ = figure_of(x=X - shift)
  for curve in axes["fit"].lines[:-1]:
    np.testing.assert_allclose(curve.get_xdata(), 1 - shift + 4 * np.arange(400) / 399, atol=1e-12)


@pytest.mark.parametrize(("values", "is_wide"), [
  ([1.0, 100.0], False), ([1.0, 100.1], True), ([0.0, 100.0], False), ([-1.0, 1000.0], False)])
def test_numbers_over_two_decades(values, is_wide):
  assert figures._spans_decades(np.array(values)) == is_wide


def test_of_many_rows_a_regular_sub_sample_is_drawn():
  for num, drawn in ((5000, 5000), (5001, 2501), (10_001, 3334)):
    x, y = figures._dots(types.SimpleNamespace(x=np.arange(num)[:, None], y=np.arange(num)))
    assert len(x) == len(y) == drawn and x[0, 0] == 0
  assert figures.MAX_PARTIAL == 4 and figures.FORMATS == (".png", ".pdf", ".svg")


def test_long_labels_are_cut_and_dollars_are_signs():
  assert figures.as_label("a" * 60) == "a" * 60 and figures.as_label("a" * 61) == "a" * 57 + "..."
  assert figures.as_label("$") == "\\$"


def test_a_picture_has_the_sharpness_of_print(tmp_path, monkeypatch):
  lines = [equation(text) for text in TEXTS]
  table = Table("t.csv", ("x",), "y \u6c34", X, Y)  # a letter that the font has not
  figures.draw_result(result_of(lines), lines[1], table, tmp_path / "f.png")
  from PIL import Image
  with Image.open(tmp_path / "f.png") as image:
    assert image.size == (1650, 825)


def test_formulas_that_are_undefined_leave_gaps():
  assert np.isnan(figures._values(equation("1/(x - 1)"), np.array([[1.0]]))).all()
  x = np.random.default_rng(0).uniform(1, 5, (40, 2))
  _, axes, _ = figure_of(("8.2", "x + 0*z/0.0000000001 + sqrt(z - 3)**2 - sqrt(z - 3)**2"), x, x[:, 0])
  assert axes["partial"]


# --- the page ----------------------------------------------------------------------------------------------------


CONSTANTS = (Constant(2.31, 0.0123, "231/100", "m"), Constant(1.12, None, None, "1"))


def page_of(result=None, notes=(), num=40, **more):
  lines = [equation("8.2"), equation("2.31*x + 1.12", constants=CONSTANTS, **more), equation(TEXTS[2])]
  seen = Seen({"x": (1.0, 5.123456789)}, ("x",), 0.0123, rejected=(Rejected("x**9", 3, 0.5, "a leap"),))
  result = dataclasses.replace(result_of(lines, message="one; two", seen=seen, counts=Counts(9, 8, 7), seconds=Seconds(
    total=1.26), ended_by="exact", seed=3, rounds=(Progress(0, "", None, "s", False, 0.0),)), **result or {})
  return page.make_page(result, lines[1], Table("t.csv", ("x",), "y", X, Y), name="name", notes=notes), result, lines


def test_a_page_tells_of_data_search_and_constants():
  text, _, _ = page_of(notes=("a note",))
  for name, value in (("data", "name"), ("target", "y"), ("columns", "x"), ("points", "40"), ("model", "m"),
                      ("errors made small", "squared"), ("candidates", "9 drawn from the model, 7 different"),
                      ("left unexplained by the recommended formula", "1.2 % of the target&#39;s spread"),
                      ("search", "1 turn, 1.3 s, ended by exact, seed 3")):
    assert f"<tr><th>{name}</th><td>{value}</td></tr>" in text, name
  assert "<td>1</td><td>5.12346</td><td>not in the recommended formula</td>" in text
  assert "2.31</td><td>0.012</td><td>2.2851 to 2.3349</td><td>231/100</td>" in re.sub(r"</?code>", "", text)
  for said in ("a note", "one", "two"):
    assert f">{said}<" in text
  assert "a leap" in text and "0.500000" in text
  weighted, _, _ = page_of({"weights": np.linspace(1, 2, 40), "ended_by": "", "units": ("m", "s"),
                            "rounds": (Progress(0, "", None, "s", False, 0.0),) * 2})
  assert "squared, rows weighted" in weighted and "ended by" not in weighted and "x in m, y in s" in weighted
  assert "weighted R2" in weighted and "weighted R2" not in text and "<th>units</th>" not in text
  two, _, _ = page_of({"rounds": (Progress(0, "", None, "s", False, 0.0),) * 2})
  assert "2 turns, 1.3 s" in two


def test_a_page_has_the_formula_in_every_language_and_as_a_picture():
  text, result, lines = page_of()
  titles = ["Python, NumPy", "Python, JAX", "Python, torch", "C", "Julia", "Excel", "LaTeX",
    "LaTeX, table of the formulas"]
  assert [title for title, _ in page._sources(result, lines[1])] == titles
  assert all(f"<summary>{title}</summary>" in text for title in titles)
  pictures = re.findall(r'src="data:(image/[a-z+]+);base64,([A-Za-z0-9+/=]+)"', text)
  assert [kind for kind, _ in pictures] == ["image/svg+xml", "image/svg+xml"]
  assert b"<svg" in base64.b64decode(pictures[0][1])
  odd = dataclasses.replace(lines[1], names=("a\u0000",))
  assert page._draw_formula(lines[1]).startswith("data:image/svg+xml") and (
    page._draw_formula(odd) is None or page._draw_formula(odd).startswith("data:"))


def test_figures_of_many_dots_are_pixels(monkeypatch):
  drawn = []

  class Figure:
    def savefig(self, file, *, format, dpi):
      drawn.append((format, dpi))
  monkeypatch.setattr(figures, "make_figure", lambda *_: Figure())
  for num, form in ((1000, "svg"), (1001, "png"), (99_999, "png")):
    page._draw(None, None, types.SimpleNamespace(y=np.zeros(num)))
    assert drawn[-1] == (form, 110)


def test_what_a_page_asks_for_and_nobody_gives_is_an_error():
  import jinja2
  with pytest.raises(jinja2.UndefinedError, match="nothing"):
    page._environment().from_string("{{ nothing }}").render()


def test_units_whole_numbers_and_templates_stand_on_the_page():
  text, _, _ = page_of(number_units=("m", "1"), filled=Filled((("f(x)", "2*x"),), (
    ("k", Constant(0.7, 0.00123, unit="s")), ("q", Constant(0.5, None, unit="1")))))
  assert "<th>unit</th>" in text and "<td>m</td>" in text
  assert "<tr><th>f(x)</th><td>2*x</td></tr>" in text and "<td>0.7 \u00b1 0.0012 s</td>" in text
  assert "<tr><th>q</th><td>0.5</td></tr>" in text
  plain, _, _ = page_of()
  assert "<th>unit</th>" not in plain
  whole = dataclasses.replace(equation("2*x"), number_units=("m",))
  result = result_of([equation("8.2"), whole])
  assert "2 m" in page.make_page(result, whole, Table("t.csv", ("x",), "y", X, Y), name="n")


def test_the_front_of_a_notebook_marks_its_lines():
  lines = [equation(text) for text in TEXTS]
  text = page.front_html(lines, lines[1], lines[2], is_weighted=False)
  rows = text.split("<tr")[2:]
  assert "recommended" in rows[1] and "recommended" not in rows[0] + rows[2] and 'class="taken"' in rows[2]
  assert "\u2192" in rows[2] and "\u2192" not in rows[0] + rows[1] and "y =" in text
  assert f"<td>{lines[1].relative_error:.4g}</td>" in rows[1] and "weighted RMSE" in page.front_html(
    lines, lines[1], lines[2], is_weighted=True)


def test_a_page_is_written_whole(tmp_path):
  lines = [equation(text) for text in TEXTS]
  page.write_page(result_of(lines), lines[1], Table("t.csv", ("x",), "y", X, Y), tmp_path / "p.html", name="n",
    notes=("q",))
  assert ">q<" in (tmp_path / "p.html").read_text(encoding="utf-8") and page.FORMATS == (".html", ".htm")


def test_a_formula_that_is_zero_at_a_row_is_drawn_without_a_warning():
  x = np.column_stack([np.geomspace(1, 1000, 40), np.linspace(1, 2, 40)])
  y = 2 * x[:, 0] * x[:, 1]
  lines = [equation("8.2", x, y), equation("2*(x - 1)*z", x, y)]
  figure = figures.make_figure(
    result_of(lines, weights=1 / y**2), lines[1], Table("t.csv", ("x", "z"), "y", x, y))
  assert [axes.get_ylabel() for axes in figure.axes if axes.get_ylabel().startswith("residual")] == ["residual / fit"]
  [fit] = [axes for axes in figure.axes if axes.get_label() == "fit"]
  assert (fit.get_xscale(), fit.get_yscale()) == ("linear", "log")
  assert [axes.get_yscale() for axes in figure.axes if axes.get_label() == "partial"] == ["linear", "log"]


def test_a_panel_of_equal_dots_has_a_height_of_two():
  x = np.column_stack([np.linspace(1, 2, 40), np.linspace(3, 4, 40)])
  y = np.full(40, 5.0)
  _, axes, _ = figure_of(("4.5", "x - x + z - z + 5"), x, y)
  assert [each.get_ylim() for each in axes["partial"]] == [(4.0, 6.0)] * 2


@pytest.mark.parametrize(("simple", "labels"), [(1, ["recommended", "selected"]), (
  0, ["recommended", "simple", "selected"]), (2, ["recommended", "simple"])])
def test_lines_of_the_front_are_marked_once(monkeypatch, simple, labels):
  monkeypatch.setattr(figures.choice, "simplest_good", lambda lines, best: lines[simple])
  _, axes, lines = figure_of(selected=2)
  marks = {mark.get_label(): mark.get_xdata()[0] for mark in axes["front"].lines[2:]}
  assert list(marks) == labels and marks["recommended"] == lines[1].complexity
  assert marks.get("simple", lines[simple].complexity) == lines[simple].complexity


def test_complexities_are_whole_numbers_on_their_axis():
  _, axes, _ = figure_of(("8.2", "x + 1"))
  ticks = axes["front"].xaxis.get_major_locator().tick_values(1, 3)
  assert all(float(tick).is_integer() for tick in ticks) and len(ticks) < 6


def test_legends_stand_small_where_they_hide_least_whatever_a_user_has_set():
  import matplotlib
  with matplotlib.rc_context({"legend.loc": "center", "legend.fontsize": "xx-large"}):
    _, axes, _ = figure_of()
  small = 10 * 0.833
  for name in ("fit", "front"):
    legend = axes[name].get_legend()
    assert legend._get_loc() == 0 and legend.get_texts()[0].get_size() == pytest.approx(small, abs=0.05)


def test_columns_along_which_a_formula_has_no_value_come_last():
  x = np.random.default_rng(0).uniform(1, 2, (40, 5))
  x[:, 0] = np.linspace(-1, 0.25, 40)  # its median is below 0: of the others no curve is defined
  line = equation("sqrt(x) + z + u + v + w", x, x[:, 1])
  assert figures._choose_columns(line, x) == [0, 1, 2, 3]
  _, axes, _ = figure_of(("8.2", "sqrt(x) + z"), x[:, :2], x[:, 1])
  assert [each.get_title() for each in axes["partial"]] == [
    "others at their medians", "undefined at the medians of the others"]


def test_a_perfect_formula_without_a_front_has_a_place_on_its_axis():
  y = 2 * X[:, 0]
  line = dataclasses.replace(equation("2*x", y=y), mse=0.0)
  figure = figures.make_figure(result_of([line], 0, pareto=()), line, Table("t.csv", line.names, "y", X, y))
  [front] = [axes for axes in figure.axes if axes.get_label() == "front"]
  assert [mark.get_ydata()[0] for mark in front.lines[2:]] == [np.finfo(np.float64).tiny]


def test_formulas_of_four_thousand_letters_are_set_and_longer_ones_are_not(monkeypatch):
  monkeypatch.setattr(page, "_image", lambda draw, form: form)
  assert page._draw_formula(types.SimpleNamespace(latex="a" * 4000)) == "svg"
  assert page._draw_formula(types.SimpleNamespace(latex="a" * 4001)) is None


def test_what_is_not_known_of_a_search_is_not_told():
  text, _, _ = page_of({"seen": Seen({"x": (1.0, 5.0)}, (), None)})
  assert "left unexplained" not in text and "not in the recommended formula" not in text and "<td>5</td>" in text
  text, _, _ = page_of({"seen": None})
  assert "left unexplained" not in text and "a leap" not in text


def test_whole_numbers_with_errors_are_among_the_constants_of_a_page():
  more = {"whole": (Constant(2.0, 123.4),)}
  lines = [equation("8.2"), equation("2*exp(1.12*x)", constants=(Constant(1.12, 0.0123),), **more)]
  page_text = page.make_page(result_of(lines), lines[1], Table("t.csv", ("x",), "y", X, Y), name="t")
  assert "<td>2</td><td>120</td>" in page_text and "<td>1.12</td><td>0.012</td>" in page_text
