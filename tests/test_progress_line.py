"""The line that shows where a search stands."""

import io

from symformer_jax.progress_line import MAX_WIDTH, ProgressLine, describe
from symformer_jax.results import Progress


class Terminal(io.StringIO):
  def isatty(self):
    return True


def _progress(seconds, best="sin(x)"):
  return Progress(256, best, 0.99812345, "transformer", True, seconds)


def test_a_terminal_shows_every_turn_in_one_line_and_wipes_it():
  stream = Terminal()
  with ProgressLine(stream=stream) as line:
    line(0, _progress(0.5))
    line(0, _progress(1.5, "x" * 500))
  written = stream.getvalue()
  assert "\n" not in written and "0.5 s, transformer, 256 samples: R2 0.998123, sin(x)" in written
  assert written.endswith("\r\x1b[K") and len(written) < 3 * MAX_WIDTH


def test_elsewhere_a_plain_line_now_and_then():
  stream = io.StringIO()
  with ProgressLine(stream=stream) as line:
    for seconds in (1, 9, 11, 12, 19, 22):
      line(0, _progress(seconds))
  assert [text.split(",")[0] for text in stream.getvalue().splitlines()] == ["11.0 s", "22.0 s"]


def test_quiet_is_silent():
  for stream in (Terminal(), io.StringIO()):
    with ProgressLine(is_quiet=True, stream=stream) as line:
      line(0, _progress(100))
    assert stream.getvalue() == ""


def test_before_anything_is_found_there_is_no_r2():
  assert describe(Progress(0, "", None, "library", False, 2.0)) == "2.0 s, library"
