"""Which of many columns are searched."""

import numpy as np
import pytest

from symformer_jax.engine import screening
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.rows import Rows
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
