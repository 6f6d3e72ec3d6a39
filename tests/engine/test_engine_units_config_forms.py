"""What the default config makes of functions of functions and of short formulas: grids, poles, columns and rows."""

import collections
import dataclasses
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from small_data import OPTIONS, task_of

from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, compositions as compositions_config, enumeration as enumeration_config
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.rules import Rule
from symformer_jax.sources.compositions import composition_fits, composition_goals, composition_stages, compositions
from symformer_jax.sources.compositions.compositions import Compositions
from symformer_jax.sources.enumeration import enumeration, short_forms

FORMS, COMPOSITIONS = DEFAULT.short_forms, DEFAULT.compositions
Z = np.random.default_rng(0).uniform(-3, 7, (1, 60))
LEAST, REACH = Z.min(), np.ptp(Z)


def test_the_parts_of_the_default_are_those_of_no_arguments():
  for part, make in (
    (FORMS, enumeration_config.ShortFormsConfig), (DEFAULT.enumeration, enumeration_config.EnumerationConfig),
    (COMPOSITIONS, compositions_config.CompositionsConfig)):
    assert part == make()


@pytest.mark.parametrize(("num_columns", "num_rows", "is_asked"), [
  (1, 20, True), (1, 19, False), (6, 20, True), (7, 200, False)])
def test_up_to_six_columns_of_twenty_rows(num_columns, num_rows, is_asked):
  task = task_of(num_columns, num_rows=num_rows)
  assert Compositions(OPTIONS).supports(task) is short_forms.ShortForms().supports(task) is is_asked


def test_formulas_are_made_on_nine_rows_and_of_four_thousand_that_agree_the_shortest_are_evaluated(monkeypatch):
  made, agree, evaluated = [], [], []
  monkeypatch.setattr(enumeration, "Bank", lambda x, *given, **named: made.append(len(x)))
  monkeypatch.setattr(enumeration, "_Directions", lambda *given: SimpleNamespace(
    matches=lambda y, rule: (agree.append(i) or i for i in itertools.count())))
  monkeypatch.setattr(enumeration, "Match", SimpleNamespace(length=lambda match: -match))
  monkeypatch.setattr(enumeration, "_fitted", lambda match, *given: evaluated.append(match) or ())
  task = task_of(2)
  enumeration.formulas_of(task.fit_rows, (0, 1), task.rule)
  assert made == [9] and agree == list(range(4096)) and evaluated == agree[: -193 : -1]


# --- compositions ----------------------------------------------------------------------------------------------------


def grid_of(name):
  """Of `f(a*z + b)` the factor and where the argument is 0, the range of z going from 0 to 1."""
  a, b = composition_stages.constants(name, Z, COMPOSITIONS)[0].T
  with np.errstate(divide="ignore"):
    return a * REACH, (-b / a - LEAST) / REACH


def test_waves_of_functions_go_through_quarters_of_half_turns_in_six_phases():
  angles, zeros = grid_of("sin")
  assert len(angles) == 72
  np.testing.assert_allclose(
    np.unique(angles.round(9)) / (np.pi / 4), [1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 20, 24], atol=0.1)
  phases = (-zeros * angles).reshape(12, 6)
  np.testing.assert_allclose(phases, np.tile(np.arange(6) * np.pi / 6, (12, 1)), atol=1e-9)


def test_what_is_singular_is_so_beside_the_range_and_powers_turn_within_it_too():
  _, zeros = grid_of("ln")
  away = np.where(zeros[:-1] < 0, -zeros[:-1], zeros[:-1] - 1)  # the last is z itself
  np.testing.assert_allclose(away, np.tile([0.003, 0.0095, 0.03, 0.095, 0.3, 0.95, 3], 2), rtol=0.01)
  np.testing.assert_allclose(grid_of("pow2")[1][:-1], np.arange(-4, 9) / 4, atol=1e-9)


def test_exponentials_steps_and_exponents_of_either_sign():
  np.testing.assert_allclose(
    grid_of("exp")[0], np.outer([1, -1], [0.5, 0.89, 1.59, 2.83, 5.04, 8.98, 16]).ravel(), rtol=0.01)
  slopes, middles = (each[:-1].reshape(5, 7) for each in grid_of("atan"))
  np.testing.assert_allclose(slopes, np.tile([[2], [4.68], [10.95], [25.6], [60]], 7), rtol=0.01)
  np.testing.assert_allclose(middles, np.tile(np.arange(-1, 6) / 4, (5, 1)), atol=1e-9)
  exponents = composition_stages.constants("pow", np.abs(Z), COMPOSITIONS)[0, :, 0]
  assert sorted(exponents) == [-3, -1.5, -0.7, -0.3, 0.15, 0.3, 0.7, 1.5]


# --- short formulas --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [1, 2])
def test_a_pole_of_the_first_or_the_second_power_is_found_in_its_place(power):
  rng = np.random.default_rng(0)
  x = rng.uniform(-3, 3, (200, 2))
  y = 1.7 * x[:, 1] / (x[:, 0] - 1.234) ** power + 0.4
  rows = Rows(x, y + 1e-3 * np.sqrt(np.mean(y**2)) * rng.normal(size=200), np.ones(200))
  kinds = list(short_forms._kinds(0, (0, 1), FORMS))
  # Of two powers, over 1 or the other column, beside nothing or one of both, with a constant or none.
  assert len(set(kinds)) == len(kinds) == 2 * 2 * 3 * 2
  [kind] = [each for each in kinds if each == short_forms.Pole(0, power, 1, (), True)]
  places = short_forms._places(x[:, 0], np.argsort(-np.abs(y))[:2], FORMS)
  with np.errstate(all="ignore"):  # at the rows themselves
    assert short_forms._best_place(kind, rows, places, FORMS) == pytest.approx(1.234, abs=1e-3)


@pytest.mark.parametrize(("size", "is_asked"), [(2.99, False), (3.01, True)])
def test_poles_are_looked_for_where_a_row_is_three_times_as_far_out_as_quartiles_are_apart(size, is_asked, monkeypatch):
  asked = []
  monkeypatch.setattr(short_forms, "_likely", lambda *given: asked.append(given) or [])
  x = np.linspace(-1, 1, 101)
  y = np.random.default_rng(0).permutation(x)
  y -= np.polyval(np.polyfit(x, y, 1), x)
  y[50] = 99  # at x = 0, where it changes no slope
  y[50] = np.median(y) + size * np.ptp(np.quantile(y, [0.25, 0.75]))
  list(short_forms._poles(Rows(x[:, None], y + 5 * x, np.ones(101)), (0,), FORMS))
  assert bool(asked) is is_asked


def test_eight_poles_of_each_number_of_terms_are_looked_at(monkeypatch):
  monkeypatch.setattr(short_forms, "_left_by_kind", lambda kinds, *given: np.arange(float(len(kinds))))
  found = short_forms._likely(None, dict.fromkeys(range(4)), FORMS)
  assert collections.Counter(pole.num_terms for pole in found) == {1: 8, 2: 8, 3: 8, 4: 8}


@pytest.mark.parametrize("name", ["powers", "pair_powers", "inner_powers", "factor_powers", "multiples"])
def test_no_exponent_of_compositions_is_asked_twice(name):
  values = getattr(DEFAULT.compositions, name)
  assert len(set(values)) == len(values)


def test_whole_powers_inside_compositions_have_no_gap():
  whole = sorted(power for power in DEFAULT.compositions.inner_powers if power.is_integer())
  assert whole == [power for power in range(int(whole[0]), int(whole[-1]) + 1) if power] and {-1, 1} < {*whole}


# --- compositions: which goals, what stands inside, how many go on ---------------------------------------------------


def rows_of(x, y):
  x = np.asarray(x, float)
  return Rows(x[:, None] if x.ndim == 1 else x, np.asarray(y, float), np.ones(len(x)))


def leaf(column=0):
  return composition_fits.Leaf(expression.variable(column), np.linspace(1, 2, 40))


def test_goals_are_functions_of_y_over_these_powers_of_columns_and_of_two():
  rows = rows_of(np.random.default_rng(0).uniform(1, 3, (40, 2)), np.linspace(0.1, 0.9, 40))
  kinds = [kind for kind in composition_goals._kinds(rows, (0, 1), Rule(2), COMPOSITIONS) if not kind.beside]
  singles = {kind.divisor[0][1] for kind in kinds if len(kind.divisor) == 1}
  pairs = {power for kind in kinds if len(kind.divisor) == 2 for _, power in kind.divisor}
  assert singles == {1, -1, 0.5, -0.5, 2, -2} and pairs == {1, -1, 0.5, -0.5}
  assert len(composition_goals.find_goals(rows, (0, 1), Rule(2), COMPOSITIONS)) == 120


@pytest.mark.parametrize(("num_alike", "is_goal"), [(4, True), (3, False)])
def test_a_tenth_of_the_rows_make_all_of_the_variance_of_a_goal(num_alike, is_goal):
  x = np.linspace(1, 2, 40)
  far = np.zeros(40)
  far[:num_alike] = np.resize([1.0, -1.0], num_alike)
  far -= far.mean()
  kind = composition_goals.Kind("y", (), False, ())
  found = composition_goals.make_goal(kind, rows_of(x, far), COMPOSITIONS)
  # So many rows as Kish's formula says, a little more than stand out.
  assert 3 < composition_goals.num_rows(far**2) < 4.01 and (found is not None) is is_goal


@pytest.mark.parametrize(("num_heavy", "are_kept"), [(34, True), (32, False)])
def test_weights_stay_as_they_are_where_a_third_of_the_rows_count(num_heavy, are_kept):
  weights = np.where(np.arange(100) < num_heavy, 1.0, 1e-9)
  found = composition_goals._tempered(weights, COMPOSITIONS.least_weighted)
  assert bool(found[-1] < 1e-8 * found[0]) is are_kept


def test_functions_inside_are_multiplied_by_these_powers_and_stand_beside_these_multiples():
  rows = rows_of(np.random.default_rng(0).uniform(1, 3, 40), np.ones(40))
  insides = itertools.islice(compositions.insides_of(rows, (0,), Rule(1), COMPOSITIONS), 1000)
  factors = {inside.factor_leaf.node for inside in insides if inside.factor == composition_stages.NOTHING
             and inside.factor_leaf is not None}
  at = np.array([[3.0]])
  assert sorted(float(expression.evaluate(node, at)[0]) for node in factors) == pytest.approx(
    sorted(3.0**p for p in (1, -1, 0.5, 2, -0.5)))
  other = composition_fits.Leaf(expression.variable(1), np.linspace(0, 2**-0.5, 40) ** 2)  # half of the range
  beside = composition_fits.Inside(composition_stages.NOTHING, leaf(), beside=other)
  found = composition_fits.block_of(beside, COMPOSITIONS)
  np.testing.assert_allclose(
    np.sort(found.constants[:, 4]) / 2, [-4, -2, -1, -0.5, -0.25, 0.25, 0.5, 1, 2, 4])


def test_columns_have_six_hundred_waves_around_them_and_sums_of_two_sixty_four():
  plain = composition_fits.Inside(composition_stages.NOTHING, leaf())
  assert plain.num_waves(COMPOSITIONS) == 600
  assert dataclasses.replace(plain, beside=leaf(1)).num_waves(COMPOSITIONS) == 64


@pytest.mark.parametrize(("left", "num_kept"), [(0.899, 4), (0.901, 0)])
def test_of_the_same_functions_four_places_go_on_that_leave_nine_tenths(left, num_kept, monkeypatch):
  block = composition_fits.block_of(composition_fits.Inside("sin", leaf()), COMPOSITIONS)
  num = len(block.values)
  assert num > 9
  monkeypatch.setattr(composition_fits.Scan, "_nearest_places", lambda self, block, outer: [
    (np.ones((num, 1, 2)), np.full((num, 1), left))])
  rest = np.resize([1.0, -1.0], 40) / np.sqrt(40)
  goal = composition_goals.Goal(None, np.full(40, 40**-0.5), np.zeros((2, 40)), rest)
  assert len(list(composition_fits.Scan([goal], ["exp"], COMPOSITIONS).nearest(block))) == num_kept


def test_a_turn_ends_with_eight_million_compositions_and_goals(monkeypatch):
  inside = composition_fits.Inside(composition_stages.NOTHING, leaf())
  monkeypatch.setattr(compositions, "Scan", lambda *given: SimpleNamespace(nearest=lambda block: []))
  monkeypatch.setattr(compositions, "insides_of", lambda *given: [inside] * 9)
  monkeypatch.setattr(compositions, "num_compositions", lambda *given: 100_000)
  for num_goals, end in ((60, 1), (59, 2)):  # and twenty for what it takes to compute one
    _, found = compositions.look_at_blocks(None, (0,), [None] * num_goals, Rule(1), COMPOSITIONS, begin=0)
    assert found == end


def test_compositions_are_looked_at_on_128_rows(monkeypatch):
  asked = []
  monkeypatch.setattr(compositions, "find_goals", lambda rows, *given: asked.append(len(rows)) or [])
  task = task_of(1, num_rows=200)
  [found] = Compositions(OPTIONS).propose([SimpleNamespace(task=task, state=0)], turn=0, num=64, clock=Clock())
  assert found.is_last and asked == [128]


@pytest.mark.parametrize(("link", "divisor", "num"), [
  ("y", (), 500), ("exp", (), 200), ("y", ((0, 1.0),), 50), ("exp", ((0, 1.0),), 50)])
def test_so_many_compositions_are_fitted_of_y_of_its_functions_and_of_these_over_powers(link, divisor, num):
  goal = SimpleNamespace(kind=SimpleNamespace(link=link, divisor=divisor))
  assert compositions._num_fitted(goal, COMPOSITIONS) == num


def test_a_fit_has_six_steps_and_of_the_nearest_three_hundred_forty_more(monkeypatch):
  asked = []
  monkeypatch.setattr(composition_fits, "fit", lambda found, goals, num_steps: asked.append(
    (len(found), num_steps)) or found)
  goals = [SimpleNamespace(kind=SimpleNamespace(link="y", divisor=()))]
  found = [composition_fits.Found(None, "exp", 0, np.ones(7), 0.5) for _ in range(600)]
  compositions.nearest_fitted(found, goals, COMPOSITIONS)
  assert asked == [(500, 6), (300, 40)]
