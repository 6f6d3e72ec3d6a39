"""Templates as text, and solved for their unknown functions: SymPy and plain arithmetic are the oracles."""

import hypothesis
from hypothesis import strategies
import numpy as np
import pytest

from symformer_jax.errors import ExpressionError, InputError
from symformer_jax.language import expression, inverses, parser, templates
from symformer_jax.language.expression import variable

NAMES = ("x", "t", "girth (in)")


def test_names_that_are_no_columns_are_functions_and_parameters():
  found = templates.read("f(x, `girth (in)`)*exp(-k*t) + 2*pi", NAMES)
  assert found.unknowns == (templates.Unknown("f", (0, 2)),) and found.parameters == ("k",)
  assert found.call(found.unknowns[0]) == "f(x, `girth (in)`)"
  # Columns are not in the way of functions, whatever they are called.
  assert templates.read("x(t) + x", NAMES).unknowns == (templates.Unknown("x", (1,)),)


def test_what_is_filled_in_stands_where_the_unknowns_stood():
  found = templates.read("f(x)*exp(-k*t)", NAMES)
  tree = templates.fill(found.node, {"f": parser.parse("x + 1", NAMES)}, {"k": 0.5})
  x = np.array([[1.0, 2.0, 0.0], [3.0, 4.0, 0.0]])
  np.testing.assert_allclose(expression.evaluate(tree, x), [2 * np.exp(-1), 4 * np.exp(-2)])


@pytest.mark.parametrize(("text", "message"), [
  ("x + t", "expected an unknown function of columns, such as f(x), in 'x + t'; a form that has none is fitted "
    "by --guess, in Python by guesses or refine"),
  ("f()*t", "expected a column as an argument of f, got ')' at position 3 of 'f()*t'"),
  ("f(w) + t", "f has no column 'w' at position 3: expected one of x, t, girth (in)"),
  ("f(2*x)", "expected a column as an argument of f, got '2' at position 3"),
  ("f(x t)", "expected ',' or ')' after an argument of f, got 't' at position 5"),
  ("f(x, x)", "f has the argument 'x' twice"),
  ("f(x) + f(t)", "f stands 2 times, expected once"),
  ("sinh(f(x))*t", "f stands 2 times, expected once; sinh and cosh are sums of two exp"),
  ("f(x)*f", "f stands 2 times, expected once"),
  ("f(x)*k**t + k", "k stands 2 times, expected once"),
  ("t + sin(f(x))", "cannot be solved for f(x): sin around it has no single inverse, expected +, -, *, /, powers"),
  ("f(x) + g(x, t)", "f(x) cannot be told from g(x, t), which has its columns: leave one of them out"),
  ("f(x)*t + g(x)*t", "g(x) cannot be told from f(x)"), ("f(x)*t*g(x)", "g(x) cannot be told from f(x)"),
  ("t + f(x) + g(x)", "g(x) cannot be told from f(x)"), ("f(x)*(g(x) + t)", "g(x) cannot be told from f(x)"),
  ("h(x) - (f(x) + g(x)*t)", "f(x) cannot be told from h(x)"),
  ("f(x) + 2*(g(x) + t)", "g(x) cannot be told from f(x)"), ("f(x) + log(g(x)*t)", "g(x) cannot be told from f(x)"),
  ("f(x) + g(x)*(t + k)", "g(x) cannot be told from f(x)"), ("f(x) - (g(x) + t)", "g(x) cannot be told from f(x)"),
  ("a*f(x)*t", "the parameter a cannot be told from f(x), which may be any function: leave it out"),
  ("t*(-(a*f(x)))", "the parameter a cannot be told from f(x)"),
  ("b + t + f(x)", "the parameter b cannot be told from f(x)"),
  ("f(x)*exp(-k*x)", "the parameter k cannot be told from f(x)"),
  ("t*sqrt(a + f(x))", "the parameter a cannot be told from f(x)"),
  ("f(x) + " + "t*" * 30 + "t", "expected at most 40 names, numbers and operators, got 63"),
  ("f(x) + g(t) + h(`girth (in)`) + i(x, t)", "expected at most 3 unknown functions, got 4"),
  ("f(" * 50 + "x" + ")" * 50, "f has no column 'f' at position 3"),
  ("", "the formula is empty"),
  ("f(x).real", "unexpected character '.' at position 5"),
])
def test_what_is_not_supported_is_refused_in_one_line(text, message):
  with pytest.raises(InputError) as error:
    templates.read(text, NAMES)
  assert str(error.value).startswith("template: ") and message in str(error.value) and "\n" not in str(error.value)


def test_a_parameter_that_the_function_cannot_make_up_for_is_taken():
  for text in ("a*t + f(x)", "f(x)*exp(-a*t)", "t**a*f(x)", "(a*x + t)*f(x)", "sqrt(f(x) + a*t)", "f(x)/(t + a)"):
    assert templates.read(text, NAMES).parameters == ("a",)


def test_formulas_elsewhere_know_no_unknown_functions():
  with pytest.raises(ExpressionError, match="unknown name 'f'"):
    parser.parse("f(x)", NAMES, allow_symbols=True)


@hypothesis.settings(max_examples=50)
@hypothesis.given(strategies.text(alphabet="fgxtk`(),+*-^. 2sqrtexp\n\\", max_size=40))
def test_hostile_text_is_read_or_refused(text):
  try:
    templates.read(text, NAMES)
  except InputError as error:
    assert "\n" not in str(error)


FORMS = ["f(x) + t", "t - f(x)", "t*f(x)", "t/f(x)", "(f(x) + 1)/t", "f(x)**2 + t", "f(x)**3 - 9*t", "1/(f(x) + t)",
         "sqrt(f(x) + t)", "exp(f(x)*t)", "log(f(x) + t)", "arcsin(f(x)/9)", "arccos(f(x)/9)", "arctan(f(x)*t)",
         "f(x)**2.5*t", "f(x)**(-3)", "t**f(x)", "tanh(f(x)/3)", "f(x)**t", "abs(f(x))", "log10(f(x))*t"]


@pytest.mark.parametrize("text", FORMS)
def test_solving_gives_back_what_was_put_in(text, rng):
  found = templates.read(text, NAMES)
  x = np.column_stack([rng.uniform(0.5, 2.5, (20, 2)), np.zeros(20), rng.uniform(0.5, 2.5, 20)])
  tree, path = templates.fill(found.node, {"f": variable(3)}, {}), found.path("f")
  y = expression.evaluate(tree, x)
  np.testing.assert_allclose(inverses.solve(tree, path, x, y), x[:, 3], rtol=1e-9)
  # The slope against differences.
  step = 1e-6
  ahead, behind = (expression.evaluate(tree, x + sign * step * np.array([0, 0, 0, 1])) for sign in (1, -1))
  np.testing.assert_allclose(inverses.slope(tree, path, x), (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("text", "y"), [
  ("sqrt(f(x))", -1.0), ("exp(f(x))", -1.0), ("f(x)**2", -1.0), ("arcsin(f(x))", 2.0), ("arccos(f(x))", -0.1),
  ("arctan(f(x))", 1.6), ("f(x)**2.5", -1.0), ("t**f(x)", -1.0)])
def test_values_that_the_form_cannot_take_have_no_solution(text, y):
  found = templates.read(text, NAMES)
  x = np.ones((1, 3)) * 2
  assert not np.isfinite(inverses.solve(found.node, found.path("f"), x, np.array([y])))[0]


def test_odd_powers_keep_the_sign():
  for text in ("f(x)**3", "f(x)**5", "f(x)**(-3)"):
    found = templates.read(text, NAMES)
    tree, path = templates.fill(found.node, {"f": variable(0)}, {}), found.path("f")
    x = np.array([[-1.5, 0, 0], [2.0, 0, 0]])
    np.testing.assert_allclose(inverses.solve(tree, path, x, expression.evaluate(tree, x)), x[:, 0])
