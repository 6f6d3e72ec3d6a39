"""Phases by themselves: ways along the rows, where a stretch ends, what is settled, what may be an argument."""

import dataclasses
import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser
from symformer_jax.language.expression import variable
from symformer_jax.language.rules import Rule
from symformer_jax.sources.waves import phase_unwrapping, phases, wave_products
from symformer_jax.sources.waves.phase_unwrapping import Choices, Unwrapped
from symformer_jax.sources.waves.phases import Argument, Outer, Phases, is_wave

CONFIG = DEFAULT.phases
# Of so long a period the principal value is the only choice that is near.
ONE = 1e6


def follow(x, choices, ways, *, is_curved=False, num_beams=400, most_rough=1e9):
  return phase_unwrapping._follow(np.asarray(x, float), choices, np.asarray(ways, float), is_curved, num_beams,
                                  most_rough)


def alone(values):
  """Choices of which nothing but these values is near."""
  return Choices(np.asarray(values, float), ONE, has_mirror=False)


# --- ways along the rows ---------------------------------------------------------------------------------------------


def cost_of(x, way, is_curved):
  """By polynomials through the rows before: the line through two, and where it is curved the parabola through three."""
  total = phase_unwrapping.SLOW * (way[1] - way[0]) ** 2
  for row in range(2, len(x)):
    line = np.polyval(np.polyfit(x[row - 2 : row], way[row - 2 : row], 1), x[row])
    total += (way[row] - line) ** 2
    if is_curved and row > 2:
      total += (way[row] - np.polyval(np.polyfit(x[row - 3 : row], way[row - 3 : row], 2), x[row])) ** 2
  return total


@pytest.mark.parametrize("is_curved", [False, True])
@pytest.mark.parametrize("has_mirror", [False, True])
def test_of_all_ways_the_one_that_costs_least_is_followed(is_curved, has_mirror, rng):
  num_rows = 4 if is_curved else 5  # of longer curved ways two that are alike in two rows count as one
  for _ in range(4):
    x = np.cumsum(rng.uniform(0.2, 1, num_rows))
    choices = Choices(rng.uniform(0, 1, num_rows), 2.0, has_mirror)
    begun = np.array([(choices.principal[0], each) for each in choices.near(1, choices.principal[:1])[0]])
    ways = [tuple(way) for way in begun]
    for row in range(2, num_rows):
      ways = [(*way, each) for way in ways for each in choices.near(
        row, np.array([way[-1] + (way[-1] - way[-2]) / (x[row - 1] - x[row - 2]) * (x[row] - x[row - 1])]))[0]]
    best = min(ways, key=lambda way: cost_of(x, np.array(way), is_curved))
    np.testing.assert_allclose(follow(x, choices, begun, is_curved=is_curved), best, atol=1e-9)


def test_a_radian_of_the_first_step_costs_a_millionth_of_one_that_is_missed():
  """A step of 1 that misses nothing, or none that misses a little."""
  for missed, is_slow in ((0.9e-3, True), (1.1e-3, False)):
    choices = SimpleNamespace(near=lambda row, expected, missed=missed: np.where(expected > 1, 2.0, missed)[:, None])
    found = follow([0, 1, 2], choices, [(0, 1), (0, 0)])
    assert found.tolist() == ([0, 0, missed] if is_slow else [0, 1, 2])


def test_ways_whose_last_two_rows_are_alike_to_a_millionth_are_one():
  seen = []
  def near(row, expected):
    seen.append(len(expected))
    return np.zeros((len(expected), 1))
  begun = [(0, 0), (1, 3e-7), (2, 3e-6), (3, 6e-6)]
  follow([0, 1, 2, 3, 4], SimpleNamespace(near=near), begun)
  assert seen == [4, 3, 1]
  seen.clear()
  follow([0, 1, 2, 3], SimpleNamespace(near=near), begun, num_beams=2)
  assert seen == [4, 1]  # the two that cost least are alike


def test_of_ways_that_cost_the_same_the_first_ones_are_followed():
  seen = []
  def near(row, expected):
    seen.append(expected.tolist())
    return np.stack([expected + 1, expected], axis=1)
  follow([0, 1, 2, 3], SimpleNamespace(near=near), [(i, i) for i in range(40)], num_beams=20)
  assert seen == [[*range(40)], [*range(20)]]


def test_a_stretch_ends_before_three_rows_that_miss_too_much_in_the_mean():
  x = np.arange(10)
  parabola = alone(0.25 * x**2)  # misses half in each row
  assert len(follow(x, parabola, [(0, 0.25)], most_rough=0.5)) == 10
  for most_rough in (0.3, 0.49):
    assert follow(x, parabola, [(0, 0.25)], most_rough=most_rough).tolist() == [0, 0.25]
  # A line, and from the fifth row on a parabola: 0, 0, 1, 1, 1 are missed; of either sign.
  for sign in (1, -1):
    bent = alone(sign * 0.5 * np.array([0, 0, 0, 0, 2, 6, 12, 20, 30, 42]))
    assert len(follow(x, bent, [(0, 0)], most_rough=0.9)) == 4
    assert len(follow(x, bent, [(0, 0)], most_rough=0.6)) == 3
  both = SimpleNamespace(near=lambda row, expected: expected[:, None] + 0.5)  # of two alike the first
  assert follow(x, both, [(7, 7), (0, 0)], most_rough=0.4).tolist() == [7, 7]
  zigzag = alone(np.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4]))
  assert len(follow(x, zigzag, [(0, 0)], most_rough=0.9)) == 2


def test_stretches_are_the_same_where_their_lengths_and_ranges_are():
  def of(num, size):
    return Unwrapped(0, np.linspace(0, size, num), 0.0)
  same = phase_unwrapping._is_same
  assert same(of(5, 1e6), of(5, 1e6 + 0.9)) and same(of(5, 1e6 + 0.9), of(5, 1e6))
  assert not same(of(5, 1e6), of(5, 1e6 + 1)) and not same(of(5, 1e6), of(6, 1e6))


# --- what is settled -------------------------------------------------------------------------------------------------


def test_roughness_is_what_cubics_through_the_rows_around_miss(rng):
  for num_rows in (5, 9):
    x = np.cumsum(rng.uniform(0.5, 1, num_rows))
    values = 0.1 * rng.uniform(size=num_rows)
    found = phase_unwrapping._around(x, alone(values), num_rows // 2 - 1, True, 8, 1e9)
    missed = []
    for row in range(2, num_rows - 2):
      around = [row - 2, row - 1, row + 1, row + 2]
      missed.append(values[row] - np.polyval(np.polyfit(x[around], values[around], 3), x[row]))
    assert found.begin == 0 and found.roughness == pytest.approx(np.sqrt(np.mean(np.square(missed))), rel=1e-6)
    np.testing.assert_array_equal(found.values, values)
  assert phase_unwrapping._around(x[:4], alone(values[:4]), 1, True, 8, 1e9).roughness == math.inf


def test_what_was_mirrored_near_an_end_is_settled_by_the_rows_around():
  x = np.arange(7.0)
  for row in (2, 3, 4):
    line = 15 * (x - row) - 0.2  # in this row both signs are near; the next row is periods away
    choices = Choices(np.abs(line), 2 * math.pi, has_mirror=True)
    np.testing.assert_allclose(phase_unwrapping._settled(x, choices, np.where(x == row, -line, line)), line)
  line = 15 * (x[:5] - 2) - 0.2
  choices = Choices(np.abs(line), 2 * math.pi, has_mirror=True)
  np.testing.assert_allclose(phase_unwrapping._settled(x[:5], choices, line * [1, 1, -1, 1, 1]), line)
  # Of the two at an end nobody knows better.
  line = x - 1.2
  wrong = np.where(x == 1, -line, line)
  found = phase_unwrapping._settled(x, Choices(np.abs(line), 2 * math.pi, has_mirror=True), wrong)
  np.testing.assert_allclose(found, wrong)


def test_arguments_that_never_settle_are_looked_at_four_times(monkeypatch):
  calls = []
  monkeypatch.setattr(phase_unwrapping, "_by_cubics", lambda x, values: calls.append(1) or -values[2:-2])
  choices = Choices(np.ones(6), 2 * math.pi, has_mirror=True)
  phase_unwrapping._settled(np.arange(6.0), choices, np.ones(6))
  assert len(calls) == 4
  calls.clear()
  monkeypatch.setattr(phase_unwrapping, "_by_cubics", lambda x, values: calls.append(1) or values[2:-2])
  phase_unwrapping._settled(np.arange(6.0), choices, np.ones(6))
  assert len(calls) == 1


# --- what stands around an argument ----------------------------------------------------------------------------------


def test_tops_and_bottoms_may_be_flat_at_their_end_and_there_are_two_of_each():
  assert is_wave(np.array([0.0, 1, 1, -1, -1, 1, 1, -1, -1, 0]), 0.1)
  assert not is_wave(np.array([0.0, 1, 1, -1, -1, 1, 1, 0]), 0.1)
  assert not is_wave(np.array([0.0, -1, -1, 1, 1, -1, -1, 0]), 0.1)


@pytest.mark.parametrize("sign", [1, -1])
def test_half_of_the_turns_are_as_near_to_the_ends_as_a_share_of_the_range(sign):
  values = sign * np.array([0.0, 1.0, -1, 0.75, -1, 0.75, -1, 0])  # the middle top is an eighth of the range off
  assert is_wave(values, 0.126) and not is_wave(values, 0.125)


def sizes(values, **changes):
  return list(phases._sizes(np.asarray(values, float), "cos", dataclasses.replace(CONFIG, **changes)))


def test_a_wave_that_goes_to_1_has_size_1_and_away_counts_too():
  wave = np.tile([1.0, -1.0], 6)
  assert sizes(wave) == [(1.0, 0.0)] and sizes(2 * wave) == [(2.0, 0.0)]
  assert sizes(0.98 * wave) == [(1.0, 0.0), (0.98, 0.0)] and sizes(0.981 * wave) == [(1.0, 0.0)]
  assert sizes(0.25 * wave + 0.75) == [(1.0, 0.0)] == sizes(0.25 * wave - 0.75)
  assert sizes(0.25 * wave + 0.5) == [(1.0, 0.0), (0.25, 0.5)]
  assert sizes(0.25 * wave - 1.0) == [(0.25, -1.0)] and sizes(0.25 * wave + 1.0) == [(0.25, 1.0)]


def test_values_beyond_the_ends_of_a_wave_are_at_its_ends():
  choices = Outer("y", "cos", 2.0, 1.0).choices(np.array([-1.5, -1, 1, 3, 3.5]))
  np.testing.assert_allclose(choices.principal, [math.pi, math.pi, math.pi / 2, 0, 0])
  assert Outer("y", "tan").choices(np.array([2.0])).principal[0] == math.atan(2)


def test_without_a_size_a_link_or_a_power_the_wave_stands_alone():
  names = ("x", "z")
  assert Outer("y", "cos").around(variable(1), 1) == parser.parse("cos(z)", names)
  assert Outer("y", "tan", power=1.0).around(variable(1), 0) == parser.parse("tan(z)*x", names)


def argument(size, outer=None, column=0):
  return Argument(outer or Outer("y", "cos"), column, np.zeros(0), Unwrapped(0, np.array([0.0, size]), 0.0))


def test_arguments_are_alike_whose_ranges_differ_by_less_than_a_fiftieth_of_the_larger():
  one = argument(1.0)
  assert one.is_like(argument(0.981)) and argument(0.981).is_like(one)
  assert not one.is_like(argument(0.979)) and not argument(0.979).is_like(one)
  assert not one.is_like(argument(1.0, column=1)) and not one.is_like(argument(1.0, Outer("y", "tan")))
  assert not argument(50.0).is_like(argument(49.0))


# --- arguments of a table --------------------------------------------------------------------------------------------


def test_principal_values_of_half_a_turn_are_spread_and_those_within_it_smooth():
  def worth(values, is_short, **changes):
    return phases._is_worth_it(np.array(values, float), dataclasses.replace(CONFIG, **changes), is_short)
  assert worth([0, 2.31, 1], False) and not worth([0, 1, 0.5], False)
  assert not worth([0, 2, 1], False, least_spread=2.0)
  # Neighbours differ by 1, squared four times the variance.
  assert worth([0, 1, 0, 1], True, most_uneven=2.01) and not worth([0, 1, 0, 1], True, most_uneven=2.0)
  assert worth([0, 2, 0, 2], True, most_uneven=2.01) and not worth([0, 2, 0, 2], True, most_uneven=1.99)


@pytest.fixture
def asked(monkeypatch):
  """Stretches that unwrapping is said to give, `(number of rows, range, roughness)`; what it was asked."""
  given = SimpleNamespace(stretches=[], calls=[])

  def unwrap(x, choices, **options):
    given.calls.append((x, choices, options))
    return [Unwrapped(begin, np.linspace(0, size, num), rough) for begin, num, size, rough in given.stretches]

  monkeypatch.setattr(phases, "unwrap", unwrap)
  monkeypatch.setattr(phases, "_is_worth_it", lambda *given: True)
  return given


def find(x, y, columns=(0,), is_short=False, **changes):
  config = dataclasses.replace(CONFIG, **{"links": ("y",), "powers": (), "tokens": ("tan",), "least_gaps": (0.0,),
                                          "min_rows": 5, "num_kept": 9, "most_rough": 0.1} | changes)
  x = np.asarray(x, float).reshape(len(y), -1)
  return phases.find_arguments(Rows(x, np.asarray(y, float), np.ones(len(y))), columns, Rule(x.shape[1]), config,
                               is_short=is_short)


def test_arguments_have_rows_enough_go_far_enough_and_are_smooth(asked):
  x, y = np.arange(10), np.linspace(-1, 1, 10)
  def kept(num, size, rough, is_short=False):
    asked.stretches = [(2, num, size, rough)]
    found = find(x, y, is_short=is_short)
    assert all(each.x.tolist() == list(range(2, 2 + num)) for each in found)
    return bool(found)
  assert kept(5, 4.0, 0.01) and not kept(4, 4.0, 0.01)
  assert kept(5, math.pi, 0.01) and not kept(5, 3.14, 0.01)
  assert kept(5, 3.14, 0.01, is_short=True) and not kept(5, math.pi, 0.01, is_short=True)
  assert kept(5, 9.0, 0.099) and not kept(5, 9.0, 0.1)
  assert kept(5, math.pi / 4, 0.024, is_short=True) and not kept(5, math.pi / 4, 0.026, is_short=True)


def test_the_smoothest_for_their_rows_come_first_and_once(asked):
  x, y = np.arange(20), np.linspace(-1, 1, 20)
  # .05 of ten rows is less than .04 of five; ranges that differ by little are one argument, of which the first is kept
  asked.stretches = [(0, 5, 4.0, 0.04), (0, 10, 6.0, 0.05), (0, 15, 6.05, 0.09), (0, 15, 8.0, 0.03)]
  assert [each.unwrapped.roughness for each in find(x, y)] == [0.03, 0.05, 0.04]
  assert [each.unwrapped.roughness for each in find(x, y, num_kept=2)] == [0.03, 0.05]


def test_columns_of_as_many_values_as_a_stretch_has_are_unwrapped(asked):
  y = np.linspace(-1, 1, 8)
  x = np.column_stack([[0, 1, 2, 3, 4, 4, 4, 4], [0, 1, 2, 3, 3, 3, 3, 3], np.arange(8)])
  find(x, y, columns=(0, 1, 2))
  assert [len(each[0]) for each in asked.calls] == [5, 8]
  options = asked.calls[0][2]
  assert options == {"num_starts": CONFIG.num_starts, "num_beams": CONFIG.num_beams, "most_rough": CONFIG.ends}
  np.testing.assert_allclose(asked.calls[1][1].principal, np.arctan(y))


def outers(x, y, is_short=False, **changes):
  config = dataclasses.replace(CONFIG, **{"tokens": ("tan",)} | changes)
  x, y = np.asarray(x, float), np.asarray(y, float)
  found = phases._outers(x, y, Rule(1), config, is_short)
  return [(outer.link, outer.power, values.tolist()) for outer, values in found]


def test_y_is_divided_by_powers_of_a_column_that_has_no_0():
  x, y = np.array([1.0, 2, 4]), np.array([3.0, 8, 4])
  with np.errstate(all="ignore"):
    found = outers(x, y, links=("y",), powers=(1.0, -2.0))
    assert found == [("y", 0.0, [3, 8, 4]), ("y", 1.0, [3, 4, 1]), ("y", -2.0, [3, 32, 64])]
    assert outers(x, y, is_short=True, links=("y",), powers=(1.0,)) == found[:1]
    assert outers([0, 2, 4], y, links=("y",), powers=(1.0,)) == found[:1]
    assert outers(x, 3 * x, links=("y",), powers=(1.0,)) == [("y", 0.0, [3, 6, 12])]  # a constant is no wave
    assert [link for link, *_ in outers(x, y, links=("y", "pow3"), powers=())] == ["y", "pow3"]
    assert outers(x, 8 * y, links=("ln",), powers=()) == []  # of exponentials so large none is a wave


def test_of_more_columns_than_six_none_is_unwrapped(monkeypatch, rng):
  seen = []
  monkeypatch.setattr(phases, "find_arguments", lambda rows, columns, rule, config, *, is_short: (
    seen.append((len(columns), is_short)) or []))
  monkeypatch.setattr(phases, "waves_of_products", lambda rows, columns, rule, config: [variable(0)])
  monkeypatch.setattr(phases, "waves_of_sums", lambda rows, columns, rule, config: [variable(0)])
  source = Phases(SearchOptions())
  for num in (CONFIG.max_columns, CONFIG.max_columns + 1):
    x = rng.uniform(1, 2, (40, num))
    question = SimpleNamespace(task=make_task((x, x[:, 0]), None, SearchOptions()))
    assert source._nodes(question, 0, 5) == (variable(0),) and source._nodes(question, 1, 5) == ()
  assert CONFIG.max_columns == 6
  assert seen == [(6, False), (6, True), (0, False), (0, True)]


def test_an_argument_is_a_table_of_its_column_alone(rng):
  x = rng.uniform(1, 2, (40, 3))
  task = make_task((x, x[:, 0]), None, SearchOptions())
  known = Argument(Outer("y", "cos"), 1, np.linspace(1, 2, 30), Unwrapped(0, np.linspace(0, 9, 30) ** 2, 0.01))
  table, function = Phases(SearchOptions())._tabulated(task, known)
  assert table.column == 1 and table.places[[0, -1]].tolist() == [1, 2] and function.error == 0
  np.testing.assert_allclose(function.values, (9 * (table.places - 1)) ** 2, atol=1e-9)


def test_formulas_of_arguments_come_in_turn_and_of_each_the_first_first(monkeypatch, rng):
  """Beside waves of products and of sums in the first turn."""
  x = rng.uniform(1, 2, (40, 2))
  task = make_task((x, x[:, 0]), ("x", "z"), SearchOptions())
  def parse(text):
    return parser.parse(text, ("x", "z"))
  arguments = [argument(4.0), argument(5.0, Outer("y", "tan"), 1)]
  monkeypatch.setattr(phases, "find_arguments", lambda *given, is_short: arguments)
  monkeypatch.setattr(Phases, "_tabulated", lambda self, task, argument: argument)
  monkeypatch.setattr(phases.unknown_functions, "find_forms", lambda tables, options, config: [
    [(0.0, parse("x**2")), (1.0, parse("x**3"))], [(0.0, parse("z**2"))]])
  monkeypatch.setattr(phases, "waves_of_products", lambda *given: iter([parse("sin(x*z)")]))
  monkeypatch.setattr(phases, "waves_of_sums", lambda *given: iter([parse("sin(x + z)")]))
  found = Phases(SearchOptions())._nodes(SimpleNamespace(task=task), 0, 9)
  assert found == tuple(map(parse, ("cos(x**2)", "tan(z**2)", "sin(x*z)", "sin(x + z)", "cos(x**3)")))
  assert Phases(SearchOptions())._nodes(SimpleNamespace(task=task), 1, 9) == (found[0], found[1], found[4])
  assert len(Phases(SearchOptions())._nodes(SimpleNamespace(task=task), 0, 2)) == 2


def test_it_needs_as_many_rows_as_a_stretch_and_one_of_its_waves(rng):
  def supports(num, **changes):
    config = dataclasses.replace(DEFAULT, phases=dataclasses.replace(CONFIG, **changes))
    task = SimpleNamespace(rule=SimpleNamespace(allows_operator=lambda name: name != "tan"), fit_rows=range(num))
    return Phases(SearchOptions(config=config)).supports(task)
  assert supports(20, min_rows=20) and not supports(19, min_rows=20)
  assert not supports(20, tokens=("tan",))


def test_near_rows_are_told_by_the_median_gap():
  assert phases._apart(np.array([0, 1, 1.5, 2.5, 3.5]), 0.5)[0].tolist() == [0, 1, 1.5, 2.5, 3.5]
  assert phases._apart(np.array([0, 1, 1.5, 2.5, 3.5]), 0.51)[0].tolist() == [0, 1, 2.5, 3.5]
  few_far = [0, 0.4, 0.8, 1.2, 1.6, 9, 17, 25]
  assert phases._apart(np.array(few_far), 0.5)[0].tolist() == few_far
  assert phases._apart(np.array([0.0, 1]), 1.0)[0].tolist() == [0, 1]
  assert phases._apart(np.array([0.0, 1]), 2.0)[0].tolist() == [0]
  # Each from the last that is kept.
  assert list(itertools.pairwise(phases._apart(np.arange(0, 9, 0.5), 2)[0])) == [(i, i + 1) for i in range(8)]


# --- products --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("y", [[0.6, 0.5], [0.6, 0.7]])
def test_of_values_that_rounding_brings_beyond_a_wave_arguments_are_finite(y):
  y = np.array(y)
  beyond = (y - (y[0] + y[1]) / 2) / (np.ptp(y) / 2)
  assert np.max(beyond) > 1 or np.min(beyond) < -1
  waves = list(wave_products._waves(y, Rule(1)))
  assert len(waves) == 7 and all(np.all(np.isfinite(wave.principal)) for wave in waves)


def test_the_factor_of_a_product_is_that_on_which_the_narrowest_quarter_of_the_rows_agrees():
  """Of twenty rows six: five others agree better, and a sixth not at all."""
  factors = np.concatenate([np.full(5, 0.25), np.linspace(2.0, 2.1, 6), 5.0 * 2.0 ** np.arange(9)])
  values = np.linspace(0.5, 1.5, 20)
  wave = wave_products.Wave("sin", 1.0, 0.0, factors * values)
  node = wave_products._formula(wave, ((0, 1),), values)
  [factor] = [part.value for part in expression.walk(node) if part.is_number]
  assert factor == pytest.approx(2.05)
