"""Reports and files of rows: which tables stand in them, how wide they are, and that files are read as written."""

import dataclasses
import types

import numpy as np
import pytest

from symformer_jax.evaluation import metrics, problems, published, real_runs, report, runs
from symformer_jax.evaluation.answers import Method
from symformer_jax.evaluation.runs import Row
from symformer_jax.evaluation.suites import Task
from symformer_jax.language import parser


def row(name, seed=0, **changed):
  values = {"r2": 1.0, "fvu": 0.0, "recovered": True, "seconds": 1.0, "predicted": "x"}
  return Row("f", name, 1, seed, "x", **values | changed)


def width(table):
  """Columns of a table, the same in each line."""
  [found] = {line.count("|") - 1 for line in table.splitlines() if line.startswith("|")}
  return found


# --- tables ------------------------------------------------------------------------------------------------------


def test_every_line_of_a_table_has_every_column():
  summary = report.make_summary([row("a"), row("b", variant="v")], {})
  variants = summary["variants"]
  text = report._variant_table(variants, {"w": "why"})
  assert width(text) == 1 + len(report._FIGURES)
  assert text.splitlines()[2].startswith(f"| {runs.OWN_LABEL} |") and text.splitlines()[-1].startswith(
    "| w | missing: why |  |")
  assert report._variant_table({"": variants[""]}, {}).splitlines()[2].startswith("| all |")
  intervals = report._intervals(variants).splitlines()
  assert width("\n".join(intervals[:4])) == 5
  assert intervals[2].startswith("| all | ") and intervals[3].startswith("| v | ")


def test_shares_alone_have_an_interval_of_one_seed():
  rows = [row(str(i), recovered=i < 3, r2=1.0 if i < 6 else 0.5) for i in range(10)]
  found = report.summarize(rows)
  assert found["share_recovered_interval"] == pytest.approx(metrics.wilson_interval(0.3, 10))
  assert found["share_r2_above_0.999_interval"] == pytest.approx(metrics.wilson_interval(0.6, 10))
  assert found["median_r2_interval"] is None and found["median_relative_error_interval"] is None
  two = report.summarize([row("a", seed, r2=0.5 + seed / 10) for seed in (0, 1)])
  low, high = two["median_r2_interval"]
  assert 0.5 <= low < high <= 0.6


def test_families_stand_beside_what_was_printed_of_them():
  figures = {"rows": 3, "mean_r2": 0.5, "share_r2_above_0.999": 0.25, "share_recovered": None, "mean_seconds": 1.0}
  known = next(iter(published.BENCHMARKS))
  lines = report._family_table({known: figures, "own": figures}).splitlines()
  assert width("\n".join(lines)) == 10
  printed = published.BENCHMARKS[known]["SymFormer"]
  assert f"| {printed[0]:.5f} ({printed[1]:.0f}) |" in lines[2]
  assert lines[3] == "| own | 3 | 0.50000 | 25.0% |  | 1.00 |  |  |  |  |"
  assert width(report._family_table({"own": figures})) == 6


def test_medians_of_the_paper_stand_beside_ours_where_it_prints_them():
  figures = {"median_r2": 0.5, "median_relative_error": 0.25}
  assert report._published({"variables": {"v": {"1": figures}}}) == []
  (count, variant), printed = next(iter(published.IN_DOMAIN.items()))
  title, table = report._published({"variables": {variant: {str(count): figures}, "v": {"1": figures}}})
  assert title == "## Beside the paper" and table.splitlines()[2:] == [
    f"| {variant} | {count} | {printed[0]:g} | 0.500000 | {printed[1]:g} | 0.25 |"]


def test_answers_of_the_paper_are_judged_as_ours_are(monkeypatch):
  asked = []
  problem = types.SimpleNamespace(name="pictured-1", text="t", truth=parser.parse("x", ["x"]), names=("x",), box="box")
  monkeypatch.setattr(report.problems_lib, "load_list", lambda name: [problem])
  monkeypatch.setattr(report.metrics, "is_recovered", lambda *args, rng, has_signs: asked.append(has_signs) or True)
  monkeypatch.setattr(report.problems_lib, "draw_points", lambda problem, count, *, rng: asked.append(count))
  monkeypatch.setattr(report.metrics, "score_formula", lambda *_: types.SimpleNamespace(r2=0.5))
  monkeypatch.setitem(published.EXAMPLES, "pictured-1", "2*x")
  rows = [Row("f", "pictured-1", 1, 0, "t"), Row("f", "pictured-1", 1, 0, "another"), Row("f", "b", 1, 0, "t")]
  [title, table] = report._pictured(rows)
  assert title.endswith("pictured in the paper") and asked == [True, 10_000]
  assert table.splitlines()[2:] == [
    "| pictured-1 | `t` |  |  |  | `2*x` | 0.500000 | equal in value, written differently |"]
  assert report._pictured(rows[1:]) == []


def test_tables_of_real_data_have_every_column():
  real = real_runs.RealRow("n", "table", False, "recommended", 2, 30, "x", 3, 5.0, "", 0.5, 0.25, 1.0)
  figures = real_runs.summarize([real])
  assert figures["recommended"]["mean_r2"] == 1 and width(real_runs._figure_table(figures)) == 8
  rows = [real, real_runs.RealRow("m", "table", False, "simple", 2, 30, "x", 3, 0.5),
          real_runs.RealRow("o", "table", False, "recommended", message="why")]
  table = real_runs._answer_table(rows)
  assert width(table) == 7 and table.splitlines()[2:] == ["| n | 30, 2 | `x` | 5.000 | 0.500 | 0.250 |  |"]


# --- files -------------------------------------------------------------------------------------------------------


def test_rows_are_read_as_they_were_written_in_any_locale(tmp_path, other_locale):
  path = tmp_path / "results.csv"
  results = runs.ResultsFile(path)
  assert runs.ResultsFile(path).rows == [] and path.read_bytes() == (",".join(runs.COLUMNS) + "\n").encode()
  given = [row("n\u00fc", message="two\r\nlines"), Row("f", "m", 1, 2, "x", seen_function=False)]
  for each in given:
    results.add(each)
  assert path.read_bytes().count(b"\r") == 1 and b"\nf,m,1,2,x,,,,,,,,,,,,,,,,,False,,\n" in path.read_bytes()
  assert runs.ResultsFile(path).rows == given == results.rows


# --- verdicts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("fvu", "is_equal", "is_asked"), [
  (1e-9, False, True), (0.99e-9, True, True), (1e-6, False, False), (0.99e-6, False, True), (None, True, True)])
def test_bounds_of_verdicts_are_themselves_beyond(monkeypatch, fvu, is_equal, is_asked):
  asked = []
  monkeypatch.setattr(runs.metrics, "score_formula", lambda *_: metrics.Scores(1.0, 0.0, fvu))
  monkeypatch.setattr(runs.metrics, "is_recovered", lambda *_, **__: True)
  problem = types.SimpleNamespace(name="n", truth=parser.parse("x", ["x"]), names=("x",), box="box")
  task = types.SimpleNamespace(problem=problem, seed=0)
  found = runs._judge(row("n"), task, problem.truth, None, lambda *_: asked.append(1) or "equal")
  assert (found.recovered, bool(asked), found.sympy) == (is_equal, is_asked, "equal" if is_asked else "")
  assert (found.predicted, found.complexity, found.r2, found.relative_error, found.fvu) == ("x", 1, 1.0, 0.0, fvu)
  assert found.needs_signs is False and found.same_skeleton is True


def test_nobody_asks_what_a_peer_was_trained_on(monkeypatch):
  def was_seen(problem, model):
    raise AssertionError("a peer has no training data")
  problem = types.SimpleNamespace(family="f", name="n", num_variables=1, text="x")
  method = types.SimpleNamespace(peer="o")
  task = types.SimpleNamespace(problem=problem, seed=0, variant="", method=method, question="q")
  monkeypatch.setattr(runs, "make_points", lambda task: (None, None))
  answer = runs.answers.Answer(None, "dead", 1.0, 2.0, "o")
  found = runs.run_task(task, runs.Sources(None, lambda task, points: answer, was_seen=was_seen))
  assert (found.message, found.seen_function, found.seconds, found.compile_seconds) == ("dead", None, 1.0, 2.0)


def test_noise_is_added_to_the_target_alone():
  problem = problems.Problem("f", "n", parser.parse("x + 9*y", ["x", "y"]), "t", ((0.0, 1.0), (2.0, 3.0)), 500)
  task = Task("", problem, Method(), 0)
  (points, _), (noisy, _) = runs.make_points(task), runs.make_points(dataclasses.replace(task, noise=0.1))
  np.testing.assert_array_equal(points[:, :2], noisy[:, :2])
  size = 0.1 * np.sqrt(np.mean(points[:, 2] ** 2))
  assert np.std(noisy[:, 2] - points[:, 2]) == pytest.approx(size, rel=0.1)
