"""Chance: how often a search of pure noise recommends anything but a constant."""

import time
from typing import Any

import numpy as np

from symformer_jax import inference
from symformer_jax.evaluation import metrics

NUM_TABLES = 400
NUM_POINTS = (6, 8, 10, 15, 20, 40)
# Where y lies and how far it spreads: a constant, not 0, is the answer.
MEAN, SPREAD, RANGE = 10.0, 1.0, (0.0, 10.0)


def run() -> dict[str, Any]:
  """Searches tables of one column, each by itself; prints a row for each size."""
  model = inference.resolve_model("auto", num_variables=1)
  rows = {}
  for num_points in NUM_POINTS:
    begin, num_found = time.process_time(), 0
    for number in range(NUM_TABLES):
      [result] = inference.search(model, [draw(number, num_points)])
      num_found += result.best is not None and result.best.complexity > 1
    share = num_found / NUM_TABLES
    low, high = metrics.wilson_interval(share, NUM_TABLES)
    rows[f"{num_points} points"] = row = {
      "not_a_constant": share, "low": low, "high": high, "cpu_seconds": (time.process_time() - begin) / NUM_TABLES}
    print(f"{num_points} points".ljust(12), "  ".join(f"{k} {v:.4g}" for k, v in row.items()), flush=True)
  return {"num_tables": NUM_TABLES, **rows}


def draw(number: int, num_points: int) -> tuple[np.ndarray, np.ndarray]:
  """Table `number` of a size: x [N, 1] and a normal y [N] that has nothing to do with it."""
  rng = np.random.default_rng([number, num_points, 20261126])
  return rng.uniform(*RANGE, num_points)[:, None], rng.normal(MEAN, SPREAD, num_points)
