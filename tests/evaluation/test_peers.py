"""Other systems in the same table."""

import pathlib
import time
import types

import numpy as np
import pytest

from symformer_jax.errors import InputError
from symformer_jax.evaluation import answers, peer_fits, peers, runs, suites
from symformer_jax.evaluation.problems import Problem
from symformer_jax.language import expression
from symformer_jax.language.parser import parse

PROBLEM = Problem("own", "wave", parse("2*sin(x) + y"), "2*sin(x) + y", ((-5.0, 5.0), (0.0, 1.0)), 50)


def task(peer, **changes):
  return suites.Task(peer, PROBLEM, answers.Method(peer=peer, max_time=changes.pop("max_time", 1.0)), 0, **changes)


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
  """Puts a script in the place of the file that fits."""
  monkeypatch.setattr(peers, "_version", lambda python, package: "1.2")

  def place(code):
    script = tmp_path / "fit.py"
    script.write_text("import json, sys, time, os\nquestion = json.load(sys.stdin)\n" + code)
    monkeypatch.setattr(peer_fits, "__file__", str(script))
    return peers.open_peers(("operon",))
  return place


def test_points_seed_time_and_cores_reach_the_peer_and_its_formula_is_judged(stand_in):
  asked = stand_in("""
assert len(question["x"]) == len(question["y"]) == 50 and len(question["x"][0]) == 2, question
assert question["seed"] == 0 and question["max_time"] == 1.0 and question["peer"] == "operon", question
assert question["num_cores"] == len(os.sched_getaffinity(0)) == int(os.environ["OMP_NUM_THREADS"])
print(json.dumps({"expression": "2.0*sin(x0) + (x1^2)/x1", "seconds": 1.5, "import_seconds": 0.5}))
""")
  row = runs.run_task(task("operon"), runs.Sources(None, asked))
  assert (row.recovered, row.model, row.seconds, row.compile_seconds) == (True, "operon 1.2", 1.5, 0.5)
  assert row.same_skeleton and row.predicted == "2*sin(x) + y**2/y" and row.seen_function is None


@pytest.mark.parametrize(("code", "message"), [
  ("raise ValueError('no Julia')", r"operon failed \(exit code 1\): ValueError: no Julia"),
  ("os.kill(os.getpid(), 9)", r"operon failed \(exit code -9\)"),
  ("print(json.dumps({'expression': 'what(x0)', 'seconds': 1, 'import_seconds': 0}))",
   "its formula cannot be read: unknown name 'what'"),
])
def test_a_peer_that_fails_marks_the_row(stand_in, code, message):
  row = runs.run_task(task("operon"), runs.Sources(None, stand_in(code)))
  assert row.predicted is None and row.r2 is None
  with pytest.raises(AssertionError, match=message):
    raise AssertionError(row.message)


def test_a_peer_that_does_not_end_is_killed_with_its_children(stand_in, tmp_path, monkeypatch):
  monkeypatch.setattr(peers, "GRACE_S", 1.0)
  child = tmp_path / "child"
  asked = stand_in(f"""
import subprocess
started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open({str(child)!r}, "w").write(str(started.pid))
time.sleep(60)
""")
  begun = time.monotonic()
  row = runs.run_task(task("operon", max_time=0.5), runs.Sources(None, asked))
  assert "operon was killed: no answer 1 s after its time limit of 0.5 s" in row.message
  assert time.monotonic() - begun < 20
  time.sleep(0.2)
  state = pathlib.Path(f"/proc/{child.read_text()}/stat")
  assert not state.exists() or state.read_text().split()[2] == "Z"


def test_predictions_made_elsewhere(tmp_path):
  path = tmp_path / "theirs.csv"
  path.write_text("name,expression,seed,seconds\nwave,2*sin(x) + y,0,3.5\nwave,x,1,\nother,x,,\n")
  asked = peers.open_peers(("file",), predictions=str(path))
  first, second = (runs.run_task(suites.Task("file", PROBLEM, answers.Method(peer="file"), seed),
                                 runs.Sources(None, asked)) for seed in (0, 1))
  assert first.recovered and first.seconds == 3.5 and first.model == "file"
  assert second.recovered is False
  asked.predictions.clear()
  assert "no such problem" in runs.run_task(task("file"), runs.Sources(None, asked)).message


@pytest.mark.parametrize(("text", "message"), [
  ("name\nwave\n", "no column 'expression', expected name,expression"),
  ("name,expression,seed\nwave,x,first\n", r"row 1 \(wave\): invalid literal"),
  ("name,expression,seconds\nwave,x,nan\n", r"row 1 .*: seconds: expected a finite number of at least 0, got 'nan'"),
  ("name,expression,seconds\nwave,x,-1\n", "seconds: expected a finite number of at least 0, got '-1'"),
  ("name,expression,seed\nwave,x,\nwave,y,1\nwave,2*x,\n", r"row 3 \(wave\): the name stands in a row above, too"),
  ("name,expression,seed\nwave,x,1\nwave,x,01\n", r"row 2 \(wave\): the name stands in a row above, too"),
])
def test_bad_files_of_predictions(tmp_path, text, message):
  path = tmp_path / "theirs.csv"
  path.write_text(text)
  with pytest.raises(InputError, match=message):
    peers.open_peers(("file",), predictions=str(path))


def test_a_cell_of_any_length_is_refused_in_one_line(tmp_path):
  path = tmp_path / "theirs.csv"
  for text in (f"name,expression\nwave,{'x' * 200_000}\n", "n" * 200_000):
    path.write_text(text)
    with pytest.raises(InputError, match="--predictions: cannot read '.*theirs.csv': field larger than field limit"):
      peers.read_predictions(str(path))


def test_unusable_names_and_files():
  with pytest.raises(InputError, match="unknown system 'eureqa', expected some of operon, gplearn"):
    peers.open_peers(("eureqa",))
  with pytest.raises(InputError, match="expected both or neither"):
    peers.open_peers(("file",))
  with pytest.raises(InputError, match="--predictions: cannot read 'none.csv'"):
    peers.open_peers(("file",), predictions="none.csv")
  with pytest.raises(InputError, match="--predictions: cannot read '/dev/zero': .*is no regular file"):
    peers.open_peers(("file",), predictions="/dev/zero")
  with pytest.raises(InputError, match="--baseline_python: cannot run '/none'"):
    peers.open_peers(("operon",), python="/none")


def test_a_peer_that_is_not_installed_is_said_so(monkeypatch):
  monkeypatch.setattr(peers, "_version", lambda python, package: None)
  found = peers.open_peers(("gplearn",))
  assert not found.versions and found.missing == {"gplearn": "not installed: pip install gplearn"}


def test_versions_are_those_of_the_other_python():
  assert peers._version(peers.sys.executable, "numpy") == np.__version__
  assert peers._version(peers.sys.executable, "no-such-package") is None


def test_programs_of_gplearn_become_formulas():
  function = lambda name, arity: types.SimpleNamespace(name=name, arity=arity)  # noqa: E731 - a node
  program = [function("add", 2), function("mul", 2), np.float64(-2.5), 0, function("log", 1), function("div", 2), 1, 0]
  tree = parse(peer_fits._gplearn_text(program), ["x0", "x1"])
  x = np.random.default_rng(0).uniform(1, 2, (20, 2))
  np.testing.assert_allclose(expression.evaluate(tree, x), -2.5 * x[:, 0] + np.log(x[:, 1] / x[:, 0]))


def test_a_peer_is_asked_every_question_once():
  """Variants of the model's own method are one question to a peer, those of the data are not."""
  def labels(suite, baseline=("operon",)):
    settings = suites.Settings(num_equations=1, baseline=baseline, max_time=5.0)
    tasks = [t for t in suites.make_tasks(suites.SUITES[suite], settings) if t.method.peer]
    assert all(t.method.max_time == 5.0 for t in tasks)
    return [t.variant for t in tasks]
  assert labels("in_domain") == labels("ablation") == labels("paper") == ["operon"]
  assert labels("noise", ("file", "operon"))[3:6] == ["file noise=0.1", "operon noise=0", "operon noise=0.001"]
  assert len(labels("ranges")) == 5


@pytest.mark.parametrize("name", list(peers.PACKAGES))
def test_a_real_peer(name):
  found = peers.open_peers((name,))
  if found.missing:
    pytest.skip(found.missing[name])
  row = runs.run_task(task(name, max_time=2.0), runs.Sources(None, found))
  assert row.predicted and row.model.startswith(name), row.message


def test_peers_do_not_need_a_model():
  def model_for(task):
    raise InputError("none")
  asked = peers.Peers({"file": ""}, {}, "", {("wave", None): ("y", 0.0)})
  rows = [runs.run_task(t, runs.Sources(model_for, asked)) for t in (task("file"), task(""))]
  assert rows[0].predicted == "y" and rows[1].message == "none"
