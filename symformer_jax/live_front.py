"""The front of a search as a table that is drawn anew after every turn, on a terminal; elsewhere plain lines."""

from collections.abc import Sequence
import contextlib
import os
import sys
from typing import Any, TextIO

from symformer_jax.presentation.numerals import format_r2, shorten
from symformer_jax.progress_line import ProgressLine, describe_time
from symformer_jax.results import Standing

# Lines of the terminal that the table's frame, its header and its title take, and one for the cursor.
NUM_OTHER_LINES = 6
# Signs that take the columns of numbers, such as `1 - 1.2e-08`, and the frame of all three columns.
COLUMN_WIDTH, FRAME_WIDTH = 11, 10
# Digits of constants while they are still to change.
NUM_DIGITS = 6


def show_progress(
  *, is_quiet: bool = False, max_time: float | None = None, names: Sequence[str] = (), stream: TextIO | None = None
) -> "LiveFront | ProgressLine":
  """What shows people where a search stands: a callback of `search`, and a context to call it in.

  Args:
    is_quiet: whether nothing is shown.
    max_time: of the search, seconds; names: of the data sets, where there are several.
    stream: standard error by default. A notebook's is no terminal, and gets plain lines.
  """
  stream = sys.stderr if stream is None else stream
  is_terminal = stream is not None and getattr(stream, "isatty", bool)() and os.environ.get("TERM") != "dumb"
  if is_quiet or not is_terminal:
    return ProgressLine(is_quiet=is_quiet, stream=stream, max_time=max_time)
  return LiveFront(stream, max_time=max_time, names=names)


class LiveFront:
  """The table; taken away at the end of the `with` block, however that ends."""

  def __init__(self, stream: TextIO, *, max_time: float | None = None, names: Sequence[str] = ()):
    # Imported late: a search that shows nothing needs none of it.
    from rich import console, live

    self._max_time, self._names = max_time, tuple(names)
    self._console = console.Console(file=stream, force_terminal=True, force_jupyter=False)
    # Without a thread of its own: nothing changes between two turns, and Ctrl-C finds nothing half-drawn.
    self._live = live.Live(console=self._console, auto_refresh=False, transient=True)

  def __enter__(self) -> "LiveFront":
    with contextlib.suppress(OSError):  # a terminal that has gone ends no search
      self._live.__enter__()
    return self

  def __exit__(self, *error: Any) -> None:
    with contextlib.suppress(OSError):
      self._live.__exit__(*error)

  def __call__(self, standing: Standing) -> None:
    with contextlib.suppress(OSError):
      self._live.update(self._drawing(standing), refresh=True)

  def _drawing(self, standing: Standing) -> Any:
    from rich import console, table as rich_table, text

    # Text, not str: brackets in a name or a formula are no markup.
    table = rich_table.Table()
    table.add_column("complexity", justify="right", width=COLUMN_WIDTH)
    table.add_column("R2", justify="right", width=COLUMN_WIDTH)
    table.add_column("formula", no_wrap=True)
    room = max(self._console.width - 2 * COLUMN_WIDTH - FRAME_WIDTH, 1)
    num_lines = max(self._console.height - NUM_OTHER_LINES, 1)
    for step in standing.front[-num_lines:]:
      formula = text.Text(shorten(step.expression, NUM_DIGITS))
      formula.truncate(room, overflow="ellipsis")  # cut by the table, it would leave other columns no place
      table.add_row(str(step.complexity), format_r2(step.r2), formula)
    return console.Group(text.Text(self._title(standing), no_wrap=True, overflow="ellipsis"), table)

  def _title(self, standing: Standing) -> str:
    """`tide: 12.1 s, 17.9 s left, library, 256 samples`."""
    name = f"{self._names[standing.index]}: " if len(self._names) > 1 else ""
    samples = f", {standing.sampled} samples" if standing.sampled else ""
    return f"{name}{describe_time(standing.seconds, self._max_time)}, {standing.source}{samples}"
