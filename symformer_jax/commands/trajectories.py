"""The best candidates of a data set on their way through refinement, step by step: what `infer --animate` shows."""

from collections.abc import Sequence
import dataclasses
from typing import Any

import jax
import numpy as np

from symformer_jax import compilation
from symformer_jax.engine import rescale, task
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.rows import Rows, check_dataset
from symformer_jax.errors import InputError
from symformer_jax.language import expression
from symformer_jax.language.expression import Node
from symformer_jax.language.rules import Rule
from symformer_jax.refinement import solve, trace as trace_lib
from symformer_jax.sources.network import samples as samples_lib

NUM_CANDIDATES = 8
NUM_STEPS = 50
# Candidates are padded to a power of two of at least this many, so that few shapes compile.
MIN_LANES = 64


@dataclasses.dataclass(frozen=True)
class Trajectory:
  """One candidate.

  Attributes:
    nodes: the formula at each step [S], in the user's units; the first has the constants that the model predicted.
    rmse: at each step [S], in units of y, over the points where the formula is defined.
  """

  nodes: tuple[Node, ...]
  rmse: np.ndarray


def record(
  model: Any, x: np.ndarray, y: np.ndarray, *, weights: np.ndarray | None = None, n_samples: int = 256, top_k: int = 20,
  method: str = "lm", seed: int = 0,
) -> list[Trajectory]:
  """Draws candidates as a search does and records the fits of the eight that end best, the best first.

  Args:
    model: a loaded model, or anything with `vocab` and `propose`.
    x: points [N, D]; y: [N]; in the user's units. weights: [N], at least 0; None for equal ones.
    n_samples, top_k: see `inference.search`; method: `lm`, `bfgs` or `gd`.
    seed: fixes every random choice.
  Returns:
    At most eight different formulas; none when no sample is defined on all points.
  Raises:
    InputError: for data that cannot be searched, or a method that takes no steps.
  """
  if method not in solve.METHODS:
    raise InputError(f"expected a method of refinement that takes steps ({', '.join(solve.METHODS)}), got {method!r}")
  rows = check_dataset((x, y) if weights is None else (x, y, weights), model).sample(DEFAULT.pool.fit_rows, seed=seed)
  scaling = rescale.propose_scalings(rows.x, rows.y)[0]
  scaled_x, scaled_y = scaling.apply(rows.x, rows.y)
  num_rows = compilation.bucket(len(rows), (*task.ROW_BUCKETS, DEFAULT.pool.fit_rows))
  scaled = Rows(scaled_x, scaled_y, rows.weights).padded(num_rows)
  samples, _ = samples_lib.sample_and_fit(
    model, scaled, jax.random.key(seed), num_samples=n_samples, top_k=top_k, refine="none",
    is_allowed=Rule(rows.x.shape[1]), clock=Clock())
  x = np.pad(scaled.x, ((0, 0), (0, model.vocab.num_variables - rows.x.shape[1]))).astype(np.float32)
  points = x, scaled.y.astype(np.float32), scaled.weights.astype(np.float32)
  chosen = _choose(samples, points, method)
  if not chosen:
    return []
  ids, values = _padded(samples, chosen, NUM_CANDIDATES)
  values, loss = trace_lib.trace(ids, values, *points, vocab=samples.vocab, method=method, max_steps=NUM_STEPS)
  return [Trajectory(
    tuple(scaling.restore(expression.decode(samples.ids[k], step, samples.vocab)) for step in steps),
    np.sqrt(losses) * scaling.y_factor) for k, steps, losses in zip(chosen, values, loss, strict=False)]


def _choose(samples: samples_lib.Samples, points: tuple[np.ndarray, ...], method: str) -> list[int]:
  """Of different formulas those whose fit ends best."""
  if not len(samples.ids):
    return []
  num = len(samples.ids)
  ids, values = _padded(samples, range(num), max(MIN_LANES, 1 << (num - 1).bit_length()))
  _, fit = solve.fit_candidates(ids, values, *points, vocab=samples.vocab, method=method, max_steps=NUM_STEPS)
  loss = np.asarray(fit.loss)[:num]
  best: dict[bytes, int] = {}
  for k in np.argsort(loss):
    if np.isfinite(loss[k]):
      best.setdefault(samples.ids[k].tobytes(), int(k))
  return list(best.values())[:NUM_CANDIDATES]


def _padded(samples: samples_lib.Samples, chosen: Sequence[int], num_lanes: int) -> tuple[np.ndarray, np.ndarray]:
  """Ids and values [num_lanes, L] of the chosen; the lanes beyond them hold the program `0`."""
  rows = np.asarray(chosen)
  extra = ((0, num_lanes - len(rows)), (0, 0))
  ids = np.pad(samples.ids[rows], extra).astype(np.int32)
  ids[len(rows) :, 0] = samples.vocab.zero_id
  return ids, np.pad(samples.values[rows], extra)
