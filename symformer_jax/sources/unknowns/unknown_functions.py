"""Formulas for unknown functions of one column, of which the values at some places are known.

What is left of a question of several columns once its structure is seen: tables of one column, for which sums of
library columns, fractions and waves are looked for as for any such table, and fitted in one call.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
import dataclasses
import functools
import itertools
import math
import operator
from typing import NamedTuple

import numpy as np

from symformer_jax.engine import interruption, refine
from symformer_jax.engine.config import FormsConfig, Search, SearchConfig
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.task import Task
from symformer_jax.language import programs
from symformer_jax.language.expression import Node, chain, number, variable, with_columns
from symformer_jax.language.rules import Rule
from symformer_jax.language.tidy import tidy
from symformer_jax.selection.idle_parts import without_idle_parts
from symformer_jax.sources.curves import two_constants
from symformer_jax.sources.fractions import rationals
from symformer_jax.sources.in_turn import in_turn
from symformer_jax.sources.sums import library, terms
from symformer_jax.sources.unknowns import plain_functions


class Tabulated(NamedTuple):
  """A function of one column: its values at the places [P], and what their mean square error may be."""

  values: np.ndarray
  error: float


def places_of(x: np.ndarray, num: int) -> np.ndarray:
  """Of the values of a column [N] so many different ones at most, in order."""
  distinct = np.unique(x)
  return distinct[np.linspace(0, len(distinct) - 1, min(num, len(distinct))).round().astype(int)]


class Table:
  """Where functions of one column are known, and the library for them.

  Attributes:
    places: values of the variable [P], as the rows have them.
  """

  def __init__(self, task: Task, column: int, config: SearchConfig, forms: FormsConfig):
    self.column, self._rule, self._own = column, dataclasses.replace(Rule(1), tokens=task.rule.tokens), forms
    self._config = config
    self.places = places_of(task.fit_rows.x[:, column], forms.num_places)

  @functools.cached_property
  def _atoms(self) -> library.Atoms:
    return library.Atoms(
      self.places[:, None], (0,), terms.allowed_operators(self._rule), config=self._own.library)

  def forms(self, function: Tabulated) -> list[Node]:
    """Formulas that come near a function, for constants that are still to be fitted."""
    interruption.check()
    constant = number(float(np.mean(function.values)))
    if np.ptp(function.values) == 0:
      return [constant]
    plain = [node for node in plain_functions.multiples(self.places, function.values, function.error, self._own)
             if self._rule(node)]
    if plain:
      return plain
    rows = self._rows(function)
    sums, waves, fractions = _near(rows, self._atoms, ("y",), self._own.searches, self._rule, self._config, self._own)
    found = dict.fromkeys([constant, *waves, *sums, *fractions, *self._with_inner_constants(rows)])
    return [node for node in found if self._rule(node) and programs.size(node) <= programs.MAX_TOKENS]

  def _with_inner_constants(self, rows: Rows) -> Iterator[Node]:
    """Powers of sums and sums of two functions, of which all have more constants than few places tell."""
    own, config = self._own, self._config.two_constants
    if len(self.places) >= own.least_places:
      yield from itertools.islice(two_constants.powers_of_sums(rows, 0, self._rule, config), own.num_powers)
      yield from itertools.islice(two_constants.sums_of_two(rows, 0, self._rule, config), own.num_pairs)

  def _rows(self, function: Tabulated) -> Rows:
    return Rows(self.places[:, None], function.values, np.ones(len(self.places)))

  def task(self, function: Tabulated) -> Task:
    """The function as a data set by itself."""
    return Task(self._rows(function), self._rows(function), ("x",), self._rule, (0,), float(np.var(function.values)),
                self._own.num_places)


def forms_of(rows: Rows, rule: Rule, config: SearchConfig, forms: FormsConfig) -> Iterator[Node]:
  """Formulas that come near a table of one column, also such that are functions of sums, the nearest of each kind in
  turn.

  Args:
    rows: the table, x [N, 1]; rule: whose operators formulas may have.
  """
  own = dataclasses.replace(Rule(1), tokens=rule.tokens)
  some = rows.sample(config.terms.num_rows, seed=0)
  atoms = library.Atoms(some.x, (0,), terms.allowed_operators(own), config=forms.library)
  return in_turn(_near(rows, atoms, config.terms.links, forms.searches[:2], own, config, forms))


def _near(
  rows: Rows, atoms: library.Atoms, links: Sequence[str], searches: Sequence[Search], rule: Rule, config: SearchConfig,
  forms: FormsConfig,
) -> tuple[list[Node], list[Node], list[Node]]:
  """Sums of library columns, waves and fractions that come near a table of one column."""
  short = dataclasses.replace(config, terms=dataclasses.replace(config.terms, num_fitted=forms.num_sums))
  sums = terms.sums_of(atoms, rows, links=links, searches=searches, rule=rule, config=short)
  return sums, _waves(rows, forms), rationals.rationals_of(rows, (0,), rule=rule, config=forms.rationals)


def _waves(rows: Rows, config: FormsConfig) -> list[Node]:
  """Waves of one length each, with a phase and a constant, that come nearest."""
  x, found = rows.x[:, 0], []
  for rate in np.pi / 4 / np.ptp(x) * np.arange(1, config.num_waves + 1):
    design = np.column_stack([np.cos(rate * x), np.sin(rate * x)])
    a, b, constant = terms.least_squares(design, rows.y, rows.weights)
    error = np.mean((design @ (a, b) + constant - rows.y) ** 2)
    wave = Node("cos", (chain("+", [Node("*", (variable(0), number(rate))), number(-math.atan2(b, a))]),))
    found.append((float(error), chain("+", [Node("*", (wave, number(math.hypot(a, b)))), number(float(constant))])))
  return [node for _, node in sorted(found, key=lambda each: each[0])[: config.num_fitted_waves]]


def find_forms(
  asked: Sequence[tuple[Table, Tabulated]], options: SearchOptions, config: FormsConfig
) -> list[list[tuple[float, Node]]]:
  """For each function the shortest descriptions in its column, with what they cost in nats."""
  tasks = [table.task(function) for table, function in asked]
  forms = [table.forms(function) for table, function in asked]

  def fitted(some: Sequence[Sequence[Node]], steps: int) -> list[list[tuple[Node, float]]]:
    return refine.fit_constants(list(zip(tasks, some, strict=True)), method=options.refine, max_steps=steps,
                                max_constants=options.config.pool.max_constants)

  def shortest(some: Sequence[list[tuple[Node, float]]], most: int, alike: int) -> list[list[tuple[float, Node]]]:
    return [_shortest(each, function, most, alike, config) for each, (_, function) in zip(some, asked, strict=True)]

  # Most are wrong, and not worth the steps that a right one needs.
  screened = shortest(fitted(forms, config.screen_steps), config.num_near, config.fits_per_form)
  known = fitted([[node for _, node in some] for some in screened], config.fit_steps)
  found = shortest(known, config.num_forms, 1)
  # Of a right one that has a term too many that one is next to nothing.
  lean = [[leaner for _, node in some if (leaner := _leaner(node, table, config)) != tidy(node)]
          for some, (table, _) in zip(found, asked, strict=True)]
  if any(lean):
    found = shortest(list(map(operator.add, known, fitted(lean, config.fit_steps))), config.num_forms, 1)
  return [[(nats, with_columns(node, {0: table.column})) for nats, node in some]
          for some, (table, _) in zip(found, asked, strict=True)]


def _leaner(node: Node, table: Table, config: FormsConfig) -> Node:
  return tidy(without_idle_parts(node, table.places[:, None], share=config.idle))


def _shortest(
  forms: Sequence[tuple[Node, float]], function: Tabulated, most: int, most_alike: int, config: FormsConfig
) -> list[tuple[float, Node]]:
  """So many in all and of each form, the shortest descriptions first; none is better than what is known of a function.
  """
  cost = functools.partial(terms.nats, num_rows=len(function.values), nats_per_node=config.nats_per_node)
  alike: Counter[tuple] = Counter()
  found = []
  for node, mse in sorted(forms, key=lambda form: form[1]):
    skeleton = programs.skeleton(node)
    alike[skeleton] += 1
    if np.isfinite(mse) and alike[skeleton] <= most_alike:
      found.append((float(cost(node, mse + config.errors_of_polynomials * function.error)), node))
  return sorted(found, key=lambda each: each[0])[:most]
