"""What formulas a user wants: the rules that sampling keeps at every token, and that answers are held to."""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import difflib
import numbers
from typing import Any

from symformer_jax.arguments import check_whole
from symformer_jax.errors import InputError, show
from symformer_jax.language import operators as operators_lib, size_limits
from symformer_jax.language.dimensions import Dimensions
from symformer_jax.language.expression import VARIABLE, Node, complexity, walk

# What people write for operators that have other names in a tree without minus and division.
ALIASES = {"-": ("+", "neg", "*"), "/": ("*", "inv"), "**": ("pow", "pow2", "pow3"), "^": ("pow", "pow2", "pow3"),
           "log": ("ln",), "minimum": ("min",), "maximum": ("max",),
           "arcsin": ("asin",), "arccos": ("acos",), "arctan": ("atan",)}
# Powers that are operators of their own, and their exponents.
_POWERS = {"pow2": 2, "pow3": 3}


@dataclasses.dataclass(frozen=True)
class Rule:
  """Which formulas count; hashable, and a test of trees.

  Attributes:
    num_columns: D of the data.
    tokens: operators allowed; None for all.
    required: columns that every formula must contain; excluded: columns that none may contain.
    max_exponent: exponents are numbers of at most this size, at least 1; None for any exponent, variables too.
    max_depth: levels of the tree, where a bare number or variable has one and a sum of three terms three; None for
      any.
    unnested: operators none of which may stand inside another of them, or of its own kind.
    max_complexity: nodes of the tree; None for any number.
    dimensions: those of the columns and of y, which every formula must be able to have; None where they are not known.
    max_sizes: the largest complexity of what an operator is applied to (`size_limits`).
  """

  num_columns: int
  tokens: frozenset[str] | None = None
  required: frozenset[int] = frozenset()
  excluded: frozenset[int] = frozenset()
  max_exponent: float | None = None
  max_depth: int | None = None
  unnested: frozenset[str] = frozenset()
  max_complexity: int | None = None
  dimensions: Dimensions | None = None
  max_sizes: size_limits.Limits = ()

  @property
  def is_open(self) -> bool:
    """Whether any formula over allowed columns counts, if it is not too long and has the dimension of y."""
    return (self.tokens is None and self.max_exponent is None and self.max_depth is None and not self.unnested
            and not self.max_sizes)

  def __call__(self, node: Node) -> bool:
    used = {n.value for n in walk(node) if n.token == VARIABLE}
    if not self.required <= used or used & self.excluded or any(column >= self.num_columns for column in used):
      return False
    if self.max_complexity is not None and complexity(node) > self.max_complexity:
      return False
    if self.dimensions is not None and not self.dimensions.allows(node):
      return False
    if self.is_open:
      return True
    return all(self.allows_operator(n.token) and self._allows_exponent(n) for n in walk(node) if n.args) and (
      self.max_depth is None or _depth(node) <= self.max_depth) and not self._is_nested(node, False) and (
      size_limits.are_kept(node, self.max_sizes))

  def check_sizes(self) -> None:
    """Refuses required columns that no formula of the size allowed can hold: of two arguments at most each operator
    joins two parts, so that k columns take k - 1 of them, on ceil(log2 k) levels.

    Raises:
      InputError: one line that names both rules.
    """
    num = len(self.required)
    if num < 2:
      return
    least = (("max_complexity", self.max_complexity, 2 * num - 1, "nodes"),
             ("max_depth", self.max_depth, 1 + (num - 1).bit_length(), "levels"))
    for argument, limit, needed, what in least:
      if limit is not None and limit < needed:
        raise InputError(f"required: {num} columns take a formula of at least {needed} {what}, "
                         f"and {argument} is {limit}")

  @property
  def requested(self) -> frozenset[str]:
    """Operators known to no model that were asked for by name: without names formulas may have them, none is made."""
    return operators_lib.REQUESTED & self.tokens if self.tokens is not None else frozenset()

  def allows_operator(self, token: str) -> bool:
    """Whether the operator may occur at all."""
    is_small = self.max_exponent is None or _POWERS.get(token, 1) <= self.max_exponent
    return is_small and (self.tokens is None or token in self.tokens)

  def _allows_exponent(self, node: Node) -> bool:
    if self.max_exponent is None or node.token != "pow":
      return True
    exponent = node.args[1]
    return exponent.is_number and abs(exponent.value) <= self.max_exponent

  def _is_nested(self, node: Node, is_inside: bool) -> bool:
    is_chosen = node.token in self.unnested
    return is_chosen and is_inside or any(self._is_nested(arg, is_inside or is_chosen) for arg in node.args)


def is_writable(node: Node, rule: Rule) -> bool:
  """Whether a rule has all operators of a formula, which may be a part of one."""
  return all(rule.allows_operator(part.token) for part in walk(node) if part.args)


def _depth(node: Node) -> int:
  return 1 + max((_depth(arg) for arg in node.args), default=0)


@dataclasses.dataclass(frozen=True)
class Restrictions:
  """Rules as users write them, before the columns of a data set are known.

  Attributes:
    operators: names of those allowed (None: all that models know), such as +, /, log; forbidden: of those not allowed
      all the same; add_operators: of further ones, as tanh, beside those of `operators` or all.
    required, excluded: names of columns that every formula, or no formula, may contain.
    max_exponent, max_depth, unnested, max_complexity: see `Rule`.
    max_sizes: by operator the most nodes of what it is applied to, such as `{"sin": 3, "pow": (9, 1), "/": (-1, 5)}`:
      of a function its argument, of a power base and exponent, of a fraction numerator and denominator, of `+` and `*`
      each term or factor; -1 or None for any number. Kept as sorted pairs.
  """

  operators: tuple[str, ...] | None = None
  forbidden: tuple[str, ...] = ()
  required: tuple[str, ...] = ()
  excluded: tuple[str, ...] = ()
  max_exponent: float | None = None
  max_depth: int | None = None
  unnested: tuple[str, ...] = ()
  max_complexity: int | None = None
  add_operators: tuple[str, ...] = ()
  max_sizes: Mapping[str, int | Sequence[int | None] | None] | tuple[tuple[str, object], ...] = ()

  def __post_init__(self) -> None:
    object.__setattr__(self, "max_sizes", size_limits.freeze(self.max_sizes))

  def check(self) -> None:
    """Refuses what is wrong for any data set: an InputError."""
    self._check_lists()
    dataclasses.replace(self, required=(), excluded=()).for_columns(())

  def _check_lists(self) -> None:
    for argument in ("operators", "forbidden", "required", "excluded", "unnested", "add_operators"):
      if argument != "operators" or self.operators is not None:
        names_of(getattr(self, argument), argument)

  def for_columns(self, columns: Sequence[str]) -> Rule:
    """The rule for data with these columns.

    Raises:
      InputError: for unknown names, and for rules that contradict each other, one line that says which.
    """
    self._check_lists()
    allowed = frozenset(op.name for op in operators_lib.MODEL_OPERATORS)
    if self.operators is not None:
      allowed = _tokens(self.operators, "operators")
    allowed |= _tokens(self.add_operators, "add_operators")
    allowed -= _forbidden_tokens(self.forbidden)
    if not allowed:
      raise InputError("operators: the rules leave no operator; allow at least one that is not forbidden")
    largest, deepest = self.max_exponent, self.max_depth
    is_number = isinstance(largest, numbers.Real) and not isinstance(largest, bool)
    if largest is not None and not (is_number and largest >= 1):
      raise InputError(f"max_exponent: expected a number of at least 1, got {show(largest)}")
    for argument, limit in (("max_depth", deepest), ("max_complexity", self.max_complexity)):
      if limit is not None:
        check_whole(argument, limit)
    required = _column_indices(self.required, columns, "required")
    excluded = _column_indices(self.excluded, columns, "excluded")
    if both := required & excluded:
      raise InputError(f"required: column {columns[min(both)]!r} is required and excluded at once")
    if columns and len(excluded) == len(columns):
      raise InputError("excluded: every column is excluded; leave one")
    is_open = self.operators is None and not self.forbidden and not self.add_operators
    return Rule(len(columns), None if is_open else allowed, required, excluded, largest, deepest,
                _tokens(self.unnested, "unnested"), self.max_complexity, max_sizes=self._size_limits())

  def _size_limits(self) -> size_limits.Limits:
    if not isinstance(self.max_sizes, tuple) or not all(
        isinstance(pair, tuple) and len(pair) == 2 for pair in self.max_sizes):
      raise InputError(f"max_sizes: expected sizes by operator, such as {{'sin': 3}}, got {show(self.max_sizes)}")
    _tokens([name for name, _ in self.max_sizes], "max_sizes")
    return size_limits.read(self.max_sizes, _known())


def names_of(value: Any, argument: str) -> tuple[str, ...]:
  """Names as users give them: a list of texts, not a single one.

  Raises:
    InputError: for anything else.
  """
  names = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else None
  if names is None or not all(isinstance(name, str) for name in names):
    raise InputError(f"{argument}: expected a list of names, got {show(value)}")
  return names


def _known() -> dict[str, tuple[str, ...]]:
  known = (*operators_lib.MODEL_OPERATORS, *operators_lib.REQUESTED_OPERATORS)
  return {op.name: (op.name,) for op in known} | ALIASES


def _tokens(names: Sequence[str], argument: str) -> frozenset[str]:
  known = _known()
  for name in names:
    if name not in known:
      close = difflib.get_close_matches(name, known, n=1)
      hint = f"; did you mean {close[0]!r}?" if close else ""
      # The others are there anyway, and may be named all the same.
      asked_for = [op.name for op in operators_lib.REQUESTED_OPERATORS] if argument == "add_operators" else known
      raise InputError(f"{argument}: unknown operator {show(name)}, expected some of {', '.join(asked_for)}{hint}")
  return frozenset(token for name in names for token in known[name])


def _forbidden_tokens(names: Sequence[str]) -> frozenset[str]:
  """A minus that is forbidden takes no sum away, nor a division the product."""
  _tokens(names, "forbidden")
  own = {"-": ("neg",), "/": ("inv",)}
  return frozenset(token for name in names for token in own.get(name, _known()[name]))


def _column_indices(names: Sequence[str], columns: Sequence[str], argument: str) -> frozenset[int]:
  for name in names:
    if name not in columns:
      raise InputError(f"{argument}: no column {show(name)}, expected some of {', '.join(map(repr, columns))}")
  return frozenset(list(columns).index(name) for name in names)
