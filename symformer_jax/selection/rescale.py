"""Brings data into the box a model was trained on, and formulas back into the user's units.

A factor per column: x' = x / s, y' = y / t. A formula f found on the scaled data stands for y = t f(x / s); the
factors are moved outwards through products and powers until they merge with the constants there, so that
14.7 x'**1.5 with s = 6 comes back as c x**1.5 and not as 14.7 (0.1667 x)**1.5.
"""

import dataclasses

import numpy as np

from symformer_jax.language.expression import VARIABLE, Node, chain, flatten, number, power

# Training points are drawn from boxes made of {-5, 0, 5} (SymFormer, sec. 3.3).
BOX = 5.0
# Below this the points fill less than a fifth of the box, and look to the model like a constant input.
SMALL_X = 1.0
# RMS of y seen in training, roughly; outside it the model has met few formulas.
SMALLEST_Y, LARGEST_Y = 0.05, 1000.0
COMFORTABLE_Y = 5.0


@dataclasses.dataclass(frozen=True)
class Scaling:
  """Positive factors between the user's units and the model's: x' = x / x_factors, y' = y / y_factor.

  Attributes:
    x_factors: one for each column, D of them.
    y_factor: of the target.
  """

  x_factors: tuple[float, ...]
  y_factor: float = 1.0

  @property
  def is_identity(self) -> bool:
    return self.y_factor == 1 and all(s == 1 for s in self.x_factors)

  def apply(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scaled points `(x' [N, D], y' [N])`, dimensionless."""
    return x / np.asarray(self.x_factors), y / self.y_factor

  def restore(self, node: Node) -> Node:
    """The formula in the user's units of a formula in scaled units."""
    factor, body = _pull_out(node, self.x_factors)
    return _multiplied(factor * self.y_factor, body)


def propose_scalings(x: np.ndarray, y: np.ndarray) -> list[Scaling]:
  """The scalings worth trying, the likeliest first.

  The raw data alone when they fit the trained box; with them when they fit but are small; else the scaled alone.
  Args:
    x: points [N, D]; y: [N]; finite, in the user's units.
  """
  largest = np.max(np.abs(x), axis=0)
  rms = float(np.sqrt(np.mean(np.square(y / np.max(np.abs(y)))))) * float(np.max(np.abs(y)))
  x_factors = tuple(float(m) / BOX if m > BOX or 0 < m < SMALL_X else 1.0 for m in largest)
  y_factor = 1.0 if SMALLEST_Y <= rms <= LARGEST_Y else rms / COMFORTABLE_Y
  scaled, raw = Scaling(x_factors, y_factor), Scaling((1.0,) * x.shape[1])
  if scaled.is_identity:
    return [raw]
  fits_raw = np.all(largest <= BOX) and y_factor == 1
  return [scaled, raw] if fits_raw else [scaled]


def _pull_out(node: Node, factors: tuple[float, ...]) -> tuple[float, Node | None]:
  """Writes node(x / s) as `factor * body(x)`; a body of None stands for 1."""
  if node.token == VARIABLE:
    return 1 / factors[node.value], node
  if not node.args:
    return node.value, None
  if node.token == "*":
    parts = [_pull_out(n, factors) for n in flatten(node, "*")]
    bodies = [body for _, body in parts if body is not None]
    return float(np.prod([f for f, _ in parts])), chain("*", bodies) if bodies else None
  if node.token == "+":
    return 1.0, chain("+", [_restored(n, factors) for n in flatten(node, "+")])
  if node.token == "neg":
    factor, body = _pull_out(node.args[0], factors)
    return -factor, body
  if (exponent := _numeric_exponent(node)) is not None:
    return _pull_power(node, exponent, factors)
  return 1.0, node._replace(args=tuple(_restored(arg, factors) for arg in node.args))


_EXPONENTS = {"pow2": 2.0, "pow3": 3.0, "sqrt": 0.5, "inv": -1.0}


def _numeric_exponent(node: Node) -> float | None:
  if node.token == "pow":
    return node.args[1].value if node.args[1].is_number else None
  return _EXPONENTS.get(node.token)


def _pull_power(node: Node, exponent: float, factors: tuple[float, ...]) -> tuple[float, Node | None]:
  factor, body = _pull_out(node.args[0], factors)
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
    inner = _restored(node.args[0], factors)
    return 1.0, node._replace(args=(inner, *node.args[1:]))
  return sign * pulled, None if body is None else power(body, number(exponent))


def _restored(node: Node, factors: tuple[float, ...]) -> Node:
  """node(x / s) with its factor written out."""
  return _multiplied(*_pull_out(node, factors))


def _multiplied(factor: float, body: Node | None) -> Node:
  """`factor * body`, the number last, as in canonical trees."""
  if body is None:
    return number(factor)
  if factor == 1:
    return body
  if factor == -1:
    return Node("neg", (body,))
  return chain("*", [*flatten(body, "*"), number(factor)])
