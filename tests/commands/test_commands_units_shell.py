"""Parts of the command that read flags, print results and end: no search, no file of a table."""

import asyncio
import dataclasses
import errno
import gc
import inspect
import io
import json
import logging
import os
import signal
import subprocess
import sys
import types

from absl import flags
import jax
import numpy as np
import pytest

from symformer_jax import SymFormerRegressor, inference
from symformer_jax.commands import (
  config_flag,
  extras,
  infer_flags,
  listing,
  operator_sizes,
  outputs,
  result_lines,
  runner,
  scripts,
  search_config,
  startup,
)
from symformer_jax.errors import InputError
from symformer_jax.language import parser
from symformer_jax.language.rules import Restrictions
from symformer_jax.results import Constant, Counts, Equation, Filled, Progress, SearchResult, Seconds, Seen

# --- flags -------------------------------------------------------------------------------------------------------


def test_flags_stand_in_values_of_their_own_and_begin_as_the_estimator_does():
  own = infer_flags.FLAGS
  holders = {value.name: value for value in vars(infer_flags).values() if isinstance(value, flags.FlagHolder)}
  assert set(holders) == set(own)  # those of libraries, which the command does not list, stand elsewhere
  defaults = {name: parameter.default for name, parameter in inspect.signature(SymFormerRegressor).parameters.items()}
  same = {"samples": "n_samples", "temperature": "temperature", "strategy": "strategy", "refine": "refine",
          "recombine": "recombine", "loss": "loss", "effort": "effort", "select": "select", "model": "model",
          "dimensionless_constants": "dimensionless_constants", "top_k": "top_k"}
  for flag, parameter in same.items():
    if parameter in defaults:
      assert own[flag].default == defaults[parameter], flag
  assert own["seed"].default == 0 and own["bundle"].default == 16 and own["top_k"].default == 20
  assert not any(own[name].default for name in ("resume", "overwrite", "drop_missing", "beam", "quiet"))
  own.unparse_flags()
  with pytest.raises(flags.Error, match="bundle"):
    own(["infer", "--bundle=0"])
  own.unparse_flags()
  own(["infer", "--bundle=1"])
  own.unparse_flags()
  assert len(set(map(id, infer_flags.DECISIVE))) == len(infer_flags.DECISIVE)
  own["bundle"].unparse()


@pytest.mark.parametrize(("message", "said"), [
  ("n_samples: expected 1", "--samples: expected 1"), ("forbidden: no 'a: b'", "--forbid: no 'a: b'"),
  ("seed: expected", "--seed: expected"), ("--seed: no", "--seed: no"), ("t.csv: seed: no", "t.csv: seed: no"),
  ("too few points: expected", "too few points: expected"), ("loss", "loss")])
def test_messages_name_flags_and_no_parameters(message, said):
  assert infer_flags.in_flags(message) == said


def test_messages_about_weights_name_the_flag_that_gave_them():
  own = infer_flags.FLAGS
  for argument, flag in (("--weights=w", "--weights"), ("--sigma=s", "--sigma")):
    own(["infer", argument])
    assert infer_flags.in_flags("weights: expected") == f"{flag}: expected"
    own.unparse_flags()
    own["weights"].unparse()
    own["sigma"].unparse()


def test_parameters_with_flags_of_other_names_are_those_of_the_search():
  rules = {each.name for each in dataclasses.fields(Restrictions)}
  assert set(infer_flags._FLAGS_OF) <= rules | set(inspect.signature(inference.search).parameters)
  assert set(infer_flags._FLAGS_OF.values()) <= set(infer_flags.FLAGS)


@pytest.mark.parametrize(("argv", "found"), [
  (["x", "--config=configs/small.py:a"], "--config={}:a"), (["x", "-config=configs/small.py"], "-config={}"),
  (["x", "--config", "configs/small.py"], "{}"), (["x", "--config", "configs/small.py:b"], "{}:b")])
def test_a_config_of_this_installation_is_found_from_any_folder(tmp_path, monkeypatch, argv, found):
  monkeypatch.chdir(tmp_path)
  located = config_flag.locate(argv)
  assert len(located) == len(argv) and located[0] == "x"
  path = located[-1].partition("=")[2] or located[-1]
  assert os.path.isabs(path.partition(":")[0]) and os.path.isfile(path.partition(":")[0])
  assert located[-1] == found.format(path.partition(":")[0])


@pytest.mark.parametrize("argv", [
  ["x", "--config=none.py"], ["x", "config=configs/small.py"], ["x", "--configs=configs/small.py"], ["x", "--config"],
  ["x", "--other", "configs/small.py"]])
def test_other_arguments_stay_as_they_are(tmp_path, monkeypatch, argv):
  monkeypatch.chdir(tmp_path)
  assert config_flag.locate(argv) == argv


def test_sizes_of_operators():
  assert operator_sizes.read_sizes(["sin=3", " pow = 9: 1", "/=:5"]) == {"sin": (3,), "pow": (9, 1), "/": (None, 5)}
  assert operator_sizes.read_sizes(["a=b=2"]) == {"a=b": (2,)}
  for entry in ("sin", "=3", "sin=x"):
    with pytest.raises(InputError, match="expected OPERATOR=SIZE"):
      operator_sizes.read_sizes([entry])
  with pytest.raises(InputError, match="'sin' stands twice"):
    operator_sizes.read_sizes(["sin=3", "sin=4"])


def test_names_of_result_files_are_distinct_and_short():
  assert outputs.paths_of("out/fit.json", ["y"]) == ["out/fit.json"]
  assert outputs.paths_of("fit.jsonl", ["a", "b"]) == ["fit.jsonl"] * 2
  assert outputs.paths_of("fit.json", ["a b", "a/b", "?"]) == ["fit-a_b.json", "fit-a_b_.json", "fit-target.json"]
  [long, other] = outputs.paths_of("fit.json", ["x" * 100, "y"])
  assert long == "fit-" + "x" * 60 + ".json" and other == "fit-y.json"


def test_files_that_are_there_are_replaced_where_that_is_asked_for(tmp_path):
  (tmp_path / "fit-b.json").write_text("")
  path = str(tmp_path / "fit.json")
  with pytest.raises(InputError, match="--out: '.*fit-b.json' exists; --overwrite replaces it"):
    outputs.check_new(path, ["a", "b"], may_replace=False)
  outputs.check_new(path, ["a", "b"], may_replace=True)
  outputs.check_new(path, ["a", "c"], may_replace=False)
  (tmp_path / "fit.json").write_text("")
  outputs.check_new(path, ["b"], may_replace=False)  # looked at before


def test_extras_that_are_missing_are_named(monkeypatch):
  monkeypatch.setitem(extras.MODULES, "odd", ("json", "no_such_module"))
  assert extras.find_missing("odd") == ["no_such_module"]
  with pytest.raises(InputError, match=r"^this needs no_such_module: pip install '.\[odd\]'$"):
    extras.require("odd", who="this")
  monkeypatch.setitem(extras.MODULES, "odd", ("json",))
  extras.require("odd")


# --- configs of the search ---------------------------------------------------------------------------------------


def test_the_config_of_a_search_by_its_file_and_name(tmp_path):
  path = tmp_path / "c.py"
  path.write_text("def get_config(name='guesses'):\n  if name == 'bad':\n    raise SystemExit(3)\n"
                  "  return {'sources': [name]} if name != 'odd' else 5\n")
  assert search_config.load_search_config(str(path)).sources == ("guesses",)
  assert search_config.load_search_config(f"{path}:closed_forms").sources == ("closed_forms",)
  with pytest.raises(InputError, match="expected get_config.. to return a ConfigDict, got int"):
    search_config.load_search_config(f"{path}:odd")
  with pytest.raises(InputError, match=r"search config '.*c.py': SystemExit: 3"):
    search_config.load_search_config(f"{path}:bad")
  path.write_text("def get_config():\n  return {}\n")
  with pytest.raises(InputError, match=r"^search config '.*c.py:b': .*c.py takes no :NAME$"):
    search_config.load_search_config(f"{path}:b")
  path.write_text("def get_config(name):\n  return {}\n")
  with pytest.raises(InputError, match=r"^search config '.*c.py': .*c.py has several configs, expected .*c.py:NAME$"):
    search_config.load_search_config(str(path))
  path.write_text("def get_config():\n  return {'source': []}\n")
  with pytest.raises(InputError, match="unknown key search config.source: did you mean 'sources'"):
    search_config.load_search_config(str(path))
  path.write_text("get_config = 3\n")
  with pytest.raises(InputError, match="expected a function get_config"):
    search_config.load_search_config(str(path))


@pytest.mark.parametrize(("source", "message"), [
  ("class E(Exception):\n  def __str__(self):\n    raise OSError\ndef get_config():\n  raise E", "E$"),
  ("class D(dict):\n  def items(self):\n    raise OSError('no items')\ndef get_config():\n  return D()",
   "OSError: no items$"),
  ("class V:\n  def __repr__(self):\n    raise OSError('no text')\ndef get_config():\n  return {'sources': [], V(): 2}",
   "OSError: no text$"),
])
def test_what_the_values_of_a_config_of_a_search_raise_is_said_as_what_its_file_raises(tmp_path, source, message):
  (tmp_path / "c.py").write_text(source)
  with pytest.raises(InputError, match=f"^search config '.*c.py': {message}"):
    search_config.load_search_config(str(tmp_path / "c.py"))


# --- lines of results --------------------------------------------------------------------------------------------


def line(**changed):
  return json.dumps({"data": "a.csv", "target": "y", "status": "ok", "message": None, "options": {}} | changed)


def checked(text, options=None, defaults=None):
  return result_lines.check_line(text, path="all.jsonl", number=3, options=options or {}, defaults=defaults or {})


def test_what_a_line_tells():
  assert checked(line()) == ("a.csv", "y", "ok", "")
  assert checked(line(target=None, message="m")) == ("a.csv", "", "ok", "m")
  for text in ("[" * 100_000, "1", line(data=1), line(status=None), line(options=3), '{"data": "a"}', "{"):
    with pytest.raises(InputError, match="line 3 of 'all.jsonl' is no result of this command"):
      checked(text)


@pytest.mark.parametrize(("value", "text"), [
  (None, "no --f"), (True, "--f"), (False, "--nof"), (["a", "b"], "--f=a,b"), (3, "--f=3")])
def test_options_of_lines_are_named_as_they_are_given(value, text):
  with pytest.raises(InputError, match=f"holds results of {text}, not --f=other; give another file"):
    checked(line(options={"f": value}), {"f": "other"})
  assert checked(line(options={"f": value}), {"f": value}, {"f": "other"}).status == "ok"
  assert checked(line(), {"f": value}, {"f": value}).status == "ok"


def test_lines_are_added_or_replace_what_is_there(tmp_path):
  path = tmp_path / "all.jsonl"

  def opened(is_new, place=path):
    return result_lines.ResultLines(place, options={}, defaults={}, is_new=is_new)

  path.write_text(line() + "\n" + line(data="b", status="failed") + "\n" + line(data="c"))
  lines = opened(False)
  assert lines.done == {"a.csv", "b"} and lines.targets == {("a.csv", "y"), ("b", "y")} and lines.failed == {"b"}
  assert path.read_text().count("\n") == 2 == len(path.read_text().splitlines())  # the line without an end is gone
  lines.add("d", "{}", target="z")
  assert path.read_text().endswith("\n{}\n") and ("d", "z") in lines.targets and "d" in lines.done
  path.write_text(line() + "\n")
  assert not opened(False).failed
  lines = opened(True)
  assert path.read_text() and not lines.done  # what is replaced stays till then
  lines.add("e", "1")
  lines.add("f", "2")
  assert path.read_text() == "1\n2\n"
  none = opened(False, None)
  none.add("a", "{}")
  assert none.done == {"a"} and none.targets == {("a", "")}


def test_a_line_that_does_not_fit_is_taken_back(tmp_path, monkeypatch):
  path = tmp_path / "all.jsonl"
  lines = result_lines.ResultLines(path, options={}, defaults={}, is_new=True)
  lines.add("a", "{}")

  def write_half(file, data):
    file.write(data[:2])
    raise OSError("disk full")
  monkeypatch.setattr(result_lines, "_write_all", write_half)
  with pytest.raises(OSError, match="disk full"):
    lines.add("b", "{123}")
  assert path.read_text() == "{}\n" and "b" not in lines.done


# --- the listing -------------------------------------------------------------------------------------------------


def equation(text, r2=0.5, mse=4.0, constants=(), **more):
  return Equation(parser.parse(text, ["x", "z"]), ("x", "z"), mse, r2, 0.1, tuple(constants), **more)


def result_of(*pareto, best, **changed):
  values = {"status": "ok", "message": "", "best": best, "pareto": pareto, "counts": Counts(), "seconds": Seconds(
    total=12.34, compile=5.67), "seed": 0, "num_points": 7, "model": "m", "rounds": (Progress(
      0, "", None, "s", False, 1.0),) * 2}
  return SearchResult(**values | changed)


def printed(capsys, result, selected):
  listing.print_result(result, selected, name="t.csv", target="a b")
  return capsys.readouterr().out.splitlines()


SHORT, SIMPLE, BEST = equation("x", 0.5), equation("2.5*x", 0.9999, 0.04), equation("2.5*x+0.1*z**2", 0.99999, 0.01)


def test_a_listing_names_what_is_recommended_simple_and_selected(capsys):
  result = result_of(SHORT, SIMPLE, BEST, best=BEST)
  lines = printed(capsys, result, BEST)
  assert lines[0] == "t.csv: `a b`, 7 points, model m".replace("`a b`", "a b")
  assert lines[1].split() == ["`a", "b`", "=", "complexity", "R2", "RMSE"]
  assert [row.split()[0] for row in lines[2:5]] == ["0", "1", "->"] and "2  2.5*x" in lines[4].replace("->", "")
  simple = listing.choice.simplest_good(result.pareto, BEST)
  assert lines[5] == f"recommended: `a b` = {BEST.expression}"
  assert ("simple: `a b` = " + simple.expression in lines) == (simple is not BEST)
  assert not any(row.startswith(("selected", "constants", "whole", "seen", "template")) for row in lines)
  assert lines[-1] == "no samples of the network; ended after 2 turns; 12.3 s, of which compiling 5.7 s"
  other = printed(capsys, result, SHORT)
  assert other[2].startswith("->") and other[4].rstrip().endswith("recommended") and "selected: `a b` = x" in other


def test_the_line_that_is_as_good_in_a_plot_is_called_simple(capsys, monkeypatch):
  monkeypatch.setattr(listing.choice, "simplest_good", lambda pareto, best: SIMPLE)
  lines = printed(capsys, result_of(SHORT, SIMPLE, BEST, best=BEST), BEST)
  assert [row.rstrip().rpartition(" ")[2] for row in lines[2:5]].count("simple") == 1
  assert lines[3].rstrip().endswith("simple") and "simple: `a b` = 2.5*x" in lines
  assert not lines[4].rstrip().endswith(("simple", "recommended"))
  monkeypatch.setattr(listing.choice, "simplest_good", lambda pareto, best: best)
  lines = printed(capsys, result_of(SHORT, SIMPLE, BEST, best=BEST), SIMPLE)
  assert not any("simple" in row for row in lines) and lines[4].rstrip().endswith("recommended")


def test_columns_of_a_listing_stand_below_their_names(capsys):
  lines = printed(capsys, result_of(SHORT, BEST, best=BEST, weights=np.array([1.0, 3.0]), seen=Seen(
    {"x": (0.0, 12345.678)}, (), 0.01234, loss="relative")), BEST)
  assert lines[0].endswith(", model m, loss relative")
  assert lines[1].split()[-4:] == ["weighted", "R2", "weighted", "RMSE"]
  for name in ("complexity", "weighted R2", "weighted RMSE"):
    end = lines[1].index(name) + len(name)
    assert all(row[end - 1] != " " and row[end : end + 1] in ("", " ") for row in lines[2:4])  # numbers to the right
  begin = lines[1].index("`a b`")
  assert all(row[begin] != " " and row[begin - 1] == " " for row in lines[2:4])
  assert "seen: x 0 to 1.235e+04; noise 1.2 % of its spread" in lines


def test_constants_with_errors_units_and_what_they_are(capsys):
  constants = (Constant(2.5, 0.0123, unit="m"), Constant(6.28, None, "2*pi", "1"))
  selected = equation("2.5*x+6.28*z", constants=constants)
  lines = printed(capsys, result_of(selected, best=selected), selected)
  assert "constants: 2.5 +- 0.01 m, 6.28 (2*pi)" in lines
  loose = equation("2*exp(-0.5*x)", constants=(Constant(-0.5, 12.3),), whole=(Constant(2.0, 0.123),))
  [line] = [line for line in printed(capsys, result_of(loose, best=loose), loose) if line.startswith("constants: ")]
  assert sorted(line[11:].split(", ")) == ["-0.5 +- 10", "2 +- 0.1"]
  noisy = result_of(loose, best=loose, seen=Seen({"x": (0.0, 1.0)}, (), 1.04))
  assert "seen: x 0 to 1; noise 100 % of its spread" in printed(capsys, noisy, loose)
  filled = Filled((("f(x)", "2*x"),), (("k d", Constant(0.7, 0.001)),))
  other = equation("2*x", filled=filled, number_units=("s",))
  lines = printed(capsys, result_of(other, best=other, message="why"), other)
  assert "template: f(x) = 2*x, `k d` = 0.7 +- 0.001" in lines and "whole numbers: 2 s" in lines and "why" in lines


def test_the_log_loss_shows_the_r2_of_logarithms(capsys):
  best = dataclasses.replace(BEST, log_r2=0.8125)
  result = dataclasses.replace(result_of(best, best=best), seen=Seen({"x": (0.0, 1.0)}, (), 1.0, "log"))
  lines = printed(capsys, result, best)
  assert any("R2 of log(y)" in line for line in lines) and any("0.812500" in line for line in lines)
  assert not any("weighted R2" in line for line in lines)


def test_long_formulas_and_many_ranges_are_cut():
  short = listing._cells(equation("x"), 3, "n", "0.500000", is_selected=False, is_shortened=True)
  assert short == ("", "3", "x", "1", "0.500000", "2", "n")
  text = "+".join(["x"] * 40)
  for num, is_cut in ((72, False), (73, True)):
    class Long:
      expression, complexity, r2, rmse = (text * 2)[:num], 1, 1.0, 0.0
    cell = listing._cells(Long, 0, "", "1", is_selected=True, is_shortened=True)
    assert cell[0] == "->" and len(cell[2]) == 72 and cell[2].endswith(" ...") == is_cut
    assert listing._cells(Long, 0, "", "1", is_selected=True, is_shortened=False)[2] == Long.expression
  ranges = {f"x{i}": (0.0, 1.0) for i in range(7)}
  assert listing._range_text(ranges) == [f"x{i} 0 to 1" for i in range(6)] + ["..."]
  ranges.popitem()
  assert listing._range_text(ranges) == [f"x{i} 0 to 1" for i in range(6)]


@pytest.mark.parametrize(("changed", "end"), [
  ({"ended_by": "exact"}, "2 turns, for the data are met exactly; 12.3 s"),
  ({"ended_by": "noise"}, "2 turns, for the rest looks like noise; 12.3 s"), ({"ended_by": "time"}, "2 turns; 12.3 s")])
def test_why_a_search_ended(capsys, changed, end):
  lines = printed(capsys, result_of(SHORT, best=SHORT, counts=Counts(9, 5, 3), **changed), SHORT)
  assert lines[-1].startswith("9 samples, 5 valid, 3 distinct; ended after ") and end in lines[-1]


def test_the_noise_is_said_where_it_is_known(capsys):
  for noise, said in ((None, "seen: x 0 to 1"), (0.0123, "seen: x 0 to 1; noise 1.2 % of its spread")):
    assert said in printed(capsys, result_of(SHORT, best=SHORT, seen=Seen({"x": (0.0, 1.0)}, (), noise)), SHORT)
  long = equation("+".join(["x*z"] * 30))
  lines = printed(capsys, result_of(long, best=long), long)  # not on a terminal: in full below the table alone
  assert any(" ..." in line for line in lines) and f"recommended: `a b` = {long.expression}" in lines


def test_on_a_terminal_formulas_are_whole_and_the_line_taken_is_set_off(capsys, monkeypatch):
  monkeypatch.setenv("COLUMNS", "200")
  monkeypatch.setenv("FORCE_COLOR", "1")
  monkeypatch.setenv("TERM", "xterm")
  header = ("", "", "y =", "complexity", "R2", "RMSE", "")
  long = "x + " * 24 + "x"
  listing._print_rich("title", header, [("->", "0", long, "1", "1", "0", ""), ("", "1", "z", "1", "1", "0", "")])
  lines = capsys.readouterr().out.splitlines()
  assert lines[0].replace("\x1b[3m", "").startswith("title")  # to the left
  taken, other = (next(row for row in lines if text in row) for text in (long, " z "))
  assert "\x1b[1;32m" in taken and "\x1b[1;32m" not in other
  monkeypatch.setenv("COLUMNS", "60")
  listing._print_rich("title", header, [("->", "0", "x" * 99, "1", "1", "0", "")])
  assert capsys.readouterr().out.replace("complexity", "").count("x") == 99  # folded, not cut
  monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
  best = equation("+".join(["x*z"] * 30))
  listing.print_result(result_of(best, best=best), best, name="t", target="y")
  assert "\x1b[" in capsys.readouterr().out


# --- how commands end --------------------------------------------------------------------------------------------


@pytest.fixture
def signals():
  before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
  hooks = sys.excepthook, sys.unraisablehook
  yield
  sys.excepthook, sys.unraisablehook = hooks
  for number, handler in before.items():
    signal.signal(number, handler)


def ended(main, capsys, *argv, **options):
  values = flags.FlagValues()
  flags.DEFINE_float("share", 0.5, "How\n much.", flag_values=values)
  with pytest.raises(SystemExit) as caught:
    runner.run(main, flag_values=values, argv=["command", *argv], **options)
  return caught.value.code, *capsys.readouterr()


def test_arguments_that_are_no_flags_are_taken_where_they_are_wanted(signals, capsys):
  found = []

  def main(argv):
    found.extend(argv)
  assert ended(main, capsys, "a", "--share=1", takes_arguments=True) == (0, "", "")
  assert found == ["command", "a"]
  code, _, said = ended(main, capsys, "a")
  assert code == 2 and said == "error: unexpected argument 'a': expected flags only, see --help\n"


def test_flags_that_must_be_given_and_those_with_nothing():
  values = flags.FlagValues()
  none, empty, one = (flags.DEFINE_string(name, default, "", flag_values=values)
                      for name, default in (("none", None), ("empty", ""), ("one", "x")))
  values(["command"])
  assert runner.required(one) == "x" and runner.required(empty) == ""
  with pytest.raises(InputError, match="^--none is required$"):
    runner.required(none)
  runner.refuse_empty(none, one)
  with pytest.raises(InputError, match="^--empty: expected a value, got nothing$"):
    runner.refuse_empty(none, one, empty)


def test_help_says_the_doc_and_the_flags_in_one_line_each(signals, capsys):
  code, out, _ = ended(lambda argv: 5, capsys, "--help", doc="  What it does.\n")
  assert code == 0 and out == "What it does.\n\nFlags:\n  --share: How much. (default: 0.5)\n"
  assert ended(lambda argv: 5, capsys)[0] == 5


@pytest.mark.parametrize("number", [28, 30, 27, 122, 5])
def test_what_any_write_may_meet_is_one_line(signals, capsys, number):
  def full(argv):
    raise OSError(number, "no room", "out.json")
  code, _, said = ended(full, capsys)
  assert (code, said) == (1, "error: cannot write: no room (out.json)\n")

  def unnamed(argv):
    raise OSError(number, "no room")
  assert ended(unnamed, capsys)[2] == "error: cannot write: no room\n"


@pytest.mark.parametrize(("error", "line"), [
  (PermissionError(13, "Permission denied", "a/b"), "error: Permission denied (a/b)"),
  (OSError(36, "File name too long", "x" * 5), "error: File name too long (xxxxx)"),
  (OSError(24, "Too many open files"), "error: Too many open files"),
  (BlockingIOError(11, "Resource temporarily unavailable"), "error: Resource temporarily unavailable")])
def test_faults_of_the_system_that_name_a_file_or_what_is_scarce_are_one_line(signals, capsys, error, line):
  def fail(argv):
    raise error
  assert ended(fail, capsys)[::2] == (1, line + "\n")


def test_other_faults_of_the_system_keep_their_traceback(signals, capsys):
  def missing(argv):
    raise FileNotFoundError(2, "no such file")
  with pytest.raises(FileNotFoundError):
    runner.run(missing, flag_values=flags.FlagValues(), argv=["command"])


@pytest.mark.parametrize(("error", "message"), [
  (KeyError("'x'"), ""), (ValueError("bad"), ""), (KeyError(), ""),
  (KeyError('No key. Did you mean "samples" instead of "sample"?'),
   "--config.sample: the config has no key 'sample': did you mean 'samples'?"),
  (AttributeError("'sample'"), "--config.sample: the config has no key 'sample'")])
def test_keys_that_a_config_has_not(error, message):
  assert runner._describe_missing_key(error, ["command", "sample", "--config.sample=3"]) == message
  assert runner._describe_missing_key(error, ["command", "config.sample=3", "--sample=3"]) == ""


def test_the_first_signal_is_a_wish_and_the_second_ends(signals):
  stop = runner.StopRequest()
  assert not stop.is_set()
  os.kill(os.getpid(), signal.SIGTERM)
  assert stop.is_set()
  with pytest.raises(KeyboardInterrupt):
    os.kill(os.getpid(), signal.SIGINT)
  other = runner.StopRequest()
  other.set()
  assert other.is_set()


def test_a_process_that_ignores_ctrl_c_goes_on_to_do_so(signals, monkeypatch):
  monkeypatch.setattr(sys, "argv", ["command"])
  signal.signal(signal.SIGINT, signal.SIG_IGN)
  signal.signal(signal.SIGTERM, signal.SIG_DFL)
  startup.prepare("doc", "symformer_jax.commands.infer_flags")
  assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN and signal.getsignal(signal.SIGTERM) is startup._stop
  assert not gc.isenabled()
  startup.end_imports()
  assert gc.isenabled()
  assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
  signal.signal(signal.SIGINT, startup._stop)
  startup.end_imports()
  assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(("argv", "extra", "code"), [
  (["command", "--help"], None, 0), (["command", "--version"], None, 0), (["command", "--help"], "odd", 0),
  (["command"], "odd", 2)])
def test_what_is_settled_before_imports(signals, monkeypatch, capsys, argv, extra, code):
  monkeypatch.setitem(extras.MODULES, "odd", ("no_such_module",))
  monkeypatch.setattr(sys, "argv", argv)
  with pytest.raises(SystemExit) as caught:
    startup.prepare("What it does.", "symformer_jax.commands.infer_flags", extra=extra)
  out, said = capsys.readouterr()
  assert caught.value.code == code
  assert ("--samples: " in out) == ("--help" in argv) == ("What it does." in out)
  assert ("this command needs no_such_module" in said) == (code == 2)
  monkeypatch.setitem(extras.MODULES, "odd", ("json",))
  monkeypatch.setattr(sys, "argv", ["command"])
  startup.prepare("doc", "symformer_jax.commands.infer_flags", extra="odd")
  gc.enable()
  assert sys.unraisablehook is startup._drop_leftovers


@pytest.mark.parametrize("epoch", ["abc", "", "-5", "253402300800", "0" * 20, "9" * 5000])
def test_a_date_that_libraries_cannot_use_is_one_line(signals, monkeypatch, capsys, epoch):
  monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
  monkeypatch.setattr(sys, "argv", ["command", "--data=x"])
  with pytest.raises(SystemExit) as caught:
    startup.prepare("doc", "symformer_jax.commands.infer_flags")
  assert caught.value.code == 2
  [line] = capsys.readouterr().err.splitlines()
  assert line.startswith(f"error: SOURCE_DATE_EPOCH={epoch[:50]}") and "expected seconds since 1970" in line
  for usable in ("253402300799", "0" * 19):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", usable)
    startup.prepare("doc", "symformer_jax.commands.infer_flags")
    gc.enable()


def test_of_a_screen_and_of_its_files_matplotlib_says_nothing(monkeypatch):
  monkeypatch.setenv("MPLBACKEND", "none that there is")
  monkeypatch.setattr(extras, "find_missing", lambda extra: [])
  logger = logging.getLogger("matplotlib")
  monkeypatch.setattr(logger, "level", logging.WARNING)
  extras.require("units")
  assert os.environ["MPLBACKEND"] == "none that there is" and logger.level == logging.WARNING
  extras.require("plot")
  assert os.environ["MPLBACKEND"] == "agg" and logger.level == logging.ERROR


@pytest.mark.parametrize(("asked", "said"), [("cuda", "JAX_PLATFORMS=cuda: "), (None, ""), ("", "")])
def test_a_device_that_is_not_there_is_told_with_what_was_asked_for(signals, monkeypatch, capsys, asked, said):
  if asked is None:
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
  else:
    monkeypatch.setenv("JAX_PLATFORMS", asked)

  def fail(argv):
    raise RuntimeError("Unable to initialize backend 'cuda'")
  assert ended(fail, capsys) == (2, "", f"error: {said}Unable to initialize backend 'cuda'\n")

  def fail_otherwise(argv):
    raise RuntimeError("a fault of the code")
  with pytest.raises(RuntimeError, match="^a fault of the code$"):
    ended(fail_otherwise, capsys)


def test_a_gpu_that_jax_passes_over_without_a_word_is_told_too(signals, monkeypatch, capsys):
  def fail(*argv):
    raise AssertionError
  monkeypatch.setattr(jax, "devices", fail)
  for asked in ("cuda", "rocm"):
    monkeypatch.setenv("JAX_PLATFORMS", asked)
    code, _, said = ended(lambda argv: jax.devices(argv), capsys)
    assert (code, said.count("\n")) == (2, 1)
    assert said.startswith(f"error: JAX_PLATFORMS={asked}: no such device is there")
  monkeypatch.delenv("JAX_PLATFORMS")
  with pytest.raises(AssertionError):  # of the code
    ended(fail, capsys)
  monkeypatch.setenv("JAX_PLATFORMS", "cpu")
  monkeypatch.setattr(jax, "devices", lambda: ["cpu"])
  with pytest.raises(AssertionError):
    ended(fail, capsys)


def test_threads_that_the_system_does_not_give_are_one_line(signals, capsys):
  def fail(argv):
    raise RuntimeError("can't start new thread")
  assert ended(fail, capsys) == (1, "", "error: can't start new thread: too many processes, or not enough memory\n")


def test_libraries_that_find_no_memory_when_they_are_loaded_are_one_line(capfd):
  wrapped = ImportError("Encountered an error while initializing the extension.")
  wrapped.__cause__ = ImportError("libjax_common.so: failed to map segment from shared object")
  for error in (MemoryError(), wrapped.__cause__, wrapped):
    startup._say_what_is_scarce(type(error), error, None)
    assert capfd.readouterr().err == "error: not enough memory\n"
  startup._say_what_is_scarce(ImportError, ImportError("no module"), None)
  assert capfd.readouterr().err == "ImportError: no module\n"


@pytest.mark.parametrize(("name", "said"), [
  ("JAX_DEFAULT_MATMUL_PRECISION", 'Invalid value "zork" for JAX flag jax_default_matmul_precision'),
  ("JAX_ENABLE_X64", "invalid truth value 'zork' for environment 'JAX_ENABLE_X64'")])
def test_a_variable_that_jax_cannot_read_is_one_line(name, said):
  environment = os.environ | {name: "zork", "OTHER": "zork"}
  asked = subprocess.run([sys.executable, "-m", "symformer_jax.infer", "--data=a.csv"], env=environment,
                         capture_output=True, text=True, check=False)
  assert (asked.returncode, asked.stdout, asked.stderr) == (2, "", f"error: {name}=zork: {said}\n")


def test_errors_of_others_about_values_keep_their_traceback(monkeypatch):
  monkeypatch.setenv("JAX_ANY", "zork")
  try:
    raise ValueError("'zork'")
  except ValueError as error:
    assert startup._describe_variable(error) == ""
  assert startup._describe_variable(ValueError("'zork'")) == ""


def test_of_checkpoints_that_failed_threads_say_nothing_more(monkeypatch):
  said = []
  monkeypatch.setattr(sys, "__unraisablehook__", said.append)
  closed, other = RuntimeError("Event loop is closed"), RuntimeError("other")
  for dropped in (types.SimpleNamespace(object=None, exc_value=closed),
                  types.SimpleNamespace(object=asyncio.BaseEventLoop.__del__, exc_value=AttributeError("_ssock"))):
    startup._drop_leftovers(dropped)
  assert not said
  kept = [types.SimpleNamespace(object=None, exc_value=other), types.SimpleNamespace(object=len, exc_value=other)]
  for fault in kept:
    startup._drop_leftovers(fault)
  assert said == kept


@pytest.mark.parametrize(("error", "said"), [
  (OSError(errno.ENOSPC, "No room"), "cannot write: No room"), (OSError(errno.EIO, "No disk", "f"),
    "cannot write: No disk (f)"),
  (OSError(errno.EMFILE, "Too many"), "Too many"), (OSError(errno.EACCES, "Not yours", "f"), "Not yours (f)")])
def test_what_a_machine_refuses_is_a_line_and_faults_of_the_code_are_none(signals, capsys, error, said):
  def fail(argv):
    raise error
  assert ended(fail, capsys) == (1, "", f"error: {said}\n")

  def fail_without_a_file(argv):
    raise OSError(errno.EACCES, "Not yours")
  with pytest.raises(PermissionError, match="Not yours"):
    ended(fail_without_a_file, capsys)


def test_signs_that_have_no_place_in_an_encoding_are_escaped(monkeypatch):
  written = io.BytesIO()
  monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
  runner._print_any_sign()
  print("caf\u00e9", flush=True)
  assert written.getvalue() == b"caf\\xe9\n"
  monkeypatch.setattr(sys, "stdout", io.StringIO())
  runner._print_any_sign()  # of what is no file nothing is changed


def test_scripts_run_their_modules_as_programs(monkeypatch):
  asked = []
  monkeypatch.setattr(sys, "path", [*sys.path])
  monkeypatch.setattr(scripts.runpy, "run_module", lambda module, **options: asked.append((module, options)))
  scripts.infer()
  scripts.beam()
  as_programs = {"run_name": "__main__", "alter_sys": True}  # for `sys.argv[0]` and for what is pickled
  assert asked == [("symformer_jax.infer", as_programs), ("data_gen.beam", as_programs)]
