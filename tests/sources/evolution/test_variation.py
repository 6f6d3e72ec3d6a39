"""Edits of token arrays: whatever is drawn, a whole program comes out, and nothing but what the edit is for changes."""

import collections
import functools
import itertools

from hypothesis import given, settings, strategies as st
import jax
import numpy as np
import pytest

from symformer_jax.decoding import grammar as grammar_lib
from symformer_jax.language import expression, parser, programs
from symformer_jax.language.rules import Restrictions
from symformer_jax.sources.evolution import projection, variation
from symformer_jax.sources.evolution.variation import KINDS, Choices, Draws, Genome

SIZE, NAMES = 12, ("x", "y")
VOCAB = programs.base_vocabulary(2)
ALL = {"+": 1.0, "*": 1.0, "pow": 0.3, "inv": 1.0, "pow2": 1.0, "sin": 1.0, "exp": 1.0, "C": 1.0, "x0": 1.0, "x1": 1.0}
TEXTS = ("x", "x*y", "sin(1.5*x)", "x + y", "x/(y + 2.5)", "exp(x)*y + x", "x**1.7 + y", "(x + 0.7*y)**2",
         "sin(x + y)*exp(x)", "1.5*x*y + x")


def tokens(weights):
  found = np.zeros(VOCAB.size, np.float32)
  for token, weight in weights.items():
    found[VOCAB.ids[token]] = weight
  return found


def choices(kind=None, weights=ALL):
  kinds = np.array([1.0 if kind in (None, name) else 0.0 for name in KINDS], np.float32)
  return Choices(kinds, tokens(weights), *(np.float32(a) for a in (0.5, 0.3, 0.3, 1.0)))


def genome(text):
  ids, values = programs.encode_programs([parser.parse(text, NAMES)], VOCAB, num_programs=1, length=SIZE)
  return Genome(ids[0], values[0].astype(np.float32))


def tree(found):
  """The tree, if it is a whole program followed by padding; an error otherwise."""
  ids = np.asarray(found.ids)
  num = int(np.sum(ids > 0))
  assert not ids[num:].any() and not np.asarray(found.values)[num:].any()
  return expression.decode(ids, np.asarray(found.values), VOCAB)


def draws(units, numbers=None):
  return Draws(np.asarray(units, np.float32), np.full(SIZE, 0.5, np.float32),
               np.zeros((2, SIZE), np.float32) if numbers is None else numbers)


edit = jax.jit(functools.partial(variation.edit, vocab=VOCAB))
normalize = jax.jit(functools.partial(variation.normalize, vocab=VOCAB))
express = jax.jit(functools.partial(variation.express, vocab=VOCAB, size=48, has_rules=False))
measure = jax.jit(functools.partial(variation.measure, vocab=VOCAB, size=48))
OPEN = grammar_lib.make_grammar(Restrictions().for_columns(NAMES), VOCAB)
UNITS = st.lists(st.floats(0, 1, exclude_max=True, width=32), min_size=variation.NUM_UNITS,
                 max_size=variation.NUM_UNITS)
texts = st.sampled_from(TEXTS)


def bag(node):
  """Tokens with their values, as often as they occur."""
  return collections.Counter((n.token, None if n.is_number else n.value) for n in expression.walk(node))


@given(texts)
def test_extents_are_those_of_the_tree(text):
  found = genome(text)
  sizes = [programs.size(node) for node in expression.walk(parser.parse(text, NAMES))]
  assert np.asarray(variation.extents(found.ids, vocab=VOCAB)).tolist() == sizes + [0] * (SIZE - len(sizes))


@settings(max_examples=300)
@given(UNITS, texts, texts, st.sampled_from([None, *KINDS]))
def test_every_child_is_a_whole_program_of_allowed_tokens_within_the_length(units, parent, donor, kind):
  few = {token: weight for token, weight in ALL.items() if token not in ("exp", "pow")}
  child = edit(draws(units), genome(parent), genome(donor), choices(kind, few))
  found = tree(child)
  assert programs.size(found) <= SIZE
  known = {n.token for text in (parent, donor) for n in expression.walk(parser.parse(text, NAMES))}
  assert {n.token for n in expression.walk(found)} <= known | set(few) | {"number", "variable"}
  for node in expression.walk(found):
    assert node.token != "pow" or node.args[1].is_number


@settings(max_examples=100)
@given(UNITS, texts, texts)
def test_crossover_keeps_what_it_does_not_replace(units, parent, donor):
  """The child is the parent without one subtree, and with one of the donor's."""
  child = bag(tree(edit(draws(units), genome(parent), genome(donor), choices("crossover"))))
  first, second = parser.parse(parent, NAMES), parser.parse(donor, NAMES)
  possible = [bag(first) - bag(cut) + bag(graft)
              for cut, graft in itertools.product(expression.walk(first), expression.walk(second))]
  assert child in [*possible, bag(first)]


@settings(max_examples=100)
@given(UNITS, texts, texts)
def test_hoisting_and_deleting_only_take_away(units, parent, donor):
  before = bag(parser.parse(parent, NAMES))
  for kind in ("hoist", "delete"):
    after = bag(tree(edit(draws(units), genome(parent), genome(donor), choices(kind))))
    assert after <= before and (after < before or parent == "x")


@settings(max_examples=100)
@given(UNITS, texts, texts)
def test_inserting_adds_a_part_of_the_donor_and_leaves_the_rest(units, parent, donor):
  before, after = (bag(parser.parse(parent, NAMES)),
                   bag(tree(edit(draws(units), genome(parent), genome(donor), choices("insert")))))
  assert before <= after
  parts = [bag(part) for part in expression.walk(parser.parse(donor, NAMES))]
  new = [collections.Counter([(token, None)]) for token in ("+", "*")]
  new += [collections.Counter([("+", None), ("*", None), ("number", None)])]
  assert after == before or after - before in [part + one for part in parts for one in new]


@settings(max_examples=100)
@given(UNITS, texts)
def test_point_and_constants_leave_the_shape(units, parent):
  before = genome(parent)
  numbers = np.ones((2, SIZE), np.float32)
  arity = np.asarray(VOCAB.arity)
  point = edit(draws(units), before, before, choices("point"))
  changed = np.asarray(point.ids) != before.ids
  assert changed.sum() <= 1 and np.array_equal(arity[np.asarray(point.ids)], arity[before.ids])
  moved = edit(draws(units, numbers), before, before, choices("constants"))
  is_constant = np.asarray(VOCAB.is_constant)[before.ids]
  assert np.array_equal(moved.ids, before.ids)
  assert np.all((np.asarray(moved.values) != before.values) == is_constant)


def test_every_spot_is_reached():
  """By enumeration: a crossover of a sum with y puts it at each of its nodes but exponents, and nowhere else."""
  parent, found = "x**1.7 + sin(x)", set()
  at = list(variation._UNITS).index("spot")
  for spot in np.linspace(0, 0.999, 60):
    units = np.full(variation.NUM_UNITS, 0.2)
    units[at] = spot
    found.add(tree(edit(draws(units), genome(parent), genome("y"), choices("crossover"))))
  y, x = expression.variable(1), expression.variable(0)
  first, second = parser.parse("x**1.7", NAMES), parser.parse("sin(x)", NAMES)
  expected = {y, *(expression.Node("+", pair) for pair in (
    (y, second), (first, y), (first._replace(args=(y, first.args[1])), second), (first, second._replace(args=(y,)))))}
  assert {_rounded(node) for node in found} == {_rounded(node) for node in expected} and x not in found


def _rounded(node):
  if node.is_number:
    return expression.number(round(node.value, 4))
  return node._replace(args=tuple(map(_rounded, node.args)))


@settings(max_examples=100)
@given(UNITS, texts, texts)
def test_normalizing_leaves_terms_without_factors_and_no_bare_numbers(units, parent, donor):
  normal = normalize(edit(draws(units), genome(parent), genome(donor), choices()))
  node = tree(normal)
  terms = expression.flatten(node, "+")
  for term in terms:
    assert term.token != "neg"
    assert len(terms) == 1 or not term.is_number
  for part in expression.walk(node):  # a part without a variable is one constant
    if part.args:
      assert any(n.token == "variable" for n in expression.walk(part))


@pytest.mark.parametrize("text, bare", [
  ("2.5*x + 3.5", "x"), ("x*0.3 + 1.7*y + 4.5", "x + y"), ("x + (y + 2.5)", "x + y"), ("-x + y", "x + y"),
  ("exp(1.5 + 0.5)*x", "x"), ("2.5*(x + y)", "x + y")])
def test_normal_form_of_some_sums(text, bare):
  assert tree(normalize(genome(text))) == parser.parse(bare, NAMES)


@given(texts)
def test_what_is_fitted_is_the_sum_with_factors(text):
  """With factors one and no constant it has the genome's values; its complexity is that of the tree."""
  normal = normalize(genome(text))
  found = express(normal, choices(), OPEN)
  values = np.where((np.asarray(found.origin) < 0), 1.0, np.asarray(found.values))
  node = expression.decode(np.asarray(found.ids), values, VOCAB)
  x = np.random.default_rng(0).uniform(0.5, 2, (20, 2))
  np.testing.assert_allclose(
    expression.evaluate(node, x), expression.evaluate(tree(normal), x) + 1, rtol=1e-5)
  traits = measure(normal, choices())
  assert traits.complexity == expression.complexity(node) and traits.is_usable
  at = np.asarray(found.origin)
  assert np.array_equal(np.asarray(normal.ids)[at[at >= 0]], np.asarray(found.ids)[at >= 0])


def test_signatures_tell_formulas_apart_but_not_their_order_nor_their_constants():
  def of(text):
    return int(measure(genome(text), choices()).signature)

  for one, other in (("x + y", "y + x"), ("x*y*sin(x)", "sin(x)*(y*x)"), ("(x + y) + exp(x)", "y + (exp(x) + x)"),
                     ("sin(1.5*x)", "sin(x*2.5)")):
    assert of(one) == of(other)
  different = ["x", "y", "x + y", "x*y", "x**1.5", "sin(x)", "exp(x)", "sin(x + y)", "sin(x)*y", "sin(x*y)",
               "x/(y + 2.5)", "y/(x + 2.5)", "1/(x + y)", "1/x + y", "(x + y)*x", "x + y*x", "sin(x) + sin(y)"]
  assert len({of(text) for text in different}) == len(different)


@pytest.mark.parametrize("restrictions", [
  Restrictions(max_depth=4), Restrictions(unnested=("sin", "exp")), Restrictions(max_exponent=1.0),
  Restrictions(required=("y",)), Restrictions(forbidden=("sin",)), Restrictions(excluded=("y",))])
def test_rules_are_seen_in_what_is_fitted(restrictions):
  rule = restrictions.for_columns(NAMES)
  grammar, kept = grammar_lib.make_grammar(rule, VOCAB), []
  for text in [*TEXTS, "sin(exp(x))", "y*sin(x + sin(y))"]:
    normal = jax.tree.map(lambda a: a[None], normalize(genome(text)))
    found = variation.express_many(normal, choices(), grammar, vocab=VOCAB, size=48, has_rules=True)
    ids, [is_allowed] = np.asarray(found.ids[0]), np.asarray(found.is_allowed)
    node = expression.decode(ids, np.where(ids > 0, 0.5, 0), VOCAB)
    assert bool(is_allowed) == rule(node), text
    kept.append(bool(is_allowed))
  assert any(kept) and not all(kept)


def test_children_of_a_population_are_many_and_a_key_fixes_them():
  stock = Genome(*(np.stack(arrays) for arrays in zip(*map(genome, TEXTS), strict=True)))
  shares = np.full(len(TEXTS), 1 / len(TEXTS), np.float32)
  shares[0] = 0
  kwargs = {"num": 200, "num_edits": 2, "vocab": VOCAB, "size": 48}

  def breed(seed):
    return jax.tree.map(np.asarray, variation.breed(
      jax.random.key(seed), stock, shares, shares, np.float32(0.4), choices(), **kwargs))

  (genomes, traits, parents), (again, _, _), (other, _, _) = breed(0), breed(0), breed(1)
  assert np.array_equal(genomes.ids, again.ids) and not np.array_equal(genomes.ids, other.ids)
  assert 0 not in parents and len(np.unique(parents)) == len(TEXTS) - 1
  assert len(np.unique(traits.signature)) > 50
  for ids, values in zip(*genomes, strict=True):
    tree(Genome(ids, values))


# --- the first look -----------------------------------------------------------------------------------------------


@given(texts)
def test_projection_is_least_squares_over_the_terms(text):
  rng = np.random.default_rng(1)
  x, weights = rng.uniform(0.5, 2, (40, 2)), rng.uniform(0.2, 1, 40)
  y = np.sin(3 * x[:, 0]) + x[:, 1]
  normal = normalize(genome(text))
  with jax.enable_x64(True):
    one = Genome(np.asarray(normal.ids)[None], np.asarray(normal.values, np.float64)[None])
    found, other = (jax.tree.map(lambda a: np.asarray(a)[0], projection.project_many(
      one, x, y, weights, vocab=VOCAB, plan=plan)) for plan in ("loop", "vmap"))
  terms = expression.flatten(tree(normal), "+")
  design = np.column_stack([*(expression.evaluate(term, x) for term in terms), np.ones(40)])
  root = np.sqrt(weights)
  solution = np.linalg.lstsq(root[:, None] * design, root * y, rcond=None)[0]
  mean = np.average(y, weights=weights)
  expected = np.average((design @ solution - y) ** 2, weights=weights) / np.average((y - mean) ** 2, weights=weights)
  assert found.loss == pytest.approx(expected, rel=1e-5) and other.loss == pytest.approx(found.loss, rel=1e-9)
  assert [*found.factors[: len(terms)], found.constant] == pytest.approx(solution, rel=1e-4)


def test_projection_sees_no_row_without_weight_and_no_undefined_formula():
  x = np.linspace(-1, 2, 30)[:, None] * np.ones((1, 2))
  y, weights = x[:, 0] ** 2, (x[:, 0] > 0).astype(float)
  y[weights == 0] = 1e3
  with jax.enable_x64(True):
    found = Genome(*(np.stack(arrays) for arrays in zip(*map(genome, ("x**2", "x**1.5", "y")), strict=True)))
    found = found._replace(values=found.values.astype(np.float64))
    loss, everywhere = (np.asarray(projection.project_many(found, x, y, w, vocab=VOCAB, plan="loop").loss)
                        for w in (weights, np.ones(30)))
  assert loss[0] < 1e-12 < loss[1] < loss[2]
  assert np.isinf(everywhere[1]) and np.isfinite(everywhere[0])
