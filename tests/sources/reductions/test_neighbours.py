"""What nearest neighbours tell of tables that no smooth function goes through."""

import dataclasses

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.stats import rankdata

from symformer_jax.engine.config import DEFAULT, NeighboursConfig
from symformer_jax.language import expression, parser, printing
from symformer_jax.sources.reductions import neighbours, reduced_tables
from symformer_jax.sources.reductions.smaller_tables import find_reductions

CONFIG = DEFAULT.reductions.neighbours
NAMES = ("x", "y", "z", "w", "v")


def table_of(text, box, *, num_rows=224, noise=0.0, seed=0):
  rng = np.random.default_rng(seed)
  x = np.column_stack([rng.uniform(low, high, num_rows) for low, high in box])
  y = expression.evaluate(parser.parse(text, NAMES[: len(box)]), x)
  return reduced_tables.whole(x, y + noise * np.std(y) * rng.normal(size=num_rows))


def columns_of(table):
  return [printing.to_text(node, NAMES) for node in table.columns]


@pytest.mark.parametrize(("text", "box", "columns", "divisor"), [
  ("z**3*sin(8*w/sqrt(x))/y", ((0.25, 5), (0.5, 4.5), (-1, 1), (0.25, 1.2)), ["x", "w"], "z**3/y"),
  ("2*log(0.92*z**2*x + 13.8)*y**2*z*w", ((0, 5), (-5, 5), (-2, 2), (-1, 1)), ["x", "z"], "y**2*w"),
  ("sqrt(x**2 + y**2 - 2*x*y*cos(z - w))", ((1, 5),) * 4, ["x", "y", "z - w"], None),
  ("exp(-x)*cos(4*y*z)", ((0, 1), (0, 2), (0, 2)), ["x", "y*z"], None),
  ("1 - x*sin(1.267*y*z/w)**2", ((0.5, 1), (0.001, 0.004), (100, 1000), (0.5, 5)), ["x", "y*z/w"], None)])
def test_products_and_pairs_are_found(text, box, columns, divisor):
  table = table_of(text, box)
  first = neighbours.find_smaller(table, CONFIG)[0]
  assert columns_of(first) == columns
  assert [printing.to_text(step, NAMES) for step in first.steps] == ([divisor] if divisor else [])
  # It is the same table of any rows, and formulas come back.
  x, y, scale = first.of(table.x, table.y)
  np.testing.assert_allclose(x, first.x)
  np.testing.assert_allclose(y, first.y)
  np.testing.assert_allclose(y * scale, table.y)


@pytest.mark.parametrize(("text", "box", "columns", "steps"), [
  ("w + (1 - w)/(1 + exp(-1.7*y*(x - z)))", ((-3, 3), (0.3, 2.5), (-2, 2), (0, 0.9)), ["x", "y", "z"], ["1", "w - 1"]),
  ("y + (z - y)*sin(7*x*w)**2", ((0, 1), (20, 40), (60, 90), (0.5, 1.5)), ["x", "w"], ["y", "z - y"]),
  ("w + x*cos(6*y*z)", ((1, 5), (0, 1), (0, 2), (-9, 9)), ["y", "z"], ["w", "x"]),
  ("y + (100 - y)/(1 + (z/x)**w)", ((1, 50), (0, 60), (1, 50), (1, 4)), ["x", "z", "w"], ["100", "y - 100"]),
  ("w + (1 - w - v)*(1 - exp(-(x/y)**z))", ((0.1, 5), (0.5, 4), (1, 3), (0, 0.5), (0, 0.4)), ["x", "y", "z"],
   ["w", "1 - w - v"]),
  ("1 - z*cos(6*x*y)", ((0, 1), (0, 2), (0.2, 0.9)), ["x", "y"], ["1", "z"]),
  ("z + cos(6*x*y)", ((0, 1), (0, 2), (-2, 2)), ["x", "y"], ["z", "1"])])
def test_shares_of_the_way_between_two_columns_are_found(text, box, columns, steps):
  table = table_of(text, box)
  rough, first = min(neighbours._between(table, CONFIG), key=lambda each: each[0])
  assert columns_of(first) == columns and rough < 0.2
  assert [printing.to_text(getattr(step, "node", step), NAMES) for step in first.steps] == steps
  x, y, scale = first.of(table.x, table.y)
  np.testing.assert_allclose(x, first.x)
  np.testing.assert_allclose(y, first.y)
  # An error of the share is one of y, and formulas come back.
  np.testing.assert_allclose(first.of(table.x, table.y + 1e-6)[1] - y, 1e-6 / scale, rtol=1e-3)
  values = expression.evaluate(first.restore(parser.parse("x + 3*y", NAMES)), table.x)
  np.testing.assert_allclose(first.of(table.x, values)[1], first.x[:, 0] + 3 * first.x[:, 1], atol=1e-9)


def test_a_way_between_columns_is_in_the_users_and_leaves_one():
  table = table_of("y + (z - y)*sin(7*x*w)**2", ((0, 1), (20, 40), (60, 90), (0.5, 1.5)))
  first = table._replace(x=table.x[:, [2, 0, 1, 3]], columns=tuple(table.columns[i] for i in (2, 0, 1, 3)))
  second = neighbours.find_smaller(first, CONFIG)[0]
  assert columns_of(second) == ["x", "w"]
  np.testing.assert_allclose(second.of(table.x, table.y)[1], second.y)
  assert list(neighbours._between(table_of("sin(x)", ((0, 3),)), CONFIG)) == []
  two = table_of("x*y", ((0, 3),) * 2)
  assert all(len(smaller.columns) == 1 for _, smaller in neighbours._between(two, CONFIG))


def test_a_smaller_table_of_a_smaller_table_is_in_the_users_columns():
  table = table_of("z**3*sin(8*w/sqrt(x))/y", ((0.25, 5), (0.5, 4.5), (-1, 1), (0.25, 1.2)))
  order = [3, 2, 0]
  first = table._replace(x=table.x[:, order], y=table.y * table.x[:, 1], columns=tuple(table.columns[i] for i in order),
                         steps=(parser.parse("1/y", NAMES),))
  second = neighbours.find_smaller(first, CONFIG)[0]
  assert columns_of(second) == ["z", "w/sqrt(x)"] and second.steps == first.steps
  third = neighbours.find_smaller(second, CONFIG)[0]
  assert columns_of(third) == ["w/sqrt(x)"]
  assert [printing.to_text(step, NAMES) for step in third.steps] == ["1/y", "z**3"]
  x, y, _ = third.of(table.x, table.y)
  np.testing.assert_allclose(x, third.x)
  np.testing.assert_allclose(y, third.y)


def test_roughness_is_that_of_nearest_neighbours(rng):
  x, targets = rng.normal(size=(60, 3)) * [1, 100, 1e-3], rng.normal(size=(60, 4))
  targets[:, 0] = x[:, 1]
  _, near = cKDTree((x - x.mean(axis=0)) / x.std(axis=0)).query((x - x.mean(axis=0)) / x.std(axis=0), k=2)
  ranks = rankdata(targets, axis=0)
  expected = 0.5 * np.mean((ranks - ranks[near[:, 1]]) ** 2, axis=0) / np.var(ranks, axis=0)
  np.testing.assert_allclose(neighbours.roughness(x, targets), expected)
  # Equal values have equal ranks, whatever the order of the rows.
  tied, order = (targets > 0).astype(float), np.argsort(targets[:, 3])
  np.testing.assert_allclose(neighbours.roughness(x[order], tied[order]), neighbours.roughness(x, tied))
  targets[7, 2] = np.nan
  rough = neighbours.roughness(x, targets)
  assert np.isinf(rough[2]) and np.isfinite(rough[[0, 1, 3]]).all() and rough[0] < 0.3
  # 1 where they tell nothing.
  assert neighbours.roughness(rng.normal(size=(2000, 2)), rng.normal(size=(2000, 1)))[0] == pytest.approx(1, abs=0.1)


def test_what_is_not_far_smoother_is_none():
  rough = table_of("sin(40*x*y)*z + sin(50*y*z)", ((0, 3),) * 3)
  assert neighbours.find_smaller(rough, CONFIG) == []
  smooth = table_of("sin(x) + y**2 + exp(z)", ((0, 3),) * 3)
  assert neighbours.find_smaller(smooth, CONFIG) == []
  noise = table_of("x*y*z", ((1, 3),) * 3, noise=3.0)
  assert neighbours.find_smaller(noise, CONFIG) == []
  some = table_of("z**3*sin(8*w/sqrt(x))/y", ((0.25, 5), (0.5, 4.5), (-1, 1), (0.25, 1.2)))
  found = neighbours.find_smaller(some, CONFIG)
  rough = [neighbours.roughness(each.x, each.y[:, None])[0] for each in found]
  assert rough == sorted(rough) and rough[-1] <= 0.2
  assert neighbours.find_smaller(some, NeighboursConfig(most_rough=rough[0] - 1e-9)) == []
  [one] = neighbours.find_smaller(some, NeighboursConfig(most_rough=rough[0] + 1e-9))
  assert columns_of(one) == columns_of(found[0])
  whole = neighbours.roughness(some.x, some.y[:, None])[0]
  assert neighbours.find_smaller(some, NeighboursConfig(most_of_whole=(rough[0] - 1e-9) / whole)) == []
  many = table_of("x**2*y*sin(3*z)", ((1, 9), (1, 9), (0, 3)))
  assert len(neighbours.find_smaller(many, NeighboursConfig(num_kept=2, most_of_whole=9.0))) == 2
  assert len(neighbours.find_smaller(many, NeighboursConfig(num_kept=9, most_of_whole=9.0))) > 2


def test_no_more_columns_are_divided_by_than_allowed_and_none_with_zeros():
  table = table_of("x*y*z*sin(9*w)", ((1, 9), (1, 9), (1, 9), (0, 2)))
  assert columns_of(neighbours.find_smaller(table, CONFIG)[0]) == ["w"]
  two = neighbours.find_smaller(table, NeighboursConfig(powers=CONFIG.powers[:2]))
  assert all(len(each.columns) > 1 for each in two)
  table.x[3, 0] = 0.0
  divided = [smaller for _, smaller in neighbours._divided(table, CONFIG)]
  assert divided and all("x" in "".join(columns_of(each)) for each in divided)
  # Of what has both signs there are whole powers alone.
  signed = table_of("x**2*sin(9*y)", ((-1, 1), (0, 2)))
  monomials = list(neighbours._monomials(signed.x, (0,), (-1.0, 0.5, 1.0, 1.5)))
  assert monomials == [((0, -1.0),), ((0, 1.0),)]


def test_constants_make_no_column():
  """The product of x and 1/x is 1 in every row, but for rounding or to the last digit."""
  x = np.random.default_rng(0).choice([0.5, 1.0, 2.0, 4.0], (90, 1))
  table = reduced_tables.whole(np.column_stack([x, 1 / x, np.arange(90.0)]), np.sin(np.arange(90.0)))
  joined = [smaller for _, smaller in neighbours._joined(table, CONFIG)]
  assert joined and all(np.ptp(each.x, axis=0).min() > 0 for each in joined)
  one = table_of("sin(9*x)", ((0, 2),))
  assert neighbours.find_smaller(one, CONFIG) == []


def test_reductions_ask_neighbours_where_slopes_are_unknown():
  table = table_of("z**3*sin(8*w/sqrt(x))/y", ((0.25, 5), (0.5, 4.5), (-1, 1), (0.25, 1.2)))
  [found] = find_reductions(table.x, table.y, DEFAULT.reductions)
  [column] = columns_of(found)
  assert column in ("w/sqrt(x)", "x/w**2") and [printing.to_text(step, NAMES) for step in found.steps] == ["z**3/y"]


@pytest.mark.parametrize(("text", "box", "columns", "steps"), [
  ("w + (1 - w)/(1 + exp(-1.702*y*(x - z)))", ((-3, 3), (0.3, 2.5), (-2, 2), (0, 0.3)), ["(x - z)*y"], ["1", "w - 1"]),
  ("1 - (1 - y)*exp(-(x/z)**w)", ((0.01, 1), (0.05, 0.5), (0.05, 0.6), (0.8, 5)), ["w", "x/z"], ["1", "y - 1"])])
def test_slopes_and_neighbours_are_asked_by_turns(text, box, columns, steps):
  """Of four columns 224 rows tell slopes to a hundredth, of the fewer that are left to more."""
  table = table_of(text, box)
  found = find_reductions(table.x, table.y, DEFAULT.reductions)[0]
  assert sorted(columns_of(found)) == sorted(columns)
  assert [printing.to_text(getattr(step, "node", step), NAMES) for step in found.steps] == steps


def test_neighbours_are_asked_once_more_only_where_slopes_may_have_missed_a_change():
  table = table_of("w + (1 - w)/(1 + exp(-1.702*y*(x - z)))", ((-3, 3), (0.3, 2.5), (-2, 2), (0, 0.3)))
  sharp = dataclasses.replace(DEFAULT.reductions, neighbours=dataclasses.replace(CONFIG, blurred=1.0))
  assert columns_of(find_reductions(table.x, table.y, sharp)[0]) == ["y", "w", "x - z"]


def test_configs_are_checked():
  for name in ("num_kept", "num_steps", "max_columns_of_three"):
    with pytest.raises(ValueError, match=name):
      NeighboursConfig(**{name: 0})
