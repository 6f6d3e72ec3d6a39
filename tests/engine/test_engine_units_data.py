"""Rows that count, what names their columns, and formulas that come back from other units."""


import dataclasses
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from small_data import OPTIONS, parse, task_of

from symformer_jax.engine import refine
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.rescale import Scaling, _is_far
from symformer_jax.engine.rows import Rows, check_dataset, check_weights
from symformer_jax.engine.task import Task, make_task, turn
from symformer_jax.errors import InputError
from symformer_jax.language import expression, programs
from symformer_jax.language.rules import Restrictions
from symformer_jax.language.units import read_units

X = np.arange(12.0).reshape(6, 2)


# --- rows ------------------------------------------------------------------------------------------------------------


def test_rows_of_some_columns_know_how_many_there_were():
  rows = Rows(X, X[:, 0], np.ones(6))
  some = rows.of_columns([1])
  assert rows.of_columns([0, 1]) is rows and rows.num_columns == 2
  np.testing.assert_array_equal(some.x, X[:, 1:])
  assert (some.num_columns, some.num_offered, some.of_columns([0]) is some) == (2, 2, True)


def test_rows_that_are_equal_are_one():
  assert Rows(np.array([[1.0, 2, 9], [1, 2, 9], [1, 3, 9]]), np.ones(3), np.ones(3)).num_distinct == 2


@pytest.mark.parametrize(("weight", "is_usable"), [(1.1e-30, True), (1e-30, False)])
def test_five_rows_are_to_count_beside_the_heaviest(weight, is_usable):
  rows = Rows(X, X[:, 0], 4 * np.array([1, 1, 1, 1, weight, 1e-40]))
  if is_usable:
    check_weights(rows)
  else:
    with pytest.raises(InputError, match="weights: beside 4 of the 6 rows the others count nothing"):
      check_weights(rows)


@pytest.mark.parametrize(("weight", "is_usable"), [(2e-29, True), (1e-31, False)])
def test_the_target_varies_under_its_weights(weight, is_usable):
  """Of a target that is far from 0 too, and of which one row in six, of next to no weight, is another."""
  for level in (0.0, 3e15 + 1):
    dataset = X, level + 8.0 * np.array([0, 0, 0, 0, 0, 1]), np.array([1, 1 / 3, 0.7, 1 / 7, 0.9, weight])
    if is_usable:
      assert len(check_dataset(dataset)) == 6
    else:
      with pytest.raises(InputError, match="weights: the rows that have nearly all the weight"):
        check_dataset(dataset)


def test_columns_are_named_as_a_table_names_them_or_as_somebody_says():
  table = pd.DataFrame({"mass": X[:, 0], "time": 1e300 * (1 + X[:, 1])})
  for dataset, names, name in (((table, X[:, 0]), None, "'time'"), ((table, X[:, 0]), ("a", "b"), "'b'"),
                               ((table.to_numpy(), X[:, 0]), None, "1"),
                               (np.column_stack([table.to_numpy(), X[:, 0]]), ("a", "b"), "'b'")):
    with pytest.raises(InputError, match=f"in column {name}; take a larger unit"):
      check_dataset(dataset, names=names)


def test_no_weights_are_equal_ones():
  for dataset in ((X, X[:, 0], None), (X, X[:, 0]), (X, X[:, 0], np.full(6, 7.0))):
    np.testing.assert_array_equal(check_dataset(dataset).weights, np.ones(6))


# --- units -----------------------------------------------------------------------------------------------------------


def test_a_scaling_leaves_the_target_alone_unless_it_is_told_to():
  assert Scaling((1.0,)).is_identity and not Scaling((1.0,)).is_moved
  assert not Scaling((1.0,), 2.0).is_identity and Scaling((1.0,), 1.0, (), 2.0).is_moved


def test_a_column_without_an_offset_stays_as_it_is_beside_one_with():
  scaling = Scaling((1.0, 1.0), 1.0, (0.0, 2.0))
  assert scaling.column(expression.variable(0)) == expression.variable(0)
  assert float(expression.evaluate(scaling.column(expression.variable(1)), X)[0]) == 1 - 2


@pytest.mark.parametrize(("lowest", "is_far"), [(3.0, False), (3.01, True)])
def test_a_column_is_far_off_that_spans_less_than_seven_tenths_of_its_largest(lowest, is_far):
  x = np.array([[lowest], [10.0]])
  assert bool(_is_far(x, DEFAULT.scaling)[0]) is is_far


def test_products_of_numbers_come_back_as_numbers_and_powers_beyond_all_numbers_as_they_were():
  product = expression.Node("*", (expression.number(2.0), expression.number(3.0)))
  assert Scaling((4.0,), 5.0).restore(product) == expression.number(30.0)
  power = expression.Node("pow", (expression.variable(0), expression.number(2.5)))
  found = Scaling((1e200,)).restore(power)  # (1e-200*x)**2.5
  at = np.array([[4e200]])
  assert found.token == "pow" and float(expression.evaluate(found, at)[0]) == pytest.approx(4**2.5)


def test_operators_that_no_model_knows_are_in_the_vocabulary_of_a_fit_that_needs_them(monkeypatch):
  class Enough(Exception):
    pass

  def base_vocabulary(num_columns, *, has_requested=False):
    asked.append(has_requested)
    raise Enough

  asked, requested = [], next(iter(programs.REQUESTED))
  monkeypatch.setattr(programs, "base_vocabulary", base_vocabulary)
  for node in (parse("1.5*x"), expression.Node(requested, (expression.variable(0),))):
    with pytest.raises(Enough):
      refine.fit_constants([(task_of(1), [node])], method="lm", max_steps=1)
  assert asked == [False, True]


@pytest.mark.parametrize(("columns", "is_chosen"), [((0, 1), False), ((0,), True)])
def test_columns_were_left_out_for_being_too_many_beside_those_that_a_rule_leaves_out(columns, is_chosen):
  task = SimpleNamespace(columns=columns, names="xyz", rule=SimpleNamespace(excluded={2}))
  assert Task.is_chosen.fget(task) is is_chosen


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_columns_below_nothing_and_a_target_below_it_are_turned_each_by_itself(sign):
  x = np.column_stack([-1 - X[:, 0], 1 + X[:, 1]])
  y = sign * (3 + X[:, 0] ** 2)
  turned = turn(make_task((x, y), ("a", "b"), OPTIONS))
  np.testing.assert_array_equal(turned.rows.x, np.column_stack([1 + X[:, 0], 1 + X[:, 1]]))
  np.testing.assert_array_equal(turned.rows.y, np.abs(y))
  assert turned.turned == (0,) and turned.is_opposite is (sign < 0)
  back = turned.as_given()
  np.testing.assert_array_equal(back.rows.x, x)
  np.testing.assert_array_equal(back.rows.y, y)


def test_names_of_columns_are_those_of_messages_too():
  with pytest.raises(InputError, match="in column 'time'; take a larger unit"):
    make_task((np.column_stack([X[:, 0], 1e300 * (1 + X[:, 1])]), X[:, 0]), ("mass", "time"), OPTIONS)


def test_rules_know_the_units_of_columns_and_one_that_is_excluded_needs_none():
  given = dataclasses.replace(
    OPTIONS, units=read_units({"mass": "kg", "y": "kg"}), restrictions=Restrictions(excluded=("time",)))
  task = make_task((X, X[:, 0]), ("mass", "time"), given)
  assert task.rule.dimensions == task.units.dimensions is not None
  assert task.rule(expression.variable(0)) and not task.rule(expression.Node("pow2", (expression.variable(0),)))
