"""The driver: every candidate's constants fitted in one compiled call, by any method, under either plan."""

from collections.abc import Callable
import concurrent.futures
import dataclasses
import functools
import operator
import os
import threading
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from symformer_jax import compilation
from symformer_jax.language import interpreter
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.refinement import problem as problem_lib
from symformer_jax.refinement.bfgs import BFGS
from symformer_jax.refinement.gradient_descent import GradientDescent
from symformer_jax.refinement.levenberg_marquardt import LevenbergMarquardt
from symformer_jax.refinement.problem import Method, Problem, Status
from symformer_jax.types import Array

METHODS: dict[str, Method] = {"lm": LevenbergMarquardt(), "bfgs": BFGS(), "gd": GradientDescent()}
# Where thousands of formulas compete, a step that came as promised is followed by a bolder one: of 480 fits of sums
# whose constants were 10 to 30 % off, .84 were at the last digit after eight steps with Nielsen's third, and .915 with
# this. From far starts of a single formula the third arrives more often (NIST's problems).
_BOLD = {"lm": LevenbergMarquardt(decrease=1 / 30)}
# 95 % of generated candidates are done in 15 steps of LM; those that need 50 are worth it. The others know slopes only.
MAX_STEPS = {"lm": 50, "bfgs": 200, "gd": 300, "none": 1}
# Points are padded to whole vector registers (16 float32).
POINT_MULTIPLE = 16
# Few formulas have more constants: on the loop plan these take a kernel with narrower rows (1.6 times faster).
FEW_CONSTANTS = 4
# Bytes of stacks alive at once under the vmap plan; more candidates go in chunks.
MAX_STACK_BYTES = 1 << 30
# A block of so many candidates for each thread is dealt out, unless there are fewer in all that are no padding: threads
# take five milliseconds.
MIN_CANDIDATES_PER_THREAD, FEW_CANDIDATES = 32, 8

# `(constants [C], loss, status, steps, num_undefined)` of one fit.
_Fitted = tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]
# `((constants, evaluation), status, steps)` of one fit.
_Minimum = tuple[tuple[jax.Array, problem_lib.Evaluation], jax.Array, jax.Array]


@functools.partial(
  jax.tree_util.register_dataclass, data_fields=["values", "loss", "status", "steps", "num_undefined"], meta_fields=[])
@dataclasses.dataclass(frozen=True)
class Fit:
  """Outcome of K fits.

  Attributes:
    values: fitted constants by slot [K, C]; slot i is the i-th free token in prefix order, unused slots are 0.
    loss: weighted mean squared error [K], in squared units of y; inf where the formula is undefined at a valid point.
    status: `Status` [K], int32; `problem.STATUS_TEXT` says what to do.
    steps: evaluations done [K].
    num_undefined: valid points at which the formula is not finite [K]; the fit went by the others.
  """

  values: jax.Array
  loss: jax.Array
  status: jax.Array
  steps: jax.Array
  num_undefined: jax.Array


def fit_candidates(
  ids: Array, values: Array, x: Array, y: Array, weights: Array, *, vocab: Vocabulary,
  method: str = "lm", max_steps: int | None = None, max_constants: int = 16, plan: str | None = None,
  is_free: Array | None = None, dataset: Array | None = None, is_persistent: bool = False,
) -> tuple[Array, Fit]:
  """Fits the constants of K candidates by least squares, all at once.

  May be called inside jit. Outside, on CPU, the candidates are dealt to as many threads as there are cores.
  Args:
    ids: prefix expressions [K, L], int32, padded with 0 on the right.
    values: numbers at constant tokens [K, L] (not mantissas): the starts; read elsewhere only where `is_free`.
    x: points [N, D], or [B, N, D] of several data sets, in the user's units; their dtype is computed in.
    y: [N] or [B, N]; weights: alike, at least 0, 0 for a masked point.
    vocab: static; method: `lm`, `bfgs`, `gd` or `none` (evaluate only), static.
    max_steps: evaluations a candidate may take; default by method.
    max_constants: C, static.
    plan: `loop`, `vmap` or None for the platform's, static.
    is_free: numeric tokens to be fitted [K, L]; default: the constant tokens. At most C per candidate are.
    dataset: which data set each candidate is fitted to [K]; default 0 for all.
    is_persistent: whether a fit that ends short of exact is attempted again: with exponents of the other parity
      where the start is undefined, and by way of chordal residuals (`problem.chordal`), which lead through poles.
      The best attempt is returned. `max_steps` holds for each. Static.
  Returns:
    `(values [K, L], Fit)`: the numbers with fitted ones in place, 0 at tokens that are no constants nor free.
  Raises:
    ValueError: for an unknown method or plan.
  """
  if method not in MAX_STEPS:
    raise ValueError(f"unknown method {method!r}: expected one of {', '.join(MAX_STEPS)}")
  plan = plan or interpreter.default_plan()
  if plan not in ("loop", "vmap"):
    raise ValueError(f"unknown plan {plan!r}: expected 'loop' or 'vmap'")
  if x.ndim == 2:
    x, y, weights = x[None], y[None], weights[None]
  if dataset is None:
    dataset = np.zeros(ids.shape[0], np.int32)
  fit = functools.partial(
    _fit, vocab=vocab, method=method, max_steps=np.int32(MAX_STEPS[method] if max_steps is None else max_steps),
    max_constants=max_constants, plan=plan, is_persistent=is_persistent)
  per_candidate, shared = (ids, values, is_free, dataset), (x, y, weights)
  is_traced = any(isinstance(a, jax.core.Tracer) for a in jax.tree.leaves((per_candidate, shared)))
  if plan == "vmap" or is_traced or jax.default_backend() != "cpu" or not ids.shape[0]:
    return fit(per_candidate, shared, np.int32(ids.shape[0]))
  return _fit_in_threads(fit, per_candidate, shared)


@functools.partial(
  jax.jit, static_argnames=("vocab", "method", "max_constants", "plan", "is_persistent"))
@compilation.with_all_digits
def _fit(
  per_candidate: tuple[jax.Array, jax.Array, jax.Array | None, jax.Array],
  shared: tuple[jax.Array, jax.Array, jax.Array], num: jax.Array, *, vocab: Vocabulary, method: str,
  max_steps: jax.Array, max_constants: int, plan: str, is_persistent: bool,
) -> tuple[jax.Array, Fit]:
  """`fit_candidates` on one device, on the loop plan of the first `num`; `x` is [B, N, D] and `dataset` is given."""
  (ids, values, is_free, dataset), (x, y, weights) = per_candidate, shared
  padding = -x.shape[1] % POINT_MULTIPLE
  # Repeated points without weight: a padded zero could be outside a formula's domain for nothing.
  x = jnp.pad(x, ((0, 0), (0, padding), (0, 0)), mode="edge")
  y, weights = (jnp.pad(a.astype(x.dtype), ((0, 0), (0, padding))) for a in (y, weights))
  program = interpreter.translate(ids, values.astype(x.dtype), vocab=vocab, is_free=is_free, num_slots=max_constants)
  fit = functools.partial(_fit_one, method=method, max_steps=max_steps, is_persistent=is_persistent)
  if plan == "loop":
    def one(candidate: interpreter.Program, d: jax.Array) -> _Fitted:
      problem = x[d], y[d], weights[d], candidate.length
      return _by_size(functools.partial(fit, candidate, *problem), candidate, max_constants)
    fitted = _map_first(one, (program, dataset), num, max_constants=max_constants, dtype=x.dtype)
  else:
    num_tokens = jnp.max(program.length)
    stack_bytes = (ids.shape[1] // 2 + 2) * (1 + max_constants) * x.shape[1] * x.dtype.itemsize
    fitted = jax.lax.map(
      lambda args: fit(args[0], x[args[1]], y[args[1]], weights[args[1]], num_tokens, num_slots=max_constants),
      (program, dataset), batch_size=int(np.clip(MAX_STACK_BYTES // stack_bytes, 1, ids.shape[0])))
  has_slot = program.slots >= 0
  placed = jnp.take_along_axis(fitted[0], jnp.maximum(program.slots, 0), axis=1)
  is_kept = jnp.asarray(np.asarray(vocab.is_constant))[ids]
  return jnp.where(has_slot, placed, jnp.where(is_kept, program.numbers, 0)), Fit(*fitted)


def _map_first(
  fit: Callable[..., _Fitted], args: tuple[interpreter.Program, jax.Array], num: jax.Array, *, max_constants: int,
  dtype: Any,
) -> _Fitted:
  """The fits of the first `num` of K candidates; zeros for the others."""
  size = len(args[-1])
  zeros = (jnp.zeros((size, max_constants), dtype), jnp.zeros(size, dtype), *(jnp.zeros(size, jnp.int32),) * 3)

  def body(i: jax.Array, found: _Fitted) -> _Fitted:
    one = fit(*jax.tree.map(lambda array: jax.lax.dynamic_index_in_dim(array, i, keepdims=False), args))
    return jax.tree.map(lambda every, each: jax.lax.dynamic_update_index_in_dim(every, each, i, 0), found, one)

  return jax.lax.fori_loop(0, num, body, zeros) if size else zeros


def _by_size(fit: Callable[..., _Fitted], program: interpreter.Program, max_constants: int) -> _Fitted:
  """Fits with as few slots as the candidate needs, out of two sizes."""
  if max_constants <= FEW_CONSTANTS:
    return fit(num_slots=max_constants)

  def narrow() -> _Fitted:
    constants, loss, status, steps, num_undefined = fit(num_slots=FEW_CONSTANTS)
    return jnp.pad(constants, (0, max_constants - FEW_CONSTANTS)), loss, status, steps, num_undefined

  return jax.lax.cond(jnp.max(program.slots) < FEW_CONSTANTS, narrow, lambda: fit(num_slots=max_constants))


def _fit_one(
  program: interpreter.Program, x: jax.Array, y: jax.Array, weights: jax.Array, num_tokens: jax.Array, *, method: str,
  max_steps: Array | int, num_slots: int, start: jax.Array | None = None, is_persistent: bool = False,
) -> _Fitted:
  """Fits one candidate: `(constants [C], loss, status, steps, num_undefined)`."""
  problem = problem_lib.make_problem(program, x, y, weights, num_slots=num_slots, num_tokens=num_tokens)
  name = "lm" if method == "none" else method
  solver = METHODS[name] if is_persistent else _BOLD.get(name, METHODS[name])
  # The first step only looks at the start.
  limit = jnp.where(jnp.any(problem.is_used), 1 if method == "none" else max_steps, 1)
  if start is None:
    start = problem_lib.initial_constants(program, num_slots)
  if is_persistent:
    best, status, num_steps = _minimize_persistently(solver, problem, start, limit)
  else:
    best, status, num_steps = _minimize(solver, problem, start, limit)
  constants, evaluation = best
  num_undefined = jnp.sum((problem.weights > 0) & ~evaluation.mask, dtype=jnp.int32)
  loss = jnp.where(num_undefined > 0, jnp.inf, evaluation.loss * problem.scale**2)
  status = jnp.where(jnp.any(problem.is_used), status, Status.NO_CONSTANTS)
  status = jnp.where(num_undefined > 0, Status.UNDEFINED, status).astype(jnp.int32)
  return constants, loss, status, num_steps, num_undefined


def _minimize(solver: Method, problem: Problem, start: jax.Array, limit: jax.Array) -> _Minimum:
  """`((constants, evaluation), status, steps)` of one fit."""
  def body(carry: tuple[Any, jax.Array, jax.Array]) -> tuple[Any, jax.Array, jax.Array]:
    state = solver.step(problem, carry[0])
    return state, *solver.terminate(problem, state)

  state, _, status = jax.lax.while_loop(
    lambda carry: ~carry[1] & (carry[0].num_steps < limit), body,
    (solver.init(problem, start), jnp.asarray(False), jnp.int32(Status.STEP_LIMIT)))
  return (state.constants, state.evaluation), status, state.num_steps


# Attempts at a fit, each only while none before it was exact: from the start; where the start is undefined, with its
# exponents at integers of the other parity; with chordal residuals; plainly again from where those have led.
_DIRECT, _PARITY, _CHORDAL, _AGAIN, _END = range(5)


class _Attempts(NamedTuple):
  """Where `_minimize_persistently` stands: the solver's state, and the best fit of the attempts that are over."""

  attempt: jax.Array
  state: Any
  start: jax.Array
  is_defined: jax.Array
  best: tuple[jax.Array, problem_lib.Evaluation]
  status: jax.Array
  num_steps: jax.Array


def _minimize_persistently(solver: Method, problem: Problem, start: jax.Array, limit: jax.Array) -> _Minimum:
  """As `_minimize`, in up to four attempts; one loop for all, so that a solver is compiled once."""
  chordal = problem_lib.chordal(problem)
  has_exponent = jnp.any(problem.is_exponent)

  def body(carry: _Attempts) -> _Attempts:
    is_chordal = carry.attempt == _CHORDAL
    current = problem._replace(knee=jnp.where(is_chordal, chordal.knee, problem.knee))
    state = solver.step(current, carry.state)
    is_done, status = solver.terminate(current, state)
    is_over = is_done | (state.num_steps >= limit)
    is_first_look = (carry.attempt == _DIRECT) & (state.num_steps == 1)
    is_defined = jnp.where(is_first_look, ~jnp.any((problem.weights > 0) & ~state.evaluation.mask), carry.is_defined)
    is_best = is_over & ~is_chordal & _is_better(state.evaluation, carry.best[1])
    best, status = jax.tree.map(lambda new, old: jnp.where(is_best, new, old),
                                ((state.constants, state.evaluation), status), (carry.best, carry.status))
    is_enough = (limit <= 1) | problem_lib.is_exact(problem, best[1].loss)
    following = jnp.where((carry.attempt == _DIRECT) & (is_defined | ~has_exponent), _CHORDAL, carry.attempt + 1)
    following = jnp.where(is_enough, _END, following)
    # A better parity stays for the attempts after it.
    start = jnp.where(is_best & (carry.attempt == _PARITY), _other_parity(problem, carry.start), carry.start)
    next_start = jnp.where(is_chordal, state.constants, start)
    next_start = jnp.where(following == _PARITY, _other_parity(problem, start), next_start)
    fresh = solver.init(problem, next_start)
    state = jax.tree.map(lambda new, old: jnp.where(is_over, new, old), fresh, state)
    return _Attempts(jnp.where(is_over, following, carry.attempt), state, start, is_defined, best, status,
                     carry.num_steps + 1)

  last = jax.lax.while_loop(lambda carry: carry.attempt < _END, body, _Attempts(
    jnp.int32(_DIRECT), solver.init(problem, start), start, jnp.asarray(True),
    (start, problem_lib.no_evaluation(problem)), jnp.int32(Status.STEP_LIMIT), jnp.int32(0)))
  return last.best, last.status, last.num_steps


def _is_better(found: problem_lib.Evaluation, best: problem_lib.Evaluation) -> jax.Array:
  """Losses compare only where both formulas are defined: more points win, then the lower loss."""
  more = jnp.sum(found.mask, dtype=jnp.int32) - jnp.sum(best.mask, dtype=jnp.int32)
  return (more > 0) | ((more == 0) & (found.loss < best.loss))


def _other_parity(problem: Problem, constants: jax.Array) -> jax.Array:
  """Exponents beside the nearest integer of the other parity, to which a method rounds them where that is needed."""
  nearest = jnp.round(constants)
  side = jnp.where(constants >= nearest, 1, -1)
  return jnp.where(problem.is_exponent, nearest + 0.75 * side, constants)


@functools.partial(jax.jit, static_argnames=("method", "max_steps", "is_persistent"))
@compilation.with_all_digits
def fit_starts(
  program: interpreter.Program, starts: Array, x: Array, y: Array, weights: Array, *,
  method: str = "lm", max_steps: int = 200, is_persistent: bool = True,
) -> Fit:
  """Fits one formula to B data sets from R starts each.

  Args:
    program: one formula; several tokens may share a slot, for a constant that occurs several times.
    starts: [B, R, C]; x: [B, N, D]; y: [B, N]; weights: [B, N], 0 for a masked point.
    method, max_steps: static.
    is_persistent: whether a fit that is not exact is tried in other ways (`_minimize_persistently`), static; without
      that steps grow as boldly as those of `fit_candidates`, for starts that are near.
  Returns:
    The fits, each field with leading axes [B, R].
  """
  num_sets, num_starts, num_slots = starts.shape

  def one(index: jax.Array) -> _Fitted:
    d = index // num_starts
    return _fit_one(program, x[d], y[d], weights[d], program.length, method=method, max_steps=max_steps,
                    num_slots=num_slots, start=starts[d, index % num_starts], is_persistent=is_persistent)

  fitted = jax.lax.map(one, jnp.arange(num_sets * num_starts))
  return Fit(*(a.reshape(num_sets, num_starts, *a.shape[1:]) for a in fitted))


_compiled: set[str] = set()
_compile_lock = threading.Lock()


def _fit_in_threads(
  fit: functools.partial, per_candidate: tuple[Array, Array, Array | None, Array], shared: tuple[Array, Array, Array],
) -> tuple[np.ndarray, Fit]:
  """Deals candidates to threads round robin, as many as there are cores; XLA's CPU loops use one core each and release
  the interpreter lock. Of those at the end that only fill up a block of one shape, all alike, one is fitted.
  """
  per_candidate, shared = jax.tree.map(np.asarray, (per_candidate, shared))
  size, num = len(per_candidate[0]), _num_before_repeats(per_candidate)
  num_threads = max(min(os.cpu_count() or 1, size // MIN_CANDIDATES_PER_THREAD), 1)
  # All parts have one shape, whatever there is to do: the last candidate is repeated.
  part_size = -(-size // num_threads)
  num_dealt = 1 if num <= min(FEW_CANDIDATES, part_size) else num_threads
  rows = np.minimum(np.arange(part_size) * num_dealt + np.arange(num_dealt)[:, None], size - 1)
  parts = [(jax.tree.map(operator.itemgetter(some), per_candidate), np.int32(-(-(num - i) // num_dealt)))
           for i, some in enumerate(rows)]
  use_x64 = jax.config.jax_enable_x64  # type: ignore[attr-defined]  # settings are attributes that no class names

  def run(part: tuple[tuple[np.ndarray, ...], np.int32]) -> tuple[np.ndarray, Fit]:
    with jax.enable_x64(use_x64):  # the setting belongs to a thread
      return jax.tree.map(np.asarray, fit(part[0], shared, part[1]))

  # Without `is_free` there is one array less.
  shapes = [(a.shape, a.dtype) for a in jax.tree.leaves((parts[0], shared))]
  # The number of steps is no part of the program.
  settings = sorted((name, value) for name, value in fit.keywords.items() if name != "max_steps")
  signature = str((settings, use_x64, shapes))
  with _compile_lock:  # else every thread would compile the same program
    done = [] if signature in _compiled else [run(parts[0])]
    _compiled.add(signature)
  if num_dealt == 1:
    done = done or [run(parts[0])]
  else:
    with concurrent.futures.ThreadPoolExecutor(num_threads) as pool:
      done += list(pool.map(run, parts[len(done):]))
  places = np.minimum(np.arange(size), num - 1)
  return jax.tree.map(lambda *a: np.stack(a, 1).reshape(-1, *a[0].shape[1:])[places], *done)


def _num_before_repeats(per_candidate: Any) -> int:
  """How many candidates there are, those at the end that are all alike counted once."""
  differs = np.any([(a != a[-1]).reshape(len(a), -1).any(axis=1) for a in jax.tree.leaves(per_candidate)], axis=0)
  return int(np.flatnonzero(differs)[-1]) + 2 if differs.any() else 1


def polish(
  ids: Array, values: Array, x: Array, y: Array, weights: Array, *, vocab: Vocabulary,
  max_steps: int = 100, **options: Any,
) -> tuple[np.ndarray, Fit]:
  """`fit_candidates` in float64, whatever the process computes in: for finalists.

  Args:
    ids, values, x, y, weights, vocab, options: as for `fit_candidates`; numbers of any precision.
    max_steps: evaluations a candidate may take.
  Returns:
    The same as `fit_candidates`, as float64 NumPy arrays.
  """
  wide = [np.asarray(a, np.float64) for a in (values, x, y, weights)]
  with jax.enable_x64(True):
    fitted = fit_candidates(np.asarray(ids), *wide, vocab=vocab, max_steps=max_steps, **options)
    return jax.tree.map(np.asarray, fitted)
