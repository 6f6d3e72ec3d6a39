"""What a formula does between the rows: formulas nobody would sign are found by what they do where no row is.

Formulas are looked at along segments between rows: between neighbours where there is one column; between near rows
and between rows drawn at random where there are several. All these points lie among the data, none in a corner of
their box that no row comes near; what formulas do there is asked apart (`leaves_domain`).
"""

from collections.abc import Iterator
import dataclasses
import itertools
import math

import numpy as np

from symformer_jax.engine.config import DEFAULT, ChoiceConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import programs
from symformer_jax.language.expression import VARIABLE, Node, chain, columns_of, flatten, number, variable, walk
from symformer_jax.language.operators import WAVES
from symformer_jax.language.tidy import split_factor
from symformer_jax.selection import rounding, scoring

UNDEFINED, POLE, LEAP, ALIAS = "undefined", "pole", "leap", "alias"
# The same in words.
REASONS = {
  UNDEFINED: "undefined between rows", POLE: "a pole or needle between rows that no row tells of",
  LEAP: "leaves the data's range between rows", ALIAS: "a wave that turns by more than half a turn between rows"}
# Parts into which the surroundings of a smallest denominator are divided, again and again, so many times: it is then
# known to a share of 1e-10 of its segment, and a pole 1e10 times as high.
NUM_PARTS, NUM_DIVISIONS = 16, 12
# Shares of a segment at which a zero is approached: five in each decade find another zero as far from it as any.
APPROACH = np.logspace(-1, -14, 66)
# Values that differ by less than this share of their range are equal: a phase of a thousand turns keeps twelve digits.
EQUAL = 1e-6
# Where a value is 0/0, those so far beside it, as a share of the segment, stand for it if they differ by no more than
# this share of the range that values may have: on both sides of a pole or a step they do not.
BESIDE, AGREES = 1e-5, 1e-2


@dataclasses.dataclass(frozen=True)
class Segments:
  """Where formulas are looked at.

  Attributes:
    begin, end: ends of S segments [S, D], rows all of them; with one column in rising order, so that they join.
    points: on the segments, the ends included [S, P, D].
    low, high: between which values stay [2]: the range of y, widened.
    num_rows: distinct rows.
    is_near: whether the ends are neighbours [S]; of several columns others join rows far apart.
  """

  begin: np.ndarray
  end: np.ndarray
  points: np.ndarray
  low: float
  high: float
  num_rows: int
  is_near: np.ndarray

  @property
  def shares(self) -> np.ndarray:
    """Shares of its length at which the points of each segment are [S, P]."""
    return np.broadcast_to(np.linspace(0, 1, self.points.shape[1]), self.points.shape[:2])


def make_segments(rows: Rows, *, config: ChoiceConfig = DEFAULT.choice, seed: int = 0) -> Segments:
  """Segments among the rows; none where all rows are one point."""
  x = _distinct(rows.x)
  rng = np.random.default_rng(seed)
  if x.shape[1] == 1:
    pairs = np.column_stack([np.arange(len(x) - 1), np.arange(1, len(x))])
    if len(pairs) > 4 * config.num_segments:
      pairs = pairs[np.sort(rng.choice(len(pairs), 4 * config.num_segments, replace=False))]
  else:
    pairs = _near_and_far(x, config, rng)
  is_near = np.arange(len(pairs)) < (len(pairs) if x.shape[1] == 1 else min(config.num_segments, len(x)))
  begin, end = x[pairs[:, 0]], x[pairs[:, 1]]
  share = np.linspace(0, 1, config.points_between + 2)[None, :, None]
  points = begin[:, None] + share * (end - begin)[:, None]
  spread = np.ptp(rows.y)
  return Segments(begin, end, points, float(rows.y.min() - config.leap * spread),
                  float(rows.y.max() + config.leap * spread), len(x), is_near)


def _distinct(x: np.ndarray) -> np.ndarray:
  """Rows [M, D] that are not equal, in the order of the first column, then the next: `np.unique(x, axis=0)`, sooner."""
  x = x[np.lexsort(x.T[::-1])]
  is_new = np.ones(len(x), bool)
  is_new[1:] = (x[1:] != x[:-1]).any(axis=1)
  return x[is_new]


def _near_and_far(x: np.ndarray, config: ChoiceConfig, rng: np.random.Generator) -> np.ndarray:
  """Pairs of rows [S, 2]: each of some rows with its nearest, and pairs drawn at random."""
  count = config.num_segments
  if len(x) > config.max_neighbours:
    some = np.sort(rng.choice(len(x), config.max_neighbours, replace=False))
    return some[_near_and_far(x[some], config, rng)]
  if len(x) < 2:
    return np.zeros((0, 2), int)
  scale = np.std(x, axis=0)
  scaled = x / np.where(scale > 0, scale, 1.0)
  some = np.sort(rng.choice(len(x), min(count, len(x)), replace=False))
  near = []
  for i in some:
    distance = np.sum((scaled - scaled[i]) ** 2, axis=1)
    distance[i] = np.inf
    near.append((i, int(np.argmin(distance))))
  far = rng.integers(0, len(x), (min(count, len(x) ** 2), 2))
  return np.array([*near, *(pair for pair in far if pair[0] != pair[1])])


def find_fault(node: Node, segments: Segments, *, config: ChoiceConfig = DEFAULT.choice) -> str:
  """The first fault of a formula, one of `UNDEFINED`, `POLE`, `LEAP`, `ALIAS`; empty where there is none."""
  if not len(segments.begin) or node.is_number:
    return ""
  if is_alias(node, segments, config=config):
    return ALIAS
  values = _without_gaps(_evaluate(node, segments.points), node, segments, np.arange(len(segments.begin)),
                         segments.shares)
  if not np.isfinite(values).all():
    return UNDEFINED
  if np.any((values < segments.low) | (values > segments.high)):
    return LEAP
  return POLE if has_needle(node, segments, config) or len(find_poles(node, segments, config)) else ""


def has_needle(node: Node, segments: Segments, config: ChoiceConfig) -> bool:
  """Whether a logarithm, an inverse or a low power is taken of a sum that all but vanishes on a row.

  Between the rows nothing is seen of it: `(1/x - 0.00050485927)**0.01` is level, and 0 on the row of x = 1980.75.
  """
  rows = np.concatenate([segments.begin, segments.end])
  return any(_cancels(argument, rows, config) for argument in _sharp_arguments(node, config))


def _sharp_arguments(node: Node, config: ChoiceConfig) -> Iterator[Node]:
  for n in walk(node):
    if n.token in ("ln", "inv") or (
        n.token == "pow" and n.args[1].is_number and n.args[1].value < config.low_power):
      yield n.args[0]


def _cancels(node: Node, rows: np.ndarray, config: ChoiceConfig) -> bool:
  terms = flatten(node, "+")
  if len(terms) < 2:
    return False
  with np.errstate(all="ignore"):
    values = np.stack([scoring.evaluate(term, rows) for term in terms])
    return bool(np.any(np.abs(values.sum(axis=0)) < config.hugging * np.abs(values).max(axis=0)))


def _evaluate(node: Node, points: np.ndarray) -> np.ndarray:
  """Values [S, P] at points [S, P, D]."""
  return scoring.evaluate(node, points.reshape(-1, points.shape[-1])).reshape(points.shape[:-1])


def find_poles(node: Node, segments: Segments, config: ChoiceConfig) -> np.ndarray:
  """Indices of the segments on which the formula leaves the range of the data where a denominator is smallest."""
  is_found = np.zeros(len(segments.begin), bool)
  # Segments [G], and the shares of their length at which they are looked at [G, P].
  groups = [(np.arange(len(segments.begin)), segments.shares)]
  # Inner ones first: beside its pole 1/(x - 3) hides the zero of 1 - 1e-6/(x - 3).
  waiting = list(dict.fromkeys(_denominators(node)))
  while waiting:
    denominator = waiting.pop()
    finer, has_waves = [], bool(waves(denominator))
    is_inner = any(denominator in walk(other) for other in waiting)
    for which, shares in groups:
      values = _evaluate(denominator, _points_at(segments, which, shares))
      may_vanish = _may_vanish(values, config) | has_waves  # which may turn in between
      some, of_some = which[may_vanish], shares[may_vanish]
      near = np.zeros((0, 2))
      if len(some):
        near = _smallest(denominator, segments, some, of_some, np.abs(values[may_vanish]))
        is_found[some] |= _is_out(node, segments, some, near)
      if is_inner:
        finer += [(some, _with_approach(of_some, near)), (which[~may_vanish], shares[~may_vanish])]
    groups = [group for group in finer if len(group[0])] or groups
  return np.flatnonzero(is_found)


def _is_out(node: Node, segments: Segments, which: np.ndarray, shares: np.ndarray) -> np.ndarray:
  """Whether a formula leaves the range of the data at one of the shares [G, P] of some segments: [G]."""
  values = _without_gaps(_evaluate(node, _points_at(segments, which, shares)), node, segments, which, shares)
  return (~np.isfinite(values) | (values < segments.low) | (values > segments.high)).any(axis=1)


def _without_gaps(
  values: np.ndarray, node: Node, segments: Segments, which: np.ndarray, shares: np.ndarray
) -> np.ndarray:
  """Values [G, P] of a formula at shares [G, P] of some segments; where one is 0/0 and those on both sides agree,
  theirs.

  `(x - y)/log(x/y)` is x where x and y are equal.
  """
  gaps = np.isnan(values)
  if not gaps.any():
    return values
  before, after = (_evaluate(node, _points_at(segments, which, shares + side)) for side in (-BESIDE, BESIDE))
  is_closed = gaps & (np.abs(after - before) <= AGREES * (segments.high - segments.low))
  return np.where(is_closed, 0.5 * (before + after), values)


def _points_at(segments: Segments, which: np.ndarray, shares: np.ndarray) -> np.ndarray:
  """Points [G, P, D] at shares [G, P] of the length of some segments [G]."""
  begin, end = segments.begin[which][:, None], segments.end[which][:, None]
  return begin + shares[..., None] * (end - begin)


def _may_vanish(values: np.ndarray, config: ChoiceConfig) -> np.ndarray:
  """On which segments a function may have a zero, from its values there [G, P]."""
  size = np.abs(values)
  with np.errstate(invalid="ignore"):  # of two infinities
    has_one_sign = (values.min(axis=1) > 0) | (values.max(axis=1) < 0)
    is_level = (size.min(axis=1) > config.level * size.max(axis=1)) & has_one_sign
  return ~(is_level & np.isfinite(values).all(axis=1))


def leaves_domain(node: Node, rows: Rows, *, num_points: int, seed: int = 0) -> bool:
  """Whether a formula has a pole, or no value, in a corner of the box of rows of several columns that no row is in.

  A denominator that has one sign on all rows and another somewhere in the box vanishes in between. Where rows have both
  signs, segments between them tell (`find_poles`).
  Args:
    num_points: looked at in the box, drawn by `seed`, besides its corners.
  """
  if len(columns_of(node)) < 2:
    return False  # one column has no corners
  points = _box_points(rows.x, num_points, seed)
  if np.isnan(scoring.evaluate(node, points)).any():
    return True
  for denominator in dict.fromkeys(_denominators(node)):
    sign = np.sign(scoring.evaluate(denominator, rows.x[:1]))
    at_rows, in_box = (np.all(np.sign(scoring.evaluate(denominator, x)) == sign) for x in (rows.x, points))
    if sign and at_rows and not in_box:
      return True
  return False


def leaps_in_box(node: Node, rows: Rows, *, num_points: int, leap: float, seed: int = 0) -> bool:
  """Whether a formula leaves the range of y by more than `leap` times that range somewhere in the box of its columns.

  Corners are looked at where no row is: an exponential of two columns may be all data there.

  Args:
    num_points: see `leaves_domain`.
  """
  if len(columns_of(node)) < 2:
    return False  # rows of one column fill their box
  low, high = float(rows.y.min()), float(rows.y.max())
  values, room = scoring.evaluate(node, _box_points(rows.x, num_points, seed)), leap * (high - low)
  return bool((values < low - room).any() or (values > high + room).any())


def _box_points(x: np.ndarray, count: int, seed: int) -> np.ndarray:
  """Points [P, D] of the box of rows [N, D]: its corners, or some of them, and others drawn at random."""
  rng = np.random.default_rng(seed)
  columns = x.shape[1]
  corners = (np.array(list(itertools.product((0.0, 1.0), repeat=columns))) if 2**columns <= count
             else rng.integers(0, 2, (count, columns)).astype(float))
  share = np.concatenate([corners, rng.random((count, columns))])
  return np.minimum(x.min(axis=0) + share * np.ptp(x, axis=0), x.max(axis=0))  # the sum may be rounded up


def is_supported(
  node: Node, rows: Rows, segments: Segments, *, config: ChoiceConfig = DEFAULT.choice
) -> bool:
  """Whether poles are what the rows say: a tangent, or 1/x on both sides of 0.

  All that leaves the range of the data must lie beside a pole. The rows beside poles must be predicted by constants
  that were fitted without them, with a standard error within the same room, and of each pole one row beside it and
  another one at least must tell: if what has it rose there no higher than it is on half of all rows, they would be
  missed. A needle on one row is what no other row knows of.
  """
  if has_needle(node, segments, config):
    return False
  poles = find_poles(node, segments, config)
  values = _evaluate(node, segments.points)
  is_out = ~((values >= segments.low) & (values <= segments.high)).all(axis=1)
  if not len(poles) or not set(np.flatnonzero(is_out)) <= set(poles.tolist()):
    return False
  # Rows far apart are not beside the pole that lies between them.
  near = poles[segments.is_near[poles]]
  ends = np.concatenate([segments.begin[near], segments.end[near]])
  beside = (rows.x[:, None] == ends[None]).all(axis=2).any(axis=1)
  if not beside.any() or np.sum(~beside) < 2:
    return False
  others = rows.x[~beside], rows.y[~beside], rows.weights[~beside]
  fitted = rounding.refit_constants(node, *others)
  with np.errstate(all="ignore"):
    errors = np.abs(scoring.evaluate(fitted, rows.x) - rows.y)
    usual = np.sqrt(np.mean(errors[~beside] ** 2))
    room = np.maximum(config.pole_errors * usual, config.pole_share * np.abs(rows.y - np.median(rows.y)))
  is_missed = ~(errors <= room)[beside]
  if np.mean(is_missed) > config.pole_misses or not np.all(errors[beside] <= 2 * room[beside]):  # nor has no value
    return False
  doubt: np.ndarray | float | None = 0.0
  if programs.fitted_values(fitted):  # the formula as it stands is asked about: a pole at a whole number stays there
    doubt = rounding.curve_errors(fitted, *others, rows.x[beside], holds_form=True)
  if doubt is None or not np.all(doubt <= room[beside]):
    return False
  parts = list(_with_poles(fitted, segments, near, config))  # none where without those rows it has no pole there
  return bool(parts) and all(
    _is_told(fitted, part, rows, np.concatenate([segments.begin[own], segments.end[own]]), room, config)
    for part, own in parts)


def _with_poles(
  node: Node, segments: Segments, near: np.ndarray, config: ChoiceConfig
) -> Iterator[tuple[Node, np.ndarray]]:
  """The parts of a formula by which it has poles on some segments, of those at the places `near`, and which.

  Where tan(x) has a pole, 1/tan(x) has none.
  """
  shares = segments.shares[near]
  for part, denominator in _singular_parts(node):
    values = _evaluate(denominator, segments.points[near])
    own = np.flatnonzero(_may_vanish(values, config) | bool(waves(denominator)))
    if len(own):
      beside = _smallest(denominator, segments, near[own], shares[own], np.abs(values[own]))
      own = own[_is_out(node, segments, near[own], beside)]
    if len(own):
      yield part, near[own]


def _is_told(
  node: Node, part: Node, rows: Rows, ends: np.ndarray, room: np.ndarray, config: ChoiceConfig
) -> bool:
  """Whether the formula would miss some rows, of those beside the poles of a part too, if that did not rise there.

  Args:
    ends: rows beside the poles of this part [E, D].
    room: what each row may be missed by [N].
  """
  values = scoring.evaluate(part, rows.x)
  usual = np.median(np.abs(values))
  level = _replaced(node, part, variable(rows.x.shape[1]))
  columns = np.column_stack([rows.x, np.clip(values, -usual, usual)])
  is_telling = ~(np.abs(scoring.evaluate(level, columns) - rows.y) <= room)
  beside = (rows.x[:, None] == ends[None]).all(axis=2).any(axis=1)
  return bool(is_telling[beside].any() and is_telling.sum() >= config.pole_rows)


def _with_approach(shares: np.ndarray, near: np.ndarray) -> np.ndarray:
  """The shares [G, P] and others nearer and nearer to those of `near` [G, 2], in rising order."""
  steps = np.concatenate([APPROACH, -APPROACH])
  more = np.clip(near.mean(axis=1, keepdims=True) + steps, 0, 1)
  return np.sort(np.concatenate([shares, more], axis=1), axis=1)


def _smallest(
  node: Node, segments: Segments, which: np.ndarray, shares: np.ndarray, size: np.ndarray
) -> np.ndarray:
  """Two shares [G, 2] that enclose where the formula, of these sizes at shares [G, P], is smallest on each segment."""
  at = np.argmin(np.where(np.isnan(size), np.inf, size), axis=1)
  row = np.arange(len(which))
  left, right = shares[row, np.maximum(at - 1, 0)], shares[row, np.minimum(at + 1, shares.shape[1] - 1)]
  for _ in range(NUM_DIVISIONS):
    finer = np.linspace(left, right, NUM_PARTS + 1, axis=1)
    size = np.abs(_evaluate(node, _points_at(segments, which, finer)))
    at = np.argmin(np.where(np.isnan(size), np.inf, size), axis=1)
    left, right = finer[row, np.maximum(at - 1, 0)], finer[row, np.minimum(at + 1, NUM_PARTS)]
  return np.stack([left, right], axis=1)


def _denominators(node: Node) -> Iterator[Node]:
  """What must not be 0 for a formula to be finite, without the powers of it: (x - 3)**2 has its zero in x - 3."""
  return (denominator for _, denominator in _singular_parts(node))


def _singular_parts(node: Node) -> Iterator[tuple[Node, Node]]:
  """Parts of a formula that have poles where a denominator is 0, and that."""
  for n in walk(node):
    if n.token == "inv" or (n.token == "pow" and n.args[1].is_number and n.args[1].value < 0):
      inner = n.args[0]
      while inner.token in ("pow2", "pow3", "sqrt"):
        inner = inner.args[0]
      yield n, inner
    elif n.token == "tan":
      yield n, Node("cos", n.args)
    elif n.token == "cot":
      yield n, Node("sin", n.args)


def waves(node: Node) -> list[Node]:
  """Parts that are waves of something that is no number."""
  return [n for n in walk(node) if n.token in WAVES and has_column(n)]


def has_column(node: Node) -> bool:
  return any(n.token == VARIABLE for n in walk(node))


def turn(wave: Node, segments: Segments, *, config: ChoiceConfig = DEFAULT.choice) -> float:
  """Radians that a wave turns between neighbouring rows.

  With one column the mean over its steps without the largest, so that a gap in the data condemns no wave; with several
  the range of the phase over the number of rows, which is what evenly spread phases would have, for all but the lowest
  and the highest phases.
  """
  phase = _evaluate(wave.args[0], segments.points)
  if not np.isfinite(phase).all():
    return math.inf
  if segments.begin.shape[1] == 1:
    steps = np.sort(np.sum(np.abs(np.diff(phase, axis=1)), axis=1))
    return float(np.mean(steps[: max(len(steps) - 1, 1)]))
  low, high = np.quantile(phase, (config.phase_edges, 1 - config.phase_edges))
  return float((high - low) / (1 - 2 * config.phase_edges) / max(segments.num_rows - 1, 1))


def is_alias(node: Node, segments: Segments, *, config: ChoiceConfig = DEFAULT.choice) -> bool:
  """Whether a wave of the formula turns too far between rows to be known from them."""
  return any(turn(wave, segments, config=config) > config.half_turn * (1 + 1e-6) for wave in waves(node))


def num_column_exponents(node: Node) -> int:
  """Powers with a column both below and above, `x**z`; an exponential `exp(z)` or `2**z` is none."""
  count = 0
  for n in walk(node):
    if n.token == "pow" and has_column(n.args[0]) and has_column(n.args[1]):
      count += 1
    elif n.token == "exp":  # exp(z*log(x)) is a power
      count += any(m.token == "*" and any(f.token == "ln" and has_column(f) for f in _factors(m))
                   and any(f.token != "ln" and has_column(f) for f in _factors(m)) for m in walk(n.args[0]))
  return count


def is_arc(wave: Node, x: np.ndarray) -> bool:
  """Whether of a wave of fitted frequency rows [N, D] see less than a period: any bend looks like an arc of it.

  A frequency that was not fitted, as in `sin(angle + 0.5)` or `cos(2*angle)`, is a law's own. Twelve months are a year
  though eleven lie between the first and the last.
  """
  factors = [factor for parts, factor in map(split_factor, flatten(wave.args[0], "+")) if any(map(has_column, parts))]
  if not any(programs.is_constant(number(factor)) for factor in factors):
    return False
  phase = scoring.evaluate(wave.args[0], x)
  if not np.isfinite(phase).all():
    return False
  num_steps = max(len(np.unique(phase)) - 1, 1)
  period = math.pi if wave.token in ("tan", "cot") else 2 * math.pi
  return bool(np.ptp(phase) * (num_steps + 1) / num_steps < period * (1 - 1e-3))


def log_frequencies(node: Node, x: np.ndarray) -> float:
  """Logarithm of how many formulas differ from this one in the frequencies of its waves, up to theirs, and can be told
  from it on rows [N, D]: of each wave one for every half turn of its phase, a sine and a cosine for each whole one
  (Rayleigh's resolution), at least itself. One whose frequency was not fitted was found among them as well.
  """
  turns = [float(np.ptp(scoring.evaluate(wave.args[0], x))) / math.pi for wave in waves(node)]
  return sum(math.log(turn) for turn in turns if math.isfinite(turn) and turn > 1)


def is_nonlinear(wave: Node) -> bool:
  """Whether the phase of a wave is not linear in its columns: `cos(exp(x - 68))` meets any rows, and over a century of
  years `sin(0.0016*year**2)` is a wave of years whose phase is chosen by the power.
  """
  def bends(part: Node) -> bool:
    num_varying = sum(map(has_column, part.args))
    return num_varying > 0 if part.token not in ("+", "*", "neg") else part.token == "*" and num_varying > 1
  return any(map(bends, walk(wave.args[0])))


def num_extreme_exponents(node: Node, *, largest: float, largest_uneven: float) -> int:
  """Powers of something that is no number whose exponent is a number beyond a size, smaller for one that is no whole
  or half number; a power of a power counts as two.
  """
  def is_extreme(exponent: float) -> bool:
    return abs(exponent) > (largest if exponent % 0.5 == 0 else largest_uneven)
  return sum(n.token == "pow" and n.args[1].is_number and is_extreme(n.args[1].value) and has_column(n.args[0])
             for n in walk(node))


def _factors(node: Node) -> list[Node]:
  return [f for arg in node.args for f in (_factors(arg) if arg.token == "*" else [arg])]


def even_step(x: np.ndarray, *, config: ChoiceConfig = DEFAULT.choice) -> float | None:
  """The step of one evenly spaced column [N, 1] of distinct values, in whatever order; None where it is none."""
  if x.shape[1] != 1:
    return None
  column = np.unique(x[:, 0])
  steps = np.diff(column)
  if len(column) < len(x) or len(column) < 3:
    return None
  # Rows may be missing: steps are then multiples of the smallest.
  step = float(np.min(steps))
  counts = np.round(steps / step)
  return step if np.all(np.abs(steps / step - counts) <= config.even_steps * counts) else None


def to_slow_waves(node: Node, x: np.ndarray, *, config: ChoiceConfig = DEFAULT.choice) -> Node:
  """Waves of an evenly spaced column [N, 1] as the slowest with the same values on all rows.

  sin(a*x + b) on rows x0 + k*h is sin((a - 2*pi*m/h)*x + b + 2*pi*m*x0/h) for any whole m; within an even function,
  as in sin(a*x)**2, for any half of a whole one too.
  """
  step = even_step(x, config=config)
  if step is None:
    return node
  for wave in waves(node):
    for period in (math.pi, 2 * math.pi):
      slow = _slowed(wave, float(x[0, 0]), step, period)
      if slow != wave and has_equal_values(changed := _replaced(node, wave, slow), node, x):
        node = changed
        break
  return node


def has_equal_values(first: Node, second: Node, x: np.ndarray) -> bool:
  """Whether two formulas agree on rows to what rounding of a large phase leaves."""
  one, other = (scoring.evaluate(node, x) for node in (first, second))
  is_finite = np.isfinite(one).all() and np.isfinite(other).all()
  return bool(is_finite and np.allclose(one, other, rtol=0, atol=EQUAL * max(np.ptp(other), np.finfo(float).tiny)))


def _replaced(node: Node, part: Node, by: Node) -> Node:
  if node == part:
    return by
  return node._replace(args=tuple(_replaced(arg, part, by) for arg in node.args))


def _slowed(wave: Node, origin: float, step: float, period: float) -> Node:
  """The wave with its phase's change from row to row brought within half a period; itself where it is no line."""
  at = np.array([[origin], [origin + step], [origin + 2 * step]])
  first, second, third = scoring.evaluate(wave.args[0], at).tolist()
  slope, fast = (second - first) / step, period / step
  if not math.isfinite(third) or not math.isclose(third - second, second - first, rel_tol=1e-6):
    return wave
  slow = math.remainder(slope, fast)
  if abs(slope) <= fast / 2 or not slow:
    return wave
  phase = math.remainder(first - slow * origin, 2 * math.pi)
  return Node(wave.token, (chain("+", [Node("*", (variable(0), number(slow))), number(phase)]),))
