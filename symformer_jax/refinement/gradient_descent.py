"""Gradient descent for one candidate, as in the paper's rows (SymFormer, sec. 3.5).

Differs from the paper: constants are measured by their own size, and the learning rate adapts (it grows while the
loss falls and is cut when it rises: the "bold driver" of Battiti 1989), so that there is no rate to tune.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from symformer_jax.refinement import problem as problem_lib
from symformer_jax.refinement.bfgs import descent_status
from symformer_jax.refinement.problem import Evaluation, Problem

GROW, SHRINK = 1.3, 0.4


class State(NamedTuple):
  """Evolves from step to step.

  Attributes:
    constants: the best so far [C]; evaluation: there.
    sizes: |c| at the start, 1 where that is 0 [C].
    rate: learning rate, in units of `sizes` squared.
    reduction: decrease of the loss by the last step taken; inf when the last was not taken.
    num_steps: evaluations done.
  """

  constants: jax.Array
  evaluation: Evaluation
  sizes: jax.Array
  rate: jax.Array
  reduction: jax.Array
  num_steps: jax.Array


@dataclasses.dataclass(frozen=True)
class GradientDescent:
  """See `problem.Method` for the interface."""

  def init(self, problem: Problem, constants: jax.Array) -> State:
    sizes = jnp.where(constants != 0, jnp.abs(constants), 1)
    zero = jnp.zeros((), problem.y.dtype)
    return State(constants, problem_lib.no_evaluation(problem), sizes, zero, zero + jnp.inf, jnp.int32(0))

  def step(self, problem: Problem, state: State) -> State:
    """Goes down the slope once, or comes back and shortens the rate."""
    is_first, old = state.num_steps == 0, state.evaluation
    trial = state.constants + _step(state)
    seen = problem_lib.evaluate(problem, trial, old.mask)
    decrease = old.loss - seen.common_loss
    is_taken = is_first | (decrease > 0)
    # The trace bounds the largest curvature: a first rate that cannot overshoot a parabola.
    first_rate = 1 / jnp.maximum(jnp.sum(state.sizes**2 * jnp.diagonal(seen.gram)), jnp.finfo(trial.dtype).tiny)
    rate = jnp.where(is_first, first_rate, state.rate * jnp.where(is_taken, GROW, SHRINK))
    constants, evaluation = jax.tree.map(
      lambda new, kept: jnp.where(is_taken, new, kept), (trial, seen), (state.constants, old))
    return State(constants, evaluation, state.sizes, rate, jnp.where(is_taken & ~is_first, decrease, jnp.inf),
                 state.num_steps + 1)

  def terminate(self, problem: Problem, state: State) -> tuple[jax.Array, jax.Array]:
    """Stops at rounding level, at a flat place, or when no rate lowers the loss."""
    return descent_status(problem, state.evaluation, state.reduction, _step(state), state.constants)


def _step(state: State) -> jax.Array:
  return -state.rate * state.sizes**2 * state.evaluation.gradient
