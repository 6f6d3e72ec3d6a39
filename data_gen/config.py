"""Settings of the generator, checked and frozen."""

from collections.abc import Collection, Mapping, Sequence
import dataclasses
import difflib
import fractions
import importlib.util
import math
from pathlib import Path
import re
import sys
from typing import Any

from data_gen.defaults import SIMPLIFIERS
from symformer_jax.configuration import find_config
from symformer_jax.errors import InputError, describe
from symformer_jax.language import operators

_MAY_BE_ZERO = ("float_decimals", "min_nesting", "centred", "small_as_given")
# A name is that of a folder, and of a configuration of TFDS.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", re.ASCII)
# Beyond it trees are too long for any limit of tokens, and their number is counted recursively; variables have letters.
_AT_MOST = {"max_operators": 100, "num_variables": 26}
LEAVES = ("variable", "integer", "float", "zero")
# Of `LawsConfig`; what they stand for is in `data_gen.laws`.
FORMS = ("monomial", "product", "sum", "power", "function")
FUNCTIONS = ("exp", "decay", "gaussian", "saturation", "growth", "bose", "logistic", "tanh", "sin", "cos", "sin2",
             "tan", "ln", "sqrt", "asin", "acos", "atan")
INTERVALS = ("near", "decades", "from_zero", "symmetric", "off_centre", "negative")


@dataclasses.dataclass(frozen=True)
class GeneratorConfig:
  """What is generated; defaults are the paper's (SymFormer, sec. 3.3 and supplementary tables).

  Attributes:
    name: of the data set and its folder.
    num_variables: D.
    unary, binary: unnormalised probabilities by operator name.
    leaves: unnormalised probabilities of `variable`, `integer`, `float` and `zero` leaves.
    max_operators: the number of operators is uniform in 1 ... this.
    max_integer: integer leaves are -this ... this without 0.
    max_float: float leaves are uniform in [-this, this].
    float_decimals: float leaves are rounded to so many decimals.
    simplify: `simplify` (the paper's), `fast` (cheap SymPy passes) or `rules` (no SymPy).
    simplify_digits: significant digits of constants after simplification.
    time_limit_s: CPU seconds a candidate may take.
    num_points: points drawn to test a box.
    num_tries: draws per box; one on which all points are finite suffices.
    box_edge: boxes are products of [-edge, edge], [0, edge] and [-edge, 0].
    max_abs_value: an equation with larger |y| on its points is dropped.
    min_constant, max_constant: bounds of |C|.
    max_tokens: longest prefix expression.
    min_nesting: fewest functions one inside the other (`filters.count_nesting`); formulas of fewer are dropped.
    shard_equations: equations per shard.
    unique: what may not come twice: `equation` (tokens and constants) or `skeleton` (tokens).
  """

  name: str = "univariate"
  num_variables: int = 1
  unary: Mapping[str, float] = dataclasses.field(default_factory=dict)
  binary: Mapping[str, float] = dataclasses.field(default_factory=dict)
  leaves: Mapping[str, float] = dataclasses.field(default_factory=dict)
  max_operators: int = 10
  max_integer: int = 5
  max_float: float = 5.0
  float_decimals: int = 4
  simplify: str = "simplify"
  simplify_digits: int = 8
  time_limit_s: float = 5.0
  num_points: int = 100
  num_tries: int = 4
  box_edge: float = 5.0
  max_abs_value: float = 1e7
  min_constant: float = 1e-10
  max_constant: float = 1e10
  max_tokens: int = 50
  min_nesting: int = 0
  shard_equations: int = 8192
  unique: str = "equation"

  def __post_init__(self) -> None:
    for field in dataclasses.fields(self):
      value = getattr(self, field.name)
      if field.type in (int, float) and not (math.isfinite(value) and value > 0 or field.name in _MAY_BE_ZERO):
        raise InputError(f"config: {field.name} must be positive, got {value}")
      if field.name in _AT_MOST and value > _AT_MOST[field.name]:
        raise InputError(f"config: {field.name} must be at most {_AT_MOST[field.name]}, got {value}")
    if _NAME.fullmatch(self.name) is None:
      raise InputError(f"config: name is {self.name!r}, expected that of a folder: letters, digits, '_', '-' and '.'")
    for name, legal in self._tables().items():
      _check_weights(name, getattr(self, name), legal)
    if "leaves" in self._tables() and not self.leaves.get("variable"):
      raise InputError("config: probability leaves.variable is 0: formulas without variables are constants")
    _check_choice("simplify", self.simplify, SIMPLIFIERS)
    _check_choice("unique", self.unique, ("equation", "skeleton"))

  def _tables(self) -> dict[str, Sequence[str] | None]:
    """Legal keys of each table of probabilities; None where they are numbers."""
    known = [op for op in operators.OPERATORS if not op.is_requested]
    by_arity = {arity: [op.name for op in known if op.arity == arity] for arity in (1, 2)}
    return {"unary": by_arity[1], "binary": by_arity[2], "leaves": LEAVES}


@dataclasses.dataclass(frozen=True)
class LawsConfig(GeneratorConfig):
  """Formulas of the kind people bring (`data_gen.laws`), of 1 to `num_variables` variables, each with its own box.

  Of the settings above `unary`, `binary`, `leaves`, `max_operators`, `max_integer`, `max_float` and `float_decimals`
  are not read; `box_edge` bounds the points at which two functions are told apart. Problems that are kept out are known
  by their shape (`data_gen.shapes`).

  Attributes:
    kind: tells this configuration from the other in a manifest.
    variables: unnormalised probabilities of `1`, `2`, ... variables.
    repeats: of `0`, `1`, ... further occurrences of variables.
    exponents: of a variable's exponents in a monomial, such as `-1/2`; sum_exponents: of a sum's.
    functions: by name, see `data_gen.laws`.
    forms: of `monomial`, `product`, `sum`, `power` (of a sum) and `function`, for parts of several variables;
      single_forms: for parts of one.
    intervals: of the kinds of ranges, see `data_gen.laws`.
    centred: share of the laws whose columns off to one side are moved to 0.
    small_as_given: share whose columns below 1 keep their units.
  """

  kind: str = "laws"
  variables: Mapping[str, float] = dataclasses.field(default_factory=dict)
  repeats: Mapping[str, float] = dataclasses.field(default_factory=dict)
  exponents: Mapping[str, float] = dataclasses.field(default_factory=dict)
  sum_exponents: Mapping[str, float] = dataclasses.field(default_factory=dict)
  functions: Mapping[str, float] = dataclasses.field(default_factory=dict)
  forms: Mapping[str, float] = dataclasses.field(default_factory=dict)
  single_forms: Mapping[str, float] = dataclasses.field(default_factory=dict)
  intervals: Mapping[str, float] = dataclasses.field(default_factory=dict)
  centred: float = 0.1
  small_as_given: float = 0.3

  def _tables(self) -> dict[str, Sequence[str] | None]:
    counts = [str(i + 1) for i in range(self.num_variables)]
    return {"variables": counts, "repeats": None, "exponents": None, "sum_exponents": None, "functions": FUNCTIONS,
            "forms": FORMS, "single_forms": FORMS, "intervals": INTERVALS}


def _check_choice(name: str, value: str, legal: Collection[str]) -> None:
  if value not in legal:
    raise InputError(f"config: {name} is {value!r}, expected one of {', '.join(legal)}{_nearest(value, legal)}")


def _check_weights(name: str, weights: Mapping[str, float], legal: Collection[str] | None) -> None:
  for key, weight in weights.items():
    if legal is None:
      _check_number(f"a key of {name}", key)
    else:
      _check_choice(f"a key of {name}", key, legal)
    if not (math.isfinite(weight) and weight >= 0):
      raise InputError(f"config: probability {name}.{key} must be finite and not negative, got {weight}")
  if not sum(weights.values()) > 0:
    raise InputError(f"config: all probabilities of {name} are zero")


def _check_number(name: str, text: str) -> None:
  try:
    fractions.Fraction(text)
  except ValueError:
    raise InputError(f"config: {name} is {text!r}, expected a number such as -1 or 3/2") from None


def _nearest(value: str, legal: Collection[str]) -> str:
  close = difflib.get_close_matches(str(value), list(legal))
  return f"; did you mean {close[0]!r}?" if close else ""


def from_dict(values: Mapping[str, Any]) -> GeneratorConfig:
  """Turns a config file's dictionary into a checked `GeneratorConfig`.

  Raises:
    InputError: for an unknown key (naming the nearest legal one) or an unusable value.
  """
  kind = LawsConfig if values.get("kind") == LawsConfig.kind else GeneratorConfig
  legal = [field.name for field in dataclasses.fields(kind)]
  for key in values:
    if key not in legal:
      raise InputError(f"config: unknown key {key!r}, expected one of {', '.join(legal)}{_nearest(key, legal)}")
  return kind(**values)


def as_dict(config: GeneratorConfig) -> dict[str, Any]:
  """What a manifest says of a config. Settings that came later are left out at their defaults: an older run resumes."""
  return {key: value for key, value in dataclasses.asdict(config).items() if (key, value) != ("min_nesting", 0)}


def load_config(path: str, overrides: Mapping[str, Any]) -> GeneratorConfig:
  """Runs a config file's get_config() and checks what it returns; overrides that are None count as not given.

  Raises:
    InputError: no such file, no get_config, an unknown key or an unusable value.
  """
  path = find_config(path)
  # Config files import their siblings as configs.data.*: from anywhere, not only from the repository's root.
  sys.path.append(str(Path(__file__).parent.parent))
  spec = importlib.util.spec_from_file_location("data_config", path)
  if spec is None or spec.loader is None:
    raise InputError(f"config must be a Python file, got {path}")
  module = importlib.util.module_from_spec(spec)
  try:
    spec.loader.exec_module(module)
    if not hasattr(module, "get_config"):
      raise InputError(f"config {path} defines no get_config()")
    values = module.get_config()
    if not callable(getattr(values, "to_dict", None)):
      raise InputError(f"config {path}: expected get_config() to return a ConfigDict, got {type(values).__name__}")
    return from_dict({**values.to_dict(), **{k: v for k, v in overrides.items() if v is not None}})
  except (InputError, KeyboardInterrupt):
    raise
  # A program of the user's: anything may go wrong in it, or with the values that it gives.
  except BaseException as error:
    raise InputError(f"config {path}: {describe(error)}") from error
