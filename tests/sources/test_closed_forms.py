"""The mean and straight lines, against least squares and an exhaustive search over columns."""

import itertools

import numpy as np
import pytest

from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.sources import closed_forms


def squares(node, rows):
  return np.sum(rows.weights * (expression.evaluate(node, rows.x) - rows.y) ** 2)


def columns_in(node):
  return {part.value for part in expression.walk(node) if part.token == expression.VARIABLE}


def by_hand(rows, columns):
  design = np.column_stack([rows.x[:, list(columns)], np.ones(len(rows.y))])
  root = np.sqrt(rows.weights)
  solution = np.linalg.lstsq(root[:, None] * design, root * rows.y, rcond=None)[0]
  return np.sum(rows.weights * (design @ solution - rows.y) ** 2)


@pytest.fixture
def rows(rng):
  x = rng.normal(size=(80, 5)) * [1, 1e6, 1e-6, 3, 1]
  y = 2 * x[:, 0] - 4e-6 * x[:, 1] + 0.5 * rng.normal(size=80)
  return Rows(x, y, rng.uniform(0.5, 2, 80))


def test_lines_are_those_of_least_squares_and_of_the_least_criterion(rows):
  mean, line, sparse = closed_forms.fit(rows, range(5))
  assert mean.value == pytest.approx(np.average(rows.y, weights=rows.weights))
  assert squares(line, rows) == pytest.approx(by_hand(rows, range(5)), rel=1e-9)
  assert squares(sparse, rows) == pytest.approx(by_hand(rows, columns_in(sparse)), rel=1e-9)
  subsets = [some for size in range(6) for some in itertools.combinations(range(5), size)]
  least = min(subsets, key=lambda some: 80 * np.log(by_hand(rows, some)) + len(some) * np.log(80))
  assert columns_in(sparse) == set(least) >= {0, 1}


def test_only_the_columns_asked_for(rows):
  assert [columns_in(node) for node in closed_forms.fit(rows, (0, 3))] == [set(), {0, 3}, {0}]


@pytest.mark.parametrize("y, expected", [
  (lambda x: 3 * x[:, 0] + 1, [set(), {0}]),  # exact: what is left is rounding
  (lambda x: 3 * x[:, 0] - x[:, 1], [set(), {0, 1}])])
def test_an_exact_line_needs_its_columns_alone(y, expected, rng):
  x = rng.uniform(1, 2, (30, 2))
  assert [columns_in(node) for node in closed_forms.fit(Rows(x, y(x), np.ones(30)), (0, 1))] == expected


def test_terms_that_are_rounding_are_left_out(rng):
  x = rng.normal(size=(20, 2))
  lines = closed_forms.fit(Rows(x, x[:, 0], np.ones(20)), (0, 1))[1:]
  assert lines == [expression.variable(0)]
  even = np.linspace(-8, 8, 33)[:, None]
  assert len(closed_forms.fit(Rows(even, np.abs(even[:, 0]) ** 1.5, np.ones(33)), (0,))) == 1  # of no slope: the mean


def test_small_terms_that_are_no_rounding_stay(rng):
  x = rng.uniform(1, 2, (40, 2))
  line = closed_forms.fit(Rows(x, 1e5 * x[:, 0] + 1e-5 * x[:, 1] + 1e-4, np.ones(40)), (0, 1))[1]
  assert columns_in(line) == {0, 1} and line.args[1].token == "+"


def test_fewer_rows_than_columns_equal_columns_and_empty_ones(rng):
  x = rng.normal(size=(4, 6))
  x[:, 2], x[:, 5] = 2 * x[:, 1], 0
  rows = Rows(x, x[:, 1] + rng.normal(size=4), np.ones(4))
  nodes = closed_forms.fit(rows, range(6))
  assert all(np.isfinite(expression.evaluate(node, x)).all() for node in nodes)
  assert all(5 not in columns_in(node) for node in nodes) and squares(nodes[1], rows) < 1e-20
  nothing = Rows(np.zeros((4, 1)), rows.y, rows.weights)
  assert len(closed_forms.fit(nothing, (0,))) == 1
