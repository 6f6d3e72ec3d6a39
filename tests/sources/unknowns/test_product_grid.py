"""Products of powers on a grid: which exponents it has, and that products are those of their formulas."""

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression, parser
from symformer_jax.sources.unknowns.product_grid import Grid

NAMES = ("x", "z", "w")
CONFIG = DEFAULT.single_index


def parse(text):
  return parser.parse(text, NAMES)


@pytest.fixture
def rows(rng):
  return Rows(rng.uniform(0.5, 2.5, (40, 3)), rng.uniform(0.5, 2, 40), rng.uniform(0.5, 2, 40))


@np.errstate(all="ignore")  # powers that are undefined are left out
def grid_of(rows, exponents=CONFIG.exponents, *, most=10_000, columns=(0, 1, 2), num_rows=64):
  return Grid(rows, columns, exponents, num_rows=num_rows, most=most)


def test_the_first_exponents_that_make_no_more_products_than_allowed_are_taken(rows):
  some = ((1, 2, -1), (1, 2), (1,))
  for most, expected in ((64, some[0]), (63, some[1]), (27, some[1]), (26, some[2]), (8, some[2])):
    assert grid_of(rows, some, most=most).exponents == [[0, *expected]] * 3
  assert grid_of(rows, some, most=7).exponents == []


def test_exponents_of_the_default_are_the_finest_of_which_there_are_not_too_many(rng):
  def exponents(num, num_negative=0):
    x = rng.uniform(1, 3, (20, num)) * np.where(np.arange(num) < num_negative, -1, 1)
    found = grid_of(Rows(x, x[:, 0], np.ones(20)), most=CONFIG.max_products, columns=range(num)).exponents
    return [sorted(each) for each in found]

  whole = [-4, -3, -2, -1, 0, 1, 2, 3, 4]
  finest = [-4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4]
  assert exponents(4) == [finest] * 4
  assert exponents(4, 1) == [whole, *[finest] * 3]
  for num, expected in ((5, [-2, -1, -0.5, 0, 0.5, 1, 2, 3]), (6, [-2, -1, 0, 1, 2]), (7, [-1, 0, 1, 2]),
                        (8, [-1, 0, 1]), (9, [-1, 0, 1])):
    assert exponents(num) == [expected] * num
  assert exponents(10) == []


def test_columns_and_powers_that_do_not_vary_or_are_undefined_are_left_out(rows):
  signs = np.where(np.arange(40) % 2, 1.0, -1.0)
  x = np.column_stack([np.linspace(0, 1, 40), signs, np.full(40, 2.0)])
  assert grid_of(Rows(x, rows.y, rows.weights), ((1, 2, -1, 0.5),)).exponents == [[0, 1, 2, 0.5], [0, 1, -1]]
  only = grid_of(rows, ((1, 2),), columns=(2,))
  assert only.exponents == [[0, 1, 2]] and only.node(2) == parse("w**2")
  for x in (np.zeros((40, 2)), np.full((40, 2), 1e-59)):
    assert grid_of(Rows(x, rows.y, rows.weights), columns=(0, 1)).exponents == []


def test_columns_that_pass_zero_have_whole_positive_powers(rng):
  x = rng.uniform(-2, 3, (200, 3))
  found = grid_of(Rows(x, x[:, 0], np.ones(200))).exponents
  assert all(float(e).is_integer() for exponents in found for e in exponents)
  zero = grid_of(Rows(np.array([[0.0], [1], [2]]), np.arange(3.0), np.ones(3)), columns=(0,))
  assert zero.exponents == [[0, 1, 2, 0.5, 3, 4, 1.5]]


def test_products_are_those_of_their_formulas_relative_to_the_largest(rows):
  grid = grid_of(rows, ((1, -2, 0.5),), columns=(0, 2))
  products = grid.products()
  assert products.shape == (16, 40) and products.dtype == np.float32
  for index in range(16):
    expected = expression.evaluate(grid.node(index), rows.x) * np.ones(40)
    np.testing.assert_allclose(products[index], expected / np.abs(expected).max(), rtol=1e-5)
  powers = [tuple(part.value for part in expression.walk(grid.node(i)) if part.token == "variable") for i in range(5)]
  assert powers == [(), (2,), (2,), (2,), (0,)] and grid.node(0) == expression.number(1)


@pytest.mark.parametrize("sizes", [[1e12, 1e12, 1e-12], [1e-35, 1e35, 1e30]])
def test_columns_of_any_size_make_products(sizes, rows):
  """Powers are of mean square 1 before they are multiplied: single precision would not hold them."""
  grid = grid_of(Rows(rows.x * sizes, rows.y, rows.weights), ((4, -4),))
  np.testing.assert_allclose(grid.products(), grid_of(rows, ((4, -4),)).products(), rtol=1e-5)


def test_products_that_are_small_in_every_row_have_their_shape(rows):
  """Where one column is large the other is small: single precision does not hold the square of 1e-27."""
  x = rows.x[:, :2] * np.where(np.arange(40)[:, None] % 2 == [0, 1], 1.0, 1e-9)
  grid = grid_of(Rows(x, rows.y, rows.weights), ((3,),), columns=(0, 1))
  expected = (x[:, 0] * x[:, 1]) ** 3
  np.testing.assert_allclose(grid.products()[3], expected / expected.max(), rtol=1e-5)


def test_products_are_computed_at_some_rows_always_the_same(rows):
  grid = grid_of(rows, ((1, 2),), num_rows=7)
  assert grid.products().shape == (27, 7)
  x = rows.sample(7, seed=0).x
  np.testing.assert_allclose(grid.products()[3], x[:, 1] / x[:, 1].max(), rtol=1e-6)
