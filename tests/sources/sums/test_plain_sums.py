"""Every pair and every triple of plain columns: found where they are not the nearest until constants are fitted."""

import itertools

import numpy as np
import pytest

from symformer_jax.engine import refine
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser
from symformer_jax.language.rules import Restrictions
from symformer_jax.sources.sums import pairs, plain_sums


def task_of(text, low, high, **rules):
  x = np.random.default_rng(1).uniform(low, high, (100, 1))
  y = expression.evaluate(parser.parse(text, ("x",)), x)
  return make_task((x, y), ("x",), SearchOptions(restrictions=Restrictions(**rules)))


def nearest(task, nodes):
  [fits] = refine.fit_constants([(task, list(nodes))], method="lm", max_steps=80)
  return min(mse for _, mse in fits) / task.variance


@pytest.mark.parametrize(("source", "turn", "text", "low", "high"), [
  (plain_sums.PairSumsInside(), 0, "0.567*(x/3)**0.7*exp(-(x/3)**1.7)", 0.1, 9),
  (plain_sums.PairSumsInside(), 0, "1/(0.2 + exp(-1.3*x) + 0.1*x)", 0.1, 4),
  (plain_sums.TripleSums(), 0, "1.02 - 0.06*log(x) - 0.25*x - 0.00003*exp(6.5*x)", 0.01, 1.4),
  (plain_sums.TripleSums(), 1, "exp(2.1 - 0.6*log(x) + 0.4*x - 0.3*exp(-2.2*x))", 0.1, 4),
])
def test_a_sum_is_met_exactly(source, turn, text, low, high):
  task = task_of(text, low, high)
  nodes = source._nodes(Question(task, None, None), turn, source.turns[turn])
  assert 0 < len(nodes) <= source.turns[turn]
  assert nearest(task, nodes) < 1e-20


def test_the_best_triple_is_the_best_of_all(rng):
  columns, target, weights = rng.standard_normal((40, 9)), rng.standard_normal(40), rng.uniform(0.5, 1, 40)
  root = np.sqrt(weights)

  def error(some):
    design = root[:, None] * np.column_stack([columns[:, list(some)], np.ones(40)])
    return np.sum((root * target - design @ np.linalg.lstsq(design, root * target, rcond=None)[0]) ** 2)

  every = sorted(itertools.combinations(range(9), 3), key=error)
  found = pairs.best_triples(columns, np.arange(9), target, weights, num=100)
  assert [tuple(sorted(each)) for each in found.tolist()] == every
  groups = np.array([0, 0, 1, 1, 2, 2, 3, 3, 4])  # of each three groups the best
  kept = pairs.best_triples(columns, groups, target, weights, num=100).tolist()
  seen, expected = set(), []
  for each in every:
    key = tuple(sorted(groups[list(each)]))
    if key not in seen:
      seen.add(key)
      expected.append(each)
  assert [tuple(sorted(each)) for each in kept] == expected


def test_columns_that_are_alike_or_constant_make_no_triple(rng):
  column, target = rng.standard_normal(30), rng.standard_normal(30)
  columns = np.column_stack([column, 2 * column, np.full(30, 3.0), column + 1])
  assert len(pairs.best_triples(columns, np.arange(4), target, np.ones(30), num=10)) == 0
  assert len(pairs.best_triples(columns, np.arange(4), np.ones(30), np.ones(30), num=10)) == 0


def test_the_rules_count():
  task = task_of("0.567*(x/3)**0.7*exp(-(x/3)**1.7)", 0.1, 9, forbidden=("exp",))
  for source in (plain_sums.PairSumsInside(), plain_sums.TripleSums()):
    for turn in range(len(source.turns)):
      nodes = source._nodes(Question(task, None, None), turn, 64)
      assert not any(part.token == "exp" for node in nodes for part in expression.walk(node))
  assert not plain_sums.TripleSums().supports(task_of("x", 1, 2, operators=("*",)))
  assert plain_sums.TripleSums(DEFAULT).turns == DEFAULT.triples.turns
