"""Relations of slopes by themselves: which are looked for, what errors they may leave, what columns they make."""

import itertools
import math

import numpy as np
import pytest
from slope_relations import CONFIG, NAMES, SHOWN, slopes_of, with_config

from symformer_jax.language import expression, parser
from symformer_jax.sources.reductions import invariances, relations

pytestmark = pytest.mark.usefixtures("errors_ignored")


@pytest.fixture
def x(rng):
  return rng.uniform(1, 2, (20, 3))


# --- shares and simple numbers ---------------------------------------------------------------------------------------


def test_a_share_is_the_median_of_rows_that_have_a_size():
  assert relations._median_share(np.array([1.0, -2, 5]), np.array([2.0, 8, 0])) == 0.375
  assert relations._median_share(np.array([1.0]), np.array([0.0])) == math.inf
  assert relations._median_share(np.array([np.nan]), np.array([1.0])) == math.inf
  assert relations.share_of_two(np.array([3.0, 0, 5]), np.array([4.0, 0, 12])) == pytest.approx(
    (1 / 5 + 7 / 13) / 2)
  assert relations.share_left(np.array([[1.0, 2.0], [3.0, -1.0]]), np.array([2.0, 3.0])) == (8 / 6 + 3 / 6) / 2


@pytest.mark.parametrize("values", [[3.0], [3.0, 1], [4.0, 1, 2], [4.0, -1, 2, 9], [1.0, np.inf, np.inf, 2, 3],
                                    [1.0, 2, np.nan, 0], [np.inf, np.inf]])
def test_the_median_is_that_of_numpy(values):
  np.testing.assert_equal(relations._median(np.array(values)), np.median(values))


@pytest.mark.parametrize(("value", "expected"), [
  (2.125, 2.0), (2.126, 2.126), (1.875, 2.0), (2.4375, 2.5), (2.4374, 2.4374), (2.28125, 2.25), (-1.52, -1.5),
  (0.0625, 0.0)])
def test_a_simple_number_is_within_the_least_chance_of_a_share(value, expected):
  assert relations.simplest(value, lambda k: 0.0, CONFIG) == expected
  powers = invariances._simplest_powers(np.zeros((3, 1)), np.array([value]), with_config(
    power_denominators=CONFIG.denominators, fine=math.inf))
  assert powers.tolist() == [expected]


def test_a_simple_number_leaves_so_many_times_as_much_or_little():
  left = {2.0625: 2.0**-10, 2.0: 3 * 2.0**-10}
  assert relations.simplest(2.0625, left.get, CONFIG) == 2.0
  assert relations.simplest(2.0625, {**left, 2.0: 3.001 * 2.0**-10}.get, with_config(denominators=(1,))) == 2.0625
  least = {2.0625: 0.0, 2.0: CONFIG.fine}
  assert relations.simplest(2.0625, least.get, CONFIG) == 2.0
  assert relations.simplest(2.0625, {**least, 2.0: 2 * CONFIG.fine}.get, with_config(denominators=(1,))) == 2.0625
  assert relations.simplest(math.inf, lambda k: 0.0, CONFIG) == math.inf


@pytest.mark.parametrize(("left_by_given", "left_by_simple", "is_taken"), [
  (0.25, 0.75, True), (0.25, 0.8, False), (0.0, 2.0**-5, True), (0.0, 2.0**-4, False)])
def test_simple_powers_leave_so_many_times_as_much_or_little(monkeypatch, left_by_given, left_by_simple, is_taken):
  given = np.array([1.03, -2.04])
  monkeypatch.setattr(invariances, "share_left",
                      lambda growths, powers: left_by_given if powers is given else left_by_simple)
  found = invariances._simplest_powers(np.zeros((3, 2)), given, with_config(fine=2.0**-5, power_denominators=(1,)))
  np.testing.assert_array_equal(found, [1, -2] if is_taken else given)


def test_all_powers_are_simple_or_none():
  config = with_config(fine=math.inf)
  np.testing.assert_array_equal(
    invariances._simplest_powers(np.zeros((3, 2)), np.array([1.01, 0.34]), config), [1, 1 / 3])
  np.testing.assert_array_equal(
    invariances._simplest_powers(np.zeros((3, 2)), np.array([1.01, 0.44]), config), [1.01, 0.44])


def test_simple_numbers_are_whole_numbers_of_the_shares():
  assert all(relations.is_simple(value, CONFIG) for value in (0.25, -1.5, 3.0, 1 / 3))
  assert not any(relations.is_simple(value, CONFIG) for value in (0.2, 1 / 6, math.inf))


@pytest.mark.parametrize(("values", "powers", "divisors"), [
  ([1.0, 2], {1.0, 0.0, -1.0, 0.5, 2.0}, {1.0, 0.0, -1.0, 0.5, 2.0}), ([0.0, 2], {1.0}, {0.0}),
  ([-1.0, 2], {1.0, 0.0, -1.0}, {1.0, 0.0, -1.0, 2.0}), ([-1.0, 0], {1.0}, {0.0})])
def test_powers_are_smooth_or_divide_by_the_signs_of_a_column(values, powers, divisors):
  tried = (1.0, 0.0, -1.0, 0.5, 2.0)
  assert {p for p in tried if invariances._has_power(np.array(values), p)} == powers
  assert {p for p in tried if relations.may_divide(np.array(values), p)} == divisors
  assert not relations.may_divide(np.array(values), math.nan)


@pytest.mark.parametrize("exponent", [0.0, 1.0, -1.0, 0.5, 3.0])
def test_derivatives_are_those_of_powers_and_of_the_logarithm(exponent):
  at, step = np.array([0.5, 1.0, 2.0]), 1e-6
  def function(v):
    return np.log(v) if exponent == 0 else v**exponent
  numeric = (function(at + step) - function(at - step)) / (2 * step)
  np.testing.assert_allclose(invariances._derivative(at, exponent), numeric, rtol=1e-8)


# --- factors, columns that do not matter, summands -------------------------------------------------------------------


def test_powers_of_a_column_are_factors_and_idle_columns_go(x):
  y = x[:, 0] ** 1.5 * np.sin(x[:, 1])
  slopes = np.column_stack([1.5 * y / x[:, 0], x[:, 0] ** 1.5 * np.cos(x[:, 1]), np.full(20, 1e-3)])
  first, idle = (c for c in invariances._powers(x, y, slopes, CONFIG) if c.dropped != 1)
  assert first[1:] == (0, {}, ((0, 1.5),), True, None, 0.0, 0.0) and first.error < 1e-12
  assert idle[1:] == (2, {}, (), True, None, 0.0, 0.0)
  assert idle.error == pytest.approx(1e-3 * np.std(x[:, 2]) / np.std(y))
  odd = y * x[:, 0] ** 0.0234
  [change] = invariances._powers(x[:, :1], odd, 1.5234 * (odd / x[:, 0])[:, None], CONFIG)
  assert change.divisor == ((0, pytest.approx(1.5234)),) and not change.is_simple


def test_the_least_exponent_of_a_factor_is_the_least_part():
  x, y = np.full((8, 1), 2.0), np.arange(1.0, 9.0)
  for exponent, divisor in ((0.25, ((0, 0.25),)), (0.24, ())):
    config = with_config(least_part=0.25, denominators=(1000,))
    [change] = invariances._powers(x, y, exponent * y[:, None] / 2, config)
    assert change.divisor == divisor


def test_rows_without_a_value_tell_no_power_and_columns_that_cannot_divide_are_none():
  x = np.linspace(-1, 1, 10)[:, None]
  y = np.where(x[:, 0] < 0, 0.0, x[:, 0] ** 2)
  [change] = invariances._powers(x, y, 2 * np.abs(x) * (x > 0), CONFIG)
  assert change.divisor == ((0, 2.0),) and change.error == 0
  positive = np.abs(x) + 1
  root = np.sqrt(positive[:, 0])
  assert [c.divisor for c in invariances._powers(positive, root, 0.5 / root[:, None], CONFIG)] == [((0, 0.5),)]
  assert not list(invariances._powers(-positive, root, -0.5 / root[:, None], CONFIG))
  assert not list(invariances._powers(positive, np.zeros(10), np.zeros((10, 1)), CONFIG))
  two = np.column_stack([positive, positive])
  slopes = np.column_stack([np.full(10, np.nan), 0.5 / root])
  assert [c.dropped for c in invariances._powers(two, root, slopes, CONFIG)] == [1]


@pytest.mark.parametrize(("text", "powers"), [("3*x**2", (1.0, 2.0)), ("2*log(x)", (1.0, 0.0)), ("-1.5*x", (1.0, 2.0))])
def test_terms_of_one_column_are_subtracted(x, text, powers):
  node = parser.parse(f"{text} + y*z", NAMES)
  y = expression.evaluate(node, x)
  found = list(invariances._summands(x, y, slopes_of(node, x), with_config(powers=powers)))
  assert [(c.dropped, SHOWN(c.summand), c.is_simple, c.replaced, c.divisor) for c in found] == [
    (0, SHOWN(parser.parse(text, NAMES)), True, {}, ())]
  assert found[0].error < 1e-6


def test_terms_that_are_no_numbers_there_are_none():
  x = np.linspace(-2, -1, 12)[:, None]
  config = with_config(powers=(0.0, -1.0, 0.5))
  assert list(invariances._summands(x, np.log(-x[:, 0]), 1 / x, config)) == []
  [change] = invariances._summands(x, 2 / x[:, 0], -2 / x**2, config)
  assert SHOWN(change.summand) == "2/x"
  assert list(invariances._summands(x, 3 * x[:, 0] ** 2, 6 * x, with_config(powers=(2.0,)))) == []


@pytest.mark.parametrize(("wave", "reach", "num"), [
  (1.3e-3, 1.1, 1), (1.5e-3, 1.1, 0), (0, 1.1, 1), (0, 0.9, 0)])
def test_terms_are_sure_and_have_a_part_in_the_target(wave, reach, num):
  """`wave`: what slopes differ by; `reach`: of the term, in the least that counts."""
  x, sign = np.linspace(1, 2, 40)[:, None], np.where(np.arange(40) % 2, 1, -1)
  y = x[:, 0] / (reach * CONFIG.least_part)
  slopes = (1 + wave * sign)[:, None]
  assert len(list(invariances._summands(x, y, slopes, with_config(powers=(1.0,))))) == num


def test_terms_just_as_sure_as_asked_count_and_say_whether_they_are_simple():
  x, sign = np.linspace(1, 2, 40)[:, None], np.where(np.arange(40) % 2, 1, -1)
  slopes = (1.234567 + 1e-4 * sign)[:, None]
  [change] = invariances._summands(x, x[:, 0], slopes, with_config(powers=(1.0,)))
  assert not change.is_simple and change.error > 1e-5
  for sure, num in ((change.error, 1), (np.nextafter(change.error, 0), 0)):
    assert len(list(invariances._summands(x, x[:, 0], slopes, with_config(powers=(1.0,), sure=sure)))) == num
  # All of y is no part of it that is larger than y.
  assert not list(invariances._summands(x, x[:, 0], np.ones((40, 1)), with_config(powers=(1.0,), least_part=1.0)))


# --- functions of two columns ----------------------------------------------------------------------------------------


def joined(monkeypatch, x, slopes, **changes):
  """Columns, powers and ratios of what is joined."""
  found = []
  monkeypatch.setattr(invariances, "_joined", lambda x, columns, powers, ratio, slopes, config: found.append(
    (columns, powers, round(ratio, 9))) or [])
  assert list(invariances._sums(x, slopes, with_config(**changes))) == []
  return found


def test_pairs_that_are_known_by_a_sum_alone(monkeypatch, x):
  outer = np.cos(x.sum(axis=1))
  slopes = np.column_stack([2 * outer, 3 * x[:, 1] ** 2 * outer, outer * np.sin(9 * x[:, 0] * x[:, 2])])
  assert joined(monkeypatch, x, slopes, powers=(1.0, 3.0)) == [((0, 1), (1.0, 3.0), 2.0)]
  for column in (0, 1):  # a column that does not matter is in no sum
    idle = slopes.copy()
    idle[:, column] = 0
    assert joined(monkeypatch, x, idle, powers=(1.0, 3.0)) == []


def test_errors_of_sums_may_be_just_as_large_as_the_limits(monkeypatch):
  x, sign = np.full((40, 2), 1.0), np.where(np.arange(40) % 2, 1.0, -1.0)
  x[:, 1] += 1e-2 * sign
  second = 1 / invariances._derivative(x[:, 1], 1.5)
  error = relations.share_of_two(np.ones(40), np.median(1 / second) * second)
  limits = {"powers": (1.0, 1.5), "tolerance": error}
  assert len(joined(monkeypatch, x, np.ones((40, 2)), fine=error, **limits)) >= 3
  assert len(joined(monkeypatch, x, np.ones((40, 2)), fine=np.nextafter(error, 0), **limits)) == 2
  limits["tolerance"] = np.nextafter(error, 0)
  assert len(joined(monkeypatch, x, np.ones((40, 2)), fine=error, **limits)) == 2
  # Columns below 0 have no such power, and are in sums with others.
  x[:, 0] *= -1
  assert {each[1] for each in joined(monkeypatch, x, np.ones((40, 2)), powers=(1.0, 1.5), fine=1.0)} == {
    (1.0, 1.0), (1.0, 1.5)}


def test_of_a_pair_the_sums_that_leave_about_as_little_as_the_best(monkeypatch):
  x, sign = np.full((40, 2), 1.0), np.where(np.arange(40) % 2, 1.0, -1.0)
  x[:, 1] += 1e-2 * sign
  powers = (1.0, 1.5)
  exact = np.ones((40, 2))
  assert joined(monkeypatch, x, exact, powers=powers) == [
    ((0, 1), (1.0, 1.0), 1), ((0, 1), (1.5, 1.0), round(2 / 3, 9))]
  # Slopes a little off leave 2.5e-4 at the best, and 3.3e-3 with the other power: 13 times as much.
  off = exact.copy()
  off[:, 0] -= 3.5e-4 * sign
  best = [((0, 1), (1.0, 1.0), 1), ((0, 1), (1.5, 1.0), round(2 / 3, 9))]
  for times, num in ((20.0, 4), (10.0, 2)):
    found = joined(monkeypatch, x, off, powers=powers, times_least=times, tolerance=0.03)
    assert [(columns, powers) for columns, powers, _ in found[:4] if powers[1] == 1.0] == [each[:2] for each in best]
    assert len(found) == num
  assert joined(monkeypatch, x, off, powers=powers, tolerance=2e-4) == []
  assert len(joined(monkeypatch, x, exact, powers=powers, fine=0.03)) == 4


# Powers of the columns, their ratio, what is left of the two, the column that goes.
JOINED = [
  (1.0, 1.0, 2.0, "2*x + y", 0), (2.0, -1.0, -0.5, "1/y - 0.5*x**2", 0), (1.0, 0.0, 1.5, "y*exp(1.5*x)", 0),
  (0.0, 1.0, 2.0, "x*exp(0.5*y)", 1), (0.0, 0.0, 2.0, "x**2*y", 0), (0.0, 0.0, 0.5, "y**2*x", 1),
  (0.0, 0.0, 1.0, "x*y", 0), (0.0, 0.0, -1.0, "y/x", 0), (1.0, 1.0, -3.0, "3*x - y", 0)]


@pytest.mark.parametrize(("p", "q", "ratio", "written", "dropped"), JOINED)
def test_one_column_takes_the_place_of_two(x, p, q, ratio, written, dropped):
  slopes = (ratio * np.cos(x[:, 2]), np.cos(x[:, 2]))  # by the functions of the columns
  [change] = invariances._joined(x, (0, 1), (p, q), ratio * 1.001, slopes, CONFIG)
  [(place, (node, derivative))] = change.replaced.items()
  assert (change.dropped, place) == (dropped, 1 - dropped) and change.error < 1e-12 and change.is_simple
  values, wanted = (expression.evaluate(each, x) for each in (node, parser.parse(written, NAMES)))
  np.testing.assert_allclose(values, wanted, rtol=1e-12)
  steep = slopes_of(node, x)
  np.testing.assert_allclose(derivative, steep[:, place], rtol=1e-6)
  by_columns = [slope * invariances._derivative(x[:, i], power) for i, (slope, power) in enumerate(
    zip(slopes, (p, q), strict=True))]
  np.testing.assert_allclose(steep[:, 0] * by_columns[1], steep[:, 1] * by_columns[0], rtol=1e-5)
  assert not change.divisor and change.summand is None


def test_a_ratio_that_is_not_simple_is_said_to_be_none(x):
  [change] = invariances._joined(x, (0, 1), (1.0, 1.0), 1.234567, (np.full(20, 1.234567), np.ones(20)), CONFIG)
  assert not change.is_simple and change.error == 0
  for p, q in ((0.0, 0.0), (1.0, 0.0)):
    [change] = invariances._joined(x, (0, 1), (p, q), 1.234567, (np.full(20, 1.234567), np.ones(20)), CONFIG)
    assert not change.is_simple


def test_a_ratio_is_simple_where_that_leaves_as_little(x):
  [change] = invariances._joined(x, (0, 1), (1.0, 1.0), 1.03, (np.full(20, 2.06), np.full(20, 2.0)), CONFIG)
  assert not change.is_simple and change.error < 1e-15


def test_signs_and_places_at_their_borders(x):
  [change] = invariances._joined(x, (0, 1), (0.0, 0.0), 1.0, (np.ones(20), np.ones(20)), CONFIG)
  assert change.dropped == 0
  x[:, 1] = x[:, 0] - 0.5
  slopes = (-np.ones(20), np.ones(20))
  [change] = invariances._joined(x, (0, 1), (1.0, 1.0), -1.0, slopes, CONFIG)
  np.testing.assert_allclose(expression.evaluate(change.replaced[1][0], x), 0.5)
  x[3, 1] = x[3, 0]  # 0 is not below 0
  [change] = invariances._joined(x, (0, 1), (1.0, 1.0), -1.0, slopes, CONFIG)
  np.testing.assert_allclose(expression.evaluate(change.replaced[1][0], x), x[:, 1] - x[:, 0])


def test_columns_below_0_have_no_powers_with_fractions():
  x = -np.random.default_rng(0).uniform(1, 2, (20, 2))
  slopes = (np.full(20, 1.5), np.ones(20))
  assert list(invariances._joined(x, (0, 1), (0.0, 0.0), 1.5, slopes, CONFIG)) == []
  [change] = invariances._joined(x, (0, 1), (0.0, 0.0), 2.0, (np.full(20, 2.0), np.ones(20)), CONFIG)
  assert SHOWN(change.replaced[1][0]) == "x**2*y"


def test_an_interrupted_search_ends_among_pairs(monkeypatch, x):
  asked = []
  monkeypatch.setattr(invariances.interruption, "check", lambda: asked.append(1))
  list(invariances._sums(x, np.ones((20, 3)), with_config(powers=(1.0,), tolerance=-1.0)))
  assert len(asked) == len(list(itertools.combinations(range(3), 2)))
