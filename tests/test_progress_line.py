"""What shows where a search stands: plain lines, and on a terminal the front."""

import contextlib
import errno
import io

import pytest
from rich import text

from symformer_jax.live_front import NUM_DIGITS, LiveFront, show_progress
from symformer_jax.presentation.numerals import shorten
from symformer_jax.progress_line import MAX_WIDTH, ProgressLine, describe
from symformer_jax.results import Progress, Standing, Step

STEPS = (Step(1, 0.1, "2.5"), Step(3, 0.99812345, "sin([x])"))


class Terminal(io.StringIO):
  def isatty(self):
    return True


@pytest.fixture(autouse=True)
def size(monkeypatch):
  monkeypatch.setenv("TERM", "xterm")
  monkeypatch.setenv("COLUMNS", "80")
  monkeypatch.setenv("LINES", "24")


def _standing(seconds, best="sin(x)", index=0, steps=STEPS):
  return Standing(256, best, 0.99812345, "transformer", True, seconds, index, lambda: steps)


def _plain(written):
  return text.Text.from_ansi(written).plain


def test_a_terminal_shows_the_front_after_every_turn_and_is_left_clean():
  stream = Terminal()
  with show_progress(stream=stream, max_time=20.0) as shown:
    shown(_standing(1.5))
    first = _plain(stream.getvalue())
    shown(_standing(21.0))
  assert "1.5 s, 18.5 s left, transformer, 256 samples" in first
  assert " 1 │    0.100000 │ 2.5 " in first
  assert "3 │    0.998123 │ sin([x])" in first  # brackets are no markup
  assert "21.0 s, 0.0 s left" in _plain(stream.getvalue())
  written = stream.getvalue()
  assert "\x1b[?25l" in written and written.endswith("\x1b[2K")  # the last line wiped
  assert written.rindex("\x1b[?25h") > written.rindex("\x1b[?25l")  # the cursor is there again


def test_a_stream_that_takes_nothing_more_ends_no_search():
  class Gone(Terminal):
    def write(self, text):
      raise OSError(errno.EIO, "Input/output error")

  with show_progress(stream=Gone()) as shown:
    shown(_standing(1.5))
  with open("/dev/full", "w") as full:
    ProgressLine(stream=full)(_standing(21.0))
    with contextlib.suppress(OSError):  # at its end the stream tries again
      full.close()


def test_what_ends_a_search_leaves_the_terminal_clean():
  for error in (KeyboardInterrupt, RuntimeError):
    stream = Terminal()
    with pytest.raises(error), show_progress(stream=stream) as shown:
      shown(_standing(1.5))
      raise error
    written = stream.getvalue()
    assert written.endswith("\x1b[2K") and written.rindex("\x1b[?25h") > written.rindex("\x1b[?25l")


def test_of_a_long_front_the_accurate_end_fits_the_terminal(monkeypatch):
  monkeypatch.setenv("LINES", "12")
  stream = Terminal()
  with show_progress(stream=stream, names=["tide", "wind"]) as shown:
    shown(_standing(1.5, index=1, steps=tuple(Step(i, 0.5, f"x + {i}" + "y" * 200) for i in range(30))))
    lines = _plain(stream.getvalue()).splitlines()
  assert len(lines) <= 12 and max(map(len, lines)) <= 80
  assert "wind: 1.5 s, transformer" in lines[0] and "x + 29y" in lines[-2]
  assert not any("x + 2y" in line for line in lines)


def test_a_long_formula_leaves_the_other_columns_their_place():
  stream = Terminal()
  with show_progress(stream=stream) as shown:
    shown(_standing(1.5, steps=(Step(12, 1 - 1.2e-8, "x*" * 100), Step(13, 0.5, "1"))))
    lines = _plain(stream.getvalue()).splitlines()
  assert "│          12 │ 1 - 1.2e-08 │ x*x*" in lines[-3] and lines[-3].endswith("… │") and len(lines[-3]) == 80
  assert "complexity" in lines[2] and "formula" in lines[2]


@pytest.mark.parametrize(("formula", "shown"), [
  ("1406.904039323923/volume + 2*x1 - 1e-05", "1406.9/volume + 2*x1 - 1e-05"),
  ("0.22582039150787514*`a 1.23456789` + 3.000000001e-12", "0.22582*`a 1.23456789` + 3e-12"),
  ("x**(-0.9964969176434194)", "x**(-0.996497)"), ("x_1234567 + 1", "x_1234567 + 1")])
def test_constants_that_still_change_have_few_digits(formula, shown):
  assert shorten(formula, NUM_DIGITS) == shown


def test_elsewhere_a_plain_line_now_and_then(monkeypatch):
  for stream in (io.StringIO(), Terminal()):
    if isinstance(stream, Terminal):
      monkeypatch.setenv("TERM", "dumb")  # cannot take back what it has shown
    with show_progress(stream=stream) as shown:
      for seconds in (1, 9, 11, 12, 19, 22):
        shown(_standing(seconds, "x" * 500))
    lines = stream.getvalue().splitlines()
    assert [line.split(",")[0] for line in lines] == ["11.0 s", "22.0 s"]
    assert all("\x1b" not in line and len(line) <= MAX_WIDTH for line in lines)


def test_a_plain_line_says_how_much_time_is_left_and_few_digits():
  stream = io.StringIO()
  with show_progress(stream=stream, max_time=20.0) as shown:
    shown(_standing(11.5, "1406.904039323923/volume + 1e-05"))
    shown(_standing(21.6, "2.5"))
  assert stream.getvalue().splitlines() == [
    "11.5 s, 8.5 s left, transformer, 256 samples: R2 0.998123, 1407/volume + 1e-05",
    "21.6 s, 0.0 s left, transformer, 256 samples: R2 0.998123, 2.5"]


@pytest.mark.parametrize(("formula", "end"), [
  ("x + 22*y - 333*z", "x + 22*y - 333*z"), ("x + 22*y - 333*zed", "x + 22*y ..."),
  ("x*y**2*z**3*w**4*u", "x*y**2*z**3 ..."), ("x/(y + z*w - v/u)*t", "x/(y + z*w ..."),
  ("abcdefghijklmnopqrstu", "abcdefghijklm ..."), ("x + sin(abcdefghijkl)", "x + sin(abcde ...")])
def test_a_long_line_ends_before_an_operator(formula, end):
  start = "1.0 s, library: R2 0.500000, "
  assert describe(Progress(0, formula, 0.5, "library", False, 1.0), width=len(start) + 17) == start + end


def test_a_plain_line_needs_no_front():
  def fail():
    raise AssertionError("asked for")

  ProgressLine(stream=io.StringIO())(Standing(0, "x", 0.5, "library", True, 11.0, 0, fail))


def test_quiet_is_silent():
  for stream in (Terminal(), io.StringIO()):
    with show_progress(is_quiet=True, stream=stream) as shown:
      shown(_standing(100))
    assert stream.getvalue() == ""


def test_without_a_console_nothing_is_shown(monkeypatch):
  monkeypatch.setattr("sys.stderr", None)
  with show_progress() as shown:
    shown(_standing(100))
  assert not isinstance(shown, LiveFront)


def test_before_anything_is_found_there_is_no_r2():
  assert describe(Progress(0, "", None, "library", False, 2.0)) == "2.0 s, library"
