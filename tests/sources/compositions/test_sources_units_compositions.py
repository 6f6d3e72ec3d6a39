"""Compositions one by one: blocks of the grid, what a scan makes of them, and which places are taken."""

import dataclasses
import itertools

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.rows import Rows
from symformer_jax.language.expression import variable
from symformer_jax.sources.compositions import (
  composition_fits,
  composition_goals,
  composition_stages as stages,
  compositions,
)
from symformer_jax.sources.compositions.composition_fits import Block, Inside, Leaf, Scan, block_of
from symformer_jax.sources.compositions.composition_goals import Goal, Kind

CONFIG = DEFAULT.compositions
Y = Kind("y", (), False, ())


def leaf(values, column=0):
  return Leaf(variable(column), np.asarray(values, float))


# --- blocks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("inner", "factor"), [("exp", "inv"), ("sin", "pow2"), ("", "exp"), ("pow", "")])
def test_a_block_has_every_constant_of_a_function_with_every_one_of_its_factor(inner, factor, rng):
  z, v = rng.uniform(1, 3, 30), rng.uniform(2, 5, 30)
  block = block_of(Inside(inner, leaf(z), factor, leaf(v, 1)), CONFIG)
  of_inner, of_factor = (stages.constants(name, each[None], CONFIG)[0] for name, each in ((inner, z), (factor, v)))
  expected = [(*one, *other, 0.0) for one, other in itertools.product(of_inner, of_factor)]
  np.testing.assert_allclose(block.constants, expected)
  a, b, e, f, _ = block.constants.T
  k = len(expected)
  values = stages.values(inner, np.tile(z, (k, 1)), a, b) * stages.values(factor, np.tile(v, (k, 1)), e, f)
  np.testing.assert_allclose(block.values, values)


def test_a_block_without_a_factor_has_the_function_alone_and_multiples_of_what_is_beside(rng):
  z, w = rng.uniform(1, 3, 30), rng.uniform(100, 500, 30)
  alone = block_of(Inside("exp", leaf(z)), CONFIG)
  np.testing.assert_allclose(alone.constants[:, 2:], np.tile([1.0, 0, 0], (len(alone.constants), 1)))
  np.testing.assert_allclose(alone.values, np.exp(alone.constants[:, :1] * z + alone.constants[:, 1:2]))
  beside = block_of(Inside("exp", leaf(z), beside=leaf(w, 1)), CONFIG)
  num = len(CONFIG.multiples)
  np.testing.assert_allclose(beside.constants[:, :4], np.repeat(alone.constants[:, :4], num, axis=0))
  shares = np.outer(np.ptp(alone.values, axis=1) / np.ptp(w), CONFIG.multiples).ravel()
  np.testing.assert_allclose(beside.constants[:, 4], shares)
  np.testing.assert_allclose(beside.values, np.repeat(alone.values, num, axis=0) + shares[:, None] * w)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(("exponent", "is_kept"), [(1.1e-9, True), (0.9e-9, False), (-1.1e-9, True)])
def test_what_varies_by_rounding_is_left_out_alone(exponent, is_kept, size):
  z = np.linspace(1, np.e, 30)
  config = dataclasses.replace(CONFIG, exponents=(exponent, 1.0))
  block = block_of(Inside("pow", leaf(z), "", leaf(np.full(30, size), 1)), config)
  assert block.constants[:, 0].tolist() == [exponent] * is_kept + [1.0]


def test_what_is_undefined_somewhere_is_left_out_alone(rng):
  z = rng.uniform(-1, 1, 30)
  block = block_of(Inside("ln", leaf(z)), CONFIG)
  assert 0 < len(block.values) < len(stages.constants("ln", z[None], CONFIG)[0])
  assert np.all(np.isfinite(block.values)) and len(block.constants) == len(block.values)


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_what_stands_inside_is_of_a_column_in_any_unit_but_of_none_that_is_the_same_in_all_rows(unit):
  x = np.column_stack([np.linspace(1, 1.5, 30), np.ones(30)])
  rows = Rows(unit * x, x[:, 0], np.ones(30))
  found = compositions._leaves(rows, (0,), CONFIG)
  assert len(found) == 1 + len(CONFIG.inner_powers)
  np.testing.assert_allclose(found[0].values, np.log(unit * x[:, 0]))
  for exponent, power in zip(CONFIG.inner_powers, found[1:], strict=True):
    np.testing.assert_allclose(power.values, (unit * x[:, 0]) ** exponent)
  assert compositions._leaves(rows, (1,), CONFIG) == []


# --- scans -----------------------------------------------------------------------------------------------------------


def goal_of(y, weights, beside=None):
  root = np.sqrt(weights / weights.sum())
  columns = root[:, None] * np.column_stack([np.ones(len(y)), *([] if beside is None else [beside])])
  basis = np.zeros((2, len(y)))
  basis[: columns.shape[1]] = np.linalg.qr(columns)[0].T
  rest = root * y - basis.T @ (basis @ (root * y))
  return Goal(Y, root, basis, rest / np.linalg.norm(rest))


def peaked():
  """A column of one large row, and one that is orthogonal to it, to 1 and to a pattern."""
  peak = np.zeros(100)
  peak[0] = 1.0
  peak -= peak.mean()
  pattern = np.where(np.arange(100) % 2, 1.0, -1.0)
  pattern[:2] = 0
  other = np.where(np.arange(100) % 4 < 2, 1.0, -1.0)
  other[:4] = 0
  return peak, pattern, other


@pytest.mark.parametrize(("share", "is_own"), [(3e-5, True), (0.5e-5, False)])
@pytest.mark.parametrize("size", [1e-20, 1.0, 1e20])
def test_a_column_is_its_own_by_a_hundred_thousandth_of_its_square(share, is_own, size):
  """Of what a goal has beside it, also where that is nearly nothing in most rows."""
  peak, pattern, other = peaked()
  goal = goal_of(pattern + 0.5 * other, np.ones(100), peak)
  column = peak / np.linalg.norm(peak) + np.sqrt(share) * pattern / np.linalg.norm(pattern)
  [[left]] = Scan([goal], ["exp"], CONFIG)._left((size * column)[None].astype(np.float32))
  along = goal.rest @ pattern / np.linalg.norm(pattern)
  assert left == (pytest.approx(1 - along**2, rel=0.2) if is_own else np.inf)  # in single precision


def test_a_column_of_rows_that_do_not_count_or_without_a_value_leaves_everything(rng):
  weights = np.where(np.arange(40) < 3, 0.0, 1.0)
  goal = goal_of(rng.normal(size=40), weights)
  columns = np.stack([np.arange(40) < 3, np.zeros(40), np.where(np.arange(40) == 9, np.nan, 1.0),
                      np.where(np.arange(40) == 9, np.inf, 1.0), rng.normal(size=40)]).astype(float)
  left = Scan([goal], ["exp"], CONFIG)._left(columns)[:, 0]
  assert np.all(np.isinf(left[:4])) and 0 < left[4] < 1


def scanned(block, goals, names=("exp", "sin", ""), config=CONFIG):
  found = Scan(goals, names, config).nearest(block)
  return [(each.outer, each.goal, *each.constants, each.left) for each in found]


def test_some_at_once_are_as_good_as_all(monkeypatch, rng):
  """Products of matrices of other sizes differ in their last digits, and so may the order of what is as near."""
  z = rng.uniform(0.5, 3, 40)
  goals = [goal_of(np.exp(np.sin(2 * z)) + rng.normal(size=40), np.ones(40)),
           goal_of(z**2 + rng.normal(size=40), rng.uniform(0.5, 2, 40), z)]
  block = block_of(Inside("sin", leaf(z)), CONFIG)
  every = scanned(block, goals)
  monkeypatch.setattr(composition_fits, "MOST_AT_ONCE", 1)
  found = scanned(block, goals)
  assert [each[:2] for each in found] == [each[:2] for each in every]
  np.testing.assert_allclose([each[-1] for each in found], [each[-1] for each in every], atol=2e-3)


def test_places_that_leave_much_are_none_and_nothing_is_less_than_0(rng):
  z = rng.uniform(0.5, 3, 40)
  goals = [goal_of(z, np.ones(40))]
  block = Block(Inside("", leaf(z)), np.array([[1.0, 0, 1, 0, 0]]), z[None])
  [(*_, left)] = scanned(block, goals, [""])
  assert 0 <= left < 1e-5
  noise = rng.normal(size=40)
  share = 1 - np.corrcoef(z, noise)[0, 1] ** 2
  goals = [goal_of(noise, np.ones(40))]
  for most, num in ((1.01 * share, 1), (0.99 * share, 0)):
    assert len(scanned(block, goals, [""], dataclasses.replace(CONFIG, most_left=most))) == num


def test_of_places_that_leave_as_much_the_first_are_found():
  z = np.linspace(0.5, 3, 40)
  values = np.tile(np.stack([z, z**2, np.sqrt(z)]), (40, 1))
  block = Block(Inside("", leaf(z)), np.arange(120.0)[:, None] * np.ones(5), values)
  config = dataclasses.replace(CONFIG, num_alike=30, most_left=9.0)
  goals = [goal_of(z**2 + np.resize([0.5, -0.5, 0.1], 40), np.ones(40))]
  assert [each[2] for each in scanned(block, goals, [""], config)] == [*range(1, 90, 3)]


def test_few_places_of_each_goal_and_function_are_found_the_nearest_first(rng):
  z = rng.uniform(0.5, 3, 40)
  goals = [goal_of(np.exp(np.sin(2 * z)), np.ones(40)), goal_of(np.cos(3 * z), np.ones(40))]
  block = block_of(Inside("sin", leaf(z)), CONFIG)
  config = dataclasses.replace(CONFIG, num_alike=2, most_left=9.0)
  found = scanned(block, goals, ("exp", "sin"), config)
  assert sorted(each[:2] for each in found) == sorted([("exp", 0), ("exp", 1), ("sin", 0), ("sin", 1)] * 2)
  for outer, goal in itertools.product(("exp", "sin"), (0, 1)):
    first, second = (each[-1] for each in found if each[:2] == (outer, goal))
    assert first <= second


# --- goals -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("largest", "temper"), [(5.0, 1.0), (25.0, 0.5), (625.0, 0.25), (1e4, 0.0)])
def test_weights_are_tempered_by_the_first_power_that_leaves_rows_enough(largest, temper):
  """Of sixteen rows half: five times the weight of the others leaves ten of them."""
  weights = np.array([largest, *[1.0] * 15])
  shares = weights**temper
  np.testing.assert_allclose(composition_goals._tempered(weights, 0.5), shares / shares.sum())
