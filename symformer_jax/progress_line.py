"""Plain lines on standard error that say where a search stands, for people who wait; on a terminal see `live_front`."""

import contextlib
import re
import sys
from typing import TextIO

from symformer_jax.presentation.numerals import shorten
from symformer_jax.results import Progress, Standing

# A line cannot be overwritten: one is printed each so many seconds.
PERIOD_S = 10.0
MAX_WIDTH = 100
# Digits of constants, which are still to change.
NUM_DIGITS = 4
# Where a formula may end: not within a power.
_BREAKS = re.compile(r" |(?<!\*)[*/](?!\*)")


class ProgressLine:
  """Shows a search's turns, few of them; to be called with where a search stands."""

  def __init__(self, *, is_quiet: bool = False, stream: TextIO | None = None, max_time: float | None = None):
    self._stream = sys.stderr if stream is None else stream
    self._is_quiet = is_quiet or self._stream is None  # as of a process without a console
    self._max_time, self._last_s = max_time, 0.0

  def __enter__(self) -> "ProgressLine":
    return self

  def __exit__(self, *_: object) -> None:
    pass

  def __call__(self, standing: Standing) -> None:
    if self._is_quiet or standing.seconds < self._last_s + PERIOD_S:
      return
    self._last_s = standing.seconds
    with contextlib.suppress(OSError):  # a stream that takes nothing more ends no search
      self._stream.write(describe(standing, max_time=self._max_time) + "\n")
      self._stream.flush()


def describe(progress: Progress, *, width: int = MAX_WIDTH, max_time: float | None = None) -> str:
  """`3.1 s, 16.9 s left, transformer, 256 samples: R2 0.998123, 2.5*sin(x)`, cut to so many characters."""
  samples = f", {progress.sampled} samples" if progress.sampled else ""
  where = f"{describe_time(progress.seconds, max_time)}, {progress.source}{samples}"
  if progress.r2 is None:
    return _cut(where, width)
  begin = f"{where}: R2 {progress.r2:.6f}, "
  return _cut(begin, width) if len(begin) > width else begin + _cut(
    shorten(progress.best, NUM_DIGITS), width - len(begin))


def describe_time(seconds: float, max_time: float | None) -> str:
  """`12.1 s`, and with a limit `12.1 s, 17.9 s left`."""
  return f"{seconds:.1f} s" if max_time is None else f"{seconds:.1f} s, {max(max_time - seconds, 0.0):.1f} s left"


def _cut(text: str, width: int) -> str:
  """Cut before an operator, where there is one in the second half of what has room."""
  if len(text) <= width:
    return text
  room = max(width - 4, 0)
  places = [found.start() for found in _BREAKS.finditer(text) if found.start() <= room]
  place = places[-1] if places and 2 * places[-1] >= room else room
  return f"{text[:place].rstrip(' +-')} ..."
