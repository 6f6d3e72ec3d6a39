"""Which line of a front to recommend, where none meets the data exactly: by rows that constants were not fitted to."""

from collections.abc import Sequence
import dataclasses
import math
from typing import Any

import numpy as np

from symformer_jax.language import expression
from symformer_jax.language.expression import VARIABLE, Node, flatten
from symformer_jax.selection import criteria, cross_validation, noise, rounding, scoring, soundness
from symformer_jax.selection.config import DEFAULT, SelectionConfig
from symformer_jax.selection.rows import Rows


@dataclasses.dataclass(frozen=True)
class Line:
  """One line of a front: a formula with constants fitted to all rows; `mse` in squared units of y."""

  node: Node
  complexity: int
  mse: float


def choose(
  lines: Sequence[Line], rows: Rows, *, num_points: float, seed: int, config: SelectionConfig = DEFAULT,
) -> int:
  """The index of the line to recommend.

  The least of  N/2 log(cross-validated error) + nats for each node and oddity: as description length has it, but what
  constants are worth is seen from rows they were not fitted to, so that their digits cost little. What noise is
  met by as well (`noise`) gives way to a constant; a constant gives way to a formula that has a cross-validated R2
  above `config.worthwhile_r2`: then the simplest within one standard error of the best.
  Args:
    lines: at least one.
    rows: all rows, at most `config.max_rows` of them are looked at. num_points: what they are worth (see
      `finalists._Judge.count_effective`).
    seed: draws rows and folds.
  """
  sample = rows.sample(config.max_rows, seed=seed)
  variance = scoring.weighted_variance(sample.y, sample.weights)
  folds = cross_validation.draw_folds(sample, config.num_folds, seed=seed)
  errors = [cross_validation.squared_errors(line.node, sample, folds) for line in lines]
  means = [float(np.average(e, weights=sample.weights)) for e in errors]
  num_columns = rows.x.shape[1]

  def length(i: int) -> float:
    if not math.isfinite(means[i]):
      return math.inf
    fit = 0.5 * num_points * math.log(means[i] / variance + criteria.NOISE_FLOOR**2)
    return fit + nats(lines[i].node, num_columns, config=config)

  constants = [i for i, line in enumerate(lines) if not soundness.has_column(line.node)]
  beyond = [i for i, line in enumerate(lines) if i not in constants and math.isfinite(means[i]) and is_beyond_chance(
    line, num_points=num_points, num_columns=num_columns, variance=variance, config=config)]
  best = min(beyond + constants or range(len(lines)), key=length)
  worthwhile = [i for i in beyond if 1 - means[i] / variance > config.worthwhile_r2]
  if best in constants and worthwhile:
    chosen = cross_validation.simplest_within_one_error(
      [errors[i] for i in worthwhile], [lines[i].complexity for i in worthwhile], sample.weights)
    return worthwhile[chosen]
  return best


def nats(node: Node, num_columns: int, *, config: SelectionConfig = DEFAULT) -> float:
  """What a formula costs to name: its nodes and digits, which columns it means, and what is odd in it."""
  named = sum(part.token == VARIABLE for part in expression.walk(node))
  further_digits = rounding.count_digits(node) - len(rounding.fitted_values(node))
  return (config.nats_per_node * expression.complexity(node) + config.nats_per_digit * further_digits
          + named * math.log(num_columns) + config.odd_nats * num_oddities(node))


def num_oddities(node: Node) -> int:
  """Columns in exponents and waves of several columns."""
  return soundness.num_column_exponents(node) + sum(
    len(soundness.columns_of(wave)) > 1 for wave in soundness.waves(node))


def is_beyond_chance(
  line: Line, *, num_points: float, num_columns: int, variance: float, config: SelectionConfig = DEFAULT
) -> bool:
  """See `noise.is_beyond_chance`; every number in the tree counts as fitted, also one that came out whole."""
  numbers = sum(part.is_number for part in expression.walk(line.node))
  return noise.is_beyond_chance(
    mse=line.mse, variance=variance, num_points=num_points, num_constants=numbers, complexity=line.complexity,
    num_columns=num_columns, line_columns=len(soundness.columns_of(line.node)) if is_linear(line.node) else 0,
    config=config)


def is_linear(node: Node) -> bool:
  """Whether a formula is a sum of columns times numbers, and a number: what least squares fits."""
  def is_term(term: Node) -> bool:
    factors = flatten(term.args[0] if term.token == "neg" else term, "*")
    return all(f.token == VARIABLE or f.is_number for f in factors) and sum(not f.is_number for f in factors) <= 1
  return all(map(is_term, flatten(node, "+")))


def simplest_good(front: Sequence[Any], best: Any, *, config: SelectionConfig = DEFAULT) -> Any:
  """The line to take where the recommended one is long: the simplest that leaves no more than `config.simple_share`
  of the variance unexplained, or `config.simple_factor` times as much as the recommended one.

  Args:
    front: lines with `complexity` and `r2`, such as `results.Equation`; best: the recommended one, of them.
  """
  if best.r2 is None:
    return best
  allowed = max(config.simple_share, config.simple_factor * (1 - best.r2))
  simpler = (line for line in front if line.r2 is not None and line.complexity < best.complexity)
  good = [line for line in simpler if 1 - line.r2 <= allowed]
  return min(good, key=lambda line: (line.complexity, -line.r2), default=best)
