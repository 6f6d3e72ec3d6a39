"""Any name of a column stands in a formula and is read back; in LaTeX it is shown and stays one thing."""

from hypothesis import example, given, settings, strategies as st
from matplotlib import mathtext
import numpy as np
import pandas as pd
import pytest
import sympy

from symformer_jax.errors import ExpressionError
from symformer_jax.language import expression, names, parser, printing, sympy_trees
from symformer_jax.language.expression import Node, number, variable

ODD = ["girth (in)", "lambda", "x**2", "pi", "exp", "x", "y", "a b", "a`b", "`", "``", "", " ", "\u03b8", "m\u00b2",
       "say \"x\"", "it's", "+", "neg", "pow2", "1990", "-1", "sin(x)", "log", "None", "e\u0301", "a\nb", "\\", "%_{a}"]
NAMES = st.lists(st.sampled_from(ODD) | st.text(max_size=6), min_size=2, max_size=3, unique=True)
TREES = st.recursive(
  st.sampled_from([variable(0), variable(1), number(2.5), number(-3)]),
  lambda inner: st.builds(lambda token, a, b: Node(token, (a, b)), st.sampled_from(["+", "*", "pow"]), inner, inner)
  | st.builds(lambda token, a: Node(token, (a,)), st.sampled_from(["exp", "sin", "ln", "neg", "inv", "sqrt"]), inner),
  max_leaves=6)


@settings(max_examples=300)
@given(NAMES, TREES)
@example(["exp", "pi"], Node("exp", (Node("+", (variable(0), variable(1))),)))
@example(["x1", "x0"], Node("*", (variable(0), variable(1))))
def test_any_name_is_written_so_that_it_is_read_back(columns, node):
  plain = ("u", "v", "w")
  assert parser.parse(printing.to_text(node, columns), columns) == parser.parse(printing.to_text(node, plain), plain)


@pytest.mark.parametrize(("name", "text"), [
  ("mass", "mass"), ("\u03b8_1", "\u03b8_1"), ("girth (in)", "`girth (in)`"), ("a`b", "`a``b`"), ("lambda", "`lambda`"),
  ("pi", "`pi`"), ("log", "`log`"), ("x**2", "`x**2`"), ("", "``"), ("2nd", "`2nd`"), ("m\u00b2", "`m\u00b2`")])
def test_names_that_are_no_plain_words_stand_in_backticks(name, text):
  assert names.written(name) == text == printing.to_text(variable(0), [name])


def test_pandas_reads_what_is_written():
  frame = pd.DataFrame({"girth (in)": [1.0, 2.0], "lambda": [3.0, 5.0], "a b": [2.0, 1.0]})
  text = printing.to_text(parser.parse("2*a*b + c**2", "abc"), list(frame.columns))
  assert text == "2*`girth (in)`*`lambda` + `a b`**2"
  np.testing.assert_array_equal(frame.eval(text), [10, 21])


def test_a_word_before_a_bracket_is_a_function():
  assert parser.parse("exp(exp)*pi", ["exp", "pi"]) == Node("*", (Node("exp", (variable(0),)), variable(1)))
  assert parser.parse("`exp` + exp", ["exp"]) == Node("+", (variable(0), variable(0)))


@pytest.mark.parametrize(("text", "message"), [
  ("2*`a b`", "unknown name 'a b' at position 3: expected a variable"),
  ("`a", "position 1 of '`a' has no closing backtick"),
  ("`sin`(x)", "unknown name 'sin'"), ("`x``", "has no closing backtick"), ("`x`y`", "has no closing backtick"),
  ("`x`(2)", "expected an operator or the end"), ("`x` `y`", "expected an operator or the end")])
def test_backticks_hold_names_of_columns_only(text, message):
  with pytest.raises(ExpressionError, match=message):
    parser.parse(text, allow_symbols=True)


def test_long_names_are_no_hostile_formulas():
  columns = ["n" * 3000 + " ", "m" * 3000]
  node = expression.chain("+", [Node("sin", (variable(i % 2),)) for i in range(20)])
  assert parser.parse(printing.to_text(node, columns), columns) is not None
  with pytest.raises(ExpressionError, match="characters long"):
    parser.parse("`" + "n" * 700_000 + "`", ["n" * 700])


def test_symbols_of_sympy_have_the_names_as_they_are():
  assert sympy_trees.to_sympy(variable(0), ["girth (in)"]) == sympy.Symbol("girth (in)", real=True)


@pytest.mark.parametrize(("name", "latex"), [
  ("x", "x"), ("x12", "x_{12}"), ("mass", r"\mathrm{mass}"), ("girth (in)", r"\mathrm{girth\ (in)}"),
  ("\u03b8", r"\theta "), ("\u0394T", r"\mathrm{\Delta T}"), ("\u00b5m", r"\mathrm{\mu m}"),
  ("m\u00b2", r"\mathrm{m{}^{2}}"), ("x**2", r"\mathtt{x**2}"), ("1990", r"\mathtt{1990}"), ("7", r"\mathtt{7}"),
  ("a_b", r"\mathrm{a\_b}"), ("T (\u00b0C)", r"\mathrm{T\ ({}^{\circ}C)}"), ("\u03bb2", r"\lambda _{2}"),
  ("\u0391", "\u0391"), ("\u0251", "\u0251"), ("\u03b1", r"\alpha "),
  ("a\nb", r"\mathrm{a\ b}"), ("", r"\mathrm{}")])
def test_latex_of_names(name, latex):
  assert printing.to_latex(variable(0), [name]) == latex


# Letters of Latin and Greek; for others the reader's fonts decide. Of those left out mathtext knows no form.
@settings(max_examples=60)
@given(st.text(st.characters(max_codepoint=0x3ff, exclude_categories=["Cn", "Cs", "Mn"], exclude_characters="&`\"^~"),
               max_size=6))
def test_latex_of_any_name_is_read_by_another_program(name):
  reader = mathtext.MathTextParser("path")
  reader.parse(f"${printing.to_latex(Node('*', (number(2), Node('pow2', (variable(0),)))), [name])}$")
