"""Worker processes: candidates in, outcomes out, in the order of the candidates, whatever happens to a worker.

A candidate is stopped by the worker itself after `time_limit_s` CPU seconds, or by its memory limit. A worker that
hangs in C code, or dies, is killed and replaced: that costs the one candidate it was at, since its chunk is made
again without it. Chunks start with SymPy's cache empty, so that an outcome does not depend on who made what before.
"""

from collections.abc import Callable, Iterator, MutableSequence
import contextlib
import functools
import gc
import multiprocessing
from multiprocessing import connection, context as context_lib, resource_tracker
import os
import random
import resource
import signal
import threading
import time
import types
from typing import NamedTuple, NoReturn, TypeVar

from data_gen.candidates import Equation, Generator
from symformer_jax.commands import startup
from symformer_jax.errors import InputError

# A worker may use so much memory beyond what it has after its imports.
MEMORY_LIMIT_BYTES = 2 << 30
# Wall-clock seconds without a sign of life before a worker counts as hung, at least, and as a multiple of the limit in
# CPU seconds, which comes first wherever Python still runs: a worker may run at low priority on a loaded machine.
MIN_HANG_S, HANG_FACTOR = 60, 12
CHUNK_CANDIDATES = 64

# Workers in a row that may die before their first candidate: one is bad luck, so many are a machine that cannot run
# them.
MAX_EARLY_DEATHS = 8

# Outcomes that depend on the machine: they are written down, so that a rerun drops the same candidates.
LOSSES = ("timeout", "memory", "died")

Outcome = Equation | str
T = TypeVar("T")


class _TimeLimitError(BaseException):
  """Not an Exception, so that no `except Exception` in a library swallows it."""


class _Task(NamedTuple):
  start: int
  stop: int
  skip: tuple[int, ...]


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
  """Ctrl-C, SIGTERM and SIGHUP wait until the end: a worker half started would complain.

  Ctrl-C reaches the whole group, but it is the parent that decides: processes started here are born with it blocked.
  Other threads take signals too, so that blocking them here is not enough for the parent.
  """
  if threading.current_thread() is not threading.main_thread():
    yield
    return
  caught: list[int] = []
  handlers = {number: signal.signal(number, lambda got, frame: caught.append(got))
              for number in startup.stop_signals()}
  mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
  try:
    yield
  finally:
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    for number, handler in handlers.items():
      signal.signal(number, signal.SIG_DFL if handler is None else handler)
    for late in caught:
      signal.raise_signal(late)


class _Worker:
  """One process and what it is at."""

  def __init__(self, context: context_lib.SpawnContext, generator: Generator):
    self.pipe, child = context.Pipe()
    # Index of the candidate the worker is at, and its number of started candidates.
    self.progress = context.RawArray("q", 2)
    self.process = context.Process(target=_serve, args=(child, self.progress, generator), daemon=True)
    with _signals_held():
      self.process.start()
    child.close()
    self.task: _Task | None = None
    self.last_count, self.last_change = -1, time.monotonic()

  def give(self, task: _Task) -> None:
    self.task, self.last_change = task, time.monotonic()
    self.progress[0] = -1
    self.pipe.send(task)

  def is_hung(self, limit_s: float) -> bool:
    if self.progress[1] != self.last_count:
      self.last_count, self.last_change = self.progress[1], time.monotonic()
    return self.task is not None and self.progress[0] >= 0 and time.monotonic() - self.last_change > limit_s

  def stop(self) -> None:
    self.process.kill()
    self.process.join()
    self.pipe.close()


def _serve(pipe: connection.Connection, progress: MutableSequence[int], generator: Generator) -> None:
  """A worker's life: make chunks until the pipe closes."""
  _limit_memory()
  with contextlib.suppress(EOFError, ConnectionError):  # reset, where the parent was killed with a task in the pipe
    while True:
      pipe.send(make_chunk(generator, pipe.recv(), progress))


def _raise_time_limit(signum: int, frame: types.FrameType | None) -> NoReturn:
  raise _TimeLimitError


def _limit_memory() -> None:
  with open("/proc/self/statm", encoding="ascii") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
  _, hard = resource.getrlimit(resource.RLIMIT_AS)
  soft = used + MEMORY_LIMIT_BYTES
  resource.setrlimit(resource.RLIMIT_AS, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def make_chunk(generator: Generator, task: _Task, progress: MutableSequence[int]) -> list[Outcome]:
  """Outcomes of candidates start ... stop - 1; those to be skipped are empty strings."""
  from sympy.core.cache import clear_cache

  clear_cache()
  random.seed(task.start)  # SymPy shuffles the order in which it asks for assumptions
  outcomes: list[Outcome] = []
  for index in range(task.start, task.stop):
    if index in task.skip:
      outcomes.append("")
      continue
    progress[0] = index
    progress[1] += 1
    outcomes.append(call_with_limit(functools.partial(generator.make, index), generator.config.time_limit_s))
  return outcomes


def call_with_limit(make: Callable[[], T], limit_s: float) -> T | str:
  """What `make` returns, or the rule by which it failed: `timeout` (CPU seconds), `memory`, `error_...`."""
  signal.signal(signal.SIGVTALRM, _raise_time_limit)
  # An exception in a library's hook of garbage collection (JAX has one) is printed and lost: none is called meanwhile.
  hooks, gc.callbacks[:] = gc.callbacks[:], []
  try:
    # Again after as long: where else Python calls back from C, as in a destructor, an exception is lost as well.
    signal.setitimer(signal.ITIMER_VIRTUAL, limit_s, limit_s)
    try:
      return make()
    finally:
      signal.setitimer(signal.ITIMER_VIRTUAL, 0)
      gc.callbacks[:] = hooks
  except _TimeLimitError:
    return "timeout"
  except MemoryError:
    return "memory"
  except Exception as error:  # SymPy fails on some inputs in ways of its own; the manifest shows how often
    return f"error_{type(error).__name__}"


class Pool:
  """Runs a generator in `num_workers` processes.

  Args:
    generator: sent to every worker once.
    num_workers: processes.
    skip: candidates known to be lost, with their rules (from the manifest of an interrupted run).
    chunk: candidates a worker gets at a time.
  """

  def __init__(self, generator: Generator, num_workers: int, *, skip: dict[int, str], chunk: int = CHUNK_CANDIDATES):
    # spawn, not fork: the parent has threads (JAX). The hash seed makes the order of sets in SymPy repeatable.
    os.environ["PYTHONHASHSEED"] = "0"
    self._context = multiprocessing.get_context("spawn")
    self._generator, self._chunk = generator, chunk
    self._skip = dict(skip)
    self._hang_limit_s = max(MIN_HANG_S, HANG_FACTOR * generator.config.time_limit_s)
    # Started now: it would be with the first worker, and unblock the Ctrl-C that workers are born without.
    resource_tracker.ensure_running()
    self._workers = [_Worker(self._context, generator) for _ in range(num_workers)]
    self.num_replaced = self._num_early = 0

  def __enter__(self) -> "Pool":
    return self

  def __exit__(self, *exc_info: object) -> None:
    for worker in self._workers:
      worker.stop()

  def outcomes(self, start: int, stop: int | None = None) -> Iterator[tuple[int, Outcome]]:
    """`(index, outcome)` from candidate `start` on, in order; endless, or up to the chunk that holds `stop` - 1."""
    done: dict[int, list[Outcome]] = {}
    next_chunk = wanted = start - start % self._chunk
    # Chunks made ahead of the slowest one: bounds what is held in memory.
    window = 8 * len(self._workers) * self._chunk
    while stop is None or wanted < stop:
      for worker in self._workers:
        if worker.task is None and next_chunk < wanted + window and (stop is None or next_chunk < stop):
          self._assign(worker, next_chunk)
          next_chunk += self._chunk
      self._collect(done)
      while wanted in done:
        for index, outcome in enumerate(done.pop(wanted), wanted):
          if index >= start:
            yield index, self._skip.get(index) or outcome
        wanted += self._chunk

  def _assign(self, worker: _Worker, chunk: int) -> None:
    stop = chunk + self._chunk
    worker.give(_Task(chunk, stop, tuple(i for i in self._skip if chunk <= i < stop)))

  def _collect(self, done: dict[int, list[Outcome]]) -> None:
    """Waits for a result, or replaces workers that hang or died."""
    ready = connection.wait([worker.pipe for worker in self._workers], timeout=1.0)
    for i, worker in enumerate(self._workers):
      if worker.pipe in ready:
        try:
          outcomes = worker.pipe.recv()
          assert worker.task is not None, "nothing is sent but the outcomes of a task"
          done[worker.task.start] = outcomes
          worker.task, self._num_early = None, 0
        except (EOFError, OSError):
          self._replace(i, "died")
      elif worker.is_hung(self._hang_limit_s):
        self._replace(i, "timeout")

  def _replace(self, i: int, rule: str) -> None:
    """Drops the candidate a worker was at, if it was at one, and gives its chunk to a fresh worker."""
    worker = self._workers[i]
    lost, task = worker.progress[0], worker.task
    worker.stop()
    self.num_replaced += 1
    if task is None or lost < 0:  # killed from outside, or for memory, while it was started or had nothing to do
      self._num_early += 1
      if self._num_early > MAX_EARLY_DEATHS:
        raise InputError(f"{self._num_early} workers one after the other died before their first candidate: is the "
                         "machine out of memory? The same command continues, with fewer --workers if need be")
    else:
      self._skip[lost] = rule
    self._workers[i] = _Worker(self._context, self._generator)
    if task is not None:
      self._assign(self._workers[i], task.start)

  @property
  def process_ids(self) -> list[int]:
    """Of the workers alive now."""
    return [worker.process.pid for worker in self._workers if worker.process.pid is not None]
