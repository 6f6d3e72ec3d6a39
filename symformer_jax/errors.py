"""The few exceptions a user sees. Commands print them as one line and leave with exit code 2."""

from collections.abc import Iterable
import difflib


class SymFormerError(Exception):
  """Base of all errors with a message meant for the user."""


class InputError(SymFormerError, ValueError):
  """Unusable arguments or data: says what is wrong, what was expected and what was got."""


class ExpressionError(InputError):
  """Formula text that cannot be read, with the position of the trouble."""


class ModelError(SymFormerError):
  """An unknown, damaged or foreign model or checkpoint."""


class DataError(SymFormerError):
  """A damaged or foreign data shard, named."""


def suggest(name: object, known: Iterable[str]) -> str:
  """The end of a message about an unknown name: the nearest legal one, or all where none is near."""
  known = tuple(known)
  close = difflib.get_close_matches(name if isinstance(name, str) else show(name), known)
  return f"did you mean {close[0]!r}?" if close else f"expected one of {', '.join(known)}"


# Letters of a value in a message: enough to know it by.
MAX_SHOWN = 100


def show(value: object) -> str:
  """A value that is refused, for a message: in one line, the middle of a long one left out, whatever it is."""
  try:
    text = " ".join(repr(value).split())
  except Exception:  # a whole number of thousands of digits, a class of the user's
    text = f"a value of type {type(value).__name__}"
  half = MAX_SHOWN // 2
  return text if len(text) <= MAX_SHOWN else f"{text[:half]}...{text[-half:]}"


def describe(error: BaseException) -> str:
  """What a program of the user's raised: its class and text, which a class of theirs may fail to give."""
  try:
    return f"{type(error).__name__}: {error}"
  except Exception:
    return type(error).__name__
