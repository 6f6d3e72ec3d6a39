"""Which columns are searched: of many, and a single one that y is a function of."""

import dataclasses
import itertools

import numpy as np
import pytest

from symformer_jax.engine import screening, task
from symformer_jax.engine.config import DEFAULT, ScreeningConfig
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.errors import InputError
from symformer_jax.language.rules import Restrictions

NAMES = [f"x{i}" for i in range(300)]


def chosen(y, x, **rules):
  rule = Restrictions(**rules).for_columns(NAMES[: x.shape[1]])
  return screening.choose_columns(Rows(x, y, np.ones(len(y))), rule, num_columns=8)


@pytest.mark.parametrize("law", [
  lambda x: 3 * x[:, 5] - 2 * x[:, 100] + x[:, 250], lambda x: x[:, 5] * x[:, 100] / x[:, 250] ** 2,
  lambda x: np.sin(2 * x[:, 5]) + x[:, 100] ** 2 + np.exp(x[:, 250]), lambda x: 1e50 * x[:, 5] * x[:, 100] * x[:, 250]])
def test_columns_that_matter_are_among_them(law, rng):
  x = rng.uniform(1, 3, (150, 300))
  found = chosen(law(x), x)
  assert {5, 100, 250} <= set(found) and len(found) == 8 and list(found) == sorted(found)


def test_few_columns_are_all_taken_and_rules_hold(rng):
  x = rng.uniform(1, 3, (30, 6))
  assert chosen(x[:, 0], x) == tuple(range(6)) and chosen(x[:, 0], x, excluded=("x2",)) == (0, 1, 3, 4, 5)
  x = rng.uniform(1, 3, (150, 300))
  found = chosen(x[:, 7] ** 2, x, required=("x299",), excluded=("x3",))
  assert {7, 299} <= set(found) and 3 not in found and len(found) == 8


def test_few_rows_constant_columns_and_copies_are_no_obstacle(rng):
  x = rng.uniform(1, 3, (9, 300))
  x[:, 10:20] = 2.0
  x[:, 30] = x[:, 40]
  assert len(chosen(x[:, 40], x)) == 8


def test_rows_without_weight_do_not_choose(rng):
  x = rng.uniform(1, 3, (200, 40))
  y = 3 * x[:, 5] - 2 * x[:, 30]
  y[100:] = rng.normal(size=100)
  rule = Restrictions().for_columns(NAMES[:40])
  rows = Rows(x, y, np.where(np.arange(200) < 100, 1.0, 1e-9))
  assert {5, 30} <= set(screening.choose_columns(rows, rule, num_columns=4))


def test_an_outlier_does_not_choose_the_columns(rng):
  x = rng.uniform(1, 3, (150, 300))
  y = 3 * x[:, 5] + x[:, 9] ** 2
  y[0] = 1e9
  assert {5, 9} <= set(chosen(y, x))


def test_values_are_centred_by_their_weights(rng):
  values, weights = rng.normal(size=20) + 7, rng.uniform(0.1, 1, 20)
  root = np.sqrt(weights)
  found = screening._standardized(values, root)
  expected = root * (values - np.average(values, weights=weights))
  np.testing.assert_allclose(found, expected / np.linalg.norm(expected), atol=1e-12)


def test_a_basis_is_of_the_polynomials_of_the_ranks_up_to_the_third(rng):
  column, root = rng.normal(size=30), np.sqrt(rng.uniform(0.1, 1, 30))
  basis = screening._basis(column, root, DEFAULT.library.screening_degree)
  np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-12)
  np.testing.assert_allclose(root @ basis, np.zeros(3), atol=1e-12)
  ranks, whole = np.argsort(np.argsort(column)), np.column_stack([root, basis])
  left = [target - whole @ np.linalg.lstsq(whole, target, rcond=None)[0]
          for target in (root * ranks.astype(float) ** degree / 29.0**degree for degree in range(5))]
  assert [bool(np.abs(each).max() < 1e-9) for each in left] == [True] * 4 + [False]


# --- a function of a single column ------------------------------------------------------------------------------


def sole(y, x, config=DEFAULT.screening, columns=None):
  rows = Rows(x, y, np.ones(len(y)))
  return screening.sole_column(rows, range(x.shape[1]) if columns is None else columns, config)


@pytest.mark.parametrize("law", [
  lambda u: 3 * u - 2, lambda u: np.tan(2 * u - 3), lambda u: 1 / (u - 1.7), lambda u: np.sin(9 * u) * np.exp(u),
  lambda u: np.sqrt(u) + np.log(u), lambda u: u**-6.3, lambda u: np.cos(3 * u) ** 2 + 1e6,
  lambda u: 1e-30 * np.arctan(5 * u)])
def test_a_function_of_one_column_is_told(law, rng):
  x = rng.uniform(0.5, 5, (200, 4))
  assert sole(law(x[:, 2]), x) == 2
  assert sole(law(x[:, 2]) + 1e-3 * np.std(law(x[:, 2])) * x[:, 0], x) is None
  assert sole(law(x[:, 2]) * (1 + 1e-4 * rng.normal(size=200)), x) is None  # as of measurements


def test_repeated_values_have_one_value_of_y(rng):
  x = np.column_stack([np.repeat(rng.uniform(0, 3, 50), 2), rng.uniform(0, 1, 100)])
  y = np.sin(x[:, 0]) + 0.1 * x[:, 0]
  assert sole(y, x) == 0
  y[7] += 0.01  # two values at one place
  assert sole(y, x) is None


@pytest.mark.parametrize("law", [
  lambda u, v: u * v, lambda u, v: 3 * u + 10 * (v > 2.9), lambda u, v: np.maximum(u, v - 0.3),
  lambda u, v: u + np.where(v > 2.7, v, 0), lambda u, v: np.maximum(0.0, u - 2) * v,
  lambda u, v: np.tan(u) + np.where(v > 2.9, 1e-3, 0)])
def test_what_matters_in_few_rows_matters(law, rng):
  for seed in range(10):
    rng = np.random.default_rng(seed)
    x = rng.uniform(1, 3, (200, 3))
    for num_zeros in (0, 60):  # as at night
      x[:num_zeros, 0] = 0.0
      assert sole(law(x[:, 0], x[:, 1]), x) is None


@pytest.mark.parametrize("law", [
  lambda u: np.maximum(0, u - 1.8), lambda u: np.clip(u, 1.5, 2.2), lambda u: (u > 2).astype(float),
  lambda u: np.floor(5 * u), np.round, lambda u: np.where(u > 2, u, 1.0)])
def test_steps_and_limits_raise_nothing(law):
  for seed, num_rows in itertools.product(range(20), (20, 30, 60)):
    x = np.random.default_rng(seed).uniform(1, 3, (num_rows, 2))
    assert sole(law(x[:, 0]), x) in (None, 0)


def test_each_value_is_left_out_once(rng):
  x = np.sort(rng.uniform(1, 3, (60, 2)), axis=0)
  x[:, 1] = rng.permutation(x[:, 1])
  for odd in range(2, 58):
    y = np.exp(x[:, 0])
    assert sole(y, x) == 0
    y[odd] += 0.1
    assert sole(y, x) is None


def test_another_column_that_goes_with_it_is_kept(rng):
  time = np.sort(rng.uniform(0, 12, 150))
  angle = np.round(np.exp(-0.1 * time) * np.cos(1.9 * time), 3)
  speed = np.round(np.exp(-0.1 * time) * np.sin(1.9 * time), 3)
  state = -4 * np.sin(np.exp(-0.1 * time) * np.cos(1.9 * time))
  assert sole(state, np.column_stack([time, angle, speed])) is None
  assert sole(state, np.column_stack([time, rng.permutation(angle), rng.permutation(speed)])) == 0


def test_nothing_is_told_of_few_values_of_copies_and_of_functions_of_the_column(rng):
  x = rng.uniform(1, 3, (60, 3))
  assert sole(x[:, 1] ** 2, x) == 1 and sole(x[:12, 1] ** 2, x[:12]) is None
  assert sole(np.floor(x[:, 1] * 3), x) is None  # seven values
  copied = x.copy()
  copied[:, 2] = copied[:, 1]
  assert sole(x[:, 1] ** 2, copied) is None
  copied[:, 2] = (x[:, 1] - 2) ** 2  # a function of the first, which is none of it
  assert sole(np.sin(copied[:, 2]) + x[:, 1], copied) is None
  copied[:, 2] = 7.0  # a constant is no column
  assert sole(x[:, 1] ** 2, copied) == 1 and sole(x[:, 1] ** 2, copied, columns=(1, 2)) is None
  assert sole(x[:, 1] ** 2, x, columns=(0, 2)) is None


def test_what_a_single_column_takes_is_of_the_config(rng):
  x = rng.uniform(0.5, 5, (200, 2))
  y = np.tan(2 * x[:, 0] - 3)

  def with_config(**changes):
    return sole(y, x, dataclasses.replace(DEFAULT.screening, **changes))

  assert with_config() == 0
  assert with_config(max_terms=4) is with_config(error=1e-300) is with_config(min_values=201) is None
  assert with_config(most_rough=0.0) is with_config(least_rough=9.0) is with_config(has_sole_column=False) is None
  assert with_config(error=1e-14, share=1.0) is with_config(largest_error=1e-15) is None
  assert with_config(error=1e-14, share=0.02) == 0
  beside = np.column_stack([y + 1e-3 * rng.normal(size=200), x])  # over which y is smoother than over its own
  few, more = (dataclasses.replace(DEFAULT.screening, max_tried=num, least_rough=0.0) for num in (1, 2))
  assert sole(y, beside, few) is None and sole(y, beside, more) == 1


@pytest.mark.parametrize(("changes", "message"), [
  ({"share": 2}, "share: expected a number above 0 and at most 1, got 2"), ({"error": 0}, "error: expected a number"),
  ({"largest_error": "a"}, "largest_error: expected a number"), ({"min_values": 3}, "min_values: expected a whole"),
  ({"max_tried": 0}, "max_tried: expected a whole"), ({"max_terms": 1.5}, "max_terms: expected a whole")])
def test_odd_limits_are_refused(changes, message):
  with pytest.raises(InputError, match=message):
    ScreeningConfig(**changes)


def test_the_single_column_is_looked_for_among_all_of_a_wide_table(rng):
  x = rng.uniform(-5, 5, (200, 60))
  found = task.make_task((x, 1 / np.tan(2 * x[:, 40] - 3)), None, SearchOptions())
  assert found.sole_column == 40 and 40 in found.columns and found.is_chosen


def test_a_task_names_the_single_column_unless_rules_require_another(rng):
  x = rng.uniform(-5, 5, (100, 3))
  y = 1 / np.tan(2 * x[:, 1] - 3)
  found = task.make_task((x, y), None, SearchOptions())
  assert found.columns == (0, 1, 2) and found.sole_column == 1
  assert task.make_task((x, y + x[:, 0]), None, SearchOptions()).sole_column is None
  for name, sole_column in (("x0", None), ("x1", 1)):
    required = SearchOptions(restrictions=Restrictions(required=(name,)))
    assert task.make_task((x, y), None, required).sole_column == sole_column
  without = dataclasses.replace(DEFAULT, screening=dataclasses.replace(DEFAULT.screening, has_sole_column=False))
  assert task.make_task((x, y), None, SearchOptions(config=without)).sole_column is None
  excluded = SearchOptions(restrictions=Restrictions(excluded=("x1",)))
  assert task.make_task((x, y), None, excluded).sole_column is None
