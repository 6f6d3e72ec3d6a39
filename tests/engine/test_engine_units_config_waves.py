"""What the default config makes of curves of one column, of fractions of waves, and of how many ridges are fitted."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from small_data import parse, task_of

from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.config.ridges import CurvesConfig
from symformer_jax.engine.config.waves import WaveFractionsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.expression import sort_operands
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.curves import curves
from symformer_jax.sources.ridges import ridge_functions, ridges
from symformer_jax.sources.waves import wave_forms, wave_fractions

CURVES, WAVES = DEFAULT.curves, DEFAULT.wave_fractions


def uniform_rows(num_columns, num_rows=200):
  x = np.random.default_rng(0).uniform(1, 3, (num_rows, num_columns))
  return Rows(x, np.sin(5 * x[:, 0]), np.ones(num_rows))


def test_the_parts_of_the_default_are_those_of_no_arguments():
  assert CurvesConfig() == CURVES and WaveFractionsConfig() == WAVES


# --- curves ----------------------------------------------------------------------------------------------------------


def test_curves_are_of_these_powers_factors_and_phases():
  rows = uniform_rows(1)
  grid = curves.Grid(rows, 0, ("exp", "sin"), CURVES)
  exponents = [1, -1, 2, -2, 0.5, -0.5, 3, -3, 1.5, -1.5, 0.25, -0.25, 0.75, -0.75, 1.25, -1.25, 2.5, -2.5, 4, -4, 5, 6]
  thirds = [1 / 3, -1 / 3, 2 / 3, -2 / 3]
  exponents += thirds
  kinds = [(name, amplitude) for name in ("exp", "sin") for amplitude in (0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, *thirds)]
  assert list(grid._kinds) == kinds
  for name in ("exp", "sin"):
    kind = grid._kinds[name, 0.0]
    assert list(dict.fromkeys(grid._exponents[kind].tolist())) == exponents
  sizes = {name: np.max(rows.x) * grid._factors[kind][grid._exponents[kind] == 1]
           for (name, amplitude), kind in grid._kinds.items() if not amplitude}
  np.testing.assert_allclose(sizes["exp"], [*np.geomspace(0.1, 400, 28), *-np.geomspace(0.1, 400, 28)])
  np.testing.assert_allclose(sizes["sin"], np.arange(1, 48) * np.pi / 4)


def test_curves_are_chosen_on_sixty_four_rows_for_four_functions_of_y(monkeypatch):
  asked = []
  monkeypatch.setattr(curves, "_formulas", lambda grid, link, rows, num: asked.append(
    (next(name for name, each in curves.LINKS.items() if each is link), len(grid.rows), num)) or [])
  rows = uniform_rows(1)
  list(curves.curves_of(Rows(rows.x, rows.x[:, 0], rows.weights), 0, task_of(1).rule, CURVES))
  assert asked == [("y", 64, 240), ("inv", 64, 40), ("exp", 64, 40), ("sqrt", 64, 40)]


@pytest.mark.parametrize(("ratio", "is_used"), [(0.9e6, True), (1.1e6, False)])
def test_a_power_a_million_times_the_typical_one_has_a_pole(ratio, is_used):
  x = np.array([[1 / ratio], *[[1.0]] * 20, *[[1.5]] * 10])  # the median of 1/x is 1
  grid = curves.Grid(Rows(x, x[:, 0], np.ones(31)), 0, ("exp",), CURVES)
  assert (-1 in grid._powers) is is_used


def test_of_curves_alone_three_go_on_and_one_with_a_factor_or_a_line(monkeypatch):
  asked = []
  monkeypatch.setattr(curves.Grid, "_different", lambda grid, left, kind, most: asked.append(most) or [])
  rows = uniform_rows(1)
  curves.Grid(rows, 0, ("exp",), CURVES).nearest(rows)
  assert asked == [3, *[1] * 12, *[1] * 13]


# --- fractions of waves ----------------------------------------------------------------------------------------------


def multiples(monkeypatch, num_columns, num_rows=200):
  """Monomials and functions that phases are multiples of, with how many factors and frequencies; the factors."""
  asked, factors = [], []

  def minima(equation, part, some, num_phases, config):
    factors[:] = [each.node for each in some] or factors
    asked.append((sort_operands(tidy(part.node)), len(some), num_phases))
    return []

  monkeypatch.setattr(wave_fractions, "_minima", minima)
  monkeypatch.setattr(wave_fractions, "_usable", lambda nodes, rows, rule: [wave_forms.Part(n, rows.y) for n in nodes])
  rows = Rows(np.ones((num_rows, 1)), np.ones(num_rows), np.ones(num_rows))
  wave_fractions._of_multiples(SimpleNamespace(rows=rows), range(num_columns), None, WAVES)
  return asked, [sort_operands(tidy(node)) for node in factors]


def test_phases_and_factors_of_one_column(monkeypatch):
  asked, factors = multiples(monkeypatch, 1)
  phases = ["x", "x**2", "1/x", "sqrt(x)", "x**(-2)", "x**3", "x**(-0.5)", "x**1.5", "x**(-3)", "x**4", "log(x)",
            "exp(x)", "cos(x)", "sin(x)"]
  assert [node for node, *_ in asked] == list(map(parse, phases))
  assert [num for _, _, num in asked] == [768, *[128] * 13] and {num for _, num, _ in asked} == {8 + 2 + 6}
  assert factors == list(map(parse, [
    "x", "1/x", "x**2", "sqrt(x)", "x**(-2)", "x**(-0.5)", "x**3", "x**(-3)", "log(x)", "exp(x)",
    "cos(x)", "cos(x)*x", "cos(x)/x", "sin(x)", "sin(x)*x", "sin(x)/x"]))


def test_phases_and_factors_of_two_and_of_three_columns(monkeypatch):
  asked, factors = multiples(monkeypatch, 2)
  alone = ("x", "x**2", "1/x", "sqrt(x)", "x**3", "x**(-2)")
  assert {node for node, *_ in asked} == {parse(text) for text in (
    *alone, *(text.replace("x", "z") for text in alone), "x*z", "x/z", "z/x", "(1/x)*(1/z)")}
  assert set(factors) == {parse(text) for text in (
    "x", "1/x", "x**2", "z", "1/z", "z**2", "x*z", "x/z", "z/x", "(1/x)*(1/z)")} and len(factors) == 10
  asked, factors = multiples(monkeypatch, 3)
  assert len({node for node, *_ in asked}) == len(asked) == 3 * 3 + 3 * 4 + 8
  assert set(factors) == {parse(text) for text in ("x", "z", "w", "1/x", "1/z", "1/w")}
  # Of what has three columns there is no factor.
  assert [num for _, num, _ in asked] == [6] * 21 + [0] * 8
  assert {parse(text) for text in ("x", "x**2", "1/x", "x*z/w")} <= {node for node, *_ in asked}
  assert len({node for node, *_ in multiples(monkeypatch, 4)[0]}) == 4 * 3 + 6 * 4 + 4 * 8 + 16
  assert len(multiples(monkeypatch, 8)[0]) == 96


@pytest.mark.parametrize("num", [3, 4])
def test_phases_of_several_columns_have_whole_powers_of_one_and_no_squares_of_more(num, monkeypatch):
  asked, _ = multiples(monkeypatch, num)
  point = np.array([2.0, 3.0, 5.0, 7.0])[:num]  # primes: no two monomials have one value
  found = sorted(float(expression.evaluate(node, point[None])[0]) for node, *_ in asked)
  powers = itertools.product((0, 1, -1, 2), repeat=num)
  expected = [float(np.prod(point ** np.array(each))) for each in powers
              if any(each) and (2 not in each or np.count_nonzero(each) == 1)]
  np.testing.assert_allclose(found, sorted(expected))


def test_an_equation_of_waves_has_four_rows_for_each_constant(monkeypatch):
  for num_rows, num_factors in ((40, 16), (39, 0)):  # ten with a factor
    assert multiples(monkeypatch, 1, num_rows)[0][0][1] == num_factors
  for num_rows, is_asked in ((28, True), (27, False)):  # seven without
    assert wave_fractions.WaveFractions().supports(task_of(1, num_rows=num_rows)) is is_asked


def test_sums_of_two_phases_are_fifteen_pairs_at_most(monkeypatch):
  asked = []
  monkeypatch.setattr(wave_fractions, "_minima_of_pair", lambda equation, pair, config: asked.append(
    {sort_operands(tidy(part.node)) for part in pair}) or [])
  for num, parts in ((1, ("x", "x**2", "1/x", "sqrt(x)", "x**3")), (2, ("x", "x**2", "z", "z**2", "x*z")),
                     (3, ("x", "z", "w", "x*z", "x*w", "z*w"))):
    asked.clear()
    rows = uniform_rows(num)
    wave_fractions._of_sums(wave_fractions.Equation(rows), range(num), task_of(num).rule, WAVES)
    assert set().union(*asked) == set(map(parse, parts)) and len(asked) == math.comb(len(parts), 2)
  asked.clear()
  rows = uniform_rows(4)
  wave_fractions._of_sums(wave_fractions.Equation(rows), range(4), task_of(4).rule, WAVES)
  assert len(asked) == 15


def part_of(values):
  return wave_forms.Part(parse("x"), values)


def minima(shares_at, num_phases=64):
  """Of a column from 0 to 1 in even steps, with what is left at each frequency; the frequencies."""
  values, asked = np.linspace(0, 1, 101), []

  def shares(phases, factors):
    asked.extend(phases[:, -1])
    found = np.ones(len(phases))
    for place, share in shares_at.items():
      found[place] = share
    return found[:, None]

  equation = SimpleNamespace(rows=Rows(values[:, None], values, values + 1), shares=shares)
  return list(wave_fractions._minima(equation, part_of(values), (), num_phases, WAVES)), asked


def test_frequencies_are_eight_tenths_apart_over_nine_tenths_of_the_rows_and_more_than_a_power_bends():
  _, asked = minima({})
  step = 0.8 / 0.9
  first = math.ceil(2.2 / (0.5 * step))  # radians over half of the rows
  np.testing.assert_allclose(asked, step * np.arange(first, 65))
  assert first == 5


@pytest.mark.parametrize(("least", "num_found"), [(0.49, 1), (0.51, 0)])
def test_a_minimum_leaves_half_of_what_is_typical_of_four_frequencies_on_each_side(least, num_found):
  assert len(minima({20: least})[0]) == num_found
  low = {20 + i: 0.6 for i in (-2, -1, 1, 2)}  # with the minimum itself most of nine, not of eleven
  assert not minima(low | {20: 0.4})[0]
  assert len(minima({20 + i: 0.6 for i in (-2, -1, 1)} | {20: 0.4})[0]) == 1


def test_two_frequencies_are_a_radian_apart_each_and_thirty_two():
  values, asked = np.linspace(0, 1, 101), []
  equation = SimpleNamespace(rows=Rows(values[:, None], values, values + 1), shares=lambda phases, factors: (
    asked.append(phases[:, -1]) or np.ones((len(phases), 1))))
  list(wave_fractions._minima_of_pair(equation, (part_of(values), part_of(10 * values)), WAVES))
  np.testing.assert_allclose(asked, np.add.outer(np.arange(33), np.arange(-32, 33)) / 0.9, atol=1e-9)


@pytest.mark.parametrize(("is_of_sums", "num"), [(False, 32), (True, 8)])
def test_so_many_minima_are_fitted_and_those_that_leap_to_a_fiftieth_are_written(is_of_sums, num, monkeypatch):
  fitted, written = [], []
  phase = wave_forms.Phase((part_of(np.arange(9.0)),), np.ones(1))

  def fit(equation, place, config):
    fitted.append(place)
    return place._replace(share=[0.019, 0.021][len(fitted) % 2])

  equation = SimpleNamespace(solve=lambda *given: (None, None))
  monkeypatch.setattr(wave_fractions, "Equation", lambda rows: equation if len(rows) == 128 else None)
  for name in ("_of_sums", "_of_multiples"):
    monkeypatch.setattr(wave_fractions, name, lambda *given: [
      wave_fractions.Place(0.5, 1.0, phase, np.ones(1)) for _ in range(99)])
  for name in ("_with_best_frequency", "_with_best_frequencies"):
    monkeypatch.setattr(wave_fractions, name, fit)
  monkeypatch.setattr(wave_fractions, "_by_half_the_phase", lambda equation, place, config: place)
  monkeypatch.setattr(wave_fractions.wave_forms, "written", lambda *given, nearly: written.append(nearly) or [])
  list(wave_fractions.fractions_of(uniform_rows(1), (0,), None, is_of_sums=is_of_sums))
  assert len(fitted) == num and written == [0.05] * (num // 2)


def test_frequencies_are_fitted_to_a_trillionth_of_a_step_in_two_hundred_looks(monkeypatch):
  asked = []

  def minimize(function, *given, options, **named):
    asked.append(options)
    return SimpleNamespace(fun=0.5, x=np.zeros(1))

  monkeypatch.setattr(wave_fractions.optimize, "minimize_scalar", minimize)
  monkeypatch.setattr(wave_fractions.optimize, "minimize", minimize)
  place = wave_fractions.Place(0.5, 1.0, wave_forms.Phase((part_of(np.arange(9.0)),), np.ones(1)), np.ones(1))
  wave_fractions._with_best_frequency(None, place, WAVES)
  wave_fractions._with_best_frequencies(None, place, WAVES)
  assert [each["xatol"] for each in asked] == [1e-12] * 2 and asked[1]["maxfev"] == 200


# --- ridges ----------------------------------------------------------------------------------------------------------


def test_of_each_function_two_hundred_and_fifty_six_ridges_are_fitted_in_sixteen_steps(monkeypatch):
  def best(units, settings, *, num_phases, num_directions, grids, num_starts):
    shape = (len(units), len(settings), settings[0].amplitudes.shape[0], num_starts)
    gains = np.random.default_rng(0).uniform(0.1, 0.9, shape)
    return (dict.fromkeys(ridge_functions.OUTER, values) for values in (gains, np.zeros(shape, int)))

  class Enough(Exception):
    pass

  def fit_ridges(starts, settings, *, num_steps):
    asked.append((starts.setting.shape, num_steps))
    raise Enough

  asked = []
  monkeypatch.setattr(ridges.ridge_gains, "best_of_all", best)
  monkeypatch.setattr(ridges.ridge_gains, "grid", lambda name, place, units, **named: (np.ones(len(units)), 0.5))
  monkeypatch.setattr(ridges.ridge_gains, "fit_ridges", fit_ridges)
  rows = uniform_rows(3, 128)
  space = ridges._Space(rows, range(3), [], DEFAULT.ridges)
  found = space.found()
  assert {len(some) for some in found.values()} == {256}
  with pytest.raises(Enough):
    space.fitted(found)
  assert asked == [((len(ridge_functions.OUTER), 256), 16)]
