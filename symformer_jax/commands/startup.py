"""What a command settles before its imports: no traceback of a library for Ctrl-C, no banners and hints of theirs.

Imported before everything else by every command, and light: the imports that follow take seconds.
"""

import os
import signal
from typing import NoReturn
import warnings

STOPPED = 75  # as runner.STOPPED, whose imports would be some of those that this has to come before


def prepare() -> None:
  """Until `listen_again`, signals end the process at once; libraries keep to themselves what no user can mend."""
  # XLA logs slow compilations as errors; what fails is an exception. Read when JAX is loaded.
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
  # Pandas' advice on other packages' versions, while it is imported.
  warnings.filterwarnings("ignore", module=r"pandas(\.|$)")
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
