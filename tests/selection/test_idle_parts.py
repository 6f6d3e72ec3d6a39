"""Parts that say nothing on the rows: what goes, what stays, and that values stay to the last digit."""

import numpy as np
import pytest

from symformer_jax.language import expression, parser
from symformer_jax.language.tidy import tidy
from symformer_jax.selection.idle_parts import without_idle_parts

NAMES = ("x", "T", "g")


def rows():
  rng = np.random.default_rng(3)
  return np.column_stack([rng.uniform(1, 2, 50), rng.uniform(290, 420, 50), np.full(50, 9.81)])


def lean(text):
  return without_idle_parts(parser.parse(text, NAMES), rows())


@pytest.mark.parametrize(("text", "expected"), [
  ("x*exp(-5200/((exp(-T**4) + 1)*T))", "exp(-5200/(1*T))*x"),
  ("x + exp(-T)", "x"),
  ("T + x + 1e-30*x*T", "T + x"),
  ("sin(x) + 2*exp(-T**2)", "sin(x)"),
  ("log(cos(0*T) + x)", "log(1 + x)"), ("x + 1e-300", "x"),
])
def test_what_says_nothing_goes(text, expected):
  assert tidy(lean(text)) == tidy(parser.parse(expected, NAMES))


@pytest.mark.parametrize("text", ["x + 1e-9*T", "g*x**2", "g + 3", "exp(-T) + exp(-1.05*T)", "log(-x) + x", "5"])
def test_what_says_something_stays(text):
  assert lean(text) == parser.parse(text, NAMES)


def test_a_column_that_does_not_vary_keeps_its_name():
  assert lean("0.5*g*x**2 + exp(-T)*x") == parser.parse("0.5*g*x**2", NAMES)


@pytest.mark.parametrize("text", ["exp(-T**4) + 1 + x", "tanh(T)*x", "arctan(exp(T))*x - 1/T", "sqrt(T**2 + exp(-T))"])
def test_values_are_the_same_to_the_last_digit(text):
  node, x = parser.parse(text, NAMES), rows()
  found = without_idle_parts(node, x)
  np.testing.assert_allclose(expression.evaluate(found, x), expression.evaluate(node, x), rtol=4e-16)


def test_no_rows_change_nothing():
  node = parser.parse("x + exp(-T)", NAMES)
  assert without_idle_parts(node, np.zeros((0, 3))) == node


def test_more_may_be_asked_to_be_nothing():
  node = parser.parse("x + exp(-0.07*T)", NAMES)
  assert without_idle_parts(node, rows()) == node
  assert without_idle_parts(node, rows(), share=1e-6) == parser.parse("x", NAMES)
  node = parser.parse("2.2/(23.5*cos(1e-10*T - 0.3)*exp(-1.3*x) + 1)", NAMES)
  assert without_idle_parts(node, rows()) == node
  found = tidy(without_idle_parts(node, rows(), share=1e-6))
  assert "cos" not in {part.token for part in expression.walk(found)}
  np.testing.assert_allclose(expression.evaluate(found, rows()), expression.evaluate(node, rows()), rtol=1e-6)
