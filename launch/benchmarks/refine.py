"""Refinement: 1024 generated formulas, constants 10 % off, against SciPy on the same formulas in the same process."""

from collections.abc import Callable, Iterable, Mapping
import time
from typing import Any

import jax
import numpy as np
from numpy.typing import DTypeLike
from scipy import optimize

from launch.benchmarks import candidates as candidates_lib
from symformer_jax.language import operators
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.refinement import solve
from symformer_jax.refinement.problem import Status

NUM_CANDIDATES, NUM_POINTS, NUM_POLISHED = 1024, 100, 16
DISTURBANCE = 0.1
# How far above SciPy's optimum a fit may end, in sums of squares about the mean.
TOLERANCE = 1e-6
NUM_REPEATS = 9


def run() -> dict[str, Any]:
  """Times and scores every method; prints a row each."""
  vocab = Vocabulary(1)
  drawn = candidates_lib.draw(NUM_CANDIDATES, num_points=NUM_POINTS)
  rng = np.random.default_rng(1)
  starts = drawn.values * (1 + DISTURBANCE * rng.choice([-1, 1], drawn.values.shape))
  begin_cpu = time.process_time()
  oracle, is_finite, scipy_s = _run_scipy(drawn, starts, vocab)
  scipy_cpu_s = time.process_time() - begin_cpu
  spread = drawn.y.var(axis=1)
  rows = {"scipy": {"seconds": scipy_s, "cpu_seconds": scipy_cpu_s, "solved": float(np.mean(oracle <= TOLERANCE))}}
  asked: dict[str, dict[str, Any]] = {method: {"method": method} for method in solve.METHODS}
  asked["lm, several attempts"] = {"method": "lm", "is_persistent": True}
  for name, options in asked.items():
    row = rows[name] = _run_method(options, drawn, starts, vocab, oracle, is_finite, spread)
    row["times_faster_than_scipy"] = scipy_s / row["seconds"]
    row["times_less_cpu_than_scipy"] = scipy_cpu_s / row["cpu_seconds"]
  rows["polish"] = _run_polish(drawn, starts, vocab)
  for name, row in rows.items():
    print(name.ljust(20), "  ".join(f"{key} {value:.4g}" for key, value in row.items()))
  return {"num_candidates": NUM_CANDIDATES, "num_points": NUM_POINTS, "num_finite_starts": int(is_finite.sum()), **rows}


# Ids, starts, x, y and weights.
_Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _arguments(
  drawn: candidates_lib.Candidates, starts: np.ndarray, dtype: DTypeLike
) -> tuple[_Arrays, dict[str, Any]]:
  """Each candidate has points of its own: as many data sets as candidates."""
  values, x, y, weights = (np.asarray(a, dtype) for a in (starts, drawn.x, drawn.y, np.ones_like(drawn.y)))
  options = {"vocab": Vocabulary(1), "dataset": np.arange(len(drawn.ids), dtype=np.int32)}
  return (drawn.ids, values, x, y, weights), options


def _time(call: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
  """The result, and least seconds on the clock and on all cores; compilation is what the first call takes more."""
  begin, begin_cpu = time.perf_counter(), time.process_time()
  result = jax.block_until_ready(call())
  first_s, first_cpu_s = time.perf_counter() - begin, time.process_time() - begin_cpu
  wall_s = cpu_s = np.inf
  for _ in range(NUM_REPEATS):
    begin, begin_cpu = time.perf_counter(), time.process_time()
    result = jax.block_until_ready(call())
    wall_s = min(wall_s, time.perf_counter() - begin)
    cpu_s = min(cpu_s, time.process_time() - begin_cpu)
  return result, {"seconds": wall_s, "cpu_seconds": cpu_s, "compile_seconds": first_s - wall_s,
                  "compile_cpu_seconds": first_cpu_s - cpu_s}


def _run_method(
  method_options: Mapping[str, Any], drawn: candidates_lib.Candidates, starts: np.ndarray, vocab: Vocabulary,
  oracle: np.ndarray, is_finite: np.ndarray, spread: np.ndarray,
) -> dict[str, float]:
  args, options = _arguments(drawn, starts, np.float32)
  (values, fit), times = _time(lambda: solve.fit_candidates(*args, **{**method_options, **options}))
  # The sums of squares are judged in float64 at the constants found.
  loss = _loss_in_float64(drawn, np.asarray(values), vocab) / spread
  reached = loss <= oracle + TOLERANCE
  return {
    **times, "reached_of_finite": float(reached[is_finite].mean()), "reached": float(reached.mean()),
    "solved": float(np.mean(loss <= TOLERANCE)), "mean_steps": float(np.mean(fit.steps)),
    "undefined": float(np.mean(np.asarray(fit.status) == Status.UNDEFINED)),
  }


def _run_polish(drawn: candidates_lib.Candidates, starts: np.ndarray, vocab: Vocabulary) -> dict[str, float]:
  few = candidates_lib.Candidates(*(a[:NUM_POLISHED] for a in drawn))
  args, options = _arguments(few, starts[:NUM_POLISHED], np.float64)
  (_, fit), times = _time(lambda: solve.polish(*args, **options))
  return {**times, "solved": float(np.mean(fit.loss <= TOLERANCE * few.y.var(axis=1)))}


# From constants [C] and points [N, D] to values [N].
_Program = Callable[[np.ndarray, np.ndarray], np.ndarray]


def numpy_program(ids: Iterable[int], vocab: Vocabulary) -> _Program:
  """`f(constants, x [N, D]) -> y [N]` by NumPy, from the operator table."""
  tokens = [vocab.tokens[i] for i in ids if i]

  def evaluate(constants: np.ndarray, x: np.ndarray) -> np.ndarray:
    stack: list[Any] = []
    remaining = len(constants)
    for token in reversed(tokens):
      if token in operators.BY_NAME:
        op = operators.BY_NAME[token]
        stack.append(op.numpy_fn(*(stack.pop() for _ in range(op.arity))))
      elif token.startswith("C"):
        remaining -= 1
        stack.append(constants[remaining])
      else:
        stack.append(x[:, int(token[1:])] if token.startswith("x") else np.float64(token))
    return np.broadcast_to(stack[0], len(x)).astype(np.float64)

  return evaluate


def _loss_in_float64(drawn: candidates_lib.Candidates, values: np.ndarray, vocab: Vocabulary) -> np.ndarray:
  """Mean squared errors [K]; inf where undefined."""
  is_constant = np.array(vocab.is_constant)
  losses = np.full(len(drawn.ids), np.inf)
  with np.errstate(all="ignore"):
    for k, ids in enumerate(drawn.ids):
      y = numpy_program(ids, vocab)(values[k][is_constant[ids]].astype(np.float64), drawn.x[k])
      losses[k] = np.mean((y - drawn.y[k]) ** 2)
  return np.where(np.isnan(losses), np.inf, losses)


def _run_scipy(
  drawn: candidates_lib.Candidates, starts: np.ndarray, vocab: Vocabulary
) -> tuple[np.ndarray, np.ndarray, float]:
  """`(loss in spreads [K], whether the start is finite [K], seconds)`, in float64 from the same starts."""
  is_constant = np.array(vocab.is_constant)
  losses, is_finite = np.full(len(drawn.ids), np.inf), np.zeros(len(drawn.ids), bool)
  begin = time.perf_counter()
  with np.errstate(all="ignore"):
    for k, ids in enumerate(drawn.ids):
      program, x, y = numpy_program(ids, vocab), drawn.x[k], drawn.y[k]
      start, spread = starts[k][is_constant[ids]], y.std()
      is_finite[k] = np.isfinite(program(start, x)).all()

      def residual(c: np.ndarray, program: _Program = program, x: np.ndarray = x, y: np.ndarray = y,
                   spread: float = spread) -> np.ndarray:
        # SciPy stops at the first value that is not finite: a large one lets it go on.
        return np.nan_to_num((program(c, x) - y) / spread, nan=1e6, posinf=1e6, neginf=-1e6)

      fit = optimize.least_squares(residual, start, x_scale="jac", ftol=1e-12, xtol=1e-12, gtol=1e-12, max_nfev=200)
      losses[k] = 2 * fit.cost / len(y)
  return losses, is_finite, time.perf_counter() - begin
