"""The commands that judge, export and describe models: what is asked, written and said, with what they call stood in
for.
"""

import dataclasses
import hashlib
import json
import pathlib
import sys
import types

from absl.testing import flagsaver
from launch_calls import call
import pytest

from data_gen import seen as seen_lib
from launch import card, evaluate, export
from symformer_jax.commands import runner
from symformer_jax.errors import DataError, InputError, ModelError
from symformer_jax.evaluation import peers, real_runs, runs, suites


def row(name="n", **changed):
  return runs.Row("f", name, 1, 0, "x", **{"predicted": "x", "r2": 0.98765432, "seconds": 1.0, **changed})


# --- evaluate ----------------------------------------------------------------------------------------------------


@pytest.fixture
def judge(monkeypatch, tmp_path):
  """launch.evaluate of tasks that are answered at once; what was asked."""
  asked = {"rows": [row()], "missing": {}, "is_complete": True}
  if not evaluate.asked.FLAGS.is_parsed():
    evaluate.asked.FLAGS(["evaluate"])
  monkeypatch.setattr(evaluate.compilation, "use_cache", lambda: None)
  monkeypatch.setattr(evaluate.runner, "StopRequest", lambda: types.SimpleNamespace(is_set=lambda: False))
  monkeypatch.setattr(evaluate.peers_lib, "open_peers", lambda names, **given: asked.update(
    peers=(names, given)) or types.SimpleNamespace(missing=asked["missing"], versions={"operon": "1"}, predictions={}))

  def make_tasks(suite, settings):
    asked.update(suite=suite, settings=settings)
    return ["a", "b", "c"]
  monkeypatch.setattr(evaluate.suites, "make_tasks", make_tasks)
  monkeypatch.setattr(evaluate.models_lib, "open_models", lambda name: types.SimpleNamespace(
    split=lambda tasks: (tasks[:2], {"v": "no model"}), used_by=lambda tasks: []))
  monkeypatch.setattr(evaluate.runs, "ResultsFile", lambda path: types.SimpleNamespace(
    rows=asked["rows"], path=path))

  def run(tasks, sources, results, *, on_row, should_stop):
    asked.update(tasks=tasks, results=results.path, on_row=on_row, should_stop=should_stop, sources=sources)
    return asked["is_complete"]
  monkeypatch.setattr(evaluate.runs, "run", run)
  monkeypatch.setattr(evaluate, "_write_report", lambda folder, suite, settings, rows, tasks, missing: asked.update(
    report=(folder, suite, rows, tasks, missing)))

  def main(**changed):
    with flagsaver.flagsaver(**{"suite": "laws", "out": str(tmp_path / "o"), **changed}):
      return evaluate.main([])
  return main, asked


def test_every_flag_reaches_the_questions(judge, tmp_path):
  main, asked = judge
  given = {"list": "laws", "data": "d", "variables": 2, "num_equations": 3, "skip": 4, "top_k": 5, "refine": "gd",
           "max_time": 6.0, "recombine": True, "search_config": "s", "noise": 7.0, "seeds": 8, "max_abs_value": 9.0}
  assert main(samples=10, baseline=["operon"], predictions="p", baseline_python="py", **given) == runner.DONE
  assert vars(asked["settings"]) == {**given, "num_samples": 10, "baseline": ("operon",), "predictions": "p",
                                     "problems": None}
  assert asked["peers"] == (("operon",), {"python": "py", "predictions": "p"})
  assert asked["suite"] is suites.SUITES["laws"] and asked["tasks"] == ["a", "b"]
  assert asked["results"] == tmp_path / "o" / "results.csv" and not asked["should_stop"]()
  assert asked["report"] == (tmp_path / "o", suites.SUITES["laws"], asked["rows"], ["a", "b"], {"v": "no model"})
  assert (asked["on_row"].total, asked["on_row"].done) == (2, 1)
  written = json.loads((tmp_path / "o" / "settings.json").read_text())
  assert written == {"suite": "laws", "model": "auto", **vars(asked["settings"]), "baseline": ["operon"]}
  assert (tmp_path / "o" / "settings.json").read_text().startswith('{\n "suite": "laws",\n')


def test_problems_of_a_file_are_a_suite_of_their_own(judge):
  main, asked = judge
  assert main(suite=None, problems="p.csv") == runner.DONE
  assert asked["suite"] is suites.PROBLEMS_SUITE and asked["settings"].problems == "p.csv"


def test_exit_codes_say_what_is_without_an_answer(judge):
  main, asked = judge
  assert main() == runner.DONE
  asked["missing"] = {"gplearn": "not installed"}
  assert main() == runner.SOME_FAILED and asked["report"][-1] == {"v": "no model", "gplearn": "not installed"}
  asked["missing"], asked["rows"] = {}, [row(), row(predicted=None)]
  assert main() == runner.SOME_FAILED
  asked["is_complete"] = False
  assert main() == runner.STOPPED


def test_peers_have_one_time_limit_for_everybody(capsys):
  found = peers.Peers({"operon": "1"}, {"gplearn": "why"}, "py", {})
  settings = suites.Settings(baseline=("operon", "gplearn"))
  assert evaluate._with_peers(settings, found) == dataclasses.replace(
    settings, baseline=("operon",), max_time=peers.MAX_TIME_S)
  assert capsys.readouterr().err == "note: --baseline=gplearn: why\n"
  own = dataclasses.replace(settings, max_time=3.0)
  assert evaluate._with_peers(own, found).max_time == 3.0
  assert evaluate._with_peers(suites.Settings(), found) == suites.Settings()


def test_progress_is_a_line_of_each_row(capsys):
  progress = evaluate._Progress(7, 2)
  progress(row(variant="v"))
  progress(row(predicted=None, message="why"))
  progress(row(r2=None))
  progress(row("n" * 300))
  lines = capsys.readouterr().err.splitlines()
  assert lines[:3] == ["[3/7] v n: R2 0.987654  x", "[4/7] n: why  ", "[5/7] n: R2 none  x"]
  assert len(lines[3]) == 160


def test_settings_of_a_folder_are_compared_as_they_were_written(tmp_path):
  out = str(tmp_path / "o")
  assert evaluate._open_folder(out, {"a": (1, 2), "b": None}) == pathlib.Path(out)
  assert evaluate._open_folder(out, {"a": (1, 2), "b": None}) == pathlib.Path(out)
  with pytest.raises(InputError, match=r"holds results of --a=\[1, 2\], not \[1, 3\]; give another folder"):
    evaluate._open_folder(out, {"a": (1, 3), "b": 2})


def test_what_was_seen_is_read_once_of_each_model(monkeypatch):
  read, collected = [], []

  def seen(truth, num):
    return truth, num
  monkeypatch.setattr(seen_lib, "read", lambda folder, card: read.append((folder, card)) or seen)
  monkeypatch.setattr(seen_lib, "collect", lambda folders: collected.append(folders) or seen)
  problem = types.SimpleNamespace(truth="t", num_variables=2)
  model = types.SimpleNamespace(folder="f", card={"c": 1})
  was_seen = evaluate._was_seen([], [model, types.SimpleNamespace(folder=None)])
  assert read == [("f", {"c": 1})]  # before a problem is asked
  assert [was_seen(problem, model) for _ in range(2)] == [("t", 2)] * 2 and len(read) == 1
  assert was_seen(problem, types.SimpleNamespace(folder=None)) is None and not collected
  assert evaluate._was_seen(["d"], [model])(problem, model) == ("t", 2) and collected == [["d"]] and len(read) == 1


def test_a_report_has_its_summary_and_figures(monkeypatch, tmp_path):
  drawn = {}
  monkeypatch.setattr(evaluate, "_provenance", lambda settings, rows: {"seeds": settings["seeds"], "of": len(rows)})
  monkeypatch.setattr(evaluate.plots, "draw_all", lambda folder, rows, problems, summary: drawn.update(
    problems=problems, summary=summary) or {"caption": "f.png"})
  task = types.SimpleNamespace(key=("", "n", "0"), problem="p")
  evaluate._write_report(tmp_path, suites.SUITES["laws"], suites.Settings(seeds=3), [row()], [task], {"v": "why"})
  text = (tmp_path / "summary.json").read_text()
  assert json.loads(text) == json.loads(json.dumps(drawn["summary"]))
  assert text.startswith('{\n "') and text.endswith("}\n")
  assert (drawn["summary"]["seeds"], drawn["summary"]["of"], drawn["summary"]["missing"]) == (3, 1, {"v": "why"})
  assert drawn["problems"] == {("", "n", "0"): "p"}
  report = (tmp_path / "report.md").read_text()
  assert report.startswith(f"# {suites.SUITES['laws'].title}") and "![caption](f.png)" in report


def test_a_summary_tells_where_it_comes_from(monkeypatch):
  asked = []
  monkeypatch.setattr(evaluate.sys, "argv", ["evaluate.py", "--suite=laws", "--out=a b"])
  monkeypatch.setattr(evaluate.os, "sched_getaffinity", lambda pid: asked.append(pid) or {0, 1, 2})
  monkeypatch.setattr(evaluate.subprocess, "run", lambda command, **given: asked.append((command, given)) or (
    types.SimpleNamespace(stdout="abc\n" if len(asked) < 3 else "")))
  rows = [row(model="b"), row(model="a"), row(model="b"), row(model="")]
  found = evaluate._provenance({"seeds": 1}, rows)
  assert found["command"] == "python -m launch.evaluate --suite=laws '--out=a b'" and found["commit"] == "abc"
  assert found["models"] == "a, b" and found["settings"] == {"seeds": 1}
  assert found["hardware"] == "cpu, cpu, 3 CPU cores"
  assert found["versions"].startswith(f"Python {'.'.join(map(str, sys.version_info[:3]))}, jax ")
  assert asked[0] == (["git", "-C", str(pathlib.Path(evaluate.__file__).parent), "rev-parse", "--short", "HEAD"],
                      {"capture_output": True, "text": True, "check": False}) and asked[1] == 0
  assert evaluate._commit() == "unknown"


@pytest.fixture
def real(judge, monkeypatch):
  main, asked = judge
  sets = [types.SimpleNamespace(name=name, is_set_aside=name in "bd") for name in "abcd"]
  monkeypatch.setattr(evaluate.real_data, "load_table", lambda: sets)
  monkeypatch.setattr(evaluate.drawn_tables, "load_drawn", lambda: sets[1:])
  answers_ = [real_runs.RealRow("a", "table", False, "recommended", r2=0.5, n_vars=1, rows=9, complexity=3,
                                predicted="x"),
              real_runs.RealRow("b", "table", True, "recommended", r2=0.25, n_vars=1, rows=9, complexity=3,
                                predicted="x")]

  def run(sets, path, **given):
    asked.update(sets=[each.name for each in sets], path=path, **given)
    return asked.get("answers", answers_), asked["is_complete"]
  monkeypatch.setattr(evaluate.real_runs, "run", run)
  monkeypatch.setattr(evaluate, "_provenance", lambda settings, rows: {"config": settings["config"], "of": len(rows)})
  return lambda **changed: main(**{"suite": "real", **changed}), asked, answers_


@pytest.mark.parametrize(("which", "names"), [
  ("all", "abcd"), ("open", "ac"), ("aside", "bd"), ("drawn_open", "c"), ("drawn_aside", "bd")])
def test_real_sets_are_chosen_by_what_may_be_looked_at(real, tmp_path, which, names):
  main, asked, _ = real
  assert main(sets=which, out=str(tmp_path / which)) == runner.DONE and asked["sets"] == list(names)


def test_real_sets_are_searched_as_the_flags_say(real, tmp_path, capsys):
  main, asked, answers_ = real
  assert main(skip=1, num_equations=2, samples=5, top_k=6, refine="gd", max_time=7.0, recombine=False,
              model="m") == runner.DONE
  method = asked["method"]
  assert asked["sets"] == ["b", "c"] and asked["model"] == "m" and not asked["should_stop"]()
  assert (method.num_samples, method.top_k, method.refine) == (5, 6, "gd")
  assert method.max_time == 7.0 and not method.recombine
  summary_text = (tmp_path / "o" / "summary.json").read_text()
  summary = json.loads(summary_text)
  assert summary["open"]["recommended"]["mean_r2"] == 0.5 and summary["aside"]["recommended"]["mean_r2"] == 0.25
  assert (summary["config"], summary["of"]) == (None, 0) and summary_text.startswith('{\n "config"')
  assert "- config: None" in (tmp_path / "o" / "report.md").read_text()
  settings = json.loads((tmp_path / "o" / "settings.json").read_text())
  assert {name: settings[name] for name in ("suite", "model", "sets", "num_equations", "skip", "num_samples")} == {
    "suite": "real", "model": "m", "sets": "all", "num_equations": 2, "skip": 1, "num_samples": 5}
  asked["answers"] = [*answers_, dataclasses.replace(answers_[0], message="why")]
  assert main(out=str(tmp_path / "p")) == runner.SOME_FAILED
  asked["is_complete"] = False
  assert main(out=str(tmp_path / "q")) == runner.STOPPED
  for name, value in (("problems", "p"), ("list", "laws"), ("data", "d"), ("noise", 0.0), ("predictions", "p"),
                      ("max_abs_value", 1.0)):
    with pytest.raises(InputError, match=f"--{name}: not with --suite=real"):
      main(**{name: value})
  capsys.readouterr()
  for each in (answers_[0], dataclasses.replace(answers_[0], r2=None, faults="f"), asked["answers"][2],
               dataclasses.replace(answers_[0], predicted="x" * 200)):
    evaluate._print_real(each)
  lines = capsys.readouterr().err.splitlines()
  assert lines[:3] == ["a, recommended: R2 0.5000  x  ", "a, recommended: R2 none  x  f", "a, recommended: why"]
  assert len(lines[3]) == 160


# --- export ------------------------------------------------------------------------------------------------------


@pytest.fixture
def exporting(monkeypatch, tmp_path):
  """launch.export of a checkpoint that is made by hand; what was saved."""
  saved = {}
  config = types.SimpleNamespace(
    init_from="", model=types.SimpleNamespace(vocabulary=types.SimpleNamespace(num_variables=1)),
    data=types.SimpleNamespace(dirs=("/x/d1", "/x/d2"), batch_size=72))
  (tmp_path / "run" / "checkpoints").mkdir(parents=True)
  for step in ("100", "200", "x"):
    (tmp_path / "run" / "checkpoints" / step).mkdir()
  lines = [{"kind": "train", "step": 50, "examples_per_s": 1.0}, {"kind": "train", "step": 60, "examples_per_s": 0.0},
           {"kind": "validation", "step": 50, "cross_entropy": 3.0, "loss": 4.0},
           {"kind": "validation", "step": 200, "cross_entropy": 2.0, "token_accuracy": 0.5},
           {"kind": "train", "step": 200, "examples_per_s": 2.0}, {"kind": "validation", "step": 201}]
  (tmp_path / "run" / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
  monkeypatch.setattr(export.checkpoint, "read", lambda workdir, step: (
    types.SimpleNamespace(params=f"params of {step}"), {"config": {}}))
  monkeypatch.setattr(export.checkpoint, "best_step", lambda workdir: saved.get("best"))
  monkeypatch.setattr(export.configuration, "build", lambda kind, values: config)
  monkeypatch.setattr(export.configuration, "to_dict", lambda config: {
    "data": {"dirs": list(config.data.dirs)}, "init_from": config.init_from})
  monkeypatch.setattr(export.registry, "save_model", lambda out, **given: saved.update(out=out, **given))
  monkeypatch.setattr(export, "_describe_data", lambda folders: list(folders))
  monkeypatch.setattr(export, "_write_seen", lambda out, folders, parent, num: (list(folders), parent, num))
  return (lambda **given: call(export, **{"workdir": tmp_path / "run", "name": "n", "out": tmp_path / "m", **given}),
          saved, config)


def test_the_card_of_an_exported_model(exporting, tmp_path, capsys, monkeypatch):
  main, saved, config = exporting
  assert main() == runner.DONE
  assert (saved["out"].parent, saved["name"], saved["params"]) == (tmp_path / "m", "n", "params of 200")
  assert not saved["out"].exists()  # a folder from which the files are moved together
  card_ = saved["card"]
  hours = (50 * 72 / 1.0 + 150 * 72 / 2.0) / 3600
  assert card_ == {"training": {
    "steps": 200, "examples": 14400, "config": {"data": {"dirs": ["d1", "d2"]}, "init_from": ""},
    "started_from": None, "examples_in_all": 14400, "hours": round(hours, 2), "data": ["/x/d1", "/x/d2"],
    "validation": {"kind": "validation", "step": 200, "cross_entropy": 2.0, "token_accuracy": 0.5},
    "curve": [{"step": 50, "cross_entropy": 3.0}, {"step": 200, "cross_entropy": 2.0, "token_accuracy": 0.5}]},
    "seen": (["/x/d1", "/x/d2"], None, 1)}
  assert capsys.readouterr().out == f"{tmp_path / 'm'}: n after 200 steps\n"
  saved["best"] = 100
  config.init_from = "/y/parent"
  parent = types.SimpleNamespace(folder="f", card={"name": "p", "weights_sha256": "s", "training": {"examples": 100}})
  monkeypatch.setattr(export.registry, "load_model", lambda name: parent)
  looked_for = []
  monkeypatch.setattr(export.writer, "find_folders", looked_for.append)
  assert main(which="best", seen="s1,s2", by_name_only=True) == runner.DONE
  training = saved["card"]["training"]
  assert (training["steps"], training["examples_in_all"], training["validation"]["step"]) == (100, 7300, 50)
  assert training["started_from"] == {"name": "p", "weights_sha256": "s", "examples_in_all": 100, "started_from": None}
  assert looked_for == ["s1", "s2"]
  assert training["data"] == ["s1", "s2"] and saved["card"]["seen"] == (["s1", "s2"], parent, 1)
  assert saved["card"]["by_name_only"] is True and training["config"]["init_from"] == "parent"
  parent.card["training"] |= {"examples_in_all": 900, "started_from": {"name": "q"}}
  assert export._describe_ancestor(parent)["examples_in_all"] == 900
  assert export._describe_ancestor(parent)["started_from"] == {"name": "q"}
  for training in (None, [], {"steps": 3}):
    parent.card["training"] = training
    with pytest.raises(ModelError, match="says nothing of training"):
      export._describe_ancestor(parent)
  saved["best"] = None
  with pytest.raises(ModelError, match="was validated: use --which=newest"):
    main(which="best")
  (tmp_path / "run" / "metrics.jsonl").write_text("")
  config.init_from = ""
  assert main() == runner.DONE and saved["card"]["training"]["validation"] is None
  assert saved["card"]["training"]["hours"] == 0


def test_generated_folders_are_described_by_their_manifests(monkeypatch, tmp_path):
  shard = {"split": "train", "finished": True, "equations": 5}
  manifest = {"identity": {"config": {"name": "n", "simplify": "rules"}, "seed": 3, "excluded_problems": [1, 2]},
              "shards": [shard, shard, {**shard, "finished": False}, {**shard, "split": "validation", "equations": 2}],
              "counts": {f"{export.EXCLUDED}a": 4, f"{export.EXCLUDED}b": 6, "kept": 100}}
  monkeypatch.setattr(export.writer, "read_checked", lambda folder: (manifest, None))
  monkeypatch.setattr(export.writer, "find_folders", lambda root: [tmp_path])
  (tmp_path / export.writer.MANIFEST).write_bytes(b"text")
  [found] = export._describe_data(["d"])
  assert found == {"name": "n", "simplify": "rules", "seed": 3, "problems_kept_out": 2, "dropped_for_them": 10,
                   "equations": {"train": 10, "validation": 2}, "manifest_sha256": hashlib.sha256(b"text").hexdigest()}

  def fail(root):
    raise DataError("gone")
  monkeypatch.setattr(export.writer, "find_folders", fail)
  assert export._describe_data(["d"]) is None


def test_hashes_of_a_parent_are_added_once(monkeypatch, tmp_path, capsys):
  def part(*texts):
    return types.SimpleNamespace(filters=tuple(
      types.SimpleNamespace(to_bytes=lambda text=text: text) for text in texts))
  own, same, other = part(b"a", b"b"), part(b"a", b"b"), part(b"a", b"c")
  written, before = [], [types.SimpleNamespace(parts=(same, other))]
  monkeypatch.setattr(export.seen, "collect", lambda folders: types.SimpleNamespace(parts=(own,)))
  monkeypatch.setattr(export.seen, "read", lambda folder, card: before[0])
  monkeypatch.setattr(export.seen, "write", lambda out, seen: written.append(seen.parts) or (
    None if len(written) == 3 else ["said"]))
  parent = types.SimpleNamespace(folder="f", card={"name": "p"})
  assert export._write_seen(tmp_path, ["d"], None, 4) == ["said"] and written == [(own,)]
  assert export._write_seen(tmp_path, ["d"], parent, 1) == ["said"] and written[1] == (own, other)
  assert capsys.readouterr().err == ""
  assert export._write_seen(tmp_path, ["d"], types.SimpleNamespace(folder=None), 1) is None and written[2] == (own,)
  assert capsys.readouterr().err == (
    f"note: hashes of the training data are larger than {seen_lib.MAX_SHIPPED_BYTES} bytes and stay out; "
    "launch.evaluate --seen=DIR reads them from the data\n")
  before[0] = None
  assert export._write_seen(tmp_path, ["d"], parent, 1) is None
  assert capsys.readouterr() == (
    "", "note: without hashes of the training data: the model it started from, p, has none\n")
  assert export._write_seen(tmp_path, ["d"], None, 5) is None and len(written) == 3
  printed = capsys.readouterr()
  assert printed.out == "" and "a formula of 5 variables has too many orders" in printed.err


# --- card --------------------------------------------------------------------------------------------------------


def test_a_card_keeps_what_is_not_given(monkeypatch, tmp_path):
  model = types.SimpleNamespace(folder=tmp_path, card={"name": "n", "training": {"steps": 3}, "results": 1})
  monkeypatch.setattr(card.registry, "load_model", lambda name: model)
  (tmp_path / card.registry.CARD).write_text(json.dumps(model.card))
  assert call(card, model="m") == runner.DONE
  text = (tmp_path / card.registry.CARD).read_text()
  assert json.loads(text) == model.card and text.startswith('{\n "name"') and text.endswith("}\n")
  assert call(card, model="m", hardware="h", weakness="w") == runner.DONE
  assert json.loads((tmp_path / card.registry.CARD).read_text()) == {
    "name": "n", "training": {"steps": 3, "hardware": "h"}, "results": 1, "weaknesses": ["w"]}
  (tmp_path / card.registry.CARD).write_text(json.dumps(model.card | {"training": None}))
  with pytest.raises(ModelError, match="says nothing of training: export the model again"):
    call(card, model="m", hardware="h")

  def fail(*_):
    raise PermissionError(13, "Permission denied")
  monkeypatch.setattr(card, "write_text", fail)
  with pytest.raises(InputError, match="cannot write .*card.json: Permission denied"):
    call(card, model="m")


def test_a_card_tells_of_every_suite(tmp_path):
  figures = dict.fromkeys(card._FIGURES, 1.5)
  for name in ("b", "a"):
    (tmp_path / name).mkdir()
    (tmp_path / name / "summary.json").write_text(json.dumps(
      {**dict.fromkeys(card._RUN, name), "settings": 3, "variants": {"": {**figures, "more": 2}, "v": figures}}))
  found = card._read_results(tmp_path)
  assert list(found) == ["a", "b"]
  assert found["a"] == {**dict.fromkeys(card._RUN, "a"), "variants": {"all": figures, "v": figures}}
