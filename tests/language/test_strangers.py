"""Names in formulas that are no columns, and no unknown constants either."""

import pytest

from symformer_jax.errors import InputError
from symformer_jax.language import parser, strangers

OTHERS = {"y": "the target", "b": "a column"}


@pytest.mark.parametrize("text", ["k*x + c", "f(x)*k", "2*x", "x +", "g(", "", "y(x)", "w*x"])
def test_formulas_of_columns_and_constants_pass(text):
  strangers.refuse("guesses", text, ("x", "w"), {**OTHERS, "w": "the target"})


@pytest.mark.parametrize(("text", "name", "what"), [
  ("a*y + b", "y", "the target"), ("sin(x*b)", "b", "a column"), ("f(x)*exp(-y)", "y", "the target")])
def test_names_that_the_data_have_are_refused(text, name, what):
  with pytest.raises(InputError) as caught:
    strangers.refuse("--guess", text, ("x",), OTHERS)
  assert str(caught.value) == f"--guess: {text!r}: {name!r} is {what}; an unknown constant needs another name"


def refuse_columnless(text, columns, *, may_be_number=False):
  node = parser.parse(text, columns, allow_symbols=True)
  strangers.refuse_columnless("guesses", text, node, columns, may_be_number=may_be_number)


@pytest.mark.parametrize("text", ["a*exp(-b*t)", "t", "7.5", "pi"])
def test_formulas_of_a_column_or_where_they_may_be_of_numbers_alone_are_no_slips(text):
  refuse_columnless(text, ("t", "u"), may_be_number=True)


@pytest.mark.parametrize(("text", "columns", "rest"), [
  ("a*exp(-b*x)+c", ("t",), "t"), ("a*x", ("u", "girth (in)"), "u, `girth (in)`"),
  ("3+4", ("t",), "t"), ("pi", ("t", "u"), "t, u"), ("a*T + b", ("u", "t"), "u, t; did you mean 't'?"),
  ("a", tuple(f"c{i}" for i in range(9)), ", ".join(f"c{i}" for i in range(8)) + ", ...")])
def test_a_formula_of_constants_alone_is_refused_by_the_columns_there_are(text, columns, rest):
  with pytest.raises(InputError) as caught:
    refuse_columnless(text, columns)
  assert str(caught.value) == f"guesses: {text!r} has no column of the table: {rest}"
