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


@pytest.mark.parametrize(("ends", "is_found"), [((21, 30), True), ((20, 30), False), ((5, 20), False), ((5, 19), True)])
def test_lines_go_through_a_point_beyond_all_rows(ends, is_found, x):
  x[:, 0] = np.linspace(*ends, 80)
  data = data_of("20 + (x - 20)*exp(-y)", x)
  found = list(shifted_changes._lines_through_a_point(*data, 0, CONFIG))
  assert [(change.shift, change.constant, change.is_simple) for change in found] == [(20.0, 20.0, True)] * is_found


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


@pytest.mark.parametrize(("power", "low", "is_simple"), [(2.0, 1.2, True), (-0.5, 0.05, True), (1.2345678, 1.2, False)])
def test_products_with_logarithms(power, low, is_simple, rng):
  """Of columns above 1, or from 0 to 1, times a power of one above 0."""
  x = np.column_stack([rng.uniform(0.5, 3, 80), rng.uniform(low, low + 0.8, 80)])
  m = x[:, 0] ** power * np.log(x[:, 1])
  slopes = np.cos(m)[:, None] * np.column_stack([power * m / x[:, 0], x[:, 0] ** power / x[:, 1]])
  found = list(invariances._products_with_logarithms(x, slopes, CONFIG))
  [change] = [each for each in found if each.dropped == 0]
  [(column, (node, derivative))] = change.replaced.items()
  np.testing.assert_allclose(expression.evaluate(node, x), m, rtol=1e-6)
  np.testing.assert_allclose(derivative, x[:, 0] ** power / x[:, 1], rtol=1e-6)
  assert column == 1 and change.error < 1e-6 and change.is_simple is is_simple


@pytest.mark.parametrize(("column", "value"), [(0, -1.0), (0, 0.0), (1, 1.0), (1, 0.5), (1, -1.0)])
def test_logarithms_of_one_sign_and_powers_of_what_is_above_0(column, value, rng):
  x = rng.uniform(1.2, 3, (80, 2))
  m = x[:, 0] ** 2 * np.log(x[:, 1])
  slopes = np.column_stack([2 * m / x[:, 0], x[:, 0] ** 2 / x[:, 1]])
  x[3, column] = value
  with np.errstate(all="ignore"):
    assert not [each for each in invariances._products_with_logarithms(x, slopes, CONFIG) if each.dropped == 0]


@pytest.mark.parametrize(("text", "shift", "power", "is_simple"), [
  ("sqrt(x)*sin(y - 2*log(x))", 2.0, 0.5, True), ("sqrt(x)*sin(y - 2.1234567*log(x))", 2.1234567, 0.5, False),
  ("x**1.2345678*sin(y + 3*log(x))", -3.0, 1.2345678, False)])
def test_a_column_that_shifts_another_and_is_a_factor(text, shift, power, is_simple, x):
  data = data_of(text, x)
  [change] = invariances._shifts(*data, [], CONFIG)
  assert change.dropped == 0 and change.error < 1e-6 and change.is_simple is is_simple
  assert change.divisor == ((0, pytest.approx(power, rel=1e-6)),)
  [(column, (node, derivative))] = change.replaced.items()
  np.testing.assert_allclose(expression.evaluate(node, x), x[:, 1] - shift * np.log(x[:, 0]), rtol=1e-6)
  assert column == 1 and np.all(derivative == 1)
  for known, num in ((frozenset((0, 2)), 0), (frozenset((1,)), 0), (frozenset((0, 1, 2)), 0), (frozenset((0, 3)), 1)):
    assert len(list(invariances._shifts(*data, [known], CONFIG))) == num
