"""Trees as SymPy expressions and back; imports SymPy where it is used: training and the interpreter never need it."""

from collections.abc import Sequence
import fractions
import functools
from typing import Any

from symformer_jax.errors import ExpressionError
from symformer_jax.language import operators
from symformer_jax.language.expression import Node, chain, negate, number, power, sort_key, variable
from symformer_jax.language.printing import format_number, leaf_name

# A polynomial with rational coefficients: whole exponents of all variables, and the coefficient, of each term.
Terms = tuple[tuple[tuple[int, ...], fractions.Fraction], ...]


def to_sympy(node: Node, names: Sequence[str] | None = None, *, is_exact: bool = False) -> Any:
  """The tree as a SymPy expression over real symbols named `names` (default x0, x1, ...).

  With `is_exact`, a constant is the fraction that its shortest decimal is: 0.1 is 1/10.
  """
  import sympy

  def convert(n: Node) -> Any:
    if n.args:
      return operators.BY_NAME[n.token].sympy_fn(sympy, *(convert(arg) for arg in n.args))
    if n.is_number:
      if is_exact:
        return sympy.Rational(format_number(n.value))
      return sympy.Integer(int(n.value)) if n.value.is_integer() else sympy.Float(n.value)
    name = leaf_name(n, names)
    return sympy.Symbol(name, real=True)

  return convert(node)


@functools.cache
def _sympy_functions() -> dict[Any, str]:
  import sympy

  names = {"exp": "exp", "log": "ln", "sin": "sin", "cos": "cos", "tan": "tan", "cot": "cot",
           "asin": "asin", "acos": "acos", "atan": "atan", "acot": "acot", "tanh": "tanh", "sinh": "sinh",
           "cosh": "cosh", "Abs": "abs", "sign": "sign"}
  return {getattr(sympy, key): token for key, token in names.items()}


def from_sympy(expr: Any, symbols: Sequence[Any], *, has_requested: bool = False) -> Node:
  """A canonical tree (operands sorted, no minus, no division) of a SymPy expression.

  Args:
    expr: sums, products, powers and the functions of the operator table over real numbers.
    symbols: SymPy symbols of the variables, in column order.
    has_requested: whether operators that no model knows may come out.
  Raises:
    ExpressionError: for anything else (complex numbers, infinities, unknown functions).
  """
  columns = {s: variable(i) for i, s in enumerate(symbols)}
  functions = {function: token for function, token in _sympy_functions().items()
               if has_requested or token not in operators.REQUESTED}

  def convert(e: Any) -> Node:
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
    if has_requested and e.func.__name__ in ("Min", "Max"):
      return chain(e.func.__name__.lower(), sorted((convert(a) for a in e.args), key=sort_key))
    if e.func in functions:
      return Node(functions[e.func], (convert(e.args[0]),))
    raise ExpressionError(f"cannot express {e.func.__name__} with the operators of this project")

  return convert(expr)


def _product(factors: list[Node]) -> Node:
  """A product in canonical order; a factor -1 becomes `neg`."""
  rest = [f for f in factors if not (f.is_number and f.value == -1)]
  node = chain("*", sorted(rest, key=sort_key)) if rest else number(1)
  return negate(node) if (len(factors) - len(rest)) % 2 else node


def factor(terms: Terms) -> tuple[fractions.Fraction, list[tuple[Terms, int]]]:
  """A polynomial as a number times powers of irreducible polynomials with rational coefficients.

  Args:
    terms: at least one, with as many exponents each as there are variables.
  Returns:
    `(number, [(factor, how often it divides)])`
  """
  import sympy

  def fraction(value: Any) -> fractions.Fraction:
    return fractions.Fraction(int(value.p), int(value.q))

  symbols = sympy.symbols(f"x0:{len(terms[0][0])}")
  exact = {powers: sympy.Rational(share.numerator, share.denominator) for powers, share in terms}
  lead, found = sympy.Poly.from_dict(exact, *symbols, domain="QQ").factor_list()
  return fraction(lead), [(tuple((powers, fraction(share)) for powers, share in each.terms()), count)
                          for each, count in found]
