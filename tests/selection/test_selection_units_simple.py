"""Which constants are taken for simple ones, tables of more columns than formulas read, and what guesses become."""

import dataclasses
from types import SimpleNamespace

from hand_made_rows import parse, rows_of
import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import expression
from symformer_jax.selection import listed_guesses, rounding, scoring, select
from symformer_jax.selection.judge import Finalist, Judge

CONFIG = dataclasses.replace(DEFAULT.selection, snap_errors=(2.5, 10.0), snap_odds=1e30, snap_share=0.25)


def nearest(monkeypatch, theta, stands, num_errors, *, stderr=1e-6, config=CONFIG):
  monkeypatch.setattr(rounding, "_stands", lambda node: stands)
  local = SimpleNamespace(node=None, theta=np.array(theta), is_free=np.ones(len(theta), bool), config=config)
  return rounding._nearest_simple(local, stderr**2 * np.eye(len(theta)), num_errors)


def test_beyond_the_first_reach_only_what_makes_a_formula_simpler_is_taken(monkeypatch):
  for off, reach, expected in ((2.4e-6, 10, (0, 3.0)), (3.3e-6, 10, None), (2.4e-6, 2, None), (1.9e-6, 2, (0, 3.0))):
    assert nearest(monkeypatch, [3 + off], [("+", 0)], reach) == expected
  for off, expected in ((9.9e-6, (0, 1.0)), (10.1e-6, None)):
    assert nearest(monkeypatch, [1 + off], [("*", 0)], 10) == expected


def test_what_makes_a_formula_simpler_comes_first_then_the_nearest(monkeypatch):
  stands = [("+", 0), ("*", 0), ("+", 0)]
  assert nearest(monkeypatch, [3 + 1e-6, 1 + 5e-6, 2 + 0.5e-6], stands, 10) == (1, 1.0)
  assert nearest(monkeypatch, [3 + 1e-6, 1 + 11e-6, 2 + 0.5e-6], stands, 10) == (2, 2.0)


def test_what_lies_at_the_end_of_a_reach_is_beyond(monkeypatch):
  config = dataclasses.replace(CONFIG, snap_share=0.5)
  assert nearest(monkeypatch, [2.25], [("+", 0)], 2.0, stderr=0.125, config=config) is None
  assert nearest(monkeypatch, [2.2499], [("+", 0)], 2.0, stderr=0.125, config=config) == (0, 2.0)


@pytest.mark.parametrize(("value", "parent", "place", "is_shorter"), [
  (0.0, "+", 0, True), (0.0, "pow", 0, True), (1.0, "*", 0, True), (-1.0, "*", 1, True), (1.0, "+", 0, False),
  (2.0, "*", 0, False), (3.0, "pow", 1, True), (3.0, "pow", 0, False), (3.0, "+", 1, False), (0.5, "sin", 0, False)])
def test_which_values_make_a_formula_simpler(value, parent, place, is_shorter):
  assert rounding._shortens(value, parent, place) is is_shorter


def test_nothing_is_a_decimal():
  assert rounding._decimal(0.0, CONFIG) == 0.0


def test_formulas_of_a_wide_table_come_back_with_its_columns_and_names():
  x = np.random.default_rng(0).uniform(1, 3, (12, 3))
  node = expression.Node("*", (expression.variable(2), expression.variable(2)))
  config = dataclasses.replace(DEFAULT.selection, max_columns=2)
  found = select.select([node], rows_of(x, x[:, 2] ** 2), ("a", "b", "c"), seed=0, may_fit=False, config=config,
                        guesses=[node])
  assert found.best.node == node == found.own[0].node and found.best.names == ("a", "b", "c")
  assert [line.node for line in found.front] == [node] and found.best in found.front
  assert found.own[0].line == 0 and parse("x") != node


# --- guesses ---------------------------------------------------------------------------------------------------------


NODES = [parse(text) for text in ("x", "sin(x)", "x + z", "cos(x)", "x*z")]
JUDGED = [Finalist(node, scoring.Scores(mse, None, None, 0)) for node, mse in zip(
  NODES, (0.3, 0.2, 0.1, 0.2, 0.25), strict=True)]


@pytest.mark.parametrize(("fault", "place", "lines", "line", "better"), [
  ("", 1, {0: 0, 1: 5}, 5, None), ("pole", 1, {0: 0, 1: 5}, None, None), ("", None, {0: 0, 1: 5}, None, None),
  ("pole", 3, {1: 4}, None, None), ("", 3, {1: 4}, None, 4),  # as long and as accurate
  ("", 3, {0: 4}, None, None), ("", 3, {2: 4}, None, None),  # less accurate, and longer
  ("", 4, {0: 0, 1: 1, 2: 2}, None, 2)])
def test_what_becomes_of_a_guess_by_its_place_and_the_lines_that_are_listed(fault, place, lines, line, better):
  node = parse("2.5*x")
  assert select._tell_own(node, fault, place, lines, JUDGED) == select.Own(node, line, fault, better)


@pytest.mark.parametrize("may_fit", [False, True])
def test_guesses_are_compared_with_lines_on_some_rows_by_the_better_of_both(may_fit, monkeypatch):
  asked = []
  monkeypatch.setattr(listed_guesses, "are_one", lambda nodes, rows, **named: asked.append((nodes, len(rows), named)))
  monkeypatch.setattr(listed_guesses, "with_guesses", lambda guesses, shown, complexities, is_same: (
    is_same(1, 2) or (guesses, shown, complexities)))
  config = dataclasses.replace(DEFAULT.selection, max_rows=7)
  judge = Judge(rows_of(np.arange(9.0), np.arange(9.0) ** 2), 9, config, DEFAULT.choice)
  found = select._with_own([2], {0, 1}, JUDGED, judge, may_fit=may_fit)
  assert found == ([2], {0, 1}, [finalist.complexity for finalist in JUDGED])
  assert asked == [((NODES[1], NODES[2]), 7, {
    "mse": 0.1, "num_rows": 9, "floor": judge.floor, "may_fit": may_fit, "config": config})]


def test_a_guess_in_few_digits_is_one_that_rules_allow_and_rows_define(monkeypatch):
  asked = []
  monkeypatch.setattr(listed_guesses, "in_few_digits", lambda node, rows, plain, is_usable, *, config: asked.append(
    (config, [is_usable(each) for each in (parse("x"), parse("log(x - 4)"), parse("x*z"))])) or node)
  config = dataclasses.replace(DEFAULT.selection, max_rows=7)
  rows = rows_of(np.arange(18.0).reshape(9, 2), np.arange(9.0))
  judge = Judge(rows, 9, config, DEFAULT.choice)
  assert select._in_few_digits(parse("x"), judge, rows, lambda node: node != parse("x*z")) == parse("x")
  assert asked == [(config, [True, False, False])]


def test_a_guess_that_is_undefined_on_a_row_is_none_of_the_lines():
  x = np.linspace(1, 3, 12)
  undefined, other = parse("log(x - 2)"), parse("x + x")
  found = select.select([parse("x*x")], rows_of(x, x**2), ("x",), seed=0, may_fit=False, guesses=[undefined, other])
  assert found.own[0] == select.Own(undefined, None, "", None) and found.own[1].node == other


def test_a_line_tells_the_errors_of_its_whole_numbers(monkeypatch):
  monkeypatch.setattr(rounding, "parameter_errors", lambda *given: rounding.ParameterErrors([0.25], [0.125]))
  monkeypatch.setattr(rounding, "exact_forms", lambda *given: [None])
  monkeypatch.setattr(select, "whole_constants", lambda node, errors: tuple(errors))
  rows = rows_of(np.arange(9.0), np.arange(9.0))
  line = select._equation(Finalist(parse("1.5*x"), scoring.Scores(0.5, 0.9, 0.1, 0)), rows, rows, ["x"])
  assert line.whole == (0.125,) and [constant.stderr for constant in line.constants] == [0.25]


@pytest.mark.parametrize("may_fit", [False, True])
def test_guesses_are_judged_in_few_digits_where_constants_may_be_fitted_and_by_the_rules(may_fit, monkeypatch):
  short = {parse("2.51*x"): parse("2.5*x")}
  monkeypatch.setattr(select, "_in_few_digits", lambda node, *given: short.get(node, node))
  monkeypatch.setattr(select.writing, "rounded", lambda nodes, judge, is_allowed: nodes)
  monkeypatch.setattr(select, "_recommended", lambda judged, *given, **named: 0)
  x = np.linspace(1, 3, 12)
  forbidden, pole = parse("sin(x)"), parse("1/(x - 2.0000001)")
  found = select.select(
    [parse("x*x*x + x")], rows_of(x, x**3 + x), ("x",), seed=0, may_fit=may_fit,
    guesses=[parse("2.51*x"), forbidden, pole], is_allowed=lambda node: node != forbidden)
  assert [own.node for own in found.own] == [parse("2.5*x" if may_fit else "2.51*x"), forbidden, pole]
  assert [own.fault for own in found.own] == ["", select.FORBIDDEN, "leap"]
  assert [own.line is None for own in found.own] == [False, True, True]
