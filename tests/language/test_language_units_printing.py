"""Formulas as text, case by case: signs, brackets and lines of fractions, in Python, LaTeX, C and Excel."""

import math

import numpy as np
import pytest

from symformer_jax.language import expression, operators, parser, printing
from symformer_jax.language.expression import Node, number, variable
from symformer_jax.language.printing import Dialect
from symformer_jax.language.source_code import LANGUAGES

NAMES = ("x", "y", "z")
X = np.random.default_rng(0).uniform(0.2, 0.9, (7, 3))
x, y, z = map(variable, range(3))


@pytest.mark.parametrize(("given", "text", "latex", "c", "excel"), [
  ("x + y", "x + y", "x + y", "x + y", "x + y"), ("x - y", "x - y", "x - y", "x - y", "x - y"),
  ("-x - y", "-x - y", "-x - y", "-x - y", "-x - y"), ("-x + y", "y - x", "y - x", "y - x", "y - x"),
  ("2 - x", "2 - x", "2 - x", "2.0 - x", "2 - x"), ("x - 2", "x - 2", "x - 2", "x - 2.0", "x - 2"),
  ("x + -2*y", "x - 2*y", "x - 2 y", "x - 2.0*y", "x - 2*y"),
  ("x*(y + 1)", "x*(y + 1)", "x \\left(y + 1\\right)", "x*(y + 1.0)", "x*(y + 1)"),
  ("-(x + y)", "-(x + y)", "-\\left(x + y\\right)", "-(x + y)", "-(x + y)"),
  ("-(x + y)*z", "-(x + y)*z", "-\\left(x + y\\right) z", "-(x + y)*z", "-(x + y)*z"),
  ("-2*(x + y)", "-2*(x + y)", "-2 \\left(x + y\\right)", "-2.0*(x + y)", "-2*(x + y)"),
  ("x/(y + z)", "x/(y + z)", "\\frac{x}{y + z}", "x/(y + z)", "x/(y + z)"),
  ("x/(y*z)", "x/(y*z)", "\\frac{x}{y z}", "x/(y*z)", "x/(y*z)"),
  ("x/y*z", "x*z/y", "\\frac{x z}{y}", "x*z/y", "x*z/y"),
  ("1/(x*y)", "1/(x*y)", "\\frac{1}{x y}", "1.0/(x*y)", "1/(x*y)"), ("1/x", "1/x", "\\frac{1}{x}", "1.0/x", "1/x"),
  ("-1/x", "-1/x", "-\\frac{1}{x}", "-1.0/x", "-1/x"), ("2/x", "2/x", "\\frac{2}{x}", "2.0/x", "2/x"),
  ("1/(x + 1)", "1/(x + 1)", "\\frac{1}{x + 1}", "1.0/(x + 1.0)", "1/(x + 1)"),
  ("-(x + 1)/y", "-(x + 1)/y", "-\\frac{x + 1}{y}", "-(x + 1.0)/y", "-(x + 1)/y"),
  ("(x + 1)/y", "(x + 1)/y", "\\frac{x + 1}{y}", "(x + 1.0)/y", "(x + 1)/y"),
  ("(x + 1)/(y - 1)", "(x + 1)/(y - 1)", "\\frac{x + 1}{y - 1}", "(x + 1.0)/(y - 1.0)", "(x + 1)/(y - 1)"),
  ("x**2", "x**2", "{x}^{2}", "pow(x, 2.0)", "x^2"),
  ("(x + 1)**2", "(x + 1)**2", "{\\left(x + 1\\right)}^{2}", "pow(x + 1.0, 2.0)", "(x + 1)^2"),
  ("(2*x)**2", "(2*x)**2", "{\\left(2 x\\right)}^{2}", "pow(2.0*x, 2.0)", "(2*x)^2"),
  ("(-x)**2", "(-x)**2", "{\\left(-x\\right)}^{2}", "pow(-x, 2.0)", "(-x)^2"),
  ("-x**2", "-x**2", "-{x}^{2}", "-pow(x, 2.0)", "-(x^2)"),
  ("(-2)**x", "(-2)**x", "{\\left(-2\\right)}^{x}", "pow(-2.0, x)", "(-2)^x"),
  ("2**x", "2**x", "{2}^{x}", "pow(2.0, x)", "2^x"), ("x**-y", "x**(-y)", "{x}^{-y}", "pow(x, -y)", "x^(-y)"),
  ("x**(-2.5)", "x**(-2.5)", "{x}^{-2.5}", "pow(x, -2.5)", "x^(-2.5)"),
  ("x**2.5", "x**2.5", "{x}^{2.5}", "pow(x, 2.5)", "x^2.5"),
  ("x**(y + 1)", "x**(y + 1)", "{x}^{y + 1}", "pow(x, y + 1.0)", "x^(y + 1)"),
  ("x**(2*y)", "x**(2*y)", "{x}^{2 y}", "pow(x, 2.0*y)", "x^(2*y)"),
  ("(x**y)**z", "(x**y)**z", "{\\left({x}^{y}\\right)}^{z}", "pow(pow(x, y), z)", "(x^y)^z"),
  ("x**(y**z)", "x**(y**z)", "{x}^{{y}^{z}}", "pow(x, pow(y, z))", "x^(y^z)"),
  ("(x*y)**z", "(x*y)**z", "{\\left(x y\\right)}^{z}", "pow(x*y, z)", "(x*y)^z"),
  ("sin(x)**2", "sin(x)**2", "{\\sin\\left(x\\right)}^{2}", "pow(sin(x), 2.0)", "SIN(x)^2"),
  ("1/sin(x)", "1/sin(x)", "\\frac{1}{\\sin\\left(x\\right)}", "1.0/sin(x)", "1/SIN(x)"),
  ("cot(x)", "1/tan(x)", "\\cot\\left(x\\right)", "1.0/tan(x)", "1/TAN(x)"),
  ("2*cot(x)", "2*(1/tan(x))", "2 \\cot\\left(x\\right)", "2.0*(1.0/tan(x))", "2*(1/TAN(x))"),
  ("1/cot(x)", "1/(1/tan(x))", "\\frac{1}{\\cot\\left(x\\right)}", "1.0/(1.0/tan(x))", "1/(1/TAN(x))"),
  ("cot(x)**2", "(1/tan(x))**2", "{\\cot\\left(x\\right)}^{2}", "pow(1.0/tan(x), 2.0)", "(1/TAN(x))^2"),
  ("x*cot(x + 1)", "x*(1/tan(x + 1))", "x \\cot\\left(x + 1\\right)", "x*(1.0/tan(x + 1.0))", "x*(1/TAN(x + 1))"),
  ("arccot(x)", "arctan(1/x)", "\\operatorname{arccot}\\left(x\\right)", "atan(1.0/x)", "ATAN(1/x)"),
  ("arccot(2*x)", "arctan(1/(2*x))", "\\operatorname{arccot}\\left(2 x\\right)", "atan(1.0/(2.0*x))", "ATAN(1/(2*x))"),
  ("x**cot(y)", "x**(1/tan(y))", "{x}^{\\cot\\left(y\\right)}", "pow(x, 1.0/tan(y))", "x^(1/TAN(y))"),
  ("sin(-x)", "sin(-x)", "\\sin\\left(-x\\right)", "sin(-x)", "SIN(-x)"),
  ("exp(x + 1)", "exp(x + 1)", "\\exp\\left(x + 1\\right)", "exp(x + 1.0)", "EXP(x + 1)"),
  ("abs(x - 1)", "abs(x - 1)", "\\left|x - 1\\right|", "fabs(x - 1.0)", "ABS(x - 1)"),
  ("sign(x)", "sign(x)", "\\operatorname{sign}\\left(x\\right)", "((double)(x > 0.0) - (double)(x < 0.0))", "SIGN(x)"),
  ("minimum(x, 2)", "minimum(x, 2)", "\\min\\left(x, 2\\right)", "fmin(x, 2.0)", "MIN(x, 2)"),
  ("maximum(x + 1, y)", "maximum(x + 1, y)", "\\max\\left(x + 1, y\\right)", "fmax(x + 1.0, y)", "MAX(x + 1, y)"),
  ("1.5e-9*x", "1.5e-09*x", "\\left(1.5 \\cdot 10^{-9}\\right) x", "1.5e-09*x", "1.5e-09*x"),
  ("-1.5e20*x", "-1.5e+20*x", "-\\left(1.5 \\cdot 10^{20}\\right) x", "-1.5e+20*x", "-1.5e+20*x"),
  ("3*x*2", "3*2*x", "3 \\cdot 2 x", "3.0*2.0*x", "3*2*x"), ("x*3*y", "3*x*y", "3 x y", "3.0*x*y", "3*x*y"),
  ("2*(3*x)", "2*3*x", "2 \\cdot 3 x", "2.0*3.0*x", "2*3*x"),
  ("sqrt(x)/2", "sqrt(x)/2", "\\frac{\\sqrt{x}}{2}", "sqrt(x)/2.0", "SQRT(x)/2"),
  ("x/2", "x/2", "\\frac{x}{2}", "x/2.0", "x/2"), ("x/-2", "-x/2", "-\\frac{x}{2}", "-x/2.0", "-x/2"),
  ("(-3)*x", "-3*x", "-3 x", "-3.0*x", "-3*x"),
  ("x*y/(z*2)", "x*y/(2*z)", "\\frac{x y}{2 z}", "x*y/(2.0*z)", "x*y/(2*z)"),
  ("x**3", "x**3", "{x}^{3}", "pow(x, 3.0)", "x^3"), ("-(-x)", "x", "x", "x", "x"),
  ("x - (y - z)", "x - (y - z)", "x - \\left(y - z\\right)", "x - (y - z)", "x - (y - z)"),
  ("x - (y + z)", "x - (y + z)", "x - \\left(y + z\\right)", "x - (y + z)", "x - (y + z)"),
  ("x - -y", "x + y", "x + y", "x + y", "x + y"), ("2 - 3*x", "2 - 3*x", "2 - 3 x", "2.0 - 3.0*x", "2 - 3*x"),
  ("1 - x*y", "1 - x*y", "1 - x y", "1.0 - x*y", "1 - x*y"), ("-3 - x", "-3 - x", "-3 - x", "-3.0 - x", "-3 - x"),
  ("x*-1", "-x", "-x", "-x", "-x"), ("log(x)", "log(x)", "\\ln\\left(x\\right)", "log(x)", "LN(x)"),
  ("tanh(x)", "tanh(x)", "\\tanh\\left(x\\right)", "tanh(x)", "TANH(x)"), ("-0.5", "-0.5", "-0.5", "-0.5", "-0.5"),
  ("1e15*x", "1000000000000000.0*x", "1000000000000000.0 x", "1000000000000000.0*x", "1000000000000000.0*x"),
  ("123456.0*x", "123456*x", "123456 x", "123456.0*x", "123456*x"),
  ("x/(2*y)/3", "x/(2*3*y)", "\\frac{x}{2 \\cdot 3 y}", "x/(2.0*3.0*y)", "x/(2*3*y)"),
  ("(x/y)**2", "(x/y)**2", "{\\left(\\frac{x}{y}\\right)}^{2}", "pow(x/y, 2.0)", "(x/y)^2"),
  ("2**(x/y)", "2**(x/y)", "{2}^{\\frac{x}{y}}", "pow(2.0, x/y)", "2^(x/y)"),
  ("-2**x", "-2**x", "-{2}^{x}", "-pow(2.0, x)", "-(2^x)"),
  ("3*2**x", "3*2**x", "3 \\cdot {2}^{x}", "3.0*pow(2.0, x)", "3*2^x"),
  ("x*y**2*3", "3*x*y**2", "3 x {y}^{2}", "3.0*x*pow(y, 2.0)", "3*x*y^2"),
  ("arccot(x)*y", "arctan(1/x)*y", "\\operatorname{arccot}\\left(x\\right) y", "atan(1.0/x)*y", "ATAN(1/x)*y"),
  ("-cot(x)", "-1/tan(x)", "-\\cot\\left(x\\right)", "-1.0/tan(x)", "-1/TAN(x)"),
  ("x + 0.5", "x + 0.5", "x + 0.5", "x + 0.5", "x + 0.5")])
def test_forms_of_the_languages(given, text, latex, c, excel):
  node = parser.parse(given, NAMES, expands=False)
  assert printing.to_text(node, NAMES) == text
  assert printing.to_latex(node, NAMES) == latex
  assert printing.render(node, NAMES, LANGUAGES["c"].dialect) == c
  assert printing.render(node, NAMES, LANGUAGES["excel"].dialect) == excel
  with np.errstate(all="ignore"):
    np.testing.assert_allclose(
      expression.evaluate(parser.parse(text, NAMES, expands=False), X), expression.evaluate(node, X), rtol=1e-12)


@pytest.mark.parametrize("op", operators.OPERATORS, ids=lambda op: op.name)
def test_every_form_has_every_argument_once(op):
  for form in (op.python, op.c, op.julia, op.excel, op.latex):
    written = form.format("first", "second", m="")
    assert written.count("first") == (2 if (op.name, form) == ("sign", op.c) else 1)
    assert written.count("second") == (op.arity == 2)


@pytest.mark.parametrize(("node", "text", "with_ones", "latex"), [
  (Node("-", (x, Node("-", (y, z)))), "x - y + z", "x - y + z", "x - y + z"),
  (Node("-", (x, number(-2))), "x + 2", "x + 2", "x + 2"),
  (Node("/", (x, Node("/", (y, z)))), "x*z/y", "x*z/y", "\\frac{x z}{y}"),
  (Node("/", (Node("/", (x, y)), z)), "x/(y*z)", "x/(y*z)", "\\frac{x}{y z}"),
  (Node("+", (number(-1), number(-2))), "-1 - 2", "-1 - 2", "-1 - 2"),
  (Node("*", (number(-1), x)), "-x", "-1*x", "-x"), (Node("*", (number(1), x)), "x", "1*x", "x"),
  (Node("*", (number(1), number(1))), "1", "1*1", "1"), (Node("inv", (number(1),)), "1", "1/1", "1"),
  (Node("inv", (Node("inv", (x,)),)), "x", "x", "x"), (Node("pow4", (x,)), "x**4", "x**4", "{x}^{4}"),
  (Node("pow6", (Node("+", (x, y)),)), "(x + y)**6", "(x + y)**6", "{\\left(x + y\\right)}^{6}"),
  (Node("neg", (Node("neg", (x,)),)), "x", "x", "x"), (Node("/", (number(1), x)), "1/x", "1/x", "\\frac{1}{x}"),
  (Node("/", (x, number(-1))), "-x", "-x/1", "-x"), (Node("*", (number(-2), number(-3))), "2*3", "2*3", "2 \\cdot 3"),
  (Node("-", (Node("*", (number(-1), x)), Node("*", (number(-1), y)))), "y - x", "1*y - 1*x", "y - x"),
  (Node("pow", (x, Node("neg", (y,)))), "x**(-y)", "x**(-y)", "{x}^{-y}"),
  (Node("/", (Node("*", (number(1), x)), Node("*", (number(1), y)))), "x/y", "1*x/(1*y)", "\\frac{x}{y}"),
  (Node("neg", (Node("*", (number(1), x)),)), "-x", "-1*x", "-x"),
  (Node("-", (x, Node("-", (number(3), Node("neg", (z,)))))), "x - 3 - z", "x - 3 - z", "x - 3 - z"),
  (Node("-", (Node("*", (number(1), x)), Node("*", (number(1), y)))), "x - y", "1*x - 1*y", "x - y"),
  (Node("*", (number(0), x)), "0*x", "0*x", "0 x"), (Node("pow", (number(0), x)), "0**x", "0**x", "{0}^{x}"),
  (Node("+", (x, number(0))), "x + 0", "x + 0", "x + 0"),
  (Node("+", (x, Node("*", (number(1), number(1))))), "x + 1", "x + 1*1", "x + 1")])
def test_forms_of_trees_that_no_text_has(node, text, with_ones, latex):
  assert printing.to_text(node, NAMES) == text and printing.to_text(node, NAMES, has_ones=True) == with_ones
  assert printing.to_latex(node, NAMES) == latex
  for each in (text, with_ones):
    np.testing.assert_allclose(expression.evaluate(parser.parse(each, NAMES), X), expression.evaluate(node, X))


@pytest.mark.parametrize(("value", "digits", "expected"), [
  (999999999999999.0, None, "999999999999999"), (1e15, None, "1000000000000000.0"),
  (-1e15, None, "-1000000000000000.0"), (2.0, None, "2"), (2.5, None, "2.5"),
  (2.04, 2, "2"), (0.12345, 3, "0.123"), (math.nan, 3, "nan"),
  (-math.inf, None, "-inf")])
def test_numbers(value, digits, expected):
  assert printing.format_number(value, digits) == expected


def test_numbers_of_a_dialect():
  c, jax = LANGUAGES["c"].dialect, LANGUAGES["jax"].dialect
  assert [c.number(v, None) for v in (2.0, -3.0, 2.5, 1e22, math.nan, math.inf, -math.inf)] == [
    "2.0", "-3.0", "2.5", "1e+22", "NAN", "INFINITY", "-INFINITY"]
  # JAX takes whole numbers for an int32.
  assert [jax.number(v, None) for v in (2.0**31 - 1, 2.0**31, -(2.0**31), 1.0 - 2.0**31)] == [
    "2147483647", "2147483648.0", "-2147483648.0", "-2147483647"]
  assert Dialect("python").number(1234.5, 2) == "1200" and Dialect("python").number(0.0, None) == "0"
  assert (Dialect("python").nan, Dialect("python").infinity) == ("nan", "inf")
  assert Dialect("python").form("sin", "x") == "sin(x)" and Dialect("python", "np.").form("sin", "x") == "np.sin(x)"


def test_digits_and_names_reach_every_form():
  node = parser.parse("0.123456*x0/(1.23456 + x1)", ("x0", "x1"))
  assert printing.to_text(node, digits=2) == "0.12*x0/(1.2 + x1)"
  assert printing.to_latex(node, digits=2) == r"\frac{0.12 x_{0}}{1.2 + x_{1}}"
  assert printing.to_text(node, ["a b", "c"], digits=1) == "0.1*`a b`/(1 + c)"
  assert printing.leaf_name(expression.symbol("k"), NAMES) == "k" and printing.leaf_name(y, None) == "x1"


def test_torch_compares_tensors_with_tensors():
  torch = LANGUAGES["torch"].dialect
  for text, expected in (("minimum(x, 2)", "torch.minimum(x, torch.full_like(x, 2))"),
                         ("maximum(2.5, x)", "torch.maximum(torch.full_like(x, 2.5), x)"),
                         ("maximum(x, y)", "torch.maximum(x, y)"), ("sin(x)", "torch.sin(x)")):
    assert printing.render(parser.parse(text, NAMES), NAMES, torch) == expected
  numpy = LANGUAGES["numpy"].dialect
  assert printing.render(parser.parse("minimum(x, 2)", NAMES), NAMES, numpy) == "np.minimum(x, 2)"


def test_a_leading_minus_of_a_spreadsheet_is_kept_from_powers():
  for text, expected in (("-x**2 + -y", "-(x^2) - y"), ("-x*y", "-x*y"), ("-3*x**2", "-(3*x^2)"),
                         ("-1/x**2", "-(1/x^2)")):
    assert printing.render(parser.parse(text, NAMES), NAMES, LANGUAGES["excel"].dialect) == expected


def test_what_stands_between_factors_in_latex():
  for text, expected in (("3*2**x", r"3 \cdot {2}^{x}"), ("x*mass", r"x \, \mathrm{mass}"),
                         ("mass*x", r"\mathrm{mass} \, x"),
                         ("x*y*2.5", "2.5 x y"), ("2*(3*x)", r"2 \cdot 3 x")):
    assert printing.to_latex(parser.parse(text, ("x", "y", "mass")), ("x", "y", "mass")) == expected
