"""Rows of results: judged, kept, resumed."""

import dataclasses

import numpy as np
import pytest

from symformer_jax import testing
from symformer_jax.errors import InputError
from symformer_jax.evaluation import answers, runs
from symformer_jax.evaluation.problems import Problem
from symformer_jax.evaluation.suites import Task
from symformer_jax.language import expression
from symformer_jax.language.parser import parse
from symformer_jax.language.vocabulary import Vocabulary

FAST = answers.Method(answers.LOWEST_ERROR, 8, 5, "lm")


def make_task(text="2.5*sin(x) + 1.5", box=((-5.0, 5.0),), method=FAST, **changes):
  names = ("x", "y", "z")
  name = changes.pop("name", text)
  return Task("", Problem("own", name, parse(text, names), text, box, 100), method, 0, **changes)


def sources(model):
  return runs.Sources(lambda task: model)


@pytest.fixture(scope="module")
def proposer():
  return testing.FixedProposer(["2.1*sin(x0) + 1.1", "x0**2 + 0.3", "3.3*x0"])


def test_a_recovered_formula(proposer):
  row = runs.run_task(make_task(), sources(proposer))
  assert row.r2 == pytest.approx(1) and row.recovered and row.same_skeleton and row.relative_error < 1e-4
  assert (row.sampled, row.valid, row.model, row.n_vars) == (8, 8, "fixed", 1)
  assert row.complexity == 6 and "sin(x)" in row.predicted and row.seconds >= 0


def test_without_refinement_constants_stay(proposer):
  task = make_task(method=dataclasses.replace(FAST, refine="none"))
  row = runs.run_task(task, sources(proposer))
  assert row.r2 < 0.9999 and row.recovered is False


def test_a_formula_that_is_not_proposed_is_not_recovered(proposer):
  row = runs.run_task(make_task("exp(-x**2)*x"), sources(proposer))
  assert row.recovered is False and row.same_skeleton is False and row.r2 < 0.9


@pytest.mark.parametrize("choice", [answers.RECOMMENDED, answers.MOST_ACCURATE])
def test_answers_of_the_search(proposer, choice):
  row = runs.run_task(make_task(method=answers.Method(choice, 16)), sources(proposer))
  assert row.recovered and row.predicted == "2.5*sin(x) + 1.5"


def test_noise_is_on_the_training_points_alone():
  clean, noisy = make_task(), make_task(noise=0.1)
  (a, fresh_a), (b, fresh_b) = runs.make_points(clean), runs.make_points(noisy)
  np.testing.assert_array_equal(a[:, 0], b[:, 0])
  np.testing.assert_array_equal(fresh_a, fresh_b)
  error = b[:, 1] - a[:, 1]
  assert np.std(error) == pytest.approx(0.1 * np.sqrt(np.mean(a[:, 1] ** 2)), rel=0.25)
  np.testing.assert_allclose(fresh_b[:, 1], 2.5 * np.sin(fresh_b[:, 0]) + 1.5, rtol=1e-12)


def test_points_depend_on_problem_and_seed_alone():
  first, again = runs.make_points(make_task())[0], runs.make_points(make_task())[0]
  np.testing.assert_array_equal(first, again)
  assert not np.array_equal(first, runs.make_points(dataclasses.replace(make_task(), seed=1))[0])
  assert not np.array_equal(first[:, 0], runs.make_points(make_task(name="other"))[0][:, 0])
  assert len(runs.make_points(make_task(num_points=16))[0]) == 16 and len(runs.make_points(make_task())[1]) == 10_000


@pytest.mark.parametrize("choice", [answers.LOWEST_ERROR, answers.RECOMMENDED])
def test_too_many_variables_mark_the_row(proposer, choice):
  task = make_task("x*y", ((0.0, 1.0), (0.0, 1.0)), answers.Method(choice, 8, recombine=False))
  row = runs.run_task(task, sources(proposer))
  assert row.predicted is None and row.r2 is None
  assert "knows 1" in row.message and "have 2" in row.message or "has 2" in row.message


def test_no_model_marks_the_row():
  def model_for(task):
    raise InputError(f"no shipped model for {task.problem.num_variables} variables")
  assert runs.run_task(make_task(), runs.Sources(model_for)).message == "no shipped model for 1 variables"


def test_opinions_and_training_data_reach_the_row(proposer):
  asked = []

  def second_opinion(truth, predicted):
    asked.append(predicted)
    return "equal"
  sources = runs.Sources(lambda task: proposer, second_opinion=second_opinion, was_seen=lambda p, m: (False, True))
  row = runs.run_task(make_task(), sources)
  assert (row.sympy, row.seen_function, row.seen_skeleton, len(asked)) == ("equal", False, True, 1)
  # Of a formula that is far from the truth nobody needs an opinion.
  other = runs.run_task(make_task("exp(-x**2)*x"), sources)
  assert (other.sympy, len(asked)) == ("", 1)


def test_an_answer_that_needs_the_signs_of_the_data_is_recovered_and_said(monkeypatch, proposer):
  for predicted, expected in (("x", (True, False)), ("sqrt(x**2)", (True, True)), ("x + 1", (False, False))):
    answer = answers.Answer(parse(predicted), "", 0.0, 0.0, "m")
    monkeypatch.setattr(answers, "answer", lambda *args, answer=answer, **options: answer)
    row = runs.run_task(make_task("x", ((0.5, 2.0),)), sources(proposer))
    assert (row.recovered, row.needs_signs) == expected


def test_what_differs_on_the_scored_points_is_not_recovered(monkeypatch, proposer):
  """However few of the wider box's points see the difference: here none."""
  monkeypatch.setattr(runs.metrics, "is_recovered", lambda *args, **options: True)
  for predicted, expected in (("x", True), ("x + 0.01*exp(-(x - 1)**2*1e4)", False)):
    answer = answers.Answer(parse(predicted), "", 0.0, 0.0, "m")
    monkeypatch.setattr(answers, "answer", lambda *args, answer=answer, **options: answer)
    assert runs.run_task(make_task("x", ((0.5, 2.0),)), sources(proposer)).recovered is expected


def test_a_problem_without_points_marks_its_row(proposer):
  row = runs.run_task(make_task("1e9*x", ((1.0, 2.0),)), sources(proposer))
  assert row.predicted is None and "has a finite value of at most 1e+07 in size" in row.message


@pytest.mark.slow
def test_a_model_without_constants_is_fitted_from_random_starts():
  proposer = testing.FixedProposer(["0.7*x0 + 0.3", "0.9*sin(x0) + 0.5"])
  proposer.vocab = Vocabulary(1, "skeleton")
  proposer.programs = [expression.encode(parse(text, ["x0"]), proposer.vocab)
                       for text in ("0.7*x0 + 0.3", "0.9*sin(x0) + 0.5")]
  method = dataclasses.replace(FAST, refine="bfgs")
  row = runs.run_task(make_task("3.7*sin(x) - 1.3", method=method), sources(proposer))
  assert row.recovered and row.predicted.startswith("3.7")


def test_no_sample_is_defined():
  nowhere = testing.FixedProposer(["sqrt(-1 - x0**2)"])
  row = runs.run_task(make_task(), sources(nowhere))
  assert row.predicted is None and row.message == "no sample is defined on all points"


ROWS = [
  runs.Row("f", "a,b", 1, 0, "x", "x + 1", 3, 0.25, None, False, 0.5, 1.5, 8, 8, 3, "v", True, 0.75, "m", 'say "x"',
           "equal", True, False, True),
  runs.Row("f", "c", 2, 1, "x*y", message="no\nanswer"),
]


def test_rows_survive_the_file(tmp_path):
  path = tmp_path / "results.csv"
  results = runs.ResultsFile(path)
  for row in ROWS:
    results.add(row)
  assert runs.ResultsFile(path).rows == ROWS
  assert path.read_text().startswith(
    "family,name,n_vars,seed,truth,predicted,complexity,r2,relative_error,recovered,seconds,compile_seconds,"
    "sampled,valid,distinct")


def test_a_cut_off_line_is_dropped(tmp_path):
  path = tmp_path / "results.csv"
  results = runs.ResultsFile(path)
  results.add(ROWS[0])
  whole = path.read_bytes()
  path.write_bytes(whole + b"f,c,2,1,x*y,,,")
  assert runs.ResultsFile(path).rows == ROWS[:1]
  assert path.read_bytes() == whole


@pytest.mark.parametrize("cut", [0, 5])
def test_a_cut_off_header_begins_anew(tmp_path, cut):
  path = tmp_path / "results.csv"
  path.write_bytes(b"family"[:cut])
  runs.ResultsFile(path).add(ROWS[0])
  assert runs.ResultsFile(path).rows == ROWS[:1]


def test_a_foreign_file_is_refused(tmp_path):
  path = tmp_path / "results.csv"
  path.write_text("a,b\n1,2\n")
  with pytest.raises(InputError, match="is no results file of this version: expected columns family,"):
    runs.ResultsFile(path)
  assert path.read_text() == "a,b\n1,2\n"


def test_a_file_that_is_no_results_stays_as_it_is(tmp_path):
  path = tmp_path / "results.csv"
  header = ",".join(runs.COLUMNS)
  row = ",".join(["x"] * len(runs.COLUMNS))
  for data, message in ((b"notes of mine", "no results file"), (b"a\nb", "no results file"),
                        (f"{header}\n".encode() + b"\xff" + f"{row}\n".encode(), "is damaged: 'utf-8' codec"),
                        (f"{header}\n{row}\n".encode(), "is damaged: invalid literal")):
    path.write_bytes(data)
    with pytest.raises(InputError, match=message):
      runs.ResultsFile(path)
    assert path.read_bytes() == data
  path.unlink()
  path.mkdir()
  with pytest.raises(InputError, match="is no regular file"):
    runs.ResultsFile(path)


def test_an_interrupted_run_resumes(tmp_path, proposer):
  tasks = [make_task(name=name) for name in "abcd"]
  asked = []

  def model_for(task):
    asked.append(task)
    return proposer
  results = runs.ResultsFile(tmp_path / "results.csv")
  assert not runs.run(tasks, runs.Sources(model_for), results, should_stop=lambda: len(asked) == 2)
  seen = []
  again = runs.ResultsFile(tmp_path / "results.csv")
  assert runs.run(tasks, runs.Sources(model_for), again, on_row=seen.append)
  assert len(asked) == 4 and [r.name for r in seen] == ["c", "d"]
  assert [r.name for r in again.rows] == ["a", "b", "c", "d"]
  whole = runs.ResultsFile(tmp_path / "other.csv")
  runs.run(tasks, runs.Sources(model_for), whole)
  strip = {"seconds": None, "compile_seconds": None}
  assert [dataclasses.replace(r, **strip) for r in whole.rows] == [dataclasses.replace(r, **strip) for r in again.rows]


def test_distances_share_an_answer_and_differ_in_score():
  proposer = testing.FixedProposer(["2.1*sin(x0) + 1.1"], noise=0.0)
  proposed = []

  def propose(*args, **kwargs):
    proposed.append(args)
    return testing.FixedProposer.propose(proposer, *args, **kwargs)
  proposer.propose = propose
  method = dataclasses.replace(FAST, refine="none")
  tasks = [make_task("2.1*sin(x) + 1.1 + x**2/100", method=method, distance=d) for d in (None, 1.0, 20.0)]
  answered = {}
  scores = [runs.run_task(task, sources(proposer), answered).r2 for task in tasks]
  assert len(proposed) == 1 and scores[0] > scores[1] > scores[2]
