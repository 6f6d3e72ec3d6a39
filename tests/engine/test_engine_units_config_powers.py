"""What the default config makes of product units: columns and rows, starts, how many go on, and plain exponents."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from small_data import task_of

from symformer_jax.engine.config import DEFAULT, product_units as product_units_config
from symformer_jax.engine.rows import Rows
from symformer_jax.errors import InputError
from symformer_jax.sources.links import LINKS
from symformer_jax.sources.powers import product_fits, product_rounding, product_units
from symformer_jax.sources.powers.product_fits import Fits
from symformer_jax.sources.powers.product_rounding import Rounding
from symformer_jax.sources.powers.product_units import SHAPES

UNITS = DEFAULT.product_units


def units_of(x, y=None):
  y = np.random.default_rng(0).uniform(1, 3, len(x)) if y is None else y
  return product_units._Units.of(Rows(x, y, np.ones(len(x))), range(x.shape[1]), [LINKS["y"]], UNITS)


def uniform(num_rows, num_columns):
  return np.random.default_rng(0).uniform(1, 3, (num_rows, num_columns))


def test_the_part_of_the_default_is_that_of_no_arguments():
  assert product_units_config.ProductUnitsConfig() == UNITS


@pytest.mark.parametrize(("fields", "message"), [
  ({"num_survivors": 49}, "num_survivors: expected at most num_starts, got 49"),
  ({"plans": ((("y",), ("both", "alone"), ("power",)),)}, "plans: unknown name 'power'")])
def test_errors(fields, message):
  assert product_units_config.ProductUnitsConfig(num_survivors=48).num_survivors == UNITS.num_starts
  with pytest.raises(InputError, match=message):
    product_units_config.ProductUnitsConfig(**fields)


# --- columns and rows ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_columns", "is_asked"), [(1, False), (2, True), (12, True), (13, False)])
def test_two_to_twelve_columns(num_columns, is_asked):
  task = dataclasses.replace(task_of(num_columns), columns=tuple(range(num_columns)))
  assert product_units.ProductUnits().supports(task) is is_asked


@pytest.mark.parametrize(("shape", "num_rows"), [("two", 12), ("three", 18), ("both", 18), ("beside", 12),
                                                 ("inside", 18), ("alone", 12)])
def test_each_exponent_has_two_rows(shape, num_rows):
  for num, has_rows in ((num_rows, True), (num_rows - 1, False)):
    assert units_of(uniform(num, 3))._has_rows(SHAPES[shape]) is has_rows


@pytest.mark.parametrize(("num_zeros", "columns", "num_rows"), [(10, (0, 1), 90), (11, (0,), 100)])
def test_a_column_with_a_tenth_of_zeros_is_used_without_these_rows(num_zeros, columns, num_rows):
  x = uniform(100, 2)
  x[:num_zeros, 1] = 0
  units = units_of(x)
  assert units.columns == columns and len(units.rows) == num_rows


def test_of_many_rows_those_with_y_farthest_out_are_fitted_and_three_times_as_many_others():
  y = np.random.default_rng(0).permutation(np.linspace(-1, 1, 500) ** 3)
  chosen = product_units._chosen(y, UNITS)
  assert len(chosen) == len(set(chosen)) == 128
  order = np.argsort(-np.abs(y))
  assert set(order[:32]) <= set(chosen) and len(set(order[:128]) & set(chosen)) < 70
  assert len(product_units._chosen(y[:128], UNITS)) == 128


# --- starts ----------------------------------------------------------------------------------------------------------


def test_relative_errors_are_counted_from_three_tenths_of_the_way():
  y = np.linspace(-1, 1, 101)  # sizes go up evenly
  units = units_of(uniform(101, 2), y)
  roots = units.table.roots[1]
  (at_zero, at_end), beside = roots[[50, 100]], 0.3
  assert at_zero / at_end == pytest.approx((1 + beside) / beside, rel=0.01)


def test_forty_eight_starts_of_each_way_have_three_fifths_of_the_exponents():
  starts = units_of(uniform(200, 12))._starts(np.random.default_rng(0), 0, SHAPES["three"], "exp")
  assert np.bincount(starts.target).tolist() == [48, 48]
  drawn = starts.parameters[starts.parameters != 0]
  assert drawn.size / starts.parameters.size == pytest.approx(0.6, abs=0.03)
  assert np.std(drawn) == pytest.approx(1.2, abs=0.06)


@pytest.mark.parametrize(("left", "goes_on"), [(0.49, True), (0.51, False)])
def test_fewer_and_fewer_starts_are_fitted_and_what_leaves_half_is_dropped(left, goes_on, monkeypatch):
  class Enough(Exception):
    pass

  asked = []

  def rounding(table, starts, fits, layout, deviations, is_whole, multiples, config):
    # Halves where they do, or thirds.
    some = SimpleNamespace(
      fits=SimpleNamespace(parameters=np.array([[0.4, 1.7, 9.0]])), _places=np.arange(3), _deviations=1.0, _parity=0.0,
      _is_whole=False, _config=config)
    np.testing.assert_allclose(np.squeeze([Rounding._plain(some, each) for each in multiples]), [
      [0.5, 1.5, 6], [1 / 3, 5 / 3, 6]])
    raise Enough

  def fit(table, starts, layout, *, num_steps):
    asked.append((len(starts.parameters), num_steps))
    return Fits(starts.parameters, np.full(len(starts.parameters), left), np.zeros(len(starts.parameters)))

  monkeypatch.setattr(product_fits, "fit", fit)
  monkeypatch.setattr(product_units, "Rounding", rounding)
  units = units_of(uniform(100, 2))
  if goes_on:
    with pytest.raises(Enough):
      units.formulas([SHAPES["two"]], ("exp",))
  else:
    assert units.formulas([SHAPES["two"]], ("exp",)) == []
  assert asked == [(96, 10), (24, 30), (2, 20)]


@pytest.mark.parametrize(("left", "num"), [
  ([1.0] + [2.1] * 99, 12), ([1.0] + [1.9] * 19 + [2.1] * 80, 20), ([1.0] * 100, 48)])
def test_twelve_go_on_and_up_to_forty_eight_that_leave_less_than_twice_the_least(left, num):
  some = SimpleNamespace(config=UNITS)
  assert product_units._Units._going_on(some, range(100), np.array(left)) == list(range(num))


# --- plain exponents -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("left", "cost", "is_tried"), [
  (1e-3, 2.3e-4, True), (1e-3, 2.5e-4, False), (0.0, 3.9e-11, True), (0.0, 4.1e-11, False)])
def test_an_exponent_is_tried_that_costs_four_times_what_it_may(left, cost, is_tried):
  """It may cost six shares of a degree of freedom, here of a hundred, or what single precision does not tell."""
  some = SimpleNamespace(_costs=lambda goal: np.array([[cost, 1.0]]), _config=UNITS, _places=np.arange(2),
                         fits=SimpleNamespace(left=np.array([left])), _freedom=np.array([100]))
  assert Rounding._surest(some, None, np.ones((1, 2), bool)).tolist() == [[is_tried, False]]


@pytest.mark.parametrize(("before", "after", "is_kept"), [
  (1e-3, 1.059e-3, True), (1e-3, 1.061e-3, False), (0.0, 0.9e-11, True), (0.0, 1.1e-11, False)])
def test_an_exponent_becomes_plain_where_little_is_lost_in_ten_steps(before, after, is_kept, monkeypatch):
  asked = []
  monkeypatch.setattr(product_rounding.product_fits, "fit", lambda table, starts, layout, *, num_steps: asked.append(
    num_steps) or Fits(starts.parameters, np.array([after]), np.ones((1, 2, 2))))
  starts = product_fits.Starts(np.zeros((1, 2)), np.ones((1, 2), bool), *[np.zeros((1, 1))] * 5)
  rounding = SimpleNamespace(
    _config=UNITS, fits=Fits(np.array([[0.51, 1.0]]), np.array([before]), np.ones((1, 2, 2))), _starts=starts,
    _places=np.arange(2), _deviations=1.0, _table=None, _layout=None, _freedom=np.array([100]))
  assert Rounding._fix(rounding, np.array([[True, False]]), np.array([[0.5, 1.0]])).tolist() == [is_kept]
  assert asked == [10] and rounding.fits.parameters[0, 0] == (0.5 if is_kept else 0.51)
