"""Parts of short formulas one by one: what is left by sums, what is written of them, and where a pole may be."""

import dataclasses
import itertools

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT, ShortFormsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, number, variable
from symformer_jax.language.rules import Restrictions, Rule
from symformer_jax.sources.enumeration import short_forms
from symformer_jax.sources.enumeration.short_forms import Pole, Sums

OWN = DEFAULT.short_forms


def rows_of(x, y, weights=None):
  x, y = np.asarray(x, float), np.asarray(y, float)
  return Rows(x if x.ndim > 1 else x[:, None], y, np.ones(len(y)) if weights is None else np.asarray(weights, float))


def config_of(**changes):
  return dataclasses.replace(DEFAULT, short_forms=dataclasses.replace(OWN, **changes))


# --- what is left, and what is written -------------------------------------------------------------------------------


@pytest.mark.parametrize("num_columns", [1, 2])
def test_what_is_looked_at_is_what_is_written(monkeypatch, num_columns, rng):
  """Of each kind of sum the formulas leave just what was seen of them on the rows of the bank, which are all."""
  x = rng.uniform(0.5, 3, (40, num_columns))
  rows = rows_of(x, rng.normal(size=40) + 3, rng.uniform(0.2, 2, 40))
  seen, nearest = [], short_forms._nearest

  def look(left, config):
    for place in nearest(left, config):
      seen.append((len(place), left[place]))
      yield place

  monkeypatch.setattr(short_forms, "_nearest", look)
  config = config_of(num_formulas=60, num_others_of_two=20, num_near=9)
  with np.errstate(all="ignore"):
    nodes = list(short_forms._of_bank(rows, tuple(range(num_columns)), Rule(num_columns), config))
  assert [num for num, _ in seen] == [1] * 18 + [2] * 27 and len(nodes) == 45
  left = [np.average((expression.evaluate(node, x) - rows.y) ** 2, weights=rows.weights) for node in nodes]
  np.testing.assert_allclose(left, [each for _, each in seen], rtol=1e-6)


def test_what_is_left_does_not_depend_on_the_unit_of_the_weights(rng):
  values, y, weights = rng.normal(size=(4, 30)), rng.normal(size=30), rng.uniform(0.1, 3, 30)
  one, other = (Sums(values, values[:2], y, some * weights) for some in (1.0, 7.0))
  for ask in (lambda s: s.of_one(has_constant=False), lambda s: s.of_one(has_constant=True),
              lambda s: s.of_product(has_constant=True), lambda s: s.of_two()):
    np.testing.assert_allclose(ask(other), ask(one), rtol=1e-9)


@pytest.mark.parametrize(("share", "is_told"), [(1.9e-10, True), (1.1e-10, True), (0.9e-10, False)])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_what_varies_by_a_ten_thousand_millionth_of_its_square_is_told_from_a_constant(share, is_told, size):
  pattern = np.resize([1.0, -1.0], 40)  # of mean 0 and variance 1
  other = np.resize([1.0, 1.0, -1.0, -1.0], 40)
  y, weights = np.arange(40.0), np.ones(40)
  nearly_constant = size * (1 + np.sqrt(share) * pattern)
  sums = Sums(nearly_constant[None], np.ones((1, 40)), y, weights)
  assert np.isfinite(sums.of_one(has_constant=True)[0]) == is_told
  assert np.isfinite(sums.of_product(has_constant=True)[0, 0]) == is_told
  nearly_same = size * (pattern * np.sqrt(1 - share) + other * np.sqrt(share))
  assert np.isfinite(Sums(nearly_same[None], pattern[None], y, weights).of_two()[0, 0]) == is_told


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
def test_formulas_of_which_ten_digits_of_what_they_leave_agree_are_one(size):
  left = size * np.array([1.0, 0.6, 0.6 * (1 + 4e-11), 0.6 * (1 + 4e-10), 0.2])
  assert list(short_forms._nearest(left, OWN)) == [(4,), (1,), (3,), (0,)]
  assert list(short_forms._nearest(left, ShortFormsConfig(num_near=2))) == [(4,), (1,)]


def test_a_sum_has_the_factors_of_weighted_least_squares_whatever_its_units(rng):
  x = rng.uniform(1, 2, (40, 2)) * [1e-20, 1e20]
  rows = rows_of(x, rng.normal(size=40) + 5, rng.uniform(0.1, 3, 40))
  root = np.sqrt(rows.weights)
  for has_constant in (False, True):
    scaled = np.column_stack([x[:, 0] * 1e20, x[:, 1] * 1e-20, *([np.ones(40)] if has_constant else [])])
    factors = np.linalg.lstsq(scaled * root[:, None], rows.y * root, rcond=None)[0]
    node = short_forms._sum([variable(0), variable(1)], rows, has_constant=has_constant)
    np.testing.assert_allclose(expression.evaluate(node, x), scaled @ factors, rtol=1e-9)
  with np.errstate(all="ignore"):
    assert short_forms._sum([Node("ln", (Node("*", (variable(0), number(-1.0))),))], rows, has_constant=True) is None


@pytest.mark.parametrize(("share", "is_near"), [(0.24, True), (0.26, False)])
@pytest.mark.parametrize("scale", [0.1, 10.0])
def test_what_a_formula_leaves_is_a_share_of_the_weighted_variance(monkeypatch, share, is_near, scale):
  """Of y = 1, 1, 5, 5 under weights the variance is 3, by hand."""
  monkeypatch.setattr(short_forms, "_of_bank", lambda *given: [variable(0)])
  monkeypatch.setattr(short_forms, "_poles", lambda *given: [])
  y, off = scale * np.array([1.0, 1.0, 5.0, 5.0]), scale * np.sqrt(share * 3.0) * np.array([1.0, -1.0, 1.0, 1.0])
  rows = rows_of(y + off, y, [1.0, 2.0, 0.5, 0.5])
  assert bool(short_forms.short_forms_of(rows, (0,), Rule(1), config_of(most_left=0.25))) is is_near


def test_what_leaves_just_as_much_as_is_allowed_is_near(monkeypatch):
  monkeypatch.setattr(short_forms, "_of_bank", lambda *given: [Node("*", (variable(0), number(0.5)))])
  monkeypatch.setattr(short_forms, "_poles", lambda *given: [])
  y = np.resize([1.0, -1.0], 8)
  assert short_forms.short_forms_of(rows_of(y, y), (0,), Rule(1), config_of(most_left=0.25))


def test_poles_are_looked_for_where_inverses_are_allowed(monkeypatch):
  monkeypatch.setattr(short_forms, "_of_bank", lambda *given: [])
  monkeypatch.setattr(short_forms, "_poles", lambda *given: [variable(0)])
  x = np.arange(30.0)
  for rule, has_poles in ((Rule(1), True), (Restrictions(forbidden=("/",)).for_columns(["x"]), False)):
    assert short_forms.short_forms_of(rows_of(x, x), (0,), rule) == [variable(0)] * has_poles


# --- rows that tell --------------------------------------------------------------------------------------------------


def test_distances_are_from_the_median_as_far_as_rows_count():
  found = short_forms._distances(np.array([7.0, 1.0, 3.0]), np.array([1.0, 4.0, 16.0]))
  np.testing.assert_allclose(found, [1.0, 1.0, 0.0])


def test_of_rows_as_far_as_one_another_the_first_are_the_largest():
  distances = np.tile([1.0, 3.0, 2.0], 60)
  places = short_forms._telling(distances, 70, 10)
  assert list(places[:70]) == [*range(1, 180, 3), *range(2, 32, 3)]
  assert len(set(places.tolist())) == 80 and list(places) == list(short_forms._telling(distances, 70, 10))


# --- poles -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def places_asked(monkeypatch):
  """For which rows places of a pole were asked."""
  asked = []
  monkeypatch.setattr(short_forms, "_places", lambda column, tops, config: asked.append((column, tops)) or ())
  monkeypatch.setattr(short_forms, "_likely", lambda *given: [])
  return asked


@pytest.mark.parametrize(("times", "is_asked"), [(2.9, False), (3.1, True)])
@pytest.mark.parametrize("slope", [0.0, 1e4])
@pytest.mark.parametrize("scale", [0.01, 100.0])
def test_something_stands_out_by_its_distance_in_quartiles(places_asked, times, is_asked, slope, scale):
  """Beside a straight line: the same values at both places of x, so that none of them makes a slope."""
  half = np.append(np.arange(12.0), 0.0)
  low, high = np.quantile(np.repeat(half, 2), [0.25, 0.75])
  half[-1] = 5.5 + times * (high - low)
  x = np.resize([1.0, -1.0], 26)
  y = scale * np.repeat(half, 2)
  assert np.isclose(np.ptp(np.quantile(y, [0.25, 0.75])), scale * (high - low), rtol=0.2)
  spread = np.ptp(np.quantile(y, [0.25, 0.75]))
  y[-2:] = np.median(y) + times * spread
  rows = rows_of(x, y + slope * x)
  list(short_forms._poles(rows, (0,), ShortFormsConfig(tail=3.0)))
  assert bool(places_asked) is is_asked


def test_where_nothing_is_left_of_a_line_nothing_stands_out(places_asked):
  list(short_forms._poles(rows_of(np.arange(30.0), np.zeros(30)), (0,), OWN))
  assert not places_asked


def test_a_pole_is_fitted_to_so_many_rows(places_asked):
  x = np.linspace(-1, 1, 80)
  y = 1 / (x - 0.301)
  list(short_forms._poles(rows_of(x, y), (0,), ShortFormsConfig(num_rows=12, num_largest=5, num_tops=3)))
  [(column, tops)] = places_asked
  farthest = x[np.argsort(-np.abs(y - np.median(y)))]
  assert len(set(column.tolist())) == 12 and list(tops) == [0, 1, 2] and set(column[:2]) == set(farthest[:2])


@pytest.mark.parametrize("found", [None, 0.5])
def test_poles_without_a_place_and_at_a_row_are_left_out(monkeypatch, found):
  x = np.append(np.linspace(-1, 1, 30), 0.5)
  monkeypatch.setattr(short_forms, "_best_place", lambda *given: found)
  with np.errstate(all="ignore"):
    assert not list(short_forms._poles(rows_of(x, 1 / (x - 0.301)), (0,), OWN))
    monkeypatch.setattr(short_forms, "_best_place", lambda *given: 0.301)
    assert list(short_forms._poles(rows_of(x, 1 / (x - 0.301)), (0,), OWN))


def test_kinds_of_poles():
  """Of one column: with each other one above it, each beside it, a constant or none, and each power."""
  found = list(short_forms._kinds(1, (0, 1, 2), ShortFormsConfig(powers=(1, 3))))
  expected = itertools.product([1], (1, 3), (None, 0, 2), ((), (0,), (1,), (2,)), (False, True))
  assert found == [Pole(*each) for each in expected]


def test_what_poles_leave_at_the_best_place_is_that_of_least_squares(rng):
  """The first place is that of a row: a pole has no value there."""
  x, weights, places = rng.uniform(0.2, 3, (40, 2)), rng.uniform(0.2, 2, 40), np.linspace(0.3, 2.9, 9)
  places[0] = x[7, 1]
  rows, root = rows_of(x, rng.normal(size=40), weights), np.sqrt(weights)
  kinds = list(short_forms._kinds(1, (0, 1), OWN))
  with np.errstate(all="ignore"):
    found = short_forms._left_by_kind(kinds, rows, places)
  for kind, left in zip(kinds, found, strict=True):
    beside = [x[:, list(kind.beside)], np.ones((40, int(kind.has_constant)))]
    above = 1.0 if kind.above is None else x[:, kind.above]
    errors = []
    for place in places[1:]:
      design = np.column_stack([above / (x[:, 1] - place) ** kind.power, *beside]) * root[:, None]
      rest = rows.y * root - design @ np.linalg.lstsq(design, rows.y * root, rcond=None)[0]
      errors.append(rest @ rest)
    assert left == pytest.approx(min(errors), rel=1e-9)


def test_of_a_pole_that_is_told_apart_from_nothing_what_is_left_is_infinite():
  rows = rows_of(np.array([0.0, 1.0]), [1.0, 2.0])  # beside a column and a constant nothing is left of two rows
  with np.errstate(all="ignore"):
    assert list(short_forms._left_by_kind([Pole(0, 1, None, (0,), True)], rows, np.array([0.5]))) == [np.inf]
    assert not short_forms._likely(rows, {0: np.array([0.0, 1.0])}, OWN)


def test_poles_of_as_many_terms_are_looked_at_that_leave_least(monkeypatch):
  kinds = list(short_forms._kinds(0, (0, 1), OWN))
  left = dict(zip(kinds, np.random.default_rng(1).permutation(len(kinds)).astype(float), strict=True))
  monkeypatch.setattr(short_forms, "_kinds", lambda column, *given: kinds if column == 0 else [])
  monkeypatch.setattr(short_forms, "_left_by_kind", lambda some, *given: np.array([left[kind] for kind in some]))
  found = short_forms._likely(rows_of(np.eye(2), [1.0, 2.0]), {0: None, 1: None}, ShortFormsConfig(num_kinds=2))
  by_size = {size: sorted((kind for kind in kinds if kind.num_terms == size), key=left.get)[:2] for size in range(1, 5)}
  assert sorted(found, key=left.get) == sorted((kind for some in by_size.values() for kind in some), key=left.get)
  assert [len(some) for some in by_size.values()] == [2, 2, 2, 2]


@pytest.mark.parametrize("pole", [
  Pole(0, 1, None, (), False), Pole(0, 2, None, (), True), Pole(0, 1, 1, (0,), True), Pole(0, 2, 1, (1,), False),
  Pole(1, 1, 0, (1,), True)])
def test_a_pole_is_written_at_its_place_and_found_there(pole, rng):
  """Rows that hardly count are spoiled."""
  x = rng.uniform(0.2, 3, (80, 2))
  above = 1.0 if pole.above is None else x[:, pole.above]
  y = 2.5 * above / (x[:, pole.column] - 1.31) ** pole.power + 0.7 * pole.has_constant
  y += sum(-1.4 * x[:, column] for column in pole.beside)
  weights = rng.uniform(0.2, 2, 80)
  weights[:20], y[:20] = 1e-14, 100 * rng.normal(size=20)
  rows = rows_of(x, y, weights)
  node = pole.node(rows, 1.31)
  np.testing.assert_allclose(expression.evaluate(node, x[20:]), y[20:], rtol=1e-6)
  assert short_forms._best_place(pole, rows, np.linspace(0.25, 2.95, 28), OWN) == pytest.approx(1.31, abs=1e-3)


@pytest.mark.parametrize("places", [np.linspace(1.3, 2.3, 11), np.linspace(0.3, 1.3, 11)])
def test_a_pole_may_lie_at_the_first_and_at_the_last_place(places):
  x = np.linspace(0.05, 2.55, 40)
  place = short_forms._best_place(Pole(0, 1, None, (), True), rows_of(x, 1 / (x - 1.3)), places, OWN)
  assert place == pytest.approx(1.3, abs=1e-9)


def test_finer_places_lie_between_the_neighbours_of_the_best(monkeypatch):
  x, linspace, asked = np.linspace(0.02, 2.5, 40), np.linspace, []
  monkeypatch.setattr(
    short_forms.np, "linspace", lambda low, high, num: asked.append((low, high, num)) or linspace(low, high, num))
  config = ShortFormsConfig(num_refinements=2, num_finer=5)
  place = short_forms._best_place(
    Pole(0, 1, None, (), True), rows_of(x, 1 / (x - 1.3)), linspace(1.1, 1.6, 6), config)
  np.testing.assert_allclose(asked, [(1.2, 1.4, 5), (1.25, 1.35, 5)])
  assert place == pytest.approx(1.3)


def test_where_nothing_is_told_of_a_place_there_is_none():
  x = np.array([0.0, 1.0])  # beside a column and a constant nothing is left of two rows
  with np.errstate(all="ignore"):
    found = short_forms._best_place(
      Pole(0, 1, None, (), False), rows_of(x, [1.0, 2.0]), np.array([0.0, 1.0]), OWN)
  assert found is None
