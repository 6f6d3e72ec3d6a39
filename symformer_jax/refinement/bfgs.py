"""BFGS for one candidate: quasi-Newton on the loss, with backtracking (Nocedal and Wright 2006, ch. 3 and 6)."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from symformer_jax.refinement import problem as problem_lib
from symformer_jax.refinement.problem import Evaluation, Problem, Status

# Sufficient decrease, Nocedal and Wright's c1.
ARMIJO = 1e-4
SHRINK = 0.3


class State(NamedTuple):
  """Evolves from step to step.

  Attributes:
    constants: the best so far [C]; evaluation: there.
    inverse: approximate inverse of half the loss's second derivative [C, C].
    direction: of the line search [C]; length: along it, in its units.
    reduction: decrease of the loss by the last step taken; inf when the last was not taken.
    num_steps: evaluations done.
  """

  constants: jax.Array
  evaluation: Evaluation
  inverse: jax.Array
  direction: jax.Array
  length: jax.Array
  reduction: jax.Array
  num_steps: jax.Array


@dataclasses.dataclass(frozen=True)
class BFGS:
  """See `problem.Method` for the interface."""

  def init(self, problem: Problem, constants: jax.Array) -> State:
    one = jnp.ones((), problem.y.dtype)
    return State(constants, problem_lib.no_evaluation(problem), jnp.eye(constants.shape[0], dtype=one.dtype),
                 jnp.zeros_like(constants), one, one * jnp.inf, jnp.int32(0))

  def step(self, problem: Problem, state: State) -> State:
    """Looks along the direction: takes the point and turns, or comes nearer."""
    is_first = state.num_steps == 0
    old = state.evaluation
    trial = state.constants + state.length * state.direction
    seen = problem_lib.evaluate(problem, trial, old.mask)
    decrease = old.loss - seen.common_loss
    is_taken = is_first | (decrease >= -2 * ARMIJO * state.length * jnp.dot(old.gradient, state.direction))
    is_taken = is_first | (is_taken & (decrease > 0))
    # The Gauss-Newton diagonal at the start brings all constants to one scale.
    diagonal = jnp.diagonal(seen.gram)
    start = jnp.diag(1 / jnp.where(diagonal > 0, diagonal, 1))
    updated = _update(state.inverse, state.length * state.direction, seen.gradient - old.gradient)
    inverse = jnp.where(is_first, start, jnp.where(is_taken, updated, state.inverse))
    constants, evaluation = jax.tree.map(
      lambda new, kept: jnp.where(is_taken, new, kept), (trial, seen), (state.constants, old))
    direction = jnp.where(is_taken, -inverse @ evaluation.gradient, state.direction)
    return State(constants, evaluation, inverse, direction, jnp.where(is_taken, 1, SHRINK * state.length),
                 jnp.where(is_taken & ~is_first, decrease, jnp.inf), state.num_steps + 1)

  def terminate(self, problem: Problem, state: State) -> tuple[jax.Array, jax.Array]:
    """Stops at rounding level, at a flat place, or when the line search finds nothing."""
    return descent_status(problem, state.evaluation, state.reduction, state.length * state.direction, state.constants)


def _update(inverse: jax.Array, step: jax.Array, change: jax.Array) -> jax.Array:
  """The BFGS update of the inverse, skipped where the curvature along the step is not positive."""
  curvature = jnp.dot(step, change)
  size = jnp.linalg.norm(step) * jnp.linalg.norm(change)
  is_usable = curvature > jnp.finfo(step.dtype).eps * size
  rho = 1 / jnp.where(is_usable, curvature, 1)
  left = jnp.eye(step.shape[0], dtype=step.dtype) - rho * jnp.outer(step, change)
  return jnp.where(is_usable, left @ inverse @ left.T + rho * jnp.outer(step, step), inverse)


def descent_status(
  problem: Problem, evaluation: Evaluation, reduction: jax.Array, step: jax.Array, constants: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """When a method that knows only slopes is done: `(is_done, status)`.

  Args:
    problem: one candidate; evaluation: at the best constants [C].
    reduction: decrease of the loss by the last step, inf when it was not taken; step: the next to be tried [C].
  """
  eps = jnp.finfo(problem.y.dtype).eps
  diagonal = jnp.diagonal(evaluation.gram)
  has_slope = diagonal > 0
  cosines = jnp.where(has_slope, evaluation.gradient**2 / jnp.where(has_slope, diagonal, 1), 0)
  squared_cosine = jnp.max(cosines) / jnp.where(evaluation.loss > 0, evaluation.loss, 1)
  is_bad = ~jnp.isfinite(evaluation.loss)
  is_converged = problem_lib.is_exact(problem, evaluation.loss) | (squared_cosine <= 0.01 * eps)
  is_stuck = jnp.all(jnp.abs(step) <= eps * jnp.abs(constants))
  is_converged = is_converged | ((is_stuck | (reduction <= eps * evaluation.loss)) & (squared_cosine < 1e-4))
  status = jnp.where(is_bad | is_stuck, Status.DIVERGED, Status.STEP_LIMIT)
  status = jnp.where(is_converged & ~is_bad, Status.CONVERGED, status)
  return is_bad | is_converged | is_stuck, status.astype(jnp.int32)
