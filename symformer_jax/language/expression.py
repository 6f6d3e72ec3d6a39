"""Formulas as trees, and their ways between ids, text, SymPy and LaTeX (the parser is in parser.py).

A tree is made of `Node`s. Trees that go to a model are canonical: no minus and no division (`neg`, `inv`),
powers 2, 3, 1/2, -1 by their own tokens, sums and products nested to the right with numbers last, as in the
paper's example `0.017 x + 1781.5 -> [+, *, x, C-1, C4]`.
"""

from collections.abc import Iterator, Sequence
import functools
import math
from typing import Any, NamedTuple

import numpy as np

from symformer_jax.errors import ExpressionError, InputError
from symformer_jax.language import constants, operators
from symformer_jax.language.vocabulary import END, PAD, START, Vocabulary

NUMBER, VARIABLE, SYMBOL = "number", "variable", "symbol"


class Node(NamedTuple):
  """A formula or a part of one.

  Attributes:
    token: an operator's name, or `number`, `variable`, `symbol` for leaves.
    args: one or two children; none for leaves.
    value: a number's value, a variable's column index or a symbol's name; None for operators.
  """

  token: str
  args: tuple["Node", ...] = ()
  value: Any = None

  @property
  def is_number(self) -> bool:
    return self.token == NUMBER


def number(value: float) -> Node:
  return Node(NUMBER, (), float(value))


def variable(index: int) -> Node:
  return Node(VARIABLE, (), index)


def symbol(name: str) -> Node:
  """A named constant without a value, as in `refine("b1*x")`."""
  return Node(SYMBOL, (), name)


def chain(token: str, nodes: Sequence[Node]) -> Node:
  """Nests operands of `+` or `*` to the right: [a, b, c] -> + a + b c."""
  return functools.reduce(lambda rest, node: Node(token, (node, rest)), reversed(nodes[:-1]), nodes[-1])


def flatten(node: Node, token: str) -> list[Node]:
  """The operands of nested sums (`+`) or products (`*`), left to right."""
  if node.token != token:
    return [node]
  return [leaf for arg in node.args for leaf in flatten(arg, token)]


def negate(node: Node) -> Node:
  if node.is_number:
    return number(-node.value)
  return node.args[0] if node.token == "neg" else Node("neg", (node,))


_POWER_TOKENS = {2.0: ("pow2",), 3.0: ("pow3",), 0.5: ("sqrt",), -1.0: ("inv",),
                 -2.0: ("inv", "pow2"), -3.0: ("inv", "pow3"), -0.5: ("inv", "sqrt")}


def power(base: Node, exponent: Node) -> Node:
  """`base ** exponent` with the tokens made for common exponents."""
  if exponent.is_number and exponent.value == 1:
    return base
  tokens = _POWER_TOKENS.get(exponent.value) if exponent.is_number else None
  if tokens is None:
    return Node("pow", (base, exponent))
  return functools.reduce(lambda inner, token: Node(token, (inner,)), reversed(tokens), base)


def walk(node: Node) -> Iterator[Node]:
  """All nodes in prefix order."""
  stack = [node]
  while stack:
    node = stack.pop()
    yield node
    stack.extend(node.args[::-1])


def complexity(node: Node) -> int:
  """Nodes of the expression tree as written out, each constant and variable one."""
  return sum(operators.BY_NAME[n.token].complexity if n.args else 1 for n in walk(node))


def sort_key(node: Node) -> tuple:
  """Order of operands: numbers last, then by tokens, then by values: the same for equal skeletons."""
  tokens, values = [], []
  for token, _, value in walk(node):
    tokens.append((token, value if token == VARIABLE else 0))
    if token == NUMBER:
      values.append(value)
  return node.token == NUMBER, tuple(tokens), tuple(values)


def sort_operands(node: Node) -> Node:
  """Flattens and orders all sums and products: the canonical order of training data."""
  if not node.args:
    return node
  if node.token in ("+", "*"):
    operands = [sort_operands(n) for n in flatten(node, node.token)]
    return chain(node.token, sorted(operands, key=sort_key))
  return node._replace(args=tuple(sort_operands(arg) for arg in node.args))


def evaluate(node: Node, x: np.ndarray) -> np.ndarray:
  """The formula's values by NumPy, in the precision of `x`: the judge's and the exporters' evaluation.

  Args:
    node: a tree without symbols.
    x: points [N, D].
  Returns:
    y [N]; NaN or infinite where the formula is undefined.
  Raises:
    ExpressionError: for a symbol, or a variable beyond D columns.
  """
  def value(n: Node) -> np.ndarray:
    if n.args:
      return operators.BY_NAME[n.token].numpy_fn(*(value(arg) for arg in n.args))
    if n.is_number:
      return np.asarray(n.value, x.dtype)
    if n.token == SYMBOL:
      raise ExpressionError(f"constant {n.value!r} has no value")
    if n.value >= x.shape[1]:
      raise ExpressionError(f"the formula has variable {n.value + 1}, but there are {x.shape[1]} columns")
    return x[:, n.value]

  with np.errstate(all="ignore"):  # what is undefined shows in the result
    return np.broadcast_to(value(node), x.shape[:1])


# --- ids ----------------------------------------------------------------------------------------------------


def encode(node: Node, vocab: Vocabulary) -> tuple[list[int], list[float]]:
  """Writes a tree as ids and constants, without start and end.

  Returns:
    `(ids, constants)` of equal length L; constants hold c_m at C tokens (the raw value in the base encoding,
    0 in the skeleton encoding) and 0 elsewhere.
  Raises:
    InputError: for a number that cannot be encoded or a variable beyond the vocabulary.
  """
  ids, values = [], []
  for n in walk(node):
    token, value = _token_of(n, vocab)
    if token not in vocab.ids:
      raise InputError(f"{token!r} is not in the vocabulary of {vocab.num_variables} variables")
    ids.append(vocab.ids[token])
    values.append(value)
  return ids, values


def _token_of(node: Node, vocab: Vocabulary) -> tuple[str, float]:
  if node.token == VARIABLE:
    return f"x{node.value}", 0.0
  if node.token == SYMBOL:
    raise InputError(f"constant {node.value!r} has no value and cannot be encoded")
  if not node.is_number:
    return node.token, 0.0
  if constants.is_small_integer(node.value):
    return str(int(node.value)), 0.0
  try:
    exponent, mantissa = constants.split_constant(node.value)
  except ValueError as error:
    raise InputError(str(error)) from None
  if vocab.encoding == "extended":
    return f"C{exponent}", mantissa
  return "C", node.value if vocab.encoding == "base" else 0.0


def decode(ids: Sequence[int], values: Sequence[float], vocab: Vocabulary) -> Node:
  """Reads a tree from ids and the *numeric* values at constant tokens (see interpreter.constant_values).

  Raises:
    ExpressionError: when the ids are no complete prefix expression.
  """
  stop = {vocab.ids[PAD], vocab.ids[END]}
  position = 1 if len(ids) and ids[0] == vocab.ids[START] else 0

  def read() -> Node:
    nonlocal position
    if position >= len(ids) or int(ids[position]) in stop:
      raise ExpressionError(f"incomplete prefix expression: ends after {position} tokens")
    i, position = position, position + 1
    token = vocab.tokens[int(ids[i])]
    arity = vocab.arity[int(ids[i])]
    if arity > 0:
      return Node(token, tuple(read() for _ in range(arity)))
    if vocab.is_constant[int(ids[i])]:
      return number(float(values[i]))
    if int(ids[i]) >= vocab.first_variable_id:
      return variable(int(ids[i]) - vocab.first_variable_id)
    if token == START:
      raise ExpressionError(f"start token inside a prefix expression at {i}")
    return number(int(token))

  node = read()
  if position < len(ids) and int(ids[position]) not in stop:
    raise ExpressionError(f"prefix expression is complete after {position} tokens, but {len(ids)} were given")
  return node


def _leaf_name(node: Node, names: Sequence[str] | None) -> str:
  """The name of a variable or a symbol."""
  if node.token == SYMBOL:
    return node.value
  return names[node.value] if names else f"x{node.value}"


# --- SymPy --------------------------------------------------------------------------------------------------


def to_sympy(node: Node, names: Sequence[str] | None = None, *, is_exact: bool = False) -> Any:
  """The tree as a SymPy expression over real symbols named `names` (default x0, x1, ...).

  With `is_exact`, a constant is the fraction that its shortest decimal is: 0.1 is 1/10.
  """
  import sympy  # imported late: training and the interpreter never need it

  def convert(n: Node):
    if n.args:
      return operators.BY_NAME[n.token].sympy_fn(sympy, *(convert(arg) for arg in n.args))
    if n.is_number:
      if is_exact:
        return sympy.Rational(format_number(n.value))
      return sympy.Integer(int(n.value)) if n.value.is_integer() else sympy.Float(n.value)
    name = _leaf_name(n, names)
    return sympy.Symbol(name, real=True)

  return convert(node)


@functools.cache
def _sympy_functions() -> dict[Any, str]:
  import sympy

  names = {"exp": "exp", "log": "ln", "sin": "sin", "cos": "cos", "tan": "tan", "cot": "cot",
           "asin": "asin", "acos": "acos", "atan": "atan", "acot": "acot"}
  return {getattr(sympy, key): token for key, token in names.items()}


def from_sympy(expr: Any, symbols: Sequence[Any]) -> Node:
  """A canonical tree (operands sorted, no minus, no division) of a SymPy expression.

  Args:
    expr: sums, products, powers and the functions of the operator table over real numbers.
    symbols: SymPy symbols of the variables, in column order.
  Raises:
    ExpressionError: for anything else (complex numbers, infinities, unknown functions).
  """
  columns = {s: variable(i) for i, s in enumerate(symbols)}
  functions = _sympy_functions()

  def convert(e) -> Node:
    if e in columns:
      return columns[e]
    if e.is_number and not e.is_finite:
      raise ExpressionError(f"not a finite number: {e}")
    if e.is_Number or e.is_NumberSymbol:
      return number(float(e))
    if e.is_Add:
      return chain("+", sorted((convert(a) for a in e.args), key=sort_key))
    if e.is_Mul:
      return _product([convert(a) for a in e.args])
    if e.is_Pow:
      return power(convert(e.base), convert(e.exp))
    if e.func in functions:
      return Node(functions[e.func], (convert(e.args[0]),))
    raise ExpressionError(f"cannot express {e.func.__name__} with the operators of this project")

  return convert(expr)


def _product(factors: list[Node]) -> Node:
  """A product in canonical order; a factor -1 becomes `neg`."""
  rest = [f for f in factors if not (f.is_number and f.value == -1)]
  node = chain("*", sorted(rest, key=sort_key)) if rest else number(1)
  return negate(node) if (len(factors) - len(rest)) % 2 else node


# --- text ---------------------------------------------------------------------------------------------------


def format_number(value: float, digits: int | None = None) -> str:
  """Shortest decimal of a number: exact to float64 without `digits`, else to so many significant digits."""
  if not math.isfinite(value):
    return repr(value)
  if digits is not None:
    value = float(f"{value:.{digits}g}")
  if value == int(value) and abs(value) < 1e15:
    return str(int(value))
  return repr(value)


def to_text(node: Node, names: Sequence[str] | None = None, *, digits: int | None = None) -> str:
  """Python syntax with bare NumPy names (`a*x**2 + sin(x)`); cot, acot and inv are written out."""
  return _Printer(names, digits, is_latex=False).render(node)


def to_latex(node: Node, names: Sequence[str] | None = None, *, digits: int | None = None) -> str:
  """LaTeX of the tree; names of several letters are set upright."""
  return _Printer(names, digits, is_latex=True).render(node)


_SUM, _PRODUCT, _POWER, _ATOM = 1, 2, 3, 4


class _Printer:
  """Renders a tree with as few brackets as its precedences allow."""

  def __init__(self, names: Sequence[str] | None, digits: int | None, *, is_latex: bool):
    self.names, self.digits, self.is_latex = names, digits, is_latex

  def render(self, node: Node) -> str:
    return self._render(node)[0]

  def _bracketed(self, node: Node, least: int) -> str:
    text, level = self._render(node)
    if level >= least:
      return text
    return f"\\left({text}\\right)" if self.is_latex else f"({text})"

  def _render(self, node: Node) -> tuple[str, int]:
    if not node.args:
      return self._leaf(node)
    if node.token in ("+", "-"):
      return self._sum(node), _SUM
    if node.token in ("*", "neg", "inv", "/"):
      return self._product(node)
    if node.token == "pow" or node.token in ("pow2", "pow3", "pow4", "pow5", "pow6"):
      exponent = node.args[1] if node.token == "pow" else number(int(node.token[3:]))
      return self._power(node.args[0], exponent), _POWER
    if not self.is_latex and node.token in ("cot", "acot"):
      inner = self._bracketed(node.args[0], _ATOM if node.token == "acot" else _SUM)
      form = operators.BY_NAME[node.token].python.format(inner)
      return form, _PRODUCT if node.token == "cot" else _ATOM
    op = operators.BY_NAME[node.token]
    return (op.latex if self.is_latex else op.python).format(self._render(node.args[0])[0]), _ATOM

  def _leaf(self, node: Node) -> tuple[str, int]:
    if node.is_number:
      text = format_number(node.value, self.digits)
      if self.is_latex and "e" in text:
        mantissa, exponent = text.split("e")
        return f"{mantissa} \\cdot 10^{{{int(exponent)}}}", _PRODUCT
      return text, _SUM if node.value < 0 else _ATOM
    name = _leaf_name(node, self.names)
    return _latex_name(name) if self.is_latex else name, _ATOM

  def _sum(self, node: Node) -> str:
    text = ""
    for sign, term in _signed_terms(node):
      body = self._bracketed(term, _PRODUCT)
      text += f" {sign} {body}" if text else (body if sign == "+" else f"-{body}")
    return text

  def _product(self, node: Node) -> tuple[str, int]:
    sign, above, below = _fraction(node)
    level = _SUM if sign < 0 else _PRODUCT
    prefix = "-" if sign < 0 else ""
    if self.is_latex and below:
      top = self._factors(above) if len(above) != 1 else self.render(above[0])
      bottom = self._factors(below) if len(below) != 1 else self.render(below[0])
      return f"{prefix}\\frac{{{top}}}{{{bottom}}}", level
    text = self._factors(above)
    if below:
      bottom = f"({self._factors(below)})" if len(below) > 1 else self._bracketed(below[0], _POWER)
      text = f"{text}/{bottom}"
    return prefix + text, level

  def _factors(self, factors: list[Node]) -> str:
    if not factors:
      return "1"
    ordered = sorted(factors, key=lambda f: not f.is_number)
    # A single factor under a sign needs brackets when it is a sum; several need them at product level.
    least = _PRODUCT if len(ordered) == 1 else _POWER
    texts = [self._bracketed(f, least) for f in ordered]
    if not self.is_latex:
      return "*".join(texts)
    # Side by side, `3 2` would read as one number.
    joints = [" \\cdot " if text.lstrip("{")[0].isdigit() else " " for text in texts[1:]]
    return texts[0] + "".join(map("".join, zip(joints, texts[1:], strict=True)))

  def _power(self, base: Node, exponent: Node) -> str:
    if self.is_latex:
      return f"{{{self._bracketed(base, _ATOM)}}}^{{{self.render(exponent)}}}"
    # A negative number or a sign in the exponent is bracketed, as a reader expects.
    return f"{self._bracketed(base, _ATOM)}**{self._bracketed(exponent, _ATOM)}"


_LATEX_ESCAPES = str.maketrans({
  **{char: f"\\{char}" for char in "_%&#${} "},
  "\\": "\\backslash ", "^": "\\wedge ", "~": "\\sim ",
})


def _latex_name(name: str) -> str:
  if len(name) == 1 and name.isalnum():
    return name
  if name[0].isalpha() and name[1:].isdigit():
    return f"{name[0]}_{{{name[1:]}}}"
  return f"\\mathrm{{{name.translate(_LATEX_ESCAPES)}}}"


def _signed_terms(node: Node) -> Iterator[tuple[str, Node]]:
  """Terms of a sum, each with its sign taken out."""
  if node.token == "+":
    for arg in node.args:
      yield from _signed_terms(arg)
  elif node.token == "-":
    yield from _signed_terms(node.args[0])
    for sign, term in _signed_terms(node.args[1]):
      yield ("-" if sign == "+" else "+"), term
  elif node.is_number:
    yield ("-", number(-node.value)) if node.value < 0 else ("+", node)
  elif node.token in ("*", "neg", "inv", "/"):
    sign, above, below = _fraction(node)
    yield ("-" if sign < 0 else "+"), _rebuild(above, below)
  else:
    yield "+", node


def _rebuild(above: list[Node], below: list[Node]) -> Node:
  """A product of factors above and below the line as a tree without a sign."""
  factors = above + [Node("inv", (f,)) for f in below]
  return chain("*", factors) if factors else number(1)


def _fraction(node: Node) -> tuple[int, list[Node], list[Node]]:
  """Splits a product into its sign, its factors above and those below the line."""
  if node.token == "*":
    first, second = (_fraction(arg) for arg in node.args)
    return first[0] * second[0], first[1] + second[1], first[2] + second[2]
  if node.token == "/":
    first, second = (_fraction(arg) for arg in node.args)
    return first[0] * second[0], first[1] + second[2], first[2] + second[1]
  if node.token == "neg":
    sign, above, below = _fraction(node.args[0])
    return -sign, above, below
  if node.token == "inv":
    sign, above, below = _fraction(node.args[0])
    return sign, below, above
  if node.is_number and node.value < 0:
    return -1, [] if node.value == -1 else [number(-node.value)], []
  if node.is_number and node.value == 1:
    return 1, [], []
  return 1, [node], []
