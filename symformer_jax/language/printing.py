"""Trees as text: Python syntax, LaTeX and other languages, with as few brackets as each needs."""

from collections.abc import Iterator, Sequence
import dataclasses
import itertools
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


def to_text(
  node: Node, names: Sequence[str] | None = None, *, digits: int | None = None, has_ones: bool = False
) -> str:
  """Python syntax with bare NumPy names (`a*x**2 + sin(x)`); cot, acot and inv are written out.

  Columns whose names are no plain words stand in backticks (`names`), so that `parser.parse` reads any text back.
  """
  dialect = dataclasses.replace(PYTHON, has_ones=True) if has_ones else PYTHON
  return render(node, names and tuple(map(written, names)), dialect, digits=digits)


def to_latex(node: Node, names: Sequence[str] | None = None, *, digits: int | None = None) -> str:
  """LaTeX of the tree; names of several letters are set upright, and those that look like mathematics as code."""
  return render(node, names, LATEX, digits=digits)


@dataclasses.dataclass(frozen=True)
class Dialect:
  """How a language writes formulas.

  Attributes:
    column: of the operator table, which has the forms.
    module: stands before the names of functions.
    nan, infinity: what is no finite number.
    has_whole_numbers: whether `2` may stand for 2.0; in C and Julia whole numbers divide and overflow otherwise.
    end_of_whole_numbers: from this size on whole numbers have a decimal point; JAX takes `2` for an int32.
    has_power_sign: whether powers have a sign that binds tighter than a product; else a function.
    is_minus_tight: whether a leading minus binds tighter than a power, as in Excel, where `-2^2` is 4.
    has_ones: whether a factor 1 of a tree is written, as where it has a unit.
  """

  column: str
  module: str = ""
  nan: str = "nan"
  infinity: str = "inf"
  has_whole_numbers: bool = True
  end_of_whole_numbers: float = math.inf
  has_power_sign: bool = True
  is_minus_tight: bool = False
  has_ones: bool = False

  def form(self, token: str, *args: str) -> str:
    """The text of an operator with its arguments."""
    return getattr(operators.BY_NAME[token], self.column).format(*args, m=self.module)

  def number(self, value: float, digits: int | None) -> str:
    if math.isnan(value):
      return self.nan
    if math.isinf(value):
      return self.infinity if value > 0 else f"-{self.infinity}"
    text = format_number(value, digits)
    is_whole = self.has_whole_numbers and abs(value) < self.end_of_whole_numbers
    return text if is_whole or not text.lstrip("-").isdigit() else f"{text}.0"


PYTHON, LATEX = Dialect("python"), Dialect("latex")


def render(node: Node, names: Sequence[str] | None, dialect: Dialect, *, digits: int | None = None) -> str:
  """The tree in a language."""
  return _Printer(names, digits, dialect).render(node)


_SUM, _PRODUCT, _POWER, _ATOM = 1, 2, 3, 4


class _Printer:
  """Renders a tree with as few brackets as its precedences allow."""

  def __init__(self, names: Sequence[str] | None, digits: int | None, dialect: Dialect):
    self.names, self.digits, self.dialect = names, digits, dialect
    self.is_latex = dialect is LATEX

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
      return self._power(node)
    if not self.is_latex and node.token in ("cot", "acot"):
      inner = self._bracketed(node.args[0], _ATOM if node.token == "acot" else _SUM)
      return self.dialect.form(node.token, inner), _PRODUCT if node.token == "cot" else _ATOM
    return self.dialect.form(node.token, *self._arguments(node)), _ATOM

  def _arguments(self, node: Node) -> list[str]:
    """The arguments of a function; torch compares tensors with tensors alone, numbers are made some."""
    texts = [self.render(arg) for arg in node.args]
    if self.dialect.module != "torch." or len(texts) == 1:
      return texts
    return [f"torch.full_like({other}, {text})" if arg.is_number else text
            for arg, text, other in zip(node.args, texts, texts[::-1], strict=True)]

  def _leaf(self, node: Node) -> tuple[str, int]:
    if node.is_number:
      text = self.dialect.number(node.value, self.digits)
      if self.is_latex and "e" in text:
        mantissa, exponent = text.split("e")
        return f"{mantissa} \\cdot 10^{{{int(exponent)}}}", _PRODUCT
      return text, _SUM if node.value < 0 else _ATOM
    name = leaf_name(node, self.names)
    return latex_name(name) if self.is_latex else name, _ATOM

  def _sum(self, node: Node) -> str:
    terms = list(_signed_terms(node, self.dialect.has_ones))
    # As a person would: `1 - 0.4*x`, not `-0.4*x + 1`.
    first = next((i for i, (sign, _) in enumerate(terms) if sign == "+"), 0)
    text = ""
    for sign, term in [terms[first], *terms[:first], *terms[first + 1 :]]:
      body = self._bracketed(term, _PRODUCT)
      text += f" {sign} {body}" if text else (body if sign == "+" else self._negative(body))
    return text

  def _negative(self, text: str) -> str:
    """A product with a leading minus."""
    return f"-({text})" if self.dialect.is_minus_tight and "^" in text else f"-{text}"

  def _product(self, node: Node) -> tuple[str, int]:
    sign, above, below = _fraction(node, self.dialect.has_ones)
    if self.is_latex and below:
      top = self._factors(above) if len(above) != 1 else self.render(above[0])
      bottom = self._factors(below) if len(below) != 1 else self.render(below[0])
      return f"{'-' if sign < 0 else ''}\\frac{{{top}}}{{{bottom}}}", _PRODUCT
    text = self._factors(above)
    if below:
      bottom = f"({self._factors(below)})" if len(below) > 1 else self._bracketed(below[0], _POWER)
      text = f"{text}/{bottom}"
    return self._negative(text) if sign < 0 else text, _PRODUCT

  def _factors(self, factors: list[Node]) -> str:
    if not factors:
      return self.dialect.number(1.0, self.digits)
    ordered = sorted(factors, key=lambda f: not f.is_number)
    # A single factor under a sign needs brackets when it is a sum; several need them at product level.
    least = _PRODUCT if len(ordered) == 1 else _POWER
    texts = [self._bracketed(f, least) for f in ordered]
    if not self.is_latex:
      return "*".join(texts)
    return texts[0] + "".join(_joint(*pair) + pair[1] for pair in itertools.pairwise(texts))

  def _power(self, node: Node) -> tuple[str, int]:
    if self.is_latex:
      exponent = node.args[1] if node.token == "pow" else number(int(node.token[3:]))
      return f"{{{self._bracketed(node.args[0], _ATOM)}}}^{{{self.render(exponent)}}}", _POWER
    if not self.dialect.has_power_sign:
      return self.dialect.form(node.token, *map(self.render, node.args)), _ATOM
    # A negative number or a sign in the exponent is bracketed, as a reader expects; so is a power in either place,
    # which languages group from different sides.
    return self.dialect.form(node.token, *(self._bracketed(arg, _ATOM) for arg in node.args)), _POWER


def _joint(first: str, second: str) -> str:
  """What stands between two factors in LaTeX: side by side `3 2` would read as one number, two words as one."""
  if second.lstrip("{")[0].isdigit():
    return " \\cdot "
  return " \\, " if "\\mathrm" in first + second else " "


def _signed_terms(node: Node, has_ones: bool) -> Iterator[tuple[str, Node]]:
  """Terms of a sum, each with its sign taken out."""
  if node.token == "+":
    for arg in node.args:
      yield from _signed_terms(arg, has_ones)
  elif node.token == "-":
    yield from _signed_terms(node.args[0], has_ones)
    for sign, term in _signed_terms(node.args[1], has_ones):
      yield ("-" if sign == "+" else "+"), term
  elif node.is_number:
    yield ("-", number(-node.value)) if node.value < 0 else ("+", node)
  elif node.token in ("*", "neg", "inv", "/"):
    factor, above, below = _fraction(node, has_ones)
    yield ("-" if factor < 0 else "+"), _rebuild(above, below)
  else:
    yield "+", node


def _rebuild(above: list[Node], below: list[Node]) -> Node:
  """A product of factors above and below the line as a tree without a sign."""
  factors = above + [Node("inv", (f,)) for f in below]
  return chain("*", factors) if factors else number(1)


def _fraction(node: Node, has_ones: bool) -> tuple[int, list[Node], list[Node]]:
  """Splits a product into its sign, its factors above and those below the line; `has_ones`: 1 is one of them."""
  if node.token == "*":
    first, second = (_fraction(arg, has_ones) for arg in node.args)
    return first[0] * second[0], first[1] + second[1], first[2] + second[2]
  if node.token == "/":
    first, second = (_fraction(arg, has_ones) for arg in node.args)
    return first[0] * second[0], first[1] + second[2], first[2] + second[1]
  if node.token == "neg":
    sign, above, below = _fraction(node.args[0], has_ones)
    return -sign, above, below
  if node.token == "inv":
    sign, above, below = _fraction(node.args[0], has_ones)
    return sign, below, above
  if node.is_number and node.value < 0:
    return -1, [] if node.value == -1 and not has_ones else [number(-node.value)], []
  if node.is_number and node.value == 1 and not has_ones:
    return 1, [], []
  return 1, [node], []
