"""Wall-clock time of a search by part, and what of it went into compiling."""

import time
from typing import Any

import jax

from symformer_jax.results import Seconds

PARTS = ("encode", "decode", "deduplicate", "refine", "recombine", "evolve", "select")


class Clock:
  """Starts when it is made; `measure` adds the time of a `with` block to a part."""

  _compile_s = 0.0
  _is_listening = False

  def __init__(self) -> None:
    self._listen()
    self.start, self.compiled_before = time.perf_counter(), Clock._compile_s
    self.parts = dict.fromkeys(PARTS, 0.0)

  @classmethod
  def _listen(cls) -> None:
    if not cls._is_listening:
      jax.monitoring.register_event_duration_secs_listener(cls._on_event)
      cls._is_listening = True

  @classmethod
  def _on_event(cls, event: str, duration_secs: float, **_: Any) -> None:
    if event.startswith("/jax/core/compile/"):
      cls._compile_s += duration_secs

  def elapsed(self) -> float:
    return time.perf_counter() - self.start

  def measure(self, part: str) -> "_Part":
    return _Part(self, part)

  def seconds(self) -> Seconds:
    total, compiled = self.elapsed(), Clock._compile_s - self.compiled_before
    return Seconds(compile=compiled, **self.parts, search=max(total - compiled, 0.0), total=total)


class _Part:
  """Adds the time of a `with` block to one part of a clock."""

  def __init__(self, clock: Clock, name: str):
    self.clock, self.name = clock, name

  def __enter__(self) -> None:
    self.start = time.perf_counter()

  def __exit__(self, *_: object) -> None:
    self.clock.parts[self.name] += time.perf_counter() - self.start
