"""The run as a whole: resumed equals uninterrupted, sharded equals single, damage is skipped, strangers refused."""

import dataclasses
import json
import os
from pathlib import Path
import re
import shutil
import signal
import subprocess
import sys
import time
import types

import jax
import numpy as np
import pytest

from configs import tiny
from symformer_jax import configuration
from symformer_jax.errors import InputError, ModelError
from symformer_jax.training import checkpoint, loop
from symformer_jax.training.config import MeshConfig, TrainConfig

ROOT = Path(__file__).parents[2]


# What a run on another day has differently.
RATES = {"examples_per_s", "gflops_per_s", "utilization", "input_wait"}


def _curve(workdir):
  lines = [json.loads(line) for line in (Path(workdir) / "metrics.jsonl").read_text().splitlines()]
  return [{k: v for k, v in line.items() if k not in RATES} for line in lines]


def _losses(workdir):
  return [line["loss"] for line in _curve(workdir) if "loss" in line]


def _run(config, workdir, *, stop_after=None):
  run = loop.set_up(config, Path(workdir))
  steps = iter(range(1, 10**6))
  is_complete = loop.train(run, should_stop=lambda: next(steps) == stop_after)
  loop.close(run)
  return is_complete, run


def _without_decoding(config):
  """What is drawn while training changes no loss, and takes long to compile for many devices."""
  return dataclasses.replace(config, decoding=dataclasses.replace(config.decoding, every=0))


@pytest.fixture(scope="module", autouse=True)
def steps_compiled_once():
  """Runs that differ in when they save, log or validate share their steps, which are costly to trace."""
  compiled, jit_steps = {}, loop.jit_steps

  def shared(config, optimizer, mesh, abstract):
    same = dataclasses.replace(
      config, log_every=1, eval_every=0, checkpoint_every=0, keep_checkpoints=1, decoding=TrainConfig().decoding)
    if (same, mesh) not in compiled:
      compiled[same, mesh] = jit_steps(config, optimizer, mesh, abstract)
    return compiled[same, mesh]

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(loop, "jit_steps", shared)
    yield


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory, data_dir):
  built = configuration.build(TrainConfig, tiny.get_config().to_dict())
  config = dataclasses.replace(built, mesh=MeshConfig(data=1))
  config = dataclasses.replace(config, data=dataclasses.replace(
    config.data, dirs=(str(data_dir),), length_buckets=(15,)))  # test_pipeline resumes several lengths
  workdir = tmp_path_factory.mktemp("whole")
  is_complete, run = _run(config, workdir)
  assert is_complete
  return config, workdir, jax.device_get(run.state)


def test_losses_fall_and_both_curves_are_written(uninterrupted):
  curve = _curve(uninterrupted[1])
  train = [line for line in curve if line["kind"] == "train"]
  assert [line["step"] for line in train] == [5, 10, 15, 20]
  assert train[-1]["cross_entropy"] < train[0]["cross_entropy"] - 1
  assert [line["step"] for line in curve if line["kind"] == "validation"] == [10, 20]
  decoded = [line for line in curve if line["kind"] == "decoding"]
  assert [line["step"] for line in decoded] == [10, 20]
  assert all(0 <= line[f"{how}_r2_above_.99"] <= 1 for line in decoded for how in ("greedy", "sampled"))
  lines = [json.loads(line) for line in (uninterrupted[1] / "metrics.jsonl").read_text().splitlines()]
  assert all(line.keys() >= RATES and 0 <= line["input_wait"] <= 1 for line in lines if line["kind"] == "train")


@pytest.mark.parametrize("stop_after", [3, pytest.param(13, marks=pytest.mark.slow)])
def test_resumed_equals_uninterrupted_to_the_bit(uninterrupted, tmp_path, stop_after):
  config, whole, state = uninterrupted
  is_complete, _ = _run(config, tmp_path, stop_after=stop_after)
  assert not is_complete
  is_complete, run = _run(config, tmp_path)
  assert is_complete and _curve(tmp_path) == _curve(whole)
  jax.tree.map(np.testing.assert_array_equal, jax.device_get(run.state), state)


# Trains in a process that kills itself: while a checkpoint is written, or else between two of them.
KILLED = """
import json, os, pathlib, signal, sys, threading, time
from symformer_jax import configuration
from symformer_jax.training import loop
from symformer_jax.training.config import TrainConfig
values, workdir, is_writing = json.loads(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3] == "writing"
run = loop.set_up(configuration.build(TrainConfig, values), workdir)
kill = lambda: os.kill(os.getpid(), signal.SIGKILL)
def watch():
  while not list((workdir / "checkpoints").glob("20*tmp*")):
    time.sleep(0.001)
  kill()
if is_writing:
  threading.Thread(target=watch, daemon=True).start()
steps = iter(range(1, 10**6))
loop.train(run, should_stop=lambda: next(steps) == 14 and not is_writing and kill())
"""


@pytest.mark.parametrize("moment", ["between", pytest.param("writing", marks=pytest.mark.slow)])
def test_killed_and_resumed_equals_uninterrupted_to_the_bit(uninterrupted, tmp_path, moment):
  config, whole, state = uninterrupted
  killed = subprocess.run(
    [sys.executable, "-c", KILLED, json.dumps(configuration.to_dict(config)), str(tmp_path), moment], cwd=ROOT,
    env=os.environ | {"PYTHONPATH": str(ROOT)}, stderr=subprocess.DEVNULL, timeout=300)
  assert killed.returncode == -signal.SIGKILL
  assert [path.name for path in (tmp_path / "checkpoints").glob("*") if path.name.isdigit()] == ["10"]
  is_complete, run = _run(config, tmp_path)
  assert is_complete and _curve(tmp_path) == _curve(whole)
  jax.tree.map(np.testing.assert_array_equal, jax.device_get(run.state), state)


def test_a_damaged_newest_checkpoint_is_skipped(uninterrupted, tmp_path, caplog):
  config, whole, _ = uninterrupted
  shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
  newest = tmp_path / "checkpoints" / "20"
  for path in newest.rglob("*"):
    if path.is_file() and "state" in path.parts:
      path.write_bytes(b"")
  with caplog.at_level("WARNING", logger="absl"):
    run = loop.set_up(config, tmp_path)
  assert int(run.state.step) == 10
  assert "checkpoint 20 is damaged and skipped" in caplog.text
  loop.train(run)
  loop.close(run)
  assert _curve(tmp_path) == _curve(whole)


def test_a_file_in_the_place_of_checkpoints_is_told_of_before_the_first_step(config, tmp_path):
  (tmp_path / "checkpoints").write_text("x")
  with pytest.raises(NotADirectoryError, match="checkpoints"):
    loop.set_up(config, tmp_path)


def test_a_disk_has_room_for_what_a_checkpoint_takes(uninterrupted, tmp_path, monkeypatch):
  config, whole, _ = uninterrupted
  # Not its blocks: file systems may keep some ahead, and give them back later.
  taken = sum(path.stat().st_size for path in (whole / "checkpoints" / "20").rglob("*") if path.is_file())
  monkeypatch.setattr(checkpoint.shutil, "disk_usage", lambda path: types.SimpleNamespace(free=taken))
  with pytest.raises(OSError, match="No space left on device"):
    loop.set_up(config, tmp_path)


def test_a_run_goes_on_after_a_disk_that_was_full(uninterrupted, tmp_path):
  config, whole, _ = uninterrupted
  run = loop.set_up(config, tmp_path)

  def fill(step, **kwargs):
    for name in (step, 5):
      (tmp_path / "checkpoints" / f"{name}.orbax-checkpoint-tmp" / "state").mkdir(parents=True)
    raise ValueError("RESOURCE_EXHAUSTED: Failed to write 9 bytes: No space left on device")
  run.checkpoints._manager.save = fill
  with pytest.raises(OSError, match="No space left on device"):
    loop.train(run)
  loop.close(run)
  is_complete, _ = _run(config, tmp_path)
  assert is_complete and _curve(tmp_path) == _curve(whole)
  assert {path.name for path in (tmp_path / "checkpoints").iterdir()} == {"10", "20"}


def test_a_run_does_not_start_anew_over_unreadable_checkpoints(uninterrupted, tmp_path):
  config, whole, _ = uninterrupted
  shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
  files = [path for path in (tmp_path / "checkpoints").rglob("*")
           if path.is_file() and "metrics" not in path.parts]  # what is left of those is no part of the state
  for path in files:
    path.write_bytes(b"")
  with pytest.raises(ModelError, match="no checkpoint of .* can be read"):
    loop.set_up(config, tmp_path)
  assert files and all(path.exists() for path in files)  # nothing was written over


def test_the_best_checkpoint_is_kept_beside_the_newest(uninterrupted, tmp_path):
  config = _without_decoding(uninterrupted[0])  # whose steps are compiled
  config = dataclasses.replace(config, eval_every=2, checkpoint_every=1, keep_checkpoints=2)
  run = loop.set_up(config, tmp_path)
  losses, steps = iter([3.0, 1.0, 2.0, 5.0, 4.0]), iter(range(1, 11))
  run.evaluate = lambda params: {"loss": next(losses), "cross_entropy": 0.0}
  loop.train(run, should_stop=lambda: next(steps) == 10)
  loop.close(run)
  assert sorted(int(p.name) for p in (tmp_path / "checkpoints").glob("*")) == [4, 9, 10]
  assert checkpoint.best_step(tmp_path) == 4


# What is slow here compiles for minutes, and differs little from the others.
@pytest.mark.slow
@pytest.mark.parametrize("before", [MeshConfig(data=2, fsdp=2, tensor=2), MeshConfig(data=1)], ids=["8->1", "1->8"])
def test_a_checkpoint_resumes_on_another_number_of_devices(uninterrupted, tmp_path, before):
  config, whole = _without_decoding(uninterrupted[0]), uninterrupted[1]
  after = MeshConfig(data=1) if before.data > 1 else MeshConfig(data=2, fsdp=2, tensor=2)
  _run(dataclasses.replace(config, mesh=before), tmp_path, stop_after=10)
  is_complete, run = _run(dataclasses.replace(config, mesh=after), tmp_path)
  num_devices = {len(leaf.sharding.device_set) for leaf in jax.tree.leaves(run.state.params)}
  assert is_complete and num_devices == {1 if after.data == 1 else 8}
  assert _losses(tmp_path) == pytest.approx(_losses(whole), rel=2e-4)


def test_a_checkpoint_from_before_a_setting_existed_has_its_default():
  config = TrainConfig()
  meta = checkpoint.make_meta(config, {})
  del meta["config"]["model"]["vocabulary"]["has_requested"]
  checkpoint.check_same_run(meta, config)
  meta["config"]["model"]["vocabulary"]["num_variables"] = 2
  with pytest.raises(ModelError, match="another model shape: vocabulary"):
    checkpoint.check_same_run(meta, config)


def test_another_model_or_vocabulary_is_refused(uninterrupted):
  config, whole, _ = uninterrupted
  other = dataclasses.replace(config, model=dataclasses.replace(config.model, norm="post"))
  with pytest.raises(ModelError, match="another model shape: norm is pre, the configuration asks for post"):
    loop.set_up(other, whole)
  vocabulary = dataclasses.replace(config.model.vocabulary, encoding="base")
  other = dataclasses.replace(config, model=dataclasses.replace(config.model, vocabulary=vocabulary))
  with pytest.raises(ModelError, match="another vocabulary"):
    loop.set_up(other, whole)


@pytest.mark.parametrize("mesh", [
  pytest.param(MeshConfig(data=8), marks=pytest.mark.slow), MeshConfig(data=2, fsdp=2, tensor=2)])
def test_sharded_equals_single_device(uninterrupted, tmp_path, mesh):
  config, whole = _without_decoding(uninterrupted[0]), uninterrupted[1]
  # Ten steps and one validation: a gradient that is not the same shows in the first lines.
  _run(dataclasses.replace(config, mesh=mesh), tmp_path, stop_after=10)
  losses = _losses(tmp_path)
  assert len(losses) == 3
  for got, expected in zip(losses, _losses(whole)[:3], strict=True):
    assert got == pytest.approx(expected, rel=2e-4)


def test_too_large_a_mesh_is_refused(config, tmp_path):
  with pytest.raises(InputError, match="needs more than the 8 devices"):
    loop.set_up(dataclasses.replace(config, mesh=MeshConfig(data=4, tensor=4)), tmp_path)


@pytest.mark.slow
def test_the_command_prints_the_loss_and_nothing_of_accelerators_that_are_not_there(data_dir, tmp_path):
  environment = {name: value for name, value in os.environ.items() if name != "JAX_PLATFORMS"}
  done = subprocess.run(
    [sys.executable, "-m", "launch.train", "--config=configs/tiny.py", f"--workdir={tmp_path}",
     f"--config.data.dirs=('{data_dir}',)", "--config.num_steps=5", "--config.decoding.every=100"],
    cwd=ROOT, env=environment | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True)
  lines = done.stderr.splitlines()
  assert re.search(r"step 5/5  cross entropy \d\.\d+ ", done.stderr) and "complete at step 5" in lines[-1]
  assert all("loop.py:" in line or "train.py:" in line for line in lines)


@pytest.mark.slow
def test_the_command_says_of_a_damaged_checkpoint_one_line(uninterrupted, data_dir, tmp_path):
  config, whole, _ = uninterrupted
  shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
  for path in (tmp_path / "checkpoints" / "20" / "state").rglob("d/*"):
    path.write_bytes(path.read_bytes()[:100])
  done = subprocess.run(
    [sys.executable, "-m", "launch.train", "--config=configs/tiny.py", f"--workdir={tmp_path}",
     f"--config.data.dirs=('{data_dir}',)", "--config.decoding.every=0", f"--config.seed={config.seed}"],
    cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
  lines = done.stderr.splitlines()
  assert done.returncode == 0 and "checkpoint 20 is damaged and skipped: " in lines[0]
  assert all("loop.py:" in line or "train.py:" in line for line in lines[1:])


@pytest.mark.slow
def test_kill_9_at_any_moment_gives_the_same_curve(data_dir, tmp_path):
  def command(workdir):
    return [sys.executable, "-m", "launch.train", "--config=configs/tiny.py", f"--workdir={workdir}",
            f"--config.data.dirs=('{data_dir}',)", "--config.num_steps=200", "--config.checkpoint_every=20"]
  environment = os.environ | {"PYTHONPATH": str(ROOT), "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache")}
  subprocess.run(command(tmp_path / "whole"), cwd=ROOT, env=environment, check=True)
  for _ in range(4):
    process = subprocess.Popen(command(tmp_path / "killed"), cwd=ROOT, env=environment)
    checkpoints = tmp_path / "killed" / "checkpoints"
    before = len(list(checkpoints.glob("*"))) if checkpoints.exists() else 0
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
      if checkpoints.exists() and len(list(checkpoints.glob("*"))) != before:
        break
      time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
  subprocess.run(command(tmp_path / "killed"), cwd=ROOT, env=environment, check=True)
  assert _curve(tmp_path / "killed") == _curve(tmp_path / "whole")
