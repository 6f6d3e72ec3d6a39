"""Inference: data sets a second of the shipped univariate model, the time of every part and source, warm and cold.

A cold start is a process of its own: once with an empty cache of compiled programs, once with the one it left.
"""

from collections.abc import Callable, Sequence
import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

from launch.benchmarks import decode as decode_lib
from symformer_jax import inference
from symformer_jax.engine.clock import PARTS
from symformer_jax.pretrained import registry
from symformer_jax.results import SearchResult

NUM_SAMPLES, NUM_ALONE, NUM_TOGETHER = 1024, 8, 64

# Run as text: what counts is all that a user's first call waits for, imports included.
_FIRST_CALL = """
import json, time
begin = time.perf_counter(), time.process_time()
import numpy as np
from symformer_jax import inference
x = np.linspace(0.5, 4.5, 100)
y = np.random.default_rng(0).normal(size=100)  # met by no formula: every source is asked
[result] = inference.search(inference.resolve_model("univariate", num_variables=1), [(x, y)], n_samples=1024)
print(json.dumps({"seconds": time.perf_counter() - begin[0], "cpu_seconds": time.process_time() - begin[1],
                  "compile_seconds": result.seconds.compile}))
"""


def run() -> dict[str, Any]:
  """Times cold starts, then single calls and one call of 64 data sets; prints a row each."""
  rows = _cold_starts()
  model = registry.load_model("univariate")
  rows["warmup"] = {"seconds": inference.warmup(model)}
  points, is_valid = decode_lib.draw_points()
  datasets = [p[ok].astype(np.float64) for p, ok in zip(points, is_valid, strict=True)]
  inference.search(model, datasets[:2], n_samples=NUM_SAMPLES)
  rows["alone"] = _time_parts(lambda: [
    inference.search(model, [points], n_samples=NUM_SAMPLES)[0] for points in datasets[:NUM_ALONE]])
  rows["64 together"] = _time_parts(lambda: inference.search(model, datasets[:NUM_TOGETHER], n_samples=NUM_SAMPLES))
  for name, row in rows.items():
    print(name.ljust(14), "  ".join(f"{key} {value:.4g}" for key, value in row.items()))
  return {"num_points": decode_lib.NUM_POINTS, "num_samples": NUM_SAMPLES, **rows}


def _cold_starts() -> dict[str, dict[str, float]]:
  rows = {}
  with tempfile.TemporaryDirectory() as folder:
    cache = {"JAX_COMPILATION_CACHE_DIR": folder, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.3"}
    for name in ("cold", "cold, cached"):
      done = subprocess.run([sys.executable, "-c", _FIRST_CALL], env=os.environ | cache, capture_output=True,
                            text=True, check=True)
      rows[name] = json.loads(done.stdout.splitlines()[-1])
  return rows


def _by_source(found: Sequence[SearchResult]) -> dict[str, float]:
  """Mean seconds of each source's turns, a fit of what it made included."""
  seconds: dict[str, float] = {}
  for result in found:
    before = 0.0
    for turn in result.rounds:
      seconds[f"turns of {turn.source}"] = seconds.get(f"turns of {turn.source}", 0.0) + turn.seconds - before
      before = turn.seconds
  return {name: value / len(found) for name, value in seconds.items()}


def _time_parts(call: Callable[[], Sequence[SearchResult]]) -> dict[str, float]:
  """Means over data sets of seconds, on the clock (by part too) and of all cores; data sets and candidates a second."""
  begin, begin_cpu = time.perf_counter(), time.process_time()
  found = call()
  wall_s, cpu_s = time.perf_counter() - begin, time.process_time() - begin_cpu
  sampled = sum(result.counts.sampled for result in found)
  parts = {part: sum(getattr(result.seconds, part) for result in found) / len(found) for part in PARTS}
  return {"seconds": wall_s / len(found), "cpu_seconds": cpu_s / len(found), **parts, **_by_source(found),
          "compile": sum(result.seconds.compile for result in found) / len(found),
          "datasets_per_cpu_second": len(found) / cpu_s, "candidates_per_cpu_second": sampled / cpu_s}
