"""Changes of the columns under noise: which smaller tables are found, and that none is where there is none."""

import dataclasses

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import expression, parser, printing
from symformer_jax.sources.reductions import reduced_tables, tried_changes
from symformer_jax.sources.reductions.reduced_tables import Added

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


def known(x, y, slopes):
  return tried_changes._Known(reduced_tables.whole(x, y), slopes, np.ones(len(y)), 1.0)


def test_columns_of_both_signs_are_divided_by_in_whole_powers_alone(rng):
  x = rng.uniform(-3, 3, (50, 1))
  for values, expected in ((x, {1.0}), (np.abs(x), {0.5, 1.0, 1.5})):
    found = list(tried_changes._of_one(known(values, values[:, 0] ** 1.0, np.ones((50, 1))), 0, CONFIG))
    assert {change.divisor[0][1] for change in found if change.divisor} == expected


@pytest.mark.parametrize("column", [0, 1])
def test_columns_of_which_one_is_nothing_in_a_row_make_no_product(column, rng):
  x = rng.uniform(0.5, 3, (50, 2))
  for first, num in ((0.5, 1), (0.0, 0)):
    x[0, column] = first
    y = np.exp(-x[:, 0] * x[:, 1])
    found = list(tried_changes._products(known(x, y, -x[:, ::-1] * y[:, None]), (0, 1), CONFIG))
    assert len([change for change in found if change.error < 1e-9]) == num == min(len(found), 1)


def test_a_column_that_is_rare_is_in_no_ones_way(rng):
  """Of 224 rows one is another, which is not among those that are drawn."""
  x = rng.uniform(0.5, 3, (224, 4))
  drawn = np.random.default_rng(0).permutation(224)[: CONFIG.num_rows]
  x[:, 3] = np.arange(224) == np.setdiff1d(np.arange(224), drawn)[0]
  y = x[:, 0] * np.exp(-x[:, 1] * x[:, 2])
  assert tried_changes.find_smaller(x, y + 0.02 * rng.normal(size=224), CONFIG) == []
  assert tried_changes.find_smaller(x, x[:, 3] * 1.0, CONFIG) == []
  assert tried_changes.find_smaller(x[:, :3], y + 0.02 * rng.normal(size=224), CONFIG) != []


def test_slopes_of_nothing_tell_of_nothing(rng):
  x = rng.uniform(0.5, 3, (40, 3))
  for slopes in (np.zeros((40, 3)), np.full((40, 3), np.nan)):
    for change in tried_changes._changes(known(x, x[:, 0], slopes), CONFIG):
      assert not change.replaced and (change.error >= 1 or not change.divisor)
  assert not any(change.replaced for change in tried_changes._changes(known(x, np.zeros(40), slopes), CONFIG))


@pytest.mark.parametrize(("text", "power"), [
  ("x**2*(1 + cos(y/x))*exp(-z/x)", 2.0), ("exp(-x/y) + cos(2*z/y)", 0.0), ("sqrt(x)*log(1 + y/x)/(2 + y*z)", 0.5)])
def test_columns_that_grow_together(text, power, rng):
  """By exact slopes: of y in proportion to a power, or of y that stays."""
  x = rng.uniform(0.5, 3, (80, 3))
  truth = parser.parse(text, NAMES[:3])
  y, step = expression.evaluate(truth, x), 1e-6
  slopes = np.stack([(expression.evaluate(truth, x + step * (np.arange(3) == i)) - y) / step for i in range(3)], axis=1)
  changes = list(tried_changes._scalings(known(x, y, slopes), (0, 1, 2), CONFIG))
  [change] = [each for each in changes if each.error < 1e-3]
  [table, _] = change.apply(reduced_tables.whole(x, y), slopes)
  assert len(table.columns) == 2 and bool(change.divisor) == bool(power)
  scaled = [3, 3, 1 / 3] if "y*z" in text else [3, 3, 3]
  again = reduced_tables.whole(x * scaled, y * 3**power)
  np.testing.assert_allclose(table.of(x * scaled, again.y)[0], table.x)
  np.testing.assert_allclose(table.of(x * scaled, again.y)[1], table.y)


@pytest.mark.parametrize(("errors", "expected"), [
  ({"y": 1.0, "x*y": 1.04}, "y"), ({"y": 1.06, "x*y": 1.0}, "x*y"), ({"y": 1.2, "x*y": 1.06}, None),
  ({"y": 1.04, "x*y": 1.0}, "y")])
def test_of_what_predicts_about_as_well_the_simplest_stands(errors, expected, rng, monkeypatch):
  """... if it predicts hardly worse than the table does."""
  x = rng.uniform(1, 2, (30, 2))
  whole = reduced_tables.whole(x, x[:, 0])
  made = {name: reduced_tables.Reduced(x[:, :1], x[:, 0], (parser.parse(name, NAMES[:2]),)) for name in errors}
  def look(table, x, y, config):
    name = printing.to_text(table.columns[0], NAMES) if len(table.columns) == 1 else ""
    return tried_changes._Known(table, None, None, 0.01 * errors.get(name, 1.0))

  changes = [(reduced_tables.Change(0.1, 0, {1: (node.columns[0], None)}), node) for node in made.values()]
  monkeypatch.setattr(tried_changes, "_known", look)
  monkeypatch.setattr(tried_changes, "_likely", lambda at, config: changes if len(at.table.columns) > 1 else [])
  found = tried_changes.find_smaller(whole.x, whole.y, CONFIG)
  assert [printing.to_text(table.columns[0], NAMES) for table in found] == ([expected] if expected else [])


def test_so_many_changes_are_tried_those_first_that_slopes_contradict_least(monkeypatch, rng):
  x = rng.uniform(1, 2, (30, 2))
  at = known(x, x[:, 0], np.ones((30, 2)))
  errors = [0.5, np.nan, 0.1, np.inf, 0.3]
  changes = [reduced_tables.Change(error, 0, {}) for error in errors]
  monkeypatch.setattr(tried_changes, "_changes", lambda known, config: iter(changes))
  tried = tried_changes._likely(at, dataclasses.replace(CONFIG, num_tried=2))
  assert [change.error for change, _ in tried] == [0.1, 0.3]
