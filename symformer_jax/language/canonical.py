"""Brings trees to canonical form by rules alone, without SymPy: the same form that `sympy_trees.from_sympy` gives.

A formula is kept as a sum of terms, a dict from monomial to coefficient; a monomial is a frozenset of
(base, exponent) pairs with numeric exponents. Bases are canonical trees: variables, functions, sums under a
negative or broken power, and powers with the variable part of their exponent (x**(2*x) is base x**x, exponent 2).
Coefficients are int or Fraction while they are exact, else float. Products of sums are multiplied out, as
`sympy.expand` does, up to `MAX_TERMS`; sums in a denominator are multiplied out last, so that factors cancel first.

Every rule keeps the value wherever the formula is defined; the domain may grow (x/x becomes 1).
"""

from collections.abc import Callable, Iterable
from fractions import Fraction
import functools
import math

from symformer_jax.language import operators
from symformer_jax.language.expression import NUMBER, Node, chain, number, power, sort_key

# A sum of more terms has more than 50 tokens, the longest a model may say; it is left as a product.
MAX_TERMS = 30
MAX_EXPANDED_POWER = 12
# Terms that cancel up to float64 rounding are gone.
_CANCELLED = 1e-13
# A larger float is a number like any other, not a power to take apart: all rules must agree on it.
_LARGEST_WHOLE = 1e9

Number = int | Fraction | float
Monomial = frozenset  # of (Node, Number)
Sum = dict  # Monomial -> Number

_ONE: Monomial = frozenset()


class _UndefinedError(ArithmeticError):
  """A constant part has no finite real value."""


class _TooLongError(Exception):
  """An expansion would have more than MAX_TERMS terms."""


def canonicalize(node: Node) -> Node:
  """The canonical tree of a formula.

  Constants are folded, like terms and powers combined, small products of sums multiplied out, operands sorted; no
  minus, no division, powers by their own tokens. A tree with a constant part that is not finite (`log(-1)`) is
  returned as it is.
  """
  try:
    return _render(_convert(node))
  except (_UndefinedError, OverflowError, ZeroDivisionError):
    return node


# --- numbers -------------------------------------------------------------------------------------------------------


def _exact(value: Number) -> Number:
  return int(value) if _is_integer(value) else value


def _tidy(value: Number) -> Number:
  """A Fraction that is whole becomes an int; one of long numbers a float, which is as exact as anything needs to be."""
  # isinstance is slow for Fraction, an abstract base class, and this is the innermost call.
  if type(value) is int:
    return value if -_LARGEST_WHOLE < value < _LARGEST_WHOLE else float(value)
  if type(value) is Fraction:
    if value.denominator == 1:
      return _tidy(value.numerator)
    return value if value.denominator < 10**9 and abs(value.numerator) < 10**12 else float(value)
  if not math.isfinite(value):
    raise _UndefinedError
  return value


def _number_power(base: Number, exponent: Number) -> Number:
  if type(exponent) is int and type(base) is not float and abs(exponent) <= 40:
    return _tidy(Fraction(base) ** exponent if exponent < 0 else base**exponent)
  value = float(base) ** float(exponent)
  if isinstance(value, complex):
    raise _UndefinedError
  root = round(value)
  is_exact_root = type(base) is not float and float(exponent) == 0.5 and root * root == base
  return root if is_exact_root else _tidy(value)


def _is_integer(value: Number) -> bool:
  return isinstance(value, int) or -_LARGEST_WHOLE < value < _LARGEST_WHOLE and value == int(value)


# --- sums ----------------------------------------------------------------------------------------------------------


def _constant(value: Number) -> Sum:
  return {_ONE: value} if value else {}


def _atom(node: Node, exponent: Number = 1) -> Sum:
  return {frozenset(((node, exponent),)): 1}


def _constant_value(total: Sum) -> Number | None:
  """The value of a sum without variables, or None."""
  if not total:
    return 0
  return total.get(_ONE) if len(total) == 1 else None


def _add_into(total: Sum, terms: Sum) -> None:
  for monomial, coefficient in terms.items():
    old = total.get(monomial)
    if old is None:
      total[monomial] = coefficient
      continue
    new = _tidy(old + coefficient)
    if abs(new) <= _CANCELLED * abs(old):
      del total[monomial]
    else:
      total[monomial] = new


def _scale(total: Sum, factor: Number) -> Sum:
  if type(factor) is int and factor == 1:
    return total
  # Products may underflow: a coefficient of 0 is no term.
  return {monomial: new for monomial, coefficient in total.items() if (new := _tidy(coefficient * factor))}


def _merge(first: Monomial, second: Monomial) -> dict[Node, Number]:
  """Exponents of a product of two monomials."""
  exponents = dict(first)
  for base, exponent in second:
    new = _tidy(exponents.get(base, 0) + exponent)
    if new and not -_CANCELLED <= new <= _CANCELLED:
      exponents[base] = new
    else:
      exponents.pop(base, None)
  return exponents


def _multiply(first: Sum, second: Sum) -> Sum:
  """The product, multiplied out."""
  if len(first) * len(second) > 4 * MAX_TERMS:
    raise _TooLongError
  total: Sum = {}
  for m1, c1 in first.items():
    for m2, c2 in second.items():
      coefficient = _tidy(c1 * c2)
      if not coefficient:
        continue
      if not m1 or not m2:
        _add_into(total, {m1 or m2: coefficient})
        continue
      _add_into(total, _scale(_expand_monomial(_merge(m1, m2)), coefficient))
  if len(total) > MAX_TERMS:
    raise _TooLongError
  return total


# Trees that are bases only under a broken power, as sqrt(x**2); a sum also under a negative one.
_COMPOSITE = frozenset(("+", "*", "neg", "inv", "sqrt", "pow2", "pow3"))


def _is_composite(base: Node) -> bool:
  return base.token in _COMPOSITE or base.token == "pow" and base.args[1].is_number


def _expand_monomial(exponents: dict[Node, Number]) -> Sum:
  """A monomial as a sum: composite bases that have come to an integer power are taken apart."""
  whole = [base for base, e in exponents.items()
           if _is_composite(base) and _is_integer(e) and (e > 0 or base.token != "+")]
  if not whole:
    return {frozenset(exponents.items()): 1}
  factors = []
  for base in whole:
    converted = _convert(base)
    if converted != _atom(base):  # else a product too long to be multiplied out, which stays one base
      factors.append(_numeric_power(converted, exponents.pop(base)))
  return functools.reduce(_multiply, factors, {frozenset(exponents.items()): 1})


def _integer_power(total: Sum, exponent: int) -> Sum:
  """`total ** exponent`, multiplied out, for a positive exponent."""
  if len(total) == 1:
    return _term_power(total, exponent)
  if exponent > MAX_EXPANDED_POWER:
    raise _TooLongError
  return functools.reduce(_multiply, [total] * exponent)


def _term_power(total: Sum, exponent: Number) -> Sum:
  """A single term to an integer power."""
  (monomial, coefficient), = total.items()
  powered = {base: _tidy(e * exponent) for base, e in monomial}
  return _scale(_expand_monomial(powered), _number_power(coefficient, exponent))


# --- products and powers -------------------------------------------------------------------------------------------


def _product(factors: list[Sum]) -> Sum:
  """A product of sums: equal factors above and below the line cancel, then all is multiplied out."""
  if not all(factors):
    return {}
  single: Sum = {_ONE: 1}
  many: dict[Node, Number] = {}
  for factor in factors:
    if len(factor) > 1:
      content, primitive = _split_content(factor)
      node = _render(primitive)
      if node.token == "+":
        many[node] = many.get(node, 0) + 1
        factor = content
    single = _multiply(single, factor)
  for node in list(many):
    for monomial in single:
      below = dict(monomial).get(node, 0)
      if below < 0:
        # What cancels leaves the numerator before it is multiplied out.
        cancelled = min(many[node], -below) if _is_integer(below) else 0
        many[node] -= cancelled
        single = _multiply(single, _atom(node, cancelled))
        break
  try:
    for node, exponent in many.items():
      if exponent:
        single = _multiply(single, _integer_power(_convert(node), int(exponent)))
  except _TooLongError:
    return _unexpanded([*factors])
  return single


def _unexpanded(factors: list[Sum]) -> Sum:
  """A product that is too long to be multiplied out, as one base."""
  nodes = [_render(factor) for factor in factors]
  return _atom(chain("*", sorted(nodes, key=sort_key)))


def _split_content(total: Sum) -> tuple[Sum, Sum]:
  """Splits a sum of several terms into a single term and a primitive sum: `2 x**2 - 2 x -> 2 x, x - 1`.

  The term holds the common powers of variables and functions, the content of exact coefficients and the sign.
  """
  monomials = [dict(monomial) for monomial in total]
  common = {}
  for base in {base for monomial in monomials for base in monomial}:
    least = min(monomial.get(base, 0) for monomial in monomials)
    if least and base.token not in ("exp", "pow", "+"):
      common[base] = least
  inverse = frozenset((base, -e) for base, e in common.items())
  primitive = {frozenset(_merge(monomial, inverse).items()): c for monomial, c in total.items()}
  divisor = _common_divisor(total.values()) * (-1 if _is_negative(primitive) else 1)
  return {frozenset(common.items()): divisor}, _divide(primitive, divisor)


def _divide(total: Sum, divisor: Number) -> Sum:
  if divisor in (1, -1):
    return _scale(total, divisor)
  return {monomial: _tidy(Fraction(coefficient) / divisor) for monomial, coefficient in total.items()}


def _common_divisor(values: Iterable[Number]) -> Number:
  """The content of exact coefficients (gcd of numerators over lcm of denominators); 1 when one is inexact."""
  values = list(values)
  if any(type(value) is float for value in values):
    return 1
  fractions = [Fraction(value) for value in values]
  return _tidy(Fraction(math.gcd(*(f.numerator for f in fractions)), math.lcm(*(f.denominator for f in fractions))))


def _is_negative(total: Sum) -> bool:
  """Whether a sum is written with its sign taken out: more minus signs than plus, or on a tie the leading term's."""
  negative = sum(1 for coefficient in total.values() if coefficient < 0)
  if 2 * negative != len(total):
    return 2 * negative > len(total)
  leading = min(total, key=_leading_key)
  return total[leading] < 0


def _leading_key(monomial: Monomial) -> tuple:
  """Powers of variables first, by falling degree; numbers last."""
  nodes = sorted((sort_key(base), -e) for base, e in monomial)
  is_power = all(not base.args for base, _ in monomial)
  return not monomial, not is_power, [e for _, e in nodes] if is_power else [], nodes


def _power(base: Sum, exponent: Sum) -> Sum:
  value = _constant_value(exponent)
  if value is not None:
    return _numeric_power(base, value)
  base_value = _constant_value(base)
  if base_value is not None and base_value in (0, 1):
    return base
  if len(base) > 1 and len(exponent) > 1:
    return _atom(Node("pow", (_render(base), _render(exponent))))
  if type(base_value) is Fraction and base_value.numerator == 1:
    base, exponent = _constant(base_value.denominator), _scale(exponent, -1)
  total: Sum = {_ONE: 1}
  for monomial, coefficient in exponent.items():
    factor = _numeric_power(base, coefficient) if not monomial else _symbolic_power(base, monomial, coefficient)
    total = _multiply(total, factor)
  return total


def _numeric_power(base: Sum, exponent: Number) -> Sum:
  """`base ** exponent` for a number: integer powers are distributed and multiplied out, broken ones are not."""
  exponent = int(exponent) if _is_integer(exponent) else exponent
  if exponent == 0:
    return {_ONE: 1}
  if exponent == 1:
    return base
  value = _constant_value(base)
  if value is not None:
    return _constant(_number_power(value, exponent))
  if len(base) == 1:
    return _term_power(base, exponent) if type(exponent) is int else _broken_power(base, exponent)
  if type(exponent) is not int:
    return _atom(_render(base), exponent)
  if exponent > 0:
    try:
      return _integer_power(base, exponent)
    except _TooLongError:
      return _atom(power(_render(base), number(exponent)))
  content, primitive = _split_content(base)
  return _multiply(_term_power(content, exponent), _atom(_render(primitive), exponent))


def _broken_power(base: Sum, exponent: Number) -> Sum:
  """A single term to a broken power: positive numbers come out, sqrt(4 x) = 2 sqrt(x); sqrt(x**2) stays."""
  (monomial, coefficient), = base.items()
  outside = _number_power(abs(coefficient), exponent)
  sign = 1 if coefficient > 0 else -1
  if sign > 0 and len(monomial) == 1:
    (inner, inner_exponent), = monomial
    # exp(u) is positive; a broken power exists only where its base is not negative.
    if inner.token == "exp" or not _is_integer(inner_exponent):
      return _scale(_atom(inner, _tidy(inner_exponent * exponent)), outside)
  return _scale(_atom(_render({monomial: sign}), exponent), outside)


def _symbolic_power(base: Sum, monomial: Monomial, coefficient: Number) -> Sum:
  """`base ** (coefficient * monomial)`: positive number factors of the base come out, (2 x)**x = 2**x x**x."""
  if len(base) == 1:
    (inner, factor), = base.items()
    if inner and abs(factor) != 1:
      outside = _symbolic_power({_ONE: abs(factor)}, monomial, coefficient)
      rest = _symbolic_power({inner: 1 if factor > 0 else -1}, monomial, coefficient)
      return _multiply(outside, rest)
    if len(inner) == 1 and factor == 1:
      (only, exponent), = inner
      if only.token == "exp":
        return _exponential(_multiply({monomial: coefficient}, _scale(_convert(only.args[0]), exponent)))
  return _atom(Node("pow", (_render(base), _render({monomial: 1}))), coefficient)


def _exponential(argument: Sum) -> Sum:
  """exp of a sum, as `expand` writes it: a product, with the constant part folded."""
  total: Sum = {_ONE: 1}
  for monomial, coefficient in argument.items():
    if not monomial:
      total = _scale(total, math.exp(coefficient))
      continue
    logarithm = dict(monomial)
    if len(logarithm) == 1 and next(iter(logarithm)).token == "ln" and next(iter(logarithm.values())) == 1:
      factor = _numeric_power(_convert(next(iter(logarithm)).args[0]), coefficient)
    else:
      factor = _atom(Node("exp", (_render({monomial: 1}),)), coefficient)
    total = _multiply(total, factor)
  return total


# --- functions -----------------------------------------------------------------------------------------------------

_ODD = frozenset(("sin", "tan", "cot", "asin", "atan", "acot", "tanh", "sinh", "sign"))
_EVEN = frozenset(("cos", "cosh", "abs"))
_INVERSES = {("sin", "asin"), ("cos", "acos"), ("tan", "atan"), ("cot", "acot")}


def _function(token: str, argument: Sum) -> Sum:
  value = _constant_value(argument)
  if value is not None:
    return _constant(_exact(_tidy(_evaluate(token, float(value)))))
  if token == "ln":
    return _logarithm(argument)
  sign = 1
  if token in _ODD | _EVEN and _is_negative(argument):
    argument, sign = _scale(argument, -1), -1 if token in _ODD else 1
  inner = _render(argument)
  if (token, inner.token) in _INVERSES:
    return _scale(argument and _convert(inner.args[0]), sign)
  return _scale(_atom(Node(token, (inner,))), sign)


def _evaluate(token: str, value: float) -> float:
  import numpy as np

  with np.errstate(all="ignore"):
    return float(operators.BY_NAME[token].numpy_fn(np.float64(value)))


def _extreme(token: str, a: Sum, b: Sum) -> Sum:
  """The smaller or the larger of two."""
  first, second = _constant_value(a), _constant_value(b)
  if first is not None and second is not None:
    return _constant(min(first, second) if token == "min" else max(first, second))
  nodes = sorted((_render(a), _render(b)), key=sort_key)
  return a if nodes[0] == nodes[1] else _atom(Node(token, tuple(nodes)))


def _logarithm(argument: Sum) -> Sum:
  """ln: positive number factors come out as a constant, ln(exp(u)) = u."""
  if len(argument) > 1:
    content = _common_divisor(argument.values())
    total = _constant(math.log(content))
    _add_into(total, _atom(Node("ln", (_render(_divide(argument, content)),))))
    return total
  (monomial, coefficient), = argument.items()
  total = _constant(math.log(abs(coefficient)))
  sign = 1 if coefficient > 0 else -1
  if sign > 0 and len(monomial) == 1:
    (base, exponent), = monomial
    if base.token == "exp":
      _add_into(total, _scale(_convert(base.args[0]), exponent))
      return total
  _add_into(total, _atom(Node("ln", (_render({monomial: sign}),))))
  return total


# --- tree -> sum ---------------------------------------------------------------------------------------------------


def _add(a: Sum, b: Sum) -> Sum:
  total = dict(a)
  _add_into(total, b)
  return total


_RULES: dict[str, Callable[..., Sum]] = {
  "+": _add,
  "-": lambda a, b: _add(a, _scale(b, -1)),
  "*": lambda a, b: _product([a, b]),
  "/": lambda a, b: _product([a, _numeric_power(b, -1)]),
  "neg": lambda a: _scale(a, -1),
  "inv": lambda a: _numeric_power(a, -1),
  "sqrt": lambda a: _numeric_power(a, 0.5),
  **{f"pow{n}": functools.partial(lambda a, n: _numeric_power(a, n), n=n) for n in range(2, 7)},
  "pow": _power,
  **{token: functools.partial(_extreme, token) for token in ("min", "max")},
  "exp": _exponential,
}


def _convert(node: Node) -> Sum:
  if node.token == NUMBER:
    return _constant(_exact(_tidy(node.value)))
  if not node.args:
    return _atom(node)
  if node.token == "pow" and node.args[1].is_number and node.args[1].value == 0:
    return {_ONE: 1}  # whatever the base is, as NumPy and SymPy have it
  args = [_convert(arg) for arg in node.args]
  rule = _RULES.get(node.token)
  try:
    return rule(*args) if rule else _function(node.token, args[0])
  except _TooLongError:
    return _unexpanded_operator(node.token, args)


def _unexpanded_operator(token: str, args: list[Sum]) -> Sum:
  nodes = [_render(arg) for arg in args]
  if token == "/":
    return _unexpanded([args[0], _atom(Node("inv", (nodes[1],)))])
  if token == "*":
    return _unexpanded(args)
  return _atom(Node(token, tuple(nodes)))


# --- sum -> tree ---------------------------------------------------------------------------------------------------


def _render(total: Sum) -> Node:
  if not total:
    return number(0)
  terms = [_render_term(monomial, coefficient) for monomial, coefficient in total.items()]
  return chain("+", sorted(terms, key=sort_key))


def _render_term(monomial: Monomial, coefficient: Number) -> Node:
  exponents, coefficient = _join_denominator(dict(monomial), coefficient)
  factors = [_render_power(base, exponent) for base, exponent in exponents.items()]
  if not factors:
    return number(float(coefficient))
  if abs(coefficient) != 1:
    factors.append(number(float(coefficient)))
  node = chain("*", sorted(factors, key=sort_key))
  return Node("neg", (node,)) if coefficient == -1 else node


def _render_power(base: Node, exponent: Number) -> Node:
  if base.token == "cot" and exponent < 0 and _is_integer(exponent):
    base, exponent = Node("tan", base.args), -exponent
  if base.token == "exp":
    return Node("exp", (_render(_scale(_convert(base.args[0]), exponent)),)) if exponent != 1 else base
  if base.token == "pow" and not base.args[1].is_number:
    return Node("pow", (base.args[0], _render(_scale(_convert(base.args[1]), exponent)))) if exponent != 1 else base
  return power(base, number(float(exponent)))


def _join_denominator(exponents: dict[Node, Number], coefficient: Number) -> tuple[dict[Node, Number], Number]:
  """Multiplies out everything below the line when a sum is there: `1/(x (x + 1)) -> 1/(x**2 + x)`."""
  sums = [base for base, e in exponents.items() if base.token == "+" and e < 0 and _is_integer(e)]
  if not sums:
    return exponents, coefficient
  below = {base: -e for base, e in exponents.items() if e < 0}
  divisor = coefficient.denominator if type(coefficient) is Fraction else 1
  if len(below) == 1 and below[sums[0]] == 1 and divisor == 1:
    return exponents, coefficient
  try:
    factors = [_integer_power(_convert(base), int(below.pop(base))) for base in sums]
    joined = functools.reduce(_multiply, factors, {frozenset(below.items()): divisor})
  except _TooLongError:
    return exponents, coefficient
  above = {base: e for base, e in exponents.items() if e > 0}
  return {**above, _render(joined): -1}, _tidy(coefficient * divisor)


