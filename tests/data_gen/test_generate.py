"""The command: same bytes with any number of workers and after kill -9, refusals, damage, exit codes."""

import json
import os
from pathlib import Path
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from data_gen import config as config_lib, generate, inspect as inspect_lib, writer as writer_lib
from symformer_jax.data import records
from symformer_jax.errors import DataError, InputError
from symformer_jax.language import expression
from symformer_jax.language.vocabulary import Vocabulary

ROOT = Path(__file__).parent.parent.parent
FLAGS = ["--config=configs/data/univariate.py", "--simplify=rules", "--equations=900", "--validation=150", "--seed=3",
         "--shard_equations=300"]


def start(module: str, *flags: str) -> subprocess.Popen:
  command = [sys.executable, "-m", module, *flags]
  return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(module: str, *flags: str) -> tuple[int, str, str]:
  process = start(module, *flags)
  out, err = process.communicate(timeout=120)
  return process.returncode, out, err


def contents(folder: Path) -> dict[str, bytes]:
  return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def reference(tmp_path_factory) -> Path:
  """An undisturbed run with one worker."""
  folder = tmp_path_factory.mktemp("reference")
  code, _, err = run("data_gen.generate", *FLAGS, f"--out={folder}", "--workers=1")
  assert code == 0, err
  return folder


def test_two_workers_killed_and_resumed_write_the_same_bytes(reference, tmp_path):
  process = start("data_gen.generate", *FLAGS, f"--out={tmp_path}", "--workers=2")
  deadline = time.monotonic() + 100
  while not list(tmp_path.rglob("symformer*train*00000-of*")) and time.monotonic() < deadline:
    time.sleep(0.02)
  os.kill(process.pid, signal.SIGKILL)
  process.communicate()
  code, _, err = run("data_gen.generate", *FLAGS, f"--out={tmp_path}", "--workers=2")
  assert code == 0, err
  assert "continuing after" in err or "is complete" in err
  assert contents(tmp_path) == contents(reference)


def test_the_manifest_says_all(reference):
  manifest = json.loads(next(reference.rglob("manifest.json")).read_text())
  assert [shard["equations"] for shard in manifest["shards"]] == [150, 300, 300, 300]
  assert all(shard["finished"] and len(shard["sha256"]) == 64 for shard in manifest["shards"])
  assert manifest["counts"]["accepted"] == 1050
  assert manifest["identity"]["seed"] == 3 and manifest["identity"]["config"]["simplify"] == "rules"
  assert manifest["identity"]["vocabulary"] == Vocabulary(1).hash
  assert set(manifest["packages"]) == {"python", "sympy", "numpy"}


def test_no_equation_comes_twice_and_the_splits_share_no_function(reference):
  vocab = Vocabulary(1)
  points = np.random.default_rng(0).uniform(-4.9, 4.9, (1, 60))
  keys, values = {}, {}
  for split in records.SPLITS:
    rows = inspect_lib.read_rows(reference, split)
    keys[split] = [(ids.tobytes(), constants.tobytes()) for ids, constants, _ in rows]
    with np.errstate(all="ignore"):
      values[split] = np.array([inspect_lib.trees.values(inspect_lib.to_tree(row, vocab), points) for row in rows])
  both = keys["train"] + keys["validation"]
  assert len(both) == len(set(both)) == 1050
  # An oracle of its own: all values compared; what is undefined in one and not in the other is another function.
  for y in values["validation"]:
    is_same = np.isclose(values["train"], y, rtol=1e-7, atol=0, equal_nan=True).all(axis=1)
    assert not is_same.any()


def test_another_seed_is_refused_showing_both(reference):
  before = contents(reference)
  flags = [flag for flag in FLAGS if not flag.startswith("--seed")]
  code, out, err = run("data_gen.generate", *flags, "--seed=4", f"--out={reference}", "--workers=1")
  assert (code, out) == (2, "")
  assert "holds another run: seed is 3 there, 4 was asked for" in err and err.count("\n") == 1
  assert contents(reference) == before


def test_a_damaged_shard_is_named_and_made_again(reference):
  before = contents(reference)
  path = records.find_shards(reference, "train")[2]
  data = bytearray(path.read_bytes())
  data[100] ^= 1
  path.write_bytes(data)
  with pytest.raises(DataError, match=f"shard .*{path.name} is damaged"):
    inspect_lib.verify(path.parent)
  code, _, err = run("data_gen.generate", *FLAGS, f"--out={reference}", "--workers=1")
  assert code == 0, err
  assert contents(reference) == before


def test_inspect_prints_what_is_there(reference):
  code, out, err = run("data_gen.inspect", str(reference), "--samples=2")
  assert code == 0, err
  assert "4 of 4 shards finished, all intact" in out and "train: 900 equations" in out and "[-5, 5]" in out


def test_hashes_tell_what_was_generated(reference):
  folder = next(reference.rglob("manifest.json")).parent
  config = config_lib.from_dict(json.loads((folder / "manifest.json").read_text())["identity"]["config"])
  assert writer_lib.read_hashes(folder).shape == (2, 1050)
  vocab = Vocabulary(1)
  for row in inspect_lib.read_rows(folder, "train")[::97]:
    text = expression.to_text(inspect_lib.to_tree(row, vocab), ("x",), digits=7)
    functions, skeletons = inspect_lib.count_seen(text, folder, config)
    assert functions >= 1 and skeletons >= 1, text
  assert inspect_lib.count_seen("sin(cos(sin(x)))*log(x) + 1.2345", folder, config) == (0, 0)


@pytest.mark.parametrize(
  ("flags", "message"),
  [
    (["--config=configs/data/univariate.py", "--out=x", "--equations=-1"], "--equations must be at least 1, got -1"),
    (["--config=configs/data/univariate.py", "--out=/proc/none", "--equations=5"], "/proc/none"),
  ],
)
def test_unusable_arguments_are_one_line_and_exit_code_2(flags, message):
  code, out, err = run("data_gen.generate", *flags)
  assert (code, out) == (2, "") and message in err and err.count("\n") == 1


def test_a_config_that_cannot_be_used_says_why(tmp_path):
  path = tmp_path / "config.py"
  with pytest.raises(InputError, match="no such config file: .*config.py"):
    generate.load_config(str(path), {})
  path.write_text("x = 1")
  with pytest.raises(InputError, match="config.py defines no get_config"):
    generate.load_config(str(path), {})
  with pytest.raises(InputError, match="shard_equations must be positive, got 0"):
    generate.load_config(str(ROOT / "configs/data/univariate.py"), {"shard_equations": 0})


def test_what_a_killed_run_left_half_written_is_removed(tmp_path):
  plan = writer_lib.Plan(tmp_path, 0, 10, 10)
  (tmp_path / ".shard.7.tmp").write_bytes(b"half")
  writer_lib.Writer(plan, {}, info={}, unique_by_skeleton=False).resume()
  assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


def test_a_stop_is_clean_and_says_that_it_can_be_continued(tmp_path):
  process = start("data_gen.generate", *FLAGS[:2], "--equations=10000000", f"--out={tmp_path}", "--workers=1")
  while not list(tmp_path.rglob("manifest.json")):
    time.sleep(0.05)
  process.terminate()
  _, err = process.communicate(timeout=60)
  assert process.returncode == 75
  assert err.endswith("stopped; the same command continues\n")
