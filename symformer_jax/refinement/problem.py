"""A fitting problem: one formula, its points, and the residual every method minimizes.

Everything here is written for one candidate. Residuals are divided by the spread of y, so that thresholds and
float32 do not depend on the user's units.
"""

import enum
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

from symformer_jax.language import interpreter


class Status(enum.IntEnum):
  """How a fit ended; `STATUS_TEXT` says what to do about it."""

  CONVERGED = 0
  STEP_LIMIT = 1
  DIVERGED = 2
  NO_CONSTANTS = 3
  UNDEFINED = 4


STATUS_TEXT = {
  Status.CONVERGED: "converged",
  Status.STEP_LIMIT: "stopped at the step limit before it converged: raise max_steps or start nearer",
  Status.DIVERGED: "no step lowered the loss although its gradient is not small: try other starts",
  Status.NO_CONSTANTS: "the formula has no constants to fit",
  Status.UNDEFINED: "the formula is not finite at some points: change the starts, the formula or the points",
}


class Problem(NamedTuple):
  """What stays fixed while the constants of one candidate are fitted.

  Attributes:
    program: the formula, see `interpreter.translate`.
    columns: points [D, N], in the user's units.
    y: targets [N], divided by `scale`.
    weights: [N], 0 at masked points; they sum to 1.
    scale: spread of y, scalar, in the units of y; its size where y is constant.
    is_used: which constant slots the formula has [C].
    is_exponent: which slots are exponents [C]: an integer there allows a negative base.
    num_tokens: tokens to read (scalar; shared by the batch under vmap), or None for all.
    knee: of the chordal distance that residuals are measured by, scalar, in units of `y`; inf for plain differences.
  """

  program: interpreter.Program
  columns: jax.Array
  y: jax.Array
  weights: jax.Array
  scale: jax.Array
  is_used: jax.Array
  is_exponent: jax.Array
  num_tokens: jax.Array | None
  knee: jax.Array


class Evaluation(NamedTuple):
  """A formula's residuals at some constants.

  Attributes:
    loss: weighted mean of squares over the points in `mask`, in squared spreads of y; inf when not finite.
    common_loss: the same over the points asked for, comparable with the loss that came with them; inf when the
      formula is not finite at one of them.
    gradient: half the derivative of the loss by the constants [C].
    gram: Gauss-Newton matrix, J^T W J [C, C].
    mask: valid points at which the formula is finite [N].
  """

  loss: jax.Array
  common_loss: jax.Array
  gradient: jax.Array
  gram: jax.Array
  mask: jax.Array


class Method(Protocol):
  """A way to fit: unbatched, one evaluation of the formula a step.

  Every state has the fields `constants` [C], the best so far, `evaluation` there, and `num_steps`.
  """

  def init(self, problem: Problem, constants: jax.Array) -> Any:
    """The state before the first evaluation."""

  def step(self, problem: Problem, state: Any) -> Any:
    """Looks at the formula once more."""

  def terminate(self, problem: Problem, state: Any) -> tuple[jax.Array, jax.Array]:
    """`(is_done, status)` after a step; the status of a fit that is not done is STEP_LIMIT."""


def make_problem(
  program: interpreter.Program, x: jax.Array, y: jax.Array, weights: jax.Array, *, num_slots: int,
  num_tokens: jax.Array | None = None,
) -> Problem:
  """Puts one data set into the units of the methods.

  Args:
    program: one formula; x: points [N, D]; y: [N]; weights: [N], at least 0, 0 for a masked point.
    num_slots: C, static.
    num_tokens: see `Problem`.
  """
  weights = weights / jnp.maximum(jnp.sum(weights), jnp.finfo(y.dtype).tiny)
  y = jnp.where(weights > 0, y, 0)
  mean = jnp.sum(weights * y)
  spread = jnp.sqrt(jnp.sum(weights * (y - mean) ** 2))
  # A target without spread (or with one below rounding) is measured by its size, or not at all.
  size = jnp.max(jnp.abs(y))
  scale = jnp.where(spread > 8 * jnp.finfo(y.dtype).eps * size, spread, jnp.where(size > 0, size, 1))
  at_slot = program.slots[:, None] == jnp.arange(num_slots)[None]  # [L, C]
  is_exponent = jnp.any(at_slot & program.is_exponent[:, None], axis=0)
  return Problem(program, x.T, y / scale, weights, scale, jnp.any(at_slot, axis=0), is_exponent, num_tokens,
                 jnp.asarray(jnp.inf, y.dtype))


def residuals(values: jax.Array, y: jax.Array, knee: jax.Array) -> tuple[jax.Array, jax.Array]:
  """How far values [N] are from targets [N], and the derivative by the values.

  With an infinite knee k: the difference f - y. Else k (f - y) / (sqrt(k^2 + f^2) sqrt(k^2 + y^2)) k, the chordal
  distance of f and y on the circle that closes the real line at infinity: it is f - y for values far below k, at
  most k in size, and its square is smooth where f passes through a pole from +inf to -inf.
  """
  is_chordal = jnp.isfinite(knee)
  k = jnp.where(is_chordal, knee, 1)
  # Beyond it a square is no longer finite in float32.
  f, t = (jnp.clip(a / k, -1e15, 1e15) for a in (values, y))
  shrink_f, shrink_t = jax.lax.rsqrt(1 + f * f), jax.lax.rsqrt(1 + t * t)
  chord = k * ((f * shrink_f) * shrink_t - shrink_f * (t * shrink_t))
  slope = (shrink_t * shrink_f + (t * shrink_t) * (f * shrink_f)) * shrink_f * shrink_f
  return jnp.where(is_chordal, chord, values - y), jnp.where(is_chordal, slope, 1)


def chordal(problem: Problem) -> Problem:
  """The problem with residuals by chordal distance, the knee at the targets' typical size, their geometric mean.

  Near a pole a few values are larger than all others together: least squares sees nothing else, and a pole on the
  wrong side of a point is a wall that no step climbs. On the circle it is passed like any other value.
  """
  size, tiny = jnp.abs(problem.y), jnp.finfo(problem.y.dtype).tiny
  is_counted = (problem.weights > 0) & (size > tiny)
  share = jnp.where(is_counted, problem.weights, 0)
  total = jnp.maximum(jnp.sum(share), tiny)
  typical = jnp.exp(jnp.sum(share * jnp.log(jnp.where(is_counted, size, 1))) / total)
  # Values that all but vanish (a Gaussian's tails) are no measure.
  return problem._replace(knee=jnp.maximum(typical, 1e-3 * jnp.sum(problem.weights * size)))


def initial_constants(program: interpreter.Program, num_slots: int) -> jax.Array:
  """The numbers that stand at the slots before the fit [C]; 0 at unused slots."""
  at = jnp.where(program.slots >= 0, program.slots, num_slots)
  return jnp.zeros((num_slots,), program.numbers.dtype).at[at].set(program.numbers, mode="drop")


def no_evaluation(problem: Problem) -> Evaluation:
  """What a method starts from: nothing is known and no point is asked for."""
  num_slots, dtype = problem.is_used.shape[0], problem.y.dtype
  inf = jnp.asarray(jnp.inf, dtype)
  return Evaluation(inf, inf, jnp.zeros(num_slots, dtype), jnp.zeros((num_slots, num_slots), dtype),
                    jnp.zeros(problem.y.shape, bool))


def evaluate(problem: Problem, constants: jax.Array, mask: jax.Array) -> Evaluation:
  """See `look`: without the rows."""
  return look(problem, constants, mask)[0]


def look(problem: Problem, constants: jax.Array, mask: jax.Array) -> tuple[Evaluation, jax.Array]:
  """Loss, gradient and Gauss-Newton matrix in one pass.

  Args:
    problem: one candidate.
    constants: [C].
    mask: points at which the formula was finite so far, and must be for `common_loss` [N].
  Returns:
    The evaluation over all points at which the formula is finite, and the residual and its derivatives by the constants
    there [1 + C, N], times the roots of the weights; 0 elsewhere.
  """
  rows = interpreter.run(problem.program, constants, problem.columns, num_tokens=problem.num_tokens)
  rows = rows / problem.scale
  residual, slope = residuals(rows[0], problem.y, problem.knee)
  rows = (rows * slope[None]).at[0].set(residual)  # residual, then Jacobian [1 + C, N]
  is_finite = jnp.isfinite(rows[0]) & (problem.weights > 0)
  # Where only the derivative is infinite (a root at 0) the point counts in the loss and says nothing of the slope.
  rows = jnp.where(is_finite[None] & jnp.isfinite(rows), rows * jnp.sqrt(problem.weights)[None], 0)
  products = rows @ rows.T
  loss, common = products[0, 0], jnp.sum(jnp.where(mask, rows[0] ** 2, 0))
  is_lost = jnp.any(mask & ~is_finite)
  return Evaluation(
    jnp.where(jnp.isfinite(loss) & jnp.any(is_finite), loss, jnp.inf),
    jnp.where(jnp.isfinite(common) & ~is_lost, common, jnp.inf),
    products[0, 1:], products[1:, 1:], is_finite,
  ), rows


def weighted_residuals(problem: Problem, constants: jax.Array) -> jax.Array:
  """Residuals times the roots of the weights [N], as the first row of `look`, without derivatives; as they come where
  the formula is not finite.
  """
  values = interpreter.run(interpreter.with_constants(problem.program, constants), constants[:0], problem.columns,
                           num_tokens=problem.num_tokens)[0]
  return residuals(values / problem.scale, problem.y, problem.knee)[0] * jnp.sqrt(problem.weights)


def is_exact(problem: Problem, loss: jax.Array) -> jax.Array:
  """Whether the loss is down to ten roundings of y per point: all that the precision can tell."""
  eps = jnp.finfo(problem.y.dtype).eps
  return loss <= 100 * eps**2 * jnp.sum(problem.weights * problem.y**2)
