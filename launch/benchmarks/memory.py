"""Memory of refinement: 10 000 candidates on one data set of 10 000 points, in one call."""

import time
from typing import Any

import jax
import numpy as np

from launch.benchmarks import candidates as candidates_lib
from launch.benchmarks.train import peak_mib
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.refinement import solve

NUM_CANDIDATES, NUM_POINTS = 10_000, 10_000
NOISE = 0.1


def run() -> dict[str, Any]:
  """Peak resident memory of the process before and after the call, and its time; prints them.

  The target is the first formula drawn, with noise: the others fit it as badly as the candidates of a search do.
  """
  vocab = Vocabulary(1)
  drawn = candidates_lib.draw(NUM_CANDIDATES)
  target = candidates_lib.draw(1, num_points=NUM_POINTS)
  y = target.y[0] + NOISE * target.y[0].std() * np.random.default_rng(2).standard_normal(NUM_POINTS)
  arrays = [np.asarray(a, np.float32) for a in (drawn.values, target.x[0], y, np.ones(NUM_POINTS))]
  before = peak_mib()
  begin, begin_cpu = time.perf_counter(), time.process_time()
  _, fit = jax.block_until_ready(solve.fit_candidates(drawn.ids, *arrays, vocab=vocab))
  row = {
    "seconds": time.perf_counter() - begin, "cpu_seconds": time.process_time() - begin_cpu,
    "peak_mib_before": before, "peak_mib": peak_mib(), "finite": float(np.isfinite(fit.loss).mean()),
    "mean_steps": float(np.mean(fit.steps)),
  }
  print("  ".join(f"{key} {value:.4g}" for key, value in row.items()))
  return {"num_candidates": NUM_CANDIDATES, "num_points": NUM_POINTS, **row}
