"""Turns the ConfigDicts of config files into frozen dataclasses, refusing what it does not know."""

from collections.abc import Mapping
import dataclasses
import typing
from typing import Any, TypeVar

from symformer_jax.errors import InputError, suggest

T = TypeVar("T")


def build(cls: type[T], values: Mapping[str, Any], *, path: str = "config") -> T:
  """Builds a (nested) frozen dataclass from a mapping.

  Args:
    cls: a dataclass; fields that are dataclasses are built from nested mappings, lists become tuples at every depth.
    values: what a config file gave; missing keys keep their defaults.
    path: where we are, for messages.
  Raises:
    InputError: for an unknown key, with the nearest legal one, or a value the class refuses.
  """
  hints = typing.get_type_hints(cls)
  names = [f.name for f in dataclasses.fields(cls) if f.init]
  arguments = {}
  for key, value in values.items():
    if key not in names:
      raise InputError(f"unknown key {path}.{key}: {suggest(key, names)}")
    if dataclasses.is_dataclass(hints[key]):
      if not callable(getattr(value, "items", None)):  # a ConfigDict is no Mapping
        raise InputError(f"{path}.{key}: expected its own keys and values, got {value!r}")
      value = build(hints[key], value, path=f"{path}.{key}")
    arguments[key] = _without_lists(value)
  try:
    return cls(**arguments)
  except (TypeError, ValueError) as error:
    raise InputError(f"{path}: {error}") from None


def _without_lists(value: Any) -> Any:
  """Lists as tuples, within each other as well: a frozen dataclass is hashable."""
  return tuple(_without_lists(v) for v in value) if isinstance(value, list | tuple) else value


def to_dict(config: Any) -> dict[str, Any]:
  """A (nested) frozen dataclass as plain types that JSON and ConfigDict take: tuples become lists."""
  def plain(value):
    if isinstance(value, dict):
      return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, tuple | list) else value
  return plain(dataclasses.asdict(config))
