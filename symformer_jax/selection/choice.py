"""Which line of a front to recommend, where none meets the data exactly: by rows that constants were not fitted to."""

from collections.abc import Sequence
import dataclasses
import math
import numbers
from typing import Any

import numpy as np

from symformer_jax.engine import criteria
from symformer_jax.engine.config import DEFAULT, FUNCTIONS, ChoiceConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.errors import InputError, suggest
from symformer_jax.files import shorten
from symformer_jax.language import expression, programs
from symformer_jax.language.expression import VARIABLE, Node, flatten
from symformer_jax.selection import between_rows, cross_validation, frequencies, noise, rounding, scoring, soundness

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
  segments: between_rows.Segments | None = None,
) -> int:
  """The index of the line to recommend.

  From the constant on, each longer line takes the place of the one before when both say so: its predictive
  description is shorter (see `_Contest.gain`), and it is more than the best of many that would meet noise as well
  (`noise`), which is not asked of one whose nodes, functions and columns cost less. A constant that is left gives way
  to a formula with a cross-validated R2 above `config.worthwhile_r2`, if that is beyond chance: the simplest within one
  standard error of the best; where there is none, to the straight line that predicts better, if one is beyond chance;
  then to the one that is nearer to most of the rows, if that is beyond doubt. A formula that does not predict clearly
  better than a straight line gives way to it.
  Args:
    lines: at least one.
    rows: all rows, at most `config.max_rows` of them are looked at. num_points: what they are worth at least (see
      `judge.Judge.count_effective`); two lines may differ by what more of them say.
    seed: draws rows and folds.
    segments: among all rows, where they have been made.
  """
  segments = segments or between_rows.make_segments(rows, config=config)
  contest = _Contest(lines, rows, num_points, seed, config, segments)
  order = sorted(range(len(lines)), key=lambda i: (expression.has_column(lines[i].node), lines[i].complexity))
  constant = best = order[0]
  for i in order[1:]:
    if contest.gain(i, best) > 0 and (contest.is_cheaper(i, best) or contest.is_beyond_chance(i, best)):
      best = i
  if expression.has_column(lines[best].node):
    gains = [contest.gain(i, constant) for i in range(len(lines))]
    best = _not_below_least_squares(lines, contest.shares, gains, best, config)
    return _or_straight_line(contest, lines, best, num_rows=len(rows), config=config)
  beyond = [i for i in order if contest.is_beyond_chance(i, best)]
  worthwhile = [i for i in beyond if 1 - contest.shares[i] > config.worthwhile_r2]
  if worthwhile:
    best = worthwhile[cross_validation.simplest_within_one_error(
      [contest.errors[i] for i in worthwhile], [lines[i].complexity for i in worthwhile], contest.weights)]
    return _or_straight_line(contest, lines, best, num_rows=len(rows), config=config)
  straight = [i for i in beyond if is_linear(lines[i].node) and contest.shares[i] < contest.shares[best]]
  if straight:
    return min(straight, key=lambda i: contest.shares[i])
  return _nearer_to_most(contest.errors, beyond, best, config)


class _Contest:
  """Lines of a front, by how they predict rows that their constants were not fitted to.

  Attributes:
    errors: squared errors of each line [M], of at most `config.max_rows` rows, which have these `weights` [M].
    shares: the mean of each as a share of the variance; infinite where a line is undefined on a fold.
  """

  def __init__(
    self, lines: Sequence[Line], rows: Rows, num_points: float, seed: int, config: ChoiceConfig,
    segments: between_rows.Segments,
  ):
    self._lines, self._rows, self._num_points, self._config = lines, rows, num_points, config
    sample = rows.sample(config.max_rows, seed=seed)
    folds = cross_validation.draw_folds(sample, config.num_folds, seed=seed, config=config)
    variance = scoring.weighted_variance(sample.y, sample.weights)
    self._sample = sample
    self.weights = sample.weights
    self.errors = [cross_validation.squared_errors(line.node, sample, folds) for line in lines]
    self.shares = [float(np.average(e, weights=sample.weights)) / variance for e in self.errors]
    self._variance = variance
    self._oddities = [
      num_oddities(line.node, sample.x, config=config) + _has_pole(line.node, rows, segments, config)
      + _leaps(line.node, sample, config) for line in lines]
    self._costs = [
      config.nats_per_node * line.complexity + function_nats(line.node, config=config)
      + config.vague_nats * num_vague(line.node, sample, config=config)
      + config.frequency_nats * frequencies.log_frequencies(line.node, sample.x, config=config)
      + math.log(rows.num_columns) * sum(part.token == VARIABLE for part in expression.walk(line.node))
      for line in lines]
    self._prices = [cost + odd * config.odd_nats for cost, odd in zip(self._costs, self._oddities, strict=True)]

  def gain(self, i: int, base: int) -> float:
    """Nats by which line i has the shorter predictive description: what is said of unseen rows, less what it costs.

    As `criteria.mdl`, but what constants are worth is seen from rows they were not fitted to: digits cost nothing. Each
    oddity costs more the more rows there are: a thousand rows pay in nats for a gain that nobody sees.
    """
    if math.isinf(self.shares[i]) and math.isinf(self.shares[base]):
      return 0.0
    asked = (self._oddities[i] - self._oddities[base]) * math.log(self._config.odd_gain)
    said = 0.5 * self.num_points(i, base) * (self._log_gain(i, base) - asked)
    return said - (self._prices[i] - self._prices[base])

  def _log_gain(self, i: int, base: int) -> float:
    floor = criteria.NOISE_FLOOR**2
    return math.log(self.shares[base] + floor) - math.log(self.shares[i] + floor)

  def num_points(self, i: int, base: int) -> float:
    """Rows that the difference of two lines is worth: all of them under normal errors, fewer where few rows make it,
    but no fewer than what was counted for all lines.

    The logarithm of the ratio of two mean squares, L, has the variance V/N, V that of the difference of the squares in
    units of their means (delta method). Normal errors make it 4*L/N for nested lines and small L, and N/2*L nats are
    then twice the square of L in standard errors. Where V is larger, so many rows are said for which that is true.
    """
    means = [self.shares[j] * self._variance for j in (base, i)]
    if not all(math.isfinite(mean) and mean > 0 for mean in means):
      return len(self._rows)
    difference = self.errors[base] / means[0] - self.errors[i] / means[1]
    spread = float(np.mean((self.weights / np.mean(self.weights) * difference) ** 2))
    log_gain = abs(self._log_gain(i, base))
    return max(self._num_points, len(self._rows) * (min(1.0, 4 * log_gain / spread) if spread else 1.0))

  def is_cheaper(self, i: int, base: int) -> bool:
    """Whether line i, of a column and with figures, costs no more nats than a formula of a column, oddities apart."""
    are_formulas = all(expression.has_column(self._lines[j].node) for j in (i, base))
    return are_formulas and math.isfinite(self.shares[i]) and self._costs[i] <= self._costs[base]

  def is_beyond_chance(self, i: int, base: int) -> bool:
    line = self._lines[i]
    is_line = is_linear(line.node) and not expression.has_column(self._lines[base].node)
    num_points = noise.num_points_of_line(
      self._sample, expression.columns_of(line.node), num_rows=len(self._rows)) if is_line else self.num_points(i, base)
    return math.isfinite(self.shares[i]) and expression.has_column(line.node) and is_beyond_chance(
      line, self._lines[base], self._rows, num_points=num_points, config=self._config)


def _not_below_least_squares(
  lines: Sequence[Line], shares: Sequence[float], gains: Sequence[float], best: int, config: ChoiceConfig
) -> int:
  """The best, or, where a straight line predicts rows not seen better than that by more than `config.line_room`, the
  shortest predictive description of those that do not predict them worse by more than that.
  """
  least = min((share for line, share in zip(lines, shares, strict=True) if is_linear(line.node)), default=math.inf)
  most = least + config.line_room
  if shares[best] <= most:
    return best
  return max((i for i in range(len(lines)) if shares[i] <= most), key=lambda i: gains[i])


def _or_straight_line(
  contest: _Contest, lines: Sequence[Line], best: int, *, num_rows: int, config: ChoiceConfig
) -> int:
  """The best, if it is a straight line, or predicts rows not seen better than every such line by more than a standard
  error of the difference, or better at all with no more nodes, of no fewer columns; else the line that predicts them
  best, of those with rows enough for their coefficients.

  The best is one of many that have been found on all rows, and its lead is in part luck; least squares need no search.
  """
  most = num_rows / config.rows_per_coefficient - 1
  straight = [i for i, line in enumerate(lines)
              if is_linear(line.node) and 0 < len(expression.columns_of(line.node)) <= most]
  line = min(straight, key=lambda i: contest.shares[i], default=best)
  is_ahead = contest.shares[best] < contest.shares[line]
  if is_linear(lines[best].node) or is_ahead and _is_no_longer(lines[best], lines[line]):
    return best
  is_close = cross_validation.is_within_one_error(contest.errors[line], contest.errors[best], contest.weights)
  return line if is_close and math.isfinite(contest.shares[line]) else best


def _is_no_longer(first: Line, second: Line) -> bool:
  """Whether the first has no more nodes, and no fewer columns."""
  num_columns = [len(expression.columns_of(line.node)) for line in (first, second)]
  return first.complexity <= second.complexity and num_columns[0] >= num_columns[1]


def _nearer_to_most(errors: Sequence[np.ndarray], among: Sequence[int], constant: int, config: ChoiceConfig) -> int:
  """Of the lines that predict more than half of the unseen rows better than a constant does, beyond doubt, the one of
  least median error; else the constant.

  Mean squares see the largest rows alone: beside a pole one row is most of the variance, and no formula predicts it
  from the others.
  """
  least = 0.5 + 0.5 * config.sign_errors / math.sqrt(len(errors[constant]))
  nearer = [i for i in among if np.mean(errors[i] < errors[constant]) > least]
  return min(nearer, key=lambda i: float(np.median(errors[i])), default=constant)


def _has_pole(node: Node, rows: Rows, segments: between_rows.Segments, config: ChoiceConfig) -> bool:
  """Whether it leaves the range of the data between rows, be it that the rows tell of a pole, or has a pole or no value
  in a corner of their box.
  """
  return (soundness.find_fault(node, segments, config=config) in (soundness.POLE, soundness.LEAP)
          or soundness.leaves_domain(node, rows, num_points=config.num_box_points))


def _leaps(node: Node, rows: Rows, config: ChoiceConfig) -> bool:
  return soundness.leaps_in_box(node, rows, num_points=config.num_box_points, leap=config.box_leap)


def num_oddities(node: Node, x: np.ndarray, *, config: ChoiceConfig = DEFAULT.choice) -> int:
  """Columns in exponents, extreme exponents, and waves: of several columns, of what is not linear in a column, or of
  which rows [N, D] see an arc, or next to nothing.
  """
  odd_waves = sum(
    len(expression.columns_of(wave)) > 1 or frequencies.is_nonlinear(wave)
    or frequencies.is_arc(wave, x, config=config) or frequencies.is_scattered(wave, x, config=config)
    for wave in frequencies.waves(node))
  return odd_waves + soundness.num_column_exponents(node) + soundness.num_extreme_exponents(
    node, largest=config.largest_exponent, largest_uneven=config.largest_uneven)


def function_nats(node: Node, *, config: ChoiceConfig = DEFAULT.choice) -> float:
  """Nats for functions that formulas seldom have, and for functions of functions, beside those for their nodes."""
  nats = dict(config.function_nats)
  return (sum(nats.get(part.token, 0.0) for part in expression.walk(node))
          + config.nested_nats * num_nested(node))


def num_vague(node: Node, rows: Rows, *, config: ChoiceConfig = DEFAULT.choice) -> int:
  """Fitted constants that the rows do not tell from 0, alone or together with others that make up for them."""
  values = programs.fitted_values(node)
  if len(rows) <= len(values) + 1 or not expression.has_column(node):
    return 0
  errors = rounding.standard_errors(node, rows.x, rows.y, rows.weights, holds_form=True)
  return sum(error is None or abs(value) < config.vague_errors * error
             for value, error in zip(values, errors, strict=True))


def num_nested(node: Node, *, is_inside: bool = False) -> int:
  """Functions of columns that stand inside others, powers and inverses not counted."""
  is_function = node.token in FUNCTIONS and expression.has_column(node)
  return (is_function and is_inside) + sum(num_nested(arg, is_inside=is_inside or is_function) for arg in node.args)


def is_beyond_chance(
  line: Line, base: Line, rows: Rows, *, num_points: float, config: ChoiceConfig = DEFAULT.choice
) -> bool:
  """See `noise.is_beyond_chance`; every number in a tree counts as fitted, also one that came out whole."""
  if not base.mse > 0:
    return False
  num_columns = rows.num_columns
  # A constant in few digits is not quite the mean, and leaves more than noise has.
  left = base.mse if expression.has_column(base.node) else scoring.weighted_variance(rows.y, rows.weights)
  counts = [sum(part.is_number for part in expression.walk(each.node)) for each in (line, base)]
  return noise.is_beyond_chance(
    share=line.mse / left, num_points=num_points, num_constants=counts[0], base_constants=max(counts[1], 1),
    further_nodes=line.complexity - base.complexity, num_columns=num_columns,
    line_columns=len(expression.columns_of(line.node)) if is_linear(line.node) else 0,
    is_base_constant=not expression.has_column(base.node),
    log_frequencies=frequencies.log_frequencies(line.node, rows.x, config=config), config=config)


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
  assert not isinstance(selection, str), "of words there are no others"
  if not -len(front) <= selection < len(front):
    raise InputError(f"{argument}: expected a line of the front, 0 to {len(front) - 1}, got {selection}")
  return front[selection]
