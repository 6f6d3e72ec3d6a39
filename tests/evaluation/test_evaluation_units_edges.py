"""Figures and peers where it just holds and just does not: bounds that are met, columns that are not there."""

import json
import subprocess
import sys
import types

import numpy as np
import pytest

from symformer_jax.evaluation import metrics, models, paired, peer_fits, peers, problems, second_opinion
from symformer_jax.evaluation.answers import Method
from symformer_jax.evaluation.runs import Row
from symformer_jax.evaluation.suites import Task
from symformer_jax.language import parser


def formula(text):
  return parser.parse(text, ("x", "y"))


# --- equal functions ---------------------------------------------------------------------------------------------


def recovered(monkeypatch, y, prediction):
  """The verdict on predictions of true values, whatever formulas they are of."""
  monkeypatch.setattr(metrics, "_wide_points", lambda *_: (np.zeros((len(y), 1)), np.array(y, float)))
  monkeypatch.setattr(metrics.scoring, "evaluate", lambda node, x: np.array(prediction, float))
  return metrics.is_recovered(formula("x"), formula("x"), ((0.0, 1.0),), rng=None)


def test_a_tenth_of_the_points_may_be_undefined_in_both(monkeypatch):
  y = np.linspace(1, 2, 1000)
  y[:100] = np.nan
  assert recovered(monkeypatch, y, y)
  y[100] = np.nan
  assert not recovered(monkeypatch, y, y)


def test_a_tenth_of_the_points_may_differ_where_the_largest_ones_decide(monkeypatch):
  y = np.ones(1000)
  y[0] = 1e9
  prediction = y.copy()
  prediction[1:101] += 0.001
  assert recovered(monkeypatch, y, prediction)
  prediction[101] += 0.001
  assert not recovered(monkeypatch, y, prediction)


def test_points_are_near_that_are_the_same(monkeypatch):
  y = np.concatenate([np.zeros(600), np.linspace(1, 2, 400)])  # the median of their sizes is 0
  assert recovered(monkeypatch, y, y)


def test_constants_are_equal_to_nine_digits(monkeypatch):
  assert recovered(monkeypatch, np.full(9, 2.5), np.full(9, 2.5 * (1 + 0.9e-9)))
  assert not recovered(monkeypatch, np.full(9, 2.5), np.full(9, 2.5 * (1 + 1.5e-9)))


def test_the_bound_of_recovery_is_itself_no_recovery(monkeypatch):
  y = np.linspace(1, 2, 1000)
  for fvu, verdict in ((1e-9, False), (0.99e-9, True)):
    monkeypatch.setattr(metrics, "score", lambda *_, fvu=fvu: metrics.Scores(1.0, 0.0, fvu))
    assert recovered(monkeypatch, y, y) == verdict


def test_the_first_box_with_nine_points_in_ten_is_taken(monkeypatch):
  num_undefined, drawn = [100], []

  def evaluate(node, x):
    drawn.append(x)
    return np.where(np.arange(len(x)) < num_undefined[0], np.nan, 1.0)
  monkeypatch.setattr(metrics.scoring, "evaluate", evaluate)
  rng = np.random.default_rng(0)
  metrics._wide_points(formula("x"), ((0.0, 2.0),), rng, False)
  assert len(drawn) == 1
  num_undefined[0] = 101
  metrics._wide_points(formula("x"), ((0.0, 2.0),), rng, False)
  assert len(drawn) == 5  # to either side, and the box itself at last


def test_a_formula_is_scored_on_the_columns_before_the_last():
  points = np.array([[1.0, 2.0, 9.0], [2.0, 1.0, 8.0], [3.0, 5.0, 1.0]])
  points[:, 2] = points[:, 0] - points[:, 1]
  assert metrics.score_formula(formula("x - y"), points).fvu == 0
  assert metrics.score_formula(formula("x"), points).fvu > 0.1


def test_no_interval_of_a_share_goes_beyond_all_and_none():
  ends = np.array([metrics.wilson_interval(share, count) for count in range(1, 400) for share in (0.0, 1.0)])
  assert ends.min() == 0 and ends.max() == 1


def test_what_overflows_has_no_figure_and_warns_nobody():
  truth = np.array([1e200, -1e200, 3.0])
  assert metrics.score(truth, truth + 1e190).fvu is None and metrics.score(np.arange(3.0), truth).fvu is None


def test_two_thousand_draws_make_an_interval(monkeypatch):
  asked, make = [], np.random.default_rng

  class Recorded:
    def __init__(self, seed):
      self.rng = make(seed)

    def choice(self, groups, size):
      asked.append(size)
      return self.rng.choice(groups, size)

    def integers(self, high, *, size):
      asked.append(size)
      return self.rng.integers(high, size=size)
  monkeypatch.setattr(np.random, "default_rng", Recorded)
  metrics.bootstrap_interval([0.0, 1.0, 2.0])
  rows = [Row("f", name, 1, 0, "x", "x", r2=1.0) for name in "abcd"]
  paired.compare(rows, rows, paired.MEASURES["R2 > .999"])
  assert asked == [(2000, 3), (2000, 4)]


# --- problems ----------------------------------------------------------------------------------------------------


HEADER = "family,name,n_vars,expression,ranges"


def test_problems_and_predictions_are_utf8_with_or_without_a_mark(tmp_path, other_locale):
  path = tmp_path / "p.csv"
  for mark in (b"", b"\xef\xbb\xbf"):
    path.write_bytes(mark + f"{HEADER}\nf\u00e9,n\u00fc,1,x,0:1\n".encode())
    [found] = problems.read_problems(path)
    assert (found.family, found.name) == ("f\u00e9", "n\u00fc")
    path.write_bytes(mark + "name,expression\nn\u00fc,x,1,2\n\u00e9\n".encode())
    assert peers.read_predictions(str(path)) == {("n\u00fc", None): ("x", 0.0), ("\u00e9", None): ("", 0.0)}
  assert len(problems.load_list("paper")) > 40


def test_ranges_that_are_not_given_are_the_largest_box():
  [found] = problems._read(f"{HEADER}\nf,n,1,x,", "p.csv")
  assert found.box == ((-5.0, 5.0),)
  assert problems.variable_names(26) == tuple("xyzwvutsrqponmlkjihgfedcba") and problems.variable_names(0) == ()


def test_no_more_points_are_drawn_than_are_wanted(monkeypatch):
  def blocks(box, num_points, rng):
    yield np.full((num_points, 1), 2.0)
    raise AssertionError("another block")
  monkeypatch.setattr(problems, "_uniform_blocks", blocks)
  problem = problems.Problem("f", "n", formula("x"), "x", ((0.0, 1.0),), 20)
  assert len(problems.draw_points(problem, 7, rng=None)) == 7
  assert len(problems.draw_points_outside(problem, 7, distance=3.0, rng=None)) == 7


def test_points_outside_lie_on_either_side(rng):
  problem = problems.Problem("f", "n", formula("x"), "x", ((-1.0, 1.0),), 20)
  x = problems.draw_points_outside(problem, 200, distance=2.0, rng=rng)[:, 0]
  assert -3 <= x.min() < -2.9 and 2.9 < x.max() <= 3 and 0.3 < (x > 0).mean() < 0.7


# --- models ------------------------------------------------------------------------------------------------------


def test_a_model_is_one_whatever_lies_below_it(tmp_path, monkeypatch):
  loaded = []
  monkeypatch.setattr(models.registry, "load_model", lambda path: loaded.append(path) or types.SimpleNamespace(
    name=path, vocab=types.SimpleNamespace(encoding=path)))
  monkeypatch.setattr(models.registry, "model_names", lambda: ["shipped"])
  monkeypatch.chdir(tmp_path)
  for folder in ("one/older", "one", "shipped/other", "several/a", "several/b"):
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    if folder != "shipped":
      (tmp_path / folder / models.registry.CARD).write_text("{}")
  for name, expected in (("one", ["one"]), ("shipped", ["shipped"]), ("none", ["none"]),
                         ("several", ["several/a", "several/b"]), ("shipped/other", ["shipped/other"])):
    loaded.clear()
    models.open_models(name)
    assert loaded == expected


# --- peers -------------------------------------------------------------------------------------------------------


def test_a_peers_formula_has_the_columns_that_it_was_given(monkeypatch):
  monkeypatch.setattr(peers, "_fit", lambda *_, **__: {"expression": "x2", "seconds": 1.0, "import_seconds": 1.0})
  problem = problems.Problem("f", "n", formula("x"), "x", ((0.0, 1.0),), 20)
  asked = peers.Peers({"operon": "1"}, {}, "py", {})
  task = Task("", problem, Method(peer="operon"), 0)
  assert asked(task, np.zeros((5, 4))).node == parser.parse("x2", ["x0", "x1", "x2"])
  assert asked(task, np.zeros((5, 3))).message.startswith("its formula cannot be read")


def test_a_peer_is_asked_with_all_columns_and_cores(monkeypatch):
  asked = []

  class Process:
    pid, returncode = 1, 0

    def __init__(self, command, **options):
      pass

    def communicate(self, text=None, timeout=None):
      asked.append(json.loads(text))
      return "{}", ""

    def poll(self):
      return 0
  monkeypatch.setattr(peers.subprocess, "Popen", Process)
  monkeypatch.setattr(peers.os, "sched_getaffinity", lambda pid: {0: {0, 1, 2}}[pid])
  peers._fit("py", "operon", np.arange(6.0).reshape(2, 3), seed=0, max_time=1.0)
  assert (asked[0]["x"], asked[0]["y"], asked[0]["num_cores"]) == ([[0, 1], [3, 4]], [2, 5], 3)


def test_the_version_of_a_peer_is_not_waited_for_without_end(monkeypatch):
  asked = []
  monkeypatch.setattr(peers.subprocess, "run", lambda command, **options: asked.append(options) or (
    types.SimpleNamespace(returncode=0, stdout="1.2\n")))
  assert peers._version("py", "numpy") == "1.2" and asked[0]["timeout"] == peers.GRACE_S == 60


def test_generations_are_added_one_by_one(monkeypatch):
  asked = []

  class Regressor:
    def __init__(self, *, generations, **options):
      self.generations, self._program = generations, types.SimpleNamespace(raw_fitness_=1.0, program=[0])

    def fit(self, x, y):
      asked.append(self.generations)
      self._program.raw_fitness_ = 1.0 if len(asked) < 4 else 0.0

    def set_params(self, generations):
      self.generations = generations
  for name in ("gplearn", "gplearn.genetic"):
    monkeypatch.setitem(sys.modules, name, types.SimpleNamespace(SymbolicRegressor=Regressor))
  assert list(peer_fits.fit_gplearn(np.zeros((3, 1)), np.zeros(3), 0, 60.0, 1)) == [None, "x0"]
  assert asked == [1, 2, 3, 4]


def test_formulas_alone_go_to_standard_output():
  script = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("peer_fits", sys.argv[1])
peer_fits = importlib.util.module_from_spec(spec)
spec.loader.exec_module(peer_fits)
ticks = iter([1.0, 3.0, 7.0])
peer_fits.time.perf_counter = lambda: next(ticks)

def fit(x, y, seed, max_time, num_cores):
  print("a banner")
  yield None
  print("progress", flush=True)
  yield f"{x.shape} {y.tolist()} {seed} {max_time} {num_cores}"
peer_fits.FITS["operon"] = fit
peer_fits.main()
"""
  question = {"peer": "operon", "x": [[1.0], [2.0]], "y": [3.0, 4.0], "seed": 5, "max_time": 6.5, "num_cores": 7}
  done = subprocess.run([sys.executable, "-c", script, peer_fits.__file__], input=json.dumps(question),
                        capture_output=True, text=True, check=True)
  assert json.loads(done.stdout) == {"expression": "(2, 1) [3.0, 4.0] 5 6.5 7", "seconds": 4.0, "import_seconds": 2.0}
  assert done.stdout.endswith("\n") and done.stdout.count("\n") == 1 and done.stderr == "a banner\nprogress\n"


# --- SymPy's process ---------------------------------------------------------------------------------------------


def test_an_answer_is_waited_for_as_long_as_is_left(monkeypatch):
  opinion, waited = second_opinion.SecondOpinion(), []
  now, ready = iter([10.0, 11.0, 12.5, 20.0]), iter([True, True, False])
  opinion._process = types.SimpleNamespace(stdout=types.SimpleNamespace(fileno=lambda: 7))

  def select(reading, writing, failing, timeout_s):
    waited.append(timeout_s)
    return (reading if next(ready) else []), [], []
  monkeypatch.setattr(second_opinion, "select", types.SimpleNamespace(select=select))
  monkeypatch.setattr(second_opinion, "time", types.SimpleNamespace(monotonic=lambda: next(now)))
  read = []
  monkeypatch.setattr(second_opinion.os, "read", lambda file, num: read.append((file, num)) or b"e")
  assert opinion._read_line(5.0) == "" and waited == [4.0, 2.5, 0.0] and read == [(7, 1)] * 2


def test_the_process_of_sympy_has_the_path_of_this_one(monkeypatch):
  opinion, asked = second_opinion.SecondOpinion(), {}
  monkeypatch.setattr(second_opinion.subprocess, "Popen", lambda command, **options: asked.update(
    options, command=command) or "process")
  monkeypatch.setattr(second_opinion.sys, "path", ["", "/a", "/b"])
  monkeypatch.setattr(opinion, "_read_line", lambda timeout_s: asked.update(timeout_s=timeout_s) or "ready")
  opinion._start()
  assert asked["command"] == [sys.executable, "-m", second_opinion.__name__] and opinion._process == "process"
  assert asked["stdin"] == asked["stdout"] == subprocess.PIPE and asked["stderr"] == subprocess.DEVNULL
  assert asked["env"]["PYTHONPATH"] == "/a:/b" and asked["timeout_s"] == second_opinion.START_S == 120
  monkeypatch.setattr(opinion, "_read_line", lambda timeout_s: "")
  with pytest.raises(OSError, match="did not start"):
    opinion._start()


class Difference:
  """Of two formulas, which is 0 after so many steps."""

  def __init__(self, num_steps, verdict=None):
    self.num_steps, self.verdict = num_steps, verdict

  def __sub__(self, other):
    return self

  def __eq__(self, other):
    return self.num_steps == 0 and other == 0

  def expand(self):
    return Difference(self.num_steps - 1, self.verdict)

  simplify = expand

  def equals(self, other):
    return self.verdict if other == 0 else not self.verdict


@pytest.mark.parametrize(("difference", "verdict"), [
  (Difference(0), "equal"), (Difference(1), "equal"), (Difference(2), "equal"), (Difference(3), "undecided"),
  (Difference(3, True), "equal"), (Difference(3, False), "different")])
def test_sympy_tries_ever_more_before_it_says(monkeypatch, difference, verdict):
  monkeypatch.setattr(second_opinion, "_read", lambda text: difference)
  assert second_opinion.compare("x0", "x0") == verdict


def test_constants_are_compared_as_they_are_written():
  assert second_opinion.compare("0.1*x0 + 0.2*x0", "0.3*x0") == "equal"  # not so with numbers of 53 bits
