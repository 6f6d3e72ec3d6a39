"""Names in formulas that are no columns, and no unknown constants either."""

import pytest

from symformer_jax.errors import InputError
from symformer_jax.language import strangers

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
