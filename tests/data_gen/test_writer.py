"""The writer: full disks, losses, other folders, what a killed run leaves."""

import errno
import json
import os
import shutil

import numpy as np
import pytest
from small_runs import FLAGS, InProcess, contents, make, small_job

from data_gen import generate, job as job_lib, writer as writer_lib
from data_gen.candidates import Equation
from symformer_jax import files
from symformer_jax.commands import runner
from symformer_jax.data import records
from symformer_jax.errors import DataError, InputError


def equation(token: int, function: int) -> Equation:
  return Equation(bytes([token]), np.zeros(1, np.float32).tobytes(), np.array([[-5.0, 5.0]]), function, token)


def test_a_full_disk_leaves_whole_files_and_can_be_continued(made, tmp_path, monkeypatch):
  job = small_job(tmp_path)
  real, names = records.write_atomically, []

  def write(path, data):
    names.append(path.name)
    if "train.tfrecord-00001" in path.name:
      raise OSError(errno.ENOSPC, "No space left on device", str(path))
    real(path, data)

  monkeypatch.setattr(records, "write_atomically", write)
  with pytest.raises(OSError, match="No space left on device"):
    make(job)
  assert any("train.tfrecord-00000" in name for name in names)
  monkeypatch.undo()
  manifest = writer_lib.read_manifest(job.folder)
  assert [shard["finished"] for shard in manifest["shards"]] == [True, True, False, False]
  make(job)
  assert contents(job.folder) == contents(made)


def test_what_time_and_memory_cost_is_written_down_and_dropped_again(tmp_path):
  job = small_job(tmp_path / "slow", num_validation=0, num_train=100)
  writer, generator = job.prepare()
  # An unlucky machine: two candidates, acceptable elsewhere, run into limits.
  accepted = [i for i, outcome in zip(range(40), InProcess(generator).outcomes(0), strict=False)
              if isinstance(outcome[1], Equation)]
  unlucky = {accepted[0]: "timeout", accepted[2]: "memory"}
  job_lib.fill(writer, InProcess(generator, unlucky))
  manifest = json.loads((job.folder / "manifest.json").read_text())
  assert manifest["lost"] == {str(i): rule for i, rule in unlucky.items()}
  assert manifest["counts"]["timeout"] == manifest["counts"]["memory"] == 1
  # A lucky machine that is told, one that continues, and one that is not told.
  told = make(small_job(tmp_path / "told", num_validation=0, num_train=100, lost_in=str(job.folder)))
  assert contents(told) == contents(job.folder)
  next(job.folder.glob("*.tfrecord-00000*")).unlink()
  assert contents(make(job)) == contents(told)
  untold = make(small_job(tmp_path / "untold", num_validation=0, num_train=100))
  assert contents(untold) != contents(told)
  with pytest.raises(InputError, match="is of another run: seed is 3 there, 5 was asked for"):
    make(small_job(tmp_path / "other", seed=5, lost_in=str(job.folder / "manifest.json")))


def test_a_loss_is_on_disk_before_its_shard(tmp_path):
  writer = writer_lib.Writer(writer_lib.Plan(tmp_path, 0, 10, 10), {}, info={})
  writer.resume()
  writer.add(0, equation(5, 1))
  writer.add(1, "died")
  assert writer_lib.read_manifest(tmp_path)["lost"] == {"1": "died"}


def test_duplicates_are_dropped_by_tokens_functions_of_validation_and_of_other_folders(tmp_path):
  known = writer_lib.bloom.BloomFilter(1, 1e-6)
  known.add(np.array([99], np.uint64))
  writer = writer_lib.Writer(writer_lib.Plan(tmp_path, 2, 2, 10), {}, info={}, known_functions=known)
  writer.resume()
  for index, (token, function) in enumerate([(5, 1), (5, 1), (6, 2), (7, 1), (8, 99), (9, 3), (9, 3), (10, 4)]):
    writer.add(index, equation(token, function))
  assert writer.is_done
  assert writer.counts == {"accepted": 4, "duplicate": 2, "in_validation": 1, "in_other_folder": 1}


@pytest.mark.parametrize(("num_more", "is_enough"), [(4, True), (5, False)])
def test_where_candidates_give_no_equation_any_more_generation_ends(num_more, is_enough, tmp_path, monkeypatch):
  """A configuration may have fewer than are asked for: it would go on without end."""
  monkeypatch.setattr(job_lib, "MAX_FRUITLESS", 5)
  outcomes = [equation(5, 1), "too_long", *[equation(5, 1)] * 3, equation(6, 2), *[equation(5, 1)] * num_more,
              equation(7, 3), *["constant"] * 9]

  class Pool:
    def outcomes(self, start):
      return enumerate(outcomes[start:], start)
  writer = writer_lib.Writer(writer_lib.Plan(tmp_path, 0, 3, 10), {}, info={})
  writer.resume()
  if is_enough:
    job_lib.fill(writer, Pool())
    assert writer.is_done
  else:
    with pytest.raises(InputError, match="^the last 5 candidates gave no equation, after 2 that did; dropped: duplicate"
                                         " 8, too_long 1$"):
      job_lib.fill(writer, Pool())


def test_another_folder_shares_no_function_with_one_it_was_made_against(made, tmp_path):
  job = small_job(tmp_path, seed=4, against=(str(made),))
  folder = make(job)
  functions = [np.concatenate([hashes[0] for hashes in writer_lib.iterate_hashes(f)]) for f in (made, folder)]
  assert not np.isin(*functions).any()
  manifest = writer_lib.read_manifest(folder)
  assert manifest["counts"]["in_other_folder"] > 0 and len(manifest["identity"]["against"]) == 1
  with pytest.raises(DataError, match="no manifest.json in .*nowhere"):
    small_job(tmp_path / "new", against=(str(tmp_path / "nowhere"),)).prepare()


def test_what_a_killed_run_left_half_written_is_removed(tmp_path):
  # Never left, as if the process had been killed inside.
  writing = [files.replacing(tmp_path / name) for name in ("manifest.json", "symformer-train.tfrecord-00000-of-00002")]
  for block in writing:
    block.__enter__().write_bytes(b"half")
  assert len(list(tmp_path.iterdir())) == 2
  writer_lib.Writer(writer_lib.Plan(tmp_path, 0, 10, 10), {}, info={}).resume()
  assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


@pytest.mark.parametrize("text", ["[]", "[" * 100_000, "{}", None])
def test_a_manifest_that_is_none_is_refused_in_one_line(tmp_path, text):
  path = tmp_path / "manifest.json"
  path.write_text(text) if text else os.mkfifo(path)
  with pytest.raises(DataError, match="cannot read manifest .*manifest.json"):
    writer_lib.Writer(writer_lib.Plan(tmp_path, 0, 10, 10), {}, info={}).resume()


def test_shards_without_a_manifest_are_refused_and_left_as_they_are(made, tmp_path):
  job = small_job(tmp_path)
  shutil.copytree(made, job.folder)
  (job.folder / "manifest.json").unlink()
  before = contents(job.folder)
  with pytest.raises(InputError, match="holds shards without their manifest.json, which tells what they are of: give "):
    job.prepare()
  assert contents(job.folder) == before


def test_a_run_that_was_killed_before_its_manifest_goes_on(tmp_path):
  (tmp_path / "new").mkdir()
  writer_lib.Writer(writer_lib.Plan(tmp_path / "new", 0, 10, 10), {}, info={}).resume()
  assert (tmp_path / "new" / "manifest.json").exists()


@pytest.mark.parametrize(("key", "value"), [
  ("lost", []), ("lost", {"x": "timeout"}), ("shards", {"a": 1}), ("shards", [{"finished": True}]),
  ("shards", [{"finished": False, "file": "f", "split": "train", "equations": "9"}])])
def test_a_damaged_manifest_is_refused_in_one_line(tmp_path, key, value):
  writer = writer_lib.Writer(writer_lib.Plan(tmp_path, 0, 10, 10), {}, info={})
  writer.resume()
  manifest = json.loads((tmp_path / "manifest.json").read_text())
  (tmp_path / "manifest.json").write_text(json.dumps(manifest | {key: value}))
  with pytest.raises(DataError, match="manifest .*manifest.json is damaged: "):
    writer.resume()


def test_the_command_says_in_one_line_that_the_disk_is_full(tmp_path, monkeypatch, capsys):
  class Pool(InProcess):
    def __init__(self, generator, num_workers, *, skip):
      super().__init__(generator, skip)

    def __enter__(self):
      return self

    def __exit__(self, *exc_info):
      pass

  real = records.write_atomically

  def write(path, data):
    if "tfrecord" in path.name:
      raise OSError(errno.ENOSPC, "No space left on device", str(path))
    real(path, data)

  monkeypatch.setattr(records, "write_atomically", write)
  monkeypatch.setattr(generate, "Pool", Pool)
  with pytest.raises(SystemExit) as stopped:
    runner.run(generate.main, flag_values=generate.asked.FLAGS,
               argv=["generate", *FLAGS, "--quiet", f"--out={tmp_path}"])
  err = capsys.readouterr().err
  assert stopped.value.code == 1
  assert err.startswith("error: cannot write to") and err.count("\n") == 1
  assert err.endswith(": No space left on device; the same command continues once that is mended\n")
