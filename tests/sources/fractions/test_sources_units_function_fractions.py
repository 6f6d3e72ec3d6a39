"""Parts of fractions in one function one by one: how they are written, what is tried, and where shares are least."""

import dataclasses
import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT, FunctionFractionsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression, programs
from symformer_jax.language.expression import Node, number, variable
from symformer_jax.language.rules import Rule
from symformer_jax.sources import monomials
from symformer_jax.sources.fractions import function_fractions
from symformer_jax.sources.fractions.function_fractions import FAMILIES, Basis, Place

OWN = DEFAULT.function_fractions
X = np.random.default_rng(0).uniform(0.5, 2, (40, 2))
ARGUMENT = variable(0)


def place_of(name, constant=0.7, basis=None):
  return Place(1e-30, 1.0, basis, FAMILIES[name], ARGUMENT, constant)


def write(name):
  place = place_of(name)
  return lambda monomial, k: function_fractions._term(place, 0.0, monomial, k)


def value(terms, name):
  """A side of a fraction by the definition, at the rows."""
  m = X[:, 0]
  functions = {"exponentials": lambda k: np.exp(0.7 * k * m), "powers": lambda k: m ** (0.7 * k),
               "logarithms": lambda k: np.log(m + 0.7) ** k,
               "waves": lambda k: 1.0 if not k else (np.cos if k % 2 else np.sin)((k + 1) // 2 * 0.7 * m)}[name]
  return sum(c * np.prod([X[:, column] ** p for column, p in monomial], axis=0) * functions(k)
             for c, monomial, k in terms)


ONE, Y, XY = (), ((1, 1.0),), ((0, 1.0), (1, 1.0))
SIDES = [
  ([(2.0, ONE, 0), (3.0, Y, 1)], [(4.0, Y, 1)]), ([(2.0, ONE, 0), (3.0, Y, 2), (1.5, XY, 1)], [(4.0, ONE, 2)]),
  ([(2.0, ONE, 0), (3.0, Y, 1)], [(4.0, ONE, 0), (-0.5, ONE, 1)]), ([(2.0, Y, 0)], [(4.0, ONE, 0), (2.5, Y, 1)]),
  ([(2.0, ONE, 1), (3.0, ONE, 2)], [(4.0, ONE, 2), (7.0, Y, 1)]),
  ([(2.0, ONE, 0), (6.0, ONE, 1), (3.0, XY, 0)], [(1.0, ONE, 0), (3.0, ONE, 1)]),
  ([(2.0, ONE, 1), (1.0, Y, 0)], [(5.0, ONE, 1)]), ([(2.0, Y, 1)], [(5.0, ONE, 1)]),
  ([(1.0, ONE, 0), (2.0, Y, 0)], [(5.0, ONE, 0)])]


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize(("top", "bottom"), SIDES)
def test_all_forms_of_a_fraction_have_its_values(name, top, bottom):
  expected = value(top, name) / value(bottom, name)
  forms = function_fractions._forms(write(name), top, bottom, has_powers=name != "waves")
  assert forms and len(set(forms)) == len(forms)
  for form in forms:
    np.testing.assert_allclose(expression.evaluate(form, X), expected, rtol=1e-9)
  costs = [(len(programs.fitted_values(form)), expression.complexity(form)) for form in forms]
  assert costs == sorted(costs)


@pytest.mark.parametrize(("top", "bottom"), SIDES[2:6])
def test_what_is_divided_is_a_multiple_and_a_rest(top, bottom):
  whole, line = value(top, "exponentials"), value(bottom, "exponentials")
  for multiple, rest in function_fractions._divided(top, bottom):
    found = value(multiple, "exponentials") * line + value(rest, "exponentials")
    np.testing.assert_allclose(found, whole, rtol=1e-9)
    assert all(abs(c) > 1e-9 for c, *_ in rest)


def test_ways_to_divide():
  """By a term that both have if the rest is shorter; by all beside the function where it stands once below."""
  def ways(top, bottom):
    return [(sorted(multiple), sorted(rest)) for multiple, rest in function_fractions._divided(top, bottom)]

  line = [(1.0, ONE, 0), (3.0, ONE, 1)]
  assert ways([(2.0, ONE, 0), (6.0, ONE, 1), (3.0, XY, 0)], line) == [
    ([(2.0, ONE, 0)], [(3.0, XY, 0)]), ([(2.0, ONE, 0)], [(3.0, XY, 0)]), ([(2.0, ONE, 0)], [(3.0, XY, 0)])]
  assert ways([(2.0, ONE, 0), (3.0, XY, 0)], line) == []  # as long as before, and no function above
  assert ways([(2.0, Y, 0), (6.0, Y, 1)], line) == [([(2.0, Y, 0)], [])]
  assert ways([(2.0, Y, 2)], line) == [] == ways([(2.0, Y, 1)], [(1.0, Y, 0), (3.0, ONE, 1)])


@pytest.mark.parametrize(("share", "is_kept"), [(1.1e-6, True), (0.9e-6, False), (-1.1e-6, True)])
def test_coefficients_of_a_millionth_of_the_largest_are_rounding(share, is_kept):
  found = function_fractions._kept({(ONE, 0): -50.0, (Y, 1): 50.0 * share})
  assert [each for _, *each in found] == [[ONE, 0]] + [[Y, 1]] * is_kept
  assert function_fractions._kept({}) == []


def test_a_fraction_may_be_divided_by_a_power_of_its_function():
  """(2*F + 3*F**2)/(4*F**2 + 7*F*y) in fewer nodes: (2 + 3*F)/(4*F + 7*y)."""
  top, bottom = SIDES[4]
  form = function_fractions._fraction(write("exponentials"), top, bottom, True)
  assert sum(part.token == "exp" for part in expression.walk(form)) == 2
  lone = function_fractions._fraction(write("exponentials"), [(1.0, ONE, 2)], [(1.0, ONE, 0), (1.0, ONE, 2)], True)
  assert sum(part.token == "exp" for part in expression.walk(lone)) == 1


def test_a_monomial_over_another():
  assert function_fractions._over(((0, 2.0), (2, 1.0)), ((1, 0.5), (2, 1.0))) == ((0, 2.0), (1, -0.5))
  assert function_fractions._over((), ((1, 0.5),)) == ((1, -0.5),)
  assert function_fractions._over(((1, 0.5),), ()) == ((1, 0.5),)


# --- what is tried ---------------------------------------------------------------------------------------------------


def test_arguments_are_of_one_column_then_of_two_then_sums():
  config = FunctionFractionsConfig(
    arguments=(("exponentials", ((1, -1), (1,))), ("powers", ((0.5,),))), of_sums=("exponentials", "waves"))
  found = [(name, float(expression.evaluate(node, np.array([[3.0, 5.0]])).item()))
           for name, node in function_fractions._arguments((0, 1), config)]
  sums = [8.0, 3 * 6, 5 * 4, -2.0, 3 * -4, 5 * -2]
  assert {name for name, _ in found[:4]} == {"exponentials"}
  assert sorted(each for _, each in found[:4]) == pytest.approx([0.2, 1 / 3, 3, 5])
  assert [name for name, _ in found[4:7]] == ["powers", "powers", "exponentials"]
  assert [each for _, each in found[4:7]] == pytest.approx([3**0.5, 5**0.5, 15.0])
  assert found[7:] == [("exponentials", each) for each in sums] + [("waves", each) for each in sums]


def test_constants_of_families_follow_the_argument():
  argument = np.linspace(2, 10, 101)
  config = FunctionFractionsConfig(
    offsets=(0.5, 2.0), num_constants=3, exponents=(0.25, 4.0), least_ratio=5.0, step=0.5, num_frequencies=3,
    most_rows=(0.25, 0.75))
  np.testing.assert_allclose(FAMILIES["logarithms"].constants(argument, config), [4 - 2, 8 - 2, 16 - 2])
  np.testing.assert_allclose(FAMILIES["waves"].constants(argument, config), np.array([0.5, 1.0, 1.5]) / 4)
  np.testing.assert_allclose(FAMILIES["powers"].constants(argument, config), [0.25, 1, 4])
  assert FAMILIES["powers"].constants(argument + 1e-9, config) is None
  assert FAMILIES["waves"].constants(np.where(argument > 9, argument, 1.0), config) is None


@pytest.mark.parametrize(("turns", "sign"), itertools.product((49.0, 51.0), (1.0, -1.0)))
def test_exponentials_that_grow_much_are_written_from_where_they_are_largest(turns, sign):
  argument = np.linspace(-1, 2, 7)
  found = FAMILIES["exponentials"].origin(sign * turns / 2, argument)
  assert found == ((2.0 if sign > 0 else -1.0) if turns > 50 else 0.0)
  assert all(FAMILIES[name].origin(99.0, argument) == 0 for name in FAMILIES if name != "exponentials")


def test_terms_are_monomials_times_functions_above_and_below():
  basis = Basis((ONE, Y), (ONE,), 2)
  assert basis.terms(FAMILIES["powers"]) == (
    [(ONE, 0), (ONE, 1), (ONE, 2), (Y, 0), (Y, 1), (Y, 2)], [(ONE, 0), (ONE, 1), (ONE, 2)])
  assert [len(side) for side in basis.terms(FAMILIES["waves"])] == [10, 5]


def test_shares_are_least_beside_their_neighbours_where_others_are_above_rounding():
  shares = np.array([1e-9, 5, 3, 4, 4, 2, 2, 6, 7, 1e-9], float)
  assert [k for k, _ in function_fractions.minima(shares, 2, 1e-12)] == [2, 5, 6]
  padded = np.pad(shares, 2, mode="reflect")
  for k, around in function_fractions.minima(shares, 2, 1e-12):
    assert around == np.median(padded[k : k + 5])
  assert [k for k, _ in function_fractions.minima(shares, 2, 4.0)] == []
  assert [k for k, _ in function_fractions.minima(shares, 2, 3.9)] == [2, 5, 6]


def test_a_place_leaps_by_what_is_around():
  assert Place(2.0, 8.0, None, FAMILIES["powers"], ARGUMENT, 1.0).leap == 0.25


# --- equations -------------------------------------------------------------------------------------------------------


def test_rows_count_less_the_farther_out_y_is(rng):
  y, weights = rng.normal(size=31) * 3 + 1, rng.uniform(0.2, 2, 31)
  equation = function_fractions._Equation(Rows(rng.normal(size=(31, 1)), y, weights), y)
  size = np.median(np.abs(y))
  counts = weights / weights.sum() / (1 + (y / size) ** 2)
  np.testing.assert_allclose(equation._root**2, counts)
  middle = np.sum(counts * y) / np.sum(counts)
  assert equation._variance == pytest.approx(np.sum(counts * (y - middle) ** 2))
  mostly_zero = np.where(np.arange(31) < 9, y, 0.0)
  other = function_fractions._Equation(Rows(rng.normal(size=(31, 1)), mostly_zero, weights), mostly_zero)
  np.testing.assert_allclose(other._root**2, weights / weights.sum() / (1 + (mostly_zero / np.max(np.abs(y[:9]))) ** 2))


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("name", FAMILIES)
def test_what_is_left_is_nothing_where_the_constant_is_right(name, scale):
  top, bottom = [(2.0, ONE, 0), (3.0, Y, 1)], [(4.0, ONE, 0), (1.5, ONE, 1)]
  y = scale * value(top, name) / value(bottom, name)
  equation = function_fractions._Equation(Rows(X, y, np.ones(40)), y)
  right, wrong = equation.shares(FAMILIES[name], np.array([0.7, 0.9]), X[:, 0], Basis((ONE, Y), (ONE,), 1))
  assert right < 1e-25 < 1e-12 < wrong


@pytest.mark.parametrize("name", FAMILIES)
def test_the_fraction_of_fewest_terms_is_written_first(name):
  top, bottom = [(2.0, ONE, 0), (3.0, Y, 1)], [(4.0, ONE, 0), (1.5, ONE, 1)]
  y = value(top, name) / value(bottom, name)
  equation = function_fractions._Equation(Rows(X, y, np.ones(40)), y)
  forms = list(equation.written(place_of(name, basis=Basis((ONE, Y, XY), (ONE,), 1)), OWN))
  np.testing.assert_allclose(expression.evaluate(forms[0], X), y, rtol=1e-6)
  assert expression.columns_of(forms[0]) == {0, 1}
  shortest = [len(programs.fitted_values(form)) for form in forms]
  assert shortest[0] <= 6 and len(forms) > 1
  one = list(equation.written(
    place_of(name, basis=Basis((ONE, Y, XY), (ONE,), 1)), dataclasses.replace(OWN, num_sizes=1)))
  assert one == forms[: len(one)] and len(one) < len(forms)


def test_families_are_asked_that_are_allowed_defined_and_of_rows_enough(monkeypatch):
  asked = []
  monkeypatch.setattr(function_fractions._Equation, "shares", lambda self, family, constants, values, basis: (
    asked.append(next(name for name in FAMILIES if FAMILIES[name] is family)), np.array([2.0, 1.0, 2.0]))[1])
  basis = Basis((ONE,), (ONE,), 1)  # two terms on each side, of waves three
  log = Node("ln", (Node("+", (variable(1), number(-1.0))),))
  arguments = [("exponentials", variable(0)), ("waves", variable(0)), ("logarithms", log), ("powers", number(2.0)),
               ("powers", variable(1))]
  for rule, num_rows, expected in (
    (Rule(2), 24, ["exponentials", "waves", "powers"]), (Rule(2), 23, ["exponentials", "powers"]),
    (Rule(2), 16, ["exponentials", "powers"]), (Rule(2), 15, []),
    (Rule(2, tokens=frozenset({"+", "*", "inv", "exp", "cos"})), 40, ["exponentials"])):
    asked.clear()
    equation = function_fractions._Equation(Rows(X[:num_rows], X[:num_rows, 0], np.ones(num_rows)), X[:num_rows, 0])
    with np.errstate(all="ignore"):
      found = list(equation.places(basis, arguments, rule, dataclasses.replace(OWN, num_around=1)))
    assert asked == expected and len(found) == len(expected)
    assert all(place.share == 1.0 and place.around == 2.0 for place in found)
    for place in found:
      constants = place.family.constants(expression.evaluate(place.argument, equation.rows.x), OWN)
      assert place.constant == constants[1]


def test_a_constant_is_looked_for_between_its_neighbours(monkeypatch):
  """Also where the best of the finer ones is the first or the last."""
  family = SimpleNamespace(constants=lambda values, config: np.array([0.0, 1.0, 2.0, 3.0, 4.0]))
  for best in (1.0, 1.04, 2.2, 2.97, 3.0):
    asked = []

    def shares(family, constants, values, basis, best=best, asked=asked):
      asked.append((constants[0], constants[-1], len(constants)))
      return (constants - best) ** 2 + 1e-30

    equation = SimpleNamespace(rows=Rows(X, X[:, 0], np.ones(40)), shares=shares)
    place = Place(1.0, 1.0, None, family, ARGUMENT, 2.1)
    config = dataclasses.replace(OWN, num_parts=10, num_divisions=6)
    found = function_fractions._Equation.with_best_constant(equation, place, config)
    assert found.constant == pytest.approx(best, abs=5e-5)
    assert found.share == pytest.approx((found.constant - best) ** 2)
    assert asked[0] == (1.0, 3.0, 11) and len(asked) == 6
    assert all(low - 1e-12 <= best <= high + 1e-12 for low, high, _ in asked)
    widths = [high - low for low, high, _ in asked]  # two parts of ten go on, one at an end
    assert all(one / other == pytest.approx(0.2) or one / other == pytest.approx(0.1)
               for other, one in itertools.pairwise(widths))


def test_monomials_below_and_above_are_values_of_columns():
  equation = function_fractions._Equation(Rows(X, X[:, 0], np.ones(40)), X[:, 0])
  functions = FAMILIES["powers"].table(np.array([0.5]), X[:, 0], 1)
  side = equation._side(functions, [(ONE, 0), (XY, 1)], np.full(40, 2.0))
  expected = np.column_stack([np.ones(40), X[:, 0] * X[:, 1] * X[:, 0] ** 0.5])
  np.testing.assert_allclose(side[0], expected / np.linalg.norm(expected, axis=0))
  assert monomials.to_node(XY) == Node("*", (variable(0), variable(1)))
