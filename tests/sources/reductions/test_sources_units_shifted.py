"""Changes with an offset one by one: which of their numbers are simple, and where a relation tells of none."""

import numpy as np
import pytest
from slope_relations import slopes_of

from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import expression, parser
from symformer_jax.sources.reductions import invariances, shifted_changes

CONFIG = DEFAULT.reductions
NAMES = ("x", "y")


@pytest.fixture
def x(rng):
  return rng.uniform(0.5, 3, (80, 2))


def data_of(text, x):
  node = parser.parse(text, NAMES)
  return x, expression.evaluate(node, x), slopes_of(node, x)


def best(found):
  return min(found, key=lambda change: change.error)


@pytest.mark.parametrize(("text", "is_simple"), [
  ("exp(-x**2*(y - 0.3))", True), ("exp(-x**2*(y - 0.31234567))", False), ("exp(-x**1.2345678*(y - 0.3))", False)])
def test_products_with_an_offset(text, is_simple, x):
  data = data_of(text, x)
  change = best(shifted_changes._products(data[0], data[2], 0, 1, CONFIG))
  assert change.is_simple is is_simple and change.error < 1e-6 and change.dropped == 0
  [(kept, (node, derivative))] = change.replaced.items()
  values = expression.evaluate(node, x)  # y is a function of it, by a factor of its own
  np.testing.assert_allclose(np.log(data[1]) / values, np.full(80, -1.0), rtol=1e-5)
  np.testing.assert_allclose(derivative, slopes_of(node, x)[:, kept], rtol=1e-5)


@pytest.mark.parametrize(("text", "is_simple"), [
  ("1/(1 + (x/9.2)**y)", True), ("1/(1 + (x/9.2345678)**y)", False), ("1/(1 + (x/9.2)**(y**1.2345678))", False),
  ("1/(1 + x**y)", True)])
def test_columns_that_are_exponents(text, is_simple, x):
  data = data_of(text, x)
  change = best(shifted_changes._exponents(data[0], data[2], 0, 1, CONFIG))
  assert change.is_simple is is_simple and change.error < 1e-6 and change.dropped == 1
  [(kept, (node, derivative))] = change.replaced.items()
  np.testing.assert_allclose(1 / (1 + expression.evaluate(node, x)), data[1], rtol=1e-5)
  np.testing.assert_allclose(derivative, slopes_of(node, x)[:, kept], rtol=1e-4)


@pytest.mark.parametrize(("text", "is_simple"), [
  ("3*x + exp(-(y - 2*x)**2)", True), ("3.1234567*x + exp(-(y - 2*x)**2)", False),
  ("3*x + exp(-(y - 2.1234567*x)**2)", False)])
def test_terms_beside_functions_of_a_difference(text, is_simple, x):
  data = data_of(text, x)
  change = best(shifted_changes._moved_together(*data, 0, 1, CONFIG))
  assert change.is_simple is is_simple and change.error < 1e-6 and change.dropped == 0
  [(node, derivative)] = change.replaced.values()
  inner = expression.evaluate(node, x)
  rest = data[1] - expression.evaluate(change.summand, x)
  np.testing.assert_allclose(rest, np.exp(-(inner**2)), rtol=1e-4, atol=1e-6)
  assert np.all(derivative == 1)


@pytest.mark.parametrize(("text", "is_simple"), [
  ("5 + x**2*sin(y)", True), ("5.1234567 + x**2*sin(y)", False), ("5 + x**1.2345678*sin(y)", False)])
def test_powers_beside_a_constant(text, is_simple, x):
  data = data_of(text, x)
  [change] = shifted_changes._powers_beside_constant(*data, 0, CONFIG)
  assert change.is_simple is is_simple and change.error < 1e-6 and change.dropped == 0 and not change.replaced
  [(column, power)] = change.divisor
  np.testing.assert_allclose((data[1] - change.constant) / x[:, column] ** power, np.sin(x[:, 1]), rtol=1e-4)


@pytest.mark.parametrize("weights", [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
def test_relations_without_one_of_their_parts_tell_of_no_change(weights, x, monkeypatch):
  monkeypatch.setattr(shifted_changes, "relation", lambda growths, config: np.array(weights))
  data = data_of("exp(-x*(y - 0.3))", x)
  with np.errstate(all="raise"):
    assert not list(shifted_changes._products(data[0], data[2], 0, 1, CONFIG))
    assert not list(shifted_changes._exponents(data[0], data[2], 0, 1, CONFIG))
    assert not list(shifted_changes._powers_beside_constant(*data, 0, CONFIG))
    if not weights[0]:
      assert not list(shifted_changes._lines_through_a_point(*data, 0, CONFIG))
      assert not list(shifted_changes._moved_together(*data, 0, 1, CONFIG))


def test_a_column_that_is_0_in_a_row_has_no_logarithm(x):
  """Neither as a base nor as what shifts another one, though slopes are finite there."""
  shifted = data_of("sqrt(x)*sin(y - 2*log(x))", x)
  powers = data_of("1/(1 + (x/9.2)**y)", x)

  def num_found():
    return (len(list(invariances._shifts(*shifted, [], CONFIG))),
            len(list(shifted_changes._exponents(powers[0], powers[2], 0, 1, CONFIG))))

  assert num_found() == (1, 1)
  x[0, 0], shifted[2][0], powers[2][0] = 0.0, 1.0, 1.0
  assert num_found() == (0, 0)
