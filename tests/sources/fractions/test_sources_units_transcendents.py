"""Parts of fractions with functions of columns one by one: which functions, on which rows, by which rules."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from symformer_jax.engine import interruption
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.dimensions import PURE, Dimensions, Powers
from symformer_jax.language.expression import VARIABLE, variable
from symformer_jax.language.rules import Rule
from symformer_jax.sources.fractions import exact_fractions, transcendental_fractions, transcendents, views
from symformer_jax.sources.fractions.transcendental_fractions import SINGLE, _Table

OWN = DEFAULT.transcendental_fractions


def candidates(x, allows=lambda token: True, **changes):
  config = dataclasses.replace(OWN.transcendents, **changes)
  return transcendents.Candidates(x, [variable(i) for i in range(x.shape[1])], config, allows)


def exponentials(x, **changes):
  found = candidates(x, **changes).single()
  return {tuple(expression.to_tokens(each.nodes[0])) for each in found if each.nodes[0].token == "exp"}


def columns_of(node):
  return {each.value for each in expression.walk(node) if each.token == VARIABLE}


# --- the functions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("without", ["exp", "pow", "ln", "sqrt", "pow2"])
def test_no_function_holds_an_operator_that_is_forbidden(without, rng):
  """Neither outside nor within another: a power in an exponent, a norm, a square below a root."""
  def tokens(allows):
    made = candidates(x, allows)
    return {part.token for each in (*made.single(), *made.pairs()) for node in each.nodes
            for part in expression.walk(node)}

  x = rng.uniform(0.2, 0.9, (50, 3))
  assert tokens(lambda token: token != without) == tokens(lambda token: True) - {without}


def test_limits_of_growth_are_not_reached():
  """An exponential whose largest value is e**3 medians."""
  x = -np.linspace(4, 6, 41)[:, None]
  x[0] = -2.0
  name = ("exp", "x0")
  assert name in exponentials(x, most_growth=3.01) and name not in exponentials(x, most_growth=3.0)
  assert name in exponentials(x, most_usual=0.96) and name not in exponentials(x, most_usual=0.8)  # at the 95th of 100


def test_any_two_exponentials_are_asked_of_few_columns(rng):
  def has_strangers(num_columns, most):
    every = candidates(x[:, :num_columns], max_columns_of_products=most).pairs()
    pairs = [map(columns_of, each.nodes) for each in every if each.nodes[0].token == each.nodes[1].token == "exp"]
    assert pairs
    return any(not one & other and len(one) != len(other) for one, other in pairs)

  x = rng.uniform(0.2, 2, (50, 4))
  assert has_strangers(3, 3) and not has_strangers(3, 2) and not has_strangers(4, 3)


def test_logarithms_of_a_column_that_is_mostly_1_are_numbers(rng):
  x = np.column_stack([np.where(np.arange(50) < 30, 1.0, 3.0), rng.uniform(1, 2, 50)])
  found = [each for each in candidates(x).single() if each.nodes[0].token == "ln"]
  assert all(np.all(np.isfinite(each.values)) for each in found)
  [own] = [each.values[:, 0] for each in found if each.nodes[0].args[0] == variable(0)]
  np.testing.assert_allclose(own, np.arange(50) >= 30)


# --- the spaces ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_columns", "num_functions", "is_linear"), [(2, 1, False), (4, 1, False), (2, 2, True)])
def test_of_two_functions_there_are_no_squares_whatever_the_columns_have(num_columns, num_functions, is_linear, rng):
  x = rng.uniform(1, 2, (400, num_columns))
  base = tuple(views.Part(variable(i), is_linear=num_columns >= 4) for i in range(num_columns))
  rows, columns = Rows(x, x[:, 0], np.ones(400)), range(num_columns)
  table = _Table(rows, columns, base, num_functions, ("y",), Rule(num_columns), OWN)
  functions = transcendents.Transcendent((variable(0),) * num_functions, x[:, :num_functions])
  assert [part.is_linear for part in table.parts(functions)] == [is_linear] * num_functions
  assert np.max(table._above[:, num_columns:]) == (1 if is_linear else 2)


@pytest.mark.parametrize(("num", "typical", "is_met"), [
  (20, 1e-3, True), (20, 1e-9, False), (15, 1e-9, True), (16, 1e-9, False), (20, 1.0, True)])
def test_spaces_meet_where_the_sine_is_far_below_what_many_functions_leave(monkeypatch, num, typical, is_met, rng):
  """Where most come near one that comes nearer is none yet; of few functions nothing is typical."""
  def sines(self, functions):
    found = np.full((len(functions), len(table.ways)), typical)
    found[functions[:, 0, 0] == 3, 1] = 5e-14
    return found

  x = rng.uniform(1, 2, (200, 2))
  table = _Table(Rows(x, rng.uniform(1, 2, 200), np.ones(200)), range(2), views.plain(2), 1, OWN.links, Rule(2), OWN)
  monkeypatch.setattr(_Table, "_sines", sines)
  some = [transcendents.Transcendent((variable(0),), np.full((200, 1), float(i))) for i in range(num)]
  near = table.near(some)
  assert [(way is table.ways[1], each is some[3]) for way, each in near] == [(True, True)] * is_met


# --- rows and rules --------------------------------------------------------------------------------------------------


def test_rows_that_differ_in_other_columns_alone_are_one(rng):
  """Sixty points, ten times each: for so many constants there are rows, not for ten times as many."""
  x = np.repeat(rng.uniform(0.2, 3, (60, 2)), 10, axis=0)
  y = (1 - np.exp(-x[:, 0] * x[:, 1])) / (x[:, 0] + x[:, 1])
  x = np.column_stack([x, rng.uniform(size=600)])
  found = transcendental_fractions.fractions_of(Rows(x, y, np.ones(600)), (0, 1), Rule(3))
  assert found
  np.testing.assert_allclose(expression.evaluate(found[0], x), y, rtol=1e-9)


def test_a_view_has_as_many_monomials_as_there_are_rows_for_in_its_own_columns(monkeypatch, rng):
  asked = []
  monkeypatch.setattr(exact_fractions, "_first", lambda rows, y, tables, inner, **given: asked.extend(tables) or [])
  x = np.column_stack([np.repeat(rng.uniform(1, 2, 12), 10), rng.uniform(size=120)])
  for view in (views.plain(1), views.plain(2)):
    exact_fractions.fractions_in(view, Rows(x, x[:, 0], np.ones(120)), num_monomials=99, rule=Rule(2))
  per_column = DEFAULT.exact_fractions.rows_per_column
  assert [table.most for table in asked] == [int(12 / per_column), min(99, int(120 / per_column))]


def law(rng):
  x = rng.uniform(0.5, 2, (300, 2))
  return Rows(x, (1 + 2 * x[:, 1]) ** (1 / x[:, 0]), np.ones(300))


def test_columns_that_are_asked_for_may_stand_in_the_exponent_alone(rng):
  rows = law(rng)
  for required in ((0,), (1,), (0, 1)):
    rule = Rule(2, required=frozenset(required))
    found = transcendental_fractions.fractions_of(rows, (0, 1), rule)
    assert found and all(map(rule, found))
    np.testing.assert_allclose(expression.evaluate(found[0], rows.x), rows.y, rtol=1e-9)


def test_formulas_have_the_dimension_of_y_and_not_that_of_its_function(rng):
  """y*x is the logarithm of a fraction: y is the inverse of a length where x is one."""
  x = rng.uniform(0.5, 2, (300, 2))
  y = np.log((1 + 2 * x[:, 1]) / (3 + x[:, 1])) / x[:, 0]
  length = Powers.of({"length": Fraction(1)})
  rule = Rule(2, dimensions=Dimensions((length, PURE), PURE / length, are_constants_free=False))
  found = transcendental_fractions.fractions_of(Rows(x, y, np.ones(300)), (0, 1), rule)
  assert found and all(map(rule, found))
  np.testing.assert_allclose(expression.evaluate(found[0], x), y, rtol=1e-8)


def test_exponents_are_as_small_as_a_rule_wants_them(rng):
  assert transcendental_fractions.fractions_of(law(rng), (0, 1), Rule(2))
  assert transcendental_fractions.fractions_of(law(rng), (0, 1), Rule(2, max_exponent=3.0)) == []


# --- time ------------------------------------------------------------------------------------------------------------


def test_whether_to_end_is_asked_for_each_function_of_y(rng):
  """Of six columns a decomposition for each of 32 functions takes a tenth of a second."""
  asked: list[None] = []
  x = rng.uniform(1, 2, (200, 3))
  base = views.plain(3)
  table = _Table(Rows(x, rng.uniform(1, 2, 200), np.ones(200)), range(3), base, 1, OWN.links, Rule(3), OWN)
  with interruption.ending_when(lambda: bool(asked.append(None))):
    table.near([transcendents.Transcendent((variable(0),), rng.uniform(1, 2, (200, 1)))])
  assert len(asked) >= len(table.ways) > 4


def test_a_part_for_which_nothing_is_left_ends_between_its_tables(rng):
  """Every set of angles has one."""
  asked: list[None] = []
  x = rng.uniform(0.1, 1, (200, 4))
  rows = Rows(x, rng.uniform(1, 2, 200), np.ones(200))
  with interruption.ending_when(lambda: bool(asked.append(None))):
    assert transcendental_fractions.fractions_of(rows, range(4), Rule(4), look=SINGLE, part=10**6) == []
  assert len(asked) >= 2**4
