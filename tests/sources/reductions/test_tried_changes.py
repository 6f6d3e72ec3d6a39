"""Changes of the columns under noise: which smaller tables are found, and that none is where there is none."""

import dataclasses

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import expression, parser, printing
from symformer_jax.sources.reductions import reduced_tables, tried_changes
from symformer_jax.sources.reductions.reduced_tables import Added

NAMES = ("x", "y", "z", "w", "v")
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


def drawn(text, box, *, noise=0.01, num_rows=224, seed=0):
  """With noise of a share of y's root mean square."""
  rng = np.random.default_rng(seed)
  x = np.column_stack([rng.uniform(low, high, num_rows) for low, high in box])
  y = expression.evaluate(parser.parse(text, NAMES[: len(box)]), x)
  return x, y + noise * np.sqrt(np.mean(y**2)) * rng.normal(size=num_rows)


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
  [table] = tried_changes.find_smaller(*noisy("cos(2*x) + 0.1*x**3", 2, num_rows=224), CONFIG)
  assert shown([table]) == [({"x"}, set())]


@pytest.mark.parametrize("seed", range(2))
def test_laws_over_decades_are_tables_of_fewer_columns(seed):
  """Most rows are within the noise, of a hundredth of the root mean square of all."""
  x, y = drawn("x*(exp(8*y/z) - 1)", ((0.5, 3), (0.3, 1.5), (1, 3)), seed=seed)
  assert np.median(np.abs(y)) < 0.02 * np.max(y)
  assert shown(tried_changes.find_smaller(x, y, CONFIG)) == [({"z/y"}, {"x"})]


@pytest.mark.parametrize("seed", range(2))
def test_a_share_of_the_way_between_two_columns_is_a_table_of_the_others(seed):
  box = ((60, 90), (20, 40), (1, 50), (1, 50), (1, 4))
  found = tried_changes.find_smaller(*drawn("y + (x - y)/(1 + (z/w)**v)", box, seed=seed), CONFIG)
  assert shown(found) in ([({ratio, "v"}, {"- x", "y - x"})] for ratio in ("w/z", "z/w"))


def test_noise_alone_has_no_smaller_table(rng):
  assert tried_changes.find_smaller(rng.uniform(1, 2, (100, 3)), rng.normal(size=100), CONFIG) == []


def test_a_formula_of_the_smaller_table_comes_back():
  x, y = noisy("x*(1 + (2*y*z)**2)**(-0.3)", 3)
  [table] = tried_changes.find_smaller(x, y, CONFIG)
  found = table.restore(parser.parse("(1 + 4*x**2)**(-0.3)", ("x",)))
  truth = expression.evaluate(parser.parse("x*(1 + (2*y*z)**2)**(-0.3)", NAMES[:3]), x)
  np.testing.assert_allclose(expression.evaluate(found, x), truth)


def told(x, y, slopes):
  return tried_changes._Told(reduced_tables.whole(x, y), slopes, np.ones(len(y)))


def test_columns_of_both_signs_are_divided_by_in_whole_powers_alone(rng):
  x = rng.uniform(-3, 3, (50, 1))
  whole = {p for p in CONFIG.divisors if p == round(p)}
  for values, expected in ((x, whole), (np.abs(x), set(CONFIG.divisors))):
    found = list(tried_changes._of_one(told(values, values[:, 0] ** 1.0, np.ones((50, 1))), 0, CONFIG))
    assert {change.divisor[0][1] for change in found if change.divisor} == expected
    assert {change.divisor[0][1] for change in found if change.divisor and change.error < 1e-9} == {1.0}


@pytest.mark.parametrize("column", [0, 1])
def test_columns_of_which_one_is_nothing_in_a_row_make_no_product(column, rng):
  x = rng.uniform(0.5, 3, (50, 2))
  for first, num in ((0.5, 1), (0.0, 0)):
    x[0, column] = first
    y = np.exp(-x[:, 0] * x[:, 1])
    found = list(tried_changes._products(told(x, y, -x[:, ::-1] * y[:, None]), (0, 1), CONFIG))
    assert len([change for change in found if change.error < 1e-9]) == num == min(len(found), 1)


def test_a_column_that_is_rare_is_in_no_ones_way(rng):
  """Of 300 rows one is another, which is not among those that are drawn."""
  x = rng.uniform(0.5, 3, (300, 4))
  drawn = np.random.default_rng(0).permutation(300)[: CONFIG.num_rows]
  x[:, 3] = np.arange(300) == np.setdiff1d(np.arange(300), drawn)[0]
  y = x[:, 0] * np.exp(-x[:, 1] * x[:, 2])
  assert tried_changes.find_smaller(x, y + 0.02 * rng.normal(size=300), CONFIG) == []
  assert tried_changes.find_smaller(x, x[:, 3] * 1.0, CONFIG) == []
  assert tried_changes.find_smaller(x[:, :3], y + 0.02 * rng.normal(size=300), CONFIG) != []


def test_slopes_of_nothing_tell_of_nothing(rng):
  """But that columns may be left out, where they are 0."""
  x = rng.uniform(0.5, 3, (40, 3))
  for slopes in (np.zeros((40, 3)), np.full((40, 3), np.nan)):
    for change in tried_changes._changes(told(x, x[:, 0], slopes), CONFIG):
      assert not change.error < 1 or not (change.replaced or change.divisor or change.summand)
  assert not any(change.error < 1 and change.replaced for slopes in (np.zeros((40, 3)), np.ones((40, 3)))
                 for change in tried_changes._scalings(told(x, np.zeros(40), slopes), (0, 1, 2), CONFIG))
  steps = list(tried_changes._steps(told(x, x[:, 0], np.full((40, 3), np.nan)), CONFIG))
  assert steps and all(step.table.steps and not step.joined for step in steps)  # ways alone, without slopes


@pytest.mark.parametrize(("text", "power"), [
  ("x**2*(1 + cos(y/x))*exp(-z/x)", 2.0), ("exp(-x/y) + cos(2*z/y)", 0.0), ("sqrt(x)*log(1 + y/x)/(2 + y*z)", 0.5)])
def test_columns_that_grow_together(text, power, rng):
  """By exact slopes: of y in proportion to a power, or of y that stays."""
  x = rng.uniform(0.5, 3, (80, 3))
  truth = parser.parse(text, NAMES[:3])
  y, step = expression.evaluate(truth, x), 1e-6
  slopes = np.stack([(expression.evaluate(truth, x + step * (np.arange(3) == i)) - y) / step for i in range(3)], axis=1)
  changes = list(tried_changes._scalings(told(x, y, slopes), (0, 1, 2), CONFIG))
  [change] = [each for each in changes if each.error < 1e-3]
  [table, _] = change.apply(reduced_tables.whole(x, y), slopes)
  assert len(table.columns) == 2 and bool(change.divisor) == bool(power)
  scaled = [3, 3, 1 / 3] if "y*z" in text else [3, 3, 3]
  again = reduced_tables.whole(x * scaled, y * 3**power)
  np.testing.assert_allclose(table.of(x * scaled, again.y)[0], table.x)
  np.testing.assert_allclose(table.of(x * scaled, again.y)[1], table.y)


def test_of_three_columns_y_may_stay_as_it_is_where_slopes_say_it_grows(rng):
  """Of the two it is weighed which is likelier; of two columns that is a product, which is another change."""
  x = rng.uniform(0.5, 3, (80, 3))
  slopes = rng.normal(size=(80, 3))
  both, one = (list(tried_changes._scalings(told(x, x[:, 0], slopes), some, CONFIG)) for some in ((0, 1, 2), (0, 1)))
  assert [[bool(change.divisor) for change in some] for some in (both, one)] == [[True, False], [True]]
  assert both[0].replaced.keys() == both[1].replaced.keys() and len(both[0].replaced) == 2


def test_so_many_changes_are_weighed_those_first_that_slopes_contradict_least(monkeypatch, rng):
  """... and ways of the user's table, but not of another."""
  x = rng.uniform(1, 2, (30, 2))
  at = told(x, x[:, 0], np.ones((30, 2)))
  errors = [0.5, np.nan, 0.1, np.inf, 0.3]
  changes = [reduced_tables.Change(error, 0, {}, ((1, error),)) for error in errors]
  monkeypatch.setattr(tried_changes, "_changes", lambda told, config: iter(changes))
  config = dataclasses.replace(CONFIG, num_weighed=2, ends=(7.0,))
  weighed = list(tried_changes._steps(at, config))
  np.testing.assert_allclose([step.table.y for step in weighed[:2]], [x[:, 0] / x[:, 1] ** p for p in (0.1, 0.3)])
  assert [(step.dropped, step.complexity) for step in weighed[:2]] == [((0,), change.complexity) for change in (
    changes[2], changes[4])]
  # Of one column, from 1 to it, from 7 to it and from 7 by it: no way of both leaves a column.
  assert {step.dropped for step in weighed[2:]} == {(0,), (1,)} and len(weighed) == 2 + 2 * 3
  np.testing.assert_allclose(weighed[3].table.y, (x[:, 0] - 7) / x[:, 0])
  divided = at._replace(table=at.table._replace(steps=(parser.parse("y", NAMES),)))
  assert len(list(tried_changes._steps(divided, config))) == 2
