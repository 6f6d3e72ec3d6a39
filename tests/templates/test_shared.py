"""Constants that several functions of a template share."""

import pytest

from symformer_jax.language import parser, printing, templates
from symformer_jax.templates.shared import gather_constants

NAMES = ("x", "t", "z")


@pytest.mark.parametrize(("template", "given", "expected"), [
  ("f(x) + g(t)", ("x**2 - 1", "exp(-t) + 1"), ("x**2", "exp(-t)")),
  ("f(x) + g(t)", ("x**2 + 2.5", "exp(-t) - 1"), ("x**2 + 1.5", "exp(-t)")),
  ("f(x) + g(t)", ("x**2 + 0.5", "2.0"), ("x**2", "2.5")),
  ("f(x) + g(t)", ("1.5", "2.5"), ("4", "0")),
  ("f(x) + g(t)", ("0", "0"), ("0", "0")), ("f(x) + g(t)", ("0", "t + 1.5"), ("1.5", "t")),
  # What a difference has left is less than a hundred-millionth of its terms, or more.
  ("f(x) + g(t)", ("x + 1000000.0", "t - 999999.995"), ("x", "t")),
  ("f(x) + g(t)", ("x + 1.0000000149011612", "t - 1"), ("x + 1.4901161193847656e-08", "t")),
  ("f(x) + g(t)", ("x + 1.000000007450581", "t - 1"), ("x", "t")),
  ("f(x) + g(t)", ("x + 100000000.0", "t - 99999999.0"), ("x", "t")),  # just that share
  ("f(x) + g(t)", ("x**2", "exp(-t) + 1"), ("x**2", "exp(-t) + 1")),
  ("sqrt(1 + f(x) + g(t) + h(z))", ("x + 0.1", "t + 0.2", "z - 0.3"), ("x", "t", "z")),
  ("f(x) + g(t)*h(z)", ("x + 1.5", "t + 2.5", "z + 3.5"), ("x + 1.5", "t + 2.5", "z + 3.5")),
  ("z*(f(x) + g(t)) + h(z)", ("x + 1.5", "t + 2.5", "z + 3.5"), ("x + 4", "t", "z + 3.5")),
])
def test_constants_of_the_terms_of_a_sum_are_put_in_one(template, given, expected):
  read = templates.read(template, NAMES)
  names = [unknown.name for unknown in read.unknowns]
  functions = {name: parser.parse(text, NAMES) for name, text in zip("fgh", given, strict=False)}
  gathered = gather_constants(read, functions)
  assert {name: printing.to_text(gathered[name], NAMES) for name in names} == {
    name: printing.to_text(parser.parse(text, NAMES), NAMES) for name, text in zip("fgh", expected, strict=False)}
