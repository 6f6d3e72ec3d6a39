"""Every iterate of a fit, for those who want to watch: the same steps as `solve.fit_candidates` takes."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from symformer_jax import compilation
from symformer_jax.language import interpreter
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.refinement import problem as problem_lib, solve
from symformer_jax.types import Array


def trace(
  ids: Array, values: Array, x: Array, y: Array, weights: Array, *, vocab: Vocabulary,
  method: str = "lm", max_steps: int = 50, max_constants: int = 16,
) -> tuple[np.ndarray, np.ndarray]:
  """Follows the constants of K candidates from their start to where the fit ends.

  Args:
    ids: prefix expressions [K, L], padded with 0 on the right; values: numbers at constant tokens, the starts [K, L].
    x: points [N, D]; y: [N]; weights: [N].
    vocab: static; method: a row of `solve.METHODS`, static; max_steps: S, static; max_constants: C, static.
  Returns:
    `(values [K, S, L], loss [K, S])`: the best constants after each evaluation, the start first; a fit that has
    ended stays where it is. The loss is the weighted mean squared error over the points where the formula is defined.
  """
  values, loss = _trace(jnp.asarray(ids), jnp.asarray(values), *(jnp.asarray(a) for a in (x, y, weights)), vocab=vocab,
                        method=method, max_steps=max_steps, max_constants=max_constants)
  return np.asarray(values), np.asarray(loss)


@functools.partial(jax.jit, static_argnames=("vocab", "method", "max_steps", "max_constants"))
@compilation.with_all_digits
def _trace(
  ids: jax.Array, values: jax.Array, x: jax.Array, y: jax.Array, weights: jax.Array, *, vocab: Vocabulary, method: str,
  max_steps: int, max_constants: int,
) -> tuple[jax.Array, jax.Array]:
  program = interpreter.translate(ids, values.astype(x.dtype), vocab=vocab, num_slots=max_constants)
  solver = solve.METHODS[method]

  def one(candidate: interpreter.Program) -> tuple[jax.Array, jax.Array]:
    problem = problem_lib.make_problem(candidate, x, y, weights, num_slots=max_constants, num_tokens=candidate.length)
    start = problem_lib.initial_constants(candidate, max_constants)

    def body(carry: tuple[Any, jax.Array], _: None) -> tuple[tuple[Any, jax.Array], tuple[jax.Array, jax.Array]]:
      state, is_done = carry
      following = solver.step(problem, state)
      # The first step only looks at the start, and a formula without constants has no other.
      following = jax.tree.map(lambda new, old: jnp.where(is_done, old, new), following, state)
      ends = solver.terminate(problem, following)[0]
      has_ended = is_done | ends | ~jnp.any(problem.is_used)
      return (following, has_ended), (following.constants, following.evaluation.loss * problem.scale**2)

    _, (constants, loss) = jax.lax.scan(body, (solver.init(problem, start), jnp.asarray(False)), length=max_steps)
    slots = candidate.slots  # [L]
    placed = jnp.take(constants, jnp.maximum(slots, 0), axis=1)  # [S, L]
    return jnp.where((slots >= 0)[None], placed, candidate.numbers[None]), loss

  return jax.lax.map(one, program)
