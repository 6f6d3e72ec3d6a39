"""Loosened formulas: what counts as a parameter, and that nothing else changes."""

import numpy as np
import pytest

from symformer_jax.language import expression, loosened, parser, programs

FITTED, WHOLE, PHASE = loosened.FITTED, loosened.WHOLE, loosened.PHASE


@pytest.mark.parametrize(("text", "expected"), [
  ("2.5*x", []), ("2*x", [2]), ("-x", []), ("x - z", []), ("1 - x", [1]), ("x**4 + 3", [3]), ("2**x", [2]),
  ("x**(2*z)", [2]), ("4*exp(-0.6*x) + 1", [4, 1]), ("2.5*x/(1 + 0.5*x)", [1]), ("0", [0]), ("1", [1]), ("7*x", [])])
def test_whole_numbers_that_are_no_exponent_and_no_sign_may_be_parameters(text, expected):
  node = parser.parse(text, ["x", "z"])
  assert sorted(loosened.whole_numbers(node)) == sorted(expected)
  numbers = [part for part in expression.walk(node) if part.is_number]
  kinds = loosened.kinds_of_numbers(node)
  assert [part.value for part, kind in zip(numbers, kinds, strict=True) if kind == WHOLE] == loosened.whole_numbers(
    node)
  assert [part.value for part, kind in zip(numbers, kinds, strict=True) if kind == FITTED] == programs.fitted_values(
    node)


@pytest.mark.parametrize(("text", "num"), [
  ("sin(6.2*x)", 1), ("sin(6.2*x + 0.3)", 0), ("cos(x + 1)", 0), ("sin(x)*cos(z)", 2), ("tan(x)/tan(2.5)", 1),
  ("exp(x)", 0), ("sin(x + sqrt(2.5))", 0), ("sin(sin(x) + z)", 2)])
def test_waves_without_a_constant_summand_have_a_phase(text, num):
  assert loosened.loosen(parser.parse(text, ["x", "z"]))[1].count(PHASE) == num


@pytest.mark.parametrize("text", ["3*sin(6.2*x) + 10", "2*exp(-0.6*x)*cos(x) - 4", "x**2.5/(1 + x)", "0", "-3 + x**4"])
def test_a_loosened_tree_has_the_same_values_and_its_parameters_are_constants(text, rng):
  node, x = parser.parse(text, ["x"]), rng.uniform(0.1, 3, (20, 1))
  tree, kinds = loosened.loosen(node)
  np.testing.assert_allclose(expression.evaluate(tree, x), expression.evaluate(node, x), rtol=1e-13, atol=1e-300)
  values = programs.fitted_values(tree)
  assert len(values) == len(kinds)
  of_kind = {kind: [value for value, other in zip(values, kinds, strict=True) if other == kind] for kind in kinds}
  assert of_kind.get(FITTED, []) == programs.fitted_values(node)
  assert np.round(of_kind.get(WHOLE, [])).tolist() == loosened.whole_numbers(node)
  assert all(0 < value < 1e-300 for value in of_kind.get(PHASE, []))
