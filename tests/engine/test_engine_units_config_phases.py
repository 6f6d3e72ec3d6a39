"""What the default config makes of waves of functions, of products and of sums: rows, frequencies, what agrees."""

import dataclasses
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from small_data import OPTIONS, task_of

from symformer_jax.engine.config import DEFAULT, waves as waves_config
from symformer_jax.engine.rows import Rows
from symformer_jax.errors import InputError
from symformer_jax.language.rules import Rule
from symformer_jax.sources.unknowns import unknown_functions
from symformer_jax.sources.waves import phases, wave_products, wave_sums

PHASES = DEFAULT.phases
PRODUCTS, SUMS = PHASES.products, PHASES.sums


class Enough(Exception):
  pass


def rows_of(num_columns, num_rows=100):
  x = np.random.default_rng(0).uniform(1.1, 3, (num_rows, num_columns))
  return Rows(x, np.sin(5 * x[:, 0]), np.ones(num_rows))


def test_the_part_of_the_default_is_that_of_no_arguments():
  assert waves_config.PhasesConfig() == PHASES


# --- functions of one column -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_rows", "is_asked"), [(16, True), (15, False)])
def test_a_stretch_has_sixteen_rows(num_rows, is_asked):
  assert phases.Phases(OPTIONS).supports(task_of(1, num_rows=num_rows)) is is_asked


@pytest.mark.parametrize(("num_columns", "num_tried"), [(6, 6), (7, 0)])
def test_six_columns_are_tried(num_columns, num_tried, monkeypatch):
  asked = []
  monkeypatch.setattr(phases, "find_arguments", lambda rows, columns, *given, **named: asked.append(len(columns)) or [])
  monkeypatch.setattr(unknown_functions, "find_forms", lambda *given: [])
  task = dataclasses.replace(task_of(num_columns), columns=tuple(range(num_columns)))
  phases.Phases(OPTIONS)._nodes(SimpleNamespace(task=task), 1, 24)
  assert asked == [num_tried]


@pytest.mark.parametrize(("gap", "nums"), [(0.49, [31, 30]), (0.51, [31, 31])])
def test_rows_are_looked_at_all_and_without_those_nearer_than_half_the_median_gap(gap, nums, monkeypatch):
  asked = []
  monkeypatch.setattr(phases, "_outers", lambda x, *given: asked.append(len(x)) or iter(()))
  x = np.append(np.arange(30.0), -gap)
  rows = Rows(x[:, None], np.sin(x), np.ones(31))
  phases.find_arguments(rows, (0,), Rule(1), PHASES, is_short=False)
  assert asked == nums


def test_a_wave_is_multiplied_by_nothing_the_column_or_its_inverse():
  rows = rows_of(1)
  found = phases._outers(rows.x[:, 0], rows.y, Rule(1), PHASES, False)
  assert {outer.power for outer, _ in found} == {0, 1, -1}


@pytest.mark.parametrize(("share", "is_wave"), [(0.09, True), (0.11, False)])
def test_half_of_the_tops_are_within_a_tenth_of_the_highest(share, is_wave):
  tops = [1, *[1 - 2 * share] * 3]
  values = np.array([0.0, *itertools.chain.from_iterable((top, -1.0) for top in tops), 0.0])
  sizes = list(phases._sizes(3 * values, "cos", PHASES))
  assert len(sizes) == is_wave


@pytest.mark.parametrize(("largest", "num"), [(0.97, 2), (0.99, 1)])
def test_a_wave_that_goes_nearer_to_one_than_a_fiftieth_is_as_large_as_that(largest, num):
  assert len(list(phases._sizes(largest * np.cos(np.arange(0, 99, 0.1)), "cos", PHASES))) == num


@pytest.mark.parametrize(("spread", "uneven", "goes_far", "is_smooth"), [
  (2.29, 0.29, False, True), (2.31, 0.31, True, False)])
def test_arguments_of_half_a_turn_are_spread_and_others_have_an_order(spread, uneven, goes_far, is_smooth):
  # The squares of differences of neighbours of a wave are twice its variance times one less the cosine of a step.
  principal = np.cos(np.arccos(1 - uneven) * np.arange(20_000))
  assert phases._is_worth_it(principal, PHASES, is_short=True) is is_smooth
  assert phases._is_worth_it(spread * principal / np.ptp(principal), PHASES, is_short=False) is goes_far


@pytest.mark.parametrize(("roughness", "num"), [(0.029, 3), (0.031, 0)])
def test_three_smooth_arguments_from_four_starts_by_eight_ways(roughness, num, monkeypatch):
  asked = []

  def unwrap(x, choices, **named):
    asked.append(named)
    return [SimpleNamespace(values=np.zeros(16), range=4.0 + i, roughness=roughness, rows=np.arange(16))
            for i in range(5)]

  monkeypatch.setattr(phases, "unwrap", unwrap)
  x = np.arange(30.0)
  rows = Rows(x[:, None], np.sin(x), np.ones(30))
  assert len(phases.find_arguments(rows, (0,), Rule(1), PHASES, is_short=False)) == num
  assert asked[0] == {"num_starts": 4, "num_beams": 8, "most_rough": 0.5}


# --- products of columns ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_columns", "is_asked"), [(1, False), (2, True), (12, True), (13, False)])
def test_products_are_of_two_to_twelve_columns(num_columns, is_asked, monkeypatch):
  asked = []
  monkeypatch.setattr(wave_products, "find_product", lambda *given: asked.append(given))
  list(wave_products.waves_of_products(rows_of(num_columns), range(num_columns), Rule(num_columns), PRODUCTS))
  assert bool(asked) is is_asked


def product_of(num_rows, *, share=1.0, off=0.0, share_off=0.0):
  """The exponent of a column of which such a share of rows tell it exactly, and another one but for an error."""
  rng = np.random.default_rng(0)
  logs = np.column_stack([np.ones(num_rows), rng.uniform(0, 1, num_rows)])
  away = rng.uniform(1, 9, num_rows) * rng.choice((-1, 1), num_rows)
  exact, near = round(share * num_rows), round((share + share_off) * num_rows)
  away[:exact] = 0
  away[exact:near] = off * (-1.0) ** np.arange(near - exact)
  found = wave_products.find_product(logs, np.exp(0.3 + 1.5 * logs[:, 1] + away), PRODUCTS)
  return found and found[0]


def test_each_unknown_has_four_rows_and_there_are_a_thousand_draws(monkeypatch):
  assert product_of(8) == 1.5 and product_of(7) is None
  asked, invert = [], np.linalg.pinv
  monkeypatch.setattr(wave_products.np.linalg, "pinv", lambda some: asked.append(some.shape) or invert(some))
  product_of(50)
  assert asked == [(1024, 2, 2)]


@pytest.mark.parametrize(("share", "off", "share_off", "is_found"), [
  (0.26, 0.0, 0.0, True), (0.24, 0.0, 0.0, False), (0.19, 0.0095, 0.1, True), (0.19, 0.0105, 0.1, False),
  (0.2, 0.095, 0.31, True), (0.2, 0.105, 0.31, False), (0.2, 0.095, 0.27, False)])
def test_a_quarter_of_the_rows_agree_to_a_hundredth_or_half_to_a_tenth(share, off, share_off, is_found):
  assert (product_of(400, share=share, off=off, share_off=share_off) is not None) is is_found


def test_exponents_become_halves_and_thirds_within_a_hundredth_and_under_noise_within_six():
  exact, noisy = (lambda exponent, nearly=nearly: wave_products._simple(
    exponent, PRODUCTS.denominators, nearly) for nearly in PRODUCTS.nearly)
  for plain in (2.0, -0.5, 1 / 3, -4 / 3):
    assert exact(plain + 0.0095) == noisy(plain + 0.055) == plain
  for simple, other in ((exact, 2.0105), (noisy, 2.061), (exact, 0.2505), (noisy, 0.75)):
    assert simple(other) == other


# --- sums of two functions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_columns", "num_rows", "asked_for"), [
  (2, 40, [40]), (2, 39, []), (6, 40, [40]), (7, 40, []), (2, 400, [256])])
def test_sums_are_of_six_columns_of_forty_rows_at_least(num_columns, num_rows, asked_for, monkeypatch):
  asked = []
  monkeypatch.setattr(wave_sums, "_inner", lambda x, *given: asked.append(len(x)) or [])
  wave_sums.waves_of_sums(rows_of(num_columns, num_rows), range(num_columns), Rule(num_columns), SUMS)
  assert asked == asked_for


def test_functions_in_sums_and_what_multiplies_their_waves():
  x, z = (rows := rows_of(2)).x.T
  found = wave_sums._inner(rows.x, (0, 1), Rule(2), SUMS)
  expected = [
    x, z, x**2, z**2, 1 / x, 1 / z, x * z, x / z, z / x, np.sqrt(x), np.sqrt(z), x**3, z**3, x**-2, z**-2, x**-0.5,
    z**-0.5, np.log(x), np.log(z), np.exp(x), np.exp(z), 1 / np.log(x), 1 / np.log(z), np.exp(-x), np.exp(-z),
    x**2 * z, z**2 * x, x**2 / z, z**2 / x]
  np.testing.assert_allclose([each.values + each.middle for each in found], expected)
  # A radian and a half from one frequency to the next, over all rows but a tenth at each end.
  reach = [np.ptp(np.quantile(each, [0.1, 0.9])) for each in expected]
  np.testing.assert_allclose([each.step for each in found], 1.5 / np.array(reach))
  amplitudes = wave_sums._amplitudes(rows.x, (0, 1), np.ones(100), Rule(2), SUMS)
  np.testing.assert_allclose([each.values * each.length for each in amplitudes], [np.ones(100), x, z, 1 / x, 1 / z])


def test_the_plainest_seven_hundred_pairs_are_tried(monkeypatch):
  def on_grid(target, inner, amplitudes, pairs, config):
    assert len(pairs) == 700 and max(map(sum, pairs)) < 60
    raise Enough

  monkeypatch.setattr(wave_sums, "_inner", lambda *given: [None] * 60)
  monkeypatch.setattr(wave_sums, "_on_grid", on_grid)
  with pytest.raises(Enough):
    wave_sums.waves_of_sums(rows_of(2), (0, 1), Rule(2), SUMS)


@pytest.mark.parametrize(("work", "num"), [
  (216_000, 40), (217_000, 24), (548_000, 24), (550_000, 12), (1e9, 12)])
def test_frequencies_are_as_many_as_eight_hundred_million_products_allow(work, num):
  """Beside them are three simple ones; of the second function as many are below 0."""
  assert wave_sums._num_frequencies(work, SUMS) == num


@pytest.mark.parametrize("frequencies", [(1, 2), (2, 3), (3, 1)])
def test_simple_frequencies_are_tried_and_forty_eight_waves_followed(frequencies):
  values = np.random.default_rng(0).normal(size=(2, 200))
  inner = [wave_sums.Function(None, 0.0, each, 1e3) for each in values]  # of the grid no frequency is near
  target = np.cos(frequencies[0] * values[0] + frequencies[1] * values[1])
  one = wave_sums.Amplitude(None, np.full(200, 200**-0.5), 200**0.5)
  waves, _ = wave_sums._on_grid(target / np.linalg.norm(target), inner, [one], [(0, 1)] * 60, SUMS)
  assert len(waves) == 48 and waves[0].frequencies == frequencies


def test_waves_are_followed_in_sixteen_steps_from_half_a_frequency_on(monkeypatch):
  steps = []

  def explained(tried, *given):
    steps.append(float(np.ptp(tried[0, :, 0])) / 2)
    return np.eye(9)[[4]]  # nowhere it is better

  monkeypatch.setattr(wave_sums, "_explained", explained)
  function = wave_sums.Function(None, 0.0, np.zeros(9), 1.0)
  wave = wave_sums.Wave(0.5, (function, function), wave_sums.Amplitude(None, np.zeros(9), 1.0), (0.0, 0.0))
  wave_sums._followed([wave], np.zeros(9), np.ones(9), SUMS)
  np.testing.assert_allclose(steps, 0.5 / 2.5 ** np.arange(16))
  assert steps[-1] < 1e-6


@pytest.mark.parametrize(("fields", "message"), [
  ({"num_frequencies": ()}, "num_frequencies: expected at least one number"),
  ({"edges": 0.5}, "edges: expected a share of at least 0, below a half, got 0.5"), ({"edges": -0.1}, "edges: "),
  ({"functions": (("inv", "lnn"),)}, "functions: unknown name 'lnn'")])
def test_errors(fields, message):
  assert waves_config.WaveSumsConfig(edges=0).edges == 0
  with pytest.raises(InputError, match=message):
    waves_config.WaveSumsConfig(**fields)
