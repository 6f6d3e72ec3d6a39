"""The command: files in, table, JSON and picture out, exit codes; with a stand-in for the model."""

import errno
import json
import math
import os
import pathlib
import signal
import subprocess
import sys

import numpy as np
import pytest

from symformer_jax import file_answers, files, infer, inference, load_result, progress_line, testing
from symformer_jax.commands import result_lines, runner
from symformer_jax.engine.config import SearchConfig
from symformer_jax.errors import InputError
from symformer_jax.language import expression, parser
from symformer_jax.language.rules import Restrictions
from symformer_jax.results import Counts, Equation, SearchResult, Seconds, failed

ROOT = pathlib.Path(__file__).parents[1]
KEPLER = str(ROOT / "examples" / "kepler.csv")


@pytest.fixture(scope="module")
def model():
  return testing.FixedProposer(["0.7*x0**1.4", "1.3*x0 + 2.2", "1.3/x0"])


@pytest.fixture
def command(model, monkeypatch, capsys):
  """Runs the command in this process: `(code, stdout, stderr)`."""
  monkeypatch.setattr(inference, "resolve_model", lambda name, *, num_variables: model)
  monkeypatch.setattr(progress_line, "PERIOD_S", math.inf)  # however busy the machine is
  handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}

  def run(*argv):
    infer.asked.FLAGS.unparse_flags()
    for name in infer.asked.FLAGS:
      infer.asked.FLAGS[name].unparse()
    with pytest.raises(SystemExit) as caught:
      runner.run(infer.main, flag_values=infer.asked.FLAGS, argv=["infer", "--samples=64", *argv])
    return caught.value.code, *capsys.readouterr()

  yield run
  for number, handler in handlers.items():
    signal.signal(number, handler)


def test_kepler_end_to_end(command, tmp_path):
  code, out, err = command(f"--data={KEPLER}", f"--out={tmp_path / 'k.json'}", f"--plot={tmp_path / 'k.png'}",
                           f"--report={tmp_path / 'k.html'}")
  assert (code, err) == (0, "")
  [marked] = [line for line in out.splitlines() if line.startswith("->")]
  assert marked.split()[1:3] == ["1", "axis**1.5"] and "recommended: period = axis**1.5" in out
  assert "no samples of the network; ended after 10 turns, for the rest looks like noise; " in out
  record = json.loads((tmp_path / "k.json").read_text())
  assert (record["status"], record["target"], record["features"]) == ("ok", "period", ["axis"])
  assert load_result(tmp_path / "k.json").best.expression == "axis**1.5"
  assert record["best"]["expression"] == "axis**1.5"
  assert (tmp_path / "k.png").read_bytes().startswith(b"\x89PNG")
  page = (tmp_path / "k.html").read_text()
  assert "<td>kepler.csv</td>" in page and "return np.asarray" not in page and "return axis**1.5" in page


def test_of_three_columns_and_more_the_answer_says_that_no_model_was_asked(command, tmp_path):
  rows = [(a, b, c, 2 * a * b / c) for a in (1, 2, 3) for b in (1, 3, 4) for c in (2, 5, 7)]
  (tmp_path / "many.csv").write_text("a,b,c,y\n" + "".join(f"{','.join(map(str, row))}\n" for row in rows))
  code, out, err = command(f"--data={tmp_path / 'many.csv'}", f"--out={tmp_path / 'many.json'}")
  assert (code, err) == (0, "") and "recommended: y = 2*a*b/c" in out
  assert "more variables than the model knows: searched without it" in out
  assert json.loads((tmp_path / "many.json").read_text())["ended_by"] == "exact"
  (tmp_path / "idle.csv").write_text("a,b,c,y\n" + "".join(f"{a},{b},{c},{3.5 * a}\n" for a, b, c, _ in rows))
  code, out, _ = command(f"--data={tmp_path / 'idle.csv'}", f"--out={tmp_path / 'idle.json'}")
  assert code == 0 and "not in the recommended formula: b, c" in out
  assert json.loads((tmp_path / "idle.json").read_text())["seen"]["unused"] == ["b", "c"]
  code, _, err = command(f"--data={tmp_path / 'many.csv'}", f"--animate={tmp_path / 'many.gif'}")
  assert code == 2 and "--animate: shows candidates of the model, 'fixed' knows 1 variables, the data have 3" in err


def test_quiet_prints_nothing(command):
  assert command(f"--data={KEPLER}", "--quiet") == (0, "", "")


def test_many_files_are_lines_and_a_bad_one_spoils_no_other(command, tmp_path):
  (tmp_path / "a.csv").write_text((ROOT / "examples" / "boyle.csv").read_text())
  (tmp_path / "b.csv").write_text("u,v\n1,2\n")
  (tmp_path / "c.csv").write_text("u,v,w\n" + "".join(f"{i},{i},{i * i}\n" for i in range(6)))
  code, out, err = command(f"--data={tmp_path}/*.csv", f"--out={tmp_path / 'all.jsonl'}", "--effort=quick")
  records = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
  assert code == 1 and [r["status"] for r in records] == ["ok", "failed", "ok"]
  assert "too few points" in records[1]["message"] and "more variables" in records[2]["message"]
  assert err.count("failed: ") == 1 and "pressure" in out
  assert records[2]["best"]["expression"] in ("u*v", "u**2", "v**2")
  assert records[0]["best"]["expression"] == "1407/volume"


@pytest.fixture
def folder(tmp_path):
  """Three tables of a power law, the second without enough points."""
  for name, power in (("a", 1.5), ("c", 1.2)):
    rows = "".join(f"{i},{3 * i**power}\n" for i in range(1, 12))
    (tmp_path / f"{name}.csv").write_text("u,v\n" + rows)
  (tmp_path / "b.csv").write_text("u,v\n1,2\n")
  return tmp_path


def records(path):
  return [json.loads(line) for line in path.read_text().splitlines()]


def without_seconds(found):
  return [{k: v for k, v in r.items() if k not in ("seconds", "rounds")} for r in found]


def test_an_interrupted_batch_resumes_where_it_stopped(command, folder, monkeypatch):
  out = folder / "all.jsonl"
  assert command(f"--data={folder}/*.csv", f"--out={out}")[0] == 1
  whole = records(out)
  assert [r["status"] for r in whole] == ["ok", "failed", "ok"] and "[2/3]" in command(
    f"--data={folder}/*.csv", f"--out={out}", "--overwrite")[2]
  # Killed while the second line was written.
  lines = out.read_text().splitlines(keepends=True)
  out.write_text(lines[0] + lines[1][:40])
  asked, real = [], file_answers.read
  monkeypatch.setattr(file_answers, "read", lambda path: asked.append(path) or real(path))
  code, _, err = command(f"--data={folder}/*.csv", f"--out={out}", "--resume")
  assert code == 1 and [pathlib.Path(p).name for p in asked] == ["b.csv", "c.csv"]
  assert without_seconds(records(out)) == without_seconds(whole)


def test_ctrl_c_keeps_what_is_done(command, folder, monkeypatch):
  real = inference.search

  def search(*args, **options):
    found = real(*args, **options)
    signal.raise_signal(signal.SIGINT)
    return found

  monkeypatch.setattr(inference, "search", search)
  out = folder / "all.jsonl"
  code, _, err = command(f"--data={folder}/*.csv", f"--out={out}")
  assert code == 75 and "stopped: 1 of 3 files are done; --resume goes on" in err
  assert [r["status"] for r in records(out)] == ["ok"]
  monkeypatch.setattr(inference, "search", real)
  assert command(f"--data={folder}/*.csv", f"--out={out}", "--resume")[0] == 1
  assert [pathlib.Path(r["data"]).name for r in records(out)] == ["a.csv", "b.csv", "c.csv"]


def test_ctrl_c_gives_the_best_so_far_of_one_file(command, tmp_path, monkeypatch):
  real = inference.search

  def search(*args, callback, **options):
    def watch(standing):
      callback(standing)
      if standing.source == "library":
        signal.raise_signal(signal.SIGTERM)
    return real(*args, callback=watch, **options)

  monkeypatch.setattr(inference, "search", search)
  code, out, err = command(f"--data={KEPLER}", "--effort=thorough", f"--out={tmp_path}/k.json")
  assert code == 75 and "recommended: period = axis**1.5" in out and "best so far" in err
  [record] = records(tmp_path / "k.json")
  assert record["ended_by"] == "stopped" and record["rounds"][-1]["source"] == "library"


def test_two_processes_write_no_batch_at_once(command, folder):
  out = folder / "all.jsonl"
  with files.claimed(out, flag="--out"):
    code, _, err = command(f"--data={folder}/*.csv", f"--out={out}")
  assert code == 2 and "--out: another process is writing to" in err and not out.exists()
  assert command(f"--data={folder}/a.csv", f"--out={out}")[0] == 0
  with files.claimed(out, flag="--out"):  # one of whose files is done
    assert command(f"--data={folder}/*.csv", f"--out={out}", "--resume")[0] == 2
  assert len(records(out)) == 1 and not list(folder.glob(".*"))


def test_results_of_another_run_are_not_lost(command, folder):
  out = folder / "all.jsonl"
  out.write_text("mine\n")
  code, _, err = command(f"--data={folder}/*.csv", f"--out={out}")
  assert code == 2 and "exists; --overwrite replaces it, --resume goes on" in err and out.read_text() == "mine\n"
  code, _, err = command(f"--data={folder}/*.csv", f"--out={out}", "--resume")
  assert code == 2 and "line 1 of" in err and "is no result of this command" in err
  code, _, err = command(f"--data={folder}/a.csv", f"--out={out}", "--overwrite", "--samples=16", "--forbid=sin")
  assert code == 0
  for given, message in (([], "--samples=16, not --samples=64"), (["--samples=16"], "--forbid=sin, not --forbid="),
                         (["--samples=16", "--forbid=sin", "--target=y"], "no --target, not --target=y")):
    code, _, err = command(f"--data={folder}/*.csv", f"--out={out}", "--resume", *given)
    assert code == 2 and f"holds results of {message}; give another file" in err
  code, _, err = command(f"--data={KEPLER}", "--resume", f"--out={folder}/k.json")
  assert code == 2 and "--resume: expected --out=FILE.jsonl" in err


def test_a_loss_is_named_and_its_figures_are_called_weighted(command, tmp_path):
  (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{x},{1.5 * x + 0.01 * (-1) ** x * x}\n" for x in range(1, 31)))
  code, out, _ = command(f"--data={tmp_path}/t.csv", "--loss=relative", f"--out={tmp_path}/t.json", "--norecombine")
  assert code == 0 and "loss relative: rows count as 1/y**2" in out and ", loss relative" in out.splitlines()[0]
  assert "weighted R2  weighted RMSE" in out.splitlines()[1]
  seen = json.loads((tmp_path / "t.json").read_text())["seen"]
  assert (seen["loss"], seen["exponent"], seen["ranges"]) == ("relative", 1.0, {"x": [1.0, 30.0]})
  assert seen["noise"] < 0.1 and "seen: x 1 to 30; noise " in out
  (tmp_path / "s.csv").write_text("x,y\n" + "".join(f"{x},{x - 5.5}\n" for x in range(1, 12)))
  code, out, err = command(f"--data={tmp_path}/s.csv", "--loss=log")
  assert code == 2 and out == "" and "loss: log takes a target of one sign, got both signs" in err


def write_two_lines(path):
  """y = 3*x + 2 in rows of small error, y = 20 - x in those of a large one."""
  rows = [(x, 3 * x + 2 + 0.002 * (x**3 % 11 - 5), 0.1) for x in range(1, 13)]
  rows += [(x + 0.5, 19.5 - x, 1000) for x in range(1, 25)]
  path.write_text("x,y,sd,w\n" + "".join(f"{x},{y},{sd},{sd**-2}\n" for x, y, sd in rows))


@pytest.mark.parametrize("flag", ["--sigma=sd", "--weights=w"])
def test_rows_count_as_a_column_says(command, tmp_path, flag):
  write_two_lines(tmp_path / "t.csv")
  argv = [f"--data={tmp_path}/t.csv", "--target=y", "--features=x", "--norecombine", "--quiet"]
  command(*argv, f"--out={tmp_path}/plain.json")
  code, _, err = command(*argv, flag, f"--out={tmp_path}/t.json", f"--plot={tmp_path}/t.png")
  assert code == 0 and "no column" not in err
  plain, record = (json.loads((tmp_path / name).read_text()) for name in ("plain.json", "t.json"))
  at_0, at_1 = expression.evaluate(parser.parse(record["best"]["expression"], ["x"]), np.array([[0.0], [1.0]]))
  assert (at_1 - at_0, at_0) == pytest.approx((3, 2), abs=0.01) and record["best"]["r2"] > 0.999 > plain["best"]["r2"]
  assert record["options"][flag[2:].split("=")[0]] == flag.split("=")[1] and record["n_points"] == 36


def test_the_line_that_is_taken_is_marked_and_its_constants_printed(command, tmp_path):
  _, whole, _ = command(f"--data={KEPLER}")
  for selection, text in (("accurate", "axis**1.5"), ("0", "37"), ("2", "5.4*axis - 9")):
    code, out, _ = command(f"--data={KEPLER}", f"--select={selection}", f"--out={tmp_path}/{selection}.json")
    [marked] = [line.split() for line in out.splitlines() if line.startswith("->")]
    record = json.loads((tmp_path / f"{selection}.json").read_text())
    assert code == 0 and record["pareto"][record["selected"]]["expression"] == text
    assert marked[1] == str(record["selected"]) and record["best"]["expression"] == "axis**1.5"
    assert "recommended: period = axis**1.5" in out
    assert (f"selected: period = {text}" in out) == (text != "axis**1.5")
    others = [line.split()[0] for line in out.splitlines() if line.endswith("  recommended")]
    assert others == ([] if text == "axis**1.5" else ["1"])
  assert "constants: 1.5" in whole and "constants: 5.4" in out


def test_a_line_that_is_not_there_costs_no_answer(command, tmp_path):
  code, out, _ = command(f"--data={KEPLER}", "--select=17", f"--out={tmp_path}/k.json")
  message = "--select: expected a line of the front, 0 to 2, got 17: the recommended one is taken"
  record = json.loads((tmp_path / "k.json").read_text())
  assert code == 0 and message in out and message in record["message"]
  assert record["pareto"][record["selected"]] == record["best"]
  for argv in ([f"--out={tmp_path}/quiet.json", "--quiet"],
               [f"--out={tmp_path}/one.jsonl", "--resume"], [f"--out={tmp_path}/two.jsonl", "--resume", "--quiet"]):
    code, out, err = command(f"--data={KEPLER}", "--select=17", *argv)  # where the message of the result is not printed
    assert (code, message in out, err) == (0, False, f"note: {KEPLER}: period: {message}\n")


@pytest.mark.parametrize(("argv", "code", "said"), [
  ([], 1, "error: cannot write: standard output is closed\n"), (["--out=f.json"], 0, ""), (["--quiet"], 0, "")])
def test_results_that_nobody_could_read_are_not_searched(command, monkeypatch, tmp_path, argv, code, said):
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(sys, "stdout", None)
  assert command(f"--data={KEPLER}", *argv) == (code, "", said)


@pytest.mark.parametrize(("flags", "message"), [
  (["--loss=sqared"], "loss"), (["--effort=quik"], "effort"), (["--weights=u", "--sigma=u"], "--weights, --sigma"),
  (["--max_complexity=0"], "max_complexity"), (["--weights="], "--weights")])
def test_a_batch_that_is_refused_leaves_old_results_alone(flags, message, command, folder, tmp_path):
  out = tmp_path / "all.jsonl"
  out.write_text("old\n")
  code, _, err = command(f"--data={folder}/*.csv", f"--out={out}", "--overwrite", *flags)
  assert code == 2 and message in err and out.read_text() == "old\n"
  code, _, _ = command(f"--data={folder}/*.csv", f"--out={tmp_path}/new.jsonl", *flags)
  assert code == 2 and not (tmp_path / "new.jsonl").exists()


@pytest.mark.slow  # the estimator's tests ask the same of the library
def test_nothing_longer_than_asked_for_is_listed(command, tmp_path):
  argv = f"--data={ROOT}/examples/boyle.csv", "--quiet"
  for limit, expected in ((3, {1}), (4, {1, 4})):
    assert command(*argv, f"--max_complexity={limit}", f"--out={tmp_path}/{limit}.json")[0] == 0
    front = json.loads((tmp_path / f"{limit}.json").read_text())["pareto"]
    assert {line["complexity"] for line in front} >= expected and max(line["complexity"] for line in front) <= limit


def test_rules_of_the_command_line(command):
  code, out, _ = command(f"--data={KEPLER}", "--forbid=**,exp", "--max_depth=4", "--accuracy=0.9")
  assert code == 0 and "**" not in out and "*axis" in out
  code, _, err = command(f"--data={KEPLER}", "--max_sizes=exp=3, pow=2")
  assert code == 2 and err == (
    "error: --max_sizes: 'pow': expected two sizes, of base and exponent, such as (9, 1), got 2\n")


def test_every_flag_of_the_search_reaches_it(command, tmp_path, monkeypatch):
  asked = {}

  def search(model, datasets, **options):
    asked.update(options)
    raise InputError("far enough")
  monkeypatch.setattr(inference, "search", search)
  (tmp_path / "own.py").write_text("def get_config(): return {'sources': ['closed_forms']}")
  given = {
    "n_samples": ("samples", "77", 77), "strategy": ("strategy", "nucleus", "nucleus"), "top_k": ("top_k", "7", 7),
    "temperature": ("temperature", "0.5", 0.5), "refine": ("refine", "bfgs", "bfgs"), "seed": ("seed", "9", 9),
    "recombine": ("recombine", "false", False), "max_time": ("max_time", "3.5", 3.5),
    "accuracy": ("accuracy", "0.75", 0.75), "guesses": ("guess", "axis", ["axis"]),
    "effort": ("effort", "thorough", "thorough"), "loss": ("loss", "relative", "relative"),
    "template": ("template", "f(axis)", "f(axis)"),
    "config": ("search_config", str(tmp_path / "own.py"), SearchConfig(sources=("closed_forms",))),
    "units": ("units", "axis=au, period=yr", {"axis": "au", "period": "yr"}),
    "dimensionless_constants": ("dimensionless_constants", "true", True)}
  rules = {
    "operators": ("operators", "+,*,pow", ("+", "*", "pow")), "forbidden": ("forbid", "exp", ("exp",)),
    "required": ("require", "axis", ("axis",)), "excluded": ("exclude", "mass", ("mass",)),
    "max_exponent": ("max_exponent", "3", 3.0), "max_depth": ("max_depth", "4", 4),
    "unnested": ("unnested", "sin", ("sin",)), "max_complexity": ("max_complexity", "9", 9),
    "add_operators": ("add_operators", "tanh,abs", ("tanh", "abs")),
    "max_sizes": ("max_sizes", "sin=3, pow=9:1, /=:5", {"sin": (3,), "pow": (9, 1), "/": (None, 5)})}
  argv = [f"--{flag}={text}" for flag, text, _ in (*given.values(), *rules.values())]
  code, _, err = command(f"--data={KEPLER}", *argv)
  assert code == 2 and "far enough" in err
  assert {name: asked[name] for name in given} == {name: value for name, (_, _, value) in given.items()}
  assert asked["restrictions"] == Restrictions(**{name: value for name, (_, _, value) in rules.items()})
  # None is left out, here or there.
  assert set(asked) == {*given, "restrictions", "names", "targets", "should_stop", "callback"}
  decisive = {flag.name for flag in infer.asked.DECISIVE} - {
    "target", "features", "categories", "decimal", "separator", "sheet", "time_unit", "weights", "sigma",
    "drop_missing", "model", "select"}
  assert decisive == {flag for flag, _, _ in (*given.values(), *rules.values())}


def no_room(*args, **options):
  raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_what_was_found_is_printed_when_it_cannot_be_written(command, tmp_path, monkeypatch, quiet):
  monkeypatch.setattr(pathlib.Path, "replace", no_room)
  out, plot, report = tmp_path / "k.json", tmp_path / "k.png", tmp_path / "k.html"
  code, printed, err = command(f"--data={KEPLER}", f"--out={out}", f"--plot={plot}", f"--report={report}", *quiet)
  assert code == 1 and "recommended: period = axis**1.5" in printed and not list(tmp_path.iterdir())
  assert err == (f"error: --out: cannot write '{out}': No space left on device\n"
                 f"error: --plot: cannot write '{plot}': No space left on device\n"
                 f"error: --report: cannot write '{report}': No space left on device\n")


def test_a_drawing_that_matplotlib_refuses_loses_nothing_else(command, tmp_path, monkeypatch):
  def no_tex(answer, place):
    raise RuntimeError("Failed to process string with tex because\nlatex could not be found")
  monkeypatch.setattr(infer, "_draw", no_tex)
  out, plot = tmp_path / "k.json", tmp_path / "k.png"
  code, printed, err = command(f"--data={KEPLER}", f"--out={out}", f"--plot={plot}")
  assert code == 1 and "recommended: period = axis**1.5" in printed
  assert [path.name for path in tmp_path.iterdir()] == ["k.json"]
  assert err == (f"error: --plot: cannot write '{plot}': Failed to process string with tex because latex could not be "
                 "found\n")


def test_a_batch_that_cannot_write_prints_what_it_found_and_ends(command, folder):
  out = folder / "all.jsonl"
  out.symlink_to("/dev/full")
  code, printed, err = command(f"--data={folder}/*.csv", f"--out={out}", "--overwrite", "--quiet")
  assert code == 1 and printed.count("recommended: v = 3*u**1.5") == 1 and "1.2" not in printed
  assert err == (f"error: --out: cannot write '{out}': No space left on device; 0 of 3 files are done, "
                 "--resume goes on\n")


def test_a_line_that_was_not_written_whole_is_not_kept(tmp_path, monkeypatch):
  path = tmp_path / "all.jsonl"
  lines = result_lines.ResultLines(path, options={}, defaults={}, is_new=True)
  lines.add("a.csv", "1")
  with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
    patch.setattr(os, "fsync", no_room)
    lines.add("b.csv", "2")
  assert path.read_text() == "1\n" and lines.done == {"a.csv"}


@pytest.fixture
def answering(monkeypatch):
  """In place of a search: y = 2*(first column), or a failure for targets that are named."""
  failing, asked = set(), []

  def search(model, datasets, *, names, **options):
    asked.extend(names)
    found = []
    for (_, y, *_), columns in zip(datasets, names, strict=True):
      node = parser.parse("2*a", ["a"])
      best = Equation(node, tuple(columns), 0.25, 0.5, None, ())
      found.append(SearchResult("ok", "", best, (best,), Counts(), Seconds(), 0, len(y), "fixed", (), "budget")
                   if y[0] not in failing else failed("no such law", model="fixed", seed=0))
    return found

  monkeypatch.setattr(inference, "search", search)
  return failing, asked


TARGETS = "u,girth (in),x**2,y\n" + "".join(f"{i},{i + 10},{i + 20},{i + 30}\n" for i in range(6))


def test_each_target_has_an_answer_and_a_file_of_its_own(command, answering, tmp_path):
  (tmp_path / "t.csv").write_text(TARGETS)
  argv = [f"--data={tmp_path}/t.csv", "--target=girth (in),x**2", f"--out={tmp_path}/t.json"]
  code, out, err = command(*argv)
  assert (code, err) == (0, "") and answering[1] == [("u", "y")] * 2
  assert "recommended: `girth (in)` = 2*u" in out and "recommended: `x**2` = 2*u" in out
  [girth], [square] = records(tmp_path / "t-girth_in.json"), records(tmp_path / "t-x_2.json")
  assert (girth["target"], square["target"]) == ("girth (in)", "x**2") and girth["features"] == ["u", "y"]
  assert not (tmp_path / "t.json").exists() and girth["options"]["target"] == "girth (in),x**2"
  code, _, err = command(*argv)
  assert code == 2 and "t-girth_in.json' exists; --overwrite replaces it" in err
  command(*argv[:2], f"--out={tmp_path}/t.jsonl")
  assert [record["target"] for record in records(tmp_path / "t.jsonl")] == ["girth (in)", "x**2"]


def test_a_target_that_fails_spoils_no_other(command, answering, tmp_path):
  (tmp_path / "t.csv").write_text(TARGETS)
  answering[0].add(20)
  code, out, err = command(f"--data={tmp_path}/t.csv", "--target=girth (in),x**2", f"--out={tmp_path}/t.json")
  assert code == 1 and "`girth (in)` = 2*u" in out and err == "failed: no such law\n"
  assert records(tmp_path / "t-x_2.json")[0]["status"] == "failed"
  answering[0].add(10)
  code, _, err = command(f"--data={tmp_path}/t.csv", "--target=girth (in),x**2")
  assert code == 2 and "t.csv: no such law" in err


def test_a_batch_resumes_between_two_targets_of_a_file(command, answering, tmp_path):
  for name in "ab":
    (tmp_path / f"{name}.csv").write_text(TARGETS)
  (tmp_path / "c.csv").write_text("u,v\n")
  argv = [f"--data={tmp_path}/*.csv", "--target=y,x**2", f"--out={tmp_path}/all.jsonl"]
  assert command(*argv)[0] == 1
  lines = (tmp_path / "all.jsonl").read_text().splitlines(keepends=True)
  assert [json.loads(line)["target"] for line in lines] == ["y", "x**2", "y", "x**2", "y,x**2"]
  (tmp_path / "all.jsonl").write_text("".join(lines[:3]))
  answering[1].clear()
  code, _, err = command(*argv, "--resume")
  assert code == 1 and answering[1] == [("u", "girth (in)")] and "[3/3]" in err
  assert [line["target"] for line in records(tmp_path / "all.jsonl")] == [json.loads(line)["target"] for line in lines]


def test_an_accent_may_be_a_sign_of_its_own_in_names_of_files_and_flags(command, tmp_path):
  (tmp_path / "t.csv").write_text("x,e\u0301\n" + "".join(f"{i},{3 * i + i % 3 / 9}\n" for i in range(9)))
  for name in ("\u00e9", "e\u0301"):
    code, out, _ = command(f"--data={tmp_path}/t.csv", f"--target={name}", f"--units=x=m,{name}=m")
    assert code == 0 and "recommended: \u00e9 = " in out
    code, out, _ = command(f"--data={tmp_path}/t.csv", "--target=x", f"--guess=`{name}`*k")
    assert code == 0 and "guess `\u00e9`*k: k = 0.33" in out


def test_what_was_decided_of_a_table_is_said_and_kept(command, answering, tmp_path):
  (tmp_path / "t.csv").write_text("a;b\n" + "".join(f"{i},5;{i * i}\n" for i in range(6)))
  note = "column 'a' is read so that '0,5' is 0.5"
  code, _, err = command(f"--data={tmp_path}/t.csv", f"--out={tmp_path}/t.json")
  assert code == 0 and err == f"note: {tmp_path}/t.csv: {note}\n" and records(tmp_path / "t.json")[0]["notes"] == [note]
  code, _, err = command(f"--data={tmp_path}/t.csv,{KEPLER}", f"--out={tmp_path}/t.jsonl")
  assert code == 0 and note in err
  assert command(f"--data={tmp_path}/t.csv", "--quiet")[2] == ""
  code, _, err = command(f"--data={tmp_path}/t.csv", "--decimal=.")
  assert code == 2 and "no other column left to explain 'b'" in err and "line 2, column 'a': '0,5' is no number" in err


@pytest.mark.parametrize(("argv", "message"), [
  ([f"--data={KEPLER}", "--decimal="], "--decimal: expected a value, got nothing"),
  ([f"--data={KEPLER}", "--decimal=;"], "--decimal: expected . or , got ';'"),
  ([f"--data={KEPLER}", "--separator=tabs"], "--separator: expected one of tab ; | , space, got 'tabs'"),
  ([f"--data={KEPLER}", "--categories=planet"], "--categories: no column 'planet', expected one of 'axis', 'period'"),
  ([f"--data={KEPLER}", "--target=axis,mass"], "--target: no column 'mass', expected one of 'axis', 'period'"),
  ([f"--data={KEPLER}", "--target=axis,period"], "no column left to explain 'axis'"),
  ([f"--data={KEPLER}", '--target="period'], """cannot read the names '"period': unexpected end of data"""),
  ([f"--data={KEPLER}", f"--select={'9' * 5000}"], "--select: unknown choice '9999"),
  ([f"--data={KEPLER}", f"--guess={'(' * 5000}axis"], "--guess: '((((("),
  ([f"--data={KEPLER}", f"--samples={10**20}"], "error: --samples: expected at most 10000000, got 1"),
  ([f"--data={KEPLER}", "--out="], "--out: expected a value, got nothing"),
  ([f"--data={KEPLER}", "--target="], "--target: expected a value, got nothing"),
  ([f"--data={KEPLER}", "--features="], "--features: expected a value, got nothing"),
  ([f"--data={KEPLER}", "--plot=/proc/x.png"], "--plot: cannot write '/proc/x.png'"),
  ([f"--data={KEPLER}", "--report=/proc/x.html"], "--report: cannot write '/proc/x.html'"),
  ([f"--data={KEPLER}", "--report="], "--report: expected a value, got nothing"),
  ([f"--data={KEPLER}", "--report=fit.pdf"], "--report: expected a name ending in .html, .htm, got 'fit.pdf'"),
  ([f"--data={KEPLER},{ROOT}/examples/boyle.csv", "--report=fit.html"], "--report: tells of one data file, got 2"),
  ([f"--data={KEPLER}", "--out=/proc/x.jsonl"], "--out: cannot write '/proc/x.jsonl'"),
  ([f"--data={KEPLER}", "--seed=99999999999999999999999"], "seed: expected a whole number from 0 to 2**63 - 1, got 9"),
  (["--data=n\nl.csv"], "a name with a line break in it stands in double quotes, got 'n\\nl.csv'; see --help"),
  ([f"--data={KEPLER}", "--target=axis,a\nb"], "--target: no column 'a b', expected one of 'axis', 'period'"),
  ([f"--data={KEPLER}", "--max_sizes=sin=-3"], "at least 1, or -1 for any, got -3"),
  ([f"--data={KEPLER}", "--seed="], "flag --seed=: expected a whole number, got ''; see --help"),
  ([f"--data={KEPLER}", "--max_time=soon"], "flag --max_time=soon: expected a number, got 'soon'; see --help"),
  ([f"--data={KEPLER}", "--quiet=on"], "flag --quiet=on: expected true or false, got 'on'; see --help"),
  ([f"--data={KEPLER}", "--overwrite"], "--overwrite: says nothing without --out"),
  ([f"--data={KEPLER}", "--bundle=4"], "--bundle: says nothing without --beam"),
  ([f"--data={KEPLER}", "--seed=-1"], "seed: expected a whole number from 0 to 2**63 - 1, got -1"),
  ([f"--data={'a' * 5000}.csv"], "File name too long"),
  ([f"--data={KEPLER}", "--operators=sin", "--forbid=sin"], "operators: the rules leave no operator"),
  ([f"--data={KEPLER}", "--require=mass"], "kepler.csv: --require: no column 'mass', expected some of 'axis'"),
  ([f"--data={KEPLER}", "--max_exponent=0"], "max_exponent: expected a number of at least 1"),
  (["--data=nowhere/*.csv"], "--data: no file matches 'nowhere/*.csv'"),
  ([], "--data: expected a file"),
  (["--data=no.csv"], "--data: no such file: 'no.csv'"),
  ([f"--data={KEPLER}", "--target=mass"], "--target: no column 'mass', expected one of 'axis', 'period'"),
  ([f"--data={KEPLER}", "--sigma=error"], "--sigma: no column 'error', expected one of 'axis', 'period'"),
  ([f"--data={KEPLER}", "--weights=axis"], "no column left to explain 'period'"),
  ([f"--data={KEPLER}", "--loss=realtive"], "loss: unknown loss 'realtive': did you mean 'relative'?"),
  ([f"--data={KEPLER}", "--select=acurate"], "--select: unknown choice 'acurate', a number of the front or a word: did "
   "you mean 'accurate'?"),
  ([f"--data={KEPLER}", "--max_complexity=0"], "max_complexity: expected a whole number of at least 1, got 0"),
  ([f"--data={KEPLER}", "--refine=sgd"], "refine: unknown method 'sgd'"),
  ([f"--data={KEPLER}", "--template=f(w)"], "template: f has no column 'w' at position 3: expected one of axis"),
  ([f"--data={KEPLER}", "--template="], "--template: expected a value, got nothing"),
  ([f"--data={KEPLER}", "--template=f(axis)", "--refine=none"], "template: its constants are fitted, so refine='none' "
   "cannot go with it"),
  ([f"--data={KEPLER}", "--template=f(axis)", "--animate=a.gif"], "--animate: films candidates for the target itself"),
  ([f"--data={KEPLER}", "--data=b.csv"], "kepler.csv' and 'b.csv': several values stand in one flag, with commas "),
  ([f"--data={KEPLER}", "--guess=k*period"], "kepler.csv: --guess: 'k*period': 'period' is the target; an unknown "),
  ([f"--data={KEPLER}", "--template=f(axis)*period"], "--template: 'f(axis)*period': 'period' is the target; "),
  ([f"--data={KEPLER}", "--samples=0"], "error: --samples: expected a whole number of at least 1"),
  ([f"--data={KEPLER}", "--operators=foo"], "operators: unknown operator 'foo'"),
  ([f"--data={KEPLER}", "--out=/no/where.json"], "--out: the folder '/no' of '/no/where.json' does not exist"),
  ([f"--data={KEPLER}", "--out=fit.txt"], "--out: expected a name ending in .json or .jsonl"),
  ([f"--data={KEPLER}", "--plot=fit.doc"], "--plot: expected a name ending in .png"),
  ([f"--data={KEPLER},{ROOT}/examples/boyle.csv", "--out=fit.json"], "--out: results of 2 files need a .jsonl"),
  ([f"--data={KEPLER},{ROOT}/examples/boyle.csv", "--plot=fit.png"], "--plot: draws one data file, got 2"),
])
def test_unusable_arguments_are_one_line_and_code_2(command, tmp_path, monkeypatch, argv, message):
  monkeypatch.chdir(tmp_path)
  code, out, err = command(*argv)
  assert code == 2 and out == "" and err.startswith("error: ") and err.count("\n") == 1 and message in err
  assert len(err) < 1500
  assert not list(tmp_path.iterdir())


def test_a_column_that_is_not_in_use_is_no_unknown_constant(command, tmp_path):
  rows = "".join(f"{i},{i % 3},s{i},{i % 2},{2 * i}\n" for i in range(9))
  (tmp_path / "t.csv").write_text(f"a,b,s,c c,y\n{rows}")
  for argv, name in ((["--features=a", "--guess=k*b*a"], "b"), (["--guess=a", "--guess=s*a"], "s"),
                     (["--weights=b", "--guess=a+b"], "b"), (["--categories=s", "--template=f(a)*s"], "s"),
                     (["--target=y,b", "--guess=a+b"], "b"), (["--features=a", "--guess=`c c`"], "c c")):
    code, _, err = command(f"--data={tmp_path / 't.csv'}", *argv)
    what = "unknown name" if " " in name else "--"  # in backticks no constant stands
    assert code == 2 and what in err and f"{name!r} " in err and err.count("\n") == 1, argv


@pytest.mark.parametrize("flag", ["--out=o.json", "--out=o.jsonl", "--plot=o.png", "--report=o.html"])
def test_data_are_not_written_over_through_a_link(command, tmp_path, monkeypatch, flag):
  monkeypatch.chdir(tmp_path)
  pathlib.Path("t.csv").write_text("x,y\n" + "".join(f"{i},{i * i}\n" for i in range(9)))
  before, place = pathlib.Path("t.csv").read_bytes(), flag.partition("=")[2]
  pathlib.Path(place).symlink_to("t.csv")
  more = ["--overwrite"] if "out" in flag else []
  code, _, err = command("--data=t.csv", flag, *more)
  assert (code, err) == (2, f"error: {flag.partition('=')[0]}: '{place}' is a link to 't.csv', which is read\n")
  if place.endswith(".jsonl"):
    pathlib.Path("b.csv").write_bytes(before)
    assert command("--data=b.csv,t.csv", flag, *more)[0] == 2
  assert pathlib.Path("t.csv").read_bytes() == before


def test_a_config_and_the_data_of_other_targets_are_not_written_over_either(command, answering, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  pathlib.Path("t.csv").write_text("x,y,z\n" + "".join(f"{i},{i * i},{i % 3}\n" for i in range(9)))
  pathlib.Path("c.py").write_text("def get_config():\n  return {}\n")
  pathlib.Path("o.json").symlink_to("c.py")
  pathlib.Path("p-z.json").symlink_to("t.csv")
  code, _, err = command("--data=t.csv", "--out=o.json", "--overwrite", "--search_config=c.py")
  assert code == 2 and "--out: 'o.json' is a link to 'c.py', which is read" in err
  code, _, err = command("--data=t.csv", "--target=y,z", "--out=p.json", "--overwrite")
  assert code == 2 and "--out: 'p-z.json' is a link to 't.csv', which is read" in err


def test_an_unusable_table_leaves_nothing_behind(command, tmp_path):
  (tmp_path / "t.csv").write_text("a,b\n1,1\n2,\n3,9\n4,16\n5,25\n6,36\n")
  code, _, err = command(f"--data={tmp_path}/t.csv", f"--out={tmp_path}/t.json", f"--plot={tmp_path}/t.png")
  assert code == 2 and "line 3, column 'b': expected a finite number, got a missing value" in err
  assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]
  code, out, err = command(f"--data={tmp_path}/t.csv", "--drop_missing")
  assert code == 0 and "1 of 6 rows left out" in err and "a**2" in out


@pytest.mark.parametrize(("argv", "code", "message"), [
  (["--help"], 0, "--drop_missing: Leave out rows"),
  ([f"--data={KEPLER}", "--model=unheard_of"], 2, "unknown model 'unheard_of': expected auto"),
  # tests/installed.sh asks for this file where the package is installed.
  pytest.param([f"--data={KEPLER}", "--samples=64", "--norecombine"], 0, "recommended: period = axis**1.5",
               marks=pytest.mark.slow),
  (["--dta=x.csv"], 2, "Unknown command line flag 'dta'. Did you mean: data"),
  (["--data=x.csv", "--beam", "--", "--runner=R"], 2, "--out: expected a folder for the results of --beam"),
])
def test_as_a_process(argv, code, message):
  done = subprocess.run([sys.executable, "-m", "symformer_jax.infer", *argv], cwd=ROOT, capture_output=True, text=True)
  assert done.returncode == code and message in (done.stderr if code else done.stdout)
  assert "Traceback" not in done.stderr


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.csv")), ids=lambda p: p.stem)
def test_examples_are_described(path):
  from symformer_jax.commands import tables

  table = tables.read_table(str(path))
  assert len(table.features) == 1 and not table.notes
  assert f"`{path.name}`" in (ROOT / "examples" / "README.md").read_text()
