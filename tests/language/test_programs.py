"""Trees as padded programs: what is fitted, what is a token of its own, what padding holds."""

import numpy as np
import pytest

from symformer_jax.language import parser, programs
from symformer_jax.language.expression import Node, number, variable

VOCABULARY = programs.base_vocabulary(2)


def parse(text):
  return parser.parse(text, ["x", "y"])


def test_tokens_and_values_stand_side_by_side_and_the_rest_is_the_program_0():
  trees = [parse("2.5*y + 3"), parse("sin(-7.0*x)")]
  ids, values = programs.encode_programs(trees, VOCABULARY, num_programs=3, length=6)
  assert ids.shape == values.shape == (3, 6) and ids.dtype == np.int32 and values.dtype == np.float64
  tokens = [[VOCABULARY.tokens[i] for i in row] for row in ids]
  fitted, zero, pad = VOCABULARY.tokens[VOCABULARY.first_constant_id], "0", VOCABULARY.tokens[0]
  assert tokens[0] == ["+", "*", fitted, "x1", "3", pad]
  assert tokens[1] == ["sin", "*", fitted, "x0", pad, pad]
  assert tokens[2] == [zero] + [pad] * 5
  np.testing.assert_array_equal(values, [[0, 0, 2.5, 0, 0, 0], [0, 0, -7, 0, 0, 0], [0] * 6])


@pytest.mark.parametrize(("value", "is_fitted"), [
  (0, False), (5, False), (-5, False), (5.5, True), (6, True), (-6, True), (1e300, True), (-0.5, True)])
def test_small_integers_alone_are_no_constants(value, is_fitted):
  assert programs.is_constant(number(value)) == is_fitted
  assert programs.fitted_values(number(value)) == ([value] if is_fitted else [])
  assert not programs.is_constant(parse("x"))


def test_size_counts_every_token():
  assert [programs.size(parse(text)) for text in ("x", "x + y", "sin(x)*2.5 + 1")] == [1, 3, 6]


def test_operators_on_request_have_tokens_where_a_formula_has_one():
  assert not programs.has_requested([parse("x"), parse("sin(x)*y")])
  assert programs.has_requested([parse("x"), Node("*", (number(2), Node("tanh", (variable(0),))))])
  assert "tanh" not in VOCABULARY.ids and "tanh" in programs.base_vocabulary(2, has_requested=True).ids


def test_a_skeleton_keeps_operators_columns_and_small_integers():
  same = programs.skeleton(parse("2.5*x + 3"))
  assert same == programs.skeleton(parse("-7.25*x + 3"))
  assert {same}.isdisjoint(programs.skeleton(parse(text)) for text in ("2.5*x + 4", "2.5*y + 3", "2.5*x + 3.5"))
  assert programs.skeleton(parse("sin(x)")) != programs.skeleton(parse("cos(x)"))


def test_values_are_replaced_in_their_order_and_nothing_else():
  node = parse("2.5*x + sin(6.5*y) + 3")
  values = programs.fitted_values(node)
  assert sorted(values) == [2.5, 6.5]
  changed = programs.replace_values(node, [value + 10 for value in values])
  assert programs.fitted_values(changed) == [value + 10 for value in values]
  assert programs.skeleton(changed) == programs.skeleton(node)
  assert programs.replace_values(node, values) == node and programs.replace_values(parse("x"), []) == parse("x")
