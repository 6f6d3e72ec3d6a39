"""launch.evaluate, end to end, on a stand-in for a model."""

import json
import os
import pathlib
import re
import subprocess
import sys

from absl.testing import flagsaver
import numpy as np
import pytest

from data_gen import bloom, exclusion, seen
from launch import evaluate
from symformer_jax import files, testing
from symformer_jax.commands import runner
from symformer_jax.errors import DataError, InputError
from symformer_jax.evaluation import answers, peers, problems, runs, suites
from symformer_jax.language.parser import parse
from symformer_jax.pretrained import registry

ROOT = pathlib.Path(__file__).parents[2]
PROBLEMS = "family,name,n_vars,expression,ranges\nown,wave,1,2.5*sin(x) + 1.5,-5:5\nown,plane,2,x*y,0:1;0:1\n"


@pytest.fixture
def ask(tmp_path, monkeypatch):
  """Runs the command's main on two problems, of which the model knows one."""
  monkeypatch.setattr(registry, "load_model", lambda name: testing.FixedProposer(["2.1*sin(x0) + 1.1", "x0**2"]))
  (tmp_path / "own.csv").write_text(PROBLEMS, encoding="utf-8")
  if not evaluate.asked.FLAGS.is_parsed():
    evaluate.asked.FLAGS(["evaluate"])

  def run(**changes):
    values = {"problems": str(tmp_path / "own.csv"), "out": str(tmp_path / "out"), "samples": 16, "model": "fixed",
              "recombine": False}
    with flagsaver.flagsaver(**{**values, **changes}):
      return evaluate.main(["evaluate"])
  return run


def test_all_files_of_the_contract(ask, tmp_path, capsys):
  assert ask() == runner.SOME_FAILED
  out = tmp_path / "out"
  rows = runs.ResultsFile(out / "results.csv").rows
  assert [row.name for row in rows] == ["wave", "plane"]
  assert rows[0].recovered and rows[0].predicted == "2.5*sin(x) + 1.5"
  assert rows[1].predicted is None and "knows 1, the data have 2" in rows[1].message
  summary = json.loads((out / "summary.json").read_text())
  assert summary["variants"][""]["share_recovered"] == 0.5
  report = (out / "report.md").read_text()
  assert "2.5*sin(x) + 1.5" in report and "knows 1, the data" in report and (out / "predictions.png").exists()
  printed = capsys.readouterr().err.splitlines()
  assert printed[0].startswith("[1/2] wave: R2 1.000000") and printed[1].startswith("[2/2] plane: more variables")


def test_again_resumes(ask, tmp_path, capsys):
  ask()
  before = (tmp_path / "out" / "results.csv").read_bytes()
  capsys.readouterr()
  ask()
  assert (tmp_path / "out" / "results.csv").read_bytes() == before
  assert capsys.readouterr().err == ""


def test_two_processes_write_no_results_at_once(ask, tmp_path):
  (tmp_path / "out").mkdir()
  (tmp_path / "real").mkdir()
  refused = pytest.raises(InputError, match="--out: another process is writing to")
  with files.claimed(tmp_path / "out", flag="--out"), refused:
    ask()
  with files.claimed(tmp_path / "real", flag="--out"), refused, \
       flagsaver.flagsaver(suite="real", out=str(tmp_path / "real"), skip=100000):
    evaluate.main(["evaluate"])
  assert not list(tmp_path.rglob("results.csv"))


def test_other_settings_need_another_folder(ask):
  ask()
  with pytest.raises(InputError, match="holds results of --samples=16, not 32; give another folder"):
    ask(samples=32)


def test_every_setting_of_a_folder_is_told_of_by_the_name_of_its_flag():
  kept = {*vars(suites.Settings()), *vars(answers.Method())} - {"peer", "choice"}
  flags = {evaluate._FLAG_OF.get(name, name) for name in kept}
  assert flags <= set(evaluate.asked.FLAGS) and set(evaluate._FLAG_OF) <= kept


def test_a_folder_of_other_results_is_refused_and_left_as_it_is(ask, tmp_path):
  (tmp_path / "o").mkdir()
  (tmp_path / "o" / "results.csv").write_text("x,y\n")
  with pytest.raises(InputError, match="has a results.csv without the settings.json of this command; give another"):
    ask(out=str(tmp_path / "o"))
  assert [path.name for path in (tmp_path / "o").iterdir()] == ["results.csv"]


def test_settings_that_nobody_writes_are_not_waited_for(ask, tmp_path):
  (tmp_path / "o").mkdir()
  os.mkfifo(tmp_path / "o" / "settings.json")
  with pytest.raises(InputError, match="settings.json' is no regular file, expected a file name"):
    ask(out=str(tmp_path / "o"))
  (tmp_path / "o" / "settings.json").unlink()
  (tmp_path / "o" / "settings.json").symlink_to("/dev/zero")
  with pytest.raises(InputError, match="is no settings file of this command; give another folder"):
    ask(out=str(tmp_path / "o"))


def test_unusable_arguments(ask, tmp_path, monkeypatch):
  with pytest.raises(InputError, match="expected --out"):
    ask(out=None)
  (tmp_path / "file").write_text("")
  with pytest.raises(InputError, match="--out: cannot make the folder"):
    ask(out=str(tmp_path / "file" / "below"))
  with pytest.raises(InputError, match="unknown suite 'nothing'"):
    ask(suite="nothing", problems=None)
  for name in ("model", "problems", "data", "search_config", "baseline_python", "predictions", "seen"):
    flag = evaluate.asked.FLAGS[name]
    monkeypatch.setattr(flag, "present", 1)
    with pytest.raises(InputError, match=f"--{name}: expected a value, got nothing"):
      ask(**{name: [] if name == "seen" else ""})
    monkeypatch.setattr(flag, "present", 0)
  with pytest.raises(DataError, match="no manifest.json in /nowhere"):
    ask(seen=["/nowhere"])
  assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("name", "changes", "why"), [
  ("sets", {}, "without --suite=real"),
  ("sets", {"suite": "paper", "problems": None}, "without --suite=real"),
  ("list", {"list": "laws"}, "with --problems"), ("data", {"data": "none"}, "with --problems"),
  ("variables", {"variables": 2}, "with --problems"),
  ("data", {"data": "d", "problems": None, "suite": "paper"}, "with a list of functions, which the suite or "),
  ("variables", {"list": "laws", "problems": None, "suite": "in_domain"}, "with a list of functions, "),
  ("variables", {"data": "d", "problems": None, "suite": "in_domain"}, "with --data"),
  ("baseline_python", {"baseline_python": "/nope"}, "without --baseline"),
  *((name, {"suite": "real", "problems": None}, "with --suite=real")
    for name in ("variables", "seeds", "baseline", "baseline_python", "seen"))])
def test_flags_that_would_not_be_read_are_refused(ask, tmp_path, monkeypatch, name, changes, why):
  monkeypatch.setattr(evaluate.asked.FLAGS[name], "present", 1)
  with pytest.raises(InputError, match=f"^--{name}: says nothing {why}"):
    ask(**{"baseline_python": "python", "baseline": [], "seen": ["d"]} | changes)
  assert not (tmp_path / "out").exists()


def test_flags_that_the_fresh_equations_read_are_taken(ask, monkeypatch):
  monkeypatch.setattr(evaluate.asked.FLAGS["variables"], "present", 1)
  with pytest.raises(InputError, match="--num_equations=1 after 99999: .*bivariate"):
    ask(suite="in_domain", problems=None, variables=2, skip=99999, num_equations=1)


@pytest.mark.parametrize(("flag", "message"), [
  ("max_abs_value=0.0", "expected a number above 0: no point has less"), ("noise=inf", "expected a finite number")])
def test_sizes_that_leave_no_point_are_refused(flag, message):
  ended = subprocess.run([sys.executable, "-m", "launch.evaluate", "--problems=p.csv", f"--{flag}"],
                         cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
  assert (ended.returncode, ended.stderr) == (runner.UNUSABLE, f"error: flag --{flag}: {message}; see --help\n")


def test_a_baseline_in_the_same_table(ask, tmp_path, monkeypatch, capsys):
  theirs = tmp_path / "theirs.csv"
  theirs.write_text("name,expression\nwave,2.5*sin(x) + 1.5\nplane,x\nwaves,x\nplan,x\n", encoding="utf-8")
  monkeypatch.setattr(peers, "_version", lambda python, package: None)
  for _ in range(2):  # the second time resumes
    assert ask(baseline=["file", "gplearn"], predictions=str(theirs)) == runner.SOME_FAILED
  said = capsys.readouterr().err
  assert "note: --baseline=gplearn: not installed: pip install gplearn" in said
  assert "note: --predictions: 'waves' and 1 more: no problem of this run has that name\n" in said
  summary = json.loads((tmp_path / "out" / "summary.json").read_text())
  assert {name: v["share_recovered"] for name, v in summary["variants"].items()} == {"": 0.5, "file": 0.5}
  assert "| gplearn | missing: not installed" in (tmp_path / "out" / "report.md").read_text()


def test_what_the_model_has_met_is_told_from_the_files_its_card_names(ask, tmp_path):
  tree = parse("2.5*sin(x) + 1.5")
  space = seen.ProbeSpace(1, 5.0)
  filters = [bloom.BloomFilter(9, seen.RATE) for _ in seen.KINDS]
  filters[0].add(np.array([exclusion.fingerprint(exclusion.probe(tree, space))], np.uint64))
  model = testing.FixedProposer(["2.1*sin(x0) + 1.1"])
  model.folder, model.card = tmp_path, {
    "seen": seen.write(tmp_path, seen.Seen((seen.Part(tuple(filters), space, 1),)))}
  was_seen = evaluate._was_seen([], [model])
  [wave, plane] = problems.read_problems(tmp_path / "own.csv")
  assert was_seen(wave, model) == (True, False)
  assert was_seen(plane, model) is None
  model.card = {}
  assert evaluate._was_seen([], [model])(wave, model) is None
  assert evaluate._was_seen([], [])(wave, testing.FixedProposer(["x0"])) is None


@pytest.mark.parametrize(("described", "message"), [
  ([1], r"seen: expected objects with sha256 .* num_variables, box_edge and equations, got \[1\]"),
  ([{"sha256": {"seen-functions.bloom": "0"}}], "seen-functions.bloom is missing or damaged")])
def test_damaged_hashes_of_a_model_are_said_before_the_first_problem(ask, tmp_path, monkeypatch, described, message):
  model = testing.FixedProposer(["2.1*sin(x0) + 1.1"])
  model.folder, model.card = tmp_path, {"seen": described}
  monkeypatch.setattr(registry, "load_model", lambda name: model)
  with pytest.raises(DataError, match=message):
    ask()
  assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("arguments", "message"), [
  (["--suite=paper", "--baseline=eureqa", "--out=o"], "error: --baseline: unknown system 'eureqa'"),
  (["--suite=papers", "--out=o"], "error: unknown suite 'papers': expected one of paper, official"),
  (["--suite=paper", "--model=none", "--out=o"], "error: unknown model 'none'"),
  (["--suite=in_domain", "--data=none", "--out=o"], "error: no validation shards in none: expected files like"),
  (["--problems=none.csv", "--out=o"], "error: cannot read problem file 'none.csv': No such file or directory"),
  (["--suite=paper", "--samples=0", "--out=o"], "error: flag --samples=0"),
])
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, monkeypatch, capsys, arguments, message):
  monkeypatch.chdir(tmp_path)
  with flagsaver.flagsaver(), pytest.raises(SystemExit) as ended:
    runner.run(evaluate.main, argv=["evaluate", *arguments])
  printed = capsys.readouterr().err
  assert ended.value.code == runner.UNUSABLE
  assert printed.startswith(message) and printed.count("\n") == 1
  assert not list(tmp_path.iterdir())


def test_help_explains_every_flag():
  ended = subprocess.run([sys.executable, "-m", "launch.evaluate", "--help"], cwd=ROOT, capture_output=True, text=True,
                         check=True)
  source = pathlib.Path(evaluate.asked.__file__).read_text(encoding="utf-8")
  for name in re.findall(r'flags\.DEFINE_\w+\(\s*"(\w+)"', source):
    assert re.search(rf"--{name}: .{{15,}}", ended.stdout), name
