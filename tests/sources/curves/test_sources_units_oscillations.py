"""Waves beside functions one by one: their grid, how they are written, and which kinds come first."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.rules import Rule
from symformer_jax.sources.curves import oscillations
from symformer_jax.sources.curves.inner_functions import FAMILIES, Functions
from symformer_jax.sources.curves.oscillations import Grid, _Sums
from symformer_jax.sources.links import LINKS

CONFIG = dataclasses.replace(DEFAULT.oscillations, num_frequencies=6)
RULE = Rule(1)


@pytest.fixture
def data(rng):
  x, y, weights = rng.uniform(0.3, 4, 50), rng.normal(size=50) + 2, rng.uniform(0.2, 3, 50)
  rows = Rows(x[:, None], y, weights)
  functions = Functions(rows, 0, RULE, {name: FAMILIES[name] for name in ("exponentials", "powers")},
                        dataclasses.replace(DEFAULT.two_constants, rates=(0.5, 2.0, 2), exponents=(0.5, 2.0, 2)))
  grid = oscillations._grid(rows, 0, 1.0, RULE, CONFIG)
  return rows, functions, grid, _Sums(grid, functions, y, weights)


def fitted(rows, *columns):
  """Values of the weighted least squares of columns and a constant."""
  design, root = np.column_stack([*columns, np.ones(len(rows))]), np.sqrt(rows.weights)
  return design @ np.linalg.lstsq(design * root[:, None], rows.y * root, rcond=None)[0]


@pytest.mark.parametrize("exponent", [1.0, 2.0, -1.0])
def test_a_grid_has_multiples_of_one_step_over_the_rows(exponent, rng):
  x = rng.uniform(0.5, 3, 30)
  rows = Rows(x[:, None], x, np.ones(30))
  grid = oscillations._grid(rows, 0, exponent, RULE, dataclasses.replace(CONFIG, step=0.5, num_frequencies=4))
  frequencies = 0.5 * np.arange(1, 5) / np.ptp(x**exponent)
  np.testing.assert_allclose(grid.frequencies, frequencies)
  np.testing.assert_allclose(grid.cos, np.cos(np.outer(frequencies, x**exponent)))
  np.testing.assert_allclose(grid.sin, np.sin(np.outer(frequencies, x**exponent)))
  np.testing.assert_allclose(expression.evaluate(grid.argument, rows.x), x**exponent)


def test_powers_that_are_forbidden_undefined_or_one_number_have_no_grid():
  x = np.array([0.0, 1.0, 2.0])[:, None]
  rows = Rows(x, x[:, 0], np.ones(3))
  with np.errstate(all="ignore"):
    assert oscillations._grid(rows, 0, -1.0, RULE, CONFIG) is None
    assert oscillations._grid(dataclasses.replace(rows, x=np.ones((3, 1))), 0, 1.0, RULE, CONFIG) is None
    assert oscillations._grid(rows, 0, 2.0, Rule(1, tokens=frozenset({"+", "*", "cos"})), CONFIG) is None
    assert oscillations._grid(rows, 0, 2.0, RULE, CONFIG) is not None


def test_a_wave_is_a_cosine_with_its_lag(data):
  rows, _, grid, _ = data
  for factors in ((3.0, 4.0), (-3.0, 0.5), (0.2, -2.0)):
    node = grid.written(2, np.array(factors))
    np.testing.assert_allclose(
      expression.evaluate(node, rows.x), factors[0] * grid.cos[2] + factors[1] * grid.sin[2], atol=1e-12)


def test_sums_are_written_with_the_factors_of_weighted_least_squares(data):
  rows, functions, grid, sums = data
  waves = [grid.cos[3], grid.sin[3]]
  x = rows.x[:, 0]
  values = functions.values(5)
  for node, columns in (
    (sums._written([3]), waves), (sums._written([3, 1]), [*waves, grid.cos[1], grid.sin[1]]),
    (sums._written([3], outer=5), [each * values for each in waves]),
    (sums._written([3], [functions.nodes[5]], [values]), [*waves, values])):
    [found] = node
    np.testing.assert_allclose(expression.evaluate(found, rows.x), fitted(rows, *columns), rtol=1e-6, atol=1e-9)
  for degree in (0, 1, 2):
    powers = [x**i for i in range(1, degree + 1)]
    [found] = sums._with_polynomials(0, degree, dataclasses.replace(CONFIG, num_polynomials=1))
    every = [fitted(rows, *powers, grid.cos[k], grid.sin[k]) for k in range(6)]
    best = min(every, key=lambda values: np.sum(rows.weights * (values - rows.y) ** 2))
    np.testing.assert_allclose(expression.evaluate(found, rows.x), best, rtol=1e-6)


def test_columns_of_zeros_are_not_written(data):
  rows, functions, grid, _ = data
  nothing = Grid(grid.argument, grid.frequencies, grid.cos, np.zeros_like(grid.sin))
  assert not list(_Sums(nothing, functions, rows.y, rows.weights)._written([2]))


@pytest.mark.parametrize(("max_degree", "expected"), [
  (0, ["0", "products", "functions", "two"]), (1, ["0", "1", "products", "functions", "two"]),
  (3, ["0", "1", "products", "functions", "2", "3", "two"])])
def test_plainer_kinds_come_first(max_degree, expected, monkeypatch, data):
  *_, sums = data
  monkeypatch.setattr(_Sums, "_with_polynomials", lambda self, column, degree, config: iter([str(degree)]))
  for name in ("products", "functions", "two"):
    monkeypatch.setattr(_Sums, f"_with_{name}", lambda self, config, name=name: iter([name]))
  found = sums.of_each_kind(0, dataclasses.replace(CONFIG, max_degree=max_degree))
  assert [next(each) for each in found] == expected


def test_few_of_each_family_stand_for_it_the_nearest_first(data):
  *_, sums = data
  left = np.full((8, 6), np.inf)
  left[0, 0], left[0, 5], left[3, 2], left[5, 1], left[7, 4] = 3.0, 1.0, 2.0, 2.0, 0.5
  places = SimpleNamespace(families={"one": [0, 1, 2, 3], "other": [4, 5, 6, 7]})
  sums._functions = places
  assert sums._of_families(left, dataclasses.replace(CONFIG, num_alike=1)) == [(7, 4), (0, 5)]
  assert sums._of_families(left, dataclasses.replace(CONFIG, num_alike=2)) == [(7, 4), (0, 5), (3, 2), (5, 1)]


def test_the_column_s_waves_for_y_are_every_second_formula(monkeypatch, rng):
  asked = []

  def for_link(link, grid, functions, column, config):
    name = next(name for name in LINKS if LINKS[name] is link)
    asked.append((name, float(expression.evaluate(grid.argument, np.array([[2.0]])).item())))
    return iter([expression.number(float(len(asked)))] * 2)

  monkeypatch.setattr(oscillations, "_for_link", for_link)
  x = rng.uniform(0.5, 3, (40, 1))
  own = dataclasses.replace(CONFIG, arguments=(1.0, 2.0, -1.0), links=("exp", "inv"))
  config = dataclasses.replace(DEFAULT, oscillations=own)
  for y, rule, links in ((np.exp(x[:, 0]), RULE, ["exp", "inv"]), (x[:, 0] - 1, RULE, ["inv"]),
                         (np.exp(x[:, 0]), Rule(1, tokens=frozenset({"+", "*", "cos", "inv", "pow2"})), ["inv"])):
    asked.clear()
    found = [int(node.value) for node in oscillations.oscillations_of(Rows(x, y, np.ones(40)), 0, rule, config)]
    assert sorted(asked) == sorted([("y", 2.0), ("y", 4.0), ("y", 0.5), *((link, 2.0) for link in links)])
    first = 1 + asked.index(("y", 2.0))
    assert found[0] == first and found[2] == first and first not in (found[1], *found[3:])
  asked.clear()
  assert not list(oscillations.oscillations_of(Rows(x, np.ones(40), np.ones(40)), 0, RULE, config)) and not asked


def test_independent_columns_are_told_by_their_gram_matrix(rng):
  one, other, goal = rng.normal(size=(3, 30))
  gram = [np.array(one @ one), np.array(one @ other), np.array(other @ other)]
  found = oscillations._gains(*gram, np.array(one @ goal), np.array(other @ goal), gram[0] + gram[2])
  design = np.column_stack([one, other])
  expected = goal @ goal - np.sum((goal - design @ np.linalg.lstsq(design, goal, rcond=None)[0]) ** 2)
  assert found == pytest.approx(expected)
