"""The grammar against enumeration: what it lets through is all that the rules allow, and nothing else."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symformer_jax.decoding import grammar as grammar_lib
from symformer_jax.errors import InputError
from symformer_jax.language import expression
from symformer_jax.language.rules import Restrictions, Rule
from symformer_jax.language.vocabulary import END_ID, Vocabulary

VOCAB = Vocabulary(2)
SIX = tuple(VOCAB.ids[token] for token in ("+", "pow", "sin", "x0", "x1", "2"))
LIMIT = 6
RULES = [
  Rule(2),
  Rule(2, tokens=frozenset({"+", "sin"})),
  Rule(2, required=frozenset({0, 1})),
  Rule(2, excluded=frozenset({0})),
  Rule(1),
  Rule(2, max_exponent=2.0),
  Rule(2, max_exponent=2.0, required=frozenset({0, 1})),
  Rule(2, max_exponent=1.0),
  Rule(2, max_depth=2, required=frozenset({1})),
  Rule(2, max_depth=3),
  Rule(2, max_depth=3, required=frozenset({0, 1})),
  Rule(2, unnested=frozenset({"sin", "pow"})),
  Rule(2, frozenset({"+", "pow", "sin"}), unnested=frozenset({"+", "pow"}), required=frozenset({0, 1})),
  Rule(2, tokens=frozenset({"pow", "sin"}), max_exponent=3.0, required=frozenset({0})),
  Rule(2, frozenset({"+", "sin"}), frozenset({0, 1}), frozenset(), None, 3, frozenset({"+", "sin"})),
]


@functools.cache
def whole_expressions() -> dict[tuple[int, ...], expression.Node]:
  """All valid expressions of at most six of the six tokens, by the definition of prefix order."""
  found = {}
  for length in range(1, LIMIT + 1):
    for ids in itertools.product(SIX, repeat=length):
      missing = 1 + np.cumsum([VOCAB.arity[i] - 1 for i in ids])
      if missing[-1] == 0 and (missing[:-1] > 0).all():
        found[ids] = expression.decode(ids, np.zeros(length), VOCAB)
  return found


@jax.jit
def allow(state, num_left, grammar):
  return jax.vmap(lambda s: grammar_lib.allowed_tokens(s, num_left, grammar, vocab=VOCAB))(state)


@jax.jit
def follow(state, tokens, grammar):
  return jax.vmap(lambda s, t: grammar_lib.advance(s, t, grammar, vocab=VOCAB))(state, tokens)


def _chunks(tree, size=1024):
  """Pieces of one shape, the last padded: one program for all."""
  num = len(jax.tree.leaves(tree)[0])
  for begin in range(0, num, size):
    index = np.minimum(np.arange(begin, begin + size), num - 1)
    yield jax.tree.map(lambda a: a[index], tree)  # noqa: B023 - used at once


@pytest.mark.parametrize("rule", RULES, ids=range(len(RULES)))
def test_exactly_what_the_rules_allow_can_be_written(rule):
  grammar = grammar_lib.make_grammar(rule, VOCAB)
  only = np.isin(np.arange(VOCAB.size), SIX)
  # 2 is the one number: where it is too large no power can be completed, which real vocabularies, with 0, never meet.
  is_permitted = grammar.is_permitted & only
  if rule.max_exponent is not None and rule.max_exponent < 2:
    is_permitted[VOCAB.ids["pow"]] = False
  grammar = grammar._replace(is_permitted=is_permitted, is_exponent=grammar.is_exponent & only)
  written, prefixes = set(), [()]
  state = jax.tree.map(lambda a: np.asarray(a)[None], grammar_lib.start(LIMIT, VOCAB))
  for step in range(LIMIT):
    mask = np.concatenate([allow(chunk, jnp.int32(LIMIT - step), grammar) for chunk in _chunks(state)])[: len(prefixes)]
    assert mask.any(axis=1).all(), "a dead end"
    rows, tokens = np.nonzero(mask)
    parts = [follow(*chunk, grammar) for chunk in _chunks((jax.tree.map(lambda a: a[rows], state), tokens))]  # noqa: B023
    state = jax.tree.map(lambda *a: np.concatenate(a)[: len(rows)], *parts)  # noqa: B023 - used at once
    longer = [(*prefixes[r], int(t)) for r, t in zip(rows, tokens, strict=True)]
    is_whole = state.num_open == 0
    written |= {p for p, done in zip(longer, is_whole, strict=True) if done}
    prefixes = [p for p, done in zip(longer, is_whole, strict=True) if not done]
    if not prefixes:
      break
    state = jax.tree.map(lambda a: a[~is_whole], state)  # noqa: B023
  assert not prefixes
  assert written == {ids for ids, node in whole_expressions().items() if rule(node)}


def test_a_whole_expression_allows_the_end_alone():
  state = grammar_lib.start(5, VOCAB)._replace(num_open=jnp.int32(0))
  mask = grammar_lib.allowed_tokens(state, jnp.int32(5), grammar_lib.make_grammar(Rule(2), VOCAB), vocab=VOCAB)
  assert np.flatnonzero(mask).tolist() == [END_ID]


@pytest.mark.parametrize(("rule", "length", "is_possible"), [
  (Rule(2), 1, True), (Rule(2, max_depth=10**30), 1, True),
  (Rule(2, required=frozenset({0, 1})), 2, False), (Rule(2, required=frozenset({0, 1})), 3, True),
  (Rule(2, required=frozenset({0, 1}), max_depth=1), 9, False),
  (Rule(2, tokens=frozenset({"sin"}), required=frozenset({0, 1})), 9, False),
  (Rule(2, tokens=frozenset({"pow"}), required=frozenset({0, 1})), 9, True),
  (Rule(2, tokens=frozenset({"pow"}), required=frozenset({0, 1}), max_exponent=3), 9, False),
])
def test_rules_that_nothing_keeps_are_known_before(rule, length, is_possible):
  assert grammar_lib.is_satisfiable(grammar_lib.make_grammar(rule, VOCAB), length, vocab=VOCAB) == is_possible


def test_names_become_rules():
  rule = Restrictions(("+", "/", "log", "^"), ("^",), ("b",), ("a",), 2.5, 4, ("sin",)).for_columns(["a", "b"])
  assert rule == Rule(2, frozenset({"+", "*", "inv", "ln"}), frozenset({1}), frozenset({0}), 2.5, 4,
                      frozenset({"sin"}))
  # A difference that is forbidden leaves sums and products.
  assert Restrictions(forbidden=("-",)).for_columns(["a"]).allows_operator("+")
  assert not Restrictions(forbidden=("-",)).for_columns(["a"]).allows_operator("neg")


@pytest.mark.parametrize(("restrictions", "message"), [
  (Restrictions(("sin",), ("sin",)), "operators: the rules leave no operator"),
  (Restrictions(forbidden=("sine",)), "forbidden: unknown operator 'sine', .*did you mean 'sin'"),
  (Restrictions(required=("c",)), "required: no column 'c', expected some of 'a', 'b'"),
  (Restrictions(required=("a",), excluded=("a",)), "column 'a' is required and excluded at once"),
  (Restrictions(max_exponent=0.5), "max_exponent: expected a number of at least 1, got 0.5"),
  (Restrictions(max_depth=0), "max_depth: expected a whole number of at least 1, got 0"),
])
def test_rules_that_contradict_themselves_say_so(restrictions, message):
  with pytest.raises(InputError, match=message):
    restrictions.for_columns(["a", "b"])
