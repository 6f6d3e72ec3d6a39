"""Parts of enumeration one by one, without a search: banks, directions, constants, and what is exact."""

import dataclasses
import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT, EnumerationConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression, programs
from symformer_jax.language.expression import Node, number, variable
from symformer_jax.language.rules import Rule
from symformer_jax.sources.enumeration import enumeration, formula_bank
from symformer_jax.sources.enumeration.enumeration import WAYS, Match
from symformer_jax.sources.enumeration.formula_bank import FUNCTIONS, OF_TWO, Bank, Operator
from symformer_jax.sources.links import LINKS

OWN, FREE = DEFAULT.enumeration, Rule(1)


def rows_of(x, y, weights=None):
  x, y = np.asarray(x, float), np.asarray(y, float)
  return Rows(x if x.ndim > 1 else x[:, None], y, np.ones(len(y)) if weights is None else np.asarray(weights, float))


def bank_of(x, operators, *, numbers=(), num_formulas=1000, largest=1e12):
  x = np.asarray(x, float)
  x = x if x.ndim > 1 else x[:, None]
  return Bank(x, list(map(variable, range(x.shape[1]))), numbers=numbers, operators=operators,
              num_formulas=num_formulas, largest=largest)


# --- the bank --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operator", [*FUNCTIONS.values(), *OF_TWO])
def test_what_an_operator_computes_is_what_it_writes(operator, rng):
  x = rng.uniform(0.1, 0.9, (7, operator.arity))
  written = operator.node(*map(variable, range(operator.arity)))
  np.testing.assert_allclose(operator.of(*x.T), expression.evaluate(written, x), rtol=1e-14)
  assert {part.token for part in expression.walk(written) if part.args} <= {*operator.tokens, "*", "pow2", "neg"}


def test_powers_are_of_what_is_above_0():
  with np.errstate(invalid="ignore"):
    np.testing.assert_array_equal(
      formula_bank._raised(np.array([0.0, -1.0, 0.25, 2.0]), np.array([2.0, 2.0, 0.5, 3.0])), [np.nan, np.nan, 0.5, 8])


def test_columns_below_0_throughout_have_the_other_sign():
  x = np.array([[-1.0, -1.0, 0.5], [-2.0, 0.0, 0.7]])
  values = [expression.evaluate(node, x) for node in formula_bank.leaves_of(x, (0, 1, 2))]
  np.testing.assert_array_equal(values, np.transpose(x * [-1, 1, 1]))


def formulas_by_size(leaves, of_one, of_two, largest):
  """Values of all formulas by their number of nodes, each where it is shortest, by the definition."""
  found, seen = {}, []

  def add(size, values):
    if np.all(np.isfinite(values)) and np.ptp(values) > 1e-9 and not any(np.allclose(values, s, 1e-9) for s in seen):
      seen.append(values)
      found[size].append(values)

  for size in range(1, largest + 1):
    found[size] = []
    for values in leaves if size == 1 else ():
      add(1, values)
    for function, values in itertools.product(of_one, found[size - 1] if size > 1 else ()):
      add(size, function(values))
    for function, first in itertools.product(of_two, range(1, size - 1)):
      for one, other in itertools.product(found[first], found[size - 1 - first]):
        add(size, function(one, other))
  return found


@pytest.mark.parametrize("num_columns", [1, 2])
def test_a_bank_has_all_formulas_of_each_number_of_nodes(num_columns, rng):
  x = rng.uniform(0.5, 2, (9, num_columns))
  operators = [FUNCTIONS["sin"], OF_TWO[0], OF_TWO[2]]
  expected = formulas_by_size(list(x.T), [np.sin], [np.add, np.subtract], 5 - (num_columns > 1))
  bank = bank_of(x, operators, num_formulas=sum(map(len, expected.values())))
  ends = np.cumsum([0, *map(len, expected.values())])
  assert len(bank.values) == ends[-1]
  for begin, end, some in zip(ends, ends[1:], expected.values(), strict=False):
    np.testing.assert_allclose(np.sort(bank.values[begin:end], axis=0), np.sort(some, axis=0), rtol=1e-12)
  nodes = list(map(bank.node, range(len(bank.values))))
  np.testing.assert_allclose([expression.evaluate(node, x) for node in nodes], bank.values, rtol=1e-12)


def test_of_formulas_that_differ_in_order_alone_the_one_with_the_first_column_first_comes_first():
  x = np.random.default_rng(0).uniform(0.5, 2, (9, 2))
  bank = bank_of(x, [OF_TWO[2]], num_formulas=4)
  np.testing.assert_allclose(bank.values[2:], [x[:, 0] - x[:, 1], x[:, 1] - x[:, 0]])


def test_of_operators_of_two_alone_there_are_formulas_of_odd_numbers_of_nodes():
  x = np.linspace(1, 2, 9)
  np.testing.assert_allclose(bank_of(x, [OF_TWO[0]], num_formulas=6).values, np.arange(1.0, 7)[:, None] * x)


@pytest.mark.parametrize(("num", "are_made"), [(35, True), (34, False)])
def test_four_pairs_are_looked_at_for_each_formula_that_there_is_room_for(num, are_made, rng):
  """Of ten columns a hundred: for 25 more there are all of them, for 24 none."""
  bank = bank_of(rng.uniform(1, 2, (9, 10)), [OF_TWO[0]], num_formulas=num)
  assert len(bank.values) == (num if are_made else 10)


def test_a_bank_of_which_nothing_more_can_be_made_ends():
  x = np.linspace(1, 2, 9)
  once = Operator(("once",), lambda v: np.where(v > 5, v, v + 7), lambda node: node)
  np.testing.assert_allclose(bank_of(x, [once]).values, [x, x + 7])


@pytest.mark.parametrize(("columns", "size", "is_kept"), [
  ((0.5, 3.0, 0.0), 0.26 / 16, True), ((0.5, 3.0, 0.0), 0.24 / 16, False),
  ((0.5, 3.0, 0.0), 8.9 * 16, True), ((0.5, 3.0, 0.0), 9.1 * 16, False),
  ((0.5,), 0.99 * 16, True), ((0.5,), 1.01 * 16, False)])
def test_values_are_of_use_between_the_squares_of_the_least_leaf_and_of_the_largest(columns, size, is_kept):
  """... with 1 among them, and without those that are 0, times or by a given number."""
  x = np.linspace(-1, 1, 9)
  other = Operator(("other",), lambda v: np.broadcast_to(size * x**3, v.shape), lambda node: node)
  bank = bank_of(np.stack([each * x for each in columns], axis=1), [other], largest=16.0)
  assert len(bank.values) == len(columns) + is_kept


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(("share", "is_kept"), [(1.1e-9, True), (0.9e-9, False)])
def test_what_varies_by_a_thousand_millionth_of_its_size_is_a_constant(scale, share, is_kept):
  x = np.linspace(0, 1, 9)
  other = Operator(("other",), lambda v: np.broadcast_to(scale * (1 - share * x**2), v.shape), lambda node: node)
  assert len(bank_of(x, [other]).values) == 1 + is_kept


def test_keys_have_eleven_digits():
  values = np.random.default_rng(3).normal(size=(4000, 9))
  keys = formula_bank.keys_of(values)
  assert 0.003 < np.mean(keys != formula_bank.keys_of(values * (1 + 1e-13))) < 0.03
  assert np.all(keys != formula_bank.keys_of(values * (1 + 3e-11)))


# --- rows on which formulas are made ---------------------------------------------------------------------------------


def test_rows_of_a_share_of_the_largest_weight_are_drawn():
  rows = rows_of(np.arange(1.0, 7), np.ones(6), [4.0, 2.0, 1.9, 4.0, 4.0, 2.1])
  assert sorted(formula_bank.drawn(rows, 6, least_weight=0.5, most_beyond=2.0)) == [0, 1, 3, 4, 5]


def test_rows_are_drawn_within_a_share_of_the_median_if_there_are_enough():
  rows = rows_of(np.arange(1.0, 8), [2, -2, 2, 8, -0.5, 8.1, 0.49])
  for num, expected in ((5, [0, 1, 2, 3, 4]), (6, None), (7, [*range(7)])):
    found = formula_bank.drawn(rows, num, least_weight=0.5, most_beyond=4.0)
    assert len(set(found.tolist())) == num and (expected is None or sorted(found) == expected)
  zeros = rows_of(np.arange(1.0, 8), [0, 0, 0, 0, 0, 1, 2])
  assert sorted(formula_bank.drawn(zeros, 7, least_weight=0.5, most_beyond=4.0)) == [*range(7)]
  drawn = [formula_bank.drawn(zeros, 2, least_weight=0.5, most_beyond=4.0).tolist() for _ in range(2)]
  assert drawn[0] == drawn[1]


def test_rows_are_different_in_any_of_their_columns():
  rows = rows_of([[1, 1], [1, 2], [2, 1], [1, 1], [2, 1]], [1, 1, 1, 1, 1])
  assert sorted(formula_bank.drawn(rows, 5, least_weight=0.5, most_beyond=4.0)) == [0, 1, 2]


# --- directions, and formulas that agree in them ---------------------------------------------------------------------


def directions_of(values, config=OWN):
  return enumeration._Directions(SimpleNamespace(values=np.asarray(values, float)), config)


def test_directions_know_no_constants_and_no_factors(rng):
  values = rng.uniform(1, 2, (6, 9))
  directions = directions_of(values)
  found, places = directions._of(values)
  again, _ = directions._of(-2.5 * values + 1.5)
  assert found.shape == (6, 7) and list(places) == [*range(6)]
  np.testing.assert_allclose(again, found, rtol=1e-9)
  assert np.all(np.diff(directions._directions[:, 0]) > 0)
  np.testing.assert_allclose(directions._directions, found[directions._places])


def test_what_has_no_direction_is_left_out_alone(rng):
  """Of sizes that are far apart, one undefined, one nearly constant, and one whose first share alone is nothing."""
  values = rng.uniform(1, 2, (5, 9)) * [[1e8], [1e-8], [1.0], [1.0], [1.0]]
  directions = directions_of(values[:1])
  first, second = directions._basis[:, 0], directions._basis[:, 1]
  values[2, 4] = np.nan
  values[3] = 1 + 1e-7 * first
  values[4] = 1 + second
  with np.errstate(all="ignore"):
    found, places = directions._of(values)
  assert list(places) == [0, 1] and np.all(np.isfinite(found))


def test_errors_are_those_of_weighted_least_squares(rng):
  values, others, slopes = rng.normal(size=(5, 9)) + 2, rng.normal(size=(5, 9)) + 3, rng.uniform(0.2, 3, (5, 9))
  expected = []
  for y, z, slope in zip(values, others, slopes, strict=True):
    design = np.stack([z, np.ones(9)], axis=1)
    factors = np.linalg.lstsq(design * slope[:, None], y * slope, rcond=None)[0]
    expected.append(np.max(np.abs(slope * (y - design @ factors))))
  np.testing.assert_allclose(enumeration._errors(values, others, slopes), expected, rtol=1e-9)


def known_directions(monkeypatch, known, asked, config):
  """Directions of which only the first number counts: those of a bank, and of what is asked for."""
  directions = directions_of(np.random.default_rng(0).uniform(1, 2, (len(known), 9)), config)
  directions._directions, directions._places = np.asarray(known, float)[:, None], np.arange(len(known))
  monkeypatch.setattr(enumeration._Directions, "_of", lambda self, values: (
    np.asarray(asked, float)[:, None], np.arange(len(asked))))
  monkeypatch.setattr(enumeration, "_errors", lambda values, *given: np.zeros(len(values)))
  return list(directions._found(np.ones((len(asked), 9)), np.ones((len(asked), 9)), np.ones(len(asked))))


@pytest.mark.parametrize("target", [9.0, -9.0, 0.0])
def test_directions_are_compared_within_a_share_of_1_and_their_size(monkeypatch, target):
  width = 1e-3 * (1 + abs(target))
  known = target + width * np.array([-1.02, -0.98, 0.98, 1.02])
  config = dataclasses.replace(OWN, tolerance=1e-3)
  assert known_directions(monkeypatch, known, [target], config) == [(0, 1), (0, 2)]


def test_of_many_directions_that_are_alike_the_nearest_are_compared(monkeypatch):
  known = 5 + 1e-3 * np.linspace(-1, 1, 201)
  config = dataclasses.replace(OWN, tolerance=1e-2, most_alike=12)
  found = known_directions(monkeypatch, known, [5 - 0.5e-5, 5 + 0.5e-3 - 0.5e-5], config)
  assert found == [(0, i) for i in range(94, 106)] + [(1, i) for i in range(144, 156)]


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(("share", "is_same"), [(0.99, True), (1.01, False)])
def test_errors_count_as_shares_of_what_varies(monkeypatch, size, share, is_same):
  known = np.random.default_rng(0).uniform(1, 2, (1, 9))
  monkeypatch.setattr(enumeration, "_errors", lambda values, *given: np.full(len(values), share * OWN.tolerance * size))
  assert list(directions_of(known)._found(known, np.ones((1, 9)), np.array([size]))) == [(0, 0)] * is_same


def asked_of(monkeypatch, bank_values, y, config=OWN):
  """The values, slopes and sizes for which formulas are looked up, and what is made of the first of each."""
  asked = []

  def found(self, values, slopes, sizes):
    asked.append((values, slopes, sizes))
    return [(0, 0)]

  directions = directions_of(bank_values, config)
  monkeypatch.setattr(enumeration._Directions, "_found", found)
  return asked, list(directions.matches(np.asarray(y, float), FREE))


def test_another_formula_is_no_constant_and_as_a_term_no_more_than_y_counts_beside(monkeypatch, rng):
  y = rng.uniform(0, 1, 9)
  y[:2] = 0, 1
  unit = (y + 1) / 2
  bank = np.stack([3e4 * unit, np.full(9, 5.0), 0.99e5 * unit, 1.01e5 * unit, 1e9 * unit, 0.5 * unit])
  config = dataclasses.replace(OWN, links_of_two=("y",), links=("y",))
  asked, matches = asked_of(monkeypatch, bank, y, config=config)
  used = [0, 2, 3, 4, 5], [0, 2, 3, 4, 5], [0, 2, 5], [0, 2, 5]
  for (values, slopes, sizes), way, places in zip(asked[1:], WAYS, used, strict=True):
    others = bank[places]
    np.testing.assert_allclose(values, way.of(y, others))
    np.testing.assert_allclose(slopes, way.slope(others))
    np.testing.assert_array_equal(sizes, np.ones(len(places)))
  assert [match.other for match in matches[1:]] == [0, 0, 0, 0]
  asked, matches = asked_of(monkeypatch, bank[1:], y, config=config)
  assert [match.other for match in matches[1:]] == [1, 1, 1, 1]


def test_functions_of_functions_of_y_are_others_than_y(monkeypatch, rng):
  y = rng.uniform(0.2, 0.9, 9)
  asked, matches = asked_of(monkeypatch, rng.uniform(1, 2, (4, 9)), y, config=dataclasses.replace(OWN, links_of_two=()))
  names = {id(link): name for name, link in LINKS.items()}
  firsts = [values[0] for values, *_ in asked]
  assert len(firsts) == len(OWN.links)
  for (values, slopes, sizes), first, match in zip(asked, OWN.links, matches, strict=True):
    assert [names[id(link)] for link in match.links] == [first]
    np.testing.assert_array_equal(values[0], LINKS[first].transform(y))
    np.testing.assert_array_equal(slopes, np.ones_like(values))
    np.testing.assert_allclose(sizes, [np.max(each) - np.min(each) for each in values])
    twice = [LINKS[second].transform(values[0]) for second in OWN.links
             if first != "y" and second not in ("y", first) and LINKS[second].is_defined(values[0])]
    expected = [each for each in twice if np.all(np.isfinite(each)) and np.max(np.abs(each - y)) > 1e-6]
    assert len(values) == 1 + len(expected)
    for one, other in zip(values[1:], expected, strict=True):
      np.testing.assert_allclose(one, other)
  assert max(len(values) for values, *_ in asked) > 3


# --- formulas of matches ---------------------------------------------------------------------------------------------


def fitted(match, bank, rows, config=OWN):
  with np.errstate(all="ignore"):
    return list(enumeration._fitted(match, bank, rows, config))


def written(node, x):
  with np.errstate(all="ignore"):
    return expression.evaluate(node, x)


BANK = SimpleNamespace(
  node=[Node("sin", (variable(0),)), Node("exp", (variable(0),)), Node("ln", (variable(1),))].__getitem__)


@pytest.mark.parametrize("links", [("y",), ("inv",), ("sqrt",), ("exp",), ("exp", "inv")])
def test_constants_are_those_of_least_squares_of_y_to_first_order(links, rng):
  """Errors of a function z of y count as those of y: by the square of dy/dz, here a difference quotient."""
  x = rng.uniform(0.3, 1.5, (60, 2))
  weights = rng.uniform(0.1, 3, 60)
  y = 2 + np.sin(x[:, 0]) + 0.1 * rng.normal(size=60)

  def function(values):
    for name in links:
      values = LINKS[name].transform(values)
    return values

  z, slope = function(y), (function(y + 1e-6) - function(y - 1e-6)) / 2e-6
  factor, constant = np.polyfit(np.sin(x[:, 0]), z, 1, w=np.sqrt(weights) / np.abs(slope))
  match = Match(tuple(LINKS[name] for name in links), 0)
  node = fitted(match, BANK, Rows(x, y, weights))[-1]
  np.testing.assert_allclose(function(written(node, x)), factor * np.sin(x[:, 0]) + constant, rtol=1e-6)


@pytest.mark.parametrize("way", range(len(WAYS)))
def test_constants_beside_another_formula_are_those_of_least_squares(way, rng):
  x = rng.uniform(0.3, 1.5, (60, 2))
  weights = rng.uniform(0.1, 3, 60)
  y = 2 + rng.normal(size=60)
  f, g = np.sin(x[:, 0]), np.exp(x[:, 0])
  columns = [(f / g, 1 / g), (f * g, g), (f, np.ones(60)), (f, np.ones(60))][way]
  beside = [0, 0, g, -g][way]
  design, root = np.stack(columns, axis=1), np.sqrt(weights)
  factors = np.linalg.lstsq(design * root[:, None], (y - beside) * root, rcond=None)[0]
  node = fitted(Match((LINKS["y"],), 0, WAYS[way], 1), BANK, Rows(x, y, weights))[-1]
  np.testing.assert_allclose(written(node, x), design @ factors + beside, rtol=1e-9)


@pytest.mark.parametrize(("links", "undefined"), [
  (("y",), [[1.0, -1.0], [0.5, 0.0]]), (("inv",), [[0.5, 1.3]]), (("sqrt",), [[0.5, 1.3]])])
def test_rows_without_a_value_or_a_slope_are_left_out(links, undefined, rng):
  """ln(y) of a column that is not above 0, 1/y of 0, of y**2 the slope of the root at 0."""
  x = rng.uniform(0.3, 1.5, (40, 2))
  y = 2 + np.log(x[:, 1])
  at = np.array(undefined)
  x, y = np.concatenate([x, at]), np.concatenate([y, np.zeros(len(at))])
  match = Match(tuple(LINKS[name] for name in links), 2)
  node, expected = (fitted(match, BANK, Rows(x[:n], y[:n], np.ones(n)))[-1] for n in (len(x), 40))
  np.testing.assert_allclose(written(node, x[:40]), written(expected, x[:40]), rtol=1e-12)


def test_as_many_rows_as_a_bank_has_are_enough_and_no_slope_is_none(rng):
  x = rng.uniform(0.3, 1.5, (OWN.num_rows, 2))
  y, match = np.sin(x[:, 0]) * 1.5 + 2, Match((LINKS["y"],), 0)
  assert fitted(match, BANK, rows_of(x, y)) and not fitted(match, BANK, rows_of(x[1:], y[1:]))
  flat = dataclasses.replace(LINKS["y"], slope=lambda y: np.full_like(y, np.inf))  # its errors are none of y
  assert not fitted(Match((flat,), 0), BANK, rows_of(x, y))


@pytest.mark.parametrize("size", [1e-100, 1e100])
def test_targets_of_any_size_have_weights(size, rng):
  x = rng.uniform(0.3, 1.5, (40, 2))
  y = size / (2 + np.sin(x[:, 0]))
  node = fitted(Match((LINKS["inv"],), 0), BANK, rows_of(x, y))[-1]
  np.testing.assert_allclose(written(node, x), y, rtol=1e-9)


def test_factors_are_exact_in_narrow_ranges_far_from_0():
  x = 1e6 + np.linspace(0, 1, 30)
  bank = SimpleNamespace(node=[variable(0)].__getitem__)
  node = fitted(Match((LINKS["y"],), 0), bank, rows_of(x, 1.5 * x + 3e6))[-1]
  low, high = written(node, np.array([[0.0], [1e6]]))
  assert high - low == pytest.approx(1.5e6, rel=1e-7)


@pytest.mark.parametrize(("factor", "constant", "num_numbers"), [
  (1 + 0.9e-3, 500.0, 1), (1 + 1.1e-3, 500.0, 2), (3.0, 0.9e-3 * 30, 1), (3.0, 1.1e-3 * 30, 2),
  (1 - 0.9e-3, 0.9e-3 * 10, 0), (-1.0, 500.0, 2)])
def test_constants_are_plain_within_the_tolerance_of_the_largest_part(factor, constant, num_numbers):
  """Of values from 1 to 10."""
  x = np.linspace(1, 10, 30)
  bank, config = SimpleNamespace(node=[variable(0)].__getitem__), dataclasses.replace(OWN, tolerance=1e-3)
  first = fitted(Match((LINKS["y"],), 0), bank, rows_of(x, factor * x + constant), config)[0]
  assert sum(part.is_number for part in expression.walk(first)) == num_numbers


@pytest.mark.parametrize(("share", "missed"), [(0.99, 1e-9), (1.01, 1e-4)])
@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (1.0, 1e6), (1e80, 0.0)])
def test_what_bends_more_than_polynomials_of_some_degree_may_miss_more(share, missed, scale, shift):
  """A cubic curve beside a line, of which parabolas leave a share; some rows count next to nothing."""
  x = np.linspace(-1, 1, 41)
  third = x**3 - np.polyval(np.polyfit(x, x**3, 2), x)
  y = 10 * (x + third * np.sqrt(1e-2 * share / (1 - 1e-2 * share) * np.var(x) / np.mean(third**2)))
  config = EnumerationConfig(degree=2, bent=1e-2, missed=1e-9, missed_if_bent=1e-4)
  at = shift + scale * np.append(x, [0.11, 0.77])
  rows = rows_of(at, np.append(y, [9.0, -9.0]), [*np.ones(41), 1e-30, 1e-30])
  assert enumeration._most_missed(rows, (0,), config) == pytest.approx(missed, rel=1e-3)


@pytest.mark.parametrize("degree", [1, 2])
def test_polynomials_have_all_powers_up_to_their_degree(degree):
  x = np.linspace(1, 3, 41)
  config = EnumerationConfig(degree=degree, bent=1e-8, missed=1e-9, missed_if_bent=1e-4)
  for power in (1, 2):
    found = enumeration._most_missed(rows_of(x, x**power), (0,), config)
    assert found == pytest.approx(1e-4 if power > degree else 1e-9, rel=1e-3)


def test_of_a_target_far_from_0_rounding_is_more():
  """Its weighted variance by hand: 3/16 of the square of the distance."""
  y = 1e6 + np.array([0.0, 0.0, 4.0, 4.0])
  rows = rows_of([1.0, 2.0, 3.0, 4.0], y, [1.0, 2.0, 0.5, 0.5])
  config = EnumerationConfig(degree=1, bent=1e9, missed=1e-30, roundings=8.0)
  expected = (8 * np.finfo(float).eps * (1e6 + 4)) ** 2 / 3.0
  assert enumeration._most_missed(rows, (0,), config) == pytest.approx(expected, rel=1e-6, abs=0)


def test_what_a_formula_leaves_is_a_share_of_the_weighted_variance():
  y = np.array([1.0, 1.0, 5.0, 5.0])
  rows = rows_of([1.0, 4.0, 5.0, 8.0], y, [1.0, 2.0, 0.5, 0.5])
  assert enumeration._left(variable(0), rows) == pytest.approx((2 * 9 + 0.5 * 9) / 4 / 3.0)


def test_matches_are_as_long_as_their_links_and_their_places():
  assert Match((LINKS["y"],), 5).length() == (1, 5)
  assert Match((LINKS["y"], LINKS["inv"]), 5, WAYS[0], 3).length() == (2, 8)
  assert Match((LINKS["y"],), 5, WAYS[0], 0).length() == (1, 5)


# --- what is checked, and what is kept -------------------------------------------------------------------------------


@pytest.fixture
def formulas_of(monkeypatch):
  """`formulas_of` of given matches, of each the formulas and what they leave; the places that were asked, in order."""
  def run(matches, made, *, columns=(0,), rule=FREE, **changes):
    x = np.random.default_rng(0).uniform(1, 2, (50, max(columns) + 1))
    rows = rows_of(x, np.random.default_rng(1).normal(size=50))
    asked = []
    errors = {node: error for some in made.values() for node, error in some}
    monkeypatch.setattr(enumeration, "Bank", lambda x, leaves, *, numbers, operators, num_formulas, largest: (
      asked.append(operators)))
    monkeypatch.setattr(
      enumeration, "_Directions", lambda *given: SimpleNamespace(matches=lambda y, rule: iter(matches)))
    monkeypatch.setattr(enumeration, "_fitted", lambda match, *given: (
      asked.append(match.place), (node for node, _ in made[match.place]))[1])
    monkeypatch.setattr(enumeration, "_left", lambda node, rows: errors[node])
    monkeypatch.setattr(enumeration, "_most_missed", lambda *given: 1.0)
    config = dataclasses.replace(DEFAULT, enumeration=dataclasses.replace(OWN, **changes))
    return enumeration.formulas_of(rows, columns, rule, config), asked[0], asked[1:]
  return run


def times(value):
  return Node("*", (variable(0), number(value)))


def matches_of(*places):
  return [Match((LINKS["y"],), place) for place in places]


def test_of_the_first_matches_the_short_ones_are_checked(formulas_of):
  made = {place: [] for place in range(10)}
  assert formulas_of(matches_of(9, 3, 7, 1, 0), made, num_matches=4, num_checked=3)[2] == [1, 3, 7]
  several = [Match((LINKS["exp"], LINKS["inv"]), 2), Match((LINKS["y"],), 4, WAYS[0], 9), Match((LINKS["inv"],), 8)]
  assert formulas_of(several, made)[2] == [8, 4, 2]


def test_of_each_skeleton_the_formula_that_leaves_least_is_kept_and_of_equals_the_first(formulas_of):
  made = {0: [(times(1.5), 0.5)], 1: [(times(1.6), 0.2)], 2: [(times(1.7), 0.2)], 3: [(times(1.8), 0.3)],
          4: [(variable(0), 0.9)]}
  assert formulas_of(matches_of(0, 1, 2, 3, 4), made)[0] == [variable(0), times(1.6)]


def test_of_each_match_the_first_formula_that_is_near_is_kept(formulas_of):
  longer = Node("sin", (times(1.3),))
  made = {0: [(variable(0), 1.0), (times(1.5), 0.5), (longer, 0.1)], 1: [(times(1.6), 1.1)]}
  assert formulas_of(matches_of(0, 1), made)[0] == [times(1.5)]


def test_formulas_are_as_long_as_programs_may_be_and_follow_the_rule(formulas_of, monkeypatch):
  longer = Node("sin", (times(1.3),))
  made = {0: [(longer, 0.1)]}
  for most in (programs.size(longer) - 1, programs.size(longer)):
    monkeypatch.setattr(programs, "MAX_TOKENS", most)
    assert formulas_of(matches_of(0), made)[0] == [longer] * (most == programs.size(longer))
  assert not formulas_of(matches_of(0), made, rule=Rule(1, tokens=frozenset({"+", "*"})))[0]


@pytest.mark.parametrize(("num_columns", "has_more"), [(1, True), (2, False)])
def test_further_functions_are_of_one_column(formulas_of, num_columns, has_more):
  own = {"functions": ("sin",), "functions_of_one": ("pow5", "cos")}
  operators = formulas_of([], {}, columns=tuple(range(num_columns)), **own)[1]
  of_one = [operator for operator in operators if operator.arity == 1]
  assert of_one == [FUNCTIONS[name] for name in (("sin", "pow5", "cos") if has_more else ("sin",))]


@pytest.mark.parametrize("columns", [(), (0,)])
def test_without_a_column_that_varies_there_are_no_formulas(columns):
  x = np.random.default_rng(0).uniform(1, 2, (50, 2))
  x[:, 0] = 1.5
  assert enumeration.formulas_of(rows_of(x, np.exp(x[:, 1])), columns, Rule(2)) == []
