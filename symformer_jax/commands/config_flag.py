"""The flag --config of commands whose config is a program, by ml_collections: found from any folder, read, checked."""

from collections.abc import Sequence
from typing import Any

from absl import flags

from symformer_jax import configuration
from symformer_jax.errors import InputError

_NAME = "config"


def locate(argv: Sequence[str]) -> list[str]:
  """Arguments whose --config=configs/... names the file of this installation where there is no such file here."""
  found = list(argv)
  for i, argument in enumerate(found):
    flag, equals, value = argument.partition("=")
    if flag.lstrip("-") != _NAME or not flag.startswith("-"):
      continue
    place = i if equals else i + 1
    path, colon, name = (value if equals else found[place] if place < len(found) else "").partition(":")
    try:
      path = configuration.find_config(path)
    except InputError:
      continue  # `read` says so, where errors are one line
    found[place] = f"{flag}={path}{colon}{name}" if equals else f"{path}{colon}{name}"
  return found


def read(flag: Any) -> dict[str, Any]:
  """The values of a config file's flag.

  Raises:
    InputError: when the file is missing, or its get_config() gave no ConfigDict.
  """
  try:
    return flag.value.to_dict()
  except OSError as error:  # ml_collections keeps what went wrong with the file until its values are asked for
    from ml_collections import config_flags  # of the few commands that have such a flag

    # Of a missing file it says a paragraph.
    configuration.find_config(config_flags.get_config_filename(flags.FLAGS[flag.name]).partition(":")[0])
    raise InputError(f"--{flag.name}: {' '.join(str(error.__cause__ or error).split())}") from None
  except AttributeError:
    got = type(flag.value).__name__
    raise InputError(f"--{flag.name}: expected get_config() to return a ConfigDict, got {got}") from None
