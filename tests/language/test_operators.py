"""THE operator table: every consumer covers every row, and every form of a row means the same."""

import ast

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import sympy

from symformer_jax.errors import ExpressionError
from symformer_jax.language import expression, interpreter, operators, parser, printing, sympy_trees
from symformer_jax.language.expression import Node, variable
from symformer_jax.language.vocabulary import Vocabulary

VOCAB = Vocabulary(2, has_requested=True)
# Inside the domain of every row, on both sides of the break points of atan and the powers.
POINTS = {1: [(0.3,), (0.7,), (0.95,)], 2: [(0.3, 2.0), (1.7, -1.5), (2.5, 0.4)]}

# Written from the definitions, not from the table.
MPMATH = {
  "+": mpmath.fadd, "*": mpmath.fmul, "pow": mpmath.power, "neg": mpmath.fneg, "inv": lambda a: 1 / a,
  "pow2": lambda a: a * a, "pow3": lambda a: a * a * a, "sqrt": mpmath.sqrt, "exp": mpmath.exp,
  "ln": mpmath.log,
  "sin": mpmath.sin, "cos": mpmath.cos, "tan": mpmath.tan, "cot": mpmath.cot, "asin": mpmath.asin,
  "acos": mpmath.acos, "atan": mpmath.atan, "acot": mpmath.acot, "-": mpmath.fsub, "/": mpmath.fdiv,
  **{f"pow{n}": lambda a, n=n: mpmath.power(a, n) for n in (4, 5, 6)},
  "tanh": mpmath.tanh, "sinh": mpmath.sinh, "cosh": mpmath.cosh, "abs": mpmath.fabs, "sign": mpmath.sign, "min": min,
  "max": max,
}
ROWS = pytest.mark.parametrize("op", operators.OPERATORS, ids=lambda op: op.name)
WRITTEN_WITH_SIGNS = ("neg", "inv", "pow2", "pow3", "pow4", "pow5", "pow6")
PROGRAM_ROWS = pytest.mark.parametrize(
  "op", [*operators.MODEL_OPERATORS, *operators.REQUESTED_OPERATORS], ids=lambda op: op.name)


def tree(op):
  return Node(op.name, tuple(variable(i) for i in range(op.arity)))


def expected(op, args):
  return float(MPMATH[op.name](*map(mpmath.mpf, args)))


def test_the_oracle_knows_every_row():
  assert set(MPMATH) == set(operators.BY_NAME)
  assert len(operators.BY_NAME) == len(operators.OPERATORS)


def test_the_model_says_the_papers_operators():
  assert [op.name for op in operators.MODEL_OPERATORS if op.arity == 2] == ["+", "*", "pow"]
  assert sum(op.arity == 1 for op in operators.MODEL_OPERATORS) == 15


@ROWS
def test_numpy_form(op):
  for args in POINTS[op.arity]:
    assert op.numpy_fn(*map(np.float64, args)) == pytest.approx(expected(op, args), rel=1e-14)


@ROWS
def test_jax_form(op):
  for args in POINTS[op.arity]:
    assert float(op.jnp_fn(*map(jnp.float32, args))) == pytest.approx(expected(op, args), rel=2e-5)


@ROWS
def test_numpy_slopes(op):
  """Against JAX, in double precision, and for every argument."""
  assert len(op.numpy_slopes) == op.arity
  for args in map(np.array, [*POINTS[op.arity], *([(1.5, 1.5)] if op.name in ("min", "max") else [])]):
    found = [slope(op.numpy_fn(*args), *args) for slope in op.numpy_slopes]
    with jax.enable_x64(True):
      assert found == pytest.approx(np.array(jax.jacobian(lambda a, op=op: op.jnp_fn(*a))(args)), rel=1e-13)


@ROWS
def test_sympy_form(op):
  for args in POINTS[op.arity]:
    expr = op.sympy_fn(sympy, *map(sympy.Float, args))
    assert float(expr.evalf()) == pytest.approx(expected(op, args), rel=1e-12)


@ROWS
def test_printed_text_means_the_same(op):
  node = parser.parse(printing.to_text(tree(op), ["a", "b"]), ["a", "b"], expands=False)
  for args in POINTS[op.arity]:
    assert expression.evaluate(node, np.array([args])) == pytest.approx(expected(op, args), rel=1e-12)


@ROWS
def test_complexity_counts_what_is_written_out(op):
  """The nodes of the text as Python's own parser sees them."""
  leaf_or_call = (ast.BinOp, ast.UnaryOp, ast.Call, ast.Constant)
  text = printing.to_text(tree(op), ["a", "b"])
  nodes = list(ast.walk(ast.parse(text, mode="eval")))
  called = sum(isinstance(n, ast.Call) for n in nodes)  # their names are no nodes of their own
  written = sum(isinstance(n, (*leaf_or_call, ast.Name)) for n in nodes) - called
  # 1/x is one operation on x: its numerator is no node of its own.
  written -= "1/" in text
  assert expression.complexity(tree(op)) == written


@ROWS
def test_latex_has_every_argument(op):
  latex = printing.to_latex(tree(op), ["a", "b"])
  assert "a" in latex and (op.arity == 1 or "b" in latex)
  assert latex.count("{") == latex.count("}")


@PROGRAM_ROWS
def test_the_vocabulary_has_the_row(op):
  assert VOCAB.arity[VOCAB.ids[op.name]] == op.arity


@PROGRAM_ROWS
def test_the_interpreter_has_the_row(op):
  ids, values = expression.encode(tree(op), VOCAB)
  x = jnp.array([[*args, 0.0][:2] for args in POINTS[op.arity]], jnp.float32)
  y = interpreter.evaluate(jnp.array(ids), jnp.array(values), x, vocab=VOCAB)
  assert y.tolist() == pytest.approx([expected(op, args) for args in POINTS[op.arity]], rel=2e-5)


@PROGRAM_ROWS
def test_sympy_round_trip_has_the_row(op):
  a, b = sympy.symbols("x0 x1", real=True)
  expr = sympy_trees.to_sympy(tree(op))
  back = sympy_trees.from_sympy(expr, [a, b], has_requested=op.is_requested)
  assert sympy_trees.to_sympy(back) == expr
  for args in POINTS[op.arity]:
    assert expression.evaluate(back, np.array([args])) == pytest.approx(expected(op, args), rel=1e-12)


@pytest.mark.parametrize("op", [op for op in operators.OPERATORS if op.name.isalpha() and op.name not in (
  "pow", *WRITTEN_WITH_SIGNS)], ids=lambda op: op.name)
def test_the_parser_has_the_function(op):
  text = f"{op.name}({', '.join('xy'[: op.arity])})"
  assert parser.parse(text, expands=False) == tree(op)
  expanded = parser.parse(text)
  assert (expanded == tree(op)) == (op.name not in parser.UNEXPANDED)
  for args in POINTS[op.arity]:
    assert expression.evaluate(expanded, np.array([args])) == pytest.approx(expected(op, args), rel=1e-12)


def test_models_do_not_know_what_is_made_on_request():
  """Weights and data name their vocabulary by this digest."""
  assert Vocabulary(2).hash == Vocabulary(2, has_requested=False).hash == "0d1de3d996c4ddfe"
  assert not operators.REQUESTED & set(Vocabulary(2).tokens) and set(VOCAB.tokens) >= operators.REQUESTED
  assert VOCAB.size == Vocabulary(2).size + len(operators.REQUESTED_OPERATORS)


@pytest.mark.parametrize(("text", "message"), [
  ("min(x)", "expected ',' and the second argument of min, got ')'"), ("max(x, y, z)", "expected ')', got ','"),
  ("sign(x, y)", "expected ')', got ','"), ("min", "expected '(' after min"),
])
def test_functions_have_as_many_arguments_as_they_take(text, message):
  with pytest.raises(ExpressionError) as caught:
    parser.parse(text)
  assert message in str(caught.value)


@pytest.mark.parametrize(("name", "x"), [("ln", -1.0), ("sqrt", -1.0), ("asin", 1.5), ("acos", -1.5)])
def test_outside_the_domain_nothing_is_hidden(name, x):
  op = operators.BY_NAME[name]
  assert np.isnan(op.jnp_fn(jnp.float32(x)))
  with np.errstate(invalid="ignore"):
    assert np.isnan(op.numpy_fn(x))


def test_a_power_of_a_negative_base():
  assert operators.real_power(jnp.float32(-2), jnp.float32(4)) == 16
  assert np.isnan(operators.real_power(jnp.float32(-2), jnp.float32(0.5)))


def test_derivatives_of_a_power():
  """Against the closed forms; at a negative base the derivative by the exponent is reported as 0, not NaN."""
  by_base, by_exponent = jax.grad(operators.real_power, (0, 1))(1.7, 2.3)
  assert by_base == pytest.approx(2.3 * 1.7**1.3, rel=1e-5)
  assert by_exponent == pytest.approx(1.7**2.3 * np.log(1.7), rel=1e-5)
  assert jax.grad(operators.real_power, 1)(0.5, 2.3) == pytest.approx(0.5**2.3 * np.log(0.5), rel=1e-5)
  by_base, by_exponent = jax.grad(operators.real_power, (0, 1))(-2.0, 4.0)
  assert (by_base, by_exponent) == (pytest.approx(4 * -8), 0)
  slopes = [slope(16.0, np.float64(-2), np.float64(4)) for slope in operators.BY_NAME["pow"].numpy_slopes]
  assert slopes == [-32, 0]


def test_the_derivative_by_the_exponent_at_zero_is_finite():
  """The point (0, 0) of c * x ** p must not take the row of the Jacobian with it."""
  assert jax.jvp(lambda p: operators.real_power(jnp.float32(0), p), (1.5,), (1.0,))[1] == 0
  assert operators.BY_NAME["pow"].numpy_slopes[1](np.float64(0), np.float64(0), 1.5) == 0
