"""SymFormer-JAX: symbolic regression with a pre-trained transformer and on-device refinement.

The names below load what they need when they are first used: training imports no scikit-learn, a table's reader no
network.
"""

import importlib
from typing import Any

# Public name -> module that defines it.
_PUBLIC = {
  "Restrictions": "symformer_jax.language.rules",
  "SymFormerRegressor": "symformer_jax.estimator",
  "load_model": "symformer_jax.pretrained.registry",
  "load_result": "symformer_jax.saved",
  "parse": "symformer_jax.language.parser",
  "refine": "symformer_jax.refinement.refine",
  "save_result": "symformer_jax.saved",
  "search": "symformer_jax.inference",
  "warmup": "symformer_jax.inference",
}

__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
  if name not in _PUBLIC:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
  value = getattr(importlib.import_module(_PUBLIC[name]), name)
  globals()[name] = value
  return value


def __dir__() -> list[str]:
  return sorted([*globals(), *_PUBLIC])
