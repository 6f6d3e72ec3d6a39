"""Wall-clock time of a search by part, and what of it went into compiling."""

import threading
import time
from typing import Any

import jax

from symformer_jax.results import Seconds

PARTS = ("encode", "decode", "deduplicate", "refine", "recombine", "evolve", "select")


class _Union:
  """Seconds of intervals that come in the order of their ends, what they share counted once: what is traced inside
  something else is told first, and then again as a part of that.
  """

  def __init__(self) -> None:
    self.seconds = 0.0
    self._apart: list[tuple[float, float]] = []
    self._lock = threading.Lock()

  def add(self, start: float, end: float) -> None:
    with self._lock:
      while self._apart and self._apart[-1][1] > start:
        first, last = self._apart.pop()
        start, self.seconds = min(start, first), self.seconds - (last - first)
      self._apart.append((start, end))
      self.seconds += end - start


class Clock:
  """Starts when it is made; `measure` adds the time of a `with` block to a part."""

  _compiling = _Union()
  _is_listening = False
  _first = time.perf_counter()  # before it nothing was compiled

  def __init__(self) -> None:
    self._listen()
    self.start, self.compiled_before = time.perf_counter(), Clock._compiling.seconds
    self.parts = dict.fromkeys(PARTS, 0.0)

  @classmethod
  def _listen(cls) -> None:
    if not cls._is_listening:
      jax.monitoring.register_event_duration_secs_listener(cls._on_event)
      cls._is_listening = True

  @classmethod
  def _on_event(cls, event: str, duration_secs: float, **_: Any) -> None:
    if event.startswith("/jax/core/compile/"):
      end = time.perf_counter()
      # JAX measures by the time of day, which may be set meanwhile, forwards or back.
      start = min(max(end - duration_secs, cls._first), end)
      cls._compiling.add(start, end)

  def elapsed(self) -> float:
    return time.perf_counter() - self.start

  def compiled(self) -> float:
    return Clock._compiling.seconds - self.compiled_before

  def measure(self, part: str) -> "_Part":
    return _Part(self, part)

  def seconds(self) -> Seconds:
    total, compiled = self.elapsed(), self.compiled()
    return Seconds(compile=compiled, **self.parts, search=max(total - compiled, 0.0), total=total)


class _Part:
  """Adds the time of a `with` block to one part of a clock."""

  def __init__(self, clock: Clock, name: str):
    self.clock, self.name = clock, name

  def __enter__(self) -> None:
    self.start = time.perf_counter()

  def __exit__(self, *_: object) -> None:
    self.clock.parts[self.name] += time.perf_counter() - self.start
