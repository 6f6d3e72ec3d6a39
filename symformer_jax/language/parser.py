"""Reads formula text with a grammar of its own: nothing is ever evaluated as Python.

Grammar (`**` and `^` bind tightest, to the right; a sign binds weaker than a power, as in Python):
  sum     = product (("+" | "-") product)*
  product = signed (("*" | "/") signed)*
  signed  = ("+" | "-")* power
  power   = atom [("**" | "^") signed]
  atom    = number | name | function "(" sum ("," sum)* ")" | "(" sum ")"
  name    = word | "`" (any sign but "`" | "``")* "`"
A word before "(" is a function, any other a column, a constant or, on request, a symbol. What stands in backticks is a
column's name, whatever it is made of (`names` writes them).
"""

from collections.abc import Callable, Mapping, Sequence
import difflib
import math
import re
from typing import Any

from symformer_jax.errors import ExpressionError, InputError, suggest
from symformer_jax.files import shorten
from symformer_jax.language.expression import Node, negate, number, power, symbol, unknown, variable

# More than this is hostile, not mathematics; it also keeps every recursion over a tree far from Python's
# limit (a sum of n terms is a tree n deep, a bracket costs a printer eight frames).
MAX_DEPTH = 40
MAX_TOKENS = 600
MAX_LENGTH = 10_000

WORD = r"[^\W\d]\w*"
_TOKEN = re.compile(
  rf"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>{WORD})|(?P<quoted>`(?:[^`]|``)*`)"
  r"|(?P<op>\*\*|[-+*/^(),]))"
)

# Raised digits are exponents to who writes them, and letters to Python's patterns.
_RAISED = re.compile("[\u2070\u00b9\u00b2\u00b3\u2074-\u2079]")


def _unary(token: str) -> Callable[[Node], Node]:
  return lambda a: Node(token, (a,))


def _half_difference(sign: int) -> Callable[[Node], Node]:
  """(exp(a) + sign exp(-a)) / 2."""
  def build(a: Node) -> Node:
    second = Node("exp", (negate(a),))
    total = Node("+", (Node("exp", (a,)), second if sign > 0 else negate(second)))
    return Node("*", (number(0.5), total))
  return build


def _tanh(a: Node) -> Node:
  # 1 - 2 / (exp(2a) + 1): finite for large arguments of either sign.
  double = Node("exp", (Node("*", (number(2), a)),))
  ratio = Node("*", (number(2), Node("inv", (Node("+", (double, number(1))),))))
  return Node("+", (number(1), negate(ratio)))


def _log(base: float) -> Callable[[Node], Node]:
  return lambda a: Node("*", (number(1 / math.log(base)), Node("ln", (a,))))


def _binary(token: str) -> Callable[[Node, Node], Node]:
  return lambda a, b: Node(token, (a, b))


FUNCTIONS: dict[str, Callable[..., Node]] = {
  **{name: _unary(name) for name in ("sqrt", "exp", "ln", "sin", "cos", "tan", "cot")},
  **{name: _unary(name) for name in ("asin", "acos", "atan", "acot")},
  "log": _unary("ln"),
  "arcsin": _unary("asin"), "arccos": _unary("acos"), "arctan": _unary("atan"), "arccot": _unary("acot"),
  "sinh": _half_difference(-1), "cosh": _half_difference(1), "tanh": _tanh,
  "log2": _log(2), "log10": _log(10),
  "abs": lambda a: Node("sqrt", (Node("pow2", (a,)),)),
  "sign": _unary("sign"), "min": _binary("min"), "max": _binary("max"), "minimum": _binary("min"),
  "maximum": _binary("max"),
}
# As operators of their own, which no model knows.
UNEXPANDED: dict[str, Callable[..., Node]] = {name: _unary(name) for name in ("sinh", "cosh", "tanh", "abs")}
_OF_TWO = frozenset(("min", "max", "minimum", "maximum"))
CONSTANTS = {"pi": math.pi}


def parse(
  text: str, variables: Sequence[str] = ("x", "y", "z"), *, allow_symbols: bool = False, allow_unknowns: bool = False,
  expands: bool = True,
) -> Node:
  """Reads a formula.

  Args:
    text: Python or usual mathematical syntax, `^` for `**` allowed; functions as in `FUNCTIONS`, and `pi`.
    variables: names of the columns, in order, any text; they win over `pi`, and over functions but before "(".
    allow_symbols: whether other names become named constants (`expression.symbol`) or an error.
    allow_unknowns: whether other words before "(" become unknown functions of columns (`expression.unknown`).
    expands: whether hyperbolic functions and `abs` are written by operators that models know, `abs(x)` as `sqrt(x**2)`.
  Returns:
    The tree; minus and division are written with neg and inv. Operands keep their order.
  Raises:
    InputError: for variables that are no names, or where two have one name.
    ExpressionError: one that says what was found where, and what was expected.
  """
  if not isinstance(text, str):
    raise ExpressionError(f"expected a formula as text, got {shorten(repr(text), 60)}")
  variables = _read_names(variables)
  # Names may be long, and stand often.
  limit = max([MAX_LENGTH, *(MAX_TOKENS * (len(name) + 2 + name.count("`")) for name in variables)])
  if len(text) > limit:
    raise ExpressionError(f"formula is {len(text)} characters long, at most {limit} are read")
  functions = FUNCTIONS if expands else FUNCTIONS | UNEXPANDED
  return _Parser(text, variables, allow_symbols, allow_unknowns, functions).parse()


def _read_names(variables: Any) -> list[str]:
  try:
    names: list[Any] = list(variables)
  except TypeError:
    names = [None]
  if not all(isinstance(name, str) for name in names):
    raise InputError(f"variables: expected names of columns as text, got {shorten(repr(variables), 60)}")
  if len(set(names)) < len(names):
    repeated = next(name for i, name in enumerate(names) if name in names[:i])
    raise InputError(f"variables: expected names that differ, got {shorten(repr(repeated), 60)} twice")
  return names


class _Parser:
  """Recursive descent over the token list."""

  def __init__(
    self, text: str, variables: list[str], allow_symbols: bool, allow_unknowns: bool,
    functions: Mapping[str, Callable[..., Node]],
  ):
    self.text, self.variables, self.functions = text, variables, functions
    self.allow_symbols, self.allow_unknowns = allow_symbols, allow_unknowns
    self.tokens = self._tokenize(text)
    self.position = self.depth = 0

  def _tokenize(self, text: str) -> list[tuple[str, str, int]]:
    tokens: list[tuple[str, str, int]] = []
    position, end = 0, len(text.rstrip())
    while position < end:
      match = _TOKEN.match(text, position)
      if match is None:
        start = position + len(text[position:]) - len(text[position:].lstrip())
        if text[start] == "`":
          raise ExpressionError(f"the name that begins at position {start + 1} of {shorten(repr(text))} has no closing "
                                "backtick")
        raise ExpressionError(f"unexpected character {text[start]!r} at position {start + 1} of {shorten(repr(text))}")
      kind = match.lastgroup or ""  # each alternative of the pattern has a name
      tokens.append((kind, match[kind], match.start(kind)))
      position = match.end()
      if len(tokens) > MAX_TOKENS:
        raise ExpressionError(f"formula has more than {MAX_TOKENS} numbers, names, operators and brackets")
    tokens.append(("end", "", len(text)))
    return tokens

  def parse(self) -> Node:
    if len(self.tokens) == 1:
      raise ExpressionError("the formula is empty")
    node = self._sum()
    if self._kind() != "end":
      raise self._unexpected("an operator or the end")
    return node

  def _kind(self) -> str:
    return self.tokens[self.position][0]

  def _take(self, *ops: str) -> str | None:
    kind, text, _ = self.tokens[self.position]
    if kind == "op" and text in ops:
      self.position += 1
      return text
    return None

  def _unexpected(self, expected: str) -> ExpressionError:
    kind, text, at = self.tokens[self.position]
    found = "the end" if kind == "end" else repr(text)
    return ExpressionError(f"expected {expected}, got {found} at position {at + 1} of {shorten(repr(self.text))}")

  def _sum(self) -> Node:
    node = self._product()
    while op := self._take("+", "-"):
      term = self._product()
      node = Node("+", (node, term if op == "+" else negate(term)))
    return node

  def _product(self) -> Node:
    node = self._signed()
    while op := self._take("*", "/"):
      factor = self._signed() if op == "*" else power(self._signed(), number(-1))
      # 1/x is the inverse itself, not a product with one.
      node = factor if op == "/" and node == number(1) else Node("*", (node, factor))
    return node

  def _signed(self) -> Node:
    self.depth += 1
    if self.depth > MAX_DEPTH:
      raise ExpressionError(f"formula is nested more than {MAX_DEPTH} deep")
    sign = self._take("+", "-")
    node = self._signed() if sign else self._power()
    self.depth -= 1
    return negate(node) if sign == "-" else node

  def _power(self) -> Node:
    base = self._atom()
    return power(base, self._signed()) if self._take("**", "^") else base

  def _atom(self) -> Node:
    kind, text, at = self.tokens[self.position]
    if kind == "number":
      self.position += 1
      value = float(text)
      if not math.isfinite(value):
        raise ExpressionError(f"number {shorten(text, 60)} at position {at + 1} is too large")
      return number(value)
    if kind == "name":
      self.position += 1
      return self._name(text, at)
    if kind == "quoted":
      self.position += 1
      return self._column(text[1:-1].replace("``", "`"), at)
    if self._take("("):
      node = self._sum()
      if not self._take(")"):
        raise self._unexpected("')'")
      return node
    raise self._unexpected("a number, a name or '('")

  def _column(self, name: str, at: int) -> Node:
    """A column by its name: what stands in backticks is never a function, a constant or a symbol."""
    if name not in self.variables:
      raise self._unknown(name, at, self.variables)
    return variable(self.variables.index(name))

  def _name(self, name: str, at: int) -> Node:
    is_called = self.tokens[self.position][1] == "("
    if is_called and self.allow_unknowns and name not in FUNCTIONS:
      return unknown(name, self._arguments(name))
    if name in self.variables and not (is_called and name in FUNCTIONS):
      return variable(self.variables.index(name))
    if name in FUNCTIONS and self._take("("):
      arguments = [self._sum()]
      if name in _OF_TWO:
        if not self._take(","):
          raise self._unexpected(f"',' and the second argument of {name}")
        arguments.append(self._sum())
      if not self._take(")"):
        raise self._unexpected("')'")
      return self.functions[name](*arguments)
    if name in CONSTANTS:
      return number(CONSTANTS[name])
    if name in FUNCTIONS:
      raise self._unexpected(f"'(' after {name}")
    if self.allow_symbols and self.tokens[self.position][1] != "(":
      if raised := _RAISED.search(name):
        place = f"position {at + raised.start() + 1} of {shorten(repr(self.text))}"
        raise ExpressionError(f"{raised[0]!r} at {place} is no part of a constant's name: a power is written with **")
      return symbol(name)
    raise self._unknown(name, at, [*self.variables, *FUNCTIONS, *CONSTANTS])

  def _arguments(self, name: str) -> tuple[int, ...]:
    """The columns between the brackets of an unknown function."""
    self.position += 1
    columns: list[int] = []
    while True:
      kind, text, at = self.tokens[self.position]
      if kind not in ("name", "quoted"):
        raise self._unexpected(f"a column as an argument of {name}")
      self.position += 1
      text = text[1:-1].replace("``", "`") if kind == "quoted" else text
      if text not in self.variables:
        raise ExpressionError(f"{name} has no column {text!r} at position {at + 1}: {suggest(text, self.variables)}")
      columns.append(self.variables.index(text))
      if len(set(columns)) < len(columns):
        raise ExpressionError(f"{name} has the argument {text!r} twice")
      if not self._take(","):
        break
    if not self._take(")"):
      raise self._unexpected(f"',' or ')' after an argument of {name}")
    return tuple(columns)

  def _unknown(self, name: str, at: int, known: Sequence[str]) -> ExpressionError:
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return ExpressionError(
      f"unknown name {name!r} at position {at + 1}: expected a variable ({', '.join(self.variables)}) "
      f"or a function ({', '.join(sorted(FUNCTIONS))}){hint}"
    )
