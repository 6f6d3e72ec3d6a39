"""Parts of several formulas make the one that none of them is; exhaustive search is the oracle of the selection."""

import itertools

import numpy as np
import pytest

from symformer_jax.language import expression, parser, printing
from symformer_jax.selection import recombine, scoring
from symformer_jax.selection.finalists import Rows

NAMES = ("x", "y")


def rows_of(truth, rng, *, low=-3.0, high=3.0, num_rows=80, weights=None):
  x = rng.uniform(low, high, (num_rows, 2))
  return Rows(x, scoring.evaluate(parser.parse(truth, NAMES), x), np.ones(num_rows) if weights is None else weights)


def best_of(candidates, rows):
  found = recombine.recombine([parser.parse(text, NAMES) for text in candidates], rows, columns=(0, 1))
  return min(found, key=lambda pair: pair[1])


@pytest.mark.parametrize(("candidates", "truth", "low"), [
  (["1.2*sin(x)", "3*sin(y**2) + 0.1*x", "exp(x)"], "sin(x) + sin(y**2)", -3),
  (["sin(x + y) + 2", "x*y", "sin(x - y)*4"], "2*sin(x)*cos(y)", -3),
  (["cos(x**2 + 3) - y**2"], "8/(2 + x**2 + y**2)", -3),  # under 1/y; the parts stand inside
  (["x*y + 1", "x**3 - y"], "log(x**3 + x*y + 2)", 0.5), (["x**2*3 + 1", "sin(y)"], "exp(0.1*x**2 - sin(y))", -3),
  (["x**4 - 5", "y**2"], "sqrt(x**4 + 0.5*y**2 + 1)", 0.1),
  (["(x + y)*3", "sin(x)"], "x**2*y**2/(x + y)", 0.1),  # a product of powers
])
def test_parts_of_different_candidates_make_the_formula(candidates, truth, low, rng):
  rows = rows_of(truth, rng, low=low)
  node, mse = best_of(candidates, rows)
  values = scoring.evaluate(node, rows.x)
  np.testing.assert_allclose(values, rows.y, rtol=1e-7, atol=1e-7 * np.max(np.abs(rows.y)))
  assert mse == pytest.approx(np.mean((values - rows.y) ** 2), abs=1e-20 * np.mean(rows.y**2))


def test_nothing_is_offered_that_a_row_leaves_undefined(rng):
  rows = rows_of("x + y**2", rng)
  found = recombine.recombine([parser.parse(t, NAMES) for t in ("log(x)", "sqrt(y) + x", "1e300**(x*y*100)")], rows,
                              columns=(0, 1))
  assert found
  assert all(np.isfinite(scoring.evaluate(node, rows.x)).all() and np.isfinite(mse) for node, mse in found)
  texts = [printing.to_text(node, NAMES) for node, _ in found]
  assert not any("log(x)" in text or "sqrt(y)" in text for text in texts)


def test_a_factor_and_an_offset_come_with_every_candidate(rng):
  rows = rows_of("3.7*sin(2.3*x)*y - 11", rng)
  node, mse = best_of(["sin(2.3*x)*y"], rows)
  assert mse < 1e-20
  np.testing.assert_allclose([n.value for n in node.args if n.is_number], [-11])
  assert expression.complexity(node) == expression.complexity(parser.parse("3.7*sin(2.3*x)*y - 11", NAMES))


def test_weights_decide_which_rows_matter(rng):
  rows = rows_of("x**2 + y", rng)
  weights = np.where(np.arange(80) < 40, 1.0, 1e-9)
  bent = Rows(rows.x, np.where(np.arange(80) < 40, rows.y, 50 * rows.x[:, 0]), weights)
  node, _ = best_of(["x**2 - x", "y"], bent)
  np.testing.assert_allclose(scoring.evaluate(node, rows.x)[:40], rows.y[:40], atol=1e-5)


def test_rows_where_y_is_zero_do_not_hide_a_product():
  grid = np.stack(np.meshgrid(np.linspace(-3, 3, 13), np.linspace(-3, 3, 13)), axis=-1).reshape(-1, 2)
  rows = Rows(grid, 2 * grid[:, 0] ** 2 * grid[:, 1], np.ones(len(grid)))
  assert best_of(["x", "y"], rows)[1] < 1e-20


def test_a_large_constant_does_not_hide_a_small_term(rng):
  rows = rows_of("2450000 + x**2 + 0.0001*sin(3*y)", rng)
  node, _ = best_of(["x**2", "sin(3*y)"], rows)
  assert "sin(3*y)" in printing.to_text(node, NAMES)


@pytest.mark.parametrize("unit", [1e-160, 1e-60, 1e60, 1e100, 1e160])
def test_extreme_units_make_no_trouble(unit, rng):
  x = rng.uniform(0.5, 3, (60, 2))
  rows = Rows(x, unit * x[:, 0] ** 3 * x[:, 1], np.ones(60))
  found = recombine.recombine([parser.parse("x", NAMES)], rows, columns=(0, 1))
  assert all(np.isfinite(mse) for _, mse in found)
  tiny = Rows(x * 1e-60, x[:, 0] ** 3 * x[:, 1], np.ones(60))
  node, _ = best_of(["x"], tiny)
  np.testing.assert_allclose(scoring.evaluate(node, tiny.x), tiny.y, rtol=1e-9)


def test_only_the_given_columns_are_parts(rng):
  found = recombine.recombine([parser.parse("sin(x)", NAMES)], rows_of("x + y", rng), columns=(0,))
  assert found and not any("y" in printing.to_text(node, NAMES) for node, _ in found)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_selection_finds_what_exhaustive_search_finds(size, rng):
  columns, weights = rng.normal(size=(60, 12)), rng.uniform(0.5, 2, 60)
  target = columns[:, [1, 4, 9]] @ [2.0, -1.0, 0.7] + 3 + 0.1 * rng.normal(size=60)

  def error(chosen):
    design = np.sqrt(weights)[:, None] * np.column_stack([columns[:, chosen], np.ones(60)])
    return np.linalg.lstsq(design, np.sqrt(weights) * target, rcond=None)[1][0]

  best = min(itertools.combinations(range(12), size), key=lambda chosen: error(list(chosen)))
  of_size = [chosen for chosen in recombine.select_columns(columns, target, weights) if len(chosen) == size]
  assert of_size[0] == best
  assert [error(list(c)) for c in of_size] == sorted(error(list(c)) for c in of_size)


def test_dependent_and_constant_columns_are_no_gain(rng):
  column = rng.normal(size=50)
  columns = np.stack([column, 2 * column, column + 1e-9 * rng.normal(size=50), np.ones(50)], axis=1)
  chosen = recombine.select_columns(columns, column + rng.normal(size=50), np.ones(50))
  assert {len(c) for c in chosen} == {1}


@pytest.mark.parametrize("candidates", [[], ["3"], ["x - x"], ["log(-1)"]])
def test_no_parts_but_the_variables(candidates, rng):
  rows = rows_of("x*y", rng)
  found = recombine.recombine([parser.parse(t, NAMES) for t in candidates], rows, columns=(0, 1))
  assert min(mse for _, mse in found) < 1e-20  # x and y alone make the product


def test_few_points_make_few_parts(rng):
  x = rng.uniform(-3, 3, (8, 2))
  found = recombine.recombine([parser.parse(t, NAMES) for t in ("sin(x)", "exp(y)", "x**3")],
                              Rows(np.tile(x, (4, 1)), np.tile(rng.normal(size=8), 4), np.ones(32)), columns=(0, 1))
  assert found and all(len(expression.flatten(node, "+")) <= 2 for node, _ in found)
