"""Which tokens can still lead to a whole prefix expression within the length limit and the user's rules.

An expression's open arguments form a stack; each knows its level in the tree, whether it lies inside an operator that
must not be nested, and whether it is an exponent that must be a number. A token is allowed when what it leaves open
can be completed with the tokens that remain, every required variable included. So no sample ever ends badly.
All is written for one expression; the decode loop maps it.

Completing needs one leaf for each open argument. Each variable beyond them costs two tokens, a binary operator and
a leaf, and a place where the operator may stand (`_growth`).
"""

import functools
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from symformer_jax.language.rules import Rule
from symformer_jax.language.vocabulary import END_ID, Vocabulary

# Stands for "no limit" where numbers are added up: more than any expression has tokens.
UNLIMITED = 1 << 10


class Grammar(NamedTuple):
  """A user's rules over token ids; arrays, so that other rules need no other program.

  Attributes:
    is_permitted: tokens that may occur [V].
    is_exponent: tokens that may stand as the exponent of `pow` [V].
    is_unnested: operators that may not stand inside one another [V].
    is_required: variables that must occur [V].
    has_numeric_exponents: whether exponents are restricted to `is_exponent`.
    max_depth: levels of the tree.
    grows_free, grows_once: whether some operator of two full arguments may stand anywhere, or outside of unnested ones.
  """

  is_permitted: jax.Array
  is_exponent: jax.Array
  is_unnested: jax.Array
  is_required: jax.Array
  has_numeric_exponents: jax.Array
  max_depth: jax.Array
  grows_free: jax.Array
  grows_once: jax.Array


class OpenArguments(NamedTuple):
  """What is still missing of one expression, as a stack of S arguments; the next token fills the top one.

  Attributes:
    num_open: arguments missing, scalar; 1 before the first token, 0 when the expression is whole.
    depth: level in the tree, the root 1 [S]; is_inside: an unnested operator is above it [S].
    is_exponent: must be a number [S].
    is_used: required tokens that occurred so far [V].
  """

  num_open: jax.Array
  depth: jax.Array
  is_inside: jax.Array
  is_exponent: jax.Array
  is_used: jax.Array


def make_grammar(rule: Rule, vocab: Vocabulary) -> Grammar:
  """The rules in terms of a model's tokens; NumPy arrays, on the host."""
  arity = np.asarray(vocab.arity)
  is_permitted, is_exponent, is_unnested, is_required = np.zeros((4, vocab.size), bool)
  for i, token in enumerate(vocab.tokens):
    column = i - vocab.first_variable_id
    if arity[i] > 0:
      is_permitted[i], is_unnested[i] = rule.allows_operator(token), token in rule.unnested
    elif column >= 0:
      is_permitted[i] = column < rule.num_columns and column not in rule.excluded
      is_required[i] = column in rule.required
    elif arity[i] == 0:
      is_permitted[i] = True
      # A constant's token bounds its size; one that could pass the limit is left out.
      size = vocab.constant_scale[i] if vocab.is_constant[i] else abs(int(token))
      is_exponent[i] = rule.max_exponent is None or size <= rule.max_exponent
  is_full = is_permitted & (arity == 2)
  if rule.max_exponent is not None:
    is_full[vocab.ids["pow"]] = False
  rules = (
    is_permitted, is_exponent, is_unnested, is_required, np.bool_(rule.max_exponent is not None),
    np.int32(min(rule.max_depth or UNLIMITED, UNLIMITED)), np.any(is_full & ~is_unnested), np.any(is_full))
  return Grammar(*cast(tuple[jax.Array, ...], rules))  # which compiled code takes as they are


def start(max_length: int, vocab: Vocabulary) -> OpenArguments:
  """An expression without a token, of at most L tokens to come."""
  size = max_length // 2 + 2  # of L tokens at most (L + 1) / 2 wait for arguments at once
  return OpenArguments(jnp.int32(1), jnp.ones(size, jnp.int32), jnp.zeros(size, bool), jnp.zeros(size, bool),
                       jnp.zeros(vocab.size, bool))


def _growth(depth: jax.Array, is_inside: jax.Array, grammar: Grammar) -> jax.Array:
  """How many leaves more than one an argument at this level can hold, length aside."""
  levels = jnp.clip(grammar.max_depth - depth, 0, 9)
  full = jnp.where(grammar.grows_free, (1 << levels) - 1, 0)
  # Operators that all are unnested: one of them, and none inside it.
  once = grammar.grows_once & ~is_inside & (levels > 0)
  return jnp.maximum(full, once.astype(jnp.int32))


def allowed_tokens(state: OpenArguments, num_left: jax.Array, grammar: Grammar, *, vocab: Vocabulary) -> jax.Array:
  """Mask of the next token: every sequence drawn under it is a valid expression within the rules.

  Args:
    state: of one expression.
    num_left: tokens that may still be written, this one included; scalar.
    grammar: the rules; vocab: static.
  Returns:
    [V]; a whole expression allows the end token alone.
  """
  arity = jnp.asarray(np.asarray(vocab.arity, np.int32))
  top = jnp.maximum(state.num_open - 1, 0)
  fits = (arity >= 0) & (state.num_open > 0) & jnp.where(
    state.is_exponent[top], grammar.is_exponent, grammar.is_permitted & ~(state.is_inside[top] & grammar.is_unnested))
  fits &= (arity <= 0) | (state.depth[top] < grammar.max_depth)
  num_spare = num_left - state.num_open - arity  # tokens beyond one for each argument that is open then
  is_missing = grammar.is_required & ~state.is_used
  num_missing = jnp.sum(is_missing, dtype=jnp.int32) - is_missing
  fits &= (num_spare >= 0) & (num_missing <= _room_after(state, num_spare, grammar, vocab))
  return fits | ((jnp.arange(vocab.size) == END_ID) & (state.num_open == 0))


def _room_after(state: OpenArguments, num_spare: jax.Array, grammar: Grammar, vocab: Vocabulary) -> jax.Array:
  """Variables that can still be placed once each token is written [V]; num_spare: [V]."""
  arity = jnp.asarray(np.asarray(vocab.arity, np.int32))
  top = jnp.maximum(state.num_open - 1, 0)
  is_full = (jnp.arange(state.depth.shape[0]) < top) & ~state.is_exponent
  growth = jnp.sum(jnp.where(is_full, _growth(state.depth, state.is_inside, grammar), 0), dtype=jnp.int32)
  is_power = (jnp.arange(vocab.size) == vocab.ids["pow"]) & grammar.has_numeric_exponents
  num_new = jnp.maximum(arity, 0) - is_power
  new_growth = _growth(state.depth[top] + 1, state.is_inside[top] | grammar.is_unnested, grammar)
  num_full = jnp.sum(is_full, dtype=jnp.int32) + num_new
  return num_full + jnp.minimum(num_spare // 2, growth + num_new * new_growth)


def advance(state: OpenArguments, token: jax.Array, grammar: Grammar, *, vocab: Vocabulary) -> OpenArguments:
  """The state after a token, scalar; one without arity (a whole expression's end) changes nothing."""
  arity = jnp.asarray(np.asarray(vocab.arity, np.int32))[token]
  top = jnp.maximum(state.num_open - 1, 0)
  num_open = jnp.where(arity >= 0, state.num_open - 1 + arity, state.num_open)
  at = jnp.arange(state.depth.shape[0])
  is_new = (at >= top) & (at < num_open) & (arity > 0)
  # The first argument lies on top: of a power's two the lower is the exponent.
  is_power = (token == vocab.ids["pow"]) & grammar.has_numeric_exponents
  return OpenArguments(
    num_open, jnp.where(is_new, state.depth[top] + 1, state.depth),
    jnp.where(is_new, state.is_inside[top] | grammar.is_unnested[token], state.is_inside),
    jnp.where(is_new, (at == top) & is_power, state.is_exponent),
    state.is_used | ((jnp.arange(vocab.size) == token) & grammar.is_required))


def is_satisfiable(grammar: Grammar, max_length: int, *, vocab: Vocabulary) -> bool:
  """Whether any expression of at most `max_length` tokens keeps the rules."""
  return bool(_allowed_first(grammar, max_length=max_length, vocab=vocab).any())


@functools.partial(jax.jit, static_argnames=("max_length", "vocab"))
def _allowed_first(grammar: Grammar, *, max_length: int, vocab: Vocabulary) -> jax.Array:
  return allowed_tokens(start(max_length, vocab), jnp.int32(max_length), grammar, vocab=vocab)
