"""What the extras of the package bring, and the error where a command needs one that is not installed."""

import importlib.util
import logging
import os

from symformer_jax.errors import InputError

# Extra -> modules that code imports; setup.cfg has the packages.
MODULES = {"train": ("grain", "orbax", "tensorboardX"), "plot": ("matplotlib",), "units": ("pint",),
           "beam": ("apache_beam",)}


def find_missing(extra: str) -> list[str]:
  """Modules of an extra that are not installed."""
  return [name for name in MODULES[extra] if importlib.util.find_spec(name) is None]


def require(extra: str, *, who: str = "this command") -> None:
  """Refuses what cannot be done without an extra, before anything is begun.

  Args:
    extra: one of `MODULES`; who: what needs it, for the message.
  Raises:
    InputError: when a module of it is missing.
  """
  if missing := find_missing(extra):
    raise InputError(f"{who} needs {', '.join(missing)}: pip install '.[{extra}]'")
  if extra == "plot":  # of matplotlib's own files, and of a screen that nobody asks for, users hear nothing
    os.environ["MPLBACKEND"] = "agg"
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
