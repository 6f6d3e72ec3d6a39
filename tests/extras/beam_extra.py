"""Beam writes what the pool of processes writes, byte for byte, also when it continues an interrupted run."""

import json
import subprocess
import sys

from small_runs import FLAGS, ROOT, InProcess, contents, make, small_job

from data_gen import beam


def run(*flags: str) -> subprocess.CompletedProcess:
  command = [sys.executable, "-m", "data_gen.beam", *flags]
  return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_direct_runner_writes_the_same_bytes_and_uses_what_is_there(tmp_path):
  expected = make(small_job(tmp_path / "expected"))
  job = small_job(tmp_path / "beam")
  # Left by an interrupted run: the first span, with an outcome of no candidate, so that its use can be seen.
  _, generator = job.prepare()
  outcomes = InProcess(generator).outcomes(0)
  first = [beam.encode(next(outcomes)[1]) for _ in range(beam.SPAN_CANDIDATES)]
  assert [beam.encode(beam.decode(value)) for value in first] == first
  at = first.index("no_finite_box")
  first[at] = "from_before"
  spans = tmp_path / "spans"
  spans.mkdir()
  (spans / f"{0:015d}.json").write_text(json.dumps(first))
  done = run(f"--out={tmp_path}/beam", "--runner=DirectRunner", f"--spans={spans}", *FLAGS)
  assert done.returncode == 0, done.stderr
  got, wanted = contents(job.folder), contents(expected)
  assert got.keys() == wanted.keys() and not spans.exists()
  assert all(got[name] == wanted[name] for name in wanted if name != "manifest.json")
  assert json.loads(got["manifest.json"])["counts"]["from_before"] == 1


def test_spans_are_made_by_the_runner(tmp_path):
  expected = make(small_job(tmp_path / "expected", num_train=600))
  done = run(f"--out={tmp_path}/beam", "--runner=DirectRunner", *FLAGS, "--equations=600")
  assert done.returncode == 0, done.stderr
  assert contents(tmp_path / "beam") == contents(expected)


def test_a_missing_flag_is_told_in_one_line():
  done = run("--runner=DirectRunner")
  assert done.returncode == 2 and done.stderr.endswith("error: --config is required\n")
