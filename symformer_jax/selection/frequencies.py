"""What rows tell of the waves of a formula: how far these turn from row to row, which slower ones have their values."""

import math

import numpy as np

from symformer_jax.engine.config import DEFAULT, ChoiceConfig
from symformer_jax.language import programs
from symformer_jax.language.expression import Node, chain, flatten, has_column, number, replaced, variable, walk
from symformer_jax.language.operators import WAVES
from symformer_jax.language.tidy import split_factor
from symformer_jax.selection import between_rows, scoring

# Values that differ by less than this share of their range are equal: a phase of a thousand turns keeps twelve digits.
EQUAL = 1e-6


def waves(node: Node) -> list[Node]:
  """Parts that are waves of something that is no number."""
  return [n for n in walk(node) if n.token in WAVES and has_column(n)]


def turn(wave: Node, segments: between_rows.Segments, *, config: ChoiceConfig = DEFAULT.choice) -> float:
  """Radians that a wave turns between neighbouring rows.

  With one column the mean over its steps without the largest, so that a gap in the data condemns no wave; with several
  the range of the phase over the number of rows, which is what evenly spread phases would have, for all but the lowest
  and the highest phases.
  """
  phase = between_rows.values_at(wave.args[0], segments.points)
  if not np.isfinite(phase).all():
    return math.inf
  if segments.begin.shape[1] == 1:
    steps = np.sort(np.sum(np.abs(np.diff(phase, axis=1)), axis=1))
    return float(np.mean(steps[: max(len(steps) - 1, 1)]))
  return _range(phase, config) / max(segments.num_rows - 1, 1)


def _range(phase: np.ndarray, config: ChoiceConfig) -> float:
  """What a phase goes through, as far as it goes without its lowest and its highest values for each of the others."""
  low, high = np.quantile(phase, (config.phase_edges, 1 - config.phase_edges))
  return float((high - low) / (1 - 2 * config.phase_edges))


def is_alias(node: Node, segments: between_rows.Segments, *, config: ChoiceConfig = DEFAULT.choice) -> bool:
  """Whether a wave of the formula turns too far between rows to be known from them."""
  return any(turn(wave, segments, config=config) > config.half_turn * (1 + 1e-6) for wave in waves(node))


def is_arc(wave: Node, x: np.ndarray, *, config: ChoiceConfig = DEFAULT.choice) -> bool:
  """Whether of a wave of fitted frequency rows [N, D] see less than a period: any bend looks like an arc of it.

  A frequency that was not fitted, as in `sin(angle + 0.5)` or `cos(2*angle)`, is a law's own where the phase is that of
  an angle: `sin(silicon)` of 70 to 75 percent is an arc. Twelve months are a year though eleven lie between the first
  and the last.
  """
  phase = scoring.evaluate(wave.args[0], x)
  if not np.isfinite(phase).all():
    return False
  factors = [factor for parts, factor in map(split_factor, flatten(wave.args[0], "+")) if any(map(has_column, parts))]
  is_fitted = any(programs.is_constant(number(factor)) for factor in factors)
  if not is_fitted and np.max(np.abs(phase)) <= 2 * math.pi * config.angle_turns:
    return False
  num_steps = max(len(np.unique(phase)) - 1, 1)
  period = math.pi if wave.token in ("tan", "cot") else 2 * math.pi
  return bool(np.ptp(phase) * (num_steps + 1) / num_steps < period * (1 - 1e-3))


def is_scattered(wave: Node, x: np.ndarray, *, config: ChoiceConfig = DEFAULT.choice) -> bool:
  """Whether rows [N, D] show next to nothing of a wave's course: its phase has a few values only, as of a code, or the
  first or the last few lie more than half a turn from all others: a frequency is found that meets outliers one by one.
  """
  phase = scoring.evaluate(wave.args[0], x)
  if not np.isfinite(phase).all():
    return False
  phase = np.unique(phase)
  [gaps] = np.nonzero(np.diff(phase) > config.half_turn * (1 + 1e-6))
  first, last = (gaps[0] + 1, len(phase) - gaps[-1] - 1) if len(gaps) else (len(phase), len(phase))
  return bool(min(first, last) < config.wave_rows)


def log_frequencies(node: Node, x: np.ndarray, *, config: ChoiceConfig = DEFAULT.choice) -> float:
  """Logarithm of how many formulas differ from this one in the frequencies of its waves, up to theirs, and can be told
  from it on rows [N, D]: of each wave one for every half turn of its phase, a sine and a cosine for each whole one
  (Rayleigh's resolution), at least itself. One whose frequency was not fitted was found among them as well.
  """
  phases = (scoring.evaluate(wave.args[0], x) for wave in waves(node))
  turns = [_range(phase, config) / math.pi for phase in phases if np.isfinite(phase).all()]
  return sum(math.log(turn) for turn in turns if turn > 1)


def is_nonlinear(wave: Node) -> bool:
  """Whether the phase of a wave is not linear in its columns: `cos(exp(x - 68))` meets any rows, and over a century of
  years `sin(0.0016*year**2)` is a wave of years whose phase is chosen by the power.
  """
  def bends(part: Node) -> bool:
    num_varying = sum(map(has_column, part.args))
    return num_varying > 0 if part.token not in ("+", "*", "neg") else part.token == "*" and num_varying > 1
  return any(map(bends, walk(wave.args[0])))


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
      if slow != wave and has_equal_values(changed := replaced(node, wave, slow), node, x):
        node = changed
        break
  return node


def has_equal_values(first: Node, second: Node, x: np.ndarray) -> bool:
  """Whether two formulas agree on rows to what rounding of a large phase leaves."""
  one, other = (scoring.evaluate(node, x) for node in (first, second))
  is_finite = np.isfinite(one).all() and np.isfinite(other).all()
  return bool(is_finite and np.allclose(one, other, rtol=0, atol=EQUAL * max(np.ptp(other), np.finfo(float).tiny)))


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
