"""The pool: order, and candidates that hang, die, exhaust memory or run too long."""

import gc
import os
import resource
import signal
import sys
import time
import types

import pytest

from data_gen import workers
from data_gen.workers import Pool, call_with_limit
from symformer_jax.errors import InputError


class Hostile:
  """A generator some of whose candidates do what SymPy may do."""

  config = types.SimpleNamespace(time_limit_s=0.3)

  def make(self, index: int) -> str:
    if index == 3:
      os._exit(1)
    if index == 9:
      while True:  # busy: the worker's own limit in CPU seconds stops it
        pass
    if index == 12:
      return bytearray(50 << 30)
    if index == 20:
      raise KeyError("from a library")
    return f"made_{index}"


class Stillborn:
  """A generator whose first workers die where it is unpacked: before any candidate."""

  config = types.SimpleNamespace(time_limit_s=5.0)

  def __init__(self, folder, num_deaths):
    self.folder, self.num_deaths = folder, num_deaths

  def __setstate__(self, state):
    self.__dict__.update(state)
    number = len(list(self.folder.iterdir()))
    (self.folder / str(number)).touch()
    if number < self.num_deaths:
      os.kill(os.getpid(), signal.SIGKILL)

  def make(self, index: int) -> str:
    return f"made_{index}"


def test_a_worker_killed_before_its_first_candidate_is_replaced(tmp_path):
  with Pool(Stillborn(tmp_path, 1), 1, skip={}, chunk=4) as pool:
    assert list(pool.outcomes(0, 4)) == [(i, f"made_{i}") for i in range(4)] and pool.num_replaced == 1


def test_workers_that_never_live_are_one_error(tmp_path, monkeypatch):
  monkeypatch.setattr(workers, "MAX_EARLY_DEATHS", 1)
  with Pool(Stillborn(tmp_path, 99), 1, skip={}, chunk=4) as pool, \
      pytest.raises(InputError, match="2 workers one after the other died before their first candidate"):
    list(pool.outcomes(0, 4))


def test_an_idle_worker_that_is_killed_is_replaced():
  with Pool(Hostile(), 1, skip={3: "died"}, chunk=4) as pool:
    assert list(pool.outcomes(4, 8)) == [(i, f"made_{i}") for i in range(4, 8)]
    os.kill(pool.process_ids[0], signal.SIGKILL)
    assert list(pool.outcomes(4, 8)) == [(i, f"made_{i}") for i in range(4, 8)] and pool.num_replaced == 1


def user_seconds() -> float:
  """What the limit counts, of this thread: no time of the system, none of other threads."""
  return resource.getrusage(resource.RUSAGE_THREAD).ru_utime


def test_the_time_limit_is_not_lost_in_a_hook_of_garbage_collection(monkeypatch):
  lost = []
  monkeypatch.setattr(sys, "unraisablehook", lost.append)

  def busy(phase, info):
    end = time.process_time() + 0.02
    while time.process_time() < end:
      pass

  def collect():
    end = time.process_time() + 2
    while time.process_time() < end:
      gc.collect(0)
    return "the limit was lost"

  gc.callbacks.append(busy)
  try:
    begin = user_seconds()
    assert call_with_limit(collect, 0.2) == "timeout"
    assert not lost and user_seconds() - begin < 0.4  # at once, not when the limit comes again
    assert gc.callbacks[-1] is busy
  finally:
    gc.callbacks.remove(busy)


def first_outcomes(pool: Pool, count: int, start: int = 0) -> list:
  stream = pool.outcomes(start)
  return [next(stream) for _ in range(count)]


def test_a_bad_candidate_costs_itself_alone():
  expected = {3: "died", 9: "timeout", 12: "memory", 20: "error_KeyError"}
  with Pool(Hostile(), 2, skip={}, chunk=8) as pool:
    got = first_outcomes(pool, 30)
    assert got == [(i, expected.get(i, f"made_{i}")) for i in range(30)]
    assert pool.num_replaced == 1


def test_known_losses_are_not_tried_again_and_a_run_may_begin_anywhere():
  with Pool(Hostile(), 1, skip={3: "died"}, chunk=8) as pool:
    # Up to the end of the chunk that holds the last one.
    assert list(pool.outcomes(2, 5)) == [(2, "made_2"), (3, "died"), *((i, f"made_{i}") for i in range(4, 8))]
    assert pool.num_replaced == 0


@pytest.mark.parametrize("error", [EOFError, BrokenPipeError, ConnectionResetError])
def test_a_worker_whose_parent_was_killed_ends_in_silence(monkeypatch, error):
  class Pipe:
    def send(self, outcomes):
      pytest.fail("there is nobody to send to")

    def recv(self):
      raise error

  monkeypatch.setattr(workers, "_limit_memory", lambda: None)
  workers._serve(Pipe(), [0, 0], None)
