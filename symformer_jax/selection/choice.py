"""Which line of a front to recommend, where none meets the data exactly: by rows that constants were not fitted to."""

from collections.abc import Sequence
import dataclasses
import math
import numbers
from typing import Any

import numpy as np

from symformer_jax.engine import criteria
from symformer_jax.engine.config import DEFAULT, ChoiceConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.errors import InputError, suggest
from symformer_jax.files import shorten
from symformer_jax.language import expression
from symformer_jax.language.expression import VARIABLE, Node, flatten
from symformer_jax.selection import cross_validation, noise, scoring, soundness

# Which line of a front a user takes, by name; or its number, from 0.
RECOMMENDED, ACCURATE, SIMPLE = "recommended", "accurate", "simple"
SELECTIONS = (RECOMMENDED, ACCURATE, SIMPLE)
# Of a line's number; Python reads no integers of thousands of them.
_MAX_DIGITS = 9


@dataclasses.dataclass(frozen=True)
class Line:
  """One line of a front: a formula with constants fitted to all rows; `mse` in squared units of y."""

  node: Node
  complexity: int
  mse: float


def choose(
  lines: Sequence[Line], rows: Rows, *, num_points: float, seed: int, config: ChoiceConfig = DEFAULT.choice,
) -> int:
  """The index of the line to recommend.

  From the constant on, each longer line takes the place of the one before when both say so: its predictive
  description is shorter (see `_length`), and it is more than the best of many that would meet noise as well
  (`noise`). A constant that is left gives way to a formula with a cross-validated R2 above `config.worthwhile_r2`, if
  that is beyond chance: the simplest within one standard error of the best; where there is none, to the one that is
  nearer to most of the rows, if that is beyond doubt. No formula is taken that predicts clearly worse than a straight
  line.
  Args:
    lines: at least one.
    rows: all rows, at most `config.max_rows` of them are looked at. num_points: what they are worth (see
      `select._Judge.count_effective`).
    seed: draws rows and folds.
  """
  sample = rows.sample(config.max_rows, seed=seed)
  folds = cross_validation.draw_folds(sample, config.num_folds, seed=seed)
  errors = [cross_validation.squared_errors(line.node, sample, folds) for line in lines]
  variance = scoring.weighted_variance(sample.y, sample.weights)
  shares = [float(np.average(e, weights=sample.weights)) / variance for e in errors]
  num_columns = rows.x.shape[1]
  segments = soundness.make_segments(rows, config=config)
  oddities = [num_oddities(line.node) + _has_pole(line.node, segments, config) for line in lines]
  lengths = [_length(line, share, num_points, num_columns, odd, config)
             for line, share, odd in zip(lines, shares, oddities, strict=True)]

  def is_beyond(i: int, base: int) -> bool:
    return math.isfinite(shares[i]) and soundness.has_column(lines[i].node) and is_beyond_chance(
      lines[i], lines[base], rows, num_points=num_points, config=config)

  order = sorted(range(len(lines)), key=lambda i: (soundness.has_column(lines[i].node), lines[i].complexity))
  best = order[0]
  for i in order[1:]:
    if lengths[i] < lengths[best] and is_beyond(i, best):
      best = i
  if soundness.has_column(lines[best].node):
    return _not_below_least_squares(lines, shares, lengths, best, config)
  worthwhile = [i for i in order if 1 - shares[i] > config.worthwhile_r2 and is_beyond(i, best)]
  if not worthwhile:
    return _nearer_to_most(errors, [i for i in order if is_beyond(i, best)], best, config)
  return worthwhile[cross_validation.simplest_within_one_error(
    [errors[i] for i in worthwhile], [lines[i].complexity for i in worthwhile], sample.weights)]


def _not_below_least_squares(
  lines: Sequence[Line], shares: Sequence[float], lengths: Sequence[float], best: int, config: ChoiceConfig
) -> int:
  """The best, or, where a straight line predicts rows not seen better than that by more than `config.line_room`, the
  shortest predictive description of those that do not predict them worse by more than that.
  """
  least = min((share for line, share in zip(lines, shares, strict=True) if is_linear(line.node)), default=math.inf)
  most = least + config.line_room
  if shares[best] <= most:
    return best
  return min((i for i in range(len(lines)) if shares[i] <= most), key=lambda i: lengths[i])


def _nearer_to_most(errors: Sequence[np.ndarray], among: Sequence[int], constant: int, config: ChoiceConfig) -> int:
  """Of the lines that predict more than half of the unseen rows better than a constant does, beyond doubt, the one of
  least median error; else the constant.

  Mean squares see the largest rows alone: beside a pole one row is most of the variance, and no formula predicts it
  from the others.
  """
  least = 0.5 + 0.5 * config.sign_errors / math.sqrt(len(errors[constant]))
  nearer = [i for i in among if np.mean(errors[i] < errors[constant]) > least]
  return min(nearer, key=lambda i: float(np.median(errors[i])), default=constant)


def _length(
  line: Line, share: float, num_points: float, num_columns: int, oddities: int, config: ChoiceConfig
) -> float:
  """Predictive description length in nats: N/2 log(cross-validated share of the variance) + what the formula costs.

  As `criteria.mdl`, but what constants are worth is seen from rows they were not fitted to: digits cost nothing. Each
  oddity costs more the more rows there are: a thousand rows pay in nats for a gain that nobody sees.
  """
  if not math.isfinite(share):
    return math.inf
  named = sum(part.token == VARIABLE for part in expression.walk(line.node))
  return (0.5 * num_points * math.log(share + criteria.NOISE_FLOOR**2) + config.nats_per_node * line.complexity
          + named * math.log(num_columns) + oddities * (config.odd_nats + 0.5 * num_points * math.log(config.odd_gain)))


def _has_pole(node: Node, segments: soundness.Segments, config: ChoiceConfig) -> bool:
  """Whether it leaves the range of the data between rows, be it that the rows tell of a pole."""
  return soundness.find_fault(node, segments, config=config) in (soundness.POLE, soundness.LEAP)


def num_oddities(node: Node) -> int:
  """Columns in exponents and waves of several columns."""
  return soundness.num_column_exponents(node) + sum(
    len(soundness.columns_of(wave)) > 1 for wave in soundness.waves(node))


def is_beyond_chance(
  line: Line, base: Line, rows: Rows, *, num_points: float, config: ChoiceConfig = DEFAULT.choice
) -> bool:
  """See `noise.is_beyond_chance`; every number in a tree counts as fitted, also one that came out whole."""
  if not base.mse > 0:
    return False
  num_columns = rows.x.shape[1]
  # A constant in few digits is not quite the mean, and leaves more than noise has.
  left = base.mse if soundness.has_column(base.node) else scoring.weighted_variance(rows.y, rows.weights)
  counts = [sum(part.is_number for part in expression.walk(each.node)) for each in (line, base)]
  return noise.is_beyond_chance(
    share=line.mse / left, num_points=num_points, num_constants=counts[0], base_constants=max(counts[1], 1),
    further_nodes=line.complexity - base.complexity, num_columns=num_columns,
    line_columns=len(soundness.columns_of(line.node)) if is_linear(line.node) else 0,
    is_base_constant=not soundness.has_column(base.node), config=config)


def is_linear(node: Node) -> bool:
  """Whether a formula is a sum of columns times numbers, and a number: what least squares fits."""
  def is_term(term: Node) -> bool:
    factors = flatten(term.args[0] if term.token == "neg" else term, "*")
    return all(f.token == VARIABLE or f.is_number for f in factors) and sum(not f.is_number for f in factors) <= 1
  return all(map(is_term, flatten(node, "+")))


def simplest_good(front: Sequence[Any], best: Any, *, config: ChoiceConfig = DEFAULT.choice) -> Any:
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


def read_selection(value: str | int, *, argument: str) -> str | int:
  """A choice of a line as `pick` takes it: a word, or a number that may be text.

  Raises:
    InputError: for anything else.
  """
  if isinstance(value, str) and value.isdecimal() and len(value) <= _MAX_DIGITS:
    return int(value)
  if value in SELECTIONS or (isinstance(value, numbers.Integral) and not isinstance(value, bool)):
    return value
  raise InputError(f"{argument}: unknown choice {shorten(repr(value))}, a number of the front or a word: "
                   f"{suggest(str(value), SELECTIONS)}")


def pick(front: Sequence[Any], best: Any, selection: str | int, *, argument: str) -> Any:
  """The line of a front that a user takes.

  Args:
    front: lines with `complexity`, `r2` and `mse`, from simple to accurate; best: the recommended one, of them.
    selection: see `read_selection`; argument: its name, for the message.
  Raises:
    InputError: for a number that no line has.
  """
  selection = read_selection(selection, argument=argument)
  if selection == RECOMMENDED:
    return best
  if selection == SIMPLE:
    return simplest_good(front, best)
  if selection == ACCURATE:
    return min(front, key=lambda line: line.mse)
  if not -len(front) <= selection < len(front):
    raise InputError(f"{argument}: expected a line of the front, 0 to {len(front) - 1}, got {selection}")
  return front[selection]
