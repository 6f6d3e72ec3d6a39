"""What the default config makes of functions of one column with inner constants, of curves, and of waves beside."""

import dataclasses

import numpy as np
import pytest
from small_data import parse, task_of

from symformer_jax.engine.config import DEFAULT, inner_functions as inner_config
from symformer_jax.engine.rows import Rows
from symformer_jax.errors import InputError
from symformer_jax.sources.curves import (
  curve_fits,
  curve_shapes,
  inner_functions,
  inner_pairs,
  oscillations,
  pair_fits,
  two_constants,
)

TWO, PAIRS, CURVES, WAVES = DEFAULT.two_constants, DEFAULT.inner_pairs, DEFAULT.curve_fits, DEFAULT.oscillations
X = np.linspace(2, 7, 101)
ROWS = Rows(np.linspace(2, 7, 200)[:, None], np.random.default_rng(0).uniform(3, 8, 200), np.ones(200))
RULE = task_of(1).rule


def test_the_parts_of_the_default_are_those_of_no_arguments():
  for part, make in (
    (TWO, inner_config.TwoConstantsConfig), (PAIRS, inner_config.InnerPairsConfig),
    (CURVES, inner_config.CurveFitsConfig), (WAVES, inner_config.OscillationsConfig)):
    assert part == make()


@pytest.mark.parametrize("make", [inner_config.InnerPairsConfig, inner_config.CurveFitsConfig])
@pytest.mark.parametrize("rounds", [(), ((1, 0),), ((0, 1),), ((1, 1.5),)])
def test_rounds_are_some_of_one_curve_and_one_step_at_least(make, rounds):
  with pytest.raises(InputError, match="rounds: expected pairs of whole numbers of at least 1"):
    make(rounds=rounds)
  assert make(rounds=((1, 1),)).rounds


def test_waves_need_an_argument():
  with pytest.raises(InputError, match="arguments: expected at least one power of the column"):
    inner_config.OscillationsConfig(arguments=())


def steps(values):
  """Of numbers of equal ratios the first, the last, and how many times each one is the one before."""
  values = np.array(values)
  ratios = values[1:] / values[:-1]
  np.testing.assert_allclose(ratios, ratios[0])
  return pytest.approx((values[0], values[-1], ratios[0]), rel=2e-3)


def grid_of(name, x=X):
  return inner_functions.FAMILIES[name].constants(x, TWO)


# --- sums of two, and powers ----------------------------------------------------------------------------------------


def test_exponentials_go_from_a_fifth_to_sixty_over_the_range_by_a_little_more_than_a_quarter():
  for name, size in (("exponentials", 5.0), ("peaks", 49.0), ("exponentials_of_inverse", 1 / 2 - 1 / 7)):
    up, down = (grid_of(name) * size).reshape(2, -1)
    assert steps(up) == (0.2, 60, 1.2814)
    np.testing.assert_allclose(down, -up)


def test_exponents_go_from_one_seventh_to_six_by_a_quarter():
  up, down = grid_of("powers").reshape(2, -1)
  assert steps(up) == (0.15, 6, 1.2424)
  np.testing.assert_allclose(down, -up)


def test_logarithms_end_beside_the_rows_by_a_thousandth_to_ten_ranges():
  *away, natural = grid_of("logarithms")
  assert steps((np.array(away) + 2) / 5) == (1e-3, 10, 1.4924) and natural == 0
  assert steps((grid_of("complements") - 7) / 5) == (1e-3, 10, 1.4924)


def test_steps_and_peaks_stand_within_the_rows_and_a_tenth_beyond():
  for name in ("logistics", "bells", "resonances"):
    places, widths = map(np.unique, inner_functions.SHAPES[name].constants(X, TWO).round(12).T)
    np.testing.assert_allclose((places - 2) / 5, np.arange(-2, 23) / 20, atol=1e-9)
    assert steps(widths / 5) == (0.03, 0.5, 2.0205)


def test_scales_go_from_a_quarter_of_the_rows_but_for_a_fiftieth_to_four_times_the_last():
  x = np.array([1e-9, *np.linspace(2, 7, 101)])  # the least of many rows tells nothing
  scales, exponents = map(np.unique, inner_functions.SHAPES["occupancies"].constants(x, TWO).round(12).T)
  least = np.quantile(x, 0.02)
  assert 2 < least < 2.1 and len(scales) == 14
  np.testing.assert_allclose(scales[[0, -1]], [least / 4, 28])
  assert steps(exponents) == (0.4, 6, 1.5705)
  assert steps(np.unique(inner_functions.SHAPES["bells_of_logarithm"].constants(x, TWO)[:, 1])) == (0.2, 2, 1.7783)


def test_powers_of_y_go_from_an_eighth_to_eight_either_way_four_of_each_family(monkeypatch):
  asked = []
  monkeypatch.setattr(two_constants, "_powers", lambda functions, lifts, powers, num: asked.append(
    (len(functions.rows), lifts, powers, num)) or iter(()))
  two_constants.powers_of_sums(ROWS, 0, RULE, TWO)
  [(num_rows, lifts, powers, num)] = asked
  assert num_rows == 96 and lifts == [(0, 1)] and num == 4
  up, down = np.array(powers).reshape(2, -1)
  assert steps(up) == (0.12, 8, 1.2474)
  np.testing.assert_allclose(down, -up)


def test_constants_beside_a_power_are_a_thousandth_to_three_ranges_off_the_rows(monkeypatch):
  asked = []
  monkeypatch.setattr(two_constants, "_powers", lambda functions, lifts, *rest: asked.append(lifts) or iter(()))
  list(two_constants.powers_beside_constants(ROWS, 0, RULE, TWO))
  size = np.ptp(ROWS.y)
  for lifts in asked:
    below, above = ([lift.constant for lift in lifts if lift.sign == sign] for sign in (1, -1))
    assert steps((ROWS.y.min() - below) / size) == (1e-3, 3, 3.1378)
    assert steps((above - ROWS.y.max()) / size) == (1e-3, 3, 3.1378)


def test_two_sums_of_each_two_families(monkeypatch):
  asked = []
  monkeypatch.setattr(two_constants, "nearest", lambda left, num: asked.append(num) or [])
  monkeypatch.setattr(inner_functions.Functions, "left_of_pairs", lambda functions, *given: np.zeros(
    (len(functions.nodes),) * 2))
  monkeypatch.setattr(inner_functions.Functions, "left_around", lambda *given: np.zeros(0))
  list(two_constants.sums_of_two(Rows(ROWS.x, ROWS.x[:, 0], ROWS.weights), 0, RULE, TWO))
  assert set(asked) == {2}


# --- sums of two of other arguments ----------------------------------------------------------------------------------


def functions_of_pairs(monkeypatch):
  found = []
  monkeypatch.setattr(inner_pairs, "_fitted_sums", lambda link, functions, *rest: found.append(functions) or iter(()))
  list(inner_pairs.fitted_sums(ROWS, 0, RULE, PAIRS, TWO))
  monkeypatch.undo()
  return found[0]


def test_grids_of_pairs_have_the_same_ends_and_are_coarser(monkeypatch):
  functions = functions_of_pairs(monkeypatch)
  assert len(functions.rows) == 96
  low, size = functions.rows.x.min(), np.ptp(functions.rows.x)
  constants = {name: np.array([functions.constants[i][0] for i in functions.families[name, "columns"]])
               for name in ("exponentials", "logarithms")}
  assert steps(constants["exponentials"][:20] * size) == (0.2, 60, 1.35014)
  assert steps((constants["logarithms"][:20] + low) / size) == (1e-3, 10, 1.62378)
  assert [len(each) for each in constants.values()] == [40, 21]


def test_two_places_of_each_two_kinds_are_begun_and_fewer_and_fewer_go_on(monkeypatch):
  asked, begun = [], []
  functions = functions_of_pairs(monkeypatch)
  monkeypatch.setattr(inner_pairs, "nearest", lambda left, num: begun.append(num) or [(0, 0), (1, 1)][:num])
  monkeypatch.setattr(inner_functions.Functions, "left_of_pairs", lambda *given: np.zeros((len(functions.nodes),) * 2))
  monkeypatch.setattr(inner_functions.Functions, "left_around", lambda some, pairs, *given: np.ones(len(pairs)))
  monkeypatch.setattr(pair_fits, "fit", lambda slots, logarithms, goal, num: asked.append(
    (len(logarithms), num)) or pair_fits.Fits(logarithms, np.ones(len(logarithms))))
  inner_pairs._fits(functions, functions.rows, 0, PAIRS, ())
  assert asked == [(1024, 3), (384, 4), (96, 8)] and set(begun) == {2} and len(begun) > 512


# --- curves ----------------------------------------------------------------------------------------------------------


def starts_of(maker):
  """Constants that the first shape of a kind is tried with: the different ones of each."""
  shape = next(each for each in curve_shapes.shapes_of(X, 0, CURVES) if f"_{maker}." in each.values.__qualname__)
  return [np.unique(each) for each in shape.starts.T]


def test_bases_of_powers_are_a_hundredth_to_four_ranges_from_zero():
  distances, exponents, _ = starts_of("power_of_shifted")
  np.testing.assert_allclose(np.exp(distances), [0.01, 0.1, 0.6, 4])
  assert exponents.tolist() == [-3, -1.5, -0.5, 0.35, 0.7, 1.6, 3]


def test_exponents_change_by_these_over_the_rows():
  first, second, _ = starts_of("exponential_of_two")
  assert first.tolist() == second.tolist() == [-12, -3, -0.7, 0.7, 3, 12]
  assert starts_of("power_of_shifted_function")[2].tolist() == [0.5, 1.4, 2.6]
  inner = inner_config.CurveFitsConfig(arguments=())  # of rows that are not above 0 there are no powers
  shapes = curve_shapes.shapes_of(X - 4, 0, inner)
  assert np.unique(shapes[0].starts[:, 2]).tolist() == [-4, -1, 1, 4]
  assert starts_of("product_of_powers")[2].tolist() == [-1, 0.5, 1.5]


def test_peaks_stand_within_the_rows_and_are_a_twentieth_of_them_to_all_of_them_wide():
  middles, _, widths = starts_of("power_of_square")
  assert middles.tolist() == [0.1, 0.35, 0.65, 0.9]
  np.testing.assert_allclose(np.exp(widths), [0.05, 0.25, 1])
  np.testing.assert_allclose(np.exp(starts_of("power_over_exponential")[1]), [0.3, 1.5, 6, 20])


def test_fewer_and_fewer_curves_go_on_and_two_of_a_shape(monkeypatch):
  begun, asked = [], []

  def begin(fits, num):
    begun.append(num)
    shapes = np.repeat(np.arange(200), num)
    return curve_fits._Curves(np.zeros(len(shapes), int), shapes, np.zeros((len(shapes), 3)))

  monkeypatch.setattr(curve_fits._Fits, "_begun", begin)
  monkeypatch.setattr(curve_fits._Fits, "_fit", lambda fits, curves, num: asked.append(
    (len(curves.shapes), num)) or (curves, np.arange(float(len(curves.shapes)))))
  found = curve_fits._Fits([None] * 200, [None], 9).nearest(CURVES)
  assert begun == [6] and asked == [(6 * 200, 5), (96, 8), (32, 12)]
  assert found.shapes.tolist() == list(range(6))  # of twelve two of each


def test_curves_are_fitted_on_ninety_six_rows(monkeypatch):
  asked = []
  monkeypatch.setattr(curve_fits, "shapes_of", lambda x, *given: asked.append(len(x)) or [])
  list(curve_fits.fitted_curves(ROWS, 0, RULE, CURVES))
  assert asked == [96]


# --- waves beside functions ------------------------------------------------------------------------------------------


def test_waves_are_of_twenty_periods_and_five_powers_of_the_column(monkeypatch):
  asked = []
  monkeypatch.setattr(oscillations, "_for_link", lambda link, grid, functions, *given: asked.append(
    (grid, len(functions.rows))) or iter(()))
  list(oscillations.oscillations_of(ROWS, 0, RULE))
  grids = list({grid.argument: grid for grid, _ in asked}.values())
  assert {num for _, num in asked} == {128}
  assert [grid.argument for grid in grids] == [parse(text) for text in ("x", "x**2", "sqrt(x)", "1/x", "x**3")]
  some = ROWS.sample(128, seed=0).x[:, 0]
  for grid, exponent in zip(grids, (1, 2, 0.5, -1, 3), strict=True):
    # Eight tenths of a radian apart over the rows.
    np.testing.assert_allclose(grid.frequencies * np.ptp(some**exponent), 0.8 * np.arange(1, 161))
  assert 160 * 0.8 / (2 * np.pi) == pytest.approx(20, abs=0.5)


def test_waves_are_written_beside_polynomials_up_to_cubes_two_of_each_and_one_function_of_a_family():
  some = Rows(ROWS.x, np.sin(9 * ROWS.x[:, 0]) + 0.1 * ROWS.y, ROWS.weights).sample(64, seed=0)
  few = dataclasses.replace(WAVES, num_frequencies=24)
  functions = inner_functions.Functions(some, 0, RULE, {"powers": inner_functions.FAMILIES["powers"]}, TWO)
  grid = oscillations._grid(some, 0, 1, RULE, few)
  sums = oscillations._Sums(grid, functions, some.y, some.weights)
  # Beside a constant and a line, times a function, beside one, beside squares, beside cubes, and two waves.
  assert [len(list(each)) for each in sums.of_each_kind(0, few)] == [2, 2, 1, 1, 2, 2, 2]


@pytest.mark.parametrize(("num_rows", "is_asked"), [(6, False), (7, True)])
def test_waves_beside_a_cubic_have_a_row_more_than_constants(num_rows, is_asked, monkeypatch):
  asked = []
  monkeypatch.setattr(oscillations, "_for_link", lambda *given: asked.append(given) or iter(()))
  list(oscillations.oscillations_of(Rows(ROWS.x[:num_rows], ROWS.y[:num_rows], np.ones(num_rows)), 0, RULE))
  assert bool(asked) is is_asked
