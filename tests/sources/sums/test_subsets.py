"""Best subsets by exchange, against all subsets; sums for y, for its functions, and under monomials."""

import dataclasses
import itertools

import numpy as np
import pytest

from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression
from symformer_jax.language.rules import Restrictions
from symformer_jax.sources.sums import exchange
from symformer_jax.sources.sums.subset_sums import SubsetSums, SubsetSumsInside


def error(columns, target, weights, chosen):
  """Share of the target's variance that columns leave, by lstsq."""
  root = np.sqrt(weights)
  design = root[:, None] * np.column_stack([columns[:, chosen], np.ones(len(target))])
  left = root * target - design @ np.linalg.lstsq(design, root * target, rcond=None)[0]
  return left @ left / np.sum(weights * (target - np.average(target, weights=weights)) ** 2)


@pytest.mark.parametrize("seed", range(3))
def test_the_best_of_all_subsets_is_found_and_comes_first(seed):
  rng = np.random.default_rng(seed)
  common = rng.normal(size=(40, 4))
  columns = common @ rng.normal(size=(4, 24)) + 0.5 * rng.normal(size=(40, 24)) + 3  # far from orthogonal
  target, weights = columns[:, :6] @ rng.normal(size=6) + rng.normal(size=40), rng.uniform(0.2, 2, 40)
  found = exchange.best_subsets(columns, np.arange(24), target, weights, max_size=4, config=DEFAULT.subsets)
  assert [sets.shape[1] for sets in found] == [2, 3, 4]
  for sets in found:
    of_all = {s: error(columns, target, weights, s) for s in itertools.combinations(range(24), sets.shape[1])}
    assert tuple(sets[0]) == min(of_all, key=of_all.get)
    errors = [of_all[tuple(s)] for s in sets.tolist()]
    np.testing.assert_allclose(errors, np.sort(errors), rtol=1e-6)
    assert len(set(map(tuple, sets.tolist()))) == len(sets)


def test_exchange_finds_what_growing_misses():
  """Of three right columns none is the nearest, nor are two of them the nearest pair."""
  rng = np.random.default_rng(3)
  right = rng.normal(size=(60, 3))
  target = right @ [1.0, -1.0, 1.0]
  near = target[:, None] + rng.normal(size=(60, 300))
  columns = np.concatenate([near, right], axis=1)
  config = dataclasses.replace(DEFAULT.subsets, num_begun=24, num_exchanged=24)
  by_exchange, without = (exchange.best_subsets(
    columns, np.arange(303), target, np.ones(60), max_size=5, config=dataclasses.replace(config, num_rounds=rounds))
    for rounds in (6, 0))
  least = [error(columns, target, np.ones(60), found[-1][0]) for found in (by_exchange, without)]
  assert least[0] < least[1]


def test_what_is_met_gets_no_further_column(rng):
  columns = rng.normal(size=(50, 30))
  target = columns[:, 3] - 2 * columns[:, 17]
  found = exchange.best_subsets(columns, np.arange(30), target, np.ones(50), max_size=5, config=DEFAULT.subsets)
  assert len(found) == 1 and found[0][0].tolist() == [3, 17]


@pytest.mark.parametrize("target", [np.zeros(30), np.full(30, 7.0)])
def test_a_constant_target_has_no_subsets(target, rng):
  assert exchange.best_subsets(
    rng.normal(size=(30, 9)), np.arange(9), target, np.ones(30), max_size=3, config=DEFAULT.subsets) == []


def test_equal_and_constant_columns_make_no_set(rng):
  column = rng.normal(size=50)
  columns = np.column_stack([column, column, np.full(50, 2.0), 3 * column + 1, rng.normal(size=50)])
  found = exchange.best_subsets(
    columns, np.arange(5), column + 0.1 * columns[:, 4], np.ones(50), max_size=4, config=DEFAULT.subsets)
  assert all(set(sets[0]) <= {0, 1, 3, 4} for sets in found) and 4 in found[0][0]
  assert error(columns, column + 0.1 * columns[:, 4], np.ones(50), found[0][0]) < 1e-20


def asked(source, f, bounds, *, turns=None, restrictions=None):
  rng = np.random.default_rng(0)
  x = np.column_stack([rng.uniform(low, high, 100) for low, high in bounds])
  options = SearchOptions(restrictions=restrictions) if restrictions else SearchOptions()
  task = make_task((x, f(*x.T)), "xyzw"[: len(bounds)], options)
  nodes = []
  for turn, num in enumerate(source.turns if turns is None else source.turns[:turns]):
    question = Question(task, None, source.init(task, None))
    [proposal] = source.propose([question], turn=turn, num=num, clock=Clock())
    assert len(proposal.nodes) <= num
    nodes += proposal.nodes
  return task, nodes


def best_error(task, nodes):
  with np.errstate(all="ignore"):
    errors = [np.mean((expression.evaluate(node, task.fit_rows.x) - task.fit_rows.y) ** 2) for node in nodes]
  return np.nanmin(errors) / task.variance


@pytest.mark.parametrize("f", [
  lambda x, y, z, w: x * np.sin(y) + z * np.cos(y) - w * x,
  lambda x, y, z, w: 15 * np.cos(y) - 27.5 / w - 3 * x + 2 * z])
def test_sums_of_three_and_four_terms_of_many_variables(f):
  task, nodes = asked(SubsetSums(), f, [(0.5, 5)] * 4)
  assert best_error(task, nodes) < 1e-12


@pytest.mark.parametrize(("f", "links"), [
  pytest.param(lambda x, y, z: np.sqrt(x**2 + y * z + 3 * np.sin(z)), ("inv", "sqrt"), marks=pytest.mark.slow),
  (lambda x, y, z: x * (2 - np.sin(y) - z**2 + y / z), ())])
def test_sums_inside_a_function_and_under_a_monomial(f, links):
  inside = dataclasses.replace(DEFAULT.subsets_inside, turns=(96, 96), links=links, max_multipliers=6)
  config = dataclasses.replace(DEFAULT, subsets_inside=inside)
  assert best_error(*asked(SubsetSumsInside(config), f, [(0.5, 4)] * 3)) < 1e-12


def test_what_the_rules_forbid_is_not_proposed():
  restrictions = Restrictions(operators=("+", "*", "-", "sin"))
  task, nodes = asked(SubsetSums(), lambda x, y: x + np.cos(y) + x * y, [(0.5, 5)] * 2, restrictions=restrictions)
  assert nodes and all(task.rule(node) for node in nodes)
