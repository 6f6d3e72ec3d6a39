"""Evolution: who survives, what goes out, and that a key fixes it all."""

import dataclasses

import jax
import numpy as np
import pytest

from symformer_jax.engine import loop
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, EvolutionConfig
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser, programs
from symformer_jax.language.rules import Restrictions
from symformer_jax.sources.closed_forms import ClosedForms
from symformer_jax.sources.evolution import population as population_lib, stock
from symformer_jax.sources.evolution.evolution import Evolution
from symformer_jax.sources.evolution.population import Population

SMALL = EvolutionConfig(generations=4, num_children=256, num_screened=32, num_near=16, num_places=256, num_random=48,
                        num_library=16, num_terms=16, num_pool=16)


def options_of(config=SMALL, **kwargs):
  return SearchOptions(config=dataclasses.replace(DEFAULT, evolution=config), **kwargs)


def run(y, x, options, *, names=("x",), max_turns=3, seed=0):
  """The search after some turns of evolution from the closed forms alone."""
  sources = [ClosedForms(), Evolution(options)]
  search = loop.Search(make_task((x, y), names, options), sources, options, jax.random.key(seed))
  for k, _ in enumerate(loop.run({0: search}, sources, options, clock=Clock())):
    if k >= max_turns:
      break
  return search


def some(loss, complexity, *, layer=None, family=None, signature=None):
  num = len(loss)
  zeros = np.zeros((num, 3))
  return Population(
    zeros.astype(np.int32), zeros, np.array(loss, float), np.array(complexity),
    np.arange(num, dtype=np.uint32) if signature is None else np.array(signature, np.uint32),
    np.array(family or [0] * num), np.array(layer or [0] * num), zeros.astype(np.int32), zeros,
    zeros.astype(np.int32))


# --- who survives -------------------------------------------------------------------------------------------------


def test_every_complexity_keeps_its_best_few():
  found = population_lib.survivors(
    some([0.9, 0.5, 0.7, 0.6, 0.01, 0.02], [3, 3, 3, 5, 9, 9]), num_per_niche=2)
  assert sorted(zip(found.complexity.tolist(), found.loss.tolist(), strict=True)) == [
    (3, 0.5), (3, 0.7), (5, 0.6), (9, 0.01), (9, 0.02)]


def test_layers_and_families_do_not_compete():
  loss, length = [0.5, 0.4, 0.3, 0.2], [3, 3, 3, 3]
  apart = [some(loss, length, layer=[0, 1, 0, 1], family=[0, 0, 2, 2]), some(loss, length)]
  assert [len(population_lib.survivors(found, num_per_niche=1)) for found in apart] == [4, 1]


def test_of_equal_functions_the_simplest_and_of_equal_forms_the_best_survives():
  found = population_lib.survivors(
    some([0.3, 0.3 * (1 + 1e-9), 0.5, 0.4, np.inf], [5, 7, 4, 6, 2], signature=[1, 2, 3, 3, 4]), num_per_niche=9)
  assert sorted(found.complexity.tolist()) == [4, 5]


def test_excess_is_over_the_best_that_is_no_more_complex():
  found = some([np.e**-1, np.e**-3, np.e**-2, np.e**-9], [3, 4, 5, 5], family=[0, 0, 0, 1])
  np.testing.assert_allclose(
    population_lib.excess_of(found.loss, found.complexity, found.group), [0, 0, 1, 0], atol=1e-12)


def test_the_front_runs_from_simple_to_accurate():
  found = some([0.5, 0.9, 0.6, 0.1], [5, 3, 7, 9], layer=[0, 1, 1, 0])
  assert population_lib.front(found).tolist() == [1, 0, 3]


# --- what it begins with --------------------------------------------------------------------------------------------


def test_units_leave_values_and_only_far_columns():
  rng = np.random.default_rng(0)
  x = np.stack([rng.uniform(1, 3, 50), rng.uniform(1e5, 3e5, 50), rng.uniform(-1e-6, 1e-6, 50)], axis=1)
  task = make_task((x, x[:, 0]), ("a", "b", "c"), SearchOptions())
  units = stock.make_units(task, (0, 1, 2))
  assert units.scales[0] == 1 and 1e5 < units.scales[1] < 3e5 and units.scales[2] < 1e-6
  node = parser.parse("a*sin(b) + exp(c)/b", ("a", "b", "c"))
  there = units.to_genome(node)
  np.testing.assert_allclose(expression.evaluate(there, x / np.array(units.scales)), expression.evaluate(node, x))
  back = units.to_user(there)
  np.testing.assert_allclose(expression.evaluate(back, x), expression.evaluate(node, x))


def test_bare_terms_have_no_factors():
  found = stock.bare_terms(parser.parse("2.5*x - 3*sin(x)*x + 1.5", ("x",)))
  assert {"x", "sin(x)*x"} == {make_task((np.arange(9.0), np.arange(9.0)), ("x",), SearchOptions()).text(node)
                              for node in found}


def test_what_rounding_has_left_of_a_term_is_dropped():
  x = np.linspace(1, 2, 20)
  task, units = make_task((x, 3 * x), ("x",), SearchOptions()), stock.Units((0,), (1.0,))
  node = stock.answer(parser.parse("3*x + 1e-15*sin(x) + 1e-17", ("x",)), units, task.rows)
  assert task.text(node) == "3*x"
  small = parser.parse("3*x + 0.001*sin(x)", ("x",))
  assert len(expression.flatten(stock.answer(small, units, task.rows), "+")) == 2


def test_random_trees_keep_what_is_allowed(rng):
  rule = Restrictions(operators=("+", "*", "sin")).for_columns(("x", "y"))
  vocab = programs.base_vocabulary(2)
  weights = stock.token_weights(rule, vocab, stock.Units((0, 1), (1.0, 1.0)), SMALL)
  trees = list(stock.random_trees(rng, 200, weights, vocab, SMALL))
  found = {node.token for tree in trees for node in expression.walk(tree)}
  assert found == {"+", "*", "sin", "number", "variable"}
  assert len(set(map(programs.skeleton, trees))) > 50 and max(map(programs.size, trees)) <= SMALL.random_nodes + 2


# --- as a source ----------------------------------------------------------------------------------------------------


def law(x):
  return 1.5 / (x + 2.3) - 0.4 * x


@pytest.fixture(scope="module")
def found():
  x = np.random.default_rng(0).uniform(0.3, 4, 60)
  return run(law(x), x, options_of(max_time=1e9), max_turns=12)


def test_it_finds_a_law_that_it_was_not_given_and_ends_the_search(found):
  exact = found.pool.exact()
  assert exact is not None and exact.source == "evolution" and expression.complexity(exact.node) <= 20
  assert [turn.source for turn in found.progress][:2] == ["closed_forms", "evolution"]


def test_a_seed_fixes_the_answer(found):
  x = np.random.default_rng(0).uniform(0.3, 4, 60)
  texts = [[turn.best for turn in run(law(x), x, options_of(max_time=1e9), max_turns=1, seed=seed).progress]
           for seed in (0, 1)]
  assert texts[0] == [turn.best for turn in found.progress][: len(texts[0])] and texts[0] != texts[1]


def test_formulas_come_in_natural_form(found):
  """No factor 1, no constant that is nothing but rounding beside a number it is added to, no number under a number."""
  for candidate in found.pool.in_order():
    for node in expression.walk(candidate.node):
      assert not (node.token in ("+", "*") and sum(arg.is_number for arg in node.args) > 1)
      assert not (node.token == "*" and any(arg.is_number and arg.value in (0.0, 1.0) for arg in node.args))


@pytest.mark.slow
def test_rules_are_kept():
  x = np.random.default_rng(0).uniform(0.3, 3, (60, 3))
  y = np.sin(x[:, 0]) * x[:, 1] + 0.3 * x[:, 2]
  rules = Restrictions(operators=("+", "*", "/", "exp"), excluded=("c",), max_depth=6)
  search = run(y, x, options_of(max_time=1e9, restrictions=rules), names=("a", "b", "c"), max_turns=2)
  evolved = [c.node for c in search.pool.in_order() if c.source == "evolution"]
  assert evolved and all(map(search.task.rule, evolved))
  assert {n.token for node in evolved for n in expression.walk(node) if n.args} <= {"+", "*", "neg", "inv", "exp"}


def test_units_do_not_matter():
  """Columns and target in units of a million and a millionth."""
  x = np.random.default_rng(0).uniform(0.3, 4, 60)
  search = run(1e-6 * law(x), 1e6 * x, options_of(max_time=1e9), max_turns=6)
  assert search.pool.best.mse < 1e-4 * search.task.variance


def test_a_turn_always_makes_something():
  """Else a search whose data are met would never hear that nothing simpler is found."""
  x = np.linspace(0.5, 3, 40)
  options = options_of(max_time=1e9)
  source = Evolution(options)
  search = loop.Search(make_task((x, 2.5 * x + 1.5), ("x",), options), [ClosedForms(), source], options,
                       jax.random.key(0))
  list(loop.run({0: search}, [ClosedForms(), source], options, clock=Clock()))
  assert search.ended_by == "exact" and len(search.progress) == 2
