"""Parts of what nearest neighbours and other coordinates tell, one by one: what is tried, and which of it stands."""

import dataclasses
import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT, NeighboursConfig
from symformer_jax.language import expression, parser
from symformer_jax.sources.reductions import coordinates, neighbours, reduced_tables

NEAR, COORDINATES, SURROGATE = (
  DEFAULT.reductions.neighbours, DEFAULT.reductions.coordinates, DEFAULT.reductions.surrogate)
NAMES = ("x", "y", "z")


def values(nodes, *point):
  return [float(expression.evaluate(node, np.array([point], float)).item()) for node in nodes]


# --- nearest neighbours ----------------------------------------------------------------------------------------------


def test_roughness_knows_no_units_and_no_zero(rng):
  x, targets = rng.normal(size=(50, 2)), rng.normal(size=(50, 3))
  rough = neighbours.roughness(x, targets)
  np.testing.assert_allclose(neighbours.roughness(x * [1e-9, 1e9], targets), rough)
  np.testing.assert_allclose(neighbours.roughness(x + [1e8, -1e8], np.exp(targets)), rough)


def test_numbers_are_no_targets(rng):
  targets = np.column_stack([np.full(30, 2.0), rng.normal(size=30)])
  rough = neighbours.roughness(rng.normal(size=(30, 2)), targets)
  assert rough[0] == np.inf and np.isfinite(rough[1])


@pytest.mark.parametrize("num_columns", [2, 3, 4])
def test_of_each_set_of_columns_the_smoothest_quotient_is_shown(num_columns, rng):
  """One column is left at least, and of as many as there are exponents for y is divided."""
  x = rng.uniform(0.5, 3, (60, num_columns))
  y = rng.normal(size=60)
  table = reduced_tables.whole(x, y)
  config = NeighboursConfig(powers=((-1.0, 0.5, 2.0), (-1.0, 2.0)))
  found = list(neighbours._divided(table, config))
  sets = [some for size in range(1, min(num_columns - 1, 2) + 1)
          for some in itertools.combinations(range(num_columns), size)]
  assert len(found) == len(sets)
  for (rough, smaller), some in zip(found, sets, strict=True):
    kept = [column for column in range(num_columns) if column not in some]
    quotients = [y / np.prod(x[:, list(some)] ** np.array(powers), axis=1)
                 for powers in itertools.product(config.powers[len(some) - 1], repeat=len(some))]
    expected = min(float(neighbours.roughness(x[:, kept], each[:, None])[0]) for each in quotients)
    assert rough == pytest.approx(expected)
    np.testing.assert_array_equal(smaller.x, x[:, kept])
    assert rough == pytest.approx(float(neighbours.roughness(smaller.x, smaller.y[:, None])[0]))
    for one, other in zip(smaller.of(x, y)[:2], (smaller.x, smaller.y), strict=True):
      np.testing.assert_allclose(one, other)


def test_ways_from_one_end_to_another():
  """Of two columns and one number: what is dropped, where a way begins and how long it is, at x = 3, y = 11."""
  found = [(sorted(way.columns), *values((way.begin, way.length), 3, 11))
           for way in neighbours.ways((0, 1), (100.0,))]
  assert found == [
    ([0], 3, 1), ([0], 100, 3), ([0], 100, 3 - 100), ([1], 11, 1), ([1], 100, 11), ([1], 100, 11 - 100),
    ([0, 1], 3, 11), ([0, 1], 3, 100 - 11 - 3), ([0, 1], 3, 11 - 3), ([0, 1], 11, 3), ([0, 1], 11, 100 - 3 - 11)]


def test_a_share_of_a_way_is_what_of_it_y_is_behind_what_was_divided_before(rng):
  """Of a table in other columns, whose y is the user's divided by x: formulas come back in the user's."""
  x = rng.uniform(1, 2, (20, 3))
  y = rng.normal(size=20)
  first = reduced_tables.Reduced(
    x[:, [2, 1, 0]], y / x[:, 0], tuple(map(expression.variable, (2, 1, 0))), (expression.variable(0),))
  way = neighbours.Way(frozenset((0, 2)), expression.variable(0), expression.variable(2))  # from z, as long as x
  smaller = way.share_of(first)
  np.testing.assert_allclose(smaller.y, (y / x[:, 0] - x[:, 2]) / x[:, 0])
  assert smaller.columns == (expression.variable(1),) and smaller.x.tolist() == x[:, [1]].tolist()
  shown, target, scale = smaller.of(x, y)
  np.testing.assert_allclose(target, smaller.y)
  np.testing.assert_allclose(scale, x[:, 0] ** 2)
  np.testing.assert_array_equal(shown, smaller.x)


def test_a_way_of_no_length_somewhere_is_no_usable_table(rng):
  x = rng.uniform(1, 2, (20, 2))
  x[3, 0] = 0.0
  assert not neighbours.Way(frozenset((0,)), expression.number(1.0), expression.variable(0)).share_of(
    reduced_tables.whole(x, x[:, 1])).is_usable


@pytest.mark.parametrize(("most", "sizes"), [(3, (2, 3)), (2, (2,))])
def test_columns_are_joined_by_which_y_is_smoothest(most, sizes, rng):
  x, y = rng.uniform(0.5, 3, (50, 3)), rng.normal(size=50)
  config = NeighboursConfig(joined=((1.0, -2.0), (1.0, -1.0)), max_columns_of_three=most)
  found = list(neighbours._joined(reduced_tables.whole(x, y), config))
  sets = [some for size in sizes for some in itertools.combinations(range(3), size)]
  assert len(found) == len(sets)
  for (rough, smaller), some in zip(found, sets, strict=True):
    kept = [column for column in range(3) if column not in some]
    first, *others = x[:, list(some)].T
    if len(others) == 1:
      joins = [first + others[0], first - others[0], first * others[0], first / others[0] ** 2]
    else:
      joins = [first * others[0] ** p * others[1] ** q for p in (1, -1) for q in (1, -1)]
    expected = [float(neighbours.roughness(np.column_stack([x[:, kept], join]), y[:, None])[0]) for join in joins]
    assert rough == pytest.approx(min(expected))
    best = joins[int(np.argmin(expected))]
    np.testing.assert_allclose(smaller.x, np.column_stack([x[:, kept], best]))
    np.testing.assert_allclose(smaller.of(x, y)[0], smaller.x)


def test_of_joins_that_are_as_smooth_the_first_stands(monkeypatch, rng):
  monkeypatch.setattr(neighbours, "roughness", lambda x, targets: np.array([0.1]))
  x = rng.uniform(1, 2, (20, 2))
  [(_, smaller)] = neighbours._joined(reduced_tables.whole(x, x[:, 0]), NEAR)
  np.testing.assert_allclose(smaller.x[:, 0], x[:, 0] + x[:, 1])


def test_of_tables_as_smooth_those_that_are_divided_come_first(monkeypatch, rng):
  x = rng.uniform(1, 2, (20, 2))
  tables = [reduced_tables.whole(x[:, :1], x[:, 1] + i) for i in range(5)]
  monkeypatch.setattr(neighbours, "roughness", lambda x, targets: np.array([0.5]))
  constant = tables[0]._replace(y=np.ones(20))
  for name, some in (("_divided", [(0.1, tables[0])]), ("_between", [(0.05, tables[1]), (0.05, constant)]),
                     ("_joined", [(0.1, tables[2]), (0.2, tables[3]), (0.21, tables[4])])):
    monkeypatch.setattr(neighbours, name, lambda *given, some=some: iter(some))
  config = dataclasses.replace(NEAR, most_rough=0.2, most_of_whole=0.6, num_kept=4)
  found = neighbours.find_smaller(reduced_tables.whole(x, x[:, 0]), config)
  assert [each.y[0] - x[0, 1] for each in found] == pytest.approx([1, 0, 2, 3])


# --- other coordinates -----------------------------------------------------------------------------------------------


def test_what_may_take_a_column_s_place():
  for column, other, point in ((0, 1, (3.0, 2.0)), (1, 0, (2.0, 3.0))):
    nodes = [node for at, node in coordinates._joined(np.array([[3.0, 2.0], [2.5, 1.5]]), COORDINATES) if at == column]
    assert values(nodes, *point) == pytest.approx([6, 1.5, 5, 1, 9, 3**0.5])
    assert all(expression.columns_of(node) == {column, other} for node in nodes)


def test_where_a_column_is_0_somewhere_nothing_is_divided_by_it():
  nodes = [node for at, node in coordinates._joined(np.array([[3.0, 0.0], [2.5, 1.5]]), COORDINATES) if at == 0]
  assert values(nodes, 3, 2) == pytest.approx([6, 5, 1, 9])


@pytest.fixture
def find(monkeypatch):
  """`find_coordinates` by given errors: of both columns together, apart, and apart with each function in a place."""
  x = np.random.default_rng(0).uniform(1, 2, (90, 2))

  def run(whole, alone, errors, *, links=("y",), y=None, **changes):
    asked = []

    def fit_partition(shown, y, link, groups, config):
      asked.append((len(shown), len(y), link, config.num_steps))
      if groups == ((0, 1),):
        error = whole
      elif any(np.array_equal(row, each) for row in shown[:1] for each in x):
        error = alone
      else:
        error = next((error for text, error in errors.items() for column in (0, 1) if np.isclose(
          expression.evaluate(parser.parse(text, NAMES), x), shown[0, column], rtol=1e-12).any()
          and np.isin(shown[0, 1 - column], x[:, 1 - column])), 1.0)
      return None if error is None else SimpleNamespace(error=error)

    monkeypatch.setattr(coordinates, "fit_partition", fit_partition)
    config = dataclasses.replace(COORDINATES, links=links, **changes)
    found = coordinates.find_coordinates(x, x[:, 0] if y is None else y, config, SURROGATE)
    return found and (found[0], values(found[1:], 3, 2)[0]), asked
  return run


@pytest.mark.parametrize(("whole", "alone", "error", "is_found"), [
  (0.01, 1.0, 0.0049, True), (0.01, 1.0, 0.0051, False),  # half of the error
  (0.029, 1.0, 0.0, True), (0.031, 1.0, 0.0, False), (None, 1.0, 0.0, False),  # something is known
  (0.01, 0.0121, 0.0, True), (0.01, 0.0119, 0.0, False), (0.01, None, 0.0, True),  # it is no such sum already
  (1e-7, 1.1e-5, 0.99e-5, True), (1e-7, 0.9e-5, 0.99e-5, False), (1e-7, 1.1e-5, 1.01e-5, False),  # nearly exact
  (1e-7, 1e-5, 0.99e-5, False), (1e-7, 1.1e-5, 1e-5, True)])
def test_a_function_of_both_stands_that_is_far_better(find, whole, alone, error, is_found):
  found, asked = find(whole, alone, {"x*y": error})
  assert found == ((0, 6.0) if is_found else None)
  assert {each[:2] for each in asked} == {(COORDINATES.num_rows, COORDINATES.num_rows)}
  assert {each[3] for each in asked} == {COORDINATES.num_steps}


def test_the_best_function_of_both_stands_and_of_equals_the_first(find):
  assert find(0.01, 1.0, {"x*y": 0.003, "x/y": 0.002, "x + y": 0.004})[0] == (0, 1.5)
  assert find(0.01, 1.0, {"x + y": 0.003, "x - y": 0.003})[0] == (0, 5.0)
  assert find(0.01, 1.0, {"x + y": 0.003, "y**x": 0.002})[0] == (1, 8.0)


def test_columns_that_are_one_number_or_undefined_are_not_asked(monkeypatch):
  """Of x and 1/x the product is 1; powers of some size alone."""
  shown, x = [], np.array([0.25, 0.5, 2.0, 4.0, 0.125, 8.0])[:, None]
  monkeypatch.setattr(coordinates, "fit_partition", lambda some, y, link, groups, config: (
    shown.append(some) or SimpleNamespace(error=0.01 if groups == ((0, 1),) else 1.0)))
  with np.errstate(all="ignore"):
    coordinates.find_coordinates(
      np.column_stack([x, 1 / x]), x[:, 0], dataclasses.replace(COORDINATES, links=("y",)), SURROGATE)
  assert len(shown) > 6 and all(np.ptp(some, axis=0).min() > 0 and np.all(np.isfinite(some)) for some in shown)


def test_columns_of_small_ranges_are_asked(monkeypatch, rng):
  shown = []
  monkeypatch.setattr(coordinates, "fit_partition", lambda some, y, link, groups, config: (
    shown.append(some) or SimpleNamespace(error=0.01 if groups == ((0, 1),) else 1.0)))
  x = rng.uniform(1, 1.001, (40, 2))
  coordinates.find_coordinates(x, x[:, 0], dataclasses.replace(COORDINATES, links=("y",)), SURROGATE)
  assert len(shown) == 2 + 2 * 6  # the table as it is, in two ways, and six functions in the place of each column


def test_functions_of_y_are_asked_that_are_defined(find):
  y = np.linspace(-1, 1, 90)
  assert {each[2] for each in find(0.01, 1.0, {}, links=("y", "exp"), y=y)[1]} == {"y"}
  assert {each[2] for each in find(0.01, 1.0, {}, links=("y", "exp"), y=y + 2)[1]} == {"y", "exp"}
