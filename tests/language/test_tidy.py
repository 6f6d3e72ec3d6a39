"""Tidying keeps values and shape."""

import numpy as np
import pytest

from symformer_jax.language import expression, parser, printing
from symformer_jax.language.expression import Node, number, variable
from symformer_jax.language.tidy import tidy

CASES = [
  ("1*x", "x"), ("0*x + 2", "2"), ("x + 0", "x"), ("x*2*3", "6*x"), ("2 + 3*4", "14"), ("-(-x)", "x"), ("x**1", "x"),
  ("x**0", "1"), ("-1*x", "-x"), ("-(2*x)", "-2*x"), ("1/(1/x)", "x"), ("3.5*(1 - exp(-2*x))", None),
  ("(x + 1)*(x + 2)", None), ("x**0.5", "sqrt(x)"),
  ("1/(0.5*x)", "2/x"), ("(1/x)**1.7", "x**(-1.7)"),
  ("x**2*0.25 + sin(x) + 0.75*x**2", "x**2 + sin(x)"), ("4*x - 2*x - 2*x", "0"),
  ("x*sin(x) - (-2)*(x*sin(x))", "3*sin(x)*x"),
  ("2*sin(0.5*x**3 + x**3) + 3*x", "2*sin(1.5*x**3) + 3*x"), ("x + x**2 + 0.1*x**2.1", None),
  ("5*exp(-0.51*x)*exp(0.01*x)", "5*exp(-0.5*x)"), ("exp(x)*x*exp(-x)", "x"), ("exp(x + 1)*exp(x**2)", None),
  ("1/(4*x*(x + 1))", "0.25/((x + 1)*x)"), ("x*(-y)", "-x*y"), ("-(-x*y)", "x*y"), ("y - 0.5*(-x)", "0.5*x + y"),
  # In the order of their tokens, and only then of their numbers.
  ("exp(2*x + sin(y)) + exp(3*x + cos(y))", "exp(3*x + cos(y)) + exp(2*x + sin(y))"),
  ("sin(2*x + sin(y))*sin(3*x + cos(y))", "sin(3*x + cos(y))*sin(2*x + sin(y))"),
  ("1/(1e-308*x)", "1e+308/x"),
  ("x/sqrt(exp(3*x))", "exp(-1.5*x)*x"), ("1/exp(x - 2*y)", "exp(2*y - x)"), ("exp(x)**1.7", "exp(1.7*x)"),
  ("(1/exp(2*x))**0.25", "exp(-0.5*x)"), ("1/exp(-x)", "exp(x)"), ("exp(x)**2", None), ("exp(x)**0", "1"),
  ("-(2.5*x**6.8 + 2)", "-2.5*x**6.8 - 2"), ("-(x + 2)", "-x - 2"), ("-(2*x - y)", "y - 2*x"), ("-(x + y)", None),
  ("-1*(2*x + y + x*y)", None), ("-(-x - y)", "x + y"), ("exp(-(3*x + 1))", "exp(-3*x - 1)"),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_tidy(text, expected):
  node = parser.parse(text)
  tidied = tidy(node)
  x = np.linspace(0.3, 3, 14).reshape(7, 2)
  np.testing.assert_allclose(expression.evaluate(tidied, x), expression.evaluate(node, x), rtol=1e-14)
  assert expression.complexity(tidied) <= expression.complexity(node)
  assert tidy(tidied) == tidied
  if expected is not None:
    assert printing.to_text(tidied, ["x", "y"]) == expected


@pytest.mark.parametrize("text", [
  "1/(1e-310*x)", "1/(x + exp(500)*exp(600))", "x*1e308 + x*1e308", "x*1e200*1e200 - x*1e200*1e200",
  "exp(500)*exp(600) + exp(800)"])
def test_infinite_factors_are_no_reason_to_fail(text):
  node, x = parser.parse(text), np.linspace(0.3, 3, 7)[:, None]
  with np.errstate(all="ignore"):
    np.testing.assert_array_equal(expression.evaluate(tidy(node), x), expression.evaluate(node, x))


def test_undefined_numbers_are_kept():
  node = parser.parse("x + ln(-2)")
  assert np.isnan(expression.evaluate(tidy(node), np.ones((1, 1)))).all()
  assert printing.to_text(tidy(node), ["x"]) == "log(-2) + x"


@pytest.mark.parametrize(("text", "expected"), [
  ("sqrt(x**4)", "x**2"), ("sqrt(9*x**4*y**8)", "3*x**2*y**4"), ("sqrt(4*x**(-4))", "2*x**(-2)"),
  ("sqrt(0.25*x**4)", "0.5*x**2"),
  # What has a sign to lose, or a constant beside it, stays.
  ("sqrt(x**2)", "sqrt(x**2)"), ("sqrt(x**6)", "sqrt(x**6)"), ("sqrt(x**4 + 1)", "sqrt(x**4 + 1)"),
  ("sqrt(-x**4)", "sqrt(-x**4)"), ("sqrt(x)", "sqrt(x)")])
def test_roots_of_fourth_powers_go(text, expected):
  tidied = tidy(parser.parse(text, ["x", "y"]))
  assert tidied == tidy(parser.parse(expected, ["x", "y"]))
  x = np.array([[-1.5, 2.0], [0.7, -0.3]])
  np.testing.assert_allclose(expression.evaluate(tidied, x), expression.evaluate(parser.parse(text, ["x", "y"]), x))


X, Y = variable(0), variable(1)


@pytest.mark.parametrize(("text", "tree"), [
  # A sign is part of a number where there is one, of a term and of the sum that stands for an exponent.
  ("-(2*x + 3)", Node("+", (Node("*", (X, number(-2))), number(-3)))),
  ("-(2*x - y)", Node("+", (Node("*", (X, number(-2))), Y))),
  ("-(x + 3)", Node("+", (Node("neg", (X,)), number(-3)))),
  ("1/exp(x + y)", Node("exp", (Node("+", (Node("neg", (X,)), Node("neg", (Y,)))),))),
  ("exp(x + y)**(-1.5)", Node("exp", (Node("*", (Node("+", (X, Y)), number(-1.5))),))),
  # The inverse of this number is none, though the number is one.
  ("1/(1e-310*x)", Node("inv", (Node("*", (X, number(1e-310))),)))])
def test_trees_by_hand(text, tree):
  assert tidy(parser.parse(text, ["x", "y"])) == tree
