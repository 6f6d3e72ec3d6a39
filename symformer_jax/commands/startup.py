"""Ctrl-C and SIGTERM while a command's imports are under way: one line, not a traceback of some library.

Imported before everything else by every command, and light: the imports that follow take seconds.
"""

import os
import signal
from typing import NoReturn

STOPPED = 75  # as runner.STOPPED, whose imports would be some of those that this has to come before


def stop_quietly() -> None:
  """Until `listen_again`, signals end the process at once; a signal that is ignored stays so."""
  for number in (signal.SIGINT, signal.SIGTERM):
    if signal.getsignal(number) != signal.SIG_IGN:
      signal.signal(number, _stop)


def listen_again() -> None:
  """Ctrl-C raises KeyboardInterrupt again; nothing changes where it does already."""
  if signal.getsignal(signal.SIGINT) is _stop:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _stop(*_: object) -> NoReturn:
  # Not by an exception, which the importing library may take for its own; nothing is open yet.
  os.write(2, b"stopped\n")
  os._exit(STOPPED)
