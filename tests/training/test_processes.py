"""Two real processes give the losses of one; the job files of launch/cluster start commands that exist."""

import json
import os
from pathlib import Path
import re
import shlex
import socket
import stat
import subprocess
import sys

from absl import flags
import pytest
import yaml

from configs import univariate
from launch import train
from symformer_jax import files
from symformer_jax.errors import InputError
from symformer_jax.training import processes

ROOT = Path(__file__).parents[2]
# Processes that wait for each other must not do so for ever.
HARD_LIMIT_S = 900
CLUSTER = ROOT / "launch" / "cluster"


def _environment(**changes):
  """As a user has it: one CPU device a process."""
  return os.environ | {"PYTHONPATH": str(ROOT), "XLA_FLAGS": "", "JAX_PLATFORMS": "cpu", **changes}


def _command(data_dir, workdir, *more):
  return [sys.executable, "-m", "launch.train", "--config=configs/tiny.py", f"--workdir={workdir}",
          f"--config.data.dirs=('{data_dir}',)", "--config.data.num_streams=2", "--config.data.length_buckets=(15,)",
          "--config.points.resample_probability=0.0", "--config.num_steps=6", "--config.log_every=1",
          "--config.eval_every=6", "--config.decoding.every=0", *more]


def _curve(workdir):
  lines = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
  return {(line["kind"], line["step"]): line for line in lines}


@pytest.mark.slow  # three processes that compile, two minutes
def test_two_processes_give_the_losses_of_one(data_dir, tmp_path):
  subprocess.run(_command(data_dir, tmp_path / "one"), cwd=ROOT, env=_environment(), check=True, timeout=HARD_LIMIT_S)
  with socket.socket() as probe:
    probe.bind(("localhost", 0))
    port = probe.getsockname()[1]
  started = [subprocess.Popen(
    _command(data_dir, tmp_path / "two", f"--coordinator=localhost:{port}", "--num_processes=2", f"--process_id={i}"),
    cwd=ROOT, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for i in range(2)]
  try:
    outputs = [process.communicate(timeout=HARD_LIMIT_S)[0] for process in started]
  finally:
    for process in started:
      process.kill()
  assert [process.returncode for process in started] == [0, 0], outputs
  one, two = _curve(tmp_path / "one"), _curve(tmp_path / "two")
  assert one.keys() == two.keys() and ("validation", 6) in one
  for key, line in one.items():
    assert two[key]["loss"] == pytest.approx(line["loss"], rel=1e-4), key


def test_half_a_coordinator_is_refused(tmp_path):
  done = subprocess.run(
    [sys.executable, "-m", "launch.train", "--config=configs/tiny.py", f"--workdir={tmp_path}", "--num_processes=2"],
    cwd=ROOT, env=_environment(), capture_output=True, text=True, check=False)
  assert done.returncode == 2
  assert done.stderr.strip().endswith("error: --coordinator, --num_processes and --process_id go together")


def test_two_runs_use_no_folder_at_once(tmp_path):
  with files.claimed(tmp_path, flag="--workdir"):
    done = subprocess.run(
      [sys.executable, "-m", "launch.train", "--config=configs/tiny.py", f"--workdir={tmp_path}"],
      cwd=ROOT, env=_environment(), capture_output=True, text=True, check=False)
  assert done.returncode == 2 and "error: --workdir: another process is writing to" in done.stderr
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("coordinator", ["localhost", "localhost:", ":1", "localhost:port", "localhost:0",
                                         "localhost:65536"])
def test_a_coordinator_without_a_host_or_a_port_is_refused(coordinator, monkeypatch):
  monkeypatch.setattr(processes.jax.distributed, "initialize", lambda **_: None)
  with pytest.raises(InputError, match=f"--coordinator: expected HOST:PORT of process 0, got '{coordinator}'"):
    processes.start(coordinator=coordinator, num_processes=1, process_id=0)


def test_a_process_beyond_the_last_is_refused(monkeypatch):
  monkeypatch.setattr(processes.jax.distributed, "initialize", lambda **_: None)
  processes.start(coordinator="localhost:65535", num_processes=2, process_id=1)
  with pytest.raises(InputError, match="--process_id: expected 0 to 1 with --num_processes=2, got 2"):
    processes.start(coordinator="localhost:1", num_processes=2, process_id=2)


# --- job files -------------------------------------------------------------------------------------------------------


def _check_training_command(words):
  """A command line of launch.train whose flags, config file and overrides exist."""
  assert words[words.index("-m") + 1] == "launch.train" == train.__name__
  arguments = words[words.index("-m") + 2 :]
  names = [re.match(r"--(no)?([\w.]+)", word).group(2) for word in arguments]
  assert {"config", "workdir"} <= set(names) and ("distributed" in names or "coordinator" in names)
  config = univariate.get_config()
  for name in names:
    if name.startswith("config."):
      config.get_ref(name.removeprefix("config.")) if name.count(".") == 1 else config.data[name.split(".")[-1]]
    else:
      assert name in flags.FLAGS
  assert (ROOT / next(w.split("=")[1] for w in arguments if w.startswith("--config="))).is_file()


@pytest.fixture
def stub(tmp_path, monkeypatch):
  """Makes programs that write their arguments down and exit with a code of choice."""
  log = tmp_path / "calls"
  log.touch()
  monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

  def make(name, code=0):
    path = tmp_path / name
    path.write_text(f'#!{sys.executable}\nimport json, sys\nopen("{log}", "a").write(json.dumps(sys.argv) + "\\n")\n'
                    f"sys.exit({code})\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)

  def calls():
    return [[Path(words[0]).name, *words[1:]] for words in map(json.loads, log.read_text().splitlines())]

  return make, calls


@pytest.mark.parametrize(("code", "is_requeued"), [(0, False), (1, False), (75, True)])
def test_slurm_goes_back_into_the_queue_when_stopped(stub, code, is_requeued):
  make, calls = stub
  make("srun", code)
  make("scontrol")
  done = subprocess.run(
    ["bash", CLUSTER / "slurm.sh", "configs/univariate.py", "/shared/run", "/shared/data"],
    env=os.environ | {"SLURM_JOB_ID": "7"}, check=False)
  assert done.returncode == code
  _check_training_command(calls()[0])
  assert calls()[1:] == ([["scontrol", "requeue", "7"]] if is_requeued else [])


def test_tpu_pod_runs_the_command_on_every_host(stub):
  make, calls = stub
  make("gcloud")
  subprocess.run(
    ["bash", CLUSTER / "tpu_pod.sh", "name", "zone", "v5p-256", "configs/univariate.py", "gs://bucket/run",
     "gs://bucket/data"], cwd=ROOT, check=True)
  commands = [word.removeprefix("--command=") for words in calls() for word in words if word.startswith("--command=")]
  assert all("--worker=all" in words for words in calls() if "ssh" in words)
  last = shlex.split(commands[-1])
  _check_training_command(last)
  assert "--workdir=/mnt/bucket/run" in last and "--config.data.dirs=('/mnt/bucket/data',)" in last
  assert all(subprocess.run(["bash", "-n", "-c", command], check=False).returncode == 0 for command in commands)


def test_jobset_starts_one_process_per_node():
  job = yaml.safe_load((CLUSTER / "jobset.yaml").read_text())
  assert job["kind"] == "JobSet"
  spec = job["spec"]["replicatedJobs"][0]["template"]["spec"]
  container = spec["template"]["spec"]["containers"][0]
  _check_training_command(container["command"])
  assert f"--num_processes={spec['completions']}" in container["command"]
  assert spec["completions"] == spec["parallelism"] and spec["completionMode"] == "Indexed"
  coordinator = f"{job['metadata']['name']}-{job['spec']['replicatedJobs'][0]['name']}-0-0.{job['metadata']['name']}"
  assert f"--coordinator={coordinator}:{container['ports'][0]['containerPort']}" in container["command"]
