"""Terms of a fraction are chosen one by one, and fitted as SciPy would."""

import dataclasses

import numpy as np
import pytest
from scipy import optimize

from symformer_jax.engine.config import DEFAULT
from symformer_jax.sources.fractions.term_pursuit import Pursuit

CONFIG = DEFAULT.fraction_pursuit


def columns_of(num_rows=200, num_columns=12, seed=0):
  rng = np.random.default_rng(seed)
  return np.column_stack([np.ones(num_rows), rng.uniform(0.5, 2.0, (num_rows, num_columns))])


def pursuit_of(columns, target, *, weights=None, **changed):
  weights = np.ones(len(target)) if weights is None else weights
  return Pursuit(columns, target, weights, dataclasses.replace(CONFIG, **changed))


def noisy(values, seed=1, noise=0.01):
  return values + noise * np.std(values) * np.random.default_rng(seed).normal(size=len(values))


def test_a_fraction_is_found_among_columns_under_errors():
  columns = columns_of()
  target = noisy((2 * columns[:, 3] - 0.7 * columns[:, 5]) / (1 + 0.8 * columns[:, 7] + 1.5 * columns[:, 3]))
  found = pursuit_of(columns, target).by_size()
  best = found[3][0]
  assert (set(best.above), set(best.below)) == ({3, 5}, {7, 3})
  by_name = dict(zip([("a", i) for i in best.above] + [("b", i) for i in best.below], best.coefficients, strict=True))
  assert by_name == pytest.approx({("a", 3): 2, ("a", 5): -0.7, ("b", 7): 0.8, ("b", 3): 1.5}, rel=0.15)
  assert [len(some[0].coefficients) for some in found] == list(range(1, len(found) + 1))
  errors = [some[0].error for some in found]
  assert errors == sorted(errors, reverse=True) and all(
    each.error <= other.error for some in found for each, other in zip(some, some[1:], strict=False))


def test_there_is_no_further_term_once_only_errors_are_left():
  columns = columns_of()
  target = noisy(columns[:, 2] / (1 + columns[:, 4]))
  assert len(pursuit_of(columns, target).by_size()) == 3  # the third did not pay
  assert len(pursuit_of(columns, target, least_gained=-1.0).by_size()) == CONFIG.max_terms
  assert len(pursuit_of(columns, target, least_gained=1e9).by_size()) == 2
  assert len(pursuit_of(columns, target, least_gained=-1.0, max_terms=4).by_size()) == 4


def test_coefficients_are_those_of_least_squares():
  """With weights; SciPy is the oracle."""
  columns, rng = columns_of(), np.random.default_rng(5)
  target = noisy((1 + columns[:, 1]) / (1 + 0.5 * columns[:, 2]), noise=0.1)
  weights = rng.uniform(0.1, 3.0, len(target))
  found = pursuit_of(columns, target, weights=weights, num_steps=50)._fitted((0, 1), (2,), np.array([1.0, 0.5, 0.0]))

  def errors(c):
    return np.sqrt(weights) * ((c[0] + c[1] * columns[:, 1]) / (1 + c[2] * columns[:, 2]) - target)
  expected = optimize.least_squares(errors, [1.0, 0.5, 0.0], xtol=1e-12, ftol=1e-12).x
  assert found.coefficients == pytest.approx(expected, rel=2e-2)
  assert found.error == pytest.approx(np.sum(errors(expected) ** 2) / np.sum(weights), rel=1e-4)
  assert found.values == pytest.approx((found.coefficients[0] + found.coefficients[1] * columns[:, 1]) / found.divisor)


def test_what_a_column_would_gain_is_what_it_gains_to_first_order():
  """The exact gain of a column above the line, where the fraction is a sum."""
  columns = columns_of(num_columns=4)
  target = noisy(columns[:, 1] + 0.1 * columns[:, 2], noise=0.1)
  pursuit = pursuit_of(columns, target)
  [one] = [each for each in pursuit._single() if each.above == (1,)]
  above, below = pursuit._gains(one)
  for column in (0, 2, 3, 4):
    design = columns[:, [1, column]]
    left = target - design @ np.linalg.lstsq(design, target, rcond=None)[0]
    assert above[column] == pytest.approx(one.error - np.mean(left**2), rel=1e-6)
  assert above[1] == below[0] == 0.0
  # Below the line the change is -f*g: as if this were a column above it.
  design = np.column_stack([columns[:, 1], one.values * columns[:, 3]])
  left = target - design @ np.linalg.lstsq(design, target, rcond=None)[0]
  assert below[3] == pytest.approx(one.error - np.mean(left**2), rel=1e-6)


def test_a_column_that_is_nearly_one_of_those_there_gains_nothing():
  columns = columns_of(num_columns=3)
  columns = np.column_stack([columns, 2 * columns[:, 1] + 1e-5 * columns[:, 2]])
  pursuit = pursuit_of(columns, noisy(columns[:, 1] + columns[:, 2]))
  [one] = [each for each in pursuit._single() if each.above == (1,)]
  assert pursuit._gains(one)[0][4] == 0.0
  assert pursuit_of(columns, noisy(columns[:, 1] + columns[:, 2]), least_new=1e-14)._gains(one)[0][4] > 0.0


@pytest.mark.parametrize("size", (1e-6, 1.0, 1e6))
def test_what_is_new_is_told_in_any_unit(size):
  columns = columns_of(num_columns=3)
  target = noisy(columns[:, 1] + columns[:, 2])
  gains = []
  for scaled in (columns, size * columns):
    pursuit = pursuit_of(scaled, target)
    [one] = [each for each in pursuit._single() if each.above == (1,)]
    gains.append(pursuit._gains(one)[0])
  assert gains[1] == pytest.approx(gains[0], rel=1e-6) and gains[1][2] > 0


def test_no_divisor_changes_its_sign():
  columns = columns_of()
  pursuit = pursuit_of(columns, noisy(columns[:, 1]))
  assert pursuit._at((1,), (2,), np.array([1.0, -0.8])).error == np.inf
  assert np.isfinite(pursuit._at((1,), (2,), np.array([1.0, -5.0])).error)  # below 0 in all rows
  for some in pursuit.by_size():
    assert all(np.all(each.divisor > 0) or np.all(each.divisor < 0) for each in some)


def test_a_term_that_has_lost_its_worth_gives_way():
  """The nearest single column is none of the law's two."""
  rng = np.random.default_rng(2)
  one, other = rng.normal(size=(2, 300))
  columns = np.column_stack([np.ones(300), one, other, one + other + 0.3 * rng.normal(size=300), rng.normal(size=300)])
  target = noisy(one + other, noise=0.02)
  few = {"num_carried": 1, "num_tried": 2}
  assert [some[0].above for some in pursuit_of(columns, target, **few).by_size()[:1]] == [(3,)]
  assert {frozenset(each.above) for each in pursuit_of(columns, target, **few).by_size()[1]} >= {frozenset({1, 2})}
  kept = pursuit_of(columns, target, num_exchanged=1, **few)
  kept._reduced = lambda terms: []
  assert all(3 in each.above for each in kept.by_size()[1])


def test_terms_of_a_sum_that_tell_of_each_other_are_found_by_taking_all_and_the_others_away():
  """None of three is near the target, many others are."""
  rng = np.random.default_rng(4)
  plain = rng.normal(size=(300, 3))
  target = noisy(plain @ [3.0, -2.9, 1.0], noise=0.01)
  mixed = (plain @ rng.normal(size=(3, 40))) * 0.3 + target[:, None] * rng.uniform(0.5, 1.5, 40)
  mixed = mixed + 0.2 * np.std(target) * rng.normal(size=(300, 40))
  columns = np.column_stack([np.ones(300), plain, rng.normal(size=(300, 4)), mixed])

  def pursuit(**changed):
    config = dataclasses.replace(CONFIG, **changed)
    return Pursuit(columns, target, np.ones(300), config, plain=[[0, 4, 5], list(range(8))])
  assert frozenset({1, 2, 3}) in {frozenset(each.above) for each in pursuit().by_size()[2]}
  found = pursuit()._eliminated(list(range(8)))
  assert [len(each.above) for each in found] == list(range(1, CONFIG.max_terms + 1))
  assert set(found[2].above) == {1, 2, 3} and found[2].coefficients == pytest.approx(
    np.linalg.lstsq(columns[:, found[2].above], target, rcond=None)[0], rel=1e-6)
  # No more plain columns than rows tell of.
  assert pursuit(plain_share=0.01)._plain == [[0, 4, 5], [0, 1, 2]]


def test_of_columns_that_depend_on_each_other_one_is_as_good_as_the_other():
  rng = np.random.default_rng(6)
  one, other = rng.normal(size=(2, 200))
  columns = np.column_stack([np.ones(200), one, other, one + other, np.zeros(200), one])
  target = noisy(2 * one - other)
  found = Pursuit(columns, target, np.ones(200), CONFIG)._eliminated([0, 1, 2, 3, 4, 5])
  assert 4 not in found[-1].above and found[1].error < 2e-3 * np.var(target)


def test_each_set_of_terms_is_fitted_once(monkeypatch):
  columns = columns_of()
  target = noisy((columns[:, 1] - columns[:, 2]) / (1 + columns[:, 3]))
  fitted = []
  inner = Pursuit._fitted
  monkeypatch.setattr(Pursuit, "_fitted", lambda self, above, below, start: (
    fitted.append((frozenset(above), frozenset(below))) or inner(self, above, below, start)))
  pursuit_of(columns, target, least_gained=-1.0).by_size()
  assert len(fitted) == len(set(fitted)) > 50
