"""Evolution as a source: genetic programming with fitted constants, for what the other sources have left.

A population of one data set is bred on the device (variation.py); what comes near by its terms alone (projection.py)
has its constants fitted by the search's own refinement, and the best of every complexity survive (population.py). It
begins with what the pool has found and with newcomers, and goes on from turn to turn; what is better than the pool's
formulas of its length goes out.
A population lives on one device: islands over several would be one more axis, and are not here.
"""

from collections.abc import Iterable, Sequence
import dataclasses
from typing import Any

import jax
import numpy as np

from symformer_jax import compilation
from symformer_jax.decoding import grammar as grammar_lib
from symformer_jax.engine import refine
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import EvolutionConfig
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.source import Proposal, Question
from symformer_jax.engine.task import Task
from symformer_jax.language import expression, interpreter, programs
from symformer_jax.language.expression import Node
from symformer_jax.refinement import solve
from symformer_jax.results import Counts
from symformer_jax.sources.evolution import population as population_lib, projection, stock, variation
from symformer_jax.sources.evolution.population import Population
from symformer_jax.sources.evolution.variation import Choices, Genome
from symformer_jax.sources.sums import terms


@dataclasses.dataclass(frozen=True, eq=False)
class State:
  """What a data set's evolution knows.

  Attributes:
    key: of the data set; never consumed, turns and generations are folded in.
    population: None before the first turn.
    tries: how often each signature was fitted.
    generation: how many there have been.
  """

  key: jax.Array
  population: Population | None = None
  tries: dict[int, int] = dataclasses.field(default_factory=dict)
  generation: int = 0


@dataclasses.dataclass(frozen=True)
class Evolution:
  """Genetic programming; it is asked once the other sources have had their turns, as long as there is budget."""

  options: SearchOptions
  name: str = "evolution"

  turns: tuple[int, ...] = ()

  def supports(self, task: Task) -> bool:
    return True

  def init(self, task: Task, key: jax.Array) -> State:
    return State(jax.random.fold_in(key, _NUMBER))

  def propose(self, questions: Sequence[Question], *, turn: int, num: int, clock: Clock) -> list[Proposal]:
    with clock.measure("evolve"):
      return [_Breeder(question.task, self.options).turn(question) for question in questions]


# Folded into the key that all sources share: any number that is none of a view's.
_NUMBER, _SEEDS = 0x65766F, 0x736565


class _Breeder:
  """The evolution of one data set: what does not change from turn to turn."""

  def __init__(self, task: Task, options: SearchOptions):
    self._task, self._options, self._config = task, options, options.config.evolution
    columns = list(task.columns)
    place = {column: i for i, column in enumerate(columns)}
    # The rule as genomes know the columns; those that do not count are none of theirs.
    self._rule = dataclasses.replace(
      task.rule, num_columns=len(columns), excluded=frozenset(),
      required=frozenset(place[column] for column in task.rule.required if column in place))
    self._units = stock.make_units(task, columns, config=self._config)
    num_columns = compilation.bucket(len(columns), refine.COLUMN_BUCKETS)
    self._vocab = programs.base_vocabulary(num_columns, has_requested=bool(task.rule.requested))
    self._weights = stock.token_weights(task.rule, self._vocab, self._units, self._config)
    self.choices = _choices(self._weights, self._vocab, self._config)
    self._has_rules = not task.rule.is_open or bool(task.rule.required)
    x, y, weights = task.padded_points(columns, num_columns)
    scales = np.pad(np.array(self._units.scales), (0, num_columns - len(columns)), constant_values=1)
    self._points = x / scales, y, weights

  def turn(self, question: Question) -> Proposal:
    """Some generations, and what is better than the pool's."""
    state, tries = question.state, dict(question.state.tries)
    key = jax.random.fold_in(jax.random.fold_in(state.key, _SEEDS), state.generation)
    if len(tries) > self._config.max_remembered:
      tries = {}
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    best = question.pool.shortlist()[: self._config.num_pool]
    bare = [found for found in (self._bare_terms(candidate.node) for candidate in best) if found]
    donors = self._donors(bare, rng)
    population = self._enroll(donors, tries, layer=0)
    if state.population is not None:
      population = self._survivors(state.population.join(population))
    population = self._survivors(population.join(self._enroll(self._pool(bare), tries, layer=1)))
    if not len(population):  # nothing that the rules allow
      return Proposal(state)
    generation = state.generation
    for generation in range(state.generation + 1, state.generation + 1 + self._config.generations):
      key = jax.random.fold_in(state.key, generation)
      population = self._survivors(population.join(self._children(key, population, donors, tries)))
      if generation % self._config.layer_generations == 0:
        population = self._survivors(population.in_layer(1))
    population = self._refitted(population)
    answers = self._answers(question, population)
    return Proposal(State(state.key, population, tries, generation), nodes=tuple(answers), counts=Counts())

  def _survivors(self, population: Population) -> Population:
    return population_lib.survivors(
      population, num_per_niche=self._config.num_per_niche, equal_loss=self._config.equal_loss)

  # --- seeds and donors -------------------------------------------------------------------------------------------

  def _bare_terms(self, node: Node) -> list[Node]:
    """Terms over genomes' columns; none of a formula of other columns."""
    is_known = self._units.knows(node) and (self._vocab.has_requested or not programs.has_requested([node]))
    return [self._units.to_genome(term) for term in stock.bare_terms(node)] if is_known else []

  def _pool(self, bare: list[list[Node]]) -> Genome:
    """The pool's formulas, as lists of their terms."""
    return self._encode(dict.fromkeys(expression.chain("+", some) for some in bare), self._config.num_pool)

  def _donors(self, bare: list[list[Node]], rng: np.random.Generator) -> Genome:
    """Whole terms of the pool, columns of the library, and random trees."""
    config, task = self._config, self._task
    from_pool = list(dict.fromkeys(term for some in bare for term in some))
    library = terms.library_of(task, self._options.config)
    num_columns = library.columns.shape[1]
    chosen = rng.choice(num_columns, min(config.num_library, num_columns), replace=False)
    columns = [term for index in chosen for term in self._bare_terms(library.node(int(index)))]
    random = stock.random_trees(rng, config.num_random, self._weights, self._vocab, config)
    parts = [self._encode(from_pool, config.num_terms), self._encode(columns, config.num_library),
             self._encode(random, config.num_random)]
    return Genome(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

  def _encode(self, nodes: Iterable[Node], num: int) -> Genome:
    """Formulas over genomes' columns as so many genomes."""
    return stock.encode(nodes, self._vocab, num=num, size=self._config.max_tokens)

  def _enroll(self, genomes: Genome, tries: dict[int, int], *, layer: int) -> Population:
    """Whole programs as part of the population."""
    num = self._config.num_children
    extra = -len(genomes.ids) % num
    ids, values = (np.pad(np.asarray(a), ((0, extra), (0, 0))) for a in genomes)
    found = population_lib.empty(self._config.max_tokens, programs.MAX_TOKENS)
    for begin in range(0, len(ids), num):
      block = Genome(ids[begin : begin + num], _single(values[begin : begin + num]))
      enrolled = variation.enroll(block, self.choices, vocab=self._vocab, size=programs.MAX_TOKENS)
      block, traits = jax.tree.map(np.asarray, enrolled)
      found = found.join(self._fit(block, traits, tries, np.full(num, layer, np.int32)))
    return found

  # --- a generation -----------------------------------------------------------------------------------------------

  @property
  def _grammar(self) -> grammar_lib.Grammar:
    return grammar_lib.make_grammar(self._rule, self._vocab)

  def _children(self, key: jax.Array, population: Population, donors: Genome, tries: dict[int, int]) -> Population:
    config = self._config
    num_places = config.num_places
    # Where there are more than places, the worst do not breed.
    excess = _excess(population.loss, population.complexity, population.group)
    index = np.sort(np.argsort(excess, kind="stable")[:num_places])
    parents, excess = population.take(index), excess[index]
    pad = num_places - len(parents)
    ids, values = (np.concatenate([np.pad(a, ((0, pad), (0, 0))), b]).astype(a.dtype)
                   for a, b in ((parents.ids, donors.ids), (parents.values, donors.values)))
    shares = np.zeros(len(ids), np.float32)
    groups = np.unique(parents.group)
    for group in groups:  # all breed alike
      own = np.flatnonzero(parents.group == group)
      fit = np.exp(-excess[own] / config.temperature)
      shares[own] = fit / (fit.sum() * len(groups))
    donor_shares = (1 - config.foreign) * shares
    is_foreign = (ids[:, 0] > 0) & (np.arange(len(ids)) >= num_places)
    donor_shares[is_foreign] = config.foreign / np.sum(is_foreign)
    genomes, traits, chosen = jax.tree.map(np.asarray, variation.breed(
      key, Genome(ids, _single(values)), shares, donor_shares, np.float32(config.more_edits), self.choices,
      num=config.num_children, num_edits=config.num_edits, vocab=self._vocab, size=programs.MAX_TOKENS))
    return self._fit(genomes, traits, tries, parents.layer[np.minimum(chosen, len(parents) - 1)])

  def _fit(
    self, genomes: Genome, traits: variation.Traits, tries: dict[int, int], layer: np.ndarray
  ) -> Population:
    """The nearest of those that have not been fitted often enough, with their constants."""
    config, group = self._config, population_lib.group_of(layer, np.asarray(traits.family))
    index, found = self._screened(genomes, traits, tries, group)
    if not len(index):
      return population_lib.empty(config.max_tokens, programs.MAX_TOKENS)
    some = Genome(*(np.pad(a[index], ((0, config.num_screened - len(index)), (0, 0))) for a in genomes))
    expressed = jax.tree.map(np.asarray, variation.express_many(
      some, self.choices, self._grammar, vocab=self._vocab, size=programs.MAX_TOKENS, has_rules=self._has_rules))
    ids, values, origin, is_allowed = (a[: len(index)] for a in expressed)
    starts = self._with_factors(values, (ids == self._vocab.first_constant_id) & (origin < 0), found)
    constants, loss = self._fit_programs(ids, starts, config.screen_steps)
    loss = np.where(is_allowed, loss, np.inf)
    # Most are wrong, and not worth the steps that a right one needs.
    excess = _excess(loss, np.asarray(traits.complexity)[index], group[index])
    near = np.sort(np.argsort(excess, kind="stable")[: config.num_near])
    constants[near], loss[near] = self._fit_programs(ids[near], constants[near], config.fit_steps)
    loss = np.where(_is_sane(constants), loss / self._task.variance, np.inf)
    return Population(
      np.asarray(genomes.ids)[index], self._of_genomes(constants, origin), loss, np.asarray(traits.complexity)[index],
      np.asarray(traits.signature)[index], np.asarray(traits.family)[index], layer[index], ids, constants, origin)

  def _of_genomes(self, constants: np.ndarray, origin: np.ndarray) -> np.ndarray:
    """Numbers at the tokens of formulas [K, M] as those at the tokens of their genomes [K, L]."""
    values = np.zeros((len(constants), self._config.max_tokens))
    row, place = np.nonzero(origin >= 0)
    values[row, origin[row, place]] = constants[row, place]
    return values

  def _refitted(self, population: Population) -> Population:
    """With further steps for those nearest the front: a right formula may lie in a long valley."""
    config = self._config
    excess = _excess(population.loss, population.complexity, population.group)
    near = np.sort(np.argsort(excess, kind="stable")[: config.num_refitted])
    constants, loss = self._fit_programs(population.programs[near], population.constants[near], config.refit_steps)
    loss = np.where(_is_sane(constants), loss / self._task.variance, np.inf)
    is_better = loss < population.loss[near]
    near, constants, loss = near[is_better], constants[is_better], loss[is_better]
    found = population.take(np.arange(len(population)))
    found.loss[near], found.constants[near] = loss, constants
    found.values[near] = self._of_genomes(constants, population.origin[near])
    return self._survivors(found)

  def _screened(
    self, genomes: Genome, traits: variation.Traits, tries: dict[int, int], group: np.ndarray
  ) -> tuple[np.ndarray, projection.Projection]:
    """Indices of those whose constants are worth a fit, and what their terms alone can do."""
    config, seen = self._config, set[tuple[int, int]]()
    usable: list[int] = []
    for i in np.flatnonzero(traits.is_usable):
      form = int(traits.signature[i]), int(group[i])
      is_short = self._rule.max_complexity is None or traits.complexity[i] <= self._rule.max_complexity
      if is_short and tries.get(form[0], 0) < config.max_tries and form not in seen:
        seen.add(form)
        usable.append(int(i))
    fresh = np.array(usable, int)
    ids = np.zeros_like(genomes.ids)
    ids[fresh] = genomes.ids[fresh]  # a program without tokens takes no time
    with jax.enable_x64(True):
      found = jax.tree.map(np.asarray, projection.project_many(
        Genome(ids, genomes.values.astype(np.float64)), *self._points, vocab=self._vocab,
        plan=interpreter.default_plan(), max_terms=config.max_terms))
    loss = found.loss[fresh]
    excess = _excess(loss, np.asarray(traits.complexity)[fresh], group[fresh])
    order = np.argsort(excess, kind="stable")[: config.num_screened]
    index = np.sort(fresh[order[np.isfinite(loss[order])]])
    for i in index:
      tries[int(traits.signature[i])] = tries.get(int(traits.signature[i]), 0) + 1
    return index, jax.tree.map(lambda a: a[index], found)

  def _with_factors(self, values: np.ndarray, is_added: np.ndarray, found: projection.Projection) -> np.ndarray:
    """The numbers of programs [K, M] with those that were added to their genomes as the terms' least squares has them.

    From zeros a first damped step would find them as well, but where terms are nearly alike not well enough: inner
    constants then leave a right place.
    """
    starts = values.astype(np.float64)
    can_scale, can_shift = (self.choices.tokens[self._vocab.ids[token]] > 0 for token in ("*", "+"))
    for row in range(len(values)):
      places = np.flatnonzero(is_added[row])
      if can_shift:
        starts[row, places[-1]], places = found.constant[row], places[:-1]
      if can_scale:
        starts[row, places] = found.factors[row, : len(places)]
    return starts

  def _fit_programs(self, ids: np.ndarray, values: np.ndarray, max_steps: int) -> tuple[np.ndarray, np.ndarray]:
    share = solve.MAX_STEPS[self._options.refine] / solve.MAX_STEPS["lm"]
    return refine.fit_programs(ids, values, self._points, vocab=self._vocab, method=self._options.refine,
                               max_steps=max(1, round(max_steps * share)),
                               max_constants=self._options.config.pool.max_constants)

  # --- what goes out ----------------------------------------------------------------------------------------------

  def _answers(self, question: Question, population: Population) -> list[Node]:
    """The front of the population, the formulas that are better than the pool's of their length first."""
    known = sorted((expression.complexity(c.node), c.mse / self._task.variance) for c in question.pool.in_order())
    lengths = np.array([length for length, _ in known])
    best = np.minimum.accumulate([loss for _, loss in known])
    better: list[Node] = []
    others: list[Node] = []
    for i in population_lib.front(population)[::-1]:
      node = stock.answer(expression.decode(population.programs[i], population.constants[i], self._vocab), self._units,
                          self._task.fit_rows)
      if not self._task.rule(node):
        continue
      at = np.searchsorted(lengths, expression.complexity(node), side="right")
      is_better = at == 0 or population.loss[i] < best[at - 1]
      (better if is_better else others).append(node)
    # Never nothing: a search that has met the data ends once a turn has made nothing simpler.
    return [*better, *others[:1]][: self._config.num_answers]


_excess = population_lib.excess_of


@np.errstate(over="ignore")
def _single(values: np.ndarray) -> np.ndarray:
  """Constants in single precision; what is beyond it is infinite, and no formula with it fits."""
  return values.astype(np.float32)


def _is_sane(constants: np.ndarray) -> np.ndarray:
  """Which formulas [K] have constants that another fit can begin with."""
  return np.all(np.isfinite(constants), axis=1) & (np.max(np.abs(constants), axis=1) < _LARGEST)


# A constant of this size is one that a fit has lost; single precision holds its square.
_LARGEST = 1e15


def _choices(weights: np.ndarray, vocab: Any, config: EvolutionConfig) -> Choices:
  """What edits choose among, those left out that no operator is allowed for."""
  arity = np.asarray(vocab.arity)
  kinds = np.array([dict(config.kinds).get(kind, 0.0) for kind in variation.KINDS])
  is_power = np.arange(vocab.size) == vocab.ids["pow"]
  if not np.any(weights[(arity == 2) & ~is_power]):
    kinds[variation.KINDS.index("insert")] = 0
  if not np.any(weights[(arity == 1) | is_power]):
    kinds[variation.KINDS.index("function")] = 0
  return Choices(*(np.asarray(a, np.float32) for a in (
    kinds, weights, config.scaled, config.redrawn, config.near, config.far)))
