"""Few shapes to compile, and compiled programs kept between processes."""

from collections.abc import Callable, Sequence
import functools
import os
from pathlib import Path
from typing import ParamSpec, TypeVar
import warnings

import jax
from jax.experimental.compilation_cache import compilation_cache

P = ParamSpec("P")
R = TypeVar("R")

# Data sets that go through one call together. A CPU gains nothing from several, and takes them in turn: what is
# computed for one is then the same to the last bit in any company. An accelerator needs many to be busy.
DATASET_BUCKETS = {"cpu": (1,)}
ACCELERATOR_BUCKETS = (1, 8, 64)
# Candidates of one call of a fit. A CPU loops over them anyway: blocks of one size are one program.
CANDIDATE_BUCKETS = {"cpu": (256,)}
ACCELERATOR_CANDIDATES = tuple(256 * 4**i for i in range(6))


def dataset_buckets() -> tuple[int, ...]:
  """Numbers of data sets that are compiled for on this platform."""
  return DATASET_BUCKETS.get(jax.default_backend(), ACCELERATOR_BUCKETS)


def candidate_buckets() -> tuple[int, ...]:
  """Numbers of candidates that fits are compiled for on this platform; more go in blocks of the largest."""
  return CANDIDATE_BUCKETS.get(jax.default_backend(), ACCELERATOR_CANDIDATES)


def bucket(number: int, sizes: Sequence[int]) -> int:
  """The smallest of ascending sizes that holds so many; beyond the largest a multiple of it."""
  return next((size for size in sizes if size >= number), -(-number // sizes[-1]) * sizes[-1])


def with_all_digits(function: Callable[P, R]) -> Callable[P, R]:
  """The function, its products of matrices in the precision of their operands; goes below `jax.jit`.

  Accelerators shorten mantissas of single precision to 11 bits in such products, which a network bears and a least
  squares does not.
  """
  @functools.wraps(function)
  def traced(*args: P.args, **kwargs: P.kwargs) -> R:
    with jax.default_matmul_precision("highest"):
      return function(*args, **kwargs)
  return traced


# Set to `off` in the environment, nothing is kept.
CACHE_VARIABLE = "SYMFORMER_COMPILATION_CACHE"


def use_cache() -> None:
  """Stores compiled programs below the user's cache folder; searches and commands call this.

  A folder that the process has chosen for JAX rules, by `JAX_COMPILATION_CACHE_DIR` or in its config; `CACHE_VARIABLE`
  set to `off` leaves JAX as it is. Without a writable folder everything works as before, only slower.
  """
  # A disk that is full, or a damaged entry, makes everything slower, and is no news of a search's.
  warnings.filterwarnings("ignore", message="Error (reading|writing) persistent compilation cache entry")
  if os.environ.get(CACHE_VARIABLE, "").lower() == "off" or os.environ.get("JAX_COMPILATION_CACHE_DIR"):
    return
  if jax.config.jax_compilation_cache_dir is not None:  # type: ignore[attr-defined]  # options are made at run time
    return
  root = os.environ.get("XDG_CACHE_HOME", "")
  # A relative one is to be ignored (XDG base directory specification): it would lie wherever a search runs.
  root = root if os.path.isabs(root) else os.path.expanduser("~/.cache")
  folder = Path(root) / "symformer_jax" / f"jax-{jax.__version__}"
  if not folder.is_absolute():  # as that of a relative home
    return
  try:
    str(folder).encode()  # JAX takes no other bytes
    folder.mkdir(parents=True, exist_ok=True)
  except (OSError, UnicodeEncodeError):
    return
  if not os.access(folder, os.W_OK):
    return
  jax.config.update("jax_compilation_cache_dir", str(folder))
  # The short ones too: a search compiles some fifty, 1.6 s in all, and reads them back in 0.5 s (1 MB).
  jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
  # What has been compiled before without a folder has settled that there is none.
  compilation_cache.reset_cache()
