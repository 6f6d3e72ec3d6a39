"""Summaries, reports and figures."""

import dataclasses
import json

import pytest

from symformer_jax.evaluation import plots, published, report
from symformer_jax.evaluation.problems import Problem, load_list
from symformer_jax.evaluation.runs import Row
from symformer_jax.language.parser import parse

GOOD = Row("Nguyen", "Nguyen-1", 1, 0, "x**2", "x**2", 2, 1.0, 1e-9, True, 0.5, 2.0, 8, 8, 4, "", True, 1e-18, "m")
OTHER = dataclasses.replace(GOOD, name="R-1", family="R", predicted="x*x|1", same_skeleton=False)
BAD = dataclasses.replace(GOOD, name="Nguyen-2", r2=-3.0, relative_error=2.0, recovered=False, fvu=4.0, complexity=6)
NONE = Row("Nguyen", "Nguyen-3", 1, 0, "x", message="no sample is defined on all points")
ROWS = [GOOD, OTHER, BAD, NONE]
PROBLEM = Problem("Nguyen", "Nguyen-1", parse("x**2"), "x**2", ((-5.0, 5.0),), 100)


def test_summary_counts_a_missing_answer_as_a_miss():
  found = report.summarize(ROWS)
  assert (found["rows"], found["answered"]) == (4, 3)
  assert found["share_r2_above_0.999"] == found["share_recovered"] == found["share_exact_in_float32"] == 0.5
  assert found["median_r2"] == pytest.approx((1 - 3) / 2)
  assert found["mean_r2"] == pytest.approx((1 + 1 + 0 + 0) / 4)
  assert found["median_relative_error"] == pytest.approx((1e-9 + 2) / 2)
  assert found["equal_but_written_differently"] == 1
  assert (found["median_complexity"], found["mean_seconds"], found["compile_seconds"]) == (2, 0.5, 6.0)


def test_summary_of_nothing():
  assert report.summarize([])["share_r2_above_0.99"] is None
  assert report.summarize([NONE])["median_r2"] is None


def test_intervals_over_problems_and_over_seeds():
  assert report.summarize([GOOD] * 10)["share_r2_above_0.999_interval"] == pytest.approx([0.7225, 1.0], abs=1e-4)
  assert report.summarize([GOOD] * 10)["median_r2_interval"] is None
  seeds = [dataclasses.replace(row, seed=seed) for seed in range(4) for row in (GOOD, BAD)]
  assert report.summarize(seeds)["median_r2_interval"] == pytest.approx([-1.0, -1.0])
  assert report.summarize(seeds)["share_r2_above_0.999_interval"] == [0.5, 0.5]


def test_figures_split_by_training_data():
  rows = [dataclasses.replace(GOOD, seen_function=True, seen_skeleton=True),
          dataclasses.replace(BAD, seen_function=False, seen_skeleton=True),
          dataclasses.replace(OTHER, seen_function=False, seen_skeleton=False)]
  summary = report.make_summary(rows, {})
  found = {seen: figures["share_recovered"] for seen, figures in summary["training_data"][""].items()}
  assert found == {"function seen": 1.0, "skeleton seen": 0.0, "neither seen": 1.0}
  assert "| all | skeleton seen | 1 | -3.000000 | 0.0% | 0.0% |" in report.make_report("T", rows, summary, {})
  unknown = report.make_summary(ROWS, {})
  assert set(unknown["training_data"][""]) == {"unknown"}
  assert "training data is unknown" in report.make_report("T", ROWS, unknown, {})


def test_rows_that_need_the_signs_of_the_data_are_named():
  rows = [GOOD, dataclasses.replace(OTHER, needs_signs=True)]
  text = report.make_report("T", rows, report.make_summary(rows, {}), {})
  assert "for variables of the signs in the data (`sqrt(y**2)` for y above 0): 1 of the problems: R-1." in text


def test_variants_that_could_not_be_asked_are_shown_as_missing():
  summary = report.make_summary([dataclasses.replace(GOOD, variant="base")], {})
  summary["missing"] = {"extended": "no model"}
  text = report.make_report("T", ROWS, summary, {})
  assert "| extended | missing: no model |" in text
  assert "| base | 1 | 0.9979 |" in text  # the paper's figure


def test_pictured_formulas_stand_beside_the_papers_answers():
  row = dataclasses.replace(GOOD, name="pictured-15", n_vars=2, truth="y**0.0625", predicted="sqrt(y)**0.125",
                            same_skeleton=False)
  text = report.make_report("T", [row], report.make_summary([row], {}), {})
  assert ("| pictured-15 | `y**0.0625` | `sqrt(y)**0.125` | 1.000000 | equal in value, written differently "
          "| `y**0.0625` | 1.000000 | yes |") in text
  assert "pictured" not in report.make_report("T", ROWS, report.make_summary(ROWS, {}), {})


def test_disagreement_with_sympy_is_counted():
  rows = [dataclasses.replace(GOOD, sympy="different"), dataclasses.replace(BAD, sympy="equal"),
          dataclasses.replace(GOOD, sympy="equal"), dataclasses.replace(GOOD, sympy="undecided"), BAD]
  assert report.summarize(rows)["sympy_disagrees"] == 2


def test_summary_is_json_and_groups():
  summary = report.make_summary([*ROWS, dataclasses.replace(GOOD, variant="noise=0.1")], {"command": "c"})
  assert json.loads(json.dumps(summary, allow_nan=False)) == summary
  assert list(summary["variants"]) == ["", "noise=0.1"]
  assert set(summary["families"][""]) == {"Nguyen", "R"}
  assert summary["failed"] == [{"variant": "", "name": "Nguyen-3", "seed": 0, "message": NONE.message}]


def test_report_shows_figures_peers_and_failures():
  summary = report.make_summary(ROWS, {"command": "python -m launch.evaluate", "settings": {"seeds": 1, "list": None}})
  text = report.make_report("Title", ROWS, summary, {"caption": "time.png"})
  assert text.startswith("# Title\n\n- command: python -m launch.evaluate\n- settings: seeds=1\n")
  printed = "0.99986 (94) | 1.00000 (96) | 0.97488 (855) | 0.99985 (419)"
  assert f"| R | 1 | 1.00000 | 100.0% | 100.0% | 0.50 | {printed} |" in text
  assert "`x*x\\|1`" in text and "![caption](time.png)" in text
  assert "Nguyen-3 (seed 0): no sample is defined on all points" in text
  assert "written differently: 1 rows" in text
  tables = [block for block in text.split("\n\n") if block.startswith("|")]
  assert tables
  for table in tables:
    assert len({line.replace("\\|", "").count("|") for line in table.split("\n")}) == 1


def test_report_stands_beside_the_papers_medians():
  rows = [dataclasses.replace(GOOD, variant="refine=lm", n_vars=2)]
  text = report.make_report("T", rows, report.make_summary(rows, {}), {})
  assert "| refine=lm | 2 | 1 | 1.000000 | 0.0035 | 1e-09 |" in text


def test_published_families_are_those_of_the_list():
  assert set(published.BENCHMARKS) == {p.family for p in load_list("paper")}


def test_figures_are_written(tmp_path):
  rows = [GOOD, dataclasses.replace(BAD, predicted="log(x)", variant="b"), NONE,
          dataclasses.replace(GOOD, name="two", n_vars=2, predicted="x*y")]
  two = Problem("f", "two", parse("x*y"), "x*y", ((0.0, 1.0), (0.0, 1.0)), 200)
  by_key = {row.key: two if row.n_vars == 2 else PROBLEM for row in rows}
  drawn = plots.draw_all(tmp_path, rows, by_key, report.make_summary(rows, {}))
  assert sorted(drawn.values()) == ["predictions.png", "time.png", "variants.png"]
  for name in drawn.values():
    assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
  assert len(list(tmp_path.iterdir())) == 3


def test_surfaces_of_two_variables_stand_in_space():
  problem = Problem("f", "n", parse("x*y"), "x*y", ((-1.0, 1.0), (0.0, 2.0)), 100)
  row = dataclasses.replace(GOOD, name="n", n_vars=2, truth="x*y", predicted="x*y + log(x)")
  [axes] = plots.draw_predictions([row], {row.key: problem}).axes
  assert axes.name == "3d" and axes.get_zlim()[1] == pytest.approx(2.4)


def test_the_error_against_distance():
  rows = [dataclasses.replace(GOOD, variant=f"distance={d}", relative_error=d / 100) for d in (20, 1, 5)]
  figure = plots.draw_distance(report.make_summary(rows, {})["variants"])
  [line] = figure.axes[0].lines
  assert line.get_xdata().tolist() == [1, 5, 20] and line.get_ydata() == pytest.approx([0.01, 0.05, 0.2])
  assert plots.draw_distance(report.make_summary(ROWS, {})["variants"]) is None


def test_no_figures_without_answers(tmp_path):
  assert plots.draw_all(tmp_path, [NONE], {}, report.make_summary([NONE], {})) == {}


def test_shares_against_time_have_a_line_for_each_system_in_order_of_time():
  rows = [dataclasses.replace(ROWS[0], variant=f"{who}max_time={seconds}", r2=r2)
          for who, seconds, r2 in (("", 10, 1.0), ("", 1, 0.5), ("operon ", 1, 0.5), ("operon ", 10, 0.5))]
  figure = plots.draw_anytime(report.make_summary(rows, {})["variants"])
  own, operon = figure.axes[0].lines
  assert list(own.get_xdata()) == [1, 10] and list(own.get_ydata()) == [0, 1] and list(operon.get_ydata()) == [0, 0]
  assert operon.get_label() == "operon"
  assert plots.draw_anytime(report.make_summary(ROWS, {})["variants"]) is None
