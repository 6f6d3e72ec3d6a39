"""Reads what steers a search from a config file: `FILE` or `FILE:NAME`, as in configs/search."""

from collections.abc import Callable, Mapping
import functools
import inspect
import runpy
from typing import Any

from ml_collections import ConfigDict

from symformer_jax import configuration
from symformer_jax.engine.config import SearchConfig
from symformer_jax.errors import InputError, describe


def load_search_config(spec: str) -> SearchConfig:
  """The config that a file's `get_config()`, or `get_config(NAME)`, describes; what it does not say is as by default.

  The file is run: as a config of training, it is the user's own program. Not by the loader of those, which belongs to a
  flag and keeps one file's names for the next.
  Args:
    spec: `FILE` or `FILE:NAME`.
  Raises:
    InputError: for what is no text, a file that is missing or fails, an unknown name, or an unknown key, with the
      nearest legal one.
  """
  if not isinstance(spec, str):
    raise InputError(f"search config: expected FILE or FILE:NAME as text, got {spec!r}")
  path, colon, name = spec.partition(":")
  get_config, arguments = _get_config_of(path), (name,) if colon else ()
  try:
    _signature(path, get_config).bind(*arguments)
  except TypeError:
    wanted = f"{path} takes no :NAME" if colon else f"{path} has several configs, expected {path}:NAME"
    raise InputError(f"search config {spec!r}: {wanted}") from None
  values = _run(path, lambda: get_config(*arguments))
  if not isinstance(values, ConfigDict | Mapping):
    got = type(values).__name__
    raise InputError(f"search config {spec!r}: expected get_config() to return a ConfigDict, got {got}")
  return _run(path, lambda: configuration.build(SearchConfig, values, path="search config"))


def _get_config_of(path: str) -> Callable[..., Any]:
  names = _run(path, functools.partial(runpy.run_path, configuration.find_config(path)))
  if not callable(names.get("get_config")):
    raise InputError(f"search config {path!r}: expected a function get_config")
  return names["get_config"]


def _signature(path: str, get_config: Callable[..., Any]) -> inspect.Signature:
  try:
    return inspect.signature(get_config)
  except ValueError:  # as of a class derived from dict
    raise InputError(f"search config {path!r}: expected a function get_config, got {get_config!r}") from None


def _run(path: str, ask: Callable[[], Any]) -> Any:
  """What the user's file answers; whatever goes wrong there is the user's to mend."""
  try:
    return ask()
  except (InputError, KeyboardInterrupt):
    raise
  except BaseException as error:  # a program of the user's: anything may go wrong in it
    raise InputError(f"search config {path!r}: {describe(error)}") from error
