"""What the default config makes of fractions of columns and functions of them, number by number."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT, TranscendentalFractionsConfig, TranscendentsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language.expression import Node, variable
from symformer_jax.language.rules import Rule
from symformer_jax.sources.fractions import transcendental_fractions, transcendents, views
from symformer_jax.sources.fractions.transcendental_fractions import SINGLE, TranscendentalFractions, _Table
from symformer_jax.sources.fractions.transcendents import Candidates, Transcendent

CONFIG, FUNCTIONS = DEFAULT.transcendental_fractions, DEFAULT.transcendental_fractions.transcendents


def rows_of(num_rows, num_columns):
  rng = np.random.default_rng(0)
  return Rows(rng.uniform(1, 2, (num_rows, num_columns)), rng.uniform(1, 2, num_rows), np.ones(num_rows))


def table_with(**attributes):
  """A table that nothing has been computed for."""
  table = object.__new__(_Table)
  vars(table).update({"_config": CONFIG, "_linear": (False, False), "_num_columns": 1, "_most_of_function": 2})
  vars(table).update(attributes)
  return table


def test_the_parts_of_the_default_are_those_of_no_arguments():
  assert TranscendentalFractionsConfig() == CONFIG and TranscendentsConfig() == FUNCTIONS


# --- what is asked ---------------------------------------------------------------------------------------------------


def test_there_are_nine_turns_of_eight_formulas():
  assert TranscendentalFractions().turns == (8,) * 9


@pytest.mark.parametrize(("num_columns", "part", "is_asked"), [
  (4, 0, True), (5, 0, False), (5, 1, True), (6, 1, True), (7, 1, False)])
def test_there_are_six_columns_at_most_and_of_five_and_more_the_first_part_is_empty(
    num_columns, part, is_asked, monkeypatch):
  asked = []
  monkeypatch.setattr(transcendental_fractions, "_asked", lambda rows, *given: asked.append(len(rows)) or [])
  transcendental_fractions.fractions_of(
    rows_of(300, num_columns), range(num_columns), Rule(num_columns), look=SINGLE, part=part)
  assert asked == [200] * is_asked


@pytest.mark.parametrize(("num_columns", "is_linear"), [(3, False), (4, True)])
def test_of_four_columns_and_more_there_are_no_squares(num_columns, is_linear):
  rows, columns = rows_of(20, num_columns), range(num_columns)
  view, *_ = next(transcendental_fractions._asked(rows, columns, Rule(num_columns), CONFIG, SINGLE))
  assert [part.is_linear for part in view] == [is_linear] * num_columns


def test_functions_are_looked_at_as_far_as_the_work_allows(monkeypatch):
  asked = []
  monkeypatch.setattr(transcendental_fractions, "_asked", lambda *given: [
    ((), [Transcendent((variable(0),), np.ones((9, 1)))] * 40, ("y",))])
  monkeypatch.setattr(transcendental_fractions, "_Table", lambda *given, **options: SimpleNamespace(
    is_usable=True, work=2.5e8 / 7.5, near=lambda functions: asked.append(len(functions)) or []))
  transcendental_fractions.fractions_of(rows_of(20, 2), range(2), Rule(2))
  assert asked == [7]


# --- monomials -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_columns", "is_low", "degrees"), [
  (2, False, [(1, 1), (2, 1), (3, 1), (3, 2), (4, 2), (4, 3)]), (2, True, [(1, 1), (2, 1), (3, 1), (3, 2)])])
def test_one_degree_comes_after_the_other_as_rows_become_more(num_columns, is_low, degrees):
  base, found = tuple(views.Part(variable(i)) for i in range(num_columns)), []
  for num_rows in range(10, 82):
    table = _Table(
      rows_of(num_rows, num_columns), range(num_columns), base, 1, ("y",), Rule(num_columns), CONFIG, is_low=is_low)
    if table.is_usable:
      assert len(table._some) == int(1.2 * table.num_monomials) + 8 <= num_rows
      found.append(tuple(int(np.max(np.sum(powers, axis=1))) for powers in (table._above, table._below)))
  assert list(dict.fromkeys(found)) == degrees


@pytest.mark.parametrize(("num_above", "is_usable"), [(100, True), (101, False)])
def test_there_are_130_monomials_at_most(num_above, is_usable, monkeypatch):
  monkeypatch.setattr(
    transcendental_fractions, "_powers", lambda *given: np.zeros((num_above if given[-1] == 2 else 30, 2)))
  assert table_with()._choose_degrees([(2, 1)], 10**6) is is_usable


@pytest.mark.parametrize(("num_columns", "degree"), [(2, 2), (3, 2), (4, 1), (5, 1)])
def test_beside_functions_of_y_below_the_line_degrees_are_two_or_one(num_columns, degree):
  base = tuple(views.Part(variable(i), is_linear=True) for i in range(num_columns))
  table = _Table(rows_of(9, num_columns), range(num_columns), base, 1, ("y",), Rule(num_columns), CONFIG)
  assert table._degree_of_links == degree


@pytest.mark.parametrize(("growth", "is_asked"), [(39.9, True), (40.1, False)])
def test_what_y_to_the_power_of_a_column_may_run_over(growth, is_asked):
  x = np.linspace(1, 2, 20)
  rows = Rows(x[:, None], np.exp(growth * np.linspace(-0.5, 0.5, 20) / x), np.ones(20))
  assert bool(list(table_with()._ways(rows, (0,), (), Rule(1)))) is is_asked


# --- which are near --------------------------------------------------------------------------------------------------


def near(monkeypatch, sines, num_ways=2):
  """Places of the functions that are near, and how many were looked at together; the second way meets nothing."""
  sizes, left = [], iter(sines)

  def sines_of(table, functions):
    sizes.append(len(functions))
    return np.array([[next(left), *[1.0] * (num_ways - 1)] for _ in functions])

  monkeypatch.setattr(_Table, "_sines", sines_of)
  functions = [Transcendent((variable(i),), np.ones((3, 1))) for i in range(len(sines))]
  found = table_with(_some=np.arange(3), ways=[*range(num_ways)]).near(functions)
  return [int(each.nodes[0].value) for _, each in found], sizes


def test_thirty_two_functions_are_looked_at_together(monkeypatch):
  assert near(monkeypatch, [1.0] * 70)[1] == [32, 32, 6]


@pytest.mark.parametrize(("sines", "expected"), [
  ([1.0, 1.1e-13, 0.9e-13], [2]), ([4.9e-14, 5.1e-14] + 30 * [5e-8], [0]), ([0.0] * 8 + [1.0], [0, 1, 2, 3, 4, 5])])
def test_six_at_most_are_near_whose_sine_is_rounding_and_a_millionth_of_what_is_typical(sines, expected, monkeypatch):
  assert near(monkeypatch, sines)[0] == expected


# --- functions -------------------------------------------------------------------------------------------------------


def candidates(num_columns):
  x = np.random.default_rng(0).uniform(1, 2, (101, num_columns))
  return Candidates(x, [variable(i) for i in range(num_columns)], FUNCTIONS, lambda name: True)


def test_there_are_two_thousand_functions_and_as_many_pairs(monkeypatch):
  monkeypatch.setattr(Candidates, "_distinct", lambda *given: [0] * 3000)
  monkeypatch.setattr(transcendents, "_pairs", lambda some: some)
  monkeypatch.setattr(transcendents, "_size", lambda some: 0)
  monkeypatch.setattr(transcendents, "_are_alike", lambda some: True)
  assert len(candidates(0).single()) == len(candidates(0).pairs()) == 2000


@pytest.mark.parametrize(("num_columns", "num_exponents"), [(3, 6 + 3 + 6), (4, 8)])
def test_of_three_columns_at_most_exponents_are_products_and_quotients(num_columns, num_exponents):
  assert len(candidates(num_columns)._exponents()) == num_exponents


@pytest.mark.parametrize(("logarithm", "num_rows", "is_made"), [
  (19.9, 6, True), (20.1, 6, False), (20.1, 5, True), (49.9, 1, True), (50.1, 1, False)])
def test_how_much_larger_than_usual_a_function_may_be_in_a_twentieth_of_the_rows_and_in_all(
    logarithm, num_rows, is_made):
  at = np.where(np.arange(101) > 100 - num_rows, logarithm, 0.0)
  found = list(candidates(1)._of_logarithm(Node("exp", (variable(0),)), at))
  assert bool(found) is is_made
  for function in found:
    assert math.log(np.max(function.values)) == pytest.approx(logarithm)


def test_what_is_nothing_in_a_row_has_no_logarithm_below_minus_fifty():
  [function] = candidates(1)._of_logarithm(Node("exp", (variable(0),)), np.where(np.arange(101) > 0, 0.0, -99.0))
  assert np.log(function.values[0, 0]) == pytest.approx(-50)
