"""The driver: every candidate's constants fitted in one compiled call, by any method, under either plan."""

import dataclasses
import functools

import jax
import jax.numpy as jnp

from symformer_jax.language import interpreter, vocabulary as vocabulary_lib
from symformer_jax.refinement import problem as problem_lib
from symformer_jax.refinement.levenberg_marquardt import LevenbergMarquardt
from symformer_jax.refinement.problem import Status

METHODS = {"lm": LevenbergMarquardt()}
DEFAULT_MAX_STEPS = {"lm": 30, "none": 1}
# Points are padded to whole vector registers (16 float32).
POINT_MULTIPLE = 16


@functools.partial(jax.tree_util.register_dataclass, data_fields=["values", "loss", "status", "steps", "num_undefined"],
                   meta_fields=[])
@dataclasses.dataclass(frozen=True)
class Fit:
  """Outcome of K fits.

  Attributes:
    values: fitted constants by slot [K, C]; slot i is the i-th free token in prefix order.
    loss: weighted mean squared error [K], in squared units of y; inf where the formula is undefined at a valid point.
    status: `Status` [K], int32.
    steps: evaluations done [K].
    num_undefined: valid points at which the formula is not finite [K].
  """

  values: jax.Array
  loss: jax.Array
  status: jax.Array
  steps: jax.Array
  num_undefined: jax.Array


def _fit_one(program, x, y, weights, num_tokens, *, method, max_steps, num_slots):
  """Fits one candidate: `(constants [C], loss, status, steps, num_undefined)`."""
  problem = problem_lib.make_problem(program, x, y, weights, num_slots, num_tokens)
  solver = METHODS["lm" if method == "none" else method]
  state = solver.init(problem, problem_lib.initial_constants(program, num_slots))
  is_fixed = (method == "none") | ~jnp.any(problem.is_used)
  limit = jnp.where(is_fixed, 1, max_steps)
  state = jax.lax.while_loop(
    lambda s: ~s.is_done & (s.num_steps < limit), lambda s: solver.step(problem, s), state)
  mask = state.evaluation.mask
  num_undefined = jnp.sum((problem.weights > 0) & ~mask)
  loss = jnp.where(num_undefined > 0, jnp.inf, state.evaluation.loss * problem.scale**2)
  status = jnp.where(jnp.any(problem.is_used), state.status, Status.NO_CONSTANTS)
  status = jnp.where(num_undefined > 0, Status.UNDEFINED, status)
  return state.constants, loss, status.astype(jnp.int32), state.num_steps, num_undefined.astype(jnp.int32)


@functools.partial(jax.jit, static_argnames=("vocab", "method", "max_steps", "max_constants", "plan"))
def fit_candidates(
  ids: jax.Array, values: jax.Array, x: jax.Array, y: jax.Array, weights: jax.Array, *,
  vocab: vocabulary_lib.Vocabulary, method: str = "lm", max_steps: int | None = None, max_constants: int = 16,
  plan: str | None = None, is_free: jax.Array | None = None, dataset: jax.Array | None = None,
) -> tuple[jax.Array, Fit]:
  """Fits the constants of K candidates by least squares, all in one compiled call.

  Args:
    ids: prefix expressions [K, L], int32, padded with 0 on the right.
    values: numbers at constant tokens [K, L] (not mantissas): the starts; read elsewhere only where `is_free`.
    x: points [N, D], or [B, N, D] of several data sets, in the user's units.
    y: [N] or [B, N]; weights: alike, at least 0, 0 for a masked point.
    vocab, method (`lm`, `bfgs`, `gd` or `none`), max_steps, max_constants (C), plan: static.
    is_free: numeric tokens to be fitted [K, L]; default: the constant tokens. At most C per candidate are.
    dataset: which data set each candidate is fitted to [K]; default 0 for all.
  Returns:
    `(values [K, L], Fit)`: the numbers with fitted ones in place, 0 at tokens that are no constants nor free.
  """
  plan = plan or interpreter.default_plan()
  if x.ndim == 2:
    x, y, weights = x[None], y[None], weights[None]
  if dataset is None:
    dataset = jnp.zeros(ids.shape[0], jnp.int32)
  padding = -x.shape[1] % POINT_MULTIPLE
  # Repeated points without weight: a padded zero could be outside a formula's domain for nothing.
  x = jnp.pad(x, ((0, 0), (0, padding), (0, 0)), mode="edge")
  y, weights = (jnp.pad(a, ((0, 0), (0, padding))) for a in (y, weights))
  program = interpreter.translate(ids, values.astype(x.dtype), vocab=vocab, is_free=is_free, num_slots=max_constants)
  limit = DEFAULT_MAX_STEPS[method] if max_steps is None else max_steps
  fit = functools.partial(_fit_one, method=method, max_steps=limit, num_slots=max_constants)
  if plan == "loop":
    def one(args):
      p, d = args
      return fit(p, x[d], y[d], weights[d], p.length)
    fitted = jax.lax.map(one, (program, dataset))
  else:
    num_tokens = jnp.max(program.length)
    fitted = jax.vmap(lambda p, d: fit(p, x[d], y[d], weights[d], num_tokens))(program, dataset)
  at = jnp.maximum(program.slots, 0)
  kept = jnp.where(jnp.asarray(vocab.is_constant)[ids] | (program.slots >= 0), program.numbers, 0)
  placed = jnp.where(program.slots >= 0, jnp.take_along_axis(fitted[0], at, axis=1), kept)
  return placed, Fit(*fitted)
