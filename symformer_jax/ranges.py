"""Ranges that the numbers of a config lie in, as a table by the names of its fields, and the check of all of them."""

from collections.abc import Mapping
import dataclasses
import functools
from typing import Any, NamedTuple

from symformer_jax.errors import InputError, show

# Beyond it a number is infinite in single precision.
LARGEST = 3.4e38


class Range(NamedTuple):
  """Numbers from `least` to `most`.

  Attributes:
    is_above: whether `least` itself is left out; is_below: whether `most` is.
    none: what None stands for, where a field may be it; said in the message.
  """

  least: float
  most: float = LARGEST
  is_above: bool = False
  is_below: bool = False
  none: str = ""

  def holds(self, value: Any) -> bool:
    """Whether a number lies in it; nan does nowhere."""
    is_high = value > self.least if self.is_above else value >= self.least
    return bool(is_high and (value < self.most if self.is_below else value <= self.most))

  def __str__(self) -> str:
    least, most = (str(end) if isinstance(end, int) else f"{end:g}" for end in (self.least, self.most))
    if self.is_above or self.is_below:
      above, below = "above" if self.is_above else "at least", "below" if self.is_below else "at most"
      text = f"be {above} {least} and {below} {most}"
    else:
      text = f"lie between {least} and {most}"
    return text + (f", or None for {self.none}" if self.none else "")


# Shares of a whole.
SHARE = Range(0, 1)


def check_ranges(config: Any, ranges: Mapping[str, Range]) -> None:
  """Refuses a config whose numbers lie elsewhere; those of a tuple each, None nowhere.

  Args:
    config: a (nested) dataclass.
    ranges: by the name of a field, with dots before those of a part's.
  Raises:
    InputError: names the first field.
  """
  for name, allowed in ranges.items():
    value = functools.reduce(getattr, name.split("."), config)
    for number in value if isinstance(value, tuple) else (value,):
      if number is not None and not allowed.holds(number):
        raise InputError(f"{name} must {allowed}, got {show(number)}")


# Whole numbers that the device takes.
_COUNT = Range(0, 2**31 - 1)


def check_counts(config: Any, path: str = "") -> None:
  """Refuses a config of whose single whole numbers one is below 0 or too large to be one, whatever it counts.

  Args:
    config: a (nested) dataclass.
    path: where it stands in another, with a dot behind it, for messages.
  Raises:
    InputError: names the first field.
  """
  for field in dataclasses.fields(config):
    value = getattr(config, field.name)
    if value is field.default:  # of most of a thousand nothing else was said
      continue
    if dataclasses.is_dataclass(value):
      check_counts(value, f"{path}{field.name}.")
    elif field.type in (int, int | None) and value is not None and not _COUNT.holds(value):
      raise InputError(f"{path}{field.name} must {_COUNT}, got {show(value)}")


def numbers_of(cls: type) -> list[str]:
  """Names of the fields of a (nested) dataclass that are numbers, may be None, or hold some: what a table covers."""
  found = []
  for field in dataclasses.fields(cls):
    default = field.default
    if dataclasses.is_dataclass(default):
      found += [f"{field.name}.{inner}" for inner in numbers_of(type(default))]
    elif field.type in (int, float, int | None, float | None, tuple[int, ...], tuple[float, ...]):
      found.append(field.name)
  return found
