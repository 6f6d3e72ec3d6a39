"""THE operator table: the one place that knows what an operator is called, means and costs.

Every consumer (vocabulary, interpreter, parser, printers, SymPy bridge, exports, generator) reads the rows below; a
test checks that each of them covers every row. SymPy and torch forms take the module as their first argument, so that
this file does not import it.
"""

from collections.abc import Callable
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


@jax.custom_jvp
def real_power(base: jax.Array, exponent: jax.Array) -> jax.Array:
  """`base ** exponent` over the reals: NaN for a negative base under a non-integer exponent."""
  return jnp.power(base, exponent)


@real_power.defjvp
def _real_power_jvp(
  primals: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
  # jnp.power's own rule multiplies log(base) = NaN by a zero tangent for x ** 4 with x < 0. The derivative by
  # the exponent does not exist there, so we report zero: the exponent stays where it is.
  base, exponent = primals
  base_dot, exponent_dot = tangents
  out = jnp.power(base, exponent)
  by_base = exponent * jnp.power(base, exponent - 1)
  safe_base = jnp.where(base > 0, base, 1.0)
  by_exponent = jnp.where(base > 0, out * jnp.log(safe_base), 0.0)
  return out, by_base * base_dot + by_exponent * exponent_dot


@dataclasses.dataclass(frozen=True)
class Operator:
  """One row of the table.

  Attributes:
    name: the token.
    arity: number of arguments, 1 or 2.
    complexity: nodes it stands for when the formula is written out (`cot` is `1/tan`: two).
    jnp_fn: elementwise form on device arrays; NaN or infinite outside the domain, never hidden.
    numpy_fn: the same on NumPy arrays (the generator's, the judge's and the tests' form).
    numpy_slopes: for each argument the derivative by it, `(value, *args) -> array or number`, on NumPy arrays; by an
      exponent 0 where the base is not above 0, as in `real_power`.
    sympy_fn: `(sympy, *args) -> Expr`.
    torch_fn: `(torch, *args) -> Tensor`.
    python: Python syntax with `{0}`, `{1}` for the arguments (in brackets where needed), `{m}` for what stands before
      a function's name: nothing, or `np.`, `jnp.`, `torch.`, which call functions alike.
    c, julia, excel: source text of these languages, likewise.
    latex: the LaTeX form, likewise.
    domain: where it is finite and real, in words.
    in_vocabulary: whether a model may say it; the others occur in random trees only: SymPy rewrites them.
    is_requested: whether formulas have it on request alone: in guesses, in `refine`, and where `add_operators` names
      it. No model knows it, so that vocabularies stay what they are.
  """

  name: str
  arity: int
  complexity: int
  jnp_fn: Callable[..., jax.Array]
  numpy_fn: Callable[..., np.ndarray]
  numpy_slopes: tuple[Callable[..., Any], ...]
  sympy_fn: Callable[..., Any]
  torch_fn: Callable[..., Any]
  python: str
  c: str
  julia: str
  excel: str
  latex: str
  domain: str = "all reals"
  in_vocabulary: bool = True
  is_requested: bool = False


def _alike(form: str) -> tuple[str, str, str, str]:
  """The forms of an operator that Python, C, Julia and Excel write alike."""
  return form, form, form, form


def _integer_power(name: str, exponent: int, *, in_vocabulary: bool) -> Operator:
  return Operator(
    name, 1, 2,
    lambda a: jax.lax.integer_pow(a, exponent),
    lambda a: a**exponent,
    (lambda v, a: exponent * a ** (exponent - 1),),
    lambda s, a: s.Pow(a, exponent),
    lambda t, a: a**exponent,
    f"{{0}}**{exponent}", f"pow({{0}}, {exponent}.0)", f"{{0}}^{exponent}", f"{{0}}^{exponent}",
    f"{{0}}^{{{{{exponent}}}}}",
    in_vocabulary=in_vocabulary,
  )


def _function(
  name: str, python_name: str, slope: Callable[..., np.ndarray], latex: str, domain: str = "all reals",
  short_name: str = "",
) -> Operator:
  """`short_name`: what SymPy, C and Julia call it; Excel calls it by its token."""
  short_name = short_name or name
  return Operator(
    name, 1, 1,
    getattr(jnp, python_name), getattr(np, python_name), (slope,),
    lambda s, a: getattr(s, short_name)(a),
    lambda t, a: getattr(t, python_name)(a),
    f"{{m}}{python_name}({{0}})", f"{short_name}({{0}})", f"{short_name}({{0}})", f"{name.upper()}({{0}})",
    latex if "{0}" in latex else f"{latex}\\left({{0}}\\right)",
    domain,
  )


def _on_request(
  name: str, *slopes: Callable[..., Any], sympy: str = "", c: str = "", latex: str = "", arity: int = 1
) -> Operator:
  """A function that no model knows; `sympy`, `c`: what these call it. Of two arguments NumPy's name is longer."""
  python = name if arity == 1 else f"{name}imum"
  args = ", ".join(["{0}", "{1}"][:arity])
  return Operator(
    name, arity, 1, getattr(jnp, python), getattr(np, python), slopes,
    lambda s, *args: getattr(s, sympy or name)(*args),
    lambda t, *args: getattr(t, python)(*args),
    f"{{m}}{python}({args})", c or f"{name}({{0}})", f"{name}({args})", f"{name.upper()}({args})",
    latex or f"\\{name}\\left({args}\\right)", in_vocabulary=False, is_requested=True)


def _by_exponent(value: np.ndarray, base: np.ndarray, exponent: np.ndarray) -> np.ndarray:
  is_positive = base > 0
  return np.where(is_positive, value * np.log(np.where(is_positive, base, 1.0)), 0.0)


def _is_less(a: np.ndarray, b: np.ndarray) -> np.ndarray:
  """1 where a is less than b, one half where they are equal."""
  return np.heaviside(b - a, 0.5)


OPERATORS: tuple[Operator, ...] = (
  Operator("+", 2, 1, jnp.add, np.add, (lambda v, a, b: 1.0, lambda v, a, b: 1.0),
           lambda s, a, b: s.Add(a, b), lambda t, a, b: a + b, *_alike("{0} + {1}"), "{0} + {1}"),
  Operator("*", 2, 1, jnp.multiply, np.multiply, (lambda v, a, b: b, lambda v, a, b: a),
           lambda s, a, b: s.Mul(a, b), lambda t, a, b: a * b, *_alike("{0}*{1}"), "{0} {1}"),
  Operator(
    "pow", 2, 1, real_power, np.power, (lambda v, a, b: b * np.power(a, b - 1), _by_exponent),
    lambda s, a, b: s.Pow(a, b), lambda t, a, b: t.pow(a, b),
    "{0}**{1}", "pow({0}, {1})", "{0}^{1}", "{0}^{1}", "{0}^{{{1}}}",
    "base > 0, or an integer exponent",
  ),
  Operator("neg", 1, 1, jnp.negative, np.negative, (lambda v, a: -1.0,), lambda s, a: s.Mul(-1, a), lambda t, a: -a,
           *_alike("-{0}"), "-{0}"),
  Operator("inv", 1, 1, lambda a: 1 / a, lambda a: 1 / a, (lambda v, a: -v * v,),
           lambda s, a: s.Pow(a, -1), lambda t, a: 1 / a,
           "1/{0}", "1.0/{0}", "1.0/{0}", "1/{0}", "\\frac{{1}}{{{0}}}", "not 0"),
  _integer_power("pow2", 2, in_vocabulary=True),
  _integer_power("pow3", 3, in_vocabulary=True),
  _function("sqrt", "sqrt", lambda v, a: 0.5 / v, "\\sqrt{{{0}}}", ">= 0"),
  _function("exp", "exp", lambda v, a: v, "\\exp"),
  _function("ln", "log", lambda v, a: 1 / a, "\\ln", "> 0", short_name="log"),
  _function("sin", "sin", lambda v, a: np.cos(a), "\\sin"),
  _function("cos", "cos", lambda v, a: -np.sin(a), "\\cos"),
  _function("tan", "tan", lambda v, a: 1 + v * v, "\\tan", "not pi/2 + k pi"),
  Operator("cot", 1, 2, lambda a: 1 / jnp.tan(a), lambda a: 1 / np.tan(a), (lambda v, a: -1 - v * v,),
           lambda s, a: s.cot(a), lambda t, a: 1 / t.tan(a),
           "1/{m}tan({0})", "1.0/tan({0})", "1.0/tan({0})", "1/TAN({0})", "\\cot\\left({0}\\right)", "not k pi"),
  _function("asin", "arcsin", lambda v, a: 1 / np.sqrt(1 - a * a), "\\arcsin", "[-1, 1]"),
  _function("acos", "arccos", lambda v, a: -1 / np.sqrt(1 - a * a), "\\arccos", "[-1, 1]"),
  _function("atan", "arctan", lambda v, a: 1 / (1 + a * a), "\\arctan"),
  # SymPy's branch, arctan(1/x): odd, with a jump at 0, because simplification relies on acot(-x) = -acot(x).
  Operator("acot", 1, 2, lambda a: jnp.arctan(1 / a), lambda a: np.arctan(1 / a), (lambda v, a: -1 / (1 + a * a),),
           lambda s, a: s.acot(a), lambda t, a: t.arctan(1 / a),
           "{m}arctan(1/{0})", "atan(1.0/{0})", "atan(1.0/{0})", "ATAN(1/{0})",
           "\\operatorname{{arccot}}\\left({0}\\right)", "not 0"),
  # Below: known to the generator's random trees, rewritten by every simplification.
  Operator("-", 2, 1, jnp.subtract, np.subtract, (lambda v, a, b: 1.0, lambda v, a, b: -1.0),
           lambda s, a, b: s.Add(a, s.Mul(-1, b)), lambda t, a, b: a - b,
           *_alike("{0} - {1}"), "{0} - {1}", in_vocabulary=False),
  Operator("/", 2, 1, jnp.divide, np.divide, (lambda v, a, b: 1 / b, lambda v, a, b: -v / b),
           lambda s, a, b: s.Mul(a, s.Pow(b, -1)), lambda t, a, b: a / b,
           *_alike("{0}/{1}"), "\\frac{{{0}}}{{{1}}}", "denominator not 0", in_vocabulary=False),
  _integer_power("pow4", 4, in_vocabulary=False),
  _integer_power("pow5", 5, in_vocabulary=False),
  _integer_power("pow6", 6, in_vocabulary=False),
  # Below: known to no model; formulas have them where a user asks for them.
  _on_request("tanh", lambda v, a: 1 - v * v), _on_request("sinh", lambda v, a: np.cosh(a)),
  _on_request("cosh", lambda v, a: np.sinh(a)),
  _on_request("abs", lambda v, a: np.sign(a), sympy="Abs", c="fabs({0})", latex="\\left|{0}\\right|"),
  _on_request("sign", lambda v, a: 0.0, c="((double)({0} > 0.0) - (double)({0} < 0.0))",
              latex="\\operatorname{{sign}}\\left({0}\\right)"),
  # C's functions take the other argument where one is undefined.
  _on_request("min", lambda v, a, b: _is_less(a, b), lambda v, a, b: _is_less(b, a), sympy="Min",
              c="fmin({0}, {1})", arity=2),
  _on_request("max", lambda v, a, b: _is_less(b, a), lambda v, a, b: _is_less(a, b), sympy="Max",
              c="fmax({0}, {1})", arity=2),
)

BY_NAME: dict[str, Operator] = {op.name: op for op in OPERATORS}
BINARY: tuple[Operator, ...] = tuple(op for op in OPERATORS if op.arity == 2)
UNARY: tuple[Operator, ...] = tuple(op for op in OPERATORS if op.arity == 1)
MODEL_OPERATORS: tuple[Operator, ...] = tuple(op for op in OPERATORS if op.in_vocabulary)
REQUESTED_OPERATORS: tuple[Operator, ...] = tuple(op for op in OPERATORS if op.is_requested)
REQUESTED: frozenset[str] = frozenset(op.name for op in REQUESTED_OPERATORS)
# Those that come again and again.
WAVES: tuple[str, ...] = ("sin", "cos", "tan", "cot")
