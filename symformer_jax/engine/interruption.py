"""Ends a turn in progress where time is up or somebody has asked to stop.

A turn takes seconds where there are many columns. What takes long asks `check` between its steps, a fraction of a
second each; nobody has to hand a clock down to it.
"""

from collections.abc import Callable, Iterator
import contextlib
import contextvars


class Interrupted(Exception):
  """Raised by `check`; whoever has begun `ending_when` catches it."""


_is_over: contextvars.ContextVar[Callable[[], bool]] = contextvars.ContextVar("is_over", default=lambda: False)


@contextlib.contextmanager
def ending_when(is_over: Callable[[], bool]) -> Iterator[None]:
  """What runs inside is ended by its next `check` once this is true, or what is asked around it."""
  around = _is_over.get()
  token = _is_over.set(lambda: is_over() or around())
  try:
    yield
  finally:
    _is_over.reset(token)


def check() -> None:
  """Raises `Interrupted` where what is in progress is to end."""
  if _is_over.get()():
    raise Interrupted
