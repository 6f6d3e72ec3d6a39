"""The command: same bytes with any number of workers and after kill -9, refusals, damage, exit codes."""

import collections
import json
import os
from pathlib import Path
import shutil
import signal
import subprocess
import sys
import time
import types

import numpy as np
import pytest
from small_runs import FLAGS, ROOT, contents, make, small_job

from data_gen import config as config_lib, generate, inspect as inspect_lib, writer as writer_lib
from symformer_jax.data import records
from symformer_jax.errors import InputError
from symformer_jax.language.vocabulary import Vocabulary


def start(*flags: str) -> subprocess.Popen:
  command = [sys.executable, "-m", "data_gen.generate", *flags]
  # A shell's background jobs ignore Ctrl-C and hand that on: the command must see it whoever runs the tests.
  return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def run(*flags: str) -> tuple[int, str, str]:
  process = start(*flags)
  out, err = process.communicate(timeout=300)
  return process.returncode, out, err


def wait_for(folder: Path, pattern: str) -> None:
  deadline = time.monotonic() + 300
  while not list(folder.rglob(pattern)) and time.monotonic() < deadline:
    time.sleep(0.02)


def test_two_workers_killed_and_resumed_write_the_same_bytes_as_one_process(made, tmp_path):
  process = start(*FLAGS, f"--out={tmp_path}", "--workers=2")
  wait_for(tmp_path, "symformer*train*00000-of*")
  os.kill(process.pid, signal.SIGKILL)
  process.communicate()
  code, _, err = run(*FLAGS, f"--out={tmp_path}", "--workers=2")
  assert code == 0, err
  assert "continuing after" in err or "is complete" in err
  assert contents(tmp_path) == contents(made)


def test_two_processes_make_no_data_set_at_once(tmp_path):
  with small_job(tmp_path).claimed():
    code, _, err = run(*FLAGS, f"--out={tmp_path}")
  assert code == 2 and err.startswith("error: --out: another process is writing to") and err.count("\n") == 1
  assert not list(tmp_path.rglob("manifest.json"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_is_clean_and_says_that_it_can_be_continued(tmp_path, number):
  process = start(*FLAGS[:2], "--equations=10000000", f"--out={tmp_path}", "--workers=1")
  wait_for(tmp_path, "manifest.json")
  os.killpg(process.pid, number)  # as a terminal does: parent and workers
  _, err = process.communicate(timeout=100)
  assert process.returncode == 75
  assert err.endswith("stopped; the same command continues\n") and "Traceback" not in err


def test_the_manifest_says_all(made):
  manifest = json.loads((made / "manifest.json").read_text())
  assert [shard["equations"] for shard in manifest["shards"]] == [60, 100, 100, 100]
  assert all(shard["finished"] and len(shard["sha256"]) == 64 for shard in manifest["shards"])
  assert manifest["counts"]["accepted"] == 360
  assert manifest["identity"]["seed"] == 3 and manifest["identity"]["config"]["simplify"] == "rules"
  assert manifest["identity"]["vocabulary"] == Vocabulary(1).hash
  assert set(manifest["packages"]) == {"python", "sympy", "numpy"}


def test_no_equation_comes_twice_and_the_splits_share_no_function(made):
  vocab = Vocabulary(1)
  points = np.random.default_rng(0).uniform(-4.9, 4.9, (1, 60))
  keys, values = {}, {}
  for split in records.SPLITS:
    rows = [row for path in records.find_shards(made, split) for row in writer_lib.read_rows(path)]
    keys[split] = [(ids.tobytes(), mantissas.tobytes()) for ids, mantissas, _ in rows]
    with np.errstate(all="ignore"):
      values[split] = np.array([inspect_lib.trees.values(inspect_lib.to_tree(row, vocab), points) for row in rows])
  both = keys["train"] + keys["validation"]
  assert len(both) == len(set(both)) == 360
  # An oracle of its own: all values compared; what is undefined in one and not in the other is another function.
  for y in values["validation"]:
    is_same = np.isclose(values["train"], y, rtol=1e-7, atol=0, equal_nan=True).all(axis=1)
    assert not is_same.any()


def test_another_seed_is_refused_showing_both(made):
  before = contents(made)
  with pytest.raises(InputError, match="holds another run: seed is 3 there, 4 was asked for"):
    make(small_job(made.parents[2], seed=4))
  assert contents(made) == before


@pytest.mark.parametrize("pattern", ["*train.tfrecord-00002*", "*train.hashes-00001*", "*functions.bloom"])
def test_what_is_damaged_or_missing_is_made_again(made, tmp_path, pattern):
  shutil.copytree(made.parents[2], tmp_path, dirs_exist_ok=True)
  folder = small_job(tmp_path).folder
  path = next(folder.glob(pattern))
  data = bytearray(path.read_bytes())
  data[100] ^= 1
  path.write_bytes(data)
  if path.suffix == ".bloom":
    path.unlink()
  make(small_job(tmp_path))
  assert contents(folder) == contents(made)


@pytest.mark.parametrize(
  ("flags", "message"),
  [
    (["--config=configs/data/univariate.py", "--out=x", "--equations=-1"], "--equations must be at least 1, got -1"),
    (["--config=configs/data/univariate.py", "--out=/proc/none", "--equations=5"],
     "cannot write to /proc/none/symformer_equations/univariate/1.0.0: No such file or directory; the same command "
     "continues once that is mended"),
    (["--config=configs/data/univariate.py", "--out=x", "--equations=5", "--lost="], "--lost: expected a value, got"),
    (["--config=configs/data/univariate.py", "--out=x", "--equations=5", "--against=a,"],
     "--against: expected a value between two commas, got nothing"),
  ],
)
def test_unusable_arguments_are_one_line_and_exit_code_2(flags, message):
  code, out, err = run(*flags)
  assert (code, out) == (2, "") and message in err and err.count("\n") == 1


def test_no_empty_folders_are_left_where_nothing_is_written(tmp_path):
  job = small_job(tmp_path / "a" / "b", excluded=str(tmp_path / "nowhere.csv"))
  with pytest.raises(InputError, match="nowhere"), job.claimed():
    job.prepare()
  assert not list(tmp_path.iterdir())
  with small_job(tmp_path).claimed():
    (small_job(tmp_path).folder / "file").write_text("")
  assert (small_job(tmp_path).folder / "file").exists()


@pytest.mark.parametrize(("name", "most"), [
  ("equations", 10**10), ("validation", 10**10), ("workers", 4096), ("seed", 2**63 - 1)])
def test_numbers_beyond_use_are_refused(name, most):
  def read(value):
    given = {"config": f"{ROOT}/configs/data/univariate.py", "out": "x", "equations": 5, name: value}
    generate.asked.FLAGS.unparse_flags()
    for flag in generate.asked.FLAGS:
      generate.asked.FLAGS[flag].unparse()
    generate.asked.FLAGS(["generate", *(f"--{flag}={text}" for flag, text in given.items())])
    return generate._read_job()

  assert read(most).config.num_variables == 1
  with pytest.raises(InputError, match=f"--{name} must be at most {most}, got {most + 1}"):
    read(most + 1)


def test_a_config_that_cannot_be_used_says_why(tmp_path):
  path = tmp_path / "config.py"
  with pytest.raises(InputError, match="no config file '.*config.py'"):
    config_lib.load_config(str(path), {})
  path.write_text("x = 1")
  with pytest.raises(InputError, match="config.py defines no get_config"):
    config_lib.load_config(str(path), {})
  for returned, got in (("None", "NoneType"), ("{'a': 1}", "dict")):
    path.write_text(f"def get_config():\n  return {returned}")
    with pytest.raises(InputError, match=f"config.py: expected get_config.. to return a ConfigDict, got {got}$"):
      config_lib.load_config(str(path), {})
  path.write_text("import sys\nsys.exit(0)")
  with pytest.raises(InputError, match="config.py: SystemExit: 0"):
    config_lib.load_config(str(path), {})
  with pytest.raises(InputError, match="shard_equations must lie between 1 and .*, got 0"):
    config_lib.load_config(str(ROOT / "configs/data/univariate.py"), {"shard_equations": 0})


@pytest.mark.parametrize(("num_accepted", "expected"), [(0, "0/9 equations, 0.0/s, 0 rejected"), (3, " min left, ")])
def test_no_time_left_is_told_before_there_is_a_rate(monkeypatch, capsys, num_accepted, expected):
  monkeypatch.setattr(generate, "asked", types.SimpleNamespace(QUIET=types.SimpleNamespace(value=False)))
  writer = types.SimpleNamespace(num_accepted=0, counts=collections.Counter())
  progress = generate._Progress(writer, 9)
  writer.num_accepted = num_accepted
  progress.show(force=True)
  text = capsys.readouterr().err
  assert expected in text and "inf" not in text
