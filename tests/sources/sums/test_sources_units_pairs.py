"""Pairs, triples and sets of columns by themselves: what a step finds is what trying everything finds."""

import dataclasses
import itertools
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser
from symformer_jax.language.rules import Restrictions
from symformer_jax.sources import stateless
from symformer_jax.sources.links import LINKS
from symformer_jax.sources.sums import exchange, pair_sums, pairs, plain_sums, terms

NAMES = ("x", "z", "w")


def parse(text):
  return parser.parse(text, NAMES)


def left_by(columns, some, target, weights):
  """Share of the target's variance that some columns and a constant leave, by least squares."""
  root = np.sqrt(weights)
  design = root[:, None] * np.column_stack([columns[:, list(some)], np.ones(len(target))])
  spread = np.sum(weights * (target - np.average(target, weights=weights)) ** 2)
  return np.sum((root * target - design @ np.linalg.lstsq(design, root * target)[0]) ** 2) / spread


def units_of(rng, num_columns, num_rows):
  units = rng.normal(size=(num_columns, num_rows))
  return units / np.linalg.norm(units, axis=1)[:, None]


# --- unit vectors and blocks -----------------------------------------------------------------------------------------


def test_products_of_a_tile_take_four_megabytes_in_single_precision():
  assert 4 * pairs.TILE**2 == 4 * 2**20 and pairs.TILE == pairs.BLOCK * pairs.TILE_BLOCKS


def test_rows_are_padded_to_multiples_of_64():
  assert [pairs.padded_rows(num) for num in (1, 64, 65, 128, 129)] == [64, 64, 128, 128, 192]


@pytest.mark.parametrize("size", [1.0, 1e-200, 1e200])
def test_units_are_what_a_constant_leaves_of_weighted_columns(size, rng):
  columns, target, weights = rng.normal(size=(20, 3)) + 5, rng.normal(size=20) + 9, rng.uniform(0.2, 3, 20)
  units, goal = pairs.orthogonal_units(columns, size * target, size * weights)
  for found, of in zip((*units, goal), (*columns.T, target), strict=True):
    centred = np.sqrt(weights) * (of - np.average(of, weights=weights))
    np.testing.assert_allclose(found, centred / np.linalg.norm(centred), rtol=1e-9, atol=1e-12)


def test_a_target_may_be_small_where_weights_are_large():
  """As 1/y is where y ranges over sixteen powers of ten, and errors count as those of y."""
  y = np.geomspace(1e-8, 1e8, 40)
  _, goal = pairs.orthogonal_units(y[:, None], 1 / y, y**4 / y.max() ** 4)
  centred = y**2 * (1 / y - np.average(1 / y, weights=y**4))
  np.testing.assert_allclose(goal, centred / np.linalg.norm(centred), atol=1e-9)


def test_of_columns_that_are_constant_but_for_rounding_nothing_is_left():
  """A share of 3e-5 of a column that varies is no more than what single precision leaves of a constant."""
  wave = np.array([1.0, -1, 1, -1])
  columns = np.column_stack([1 + share * wave for share in (0.0, 2.8e-5, 3.5e-5)] + [np.zeros(4)])
  units, _ = pairs.orthogonal_units(columns, wave, np.ones(4))
  assert np.any(units, axis=1).tolist() == [False, False, True, False]
  np.testing.assert_allclose(units[2], wave / 2)
  assert pairs.orthogonal_units(columns, np.zeros(4), np.ones(4))[1].shape == (0,)


@pytest.mark.parametrize(("num", "is_data"), [(0, False), (2, False), (6, True), (40, True)])
def test_a_target_that_is_constant_but_for_rounding_is_none(num, is_data):
  """Of double precision's steps; five are just above the share of 1e-15."""
  target = 1 + num * np.finfo(float).eps * np.tile([1.0, -1.0], 8)
  _, goal = pairs.orthogonal_units(np.ones((16, 1)), 3 * target, np.ones(16))
  assert len(goal) == (16 if is_data else 0)
  if is_data:
    np.testing.assert_allclose(goal, np.tile([0.25, -0.25], 8), atol=0.1)


def test_members_of_a_group_stand_in_blocks_of_their_own_and_single_ones_together(rng):
  sizes = {0: 1, 1: 17, 2: 16, 3: 1, 4: 2, 5: 40, 6: 1}
  groups = rng.permutation(np.repeat(list(sizes), list(sizes.values())))
  flat = []
  for group, size in sizes.items():
    if size > 1:
      flat += [*np.flatnonzero(groups == group).tolist(), *[-1] * (-size % 16)]
  flat += [int(np.flatnonzero(groups == group)[0]) for group, size in sizes.items() if size == 1]
  found = pairs.layout(groups)
  assert found.shape == (64, 16) and found.ravel().tolist() == flat + [-1] * (1024 - len(flat))
  assert pairs.layout(np.arange(1025)).shape == (128, 16)


# --- pairs -----------------------------------------------------------------------------------------------------------


def pair_gains(across, along, least):
  """Share of the target that two unit vectors explain together [P, P], by their three products."""
  left = 1 - across**2
  gain = along[None] ** 2 + (along[:, None] - across * along[None]) ** 2 / np.maximum(left, least)
  return np.where(left > least, gain, 0)


@pytest.mark.parametrize("num_used", [1, 2, 3])
def test_every_tile_in_use_has_the_best_pair_of_each_two_blocks(num_used, rng):
  units = units_of(rng, 3 * pairs.TILE, 8).astype(np.float32)
  units[5] = units[3 * pairs.TILE - 1]  # equal vectors make no pair
  goal = units_of(rng, 1, 8)[0].astype(np.float32)
  along = units @ goal
  found = np.asarray(pairs._block_gains(units, along, num_used))
  assert found.shape == (3 * pairs.TILE_BLOCKS,) * 2
  tiles = found.reshape(3, pairs.TILE_BLOCKS, 3, pairs.TILE_BLOCKS)
  for i, j in itertools.product(range(3), repeat=2):
    if not i <= j < num_used:
      assert not tiles[i, :, j].any()
      continue
    rows, columns = (slice(k * pairs.TILE, (k + 1) * pairs.TILE) for k in (i, j))
    left = 1 - (units[rows] @ units[columns].T) ** 2
    gain = along[columns][None] ** 2 + (
      along[rows][:, None] - units[rows] @ units[columns].T * along[columns][None]) ** 2 / np.maximum(left, 1e-3)
    best = np.where(left > 1e-3, gain, 0).reshape(
      pairs.BLOCK, pairs.TILE_BLOCKS, pairs.BLOCK, pairs.TILE_BLOCKS).max((0, 2))
    np.testing.assert_allclose(tiles[i, :, j], best, atol=0.02)
    assert np.median(np.abs(tiles[i, :, j] - best)) < 1e-5


@pytest.mark.parametrize(("left", "is_pair"), [(0.8e-3, False), (1.6e-3, True)])
def test_vectors_that_single_precision_tells_apart_are_a_pair(left, is_pair):
  units = np.zeros((pairs.TILE, 2), np.float32)
  units[0], units[1] = (1, 0), (np.sqrt(1 - left), np.sqrt(left))
  along = units @ np.array([0.6, 0.8], np.float32)
  found = np.asarray(pairs._block_gains(units, along, 1))[0, 1]  # the first members of two blocks
  # A vector beside nothing explains what it does by itself.
  assert found == pytest.approx(1 if is_pair else np.max(along**2), abs=0.01)


def test_the_largest_entries_above_0_of_the_upper_half():
  gains = np.array([[0.1, 0.9, 0.0], [0.8, 0.3, 0.2], [0.7, 0.6, 0.5]])
  assert pairs._largest(gains, 9).tolist() == [[0, 0], [0, 1], [1, 1], [1, 2], [2, 2]]
  assert pairs._largest(gains, 5).tolist() == [[0, 0], [0, 1], [1, 1], [1, 2], [2, 2]]
  assert sorted(pairs._largest(gains, 3).tolist()) == [[0, 1], [1, 1], [2, 2]]
  assert pairs._largest(np.zeros((2, 2)), 3).shape == (0, 2)


def test_pairs_of_blocks_are_looked_at_in_double_precision(rng):
  units, goal = units_of(rng, 20, 9), units_of(rng, 1, 9)[0]
  units[7] = units[3]  # one of them is no more than the other
  blocks = np.full((3, pairs.BLOCK), -1)
  blocks[0, :9], blocks[1, :8], blocks[2, :3] = range(1, 10), range(10, 18), (18, 0, 19)
  chosen = np.array([[2, 0], [0, 2], [1, 1], [0, 0], [2, 1]])
  found, errors = pairs._sharpened(units, goal, blocks, chosen)
  gains = pair_gains(units @ units.T, units @ goal, 1e-9)
  expected = []
  for first, second in chosen:
    members = ([place for place in blocks[k] if place >= 0] for k in (first, second))
    i, j = max(itertools.product(*members), key=lambda pair: gains[pair])
    expected.append((1 - gains[i, j], [i, j]))
  expected.sort(key=lambda each: each[0])
  np.testing.assert_allclose(errors, [error for error, _ in expected], rtol=1e-9)
  for pair, (_, by_hand) in zip(found.tolist(), expected, strict=True):
    assert sorted(pair) == sorted(by_hand)


def test_the_first_column_is_paired_on_either_side():
  """And places where there is no column are not: the last column explains most."""
  units, goal = np.eye(4), np.array([0.6, 0.5, 0.1, 0.6])
  blocks = np.full((2, pairs.BLOCK), -1)
  blocks[0, 0], blocks[1, 0] = 0, 1
  for chosen in ([[0, 1]], [[1, 0]]):
    found, errors = pairs._sharpened(units, goal, blocks, np.array(chosen))
    assert found.tolist() == chosen and errors.tolist() == pytest.approx([1 - 0.36 - 0.25])
  found, errors = pairs._sharpened(units, goal, blocks, np.array([[0, 0]]))
  assert found.shape == (0, 2) and errors.shape == (0,)  # none explains anything


@pytest.mark.parametrize(("left", "is_pair"), [(0.8e-9, False), (1.6e-9, True)])
def test_vectors_that_double_precision_tells_apart_are_a_pair_and_part_of_a_triple(left, is_pair):
  units = np.array([[1.0, 0, 0], [np.sqrt(1 - left), np.sqrt(left), 0]])
  blocks = np.full((1, pairs.BLOCK), -1)
  blocks[0, :2] = 0, 1
  found, _ = pairs._sharpened(units, np.array([0.6, 0.8, 0]), blocks, np.array([[0, 0]]))
  assert bool(len(found)) is is_pair
  other = np.array([[0.0, 0, 1]])
  for some in (np.concatenate([units, other]), np.concatenate([other, units])):
    seconds, thirds, shares = pairs._beside(0, some @ some.T, some @ np.array([0.6, 0.8, 0]), 9)
    assert list(zip(seconds.tolist(), thirds.tolist(), strict=True)) == ([(1, 2)] if is_pair else [])
    assert shares.tolist() == ([pytest.approx(1, abs=1e-5)] if is_pair else [])


def test_more_pairs_than_are_looked_at_at_a_time_are_all_there(rng):
  columns, target = rng.normal(size=(64, 600)), rng.normal(size=64)
  groups = np.arange(600) // 17  # of 36 groups two blocks each, but for the last: 71
  found, errors = pairs.best_pairs(columns, groups, target, np.ones(64), num=9999)
  # 35 of the blocks have one column alone, which is no pair.
  assert len(found) == 71 * 72 // 2 - 35 > 4 * pairs.CHUNK and np.all(np.diff(errors) >= 0)
  for place in (0, 511, 512, 513, 1024, 1800, len(found) - 1):
    assert errors[place] == pytest.approx(left_by(columns, found[place], target, np.ones(64)), rel=1e-9)
  blocks = pairs.layout(groups)
  block_of = {column: k for k, block in enumerate(blocks) for column in block if column >= 0}
  assert len({tuple(sorted((block_of[a], block_of[b]))) for a, b in found.tolist()}) == len(found)


def test_pairs_that_leave_as_much_stay_in_their_order():
  """Of forty pairs every other explains more."""
  blocks = np.full((80, pairs.BLOCK), -1)
  blocks[:, 0] = range(80)
  chosen = np.column_stack([np.arange(40), np.arange(79, 39, -1)])
  units = np.concatenate([np.tile(np.eye(3)[:2], (20, 1)), np.tile(np.eye(3)[2:], (40, 1))])
  found, errors = pairs._sharpened(units, np.array([0.25, 0.5, 0.5]), blocks, chosen)
  assert found.tolist() == [*chosen[1::2].tolist(), *chosen[::2].tolist()] and len(set(errors.tolist())) == 2


@pytest.mark.parametrize(("num_columns", "expected"), [(0, []), (1, []), (2, [[0, 1]])])
def test_of_two_columns_there_is_one_pair(num_columns, expected, rng):
  found, errors = pairs.best_pairs(rng.normal(size=(9, num_columns)), np.arange(num_columns), rng.normal(size=9),
                                   np.ones(9), num=9)
  assert np.sort(found, axis=1).tolist() == expected and found.shape == (len(expected), 2)
  assert errors.shape == (len(expected),)


def test_columns_that_are_all_constant_make_no_pair(rng):
  found, errors = pairs.best_pairs(np.ones((9, 3)), np.arange(3), rng.normal(size=9), np.ones(9), num=9)
  assert found.shape == (0, 2) and errors.shape == (0,)


def test_the_number_of_pairs_that_are_looked_at_is_a_limit(rng):
  columns, target = rng.normal(size=(30, 40)), rng.normal(size=30)
  every, _ = pairs.best_pairs(columns, np.arange(40) // 2, target, np.ones(30), num=20 * 21 // 2)
  found, _ = pairs.best_pairs(columns, np.arange(40) // 2, target, np.ones(30), num=7)
  assert len(every) == 20 * 21 // 2 and found.tolist() == every[:7].tolist()  # of empty blocks none is looked at


@pytest.mark.parametrize("places", [(0, 1), (0, 7), (6, 7)])
def test_the_best_pair_alone_is_found_wherever_its_columns_stand(places, rng):
  columns = rng.normal(size=(30, 8))
  target = columns[:, places[0]] - 2 * columns[:, places[1]]
  for groups in (np.arange(8), np.arange(8) // 2):
    found, errors = pairs.best_pairs(columns, groups, target, np.ones(30), num=1)
    assert np.sort(found, axis=1).tolist() == [list(places)] and errors[0] < 1e-12


@pytest.mark.parametrize("target", [
  np.zeros(9), np.full(9, 4.5), 1 / (3 / np.linspace(1, 2, 9)) / np.linspace(1, 2, 9)])
def test_of_a_constant_there_are_neither_pairs_nor_triples(target, rng):
  """Of one that rounding alone makes differ from row to row as well."""
  columns = rng.normal(size=(9, 4))
  found, errors = pairs.best_pairs(columns, np.arange(4), target, np.ones(9), num=9)
  assert found.shape == (0, 2) and errors.shape == (0,)
  assert pairs.best_triples(columns, np.arange(4), target, np.ones(9), num=9).shape == (0, 3)


# --- triples ---------------------------------------------------------------------------------------------------------


def test_beside_each_column_the_best_pairs_of_later_ones(rng):
  units, goal = units_of(rng, 8, 12), units_of(rng, 1, 12)[0]
  for first in range(6):
    shares = {}
    for pair in itertools.combinations(range(first + 1, 8), 2):
      some = units[[first, *pair]].T
      shares[pair] = 1 - np.sum((goal - some @ np.linalg.lstsq(some, goal)[0]) ** 2)
    for num in (3, len(shares), 99):
      seconds, thirds, found = pairs._beside(first, units @ units.T, units @ goal, num)
      best = sorted(shares, key=lambda pair: -shares[pair])[:num]
      pairs_found = list(zip(seconds.tolist(), thirds.tolist(), strict=True))
      assert sorted(pairs_found) == sorted(best)
      assert num < len(shares) or pairs_found == list(shares)  # all are in the order of the columns
      np.testing.assert_allclose(found, [shares[each] for each in zip(seconds, thirds, strict=True)], rtol=1e-9)


def test_of_many_pairs_beside_a_column_the_best_are_kept(rng):
  units, goal = units_of(rng, 40, 60), units_of(rng, 1, 60)[0]
  every, best = (pairs._beside(0, units @ units.T, units @ goal, num)[2] for num in (999, 5))
  assert len(every) == 39 * 38 // 2 and sorted(best) == sorted(every)[-5:]


def test_triples_are_in_the_order_of_what_they_leave_of_each_three_groups_the_best(rng):
  columns, target, weights = rng.normal(size=(40, 7)), rng.normal(size=40), rng.uniform(0.5, 1, 40)
  every = sorted(itertools.combinations(range(1, 7), 3), key=lambda some: left_by(columns, some, target, weights))
  columns[:, 0] = 4  # a constant has no share in any
  found = pairs.best_triples(columns, np.arange(7), target, weights, num=99)
  assert [tuple(each) for each in found.tolist()] == every
  groups = np.array([9, 0, 0, 1, 2, 2, 1])
  of_groups = {}
  for each in every:
    of_groups.setdefault(tuple(sorted(groups[list(each)])), each)
  assert [tuple(each) for each in pairs.best_triples(columns, groups, target, weights, num=99).tolist()] == list(
    of_groups.values())
  assert pairs.best_triples(columns[:, :4], np.arange(4), target, weights, num=9).tolist() == [[1, 2, 3]]
  assert pairs.best_triples(columns[:, :3], np.arange(3), target, weights, num=9).shape == (0, 3)


def waves():
  """Five waves of 16 steps, twice; and a sum of them: what is computed of these is exact, and the same of copies."""
  steps = np.arange(16)
  five = np.stack([(-1.0) ** (steps // 2**k) for k in range(4)] + [(-1.0) ** (steps // 4 + steps)], axis=1)
  return np.tile(five, 2), five @ [3.0, 2, 1, 1, 1], [9, 4, 1, 1, 1] * 2


def test_triples_that_leave_as_much_stand_in_the_order_of_their_columns():
  columns, target, explained = waves()
  found = pairs.best_triples(columns, np.arange(10), target, np.ones(16), num=999)
  every = [some for some in itertools.combinations(range(10), 3) if len({i % 5 for i in some}) == 3]
  assert [tuple(some) for some in found.tolist()] == sorted(every, key=lambda some: -sum(explained[i] for i in some))


# --- sets by exchange ------------------------------------------------------------------------------------------------


def test_sets_have_each_column_once_and_are_there_once():
  sets = np.array([[2, 1], [1, 2], [3, 3], [0, 5]])
  assert exchange._distinct(sets).tolist() == [[0, 5], [1, 2]]
  assert exchange._without(sets, {(1, 2), (5, 0)}).tolist() == [[2, 1], [3, 3], [0, 5]]


def test_what_sets_leave_is_what_least_squares_leaves(rng):
  units, goal = units_of(rng, 6, 9), units_of(rng, 1, 9)[0]
  sets = np.array([[0, 1, 4], [2, 3, 5]])
  expected = [np.sum((goal - units[some].T @ np.linalg.lstsq(units[some].T, goal)[0]) ** 2) for some in sets]
  np.testing.assert_allclose(exchange._errors(units, goal, sets), expected, rtol=1e-6)
  units[1] = units[0]
  assert np.isfinite(exchange._errors(units, goal, sets)).all()
  # Two that are all but one, by half of what keeps the matrix regular: a third of what is between them is explained.
  half = np.sqrt(0.25e-9)
  alike = np.array([[np.sqrt(1 - half**2), half], [np.sqrt(1 - half**2), -half]])
  assert exchange._errors(alike, np.array([0.0, 1]), np.array([[0, 1]])) == pytest.approx(4 / 9, rel=1e-5)


@pytest.mark.parametrize(("shape", "expected"), [
  ((1, 1), (4, 64)), ((4 * pairs.TILE, 64), (4, 64)), ((4 * pairs.TILE + 1, 65), (12, 128))])
def test_vectors_are_padded_to_few_shapes(shape, expected, rng):
  units, goal = rng.normal(size=shape), rng.normal(size=shape[1])
  padded, single = map(np.asarray, exchange._padded(units, goal))
  assert padded.shape == (expected[0] * pairs.TILE, expected[1]) and single.shape == (expected[1],)
  assert padded.dtype == single.dtype == np.float32
  np.testing.assert_array_equal(padded[: shape[0], : shape[1]], units.astype(np.float32))
  np.testing.assert_array_equal(single[: shape[1]], goal.astype(np.float32))
  assert not padded[shape[0]:].any() and not padded[:, shape[1]:].any() and not single[shape[1]:].any()


@pytest.mark.parametrize(("size", "num_sets"), [(1, 30), (3, 150)])
def test_a_set_is_completed_by_the_column_that_leaves_least(size, num_sets, rng):
  units, goal = units_of(rng, 30, 10), units_of(rng, 1, 10)[0]
  units[:, 1] += 1  # of one sign, so that none is nearly orthogonal to others
  units /= np.linalg.norm(units, axis=1)[:, None]
  every = np.array(list(itertools.combinations(range(30), size)))
  sets = every[rng.choice(len(every), num_sets, replace=False)]
  found = exchange._completed(jnp.asarray(units, jnp.float32), jnp.asarray(goal, jnp.float32), sets)
  assert found.shape == (num_sets,)
  for some, best in zip(sets.tolist(), found.tolist(), strict=True):
    left = {}
    for i in set(range(30)) - set(some):
      design = units[[*some, i]].T
      left[i] = np.sum((goal - design @ np.linalg.lstsq(design, goal)[0]) ** 2)
    assert left[best] <= min(left.values()) + 1e-5


@pytest.mark.parametrize(("left", "expected"), [(0.8e-3, 2), (1.6e-3, 1)])
def test_a_column_that_is_nearly_in_a_set_does_not_complete_it(left, expected):
  units = np.array([[1, 0, 0], [np.sqrt(1 - left), np.sqrt(left), 0], [0, 0, 1]], np.float32)
  goal = np.array([0.0, 0.9, 0.1], np.float32)
  assert exchange._completed(jnp.asarray(units), jnp.asarray(goal), np.array([[0]])).tolist() == [expected]
  # Nothing is left of the second of a set that is the first again.
  assert exchange._completed(jnp.asarray(units), jnp.asarray(goal), np.array([[0, 0]])).tolist() == [expected]


def completed_by_hand(units, goal, sets):
  def left(some):
    return np.sum((goal - units[some].T @ np.linalg.lstsq(units[some].T, goal)[0]) ** 2)
  return np.array([min((i for i in range(len(units)) if i not in some), key=lambda i: left([*some, i]))
                   for some in sets.tolist()])


@pytest.mark.parametrize("num_rounds", [0, 1, 3])
def test_each_column_of_the_best_sets_is_exchanged_for_the_best_beside_the_others(num_rounds, rng, monkeypatch):
  """The sets asked for, round by round, are those of the definition; none twice."""
  units, goal = units_of(rng, 12, 20), units_of(rng, 1, 20)[0]
  calls = []

  def completed(on_device, single, sets):
    calls.append([tuple(some) for some in sets.tolist()])
    return completed_by_hand(units, goal, sets)
  monkeypatch.setattr(exchange, "_completed", completed)
  config = dataclasses.replace(DEFAULT.subsets, num_rounds=num_rounds, num_exchanged=2)
  begun = np.array([[0, 1], [2, 5], [3, 8], [0, 1]])
  sets, errors = exchange._grown(units, goal, None, None, begun[:3], config)
  found, asked, waiting, expected = {}, set(), [tuple(some) for some in begun[:3].tolist()], []
  for _ in range(1 + num_rounds):
    waiting = [some for some in waiting if some not in asked]
    if not waiting:
      break
    expected.append(waiting)
    asked |= set(waiting)
    for some, best in zip(waiting, completed_by_hand(units, goal, np.array(waiting)).tolist(), strict=True):
      made = tuple(sorted((*some, best)))
      found[made] = np.sum((goal - units[list(made)].T @ np.linalg.lstsq(units[list(made)].T, goal)[0]) ** 2)
    best_first = sorted(found, key=found.get)
    waiting = sorted({each[:i] + each[i + 1:] for each in best_first[:2] for i in range(3)})
  assert [sorted(each) for each in calls] == [sorted(each) for each in expected]
  assert [tuple(some) for some in sets.tolist()] == sorted(found, key=found.get)
  np.testing.assert_allclose(errors, sorted(found.values()), rtol=1e-6)


def test_sets_that_leave_as_much_stand_in_the_order_of_their_columns(monkeypatch):
  """Columns 1, 3, 5, ... are one another's copies, and so are 2, 4, 6, ..."""
  units = np.concatenate([np.eye(3)[:1], np.tile(np.eye(3)[1:], (20, 1))])
  monkeypatch.setattr(exchange, "_completed", lambda on_device, single, sets: np.zeros(len(sets), int))
  config = dataclasses.replace(DEFAULT.subsets, num_rounds=0)
  sets, errors = exchange._grown(units, np.array([0.5, 0.25, 0.75]), None, None, np.arange(40, 0, -1)[:, None], config)
  assert sets.tolist() == [[0, i] for i in (*range(2, 41, 2), *range(1, 41, 2))] and len(set(errors.tolist())) == 2


def test_the_best_single_columns_begin_few_of_each_group_and_what_is_met_ends(rng, monkeypatch):
  columns = rng.normal(size=(50, 6))
  target = columns @ [1.0, -2.0, 0.8, 0.7, 0.6, 0.5]
  groups = np.array([0, 0, 0, 1, 1, 2])
  calls, left = [], [1e-3, 1e-5, 1e-9]

  def grown(units, goal, on_device, single, begun, config):
    calls.append(begun.tolist())
    size = begun.shape[1] + 1
    made = np.array(list(itertools.combinations(range(6), size)))[::-1]
    return made[: len(made) * (left[size - 2] < 1)], left[size - 2] * np.arange(1, len(made) + 1)
  monkeypatch.setattr(exchange, "_grown", grown)
  units, goal = pairs.orthogonal_units(columns, target, np.ones(50))
  order = np.argsort(-((units @ goal) ** 2)).tolist()
  limits = {"num_looked_at": 5, "num_begun": 3, "starts_per_sum": 2}

  def ask(max_size, columns=columns, groups=groups, **changes):
    calls.clear()
    config = dataclasses.replace(DEFAULT.subsets, **(limits | changes))
    return exchange.best_subsets(columns, groups, target, np.ones(len(columns)), max_size=max_size, config=config)
  found = ask(4)
  kept = [i for k, i in enumerate(order[:5]) if [groups[j] for j in order[:k]].count(groups[i]) < 2][:3]
  assert calls[0] == [[i] for i in kept]
  assert [sets.shape[1] for sets in found] == [2, 3, 4] and [len(each) for each in calls] == [3, 3, 3]
  assert calls[1][0] == [4, 5]  # the best of those made
  assert [sets.shape[1] for sets in ask(4, exact=1e-5)] == [2, 3, 4]  # not less than that share
  assert [sets.shape[1] for sets in ask(4, exact=1.1e-5)] == [2, 3]
  assert [sets.shape[1] for sets in ask(2)] == [2] and ask(1) == []
  assert [sets.shape[1] for sets in ask(9, columns[:, :2], groups[:2])] == [2]  # no more than there are columns
  left[1] = 2.0  # no set of three: none of four is begun
  assert [len(sets) for sets in ask(4)] == [15, 0]


def test_of_columns_that_promise_as_much_the_first_begin(monkeypatch):
  begun = []
  monkeypatch.setattr(exchange, "_grown", lambda units, goal, on_device, single, some, config: (
    begun.append(some[:, 0].tolist()), (np.zeros((0, 2), int), np.zeros(0)))[1])
  columns, target, explained = waves()
  columns, explained = np.tile(columns, 4), explained * 4
  exchange.best_subsets(columns, np.arange(40), target, np.ones(16), max_size=2, config=DEFAULT.subsets)
  assert begun == [sorted(range(40), key=lambda i: -explained[i])]


@pytest.mark.parametrize(("num", "num_used"), [(1, 1), (64, 1), (65, 2), (64 * 16, 16), (64 * 16 + 1, 17)])
def test_sets_are_completed_so_many_at_a_time_in_programs_of_few_shapes(num, num_used, monkeypatch):
  asked = []
  monkeypatch.setattr(exchange, "_complete", lambda units, goal, padded, num_used: (
    asked.append((padded, num_used)), padded[:, 0] + 1)[1])
  sets = np.arange(2 * num).reshape(-1, 2)
  assert exchange._completed("units", "goal", sets).tolist() == (sets[:, 0] + 1).tolist()
  [(padded, used)] = asked
  assert used == num_used and padded.shape == (64 * (16 if num_used <= 16 else 64), 2)
  np.testing.assert_array_equal(padded[:num], sets)
  assert not padded[num:].any()


# --- sources of sums -------------------------------------------------------------------------------------------------


class Few:
  """Four columns by hand: as a library has them, relative to their largest value."""

  texts = ("x", "x**2", "exp(0.5*x)", "z")

  def __init__(self, x):
    values = [expression.evaluate(parse(text), x) for text in self.texts]
    self.columns = np.column_stack([each / np.abs(each).max() for each in values]).astype(np.float32)
    self.groups, self.tiers, self.complexities = np.arange(4), np.full(4, 1), np.array([1, 3, 4, 1])
    self._scales = [float(np.abs(each).max()) for each in values]

  def node(self, index):
    return parse(self.texts[index])

  def scale(self, index):
    return self._scales[index]


@pytest.fixture
def x(rng):
  return rng.uniform(0.5, 3, (40, 2))


@pytest.mark.parametrize("used", [None, np.array([0, 3, *range(5, 40)])])
def test_sums_of_sets_of_columns_are_those_of_weighted_least_squares(used, x, rng):
  columns, rows = Few(x), np.arange(40) if used is None else used
  target, weights = rng.normal(size=len(rows)), rng.uniform(0.2, 2, len(rows))
  sets = np.array([[0, 1], [1, 2], [3, 0]])
  found = list(pair_sums.sums_of(columns, sets, target, weights, used))
  assert len(found) == 3
  for node, some in zip(found, sets, strict=True):
    design = np.column_stack([expression.evaluate(columns.node(i), x) for i in some] + [np.ones(40)])
    root = np.sqrt(weights)
    factors = np.linalg.lstsq(root[:, None] * design[rows], root * target)[0]
    np.testing.assert_allclose(expression.evaluate(node, x), design @ factors, rtol=1e-4)


def task_of(y, x, **rules):
  return make_task((x, y), NAMES[:2], SearchOptions(restrictions=Restrictions(**rules)))


def columns_in(node):
  """The operators and variables of a formula, which tell the columns of `Few`."""
  text = {part.token if part.args else (part.token, part.value) for part in expression.walk(node)}
  return {i for i, mark in enumerate((None, "pow2", "exp", ("variable", 1))) if mark in text}


def test_pairs_take_turns_the_nearest_first_and_few_of_each_two_families(x, rng, monkeypatch):
  columns, task = Few(x), task_of(rng.normal(size=40), x)
  found, asked = np.array([[1, 2], [0, 3], [3, 1], [2, 3]]), []

  def best_pairs(some, groups, target, weights, *, num):
    asked.append((some.shape, num))
    return found, np.zeros(4)
  monkeypatch.setattr(terms, "library_of", lambda task, config: columns)
  monkeypatch.setattr(pairs, "best_pairs", best_pairs)
  config = dataclasses.replace(
    DEFAULT, pairs=dataclasses.replace(DEFAULT.pairs, num_looked_at=77, starts_per_pair=1, turns=(3, 1)))
  source = pair_sums.PairSums(config)
  assert source.turns == (3, 1) and source.init(task, None) is None
  [first] = source.propose([Question(task, None, None)], turn=0, num=3, clock=Clock())
  assert asked == [((40, 4), 77)] and len(first.nodes) == 3 and first.state.tolist() == [[2, 3]]
  assert [columns_in(node) for node in first.nodes] == [{1, 2}, {3}, {1, 3}]
  [second] = source.propose([Question(task, None, first.state)], turn=1, num=1, clock=Clock())
  assert len(asked) == 1 and [columns_in(node) for node in second.nodes] == [{2, 3}] and not len(second.state)
  columns.groups = np.array([0, 0, 1, 1])  # x and x**2 are of one family, and so are the other two
  [few] = source.propose([Question(task, None, None)], turn=0, num=9, clock=Clock())
  assert [columns_in(node) for node in few.nodes] == [{1, 2}, {2, 3}]


def test_sources_without_a_state_ask_for_each_data_set_by_the_turn(x):
  class Turns(stateless.Stateless):
    def _nodes(self, question, turn, num):
      return (expression.number(len(question.task.rows)), expression.number(turn), expression.number(num))
  tasks = [task_of(x[:num, 0], x[:num]) for num in (10, 20)]
  assert Turns().init(tasks[0], None) is None and Turns().supports(tasks[0])
  assert not Turns().supports(task_of(x[:, 0], x, forbidden=("+",)))
  found = Turns().propose([Question(task, None, None) for task in tasks], turn=2, num=5, clock=Clock())
  assert [[node.value for node in each.nodes] for each in found] == [[10, 2, 5], [20, 2, 5]]
  with pytest.raises(TypeError, match="abstract"):
    stateless.Stateless()


def test_rules_that_few_formulas_keep_get_more_looks_and_no_more_formulas_than_asked_for(x):
  task = task_of(x[:, 0], x)
  nodes = [parse(f"{k}.5*x") for k in range(9)]
  found = pair_sums.allowed(iter(nodes), task, 3, DEFAULT.terms)
  assert found == tuple(nodes[:3])
  assert pair_sums.allowed(nodes, task, 0, DEFAULT.terms) == ()


def test_points_are_rows_of_which_no_two_are_alike(x):
  """A constant for each five of them: of nine rows formulas have one, however many numbers are in these."""
  y = x[:9, 0] + x[:9, 1]
  rows = np.concatenate([x[:9]] * 3)
  one, two = parse("1.5*x"), parse("1.5*x + 2.5*z")
  assert pair_sums.allowed([one, two], task_of(np.concatenate([y] * 3), rows), 9, DEFAULT.terms) == (one,)
  assert pair_sums.allowed([one, two], task_of(x[:10, 0], x[:10]), 9, DEFAULT.terms) == (one, two)


def test_columns_of_one_tier_are_left_out_from_the_last(x):
  columns = SimpleNamespace(columns=np.ones((2, 80)), groups=np.arange(80), tiers=np.tile([0, 1], 40))
  assert pair_sums.subset(columns, 20).groups.tolist() == list(range(1, 41, 2))


PLAIN = dataclasses.replace(
  DEFAULT,
  pairs_inside=dataclasses.replace(DEFAULT.pairs_inside, turns=(8, 8), links=("y", "exp", "inv"), max_nodes=4),
  triples=dataclasses.replace(DEFAULT.triples, turns=(8,), links=("y",), max_nodes=4))


@pytest.mark.parametrize(("source", "turn", "link"), [
  (plain_sums.PairSumsInside(PLAIN), 0, "y"), (plain_sums.PairSumsInside(PLAIN), 1, "exp"),
  (plain_sums.PairSumsInside(PLAIN), 0, "inv"), (plain_sums.TripleSums(PLAIN), 0, "y")])
def test_functions_of_y_are_shared_out_among_the_turns(source, turn, link, x, monkeypatch):
  monkeypatch.setattr(terms, "library_of", lambda task, config: Few(x))
  inner = 0.3 * x[:, 0] + 0.8 * np.exp(0.5 * x[:, 0]) - 0.2 + (0.1 * x[:, 0] ** 2 if "trip" in source.name else 0)
  y = {"y": inner, "exp": np.exp(inner), "inv": 1 / inner}[link]
  task = task_of(y, x)
  nodes = source._nodes(Question(task, None, None), turn, 8)
  errors = [np.ptp(expression.evaluate(node, x) - y) / np.ptp(y) for node in nodes]
  assert min(errors) < 1e-5
  without = source._nodes(Question(task, None, None), 1 - turn, 8) if len(source.turns) > 1 else []
  assert not any(np.ptp(expression.evaluate(node, x) - y) / np.ptp(y) < 1e-5 for node in without)
  if link != "y":  # what undoes the function is forbidden
    ruled = task_of(y, x, forbidden=(link,))
    assert not any(link == node.token for node in source._nodes(Question(ruled, None, None), turn, 8))


def test_the_shortest_plain_columns_make_sums(x, monkeypatch):
  monkeypatch.setattr(terms, "library_of", lambda task, config: Few(x))
  y = 0.3 * x[:, 0] + 0.2 * x[:, 1] + 0.1 * np.random.default_rng(5).normal(size=40)
  for changes, expected in (({}, {0, 1, 2, 3}), ({"max_nodes": 3}, {0, 1, 3}), ({"max_nodes": 2}, {0, 3}),
                            ({"max_columns": 3}, {0, 1, 3}), ({"max_columns": 2}, {0, 3})):
    own = dataclasses.replace(PLAIN.pairs_inside, links=("y",), turns=(9,), **changes)
    asked = []
    source = plain_sums.PairSumsInside(dataclasses.replace(PLAIN, pairs_inside=own))
    monkeypatch.setattr(plain_sums.PairSumsInside, "_sums", lambda self, columns, link, rows, asked=asked: (
      asked.append([columns.node(i) for i in range(columns.columns.shape[1])]), iter(()))[1])
    source._nodes(Question(task_of(y, x), None, None), 0, 9)
    assert asked == [[parse(text) for i, text in enumerate(Few.texts) if i in expected]]


def test_of_equally_short_columns_the_first_make_sums(x, monkeypatch):
  many = SimpleNamespace(columns=np.ones((40, 80)), groups=np.arange(80), tiers=np.ones(80),
                         complexities=np.tile([3, 1], 40))
  asked = []
  monkeypatch.setattr(terms, "library_of", lambda task, config: many)
  monkeypatch.setattr(plain_sums.PairSumsInside, "_sums", lambda self, columns, link, rows: (
    asked.append(columns.groups.tolist()), iter(()))[1])
  own = dataclasses.replace(PLAIN.pairs_inside, links=("y",), turns=(9,), max_columns=20)
  question = Question(task_of(x[:, 0], x), None, None)
  plain_sums.PairSumsInside(dataclasses.replace(PLAIN, pairs_inside=own))._nodes(question, 0, 9)
  assert asked == [list(range(1, 41, 2))]


def test_rows_that_say_nothing_of_a_function_of_y_are_left_out(x):
  """The derivative of y**2 is 0 where y is; there the sum may be anything."""
  columns = Few(x)
  inner = 0.3 * x[:, 0] + 0.2 * x[:, 1]
  y = np.sqrt(inner)
  y[7] = 0
  found = next(plain_sums.PairSumsInside(PLAIN)._sums(columns, LINKS["sqrt"], Rows(x, y, np.ones(40))))
  np.testing.assert_allclose(expression.evaluate(found, x) ** 2, inner, rtol=1e-5)
  assert list(plain_sums.PairSumsInside(PLAIN)._sums(columns, LINKS["sqrt"], Rows(x, 0 * y, np.ones(40)))) == []
  with np.errstate(all="ignore"):
    assert list(plain_sums.PairSumsInside(PLAIN)._sums(columns, LINKS["exp"], Rows(x, y - 1, np.ones(40)))) == []
