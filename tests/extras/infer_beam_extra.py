"""Many files on Beam: the lines of a batch of one machine, and what fails costs one file."""

import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from symformer_jax import infer_beam, infer_worker
from symformer_jax.commands import infer_flags as asked
from symformer_jax.errors import InputError

ROOT = pathlib.Path(__file__).parents[2]
FLAGS = ["--effort=quick", "--samples=64", "--accuracy=0.9999", "--quiet"]
LAWS = {"a": lambda x: 3 * x**1.5, "b": None, "c": lambda x: 2 * x + 1, "d": lambda x: 5 / x, "e": None}


@pytest.fixture
def folder(tmp_path):
  """Five tables, of which one is too short and one is none."""
  for name, law in LAWS.items():
    rows = [(x / 2, law(x / 2)) for x in range(1, 16)] if law else [(1, 2)] if name == "b" else [("one", "two")]
    (tmp_path / f"{name}.csv").write_text("u,v\n" + "".join(f"{x},{y}\n" for x, y in rows))
  return tmp_path


@pytest.fixture(autouse=True)
def flags():
  """Flags as none were given, in the process of the tests as well."""
  asked.FLAGS.mark_as_parsed()
  yield
  for name in asked.FLAGS:
    asked.FLAGS[name].unparse()
  asked.FLAGS.unparse_flags()


def run(folder, *flags):
  command = [sys.executable, "-m", "symformer_jax.infer", f"--data={folder}/*.csv", *FLAGS, *flags]
  return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def without_times(path):
  """The bytes of each line without the seconds that parts of a search took, the only thing in which runs differ."""
  lines = []
  for line in path.read_bytes().splitlines():
    record = json.loads(line)
    record["seconds"] = None
    for turn in record["rounds"]:
      turn |= {name: None for name in turn if "seconds" in name}
    lines.append(json.dumps(record).encode())
  return lines


def test_the_direct_runner_gives_the_lines_of_a_batch_and_goes_on_with_what_is_there(folder):
  local = run(folder, f"--out={folder}/local.jsonl")
  assert local.returncode == 1, local.stderr
  out = folder / "beam"
  found = run(folder, f"--out={out}", "--beam", "--bundle=2", "--", "--runner=DirectRunner")
  assert found.returncode == 1, found.stderr
  assert [path.name for path in out.iterdir()] == ["results.jsonl"]
  wanted = without_times(folder / "local.jsonl")
  assert without_times(out / "results.jsonl") == wanted
  assert [json.loads(line)["status"] for line in wanted] == ["ok", "failed", "ok", "ok", "failed"]
  assert found.stderr.count("failed: ") == 2
  refused = run(folder, f"--out={out}", "--beam")
  assert refused.returncode == 2 and "has results; --resume goes on with them, --overwrite begins" in refused.stderr

  # As an interrupted run leaves it: a bundle is there, with a mark by which its use can be seen; the others are not.
  lines = (out / "results.jsonl").read_text().splitlines(keepends=True)
  (out / "results.jsonl").unlink()
  (out / "parts").mkdir()
  (out / "parts" / "left.jsonl").write_text("".join(lines[:3]).replace('"message": "', '"message": "from before: '))
  assert run(folder, f"--out={out}", "--beam", "--resume").returncode == 1
  again = [json.loads(line) for line in without_times(out / "results.jsonl")]
  assert [record["message"].startswith("from before") for record in again] == [True, True, True, False, False]
  assert again[3:] == [json.loads(line) for line in wanted[3:]]


def die_on_bad(paths, is_single):
  """In place of a search: what is no Python error, and one that nobody foresaw."""
  for name, _ in paths:
    if "deadly" in name:
      os.kill(os.getpid(), signal.SIGKILL)
    if "faulty" in name:
      raise ZeroDivisionError("of its own")
  return [json.dumps({"data": name, "alone": len(paths) == 1}) for name, _ in paths]


def test_what_kills_a_search_costs_one_file(tmp_path, monkeypatch):
  monkeypatch.setattr(infer_worker, "answer_files", die_on_bad)
  (tmp_path / "parts").mkdir()
  search = infer_beam._SearchBundle({"seed": 7}, is_single=False, here="/nowhere", folder=str(tmp_path))
  [place] = search.process(["a.csv", "deadly.csv", "b.csv", "faulty.csv"])
  [whole] = search.process(["c.csv", "d.csv"])
  search.teardown()
  first, dead, last, faulty = map(json.loads, pathlib.Path(place).read_text().splitlines())
  assert (first["data"], last["data"]) == ("a.csv", "b.csv") and first["alone"]
  assert (dead["data"], dead["status"], dead["seed"]) == ("deadly.csv", "failed", 7) and "died" in dead["message"]
  assert faulty["message"] == "ZeroDivisionError: of its own" and faulty["options"]["seed"] == 7
  assert not any(json.loads(line)["alone"] for line in pathlib.Path(whole).read_text().splitlines())


def test_files_of_an_object_store_are_copied_and_named_as_they_are_called(folder, monkeypatch):
  monkeypatch.setattr(infer_beam, "_REMOTE", "/")  # as if the disk were one
  paths = infer_beam.find_files([f"{folder}/[be].csv", f"{folder}/b.csv"])
  assert paths == [f"{folder}/b.csv", f"{folder}/e.csv"]
  with pytest.raises(InputError, match="no file matches"):
    infer_beam.find_files([f"{folder}/*.none"])
  (folder / "parts").mkdir()
  search = infer_beam._SearchBundle({}, is_single=False, here=str(folder), folder=str(folder))
  [place] = search.process(paths)
  search.teardown()
  records = [json.loads(line) for line in pathlib.Path(place).read_text().splitlines()]
  assert [record["data"] for record in records] == paths
  assert all(path in record["message"] for record, path in zip(records, paths, strict=True))


def test_flags_that_make_no_sense_are_refused_in_one_line(folder):
  (folder / "results.jsonl").write_text("mine")
  for given, message in (([f"--out={folder}/x.jsonl"], "expected a folder"), ([], "expected a folder"),
                         ([f"--out={folder}/x", f"--report={folder}/r.html"], "--report: shows one data file"),
                         ([f"--out={folder}"], "has results; --resume goes on with them, --overwrite begins")):
    done = run(folder, "--beam", *given)
    assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1
