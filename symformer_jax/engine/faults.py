"""What a source may fail with over odd data: it costs the turn, and no search."""

import warnings

import numpy as np

# What numbers that nobody has foreseen lead to. A user's mistake, a model that cannot be read, missing memory and
# errors of the code itself are none of these.
FAULTS = (ArithmeticError, ValueError, LookupError, np.linalg.LinAlgError)


def tell(name: str, error: Exception) -> None:
  """Warns that a source has failed."""
  warnings.warn(f"the source {name!r} is left out of a turn: {str(error) or type(error).__name__}", RuntimeWarning,
                stacklevel=3)
