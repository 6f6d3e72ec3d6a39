"""Settings of the generator, checked and frozen."""

from collections.abc import Collection, Mapping
import dataclasses
import difflib
import fractions
import importlib.util
from pathlib import Path
import re
import sys
import typing
from typing import Any

from data_gen.defaults import SIMPLIFIERS
from symformer_jax.configuration import check_type, find_config
from symformer_jax.errors import InputError, describe, show
from symformer_jax.language import operators
from symformer_jax.ranges import SHARE, Range, check_ranges

# A name is that of a folder, and of a configuration of TFDS.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", re.ASCII)
# Points of a box, in all draws and columns: 128 MB. More no candidate is worth.
_MOST_NUMBERS = 2**24
# Boxes are made of three intervals a variable: 20 000 of nine.
_MOST_BOXED = 9
# Every number of a config. Of more operators trees are too long for any limit of tokens, and their number is counted
# recursively; variables have letters; draws are whole numbers of 64 bits, and ranges of floats finite.
RANGES = {
  "num_variables": Range(1, 26),
  "max_operators": Range(1, 100),
  "max_integer": Range(1, 10**9),
  "max_float": Range(0, 1e300, is_above=True),
  "float_decimals": Range(0, 300),
  "simplify_digits": Range(1, 100),
  "time_limit_s": Range(0, 1e6, is_above=True),
  "num_points": Range(1, _MOST_NUMBERS),
  "num_tries": Range(1, _MOST_NUMBERS),
  "box_edge": Range(0, 1e100, is_above=True),
  "max_abs_value": Range(0, 1e300, is_above=True),
  "min_constant": Range(0, 1e300, is_above=True),
  "max_constant": Range(0, 1e300, is_above=True),
  "max_tokens": Range(1, 10_000),
  "min_nesting": Range(0, 100),
  "shard_equations": Range(1, 10**8),
}
# Of an unnormalised probability: a sum of such is finite.
_MOST_WEIGHT = 1e100
LEAVES = ("variable", "integer", "float", "zero")
# Of `LawsConfig`; what they stand for is in `data_gen.laws`.
FORMS = ("monomial", "product", "sum", "power", "function")
FUNCTIONS = ("exp", "decay", "gaussian", "saturation", "growth", "bose", "logistic", "tanh", "sin", "cos", "sin2",
             "tan", "ln", "sqrt", "asin", "acos", "atan")
# Keys that are numbers, of few digits: occurrences of variables, and exponents.
_COUNT = re.compile(r"\d{1,2}", re.ASCII)
_POWER = re.compile(r"-?\d{1,3}(\.\d{1,6}|/[1-9]\d{0,2})?", re.ASCII)
_EXAMPLES = {_COUNT: "0 or 2", _POWER: "-1 or 3/2"}
Keys = Collection[str] | re.Pattern[str]
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
    self._check_numbers()
    if _NAME.fullmatch(self.name) is None:
      raise InputError(f"config: name is {self.name!r}, expected that of a folder: letters, digits, '_', '-' and '.'")
    for name, legal in self._tables().items():
      _check_weights(name, getattr(self, name), legal)
    if "leaves" in self._tables() and not self.leaves.get("variable"):
      raise InputError("config: probability leaves.variable is 0: formulas without variables are constants")
    _check_choice("simplify", self.simplify, SIMPLIFIERS)
    _check_choice("unique", self.unique, ("equation", "skeleton"))

  def _check_numbers(self) -> None:
    try:
      check_ranges(self, self._ranges())
    except InputError as error:
      raise InputError(f"config: {error}") from None
    size = self.num_points * self.num_tries * self.num_variables
    if size > _MOST_NUMBERS:
      raise InputError(f"config: num_points times num_tries times num_variables must be at most {_MOST_NUMBERS}, got "
                       f"{size}")
    if self.min_constant > self.max_constant:
      raise InputError(f"config: min_constant must be at most the {self.max_constant:g} of max_constant, got "
                       f"{self.min_constant:g}")

  def _ranges(self) -> dict[str, Range]:
    return RANGES | {"num_variables": Range(1, _MOST_BOXED)}

  def _tables(self) -> dict[str, Keys]:
    """Legal keys of each table of probabilities."""
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

  def __post_init__(self) -> None:
    super().__post_init__()
    # What is drawn until it fits must be able to.
    if not any(weight and fractions.Fraction(text) > 0 for text, weight in self.exponents.items()):
      raise InputError("config: all probabilities of exponents above 0 are zero")
    forms = {form for table in (self.forms, self.single_forms) for form, weight in table.items() if weight}
    for name in ("forms", "single_forms"):
      own = {form for form, weight in getattr(self, name).items() if weight}
      for form, inner in (("product", {"sum", "power", "function"}), ("sum", {*FORMS} - {"sum"})):
        if form in forms and not own & inner:
          raise InputError(f"config: all probabilities of {name} for parts of a {form} are zero: expected some of "
                           f"{', '.join(sorted(inner))}")

  def _ranges(self) -> dict[str, Range]:
    return RANGES | {"centred": SHARE, "small_as_given": SHARE}

  def _tables(self) -> dict[str, Keys]:
    counts = [str(i + 1) for i in range(self.num_variables)]
    return {"variables": counts, "repeats": _COUNT, "exponents": _POWER, "sum_exponents": _POWER,
            "functions": FUNCTIONS, "forms": FORMS, "single_forms": FORMS, "intervals": INTERVALS}


def _check_choice(name: str, value: str, legal: Collection[str]) -> None:
  if value not in legal:
    raise InputError(f"config: {name} is {show(value)}, expected one of {', '.join(legal)}{_nearest(value, legal)}")


def _check_weights(name: str, weights: Any, legal: Keys) -> None:
  if not isinstance(weights, Mapping):
    raise InputError(f"config: {name}: expected probabilities by name, got {show(weights)}")
  for key, weight in weights.items():
    if isinstance(legal, re.Pattern):
      if not isinstance(key, str) or legal.fullmatch(key) is None:
        raise InputError(f"config: a key of {name} is {show(key)}, expected a number such as {_EXAMPLES[legal]}")
    else:
      _check_choice(f"a key of {name}", key, legal)
    check_type(weight, float, f"config: probability {name}.{key}")
    if not 0 <= weight <= _MOST_WEIGHT:
      raise InputError(f"config: probability {name}.{key} must be finite and not negative, got {show(weight)}")
  if not sum(weights.values()) > 0:
    raise InputError(f"config: all probabilities of {name} are zero")


def _nearest(value: str, legal: Collection[str]) -> str:
  close = difflib.get_close_matches(str(value), list(legal))
  return f"; did you mean {close[0]!r}?" if close else ""


def from_dict(values: Mapping[str, Any]) -> GeneratorConfig:
  """Turns a config file's dictionary into a checked `GeneratorConfig`.

  Raises:
    InputError: for an unknown key (naming the nearest legal one) or an unusable value.
  """
  if "kind" in values:
    _check_choice("kind", values["kind"], (LawsConfig.kind,))
  kind = LawsConfig if "kind" in values else GeneratorConfig
  legal = [field.name for field in dataclasses.fields(kind)]
  for key in values:
    if key not in legal:
      raise InputError(f"config: unknown key {key!r}, expected one of {', '.join(legal)}{_nearest(key, legal)}")
  hints = typing.get_type_hints(kind)
  for key, value in values.items():
    check_type(value, hints[key], f"config: {key}")
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
