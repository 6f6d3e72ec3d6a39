"""Equations between columns: those that are there are found in their fewest terms, and no others."""

import dataclasses

import numpy as np
import pytest

from symformer_jax.engine.config import EliminationConfig
from symformer_jax.sources.fractions import null_vectors

EXACT = EliminationConfig(vanishing=1e-12, kept_share=10.0)


def columns_of(rng, num=40, size=120):
  return rng.normal(size=(size, num)) * 10.0 ** rng.integers(-3, 4, num)


@pytest.mark.parametrize("num_terms", [2, 3, 7, 12])
@pytest.mark.parametrize("seed", range(4))
def test_a_dependent_column_is_told_with_its_terms(num_terms, seed):
  rng = np.random.default_rng(seed)
  columns = columns_of(rng)
  terms = rng.choice(39, num_terms - 1, replace=False)
  own = rng.uniform(0.5, 3, num_terms - 1) * rng.choice([-1, 1], num_terms - 1)
  columns[:, 39] = columns[:, terms] / np.linalg.norm(columns[:, terms], axis=0) @ own
  found = null_vectors.find(columns, EXACT)
  assert set(np.flatnonzero(found)) == {*terms.tolist(), 39}
  expected = np.zeros(40)
  expected[terms], expected[39] = own / np.linalg.norm(columns[:, terms], axis=0), -1
  np.testing.assert_allclose(found / found[39], expected / expected[39], rtol=1e-8)


def test_more_terms_than_are_allowed_are_none():
  rng = np.random.default_rng(0)
  columns = columns_of(rng, 30)
  columns[:, 0] = np.sum(columns[:, 1:20] / np.linalg.norm(columns[:, 1:20], axis=0), axis=1)
  assert null_vectors.find(columns, EXACT) is None
  assert np.count_nonzero(null_vectors.find(columns, dataclasses.replace(EXACT, max_terms=20))) == 20


def test_independent_columns_and_those_that_are_nothing_have_none():
  rng = np.random.default_rng(1)
  columns = columns_of(rng)
  assert null_vectors.find(columns, EXACT) is None
  for value in (0.0, np.inf, np.nan):
    columns[:, 3] = value
    assert null_vectors.find(columns, EXACT) is None


@pytest.mark.parametrize(("noise", "is_found"), [(1e-7, True), (1e-2, False)])
def test_what_nearly_vanishes_counts_as_far_as_it_is_allowed(noise, is_found):
  rng = np.random.default_rng(2)
  columns = rng.normal(size=(200, 20))
  columns[:, 19] = columns[:, 2] - 2 * columns[:, 5] + noise * rng.normal(size=200)
  found = null_vectors.find(columns, EliminationConfig())
  assert (found is not None and set(np.flatnonzero(found)) == {2, 5, 19}) == is_found
  assert null_vectors.find(columns, EXACT) is None


@pytest.mark.parametrize("vanishing", [1e-12, 1e-4])
@pytest.mark.parametrize("seed", range(3))
def test_no_columns_are_independent_of_which_singular_values_tell_that_they_are_not(vanishing, seed):
  """Of some of each size, the least a share of the largest from a ten-thousandth of what is allowed to much more."""
  rng = np.random.default_rng(seed)
  for num, log_share in zip(rng.integers(2, 80, 60), np.linspace(-4, 12, 60), strict=True):
    columns = rng.normal(size=(100, num))
    columns[:, -1] = columns[:, 0] + 10.0 ** log_share * vanishing * columns[:, -1]
    columns /= np.linalg.norm(columns, axis=0)
    sizes = np.linalg.svd(columns, compute_uv=False)
    is_independent = null_vectors._are_independent(columns, vanishing)
    assert not (is_independent and sizes[-1] <= vanishing * sizes[0])
    # Where they are far from it, by rounding too, it is told.
    assert is_independent or sizes[-1] < 30 * np.sqrt(num) * max(vanishing, 1e-7)


def test_where_columns_are_independent_their_singular_values_are_not_asked_for(monkeypatch):
  monkeypatch.setattr(null_vectors.np.linalg, "qr", None)
  assert null_vectors.find(columns_of(np.random.default_rng(1)), EXACT) is None


def test_powers_that_come_near_a_function_are_no_equation():
  x = np.linspace(0.5, 3, 200)
  columns = np.column_stack([*(x**k for k in range(14)), np.exp(-x)])
  assert null_vectors.find(columns, EXACT) is None


@pytest.mark.parametrize("shape", [(5, 3), (3, 5)])
def test_what_the_square_of_the_least_singular_value_gains_without_each_column(shape, rng):
  """To first order, by the inverse of what the other directions leave; of wide matrices as well."""
  matrix = rng.normal(size=shape)
  left, vector, rise = null_vectors._least(matrix)
  _, sizes, vectors = np.linalg.svd(matrix, full_matrices=False)
  assert left == pytest.approx(sizes[-1] / sizes[0])
  np.testing.assert_allclose(vector, vectors[-1])
  others = [sum((vectors[k, j] * sizes[0] / sizes[k]) ** 2 for k in range(2)) for j in range(shape[1])]
  np.testing.assert_allclose(rise, vectors[-1] ** 2 / others)


def test_directions_that_are_rounding_count_as_such(rng):
  """A second singular value of 0 is told apart from the first no finer than rounding tells it."""
  direction = np.array([0.6, 0.8])
  matrix = np.outer(rng.normal(size=4), direction)
  _, _, rise = null_vectors._least(np.column_stack([matrix, matrix @ [1.0, 1.0]]))
  assert np.all(np.isfinite(rise)) and np.max(rise) < 1e3 * null_vectors.ROUNDING**2
  assert null_vectors.ROUNDING / np.finfo(float).eps == 10


def test_nested_combinations_lose_the_term_that_is_needed_least(rng):
  columns = rng.normal(size=(50, 5))
  columns[:, 4] = 2 * columns[:, 1] - 3 * columns[:, 3]
  found = list(null_vectors.nested(columns))
  assert len(found) == 4 and np.count_nonzero(np.abs(found[2]) > 1e-6) == 3 and np.count_nonzero(found[3]) == 2
  np.testing.assert_allclose(found[2] / found[2][4], [0, -2, 0, 3, 1], atol=1e-9)
  for each in found[:3]:
    assert np.abs(columns @ each).max() < 1e-12
  for value in (0.0, np.inf, np.nan):
    columns[:, 0] = value
    assert list(null_vectors.nested(columns)) == []
