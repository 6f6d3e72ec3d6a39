"""What a search returns, as people see it."""

import dataclasses

from symformer_jax.language import parser
from symformer_jax.results import Constant, Equation


def test_an_equation_prints_as_a_formula_with_its_size_and_r2():
  node = parser.parse("2.5*x0**2 + sin(x0)", ["x0"])
  line = Equation(node, ("girth (in)",), 0.25, 0.99812345, None, (Constant(2.5, 0.1),))
  shown = "Equation(2.5*`girth (in)`**2 + sin(`girth (in)`), complexity 8, R2 0.998123)"
  assert repr(line) == str(line) == shown and repr([line]) == f"[{shown}]"
  bare = dataclasses.replace(line, r2=None)
  assert repr(bare) == "Equation(2.5*`girth (in)`**2 + sin(`girth (in)`), complexity 8)"
  assert "R2 1 - 1.2e-08)" in repr(dataclasses.replace(line, r2=1 - 1.2e-8))
  assert line != bare and line == dataclasses.replace(bare, r2=line.r2) and hash(line) != hash(bare)
