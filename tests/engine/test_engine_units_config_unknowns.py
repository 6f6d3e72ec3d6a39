"""What the default config makes of unknown functions: products that y rises with, forms, and factors that are alike."""

from types import SimpleNamespace

import numpy as np
import pytest
from small_data import parse, task_of

from symformer_jax.engine.config import DEFAULT, LIBRARY_FAMILIES
from symformer_jax.engine.config.unknown_functions import FormsConfig, MonotoneConfig, SingleIndexConfig, VaryingConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.sources.unknowns import (
  block_exchange,
  monotone_products,
  product_grid,
  single_index,
  unknown_functions,
  varying,
)

INDEX, VARYING = DEFAULT.single_index, DEFAULT.varying
MONOTONE, FORMS = INDEX.monotone, VARYING.forms


def test_the_parts_of_the_default_are_those_of_no_arguments():
  assert (SingleIndexConfig(), VaryingConfig()) == (INDEX, VARYING)
  assert (MonotoneConfig(), FormsConfig()) == (MONOTONE, FORMS)


# --- products that y rises with --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("exponents", "found"), [
  ((1, 1), [(1, 1)]), ((2, 1), [(2, 1), (1, 0.5)]), ((3, 2), [(3, 2), (1.5, 1)]), ((3, 1), [(3, 1), (1.5, 0.5)]),
  ((4, 1), [(4, 1), (2, 0.5)]), ((4, 3), [(4, 3), (2, 1.5)]), ((5, 2), [(1, 0.4)])])
def test_exponents_are_whole_numbers_up_to_four_and_halves(exponents, found):
  direction = np.array(exponents) / max(exponents)
  assert monotone_products._simplest(direction, np.zeros(2, bool), MONOTONE) == found


@pytest.mark.parametrize(("off", "is_near"), [(0.0099, True), (0.0101, False)])
def test_exponents_are_near_to_a_hundredth(off, is_near):
  found = monotone_products._simplest(np.array([1.0, 0.5 + off]), np.zeros(2, bool), MONOTONE)
  assert ((2.0, 1.0) in found) is is_near


@pytest.mark.parametrize(("num_rows", "is_asked"), [(8, True), (7, False)])
def test_four_rows_are_asked_for_each_column_of_a_product(num_rows, is_asked, monkeypatch):
  monkeypatch.setattr(monotone_products, "_alternated", lambda logs, y, target, config: (np.ones(2), np.zeros(len(y))))
  found = monotone_products._direction(np.ones((num_rows, 2)), np.arange(float(num_rows)), MONOTONE)
  assert (found is not None) is is_asked


def alternated(monkeypatch, change):
  """How often a function and a sum are found in turn, where each round changes the function by so much."""
  asked = []
  target = np.linspace(-1, 1, 40)
  target /= np.std(target)
  other = np.resize([1.0, -1.0], 40)
  other -= target * (target @ other) / 40  # else the spread changes as well

  def isotonic_regression(values):
    asked.append(1)
    return SimpleNamespace(x=target + change(len(asked)) * other)

  monkeypatch.setattr(monotone_products.optimize, "isotonic_regression", isotonic_regression)
  monotone_products._alternated(target[:, None], target, target, MONOTONE)
  return len(asked)


@pytest.mark.parametrize(("size", "num_rounds"), [(0.9e-8, 1), (1.1e-8, 2)])
def test_a_function_that_changes_by_a_hundred_millionth_is_found(size, num_rounds, monkeypatch):
  assert alternated(monkeypatch, lambda num: size) == num_rounds


def test_a_function_and_a_sum_are_found_in_turn_a_hundred_times_at_most(monkeypatch):
  assert alternated(monkeypatch, lambda num: 0.1 * (-1) ** num) == 100


# --- products of a grid ----------------------------------------------------------------------------------------------


def test_products_of_a_grid_are_computed_at_sixty_four_rows():
  grid = product_grid.Grid(task_of(2).fit_rows, range(2), INDEX.exponents, num_rows=INDEX.num_rows, most=9999)
  assert len(grid._some) == 64


def test_beside_columns_of_few_exponents_one_above_nothing_has_roots():
  """Of five columns three have both signs, and one but two values: all products are 8**3*5*10, no more than 40 000."""
  rng = np.random.default_rng(0)
  x = np.column_stack([rng.uniform(-1, 1, (100, 3)), rng.choice([-1.0, 1.0], 100), rng.uniform(1, 3, 100)])
  rows = Rows(x, x[:, 4], np.ones(100))
  grid = product_grid.Grid(rows, range(5), INDEX.exponents, num_rows=64, most=INDEX.max_products)
  assert list(map(sorted, grid.exponents)) == [
    *[[-3, -2, -1, 0, 1, 2, 3, 4]] * 3, [-3, -1, 0, 1, 3], [-3, -2, -1, -0.5, 0, 0.5, 1, 2, 3, 4]]


# --- forms of functions, and factors ---------------------------------------------------------------------------------


def test_functions_of_one_column_are_looked_for_among_columns_of_every_family():
  assert set(FORMS.library.families) == set(LIBRARY_FAMILIES)


@pytest.mark.parametrize(("num_places", "num_asked"), [(12, 2), (11, 0)])
def test_a_function_with_two_inner_constants_asks_for_twelve_places(num_places, num_asked, monkeypatch):
  asked = []
  for name in ("powers_of_sums", "sums_of_two"):
    monkeypatch.setattr(unknown_functions.two_constants, name, lambda *given: asked.append(1) or [])
  table = SimpleNamespace(places=np.arange(float(num_places)), _own=FORMS, _config=DEFAULT, _rule=None)
  assert not list(unknown_functions.Table._with_inner_constants(table, None)) and len(asked) == num_asked


def test_a_millionth_of_a_sum_is_nothing(monkeypatch):
  monkeypatch.setattr(unknown_functions, "without_idle_parts", lambda node, x, *, share: asked.append(share) or node)
  asked = []
  unknown_functions._leaner(parse("x"), SimpleNamespace(places=np.ones(9)), FORMS)
  assert asked == [1e-6]


def test_sums_of_terms_times_functions_have_five_terms(monkeypatch):
  asked = []
  monkeypatch.setattr(block_exchange, "products_of", lambda *given: None)
  monkeypatch.setattr(block_exchange, "best_sets", lambda products, *, max_size, config: asked.append(max_size) or [])
  x = np.random.default_rng(0).uniform(1, 3, (300, 2))
  known = SimpleNamespace(nodes=(), values=x)
  list(varying._models(Rows(x, x[:, 0], np.ones(300)), known, "y", 0, "plain", VARYING))
  assert asked == [5]


@pytest.mark.parametrize(("share", "is_multiple"), [(0.99e-3, True), (1.01e-3, False)])
def test_factors_are_multiples_that_agree_to_a_thousandth_of_their_squares(share, is_multiple):
  first, second = np.tile([1.0, 1.0], 20), np.tile([1.0, -1.0], 20)
  other = np.sqrt(1 - share) * first + np.sqrt(share) * second
  assert varying._is_multiple(first, 2 * other, VARYING.alike) is is_multiple


@pytest.mark.parametrize(("num_columns", "is_asked"), [(12, True), (13, False)])
def test_products_that_y_rises_with_are_of_twelve_columns(num_columns, is_asked, monkeypatch):
  asked = []
  monkeypatch.setattr(monotone_products, "find_exponents", lambda *given: asked.append(1) or [])
  rows = task_of(num_columns).fit_rows
  single_index.find_indices(rows, range(num_columns), DEFAULT)
  assert bool(asked) is is_asked
