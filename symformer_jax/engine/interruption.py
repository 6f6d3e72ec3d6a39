"""Ends a turn in progress where time is up or somebody has asked to stop.

A turn takes seconds where there are many columns. What takes long asks `check` between its steps, a fraction of a
second each; nobody has to hand a clock down to it.

Ctrl-C is such a wish: an exception that Python raises wherever it happens to be would be lost where that is a callback
of the garbage collector, of which JAX has one, and would take with it what has been found.
"""

from collections.abc import Callable, Iterator
import contextlib
import contextvars
import signal
import threading
from types import FrameType


class Interrupted(Exception):
  """Raised by `check`; whoever has begun `ending_when` catches it."""


_is_over: contextvars.ContextVar[Callable[[], bool]] = contextvars.ContextVar("is_over", default=lambda: False)


@contextlib.contextmanager
def ending_when(is_over: Callable[[], bool]) -> Iterator[None]:
  """What runs inside is ended by its next `check` once this is true."""
  token = _is_over.set(is_over)
  try:
    yield
  finally:
    _is_over.reset(token)


def check() -> None:
  """Raises `Interrupted` where what is in progress is to end."""
  if _is_over.get()():
    raise Interrupted


class CtrlC:
  """A handler of SIGINT: the first is a wish that `is_wished` tells of, each further one raises KeyboardInterrupt."""

  def __init__(self) -> None:
    self._is_wished = False

  def is_wished(self) -> bool:
    return self._is_wished

  def __call__(self, number: int, frame: FrameType | None) -> None:
    if self._is_wished:
      signal.default_int_handler(number, frame)
    self._is_wished = True


@contextlib.contextmanager
def noting_ctrl_c() -> Iterator[CtrlC]:
  """Inside, the first Ctrl-C raises nothing. One `with` inside another shares its wish.

  Signals belong to the main thread, and a handler that somebody has set stays what it is: there nothing changes, and
  nothing is ever wished.
  """
  own = CtrlC()
  if threading.current_thread() is not threading.main_thread():
    yield own
    return
  before = signal.getsignal(signal.SIGINT)
  if isinstance(before, CtrlC) or before is not signal.default_int_handler:
    yield before if isinstance(before, CtrlC) else own
    return
  signal.signal(signal.SIGINT, own)
  try:
    yield own
  finally:
    signal.signal(signal.SIGINT, before)
