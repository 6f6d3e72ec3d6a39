"""Exact fractions by themselves: tables of monomials, angles between spaces, which are asked in which order."""

import dataclasses
import functools
import itertools
from types import SimpleNamespace

from fraction_parts import CONFIG, SHOWN, parse, with_config
import numpy as np
import pytest
from scipy import linalg

from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.expression import variable
from symformer_jax.sources.fractions import exact_fractions, views
from symformer_jax.sources.fractions.exact_fractions import _Angles, _Budget, _Table
from symformer_jax.sources.links import LINKS


@pytest.fixture
def x(rng):
  return rng.uniform(1, 3, (80, 2))


def anything(node):
  return True


anything.allows_operator = lambda token: True


# --- tables of monomials ---------------------------------------------------------------------------------------------


def test_a_budget_pays_as_long_as_there_is_work_and_an_elimination_left():
  budget = _Budget(10.0, 1)
  assert budget.pays(4.0) and not budget.pays(6.0) and budget.work == 0
  assert not _Budget(10.0, 0).pays(1.0)


@pytest.mark.parametrize(("most", "max_degree", "degree"), [(11, 8, 3), (10, 8, 2), (11, 2, 2), (4, 8, 1), (3, 8, 0)])
def test_a_table_has_the_monomials_up_to_the_highest_degree_there_is_room_for(x, most, max_degree, degree):
  table = _Table(views.plain(2), x, most, with_config(max_degree=max_degree, rows_per_column=1.5))
  assert table.counts == [1, 3, 6, 10][: degree + 1] and table.is_usable == (degree > 0)
  assert sorted(table.monomials) == sorted(
    (i, j) for i, j in itertools.product(range(degree + 1), repeat=2) if i + j <= degree)
  np.testing.assert_allclose(table.sizes, x.max(axis=0))
  np.testing.assert_allclose(table.values, np.column_stack([
    (x[:, 0] / x[:, 0].max()) ** i * (x[:, 1] / x[:, 1].max()) ** j for i, j in table.monomials]))
  assert len(set(table.some.tolist())) == int(1.5 * most) + 1
  assert table.work == len(table.some) * len(table.monomials) ** 2
  if table.is_usable:
    np.testing.assert_allclose(table.above.T @ table.above, np.eye(len(table.monomials)), atol=1e-12)
    shown = table.above @ (table.above.T @ table.values[table.some])
    np.testing.assert_allclose(shown, table.values[table.some], atol=1e-12)


def test_views_of_many_monomials_are_no_table_of_high_degree(x, monkeypatch):
  asked = []
  own = views.monomials
  monkeypatch.setattr(views, "monomials", lambda view, degree: asked.append(degree) or own(view, degree))
  table = _Table(views.plain(2), x, 5, CONFIG)
  assert max(asked) == 1 and len(table.counts) == 2  # known at once
  assert {i: SHOWN(node) for i, node in table.inner.items()} == {0: "x", 1: "y"}


def test_monomials_of_a_view_are_counted_as_they_are(x):
  view = (*views.plain(2), views.Part(parse("cos(x)"), is_linear=True))
  assert [len(_Table(view, x, most, CONFIG).monomials) for most in (4, 5, 9, 10)] == [1, 4, 4, 9]


def test_values_that_are_not_finite_make_no_table(x):
  x[3, 0] = np.nan
  assert not _Table(views.plain(2), x, 11, CONFIG).is_usable


@pytest.mark.parametrize(("num_columns", "most", "most_of_views"), [(1, 5, 6), (2, 8, 7), (3, 8, 7)])
def test_the_columns_themselves_come_first_and_rows_bear_so_many_monomials(
    rng, monkeypatch, num_columns, most, most_of_views):
  made = []
  monkeypatch.setattr(exact_fractions, "_Table", lambda view, x, most, config: made.append((view, most)) or made[-1])
  x = rng.uniform(1, 2, (20, num_columns))
  x[10:] = x[:10]
  config = with_config(max_columns=(5, 99), max_view_columns=(6, 7), rows_per_column=1.25)
  list(exact_fractions._tables(x, np.pi * x[:, 0], config, anything))
  assert made[0] == (views.plain(num_columns), most)
  assert len(made) > 2 and {most for _, most in made[1:]} == {most_of_views}
  alone = [sum(not part.is_alone for part in view) for view, _ in made[1:]]
  assert alone == sorted(alone) and len(set(alone)) > 1
  assert len(list(exact_fractions._tables(x, np.round(x[:, 0], 3), config, anything))) == 1


# --- angles ----------------------------------------------------------------------------------------------------------


def test_sines_are_those_of_the_least_angle_between_two_spaces(x):
  table = _Table(views.plain(2), x, 14, CONFIG)
  z = np.sin(5 * x[:, 0]) + x[:, 1] ** 1.5
  angles = _Angles(table, z)
  for each in angles.degrees:
    above, below = (table.values[table.some, :count] for count in angles.sizes(*each))
    least = np.min(linalg.subspace_angles(above, z[table.some, None] * below))
    assert angles.sine(*each) == pytest.approx(np.sin(least), rel=1e-6)
  exact = (x[:, 0] + 2 * x[:, 1] + 3) / (1 + x[:, 0])
  for error in (1e-5, 1e-8, 1e-10):
    z, above = exact * (1 + error * np.cos(40 * x[:, 1])), table.values[table.some, :3]
    angles, least = _Angles(table, z), np.min(linalg.subspace_angles(above, z[table.some, None] * above))
    assert angles.sine(1, 1) == pytest.approx(np.sin(least), rel=1e-3) and angles.sine(1, 1) < error
  assert _Angles(table, exact).sine(1, 1) < 1e-13


@pytest.mark.parametrize(("near", "is_projected"), [(0.8e-13, True), (1.5e-13, False)])
def test_sines_are_worked_out_by_projection_where_the_cosine_is_1_to_rounding(near, is_projected):
  angles = object.__new__(_Angles)
  angles._counts, angles._cosines = [1, 2], np.array([[np.sqrt(1 - near)]])
  angles._above, angles._below = np.zeros((2, 1)), np.array([[0.0], [7]])
  assert angles._sine(0, 0) == pytest.approx(7.0 if is_projected else near**0.5, rel=1e-2)


def test_degrees_are_those_with_room_few_monomials_first(x):
  angles = _Angles(_Table(views.plain(2), x, 13, with_config(max_degree=3)), x[:, 0])
  sizes = [sum(angles.sizes(*each)) for each in angles.degrees]
  assert sizes == sorted(sizes) and max(sizes) == 13
  counts = [1, 3, 6, 10]
  assert set(angles.degrees) == {
    (i, j) for i in range(4) for j in range(4) if i + j and counts[i] + counts[j] <= 13}
  assert set(angles.largest()) == {(1, 3), (2, 2), (3, 1)}
  assert angles.sizes(2, 1) == (6, 3)


def test_the_share_of_a_sine_is_of_the_smaller_one_with_one_degree_less(x):
  angles = _Angles(_Table(views.plain(2), x, 13, CONFIG), x[:, 0])
  sines = {(1, 1): 0.25, (0, 1): 0.5, (1, 0): 0.75, (0, 0): 1.0, (2, 1): 0.0, (3, 1): 0.5}
  angles.sine = lambda *each: sines[each]
  assert angles.share(1, 1) == 0.5 and angles.share(1, 0) == 0.75 and angles.share(0, 1) == 0.5
  sines[0, 1], sines[1, 0] = 0.75, 0.5
  assert angles.share(1, 1) == 0.5
  sines[2, 0] = 0.0
  assert angles.share(2, 1) == 0.0


class Known:
  """Angles of which all is known: degrees above the line, each with its sine and the share of the one before."""

  sines = ()
  shares = ()

  def __init__(self, table, z, root=None):
    self.degrees = [(i + 1, 1) for i in range(len(self.sines))]

  def largest(self):
    return self.degrees[-1:]

  def sizes(self, above, below):
    return 10 * above, below

  def sine(self, above, below):
    return self.sines[above - 1]

  def share(self, above, below):
    return self.shares[above - 1]


@pytest.mark.parametrize(("sines", "shares", "expected"), [
  ((1.0, 0.2, 0.2), (1.0, 0.1, 1.0), [20, 30]), ((1.0, 0.2, 0.3), (1.0, 0.1, 1.0), []),
  ((1.0, 0.2, 0.2), (1.0, 0.5, 0.1), [30]), ((1.0, 0.2, 0.25), (1.0, 0.1, 1.0), []),
  ((1.0, 0.25, 0.2), (1.0, 0.1, 0.25), []), ((0.2, 0.9, 0.2), (0.1, 1.0, 1.0), [10, 30])])
def test_spaces_meet_where_the_sine_falls_to_rounding_in_one_leap(x, monkeypatch, sines, shares, expected):
  monkeypatch.setattr(exact_fractions, "_Angles", type("Angles", (Known,), {"sines": sines, "shares": shares}))
  table = _Table(views.plain(2), x, 11, with_config(least_sine=0.25, leap=0.25))
  assert list(table.exact_sizes(x[:, 0])) == [(each, 1) for each in expected]


def test_the_largest_leaps_are_followed_where_there_are_errors(x, monkeypatch):
  class Angles(Known):
    shares = {(1, 0): 0.0, (1, 1): 0.2, (2, 1): 0.1, (3, 1): 0.25, (4, 1): 0.05, (5, 1): 0.15}

    def __init__(self, table, z, root=None):
      self.degrees = list(self.shares)

    def share(self, *each):
      return self.shares[each]

  monkeypatch.setattr(exact_fractions, "_Angles", Angles)
  for num, expected in ((3, [40, 20, 50]), (9, [40, 20, 50, 10])):
    table = _Table(views.plain(2), x, 11, with_config(near_leap=0.25, num_near=num))
    assert table.near_sizes(x[:, 0]) == [(each, 1) for each in expected]


# --- the way through tables and links --------------------------------------------------------------------------------


def asked_of(monkeypatch, x, y, *, tables, found=None, rule=anything, columns=None, looks=exact_fractions.LOOKS,
             **changes):
  """Nodes, and which table was asked in which way."""
  asked = []
  def of_link(link, table, y, config, budget):
    asked.append((table.name, next(name for name, each in LINKS.items() if each is link)))
    return (found or {}).get(asked[-1], [])
  monkeypatch.setattr(exact_fractions, "_tables", lambda x, y, config, rule: iter(tables))
  monkeypatch.setattr(exact_fractions, "_of_link", of_link)
  monkeypatch.setattr(exact_fractions, "_of_square", lambda table, *rest: asked.append((table.name, "square")) or [])
  monkeypatch.setattr(exact_fractions, "_near", lambda table, link, *rest: [variable(0)] if link is LINKS["y"] else [])
  own = with_config(**{"links": ("y", "sqrt", "exp"), "max_work": 100.0, **changes})
  nodes = exact_fractions.fractions_of(
    Rows(x, y, np.ones(len(y))), range(x.shape[1]) if columns is None else columns, rule=rule, looks=looks,
    config=dataclasses.replace(DEFAULT, exact_fractions=own))
  return nodes, asked


OF_A_FUNCTION = (views.Part(parse("exp(x)")),)


def table_of(name, *, work=1.0, is_usable=True, view=OF_A_FUNCTION, inner=None):
  return SimpleNamespace(name=name, work=work, is_usable=is_usable, view=view, inner=inner or {
    0: variable(0), 1: variable(1)})


def test_every_table_is_asked_for_every_function_of_the_target(monkeypatch, x):
  ways = ["y", "sqrt", "exp"]
  tables = [table_of("a"), table_of("b", is_usable=False), table_of("c")]
  nodes, asked = asked_of(monkeypatch, x, x[:, 0], tables=tables)
  assert nodes == [] and asked == [(name, way) for name in "ac" for way in ways]
  mixed = np.where(np.arange(80) % 2, 1.0, -1.0) * x[:, 0]
  assert asked_of(monkeypatch, x, mixed, tables=tables[:1])[1] == [("a", "y"), ("a", "square")]
  assert asked_of(monkeypatch, x, x[:, 0] - x[:, 0].min(), tables=tables[:1])[1] == [("a", "y"), ("a", "sqrt")]
  # What is found ends it; what comes near stands for the plain columns alone.
  assert asked_of(monkeypatch, x, x[:, 0], tables=tables, found={("a", "sqrt"): [parse("x + y")]}) == (
    [parse("x + y")], [("a", "y"), ("a", "sqrt")])
  assert asked_of(monkeypatch, x, x[:, 0], tables=[table_of("a", view=views.plain(2))])[0] == [variable(0)]


def test_columns_and_views_are_looked_at_apart(monkeypatch, x):
  tables = [table_of("a", view=views.plain(2)), table_of("b"), table_of("c")]
  found = {("a", "y"): [parse("x + y")]}
  for looks, expected in ((("columns",), "a"), (("views",), "bc"), (("columns", "views"), "abc")):
    nodes, asked = asked_of(monkeypatch, x, x[:, 0], tables=tables, looks=looks)
    assert "".join(dict.fromkeys(name for name, _ in asked)) == expected
    assert nodes == ([] if looks == ("columns",) else [variable(0)])  # what comes near is one of the views
  assert asked_of(monkeypatch, x, x[:, 0], tables=tables, found=found, looks=("columns",))[0] == [parse("x + y")]
  assert asked_of(monkeypatch, x, x[:, 0], tables=tables, found=found, looks=("views",))[0] == [variable(0)]


def test_work_is_paid_for_each_table_and_each_function(monkeypatch, x):
  tables = [table_of("a", work=10.0), table_of("b", work=10.0)]
  for most, num in ((80.5, 6), (80.0, 5), (41.0, 3), (31.0, 2), (10.0, 0)):
    assert len(asked_of(monkeypatch, x, x[:, 0], tables=tables, max_work=most)[1]) == num


def test_formulas_are_in_the_users_columns_finite_within_the_rules_and_told_once(monkeypatch, x):
  wide = np.column_stack([np.full(80, 7.0), x])  # the first does not vary
  found = {("a", "y"): [parse("x*y"), parse("x*y"), parse("log(x - 9)"), parse("sin(x)")]}
  inner = {0: parse("y"), 1: parse("x**2")}
  rule = functools.partial(lambda node: node.token != "sin")
  rule.allows_operator = lambda token: token != "sqrt"
  nodes, asked = asked_of(monkeypatch, wide, x[:, 0], tables=[table_of("a", inner=inner)], found=found, rule=rule)
  assert len(nodes) == 1 and asked == [("a", "y")]
  np.testing.assert_allclose(expression.evaluate(nodes[0], wide), wide[:, 2] * wide[:, 1] ** 2)
  assert asked_of(monkeypatch, wide, x[:, 0], tables=[table_of("a")], rule=rule)[1] == [("a", "y"), ("a", "exp")]
  mixed = x[:, 0] - 2
  assert asked_of(monkeypatch, wide, mixed, tables=[table_of("a")], rule=rule)[1] == [("a", "y")]


def test_tables_of_any_unit_are_looked_at_without_rows_of_no_weight(monkeypatch, x):
  assert asked_of(monkeypatch, 1e-3 * x, 1e-3 * x[:, 0], tables=[table_of("a")])[1]
  seen = []
  monkeypatch.setattr(exact_fractions, "_tables", lambda x, y, config, rule: seen.append((x, y)) or iter(()))
  y, weights = x[:, 0].copy(), np.ones(80)
  y[0], weights[0] = np.nan, 0.0
  assert exact_fractions.fractions_of(Rows(x, y, weights), range(2), rule=anything) == []
  [(columns, target)] = seen
  np.testing.assert_array_equal(columns, x[1:])
  np.testing.assert_array_equal(target, x[1:, 0])


def test_the_source_asks_of_some_rows_by_the_rules_and_the_config(monkeypatch, x):
  asked = []
  monkeypatch.setattr(exact_fractions, "fractions_of", lambda rows, columns, **given: asked.append(
    (rows, columns, given)) or ["found"])
  config = dataclasses.replace(DEFAULT, exact_fractions=with_config(max_rows=30))
  source, rows = exact_fractions.ExactFractions(config), Rows(x, x[:, 0], np.ones(80))
  assert source._nodes(SimpleNamespace(task=SimpleNamespace(rows=rows, columns=(1,), rule="rule")), 0, 1) == ["found"]
  [(some, columns, given)] = asked
  np.testing.assert_array_equal(some.x, rows.sample(30, seed=0).x)
  assert columns == (1,) and given == {"rule": "rule", "config": config, "looks": ("columns",)}
  source._nodes(SimpleNamespace(task=SimpleNamespace(rows=rows, columns=(1,), rule="rule")), 1, 1)
  assert asked[1][2]["looks"] == ("views",) and source.turns == (1, 1)


@pytest.mark.parametrize("spoil", ["columns", "x", "y", "constant"])
def test_tables_that_say_nothing_are_not_looked_at(monkeypatch, x, spoil):
  y, columns = x[:, 0].copy(), None
  if spoil == "columns":
    columns = []
  elif spoil == "x":
    x[0, 1] = np.inf
  elif spoil == "y":
    y[0] = np.nan
  else:
    y[:] = 3.0
  assert asked_of(monkeypatch, x, y, tables=[table_of("a")], columns=columns) == ([], [])
