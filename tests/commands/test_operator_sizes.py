"""What --max_sizes says."""

import pytest

from symformer_jax.commands.operator_sizes import read_sizes
from symformer_jax.errors import InputError


def test_sizes_are_read_with_and_without_blanks():
  assert read_sizes([]) == {}
  assert read_sizes(["sin=3", " pow = 9 : 1 ", "/=:5", "**=-1:1", "+=4"]) == {
    "sin": (3,), "pow": (9, 1), "/": (None, 5), "**": (-1, 1), "+": (4,)}


@pytest.mark.parametrize("entry", ["sin", "=3", "sin=three", "sin=3.5", "pow=9,1"])
def test_what_is_no_size_is_refused(entry):
  with pytest.raises(InputError, match=f"^--max_sizes: expected OPERATOR=SIZE or .*, got {entry!r}$"):
    read_sizes([entry])


def test_an_operator_stands_once():
  with pytest.raises(InputError, match="^--max_sizes: 'sin' stands twice$"):
    read_sizes(["sin=3", "sin=4"])
