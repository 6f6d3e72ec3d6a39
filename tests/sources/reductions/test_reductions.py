"""The source that asks others of smaller tables: what comes back, and when it has no more to say."""

import dataclasses

import jax
import numpy as np
import pytest

from symformer_jax import inference, results, testing
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Pool
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser, programs
from symformer_jax.language.rules import Restrictions
from symformer_jax.sources import registry
from symformer_jax.sources.reductions import reduced_tables, reductions

NAMES = ("x", "y", "z", "w")


def data(text, num_columns, *, low=0.5, high=3.0, num_rows=200):
  x = np.random.default_rng(11).uniform(low, high, (num_rows, num_columns))
  return x, expression.evaluate(parser.parse(text, NAMES[:num_columns]), x)


def options_with(*sources, **others):
  config = dataclasses.replace(DEFAULT, sources=("closed_forms", "reductions", *sources))
  return SearchOptions(config=config, **others)


def source_of(options):
  return next(source for source in registry.make_sources(testing.FixedProposer(["x0"], num_variables=1), options)
              if source.name == "reductions")


def asked(text, num_columns, options, **kwargs):
  """All proposals of a search's turns, one after the other."""
  source = source_of(options)
  task = make_task(data(text, num_columns, **kwargs), NAMES[:num_columns], options)
  question = Question(task, Pool(task.variance, len(task.fit_rows)), source.init(task, jax.random.key(0)))
  found = []
  for turn, num in enumerate(source.turns):
    [proposal] = source.propose([question], turn=turn, num=num, clock=Clock())
    found.append(proposal)
    if proposal.is_last:
      break
    question = dataclasses.replace(question, state=proposal.state)
  return task, found


def search(text, num_columns, *sources, **others):
  x, y = data(text, num_columns)
  config = dataclasses.replace(DEFAULT, sources=("closed_forms", "reductions", *sources))
  model = testing.FixedProposer(["x0"], num_variables=1)
  [found] = inference.search(model, [(x, y)], names=[NAMES[:num_columns]], config=config, **others)
  return found


@pytest.mark.slow
def test_a_law_of_four_columns_is_one_of_two():
  found = search("x*(1 - exp(-y*w/x))*exp(-z*w/x)", 4, "library", "separable", "rationals")
  assert found.best.r2 > 1 - 1e-12 and found.best.complexity <= 26
  assert found.ended_by == results.EXACT


def test_a_law_whose_values_are_rounded_is_found_by_short_forms_of_the_smaller_table():
  x = np.random.default_rng(3).uniform(10, 90, (80, 3)).round() + np.array([100.0, 0.0, 0.5])
  y = ((x[:, 0] - x[:, 1] - x[:, 2]) / np.log((x[:, 0] - x[:, 1]) / x[:, 2])).round(2)
  found = {}
  for rounded in (DEFAULT.reductions.rounded, 1.0):
    config = dataclasses.replace(DEFAULT, sources=("closed_forms", "reductions", "short_forms"),
                                 reductions=dataclasses.replace(DEFAULT.reductions, rounded=rounded))
    [answer] = inference.search(testing.FixedProposer(["x0"], num_variables=1), [(x, y)], names=[NAMES[:3]],
                                config=config)
    found[rounded] = answer.best
  assert found[1e-5].expression == "(y - x + z)/log(z/(x - y))" and 1 - found[1e-5].r2 < 1e-7 < 1 - found[1.0].r2


def test_answers_are_in_the_users_columns_with_powers_gathered():
  x = np.random.default_rng(2).uniform(1, 2, (200, 3)) + np.array([0.0, 0.0, 2.0])  # z > y
  y = (x[:, 2] - x[:, 1]) * x[:, 1] * np.sqrt(x[:, 2] + x[:, 1]) * x[:, 0] ** 2
  config = dataclasses.replace(DEFAULT, sources=("closed_forms", "reductions", "rationals"))
  [found] = inference.search(testing.FixedProposer(["x0"], num_variables=1), [(x, y)], names=[NAMES[:3]], config=config)
  assert found.best.r2 > 1 - 1e-12 and "z/y" not in found.best.expression and "y/z" not in found.best.expression


def test_what_is_asked_is_asked_of_the_whole_table_too():
  assert {s.name for s in source_of(options_with("library", "growth")).sources} == {"closed_forms", "library"}
  inside = {s.name for s in source_of(SearchOptions(effort="quick")).sources}
  assert "varying" not in inside and "library" in inside
  expected = {*DEFAULT.reductions.sources, *DEFAULT.reductions.tried.sources}
  assert {s.name for s in source_of(SearchOptions()).sources} == expected


def test_one_turn_tells_that_there_is_no_smaller_table():
  _, found = asked("sin(x) + sin(y)", 2, options_with("library"))
  assert len(found) == 1 and found[0].is_last and found[0].nodes == ()


def test_what_is_met_exactly_is_shown_once_more_and_ends_the_turns():
  options = options_with("rationals", "library")
  task, found = asked("x**2*(z + 1)/y", 3, options)
  assert found[-1].is_last and len(found) < len(source_of(options).turns)
  [last] = found[-1].nodes
  values = expression.evaluate(last, task.rows.x)
  np.testing.assert_allclose(values, task.rows.y, rtol=1e-6)


def test_a_formula_is_proposed_once_but_for_one_that_a_table_ends_with():
  task, found = asked("z*log(x*y + 1) + z**2", 3, options_with("library", "separable"))
  some = [node for proposal in found[:-1] for node in proposal.nodes]
  again = [node for node in set(some) if some.count(node) > 1]
  assert len(set(some)) > 10 and len(some) - len(set(some)) == len(again) <= 1
  for node in again:
    np.testing.assert_allclose(expression.evaluate(node, task.rows.x), task.rows.y, rtol=1e-6)
  assert all(programs.size(node) <= programs.MAX_TOKENS for node in some)


def test_odd_data_cost_the_source_its_turns_and_no_search(monkeypatch):
  def fail(*args):
    raise np.linalg.LinAlgError("SVD did not converge")

  monkeypatch.setattr(reductions, "find_reductions", fail)
  assert search("x**2*z/y", 3, "rationals").best.r2 > 1 - 1e-12


@pytest.mark.parametrize("make", [
  lambda x: x[:, 0] * (x[:, 1] + x[:, 2] ** 2), lambda x: np.round(4 * x[:, 0]) * np.round(4 * x[:, 1]),
  lambda x: np.exp(-x[:, 0] * x[:, 1]), lambda x: 1e-165 * x[:, 0] * x[:, 1],
  lambda x: np.where(x[:, 0] > 1, x[:, 1], 0)])
@pytest.mark.parametrize("change", [
  lambda x: x, lambda x: np.round(2 * x), lambda x: x - 1, lambda x: 1e30 * x, lambda x: (x > 1).astype(float),
  lambda x: np.column_stack([x[:, 0], x[:, 0], x[:, 1]])])
def test_odd_tables_end_no_search(make, change):
  x = np.random.default_rng(4).uniform(0, 2, (60, 3))
  x[5, 0] = 0
  x = change(x)
  y = make(x)
  config = dataclasses.replace(DEFAULT, sources=("closed_forms", "reductions"))
  model = testing.FixedProposer(["x0"], num_variables=1)
  for found in inference.search(model, [(x, y), (x[:, :2], y)], config=config):
    assert found.status in ("ok", "failed")


def test_excluded_columns_and_rules_hold():
  restrictions = Restrictions(excluded=("y",), forbidden=("sin", "cos"))
  x = np.random.default_rng(3).uniform(0.5, 3, (200, 4))
  y = np.log(x[:, 0] / x[:, 2]) * x[:, 3]
  options = options_with("library", restrictions=restrictions)
  source, task = source_of(options), make_task((x, y), NAMES, options)
  [first] = source.propose([Question(task, Pool(task.variance, 200), None)], turn=0, num=1, clock=Clock())
  assert not first.is_last
  parts = [part.node if isinstance(part, reduced_tables.Added) else part for smaller in first.state
           for part in (*smaller.reduced.columns, *smaller.reduced.steps) if not isinstance(part, str)]
  used = {node.value for part in parts for node in expression.walk(part) if node.token == expression.VARIABLE}
  assert used == {0, 2, 3}
  assert all(smaller.search.task.rule.tokens == task.rule.tokens for smaller in first.state)


@pytest.mark.parametrize(("num_columns", "num_rows", "expected"), [(1, 200, False), (2, 24, True), (2, 23, False),
                                                                   (4, 47, False), (4, 48, True)])
def test_tables_it_takes(num_columns, num_rows, expected):
  text = "x**2" if num_columns == 1 else "x*y" if num_columns == 2 else "x*y*z*w"
  task = make_task(data(text, num_columns, num_rows=num_rows), NAMES[:num_columns], SearchOptions())
  assert source_of(SearchOptions()).supports(task) is expected


def test_sums_have_to_be_allowed():
  options = SearchOptions(restrictions=Restrictions(operators=("*", "exp")))
  task = make_task(data("x*y", 2), NAMES[:2], options)
  assert not source_of(options).supports(task)


def test_rows_count_in_the_smaller_table_as_they_do_in_the_users():
  """An error of the smaller table's y makes `scale` of it in y: squared, that is its row's weight."""
  options = options_with("library")
  source = source_of(options)
  x, y = data("x**3*sin(y)", 2)
  weights = np.random.default_rng(1).uniform(0.5, 2, len(y))
  task = make_task((x, y, weights), NAMES[:2], options)
  [first] = source.propose([Question(task, Pool(task.variance, len(y)), None)], turn=0, num=1, clock=Clock())
  inner = first.state[0].search.task
  expected = weights * x[:, 0] ** 6
  np.testing.assert_allclose(inner.rows.weights / inner.rows.weights[0], expected / expected[0], rtol=1e-6)
  assert inner.rows.weights.mean() == pytest.approx(1)
