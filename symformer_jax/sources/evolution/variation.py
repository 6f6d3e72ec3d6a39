"""Variation of formulas as token arrays: edits of prefix programs on the device, valid by construction.

A genome is a prefix program of the base vocabulary, padded with 0: a sum whose terms have no factor and which has no
constant of its own; `express` gives it those. Every edit lays pieces of a genome, of a donor and some new tokens end to
end; where pieces begin and end follows from the extents of subtrees, so that a child is whole whatever is drawn.
All but `breed` is written for one genome.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from symformer_jax.decoding import grammar as grammar_lib
from symformer_jax.decoding.grammar import Grammar
from symformer_jax.language import operators
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.types import Array

# Ways to edit: a part of the donor takes a part's place, or joins it under an operator of two; a function is put
# around; a token is exchanged; a part takes the whole's place; a node gives way to its argument; constants move.
KINDS = ("crossover", "insert", "function", "point", "hoist", "delete", "constants")
_CROSSOVER, _INSERT, _FUNCTION, _POINT, _HOIST, _DELETE, _CONSTANTS = range(len(KINDS))


# Functions that a law seldom has of more than one or two kinds; none of them are in rational functions.
FAMILIES = (("sin", "cos", "tan", "cot", "asin", "acos", "atan", "acot"), ("exp", "ln"), ("sqrt", "pow"))


class Genome(NamedTuple):
  """Programs: token ids [..., L], int32, and the numbers at constant tokens [..., L]."""

  ids: Array
  values: Array


class Choices(NamedTuple):
  """What edits choose among: shares, 0 for what may not be.

  Attributes:
    kinds: of `KINDS` [E]; tokens: operators and leaves by id [V].
    scaled: share of the terms joined to an inner sum that get a factor to be fitted; scalar.
    redrawn: share of the constants drawn anew where constants change; scalar.
    near, far: spread of the logarithm of a constant that moves, and of one that is drawn; scalars.
  """

  kinds: Array
  tokens: Array
  scaled: Array
  redrawn: Array
  near: Array
  far: Array


class Draws(NamedTuple):
  """All that is random in one edit, so that an edit is a function that can be enumerated.

  Attributes:
    units: from 0 to 1, each named in `_UNITS` [U]; of_tokens: from 0 to 1 [L]; numbers: standard normal [2, L].
  """

  units: jax.Array
  of_tokens: jax.Array
  numbers: jax.Array


class _Units(NamedTuple):
  """What each of `Draws.units` decides, a scalar."""

  kind: jax.Array
  is_term: jax.Array
  spot: jax.Array
  is_whole: jax.Array
  given: jax.Array
  hoisted: jax.Array
  argument: jax.Array
  binary: jax.Array
  function: jax.Array
  is_scaled: jax.Array
  token: jax.Array


_UNITS = _Units._fields
NUM_UNITS = len(_UNITS)


class Traits(NamedTuple):
  """What is known of a genome before it is fitted.

  Attributes:
    signature: uint32 scalar, equal for genomes that differ in constants or in the order of sums and products alone.
    complexity: nodes of its formula as written out, scalar.
    family: which of `FAMILIES` it uses, a bit for each; scalar.
    is_usable: whether it has a variable, and its formula no more than M tokens; scalar.
  """

  signature: Array
  complexity: Array
  family: Array
  is_usable: Array


class Expressed(NamedTuple):
  """The formula that is fitted for a genome.

  Attributes:
    ids, values: program [M]; factors and constant are 0 until least squares finds them (`projection`).
    origin: the token of the genome that stands at each token [M]; -1 for what was added.
    is_allowed: whether it keeps the rules, scalar.
  """

  ids: Array
  values: Array
  origin: Array
  is_allowed: Array


def _arities(vocab: Vocabulary) -> jax.Array:
  return jnp.asarray(np.maximum(vocab.arity, 0), jnp.int32)


def length(ids: Array) -> jax.Array:
  """Tokens of a program, scalar."""
  return jnp.sum(ids > 0, dtype=jnp.int32)


def extents(ids: Array, *, vocab: Vocabulary) -> jax.Array:
  """Tokens of the subtree that begins at each token [L]; 0 at padding."""
  open_after = jnp.cumsum(jnp.where(ids > 0, _arities(vocab)[ids] - 1, 0))  # arguments, less one
  open_before = jnp.concatenate([jnp.zeros(1, open_after.dtype), open_after[:-1]])
  at = jnp.arange(ids.shape[0])
  is_closed = (open_after[None, :] < open_before[:, None]) & (at[None, :] >= at[:, None])
  return jnp.where(ids > 0, jnp.argmax(is_closed, axis=1) - at + 1, 0).astype(jnp.int32)


def _contains(sizes: Array) -> jax.Array:
  """Whether the subtree at the first token has the second [L, L]; every token has itself."""
  at = jnp.arange(sizes.shape[0])
  return (at[None, :] >= at[:, None]) & (at[None, :] < (at + sizes)[:, None])


def second_arguments(sizes: Array) -> jax.Array:
  """Where the second argument of each token begins [L], if it has one."""
  at = jnp.arange(sizes.shape[0])
  last = sizes.shape[0] - 1
  return jnp.minimum(at + 1 + sizes[jnp.minimum(at + 1, last)], last)


def _is_exponent(ids: Array, sizes: Array, vocab: Vocabulary) -> jax.Array:
  """Second arguments of powers [L]: they stay the numbers that they are."""
  at = jnp.arange(ids.shape[0])
  is_second = (second_arguments(sizes)[:, None] == at[None, :]) & (ids == vocab.ids["pow"])[:, None]
  return jnp.any(is_second, axis=0)


def splice(source: Genome, begins: jax.Array, lengths: jax.Array, *, size: int) -> tuple[Genome, jax.Array]:
  """Pieces of token arrays laid end to end.

  Args:
    source: arrays, one after the other [S].
    begins, lengths: of the pieces in `source` [Q].
    size: L, static.
  Returns:
    `(genome [L], its tokens)`; where these are more than L, the rest is cut off.
  """
  ends = jnp.cumsum(lengths)
  at = jnp.arange(size)
  piece = jnp.minimum(jnp.sum(at[:, None] >= ends[None, :], axis=1), lengths.shape[0] - 1)
  index = jnp.clip(begins[piece] + at - (ends - lengths)[piece], 0, source.ids.shape[0] - 1)
  is_there = at < ends[-1]
  return Genome(jnp.where(is_there, source.ids[index], 0), jnp.where(is_there, source.values[index], 0)), ends[-1]


def _pick(unit: jax.Array, is_possible: Array) -> jax.Array:
  """One of those that are possible [L], all alike, by a number from 0 to 1; the first where none is."""
  rank = jnp.cumsum(is_possible)
  number = jnp.minimum((unit * rank[-1]).astype(rank.dtype), rank[-1] - 1)
  return jnp.argmax(is_possible & (rank == number + 1)).astype(jnp.int32)


def _pick_weighted(unit: jax.Array, weights: Array) -> jax.Array:
  """One by its share [V]; never one of share 0 where another has more; the first where none has."""
  ends = jnp.cumsum(weights)
  # Rounding must not let a number just below 1 fall behind the last share.
  is_beyond = (weights > 0) & (unit * ends[-1] < ends)
  last = jnp.where(jnp.any(weights > 0), weights.shape[0] - 1 - jnp.argmax((weights > 0)[::-1]), 0)
  return jnp.where(jnp.any(is_beyond), jnp.argmax(is_beyond), last).astype(jnp.int32)


def _drawn_numbers(draws: Draws, choices: Choices) -> jax.Array:
  """Numbers of both signs around one [L]."""
  sign = jnp.where(draws.of_tokens * 2 % 1 < 0.5, 1, -1)
  return sign * jnp.exp(choices.far * draws.numbers[0])


def edit(draws: Draws, parent: Genome, donor: Genome, choices: Choices, *, vocab: Vocabulary) -> Genome:
  """One edit; the parent itself where what is drawn cannot be done to it, or would be too long.

  Args:
    draws: see there.
    parent, donor: whole programs [L].
    choices: see there; vocab: static.
  Returns:
    A whole program [L].
  """
  units = _Units(*draws.units)
  kind = _pick_weighted(units.kind, choices.kinds)
  is_spliced = (kind != _POINT) & (kind != _CONSTANTS)
  drawn = _drawn_numbers(draws, choices).astype(parent.values.dtype)
  moved = jnp.exp(choices.near * draws.numbers[1]).astype(parent.values.dtype)
  # A term beside its own copy would stay one: a fit moves both alike.
  donor = donor._replace(values=jnp.where(kind == _INSERT, donor.values * moved, donor.values))
  spliced = _splice_in(units, drawn, kind, parent, donor, choices, vocab)
  # By other digits than those that decide the sign: else a small share would be of one sign.
  redrawn = jnp.where(draws.of_tokens * 4 % 1 < choices.redrawn, drawn, parent.values * moved)
  changed = _change(units, drawn, redrawn, kind, parent, choices, vocab)
  return jax.tree.map(lambda one, other: jnp.where(is_spliced, one, other), spliced, changed)


def _splice_in(
  units: _Units, drawn: jax.Array, kind: jax.Array, parent: Genome, donor: Genome, choices: Choices, vocab: Vocabulary
) -> Genome:
  """The edits that move subtrees: pieces are parent, new tokens, donor, what is kept, an exponent, parent."""
  size = parent.ids.shape[0]
  sizes, donor_sizes = extents(parent.ids, vocab=vocab), extents(donor.ids, vocab=vocab)
  is_open = (parent.ids > 0) & ~_is_exponent(parent.ids, sizes, vocab)
  shrinks = (kind == _HOIST) | (kind == _DELETE)
  is_node = sizes > 1
  # Half of what is inserted is a term of the whole sum.
  is_term = (kind == _INSERT) & (units.is_term < 0.5)
  spot = jnp.where(is_term, 0, _pick(units.spot, is_open & (~shrinks | is_node)))
  is_part = (donor.ids > 0) & ~_is_exponent(donor.ids, donor_sizes, vocab)
  given = jnp.where(is_term | (units.is_whole < 0.5), 0, _pick(units.given, is_part))
  hoisted = _pick(units.hoisted, _contains(sizes)[spot] & is_open & (jnp.arange(size) > spot))
  has_second = (_arities(vocab)[parent.ids[spot]] == 2) & (parent.ids[spot] != vocab.ids["pow"])
  argument = jnp.where(has_second & (units.argument < 0.5), second_arguments(sizes)[spot], spot + 1)
  new, begin, num_before, num_after = _new_tokens(units, kind, is_term, choices, vocab)
  source = Genome(
    jnp.concatenate([parent.ids, donor.ids, new]),
    jnp.concatenate([parent.values, donor.values, jnp.where(new == vocab.first_constant_id, drawn[: len(new)], 0)]))
  kept = jnp.where(kind == _HOIST, hoisted, jnp.where(kind == _DELETE, argument, spot))
  num_given = jnp.where((kind == _CROSSOVER) | (kind == _INSERT), donor_sizes[given], 0)
  num_kept = jnp.where(kind == _CROSSOVER, 0, sizes[kept])
  after = spot + sizes[spot]
  child, total = splice(
    source, jnp.stack([0, 2 * size + begin, size + given, kept, 2 * size + new.shape[0] - 1, after]),
    jnp.stack([spot, num_before, num_given, num_kept, num_after, length(parent.ids) - after]), size=size)
  is_possible = (total <= size) & (~shrinks | is_node[spot])
  return jax.tree.map(lambda one, other: jnp.where(is_possible, one, other), child, parent)


def _new_tokens(
  units: _Units, kind: jax.Array, is_term: jax.Array, choices: Choices, vocab: Vocabulary
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
  """`(ids [6], where those before the subtree begin, how many, how many after it)`: the last is an exponent."""
  arity, is_power, tokens = _arities(vocab), jnp.arange(vocab.size) == vocab.ids["pow"], choices.tokens
  plus, times, constant = vocab.ids["+"], vocab.ids["*"], vocab.first_constant_id
  binary = _pick_weighted(units.binary, jnp.where((arity == 2) & ~is_power, tokens, 0))
  function = _pick_weighted(units.function, jnp.where((arity == 1) | is_power, tokens, 0))
  binary = jnp.where(is_term & (tokens[plus] > 0), plus, binary)
  is_scaled = (binary == plus) & ~is_term & (tokens[times] > 0) & (units.is_scaled < choices.scaled)
  ids = jnp.stack([plus, times, constant, binary, function, constant]).astype(jnp.int32)
  begin = jnp.where(kind == _INSERT, jnp.where(is_scaled, 0, 3), 4)
  num_before = jnp.where(kind == _INSERT, jnp.where(is_scaled, 3, 1), (kind == _FUNCTION).astype(jnp.int32))
  return ids, begin, num_before, ((kind == _FUNCTION) & (function == vocab.ids["pow"])).astype(jnp.int32)


def _change(
  units: _Units, drawn: jax.Array, redrawn: jax.Array, kind: jax.Array, parent: Genome, choices: Choices,
  vocab: Vocabulary,
) -> Genome:
  """The edits that leave the tree's shape: another token with as many arguments, or other constants."""
  arity, ids = _arities(vocab), parent.ids
  spot = _pick(units.spot, (ids > 0) & ~_is_exponent(ids, extents(ids, vocab=vocab), vocab))
  at = jnp.arange(vocab.size)
  # A power's second argument is a number, which no other operator's need be.
  is_alike = (arity == arity[ids[spot]]) & (at != ids[spot]) & (at != vocab.ids["pow"]) & (choices.tokens > 0)
  token = _pick_weighted(units.token, jnp.where(is_alike, choices.tokens, 0))
  is_changed = (jnp.arange(ids.shape[0]) == spot) & (kind == _POINT) & jnp.any(is_alike)
  is_constant = jnp.asarray(np.asarray(vocab.is_constant))
  ids = jnp.where(is_changed, token, ids)
  values = jnp.where(is_changed, drawn, jnp.where(kind == _CONSTANTS, redrawn, parent.values))
  return Genome(ids, jnp.where(is_constant[ids], values, 0))


def normalize(genome: Genome, *, vocab: Vocabulary) -> Genome:
  """Without what `express` adds, or a number does: parts without a variable become a constant; terms lose factors and
  signs, the sum its constants.
  """
  ids, size = genome.ids, genome.ids.shape[0]
  sizes = extents(ids, vocab=vocab)
  contains, at = _contains(sizes), jnp.arange(size)
  has_variable = jnp.any(contains & (ids >= vocab.first_variable_id)[None, :], axis=1)
  is_number = (ids > 0) & ~has_variable
  is_above = contains & (at[:, None] != at[None, :])
  is_inside = jnp.any(is_above & is_number[:, None], axis=0)
  is_folded = is_number & ~is_inside & (sizes > 1)
  is_term = _is_term(ids, is_above, vocab)
  first, second = jnp.minimum(at + 1, size - 1), second_arguments(sizes)
  is_product, is_sum = is_term & (ids == vocab.ids["*"]), ~_has_other_above(ids, is_above, vocab) & (
    ids == vocab.ids["+"])
  drops_first = (is_product | is_sum) & is_number[first]
  drops_second = (is_product | is_sum) & is_number[second] & ~drops_first
  is_sign = is_term & (ids == vocab.ids["neg"])
  dropped = jnp.any(drops_first[:, None] & (first[:, None] == at[None, :])
                    | drops_second[:, None] & (second[:, None] == at[None, :]), axis=0)
  is_kept = (ids > 0) & ~is_inside & ~dropped & ~(drops_first | drops_second | is_sign)
  order = jnp.argsort(jnp.where(is_kept, at, size + at))
  is_there = at < jnp.sum(is_kept)
  new_ids = jnp.where(is_folded, vocab.first_constant_id, ids)
  new_values = jnp.where(is_folded, 1, genome.values)
  return Genome(jnp.where(is_there, new_ids[order], 0), jnp.where(is_there, new_values[order], 0))


def _has_other_above(ids: Array, is_above: jax.Array, vocab: Vocabulary) -> jax.Array:
  """Whether anything but sums stands above each token [L]."""
  return jnp.any(is_above & (ids != vocab.ids["+"])[:, None], axis=0)


def find_terms(ids: Array, *, vocab: Vocabulary) -> Array:
  """Where the terms of the outermost sum begin [L]."""
  contains, at = _contains(extents(ids, vocab=vocab)), jnp.arange(ids.shape[0])
  return _is_term(ids, contains & (at[:, None] != at[None, :]), vocab)


def _is_term(ids: Array, is_above: jax.Array, vocab: Vocabulary) -> Array:
  """Where the terms of the outermost sum begin [L]."""
  return (ids > 0) & (ids != vocab.ids["+"]) & ~_has_other_above(ids, is_above, vocab)


def measure(genome: Genome, choices: Choices, *, vocab: Vocabulary, size: int) -> Traits:
  """Traits of a normalized genome [L]; vocab, size (M): static."""
  ids = genome.ids
  cost = jnp.asarray([operators.BY_NAME[token].complexity if token in operators.BY_NAME else 1
                      for token in vocab.tokens], jnp.int32)
  num_terms = jnp.sum(find_terms(ids, vocab=vocab), dtype=jnp.int32)
  scales, shifts = _additions(choices, vocab)
  added = 2 * scales * num_terms + 2 * shifts
  complexity = jnp.sum(jnp.where(ids > 0, cost[ids], 0)) + added
  family = sum((jnp.any(jnp.asarray(np.isin(vocab.tokens, names))[ids]).astype(jnp.int32) << bit
                for bit, names in enumerate(FAMILIES)), start=jnp.int32(0))
  is_usable = jnp.any(ids >= vocab.first_variable_id) & (length(ids) + added <= size)
  return Traits(signature(ids, extents(ids, vocab=vocab), vocab=vocab), complexity, family, is_usable)


def _additions(choices: Choices, vocab: Vocabulary) -> tuple[jax.Array, jax.Array]:
  """Whether terms get factors, and sums a constant: 1 or 0."""
  scales, shifts = ((choices.tokens[vocab.ids[token]] > 0).astype(jnp.int32) for token in ("*", "+"))
  return scales, shifts


@functools.partial(jax.jit, static_argnames=("vocab", "size", "has_rules"))
def express_many(
  genomes: Genome, choices: Choices, grammar: Grammar, *, vocab: Vocabulary, size: int, has_rules: bool
) -> Expressed:
  """`express` of many [K]."""
  return jax.vmap(functools.partial(express, vocab=vocab, size=size, has_rules=has_rules), in_axes=(0, None, None))(
    genomes, choices, grammar)


def express(
  genome: Genome, choices: Choices, grammar: Grammar, *, vocab: Vocabulary, size: int, has_rules: bool
) -> Expressed:
  """The formula that is fitted: a factor for every term of the genome and a constant, where the rules allow them.

  Linear scaling (Keijzer, 2003), term by term.
  Args:
    genome: normalized and usable [L]; choices: what is allowed.
    grammar: the rules, looked at where `has_rules` (static).
    vocab: static; size: M, static.
  """
  ids, at = genome.ids, jnp.arange(genome.ids.shape[0])
  plus, times, constant = vocab.ids["+"], vocab.ids["*"], vocab.first_constant_id
  is_term, sizes = find_terms(ids, vocab=vocab), extents(ids, vocab=vocab)
  scales, shifts = _additions(choices, vocab)
  is_last = jnp.any(is_term[:, None] & ((at + sizes - 1)[:, None] == at[None, :]), axis=0)
  num_ended = jnp.cumsum(is_last) - is_last
  place = shifts + at + scales * (jnp.cumsum(is_term) + num_ended)  # of each token
  total = length(ids) + 2 * scales * jnp.sum(is_term) + 2 * shifts

  def put(array: jax.Array, where: Array, is_put: Array, what: Array) -> jax.Array:
    return array.at[jnp.where(is_put, where, size)].set(what, mode="drop")

  can_scale = scales > 0
  program = put(jnp.zeros(size, jnp.int32), place, ids > 0, ids)
  program = put(program, place - 1, is_term & can_scale, jnp.int32(times))
  program = put(program, place + 1, is_last & can_scale, jnp.int32(constant))
  program = put(program, jnp.stack([0 * total, total - 1]), jnp.stack([shifts, shifts]) > 0,
                jnp.stack([jnp.int32(plus), jnp.int32(constant)]))
  values = put(jnp.zeros(size, genome.values.dtype), place, ids > 0, genome.values)
  origin = put(jnp.full(size, -1, jnp.int32), place, ids > 0, at.astype(jnp.int32))
  is_allowed = _keeps(program, grammar, vocab) if has_rules else jnp.asarray(True)
  return Expressed(program, values, origin, is_allowed)


def _keeps(program: jax.Array, grammar: Grammar, vocab: Vocabulary) -> jax.Array:
  """Whether every token was allowed where it stands; scalar."""
  size = program.shape[0]

  def step(
    carry: tuple[Any, jax.Array], token_and_place: tuple[jax.Array, jax.Array]
  ) -> tuple[tuple[Any, jax.Array], None]:
    state, is_kept = carry
    token, t = token_and_place
    allowed = grammar_lib.allowed_tokens(state, jnp.int32(size) - t, grammar, vocab=vocab)
    is_kept &= (token == 0) | allowed[token]
    return (grammar_lib.advance(state, token, grammar, vocab=vocab), is_kept), None

  start = grammar_lib.start(size, vocab), jnp.asarray(True)
  (_, is_kept), _ = jax.lax.scan(step, start, (program, jnp.arange(size, dtype=jnp.int32)))
  return is_kept


def _mix(bits: jax.Array) -> jax.Array:
  """A finalizer of 32 bits (MurmurHash3): every bit of the input moves half of those of the output."""
  bits = (bits ^ (bits >> 16)) * jnp.uint32(0x85EBCA6B)
  bits = (bits ^ (bits >> 13)) * jnp.uint32(0xC2B2AE35)
  return bits ^ (bits >> 16)


def signature(ids: Array, sizes: Array, *, vocab: Vocabulary) -> jax.Array:
  """See `Traits`: sums and products add up what their operands are, however nested; all constants are alike."""
  last = ids.shape[0] - 1
  second = second_arguments(sizes)
  arity = _arities(vocab)

  def step(t: jax.Array, raw: jax.Array) -> jax.Array:
    i = last - t
    token = ids[i]
    is_flat = (token == vocab.ids["+"]) | (token == vocab.ids["*"])

    def operand(j: jax.Array) -> jax.Array:
      salted = _mix(raw[j] + ids[j].astype(jnp.uint32) * jnp.uint32(0x9E3779B9))
      return jnp.where(is_flat & (ids[j] == token), raw[j], salted)

    one, two = operand(jnp.minimum(i + 1, last)), operand(second[i])
    two = jnp.where(is_flat, two, _mix(two))  # a power's arguments do not commute
    here = jnp.where(arity[token] == 0, 0, one) + jnp.where(arity[token] == 2, two, 0)
    return raw.at[i].set(here.astype(jnp.uint32))

  raw = jax.lax.fori_loop(0, last + 1, step, jnp.zeros(last + 1, jnp.uint32))
  return _mix(raw[0] + ids[0].astype(jnp.uint32) * jnp.uint32(0x9E3779B9))


@functools.partial(jax.jit, static_argnames=("num", "num_edits", "vocab", "size"))
def breed(
  key: jax.Array, stock: Genome, parent_shares: jax.Array, donor_shares: jax.Array, more: jax.Array, choices: Choices,
  *, num: int, num_edits: int, vocab: Vocabulary, size: int,
) -> tuple[Genome, Traits, jax.Array]:
  """Children of a population.

  Args:
    key: consumed.
    stock: genomes [P, L] from which parents and donors are drawn.
    parent_shares, donor_shares: how often each is [P].
    more: probability of each edit after the first, of `num_edits` at most; scalar.
    choices: see there.
    num: K; size: M; static, like `num_edits` and `vocab`.
  Returns:
    `(genomes [K, L], their traits [K], parents [K])`.
  """
  keys, width = jax.random.split(key), stock.ids.shape[1]
  units = jax.random.uniform(keys[0], (num_edits, num, NUM_UNITS + width + 3))
  numbers = jax.random.normal(keys[1], (num_edits, num, 2, width))
  draws = Draws(units[..., :NUM_UNITS], units[..., NUM_UNITS:-3], numbers)
  pick_all = jax.vmap(_pick_weighted, in_axes=(0, None))
  parents = pick_all(units[0, :, -1], parent_shares)
  is_done = jnp.cumprod((units[..., -2] < more).at[0].set(True), axis=0) > 0
  edit_all = jax.vmap(functools.partial(edit, vocab=vocab), in_axes=(0, 0, 0, None))

  def step(e: jax.Array, genomes: Genome) -> Genome:
    donors = pick_all(units[e, :, -3], donor_shares)
    edited = edit_all(jax.tree.map(lambda a: a[e], draws), genomes, jax.tree.map(lambda a: a[donors], stock), choices)
    return jax.tree.map(lambda new, old: jnp.where(is_done[e][:, None], new, old), edited, genomes)

  genomes = jax.lax.fori_loop(0, num_edits, step, jax.tree.map(lambda a: a[parents], stock))
  return *enroll(genomes, choices, vocab=vocab, size=size), parents


@functools.partial(jax.jit, static_argnames=("vocab", "size"))
def enroll(genomes: Genome, choices: Choices, *, vocab: Vocabulary, size: int) -> tuple[Genome, Traits]:
  """Whole programs [K, L] as `(genomes [K, L], traits [K])`; see `normalize` and `measure`."""
  genomes = jax.vmap(functools.partial(normalize, vocab=vocab))(genomes)
  return genomes, jax.vmap(functools.partial(measure, vocab=vocab, size=size), in_axes=(0, None))(genomes, choices)
