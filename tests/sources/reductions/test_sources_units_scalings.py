"""Changes of scale by themselves, and all changes together: which are looked for and which columns they leave."""

import math

import numpy as np
import pytest
from scipy import optimize
from slope_relations import CONFIG, NAMES, SHOWN, slopes_of, with_config

from symformer_jax.language import expression, parser
from symformer_jax.language.expression import variable
from symformer_jax.sources.reductions import invariances, relations
from symformer_jax.sources.reductions.reduced_tables import Change

pytestmark = pytest.mark.usefixtures("errors_ignored")


@pytest.fixture
def x(rng):
  return rng.uniform(1, 2, (20, 3))


# --- changes of scale ------------------------------------------------------------------------------------------------


def test_relations_are_looked_for_among_few_columns_and_y(monkeypatch):
  asked = []

  def relation(growths, config):
    chosen = tuple(int(each) for each in growths[0])
    asked.append(chosen)
    return np.ones(len(chosen)) if chosen in ((0, 1), (1, 2, 3)) else None

  monkeypatch.setattr(invariances, "relation", relation)
  monkeypatch.setattr(invariances, "_scaled", lambda x, growths, chosen, weights, config: [chosen])
  left = [1e-3]
  monkeypatch.setattr(invariances, "share_left", lambda growths, weights: left[0])
  x, slopes = np.ones((20, 3)), np.tile([0.0, 1.0, 2.0], (20, 1))
  y = np.full(20, -3.0)
  assert list(invariances._scalings(x, y, slopes, [], with_config(max_scaled=4))) == [(1, 2, 3)]
  assert asked == [(0, 1), (0, 2), (1, 2), (0, 2, 3), (1, 2, 3)]
  asked.clear()
  assert list(invariances._scalings(x, y, slopes, [frozenset({1}), frozenset({0, 3})], with_config(max_scaled=3))) == []
  assert asked == [(0, 2)]
  asked.clear()
  list(invariances._scalings(x, y, slopes, [], with_config(max_scaled=2)))
  assert asked == [(0, 1), (0, 2), (1, 2)]
  asked.clear()
  list(invariances._scalings(x, y, slopes, [frozenset({0, 2})], with_config(max_scaled=2)))
  assert asked == [(0, 1), (1, 2)]
  # What is not sure hides none.
  asked.clear()
  left[0] = 1.01e-3
  assert list(invariances._scalings(x, y, slopes, [], with_config(max_scaled=3))) == [(1, 2, 3)]
  assert asked == [(0, 1), (0, 2), (1, 2), (0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]


def growths_of(rng, *, last=1.0, num=20):
  """Whose relation is (2, 0.5, 1/last)."""
  first = rng.uniform(1, 2, num) * rng.choice([-1, 1], num)
  second = 4 * rng.uniform(1, 2, num) * rng.choice([-1, 1], num)
  return np.column_stack([first, second, -last * (2 * first + 0.5 * second)])


def test_rows_whose_sizes_have_died_away_tell_of_no_relation(rng):
  """Of `y + (z - y)*exp(-w*x)` two rows in three are next to y, and slopes by w and x errors of a smooth function."""
  growths = growths_of(rng, num=60)
  growths[20:] = 1e-3 * rng.normal(size=(40, 3))
  weights = relations.relation(growths, CONFIG)
  np.testing.assert_allclose(weights / weights[0], [1, 0.25, 0.5], rtol=1e-9)
  assert relations.share_left(growths, weights) < 1e-12
  assert relations.ratio_of(2 * growths[:, 0] + growths[:, 1] * 0, growths[:, 0]) == 2
  first, second = growths[:, 0].copy(), growths[:, 0] * 3
  second[20:] = 1e-3 * rng.normal(size=40)
  assert relations.ratio_of(second, first) == 3 and np.sum(relations.telling(np.hypot(first, second))) == 20
  assert np.isnan(relations.ratio_of(np.zeros(9), np.zeros(9)))


def test_a_relation_is_the_combination_that_vanishes(rng):
  growths = growths_of(rng, last=3.0)
  weights = relations.relation(growths, CONFIG)
  np.testing.assert_allclose(weights / weights[0], [1, 0.25, 1 / 6], rtol=1e-9)
  np.testing.assert_allclose(np.abs(relations.relation(0.01 * growths, CONFIG)), np.abs(weights), rtol=1e-9)
  # Every row counts as much as any other, whatever its size, as long as that is something beside that of most.
  off = growths * 10 ** rng.uniform(0, 0.8, (20, 1)) * (1 + 0.02 * rng.normal(size=(20, 3)))
  unit = off / np.linalg.norm(off, axis=1, keepdims=True)
  _, _, axes = np.linalg.svd(unit)
  once = relations.relation(off, with_config(tolerance=1.0, num_reweightings=1))
  np.testing.assert_allclose(np.abs(once), np.abs(axes[-1]), rtol=1e-6)
  # By the sum of sizes in the end: a few rows that are far off do not count.
  often = relations.relation(off, with_config(tolerance=1.0, num_reweightings=100))
  least = optimize.minimize(
    lambda w: np.abs(unit @ (w / np.linalg.norm(w))).sum(), axes[-1], method="Nelder-Mead",
    options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000})
  assert np.abs(unit @ often).sum() < 1.01 * least.fun
  growths[:4] *= [1, -3, 2]
  weights = relations.relation(growths, CONFIG)
  np.testing.assert_allclose(weights / weights[0], [1, 0.25, 1 / 6], rtol=1e-3)
  # Rows in which nothing grows obey any, but no more than half of all.
  for num_zero, is_found in ((9, True), (10, False)):
    growths[:num_zero] = 0
    assert (relations.relation(growths, CONFIG) is not None) == is_found
  infinite = growths_of(rng)
  infinite[3, 1] = np.inf
  assert relations.relation(infinite, CONFIG) is None


def test_each_column_has_a_part_in_a_relation(rng):
  growths = growths_of(rng)
  weights = relations.relation(growths, CONFIG)
  sizes = np.median(np.abs(growths * weights), axis=0)
  share = float(np.min(sizes) / np.max(sizes))
  assert relations.relation(growths, with_config(least_part=share * (1 - 1e-9))) is not None
  assert relations.relation(growths, with_config(least_part=share * (1 + 1e-9), needed_share=1e-20)) is None


def test_a_small_part_is_one_if_little_is_left_with_it(rng):
  """As of y in `(1 - exp(-y*z))*exp(-w*z)`, where the first factor is 1 in most rows."""
  growths = rng.uniform(1, 2, (200, 3)) * rng.choice([-1, 1], (200, 3))
  growths[:, 1] *= 0.02
  growths[:, 2] = -growths[:, 0] - growths[:, 1]
  assert CONFIG.least_part > 0.03
  weights = relations.relation(growths, CONFIG)
  np.testing.assert_allclose(weights / weights[0], [1, 1, 1], rtol=1e-9)
  # Not if the others leave no more by themselves, or nothing to speak of.
  assert relations.relation(growths, with_config(needed_share=1e-20)) is None
  growths[:, 1] = 1e-7 * growths[:, 0] ** 2
  growths[:, 2] = -growths[:, 0] - growths[:, 1]
  assert relations.relation(growths, CONFIG) is None


def test_a_relation_leaves_no_more_than_the_tolerance(rng):
  growths = growths_of(rng)
  growths[:, 2] *= 1 + 0.02 * rng.normal(size=20)
  weights = relations.relation(growths, with_config(tolerance=1.0))
  left = relations.share_left(growths, weights)
  assert left > 1e-3
  assert relations.relation(growths, with_config(tolerance=left)) is not None
  assert relations.relation(growths, with_config(tolerance=np.nextafter(left, 0))) is None


def test_columns_over_the_power_of_one_make_a_change_of_scale(x):
  """z**2*sin(x/z)*cos(y/z**3) grows by the square of a number with x, y, z growing by it and its third power."""
  node = parser.parse("z**2*sin(x/z)*cos(y/z**3)", NAMES)
  y, slopes = expression.evaluate(node, x), slopes_of(node, x)
  growths = np.column_stack([x * slopes, -y])
  weights = np.array([1.0, 3.0, 1.0, 2.0])
  [change] = invariances._scaled(x, growths, (0, 1, 2, 3), 7 * weights, with_config(power_denominators=(1,)))
  assert change.is_simple and change.error < 1e-6 and change.summand is None
  assert len(change.replaced) == 2 and change.dropped in (0, 2) and change.divisor == ((change.dropped, 2.0),)
  for column, (each, derivative) in change.replaced.items():
    assert SHOWN(each) == SHOWN(parser.parse(
      f"{NAMES[column]}/{NAMES[change.dropped]}**{int(weights[column])}", NAMES))
    np.testing.assert_allclose(derivative, slopes_of(each, x)[:, column], rtol=1e-6)
  # Without y in it nothing is divided.
  [free] = invariances._scaled(x, growths, (0, 1, 2), weights[:3], with_config(
    power_denominators=(1,), tolerance=math.inf))
  assert free.divisor == () and len(free.replaced) == 2


def test_a_pivot_leaves_no_more_than_the_tolerance_and_can_be_divided_by(x):
  growths = np.column_stack([np.ones(20), np.ones(20), -2 * np.ones(20)])
  growths[:, 2] += 0.125
  weights = np.ones(3)
  left = relations.share_left(growths, weights)
  given = (x, growths, (0, 1, 2), weights)
  assert list(invariances._scaled(*given, with_config(tolerance=left)))
  assert not list(invariances._scaled(*given, with_config(tolerance=np.nextafter(left, 0))))
  # Roots of what is below 0 are none.
  halves = np.array([1.0, 2.0, 1.0])
  growths = np.column_stack([np.ones(20), np.ones(20), -3 * np.ones(20)])
  [change] = invariances._scaled(-x, growths, (0, 1, 2), halves, CONFIG)
  assert change.dropped != 1
  some = np.column_stack([-x[:, 0], x[:, 1], -x[:, 2]])
  [change] = invariances._scaled(some, growths, (0, 1, 2), halves, with_config(power_denominators=(1, 2)))
  assert change.dropped in (0, 2)


def test_of_the_pivots_the_one_of_simplest_powers_is_taken(x):
  """Powers 1, 2, 2 by the first, 1/2, 1, 1 by the others: whole numbers are shorter."""
  growths = np.column_stack([np.ones(20), np.ones(20), -1.5 * np.ones(20)])
  [change] = invariances._scaled(x, growths, (0, 1, 2), np.array([1.0, 2.0, 2.0]), with_config(
    power_denominators=(1, 2)))
  others = []
  for pivot in range(3):
    powers = np.array([1.0, 2.0, 2.0]) / (1.0, 2.0, 2.0)[pivot]
    nodes = [expression.chain("*", [variable(i), expression.power(variable(pivot), expression.number(-p))])
             for i, p in enumerate(powers) if i != pivot]
    others.append(sum(map(expression.complexity, nodes)))
  assert change.complexity == min(others) < max(others)


# --- all of them -----------------------------------------------------------------------------------------------------


def test_changes_are_within_the_tolerance_and_not_those_that_were_rejected():
  changes = [Change(error, column, {}) for column, error in enumerate((0.03, 0.0301, 0.0))]
  config = with_config(tolerance=0.03)
  assert [c.dropped for c in invariances._remaining(changes, config, frozenset())] == [0, 2]
  assert [c.dropped for c in invariances._remaining(changes, config, {changes[0].key})] == [2]


def test_relations_that_are_known_hide_those_of_more_columns(monkeypatch, x):
  y = x[:, 0] ** 2 * np.sin(x[:, 1])
  slopes = np.column_stack([2 * y / x[:, 0], x[:, 0] ** 2 * np.cos(x[:, 1]), np.zeros(20)])
  known, asked = [], []
  monkeypatch.setattr(invariances, "_scalings", lambda x, y, slopes, minimal, config: known.extend(minimal) or iter(()))
  monkeypatch.setattr(invariances, "_sums", lambda *args: iter([Change(0.5, 7, {}), Change(0.0, 8, {})]))
  monkeypatch.setattr(invariances, "_summands", lambda *args: asked.append(1) or iter([Change(0.0, 9, {})]))
  found = invariances.find_changes(x, y, slopes, CONFIG)
  assert [c.dropped for c in found] == [0, 2, 9, 8] and asked == [1]
  assert known == [frozenset({0, 3}), frozenset({2})]
  rejected = {found[0].key, found[3].key}
  known.clear()
  assert [c.dropped for c in invariances.find_changes(x, y, slopes, CONFIG, rejected)] == [2, 9]
  assert known == [frozenset({2})]
