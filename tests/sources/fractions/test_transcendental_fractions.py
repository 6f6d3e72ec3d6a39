"""Fractions of columns and of functions of them: where a function is right two spaces meet."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest
import scipy.linalg

from symformer_jax.engine import refine
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, TranscendentalFractionsConfig, TranscendentsConfig
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Pool
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser
from symformer_jax.language.expression import VARIABLE, variable
from symformer_jax.language.rules import Restrictions, Rule
from symformer_jax.sources.fractions import transcendental_fractions, transcendents, views
from symformer_jax.sources.fractions.transcendental_fractions import (
  BESIDE_AN_ANGLE,
  LOOKS,
  PAIRS,
  SINGLE,
  TranscendentalFractions,
  _Table,
)

CONFIG = DEFAULT.transcendental_fractions
NAMES = ("x", "y", "z", "w", "v")


def task_of(text, box, options=None, *, num_rows=None, noise=0.0):
  rng, num_rows = np.random.default_rng(2), num_rows or 100 * len(box)
  x = np.stack([rng.uniform(*each, num_rows) for each in box], axis=1)
  y = expression.evaluate(parser.parse(text, NAMES), x)
  y = y + noise * np.std(y) * rng.normal(size=num_rows)
  return make_task((x, y), NAMES[: len(box)], options or SearchOptions())


def ask(task, look=SINGLE, config=DEFAULT, part=0):
  source = TranscendentalFractions(config)
  question = Question(task, Pool(task.variance, len(task.fit_rows), DEFAULT.pool), source.init(task, jax.random.key(0)))
  turn = len(LOOKS) * part + LOOKS.index(look)
  return source.propose([question], turn=turn, num=source.turns[turn], clock=Clock())[0].nodes


def least(task, nodes):
  fitted = refine.fit_constants([(task, nodes)], method="lm", max_steps=20)[0]
  return min(mse for _, mse in fitted) / task.variance


@pytest.mark.parametrize(("look", "text", "box"), [
  (SINGLE, "(1 - exp(-(x + y)*z))/(1 + y/x*exp(-(x + y)*z))", [(0.1, 0.9), (0.2, 0.7), (0.5, 4)]),
  (SINGLE, "x*y*(1 + y)**z/((1 + y)**z - 1)", [(1, 5), (0.01, 0.2), (3, 30)]),
  (SINGLE, "3.2/(x - log(1 - y))", [(1, 5), (0.1, 0.9)]),
  (SINGLE, "(z*(x - y)*(1 - exp(x - w)))**2", [(5, 9), (0, 3), (0.1, 0.9), (10, 12)]),
  (SINGLE, "1 + x - (1 + x**y)**(1/y)", [(0.2, 5), (1.3, 5)]),
  (SINGLE, "1 - (1 - y)*exp(-(x/z)**w)", [(0.1, 1), (0.1, 0.5), (0.3, 0.6), (0.8, 4)]),
  (SINGLE, "log(y*(1 - 1/x) + 1/x)/log(x)", [(1.1, 3), (2, 9)]),
  (SINGLE, "x*y + sqrt(x**2 + y**2)/(1 + y)", [(0.5, 3), (0.2, 2)]),
  (SINGLE, "x*(y + z*(z - y)/x)**2", [(0.5, 3), (0.2, 2), (2, 5)]),
  (SINGLE, "exp(-(2*y - 0.3)*(x**(1/y) - 1))", [(0.2, 0.9), (0.5, 3)]),
  (SINGLE, "((-log(1 - x))**(-y) - 1)/y", [(0.1, 0.9), (0.3, 2)]),
  (SINGLE, "x*(1 + log(1 + x)**y)", [(0.4, 3), (0.5, 2)]),
  (SINGLE, "(x**y + z*w)**(1/y)", [(1, 5), (1, 3), (1, 4), (2, 7)]),
  (SINGLE, "arccos((sin(z) - sin(x)*sin(y))/(cos(x)*cos(y)))", [(0.1, 0.7), (-0.4, 0.4), (-0.3, 0.1)]),
  (PAIRS, "(exp(x*y) - 1)/(exp(x*y) + exp(y) - 2)", [(0.1, 3), (0.2, 3)]),
  (PAIRS, "x*y/(z - x)*(exp(-x*w) - exp(-z*w))", [(0.1, 0.4), (5, 30), (0.5, 1.2), (0.1, 8)]),
  (PAIRS, "(1 - ((1 - x)/x)**y)/(1 - ((1 - x)/x)**z)", [(0.55, 0.7), (1, 8), (9, 20)]),
  (PAIRS, "x**y/(x**y + (1 - x)**y)**(1/y)", [(0.05, 0.95), (0.4, 2)]),
  (PAIRS, "x*(1 - x**y)**z/(1 + x**y)", [(0.05, 0.9), (1.1, 3), (1.1, 3)]),
  (PAIRS, "((x + y)**z - x**z)/(z + 1)", [(0.5, 3), (0.4, 2), (0.3, 2)]),
  (PAIRS, "1/sqrt(x**2 + y**2) - 1/sqrt(x**2 + z**2)", [(0.5, 2), (0.2, 2), (2, 5)]),
  (BESIDE_AN_ANGLE, "sin(x)*(1 - exp(-y/z))/(1 - cos(x)*exp(-y/z))", [(0.1, 1.4), (1, 6), (2, 9)])])
def test_laws_are_found(look, text, box):
  task = task_of(text, box)
  assert least(task, ask(task, look)) < 1e-20


def test_of_few_columns_logarithms_are_bases_and_sums_have_an_exponent_in_common():
  def asked(num_columns, allows=lambda token: True):
    x = np.random.default_rng(1).uniform(0.2, 0.8, (50, num_columns))
    some = transcendents.Candidates(x, [variable(i) for i in range(num_columns)], CONFIG.transcendents, allows)
    with np.errstate(all="ignore"):
      bases, pairs = some._bases(), some.pairs()
    return {node.token for node in bases}, [each.nodes for each in pairs]
  tokens, pairs = asked(3)
  assert {"ln", "neg"} <= tokens and any(
    all(node.token == "pow" and node.args[0].token == "+" for node in two) for two in pairs)
  assert "ln" not in asked(4)[0] and "ln" not in asked(3, lambda token: token != "ln")[0]


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize(("text", "noise"), [
  ("x**0.3*log(y + 0.4*z) + 2*sqrt(y + x)", 0.0), ("(1 - exp(-(x + y)*z))/(1 + y/x*exp(-(x + y)*z))", 1e-6)])
def test_what_is_none_gives_nothing(look, text, noise):
  assert ask(task_of(text, [(0.1, 0.9), (0.2, 0.7), (0.5, 4)], noise=noise), look) == ()


def test_of_one_column_too_many_rounded_or_constant_data_nothing_is_asked(monkeypatch, rng):
  def fail(*given):
    raise ArithmeticError

  assert not TranscendentalFractions().supports(task_of("exp(x)", [(0, 1)]))
  assert TranscendentalFractions().supports(task_of("x*y", [(1, 9)] * 2))
  monkeypatch.setattr(transcendental_fractions, "_asked", fail)
  x = rng.uniform(1, 2, (60, 7))
  y = x[:, 0] ** x[:, 1]
  for columns, target in (((0,), y), (range(7), y), ((0, 1), np.round(y, 3)), ((0, 1), np.full(60, np.pi))):
    assert transcendental_fractions.fractions_of(Rows(x, target, np.ones(60)), columns, Rule(7)) == []
  for columns in ((0, 1), range(6)):
    with pytest.raises(ArithmeticError):
      transcendental_fractions.fractions_of(Rows(x, y, np.ones(60)), columns, Rule(7), part=1)


def test_of_many_columns_the_first_part_is_empty(rng):
  x = rng.uniform(0.5, 2, (500, 5))
  y = (1 - np.exp(-x[:, 0] * x[:, 1])) / (x[:, 2] + x[:, 3] * x[:, 4])
  rows = Rows(x, y, np.ones(500))
  for look in (SINGLE, PAIRS):
    assert transcendental_fractions.fractions_of(rows, range(5), Rule(5), look=look) == []
    assert transcendental_fractions.fractions_of(rows, range(5), Rule(5), look=look, part=1)


def test_columns_are_those_that_a_formula_may_be_of(rng):
  x = rng.uniform(0.2, 3, (400, 4))
  y = (1 - np.exp(-x[:, 1] * x[:, 3])) / (x[:, 1] + x[:, 3])
  found = transcendental_fractions.fractions_of(Rows(x, y, np.ones(400)), (1, 3), Rule(4))
  assert found
  np.testing.assert_allclose(expression.evaluate(found[0], x), y, rtol=1e-9)


@pytest.mark.parametrize("without", ["exp", "pow", "sin"])
def test_no_formula_has_an_operator_that_is_forbidden(without):
  texts = {"exp": "(1 - exp(-x*y))/(x + y)", "pow": "(x**y - 1)/(x**y + y)", "sin": "sin(x)/(cos(x) + y)"}
  names = ("+", "-", "*", "/", "pow", "exp", "ln", "sin", "cos", "acos", "asin", "atan", "sqrt")
  options = SearchOptions(restrictions=Restrictions(operators=tuple(name for name in names if name != without)))
  box = [(0.2, 3)] * 2
  assert ask(task_of(texts[without], box))
  task = task_of(texts[without], box, options)
  assert all(map(task.rule, ask(task)))
  others = [texts[name] for name in texts if name != without]
  assert all(ask(task_of(text, box, options)) for text in others)


# --- the functions ---------------------------------------------------------------------------------------------------


def candidates(x, **changes):
  config = dataclasses.replace(CONFIG.transcendents, **changes)
  return transcendents.Candidates(x, [variable(i) for i in range(x.shape[1])], config, lambda token: True)


def test_functions_have_the_values_of_their_formulas_but_for_a_factor(rng):
  x = rng.uniform(0.2, 2, (50, 3))
  for each in [*candidates(x).single(), *candidates(x).pairs()]:
    assert each.values.shape == (50, len(each.nodes))
    for node, values in zip(each.nodes, each.values.T, strict=True):
      expected = expression.evaluate(node, x)
      most = np.argmax(np.abs(values))
      np.testing.assert_allclose(values * expected[most] / values[most], expected, rtol=1e-9, atol=1e-18)
      assert np.median(np.abs(values)) == pytest.approx(1, rel=0.1)


def test_no_function_is_there_twice_nor_with_its_inverse(rng):
  x = rng.uniform(0.2, 2, (50, 3))
  values = np.stack([np.log(each.values[:, 0]) for each in candidates(x).single() if each.nodes[0].token != "ln"])
  values = values - np.mean(values, axis=1, keepdims=True)
  sizes = np.linalg.norm(values, axis=1)
  is_same = (np.abs(values @ values.T) > (1 - 1e-12) * np.outer(sizes, sizes)) & np.isclose(sizes[:, None], sizes)
  assert np.count_nonzero(is_same) == len(values)


def test_exponentials_are_those_that_most_rows_have_less_of_than_one(rng):
  x = np.column_stack([rng.uniform(1, 3, 50), rng.uniform(-3, -1, 50)])
  found = {str(each.nodes[0]): each for each in candidates(x).single() if each.nodes[0].token == "exp"}
  assert found
  for each in found.values():
    assert np.median(expression.evaluate(each.nodes[0], x)) <= 1


def test_short_functions_come_first_and_no_more_than_there_is_room_for(rng):
  x = rng.uniform(0.2, 2, (50, 3))
  every = candidates(x).single()
  sizes = [expression.complexity(each.nodes[0]) for each in every]
  assert sizes == sorted(sizes) and len(every) > 300
  assert [each.nodes for each in candidates(x, max_single=9).single()] == [each.nodes for each in every[:9]]
  assert len(candidates(x, max_pairs=9).pairs()) == 9


def test_what_few_rows_have_all_of_is_left_out(rng):
  x = rng.uniform(1, 2, (50, 2))
  x[:, 0] *= 60

  def has_exponential(**changes):
    return ["exp", "neg", "x0"] in [expression.to_tokens(each.nodes[0]) for each in candidates(x, **changes).single()]

  assert not has_exponential() and has_exponential(most_usual=40.0)  # the ninth tenth is e**28 medians
  x[:, 0] /= 3
  assert has_exponential()
  x[0, 0] = -300.0  # all of it in one row
  assert not has_exponential()
  x[0, 0] = 300.0  # nothing of it in one row
  assert has_exponential()
  assert np.min(candidates(x).single()[0].values) > 0


def test_two_exponentials_have_a_column_in_common_or_are_each_of_one(rng):
  x = rng.uniform(0.2, 2, (50, 4))
  pairs = [each.nodes for each in candidates(x).pairs() if each.nodes[0].token == "exp"]
  columns = [[{node.value for node in expression.walk(each) if node.token == VARIABLE} for each in two]
             for two in pairs]
  assert pairs and all(one & other or len(one) == len(other) == 1 for one, other in columns)
  assert any(one & other for one, other in columns) and any(not one & other for one, other in columns)


# --- the spaces ------------------------------------------------------------------------------------------------------


def table_of(x, y, num_functions=1, *, is_low=False, **changes):
  config = dataclasses.replace(CONFIG, **changes)
  is_many = x.shape[1] >= CONFIG.linear_from
  base = tuple(views.Part(variable(i), is_linear=is_many) for i in range(x.shape[1]))
  return _Table(Rows(x, y, np.ones(len(y))), range(x.shape[1]), base, num_functions, CONFIG.links, Rule(x.shape[1]),
                config, is_low=is_low)


def test_the_sine_is_that_of_the_least_angle_between_the_spaces(rng):
  """Against SciPy's angles between subspaces."""
  x, y = rng.uniform(0.5, 2, (60, 2)), rng.uniform(1, 2, 60)
  table = table_of(x, y, degrees=((2, 1),))
  function = rng.uniform(0.5, 2, (3, 60, 1))
  some = function[:, table._some]
  sines = table._sines(some)
  assert sines.shape == (3, len(table.ways))
  u, y = x[table._some], y[table._some]
  for values, found in zip(some[..., 0], sines, strict=True):
    columns = (u[:, 0], u[:, 1], values)
    above = [np.ones(len(u)), *columns, *(a * b for a, b in itertools.combinations_with_replacement(columns, 2))]
    below = [np.ones(len(u)), *columns]
    root = 1 / np.hypot(1, y / np.median(y)) / np.hypot(1, values) ** 2
    for way, sine in zip(table.ways, found, strict=True):
      angles = scipy.linalg.subspace_angles(root[:, None] * np.stack(above, axis=1),
                                            (root * way.values)[:, None] * np.stack(below, axis=1))
      assert sine == pytest.approx(np.sin(angles.min()), rel=1e-6)


@pytest.mark.parametrize(("num_columns", "num_functions", "num_rows", "expected"), [
  (2, 1, 400, (4, 3)), (3, 1, 400, (4, 3)), (3, 1, 60, (3, 1)), (4, 1, 400, (4, 3)), (5, 1, 500, (4, 3)),
  (6, 1, 600, (3, 2)), (5, 1, 30, (1, 1)), (5, 1, 20, None)])
def test_degrees_are_the_highest_for_which_there_are_rows(num_columns, num_functions, num_rows, expected, rng):
  x, y = rng.uniform(1, 2, (num_rows, num_columns)), rng.uniform(1, 2, num_rows)
  table = table_of(x, y, num_functions)
  low = table_of(x, y, num_functions, is_low=True)
  assert max(int(np.max(np.sum(powers, axis=1))) for powers in (low._above, low._below)) <= 3
  assert table.is_usable == (expected is not None)
  if expected:
    assert tuple(int(np.max(np.sum(powers, axis=1))) for powers in (table._above, table._below)) == expected
    assert table.num_monomials == len(table._above) + len(table._below) <= CONFIG.max_monomials
    assert len(table._some) == int(1.2 * table.num_monomials) + 8 <= num_rows
  assert np.max(table._above[:, num_columns:]) <= (1 if num_functions > 1 else 2)


def test_below_the_line_there_is_less_where_a_function_of_y_is_asked(rng):
  for num_columns, expected in ((2, 2), (3, 2), (4, 1)):
    table = table_of(rng.uniform(1, 2, (100 * num_columns, num_columns)), rng.uniform(1, 2, 100 * num_columns))
    degrees = {(way.link, way.token): np.max(np.sum(table._below_of(way), axis=1)) for way in table.ways}
    assert set(degrees) == {(link, "") for link in CONFIG.links} | {("y", "pow")}
    assert degrees.pop(("y", "")) == np.max(np.sum(table._below, axis=1)) > expected
    assert set(degrees.values()) == {expected}


def test_every_function_of_y_comes_back(rng):
  """Also those that are asked of columns alone: powers, exponentials and roots with a column."""
  x, y = rng.uniform(0.5, 2, (200, 2)), rng.uniform(0.5, 2, 200)
  rows = Rows(x, y, np.ones(200))
  table = table_of(x, y, 0)
  some = [way for way in table.ways if way.by is not None]
  assert [way.token for way in some] == (["pow"] * 2 + ["ln"] * 3 + ["pow2"] * 2) * 2
  for way in some:
    target = way.of(rows).y
    back = expression.evaluate(way.undo(variable(2)), np.column_stack([x, target]))
    np.testing.assert_allclose(back, y, rtol=1e-12)
    np.testing.assert_allclose(way.values / way.values[0], (target / target[table._some[0]])[table._some])
  with np.errstate(all="ignore"):
    assert not {way.token for way in table_of(x, -y, 0).ways} & {"pow", "pow2"}


def test_what_meets_whatever_is_asked_is_no_fraction(rng):
  """A function that is all but nothing in most rows has too few of them to tell anything."""
  x = rng.uniform(1, 2, (200, 2))
  table = table_of(x, rng.uniform(1, 2, 200))
  spike = np.full((200, 1), 1e-30)
  spike[:3] = 1.0
  function = transcendents.Transcendent((variable(0),), spike)
  assert np.all(table._sines(function.values[None, table._some]) < CONFIG.least_sine)
  assert table.near([function] * 2) == []


def test_time_is_shared_by_all_tables_of_a_look_and_the_rest_comes_in_its_next_parts(monkeypatch):
  asked = []
  monkeypatch.setattr(_Table, "near", lambda self, some: asked.append((some, self.work)) or [])
  task = task_of("x*y*z", [(0.1, 1)] * 3)

  def of_parts(look, num_parts, **changes):
    asked.clear()
    config = dataclasses.replace(DEFAULT, transcendental_fractions=dataclasses.replace(CONFIG, **changes))
    for part in range(num_parts):
      ask(task, look, config, part=part)
    return [(each.nodes, work) for some, work in asked for each in some]

  for look in LOOKS:
    low = of_parts(look, 1, max_work=1e12)
    high = low if look == PAIRS else of_parts(look, 2, max_work=1e12)[len(low):]
    most = sum(work for _, work in high) / 1.5
    assert len(high) == len(low) > 100
    first = of_parts(look, 1, max_work=most)
    assert 0 < sum(work for _, work in first) <= most
    parts = of_parts(look, 3, max_work=most)[0 if look == PAIRS else len(first):]
    assert sorted(map(str, parts)) == sorted(map(str, high))
    if look != PAIRS:
      assert max(work for _, work in low) < max(work for _, work in high)
  assert of_parts(SINGLE, 1, max_work=1.0) == []


def test_angles_are_asked_in_every_set_of_them(monkeypatch, rng):
  x = rng.uniform(0.1, 1, (200, 3))
  x[:, 2] *= 1e4
  rows = Rows(x, rng.uniform(1, 2, 200), np.ones(200))
  tables = list(transcendental_fractions._asked(rows, (0, 1, 2), Rule(3), CONFIG, SINGLE))
  sizes = [(len(base), len(functions[0].nodes)) for base, functions, _ in tables]
  assert sizes == [(3, 0), (4, 0), (4, 0), (5, 0), (3, 1)]
  beside = list(transcendental_fractions._asked(rows, (0, 1, 2), Rule(3), CONFIG, BESIDE_AN_ANGLE))
  assert [expression.to_tokens(base[-1].node) for base, _, _ in beside] == [["cos", "x0"], ["cos", "x1"]]
  for column, (_, functions, _) in enumerate(beside):
    taken = {node.value for each in functions for node in expression.walk(each.nodes[0]) if node.token == VARIABLE}
    assert taken == {0, 1, 2} - {column}


@pytest.mark.parametrize("y", [np.r_[np.full(99, 2.0), 2 + 1e-15], np.r_[np.ones(99), 1e59],
                               np.linspace(-1e-59, 1e-59, 100), np.r_[np.zeros(50), np.ones(50)]])
@pytest.mark.parametrize("look", LOOKS)
def test_odd_targets_are_no_error(look, y, rng):
  x = rng.uniform(0, 1, (100, 2))
  x[:, 1] = np.round(x[:, 1])
  nodes = ask(make_task((x, y), ("x", "y"), SearchOptions()), look)
  assert all(np.isfinite(expression.evaluate(node, x)).all() for node in nodes)


@pytest.mark.parametrize("wrong", [
  {"max_columns": 0}, {"max_columns_at_first": 0}, {"max_rows": 0}, {"links": ("cube",)}, {"more_rows": -1},
  {"links_of_angles": ("cube",)}, {"max_monomials": 0}, {"linear_from": 0}, {"chunk": 0}, {"num_looked_at": 0}])
def test_a_config_that_cannot_be_is_refused(wrong):
  with pytest.raises(ValueError, match=next(iter(wrong))):
    TranscendentalFractionsConfig(**wrong)


@pytest.mark.parametrize("wrong", [{"max_single": 0}, {"max_pairs": 0}, {"max_columns_of_products": 0}])
def test_a_config_of_functions_that_cannot_be_is_refused(wrong):
  with pytest.raises(ValueError, match=next(iter(wrong))):
    TranscendentsConfig(**wrong)
