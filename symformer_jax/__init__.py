"""SymFormer-JAX: symbolic regression with a pre-trained transformer and on-device refinement.

The names below load what they need when they are first used: training imports no scikit-learn, a table's reader no
network.
"""

import importlib
from typing import TYPE_CHECKING, Any

# Editors and type checkers do not run `__getattr__`; a test compares these names with the table below.
if TYPE_CHECKING:
  from symformer_jax.commands.search_config import load_search_config as load_search_config
  from symformer_jax.engine.config import SearchConfig as SearchConfig
  from symformer_jax.errors import (
    DataError as DataError,
    ExpressionError as ExpressionError,
    InputError as InputError,
    ModelError as ModelError,
    SymFormerError as SymFormerError,
  )
  from symformer_jax.estimator import SymFormerRegressor as SymFormerRegressor
  from symformer_jax.inference import search as search, warmup as warmup
  from symformer_jax.language.expression import Node as Node
  from symformer_jax.language.parser import parse as parse
  from symformer_jax.language.rules import Restrictions as Restrictions
  from symformer_jax.pretrained.registry import LoadedModel as LoadedModel, load_model as load_model
  from symformer_jax.refinement.refine import refine as refine
  from symformer_jax.refinement.results import RefineResult as RefineResult, SnappedResult as SnappedResult
  from symformer_jax.results import (
    Constant as Constant,
    Equation as Equation,
    Filled as Filled,
    Progress as Progress,
    SearchResult as SearchResult,
    Seen as Seen,
    Standing as Standing,
    Step as Step,
  )
  from symformer_jax.saved import load_result as load_result, save_result as save_result

__version__ = "0.1.0"

# Public name -> module that defines it.
_PUBLIC = {
  "Constant": "symformer_jax.results",
  "DataError": "symformer_jax.errors",
  "Equation": "symformer_jax.results",
  "ExpressionError": "symformer_jax.errors",
  "Filled": "symformer_jax.results",
  "InputError": "symformer_jax.errors",
  "LoadedModel": "symformer_jax.pretrained.registry",
  "ModelError": "symformer_jax.errors",
  "Node": "symformer_jax.language.expression",
  "Progress": "symformer_jax.results",
  "RefineResult": "symformer_jax.refinement.results",
  "Restrictions": "symformer_jax.language.rules",
  "SearchConfig": "symformer_jax.engine.config",
  "SearchResult": "symformer_jax.results",
  "Seen": "symformer_jax.results",
  "SnappedResult": "symformer_jax.refinement.results",
  "Standing": "symformer_jax.results",
  "Step": "symformer_jax.results",
  "SymFormerError": "symformer_jax.errors",
  "SymFormerRegressor": "symformer_jax.estimator",
  "load_model": "symformer_jax.pretrained.registry",
  "load_result": "symformer_jax.saved",
  "load_search_config": "symformer_jax.commands.search_config",
  "parse": "symformer_jax.language.parser",
  "refine": "symformer_jax.refinement.refine",
  "save_result": "symformer_jax.saved",
  "search": "symformer_jax.inference",
  "warmup": "symformer_jax.inference",
}

__all__ = sorted([*_PUBLIC, "__version__"])


def __getattr__(name: str) -> Any:
  if name not in _PUBLIC:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
  value = getattr(importlib.import_module(_PUBLIC[name]), name)
  globals()[name] = value
  return value


def __dir__() -> list[str]:
  return sorted([*globals(), *_PUBLIC])
