"""Rational functions as a source: P/Q with few terms, from the linear equation P(x) - y*Q(x) = 0."""

from collections.abc import Sequence
import dataclasses
import itertools
from typing import ClassVar

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import DEFAULT, RationalsConfig, SearchConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, with_columns
from symformer_jax.language.rules import Rule
from symformer_jax.sources.fractions import factoring, polynomials, rational_fits
from symformer_jax.sources.fractions.rational_bases import bases
from symformer_jax.sources.fractions.rational_fits import Equation, Fit, Fraction
from symformer_jax.sources.fractions.rational_forms import sums_of_fractions, written
from symformer_jax.sources.in_turn import in_turn
from symformer_jax.sources.links import LINKS, Link
from symformer_jax.sources.stateless import Stateless

# Columns of larger size, or smaller than its inverse, are not put into fractions: units that nobody uses.
LARGEST = 1e45


@dataclasses.dataclass(frozen=True)
class Rationals(Stateless):
  """Rational functions of y, and of functions of y, and the sums of fractions that they are."""

  config: SearchConfig = DEFAULT
  name: str = "rationals"
  turns: tuple[int, ...] = (1,)

  needs: ClassVar[tuple[str, ...]] = ("+", "*", "inv")

  def _nodes(self, question: Question, turn: int, num: int) -> list[Node]:
    task = question.task
    return rationals_of(task.fit_rows, task.columns, rule=task.rule, config=self.config.rationals)


@np.errstate(all="ignore")  # what is not finite is left out
def rationals_of(
  rows: Rows, columns: Sequence[int], *, rule: Rule, config: RationalsConfig = DEFAULT.rationals
) -> list[Node]:
  """Rational functions that come near, short and long ones in turn.

  Args:
    rows: what is fitted; columns: of x, those that formulas are made of; rule: the formulas that count.
  Returns:
    At most `RationalsConfig.num_fitted`, over all columns of the rows.
  """
  varies = rows.varying(columns)
  if not varies:
    return []
  made: list[list[Node]] = []
  for name in config.links:
    link = LINKS[name]
    interruption.check()
    if link.is_defined(rows.y) and all(map(rule.allows_operator, link.tokens)):
      x = rows.x[:, varies]
      found, is_exact = _of_link(Rows(x, rows.y, rows.weights), link, config)
      # What is under a logarithm or a root may be negative on some rows.
      made += [[node for node in some if np.isfinite(expression.evaluate(node, x)).all()] for some in found] \
        if link.tokens else found
      if is_exact:
        break
  nodes = in_turn(made)
  if varies != list(range(len(varies))):
    place = dict(enumerate(varies))
    nodes = (with_columns(node, place) for node in nodes)
  return list(itertools.islice(filter(rule, dict.fromkeys(nodes)), config.num_fitted))


def _of_link(rows: Rows, link: Link, config: RationalsConfig) -> tuple[list[list[Node]], bool]:
  """Sums of fractions, fractions by number of terms, the best of each first; and whether they are exact."""
  z, slope = link.transform(rows.y), link.derivative(rows.y)
  is_used = slope != 0  # where y says nothing of its function
  x, z, weights = rows.x[is_used], z[is_used], rows.weights[is_used] / slope[is_used] ** 2
  weights = weights / np.max(weights, initial=0.0)
  if not (len(z) and np.all(np.isfinite(z)) and np.all(weights > 0) and np.ptp(z) > 0):
    return [], False
  sizes, z_size = np.max(np.abs(x), axis=0), float(np.max(np.abs(z)))
  # Beyond, high powers of a column leave the range of numbers.
  if not np.all((sizes > 1 / LARGEST) & (sizes < LARGEST)):
    return [], False
  scaled = Rows(x / sizes, z / z_size, weights)
  # Of functions of y few are rational, and then mostly simple: one basis, and no sums of what is not exact.
  fractions = _fractions(scaled, config, None if not link.tokens else 1)
  by_size = [[link.undo(node) for each in some for node in written(each, sizes, z_size, config=config)]
             for some in fractions if some[0].num_terms <= config.max_terms]
  exact = [each for some in fractions for each in some if each.is_exact]
  is_exact = bool(exact)
  factored = [link.undo(node) for each in exact for node in _factored(each, sizes, z_size, config)]
  promising = _promising(fractions, len(z), config) if is_exact or not link.tokens else []
  sums = [[link.undo(node) for node in sums_of_fractions(each, scaled.x, scaled.y, weights, sizes, z_size, config)]
          for each in promising]
  return [*([factored] if factored else []), *sums, *by_size], is_exact


def _factored(fraction: Fraction, sizes: np.ndarray, y_size: float, config: RationalsConfig) -> list[Node]:
  """The quotient of products, where there is something to factor and coefficients tell."""
  if fraction.num_terms < config.least_factored or not _is_whole_powered(fraction):
    return []
  above = {powers: c * y_size for powers, c in polynomials.rescaled(fraction.numerator, sizes).items()}
  node = factoring.quotient(above, polynomials.rescaled(fraction.denominator, sizes), config.factoring)
  return [] if node is None else [node]


def _fractions(rows: Rows, config: RationalsConfig, num_bases: int | None = None) -> list[list[Fraction]]:
  """Different fractions, the best few of each number of terms; of bases after one that is exact there are none."""
  between, num_rows = points_between(rows.x, config), rows.num_distinct
  by_size: dict[int, list[Fit]] = {}
  for basis in bases(rows.x.shape[1], config)[:num_bases]:
    if basis.has_roots and np.min(rows.x) < 0:
      continue
    equation = Equation(basis, rows.x, rows.y, rows.weights, between, config=config)
    for size, fits in rational_fits.find(equation, config, num_rows=num_rows).items():
      by_size[size] = sorted([*by_size.get(size, []), *fits], key=lambda fit: fit.error)
    if any(fits[0].is_exact for fits in by_size.values()):
      break
  kept = rational_fits.upto_exact(by_size, config).values()
  return [some for fits in kept if (some := _best(fits, config))]


def _best(fits: Sequence[Fit], config: RationalsConfig) -> list[Fraction]:
  """The best few that differ and may be offered."""
  by_form: dict[tuple, Fraction] = {}
  for fit in fits:
    fraction = fit.fraction(config.num_reweightings)
    if fraction.is_whole or fraction.is_exact:
      by_form.setdefault(fraction.form, fraction)
    if len(by_form) == config.num_kept:
      break
  return list(by_form.values())


def points_between(x: np.ndarray, config: RationalsConfig) -> np.ndarray:
  """Points [N', D] among the rows: on lines between neighbours, or between rows drawn at random."""
  if x.shape[1] == 1:
    line = np.sort(x, axis=0)
    ends = line[:-1], line[1:]
  else:
    rows = np.random.default_rng(0).integers(0, len(x), (2, config.num_segments))
    ends = x[rows[0]], x[rows[1]]
  shares = np.arange(1, config.points_between + 1) / (config.points_between + 1)
  return np.concatenate([ends[0] + share * (ends[1] - ends[0]) for share in shares])


def _promising(fractions: Sequence[Sequence[Fraction]], num_rows: int, config: RationalsConfig) -> list[Fraction]:
  """Those that may be sums of fractions: the shortest that is exact, or those that describe y in the fewest nats."""
  may_be = [each for some in fractions for each in some if len(each.denominator) > 1 and _is_whole_powered(each)]
  exact = [each for each in may_be if each.is_exact]
  return exact[:1] or sorted(may_be, key=lambda each: rational_fits.nats(
    each.error, each.num_terms, num_rows))[: config.num_taken_apart]


def _is_whole_powered(fraction: Fraction) -> bool:
  return all(power == int(power) for powers in (*fraction.numerator, *fraction.denominator) for power in powers)
