"""What evolution begins with and breeds from: formulas as genomes over scaled columns, and back.

Genomes see every column in a unit of its own where its values are far from one, so that constants drawn around one are
of use; in a formula that goes out these units are constants like others.
"""

from collections.abc import Iterable, Iterator, Sequence
import dataclasses
import itertools

import numpy as np

from symformer_jax.engine.config import DEFAULT, EvolutionConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.task import Task
from symformer_jax.language import expression, programs
from symformer_jax.language.expression import Node, chain, flatten, number
from symformer_jax.language.rules import Rule
from symformer_jax.language.tidy import split_factor, tidy
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.selection import scoring
from symformer_jax.sources.evolution.variation import Genome

# Terms of a smaller share of y's range are what rounding has left of a factor 0.
NEGLIGIBLE = 1e-11


@dataclasses.dataclass(frozen=True)
class Units:
  """How columns of a task become those of genomes.

  Attributes:
    columns: of the task's x, in the order of the genomes' variables.
    scales: what each is divided by; 1 where its values are around one.
  """

  columns: tuple[int, ...]
  scales: tuple[float, ...]

  def knows(self, node: Node) -> bool:
    """Whether genomes have all columns of a formula."""
    return all(part.value in self.columns for part in expression.walk(node) if part.token == expression.VARIABLE)

  def to_genome(self, node: Node) -> Node:
    """A formula over the task's columns as one over those of genomes."""
    return self._moved(node, {column: (i, scale) for i, (column, scale) in enumerate(
      zip(self.columns, self.scales, strict=True))})

  def to_user(self, node: Node) -> Node:
    """The other way."""
    return self._moved(node, {i: (column, 1 / scale) for i, (column, scale) in enumerate(
      zip(self.columns, self.scales, strict=True))})

  def _moved(self, node: Node, places: dict[int, tuple[int, float]]) -> Node:
    if node.token == expression.VARIABLE:
      place, scale = places[node.value]
      moved = expression.variable(place)
      return moved if scale == 1 else Node("*", (moved, number(scale)))
    return node._replace(args=tuple(self._moved(arg, places) for arg in node.args))


def make_units(task: Task, columns: Sequence[int], *, config: EvolutionConfig = DEFAULT.evolution) -> Units:
  """Units of some columns of a task."""
  sizes = np.sqrt(np.average(task.fit_rows.x[:, list(columns)] ** 2, axis=0, weights=task.fit_rows.weights))
  least, largest = config.plain_sizes
  return Units(tuple(columns), tuple(
    float(size) if size > 0 and not least <= size <= largest else 1.0 for size in sizes))


def bare_terms(node: Node) -> list[Node]:
  """The terms of a sum without their factors, none of them a number."""
  parts = [split_factor(term)[0] for term in flatten(tidy(node), "+")]
  return [chain("*", list(factors)) for factors in parts if factors]


def encode(nodes: Iterable[Node], vocab: Vocabulary, *, num: int, size: int) -> Genome:
  """The first `num` formulas over genomes' columns of at most `size` tokens, as [num, size]; then padding."""
  kept = list(itertools.islice((node for node in nodes if programs.size(node) <= size), num))
  ids, values = programs.encode_programs(kept, vocab, num_programs=num, length=size)
  ids[len(kept):], values[len(kept):] = 0, 0
  return Genome(ids, values)


def token_weights(rule: Rule, vocab: Vocabulary, units: Units, config: EvolutionConfig) -> np.ndarray:
  """How often each token is written [V]; 0 for what the rule forbids."""
  weights = np.zeros(vocab.size)
  for name, weight in config.operators:
    if rule.allows_operator(name):
      weights[vocab.ids[name]] = weight
  for name in rule.requested:
    weights[vocab.ids[name]] = config.requested_weight
  weights[vocab.first_constant_id] = config.constant_weight
  allowed = [i for i, column in enumerate(units.columns) if column not in rule.excluded]
  for i in allowed:
    weights[vocab.first_variable_id + i] = 1 / len(allowed)
  return weights


def random_trees(
  rng: np.random.Generator, num: int, weights: np.ndarray, vocab: Vocabulary, config: EvolutionConfig
) -> Iterator[Node]:
  """Trees over the genomes' columns, of one node to `config.random_nodes`; operators and leaves by their weights."""
  arity = np.asarray(vocab.arity)
  for _ in range(num):
    yield _random_tree(rng, int(rng.integers(1, config.random_nodes + 1)), weights, vocab, arity, config.far)


def _random_tree(
  rng: np.random.Generator, size: int, weights: np.ndarray, vocab: Vocabulary, arity: np.ndarray, far: float
) -> Node:
  """A tree of about `size` nodes."""
  is_choice = weights * (arity == 0 if size < 2 else arity > 0 if size > 2 else arity == 1)
  if not is_choice.any():
    is_choice = weights * (arity == 0)
  token = int(rng.choice(len(weights), p=is_choice / is_choice.sum()))
  if arity[token] == 0:
    if token >= vocab.first_variable_id:
      return expression.variable(token - vocab.first_variable_id)
    return number(float(np.exp(far * rng.normal()) * rng.choice([-1, 1])))
  if vocab.tokens[token] == "pow":
    base = _random_tree(rng, size - 2, weights, vocab, arity, far)
    return Node("pow", (base, number(float(rng.uniform(-2.5, 2.5)))))
  if arity[token] == 1:
    return Node(vocab.tokens[token], (_random_tree(rng, size - 1, weights, vocab, arity, far),))
  first = int(rng.integers(1, size - 1))  # of two arguments: of more than two nodes
  return Node(vocab.tokens[token], (
    _random_tree(rng, first, weights, vocab, arity, far),
    _random_tree(rng, size - 1 - first, weights, vocab, arity, far)))


def answer(node: Node, units: Units, rows: Rows) -> Node:
  """A fitted formula of genomes' columns in the user's, in its natural form: without factors of one and numbers that
  fold, and without terms that are nothing beside y's spread.
  """
  terms = flatten(tidy(units.to_user(node)), "+")
  least = NEGLIGIBLE * np.ptp(rows.y)
  kept = [term for term in terms if not np.max(np.abs(scoring.evaluate(term, rows.x))) < least]
  return chain("+", kept or terms[:1])
