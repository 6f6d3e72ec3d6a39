"""Brings data into the box a model was trained on, and formulas back into the user's units.

An offset and a factor per column: x' = (x - o) / s, y' = (y - q) / t. A formula f found on the scaled data stands for
y = t f((x - o) / s) + q; the factors are moved outwards through products and powers until they merge with the
constants there, so that 14.7 x'**1.5 with s = 6 comes back as c x**1.5 and not as 14.7 (0.1667 x)**1.5. Offsets stay
where they are, as constants that are fitted again later.
"""

import dataclasses
import math

import numpy as np

from symformer_jax.engine.config import DEFAULT, ScalingConfig
from symformer_jax.language.expression import VARIABLE, Node, chain, flatten, number, power


@dataclasses.dataclass(frozen=True)
class Scaling:
  """Between the user's units and the model's: x' = (x - x_offsets) / x_factors, y' = (y - y_offset) / y_factor.

  Attributes:
    x_factors: one for each column, D of them, not 0; y_factor: of the target, above 0.
    x_offsets: one for each column, or empty for none; y_offset: of the target.
  """

  x_factors: tuple[float, ...]
  y_factor: float = 1.0
  x_offsets: tuple[float, ...] = ()
  y_offset: float = 0.0

  @property
  def is_identity(self) -> bool:
    return self.y_factor == 1 and all(s == 1 for s in self.x_factors) and not self.is_moved

  @property
  def is_moved(self) -> bool:
    """Whether a formula comes back with a sum in it."""
    return self.y_offset != 0 or any(self.x_offsets)

  def apply(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scaled points `(x' [N, D], y' [N])`, dimensionless."""
    offsets = np.asarray(self.x_offsets or (0.0,) * len(self.x_factors))
    return (x - offsets) / np.asarray(self.x_factors), (y - self.y_offset) / self.y_factor

  def restore(self, node: Node) -> Node:
    """The formula in the user's units of a formula in scaled units."""
    factor, body = _pull_out(node, self)
    restored = _multiplied(factor * self.y_factor, body)
    return chain("+", [*flatten(restored, "+"), number(self.y_offset)]) if self.y_offset else restored

  def column(self, node: Node) -> Node:
    """A variable less its offset."""
    offset = self.x_offsets[node.value] if self.x_offsets else 0.0
    return chain("+", [node, number(-offset)]) if offset else node


def propose_scalings(
  x: np.ndarray, y: np.ndarray, *, config: ScalingConfig = DEFAULT.scaling
) -> list[Scaling]:
  """The scalings worth trying, the likeliest first.

  The raw data alone when they fit the trained box; with them when they fit but are small; else the scaled alone.
  Data off to one side are centred as well, and moved to where their lowest value is 0.
  Args:
    x: points [N, D]; y: [N]; finite, in the user's units.
    config: the trained box, and what counts as small or far off.
  """
  plain = [_scaling(x, y, config)]
  if not plain[0].is_identity and plain[0].y_factor == 1 and np.max(np.abs(x)) <= config.box:
    plain.append(Scaling((1.0,) * x.shape[1]))
  is_far, highest = _is_far(x, config), float(np.max(np.abs(y)))
  # Divided first: squares and sums of huge targets overflow.
  y_offset = float(np.mean(y / highest)) * highest if 0 < np.ptp(y) < config.far_y * highest else 0.0
  moved = []
  if is_far.any():
    lowest, highest = x.min(axis=0), x.max(axis=0)
    moved = [np.where(is_far, offsets, 0.0) for offsets in (lowest + (highest - lowest) / 2, lowest)]
  elif y_offset:
    moved = [np.zeros(x.shape[1])]
  return [_scaling(x, y, config, tuple(offsets.tolist()), y_offset) for offsets in moved] + plain


def _is_far(x: np.ndarray, config: ScalingConfig) -> np.ndarray:
  """Columns [D] off to one side that do not fit the box as they are, or lie in a small part of it."""
  largest, span = np.max(np.abs(x), axis=0), np.ptp(x, axis=0)
  is_outside = (largest > config.box) | (span < config.small_x)
  return is_outside & (span > 0) & (span < config.far_x * largest)


def _scaling(
  x: np.ndarray, y: np.ndarray, config: ScalingConfig, x_offsets: tuple[float, ...] = (), y_offset: float = 0.0
) -> Scaling:
  """Factors that bring the moved data into the box, 1 where they lie well."""
  x, y = Scaling((1.0,) * x.shape[1], 1.0, x_offsets, y_offset).apply(x, y)
  largest, highest = np.max(np.abs(x), axis=0), float(np.max(np.abs(y)))
  rms = float(np.sqrt(np.mean(np.square(y / highest)))) * highest if highest else 1.0
  box = config.box
  x_factors = tuple(float(m) / box if m > box or 0 < m < config.small_x else 1.0 for m in largest)
  y_factor = 1.0 if config.smallest_y <= rms <= config.largest_y else rms / config.comfortable_y
  return Scaling(x_factors, y_factor, x_offsets, y_offset)


def _pull_out(node: Node, scaling: Scaling) -> tuple[float, Node | None]:
  """Writes node((x - o) / s) as `factor * body(x)`; a body of None stands for 1."""
  if node.token == VARIABLE:
    return 1 / scaling.x_factors[node.value], scaling.column(node)
  if not node.args:
    return node.value, None
  if node.token == "*":
    parts = [_pull_out(n, scaling) for n in flatten(node, "*")]
    bodies = [body for _, body in parts if body is not None]
    return math.prod(f for f, _ in parts), chain("*", bodies) if bodies else None
  if node.token == "+":
    return 1.0, chain("+", [_restored(n, scaling) for n in flatten(node, "+")])
  if node.token == "neg":
    factor, body = _pull_out(node.args[0], scaling)
    return -factor, body
  if (exponent := _numeric_exponent(node)) is not None:
    return _pull_power(node, exponent, scaling)
  return 1.0, node._replace(args=tuple(_restored(arg, scaling) for arg in node.args))


_EXPONENTS = {"pow2": 2.0, "pow3": 3.0, "sqrt": 0.5, "inv": -1.0}


def _numeric_exponent(node: Node) -> float | None:
  if node.token == "pow":
    return node.args[1].value if node.args[1].is_number else None
  return _EXPONENTS.get(node.token)


def _pull_power(node: Node, exponent: float, scaling: Scaling) -> tuple[float, Node | None]:
  factor, body = _pull_out(node.args[0], scaling)
  sign = 1.0
  if factor < 0:  # (-a b)**p = (-1)**p a**p b**p only for whole p; otherwise the sign stays with the body
    if exponent == int(exponent):
      sign = -1.0 if int(exponent) % 2 else 1.0
    else:
      body = number(-1) if body is None else Node("neg", (body,))
    factor = -factor
  with np.errstate(all="ignore"):
    pulled = float(np.float64(factor) ** exponent)
  if not np.isfinite(pulled) or pulled == 0:  # a zero base, or beyond float64: keep the power as it was written
    inner = _restored(node.args[0], scaling)
    return 1.0, node._replace(args=(inner, *node.args[1:]))
  return sign * pulled, None if body is None else power(body, number(exponent))


def _restored(node: Node, scaling: Scaling) -> Node:
  """node((x - o) / s) with its factor written out."""
  return _multiplied(*_pull_out(node, scaling))


def _multiplied(factor: float, body: Node | None) -> Node:
  """`factor * body`, the number last, as in canonical trees."""
  if body is None:
    return number(factor)
  if factor == 1:
    return body
  if factor == -1:
    return Node("neg", (body,))
  return chain("*", [*flatten(body, "*"), number(factor)])
