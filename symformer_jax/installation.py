"""Where the programs of this installation lie: `launch`, `data_gen` and `configs`.

In a checkout they are folders beside this package. Their names are too common for an environment's top level, so a
wheel has them inside this package, in a folder that is no package itself: the project's own commands put it on their
path, nobody else sees it, and one text of imports holds in both.
"""

import importlib
import pathlib
import pickle
import sys
from typing import Any

_PACKAGE = pathlib.Path(__file__).parent


def folder() -> pathlib.Path:
  """The folder that holds launch, data_gen and configs."""
  inside = _PACKAGE / "_apps"
  return inside if (inside / "configs").is_dir() else _PACKAGE.parent


def add_to_path() -> None:
  """Makes the programs importable in this process and in those it spawns."""
  # First: another package's `launch` is not meant by our commands.
  if str(folder()) not in sys.path:
    sys.path.insert(0, str(folder()))


def dump(module: str, name: str, *arguments: Any) -> tuple[Any, ...]:
  """What `__reduce__` of an object of the programs returns, which processes are to read that have no such path yet."""
  return _load, (module, name, pickle.dumps(arguments))


def _load(module: str, name: str, arguments: bytes) -> Any:
  add_to_path()
  return getattr(importlib.import_module(module), name)(*pickle.loads(arguments))
