"""Fractions of few terms for y with errors, from the rows to the formulas of a turn."""

import dataclasses

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Pool
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser
from symformer_jax.language.rules import Rule
from symformer_jax.sources.fractions import fraction_pursuit
from symformer_jax.sources.fractions.fraction_pursuit import FractionPursuit, fractions_of
from symformer_jax.sources.fractions.term_pursuit import Terms
from tests.sources.exact_rows import NAMES, rows_of

CONFIG = DEFAULT.fraction_pursuit


def error_of(nodes, text, box):
  """Of the best of the first, on other rows without errors, as a share of the variance."""
  rng = np.random.default_rng(9)
  x = np.column_stack([rng.uniform(low, high, 2000) for low, high in box])
  y = expression.evaluate(parser.parse(text, NAMES[: len(box)]), x)
  return min(np.mean((expression.evaluate(node, x) - y) ** 2) / np.var(y) for node in nodes[:4])


@pytest.mark.parametrize("text, box", (
  ("x*y/(z + y + y**2/w)", ((1, 10), (0.5, 5), (0.5, 5), (1, 10))),
  ("x*y/(1 + x*z*y + w*v)", ((0.5, 3), (0.5, 3), (0.2, 2), (0.5, 3), (0.2, 2))),
  ("0.5*x*(z**2 + 1/y**2)/(1 - x/y)", ((0.1, 0.8), (1, 3), (0.5, 2))),
  ("x*y**z*exp(-w*y)", ((1, 3), (0.5, 3), (0.5, 2), (0.2, 1))),  # in the logarithm three plain columns
  ("2.5*x/y + 1.3*y/z", ((1, 3), (1, 3), (1, 3)))))
def test_sums_and_fractions_of_products_of_powers(text, box):
  rows = rows_of(text, box, num_rows=400, noise=0.01)
  found = fractions_of(rows, range(len(box)), Rule(len(box)))
  assert error_of(found, text, box) < 1e-4


@pytest.mark.parametrize("text, box", (
  ("1 - exp(-x*y**z)", ((0.1, 1.5), (0.3, 1.5), (0.5, 3))),
  ("x*y**z/(w + y**z)", ((1, 3), (0.3, 2), (1, 4), (0.2, 2)))))
def test_functions_of_columns_are_terms_in_the_second_turn(text, box):
  rows = rows_of(text, box, num_rows=400, noise=0.01)
  plain, found = (fractions_of(rows, range(len(box)), Rule(len(box)), has_functions=each) for each in (False, True))
  assert error_of(found, text, box) < min(3e-4, 0.5 * error_of(plain, text, box))


def test_functions_of_y_are_undone():
  """Rows whose y errors have brought where the function is not defined are left out."""
  text, box = "sqrt(2*x + y)", ((0, 3), (0, 3))
  rows = rows_of(text, box, noise=0.02)
  only = dataclasses.replace(CONFIG, links=("sqrt",))
  assert error_of(fractions_of(rows, range(2), Rule(2), only), text, box) < 2e-3
  some = rows_of("1/(1 + exp(x - y))", ((-3, 3), (-3, 3)), noise=0.02)
  assert np.any((some.y <= 0) | (some.y >= 1))
  assert error_of(fractions_of(some, range(2), Rule(2), dataclasses.replace(CONFIG, links=("logit",))),
                  "1/(1 + exp(x - y))", ((-3, 3), (-3, 3))) < 2e-3
  strict = dataclasses.replace(CONFIG, links=("logit",), least_defined=1.0)
  assert fractions_of(some, range(2), Rule(2), strict) == []


def test_the_shortest_description_comes_first():
  text, box = "x/(1 + y)", ((0.5, 3), (0.5, 3))
  found = fractions_of(rows_of(text, box, noise=0.02), range(2), Rule(2))
  assert expression.complexity(found[0]) <= 12 and error_of(found[:1], text, box) < 1e-4
  assert len(set(map(expression.complexity, found))) > 3


def test_what_is_far_more_than_one_below_the_line_stands_alone():
  columns = [parser.parse(each, ("x", "y")) for each in ("1", "x", "y")]
  divisor = np.array([2000.0, 3000.0])
  terms = Terms((1,), (2,), np.array([1000.0, 1000.0]), divisor, divisor, 0.0)
  both = list(fraction_pursuit._written(terms, columns, 100.0))
  x = np.array([[1.5, 2.5]])
  assert [float(expression.evaluate(node, x)[0]) for node in both] == pytest.approx([1500 / 2501, 0.6])
  assert len(list(fraction_pursuit._written(terms, columns, 2000.0))) == 1


def test_operators_that_are_not_allowed_are_in_no_formula():
  rows = rows_of("x*exp(-y)", ((0.5, 3), (0.5, 3)), noise=0.02)
  rule = Rule(2, tokens=frozenset({"+", "*", "inv", "neg"}))
  found = fractions_of(rows, range(2), rule, has_functions=True)
  tokens = {node.token for each in found for node in expression.walk(each)}
  assert found and tokens <= {"+", "*", "inv", "neg", "number", "variable"}
  assert "exp" in {node.token for each in fractions_of(rows, range(2), Rule(2)) for node in expression.walk(each)}


def test_a_turn_offers_formulas_of_the_task_and_few_columns_are_its_own():
  rows = rows_of("x/(1 + y)", ((0.5, 3), (0.5, 3)), noise=0.02)
  source = FractionPursuit()
  task = make_task((rows.x, rows.y), None, SearchOptions())
  question = Question(task, Pool(task.variance, len(task.fit_rows)), None)
  assert source.supports(task) and source.turns == (48, 48)
  for turn in range(2):
    nodes = source._nodes(question, turn, 5)
    assert len(nodes) == 5 and len(set(nodes)) == 5
  assert not source.supports(make_task((rows.x[:, :1], rows.y), None, SearchOptions()))


def test_what_there_is_nothing_to_tell_of():
  rows = rows_of("x/(1 + y)", ((0.5, 3), (0.5, 3)))
  same = Rows(rows.x, np.ones(len(rows)), rows.weights)
  assert fractions_of(same, range(2), Rule(2)) == [] == fractions_of(rows, [0], Rule(2))
  one = Rows(np.column_stack([rows.x[:, 0], np.ones(len(rows))]), rows.y, rows.weights)
  assert fractions_of(one, range(2), Rule(2)) == []
  assert fractions_of(rows, range(2), Rule(2), dataclasses.replace(CONFIG, max_columns=1)) == []


def test_rows_of_no_weight_count_for_nothing():
  rows = rows_of("x/(1 + y)", ((0.5, 3), (0.5, 3)), noise=0.01)
  y = rows.y.copy()
  y[:40] = 1e6
  weights = np.ones(len(y))
  weights[:40] = 0.0
  found = fractions_of(Rows(rows.x, y, weights), range(2), Rule(2))
  assert error_of(found, "x/(1 + y)", ((0.5, 3), (0.5, 3))) < 1e-4
