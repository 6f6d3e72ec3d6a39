"""Columns of operators that no model knows: only where they are asked for, and what they are."""

import dataclasses

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.task import make_task
from symformer_jax.errors import InputError
from symformer_jax.language import expression, operators, parser, programs
from symformer_jax.language.rules import Restrictions
from symformer_jax.sources import guesses
from symformer_jax.sources.evolution import stock
from symformer_jax.sources.network import samples
from symformer_jax.sources.sums import families, library, requested_functions

X = np.random.default_rng(0).uniform(0.5, 3, (50, 2))
ALL = tuple(op.name for op in operators.REQUESTED_OPERATORS)


def made(*requested, x=X):
  return list(requested_functions.make_families(families.Space(x, range(x.shape[1]), DEFAULT.library, requested)))


def tokens_of(family, index=0):
  return {part.token for part in expression.walk(family.build(index))}


def test_nothing_is_made_unasked():
  assert made() == []


@pytest.mark.parametrize("token", ALL)
def test_every_column_is_its_formula(token):
  found = made(token)
  assert len(found) == 9  # of two variables: alone, times and over the other; their product and quotient; the pair
  for family in found:
    for index in (0, family.values.shape[1] - 1):
      np.testing.assert_allclose(family.values[:, index], expression.evaluate(family.build(index), X), rtol=1e-12)
      assert token in tokens_of(family, index)


def test_many_variables_have_them_alone_and_in_pairs():
  found = made("tanh", "max", x=np.random.default_rng(1).uniform(1, 2, (30, 6)))
  assert len(found) == 6 * 2 + 1 and found[-1].values.shape == (30, 15 * 3 + 15)


def test_the_library_has_them_on_request():
  plain = library.Atoms(X, [0, 1])
  more = library.Atoms(X, [0, 1], requested=["tanh", "abs"])
  extra = more.columns.shape[1] - plain.columns.shape[1]
  assert extra > 100
  texts = {part.token for i in range(extra) for part in expression.walk(more.node(i))}
  assert {"tanh", "abs"} <= texts and not {"sinh", "max"} & texts


@pytest.mark.parametrize(("requested", "text"), [
  ("sign", "sign(x)"), ("abs", "abs(x)"), ("min", "min(x, x**2)"), ("max", "max(z, x**2)"), ("max", "max(z, sin(x))"),
  ("abs", "abs(x*z)")])
def test_what_is_asked_for_stands_for_columns_of_equal_value(requested, text):
  x = np.random.default_rng(0).uniform(-2, 2, (60, 2))
  atoms, node = library.Atoms(x, [0, 1], requested=[requested]), parser.parse(text, ["x", "z"])
  values = expression.evaluate(node, x)
  values = (values / np.max(np.abs(values)))[:, None]
  apart = np.minimum(np.abs(atoms.columns - values).max(axis=0), np.abs(atoms.columns + values).max(axis=0))
  equal = np.flatnonzero(apart < 1e-6)
  assert len(equal) == 1 and requested in {part.token for part in expression.walk(atoms.node(int(equal[0])))}


def test_products_are_compared_with_numbers():
  nodes = [family.build(i) for family in made("min") for i in range(family.values.shape[1])]
  assert any(node.token == "min" and node.args[0].token == "*" and node.args[1].is_number for node in nodes)


# --- rules ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rules", "requested", "allowed", "refused"), [
  (Restrictions(), (), ["tanh(x)", "sin(x)"], []),
  (Restrictions(add_operators=("tanh",)), ("tanh",), ["tanh(x)", "sin(x)"], ["cosh(x)"]),
  (Restrictions(operators=("+", "abs")), ("abs",), ["abs(x) + 1"], ["sin(x)", "2*abs(x)"]),
  (Restrictions(operators=("+",), add_operators=("maximum",)), ("max",), ["max(x, 1.5) + x"], ["min(x, 1.5)", "2*x"]),
  (Restrictions(add_operators=("tanh", "sign"), forbidden=("sign",)), ("tanh",), ["tanh(x)"], ["sign(x)"]),
  (Restrictions(add_operators=("tanh",), unnested=("tanh",)), ("tanh",), ["tanh(x)"], ["tanh(2.5*tanh(x))"]),
])
def test_rules(rules, requested, allowed, refused):
  rule = rules.for_columns(["x"])
  assert rule.requested == frozenset(requested)
  for texts, expected in ((allowed, True), (refused, False)):
    for text in texts:
      assert rule(parser.parse(text, ["x"], expands=False)) == expected, text


def test_an_unknown_operator_is_named():
  with pytest.raises(InputError, match="add_operators: unknown operator 'tan_h', .*did you mean 'tanh'"):
    Restrictions(add_operators=("tan_h",)).check()
  with pytest.raises(InputError) as caught:
    Restrictions(add_operators=("floor",)).check()
  names = str(caught.value).removeprefix("add_operators: unknown operator 'floor', expected some of ").split(", ")
  assert sorted(names) == ["abs", "cosh", "max", "min", "sign", "sinh", "tanh"]


def test_a_rule_that_only_they_keep_can_be_kept():
  assert samples.is_satisfiable(Restrictions(operators=("max",), required=("a", "b")).for_columns("ab"), None)
  assert not samples.is_satisfiable(Restrictions(operators=("tanh",), required=("a", "b")).for_columns("ab"), None)


# --- evolution and guesses -----------------------------------------------------------------------------------------


def task_of(**rules):
  options = SearchOptions(restrictions=Restrictions(**rules))
  return make_task((X, X[:, 0]), ["a", "b"], options)


def test_evolution_draws_them_on_request():
  task = task_of(add_operators=("tanh", "min"))
  vocab = programs.base_vocabulary(2, has_requested=True)
  weights = stock.token_weights(task.rule, vocab, stock.make_units(task, [0, 1]), DEFAULT.evolution)
  assert weights[vocab.ids["tanh"]] == weights[vocab.ids["min"]] == DEFAULT.evolution.requested_weight
  assert weights[vocab.ids["max"]] == 0
  found = list(stock.random_trees(np.random.default_rng(0), 200, weights, vocab, DEFAULT.evolution))
  tokens = [part.token for node in found for part in expression.walk(node)]
  assert tokens.count("tanh") > 5 and tokens.count("min") > 5 and "max" not in tokens
  genomes = stock.encode(found, vocab, num=200, size=DEFAULT.evolution.max_tokens)
  assert expression.decode(genomes.ids[0], genomes.values[0], vocab).token == found[0].token


def test_guesses_keep_them_where_the_rules_do():
  texts = ("0.5*tanh(b)",)
  [node] = guesses.Guesses(texts).init(task_of(), None)
  assert "tanh" in {part.token for part in expression.walk(node)}
  [node] = guesses.Guesses(texts).init(task_of(forbidden=("sin",)), None)
  assert "tanh" not in {part.token for part in expression.walk(node)}  # by exponentials, which the rules have
  with pytest.raises(InputError, match="breaks the rules"):
    guesses.Guesses(texts).init(task_of(operators=("+",)), None)


def test_a_programs_vocabulary_has_them_where_a_formula_does():
  assert programs.has_requested([parser.parse("x"), parser.parse("min(x, y)")])
  assert not programs.has_requested([parser.parse("tanh(x)")])  # written by exponentials
  assert dataclasses.asdict(programs.base_vocabulary(3)) == {
    "num_variables": 3, "encoding": "base", "has_requested": False}
