"""Keeps compiled programs between runs of a command."""

import os
from pathlib import Path

import jax

# Shorter compilations cost less than reading them back.
SHORTEST_KEPT_S = 0.3


def use_cache() -> None:
  """Stores compiled programs below the user's cache folder; commands call this, the library never does.

  `JAX_COMPILATION_CACHE_DIR`, where set, rules. Without a writable folder everything works as before, only slower.
  """
  if os.environ.get("JAX_COMPILATION_CACHE_DIR"):
    return
  root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
  folder = Path(root) / "symformer_jax" / f"jax-{jax.__version__}"
  try:
    folder.mkdir(parents=True, exist_ok=True)
  except OSError:
    return
  jax.config.update("jax_compilation_cache_dir", str(folder))
  jax.config.update("jax_persistent_cache_min_compile_time_secs", SHORTEST_KEPT_S)
