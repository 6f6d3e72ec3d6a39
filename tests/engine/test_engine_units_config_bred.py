"""What the default config makes of evolution, of a model's samples, of templates and of losses: how many, how long."""

import dataclasses
import math
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from scipy import optimize

from symformer_jax.engine.config import DEFAULT, evolution as evolution_config, loop, templates, transformer
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Pool
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser, programs
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.sources import guesses
from symformer_jax.sources.evolution import evolution, population as population_lib, stock, variation
from symformer_jax.sources.evolution.variation import Genome
from symformer_jax.sources.network import samples
from symformer_jax.sources.network.transformer import Transformer
from symformer_jax.templates import answer, profile

OPTIONS, EVOLUTION = SearchOptions(), DEFAULT.evolution


def nested(num_nodes):
  """A formula of so many nodes and no constant."""
  node = expression.variable(0)
  for _ in range(num_nodes - 1):
    node = expression.Node("sin", (node,))
  return node


def test_the_parts_of_the_default_are_those_of_no_arguments():
  for part, make in (
    (DEFAULT.evolution, evolution_config.EvolutionConfig), (DEFAULT.transformer, transformer.TransformerConfig),
    (DEFAULT.templates, templates.TemplatesConfig), (DEFAULT.guesses, templates.GuessesConfig),
    (DEFAULT.pool, loop.PoolConfig)):
    assert part == make()


# --- evolution -------------------------------------------------------------------------------------------------------


@pytest.fixture
def breeder():
  x = np.linspace(0.5, 3, 40)
  return evolution._Breeder(make_task((x, 2 * x + 0.5), ("x",), OPTIONS), OPTIONS)


def population_of(num, *, loss=None, complexity=None):
  """A population of so many, each of a form of its own."""
  found = population_lib.empty(24, programs.MAX_TOKENS)
  fields = {name: np.zeros((num, *getattr(found, name).shape[1:]), getattr(found, name).dtype)
            for name in (field.name for field in dataclasses.fields(found))}
  fields["loss"] = np.linspace(1, 2, num) if loss is None else np.asarray(loss, float)
  fields["complexity"] = np.zeros(num, np.int32) if complexity is None else np.asarray(complexity, np.int32)
  fields["signature"] = np.arange(num, dtype=np.uint32)
  return population_lib.Population(**fields)


def test_a_turn_is_five_generations_and_every_twentieth_lets_newcomers_join(breeder, monkeypatch):
  asked = []
  some = population_of(3, complexity=[1, 2, 3])
  monkeypatch.setattr(breeder, "_donors", lambda bare, rng: "donors")
  monkeypatch.setattr(breeder, "_enroll", lambda genomes, tries, *, layer: asked.append(layer) or some)
  monkeypatch.setattr(breeder, "_children", lambda key, population, donors, tries: asked.append("children") or some)
  monkeypatch.setattr(population_lib.Population, "in_layer", lambda self, layer: asked.append("joined") or self)
  monkeypatch.setattr(breeder, "_refitted", lambda population: asked.append("refitted") or population)
  monkeypatch.setattr(breeder, "_answers", lambda question, population: [])
  state = evolution.Evolution(OPTIONS).init(None, jax.random.key(0))
  question = SimpleNamespace(state=state, pool=Pool(1.0, 100))
  for turn in range(4):
    asked.clear()
    found = breeder.turn(question)
    question = SimpleNamespace(state=found.state, pool=question.pool)
    assert asked.count("children") == 5 and asked[-1] == "refitted"
    assert asked.count("joined") == (turn == 3) and found.state.generation == 5 * (turn + 1)
  # The count of tries begins anew beyond some hours of turns.
  for num, is_kept in ((65_536, True), (65_537, False)):
    state = dataclasses.replace(found.state, tries=dict.fromkeys(range(num), 1))
    assert bool(breeder.turn(SimpleNamespace(state=state, pool=question.pool)).state.tries) is is_kept


def test_donors_are_so_many_terms_columns_and_random_trees(breeder, monkeypatch):
  bare = [[parser.parse(f"sin({k}.5*x)", ("x",))] for k in range(99)]
  found = breeder._donors(bare, np.random.default_rng(0))
  assert found.ids.shape == found.values.shape == (64 + 64 + 192, 24)
  assert np.all(np.any(found.ids[:64], axis=1)) and np.all(np.any(found.ids[128:], axis=1))
  assert breeder._pool(bare).ids.shape == (64, 24)
  drawn = []
  monkeypatch.setattr(stock, "_random_tree", lambda rng, size, *rest: drawn.append((size, rest[-1])) or nested(1))
  list(stock.random_trees(np.random.default_rng(0), 2000, None, Vocabulary(1), EVOLUTION))
  assert {size for size, _ in drawn} == set(range(1, 8)) and {far for _, far in drawn} == {1.0}


@pytest.mark.parametrize(("num_nodes", "is_bred"), [(24, True), (25, False)])
def test_genomes_have_twenty_four_tokens(num_nodes, is_bred, breeder):
  assert bool(np.any(breeder._encode([nested(num_nodes)], 1).ids)) is is_bred


def test_children_are_bred_from_the_nearest_thousand(breeder, monkeypatch):
  asked = []

  def breed(key, genomes, shares, donor_shares, more_edits, choices, *, num, num_edits, vocab, size):
    asked.append((genomes, np.asarray(shares), np.asarray(donor_shares), float(more_edits), num, num_edits))
    return genomes, None, np.zeros(num, int)

  monkeypatch.setattr(variation, "breed", breed)
  monkeypatch.setattr(breeder, "_fit", lambda genomes, traits, tries, layer: layer)
  parents = population_of(1100, loss=np.exp(np.linspace(0, 11, 1100)))
  donors = Genome(np.ones((10, 24), np.int32), np.zeros((10, 24)))
  layer = breeder._children("key", parents, donors, {})
  (genomes, shares, donor_shares, more_edits, num, num_edits), = asked
  assert len(genomes.ids) == 1024 + 10 and (num, num_edits, len(layer)) == (2048, 2, 2048)
  assert more_edits == pytest.approx(0.35) and shares.sum() == pytest.approx(1, rel=1e-5)
  # An excess of two: 1/e times as often.
  assert np.log(shares[0] / shares[1000]) == pytest.approx(11 * 1000 / 1099 / 2, rel=1e-3)
  assert donor_shares[1024:].sum() == pytest.approx(0.5) and donor_shares[:1024].sum() == pytest.approx(0.5, rel=1e-5)


def test_of_a_niche_four_survive_and_losses_that_agree_to_a_millionth_are_one(breeder):
  assert len(breeder._survivors(population_of(9))) == 4
  for apart, num in ((1.5e-6, 2), (4e-7, 1)):
    middle = math.exp(0.5e-6)  # within a cell
    found = breeder._survivors(population_of(2, loss=[middle, middle * (1 + 2 * apart)], complexity=[1, 2]))
    assert len(found) <= num
  assert len(breeder._survivors(population_of(2, loss=[1.0, 1 + 3.5e-6], complexity=[1, 2]))) == 2
  assert len(breeder._survivors(population_of(2, loss=[1 + 1e-7, 1 + 1.9e-6], complexity=[2, 1]))) == 1


def test_the_nearest_children_are_fitted_and_nearer_ones_further(breeder, monkeypatch):
  asked = []

  def fit_programs(ids, values, points, *, vocab, method, max_steps, max_constants):
    asked.append((len(ids), max_steps, max_constants))
    return values, np.linspace(1, 2, len(ids))

  monkeypatch.setattr(evolution.refine, "fit_programs", fit_programs)
  monkeypatch.setattr(breeder, "_screened", lambda genomes, traits, tries, group: (np.arange(100), None))
  monkeypatch.setattr(breeder, "_with_factors", lambda values, is_added, found: values)
  size = programs.MAX_TOKENS

  def express(some, *given, **named):
    num = len(some.ids)
    assert num == 128  # a block that a search has compiled
    return np.zeros((num, size), np.int32), np.zeros((num, size)), np.full((num, size), -1), np.ones(num, bool)

  monkeypatch.setattr(variation, "express_many", express)
  traits = SimpleNamespace(family=np.zeros(200, np.int32), complexity=np.zeros(200, np.int32),
                           signature=np.arange(200, dtype=np.uint32))
  genomes = Genome(np.ones((200, 24), np.int32), np.zeros((200, 24)))
  found = breeder._fit(genomes, traits, {}, np.zeros(200, np.int32))
  assert asked == [(100, 4, 16), (48, 16, 16)] and len(found) == 100
  asked.clear()
  breeder._refitted(population_of(99))
  assert asked == [(64, 40, 16)]


def test_forms_are_fitted_four_times_and_one_hundred_and_twenty_eight_at_once(breeder, monkeypatch):
  asked = []

  def project(genomes, *points, vocab, plan, max_terms):
    asked.append((np.any(genomes.ids, axis=1).sum(), max_terms))
    return SimpleNamespace(loss=np.linspace(1, 2, len(genomes.ids)))

  monkeypatch.setattr(evolution.projection, "project_many", project)
  monkeypatch.setattr(evolution.jax.tree, "map", lambda function, tree: tree)
  traits = SimpleNamespace(is_usable=np.ones(300, bool), signature=np.arange(300, dtype=np.uint32),
                           complexity=np.zeros(300, np.int32))
  genomes = Genome(np.ones((300, 24), np.int32), np.zeros((300, 24)))
  tries = {0: 3, 1: 4}
  index, _ = breeder._screened(genomes, traits, tries, np.zeros(300, int))
  assert asked == [(299, 8)] and len(index) == 128 and 0 in index and 1 not in index and tries[0] == 4


def test_a_turn_hands_out_sixteen_answers(breeder, monkeypatch):
  monkeypatch.setattr(population_lib, "front", lambda population: np.arange(30))
  monkeypatch.setattr(expression, "decode", lambda *given: None)
  monkeypatch.setattr(stock, "answer", lambda *given: parser.parse("x", ("x",)))
  question = SimpleNamespace(pool=Pool(1.0, 100))
  assert len(breeder._answers(question, population_of(30))) == 16


def test_units_of_columns_that_are_far_from_one():
  for size, scale in ((0.051, 1.0), (0.049, 0.049), (19.9, 1.0), (20.1, 20.1)):
    x = np.full(40, size) * np.where(np.arange(40) % 2, 1, -1)
    task = make_task((x, np.arange(40.0)), ("x",), OPTIONS)
    assert stock.make_units(task, (0,)).scales == (pytest.approx(scale),)


def test_edits_and_constants_are_drawn_as_often_as_is_said(breeder):
  choices = breeder.choices
  shares = dict(zip(variation.KINDS, np.asarray(choices.kinds) * 100, strict=True))
  # A crossover or an insertion in eleven of twenty; one in twenty for each of what moves constants or takes away alone.
  assert sum(shares.values()) == pytest.approx(100) and shares["crossover"] + shares["insert"] == pytest.approx(55)
  assert shares["crossover"] - shares["insert"] == pytest.approx(5) == shares["hoist"] == shares["constants"]
  assert shares["point"] + shares["delete"] == pytest.approx(25)
  assert shares["delete"] - shares["point"] == pytest.approx(1)
  assert [float(each) for each in (choices.scaled, choices.redrawn, choices.near, choices.far)] == [
    0.5, 0.25, pytest.approx(0.4), 1.0]
  weights = dict(zip(breeder._vocab.tokens, breeder._weights, strict=True))
  assert breeder._weights[breeder._vocab.first_constant_id] == 0.6 and weights["+"] == weights["*"] == 1


def test_operators_are_written_about_as_often_as_the_generator_does():
  """Trigonometric functions half as often, logarithms and squares as exponentials or a little less."""
  weights = dict(EVOLUTION.operators)
  assert weights["sin"] == weights["cos"] == weights["exp"] / 2 and weights["exp"] == weights["pow2"] == 0.3
  assert weights["ln"] == weights["sqrt"] == 0.2 and weights["inv"] == 0.5 and weights["pow3"] == 0.1
  assert weights["pow"] == weights["atan"] == 0.05 and weights["tan"] == 2 * weights["neg"] == 0.02


@pytest.mark.parametrize(("operators", "weight"), [((), 0.0), (("sinh",), 0.3)])
def test_functions_that_are_asked_for_are_written_as_often_as_exponentials(operators, weight):
  vocab = programs.base_vocabulary(1, has_requested=True)
  rule = SimpleNamespace(allows_operator=lambda name: True, requested=operators, excluded=())
  found = stock.token_weights(rule, vocab, stock.Units((0,), (1.0,)), EVOLUTION)
  assert found[vocab.ids["sinh"]] == weight and found[vocab.ids["exp"]] == 0.3


# --- a model's samples -----------------------------------------------------------------------------------------------


def test_of_one_string_three_starts_are_kept():
  ids, values = np.ones((9, 4), np.int32), np.arange(36.0).reshape(9, 4)
  assert len(samples._distinct(ids, values, range(9), DEFAULT.transformer.starts_per_string)) == 3


def test_samples_that_agree_at_sixteen_points_to_five_digits_are_one(monkeypatch):
  asked, found = [], {}

  def evaluate(ids, values, points, *, vocab):
    asked.append(len(points))
    return found["values"][np.asarray(values)[:, 0].astype(int)]

  monkeypatch.setattr(samples, "_evaluate", evaluate)
  ids = np.ones((2, 4), np.int32)
  values = np.arange(2.0)[:, None] * np.ones(4)
  for apart, count in ((0.4e-5, 1), (0.6e-5, 2)):
    one = np.full(16, 0.5)
    one[0] = 1.0
    other = one.copy()
    other[5] += apart
    found["values"] = np.concatenate([[one, other], np.ones((200, 16))])
    x = np.arange(99.0)[:, None]
    kept = samples._different_in_value(ids, values, [0, 1], x, Vocabulary(1), DEFAULT.transformer)
    assert len(kept) == count
  assert set(asked) == {16}


def test_of_a_view_sixty_four_go_on_and_three_of_each_length(monkeypatch):
  monkeypatch.setattr(samples, "token_count", lambda ids: int(ids))
  source = Transformer(None, SearchOptions(config=dataclasses.replace(
    DEFAULT, pool=dataclasses.replace(DEFAULT.pool, num_donors=1))))
  scaling = SimpleNamespace(y_factor=1.0, restore=lambda node: node)
  drawn = SimpleNamespace(ids=np.array([5] * 90 + [3] * 9), loss=np.arange(1.0, 100), node=lambda lane: nested(3))
  assert len(list(source._restored(scaling, drawn, 1))) == 2 * (64 + 3)
  every = Transformer(None, OPTIONS)
  many = SimpleNamespace(ids=np.array([5] * 900), loss=np.arange(1.0, 901), node=lambda lane: nested(3))
  for num_views, donors in ((1, 512), (2, 256)):
    assert len(list(every._restored(scaling, many, num_views))) == donors + 64


# --- templates -------------------------------------------------------------------------------------------------------


class Stub(profile._Profile):
  """A profile of made up residuals."""

  def __init__(self, sizes_beside=(1.0,), num=1, best=3.0):
    self._config, self._sizes_of, self._best = DEFAULT.templates, sizes_beside, best
    self.template = SimpleNamespace(parameters=tuple("abc"[:num]))
    self._is_linear = dict.fromkeys(self.template.parameters, False)
    self.looked, self.descended = [], []

  def _sizes_beside(self, name):
    return self._sizes_of

  def _residual(self, values):
    self.looked.append(tuple(values.values()))
    return np.array([math.log(abs(each) / self._best) for each in values.values()])

  def _descend(self, names, start):
    self.num_of_grid = self.num_of_grid if self.descended else len(self.looked)
    self.descended.append(start)
    return super()._descend(names, start)

  def _with_linear(self, values):
    return values


def test_parameters_of_a_template_are_looked_for_on_a_grid():
  grid = Stub()._sizes("a", 25)
  np.testing.assert_allclose(grid, np.concatenate([-np.logspace(3, -3, 25), np.logspace(-3, 3, 25)]))
  # Of an even number of sizes none are half way between two: none is left out.
  np.testing.assert_allclose(Stub()._sizes("a", 10)[10:], np.logspace(-3, 3, 10))
  np.testing.assert_allclose(Stub((1.0, 10.0))._sizes("a", 7)[7 + 1:], np.logspace(-4, 3, 8))  # near ones once
  one = Stub()
  assert abs(one.fit()["a"]) == pytest.approx(3.0) and len(one.descended) == 4
  assert len(set(one.looked[:50])) == one.num_of_grid == 50
  two = Stub(num=2)
  two.fit()
  assert len(set(two.looked[:400])) == two.num_of_grid == 400  # ten sizes of either sign, each with each
  assert len(two.descended) == 4
  with pytest.raises(profile.InputError, match="expected at most 2 parameters"):
    Stub(num=3).fit()


def test_a_descent_takes_sixty_looks(monkeypatch):
  asked = []
  monkeypatch.setattr(optimize, "least_squares", lambda function, start, **options: asked.append(options) or (
    SimpleNamespace(cost=1.0, x=np.ones(len(start)))))
  Stub()._descend(("a",), np.array([2.0]))
  assert asked[0]["max_nfev"] == 60


def test_formulas_of_unknown_functions_are_put_together():
  part = SimpleNamespace(unknown=SimpleNamespace(name="f", columns=(0,)))
  nodes = [nested(num) for num in range(40, 2, -1)]
  for num, count in ((2, 13**2), (3, 6**3), (4, 6**4)):  # twelve of each and the simplest; of three and more five
    problem = SimpleNamespace(parts=[part] * num, values={})
    assert len(answer._combined(problem, [nodes] * num, DEFAULT.templates)) == count
  many = [parser.parse(f"sin({k}.5*x)", ("x",)) for k in range(1200)]
  found = answer._combined(SimpleNamespace(parts=[part], values={}), [many], DEFAULT.templates)
  assert len(found) == 1000


def test_constants_of_guesses_are_tried_from_many_starts_then_from_few(monkeypatch):
  asked = []
  monkeypatch.setattr(guesses.refine, "draw_fillings", lambda node, *, num: [nested(2)] * num)
  monkeypatch.setattr(guesses.engine_refine, "fit_constants", lambda some, *, method, max_steps: asked.append(
    (len(some[0][1]), max_steps)) or [[(node, 1.0) for node in some[0][1]]])
  task = SimpleNamespace(fit_rows=None)
  guesses._fill_in(parser.parse("a*x", ("x",), allow_symbols=True), task, DEFAULT.guesses)
  assert asked == [(256, 20), (8, 300)]


@pytest.mark.parametrize(("num_rows", "num_columns", "count"), [
  (300, 1, 15), (40, 1, 10), (39, 1, 9), (300, 2, 28), (120, 2, 28), (111, 2, 21), (300, 3, 20)])
def test_polynomials_of_a_template(num_rows, num_columns, count):
  """One for every four rows, thirty at most, of the fourteenth degree at most."""
  x = np.random.default_rng(0).uniform(1, 3, (num_rows, num_columns))
  assert profile.polynomials(x).shape == (num_rows, count)


def test_polynomials_are_of_the_logarithm_of_what_spans_a_decade():
  for ratio, is_log in ((9.9, False), (10.1, True)):
    x = np.linspace(1, ratio, 60)
    middle = profile.polynomials(x[:, None])[:, 1]
    assert np.allclose(np.diff(middle), np.diff(middle)[0]) is not is_log
