"""Parts of remainders and of coefficient functions one by one: what is written, what columns explain, what is asked."""

import dataclasses
import itertools

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT, RemaindersConfig, ReplacementsConfig
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.parser import parse
from symformer_jax.sources import tangents
from symformer_jax.sources.repairs import coefficient_functions, remainders, replacements
from symformer_jax.sources.repairs.coefficient_functions import Coefficient, Known
from symformer_jax.sources.repairs.remainders import Found
from symformer_jax.sources.tangents import Graft

NAMES, OWN, LEFT = ("x", "y"), DEFAULT.replacements, DEFAULT.remainders


def values(text, x):
  return expression.evaluate(parse(text, NAMES), x)


# --- remainders ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("path", "is_product", "law"), [
  ((), False, "exp(0.7*x)*y + 2*sin(x) - 3*y + 0.001"), ((), True, "exp(0.7*x)*y*(1 + 2*sin(x) - 3*y)"),
  ((0, 0), False, "exp(0.7*x + 2*sin(x) - 3*y + 0.001)*y"), ((0, 0), True, "exp(0.7*x*(1 + 2*sin(x) - 3*y))*y")])
def test_a_sum_is_written_at_its_place_with_a_constant(path, is_product, law, rng):
  terms = ((parse("sin(x)", NAMES), 2.0), (parse("y", NAMES), -3.0))
  found = Found(0.0, parse("exp(0.7*x)*y", NAMES), Graft(path, is_product, np.ones(9)), terms)
  x = rng.uniform(0.2, 2, (9, 2))
  np.testing.assert_allclose(expression.evaluate(found.node(), x), values(law, x), rtol=1e-12)


@pytest.mark.parametrize(("text", "is_plain"), [
  ("x", True), ("0.5*x", True), ("x**2.5", True), ("x - 3", True), ("0.25*x", False), ("x**1.1", False)])
def test_plain_columns_have_whole_and_half_numbers(text, is_plain):
  assert remainders._is_plain(parse(text, NAMES)) is is_plain


@pytest.fixture
def columns(rng):
  """Columns of length 1, two of them nearly one, and a target no longer than that."""
  units = rng.normal(size=(30, 7))
  units[:, 6] = units[:, 0] + 1e-5 * rng.normal(size=30)
  target = rng.normal(size=30)
  return units / np.linalg.norm(units, axis=0), 0.9 * target / np.linalg.norm(target)


def explained(units, target, some):
  design = units[:, list(some)]
  return np.sum((design @ np.linalg.lstsq(design, target, rcond=None)[0]) ** 2)


@pytest.mark.parametrize("num_pairs", [1, 5, 21, 999])
def test_the_pairs_that_explain_most_come_first(columns, num_pairs):
  units, target = columns
  config = dataclasses.replace(LEFT, num_pairs=num_pairs)
  found = remainders._best_pairs(target @ units, units.T @ units, config)
  gains = {pair: explained(units, target, pair) for pair in itertools.combinations(range(7), 2) if pair != (0, 6)}
  expected = sorted(gains, key=gains.__getitem__, reverse=True)[:num_pairs]
  assert [pair for pair, _ in found] == expected
  np.testing.assert_allclose([gain for _, gain in found], [gains[pair] for pair in expected])


def test_the_third_column_is_the_one_that_explains_most_beside_two(columns):
  units, target = columns
  for pair in ((0, 1), (2, 5), (3, 4)):
    left = 0.81 - explained(units, target, pair)
    some, rest = remainders._third(pair, target @ units, units.T @ units, left, LEFT)
    others = [each for each in range(7) if each not in pair and not ({each, *pair} >= {0, 6})]
    best = max(others, key=lambda each, pair=pair: explained(units, target, (*pair, each)))
    assert some == tuple(sorted((*pair, best)))
    assert rest == pytest.approx(0.81 - explained(units, target, (*pair, best)))


@pytest.mark.parametrize("num", [0, 1, 2])
def test_sets_of_few_columns(columns, num):
  units, target = columns
  found = remainders._sets(units[:, :num], target, LEFT)
  expected = [(), *((i,) for i in range(num)), *([(0, 1)] if num == 2 else [])]
  sets = dict(found)
  assert set(expected) <= set(sets)
  for some in expected:
    assert sets[some] == pytest.approx(0.81 - (explained(units, target, some) if some else 0))


def test_single_columns_are_ranked_by_what_they_explain_whatever_the_sign_of_their_factor():
  target = np.array([0.1, -0.8, 0.5, 0.0, 0.2])
  found = remainders._sets(np.eye(5)[:, :4], target, dataclasses.replace(LEFT, num_kept=2))
  assert [some for some, _ in found if len(some) == 1] == [(1,), (2,)]


def test_what_is_explained_wholly_leaves_what_rounding_tells():
  sets = dict(remainders._sets(np.eye(5)[:, :3], np.eye(5)[1], LEFT))
  assert sets[1,] == 1e-16 and sets[()] == 1 and min(sets.values()) == 1e-16


def test_terms_have_the_factors_that_meet_what_is_left(rng):
  """At a place whose weight varies, beyond the constants' reach and a further constant there."""
  weight, root = rng.uniform(0.5, 3, 40), np.full(40, 40**-0.5)
  movable = tangents.orthonormal([rng.normal(size=40)])
  lengths = np.array([2.0, 0.1, 30.0])
  units = rng.normal(size=(40, 3))
  units /= np.linalg.norm(units, axis=0)
  plain = remainders.Plain(tuple(parse(text, NAMES) for text in ("x", "y", "x*y")), lengths, units)
  sum_ = weight * (units * lengths @ [0.7, 0.0, -0.2]) + 5 * root * weight + 3 * movable[0]
  target = tangents.beyond(movable, sum_)
  size = np.linalg.norm(target)
  config = RemaindersConfig(most_left=1.0)
  found = {tuple(node for node, _ in terms): (left, [factor * size for _, factor in terms])
           for left, terms in remainders._at(Graft((), False, weight), movable, target / size, plain, root, config)}
  left, factors = found[plain.nodes[0], plain.nodes[2]]
  assert left < 1e-14 and factors == pytest.approx([0.7, -0.2])


# --- coefficient functions -------------------------------------------------------------------------------------------


def view_of(text, path, x, y, column=0, config=OWN, weights=None):
  rows = Rows(x, y, np.ones(len(x)) if weights is None else weights)
  return coefficient_functions._view(Coefficient(parse(text, NAMES), path, column), rows, config)


def test_a_view_has_the_function_its_slope_and_constants_elsewhere(rng):
  x, y, weights = rng.uniform(1, 2, (60, 2)), rng.normal(size=60), rng.uniform(0.2, 2, 60)
  view = view_of("exp(0.3*y)*sin(1.7*x)", (1,), x, y, weights=weights)
  np.testing.assert_allclose(view.values, np.sin(1.7 * x[:, 0]))
  np.testing.assert_allclose(view.slope, np.exp(0.3 * x[:, 1]))
  root = np.sqrt(weights / weights.sum())
  np.testing.assert_allclose(view.residual, root * (y - values("exp(0.3*y)*sin(1.7*x)", x)))
  np.testing.assert_allclose(  # by 0.3 alone
    view.elsewhere, (root * x[:, 1] * values("exp(0.3*y)*sin(1.7*x)", x))[:, None])
  angle = np.arccos(2 * (x[:, 0] - x[:, 0].min()) / np.ptp(x[:, 0]) - 1)
  degree = min(OWN.degree, 60 // OWN.places_per_term)
  np.testing.assert_allclose(view.polynomials, np.cos(angle[:, None] * np.arange(degree + 1)), atol=1e-9)
  np.testing.assert_allclose(view.directions, (root * view.slope)[:, None] * view.polynomials)


def test_what_is_undefined_or_of_few_values_has_no_view(rng):
  x, y = rng.uniform(1, 2, (60, 2)), rng.normal(size=60)
  with np.errstate(all="ignore"):
    assert view_of("log(y - 1.5)*sin(x)", (1,), x, y) is None
    assert view_of("sqrt(x - 1.5)*y", (0,), x, y) is None
  x[:, 0] = np.arange(60) % OWN.places_per_term
  assert view_of("y*sin(x)", (1,), x, y) is not None
  x[:, 0] = np.arange(60) % (OWN.places_per_term - 1)
  assert view_of("y*sin(x)", (1,), x, y) is None


def test_two_functions_are_known_together_where_neither_is_enough(rng):
  """Of y = (x + 0.2*x**3)*y + 0.5*y**2 the formula has x and y beside one another."""
  x = rng.uniform(0.5, 2, (90, 2))
  y = (x[:, 0] + 0.2 * x[:, 0] ** 3) * x[:, 1] + 0.5 * x[:, 1] ** 2
  rows, formula = Rows(x, y, rng.uniform(0.5, 2, 90)), parse("x*y + y", NAMES)
  first, _, second = coefficient_functions.coefficients(formula)  # of x beside y, of y beside x, and of y alone
  assert first.column == 0 and second.path == (0,)
  config = ReplacementsConfig(degree=4)
  views = [coefficient_functions._view(each, rows, config) for each in (first, second)]
  alone = coefficient_functions._corrected(views[0], (), config)
  both = coefficient_functions._corrected(views[0], views[1:], config)
  assert both.left < 1e-9 < 1e-3 < alone.left <= 1
  size = np.sqrt(np.average((y - values("x*y + y", x)) ** 2, weights=rows.weights))
  assert both.size == alone.size == pytest.approx(size)
  asked = {known.coefficient.column: known for known in coefficient_functions.asked_of([first, second], rows, config)}
  np.testing.assert_allclose(asked[0].values, both.values)


def test_functions_that_are_not_enough_stay_as_they_are(rng):
  x = rng.uniform(0.5, 2, (90, 2))
  rows = Rows(x, np.sin(9 * x[:, 0] * x[:, 1]), np.ones(90))
  some = list(coefficient_functions.coefficients(parse("x*y + y", NAMES)))
  found = coefficient_functions.asked_of(some, rows, ReplacementsConfig(degree=3))
  assert len(found) == 3 and all(known.left == np.inf for known in found)
  for known, coefficient in zip(found, some, strict=True):
    np.testing.assert_allclose(known.values, expression.evaluate(coefficient.function, x))


@pytest.mark.parametrize(("num_rows", "num_others", "is_known"), [
  (4, 0, True), (3, 0, False), (8, 1, True), (7, 1, False)])
def test_a_function_is_known_by_two_polynomials_at_the_least(num_rows, num_others, is_known, rng):
  x, y = rng.uniform(1, 2, (num_rows, 2)), rng.normal(size=num_rows)
  config = ReplacementsConfig(degree=3, places_per_term=1, rows_per_direction=2)
  view = view_of("y*sin(x)", (1,), x, y, config=config)
  known = coefficient_functions._corrected(view, [view] * num_others, config)
  assert np.isfinite(known.left) is np.bool_(is_known)
  if not is_known:
    np.testing.assert_array_equal(known.values, view.values)


def test_where_nothing_is_left_or_nothing_counts_no_function_is_asked_for(rng):
  x = rng.uniform(1, 2, (40, 2))
  view = view_of("y*sin(x)", (1,), x, x[:, 1] * np.sin(x[:, 0]))
  assert coefficient_functions._corrected(view, (), OWN).left == np.inf
  view = view_of("y*sin(x)", (1,), x, x[:, 1])._replace(
    directions=np.zeros((40, 9)), elsewhere=np.zeros((40, 0)), polynomials=np.ones((40, 9)))
  assert coefficient_functions._corrected(view, (), OWN).left == np.inf


@pytest.mark.parametrize(("apart", "is_same"), [(0.9e-11, True), (1.1e-11, False)])
@pytest.mark.parametrize("sign", [1, -1])
def test_functions_whose_directions_differ_by_rounding_are_one(apart, is_same, sign):
  one, other = np.resize([1.0, -1.0], 16) / 4, np.resize([1.0, 1.0, -1.0, -1.0], 16) / 4
  known = Known(Coefficient(parse("y*sin(x)", NAMES), (1,), 0), 7 + 3 * one, np.ones(16), 1.0, 0.0)
  cosine = 1 - apart
  direction = sign * (cosine * one + np.sqrt(1 - cosine**2) * other)
  assert known.has_values_of(0, direction) is is_same and not known.has_values_of(1, direction)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_a_column_is_laid_from_minus_1_to_1_in_any_unit(unit):
  """By ratios where the largest value is many times the least, and the values are above 0."""
  for column, expected in (([0.5, 5, 50], [-1, 0, 1]), ([2, 8, 32], [-1, -0.6, 1]), ([-1, 0, 1], [-1, 0, 1]),
                           ([0, 50, 100], [-1, 0, 1])):
    found = coefficient_functions._between(unit * np.array(column, float), OWN)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize(("size", "imitated", "is_worthwhile"), [
  (2.0, 4.0, True), (2.0, 3.9, False), (0.5, 0.25, True), (0.5, 0.24, False)])
def test_long_functions_imitate_another_where_their_formula_leaves_little(size, imitated, is_worthwhile):
  """In squares: what a formula leaves is a mean of these."""
  formula = parse("y*sin(x + sin(x + sin(x + sin(x + sin(x)))))", NAMES)
  known = Known(Coefficient(formula, (1,), 0), np.ones(5), np.ones(5), size, 1.0)
  assert replacements.Replacements(SearchOptions(), ())._is_worthwhile(known, imitated) is is_worthwhile


def test_formulas_that_need_not_be_looked_at_again_are_those_of_early_turns_or_of_later_ones():
  one, other = parse("x", NAMES), parse("y", NAMES)
  first, second = (replacements.Asked(column, np.ones(2), 1.0) for column in (0, 1))
  state = replacements.State().after([one], False, [first])
  assert (state.formulas(True), state.formulas(False), state.tables) == (set(), {one}, (first,))
  state = state.after([other], True, [second])
  assert (state.formulas(True), state.formulas(False), state.tables) == ({other}, {one}, (first, second))
