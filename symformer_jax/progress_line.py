"""One line on standard error that says where a search stands, for people who wait."""

import shutil
import sys
from typing import TextIO

from symformer_jax.results import Progress

# Elsewhere than on a terminal a line cannot be overwritten: one is printed each so many seconds.
PERIOD_S = 10.0
# A line that wraps would leave a part behind: shorter still where the terminal is narrower.
MAX_WIDTH = 100


class ProgressLine:
  """Shows a search's turns; to be called with the number of the data set and where its search stands.

  On a terminal the line is overwritten, and wiped at the end of the `with` block; elsewhere plain lines, few.
  """

  def __init__(self, *, is_quiet: bool = False, stream: TextIO | None = None):
    self._stream = sys.stderr if stream is None else stream
    self._is_quiet = is_quiet or self._stream is None  # as of a process without a console
    self._is_terminal = not self._is_quiet and getattr(self._stream, "isatty", bool)()
    self._last_s = 0.0

  def __enter__(self) -> "ProgressLine":
    return self

  def __exit__(self, *_: object) -> None:
    if self._is_terminal:
      self._stream.write("\r\x1b[K")
      self._stream.flush()

  def __call__(self, index: int, progress: Progress) -> None:
    if self._is_quiet or not self._is_terminal and progress.seconds < self._last_s + PERIOD_S:
      return
    self._last_s = progress.seconds
    width = min(MAX_WIDTH, shutil.get_terminal_size().columns - 1) if self._is_terminal else MAX_WIDTH
    text = describe(progress, width=width)
    self._stream.write(f"\r\x1b[K{text}" if self._is_terminal else f"{text}\n")
    self._stream.flush()


def describe(progress: Progress, *, width: int = MAX_WIDTH) -> str:
  """`3.1 s, transformer, 256 samples: R2 0.998123, 2.5*sin(x)`, cut to so many characters."""
  samples = f", {progress.sampled} samples" if progress.sampled else ""
  best = f": R2 {progress.r2:.6f}, {progress.best}" if progress.r2 is not None else ""
  text = f"{progress.seconds:.1f} s, {progress.source}{samples}{best}"
  return text if len(text) <= width else text[: max(width - 4, 0)] + " ..."
