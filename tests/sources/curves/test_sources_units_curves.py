"""Curves by themselves: their grid by its definition, what is left beside a line, which are tried, and when."""

import dataclasses
import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT, CurvesConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, number, variable
from symformer_jax.language.rules import Rule
from symformer_jax.sources.curves import curves
from symformer_jax.sources.curves.curves import Grid, Place
from symformer_jax.sources.links import LINKS

SMALL = CurvesConfig(exponents=(1.0, -1.0, 0.5), amplitudes=(2.0, 0.5), factors=(0.5, 4.0, 3), num_phases=4,
                     num_alike=(2, 1, 1))


def config_of(**changes):
  return dataclasses.replace(SMALL, **changes)


def rows_of(x, y=None, weights=None):
  x = np.asarray(x, float)
  return Rows(x[:, None], x if y is None else y, np.ones(len(x)) if weights is None else weights)


@pytest.fixture
def x(rng):
  return rng.uniform(0.2, 3, 24)


def bare(**fields):
  """A grid of which that much is known."""
  grid = object.__new__(Grid)
  for name, value in fields.items():
    setattr(grid, f"_{name}", value)
  return grid


# --- the grid --------------------------------------------------------------------------------------------------------


def test_a_grid_has_every_factor_of_every_power_times_every_amplitude(x):
  """Arguments whose largest size is a factor of the grid; columns of largest size 1."""
  grid = Grid(rows_of(x), 0, ("exp", "sin"), SMALL)
  sizes = {"exp": [0.5, 2**0.5, 4, -0.5, -(2**0.5), -4], "sin": [np.pi / 4, np.pi / 2, 3 * np.pi / 4]}
  functions, at = {"exp": np.exp, "sin": np.sin}, 0
  for name, amplitude in itertools.product(("exp", "sin"), (0.0, 2.0, 0.5)):
    begin = at
    for exponent, size in itertools.product((1.0, -1.0, 0.5), sizes[name]):
      argument = size * x**exponent / np.max(x**exponent)
      column = x**amplitude * functions[name](argument)
      np.testing.assert_allclose(grid._columns[at], column / np.max(np.abs(column)), rtol=1e-6, atol=1e-7)
      assert grid._exponents[at] == exponent
      np.testing.assert_allclose(grid._factors[at] * x**exponent, argument)
      at += 1
    assert grid._kinds[name, amplitude].tolist() == list(range(begin, at))
  assert at == len(grid._columns) == len(grid._factors) and len(grid._kinds) == 6
  assert grid._columns.dtype == np.float32
  np.testing.assert_array_equal(grid._squares, grid._columns**2)


@pytest.mark.parametrize("side", [1, -1])
def test_curves_between_those_of_the_grid_are_half_a_step_away_each_by_its_own_power(side):
  """Of waves by an eighth of pi over the largest power, of others by the root of what lies between two factors."""
  grid, factors, powers = bare(config=SMALL), np.array([[3.0], [5.0]]), np.array([[1.0, -2.0], [0.1, 0.4]])
  np.testing.assert_allclose(
    grid._moved("sin", factors, powers, side), factors + side * np.pi / 8 / np.array([[2.0], [0.4]]))
  np.testing.assert_allclose(grid._moved("exp", factors, powers, side), factors * 8 ** (side / 4))


def test_powers_and_columns_that_are_undefined_are_left_out():
  x = np.array([-2.0, -1, 1, 2])
  grid = Grid(rows_of(x), 0, ("exp",), config_of(amplitudes=(1.0, 0.5)))
  assert set(grid._exponents) == {1.0, -1.0} and set(grid._kinds) == {("exp", 0.0), ("exp", 1.0)}
  # 1/(1 + z) has a pole where a factor is the opposite of a power of the largest row, or of the second.
  whole = Grid(rows_of(np.array([1.0, 2, 4])), 0, ("inv",), config_of(exponents=(1.0,), factors=(1.0, 2.0, 2)))
  assert whole._factors.tolist() == [0.25, 0.5] * 3
  none = Grid(rows_of(np.full(4, 3.0)), 0, ("exp",), SMALL)
  assert none._columns.shape == (0, 4) and none._kinds == {} and none.nearest(rows_of(x, x)) == []


def test_columns_that_are_nothing_are_left_out():
  grid = Grid(rows_of([1.0, 2]), 0, ("exp",), config_of(exponents=(1.0,), amplitudes=(), factors=(1.0, 4000.0, 2)))
  assert np.all(np.isfinite(grid._columns)) and (2 * grid._factors).tolist() == [1, -1]  # exp(4000), exp(-2000)


def test_the_column_itself_is_a_power_whatever_the_config_says(x):
  """A line beside a curve is of it."""
  grid = Grid(rows_of(x), 0, ("exp",), config_of(exponents=(2.0,), amplitudes=(0.0, 3.0)))
  assert set(grid._powers) == {1.0, 2.0, 3.0}
  np.testing.assert_allclose(grid._powers[3.0], x**3)


@pytest.mark.parametrize(("values", "is_usable"), [
  ([1, 1, 1, 9.9], True), ([1, 1, 1, 10.0], False), ([-1, -1, -1, -10.0], False), ([-1, -1, 1, -9.9], True),
  ([2, 2, 2], False), ([1, np.nan, 2], False), ([1, np.inf, 2], False), ([0.1, 0.2, 0.3], True)])
def test_powers_without_a_pole_that_vary_are_usable(values, is_usable):
  assert curves._is_usable(np.array(values, float), 10.0) is is_usable


# --- what is nearest -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "is_own"), [(0.8e-5, False), (1.25e-5, True)])
def test_curves_that_are_a_constant_to_single_precision_are_none(share, is_own):
  wave = np.tile([1.0, -1.0], 8)
  columns = (1 + share**0.5 * wave)[None].astype(np.float32)
  grid = bare(columns=columns, squares=columns**2)
  rows = rows_of(np.arange(16.0), wave + 0.5 * np.repeat([1.0, -1.0], 8))
  assert np.isfinite(grid._left(rows, np.full(16, 0.25), ())).tolist() == [is_own]


def test_curves_that_are_nothing_in_rows_that_count_are_none():
  wave = np.tile([1.0, -1.0], 8)
  columns = np.eye(1, 16, dtype=np.float32)
  weights = np.r_[0.0, np.ones(15)]
  left = bare(columns=columns, squares=columns**2)._left(rows_of(np.arange(16.0), wave, weights), weights**0.5, ())
  assert left.tolist() == [np.inf]


def test_what_is_left_is_a_share_of_the_largest_value_squared():
  wave, slow = np.tile([1.0, -1.0], 8), np.repeat([1.0, -1.0], 8)
  columns = np.stack([wave, slow]).astype(np.float32)
  grid = bare(columns=columns, squares=columns**2)
  for unit in (1.0, 1e-200, 1e200):  # 3/4 of a wave and 1/4 of another one, and a constant
    rows = rows_of(np.arange(16.0), unit * (0.75 * wave + 0.25 * slow + 1))
    np.testing.assert_allclose(grid._left(rows, np.full(16, 0.25), ()) * 2**2, [0.0625, 0.5625], atol=1e-6)


def test_of_a_kind_the_best_of_whole_and_of_other_exponents_stand_for_it():
  """None of one exponent twice; in the order of what they leave."""
  exponents = np.array([1, 1, 0.5, 2, -3, 0.5, 1.5, -0.25, 1, 4])
  left = np.array([5, 3, 4, 6, 1, 2, 7, np.inf, 0, np.inf])
  grid, kind = bare(exponents=exponents), np.arange(8)
  assert grid._different(left, kind, 1) == [4, 5]
  assert grid._different(left, kind, 2) == [4, 5, 1, 6]
  assert grid._different(left, kind, 9) == [4, 5, 1, 3, 6]
  assert grid._different(left, np.array([7, 9]), 9) == [] and grid._different(left, np.array([3, 8]), 9) == [8, 3]
  same = np.zeros(40)  # of those that leave as much the first
  assert bare(exponents=np.arange(40) % 20 + 1.0)._different(same, np.arange(40), 3) == [0, 1, 2]


def test_the_plainest_curves_come_first_and_each_kind_in_turn(x, monkeypatch):
  kinds = {("exp", 0.0): np.array([0, 1]), ("exp", 2.0): np.array([2]), ("sin", 0.0): np.array([3, 4])}
  left = {0: np.array([3, 4, 5, 1, 2.0]), 1: np.array([0.5, 9, 0.1, np.inf, np.inf])}
  grid = bare(kinds=kinds, exponents=np.array([1, 2, 1, 1, 3.0]), factors=np.array([1, 2, 3, 4, 5.0]),
              config=config_of(num_alike=(2, 1, 1)), column=0)
  grid.rows, asked = rows_of(-x), []
  monkeypatch.setattr(grid, "_left", lambda target, root, beside: asked.append((root, beside)) or left[len(beside)],
                      raising=False)
  weights = np.linspace(1, 2, len(x))
  found = grid.nearest(Rows(-x[:, None], x, weights))
  assert found == [
    Place("sin", 1.0, 4.0, 0.0, False), Place("exp", 1.0, 1.0, 0.0, False),  # the best of each, then the second
    Place("sin", 3.0, 5.0, 0.0, False), Place("exp", 2.0, 2.0, 0.0, False),
    Place("exp", 1.0, 1.0, 0.0, True), Place("exp", 1.0, 3.0, 2.0, False), Place("exp", 1.0, 3.0, 2.0, True)]
  for root, beside in asked:
    np.testing.assert_allclose(root**2, weights / weights.sum())
    assert all(np.max(np.abs(line)) == 1 and np.ptp(line / x) < 1e-12 for line in beside)


def test_of_kinds_that_leave_as_much_the_first_comes_first(x, monkeypatch):
  kinds = {("sin", 0.0): np.array([0]), ("exp", 0.0): np.array([1]), ("ln", 0.0): np.array([2])}
  grid = bare(kinds=kinds, exponents=np.ones(3), factors=np.ones(3), config=config_of(num_alike=(1, 1, 1)), column=0)
  grid.rows = rows_of(x)
  monkeypatch.setattr(grid, "_left", lambda target, root, beside: np.array([0.5, 0.5, 0.2]), raising=False)
  assert [place.name for place in grid.nearest(rows_of(x))] == ["ln", "sin", "exp"] * 2


# --- what is written -------------------------------------------------------------------------------------------------


def written(place, x, y):
  return bare(column=0).write(place, rows_of(x, y))


@pytest.mark.parametrize(("amplitude", "has_line"), [(0.0, False), (0.0, True), (-1.0, False), (-1.0, True)])
def test_a_curve_is_written_with_what_stands_beside_it(amplitude, has_line, x):
  y = 3 * x**amplitude * np.cos(2 * x**1.5) + (0.5 * x if has_line else 0) - 7
  node = written(Place("cos", 1.5, 2.0, amplitude, has_line), x, y)
  np.testing.assert_allclose(expression.evaluate(node, x[:, None]), y, rtol=1e-9)
  powers = [part.args[1].value for part in expression.walk(node) if part.token == "pow"]
  assert powers == [1.5] or amplitude  # nothing stands to the power of 0


def test_weights_count_where_factors_are_fitted(x, rng):
  weights, curve = rng.uniform(0.1, 3, len(x)), np.exp(-x)
  y = curve + 0.3 * rng.normal(size=len(x))
  node = bare(column=0).write(Place("exp", 1.0, -1.0, 0.0, False), rows_of(x, y, weights))
  root, design = np.sqrt(weights), np.column_stack([curve, np.ones(len(x))])
  factor, constant = np.linalg.lstsq(root[:, None] * design, root * y, rcond=None)[0]
  np.testing.assert_allclose(expression.evaluate(node, x[:, None]), factor * curve + constant, rtol=1e-9)


@pytest.mark.parametrize("place", [
  Place("exp", 1.0, 900.0, 0.0, False), Place("exp", 1.0, -9000.0, 0.0, False), Place("sqrt", 1.0, -1.0, 0.0, False),
  Place("exp", 1.0, -9000.0, 0.0, True)])
def test_what_is_nothing_or_undefined_in_some_rows_is_not_written(place):
  x = np.linspace(0.9, 3, 9)
  assert written(place, x, x) is None


# --- what is asked ---------------------------------------------------------------------------------------------------


def test_functions_of_the_target_are_asked_on_some_rows_as_the_config_says(x, monkeypatch):
  asked, made = [], []
  monkeypatch.setattr(curves, "Grid", lambda *given: made.append(given) or "grid")
  monkeypatch.setattr(curves, "_formulas", lambda grid, link, rows, num: asked.append((grid, link, rows, num)) or [])
  config, rows = config_of(links=("exp", "y", "inv"), num_rows=7, num_plain=9, num_inside=5), rows_of(x)
  assert list(curves.curves_of(rows, 0, Rule(1), config)) == []
  assert asked == [("grid", LINKS[name], rows, num) for name, num in (("exp", 5), ("y", 9), ("inv", 5))]
  [(some, column, names, own)] = made
  np.testing.assert_array_equal(some.x, rows.sample(7, seed=0).x)
  assert column == 0 and names == list(curves.CURVES) and own is config
  asked.clear()
  list(curves.curves_of(rows_of(x - 1), 0, Rule(1), config))
  assert [link for _, link, *_ in asked] == [LINKS["y"], LINKS["inv"]]  # some are below 0


def test_so_many_of_the_nearest_come_back_through_the_link(x):
  places, seen = ["a", "none", "b", "c"], []

  class Known:
    rows = rows_of(x)

    def nearest(self, target):
      seen.append(target)
      return places

    def around(self, some, target):
      assert some is places and target is seen[-1]
      return np.array([1.0, 0.0, 3.0, 2.0])  # what leaves least is the second, then the first

    def write(self, place, rows):
      seen.append(rows)
      return None if place == "none" else Node("*", (variable(0), number({"a": 2.0, "b": 3.0, "c": 5.0}[place])))

  rows = Rows(x[:, None], np.exp(x), np.linspace(1, 2, len(x)))
  found = list(curves._formulas(Known(), LINKS["exp"], rows, 3))
  # In turn those nearest with constants around theirs, and with theirs: "none", "a", (again "a" and "none",) "c", "b".
  assert [node.token for node in found] == ["exp", "exp"] and [node.args[0].args[1].value for node in found] == [2, 5]
  np.testing.assert_allclose(seen[0].y, np.log(x))  # of the rows of the grid, whose y is x
  np.testing.assert_allclose(seen[1].y, x)
  np.testing.assert_allclose(seen[1].weights / rows.weights, seen[1].weights[0] / rows.weights[0] * (
    np.exp(2 * x) / np.exp(2 * x[0])))  # an error of the logarithm is that of y over y
  assert len(list(curves._formulas(Known(), LINKS["y"], rows, 9))) == 3
  assert list(curves._formulas(Known(), LINKS["exp"], Rows(x[:, None], np.ones(len(x)), rows.weights), 3)) == []


def test_the_source_asks_of_the_only_column_that_varies(x, monkeypatch):
  given = []
  monkeypatch.setattr(curves, "curves_of", lambda *asked: given.append(asked) or "found")
  monkeypatch.setattr(curves.pair_sums, "allowed", lambda *asked: asked)
  config = dataclasses.replace(DEFAULT, curves=config_of(turns=(7, 3)))
  source, rows = curves.Curves(config), Rows(np.column_stack([np.ones(len(x)), x]), x, np.ones(len(x)))
  task = SimpleNamespace(fit_rows=rows, columns=(0, 1), rule="rule")
  assert source._nodes(SimpleNamespace(task=task), 0, 9) == ("found", task, 9, config.terms)
  assert given == [(rows, 1, "rule", config.curves)] and source.turns == (7, 3)
