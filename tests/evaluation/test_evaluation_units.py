"""Parts of evaluation, where it just holds and just does not: figures, points, rows, reports; no search."""

import csv
import dataclasses
import hashlib
import io
import json
import math
import subprocess
import sys
import types

import numpy as np
import pytest
from scipy import stats

from symformer_jax.engine.config import DEFAULT
from symformer_jax.errors import InputError
from symformer_jax.evaluation import (
  answers,
  choices,
  drawn_tables,
  metrics,
  models,
  paired,
  peer_fits,
  peers,
  plots,
  problems,
  published,
  real_data,
  real_faults,
  real_runs,
  report,
  runs,
  second_opinion,
  suites,
)
from symformer_jax.evaluation.answers import Answer, Method
from symformer_jax.evaluation.real_data import RealSet, Split
from symformer_jax.evaluation.real_faults import Yardsticks
from symformer_jax.evaluation.runs import Row
from symformer_jax.evaluation.suites import SUITES, Settings, Task
from symformer_jax.language import parser
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.results import Counts, Equation, Seconds
from symformer_jax.sources.network import samples


def formula(text, names=("x", "y", "z")):
  return parser.parse(text, names)


# --- figures -----------------------------------------------------------------------------------------------------


def test_scores_on_points():
  truth, prediction = np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.5, 4.0])
  found = metrics.score(truth, prediction)
  fvu = 0.25 / np.sum((truth - truth.mean()) ** 2)
  assert found.r2 == pytest.approx(1 - fvu) and found.fvu == pytest.approx(fvu)
  assert found.relative_error == pytest.approx(0.25 / 3)
  assert metrics.score(np.ones(3), prediction).fvu is None and metrics.score(truth, np.full(3, np.nan)).fvu is None
  assert metrics.score(truth, truth).fvu == 0
  tiny = metrics.score_formula(formula("x"), np.array([[0.0, 0.0], [1.0, 1.0 + 1e-9]]))
  assert 0 < tiny.fvu < 1e-17


def recovered(truth, predicted, box=((1.0, 3.0),), **options):
  return metrics.is_recovered(formula(truth), formula(predicted), box, rng=np.random.default_rng(0), **options)


def test_equal_functions_are_recovered_on_a_box_twice_as_wide():
  assert recovered("x**2", "x*x") and not recovered("x**2", "x**2 + 0.001")
  assert recovered("x", "x*(1 + 2e-6)") and not recovered("x", "x*(1 + 1e-4)")
  assert recovered("2.5", "2.5 + 0*x") and recovered("2.5", "2.5*(1 + 5e-10)") and not recovered("2.5",
    "2.5*(1 + 3e-9)")
  assert not recovered("x", "sqrt(x**2 - 9) + x")  # undefined where the truth is not
  with np.errstate(all="ignore"):
    assert recovered("log(x)", "2*log(sqrt(x))", ((0.0, 5.0),))  # widened to the other side
    assert not recovered("x", "sqrt(x**2)", ((0.0, 4.0),)) and recovered("x", "sqrt(x**2)", ((0.0, 4.0),),
      has_signs=True)
    assert recovered("x", "-sqrt(x**2)", ((-4.0, 0.0),), has_signs=True)
    assert not recovered("x", "sqrt(x**2)", ((-1.0, 4.0),), has_signs=True)


def test_points_lie_in_the_first_wider_box_where_the_truth_mostly_exists():
  def box_of(text, box, has_signs=False):
    with np.errstate(all="ignore"):
      x, y = metrics._wide_points(formula(text), box, np.random.default_rng(0), has_signs)
    assert len(x) == len(y) == 1000
    return [(round(float(low), 1), round(float(high), 1)) for low,
      high in zip(x.min(axis=0), x.max(axis=0), strict=True)]
  assert box_of("x", ((2.0, 4.0),)) == [(1.0, 5.0)] and box_of("log(x)", ((0.0, 4.0),)) == [(0.0, 8.0)]
  assert box_of("log(-x)", ((-4.0, 0.0),)) == [(-8.0, 0.0)]
  assert box_of("acos(x/5)", ((-5.0, 5.0),)) == [(-5.0, 5.0)]
  assert box_of("x", ((0.0, 4.0),), True) == [(0.0, 6.0)] and box_of("x", ((-4.0, 0.0),), True) == [(-6.0, 0.0)]
  assert box_of("x + log(y)", ((2.0, 4.0), (0.0, 4.0))) == [(1.0, 5.0), (0.0, 8.0)]


def test_medians_shares_and_their_intervals():
  assert metrics.median([1.0, None, 3.0], worst=-math.inf) == 1 and metrics.median([None, None, 1.0],
    worst=math.inf) is None
  assert metrics.median([], worst=0.0) is None and metrics.median([1.0, 2.0], worst=0.0) == 1.5
  assert metrics.share_above([0.5, None, 1.0, 0.6], 0.5) == 0.5 and metrics.share_above([], 0.5) is None
  for share, count in ((0.3, 20), (0.0, 5), (1.0, 7)):
    expected = stats.binomtest(round(share * count), count).proportion_ci(method="wilson")
    np.testing.assert_allclose(metrics.wilson_interval(share, count), expected, atol=1e-6)
  low, high = metrics.bootstrap_interval([0.0, 1.0, 0.0, 1.0, 1.0])
  assert 0 <= low < 0.3 and 0.9 < high <= 1 and metrics.bootstrap_interval([1.0]) is None
  assert metrics.bootstrap_interval([1.0, 1.0]) == (1.0, 1.0)
  # Of a hundred values the interval is that of the mean's normal distribution.
  values = np.random.default_rng(1).normal(size=100)
  low, high = metrics.bootstrap_interval(values)
  half = 1.96 * values.std() / 10
  assert low == pytest.approx(values.mean() - half, abs=0.015) and high == pytest.approx(values.mean() + half,
    abs=0.015)
  assert metrics.has_same_skeleton(formula("2.5*x"), formula("x*7.1")) and not metrics.has_same_skeleton(
    formula("2.5*x"), formula("x + 2.5"))


def row(name, seed=0, r2=1.0, fvu=0.0, recovered_=True, **changed):
  return Row("f", name, 1, seed, "x", "x", r2=r2, fvu=fvu, recovered=recovered_, **changed)


def test_variants_are_compared_problem_by_problem():
  first = [row("a"), row("b"), row("c", r2=0.5), row("d", r2=0.5), row("only")]
  second = [row("a"), row("b", r2=0.5), row("c"), row("d"), row("other")]
  found = paired.compare(first, second, paired.MEASURES["R2 > .999"])
  assert (found.lost, found.gained, found.num_problems, found.share) == (1, 2, 4, 0.25)
  assert found.interval == (-0.5, 0.75) or (-0.6 < found.interval[0] < 0 < found.interval[1] <= 1)
  assert paired.compare(first, [row("z")], paired.MEASURES["recovered"]) == paired.Difference(0, 0, 0, 0.0, (0.0, 0.0))
  seeds = [row("a", seed) for seed in (0, 1)], [row("a", 0), row("a", 1, r2=0.0)]
  assert paired.compare(*seeds, paired.MEASURES["R2 > .999"]).share == -0.5
  [line] = paired.table_lines({"one": first, "two": second})
  assert line[0] == "two" and line[1].startswith("+0.250 (") and line[1].endswith("; 1 lost, 2 gained)")
  assert len(line) == 5
  many = [row(str(i)) for i in range(100)], [row(str(i), r2=0.0 if i < 50 else 1.0) for i in range(100)]
  interval = paired.compare(*many, paired.MEASURES["R2 > .999"]).interval
  assert interval[0] == pytest.approx(-0.5 - 1.96 * 0.05, abs=0.01) and interval[1] == pytest.approx(-0.5 + 0.098,
    abs=0.01)


@pytest.mark.parametrize(("measure", "bad", "good"), [
  ("R2 > .999", {"r2": 0.999}, {"r2": 0.9991}), ("R2 > .9999", {"r2": 0.9999}, {"r2": 0.99991}),
  ("1 - R2 < 1e-9", {"fvu": 1e-9}, {"fvu": 9e-10}), ("recovered", {"recovered_": None}, {"recovered_": True})])
def test_what_counts_as_solved(measure, bad, good):
  assert paired.MEASURES[measure](row("a", **good)) and not paired.MEASURES[measure](row("a", **bad))
  if "recovered_" not in bad:
    assert not paired.MEASURES[measure](row("a", **dict.fromkeys(bad)))


# --- problems ----------------------------------------------------------------------------------------------------


def read(text):
  return problems._read("family,name,n_vars,expression,ranges,n_points,spacing\n" + text, "p.csv")


def test_a_row_of_a_problem_file():
  [one, two] = read("f,a,1,x^2,0:2,,\nf,b,2,x*y,-1:1;0:3,7,uniform")
  assert one.box == ((0.0, 2.0),) and one.num_points == 100 and one.spacing == "uniform" and one.names == ("x",)
  assert two.box == ((-1.0, 1.0), (0.0, 3.0)) and two.num_points == 7 and two.num_variables == 2
  assert read("f,a,3,x*y*z,0:1;0:1;0:1,,")[0].num_points == 300 and one.largest == 1e7 == choices.LARGEST_VALUE
  [grid] = read("f,a,01,x,0:1,1000000,grid")
  assert grid.spacing == "grid" and grid.num_points == 1_000_000
  [free] = read("f,a,1,log(x),,,")
  assert free.box == ((0.0, 5.0),) and not free.unusable
  [none] = read("f,a,1,log(-x**2 - 1),,,")
  assert none.unusable.startswith("no box made of -5, 0 and 5") and none.box == ((-5.0, 5.0),)
  with pytest.raises(InputError, match="no box made of"):
    problems.draw_points(none, rng=np.random.default_rng(0))


@pytest.mark.parametrize(("text", "message"), [
  ("f,a,0,x,0:1,,", "n_vars: expected a whole number from 1 to 26, got '0'"), ("f,a,27,x,0:1,,", "from 1 to 26"),
  ("f,a,1.5,x,0:1,,", "from 1 to 26"), ("f,a,1,x,0:1,1000001,", "n_points: expected a whole number from 1 to 1000000"),
  ("f,a,1,x+,0:1,,", "row 1 .a.: "), ("f,a,1,x,0:1;0:1,,", "ranges: expected 1 of the form lo:hi"),
  ("f,a,1,x,1:1,,", "ranges: expected lo < hi"), ("f,a,1,x,0:inf,,", "both finite"), ("f,a,1,x,0,,", "with numbers"),
  ("f,a,1,x,0:1,,even", "spacing: expected uniform, or grid"), ("f,a,2,x*y,0:1;0:1,,grid", "grid with one variable"),
  ("f,a,1,x,0:1,,\nf,a,1,x,0:1,,", "the name 'a' stands in two rows"), ("", "no problems below the header"),
  ("f,a,1,x,0:1,,\nf,b,1,y,0:1,,", "p.csv, row 2 .b.")])
def test_rows_that_are_no_problems(text, message):
  with pytest.raises(InputError, match=message):
    read(text)
  assert read("f,a,26,x,,,")[0].num_variables == 26 and problems.variable_names(26)[-1] == "a"
  assert problems.variable_names(5) == ("x", "y", "z", "w", "v")


def problem(text, box=((0.0, 1.0),), num_points=20, **changed):
  return problems.Problem("f", "n", formula(text), text, box, num_points, **changed)


def test_points_are_drawn_in_the_box_where_the_truth_is_usable():
  rng = np.random.default_rng(0)
  points = problems.draw_points(problem("2*x", ((1.0, 3.0),)), rng=rng)
  assert points.shape == (20, 2) and (points[:, 0] >= 1).all() and (points[:, 0] <= 3).all()
  np.testing.assert_allclose(points[:, 1], 2 * points[:, 0])
  assert np.ptp(problems.draw_points(problem("x", ((1.0, 3.0),)), 500, rng=rng)[:, 0]) > 1.95
  grid = problems.draw_points(problem("x**2", spacing="grid"), 5, rng=rng)
  np.testing.assert_allclose(grid, [[0, 0], [0.25, 0.0625], [0.5, 0.25], [0.75, 0.5625], [1, 1]])
  assert problems.draw_points(problem("x**2", spacing="grid"), 5, rng=rng, spacing="uniform")[0, 0] != 0
  bounded = problems.draw_points(problem("x", ((0.0, 10.0),), largest=5.0), 50, rng=rng)
  assert bounded[:, 1].max() <= 5 and len(bounded) == 50
  exact = problems.draw_points(problem("5 + 0*x", largest=5.0), rng=rng)
  assert len(exact) == 20
  with np.errstate(all="ignore"):
    assert len(problems.draw_points(problem("sqrt(x)", ((-1.0, 1.0),)), rng=rng)) == 20
    with pytest.raises(InputError,
      match=r"no point of 'sqrt\(-1 - x\)' in 0:1 has a finite value of at most 1e\+07 in size"):
      problems.draw_points(problem("sqrt(-1 - x)"), rng=rng)
    half = problems.draw_points(problem("sqrt(x)", ((-1.0, 1.0),), spacing="grid"), 9, rng=rng)
    assert len(half) == 5  # points of a grid are left out
    with pytest.raises(InputError):
      problems.draw_points(problem("sqrt(x)", ((-1.0, 1.0),), spacing="grid"), 8, rng=rng)


def test_points_outside_lie_within_a_distance_of_the_box():
  rng = np.random.default_rng(0)
  points = problems.draw_points_outside(problem("x", ((-1.0, 1.0),)), 300, distance=2.0, rng=rng)
  size = np.abs(points[:, 0])
  assert len(points) == 300 and size.min() > 1 and 2.9 < size.max() <= 3
  plane = problems.draw_points_outside(problem("x + y", ((-1.0, 1.0),) * 2), 300, distance=1.0, rng=rng)
  assert (np.abs(plane[:, :2]).max(axis=1) > 1).all() and (np.abs(plane[:, :2]).min(axis=1) < 1).any()
  with np.errstate(all="ignore"), pytest.raises(InputError, match="outside -1:1 within 2"):
    problems.draw_points_outside(problem("acos(x)", ((-1.0, 1.0),)), 300, distance=2.0, rng=rng)


def test_fewer_points_outside_than_a_hundred_say_nothing(monkeypatch):
  blocks = [np.array([[2.0]] * 99), np.zeros((0, 1))]
  monkeypatch.setattr(problems, "_uniform_blocks", lambda box, num, rng: iter(blocks))
  with pytest.raises(InputError, match="outside"):
    problems.draw_points_outside(problem("x"), 300, distance=2.0, rng=None)
  blocks[1] = np.array([[2.0]])
  assert len(problems.draw_points_outside(problem("x"), 300, distance=2.0, rng=None)) == 100


def test_boxes_in_other_units():
  moved = problems.move_box(problem("x**2", ((1.0, 3.0),)), scale=10.0, shift=5.0)
  assert moved.box == ((15.0, 35.0),) and problems.format_box(moved.box) == "15:35"
  points = problems.draw_points(moved, 5, rng=np.random.default_rng(0))
  np.testing.assert_allclose(points[:, 1], ((points[:, 0] - 5) / 10) ** 2)
  same = problems.move_box(problem("x**2", ((1.0, 3.0),)))
  assert same.truth == formula("x**2") and same.box == ((1.0, 3.0),)
  assert problems.largest_finite_box(formula("log(x) + 0*y"), 3) == ((0.0, 5.0), (-5.0, 5.0), (-5.0, 5.0))
  with np.errstate(all="ignore"):
    assert problems.largest_finite_box(formula("log(-x)"), 1) == ((-5.0, 0.0),)
    assert problems.largest_finite_box(formula("log(-1 - x**2)"), 1) is None


def test_fresh_equations_are_read_to_the_digits_that_they_hold():
  found = problems.load_equations(problems.FRESH_EQUATIONS[1], num_equations=40)
  assert len(found) == 40 and found[0].name == "fresh-1" and found[39].name == "fresh-40" and found[0].family == "fresh"
  assert all(one.num_points == 100 and one.num_variables == 1 for one in found)
  pairs = problems.load_equations(problems.FRESH_EQUATIONS[2], num_equations=40)
  assert {one.num_points for one in pairs if one.num_variables == 2} == {200}
  texts = " ".join(one.text for one in found)
  assert "0000001" not in texts and "99999" not in texts


# --- suites ------------------------------------------------------------------------------------------------------


@pytest.fixture
def own(tmp_path):
  (tmp_path / "own.csv").write_text("family,name,n_vars,expression,ranges\n" + "".join(
    f"f,p{i},1,x + {i},0:1\n" for i in range(5)))
  return str(tmp_path / "own.csv")


def test_the_protocols_of_the_suites():
  """Section 4 of the paper: 256 samples of the top 16 or 20; every suite under an hour."""
  assert {name: (suite.method.choice, suite.method.num_samples, suite.method.top_k, suite.method.refine,
    suite.num_equations)
          for name, suite in SUITES.items()} == {
    "paper": ("most accurate", 1024, 20, "lm", None), "official": ("most accurate", 1024, 20, "lm", None),
    "in_domain": ("lowest error", 256, 16, "lm", 256), "out_of_domain": ("lowest error", 256, 20, "lm", 1024),
    "ablation": ("lowest error", 256, 20, "lm", 256), "examples": ("recommended", 256, 20, "lm", None),
    "laws": ("recommended", 1024, 20, "lm", None), "samples": ("lowest error", 256, 20, "none", 64),
    "noise": ("recommended", 256, 20, "lm", None), "sources": ("recommended", 1024, 20, "lm", 32),
    "anytime": ("recommended", 1024, 20, "lm", 32), "points": ("recommended", 256, 20, "lm", None),
    "ranges": ("recommended", 256, 20, "lm", None)}

  def values(name):
    return [label.rpartition("=")[2] for label, _ in SUITES[name].variants]
  assert values("out_of_domain") == ["1", "2", "5", "10", "20"] and values("noise") == ["0", "0.001", "0.01", "0.1"]
  assert values("samples") == [str(4**k) for k in range(2, 8)] == [name.partition("=")[2] for name in published.SAMPLES]
  assert values("points") == ["16", "32", "64", "100", "256", "1000"] and values("anytime") == ["1", "3", "10", "30",
    "100", "300"]
  assert [changes for _, changes in SUITES["laws"].variants] == [{"noise": 0.0}, {"noise": 0.01}]
  box = problem("x", ((1.0, 2.0),))
  moved = [changes["problem"](box).box[0] if changes else None for _, changes in SUITES["ranges"].variants]
  assert moved == [None, (10, 20), (100, 200), (11, 12), (101, 102)]
  changed = {label: changes["config"](DEFAULT) for label, changes in SUITES["sources"].variants if changes}
  assert changed["network alone"].sources == ("closed_forms", "transformer")
  assert changed["without growth"].sources == tuple(s for s in DEFAULT.sources if s != "growth")
  name = DEFAULT.library.families[0]
  assert changed[f"without library {name}"].library.families == DEFAULT.library.families[1:]
  assert not any(label.endswith((" y", "closed_forms", "guesses")) for label in changed)


def test_settings_of_the_user_come_before_the_suite_and_variants_before_them(own):
  settings = Settings(problems=own, num_equations=2, skip=1, num_samples=7, top_k=3, refine="gd", max_time=2.0,
                      recombine=False, noise=0.25, seeds=2, max_abs_value=9.0)
  tasks = suites.make_tasks(suites.PROBLEMS_SUITE, settings)
  assert [(task.problem.name, task.seed) for task in tasks] == [("p1", 0), ("p1", 1), ("p2", 0), ("p2", 1)]
  assert tasks[0].method == Method("recommended", 7, 3, "gd", 2.0, False) and tasks[0].noise == 0.25
  assert tasks[0].problem.largest == 9.0 and tasks[0].key == ("", "p1", "0") and tasks[0].num_points is None
  assert all(task.noise == 0.1 for task in suites.make_tasks(SUITES["noise"], settings) if task.variant == "noise=0.1")
  plain = suites.make_tasks(suites.PROBLEMS_SUITE, Settings(problems=own))
  assert len(plain) == 5 and plain[0].method == Method() and plain[0].noise == 0 and plain[0].problem.largest == 1e7
  with pytest.raises(InputError, match="--skip=5: there are 5 problems"):
    suites.make_tasks(suites.PROBLEMS_SUITE, Settings(problems=own, skip=5))
  assert len(suites.make_tasks(suites.PROBLEMS_SUITE, Settings(problems=own, skip=4))) == 1
  assert len(suites.make_tasks(SUITES["anytime"], Settings(num_equations=3))) == 18
  with pytest.raises(InputError, match="--num_equations=99999 after 2: the validation split of"):
    suites.make_tasks(SUITES["anytime"], Settings(num_equations=99999, skip=2))
  question = dataclasses.replace(tasks[0], variant="v", distance=3.0).question
  assert question == tasks[0]


def test_peers_are_asked_what_is_no_matter_of_the_model(own):
  tasks = suites.make_tasks(SUITES["noise"], Settings(problems=own, num_equations=1, baseline=("operon",)))
  peers_ = [task for task in tasks if task.method.peer]
  assert [task.variant for task in peers_] == [f"operon noise={level}" for level in ("0", "0.001", "0.01", "0.1")]
  tasks = suites.make_tasks(SUITES["in_domain"], Settings(problems=own, num_equations=1, baseline=("operon", "file")))
  assert [task.variant for task in tasks if task.method.peer] == ["operon", "file"]
  timed = suites.make_tasks(SUITES["anytime"], Settings(problems=own, num_equations=1, baseline=("operon",)))
  assert [task.method.max_time for task in timed if task.method.peer] == [1, 3, 10, 30, 100, 300]
  ablation = suites.make_tasks(SUITES["ablation"], Settings(problems=own, num_equations=1, baseline=("operon",)))
  assert [task.encoding for task in ablation if task.method.peer] == [None]


@pytest.mark.parametrize(("name", "settings", "message"), [
  ("paper", Settings(problems="f"), "--suite=paper and --problems=f: expected one of them"),
  (None, Settings(), "expected --suite .one of paper"),
  ("papr", Settings(), "unknown suite 'papr'.*; did you mean 'paper'"),
  ("zzzz", Settings(), "unknown suite 'zzzz': expected one of")])
def test_suites_by_name(name, settings, message):
  with pytest.raises(InputError, match=message):
    suites.find_suite(name, settings)
  assert suites.find_suite("paper", Settings()) is SUITES["paper"]
  assert suites.find_suite(None, Settings(problems="f")) is suites.PROBLEMS_SUITE
  assert (Settings().variables, Settings().skip, Settings().seeds) == (1, 0, 1)


def test_figures_of_the_paper_are_as_they_were_typed():
  tables = (published.BENCHMARKS, published.BIVARIATE, published.ABLATION, published.IN_DOMAIN, published.SAMPLES)
  assert hashlib.sha256(repr(tables).encode()).hexdigest()[:16] == "baebbc393cb88e8c"
  for r2, _ in published.SAMPLES.values():
    assert 0.99 < r2 < 1
  assert set(published.EXAMPLES) == {f"pictured-{i}" for i in range(1, 17)}


# --- models, peers -----------------------------------------------------------------------------------------------


def task_of(**changed):
  return Task("", problem("x"), Method(), 0, **changed)


def test_models_by_the_encoding_that_a_task_wants(monkeypatch):
  loaded = []
  monkeypatch.setattr(models.registry, "load_model", lambda name, *, num_variables=1: loaded.append(num_variables) or (
    types.SimpleNamespace(name=f"m{num_variables}", vocab=types.SimpleNamespace(encoding="extended"))))
  shipped = models.Models(None)
  assert shipped(task_of()) is shipped(task_of()) and loaded == [1]
  assert shipped(dataclasses.replace(task_of(), problem=problem("x*y", ((0.0, 1.0),) * 2))).name == "m2"
  tasks = [task_of(encoding="extended"), task_of(), dataclasses.replace(task_of(encoding="base"), variant="v")]
  assert shipped.split(tasks) == (tasks[:2], {"v": "no model with the encoding 'base'"})
  a, b = types.SimpleNamespace(name="a"), types.SimpleNamespace(name="b")
  assert models.Models({"base": a})(task_of()) is a
  both = models.Models({"base": a, "extended": b})
  assert both(task_of(encoding="extended")) is b and both.split(tasks)[1] == {}
  with pytest.raises(InputError, match="--model: expected one model for this suite, got a, b"):
    both(task_of())


def test_a_folder_may_hold_a_model_of_each_encoding(tmp_path, monkeypatch):
  monkeypatch.setattr(models.registry, "load_model", lambda path: types.SimpleNamespace(
    name=path, vocab=types.SimpleNamespace(encoding=path.rpartition("/")[2][0])))
  for name in ("deep/base", "extended"):
    (tmp_path / name).mkdir(parents=True)
    (tmp_path / name / models.registry.CARD).write_text("{}")
  assert set(models.open_models(str(tmp_path))._by_encoding) == {"b", "e"}
  assert set(models.open_models(str(tmp_path / "extended"))._by_encoding) == {"e"}
  assert models.open_models("auto")._by_encoding is None and models.open_models("name")._by_encoding.keys() == {"n"}
  (tmp_path / "big").mkdir()
  (tmp_path / "big" / models.registry.CARD).write_text("{}")
  with pytest.raises(InputError, match="holds two models with the encoding 'b'"):
    models.open_models(str(tmp_path))


def predictions_of(tmp_path, text):
  (tmp_path / "p.csv").write_text(text)
  return peers.read_predictions(str(tmp_path / "p.csv"))


def test_predictions_of_others_by_name_and_seed(tmp_path):
  found = predictions_of(tmp_path, "name,expression,seed,seconds\na,x,,\nb,2*x,3,1.5\n")
  assert found == {("a", None): ("x", 0.0), ("b", 3): ("2*x", 1.5)}
  assert predictions_of(tmp_path, "name,expression\na,x\n") == {("a", None): ("x", 0.0)}
  with pytest.raises(InputError, match="no column 'expression', expected name,expression, got .'name'"):
    predictions_of(tmp_path, "name\na\n")
  with pytest.raises(InputError, match=r"p.csv, row 2 \(b\): "):
    predictions_of(tmp_path, "name,expression,seed\na,x,1\nb,x,z\n")
  with pytest.raises(InputError, match="cannot read"):
    peers.read_predictions(str(tmp_path / "none.csv"))
  asked = peers.Peers({"file": ""}, {}, "", {("n", None): ("2*x", 1.5), ("n", 4): ("3*x", 2.5),
    ("odd", 0): ("2*", 0.0)})
  task = dataclasses.replace(task_of(), method=Method(peer="file"))
  points = np.zeros((3, 2))
  assert (asked(task, points).node, asked(task, points).seconds) == (formula("2*x"), 1.5)
  assert asked(dataclasses.replace(task, seed=4), points).node == formula("3*x")
  none = asked(dataclasses.replace(task, problem=dataclasses.replace(task.problem, name="q")), points)
  assert none.node is None and none.message == "the file of predictions has no such problem" and none.model == "file"
  odd = asked(dataclasses.replace(task, problem=dataclasses.replace(task.problem, name="odd")), points)
  assert odd.node is None and odd.message.startswith("its formula cannot be read")
  assert (odd.seconds, odd.compile_seconds, none.seconds, none.compile_seconds) == (0, 0, 0, 0)


def test_peers_that_are_there_are_asked(monkeypatch, tmp_path):
  monkeypatch.setattr(peers, "_version", lambda python, package: "1.2" if package == "pyoperon" else None)
  found = peers.open_peers(("operon", "gplearn"), python="py")
  assert found.versions == {"operon": "1.2"} and found.missing == {"gplearn": "not installed: pip install gplearn"}
  assert found.python == "py" and peers.open_peers(()).python == sys.executable
  asked = []
  monkeypatch.setattr(peers, "_fit", lambda python, name, points, *, seed,
    max_time: asked.append((name, seed, max_time)) or {
    "expression": "x0 + x1", "seconds": 1.5, "import_seconds": 0.5})
  task = dataclasses.replace(task_of(), method=Method(peer="operon"), seed=3)
  answer = found(task, np.zeros((4, 3)))
  assert answer.node == parser.parse("x0 + x1", ["x0", "x1"]) and (answer.seconds, answer.compile_seconds) == (1.5, 0.5)
  found(dataclasses.replace(task, method=Method(peer="operon", max_time=2.0)), np.zeros((4, 3)))
  assert answer.model == "operon 1.2" and asked == [("operon", 3, 10.0), ("operon", 3, 2.0)]

  def fail(*_, **__):
    raise InputError("dead")
  monkeypatch.setattr(peers, "_fit", fail)
  dead = found(task, np.zeros((4, 3)))
  assert (dead.node, dead.message, dead.seconds, dead.compile_seconds) == (None, "dead", 0.0, 0.0)
  for names, options, message in ((("odd",), {}, "unknown system 'odd'"), (("file",), {}, "expected both or neither"),
                                  (("operon",), {"predictions": "p"}, "expected both or neither")):
    with pytest.raises(InputError, match=message):
      peers.open_peers(names, **options)


def test_the_version_of_a_package_is_that_of_its_interpreter():
  assert peers._version(sys.executable, "numpy") == np.__version__ and peers._version(sys.executable, "no-such") is None
  with pytest.raises(InputError, match="--baseline_python: cannot run 'no-such-python'"):
    peers._version("no-such-python", "numpy")


class Process:
  """In place of a peer's process."""

  made: list = []

  def __init__(self, command, **options):
    Process.made.append((command, options))
    self.pid, self.returncode = 12345, Process.code

  def communicate(self, text=None, timeout=None):
    Process.asked = text, timeout
    if timeout is not None and Process.is_slow:
      raise subprocess.TimeoutExpired("x", timeout)
    return Process.reply, Process.said

  def poll(self):
    return None if Process.is_slow else 0


def test_a_peer_is_asked_in_a_process_that_is_killed_in_time(monkeypatch):
  killed = []
  monkeypatch.setattr(peers.subprocess, "Popen", Process)
  monkeypatch.setattr(peers.os, "killpg", lambda pid, number: killed.append((pid, number)))
  monkeypatch.setattr(peers.os, "sched_getaffinity", lambda pid: {0, 1, 2})
  Process.code, Process.is_slow, Process.reply, Process.said = 0, False, '{"expression": "x0"}\n', ""
  points = np.array([[1.0, 2.0], [3.0, 4.0]])
  assert peers._fit("py", "operon", points, seed=3, max_time=5.0) == {"expression": "x0"} and not killed
  text, timeout = Process.asked
  assert timeout == 65 and json.loads(text) == {
    "peer": "operon", "x": [[1.0], [3.0]], "y": [2.0, 4.0], "seed": 3, "max_time": 5.0, "num_cores": 3}
  [(command, options)] = Process.made
  assert command == ["py", peer_fits.__file__] and options["start_new_session"] and options["text"]
  assert {options["env"][f"{name}_NUM_THREADS"] for name in ("OMP", "OPENBLAS", "MKL")} == {"3"}
  for code, reply, said, message in ((1, "x", "a\nlast", r"operon failed \(exit code 1\): last"),
                                     (0, " ", "", "no message"), (1, "x", "w" * 300, "w{200}$")):
    Process.code, Process.reply, Process.said = code, reply, said
    with pytest.raises(InputError, match=message):
      peers._fit("py", "operon", points, seed=3, max_time=5.0)
  Process.is_slow = True
  with pytest.raises(InputError, match="operon was killed: no answer 60 s after its time limit of 5 s"):
    peers._fit("py", "operon", points, seed=3, max_time=5.0)
  assert [pid for pid, _ in killed] == [12345]


def stub(monkeypatch, path, **content):
  parts = path.split(".")
  for i in range(len(parts)):
    monkeypatch.setitem(sys.modules, ".".join(parts[: i + 1]), types.SimpleNamespace(**(
      content if i == len(parts) - 1 else {})))


class Regressor:
  """In place of those of other packages."""

  def __init__(self, **options):
    Regressor.options, self.generations, self.fits = options, options.get("generations"), 0
    node = types.SimpleNamespace
    self._program = node(raw_fitness_=Regressor.error, program=[node(name="mul", arity=2), 0, node(
      name="sin", arity=1), 1.5])
    self.model_ = "model"

  def fit(self, x, y, **options):
    self.fits += 1
    Regressor.num_fits, Regressor.fit_options = self.fits, options

  def set_params(self, generations):
    self.generations = generations

  def get_model_string(self, model, digits, names):
    return f"{model} {digits} {names}"

  def model_string(self):
    return "text"

  def sympy(self):
    return "x0"


def test_what_peers_are_given(monkeypatch):
  x, y = np.zeros((5, 2)), np.zeros(5)
  for path, name in (("pyoperon.sklearn", "SymbolicRegressor"), ("gplearn.genetic", "SymbolicRegressor"),
                     ("rils_rols.rils_rols", "RILSROLSRegressor"), ("pysr", "PySRRegressor")):
    stub(monkeypatch, path, **{name: Regressor})
  monkeypatch.setenv("PYTHON_JULIACALL_THREADS", "")
  Regressor.error = 1e-16

  def fitted(name, max_time=7.5):
    steps = peer_fits.FITS[name](x, y, 3, max_time, 2)
    assert next(steps) is None
    return next(steps)
  assert fitted("operon") == "model 17 ['x0', 'x1']"
  assert Regressor.options == {
    "allowed_symbols": peer_fits.OPERON_SYMBOLS, "optimizer_iterations": 5, "generations": 10**6,
    "max_evaluations": 10**9, "max_time": 7, "n_threads": 2, "random_state": 3}
  fitted("operon", 0.5)
  assert Regressor.options["max_time"] == 1
  assert fitted("rils_rols") == "text" and Regressor.options == {"max_time": 7, "max_fit_calls": 10**9,
    "random_state": 3}
  fitted("rils_rols", 0.5)
  assert Regressor.options["max_time"] == 1
  assert fitted("pysr") == "x0" and peer_fits.os.environ["PYTHON_JULIACALL_THREADS"] == "2"
  assert Regressor.fit_options == {"variable_names": ["x0", "x1"]}
  assert Regressor.options == {
    "binary_operators": ["+", "-", "*", "/", "^"], "unary_operators": peer_fits.PYSR_UNARY,
    "constraints": {"^": (-1, 9)},
    "timeout_in_seconds": 7.5, "niterations": 10**6, "random_state": 3, "progress": False, "verbosity": 0,
    "temp_equation_file": True}
  assert fitted("gplearn") == "(x0 * sin((1.5)))" and Regressor.num_fits == 1
  assert Regressor.options == {
    "population_size": 1000, "generations": 1, "function_set": peer_fits.GPLEARN_FUNCTIONS, "metric": "mse",
    "parsimony_coefficient": 1e-4, "stopping_criteria": 1e-16, "warm_start": True, "random_state": 3,
    "low_memory": True, "n_jobs": 1}
  Regressor.error = 1.1e-16
  ticks = iter([0.0, 5.0, 7.5, 7.6])
  monkeypatch.setattr(peer_fits, "time", types.SimpleNamespace(perf_counter=lambda: next(ticks)))
  fitted("gplearn")
  assert Regressor.num_fits == 3  # until the time is over


# --- drawn tables, real data -------------------------------------------------------------------------------------


def test_tables_of_numbers_are_taken_as_a_rule_says(monkeypatch):
  monkeypatch.setattr(real_data, "to_number", lambda cell: float(cell) if cell != "x" else math.nan)
  rng = np.random.default_rng(0)

  def table(num_rows=15, num_columns=3, **changed):
    columns = {"": list(range(num_rows))} | {f"c{i}": rng.normal(size=num_rows).tolist() for i in range(num_columns)}
    return drawn_tables._as_set("p/t", columns | changed)
  found = table()
  assert found.target == "c2" and found.features == ("c0", "c1") and found.source == "pydataset:p/t"
  assert (found.family, found.where) == ("table", "")
  assert found.is_set_aside == drawn_tables._draw("p/t")[1]
  assert table(14) is None and table(3000) is not None and table(3001) is None and table(num_columns=1) is None
  assert len(table(num_columns=12).features) == 8
  assert table(c2=[1.0, 2, 3, 4, 5] * 3).target == "c1" and table(c2=[1.0, 2, 3, 4, 5, 6] + [1.0] * 9).target == "c2"
  assert table(c2=[7.0] * 15).features == ("c0",) and table(c2=list(range(5, 20))).features == ("c0",)
  worst = ["x"] * 4 + list(map(float, range(16)))
  assert table(20, c2=worst[::-1]).target == "c2" and table(20, c2=["x", *worst[:-1]]).target == "c1"
  assert table(18, c2=worst[2:]) is not None and table(16,
    c2=["x"] * 2 + [1.5, 9, 3, 4, 8, 6, 7, 2, 5, 1, 0, 3, 2, 7]) is None
  assert drawn_tables._as_set("p/t", {}) is None and drawn_tables._as_set("p/t", {"a": ["x"] * 20}) is None
  order, is_aside = drawn_tables._draw("a/name")
  digest = hashlib.sha256(b"wildname").digest()
  assert (order, is_aside) == (digest[0], digest[1] % 2 == 1)


def real_set(**changed):
  return RealSet(**{"name": "n", "family": "table", "source": "file:n", "target": "y", "features": ("x",), "where": "",
                    "is_set_aside": False} | changed)


def test_a_quarter_of_the_rows_is_scored(monkeypatch):
  x = np.arange(20.0)[:, None]
  monkeypatch.setattr(real_data, "_numbers", lambda real_set: (x, x[:, 0] * 2))
  split = real_data.load_split(real_set())
  assert len(split.y) == 15 and len(split.scored_y) == 5 and split.names == ("x",)
  assert {0.0, 19.0} <= set(split.x[:, 0]) and sorted([*split.x[:, 0], *split.scored_x[:, 0]]) == list(range(20))
  np.testing.assert_array_equal(split.scored_y, 2 * split.scored_x[:, 0])
  again = real_data.load_split(real_set())
  np.testing.assert_array_equal(again.scored_x, split.scored_x)
  season = real_data.load_split(real_set(family="series")).scored_x[:, 0] % 4
  assert len(set(season)) > 1  # of quarters of years not always the same one
  monkeypatch.setattr(real_data, "_numbers", lambda real_set: (np.arange(5000.0)[:, None], np.arange(5000.0)))
  large = real_data.load_split(real_set())
  assert len(large.y) + len(large.scored_y) == 4096 and len(large.scored_y) == 1024
  assert (np.diff(large.x[:, 0]) > 0).all()
  monkeypatch.setattr(real_data, "_numbers", lambda real_set: (np.arange(4096.0)[:, None], np.arange(4096.0)))
  assert len(real_data.load_split(real_set()).y) == 3072


def test_columns_of_real_data_are_numbers_or_said_to_be_missing(monkeypatch):
  columns = {"x": ["1", "2", None, "4", *["5"] * 7], "y": list("12345678901"), "k": list("aaaaaaaaaab")}
  monkeypatch.setitem(real_data.READERS, "test", lambda what: columns)
  monkeypatch.setattr(real_data, "to_number", lambda cell: float(cell) if cell else math.nan)
  x, y = real_data._numbers(real_set(source="test:t"))
  assert x.shape == (10, 1) and len(y) == 10
  x, y = real_data._numbers(real_set(source="test:t", where="k=a"))
  assert len(y) == 9
  with pytest.raises(InputError, match="test:t: no column 'q', expected one of x, y, k"):
    real_data._numbers(real_set(source="test:t", features=("q",)))
  with pytest.raises(InputError, match="no column 'z'"):
    real_data._numbers(real_set(source="test:t", where="z=1"))
  for num, is_enough in ((8, True), (7, False)):
    short = {name: cells[-num:] for name, cells in columns.items()}
    monkeypatch.setitem(real_data.READERS, "test", lambda what, short=short: short)
    if is_enough:
      assert len(real_data._numbers(real_set(source="test:t"))[1]) == 8
    else:
      with pytest.raises(InputError, match="expected at least 8 rows of numbers, got 7"):
        real_data._numbers(real_set(source="test:t"))
  assert [real_data._column_name(text) for text in ("a b (c)", "1x", "_y_")] == ["a_b_c", "c1x", "y"]
  assert real_data.belongs_aside("a") == (hashlib.sha256(b"a").digest()[-1] % 2 == 1)
  assert len(real_data.load_table()) > 20
  assert {each.family for each in real_data.load_table()} <= set(real_data.FAMILIES)


def test_computed_tables_are_of_physics():
  planck = real_data._compute_scipy("planck")
  peak = planck["wavelength_um"][np.argmax(planck["radiance"])]
  assert len(peak.shape) == 0 and peak == pytest.approx(2897.77 / 5778, abs=0.05)  # Wien's law
  assert planck["wavelength_um"][[0, -1]].tolist() == [0.2, 3.0] and len(planck["radiance"]) == 60
  flux = np.pi * np.trapezoid(planck["radiance"], planck["wavelength_um"])  # kW/m2, of Stefan and Boltzmann's 63 200
  assert flux == pytest.approx(5.670374e-8 * 5778**4 / 1000, rel=0.06)
  pendulum = real_data._compute_scipy("pendulum")
  assert pendulum["period"][0] == pytest.approx(2 * np.pi / np.sqrt(9.81), rel=1e-3)
  amplitude = pendulum["amplitude"]
  assert amplitude[[0, -1]].tolist() == [0.05, 3.0] and len(amplitude) == 60
  near = 2 * np.pi / np.sqrt(9.81) * (1 + amplitude**2 / 16 + 11 * amplitude**4 / 3072)
  np.testing.assert_allclose(pendulum["period"][amplitude < 1], near[amplitude < 1], rtol=1e-3)
  bessel, erf = real_data._compute_scipy("j0"), real_data._compute_scipy("erf")
  assert bessel["x"][[0, -1]].tolist() == [0,
    20] and bessel["y"][0] == 1 and np.sum(np.diff(np.sign(bessel["y"])) != 0) == 6
  assert erf["x"][[0, -1]].tolist() == [-3, 3] and erf["y"][-1] == pytest.approx(math.erf(3))


def test_fluids_are_asked_at_their_temperatures(monkeypatch):
  asked = []

  def props(output, first, t, kind, value, fluid):
    asked.append((output, first, kind, fluid))
    return np.asarray(t) * (1.0 if np.ndim(value) else 1 + value)
  stub(monkeypatch, "CoolProp.CoolProp", PropsSI=props)
  monkeypatch.setattr(real_data.util, "find_spec", lambda name: object())
  latent = real_data._compute_coolprop("latent_heat_water")
  np.testing.assert_allclose(latent["h"], latent["T_K"] / 1000)
  assert latent["T_K"][[0, -1]].tolist() == [274, 640] and len(latent["h"]) == 60
  nitrogen = real_data._compute_coolprop("density_nitrogen")
  assert len(nitrogen["rho"]) == 180 and nitrogen["T_K"].min() >= 200 and nitrogen["T_K"].max() <= 600
  assert 1 <= nitrogen["p_bar"].min() < 3 and 98 < nitrogen["p_bar"].max() <= 100
  for name, (output, fluid, ends, (kind, value), column) in real_data._COOLPROP.items():
    found = real_data._compute_coolprop(name)
    assert found["T_K"][[0, -1]].tolist() == list(ends) and len(found[column]) == 60
    assert asked[-1] == (output, "T", kind, fluid) and value in (0.0, 101325.0)
    assert (kind == "P") == (value == 101325.0)
  text = repr(real_data._COOLPROP)
  assert hashlib.sha256(text.encode()).hexdigest()[:16] == "41e588d67927f308"


def test_spaces_after_commas_are_no_part_of_cells():
  assert real_data._columns('a, b\n1, "2"\n') == {"a": ["1"], "b": ["2"]} and real_data._columns("") == {}


def split_of(y=None):
  x = np.linspace(0, 1, 12)[:, None]
  y = 2 * x[:, 0] if y is None else y(x[:, 0])
  return Split(("x",), x[::2], y[::2], x[1::2], y[1::2])


@pytest.mark.parametrize(("text", "least_squares", "boosting", "faults"), [
  ("2*x", 1.0, 1.0, ()), ("2*x", None, None, ()), ("1.0", 0.2, 0.2, ("below least squares",)),
  ("1.0", None, 0.21, ("bare mean",)), ("1.0", 0.21, None, ("bare mean", "below least squares")),
  ("1.0", -0.5, 0.1, ()), ("2*x + 1", -2.0, None, ()), ("2*x + 1", 0.9, 0.9, ("below least squares",)),
  ("2.1*x**13", None, None, ("extreme exponent",)), ("2.1*x**12", None, None, ()),
  ("2.1*x**5.3", None, None, ("extreme exponent",)),
  ("2.1*x**4.3", None, None, ()), ("x**(2.1*x) + x", None, None, ("column in an exponent",))])
def test_what_is_wrong_with_an_answer(text, least_squares, boosting, faults):
  found = real_faults.find_faults(formula(text), split_of(), Yardsticks(least_squares, boosting))
  assert tuple(fault for fault in found if fault != "pole") == faults


def test_what_is_not_defined_on_a_scored_row_or_between_fitted_rows_is_undefined(monkeypatch):
  split, beside = split_of(), Yardsticks(None, None)
  for r2, fault, is_said in ((None, None, True), (0.5, real_faults.soundness.UNDEFINED, True), (0.5, None, False)):
    monkeypatch.setattr(real_faults, "score", lambda node, split, r2=r2: r2)
    monkeypatch.setattr(real_faults.soundness, "find_fault", lambda node, segments, fault=fault: fault)
    assert (real_faults.UNDEFINED in real_faults.find_faults(formula("2*x"), split, beside)) == is_said


def test_a_line_may_be_two_hundredths_below_least_squares():
  split = split_of()
  r2 = real_faults.score(formula("2*x + 0.1"), split)
  for beside, is_below in ((r2 + 0.0199, False), (r2 + 0.0201, True)):
    found = real_faults.find_faults(formula("2*x + 0.1"), split, Yardsticks(beside, None))
    assert (real_faults.BELOW_LINE in found) == is_below
  variance = np.var(np.concatenate([split.y, split.scored_y]))
  assert r2 == pytest.approx(1 - 0.01 / variance)
  with np.errstate(all="ignore"):
    assert real_faults.score(formula("log(x - 0.5)"), split) is None
    found = real_faults.find_faults(formula("log(x - 0.5)"), split, Yardsticks(0.5, None))
  assert real_faults.UNDEFINED in found and real_faults.BELOW_LINE in found
  law = split_of(lambda x: 3.5**x)
  assert real_faults.find_faults(formula("3.5**x"), law, Yardsticks(None, None)) == ()


# --- runs of real data -------------------------------------------------------------------------------------------


def real_row(name="a", choice="recommended", **changed):
  return real_runs.RealRow(**{"name": name, "family": "table", "set_aside": False, "choice": choice, "n_vars": 1,
    "rows": 9,
                              "predicted": "x", "complexity": 3, "r2": 0.5, "least_squares": 0.25, "boosting": None,
                              "seconds": 1.5} | changed)


def test_a_run_of_real_data_goes_on_where_it_was(tmp_path, monkeypatch):
  asked = []

  def answer(each, *, model, method):
    asked.append(each.name)
    if each.name == "bad":
      return [real_row("bad", message="why")]
    return [real_row(each.name, choice) for choice in ("recommended", "most accurate", "simple")]
  monkeypatch.setattr(real_runs, "answer", answer)
  sets, path, told = [real_set(name=name) for name in ("a", "bad", "c")], tmp_path / "r.csv", []
  rows, is_done = real_runs.run(sets, path, model="m", method=Method(), on_row=told.append,
                                should_stop=lambda: len(asked) == 2)
  assert not is_done and asked == ["a", "bad"] and len(rows) == 4 == len(told)
  path.write_text("\n".join(path.read_text().splitlines()[:3]) + "\n")  # the third line of `a` is cut off
  rows, is_done = real_runs.run(sets, path, model="m", method=Method())
  assert is_done and asked == ["a", "bad", "a", "bad", "c"] and len(rows) == 7 == len(path.read_text().splitlines()) - 1
  assert real_runs._read(path) == rows and rows[0] == real_row("a")
  path.write_text("a,b\n")
  with pytest.raises(InputError, match="is no results file of this suite"):
    real_runs._read(path)


def test_figures_of_real_data():
  rows = [real_row("a", r2=-3.0, faults="pole; alias"), real_row("b", r2=None, faults="pole", complexity=5),
          real_row("c", r2=0.8, family="law", faults=real_faults.BELOW_LINE), real_row("d", message="why"),
          real_row("e", r2=1.0, faults=real_faults.BELOW_LINE, complexity=7)]
  found = real_runs.summarize(rows)
  assert set(found) == {"recommended", "least squares", "boosting"}
  figures = found["recommended"]
  assert (figures["sets"], figures["with_a_fault"], figures["median_complexity"]) == (4, 4, 4)
  assert figures["mean_r2"] == pytest.approx(1.8 / 4) and figures["median_r2"] == pytest.approx((-3 + 0.8) / 2)
  assert figures["not_below_least_squares"] == pytest.approx(2 / 3)
  assert figures["faults"] == {"pole": 2, "alias": 1, real_faults.BELOW_LINE: 2}
  assert found["least squares"] == {"sets": 4, "mean_r2": 0.25, "median_r2": 0.25}
  assert real_runs.summarize([real_row(family="law")])["recommended"]["not_below_least_squares"] is None
  text = real_runs.make_report([*rows, real_row("s", set_aside=True)], {"model": "m"})
  assert text.startswith(f"# {real_runs.TITLE}\n\n- model: m\n\n## Sets looked at while developing")
  assert "| recommended | 4 | 4 | 0.450 | -1.100 | 4.0 | 0.67 | 2 pole, 1 alias, 2 below least squares |" in text
  assert "| b | 9, 1 | `x` | none | 0.250 | none | pole |" in text
  assert text.endswith("## Without an answer\n\n- d: why\n")
  assert "## Sets set aside" in text and "Sets set aside" not in real_runs.make_report(rows, {})


def test_three_lines_of_a_front_are_judged():
  split = split_of()
  lines = [Equation(formula(text), ("x",), mse, 0.5, 0.1, ()) for text,
    mse in (("1.0", 3.0), ("2*x", 2.0), ("2*x + x**2", 1.0))]
  result = types.SimpleNamespace(best=lines[1], pareto=lines, seconds=Seconds(search=1.23456))
  rows = real_runs.judge(real_row(predicted="", complexity=None), split, result, Yardsticks(0.5, 0.25))
  assert [each.choice for each in rows] == ["recommended", "most accurate", "simple"]
  assert rows[0].predicted == "2*x" and rows[1].predicted == "2*x + x**2" and rows[0].seconds == 1.23
  assert (rows[0].n_vars, rows[0].rows, rows[0].r2, rows[0].least_squares, rows[0].boosting) == (1, 6, 1.0, 0.5, 0.25)


# --- runs --------------------------------------------------------------------------------------------------------


def test_results_are_lines_that_come_back(tmp_path):
  path = tmp_path / "results.csv"
  results = runs.ResultsFile(path)
  full = row("a", seed=3, variant="v", needs_signs=True, seen_function=False, complexity=3, relative_error=0.25)
  results.add(full)
  results.add(Row("f", "b", 2, 0, "x", message="why, not"))
  assert runs.ResultsFile(path).rows == results.rows and results.rows[0].key == ("v", "a", "3")
  path.write_bytes(path.read_bytes() + b"f,c,1")
  assert runs.ResultsFile(path).rows == results.rows and path.read_bytes().endswith(b"\n")
  (tmp_path / "cut.csv").write_text("family,na")
  assert runs.ResultsFile(tmp_path / "cut.csv").rows == []
  assert (tmp_path / "cut.csv").read_text() == ",".join(runs.COLUMNS) + "\n"
  (tmp_path / "other.csv").write_text("a,b\n")
  with pytest.raises(InputError, match="is no results file of this version"):
    runs.ResultsFile(tmp_path / "other.csv")
  assert (tmp_path / "other.csv").read_text() == "a,b\n"
  (tmp_path / "bad.csv").write_text(path.read_text().replace("f,a,1", "f,a,one"))
  with pytest.raises(InputError, match="is damaged: .*; give another folder"):
    runs.ResultsFile(tmp_path / "bad.csv")


def sources_of(**changed):
  return runs.Sources(**{"model_for": lambda task: types.SimpleNamespace(name="m")} | changed)


def test_an_answer_is_judged_and_asked_once_for_each_question(monkeypatch, tmp_path):
  asked, opinions = [], []
  monkeypatch.setattr(answers, "answer", lambda model, points, method, *, seed: asked.append(seed) or Answer(
    formula("x*2"), "note", 1.23456, 0.98765, "m", Counts(9, 8, 7)))
  task = dataclasses.replace(task_of(), problem=problem("2*x", ((1.0, 3.0),)), seed=4)
  tasks = [task, dataclasses.replace(task, variant="far", distance=2.0),
    dataclasses.replace(task, variant="n", noise=0.5)]
  results, told = runs.ResultsFile(tmp_path / "r.csv"), []
  sources = sources_of(second_opinion=lambda truth, predicted: opinions.append(1) or "equal",
                       was_seen=lambda problem, model: (True, False))
  assert runs.run(tasks, sources, results, on_row=told.append) and len(asked) == 2 and told == results.rows
  first = results.rows[0]
  assert (first.seconds, first.compile_seconds, first.sampled, first.valid, first.distinct) == (1.2346, 0.9877, 9, 8, 7)
  assert first.recovered and first.same_skeleton and first.needs_signs is False and first.sympy == "equal"
  assert first.r2 == 1
  assert (first.predicted, first.complexity, first.message, first.model) == ("2*x", 3, "note", "m")
  assert (first.seen_function, first.seen_skeleton) == (True, False)
  assert runs.run(tasks, sources, results) and len(asked) == 2
  assert not runs.run([dataclasses.replace(task, seed=5)], sources, results, should_stop=lambda: True)


def judged(truth, predicted, box=((1.0, 3.0),)):
  opinions = []
  task = dataclasses.replace(task_of(), problem=problem(truth, box))
  with np.errstate(all="ignore"):
    _, scoring = runs.make_points(task)
    found = runs._judge(row("n"), task, formula(predicted), scoring, lambda *_: opinions.append(1) or "different")
  return found, bool(opinions)


def test_sympy_is_asked_of_formulas_that_nearly_agree():
  for predicted, is_asked in (("x", True), ("x + 0.0001*sin(9*x)", True), ("x + 0.01*sin(9*x)", False)):
    found, was_asked = judged("x", predicted)
    assert was_asked == is_asked == bool(found.sympy)
  signs, _ = judged("x", "sqrt(x**2)", ((0.0, 3.0),))
  assert signs.recovered and signs.needs_signs
  other, _ = judged("x", "2*x")
  assert other.recovered is False and other.needs_signs is False and other.fvu > 0.1


def test_what_cannot_be_asked_says_why(monkeypatch):
  def no_model(task):
    raise InputError("no model")
  assert runs.run_task(task_of(), sources_of(model_for=no_model)).message == "no model"
  peer = dataclasses.replace(task_of(), method=Method(peer="operon"))
  found = runs.run_task(peer, sources_of(model_for=no_model, ask_peer=lambda task,
    points: Answer(None, "dead", 0.0, 0.0, "o")))
  assert (found.message, found.predicted, found.model, found.seen_function) == ("dead", None, "o", None)


def test_points_of_a_task_are_the_same_in_every_variant():
  task = dataclasses.replace(task_of(), problem=problem("2*x + 1", ((1.0, 3.0),), 400))
  points, scoring = runs.make_points(task)
  noisy, clean = runs.make_points(dataclasses.replace(task, variant="v", noise=0.1))
  np.testing.assert_array_equal(points[:, 0], noisy[:, 0])
  np.testing.assert_array_equal(scoring, clean)
  rms = np.sqrt(np.mean(points[:, 1] ** 2))
  assert np.std(noisy[:, 1] - points[:, 1]) == pytest.approx(0.1 * rms, rel=0.1) and len(scoring) == 10_000
  few, _ = runs.make_points(dataclasses.replace(task, num_points=7))
  assert len(few) == 7 and len(points) == 400
  _, outside = runs.make_points(dataclasses.replace(task, distance=1.0))
  assert ((outside[:, 0] < 1) | (outside[:, 0] > 3)).all()
  huge = dataclasses.replace(task, noise=0.1, problem=problem(
    "10**(300*x)", ((0.9, 1.0),), 40, largest=math.inf))
  assert not np.isfinite(runs.make_points(huge)[0][:, 1]).any()  # and nobody is warned
  grid = dataclasses.replace(task, problem=problem("x", spacing="grid"))
  assert np.ptp(np.diff(runs.make_points(grid)[0][:, 0])) < 1e-12 < np.ptp(np.diff(runs.make_points(grid)[1][:, 0]))
  other, _ = runs.make_points(dataclasses.replace(task, seed=1))
  assert (other[:, 0] != points[:, 0]).all() and (scoring[:400, 0] != points[:, 0]).all()


def test_the_lowest_error_is_asked_of_the_network_as_the_method_says(monkeypatch):
  asked = {}

  def sample_and_fit(model, rows, key, **options):
    asked.update(options, rows=rows)
    none = np.zeros((0, 3))
    return samples.Samples(none.astype(int), none, np.zeros(0), model.vocab), Counts(2)

  monkeypatch.setattr(answers.samples_lib, "sample_and_fit", sample_and_fit)
  model = types.SimpleNamespace(name="m", vocab=Vocabulary(1))
  found = answers.answer(model, np.ones((5, 2)), Method("lowest error", 7, 3, "none"), seed=5)
  assert (asked["num_samples"], asked["top_k"], asked["refine"]) == (7, 3, "none")
  assert asked["is_allowed"].num_columns == 1 and asked["clock"] is not None and len(asked["rows"].y) == 5
  assert (found.model, found.counts, found.message) == ("m", Counts(2), "no sample is defined on all points")


def test_the_line_of_the_front_that_a_method_takes(monkeypatch):
  lines = [Equation(formula("x"), ("x",), 2.0, 0.5, 0.1, ()), Equation(formula("2*x"), ("x",), 1.0, 0.5, 0.1, ())]
  asked = {}

  def search(model, datasets, **options):
    asked.update(options)
    return [types.SimpleNamespace(best=lines[0], pareto=lines, message="m", counts=Counts(1), seconds=Seconds(
      search=2.0, compile=1.0))]
  monkeypatch.setattr(answers.inference, "search", search)
  model = types.SimpleNamespace(name="m")
  found = answers.answer(model, np.zeros((5, 2)), Method("recommended", 7, 3, "gd", 2.0, False), seed=5)
  assert found == Answer(lines[0].node, "m", 2.0, 1.0, "m", Counts(1))
  assert asked == {"n_samples": 7, "top_k": 3, "refine": "gd", "max_time": 2.0, "recombine": False, "seed": 5,
    "config": DEFAULT}
  assert answers.answer(model, np.zeros((5, 2)), Method("most accurate"), seed=5).node == lines[1].node
  unknown = types.SimpleNamespace(name="m", vocab=types.SimpleNamespace(num_variables=1))
  few = answers.answer(unknown, np.zeros((5, 3)), Method("lowest error"), seed=5)
  assert few == Answer(None, "the model knows 1 variables, the problem has 2", 0.0, 0.0, "m")
  assert answers.NUM_GLOBAL_STARTS == 10 and answers.NUM_POLISHED == 16 and Method() == Method("recommended", 1024,
    20, "lm")


# --- reports -----------------------------------------------------------------------------------------------------


def test_a_summary_counts_what_it_names():
  rows = [row("a", complexity=2, seconds=1.0, compile_seconds=2.0, relative_error=0.25, sympy="different",
    same_skeleton=False),
          row("b", r2=0.995, fvu=0.005, recovered_=False, complexity=4, seconds=3.0, sympy="equal"),
          Row("f", "c", 1, 0, "x", message="none")]
  found = report.summarize(rows)
  assert (found["rows"], found["answered"], found["sympy_disagrees"], found["equal_but_written_differently"]) == (3,
    2, 2, 1)
  assert found["share_r2_above_0.99"] == pytest.approx(2 / 3) and found["share_r2_above_0.999"] == pytest.approx(1 / 3)
  assert found["share_exact_in_float32"] == found["share_recovered"] == pytest.approx(1 / 3)
  assert found["median_r2"] == 0.995 and found["mean_r2"] == pytest.approx(1.995 / 3)
  assert found["median_complexity"] == 3 and found["mean_seconds"] == 2 and found["compile_seconds"] == 2
  assert found["median_relative_error"] is None and report.summarize([])["mean_r2"] is None
  wild = report.summarize([row("a", r2=-5.0, seconds=1.0), row("b", r2=1.5)])
  assert wild["mean_r2"] == 0.5
  edge = report.summarize([row("a", fvu=metrics.FLOAT32_FVU, seconds=1.0), row("b", fvu=0.9 * metrics.FLOAT32_FVU)])
  assert edge["share_exact_in_float32"] == 0.5
  assert found["share_recovered_interval"] == pytest.approx(metrics.wilson_interval(1 / 3, 3))
  assert found["median_r2_interval"] is None


def test_a_report_has_a_table_for_each_question():
  rows = [row("a", variant="one", seen_function=True, seen_skeleton=True, seconds=0.5, same_skeleton=True,
    needs_signs=True),
          row("a", variant="two", r2=0.5, fvu=0.5, recovered_=False, seen_function=False, seen_skeleton=True,
          seconds=2.0),
          Row("g", "b", 2, 0, "x|y", message="why", variant="two")]
  summary = report.make_summary(rows, {"model": {"name": "m", "none": None}, "seed": 3})
  assert summary["training_data"]["one"].keys() == {"function seen"}
  assert summary["training_data"]["two"].keys() == {"skeleton seen", "unknown"}
  assert report._seen(row("a", seen_function=False, seen_skeleton=False)) == "neither seen"
  assert summary["failed"] == [{"variant": "two", "name": "b", "seed": 0, "message": "why"}]
  assert summary["variables"]["two"].keys() == {"1", "2"} and set(summary["families"]["two"]) == {"f", "g"}
  text = report.make_report("Title", rows, summary | {"missing": {"three": "no model"}}, {"caption": "f.png"})
  assert text.startswith("# Title\n\n- model: name=m\n- seed: 3\n\n## Figures\n\n| variant | rows | median R2 |")
  assert "| three | missing: no model |  |" in text and "![caption](f.png)" in text
  assert "## By family, two" in text and "## By family, one" not in text
  assert "| less one | R2 > .999 |" in text and "| two | -1.000 (" in text
  assert "1 of the problems: one a." in text and "- two b (seed 0): why" in text
  assert "| one | function seen | 1 | 1.000000 | 100.0% | 100.0% |" in text
  assert "| two | b | `x\\|y` |  |  |  |  |" in text and text.endswith("why\n")
  alone = [row("a", seconds=0.5)]
  single = report.make_report("T", alone, report.make_summary(alone, {}), {})
  assert "| all | 1 |" in single and "unknown: no hash file" in single and "less" not in single
  assert "0 of the problems." in single and "Without an answer" not in single and "By family" not in single


def test_rows_of_a_report_end_at_two_hundred():
  assert "other" not in report._row_table([row(str(i)) for i in range(200)])
  text = report._row_table([row(str(i)) for i in range(201)])
  assert text.endswith("The other 1 rows are in results.csv.") and text.count("\n") == 203
  assert [report.describe_equality(*given) for given in ((None, None), (False, True), (True, True), (True, False))] == [
    "", "no", "yes", "equal in value, written differently"]
  assert report.format_figure(None, "d") == "" and report.format_figure(0.5, ".1%") == "50.0%"


# --- SymPy's opinion ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("truth", "predicted", "verdict"), [
  ("x0*x0", "x0**2", "equal"), ("(x0 + 1)**2", "x0**2 + 2*x0 + 1", "equal"), ("sin(x0)**2 + cos(x0)**2", "1", "equal"),
  ("x0", "2*x0", "different"), ("x0", "x1", "different")])
def test_what_sympy_says(truth, predicted, verdict):
  assert second_opinion.compare(truth, predicted) == verdict


def test_a_question_is_asked_once_and_a_process_that_dies_is_undecided(monkeypatch):
  opinion, asked = second_opinion.SecondOpinion(), []
  monkeypatch.setattr(opinion, "_ask", lambda question: asked.append(json.loads(question)) or "equal")
  assert opinion.timeout_s == 5.0
  for _ in range(2):
    assert opinion.ask(formula("1.23456789*x"), formula("x")) == "equal"
  assert asked == [{"truth": "1.23457*x0", "predicted": "x0"}]
  dying = second_opinion.SecondOpinion(0.1)

  def start():
    raise OSError
  monkeypatch.setattr(dying, "_start", start)
  assert dying._ask("{}") == "undecided"
  with second_opinion.SecondOpinion() as unused:
    assert unused._process is None


# --- plots -------------------------------------------------------------------------------------------------------


def test_curves_show_a_quarter_beyond_the_box_and_the_truth_whole():
  rows = [dataclasses.replace(row("n"), predicted="1/(x - 1)")]
  shown = problem("x**2", ((0.0, 2.0),))
  with np.errstate(all="ignore"):
    figure = plots.draw_predictions(rows, {rows[0].key: shown})
  [axes] = figure.axes
  truth, prediction = axes.lines
  x = truth.get_xdata()
  assert (x[0], x[-1], len(x)) == (-0.5, 2.5, 400) and axes.get_ylim() == pytest.approx((-1.2, 5.2), abs=0.05)
  assert (truth.get_linewidth(), truth.get_alpha()) == (3, 0.6) and prediction.get_linewidth() == 1.2
  assert axes.patches[0].get_facecolor()[0] == pytest.approx(0.92) and axes.title.get_size() == 8
  assert axes.get_title().startswith("n\n1/(x - 1)")
  assert truth.get_color() == plots.TRUTH_COLOUR and prediction.get_color() == plots.PREDICTED_COLOUR
  flat = plots.draw_predictions(rows[:1], {rows[0].key: problem("3 + 0*x")}).axes[0]
  assert flat.get_ylim() == (2.0, 4.0)
  many = [dataclasses.replace(row(str(i)), predicted="x") for i in range(18)]
  figure = plots.draw_predictions(many, {each.key: shown for each in many})
  assert len(figure.axes) == 16 and figure.get_size_inches().tolist() == [16, 12]
  five = plots.draw_predictions(many[:5], {each.key: shown for each in many})
  assert five.get_size_inches().tolist() == [16, 6]
  assert plots.draw_predictions([dataclasses.replace(row("n"), predicted=None)], {}) is None
  three = [dataclasses.replace(row("n"), n_vars=3)]
  assert plots.draw_predictions(three, {three[0].key: shown}) is None
  assert plots._shorten("a" * 48) == "a" * 48 and plots._shorten("a" * 49) == "a" * 45 + "..."


def test_surfaces_of_two_variables():
  rows = [dataclasses.replace(row("n"), n_vars=2, predicted="x*y + 0.1")]
  figure = plots.draw_predictions(rows, {rows[0].key: problem("x*y", ((0.0, 1.0), (0.0, 2.0)))})
  [axes] = figure.axes
  assert axes.name == "3d" and axes.get_zlim() == pytest.approx((-0.2, 2.2), abs=1e-6) and len(axes.collections) == 2
  flat = plots.draw_predictions(rows, {rows[0].key: problem("3 + 0*x*y", ((0.0, 1.0), (0.0, 2.0)))}).axes[0]
  assert flat.get_zlim() == pytest.approx((2.0, 4.0))


def test_shares_by_variant_distance_time_and_seconds():
  figures = {"share_r2_above_0.99": 0.9, "share_r2_above_0.999": 0.8, "share_r2_above_0.9999": 0.7,
    "share_recovered": 0.6,
             "median_relative_error": 0.1, "median_r2": None}
  assert plots.draw_variants({"a": figures}) is None
  axes = plots.draw_variants({"a": figures, "b": figures}).axes[0]
  assert [line.get_label() for line in axes.lines] == ["R2 > 0.99", "R2 > 0.999", "R2 > 0.9999", "recovered"]
  assert [line.get_ydata()[0] for line in axes.lines] == [0.9, 0.8, 0.7, 0.6] and axes.get_ylim() == (-0.02, 1.02)
  assert plots.draw_distance({"a": figures}) is None and plots.draw_anytime({"a": figures}) is None
  assert axes.figure.get_size_inches().tolist() == [7, 4] and axes.get_legend() is not None
  assert {line.get_marker() for line in axes.lines} == {"o"} and axes.get_ylabel() == "share of problems"
  assert axes.get_xgridlines()[0].get_alpha() == 0.3
  error, r2 = plots.draw_distance({"distance=10": figures, "distance=2": figures}).axes
  assert error.figure.get_size_inches().tolist() == [10, 4] and error.lines[0].get_marker() == "o"
  assert error.lines[0].get_color() == plots.PREDICTED_COLOUR and error.get_ylabel() == "median relative error"
  assert error.lines[0].get_xdata().tolist() == [2, 10] and np.isnan(r2.lines[0].get_ydata()).all()
  panels = plots.draw_anytime({"max_time=10": figures, "max_time=3": figures, "operon max_time=3": figures}).axes
  assert len(panels) == 3 and [line.get_label() for line in panels[0].lines] == ["the model", "operon"]
  assert list(panels[0].lines[0].get_xdata()) == [3, 10] and panels[2].lines[0].get_ydata()[0] == 0.6
  assert panels[0].get_xscale() == "log" and panels[0].get_ylim() == (-0.02, 1.02)
  rows = [row("a", fvu=1e-20, seconds=2.0), row("b", fvu=0.5, seconds=4.0, variant="v"),
    row("c", fvu=None, seconds=1.0),
          row("d", seconds=0.0)]
  axes = plots.draw_time(rows).axes[0]
  assert [each.get_offsets().tolist() for each in axes.collections] == [[[2.0, 1e-16]], [[4.0, 0.5]]]
  assert [each.get_label() for each in axes.collections] == ["the model", "v"] and axes.get_legend() is not None
  assert plots.draw_time(rows[:1]).axes[0].get_legend() is None and plots.draw_time(rows[2:]) is None
  assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
  assert axes.figure.get_size_inches().tolist() == [6, 4]
  assert {each.get_alpha() for each in axes.collections} == {0.6} and axes.collections[0].get_sizes().tolist() == [14]


def test_a_results_file_is_read_by_anybody():
  text = io.StringIO()
  csv.writer(text).writerow(runs.COLUMNS)
  assert text.getvalue().startswith("family,name,n_vars,seed,truth,predicted,complexity,r2,relative_error,recovered")
