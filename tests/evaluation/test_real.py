"""The suite of real data: its table, its split, its judge, and the command on a few sets."""

import csv
import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.errors import InputError
from symformer_jax.evaluation import real_data, real_faults, real_runs
from symformer_jax.evaluation.real_faults import Yardsticks
from symformer_jax.language import parser

SETS = real_data.load_table()
PACKAGED = [s for s in SETS if s.source.startswith(("file:", "scipy:", "sklearn:"))]
NOTHING = Yardsticks(None, None)


def test_the_table_is_large_enough_and_names_are_unique():
  assert len(SETS) >= 40 and len({s.name for s in SETS}) == len(SETS)
  assert {s.family for s in SETS} == set(real_data.FAMILIES)
  assert all(s.source.partition(":")[0] in real_data.READERS for s in SETS)


def test_what_is_set_aside_follows_from_the_name():
  assert [s.is_set_aside for s in SETS] == [real_data.belongs_aside(s.name) for s in SETS]
  assert 0.4 < np.mean([s.is_set_aside for s in SETS]) < 0.6


@pytest.mark.parametrize("real_set", PACKAGED, ids=lambda s: s.name)
def test_a_split_is_fixed_and_loses_no_row(real_set):
  split, again = real_data.load_split(real_set), real_data.load_split(real_set)
  np.testing.assert_array_equal(split.x, again.x)
  assert round((len(split.y) + len(split.scored_y)) / real_data.ONE_IN) == pytest.approx(len(split.scored_y), abs=1)
  assert len(split.names) == split.x.shape[1]
  assert np.isfinite(split.x).all() and np.isfinite(split.y).all()
  parser.parse(" + ".join(split.names), split.names)  # names that a formula can be written with
  if split.x.shape[1] == 1:
    assert split.x.min() <= split.scored_x.min() and split.scored_x.max() <= split.x.max()


def test_the_packaged_numbers_are_the_certified_ones():
  # Misra1a: NIST certifies b1, b2 and a residual sum of squares 0.12455 for all fourteen rows.
  columns = real_data.READERS["file"]("Misra1a")
  x, y = (np.array(columns[name], float) for name in ("x", "y"))
  residual = y - 2.3894212918e2 * (1 - np.exp(-5.5015643181e-4 * x))
  assert np.sum(residual**2) == pytest.approx(1.2455138894e-1, rel=1e-6)


def test_a_missing_package_is_said_so(monkeypatch):
  monkeypatch.setattr(real_data.util, "find_spec", lambda name: None)
  real_set = next(s for s in SETS if s.source.startswith("statsmodels:"))
  with pytest.raises(InputError, match=r"statsmodels is not installed: pip install '.\[real\]'"):
    real_data.load_split(real_set)
  [row] = real_runs.answer(real_set, model="auto", method=real_runs.Method())
  assert "not installed" in row.message and not row.predicted


def make_split(function, *, columns=1, num=40):
  rng = np.random.default_rng(0)
  x = np.sort(rng.uniform(1, 9, (num, columns)), axis=0)
  is_scored = np.arange(num) % 4 == 2
  y = function(*x.T)
  return real_data.Split(("x", "z")[:columns], x[~is_scored], y[~is_scored], x[is_scored], y[is_scored])


@pytest.mark.parametrize("text, faults", [
  ("2*x", ()),
  ("2*x + log(x - 1.3)", ("undefined",)),
  ("2*x + 1e-5/(x - 5)**2", ("pole",)),
  ("2*x + 0.01*sin(50*x)", ("alias",)),
  ("9.5", ("bare mean", "below least squares")),
  ("1.5*x", ("below least squares",)),
])
def test_the_faults(text, faults):
  split = make_split(lambda x: 2 * x)
  found = real_faults.find_faults(parser.parse(text, ("x",)), split, Yardsticks(1.0, 0.9))
  assert set(found) >= set(faults) if "undefined" in faults else found == faults


@pytest.mark.parametrize("text, faults", [
  ("x**(0.01*z)*x + z", ("column in an exponent",)), ("x + z + 0.01*sin(0.1*x*z)", ("wave of several columns",)),
  ("x + z + 0.01*sin(0.1*x)", ("wave without a period",)), ("x + z + 1e-14*x**12.5", ("extreme exponent",)),
  ("x + z", ())])
def test_the_faults_of_several_columns(text, faults):
  split = make_split(lambda x, z: x + z, columns=2)
  assert real_faults.find_faults(parser.parse(text, ("x", "z")), split, NOTHING) == faults


def test_an_exact_law_may_be_made_of_anything():
  split = make_split(lambda x, z: x ** (0.3 * z), columns=2)
  assert real_faults.find_faults(parser.parse("x**(0.3*z)", ("x", "z")), split, NOTHING) == ()


def test_the_config_of_the_method_is_searched_with():
  split = make_split(lambda x: x**2 - 2)
  alone = dataclasses.replace(DEFAULT, sources=("closed_forms",), closed_forms=dataclasses.replace(
    DEFAULT.closed_forms, has_logarithms=False, has_waves=False, has_powers=False))
  result = real_runs.search(split, model="auto", method=real_runs.Method(config=alone))
  assert {turn.source for turn in result.rounds} == {"closed_forms"} and 0.9 < result.best.r2 < 0.999


def test_a_score_is_relative_to_the_variance_of_all_rows():
  split = make_split(lambda x: 2 * x)
  everything = np.concatenate([split.y, split.scored_y])
  error = np.mean((1.9 * split.scored_x[:, 0] - split.scored_y) ** 2)
  assert real_faults.score(parser.parse("1.9*x", ("x",)), split) == pytest.approx(1 - error / np.var(everything))
  assert real_faults.score(parser.parse("log(x - 8)", ("x",)), split) is None


def test_yardsticks_against_least_squares_by_hand():
  split = real_data.load_split(next(s for s in SETS if s.source == "sklearn:iris"))
  design = np.column_stack([split.x, np.ones(len(split.y))])
  solution = np.linalg.lstsq(design, split.y, rcond=None)[0]
  values = np.column_stack([split.scored_x, np.ones(len(split.scored_y))]) @ solution
  found = real_runs.yardsticks(split)
  assert found.least_squares == pytest.approx(real_faults.score_values(values, split), rel=1e-9)
  assert found.boosting > 0.8


def test_a_file_is_read_as_it_was_written_and_a_cut_set_is_dropped(tmp_path):
  path = tmp_path / "results.csv"
  rows = [real_runs.RealRow("a", "law", True, name, 1, 10, "2*x", 3, None, "pole; alias", 0.5, None, 1.5)
          for name in (real_runs.RECOMMENDED, real_runs.MOST_ACCURATE, real_runs.SIMPLE)]
  cut = real_runs.RealRow("b", "law", False, real_runs.RECOMMENDED)
  real_runs._write(path, [*rows, cut])
  assert real_runs._read(path) == [*rows, cut]
  kept, is_complete = real_runs.run([], path, model="auto", method=real_runs.Method())
  assert kept == rows and is_complete and real_runs._read(path) == rows


@pytest.mark.parametrize("change", [
  lambda data: data + b"\xff", lambda data: data.replace(b",1,10,", b",one,10,"),
  lambda data: data + b'a,law,"' + b"x" * 200_000])
def test_a_damaged_file_is_refused_in_one_line_and_stays_as_it_is(tmp_path, change):
  path = tmp_path / "results.csv"
  real_runs._write(path, [real_runs.RealRow("a", "law", True, real_runs.SIMPLE, 1, 10, "2*x", 3)])
  path.write_bytes(damaged := change(path.read_bytes()))
  with pytest.raises(InputError, match="results.csv' is damaged: .*; give another folder"):
    real_runs.run([], path, model="auto", method=real_runs.Method())
  assert path.read_bytes() == damaged


def test_figures_count_a_missing_r2_as_zero():
  rows = [real_runs.RealRow(name, "table", False, real_runs.RECOMMENDED, 1, 10, "x", 1, r2, faults, 0.2, 0.9)
          for name, r2, faults in (("a", 0.8, ""), ("b", None, "undefined; below least squares"), ("c", -3.0, "pole"))]
  figures = real_runs.summarize([*rows, real_runs.RealRow("d", "law", False, real_runs.RECOMMENDED, message="no")])
  own = figures[real_runs.RECOMMENDED]
  assert own["mean_r2"] == pytest.approx(0.8 / 3) and own["median_r2"] == -3.0 and own["with_a_fault"] == 2
  assert own["not_below_least_squares"] == pytest.approx(2 / 3)
  assert figures["boosting"]["mean_r2"] == pytest.approx(0.9)


@pytest.mark.slow
def test_the_command_writes_its_files_and_resumes(tmp_path):
  command = [sys.executable, "-m", "launch.evaluate", "--suite=real", "--sets=open", "--num_equations=2",
             "--samples=64", f"--out={tmp_path}"]
  first = subprocess.run(command, capture_output=True, text=True, check=False)
  assert first.returncode == 0, first.stderr
  with open(tmp_path / "results.csv", newline="", encoding="utf-8") as file:
    rows = list(csv.DictReader(file))
  assert [row["choice"] for row in rows] == ["recommended", "most accurate", "simple"] * 2
  assert json.loads((tmp_path / "summary.json").read_text())["open"]["recommended"]["sets"] == 2
  assert "## Sets looked at while developing" in (tmp_path / "report.md").read_text()
  again = subprocess.run(command, capture_output=True, text=True, check=False)
  assert again.returncode == 0 and "R2" not in again.stderr


def test_what_does_not_suit_the_suite_is_refused():
  run = subprocess.run([sys.executable, "-m", "launch.evaluate", "--suite=real", "--noise=0.1", "--out=x"],
                       capture_output=True, text=True, check=False)
  assert run.returncode == 2 and "--noise: not with --suite=real" in run.stderr


def test_the_files_are_written_where_no_set_is_left(tmp_path):
  run = subprocess.run(
    [sys.executable, "-m", "launch.evaluate", "--suite=real", "--skip=100000",
     "--search_config=configs/search/ablation.py:no_ridges", f"--out={tmp_path}"],
    capture_output=True, text=True, check=False)
  assert run.returncode == 0, run.stderr
  for name, key in (("settings.json", None), ("summary.json", "settings")):
    said = json.loads((tmp_path / name).read_text())
    assert (said[key] if key else said)["config"] == "configs/search/ablation.py:no_ridges"
