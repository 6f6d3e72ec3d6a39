"""Brings a random tree to the canonical form in which a model sees it; three settings, one form.

`simplify`: `expand(simplify(expr))`, as the paper's data were made.
`fast`: the passes of `simplify` that change formulas of this kind, without those that search at length.
`rules`: no SymPy at all (`language.canonical`).

Symbols are plain, not `real=True`: with real ones SymPy writes sqrt(x**2) as Abs(x), which has no token, and no longer
sqrt(1/x) as x**(-1/2). Whatever a plain symbol lets SymPy do wrongly on the reals is caught by comparing values.
"""

import functools
import math

import numpy as np
import sympy
from sympy.core.traversal import bottom_up
from sympy.functions.elementary.hyperbolic import HyperbolicFunction
from sympy.functions.elementary.trigonometric import TrigonometricFunction

from symformer_jax.errors import ExpressionError
from symformer_jax.language import canonical, operators
from symformer_jax.language.expression import VARIABLE, Node, number, power, sort_operands, walk
from symformer_jax.language.sympy_trees import from_sympy

# `fast` leaves a formula this long to the rules: SymPy would take seconds over it and hardly bring it under the 50
# tokens that are kept. A size, unlike the time limit, bounds the work alike on every machine.
MAX_SYMPY_NODES = 120


class TooLongError(ExpressionError):
  """A formula is far beyond the longest that is kept."""


@functools.cache
def _symbol(index: int) -> sympy.Symbol:
  return sympy.Symbol(f"x{index}")


def to_sympy(node: Node) -> sympy.Expr:
  """The tree over plain symbols x0, x1, ...; whole numbers become Integers."""
  if node.args:
    return operators.BY_NAME[node.token].sympy_fn(sympy, *(to_sympy(arg) for arg in node.args))
  if node.token == VARIABLE:
    return _symbol(node.value)
  return sympy.Integer(int(node.value)) if node.value == int(node.value) else sympy.Float(node.value)


def fold_constants(node: Node) -> Node:
  """Evaluates the parts without variables, which SymPy leaves standing inside functions (`cos(x + sin(4))`).

  Raises:
    ExpressionError: when one is not a finite real number.
  """
  if not node.args:
    return node
  args = tuple(fold_constants(arg) for arg in node.args)
  if not all(arg.is_number for arg in args):
    return node._replace(args=args)
  value = float(operators.BY_NAME[node.token].numpy_fn(*(np.float64(arg.value) for arg in args)))
  if not math.isfinite(value):
    raise ExpressionError(f"a constant part is not a finite number: {value}")
  return number(value)


def round_numbers(node: Node, digits: int) -> Node:
  """Rounds every number to so many significant digits and drops the factors 1 and summands 0 that this makes."""
  if node.is_number:
    return number(float(f"{node.value:.{digits}g}"))
  if not node.args:
    return node
  args = tuple(round_numbers(arg, digits) for arg in node.args)
  # Canonical operands have their number last, at the end of a chain.
  first, last = args[0], args[-1]
  if node.token == "*" and last.is_number and last.value in (1, -1):
    return first if last.value == 1 else Node("neg", (first,))
  if node.token == "+" and last.is_number and last.value == 0:
    return first
  if node.token == "pow":
    return power(first, last)
  return node._replace(args=args)


def simplify(node: Node, setting: str, *, digits: int, max_tokens: int | None = None) -> Node:
  """The canonical tree of a formula.

  Args:
    node: a random tree.
    setting: `simplify`, `fast` or `rules`.
    digits: significant digits of the constants.
    max_tokens: when given, longer formulas may be refused.
  Raises:
    TooLongError: when SymPy's result has more tokens for certain.
    ExpressionError: when the result has no form in the operators of this project.
  """
  if setting != "simplify":
    by_rules = canonical.canonicalize(node)
    if setting == "rules" or not _may_differ(by_rules) or _size(by_rules) > MAX_SYMPY_NODES:
      return finish(by_rules, digits)
  expr = sympy.expand(sympy.simplify(to_sympy(node))) if setting == "simplify" else _simplify_fast(node)
  if expr.has(HyperbolicFunction):
    expr = sympy.expand(expr.rewrite(sympy.exp))
  if expr.has(sympy.sec, sympy.csc):
    expr = expr.replace(sympy.sec, lambda a: 1 / sympy.cos(a)).replace(sympy.csc, lambda a: 1 / sympy.sin(a))
  if max_tokens is not None and _least_tokens(expr) > max_tokens:  # `evalf` of it may take longer than all before
    raise TooLongError(f"more than {max_tokens} tokens")
  expr = expr.evalf(digits)
  num_variables = 1 + max((n.value for n in walk(node) if n.token == VARIABLE), default=0)
  return finish(from_sympy(expr, [_symbol(i) for i in range(num_variables)]), digits)


def finish(node: Node, digits: int) -> Node:
  """What all settings do last: constants folded and rounded, operands ordered."""
  return sort_operands(round_numbers(fold_constants(node), digits))


# --- fast ----------------------------------------------------------------------------------------------------------


def _least_tokens(expr: sympy.Expr) -> int:
  """Tokens that a SymPy expression has at the least: its constants may all be exponents, signs, or gone."""
  if expr.is_Symbol:
    return 1
  args = [arg for arg in expr.args if arg.free_symbols]
  own = len(args) - 1 if expr.is_Add or expr.is_Mul else 1
  return own + sum(map(_least_tokens, args)) if args else 0


def _size(node: Node) -> int:
  return sum(1 for _ in walk(node))


def _may_differ(node: Node) -> bool:
  """Whether SymPy may write a formula otherwise than the rules do: a sum in a denominator, a variable exponent.

  Of 1100 other random formulas 98 % had the tokens of `expand(simplify(...))`.
  """
  return any(
    n.token == "inv" and n.args[0].token in ("+", "sqrt")
    or n.token == "sqrt" and n.args[0].token == "inv"
    or n.token == "pow" and (not n.args[1].is_number or n.args[0].token == "+")
    or n.token == "exp"
    for n in walk(node)
  )


def _simplify_fast(node: Node) -> sympy.Expr:
  return sympy.expand(_simplify_deep(to_sympy(node)))


def _shorter(*choices: sympy.Expr) -> sympy.Expr:
  return choices[0] if len(set(choices)) == 1 else min(choices, key=sympy.count_ops)


def _simplify_deep(expr: sympy.Expr) -> sympy.Expr:
  """Simplifies the arguments of functions first, then what is outside."""
  if not expr.args:
    return expr
  if isinstance(expr, sympy.Function) and not isinstance(expr, sympy.exp):
    return expr.func(*(_simplify_deep(arg) for arg in expr.args))
  inner = {f: _simplify_deep(f) for f in _outermost_functions(expr)}
  return _simplify_outer(expr.xreplace(inner))


def _outermost_functions(expr: sympy.Expr) -> set[sympy.Expr]:
  if isinstance(expr, sympy.Function) and not isinstance(expr, sympy.exp):
    return {expr}
  return {f for arg in expr.args for f in _outermost_functions(arg)}


def _simplify_outer(expr: sympy.Expr) -> sympy.Expr:
  """The passes of sympy.simplify on sums, products and powers whose functions are done."""
  if not expr.args:
    return expr
  original = expr = sympy.signsimp(expr)
  expr = bottom_up(expr, lambda e: e.normal() if hasattr(e, "normal") else e)
  expr = sympy.powsimp(expr)
  cancelled = sympy.cancel(expr)
  cancelled = _shorter(cancelled, sympy.cancel(sympy.expand_mul(cancelled, deep=False)))
  joined = _shorter(sympy.together(expr, deep=True), sympy.together(cancelled, deep=True))
  expr = sympy.factor_terms(_shorter(joined, cancelled, expr), sign=False)
  if _may_combine_trigonometry(expr):
    expr = sympy.trigsimp(expr)
  elif expr.has(sympy.cot):
    expr = expr.replace(_is_inverse_cotangent, _invert_cotangent)
  if expr.has(sympy.log):
    expr = _shorter(sympy.expand_log(expr), sympy.logcombine(expr))
  expr = _shorter(sympy.powsimp(expr, combine="exp", deep=True), sympy.powsimp(expr), expr)
  expr = _shorter(expr, sympy.factor_terms(expr), sympy.expand_power_exp(sympy.expand_mul(expr)))
  return original if sympy.count_ops(expr) > 1.7 * sympy.count_ops(original) else expr


def _may_combine_trigonometry(expr: sympy.Expr) -> bool:
  """Whether two trigonometric functions share their argument: else trigsimp, half of simplify's time, finds little."""
  functions = expr.atoms(TrigonometricFunction)
  return len({f.args[0] for f in functions}) < len(functions)


def _is_inverse_cotangent(expr: sympy.Expr) -> bool:
  return expr.is_Pow and expr.exp.is_integer and expr.exp.is_negative and isinstance(expr.base, sympy.cot)


def _invert_cotangent(expr: sympy.Expr) -> sympy.Expr:
  return sympy.tan(expr.base.args[0]) ** -expr.exp
