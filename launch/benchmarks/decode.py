"""Decoding: candidates a second of the shipped univariate model, alone and for 64 data sets, by strategy and lanes."""

from collections.abc import Callable
import functools
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from launch.benchmarks import candidates as candidates_lib
from symformer_jax.decoding import sampling
from symformer_jax.decoding.strategies import Greedy, Nucleus, Strategy, Temperature, TopK
from symformer_jax.language.rules import Restrictions, Rule
from symformer_jax.pretrained import registry

NUM_POINTS, NUM_SAMPLES, NUM_DATASETS = 100, 1024, 64
# Points are padded to so many, as `engine.task.ROW_BUCKETS` has them.
PADDED_POINTS = 128
NUM_REPEATS = 5
STRATEGIES: dict[str, Strategy] = {
  "top_k": TopK(20), "temperature": Temperature(), "nucleus": Nucleus(), "greedy": Greedy()}


def run() -> dict[str, Any]:
  """Times encoding and decoding; prints a row each."""
  model = registry.load_model("univariate")
  points, is_valid = draw_points()
  rows = {"encode 1": _time(lambda i: sampling.encode(model, points[i : i + 1], is_valid[:1]), 1)}
  latents = jnp.concatenate([sampling.encode(model, points[i : i + 1], is_valid[:1]) for i in range(NUM_DATASETS)])
  free, ruled = (r.for_columns(["x0"]) for r in (Restrictions(), Restrictions(max_depth=5, unnested=("sin", "exp"))))

  def decode(first: int, number: int, strategy: Strategy, rule: Rule) -> list[tuple[np.ndarray, np.ndarray]]:
    return sampling.decode_candidates(
      model, latents[first : first + number], jnp.stack([jax.random.key(0)] * number), [rule] * number,
      num_samples=NUM_SAMPLES, strategy=strategy)

  for name, strategy in STRATEGIES.items():
    rows[f"decode 1, {name}"] = _time(functools.partial(decode, number=1, strategy=strategy, rule=free), NUM_SAMPLES)
  rows["decode 1, top_k under rules"] = _time(lambda i: decode(i, 1, TopK(20), ruled), NUM_SAMPLES)
  rows["decode 64, top_k"] = _time(
    lambda i: decode(0, NUM_DATASETS, TopK(20), free), NUM_SAMPLES * NUM_DATASETS, repeats=1)
  lengths = np.concatenate([(ids != 0).sum(axis=1) for ids, _ in decode(0, 8, TopK(20), free)])
  figures = _bounds(model, latents, float(lengths.mean()))
  for name, row in rows.items():
    print(name.ljust(28), "  ".join(f"{key} {value:.4g}" for key, value in row.items()))
  print("  ".join(f"{key} {value:.4g}" for key, value in figures.items()))
  return {"num_points": NUM_POINTS, "num_samples": NUM_SAMPLES, **rows, "work": figures}


def draw_points() -> tuple[np.ndarray, np.ndarray]:
  """Points of 64 generated formulas [64, N, 2], float32, and their validity [64, N]."""
  drawn = candidates_lib.draw(NUM_DATASETS, num_points=NUM_POINTS, seed=7)
  points = np.concatenate([drawn.x, drawn.y[..., None]], axis=-1).astype(np.float32)
  padding = ((0, 0), (0, PADDED_POINTS - NUM_POINTS))
  is_valid = np.pad(np.ones(drawn.y.shape, bool), padding)
  return np.pad(points, (*padding, (0, 0)), mode="edge"), is_valid


def _time(call: Callable[[int], Any], num_items: int, repeats: int = NUM_REPEATS) -> dict[str, float]:
  """Median seconds on the clock and of all cores; `call` gets the number of the repetition, from 0."""
  begin, begin_cpu = time.perf_counter(), time.process_time()
  jax.block_until_ready(call(0))
  first_s, first_cpu_s = time.perf_counter() - begin, time.process_time() - begin_cpu
  wall, cpu = [], []
  for i in range(repeats):
    begin, begin_cpu = time.perf_counter(), time.process_time()
    jax.block_until_ready(call(i + 1 if repeats > 1 else 0))
    wall.append(time.perf_counter() - begin)
    cpu.append(time.process_time() - begin_cpu)
  seconds, cpu_seconds = float(np.median(wall)), float(np.median(cpu))
  return {"seconds": seconds, "cpu_seconds": cpu_seconds, "per_cpu_second": num_items / cpu_seconds,
          "first_seconds": first_s, "first_cpu_seconds": first_cpu_s}


def _bounds(model: registry.LoadedModel, latents: jax.Array, mean_length: float) -> dict[str, float]:
  """What a token costs in arithmetic and in memory, and what this machine can do of either on one core."""
  d, width = model.config.decoder, model.config.decoder.width
  inner = d.num_heads * d.head_dim
  products = d.num_layers * (4 * width * inner + 2 * width * inner + 2 * width * d.ff_dim)
  attention = d.num_layers * 2 * inner * (d.max_length - 1 + latents.shape[1])
  num_flops = 2 * (products + attention + width * model.vocab.size)
  cache_bytes = d.num_layers * 2 * inner * (d.max_length - 1) * 4
  matrix = jax.random.normal(jax.random.key(0), (64, 512))
  weights = jax.random.normal(jax.random.key(1), (512, 512))
  chain = jax.jit(lambda a, b: jax.lax.fori_loop(0, 2000, lambda i, x: x @ b * 0.04, a))
  product = _time(lambda i: chain(matrix, weights), 2000 * 2 * 64 * 512 * 512, repeats=3)["per_cpu_second"]
  block = np.ones(16 << 20, np.float32)
  memory = _time(lambda i: block.sum(), block.nbytes, repeats=3)["per_cpu_second"]
  return {"tokens_per_sample": mean_length, "flops_per_token": num_flops, "cache_bytes_per_token": cache_bytes,
          "product_flops_per_cpu_second": product, "read_bytes_per_cpu_second": memory}
