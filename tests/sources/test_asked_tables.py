"""A function as a table of one column that other sources are asked of."""

import dataclasses

import numpy as np
import pytest

from symformer_jax.engine.clock import Clock
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.task import make_task
from symformer_jax.sources import asked_tables, registry

OPTIONS = SearchOptions()


@pytest.fixture
def task(rng):
  return make_task((rng.uniform(1, 2, (100, 3)), rng.normal(size=100)), None, OPTIONS)


def sources(*names):
  return [registry.SOURCES[name](None, OPTIONS) for name in names]


def table(task, text=lambda x: 3 * x - 2, num=40):
  places = np.linspace(0.5, 4, num)
  return asked_tables.table_of(places, text(places), np.linspace(1, 3, num), task)


def test_a_function_is_a_data_set_of_one_column_in_the_users_operators(task):
  ruled = dataclasses.replace(task, rule=dataclasses.replace(task.rule, tokens=frozenset({"+", "*"})))
  found = table(ruled)
  assert found.fit_rows.x.shape == (40, 1) and found.columns == (0,) and found.rule.tokens == {"+", "*"}
  y, weights = found.fit_rows.y, found.fit_rows.weights
  assert np.mean(weights) == pytest.approx(1) and weights[-1] / weights[0] == pytest.approx(3)
  assert found.variance == pytest.approx(np.average((y - np.average(y, weights=weights)) ** 2, weights=weights))


@pytest.mark.parametrize(("values", "weights"), [
  (np.full(9, 2.0), np.ones(9)), (np.arange(9.0), np.zeros(9)), (np.append(np.arange(8.0), np.nan), np.ones(9)),
  (1e300 * np.arange(9.0), np.ones(9))])
def test_what_has_no_values_or_no_variance_is_no_table(task, values, weights):
  assert asked_tables.table_of(np.arange(9.0), values, weights, task) is None


def test_no_source_is_asked_once_the_table_is_met(task):
  some = sources("closed_forms", "rationals", "two_constants")
  search = asked_tables.ask(table(task), some, OPTIONS, Clock(), num=8, is_met=lambda search: bool(search.progress))
  assert [turn.source for turn in search.progress] == ["closed_forms"]
  asked = asked_tables.ask(table(task), some, OPTIONS, Clock(), num=8, is_met=lambda search: True)
  assert not asked.progress


def test_so_many_turns_of_each_are_taken(task):
  hard = table(task, lambda x: np.cos(3 * x**1.3) / (x + np.exp(-x)), num=60)
  for most, taken in ((1, 1), (3, 3), (np.inf, 4)):
    search = asked_tables.ask(hard, sources("two_constants"), OPTIONS, Clock(), num=8, is_met=lambda search: False,
                              num_turns=most)
    assert [turn.source for turn in search.progress] == ["two_constants"] * taken
