"""Genomes: every edit, the normal form, what is fitted and what is known of it, against the same done with trees."""

import functools
import itertools
from typing import NamedTuple

import jax
import numpy as np
import pytest

from symformer_jax.decoding import grammar as grammar_lib
from symformer_jax.language import expression, operators, parser, programs
from symformer_jax.language.rules import Restrictions
from symformer_jax.sources.evolution import projection, variation
from symformer_jax.sources.evolution.variation import KINDS, Choices, Draws, Genome

SIZE, WIDE, NAMES = 12, 14, ("x", "y")
VOCAB = programs.base_vocabulary(2)
ALL = {"+": 1.0, "*": 0.5, "pow": 0.25, "inv": 0.5, "neg": 0.25, "sin": 0.5, "exp": 0.25, "C": 0.5, "x0": 0.5,
       "x1": 0.25}
SOME_ALLOWED = (ALL, ALL, *({token: share for token, share in ALL.items() if token not in without} for without in (
  ("*",), ("+",), ("+", "*"), ("pow", "sin"), ("C", "x0", "neg"))))
TEXTS = ("x", "x*y", "sin(1.5*x)", "x + y", "x/(y + 2.5)", "exp(x)*y + x", "x**1.7 + y", "(x + 0.7*y)**2",
         "sin(x + y)*exp(x)", "1.5*x*y + x", "2.5*x + 3.5", "-x + y", "exp(1.5 + 0.5*x)*x", "3*(x + y)", "x - 2*y",
         "x**2.2*3.5 + 1.5", "log(sqrt(x)) + 0.5", "arctan(tan(y))", "x + y + 2.5 + x*y", "sin(x + sin(y))**1.5",
         "0.3 + (0.2 + x)", "-(x*y)", "(1.5 + 0.5)*x", "y*(0.3 + 0.4)", "sin(0.3*0.7)*x + 0.1*0.9")


class Tree(NamedTuple):
  """A program as a tree: every node's token, the number at a constant, its arguments."""

  token: str
  value: float
  args: tuple["Tree", ...]


def tree_of(ids, values):
  """The tree, if it is a whole program followed by padding; an error otherwise."""
  ids, values = np.asarray(ids), np.asarray(values)

  def read(place):
    token, args, after = VOCAB.tokens[ids[place]], [], place + 1
    for _ in range(VOCAB.arity[ids[place]]):
      arg, after = read(after)
      args.append(arg)
    return Tree(token, float(values[place]), tuple(args)), after
  found, end = read(0)
  assert not ids[end:].any() and not values[end:].any()
  return found


def walk(tree):
  yield tree
  for arg in tree.args:
    yield from walk(arg)


def spots(tree, is_exponent=False):
  """`(node, whether it is an exponent)` in the order of the program."""
  yield tree, is_exponent
  for i, arg in enumerate(tree.args):
    yield from spots(arg, tree.token == "pow" and i == 1)


def with_node(tree, place, new):
  """The tree with another one in the place of a node, counted in the order of the program."""
  if place == 0:
    return new
  args, begin = list(tree.args), 1
  for i, arg in enumerate(args):
    size = len(list(walk(arg)))
    if begin <= place < begin + size:
      args[i] = with_node(arg, place - begin, new)
    begin += size
  return tree._replace(args=tuple(args))


def leaf(token, value=0.0):
  return Tree(token, value, ())


def has_variable(tree):
  return any(node.token.startswith("x") for node in walk(tree))


def pick(unit, possible):
  return possible[min(int(np.float32(unit) * np.float32(len(possible))), len(possible) - 1)] if possible else 0


def pick_weighted(unit, shares):
  """One token by its share; of none the padding."""
  shares, total = [(token, share) for token, share in shares if share > 0], sum(share for _, share in shares)
  ends = np.cumsum([share for _, share in shares])
  return next((token for (token, _), end in zip(shares, ends, strict=True) if unit * total < end),
              shares[-1][0] if shares else "pad")


def edited(units, of_tokens, numbers, parent, donor, choices):
  """What `variation.edit` is to make, with trees."""
  units = variation._Units(*units)
  allowed = [(token, choices.tokens[VOCAB.ids[token]]) for token in VOCAB.tokens]
  arity = dict(zip(VOCAB.tokens, VOCAB.arity, strict=True))
  kind = pick_weighted(units.kind, list(zip(KINDS, choices.kinds, strict=True)))
  drawn = np.where(np.isin(np.floor(4 * of_tokens), (0, 2)), 1, -1) * np.exp(choices.far * numbers[0])
  moved = np.exp(choices.near * numbers[1])
  nodes = [node for node, _ in spots(parent)]
  is_open = [not is_exponent for _, is_exponent in spots(parent)]
  open_places = [i for i, ok in enumerate(is_open) if ok]
  if kind == "constants":
    new = parent
    for i, node in enumerate(nodes):
      if node.token == "C":
        is_redrawn = 4 * of_tokens[i] % 1 < choices.redrawn
        new = with_node(new, i, leaf("C", drawn[i] if is_redrawn else node.value * moved[i]))
    return new
  if kind == "point":
    place = pick(units.spot, open_places)
    old = nodes[place]
    alike = [(token, share) for token, share in allowed
             if arity[token] == len(old.args) and token not in (old.token, "pow")]
    if not any(share > 0 for _, share in alike):
      return parent
    token = pick_weighted(units.token, alike)
    return with_node(parent, place, Tree(token, drawn[place] if token == "C" else 0.0, old.args))
  if kind == "insert":
    for i, node in enumerate([node for node, _ in spots(donor)]):
      if node.token == "C":
        donor = with_node(donor, i, leaf("C", node.value * moved[i]))
  donor_nodes = [node for node, _ in spots(donor)]
  shrinks = kind in ("hoist", "delete")
  is_term = kind == "insert" and units.is_term < 0.5
  possible = [i for i in open_places if not shrinks or nodes[i].args]
  if not possible:
    return parent
  place = 0 if is_term else pick(units.spot, possible)
  old = nodes[place]
  given = donor if is_term or units.is_whole < 0.5 else donor_nodes[
    pick(units.given, [i for i, (_, is_exponent) in enumerate(spots(donor)) if not is_exponent])]
  if kind == "crossover":
    new = given
  elif kind == "hoist":
    size = len(list(walk(old)))
    new = nodes[pick(units.hoisted, [i for i in range(place + 1, place + size) if is_open[i]])]
  elif kind == "delete":
    new = old.args[1] if len(old.args) == 2 and old.token != "pow" and units.argument < 0.5 else old.args[0]
  elif kind == "function":
    token = pick_weighted(units.function, [each for each in allowed if arity[each[0]] == 1 or each[0] == "pow"])
    new = Tree(token, 0.0, (old, leaf("C", drawn[5])) if token == "pow" else (old,))
  else:
    share_of = dict(allowed)
    token = pick_weighted(units.binary, [each for each in allowed if arity[each[0]] == 2 and each[0] != "pow"])
    token = "+" if is_term and share_of["+"] > 0 else token
    is_scaled = token == "+" and not is_term and share_of["*"] > 0 and units.is_scaled < choices.scaled
    new = Tree(token, 0.0, (Tree("*", 0.0, (leaf("C", drawn[2]), given)) if is_scaled else given, old))
  child = with_node(parent, place, new)
  return child if len(list(walk(child))) <= SIZE else parent


def folded(tree):
  """With a constant for every part without a variable."""
  if not has_variable(tree):
    return leaf("C", 1.0) if tree.args else tree
  return tree._replace(args=tuple(map(folded, tree.args)))


def normal(tree):
  """What `variation.normalize` is to make of a tree that has a variable."""
  if tree.token == "+":
    first, second = tree.args
    if not has_variable(first):
      return normal(second)
    return normal(first) if not has_variable(second) else Tree("+", 0.0, (normal(first), normal(second)))
  if tree.token == "*" and not all(map(has_variable, tree.args)):
    return folded(next(arg for arg in tree.args if has_variable(arg)))
  return folded(tree.args[0] if tree.token == "neg" else tree)


def terms_of(tree):
  return [term for arg in tree.args for term in terms_of(arg)] if tree.token == "+" else [tree]


def with_factors(tree, scales):
  if tree.token == "+":
    return tree._replace(args=tuple(with_factors(arg, scales) for arg in tree.args))
  return Tree("*", 0.0, (tree, leaf("C"))) if scales else tree


def genome(text, size=SIZE):
  ids, values = programs.encode_programs([parser.parse(text, NAMES)], VOCAB, num_programs=1, length=size)
  return Genome(ids[0], values[0].astype(np.float32))


def stacked(some):
  return jax.tree.map(lambda *arrays: np.stack(arrays), *some)


def shares_of(allowed):
  found = np.zeros(VOCAB.size, np.float32)
  for token, share in allowed.items():
    found[VOCAB.ids[token]] = share
  return found


NUM = 1200


@pytest.fixture(scope="module")
def bred():
  """What is drawn for many edits, and what they make: children, their normal forms, what is fitted, their traits."""
  rng = np.random.default_rng(0)
  fine = rng.uniform(0, 1, (NUM, variation.NUM_UNITS))
  # Half of them lie on boundaries, which are exact in single precision.
  units = np.where(rng.random(fine.shape) < 0.5, np.floor(8 * fine) / 8, fine).astype(np.float32)
  fine = rng.uniform(0, 1, (NUM, SIZE))
  of_tokens = np.where(rng.random(fine.shape) < 0.5, np.floor(8 * fine) / 8, fine).astype(np.float32)
  draws = Draws(units, of_tokens, rng.normal(size=(NUM, 2, SIZE)).astype(np.float32))
  kinds = np.array([each for i in range(len(KINDS)) for each in (
    np.eye(len(KINDS))[i], np.where(np.arange(len(KINDS)) < i, 0.0, 0.125))], np.float32)
  kinds = kinds[rng.integers(0, len(kinds), NUM)]
  allowed = np.stack([shares_of(each) for each in SOME_ALLOWED])[rng.integers(0, len(SOME_ALLOWED), NUM)]
  has_binary = allowed[:, [VOCAB.ids["+"], VOCAB.ids["*"]]].any(axis=1)
  kinds[~has_binary] = np.where(np.array(KINDS) == "insert", 0, kinds[~has_binary] + 0.125)  # as who asks does
  choices = Choices(kinds, allowed, *(np.full(NUM, value, np.float32) for value in (0.5, 0.25, 0.4, 0.8)))
  genomes = [genome(text) for text in TEXTS if programs.size(parser.parse(text, NAMES)) <= SIZE]
  parents, donors = (stacked([genomes[i] for i in rng.integers(0, len(genomes), NUM)]) for _ in range(2))

  def of_one(draws, parent, donor, choices):
    child = variation.edit(draws, parent, donor, choices, vocab=VOCAB)
    bare = variation.normalize(child, vocab=VOCAB)
    return child, bare, variation.measure(bare, choices, vocab=VOCAB, size=WIDE), variation.express(
      bare, choices, None, vocab=VOCAB, size=WIDE, has_rules=False)
  made = jax.tree.map(np.asarray, jax.jit(jax.vmap(of_one))(draws, parents, donors, choices))
  return (draws, parents, donors, choices), *made


def of(some, i):
  return jax.tree.map(lambda array: array[i], some)


def assert_same(found, expected):
  """Trees of the same tokens, and of the same numbers but for rounding."""
  assert [node.token for node in walk(found)] == [node.token for node in walk(expected)]
  np.testing.assert_allclose([node.value for node in walk(found)], [node.value for node in walk(expected)], rtol=1e-5)


def test_every_edit_is_that_of_trees(bred):
  (draws, parents, donors, choices), children, *_ = bred
  changed = set()
  for i in range(NUM):
    (units, of_tokens, numbers), own = of(draws, i), of(choices, i)
    parent = tree_of(*of(parents, i))
    expected = edited(units, of_tokens, numbers, parent, tree_of(*of(donors, i)), own)
    assert_same(tree_of(*of(children, i)), expected)
    kind = pick_weighted(units[0], list(zip(KINDS, own.kinds, strict=True)))
    changed |= {kind} if expected != parent else set()
  assert changed == set(KINDS)


def test_normal_forms_are_those_of_trees(bred):
  _, children, bare, traits, _ = bred
  for i in range(NUM):
    child = tree_of(*of(children, i))
    if has_variable(child):
      assert_same(tree_of(*of(bare, i)), normal(child))
    else:
      assert not of(traits, i).is_usable


def test_what_is_fitted_and_known_of_a_normal_form_is_that_of_its_tree(bred):
  (_, _, _, choices), _, bare, traits, expressed = bred
  num_long = 0
  for i in range(NUM):
    if not np.any(of(bare, i).ids >= VOCAB.first_variable_id):
      assert not of(traits, i).is_usable
      continue
    tree, own, known = tree_of(*of(bare, i)), of(choices, i), of(traits, i)
    scales, shifts = own.tokens[VOCAB.ids["*"]] > 0, own.tokens[VOCAB.ids["+"]] > 0
    formula = with_factors(tree, scales)
    formula = Tree("+", 0.0, (formula, leaf("C"))) if shifts else formula
    tokens = [node.token for node in walk(formula)]
    assert known.complexity == sum(operators.BY_NAME[t].complexity if t in operators.BY_NAME else 1 for t in tokens)
    assert known.family == sum(
      (not set(names).isdisjoint(tokens)) << bit for bit, names in enumerate(variation.FAMILIES))
    assert known.is_usable == (len(tokens) <= WIDE)
    num_long += len(tokens) > WIDE
    if not known.is_usable:
      continue
    found = of(expressed, i)
    assert_same(tree_of(found.ids, found.values), formula)
    assert found.is_allowed
    from_genome = found.origin[found.origin >= 0]
    assert from_genome.tolist() == list(range(len(list(walk(tree)))))
    np.testing.assert_array_equal(found.ids[found.origin >= 0], of(bare, i).ids[from_genome])
  assert num_long > 5


def test_rules_are_asked_of_the_formula_that_is_fitted():
  rule = Restrictions(unnested=("sin",), forbidden=("tan",), max_depth=6).for_columns(NAMES)
  texts = ("x", "sin(x + sin(y))", "sin(x)*y", "tan(x)", "exp(sqrt(exp(sqrt(y))))", "exp(sqrt(y)) + x")
  some = stacked([genome(text) for text in texts])
  choices = Choices(np.ones(len(KINDS), np.float32), shares_of(ALL), *(np.float32(a) for a in (0.5, 0.25, 0.4, 0.8)))
  found = variation.express_many(
    some, choices, grammar_lib.make_grammar(rule, VOCAB), vocab=VOCAB, size=SIZE, has_rules=True)
  expected = []
  for ids, text in zip(np.asarray(found.ids), texts, strict=True):
    node = expression.decode(ids, np.where(ids > 0, 0.5, 0), VOCAB)
    assert [n.token for n in walk(tree_of(ids, 0 * ids))].count("+") == text.count("+") + 1
    expected.append(rule(node))
  assert np.asarray(found.is_allowed).tolist() == expected and True in expected and expected.count(False) > 2


def canonical(tree):
  """Equal for trees that differ in constants or in the order of sums and products alone."""
  if tree.token in "+*":
    def operands(node):
      return [each for arg in node.args for each in (operands(arg) if arg.token == tree.token else [canonical(arg)])]
    return (tree.token, *sorted(operands(tree), key=repr))
  return (tree.token, *map(canonical, tree.args))


def test_signatures_are_equal_where_formulas_are_but_for_constants_and_order(bred):
  _, _, bare, traits, _ = bred
  forms = {}
  for i in range(NUM):
    if np.any(of(bare, i).ids >= VOCAB.first_variable_id):
      forms.setdefault(int(of(traits, i).signature), set()).add(canonical(tree_of(*of(bare, i))))
  assert all(len(each) == 1 for each in forms.values())
  assert len(forms) == len({form for each in forms.values() for form in each}) > 150


def test_signatures_of_nested_sums_and_products():
  pairs = {("x + (y + sin(x))", "(sin(x) + y) + x"): True, ("x*(y*exp(x))", "(exp(x)*x)*y"): True,
           ("sin(1.5*x)", "sin(x*2.5)"): True, ("x**1.5 + y", "y + x**2.5"): True, ("(x + y)*x", "x*x + y"): False,
           ("x + x*y", "x*(x + y)"): False, ("x + x", "x"): False, ("sin(x) + exp(y)", "sin(y) + exp(x)"): False}
  ids = stacked([genome(text) for pair in pairs for text in pair]).ids
  found = jax.jit(jax.vmap(lambda ids: variation.signature(ids, variation.extents(ids, vocab=VOCAB), vocab=VOCAB)))(ids)
  assert [bool(one == other) for one, other in np.reshape(found, (-1, 2))] == list(pairs.values())


def test_bits_are_mixed_as_murmurhash_ends():
  """`fmix32` of MurmurHash3 by its definition."""
  def fmix(bits):
    bits = (bits ^ bits >> 16) * 0x85EBCA6B % 2**32
    bits = (bits ^ bits >> 13) * 0xC2B2AE35 % 2**32
    return bits ^ bits >> 16
  some = [0, 1, 2, 0x12345678, 2**32 - 1]
  found = jax.jit(variation._mix)(np.array(some, np.uint32)).tolist()
  assert found == [fmix(bits) for bits in some] and found[1] == 0x514E28B7


def test_pieces_end_to_end_are_cut_off_at_the_size():
  source = Genome(np.arange(1, 9), np.arange(1.0, 9))
  for size, expected in ((7, [3, 4, 5, 1, 8, 0, 0]), (4, [3, 4, 5, 1])):
    found, total = jax.jit(functools.partial(variation.splice, size=size))(
      source, np.array([2, 0, 0, 7]), np.array([3, 1, 0, 1]))
    assert found.ids.tolist() == found.values.tolist() == expected and total == 5


def test_what_is_picked_has_a_share_whatever_is_drawn():
  below = np.nextafter(np.float32(1), np.float32(0))
  units, shares, expected = zip((0.0, [0, 0.25, 0, 0.75], 1), (0.25, [0, 0.25, 0, 0.75], 3),
                                (below, [0.1, 0.2, 0.7, 0], 2), (1.0, [0.5, 0.5, 0, 0], 1), (0.5, [0, 0, 0, 0], 0),
                                (0.5, [2, 2, 0, 0], 1), strict=True)
  found = jax.jit(jax.vmap(variation._pick_weighted))(np.array(units, np.float32), np.array(shares, np.float32))
  assert found.tolist() == list(expected)
  units, possible, expected = zip((0.0, [0, 1, 0, 1, 1], 1), (0.5, [0, 1, 0, 1, 0], 3), (1.0, [0, 1, 0, 1, 0], 3),
                                  (below, [1, 1, 1, 0, 0], 2), (0.7, [0, 0, 0, 0, 0], 0), strict=True)
  found = jax.jit(jax.vmap(variation._pick))(np.array(units, np.float32), np.array(possible, bool))
  assert found.tolist() == list(expected)


# --- populations -----------------------------------------------------------------------------------------------------


BRED = 600


@pytest.fixture(scope="module")
def breed():
  """Children of two genomes: makes them by an edit, shares of parents and donors, and the share of second edits."""
  def of(kind, texts, *, parents=(0.5, 0.5), donors=(0.5, 0.5), more=0.0):
    kinds = np.array([name == kind for name in KINDS], np.float32)
    choices = Choices(kinds, shares_of({"+": 1.0, "sin": 1.0}), *(np.float32(a) for a in (0.5, 0.25, 0.4, 0.8)))
    genomes, traits, parents = variation.breed(
      jax.random.key(3), stacked([genome(text, 16) for text in texts]), np.array(parents, np.float32),
      np.array(donors, np.float32), np.float32(more), choices, num=BRED, num_edits=2, vocab=VOCAB, size=WIDE)
    return [tree_of(*each) for each in zip(*map(np.asarray, genomes), strict=True)], traits, np.asarray(parents)
  return of


def test_children_have_one_edit_or_more(breed):
  for more in (0.0, 0.4, 1.0):
    trees, _, _ = breed("delete", ("sin(tan(exp(sqrt(x))))",) * 2, more=more)
    lengths = np.array([len(list(walk(tree))) for tree in trees])
    assert set(lengths) == ({4} if more == 0 else {3} if more == 1 else {3, 4})
    assert np.mean(lengths == 3) == pytest.approx(more, abs=0.06)


def test_parents_and_donors_are_drawn_by_their_shares_and_each_by_itself(breed):
  trees, traits, parents = breed("crossover", ("sin(x)", "tan(y)"), parents=(0.25, 0.75), donors=(0.0, 1.0))
  assert np.mean(parents) == pytest.approx(0.75, abs=0.06)
  assert all("y" in "".join(node.token for node in walk(tree)).replace("x1", "y") for tree in trees)
  np.testing.assert_array_equal(traits.is_usable, True)
  trees, _, parents = breed("crossover", ("sin(sin(x))", "tan(tan(y))"))
  # Which parent, whose donor and which spot of three say nothing of one another.
  is_donor = np.array(["x1" in [node.token for node in walk(tree)] for tree in trees])
  lengths = np.array([len(list(walk(tree))) for tree in trees])
  for one, other in itertools.combinations((parents, is_donor, lengths), 2):
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.12
  assert 0.4 < np.mean(is_donor) < 0.6 and len(set(lengths)) == 5
  trees, _, parents = breed("insert", ("sin(sin(x))", "tan(tan(y))"), more=0.5)
  num = np.array([sum(node.token == "+" for node in walk(tree)) for tree in trees])
  is_outside = np.array([tree.token == "+" for tree in trees])
  assert abs(np.corrcoef(parents, num)[0, 1]) < 0.12 and abs(np.corrcoef(parents, is_outside)[0, 1]) < 0.12
  assert set(num) == {1, 2} and np.mean(num) == pytest.approx(1.5, abs=0.06)


def test_whether_there_is_a_second_edit_says_nothing_of_its_spot(breed):
  """Of a chain of five nodes one becomes y; then, half of the times, one of what is left."""
  trees, _, _ = breed("crossover", ("sin(tan(exp(sqrt(x))))", "y"), parents=(1.0, 0.0), donors=(0.0, 1.0), more=0.5)
  whole = 0.2 + 0.8 * 0.5 * np.mean([1 / 2, 1 / 3, 1 / 4, 1 / 5])
  assert np.mean([not tree.args for tree in trees]) == pytest.approx(whole, abs=0.06)


def test_one_key_makes_one_population_and_its_parts_differ(breed):
  (one, _, _), (other, _, _) = (breed("constants", ("sin(1.5*x)", "exp(2.5*y)*x")) for _ in range(2))
  assert one == other
  values = [node.value for tree in one for node in walk(tree) if node.token == "C"]
  assert len(set(values)) == len(values)
  is_redrawn = np.array([value < 0 for value in values])  # half of those drawn anew
  assert np.mean(is_redrawn) == pytest.approx(0.125, abs=0.05)


# --- the first look --------------------------------------------------------------------------------------------------


def test_the_first_look_is_least_squares_over_the_terms():
  rng = np.random.default_rng(0)
  x, weights = rng.uniform(0.5, 2, (30, 2)), rng.uniform(0.2, 1, 30)
  weights[:6] = 0
  x[:6, 1] = -1.0  # where nothing is asked a formula need not be defined
  y = 100 + 7 * np.sin(3 * x[:, 0]) + x[:, 1]
  texts = ("x", "sin(1.5*x) + y", "log(y) + x*y + sqrt(x)", "x/y + 3**x", "log(x - 1)", "x + y + x*y + exp(x)",
           "x + sin(x - x)", "x + x + y")
  genomes = stacked([*(genome(text, 16) for text in texts), Genome(np.zeros(16, np.int32), np.zeros(16, np.float32))])
  genomes = genomes._replace(values=genomes.values.astype(np.float64))
  with jax.enable_x64(True):
    found = jax.tree.map(np.asarray, projection.project_many(
      genomes, x, y, weights, vocab=VOCAB, plan="loop", max_terms=3))
  assert np.isinf(found.loss).tolist() == [False] * 4 + [True, True, False, False, True]
  root, used = np.sqrt(weights[6:]), x[6:]
  variance = np.average((y - np.average(y, weights=weights)) ** 2, weights=weights)
  for i in (0, 1, 2, 3, 6):
    terms = expression.flatten(parser.parse(texts[i], NAMES), "+")
    design = np.column_stack([np.ones(24), *(np.ones(24) * expression.evaluate(term, used) for term in terms)])
    solution = np.linalg.lstsq(root[:, None] * design, root * y[6:], rcond=None)[0]
    error = np.average((design @ solution - y[6:]) ** 2, weights=weights[6:]) / variance
    assert found.loss[i] == pytest.approx(error, rel=1e-8)
    factors = found.factors[i, : len(terms)]
    assert not found.factors[i, len(terms):].any()
    np.testing.assert_allclose(design @ [found.constant[i], *factors], design @ solution, rtol=1e-8)
  assert found.factors[7, 0] == pytest.approx(found.factors[7, 1], rel=1e-3)  # equal terms share their factor


def test_values_of_functions_on_request():
  vocab = programs.base_vocabulary(2, has_requested=True)
  node = parser.parse("min(tanh(x), y) + sin(x)", NAMES, expands=False)
  ids, values = programs.encode_programs([node], vocab, num_programs=1, length=SIZE)
  x = np.random.default_rng(0).uniform(0, 1, (5, 2)).astype(np.float32)
  found = jax.jit(functools.partial(projection.token_values, vocab=vocab))(
    Genome(ids[0], values[0].astype(np.float32)), x.T)
  parts = [part for part, _ in zip(expression.walk(node), ids[0], strict=False)]
  np.testing.assert_allclose(found[: len(parts)], [expression.evaluate(part, x) for part in parts], rtol=1e-5)
  assert not np.asarray(found)[len(parts):].any()


def test_where_terms_begin_and_how_many_there_are():
  texts = ("x + sin(y)", "x + sin(y) + y*x", "exp(x + y)")
  ids = np.stack([*(genome(text).ids for text in texts), np.zeros(SIZE, np.int32)])
  at, count = jax.jit(jax.vmap(functools.partial(projection.term_places, vocab=VOCAB, max_terms=2)))(ids)
  assert count.tolist() == [2, 3, 1, 0]
  for row, own in zip(ids[:3], at.tolist(), strict=False):
    tree = tree_of(row, 0 * row)
    expected = [i for i, node in enumerate(walk(tree)) if node in terms_of(tree)]
    assert own == [*expected, -1][:2]
  assert at[3].tolist() == [-1, -1]
