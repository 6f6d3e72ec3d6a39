"""Changes of the columns with an offset, a base or a constant: found from true slopes, and from no others."""

import numpy as np
import pytest
from slope_relations import SHOWN, slopes_of

from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import expression, parser
from symformer_jax.sources.reductions import reduced_tables, shifted_changes

CONFIG = DEFAULT.reductions
NAMES = ("x", "y", "z", "w")


def changes_of(text, x, minimal=(), **config):
  node = parser.parse(text, NAMES[: x.shape[1]])
  y = expression.evaluate(node, x)
  some = CONFIG.__class__(**config) if config else CONFIG
  return list(shifted_changes.find_shifted_changes(x, y, slopes_of(node, x), list(minimal), some)), y


def shown(change):
  return {SHOWN(node) for node, _ in change.replaced.values()}


def has_powers(found):
  """Whether a column is an exponent."""
  return any(part.token == "pow" and not part.args[1].is_number for change in found
             for node, _ in change.replaced.values() for part in expression.walk(node))


@pytest.fixture
def x(rng):
  return rng.uniform(0.5, 3, (80, 3))


@pytest.mark.parametrize(("text", "dropped", "column"), [
  ("exp(-x*(y - 0.3))", 0, "(y - 0.3)*x"), ("sin((y + 273.15)/x)", 0, "(y + 273.15)/x"),
  ("log(y**2*(x - 12.5)**2 + 1)", 1, "(x - 12.5)*y"), ("arctan(sqrt(x)*(y + 2))", 0, "(y + 2)*sqrt(x)"),
  ("1/(1 + (x/9.2)**y)", 1, "(0.10869565217391305*x)**y"), ("cos(y*log(x))", 1, "x**y"),
  ("1/(3 + x**(1/y))", 1, "x**(1/y)"), ("exp(-(2*x)**(y**2))", 1, "(2*x)**y**2")])
def test_one_column_takes_the_place_of_two(text, dropped, column, x):
  found, _ = changes_of(text, x[:, :2])
  change = min((c for c in found if c.dropped == dropped), key=lambda c: c.error)
  [replaced] = change.replaced.values()
  values = expression.evaluate(parser.parse(column, NAMES), x)
  np.testing.assert_allclose(expression.evaluate(replaced[0], x), values, rtol=1e-6)
  assert change.error < 1e-6 and change.is_simple and not change.divisor and change.summand is None
  [kept] = change.replaced
  np.testing.assert_allclose(replaced[1], slopes_of(replaced[0], x)[:, kept], rtol=1e-5)


@pytest.mark.parametrize(("text", "constant", "power"), [
  ("5 + x*sin(y)", 5.0, 1.0), ("log(y)/x**2 - 0.25", -0.25, -2.0), ("sqrt(x)*(y**3 + y) + 1.5", 1.5, 0.5)])
def test_a_power_of_a_column_is_a_factor_beside_a_constant(text, constant, power, x):
  found, y = changes_of(text, x[:, :2])
  [change] = [c for c in found if c.divisor and not c.shift]
  assert change.divisor == ((0, power),) and change.constant == constant and change.is_simple and change.error < 1e-6
  table, slopes = change.apply(reduced_tables.whole(x[:, :2], y), np.ones((80, 2)))
  np.testing.assert_allclose(table.y, (y - constant) / x[:, 0] ** power)
  np.testing.assert_allclose(slopes[:, 0], x[:, 0] ** -power)
  back = expression.evaluate(table.restore(expression.variable(0)), x[:, :2])
  np.testing.assert_allclose(back, x[:, 1] * x[:, 0] ** power + constant)


@pytest.mark.parametrize(("text", "shift", "constant"), [
  ("20 + (x - 20)*exp(-y)", 20.0, 20.0), ("(x + 0.75)*sin(y) - 3", -0.75, -3.0)])
def test_lines_through_a_point(text, shift, constant, x):
  found, y = changes_of(text, x[:, :2])
  [change] = [c for c in found if c.shift]
  assert (change.dropped, change.shift, change.constant) == (0, shift, constant)
  assert change.is_simple and change.error < 1e-6
  table, slopes = change.apply(reduced_tables.whole(x[:, :2], y), np.ones((80, 2)))
  np.testing.assert_allclose(table.y, (y - constant) / (x[:, 0] - shift))
  np.testing.assert_allclose(slopes[:, 0], 1 / (x[:, 0] - shift))
  back = expression.evaluate(table.restore(expression.variable(0)), x[:, :2])
  np.testing.assert_allclose(back, x[:, 1] * (x[:, 0] - shift) + constant)


@pytest.mark.parametrize("text", ["20 + (x - 20.12345678)*exp(-y)", "20.12345678 + (x - 20)*exp(-y)"])
def test_points_of_many_digits_are_known_to_some(text, x):
  [change] = [c for c in changes_of(text, x[:, :2])[0] if c.shift]
  assert not change.is_simple and sorted((change.shift, change.constant)) == pytest.approx([20, 20.12345678], rel=1e-6)


def test_points_among_the_rows_are_none(x):
  assert not [c for c in changes_of("5 + (x - 1.5)*sin(y)", x[:, :2])[0] if c.shift]


@pytest.mark.parametrize(("text", "kept", "summand", "rest"), [
  ("x + exp(-(y - x)**2)", "y - x", "x", "exp(-x**2)"), ("sin(x - 0.5*y) - 2*x", "y - 2*x", "-2*x", "-sin(0.5*x)"),
  ("arctan(x + y) - 3*x", "x + y", "-3*x", "arctan(x)")])
def test_a_term_beside_a_function_of_a_difference(text, kept, summand, rest, x):
  found, y = changes_of(text, x[:, :2])
  change = min((c for c in found if c.dropped == 0 and c.summand is not None), key=lambda c: c.error)
  assert change.error < 1e-6 and change.is_simple
  assert SHOWN(change.summand) == summand and shown(change) == {kept}
  table, _ = change.apply(reduced_tables.whole(x[:, :2], y), np.ones((80, 2)))
  np.testing.assert_allclose(table.y, expression.evaluate(parser.parse(rest, NAMES), table.x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("text", [
  "sin(x*y)", "exp(x)*y", "x*y*z", "sin(x) + cos(2*y)*z", "(x - y)**2", "x**2*sin(y)", "log(x/y)", "x*exp(y) + z"])
def test_what_needs_no_offset_has_none(text, x):
  """Those that `invariances` knows, and functions that have no such change."""
  found, _ = changes_of(text, x)
  assert not [c for c in found if c.constant or c.summand is not None]
  assert not [c for c in found if any("+" in {part.token for part in expression.walk(node)}
                                      for node, _ in c.replaced.values())]


def test_columns_of_relations_that_are_known_are_not_asked(x):
  assert changes_of("5 + x*sin(y)", x[:, :2])[0]
  assert not changes_of("5 + x*sin(y)", x[:, :2], [frozenset((0, 2)), frozenset((0, 1))])[0]
  assert not changes_of("exp(-x*(y - 0.3))", x[:, :2], [frozenset((0, 1))])[0]


def test_powers_are_no_larger_than_the_config_says(x):
  found = [changes_of("1/(1 + x**y)", x[:, :2], largest_exponent=most)[0] for most in (40.0, 1.0)]
  assert list(map(has_powers, found)) == [True, False]


def test_the_size_of_a_power_is_that_of_the_base_in_its_unit(x):
  large = x[:, :2] * [1000, 3]
  assert has_powers(changes_of("1/(1 + (x/1000)**y)", large)[0])


def test_columns_below_0_are_no_bases(x):
  below = np.column_stack([-x[:, 0], x[:, 1]])
  assert [has_powers(changes_of("1/(1 + abs(x)**y)", each)[0]) for each in (x[:, :2], below)] == [True, False]


@pytest.mark.parametrize("scale", [1e-12, 1e9])
@pytest.mark.parametrize("text", [
  "exp(-x*(y - 0.3))", "1/(1 + (x/9.2)**y)", "5 + x*sin(y)", "x + exp(-(y - x)**2)", "20 + (x - 20)*exp(-y)"])
def test_the_unit_of_y_does_not_matter(text, scale, x):
  def found(k):
    node = parser.parse(text, NAMES[:2])
    slopes = k * slopes_of(node, x[:, :2])
    y = k * expression.evaluate(node, x)
    return [c for c in shifted_changes.find_shifted_changes(x[:, :2], y, slopes, [], CONFIG) if c.error < 1e-6]

  as_is, scaled = found(1.0), found(scale)
  assert as_is and [(c.dropped, tuple(c.replaced)) for c in as_is] == [(c.dropped, tuple(c.replaced)) for c in scaled]
  for one, other in zip(as_is, scaled, strict=True):
    assert other.constant == pytest.approx(scale * one.constant) and other.shift == pytest.approx(one.shift)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e5])
def test_numbers_of_few_digits_are_exact_whatever_their_unit(unit, x):
  def constant_of(number):
    found, _ = changes_of(f"{number!r} + {unit!r}*x*sin(y)", x[:, :2])
    return next((c.constant, c.is_simple) for c in found if c.constant and not c.shift)

  assert constant_of(1.25 * unit) == (pytest.approx(1.25 * unit, rel=1e-15), True)
  value, is_simple = constant_of(1.2345678912 * unit)
  assert not is_simple and value == pytest.approx(1.2345678912 * unit, rel=1e-6)


def test_rough_slopes_tell_nothing(rng, x):
  assert not list(shifted_changes.find_shifted_changes(x, rng.normal(size=80), rng.normal(size=(80, 3)), [], CONFIG))
