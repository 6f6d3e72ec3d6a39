"""Parts of fractions within functions one by one: functions of y and their constants, equations, where they hold."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT, LinkedFractionsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.expression import variable
from symformer_jax.language.rules import Rule
from symformer_jax.sources.fractions import linked_fractions
from symformer_jax.sources.fractions.linked_fractions import FAMILIES, Place, _Equation

OWN = DEFAULT.linked_fractions


# --- functions of y --------------------------------------------------------------------------------------------------


def test_constants_of_functions_follow_y():
  y = np.linspace(2, 10, 9)
  config = LinkedFractionsConfig(
    num_constants=3, exponents=(0.25, 4.0), turns_of_exponential=(0.5, 8.0), least_angle=0.5, least_ratio=4.9)
  shares = np.array([0.5, 0.75, 1])
  expected = {"powers": [0.25, 1, 4], "exponentials": [0.5 / 8, 2 / 8, 8 / 8], "cosines": np.pi / 10 * shares,
              "sines": np.pi / 20 * shares, "tangents": np.pi / 20 * shares}
  for name, family in FAMILIES.items():
    np.testing.assert_allclose(family.constants(y, config), expected[name])
  assert FAMILIES["powers"].constants(y, dataclasses.replace(config, least_ratio=5.0)) is None
  for y, has_powers, has_cosines in ((np.array([0.0, 3]), False, True), (np.array([-1.0, 3]), False, False)):
    assert (FAMILIES["powers"].constants(y, config) is not None) is has_powers
    assert (FAMILIES["cosines"].constants(y, config) is not None) is has_cosines
  np.testing.assert_allclose(FAMILIES["sines"].constants(np.array([-8.0, 3]), config)[-1], np.pi / 16)


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_functions_of_y_are_of_size_1_whatever_its_unit(scale, rng):
  y = scale * rng.uniform(0.3, 4, 30)
  for family in FAMILIES.values():
    constants = family.constants(y, OWN)
    values = family.of(constants[[0, 9]], y)
    assert values.shape == (2, 30) and np.all(np.isfinite(values)) and np.max(np.abs(values)) <= 1 + 1e-12
    back = expression.evaluate(family.undo(variable(0), float(constants[0]), float(np.max(y))), values[0][:, None])
    np.testing.assert_allclose(back, y, rtol=1e-9)


# --- equations -------------------------------------------------------------------------------------------------------


def equations_of(rows, config):
  """Over the columns themselves, without waves of angles."""
  without_waves = Rule(rows.x.shape[1], tokens=frozenset({"+", "*", "inv"}))
  return [each for _, each in linked_fractions._equations(rows, range(rows.x.shape[1]), without_waves, config)]


@pytest.mark.parametrize(("num_rows", "num"), [(8, 0), (9, 2), (11, 2), (12, 3), (17, 3), (18, 4)])
def test_equations_have_rows_enough_for_their_terms(num_rows, num):
  """Three for each; of one column there are one more terms than the degree on either side."""
  x = np.linspace(1, 2, num_rows)
  config = LinkedFractionsConfig(degrees=((1, 0), (0, 1), (1, 1), (2, 2)), rows_per_term=3)
  found = equations_of(Rows(x[:, None], x, np.ones(num_rows)), config)
  sizes = [(each.above.shape[1], each.below.shape[1]) for each in found]
  assert sizes == [(2, 1), (1, 2), (2, 2), (3, 3)][:num]


def test_terms_are_monomials_with_the_rows_weights_of_length_1(rng):
  x, weights = rng.uniform(1, 3, (40, 2)) * [1e-200, 1e200], rng.uniform(0.2, 2, 40)
  config = LinkedFractionsConfig(degrees=((1, 2),))
  [equation] = equations_of(Rows(x, np.arange(40.0), weights), config)
  a, b = (x / np.max(x, axis=0)).T
  one = np.ones(40)
  for side, terms in ((equation.above, [one, a, b]), (equation.below, [one, a, b, a * a, a * b, b * b])):
    expected = [np.sqrt(weights) * each for each in terms]
    expected = np.stack([each / np.linalg.norm(each) for each in expected])
    np.testing.assert_allclose(np.sort(side.T, axis=0), np.sort(expected, axis=0))
  np.testing.assert_array_equal(equation.y, np.arange(40.0))


def exact(num_rows=40, degrees=(2, 2)):
  """y**0.7 = (1 + 2*x)/(3 + x**2): a term of each side is not needed."""
  x = np.random.default_rng(0).uniform(0.5, 3, num_rows)
  y = ((1 + 2 * x) / (3 + x**2)) ** (1 / 0.7)
  config = LinkedFractionsConfig(degrees=(degrees,))
  [equation] = equations_of(Rows(x[:, None], y, np.ones(num_rows)), config)
  return equation


def test_spaces_meet_where_the_constant_is_right():
  right, wrong = exact().shares(FAMILIES["powers"], np.array([0.7, 0.8]))
  assert right < 1e-26 < 1e-12 < wrong


def test_minima_lie_between_the_neighbours(monkeypatch):
  equation = exact()
  shares = np.array([5, 4, 2e-9, 4, 6, 8, 7, 9, 3, 4.0])
  monkeypatch.setattr(_Equation, "shares", lambda self, family, constants: shares)
  family = FAMILIES["powers"]._replace(constants=lambda y, config: np.arange(10.0) if len(y) == 40 else None)
  equation._config = LinkedFractionsConfig(num_around=1, rounding=1e-26)
  found = list(equation.places(family))
  assert [(place.low, place.high) for place in found] == [(1, 3), (5, 7), (7, 9)]
  assert [place.leap for place in found] == pytest.approx([2e-9 / 4, 7 / 8, 3 / 4])
  assert all(place.family is family for place in found)
  assert not list(equation.places(family._replace(constants=lambda y, config: None)))


@pytest.mark.parametrize("best", [1.0, 1.04, 2.2, 2.97, 3.0])
def test_a_constant_is_looked_for_between_its_neighbours(monkeypatch, best):
  asked, equation = [], exact()

  def shares(self, family, constants):
    asked.append((constants[0], constants[-1], len(constants)))
    return (constants - best) ** 2

  monkeypatch.setattr(_Equation, "shares", shares)
  equation._config = LinkedFractionsConfig(num_parts=10, num_divisions=8, rounding=1e-9, num_first=8, first_share=1.0)
  found = equation._nearest(Place(0.1, FAMILIES["powers"], 1.0, 3.0))
  assert found == pytest.approx(best, abs=3e-5) and asked[0] == (1.0, 3.0, 11) and len(asked) == 8
  assert all(low - 1e-9 <= best <= high + 1e-9 for low, high, _ in asked)


@pytest.mark.parametrize(("floor", "num_first", "first_share", "rounding", "num_asked", "is_found"), [
  (1e-7, 3, 1e-8, 1e-6, 3, False), (1e-7, 3, 1e-6, 1e-6, 6, True), (1e-7, 3, 1e-6, 1e-8, 6, False),
  (1e-7, 9, 1e-8, 1e-6, 6, True)])
def test_what_leaves_too_much_after_some_divisions_is_none(
    monkeypatch, floor, num_first, first_share, rounding, num_asked, is_found):
  asked, equation = [], exact()
  monkeypatch.setattr(_Equation, "shares", lambda self, family, constants: (
    asked.append(1), (constants - 0.5) ** 2 + floor)[1])
  equation._config = LinkedFractionsConfig(
    num_parts=16, num_divisions=6, num_first=num_first, first_share=first_share, rounding=rounding)
  assert (equation._nearest(Place(0.1, FAMILIES["powers"], 0.49, 0.52)) is not None) is is_found
  assert len(asked) == num_asked


def test_terms_that_take_part_are_needed():
  equation = exact()
  few = equation._needed(FAMILIES["powers"], 0.7)
  np.testing.assert_allclose(few.above, equation.above[:, [i for i in range(3) if not is_square(equation.above[:, i])]])
  assert few.below.shape[1] == 2 and few.above.shape[1] == 2
  np.testing.assert_array_equal(few.y, equation.y)
  assert few.shares(FAMILIES["powers"], np.array([0.7]))[0] < 1e-26
  # Where all of a side is as good as nothing there is no equation.
  equation._config = LinkedFractionsConfig(least_part=1.0)
  assert equation._needed(FAMILIES["powers"], 0.7) is None


def is_square(column):
  x = np.random.default_rng(0).uniform(0.5, 3, 40)
  return np.allclose(column, x**2 / np.linalg.norm(x**2))


def test_a_constant_is_that_of_the_terms_that_are_needed(monkeypatch):
  equation, place = exact(), Place(0.1, FAMILIES["powers"], 0.6, 0.8)
  few = SimpleNamespace(_nearest=lambda place: 0.71)
  for nearest, needed, expected in ((None, few, None), (0.7, None, 0.7), (0.7, few, 0.71),
                                    (0.7, SimpleNamespace(_nearest=lambda place: None), 0.7)):
    monkeypatch.setattr(_Equation, "_nearest", lambda self, place, nearest=nearest: nearest)
    monkeypatch.setattr(_Equation, "_needed", lambda self, family, constant, needed=needed: needed)
    assert equation.best(place) == expected


# --- what is looked at -----------------------------------------------------------------------------------------------


def test_the_deepest_minima_of_all_functions_are_looked_at_first(monkeypatch):
  asked, x = [], np.random.default_rng(0).uniform(1, 3, (40, 1))
  depths = {"powers": [0.5, 0.1], "exponentials": [0.3], "sines": [0.2, 0.4]}

  def places(family):
    name = next(name for name in FAMILIES if FAMILIES[name] is family)
    return [Place(leap, family, 0.0, 1.0) for leap in depths[name]]

  equation = SimpleNamespace(places=places, best=lambda place: asked.append(place.leap) or (
    None if place.leap != 0.3 else 2.0))
  monkeypatch.setattr(linked_fractions, "_equations", lambda *given: iter([((), equation)] * 2))
  monkeypatch.setattr(linked_fractions, "_written", lambda rows, view, rule, family, constant, config: (
    ["form"] if family is FAMILIES["exponentials"] and constant == 2.0 else []))
  for num, expected, found in ((9, [0.1, 0.2, 0.3], ["form"]), (2, [0.1, 0.2] * 2, [])):
    own = LinkedFractionsConfig(families=tuple(depths), num_fitted=num)
    config = dataclasses.replace(DEFAULT, linked_fractions=own)
    asked.clear()
    assert linked_fractions.fractions_of(Rows(x, np.sqrt(x[:, 0]), np.ones(40)), (0,), Rule(1), config) == found
    assert asked == expected
  asked.clear()
  rule = Rule(1, tokens=frozenset({"+", "*", "inv", "asin"}))
  linked_fractions.fractions_of(Rows(x, np.sqrt(x[:, 0]), np.ones(40)), (0,), rule, config)
  assert asked == [0.2, 0.4] * 2
