"""Plain lines on standard error that say where a search stands, for people who wait; on a terminal see `live_front`."""

import sys
from typing import TextIO

from symformer_jax.results import Progress, Standing

# A line cannot be overwritten: one is printed each so many seconds.
PERIOD_S = 10.0
MAX_WIDTH = 100


class ProgressLine:
  """Shows a search's turns, few of them; to be called with where a search stands."""

  def __init__(self, *, is_quiet: bool = False, stream: TextIO | None = None):
    self._stream = sys.stderr if stream is None else stream
    self._is_quiet = is_quiet or self._stream is None  # as of a process without a console
    self._last_s = 0.0

  def __enter__(self) -> "ProgressLine":
    return self

  def __exit__(self, *_: object) -> None:
    pass

  def __call__(self, standing: Standing) -> None:
    if self._is_quiet or standing.seconds < self._last_s + PERIOD_S:
      return
    self._last_s = standing.seconds
    self._stream.write(describe(standing) + "\n")
    self._stream.flush()


def describe(progress: Progress, *, width: int = MAX_WIDTH) -> str:
  """`3.1 s, transformer, 256 samples: R2 0.998123, 2.5*sin(x)`, cut to so many characters."""
  samples = f", {progress.sampled} samples" if progress.sampled else ""
  best = f": R2 {progress.r2:.6f}, {progress.best}" if progress.r2 is not None else ""
  text = f"{progress.seconds:.1f} s, {progress.source}{samples}{best}"
  return text if len(text) <= width else text[: max(width - 4, 0)] + " ..."
