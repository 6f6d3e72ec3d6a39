"""Trees and their ways between ids, text, SymPy and LaTeX."""

import math
import re

from hypothesis import given, settings, strategies as st
import numpy as np
import pytest
import sympy

from symformer_jax.errors import ExpressionError, InputError
from symformer_jax.language import expression, operators, parser, printing, sympy_trees
from symformer_jax.language.expression import Node, number, symbol, variable
from symformer_jax.language.vocabulary import Vocabulary

VOCAB = Vocabulary(2)
NAMES = ["x", "y"]
# Points off the axes and off round numbers, of either sign.
POINTS = np.random.default_rng(5).uniform(-2.5, 2.5, (60, 2))

NUMBERS = (st.integers(-5, 5) | st.floats(-9, 9).filter(lambda v: abs(v) > 1e-3)
           | st.sampled_from([1e-7, -2.5e-9, 12345.678, 1e9, 0.5, -0.5, -7.0])).map(number)
LEAVES = st.sampled_from([variable(0), variable(1)]) | NUMBERS


def trees(names):
  """Random trees over the operators named."""
  unary = [name for name in names if operators.BY_NAME[name].arity == 1]
  binary = [name for name in names if operators.BY_NAME[name].arity == 2]

  def extend(children):
    one = st.builds(lambda token, a: Node(token, (a,)), st.sampled_from(unary), children)
    two = st.builds(lambda token, a, b: Node(token, (a, b)), st.sampled_from(binary), children, children)
    return one | two
  return st.recursive(LEAVES, extend, max_leaves=8)


MODEL_TREES = trees([op.name for op in operators.MODEL_OPERATORS])
ALL_TREES = trees([op.name for op in operators.OPERATORS])


def same_domain_and_values(first, second, rel=1e-9):
  """Asserts equal values where both are finite and tame; says whether both are finite at the same points."""
  a, b = (expression.evaluate(node, POINTS) for node in (first, second))
  tame = np.isfinite(a) & np.isfinite(b) & (np.abs(a) < 1e6)
  # Cancellation and tan near its poles magnify rounding: few points may differ, not most.
  close = np.isclose(a[tame], b[tame], rtol=rel, atol=1e-9)
  assert close.mean() > 0.9 if tame.any() else True
  return (np.isfinite(a) == np.isfinite(b)).mean() > 0.9


@settings(max_examples=300)
@given(MODEL_TREES)
def test_ids_round_trip(node):
  ids, mantissas = expression.encode(node, VOCAB)
  values = np.array(mantissas) * np.array(VOCAB.constant_scale)[ids]
  back = expression.decode(ids, values, VOCAB)
  assert [n.token for n in expression.walk(back)] == [n.token for n in expression.walk(node)]
  for a, b in zip(expression.walk(node), expression.walk(back), strict=True):
    assert a.value == b.value or a.value == pytest.approx(b.value, rel=1e-15)


@settings(max_examples=300)
@given(ALL_TREES)
def test_text_round_trip(node):
  text = printing.to_text(node, NAMES)
  back = parser.parse(text, NAMES, expands=False)
  assert same_domain_and_values(node, back)
  assert printing.to_text(back, NAMES) == printing.to_text(parser.parse(
    printing.to_text(back, NAMES), NAMES, expands=False), NAMES)


@settings(max_examples=300)
@given(ALL_TREES)
def test_text_is_python(node):
  """The oracle is Python itself, on text this test has made."""
  text = printing.to_text(node, NAMES)
  names = ("sqrt", "exp", "log", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "tanh", "sinh", "cosh", "abs",
           "sign", "minimum", "maximum")
  scope = {name: getattr(np, name) for name in names} | {"x": POINTS[:, 0], "y": POINTS[:, 1]}
  with np.errstate(all="ignore"):
    try:
      # float64 scalars, so that 1/0 is an infinity as in the formula, not an exception.
      y = np.broadcast_to(eval(_with_float64(text), {"f": np.float64, **scope}), len(POINTS))
    except OverflowError:
      return
  ours = expression.evaluate(node, POINTS)
  tame = np.isfinite(ours) & (np.abs(ours) < 1e6) & np.isfinite(y)
  assert np.isclose(ours[tame], y[tame], rtol=1e-9, atol=1e-9).mean() > 0.9 if tame.any() else True


def _with_float64(text):
  return re.sub(r"(?<![\w.])(\d+\.?\d*(?:e[+-]?\d+)?)", r"f(\1)", text)


@settings(max_examples=60)
@given(trees(["+", "*", "neg", "inv", "pow2", "pow3", "sqrt", "exp", "ln", "sin", "cos", "atan", "-", "/"]))
def test_sympy_round_trip(node):
  symbols = sympy.symbols("x0 x1", real=True)
  expr = sympy_trees.to_sympy(node)
  try:
    back = sympy_trees.from_sympy(expr, symbols)
  except ExpressionError:  # SymPy saw a constant part that is no real number, such as sqrt(-2) or 1/0
    assert expr.has(sympy.I, sympy.zoo, sympy.oo, sympy.nan, sympy.re, sympy.im, sympy.Abs, sympy.sign)
    return
  same_domain_and_values(node, back)  # where both are finite: SymPy widens the domain of sqrt(x)**2
  assert back == expression.sort_operands(back)


@settings(max_examples=100)
@given(ALL_TREES)
def test_latex_brackets_balance(node):
  latex = printing.to_latex(node, NAMES)
  assert latex.count("{") == latex.count("}") and latex.count("\\left(") == latex.count("\\right)")


@settings(max_examples=100)
@given(MODEL_TREES)
def test_sorting_operands_keeps_the_function(node):
  ordered = expression.sort_operands(node)
  assert same_domain_and_values(node, ordered)
  assert expression.sort_operands(ordered) == ordered


def test_the_papers_example_of_a_prefix():
  x = sympy.Symbol("x", real=True)
  node = sympy_trees.from_sympy(0.017 * x + 1781.5, [x])
  ids, constants = expression.encode(node, VOCAB)
  assert [VOCAB.tokens[i] for i in ids] == ["+", "*", "x0", "C-1", "C4"]
  assert constants == pytest.approx([0, 0, 0, 0.17, 0.17815])


@pytest.mark.parametrize(("encoding", "token", "value"), [("base", "C", 0.017), ("skeleton", "C", 0.0)])
def test_other_encodings(encoding, token, value):
  vocab = Vocabulary(1, encoding)
  ids, constants = expression.encode(number(0.017), vocab)
  assert ([vocab.tokens[i] for i in ids], constants) == ([token], [value])


@pytest.mark.parametrize(("text", "expected"), [
  ("a*x**2 + b", "a*x**2 + b"), ("x - (y - 1)", "x - (y - 1)"), ("-x**2", "-x**2"), ("(-x)**2", "(-x)**2"),
  ("x**-2", "1/x**2"), ("x/(y*2)", "x/(2*y)"), ("x/y/2", "x/(2*y)"), ("x**(1/3)", "x**(1/3)"),
  ("2**-x", "2**(-x)"), ("-(x+y)", "-(x + y)"), ("x*-2", "-2*x"), ("x + -2*y", "x - 2*y"),
  ("sqrt(x)/(x+1)", "sqrt(x)/(x + 1)"), ("cot(x)**2", "(1/tan(x))**2"), ("acot(x+1)", "arctan(1/(x + 1))"),
  ("1e-9*x", "1e-09*x"), ("x**2**3", "x**(2**3)"), ("(x**2)**3", "(x**2)**3"), ("1/x", "1/x"), ("-1", "-1"),
])
def test_texts_of_choice(text, expected):
  assert printing.to_text(parser.parse(text, NAMES, allow_symbols=True), NAMES) == expected


@pytest.mark.parametrize(("text", "expected"), [
  ("x/(y+1)", r"\frac{x}{y + 1}"), ("-x/2", r"-\frac{x}{2}"), ("3*x**2*y", r"3 {x}^{2} y"),
  ("sqrt(x+1)", r"\sqrt{x + 1}"), ("2*log(x)", r"2 \ln\left(x\right)"), ("2*3**x", r"2 \cdot {3}^{x}"),
  ("(x+y)**2", r"{\left(x + y\right)}^{2}"), ("1e-9*x", r"\left(1 \cdot 10^{-9}\right) x"),
  ("x**(y/2)", r"{x}^{\frac{y}{2}}"), ("arctan(x)", r"\arctan\left(x\right)"),
  ("beta*x1", r"\mathrm{beta} \, x_{1}"), ("a_b*x", r"\mathrm{a\_b} \, x"),
])
def test_latex_of_choice(text, expected):
  assert printing.to_latex(parser.parse(text, NAMES, allow_symbols=True), NAMES) == expected


def test_latex_escapes_column_names():
  assert printing.to_latex(variable(0), ["50%_{a}"]) == r"\mathrm{50\%\_\{a\}}"


@pytest.mark.parametrize(("value", "digits", "expected"), [
  (0.1, None, "0.1"), (3.0, None, "3"), (-0.0, None, "0"), (1e22, None, "1e+22"), (2 / 3, 3, "0.667"),
  (1234.5678, 2, "1200"), (1e-12, None, "1e-12"), (math.inf, None, "inf"),
])
def test_numbers(value, digits, expected):
  assert printing.format_number(value, digits) == expected


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_exact(value):
  assert float(printing.format_number(value)) == value


def test_common_powers_have_their_tokens():
  tokens = {e: [n.token for n in expression.walk(expression.power(variable(0), number(e)))][:-1]
            for e in (1, 2, 3, 0.5, -1, -2, -3, -0.5, 4)}
  assert tokens == {1: [], 2: ["pow2"], 3: ["pow3"], 0.5: ["sqrt"], -1: ["inv"], -2: ["inv", "pow2"],
                    -3: ["inv", "pow3"], -0.5: ["inv", "sqrt"], 4: ["pow", "variable"]}


def test_complexity_counts_nodes():
  assert expression.complexity(parser.parse("2*x + 1")) == 5
  assert expression.complexity(parser.parse("sin(x**2)")) == 4


def test_evaluation_keeps_the_precision_of_the_points():
  node = parser.parse("x/3 + 1")
  assert expression.evaluate(node, np.ones((2, 1), np.float32)).dtype == np.float32
  assert expression.evaluate(number(2), POINTS).shape == (60,)


@pytest.mark.parametrize(("ids", "message"), [
  (["+", "x0"], "incomplete prefix expression: ends after 2 tokens"),
  (["x0", "x1"], "complete after 1 tokens, but 2 were given"),
  (["+", "start", "x0"], "start token inside"),
  ([], "incomplete"), (["start", "sin", "end"], "incomplete"),
])
def test_foreign_ids(ids, message):
  with pytest.raises(ExpressionError, match=message):
    expression.decode([VOCAB.ids[t] for t in ids], [0.0] * len(ids), VOCAB)


def test_start_end_and_padding_are_skipped():
  ids = [VOCAB.ids[t] for t in ("start", "sin", "x1", "end", "pad")]
  assert expression.decode(ids, [0.0] * 5, VOCAB) == Node("sin", (variable(1),))


@pytest.mark.parametrize(("node", "message"), [
  (symbol("b1"), "constant 'b1' has no value"), (number(1e12), "needs exponent 12"),
  (variable(2), "'x2' is not in the vocabulary of 2 variables"), (Node("pow4", (variable(0),)), "'pow4'"),
])
def test_what_cannot_be_encoded(node, message):
  with pytest.raises(InputError, match=message):
    expression.encode(node, VOCAB)


@pytest.mark.parametrize("make", [lambda x: sympy.I * x, lambda x: x + sympy.oo, lambda x: sympy.gamma(x),
                                  lambda x: sympy.Abs(x), lambda x: sympy.zoo, lambda x: sympy.nan])
def test_foreign_sympy(make):
  x = sympy.Symbol("x", real=True)
  with pytest.raises(ExpressionError):
    sympy_trees.from_sympy(make(x), [x])


@pytest.mark.parametrize(("node", "message"), [(symbol("a"), "has no value"), (variable(3), "are 2 columns")])
def test_what_cannot_be_evaluated(node, message):
  with pytest.raises(ExpressionError, match=message):
    expression.evaluate(node, POINTS)
