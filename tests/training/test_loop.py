"""The run as a whole: resumed equals uninterrupted, sharded equals single, damage is skipped, strangers refused."""

import dataclasses
import json
import os
from pathlib import Path
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest

from symformer_jax.errors import InputError, ModelError
from symformer_jax.training import loop
from symformer_jax.training.config import MeshConfig

ROOT = Path(__file__).parents[2]


def _curve(workdir):
  lines = [json.loads(line) for line in (Path(workdir) / "metrics.jsonl").read_text().splitlines()]
  return [{k: v for k, v in line.items() if k != "examples_per_s"} for line in lines]


def _run(config, workdir, *, stop_after=None):
  run = loop.set_up(config, Path(workdir))
  steps = iter(range(1, 10**6))
  is_complete = loop.train(run, should_stop=lambda: next(steps) == stop_after)
  loop.close(run)
  return is_complete, run


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory, data_dir):
  from configs import tiny
  from symformer_jax import configuration
  from symformer_jax.training.config import TrainConfig

  built = configuration.build(TrainConfig, tiny.get_config().to_dict())
  config = dataclasses.replace(
    built, mesh=MeshConfig(data=1), data=dataclasses.replace(built.data, dirs=(str(data_dir),)))
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


@pytest.mark.parametrize("stop_after", [3, 13])
def test_resumed_equals_uninterrupted_to_the_bit(uninterrupted, tmp_path, stop_after):
  config, whole, state = uninterrupted
  is_complete, _ = _run(config, tmp_path, stop_after=stop_after)
  assert not is_complete
  is_complete, run = _run(config, tmp_path)
  assert is_complete and _curve(tmp_path) == _curve(whole)
  jax.tree.map(np.testing.assert_array_equal, jax.device_get(run.state), state)


def test_a_damaged_newest_checkpoint_is_skipped(uninterrupted, tmp_path, caplog):
  config, whole, _ = uninterrupted
  _run(config, tmp_path)
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


def test_another_model_or_vocabulary_is_refused(uninterrupted):
  config, whole, _ = uninterrupted
  other = dataclasses.replace(config, model=dataclasses.replace(config.model, norm="post"))
  with pytest.raises(ModelError, match="another model shape: norm is pre, the configuration asks for post"):
    loop.set_up(other, whole)
  vocabulary = dataclasses.replace(config.model.vocabulary, encoding="base")
  other = dataclasses.replace(config, model=dataclasses.replace(config.model, vocabulary=vocabulary))
  with pytest.raises(ModelError, match="another vocabulary"):
    loop.set_up(other, whole)


@pytest.mark.parametrize("mesh", [MeshConfig(data=8), MeshConfig(data=2, fsdp=2, tensor=2)])
def test_sharded_equals_single_device(uninterrupted, tmp_path, mesh):
  config, whole, _ = uninterrupted
  _run(dataclasses.replace(config, mesh=mesh), tmp_path)
  for got, expected in zip(_curve(tmp_path), _curve(whole), strict=True):
    assert got["loss"] == pytest.approx(expected["loss"], rel=2e-4), got["step"]


def test_too_large_a_mesh_is_refused(config, tmp_path):
  with pytest.raises(InputError, match="needs more than the 8 devices"):
    loop.set_up(dataclasses.replace(config, mesh=MeshConfig(data=4, tensor=4)), tmp_path)


def test_a_tiny_model_memorizes_a_few_equations(config, tmp_path):
  points = dataclasses.replace(
    config.points, min_points=None, noise_probability=0.0, subbox_probability=0.0, resample_probability=0.0)
  config = dataclasses.replace(
    config, points=points, mesh=MeshConfig(data=1), num_steps=300, log_every=100, eval_every=10**6,
    checkpoint_every=10**6, data=dataclasses.replace(config.data, length_buckets=(15,)),
    optimizer=dataclasses.replace(config.optimizer, peak=5e-3, decay_steps=100))
  _run(config, tmp_path)
  # Eight forms: which one it is and how it goes on; the digits of its constants are the regression head's.
  assert _curve(tmp_path)[-1]["token_accuracy"] > 0.9


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
