"""A place for results belongs to one process at a time."""

import os
import pathlib
import subprocess
import sys

import pytest

from symformer_jax import files
from symformer_jax.errors import InputError

# Claims what its argument names, says so, and keeps it until its input ends.
HOLDER = """
import sys
from symformer_jax import files
with files.claimed(sys.argv[1], flag="--out"):
  print("claimed", flush=True)
  sys.stdin.read()
"""


@pytest.fixture
def hold():
  """A function that lets another process claim a place, and returns that process."""
  holders = []

  def start(place):
    holder = subprocess.Popen(
      [sys.executable, "-c", HOLDER, str(place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
      env=os.environ | {"PYTHONPATH": str(pathlib.Path(__file__).parents[1])})
    holders.append(holder)
    assert holder.stdout.readline() == "claimed\n"
    return holder

  yield start
  for holder in holders:
    holder.kill()
    holder.communicate()


@pytest.mark.parametrize("is_folder", [True, False])
def test_a_place_is_one_processes_until_it_ends(is_folder, tmp_path, hold):
  place = tmp_path if is_folder else tmp_path / "fits.jsonl"
  holder = hold(place)
  with pytest.raises(InputError, match="another process is writing"), \
       files.claimed(place, flag="--out"):
    pytest.fail("claimed twice")
  holder.communicate("")
  assert holder.returncode == 0
  with files.claimed(place, flag="--out"):
    pass
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("is_folder", [True, False])
def test_a_killed_process_keeps_nobody_out(is_folder, tmp_path, hold):
  place = tmp_path if is_folder else tmp_path / "fits.jsonl"
  holder = hold(place)
  holder.kill()
  holder.wait()
  with files.claimed(place, flag="--out"):
    pass
  assert not list(tmp_path.iterdir())


def test_claims_of_different_files_of_a_folder_are_apart(tmp_path, hold):
  hold(tmp_path / "a.jsonl")
  with files.claimed(tmp_path / "b.jsonl", flag="--out"):
    assert sorted(path.name for path in tmp_path.iterdir()) == [".a.jsonl.lock", ".b.jsonl.lock"]


def test_a_lock_removed_by_the_one_before_is_made_again(tmp_path, monkeypatch):
  place, lock = tmp_path / "fits.jsonl", tmp_path / ".fits.jsonl.lock"
  flock, asked = files.fcntl.flock, []

  def end_of_the_one_before(handle, how):
    if not asked:
      lock.unlink()
    asked.append(how)
    flock(handle, how)

  monkeypatch.setattr(files.fcntl, "flock", end_of_the_one_before)
  with files.claimed(place, flag="--out"):
    assert lock.exists() and len(asked) == 2
  assert not lock.exists()


def test_where_there_are_no_locks_work_goes_on(tmp_path, monkeypatch):
  def no_locks(handle, how):
    raise OSError(37, "No locks available")

  monkeypatch.setattr(files.fcntl, "flock", no_locks)
  with files.claimed(tmp_path / "fits.jsonl", flag="--out"), files.claimed(tmp_path, flag="--out"):
    pass
  assert not list(tmp_path.iterdir())


def test_what_cannot_be_opened_is_one_line(tmp_path):
  (tmp_path / ".fits.jsonl.lock").mkdir()  # or a file of somebody else, whose process was killed
  with pytest.raises(InputError, match=r"^--out: cannot open '.*\.fits\.jsonl\.lock': Is a directory$"), \
       files.claimed(tmp_path / "fits.jsonl", flag="--out"):
    pytest.fail("claimed")


def test_errors_of_the_work_pass_and_leave_nothing(tmp_path):
  with pytest.raises(KeyError), files.claimed(tmp_path / "fits.jsonl", flag="--out"):
    raise KeyError
  assert not list(tmp_path.iterdir())


def test_a_link_to_a_file_stays_one(tmp_path):
  (tmp_path / "kept").mkdir()
  place, link = tmp_path / "kept" / "results.txt", tmp_path / "fit.json"
  place.write_text("before")
  link.symlink_to(place)
  with files.replacing(link) as temporary:
    assert (temporary.parent, temporary.suffix) == (place.parent, ".json")
    temporary.write_text("after")
  files.check_writable(link, flag="--out")
  assert link.is_symlink() and place.read_text() == "after" and os.listdir(tmp_path / "kept") == ["results.txt"]
  place.unlink()
  files.write_text(files.check_writable(link, flag="--out"), "again")  # also where it leads to nothing yet
  assert link.is_symlink() and place.read_text() == "again"
  link.unlink()
  link.symlink_to(tmp_path / "nowhere" / "results.txt")
  with pytest.raises(InputError, match="--out: cannot write '.*fit.json': No such file or directory"):
    files.check_writable(link, flag="--out")
  link.unlink()
  link.symlink_to(link)
  with pytest.raises(InputError, match="--out: cannot write '.*fit.json': Too many levels of symbolic links"):
    files.check_writable(link, flag="--out")
  assert os.listdir(tmp_path / "kept") == ["results.txt"]
  link.unlink()
  link.symlink_to("/dev/null")  # no file: a device is not replaced, the link is
  files.write_text(link, "text")
  assert not link.is_symlink() and link.read_text() == "text"
