"""What a formula does between the rows: formulas nobody would sign are found by what they do where no row is.

Formulas are looked at along segments between rows (`between_rows`); what they do in corners of the box of the data is
asked apart (`leaves_domain`).
"""

from collections.abc import Iterable, Iterator
import itertools

import numpy as np

from symformer_jax.engine.config import DEFAULT, ChoiceConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import programs
from symformer_jax.language.expression import Node, columns_of, flatten, has_column, replaced, variable, walk
from symformer_jax.selection import frequencies, rounding, scoring
from symformer_jax.selection.between_rows import Segments, values_at

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
# Where a value is 0/0, those so far beside it, as a share of the segment, stand for it if they differ by no more than
# this share of the range that values may have: on both sides of a pole or a step they do not.
BESIDE, AGREES = 1e-5, 1e-2


def find_fault(node: Node, segments: Segments, *, config: ChoiceConfig = DEFAULT.choice) -> str:
  """The first fault of a formula, one of `UNDEFINED`, `POLE`, `LEAP`, `ALIAS`; empty where there is none."""
  if not len(segments.begin) or node.is_number:
    return ""
  if frequencies.is_alias(node, segments, config=config):
    return ALIAS
  values = _without_gaps(values_at(node, segments.points), node, segments, np.arange(len(segments.begin)),
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


def find_poles(node: Node, segments: Segments, config: ChoiceConfig) -> np.ndarray:
  """Indices of the segments on which the formula leaves the range of the data where a denominator is smallest."""
  is_found = np.zeros(len(segments.begin), bool)
  # Segments [G], and the shares of their length at which they are looked at [G, P].
  groups = [(np.arange(len(segments.begin)), segments.shares)]
  # Inner ones first: beside its pole 1/(x - 3) hides the zero of 1 - 1e-6/(x - 3).
  waiting = list(dict.fromkeys(_denominators(node)))
  while waiting:
    denominator = waiting.pop()
    finer, has_waves = [], bool(frequencies.waves(denominator))
    is_inner = any(denominator in walk(other) for other in waiting)
    for which, shares in groups:
      values = values_at(denominator, _points_at(segments, which, shares))
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
  values = _without_gaps(values_at(node, _points_at(segments, which, shares)), node, segments, which, shares)
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
  before, after = (values_at(node, _points_at(segments, which, shares + side)) for side in (-BESIDE, BESIDE))
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
  missed. A needle on one row is what no other row knows of. Where poles lie between no row and its nearest, as x = 0
  may among 200 rows of x and y, the rows beside them are those at which the denominators are smallest, of each sign.
  """
  if has_needle(node, segments, config):
    return False
  poles = find_poles(node, segments, config)
  values = values_at(node, segments.points)
  is_out = ~((values >= segments.low) & (values <= segments.high)).all(axis=1)
  if not len(poles) or not set(np.flatnonzero(is_out)) <= set(poles.tolist()):
    return False
  # Rows far apart are not beside the pole that lies between them.
  near = poles[segments.is_near[poles]]
  some = near if len(near) else poles
  denominators = (denominator for _, denominator, _ in _with_poles(node, segments, some, config))
  beside = _are_beside(rows, segments, some, denominators, config)
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
  parts = list(_with_poles(fitted, segments, some, config))  # none where without those rows it has no pole there
  return bool(parts) and all(
    _is_told(fitted, part, rows, _are_beside(rows, segments, own, [denominator], config), room, config)
    for part, denominator, own in parts)


def _are_beside(
  rows: Rows, segments: Segments, own: np.ndarray, denominators: Iterable[Node], config: ChoiceConfig
) -> np.ndarray:
  """Which rows lie beside poles on segments `own`, all of neighbours or none: their ends, or, of the rows where a
  denominator is positive or where it is negative, those with the smallest: [N].
  """
  if segments.is_near[own].any():
    ends = np.concatenate([segments.begin[own], segments.end[own]])
    return (rows.x[:, None] == ends[None]).all(axis=2).any(axis=1)
  are_beside = np.zeros(len(rows.y), bool)
  for denominator in denominators:
    values = scoring.evaluate(denominator, rows.x)
    for side in (np.flatnonzero(values > 0), np.flatnonzero(values < 0)):
      are_beside[side[np.argsort(np.abs(values[side]))[:config.pole_rows]]] = True
  return are_beside


def _with_poles(
  node: Node, segments: Segments, near: np.ndarray, config: ChoiceConfig
) -> Iterator[tuple[Node, Node, np.ndarray]]:
  """The parts of a formula by which it has poles on some segments, of those at the places `near`, their denominators,
  and which segments.

  Where tan(x) has a pole, 1/tan(x) has none.
  """
  shares = segments.shares[near]
  for part, denominator in _singular_parts(node):
    values = values_at(denominator, segments.points[near])
    own = np.flatnonzero(_may_vanish(values, config) | bool(frequencies.waves(denominator)))
    if len(own):
      beside = _smallest(denominator, segments, near[own], shares[own], np.abs(values[own]))
      own = own[_is_out(node, segments, near[own], beside)]
    if len(own):
      yield part, denominator, near[own]


def _is_told(
  node: Node, part: Node, rows: Rows, beside: np.ndarray, room: np.ndarray, config: ChoiceConfig
) -> bool:
  """Whether the formula would miss some rows, of those beside the poles of a part too, if that did not rise there.

  Args:
    beside: whether a row lies beside the poles of this part [N].
    room: what each row may be missed by [N].
  """
  values = scoring.evaluate(part, rows.x)
  usual = np.median(np.abs(values))
  level = replaced(node, part, variable(rows.x.shape[1]))
  columns = np.column_stack([rows.x, np.clip(values, -usual, usual)])
  is_telling = ~(np.abs(scoring.evaluate(level, columns) - rows.y) <= room)
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
    size = np.abs(values_at(node, _points_at(segments, which, finer)))
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
