"""Selection among columns; exhaustive search is its oracle."""

import itertools

import numpy as np
import pytest

from symformer_jax.engine.config import PursuitConfig
from symformer_jax.sources.sums import pursuit


def error(columns, target, weights, chosen):
  """Squared error that the best factors of these columns and a constant leave."""
  root = np.sqrt(weights)
  design = root[:, None] * np.column_stack([columns[:, list(chosen)], np.ones(len(target))])
  factors = np.linalg.lstsq(design, root * target, rcond=None)[0]
  return float(np.sum((design @ factors - root * target) ** 2))


def pairs_by_error(columns, target, weights):
  pairs = itertools.combinations(range(columns.shape[1]), 2)
  return sorted(pairs, key=lambda chosen: error(columns, target, weights, chosen))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_selection_finds_what_exhaustive_search_finds(size, dtype, rng):
  columns, weights = rng.normal(size=(60, 12)), rng.uniform(0.5, 2, 60)
  target = columns[:, [1, 4, 9]] @ [2.0, -1.0, 0.7] + 3 + 0.1 * rng.normal(size=60)
  best = min(itertools.combinations(range(12), size), key=lambda chosen: error(columns, target, weights, chosen))
  found = pursuit.select_columns(columns.astype(dtype), target, weights)
  of_size = [chosen for chosen in found if len(chosen) == size]
  assert of_size[0] == best
  errors = [error(columns, target, weights, chosen) for chosen in of_size]
  assert errors == sorted(errors)


def test_dependent_and_constant_columns_are_no_gain(rng):
  column = rng.normal(size=50)
  columns = np.stack([column, 2 * column, column + 1e-9 * rng.normal(size=50), np.ones(50)], axis=1)
  chosen = pursuit.select_columns(columns, column + rng.normal(size=50), np.ones(50))
  assert {len(c) for c in chosen} == {1}


def _difference(rng):
  """A target that is the small difference of two columns, each useless alone, among columns that are not quite."""
  common, target = rng.normal(size=200), rng.normal(size=200)
  alone = 0.3 * target[:, None] + rng.normal(size=(200, 60))
  return np.column_stack([alone, common, common + 0.01 * target]), target


def test_with_all_columns_carried_on_every_pair_is_tried(rng):
  columns, target = _difference(rng)
  weights = np.ones(200)
  best = pairs_by_error(columns, target, weights)[0]
  assert best == (60, 61)

  def pairs(**options):
    config = PursuitConfig(max_columns=2, **options)
    return [c for c in pursuit.select_columns(columns, target, weights, config=config) if len(c) == 2]

  assert best not in pairs()
  assert pairs(num_first=62)[0] == best


@pytest.mark.parametrize("groups", [[0] * 60 + [1, 1], [0] * 62])
def test_pairs_of_one_group_are_tried_as_well(groups, rng):
  columns, target = _difference(rng)
  config = PursuitConfig(max_columns=2, num_first=62)
  found = [c for c in pursuit.select_columns(columns, target, np.ones(200), groups=groups, config=config)
           if len(c) == 2]
  assert found[0] == (60, 61)


def test_of_a_group_only_the_best_is_carried_on(rng):
  target, other = rng.normal(size=100), rng.normal(size=100)
  near = target[:, None] + 0.1 * other[:, None] + 0.01 * rng.normal(size=(100, 40))
  columns = np.column_stack([near, target + 2 * rng.normal(size=100)])
  groups = [0] * 40 + [1]
  singles = [c for c in pursuit.select_columns(columns, target, np.ones(100), groups=groups) if len(c) == 1]
  assert len(singles) == 2 and singles[1] == (40,)
  assert singles[0] == min(((i,) for i in range(40)), key=lambda c: error(columns, target, np.ones(100), c))
  alone = [c for c in pursuit.select_columns(columns, target, np.ones(100)) if len(c) == 1]
  assert (40,) not in alone


def test_what_is_small_beside_an_offset_is_told_apart(rng):
  columns = rng.normal(size=(60, 8))
  target = 1e3 + columns[:, 2] + 1e-5 * columns[:, 5]
  config = PursuitConfig(max_columns=2, num_first=1)
  assert (2, 5) in pursuit.select_columns(columns, target, np.ones(60), config=config)


def test_pairs_have_their_own_number(rng):
  columns, target = rng.normal(size=(60, 9)), rng.normal(size=60)
  config = PursuitConfig(max_columns=3, num_first=9, num_pairs=3, num_beams=7, num_kept_short=99, num_kept=99)
  found = pursuit.select_columns(columns, target, np.ones(60), config=config)
  assert [sum(len(each) == size for each in found) for size in (1, 2, 3, 4)] == [9, 3, 7, 0]


def test_a_small_part_that_another_column_has_not_is_enough(rng):
  common, target = rng.normal(size=(2, 60))
  columns = np.column_stack([rng.normal(size=(60, 6)), common, common + 1e-4 * target])
  found = pursuit.select_columns(columns, target, np.ones(60), config=PursuitConfig(max_columns=2, num_first=8))
  assert next(each for each in found if len(each) == 2) == (6, 7)


@pytest.mark.parametrize("columns", [np.zeros((20, 0)), np.ones((20, 3)), np.zeros((20, 2))])
def test_nothing_is_selected_of_nothing(columns, rng):
  assert pursuit.select_columns(columns, rng.normal(size=20), np.ones(20)) == []
