"""The parser: what it reads, what it refuses, and how it says so."""

import math
import string
import time

from hypothesis import given, strategies as st
import numpy as np
import pytest
import sympy

from symformer_jax.errors import ExpressionError, InputError, SymFormerError
from symformer_jax.language import expression, parser, printing
from symformer_jax.language.expression import Node, number, symbol, variable

X = np.array([[0.37], [1.21], [2.9]])


def value(text):
  return expression.evaluate(parser.parse(text), X)


@pytest.mark.parametrize(("text", "expected"), [
  ("sinh(x)", np.sinh(X[:, 0])), ("cosh(x)", np.cosh(X[:, 0])), ("tanh(x)", np.tanh(X[:, 0])),
  ("log2(x)", np.log2(X[:, 0])), ("log10(x)", np.log10(X[:, 0])), ("abs(x - 1)", np.abs(X[:, 0] - 1)),
  ("arccot(x)", np.arctan(1 / X[:, 0])), ("2*pi", np.full(3, 2 * math.pi)), ("x^2", X[:, 0] ** 2),
  (" x\t+\n1 ", X[:, 0] + 1), (".5e1*x", 5 * X[:, 0]), ("3.", np.full(3, 3.0)),
])
def test_values(text, expected):
  np.testing.assert_allclose(value(text), expected, rtol=1e-14)


def test_tanh_stays_finite():
  far = np.array([[-800.0], [800.0]])
  np.testing.assert_array_equal(expression.evaluate(parser.parse("tanh(x)"), far), [-1, 1])


@pytest.mark.parametrize("text", [
  "-x^2", "2^-x", "x^2^x", "-2*-x", "1/2/x", "x-1-2", "x/2*3", "x - -x", "--x", "+x*-2", "2*x^-1", "(x)^(2)",
  "-x^-2", "1 - 2*(x + 3)/4 - x", "x**3**-1",
])
def test_precedence_as_sympy_reads_it(text):
  x = sympy.Symbol("x")
  # The oracle parses text of this test, never a user's.
  oracle = sympy.lambdify(x, sympy.sympify(text.replace("^", "**")))(X[:, 0])
  np.testing.assert_allclose(value(text), oracle, rtol=1e-12)


@pytest.mark.parametrize(("variables", "message"), [
  (None, "expected names of columns as text, got None"), (np.array(3), "expected names of columns as text, got array"),
  (3, "expected names of columns as text, got 3"),
  ([1], r"expected names of columns as text, got \[1\]"), ([None, "x"], "expected names of columns as text"),
  (["x", "y", "x"], "expected names that differ, got 'x' twice$")])
def test_variables_are_names_that_differ(variables, message):
  with pytest.raises(InputError, match=f"^variables: {message}"):
    parser.parse("x", variables)
  assert parser.parse("x", iter(["y", "x"])) == parser.parse("x", np.array(["y", "x"])) == variable(1)


def test_columns_win_over_functions():
  assert parser.parse("exp + pi", ["exp", "pi"]) == Node("+", (variable(0), variable(1)))
  assert parser.parse("abscissa*2", ["abscissa"]) == Node("*", (variable(0), number(2)))


def test_symbols_on_request():
  node = parser.parse("b1*(1 - exp(-b2*x))", ["x"], allow_symbols=True)
  assert {n.value for n in expression.walk(node) if n.token == "symbol"} == {"b1", "b2"}
  assert parser.parse("b1", ["x"], allow_symbols=True) == symbol("b1")
  with pytest.raises(ExpressionError, match="unknown name 'b1'"):
    parser.parse("b1*x", ["x"])


def test_a_raised_digit_is_no_part_of_a_constants_name():
  with pytest.raises(ExpressionError, match="^'²' at position 4 of '2.x² . x' is no part of a constant's name"):
    parser.parse("2*x² + x", ["x"], allow_symbols=True)
  assert parser.parse("2*x²", ["x²"], allow_symbols=True) == Node("*", (number(2), variable(0)))
  assert parser.parse("β₁", ["x"], allow_symbols=True) == symbol("β₁")


@pytest.mark.parametrize(("text", "message"), [
  ("", "the formula is empty"),
  ("   ", "the formula is empty"),
  ("x +", r"expected a number, a name or '\(', got the end at position 4"),
  ("x x", "expected an operator or the end, got 'x' at position 3"),
  ("(x", r"expected '\)', got the end"),
  ("x)", r"got '\)' at position 2"),
  ("sin x", r"expected '\(' after sin, got 'x'"),
  ("x $ 2", r"unexpected character '\$' at position 3"),
  ("sinn(x)", "unknown name 'sinn' at position 1.*did you mean 'sin'"),
  ("w + 1", r"unknown name 'w'.*expected a variable \(x, y, z\)"),
  ("1e999", "number 1e999 at position 1 is too large"),
  ("9" * 6000, f"number {'9' * 30}...{'9' * 30} at position 1 is too large"),
  ("x ** ", "got the end"),
  ("f(x, y)", "unknown name 'f'"),
  ("sin(x, y)", r"expected '\)', got ','"),
])
def test_messages(text, message):
  with pytest.raises(ExpressionError, match=message):
    parser.parse(text)


@pytest.mark.parametrize("text", [
  "(" * 5000, "-" * 5000 + "x", "sin(" * 500 + "x", "x**" * 3000 + "x", "+".join(["x"] * 4000),
  "*".join(["x"] * 4000), "x" * 20_000, "9" * 9000, "((" * 200 + "x" + "))" * 200, " " * 9999 + "$",
])
def test_hostile_sizes_are_refused_quickly(text):
  start = time.perf_counter()
  with pytest.raises(ExpressionError):
    parser.parse(text)
  assert time.perf_counter() - start < 2  # quadratic reading would take minutes


@pytest.mark.parametrize("text", [
  "+".join(["x"] * 300), "*".join(["x"] * 300), "-".join(["x"] * 300), "/".join(["x"] * 290),
  "(" * 38 + "x" + "+1)*2" * 38, "sin(" * 38 + "x" + "+1)*2" * 38, "x**(" * 19 + "1+x" + ")" * 19,
])
def test_the_largest_legal_formulas_go_through_every_printer(text):
  node = parser.parse(text)
  assert parser.parse(printing.to_text(node)[: parser.MAX_LENGTH], ["x0"]) is not None
  assert printing.to_latex(node)
  assert expression.complexity(expression.sort_operands(node)) > 10
  assert expression.evaluate(node, X).shape == (3,)


@pytest.mark.parametrize("text", [
  "__import__('os').system('true')", "x.__class__", "lambda: x", "[x]", "x if x else x", "x; x", "x = 1",
  "eval(x)", "open('a')", "x\x00", "𝓍 + 1j", "'x'", "{x}", "x @ x", "x // 2", "x % 2", "x < 1", "~x",
])
def test_nothing_is_ever_run(text):
  with pytest.raises(ExpressionError):
    parser.parse(text)


@pytest.mark.parametrize("text", [None, 5, b"x", ["x"], np.array("x")])
def test_what_is_no_text_is_refused(text):
  with pytest.raises(ExpressionError, match="expected a formula as text, got "):
    parser.parse(text)


@given(st.text(alphabet=string.printable, max_size=60) | st.text(max_size=30))
def test_any_text_is_read_or_refused(text):
  try:
    node = parser.parse(text)
  except SymFormerError as error:
    assert "\n" not in str(error).replace(repr(text), "")
  else:
    assert isinstance(node, Node)


@pytest.mark.parametrize(("legal", "hostile", "message"), [
  ("+".join(["x"] * 300), "+".join(["x"] * 301), "more than 600 numbers, names, operators and brackets"),
  ("-" * 39 + "x", "-" * 40 + "x", "nested more than 40 deep"),
  ("x" + " " * 9_999, "x" + " " * 10_000, "10001 characters long, at most 10000 are read"),
], ids=["tokens", "depth", "length"])
def test_each_limit_holds_alone(legal, hostile, message):
  parser.parse(legal)
  with pytest.raises(ExpressionError, match=message):
    parser.parse(hostile)
