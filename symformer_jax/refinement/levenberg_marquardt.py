"""Damped Levenberg-Marquardt for one candidate: the default method.

Minimizes sum_n w[n] (f(x[n]; c) - y[n])^2 by solving (J^T W J + mu D^2) h = -J^T W r with D^2 the diagonal of
J^T W J (Marquardt 1963: constants of any size are treated alike; More 1978: its largest values so far) and the
damping mu of Nielsen (1999, IMM-REP-1999-05). Steps bend as the residuals do: geodesic acceleration (Transtrum and
Sethna 2012, arXiv:1201.5885), without which the way along a narrow curved valley, of `exp(a - b/(x + c)) + d` say,
takes hundreds of steps. It is for what comes near and has not ended after a few steps: on the loop plan each takes
longer by a fifth, on the other every step does. A bend that is too large is left out, where theirs rejects the step;
after a step that was not taken there is none.
"""

from collections.abc import Callable
import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from symformer_jax.refinement import problem as problem_lib
from symformer_jax.refinement.problem import Evaluation, Problem, Status

# Beyond it a step is below float32's resolution of the constants.
MAX_DAMPING = 1e8
# Share of the step after which residuals are looked at for their second derivative (Transtrum and Sethna: 0.1), and
# roundings of a residual that a difference there must be more than.
PROBE = 0.1
ROUNDINGS = 16
# The least factor by which a step that came as promised lowers mu (Nielsen 1999).
NIELSEN = 1 / 3


class State(NamedTuple):
  """Evolves from step to step.

  Attributes:
    constants: the best so far [C]; evaluation: there.
    trial: constants to look at next [C].
    predicted: decrease of the loss that the linear model promises at `trial`, its bend apart.
    reduction: decrease of the loss by the last step taken; inf when the last was not taken.
    is_held: exponents that keep their integer value [C].
    scale: D^2 [C].
    damping, growth: Nielsen's mu and nu.
    num_steps: evaluations done.
  """

  constants: jax.Array
  evaluation: Evaluation
  trial: jax.Array
  predicted: jax.Array
  reduction: jax.Array
  is_held: jax.Array
  scale: jax.Array
  damping: jax.Array
  growth: jax.Array
  num_steps: jax.Array


@dataclasses.dataclass(frozen=True)
class LevenbergMarquardt:
  """Settings of the method; see `problem.Method` for the interface.

  Attributes:
    damping: Nielsen's tau, the first mu. 1e-3 trusts the start: predicted constants are near.
    decrease: the least factor by which one of the first `bent_from` steps that came as promised lowers mu. Of those
      that come later it is Nielsen's: a valley that takes so many is lost by bold ones.
    most_bent: the largest bend of a step, twice its size as a share of the step's, that is followed (Transtrum and
      Sethna: 0.75); 0 for straight steps.
    bent_from: steps before the first that may bend: a right formula has mostly ended by then.
    bent_below: loss, in squared spreads of y, from which on steps do.
  """

  damping: float = 1e-3
  decrease: float = NIELSEN
  most_bent: float = 0.75
  bent_from: int = 8
  bent_below: float = 1e-3

  def init(self, problem: Problem, constants: jax.Array) -> State:
    one = jnp.ones((), problem.y.dtype)
    return State(constants, problem_lib.no_evaluation(problem), constants, one, one * jnp.inf,
                 jnp.zeros(constants.shape, bool), jnp.zeros_like(constants), one * self.damping, 2 * one, jnp.int32(0))

  def step(self, problem: Problem, state: State) -> State:
    """Looks at the trial constants, takes or leaves them, and proposes the next."""
    is_first = state.num_steps == 0
    seen, rows = problem_lib.look(problem, state.trial, state.evaluation.mask)
    # Rounded exponents (below) are worth taking when more points are defined, whatever the loss.
    is_wider = (state.num_steps == 1) & jnp.any(state.is_held) & (jnp.sum(seen.mask) > jnp.sum(state.evaluation.mask))
    is_taken = is_first | is_wider | (seen.common_loss < state.evaluation.loss)
    actual = state.evaluation.loss - seen.common_loss
    decrease = jnp.where(state.num_steps < self.bent_from, self.decrease, max(self.decrease, NIELSEN))
    damping, growth = _update_damping(state, actual, is_taken, decrease)
    constants, evaluation = jax.tree.map(
      lambda new, old: jnp.where(is_taken, new, old), (state.trial, seen), (state.constants, state.evaluation))
    scale = jnp.where(is_wider, 0, state.scale)
    scale = jnp.maximum(scale, jnp.where(jnp.isfinite(evaluation.loss), jnp.diagonal(evaluation.gram), 0))
    is_undefined = jnp.any((problem.weights > 0) & ~evaluation.mask)
    is_rounding = is_first & is_undefined & jnp.any(problem.is_exponent)
    is_held = jnp.where(is_rounding, problem.is_exponent, state.is_held & ((state.num_steps != 1) | is_taken))
    step, predicted, solve = _solve(evaluation, scale, damping, is_held)
    if self.most_bent:
      # Where the trial was left, its rows say nothing of the place that the step begins at.
      bends = is_taken & (state.num_steps >= self.bent_from) & (evaluation.loss <= self.bent_below)
      step = step + jax.lax.cond(
        bends, lambda: _bend(problem, rows, constants, step, solve, scale, self.most_bent),
        lambda: jnp.zeros_like(step))
    # A power of a negative base needs an integer exponent, which no step of least squares would find.
    step = jnp.where(is_rounding, jnp.where(is_held, jnp.round(constants) - constants, 0), step)
    is_plain = is_first | is_wider
    return State(
      constants, evaluation, constants + step, predicted, jnp.where(is_taken & ~is_plain, actual, jnp.inf), is_held,
      scale, jnp.where(is_plain, state.damping, damping), jnp.where(is_plain, 2, growth), state.num_steps + 1)

  def terminate(self, problem: Problem, state: State) -> tuple[jax.Array, jax.Array]:
    """Stops at rounding level, at a flat place, when decreases are no longer worth a step, or when stuck."""
    eps, evaluation = jnp.finfo(problem.y.dtype).eps, state.evaluation
    small = 4 * eps * evaluation.loss
    diagonal = jnp.diagonal(evaluation.gram)
    has_slope = diagonal > 0
    squared_cosines = jnp.where(
      has_slope & ~state.is_held, evaluation.gradient**2 / jnp.where(has_slope, diagonal, 1), 0)
    squared_cosine = jnp.max(squared_cosines) / jnp.where(evaluation.loss > 0, evaluation.loss, 1)
    is_settled = (state.reduction <= small) & (state.predicted <= small)
    is_stuck = jnp.all(jnp.abs(state.trial - state.constants) <= eps * jnp.abs(state.constants))
    is_stuck = is_stuck | (state.damping > MAX_DAMPING)
    is_bad = ~jnp.isfinite(evaluation.loss)
    # cos^2 bounds the relative decrease that one constant alone can still bring.
    is_flat = squared_cosine <= 0.01 * eps
    is_converged = problem_lib.is_exact(problem, evaluation.loss) | is_flat | is_settled
    is_converged = (is_converged | (is_stuck & (squared_cosine < 1e-4))) & ~is_bad
    status = jnp.where(is_converged, Status.CONVERGED, jnp.where(is_stuck | is_bad, Status.DIVERGED, Status.STEP_LIMIT))
    is_rounding = (state.num_steps == 1) & jnp.any(state.is_held)
    return (is_bad | is_converged | is_stuck) & ~is_rounding, status.astype(jnp.int32)


def _update_damping(
  state: State, actual: jax.Array, is_taken: jax.Array, decrease: jax.Array | float
) -> tuple[jax.Array, jax.Array]:
  """Nielsen's rule: mu falls smoothly with the gain ratio, and grows ever faster while steps fail."""
  gain = actual / jnp.maximum(state.predicted, jnp.finfo(actual.dtype).tiny)
  shrunk = state.damping * jnp.maximum(decrease, 1 - (2 * gain - 1) ** 3)
  # Below a few roundings the damped matrix is no longer positive definite in floating point.
  shrunk = jnp.maximum(shrunk, 4 * jnp.finfo(actual.dtype).eps)
  return jnp.where(is_taken, shrunk, state.damping * state.growth), jnp.where(is_taken, 2, 2 * state.growth)


def _solve(
  evaluation: Evaluation, scale: jax.Array, damping: jax.Array, is_held: jax.Array
) -> tuple[jax.Array, jax.Array, Callable[[jax.Array], jax.Array]]:
  """The damped step [C], the decrease of the loss that it promises, and what solves for another gradient [C]."""
  # Unused slots, and constants without influence so far, stay where they are: unit diagonal, zero gradient.
  is_moving = (scale > 0) & ~is_held
  inverse = jnp.where(is_moving, jax.lax.rsqrt(jnp.where(is_moving, scale, 1)), 0)
  gradient = evaluation.gradient * inverse
  matrix = evaluation.gram * inverse[:, None] * inverse[None] + jnp.diag(jnp.where(is_moving, damping, 1))
  factor = jnp.linalg.cholesky(matrix)

  def solve(scaled: jax.Array) -> jax.Array:
    half = jax.lax.linalg.triangular_solve(factor, -scaled[:, None], left_side=True, lower=True)
    return jax.lax.linalg.triangular_solve(factor, half, left_side=True, lower=True, transpose_a=True)[:, 0]

  step = solve(gradient)
  return (step * inverse, jnp.sum(step * (damping * step - gradient)),
          lambda other: solve(other * inverse) * inverse)


def _bend(
  problem: Problem, rows: jax.Array, constants: jax.Array, step: jax.Array, solve: Callable[[jax.Array], jax.Array],
  scale: jax.Array, most_bent: float,
) -> jax.Array:
  """What is to be added to a step [C] for the second derivative of the residuals along it, 0 where that is too much.

  Args:
    rows: of `problem.look` at the constants [1 + C, N].
    solve: see `_solve`; scale: D^2 [C].
  """
  residual, straight = rows[0], step @ rows[1:]
  beyond = problem_lib.weighted_residuals(problem, constants + PROBE * step) - residual - PROBE * straight
  size = jnp.abs(residual) + jnp.abs(problem.y) * jnp.sqrt(problem.weights)
  is_known = jnp.isfinite(beyond) & (jnp.abs(beyond) > ROUNDINGS * jnp.finfo(size.dtype).eps * size)
  second = 2 / PROBE**2 * jnp.where(is_known, beyond, 0)
  bend = 0.5 * solve(rows[1:] @ second)
  is_small = 4 * jnp.sum(scale * bend**2) <= most_bent**2 * jnp.sum(scale * step**2)
  return jnp.where(is_small, bend, 0)
