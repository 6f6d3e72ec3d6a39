"""What generation costs: rate of the three settings per core, agreement with `expand(simplify(...))`, scaling.

All rates are per second of CPU time, so that they hold on a machine that others use as well.
The command is `python -m launch.benchmark --what=generate`.
"""

from collections import Counter
from pathlib import Path
import tempfile
import time

import numpy as np

from data_gen import exclusion, simplify, trees
from data_gen.candidates import Equation, Generator
from data_gen.config import GeneratorConfig
from data_gen.defaults import SIMPLIFIERS
from data_gen.workers import CHUNK_CANDIDATES, Pool, call_with_limit
from data_gen.writer import Plan, Writer
from symformer_jax.language import expression


def measure_agreement(config: GeneratorConfig, num_trees: int, *, seed: int) -> dict[str, dict[str, float]]:
  """Simplifies the same trees in every setting.

  Trees are those that pass the numeric tests and that `simplify` brings under the longest length. The rate counts
  the drawing and testing of the raw trees, but not the final tests.
  Returns:
    By setting: `agreement` with `simplify` (token strings, 0 ... 1), `equations_per_s` of one core, `tokens` (mean).
  """
  generator = Generator(config, seed, exclusion.read_problems(None, config))
  sampler = trees.TreeSampler(config)  # as the generator's own, which is not for laws
  seconds: dict[str, float] = dict.fromkeys(("numeric", *SIMPLIFIERS), 0.0)
  same: Counter[str] = Counter()
  tokens: Counter[str] = Counter()
  num_kept = index = 0
  while num_kept < num_trees:
    rng = np.random.default_rng((seed, index))
    index += 1
    start = time.process_time()
    with np.errstate(all="ignore"):
      tree = sampler.sample(rng)
      rule, *_ = generator._judge(tree, rng)
    seconds["numeric"] += time.process_time() - start
    if rule:
      continue
    strings = {}
    for setting in SIMPLIFIERS:
      start = time.process_time()
      strings[setting] = _tokens(tree, setting, generator)
      seconds[setting] += time.process_time() - start
    if 0 < len(strings["simplify"]) <= config.max_tokens:
      num_kept += 1
      for setting, ids in strings.items():
        same[setting] += ids == strings["simplify"]
        tokens[setting] += len(ids)
  return {
    setting: {
      "agreement": same[setting] / num_kept,
      "equations_per_s": num_kept / (seconds[setting] + seconds["numeric"]),
      "tokens": tokens[setting] / num_kept,
    }
    for setting in SIMPLIFIERS
  }


def _tokens(tree: expression.Node, setting: str, generator: Generator) -> list[int]:
  """Ids of the simplified tree; none when the setting fails or takes longer than the limit."""
  def make() -> list[int]:
    final = simplify.simplify(tree, setting, digits=generator.config.simplify_digits)
    return expression.encode(final, generator.vocab)[0]
  with np.errstate(all="ignore"):
    ids = call_with_limit(make, generator.config.time_limit_s)
  return ids if isinstance(ids, list) else []


def measure_scaling(config: GeneratorConfig, num_workers: int, num_candidates: int, *, seed: int) -> dict[str, float]:
  """Runs the pool and the writer over `num_candidates`, all tests included, after every worker's first chunk.

  Returns:
    `accepted` (share of the candidates), `equations_per_cpu_s` of the workers' CPU time, `equations_per_s` of wall
    time, `cores` the workers had of the machine, `writer_ms` of this process for each accepted equation (what
    cannot be shared out: its inverse bounds the rate of any number of workers), `bytes` on disk for each.
  """
  with tempfile.TemporaryDirectory() as folder, \
       Pool(Generator(config, seed, exclusion.read_problems(None, config)), num_workers, skip={}) as pool:
    num_first = num_workers * CHUNK_CANDIDATES
    # Room for all: the pool ends with a whole chunk.
    writer = Writer(Plan(Path(folder), 0, num_candidates + CHUNK_CANDIDATES, config.shard_equations), {}, info={})
    writer.resume()
    for _ in pool.outcomes(0, num_first):
      pass
    begin = time.perf_counter(), time.process_time(), _cpu_seconds(pool.process_ids)
    made = []
    for index, outcome in pool.outcomes(num_first, num_first + num_candidates):
      writer.add(index, outcome)
      made += [outcome] if isinstance(outcome, Equation) else []
    wall_s, own_s, workers_s = (
      now - then for now, then in
      zip((time.perf_counter(), time.process_time(), _cpu_seconds(pool.process_ids)), begin, strict=True)
    )
  num_bytes = np.mean([len(e.ids) + 1 + 4 * np.count_nonzero(np.frombuffer(e.constants, np.float32)) + 4 * e.domain.size
                       for e in made])
  return {
    "workers": num_workers, "candidates": sum(writer.counts.values()),
    "accepted": writer.num_accepted / sum(writer.counts.values()),
    "equations_per_cpu_s": writer.num_accepted / workers_s, "equations_per_s": writer.num_accepted / wall_s,
    "cores": workers_s / wall_s, "writer_ms": 1e3 * own_s / writer.num_accepted, "bytes": float(num_bytes),
  }


def _cpu_seconds(process_ids: list[int]) -> float:
  """CPU time of running processes; the first figure of Linux's schedstat is in nanoseconds."""
  paths = [Path(f"/proc/{process_id}/schedstat") for process_id in process_ids]
  return sum(int(path.read_text(encoding="ascii").split()[0]) for path in paths) / 1e9
