"""Arguments that are whole numbers, refused in one line where they are not."""

from typing import Any

import numpy as np

from symformer_jax.errors import InputError, show

# What is no number, though its class is one of numbers: truth values are `int`, durations `np.integer`.
NO_NUMBERS = (bool, np.timedelta64)


def check_whole(argument: str, value: Any, *, least: int = 1, most: int | None = None) -> int:
  """The value of an argument that is a count, as Python's integer; a truth value is no number.

  Raises:
    InputError: names the argument.
  """
  if not isinstance(value, int | np.integer) or isinstance(value, NO_NUMBERS) or value < least:
    raise InputError(f"{argument}: expected a whole number of at least {least}, got {show(value)}")
  if most is not None and value > most:
    raise InputError(f"{argument}: expected at most {most}, got {show(value)}")
  return int(value)


def check_seed(seed: Any, argument: str = "seed") -> int:
  """What NumPy takes (nothing negative) and JAX (64 bits), as Python's integer.

  Raises:
    InputError: for anything else; names the argument.
  """
  if not isinstance(seed, int | np.integer) or isinstance(seed, NO_NUMBERS) or not 0 <= seed < 2**63:
    raise InputError(f"{argument}: expected a whole number from 0 to 2**63 - 1, got {show(seed)}")
  return int(seed)
