"""Trees as text: Python syntax and LaTeX, with as few brackets as either needs."""

from collections.abc import Iterator, Sequence
import math

from symformer_jax.language import operators
from symformer_jax.language.expression import SYMBOL, Node, chain, number
from symformer_jax.language.names import latex_name, written


def leaf_name(node: Node, names: Sequence[str] | None) -> str:
  """The name of a variable or a symbol."""
  if node.token == SYMBOL:
    return node.value
  return names[node.value] if names else f"x{node.value}"


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
  """Python syntax with bare NumPy names (`a*x**2 + sin(x)`); cot, acot and inv are written out.

  Columns whose names are no plain words stand in backticks (`names`), so that `parser.parse` reads any text back.
  """
  return _Printer(names and tuple(map(written, names)), digits, is_latex=False).render(node)


def to_latex(node: Node, names: Sequence[str] | None = None, *, digits: int | None = None) -> str:
  """LaTeX of the tree; names of several letters are set upright, and those that look like mathematics as code."""
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
    name = leaf_name(node, self.names)
    return latex_name(name) if self.is_latex else name, _ATOM

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
    factor, above, below = _fraction(node)
    yield ("-" if factor < 0 else "+"), _rebuild(above, below)
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
