"""Parts of the library by themselves: functions on grids have the values of their formulas, and there are so many."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import expression, parser
from symformer_jax.sources.sums import families

NAMES = ("x", "z", "w")


def parse(text):
  return parser.parse(text, NAMES)


SPACE = families.Space(np.random.default_rng(0).uniform(0.5, 3, (25, 3)), (0, 1), DEFAULT.library)
MAKERS = {name: (subjects, make) for subjects, rows in families.FAMILIES for name, make in rows.items()}


@pytest.mark.parametrize("name", MAKERS)
def test_members_of_a_family_have_the_values_of_their_formulas(name):
  subjects, make = MAKERS[name]
  space = dataclasses.replace(SPACE, columns=(0, 1) if list(subjects(SPACE)) else (0, 1, 2))
  with np.errstate(all="ignore"):
    for subject in itertools.islice(subjects(space), 0, None, 7):
      for family in itertools.islice(make(space, subject), 0, None, 5):
        count = family.values.shape[1]
        for g in {0, count // 2, count - 1} if count else ():
          np.testing.assert_allclose(
            family.values[:, g], expression.evaluate(family.build(g), space.x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_asked_for_is_made_and_members_are_of_one_kind_but_where_they_differ(name):
  config = dataclasses.replace(DEFAULT.library, families=(name,))
  space = dataclasses.replace(SPACE, columns=(0, 1) if list(MAKERS[name][0](SPACE)) else (0, 1, 2), config=config)
  are_different = name in (
    "monomials", "squared_differences", "long_monomials", "functions_times_monomials", "products")
  with np.errstate(all="ignore"):
    made = list(itertools.islice(families.make_families(space), 40))
  assert made and all(family.is_mixed == are_different for family in made)
  assert not list(families.make_families(dataclasses.replace(space, config=dataclasses.replace(config, families=()))))
  plain = families.plain_columns(space, (2, 0))
  assert bool(plain) == (name == "monomials")
  for family in plain:
    assert family.is_mixed and family.tier == families.MONOMIAL and family.build(1) == parse("x")
    np.testing.assert_array_equal(family.values, space.x[:, [2, 0]])


def test_what_functions_are_taken_of_and_multiplied_by():
  config = DEFAULT.library
  for columns, few in (((0,), config.num_few_factors), ((0, 1), 0)):
    space = dataclasses.replace(SPACE, columns=columns)
    found = {argument.node: argument for argument in families._each_argument(space)}
    num_factors = len(columns) * len(config.outer_powers) + math.comb(len(columns), 2)
    for node, count in ((parse("x"), num_factors), (parse("x**2"), few), (parse("exp(x)"), 0)):
      assert len(found[node].factors) == count and found[node].is_variable == (node == parse("x"))
      np.testing.assert_allclose(found[node].u, expression.evaluate(node, space.x))
    assert found[parse("exp(x)")].is_inner and not found[parse("x**2")].is_inner
  level = dataclasses.replace(SPACE, x=np.ones((9, 3)))
  assert not list(families._each_argument(level))


def test_waves_are_so_many_multiples_of_a_quarter_wave_over_the_range():
  config, u = DEFAULT.library, SPACE.x[:, 0]
  quarter = np.pi / 2 / np.ptp(u)
  for is_variable, alone, times in ((True, config.num_waves, config.num_multiplied_waves),
                                    (False, config.num_other_waves, config.num_other_waves)):
    made = list(families._waves(SPACE, families._Argument(parse("x"), u, is_variable, [parse("z")])))
    assert [family.values.shape[1] for family in made] == [alone, alone, times, times]
    np.testing.assert_allclose(made[0].values[:, [0, -1]], np.sin(quarter * np.outer(u, [1, alone])), atol=1e-9)
  made = list(families._decaying_waves(SPACE, parse("x")))
  slowest, _, num = config.decays
  assert [family.values.shape[1] for family in made] == [config.num_decaying_waves] * 2 * num
  expected = np.exp(-slowest / np.ptp(u) * u)[:, None] * np.sin(quarter * np.outer(u, [1, config.num_decaying_waves]))
  np.testing.assert_allclose(made[0].values[:, [0, -1]], expected, atol=1e-9)


def test_peaks_stand_evenly_within_the_range():
  space = dataclasses.replace(SPACE, x=np.linspace(2, 5, 421)[:, None], columns=(0,))
  num = space.config.num_places
  places = 2 + 3 * np.arange(1, num + 1) / (num + 1)
  families_of_x, u = list(families._peaks_and_steps(space, parse("x"))), space.x[:, 0]
  assert len(families_of_x) == 6  # of x and of its logarithm
  logs = np.log(2) + np.log(2.5) * np.arange(1, num + 1) / (num + 1)
  for some, at, expected in ((families_of_x[:3], u, places), (families_of_x[3:], np.log(u), logs)):
    normal, cauchy, step = some
    for family in (normal, cauchy):  # the narrowest come first
      np.testing.assert_allclose(at[np.argmax(family.values[:, :num], axis=0)], expected, atol=0.01)
    np.testing.assert_allclose(at[np.argmin(np.abs(step.values[:, :num] - 0.5), axis=0)], expected, atol=0.01)
  below = dataclasses.replace(space, x=space.x - 3)
  assert len(list(families._peaks_and_steps(below, parse("x")))) == 3


def test_stretched_exponentials_fall_over_the_range_of_their_power():
  config, u = DEFAULT.library, np.linspace(0.5, 4, 60)
  space = dataclasses.replace(SPACE, x=u[:, None], columns=(0,))
  made = list(families._stretched_exponentials(space, parse("x")))
  assert len(made) == len(config.stretched_powers)
  low, high, num = config.rates
  for power, family in zip(config.stretched_powers, made, strict=True):
    assert family.values.shape == (60, num)
    falls = np.log(family.values[0] / family.values[-1])
    np.testing.assert_allclose(falls, np.geomspace(low, high, num))
    np.testing.assert_allclose(family.values[:, 3], np.exp(-falls[3] / np.ptp(u**power) * u**power))
  below = dataclasses.replace(space, x=u[:, None] - 1)
  assert not list(families._stretched_exponentials(below, parse("x")))


def test_powers_times_exponentials_and_bounded_powers_are_what_their_formulas_compute():
  config, u = DEFAULT.library, np.linspace(0.5, 4, 60)
  space = dataclasses.replace(SPACE, x=u[:, None], columns=(0,))
  made = list(families._powers_times_exponentials(space, parse("x")))
  assert len(made) == len(config.gamma_powers)
  np.testing.assert_allclose(made[0].values[:, 0], u ** config.gamma_powers[0] * np.exp(-config.rates[0] / 3.5 * u))
  bounded = list(families._bounded(space, parse("x")))
  assert len(bounded) == 3 + len(config.stretched_powers)  # 1 + exp of either sign, 1 - exp(-c*x), 1 + c*x**p
  corners, powers = (list(make(space, parse("x"))) for make in (families._soft_corners, families._powers_of_bounded))
  assert len(powers) == len(bounded) * len(config.bounded_powers)
  for family, corner in zip(bounded, corners, strict=True):
    np.testing.assert_allclose(np.exp(corner.values), family.values, rtol=1e-12)
  for family in (*made, *bounded, *corners, *powers):
    last = family.values.shape[1] - 1
    assert np.isfinite(family.values).all()
    for place in (0, last // 2, last):
      np.testing.assert_allclose(expression.evaluate(family.build(place), space.x), family.values[:, place], rtol=1e-9)
  below = dataclasses.replace(space, x=u[:, None] - 1)
  assert not list(families._powers_times_exponentials(below, parse("x"))) and len(list(families._bounded(
    below, parse("x")))) == 2


def test_hyperbolics_are_cosines_sines_and_bells():
  u = np.linspace(-2, 3, 50)
  space = dataclasses.replace(SPACE, x=u[:, None], columns=(0,))
  cosh, sinh, bell, square = families._hyperbolics(space, parse("x"))
  low, high, num = space.config.hyperbolic_rates
  for place, rate in ((0, 1.0), (1, low / 3), (num, high / 3)):
    np.testing.assert_allclose(cosh.values[:, place], 2 * np.cosh(rate * u))
    np.testing.assert_allclose(sinh.values[:, place], 2 * np.sinh(rate * u), atol=1e-12)
    np.testing.assert_allclose(bell.values[:, place], 0.5 / np.cosh(rate * u))
    np.testing.assert_allclose(square.values[:, place], 0.25 / np.cosh(rate * u) ** 2)
    for family in (cosh, sinh, bell, square):
      np.testing.assert_allclose(expression.evaluate(family.build(place), space.x), family.values[:, place], atol=1e-12)


def test_grids_of_inner_constants_go_by_the_range_of_the_data():
  config, u = DEFAULT.library, np.array([2.0, 3.0, 7.0])
  argument = families._Argument(parse("x"), u, True, ())
  low, high, num = config.rates
  rates = families._rates(argument, config)
  assert rates[: len(config.usual_rates)].tolist() == list(config.usual_rates)
  rising, falling = np.split(rates[len(config.usual_rates):], 2)
  np.testing.assert_array_equal(rising, -falling)
  assert len(rising) == num and [rising[0], rising[-1]] == pytest.approx([low / 5, high / 5])
  shifts = families._shifts(argument, config)[len(config.usual_shifts):]
  below, above = np.split(shifts, 2)  # zeros of u + c: below the data by these distances, and above
  low, high, num = config.distances
  np.testing.assert_allclose(2.0 + below, 5 * np.geomspace(low, high, num))
  np.testing.assert_allclose(-(7.0 + above), 5 * np.geomspace(low, high, num))
  places = families._places(u, config)
  np.testing.assert_allclose(np.diff([0, *places, 5]), 5 / (config.num_places + 1))
  assert families._quarter_wave(u) == pytest.approx(math.pi / 10)


def test_poles_stand_below_the_data_above_them_and_evenly_between():
  config, u = DEFAULT.library, SPACE.x[:, 0]
  [family] = families._poles(families._Argument(parse("x"), u, True, ()), config)
  zeros = u[0] - 1 / family.values[0, len(config.usual_shifts):]
  outside, between = np.split(zeros, [-config.num_places])
  assert np.all((outside < u.min()) | (outside > u.max())) and len(outside) == 2 * config.distances[2]
  np.testing.assert_allclose(np.diff([u.min(), *between, u.max()]), np.ptp(u) / (config.num_places + 1), rtol=1e-6)


def test_functions_of_many_variables_are_of_each_and_of_products_quotients_and_differences_of_two():
  space = dataclasses.replace(SPACE, columns=(0, 1, 2))
  with np.errstate(all="ignore"):
    made = [family.build(0) for family in families._functions_times_monomials(space, None)]
  texts = [*NAMES, *(f"{v}{token}{w}" for v, w in itertools.combinations(NAMES, 2) for token in "*/-")]
  assert {expression.sort_operands(node) for node in made if node.token == "ln"} == {
    expression.sort_operands(parse(f"log({text})")) for text in texts}


def test_functions_of_a_variable_itself_are_looked_for_more_thoroughly_than_those_times_a_factor():
  [alone, times] = families._with_factors(families._exponentials)(
    SPACE, families._Argument(parse("x"), SPACE.x[:, 0], True, [parse("z")]))
  assert (alone.tier, times.tier) == (families.BASIC, families.ANY)
  np.testing.assert_allclose(times.values, SPACE.x[:, [1]] * alone.values)
  for make, tier in ((families._trigonometric, families.BASIC), (families._exponentials, families.ANY)):
    inner = families._Argument(parse("log(x)"), np.log(SPACE.x[:, 0]), False, (), is_inner=True)
    assert {family.tier for family in families._with_factors(make)(SPACE, inner)} == {tier}


@pytest.mark.parametrize(("num_columns", "is_few", "is_many"), [(1, True, False), (3, True, True), (4, False, True)])
def test_what_few_and_many_variables_are(num_columns, is_few, is_many):
  space = dataclasses.replace(SPACE, columns=range(num_columns))
  assert (space.is_of_few, space.is_of_many) == (is_few, is_many)


def test_squared_differences_of_so_many_variables_that_there_are_not_too_many():
  x = np.random.default_rng(0).uniform(1, 2, (9, 4))
  for most, count in ((6, 6), (5, 0)):
    space = families.Space(x, range(4), dataclasses.replace(DEFAULT.library, max_pairs=most))
    found = list(families._squared_differences(space, None))
    assert sum(family.values.shape[1] for family in found) == count
  assert not list(families._squared_differences(dataclasses.replace(space, columns=(0,)), None))


def test_of_two_variables_there_is_one_squared_difference():
  [family] = families._squared_differences(SPACE, None)
  assert family.build(0) == parse("(x - z)**2")
  np.testing.assert_allclose(family.values[:, 0], (SPACE.x[:, 0] - SPACE.x[:, 1]) ** 2)
