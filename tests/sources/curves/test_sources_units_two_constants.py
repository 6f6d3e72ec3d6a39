"""Parts of functions with two inner constants: powers of y, constants beside them, and how they are written."""

import dataclasses

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT, TwoConstantsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.expression import variable
from symformer_jax.language.rules import Restrictions, Rule
from symformer_jax.sources.curves import two_constants
from symformer_jax.sources.curves.inner_functions import FAMILIES, Functions
from symformer_jax.sources.curves.two_constants import LOGARITHM, Lift

CONFIG, RULE = DEFAULT.two_constants, Rule(1)


def rows_of(x, y, weights=None):
  return Rows(np.asarray(x, float)[:, None], np.asarray(y, float), np.ones(len(y)) if weights is None else weights)


def functions_of(rows, *names):
  return Functions(rows, 0, RULE, {name: FAMILIES[name] for name in names}, CONFIG)


@pytest.mark.parametrize("lift", [Lift(0.0, 1.0), Lift(-2.5, 1.0), Lift(9.5, -1.0)])
def test_what_is_taken_from_y_comes_back(lift):
  y = np.linspace(1, 9, 7)
  lifted = lift.of(rows_of(y, y))
  assert np.min(lifted.y) > 0
  back = lift.undo(variable(0))
  np.testing.assert_allclose(expression.evaluate(back, lifted.y[:, None]), y)
  assert (back == variable(0)) is (lift == Lift(0.0, 1.0))


@pytest.mark.parametrize("exponent", [LOGARITHM, -1.5, 0.4, 2.0])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_errors_of_a_power_count_as_those_of_y(exponent, size, rng):
  """By the square of dy/dz, here a difference quotient; the power is 1 in the middle, whatever the unit."""
  y, weights = size * rng.uniform(1, 4, 31), rng.uniform(0.2, 2, 31)
  z, counts = two_constants._raised(rows_of(y, y, weights), exponent)
  back = (lambda z: np.exp(z) * np.median(y)) if exponent == LOGARITHM else (
    lambda z: z ** (1 / exponent) * np.median(y))
  np.testing.assert_allclose(back(z), y)
  slope = (back(z * (1 + 1e-6) + 1e-6) - back(z * (1 - 1e-6) - 1e-6)) / (2e-6 * (1 + z))
  np.testing.assert_allclose(counts, weights * slope**2, rtol=1e-6)


@pytest.mark.parametrize("exponent", [LOGARITHM, -0.5, 0.5, 2.0])
@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_a_power_of_a_sum_is_written_as_it_is_met(exponent, size):
  x = np.linspace(0.2, 3, 30)
  functions = functions_of(rows_of(x, x), "exponentials")
  place = len(functions.nodes) // 3
  inner = 0.7 + 0.4 * expression.evaluate(functions.nodes[place], x[:, None]) / functions.sizes[place]
  y = size * (np.exp(inner) if exponent == LOGARITHM else inner ** (1 / exponent))
  node = two_constants._power_of_sum(functions, place, rows_of(x, y), exponent)
  np.testing.assert_allclose(expression.evaluate(node, x[:, None]), y, rtol=1e-9)


def test_the_larger_part_of_a_sum_has_no_factor():
  """The unit of the sum is that of its larger part; what is not finite is not written."""
  node = two_constants._written(variable(0), 6.0, 2.0, 6.0, exponent=2.0, size=5.0)
  x = np.linspace(1, 2, 5)[:, None]
  np.testing.assert_allclose(expression.evaluate(node, x), 5 * (6 * x[:, 0] + 2) ** 2)
  assert 6.0 not in [part.value for part in expression.walk(node) if part.is_number]
  for given in ((np.inf, 2.0, 6.0, 2.0), (6.0, np.nan, 6.0, 2.0), (6.0, 2.0, 1e200, 2.0)):
    factor, constant, unit, exponent = given
    assert two_constants._written(variable(0), factor, constant, unit, exponent=exponent, size=5.0) is None


def test_powers_are_of_what_is_above_0(monkeypatch):
  monkeypatch.setattr(two_constants, "_powers", lambda functions, lifts, powers, num: iter([(lifts, powers, num)]))
  monkeypatch.setattr(two_constants, "_functions", lambda *given: None)
  for least, is_asked in ((1e-9, True), (0.0, False), (-1.0, False)):
    rows = rows_of([1, 2, 3], [least, 2, 5])
    found = list(two_constants.powers_of_sums(rows, 0, RULE, CONFIG))
    assert found == [([Lift(0.0, 1.0)], two_constants._exponents(RULE, CONFIG), CONFIG.num_alike)] * is_asked


def test_constants_beside_powers_lie_beyond_y_on_both_sides(monkeypatch):
  monkeypatch.setattr(two_constants, "_powers", lambda functions, lifts, powers, num: iter([(lifts, powers, num)]))
  monkeypatch.setattr(two_constants, "_functions", lambda *given: None)
  config = TwoConstantsConfig(away=(0.01, 1.0, 3), powers=(0.5, 2.0, 3))
  rows = rows_of([1, 2, 3], [4, -2, 0])  # of a range of 6
  powers, logarithm = two_constants.powers_beside_constants(rows, 0, RULE, config)
  for (lifts, exponents, num), expected in ((powers, [0.5, 1, 2, -0.5, -1, -2]), (logarithm, [LOGARITHM])):
    np.testing.assert_allclose(lifts, [(-2 - 0.06, 1), (-2 - 0.6, 1), (-2 - 6, 1), (4.06, -1), (4.6, -1), (10, -1)])
    assert num == 1
    np.testing.assert_allclose(np.sort(exponents), np.sort(expected))
  assert not list(two_constants.powers_beside_constants(rows_of([1, 2], [3, 3]), 0, RULE, config))
  for forbidden, powers in (("exp", [6, 0]), ("**", [0, 1])):
    rule = Restrictions(forbidden=(forbidden,)).for_columns(["x"])
    found = two_constants.powers_beside_constants(rows, 0, rule, config)
    assert [len(exponents) for _, exponents, _ in found] == powers


def test_of_each_family_the_nearest_come_in_turn():
  """Of powers of y beside some constants, those that leave least."""
  x = np.linspace(0.3, 3, 40)
  rows = rows_of(x, (0.7 + 1.3 * np.exp(-0.9 * x)) ** 2 + 0.2)
  functions = functions_of(rows, "exponentials", "powers")
  lifts = [Lift(0.0, 1.0), Lift(0.19, 1.0)]
  nodes = list(two_constants._powers(functions, lifts, [0.5, -1.0], 2))
  assert len(nodes) == 8

  def family(node):
    return "exponentials" if any(part.token == "exp" for part in expression.walk(node)) else "powers"

  assert [family(node) for node in nodes] == ["exponentials", "powers"] * 4
  left = [np.mean((expression.evaluate(node, x[:, None]) - rows.y) ** 2) for node in nodes]
  assert left[0] < 2 * min(left) and left[0] < 1e-4 < np.var(rows.y)
  assert not list(two_constants._powers(functions, lifts, [], 2))


def test_functions_of_y_are_asked_that_are_defined_and_allowed(monkeypatch):
  monkeypatch.setattr(two_constants, "_sums_for", lambda link, functions, pairs, config: iter([(link.tokens, pairs)]))
  config = dataclasses.replace(CONFIG, links=("y", "exp", "inv"), families=("exponentials", "powers"))
  x = np.linspace(0.3, 3, 40)
  for y, forbidden, links in ((x, (), [(), ("exp",), ("inv",)]), (x - 1, (), [(), ("inv",)]),
                              (x, ("exp",), [(), ("inv",)])):
    rule = Restrictions(forbidden=forbidden).for_columns(["x"])
    found = list(two_constants.sums_of_two(rows_of(x, y), 0, rule, config))
    assert [tokens for tokens, _ in found] == links
    num = 2 if not forbidden else 1
    assert all(len(pairs) == num * (num + 1) // 2 for _, pairs in found)
