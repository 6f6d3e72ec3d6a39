"""Damped Levenberg-Marquardt for one candidate: the default method.

Minimizes sum_n w[n] (f(x[n]; c) - y[n])^2 by solving (J^T W J + mu D^2) h = -J^T W r with D^2 = diag(J^T W J)
(Marquardt 1963: constants of any size are treated alike) and the damping of Nielsen (1999, IMM-REP-1999-05).
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from symformer_jax.refinement import problem as problem_lib
from symformer_jax.refinement.problem import Evaluation, Problem, Status

# Nielsen's tau: 1e-3 trusts the start; predicted constants are near.
INITIAL_DAMPING = 1e-3
MAX_DAMPING = 1e8


class State(NamedTuple):
  """Evolves from step to step.

  Attributes:
    constants: the best so far [C]; evaluation: there.
    trial: constants to look at next [C].
    predicted: decrease of the loss that the linear model promises at `trial`.
    scale: D^2, the largest diagonal of J^T W J so far [C].
    damping, growth: Nielsen's mu and nu.
    num_steps: evaluations done.
    is_done: whether to stop; status: why.
  """

  constants: jax.Array
  evaluation: Evaluation
  trial: jax.Array
  predicted: jax.Array
  scale: jax.Array
  damping: jax.Array
  growth: jax.Array
  num_steps: jax.Array
  is_done: jax.Array
  status: jax.Array


@dataclasses.dataclass(frozen=True)
class LevenbergMarquardt:
  """The method's settings; see `problem.Method` for the interface."""

  def init(self, problem: Problem, constants: jax.Array) -> State:
    dtype = problem.y.dtype
    return State(
      constants, problem_lib.no_evaluation(problem), constants, jnp.asarray(1, dtype),
      jnp.zeros_like(constants), jnp.asarray(INITIAL_DAMPING, dtype), jnp.asarray(2, dtype), jnp.int32(0), jnp.asarray(False),
      jnp.int32(Status.STEP_LIMIT),
    )

  def step(self, problem: Problem, state: State) -> State:
    """Looks at the trial constants, takes or leaves them, and proposes the next."""
    is_first = state.num_steps == 0
    seen = problem_lib.evaluate(problem, state.trial, state.evaluation.mask)
    # The first look has nothing to compare with: an infinite loss there ends the fit.
    is_taken = is_first | (seen.common_loss < state.evaluation.loss)
    actual = jnp.where(is_first, 1, state.evaluation.loss - seen.common_loss)
    damping, growth = _update_damping(state, actual, is_first, is_taken)
    constants, evaluation = jax.tree.map(
      lambda new, old: jnp.where(is_taken, new, old), (state.trial, seen), (state.constants, state.evaluation))
    # More (1978): the largest norm seen, so that a derivative that vanishes on the way does not free its constant.
    scale = jnp.maximum(state.scale, jnp.diagonal(evaluation.gram))
    step, predicted, cosine = _solve(evaluation, scale, damping)
    status, is_done = _terminate(problem, constants, evaluation, step, predicted, cosine, damping,
                                 is_taken & ~is_first & (actual <= _reduction(problem, evaluation)))
    return State(constants, evaluation, constants + step, predicted, scale, damping, growth, state.num_steps + 1, is_done,
                 status)


def _update_damping(state, actual, is_first, is_taken):
  gain = actual / jnp.maximum(state.predicted, jnp.finfo(actual.dtype).tiny)
  shrunk = state.damping * jnp.maximum(1 / 3, 1 - (2 * gain - 1) ** 3)
  # Below a few roundings the damped matrix is no longer positive definite in floating point.
  shrunk = jnp.maximum(shrunk, 4 * jnp.finfo(actual.dtype).eps)
  damping = jnp.where(is_first, state.damping, jnp.where(is_taken, shrunk, state.damping * state.growth))
  growth = jnp.where(is_taken, 2, 2 * state.growth)
  return damping, growth


def _solve(evaluation: Evaluation, scale: jax.Array, damping: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
  """The damped step [C], the decrease it promises, and the largest cosine between residual and a derivative."""
  # Unused slots, and constants without influence so far, stay where they are: unit diagonal, zero gradient.
  has_scale = scale > 0
  inverse = jnp.where(has_scale, jax.lax.rsqrt(jnp.where(has_scale, scale, 1)), 0)
  gradient = evaluation.gradient * inverse
  matrix = evaluation.gram * inverse[:, None] * inverse + jnp.diag(jnp.where(has_scale, damping, 1))
  factor = jnp.linalg.cholesky(matrix)
  half = jax.lax.linalg.triangular_solve(factor, -gradient[:, None], left_side=True, lower=True)
  step = jax.lax.linalg.triangular_solve(factor, half, left_side=True, lower=True, transpose_a=True)[:, 0]
  predicted = jnp.sum(step * (damping * step - gradient))
  diagonal = jnp.diagonal(evaluation.gram)
  cosines = jnp.abs(evaluation.gradient) * jax.lax.rsqrt(jnp.where(diagonal > 0, diagonal * evaluation.loss, 1))
  return step * inverse, predicted, jnp.max(cosines)


def _reduction(problem: Problem, evaluation: Evaluation) -> jax.Array:
  """A decrease of the loss not worth another step."""
  eps = jnp.finfo(problem.y.dtype).eps
  return 4 * eps * evaluation.loss


def _terminate(problem, constants, evaluation, step, predicted, cosine, damping, is_small):
  """Whether to stop, and why."""
  eps = jnp.finfo(problem.y.dtype).eps
  # Ten roundings of y per point: all that the precision can tell.
  is_exact = evaluation.loss <= 100 * eps**2 * jnp.sum(problem.weights * problem.y**2)
  is_flat = cosine <= jnp.sqrt(eps) * 0.1
  is_settled = is_small & (predicted <= _reduction(problem, evaluation))
  is_stuck = jnp.all(jnp.abs(step) <= eps * jnp.abs(constants)) | (damping > MAX_DAMPING)
  is_bad = ~jnp.isfinite(evaluation.loss)
  is_converged = is_exact | is_flat | is_settled | (is_stuck & (cosine < 1e-2))
  status = jnp.where(is_bad | is_stuck, Status.DIVERGED, Status.STEP_LIMIT)
  status = jnp.where(is_converged & ~is_bad, Status.CONVERGED, status)
  return status.astype(jnp.int32), is_bad | is_converged | is_stuck
