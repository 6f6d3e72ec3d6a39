"""What sets of blocks leave is what least squares leaves, and exchange finds the right set among many."""

import itertools

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.sources.unknowns import block_exchange


def make_problem(rng, *, num_rows=120, num_blocks=7, size=3):
  x = rng.uniform(-1, 1, num_rows)
  known, basis = rng.normal(size=(num_rows, num_blocks)), np.polynomial.chebyshev.chebvander(x, size - 1)
  known[:, 0] = 1
  return known, basis, rng.uniform(0.5, 2, num_rows)


def least_squares(known, basis, target, weights, blocks):
  root = np.sqrt(weights)
  columns = [np.ones((len(target), 1)), *(known[:, [i]] * basis for i in blocks)]
  design = root[:, None] * np.concatenate(columns, axis=1)
  rest = root * target - design @ np.linalg.lstsq(design, root * target, rcond=None)[0]
  centred = target - np.average(target, weights=weights)
  return rest @ rest / np.sum(weights * centred**2)


@pytest.mark.parametrize("blocks", [(), (0,), (2,), (1, 4), (0, 3, 6)])
def test_what_is_left_is_what_least_squares_leaves(rng, blocks):
  known, basis, weights = make_problem(rng)
  target = 5 + rng.normal(size=len(known))
  products = block_exchange.products_of(known, basis, target, weights)
  expected = least_squares(known, basis, target, weights, blocks)
  assert block_exchange.left_by(products, blocks) == pytest.approx(expected, rel=1e-6)
  left = block_exchange.left_by_one_more(products, np.array([blocks], int).reshape(1, -1))[0]
  for i in range(products.num_blocks):
    if i in blocks:
      assert left[i] == np.inf
    else:
      assert left[i] == pytest.approx(least_squares(known, basis, target, weights, (*blocks, i)), rel=1e-4)


@pytest.mark.parametrize("unit", [1e-12, 1e8])
def test_units_of_what_is_known_do_not_matter(unit, rng):
  known, basis, weights = make_problem(rng)
  target = rng.normal(size=len(known))
  one, other = (block_exchange.products_of(each, basis, target, weights) for each in (known, unit * known))
  for blocks in ((0,), (2, 5), (0, 1, 4)):  # a constant times the first is explained wholly
    assert block_exchange.left_by(other, blocks) == pytest.approx(block_exchange.left_by(one, blocks), rel=1e-6)


def test_a_block_that_others_explain_leaves_what_they_leave(rng):
  known, basis, weights = make_problem(rng)
  known[:, 3] = 2 * known[:, 2]
  products = block_exchange.products_of(known, basis, rng.normal(size=len(known)), weights)
  left = block_exchange.left_by_one_more(products, np.array([[2]]))[0]
  assert left[3] == pytest.approx(block_exchange.left_by(products, (2,)), rel=1e-4)


def test_exchange_finds_the_sum_that_all_sets_of_three_have_to_be_tried_for(rng):
  # Columns that are nearly sums of the right ones come first by themselves.
  known, basis, weights = make_problem(rng, num_blocks=24)
  right = (3, 11, 17)
  known[:, 18:] = known[:, right] @ rng.normal(size=(3, 6)) + 0.3 * rng.normal(size=(len(known), 6))
  target = sum(known[:, i] * (basis @ rng.normal(size=3)) for i in right) - 4
  products = block_exchange.products_of(known, basis, target, weights)
  found = block_exchange.best_sets(products, max_size=4, config=DEFAULT.varying)
  assert found[2][0][0] == right and found[2][0][1] < 1e-8
  for sets in found:
    assert [left for _, left in sets] == sorted(left for _, left in sets)
    assert all(len(set(blocks)) == len(blocks) for blocks, _ in sets)
  best_pair = min(itertools.combinations(range(24), 2), key=lambda pair: block_exchange.left_by(products, pair))
  assert found[1][0][0] == best_pair


def test_nothing_is_added_to_what_meets_the_target(rng):
  known, basis, weights = make_problem(rng)
  target = known[:, 2] * (basis @ rng.normal(size=3))
  products = block_exchange.products_of(known, basis, target, weights)
  found = block_exchange.best_sets(products, max_size=4, config=DEFAULT.varying)
  assert len(found) == 1 and found[0][0][0] == (2,) and found[0][0][1] < 1e-11
