"""Parts of several formulas, and atoms, make the one that none of them is."""

import numpy as np
import pytest
from scipy import differentiate

from symformer_jax.engine import refine
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Pool
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser, printing
from symformer_jax.language.rules import Restrictions
from symformer_jax.selection import scoring
from symformer_jax.sources import links
from symformer_jax.sources.sums import terms

NAMES = ("x", "y")


def rows_of(truth, rng, *, low=-3.0, high=3.0, num_rows=80, weights=None):
  x = rng.uniform(low, high, (num_rows, 2))
  return Rows(x, scoring.evaluate(parser.parse(truth, NAMES), x), np.ones(num_rows) if weights is None else weights)


def asked(rows, restrictions=None):
  """The data set as a source is asked for it."""
  options = SearchOptions(restrictions=restrictions or Restrictions())
  task = make_task((rows.x, rows.y, rows.weights), ("x", "y", "z")[: rows.x.shape[1]], options)
  return Question(task, Pool(task.variance, len(task.fit_rows)), None)


def library_sums(rows, restrictions=None):
  """`(formula, mean squared error)` of all that the library's turns propose, in their order."""
  question, source = asked(rows, restrictions), terms.LibrarySums()
  nodes = [node for turn, num in enumerate(source.turns)
           for node in source.propose([question], turn=turn, num=num, clock=Clock())[0].nodes]
  return terms.scored(nodes, rows)


def best_of(candidates, rows):
  found = terms.recombine([parser.parse(text, NAMES) for text in candidates], rows, columns=(0, 1))
  # Of those that are exact the simplest.
  exact = 1e-20 * np.var(rows.y)
  return min(found, key=lambda pair: (max(pair[1], exact), expression.complexity(pair[0])))


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
  found = terms.recombine([parser.parse(t, NAMES) for t in ("log(x)", "sqrt(y) + x", "1e300**(x*y*100)")], rows,
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
  found = terms.recombine([parser.parse("x", NAMES)], rows, columns=(0, 1))
  assert all(np.isfinite(mse) for _, mse in found)
  tiny = Rows(x * 1e-60, x[:, 0] ** 3 * x[:, 1], np.ones(60))
  node, _ = best_of(["x"], tiny)
  np.testing.assert_allclose(scoring.evaluate(node, tiny.x), tiny.y, rtol=1e-9)


def test_only_the_given_columns_are_parts(rng):
  found = terms.recombine([parser.parse("sin(x)", NAMES)], rows_of("x + y", rng), columns=(0,))
  assert found and not any("y" in printing.to_text(node, NAMES) for node, _ in found)


@pytest.mark.parametrize("candidates", [[], ["3"], ["x - x"], ["log(-1)"]])
def test_no_parts_but_the_variables(candidates, rng):
  rows = rows_of("x*y", rng)
  found = terms.recombine([parser.parse(t, NAMES) for t in candidates], rows, columns=(0, 1))
  assert min(mse for _, mse in found) < 1e-20  # x and y alone make the product


def test_few_points_make_few_parts(rng):
  x = rng.uniform(-3, 3, (8, 2))
  found = terms.recombine([parser.parse(t, NAMES) for t in ("sin(x)", "exp(y)", "x**3")],
                              Rows(np.tile(x, (4, 1)), np.tile(rng.normal(size=8), 4), np.ones(32)), columns=(0, 1))
  assert found and all(len(expression.flatten(node, "+")) <= 2 for node, _ in found)


@pytest.mark.parametrize(("truth", "low"), [
  ("3*exp(-1.25*(x - 1.1)**2) + 0.5", -3), ("2*sin(3*x - 5*y)", -3), ("1/sqrt((1 - x**2)**2 + 0.04*x**2)", 0.1),
  *(pytest.param(truth, low, marks=pytest.mark.slow) for truth, low in (
    ("(x - 2*exp(-0.4*x))**3", -2),
    ("297*exp(-x/5.5) + 54*x", 0), ("y/(x + 7.3)", 0), ("arctan(0.3*x**2 - y)", -1), ("x**3/(exp(x) - 1)", 0.1),
    ("2/((x - 1.3)**2 + 0.4) + 1", -3), ("exp(y) + exp(-y) + 3", -3), ("sin(x**3)*cos(y**2) - 1", -3),
    ("1/(18*exp(-1.3*x) + 0.1)", 0), ("exp(-0.3*x)*cos(4*x + 0.5)", 0), ("arcsin(0.3*x*sin(y))", 0.1),
    ("x*y - 3*x**2*y + 2*y**3 + 0.5*sqrt(x)", 0.1), ("log(4 - x) + 0.3*x", -3)))])
def test_atoms_make_what_no_candidate_has(truth, low, rng):
  """Among the sums that are fitted is the truth."""
  rows = rows_of(truth, rng, low=low, num_rows=100)
  near = library_sums(rows)
  assert all(np.isfinite(mse) for _, mse in near)
  [fitted] = refine.fit_constants(
    [(asked(rows).task, [node for node, _ in near])], method="lm", max_steps=DEFAULT.pool.fit_steps)
  assert min(mse for _, mse in fitted) < 1e-10 * np.var(rows.y)  # a few steps from the grid: not yet to the last digit


def test_every_function_of_y_has_its_place_beside_the_nearest():
  nodes = [expression.number(float(i)) for i in range(7)]
  near, far, farther = zip(nodes[:4], (1, 2, 3, 4), strict=True), [(nodes[4], 9), (nodes[5], 8)], [(nodes[6], 20)]
  found = terms._by_error_and_by_link([list(near), far, farther])
  assert [node.value for node, _ in found] == [0, 1, 5, 2, 6, 3, 4]


def test_atoms_keep_forbidden_operators_out(rng):
  rows = rows_of("exp(-0.3*x)*cos(4*x)", rng)
  near = library_sums(rows, Restrictions(forbidden=("exp", "sin", "cos", "tan"), excluded=("y",)))
  used = {part.token for node, _ in near for part in expression.walk(node)}
  assert near and not used & {"sin", "cos", "tan"} and not any("y" in printing.to_text(node, NAMES) for node, _ in near)
  # Functions of y are undone by operators of their own; whoever asks tests the whole formula.
  assert not any(part.token == "exp" for node, _ in near for arg in node.args for part in expression.walk(arg))


@pytest.mark.slow
def test_atoms_do_not_depend_on_the_unit_of_y(rng):
  rows = rows_of("2*sin(3*x - 5*y) + x**2/3", rng)

  def best(scale):
    near = library_sums(Rows(rows.x, scale * rows.y, rows.weights))
    return min(mse for _, mse in near) / (scale**2 * np.var(rows.y))

  plain = best(1.0)
  for unit in (1e-58, 1e-24, 1e24, 1e58):
    assert best(unit) == pytest.approx(plain, rel=0.05), unit


def test_atoms_of_weighted_rows_a_constant_column_and_three_variables(rng):
  x = np.column_stack([rng.uniform(0.1, 3, 60), np.full(60, 2.0), rng.uniform(0.1, 3, 60)])
  is_bent = np.arange(60) < 20
  y = np.exp(-0.7 * x[:, 0]) + x[:, 2] ** 2 + 50 * is_bent
  rows = Rows(x, y, np.where(is_bent, 1e-12, 1.0))
  near = library_sums(rows)
  assert min(mse for _, mse in near) < 1e-3 * np.var(y)


def test_sums_of_every_size_have_their_turn(rng):
  """The best sum of one part comes first, however far off, then that of two."""
  near = library_sums(rows_of("sin(x) + y", rng))
  errors = [mse for _, mse in near]
  assert errors[0] > 0.1 > errors[1] and errors[1] < 1e-10


@pytest.mark.parametrize("link", links.LINKS.values(), ids=links.LINKS)
def test_every_function_of_y_is_undone(link, rng):
  """y = undo(transform(y)), and the derivative is that of the transform (SciPy's differences are the oracle)."""
  y = rng.uniform(0.2, 0.95, 30)
  assert link.is_defined(y)
  column = expression.variable(0)
  np.testing.assert_allclose(scoring.evaluate(link.undo(column), link.transform(y)[:, None]), y, rtol=1e-12)
  numeric = differentiate.derivative(link.transform, y, initial_step=0.05).df
  np.testing.assert_allclose(np.abs(link.derivative(y)), np.abs(numeric), rtol=1e-6)


def test_a_logistic_of_a_sum_is_found(rng):
  text = "1/(1 + exp(0.8*x - 1.2*y + 0.5))"
  assert min(mse for _, mse in library_sums(rows_of(text, rng))) < 1e-15
