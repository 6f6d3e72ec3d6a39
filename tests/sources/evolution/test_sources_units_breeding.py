"""The steps of evolution by themselves: what is bred, fitted and kept, with what is compiled put aside."""

import dataclasses
from types import SimpleNamespace
import warnings

import jax
import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Candidate
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, interpreter, parser, programs
from symformer_jax.language.rules import Restrictions
from symformer_jax.refinement import solve
from symformer_jax.sources.evolution import evolution, population as population_lib, projection, stock, variation
from symformer_jax.sources.evolution.evolution import Evolution, State
from symformer_jax.sources.evolution.population import Population
from symformer_jax.sources.evolution.variation import Genome
from symformer_jax.sources.sums import terms

NAMES = ("x", "z", "w")


def parse(text):
  return parser.parse(text, NAMES)


def breeder_of(num_columns=1, *, restrictions=None, refine="lm", **changes):
  x = np.random.default_rng(0).uniform(0.5, 3, (40, num_columns))
  config = dataclasses.replace(DEFAULT, evolution=dataclasses.replace(DEFAULT.evolution, **changes))
  options = SearchOptions(config=config, refine=refine, **({"restrictions": restrictions} if restrictions else {}))
  task = make_task((x, 2 * x[:, 0] + 0.5 + x[:, -1] ** 2), NAMES[:num_columns], options)
  return evolution._Breeder(task, options)


SIZE = DEFAULT.evolution.max_tokens


def people(loss, complexity=None, *, layer=None, family=None, constants=1.0):
  """Fitted genomes whose first token tells them apart."""
  num = len(loss)
  ids = np.zeros((num, SIZE), np.int32)
  ids[:, 0] = np.arange(1, num + 1)
  whole = np.zeros((num, programs.MAX_TOKENS), np.int32)
  whole[:, 0] = ids[:, 0]
  origin = np.full(whole.shape, -1, np.int32)
  origin[:, 1] = 0
  given = [np.zeros(num, np.int32) if each is None else np.array(each, np.int32) for each in (family, layer)]
  return Population(
    ids, ids.astype(float), np.array(loss, float), np.full(num, 3) if complexity is None else np.array(complexity),
    np.arange(num, dtype=np.uint32), *given, whole, np.full(whole.shape, constants), origin)


def who(population):
  return population.ids[:, 0].tolist()


# --- what does not change from turn to turn --------------------------------------------------------------------------


def test_genomes_see_the_columns_that_count_in_units_of_their_own():
  x = np.random.default_rng(0).uniform(0.5, 3, (40, 4)) * [1, 1e6, 1, 1e-6]
  rules = Restrictions(excluded=("x1",), required=("x3",))
  options = SearchOptions(restrictions=rules)
  task = make_task((x, x[:, 0] + 1), ("x0", "x1", "x2", "x3"), options)
  assert task.columns == (0, 2, 3)
  breeder = evolution._Breeder(task, options)
  assert breeder._rule.required == {2} and not breeder._rule.excluded and breeder._rule.num_columns == 3
  points, y, weights = breeder._points
  assert points.shape == (64, 4) and not points[:, 3].any()  # of three columns a program for four
  scale = np.sqrt(np.mean(x[:, 3] ** 2))
  np.testing.assert_allclose(points[:40, :3], x[:, [0, 2, 3]] / [1, 1, scale])
  assert y[:40].tolist() == task.rows.y.tolist() and weights[40:].tolist() == [0] * 24
  assert breeder._vocab.num_variables == 4 and not breeder._vocab.has_requested


@pytest.mark.parametrize(("rules", "has_rules"), [
  (Restrictions(), False), (Restrictions(required=("x",)), True), (Restrictions(forbidden=("sin",)), True)])
def test_rules_are_looked_at_where_there_are_any(rules, has_rules):
  assert breeder_of(2, restrictions=rules)._has_rules is has_rules


def test_operators_that_no_model_knows_are_bred_where_they_are_asked_for():
  asked = breeder_of(restrictions=Restrictions(add_operators=("tanh",)))
  bend = expression.Node("tanh", (expression.variable(0),))
  node = expression.chain("*", [bend, expression.number(2.5)])
  assert asked._vocab.has_requested and asked._bare_terms(node) == [bend] and breeder_of()._bare_terms(node) == []


def test_kinds_of_edits_have_the_shares_of_the_config_and_none_where_it_names_none():
  vocab = programs.base_vocabulary(1)
  some = dataclasses.replace(DEFAULT.evolution, kinds=(("point", 0.5),))
  kinds = evolution._choices(np.ones(vocab.size), vocab, some).kinds
  assert kinds.tolist() == [0.5 if kind == "point" else 0 for kind in variation.KINDS]


def test_a_source_of_each_seed_has_draws_of_its_own():
  source = Evolution(SearchOptions())
  keys = [source.init(None, jax.random.key(seed)) for seed in (0, 0, 1)]
  data = [jax.random.key_data(state.key).tolist() for state in keys]
  assert data[0] == data[1] != data[2] and data[0] != jax.random.key_data(jax.random.key(0)).tolist()
  assert keys[0].population is None and keys[0].tries == {} and keys[0].generation == 0
  assert source.supports(None) and source.turns == ()


# --- a turn ----------------------------------------------------------------------------------------------------------


class Turn:
  """A breeder whose steps say what they were asked and make one genome each."""

  def __init__(self, monkeypatch, **changes):
    self.breeder, self.calls = breeder_of(generations=3, layer_generations=4, num_pool=2, **changes), []
    self.made = 0
    for name in ("_donors", "_pool", "_enroll", "_children", "_refitted", "_answers"):
      monkeypatch.setattr(self.breeder, name, getattr(self, name))

  def _donors(self, bare, rng):
    self.draw = rng.random()
    self.calls.append(("donors", bare))
    return "donors"

  def _pool(self, bare):
    self.calls.append(("pool", bare))
    return "pool"

  def _new(self, layer):
    self.made += 1
    made = people([2.0**-self.made], [self.made], layer=[layer])
    return dataclasses.replace(made, signature=np.array([self.made], np.uint32))

  def _enroll(self, genomes, tries, *, layer):
    self.calls.append(("enroll", genomes, layer))
    tries[len(tries)] = 1
    return self._new(layer)

  def _children(self, key, population, donors, tries):
    self.calls.append(("children", jax.random.key_data(key).tolist(), population.layer.tolist()))
    return self._new(0)

  def _refitted(self, population):
    self.calls.append(("refitted", len(population)))
    return population

  def _answers(self, question, population):
    return [parse("x")] * len(population)

  def ask(self, state, texts=("2.5*x", "sin(x) + x", "exp(x)")):
    self.calls.clear()
    pool = SimpleNamespace(shortlist=lambda: [Candidate(parse(text), 1.0) for text in texts])
    return self.breeder.turn(Question(self.breeder._task, pool, state))


def test_a_turn_begins_with_the_pool_and_newcomers_and_breeds_from_generation_to_generation(monkeypatch):
  turn, key = Turn(monkeypatch), jax.random.key(0)
  found = turn.ask(State(key))
  bare = [[parse("x")], [parse("sin(x)"), parse("x")]]  # of the first two of the pool
  assert turn.calls[:4] == [("donors", bare), ("enroll", "donors", 0), ("pool", bare), ("enroll", "pool", 1)]
  keys = [jax.random.key_data(jax.random.fold_in(key, k)).tolist() for k in (1, 2, 3)]
  assert [call[1] for call in turn.calls if call[0] == "children"] == keys
  assert [call[2] for call in turn.calls if call[0] == "children"] == [[0, 1], [0, 0, 1], [0, 0, 0, 1]]
  assert turn.calls[-1] == ("refitted", 5) and len(found.nodes) == 5
  assert found.state.generation == 3 and len(found.state.tries) == 2 and found.state.key is key
  assert len(found.state.population) == 5
  first = turn.draw
  again = turn.ask(found.state)
  assert turn.draw != first and again.state.generation == 6
  # In the fourth generation all join the elders; the first of the turn is the fourth of all.
  layers = [call[2] for call in turn.calls if call[0] == "children"]
  assert [len(each) for each in layers] == [7, 8, 9] and [sum(each) for each in layers] == [2, 8, 8]
  turn.ask(State(key))
  assert turn.draw == first


def test_tries_are_counted_anew_where_there_are_too_many(monkeypatch):
  turn = Turn(monkeypatch, max_remembered=3)
  for num, expected in ((3, 5), (4, 2)):
    tries = dict.fromkeys(range(num), 1)
    assert len(turn.ask(State(jax.random.key(0), tries=tries)).state.tries) == expected
    assert len(tries) == num


def test_where_the_rules_allow_nothing_a_turn_leaves_the_state_as_it_was(monkeypatch):
  turn = Turn(monkeypatch)
  monkeypatch.setattr(turn.breeder, "_enroll", lambda genomes, tries, *, layer: population_lib.empty(
    SIZE, programs.MAX_TOKENS))
  state = State(jax.random.key(0), generation=7)
  found = turn.ask(state)
  assert found.state is state and found.nodes == () and not any(call[0] == "children" for call in turn.calls)


# --- seeds and donors ------------------------------------------------------------------------------------------------


def num_there(genomes):
  return int(np.sum(genomes.ids[:, 0] > 0))


def decoded(genomes, vocab):
  return [expression.decode(ids, values, vocab) for ids, values in zip(genomes.ids, genomes.values, strict=True)
          if ids[0]]


def test_donors_are_terms_of_the_pool_columns_of_the_library_and_random_trees(monkeypatch):
  breeder = breeder_of(num_terms=2, num_library=3, num_random=5)
  columns = SimpleNamespace(columns=np.zeros((40, 4)), node=lambda i: parse(("x", "exp(x)", "sin(x)", "cos(x)")[i]))
  monkeypatch.setattr(terms, "library_of", lambda task, config: columns)
  bare = [[parse("x"), parse("x**2")], [parse("x"), parse("log(x)")]]
  found = breeder._donors(bare, np.random.default_rng(0))
  assert found.ids.shape == found.values.shape == (10, SIZE)
  nodes = decoded(found, breeder._vocab)
  assert nodes[:2] == [parse("x"), parse("x**2")]  # each once, no more than there is place for
  assert len(set(nodes[2:5])) == 3 and set(nodes[2:5]) <= {columns.node(i) for i in range(4)}
  assert num_there(found) == 10
  columns.columns = np.zeros((40, 2))  # fewer than places
  fewer = breeder._donors([], np.random.default_rng(0))
  assert num_there(fewer) == 7 and set(decoded(fewer, breeder._vocab)[:2]) == {parse("x"), parse("exp(x)")}
  pool = breeder._pool([[parse("x"), parse("x**2")], [parse("x"), parse("x**2")], [parse("x")]])
  assert decoded(pool, breeder._vocab) == [expression.chain("+", [parse("x"), parse("x**2")]), parse("x")]
  assert len(pool.ids) == breeder._config.num_pool


def test_whole_programs_are_enrolled_in_blocks_of_one_size(monkeypatch):
  breeder, blocks = breeder_of(num_children=4), []

  def enroll(block, choices, *, vocab, size):
    assert block.values.dtype == np.float32 and size == programs.MAX_TOKENS
    assert block.ids.shape == block.values.shape == (4, SIZE)
    return block, SimpleNamespace()
  monkeypatch.setattr(variation, "enroll", enroll)
  monkeypatch.setattr(jax.tree, "map", lambda f, tree: tree)

  def fit(genomes, traits, tries, layer):
    blocks.append((genomes.ids[:, 0].tolist(), layer.tolist()))
    return people([1.0] * len(blocks))
  monkeypatch.setattr(breeder, "_fit", fit)
  ids = np.zeros((5, SIZE), np.int32)
  ids[:, 0] = range(1, 6)
  found = breeder._enroll(Genome(ids, ids.astype(float)), {}, layer=1)
  assert blocks == [([1, 2, 3, 4], [1] * 4), ([5, 0, 0, 0], [1] * 4)] and len(found) == 3
  blocks.clear()
  breeder._enroll(Genome(ids[:4], ids[:4].astype(float)), {}, layer=0)
  assert blocks == [([1, 2, 3, 4], [0] * 4)]


def test_constants_beyond_single_precision_are_enrolled_as_infinite_without_a_word(monkeypatch):
  breeder, seen = breeder_of(num_children=4), []
  monkeypatch.setattr(variation, "enroll", lambda block, choices, *, vocab, size: seen.append(block) or (block, None))
  monkeypatch.setattr(jax.tree, "map", lambda f, tree: tree)
  monkeypatch.setattr(breeder, "_fit", lambda genomes, traits, tries, layer: people([1.0]))
  with warnings.catch_warnings():
    warnings.simplefilter("error")
    breeder._enroll(Genome(np.ones((4, SIZE), np.int32), np.full((4, SIZE), -1e300)), {}, layer=0)
  assert seen[0].values.dtype == np.float32 and np.all(np.isneginf(seen[0].values))


# --- a generation ----------------------------------------------------------------------------------------------------


def children_of(breeder, population, donors, monkeypatch, chosen):
  """What `breed` is asked, and the layers of the children."""
  asked = {}

  def breed(key, stock, shares, donor_shares, more, choices, **kwargs):
    asked.update(stock=stock, shares=shares, donor_shares=donor_shares, more=more, **kwargs)
    return None, None, np.array(chosen)
  monkeypatch.setattr(variation, "breed", breed)
  monkeypatch.setattr(jax.tree, "map", lambda f, tree: tree)
  monkeypatch.setattr(breeder, "_fit", lambda genomes, traits, tries, layer: layer)
  return asked, breeder._children(None, population, donors, {}).tolist()


def donors_of(*firsts):
  ids = np.zeros((len(firsts), SIZE), np.int32)
  ids[:, 0] = firsts
  return Genome(ids, ids.astype(float))


def test_formulas_breed_by_their_excess_over_the_front_of_their_group_all_groups_alike(monkeypatch):
  breeder = breeder_of(num_places=6, temperature=2.0, foreign=0.4)
  population = people([1e-2, 1e-2 * np.e, 1e-2 * np.e**2, 0.5], [3, 3, 4, 3], layer=[0, 0, 0, 1])
  asked, layers = children_of(breeder, population, donors_of(9, 0, 1), monkeypatch, [0, 3, 2, 8])
  fit = np.exp([0, -0.5, -1])
  expected = [*(fit / fit.sum() / 2), 0.5, 0, 0, 0, 0, 0]
  np.testing.assert_allclose(asked["shares"], expected, rtol=1e-6)
  foreign = np.array([0, 0, 0, 0, 0, 0, 0.2, 0, 0.2])  # of two donors, one of three is empty
  np.testing.assert_allclose(asked["donor_shares"], 0.6 * np.array(expected) + foreign, rtol=1e-6)
  assert asked["stock"].ids[:, 0].tolist() == [1, 2, 3, 4, 0, 0, 9, 0, 1]
  assert asked["stock"].values[:, 0].tolist() == [1, 2, 3, 4, 0, 0, 9, 0, 1]
  assert asked["stock"].ids.dtype == np.int32 and asked["stock"].values.dtype == np.float32
  assert asked["num"] == breeder._config.num_children and asked["num_edits"] == 2
  assert asked["size"] == programs.MAX_TOKENS and asked["more"] == np.float32(0.35)
  assert layers == [0, 1, 0, 1]  # a parent beyond the last is the last


def test_constants_beyond_single_precision_breed_as_infinite_without_a_word(monkeypatch):
  donors = donors_of(9, 1)
  donors.values[0, 0] = 1e300
  with warnings.catch_warnings():
    warnings.simplefilter("error")
    asked, _ = children_of(breeder_of(num_places=2), people([1e-2, 0.5]), donors, monkeypatch, [0])
  assert asked["stock"].values[:, 0].tolist() == [1, 2, np.inf, 1]


def test_where_there_are_more_than_places_the_worst_do_not_breed(monkeypatch):
  breeder = breeder_of(num_places=3)
  population = people([1e-2, 0.9, 1e-3, 0.5, 0.02], [5, 5, 9, 5, 5])
  asked, _ = children_of(breeder, population, donors_of(7), monkeypatch, [2])
  assert asked["stock"].ids[:, 0].tolist() == [1, 3, 5, 7] and np.all(asked["shares"][:3] > 0)
  same = people([0.6, 0.5] * 20)  # of equal ones the first
  assert children_of(breeder, same, donors_of(7), monkeypatch, [0])[0]["stock"].ids[:, 0].tolist() == [2, 4, 6, 7]


def genomes_of(num):
  ids = np.zeros((num, SIZE), np.int32)
  ids[:, 0] = np.arange(1, num + 1)
  return Genome(ids, np.ones((num, SIZE)))


def traits_of(num, **changes):
  traits = {"signature": np.arange(num, dtype=np.uint32), "complexity": np.full(num, 3),
            "family": np.zeros(num, np.int32), "is_usable": np.ones(num, bool)} | changes
  return variation.Traits(**{name: np.array(each) for name, each in traits.items()})


def screened(breeder, traits, tries, loss, monkeypatch, group=None):
  """Who is worth a fit, and whose terms were looked at."""
  num, looked = len(loss), []

  def project_many(genomes, *points, vocab, plan, max_terms):
    assert plan == interpreter.default_plan() and max_terms == breeder._config.max_terms
    assert genomes.values.dtype == np.float64 and jax.config.jax_enable_x64
    looked.extend(np.flatnonzero(genomes.ids[:, 0]).tolist())
    return projection.Projection(np.array(loss), np.arange(num)[:, None], np.arange(num))
  monkeypatch.setattr(projection, "project_many", project_many)
  index, found = breeder._screened(genomes_of(num), traits, tries, np.zeros(num, int) if group is None else group)
  np.testing.assert_array_equal(found.constant, index)
  assert found.loss.tolist() == [loss[i] for i in index]
  return index.tolist(), looked


def test_the_nearest_of_those_not_fitted_often_enough_are_worth_a_fit(monkeypatch):
  breeder = breeder_of(num_screened=3, max_tries=2)
  traits = traits_of(8, signature=[0, 1, 2, 0, 4, 5, 6, 7], is_usable=[1, 1, 1, 1, 0, 1, 1, 1])
  tries = {1: 2, 2: 1}
  loss = [0.5, 0.1, 0.4, 0.2, 0.3, np.inf, 0.6, 0.7]
  index, looked = screened(breeder, traits, tries, loss, monkeypatch)
  assert looked == [0, 2, 5, 6, 7]  # 1 has been fitted often enough, 3 is of the form of the first, 4 is not usable
  assert index == [0, 2, 6] and tries == {0: 1, 1: 2, 2: 2, 6: 1}
  assert screened(breeder, traits, {}, [np.inf] * 8, monkeypatch)[0] == []
  # Of two groups a form is looked at in each; where it is among the nearest it counts as tried for both.
  tries = {}
  index, looked = screened(breeder, traits, tries, loss, monkeypatch, group=np.array([0, 0, 0, 1, 0, 0, 0, 0]))
  assert looked == [0, 1, 2, 3, 5, 6, 7] and index == [1, 2, 3] and tries == {0: 1, 1: 1, 2: 1}


def test_formulas_longer_than_allowed_are_not_fitted_and_long_ones_have_to_be_better(monkeypatch):
  ruled = breeder_of(restrictions=Restrictions(max_complexity=9), num_screened=9)
  traits = traits_of(3, complexity=[9, 10, 3])
  assert screened(ruled, traits, {}, [0.1, 0.1, 0.1], monkeypatch)[0] == [0, 2]
  free = breeder_of(num_screened=2)
  assert screened(free, traits, {}, [0.1, 0.09, 0.05], monkeypatch)[0] == [1, 2]  # over the best no longer than it
  three = breeder_of(num_screened=3)
  assert screened(three, traits_of(40), {}, [0.2, 0.1] * 20, monkeypatch)[0] == [1, 3, 5]  # of equal ones the first


class Fits:
  """In place of what fits: says what it was asked, and leaves of each program what its first token says."""

  def __init__(self, breeder, monkeypatch, left):
    self.asked, self._left = [], left
    monkeypatch.setattr(breeder, "_fit_programs", self)

  def __call__(self, ids, values, max_steps):
    self.asked.append((ids[:, 0].tolist(), max_steps, values[:, 0].tolist()))
    loss = np.array([self._left[max_steps][int(token)] for token in ids[:, 0]])
    return np.full(values.shape, 1e16 if max_steps > 90 else float(max_steps)), loss


def by_token(population):
  return dict(zip(population.ids[:, 0].tolist(), population.loss.tolist(), strict=True))


def test_few_steps_for_those_worth_a_fit_and_more_for_the_nearest(monkeypatch):
  breeder = breeder_of(num_screened=6, num_near=2, screen_steps=4, fit_steps=16)
  variance = breeder._task.variance
  left = {4: {1: 4.0, 3: 2.0, 4: 3.0, 6: 0.1}, 16: {1: 1.5, 3: 0.5}}
  fits = Fits(breeder, monkeypatch, left)
  index = np.array([0, 2, 3, 5])
  monkeypatch.setattr(breeder, "_screened", lambda *asked: (index, "projection"))

  def express_many(genomes, choices, grammar, *, vocab, size, has_rules):
    assert genomes.ids.shape == (6, SIZE) and size == programs.MAX_TOKENS and has_rules is False
    ids = np.zeros((6, size), np.int32)
    ids[:, 0], ids[:, 1:4] = genomes.ids[:, 0], vocab.first_constant_id
    origin = np.full((6, size), -1, np.int32)
    origin[:, 1], origin[:, 3] = 5, 0
    return variation.Expressed(ids, np.zeros((6, size)), origin, np.array([1, 1, 1, 0, 1, 1], bool))
  monkeypatch.setattr(variation, "express_many", express_many)
  added = []
  monkeypatch.setattr(breeder, "_with_factors", lambda values, is_added, found: (
    added.append((is_added[:, :4].tolist(), found)), values)[1])
  traits = traits_of(6, family=[0, 1, 2, 3, 4, 5], complexity=[3, 4, 5, 6, 7, 8])
  found = breeder._fit(genomes_of(6), traits, {}, np.array([0, 0, 1, 0, 1, 1], np.int32))
  # 4 is worse than 3, which is shorter; 6 breaks the rules.
  assert fits.asked == [([1, 3, 4, 6], 4, [0] * 4), ([1, 3], 16, [4, 4])]
  assert added == [([[False, False, True, False]] * 4, "projection")]
  assert who(found) == [1, 3, 4, 6] and found.family.tolist() == [0, 2, 3, 5] and found.layer.tolist() == [0, 1, 0, 1]
  assert found.complexity.tolist() == [3, 5, 6, 8] and found.signature.tolist() == [0, 2, 3, 5]
  assert found.loss.tolist() == pytest.approx([1.5 / variance, 0.5 / variance, 3 / variance, np.inf])
  assert found.constants[:, 0].tolist() == [16, 16, 4, 4] and found.values[:, 5].tolist() == [16, 16, 4, 4]
  assert found.values[:, 0].tolist() == [16, 16, 4, 4]
  assert not found.values[:, 1:5].any() and not found.values[:, 6:].any()
  monkeypatch.setattr(breeder, "_screened", lambda *asked: (index[:0], "projection"))
  assert len(breeder._fit(genomes_of(6), traits, {}, np.zeros(6, np.int32))) == 0


def test_formulas_near_the_front_get_further_steps_and_keep_what_is_better(monkeypatch):
  breeder = breeder_of(num_refitted=3, refit_steps=40, num_per_niche=9)
  variance = breeder._task.variance
  population = people([0.125, 0.9, 0.25, 0.5], [3, 3, 4, 5], constants=7.0)
  fits = Fits(breeder, monkeypatch, {40: {1: 0.0625 * variance, 3: 0.5 * variance, 4: 0.5 * variance}})
  found = breeder._refitted(population)
  assert fits.asked == [([1, 3, 4], 40, [7.0] * 3)]
  assert who(found) == [1, 2, 3, 4] and found.loss.tolist() == [0.0625, 0.9, 0.25, 0.5]
  assert found.constants[:, 0].tolist() == [40, 7, 7, 7] and found.values[0, 0] == 40 and found.values[1, 0] == 2
  assert population.loss[0] == 0.125 and population.constants[0, 0] == 7  # as it was
  # Constants that a fit has lost are not kept.
  lost = breeder_of(num_refitted=3, refit_steps=99, num_per_niche=9)
  Fits(lost, monkeypatch, {99: {1: 0.0, 3: 0.0, 4: 0.0}})
  assert lost._refitted(population).loss.tolist() == [0.125, 0.9, 0.25, 0.5]
  equal = people([0.5, 0.6] * 20, range(3, 43))  # of equal ones the first
  fits = Fits(breeder, monkeypatch, {40: dict.fromkeys(range(1, 41), 0.4 * variance)})
  assert breeder._refitted(equal).loss[0] == pytest.approx(0.4) and fits.asked[0][0] == [1, 3, 5]


@pytest.mark.parametrize("method", list(solve.MAX_STEPS))
def test_steps_of_other_methods_are_as_many_as_take_as_long(method, monkeypatch):
  """Of a method that is allowed three times as many steps as Levenberg and Marquardt's three times as many."""
  breeder, asked = breeder_of(refine=method), {}
  monkeypatch.setattr(evolution.refine, "fit_programs", lambda ids, values, points, **kwargs: asked.update(
    kwargs, points=points))
  for steps in (4, 16, 40):
    breeder._fit_programs(None, None, steps)
    assert asked["max_steps"] == max(1, round(steps * solve.MAX_STEPS[method] / solve.MAX_STEPS["lm"]))
  breeder._fit_programs(None, None, 0)
  assert asked["max_steps"] == 1 and asked["method"] == method and asked["vocab"] is breeder._vocab
  assert asked["max_constants"] == DEFAULT.pool.max_constants and asked["points"] is breeder._points


def test_of_equally_near_formulas_the_first_get_more_steps(monkeypatch):
  breeder = breeder_of(num_screened=40, num_near=3, screen_steps=4, fit_steps=16)
  fits = Fits(breeder, monkeypatch, {4: {k: 1.0 + k % 2 for k in range(1, 41)}, 16: dict.fromkeys(range(1, 41), 0.5)})
  monkeypatch.setattr(breeder, "_screened", lambda *asked: (np.arange(40), None))
  whole = np.zeros((40, programs.MAX_TOKENS), np.int32)
  whole[:, 0] = range(1, 41)
  monkeypatch.setattr(variation, "express_many", lambda *asked, **how: variation.Expressed(
    whole, np.zeros(whole.shape), whole - 41, np.ones(40, bool)))
  monkeypatch.setattr(breeder, "_with_factors", lambda values, is_added, found: values)
  breeder._fit(genomes_of(40), traits_of(40), {}, np.zeros(40, np.int32))
  assert fits.asked[1][0] == [2, 4, 6]


@pytest.mark.parametrize(("forbidden", "expected"), [
  ((), [9, 1.5, 2.5, 0.25]), (("+",), [9, 1.5, 2.5, 3.5]), (("*",), [9, 8, 8, 0.25]), (("+", "*"), [9, 8, 8, 8])])
def test_factors_and_a_constant_are_put_in_where_the_rules_have_sums_and_products(forbidden, expected):
  breeder = breeder_of(restrictions=Restrictions(forbidden=forbidden))
  found = SimpleNamespace(factors=np.array([[1.5, 2.5, 3.5]]), constant=np.array([0.25]))
  values = np.array([[9.0, 8, 8, 8]])
  assert breeder._with_factors(values, np.array([[0, 1, 1, 1]], bool), found).tolist() == [expected]
  assert values.tolist() == [[9, 8, 8, 8]]


def test_a_constant_of_a_size_that_single_precision_cannot_square_is_lost():
  assert evolution._is_sane(np.array([[1e15, 0], [-0.99e15, 0]])).tolist() == [False, True]


# --- what goes out ---------------------------------------------------------------------------------------------------


def answers_of(breeder, texts, loss, known):
  nodes = [parse(text) for text in texts]
  ids, values = programs.encode_programs(nodes, breeder._vocab, num_programs=len(nodes), length=48)
  zeros = np.zeros(len(nodes), int)
  lengths = np.array([expression.complexity(node) for node in nodes])
  population = Population(ids, values, np.array(loss), lengths, zeros, zeros, zeros, ids, values, ids)
  pool = SimpleNamespace(in_order=lambda: [
    SimpleNamespace(node=parse(text), mse=left * breeder._task.variance) for text, left in known])
  return breeder._answers(SimpleNamespace(pool=pool), population)


def test_answers_are_better_than_what_the_pool_has_that_is_no_longer():
  texts = ("x", "1.5*x", "2.5*x + 0.5")
  x, sums = np.linspace(1, 2, 5)[:, None], {1.0: "x", 1.5: "1.5*x", 3.0: "2.5*x + 0.5"}

  def found(breeder, loss, known=()):
    return [sums[expression.evaluate(node, x)[0]] for node in answers_of(breeder, texts, loss, known)]
  breeder = breeder_of()
  assert found(breeder, [0.5, 0.3, 0.1]) == [*texts[::-1]]
  # As good as the pool's of its length is not better; of those that are not one goes out, the most accurate.
  assert found(breeder, [0.5, 0.25, 0.125], [("3.5*x", 0.25)]) == ["2.5*x + 0.5", "x", "1.5*x"]
  assert found(breeder, [0.5, 0.3, 0.1], [("3.5*x", 0.01), ("x", 0.02)]) == ["2.5*x + 0.5"]
  # Of several in the pool the best that is no longer counts.
  assert found(breeder, [0.6, 0.3, 0.1], [("x", 0.5), ("3.5*x", 0.25)]) == ["2.5*x + 0.5", "1.5*x"]
  assert len(found(breeder_of(num_answers=2), [0.5, 0.3, 0.1])) == 2
  ruled = breeder_of(restrictions=Restrictions(max_complexity=4))
  assert found(ruled, [0.5, 0.3, 0.1]) == ["1.5*x", "x"]


# --- populations -----------------------------------------------------------------------------------------------------


def test_a_population_of_nobody_joins_any():
  nobody = population_lib.empty(SIZE, programs.MAX_TOKENS)
  some = people([0.5, 0.2])
  for found in (nobody.join(some), some.join(nobody)):
    assert len(found) == 2 and all(
      getattr(found, field.name).dtype == getattr(some, field.name).dtype for field in dataclasses.fields(some))
  assert {len(getattr(nobody, field.name)) for field in dataclasses.fields(nobody)} == {0}
  assert nobody.values.shape == (0, SIZE) and nobody.origin.shape == nobody.constants.shape == (0, 64)


def test_families_are_told_apart_in_every_layer():
  assert 2 ** len(variation.FAMILIES) == population_lib.NUM_FAMILIES  # any set of them
  layers, families = np.divmod(np.arange(24), 8)
  assert population_lib.group_of(layers, families).tolist() == list(range(24))


def test_of_the_front_each_is_better_than_all_that_are_no_longer():
  some = people([0.5, 0.5, 0.4, 0.4, 0.3], [3, 4, 5, 6, 7])
  assert population_lib.front(some).tolist() == [0, 2, 4]


def test_losses_of_two_cells_that_touch_are_those_of_one_function():
  cell = DEFAULT.evolution.equal_loss
  for steps, expected in ((1.0, [1]), (2.0, [1, 2]), (-1.0, [2]), (-2.0, [1, 2])):
    some = people([np.exp(100.5 * cell), np.exp((100.5 + steps) * cell)], [3, 4])
    found = population_lib.survivors(some, num_per_niche=1)
    assert len(found) == len(expected)


def test_units_of_columns_that_are_bred_are_those_of_the_config():
  breeder = breeder_of(plain_sizes=(5.0, 9.0))
  assert breeder._units == stock.make_units(breeder._task, [0], config=breeder._config)
  assert breeder._units.scales[0] == pytest.approx(np.sqrt(np.mean(breeder._task.rows.x**2)))
