"""What the command does around a search, with answers made by hand: files, flags, exit codes; nothing is searched."""

from collections.abc import Sequence
import dataclasses
import functools
import io
import json
import math
import os
import pathlib
import runpy
import shutil
import signal
import sys
import types

import numpy as np
import pytest

from symformer_jax import file_answers, infer, infer_worker, testing
from symformer_jax.commands import infer_flags as asked, result_lines, runner, tables
from symformer_jax.engine.config import DEFAULT
from symformer_jax.errors import InputError
from symformer_jax.language import parser
from symformer_jax.results import Counts, Equation, SearchResult, Seconds, failed


@pytest.fixture(autouse=True)
def flags():
  """Sets flags as the command line does; all are as by default before and afterwards."""
  def reset():
    asked.FLAGS.unparse_flags()
    for name in asked.FLAGS:
      asked.FLAGS[name].unparse()

  def give(*argv):
    reset()
    return asked.FLAGS(["infer", *argv])
  give()
  yield give
  reset()


def equation(text, r2=0.5):
  return Equation(parser.parse(text, ["x"]), ("x",), 1 - r2, r2, 0.1, ())


FRONT = (equation("2.5"), equation("2*x", 0.9), equation("2*x + sin(x)", 0.99))


def result_of(**changed):
  values = {"status": "ok", "message": "", "best": FRONT[1], "pareto": FRONT, "counts": Counts(), "seconds": Seconds(),
            "seed": 0, "num_points": 7, "model": "m"}
  return SearchResult(**values | changed)


def table_of(path="t.csv", target="y", notes=(), num_features=1):
  x = np.arange(7.0)[:, None].repeat(num_features, axis=1)
  return tables.Table(path, tuple(f"x{i}" if i else "x" for i in range(num_features)), target, x, np.arange(7.0) ** 2,
    notes)


def answer_of(path="t.csv", target="y", taken=FRONT[1], **changed):
  return file_answers.Answer(path, table_of(path, target), result_of(**changed), taken)


# --- answers -----------------------------------------------------------------------------------------------------


def test_the_record_of_an_answer(flags):
  flags("--max_time=inf", "--features=a,b")
  record = json.loads(dataclasses.replace(answer_of(), table=table_of(notes=("n",))).to_json())
  assert record["selected"] == 1 and record["notes"] == ["n"] and record["features"] == ["x"]
  assert record["options"]["max_time"] == "inf" and record["options"]["seed"] == 0 and record["target"] == "y"
  none = json.loads(file_answers.Answer("t.csv", None, failed("why", model="m", seed=0)).to_json())
  assert (none["selected"], none["notes"], none["features"], none["target"]) == (None, [], ["a", "b"], "")
  flags("--target=z")
  assert file_answers.Answer("t.csv", None, failed("why", model="m", seed=0)).target == "z"


def test_the_answer_of_a_copy_speaks_of_the_file(flags):
  copy = file_answers.Answer("/tmp/0/t.csv", None, failed("/tmp/0/t.csv: bad", model="m", seed=0))
  again = copy.renamed("gs://t.csv")
  assert again.path == "gs://t.csv" and again.result.message == "gs://t.csv: bad"


@pytest.mark.parametrize(("select", "taken", "said"), [
  ("recommended", 1, ""), ("accurate", 2, ""), ("0", 0, ""), ("7", 1, "the recommended one is taken")])
def test_the_line_that_is_asked_for_is_taken(flags, select, taken, said):
  flags(f"--select={select}")
  answer = file_answers._select(table_of(), result_of(message="m"))
  assert answer.selected is FRONT[taken] and answer.result.message.startswith("m") and said in answer.result.message
  assert answer.result.message.count("; ") == bool(said)
  lost = file_answers._select(table_of(), failed("why", model="m", seed=0))
  assert lost.selected is None and lost.result.message == "why"


def test_every_flag_of_a_table_reaches_its_reading(flags, monkeypatch):
  flags("--target=a", "--features=b", "--categories=c", "--weights=w", "--drop_missing", "--decimal=,", "--separator=;",
        "--sheet=s", "--time_unit=days")
  found = []
  monkeypatch.setattr(tables, "read_tables", lambda path, request: found.append((path, request)) or [])
  assert file_answers.read("t.csv") == []
  assert found == [("t.csv", tables.Request("a", ["b"], ["c"], "w", None, True, ",", ";", "s", "days"))]
  flags("--sigma=s")
  file_answers.read("t.csv")
  assert found[1][1] == tables.Request(sigma="s")


def test_a_template_counts_the_columns_of_its_functions(flags):
  assert file_answers._num_variables(table_of(num_features=3)) == 3
  flags("--template=f(x)*x1")
  assert file_answers._num_variables(table_of(num_features=3)) == 1
  flags("--template=((")
  assert file_answers._num_variables(table_of(num_features=3)) == 3


def test_notes_are_said_once_unless_quiet(flags, capsys):
  batch = [table_of(notes=("a", "b")), table_of(target="z", notes=("b", "c"))]
  file_answers.print_notes(batch)
  assert capsys.readouterr() == ("", "note: t.csv: a\nnote: t.csv: b\nnote: t.csv: c\n")
  flags("--quiet")
  file_answers.print_notes(batch)
  assert capsys.readouterr() == ("", "")


def test_what_a_search_is_asked(flags, monkeypatch, tmp_path):
  from symformer_jax import inference
  found = {}

  def search(model, datasets, **options):
    found.update(options, model=model, datasets=datasets)
    return [result_of()] * len(datasets)
  monkeypatch.setattr(inference, "search", search)
  flags("--samples=7", "--strategy=nucleus", "--top_k=3", "--temperature=0.5", "--refine=gd", "--norecombine",
    "--loss=log",
        "--max_time=3", "--effort=quick", "--accuracy=0.5", "--seed=9", "--guess=x", "--template=f(x)",
        "--operators=+,*",
        "--forbid=sin", "--require= x  1", "--exclude=z", "--max_exponent=3", "--max_depth=4", "--unnested=cos",
        "--max_complexity=9", "--add_operators=tanh", "--max_sizes=sin=3")
  stop = lambda: False  # noqa: E731  (told apart by identity)
  [answer] = file_answers.search([table_of()], "model", stop, is_single=True, callback=print)
  assert answer.selected is FRONT[1] and answer.path == "t.csv"
  rules = found.pop("restrictions")
  assert dataclasses.asdict(rules) | {"max_sizes": None} == {
    "operators": ("+", "*"), "forbidden": ("sin",), "required": ("x 1",), "excluded": ("z",), "max_exponent": 3.0,
    "max_depth": 4, "unnested": ("cos",), "max_complexity": 9, "add_operators": ("tanh",), "max_sizes": None}
  assert dict(rules.max_sizes) == {"sin": (3,)}
  assert found.pop("datasets")[0][0].shape == (7, 1)
  assert found == {
    "model": "model", "names": [("x",)], "targets": ["y"], "n_samples": 7, "strategy": "nucleus", "top_k": 3,
    "temperature": 0.5, "refine": "gd", "recombine": False, "loss": "log", "max_time": 3.0, "effort": "quick",
    "accuracy": 0.5, "seed": 9, "guesses": ["x"], "template": "f(x)", "should_stop": stop, "callback": print,
    "config": DEFAULT, "units": None, "dimensionless_constants": False}
  flags("--units=x=m, other=s", "--dimensionless_constants")
  file_answers.search([table_of()], "model", stop, is_single=True)
  assert found["units"] == {"x": "m", "other": "s"} and found["dimensionless_constants"] and found["callback"] is None
  file_answers.search([table_of()], "model", stop, is_single=False)
  assert found["units"] == {"x": "m"}
  assert file_answers.restrictions().operators is None
  (tmp_path / "c.py").write_text("def get_config():\n  return {'sources': ['guesses']}\n")
  flags(f"--search_config={tmp_path}/c.py")
  file_answers.search([table_of()], "model", stop, is_single=True)
  assert found["config"].sources == ("guesses",)


@pytest.fixture
def answering(monkeypatch):
  """Files `a`, `b`, ... of one table each; `bad` cannot be read. What is asked of the search is written down."""
  calls = []

  def read(path):
    if "bad" in path:
      raise InputError(f"{path}: bad")
    return [table_of(path, target) for target in (["y", "z"] if "two" in path else ["y"])]

  def search(batch, model, should_stop, *, is_single, callback=None):
    calls.append(([(table.path, table.target) for table in batch], model, is_single))
    return [answer_of(table.path, table.target) for table in batch]
  monkeypatch.setattr(file_answers, "read", read)
  monkeypatch.setattr(file_answers, "search", search)
  monkeypatch.setattr(file_answers, "resolve_model", lambda table: MODEL)
  return calls


MODEL = testing.FixedProposer(["x0"])


def told(answers):
  return [(answer.path, answer.target, answer.result.status) for answer in answers]


def test_answers_come_in_the_order_of_files_and_what_is_done_is_left_out(flags, answering):
  found = told(file_answers.answer_many(["a", "bad", "two"], is_single=False, targets_done={("two", "y")}))
  assert found == [("a", "y", "ok"), ("bad", "", "failed"), ("two", "z", "ok")]
  assert [call[0] for call in answering] == [[("a", "y")], [("two", "z")]] and answering[0][1:] == (MODEL, False)


def test_on_an_accelerator_files_go_together(flags, answering, monkeypatch):
  from symformer_jax import compilation
  monkeypatch.setattr(compilation, "dataset_buckets", lambda: (1, 2))
  assert len(list(file_answers.answer_many(["a", "b", "c"], is_single=False))) == 3
  assert [call[0] for call in answering] == [[("a", "y"), ("b", "y")], [("c", "y")]]


def test_a_wish_to_stop_ends_the_files(flags, answering, monkeypatch):
  stops = iter([False, True])
  assert told(file_answers.answer_many(["a", "b", "c"], is_single=False, should_stop=lambda: next(stops))) == [
    ("a", "y", "ok")]  # asked once before its answers, once after them
  for ended_by, num in (("stopped", 0), ("", 0), ("budget", 1)):
    monkeypatch.setattr(file_answers, "search", lambda batch, *_, ended_by=ended_by, **__: [
      answer_of(ended_by=ended_by)])
    assert len(list(file_answers.answer_many(["t.csv"], is_single=True, should_stop=lambda: True))) == num


# --- workers of a cluster ----------------------------------------------------------------------------------------


def test_a_worker_takes_over_flags_and_folder(flags, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  (tmp_path / "in").mkdir()
  infer_worker.begin({"samples": 5, "target": "q"}, str(tmp_path / "in"))
  assert asked.SAMPLES.value == 5 and asked.TARGET.value == "q" and pathlib.Path.cwd() == tmp_path / "in"
  infer_worker.begin({}, str(tmp_path / "none"))
  assert pathlib.Path.cwd() == tmp_path / "in"


def test_a_worker_answers_copies_in_the_names_of_their_files(flags, answering):
  lines = [json.loads(line) for line in infer_worker.answer_files([("gs://a", "/tmp/a"), ("b", "b")], False)]
  assert [line["data"] for line in lines] == ["gs://a", "b"] and answering[0][2] is False
  refused = json.loads(infer_worker.refuse("b", "why"))
  assert (refused["data"], refused["status"], refused["message"]) == ("b", "failed", "why")


# --- one file ----------------------------------------------------------------------------------------------------


class Stop:
  def is_set(self):
    return False

  def set(self):
    pass


def run_one(flags, *argv, path="a"):
  flags(f"--data={path}", *argv)
  return infer._run_one(path, Stop())


def test_exit_codes_of_one_file(flags, answering, monkeypatch, capsys):
  assert run_one(flags, "--quiet") == runner.DONE and capsys.readouterr() == ("", "")
  assert run_one(flags) == runner.DONE and "recommended: y = 2*x" in capsys.readouterr().out
  monkeypatch.setattr(file_answers, "search", lambda *_, **__: [answer_of(ended_by="stopped")])
  assert run_one(flags, "--quiet") == runner.STOPPED
  assert capsys.readouterr().err == "stopped: this is the best so far\n"
  lost = file_answers.Answer("a", table_of(), failed("why", model="m", seed=0))
  monkeypatch.setattr(file_answers, "search", lambda *_, **__: [answer_of(), lost])
  assert run_one(flags) == runner.SOME_FAILED
  captured = capsys.readouterr()
  assert captured.err == "failed: why\n" and "recommended" in captured.out
  monkeypatch.setattr(file_answers, "search", lambda *_, **__: [lost, lost])
  with pytest.raises(InputError, match="^a: why$"):
    run_one(flags)


def test_results_are_files_or_lines(flags, answering, tmp_path):
  run_one(flags, "--quiet", f"--out={tmp_path}/f.json")
  assert json.loads((tmp_path / "f.json").read_text())["data"] == "a"
  run_one(flags, "--quiet", f"--out={tmp_path}/f.jsonl", path="two")
  assert [json.loads(line)["target"] for line in (tmp_path / "f.jsonl").read_text().splitlines()] == ["y", "z"]
  run_one(flags, "--quiet", f"--out={tmp_path}/g.json", path="two")
  assert sorted(path.name for path in tmp_path.iterdir()) == ["f.json", "f.jsonl", "g-y.json", "g-z.json"]
  with pytest.raises(InputError, match="g-y.json' exists; --overwrite replaces it"):
    run_one(flags, "--quiet", f"--out={tmp_path}/g.json", path="two")
  run_one(flags, "--quiet", f"--out={tmp_path}/g.json", "--overwrite", path="two")


def test_what_cannot_be_written_is_printed_and_said(flags, answering, monkeypatch, capsys):
  def full(*_, **__):
    raise OSError(28, "No space left on device")
  monkeypatch.setattr(infer.files, "write_text", full)
  assert run_one(flags, "--quiet", "--out=f.json") == runner.SOME_FAILED
  captured = capsys.readouterr()
  assert "recommended: y = 2*x" in captured.out
  assert captured.err == "error: --out: cannot write 'f.json': No space left on device\n"


def test_figures_pages_and_films_are_made_of_what_has_not_failed(flags, answering, monkeypatch):
  made = []
  for name in ("_draw", "_report"):
    monkeypatch.setattr(infer, name, lambda answer, place, name=name: made.append((name, answer.target, place)))
  monkeypatch.setattr(infer, "_animate", lambda table, model, place: made.append(("_animate", table.target, place)))
  lost = file_answers.Answer("a", table_of(target="z"), failed("why", model="m", seed=0))
  monkeypatch.setattr(file_answers, "search", lambda *_, **__: [answer_of(), lost])
  run_one(flags, "--quiet", "--plot=p.png", "--report=r.html", "--animate=f.gif")
  assert made == [("_draw", "y", "p-y.png"), ("_report", "y", "r-y.html"), ("_animate", "y", "f-y.gif")]


def test_films_are_of_variables_that_the_model_knows(flags, answering, monkeypatch):
  monkeypatch.setattr(file_answers, "read", lambda path: [table_of(num_features=2)])
  with pytest.raises(InputError, match="'fixed' knows 1 variables, the data have 2"):
    run_one(flags, "--animate=f.gif")
  assert run_one(flags, "--quiet") == runner.DONE


def test_a_film_is_of_candidates_that_there_are(flags, monkeypatch, tmp_path, capsys):
  from symformer_jax.commands import movies, trajectories
  recorded, drawn = [], []
  monkeypatch.setattr(trajectories, "record", lambda *args, **options: recorded.append((args, options)) or [1])
  monkeypatch.setattr(movies, "draw", lambda found, table, place: drawn.append((found, table)) or place.write_text("f"))
  flags("--samples=7", "--top_k=3", "--refine=gd", "--seed=9")
  table = dataclasses.replace(table_of(), weights=np.ones(7))
  infer._animate(table, "model", str(tmp_path / "f.gif"))
  [(args, options)] = recorded
  assert args == ("model", table.x, table.y) and options.pop("weights") is table.weights
  assert options == {"n_samples": 7, "top_k": 3, "method": "gd", "seed": 9}
  assert drawn == [([1], table)] and (tmp_path / "f.gif").read_text() == "f"
  monkeypatch.setattr(trajectories, "record", lambda *args, **options: [])
  infer._animate(table, "model", str(tmp_path / "g.gif"))
  assert "no candidate is defined on all points" in capsys.readouterr().err and not (tmp_path / "g.gif").exists()


# --- many files --------------------------------------------------------------------------------------------------


def run_many(flags, paths, *argv, stop=None):
  flags(*argv)
  return infer._run_many(paths, stop or Stop())


def test_lines_of_a_batch(flags, answering, tmp_path, capsys):
  out = tmp_path / "all.jsonl"
  assert run_many(flags, ["a", "b"], f"--out={out}") == runner.DONE
  assert capsys.readouterr().out == "[1/2] a: y = 2*x  R2 0.900000\n[2/2] b: y = 2*x  R2 0.900000\n"
  assert answering[0][2] is False
  assert run_many(flags, ["a", "b", "bad"], f"--out={out}", "--resume", "--quiet") == runner.SOME_FAILED
  captured = capsys.readouterr()
  assert captured.out == "" and captured.err == "failed: [3/3] bad: bad\n" and len(answering) == 2
  # What failed before counts, though nothing is left to do.
  assert run_many(flags, ["a", "b", "bad"], f"--out={out}", "--resume", "--quiet") == runner.SOME_FAILED
  assert capsys.readouterr() == ("", "3 of 3 files have a line, 1 of them failed\n") and len(answering) == 2
  assert run_many(flags, ["a", "b"], f"--out={out}", "--resume") == runner.DONE  # of others nothing was asked
  assert capsys.readouterr() == ("", "")
  assert len(out.read_text().splitlines()) == 3
  assert run_many(flags, ["a"], f"--out={out}", "--quiet") == runner.DONE and len(out.read_text().splitlines()) == 1
  assert answering[-1][2] is True


def test_a_name_of_a_file_is_printed_in_one_line(flags, answering, tmp_path, capsys):
  assert run_many(flags, ["a\n\x1b[2Jb"], f"--out={tmp_path / 'all.jsonl'}") == runner.DONE
  assert capsys.readouterr().out == "[1/1] a \\x1b[2Jb: y = 2*x  R2 0.900000\n"
  assert run_many(flags, ["f/a\n\x1b[2Jb"]) == runner.DONE
  assert capsys.readouterr().out.splitlines()[0].startswith("a \\x1b[2Jb: y, ")


def test_without_a_file_each_answer_is_printed(flags, answering, capsys):
  assert run_many(flags, ["a", "b"]) == runner.DONE and capsys.readouterr().out.count("recommended") == 2
  assert run_many(flags, ["a", "b"], "--quiet") == runner.DONE and capsys.readouterr().out == ""


class Terminal(io.StringIO):
  def isatty(self):
    return True


def test_the_bar_of_a_batch_takes_nothing_from_standard_output(flags, answering, tmp_path, monkeypatch):
  """A file gets the lines of answers alone; on a terminal they stand above the bar, which goes in the end."""
  monkeypatch.setenv("TERM", "xterm")
  lines, found = "[1/2] a: y = 2*x  R2 0.900000\n[2/2] b: y = 2*x  R2 0.900000\n", []
  for out, err in ((io.StringIO(), Terminal()), (Terminal(), Terminal()), (None, Terminal()), (io.StringIO(), None)):
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    assert run_many(flags, ["a", "b"], f"--out={tmp_path / 'all.jsonl'}") == runner.DONE
    found.append([stream.getvalue() if stream else "" for stream in (out, err)])
  monkeypatch.undo()
  assert [out for out, _ in found] == [lines, "", "", lines]
  assert not found[3][1] and all("files" in err and err.endswith("\x1b[2K") for _, err in found[:3])
  assert [line in found[1][1] for line in lines.splitlines()] == [True, True] and "[1/2]" not in found[0][1]


def test_a_batch_that_is_stopped_says_how_far_it_is(flags, answering, capsys, tmp_path):
  class Stopped(Stop):
    def __init__(self):
      self.asked = 0

    def is_set(self):
      self.asked += 1
      return self.asked > 1
  assert run_many(flags, ["a", "b", "c"], "--quiet", stop=Stopped()) == runner.STOPPED
  assert capsys.readouterr().err == "stopped: 1 of 3 files are done\n"
  assert run_many(flags, ["a", "b"], "--quiet", f"--out={tmp_path}/all.jsonl", stop=Stopped()) == runner.STOPPED
  assert capsys.readouterr().err == "stopped: 1 of 2 files are done; --resume goes on\n"


def test_a_batch_that_cannot_write_ends(flags, answering, monkeypatch, capsys):
  def full(self, *_, **__):
    raise OSError(28, "No space left on device")
  monkeypatch.setattr(result_lines.ResultLines, "add", full)
  stopped = []

  class Noted(Stop):
    def set(self):
      stopped.append(1)

    def is_set(self):
      return bool(stopped)
  assert run_many(flags, ["a", "b"], "--quiet", "--out=all.jsonl", stop=Noted()) == runner.SOME_FAILED
  captured = capsys.readouterr()
  assert captured.out.count("recommended") == 1 == len(stopped)
  assert captured.err == ("error: --out: cannot write 'all.jsonl': No space left on device; 0 of 2 files are done, "
                          "--resume goes on\n")


def test_a_file_is_done_with_all_its_targets(flags):
  lines = types.SimpleNamespace(done={"a"}, targets={("a", "y"), ("a", "z"), ("b", "y"), ("c", "y,z")})
  assert infer._is_done("a", lines) and not infer._is_done("b", lines)
  flags("--target=y,z")
  assert infer._is_done("a", lines) and not infer._is_done("b", lines) and infer._is_done("c", lines)


# --- what is refused before --------------------------------------------------------------------------------------


def refused(flags, check, *argv):
  flags(*argv)
  with pytest.raises(InputError) as caught:
    check()
  return str(caught.value)


def test_paths_are_looked_at_before_any_work(flags, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  (tmp_path / "there.jsonl").write_text("")
  check = functools.partial(infer._check_outputs, 1)
  assert "expected --out=FILE.jsonl" in refused(flags, check, "--resume")
  assert "expected --out=FILE.jsonl" in refused(flags, check, "--resume", "--out=f.json")
  assert "ending in .json or .jsonl, got 'f.txt'" in refused(flags, check, "--out=f.txt")
  assert refused(flags, check, "--out=none/f.json").startswith("--out: the folder 'none'")
  assert "'there.jsonl' exists; --overwrite replaces it" in refused(flags, check, "--out=there.jsonl")
  assert "results of 2 files need a .jsonl" in refused(flags, lambda: infer._check_outputs(2), "--out=f.json")
  assert refused(flags, check, "--plot=f.txt").startswith("--plot: expected a name ending in .png")
  assert "--plot: draws one data file, got 2" in refused(flags, lambda: infer._check_outputs(2), "--plot=f.png")
  assert refused(flags, check, "--report=f.txt").startswith("--report: expected a name ending in .html")
  assert "--report: tells of one data file, got 2" in refused(flags, lambda: infer._check_outputs(2), "--report=f.html")
  for argv in (["--out=there.jsonl", "--resume"], ["--out=there.jsonl", "--overwrite"], ["--out=f.json"],
               ["--plot=f.png", "--report=f.html"]):
    flags(*argv)
    infer._check_outputs(1)
  flags("--out=f.jsonl")
  infer._check_outputs(2)
  monkeypatch.setitem(infer.extras.MODULES, "plot", ("no_such_module",))
  assert refused(flags, check, "--plot=f.png").startswith("--plot needs no_such_module")
  assert refused(flags, check, "--report=f.html").startswith("--report needs no_such_module")
  assert refused(flags, lambda: infer._check_movie(1), "--animate=f.gif").startswith("--animate needs no_such_module")


def test_films_that_cannot_be_made_are_refused(flags, tmp_path, monkeypatch):
  from symformer_jax.commands import movies
  monkeypatch.chdir(tmp_path)
  check = functools.partial(infer._check_movie, 1)
  assert "ending in .gif or .mp4, got 'f.avi'" in refused(flags, check, "--animate=f.avi")
  assert refused(flags, check, "--animate=none/f.gif").startswith("--animate: the folder 'none'")
  assert "films one data file, got 2" in refused(flags, lambda: infer._check_movie(2), "--animate=f.gif")
  assert "which --template has not" in refused(flags, check, "--animate=f.gif", "--template=f(x)")
  assert "nothing moves" in refused(flags, check, "--animate=f.gif", "--refine=none")
  monkeypatch.setattr(movies, "can_write", lambda suffix: suffix == ".gif")
  assert "takes the program ffmpeg" in refused(flags, check, "--animate=f.mp4")
  flags("--animate=f.gif")
  check()


def test_options_that_no_file_can_have_are_refused_before_a_batch(flags):
  check = functools.partial(infer._check_options, 2)
  assert "--weights, --sigma: expected one of them" in refused(flags, check, "--weights=a", "--sigma=b")
  assert "says nothing without --units" in refused(flags, check, "--dimensionless_constants")
  assert refused(flags, check, "--units=x").startswith("--units: expected NAME=UNIT")
  for name, word in (("samples=0", "n_samples"), ("top_k=0", "top_k"), ("temperature=0", "temperature"),
                     ("refine=x", "refine"), ("max_time=0", "max_time"), ("accuracy=2", "accuracy"),
                     ("effort=x", "effort"), ("loss=x", "loss")):
    assert word in refused(flags, check, f"--{name}"), name
    flags(f"--{name}")
    infer._check_options(1)  # the search says it of one file
  assert "template" in refused(flags, check, "--template=f(x)", "--refine=none")
  flags()
  check()


def test_the_command_asks_for_data_and_no_arguments(flags):
  assert "unexpected argument 'b'" in refused(flags, lambda: infer.main(["a", "b"]), "--data=x")
  assert refused(flags, lambda: infer.main(["a"])).startswith("--data: expected a file")
  for name in ("target", "features", "categories", "decimal", "separator", "sheet", "time_unit", "weights", "sigma",
    "model",
               "template", "search_config", "out", "plot", "report", "animate"):
    assert refused(flags, lambda: infer.main(["a"]), "--data=x",
      f"--{name}=") == f"--{name}: expected a value, got nothing"
  assert "--select" in refused(flags, lambda: infer.main(["a"]), "--data=x", "--select=nonsense")


def test_the_module_is_a_program(flags, monkeypatch, capsys):
  handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
  try:
    for argv, message in ((["--data=none.csv"], "--data: no such file"),
      (["--data=x", "b"], "unexpected argument 'b'")):
      asked.FLAGS.unparse_flags()
      monkeypatch.setattr(sys, "argv", ["program", *argv])
      with pytest.raises(SystemExit) as ended:
        runpy.run_path(infer.__file__, run_name="__main__")
      assert ended.value.code == 2 and message in capsys.readouterr().err
  finally:
    for number, handler in handlers.items():
      signal.signal(number, handler)


def test_one_file_and_many_take_their_ways(flags, tmp_path, monkeypatch):
  taken = []
  monkeypatch.setattr(infer, "_run_one", lambda path, stop: taken.append(path) or 0)
  monkeypatch.setattr(infer, "_run_many", lambda paths, stop: taken.append(paths) or 0)
  monkeypatch.setattr(infer.runner, "StopRequest", Stop)
  for name in "ab":
    (tmp_path / f"{name}.csv").write_text("")
  one, other = (str(tmp_path / f"{name}.csv") for name in "ab")
  for argv, expected in (([f"--data={one}"], one), ([f"--data={one},{other}"], [one, other]),
                         ([f"--data={one}", "--resume", f"--out={tmp_path}/f.jsonl"], [one])):
    taken.clear()
    flags(*argv)
    assert infer.main(["infer"]) == 0 and taken == [expected]


def test_sources_that_are_left_out_are_said(flags, capsys):
  for argv, is_said in ((["--norecombine"], True), (["--norecombine", "--quiet"], False), ([], False)):
    flags(*argv)
    infer._note_old_flags()
    assert bool(capsys.readouterr().err) == is_said


# --- Beam --------------------------------------------------------------------------------------------------------


class Files:
  """Of Beam's `FileSystems` what is used, on this machine."""

  create = staticmethod(functools.partial(open, mode="wb"))
  join = staticmethod(lambda *parts: "/".join(parts))
  exists = staticmethod(os.path.exists)
  mkdirs = staticmethod(os.makedirs)

  @staticmethod
  def open(path):
    return io.BytesIO(pathlib.Path(path.removeprefix("gs://")).read_bytes())

  @staticmethod
  def match(patterns):
    return [types.SimpleNamespace(metadata_list=[
      types.SimpleNamespace(path=str(path)) for path in pathlib.Path(pattern).parent.glob(pathlib.Path(pattern).name)])
      for pattern in patterns]

  @staticmethod
  def rename(old, new):
    for one, other in zip(old, new, strict=True):
      pathlib.Path(one).rename(other)

  @staticmethod
  def delete(paths):
    for path in paths:
      shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


class Options:
  def __init__(self, arguments):
    self.arguments, self.runner, self.allow_unsafe_triggers = arguments, None, False
    self.runner = next((each.partition("=")[2] for each in arguments if each.startswith("--runner=")), None)

  def view_as(self, kind):
    return self


class Pipeline:
  made: list = []

  def __init__(self, *, options):
    Pipeline.made.append(self)
    self.options, self.steps = options, []

  def __enter__(self):
    return self

  def __exit__(self, *_):
    bundles, _, search = self.steps
    for paths in bundles:
      list(search.process(paths))

  def __or__(self, step):
    self.steps.append(step)
    return self


@pytest.fixture
def infer_beam(monkeypatch, answering):
  """The module with this process in the place of Beam and of the processes of its workers."""
  content = {
    "apache_beam": {"DoFn": object, "Pipeline": Pipeline, "Create": list, "Reshuffle": object,
    "ParDo": lambda step: step},
    "apache_beam.io": {}, "apache_beam.options": {}, "apache_beam.io.filesystems": {"FileSystems": Files},
    "apache_beam.options.pipeline_options": dict.fromkeys(("PipelineOptions", "StandardOptions", "TypeOptions"),
    Options)}
  for name, values in content.items():
    module = types.ModuleType(name)
    vars(module).update(values)
    monkeypatch.setitem(sys.modules, name, module)
  monkeypatch.delitem(sys.modules, "symformer_jax.infer_beam", raising=False)
  from symformer_jax import infer_beam as command
  monkeypatch.setattr(command, "run_elsewhere", command._SearchBundle._run, raising=False)
  monkeypatch.setattr(command._SearchBundle, "_run", lambda self, function, *arguments: function(*arguments))
  Pipeline.made.clear()
  yield command
  sys.modules.pop("symformer_jax.infer_beam", None)
  vars(sys.modules["symformer_jax"]).pop("infer_beam", None)


def files_of(tmp_path, names: Sequence[str]):
  for name in names:
    (tmp_path / name).write_text("")
  return [str(tmp_path / name) for name in names]


def lines_of(folder):
  return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


def test_a_cluster_gives_the_lines_of_a_batch(infer_beam, flags, tmp_path, capsys, answering):
  paths, out = files_of(tmp_path, ["a.csv", "b.csv", "bad.csv"]), tmp_path / "out"
  flags(f"--data={','.join(paths)}", f"--out={out}", "--bundle=2", "--samples=7")
  assert infer_beam.run(["--runner=Other"]) == runner.SOME_FAILED
  assert [line["data"] for line in lines_of(out)] == paths and not (out / "parts").exists()
  captured = capsys.readouterr()
  assert captured.out == f"3 files, {out}/results.jsonl\n" and captured.err == f"failed: {paths[2]}: bad\n"
  [made] = Pipeline.made
  assert made.steps[0] == [paths[:2], paths[2:]] and made.options.runner == "Other"
  assert not made.options.allow_unsafe_triggers
  assert made.steps[2]._flags["samples"] == 7 and made.steps[2]._flags["quiet"] is True
  assert made.steps[2]._is_single is False and made.steps[2]._here == os.getcwd()


def test_what_is_there_is_not_searched_again(infer_beam, flags, tmp_path, capsys):
  paths, out = files_of(tmp_path, ["a.csv", "b.csv"]), tmp_path / "out"
  flags(f"--data={paths[0]}", f"--out={out}", "--quiet")
  assert infer_beam.run([]) == runner.DONE and capsys.readouterr() == ("", "")
  assert Pipeline.made[0].options.runner == "DirectRunner" and Pipeline.made[0].options.allow_unsafe_triggers
  assert Pipeline.made[0].steps[2]._is_single is True
  flags(f"--data={paths[1]}", f"--out={out}", "--quiet")
  with pytest.raises(InputError, match="has results; --resume goes on with them, --overwrite begins anew"):
    infer_beam.run([])
  flags(f"--data={paths[1]}", f"--out={out}", "--quiet", "--resume")
  assert infer_beam.run([]) == runner.DONE
  assert [line["data"] for line in lines_of(out)] == paths and Pipeline.made[1].steps[0] == [[paths[1]]]
  assert infer_beam.run([]) == runner.DONE and len(Pipeline.made) == 2
  flags(f"--data={paths[1]}", f"--out={out}", "--quiet", "--overwrite")
  assert infer_beam.run([]) == runner.DONE and [line["data"] for line in lines_of(out)] == paths[1:]


def test_what_kills_a_worker_costs_one_file(infer_beam, flags, tmp_path, monkeypatch):
  search = infer_beam._SearchBundle({}, is_single=False, here=".", folder=str(tmp_path))
  search.teardown()  # of one that has begun nothing
  (tmp_path / "parts").mkdir()

  def answer_files(paths, is_single):
    for name, _ in paths:
      if name == "kills":
        raise infer_beam.process.BrokenProcessPool
      if name == "fails":
        raise KeyError("k")
      if name == "refused":
        raise InputError("no")
    return [json.dumps({"data": name, "single": is_single}) for name, _ in paths]
  monkeypatch.setattr(infer_worker, "answer_files", answer_files)
  [place] = search.process(["a", "kills", "fails", "refused", "b"])
  lines = [json.loads(line) for line in pathlib.Path(place).read_text().splitlines()]
  assert [line["data"] for line in lines] == ["a", "kills", "fails", "refused", "b"] and lines[0]["single"] is False
  assert lines[1]["message"].startswith("the process that searched it died")
  assert (lines[2]["message"], lines[3]["message"]) == ("KeyError: 'k'", "no")
  assert len(pathlib.Path(place).stem) == 24 and infer_beam._part("f", ["a"]) != infer_beam._part("f", ["a", "b"])


def test_a_worker_searches_in_one_process_of_its_own_until_that_dies(infer_beam, monkeypatch):
  made = []

  class Pool:
    def __init__(self, *given, **options):
      made.append((given, options, self))
      self.is_over = False

    def submit(self, function, *arguments):
      return types.SimpleNamespace(result=lambda: function(*arguments))

    def shutdown(self):
      self.is_over = True
  monkeypatch.setattr(infer_beam, "ProcessPoolExecutor", Pool)
  search = infer_beam._SearchBundle({"seed": 7}, is_single=True, here="/here", folder="f")
  assert infer_beam.run_elsewhere(search, max, 1, 2) == 2 and infer_beam.run_elsewhere(search, min, 1, 2) == 1
  [((num, context), options, pool)] = made
  assert num == 1 and context.get_start_method() == "spawn"
  assert options == {"initializer": infer_worker.begin, "initargs": ({"seed": 7}, "/here")}
  search.teardown()
  assert pool.is_over and search._pool is None
  assert infer_beam.run_elsewhere(search, max, 1, 2) == 2 and len(made) == 2


def test_what_no_file_can_mend_is_refused_before_the_results_are_begun(infer_beam, flags, tmp_path, monkeypatch):
  from symformer_jax import inference
  [path], resolved = files_of(tmp_path, ["a.csv"]), []
  monkeypatch.setattr(inference, "resolve_model", lambda name, *, num_variables: resolved.append((name, num_variables)))
  flags(f"--data={path}", f"--out={tmp_path}/out", "--quiet")
  assert infer_beam.run([]) == runner.DONE and not resolved
  flags(f"--data={path}", f"--out={tmp_path}/out", "--quiet", "--resume", "--model=own")
  with pytest.raises(InputError, match="holds results of .*--model=auto, not --model=own"):
    infer_beam.run([])
  assert resolved == [("own", 1)]
  flags(f"--data={path}", f"--out={path}", "--quiet")
  with pytest.raises(InputError, match="^--out: "):
    infer_beam.run([])
  (tmp_path / "out" / "results.jsonl").write_text("{}\n")
  flags(f"--data={path}", f"--out={tmp_path}/out", "--quiet", "--resume")
  with pytest.raises(InputError, match="line 1 of '.*results.jsonl' is no result of this command"):
    infer_beam.run([])


def test_files_of_object_stores_are_copied(infer_beam, tmp_path):
  (tmp_path / "t.csv").write_text("abc")
  place = infer_beam._fetch(f"gs://{tmp_path}/t.csv", tmp_path / "copies")
  assert place == str(tmp_path / "copies" / "t.csv") and pathlib.Path(place).read_text() == "abc"
  assert infer_beam._fetch("t.csv", tmp_path / "others") == "t.csv" and not (tmp_path / "others").exists()
  found = infer_beam.find_files([str(tmp_path / "t.csv"), str(tmp_path / "*.csv")])
  assert found == [str(tmp_path / "t.csv")]
  with pytest.raises(InputError, match="--data: no file matches 'gs://none/\\*'"):
    infer_beam.find_files(["gs://none/*"])


def test_a_cluster_shows_nothing_and_takes_a_folder(flags, monkeypatch):
  run = functools.partial(infer._run_on_beam, [])
  for flag, value in (("plot", "f.png"), ("report", "f.html"), ("animate", "f.gif")):
    assert refused(flags, run, "--out=f", f"--{flag}={value}") == (
      f"--{flag}: shows one data file, of which --beam searches many")
  for argv in ([], ["--out=f.json"], ["--out=f.jsonl"]):
    assert refused(flags, run, *argv).startswith("--out: expected a folder for the results of --beam, got")
  monkeypatch.setitem(infer.extras.MODULES, "beam", ("no_such_module",))
  assert refused(flags, run, "--out=f").startswith("--beam needs no_such_module")


def test_infinity_is_text_in_lines(flags):
  flags("--max_time=inf")
  assert file_answers.options()["max_time"] == "inf" and file_answers.default_options()["max_time"] is None
  assert math.inf not in file_answers.options().values()
