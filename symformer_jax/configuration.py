"""Turns the ConfigDicts of config files into frozen dataclasses, refusing what it does not know."""

from collections.abc import Mapping
import dataclasses
import numbers
import pathlib
import types
import typing
from typing import Any, TypeVar, cast

from symformer_jax import installation
from symformer_jax.errors import InputError, show, suggest
from symformer_jax.files import shorten

T = TypeVar("T")


def find_config(path: str) -> str:
  """A config file by name: as it is, or, for `configs/...`, that of this installation, from whatever folder.

  Raises:
    InputError: when there is none.
  """
  own = installation.folder() / path
  try:
    if pathlib.Path(path).is_file():
      return path
    if pathlib.PurePath(path).parts[:1] == ("configs",) and own.is_file():
      return str(own)
  except (OSError, ValueError):  # a name that no file can have
    pass
  raise InputError(f"no config file {shorten(path)!r}: expected a Python file with get_config(), such as "
                   "configs/small.py")


def build(cls: type[T], values: Mapping[str, Any], *, path: str = "config") -> T:
  """Builds a (nested) frozen dataclass from a mapping.

  Args:
    cls: a dataclass; fields that are dataclasses are built from nested mappings, lists become tuples at every depth.
    values: what a config file gave; missing keys keep their defaults.
    path: where we are, for messages.
  Raises:
    InputError: for an unknown key, with the nearest legal one, a missing one, or a value the class refuses.
  """
  _check_keys(values, path)
  hints = typing.get_type_hints(cls)
  names = [f.name for f in dataclasses.fields(cast(Any, cls)) if f.init]
  arguments = {}
  for key, value in values.items():
    if key not in names:
      raise InputError(f"unknown key {path}.{key}: {suggest(str(key), names)}")
    if dataclasses.is_dataclass(hints[key]):
      _check_keys(value, f"{path}.{key}")
      value = build(hints[key], value, path=f"{path}.{key}")
    arguments[key] = _without_lists(value)
    check_type(arguments[key], hints[key], f"{path}.{key}")
  for field in dataclasses.fields(cast(Any, cls)):
    has_default = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
    if field.init and not has_default and field.name not in arguments:
      raise InputError(f"missing key {path}.{field.name}")
  try:
    return cls(**arguments)
  except (TypeError, ValueError) as error:
    raise InputError(f"{path}: {error}") from None


def _check_keys(value: Any, path: str) -> None:
  if not callable(getattr(value, "items", None)):  # a ConfigDict is no Mapping
    raise InputError(f"{path}: expected its own keys and values, got {show(value)}")


# Kinds of numbers and text that a field may be declared as, and what is taken for it; a bool is no number here.
_TAKEN = {int: numbers.Integral, float: numbers.Real, str: str, bool: bool}


def check_type(value: Any, hint: Any, path: str) -> None:
  """Refuses what is no value of a field declared as a number, which nan is not, as text, or as one of these or
  None; and of one declared as a tuple what has not as many of such values, or others.

  Raises:
    InputError: names the field, by `path`.
  """
  if typing.get_origin(hint) is tuple:
    _check_items(value, typing.get_args(hint), path)
    return
  alternatives = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
  kinds = [kind for kind in alternatives if kind is not types.NoneType]
  if (value is None and types.NoneType in alternatives) or not all(kind in _TAKEN for kind in kinds):
    return
  if not any(isinstance(value, _TAKEN[kind]) and isinstance(value, bool) == (kind is bool) for kind in kinds):
    names = " or ".join(kind.__name__ for kind in kinds)
    raise InputError(f"{path}: expected a value of type {names}, got {show(value)}")
  if value != value:
    raise InputError(f"{path}: expected a number, got {show(value)}")


def _check_items(value: Any, hints: tuple[Any, ...], path: str) -> None:
  """`check_type` of each value of a tuple: any number of one kind, or one of each."""
  if not isinstance(value, tuple):
    raise InputError(f"{path}: expected a list of values, got {show(value)}")
  if hints[1:] == (...,):
    hints = hints[:1] * len(value)
  if len(value) != len(hints):
    raise InputError(f"{path}: expected {len(hints)} values, got {show(value)}")
  for item, hint in zip(value, hints, strict=True):
    check_type(item, hint, path)


def _without_lists(value: Any) -> Any:
  """Lists as tuples, within each other as well: a frozen dataclass is hashable."""
  return tuple(_without_lists(v) for v in value) if isinstance(value, list | tuple) else value


def to_dict(config: Any) -> dict[str, Any]:
  """A (nested) frozen dataclass as plain types that JSON and ConfigDict take: tuples become lists."""
  def plain(value: Any) -> Any:
    if isinstance(value, dict):
      return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, tuple | list) else value
  return plain(dataclasses.asdict(config))
