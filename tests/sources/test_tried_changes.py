"""Changes of the columns under noise: which smaller tables are found, and that none is where there is none."""

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import expression, parser, printing
from symformer_jax.sources import tried_changes
from symformer_jax.sources.reduced_tables import Added

NAMES = ("x", "y", "z", "w")
CONFIG = DEFAULT.reductions.tried


def noisy(text, num_columns, *, noise=0.02, low=0.5, high=3.0, num_rows=120, seed=3):
  rng = np.random.default_rng(seed)
  x = rng.uniform(low, high, (num_rows, num_columns))
  y = expression.evaluate(parser.parse(text, NAMES[:num_columns]), x)
  return x, y + noise * np.std(y) * rng.normal(size=num_rows)


def shown(tables):
  """Columns, and what y was divided by or is less, as text."""
  def step(each):
    return "- " + printing.to_text(each.node, NAMES) if isinstance(each, Added) else printing.to_text(each, NAMES)

  return [({printing.to_text(node, NAMES) for node in table.columns}, {step(each) for each in table.steps})
          for table in tables]


@pytest.mark.parametrize(("text", "num_columns", "columns", "steps"), [
  ("x*(1 + (2*y*z)**2)**(-0.3)", 3, {"y*z"}, {"x"}),
  ("x*exp(-y/(z + 1))/sqrt(w)", 4, {"y", "z"}, {"x", "1/sqrt(w)"}),
  ("(1 + 2*cos(y))/(x**2*(y + z))", 3, {"y", "z"}, {"1/x**2"}),
  ("log(1 + 3*(x - y)**2)*z", 3, {"y - x"}, {"z"}),
  ("sqrt(x*z + 1)/(x*z + y)", 3, {"x*z", "y"}, set()),
  ("sin(x + y) + 0.3*x + 0.3*y", 2, {"x + y"}, set()),
])
def test_laws_under_noise_are_tables_of_fewer_columns(text, num_columns, columns, steps):
  assert shown(tried_changes.find_smaller(*noisy(text, num_columns), CONFIG)) == [(columns, steps)]


def test_a_column_that_is_a_term_is_taken_away():
  [table] = tried_changes.find_smaller(*noisy("3*exp(-y*z) + 2*x", 3), CONFIG)
  [term] = table.steps
  assert isinstance(term, Added) and len(table.columns) == 1
  assert float(expression.evaluate(term.node, np.ones((1, 3)))[0]) == pytest.approx(2, rel=0.03)


def test_columns_that_grow_with_y_are_one_less():
  """x*(y*(1 - z)/(x*z + y*(1 - z)))**2 is x times a function of y/x and z."""
  [table] = tried_changes.find_smaller(
    *noisy("x*(y*(1 - z)/(x*z + y*(1 - z)))**2", 3, low=0.2, high=0.9), CONFIG)
  x = np.random.default_rng(0).uniform(0.2, 0.9, (50, 3))
  y = expression.evaluate(parser.parse("x*(y*(1 - z)/(x*z + y*(1 - z)))**2", NAMES[:3]), x)
  both = table.of(x, y)[0], table.of(2 * x * [1, 1, 0.5], 2 * y)[0]
  assert len(table.columns) == 2 and np.allclose(*both)
  assert np.allclose(table.of(x, y)[1], table.of(2 * x * [1, 1, 0.5], 2 * y)[1])


@pytest.mark.parametrize("text", ["x**2 + cos(3*y)", "exp(-x)*y + 0.3*y**3", "(x + 0.3)*log(y + 2) + x**3"])
def test_where_no_change_leaves_y_alone_there_is_none(text):
  assert tried_changes.find_smaller(*noisy(text, 2), CONFIG) == []


def test_a_column_that_does_not_matter_is_left_out():
  [table] = tried_changes.find_smaller(*noisy("cos(2*x) + 0.1*x**3", 2), CONFIG)
  assert shown([table]) == [({"x"}, set())]


def test_noise_alone_has_no_smaller_table(rng):
  assert tried_changes.find_smaller(rng.uniform(1, 2, (100, 3)), rng.normal(size=100), CONFIG) == []


def test_a_formula_of_the_smaller_table_comes_back():
  x, y = noisy("x*(1 + (2*y*z)**2)**(-0.3)", 3)
  [table] = tried_changes.find_smaller(x, y, CONFIG)
  found = table.restore(parser.parse("(1 + 4*x**2)**(-0.3)", ("x",)))
  truth = expression.evaluate(parser.parse("x*(1 + (2*y*z)**2)**(-0.3)", NAMES[:3]), x)
  np.testing.assert_allclose(expression.evaluate(found, x), truth)


def test_columns_of_both_signs_are_divided_by_in_whole_powers_alone():
  rng = np.random.default_rng(1)
  x = rng.uniform(-3, 3, (150, 3))
  x[:, 0] = np.where(rng.random(150) < 0.5, 1, -1) * rng.uniform(0.5, 3, 150)
  y = x[:, 0] * np.cos(x[:, 1] + 0.5 * x[:, 2] ** 2)
  [table] = tried_changes.find_smaller(x, y + 0.02 * rng.normal(size=150), CONFIG)
  assert shown([table])[0][1] == {"x"}
