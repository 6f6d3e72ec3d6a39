"""Functions of which the rows see a straight piece, as lines."""

import numpy as np
import pytest

from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression, parser, printing
from symformer_jax.selection import select
from symformer_jax.selection.straight import straightened

X = np.random.default_rng(0).uniform(0.5, 4, (60, 2))


def lines_of(text, x=X, share=0.01, weights=None):
  weights = np.ones(len(x)) if weights is None else weights
  return list(straightened(parser.parse(text, ["x", "y"]), x, weights, share=share))


@pytest.mark.parametrize("text", [
  "100*sin(0.03*x)*sqrt(y) + 2", "40*exp(0.01*x) + y", "3*log(x + 90)*y", "7/(2 + arctan(0.02*x*y))"])
def test_a_straight_piece_is_a_line(text):
  [line] = lines_of(text)
  tokens = {node.token for node in expression.walk(line)}
  assert not tokens & {"sin", "exp", "ln", "atan"}
  expected = expression.evaluate(parser.parse(text, ["x", "y"]), X)
  assert np.mean((expression.evaluate(line, X) - expected) ** 2) < 1e-3 * expected.var()


@pytest.mark.parametrize("text", ["sin(2*x)*y", "exp(0.9*x)", "x/y**2", "sqrt(0.01*x + 5)", "exp(2)*x"])
def test_what_bends_and_what_is_no_function_stays(text):
  assert not lines_of(text)


def test_each_function_by_itself():
  found = lines_of("exp(0.01*x) + sin(0.02*y) + cos(3*x)")
  assert len(found) == 2
  assert [{node.token for node in expression.walk(line)} & {"exp", "sin"} for line in found] == [{"sin"}, {"exp"}]


def test_rows_count_as_their_weights():
  x = np.linspace(0, 3, 60)[:, None]
  weights = np.where(x[:, 0] < 0.2, 1.0, 1e-6)
  assert not lines_of("2.5*sin(0.9*x)", x)
  assert lines_of("2.5*sin(0.9*x)", x, weights=weights)


def test_undefined_values_are_no_line():
  assert not lines_of("log(x - 2)")
  assert not lines_of("sin(0.01*x)", np.ones((9, 2)))
  # The function has a value where what is in it is infinite: an arctangent of infinity is a quarter turn.
  assert not lines_of("arctan(1/x) + y", np.column_stack([np.arange(9.0), np.ones(9)]))


def test_what_is_the_same_on_every_row_is_no_piece_of_a_line():
  assert not (np.exp(-2000 * X[:, 0])).any()  # below the smallest number
  assert not lines_of("y + exp(-2000*x)")


def test_the_line_is_listed_where_it_says_as_much():
  y = 3 * X[:, 0] * np.sqrt(X[:, 1]) + 2 + 0.1 * np.random.default_rng(1).normal(size=60)
  node = parser.parse("100*sin(0.03*x)*sqrt(y) + 2.01", ["x", "y"])
  chosen = select.select([node], Rows(X, y, np.ones(60)), ["x", "y"], seed=0)
  assert printing.to_text(chosen.best.node, ["x", "y"]) in ("3*x*sqrt(y) + 2", "3*sqrt(y)*x + 2")
  bent = 40 * np.sin(0.3 * X[:, 0]) * np.sqrt(X[:, 1]) + 0.1 * np.random.default_rng(1).normal(size=60)
  node = parser.parse("40*sin(0.3*x)*sqrt(y)", ["x", "y"])
  chosen = select.select([node], Rows(X, bent, np.ones(60)), ["x", "y"], seed=0)
  assert any(part.token in ("sin", "cos") for part in expression.walk(chosen.best.node))


def test_the_line_is_nearest_where_the_formula_depends_on_it_most(rng):
  x = np.column_stack([rng.uniform(0, 1.2, 60), rng.uniform(0.1, 9, 60)])
  weights = rng.uniform(0.5, 2, 60)
  [line] = lines_of("y*sin(x)", x, share=1.0, weights=weights)
  slope, offset = np.polyfit(x[:, 0], np.sin(x[:, 0]), 1, w=np.sqrt(weights) * x[:, 1])
  np.testing.assert_allclose(expression.evaluate(line, x), (slope * x[:, 0] + offset) * x[:, 1])


def test_how_much_a_function_bends_is_a_share_of_what_it_varies_by():
  x = np.linspace(0, 10, 60)[:, None]
  assert not lines_of("arctan(x + 5)", x) and lines_of("arctan(x + 5)", x, share=0.5)
