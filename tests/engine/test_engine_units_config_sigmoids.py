"""What the default config makes of sigmoids of straight lines and of sums of powers of one column, number by number."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT, PowerSumsConfig, PursuitConfig, SigmoidsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language.expression import Node, variable
from symformer_jax.language.rules import Rule
from symformer_jax.sources import closed_forms, power_sums, sigmoids
from symformer_jax.sources.sums import pursuit

SIGMOIDS, POWERS = DEFAULT.closed_forms.sigmoids, DEFAULT.closed_forms.powers
TERMS = [variable(0)]


def rows_of(num_rows, num_columns=1, *, y=None):
  x = np.random.default_rng(0).uniform(-2, -1, (num_rows, num_columns))
  return Rows(x, np.linspace(0.1, 2, num_rows) if y is None else y, np.ones(num_rows))


def test_the_parts_of_the_default_are_those_of_no_arguments():
  assert SigmoidsConfig() == SIGMOIDS and PowerSumsConfig() == POWERS and DEFAULT.pursuit == PursuitConfig()


# --- sigmoids --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_columns", "num_rows", "sizes"), [
  (1, 9, [1]), (1, 8, []), (12, 42, [12]), (12, 41, []), (13, 99, []), (4, 36, [4, 10]), (4, 35, [4]), (5, 99, [5])])
def test_lines_have_twelve_terms_at_most_and_three_rows_for_each_constant(num_columns, num_rows, sizes):
  """Beside the terms there are a constant and the curve's end."""
  rows = rows_of(num_rows, num_columns)
  assert [len(terms) for terms, _ in sigmoids._kinds(rows, range(num_columns), SIGMOIDS)] == sizes


def test_of_as_few_rows_as_three_for_each_constant_a_line_is_told():
  for num_rows, is_told in ((9, True), (8, False)):
    rows, design = rows_of(num_rows), np.column_stack([np.arange(num_rows), np.ones(num_rows)])
    assert math.isfinite(sigmoids._left(sigmoids.CURVES[0], 3.0, rows, design, SIGMOIDS)) is is_told


def test_ends_are_looked_for_at_twenty_places_from_a_ten_thousandth_to_ten_times_beyond():
  tops = list(sigmoids._tops(2.0, SIGMOIDS))
  np.testing.assert_allclose(tops, 2 * (1 + np.geomspace(1e-4, 10, 20)))
  assert list(sigmoids._tops(0.5, SIGMOIDS)) == pytest.approx([1.0, *(top / 4 for top in tops)])


def test_rows_tell_of_exponentials_from_a_millionth_to_a_thousand_million():
  exponentials = np.array([0.9e-6, 1.1e-6, 0.9e9, 1.1e9])
  rows = rows_of(4, y=1 / (1 + exponentials))
  usable, target, _ = sigmoids.line_of(sigmoids.CURVES[0], 1.0, rows, SIGMOIDS)
  assert usable.tolist() == [False, True, True, False]
  np.testing.assert_allclose(np.exp(target), exponentials[1:3], rtol=1e-6)


@pytest.mark.parametrize(("num_below", "is_asked"), [(10, True), (11, False)])
def test_a_tenth_of_the_rows_may_be_below_0(num_below, is_asked, monkeypatch):
  asked = []
  monkeypatch.setattr(sigmoids, "_kinds", lambda *given: asked.append(True) or [])
  sigmoids.told_lines(rows_of(100, y=np.where(np.arange(100) < num_below, -1.0, 1.0)), (0,), SIGMOIDS)
  assert bool(asked) is is_asked


@pytest.mark.parametrize(("left", "is_mixed", "is_kept", "is_followed"), [
  (0.099, False, True, True), (0.101, False, True, False), (0.299, False, True, False), (0.301, False, False, False),
  (0.9e-9, True, True, True), (1.1e-9, True, False, True)])
def test_what_a_curve_may_leave_to_be_followed_and_to_be_one(left, is_mixed, is_kept, is_followed, monkeypatch):
  followed = []
  monkeypatch.setattr(sigmoids, "_kinds", lambda *given: [(TERMS, is_mixed)])
  monkeypatch.setattr(sigmoids, "_left", lambda *given: left)
  monkeypatch.setattr(sigmoids, "_followed", lambda told, *given: followed.append(told) or told)
  assert bool(sigmoids.told_lines(rows_of(20), (0,), SIGMOIDS)) is is_kept and bool(followed) is is_followed


def test_an_end_is_followed_in_sixty_steps_between_its_neighbours(monkeypatch):
  asked = []
  monkeypatch.setattr(sigmoids.optimize, "minimize_scalar", lambda left, **given: asked.append(given) or
                      SimpleNamespace(fun=0.0, x=0.0))
  sigmoids._followed(sigmoids.Told(0.1, sigmoids.CURVES[0], TERMS, 4.0), rows_of(20), np.ones((20, 1)), SIGMOIDS)
  assert asked[0]["options"]["maxiter"] == 60
  assert np.diff(asked[0]["bounds"]) == pytest.approx(2 * math.log(1e5) / 19)


@pytest.mark.parametrize(("exponent", "is_whole"), [(1.951, True), (2.049, True), (1.949, False), (2.051, False)])
def test_exponents_within_a_twentieth_of_a_whole_number_are_tried_as_it(exponent, is_whole, monkeypatch):
  terms, asked = [Node("ln", TERMS)], []
  monkeypatch.setattr(sigmoids, "told_lines", lambda *given: [sigmoids.Told(0.0, sigmoids.CURVES[0], terms, 1.0)])
  monkeypatch.setattr(closed_forms, "_product", lambda terms, line, sign: asked.append(line.factors[0]))
  x = np.linspace(1, 2, 20)
  closed_forms.sigmoid_curves(Rows(x[:, None], 1 / (1 + x**exponent), np.ones(20)), (0,), DEFAULT.closed_forms)
  assert asked[:2] == pytest.approx([2.0 if is_whole else exponent, exponent], abs=1e-9)


# --- sums of powers --------------------------------------------------------------------------------------------------


def test_exponents_are_halves_and_thirds_up_to_4():
  expected = {k / 2 for k in range(-8, 9)} | {k / 3 for k in range(-12, 13)}
  assert power_sums.exponents_of(POWERS) == sorted(expected - {0.0})


@pytest.mark.parametrize(("num_rows", "is_asked"), [(12, True), (11, False)])
def test_sums_of_powers_have_three_rows_for_each_constant_and_are_asked_of_six_functions_of_y(
    num_rows, is_asked, monkeypatch):
  asked, x = [], np.linspace(1, 2, num_rows)
  monkeypatch.setattr(power_sums, "nearest_powers", lambda x, y, *given: asked.append(y) or ())
  closed_forms.power_sums_of_one(Rows(x[:, None], x, np.ones(num_rows)), (0,), Rule(1), POWERS)
  expected = [x, 1 / x, x**2, np.sqrt(x), np.log(x), np.exp(x)]
  assert len(asked) == 6 * is_asked
  assert all(any(np.allclose(y, values) for y in asked) for values in expected) is is_asked


def test_twenty_four_triples_are_solved(monkeypatch):
  solved, qr = [], np.linalg.qr
  monkeypatch.setattr(power_sums.np.linalg, "qr", lambda columns: solved.append(columns.shape) or qr(columns))
  x = np.linspace(1, 2, 40)
  power_sums.nearest_powers(x, np.sin(9 * x), np.ones(40), POWERS)
  assert solved == [(40, 4)] * 24


@pytest.mark.parametrize(("share", "is_found"), [(0.8e-20, True), (1.6e-20, False)])
def test_a_sum_of_powers_may_leave_a_ten_thousand_millionth_of_the_deviation(share, is_found):
  x, rng = np.linspace(1, 4, 60), np.random.default_rng(0)
  powers = np.stack([x**0.5, x**2, x**3, np.ones(60)], axis=1)
  noise = rng.normal(size=60)
  noise -= powers @ np.linalg.lstsq(powers, noise, rcond=None)[0]
  y = powers[:, :3] @ np.array([1.0, -2.0, 0.5])
  y = y + noise * math.sqrt(share * np.var(y) / np.mean(noise**2))
  assert (power_sums.nearest_powers(x, y, np.ones(60), POWERS) == (0.5, 2.0, 3.0)) is is_found


# --- pursuits --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "is_exact"), [(0.8e-20, True), (1.6e-20, False)])
def test_a_set_of_columns_that_leaves_a_ten_thousand_millionth_of_the_deviation_gets_no_more(
    share, is_exact, monkeypatch):
  carried, extend = [], pursuit._extend
  monkeypatch.setattr(pursuit, "_extend", lambda sets, *given: carried.append(len(sets.errors)) or extend(sets, *given))
  basis = np.linalg.qr(np.column_stack([np.ones(60), np.random.default_rng(0).normal(size=(60, 9))]))[0][:, 1:]
  pursuit.select_columns(basis, basis[:, 0] + math.sqrt(share) * basis[:, 1], np.ones(60))
  assert carried[1] == 8 - is_exact
