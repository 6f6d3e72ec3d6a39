"""Polynomials in few nodes: the same values always, and the form that a person gives where coefficients tell."""

import numpy as np
import pytest
import sympy

from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import expression, parser, printing
from symformer_jax.sources.fractions import factoring, polynomials

CONFIG = DEFAULT.rationals.factoring
X, Y, Z = sympy.symbols("x y z")


def expanded(text):
  """Coefficients by exponents, as floats."""
  poly = sympy.Poly(sympy.expand(sympy.sympify(text)), X, Y, Z)
  return {tuple(map(float, powers)): float(value) for powers, value in poly.terms()}


def formula(text):
  return parser.parse(text, ("x", "y", "z"))


@pytest.mark.parametrize(("text", "written"), [
  ("(x - y)*(x + 2*y)*3", "3*(x - y)*(x + 2*y)"),
  ("x**2*(y - 1)**3", "(y - 1)**3*x**2"),
  ("x**2*y**2 + (x*z + 1)**2", "(x*z + 1)**2 + x**2*y**2"),
  ("x*(1 + x)**3 + y*(2 + x)**3", "(x + 2)**3*y + (x + 1)**3*x"),
  ("x**2 + y**2 + z**2", "x**2 + y**2 + z**2"),
  ("7*x", "7*x"),
])
def test_what_a_person_writes(text, written):
  node = factoring.to_node(expanded(text))
  x = np.random.default_rng(0).uniform(-2, 2, (20, 3))
  wanted = expression.evaluate(formula(text), x)
  np.testing.assert_allclose(expression.evaluate(node, x), wanted, rtol=1e-11, atol=1e-11)
  assert expression.complexity(node) <= expression.complexity(formula(written)) + 2, printing.to_text(node)


@pytest.mark.parametrize("seed", range(20))
def test_random_products_keep_their_values(seed):
  rng = np.random.default_rng(seed)
  factors = []
  for _ in range(rng.integers(1, 4)):
    powers = rng.integers(0, 3, (rng.integers(1, 4), 3))
    factors.append(sum(int(rng.integers(-4, 5)) * X ** int(p) * Y ** int(q) * Z ** int(r) for p, q, r in powers) + 1)
  scale = float(rng.uniform(0.1, 9))
  product = expanded(sympy.prod(factors))
  product = {powers: scale * value for powers, value in product.items()}
  x = rng.uniform(0.5, 2, (30, 3))
  found = factoring.factors(product, CONFIG)
  assert found is not None
  number, parts = found
  values = number * np.prod([polynomials.values({powers: float(c) for powers, c in each.items()}, x) ** count
                             for each, count in parts], axis=0)
  oracle = scale * np.prod([np.broadcast_to(sympy.lambdify((X, Y, Z), each)(*x.T), 30) for each in factors], axis=0)
  np.testing.assert_allclose(values, oracle, rtol=1e-9, atol=1e-9 * np.abs(oracle).max())
  np.testing.assert_allclose(expression.evaluate(factoring.to_node(product), x), oracle, rtol=1e-9,
                             atol=1e-9 * np.abs(oracle).max())
  assert expression.complexity(factoring.to_node(product)) <= expression.complexity(polynomials.to_node(product))


def test_coefficients_that_are_no_ratios_of_short_numbers_are_left():
  assert factoring.factors({(1.0, 0.0): 1.0, (0.0, 1.0): np.pi, (0.0, 0.0): np.e}, CONFIG) is None
  assert factoring.quotient({(1.0,): 1.0, (0.0,): np.pi, (2.0,): np.e}, {(0.0,): 1.0}, CONFIG) is None
  unfactored = {(2.0, 0.0): 1.0, (1.0, 0.0): np.pi, (0.0, 1.0): np.e}
  assert factoring.to_node(unfactored) == polynomials.to_node(unfactored)
  # A common factor is none of their business, nor the last digits.
  number, [(factor, count)] = factoring.factors({(1.0, 0.0): np.pi, (0.0, 1.0): 0.25 * np.pi * (1 + 1e-10)}, CONFIG)
  assert (factor, count) == ({(1, 0): 4, (0, 1): 1}, 1) and number == pytest.approx(np.pi / 4)


@pytest.mark.parametrize(("above", "below", "written"), [
  ("(1 - y**2)**2", "(1 + y**2 - 2*x*y)**3", "(1 - y**2)/(1 + y**2 - 2*x*y)**1.5"),
  ("4*x**3", "y", "2*x*sqrt(x/y)"),
  ("(x + 1)**2*(y + 1)", "(x + 2)**3*(3 - y)", "(x + 1)*sqrt((y + 1)/((x + 2)*(3 - y)))/(x + 2)"),
  ("x**2*z*y", "9 + 0*x", "x*sqrt(y*z)/3"),
  ("-x*y", "-2 - z", "sqrt(x*y/(z + 2))"),
])
def test_the_root_of_a_quotient(above, below, written):
  node = factoring.root(expanded(above), expanded(below), CONFIG)
  x = np.random.default_rng(1).uniform(0.1, 0.9, (40, 3))
  wanted = formula(written)
  np.testing.assert_allclose(np.abs(expression.evaluate(node, x)), np.abs(expression.evaluate(wanted, x)), rtol=1e-9)
  assert expression.complexity(node) <= expression.complexity(wanted) + 4, printing.to_text(node)
