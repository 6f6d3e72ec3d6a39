"""Every pair of columns, against least squares on each."""

import itertools

import numpy as np
import pytest

from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language.rules import Restrictions
from symformer_jax.sources.sums import exchange, pair_sums, pairs
from symformer_jax.sources.sums.library import Atoms
from symformer_jax.sources.sums.pair_sums import PairSums


def errors_of_all(columns, target, weights):
  """Share of the target's variance that each pair leaves, by lstsq."""
  root = np.sqrt(weights)
  spread = np.sum(weights * (target - np.average(target, weights=weights)) ** 2)
  found = {}
  for pair in itertools.combinations(range(columns.shape[1]), 2):
    design = root[:, None] * np.column_stack([columns[:, pair], np.ones(len(target))])
    factors = np.linalg.lstsq(design, root * target, rcond=None)[0]
    found[pair] = np.sum((design @ factors - root * target) ** 2) / spread
  return found


@pytest.mark.parametrize("seed", range(4))
def test_errors_are_those_of_least_squares_and_the_best_pair_is_first(seed):
  rng = np.random.default_rng(seed)
  columns, target = rng.normal(size=(50, 20)) + 3, rng.normal(size=50)
  weights = rng.uniform(0.2, 2, 50)
  expected = errors_of_all(columns, target, weights)
  found, errors = pairs.best_pairs(columns, np.arange(20), target, weights, num=1000)
  best = min(expected, key=expected.get)
  assert tuple(sorted(found[0])) == best
  assert np.all(np.diff(errors) >= 0)
  for pair, error in zip(found, errors, strict=True):
    assert error == pytest.approx(expected[tuple(sorted(pair))], rel=1e-6)


def test_of_two_groups_the_best_members_are_found():
  rng = np.random.default_rng(1)
  columns = rng.normal(size=(60, 400))
  groups = np.arange(400) // 10  # every group fits into a block of its own
  target = columns[:, 37] - 2 * columns[:, 255] + 0.01 * rng.normal(size=60)
  found, errors = pairs.best_pairs(columns, groups, target, np.ones(60), num=5000)
  assert sorted(found[0]) == [37, 255] and errors[0] < 1e-3
  pairs_of_groups = {tuple(sorted(groups[pair])) for pair in found}
  assert len(pairs_of_groups) == len(found) == 40 * 41 // 2


def test_columns_beyond_a_tile_are_paired_too():
  rng = np.random.default_rng(2)
  columns = rng.normal(size=(40, 3 * pairs.TILE + 5)).astype(np.float32)
  target = columns[:, 7] + columns[:, -1]
  found, errors = pairs.best_pairs(columns, np.arange(columns.shape[1]), target, np.ones(40), num=2000)
  assert sorted(found[0]) == [7, columns.shape[1] - 1] and errors[0] < 1e-10


@pytest.mark.parametrize("target", [np.zeros(30), np.full(30, 4.2)])
def test_a_constant_target_has_no_pairs(target):
  found, errors = pairs.best_pairs(np.random.default_rng(0).normal(size=(30, 9)), np.arange(9), target, np.ones(30),
                                   num=100)
  assert found.shape == (0, 2) and errors.shape == (0,)


def test_constant_and_equal_columns_make_no_pair():
  rng = np.random.default_rng(0)
  column = rng.normal(size=50)
  columns = np.column_stack([column, 2 * column, np.ones(50), rng.normal(size=50)])
  found, _ = pairs.best_pairs(columns, np.zeros(4, int), column + columns[:, 3], np.ones(50), num=100)
  assert set(found[0]) in ({0, 3}, {1, 3})


def test_masked_rows_do_not_count():
  rng = np.random.default_rng(3)
  columns = rng.normal(size=(50, 12))
  target, weights = columns[:, 2] + columns[:, 5], np.ones(50)
  target[:10], weights[:10] = 1e6, 0
  found, errors = pairs.best_pairs(columns, np.arange(12), target, weights, num=100)
  assert sorted(found[0]) == [2, 5] and errors[0] < 1e-12


def test_numbers_of_any_size():
  rng = np.random.default_rng(4)
  columns = rng.normal(size=(50, 12))
  for scale in (1e-200, 1e200):
    found, errors = pairs.best_pairs(columns, np.arange(12), scale * (columns[:, 1] - columns[:, 4]), np.ones(50),
                                     num=100)
    assert sorted(found[0]) == [1, 4] and errors[0] < 1e-12


def test_pairs_of_families_have_few_starts_each():
  groups = np.array([0, 0, 0, 1, 1, 2])
  found = np.array([[0, 3], [4, 1], [0, 5], [2, 3], [1, 0]])
  np.testing.assert_array_equal(exchange.of_different_groups(found, groups, 2), found[[0, 1, 2, 4]])


def test_of_many_columns_the_plainer_ones_are_paired():
  atoms = Atoms(np.random.default_rng(0).uniform(1, 2, (60, 1)), [0], config=DEFAULT.library)
  subset = pair_sums.subset(atoms, 300)
  assert subset.columns.shape[1] == 300
  assert np.sum(subset.tiers > 0) == min(300, np.sum(atoms.tiers > 0))
  assert pair_sums.subset(atoms, 10**6) is atoms


def test_without_a_usable_column_there_are_no_pairs():
  rng = np.random.default_rng(0)
  found, errors = pairs.best_pairs(1 + 1e-7 * rng.normal(size=(50, 9)), np.arange(9), rng.normal(size=50), np.ones(50),
                                   num=100)
  assert found.shape == (0, 2) and errors.shape == (0,)


def test_rules_are_kept_while_formulas_are_chosen():
  rng = np.random.default_rng(0)
  data = rng.uniform(1, 2, (60, 2)), rng.normal(size=60)
  task = make_task(data, ["x", "y"], SearchOptions(restrictions=Restrictions(required=("y",), max_complexity=17)))
  [proposal] = PairSums(DEFAULT).propose([Question(task, None, None)], turn=0, num=50, clock=Clock())
  assert len(proposal.nodes) == 50 and all(map(task.rule, proposal.nodes))
  without = make_task(data, ["x", "y"], SearchOptions(restrictions=Restrictions(operators=("*", "exp"))))
  assert not PairSums(DEFAULT).supports(without) and PairSums(DEFAULT).supports(task)
