"""What the default config makes of enumerated formulas: how many are made, which agree, and where poles may lie."""

from types import SimpleNamespace

import numpy as np
import pytest
from small_data import task_of

from symformer_jax.engine.config import DEFAULT, EnumerationConfig, ShortFormsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.rules import Rule
from symformer_jax.sources.enumeration import enumeration, formula_bank, short_forms

ENUMERATION, FORMS = DEFAULT.enumeration, DEFAULT.short_forms


def test_the_parts_of_the_default_are_those_of_no_arguments():
  assert EnumerationConfig() == ENUMERATION and ShortFormsConfig() == FORMS


def rows_of(x, y):
  return Rows(np.asarray(x, float)[:, None], np.asarray(y, float), np.ones(len(x)))


# --- enumeration: what formulas are made of, and which agree ---------------------------------------------------------


@pytest.mark.parametrize(("num_columns", "is_asked"), [(6, True), (7, False)])
def test_twenty_thousand_formulas_are_made_of_six_columns_at_most_and_of_one_two_and_three(
    num_columns, is_asked, monkeypatch):
  asked = []
  monkeypatch.setattr(enumeration, "Bank", lambda x, *given, **named: asked.append(
    (named["num_formulas"], named["numbers"], named["largest"])))
  monkeypatch.setattr(enumeration, "_Directions", lambda *given: SimpleNamespace(matches=lambda y, rule: ()))
  task = task_of(num_columns)
  enumeration.formulas_of(task.fit_rows, tuple(range(num_columns)), task.rule)
  assert asked == [(20_000, (1, 2, 3), 1e12)] * is_asked


@pytest.mark.parametrize(("weight", "size", "are_drawn"), [
  (1.01e-3, 2.0, True), (0.99e-3, 2.0, False), (1.0, 99.0, True), (1.0, 101.0, False), (1.0, 1 / 99, True),
  (1.0, 1 / 101, False)])
def test_formulas_are_made_on_rows_of_a_thousandth_of_the_weight_and_within_a_hundred_medians(weight, size, are_drawn):
  rows = rows_of(np.arange(1.0, 10), np.append(np.ones(8), size))
  rows.weights[8] = weight
  found = formula_bank.drawn(rows, 8, least_weight=ENUMERATION.least_weight, most_beyond=ENUMERATION.most_beyond)
  assert (8 in found) is are_drawn


def directions_of(values):
  return enumeration._Directions(SimpleNamespace(values=np.asarray(values, float)), ENUMERATION)


@pytest.mark.parametrize(("share", "is_same"), [(0.99e-7, True), (1.01e-7, False)])
def test_formulas_agree_to_a_ten_millionth_of_what_varies(share, is_same, monkeypatch):
  known = np.random.default_rng(0).uniform(1, 2, (1, 9))
  monkeypatch.setattr(enumeration, "_errors", lambda values, *given: np.full(len(values), 3 * share))
  found = list(directions_of(known)._found(2.5 * known + 1.5, np.ones((1, 9)), np.array([3.0])))
  assert found == [(0, 0)] * is_same


@pytest.mark.parametrize(("share", "is_known"), [(1.1e-5, True), (0.9e-5, False)])
def test_of_what_varies_by_a_hundred_thousandth_of_its_size_no_direction_is_known(share, is_known):
  directions = directions_of(np.random.default_rng(0).uniform(1, 2, (1, 9)))
  varying = directions._basis[:, :1].T / np.max(np.abs(directions._basis[:, 0]))
  values = 1 + varying * share / float(varying[0] @ directions._basis[:, 0])
  assert len(directions._of(values / np.max(np.abs(values)))[1]) == is_known


def test_sixty_four_formulas_of_the_same_first_direction_are_compared(monkeypatch):
  asked = []
  directions = directions_of(np.random.default_rng(0).uniform(1, 2, (200, 9)))
  directions._directions[:, 0] = 0.5
  monkeypatch.setattr(enumeration, "_errors", lambda values, *given: asked.append(len(values)) or np.ones(len(values)))
  monkeypatch.setattr(enumeration._Directions, "_of", lambda self, values: (
    np.full((len(values), 2), 0.5), np.arange(len(values))))
  list(directions._found(np.ones((1, 9)), np.ones((1, 9)), np.ones(1)))
  assert asked == [32]  # on one side, beside which there is none


def test_the_other_one_of_two_formulas_is_one_of_the_first_ten_thousand(monkeypatch):
  asked = []
  rng = np.random.default_rng(0)
  directions = directions_of(rng.uniform(1, 2, (10_050, 9)))
  monkeypatch.setattr(enumeration._Directions, "_found", lambda self, values, *given: asked.append(len(values)) or [])
  list(directions.matches(rng.uniform(1, 2, 9), Rule(1)))
  assert max(asked) == 10_000


# --- short formulas of a bank, and poles: how many, on which rows ----------------------------------------------------


def test_what_enumeration_calls_exact():
  """Of a polynomial a part in 1e20 of the variance, of what bends more a part in 1e14, and of either 32 roundings."""
  x = np.linspace(1, 2, 60)
  for y, missed in ((x**5, 1e-20), (np.abs(x - 1.5), 1e-14)):
    rounding = (32 * np.finfo(float).eps * np.max(np.abs(y))) ** 2 / np.var(y)
    found = enumeration._most_missed(rows_of(x, y), (0,), ENUMERATION)
    assert found == pytest.approx(missed + rounding, rel=1e-6, abs=0)
  y = x + 1e9  # of which rounding is more
  assert enumeration._most_missed(rows_of(x, y), (0,), ENUMERATION) == pytest.approx(
    (32 * np.finfo(float).eps * np.max(y)) ** 2 / np.var(y), rel=1e-3, abs=0)


@pytest.mark.parametrize(("share", "missed"), [(0.99e-8, 1e-20), (1.01e-8, 1e-14)])
def test_what_polynomials_of_the_fifth_degree_leave_a_hundred_millionth_of_is_bent(share, missed):
  x = np.linspace(-1, 1, 60)
  sixth = x**6 - np.polyval(np.polyfit(x, x**6, 5), x)
  y = x + sixth * np.sqrt(share / (1 - share) * np.var(x) / np.mean(sixth**2))
  rounding = (32 * np.finfo(float).eps * np.max(np.abs(y))) ** 2 / np.var(y)
  found = enumeration._most_missed(rows_of(x, y), (0,), ENUMERATION)
  assert found == pytest.approx(missed + rounding, rel=1e-6, abs=0)


def test_seven_thousand_formulas_of_one_and_two_are_made_on_ninety_six_rows(monkeypatch):
  asked = []
  bank = SimpleNamespace(values=np.ones((200, 96)), node=None)
  monkeypatch.setattr(formula_bank, "Bank", lambda x, *given, **named: asked.append(
    (len(x), named["num_formulas"], named["numbers"], named["largest"])) or bank)
  monkeypatch.setattr(short_forms, "Sums", lambda values, others, *given: asked.append(
    (len(values), len(others))) or SimpleNamespace(of_one=None))
  rows = task_of(1, num_rows=200).fit_rows
  with pytest.raises(TypeError):  # nothing is asked of these
    list(short_forms._of_bank(rows, (0,), Rule(1), DEFAULT))
  assert asked == [(96, 7000, (1, 2), 1e12), (200, 160)]


def test_of_256_formulas_that_come_nearest_24_are_told_apart():
  left = np.arange(1.0, 1001)
  assert list(short_forms._nearest(left, FORMS)) == [(i,) for i in range(24)]
  # Of what is left by many formulas alike one is taken: beyond 256 nobody looks.
  alike = np.concatenate([np.ones(240), 2.0 + np.arange(60)])
  assert [i for i, in short_forms._nearest(alike, FORMS)] == [0, *range(240, 256)]


@pytest.mark.parametrize(("share", "is_near"), [(0.099, True), (0.101, False)])
def test_a_short_formula_leaves_a_tenth_of_the_variance(share, is_near, monkeypatch):
  x = np.linspace(-1, 1, 60)
  size = np.sqrt(share * np.var(x) / (1 - share))  # of y, which varies more by that
  off = np.resize([1.0, -1.0], 60)
  off -= np.polyval(np.polyfit(x, off, 1), x)
  y = x + size * off / np.sqrt(np.mean(off**2))
  monkeypatch.setattr(short_forms, "_of_bank", lambda *given: [expression.variable(0)])
  monkeypatch.setattr(short_forms, "_poles", lambda *given: [])
  assert bool(short_forms.short_forms_of(rows_of(x, y), (0,), Rule(1))) is is_near


def test_a_pole_is_looked_for_on_256_rows_beside_the_two_farthest(monkeypatch):
  asked = []
  monkeypatch.setattr(short_forms, "_places", lambda column, tops, config: asked.append((len(column), len(tops))) or ())
  monkeypatch.setattr(short_forms, "_likely", lambda *given: [])
  x = np.linspace(-1, 1, 400)
  list(short_forms._poles(rows_of(x, 1 / (x - 0.3001)), (0,), FORMS))
  assert asked == [(256, 2)]


def test_places_of_a_pole_go_to_two_neighbours_on_either_side_and_fall_by_five_decades():
  places = short_forms._places(np.arange(9.0), np.array([4]), FORMS)
  assert places[0] == 2 and places[-1] == 6
  np.testing.assert_allclose(np.intersect1d(places.round(9), np.linspace(2, 6, 21).round(9)), np.linspace(2, 6, 21))
  away = np.setdiff1d(places.round(12), np.linspace(2, 6, 21).round(12)) - 4
  above = away[away > 0]
  assert above[0] == pytest.approx(2e-5) and away[away < 0][-1] == pytest.approx(-2e-5)
  np.testing.assert_allclose(np.log10(above[1:10] / above[:9]), 1 / 6, rtol=1e-6)  # thirty steps


def test_a_place_of_a_pole_is_told_by_four_divisions_into_fourteen(monkeypatch):
  asked = []
  linspace = np.linspace
  monkeypatch.setattr(short_forms.np, "linspace", lambda low, high, num: asked.append(num) or linspace(low, high, num))
  x = linspace(-1, 1, 60)
  short_forms._best_place(short_forms.Pole(0, 1, None, (), True), rows_of(x, 1 / (x - 0.301)), x + 0.003, FORMS)
  assert asked == [15] * 4
