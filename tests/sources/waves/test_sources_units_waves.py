"""Fractions of waves by themselves: the equation, what is tried, where it is met, and how a fraction is written."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression, parser, printing
from symformer_jax.language.expression import variable
from symformer_jax.language.rules import Rule
from symformer_jax.sources.waves import wave_equations, wave_forms, wave_fractions
from symformer_jax.sources.waves.wave_equations import Equation
from symformer_jax.sources.waves.wave_forms import Part, Phase
from symformer_jax.sources.waves.wave_fractions import Place

NAMES = ("x", "y", "z", "w")


def parse(text):
  return parser.parse(text, NAMES)


def config_of(**changes):
  return dataclasses.replace(DEFAULT.wave_fractions, **changes)


def rows_of(x, y, weights=None):
  x = np.asarray(x, float)
  return Rows(x.reshape(len(x), -1), np.asarray(y, float), np.ones(len(x)) if weights is None else weights)


def shown(node):
  return printing.to_text(node, NAMES)


# --- the equation ----------------------------------------------------------------------------------------------------


def test_y_is_counted_from_its_median_in_its_typical_distance():
  equation = Equation(rows_of(np.arange(5), [1, 2, 4, 8, 100], np.array([1.0, 1, 2, 4, 2])))
  assert (equation.centre, equation.size) == (4, 3)  # of the distances 3, 2, 0, 4, 96
  np.testing.assert_allclose(equation.y, [-1, -2 / 3, 0, 4 / 3, 32])
  np.testing.assert_allclose(equation._root**2, np.array([0.1, 0.1, 0.2, 0.4, 0.2]) / (1 + equation.y**2))
  most_alike = Equation(rows_of(np.arange(5), [3, 3, 3, 7, 3]))
  assert (most_alike.centre, most_alike.size) == (3, 4) and most_alike.y.tolist() == [0, 0, 0, 1, 0]


def test_gram_matrices_are_those_of_the_columns(rng):
  t, w = rng.uniform(0, 6, 30), rng.uniform(0.5, 2, 30)
  columns = np.stack([np.ones(30), np.cos(t), np.sin(t)])
  moments = np.array([w @ wave for wave in (*columns, np.cos(2 * t), np.sin(2 * t))])
  np.testing.assert_allclose(wave_equations._grams(moments), (columns * w) @ columns.T, atol=1e-12)
  both = wave_equations._grams(np.stack([moments, 2 * moments]))
  np.testing.assert_allclose(both[1], 2 * both[0])


def test_what_keeps_gram_matrices_regular_is_a_billionth_of_a_thousandth_of_their_trace():
  grams = np.array([np.zeros((3, 3)), np.diag([0.0, 1.0, 3.0])])
  added = wave_equations._regular(grams) - grams
  np.testing.assert_allclose(added[0], 0)
  np.testing.assert_allclose(np.diag(added[1])[0], 4e-12, rtol=1e-9)
  assert wave_equations._RIDGE == 1e-12 and np.count_nonzero(added[1] - np.diag(np.diag(added[1]))) == 0


def test_no_share_is_below_nothing(rng):
  """Beside a fraction that is met exactly rounding has either sign."""
  x = rng.uniform(0.3, 5, 60)
  equation = Equation(rows_of(x, 2 * np.tan(1.3 * x)))
  phases = np.array([1.3, 2.6, 1.0])[:, None] * x
  shares = equation.shares(phases, np.stack([x, np.log(x)]))
  assert np.all(shares >= 0) and np.all(shares[0] < 1e-9) and shares[2, 0] > 1e-4


def test_left_sides_that_are_nothing_have_no_denominator():
  shares, below = wave_equations._left(np.zeros((30, 3)), np.ones((30, 3)))
  assert shares.tolist() == [np.inf] * 3 and below.tolist() == [0, 0, 0]


# --- how a fraction is written ---------------------------------------------------------------------------------------


def test_the_range_of_a_part_is_that_of_its_middle_rows():
  part = Part(variable(0), np.arange(101.0))
  assert part.range(0.5) == 50 and part.range(0.9) == pytest.approx(90) and part.range(1.0) == 100


def test_a_phase_is_the_sum_of_its_multiples():
  phase = Phase((Part(variable(0), np.array([1.0, 2])), Part(variable(1), np.array([3.0, 5]))), np.array([2.0, -1.0]))
  assert phase.values.tolist() == [-1, -1]
  at = np.array([[1.0, 3.0], [2.0, 7.0]])
  np.testing.assert_allclose(expression.evaluate(phase.node(0.5, 0.25), at), 0.5 * (2 * at[:, 0] - at[:, 1]) + 0.25)
  for away, has in ((0.9e-6, False), (1.1e-6, True), (-1.1e-6, True), (-0.9e-6, False), (1e-6, False)):
    numbers = [part.value for part in expression.walk(phase.node(1.0, away)) if part.is_number]
    assert (away in numbers) is has and len(numbers) == 2 + has


@pytest.mark.parametrize(("constant", "size", "forms"), [
  (0.0, 1.0, ["tangent"]), (1e-7, 1.0, ["tangent"]), (0.04, 1.0, ["tangent", "fraction"]), (0.05, 1.0, ["fraction"]),
  (0.06, 1.0, ["fraction"]), (1.0, 1.0, ["half"]), (1.04, 1.0, ["half", "fraction"]),
  (0.96, 1.0, ["half", "fraction"]), (1 + 1e-7, 1.0, ["half"]), (1.06, 1.0, ["fraction"]), (1.0, 0.0, ["wave"]),
  (1.0, 1e-7, ["wave"]), (1.0, 0.04, ["wave", "fraction"]), (1.0, 0.06, ["fraction"]), (3.0, 1.0, ["fraction"]),
  (0.5, 1.0, ["fraction"]), (30.0, 10.0, ["fraction"]), (0.4, 10.0, ["tangent", "fraction"])])
def test_forms_are_those_that_are_near(constant, size, forms):
  """Of sizes that are the same to one part in twenty, or nothing beside the other, both."""
  names = {wave_forms._by_tangent: "tangent", wave_forms._by_half_tangent: "half", wave_forms._by_wave: "wave",
           wave_forms._by_fraction: "fraction"}
  found = list(wave_forms._forms(constant, size, 0.05))
  assert [names[make] for make, _ in found] == forms
  assert [divisor for _, divisor in found] == [{"tangent": size, "half": size}.get(form, constant) for form in forms]


@pytest.mark.parametrize("least", [0.04, 0.05, 0.06])
def test_sizes_at_which_both_forms_are_made_are_less_than_the_share(least):
  """At the share itself one form is."""
  assert [len(list(wave_forms._forms(*sizes, least))) for sizes in ((0.05, 1.0), (1.0, 0.05))] == [
    1 + (least > 0.05)] * 2
  assert len(list(wave_forms._forms(0.75, 1.0, 0.25))) == 1 and len(list(wave_forms._forms(0.75, 1.0, 0.26))) == 2


def test_what_is_rounding_of_the_other_has_no_fraction():
  def has_fraction(constant, size):
    return wave_forms._by_fraction in [make for make, _ in wave_forms._forms(constant, size, 0.05)]
  for small in (0.9e-6, 1e-6):
    assert not has_fraction(1.0, small) and not has_fraction(small, 1.0)
  assert not has_fraction(1.0, 1 + 0.9e-6) and not has_fraction(2.0, 2 - 0.9e-6 * 2)
  for small in (1.1e-6, 1e-5):
    assert has_fraction(1.0, small) and has_fraction(small, 1.0) and has_fraction(1 + small, 1.0)


@pytest.mark.parametrize(("angle", "period", "expected"), [
  (0.5, 2.0, 0.5), (1.4, 2.0, -0.6), (-1.4, 2.0, 0.6), (7.25, 2.0, -0.75), (3.0, 3.0, 0.0), (-4.0, 3.0, -1.0)])
def test_angles_are_less_as_many_periods_as_bring_them_nearest_to_zero(angle, period, expected):
  assert wave_forms._nearest(angle, period) == pytest.approx(expected)


@pytest.mark.parametrize(("lag", "share", "text"), [
  (0.0, 1.0, "tan(x)"), (0.5, 1.0, "tan(x - 0.5)"), (0.5, 0.5, "tan(0.5*x - 0.25)"), (np.pi, 0.5, "-1/tan(0.5*x)"),
  (np.pi / 2, 1.0, "-1/tan(x)"), (-np.pi / 2 + 0.9e-6, 1.0, "-1/tan(x)"), (2 * np.pi, 1.0, "tan(x)")])
def test_tangents_whose_lag_is_a_quarter_turn_are_cotangents(lag, share, text):
  phase = Phase((Part(variable(0), np.ones(3)),), np.array([1.0]))
  node = wave_forms._tangent(phase, lag, share)
  at = np.linspace(0.3, 1.2, 5)[:, None]
  np.testing.assert_allclose(expression.evaluate(node, at), np.tan(share * (at[:, 0] - lag)), rtol=1e-4)
  np.testing.assert_allclose(expression.evaluate(parse(text), at), np.tan(share * (at[:, 0] - lag)), rtol=1e-4)
  assert ("inv" in {part.token for part in expression.walk(node)}) is ("/" in text)


def test_a_tangent_near_to_a_cotangent_stays_one():
  phase = Phase((Part(variable(0), np.ones(3)),), np.array([1.0]))
  node = wave_forms._tangent(phase, np.pi / 2 + 1.1e-6, 1.0)
  assert node.token == "tan"


def waves_of(x, frequency=1.0):
  return np.stack([np.ones(len(x)), np.cos(frequency * x), np.sin(frequency * x)])


@pytest.mark.parametrize("make", ["_by_tangent", "_by_half_tangent", "_by_wave", "_by_fraction"])
@pytest.mark.parametrize("lag", [0.0, 0.7, -2.5])
def test_terms_of_every_form_have_their_values_and_sum_to_the_fraction(make, lag):
  x, above = np.linspace(0.2, 1.1, 9), np.array([0.3, -0.5, 1.1])
  phase, ratio = Phase((Part(variable(0), x),), np.array([1.3])), 0.4
  terms = getattr(wave_forms, make)(phase, lag, above, ratio)
  waves = waves_of(1.3 * x - lag)
  below = {"_by_tangent": waves[1], "_by_half_tangent": 1 + waves[1], "_by_wave": 1,
           "_by_fraction": 1 + ratio * waves[1]}[make]
  np.testing.assert_allclose(sum(term.factor * term.values for term in terms), above @ waves / below)
  for term in terms:
    np.testing.assert_allclose(np.broadcast_to(expression.evaluate(term.node, x[:, None]), 9), term.values, rtol=1e-9)
  assert len(terms) == (2 if make == "_by_wave" else 3)


@pytest.mark.parametrize(("share", "num_terms"), [(0.9e-6, 1), (1.1e-6, 2)])
def test_terms_are_left_out_by_what_they_come_to(share, num_terms):
  """By the median of their values: here a tangent of 2, and a constant."""
  x = np.full(5, np.arctan(2.0))
  phase = Phase((Part(variable(0), x),), np.array([1.0]))
  whole, short = wave_forms.written(phase, [], np.array([0.0, 1.0, 0.0]), np.array([[0, 2 * share, 1]]), nearly=0.05)
  assert len(expression.flatten(whole, "+")) == num_terms and shown(short) == "tan(x)"


@pytest.mark.parametrize(("share", "num_terms"), [(0.049, 1), (0.051, 2)])
def test_what_is_small_beside_the_largest_term_is_left_out_of_the_second_form(share, num_terms):
  x = np.full(5, np.arctan(2.0))
  phase = Phase((Part(variable(0), x),), np.array([1.0]))
  whole, short = wave_forms.written(phase, [], np.array([0.0, 1.0, 0.0]), np.array([[0, 2 * share, 1]]), nearly=0.05)
  assert len(expression.flatten(whole, "+")) == 2 and len(expression.flatten(short, "+")) == num_terms


def test_factors_multiply_the_waves_above_the_line(rng):
  x = rng.uniform(0.2, 1.2, 40)
  phase = Phase((Part(variable(0), x),), np.array([1.0]))
  factor = Part(parse("log(x)"), np.log(x))
  above = np.array([[0.5, 0.0, 0.2], [0.0, 0.3, 0.7]])
  below = np.array([-3.0, 0.4, -0.2])
  for node in list(wave_forms.written(phase, [factor], below, above, nearly=1e-3))[:1]:
    waves = waves_of(x)
    expected = (above[0] @ waves + np.log(x) * (above[1] @ waves)) / (below @ waves)
    np.testing.assert_allclose(expression.evaluate(node, x[:, None]), expected, rtol=1e-9)


# --- what is tried ---------------------------------------------------------------------------------------------------


def usable(texts, x, **rules):
  rule = SimpleNamespace(allows_operator=lambda token: token not in rules["forbidden"]) if rules else Rule(x.shape[1])
  return [shown(part.node) for part in wave_fractions._usable(
    [parse(text) for text in texts], rows_of(x, x[:, 0]), rule)]


def test_parts_are_allowed_finite_and_vary(rng):
  x = np.column_stack([rng.uniform(-1, 1, 20), np.full(20, 2.0)])
  with np.errstate(all="ignore"):
    assert usable(["x", "y", "log(x)", "exp(x)", "x*y"], x) == ["x", "exp(x)", "x*y"]
    assert usable(["x", "exp(x)", "x*y"], x, forbidden=("exp",)) == ["x", "x*y"]
  part, = wave_fractions._usable([parse("x**2")], rows_of(x, x[:, 0]), Rule(2))
  np.testing.assert_allclose(part.values, x[:, 0] ** 2)


def test_monomials_of_one_column_then_of_two():
  found = wave_fractions._monomials((0, 2), ((1, -1), (1,), (2,)))
  assert list(map(shown, found)) == ["x", "1/x", "z", "1/z", "x*z"]


def asked_of_multiples(monkeypatch, x, *, rule=None, **changes):
  asked = []
  monkeypatch.setattr(wave_fractions, "_minima", lambda equation, part, factors, num_phases, config: asked.append(
    (shown(part.node), [shown(factor.node) for factor in factors], num_phases)) or [])
  rows = rows_of(x, np.cos(x[:, 0]))
  assert wave_fractions._of_multiples(Equation(rows), range(x.shape[1]), rule or Rule(x.shape[1]),
                                      config_of(**changes)) == []
  return asked


def test_of_one_column_functions_and_waves_are_phases_and_factors(monkeypatch, rng):
  changes = {"arguments": (((1, 2),), ((1,),), ((1,),)), "factors": (((-1,),), ((1,),), ((1,),)), "functions": ("ln",),
             "waves": ("sin",), "beside_waves": (0, 2), "num_phases": (70, 9)}
  asked = asked_of_multiples(monkeypatch, rng.uniform(1, 2, (60, 1)), **changes)
  assert [(name, num) for name, _, num in asked] == [("x", 70), ("x**2", 9), ("log(x)", 9), ("sin(x)", 9)]
  for _, factors, _ in asked:
    x = np.full((1, 1), 1.7)
    assert [float(expression.evaluate(parse(factor), x)[0]) for factor in factors] == pytest.approx(
      [1 / 1.7, np.log(1.7), np.sin(1.7), np.sin(1.7) * 1.7**2])
  two = asked_of_multiples(monkeypatch, rng.uniform(1, 2, (60, 2)), **changes)
  assert two == [("x", ["x", "y"], 70), ("y", ["x", "y"], 70)]
  few = asked_of_multiples(monkeypatch, rng.uniform(1, 2, (60, 2)), max_arguments=1, **changes)
  assert [name for name, *_ in few] == ["x"]


@pytest.mark.parametrize(("num_rows", "has_factors"), [(29, False), (30, True)])
def test_three_more_constants_need_their_rows(monkeypatch, rng, num_rows, has_factors):
  asked = asked_of_multiples(monkeypatch, rng.uniform(1, 2, (num_rows, 2)), rows_per_constant=3)
  assert {bool(factors) for _, factors, _ in asked} == {has_factors}


def test_phases_of_three_columns_have_no_factors(monkeypatch, rng):
  changes = {"arguments": (((1,),), ((1,),), ((1,), (1,), (1,), (1,))), "factors": (((1,),), ((1,),), ((1,),))}
  asked = asked_of_multiples(monkeypatch, rng.uniform(1, 2, (60, 4)), **changes)
  for name, factors, _ in asked:
    assert bool(factors) == (sum(letter in name for letter in NAMES) <= 2)
  assert len(asked) == 4 + 6 + 4 + 1


def test_pairs_of_monomials_are_asked_the_first_ones_first(monkeypatch, rng):
  asked = []
  monkeypatch.setattr(wave_fractions, "_minima_of_pair", lambda equation, pair, config: asked.append(
    tuple(shown(part.node) for part in pair)) or ["place"])
  for num_columns, expected in ((1, [("x", "x**2"), ("x", "1/x"), ("x**2", "1/x")]), (2, [("x", "y")]),
                                (3, [("x", "y"), ("x", "z"), ("y", "z")]), (4, [
                                  ("x", "y"), ("x", "z"), ("y", "z"), ("x", "w")])):
    asked.clear()
    x = rng.uniform(1, 2, (40, num_columns))
    config = config_of(summed=(((1, 2, -1),), ((1,),), ((1,),)), num_pairs=4)
    found = wave_fractions._of_sums(Equation(rows_of(x, x[:, 0])), range(num_columns), Rule(num_columns), config)
    assert asked == expected and found == ["place"] * len(expected)


# --- where the equation is met ---------------------------------------------------------------------------------------


def test_places_are_least_among_their_neighbours():
  shares = np.array([[3.0, 1, 2, 2, 5], [1, 1, 4, 3, 0]])
  assert wave_fractions._are_least(shares, (1,)).tolist() == [
    [False, True, False, True, False], [True, True, False, False, True]]
  assert wave_fractions._are_least(shares, (0,)).tolist() == [
    [False, True, True, True, False], [True, True, False, False, True]]
  assert wave_fractions._are_least(shares, (0, 1)).tolist() == [
    [False, True, False, False, False], [True, True, False, False, True]]


class Known:
  """An equation of which the shares are known by the frequency: of multiples of the first column."""

  def __init__(self, x, shares):
    self.rows, self.shares_at, self.asked, self.factors = rows_of(x, x), shares, [], None

  def shares(self, phases, factors):
    self.factors = factors
    frequencies = phases[:, -1] / self.rows.x[-1, 0]
    self.asked.extend(frequencies)
    return np.stack([self.shares_at(frequencies) for _ in range(1 + len(factors))], axis=1)


def test_minima_over_the_frequency_lie_a_dip_below_their_neighbours():
  x = np.linspace(0, 10, 101)
  part, factors = Part(variable(0), x), [Part(variable(0), 4 * x + 4)]
  config = config_of(step=0.9, most_rows=0.9, least_phase=1.0, num_around=2, dip=0.5)
  step = 0.9 / 9  # over nine tenths of the rows; half of them span 5, so that a tenth turns half a radian

  def shares(frequencies):
    numbers = np.round(frequencies / step).astype(int)
    return np.select([numbers == 7, numbers == 12, numbers == 16], [0.49, 0.51, 0.1], 1.0)
  equation = Known(x, shares)
  found = list(wave_fractions._minima(equation, part, factors, 20, config))
  np.testing.assert_allclose(equation.asked, step * np.arange(2, 21))  # from the first that turns one radian
  np.testing.assert_allclose(equation.factors, [(x + 1) / 11])
  assert [(round(place.phase.frequencies[0] / step), place.share, place.around, len(place.factors))
          for place in found] == [(7, 0.49, 1.0, 0), (7, 0.49, 1.0, 1), (16, 0.1, 1.0, 0), (16, 0.1, 1.0, 1)]
  assert all(place.steps == pytest.approx([step]) and place.phase.parts == (part,) for place in found)
  assert found[1].factors == (factors[0],)


def test_minima_at_the_ends_are_told_by_their_mirror_image():
  x = np.linspace(0, 10, 101)
  config = config_of(step=0.9, least_phase=0.1, num_around=2)
  equation = Known(x, lambda frequencies: np.where(np.round(frequencies / 0.1) == 1, 0.1, 1.0))
  [place] = wave_fractions._minima(equation, Part(variable(0), x), [], 8, config)
  assert (place.share, place.around) == (0.1, 1.0) and place.leap == 0.1
  assert equation.factors.shape == (0, 101)


@pytest.mark.parametrize(("num_phases", "is_asked"), [(6, False), (7, True)])
def test_there_are_more_frequencies_than_neighbours(num_phases, is_asked):
  x = np.linspace(0, 10, 101)
  equation = Known(x, lambda frequencies: np.ones(len(frequencies)))
  config = config_of(step=0.9, least_phase=1.0, num_around=2)  # the second is the first that turns enough
  assert list(wave_fractions._minima(equation, Part(variable(0), x), [], num_phases, config)) == []
  assert bool(equation.asked) is is_asked


def test_parts_that_are_the_same_in_half_of_the_rows_are_not_asked():
  x = np.where(np.arange(40) < 32, 1.0, np.arange(40))
  equation = Known(np.arange(40.0), None)
  assert list(wave_fractions._minima(equation, Part(variable(0), x), [], 50, config_of())) == []
  whole = Part(variable(0), np.arange(40.0))
  for pair in ((whole, Part(variable(0), x)), (Part(variable(0), x), whole)):
    assert list(wave_fractions._minima_of_pair(equation, pair, config_of())) == []


def test_minima_over_two_frequencies_of_which_neither_is_zero():
  grid = np.array([(a, b) for a in np.linspace(0, 10, 11) for b in np.linspace(0, 20, 11)])
  parts = tuple(Part(variable(i), column) for i, column in enumerate(grid.T))
  config = config_of(step_of_sums=1.0, most_rows=0.9, num_phases_of_sums=6, num_around=1, dip=0.5, least_phase=1.5)
  steps = [1 / part.range(0.9) for part in parts]
  known = {(0, 2): 0.1, (3, 0): 0.1, (3, 3): 0.2, (5, -4): 0.3, (6, 6): 0.1, (1, 1): 0.1, (2, -6): 0.7}

  class Sums:
    rows = rows_of(grid, grid[:, 0])

    def shares(self, phases, factors):
      assert factors.shape == (0, len(grid))
      found = []
      for phase in phases:
        a, b = np.linalg.lstsq(grid, phase, rcond=None)[0] / steps
        found.append([known.get((round(a), round(b)), 1.0)])
      return np.array(found)

  found = list(wave_fractions._minima_of_pair(Sums(), parts, config))
  assert [(tuple(np.round(place.phase.frequencies / steps).astype(int)), place.share) for place in found] == [
    ((3, 3), 0.2), ((5, -4), 0.3), ((6, 6), 0.1)]  # one step of each turns too little over half of the rows
  assert all(place.around == 1 and place.phase.parts == parts for place in found)
  np.testing.assert_allclose(found[0].steps, steps)


# --- frequencies that are fitted -------------------------------------------------------------------------------------


@pytest.fixture
def x(rng):
  return rng.uniform(0.3, 5, 80)


def place_of(x, frequency, step, **changes):
  phase = Phase((Part(variable(0), x),), np.array([frequency]))
  return Place(0.5, 1.0, phase, np.array([step]), ())._replace(**changes)


@pytest.mark.parametrize("right", [2.9, 3.1, 3.0])
def test_a_frequency_is_fitted_within_a_step(x, right):
  equation = Equation(rows_of(x, np.tan(right * x)))
  found = wave_fractions._with_best_frequency(equation, place_of(x, 3.0, 0.12), config_of())
  assert found.phase.frequencies == pytest.approx([right], abs=1e-6) and found.share < 1e-9 and found.around == 1.0
  far = wave_fractions._with_best_frequency(equation, place_of(x, right + 0.5, 0.12), config_of())
  assert abs(far.phase.frequencies[0] - right - 0.5) <= 0.12


def test_two_frequencies_are_fitted_within_their_steps(rng):
  x = rng.uniform(-3, 3, (80, 2))
  equation = Equation(rows_of(x, np.tan(1.3 * x[:, 0] - 0.7 * x[:, 1])))
  parts = tuple(Part(variable(i), x[:, i]) for i in range(2))
  begun = Place(0.5, 1.0, Phase(parts, np.array([1.31, -0.68])), np.array([0.05, 0.06]), ())
  found = wave_fractions._with_best_frequencies(equation, begun, config_of())
  np.testing.assert_allclose(found.phase.frequencies, [1.3, -0.7], atol=1e-4)
  assert found.share < 1e-6 < begun.share
  once = wave_fractions._with_best_frequencies(equation, begun, config_of(max_looks=5))
  assert once.share > found.share


def test_places_are_asked_with_their_factors(x):
  asked = []
  equation = SimpleNamespace(left=lambda values, factors: asked.append((values, factors)) or np.array([0.25, 1.0, 1]))
  place = place_of(x, 2.0, 0.5, factors=(Part(parse("log(x)"), np.log(x)),))
  assert place.left(equation, place.moved(np.array([0.5])))[0] == 0.25
  [(values, factors)] = asked
  np.testing.assert_allclose(values, 2.25 * x)
  np.testing.assert_array_equal(factors, [np.log(x)])


@pytest.mark.parametrize(("second", "is_halved"), [(0.019, True), (0.02, False), (0.021, False)])
def test_where_two_fractions_are_the_same_the_phase_is_halved(x, second, is_halved):
  equation = SimpleNamespace(left=lambda values, factors: np.array([0.0, 2 * second, 9.0]))
  place = place_of(x, 3.0, 0.1, around=2.0)
  found = wave_fractions._by_half_the_phase(equation, place, config_of(leap=0.02))
  assert found.phase.frequencies.tolist() == [1.5 if is_halved else 3.0]


# --- the way through all ---------------------------------------------------------------------------------------------


def asked_in_order(monkeypatch, leaps, *, is_of_sums=False, **changes):
  """Which places are fitted and which are written, of places that leave `before, after` of what is around them."""
  x, fitted = np.linspace(1, 2, 40), []
  places = [place_of(x, float(k + 1), 0.1, share=before) for k, (before, _) in enumerate(leaps)]

  def fit(equation, place, config):
    fitted.append(int(place.phase.frequencies[0]) - 1)
    return place._replace(share=leaps[fitted[-1]][1])

  def other(*_):
    raise AssertionError("of the other kind")
  monkeypatch.setattr(wave_fractions, "_of_multiples", other if is_of_sums else lambda *_: places)
  monkeypatch.setattr(wave_fractions, "_of_sums", (lambda *_: places) if is_of_sums else other)
  monkeypatch.setattr(wave_fractions, "_with_best_frequency", other if is_of_sums else fit)
  monkeypatch.setattr(wave_fractions, "_with_best_frequencies", fit if is_of_sums else other)
  monkeypatch.setattr(wave_fractions, "_by_half_the_phase", lambda equation, place, config: place)
  monkeypatch.setattr(wave_forms, "written", lambda phase, factors, below, above, *, nearly: [
    (int(phase.frequencies[0]) - 1, nearly)])
  found = list(wave_fractions.fractions_of(rows_of(x, np.cos(x)), [0], Rule(1), config_of(**changes),
                                           is_of_sums=is_of_sums))
  assert all(nearly == 0.125 for _, nearly in found)
  return fitted, [place for place, _ in found]


@pytest.mark.parametrize("is_of_sums", [False, True])
def test_the_nearest_are_fitted_and_those_that_leap_are_written_the_nearest_first(monkeypatch, is_of_sums):
  leaps = [(0.4, 0.01), (0.1, 0.3), (0.2, 0.001), (0.3, 0.25), (0.5, 0.0)]
  num = (4, 2) if not is_of_sums else (2, 4)
  fitted, written = asked_in_order(monkeypatch, leaps, is_of_sums=is_of_sums, num_fitted=num, leap=0.25, nearly=0.125)
  assert fitted == [1, 2, 3, 0] and written == [2, 0]


def test_rows_are_some_and_a_target_that_says_nothing_is_not_looked_at(monkeypatch, rng):
  seen = []
  monkeypatch.setattr(wave_fractions, "_of_multiples", lambda equation, columns, *_: seen.append(
    (equation, columns)) or [])
  x = np.column_stack([np.ones(60), rng.uniform(1, 2, 60)])
  rows = rows_of(x, x[:, 1])
  assert list(wave_fractions.fractions_of(rows, [0, 1], Rule(2), config_of(num_rows=20))) == []
  [(equation, columns)] = seen
  assert columns == [1]
  np.testing.assert_array_equal(equation.rows.x, rows.sample(20, seed=0).x)
  for odd, some in ((rows, [0]), (rows_of(x, np.full(60, 3.0)), [0, 1])):
    assert list(wave_fractions.fractions_of(odd, some, Rule(2))) == [] and len(seen) == 1


def test_the_source_asks_for_multiples_first_then_for_sums(monkeypatch, rng):
  given = []
  monkeypatch.setattr(wave_fractions, "fractions_of", lambda *asked, is_of_sums: given.append(
    (*asked, is_of_sums)) or "found")
  monkeypatch.setattr(wave_fractions.pair_sums, "allowed", lambda *asked: asked)
  config = dataclasses.replace(DEFAULT, wave_fractions=config_of(turns=(5, 3), rows_per_constant=2))
  source, x = wave_fractions.WaveFractions(config), rng.uniform(1, 2, (14, 1))
  task = SimpleNamespace(fit_rows=rows_of(x, x[:, 0]), columns=(0,), rule=Rule(1))
  question = SimpleNamespace(task=task)
  for turn in (0, 1):
    assert source._nodes(question, turn, 9) == ("found", task, 9, config.terms)
  assert given == [(task.fit_rows, (0,), task.rule, config.wave_fractions, is_of_sums) for is_of_sums in (False, True)]
  assert source.turns == (5, 3) and source.supports(task)
  assert not source.supports(SimpleNamespace(fit_rows=rows_of(x[:13], x[:13, 0]), columns=(0,), rule=Rule(1)))
  assert wave_fractions.WaveFractions.needs == ("+", "*", "inv", "cos")
